//! From plans to files, links, repositories and what a server serves.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::plan::{
    FieldPlan, FileField, FilePlace, Holder, PluginList, RootField, RootPlace, RootPlan, Source,
};
use super::yaml;
use crate::support::{config_map, deployment};

/// How many repositories there are.
pub(super) const REPOSITORIES: usize = 3;
/// What they are called after `https://github.com/`.
pub(super) const OWNER: &str = "acme";
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
const DIRECTORIES: [&str; 12] = [
    "",
    "",
    "files",
    "mit leer",
    "ünï",
    "a'b",
    "x [1]",
    "#hash & co",
    "localized",
    "a.git",
    "_git",
    "c:d",
];
const NAMES: [&str; 23] = [
    "data.txt",
    "a b.yaml",
    "größe.json",
    "it's",
    "@at",
    "#c",
    "&amp",
    "*star*",
    "{x}",
    "[y]",
    "x,y",
    "x; y",
    "!tag",
    "%41.yaml",
    "~tilde",
    "- dash",
    "-",
    "a\"b",
    "..data",
    "x:y",
    "why?ref=v1",
    "e\u{301}",
    "a%20b?x",
];
const ROOT_NAMES: [&str; 16] = [
    "app",
    "mit leer",
    "ünï",
    "a'b",
    "x+y",
    "#r",
    "{r}",
    "v1.2",
    "-dash",
    "a=b",
    "a,b",
    "%2e",
    "x.git",
    "_git",
    "github.com",
    "a\"b",
];
/// In a URL.
const HTTP_NAMES: [&str; 14] = [
    "data.txt",
    "a%20b.yaml",
    "UPPER.json",
    "x+y",
    "a;b",
    "~tilde",
    "v1%2E2.txt",
    "x@y",
    "data.TXT",
    "Data.txt",
    "a'b",
    "x:y",
    "con.yaml",
    "trailing.",
];
const REMOTE_NAMES: [&str; 12] = [
    "app", "x+y", "v1.2", "~r", "x_y", "Base", "base", "BASE", "a,b", "a'b", "aux", "x@y",
];

/// Where a root lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In the repository of the user.
    Work,
    /// In the repository of this number.
    Upstream(usize),
}

/// The files of some trees.
#[derive(Default)]
pub(super) struct Files {
    pub(super) files: BTreeMap<(Place, String), String>,
    pub(super) links: BTreeMap<(Place, String), String>,
    pub(super) served: BTreeMap<String, String>,
}

/// One tree, written.
pub(super) struct Written {
    /// The target, from the top of the user's repository.
    pub(super) target: String,
    pub(super) scope: String,
    /// The fields that name something, as `resources[] git`.
    pub(super) covered: Vec<String>,
}

pub(super) struct Writer<'a> {
    pub(super) files: &'a mut Files,
    /// The top of the user's repository, and of what stands for `https://github.com/`.
    pub(super) top: String,
    pub(super) upstream: String,
    /// What all paths of this tree start with.
    pub(super) tree: String,
    pub(super) count: usize,
    pub(super) covered: Vec<String>,
}

/// A root that is being written.
struct Root {
    place: Place,
    directory: String,
    number: usize,
    fields: Map<String, Value>,
}

impl Root {
    fn push(&mut self, field: &str, value: Value) {
        let list = self.fields.entry(field).or_insert_with(|| json!([]));
        list.as_array_mut().unwrap().push(value);
    }
}

fn pick<T: Copy>(list: &[T], number: usize) -> T {
    list[number % list.len()]
}

fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Returns the path that leads from one directory to another.
fn relative(from: &str, to: &str) -> String {
    let from: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
    let to: Vec<&str> = to.split('/').filter(|part| !part.is_empty()).collect();
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut parts = vec![".."; from.len() - same];
    parts.extend(&to[same..]);
    if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    }
}

/// Spells the same path in another way.
fn spelled(path: &str, spelling: usize) -> String {
    match spelling {
        0 => format!("./{path}"),
        1 => format!("./nowhere/../{path}"),
        2 => path.replace('/', "//"),
        _ => path.to_owned(),
    }
}

impl Writer<'_> {
    /// Writes the target and all that it leads to.
    pub(super) fn write(mut self, plan: &RootPlan) -> Written {
        let mut directory = self.tree.clone();
        for level in 0..plan.style % 4 {
            directory = join(&directory, &format!("l{level}"));
        }
        let target = join(&directory, "target");
        self.root(Place::Work, &target, plan, false);
        Written {
            target,
            scope: self.tree,
            covered: self.covered,
        }
    }

    fn next(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    fn add(&mut self, place: Place, path: &str, text: impl Into<String>) {
        self.files
            .files
            .insert((place, path.to_owned()), text.into());
    }

    fn root(&mut self, place: Place, directory: &str, plan: &RootPlan, component: bool) {
        let number = self.next();
        let mut root = Root {
            place,
            directory: directory.to_owned(),
            number,
            fields: Map::new(),
        };
        if component {
            root.fields.insert(
                "apiVersion".into(),
                json!("kustomize.config.k8s.io/v1alpha1"),
            );
            root.fields.insert("kind".into(), json!("Component"));
        }
        let objects = format!(
            "{}data: {{own: 'yes'}}\n---\n{}",
            config_map(&format!("base-{number}")),
            deployment(&format!("deployment-{number}"))
        );
        self.add(place, &join(directory, "base.yaml"), objects);
        root.push("resources", json!("base.yaml"));
        for field in &plan.fields {
            match field {
                FieldPlan::File(field, at) => self.file_field(&mut root, *field, at),
                FieldPlan::Root(field, at, plan) => self.root_field(&mut root, *field, at, plan),
                FieldPlan::Plugins(list, holder, plugins) => {
                    self.plugins(&mut root, *list, holder, plugins, plan.style);
                }
            }
        }
        let style = plan.style as usize;
        let name = pick(&KUSTOMIZATIONS, style / 7);
        let text = yaml::emit(&Value::Object(root.fields), plan.style);
        self.add(place, &join(directory, name), text);
    }

    fn cover(&mut self, field: &str, how: &str) {
        self.covered.push(format!("{field} {how}"));
    }

    /// Puts a file somewhere, and returns what names it.
    fn put(&mut self, root: &Root, at: &FilePlace, text: &str) -> (String, &'static str) {
        let number = self.next();
        // So that no two files meet.
        let local = |directory: &str, name: usize| {
            join(directory, &format!("{}{number}", pick(&NAMES, name)))
        };
        match at {
            FilePlace::Local {
                directory,
                name,
                spelling,
            } => {
                let path = local(pick(&DIRECTORIES, *directory), *name);
                self.add(root.place, &join(&root.directory, &path), text);
                let mut named = spelled(&path, *spelling);
                if *spelling == 3 {
                    let back = root.directory.rsplit('/').next().unwrap_or_default();
                    named = format!("../{back}/{path}");
                }
                (named, "local")
            }
            FilePlace::Linked { name } => {
                let real = format!("real/file{number}");
                self.add(root.place, &join(&root.directory, &real), text);
                let path = local("", *name);
                let link = (root.place, join(&root.directory, &path));
                self.files.links.insert(link, real);
                (path, "local")
            }
            FilePlace::Absolute { name } if root.place == Place::Work => {
                let path = join(&root.directory, &local("", *name));
                self.add(root.place, &path, text);
                (format!("{}/{path}", self.top), "absolute")
            }
            FilePlace::Absolute { name } => {
                let path = local("", *name);
                self.add(root.place, &join(&root.directory, &path), text);
                (path, "local")
            }
            FilePlace::Http { host, name, query } => {
                let host = pick(
                    &[
                        "files.example.com",
                        "files.example.com:8443",
                        "raw.example.org",
                    ],
                    *host,
                );
                let query = pick(&["", "", "", "?one", "?two", "?x&y"], *query);
                let name = pick(&HTTP_NAMES, *name);
                let mut url = format!("https://{host}/{}/{name}{query}", self.tree);
                if self
                    .files
                    .served
                    .get(&url)
                    .is_some_and(|there| there != text)
                {
                    url = format!("https://{host}/{}/{number}/{name}{query}", self.tree);
                }
                self.files.served.insert(url.clone(), text.to_owned());
                (url, "http")
            }
        }
    }

    fn file_field(&mut self, root: &mut Root, field: FileField, at: &FilePlace) {
        let number = self.next();
        let base = format!("base-{}", root.number);
        match field {
            FileField::Resources | FileField::Bases => {
                let (text, how) = self.put(root, at, &config_map(&format!("map-{number}")));
                let name = match field {
                    FileField::Resources => "resources",
                    _ => "bases",
                };
                root.push(name, json!(text));
                self.cover(&format!("{name}[]"), how);
            }
            FileField::Crds => {
                let crd = format!(
                    "{{\"example.com/v1.Custom{number}\": {{\"Schema\": {{\"properties\": {{}}}}}}}}"
                );
                let (text, how) = self.put(root, at, &crd);
                root.push("crds", json!(text));
                self.cover("crds[]", how);
            }
            FileField::Configurations => {
                let content =
                    format!("namePrefix:\n- path: spec/prefixed{number}\n  kind: Custom\n");
                let (text, how) = self.put(root, at, &content);
                root.push("configurations", json!(text));
                self.cover("configurations[]", how);
            }
            FileField::Openapi => {
                if root.fields.contains_key("openapi") {
                    return;
                }
                let (text, how) = self.put(root, at, "{\"definitions\": {}}\n");
                root.fields.insert("openapi".into(), json!({"path": text}));
                self.cover("openapi.path", how);
            }
            FileField::Patches => {
                let content = format!(
                    "- op: add\n  path: /metadata/labels\n  value: {{patched: n{number}}}\n"
                );
                let (text, how) = self.put(root, at, &content);
                root.push(
                    "patches",
                    json!({"path": text, "target": {"kind": "Deployment"}}),
                );
                self.cover("patches[].path", how);
            }
            FileField::PatchesStrategicMerge => {
                let (text, how) = self.put(root, at, &merge(&base, number));
                root.push("patchesStrategicMerge", json!(no_yaml(text)));
                self.cover("patchesStrategicMerge[]", how);
            }
            FileField::PatchesJson6902 => {
                let (text, how) = self.put(root, at, &json6902(number));
                root.push(
                    "patchesJson6902",
                    json!({"path": text, "target": {"version": "v1", "kind": "ConfigMap", "name": base}}),
                );
                self.cover("patchesJson6902[].path", how);
            }
            FileField::Replacements => {
                let (text, how) = self.put(root, at, &replacement(&base, number));
                root.push("replacements", json!({"path": text}));
                self.cover("replacements[].path", how);
            }
            FileField::Generator(secret, source) => {
                let kind = if secret {
                    "secretGenerator"
                } else {
                    "configMapGenerator"
                };
                let mut generator = json!({"name": format!("generated-{number}")});
                let content = match source {
                    Source::Files | Source::FilesWithKey => format!("text {number}\r\nand more\n"),
                    Source::Envs | Source::Env => format!("A{number}=1\r\nB=a b\n"),
                };
                let (text, how) = self.put(root, at, &content);
                let field = match source {
                    Source::Files => {
                        generator["files"] = json!([text]);
                        "files[]"
                    }
                    Source::FilesWithKey => {
                        generator["files"] = json!([format!("key{number}={text}")]);
                        "files[]"
                    }
                    Source::Envs => {
                        generator["envs"] = json!([text]);
                        "envs[]"
                    }
                    Source::Env => {
                        generator["env"] = json!(text);
                        "env"
                    }
                };
                root.push(kind, generator);
                self.cover(&format!("{kind}[].{field}"), how);
            }
        }
    }

    /// Finds a place for another root. Returns where it lies, and what names it.
    fn room(
        &mut self,
        root: &Root,
        at: &RootPlace,
        name: usize,
    ) -> (Place, String, String, &'static str) {
        let number = self.next();
        match at {
            RootPlace::Local { up, spelling } => {
                let mut directory = root.directory.clone();
                for _ in 0..*up {
                    if directory != self.tree && !directory.is_empty() {
                        directory = parent(&directory).to_owned();
                    }
                }
                let names: &[&str] = match root.place {
                    Place::Work => &ROOT_NAMES,
                    Place::Upstream(_) => &REMOTE_NAMES,
                };
                let to = join(&directory, &format!("{}-{number}", pick(names, name)));
                let text = relative(&root.directory, &to);
                let text = match spelling {
                    0 => format!("./{text}"),
                    1 => format!("{text}/"),
                    2 => format!("./nowhere/../{text}/."),
                    _ => text,
                };
                (root.place, to, text, "local")
            }
            RootPlace::Linked => {
                let to = join(&self.tree, &format!("linked/real-{number}"));
                let link = format!("link-{number}");
                let text = relative(&root.directory, &to);
                self.files
                    .links
                    .insert((root.place, join(&root.directory, &link)), text);
                (root.place, to, link, "local")
            }
            RootPlace::Git {
                repository,
                form,
                version,
            } => {
                let repository = repository % REPOSITORIES;
                let place = Place::Upstream(repository);
                let to = join(
                    &self.tree,
                    &format!("{}-{number}", pick(&REMOTE_NAMES, name)),
                );
                let version = pick(
                    &[
                        "?ref=v1",
                        "?ref=v1",
                        "?ref=release/one",
                        "?ref=main",
                        "?version=v1&timeout=60",
                        "?ref=v1&submodules=false",
                        "?ref=release%2Fone",
                        "",
                    ],
                    *version,
                );
                let spec = format!("github.com/{OWNER}/r{repository}");
                let text = match form % 8 {
                    0 => format!("https://{spec}.git/{to}{version}"),
                    1 => format!("{spec}/{to}{version}"),
                    2 => format!("git::https://{spec}//{to}{version}"),
                    3 => format!("git@github.com:{OWNER}/r{repository}//{to}{version}"),
                    // Only what lies on this machine may name its files.
                    4 if root.place == Place::Work => {
                        format!(
                            "file://{}/{OWNER}/r{repository}.git//{to}{version}",
                            self.upstream
                        )
                    }
                    5 => format!("https://{spec}/{to}/{version}"),
                    _ => format!("https://{spec}//{to}{version}"),
                };
                (place, to, text, "git")
            }
        }
    }

    fn root_field(&mut self, root: &mut Root, field: RootField, at: &RootPlace, plan: &RootPlan) {
        let (place, directory, text, how) = self.room(root, at, plan.name);
        let (name, component) = match field {
            RootField::Resources => ("resources", false),
            RootField::Bases => ("bases", false),
            RootField::Components => ("components", true),
        };
        self.root(place, &directory, plan, component);
        root.push(name, json!(text));
        let how = match how {
            "local" => "directory",
            how => how,
        };
        self.cover(&format!("{name}[]"), how);
    }

    fn plugins(
        &mut self,
        root: &mut Root,
        list: PluginList,
        holder: &Holder,
        plugins: &[(usize, FilePlace)],
        style: u64,
    ) {
        let mut documents = Vec::new();
        for (which, at) in plugins {
            documents.push(self.plugin(root, list, *which, at));
        }
        let text = documents
            .iter()
            .map(|document| yaml::emit(document, style))
            .collect::<Vec<_>>()
            .join("---\n");
        let name = match list {
            PluginList::Generators => "generators",
            PluginList::Transformers => "transformers",
            PluginList::Validators => "validators",
        };
        let (entry, how) = match holder {
            Holder::Inline => (text, "inline"),
            Holder::File(at) => {
                let (entry, how) = self.put(root, at, &text);
                (no_yaml(entry), how)
            }
            Holder::Directory(at) => {
                let (place, directory, entry, how) = self.room(root, at, 0);
                self.add(
                    place,
                    &join(&directory, "kustomization.yaml"),
                    "resources: [plugins.yaml]\n",
                );
                self.add(place, &join(&directory, "plugins.yaml"), text);
                let how = match how {
                    "local" => "directory",
                    how => how,
                };
                (entry, how)
            }
        };
        root.push(name, json!(entry));
        self.cover(&format!("{name}[]"), how);
    }

    fn plugin(&mut self, root: &Root, list: PluginList, which: usize, at: &FilePlace) -> Value {
        let number = self.next();
        let base = format!("base-{}", root.number);
        let named = |kind: &str| json!({"apiVersion": "builtin", "kind": kind, "metadata": {"name": format!("plugin-{number}")}});
        let (mut plugin, field, how);
        match (list, which % 5) {
            (PluginList::Generators, which) => {
                let kind = pick(&["ConfigMapGenerator", "SecretGenerator"], which);
                plugin = named(kind);
                if which < 2 {
                    let (text, at) = self.put(root, at, &format!("text {number}\n"));
                    plugin["files"] = json!([format!("key={text}"), text]);
                    (field, how) = (format!("{kind}.files[]"), at);
                } else {
                    let (text, at) = self.put(root, at, &format!("P{number}=1\n"));
                    plugin["envs"] = json!([text]);
                    // No build reads it, but it looks like something that is read.
                    plugin["env"] = json!(text);
                    self.cover(&format!("{kind}.env"), at);
                    (field, how) = (format!("{kind}.envs[]"), at);
                }
            }
            (PluginList::Transformers, 1) => {
                let (text, at) = self.put(root, at, &json6902(number));
                plugin = named("PatchJson6902Transformer");
                plugin["path"] = json!(text);
                plugin["target"] = json!({"version": "v1", "kind": "ConfigMap", "name": base});
                (field, how) = ("PatchJson6902Transformer.path".to_owned(), at);
            }
            (PluginList::Transformers, 2) => {
                let (text, at) = self.put(root, at, &merge(&base, number));
                plugin = named("PatchStrategicMergeTransformer");
                plugin["paths"] = json!([no_yaml(text)]);
                (field, how) = ("PatchStrategicMergeTransformer.paths[]".to_owned(), at);
            }
            (PluginList::Transformers, 3) => {
                let (text, at) = self.put(root, at, &replacement(&base, number));
                plugin = named("ReplacementTransformer");
                plugin["replacements"] = json!([{"path": text}]);
                (field, how) = ("ReplacementTransformer.replacements[].path".to_owned(), at);
            }
            (PluginList::Transformers, 4) => {
                let content = format!(
                    "targets:\n- selector: {{kind: ConfigMap}}\n  fieldPath: data/added{number}\n"
                );
                let (text, at) = self.put(root, at, &content);
                plugin = named("ValueAddTransformer");
                plugin["value"] = json!("added");
                plugin["targetFilePath"] = json!(text);
                (field, how) = ("ValueAddTransformer.targetFilePath".to_owned(), at);
            }
            (list, _) => {
                let content = format!(
                    "- op: add\n  path: /metadata/annotations\n  value: {{plugin: n{number}}}\n"
                );
                let (text, at) = self.put(root, at, &content);
                plugin = named("PatchTransformer");
                plugin["path"] = json!(text);
                let kind = match list {
                    PluginList::Validators => "Nothing",
                    _ => "Deployment",
                };
                plugin["target"] = json!({"kind": kind});
                (field, how) = ("PatchTransformer.path".to_owned(), at);
            }
        }
        self.cover(&field, how);
        plugin
    }
}

/// Lets a path not be taken for YAML where that is looked for first.
fn no_yaml(path: String) -> String {
    if path.starts_with(|first: char| first.is_alphanumeric() || "./".contains(first)) {
        path
    } else {
        format!("./{path}")
    }
}

fn merge(name: &str, number: usize) -> String {
    format!("{}data:\n  merged{number}: 'yes'\n", config_map(name))
}

fn json6902(number: usize) -> String {
    format!("[{{\"op\": \"add\", \"path\": \"/data/json{number}\", \"value\": \"yes\"}}]\n")
}

fn replacement(name: &str, number: usize) -> String {
    format!(
        "source: {{kind: ConfigMap, name: {name}, fieldPath: metadata.name}}\ntargets:\n- select: {{kind: ConfigMap, name: {name}}}\n  fieldPaths: [data.replaced{number}]\n  options: {{create: true}}\n"
    )
}

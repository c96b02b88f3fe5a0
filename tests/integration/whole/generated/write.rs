//! From random choices to files, links, repositories and what a server serves.

use std::collections::BTreeMap;

use git_kustomize_localize::seams::kustomization::FILE_NAMES;
use git_kustomize_localize::seams::tree::{join, parent, relative};
use serde_json::{Value, json};

use crate::support::{Random, Repo, World, config_map, deployment};
use crate::whole::yaml::{Writer as YamlWriter, Yaml, extend, nested, plugin};

/// How many repositories there are.
const REPOSITORIES: usize = 3;
/// What they are called after `https://github.com/`.
const OWNER: &str = "acme";
/// How deep roots are nested below the target.
const DEPTH: usize = 3;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map-NUMBER}\n";
const MERGE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: BASE}\ndata:\n  mergedNUMBER: 'yes'\n";
const JSON6902: &str = "[{\"op\": \"add\", \"path\": \"/data/jsonNUMBER\", \"value\": \"yes\"}]\n";
const REPLACEMENT: &str = "source: {kind: ConfigMap, name: BASE, fieldPath: metadata.name}\ntargets:\n- select: {kind: ConfigMap, name: BASE}\n  fieldPaths: [data.replacedNUMBER]\n  options: {create: true}\n";
const PATCH: &str = "- op: add\n  path: /metadata/annotations\n  value: {patched: nNUMBER}\n";
const CRD: &str = "{\"example.com/v1.CustomNUMBER\": {\"Schema\": {\"properties\": {}}}}";
const PREFIXED: &str = "namePrefix:\n- path: spec/prefixedNUMBER\n  kind: Custom\n";
const ADDED: &str = "targets:\n- selector: {kind: ConfigMap}\n  fieldPath: data/addedNUMBER\n";
const TEXT: &str = "text NUMBER\r\nand more\n";
const VARIABLES: &str = "ANUMBER=1\r\nB=a b\n";

/// Fields of a kustomization that name a file, and what is in it.
const FILES: [(&str, &str); 15] = [
    ("resources[]", MAP),
    ("bases[]", MAP),
    ("crds[]", CRD),
    ("configurations[]", PREFIXED),
    ("openapi.path", "{\"definitions\": {}}\n"),
    ("patches[].path", PATCH),
    ("patchesStrategicMerge[]", MERGE),
    ("patchesJson6902[].path", JSON6902),
    ("replacements[].path", REPLACEMENT),
    ("configMapGenerator[].files[]", TEXT),
    ("configMapGenerator[].envs[]", VARIABLES),
    ("configMapGenerator[].env", VARIABLES),
    ("secretGenerator[].files[]", TEXT),
    ("secretGenerator[].envs[]", VARIABLES),
    ("secretGenerator[].env", VARIABLES),
];

/// The first of these that is a generator's.
const GENERATORS_FROM: usize = 9;

/// Lists of plugin configurations, some twice as often as others, and what their plugins name.
const PLUGINS: [(&str, &[(&str, &str)]); 5] =
    [GENERATORS, GENERATORS, TRANSFORMERS, TRANSFORMERS, ("validators", &[("PatchTransformer.path", PATCH)])];
const GENERATORS: (&str, &[(&str, &str)]) = (
    "generators",
    &[
        ("ConfigMapGenerator.files[]", TEXT),
        ("ConfigMapGenerator.envs[]", VARIABLES),
        // No build reads it, but it looks like something that is read.
        ("ConfigMapGenerator.env", VARIABLES),
        ("SecretGenerator.files[]", TEXT),
        ("SecretGenerator.envs[]", VARIABLES),
        ("SecretGenerator.env", VARIABLES),
    ],
);
const TRANSFORMERS: (&str, &[(&str, &str)]) = (
    "transformers",
    &[
        ("PatchTransformer.path", PATCH),
        ("PatchJson6902Transformer.path", JSON6902),
        ("PatchStrategicMergeTransformer.paths[]", MERGE),
        ("ReplacementTransformer.replacements[].path", REPLACEMENT),
        ("ValueAddTransformer.targetFilePath", ADDED),
    ],
);

const DIRECTORIES: [&str; 12] =
    ["", "", "files", "mit leer", "ünï", "a'b", "x [1]", "#hash & co", "localized", "a.git", "_git", "c:d"];
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
const REMOTE_NAMES: [&str; 12] =
    ["app", "x+y", "v1.2", "~r", "x_y", "Base", "base", "BASE", "a,b", "a'b", "aux", "x@y"];

const HOSTS: [&str; 3] = ["files.example.com", "files.example.com:8443", "raw.example.org"];
const QUERIES: [&str; 5] = ["", "", "?one", "?two", "?x&y"];
const VERSIONS: [&str; 8] = [
    "?ref=v1",
    "?ref=v1",
    "?ref=release/one",
    "?ref=main",
    "?version=v1&timeout=60",
    "?ref=v1&submodules=false",
    "?ref=release%2Fone",
    "",
];

/// Where a root lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the repository of the user.
    Work,
    /// In the repository of this number.
    Upstream(usize),
}

/// Where some trees are written.
pub(super) struct Trees {
    pub(super) world: World,
    upstreams: Vec<Repo>,
    served: BTreeMap<String, String>,
}

impl Trees {
    pub(super) fn new() -> Trees {
        let world = World::new();
        world.sandbox.builds();
        let base = format!("file://{}/", world.sandbox.path("upstream").display());
        world.sandbox.pretend("git@github.com:", &base);
        let upstreams = (0..REPOSITORIES).map(|number| world.upstream(&format!("{OWNER}/r{number}.git")));
        Trees { upstreams: upstreams.collect(), served: BTreeMap::new(), world }
    }

    pub(super) fn repo(&self, place: Place) -> &Repo {
        match place {
            Place::Work => &self.world.work,
            Place::Upstream(number) => &self.upstreams[number],
        }
    }

    /// Returns all places.
    pub(super) fn places() -> impl Iterator<Item = Place> {
        [Place::Work].into_iter().chain((0..REPOSITORIES).map(Place::Upstream))
    }

    /// Commits what was written.
    pub(super) fn commit(&self) {
        self.world.work.commit("trees");
        for upstream in &self.upstreams {
            upstream.commit("trees");
            upstream.git(&["tag", "v1"]);
            upstream.git(&["branch", "release/one"]);
        }
    }
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
    pub(super) trees: &'a mut Trees,
    pub(super) random: &'a mut Random,
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
    fields: Value,
    /// The texts and variables that it names.
    named: Vec<(&'static str, String)>,
}

impl Writer<'_> {
    /// Writes the target and all that it leads to.
    pub(super) fn write(mut self) -> Written {
        let mut directory = self.tree.clone();
        for level in 0..self.random.below(4) {
            directory = join(&directory, &format!("l{level}"));
        }
        let target = join(&directory, "target");
        self.root(Place::Work, &target, DEPTH, json!({}));
        Written { target, scope: self.tree, covered: self.covered }
    }

    fn next(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    fn add(&mut self, place: Place, path: &str, text: &str) {
        self.trees.repo(place).write(path, text);
    }

    fn cover(&mut self, field: &str, how: &str) {
        self.covered.push(format!("{field} {how}"));
    }

    /// Writes a kustomization that begins with these fields, and all that it names.
    fn root(&mut self, place: Place, directory: &str, depth: usize, fields: Value) {
        let number = self.next();
        let mut root = Root { place, directory: directory.to_owned(), number, fields, named: Vec::new() };
        let objects = format!(
            "{}data: {{own: 'yes'}}\n---\n{}",
            config_map(&format!("base-{number}")),
            deployment(&format!("deployment-{number}"))
        );
        self.add(place, &join(directory, "base.yaml"), &objects);
        extend(&mut root.fields, json!({"resources": ["base.yaml"]}));
        for _ in 0..=self.random.below(4) {
            match (depth, self.random.below(10)) {
                (0, ..8) | (_, ..5) => self.file_field(&mut root),
                (0, _) | (_, 5..7) => self.plugins(&mut root),
                _ => self.root_field(&mut root, depth - 1),
            }
        }
        let name = self.random.one_of(&FILE_NAMES);
        let text = self.yaml(&root.fields);
        self.add(place, &join(directory, name), &text);
    }

    fn yaml(&mut self, value: &Value) -> String {
        let yaml = Yaml::from(value);
        if self.random.below(11) == 10 && !yaml.has_lines() {
            return serde_json::to_string_pretty(value).unwrap() + "\n";
        }
        let text = YamlWriter::usual(self.random).write(&yaml);
        match self.random.below(20) {
            18 => text.replace('\n', "\r\n"),
            14..18 => format!("# A comment.\n{text}"),
            _ => text,
        }
    }

    /// Puts a file somewhere, and returns what names it.
    fn put(&mut self, root: &Root, text: &str) -> (String, &'static str) {
        let number = self.next();
        // So that no two files meet.
        let name = format!("{}{number}", self.random.one_of(&NAMES));
        let within = |path: &str| join(&root.directory, path);
        match self.random.below(10) {
            ..4 => {
                let path = join(self.random.one_of(&DIRECTORIES), &name);
                self.add(root.place, &within(&path), text);
                let back = root.directory.rsplit('/').next().unwrap_or_default();
                let named = match self.random.below(8) {
                    1 => format!("./{path}"),
                    2 => format!("./nowhere/../{path}"),
                    3 => path.replace('/', "//"),
                    4 => format!("../{back}/{path}"),
                    _ => path,
                };
                (named, "local")
            }
            4 => {
                let real = format!("real/file{number}");
                self.add(root.place, &within(&real), text);
                self.trees.repo(root.place).symlink(&within(&name), &real);
                (name, "local")
            }
            5 => {
                self.add(root.place, &within(&name), text);
                // There is no absolute path in a remote root.
                match root.place {
                    Place::Work => {
                        let path = self.trees.world.work.path().join(within(&name));
                        (path.display().to_string(), "absolute")
                    }
                    Place::Upstream(_) => (name, "local"),
                }
            }
            _ => {
                let host = self.random.one_of(&HOSTS);
                let query = self.random.one_of(&QUERIES);
                let name = self.random.one_of(&HTTP_NAMES);
                let mut url = format!("https://{host}/{}/{name}{query}", self.tree);
                let served = &mut self.trees.served;
                if served.get(&url).is_some_and(|there| there != text) {
                    url = format!("https://{host}/{}/{number}/{name}{query}", self.tree);
                }
                served.insert(url.clone(), text.to_owned());
                self.trees.world.file(&url, text);
                (url, "http")
            }
        }
    }

    /// Puts what a field names somewhere, and returns the field with what has to stand beside it.
    fn named(&mut self, root: &mut Root, field: &str, content: &'static str) -> Value {
        let number = self.next().to_string();
        let base = format!("base-{}", root.number);
        let again = self.again(root, content).map(|path| (path, "again"));
        let text = content.replace("NUMBER", &number).replace("BASE", &base);
        let (mut path, how) = again.unwrap_or_else(|| self.put(root, &text));
        root.named.push((content, path.clone()));
        self.cover(field, how);
        if field.contains("StrategicMerge") {
            path = no_yaml(path);
        }
        if field.ends_with("files[]") && self.random.below(2) == 1 {
            path = format!("key{number}={path}");
        }
        nested(field, &path, &base, &format!("made-{number}"))
    }

    /// Chooses what a root names already, if that is what a field takes: people share it by an anchor.
    fn again(&mut self, root: &Root, content: &str) -> Option<String> {
        let fits = |known: &str| matches!((content, known), (TEXT, TEXT | VARIABLES) | (VARIABLES, VARIABLES));
        let paths: Vec<&str> =
            root.named.iter().filter(|(known, _)| fits(known)).map(|(_, path)| path.as_str()).collect();
        let is_again = !paths.is_empty() && self.random.below(3) > 0;
        is_again.then(|| self.random.one_of(&paths).to_owned())
    }

    fn file_field(&mut self, root: &mut Root) {
        // What is named already is named again by a generator.
        let is_again = !root.named.is_empty() && self.random.below(2) == 1;
        let fields = if is_again { &FILES[GENERATORS_FROM..] } else { &FILES[..] };
        let (field, content) = fields[self.random.below(fields.len())];
        if field == "openapi.path" && root.fields.get("openapi").is_some() {
            return;
        }
        let fields = self.named(root, field, content);
        if let Some(generators) = fields.get("configMapGenerator").filter(|_| self.random.below(3) == 0) {
            extend(&mut root.fields, json!({"secretGenerator": generators}));
            self.cover(&field.replace("configMap", "secret"), "again");
        }
        extend(&mut root.fields, fields);
    }

    /// Finds a place for another root. Returns where it lies, and what names it.
    fn room(&mut self, root: &Root) -> (Place, String, String, &'static str) {
        let number = self.next();
        match self.random.below(7) {
            ..3 => {
                let mut directory = root.directory.clone();
                for _ in 0..self.random.below(4) {
                    if directory != self.tree && !directory.is_empty() {
                        directory = parent(&directory).to_owned();
                    }
                }
                let name = match root.place {
                    Place::Work => self.random.one_of(&ROOT_NAMES),
                    Place::Upstream(_) => self.random.one_of(&REMOTE_NAMES),
                };
                let to = join(&directory, &format!("{name}-{number}"));
                let text = relative(&root.directory, &to);
                let text = match self.random.below(8) {
                    1 => format!("./{text}"),
                    2 => format!("{text}/"),
                    3 => format!("./nowhere/../{text}/."),
                    _ => text,
                };
                (root.place, to, text, "directory")
            }
            3 => {
                let to = join(&self.tree, &format!("linked/real-{number}"));
                let link = format!("link-{number}");
                let text = relative(&root.directory, &to);
                let path = join(&root.directory, &link);
                self.trees.repo(root.place).symlink(&path, &text);
                (root.place, to, link, "directory")
            }
            _ => {
                let repository = self.random.below(REPOSITORIES);
                let name = self.random.one_of(&REMOTE_NAMES);
                let to = join(&self.tree, &format!("{name}-{number}"));
                let version = self.random.one_of(&VERSIONS);
                let spec = format!("github.com/{OWNER}/r{repository}");
                let upstream = self.trees.world.sandbox.path("upstream");
                let text = match self.random.below(8) {
                    1 => format!("https://{spec}.git/{to}{version}"),
                    2 => format!("{spec}/{to}{version}"),
                    3 => format!("git::https://{spec}//{to}{version}"),
                    4 => format!("git@github.com:{OWNER}/r{repository}//{to}{version}"),
                    5 => format!("https://{spec}/{to}/{version}"),
                    // Only what lies on this machine may name its files.
                    6 if root.place == Place::Work => {
                        let repository = format!("{OWNER}/r{repository}.git");
                        format!("file://{}/{repository}//{to}{version}", upstream.display())
                    }
                    _ => format!("https://{spec}//{to}{version}"),
                };
                (Place::Upstream(repository), to, text, "git")
            }
        }
    }

    fn root_field(&mut self, root: &mut Root, depth: usize) {
        let fields = ["resources", "components", "bases", "resources", "components"];
        let field = self.random.one_of(&fields);
        let (place, directory, text, how) = self.room(root);
        let beginning = match field {
            "components" => {
                json!({"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"})
            }
            _ => json!({}),
        };
        self.root(place, &directory, depth, beginning);
        extend(&mut root.fields, json!({field: [text]}));
        self.cover(&format!("{field}[]"), how);
    }

    fn plugins(&mut self, root: &mut Root) {
        let (list, plugins) = PLUGINS[self.random.below(PLUGINS.len())];
        let mut documents = Vec::new();
        for _ in 0..=self.random.below(2) {
            let (field, content) = plugins[self.random.below(plugins.len())];
            let (kind, _) = field.split_once('.').unwrap();
            let mut fields = self.named(root, field, content);
            if list == "validators" {
                fields["target"] = json!({"kind": "Nothing"});
            }
            let configuration = plugin(kind, &format!("plugin-{}", self.count), fields);
            documents.push(self.yaml(&configuration));
        }
        let text = documents.join("---\n");
        let (entry, how) = match self.random.below(3) {
            0 if !text.contains('\r') => (text, "inline"),
            1 => {
                let (entry, how) = self.put(root, &text);
                (no_yaml(entry), how)
            }
            _ => {
                let (place, directory, entry, how) = self.room(root);
                let kustomization = join(&directory, "kustomization.yaml");
                self.add(place, &kustomization, "resources: [plugins.yaml]\n");
                self.add(place, &join(&directory, "plugins.yaml"), &text);
                (entry, how)
            }
        };
        extend(&mut root.fields, json!({list: [entry]}));
        self.cover(&format!("{list}[]"), how);
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

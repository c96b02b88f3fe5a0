//! Which fields of the objects that a kustomization reads it may write: by patches, replacements, transformers, and
//! configurations of transformers. What cannot be read here may be anything.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::scan;
use crate::kustomization::{documents, is_same_key, read_object};

/// A field of objects of one kind, with all that is below it, as kustomize calls it.
#[derive(Debug)]
pub(super) struct FieldSpec {
    /// The kind; anything but letters and digits may be any.
    kind: String,
    path: Vec<String>,
}

/// The kind of the objects of Flux that name a directory.
pub(super) const KUSTOMIZATION: &str = "Kustomization";

/// A name of a field that may be any.
const ANY: &str = "*";

/// Returns the file that a kustomization names, if it can be read here.
pub(super) type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What may be written of the objects that say what is deployed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// The kinds of which something else may be deployed then.
    pub kinds: BTreeSet<&'static str>,
    /// Where objects of Flux may be built in another way: the kinds of which these builds may change objects so that
    /// something else is deployed.
    pub below: Option<BTreeSet<&'static str>>,
    /// Whether variables are filled in.
    pub variables: bool,
}

impl Written {
    /// Returns all that there is.
    pub(super) fn all() -> Written {
        Written { kinds: scan::kinds().collect(), below: Some(scan::kinds().collect()), variables: true }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.kinds.is_empty() && self.below.is_none() && !self.variables
    }

    pub(super) fn join(&mut self, other: Written) {
        self.kinds.extend(other.kinds);
        if let Some(below) = other.below {
            self.below.get_or_insert_default().extend(below);
        }
        self.variables |= other.variables;
    }
}

/// Returns what a kustomization may write.
pub(super) fn written(kustomization: &Json, read: Read<'_>) -> Written {
    let mut reader = Reader { read, found: Vec::new(), below: None };
    if reader.kustomization(kustomization).is_none() {
        reader.any("");
    }
    reader.written()
}

impl FieldSpec {
    /// Returns whether it is, holds, or lies in one of some fields of objects of a kind.
    fn writes(&self, kind: &str, mut fields: impl Iterator<Item = &'static str>) -> bool {
        let is_same = |(own, other): (&String, &str)| own == ANY || own.eq_ignore_ascii_case(other);
        is_of(&self.kind, kind) && fields.any(|path| self.path.iter().zip(path.split('.')).all(is_same))
    }
}

/// Returns whether a pattern of kinds may match one.
fn is_of(pattern: &str, kind: &str) -> bool {
    !is_plain(pattern) || pattern == kind
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Returns a field of what kustomize reads as it does: in any case.
fn field<'a>(json: &'a Json, name: &str) -> Option<&'a Json> {
    let mut fields = json.as_object()?.iter();
    fields.find(|(key, value)| is_same_key(name, key) && !value.is_null()).map(|(_, value)| value)
}

/// Returns a text of what kustomize reads; empty where there is none.
pub(super) fn text<'a>(json: &'a Json, name: &str) -> &'a str {
    field(json, name).and_then(Json::as_str).unwrap_or_default()
}

/// Returns the items of a list; what is none is one.
fn items<'a>(json: &'a Json, name: &str) -> impl Iterator<Item = &'a Json> {
    let fields = json.as_object().into_iter().flatten();
    let values = fields.filter(move |(key, value)| is_same_key(name, key) && !value.is_null());
    values.flat_map(|(_, value)| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice))
}

/// Returns whether kustomize takes two keys of a mapping for the same.
fn is_ambiguous(json: &Json) -> bool {
    let keys: Vec<&String> = json.as_object().into_iter().flat_map(Map::keys).collect();
    let is_twice = |(at, key): (usize, &&String)| keys[..at].iter().any(|other| is_same_key(other, key));
    let items = json.as_array().into_iter().flatten();
    let mut values = json.as_object().into_iter().flat_map(Map::values).chain(items);
    keys.iter().enumerate().any(is_twice) || values.any(is_ambiguous)
}

/// Returns the documents of a text that are not empty; none where one is not plain YAML.
fn parsed(text: &str) -> Option<Vec<Json>> {
    let all = documents(text).filter_map(|(before, one)| read_object(one, before).transpose());
    all.map(|one| Some(one.ok()?.json()).filter(|one| !is_ambiguous(one))).collect()
}

/// What collects the fields. Each of its methods returns none where something cannot be read.
struct Reader<'a> {
    read: Read<'a>,
    found: Vec<FieldSpec>,
    /// What patches that it writes into objects of Flux write in turn.
    below: Option<Vec<FieldSpec>>,
}

impl Reader<'_> {
    /// Returns what the fields come to. What is built in another way that is not known may write anything.
    fn written(self) -> Written {
        const SAME: [&str; 3] = ["spec.buildMetadata", "spec.images", "spec.postBuild"];
        let is_how = |field: &&str| scan::OVERRIDES.contains(field);
        let writes = |kind: &str, fields: &dyn Fn(&&str) -> bool| {
            self.found.iter().any(|one| one.writes(kind, scan::deciding(kind).filter(fields)))
        };
        let in_turn = |kind: &str| self.below.iter().flatten().any(|one| one.writes(kind, scan::deciding(kind)));
        let is_any = writes(KUSTOMIZATION, &|field| is_how(field) && !SAME.contains(field));
        let below = self.below.is_some() || writes(KUSTOMIZATION, &|field| is_how(field));
        Written {
            variables: false,
            kinds: scan::kinds().filter(|kind| writes(kind, &|field| !is_how(field))).collect(),
            below: below.then(|| scan::kinds().filter(|kind| is_any || in_turn(kind)).collect()),
        }
    }

    /// Reads patches that a patch writes into objects of Flux, which apply them to what they deploy.
    fn in_turn(&mut self, patches: &Json) {
        let mut reader = Reader { read: &|_| None, found: Vec::new(), below: None };
        let list = patches.as_array().into_iter().flatten();
        if !patches.is_array() || is_ambiguous(patches) || list.map(|one| reader.patch(one)).any(|read| read.is_none())
        {
            reader.any("");
        }
        // Nobody follows how these build objects in turn.
        if reader.below.is_some() {
            reader.any(KUSTOMIZATION);
        }
        self.below.get_or_insert_default().extend(reader.found);
    }

    fn add<'a>(&mut self, kind: &str, path: impl IntoIterator<Item = &'a str>) {
        let path = path.into_iter().map(|name| if is_plain(name) { name } else { ANY }.to_owned());
        self.found.push(FieldSpec { kind: kind.to_owned(), path: path.collect() });
    }

    /// Adds all of the objects of a kind.
    fn any(&mut self, kind: &str) {
        self.add(kind, []);
    }

    fn file(&self, path: &str) -> Option<Vec<Json>> {
        parsed(&(self.read)(path)?)
    }

    fn kustomization(&mut self, json: &Json) -> Option<()> {
        if is_ambiguous(json) || items(json, "crds").next().is_some() {
            return None;
        }
        items(json, "patches").chain(items(json, "patchesJson6902")).try_for_each(|one| self.patch(one))?;
        items(json, "patchesStrategicMerge").try_for_each(|one| self.merges(one))?;
        items(json, "replacements").try_for_each(|one| self.replacement(one))?;
        items(json, "labels").flat_map(|one| items(one, "fields")).try_for_each(|one| self.spec(one))?;
        items(json, "transformers").try_for_each(|one| self.transformers(one))?;
        items(json, "configurations").try_for_each(|one| {
            let all = self.file(one.as_str()?)?;
            let lists = all.iter().flat_map(|one| one.as_object().into_iter().flatten());
            lists.flat_map(|(_, list)| list.as_array().into_iter().flatten()).try_for_each(|one| self.specs(one))
        })
    }

    /// Reads an entry of a configuration of transformers: a field, or one with fields that name it.
    fn specs(&mut self, one: &Json) -> Option<()> {
        match field(one, "fieldSpecs") {
            Some(_) => items(one, "fieldSpecs").try_for_each(|one| self.spec(one)),
            None => self.spec(one),
        }
    }

    fn spec(&mut self, one: &Json) -> Option<()> {
        let path = Some(text(one, "path")).filter(|path| !path.is_empty())?;
        self.add(text(one, "kind"), path.split('/').map(|name| name.trim_end_matches("[]")));
        Some(())
    }

    /// Reads a patch with its `target`: inline, or in a file.
    fn patch(&mut self, one: &Json) -> Option<()> {
        let target = field(one, "target").map(|target| text(target, "kind"));
        if target.is_some_and(|kind| is_plain(kind) && !scan::is_known(kind) && !kind.ends_with("List")) {
            return Some(());
        }
        // A name or a kind may change.
        if field(one, "options").is_some_and(|options| options.to_string().contains("true")) {
            self.any(target.unwrap_or_default());
        }
        match (field(one, "patch"), text(one, "path")) {
            (Some(Json::String(text)), "") => self.documents(&parsed(text)?, target),
            (None, path) => self.documents(&self.file(path)?, target),
            // Flux takes operations as they are.
            (Some(inline), _) => self.documents(std::slice::from_ref(inline), target),
        }
    }

    /// Reads an entry of `patchesStrategicMerge`: patches, or a file with such.
    fn merges(&mut self, one: &Json) -> Option<()> {
        let inline = match one {
            Json::String(text) => parsed(text).filter(|all| all.iter().all(Json::is_object)),
            _ => Some(vec![one.clone()]),
        };
        self.documents(&inline.or_else(|| self.file(one.as_str()?))?, None)
    }

    fn documents(&mut self, all: &[Json], target: Option<&str>) -> Option<()> {
        all.iter().try_for_each(|one| match one {
            Json::Array(operations) => operations.iter().try_for_each(|one| self.operation(one, target?)),
            Json::Object(fields) => {
                let kind = one["kind"].as_str().filter(|kind| !kind.ends_with("List"))?;
                self.merge(fields, target.unwrap_or(kind), &mut Vec::new())
            }
            _ => None,
        })
    }

    /// Reads an operation of a JSON patch.
    fn operation(&mut self, one: &Json, kind: &str) -> Option<()> {
        let pointers: &[&str] = match one["op"].as_str()? {
            "test" => &[],
            "add" | "remove" | "replace" | "copy" => &["path"],
            "move" => &["path", "from"],
            _ => return None,
        };
        pointers.iter().try_for_each(|key| {
            let names = one[*key].as_str()?.strip_prefix('/')?.split('/');
            let names: Vec<String> = names.map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
            self.add(kind, names.iter().map(String::as_str));
            Some(())
        })
    }

    /// Reads a strategic merge at a path. What names its object changes nothing.
    fn merge<'a>(&mut self, fields: &'a Map<String, Json>, kind: &str, path: &mut Vec<&'a str>) -> Option<()> {
        for (key, value) in fields {
            match (&path[..], key.as_str(), value) {
                ([], "apiVersion" | "kind", _) | (["metadata"], "name" | "namespace", _) => {}
                // It is for kustomize.
                (["metadata", "annotations"], key, _) if key.contains("config.kubernetes.io/") => return None,
                (_, key, _) if key.starts_with('$') => self.add(kind, path.iter().copied()),
                (["spec"], "patches", patches) if kind == KUSTOMIZATION => self.in_turn(patches),
                (_, _, Json::Object(inner)) if !inner.is_empty() => {
                    path.push(key);
                    self.merge(inner, kind, path)?;
                    path.pop();
                }
                _ => self.add(kind, path.iter().copied().chain([key.as_str()])),
            }
        }
        Some(())
    }

    fn replacement(&mut self, one: &Json) -> Option<()> {
        let path = text(one, "path");
        let all = if path.is_empty() { vec![one.clone()] } else { self.file(path)? };
        let all = all.iter().flat_map(|one| one.as_array().map_or(std::slice::from_ref(one), Vec::as_slice));
        for target in all.flat_map(|one| items(one, "targets")) {
            let kind = field(target, "select").map_or("", |select| text(select, "kind"));
            if field(target, "fieldPaths").is_none() {
                self.add(kind, ["metadata", "name"]);
            }
            for path in items(target, "fieldPaths") {
                self.add(kind, path.as_str()?.split('.'));
            }
        }
        Some(())
    }

    /// Reads an entry of `transformers`: configurations, or a file with such.
    fn transformers(&mut self, one: &Json) -> Option<()> {
        let text = one.as_str()?;
        let inline = parsed(text).filter(|all| all.iter().all(Json::is_object));
        inline.or_else(|| self.file(text))?.iter().try_for_each(|one| self.transformer(one))
    }

    fn transformer(&mut self, one: &Json) -> Option<()> {
        let metadata = field(one, "metadata")?.as_object()?;
        // Others run something.
        if one["apiVersion"] != "builtin" || metadata.keys().any(|key| key != "name") {
            return None;
        }
        match one["kind"].as_str()? {
            "PatchTransformer" => self.patch(one),
            "ReplacementTransformer" => items(one, "replacements").try_for_each(|one| self.replacement(one)),
            "AnnotationsTransformer" | "ImageTagTransformer" | "LabelTransformer" | "ReplicaCountTransformer" => {
                items(one, "fieldSpecs").try_for_each(|one| self.spec(one))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that the kustomizations below name.
    fn read(path: &str) -> Option<String> {
        let text = match path {
            "interval.yaml" => "kind: Kustomization\nmetadata: {name: x}\nspec: {interval: 1h}\n",
            "path.yaml" => "kind: Kustomization\nmetadata: {name: x}\nspec: {path: y}\n",
            "both.yaml" => "kind: Deployment\nspec: {path: y}\n---\nkind: GitRepository\nspec: {url: y}\n",
            "json.yaml" => "- {op: add, path: /spec/path, value: y}\n",
            "replacement.yaml" => "- targets: [{select: {kind: Kustomization}, fieldPaths: [spec.path]}]\n",
            "one.yaml" => "targets: [{select: {kind: Kustomization}, fieldPaths: [spec.interval]}]\n",
            "config.yaml" => "namePrefix: [{path: spec/path, kind: Kustomization}]\n",
            "usual.yaml" => {
                "nameReference: [{kind: ConfigMap, fieldSpecs: [{path: spec/valuesFrom/name, kind: HelmRelease}]}]\n"
            }
            "vars.yaml" => "varReference:\n- path: spec/sources[]/path\n  kind: Application\n",
            "reference.yaml" => "nameReference: [{kind: GitRepository, fieldSpecs: [{path: spec/sourceRef/name}]}]\n",
            "alias.yaml" => "spec: &a {path: y}\nkind: Kustomization\n",
            "merge.yaml" => "kind: Kustomization\nspec:\n  <<: {path: y}\n",
            "label.yaml" => "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: x}\nlabels: {a: b}\n",
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn written(text: &str) -> Written {
        let value = read_object(text, 0).unwrap().unwrap();
        super::written(&value.json(), &read)
    }

    /// Returns the kinds that a kustomization may change.
    fn kinds(text: &str) -> Vec<&'static str> {
        let kinds = written(text).kinds;
        scan::kinds().filter(|kind| kinds.contains(kind)).collect()
    }

    /// Returns the kinds of which what objects of Flux build may be changed.
    fn below(text: &str) -> Option<Vec<&'static str>> {
        written(text).below.map(Vec::from_iter)
    }

    #[test]
    fn what_says_nothing_of_what_is_deployed_changes_nothing() {
        let patch = |patch: &str| format!("patches: [{{target: {{kind: Kustomization}}, patch: '{patch}'}}]");
        for text in [
            "namePrefix: a-\nimages: [{name: a, newTag: b}]\nlabels: [{pairs: {a: b}}]\nnamespace: x",
            "patches: [{path: interval.yaml}]",
            "patchesStrategicMerge: [interval.yaml]",
            "patchesStrategicMerge: ['{kind: Kustomization, metadata: {name: x, namespace: y}, spec: {prune: true}}']",
            "patches: [{target: {kind: Deployment}, path: not-here.yaml}]",
            "patchesJson6902: [{target: {kind: Deployment}, path: json.yaml}]",
            &patch(
                "{apiVersion: x, kind: Kustomization, metadata: {name: other}, spec: {decryption: {provider: sops}}}",
            ),
            &patch("{kind: Kustomization, spec: {postBuild: {substitute: {path: x, sourceRef: y}}}}"),
            &patch("[{op: add, path: /spec/wait, value: {}}, {op: test, path: /spec/path, value: x}]"),
            &patch("[{op: add, path: /metadata/annotations/a~1spec~1path, value: x}]"),
            &patch("[{op: copy, from: /spec/path, path: /metadata/labels/path}]"),
            "replacements: [{path: one.yaml}]",
            "replacements: [{source: {kind: ConfigMap}, targets: [{select: {kind: Deployment}}]}]",
            "replacements: [{targets: [{select: {}, fieldPaths: ['spec.other.[a=b].path']}]}]",
            "labels: [{pairs: {a: b}, fields: [{path: spec/path, kind: HelmRelease, create: true}]}]",
            "transformers: [label.yaml]",
            "transformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, target: {kind: Service}, patch: x}']",
            "generators: [x.yaml]\nhelmCharts: [{name: x}]\nreplicas: [{name: path, count: 1}]",
        ] {
            assert_eq!(kinds(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_may_write_what_is_deployed_changes_its_kind() {
        let patch = |patch: &str| format!("patches: [{{target: {{kind: Kustomization}}, patch: '{patch}'}}]");
        for text in [
            "patches: [{path: path.yaml}]",
            "Patches: [{Path: path.yaml}]",
            "patchesStrategicMerge: [path.yaml]",
            "patchesStrategicMerge: ['{kind: Kustomization, spec: {path: ~}}']",
            "patchesStrategicMerge: [{kind: Kustomization, spec: {path: x}}]",
            "patchesStrategicMerge: ['{kind: Kustomization, spec: ~}']",
            &patch("{kind: Kustomization, spec: {interval: 1h, sourceRef: {name: x}}}"),
            &patch("{kind: Kustomization, spec: {components: [x]}}"),
            &patch("{kind: Kustomization, $patch: delete}"),
            &patch("{kind: Kustomization, spec: {$patch: replace, interval: 1h}}"),
            &patch("{kind: Kustomization, spec: {$retainKeys: [interval]}}"),
            &patch("[{op: replace, path: /spec/path, value: x}]"),
            &patch("[{\"op\": \"replace\", \"path\": \"\\u002fspec\\u002fpath\", \"value\": \"x\"}]"),
            &patch("[{op: remove, path: /spec}]"),
            &patch("[{op: move, from: /spec/path, path: /spec/other}]"),
            &patch("[{op: add, path: /metadata/name, value: x}]"),
            &patch("[{op: add, path: /spec/components/-, value: x}]"),
            &patch("[{op: add, path: /spec/sourceRef/na~0me, value: x}]").replace("na~0me", "name"),
            "patchesJson6902: [{target: {kind: Kustomization}, path: json.yaml}]",
            // As Flux writes them.
            "patchesJson6902: [{target: {kind: Kustomization}, patch: [{op: add, path: /spec/path, value: x}]}]",
            "replacements: [{path: replacement.yaml}]",
            "replacements: [{targets: [{select: {kind: Kustomization}}]}]",
            "replacements: [{targets: [{select: {kind: Kustomization}, fieldPaths: [spec.other, spec.sourceRef.name], options: {create: true}}]}]",
            "replacements: [{targets: [{select: {kind: Kustomization}, fieldPaths: ['spec.*']}]}]",
            "replacements: [{targets: [{select: {kind: Kustomization}, fieldPaths: ['spec\\.path']}]}]",
            "configurations: [config.yaml]",
            "labels: [{pairs: {a: b}, fields: [{path: spec/components, kind: Kustomization}]}]",
            "transformers: ['{apiVersion: builtin, kind: LabelTransformer, metadata: {name: x}, fieldSpecs: [{path: spec, kind: Kustomization}]}']",
            "transformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, target: {kind: Kustomization}, path: json.yaml}']",
        ] {
            assert_eq!(kinds(text), ["Kustomization"], "{text}");
        }
        for (text, expected) in [
            ("patches: [{path: both.yaml}]", &["GitRepository"][..]),
            ("configurations: [vars.yaml]", &["Application"]),
            ("configurations: [usual.yaml]", &["HelmRelease"]),
            ("configurations: [reference.yaml]", &["Kustomization"]),
            (
                "replacements: [{targets: [{select: {kind: GitRepository}, fieldPaths: [spec.ref.branch]}]}]",
                &["GitRepository"],
            ),
            (
                "patches: [{target: {kind: ApplicationSet}, patch: '[{op: add, path: /spec/template/spec/source/path, value: x}]'}]",
                &["ApplicationSet"],
            ),
            (
                "patches: [{target: {kind: ApplicationSet}, patch: '[{op: add, path: /spec/template/spec/syncPolicy, value: x}]'}]",
                &[],
            ),
            // Those with a `path`.
            ("patches: [{target: {name: x}, patch: '[{op: add, path: /spec/path, value: x}]'}]", &["Kustomization"]),
            (
                "patches: [{target: {kind: Kust.*}, patch: '[{op: add, path: /spec/url, value: x}]'}]",
                &["GitRepository", "OCIRepository"],
            ),
        ] {
            assert_eq!(kinds(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_built_in_another_way_writes_what_its_patches_do() {
        let patch = |patch: &str| format!("patches: [{{target: {{kind: Kustomization}}, patch: '{patch}'}}]");
        let nested = |inner: &str| patch(&format!("{{kind: Kustomization, spec: {{patches: [{inner}]}}}}"));
        let all: Vec<&str> = written("crds: [x]").kinds.into_iter().collect();
        for (text, expected) in [
            ("namePrefix: x".to_owned(), None),
            (patch("{kind: Kustomization, spec: {interval: 1h}}"), None),
            (patch("{kind: Kustomization, spec: {images: [{name: a}]}}"), Some(vec![])),
            (patch("[{op: add, path: /spec/images, value: []}]"), Some(vec![])),
            (patch("{kind: Kustomization, spec: {postBuild: {substituteFrom: [{name: x}]}}}"), Some(vec![])),
            (patch("{kind: Kustomization, spec: {postBuild: {substitute: {a: b}}}}"), Some(vec![])),
            (nested(""), Some(vec![])),
            (nested("{target: {kind: HelmRelease}, patch: \"{kind: HelmRelease, spec: {path: x}}\"}"), Some(vec![])),
            (nested("{patch: \"{kind: HelmRelease, spec: {interval: 1h}}\"}"), Some(vec![])),
            (nested("{patch: \"{kind: GitRepository, spec: {url: x}}\"}"), Some(vec!["GitRepository"])),
            (nested("{patch: \"{kind: Kustomization, spec: {interval: 1h}}\"}"), Some(vec![])),
            (nested("{patch: \"{kind: Kustomization, spec: {path: x}}\"}"), Some(vec!["Kustomization"])),
            // Deeper down nobody follows.
            (nested("{patch: \"{kind: Kustomization, spec: {patches: []}}\"}"), Some(vec!["Kustomization"])),
            (
                nested("{target: {kind: Kustomization}, patch: [{op: add, path: /spec/path}]}"),
                Some(vec!["Kustomization"]),
            ),
            // What cannot be read, or is written in another way, may write anything.
            (nested("{path: x.yaml}"), Some(all.clone())),
            (nested("{patch: \"{{ template }}\"}"), Some(all.clone())),
            (nested("x"), Some(all.clone())),
            (patch("{kind: Kustomization, spec: {patches: ~}}"), Some(all.clone())),
            (patch("{kind: Kustomization, spec: {patches: {a: b}}}"), Some(all.clone())),
            (patch("{kind: Kustomization, spec: {namePrefix: x}}"), Some(all.clone())),
            (patch("{kind: Kustomization, spec: {patchesStrategicMerge: [x]}}"), Some(all.clone())),
            (patch("[{op: add, path: /spec/patches/-, value: {}}]"), Some(all.clone())),
            ("patches: [{target: {kind: K.*}, patch: '{kind: K, spec: {patches: []}}'}]".to_owned(), Some(all.clone())),
        ] {
            assert_eq!(below(&text), expected, "{text}");
            assert_eq!(kinds(&text), [""; 0], "{text}");
        }
        assert_eq!(below("crds: [x]"), Some(all));
    }

    #[test]
    fn what_cannot_be_read_may_change_anything() {
        let all: Vec<&str> = scan::kinds().collect();
        let patch = |patch: &str| format!("patches: [{{target: {{kind: Kustomization}}, patch: '{patch}'}}]");
        for text in [
            "patches: [{path: not-here.yaml}]",
            "patches: [{path: merge.yaml}]",
            "patches: [{target: {kind: Deployment}, Target: {kind: Kustomization}, path: path.yaml}]",
            "patches: [{patch: '[{op: add, path: /spec/interval, value: x}]'}]",
            "patches: [{patch: '{metadata: {name: x}}'}]",
            "patches: {a: b}",
            "patchesStrategicMerge: ['{kind: KustomizationList, items: [{kind: Kustomization, spec: {path: x}}]}']",
            &patch("[{op: add, path: x/spec/path, value: x}]"),
            &patch("[{op: add, path: \"\", value: x}]"),
            &patch("[{op: unknown, path: /spec/interval}]"),
            &patch(
                "{kind: Kustomization, metadata: {annotations: {internal.config.kubernetes.io/allowNameChange: allowed}}}",
            ),
            &patch("{{ template }}"),
            "patches: [{target: {kind: ''}, options: {allowNameChange: true}, path: interval.yaml}]",
            "replacements: [{path: not-here.yaml}]",
            "transformers: [directory]",
            "transformers: ['{apiVersion: x/v1, kind: LabelTransformer, metadata: {name: x}}']",
            "transformers: ['{apiVersion: builtin, kind: LabelTransformer, metadata: {name: x, annotations: {config.kubernetes.io/function: x}}}']",
            "transformers: ['{apiVersion: builtin, kind: NamespaceTransformer, metadata: {name: x, namespace: y}}']",
            "configurations: [not-here.yaml]",
            "crds: [x.yaml]",
        ] {
            assert_eq!(kinds(text), all, "{text}");
        }
        assert_eq!(kinds("patches: [{path: alias.yaml}]"), ["Kustomization"]);
        let one = "patches: [{target: {kind: Kustomization}, options: {allowKindChange: true}, path: interval.yaml}]";
        assert_eq!(kinds(one), ["Kustomization"]);
    }
}

//! The variables that Flux fills in after a build (fluxcd/pkg, `kustomize/kustomize_varsub.go`, drone/envsubst), as far
//! as their values are certain: `${NAME}`, also with a default. Others stay as written.

use std::collections::{BTreeMap, BTreeSet};

use super::CONTROLLER;
pub(crate) use super::models::POST_BUILD;
use super::models::{Instance, Marked, Operation, Patched, PostBuild};
use crate::kustomization::{FILE_NAMES, Value, documents, read_object};
use crate::targets::engine_versions::Workload;
use crate::targets::scan::Spec;
use crate::targets::{EngineName, Installed};
use crate::tree::{Tree, path};

/// How far a variable is looked at, in bytes.
const LONGEST: usize = 1000;

/// A part of the label or annotation of each object in which Flux fills in nothing.
const DISABLED: &str = "/substitute";

/// The variables of an object of Flux.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Variables {
    /// The values in the object itself, which take precedence over those of others.
    own: BTreeMap<String, String>,
    /// The names of the objects that say more.
    from: Vec<String>,
    /// Whether Flux looks for variables even if it knows none.
    always: bool,
    /// Whether Flux takes one that nothing sets for empty.
    may_be_unset: bool,
}

/// The output of a build with the variables filled in.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    pub text: Vec<u8>,
    /// The variables that nothing sets, and that have no default: Flux 2.9 fails.
    pub unset: BTreeSet<String>,
}

impl Variables {
    pub(super) fn of(spec: &PostBuild) -> Variables {
        // Flux removes line breaks from values.
        let own = spec.substitute.iter().map(|(name, value)| (name.clone(), value.replace('\n', "")));
        let from = spec.substitute_from.iter().map(|reference| reference.name.clone());
        Variables {
            own: own.collect(),
            from: from.collect(),
            always: spec.substitute_strategy == "Always",
            may_be_unset: false,
        }
    }

    /// Treats variables without a value as empty, as Flux did before it failed for them.
    pub(in crate::targets) fn allow_unset(&mut self) {
        self.may_be_unset = true;
    }

    /// The names of the objects that say more.
    pub(crate) fn from(&self) -> impl Iterator<Item = &str> {
        self.from.iter().map(String::as_str)
    }

    /// Whether nothing is sure to be filled in.
    pub(crate) fn is_empty(&self) -> bool {
        // Flux looks for no variable where it knows none.
        self.own.is_empty() && !self.always
    }

    /// The output of a build with the variables filled in.
    pub(crate) fn fill_in(&self, output: &[u8]) -> Filled {
        let mut unset = BTreeSet::new();
        let Ok(text) = std::str::from_utf8(output) else { return Filled { text: output.to_vec(), unset } };
        let mut objects = Vec::new();
        for object in text.split("\n---\n") {
            let read =
                Some(object).filter(|object| object.contains(DISABLED)).and_then(|object| read_object(object).ok()?);
            let is_left = read.and_then(|read| read.read().ok()).is_some_and(|marked: Marked| marked.is_disabled());
            objects.push(if is_left { object.to_owned() } else { self.in_object(object, &mut unset) });
        }
        Filled { text: objects.join("\n---\n").into_bytes(), unset }
    }

    fn in_object(&self, object: &str, unset: &mut BTreeSet<String>) -> String {
        let (mut filled, mut rest) = (String::with_capacity(object.len()), object);
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            // `$${` is `${`.
            let is_escaped = (before.len() - before.trim_end_matches('$').len()) % 2 == 1;
            filled.push_str(if is_escaped { &before[..start - 1] } else { before });
            let end = if is_escaped { 2 } else { end(from) };
            let inner = from[2..end].strip_suffix('}');
            unset.extend(inner.and_then(|inner| self.unset(inner)).map(str::to_owned));
            filled.push_str(inner.and_then(|inner| self.value(inner)).unwrap_or(&from[..end]));
            rest = &from[end..];
        }
        filled + rest
    }

    /// The name that an expression reads, if nothing sets it and the expression has no default.
    fn unset<'a>(&self, inner: &'a str) -> Option<&'a str> {
        if self.may_be_unset {
            return None;
        }
        let (is_length, inner) = inner.strip_prefix('#').map_or((false, inner), |rest| (true, rest));
        let (name, rest) = split(inner);
        let is_read = if is_length {
            rest.is_empty()
        } else {
            rest.is_empty()
                || rest.starts_with(['^', ',', '/', '#', '%'])
                || rest.strip_prefix(':').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        (is_read && self.from.is_empty() && !name.is_empty() && !self.own.contains_key(name)).then_some(name)
    }

    /// The value of `NAME`, or of `NAME:=DEFAULT`; `None` if it is not certain.
    fn value<'a>(&'a self, inner: &'a str) -> Option<&'a str> {
        let (name, rest) = split(inner);
        let own = self.own.get(name).map(String::as_str);
        let default = [":=", ":-", "="].iter().find_map(|operator| rest.strip_prefix(operator));
        match (own, default) {
            (Some(own), _) if rest.is_empty() => Some(own),
            (Some(own), Some(_)) if !own.is_empty() => Some(own),
            (None, _) if !self.from.is_empty() || name.is_empty() => None,
            (None, _) if rest.is_empty() && self.may_be_unset => Some(""),
            (_, default) => default.filter(|default| !default.contains(['$', '"', '\'', '\\'])),
        }
    }
}

/// The first versions of Flux and of its controller that fail where a variable is not set.
const STRICT: [(&str, [u32; 2]); 2] = [("", [2, 9]), (CONTROLLER, [1, 9])];

/// The option that disables it, and the argument of the controller that lists such options.
const LAX: &str = "StrictPostBuildSubstitutions=false";
const FEATURES: &str = "--feature-gates=";

/// Whether Flux fails where a variable is not set: also where it is not known which one runs.
pub(in crate::targets) fn are_strict(tree: &dyn Tree, installed: &[Installed]) -> bool {
    let mut all = installed.iter().filter(|flux| flux.engine == EngineName::Flux).peekable();
    all.peek().is_none()
        || !all.all(|flux: &Installed| {
            let beside = FILE_NAMES.map(|name| path::join(path::parent(&flux.file), name));
            !is_strict(&flux.version) || beside.iter().chain([&flux.file]).any(|file| is_lax(tree, file))
        })
}

/// Whether a file sets the option: in an object that it has, or in a patch of one.
fn is_lax(tree: &dyn Tree, file: &str) -> bool {
    objects(&tree.read(file).unwrap_or_default()).iter().any(|object| {
        let instance: Spec<Instance> = object.read().unwrap_or_default();
        let patched: Patched = object.read().unwrap_or_default();
        let mut patches = patched.texts().chain(instance.spec.kustomize.texts());
        let sets = |text: &str| {
            let named = path::resolve(path::parent(file), text).and_then(|path| tree.read(&path).ok());
            objects(&named.unwrap_or_else(|| text.as_bytes().to_vec())).iter().any(sets_option)
        };
        sets_option(object) || patches.any(sets)
    })
}

/// The objects of a text that can be read.
fn objects(text: &[u8]) -> Vec<Value> {
    let text = str::from_utf8(text).unwrap_or_default();
    documents(text).filter_map(|document| read_object(document).ok()?).collect()
}

/// Whether a workload or a patch has the option among the arguments.
fn sets_option(object: &Value) -> bool {
    let is_lax =
        |argument: &str| argument.strip_prefix(FEATURES).is_some_and(|all| all.split(',').any(|option| option == LAX));
    let workload: Workload = object.read().unwrap_or_default();
    let operations: Vec<Operation> = object.read().unwrap_or_default();
    workload.arguments().any(is_lax) || operations.iter().flat_map(Operation::texts).any(is_lax)
}

fn is_strict(version: &str) -> bool {
    let (name, version) = version.rsplit_once(' ').unwrap_or(("", version));
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return true };
    STRICT.iter().find(|(of, _)| *of == name).is_none_or(|(_, first)| [major, minor] >= *first)
}

/// Splits an expression behind its name.
fn split(inner: &str) -> (&str, &str) {
    inner.split_at(inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len()))
}

/// The end of a variable that begins with `${`, with those inside it.
fn end(text: &str) -> usize {
    let mut open = 0;
    for (at, byte) in text.bytes().take(LONGEST).enumerate() {
        match byte {
            b'{' if text[..at].ends_with('$') => open += 1,
            b'}' if open == 1 => return at + 1,
            b'}' => open -= 1,
            _ => {}
        }
    }
    2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sure_is_filled_in() {
        let of = |yaml: &str| Variables::of(&serde_yaml::from_str(yaml).unwrap());
        let own = "substitute: {APP: \"we\\nb\", EMPTY: '', N: '3'}\n";
        let all = of(own);
        let variables = of(&format!("{own}substituteFrom: [{{name: x}}]"));
        for (text, expected) in [
            ("name: ${APP}-x\n", "name: web-x\n"),
            ("a: ${APP}${N}", "a: web3"),
            ("a: ${APP:=other}", "a: web"),
            ("a: ${APP:-other}", "a: web"),
            ("a: ${EMPTY}", "a: "),
            ("a: ${EMPTY:=1Gi}", "a: 1Gi"),
            // Not sure, or written to stay.
            ("a: ${OTHER}", "a: ${OTHER}"),
            ("a: ${OTHER:=x}", "a: ${OTHER:=x}"),
            ("a: $${APP} $$${APP} $${", "a: ${APP} $$web ${"),
            ("a: $APP", "a: $APP"),
            ("a: ${APP^^}", "a: ${APP^^}"),
            ("a: ${#APP}", "a: ${#APP}"),
            ("a: ${EMPTY:=${APP}} ${N}", "a: ${EMPTY:=${APP}} 3"),
            ("a: ${OTHER:=${APP}}}", "a: ${OTHER:=${APP}}}"),
            ("a: ${APP:=${N}}", "a: web"),
            ("a: ${}", "a: ${}"),
            ("a: ${APP", "a: ${APP"),
            ("é: ${APP} ${", "é: web ${"),
            (
                "a: ${APP}\n---\nmetadata:\n  labels:\n    kustomize.toolkit.fluxcd.io/substitute: disabled\na: ${APP}\n",
                "a: web\n---\nmetadata:\n  labels:\n    kustomize.toolkit.fluxcd.io/substitute: disabled\na: ${APP}\n",
            ),
        ] {
            let filled = variables.fill_in(text.as_bytes());
            assert_eq!((String::from_utf8(filled.text).unwrap(), filled.unset), (expected.to_owned(), BTreeSet::new()));
        }
        assert_eq!(variables.fill_in(b"\xff${APP}").text, b"\xff${APP}");
        // A default is sure where nobody else says more.
        for (text, expected) in [
            ("a: ${OTHER:=x} ${OTHER:-y} ${EMPTY:=z}", "a: x y z"),
            (
                "a: ${OTHER} ${OTHER:=\"x\"} ${OTHER^:=x} ${:=x} ${APP}",
                "a: ${OTHER} ${OTHER:=\"x\"} ${OTHER^:=x} ${:=x} web",
            ),
        ] {
            assert_eq!(String::from_utf8(all.fill_in(text.as_bytes()).text).unwrap(), expected);
        }
        // A variable without a default must be set, if all that is set is known.
        let text = "${A} ${APP} ${B:=x} ${C^^} ${#D} ${E:0:3} ${F:-${G}} ${EMPTY} $${H} ${I/a/b} ${J:+x} ${K:?y} $L";
        let unset: Vec<String> = all.fill_in(text.as_bytes()).unset.into_iter().collect();
        assert_eq!(unset, ["A", "C", "D", "E", "I"]);
        assert!(variables.fill_in(text.as_bytes()).unset.is_empty());
        let always = of("substituteStrategy: Always");
        assert_eq!((always.is_empty(), always.fill_in(b"${A}").unset.len()), (false, 1));
        assert!(of("{}").is_empty());
        let mut lax = all;
        lax.allow_unset();
        let filled = lax.fill_in(b"${APP} ${OTHER} ${OTHER^} ${OTHER:=x}");
        assert_eq!((str::from_utf8(&filled.text).unwrap(), filled.unset.len()), ("web  ${OTHER^} x", 0));
    }

    #[test]
    fn which_flux_fails_is_told_by_what_installs_it() {
        let are_strict = |versions: &[&str], beside: &str| {
            let by_path = "- {op: add, path: /x, value: --feature-gates=StrictPostBuildSubstitutions=false}\n";
            let tree = crate::graph::testing::tree(&[("f/kustomization.yaml", beside), ("f/lax.yaml", by_path)]);
            let flux = |version: &&str| Installed {
                engine: EngineName::Flux,
                version: (*version).to_owned(),
                file: "f/gotk-components.yaml".to_owned(),
                line: 1,
            };
            are_strict(&tree, &versions.iter().map(flux).collect::<Vec<_>>())
        };
        for (versions, strict) in [
            (&[][..], true),
            (&["v2.9.0"], true),
            (&["v2.8.7"], false),
            (&["2.10.x"], true),
            (&["2.8.x"], false),
            (&["2.x"], true),
            (&["kustomize-controller v1.9.1"], true),
            (&["kustomize-controller v1.8.2"], false),
            (&["v0.41.2", "v2.6.4"], false),
            (&["v2.6.4", "v2.9.1"], true),
        ] {
            assert_eq!(are_strict(versions, ""), strict, "{versions:?}");
        }
        let lax = "--feature-gates=A=true,StrictPostBuildSubstitutions=false";
        let workload =
            format!("{{kind: Deployment, spec: {{template: {{spec: {{containers: [{{args: [x, '{lax}']}}]}}}}}}}}");
        let patch = format!("[{{op: add, path: /spec/template/spec/containers/0/args/-, value: '{lax}'}}]");
        for (beside, strict) in [
            (format!("patches: [{{patch: \"{patch}\"}}]"), false),
            (
                format!(
                    "patchesJson6902: [{{patch: \"{}\"}}]",
                    patch.replace("value: ", "value: [x, ").replace('}', "]}")
                ),
                false,
            ),
            (format!("patchesStrategicMerge: [\"{workload}\"]"), false),
            (format!("spec: {{kustomize: {{patches: [{{patch: \"{workload}\"}}]}}}}"), false),
            ("patches: [{path: lax.yaml}]".to_owned(), false),
            (workload, false),
            // Elsewhere, the text means nothing.
            (format!("patches: [{{patch: \"# {lax}\"}}]"), true),
            (format!("# {lax}"), true),
            (format!("patches: [{{patch: \"{}\"}}]", patch.replace("false", "true")), true),
        ] {
            assert_eq!(are_strict(&["v2.9.1"], &beside), strict, "{beside}");
        }
    }
}

//! The variables that Flux fills in after a build (fluxcd/pkg, `kustomize/kustomize_varsub.go`), as far as their values
//! are certain. Others stay as written.

use std::collections::BTreeMap;

use super::CONTROLLER;
pub(crate) use super::models::POST_BUILD;
use super::models::{Instance, Marked, Operation, Patched, PostBuild};
pub(crate) use super::substitution::Problems;
use super::substitution::fill_in;
use crate::kustomization::{FILE_NAMES, Value, documents, read_object};
use crate::message::redact::visible;
use crate::targets::engine_versions::Workload;
use crate::targets::scan::Spec;
use crate::targets::{EngineName, Installed, policy};
use crate::tree::{Tree, path};

/// A part of the label or annotation of each object in which Flux fills in nothing.
const DISABLED: &str = "/substitute";

/// The variables of an object of Flux.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Variables {
    /// The values in the object itself, which take precedence over those of others.
    own: BTreeMap<String, String>,
    /// The names of the ConfigMaps and Secrets with more values.
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
    pub problems: Problems,
}

impl Variables {
    /// The variables that a `Kustomization` sets for its objects.
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

    /// The names of the ConfigMaps and Secrets with more values.
    pub(crate) fn from(&self) -> impl Iterator<Item = &str> {
        self.from.iter().map(String::as_str)
    }

    /// Whether Flux fills in nothing: without any variable it does not look for one.
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.from.is_empty() && !self.always
    }

    /// The output of a build with the variables filled in as far as their values are known, object by object.
    pub(crate) fn fill_in(&self, output: &[u8]) -> Filled {
        let mut problems = Problems::default();
        let Ok(text) = std::str::from_utf8(output) else { return Filled { text: output.to_vec(), problems } };
        let mut objects = Vec::new();
        for object in text.split("\n---\n") {
            // Few objects are marked to stay as they are, and parsing takes long.
            let read =
                Some(object).filter(|object| object.contains(DISABLED)).and_then(|object| read_object(object).ok()?);
            let stays = read.and_then(|read| read.read().ok()).is_some_and(|marked: Marked| marked.is_disabled());
            let filled = if stays { object.to_owned() } else { fill_in(self, object, &mut problems) };
            // Flux parses each object again, and fails if a value broke its YAML.
            if filled != object && serde_yaml::from_str::<serde_yaml::Value>(&filled).is_err() {
                let value: serde_yaml::Value = serde_yaml::from_str(object).unwrap_or_default();
                let name = format!("{} {}", policy::text(&value, "kind"), policy::full_name(&value));
                problems.invalid.insert(format!("{} is not YAML once Flux fills in its variables", visible(&name)));
            }
            objects.push(filled);
        }
        Filled { text: objects.join("\n---\n").into_bytes(), problems }
    }

    /// The value of a variable in the object itself; `None` if it has none.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.own.get(name).map(String::as_str)
    }

    /// Whether the value of a variable, or that it has none, is known: no object of the cluster can give it another
    /// one.
    pub(super) fn is_certain(&self, name: &str) -> bool {
        self.own.contains_key(name) || self.from.is_empty()
    }

    /// Whether Flux takes a variable that nothing sets for empty.
    pub(super) fn unset_is_empty(&self) -> bool {
        self.may_be_unset
    }
}

/// The first versions of Flux and of its controller that fail where a variable is not set.
const STRICT: [(&str, [u32; 2]); 2] = [("", [2, 9]), (CONTROLLER, [1, 9])];

/// The option that disables it, and the argument of the controller that lists such options.
const LAX: &str = "StrictPostBuildSubstitutions=false";
const FEATURES: &str = "--feature-gates=";

/// Whether Flux fails if a variable is not set: at least one of several installations does. Also true if it is unknown
/// which version of Flux runs.
pub(in crate::targets) fn are_strict(tree: &dyn Tree, installed: &[Installed]) -> bool {
    let mut all = installed.iter().filter(|flux| flux.engine == EngineName::Flux).peekable();
    all.peek().is_none()
        || !all.all(|flux: &Installed| {
            let beside = FILE_NAMES.map(|name| path::join(path::parent(&flux.file), name));
            !is_strict(&flux.version) || beside.iter().chain([&flux.file]).any(|file| is_lax(tree, file))
        })
}

/// Whether a file of the installation sets the option that lets Flux accept unset variables: in a workload, or in a
/// patch for one. A file that is missing does not.
fn is_lax(tree: &dyn Tree, file: &str) -> bool {
    objects(&tree.read(file).unwrap_or_default()).iter().any(|object| {
        let instance: Spec<Instance> = object.read().unwrap_or_default();
        let patched: Patched = object.read().unwrap_or_default();
        let mut patches = patched.texts().chain(instance.spec.kustomize.texts());
        // A text is the path of a file, or the patch itself.
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

/// Whether a version of Flux, or of its controller, fails if a variable is not set; also true for an unknown version.
fn is_strict(version: &str) -> bool {
    let (name, version) = version.rsplit_once(' ').unwrap_or(("", version));
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return true };
    STRICT.iter().find(|(of, _)| *of == name).is_none_or(|(_, first)| [major, minor] >= *first)
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
            ("a: ${OTHER^^} ${OTHER:=\"x\"}", "a: ${OTHER^^} ${OTHER:=\"x\"}"),
            ("a: ${OTHER:=x}", "a: ${OTHER:=x}"),
            ("a: $${APP} $$${APP} $${", "a: ${APP} $$web ${"),
            ("a: $APP", "a: $APP"),
            ("a: ${EMPTY:=${APP}} ${N}", "a: web 3"),
            ("a: ${OTHER:=${APP}}}", "a: ${OTHER:=${APP}}}"),
            ("a: ${APP:=${N}} ${APP:=\"x\"}", "a: web web"),
            ("é: ${APP}", "é: web"),
            (
                "a: ${APP}\n---\nmetadata:\n  labels:\n    kustomize.toolkit.fluxcd.io/substitute: disabled\na: ${APP}\n",
                "a: web\n---\nmetadata:\n  labels:\n    kustomize.toolkit.fluxcd.io/substitute: disabled\na: ${APP}\n",
            ),
        ] {
            let filled = variables.fill_in(text.as_bytes());
            let expected = (expected.to_owned(), Problems::default());
            assert_eq!((String::from_utf8(filled.text).unwrap(), filled.problems), expected);
        }
        assert_eq!(variables.fill_in(b"\xff${APP}").text, b"\xff${APP}");
        // A default is certain if no other object says more.
        let filled =
            all.fill_in(b"a: ${OTHER:=x} ${OTHER:-y} ${EMPTY:=z} ${OTHER:?u} ${OTHER:+v} ${OTHER:=${EMPTY:-${APP}}}");
        assert_eq!(filled.problems, Problems::default());
        assert_eq!(String::from_utf8(filled.text).unwrap(), "a: x y z u v web");
        assert!(variables.fill_in(TEXT.as_bytes()).problems.refusal().is_none());
        let always = of("substituteStrategy: Always");
        assert_eq!((always.is_empty(), always.fill_in(b"${A}").problems.unset.len()), (false, 1));
        assert!(of("{}").is_empty());
        let from = of("substituteFrom: [{kind: ConfigMap, name: vars}]");
        assert!(!from.is_empty());
        let mut lax = all;
        lax.allow_unset();
        let filled = lax.fill_in(b"${APP} ${OTHER} ${OTHER^} ${OTHER:=x}");
        assert_eq!(str::from_utf8(&filled.text).unwrap(), "web  ${OTHER^} x");
        assert_eq!(filled.problems.refusal(), None);
        let unknown = "this program cannot evaluate `${OTHER^}`, but Flux does";
        assert_eq!(filled.problems.unknown().as_deref(), Some(unknown));
    }

    /// Flux 2.9 fails for variables that nothing sets, if all objects that could set them are known.
    const TEXT: &str =
        "${A} ${APP} ${B:=x} ${C^^} ${#D} ${E:0:3} ${F:-${G}} ${APP:=${H}} $${I} ${J/a/b} ${K:+x} ${é} $L";

    #[test]
    fn flux_and_this_program_refuse_what_they_cannot_fill_in() {
        let all = Variables::of(&serde_yaml::from_str("substitute: {APP: web, COLON: 'a: b'}").unwrap());
        let problems = |text: &str| {
            let problems = all.fill_in(text.as_bytes()).problems;
            [problems.refusal(), problems.unknown()].into_iter().flatten().collect::<Vec<_>>()
        };
        let unset =
            "Flux 2.9 fails if a variable is not set: `${A}`, `${C}`, `${D}`, `${E}`, `${G}`, `${H}`, `${J}`, `${é}`";
        let cannot_evaluate = |text: &str| format!("this program cannot evaluate `{text}`, but Flux does");
        assert_eq!(problems(TEXT), [unset]);
        for text in ["${APP^^}", "${#APP}", "${APP:0:2}", "${APP/e/i}", "${APP#w}", "${APP%%b}", "${X:='y'}"] {
            assert_eq!(problems(text), [cannot_evaluate(text)]);
        }
        for text in ["${}", "${a.b}", "${a[@]}", "${!a}", "${a b}", "${APP-d}", "${#APP^}", "${^}"] {
            assert_eq!(problems(text), [format!("Flux cannot parse `{text}`")]);
        }
        assert_eq!(problems("a: ${APP\nb: ${APP}"), ["Flux finds no `}` for `${APP`"]);
        let deep = format!("{}x{}", "${X:=".repeat(10), "}".repeat(10));
        assert_eq!(problems(&deep), [cannot_evaluate("${X:=${X:=x}}")]);
        let object = "kind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata:\n  x: ";
        assert_eq!(
            problems(&format!("{object}${{COLON}}\n---\n{object}\"${{COLON}}\"\n")),
            ["ConfigMap b/a is not YAML once Flux fills in its variables"]
        );
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

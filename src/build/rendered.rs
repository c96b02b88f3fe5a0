//! The outputs of all builds as files: one for each target and each top root, with stable names.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_yaml::{Mapping, Value};

use super::builds::{Builds, Wanted};
use super::choice::{Choice, Choices};
use super::program::Programs;
use super::{compare, secrets};
use crate::fetch::Progress;
use crate::message::failure::{Failure, FailureKind, Failures, Result};
use crate::message::finding::{Rule, Severity};
use crate::message::position::Position;
use crate::message::redact::visible;
use crate::os::parallel::processors;
use crate::record::BuildTool;
use crate::targets::affected::DiffStatus;
use crate::targets::policy::full_name_at;
use crate::targets::{Target, TargetLocation, stopped};
use crate::workspace::{Workspace, from_lock};

/// The outputs of builds by the path of their file, and the builds that have none.
#[derive(Default)]
pub(crate) struct Rendered {
    pub files: BTreeMap<String, Vec<u8>>,
    /// Why a build has no file, by the path of that.
    pub not_built: BTreeMap<String, String>,
    /// The targets and objects with unknown deployments, each with the reason.
    pub unknown: Vec<String>,
    /// The paths of the files of these targets; for a set also the directory of all its targets, for an unreadable file
    /// the top.
    unknown_files: BTreeSet<String>,
    /// The targets of which a source is elsewhere, so that their files lack its objects.
    pub partial: Vec<String>,
    /// The builds that were stopped, so that their output is unknown.
    pub stopped: Vec<Failure>,
    /// Whether a build that has no file is a failure.
    pub fails: bool,
    /// The program that builds.
    pub by: BuildTool,
}

/// The build of a root, or of one source of a target.
struct FileBuild {
    file: String,
    /// The place of the source in the object.
    spot: Position,
    wanted: Wanted,
}

/// The names of the files of targets.
struct FileNames {
    /// The objects that have one name, each by its place.
    objects: HashMap<String, BTreeSet<String>>,
}

impl FileNames {
    fn of(targets: &[Target]) -> FileNames {
        let mut objects: HashMap<String, BTreeSet<String>> = HashMap::new();
        for target in targets {
            objects.entry(target_file(target, "")).or_default().insert(target.object.location_text());
        }
        FileNames { objects }
    }

    /// The file of a target.
    fn file(&self, target: &Target) -> String {
        let name = target_file(target, "");
        match self.objects.get(&name) {
            // Objects of two clusters often have one name, and neither may overwrite the other's file.
            Some(objects) if objects.len() > 1 => target_file(target, &format!("@{}", target.object.location_text())),
            _ => name,
        }
    }
}

/// The chosen builds, and the other sources of their targets.
fn with_all_sources(mut chosen: Vec<Choice>, targets: &[Target], names: &FileNames) -> Vec<Choice> {
    let built = chosen.iter().filter_map(|choice| choice.targets().new);
    let (files, sources): (HashSet<String>, HashSet<(String, Position)>) =
        built.map(|target| (names.file(target), (target.object.location_text(), target.spot))).unzip();
    // A change may touch only one source, but the file has the objects of all.
    let others = targets.iter().filter(|target| {
        files.contains(&names.file(target)) && !sources.contains(&(target.object.location_text(), target.spot))
    });
    chosen.extend(others.cloned().map(Choice::of_target).filter(|choice| !choice.is_elsewhere()));
    chosen
}

/// Says that a source of a target is not built, and why; `None` if it is of this tree.
pub(crate) fn without(source: &Target) -> Option<String> {
    let Target { object, spot, location, .. } = source;
    let (TargetLocation::External(why) | TargetLocation::Templated(why)) = location else { return None };
    Some(format!("without its source at {}:{}: {}", object.file, spot.line, visible(why)))
}

/// How builds are run.
#[derive(Clone, Copy, Default)]
pub(crate) struct ProgramOptions<'a> {
    pub programs: Programs<'a>,
    pub offline: bool,
    pub quiet: bool,
}

impl Rendered {
    /// Runs the chosen builds. A target of another repository is not among them.
    pub(crate) fn of(workspace: &Workspace, choices: Choices, how: ProgramOptions<'_>) -> Result<Rendered, Failures> {
        let Choices { builds: chosen, unbuilt, unread, targets, .. } = choices;
        let mut rendered = Rendered { stopped: stopped(&unbuilt).cloned().collect(), ..Rendered::default() };
        let names = FileNames::of(&targets);
        let chosen = chosen.into_iter().filter(|choice| choice.status != DiffStatus::Removed).collect();
        let builds = rendered.known(workspace, &with_all_sources(chosen, &targets, &names), &names);
        // These may differ too, although the change touches no input of them.
        for target in &unbuilt {
            let file = names.file(target);
            if !rendered.unknown_files.contains(&file) {
                rendered.add_unknown(target, file, "it may be another one");
            }
        }
        for unread in &unread {
            rendered.unknown.push(format!("{}: {}", unread.location_text(), visible(&unread.message)));
            rendered.unknown_files.insert(String::new());
        }
        rendered.build(workspace, builds, how)?;
        // A file that lacks the objects of one source that is here would remove them.
        let Rendered { files, not_built, unknown_files, .. } = &mut rendered;
        files.retain(|file, _| !not_built.contains_key(file) && !unknown_files.contains(file));
        let written = targets.iter().filter(|target| files.contains_key(&names.file(target)));
        rendered.partial =
            written.filter_map(|target| Some(format!("{}: {}", target.by(), without(target)?))).collect();
        // A team that switched the rule off knows that some targets are unknown.
        let is_reported = workspace.config.level(Rule::UnknownTarget, Severity::Warning).is_some();
        rendered.fails = !rendered.not_built.is_empty() || is_reported && !rendered.unknown.is_empty();
        Ok(rendered)
    }

    /// The builds of some choices, each with its file. An unknown target is recorded instead.
    fn known(&mut self, workspace: &Workspace, chosen: &[Choice], names: &FileNames) -> Vec<FileBuild> {
        let mut builds = Vec::new();
        for choice in chosen {
            let (file, spot) = match choice.targets().new {
                None => (root_file(&choice.title()), Position::default()),
                Some(target) => (names.file(target), target.spot),
            };
            match choice.targets().new.and_then(|target| Some((target, target.unknown()?))) {
                Some((target, why)) => self.add_unknown(target, file, &why),
                None => builds.push(FileBuild { file, spot, wanted: choice.subject(workspace) }),
            }
        }
        builds
    }

    /// Runs builds, and adds their outputs to their files.
    fn build(
        &mut self,
        workspace: &Workspace,
        mut builds: Vec<FileBuild>,
        how: ProgramOptions<'_>,
    ) -> Result<(), Failures> {
        // The objects of the sources of an application are written in the order of its sources.
        builds.sort_by(|left, right| (&left.file, left.spot).cmp(&(&right.file, right.spot)));
        let (files, subjects): (Vec<String>, Vec<Wanted>) =
            builds.into_iter().map(|FileBuild { file, wanted, .. }| (file, wanted)).unzip();
        let mut fetcher = from_lock(workspace.repo(), workspace, how.offline, how.quiet)?;
        let builds = Builds::of(workspace, &subjects, &mut fetcher, how.programs)?;
        let progress = Progress::new("building", how.quiet);
        let built = progress.each(processors(), &files, String::clone, |number, _| builds.bytes(number));
        for (file, built) in files.into_iter().zip(built) {
            match built {
                Ok(bytes) => append(self.files.entry(file).or_default(), &bytes),
                Err(failures) => {
                    let reason = failures.0.first().map_or(String::new(), ToString::to_string);
                    self.not_built.insert(file, reason.replace('\n', " "));
                    self.stopped.extend(failures.0.into_iter().filter(|failure| failure.kind == FailureKind::Stopped));
                }
            }
        }
        self.by = builds.tool();
        Ok(())
    }

    fn add_unknown(&mut self, target: &Target, file: String, why: &str) {
        self.unknown.push(format!("{}: {}", target.by(), visible(why)).replace('\n', " "));
        // The names of the other targets of a set are unknown, so any file of its engine may be theirs.
        if target.object.kind.ends_with("Set") || target.object.set.is_some() {
            self.unknown_files.insert(file.split('/').next().unwrap_or_default().to_owned());
        }
        self.unknown_files.insert(file);
    }

    /// Whether an earlier file stays because the output of its build is unknown now.
    pub(crate) fn keeps(&self, file: &str) -> bool {
        self.not_built.contains_key(file)
            || self.unknown_files.iter().any(|unknown: &String| crate::tree::path::is_in(file, unknown))
    }

    /// Says of each build without a file, or with a part of one, why, in lines.
    pub(crate) fn missing(&self) -> Vec<String> {
        let unknown = self.unknown.iter().map(|target| format!("unknown: {target}"));
        let not_built = self.not_built.iter().map(|(file, why)| format!("not built: {file}: {why}"));
        let partial = self.partial.iter().map(|target| format!("partial: {target}"));
        unknown.chain(not_built).chain(partial).collect()
    }

    /// The Secrets whose values anybody can read, each with its file.
    pub(crate) fn clear_secrets(&self) -> Vec<String> {
        self.files
            .iter()
            .flat_map(|(file, bytes): (&String, &Vec<u8>)| {
                let file = file.clone();
                clear_secrets(bytes).into_iter().map(move |name| format!("{name} ({file})"))
            })
            .collect()
    }
}

/// Adds the output of another source of the same target.
pub(crate) fn append(output: &mut Vec<u8>, more: &[u8]) {
    if !output.is_empty() && !more.is_empty() && !more.starts_with(b"---") {
        output.extend_from_slice(if output.ends_with(b"\n") { b"---\n" } else { b"\n---\n" });
    }
    output.extend_from_slice(more);
}

/// The names of the Secrets in an output that have a value which is not encrypted.
fn clear_secrets(output: &[u8]) -> Vec<String> {
    // A document that cannot be read may be a Secret.
    const UNREAD: &str = "a document that cannot be read";
    let Ok(text) = str::from_utf8(output) else { return vec![UNREAD.to_owned()] };
    let mut clear = Vec::new();
    for document in compare::documents(text).filter(|document| secrets::may_hold(document.as_bytes())) {
        match serde_yaml::from_str::<Value>(document) {
            Ok(mut object) => secrets::each_secret(&mut object, &mut |secret| clear.extend(clear_name(secret))),
            Err(_) => clear.push(UNREAD.to_owned()),
        }
    }
    clear.sort();
    clear
}

/// The name of a Secret. `None` if all of its values are encrypted.
fn clear_name(secret: &Mapping) -> Option<String> {
    let values = ["data", "stringData"].into_iter().filter_map(|field| secret.get(field)?.as_mapping());
    // As SOPS writes them.
    let is_encrypted = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("ENC["));
    if values.flat_map(Mapping::values).all(is_encrypted) {
        return None;
    }
    Some(secret.get("metadata").map_or(String::new(), |metadata| full_name_at(metadata, "")))
}

/// The file of a target. `suffix` distinguishes targets with one name.
fn target_file(target: &Target, suffix: &str) -> String {
    let engine = target.engine.name().to_ascii_lowercase().replace(' ', "");
    let object = &target.object;
    if object.is_listed() {
        let path = object.name.split('/').map(directory_name).collect::<Vec<_>>().join("/");
        return format!("{engine}/{path}.yaml");
    }
    let parts = [&*engine, &object.namespace, &format!("{}{suffix}", object.name)];
    let parts = parts.iter().filter(|part| !part.is_empty()).map(|part| name_part(part));
    format!("{}.yaml", parts.collect::<Vec<_>>().join("/"))
}

/// The file of a root.
fn root_file(directory: &str) -> String {
    match directory {
        "" | "." => "roots.yaml".to_owned(),
        directory => format!("roots/{}.yaml", directory.split('/').map(directory_name).collect::<Vec<_>>().join("/")),
    }
}

/// The name of a directory in the path of a file.
fn directory_name(name: &str) -> String {
    // A directory `a.yaml` must not have the name of the file of the root `a`.
    name_part(name).replace(".yaml", "%2Eyaml")
}

/// A text as the name of a file. Different texts have different names.
fn name_part(text: &str) -> String {
    let mut name = String::new();
    for byte in text.bytes() {
        match byte {
            b'-' | b'_' | b'@' => name.push(char::from(byte)),
            b'.' if !name.is_empty() => name.push('.'),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => name += &format!("%{byte:02X}"),
        }
    }
    name
}

/// Whether a path can be one of [`Rendered::files`].
pub(crate) fn is_plain(file: &str) -> bool {
    file.split('/').all(|name: &str| !name.is_empty() && name_part(&name.replace('%', "-")) == name.replace('%', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_root_has_a_file_of_its_own() {
        let names = ["", "a", "a/b", "a.yaml/b", "a b", "é", ".a"];
        let files: Vec<String> = names.map(root_file).into();
        let expected = [
            "roots.yaml",
            "roots/a.yaml",
            "roots/a/b.yaml",
            "roots/a%2Eyaml/b.yaml",
            "roots/a%20b.yaml",
            "roots/%C3%A9.yaml",
            "roots/%2Ea.yaml",
        ];
        assert_eq!(files, expected);
        assert!(files.iter().all(|file| is_plain(file)));
        assert!(!["", "..", "a//b", "../a", "/a", "a b", ".a"].into_iter().any(is_plain));
    }

    #[test]
    fn a_secret_is_clear_if_one_of_its_values_is() {
        let secret = |name: &str, rest: &str| {
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: x}}\n{rest}\n---\n")
        };
        let sealed = "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: s}\nspec: {encryptedData: {a: b}}\n---\n";
        let list = "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: l}, data: {a: eA==}}]\n";
        let output = secret("clear", "data: {a: eA==}")
            + &secret("empty", "type: Opaque")
            + &secret("sops", "data: {a: 'ENC[AES256_GCM,data:x]'}\nsops: {mac: x}")
            + &secret("half", "stringData: {a: 'ENC[x]', b: y}")
            + sealed
            + list
            + "---\nkind: SecretList\nitems: [{metadata: {name: i}, data: {a: eA==}}]\n"
            + "---\nkind: X\nspec: {template: {kind: Secret, metadata: {name: n}, stringData: {a: b}}}\n";
        assert_eq!(clear_secrets(output.as_bytes()), ["i", "l", "n", "x/clear", "x/half"]);
        let escaped = "apiVersion: v1\nkind: \"\\u0053ecret\"\nmetadata: {name: e}\nstringData: {a: b}\n";
        assert_eq!(clear_secrets(escaped.as_bytes()), ["e"]);
        for unread in [&b"kind: Secret\ndata: {a: [}\n"[..], b"kind: Secret\ndata: {a: \xff}\n"] {
            assert_eq!(clear_secrets(unread), ["a document that cannot be read"]);
        }
    }
}

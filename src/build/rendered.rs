//! The outputs of all builds as files: one for each target and each top root, with stable names.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;
use serde_yaml::{Mapping, Value};

use super::builds::{Builds, Wanted};
use super::choice::{Choice, Choices};
use super::program::Programs;
use super::{compare, secrets};
use crate::config::FILE_NAME;
use crate::fetch::Progress;
use crate::kustomization::{FileDocument, documents};
use crate::message::failure::{Failure, FailureKind, Failures, Result};
use crate::message::finding::{Rule, Severity};
use crate::message::position::Position;
use crate::message::redact::visible;
use crate::os::parallel::processors;
use crate::record::BuildTool;
use crate::targets::affected::DiffStatus;
use crate::targets::elsewhere::{deploying, deploying_engines, object_line};
use crate::targets::policy::full_name_at;
use crate::targets::{EngineName, ObjectRef, Target, TargetLocation, stopped};
use crate::tree::{Tree, path};
use crate::workspace::{Workspace, from_lock};

/// The outputs of builds by the path of their file, and the builds that have none.
#[derive(Default)]
pub(crate) struct Rendered {
    pub files: BTreeMap<String, Vec<u8>>,
    /// Why a build failed, by the path that its file would have.
    pub not_built: BTreeMap<String, String>,
    /// The targets and objects with unknown deployments, each with the reason.
    pub unknown: Vec<String>,
    /// The paths of the files of these targets; for one with an unknown name also the directory of its engine, for an
    /// unreadable file the top.
    unknown_files: BTreeSet<String>,
    /// Why the files of some targets are missing, although their repository may be this one: nothing tells whether it
    /// is.
    perhaps_local: BTreeMap<String, String>,
    /// The files of an earlier run that [stay](Self::keep_earlier).
    earlier_files: BTreeSet<String>,
    /// The targets of which a source is elsewhere, so that their files lack its objects.
    partial: BTreeSet<String>,
    /// The deployments that are elsewhere, so that no file has their objects.
    elsewhere: BTreeSet<String>,
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
    /// The position of the source in the object.
    spot: Position,
    wanted: Wanted,
}

/// The files of targets, by their objects: the sources of an application are one object.
struct FileNames<'a>(HashMap<&'a ObjectRef, String>);

impl FileNames<'_> {
    /// Chooses a file for each object. The sources of an application are one object, and so are equal entries of the
    /// configuration.
    fn of(targets: &[Target]) -> FileNames<'_> {
        let objects: BTreeMap<&ObjectRef, &Target> = targets.iter().map(|target| (&target.object, target)).collect();
        let mut unnamed: Vec<&Target> = objects.into_values().collect();
        let mut names = HashMap::new();
        // Objects of two clusters often have one name, and neither may overwrite the other's file: a target gets the
        // short name if no other has it, else the name with the suffix if no other has that.
        for suffix_of in [|_: &Target| String::new(), suffix] {
            let mut by_file: BTreeMap<String, Vec<&Target>> = BTreeMap::new();
            for target in unnamed.drain(..) {
                by_file.entry(target_file(target, &suffix_of(target))).or_default().push(target);
            }
            for (file, mut same) in by_file {
                match &same[..] {
                    [target] => drop(names.insert(&target.object, file)),
                    _ => unnamed.append(&mut same),
                }
            }
        }
        // The others are numbered. The line of the object would be a name, too, but then a comment above the object
        // would rename the file that is deployed.
        let mut counts: HashMap<String, usize> = HashMap::new();
        for target in unnamed {
            let suffix = format!("{}, {}", suffix(target), target.object.kind);
            let count = counts.entry(target_file(target, &suffix)).or_default();
            *count += 1;
            let number = if *count == 1 { String::new() } else { format!(" {count}") };
            names.insert(&target.object, target_file(target, &(suffix + &number)));
        }
        FileNames(names)
    }

    /// The file of a target.
    fn file(&self, target: &Target) -> String {
        self.0.get(&target.object).cloned().unwrap_or_else(|| target_file(target, ""))
    }
}

/// A suffix of the name of a file that tells targets with equal names apart.
fn suffix(target: &Target) -> String {
    let ObjectRef { file, set, maker, .. } = &target.object;
    let set = set.as_ref().map_or(String::new(), |set| format!(", of ApplicationSet {set}"));
    let maker = maker.as_ref().map_or(String::new(), |maker| format!(", built by {maker}"));
    format!("@{file}{set}{}{maker}", target.object.own_directory())
}

/// The deployments without a file, or with a part of one, each with the reason.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct MissingFiles {
    pub lines: Vec<String>,
    /// The number of the last lines that are about something elsewhere.
    #[serde(skip)]
    pub elsewhere: usize,
}

/// How builds are run.
#[derive(Clone, Copy, Default)]
pub(crate) struct ProgramOptions<'a> {
    pub programs: Programs<'a>,
    pub offline: bool,
    pub quiet: bool,
}

impl Rendered {
    /// Runs the chosen builds.
    pub(crate) fn of(
        workspace: &Workspace,
        mut choices: Choices,
        how: ProgramOptions<'_>,
    ) -> Result<Rendered, Failures> {
        let elsewhere = choices.take_elsewhere();
        let Choices { builds: chosen, unbuilt, unread, targets, .. } = choices;
        let mut rendered = Rendered { stopped: stopped(&unbuilt).cloned().collect(), ..Rendered::default() };
        let names = FileNames::of(&targets);
        // A removed build would give an empty file. Without it, the caller removes its earlier file.
        let chosen = chosen.into_iter().filter(|choice| choice.status != DiffStatus::Removed);
        let builds = rendered.known_builds(workspace, chosen, &names);
        // An unknown build may change these targets, although the change touches no input of them.
        for target in &unbuilt {
            let file = names.file(target);
            if !rendered.unknown_files.contains(&file) {
                rendered.add_unknown(target, file, "a build that is not known may change its object");
            }
        }
        for unread in &unread {
            rendered.unknown.push(format!("{}: {}", unread.location_text(), visible(&unread.message)));
            // Its objects may have any file, so all files of an earlier run stay.
            rendered.unknown_files.insert(String::new());
        }
        rendered.build(workspace, builds, how)?;
        // Deploying a file without the objects of one of its sources would delete them, so a file is whole or missing.
        let Rendered { files, not_built, unknown_files, .. } = &mut rendered;
        files.retain(|file, _| !not_built.contains_key(file) && !unknown_files.contains(file));
        rendered.add_elsewhere(&elsewhere, &targets, &names);
        // Without `repository` in the configuration, nothing tells for sure that another repository is not this one.
        if !workspace.config.names_repository() {
            let external = elsewhere.iter().filter_map(|target| match &target.location {
                TargetLocation::External(why) => Some((names.file(target), visible(why))),
                TargetLocation::Local(_) | TargetLocation::Templated(_) => None,
            });
            rendered.perhaps_local = external.collect();
        }
        // A team that switched the rule off knows that some targets are unknown, so these are not a failure.
        let is_reported = workspace.config.level(Rule::UnknownTarget, Severity::Warning).is_some();
        rendered.fails = !rendered.not_built.is_empty() || is_reported && !rendered.unknown.is_empty();
        Ok(rendered)
    }

    /// The builds of some choices, each with its file. An unknown target is recorded instead.
    fn known_builds(
        &mut self,
        workspace: &Workspace,
        chosen: impl Iterator<Item = Choice>,
        names: &FileNames<'_>,
    ) -> Vec<FileBuild> {
        let mut builds = Vec::new();
        for choice in chosen {
            let (file, spot) = match choice.targets().new {
                // A root is alone in its file, so its position does not matter.
                None => (root_file(&choice.title()), Position::default()),
                Some(target) => (names.file(target), target.spot),
            };
            match choice.targets().new.and_then(|target| Some((target, target.why_unknown()?))) {
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
        let builds = Builds::of_workspace(workspace, workspace.lock.as_deref(), &subjects, &mut fetcher, how.programs)?;
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

    /// Records the targets and objects that no file has, or has only in part, because they are deployed from elsewhere.
    fn add_elsewhere(&mut self, elsewhere: &[Target], targets: &[Target], names: &FileNames<'_>) {
        let has_file = |target: &&Target| self.files.contains_key(&names.file(target));
        // Lines of files are not named: an edit above an object would change the list.
        let partial = targets.iter().filter(has_file).filter_map(|target| {
            let why = target.elsewhere()?;
            Some(format!("{}: without its source: {}", visible(&target.name_and_file()), visible(&why)))
        });
        // A target without any file is elsewhere as a whole, unless a build may change it: then it is unknown.
        let whole = elsewhere.iter().filter(|target| !has_file(target) && target.changed_by.is_none());
        let whole = whole.filter_map(Target::elsewhere_line);
        // The files may have objects of engines that deploy from elsewhere.
        let objects = self.files.iter().flat_map(|(file, output)| {
            deploying(output).into_iter().filter_map(move |object| object_line(&object, file, targets))
        });
        (self.elsewhere, self.partial) = (whole.chain(objects).collect(), partial.collect());
    }

    /// Records a target whose objects are unknown, so that its `file` is not written, and an earlier one stays.
    fn add_unknown(&mut self, target: &Target, file: String, why: &str) {
        self.unknown.push(format!("{}: {}", target.by(), visible(why)).replace('\n', " "));
        // The names of the other targets of a set, and of the objects that a build makes, are unknown: any file of the
        // engine may be theirs.
        if target.object.kind.ends_with("Set") || target.object.set.is_some() || target.changed_by.is_some() {
            self.unknown_files.insert(engine_directory(target.engine));
        }
        self.unknown_files.insert(file);
    }

    /// Keeps the files of an earlier run that this one did not write, but whose targets may still exist: a build that
    /// failed or is unknown may be theirs, an object in another file that stays may deploy them, or their repository
    /// may be this one, which nothing tells.
    pub(crate) fn keep_earlier(&mut self, earlier: &dyn Tree) -> Result<()> {
        let named = self.not_built.keys().chain(self.perhaps_local.keys());
        let mut unknown: BTreeSet<String> = named.chain(&self.unknown_files).cloned().collect();
        let mut candidates = earlier.below("")?;
        candidates.retain(|file| is_file_name(file) && file.ends_with(".yaml") && !self.files.contains_key(file));
        self.earlier_files.clear();
        // A file that stays may have objects that deploy others: then all files of their engine may stay, too.
        loop {
            let stays = |file: &mut String| unknown.iter().any(|unknown| path::is_in(file, unknown));
            let staying: Vec<String> = candidates.extract_if(.., stays).collect();
            if staying.is_empty() {
                return Ok(());
            }
            for file in staying {
                unknown.extend(deploying_engines(&earlier.read(&file)?).map(engine_directory));
                // The user must say which repository this is: until then nobody knows whether this file is right.
                self.fails |= self.perhaps_local.contains_key(&file);
                self.earlier_files.insert(file);
            }
        }
    }

    /// Whether a file of an earlier run stays.
    pub(crate) fn keeps(&self, file: &str) -> bool {
        self.earlier_files.contains(file)
    }

    /// The deployments without a file, or with a part of one, as lines of a report.
    pub(crate) fn missing(&self) -> MissingFiles {
        let unknown = self.unknown.iter().map(|target| format!("unknown: {target}"));
        let not_built = self.not_built.iter().map(|(file, why)| format!("not built: {file}: {why}"));
        let partial = self.partial.iter().map(|target| format!("partial: {target}"));
        // Earlier files of builds in the lines above are not named again.
        let kept = self.earlier_files.iter();
        let kept = kept.filter(|file| !self.not_built.contains_key(*file) && !self.unknown_files.contains(*file));
        let kept = kept.map(|file| {
            let why = self.perhaps_local.get(file).map_or(String::new(), |why| {
                format!(": {why}; write the URL of this repository below `repository` in {FILE_NAME}")
            });
            format!("kept: {file}: its target may still exist{why}")
        });
        let elsewhere = self.elsewhere.iter().map(|target| format!("elsewhere: {target}"));
        let lines = unknown.chain(not_built).chain(kept).chain(partial).chain(elsewhere).collect();
        MissingFiles { lines, elsewhere: self.elsewhere.len() }
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

/// Adds the output of a later source of the same target. If both make the same object, the earlier one is removed,
/// because Argo CD deploys the later one.
pub(crate) fn append(output: &mut Vec<u8>, more: &[u8]) {
    if !output.is_empty() {
        let (text, later) = (String::from_utf8_lossy(output), String::from_utf8_lossy(more));
        let later: HashSet<String> = documents(&later).filter_map(|document| identity(document.text)).collect();
        let is_kept = |document: &FileDocument<'_>| identity(document.text).is_none_or(|id| !later.contains(&id));
        let kept: String = documents(&text).filter(is_kept).map(|document| document.text).collect();
        if kept.len() < text.len() {
            *output = kept.into_bytes();
        }
    }
    if !output.is_empty() && !more.is_empty() && !more.starts_with(b"---") {
        output.extend_from_slice(if output.ends_with(b"\n") { b"---\n" } else { b"\n---\n" });
    }
    output.extend_from_slice(more);
}

/// The group, kind and name of the object in a document, by which a cluster knows it. `None` if it has none.
fn identity(document: &str) -> Option<String> {
    let id = compare::id(&serde_yaml::from_str(document).ok()?)?;
    let (group, name) = compare::group_and_name(&id);
    Some(format!("{group} {name}"))
}

/// The names of the Secrets in an output with a value that is not encrypted, and a text for each document that cannot
/// be read.
fn clear_secrets(output: &[u8]) -> Vec<String> {
    // A document that cannot be read may be a Secret.
    const UNREAD: &str = "a document that cannot be read";
    let Ok(text) = str::from_utf8(output) else { return vec![UNREAD.to_owned()] };
    let mut clear = Vec::new();
    for document in compare::documents(text).filter(|document| secrets::may_hold(document.as_bytes())) {
        match serde_yaml::from_str::<Value>(document) {
            Ok(mut object) => {
                secrets::each_secret(&mut object, &mut |secret| clear.extend(name_of_clear_secret(secret)))
            }
            Err(_) => clear.push(UNREAD.to_owned()),
        }
    }
    clear.sort();
    clear
}

/// The name of a Secret with a value that is not encrypted; else `None`.
fn name_of_clear_secret(secret: &Mapping) -> Option<String> {
    let values = ["data", "stringData"].into_iter().filter_map(|field| secret.get(field)?.as_mapping());
    // As SOPS writes them.
    let is_encrypted = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("ENC["));
    if values.flat_map(Mapping::values).all(is_encrypted) {
        return None;
    }
    Some(secret.get("metadata").map_or(String::new(), |metadata| full_name_at(metadata, "")))
}

/// The directory of the files of an engine.
fn engine_directory(engine: EngineName) -> String {
    engine.name().to_ascii_lowercase().replace(' ', "")
}

/// The file of a target. `suffix` distinguishes targets with one name.
fn target_file(target: &Target, suffix: &str) -> String {
    let engine = engine_directory(target.engine);
    let object = &target.object;
    // An entry of the configuration is named by its directory, so its file lies at that path.
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
            // A name that begins with a dot may be `..`, or is hidden.
            b'.' if !name.is_empty() => name.push('.'),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => name += &format!("%{byte:02X}"),
        }
    }
    name
}

/// Whether a path can be one of [`Rendered::files`].
pub(crate) fn is_file_name(file: &str) -> bool {
    file.split('/').all(|name: &str| !name.is_empty() && name_part(&name.replace('%', "-")) == name.replace('%', "-"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::build::choice::with_all_sources;
    use crate::config::{Config, FILE_NAME};
    use crate::graph::testing;
    use crate::targets::{Identity, find};

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
        assert!(files.iter().all(|file| is_file_name(file)));
        assert!(!["", "..", "a//b", "../a", "/a", "a b", ".a"].into_iter().any(is_file_name));
    }

    #[test]
    fn a_file_stays_if_an_unknown_build_may_deploy_its_target() {
        let flux = "kind: Kustomization\napiVersion: kustomize.toolkit.fluxcd.io/v1\nmetadata: {name: a}\n";
        let argo = "kind: Application\napiVersion: argoproj.io/v1alpha1\nmetadata: {name: b}\n";
        let earlier = testing::tree(&[
            (".unknown", ""),
            ("argocd/b.yaml", ""),
            ("argocd/new.yaml", ""),
            ("flux/a.yaml", argo),
            ("hydrator.metadata", ""),
            ("roots/apps.yaml", ""),
            ("roots/clusters.yaml", flux),
        ]);
        let kept = |not_built: &str| {
            let not_built = [(not_built.to_owned(), "why".to_owned())].into();
            let files = [("argocd/new.yaml".to_owned(), Vec::new())].into();
            let mut rendered = Rendered { files, not_built, ..Rendered::default() };
            rendered.keep_earlier(&earlier).unwrap();
            rendered.missing().lines.join("\n")
        };
        // Objects of an engine may deploy any target of it, and these those of another engine.
        expect![[r#"
            not built: roots/clusters.yaml: why
            kept: argocd/b.yaml: its target may still exist
            kept: flux/a.yaml: its target may still exist"#]]
        .assert_eq(&kept("roots/clusters.yaml"));
        expect!["not built: roots/apps.yaml: why"].assert_eq(&kept("roots/apps.yaml"));
    }

    #[test]
    fn no_line_is_part_of_the_name_of_a_file() {
        let object = |kind: &str, name: &str| {
            format!(
                "apiVersion: argoproj.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{source: {{repoURL: 'https://h/o/r', path: x}}}}\n---\n"
            )
        };
        let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web}\nspec: {chart: {spec: {chart: c, sourceRef: {kind: GitRepository, name: g}}}}\n---\n";
        let application = object("Application", "web");
        let files = |above: &str| {
            let same = [above, &application, &application, &object("Application", "other")].concat();
            let releases = [above, release, release].concat();
            // Both targets are on one line.
            let listed = "targets: [{path: x, engine: argo-cd}, {path: y, engine: argo-cd}]\n";
            let all = [("a.yaml", &*application), ("b.yaml", &same), ("c.yaml", &releases), (FILE_NAME, listed)];
            let tree = testing::tree(&all);
            let config = Config::of(&tree, "").unwrap();
            let targets = find(&tree, &config, &|| Ok(Identity::new([], &config, []))).unwrap();
            let names = FileNames::of(&targets.as_written().targets);
            let files = targets.as_written().targets.iter().map(|target| names.file(target));
            files.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("\n")
        };
        expect![[r#"
            argocd/other.yaml
            argocd/web@a.yaml.yaml
            argocd/web@b.yaml%2C%20Application%202.yaml
            argocd/web@b.yaml%2C%20Application.yaml
            argocd/x.yaml
            argocd/y.yaml
            flux/web@c.yaml%2C%20HelmRelease%202.yaml
            flux/web@c.yaml%2C%20HelmRelease.yaml"#]]
        .assert_eq(&files(""));
        assert_eq!(files("# a comment\n"), files(""));
    }

    #[test]
    fn each_application_of_a_set_has_all_its_sources() {
        let set = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: set}\nspec:\n  generators: [{list: {elements: [{name: a}, {name: b}]}}]\n  template:\n    metadata: {name: '{{name}}'}\n    spec:\n      sources:\n      - {repoURL: 'https://h/o/r', path: 'x/{{name}}'}\n      - {repoURL: 'https://h/o/r', path: 'y/{{name}}'}\n";
        let (config, tree) = (
            Config::default(),
            testing::tree(&[
                ("set.yaml", set),
                ("x/a/m.yaml", ""),
                ("x/b/m.yaml", ""),
                ("y/a/m.yaml", ""),
                ("y/b/m.yaml", ""),
            ]),
        );
        let found = find(&tree, &config, &|| Ok(Identity::new(["https://h/o/r".to_owned()], &config, []))).unwrap();
        let targets = &found.as_written().targets;
        let names = FileNames::of(targets);
        // A change touches the first source of one, and the second of the other.
        let path = |target: &Target| target.local_dir().unwrap().path.clone();
        let touched = targets.iter().filter(|target| ["x/a", "y/b"].contains(&&*path(target)));
        let all = with_all_sources(touched.cloned().map(Choice::of_target).collect(), targets);
        let built = all.iter().filter_map(|choice| choice.targets().new);
        let built: BTreeSet<String> = built.map(|target| format!("{} {}", names.file(target), path(target))).collect();
        let expected = ["argocd/a.yaml x/a", "argocd/a.yaml y/a", "argocd/b.yaml x/b", "argocd/b.yaml y/b"];
        assert_eq!(built.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_object_of_the_last_source_counts() {
        let object = |version: &str, name: &str, value: &str| {
            format!("apiVersion: {version}\nkind: A\nmetadata:\n  name: {name}\nspec: {value}\n")
        };
        let first = [object("g/v1", "a", "1"), object("g/v1", "b", "1"), object("h/v1", "b", "1")].join("---\n");
        let mut output = Vec::new();
        append(&mut output, first.as_bytes());
        append(&mut output, object("g/v2", "b", "2").as_bytes());
        let expected = [object("g/v1", "a", "1"), object("h/v1", "b", "1"), object("g/v2", "b", "2")].join("---\n");
        assert_eq!(String::from_utf8(output).unwrap(), expected);
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

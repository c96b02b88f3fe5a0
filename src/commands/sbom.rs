//! `sbom`: the content of the locks as a bill of materials.

mod component;
mod formats;
mod images;
mod licenses;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::rc::Rc;
use std::time::UNIX_EPOCH;

use clap::Args;

use super::json;
use super::localize::KustomizeArgs;
use super::messages::{self, elsewhere_note, lines};
use super::output::{Done, Format, Json, Outcome, OutputArgs, Shown};
use super::tree::ReferenceTree;
use crate::config::Config;
use crate::git::{self, LocalRepo, date};
use crate::graph::named::NamedReference;
use crate::message::failure::{FAILED, Failure, FailureKind, Failures, Result, shown};
use crate::message::redact;
use crate::plan::lock::has_nothing_to_lock;
use crate::record::{Digest, LOCK_NAME, Lock, sha256_hex};
use crate::reference::Upstream;
use crate::tree::disk::DiskTree;
use crate::tree::git::GitTree;
use crate::tree::{SharedTree, Tree, path};
use crate::workspace::{Workspace, commit, repository_offline};
use component::Component;
use images::{Images, RunBy};

/// Arguments of `sbom`.
#[derive(Debug, Clone, Args)]
pub(super) struct SbomArgs {
    /// The commit, or a directory that `--no-commit` wrote [default: HEAD]
    rev: Option<String>,

    /// Build what is deployed, and add the container images that it runs
    #[arg(long)]
    images: bool,

    #[command(flatten)]
    with: KustomizeArgs,
}

/// The components from other hosts.
pub(super) struct Sbom {
    /// The name of the subject: a repository, or a copied directory.
    name: String,
    /// The commit, or the digest of the lock of a directory.
    subject: Digest,
    /// The date of the subject, or that of `SOURCE_DATE_EPOCH`, as in RFC 3339.
    created: String,
    components: Vec<Component>,
    /// The images of `--images`.
    images: Images,
}

impl SbomArgs {
    /// Lists the content of the locks of a directory or commit, and with `--images` the images of its builds.
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let repo = LocalRepo::discover_offline()?.map(Rc::new);
        let given = given_date()?;
        let directory = super::verify::directory_argument(self.rev.as_deref(), repo.as_deref())?;
        // Images are found by building a commit, and SLSA has no place for them.
        if self.images && (directory.is_some() || output.format == Format::Slsa) {
            return Err(Failure::new("`--images` needs a commit, and a format other than `slsa`").into());
        }
        let sbom = match directory {
            Some(directory) => Sbom::of_directory(directory, repo.is_some(), given)?,
            None => self.of_commit(&repo.map_or_else(repository_offline, Ok)?, given, output.quiet)?,
        };
        Ok(Box::new(sbom))
    }

    /// Lists the content of the locks of the requested commit. `given` is the date that the user gave.
    fn of_commit(&self, repo: &Rc<LocalRepo>, given: Option<u64>, quiet: bool) -> Result<Sbom, Failures> {
        let rev = self.rev.as_deref().unwrap_or("HEAD");
        let id = commit(repo, rev)?;
        let tree = GitTree::of_commit(repo, &id)?;
        let mut locks = Vec::new();
        for lock in tree.locks()? {
            locks.extend(Lock::find(&tree, &lock)?.map(|content| (path::parent(&lock).to_owned(), content)));
        }
        // An empty bill of materials would look as if everything had been accounted for.
        if locks.is_empty() && !self.images && !has_nothing_to_lock(&Workspace::of_rev(repo.clone(), Some(rev))?)? {
            return Err(no_lock(rev).hint("lock the remote references: git kustomize-localize lock").into());
        }
        let images =
            if self.images { images::images_of(repo, &id.commit, &self.with, quiet)? } else { Images::default() };
        let components = components(Some(repo), Rc::new(tree), &locks, &images.run_by)?;
        let name = repo.remote_urls()?.first().map_or_else(|| "repository".to_owned(), |url| redact::url(url));
        // By the commit, so that the same commit gives the same bytes.
        let created = date(match given {
            Some(given) => given,
            None => committed(repo, &id.commit)?,
        });
        Ok(Sbom { name, subject: Digest::GitCommit(id.commit), created, components, images })
    }
}

impl Sbom {
    /// Lists the content of the lock of a directory that was handed over, which has no repository of its own. If it
    /// `is_in_repository`, git may have converted its line ends. `given` is the date that the user gave.
    fn of_directory(directory: &str, is_in_repository: bool, given: Option<u64>) -> Result<Sbom> {
        let tree = DiskTree::of_directory(Path::new(directory))?.converting(is_in_repository);
        let Some(lock) = Lock::find(&tree, LOCK_NAME)? else {
            return Err(no_lock(directory).hint("name a directory that `--no-commit` wrote, or a commit"));
        };
        let subject = Digest::Sha256(sha256_hex(&tree.read(LOCK_NAME)?));
        let name = lock.target.clone().unwrap_or_else(|| path::name(directory).to_owned());
        let components = components(None, Rc::new(tree), &[(String::new(), lock)], &BTreeMap::new())?;
        // The time of the lock, not of this run: the same directory gives the same bytes.
        let created = date(given.or(modified(&Path::new(directory).join(LOCK_NAME))).unwrap_or_default());
        Ok(Sbom { name, subject, created, components, images: Images::default() })
    }
}

/// When a file on disk was written, in seconds; `None` if that is unknown.
fn modified(file: &Path) -> Option<u64> {
    let time = file.metadata().ok()?.modified().ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// The failure if a commit or directory has no lock.
fn no_lock(what: &str) -> Failure {
    Failure::new(format!("`{}` has no `{LOCK_NAME}`", shown(what)))
}

/// The content of locks, each with its directory, and images: each component once, with all locations in the tree that
/// name it.
fn components(
    repo: Option<&Rc<LocalRepo>>,
    tree: SharedTree,
    locks: &[(String, Rc<Lock>)],
    images: &RunBy,
) -> Result<Vec<Component>> {
    let mut all: BTreeMap<(Upstream, String), Component> = BTreeMap::new();
    for (image, run_by) in images {
        let component = component::of_image(image, run_by.clone());
        all.insert((component.source.clone(), component.purl.clone()), component);
    }
    // Two locks may have the same upstream: at the same version one component, else two.
    for (directory, lock) in locks {
        for component in component::components(&*tree, directory, lock)? {
            match all.entry((component.source.clone(), component.purl.clone())) {
                Entry::Vacant(entry) => drop(entry.insert(component)),
                Entry::Occupied(mut entry) => entry.get_mut().merge(component),
            }
        }
    }
    // The lock does not know lines, so the locations come from the files.
    let mut all: Vec<Component> = all.into_values().collect();
    let tree = ReferenceTree::survey(repo, tree.clone(), &Config::of(&*tree, "")?, &[])?;
    let mut named: BTreeMap<&Upstream, Vec<&NamedReference>> = BTreeMap::new();
    // References inside of an upstream are the `names` of its component.
    for reference in tree.references.iter().filter(|reference| reference.from.remote.is_none()) {
        if let Some(source) = &reference.to.remote {
            named.entry(source).or_default().push(reference);
        }
    }
    for component in &mut all {
        for NamedReference { to, location, .. } in named.get(&component.source).into_iter().flatten() {
            // The version of a localized file is not known by its reference, so it may be any of its source.
            if to.locked.is_none() || to.locked == component.digest {
                component.named_by.insert(format!("{}:{}", location.file, location.position.line));
            }
        }
    }
    Ok(all)
}

/// The date of `SOURCE_DATE_EPOCH` in seconds; `None` if it is not set. Fails if it is not a number.
fn given_date() -> Result<Option<u64>> {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH") else {
        return Ok(None);
    };
    let seconds = text.to_str().and_then(|text| text.parse::<u32>().ok());
    seconds
        .map(|seconds| Some(seconds.into()))
        .ok_or_else(|| Failure::new("`SOURCE_DATE_EPOCH` is not a number of seconds"))
}

/// The date of a commit in seconds.
fn committed(repo: &LocalRepo, commit: &str) -> Result<u64> {
    let made = git::made(&repo.object("commit", commit)?.unwrap_or_default());
    made.ok_or_else(|| Failure::new(format!("the commit {commit} has no date")))
}

impl Json for Sbom {
    fn json(&self) -> String {
        json::json_text(&self.cyclonedx())
    }
}

impl Outcome for Sbom {
    /// One line for each component.
    fn text(&self, _shown: Shown) -> String {
        let lines = self.components.iter().map(|component| {
            let license = component.license().unwrap_or_else(|| "license unknown".to_owned());
            format!("{} ({license})\n", component.purl)
        });
        lines.collect()
    }

    fn report(&self, output: &OutputArgs) -> String {
        match output.format {
            Format::Json | Format::Cyclonedx => self.json(),
            Format::Spdx => json::json_text(&self.spdx()),
            Format::Slsa => json::json_text(&self.slsa()),
            _ => self.text(output.shown()),
        }
    }

    fn stderr(&self, output: &OutputArgs) -> String {
        let Images { not_built, elsewhere, .. } = &self.images;
        let note = elsewhere_note(elsewhere.len(), "the document");
        messages::failures(not_built) + &lines(note.filter(|_| !output.quiet).into_iter().collect())
    }

    fn status(&self) -> u8 {
        let not_built = &self.images.not_built;
        let is_stopped = not_built.iter().any(|failure| failure.kind == FailureKind::Stopped);
        if is_stopped { FAILED } else { u8::from(!not_built.is_empty()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::testing;

    const TOP: &str = "version: 1
remotes:
  - url: https://github.com/acme/fleet
    ref: v1
    commit: \"2222222222222222222222222222222222222222\"
    paths:
      \".\":
        names:
          - https://github.com/acme/web?ref=v1
  - url: https://github.com/acme/web
    ref: v1
    commit: \"3333333333333333333333333333333333333333\"
    paths:
      \".\": {}
left:
  - url: https://charts.example.com
    chart: redis
    version: 1.2.3
    reason: our mirror
";
    const COPY: &str = "version: 1
remotes:
  - url: https://charts.example.com
    chart: redis
    version: 1.2.3
    sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    size: 1
  - url: https://github.com/acme/fleet
    ref: v1
    commit: \"1111111111111111111111111111111111111111\"
    paths:
      \".\": {}
";

    /// The components of a tree with a lock at the top and in a copy, each with the locations that name it.
    fn components_of(top: &str, copy: &str) -> Vec<Component> {
        let kustomization = "resources:\n- https://github.com/acme/fleet?ref=v1\n";
        let tree: SharedTree = Rc::new(testing::tree(&[
            ("app/kustomization.yaml", kustomization),
            ("copy/kustomize-localize.lock", copy),
            ("kustomize-localize.lock", top),
        ]));
        let lock = |directory: &str| {
            let lock = Lock::find(&*tree, &path::join(directory, LOCK_NAME)).unwrap().unwrap();
            (directory.to_owned(), lock)
        };
        components(None, tree.clone(), &[lock(""), lock("copy")], &BTreeMap::new()).unwrap()
    }

    #[test]
    fn a_location_names_the_version_that_its_lock_has() {
        let all = components_of(TOP, COPY);
        let named = all.iter().map(|component| format!("{} {:?}", component.purl, component.named_by));
        assert_eq!(
            named.collect::<Vec<_>>(),
            [
                "pkg:helm/redis@1.2.3?repository_url=https://charts.example.com {}",
                "pkg:github/acme/fleet@1111111111111111111111111111111111111111 {}",
                "pkg:github/acme/fleet@2222222222222222222222222222222222222222 {\"app/kustomization.yaml:2\"}",
                "pkg:github/acme/web@3333333333333333333333333333333333333333 {}",
            ]
        );
    }

    #[test]
    fn a_component_has_what_each_lock_knows_in_any_order() {
        for locks in [[TOP, COPY], [COPY, TOP]] {
            let all = components_of(locks[0], locks[1]);
            let redis = all.iter().find(|component| component.name == "redis").unwrap();
            assert_eq!((redis.left.as_deref(), redis.sha256().is_some()), (Some("our mirror"), true));
        }
    }

    #[test]
    fn each_version_of_a_dependency_is_one() {
        let web = "  - url: https://github.com/acme/web\n    ref: v1\n    commit: \"4444444444444444444444444444444444444444\"\n    paths:\n      \".\": {}\n";
        let components = components_of(TOP, &format!("{COPY}{web}"));
        let (name, created, images) = (String::new(), String::new(), Images::default());
        let subject = Digest::GitCommit("1".repeat(40));
        let document = Sbom { name, subject, created, components, images }.cyclonedx();
        let fleet = document["dependencies"].as_array().unwrap().iter().find(|entry| entry["ref"] == "remote-3");
        assert_eq!(fleet.unwrap()["dependsOn"], serde_json::json!(["remote-4", "remote-5"]));
    }
}

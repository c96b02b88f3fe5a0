//! `sbom`: the content of the locks as a bill of materials.

mod component;
mod formats;
mod images;
mod licenses;

use std::collections::{BTreeMap, BTreeSet};
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
use crate::message::failure::{FAILED, Failure, FailureKind, Result, shown};
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
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let repo = LocalRepo::discover_offline()?.map(Rc::new);
        let given = given_date()?;
        let directory = super::verify::directory(self.rev.as_deref(), repo.as_deref())?;
        // Images are found by building a commit, and SLSA has no place for them.
        if self.images && (directory.is_some() || output.format == Format::Slsa) {
            return Err(Failure::new("`--images` needs a commit, and a format other than `slsa`").into());
        }
        // A directory that was handed over has no repository, so the lock in it is the only source.
        if let Some(directory) = directory {
            let tree = DiskTree::of_directory(Path::new(directory))?.converting(repo.is_some());
            let Some(lock) = Lock::at(&tree, LOCK_NAME)? else {
                return Err(no_lock(directory).hint("name a directory that `--no-commit` wrote, or a commit").into());
            };
            let subject = Digest::Sha256(sha256_hex(&tree.read(LOCK_NAME)?));
            let name = lock.target.clone().unwrap_or_else(|| path::name(directory).to_owned());
            let components = components(None, Rc::new(tree), &[(String::new(), lock)], &BTreeMap::new())?;
            // The time of the lock, not of this run: the same directory gives the same bytes.
            let written = Path::new(directory).join(LOCK_NAME).metadata().and_then(|lock| lock.modified()).ok();
            let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let created = date(given.or(written.map(|age| age.as_secs())).unwrap_or_default());
            return Ok(Box::new(Sbom { name, subject, created, components, images: Images::default() }));
        }
        let repo = repo.map_or_else(repository_offline, Ok)?;
        let rev = self.rev.as_deref().unwrap_or("HEAD");
        let id = commit(&repo, rev)?;
        let tree = GitTree::of_commit(&repo, &id)?;
        let mut locks = Vec::new();
        for lock in tree.locks()? {
            locks.extend(Lock::at(&tree, &lock)?.map(|content| (path::parent(&lock).to_owned(), content)));
        }
        // An empty bill of materials would look as if everything had been accounted for.
        if locks.is_empty() && !self.images && !has_nothing_to_lock(&Workspace::of_rev(repo.clone(), Some(rev))?)? {
            return Err(no_lock(rev).hint("lock the remote references: git kustomize-localize lock").into());
        }
        let images = if self.images {
            images::images_of(&repo, &id.commit, &self.with, output.quiet)?
        } else {
            Images::default()
        };
        let components = components(Some(&repo), Rc::new(tree), &locks, &images.run_by)?;
        let name = repo.remote_urls()?.first().map_or_else(|| "repository".to_owned(), |url| redact::url(url));
        // By the commit, so that the same commit gives the same bytes.
        let created = date(match given {
            Some(given) => given,
            None => committed(&repo, &id.commit)?,
        });
        let subject = Digest::GitCommit(id.commit);
        Ok(Box::new(Sbom { name, subject, created, components, images }))
    }
}

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
    // Two locks may have the same upstream: one component, which has several locations.
    for (directory, lock) in locks {
        for component in component::components(&*tree, directory, lock)? {
            let known = all.entry((component.source.clone(), component.purl.clone()));
            let known = known.or_insert_with(|| component.clone());
            known.paths.extend(component.paths);
            known.names.extend(component.names);
            known.licenses.extend(component.licenses);
        }
    }
    // The lock does not know lines, so the locations come from the files.
    let mut all: Vec<Component> = all.into_values().collect();
    let tree = ReferenceTree::survey(repo, tree.clone(), &Config::of(&*tree, "")?, &[])?;
    let mut named_by: BTreeMap<Option<&Upstream>, BTreeSet<String>> = BTreeMap::new();
    for reference in tree.references.iter().filter(|reference| reference.from.remote.is_none()) {
        let location = format!("{}:{}", reference.location.file, reference.location.position.line);
        named_by.entry(reference.to.remote.as_ref()).or_default().insert(location);
    }
    for component in &mut all {
        component.named_by.extend(named_by.remove(&Some(&component.source)).unwrap_or_default());
    }
    Ok(all)
}

/// The date of `SOURCE_DATE_EPOCH` in seconds; `None` if it is not set.
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

//! What can be built of a tree: a root as it is, or what an engine makes of one; with what the lock holds.

use std::path::Path;
use std::rc::Rc;

use super::Roots;
use super::program::Program;
use super::runner::{refuse_arguments, unrunnable};
use crate::graph::{Graph, Remotes, Source};
use crate::message::failure::{Failure, Failures, Result, shown};
use crate::plan;
use crate::record::LoadRestrictor;
use crate::targets::generated::ANY_FILE;
use crate::targets::generated::generated;
use crate::targets::{Engine, Found, Place, Target, at_other_revision};
use crate::tree::overlay::OverlayTree;
use crate::tree::{SharedTree, path};
use crate::workspace::{Files, Workspace};

/// A kustomization, in the tree that whoever builds it gets to see.
#[derive(Clone)]
pub(crate) struct Subject {
    tree: SharedTree,
    directory: String,
    /// What is passed to kustomize.
    arguments: Vec<String>,
}

impl Subject {
    /// Takes the root in a directory as it is.
    pub(crate) fn root(workspace: &Workspace, directory: &str) -> Subject {
        let arguments = match workspace.config.load_restrictor {
            LoadRestrictor::None => vec![ANY_FILE.to_owned()],
            LoadRestrictor::RootOnly => Vec::new(),
        };
        Subject { tree: workspace.tree.clone(), directory: directory.to_owned(), arguments }
    }

    /// Takes what the engine of a target builds.
    pub(crate) fn deployed(workspace: &Workspace, target: &Target) -> Result<Subject> {
        let tree = &workspace.tree;
        let not_built = |why: &str| Failure::new(format!("{} cannot be built here: {why}", target.by()));
        let there = match &target.place {
            Place::Here(there) => there,
            Place::External(why) | Place::Templated(why) => return Err(not_built(why)),
        };
        if let Some(revision) = at_other_revision(target) {
            return Err(not_built(&format!("it deploys `{}`", shown(revision))));
        }
        let mut seen = OverlayTree::new(tree.clone());
        // Only Flux packs what it builds.
        let all = if target.engine == Engine::Flux { tree.below("")? } else { Vec::new() };
        for place in all {
            if tree.entry(&place)?.is_some_and(|entry| target.hides(there, &place, entry)) {
                seen.remove(&place);
            }
        }
        let made = generated(&seen, target, there)?;
        let made = made.ok_or_else(|| match &there.found {
            Found::Nothing(why) => not_built(why),
            _ => not_built(&format!("`{}` is not for kustomize", path::shown(&there.path))),
        })?;
        seen.file(&path::join(&made.directory, made.file_name), &made.text, false);
        Ok(Subject { tree: Rc::new(seen), directory: made.directory, arguments: made.arguments })
    }
}

/// Among which roots something is, its directory, and its arguments.
type Call = (usize, String, Vec<String>);

/// Subjects on disk with all that they reach, to be built without the network, side by side: no tree is in it.
pub(crate) struct Written {
    program: Program,
    /// The arguments of all of them.
    more: Vec<String>,
    roots: Vec<Roots>,
    /// What to call for each subject, or why it cannot be built.
    calls: Vec<Result<Call, Failures>>,
}

impl Written {
    /// Writes subjects of a workspace. `remotes` gives what their references lead to.
    pub(crate) fn of(
        workspace: &Workspace,
        subjects: Vec<Result<Subject, Failures>>,
        remotes: &mut dyn Remotes,
        kustomize: Option<&Path>,
        more: &[String],
    ) -> Result<Written> {
        refuse_arguments(more)?;
        let mut written = Written {
            program: super::alone::program(kustomize)?,
            more: more.to_vec(),
            roots: Vec::new(),
            calls: Vec::new(),
        };
        let mut reach = |tree: &SharedTree, directories: &[String]| -> Result<Graph, Failures> {
            let source = Source { tree: tree.clone(), ..workspace.source() };
            plan::reached(workspace, source, directories, remotes)
        };
        // Roots share what they reach. One that cannot be followed does not keep the others from being built.
        let is_root = |one: &&Subject| Rc::ptr_eq(&one.tree, &workspace.tree);
        let mut roots: Vec<String> =
            subjects.iter().flatten().filter(is_root).map(|one| one.directory.clone()).collect();
        let mut shared = reach(&workspace.tree, &roots);
        if shared.is_err() {
            roots.retain(|root| reach(&workspace.tree, std::slice::from_ref(root)).is_ok());
            shared = reach(&workspace.tree, &roots);
        }
        if let (Ok(graph), false) = (shared, roots.is_empty()) {
            written.add(workspace, &graph, &roots)?;
        }
        for subject in subjects {
            let found = subject.and_then(|Subject { tree, directory, arguments }| {
                let at = if Rc::ptr_eq(&tree, &workspace.tree) && roots.contains(&directory) {
                    0
                } else {
                    let alone = std::slice::from_ref(&directory);
                    written.add(workspace, &reach(&tree, alone)?, alone)?
                };
                Ok((at, directory, arguments))
            });
            written.calls.push(found);
        }
        Ok(written)
    }

    /// Writes what a walk from some directories reached, and returns where that is.
    fn add(&mut self, workspace: &Workspace, graph: &Graph, directories: &[String]) -> Result<usize> {
        if let Some(reason) = unrunnable(graph, &self.more, &self.program) {
            return Err(Failure::new(reason));
        }
        let checks_out = matches!(workspace.files, Files::Commit { .. });
        self.roots.push(Roots::write(graph, directories, checks_out)?);
        Ok(self.roots.len() - 1)
    }

    /// Builds one of the subjects, and returns what kustomize wrote, to the byte.
    pub(crate) fn build(&self, subject: usize) -> Result<Vec<u8>, Failures> {
        let (at, directory, arguments) = self.calls[subject].as_ref().map_err(Failures::clone)?;
        Ok(self.roots[*at].build(&self.program, directory, &[&**arguments, &self.more].concat())?)
    }
}

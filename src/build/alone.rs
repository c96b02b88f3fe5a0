//! Builds of directories as they are, without another one to compare with.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::disk;
use super::inputs::{self, Fetched};
use super::program::{self, Program};
use super::run::{Building, Reach};
use crate::graph::Graph;
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, Result};
use crate::os::interrupt::{Scratch, unusable};
use crate::os::parallel::{processors, side_by_side};
use crate::targets::generated::Generated;
use crate::tree::{Tree, path};

/// Some roots of a graph on disk, each to be built from what the walk has found, without the network. They can be built
/// side by side.
pub(super) struct Roots {
    scratch: Scratch,
    fetched: Fetched,
    /// Where the tree lies that the graph starts in.
    top: PathBuf,
}

impl Roots {
    /// Writes what the roots of a walk read that began in some directories. With `checks_out` the graph is that of a
    /// commit, whose files are read as a checkout gives them.
    pub(super) fn write(graph: &Graph, directories: &[String], checks_out: bool) -> Result<Roots> {
        let scratch = Scratch::new().map_err(|error| unusable(&error))?;
        let input = scratch.path().join("input");
        let (top, known) = (inputs::place(graph, 0, &input), graph.own_roots());
        inputs::of_graph(graph, known.values().copied(), &HashSet::new(), checks_out, &input)?;
        // Of what is no root kustomize says why.
        let none = directories.iter().filter(|directory| !known.contains_key(directory.as_str()));
        let files = none.flat_map(|directory| FILE_NAMES.map(|name| path::join(directory, name)));
        fs::create_dir_all(&top).map_err(|error| unusable(&error))?;
        disk::write_temporary(&*graph.sources[0].tree, files, None, &top)?;
        Ok(Roots { fetched: Fetched::of(graph, true, &input)?, top, scratch })
    }

    /// Builds the root in a directory, a path of the tree, and returns what kustomize wrote, to the byte.
    pub(super) fn build(&self, program: &Program, directory: &str, arguments: &[String]) -> Result<Vec<u8>> {
        let private = tempfile::tempdir_in(self.scratch.path()).map_err(|error| unusable(&error))?;
        let (input, target) = (self.scratch.path().join("input"), self.top.join(directory));
        let reach = Reach::Fetched(&self.fetched);
        let build = Building { program, target: &target, arguments, reach, input: &input };
        output(&build, private.path(), &self.top)
    }
}

/// Builds kustomizations of a tree that was written to `input`, or that are put there for as long, with the network
/// closed.
pub(crate) fn build_all(tree: &dyn Tree, input: &Path, all: &[&Generated]) -> Result<Vec<Result<Vec<u8>>>> {
    let program = program(None)?;
    let private = Scratch::new().map_err(|error| unusable(&error))?;
    let one = |(number, made): (usize, &&Generated)| {
        let (target, arguments) = (&input.join(&made.directory), &made.arguments);
        let build = Building { program: &program, target, arguments, reach: Reach::Nothing, input };
        output(&build, &private.path().join(number.to_string()), input)
    };
    // What stands in another one's place for as long is alone.
    let (alone, together): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|one| one.1.is_changed);
    let together = side_by_side(&together, processors(), |_, job| (job.0, one(*job)));
    let mut outputs = BTreeMap::from_iter(together);
    for job in alone {
        let built = in_place(tree, input, job.1, || one(job))?;
        outputs.insert(job.0, built);
    }
    Ok(outputs.into_values().collect())
}

pub(super) fn program(named: Option<&Path>) -> Result<Program> {
    program::find(named)?.map_err(|reason| {
        Failure::new(reason).hint("install kustomize, or name it in the environment variable KUSTOMIZE")
    })
}

/// Returns what a build wrote, or why it failed, on one line without the temporary directory `top`.
fn output(build: &Building<'_>, private: &Path, top: &Path) -> Result<Vec<u8>> {
    let built = build.run(private)?;
    if built.success { Ok(built.stdout) } else { Err(Failure::new(built.reason(top))) }
}

/// Builds while a kustomization stands in the place of what a tree, written to `top`, has there.
fn in_place(
    tree: &dyn Tree,
    top: &Path,
    made: &Generated,
    build: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Result<Vec<u8>>> {
    let directory = top.join(&made.directory);
    // Links of the tree may lead out.
    let is_inside = || Ok(directory.canonicalize()?.starts_with(top.canonicalize()?));
    if !is_inside().map_err(|error: std::io::Error| unusable(&error))? {
        return Ok(Err(Failure::new(format!("a link leads out of the repository: `{}`", made.directory))));
    }
    let place = directory.join(made.file_name);
    let remove =
        || fs::remove_file(&place).or_else(|error| if place.symlink_metadata().is_ok() { Err(error) } else { Ok(()) });
    remove().and_then(|()| fs::write(&place, &made.text)).map_err(|error| unusable(&error))?;
    let built = build();
    remove().map_err(|error| unusable(&error))?;
    disk::write_temporary(tree, [path::join(&made.directory, made.file_name)], None, top)?;
    Ok(built)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::rc::Rc;

    use tempfile::TempDir;

    use super::*;
    use crate::graph;
    use crate::tree::overlay::OverlayTree;

    fn made(directory: &str) -> Generated {
        Generated {
            directory: directory.to_owned(),
            file_name: "kustomization.yaml",
            text: b"made".to_vec(),
            is_changed: true,
            files: Vec::new(),
            arguments: Vec::new(),
        }
    }

    fn tree(files: &[(&str, &str)], links: &[(&str, &str)]) -> OverlayTree {
        let mut tree = OverlayTree::default();
        files.iter().for_each(|(path, text)| tree.file(path, text.as_bytes(), false));
        links.iter().for_each(|(path, target)| tree.link(path, target));
        tree
    }

    #[test]
    fn what_stood_there_comes_back() {
        let all = [("app/kustomization.yaml", "before"), ("app/x", "")];
        for files in [&all[..], &all[1..]] {
            let (top, tree) = (TempDir::new().unwrap(), tree(files, &[]));
            disk::write(&tree, tree.below("").unwrap(), None, top.path()).unwrap();
            let place = top.path().join("app/kustomization.yaml");
            let before = fs::read_to_string(&place).ok();
            let build = || Ok(fs::read(&place).unwrap());
            assert_eq!(in_place(&tree, top.path(), &made("app"), build).unwrap().unwrap(), b"made");
            assert_eq!(fs::read_to_string(&place).ok(), before);
        }
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let (top, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let tree = tree(&[("real.yaml", "theirs")], &[("app/kustomization.yaml", "../real.yaml")]);
        disk::write(&tree, tree.below("").unwrap(), None, top.path()).unwrap();
        in_place(&tree, top.path(), &made("app"), || Ok(Vec::new())).unwrap().unwrap();
        let place = top.path().join("app/kustomization.yaml");
        assert_eq!(fs::read_link(&place).unwrap(), Path::new("../real.yaml"));
        assert_eq!(fs::read_to_string(&place).unwrap(), "theirs");
        symlink(outside.path(), top.path().join("link")).unwrap();
        assert!(in_place(&tree, top.path(), &made("link"), || Ok(Vec::new())).unwrap().is_err());
        assert!(in_place(&tree, top.path(), &made("link/new"), || Ok(Vec::new())).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_root_is_built_to_the_byte() {
        let Ok(Ok(program)) = program::find(None) else { return };
        let map = "apiVersion: v1\ndata:\n  text: |\n    ::debug::x\nkind: ConfigMap\nmetadata:\n  name: map\n";
        let files = [
            ("app/kustomization.yaml", "resources: [../base]\n"),
            ("base/kustomization.yaml", "resources: [map.yaml]\n"),
            ("base/map.yaml", map),
            ("bad/kustomization.yaml", "resources: [nothing.yaml]\n"),
        ];
        let all = ["app", "bad"].map(str::to_owned);
        let graph = graph::inputs::explore(Rc::new(tree(&files, &[])), &all).graph;
        let roots = Roots::write(&graph, &all, false).unwrap();
        assert_eq!(String::from_utf8(roots.build(&program, "app", &[]).unwrap()).unwrap(), map);
        let failure = roots.build(&program, "bad", &[]).unwrap_err();
        assert!(failure.message.contains("nothing.yaml") && !failure.message.contains("/input/"), "{failure}");
    }
}

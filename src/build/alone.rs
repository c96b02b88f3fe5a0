//! Builds of directories as they are, without another one to compare with.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;

use super::disk;
use super::inputs::{self, Answers};
use super::memory::Wants;
use super::program::Program;
use super::run::Building;
use crate::graph::Graph;
use crate::graph::inputs::explore;
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, FailureKind, Failures, Result};
use crate::os::interrupt::{Scratch, unusable};
use crate::targets::chart;
use crate::targets::variables::Variables;
use crate::tree::{SharedTree, path};

/// Some roots of a graph on disk, each to be built from what the walk has found, without the network. They can be built
/// side by side.
pub(super) struct Roots {
    scratch: Scratch,
    answers: Answers,
    /// Where the tree lies that each root is built in, by the directory of the root.
    tops: BTreeMap<String, PathBuf>,
}

impl Roots {
    /// Writes what the roots of a walk read that began in some directories; with `whole`, where nothing was fetched,
    /// everything that is in the tree: what was read may not be all that kustomize reads. With `checks_out` the graph is
    /// that of a commit, whose files are read as a checkout gives them.
    pub(super) fn write(graph: &Graph, directories: &[String], checks_out: bool, whole: bool) -> Result<Roots> {
        let scratch = Scratch::new().map_err(|error| unusable(&error))?;
        let (input, known) = (scratch.path().join("input"), graph.own_roots());
        let numbered = || directories.iter().enumerate();
        let top = |number| if whole { input.join("whole") } else { inputs::own(graph, number, &input) };
        let tops: BTreeMap<_, _> = numbered().map(|(number, directory)| (directory.clone(), top(number))).collect();
        if whole {
            inputs::whole(&graph.sources[0], checks_out, &input.join("whole"))?;
        } else {
            let roots = numbered().filter_map(|(number, directory)| Some((number, *known.get(directory.as_str())?)));
            inputs::of_graph(graph, roots, &HashSet::new(), checks_out, &input)?;
        }
        for (directory, top) in tops.iter().filter(|(directory, _)| !known.contains_key(directory.as_str())) {
            // Of what is no root kustomize says why.
            fs::create_dir_all(top).map_err(|error| unusable(&error))?;
            let files = FILE_NAMES.map(|name| path::join(directory, name));
            disk::write_temporary(&*graph.sources[0].tree, files, None, top)?;
        }
        Ok(Roots { answers: Answers::of(graph, true, &input)?, tops, scratch })
    }

    /// Writes a chart with all that links in it lead to, and values beside it. Returns the files with these, too.
    pub(super) fn chart(
        tree: &SharedTree,
        directory: &str,
        values: &[Vec<u8>],
        checks_out: bool,
    ) -> Result<(Roots, Vec<PathBuf>)> {
        let scratch = Scratch::new().map_err(|error| unusable(&error))?;
        let input = scratch.path().join("input");
        let (top, beside) = (input.join("tree"), input.join("values"));
        let places = chart::places(&**tree, directory)?;
        disk::write_temporary(&**tree, places, inputs::conversion(checks_out).as_ref(), &top)?;
        fs::create_dir_all(&beside).map_err(|error| unusable(&error))?;
        let mut files = Vec::new();
        for (number, text) in values.iter().enumerate() {
            files.push(beside.join(format!("{number}.yaml")));
            fs::write(&files[number], text).map_err(|error| unusable(&error))?;
        }
        let answers = Answers::of(&explore(tree.clone(), &[]).graph, true, &input)?;
        let tops = [(directory.to_owned(), top)].into();
        Ok((Roots { scratch, answers, tops }, files))
    }

    /// Builds the root in one of the directories, and returns what kustomize wrote, with variables filled in; else why it
    /// failed, on one line without the temporary directory.
    pub(super) fn build(
        &self,
        program: &Program,
        directory: &str,
        arguments: &[String],
        variables: &Variables,
        wants: Wants,
    ) -> Result<Vec<u8>, Failures> {
        let (input, top) = (self.scratch.path().join("input"), &self.tops[directory]);
        let (target, answers) = (top.join(directory), &self.answers);
        let build = Building { program, target: &target, arguments, answers, input: &input, top, variables };
        let built = build.output(self.scratch.path(), wants)?;
        if !built.refused.is_empty() {
            let unread = |request: &String| {
                let failure = Failure::new(super::unread_reference(program.kind.name(), request))
                    .because(FailureKind::UnreadReference);
                failure.hint("git kustomize-localize explain unread-reference")
            };
            return Err(Failures(built.refused.iter().map(unread).collect()));
        }
        if built.success {
            return Ok(built.stdout);
        }
        let reason = built.reason(top).replace(&format!("{}/", input.display()), "");
        Err(Failure::new(reason).because(FailureKind::NotBuilt).into())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::build::program;
    use crate::graph;
    use crate::tree::overlay::OverlayTree;

    fn tree(files: &[(&str, &str)], links: &[(&str, &str)]) -> OverlayTree {
        let mut tree = OverlayTree::default();
        files.iter().for_each(|(path, text)| tree.file(path, text.as_bytes(), false));
        links.iter().for_each(|(path, target)| tree.link(path, target));
        tree
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
        let roots = Roots::write(&graph, &all, false, false).unwrap();
        let build = |root: &str| roots.build(&program, root, &[], &Variables::default(), Wants::Bytes);
        assert_eq!(String::from_utf8(build("app").unwrap()).unwrap(), map);
        let Failures(failures) = build("bad").unwrap_err();
        let failure = &failures[0];
        assert!(failure.message.contains("nothing.yaml") && !failure.message.contains("/input/"), "{failure}");
    }
}

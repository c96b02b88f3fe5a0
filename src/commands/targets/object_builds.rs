//! The builds that are run for what they make of objects.

use std::collections::BTreeSet;
use std::path::Path;

use crate::build;
use crate::graph::Graph;
use crate::graph::inputs::Input;
use crate::message::failure::Result;
use crate::os::interrupt::{Scratch, unusable};
use crate::targets::built::{Builder, Output, inputs_of};
use crate::targets::generated::Generated;

/// How many are run.
const MOST: usize = 1000;

/// The builds of a tree.
#[derive(Default)]
pub(super) struct ObjectBuilds {
    /// What builds read of the tree, once there is one.
    scratch: Option<Scratch>,
    /// The files that are there.
    written: BTreeSet<String>,
    count: usize,
}

impl ObjectBuilds {
    /// Builds what needs nothing but the tree.
    pub(super) fn run(&mut self, graph: &Graph, builders: &[&Builder]) -> Result<Vec<Output>> {
        let hermetic = builders.iter().filter(|one| one.reaches.is_empty());
        let left = MOST.saturating_sub(self.count);
        let all: Vec<&Builder> = hermetic.copied().take(left).collect();
        self.count += all.len();
        let mut outputs = self.outputs(graph, &all)?.into_iter();
        let output = |builder: &&Builder| match builder.reaches.first() {
            Some(reached) => Err(format!("it reaches {}: {}", reached.name, reached.state)),
            None => match outputs.next() {
                Some(output) => output.map_err(|failure| failure.message),
                None => Err(format!("more than {MOST} builds are not run")),
            },
        };
        Ok(builders.iter().map(output).collect())
    }

    fn outputs(&mut self, graph: &Graph, all: &[&Builder]) -> Result<Vec<Result<Vec<u8>>>> {
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let scratch = match self.scratch.take() {
            Some(scratch) => scratch,
            None => Scratch::new().map_err(|error| unusable(&error))?,
        };
        self.write(graph, all, scratch.path())?;
        let made: Vec<&Generated> = all.iter().map(|one| &one.made).collect();
        let built = build::build_all(&*graph.sources[0].tree, scratch.path(), &made);
        self.scratch = Some(scratch);
        Ok(match built {
            Ok(outputs) => outputs,
            Err(failure) => all.iter().map(|_| Err(failure.clone())).collect(),
        })
    }

    /// Writes what builds read below a directory.
    fn write(&mut self, graph: &Graph, all: &[&Builder], top: &Path) -> Result<()> {
        let tree = &*graph.sources[0].tree;
        let mut places = BTreeSet::new();
        for input in inputs_of(graph, all)? {
            match input {
                Input::At(place) => {
                    places.insert(place);
                }
                Input::Below(directory) => places.extend(tree.below(&directory)?),
                // What is remote is not built.
                Input::Remote(_) | Input::Chart(_) => {}
            }
        }
        let places = places.into_iter().filter(|place| self.written.insert(place.clone()));
        build::disk::write_temporary(tree, places, None, top)
    }
}

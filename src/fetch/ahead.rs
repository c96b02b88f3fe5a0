//! Fetching the files of repositories before the walk asks for them.

use std::collections::HashMap;

use super::checkout::{CheckoutTree, Stop};
use super::git::Batch;
use super::{Fetcher, survey, work};
use crate::message::failure::{Failure, FailureKind};
use crate::os::process::Terminal;
use crate::reference::RepoRef;

impl Fetcher {
    /// Fetches the files that builds of these roots read, all that are known at one moment together.
    pub(super) fn bring_files(&self, roots: &HashMap<RepoRef, Vec<String>>) {
        let trees: Vec<(&CheckoutTree, &Vec<String>)> =
            roots.iter().filter_map(|(key, directories)| Some((&**self.checkouts.get(key)?, directories))).collect();
        loop {
            let mut batches: Vec<Batch> = Vec::new();
            let mut stops: Vec<Vec<Stop>> = Vec::new();
            for (tree, directories) in &trees {
                for (batch, stop) in tree.missing(|tree| survey::roots(tree, directories)) {
                    match batches.iter().position(|other| other.is_like(&batch)) {
                        Some(place) => {
                            batches[place].extend(batch);
                            stops[place].push(stop);
                        }
                        None => {
                            batches.push(batch);
                            stops.push(vec![stop]);
                        }
                    }
                }
            }
            if batches.is_empty() {
                return;
            }
            let answers = work::files(&batches, &self.git, &self.progress);
            for ((answer, batch), stops) in answers.into_iter().zip(&batches).zip(stops) {
                let asks =
                    |failure: &Failure| failure.kind == FailureKind::Login && self.may_ask(&batch.fetched.request);
                let answer = match answer {
                    Err(failure) if asks(&failure) => {
                        self.progress.suspend(|| self.git.fetch_files(batch, Terminal::Shared))
                    }
                    answer => answer,
                };
                if let Err(failure) = answer {
                    // Reading one of the files will say so.
                    for stop in stops {
                        let _ = stop.set(failure.clone());
                    }
                }
            }
        }
    }
}

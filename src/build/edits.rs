//! Runs `kustomize edit` before a build as Argo CD does: on a copy of the kustomization, with its components beside it.

use std::fs;
use std::sync::Arc;

use super::disk;
use super::program::{Program, Tool};
use super::roots::{Unbuilt, Writing};
use super::run::{BuildFiles, BuildOutput, BuildRun, RootDir};
use super::subject::BuildSpec;
use crate::graph::Graph;
use crate::graph::inputs::{inputs_of_directory, paths_of};
use crate::message::failure::{Failure, FailureKind, Result, command};
use crate::os::interrupt::unusable;
use crate::record::sha256_hex;
use crate::targets::variables::Variables;
use crate::tree::path;

/// A kustomization with this text may have values of Secrets, so its edits are not remembered.
const SECRETS: &[u8] = b"secretGenerator";

/// A kustomization on disk, to be edited. It holds no tree, so that threads can share it.
pub(super) struct Edits {
    /// The copy. All that its edits read is below its top; the inputs beside it are empty.
    root: RootDir,
    file: String,
    commands: Vec<Vec<String>>,
}

impl Edits {
    /// Writes the files that the edits of a subject read; `None` if it has no edits.
    pub(super) fn write(subject: &BuildSpec) -> Result<Option<Edits>> {
        let BuildSpec { tree, directory, file, edits, .. } = subject;
        if edits.is_empty() {
            return Ok(None);
        }
        let files = BuildFiles::of(&Graph::default(), Writing::INPUT)?;
        // Beside the inputs, because an edit writes here, and no build may change its inputs.
        let top = files.scratch.path().join("edited");
        // `kustomize edit add component` looks for the components, so their directories must exist.
        let components = edits.iter().filter(|words| words.starts_with(&["add", "component"].map(str::to_owned)));
        let components = components.flat_map(|words| &words[2..]);
        let whole: Vec<String> = components.filter_map(|text| path::resolve(directory, &fixed_part(text))).collect();
        let paths = paths_of(&**tree, inputs_of_directory(&**tree, directory, &whole)?)?;
        disk::write_temporary(&**tree, paths, None, &top)?;
        let (files, directory) = (Arc::new(files), directory.clone());
        // `kustomize edit` runs no code, and is not tried again among all files.
        let root = RootDir { files, layout: None, top, directory, runs: false, reads_outside: false };
        Ok(Some(Edits { root, file: file.clone(), commands: edits.clone() }))
    }

    /// Runs the edits, and returns the edited kustomization.
    pub(super) fn run(&self, program: &Program) -> Result<Vec<u8>, Unbuilt> {
        if program.kind != Tool::Kustomize {
            let failure = Failure::new("Argo CD runs `kustomize edit` first, which kubectl does not have");
            return Err(failure
                .because(FailureKind::NotKnown)
                .hint("install kustomize, or name it in the environment variable KUSTOMIZE")
                .into());
        }
        let digest = self.input_digest(program)?;
        let memory = program.memory.as_ref().zip(digest.as_deref());
        // The same edits of the same files give the same text, and each is a process.
        if let Some(known) = memory.and_then(|(memory, digest)| memory.get(digest)) {
            return Ok(known.stdout);
        }
        for words in &self.commands {
            let run = BuildRun::of(self.root.clone(), program, words.clone(), Variables::default());
            let build = BuildRun { edits: true, ..run }.run()?;
            if let Some(unread) = Unbuilt::unread(&build, program) {
                return Err(unread);
            }
            if !build.success {
                let (command, reason) = (command("kustomize edit", words), build.reason());
                // kustomize prints its usage after the reason.
                let reason = reason.split(" Usage: ").next().unwrap_or_default();
                return Err(Unbuilt::Failed(format!("`{command}` fails: {reason}")));
            }
        }
        let text = fs::read(self.root.top.join(&self.file)).map_err(unusable)?;
        // A kustomization with literals of Secrets is written nowhere.
        if let Some((memory, digest)) = memory
            && memchr::memmem::find(&text, SECRETS).is_none()
        {
            memory.put(digest, &BuildOutput::known(text.clone()));
        }
        Ok(text)
    }

    /// The digest of everything that decides the result; `None` if the program cannot be read.
    fn input_digest(&self, program: &Program) -> Result<Option<String>> {
        let Some(identity) = program.identity() else { return Ok(None) };
        let (Edits { root: RootDir { top, directory, .. }, commands, .. }, version) = (self, env!("CARGO_PKG_VERSION"));
        let files = disk::digest(top)?;
        let text = format!("edit {version} {identity} {:?} {directory:?} {commands:?} {files}", program.network);
        Ok(Some(sha256_hex(text.as_bytes())))
    }
}

/// A path without the part that is a pattern: the directory below which everything is that the pattern matches.
fn fixed_part(text: &str) -> String {
    match text.find(['*', '?', '[', '\\']) {
        Some(end) => text[..end].rsplit_once('/').map_or("", |(above, _)| above).to_owned(),
        None => text.to_owned(),
    }
}

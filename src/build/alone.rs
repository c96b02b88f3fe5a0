//! Builds of directories as they are, without another one to compare with.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::disk::{self, not_written};
use super::program::{self, Program};
use super::run::{Building, Reach};
use crate::message::failure::{Failure, Result};
use crate::os::interrupt::{Scratch, unusable};
use crate::os::parallel::{processors, side_by_side};
use crate::targets::generated::Generated;

/// Builds a directory that lies in `input` with the kustomize of this machine, the user's git, and the network.
pub(crate) fn build_one(input: &Path, directory: &Path, arguments: &[String]) -> Result<Vec<u8>> {
    let private = Scratch::new().map_err(|error| unusable(&error))?;
    build(&program()?, input, directory, arguments, Reach::Upstream, private.path())
}

/// Builds kustomizations that lie in `input`, or are put there for as long, with the network closed.
pub(crate) fn build_all(input: &Path, all: &[&Generated]) -> Result<Vec<Result<Vec<u8>>>> {
    let program = program()?;
    let private = Scratch::new().map_err(|error| unusable(&error))?;
    let one = |(number, made): (usize, &&Generated)| {
        let directory = input.join(&made.directory);
        let _in_place = if made.is_changed { Some(InPlace::of(input, &directory, made)?) } else { None };
        let private = private.path().join(number.to_string());
        build(&program, input, &directory, &made.arguments, Reach::Nothing, &private)
    };
    // What stands in another one's place for as long is alone.
    let (alone, together): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|one| one.1.is_changed);
    let together = side_by_side(&together, processors(), |_, job| (job.0, one(*job)));
    let alone = alone.into_iter().map(|job| (job.0, one(job)));
    let outputs: BTreeMap<usize, Result<Vec<u8>>> = together.into_iter().chain(alone).collect();
    Ok(outputs.into_values().collect())
}

fn program() -> Result<Program> {
    program::find(None)?.map_err(|reason| {
        Failure::new(reason).hint("install kustomize, or name it in the environment variable KUSTOMIZE")
    })
}

/// Returns what a build wrote, or why it failed, on one line without the temporary directory.
fn build(
    program: &Program,
    input: &Path,
    target: &Path,
    arguments: &[String],
    reach: Reach<'_>,
    private: &Path,
) -> Result<Vec<u8>> {
    let built = Building { program, target, arguments, reach, input }.run(private)?;
    if built.success {
        return Ok(built.stdout);
    }
    let said = built.said.replace(&format!("{}/", input.display()), "");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(Failure::new(said.trim_start_matches("Error: ").to_owned()))
}

/// A kustomization that stands in another one's place until this is dropped.
struct InPlace {
    place: PathBuf,
    /// Where what stood there is for as long: a link stays a link, and is not written through.
    aside: PathBuf,
}

impl InPlace {
    /// Puts one kustomization into `directory`, in a tree at `top` the links of which may lead out.
    fn of(top: &Path, directory: &Path, made: &Generated) -> Result<InPlace> {
        let is_inside = || Ok(directory.canonicalize()?.starts_with(top.canonicalize()?));
        if !is_inside().map_err(|error| not_written(&error))? {
            return Err(Failure::new(format!("a link leads out of the repository: `{}`", made.directory)));
        }
        let place = directory.join(made.file_name);
        let aside = directory.join(format!("{}.before", made.file_name));
        // Most often there is nothing.
        fs::rename(&place, &aside).ok();
        // From here on it is put back, whatever happens.
        let in_place = InPlace { place, aside };
        disk::write(&in_place.place, &made.text, false)?;
        Ok(in_place)
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        // All of it is in a directory of this run, which is removed at its end.
        if fs::rename(&self.aside, &self.place).is_err() {
            fs::remove_file(&self.place).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

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

    fn put(top: &Path, directory: &str) -> Result<InPlace> {
        InPlace::of(top, &top.join(directory), &made(directory))
    }

    #[test]
    fn what_stood_there_comes_back() {
        let top = TempDir::new().unwrap();
        let place = top.path().join("app/kustomization.yaml");
        fs::create_dir(top.path().join("app")).unwrap();
        for before in [None, Some("before")] {
            if let Some(text) = before {
                fs::write(&place, text).unwrap();
            }
            let in_place = put(top.path(), "app").unwrap();
            assert_eq!(fs::read_to_string(&place).unwrap(), "made");
            drop(in_place);
            assert_eq!(fs::read_to_string(&place).ok().as_deref(), before);
        }
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let outside = TempDir::new().unwrap();
        let file = outside.path().join("kustomization.yaml");
        fs::write(&file, "theirs").unwrap();
        let top = TempDir::new().unwrap();
        fs::create_dir(top.path().join("app")).unwrap();
        let place = top.path().join("app/kustomization.yaml");
        symlink(&file, &place).unwrap();
        drop(put(top.path(), "app").unwrap());
        assert_eq!(fs::read_link(&place).unwrap(), file);
        symlink(outside.path(), top.path().join("link")).unwrap();
        for directory in ["link", "link/new"] {
            assert!(put(top.path(), directory).is_err());
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}

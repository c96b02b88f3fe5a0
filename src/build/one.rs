//! Builds of directories as they are, without another one to compare with.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::build_inputs::not_put;
use super::fake_git::Manifest;
use super::program::{self, Program, Search};
use super::run::{self, Build, BuildEnv, Git, Network};
use crate::message::failure::{Failure, Result};
use crate::os::interrupt::{Scratch, unusable};
use crate::os::parallel::{processors, side_by_side};
use crate::targets::generated::Generated;
use crate::tree::path;

/// Builds a directory that lies in `input` with the kustomize of this machine, the user's git, and the network.
pub(crate) fn build_one(input: &Path, directory: &Path, arguments: &[String]) -> Result<Vec<u8>> {
    let program = program()?;
    let private = Scratch::new().map_err(|error| unusable(&error))?;
    let env = BuildEnv { git: Git::Real, network: Network::Open, input };
    let built = run::build(&program, directory.as_os_str(), arguments, private.path(), env, super::runner::TIMEOUT)?;
    output(built, input)
}

/// Builds kustomizations that lie in `input`, or are put there for as long, with the network closed.
pub(crate) fn build_all(input: &Path, all: &[&Generated]) -> Result<Vec<Result<Vec<u8>>>> {
    let program = program()?;
    let private = Scratch::new().map_err(|error| unusable(&error))?;
    let nothing = private.path().join("nothing.json");
    Manifest::default().write(&nothing)?;
    let one = |(number, made): (usize, &&Generated)| {
        let _in_place = if made.is_changed { Some(InPlace::of(input, made)?) } else { None };
        let env = BuildEnv { git: Git::StandIn(&nothing), network: Network::Closed, input };
        let built = run::build(
            &program,
            input.join(&made.directory).as_os_str(),
            &made.arguments,
            &private.path().join(number.to_string()),
            env,
            super::runner::TIMEOUT,
        )?;
        output(built, input)
    };
    // What stands in another one's place for as long is alone.
    let (alone, together): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|one| one.1.is_changed);
    let together = side_by_side(&together, processors(), |_, job| (job.0, one(*job)));
    let alone = alone.into_iter().map(|job| (job.0, one(job)));
    let outputs: BTreeMap<usize, Result<Vec<u8>>> = together.into_iter().chain(alone).collect();
    Ok(outputs.into_values().collect())
}

fn program() -> Result<Program> {
    match program::find(None)? {
        Search::Found(program) => Ok(program),
        Search::Nothing(reason) => {
            Err(Failure::new(reason).hint("install kustomize, or name it in the environment variable KUSTOMIZE"))
        }
    }
}

/// Returns what a build wrote, or why it failed, on one line without the temporary directory.
fn output(built: Build, input: &Path) -> Result<Vec<u8>> {
    if built.success {
        return Ok(built.stdout);
    }
    let top = format!("{}/", input.display());
    let said = built.said.replace(&top, "");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(Failure::new(said.trim_start_matches("Error: ").to_owned()))
}

/// A kustomization that stands in another one's place until this is dropped.
struct InPlace {
    place: PathBuf,
    /// Where what stood there is for as long: a link stays a link, and is not written through.
    aside: Option<PathBuf>,
}

impl InPlace {
    /// Puts one kustomization into a tree at `top`.
    fn of(top: &Path, made: &Generated) -> Result<InPlace> {
        let relative = path::join(&made.directory, made.file_name);
        let place = top.join(&relative);
        let aside = if place.symlink_metadata().is_ok() {
            contained(top, &place)?;
            let aside = place.with_file_name(format!("{}.before", made.file_name));
            fs::rename(&place, &aside).map_err(|error| not_put(&error))?;
            Some(aside)
        } else {
            None
        };
        // From here on it is put back, whatever happens.
        let in_place = InPlace { place, aside };
        write(top, &relative, &made.text)?;
        Ok(in_place)
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        // All of it is in a directory of this run, which is removed at its end.
        let _ = match &self.aside {
            Some(aside) => fs::rename(aside, &self.place),
            None => fs::remove_file(&self.place),
        };
    }
}

/// Writes a new file below `top`, and the directories on the way.
fn write(top: &Path, relative: &str, bytes: &[u8]) -> Result<()> {
    let place = top.join(relative);
    contained(top, &place)?;
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent).map_err(|error| not_put(&error))?;
    }
    fs::write(place, bytes).map_err(|error| not_put(&error))
}

/// Refuses a place that links of the repository lead out of `top`.
fn contained(top: &Path, place: &Path) -> Result<()> {
    let inside = || {
        let mut above = place.ancestors().skip(1);
        let there = above.find(|directory| directory.symlink_metadata().is_ok());
        let there = there.ok_or(std::io::ErrorKind::NotFound)?.canonicalize()?;
        if there.starts_with(top.canonicalize()?) {
            Ok(())
        } else {
            Err(std::io::Error::other("a link leads out of the repository"))
        }
    };
    inside().map_err(|error: std::io::Error| not_put(&error))
}

#[cfg(all(test, unix))]
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

    #[test]
    fn what_stood_there_comes_back() {
        let top = TempDir::new().unwrap();
        let place = top.path().join("app/kustomization.yaml");
        for before in [None, Some("before")] {
            if let Some(text) = before {
                fs::write(&place, text).unwrap();
            }
            let in_place = InPlace::of(top.path(), &made("app")).unwrap();
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
        drop(InPlace::of(top.path(), &made("app")).unwrap());
        assert_eq!(fs::read_link(&place).unwrap(), file);
        symlink(outside.path(), top.path().join("link")).unwrap();
        for directory in ["link", "link/new"] {
            assert!(InPlace::of(top.path(), &made(directory)).is_err());
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}

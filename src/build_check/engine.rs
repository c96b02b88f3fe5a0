//! Puts what an engine builds in the place of what stands there, for as long as it is built.

use std::fs;
use std::path::{Path, PathBuf};

use super::EngineBuild;
use super::build_inputs::{BuildInputs, not_put};
use crate::failure::Result;
use crate::plan::Original;
use crate::targets::Hidden;
use crate::targets::generated::Generated;
use crate::tree::{Entry, path};

/// A kustomization that stands in another one's place until this is dropped.
pub(super) struct InPlace {
    place: PathBuf,
    /// Where what stood there is for as long: a link stays a link, and is not written through.
    aside: Option<PathBuf>,
}

/// Both sides as an engine has them, until this is dropped.
pub(super) struct Both {
    _in_place: [InPlace; 2],
    _away: [Away; 2],
}

impl Both {
    /// Puts both kustomizations of a build, and the plain files that they name, where they are not there yet, and takes
    /// away what the engine does not see.
    pub(super) fn put(inputs: &BuildInputs, build: &EngineBuild) -> Result<Both> {
        let original = inputs.original(&Original::Directory(String::new()));
        let localized = inputs.localized("");
        let sides = [(&original, &build.original), (&localized, &build.localized)];
        for (top, side) in sides {
            for (place, bytes) in &side.files {
                if top.join(place).symlink_metadata().is_err() {
                    write(top, place, bytes)?;
                }
            }
        }
        let away = [
            Away::take(&original, &build.hidden)?,
            Away::take(&localized, &build.hidden)?,
        ];
        Ok(Both {
            _in_place: [
                InPlace::of(&original, &build.original.made)?,
                InPlace::of(&localized, &build.localized.made)?,
            ],
            _away: away,
        })
    }
}

/// Files that are not there until this is dropped: each with where it is for as long.
#[derive(Default)]
struct Away(Vec<(PathBuf, PathBuf)>);

impl Away {
    /// Takes away what is hidden below `top`.
    fn take(top: &Path, hidden: &Hidden) -> Result<Away> {
        let aside = aside(top);
        let mut away = Away::default();
        let mut todo = vec![String::new()];
        while let Some(directory) = todo.pop() {
            let names = fs::read_dir(top.join(&directory)).map_err(|error| not_put(&error))?;
            for name in names {
                let name = name.map_err(|error| not_put(&error))?;
                // All that is here was written by us, from paths that are texts.
                let Some(place) = name
                    .file_name()
                    .to_str()
                    .map(|name| path::join(&directory, name))
                else {
                    continue;
                };
                let kind = name.file_type().map_err(|error| not_put(&error))?;
                let entry = if kind.is_dir() {
                    todo.push(place.clone());
                    continue;
                } else if kind.is_symlink() {
                    Entry::Link
                } else {
                    Entry::File { executable: false }
                };
                if hidden.hides(&place, entry) {
                    fs::create_dir_all(&aside).map_err(|error| not_put(&error))?;
                    let to = aside.join(away.0.len().to_string());
                    fs::rename(top.join(&place), &to).map_err(|error| not_put(&error))?;
                    away.0.push((to, top.join(&place)));
                }
            }
        }
        Ok(away)
    }
}

/// Returns where the files of `top` are that are taken away.
fn aside(top: &Path) -> PathBuf {
    let mut name = top.components().as_path().as_os_str().to_owned();
    name.push(".away");
    PathBuf::from(name)
}

impl Drop for Away {
    fn drop(&mut self) {
        for (from, to) in &self.0 {
            // As for a kustomization: all of it is removed at the end of this run.
            let _ = fs::rename(from, to);
        }
    }
}

impl InPlace {
    /// Puts one kustomization into a tree at `top`.
    pub(super) fn of(top: &Path, made: &Generated) -> Result<InPlace> {
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

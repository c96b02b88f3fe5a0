//! The one writer of trees to disk: each entry at its path from the top, so that relative links lead where they did.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::message::failure::{Failure, Result};
use crate::os::failpoint;
use crate::os::interrupt::unusable;
use crate::record::sha256_hex;
use crate::tree::checkout::Conversion;
use crate::tree::disk::DiskTree;
use crate::tree::{Entry, Tree, path};

/// The files that were written for builds, by content and mode: an equal file is a hard link. Nobody may write to them.
#[derive(Debug, Default)]
pub(crate) struct Pool(HashMap<(String, bool), PathBuf>);

impl Pool {
    fn file(&mut self, to: &Path, bytes: &[u8], executable: bool) -> io::Result<()> {
        let first = self.0.entry((sha256_hex(bytes), executable)).or_insert_with(|| to.to_owned());
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        // A file has so many names at most, and not every file system knows them.
        if first != to && fs::hard_link(first, to).is_ok() { Ok(()) } else { file(to, bytes, executable) }
    }
}

/// Writes the nodes at some paths of a tree below `top`: a directory empty, a link if its target is in the tree. With a
/// conversion the files are those of a checkout. An unreadable node fails at once; the inner result is that of writing.
pub(crate) fn write<P: AsRef<str>>(
    tree: &dyn Tree,
    places: impl IntoIterator<Item = P>,
    conversion: Option<&Conversion>,
    top: &Path,
    mut pool: Option<&mut Pool>,
) -> Result<Result<()>> {
    let mut links: Vec<(PathBuf, String)> = Vec::new();
    for path in places {
        let path = path.as_ref();
        let to = top.join(path);
        let written = match tree.entry(path)? {
            Some(Entry::File { executable }) => {
                let bytes = match conversion {
                    Some(conversion) => conversion.read(tree, path)?,
                    None => tree.read(path)?,
                };
                match pool.as_deref_mut() {
                    Some(pool) => pool.file(&to, &bytes, executable),
                    None => file(&to, &bytes, executable),
                }
            }
            Some(Entry::Directory) => fs::create_dir_all(&to),
            Some(Entry::Link) => {
                links.extend(link_text(tree, path)?.map(|text| (to, text)));
                Ok(())
            }
            // A checkout has an empty directory, or nothing, there.
            Some(Entry::Submodule) | None => Ok(()),
        };
        if let Err(error) = written {
            return Ok(Err(not_written(path, &error)));
        }
    }
    // Links come last, so that nothing is written through a link.
    Ok(links.iter().try_for_each(|(to, text)| link(text, to).map_err(|error| not_written(text, &error))))
}

/// Writes the same below the temporary directory.
pub(crate) fn write_temporary<P: AsRef<str>>(
    tree: &dyn Tree,
    places: impl IntoIterator<Item = P>,
    conversion: Option<&Conversion>,
    top: &Path,
    pool: Option<&mut Pool>,
) -> Result<()> {
    write(tree, places, conversion, top, pool)?.map_err(unusable)
}

fn not_written(path: &str, error: &io::Error) -> Failure {
    Failure::new(format!("could not write `{path}`: {error}"))
}

/// Writes a file, and the directories on the way.
fn file(disk_path: &Path, bytes: &[u8], executable: bool) -> io::Result<()> {
    fs::create_dir_all(disk_path.parent().unwrap_or(disk_path))?;
    failpoint::before("write a file");
    fs::write(disk_path, bytes)?;
    set_executable(disk_path, fs::metadata(disk_path)?.permissions(), executable)
}

/// Copies a directory with the links in it into another one.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let tree = DiskTree::of_directory(from, false)?;
    write_temporary(&tree, tree.below("")?, None, to, None)
}

/// The digest of all files and links below a directory: names, modes and bytes, or targets.
pub(super) fn digest(top: &Path) -> Result<String> {
    let tree = DiskTree::of_directory(top, false)?;
    let mut lines = String::new();
    for path in tree.below("")? {
        lines += &format!("{path:?} {:?} {}\n", tree.entry(&path)?, sha256_hex(&tree.read(&path)?));
    }
    Ok(sha256_hex(lines.as_bytes()))
}

/// Writes a program.
#[cfg(unix)]
pub(super) fn program(disk_path: &Path, text: &str) -> io::Result<()> {
    fs::write(disk_path, text)?;
    set_executable(disk_path, fs::metadata(disk_path)?.permissions(), true)
}

/// Lets whoever may read a file run it, or nobody.
pub(crate) fn set_executable(disk_path: &Path, mut permissions: fs::Permissions, executable: bool) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = permissions.mode();
        // As git checks out 100755: each right to read gives the right to run.
        permissions.set_mode(if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 });
    }
    let _ = executable;
    fs::set_permissions(disk_path, permissions)
}

/// The target of a link as a relative path; `None` if it is outside of the tree.
fn link_text(tree: &dyn Tree, path: &str) -> Result<Option<String>> {
    let directory = path::parent(path);
    let Ok(text) = String::from_utf8(tree.read(path)?) else {
        return Ok(None);
    };
    Ok(match tree.linked(&text).filter(|_| path::is_absolute(&text)) {
        Some(inside) => Some(path::relative(directory, &inside)),
        None => Some(text).filter(|text| !path::is_absolute(text) && path::resolve(directory, text).is_some()),
    })
}

#[cfg(unix)]
fn link(text: &str, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    match std::os::unix::fs::symlink(text, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(not(unix))]
fn link(_text: &str, _to: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

//! Finds the license files of a directory.

use super::{FILE_NAMES, Resolved, Tree, path, resolve};
use crate::message::failure::Result;

/// The beginnings of the names of license files, in any letter case.
const BEGINNINGS: [&str; 5] = ["license", "licence", "notice", "copyright", "copying"];

/// The names of directories with license files only, in any letter case. The REUSE specification uses `LICENSES`.
const DIRECTORIES: [&str; 4] = ["license", "licenses", "licence", "licences"];

/// The endings of manifests.
const MANIFESTS: [&str; 3] = [".yaml", ".yml", ".json"];

/// The size of the largest license file, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// The license files of one directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Licenses {
    /// The paths, with links not followed, and the bytes.
    pub files: Vec<(String, Vec<u8>)>,
    /// The paths of license files that cannot be copied, and the reasons.
    pub skipped: Vec<(String, String)>,
}

/// Whether a file is called like a licence.
fn is_file_name(name: &str) -> bool {
    is_plain(name) && BEGINNINGS.iter().any(|word| name.to_ascii_lowercase().starts_with(word))
}

/// Whether a directory is called like one that has only licences.
fn is_directory_name(name: &str) -> bool {
    DIRECTORIES.contains(&name.to_ascii_lowercase().as_str())
}

/// The directory whose license a file is, judged by its path: its own directory, or the directory above a `LICENSES`;
/// `None` if it is not a license.
pub(crate) fn licensed_directory(path: &str) -> Option<&str> {
    let (name, directory) = (path::name(path), path::parent(path));
    if is_directory_name(path::name(directory)) && is_plain(name) {
        return Some(path::parent(directory));
    }
    is_file_name(name).then_some(directory)
}

/// Whether a file may be a license, if its name or directory says so.
fn is_plain(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // A tool that applies a whole directory would apply a file with such an ending.
    !name.starts_with('.') && !MANIFESTS.iter().any(|ending| name.ends_with(ending))
}

/// The license files of a directory: `LICENSE*` and similar names, and the contents of a `LICENSES`.
pub(crate) fn find(tree: &dyn Tree, directory: &str) -> Result<Licenses> {
    let mut licenses = Licenses::default();
    // An upstream that is read from localized files knows its license files by these, so it need not be fetched.
    if let Some(known) = tree.licenses(directory) {
        for path in known {
            let bytes = tree.read(&path)?;
            licenses.files.push((path, bytes));
        }
        return Ok(licenses);
    }
    for (path, resolved) in candidates(tree, directory)? {
        // The reason why a license cannot be copied is reported, but does not stop the work.
        let why = match resolved {
            Resolved::File { path: real, .. } => {
                let bytes = tree.read(&real)?;
                // A larger file is not a license.
                if bytes.len() <= MAX_BYTES {
                    licenses.files.push((path, bytes));
                    continue;
                }
                "it is larger than 4 MiB".to_owned()
            }
            // A directory that is only named like a license file, such as `license-server`.
            Resolved::Directory { .. } => continue,
            Resolved::Submodule { .. } => "it is in a submodule".to_owned(),
            Resolved::Missing { .. } | Resolved::Loop { .. } => "the link is broken".to_owned(),
            Resolved::Leaves { pointee, .. } => format!("the link to `{pointee}` leads out of its repository"),
        };
        licenses.skipped.push((path, why));
    }
    Ok(licenses)
}

/// The paths of the files that [`find`] reads.
pub(crate) fn paths(tree: &dyn Tree, directory: &str) -> Result<Vec<String>> {
    let named = candidates(tree, directory)?.into_iter();
    let files = named.filter_map(|(_, resolved)| match resolved {
        Resolved::File { path, .. } => Some(path),
        _ => None,
    });
    Ok(files.collect())
}

/// The paths of a directory that are named like licenses, with the nodes that they resolve to.
fn candidates(tree: &dyn Tree, directory: &str) -> Result<Vec<(String, Resolved)>> {
    let mut licenses = Vec::new();
    for name in tree.names(directory)? {
        let (is_file, is_directory) = (is_file_name(&name), is_directory_name(&name));
        if !is_file && !is_directory {
            continue;
        }
        let path = path::join(directory, &name);
        // A license is often a link to that at the top of the repository.
        match resolve(tree, &path)? {
            Resolved::Directory { path: real } if is_directory => {
                let names = tree.names(&real)?;
                // A kustomization root may also be named `license`.
                if names.iter().any(|name| FILE_NAMES.contains(&name.as_str())) {
                    continue;
                }
                for name in names.iter().filter(|name| is_plain(name)) {
                    let inside = path::join(&path, name);
                    let resolved = resolve(tree, &inside)?;
                    licenses.push((inside, resolved));
                }
            }
            resolved if is_file => licenses.push((path, resolved)),
            // Each name of a directory is also one of a file, so this does not occur.
            _ => {}
        }
    }
    Ok(licenses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::overlay::OverlayTree;

    #[test]
    fn licenses_are_known_by_their_names() {
        for name in [
            "LICENSE",
            "License.md",
            "licence",
            "LICENSE-MIT",
            "NOTICE.txt",
            "COPYING.LESSER",
            "Copyright",
            "a/LICENSE",
            "LICENSES/MIT.txt",
            "a/licenses/x",
        ] {
            assert!(licensed_directory(name).is_some(), "{name}");
        }
        for name in [
            "unlicensed",
            "license.yaml",
            "NOTICE.yml",
            "copying.JSON",
            "LICENSES/a.yaml",
            "LICENSES/.hidden",
            "kustomization.yaml",
            "licensing/x",
            "LICENSES/a/b",
        ] {
            assert_eq!(licensed_directory(name), None, "{name}");
        }
        assert_eq!(licensed_directory("a/LICENSES/MIT.txt"), Some("a"));
        assert_eq!(licensed_directory("a/LICENSE"), Some("a"));
    }

    #[test]
    fn license_files_are_found_and_unusable_ones_reported() {
        let mut tree = OverlayTree::default();
        let mut file = |path: &str, bytes: &[u8]| tree.add_file(path, bytes);
        for path in ["LICENSE", "notice.md", "license.yaml", "LICENSES/MIT.txt", "app/COPYING"] {
            file(path, path.as_bytes());
        }
        file("Licence/kustomization.yaml", b"");
        file("Licence/text", b"");
        file("copyright/x", b"");
        file("NOTICE.big", &vec![b'x'; MAX_BYTES + 1]);
        tree.link("COPYING", "app/COPYING");
        tree.link("COPYING.out", "../outside");
        tree.link("COPYING.self", "COPYING.self");
        let licenses = find(&tree, "").unwrap();
        let files: Vec<&str> = licenses.files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(files, ["COPYING", "LICENSE", "LICENSES/MIT.txt", "notice.md"]);
        assert_eq!(licenses.files[0].1, b"app/COPYING");
        let left: Vec<&str> = licenses.skipped.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(left, ["COPYING.out", "COPYING.self", "NOTICE.big"]);
    }
}

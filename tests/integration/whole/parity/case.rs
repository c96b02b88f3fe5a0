//! One case: an input, what `kustomize localize` makes of it, and where we differ on purpose.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::support::Sandbox;

/// Stands for the directory of the input, in files and links that need an absolute path.
const WORK: &str = "@WORK@";

/// Returns the directory of everything that is recorded.
pub(super) fn parity() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity")
}

/// Returns the directory of all cases.
pub(super) fn cases() -> PathBuf {
    parity().join("cases")
}

/// The file `case.yaml`.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Case {
    /// What the case shows, in one sentence.
    pub(super) shows: String,
    /// Where the command runs, below the input.
    directory: String,
    target: String,
    scope: Option<String>,
    /// NEW_DIR, from where the command runs; `null` leaves it to the command.
    into: Option<String>,
    more: Extra,
    /// What our message has to name when the command is refused.
    names: Option<String>,
    ours: Ours,
    #[serde(skip)]
    path: PathBuf,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            shows: String::new(),
            directory: String::new(),
            target: ".".to_owned(),
            scope: None,
            into: Some("../result".to_owned()),
            more: Extra::default(),
            names: None,
            ours: Ours::default(),
            path: PathBuf::new(),
        }
    }
}

/// What plain files in this repository cannot hold.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Extra {
    /// Files by path, for bytes that a checkout or an editor could change.
    write: BTreeMap<String, String>,
    /// Symbolic links by path.
    links: BTreeMap<String, String>,
    executables: BTreeSet<String>,
}

/// How our result differs from the record, if it does. What `ours/` holds replaces files of the record.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Ours {
    /// Why.
    reason: String,
    /// Files (or directories, with a slash at the end) of the record that we do not have.
    absent: Vec<String>,
    /// Files whose execute bit we keep, where `kustomize localize` drops all of them.
    executables: BTreeSet<String>,
    /// We refuse what `kustomize localize` accepts; `names` is what our message has to name.
    refused: bool,
}

/// What we have to give.
pub(super) struct Expected {
    /// Nothing when a failure is expected.
    pub(super) tree: Option<Tree>,
    /// The paths in `tree` that must be equal to the byte even if they are kustomizations.
    pub(super) exact: BTreeSet<String>,
    pub(super) executables: BTreeSet<String>,
    /// Part of the message of a failure.
    pub(super) names: Option<String>,
}

impl Case {
    /// Returns the case of this name, which is that of its directory.
    pub(super) fn read(name: &str) -> Case {
        let path = cases().join(name);
        let mut case: Case = read_yaml(&path.join("case.yaml"));
        case.path = path;
        case
    }

    /// Returns the path of a file or directory of the case.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Puts the input into `sandbox` and returns the directory to run in.
    pub(super) fn prepare(&self, sandbox: &Sandbox) -> PathBuf {
        let work = sandbox.path("work");
        let mut input = Tree::read(&self.path("input"));
        self.more.add_to(&mut input);
        input.name_work(&work);
        input.write(&work);
        work.join(&self.directory)
    }

    /// Returns the arguments for both programs.
    pub(super) fn arguments(&self) -> Vec<&str> {
        let mut arguments = vec![self.target.as_str()];
        arguments.extend(self.into.as_deref());
        if let Some(scope) = &self.scope {
            arguments.extend(["--scope", scope]);
        }
        arguments
    }

    /// Returns what a run made: NEW_DIR, or what is new in the directory if NEW_DIR was not given.
    pub(super) fn result(&self, sandbox: &Sandbox, before: &Tree) -> Tree {
        let directory = sandbox.path("work").join(&self.directory);
        let mut tree = Tree::read(&directory.join(self.into.as_deref().unwrap_or_default()));
        if self.into.is_none() {
            tree.files.retain(|path, _| !before.files.contains_key(path));
            tree.links.retain(|path, _| !before.links.contains_key(path));
            tree.executables.retain(|path| !before.executables.contains(path));
        }
        tree
    }

    /// Returns the record with our differences worked in.
    pub(super) fn expected_of_us(&self, sandbox: &Sandbox) -> Expected {
        let (ours, shows) = (&self.ours, &self.shows);
        assert!(!shows.is_empty(), "{}", self.path.display());
        let mut exact = Tree::read(&self.path("ours"));
        exact.name_work(&sandbox.path("work"));
        let is_same = exact.files.is_empty() && ours.absent.is_empty() && ours.executables.is_empty() && !ours.refused;
        let has_reason = !ours.reason.is_empty();
        assert!(is_same || has_reason, "no reason to differ: {shows}");
        let recorded = self.path("expected");
        let mut tree = recorded.is_dir().then(|| Tree::read(&recorded));
        for absent in &ours.absent {
            let files = &mut tree.as_mut().unwrap().files;
            let known = files.len();
            let is_directory = absent.ends_with('/');
            files.retain(|path, _| path != absent && !(is_directory && path.starts_with(absent)));
            assert!(files.len() < known, "{absent} is not in the record");
        }
        let paths = exact.files.keys().cloned().collect();
        if !exact.files.is_empty() {
            tree.get_or_insert_default().files.extend(exact.files);
        }
        Expected {
            tree: tree.filter(|_| !ours.refused),
            exact: paths,
            executables: ours.executables.clone(),
            names: self.names.clone(),
        }
    }
}

impl Extra {
    /// Adds these files, links and modes.
    pub(super) fn add_to(&self, tree: &mut Tree) {
        let files = self.write.iter();
        tree.files.extend(files.map(|(path, text)| (path.clone(), text.clone().into_bytes())));
        tree.links.extend(self.links.clone());
        tree.executables.extend(self.executables.clone());
    }
}

/// The files of a directory, by path with forward slashes.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) links: BTreeMap<String, String>,
    pub(super) executables: BTreeSet<String>,
}

impl Tree {
    /// Returns everything below `directory`; an absent one is empty.
    pub(super) fn read(directory: &Path) -> Tree {
        let mut tree = Tree::default();
        if directory.is_dir() {
            tree.add(directory, "");
        }
        tree
    }

    fn add(&mut self, directory: &Path, prefix: &str) {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                self.add(&entry.path(), &format!("{name}/"));
            } else if metadata.is_symlink() {
                let target = fs::read_link(entry.path()).unwrap();
                self.links.insert(name, target.to_str().unwrap().to_owned());
            } else {
                if metadata.permissions().mode() & 0o100 != 0 {
                    self.executables.insert(name.clone());
                }
                self.files.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }

    /// Puts the path of the input for [`WORK`].
    fn name_work(&mut self, work: &Path) {
        let work = work.to_str().unwrap();
        for bytes in self.files.values_mut() {
            if let Ok(text) = str::from_utf8(bytes) {
                *bytes = text.replace(WORK, work).into_bytes();
            }
        }
        for text in self.links.values_mut() {
            *text = text.replace(WORK, work);
        }
    }

    /// Writes everything below `directory`.
    pub(super) fn write(&self, directory: &Path) {
        fs::create_dir_all(directory).unwrap();
        for (path, bytes) in &self.files {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
        }
        for (path, target) in &self.links {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, &path).unwrap();
        }
        for path in &self.executables {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(directory.join(path), mode).unwrap();
        }
    }

    /// Returns the tree without what only our program writes: the lock and the attributes.
    pub(super) fn ours(&self) -> Tree {
        let mut tree = self.clone();
        tree.files.retain(|path, bytes| {
            let name = path.rsplit('/').next().unwrap_or(path);
            let attributes = name == ".gitattributes" && bytes == b"* -text -filter -ident -working-tree-encoding\n";
            name != "kustomize-localize.lock" && !attributes
        });
        tree
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, bytes) in &self.files {
            writeln!(f, "--- {path}\n{}", String::from_utf8_lossy(bytes))?;
        }
        for (path, target) in &self.links {
            writeln!(f, "--- {path} -> {target}")?;
        }
        writeln!(f, "--- executable: {:?}", self.executables)
    }
}

/// Reads one of our files, which must be readable.
pub(super) fn read_yaml<T: for<'de> Deserialize<'de>>(path: &Path) -> T {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

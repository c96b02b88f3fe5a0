//! Repositories that many tests begin with: made once by git, and copied for everybody else.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// Everything below a directory, by path; a directory comes before what it holds.
struct Template(BTreeMap<PathBuf, Entry>);

enum Entry {
    Directory,
    Link(PathBuf),
    File(u32, Vec<u8>),
}

/// Makes `directory` with `make`, or as it was made for this key before. Returns whether it is a copy.
pub(super) fn once(key: String, directory: &Path, make: impl FnOnce()) -> bool {
    static ALL: Mutex<BTreeMap<String, Arc<OnceLock<Template>>>> = Mutex::new(BTreeMap::new());
    let template = Arc::clone(ALL.lock().unwrap().entry(key).or_default());
    // Tests on other threads wait here until it is made.
    let mut is_copy = true;
    let template = template.get_or_init(|| {
        is_copy = false;
        make();
        let mut template = Template(BTreeMap::new());
        template.add(directory, Path::new(""));
        template
    });
    if is_copy {
        template.copy_to(directory);
    }
    is_copy
}

impl Template {
    fn add(&mut self, top: &Path, relative: &Path) {
        let path = top.join(relative);
        let metadata = fs::symlink_metadata(&path).unwrap();
        let entry = if metadata.is_dir() {
            for entry in fs::read_dir(&path).unwrap() {
                self.add(top, &relative.join(entry.unwrap().file_name()));
            }
            Entry::Directory
        } else if metadata.is_symlink() {
            Entry::Link(fs::read_link(&path).unwrap())
        } else {
            Entry::File(metadata.permissions().mode(), fs::read(&path).unwrap())
        };
        self.0.insert(relative.to_owned(), entry);
    }

    fn copy_to(&self, directory: &Path) {
        for (path, entry) in &self.0 {
            let path = directory.join(path);
            match entry {
                Entry::Directory => fs::create_dir_all(path).unwrap(),
                Entry::Link(target) => symlink(target, path).unwrap(),
                Entry::File(mode, bytes) => {
                    let mut options = File::options();
                    let file = options.write(true).create_new(true).mode(*mode).open(path);
                    file.unwrap().write_all(bytes).unwrap();
                }
            }
        }
    }
}

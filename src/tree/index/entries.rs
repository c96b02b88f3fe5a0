//! The entries of an index, in as little memory as they take: there may be millions.

use gix::ObjectId;
use gix::bstr::BStr;
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stage};

use crate::tree::Entry;

/// What a commit of the index would hold at a path.
pub(super) struct IndexEntry {
    /// Where its id begins, which its path follows.
    start: u32,
    /// How long its path is.
    length: u32,
    /// When the file was written that was staged, in seconds and nanoseconds, and its size.
    pub(super) written: (u32, u32, u32),
    pub(super) kind: Entry,
    pub(super) stage: Stage,
    /// Whether a sparse checkout leaves it out.
    pub(super) is_left_out: bool,
}

/// The entries, in the order of the index.
pub(super) struct Entries {
    all: Vec<IndexEntry>,
    /// The id and the path of each.
    text: Vec<u8>,
    /// How long an id is.
    id_length: usize,
}

impl Entries {
    /// Takes what a commit would hold, but not what is only named (`git add -N`); `None` if git has not written that.
    pub(super) fn of(state: &State) -> Option<Entries> {
        let count = state.entries().len();
        let id_length = state.object_hash().len_in_bytes();
        let mut entries = Entries {
            all: Vec::with_capacity(count),
            text: Vec::with_capacity(count * id_length + state.path_backing().len()),
            id_length,
        };
        for entry in state.entries() {
            // The id tells what git has not written.
            let kind = kind(entry.mode).filter(|_| !entry.id.is_null())?;
            if entry.flags.contains(Flags::INTENT_TO_ADD) {
                continue;
            }
            let path = entry.path(state);
            let modified = entry.stat.mtime;
            entries.all.push(IndexEntry {
                start: u32::try_from(entries.text.len()).ok()?,
                length: u32::try_from(path.len()).ok()?,
                written: (modified.secs, modified.nsecs, entry.stat.size),
                kind,
                stage: entry.stage(),
                is_left_out: entry.flags.contains(Flags::SKIP_WORKTREE),
            });
            entries.text.extend_from_slice(entry.id.as_bytes());
            entries.text.extend_from_slice(path);
        }
        Some(entries)
    }

    pub(super) fn all(&self) -> &[IndexEntry] {
        &self.all
    }

    pub(super) fn path(&self, entry: &IndexEntry) -> &BStr {
        let start = entry.start as usize + self.id_length;
        self.text[start..start + entry.length as usize].into()
    }

    pub(super) fn id(&self, entry: &IndexEntry) -> ObjectId {
        let start = entry.start as usize;
        ObjectId::from_bytes_or_panic(&self.text[start..start + self.id_length])
    }
}

fn kind(mode: Mode) -> Option<Entry> {
    match mode {
        Mode::FILE => Some(Entry::File { executable: false }),
        Mode::FILE_EXECUTABLE => Some(Entry::File { executable: true }),
        Mode::SYMLINK => Some(Entry::Link),
        Mode::COMMIT => Some(Entry::Submodule),
        Mode::DIR => Some(Entry::Directory),
        _ => None,
    }
}

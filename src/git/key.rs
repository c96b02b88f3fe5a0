//! A random key of a repository. Only who can read its directory can forge what is sealed with it, or guess what was
//! hashed.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::os::failpoint;

/// The name of its file.
const NAME: &str = "key";
/// Its length in bytes.
const LENGTH: usize = 32;
/// The length of a hash with it, in hexadecimal digits.
const SEAL: usize = 64;

/// The key, in hexadecimal digits.
#[derive(Debug, Clone)]
pub(crate) struct Key(String);

impl Key {
    /// The key in a directory, which gets one if it has none that can be read. `None` if a key cannot be made or
    /// stored.
    pub(crate) fn of(directory: &Path) -> Option<Key> {
        fs::create_dir_all(directory).ok()?;
        read(directory).or_else(|| {
            let mut bytes = [0; LENGTH];
            File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes)).ok()?;
            // Only the owner may read a temporary file.
            let mut file = NamedTempFile::new_in(directory).ok()?;
            file.write_all(hex(&bytes).as_bytes()).ok()?;
            failpoint::before("make a key for builds");
            // A damaged key is replaced. If two runs make a key at the same time, one of them may seal files with a key
            // that is gone: later runs do without these.
            fs::remove_file(directory.join(NAME)).ok();
            file.persist_noclobber(directory.join(NAME)).ok();
            read(directory)
        })
    }

    /// Reads a file that was [written](Key::write) with this key; `None` if it is missing, damaged, or about something
    /// else.
    pub(crate) fn read(&self, file: &Path, about: &[u8]) -> Option<Vec<u8>> {
        let mut seal = fs::read(file).ok()?;
        let content = (seal.len() >= SEAL).then(|| seal.split_off(SEAL))?;
        (self.hash(&[about, &content].concat()).as_bytes() == seal).then_some(content)
    }

    /// Writes a file, sealed together with what it is about. `None` if that fails.
    pub(crate) fn write(&self, file: &Path, about: &[u8], content: &[u8]) -> Option<()> {
        let seal = self.hash(&[about, content].concat());
        // A failure may be ignored: whoever reads the file does without.
        let mut new = NamedTempFile::new_in(file.parent()?).ok()?;
        new.write_all(seal.as_bytes()).and_then(|()| new.write_all(content)).ok()?;
        failpoint::before("remember something");
        // In one step, so that nobody reads a part of it.
        new.persist(file).ok().map(drop)
    }

    /// The hash of some bytes, which nobody without the key can compute: [`SEAL`] hexadecimal digits.
    pub(crate) fn hash(&self, bytes: &[u8]) -> String {
        // Hashed twice, as in HMAC: from one hash nobody can compute that of a longer text.
        let inner = Sha256::new().chain_update(&self.0).chain_update(bytes).finalize();
        hex(&Sha256::new().chain_update(&self.0).chain_update(hex(&inner)).finalize())
    }
}

/// The key in a directory; `None` if it is missing or damaged.
fn read(directory: &Path) -> Option<Key> {
    let key = fs::read_to_string(directory.join(NAME)).ok()?;
    (key.len() == 2 * LENGTH && key.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(Key(key))
}

/// The bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stays_and_a_damaged_one_is_replaced() {
        let top = tempfile::tempdir().unwrap();
        let key = Key::of(top.path()).unwrap();
        let seal = key.hash(b"text");
        assert_eq!(seal.len(), SEAL);
        assert_ne!(seal, key.hash(b"test"));
        assert_eq!(Key::of(top.path()).unwrap().hash(b"text"), seal);
        let file = top.path().join(NAME);
        for damaged in ["", "0", &"x".repeat(2 * LENGTH)] {
            fs::write(&file, damaged).unwrap();
            assert_ne!(Key::of(top.path()).unwrap().hash(b"text"), seal);
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::remove_dir_all(top.path()).unwrap();
        fs::write(top.path(), "").unwrap();
        assert!(Key::of(top.path()).is_none());
    }
}

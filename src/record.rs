//! The record of where localized files came from: the [lock](mod@lock), a file beside them, and the [trailers] of the
//! commit that has them.
//!
//! The same code writes, reads and checks both, so one version reads its own records back. Neither is trusted when it
//! is read: a lock comes with a pull request, a message from anywhere. A value that is refused when reading is also
//! refused when writing.

mod added;
pub(crate) mod answer;
pub(crate) mod history;
pub(crate) mod lock;
mod message;
pub(crate) mod stored;
pub(crate) mod trailers;
mod valid;
mod verified;

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use serde::{Serialize, Serializer};

use crate::git::hex;
use crate::message::failure::{Failure, shown};

pub(crate) use crate::git::is_object_id;
pub(crate) use added::{AddedEntry, new_entries};
pub(crate) use lock::{ChangeKind, LOCK_NAME, LeftKeys, LoadRestrictor, LockChange, can_be_named};
pub use lock::{Lock, Mode, StoredFile};
pub(crate) use lock::{Pinned, Remotes};
pub(crate) use lock::{serialize_left, serialize_remote, serialize_remotes};
pub(crate) use message::render_message;
pub(crate) use trailers::TargetTrailer;
pub use trailers::Trailers;
pub(crate) use verified::{BuildTool, Verified};

/// The digest of some content, named as in in-toto's `DigestSet`.
///
/// The text form is `name:hex`, with all digits in lower case: 40 or 64 for a git object, 64 for SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Digest {
    /// A commit of a git repository.
    GitCommit(String),
    /// A tree of a git repository.
    GitTree(String),
    /// The SHA-256 of the bytes of a file.
    Sha256(String),
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Digest {
    /// The name before the colon.
    pub fn name(&self) -> &'static str {
        match self {
            Digest::GitCommit(_) => "gitCommit",
            Digest::GitTree(_) => "gitTree",
            Digest::Sha256(_) => "sha256",
        }
    }

    /// The hex digits after the colon.
    pub fn hex(&self) -> &str {
        match self {
            Digest::GitCommit(hex) | Digest::GitTree(hex) | Digest::Sha256(hex) => hex,
        }
    }

    /// Whether the hex digits have the length and form that the name requires.
    pub fn is_valid(&self) -> bool {
        match self {
            Digest::Sha256(hex) => is_sha256(hex),
            _ => is_object_id(self.hex()),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name(), self.hex())
    }
}

impl FromStr for Digest {
    type Err = Failure;

    /// Parses `name:hex`. Fails if the name is unknown, or the digits are not those of its kind.
    fn from_str(text: &str) -> Result<Self, Failure> {
        // The text of each kind is compared, so that only one spelling is accepted.
        let hex = text.split_once(':').map_or("", |(_, hex)| hex);
        let kinds = [Digest::GitCommit, Digest::GitTree, Digest::Sha256];
        let mut digests = kinds.into_iter().map(|kind| kind(hex.to_owned()));
        let digest = digests.find(|digest| digest.to_string() == text && digest.is_valid());
        digest.ok_or_else(|| Failure::new(format!("`{}` is not a digest", shown(text))))
    }
}

/// The SHA-256 of `bytes`, as 64 lower-case hex digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The SHA-256 of all bytes of a reader, as 64 lower-case hex digits. They are never in memory at once, because the
/// executable of kustomize or helm may have hundreds of megabytes.
pub(crate) fn sha256_of_reader(mut from: impl Read) -> io::Result<String> {
    let (mut hash, mut buffer) = (Sha256::new(), [0; 64 << 10]);
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(length) => hash.update(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether `text` is a SHA-256: 64 lower-case hex digits.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && is_object_id(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_is_the_one_of_fips_180() {
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sha256_hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let long = vec![7; 200_000];
        assert_eq!(sha256_of_reader(&*long).unwrap(), sha256_hex(&long));
    }

    #[test]
    fn object_ids_are_full_and_lower_case() {
        assert!(is_object_id(&"0123456789abcdef"[..].repeat(4)));
        assert!(is_object_id(&"a".repeat(40)));
        for text in [
            "",
            "abc",
            &"a".repeat(39),
            &"a".repeat(41),
            &"A".repeat(40),
            &"g".repeat(40),
            // 40 bytes, but not 40 digits.
            &"é".repeat(20),
            &format!("{} ", "a".repeat(39)),
        ] {
            assert!(!is_object_id(text), "{text}");
        }
        assert!(!is_sha256(&"a".repeat(40)));
    }

    #[test]
    fn digests_round_trip() {
        for digest in
            [Digest::GitCommit("a".repeat(40)), Digest::GitTree("0".repeat(64)), Digest::Sha256("b".repeat(64))]
        {
            assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        }
        let forty = "a".repeat(40);
        for text in [
            "gitCommit".to_owned(),
            format!("gitcommit:{forty}"),
            format!("sha256:{forty}"),
            format!("gitTree:{}", forty.to_uppercase()),
            format!("sha512:{forty}"),
            format!("gitTree: {forty}"),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}

//! The keys that may sign upstreams, and the verification of signatures with git.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::{bare_message, error_message, isolated, not_run};
use crate::message::failure::{Failure, FailureKind, Result};
use crate::os::interrupt::{Scratch, unusable};
use crate::os::process::{self, Output, Terminal};

/// The time that git or gpg may take.
const TIMEOUT: Option<Duration> = Some(Duration::from_secs(60));

/// The first line of an OpenPGP keyring as text.
const KEYRING: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// The hint about the format of a file of signers.
const EXPECTED: &str =
    "expected lines of git's allowed signers file (`EMAIL KEYTYPE KEY`), or a keyring: gpg --armor --export KEY";

/// The keys of a file of the repository: git's format of allowed signers, for ssh, or an OpenPGP keyring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signers {
    /// The path from the top.
    pub file: String,
    bytes: Vec<u8>,
    is_keyring: bool,
    /// The fingerprints of the keys.
    keys: BTreeSet<String>,
}

impl Signers {
    /// A file that was not read yet, so it contains no key.
    pub(crate) fn unread(file: String) -> Signers {
        Signers { file, ..Signers::default() }
    }

    /// Reads a file. Fails if it has no key, or a private key, or names a certificate authority.
    pub(crate) fn parse(file: &str, bytes: Vec<u8>) -> Result<Signers> {
        let text = String::from_utf8_lossy(&bytes);
        // A binary keyring begins with the tag of a packet, whose first bit is set.
        let is_keyring = text.contains(KEYRING) || bytes.first().is_some_and(|first| first & 0x80 != 0);
        // A private key in the repository is a mistake of its own, which must not pass unseen.
        if text.contains("PRIVATE KEY") {
            return Err(unverifiable(file, "it contains a private key"));
        }
        let keys = if is_keyring {
            of_keyring(file, &bytes)?
        } else {
            of_allowed_signers(&text).map_err(|why| unverifiable(file, &why))?
        };
        if keys.is_empty() {
            return Err(unverifiable(file, "it contains no key"));
        }
        Ok(Signers { file: file.to_owned(), is_keyring, keys, bytes })
    }

    /// Whether the signer that [`Signers::verify`] returned is one of them.
    pub(crate) fn include(&self, signed: &str) -> bool {
        signed.split(' ').next().is_some_and(|key| self.keys.contains(key))
    }

    /// The signer of an object (`tag` or `commit`) of a bare repository: the fingerprint of the key, and its name.
    /// Fails with [`FailureKind::Unsigned`] if none of these keys has signed it, and with another kind if that is not
    /// known.
    pub(crate) fn verify(&self, repository: &Path, kind: &str, id: &str) -> Result<String> {
        let scratch = Scratch::new().map_err(unusable)?;
        let home = scratch.path();
        let file = home.join("signers");
        std::fs::write(&file, &self.bytes).map_err(unusable)?;
        // gpg must neither leave an agent running nor ask a key server.
        let options = "no-autostart\nno-auto-key-retrieve\n";
        std::fs::write(home.join("gpg.conf"), options).map_err(unusable)?;
        // With a keyring no ssh key is accepted, so git gets the name of a file that does not exist. Without a keyring
        // no OpenPGP key is accepted, because the home of gpg has none.
        let ssh_signers = if self.is_keyring { home.join("none") } else { file.clone() };
        if self.is_keyring {
            gpg(&self.file, home, &["--import"], &file)?;
        }
        // No configuration of the user may name other programs or keys. `false` rejects X.509, which has no keys here.
        let mut git = isolated();
        git.env("GIT_DIR", repository)
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GNUPGHOME", home)
            .args(["-c", "gpg.program=gpg", "-c", "gpg.ssh.program=ssh-keygen", "-c", "gpg.x509.program=false", "-c"])
            .arg(format!("gpg.ssh.allowedSignersFile={}", ssh_signers.display()))
            .args([&format!("verify-{kind}"), "--raw", id]);
        // git exits with success for any valid signature: only the output names the key that made it.
        let output = process::run(&mut git, None, TIMEOUT, Terminal::Detached).map_err(not_run)?;
        if let Some(signed) = Some(&output).filter(|output| output.status.success()).and_then(signer) {
            return Ok(signed);
        }
        // Without the program that reads a signature, nothing is known about it.
        if let Some(why) = output.stderr.lines().find(|line| line.starts_with("error: cannot run ")) {
            return Err(Failure::new(format!("the signature of the {kind} cannot be verified: {}", bare_message(why)))
                .hint("install OpenSSH and GnuPG"));
        }
        let is_unsigned = output.stderr.trim().is_empty() || output.says(&["no signature found"]);
        let message = if is_unsigned {
            format!("the {kind} is not signed")
        } else {
            format!("the {kind} is not signed by a key of `{}` that is valid at its date", self.file)
        };
        Err(Failure::new(message).because(FailureKind::Unsigned))
    }
}

/// The fingerprint and the name of the signer, from the output of git: from the words of ssh-keygen, or the status
/// lines of gpg. `None` if no valid signature is in it.
fn signer(output: &Output) -> Option<String> {
    // git passes the words of ssh-keygen on, and has no status lines for them.
    let ssh = output.stderr.lines().find_map(|line| {
        let (name, key) = line.strip_prefix("Good \"git\" signature for ")?.rsplit_once(" with ")?;
        Some((key.rsplit_once(" key ")?.1, name))
    });
    let (key, name) = ssh.or_else(|| gpg_signer(&output.stderr))?;
    // Whoever made the key chose its name, and a lock takes no control characters.
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(format!("{key} {name}"))
}

/// The fingerprint of the primary key and the name of the signer in the status lines of gpg; `None` if they show no
/// valid signature.
fn gpg_signer(stderr: &str) -> Option<(&str, &str)> {
    let mut status = stderr.lines().filter_map(|line| line.strip_prefix("[GNUPG:] "));
    let (_, name) = status.clone().find_map(|line| line.strip_prefix("GOODSIG "))?.split_once(' ')?;
    // The last field of VALIDSIG is the primary key. People list that one, not the subkey that signed.
    let valid = status.find_map(|line| line.strip_prefix("VALIDSIG "))?;
    Some((valid.rsplit(' ').next()?, name))
}

/// The fingerprints of the keys in a file of allowed signers, one for each line.
fn of_allowed_signers(text: &str) -> Result<BTreeSet<String>, String> {
    let mut keys = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_none_or(|first| first.starts_with('#')) {
            continue;
        }
        // Options may stand before the key, and contain spaces: the key is the first blob that repeats the type before
        // it.
        let key = words.windows(2).skip(1).find_map(|pair| Some((key_blob(pair[0], pair[1])?, pair[0])));
        let (blob, kind) = key.ok_or_else(|| format!("line {} has no key", index + 1))?;
        // The keys that an authority certifies are not listed in the file.
        let is_authority = words.iter().any(|word| word.split(',').any(|option| option == "cert-authority"));
        if is_authority || kind.contains("-cert-") {
            return Err(format!("line {} names a certificate authority: name keys instead", index + 1));
        }
        keys.insert(format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(&blob))));
    }
    Ok(keys)
}

/// Decodes an ssh key; `None` unless it begins with its type, as every ssh key does.
fn key_blob(kind: &str, text: &str) -> Option<Vec<u8>> {
    let blob = STANDARD.decode(text).ok()?;
    // The type follows its length in four bytes.
    let length = kind.len().to_be_bytes();
    let name = blob.strip_prefix(&length[length.len() - 4..])?;
    name.starts_with(kind.as_bytes()).then_some(blob)
}

/// The fingerprints of the primary keys of a keyring, as gpg reads it.
fn of_keyring(file: &str, bytes: &[u8]) -> Result<BTreeSet<String>> {
    let scratch = Scratch::new().map_err(unusable)?;
    let keyring = scratch.path().join("signers");
    std::fs::write(&keyring, bytes).map_err(unusable)?;
    let listed = gpg(file, scratch.path(), &["--with-colons", "--show-keys"], &keyring)?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    if listed.lines().any(|line| line.starts_with("sec:")) {
        return Err(unverifiable(file, "it contains a private key"));
    }
    Ok(primary_keys(&listed))
}

/// The fingerprints of the primary keys in a list of gpg.
fn primary_keys(listed: &str) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut is_primary = false;
    for line in listed.lines() {
        let mut fields = line.split(':');
        match fields.next() {
            Some("pub") => is_primary = true,
            // The tenth field is the fingerprint. The fingerprints of subkeys follow, and are skipped.
            Some("fpr") if std::mem::take(&mut is_primary) => keys.extend(fields.nth(8).map(str::to_owned)),
            _ => {}
        }
    }
    keys
}

/// Runs gpg in its own home on a keyring, which messages call `name`.
fn gpg(name: &str, home: &Path, arguments: &[&str], keyring: &Path) -> Result<Output> {
    let mut gpg = Command::new("gpg");
    gpg.env("LC_ALL", "C")
        .arg("--homedir")
        .arg(home)
        .args(["--no-autostart", "--batch", "--quiet"])
        .args(arguments)
        .arg(keyring);
    let output = process::run(&mut gpg, None, TIMEOUT, Terminal::Detached)
        .map_err(|error| Failure::new(format!("cannot read the keys of `{name}`: {error}")).hint("install GnuPG"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(unverifiable(name, &format!("it is not a keyring of OpenPGP public keys: {}", error_message(&output))))
}

/// The failure for a file of signers that cannot be used.
fn unverifiable(file: &str, why: &str) -> Failure {
    Failure::new(format!("`{file}`: {why}")).hint(EXPECTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    #[test]
    fn keys_of_allowed_signers_are_those_that_ssh_reads() {
        let known = |line: &str| of_allowed_signers(line).map(|keys| keys.len());
        for line in [
            format!("a@b {KEY}\n# c@d {KEY}\n\n"),
            format!("a@b,*@c namespaces=\"git\",valid-after=\"20200101\" {KEY} comment"),
            format!("\"a b\" {KEY}"),
        ] {
            assert_eq!(known(&line), Ok(1), "{line}");
        }
        for line in [
            KEY.to_owned(),
            "a@b".to_owned(),
            format!("a@b {}", KEY.replace("ed25519", "rsa")),
            format!("a@b {}", KEY.replace("AAAAC3", "AAAAC4")),
            format!("a@b cert-authority {KEY}"),
            format!("a@b namespaces=\"git\",cert-authority {KEY}"),
        ] {
            assert!(known(&line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_keys_of_a_keyring_are_its_primary_ones() {
        let listed = "pub:-:255:22:AB:1:::-:::scSC:::::ed25519:::0:\nfpr:::::::::PRIMARY:\nuid:-::::1::X::Al <a@b>:::::::::0:\nsub:-:255:18:CD:1::::::e::::::23:\nfpr:::::::::SUB:\npub:-:4096:1:EF:1:::-:::scSC::::::23::0:\nfpr:::::::::OTHER:\n";
        assert_eq!(primary_keys(listed), ["OTHER", "PRIMARY"].map(str::to_owned).into());
    }

    #[test]
    fn who_signed_is_what_the_programs_say() {
        use std::os::unix::process::ExitStatusExt as _;
        let error_message = |stderr: &str| {
            let status = std::process::ExitStatus::from_raw(0);
            signer(&Output { status, stdout: Vec::new(), stderr: stderr.to_owned() })
        };
        let ssh = "Good \"git\" signature for a with b key c@d with ED25519 key SHA256:x/y\n";
        assert_eq!(error_message(ssh).as_deref(), Some("SHA256:x/y a with b key c@d"));
        let gpg = "[GNUPG:] GOODSIG 0123 Al <a@b>\n[GNUPG:] VALIDSIG SUB 2026-01-01 1 0 4 0 22 8 00 PRIMARY\n";
        assert_eq!(error_message(gpg).as_deref(), Some("PRIMARY Al <a@b>"));
        for unknown in ["", "Good \"git\" signature with ED25519 key SHA256:x\n", "[GNUPG:] GOODSIG 0123 Al\n"] {
            assert_eq!(error_message(unknown), None, "{unknown}");
        }
    }
}

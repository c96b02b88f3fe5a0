//! The memory of build outputs, in the repository of the user: a closed build is a function of its inputs.
//!
//! No value of a Secret is stored, but a keyed hash, and the key never leaves the repository. So two outputs can be
//! compared, whether they were built now or before, but not printed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde_yaml::Value;

use super::program::Tool;
use super::run::{BuildOutput, BuildRun, RootDir, environment};
use super::{compare, secrets};
use crate::git::{Key, LocalRepo};
use crate::message::failure::Result;
use crate::os::failpoint;
use crate::os::interrupt::unusable;
use crate::os::parallel::locked;
use crate::record::sha256_hex;

/// How much is remembered, in bytes.
const MOST: u64 = 256 << 20;
/// The divisor that gives the most that one build may take.
const SHARE: u64 = 8;

/// The requirements of a caller for an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputForm {
    /// The exact bytes.
    Bytes,
    /// The objects, to compare or read them. A hash may stand for each value of a Secret.
    Objects,
    /// The objects, after a second build if helm or a function may give another output each time.
    TestedObjects,
}

/// The builds that a repository remembers.
#[derive(Debug)]
pub(crate) struct Memory {
    directory: PathBuf,
    key: Key,
    most: u64,
    /// The bytes that are stored; `None` until they are counted.
    total: Mutex<Option<u64>>,
}

impl Memory {
    /// Opens the memory of a repository; `None` if nothing can be stored.
    pub(crate) fn of(here: Option<&LocalRepo>) -> Option<Arc<Memory>> {
        Memory::open(&here?.own_directory(), MOST).map(Arc::new)
    }

    /// Opens the memory below the directory of this program in a repository.
    fn open(own: &Path, most: u64) -> Option<Memory> {
        let key = Key::of(own)?;
        let directory = own.join("builds");
        fs::create_dir_all(&directory).ok()?;
        Some(Memory { directory, key, most, total: Mutex::default() })
    }

    /// The remembered build whose inputs have this digest; `None` if there is none.
    pub(super) fn get(&self, digest: &str) -> Option<BuildOutput> {
        let file = self.directory.join(digest);
        // An entry that was damaged, or stored with another key, counts as missing.
        let mut head = self.key.read(&file, digest.as_bytes())?;
        let stdout = head.split_off(memchr::memchr(b'\n', &head)? + 1);
        let build = serde_json::from_slice(&head).ok()?;
        // The entries that were used last are removed last.
        File::open(file).and_then(|file| file.set_modified(SystemTime::now())).ok();
        Some(BuildOutput { stdout, ..build })
    }

    /// Remembers a build with [hidden](Memory::hide) values. `None` if it is too large or cannot be stored, which
    /// callers ignore: then the next run builds it again.
    pub(super) fn put(&self, digest: &str, build: &BuildOutput) -> Option<()> {
        let content = [&*serde_json::to_vec(build).ok()?, b"\n", &build.stdout].concat();
        let size = content.len() as u64;
        if size > self.most / SHARE {
            return None;
        }
        self.make_room(size);
        self.key.write(&self.directory.join(digest), digest.as_bytes(), &content)
    }

    /// Removes the least recently used entries, until there is room for `more` bytes.
    fn make_room(&self, more: u64) {
        let mut total = locked(&self.total);
        // Counting reads the whole directory, so it is done only if the directory may be full. Other runs use the
        // directory, too, so the sum of this one may be wrong.
        if total.is_none_or(|total| total + more > self.most) {
            let mut entries = BTreeMap::new();
            for entry in self.directory.read_dir().into_iter().flatten().flatten() {
                if let Ok(metadata) = entry.metadata()
                    && let Ok(used) = metadata.modified()
                {
                    entries.insert((used, entry.path()), metadata.len());
                }
            }
            let mut stored: u64 = entries.values().sum();
            for ((_, path), size) in &entries {
                if stored + more <= self.most {
                    break;
                }
                failpoint::before("forget a build");
                fs::remove_file(path).ok();
                stored -= size;
            }
            *total = Some(stored);
        }
        *total = total.map(|total| total + more);
    }

    /// The build with a hash instead of each value of a Secret; `None` if it may have a Secret and is not UTF-8, or if
    /// a document that may be one is not YAML.
    pub(super) fn hide(&self, build: &BuildOutput) -> Option<BuildOutput> {
        if !secrets::may_hold(&build.stdout) {
            return Some(build.clone());
        }
        let (mut documents, mut hides) = (Vec::new(), false);
        for document in compare::documents(str::from_utf8(&build.stdout).ok()?) {
            let hidden = if secrets::may_hold(document.as_bytes()) { self.hidden(document).ok()? } else { None };
            hides |= hidden.is_some();
            documents.push(hidden.map_or(Cow::Borrowed(document), Cow::Owned));
        }
        let stdout = if hides { documents.join("---\n").into_bytes() } else { build.stdout.clone() };
        Some(BuildOutput { stdout, hides, ..build.clone() })
    }

    /// A document with hashes instead of values of Secrets; `None` if it has none.
    fn hidden(&self, document: &str) -> serde_yaml::Result<Option<String>> {
        let mut value: Value = serde_yaml::from_str(document)?;
        let has_secret = secrets::each_value(&mut value, &mut |value| {
            if let Some(text) = secrets::scalar_text(value) {
                *value = Value::String(format!("{}{}", secrets::fingerprint(&text), self.key.hash(text.as_bytes())));
            }
        });
        if !has_secret {
            return Ok(None);
        }
        // Two outputs also differ if one value is only written in another way.
        let whole = self.key.hash(compare::without_build_metadata(document).as_bytes());
        Ok(Some(format!("{}# {whole}\n", serde_yaml::to_string(&value)?)))
    }
}

/// A placeholder for the directory of the inputs in the key of a build.
const INPUT: &str = "\u{1}INPUT\u{1}";

impl BuildRun {
    /// The output of the build, remembered or new. A new one that runs helm or a function is built twice if it must be
    /// tested, or may be remembered.
    pub(super) fn output(&self, form: OutputForm) -> Result<BuildOutput> {
        let digest = self.input_digest()?;
        if let Some(build) = self.remembered(digest.as_deref(), form) {
            return Ok(build);
        }
        let mut build = self.run()?;
        // A template of a chart may use random values, so that no comparison with its output would prove anything.
        let is_tested = form == OutputForm::TestedObjects || self.program.kind == Tool::Helm || digest.is_some();
        // Without helm or a function, the same inputs give the same output.
        if self.root.runs && build.success && is_tested {
            build.is_unsteady = !self.is_steady(&build)?;
        }
        let Some(memory) = &self.program.memory else { return Ok(build) };
        // Later runs compare this output with a remembered one, so both must have hashes. An output whose Secrets
        // cannot be found is not remembered.
        let Some(hidden) = memory.hide(&build) else { return Ok(build) };
        if let Some(digest) = digest
            && self.is_determined(&build)
        {
            memory.put(&digest, &hidden);
        }
        Ok(if form == OutputForm::Bytes { build } else { hidden })
    }

    /// Whether the objects of the output are remembered.
    pub(super) fn is_remembered(&self) -> Result<bool> {
        Ok(self.remembered(self.input_digest()?.as_deref(), OutputForm::Objects).is_some())
    }

    /// The remembered output in a form; `None` if there is none, or its values are hashes and the exact bytes are
    /// required.
    fn remembered(&self, digest: Option<&str>, form: OutputForm) -> Option<BuildOutput> {
        let build = self.program.memory.as_ref()?.get(digest?);
        build.filter(|build| form != OutputForm::Bytes || !build.hides)
    }

    /// Whether building again, whatever is remembered, gives the same. Also true if the second build fails: it has no
    /// output that differs.
    pub(super) fn is_steady(&self, first: &BuildOutput) -> Result<bool> {
        let again = self.run()?;
        Ok(!again.success || again.stdout == first.stdout)
    }

    /// Whether only the inputs of its digest have determined the output.
    fn is_determined(&self, build: &BuildOutput) -> bool {
        // Messages of programs if the machine fails, or somebody kills them.
        const ODD: [&str; 4] = ["text file busy", "input/output error", "signal: ", "timed out"];
        if build.is_unsteady || !build.refused.is_empty() {
            return false;
        }
        if build.success {
            // A success among all files has read more than these inputs.
            return self.known.is_none();
        }
        let stderr = build.stderr.to_lowercase();
        !ODD.iter().any(|odd| stderr.contains(odd))
    }

    /// The digest of all inputs; `None` if the build may have other inputs, or nothing is remembered.
    fn input_digest(&self) -> Result<Option<String>> {
        let BuildRun { root: RootDir { files, directory, .. }, program, arguments, variables, .. } = self;
        if program.memory.is_none() || !self.has_pure_arguments() {
            return Ok(None);
        }
        // A build among all files is a second try, whose failure is remembered by the inputs of the first.
        let inputs = self.known.as_ref().unwrap_or(&self.root).digest()?;
        // Without the program's identity or with files outside of the inputs, the digest would not cover everything.
        let (Some(identity), Some(inputs)) = (program.identity(), files.answers.digest_with(&inputs)?) else {
            return Ok(None);
        };
        // Another version of this program may prepare the inputs otherwise.
        let mut lines = format!("{} {identity} {:?} {inputs}\n", env!("CARGO_PKG_VERSION"), program.network);
        lines += &format!("{directory:?} {variables:?}\n");
        lines += if self.known.is_some() { "among all files\n" } else { "" };
        for argument in arguments {
            lines += &argument_line(argument, &files.input)?;
        }
        // Variables of the environment change what programs do. `PATH` only finds them, and their identities are known.
        let variables = environment(&files.answers.files).filter(|(name, _)| name != "PATH");
        lines.extend(variables.map(|variable| format!("{variable:?}\n")));
        // helm is a part of what builds, so that another one gives another digest.
        let is_kustomize = program.kind != Tool::Helm;
        if is_kustomize && arguments.iter().any(|argument| argument.starts_with("--enable-helm")) {
            lines += &format!("{:?}\n", program.helm().ok().map(|helm| helm.identity()));
        }
        Ok(Some(sha256_hex(lines.as_bytes())))
    }

    /// Whether no argument lets the program run or read anything that the digest does not cover.
    fn has_pure_arguments(&self) -> bool {
        // The flags of kustomize that do not. Those of helm are written by this program.
        const PURE: [&str; 5] =
            ["--enable-helm", "--load-restrictor", "--reorder", "--helm-api-versions", "--helm-kube-version"];
        let is_pure = |argument: &String| PURE.contains(&argument.split('=').next().unwrap_or_default());
        self.program.kind == Tool::Helm || self.arguments.iter().all(is_pure)
    }
}

/// An argument for a digest. `--values=FILE` names a file below the `input`, whose digest counts instead of its path.
fn argument_line(argument: &str, input: &Path) -> Result<String> {
    let file = argument.split_once('=').map(|(_, file)| Path::new(file));
    let bytes = file.filter(|file| file.starts_with(input)).map(fs::read).transpose();
    let digest = bytes.map_err(unusable)?.map(|bytes| sha256_hex(&bytes));
    Ok(format!("{:?} {digest:?}\n", argument.replace(&input.display().to_string(), INPUT)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn build(stdout: &str) -> BuildOutput {
        BuildOutput { stderr: "stderr\n".to_owned(), ..BuildOutput::known(stdout.as_bytes().to_vec()) }
    }

    #[test]
    fn what_is_damaged_is_not_there() {
        let top = tempfile::tempdir().unwrap();
        let memory = Memory::open(top.path(), MOST).unwrap();
        let (one, other) = (sha256_hex(b"1"), sha256_hex(b"2"));
        assert!(memory.get(&one).is_none());
        memory.put(&one, &build("kind: X\n")).unwrap();
        // Whoever comes next has the same key.
        let memory = Memory::open(top.path(), MOST).unwrap();
        let known = memory.get(&one).unwrap();
        assert_eq!(
            (&known.stdout[..], &*known.stderr, known.success, known.size),
            (&b"kind: X\n"[..], "stderr\n", true, 8)
        );
        let file = memory.directory.join(&one);
        let bytes = fs::read(&file).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&file, &damaged).unwrap();
            assert!(memory.get(&one).is_none(), "{at}");
            fs::write(&file, &bytes[..at]).unwrap();
            assert!(memory.get(&one).is_none(), "{at}");
        }
        // Nor is what belongs to something else, or has another key.
        fs::write(memory.directory.join(&other), &bytes).unwrap();
        assert!(memory.get(&other).is_none());
        fs::write(&file, &bytes).unwrap();
        assert!(memory.get(&one).is_some());
        fs::remove_file(top.path().join("key")).unwrap();
        assert!(Memory::open(top.path(), MOST).unwrap().get(&one).is_none());
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() {
        let top = tempfile::tempdir().unwrap();
        let memory = Memory::open(top.path(), 10_000).unwrap();
        let names: Vec<String> = (0..10).map(|number| sha256_hex(&[number])).collect();
        let text = "x".repeat(1000);
        let hour = |hours: u32| SystemTime::now() - Duration::from_secs(3600) * (20 - hours);
        for (number, name) in names.iter().enumerate() {
            memory.put(name, &build(&text)).unwrap();
            File::open(memory.directory.join(name)).unwrap().set_modified(hour(number as u32)).unwrap();
            memory.get(&names[0]).unwrap();
        }
        let there: Vec<bool> = names.iter().map(|name| memory.directory.join(name).exists()).collect();
        assert_eq!(there, [true, false, false, true, true, true, true, true, true, true]);
        assert!(memory.put(&names[0], &build(&text.repeat(2))).is_none(), "too large");
    }

    #[test]
    fn values_of_secrets_are_hashes() {
        let top = tempfile::tempdir().unwrap();
        let memory = Memory::open(top.path(), MOST).unwrap();
        let text = |value: &str| {
            format!(
                "kind: ConfigMap\ndata: {{a: Secret}}\n---\napiVersion: v1\nkind: Secret\nstringData:\n  a: {value}\n"
            )
        };
        let hidden = |value: &str| memory.hide(&build(&text(value))).unwrap();
        let one = hidden("hunter2");
        let shown = String::from_utf8(one.stdout.clone()).unwrap();
        assert!(one.hides && shown.starts_with("kind: ConfigMap\ndata: {a: Secret}\n---\n"), "{shown}");
        assert!(!shown.contains("hunter2") && shown.contains("kind: Secret\n"), "{shown}");
        assert_eq!(one.stdout, hidden("hunter2").stdout);
        // Also where only the way to write it is another one.
        for other in ["hunter3", "'hunter2'"] {
            assert_ne!(one.stdout, hidden(other).stdout);
        }
        let elsewhere = tempfile::tempdir().unwrap();
        let other = Memory::open(elsewhere.path(), MOST).unwrap();
        assert_ne!(one.stdout, other.hide(&build(&text("hunter2"))).unwrap().stdout);
        let escaped = memory.hide(&build(&text("hunter2").replace("kind: Secret", "kind: \"\\u0053ecret\""))).unwrap();
        assert!(escaped.hides && !String::from_utf8(escaped.stdout).unwrap().contains("hunter2"));
        assert!(memory.hide(&build("kind: Secret\n a: [\n")).is_none());
        assert!(!memory.hide(&build("kind: Secretive\n")).unwrap().hides);
    }
}

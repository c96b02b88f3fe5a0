//! Running a program to its end, and saying everything about it when the end was not as expected.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use expect_test::Expect;
use regex::{Captures, Regex};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::files;

/// No test waits longer than this for one program.
const DEADLINE: Duration = Duration::from_secs(120);

/// What another day, machine or version prints, and what stands for it.
static VARIES: LazyLock<[(Regex, &str); 6]> = LazyLock::new(|| {
    [
        // What upstream made has a fixed date, or one that counts from now.
        (r"\d+ days old", "… days old"),
        (r"locked from \S+Z on", "locked from … on"),
        (r"(127\.0\.0\.1|localhost):\d+", "$1:…"),
        // curl adds the time, in words that depend on its version.
        (r"(Failed to connect to \S+) port.*", "$1"),
        // How git talks to a server, and how long a signature is.
        (r"(fetched from .*,) [\d.]+ [KM]?i?B", "$1 … B"),
        (r"(kustomize-localize-output)-[^/\s]+", "$1-…"),
    ]
    .map(|(varies, shown)| (Regex::new(varies).unwrap(), shown))
});

/// The same for builds, locks and keys, which are left where ids are.
static PROGRAMS_AND_KEYS: LazyLock<[(Regex, &str); 3]> = LazyLock::new(|| {
    [
        (r"\((kustomize|kubectl)/[^ ]+-[0-9a-f]{16}", "($1/…"),
        // Ids differ with keys and dates, and in a lock one of digits alone is quoted.
        (r"(file \S*kustomize-localize\.lock) \(\d+\)", "$1 (…)"),
        (r"SHA256:[A-Za-z0-9+/]{43}", "SHA256:…"),
    ]
    .map(|(varies, shown)| (Regex::new(varies).unwrap(), shown))
});

/// The result of a program.
#[derive(Clone)]
pub(crate) struct Output {
    /// The exit status; the negated signal number when a signal ended the program.
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    command: String,
    directory: PathBuf,
}

impl Output {
    /// Asserts exit status 0.
    #[track_caller]
    pub(crate) fn success(&self) -> &Self {
        assert_eq!(self.status, 0, "expected success\n{self:?}");
        self
    }

    /// Asserts this exit status.
    #[track_caller]
    pub(crate) fn fails(&self, status: i32) -> &Self {
        assert_ne!(status, 0, "0 is no failure");
        assert_eq!(self.status, status, "expected another status\n{self:?}");
        self
    }

    /// Asserts that this is all that was printed, as [`Output::numbered`] has it.
    #[track_caller]
    pub(crate) fn says(&self, expected: Expect) -> &Self {
        expected.assert_eq(&self.numbered());
        self
    }

    /// Returns what [`Output::shown`] does, with numbers for ids: those of our commits change with the version.
    fn numbered(&self) -> String {
        self.with_numbers(&format!("{}{}", self.stdout, self.stderr))
    }

    /// Returns the command as a user types it, with numbers for ids.
    fn typed(&self) -> String {
        let program = self.command.find("git-kustomize-localize").unwrap_or_default();
        self.with_numbers(&self.command[program..]).replacen("git-", "git ", 1)
    }

    /// [`portable`](Self::portable) text in which each id is a number, counted by first appearance. Ids count as one if
    /// their first 12 digits are equal, as of a commit in JSON and in a message.
    fn with_numbers(&self, text: &str) -> String {
        static ID: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{12,64}\b").unwrap());
        let shown = self.portable(text);
        let shown = PROGRAMS_AND_KEYS
            .iter()
            .fold(shown, |text, (varies, shown)| varies.replace_all(&text, *shown).into_owned());
        let mut ids = Vec::new();
        let number = |id: &Captures<'_>| {
            let id = id[0][..12].to_owned();
            let known = ids.iter().position(|known| *known == id);
            let number = known.unwrap_or_else(|| {
                ids.push(id);
                ids.len() - 1
            });
            format!("<{number}>")
        };
        ID.replace_all(&shown, number).into_owned()
    }

    /// Returns what was printed, standard error last, without what another day, machine or version changes.
    pub(crate) fn shown(&self) -> String {
        self.portable(&format!("{}{}", self.stdout, self.stderr))
    }

    /// Returns `text` with `/home/me` for the directory of the sandbox, and without times, versions and ports.
    fn portable(&self, text: &str) -> String {
        let is_sandbox =
            |path: &&Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sandbox-"));
        let sandbox = self.directory.ancestors().find(is_sandbox).unwrap().to_string_lossy();
        let printed = text.replace(&*sandbox, "/home/me");
        let version = concat!("\"version\": \"", env!("CARGO_PKG_VERSION"), "\"");
        let printed = printed.replace(version, "\"version\": \"…\"");
        VARIES.iter().fold(printed, |text, (varies, shown)| varies.replace_all(&text, *shown).into_owned())
    }

    /// Asserts that standard output holds `text`.
    #[track_caller]
    pub(crate) fn stdout_has(&self, text: &str) -> &Self {
        assert!(self.stdout.contains(text), "no {text:?} in stdout\n{self:?}");
        self
    }

    /// Asserts that standard error holds `text`.
    #[track_caller]
    pub(crate) fn stderr_has(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "no {text:?} in stderr\n{self:?}");
        self
    }

    /// Asserts that neither standard output nor standard error holds `text`.
    #[track_caller]
    pub(crate) fn lacks(&self, text: &str) -> &Self {
        let found = self.stdout.contains(text) || self.stderr.contains(text);
        assert!(!found, "{text:?} was printed\n{self:?}");
        self
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listing = listing(&self.directory);
        writeln!(f, "command: {}", self.command)?;
        writeln!(f, "directory: {}", self.directory.display())?;
        writeln!(f, "status: {}", self.status)?;
        writeln!(f, "--- files\n{listing}--- stdout\n{}", self.stdout)?;
        writeln!(f, "--- stderr\n{}---", self.stderr)
    }
}

/// The commands of several runs and what they printed, to be compared whole.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Transcript(Vec<(Vec<String>, String)>);

impl Transcript {
    /// Adds a run. Runs in a row that print the same are shown together, and an equal command once.
    pub(crate) fn add(&mut self, output: &Output) {
        let (command, printed) = (output.typed(), output.numbered());
        match self.0.last_mut() {
            Some((commands, same)) if *same == printed => {
                if !commands.contains(&command) {
                    commands.push(command);
                }
            }
            _ => self.0.push((vec![command], printed)),
        }
    }

    /// Asserts that these are all commands, each after a `$`, and all that they printed.
    #[track_caller]
    pub(crate) fn says(&self, expected: Expect) {
        let mut all = String::new();
        for (commands, printed) in &self.0 {
            commands.iter().for_each(|command| writeln!(all, "$ {command}").unwrap());
            all.push_str(printed);
        }
        expected.assert_eq(&all);
    }
}

/// Waits until something is so; after 20 seconds the test fails.
#[track_caller]
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A program that still runs, in a process group of its own. Dropping it kills the group.
pub(crate) struct Running {
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    /// Never sends: it is disconnected when nothing holds the output open.
    closed: Receiver<()>,
    command: String,
    directory: PathBuf,
}

impl Running {
    /// Starts `command` without standard input.
    pub(crate) fn start(command: &mut Command) -> Running {
        let mut child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let (open, closed) = mpsc::channel();
        Running {
            stdout: Some(collect(child.stdout.take().unwrap(), open.clone())),
            stderr: Some(collect(child.stderr.take().unwrap(), open)),
            closed,
            command: words(command),
            directory: command.get_current_dir().unwrap_or(Path::new(".")).into(),
            child,
        }
    }

    /// Asks the program to stop, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Ends the program in the middle of what it does.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Ends the program and everything in its process group.
    pub(crate) fn kill_group(&self) {
        // One that has ended already is fine.
        rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::KILL).ok();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end of the program and of everything that holds its output open.
    pub(crate) fn wait(self) -> Output {
        self.wait_for(DEADLINE)
    }

    /// The same, with another deadline.
    pub(super) fn wait_for(mut self, deadline: Duration) -> Output {
        let start = Instant::now();
        let status = match self.closed.recv_timeout(deadline) {
            Err(RecvTimeoutError::Timeout) => None,
            _ => ended_within(&mut self.child, deadline.saturating_sub(start.elapsed())),
        };
        let Some(status) = status else {
            panic!("still running after {deadline:?}: {} in {}", self.command, self.directory.display())
        };
        Output {
            status: status.code().unwrap_or_else(|| -status.signal().unwrap_or_default()),
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
            command: std::mem::take(&mut self.command),
            directory: std::mem::take(&mut self.directory),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Until its output is taken, the program has not been waited for, and the group is still its own.
        if self.stdout.is_some() {
            self.kill_group();
            self.child.wait().ok();
        }
    }
}

/// Waits for the end of a program; `None` if it still runs after this time.
pub(crate) fn ended_within(child: &mut Child, most: Duration) -> Option<ExitStatus> {
    // Mostly its output has been read to the end, and so has it.
    if let Some(status) = child.try_wait().unwrap() {
        return Some(status);
    }
    let pid = WaitId::Pid(Pid::from_child(child));
    let (running, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        // The status stays for `wait` below.
        let result = rustix::process::waitid(pid, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        drop((result, running));
    });
    match ended.recv_timeout(most) {
        Err(RecvTimeoutError::Timeout) => None,
        _ => Some(child.wait().unwrap()),
    }
}

fn collect(mut from: impl Read + Send + 'static, open: Sender<()>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        drop(open);
        bytes
    })
}

fn text(collected: Option<JoinHandle<Vec<u8>>>) -> String {
    let bytes = collected.unwrap().join().unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = program.file_name().unwrap().to_string_lossy().into_owned();
    for word in command.get_args().map(OsStr::to_string_lossy) {
        let plain = !word.is_empty() && !word.contains(char::is_whitespace);
        let result = if plain { write!(words, " {word}") } else { write!(words, " {word:?}") };
        result.unwrap();
    }
    words
}

/// Returns the first entries below `directory`, one a line, without what git keeps for itself.
fn listing(directory: &Path) -> String {
    const MOST: usize = 200;
    let names = files(directory).into_keys().take(MOST);
    names.map(|name| name + "\n").collect()
}

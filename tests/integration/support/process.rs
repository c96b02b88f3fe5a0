//! Running a program to its end, and saying everything about it when the end was not as expected.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// No test waits longer than this for one program.
const DEADLINE: Duration = Duration::from_secs(120);

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

    /// Asserts that standard output holds `text`.
    #[track_caller]
    pub(crate) fn stdout_has(&self, text: &str) -> &Self {
        assert!(
            self.stdout.contains(text),
            "no {text:?} in stdout\n{self:?}"
        );
        self
    }

    /// Asserts that standard error holds `text`.
    #[track_caller]
    pub(crate) fn stderr_has(&self, text: &str) -> &Self {
        assert!(
            self.stderr.contains(text),
            "no {text:?} in stderr\n{self:?}"
        );
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

/// A program that still runs. Dropping it kills it.
pub(crate) struct Running {
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    command: String,
    directory: PathBuf,
}

impl Running {
    /// Starts `command` without standard input.
    pub(crate) fn start(command: &mut Command) -> Running {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Running {
            stdout: child.stdout.take().map(collect),
            stderr: child.stderr.take().map(collect),
            command: words(command),
            directory: command.get_current_dir().unwrap_or(Path::new(".")).into(),
            child,
        }
    }

    /// Asks the program to stop, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal(rustix::process::Signal::INT);
    }

    /// Ends the program in the middle of what it does.
    pub(crate) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    /// Ends the program and everything in its process group, which it must lead.
    pub(crate) fn kill_group(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // One that has ended already is fine.
        rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).ok();
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for the end of the program and of everything that holds its output open.
    pub(crate) fn wait(mut self) -> Output {
        let status = self.wait_for_exit();
        Output {
            status: status
                .code()
                .unwrap_or_else(|| -status.signal().unwrap_or_default()),
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
            command: std::mem::take(&mut self.command),
            directory: std::mem::take(&mut self.directory),
        }
    }

    fn wait_for_exit(&mut self) -> ExitStatus {
        let start = Instant::now();
        let mut pause = Duration::from_micros(500);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                start.elapsed() < DEADLINE,
                "still running after {DEADLINE:?}: {} in {}",
                self.command,
                self.directory.display()
            );
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
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
        let result = if plain {
            write!(words, " {word}")
        } else {
            write!(words, " {word:?}")
        };
        result.unwrap();
    }
    words
}

/// Returns the first entries below `directory`, one a line, without what git keeps for itself.
fn listing(directory: &Path) -> String {
    const MOST: usize = 200;
    let mut lines = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in next.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(directory).unwrap_or(&path).display();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && entry.file_name() != ".git" {
                pending.push(path.clone());
            } else {
                lines.push(format!("{name}\n"));
            }
        }
        if lines.len() > MOST {
            lines.push("...\n".to_owned());
            break;
        }
    }
    lines.sort();
    lines.concat()
}

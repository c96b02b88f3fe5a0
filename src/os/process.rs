//! Starting other programs: a deadline, a process group that ends as one, and no surprises on the
//! terminal.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::os::interrupt::{self, GroupSignal, signal_group};

/// How long a process group may take to end by itself after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// The longest pause between two looks at a running child.
const POLL: Duration = Duration::from_millis(20);
/// The same once its pipes are closed, as most children do in the moment in which they end.
const SOON: Duration = Duration::from_micros(500);

/// How many pieces of what a child writes wait to be taken.
const PIECES: usize = 64;

/// Whether the child may talk to the person at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terminal {
    /// Own session: no controlling terminal, so that nothing can ask and then wait for ever.
    Detached,
    /// Our session and process group: the child may ask for a password.
    Shared,
}

/// The result of a finished child.
#[derive(Debug)]
pub(crate) struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Everything it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// Everything it wrote to its standard error, as text.
    pub stderr: String,
}

/// Why there is no [`Output`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The program is not there.
    #[error("`{0}` was not found on PATH")]
    NotFound(String),
    /// The program could not be started, or its pipes broke.
    #[error("could not run `{0}`: {1}")]
    Io(String, std::io::Error),
    /// The deadline passed; the whole process group was ended.
    #[error("`{0}` did not finish within {1} s")]
    Deadline(String, u64),
    /// It took more than it may; the whole process group was ended.
    #[error("`{0}` took more than {1} MiB of {2}")]
    Exceeded(String, u64, &'static str),
}

/// The limits of a child.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) time: Option<Duration>,
    /// The most bytes that it may write.
    pub(crate) output: u64,
    /// The most resident memory in bytes, on systems that show it.
    pub(crate) memory: u64,
    /// Whether on Linux a process above it ends everything that it leaves behind.
    pub(crate) is_supervised: bool,
}

impl From<Option<Duration>> for Bounds {
    fn from(time: Option<Duration>) -> Bounds {
        Bounds { time, output: u64::MAX, memory: u64::MAX, is_supervised: false }
    }
}

/// Runs `command` to its end, feeding it `input`, and collects what it writes. Fails if it cannot be run, or exceeds
/// its bounds; a command that ends with an error is not a failure here.
pub(crate) fn run(
    command: &mut Command,
    input: Option<&[u8]>,
    bounds: impl Into<Bounds>,
    terminal: Terminal,
) -> Result<Output, Error> {
    let (name, bounds) = (name(command), bounds.into());
    command
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let own_group = terminal == Terminal::Detached;
    if own_group {
        detach(command);
    }
    // After `detach`, whose steps are for the direct child: with this, the command itself is a child of that.
    #[cfg(target_os = "linux")]
    if bounds.is_supervised {
        super::supervisor::put_above(command);
    }
    let (mut child, _group) = interrupt::spawn(command, own_group).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(name.clone()),
        _ => Error::Io(name.clone(), error),
    })?;
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), input.map(<[u8]>::to_vec)) {
        // On another thread, because the child may write before it has read everything.
        std::thread::spawn(move || {
            // A child that reads only part of its input closes the pipe: its status shows whether that was an error.
            let _ = pipe.write_all(&bytes);
        });
    }
    // A bounded channel: a child that writes faster than we read is slowed down, so that it cannot fill the memory.
    let (written, reader) = mpsc::sync_channel(PIECES);
    send_output(child.stdout.take(), 0, written.clone());
    send_output(child.stderr.take(), 1, written);
    wait_within(&mut child, name, bounds, &reader).inspect_err(|_| end(&mut child, own_group))
}

/// The program of a command, for messages.
pub(super) fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// Gives the child a session of its own: no controlling terminal, and a group we can end as one.
#[cfg_attr(not(unix), expect(unused_variables))]
#[allow(unsafe_code)]
fn detach(command: &mut Command) {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        #[cfg(target_os = "linux")]
        let us = rustix::process::getpid();
        // SAFETY: these are plain system calls, which are async-signal-safe and touch no memory of the parent.
        unsafe {
            command.pre_exec(move || {
                rustix::process::setsid()?;
                // However we end, the child gets SIGTERM, so that git removes its locks. The end of the thread that
                // started the child counts as our end, so each thread waits for its own child.
                #[cfg(target_os = "linux")]
                end_with(us, rustix::process::Signal::TERM)?;
                Ok(())
            });
        }
    }
}

/// Lets the system send this signal to this process when its parent ends.
#[cfg(target_os = "linux")]
pub(super) fn end_with(parent: rustix::process::Pid, signal: rustix::process::Signal) -> std::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(signal))?;
    // It may have ended before that.
    if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(std::io::ErrorKind::NotFound.into()) }
}

/// Sends the bytes from a pipe, with the number of the pipe: 0 for stdout, 1 for stderr. Each pipe is
/// read on a thread of its own, because a child may block until one of them is read.
fn send_output(pipe: Option<impl Read + Send + 'static>, number: usize, to: mpsc::SyncSender<(usize, Vec<u8>)>) {
    let Some(mut pipe) = pipe else {
        return;
    };
    // Never joined: a program that left the child's session (an ssh master connection) may hold the pipe for hours.
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        loop {
            match pipe.read(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(length @ 1..) if to.send((number, buffer[..length].to_vec())).is_ok() => {}
                _ => return,
            }
        }
    });
}

/// Waits until the child has ended and both of its pipes are closed, or [`GRACE`] has passed since its end. Fails as
/// soon as it exceeds its bounds.
fn wait_within(
    child: &mut Child,
    name: String,
    bounds: Bounds,
    reader: &mpsc::Receiver<(usize, Vec<u8>)>,
) -> Result<Output, Error> {
    let (start, mut measured, mut exited) = (Instant::now(), Instant::now(), None);
    let mut written = [Vec::new(), Vec::new()];
    loop {
        let received = reader.recv_timeout(POLL);
        let is_closed = matches!(received, Err(RecvTimeoutError::Disconnected));
        if let Ok((number, bytes)) = received {
            written[number].extend(bytes);
        }
        let status = final_status(child, is_closed, &mut exited).map_err(|error| Error::Io(name.clone(), error))?;
        if let Some(status) = status {
            let [stdout, stderr] = written;
            return Ok(Output { status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() });
        }
        // The bounds come last, because a child that has just ended, with its pipes closed, did so within them.
        if let Some(timeout) = bounds.time.filter(|timeout| start.elapsed() >= *timeout) {
            return Err(Error::Deadline(name, timeout.as_secs()));
        }
        if written.iter().map(|written| written.len() as u64).sum::<u64>() > bounds.output {
            return Err(Error::Exceeded(name, bounds.output >> 20, "output"));
        }
        if bounds.memory < u64::MAX && measured.elapsed() >= POLL {
            measured = Instant::now();
            if bounds.resident_bytes(child.id()) > bounds.memory {
                return Err(Error::Exceeded(name, bounds.memory >> 20, "memory"));
            }
        }
    }
}

/// The status of a child. `None` if it has not ended, or if a process that it left behind still has its pipes open, and
/// [`GRACE`] has not passed since its end was noticed (`exited`).
fn final_status(
    child: &mut Child,
    is_closed: bool,
    exited: &mut Option<Instant>,
) -> std::io::Result<Option<ExitStatus>> {
    let status = child.try_wait()?;
    if is_closed {
        // With closed pipes, the reader does not wait any more.
        if status.is_none() {
            std::thread::sleep(SOON);
        }
        return Ok(status);
    }
    if status.is_none() || exited.get_or_insert_with(Instant::now).elapsed() <= GRACE {
        return Ok(None);
    }
    // The process that the child left behind is ended, if it is in the group of the child.
    signal_group(child.id(), GroupSignal::Kill);
    Ok(status)
}

impl Bounds {
    /// The resident memory of a command that is run within these bounds; 0 if the system does not tell.
    fn resident_bytes(&self, process: u32) -> u64 {
        // The supervisor began as a copy of this process, so its memory is not the memory of the command.
        if self.is_supervised { resident_bytes_below(process) } else { resident_bytes(process).unwrap_or(0) }
    }
}

/// The resident memory of a process and of everything that it has started, in bytes; `None` if the system does not
/// tell.
fn resident_bytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    Some((kilobytes.trim().parse::<u64>().ok()? << 10) + resident_bytes_below(process))
}

/// The resident memory of everything that a process has started, in bytes.
fn resident_bytes_below(process: u32) -> u64 {
    // The kernel lists children by the thread that started them.
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children = lists.flat_map(|list| list.split(' ').flat_map(str::parse).collect::<Vec<u32>>());
    children.filter_map(resident_bytes).sum()
}

/// Ends a child that exceeded its bounds or cannot be waited for. If it leads a group, the group is first asked to end,
/// so that git removes its locks, and then killed.
fn end(child: &mut Child, own_group: bool) {
    if own_group {
        signal_group(child.id(), GroupSignal::Terminate);
        let asked = Instant::now();
        while asked.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(POLL);
        }
        signal_group(child.id(), GroupSignal::Kill);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn feeds_input_and_collects_both_outputs() {
        let output = run(&mut sh("cat; echo oops >&2; exit 3"), Some(b"hello"), None, Terminal::Detached).unwrap();
        assert_eq!(output.stdout, b"hello");
        assert_eq!(output.stderr, "oops\n");
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn a_child_that_leaves_the_session_is_not_waited_for() {
        let start = Instant::now();
        let script = "echo out; setsid sleep 20 & sleep 0.1; echo err >&2; exit 4";
        let output = run(&mut sh(script), None, None, Terminal::Detached).unwrap();
        assert!(start.elapsed() < Duration::from_secs(10));
        assert_eq!(output.status.code(), Some(4));
        assert_eq!((output.stdout.as_slice(), output.stderr.as_str()), (&b"out\n"[..], "err\n"));
    }

    #[test]
    fn a_detached_child_has_no_terminal() {
        let output = run(
            &mut sh("if true </dev/tty; then echo tty; else echo none; fi 2>/dev/null"),
            None,
            None,
            Terminal::Detached,
        )
        .unwrap();
        assert_eq!(output.stdout, b"none\n");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_that_takes_too_much_is_ended() {
        let bounds =
            Bounds { time: Some(Duration::from_secs(20)), output: 1 << 20, memory: 100 << 20, is_supervised: false };
        for (script, what) in [
            ("yes", "1 MiB of output"),
            ("yes >&2", "1 MiB of output"),
            ("x=$(head -c 200000000 /dev/zero | tr '\\0' x); sleep 20", "100 MiB of memory"),
            ("(x=$(head -c 200000000 /dev/zero | tr '\\0' x); sleep 20); true", "100 MiB of memory"),
        ] {
            let error = run(&mut sh(script), None, bounds, Terminal::Detached).unwrap_err();
            assert_eq!(error.to_string(), format!("`sh` took more than {what}"), "{script}");
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(&mut Command::new("no-such-program-here"), None, None, Terminal::Detached).unwrap_err();
        assert_eq!(error.to_string(), "`no-such-program-here` was not found on PATH");
    }
}

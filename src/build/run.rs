//! Running one build.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::disk::Layout;
use super::inputs::{Answers, RemoteFiles};
use super::program::{PROXIES, Program, Tool};
use super::proxy::Proxy;
use super::roots::Writing;
use super::secrets::Secrets;
use super::stand_in;
use crate::graph::Graph;
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::redact;
use crate::os::failpoint;
use crate::os::interrupt::{Scratch, unusable};
use crate::os::parallel::locked;
use crate::os::process::{self, Bounds};
use crate::os::sandbox::{self, Isolated, Isolation, Means, Request};
use crate::targets::variables::{Filled, Problems, Variables};

/// The port of a cluster that no configuration names.
const CLUSTER: u16 = 8080;

/// How long one build may take, unless the configuration says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The largest output of a build, in bytes.
const OUTPUT: u64 = 256 << 20;
/// Its largest resident memory, in bytes.
const MEMORY: u64 = 2 << 30;

/// The result of one build. The [memory](super::memory) stores the other fields before the standard output.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct BuildOutput {
    /// Everything that it wrote to its standard output.
    #[serde(skip)]
    pub(crate) stdout: Vec<u8>,
    /// Its standard error, without secrets.
    pub(super) stderr: String,
    /// Whether it ended with status 0.
    pub(super) success: bool,
    /// Its refused requests, which no reference names: calls of programs and URLs, without
    /// secrets.
    #[serde(skip)]
    pub(super) refused: BTreeSet<String>,
    /// The number of bytes that it wrote to its standard output.
    pub(super) size: u64,
    /// Whether values of Secrets are replaced in its output.
    pub(super) hides: bool,
    /// Why not all variables of its engine are filled in.
    pub(super) problems: Problems,
    /// Whether building again gave something else; false if nobody asked, or nothing runs that need not give the same.
    #[serde(skip)]
    pub(crate) is_unsteady: bool,
    /// Why requests of its functions are not seen; `None` if they are, or if no function runs.
    #[serde(skip)]
    pub(crate) unobserved: Option<&'static str>,
}

impl BuildOutput {
    /// The result that is known without a program.
    pub(super) fn known(stdout: Vec<u8>) -> BuildOutput {
        BuildOutput { size: stdout.len() as u64, stdout, success: true, ..BuildOutput::default() }
    }

    /// The reason why the build failed, from its standard error, on one line.
    pub(super) fn reason(&self) -> String {
        // Deprecations are not a reason, and kustomize prints them before it.
        let text = self
            .stderr
            .lines()
            .filter(|line: &&str| {
                let is_flag = line.starts_with("Flag --") && line.contains(" has been deprecated");
                !is_flag && !line.starts_with("# Warning:") && *line != HELM_DEBUG
            })
            .collect::<Vec<_>>()
            .join("\n");
        // The message of a command that it ran has several lines.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // Some versions of kubectl quote the message, and a message about a program that kustomize ran has its call in
        // it.
        let text = logged(&text);
        without_call(&cause(text.trim_start_matches("Error: ")))
    }
}

/// The message that some versions of kubectl log with a time and the id of a process.
fn logged(text: &str) -> String {
    let quoted = text.split_once(r#"] "command failed" err=""#).and_then(|(_, quoted)| quoted.strip_suffix('"'));
    quoted.map_or_else(|| text.to_owned(), |quoted| quoted.replace(r#"\""#, "\"").replace(r"\\", r"\"))
}

/// A text without the paths of the temporary files in a directory, so that one failure has the same message each time.
fn without_temporary(text: &str, directory: &Path) -> String {
    let directory = format!("{}/", directory.display());
    let mut parts = text.split(&directory);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // The first name below the directory is random, so that it differs each time.
        let rest = part.trim_start_matches(|next: char| next.is_ascii_alphanumeric() || "-_.".contains(next));
        out += &rest.strip_prefix('/').map_or_else(|| format!("tmp/…{rest}"), str::to_owned);
    }
    out
}

/// The message of a program that kustomize ran, without its call. A message that is only the call loses its
/// environment.
fn without_call(text: &str) -> String {
    let Some((message, call)) = text.split_once("unable to run: '") else { return text.to_owned() };
    // The call names temporary directories, and nothing of the user.
    let message = message.trim_end_matches([':', ' ']);
    match call.split_once(" with env=[").zip(call.split_once("] (is '")) {
        _ if !message.is_empty() => message.trim_start_matches("Error: ").to_owned(),
        Some(((call, _), (_, rest))) => format!("unable to run: '{call} (is '{rest}"),
        None => text.to_owned(),
    }
}

/// The advice of helm after the reason.
const HELM_DEBUG: &str = "Use --debug flag to render out invalid YAML";

/// The message of Helm 4 for a kustomize before 5.8.1, which asks it for its version with `-c`.
const HELM_4: &str = "unknown shorthand flag: 'c' in -c";

/// The innermost reason in a message of kustomize, which repeats it for each root on the way; with the root that has
/// it.
fn cause(text: &str) -> String {
    if text.contains(HELM_4) {
        return "kustomize before 5.8.1, alone or in kubectl, cannot run Helm 4: use kustomize 5.8.1 or later, or Helm 3".to_owned();
    }
    // Before that, kustomize lists everything else for which it took the path of the root.
    let innermost = text.rsplit_once("recursed ").and_then(|(_, rest)| rest.split_once("path '")?.1.split_once("': "));
    match innermost {
        None => text.to_owned(),
        // A fetched root lies in a temporary directory, whose name means nothing to the user.
        Some((path, cause)) if path.starts_with('/') => cause.to_owned(),
        Some((path, cause)) => format!("in `{path}`: {cause}"),
    }
}

/// The inputs of builds on disk, in a directory that is deleted with this.
pub(super) struct BuildFiles {
    pub(super) scratch: Scratch,
    /// The directory of the files, which no build may change.
    pub(super) input: PathBuf,
    pub(super) answers: Answers,
    /// Whether the files are those of a commit, which are read as a checkout gives them.
    pub(super) checks_out: bool,
    /// The values of Secrets in the files that all roots share.
    pub(super) secrets: OnceLock<Secrets>,
    /// The same once all files of the tree are among them.
    all_secrets: OnceLock<Secrets>,
}

impl BuildFiles {
    /// Begins with the responses from a walk.
    pub(super) fn of(graph: &Graph, writing: Writing<'_>) -> Result<BuildFiles> {
        let Writing { checks_out, offline, name, .. } = writing;
        let scratch = Scratch::new().map_err(unusable)?;
        let input = scratch.path().join(name);
        let answers = Answers::of(graph, offline, &input)?;
        let (secrets, all_secrets) = (OnceLock::new(), OnceLock::new());
        Ok(BuildFiles { scratch, input, answers, checks_out, secrets, all_secrets })
    }
}

/// A root on disk.
#[derive(Clone)]
pub(super) struct RootDir {
    pub(super) files: Arc<BuildFiles>,
    /// Its files, if they are written when a build begins; `None` if they are on disk.
    pub(super) layout: Option<Arc<Layout>>,
    /// The part of the files that its builds may read: the top of its tree.
    pub(super) top: PathBuf,
    /// Its directory from there.
    pub(super) directory: String,
    /// Whether it runs helm or a function, which need not give the same again.
    pub(super) runs: bool,
    /// Whether it reaches a root that names a file outside of itself.
    pub(super) reads_outside: bool,
}

impl RootDir {
    /// The top of its tree, with its files on disk.
    pub(super) fn on_disk(&self) -> Result<&Path> {
        self.layout.as_ref().map(|layout| layout.ensure_written()).transpose()?;
        Ok(&self.top)
    }

    /// The digest of its files.
    pub(super) fn digest(&self) -> Result<String> {
        self.layout.as_ref().map_or_else(|| self.files.answers.digest_below(&self.top), |layout| Ok(layout.digest()))
    }
}

/// One build of a root by a program.
// No tree is in it, so that builds can run side by side.
#[derive(Clone)]
pub(super) struct BuildRun {
    pub(super) root: RootDir,
    pub(super) program: Program,
    pub(super) arguments: Vec<String>,
    /// The variables that are filled in afterwards.
    pub(super) variables: Variables,
    /// Whether the program edits the kustomization, and builds nothing.
    pub(super) edits: bool,
    /// The root with its known inputs, if this build may read more. A failure is remembered by these.
    pub(super) known: Option<RootDir>,
}

/// The variables of our environment that a build sees: the paths of programs, and the locale.
const VARIABLES: &[&str] =
    if cfg!(windows) { &["PATH", "PATHEXT", "SystemRoot", "ComSpec"] } else { &["PATH", "LANG", "LANGUAGE"] };

/// The directory of the programs that we stand in for, in that of a build.
const BIN: &str = "bin";

/// The variables that it also sees if it asks upstream itself.
const CONNECTION: [&str; 4] = ["NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"];

impl BuildRun {
    /// A build of a root as it is.
    pub(super) fn of(root: RootDir, program: &Program, arguments: Vec<String>, variables: Variables) -> BuildRun {
        BuildRun { root, program: program.clone(), arguments, variables, edits: false, known: None }
    }

    /// Runs the program in a new directory of its own, whatever is remembered. If the machine or a limit ends it early,
    /// that is a failure; if the program itself fails, the output says so.
    pub(super) fn run(&self) -> Result<BuildOutput> {
        let BuildRun { root: RootDir { files: build_files, .. }, program, variables, .. } = self;
        let time = program.time_for_build()?;
        self.root.on_disk()?;
        let private = tempfile::tempdir_in(build_files.scratch.path()).map_err(unusable)?;
        let private = private.path();
        let mut command = self.command(private)?;
        let (proxy, network) = match &build_files.answers.files {
            RemoteFiles::Served { served, is_closed } => {
                let proxy = Proxy::start(served)?;
                proxy.serve(&mut command);
                let network = is_closed.then_some(proxy.address());
                (Some(proxy), network)
            }
            // The build asks upstream itself, so its network stays open.
            RemoteFiles::Upstream => (None, None),
        };
        let Isolated { output, refused: requests } = self.run_isolated(&mut command, private, network, time)?;
        let name = command.get_program().to_string_lossy().into_owned();
        // Without a status, a signal that we did not send has ended it: most often memory ran out.
        if output.status.code().is_none() {
            return Err(stopped(format!("`{name}` was killed"), MORE_MEMORY));
        }
        let stderr = self.without_secrets(self.without_directories(&redact::text(&output.stderr), private));
        // The proxy, the kernel and the stand-ins may each have refused something.
        let by_proxy = proxy.as_ref().map(Proxy::refused).unwrap_or_default();
        let refused = self.refused(by_proxy, requests.as_ref(), &stderr, private);
        let unobserved = self.unobserved(requests.is_some());
        // Filling in parses the whole output, which may be large, so it is not done without variables.
        let filled = Filled { text: output.stdout, problems: Problems::default() };
        let Filled { text, problems } = if variables.is_empty() { filled } else { variables.fill_in(&filled.text) };
        let success = output.status.success();
        let build = BuildOutput { success, stderr, refused, problems, unobserved, ..BuildOutput::known(text) };
        // A refused request explains a failure better than a shortage of the machine.
        match shortage(&build.stderr) {
            Some(hint) if !success && build.refused.is_empty() => {
                Err(stopped(format!("`{name}` fails: {}", build.reason()), hint))
            }
            _ => Ok(build),
        }
    }

    /// Runs a command isolated from the machine, except for its `private` directory, and from all of the `network` but
    /// this address, if there is one. Fails if a limit ends it, which tells nothing about the root.
    fn run_isolated(
        &self,
        command: &mut Command,
        private: &Path,
        network: Option<SocketAddr>,
        time: Duration,
    ) -> Result<Isolated> {
        let BuildFiles { input, .. } = &*self.root.files;
        let traces = failpoint::writable();
        // `kustomize edit` writes into its directory, which is not among the inputs.
        let edited = Some(&*self.root.top).filter(|top| !top.starts_with(input));
        let writable: Vec<&Path> = [Some(private), edited, traces.as_deref()].into_iter().flatten().collect();
        let (means, local) = (self.program.network, self.runs_images());
        let isolation = Isolation { means, network, input, writable: &writable, local };
        // A hostile input must not take more, whatever the program does.
        let bounds = Bounds { output: OUTPUT, memory: MEMORY, ..Some(time).into() };
        let begun = Instant::now();
        let isolated = sandbox::run(command, isolation, bounds);
        // All builds of a run share a limit, so that one slow root cannot use it up unseen.
        self.program.spend(begun.elapsed());
        isolated.map_err(|error| match error {
            process::Error::Deadline(..) => stopped(error.to_string(), MORE_TIME),
            process::Error::Exceeded(..) => stopped(error.to_string(), "split what it builds into several roots"),
            error => Failure::new(error.to_string()),
        })
    }

    /// A standard error without values of the Secrets in the files that the build reads.
    fn without_secrets(&self, stderr: String) -> String {
        // The files are searched only if the program says something that may quote them.
        if stderr.is_empty() {
            return stderr;
        }
        let BuildFiles { input, secrets, all_secrets, .. } = &*self.root.files;
        // The copy of the whole tree is among the shared files.
        let (shared, of_root) = match self.known {
            Some(_) => (all_secrets, Secrets::default()),
            None => (secrets, Secrets::below(&self.root.top)),
        };
        shared.get_or_init(|| Secrets::shared(input)).hide(&of_root, &stderr)
    }

    /// The command that builds or edits, with its own home, and with our executable in the place of programs that
    /// fetch.
    fn command(&self, private: &Path) -> Result<Command> {
        let BuildRun { root, program, arguments, .. } = self;
        let Answers { manifest, files, .. } = &root.files.answers;
        let root_path = root.top.join(&root.directory);
        let [home, temporary, bin] = ["home", "tmp", BIN].map(|name| private.join(name));
        for directory in [&home, &temporary, &bin] {
            std::fs::create_dir_all(directory).map_err(unusable)?;
        }
        let mut command = program.command(self.edits);
        command.env_clear().envs(environment(files));
        stand_in::replace_programs(&mut command, manifest, &bin, program.helm.as_deref())
            .map_err(|error| Failure::new(format!("cannot replace git for the build: {error}")))?;
        // `kustomize edit` edits the kustomization of its working directory.
        command.args(arguments).current_dir(if self.edits { &root_path } else { &home });
        if !self.edits {
            command.arg("--").arg(&root_path);
        }
        // The settings and caches of the user would make the output one of this machine.
        command.env("HOME", &home).env("TMPDIR", &temporary);
        // Programs that we let run, such as helm, find the real git: it must neither ask nor fetch.
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ALLOW_PROTOCOL", "none");
        Ok(command)
    }

    /// All refused requests of a build: those to the proxy, those among the `requests` that the sandbox has seen, and
    /// the calls of programs that we stand in for. Requests that are expected are left out. If the build asks upstream
    /// itself, its network is open, so only calls are refused.
    fn refused(
        &self,
        by_proxy: BTreeSet<String>,
        requests: Option<&BTreeSet<Request>>,
        stderr: &str,
        private: &Path,
    ) -> BTreeSet<String> {
        let mut refused = by_proxy;
        // kustomize requests a URL as a file before it asks git for it. If the proxy has refused the URL, the call of
        // git would report it again.
        let mut calls = stand_in::refused(&private.join(BIN));
        calls.retain(|call| !refused.iter().any(|url| call.split(' ').any(|word| word == url)));
        if let RemoteFiles::Served { served, .. } = &self.root.files.answers.files {
            // Go asks a host on this machine without the proxy, where the file may be out of reach. kustomize then asks
            // git for a repository above the file: such a call is expected.
            calls.retain(|call| !call.split(' ').any(|word| served.is_asked_directly_below(word)));
            // On a machine that does not show requests, only the message of the program tells about one. On others the
            // address in it is among the `requests` as well. If the build may ask a host on this machine, the message
            // may be about an expected request.
            if !served.is_asked_directly() && refused.is_empty() && calls.is_empty() {
                refused.extend(direct_address(stderr));
            }
            // A request for a port of this machine is expected if a known URL has it. If a call has it, the call tells.
            let requests = requests.into_iter().flatten().filter(|request| !self.is_for_cluster(request));
            refused.extend(requests.filter(|request| !served.is_at(request, &calls)).map(ToString::to_string));
        }
        refused.extend(calls.iter().map(|call| self.without_directories(call, private)));
        refused
    }

    /// A text without the directories that it builds in.
    fn without_directories(&self, text: &str, private: &Path) -> String {
        let text = without_temporary(text, &private.join("tmp"));
        // These directories have other names each time. The tree is below the inputs, so it is replaced first.
        let [private, top, input] = [private, &self.root.top, &self.root.files.input]
            .map(|directory: &Path| directory.display().to_string().trim_end_matches('/').to_owned());
        let text =
            [&private, &top].into_iter().fold(text, |text, directory| text.replace(&format!("{directory}/"), ""));
        text.replace(&top, ".").replace(&format!("{input}/"), "")
    }

    /// Whether functions may run.
    fn has_functions(&self) -> bool {
        self.arguments.iter().any(|argument| argument.starts_with("--enable-alpha-plugins"))
    }

    /// Whether container engines may run, which need a server on this machine.
    fn runs_images(&self) -> bool {
        self.root.files.answers.has_images && self.has_functions()
    }

    /// Whether kubectl asks a cluster which version it has, as Google's does first.
    fn is_for_cluster(&self, request: &Request) -> bool {
        // No build depends on the answer; without a configuration the cluster is the one at this port.
        let Request::Connection(Some(address)) = request else { return false };
        self.program.kind == Tool::Kubectl && address.ip().is_loopback() && address.port() == CLUSTER
    }

    /// Why requests of functions are not seen; `None` if they are, or if no function runs.
    fn unobserved(&self, shows_requests: bool) -> Option<&'static str> {
        let runs_functions = self.has_functions() && (self.root.runs || self.root.files.answers.has_images);
        if !runs_functions {
            return None;
        }
        match self.program.network {
            Means::Nothing => Some("only a proxy closes the network here"),
            _ if self.runs_images() => Some("a container engine runs an image"),
            _ => Some("this machine does not show what it refuses").filter(|_| !shows_requests),
        }
    }
}

/// The failure of a build that came to nothing, whatever it builds.
fn stopped(why: String, hint: &str) -> Failure {
    Failure::new(why).because(FailureKind::Stopped).hint(hint)
}

const MORE_TIME: &str = "raise `build-timeout` in `.kustomize-localize`, and run the same command again";
const MORE_MEMORY: &str = "see that the machine has memory left, and run the same command again";
const MORE_ROOM: &str = "set TMPDIR to a directory that has room, and run the same command again";

/// The hint if the machine was short of something, as the messages of programs tell it; `None` if it was not.
fn shortage(stderr: &str) -> Option<&'static str> {
    const SHORT: [(&str, &str); 7] = [
        ("no space left on device", MORE_ROOM),
        ("disk quota exceeded", MORE_ROOM),
        ("runtime: out of memory", MORE_MEMORY),
        ("cannot allocate memory", MORE_MEMORY),
        ("resource temporarily unavailable", MORE_MEMORY),
        ("too many open files", "allow more open files (`ulimit -n`), and run the same command again"),
        // The message about a program that kustomize has started, such as helm.
        ("signal: killed", MORE_MEMORY),
    ];
    let stderr = stderr.to_lowercase();
    SHORT.iter().find(|(short, _)| stderr.contains(short)).map(|(_, hint)| *hint)
}

/// The address that a build connected to without the proxy, as its messages name it.
fn direct_address(stderr: &str) -> Option<String> {
    // Go asks no proxy for what is on this machine.
    let (_, rest) = stderr.split_once("dial tcp ")?;
    Some(rest.split(": ").next().unwrap_or(rest).to_owned())
}

/// The time that the builds of a run have taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    builds: u32,
    time: Duration,
}

impl Spent {
    /// Whether one more build may begin, which may take up to `limit`.
    fn has_left(&self, limit: Duration) -> bool {
        // A few builds may take the whole limit, and any number of builds half of it each.
        const FULL: u32 = 5;
        self.time < limit * (2 * FULL + self.builds) / 2
    }
}

impl Program {
    /// How long a build that begins now may take, and counts it. Fails if the builds before have used up the time of a
    /// run.
    fn time_for_build(&self) -> Result<Duration> {
        let limit = self.timeout.unwrap_or(TIMEOUT);
        let mut spent = locked(&self.spent);
        if !spent.has_left(limit) {
            let why = format!(
                "no time is left: the builds before took {} s, more than half of `build-timeout` each",
                spent.time.as_secs()
            );
            return Err(stopped(
                why,
                "name a PATH to build only a part of it, or raise `build-timeout` in `.kustomize-localize`",
            ));
        }
        spent.builds += 1;
        Ok(limit)
    }

    /// Notes how long a build took.
    fn spend(&self, time: Duration) {
        locked(&self.spent).time += time;
    }
}

/// The variables of our environment that a build sees; also those of connections if it asks upstream itself.
pub(super) fn environment(remote_files: &RemoteFiles) -> impl Iterator<Item = (OsString, OsString)> + use<> {
    let asks_upstream = matches!(remote_files, RemoteFiles::Upstream);
    std::env::vars_os().filter(move |(name, _)| {
        name.to_str().is_some_and(move |name: &str| {
            VARIABLES.contains(&name)
                || name.starts_with("LC_")
                || asks_upstream && (PROXIES.contains(&name) || CONNECTION.contains(&name))
        })
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::rc::Rc;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use super::super::program;
    use super::{
        BuildFiles, BuildRun, RootDir, Spent, Variables, Writing, cause, logged, without_call, without_temporary,
    };
    use crate::graph::inputs::explore;
    use crate::tree::overlay::OverlayTree;

    #[test]
    fn many_builds_may_take_as_long_as_they_need_if_each_is_fast() {
        let one = Duration::from_secs(60);
        let has_left = |builds: u32, each: f64| Spent { builds, time: one.mul_f64(each) * builds }.has_left(one);
        for builds in [0, 1, 5, 9, 10, 100, 10_000] {
            assert!(has_left(builds, 0.5), "{builds}");
            assert_eq!(has_left(builds, 1.0), builds < 10, "{builds}");
        }
        assert!(!has_left(100, 0.6));
    }

    #[test]
    fn a_build_for_which_no_time_is_left_fails() {
        let Ok(Ok(mut program)) = program::find(None) else { return };
        program.spent = Arc::default();
        let graph = explore(Rc::new(OverlayTree::default()), &[]).graph;
        let files = Arc::new(BuildFiles::of(&graph, Writing::INPUT).unwrap());
        program.spend(Duration::from_secs(10_000));
        let (stderr, hears) = mpsc::channel();
        // It would wait for ever.
        std::thread::spawn(move || {
            let (top, directory) = (files.input.clone(), String::new());
            let root = RootDir { files, layout: None, top, directory, runs: false, reads_outside: false };
            let build = BuildRun::of(root, &program, Vec::new(), Variables::default());
            stderr.send(build.run().unwrap_err().to_string()).unwrap();
        });
        let failure = hears.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(failure.starts_with("no time is left: the builds before took 10000 s"), "{failure}");
    }

    #[test]
    fn what_is_temporary_is_not_named() {
        for (stderr, expected) in [
            ("in `/x/tmp/kustomize-12/a/b`: x /x/tmp/kustomize-3/c", "in `a/b`: x c"),
            ("`-f /x/tmp/kustomize-helm-1/v.yaml`, '/x/tmp/kust-2': no", "`-f v.yaml`, 'tmp/…': no"),
            ("tmp/kustomize-7/a of the user", "tmp/kustomize-7/a of the user"),
        ] {
            assert_eq!(without_temporary(stderr, Path::new("/x/tmp")), expected);
        }
    }

    #[test]
    fn what_is_logged_has_no_time() {
        let text = r#"E1129 10:51:29.8 14762 run.go:72] "command failed" err="no \"a\": b""#;
        assert_eq!([logged(text), logged("no such file")], [r#"no "a": b"#, "no such file"]);
    }

    #[test]
    fn how_helm_was_called_is_left_out() {
        let call = "'helm template r charts/c -f tmp/v.yaml' with env=[HELM_CONFIG_HOME=/x y/helm HELM_DATA_HOME=/x] (is 'helm' installed?): exit status 1";
        for (stderr, expected) in [
            ("no such file", "no such file"),
            (
                &*format!("Error: chart requires kubeVersion: >=2 : unable to run: {call}"),
                "chart requires kubeVersion: >=2",
            ),
            (&format!("in `base`: Error: x: y: unable to run: {call}"), "in `base`: Error: x: y"),
            (
                &format!("unable to run: {call}"),
                "unable to run: 'helm template r charts/c -f tmp/v.yaml' (is 'helm' installed?): exit status 1",
            ),
            ("unable to run: 'x", "unable to run: 'x"),
        ] {
            assert_eq!(without_call(stderr), expected);
        }
    }

    #[test]
    fn the_cause_is_extracted_from_kustomize_output() {
        for (stderr, expected) in [
            ("no such file", "no such file"),
            (
                "accumulating resources: accumulation err='accumulating resources from '../../base': 'base' must resolve to a file': recursed merging from path 'base': may not add resource",
                "in `base`: may not add resource",
            ),
            (
                "accumulating resources: accumulation err='x': recursed accumulation of path '/tmp/a/kustomize-1/gen': accumulation err='y': recursed accumulation of path '/tmp/a/kustomize-2': external plugins disabled",
                "external plugins disabled",
            ),
        ] {
            assert_eq!(cause(stderr), expected);
        }
    }
}

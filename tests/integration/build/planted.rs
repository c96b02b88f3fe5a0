//! Requests that programs of a build hide: none gets out, on any machine, and each is reported where the kernel shows
//! it.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use expect_test::expect;

use crate::support::{Kustomize, Output, Running, Sandbox, World, config_map, program, skip, tool};

const FUNCTION: &str = "apiVersion: example.com/v1\nkind: Fn\nmetadata:\n  name: fn\n  annotations:\n    \
                        config.kubernetes.io/function: '{exec: {path: ./fn.sh}}'\n";
const FLAGS: [&str; 3] =
    ["--build-arg=--enable-alpha-plugins", "--build-arg=--enable-exec", "--build-arg=--enable-helm"];

/// What tries to get out: a function of the tree; helm, and so its plugins; a plugin of this machine, as one for Go
/// templates is; kustomize itself.
const BY: [&str; 4] = ["function", "helm", "plugin", "kustomize"];

/// What the machine allows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Machine {
    Namespaces,
    /// As Ubuntu does it, and whoever sets `user.max_user_namespaces` to 0.
    NoNamespaces,
    /// What Docker's default profile allows.
    Docker,
    /// The same inside of another filter that is watched: there is one that is, at most.
    Unseen,
    /// Neither filters nor Landlock.
    Nothing,
}

impl Machine {
    /// Returns the command that runs another one there.
    fn enter(self) -> Vec<String> {
        const DOCKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/build/docker.py");
        const NONE: &str = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"";
        let words: &[&str] = match self {
            Machine::Namespaces => &["env"],
            Machine::NoNamespaces => &["unshare", "-Ur", "sh", "-c", NONE, "sh"],
            Machine::Docker => &["python3", DOCKER],
            Machine::Unseen => &["python3", DOCKER, "unseen"],
            Machine::Nothing => &["python3", DOCKER, "nothing"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn run(self, sandbox: &Sandbox, directory: &Path, words: &[&str]) -> Output {
        let enter = self.enter();
        Running::start(sandbox.command(&enter[0], directory).args(&enter[1..]).args(words)).wait()
    }

    /// Returns whether it can be played here, and is another one than those before.
    fn is_here(self, sandbox: &Sandbox) -> bool {
        let can = |words: &[&str]| self.run(sandbox, &sandbox.path(""), words).status == 0;
        match self {
            Machine::Namespaces => can(&["unshare", "-Urmn", "true"]),
            _ => can(&["true"]) && !can(&["unshare", "-Ur", "true"]),
        }
    }
}

/// Whoever hears what gets out.
struct Outside {
    tcp: TcpListener,
    ipv6: Option<TcpListener>,
    udp: UdpSocket,
    unix: UnixListener,
    directory: PathBuf,
}

impl Outside {
    fn new(sandbox: &Sandbox) -> Outside {
        let directory = sandbox.path("outside");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("existing"), "as it was").unwrap();
        fs::create_dir(sandbox.path("home/.ssh")).unwrap();
        fs::write(sandbox.path("home/.ssh/id"), "secret").unwrap();
        let outside = Outside {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            ipv6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            unix: UnixListener::bind(directory.join("socket")).unwrap(),
            directory,
        };
        outside.tcp.set_nonblocking(true).unwrap();
        outside.ipv6.iter().for_each(|one| one.set_nonblocking(true).unwrap());
        outside.udp.set_nonblocking(true).unwrap();
        outside.unix.set_nonblocking(true).unwrap();
        outside
    }

    /// Returns the command that tries to get out. It is for a shell in a directory that is an input.
    fn tries(&self, sandbox: &Sandbox, what: &str) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/build/planted.py");
        let ports = [&self.tcp, self.ipv6.as_ref().unwrap_or(&self.tcp)].map(|one| one.local_addr().unwrap().port());
        let file = |name: &str| self.directory.join(name).display().to_string();
        let udp = self.udp.local_addr().unwrap().port();
        format!(
            "python3 '{script}' {what} {} {udp} {} '{}' '{}' '{}' '{}' \"${{PWD:-.}}\" >&2 || exit 1",
            ports[0],
            ports[1],
            file("socket"),
            file("existing"),
            file("new"),
            sandbox.path("home/.ssh/id").display()
        )
    }

    #[track_caller]
    fn heard_nothing(&self, by: &str) {
        let waits = |error: std::io::Error| assert_eq!(error.kind(), ErrorKind::WouldBlock, "{by}");
        self.tcp.accept().map(drop).map_err(waits).expect_err(by);
        self.ipv6.iter().for_each(|one| one.accept().map(drop).map_err(waits).expect_err(by));
        self.udp.recv(&mut [0]).map(drop).map_err(waits).expect_err(by);
        self.unix.accept().map(drop).map_err(waits).expect_err(by);
        assert_eq!(fs::read_to_string(self.directory.join("existing")).unwrap(), "as it was", "{by}");
        assert!(!self.directory.join("new").exists(), "{by}");
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
        let mut commands =
            processes.filter_map(|file| fs::read(file).ok()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let ours = self.directory.display().to_string();
        assert_eq!(commands.find(|command| command.starts_with("python3") && command.contains(&ours)), None, "{by}");
    }
}

/// A world whose `app` runs a function.
fn world() -> World {
    let world = World::acme();
    world.commit(&[
        ("app/cm.yaml", &config_map("cm")),
        ("app/fn.yaml", FUNCTION),
        ("app/plugin.yaml", &FUNCTION.replace("kind: Fn", "kind: Plugin").replace("function:", "other:")),
        ("app/charts/c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("app/charts/c/values.yaml", ""),
    ]);
    world.work.decide("helm: true\nrules: {function: off}\n");
    world
}

#[test]
fn no_request_gets_out_on_any_machine_and_each_is_reported() {
    let (world, Some(_), Some(kustomize)) = (world(), tool("python3"), Kustomize::find()) else { return };
    let (work, sandbox) = (&world.work, &world.sandbox);
    let outside = Outside::new(sandbox);
    let machines = [Machine::Namespaces, Machine::NoNamespaces, Machine::Docker];
    let machines: Vec<Machine> = machines.into_iter().filter(|machine| machine.is_here(sandbox)).collect();
    if machines.len() < 2 {
        return skip("neither namespaces nor filters of system calls here");
    }
    let real = kustomize.program().display();
    let plugin = sandbox.path("home/.config/kustomize/plugin/example.com/v1/plugin/Plugin");
    fs::create_dir_all(plugin.parent().unwrap()).unwrap();
    sandbox.set("KUSTOMIZE", sandbox.path("bin/kustomize"));
    let planted = |what: &str, by: &str| {
        let tries = |who: &str| if by == who { outside.tries(sandbox, what) } else { "true".to_owned() };
        work.write_executable("app/fn.sh", format!("#!/bin/sh\ncd \"${{0%/*}}\"\n{}\ncat\n", tries("function")));
        fs::write(&plugin, format!("#!/bin/sh\n{}\ncat \"$1\"\n", tries("plugin"))).unwrap();
        fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
        let chart = "for one; do [ ! -d \"$one\" ] || cd \"$one\"; done";
        let helm = format!(
            "[ $1 = template ] || {{ echo v3.16.0; exit; }}\n{chart}\n{}\ncat <<E\n{}E",
            tries("helm"),
            config_map("c")
        );
        sandbox.script("helm", &helm);
        let first = format!("[ \"$1\" = version ] || {{\n{}\n}}\n", tries("kustomize"));
        sandbox.script("kustomize", &format!("{first}exec '{real}' \"$@\"\n"));
        let field = match by {
            "helm" => "helmCharts: [{name: c, releaseName: c}]",
            "plugin" => "generators: [plugin.yaml]",
            _ => "transformers: [fn.yaml]",
        };
        work.write("app/kustomization.yaml", format!("resources: [cm.yaml]\n{field}\n"));
        work.git(&["add", "."]);
    };
    let mut verdicts = Vec::new();
    let patterns = [r"192\.0\.2\.1:\d+", r"\(kustomize/[^,]*,", r"\d+ references?"];
    let [proxy, version, references] = patterns.map(|text| regex::Regex::new(text).unwrap());
    for by in BY {
        for machine in &machines {
            for what in ["requests", "rest"] {
                planted(what, by);
                let program = program().display().to_string();
                let check = [&[&*program, "check", "--build"], &FLAGS[..]].concat();
                let mut output = machine.run(sandbox, work.path(), &check);
                outside.heard_nothing(&format!("{machine:?} {what} {by} {output:?}"));
                let ports = [&outside.tcp, outside.ipv6.as_ref().unwrap_or(&outside.tcp)];
                let ports = ports.map(|one| one.local_addr().unwrap().port().to_string());
                // The proxy's is another one each time, but where it is alone.
                for text in [&mut output.stdout, &mut output.stderr] {
                    *text = text.replace(&ports[0], "TCP").replace(&ports[1], "IPV6");
                }
                let shown = output.shown();
                let shown = proxy.replace_all(&shown, "192.0.2.1:PROXY");
                let shown = version.replace_all(&shown, "(kustomize/…,");
                let shown = references.replace_all(&shown, "… references");
                // What is on this machine alone is not even found.
                let kind = if by == "plugin" { by } else { what };
                verdicts.push((kind, shown.into_owned(), format!("{machine:?} {what} {by}")));
            }
        }
    }
    for (what, verdict, of) in &verdicts {
        let first = verdicts.iter().find(|(other, ..)| other == what).unwrap();
        assert_eq!(*verdict, first.1, "{of}");
    }
    expect![[r#"
        error[unread-reference]: kustomize asks for `127.0.0.1:TCP`, which no reference names
         --> app/kustomization.yaml
         = help: write the reference plainly, and lock it: git kustomize-localize explain unread-reference

        error[unread-reference]: kustomize asks for `192.0.2.1:PROXY`, which no reference names
         --> app/kustomization.yaml

        error[unread-reference]: kustomize asks for `[::1]:IPV6`, which no reference names
         --> app/kustomization.yaml

        error[unread-reference]: kustomize asks for `a UDP socket`, which no reference names
         --> app/kustomization.yaml

        error[unread-reference]: kustomize asks for `a Unix socket`, which no reference names
         --> app/kustomization.yaml

        error[unread-reference]: kustomize asks for `a connection`, which no reference names
         --> app/kustomization.yaml

        error[unread-reference]: kustomize asks for `a socket of MPTCP or SCTP`, which no reference names
         --> app/kustomization.yaml

        note: repeated help is omitted: -v shows it
        for more: git kustomize-localize explain unread-reference
        checked 1 kustomization with … references in the working tree, 0 builds (kustomize/…, network closed): 7 errors
    "#]]
    .assert_eq(&verdicts[0].1);
    expect![[r#"
        checked 1 kustomization with … references in the working tree, 1 build (kustomize/…, network closed): no problems found
    "#]]
    .assert_eq(&verdicts[1].1);
    let plugin = verdicts.iter().find(|(kind, ..)| *kind == "plugin").unwrap();
    expect![[r#"
        warning[not-built]: not built: loading generator plugins: failed to load generator: unable to find plugin root - tried: ('<no value>'; homed in $KUSTOMIZE_PLUGIN_HOME), ('<no value>'; homed in $XDG_CONFIG_HOME), ('home/.config/kustomize/plugin'; homed in default value of $XDG_CONFIG_HOME), ('home/kustomize/plugin'; homed in home directory)
         --> app/kustomization.yaml
         = help: fix it, or, if it is not built by itself, list its directory below `exclude:` in .kustomize-localize

        for more: git kustomize-localize explain not-built
        checked 1 kustomization with … references in the working tree, 0 builds (kustomize/…, network closed): no problems found; 1 not built
    "#]].assert_eq(&plugin.1);
}

/// Nothing is silent where a machine shows less.
#[test]
fn a_machine_that_does_not_show_all_is_named() {
    let world = world();
    let (work, sandbox) = (&world.work, &world.sandbox);
    let (Some(_), Some(_)) = (tool("python3"), sandbox.builds()) else { return };
    work.write_executable("app/fn.sh", "#!/bin/sh\ncat\n");
    work.write("app/kustomization.yaml", "resources: [cm.yaml]\ntransformers: [fn.yaml]\n");
    work.git(&["add", "."]);
    let program = program().display().to_string();
    let check = [&[&*program, "check", "--build"], &FLAGS[..2]].concat();
    let rows = [
        (Machine::Unseen, "this machine does not show what it refuses", ""),
        (Machine::Nothing, "only a proxy closes the network here", " by a proxy only (no sandbox on this machine)"),
    ];
    for (machine, why, how) in rows {
        if !machine.is_here(sandbox) {
            return skip("no filters of system calls here");
        }
        work.decide("rules: {function: off}\n");
        let said =
            format!("[not-observed]: what its functions ask for is not seen: {why}\n --> app/kustomization.yaml");
        let checked = machine.run(sandbox, work.path(), &check);
        checked.success().stdout_has(&format!("warning{said}")).stdout_has(&format!(", network closed{how}): "));
        work.decide("rules: {function: off, not-observed: error}\n");
        machine.run(sandbox, work.path(), &check).fails(1).stdout_has(&format!("error{said}"));
    }
}

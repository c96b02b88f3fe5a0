//! What a build starts and requests, and which of that does not reach the outside.

use std::fs;
use std::path::Path;

/// The programs that a build may start. Each only writes down how it was called.
const PROGRAMS: [&str; 6] = ["curl", "docker", "git", "helm", "sh", "ssh"];

/// Between two arguments, and between two calls.
const UNIT: char = '\u{1f}';
const RECORD: char = '\u{1e}';

/// Puts the programs into a directory. They write to the file that `JUDGE_LOG` names.
pub(super) fn put_programs(directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    let program = directory.join("recorder");
    fs::write(
        &program,
        concat!(
            "#!/bin/sh\n",
            "name=${0##*/}\n",
            "{ printf '%s' \"$name\"; for word; do printf '\\037%s' \"$word\"; done; printf '\\036'; } >> \"$JUDGE_LOG\"\n",
            "case \"$name $1\" in\n",
            "'helm version') echo v3.12.0 ;;\n",
            "'helm template') printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: chart}\\n' ;;\n",
            "docker*) /bin/cat ;;\n",
            "*) exit 1 ;;\n",
            "esac\n",
        ),
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    for name in PROGRAMS {
        std::os::unix::fs::symlink(&program, directory.join(name)).unwrap();
    }
}

/// Returns the calls that were written down.
pub(super) fn read(log: &Path) -> Vec<Vec<String>> {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.split_terminator(RECORD).map(|call| call.split(UNIT).map(str::to_owned).collect()).collect()
}

/// Returns whether a call is one that a hermetic build makes: helm renders a chart that is there, and docker runs an
/// image that is named by its digest, without a network and with nothing but files of the root.
pub(super) fn is_hermetic(call: &[String], root: &Path, temporary: &Path) -> bool {
    let words: Vec<&str> = call.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["helm", "version", "--short"] => true,
        ["helm", "template", rest @ ..] => is_rendering(rest, root, temporary),
        ["docker", "run", rest @ ..] => is_contained(rest, root),
        _ => false,
    }
}

fn is_rendering(words: &[&str], root: &Path, temporary: &Path) -> bool {
    const SWITCHES: [&str; 6] =
        ["--generate-name", "--include-crds", "--skip-tests", "--no-hooks", "--debug", "--devel"];
    const OPTIONS: [&str; 4] = ["--namespace", "--name-template", "--api-versions", "--kube-version"];
    let mut names = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if SWITCHES.contains(word) {
        } else if *word == "-f" {
            let Some(file) = words.next().map(Path::new) else {
                return false;
            };
            if !(file.starts_with(root) || file.starts_with(temporary)) {
                return false;
            }
        } else if OPTIONS.contains(word) {
            if words.next().is_none_or(|value| value.starts_with('-')) {
                return false;
            }
        } else if word.starts_with('-') {
            return false;
        } else {
            names.push(*word);
        }
    }
    // A release, if it is named, and the chart.
    let Some(chart) = names.pop().map(Path::new) else {
        return false;
    };
    names.len() <= 1 && chart.starts_with(root) && chart.is_dir()
}

fn is_contained(mut words: &[&str], root: &Path) -> bool {
    const FIXED: &str = "--rm -i -a STDIN -a STDOUT -a STDERR --network none --user nobody \
        --security-opt=no-new-privileges";
    let fixed: Vec<&str> = FIXED.split(' ').collect();
    let Some(rest) = words.strip_prefix(&fixed[..]) else {
        return false;
    };
    words = rest;
    loop {
        match words {
            ["--mount", mount, rest @ ..] if is_below(mount, root) => words = rest,
            ["-e", _, rest @ ..] => words = rest,
            [image] => return is_pinned(image),
            _ => return false,
        }
    }
}

fn is_pinned(image: &str) -> bool {
    image
        .split_once("@sha256:")
        .is_some_and(|(name, digest)| !name.is_empty() && !name.starts_with('-') && digest.len() == 64)
}

/// Returns whether a mount is one of a file or directory below the root, and nothing else.
fn is_below(mount: &str, root: &Path) -> bool {
    let parts: Vec<&str> = mount.split(',').collect();
    let (["type=bind", source, target] | ["type=bind", source, target, "readonly"]) = &parts[..] else {
        return false;
    };
    let real = source.strip_prefix("source=").and_then(|source| Path::new(source).canonicalize().ok());
    target.starts_with("target=") && real.is_some_and(|real| real.starts_with(root))
}

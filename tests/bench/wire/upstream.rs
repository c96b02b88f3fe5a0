//! The upstreams, and a user's directory that names them.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// One thing to localize.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    /// Whether most of each commit is not needed.
    pub(crate) is_large: bool,
    /// How many roots the user names in it.
    roots: usize,
    /// How many files each of them has.
    files: usize,
    /// How many bytes each of these has.
    size: usize,
    /// How many bases each root has, one below the other.
    depth: usize,
    /// How many commits the user names.
    refs: usize,
    /// How many files of 4 kB there are that nothing names.
    others: usize,
    /// A file that nothing names, in bytes.
    blob: usize,
}

const SMALL: Scene =
    Scene { name: "", is_large: false, roots: 1, files: 3, size: 700, depth: 0, refs: 1, others: 0, blob: 0 };

pub(crate) const SCENES: [Scene; 6] = [
    Scene { name: "small: 3 files of 700 bytes", ..SMALL },
    Scene { name: "small: 3 files of 3 kB", size: 3_000, ..SMALL },
    Scene {
        name: "5,000 files of 4 kB, 20 needed",
        is_large: true,
        roots: 4,
        files: 5,
        size: 4_000,
        others: 5_000,
        ..SMALL
    },
    Scene { name: "beside a file of 50 MB", is_large: true, blob: 50_000_000, ..SMALL },
    Scene {
        name: "nested four deep, 1,000 files of 4 kB",
        is_large: true,
        size: 4_000,
        depth: 4,
        others: 1_000,
        ..SMALL
    },
    Scene {
        name: "20 refs of one repository with 1,000 files of 4 kB",
        is_large: true,
        size: 4_000,
        refs: 20,
        others: 1_000,
        ..SMALL
    },
];

/// A directory with a bare repository `up.git`, and the user's.
pub(crate) struct Upstream {
    directory: TempDir,
    roots: usize,
    depth: usize,
    refs: usize,
}

impl Upstream {
    pub(crate) fn new(scene: &Scene) -> Upstream {
        let ram = Path::new("/dev/shm");
        let upstream = Upstream {
            directory: if ram.is_dir() { TempDir::new_in(ram).unwrap() } else { TempDir::new().unwrap() },
            roots: scene.roots,
            depth: scene.depth,
            refs: scene.refs,
        };
        upstream.git("", &["init", "--quiet", "--bare", "up.git"]);
        let mut import = upstream.command("git", "up.git");
        let mut import = import.args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stream = std::io::BufWriter::new(import.stdin.take().unwrap());
        let mut noise = Noise(1);
        for number in 0..scene.refs {
            writeln!(stream, "commit refs/heads/r{number}").unwrap();
            writeln!(stream, "committer Bench <bench@example.com> {number} +0000").unwrap();
            writeln!(stream, "data 1\nx").unwrap();
            if number > 0 {
                writeln!(stream, "from refs/heads/r{}", number - 1).unwrap();
            }
            for (path, bytes) in scene.files(number, &mut noise) {
                writeln!(stream, "M 644 inline {path}\ndata {}", bytes.len()).unwrap();
                stream.write_all(&bytes).unwrap();
                writeln!(stream).unwrap();
            }
        }
        drop(stream);
        assert!(import.wait().unwrap().success());
        upstream
    }

    /// The directory to serve.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Gives a command a fresh directory that names the upstream below `base`, and an empty cache.
    pub(crate) fn user(&self, command: &mut Command, base: &str) {
        let user = self.directory.path().join("user");
        if user.exists() {
            fs::remove_dir_all(&user).unwrap();
        }
        fs::create_dir_all(user.join("app")).unwrap();
        let mut text = "resources:\n".to_owned();
        for number in 0..self.refs {
            for root in 0..self.roots {
                writeln!(text, "- {base}/up.git//roots/{root}?ref=r{number}").unwrap();
            }
        }
        fs::write(user.join("app/kustomization.yaml"), text).unwrap();
        set(command, &user);
    }

    /// The packed size of what is needed, and of the trees.
    pub(crate) fn needed(&self) -> u64 {
        let mut ids = BTreeSet::new();
        for number in 0..self.refs {
            let reference = format!("r{number}");
            ids.insert(self.git("up.git", &["rev-parse", &reference]));
            let tree = format!("{reference}^{{tree}}");
            ids.insert(self.git("up.git", &["rev-parse", &tree]));
            let trees = self.git("up.git", &["ls-tree", "-rd", "--format=%(objectname)", &reference]);
            ids.extend(trees.lines().map(str::to_owned));
            let mut places = vec!["roots".to_owned()];
            places.extend((0..self.depth).map(|depth| format!("bases/{depth}")));
            let list = ["ls-tree", "-r", "--format=%(objectname)", &reference, "--"];
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            let files = self.git("up.git", &[&list[..], &places].concat());
            ids.extend(files.lines().map(str::to_owned));
        }
        let mut command = self.command("git", "up.git");
        let mut child = command
            .args(["pack-objects", "--quiet", "--stdout"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let list: Vec<String> = ids.into_iter().collect();
        let mut input = child.stdin.take().unwrap();
        input.write_all(list.join("\n").as_bytes()).unwrap();
        drop(input);
        child.wait_with_output().unwrap().stdout.len() as u64
    }

    fn git(&self, directory: &str, args: &[&str]) -> String {
        let mut command = self.command("git", directory);
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim_end().to_owned()
    }

    fn command(&self, program: &str, directory: &str) -> Command {
        let mut command = Command::new(program);
        set(&mut command, &self.directory.path().join(directory));
        command
    }
}

/// Lets a command have nothing of the caller's configuration, and an empty cache.
fn set(command: &mut Command, directory: &Path) {
    let above = directory.parent().unwrap();
    let cache = above.join("cache");
    if cache.exists() {
        fs::remove_dir_all(&cache).unwrap();
    }
    let temporary: PathBuf = above.join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    command
        .current_dir(directory)
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", above.join("home"))
        .env("XDG_CACHE_HOME", cache)
        .env("TMPDIR", temporary)
        .env("GIT_CONFIG_NOSYSTEM", "1");
}

impl Scene {
    /// Returns the files that commit `number` adds or changes.
    fn files(&self, number: usize, noise: &mut Noise) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        let root = |files: &mut Vec<_>, directory: String, mut text: String, noise: &mut Noise| {
            for file in 0..self.files {
                writeln!(text, "- {file}.yaml").unwrap();
                let name = directory.replace('/', "-");
                let map = format!(
                    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}-{file}\ndata:\n  noise: {}\n",
                    noise.text(self.size)
                );
                files.push((format!("{directory}/{file}.yaml"), map.into_bytes()));
            }
            files.push((format!("{directory}/kustomization.yaml"), text.into_bytes()));
        };
        for one in 0..self.roots {
            let mut text = format!("namePrefix: r{number}-{one}-\nresources:\n");
            if self.depth > 0 {
                text.push_str("- ../../bases/0\n");
            }
            root(&mut files, format!("roots/{one}"), text, noise);
        }
        if number > 0 {
            return files;
        }
        for depth in 0..self.depth {
            let mut text = "resources:\n".to_owned();
            if depth + 1 < self.depth {
                writeln!(text, "- ../{}", depth + 1).unwrap();
            }
            root(&mut files, format!("bases/{depth}"), text, noise);
        }
        for other in 0..self.others {
            let path = format!("others/{}/{other}.yaml", other % 50);
            files.push((path, noise.text(4_000).into_bytes()));
        }
        if self.blob > 0 {
            files.push(("model.bin".to_owned(), noise.text(self.blob).into_bytes()));
        }
        files
    }
}

/// Text that compresses little, the same each time.
struct Noise(u64);

impl Noise {
    fn text(&mut self, length: usize) -> String {
        let one = |_| {
            // xorshift64
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            char::from(b"0123456789abcdefghijklmnopqrstuv"[usize::from(self.0.to_le_bytes()[4] & 31)])
        };
        (0..length).map(one).collect()
    }
}

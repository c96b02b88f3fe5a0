//! Helm charts, local and remote.
//!
//! But for `real`, a fake plays helm: a shell script with the three calls that matter. `pull` copies the archive that a
//! registry would send, and writes down its arguments and homes; `search repo` prints the newest version of an index,
//! or the one that is asked for; `template` prints, for a chart directory and values, a ConfigMap that holds every byte
//! that helm would have read. Repositories over https are served by a server. The kustomize is the real one, with
//! `--enable-helm --helm-command FAKE`.

mod index;
mod left;
mod local;
mod mended;
mod real;
mod refused;
mod remote;
mod upstream;

use std::fs;
use std::path::{Path, PathBuf};

use git_kustomize_localize::seams::record::sha256_hex;
use serde_json::json;

use crate::support::{Kustomize, Output, Reply, Repo, Sandbox, Server, tool};

/// A fake helm. Archives lie in `$CHARTS/{repository, with _ for what no file name has}/{name}-{version}.tgz`.
const STAND_IN: &str = r##"
log="$STAND_IN_HELM/log"
command=$1; shift
isolated() {
  case $HELM_CONFIG_HOME$HELM_CACHE_HOME$HELM_DATA_HOME in *home*|"") echo "not isolated" >>"$log";; esac
}
case $command in
search)
  isolated
  version=${3#--version=}
  echo "search $version" >>"$log"
  grep -q '"name":"charts"' "$HELM_REPOSITORY_CONFIG" || { echo "Error: no repositories configured" >&2; exit 1; }
  case $version in *[!0-9.]*) version='[^"]*';; esac
  found=$(grep -o "\"version\":\"$version\"" "$HELM_REPOSITORY_CACHE/charts-index.yaml" | sort -V | tail -n 1)
  [ -z "$found" ] || found="{\"name\":\"charts/any\",$found}"
  echo "[$found]";;
version) echo "v3.99.0"; exit 0;;
pull)
  destination=. repo= version= name= untar= untardir=
  all="$*"
  while [ $# -gt 0 ]; do
    case $1 in
    --destination) destination=$2; shift;;
    --untardir) untardir=$2; shift;;
    --untar) untar=yes;;
    --version) version=$2; shift;;
    --version=*) version=${1#--version=};;
    --repo) repo=$2; shift;;
    --repo=*) repo=${1#--repo=};;
    --devel|--) ;;
    -*) echo "Error: unknown flag: $1" >&2; exit 1;;
    *) name=$1;;
    esac
    shift
  done
  case $name in
  oci://*) repo=${name%/*}; name=${name##*/};;
  esac
  echo "pull $repo $name $version" >>"$log"
  isolated
  touch "$HELM_CACHE_HOME/index" "$HELM_CONFIG_HOME/used" 2>/dev/null
  directory=$STAND_IN_HELM/$(printf %s "$repo" | tr -c 'a-zA-Z0-9.-' _)
  found=$directory/$name-$version.tgz
  [ -f "$found" ] || found=$(ls "$directory/$name-"*.tgz 2>/dev/null | tail -n 1)
  [ -f "$found" ] || { echo "Error: chart \"$name\" version \"$version\" not found in $repo repository" >&2; exit 1; }
  if [ -n "$untar" ]; then
    mkdir -p "$untardir" && tar -xzf "$found" -C "$untardir"
  else
    cp "$found" "$destination/"
  fi;;
template)
  while [ $# -gt 0 ]; do
    case $1 in
    -f|--values) values="$values $2"; shift;;
    --namespace|--name-template|--kube-version|--api-versions) shift;;
    -*) ;;
    *) [ -d "$1" ] && chart=$1 || release=$1;;
    esac
    shift
  done
  echo "template $release" >>"$log"
  printf 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n' "$release"
  (cd "$chart" && find -L . -type f -print0 | LC_ALL=C sort -z | xargs -0r cksum) | LC_ALL=C awk '{
    sum = $1 " " $2; sub(/^[0-9]+ [0-9]+ \.\//, ""); gsub("/", "_"); gsub(/[^a-zA-Z0-9._-]/, "-")
    printf "  \"%s\": \"%s\"\n", $0, sum }'
  for file in $values; do cksum <"$file"; done | awk '{ printf "  values%d: \"%s\"\n", NR, $0 }';;
*) echo "Error: unknown command" >&2; exit 1;;
esac
"##;

/// A repository `work`, the stand-in and the server, and a place for what they serve.
struct Stage {
    sandbox: Sandbox,
    server: Server,
    work: Repo,
}

impl Stage {
    fn new() -> Stage {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.path("served")).unwrap();
        sandbox.set("STAND_IN_HELM", sandbox.path("served"));
        sandbox.script("helm", STAND_IN);
        let server = Server::start();
        sandbox.send_through(&server);
        let served = sandbox.path("served").join(directory_of(REPO));
        server.serve(&format!("{REPO}/"), move |path| answer(&served, path));
        let work = sandbox.repo("work");
        Stage { sandbox, server, work }
    }

    /// Returns one that serves nginx 1.2.3, with a commit in which this is the kustomization of `app`.
    fn of(kustomization: &str) -> Stage {
        let stage = Stage::new();
        stage.serve(REPO, "nginx", "1.2.3");
        stage.work.write("app/kustomization.yaml", kustomization);
        stage.work.commit("chart");
        stage
    }

    /// Returns one in which `app` names an upstream root with these files.
    fn of_upstream(files: &[(&str, &str)]) -> Stage {
        let stage = Stage::of(&format!("resources:\n- {BASE}\n"));
        let base = format!("file://{}/", stage.sandbox.path("upstream").display());
        stage.sandbox.pretend("https://example.com/", &base);
        stage.upstream("base", files);
        stage
    }

    /// Decides that charts are brought in.
    fn with_helm(self) -> Stage {
        self.work.decide("helm: true\n");
        self
    }

    /// Makes the repository `https://example.com/acme/NAME.git`, tagged `v1`.
    fn upstream(&self, name: &str, files: &[(&str, &str)]) {
        let upstream = self.sandbox.repo(&format!("upstream/acme/{name}.git"));
        for (path, text) in files {
            upstream.write(path, text);
        }
        upstream.commit("one");
        upstream.git(&["tag", "v1"]);
    }

    /// Takes helm away.
    fn without_helm(&self) {
        fs::remove_file(self.sandbox.path("bin/helm")).unwrap();
        for program in ["git", "sh"] {
            self.sandbox.offer(program, &tool(program).unwrap());
        }
        self.sandbox.set("PATH", self.sandbox.path("bin"));
    }

    /// Returns the lock of the repository.
    fn lock(&self) -> String {
        self.work.read("kustomize-localize.lock")
    }

    /// Returns the arguments that let the program build with the stand-in.
    fn build_args(&self) -> [String; 2] {
        let helm = self.sandbox.path("bin/helm");
        let helm = format!("--build-arg=--helm-command={}", helm.display());
        ["--build-arg=--enable-helm".to_owned(), helm]
    }

    /// Has the stand-in serve a chart, and returns the archive's place.
    fn serve(&self, repo: &str, name: &str, version: &str) -> PathBuf {
        let chart = self.sandbox.path("made").join(name);
        let _ = fs::remove_dir_all(&chart);
        write_chart(&chart, name, version);
        self.pack(repo, name, version)
    }

    /// Packs what lies in `made/NAME` as an archive.
    fn pack(&self, repo: &str, name: &str, version: &str) -> PathBuf {
        let directory = self.sandbox.path("served").join(directory_of(repo));
        fs::create_dir_all(&directory).unwrap();
        let archive = directory.join(format!("{name}-{version}.tgz"));
        let made = self.sandbox.path("made");
        let mut tar = self.sandbox.command("tar", &made);
        tar.args(["--sort=name", "--mtime=@0", "-czf"]).arg(&archive).arg(name);
        assert!(tar.status().unwrap().success());
        archive
    }

    /// The calls of the fake helm.
    fn calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.sandbox.path("served/log")).unwrap_or_default();
        log.lines().filter(|line| !line.starts_with("template")).map(str::to_owned).collect()
    }

    /// What was downloaded: archives of the server, and then what the fake helm pulled.
    fn pulls(&self) -> Vec<String> {
        let calls = self.calls().into_iter().filter(|line| !line.starts_with("search"));
        self.server.log().into_iter().filter(|line| line.ends_with(".tgz")).chain(calls).collect()
    }

    /// Builds a directory with the real kustomize and the stand-in. `None` without a kustomize.
    fn build(&self, directory: &Path) -> Option<Output> {
        let helm = self.sandbox.path("bin/helm");
        let args = ["build", "--enable-helm", "--helm-command"];
        let args = [&args[..], &[helm.to_str().unwrap(), "."]].concat();
        Some(Kustomize::find()?.run(&self.sandbox, directory, &args))
    }

    /// Builds a directory where no chart is available.
    fn build_alone(&self, directory: &Path) -> Option<Output> {
        let served = self.sandbox.path("served");
        let away = self.sandbox.path("away");
        fs::rename(&served, &away).unwrap();
        fs::create_dir(&served).unwrap();
        let output = self.build(directory);
        fs::remove_dir_all(&served).unwrap();
        fs::rename(&away, &served).unwrap();
        output
    }

    /// Localizes on disk and proves with the real kustomize that the copy, without any repository of charts, builds to
    /// what the target builds to. The target is built last: kustomize unpacks charts into it.
    #[track_caller]
    fn same(&self, target: &str, args: &[&str]) -> PathBuf {
        let copy = self.sandbox.path("copy");
        let _ = fs::remove_dir_all(&copy);
        let all = [&["--no-commit", "--no-verify", target, "../copy"], args].concat();
        self.work.run(&all).success();
        let inside = match args {
            [scope, directory, ..] if *scope == "--scope" => {
                Path::new(target).strip_prefix(directory).unwrap_or(Path::new(target)).to_owned()
            }
            _ => PathBuf::new(),
        };
        let Some(localized) = self.build_alone(&copy.join(&inside)) else {
            return copy;
        };
        let original = self.build(&self.work.path().join(target)).unwrap();
        assert_eq!(localized.success().stdout, original.success().stdout, "{localized:?}");
        assert_ne!(localized.stdout, "", "{localized:?}");
        copy
    }
}

/// Returns the directory for what a repository serves.
fn directory_of(repo: &str) -> String {
    repo.chars().map(|c| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' }).collect()
}

/// Answers as a repository that has the archives of a directory.
fn answer(served: &Path, path: &str) -> Reply {
    if path != "index.yaml" {
        return fs::read(served.join(path)).map_or_else(|_| Reply::status(404), Reply::ok);
    }
    let mut entries = serde_json::Map::new();
    for entry in served.read_dir().into_iter().flatten() {
        let file = entry.unwrap().path();
        let url = file.file_name().unwrap().to_str().unwrap();
        let (name, version) = url.strip_suffix(".tgz").unwrap().split_once('-').unwrap();
        let digest = sha256_hex(&fs::read(&file).unwrap());
        let versions = entries.entry(name).or_insert_with(|| json!([])).as_array_mut().unwrap();
        versions.push(json!({"name": name, "version": version, "urls": [url], "digest": digest}));
    }
    Reply::ok(json!({"apiVersion": "v1", "entries": entries}).to_string())
}

/// Writes the files of a chart.
fn write_chart(directory: &Path, name: &str, version: &str) {
    let write = |path: &str, text: &str| {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("Chart.yaml", &format!("apiVersion: v2\nname: {name}\nversion: {version}\n"));
    write("values.yaml", "replicas: 1\n");
    write("templates/deployment.yaml", "{{ .Values.replicas }}\r\n");
    write("templates/_helpers.tpl", "{{- define \"x\" }}\n");
    write(".helmignore", "*.orig\n");
    write("files/odd name.txt", version);
    fs::create_dir_all(directory.join("charts")).unwrap();
    let sub = fs::File::create(directory.join("charts/sub-1.0.0.tgz")).unwrap();
    let mut sub = tar::Builder::new(flate2::write::GzEncoder::new(sub, flate2::Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    sub.append_data(&mut header, "sub/values.yaml", std::io::empty()).unwrap();
    sub.into_inner().unwrap().finish().unwrap();
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const REPO: &str = "https://charts.example/stable";
const REGISTRY: &str = "oci://registry.example/charts";
const LABEL: &str = "https://charts.example/stable#nginx@1.2.3";
const BASE: &str = "https://example.com/acme/base.git?ref=v1";
const CHART: &str =
    "helmCharts:\n- {name: nginx, repo: 'https://charts.example/stable', version: 1.2.3, releaseName: one}\n";

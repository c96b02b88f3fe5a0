//! Builds are remembered in the repository, without values of Secrets, and nothing else is believed.

use std::fs;
use std::path::PathBuf;

use super::stand_in;
use crate::support::{Output, Random, Repo, Sandbox, World, base64, config_map, full};

/// Renders a chart to one object.
const HELM: &str = "[ \"$1\" = version ] && { echo v3.19.4+g0; exit; }\necho x >>COUNT\n\
                    for one; do [ -f \"$one/Chart.yaml\" ] && cat \"$one\"/templates/*.yaml; done";

const OBJECTS: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: x}
spec: {path: ./one, sourceRef: {kind: GitRepository, name: fleet}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: x}
spec: {url: 'https://github.com/acme/fleet', ref: {branch: main}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: released, namespace: x}
spec: {chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: fleet}}}}
";

const SECRET: &str = "hunter2Xq9";

/// A repository with an object that an overlay patches, a chart, a Secret, and a root that does not build.
struct Fleet {
    sandbox: Sandbox,
    work: Repo,
    count: PathBuf,
}

impl Fleet {
    fn new() -> Option<Fleet> {
        let sandbox = Sandbox::new();
        sandbox.builds()?;
        let count = sandbox.path("count");
        sandbox.script("helm", &HELM.replace("COUNT", &count.display().to_string()));
        stand_in(&sandbox, &format!("[ $1 = version ] || echo x >>{}\nexec REAL \"$@\"", count.display()));
        let work = sandbox.repo("work");
        let secret = format!("secretGenerator: [{{name: s, literals: [password={SECRET}]}}]\n");
        work.commit_files(&[
            (".kustomize-localize", "helm: true\nrepository: [{url: 'https://github.com/acme/fleet'}]\nexclude: [old]\n"),
            ("base/kustomization.yaml", "resources: [objects.yaml]\n"),
            ("base/objects.yaml", OBJECTS),
            (
                "prod/kustomization.yaml",
                "resources: [../base]\npatches: [{target: {kind: Kustomization}, patch: '[{op: replace, path: /spec/path, value: ./two}]'}]\n",
            ),
            ("one/kustomization.yaml", &format!("resources: [cm.yaml]\n{secret}")),
            ("one/cm.yaml", &config_map("one")),
            ("two/kustomization.yaml", &format!("resources: [../one]\nnamePrefix: two-\n{}", secret.replace("name: s", "name: t"))),
            ("bad/kustomization.yaml", &format!("secretGenerator: [{{name: s, literals: [{SECRET}]}}]\n")),
            ("old/kustomization.yaml", "resources: [../one]\n"),
            ("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            ("charts/web/templates/cm.yaml", &config_map("chart")),
        ]);
        work.write("one/cm.yaml", config_map("one").replace("one", "other"));
        work.write(
            "two/kustomization.yaml",
            format!("resources: [../one]\nnamePrefix: 2-\n{}", secret.replace("name: s", "name: t")),
        );
        work.write("charts/web/templates/cm.yaml", config_map("charted"));
        work.commit("change");
        Some(Fleet { sandbox, work, count })
    }

    /// Runs a command, and returns how many builds it started.
    fn builds(&self, args: &[&str]) -> (usize, String) {
        let (builds, output) = self.counted(args);
        assert!(output.status < 2, "{output:?}");
        (builds, output.stdout)
    }

    /// Compares with the base, which cannot be done. Returns how many builds it started.
    fn builds_until_stopped(&self) -> usize {
        let (builds, output) = self.counted(&["diff", "HEAD~1"]);
        output.fails(2);
        builds
    }

    fn counted(&self, args: &[&str]) -> (usize, Output) {
        fs::write(&self.count, "").unwrap();
        let output = self.work.run_as_is(args);
        (fs::read_to_string(&self.count).unwrap().lines().count(), output)
    }

    fn store(&self) -> PathBuf {
        self.work.path().join(".git/kustomize-localize/builds")
    }

    /// Returns everything that is stored.
    fn stored(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.store()).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }
}

const COMMANDS: [&[&str]; 7] = [
    &["targets"],
    &["status"],
    &["affected", "HEAD~1"],
    &["diff", "HEAD~1"],
    &["check", "--build"],
    &["check", "--build", "--base", "HEAD~1"],
    &["branch", "--dry-run"],
];

#[test]
fn the_second_time_nothing_is_built() {
    let Some(fleet) = Fleet::new() else { return };
    for args in COMMANDS {
        fs::remove_dir_all(fleet.store()).ok();
        let (first, said) = fleet.builds(args);
        assert!(first > 0, "{args:?}");
        assert_eq!(fleet.builds(args), (0, said.clone()), "{args:?}");
        // What was remembered is what comes without. Two builds of the same at once are two.
        fs::remove_dir_all(fleet.store()).unwrap();
        let (again, unremembered) = fleet.builds(args);
        assert!(again > 0, "{args:?}");
        assert_eq!(unremembered, said, "{args:?}");
    }
    for (path, bytes) in fleet.stored() {
        for value in [SECRET.to_owned(), base64(SECRET.as_bytes())] {
            assert!(!String::from_utf8_lossy(&bytes).contains(&value), "{path:?}");
        }
    }
}

/// Also beside a root of which something stays remote, what only that one names, and one that never built.
#[test]
fn after_a_change_of_one_overlay_that_and_what_includes_it_are_built() {
    let world = World::new();
    if world.sandbox.builds().is_none() {
        return;
    }
    let count = world.sandbox.path("count");
    stand_in(&world.sandbox, &format!("[ $1 = version ] || echo \"$*\" >>{}\nexec REAL \"$@\"", count.display()));
    let map = config_map("map");
    world.upstream_of("acme/lib", &[("r/kustomization.yaml", "resources: [map.yaml]\n"), ("r/map.yaml", &map)]);
    world.commit(&[
        (".kustomize-localize", "allow: [{url: 'https://github.com/acme/left?ref=v1', reason: theirs}]\n"),
        ("base/kustomization.yaml", "resources: ['https://github.com/acme/lib//r?ref=v1']\n"),
        ("one/kustomization.yaml", "resources: [../base]\n"),
        ("above/kustomization.yaml", "resources: [../one]\nnamePrefix: a-\n"),
        ("other/kustomization.yaml", "resources: [../base]\nnamePrefix: b-\n"),
        ("left/kustomization.yaml", "resources: [../below, 'https://github.com/acme/left?ref=v1']\n"),
        ("below/kustomization.yaml", "resources: [../base]\nnamePrefix: c-\n"),
        ("bad/kustomization.yaml", "resources: [../base]\nsecretGenerator: [{name: s, literals: [none]}]\n"),
    ]);
    world.work.run_as_is(&["lock"]).success();
    world.work.commit("lock");
    world.work.run_as_is(&["branch"]).success();
    fs::write(&count, "").unwrap();
    world.commit(&[("one/kustomization.yaml", "resources: [../base]\nnamePrefix: 1-\n")]);
    world.work.run_as_is(&["branch"]).success();
    let built = fs::read_to_string(&count).unwrap();
    let mut built: Vec<&str> = built.lines().filter_map(|line| line.rsplit('/').next()).collect();
    built.sort_unstable();
    // What another one includes is built with it.
    assert_eq!(built, ["above", "above"]);
}

#[test]
fn whatever_is_something_else_is_built_again() {
    let Some(fleet) = Fleet::new() else { return };
    let (args, work) = (&["check", "--build"], &fleet.work);
    let again = |what: &str| {
        assert!(fleet.builds(args).0 > 0, "{what}");
        assert_eq!(fleet.builds(args).0, 0, "{what}");
    };
    again("the first time");
    for (path, bytes) in fleet.stored() {
        let mut damaged = bytes.clone();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(&path, damaged).unwrap();
        assert!(fleet.builds(args).0 > 0, "{path:?}");
        assert_eq!(fs::read(&path).unwrap().len(), bytes.len());
        assert_eq!(fleet.builds(args).0, 0);
    }
    work.write("one/cm.yaml", config_map("one"));
    again("an input");
    work.write("charts/web/templates/cm.yaml", config_map("one"));
    again("a chart");
    work.write_executable("one/cm.yaml", config_map("one"));
    again("a mode");
    work.write(
        ".kustomize-localize",
        "load-restrictor: none\nhelm: true\nrepository: [{url: 'https://github.com/acme/fleet'}]\n",
    );
    again("the configuration");
    let kustomize = fleet.sandbox.path("bin/kustomize");
    let script = fs::read_to_string(&kustomize).unwrap();
    fs::write(&kustomize, format!("{script}# other\n")).unwrap();
    again("another kustomize");
    let helm = fleet.sandbox.path("bin/helm");
    fs::write(&helm, format!("{}# other\n", fs::read_to_string(&helm).unwrap())).unwrap();
    again("another helm");
    fs::remove_file(fleet.store().with_file_name("key")).unwrap();
    again("another key");
}

/// Real values are printed, and never remembered.
#[test]
fn a_build_with_a_secret_is_built() {
    let Some(fleet) = Fleet::new() else { return };
    for _ in 0..2 {
        let (builds, said) = fleet.builds(&["build", "./two"]);
        assert!(builds == 1 && said.contains(&base64(SECRET.as_bytes())), "{said}");
    }
    let [first, second] = [(); 2].map(|()| fleet.builds(&["build", "./base"]));
    assert!(first.0 == 1 && second.0 == 0 && first.1 == second.1, "{first:?} {second:?}");
}

/// What fails for want of time, runs code, or comes out in another way each time is built each time.
#[test]
fn what_is_no_function_of_its_inputs_is_not_remembered() {
    let Some(fleet) = Fleet::new() else { return };
    let count = fleet.count.display().to_string();
    let kustomize = |body: &str| stand_in(&fleet.sandbox, &format!("[ $1 = version ] || echo x >>{count}\n{body}"));
    kustomize("[ $1 = version ] || kill -9 $$\nexec REAL \"$@\"");
    for _ in 0..2 {
        assert!(fleet.builds_until_stopped() > 0);
    }
    kustomize("[ $1 = version ] || { echo 'no space left on device' >&2; exit 1; }\nexec REAL \"$@\"");
    for _ in 0..2 {
        assert!(fleet.builds_until_stopped() > 0);
    }
    kustomize("exec REAL \"$@\"");
    for _ in 0..2 {
        assert!(fleet.builds(&["diff", "HEAD~1", "--build-arg=--enable-alpha-plugins"]).0 > 0);
    }
    fleet.sandbox.script("helm", &HELM.replace("COUNT", &count).replace("cat", "date +'# %N'; cat"));
    for _ in 0..2 {
        assert!(fleet.builds(&["diff", "HEAD~1"]).0 > 0);
    }
    let outside = fleet.sandbox.path("outside.yaml");
    let object = OBJECTS.replace("name: web", "name: outside").replace("./one", "./out");
    fleet.work.write("clusters/objects.yaml", object.split("---").next().unwrap());
    fleet.work.write("out/kustomization.yaml", format!("resources: ['{}']\n", outside.display()));
    for name in ["before", "after"] {
        fs::write(&outside, config_map(name)).unwrap();
        let (builds, said) = fleet.builds(&["build", "outside"]);
        assert!(builds > 0 && said.contains(name), "{said}");
    }
}

#[test]
fn no_value_of_a_secret_is_stored() {
    let Some(fleet) = Fleet::new() else { return };
    let mut random = Random::of("remembered");
    for _ in 0..if full() { 40 } else { 4 } {
        let value: String = (0..12).map(|_| char::from(b'a' + random.below(26) as u8)).collect();
        let value = ["Zq", &value, "-1"].concat();
        let encoded = base64(value.as_bytes());
        let forms = [
            format!("secretGenerator: [{{name: s, literals: [password={value}]}}]\n"),
            format!("secretGenerator: [{{name: s, literals: [{value}]}}]\n"),
            "secretGenerator: [{name: s, envs: [k.env], files: [k.env]}]\n".to_owned(),
            "resources: [s.yaml]\n".to_owned(),
            "resources: [s.yaml]\nnamePrefix: x-\npatches: [{path: s.yaml}]\n".to_owned(),
            format!(
                "resources: [s.yaml]\npatches: [{{target: {{kind: Secret}}, patch: '[{{op: add, path: /nowhere/x, value: {value}}}]'}}]\n"
            ),
        ];
        let secrets = [
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, annotations: {{a: {value}}}}}\ndata: {{a: {encoded}}}\n"
            ),
            format!(
                "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {{name: s}}\n  stringData: {{a: {value}}}\n"
            ),
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData:\n  a: |\n    x\n    {value}\n"),
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData:\n  a: {value}\n b: [\n"),
        ];
        let lines = [
            format!("KEY={value}\n"),
            format!("={value}\n"),
            format!("{value}=\n"),
            format!("KEY=-----BEGIN X-----\n{value}==\n"),
        ];
        let pick = |random: &mut Random, all: &[String]| all[random.below(all.len())].clone();
        fleet.work.write("two/kustomization.yaml", pick(&mut random, &forms));
        fleet.work.write("two/s.yaml", pick(&mut random, &secrets));
        fleet.work.write("two/k.env", pick(&mut random, &lines));
        fleet.work.commit("other");
        for args in [&["check", "--build"] as &[&str], &["diff", "HEAD~1"], &["targets"], &["branch"]] {
            fleet.work.run_as_is(args);
        }
        for (path, bytes) in fleet.stored() {
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(&value) && !text.contains(&encoded), "{path:?} {text}");
        }
    }
    assert!(!fleet.stored().is_empty());
}

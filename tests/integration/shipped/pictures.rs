//! The pictures of the README show what the program prints.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use super::top;
use crate::support::pages::source;
use crate::support::{Kustomize, Output, Running, Sandbox, program, tool};

/// They hold every byte that is printed: a change of a message is no reason to draw them at once.
#[test]
#[ignore = "at night"]
fn the_pictures_are_those_of_this_program() {
    let Some(kustomize) = Kustomize::find() else { return };
    let top = top();
    let sandbox = Sandbox::new();
    let mut script = Command::new("python3");
    script
        .arg(top.join(".github/pictures.py"))
        .arg(sandbox.path("pictures"))
        .env("PROGRAM", program())
        .env("KUSTOMIZE", kustomize.program());
    Running::start(&mut script).wait().success();
    for name in NAMES {
        let [drawn, kept] = [sandbox.path("pictures"), top.join(".github/pictures")]
            .map(|place| fs::read_to_string(place.join(format!("{name}.svg"))).unwrap());
        assert_eq!(drawn, kept, "{name}: draw it again with .github/pictures.py");
    }
}

const NAMES: [&str; 3] = ["check", "localize", "tree"];

#[test]
fn the_readme_shows_the_pictures() {
    let readme = source("README.md");
    for name in NAMES {
        let path = format!(".github/pictures/{name}.svg");
        assert!(readme.contains(&format!("]({path})")), "{name}");
        assert!(source(&path).starts_with("<svg"), "{name}");
    }
}

/// Returns how often each element begins.
fn elements(page: &str) -> BTreeMap<String, usize> {
    let names = regex::Regex::new("<([a-zA-Z][^ />]*)").unwrap();
    let mut elements = BTreeMap::new();
    for found in names.captures_iter(page) {
        *elements.entry(found[1].to_lowercase()).or_default() += 1;
    }
    elements
}

/// What names and values of objects do not do to the page of `diff`, a browser has to say.
#[test]
#[ignore = "at night"]
fn a_browser_finds_what_was_written() {
    let Some(browser) = tool("chromium") else { return };
    let sandbox = Sandbox::new();
    let Some(_) = sandbox.builds() else { return };
    let work = sandbox.repo("work");
    let map = |text: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: \"{text}\"}}\ndata: {{\"{text}\": \"{text}\"}}\n")
    };
    work.write("app/kustomization.yaml", "resources: [map.yaml]\n");
    work.write("app/map.yaml", map("map"));
    work.commit("before");
    work.write(
        "app/map.yaml",
        map("</pre></details><img src=x onerror='document.title=1'><script>document.title=1</script><!--"),
    );
    let page = work.run(&["diff", "HEAD", "--format=html"]).success().stdout.clone();
    let file = sandbox.path("page.html");
    fs::write(&file, &page).unwrap();
    let open = |more: &[&str]| -> Output {
        let mut command = Command::new(&browser);
        // In a container there is nothing to build its own sandbox from.
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"]);
        let profile = format!("--user-data-dir={}", sandbox.path("profile").display());
        Running::start(command.arg(profile).args(more).arg(format!("file://{}", file.display()))).wait()
    };
    let found = open(&["--dump-dom"]).success().stdout.clone();
    assert_eq!(elements(&found), elements(&page), "{found}");
    assert!(found.contains("<title>What work deploys: ") && found.contains("onerror='document"), "{found}");
    for (number, size) in ["1280,900", "390,844"].into_iter().enumerate() {
        let picture = sandbox.path(&format!("{number}.png"));
        open(&[&format!("--screenshot={}", picture.display()), &format!("--window-size={size}")]).success();
        // An empty page has a few hundred bytes.
        assert!(fs::metadata(&picture).unwrap().len() > 10_000, "{size}");
    }
}

#[test]
fn the_page_of_diff_shows_its_picture() {
    assert!(source("src/commands/diff.md").contains("](../../.github/pictures/diff.png)"));
    assert!(fs::read(top().join(".github/pictures/diff.png")).unwrap().starts_with(b"\x89PNG"));
}

//! How the work grows with the input: four times as much of both sides is at most a few times as much work.

use std::time::Duration;

use super::super::testing::{flux, source};
use super::*;
use crate::os::testing::ThreadClock;

/// Returns the lines of a list.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(|number| format!("- {}\n", line(number))).collect()
}

fn roots(scene: Scene, count: usize) -> Scene {
    (0..count).fold(scene, |scene, number| scene.file(&format!("d{number}/r/kustomization.yaml"), "namePrefix: a-\n"))
}

fn allow(count: usize, entry: &str) -> String {
    format!("allow:\n{}", lines(count, |number| format!("{{{}, reason: r}}", entry.replace('#', &number.to_string()))))
}

/// Locks each of so many references, which names the references that are so many steps behind it. The last ones are not
/// locked.
fn locked(count: usize, steps: &[usize]) -> Scene {
    let url = |number| format!("https://github.com/acme/r{number}");
    let base = |number| format!("{}//base?ref=v1", url(number));
    let scene = Scene::of(&format!("resources:\n{}", lines(count, base)));
    (0..count).fold(scene, |scene, number| {
        let scene = scene.git(&url(number), Some("v1"));
        steps.iter().fold(scene, |scene, step| scene.names(&base(number), &base(number + step)))
    })
}

/// Lets Flux deploy so many roots from a source that leaves out as many patterns.
fn ignored(count: usize) -> Scene {
    let patterns: String = (0..count).map(|number| format!("/x{number}/*.md\\n")).collect();
    let deployed = (0..count).map(|number| format!("---\n{}", flux(&format!("./d{number}/r"))));
    let deployed = deployed.zip(0..).map(|(object, number)| object.replace("name: apps", &format!("name: a{number}")));
    let objects = source(&format!("ignore: \"{patterns}\"")) + &deployed.collect::<String>();
    roots(Scene::default(), count).file("flux.yaml", &objects)
}

#[test]
fn what_is_listed_is_compared_at_once() {
    let remote = |count| lines(count, |number| format!("https://github.com/acme/r{number}//base?ref=v1"));
    let references = |count| Scene::of(&format!("resources:\n{}", remote(count)));
    let missing = |count| Scene::of(&format!("resources:\n{}", lines(count, |number| format!("gone{number}.yaml"))));
    let globs = |key: &str, count| format!("{key}:\n{}", lines(count, |number| format!("d{number}*/r*")));
    let scenes: [(&str, &dyn Fn(usize) -> Scene); 10] = [
        ("globs of URLs", &|n| references(n).config(&allow(n, "url: 'github.com/acme/x#*', refs: any"))),
        ("unused entries", &|n| references(n).config(&allow(n, "url: 'github.com/acme/r#//base?ref=v2'"))),
        ("globs of paths", &|n| missing(n).config(&allow(n, "path: 'd*/no#*'"))),
        ("sources", &|n| {
            let sources = lines(n, |number| format!("{{url: 'github.com/acme/x{number}*'}}"));
            references(n).config(&format!("sources:\n{sources}"))
        }),
        ("scopes", &|n| roots(Scene::default(), n).config(&globs("scopes", n))),
        ("include", &|n| roots(Scene::default(), n).config(&globs("include", n))),
        ("exclude", &|n| roots(Scene::of("namePrefix: a-\n"), n).config(&globs("exclude", n))),
        ("a lock of many names", &|n| locked(n, &[1, 2, 3, 5, 8, 13, 21, 34, 55, 89])),
        ("a lock of one chain", &|n| locked(n, &[1])),
        ("patterns of a source", &ignored),
    ];
    for (input, scene) in scenes {
        let Some(first) = growth(scene) else { return };
        // A neighbour on the processor slows a run down, and never speeds it up: only what is always slow is too slow.
        let mut times = std::iter::once(first).chain((1..TRIES).filter_map(|_| growth(scene)));
        assert!(times.any(|Growth { little, much }| much < little * 10), "{input}: {first:?}, in {TRIES} runs no less");
    }
}

/// How often a scene is measured before it counts as slow.
const TRIES: usize = 3;

/// The times that a check of 150 and of 600 entries takes.
#[derive(Debug, Clone, Copy)]
struct Growth {
    little: Duration,
    much: Duration,
}

/// Measures a scene; `None` if the system does not tell how long a thread runs.
fn growth(scene: &dyn Fn(usize) -> Scene) -> Option<Growth> {
    let work = |count| {
        let (scene, clock) = (scene(count), ThreadClock::start());
        scene.check();
        clock.spent()
    };
    Some(Growth { little: work(150)?, much: work(600)? })
}

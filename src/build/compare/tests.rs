use super::*;
use crate::os::testing::ThreadClock;

fn map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\ndata:\n  key: {value}\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

fn both(before: &[&str], after: &[&str]) -> Verdict {
    let join = |objects: &[&str]| objects.join("---\n");
    compare(join(before).as_bytes(), join(after).as_bytes())
}

fn difference(before: &[&str], after: &[&str]) -> OutputDifference {
    match both(before, after) {
        Verdict::Differs(difference) => difference,
        verdict => panic!("{verdict:?}"),
    }
}

fn changes(difference: &OutputDifference) -> Vec<(&str, &str)> {
    let changes = difference.objects.iter();
    changes.map(|one| (one.id.as_str(), one.change.name())).collect()
}

#[test]
fn the_same_bytes_are_the_same() {
    let one = map("a", "1");
    assert_eq!(both(&[&one], &[&one]), Verdict::Identical);
    assert_eq!(both(&[], &[]), Verdict::Identical);
}

#[test]
fn added_removed_and_changed_objects_are_named() {
    let (a, b, c) = (map("a", "1"), map("b", "1"), map("c", "1"));
    let other = map("b", "2");
    let found = difference(&[&a, &b], &[&other, &c]);
    assert_eq!(
        changes(&found),
        [("v1 ConfigMap a", "removed"), ("v1 ConfigMap b", "changed"), ("v1 ConfigMap c", "added"),]
    );
    assert!(found.diff.contains("\n-  key: 1\n+  key: 2\n"), "{}", found.diff);
    // An empty output is one without objects.
    assert_eq!(changes(&difference(&[&a], &[])), [("v1 ConfigMap a", "removed")]);
}

#[test]
fn a_different_order_is_reported_as_such() {
    let (a, b) = (map("a", "1"), map("b", "1"));
    let found = difference(&[&a, &b], &[&b, &a]);
    assert_eq!(changes(&found), []);
    assert!(found.diff.contains("+v1 ConfigMap b\n"), "{}", found.diff);
    // The same object twice is not one object.
    let found = difference(&[&a, &a, &b], &[&a, &b]);
    assert_eq!(changes(&found), [("v1 ConfigMap a", "removed")]);
}

#[test]
fn a_different_spelling_is_a_difference() {
    let found = difference(&[&map("a", "x")], &[&map("a", "'x'")]);
    assert_eq!(changes(&found), [("v1 ConfigMap a", "changed")]);
}

#[test]
fn a_generated_name_with_another_hash_is_the_same_object() {
    let found = difference(
        &[&map("conf-5h2fd7mbt9", "1"), &map("app-deploy", "1")],
        &[&map("conf-bkbf4thkt8", "2"), &map("app-deploy", "1")],
    );
    assert_eq!(changes(&found), [("v1 ConfigMap conf-bkbf4thkt8", "changed")]);
}

fn annotated(annotations: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations:\n{annotations}  name: a\n")
}

#[test]
fn annotations_about_the_build_count_for_nothing() {
    let origin =
        |path: &str| annotated(&format!("    config.kubernetes.io/origin: |\n      path: {path}\n\n      repo: x\n"));
    let transformed = |path: &str| annotated(&format!("    alpha.config.kubernetes.io/transformations: '{path}'\n"));
    let bare = map("a", "1").replace("data:\n  key: 1\n", "");
    for (before, after) in [(origin("a"), origin("b")), (transformed("a"), transformed("b"))] {
        assert_eq!(both(&[&before], &[&after]), Verdict::Identical);
        assert_eq!(both(&[&before, &bare], &[&after, &bare]), Verdict::Identical);
    }
    // Anything else beside them is a difference.
    let mine = |value: &str| annotated(&format!("    mine: '{value}'\n"));
    let elsewhere = |path: &str| origin(path).replace("metadata:", "spec:");
    let nothing = |indent: &str| format!("{}{indent}annotations:\n", map("a", "1"));
    for (before, after) in [
        (origin("a"), origin("b").replace("name: a", "name: b")),
        (mine("a"), mine("b")),
        (elsewhere("a"), elsewhere("b")),
        (origin("a"), origin("a") + "  x: |\n    config.kubernetes.io/origin: y\n"),
        (nothing("  "), map("a", "1")),
    ] {
        let verdict = both(&[&before], &[&after]);
        assert!(matches!(verdict, Verdict::Differs(_)), "{before}{after}");
    }
}

#[test]
fn values_of_secrets_are_not_shown() {
    let secret = |password: &str| {
        format!(
            "apiVersion: v1\ndata:\n  password: {password}\n  same: c2FtZQ==\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  plain: {password}\n"
        )
    };
    let list = |password: &str| {
        let items = secret(password);
        let items: Vec<String> = items.lines().map(|line| format!("  {line}")).collect();
        format!("apiVersion: v1\nitems:\n- {}\nkind: List\nmetadata:\n  name: l\n", items.join("\n").trim_start())
    };
    for (before, after) in [
        (secret("aHVudGVyMg"), secret("b3RoZXI")),
        (list("aHVudGVyMg"), list("b3RoZXI")),
        (secret("aHVudGVyMg"), map("a", "1")),
        (map("a", "1"), secret("b3RoZXI")),
        // An unreadable object may be a Secret.
        (format!("{}\t: [\n", secret("aHVudGVyMg")), secret("b3RoZXI")),
        (secret("[aHVudGVyMg]"), secret("{x: b3RoZXI}")),
        ("kind: Secret\ndata: aHVudGVyMg\n".to_owned(), "kind: Secret\ndata: [b3RoZXI]\n".to_owned()),
    ] {
        let found = difference(&[&before], &[&after]);
        for hidden in ["aHVudGVyMg", "b3RoZXI", "c2FtZQ"] {
            assert!(!found.diff.contains(hidden), "{}", found.diff);
        }
        assert!(!found.objects.is_empty());
        assert!(!found.diff.is_empty());
    }
    let found = difference(&[&secret("aHVudGVyMg")], &[&secret("b3RoZXI")]);
    let lines = "-  password: …(10 bytes, sha256 9c02…)\n+  password: …(7 bytes, sha256 3252…)\n   same: …(8 bytes, sha256 fbed…)\n";
    assert!(found.diff.contains(lines), "{}", found.diff);
}

#[test]
fn whose_a_secret_is_is_shown() {
    let secret = |name: &str, value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  annotations:\n    kubernetes.io/service-account.name: {name}\n    example.com/token: {value}\n  name: s\n"
        )
    };
    let found = difference(&[&secret("one", "aHVudGVyMg")], &[&secret("two", "b3RoZXI")]);
    assert!(found.diff.contains("-    kubernetes.io/service-account.name: one\n"), "{}", found.diff);
    assert!(!found.diff.contains("aHVudGVyMg") && !found.diff.contains("b3RoZXI"), "{}", found.diff);
}

#[test]
fn secrets_hide_nowhere() {
    let secret = |password: &str| {
        format!(
            "apiVersion: v1\ndata:\n  password: {password}\nkind: Secret\nmetadata:\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: '{{\"data\":\"{password}\"}}'\n  name: s\n"
        )
    };
    let inside = |before: &str, text: &str, indent: &str| {
        let text = text.replace('\n', &format!("\n{indent}"));
        format!("apiVersion: v1\nkind: List\nmetadata:\n  name: l\nitems:\n{before}{}\n", text.trim_end())
    };
    let plain = |value: &str| format!("apiVersion: v1\nkind: List\nmetadata:\n  name: l\nitems: {value}\n");
    let (one, other) = (secret("aHVudGVyMg"), secret("b3RoZXI"));
    for (before, after) in [
        (one.clone(), other.clone()),
        (inside("- ", &one, "  "), inside("- ", &other, "  ")),
        // A list here, and a mapping there.
        (inside("- ", &one, "  "), inside("  ", &other, "  ")),
        (inside("  ", &one, "  "), inside("- ", &other, "  ")),
        (plain("none"), inside("- ", &other, "  ")),
        (inside("  ", &one, "  "), plain("none")),
        // Tags and comments.
        (format!("!mine\n{one}"), format!("!mine\n{other}")),
        (inside("- !mine\n  ", &one, "  "), inside("- !mine\n  ", &other, "  ")),
        (one.replace("data:\n", "data: !mine\n"), other.replace("data:\n", "data: !mine\n")),
        (
            "kind: Secret # aHVudGVyMg\nmetadata: {name: s}\n".to_owned(),
            "kind: Secret # b3RoZXI\nmetadata: {name: s}\n".to_owned(),
        ),
    ] {
        let found = difference(&[&before], &[&after]);
        for hidden in ["aHVudGVyMg", "b3RoZXI"] {
            assert!(!found.diff.contains(hidden), "{before}{after}{}", found.diff);
        }
    }
}

#[test]
fn hostile_outputs_end_soon() {
    let clock = ThreadClock::start();
    let map = |count: usize, value: &str| {
        let keys: String = (0..count).map(|key| format!("  k{key}: {value}\n")).collect();
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n{keys}")
    };
    let many = |name: &str| map(0, "").replace("data:\n", "").replace("name: a", name);
    let bomb: String =
        (0..30).map(|level| format!("a{level}: &a{level} [*a{}, *a{}]\n", level - 1, level - 1)).collect();
    // Lines in two random orders, which have much in common and nowhere for long.
    let lines = |seed: u64| {
        let mut state = seed;
        let line = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("  {}\n", (state >> 33) % 50)
        };
        let all: String = (0..10_000).map(line).collect();
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  key: |\n{}", all.replace("  ", "    "))
    };
    for (before, after) in [
        (map(5_000, "x"), map(5_001, "y")),
        (format!("{}---\n", many("name: a")).repeat(1_000), format!("{}---\n", many("name: a")).repeat(1_001)),
        (format!("a-1: &a-1 x\n{bomb}"), bomb.clone()),
        (lines(1), lines(2)),
        (String::new(), "\0\u{1b}[2J\r\n".to_owned()),
    ] {
        let verdict = compare(before.as_bytes(), after.as_bytes());
        let Verdict::Differs(difference) = verdict else {
            panic!("{verdict:?}");
        };
        assert!(difference.diff.lines().count() <= 101);
    }
    let verdict = compare(b"\xff\xfe", b"\xff");
    assert!(matches!(verdict, Verdict::Differs(_)), "{verdict:?}");
    // Both are shown as the same character, and are not the same.
    let verdict = compare(b"a: \xfe\n", b"a: \xff\n");
    assert!(matches!(verdict, Verdict::Differs(_)), "{verdict:?}");
    clock.stays_below(20, "comparing");
}

#[test]
fn another_spelling_beside_annotations_is_a_difference() {
    let text = |path: &str, value: &str| {
        format!(
            "apiVersion: v1\ndata:\n  key: {value}\nkind: ConfigMap\nmetadata:\n  annotations:\n    config.kubernetes.io/origin: |\n      path: {path}\n  name: a\n"
        )
    };
    let (one, other) = (text("a", "'on'"), text("b", "on"));
    let verdict = both(&[&one], &[&other]);
    assert!(matches!(verdict, Verdict::Differs(_)), "{verdict:?}");
    let other = text("b", "'on'");
    assert_eq!(both(&[&one], &[&other]), Verdict::Identical);
}

#[test]
fn a_long_difference_is_cut() {
    let long = |value: &str| map("a", &value.repeat(10_000));
    let found = difference(&[&long("x")], &[&long("y")]);
    assert!(found.diff.len() < 2_000, "{}", found.diff.len());
    // What differs is shown, wherever it stands.
    let [one, other] = ["one", "two"].map(|end| map("a", &format!("{}{end}{}", "x".repeat(1_000), "z".repeat(1_000))));
    let found = difference(&[&one], &[&other]).diff;
    let around = |text: &str| format!("…{}{text}{}…\n", "x".repeat(40), "z".repeat(157));
    assert!(found.contains(&format!("-{}+{}", around("one"), around("two"))), "{found}");
    let many = |value: &str| {
        let lines: String = (0..1_000).map(|line| format!("  key-{line}: {value}\n")).collect();
        format!("apiVersion: v1\ndata:\n{lines}kind: ConfigMap\nmetadata:\n  name: a\n")
    };
    let found = difference(&[&many("x"), &map("b", "1")], &[&many("y"), &map("b", "2")]);
    assert!(found.diff.lines().count() <= 101, "{}", found.diff);
    assert!(found.diff.ends_with(" more lines not shown)\n"), "{}", found.diff);
    assert_eq!(found.objects.len(), 2, "all objects are named");
}

#[test]
fn a_line_of_dashes_in_a_value_separates_nothing() {
    let text = |value: &str| {
        format!("apiVersion: v1\ndata:\n  file: |\n    ---\n    {value}\nkind: ConfigMap\nmetadata:\n  name: a\n")
    };
    let found = difference(&[&text("one")], &[&text("two")]);
    assert_eq!(changes(&found), [("v1 ConfigMap a", "changed")]);
}

#[test]
fn secrets_in_urls_are_not_shown_and_everything_else_is() {
    let text = |value: &str| format!("apiVersion: v1\ndata:\n  key: {value}\nkind: ConfigMap\nmetadata:\n  name: a\n");
    let plain =
        ["web@sha256:0123", "reg.io:5000/a/web:v1@sha256:0123", "someone@example.com", "'@every 1h'", "$(A)@$(B)"];
    for value in plain {
        let found = difference(&[&text("x")], &[&text(value)]);
        assert!(found.diff.contains(&format!("\n+  key: {value}\n")), "{}", found.diff);
    }
    let found = difference(&[&text("x")], &[&text("https://me:hunter2@db.example.com/x")]);
    assert!(found.diff.contains("\n+  key: https://…db.example.com/x\n"), "{}", found.diff);
    // What is hidden leaves a mark, and may be all that differs.
    let found =
        difference(&[&text("https://me:hunter1@db.example.com/x")], &[&text("https://me:hunter2@db.example.com/x")]);
    let lines =
        "\n-  key: https://…db.example.com/x\n+  key: https://…db.example.com/x  (differs in the hidden part)\n";
    assert!(found.diff.contains(lines), "{}", found.diff);
    let found = difference(&[&text("https://h.io/x?token=one")], &[&text("https://h.io/x?token=two")]);
    let lines = "\n-  key: https://h.io/x?token=REDACTED\n+  key: https://h.io/x?token=REDACTED  (differs in the hidden part)\n";
    assert!(found.diff.contains(lines), "{}", found.diff);
    // A line that only moves does not differ.
    let [first, second] = ["x: https://h.io/x?token=one", "y: z"];
    let moved = |lines: [&str; 2]| text("a").replace("  key: a", &format!("  - {}\n  - {}", lines[0], lines[1]));
    let found = difference(&[&moved([first, second])], &[&moved([second, first])]);
    assert!(found.diff.contains("token=REDACTED") && !found.diff.contains("hidden part"), "{}", found.diff);
    let found = difference(&[&text("x")], &[&text("sed 's@.*/@@'")]);
    assert!(found.diff.contains('…') && !found.diff.contains(".*/@@"), "{}", found.diff);
}

#[test]
fn what_names_a_secret_is_shown() {
    let from = |name: &str| {
        format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: a\nspec:\n  valuesFrom:\n  - kind: Secret\n    name: {name}\n"
        )
    };
    let found = difference(&[&from("one")], &[&from("two")]);
    assert!(found.diff.contains("\n-    name: one\n+    name: two\n"), "{}", found.diff);
}

#[test]
fn an_object_is_the_same_under_another_version_and_hash() {
    let named = |version: &str, name: &str, value: &str| {
        map(name, value).replace("apiVersion: v1", &format!("apiVersion: {version}"))
    };
    let both = |before: &str, after: &str| {
        let found = super::changes(Sides { old: before.as_bytes(), new: after.as_bytes() }, Sides::default());
        let all = found.into_iter().map(|one| (one.change.name(), one.was.unwrap_or_default(), one.id));
        all.collect::<Vec<_>>()
    };
    let (old, new) = (named("x.io/v1beta1", "a", "1"), named("x.io/v1", "a", "1"));
    assert_eq!(both(&old, &new), [("changed", "x.io/v1beta1 ConfigMap a".into(), "x.io/v1 ConfigMap a".into())]);
    // Another group is another object; so is a word of ten letters.
    assert_eq!(both(&old, &named("y.io/v1", "a", "1")).len(), 2);
    assert_eq!(both(&map("a-production", "1"), &map("a-developers", "1")).len(), 2);
    // Two of one stem: whose names are the same are the same.
    let old = [map("a-5h2fd7mbt9", "1"), map("a-bkbf4thkt8", "1")].join("---\n");
    let new = [map("a-bkbf4thkt8", "2"), map("a-ghk2456789", "1")].join("---\n");
    let (was, is) = ("v1 ConfigMap a-5h2fd7mbt9", "v1 ConfigMap a-ghk2456789");
    let kept = "v1 ConfigMap a-bkbf4thkt8";
    assert_eq!(both(&old, &new), [("changed", String::new(), kept.into()), ("changed", was.into(), is.into())]);
    // Another order is none.
    let (one, other) = (map("a", "1"), map("b", "1"));
    assert_eq!(both(&[&one[..], &other].join("---\n"), &[&other[..], &one].join("---\n")), []);
}

/// An env file that is a private key makes its lines keys.
#[test]
fn keys_that_no_cluster_takes_are_values() {
    let secret = |line: &str| {
        format!("apiVersion: v1\ndata:\n  '{line}==': \"\"\n  SECRETline: \"\"\nkind: Secret\nmetadata:\n  name: s\n")
    };
    let [change] = &super::changes(
        Sides { old: secret("MIIE+/one").as_bytes(), new: secret("MIIE+/two").as_bytes() },
        Sides::default(),
    )[..] else {
        panic!()
    };
    assert!(change.diff.contains("(11 bytes"), "{}", change.diff);
    assert!(!change.diff.contains("MIIE") && !change.diff.contains("line"), "{}", change.diff);
}

#[test]
fn what_is_held_of_an_object_is_small_and_differs_as_it_does() {
    let value = |word: &str| -> Value {
        let schema =
            format!("{{openAPIV3Schema: {{{}}}}}", (0..500).map(|at| format!("f{at}: {word}, ")).collect::<String>());
        serde_yaml::from_str(&format!("kind: X\nspec: {schema}\ndata: {{a: {}, b: {word}}}\n", word.repeat(2000)))
            .unwrap()
    };
    let [one, same, other] = ["is", "is", "was"].map(|word| condensed(value(word)));
    assert_eq!(one, same);
    for field in ["spec", "data"] {
        assert_ne!(one[field], other[field]);
    }
    assert_eq!(one["data"]["b"], value("is")["data"]["b"]);
    assert!(serde_yaml::to_string(&one).unwrap().len() < 300);
}

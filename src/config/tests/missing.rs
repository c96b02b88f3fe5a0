//! What may be missing, and which warnings are errors.

use super::*;
use crate::finding::WarningId;

#[test]
fn what_is_listed_may_be_missing() {
    let config = parse(
        "leave-missing:\n- {path: '**/secret.env', reason: r}\n- {path: 'apps/*/gen', reason: r}\n",
    );
    for (path, is_listed) in [
        ("secret.env", true),
        ("apps/web/secret.env", true),
        ("apps/web/gen", true),
        ("apps/web/deep/gen", false),
        ("apps/web/gen/x", false),
        ("my-secret.env", false),
    ] {
        let expected = |not: Missing| if is_listed { Missing::Accepted } else { not };
        assert_eq!(
            config.missing(path, false),
            expected(Missing::Wrong),
            "{path}"
        );
        assert_eq!(
            config.missing(path, true),
            expected(Missing::Left),
            "{path}"
        );
    }
}

#[test]
fn a_printed_entry_means_what_it_was_printed_for() {
    for path in ["app/secret.env", "a b/[x]*?{y}.env", "- it's.env", "#a: b"] {
        let config = parse(&format!(
            "leave-missing:\n{}\n",
            Config::entry_missing(path).replace("WHY", "made by the cluster")
        ));
        assert_eq!(config.may_be_missing(path), Some(0), "{path}");
        assert_eq!(config.may_be_missing("app/other.env"), None);
    }
}

#[test]
fn a_command_line_adds_to_what_is_strict() {
    let config = parse("strict: [not-built]\n");
    let strict = |ids: &[&str]| {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        let strict = config.strict.and(&ids);
        let taken = WarningId::ALL.iter().filter(|one| strict.takes(**one));
        taken.map(|one| one.id()).collect::<Vec<_>>()
    };
    assert_eq!(strict(&[]), ["not-built"]);
    assert_eq!(strict(&["left-missing"]), ["left-missing", "not-built"]);
    assert_eq!(strict(&["left-missing", "all"]).len(), WarningId::ALL.len());
    assert_eq!(strict(&["all", "not-built"]).len(), WarningId::ALL.len());
}

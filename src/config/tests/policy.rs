//! What a configuration decides.

use super::*;

#[test]
fn a_ref_must_be_as_firm_as_the_policy_says() {
    let allows = |policy: &str, rule: Rule, subject: &Subject| {
        let key = match subject {
            Subject::Remote(Upstream::Chart { .. }) => "chart",
            _ => "url",
        };
        let text = format!("allow: [{{{key}: '*', refs: {policy}, reason: r}}]\n");
        parse(&text).reason(rule, subject).is_some()
    };
    let order = ["any", "branch", "tag", "commit"];
    let helm = |version: &str| Upstream::named(&format!("https://charts.example.com#redis@{version}")).subject();
    let url = "https://github.com/acme/bases";
    for (rule, subject, best) in [
        (Rule::RemoteReference, git(url, "", "0123456789012345678901234567890123456789"), "commit"),
        (Rule::RemoteReference, git(url, "", "v1"), "tag"),
        (Rule::RemoteReference, git(url, "", "main"), "branch"),
        (Rule::FloatingRef, git(url, "", "main"), "branch"),
        (Rule::RemoteReference, git(url, "", "abc1234"), "any"),
        (Rule::RemoteReference, git(url, "", ""), "any"),
        (Rule::RemoteReference, http("https://a.example/v1/x.yaml"), "tag"),
        (Rule::FloatingRef, http("https://a.example/x.yaml"), "any"),
        (Rule::FloatingRef, http("https://github.com/o/r/releases/latest/download/x.yaml"), "branch"),
        (Rule::RemoteReference, http("https://raw.githubusercontent.com/o/r/main/x.yaml"), "branch"),
        (
            Rule::RemoteReference,
            http("https://raw.githubusercontent.com/o/r/0123456789abcdef0123456789abcdef01234567/x"),
            "commit",
        ),
        (Rule::RemoteChart, helm("1.2.3"), "tag"),
        (Rule::RemoteChart, helm("v1.2.3-rc.1+x"), "tag"),
        (Rule::RemoteChart, helm(""), "any"),
        (Rule::RemoteChart, helm("1.2"), "any"),
        (Rule::RemoteChart, helm("1.2.x"), "any"),
        (Rule::RemoteChart, helm("^1.2.3"), "any"),
        (Rule::RemoteChart, helm(">1.2.3"), "any"),
        (Rule::RemoteChart, helm("1.2.3 - 2.0.0"), "any"),
    ] {
        let best = order.iter().position(|policy| *policy == best).unwrap();
        for (at, policy) in order.iter().enumerate() {
            assert_eq!(allows(policy, rule, &subject), at <= best, "{policy} {rule} {subject:?}");
        }
    }
}

#[test]
fn a_star_is_every_warning_that_no_rule_is_named_for() {
    let (error, warning) = (Severity::Error, Severity::Warning);
    for (rules, rule, own, expected) in [
        ("'*': error", Rule::FloatingRef, warning, Some(error)),
        ("'*': error", Rule::MissingTarget, warning, Some(error)),
        ("'*': off", Rule::FloatingRef, warning, None),
        ("'*': warning", Rule::FloatingRef, warning, Some(warning)),
        ("'*': off", Rule::RemoteReference, error, Some(error)),
        ("'*': error", Rule::LockedReference, error, None),
        ("'*': error, floating-ref: warning", Rule::FloatingRef, warning, Some(warning)),
        ("'*': error, floating-ref: off", Rule::FloatingRef, warning, None),
        ("'*': off, floating-ref: error", Rule::FloatingRef, warning, Some(error)),
        ("'*': error, remote-reference: warning", Rule::RemoteReference, error, Some(warning)),
    ] {
        let config = parse(&format!("rules: {{{rules}}}\n"));
        assert_eq!(config.level(rule, own), expected, "{rules} {rule}");
    }
    is_refused_for("rules: {'**': error}\n", "unknown value `**` (known are `remote-ref");
    is_refused_for("rules: {'*': info}\n", "unknown value `info`");
}

#[test]
fn the_first_entry_that_accepts_is_named() {
    let config = parse(
        "allow:\n- {url: github.com/other, refs: tag, reason: a}\n- {url: github.com, refs: commit, reason: b}\n- {url: github.com/acme, refs: tag, reason: c}\n- {url: github.com, refs: tag, reason: d}\n",
    );
    let tag = git("https://github.com/acme/x", "", "v1");
    assert_eq!(config.allowed_by(Rule::RemoteReference, &tag, ""), Some(2));
    assert_eq!(config.reason(Rule::RemoteReference, &tag).unwrap(), "c");
    assert_eq!(config.allow[2].span.start.line, 4);
    // What is dangerous is only accepted by name.
    let url = git("https://github.com/acme/x", "", "0123456789012345678901234567890123456789");
    for rule in Rule::ALL {
        assert_eq!(config.reason(*rule, &url).is_some(), rule.is_allowed_by_default(), "{rule}");
    }
    let named = parse("allow: [{url: '*', refs: tag, rules: [unsafe-reference], reason: r}]\n");
    assert!(named.reason(Rule::UnsafeReference, &url).is_some());
    assert!(named.reason(Rule::RemoteReference, &url).is_none());
}

use super::*;

fn parse(text: &str) -> Config {
    Config::parse(text.as_bytes(), FILE_NAME).unwrap()
}

/// Returns what is wrong, each as `line:column: field: message (hints)`.
fn refused(text: &str) -> Vec<String> {
    let Err(Failures(failures)) = Config::parse(text.as_bytes(), FILE_NAME) else {
        panic!("accepted:\n{text}");
    };
    let shown = |failure: &crate::failure::Failure| {
        let text = failure.to_string();
        let text = text.strip_prefix(&format!("{FILE_NAME}:")).unwrap_or(&text);
        match failure.hints.is_empty() {
            true => text.to_owned(),
            false => format!("{text} ({})", failure.hints.join("; ")),
        }
    };
    failures.iter().map(shown).collect()
}

/// Returns whether `text` is refused once, and what is said holds all of `parts`.
fn is_refused_for(text: &str, parts: &[&str]) {
    let failures = refused(text);
    assert_eq!(failures.len(), 1, "{text}\n{failures:#?}");
    for part in parts {
        assert!(
            failures[0].contains(part),
            "{part:?} is not in {failures:?}"
        );
    }
}

fn git(url: &str, path: &str, pin: &'static str) -> Subject {
    Subject::Git {
        url: url.to_owned(),
        path: path.to_owned(),
        reference: None,
        pin,
    }
}

fn http(url: &str) -> Subject {
    Subject::Http {
        url: url.to_owned(),
    }
}

fn finding(rule: Rule, subject: Subject) -> Finding {
    Finding {
        rule,
        severity: rule.default_severity(),
        path: "apps/web/kustomization.yaml".to_owned(),
        span: None,
        line_text: String::new(),
        field: "resources[0]".to_owned(),
        reference: "x".to_owned(),
        subject,
        message: String::new(),
        help: Vec::new(),
        allowed: None,
    }
}

const EVERYTHING: &str = r#"# policy
rules:
  floating-ref: warning
  "stale-lock": off
  invalid-kustomization: 'error'
locked: error
scopes: [apps/*, "clusters/**"]
include:
- clusters
exclude:
- "**/templates"
- '.'
allow:
- url: github.com/acme
  reason: our own   # said twice
- url: https://charts.example.com/*
  refs: any
  rules: [remote-chart]
  reason: >-
    mirrored,
    and watched
new-only: true
pin: true
load-restrictor: none
"#;

#[test]
fn every_key_is_read() {
    for text in [
        EVERYTHING.to_owned(),
        EVERYTHING.replace('\n', "\r\n"),
        format!("\u{feff}{EVERYTHING}"),
        format!("---\n{EVERYTHING}...\n"),
    ] {
        let first = 1 + usize::from(text.starts_with("---"));
        let config = parse(&text);
        let rules: Vec<_> = config.rules.into_iter().collect();
        assert_eq!(
            rules,
            [
                (Rule::FloatingRef, Level::Warning),
                (Rule::InvalidKustomization, Level::Error),
                (Rule::StaleLock, Level::Off),
            ]
        );
        assert_eq!(config.locked, Locked::Error);
        let texts = |globs: &[Glob]| -> Vec<String> {
            globs.iter().map(|glob| glob.text.clone()).collect()
        };
        assert_eq!(texts(&config.scopes), ["apps/*", "clusters/**"]);
        assert_eq!(texts(&config.include), ["clusters"]);
        assert_eq!(texts(&config.exclude), ["**/templates", "."]);
        assert!(config.new_only && config.pin);
        assert_eq!(config.load_restrictor, LoadRestrictor::None);
        let [own, charts] = &config.allow[..] else {
            panic!("{:?}", config.allow)
        };
        assert_eq!(
            (own.url.text.as_str(), own.refs),
            ("github.com/acme", RefPolicy::Tag)
        );
        assert_eq!(own.reason, "our own");
        assert_eq!(own.rules, DEFAULT_ALLOW_RULES.iter().copied().collect());
        assert_eq!((own.span.line, own.span.column), (first + 13, 3));
        assert_eq!(own.line_text, "- url: github.com/acme");
        assert_eq!(own.span.end_column, own.line_text.len() + 1);
        assert_eq!(charts.reason, "mirrored, and watched");
        assert_eq!(charts.refs, RefPolicy::Any);
        assert_eq!(charts.rules, BTreeSet::from([Rule::RemoteChart]));
    }
}

#[test]
fn a_file_without_content_is_the_default() {
    for text in [
        "",
        "\n",
        "# nothing yet\n",
        "---\n# nothing\n",
        "\u{feff}",
        "{}\n",
    ] {
        let config = parse(text);
        assert!(config.rules.is_empty() && config.allow.is_empty() && !config.new_only);
        assert_eq!(config.locked, Locked::Allow);
        assert!(config.starts("a/b") && config.starts(""));
        assert_eq!(config.scope_of("a/b"), None);
        for rule in Rule::ALL {
            assert_eq!(config.level(*rule).name(), rule.default_severity().name());
        }
    }
}

#[test]
fn what_is_not_known_is_refused_with_its_place() {
    is_refused_for(
        "pin: true\nnewOnly: true\n",
        &[
            "2:1: newOnly: this key is not known",
            "(is `new-only` meant?)",
        ],
    );
    is_refused_for(
        "command: rm -rf /\n",
        &[
            "1:1: command: this key is not known",
            "the keys are rules, locked",
        ],
    );
    is_refused_for(
        "exec:\n  - {a: [b, {c: d}]}\npin: true\n",
        &["1:1: exec: this key"],
    );
    is_refused_for(
        "rules:\n  remote-refernce: off\n",
        &[
            "2:3: rules.remote-refernce: there is no rule `remote-refernce`",
            "`remote-reference` meant",
        ],
    );
    is_refused_for(
        "rules:\n  everything: off\n",
        &["2:3", "the rules are remote-reference, floating-ref"],
    );
    is_refused_for(
        "rules:\n  cycle: info\n",
        &["2:10: rules.cycle: `info` is none of `error`, `warning`, `off`"],
    );
    is_refused_for(
        "rules:\n  cycle: false\n",
        &["2:10: rules.cycle: `false` is none of"],
    );
    is_refused_for("rules:\n", &["rules: nothing where a mapping should be"]);
    is_refused_for(
        "rules: off\n",
        &["1:8: rules: a text where a mapping should be"],
    );
    is_refused_for(
        "scopes: apps\n",
        &["1:9: scopes: a text where a list should be"],
    );
    is_refused_for(
        "scopes: [[apps]]\n",
        &["1:10: scopes[0]: a list where a text should be"],
    );
    is_refused_for("pin: 'true'\n", &["1:6: pin: is not `true` or `false`"]);
    is_refused_for(
        "new-only: main\n",
        &["1:11: new-only: is not `true` or `false`"],
    );
    is_refused_for(
        "locked: warning\n",
        &["`warning` is none of `allow`, `error`"],
    );
    is_refused_for(
        "load-restrictor: LoadRestrictionsNone\n",
        &["is none of `root-only`, `none`"],
    );
    is_refused_for(
        "pin: true\npin: false\n",
        &["2:1: the key `pin` is there twice"],
    );
    is_refused_for(
        "rules:\n  cycle: off\n  cycle: off\n",
        &["3:3: rules: the key `cycle` is there twice"],
    );
    is_refused_for("- a\n", &["1:1: a list where a mapping should be"]);
    is_refused_for("pin: true\n---\npin: true\n", &["2:1", "second document"]);
    is_refused_for("scopes: [a\n", &["not YAML"]);
    is_refused_for("pin: true\n<<<<<<< ours\n", &["2: holds a merge conflict"]);
}

#[test]
fn an_entry_of_allow_says_which_and_why() {
    is_refused_for(
        "allow:\n- url: a.example\n",
        &[
            "2:3: allow[0]: an entry has a `reason`",
            "for those who review",
        ],
    );
    is_refused_for(
        "allow:\n- url: a.example\n  reason: ''\n",
        &["3:11: allow[0].reason: the reason is empty"],
    );
    is_refused_for(
        "allow:\n- url: a.example\n  reason: '  '\n",
        &["the reason is empty"],
    );
    is_refused_for(
        "allow:\n- url: a.example\n  reason:\n",
        &["allow[0].reason: holds nothing"],
    );
    is_refused_for(
        "allow:\n- reason: r\n",
        &["2:3: allow[0]: an entry has a `url`"],
    );
    is_refused_for(
        "allow:\n- a.example\n",
        &["2:3: allow[0]: a text where a mapping should be"],
    );
    is_refused_for(
        "allow:\n- {url: a.example, reason: r, ref: tag}\n",
        &["allow[0].ref: this key is not known", "`refs` meant"],
    );
    is_refused_for(
        "allow:\n- {url: a.example, reason: r, refs: sha}\n",
        &["`sha` is none of `any`, `branch`, `tag`, `commit`"],
    );
    is_refused_for(
        "allow:\n- {url: a.example, reason: r, rules: []}\n",
        &["`rules` names no rule"],
    );
    is_refused_for(
        "allow:\n- {url: a.example, reason: r, rules: [missing-path]}\n",
        &[
            "allow[0].rules[0]: `missing-path` is about no URL",
            "allow[missing-path] REASON",
        ],
    );
    is_refused_for(
        "allow:\n- {url: a.example, reason: r, rules: [remote]}\n",
        &["no rule `remote`"],
    );
}

#[test]
fn everything_wrong_is_told_at_once() {
    let failures = refused(
        "rules: {cycel: off, cycle: on}\nscopes: [/apps, ok, ../x]\nallow:\n- url: ''\n- {url: b.example, rules: [x], refs: y, reason: r}\npni: true\nnew-only: 1\n",
    );
    let places: Vec<&str> = failures
        .iter()
        .map(|failure| failure.split(": ").nth(1).unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "rules.cycel",
            "rules.cycle",
            "scopes[0]",
            "scopes[2]",
            "allow[0]",
            "allow[0].url",
            "allow[1].rules[0]",
            "allow[1].refs",
            "pni",
            "new-only",
        ],
        "{failures:#?}"
    );
}

#[test]
fn hostile_files_end_in_an_error() {
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nscopes: [*b, *b]\n";
    let failures = refused(bomb);
    assert!(
        failures
            .iter()
            .any(|failure| failure.contains("anchors and aliases")),
        "{failures:?}"
    );
    is_refused_for("scopes: &a [x]\n", &["anchors and aliases are not allowed"]);
    is_refused_for("scopes: !!seq [x]\n", &["tags are not allowed"]);
    refused(&"[".repeat(100_000));
    refused(&format!("scopes: {}", "[".repeat(1000)));
    refused(&"x: ".repeat(10_000));
    is_refused_for(
        &"#".repeat(300 << 10),
        &["more than the 262144 that are read"],
    );
    assert!(Config::parse(b"pin: true\n\xff", "x").is_err());
    assert!(Config::parse(b"\0", "x").is_err());
    // What is quoted from the file moves no cursor.
    is_refused_for("rules:\n  \"\\e[2Jx\": off\n", &["\\u{1b}[2Jx"]);
    // Nothing that a glob says makes it slow, and no text makes the reader panic.
    refused(&format!("scopes: ['{}']", "a".repeat(2000)));
    for cut in 0..EVERYTHING.len() {
        let _ = Config::parse(&EVERYTHING.as_bytes()[..cut], "x");
        let _ = Config::parse(&EVERYTHING.as_bytes()[cut..], "x");
    }
}

#[test]
fn globs_match_directories_from_the_top() {
    for (glob, yes, no) in [
        ("apps", vec!["apps"], vec!["", "apps/web", "x/apps", "app"]),
        (
            "apps/*",
            vec!["apps/web", "apps/.web"],
            vec!["apps", "apps/web/base", "x/apps/web"],
        ),
        ("*", vec!["apps"], vec!["", "apps/web"]),
        ("a*", vec!["a", "apps"], vec!["apps/web", "bapps"]),
        ("**", vec!["", "apps", "apps/web"], vec![]),
        (
            "**/base",
            vec!["base", "a/base", "a/b/base"],
            vec!["base/x", "a/basement"],
        ),
        (
            "apps/**",
            vec!["apps/web", "apps/web/base"],
            vec!["apps", "", "x/apps/web"],
        ),
        (
            "a/**/z",
            vec!["a/z", "a/b/z", "a/b/c/z", "a/z/z"],
            vec!["a", "z", "a/z/b"],
        ),
        (
            "**/a/**/a/*",
            vec!["a/a/b", "x/a/b/a/c", "a/a/a"],
            vec!["a/a", "a/b/c"],
        ),
        (
            "apps/{web,db}-?",
            vec!["apps/web-1", "apps/db-x"],
            vec!["apps/web-", "apps/web-12", "apps/web-/"],
        ),
        ("apps/[a-c]x", vec!["apps/ax"], vec!["apps/dx", "apps//x"]),
        ("apps/[!a]x", vec!["apps/bx"], vec!["apps/ax", "apps/x"]),
        (".", vec![""], vec!["a", "."]),
        (".github/*", vec![".github/x"], vec!["github/x"]),
        ("été/*", vec!["été/é"], vec!["Été/é"]),
    ] {
        let glob = Glob::parse(glob).unwrap();
        for directory in yes {
            assert!(glob.matches(directory), "{} {directory}", glob.text);
        }
        for directory in no {
            assert!(!glob.matches(directory), "{} {directory}", glob.text);
        }
    }
    for (glob, why) in [
        ("", "is empty"),
        ("/apps", "begins with `/`"),
        ("apps/", "ends with `/`"),
        ("./apps", "holds `.`"),
        ("../apps", "holds `..`"),
        ("apps//web", "holds `//`"),
        ("!apps", "begins with `!`"),
        ("apps/**x", "stands alone"),
        ("apps/[a", "is not a glob"),
        ("{a/b,c}", "is not a glob"),
        ("apps\\", "is not a glob"),
        (
            "apps/web/kustomization.yaml",
            "names the file `kustomization.yaml`",
        ),
        ("a\tb", "control"),
    ] {
        let refused = Glob::parse(glob).unwrap_err();
        assert!(refused.contains(why), "{glob}: {refused}");
    }
    // Guessing where each `**` ends would take longer than anybody waits.
    let glob = Glob::parse(&format!("{}b", "**/a/".repeat(100))).unwrap();
    assert!(!glob.matches(&"a/".repeat(2000)));
    assert!(glob.matches(&format!("{}b", "a/".repeat(2000))));
}

#[test]
fn the_innermost_scope_bounds() {
    let config = parse("scopes: [apps/*, apps/web/**/private, clusters]\n");
    for (directory, scope) in [
        ("apps/web", Some("apps/web")),
        ("apps/web/base", Some("apps/web")),
        ("apps/web/a/private/x", Some("apps/web/a/private")),
        ("apps", None),
        ("", None),
        ("clusters/prod", Some("clusters")),
        ("other/clusters", None),
    ] {
        assert_eq!(config.scope_of(directory).as_deref(), scope, "{directory}");
    }
    assert_eq!(parse("scopes: [.]\n").scope_of("a"), None);
    assert_eq!(parse("scopes: [.]\n").scope_of("").as_deref(), Some(""));
}

#[test]
fn starting_points_are_included_and_not_excluded() {
    let starts = |text: &str, directory: &str| parse(text).starts(directory);
    let exclude = "exclude: [\"**/templates\", legacy]\n";
    assert!(starts(exclude, "apps/web"));
    assert!(starts(exclude, ""));
    assert!(!starts(exclude, "legacy"));
    assert!(!starts(exclude, "legacy/a/b"));
    assert!(!starts(exclude, "apps/templates/web"));
    assert!(starts(exclude, "apps/legacy"));
    let include = "include: [clusters/*]\nexclude: [clusters/test]\n";
    assert!(starts(include, "clusters/prod"));
    assert!(starts(include, "clusters/prod/apps"));
    assert!(!starts(include, "clusters"));
    assert!(!starts(include, "clusters/test/apps"));
    assert!(!starts(include, ""));
    assert!(!starts("exclude: ['.']\n", ""));
    assert!(starts("exclude: ['.']\n", "apps"));
    assert!(!starts("exclude: ['**']\n", "apps"));
}

#[test]
fn a_severity_is_overridden_only_by_what_is_written() {
    let mut duplicate = finding(Rule::InvalidKustomization, Subject::Local);
    duplicate.severity = Severity::Warning;
    let severity = |text: &str| parse(text).severity(&duplicate);
    assert_eq!(severity(""), Some(Severity::Warning));
    assert_eq!(severity("rules: {cycle: error}\n"), Some(Severity::Warning));
    assert_eq!(
        severity("rules: {invalid-kustomization: error}\n"),
        Some(Severity::Error)
    );
    assert_eq!(severity("rules: {invalid-kustomization: off}\n"), None);
    assert_eq!(parse("").level(Rule::InvalidKustomization), Level::Error);
}

fn matches(glob: &str, subject: &Subject) -> bool {
    UrlGlob::parse(glob).unwrap().matches(subject)
}

#[test]
fn a_url_matches_what_begins_with_the_glob() {
    let base = git("https://github.com/acme/bases", "web/overlay", "tag");
    for glob in [
        "github.com",
        "GitHub.com",
        "https://github.com",
        "https://github.com:443/",
        "github.com/acme",
        "github.com/acme/",
        "github.com/*",
        "github.com/acme/*",
        "github.com/acme/b*s",
        "github.com/{acme,other}/bases",
        "github.com/acme/bases",
        "github.com/acme/bases.git",
        "https://github.com/acme/bases//web",
        "https://github.com/acme/bases/web/overlay",
        "github.com/**/overlay",
        "github.com/**",
        "*.com",
        "*",
        "https://*/acme",
    ] {
        assert!(matches(glob, &base), "{glob}");
    }
    for glob in [
        "github.com/acm",
        "github.com/acme/base",
        "github.com/acme/bases/web/overlay/x",
        "github.com/Acme",
        "github.com:8443",
        "hub.com",
        "*.github.com",
        "http://github.com",
        "ssh://github.com",
        "file:///acme",
        "com",
    ] {
        assert!(!matches(glob, &base), "{glob}");
    }
    for url in [
        "https://github.com/acme/bases.git",
        "https://github.com:443/acme/bases",
        "ssh://git@github.com/acme/bases",
        "ssh://git@github.com:22/acme/bases",
        "git@github.com:acme/bases",
        "git@github.com:acme/bases.git",
        "HTTPS://GITHUB.COM/acme/bases",
    ] {
        assert!(
            matches("github.com/acme/bases", &git(url, "", "tag")),
            "{url}"
        );
    }
    assert!(matches(
        "git@github.com:acme",
        &git("git@github.com:acme/bases", "", "tag")
    ));
    assert!(!matches(
        "git@github.com:acme",
        &git("https://github.com/acme/bases", "", "tag")
    ));
    assert!(matches(
        "http://github.com",
        &git("http://github.com/acme/bases", "", "tag")
    ));
    assert!(!matches(
        "github.com",
        &git("http://github.com/acme/bases", "", "tag")
    ));
    assert!(matches(
        "file:///srv/git/*",
        &git("file:///srv/git/a.git", "", "tag")
    ));
    assert!(!matches("*", &git("file:///srv/git/a.git", "", "tag")));
    assert!(matches(
        "raw.example.com/o/r",
        &http("https://raw.example.com/o/r/v1/x.yaml?token=REDACTED")
    ));
    assert!(matches(
        "*.example.com:8443",
        &http("https://raw.example.com:8443/x")
    ));
    assert!(!matches(
        "*.example.com",
        &http("https://raw.example.com:8443/x")
    ));
    assert!(!matches("*.example.com", &http("https://example.com/x")));
    let chart = Subject::Helm {
        url: "https://charts.example.com/stable".to_owned(),
        chart: "redis".to_owned(),
        version: "1.2.3".to_owned(),
    };
    assert!(matches("charts.example.com/stable/redis", &chart));
    assert!(!matches("charts.example.com/stable/postgres", &chart));
    assert!(!matches("*", &Subject::Local));
}

#[test]
fn no_other_host_looks_like_the_one_that_is_allowed() {
    for url in [
        "https://github.com.evil.example/acme/bases",
        "https://evil.example/?x=github.com/acme/bases",
        "https://evil.example/github.com/acme/bases",
        "https://evil.example/https://github.com/acme/bases",
        "https://github.com@evil.example/acme/bases",
        "https://github.com:x@evil.example/acme/bases",
        "https://evilgithub.com/acme/bases",
        "https://github.com:8443/acme/bases",
        "https://github.com:x/acme/bases",
        "https://evil.example\\github.com/acme/bases",
        "https://github.com\\.evil.example/acme/bases",
        "https://github.com%2eevil.example/acme/bases",
        "https://github.com\u{ff0f}.evil.example/acme/bases",
        "https://ｇithub.com/acme/bases",
        "https://github.com /acme/bases",
        "https:github.com/acme/bases",
        "https:///github.com/acme/bases",
        "//github.com/acme/bases",
        "github.com/acme/bases",
        "git@github.com.evil.example:acme/bases",
        "github.com@evil.example:acme/bases",
        "git@evil.example:github.com/acme/bases",
        "ext::https://github.com/acme/bases",
        "",
    ] {
        for glob in [
            "github.com/acme",
            "github.com",
            "https://github.com/acme/*",
            "*.github.com",
        ] {
            assert!(!matches(glob, &git(url, "", "commit")), "{glob} {url}");
            assert!(!matches(glob, &http(url)), "{glob} {url}");
        }
    }
    // A path that is taken for another by whoever follows it.
    for (url, path) in [
        ("https://github.com/acme/../evil/bases", ""),
        ("https://github.com/acme/./bases", ""),
        ("https://github.com/acme/%2e%2e/evil/bases", ""),
        ("https://github.com/acme%2f..%2Fevil/bases", ""),
        ("https://github.com/acme\\..\\evil/bases", ""),
        ("https://github.com/acme/bases", "../../evil"),
    ] {
        for glob in [
            "github.com/acme",
            "github.com/acme*",
            "github.com/**",
            "github.com",
        ] {
            assert!(
                !matches(glob, &git(url, path, "commit")),
                "{glob} {url} {path}"
            );
        }
    }
    assert!(!matches(
        "github.com/acme",
        &git("https://github.com/acme-evil/bases", "", "tag")
    ));
    assert!(!matches(
        "*.example.com",
        &http("https://evil.net\\x.example.com/")
    ));
    assert!(!matches(
        "*.example.com",
        &http("https://evil.net/x.example.com/")
    ));
    assert!(!matches("*.example.com", &http("https://evilexample.com/")));
}

#[test]
fn globs_of_urls_that_say_more_than_they_seem_to_are_refused() {
    for (glob, why) in [
        ("", "is empty"),
        ("github.com*", "`*` inside of the host"),
        ("github*", "`*` inside of the host"),
        ("git*.com/acme", "`*` inside of the host"),
        ("*github.com", "`*` inside of the host"),
        ("*.*.com", "`*` inside of the host"),
        (
            "gopher://github.com",
            "has the scheme `gopher`, which is none of https, ssh",
        ),
        ("htps://github.com", "is `https` meant?"),
        ("git::https://github.com", "has the scheme"),
        ("*://github.com", "has the scheme"),
        (
            "github.com:acme/bases",
            "has the host `github.com:acme`, which is none",
        ),
        ("https://", "names no host"),
        ("/acme", "names no host"),
        ("../acme", "is a path of this repository"),
        ("github.com/acme/../x", "holds `..`"),
        ("github.com/acme?ref=v1", "holds a query"),
        ("github.com/a b", "blank"),
        ("github.com/[a", "is not a glob"),
        ("github.com/a**", "stands alone"),
        ("gïthub.com", "which is none"),
        ("github.com\\x", "which is none"),
    ] {
        let refused = UrlGlob::parse(glob).unwrap_err();
        assert!(refused.contains(why), "{glob}: {refused}");
    }
    let failures = refused("allow: [{url: 'https://user:hunter2@a*b.example', reason: r}]\n");
    assert!(!failures.concat().contains("hunter2"), "{failures:?}");
}

#[test]
fn a_ref_must_be_as_firm_as_the_policy_says() {
    let allows = |policy: &str, rule: Rule, subject: &Subject| {
        let text = format!("allow: [{{url: '*', refs: {policy}, reason: r}}]\n");
        parse(&text)
            .allows(&finding(rule, subject.clone()))
            .is_some()
    };
    let order = ["any", "branch", "tag", "commit"];
    let helm = |version: &str| Subject::Helm {
        url: "https://charts.example.com".to_owned(),
        chart: "redis".to_owned(),
        version: version.to_owned(),
    };
    let url = "https://github.com/acme/bases";
    for (rule, subject, best) in [
        (Rule::RemoteReference, git(url, "", "commit"), "commit"),
        (Rule::RemoteReference, git(url, "", "tag"), "tag"),
        (Rule::RemoteReference, git(url, "", "branch"), "branch"),
        (Rule::FloatingRef, git(url, "", "branch"), "branch"),
        (Rule::RemoteReference, git(url, "", "short-commit"), "any"),
        (Rule::RemoteReference, git(url, "", "none"), "any"),
        (Rule::RemoteReference, git(url, "", "anything else"), "any"),
        (
            Rule::RemoteReference,
            http("https://a.example/v1/x.yaml"),
            "tag",
        ),
        (
            Rule::FloatingRef,
            http("https://a.example/releases/latest/x.yaml"),
            "any",
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
            assert_eq!(
                allows(policy, rule, &subject),
                at <= best,
                "{policy} {rule} {subject:?}"
            );
        }
    }
}

#[test]
fn the_first_entry_that_accepts_is_named() {
    let config = parse(
        "allow:\n- {url: github.com/other, reason: a}\n- {url: github.com, refs: commit, reason: b}\n- {url: github.com/acme, reason: c}\n- {url: github.com, reason: d}\n",
    );
    let reference = finding(
        Rule::RemoteReference,
        git("https://github.com/acme/x", "", "tag"),
    );
    assert_eq!(config.allowed_by(&reference), Some(2));
    let allow = config.allows(&reference).unwrap();
    assert_eq!((allow.reason.as_str(), allow.span.line), ("c", 4));
    // What is dangerous, and what is not about URLs, is not accepted unless it is named.
    let url = || git("https://github.com/acme/x", "", "commit");
    for rule in Rule::ALL {
        assert_eq!(
            config.allows(&finding(*rule, url())).is_some(),
            DEFAULT_ALLOW_RULES.contains(rule),
            "{rule}"
        );
    }
    let named = parse("allow: [{url: '*', rules: [unsafe-reference], reason: r}]\n");
    assert!(
        named
            .allows(&finding(Rule::UnsafeReference, url()))
            .is_some()
    );
    assert!(
        named
            .allows(&finding(Rule::RemoteReference, url()))
            .is_none()
    );
}

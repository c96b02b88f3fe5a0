//! Locks with any content, written and read.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde_yaml::{Mapping, Value};

use super::*;
use crate::record::valid;

/// Text that YAML could take for something else.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zA-Z0-9./_-]{1,12}",
        2 => "[0-9eE.+_xob:-]{1,10}",
        2 => "[ -~]{1,12}",
        2 => "\\PC{1,8}",
        1 => any::<String>(),
        1 => prop::sample::select(vec![
            "yes", "No", "null", "~", "<<", "=", "---", "...", "- a", "? a", "a: b", "a #b", "'", "\"",
            "\\", "*a", "&a", "!a", "|", ">", "[", "]", "{", "}", ",", "%", "@", "`", ".inf", "0x1",
            "1:2", "2001-01-01", "\u{2028}", "\u{85}", "\u{feff}", " a", "a ", "a:",
        ]).prop_map(str::to_owned),
    ]
    .prop_filter("not empty", |text| !text.is_empty())
}

fn accepted(
    rule: fn(&str) -> std::result::Result<(), &'static str>,
) -> impl Strategy<Value = String> {
    // Invalid parts are removed, so that not every lock is rejected.
    hostile()
        .prop_map(|text| text.replace(|c: char| c.is_control() || "\\:/~^?*[".contains(c), ""))
        .prop_filter("accepted", move |text| rule(text).is_ok())
}

fn hex(digits: usize) -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::string::string_regex(&format!("[0-9a-f]{{{digits}}}")).unwrap(),
        proptest::string::string_regex(&format!("[0-9]{{{digits}}}")).unwrap(),
        proptest::string::string_regex(&format!("[0-9]{{3}}e[0-9]{{{}}}", digits - 4)).unwrap(),
    ]
}

fn remotes() -> impl Strategy<Value = Vec<Remote>> {
    let url = || accepted(valid::path).prop_map(|path| format!("https://example.com/{path}"));
    let git = (
        url(),
        option::of(accepted(valid::reference)),
        any::<bool>(),
        prop_oneof![hex(40), hex(64)],
        btree_set(accepted(valid::path_or_top), 0..3),
        btree_set(accepted(valid::url), 0..3),
    )
        .prop_map(|(url, reference, submodules, commit, paths, through)| {
            Remote::Git(GitRemote {
                url,
                reference,
                submodules,
                commit,
                paths,
                through,
            })
        });
    let through = btree_set(accepted(valid::url), 0..3);
    let file = (url(), hex(64), any::<u64>(), through).prop_map(|(url, sha256, size, through)| {
        Remote::File(FileRemote {
            url,
            sha256,
            size,
            through,
        })
    });
    let chart = (
        url(),
        accepted(valid::chart),
        option::of(accepted(valid::chart_version)),
        option::of(accepted(valid::chart_version)),
        hex(64),
        any::<u64>(),
        btree_set(accepted(valid::url), 0..3),
    )
        .prop_map(|(url, chart, version, resolved, sha256, size, through)| {
            Remote::Chart(ChartRemote {
                url,
                chart,
                version,
                resolved,
                sha256,
                size,
                through,
            })
        });
    vec(prop_oneof![git, file, chart], 0..6).prop_map(|mut remotes| {
        remotes.sort_by(Remote::compare);
        remotes.dedup_by(|a, b| a.key() == b.key());
        remotes
    })
}

fn files() -> impl Strategy<Value = Vec<StoredFile>> {
    let file = (
        any::<(bool, bool)>(),
        hex(64),
        option::of(accepted(valid::url)),
        option::of(accepted(valid::path)),
        btree_map(hostile(), hostile(), 0..3),
    );
    btree_map(accepted(valid::path), file, 0..6).prop_map(|files| {
        let files = files.into_iter();
        files
            .map(
                |(path, ((executable, stripped), sha256, remote, source, rewritten))| StoredFile {
                    path,
                    executable,
                    stripped,
                    sha256,
                    remote,
                    source,
                    rewritten,
                },
            )
            .collect()
    })
}

fn lefts() -> impl Strategy<Value = Vec<Left>> {
    let what = prop_oneof![
        accepted(valid::url).prop_map(|url| LeftWhat::Reference { url }),
        (
            accepted(valid::url),
            accepted(valid::chart),
            option::of(accepted(valid::chart_version)),
        )
            .prop_map(|(url, chart, version)| LeftWhat::Chart {
                url,
                chart,
                version
            }),
        accepted(valid::text_without_controls).prop_map(|image| LeftWhat::Image { image }),
    ];
    let chains = btree_set(vec(accepted(valid::url), 1..3), 0..3);
    let reason = accepted(valid::text_without_controls);
    btree_map(what, (chains, reason, any::<bool>()), 0..3).prop_map(|left| {
        let left = left.into_iter();
        left.map(|(what, (through, reason, accepted))| Left {
            what,
            through,
            reason,
            accepted,
        })
        .collect()
    })
}

fn locks() -> impl Strategy<Value = Lock> {
    let options = (
        option::of(accepted(valid::path_or_top)),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        btree_set(accepted(valid::text_without_controls), 0..3),
        btree_set(accepted(valid::url), 0..3),
        btree_set(accepted(valid::text_without_controls), 0..3),
    )
        .prop_map(
            |(
                scope,
                helm,
                no_licenses,
                hydrator_metadata,
                unrestricted,
                leave_missing,
                leave_remote,
                trust_exec,
            )| {
                LockOptions {
                    scope,
                    helm,
                    no_licenses,
                    hydrator_metadata,
                    load_restrictor: if unrestricted {
                        LoadRestrictor::None
                    } else {
                        LoadRestrictor::RootOnly
                    },
                    leave_missing,
                    leave_remote,
                    trust_exec,
                }
            },
        );
    (
        option::of(accepted(valid::target)),
        any::<bool>(),
        options,
        remotes(),
        lefts(),
        files(),
    )
        .prop_map(|(target, trailers, options, remotes, left, files)| Lock {
            target,
            trailers,
            options,
            remotes,
            left,
            files,
        })
}

/// What another YAML parser must make of a sorted lock: every text is a string.
fn value(lock: &Lock) -> Value {
    fn mapping(entries: Vec<(&str, Option<Value>)>) -> Value {
        let entries = entries
            .into_iter()
            .filter_map(|(key, value)| Some((Value::from(key), value?)));
        Value::Mapping(entries.collect::<Mapping>())
    }
    fn list(items: &BTreeSet<String>) -> Option<Value> {
        let items: Vec<Value> = items
            .iter()
            .map(|item| Value::from(item.as_str()))
            .collect();
        (!items.is_empty()).then_some(Value::Sequence(items))
    }
    let text = |text: &str| Some(Value::from(text));
    let maybe = |text: &Option<String>| text.as_deref().map(Value::from);
    let many = |values: Vec<Value>| (!values.is_empty()).then_some(Value::Sequence(values));
    let options = &lock.options;
    let is_free = options.load_restrictor == LoadRestrictor::None;
    let options = (*options != LockOptions::default()).then(|| {
        mapping(vec![
            ("scope", maybe(&options.scope)),
            ("helm", options.helm.then_some(Value::Bool(true))),
            (
                "no-licenses",
                options.no_licenses.then_some(Value::Bool(true)),
            ),
            (
                "hydrator-metadata",
                options.hydrator_metadata.then_some(Value::Bool(true)),
            ),
            ("load-restrictor", is_free.then(|| Value::from("none"))),
            ("leave-missing", list(&options.leave_missing)),
            ("leave-remote", list(&options.leave_remote)),
            ("trust-exec", list(&options.trust_exec)),
        ])
    });
    let remotes = lock.remotes.iter().map(|remote| match remote {
        Remote::Git(git) => mapping(vec![
            ("url", text(&git.url)),
            ("ref", maybe(&git.reference)),
            (
                "submodules",
                (!git.submodules).then_some(Value::Bool(false)),
            ),
            ("commit", text(&git.commit)),
            ("paths", list(&git.paths)),
            ("through", list(&git.through)),
        ]),
        Remote::File(file) => mapping(vec![
            ("url", text(&file.url)),
            ("sha256", text(&file.sha256)),
            ("size", Some(Value::from(file.size))),
            ("through", list(&file.through)),
        ]),
        Remote::Chart(chart) => mapping(vec![
            ("url", text(&chart.url)),
            ("chart", text(&chart.chart)),
            ("version", maybe(&chart.version)),
            ("resolved", maybe(&chart.resolved)),
            ("sha256", text(&chart.sha256)),
            ("size", Some(Value::from(chart.size))),
            ("through", list(&chart.through)),
        ]),
    });
    let files = lock.files.iter().map(|file| {
        let rewritten = file
            .rewritten
            .iter()
            .map(|(now, upstream)| (now.as_str(), text(upstream)))
            .collect::<Vec<_>>();
        mapping(vec![
            ("path", text(&file.path)),
            ("mode", text(file.mode())),
            ("stripped", file.stripped.then_some(Value::Bool(true))),
            ("sha256", text(&file.sha256)),
            ("remote", maybe(&file.remote)),
            ("source", maybe(&file.source)),
            (
                "rewritten",
                (!rewritten.is_empty()).then(|| mapping(rewritten)),
            ),
        ])
    });
    let left = lock.left.iter().map(|left| {
        let (url, chart, version, image) = match &left.what {
            LeftWhat::Reference { url } => (Some(url), None, None, None),
            LeftWhat::Chart {
                url,
                chart,
                version,
            } => (Some(url), Some(chart), version.as_ref(), None),
            LeftWhat::Image { image } => (None, None, None, Some(image)),
        };
        let text = |text: Option<&String>| text.map(|text| Value::from(text.as_str()));
        let chain = |chain: &Vec<String>| {
            Value::Sequence(chain.iter().map(|one| Value::from(one.as_str())).collect())
        };
        mapping(vec![
            ("url", text(url)),
            ("chart", text(chart)),
            ("version", text(version)),
            ("image", text(image)),
            ("through", many(left.through.iter().map(chain).collect())),
            ("reason", text(Some(&left.reason))),
            ("accepted", left.accepted.then_some(Value::Bool(true))),
        ])
    });
    mapping(vec![
        ("version", Some(Value::from(1))),
        ("target", maybe(&lock.target)),
        ("trailers", lock.trailers.then_some(Value::Bool(true))),
        ("options", options),
        ("remotes", many(remotes.collect())),
        ("left", many(left.collect())),
        ("files", many(files.collect())),
    ])
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(lock in locks()) {
        let text = lock.render().unwrap();
        let read = parse(&text).unwrap();
        prop_assert_eq!(&read, &sorted(lock));
        prop_assert_eq!(read.render().unwrap(), text.clone());
        prop_assert_eq!(parse(&text.replace('\n', "\r\n")).unwrap(), read);
        prop_assert!(!text.contains('\r') && text.ends_with('\n'));
    }

    #[test]
    fn another_parser_reads_the_same(lock in locks()) {
        let text = lock.render().unwrap();
        let read: Value = serde_yaml::from_str(&text).unwrap();
        prop_assert_eq!(read, value(&sorted(lock)));
    }

    #[test]
    fn damaged_text_is_read_or_refused(
        lock in locks(),
        edits in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = lock.render().unwrap().into_bytes();
        for (index, byte) in edits {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        // No panic, and what is read can be written.
        if let Ok(lock) = Lock::parse(&bytes, "x") {
            lock.render().unwrap();
        }
    }
}

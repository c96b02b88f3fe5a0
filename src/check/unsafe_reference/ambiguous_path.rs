//! A text that kustomize reads as a git URL, but that was probably meant as something else.
//!
//! kustomize looks at the text before it looks at the disk (`NewRepoSpecFromURL`), so it never finds a directory named
//! `app@v1/base/x` or `github.com/org/repo/dir`, unless `./` precedes the name. And it cuts a URL at the first `.git`
//! or `_git/`, even within `.github` and `my_git/`.
//!
//! An ambiguous path is not reported as a remote reference, too: locking it is not the fix.

use crate::check::Context;
use crate::graph::{ExpectedContent, RemoteRef};
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};
use crate::message::redact;
use crate::reference::{self, RepoSpec};

/// Finds references that kustomize reads as git URLs, but that were probably meant as something else.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    // Nothing is wrong for kustomize, so that the user must choose between both meanings.
    let findings = context.remotes.iter().filter_map(|remote| {
        let shown = remote.shown();
        let failure = match remote.ambiguity.as_ref()? {
            Ambiguity::NoHost => {
                Failure::new(format!("kustomize takes `{shown}` for a git URL without a host, because of its `@`"))
                    .hint(format!("write `./{shown}` if it is a directory"))
                    .hint(format!("or `{}` if it is a repository", shown.replacen('/', ":", 1)))
            }
            Ambiguity::Split { repository, better } => Failure::new(format!(
                "kustomize takes `{repository}` in `{shown}` for the repository, and the rest for a directory"
            ))
            .hint(format!("mark the end of the repository: `{better}`")),
        };
        Some(context.at_reference(Rule::UnsafeReference, remote.edge, failure))
    });
    findings.collect()
}

/// The reason why a text that kustomize reads as a git URL was probably meant as something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::check) enum Ambiguity {
    /// The text has neither a scheme nor a `:`, so that git does not read it as a URL.
    NoHost,
    /// kustomize ends the repository within a name.
    Split {
        /// The repository that kustomize reads.
        repository: String,
        /// The text to write instead.
        better: String,
    },
}

impl Ambiguity {
    /// The reason why the text of a reference was probably not meant as the URL that kustomize reads. `None` if there
    /// is none.
    pub(in crate::check) fn of(wanted: &RemoteRef) -> Option<Ambiguity> {
        let spec = wanted.spec.as_ref()?;
        let text = wanted.text.exposed();
        let forced = text.get(.."git::".len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case("git::"));
        let is_plain = wanted.wants == ExpectedContent::Root && !text.contains("://") && !forced;
        if is_plain && !spec.clone_spec().exposed().contains(':') {
            return Some(Ambiguity::NoHost);
        }
        if wanted.wants == ExpectedContent::File || reference::looks_like_file(text) {
            return None;
        }
        split(text, spec)
    }
}

/// The ambiguity of a URL whose repository kustomize ends within a name, if it does.
fn split(text: &str, spec: &RepoSpec) -> Option<Ambiguity> {
    let (location, query) = match text.find('?') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let at = location.find(&spec.repo_path)?;
    let (host, path) = location.split_at(at);
    // kustomize cuts at `.git` and `_git/` wherever they occur, also within a name.
    let rest = &path[spec.repo_path.len()..];
    let better = if spec.repo_path.ends_with(".git") && !rest.is_empty() && !rest.starts_with('/') {
        let mut segments = path.splitn(3, '/');
        let owner = segments.next()?;
        let name = segments.next()?;
        format!("{owner}/{name}//{}", segments.next().unwrap_or_default())
    } else {
        let (before, after) = spec.repo_path.split_once("_git/")?;
        if before.is_empty() || before.ends_with('/') {
            return None;
        }
        let rest = rest.trim_start_matches('/');
        let separator = if rest.is_empty() { "" } else { "/" };
        format!("{before}_git.git//{after}{separator}{rest}")
    };
    Some(Ambiguity::Split {
        repository: spec.clone_spec().shown(),
        better: redact::url(&format!("{host}{better}{query}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{Scene, under_caret};

    fn scene(field: &str, text: &str) -> Scene {
        Scene::default()
            .file("a/kustomization.yaml", &format!("{field}:\n- {text}\n"))
            .file("a/app@v1/base/x/kustomization.yaml", "namePrefix: b-\n")
            .file("a/github.com/o/r/dir/kustomization.yaml", "namePrefix: b-\n")
            .file("a/github.com/o/r/x.yaml", "")
            .file("a/git@h:o/r/kustomization.yaml", "namePrefix: b-\n")
            .file("a/u@h:a/b.git/x.yaml", "")
            .file("a/ssh:/h/o/r/kustomization.yaml", "namePrefix: b-\n")
            .file("a/https:/h/o/r/x.yaml", "")
    }

    #[track_caller]
    fn one(scene: Scene) -> Finding {
        scene.one(Rule::UnsafeReference)
    }

    #[test]
    fn a_directory_that_is_there() {
        let finding = one(scene("resources", "github.com/o/r/dir"));
        assert_eq!(
            finding.message,
            "kustomize takes `github.com/o/r/dir` for a URL, although `a/github.com/o/r/dir` exists"
        );
        assert_eq!(finding.help, ["write `./github.com/o/r/dir` for the local path", "or rename the local path"]);
        assert_eq!(under_caret(&finding), "github.com/o/r/dir");
        for field in ["resources", "components", "bases", "generators", "transformers", "validators"] {
            for text in [
                "app@v1/base/x",
                "app@v1/base/x/",
                "github.com/o/r",
                "github.com/o/r/x.yaml",
                "git@h:o/r",
                "u@h:a/b.git/x.yaml",
                "ssh://h/o/r",
                "https://h/o/r/x.yaml",
            ] {
                one(scene(field, text));
                // A lock says nothing about what lies here.
                let locked = scene(field, text).git("https://github.com/o/r", None);
                assert_eq!(locked.find(Rule::UnsafeReference).len(), 1, "{field}: {text}");
            }
        }
    }

    #[test]
    fn a_path_without_a_host() {
        let finding = one(scene("resources", "app@v2/base/x"));
        assert_eq!(finding.message, "kustomize takes `app@v2/base/x` for a git URL without a host, because of its `@`");
        assert_eq!(
            finding.help,
            ["write `./app@v2/base/x` if it is a directory", "or `app@v2:base/x` if it is a repository"]
        );
        let finding = one(scene("components", "git@gitlab.com/o/r?ref=v1"));
        assert_eq!(finding.help[1], "or `git@gitlab.com:o/r?ref=v1` if it is a repository");
    }

    #[test]
    fn a_repository_that_is_cut_in_a_name() {
        for (text, repository, better) in [
            (
                "https://github.com/o/r/.github/dir?ref=v1",
                "https://github.com/o/r/.git",
                "https://github.com/o/r//.github/dir?ref=v1",
            ),
            (
                "https://github.com/o/.github?ref=v1",
                "https://github.com/o/.git",
                "https://github.com/o/.github//?ref=v1",
            ),
            (
                "github.com/o/x.github.io/dir?ref=v1",
                "https://github.com/o/x.git",
                "github.com/o/x.github.io//dir?ref=v1",
            ),
            (
                "https://host/o/my_git/dir/x?ref=v1",
                "https://host/o/my_git/dir",
                "https://host/o/my_git.git//dir/x?ref=v1",
            ),
        ] {
            let finding = one(Scene::of(&format!("resources:\n- {text}\n")));
            let shown = redact::url(text);
            assert_eq!(
                finding.message,
                format!("kustomize takes `{repository}` in `{shown}` for the repository, and the rest for a directory")
            );
            assert_eq!(finding.help, [format!("mark the end of the repository: `{better}`")]);
            // The suggestion is parsed as intended.
            let spec = RepoSpec::parse(better).unwrap();
            assert!(!spec.repo_path.ends_with("/.git"), "{spec:?}");
            let again = Scene::of(&format!("resources:\n- {better}\n"));
            assert_eq!(again.find(Rule::UnsafeReference), []);
        }
    }

    #[test]
    fn an_unambiguous_path_is_not_reported() {
        for text in [
            "./app@v1/base/x",
            "./github.com/o/r/dir",
            "./github.com/o/r/x.yaml",
            "github.com/o/other/dir?ref=v1",
            "git@github.com:o/r?ref=v1",
            "git@github.com/o/r?ref=v1",
            "git::git@github.com:o/r?ref=v1",
            "git::git@gitlab.com/o/r?ref=v1",
            "https://github.com/o/r.git/dir?ref=v1",
            "https://github.com/o/r.git//dir?ref=v1",
            "https://github.com/o/r//.github/dir?ref=v1",
            "https://dev.azure.com/o/p/_git/r/dir?ref=v1",
            "https://raw.githubusercontent.com/o/r/v1/.github/x.yaml",
        ] {
            assert_eq!(scene("resources", text).find(Rule::UnsafeReference), [], "{text}");
        }
        let file = "patches:\n- path: https://example.com/o/.github/x\n";
        assert_eq!(Scene::of(file).find(Rule::UnsafeReference), []);
    }
}

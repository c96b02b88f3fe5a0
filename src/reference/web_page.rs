//! Addresses copied from the web page of a repository, which kustomize reads as something else.

use super::escaped;
use super::url_parts::UrlParts;

/// A phrase for a hint with the reference to write instead of the address of a web page of GitHub or GitLab; `None` for
/// any other text.
///
/// It is a guess by the address alone: a ref with a slash in it is cut at the slash. Nothing of the
/// userinfo, the fragment or the query is repeated.
pub(crate) fn web_page(text: &str) -> Option<String> {
    // GitHub has two segments before the kind of page; GitLab any number, then `-`. A `//` or `.git` in an address of
    // GitHub shows that a repository was meant.
    let page = UrlParts::of(text)?;
    let (repository, kind, reference, path) = match (page.host.as_str(), page.segments.as_slice()) {
        ("github.com" | "www.github.com", [owner, repo, kind, reference, path @ ..]) if !page.is_marked => {
            (format!("https://github.com/{owner}/{repo}"), *kind, *reference, path)
        }
        (host, segments) => {
            let dash = segments.iter().position(|segment| *segment == "-")?;
            let (repository, rest) = segments.split_at_checked(dash)?;
            let [_, kind, reference, path @ ..] = rest else {
                return None;
            };
            (format!("https://{host}/{}", repository.join("/")), *kind, *reference, path)
        }
    };
    // The page of a kustomization means its directory; of any other file, its raw bytes.
    let is_github = repository.starts_with("https://github.com/");
    let path = match (kind, path) {
        ("blob" | "blame" | "edit", [directory @ .., last]) if is_kustomization(last) => directory,
        ("blob" | "blame" | "edit", [_, ..]) if is_github => {
            let raw = repository.replacen("github.com", "raw.githubusercontent.com", 1);
            return Some(format!("this is a web page; write {raw}/{reference}/{}", path.join("/")));
        }
        ("blob" | "blame" | "edit", [_, ..]) => {
            return Some(format!("this is a web page; write {repository}/-/raw/{reference}/{}", path.join("/")));
        }
        ("tree", path) => path,
        _ => return None,
    };
    Some(directory_hint(&repository, path, reference))
}

/// The hint if a reference to GitLab may mean a repository in a subgroup: kustomize takes the first two segments for
/// the repository. Most repositories are not in one, so callers give it only for a reference that failed, or with an
/// "if".
pub(crate) fn subgroup_hint(text: &str) -> Option<String> {
    let UrlParts { host, segments, is_marked, .. } = UrlParts::of(text)?;
    let [group, repo, rest @ .., last] = segments.as_slice() else {
        return None;
    };
    // The guess is wrong for a marked repository, a page of the web interface, a request to the API, and a file.
    let is_page = rest.contains(&"-") || *last == "-";
    let is_gitlab = host.split('.').any(|label| label == "gitlab");
    (is_gitlab && !is_marked && !is_page && *group != "api" && !is_yaml(last)).then(|| {
        format!("write `//` after the name of the repository: kustomize takes https://{host}/{group}/{repo} for it")
    })
}

/// The hint for a reference that failed: it may be the address of a web page, or that of a repository in a subgroup.
pub(crate) fn web_page_hint(text: &str) -> Option<String> {
    // The address of a page of Bitbucket or Gitea may also be that of a directory, so it is only a second guess.
    web_page(text).or_else(|| source_page(text)).or_else(|| subgroup_hint(text))
}

/// The hint with the reference to write instead of the address of a web page of Bitbucket (`/src/REF/`) or Gitea
/// (`/src/branch/REF/`, `tag` and `commit` alike); `None` for any other address.
fn source_page(text: &str) -> Option<String> {
    // Gitea runs on any host, so only the form of its address tells it. A `//` or `.git` in the address shows that a
    // repository was meant.
    let UrlParts { host, segments, is_marked: false, .. } = UrlParts::of(text)? else { return None };
    let (repository, kind, reference, path) = match segments.as_slice() {
        [owner, repo, "src", kind @ ("branch" | "tag" | "commit"), reference, path @ ..] if host != "bitbucket.org" => {
            (format!("https://{host}/{owner}/{repo}"), format!("{kind}/"), *reference, path)
        }
        [owner, repo, "src", reference, path @ ..] if host == "bitbucket.org" => {
            (format!("https://{host}/{owner}/{repo}"), String::new(), *reference, path)
        }
        _ => return None,
    };
    let path = match path {
        [directory @ .., last] if is_kustomization(last) => directory,
        [.., last] if is_yaml(last) => {
            return Some(format!("this is a web page; write {repository}/raw/{kind}{reference}/{}", path.join("/")));
        }
        path => path,
    };
    Some(directory_hint(&repository, path, reference))
}

/// A phrase with the reference to write for a directory of a repository.
fn directory_hint(repository: &str, path: &[&str], reference: &str) -> String {
    let separator = if path.is_empty() { "" } else { "//" };
    format!("this is a web page; write {repository}{separator}{}?ref={}", path.join("/"), escaped(reference))
}

fn is_kustomization(name: &str) -> bool {
    matches!(name, "kustomization.yaml" | "kustomization.yml" | "Kustomization")
}

fn is_yaml(name: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::RepoSpec;

    #[test]
    fn pages() {
        for (text, instead) in [
            ("https://github.com/o/r/blob/main/a/x.yaml", "https://raw.githubusercontent.com/o/r/main/a/x.yaml"),
            (
                "https://u:hunter2@www.GitHub.com/o/r/blob/main/x.yaml?raw=true#L1",
                "https://raw.githubusercontent.com/o/r/main/x.yaml",
            ),
            ("github.com/o/r/blob/v1/a/kustomization.yaml", "https://github.com/o/r//a?ref=v1"),
            ("https://github.com/o/r/tree/main/a/b/", "https://github.com/o/r//a/b?ref=main"),
            ("https://github.com/o/r/tree/main", "https://github.com/o/r?ref=main"),
            (
                "https://gitlab.com/g/sub/r/-/blob/main/a/x.yaml?ref_type=heads",
                "https://gitlab.com/g/sub/r/-/raw/main/a/x.yaml",
            ),
            ("https://git.example.com:8443/g/r/-/tree/v1/a", "https://git.example.com:8443/g/r//a?ref=v1"),
            ("https://gitlab.com/g/r/-/blob/v1/a/kustomization.yml", "https://gitlab.com/g/r//a?ref=v1"),
            ("https://bitbucket.org/o/r/src/v1/a/b", "https://bitbucket.org/o/r//a/b?ref=v1"),
            ("https://bitbucket.org/o/r/src/v1/", "https://bitbucket.org/o/r?ref=v1"),
            ("https://me@bitbucket.org/o/r/src/v1/a/x.yaml?at=v1", "https://bitbucket.org/o/r/raw/v1/a/x.yaml"),
            ("https://codeberg.org/o/r/src/tag/v1+k3s1/a", "https://codeberg.org/o/r//a?ref=v1%2Bk3s1"),
            ("https://git.example/o/r/src/branch/main/a/x.yml", "https://git.example/o/r/raw/branch/main/a/x.yml"),
        ] {
            let hint = web_page_hint(text).expect(text);
            assert_eq!(hint, format!("this is a web page; write {instead}"));
        }
    }

    #[test]
    fn a_root_that_is_suggested_is_read_as_meant() {
        for (text, repo_path, directory, reference) in [
            ("https://github.com/o/r/tree/main/a", "o/r", "a", "main"),
            ("https://gitlab.com/g/s/r/-/tree/v1/a", "g/s/r", "a", "v1"),
        ] {
            let hint = web_page_hint(text).expect(text);
            let spec = RepoSpec::parse(hint.rsplit(' ').next().unwrap()).unwrap();
            assert_eq!(spec.repo_path, repo_path);
            assert_eq!(spec.directory(), directory);
            assert_eq!(spec.reference.as_deref(), Some(reference));
        }
    }

    #[test]
    fn a_subgroup_without_a_mark() {
        let hint = web_page_hint("https://t:hunter2@gitlab.com/g/sub/repo/dir?ref=v1").unwrap();
        assert!(hint.contains("https://gitlab.com/g/sub for it"));
        // Not a page, and most often correct.
        assert_eq!(web_page("https://gitlab.com/g/repo/dir?ref=v1"), None);
        assert_eq!(subgroup_hint("https://gitlab.com/g/r/-/tree/v1/a"), None);
        let hint = web_page_hint("https://gitlab.example.com/g/sub/repo").unwrap();
        assert!(hint.contains("https://gitlab.example.com/g/sub for it"));
    }

    #[test]
    fn not_a_page() {
        for text in [
            "",
            "base",
            "https://github.com",
            "https://github.com/o/r",
            "https://github.com/o/r//tree/main/x",
            "https://github.com/o/r.git/tree/main/x",
            "https://github.com/o/r/releases/download/v1/x.yaml",
            "https://github.com/o/r/raw/main/x.yaml",
            "https://raw.githubusercontent.com/o/r/main/x.yaml",
            "https://gitlab.com/g/r",
            "https://gitlab.com/g/sub/r//dir",
            "https://gitlab.com/g/sub/r.git",
            "https://gitlab.com/g/r/-/raw/main/x.yaml",
            "https://gitlab.com/api/v4/projects/1/repository/files/x/raw",
            "https://bitbucket.org/ws/r",
            "https://bitbucket.org/ws/r//src/v1/a",
            "https://git.example/o/r/src/main/a",
            "https://dev.azure.com/o/p/_git/r//a?version=v1",
            "https://dev.azure.com/o/p/_git/r?version=v1",
            "https://dev.azure.com/o/p/_git",
            "git@github.com:o/r/tree/main/x",
            "https://github.com/o/r/blob/main/x\u{1b}.yaml",
        ] {
            assert_eq!(web_page_hint(text), None, "{text}");
        }
    }
}

//! Addresses copied from the web page of a repository, which kustomize reads as something else.

use percent_encoding::percent_decode_str;

use super::go_url::strip_prefix_ignore_case;

/// Returns what to do about the address of a web page of GitHub, GitLab, Bitbucket or Azure DevOps, or of an archive, as
/// a phrase for a hint that names what to write instead.
///
/// It is a guess by the address alone: a ref with a slash in it is cut at the slash. Nothing of the
/// userinfo, the fragment or an unknown query key is repeated.
pub(crate) fn web_page(text: &str) -> Option<String> {
    if text.chars().any(char::is_control) {
        return None;
    }
    let page = Page::parse(text)?;
    let hint = match page.host.as_str() {
        "github.com" | "www.github.com" => page.github(),
        "bitbucket.org" => page.bitbucket(),
        _ => page.azure(),
    };
    hint.or_else(|| page.gitlab())
}

/// Returns what to do if a reference to GitLab fails because its repository lies in a subgroup. Most do not.
pub(crate) fn subgroup_hint(text: &str) -> Option<String> {
    if text.chars().any(char::is_control) {
        return None;
    }
    Page::parse(text)?.subgroup()
}

/// Returns what was probably meant by a reference that failed: [`web_page`], else [`subgroup_hint`].
pub(crate) fn web_page_hint(text: &str) -> Option<String> {
    web_page(text).or_else(|| subgroup_hint(text))
}

/// The address of a page, in parts.
struct Page<'a> {
    /// In lower case, with the port.
    host: String,
    /// The non-empty segments of the path.
    segments: Vec<&'a str>,
    /// Whether the path itself marks where the repository ends.
    marked: bool,
    /// How many segments stand before the first `//`.
    before: usize,
    query: &'a str,
}

impl<'a> Page<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = strip_prefix_ignore_case(text, "git::").unwrap_or(text);
        let text = text.split_once('#').map_or(text, |(text, _)| text);
        let (location, query) = text.split_once('?').unwrap_or((text, ""));
        let rest = strip_prefix_ignore_case(location, "https://")
            .or_else(|| strip_prefix_ignore_case(location, "http://"))
            .or_else(|| strip_prefix_ignore_case(location, "github.com/").map(|_| location))?;
        let (authority, path) = rest.split_once('/')?;
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
        let before = path.split("//").next().unwrap_or_default();
        Some(Page {
            host: host.to_ascii_lowercase(),
            before: before.split('/').filter(|s| !s.is_empty()).count(),
            marked: path.contains("//") || segments.iter().any(|s| s.ends_with(".git")),
            segments,
            query,
        })
    }

    fn github(&self) -> Option<String> {
        let [owner, repo, kind, reference, path @ ..] = self.segments.as_slice() else {
            return None;
        };
        // Behind `//` it is a directory of that name.
        if *kind == "archive" && self.before > 2 {
            return archive(owner, repo, self.segments.get(3..).unwrap_or_default());
        }
        if self.marked {
            return None;
        }
        match *kind {
            "blob" | "blame" | "edit" => match path {
                [] => None,
                [directory @ .., last] if is_kustomization(last) => {
                    Some(root_hint(&format!("https://github.com/{owner}/{repo}"), directory, reference))
                }
                _ => Some(file_hint(&format!(
                    "https://raw.githubusercontent.com/{owner}/{repo}/{reference}/{}",
                    path.join("/")
                ))),
            },
            "tree" => Some(root_hint(&format!("https://github.com/{owner}/{repo}"), path, reference)),
            _ => None,
        }
    }

    fn bitbucket(&self) -> Option<String> {
        let [owner, repo, "src", reference, path @ ..] = self.segments.as_slice() else {
            return None;
        };
        if self.marked {
            return None;
        }
        let repository = format!("https://bitbucket.org/{owner}/{repo}");
        Some(match path {
            [.., last] if is_yaml(last) && !is_kustomization(last) => {
                file_hint(&format!("{repository}/raw/{reference}/{}", path.join("/")))
            }
            [directory @ .., last] if is_kustomization(last) => root_hint(&repository, directory, reference),
            _ => root_hint(&repository, path, reference),
        })
    }

    /// `…/_git/REPO?path=/DIR&version=GBmain`, where GB is a branch, GT a tag, GC a commit.
    fn azure(&self) -> Option<String> {
        let git = self.segments.iter().position(|s| *s == "_git")?;
        let (repository, rest) = self.segments.split_at_checked(git + 2)?;
        let path = self.query_value("path");
        let version = self.query_value("version");
        let reference = version.as_deref().and_then(|version| {
            let kinds = ["GB", "GT", "GC"];
            kinds.iter().find_map(|kind| version.strip_prefix(kind))
        });
        if !rest.is_empty() || (path.is_none() && reference.is_none()) {
            return None;
        }
        let path = path.unwrap_or_default();
        let mut path: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
        path.pop_if(|last| is_kustomization(last));
        Some(root_hint(
            &format!("https://{}/{}", self.host, repository.join("/")),
            &path,
            reference.or(version.as_deref()).unwrap_or("REF"),
        ))
    }

    fn gitlab(&self) -> Option<String> {
        let dash = self.segments.iter().position(|s| *s == "-")?;
        let (repository, rest) = self.segments.split_at_checked(dash)?;
        let [_, kind, reference, path @ ..] = rest else {
            return None;
        };
        let repository = format!("https://{}/{}", self.host, repository.join("/"));
        match (*kind, path) {
            ("blob" | "blame" | "edit", [directory @ .., last]) if is_kustomization(last) => {
                Some(root_hint(&repository, directory, reference))
            }
            ("blob" | "blame" | "edit", [_, ..]) => {
                Some(file_hint(&format!("{repository}/-/raw/{reference}/{}", path.join("/"))))
            }
            ("tree", _) => Some(root_hint(&repository, path, reference)),
            _ => None,
        }
    }

    fn subgroup(&self) -> Option<String> {
        let gitlab = self.host.split('.').any(|label| label == "gitlab");
        match self.segments.as_slice() {
            [group, repo, rest @ .., last]
                if gitlab
                    && !self.marked
                    && *group != "api"
                    && !is_yaml(last)
                    && !rest.contains(&"-")
                    && *last != "-" =>
            {
                Some(format!(
                    "write `//` between the repository and the directory: without it kustomize takes \
                     https://{}/{group}/{repo} for the repository, and a repository in a subgroup \
                     has more segments",
                    self.host
                ))
            }
            _ => None,
        }
    }

    fn query_value(&self, key: &str) -> Option<String> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == key)?;
        let value = percent_decode_str(value).decode_utf8().ok()?;
        let shown = !value.is_empty() && !value.chars().any(char::is_control);
        shown.then(|| value.into_owned())
    }
}

/// Returns what to write for a directory of an archive of GitHub, which kustomize could read before version 4: the names
/// that lead to the archive, one directory that holds all of it, and the way in there.
fn archive(owner: &str, repo: &str, names: &[&str]) -> Option<String> {
    let ends = [".zip", ".tar.gz", ".tgz"];
    let name_of = |name: &&str| ends.iter().find_map(|end| name.strip_suffix(end).map(str::to_owned));
    let at = names.iter().position(|name| name_of(name).is_some())?;
    let (before, rest) = names.split_at_checked(at)?;
    let (file, inside) = rest.split_first()?;
    let reference: Vec<String> = match before {
        ["refs", "tags" | "heads", rest @ ..] => rest,
        all => all,
    }
    .iter()
    .map(|name| (*name).to_owned())
    .chain(name_of(file))
    .collect();
    let root = root_url(
        &format!("https://github.com/{owner}/{repo}"),
        inside.get(1..).unwrap_or_default(),
        &reference.join("/"),
    );
    Some(format!("kustomize reads no archives; write {root}"))
}

fn file_hint(url: &str) -> String {
    format!("this is a web page; write {url}")
}

fn root_hint(repository: &str, path: &[&str], reference: &str) -> String {
    let root = root_url(repository, path, reference);
    format!("this is a web page; write {root}")
}

fn root_url(repository: &str, path: &[&str], reference: &str) -> String {
    let separator = if path.is_empty() { "" } else { "//" };
    let path = path.join("/");
    format!("{repository}{separator}{path}?ref={reference}")
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
            ("https://bitbucket.org/ws/r/src/main/a/", "https://bitbucket.org/ws/r//a?ref=main"),
            ("https://bitbucket.org/ws/r/src/main/a/x.yaml", "https://bitbucket.org/ws/r/raw/main/a/x.yaml"),
            ("https://bitbucket.org/ws/r/src/main", "https://bitbucket.org/ws/r?ref=main"),
            (
                "https://dev.azure.com/o/p/_git/r?path=/a/b&version=GBmain",
                "https://dev.azure.com/o/p/_git/r//a/b?ref=main",
            ),
            (
                "https://u@dev.azure.com/o/p/_git/r?version=GTv1&path=%2Fa%2Fkustomization.yaml",
                "https://dev.azure.com/o/p/_git/r//a?ref=v1",
            ),
            (
                "https://dev.azure.com/o/p/_git/r?version=GBmain&token=hunter2",
                "https://dev.azure.com/o/p/_git/r?ref=main",
            ),
            ("https://dev.azure.com/o/p/_git/r?path=/a", "https://dev.azure.com/o/p/_git/r//a?ref=REF"),
        ] {
            let hint = web_page_hint(text).expect(text);
            assert_eq!(hint, format!("this is a web page; write {instead}"));
        }
    }

    #[test]
    fn archives() {
        for (text, instead) in [
            (
                "https://github.com/o/r/archive/v0.5.1.zip//r-0.5.1/config/crd",
                "https://github.com/o/r//config/crd?ref=v0.5.1",
            ),
            ("github.com/o/r/archive/refs/tags/v1.tar.gz//r-1/a?x=y", "https://github.com/o/r//a?ref=v1"),
            ("https://github.com/o/r/archive/refs/heads/feature/x.zip", "https://github.com/o/r?ref=feature/x"),
        ] {
            let hint = web_page(text).expect(text);
            assert_eq!(hint, format!("kustomize reads no archives; write {instead}"));
        }
        assert_eq!(web_page("https://github.com/o/r/archive/v1/x.yaml"), None);
        let directory = "https://github.com/o/r//archive/v1.zip/base?ref=v1";
        assert_eq!(web_page(directory), None);
    }

    #[test]
    fn a_root_that_is_suggested_is_read_as_meant() {
        for (text, repo_path, directory, reference) in [
            ("https://github.com/o/r/tree/main/a", "o/r", "a", "main"),
            ("https://gitlab.com/g/s/r/-/tree/v1/a", "g/s/r", "a", "v1"),
            ("https://dev.azure.com/o/p/_git/r?path=/a/b&version=GC1", "o/p/_git/r", "a/b", "1"),
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
        assert!(hint.contains("https://gitlab.com/g/sub for the repository"));
        // Not a page, and most often correct.
        assert_eq!(web_page("https://gitlab.com/g/repo/dir?ref=v1"), None);
        assert_eq!(subgroup_hint("https://gitlab.com/g/r/-/tree/v1/a"), None);
        let hint = web_page_hint("https://gitlab.example.com/g/sub/repo").unwrap();
        assert!(hint.contains("https://gitlab.example.com/g/sub for the repository"));
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

//! `unsafe-reference`: a reference that must not be passed to any program: git could read it as an option or as another
//! path, kustomize does not know its scheme, or the URL contains a login.
//!
//! A login is reported even if the reference is locked: everybody who can read the repository can read it.

mod ambiguous_path;

use super::Context;
use crate::graph::{HINT_REWRITE, Resolution};
use crate::kustomization::NoteKind;
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};
use crate::message::redact;
use crate::reference;

pub(super) use ambiguous_path::Ambiguity;

/// Finds references and chart repositories with a login, and those that git, helm or kustomize would take for something
/// else.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, edge) in context.graph.edges() {
        // A local reference is a path, and the name of a file is not a secret.
        if !matches!(edge.resolution, Resolution::Remote | Resolution::Unchanged | Resolution::Broken) {
            continue;
        }
        let text = edge.reference.text.as_str();
        let is_remote = text.contains("://") || edge.remote.is_some();
        if is_remote && redact::has_secret(text) {
            let shown = redact::url(text);
            findings.push(match clone_user(text) {
                Some(user) => {
                    let message = format!("`{shown}` contains a user name: git asks in that name, whoever builds");
                    let failure = Failure::new(message).hint(format!("remove `{user}@`"));
                    context.at_reference(Rule::UnsafeReference, edge, failure).warning()
                }
                None => context.at_reference(Rule::UnsafeReference, edge, secret(&shown)),
            });
        }
    }
    // The repository of a chart becomes an argument of helm, so the same rules hold as for a git URL.
    for noted in context.graph.notes.iter() {
        let NoteKind::Chart { repo: url, .. } = &noted.note.kind else { continue };
        if url.is_empty() {
            continue;
        }
        let shown = redact::url(url);
        let refused = reference::refuse_unsafe(url, None).err();
        let refused = refused.map(|reason| Failure::new(format!("`{shown}` is refused: {reason}")).hint(HINT_REWRITE));
        for failure in refused.into_iter().chain(redact::has_secret(url).then(|| secret(&shown))) {
            let finding = context.at_note(Rule::UnsafeReference, noted, failure);
            findings.push(Finding { reference: shown.clone(), ..finding });
        }
    }
    findings.extend(ambiguous_path::find(context));
    findings
}

/// The user name in a clone URL as Azure DevOps and Bitbucket show it to everybody. It is not a secret, so the URL has
/// only a warning. `None` if it may be a token.
fn clone_user(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let (authority, path) = rest.split_once('/')?;
    let (user, host) = authority.split_once('@')?;
    let is_plain = user.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    let is_of_forge = match host.to_ascii_lowercase().as_str() {
        "dev.azure.com" => path.split('/').next().is_some_and(|owner| owner.eq_ignore_ascii_case(user)),
        "bitbucket.org" => true,
        _ => false,
    };
    let has_no_secret = || !redact::has_secret(user) && !redact::has_secret(&format!("{scheme}://{host}/{path}"));
    (is_plain && is_of_forge && has_no_secret()).then_some(user)
}

/// The failure of a URL with a secret; `shown` is the URL without it.
fn secret(shown: &str) -> Failure {
    Failure::new(format!("`{shown}` contains a login or a token"))
        .hint("remove it, and revoke the secret: it stays in the history")
        .hint("store it in a credential helper of git instead")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, shown, under_caret};
    use super::*;

    fn find(text: &str) -> Vec<Finding> {
        Scene::of(text).find(Rule::UnsafeReference)
    }

    #[test]
    fn references_that_git_could_misread() {
        for (text, message) in [
            (
                "resources: ['https://github.com/o/r?ref=--upload-pack=x']",
                "`https://github.com/o/r?ref=--upload-pack=x` is refused: its ref begins with `-`",
            ),
            (
                "components: ['ssh://-oProxyCommand=x/o/r']",
                "`ssh://-oProxyCommand=x/o/r` is refused: its host begins with `-`",
            ),
            (
                "generators: ['https://github.com/o/r//-x?ref=v1']",
                "`https://github.com/o/r//-x?ref=v1` is refused: its directory begins with `-`",
            ),
            (
                "patches: [{path: 'https://-host/x.yaml'}]",
                "`https://-host/x.yaml` is refused: its host begins with `-`",
            ),
            ("resources: [\"https://github.com/o/r\\e[31m?ref=v1\"]", "the reference contains control characters"),
            (
                "resources: ['https://github.com/o/r?ref=a..b']",
                "`https://github.com/o/r?ref=a..b` is refused: git rejects its ref: it contains `..` or ends with `.`",
            ),
        ] {
            let findings = find(text);
            assert_eq!(findings.len(), 1, "{text}: {findings:?}");
            assert_eq!(findings[0].message, message);
            assert!(findings[0].help[0].starts_with("rewrite it"));
            assert!(under_caret(&findings[0]).len() > 8);
            assert!(!shown(&findings).contains('\u{1b}'));
            // Each problem is reported once.
            assert_eq!(Scene::of(text).check().findings.len(), 1, "{text}");
        }
    }

    #[test]
    fn what_was_meant_is_said() {
        for (text, help) in [
            (
                "https://github.com/o/r//d?ref=v1+k3s1&submodules=false",
                Some("a `+` in a query is a space: write https://github.com/o/r//d?ref=v1%2Bk3s1&submodules=false"),
            ),
            ("https://gitlab.com/g/p/-/tree/v1/d", Some("this is a web page; write https://gitlab.com/g/p//d?ref=v1")),
            // kustomize asks for the file first.
            ("https://gitlab.com/g/p/-/raw/v1/a.yaml", None),
            ("https://gitlab.com/-/snippets/1/raw/main/a.yaml", None),
        ] {
            let findings = find(&format!("resources: ['{text}']"));
            let said = findings.iter().flat_map(|one| &one.help).map(String::as_str);
            assert_eq!(said.collect::<Vec<_>>(), Vec::from_iter(help), "{text}");
        }
    }

    #[test]
    fn values_that_helm_could_take_for_an_option() {
        let find = |text: &str| Scene::of(text).find(Rule::InvalidKustomization);
        let list = |field: &str| format!("helmCharts: [{{name: web, {field}}}]\n");
        let generator = |field: &str| {
            format!(
                "generators:\n- |-\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n  metadata: {{name: a}}\n  name: web\n  {field}\n"
            )
        };
        for field in [
            "releaseName: -x",
            "version: --post-renderer=x",
            "namespace: '-'",
            "apiVersions: [v1, -x]",
            "kubeVersion: -x",
            "nameTemplate: -x",
            "RepO: -x",
        ] {
            for text in [list(field), generator(field)] {
                let text = if text.starts_with("generators") { text.replace("RepO", "repo") } else { text };
                let found = find(&text);
                assert_eq!(found.len(), 1, "{text}: {found:?}");
                assert!(found[0].message.contains("helm would take `-"), "{text}");
                assert!(found[0].fails());
                assert!(under_caret(&found[0]).contains('-'), "{text}");
            }
        }
        for text in [
            "namespace: -x\n",
            "helmCharts: [{name: -x}]\n",
            "helmChartInflationGenerator: [{chartName: -x}]\n",
            "helmChartInflationGenerator: [{chartName: a, chartVersion: -x}]\n",
            "helmChartInflationGenerator: [{chartName: a, chartRepoUrl: -x}]\n",
            "helmChartInflationGenerator: [{chartName: a, releaseName: -x}]\n",
        ] {
            assert_eq!(find(text).len(), 1, "{text}");
        }
        assert_eq!(find(&list("releaseName: a-b, valuesInline: {a: -x}")).len(), 0);
        let secret = find("helmCharts: [{name: a, repo: '-https://me:hunter2@h.example'}]\n");
        assert!(!shown(&secret).contains("hunter2"), "{secret:?}");
    }

    /// A URL that is judged by one host and fetched from another is reported, whatever is allowed.
    #[test]
    fn references_that_name_two_hosts() {
        let allow = "allow: [{url: good.example, refs: any, reason: ours}]\n";
        for text in [
            "resources: ['https://evil.example=/@good.example/x.yaml']",
            "patches: [{path: 'https://evil.example=/@good.example/x.yaml'}]",
            "components: ['https://evil.example\\x:@good.example/o/r.git?ref=v1']",
            "helmCharts: [{name: a, version: 1.2.3, repo: 'https://evil.example=/@good.example'}]",
            "helmCharts: [{name: a, version: 1.2.3, repo: 'oci://evil.example=/@good.example/x'}]",
        ] {
            let scene = Scene::of(text).config(allow);
            let checked = scene.check();
            let malformed = checked.findings.iter().any(|finding| {
                finding.fails() && finding.rule == Rule::UnsafeReference && finding.message.contains(" is malformed")
            });
            assert!(malformed, "{text}: {:?}", checked.findings);
            assert_eq!(checked.status(), 1);
        }
    }

    #[test]
    fn references_that_kustomize_cannot_read() {
        for (text, message) in [
            (
                "resources: ['oci://ghcr.io/o/r:v1']",
                "`oci://ghcr.io/o/r:v1`: kustomize does not read OCI yet (kubernetes-sigs/kustomize#6247)",
            ),
            ("components: ['git://host/o/r']", "`git://host/o/r`: kustomize cannot read `git://`"),
            (
                "patches: [{path: 's3::https://s3.amazonaws.com/b/x'}]",
                "`s3::https://s3.amazonaws.com/b/x`: kustomize cannot read `s3::`",
            ),
            (
                "patches: [{path: 'git@github.com:o/r'}]",
                "`git@github.com:o/r` names a git repository, but this field takes a file",
            ),
            ("resources: ['ssh://host']", "`ssh://host` is not the URL of a git repository: it has no repository"),
        ] {
            let findings = Scene::of(text).check().findings;
            assert_eq!(findings.len(), 1, "{text}: {findings:?}");
            assert_eq!(findings[0].rule, Rule::UnsafeReference);
            assert_eq!(findings[0].message, message);
            assert_eq!(findings[0].help.len(), 1);
        }
    }

    #[test]
    fn passwords_and_tokens() {
        for text in [
            "resources: ['https://me:hunter2@github.com/o/r?ref=v1']",
            "resources: ['https://hunter2@h/o/r?ref=v1']",
            "resources: ['https://github.com/o/r?ref=v1&access_token=hunter2']",
            "patches: [{path: 'https://h/x.yaml?sig=hunter2'}]",
            "components: ['ssh://git:hunter2@h/o/r?ref=v1']",
            "generators: ['https://me:hunter2@h/o/r//x?ref=v1']",
            "resources: ['oci://me:hunter2@h/x']",
            "resources: ['https://me:hunter2@github.com/o/r?ref=-x']",
            "configMapGenerator: [{name: a, files: ['k=https://me:hunter2@h/x']}]",
            "helmCharts: [{name: a, repo: 'https://me:hunter2@h'}]",
        ] {
            let findings = find(text);
            let told = "contains a login or a token";
            let told: Vec<_> = findings.iter().filter(|finding| finding.message.ends_with(told)).collect();
            assert_eq!(told.len(), 1, "{text}: {findings:?}");
            assert!(!shown(&findings).contains("hunter2"), "{findings:?}");
        }
    }

    #[test]
    fn the_user_name_of_a_clone_button_is_no_secret() {
        for (url, user) in [
            ("https://Org@dev.azure.com/org/p/_git/r//web?ref=v1", Some("Org")),
            ("https://me-2@bitbucket.org/team/r.git//web?ref=v1", Some("me-2")),
            ("https://me@bitbucket.org/team/r.git?ref=v1&token=hunter2", None),
            ("https://org:hunter2@dev.azure.com/org/p/_git/r", None),
            ("https://hunter2@dev.azure.com/org/p/_git/r", None),
            ("https://ATBBhunter2hunter2hunter2@bitbucket.org/team/r.git", None),
            ("https://hunter2@h.example/org/r", None),
        ] {
            let findings = find(&format!("resources: ['{url}']"));
            let [finding] = findings.as_slice() else { panic!("{url}: {findings:?}") };
            assert_eq!(finding.fails(), user.is_none(), "{url}");
            let help = user.map_or("remove it, and revoke the secret: it stays in the history".to_owned(), |user| {
                format!("remove `{user}@`")
            });
            assert_eq!(finding.help[0], help);
            assert!(!shown(&findings).contains("hunter2"), "{findings:?}");
        }
    }

    #[test]
    fn a_password_is_reported_in_a_locked_reference_too() {
        let scene = Scene::of("resources: ['https://me:hunter2@github.com/o/r?ref=v1']\n")
            .git("https://github.com/o/r", Some("v1"));
        let findings = scene.check().findings;
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].rule, Rule::UnsafeReference);
    }

    #[test]
    fn harmless_references_are_not_reported() {
        for text in [
            "resources: ['https://github.com/o/r?ref=v1', 'git@github.com:o/r', -x, 'ssh://git@h/o/r']",
            "resources: ['https://github.com/o/r?ref=0123456789abcdef0123456789abcdef01234567']",
            "patches: [{path: -x.yaml}, {path: 'a@b:c.yaml'}]",
            "configMapGenerator: [{name: a, files: [ghp_0123456789abcdefghij.txt]}]",
            "configMapGenerator: [{name: a, literals: ['x=https://me:hunter2@h/o']}]",
        ] {
            assert_eq!(find(text), [], "{text}");
        }
    }
}

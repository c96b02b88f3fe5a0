//! The variables that Argo CD fills into the fields of a source (argo-cd, `newEnv` in its
//! `reposerver/repository/repository.go`).

use super::super::ObjectRef;
use super::super::scan::Document;
use super::models::{Application, Source};

/// How the names of the variables begin that tell which commit is deployed.
const REVISION: &str = "ARGOCD_APP_REVISION";

/// The namespaces of Argo CD itself.
const OWN: [&str; 3] = ["", "argocd", "openshift-gitops"];

/// The facts of a source and its application that variables stand for.
pub(super) struct Environment<'a> {
    object: &'a ObjectRef,
    pub(super) application: Application,
    source: &'a Source,
}

impl Environment<'_> {
    pub(super) fn of<'a>(document: &'a Document, source: &'a Source) -> Environment<'a> {
        Environment { object: &document.object, application: document.spec(), source }
    }

    /// A text with its variables filled in, or why one is unknown.
    pub(super) fn fill_in(&self, text: &str) -> Result<String, String> {
        expand(text, &|name| self.variable(name))
    }

    /// The value of a variable, or why it is unknown.
    fn variable(&self, name: &str) -> Result<String, String> {
        let Environment { object, application, source } = self;
        let unknown = || format!("`{name}` is only known to Argo CD");
        let value = match name {
            "$" => Some("$"),
            "ARGOCD_APP_NAME" if OWN.contains(&&*object.namespace) => Some(&*object.name),
            // In another namespace, the name has the namespace before it.
            "ARGOCD_APP_NAME" => return Err(unknown()),
            "ARGOCD_APP_NAMESPACE" => Some(&*application.destination.namespace.0),
            "ARGOCD_APP_PROJECT_NAME" => Some(&*application.project.0),
            "ARGOCD_APP_SOURCE_REPO_URL" => source.repo_url.as_deref(),
            "ARGOCD_APP_SOURCE_PATH" => source.path.as_ref().map(|path| path.value.as_str()),
            "ARGOCD_APP_SOURCE_TARGET_REVISION" => source.target_revision.as_deref(),
            name if name.starts_with(REVISION) => return Err(unknown()),
            _ => None,
        };
        // A variable that Argo CD does not define is empty.
        let value = value.unwrap_or_default();
        // The value is itself in a template that is not filled in.
        if value.contains("{{") { Err(unknown()) } else { Ok(value.to_owned()) }
    }
}

/// A text with its variables filled in as Go's `os.Expand` does: `$NAME` and `${NAME}`.
fn expand(text: &str, value: &dyn Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        filled += before;
        let (name, length) = leading_name(after);
        match (name, length) {
            // A `$` without a name stays, but a broken `${` goes.
            ("", 0) => filled.push('$'),
            ("", _) => {}
            (name, _) => filled += &value(name)?,
        }
        rest = &after[length..];
    }
    Ok(filled + rest)
}

/// The name of the variable at the beginning of the text behind a `$`, and how many bytes belong to it, with braces.
/// The name is empty if there is none.
fn leading_name(text: &str) -> (&str, usize) {
    if let Some(inner) = text.strip_prefix('{') {
        return match inner.find('}') {
            Some(end) => (&inner[..end], end + 2),
            None => ("", 1),
        };
    }
    let end = match text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        // A special variable of a shell, such as `$1` or `$$`, has one character.
        _ if text.starts_with(|c: char| "*#$@!?-".contains(c) || c.is_ascii_digit()) => 1,
        end => end.unwrap_or(text.len()),
    };
    (&text[..end], end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_as_go_does() {
        let value = |name: &str| match name {
            "$" => Ok("$".to_owned()),
            "A" => Ok("x".to_owned()),
            "B" => Err("no".to_owned()),
            _ => Ok(String::new()),
        };
        for (text, expected) in [
            ("a", "a"),
            ("$A-${A}-${A}b", "x-x-xb"),
            ("a$b", "a"),
            ("$Ab", ""),
            ("$$A $", "$A $"),
            ("${} ${A", " A"),
            ("$1x é$-é", "x éé"),
            ("$(A)", "$(A)"),
        ] {
            assert_eq!(expand(text, &value).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(expand("$A ${B}", &value), Err("no".to_owned()));
    }
}

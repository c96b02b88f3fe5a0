//! The text of a reference that leads to another place.

use crate::kustomization::{Accepts, Reference};
use crate::reference::{self, RepoSpec};
use crate::tree::path;

/// Returns the path that a reference must name, or `None` if it leads there already.
pub(super) fn new_text(reference: &Reference, directory: &str, destination: &str) -> Option<String> {
    let text = reference.text.as_str();
    if !is_remote(reference)
        && !path::is_absolute(text)
        && path::resolve(directory, text).as_deref() == Some(destination)
    {
        return None;
    }
    Some(text_to(reference, directory, destination))
}

/// Returns the text of a reference that leads from one directory to another place of the same tree.
pub(super) fn text_to(reference: &Reference, directory: &str, destination: &str) -> String {
    let text = spelled(directory, destination);
    match reference.accepts {
        // Without a slash it would be looked for on the `PATH`.
        Accepts::Program if !text.contains('/') => format!("./{text}"),
        _ => text,
    }
}

/// Returns the text that leads from one directory to another place of the same tree.
fn spelled(directory: &str, destination: &str) -> String {
    let relative = path::relative(directory, destination);
    // Text that kustomize would take for a URL again needs a `./`, and so does what is something else in YAML: a patch
    // and a plugin are looked for there before they are taken for a path (`&a` is empty, `- a` a list).
    let looks_remote = RepoSpec::parse(&relative).is_ok() || reference::is_remote_file(&relative);
    let means_more = relative.starts_with(|first: char| "!\"#%&'*,-:<=>?@[]`{|}~".contains(first));
    if looks_remote || means_more { format!("./{relative}") } else { relative }
}

/// Returns whether kustomize reads the reference over the network, where no local file has its name.
pub(crate) fn is_remote(reference: &Reference) -> bool {
    let text = reference.text.as_str();
    reference::is_remote_file(text)
        || (!matches!(reference.accepts, Accepts::File | Accepts::Program) && RepoSpec::parse(text).is_ok())
}

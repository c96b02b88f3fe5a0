//! The text of a reference that leads to another path.

use crate::graph::Edge;
use crate::kustomization::{Accepts, Reference};
use crate::reference::{self, RepoSpec};
use crate::tree::path;

/// The path that a reference must name. `None` if it leads there already.
pub(super) fn new_text(edge: &Edge, directory: &str, destination: &str) -> Option<String> {
    let text = edge.reference.text.as_str();
    let is_there = edge.remote.is_none()
        && !path::is_absolute(text)
        && path::resolve(directory, text).as_deref() == Some(destination);
    (!is_there).then(|| text_to(&edge.reference, directory, destination))
}

/// The text of a reference in `directory` that leads to `destination` in the same tree.
pub(super) fn text_to(reference: &Reference, directory: &str, destination: &str) -> String {
    let text = spelled(directory, destination);
    match reference.accepts {
        // A name without a slash would be looked for on the `PATH`.
        Accepts::Program if !text.contains('/') => format!("./{text}"),
        _ => text,
    }
}

/// The relative path, with a `./` if its text would mean something else.
fn spelled(directory: &str, destination: &str) -> String {
    let relative = path::relative(directory, destination);
    // kustomize would take some relative paths for URLs. A patch or a plugin is parsed as YAML before it is taken for a
    // path (`&a` is empty, `- a` a list).
    let looks_remote = RepoSpec::parse(&relative).is_ok() || reference::is_remote_file(&relative);
    let means_more = relative.starts_with(|first: char| "!\"#%&'*,-:<=>?@[]`{|}~".contains(first));
    if looks_remote || means_more { format!("./{relative}") } else { relative }
}

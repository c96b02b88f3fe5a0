//! Argo CD refuses a repository that contains a link out of it, in any directory.

use crate::check::Context;
use crate::message::failure::{Failure, Result};
use crate::message::finding::{Finding, Rule};
use crate::message::redact::visible;
use crate::tree::{Entry, path};

/// Finds the links for which Argo CD refuses the whole repository. Without a target of Argo CD there are none.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let argo = context.deployed.local.iter().filter(|local| local.target.engine.refuses_links()).count();
    // The link may be anywhere in the repository, so a check of some paths does not look for it.
    if argo == 0 || !context.input.paths.is_empty() {
        return Vec::new();
    }
    let links = context.value_or_failure(out_of_bounds(context)).unwrap_or_default().into_iter();
    let findings = links.map(|(link, text)| {
        let message = format!(
            "the link leads out of the repository, to `{}`: Argo CD builds no application from this repository ({argo} here)",
            visible(&text)
        );
        let failure = Failure::new(message).hint(
            "replace the link with a copy of its target, or with a relative link that stays in the repository",
        );
        Finding::new(Rule::Engine, &link, failure)
    });
    findings.collect()
}

/// The links that are absolute or leave the repository, each with its text. Argo CD (`CheckOutOfBoundsSymlinks`) looks
/// only at the texts of links, whether they lead to something or not.
fn out_of_bounds(context: &Context<'_>) -> Result<Vec<(String, String)>> {
    let mut links = Vec::new();
    for link in context.tree.below("")? {
        if context.tree.entry(&link)? != Some(Entry::Link) {
            continue;
        }
        let text = String::from_utf8_lossy(&context.tree.read(&link)?).into_owned();
        if text.starts_with('/') || path::resolve(path::parent(&link), &text).is_none() {
            links.push((link, text));
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{Scene, argo, flux, source};

    #[test]
    fn a_link_out_of_the_repository_stops_argo_cd() {
        for (link, target, is_out) in [
            ("docs/a", "/etc/hosts", true),
            ("docs/a", "../../elsewhere", true),
            ("docs/a", "../../fleet/docs", true),
            ("docs/a", "../apps", false),
            ("a", "..", true),
            ("a", "gone/../b", false),
        ] {
            for (object, is_argo) in [(argo("path: apps"), true), (flux("apps"), false)] {
                let mut scene = Scene::default()
                    .file("clusters/source.yaml", &source(""))
                    .file("clusters/a.yaml", &object)
                    .file("apps/kustomization.yaml", "resources: [x.yaml]\n")
                    .file("apps/x.yaml", "");
                scene.tree.link(link, target);
                let found = scene.find(Rule::Engine);
                assert_eq!(found.len(), usize::from(is_out && is_argo), "{target} {found:?}");
                assert!(found.iter().all(|one| one.path == link && one.message.contains(target)), "{found:?}");
            }
        }
    }
}

//! `submodule-path`: a path in a submodule, whose files this repository does not hold.
//!
//! A warning: the build works where submodules are checked out, and the commit pins their versions.

use super::Context;
use super::rule::{Allow, Definition, Find};
use crate::config::PLACEHOLDER;
use crate::finding::{Finding, Rule, Severity};
use crate::walk::TroubleKind;

pub(super) const DEFINITION: Definition = Definition {
    id: "submodule-path",
    severity: Severity::Warning,
    is_off: false,
    summary: "a path in a submodule, whose files this repository does not hold",
    explanation: r"
A path lies in a submodule. This repository holds only the id of the submodule's commit, not the files: the build works
only where the submodule is checked out, and fetching it needs the network. Copy what is needed into this repository, or
name the other repository by its URL and lock it:

```yaml
resources:
- https://github.com/acme/bases//web?ref=v1.2.0    # instead of vendor/bases/web
```
",
    allow: Allow::Never,
    find: Find::Here(find),
};

fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for trouble in context.troubles {
        let TroubleKind::Submodule { path } = &trouble.kind else {
            continue;
        };
        let Some((_, edge)) = context.edge_of(trouble) else {
            continue;
        };
        let text = &edge.reference.text;
        findings.push(context.at_reference(
            Rule::SubmodulePath,
            edge,
            format!("`{text}` lies in the submodule `{path}`, whose files this repository does not hold"),
            vec![
                "copy the files into this repository, or name the submodule's repository by URL, with its commit".to_owned(),
                format!("where submodules are always checked out: # kustomize-localize: allow[{}] {PLACEHOLDER}", Rule::SubmodulePath),
            ],
        ));
    }
    findings
}

//! `untracked-path`: a path whose files the repository does not hold, on purpose: git ignores them, or they lie in a
//! submodule.
//!
//! A warning: the build works wherever they are.

use super::missing_path::{self, Absent};
use super::{ADD_ALLOW, Context};
use crate::graph::TroubleKind;
use crate::message::failure::stage;
use crate::message::finding::{Finding, Rule, Subject};
use crate::tree::absence::Absence;

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let ignored = missing_path::absent(context).into_iter().filter_map(|absent| {
        let Absent { edge, place, why: Absence::Ignored(rule, pattern), on_disk, .. } = absent else {
            return None;
        };
        let message = format!("git ignores `{place}`: by `{pattern}` in {rule}");
        let commit = format!("if it holds no secret, commit it: {}", stage([&place]));
        let help = on_disk.then_some(commit).into_iter();
        let help = help.chain([ADD_ALLOW.to_owned()]).collect();
        Some((edge, place, message, help))
    });
    let submodules = context.troubles.iter().filter_map(|trouble| {
        let TroubleKind::Submodule { path } = &trouble.kind else {
            return None;
        };
        let (_, edge) = context.edge_of(trouble)?;
        let message = format!(
            "`{}` lies in the submodule `{path}`, whose files this repository does not hold",
            edge.reference.text
        );
        let help = vec![
            "copy the files into this repository, or name the submodule's repository by URL, with its commit"
                .to_owned(),
            ADD_ALLOW.to_owned(),
        ];
        Some((edge, path.clone(), message, help))
    });
    ignored
        .chain(submodules)
        .map(|(edge, path, message, help)| Finding {
            subject: Subject::Path { path },
            ..context.at_reference(Rule::UntrackedPath, edge, message, help)
        })
        .collect()
}

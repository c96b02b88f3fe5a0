//! What localizing and `update` report besides: the result is what was asked for, but for this.

use super::rule::{Allow, Definition, Find};
use crate::message::finding::Severity;

const fn warning(id: &'static str, summary: &'static str, explanation: &'static str) -> Definition {
    Definition {
        id,
        severity: Severity::Warning,
        is_off: false,
        summary,
        explanation,
        allow: Allow::Never,
        find: Find::Elsewhere,
    }
}

macro_rules! warnings {
    ($($module:ident $id:literal $summary:literal $explanation:literal,)+) => {
        $(pub(super) mod $module {
            pub(in crate::check) const DEFINITION: super::Definition =
                super::warning($id, $summary, $explanation);
        })+
    };
}

warnings! {
    left_license "left-license" "a licence that cannot be brought along"
        "The licence of what is brought in is a link out of its repository, or larger than 4 MiB. Copy it by hand where it is \
         needed.",
    merged_back "merged-back" "a localized branch that was merged into its source"
        "The source has local paths now where it had URLs, so nothing tells update bots and people about new versions. The \
         message holds the command that takes that back.",
    not_built "not-built" "a result that no build verifies"
        "There is no kustomize, so original and result were not built and compared. Install it, or name it with \
         `--kustomize`; `--no-verify` says that this is meant. Shown with `--strict` alone, as the report says it anyway.",
    rewritten_branch "rewritten-branch" "a branch that does not contain the locked commit any more"
        "`update` found that somebody has rewritten the branch, or set it back. Look at what is there now before the lock is \
         committed.",
    rewritten_data "rewritten-data" "a rewritten file that is also read as data"
        "A file is rewritten for what it references, and read as it is by a generator, for instance: its data will differ. \
         Keep two files.",
    stripped_executable "stripped-executable" "a program from elsewhere that lost its execute bit"
        "A function would run it. Look at the program, and trust it as the message says, or put one of your own in its place.",
}

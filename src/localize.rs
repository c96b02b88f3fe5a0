//! Localizing: three pure steps from a graph to the files of the result. Every node is placed
//! (layout), the references are edited (rewrite), the files are collected (result). Nothing is
//! written here.

mod chart;
mod files;
mod graph_check;
mod layout;
mod left;
mod license;
mod place;
mod remotes;
mod result;
mod spelling;

pub use files::{Content, Localized, ResultFile, Rewritten, Untrusted};
pub use left::{
    UNRESOLVED, left, named as named_left, reached as reached_left, references, unresolved,
};
pub use remotes::remotes;
pub use result::{Chosen, InPlace, Rules, localize, localize_in_place};
pub use spelling::{is_remote, value};

/// What each `localized-files` directory says in its `.gitattributes`: no checkout and no
/// `git add` changes a byte below it.
pub const GITATTRIBUTES: &str = "* -text -filter -ident -working-tree-encoding\n";

#[cfg(test)]
mod tests;

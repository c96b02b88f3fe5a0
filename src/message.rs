//! What is said when something is wrong: failures and findings, and what of them is safe to show.

pub(crate) mod failure;
pub(crate) mod finding;
pub(crate) mod position;
pub(crate) mod redact;
pub(crate) mod rule;

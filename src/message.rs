//! What is said when something is wrong: failures and findings, what they are about, and what of them is safe to show.

pub(crate) mod failure;
pub(crate) mod finding;
pub(crate) mod pin;
pub(crate) mod position;
pub(crate) mod redact;
pub(crate) mod rule;
pub(crate) mod upstream;

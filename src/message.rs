//! Failures and findings, their locations and subjects, and the redaction of everything that is shown.

pub(crate) mod failure;
pub(crate) mod finding;
pub(crate) mod pin;
pub(crate) mod position;
pub(crate) mod redact;
pub(crate) mod rule;
pub(crate) mod upstream;

//! The grammar of a reference: how kustomize reads a scalar, and the path at which we would put a copy.
//!
//! Everything here is a pure function of the text. Nothing looks at a file, a repository or the
//! network, so `check` can use all of it. What a reference *is* still depends on its field (a file,
//! a root, or either) and on the files of the tree; the walk decides that.
//!
//! - [`RepoSpec`] is how kustomize reads a git reference, quirks included.
//! - [`is_remote_file`], [`has_git_marker`] and [`unsupported_scheme`] classify any other text.
//! - [`refuse_unsafe`] refuses texts that must not reach git.
//! - [`Pin`], [`file_pin`], [`looks_like_file`] and [`web_page_hint`] judge how good a reference is, and guess the
//!   intended one.
//! - [`Upstream`] is the identity of something on another host.
//! - [`localized_path`] decides where a remote file or root is put.

mod classify;
mod file_url;
mod go_url;
pub(crate) mod localized_path;
mod query;
mod spec;
mod unsafe_text;
mod upstream;
mod url_parts;
mod web_page;

pub(crate) use crate::message::pin::Pin;
pub(crate) use classify::{
    has_git_marker, is_remote_file, is_url, unsupported_scheme, why_unsupported, without_scheme,
};
pub(crate) use file_url::{file_pin, looks_like_file, names_page};
pub(crate) use localized_path::default_new_dir;
pub(crate) use query::{PLAIN_QUERY, escaped, plus_hint};
pub use spec::RepoSpec;
pub use unsafe_text::refuse_unsafe;
pub(crate) use upstream::Upstream;
pub(crate) use web_page::{subgroup_hint, web_page, web_page_hint};

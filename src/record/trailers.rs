//! The trailers of a commit that holds localized files: from these lines of its message anyone can
//! prove later where every byte came from.
//!
//! ```text
//! Kustomize-Localize-Target: example/overlay scope=example into=localized-overlay
//! Kustomize-Localize-Source: gitCommit:34f0…
//! Kustomize-Localize-Remote: https://github.com/kubernetes-sigs/kustomize?ref=v1.0.6 gitCommit:0123…
//! Kustomize-Localize-Remote: https://raw.githubusercontent.com/…/deployment.yaml sha256:dead…
//! Kustomize-Localize-Tree: gitTree:8b3f…
//! Kustomize-Localize-Verified: identical 1/2 kustomize/v5.8.1 --enable-helm
//! Kustomize-Localize-Not-Built: example/broken
//! Kustomize-Localize-Tool: git-kustomize-localize/0.1.0
//! ```
//!
//! A value is a row of fields with one space between them. Inside a field, space, `%`, control characters and
//! everything outside of ASCII are percent-encoded. A line is never folded. The order is that of the example, and
//! `Lock`, which only rendered files have, follows `Source`. Remotes, and targets that were not built, are sorted, each
//! once.

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::verified::NOT_BUILT;
use super::{Digest, Verified, message, valid};
use crate::message::failure::{Failure, Result, shown};

/// The prefix of all keys of a record.
pub(super) const PREFIX: &str = "Kustomize-Localize-";

/// The characters that are encoded in a field, in addition to everything outside of ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// The record in the trailers of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailers {
    /// The target that was localized.
    pub target: TargetTrailer,
    /// The source commit. `None` if the record has no such line. This version always writes it.
    pub source: Option<Digest>,
    /// The digest of the lock of the source that was rendered. `None` if it had none, or if it was localized: the lock
    /// is then in the tree.
    pub lock: Option<Digest>,
    /// The upstreams that were localized, as [`Upstream`](crate::reference::Upstream) writes them, each with its
    /// digest.
    pub remotes: BTreeSet<(String, Digest)>,
    /// The resulting tree: NEW_DIR, or the whole repository if it was localized in place.
    pub tree: Digest,
    /// How the result was verified. `None` if nothing was built.
    pub verified: Option<Verified>,
    /// The program that wrote the commit, such as `git-kustomize-localize/0.1.0`. Never empty.
    pub tool: String,
}

/// The target that was localized, and its destination.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TargetTrailer {
    /// A path from the top of the repository (`.` for the top), or the URL of a remote target without its secrets.
    pub target: String,
    /// The scope, if it was given: a path from the top, `.` for the top.
    pub scope: Option<String>,
    /// The NEW_DIR of a copy, as a path from the top. `None` if the repository was localized in place.
    pub new_dir: Option<String>,
    /// Whether the tree holds the builds of the repository.
    pub rendered: bool,
}

impl Trailers {
    /// Renders the lines, each with its newline. Fails if a value is invalid.
    pub fn render(&self) -> Result<String> {
        // Trailers that could not be read back would stay wrong for ever: a commit message cannot be corrected.
        self.check().map_err(|failure| failure.context("cannot write the trailers"))?;
        let mut lines = String::new();
        let mut line = |name: &str, value: &str| lines.push_str(&format!("{PREFIX}{name}: {value}\n"));
        line("Target", &self.target.render());
        if let Some(source) = &self.source {
            line("Source", &source.to_string());
        }
        if let Some(lock) = &self.lock {
            line("Lock", &lock.to_string());
        }
        for (label, digest) in &self.remotes {
            line("Remote", &format!("{} {digest}", encode(label)));
        }
        line("Tree", &self.tree.to_string());
        line(
            "Verified",
            &self.verified.as_ref().map_or(NOT_BUILT.to_owned(), |verified| verified.render(self.target.rendered)),
        );
        for target in self.verified.iter().flat_map(|verified| &verified.not_built) {
            line("Not-Built", &encode(target));
        }
        line("Tool", &encode(&self.tool));
        Ok(lines)
    }

    /// Parses the record in the last paragraph of a commit message. `None` if there is none.
    ///
    /// Fails if the record is not as this program writes it: incomplete, malformed, with unknown keys, or in another
    /// order.
    pub fn parse(message: &str) -> Result<Option<Trailers>> {
        // git looks for trailers in the last paragraph only.
        let lines: Vec<&str> = message.trim_end().lines().collect();
        let mut last: Vec<&str> = lines.rsplit(|line| line.trim().is_empty()).next().unwrap_or_default().to_vec();
        // Other trailers are dropped, each with its indented lines: git reads these as a continuation of the line
        // above.
        let mut is_record = false;
        last.retain(|line| {
            if !line.starts_with([' ', '\t']) {
                is_record = message::is_record_line(line);
            }
            is_record
        });
        if !last.iter().any(|line| message::is_record_line(line) && message::is_trailer(line)) {
            return Ok(None);
        }
        // Rendered again and compared: a line that was not read would be a record that nobody checks.
        let trailers = Trailers::of_lines(&last)?;
        if trailers.render()? != last.join("\n") + "\n" {
            return Err(Failure::new(format!(
                "the `{PREFIX}…` lines of the commit message are out of order or malformed"
            ))
            .hint("a newer git-kustomize-localize may have written them: upgrade this one"));
        }
        Ok(Some(trailers))
    }

    /// Parses the lines of a record by the keys that this version knows. Lines with other keys are ignored: the caller
    /// renders the result again, and refuses a text that has more.
    fn of_lines(lines: &[&str]) -> Result<Trailers> {
        let not_built: Result<_> = values(lines, "Not-Built").map(decode).collect();
        let remotes: Result<_> = values(lines, "Remote").map(parse_remote).collect();
        let source = values(lines, "Source").next();
        Ok(Trailers {
            target: TargetTrailer::parse(required(lines, "Target")?).map_err(in_trailer("Target"))?,
            source: source.map(str::parse).transpose().map_err(in_trailer("Source"))?,
            lock: values(lines, "Lock").next().map(str::parse).transpose().map_err(in_trailer("Lock"))?,
            remotes: remotes.map_err(in_trailer("Remote"))?,
            tree: required(lines, "Tree")?.parse().map_err(in_trailer("Tree"))?,
            verified: Verified::parse(required(lines, "Verified")?, not_built?).map_err(in_trailer("Verified"))?,
            tool: decode(required(lines, "Tool")?).map_err(in_trailer("Tool"))?,
        })
    }

    /// Refuses a record with an invalid value, when it is read and before it is written.
    fn check(&self) -> Result<()> {
        // Whoever can commit can write any trailers, so each value is checked before a path or a command is made from
        // it.
        let TargetTrailer { target, scope, new_dir, rendered } = &self.target;
        valid::target(target).map_err(invalid("target"))?;
        if let Some(scope) = scope {
            valid::path_or_top(scope).map_err(invalid("scope"))?;
        }
        if let Some(new_dir) = new_dir {
            valid::path_or_top(new_dir).map_err(invalid("new directory"))?;
        }
        // Only a copy has a target below the top, and only a repository can be rendered.
        let is_top = target == "." && scope.is_none();
        if new_dir.is_none() && !is_top || new_dir.is_some() && *rendered {
            return Err(Failure::new("the target is neither a copy nor the repository"));
        }
        if let Some(source) = &self.source {
            check_digest(source, &["gitCommit"])?;
        }
        if let Some(lock) = &self.lock {
            // A lock that was localized is in the tree, so only rendered files have this trailer.
            check_digest(lock, if *rendered { &["sha256"][..] } else { &[] })?;
        }
        for (label, digest) in &self.remotes {
            valid::url(label).map_err(invalid("url of a remote"))?;
            // A `gitTree` is accepted, but no lock entry has one: such a record differs from its lock.
            check_digest(digest, &["gitCommit", "gitTree", "sha256"])?;
        }
        check_digest(&self.tree, &["gitTree"])?;
        self.verified.iter().try_for_each(Verified::check)?;
        valid::text_without_controls(&self.tool).map_err(invalid("name of the tool"))
    }
}

/// The values of the trailers with a key, in their order.
fn values<'a>(lines: &[&'a str], name: &str) -> impl Iterator<Item = &'a str> {
    let lines = lines.iter().filter_map(|line| line.strip_prefix(PREFIX)?.split_once(": "));
    lines.filter(move |(key, _)| *key == name).map(|(_, value)| value)
}

/// The value of a trailer that every record has.
fn required<'a>(lines: &[&'a str], name: &str) -> Result<&'a str> {
    values(lines, name).next().ok_or_else(|| {
        Failure::new(format!("the record in the commit message is incomplete: `{PREFIX}{name}` is missing"))
            .hint("compare with the lock, the other copy of the record")
    })
}

/// Adds the key of a trailer to a failure of its value.
fn in_trailer(name: &'static str) -> impl FnOnce(Failure) -> Failure {
    move |failure| failure.context(format_args!("{PREFIX}{name}"))
}

/// Makes a failure of the reason why a value is invalid.
fn invalid(name: &'static str) -> impl FnOnce(&'static str) -> Failure {
    move |reason| Failure::new(format!("the {name} {reason}"))
}

impl TargetTrailer {
    /// The value of the trailer: the target, its scope, and where its result is.
    fn render(&self) -> String {
        let mut value = encode(&self.target);
        if let Some(scope) = &self.scope {
            value.push_str(&format!(" scope={}", encode(scope)));
        }
        match &self.new_dir {
            Some(new_dir) => value.push_str(&format!(" into={}", encode(new_dir))),
            None if self.rendered => value.push_str(" rendered"),
            None => value.push_str(" in-place"),
        }
        value
    }

    /// Parses the value of the trailer. `in-place` is the default. An unknown field is ignored: [`Trailers::parse`]
    /// renders the result again, and refuses a text that differs.
    fn parse(value: &str) -> Result<Self> {
        let mut fields = value.split(' ');
        let target = decode(fields.next().unwrap_or_default())?;
        let mut trailer = TargetTrailer { target, ..TargetTrailer::default() };
        for field in fields {
            match field.split_once('=') {
                Some(("scope", scope)) => trailer.scope = Some(decode(scope)?),
                Some(("into", into)) => trailer.new_dir = Some(decode(into)?),
                None if field == "rendered" => trailer.rendered = true,
                _ => {}
            }
        }
        Ok(trailer)
    }
}

/// Parses the value of a trailer for a remote: its encoded label, and its digest.
fn parse_remote(value: &str) -> Result<(String, Digest)> {
    // The message does not show the URL, because it may have a secret.
    let (label, digest) = value.split_once(' ').ok_or_else(|| Failure::new("expected a url and a digest"))?;
    Ok((decode(label)?, digest.parse()?))
}

/// Refuses a digest of another kind than `kinds`, which are [names](Digest::name), or with malformed digits.
fn check_digest(digest: &Digest, kinds: &[&str]) -> Result<()> {
    if kinds.contains(&digest.name()) && digest.is_valid() {
        Ok(())
    } else {
        Err(Failure::new(format!("`{}` is not the expected kind of digest", shown(&digest.to_string()))))
    }
}

/// `text` as one field.
pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// The text that [`encode`] was given. Fails if it is not UTF-8.
pub(super) fn decode(text: &str) -> Result<String> {
    percent_decode_str(text)
        .decode_utf8()
        .map(|text| text.into_owned())
        .map_err(|_| Failure::new("not UTF-8 after decoding"))
}

#[cfg(test)]
mod tests;

//! `verify`: a localized commit against its lock and trailers.

#[cfg(feature = "localize")]
mod rebuilt;
#[cfg(feature = "localize")]
mod upstream;

use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use clap::{Args, ValueEnum};

use super::check;
use super::output::{self, Color};
use crate::failure::{Failure, Failures, Result, argument};
use crate::git::LocalRepo;
use crate::record::LOCK_NAME;
use crate::report::verify as report;
use crate::tree::objects::{ObjectTree, object_id};
use crate::verify::upstream::Ask;
#[cfg(feature = "localize")]
use crate::verify::verify_since;
use crate::verify::{Request, Verified, verify, verify_directory};

/// Arguments of `verify`.
#[derive(Debug, Clone, Args)]
#[cfg_attr(
    feature = "localize",
    command(group(clap::ArgGroup::new("network").args(["upstream", "rebuild"]).multiple(true)))
)]
pub(super) struct VerifyArgs {
    /// The commit that holds localized files, or a directory that `--no-commit` wrote [default: HEAD]
    rev: Option<String>,

    /// Only what lies in or below these [default: every record]
    #[arg(value_name = "PATH", last = true)]
    paths: Vec<String>,

    /// Accept changes to your own files since the record was made, as on a branch that took the localized one in by a
    /// merge, a squash or a pick: what was localized must be what it was
    #[arg(long)]
    own_changes: bool,

    /// The commit must have a signature that is good, as `git verify-commit` says
    #[arg(long)]
    require_signature: bool,

    /// Ask each remote of the locks what it is now: ok, updated, moved, gone or unreachable. Also for a lock at
    /// the top that only says what URLs are locked to
    #[cfg(feature = "localize")]
    #[arg(long)]
    upstream: bool,

    /// Ask only for what the locks of BASE do not list, or list otherwise, and verify nothing else
    #[cfg(feature = "localize")]
    #[arg(long, value_name = "BASE", requires = "upstream", conflicts_with_all = ["rebuild", "require_signature", "own_changes"])]
    since: Option<String>,

    /// Localize again from the source commit and the lock, and compare: needs the network, or a warm cache
    #[cfg(feature = "localize")]
    #[arg(long)]
    rebuild: bool,

    /// Give up on one repository or file after this time [default: 300]
    #[cfg(feature = "localize")]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..), requires = "network", hide_short_help = true)]
    timeout: Option<u64>,

    /// How the result is written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Human)]
    format: Format,

    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,

    /// When to use colour
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    color: Color,
}

/// How the result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// For machines: one JSON object
    Json,
}

/// Verifies what the arguments say, and says what differs.
pub(super) fn run(args: &VerifyArgs) -> ExitCode {
    args.color.apply();
    let json = args.format == Format::Json;
    let verified = match verified(args) {
        Ok(verified) => verified,
        Err(failures) => return output::failed(&failures, json),
    };
    let is_quiet = args.quiet && verified.status() == 0;
    match args.format {
        Format::Json => output::print(&report::json(&verified)),
        Format::Human if is_quiet => {}
        Format::Human => output::print(&report::human(&verified)),
    }
    output::failures(&Failures(verified.failures.clone()));
    ExitCode::from(verified.status())
}

fn verified(args: &VerifyArgs) -> Result<Verified, Failures> {
    let here = LocalRepo::discover_offline()?.map(Rc::new);
    let directory = directory(args, here.as_deref())?;
    #[cfg(feature = "localize")]
    let options = crate::fetch::Options {
        timeout: args.timeout.map(std::time::Duration::from_secs),
        quiet: args.quiet,
        ..crate::fetch::Options::default()
    };
    #[cfg(feature = "localize")]
    let upstream = if args.upstream {
        Some(upstream::asker(here.as_deref(), &options)?)
    } else {
        None
    };
    #[cfg(feature = "localize")]
    let ask = upstream
        .as_ref()
        .map(|upstream| |remotes: &[&crate::record::Remote]| upstream.ask(remotes));
    #[cfg(feature = "localize")]
    let ask = ask.as_ref().map(|ask| ask as &Ask<'_>);
    #[cfg(not(feature = "localize"))]
    let ask: Option<&Ask<'_>> = None;
    if let Some(directory) = directory {
        return verify_directory(directory, here.is_some(), ask);
    }
    let here = match here {
        Some(here) => here,
        None => check::here()?,
    };
    let rev = args.rev.as_deref().unwrap_or("HEAD");
    let mut paths = Vec::new();
    if let (false, Some(id)) = (args.paths.is_empty(), here.commit(rev)?) {
        let tree = ObjectTree::of_here(here.clone(), object_id(&id.tree)?)?;
        for text in &args.paths {
            paths.push(check::from_top(&here, &tree, text)?);
        }
    }
    let request = Request {
        rev,
        paths: &paths,
        own_changes: args.own_changes,
        require_signature: args.require_signature,
        upstream: ask,
    };
    #[cfg(feature = "localize")]
    if let Some(base) = &args.since {
        return verify_since(&here, &request, base);
    }
    #[cfg_attr(not(feature = "localize"), allow(unused_mut))]
    let mut verified = verify(&here, &request)?;
    #[cfg(feature = "localize")]
    if args.rebuild {
        rebuilt::compare(&mut verified, options.timeout)?;
    }
    Ok(verified)
}

/// Returns the directory that the argument names, if that is not a commit.
fn directory<'a>(args: &'a VerifyArgs, here: Option<&LocalRepo>) -> Result<Option<&'a str>> {
    let Some(text) = args.rev.as_deref().filter(|text| Path::new(text).is_dir()) else {
        return Ok(None);
    };
    let commit = match here {
        Some(here) if !text.starts_with('-') => here.commit(text)?,
        _ => None,
    };
    if let Some(id) = commit {
        if !Path::new(text).join(LOCK_NAME).is_file() {
            return Ok(None);
        }
        return Err(Failure::new(format!(
            "`{text}` names both a commit and a directory with a `{LOCK_NAME}`"
        ))
        .hint(format!(
            "the directory: git kustomize-localize verify {}",
            argument(&format!("./{text}"))
        ))
        .hint(format!(
            "the commit: git kustomize-localize verify {}",
            id.commit
        )));
    }
    #[cfg(feature = "localize")]
    let (rebuild, since) = (args.rebuild, args.since.is_some());
    #[cfg(not(feature = "localize"))]
    let (rebuild, since) = (false, false);
    for (option, is_given) in [
        ("--require-signature", args.require_signature),
        ("--own-changes", args.own_changes),
        ("--rebuild", rebuild),
        ("--since", since),
        ("PATH", !args.paths.is_empty()),
    ] {
        if is_given {
            return Err(Failure::new(format!(
                "{option} is for a commit, and `{text}` is a directory"
            ))
            .hint("leave it out, or name a commit"));
        }
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Verify {
        #[command(flatten)]
        _args: VerifyArgs,
    }

    /// Also with `--no-default-features`, where nothing else tells.
    #[test]
    fn what_reaches_the_network_is_there_with_the_feature_alone() {
        let command = Verify::command();
        for option in ["upstream", "since", "rebuild", "timeout"] {
            let is_there = command
                .get_arguments()
                .any(|argument| argument.get_long() == Some(option));
            assert_eq!(is_there, cfg!(feature = "localize"), "--{option}");
        }
        command.debug_assert();
    }
}

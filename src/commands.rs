//! The commands, one file each: the arguments are the request, and the outcome is printed as text or as JSON.

mod affected;
mod branch;
mod build;
pub(crate) mod check;
mod completion;
mod copy;
mod diff;
mod explain;
mod findings;
mod generate;
mod help;
mod hook;
mod init;
mod json;
mod localize;
mod lock;
mod manual;
mod messages;
mod output;
mod sbom;
mod status;
mod targets;
mod tree;
mod update;
mod usage;
mod vendor;
mod verify;

use std::collections::BTreeMap;
use std::process::ExitCode;

use crate::fetch::{self, Provenance};
use crate::message::failure::{FAILED, Failure};
use crate::reference::Upstream;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum as _};
use output::{Format, OutputArgs, ended, print, print_failures, print_outcome, say};
use serde::Serialize;

/// Vendor the remote bases of kustomizations, and prove that the build is the same
#[derive(Debug, Parser)]
#[command(
    name = "git-kustomize-localize",
    bin_name = "git kustomize-localize",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_flag = true,
    disable_help_subcommand = true,
    subcommand_negates_reqs = true,
    override_usage = "git kustomize-localize [OPTIONS] <TARGET> [NEW_DIR]\n       git kustomize-localize <COMMAND>",
    after_help = format!("{EXIT_STATUS}\nThe whole page: git kustomize-localize help TARGET")
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    copy: copy::CopyArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Print help; `help COMMAND` is the whole page
    #[arg(short, long, global = true, action = clap::ArgAction::HelpShort)]
    help: Option<bool>,
}

const EXIT_STATUS: &str = "Exit status: 0 done; 1 errors found, or the builds differ; 2 failed.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the state of the repository, and the next command (the default)
    Status(status::StatusArgs),

    /// Set up: lock references, allow those that are gone, list what to edit
    #[command(
        after_help = "Exit status: 0 `check` finds no error now; 1 something must be edited; 2 something could not be checked."
    )]
    Init(init::InitArgs),

    /// Commit the repository, localized, to a branch
    #[command(after_help = EXIT_STATUS)]
    Branch(Box<branch::BranchArgs>),

    /// Vendor remote references in the working tree
    #[command(after_help = EXIT_STATUS)]
    Vendor(Box<vendor::VendorArgs>),

    /// Bring kustomize-localize.lock up to date with the working tree
    Lock(lock::LockArgs),

    /// Resolve the entries of kustomize-localize.lock again
    Update(update::UpdateArgs),

    /// Find what a build without the network cannot resolve
    #[command(
        after_help = "Formats (--format): human, json, sarif, github, gitlab\nExit status: 0 no errors; 1 errors found; 2 something could not be checked."
    )]
    Check(check::CheckArgs),

    /// Verify a localized commit against its lock and trailers
    #[command(
        after_help = "Exit status: 0 as recorded; 1 something differs; 2 something could not be read, or a server did not answer."
    )]
    Verify(verify::VerifyArgs),

    /// Run `kustomize build` with the locked versions, without the network
    Build(build::BuildArgs),

    /// Show what a change deploys
    #[command(after_help = "Formats (--format): human, json, markdown, html")]
    Diff(diff::DiffArgs),

    /// Show the reference tree
    Tree(tree::TreeArgs),

    /// Show what Flux and Argo CD deploy from here
    Targets(targets::TargetsArgs),

    /// List the kustomizations whose build a change can affect
    Affected(affected::AffectedArgs),

    /// Write a bill of materials of the locked remotes
    #[command(after_help = "Formats (--format): human, cyclonedx, spdx, slsa")]
    Sbom(sbom::SbomArgs),

    /// Manage git hooks that run `check`
    #[command(subcommand)]
    Hook(hook::HookCommand),

    /// Explain rules
    Explain(explain::ExplainArgs),

    /// Write manual pages and shell completions
    #[command(subcommand, hide = true)]
    Generate(generate::GenerateCommand),

    /// Show the page of a command, or a guide
    Help(help::HelpArgs),
}

/// Runs the command that the arguments of the process name.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse_from(usage::arguments()) {
        Ok(cli) => cli,
        Err(error) => return not_parsed(error),
    };
    // Colours are decided before the first failure can be printed.
    let output = cli.output;
    output.apply();
    if let Some(failure) = wrong_format(output.format) {
        return print_failures(&output, &failure.into());
    }
    let done = match cli.command {
        // Without any word, it tells where the repository stands, as `git status` does.
        None if cli.copy == copy::CopyArgs::default() => status::StatusArgs {}.run(),
        None => cli.copy.run(&output),
        Some(Command::Status(args)) => args.run(),
        Some(Command::Init(args)) => args.run(&output),
        Some(Command::Branch(args)) => args.run(&output),
        Some(Command::Vendor(args)) => args.run(&output),
        Some(Command::Lock(args)) => args.run(&output),
        Some(Command::Update(args)) => args.run(&output),
        Some(Command::Check(args)) => args.run(&output),
        Some(Command::Verify(args)) => args.run(&output),
        Some(Command::Build(args)) => args.run(&output),
        Some(Command::Diff(args)) => args.run(&output),
        Some(Command::Tree(args)) => args.run(),
        Some(Command::Targets(args)) => args.run(),
        Some(Command::Affected(args)) => args.run(),
        Some(Command::Sbom(args)) => args.run(&output),
        Some(Command::Hook(command)) => command.run(&output),
        Some(Command::Explain(args)) => args.run(),
        Some(Command::Generate(command)) => command.run(),
        Some(Command::Help(args)) => args.run(),
    };
    let status = print_outcome(&output, done);
    // Last, when all requests are done.
    if output.verbose {
        say(&fetch::traffic());
    }
    status
}

/// The failure for a format that the command does not have; `None` if it has it.
fn wrong_format(format: Format) -> Option<Failure> {
    let (all, wanted) = (formats(usage::named()), format.to_possible_value()?.get_name().to_owned());
    if all.contains(&wanted) {
        return None;
    }
    // An unknown command is parsed as the TARGET of a copy, which lacks most formats: then the word is the mistake.
    let failure = || Failure::new(format!("unsupported format `{wanted}`: expected one of {}", all.join(", ")));
    Some(usage::unknown_first_word().unwrap_or_else(failure))
}

/// The names of the formats that a command has, for its usage errors: clap knows only the formats of all commands.
/// `None` is a copy.
fn formats(command: Option<&str>) -> Vec<String> {
    let all = Format::value_variants()
        .iter()
        .filter(|format: &&Format| match format {
            Format::Human => true,
            // The output of `build` is that of kustomize, which has no JSON.
            Format::Json => command != Some("build"),
            Format::Sarif | Format::Github | Format::Gitlab => command == Some("check"),
            Format::Markdown | Format::Html => command == Some("diff"),
            Format::Cyclonedx | Format::Spdx | Format::Slsa => command == Some("sbom"),
        })
        .filter_map(Format::to_possible_value);
    all.map(|format| format.get_name().to_owned()).collect()
}

/// Prints the answer of clap if no command runs: help, the version, or a usage error. Returns the exit status.
fn not_parsed(error: clap::Error) -> ExitCode {
    // Help and version are results, so they go to standard output.
    if !error.use_stderr() {
        print(output::styled(&error.render(), console::colors_enabled()).as_bytes());
        return ended(0);
    }
    // The arguments are parsed again without secrets, because the error quotes them. They can be parsed only if invalid
    // UTF-8 was the mistake, and that error quotes nothing.
    let mut error = Cli::try_parse_from(usage::shown()).err().unwrap_or(error);
    if let Some(failure) = usage::unknown_command(&error).or_else(|| usage::unknown_rule(&error)) {
        say(&messages::failures(&[failure]));
        return ended(FAILED);
    }
    usage::point_elsewhere(&mut error);
    let text = output::styled(&error.render(), console::colors_enabled_stderr());
    // git takes `--help` for itself, and looks for a manual page.
    let (error, more) = text.split_at(text.rfind("For more information").unwrap_or(text.len()));
    say(&format!("{error}{}", more.replace("--help", "-h")));
    ended(FAILED)
}

/// The command line for documentation.
fn documented() -> clap::Command {
    let mut command = manual::described(Cli::command());
    command.build();
    command
}

/// The name of a copy, which has no command, in lists of commands.
const COPY: &str = "TARGET";

macro_rules! pages {
    ($($name:literal)*) => {
        /// The commands, as users type them, and [`COPY`], each with the text of its page.
        const PAGES: &[(&str, &str)] = &[
            (COPY, include_str!("commands/copy.md")),
            $(($name, include_str!(concat!("commands/", $name, ".md"))),)*
        ];
    };
}

pages! {
    "status" "init" "branch" "vendor" "lock" "update" "check" "verify" "build" "diff" "tree" "targets" "affected" "sbom" "hook" "explain"
    "generate" "help"
}

/// The news of each upstream that an update brings.
type News = BTreeMap<Upstream, UpstreamNews>;

/// The news of an upstream.
#[derive(Debug, Default, Serialize)]
struct UpstreamNews {
    /// `None` outside of a repository.
    #[serde(flatten)]
    provenance: Option<Provenance>,
    /// The subjects of the newest commits.
    commits: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let command = Cli::command();
        let names = command.get_subcommands().map(clap::Command::get_name);
        let mut names: Vec<&str> = names.chain([COPY]).collect();
        let mut known: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
    }

    /// Checks a document against a JSON Schema.
    #[track_caller]
    pub(super) fn assert_valid(schema: &str, document: &str) {
        assert_eq!(problem(schema, document), None);
    }

    /// Returns what a JSON Schema has against a document.
    pub(super) fn problem(schema: &str, document: &str) -> Option<String> {
        let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        let document: serde_json::Value = serde_json::from_str(document).unwrap();
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.enable_format_assertions();
        compiler.add_resource("schema.json", schema).unwrap();
        let index = compiler.compile("schema.json", &mut schemas).unwrap();
        let error = schemas.validate(&document, index).err()?;
        Some(format!("{error:#}"))
    }
}

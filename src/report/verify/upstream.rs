//! The state of the locked remotes upstream.

use crate::message::failure::short;
use crate::record::upstream::Verdict;
use crate::report::{counted, visible};
use crate::verify::upstream::Upstream;

/// Returns one line for each remote, and one that counts them.
pub(super) fn human(all: &[Upstream]) -> String {
    let mut out = String::new();
    for one in all {
        let Upstream { lock, line, answer, .. } = one;
        let label = visible(&one.remote.label());
        let verdict = answer.verdict.name();
        out.push_str(&format!("{}:{line}: {verdict}: {label}", visible(lock)));
        let was = one.remote.digest();
        let was = short(was.hex());
        let now = answer.now.as_ref().map(|now| short(now.hex()));
        match (answer.verdict, now) {
            (Verdict::Ok, _) => out.push_str(&format!(" is {was}")),
            (_, Some(now)) => out.push_str(&format!(" was {was}, is {now}")),
            (_, None) => out.push_str(&format!(" was {was}")),
        }
        if !answer.why.is_empty() {
            out.push_str(&format!(": {}", visible(&answer.why)));
        }
        if let Some(commits) = answer.commits {
            out.push_str(&match commits {
                0 => " by merges alone".to_owned(),
                commits => format!(" by {}", counted(commits, "commit")),
            });
        }
        out.push('\n');
        for (commit, subject) in &answer.newest {
            out.push_str(&format!("    {} {}\n", short(commit), visible(subject)));
        }
        let named = answer.newest.len();
        if let Some(more) = answer.commits.and_then(|all| all.checked_sub(named))
            && more > 0
            && named > 0
        {
            out.push_str(&format!("    and {more} more\n"));
        }
    }
    let counts: Vec<String> = Verdict::ALL
        .iter()
        .filter_map(|verdict| {
            let count = all.iter().filter(|one| one.answer.verdict == *verdict);
            match count.count() {
                0 => None,
                count => Some(format!("{count} {}", verdict.name())),
            }
        })
        .collect();
    out.push_str(&if counts.is_empty() {
        "upstream: there is nothing to ask for\n".to_owned()
    } else {
        format!("upstream of {}: {}\n", counted(all.len(), "remote"), counts.join(", "))
    });
    let is = |verdict| all.iter().any(|one| one.answer.verdict == verdict);
    if is(Verdict::Updated) || is(Verdict::Moved) {
        out.push_str(
            "  to take what is there now: git kustomize-localize update; of a copy whose source has no lock: remove it and copy again\n",
        );
    }
    if is(Verdict::Moved) {
        out.push_str(
            "  before that, find out why something moved; for a tag or a file name it: git kustomize-localize update URL\n",
        );
    }
    out
}

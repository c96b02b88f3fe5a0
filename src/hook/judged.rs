//! What a hook that runs has to judge, and against what.

use crate::failure::{Failure, Result, shown};
use crate::git::LocalRepo;
use crate::record::is_object_id;

/// One thing to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The commit; none: the index.
    pub commit: Option<String>,
    /// The refs that it is for, where they say more than the commit.
    pub refs: Vec<String>,
    /// The commits that are old: their contents are not new. `None`: unknown.
    pub old: Option<Vec<String>>,
    /// Whose configuration counts.
    pub configuration: Configuration,
}

/// Whose configuration counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Configuration {
    /// That of what is judged.
    Own,
    /// That of this commit.
    Of(String),
    /// None: the rules without a configuration.
    Default,
}

/// A ref that is moved.
#[derive(Debug, PartialEq, Eq)]
struct Update<'a> {
    name: &'a str,
    /// Its object where it is going; none for a ref that is new.
    old: Option<&'a str>,
    /// Its object from now on; none for one that goes away.
    new: Option<&'a str>,
}

/// What the pre-commit framework passes about its run, in its variables.
#[derive(Debug, Clone, Default)]
pub struct Framework {
    /// `PRE_COMMIT_FROM_REF`
    pub from: Option<String>,
    /// `PRE_COMMIT_TO_REF`
    pub to: Option<String>,
    /// `PRE_COMMIT_LOCAL_BRANCH`
    pub branch: Option<String>,
    /// `PRE_COMMIT_REMOTE_NAME`
    pub remote: Option<String>,
}

/// Returns what is about to be committed.
///
/// Old is what HEAD has, and what is merged. If nothing is staged and git did not start us (`by_git`), there is no
/// commit in progress: a clean checkout would have nothing new in it whatever it holds.
///
/// # Errors
/// When git cannot tell.
pub fn committed(here: &LocalRepo, by_git: bool) -> Result<Judged> {
    let mut old = None;
    if by_git || !here.nothing_staged()? {
        // Without a first commit all is new.
        let head = here.commit("HEAD")?.map(|_| "HEAD".to_owned());
        old = Some(head.into_iter().chain(here.merged()).collect());
    }
    Ok(Judged {
        commit: None,
        refs: Vec::new(),
        old,
        configuration: Configuration::Own,
    })
}

/// Returns what is about to be pushed, from the lines that git gives to `pre-push`.
///
/// # Errors
/// For a line that git would not write; when git cannot tell what a ref is.
pub fn pushed(here: &LocalRepo, remote: Option<&str>, lines: &str) -> Result<Vec<Judged>> {
    let updates = lines
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            // The first field is what the user called it, and may hold spaces.
            let mut fields = line.rsplitn(4, ' ');
            let (old, name, new) = (fields.next(), fields.next(), fields.next());
            fields.next().and_then(|_| update(old?, new?, name?))
        })
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| not_refs("<local ref> <local object> <remote ref> <remote object>"))?;
    let known = remote.map(|remote| format!("--remotes={remote}"));
    judged(
        here,
        &updates,
        |_| known.as_deref(),
        |_| Ok(Configuration::Own),
    )
}

/// Returns what a server is about to receive, from the lines that git passes to `pre-receive`. The configuration is
/// that of the branch before the push, of HEAD for a new one: a push must not be able to switch off its own check.
///
/// # Errors
/// As [`pushed`].
pub fn received(here: &LocalRepo, lines: &str) -> Result<Vec<Judged>> {
    let updates = lines
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut fields = line.splitn(3, ' ');
            update(fields.next()?, fields.next()?, fields.next()?)
        })
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| not_refs("<old object> <new object> <ref>"))?;
    if let Some(replaced) = updates
        .iter()
        .find(|update| update.new.is_some() && update.name.starts_with("refs/replace/"))
    {
        return Err(Failure::new(format!(
            "`{}` would show other files than those of the commits here",
            shown(replaced.name)
        ))
        .hint("push the changed files as a commit"));
    }
    // Findings of another branch are not old for this one: there, another configuration applied.
    let known = |update: &Update<'_>| update.old.is_none().then_some("--all");
    judged(here, &updates, known, |update| {
        let old = match update.old {
            Some(old) => here.commit(old)?,
            None => None,
        };
        let old = match old {
            Some(old) => Some(old),
            None => here.commit("HEAD")?,
        };
        Ok(match old {
            Some(old) => Configuration::Of(old.commit),
            None => Configuration::Default,
        })
    })
}

/// Returns what the pre-commit framework runs us for: a push, two revisions that it was given, or
/// what is staged.
///
/// # Errors
/// When a revision names nothing, or git cannot tell.
pub fn framework(here: &LocalRepo, said: &Framework, by_git: bool) -> Result<Judged> {
    let push = said.remote.as_ref().and(said.branch.as_deref());
    let Some(rev) = said.to.as_deref().or(push) else {
        return committed(here, by_git);
    };
    let commit = |rev: &str| {
        here.commit(rev)?
            .map(|id| id.commit)
            .ok_or_else(|| Failure::new(format!("`{rev}` names no commit")))
    };
    let tip = commit(rev)?;
    let from = said.from.as_deref().map(commit).transpose()?;
    let known = said.remote.as_ref().map(|name| format!("--remotes={name}"));
    let old = match (&from, &known) {
        (None, None) => None,
        _ => Some(here.known_below(&tip, from.as_deref(), known.as_deref())?),
    };
    Ok(Judged {
        commit: Some(tip),
        refs: Vec::new(),
        old,
        configuration: Configuration::Own,
    })
}

/// Returns what the updates bring, each once. What is not a commit has no kustomization.
fn judged<'k>(
    here: &LocalRepo,
    updates: &[Update<'_>],
    known: impl Fn(&Update<'_>) -> Option<&'k str>,
    configuration: impl Fn(&Update<'_>) -> Result<Configuration>,
) -> Result<Vec<Judged>> {
    let mut all: Vec<Judged> = Vec::new();
    for update in updates {
        let Some(new) = update.new else { continue };
        let Some(tip) = here.commit(new)? else {
            match here.kind(new)?.as_str() {
                "commit" => return Err(Failure::new(format!("commit {new} cannot be read"))),
                _ => continue,
            }
        };
        // A commit of the other side that we do not have cannot be compared with.
        let old = match update.old {
            Some(old) => here.commit(old)?.map(|old| old.commit),
            None => None,
        };
        let one = Judged {
            old: Some(here.known_below(&tip.commit, old.as_deref(), known(update))?),
            commit: Some(tip.commit),
            refs: vec![update.name.to_owned()],
            configuration: configuration(update)?,
        };
        let same = |other: &&mut Judged| {
            (&other.commit, &other.old, &other.configuration)
                == (&one.commit, &one.old, &one.configuration)
        };
        match all.iter_mut().find(same) {
            Some(other) => other.refs.extend(one.refs),
            None => all.push(one),
        }
    }
    Ok(all)
}

fn update<'a>(old: &'a str, new: &'a str, name: &'a str) -> Option<Update<'a>> {
    let object = |id: &'a str| Some(id).filter(|id| id.bytes().any(|byte| byte != b'0'));
    (is_object_id(old) && is_object_id(new)).then(|| Update {
        name,
        old: object(old),
        new: object(new),
    })
}

fn not_refs(form: &str) -> Failure {
    Failure::new("standard input is not what git gives to this hook")
        .hint(format!("each line is: {form}"))
}

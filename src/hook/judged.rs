//! What a hook that runs has to judge, and against what.

use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result, shown};
use crate::record::is_object_id;

/// One thing to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    /// The commit; none: the index.
    pub commit: Option<String>,
    /// The refs that it is for, where they say more than the commit.
    pub refs: Vec<String>,
    /// What it is judged against.
    pub base: Base,
}

/// What files are judged against: whose configuration counts, and what is old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Base {
    /// Themselves.
    Own,
    /// What this revision names.
    Of(String),
    /// No configuration, and no file.
    Nothing,
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
pub(crate) struct Framework {
    /// `PRE_COMMIT_TO_REF`
    pub to: Option<String>,
    /// `PRE_COMMIT_LOCAL_BRANCH`
    pub branch: Option<String>,
    /// `PRE_COMMIT_REMOTE_NAME`
    pub remote: Option<String>,
}

/// Returns what is about to be committed.
pub(crate) fn committed() -> Judged {
    Judged { commit: None, refs: Vec::new(), base: Base::Own }
}

/// Returns what is about to be pushed, from the lines that git gives to `pre-push`.
pub(crate) fn pushed(here: &LocalRepo, lines: &str) -> Result<Vec<Judged>> {
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
    judged(here, &updates, |_| Ok(Base::Own))
}

/// Returns what a server is about to receive, from the lines that git passes to `pre-receive`. The configuration is
/// that of the branch before the push, of HEAD for a new one: a push must not be able to switch off its own check.
pub(crate) fn received(here: &LocalRepo, lines: &str) -> Result<Vec<Judged>> {
    let updates = lines
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut fields = line.splitn(3, ' ');
            update(fields.next()?, fields.next()?, fields.next()?)
        })
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| not_refs("<old object> <new object> <ref>"))?;
    if let Some(replaced) =
        updates.iter().find(|update| update.new.is_some() && update.name.starts_with("refs/replace/"))
    {
        return Err(Failure::new(format!(
            "`{}` would show other files than those of the commits here",
            shown(replaced.name)
        ))
        .hint("push the changed files as a commit"));
    }
    judged(here, &updates, |update| {
        let old = match update.old {
            Some(old) => here.commit(old)?,
            None => None,
        };
        let old = match old {
            Some(old) => Some(old),
            None => here.commit("HEAD")?,
        };
        Ok(match old {
            Some(old) => Base::Of(old.commit),
            None => Base::Nothing,
        })
    })
}

/// Returns what the pre-commit framework runs us for: a push, a revision that it was given, or what is staged.
pub(crate) fn framework(here: &LocalRepo, said: &Framework) -> Result<Judged> {
    let push = said.remote.as_ref().and(said.branch.as_deref());
    let Some(rev) = said.to.as_deref().or(push) else {
        return Ok(committed());
    };
    let tip = here.commit(rev)?;
    let tip = tip.ok_or_else(|| Failure::new(format!("unknown revision `{rev}`")))?;
    Ok(Judged { commit: Some(tip.commit), ..committed() })
}

/// Returns what the updates bring, each once. What is not a commit has no kustomization.
fn judged(here: &LocalRepo, updates: &[Update<'_>], base: impl Fn(&Update<'_>) -> Result<Base>) -> Result<Vec<Judged>> {
    let mut all: Vec<Judged> = Vec::new();
    for update in updates {
        let Some(new) = update.new else { continue };
        let Some(tip) = here.commit(new)? else {
            match here.kind(new)?.as_str() {
                "commit" => return Err(Failure::new(format!("commit {new} cannot be read"))),
                _ => continue,
            }
        };
        let one = Judged { commit: Some(tip.commit), refs: vec![update.name.to_owned()], base: base(update)? };
        let same = |other: &&mut Judged| (&other.commit, &other.base) == (&one.commit, &one.base);
        match all.iter_mut().find(same) {
            Some(other) => other.refs.extend(one.refs),
            None => all.push(one),
        }
    }
    Ok(all)
}

fn update<'a>(old: &'a str, new: &'a str, name: &'a str) -> Option<Update<'a>> {
    let object = |id: &'a str| Some(id).filter(|id| id.bytes().any(|byte| byte != b'0'));
    (is_object_id(old) && is_object_id(new)).then(|| Update { name, old: object(old), new: object(new) })
}

fn not_refs(form: &str) -> Failure {
    Failure::new("standard input is not what git gives to this hook").hint(format!("each line is: {form}"))
}

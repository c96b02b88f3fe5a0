//! What a hook that runs has to judge, and against what.

use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result, shown};
use crate::record::is_object_id;
use crate::workspace::commit;

/// One thing to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    /// The commit; none: the index.
    pub commit: Option<String>,
    /// The refs that it is for, where they say more than the commit.
    pub refs: Vec<String>,
    /// What it is judged against.
    pub base: Base,
}

/// What files are judged against: whose configuration counts, and what is old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum Base {
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

impl Judged {
    /// Returns what is about to be committed.
    pub(super) fn index() -> Judged {
        Judged { commit: None, refs: Vec::new(), base: Base::Own }
    }
}

/// Returns what is about to be pushed, from the lines that git gives to `pre-push`.
pub(super) fn pushed(here: &LocalRepo, lines: &str) -> Result<Vec<Judged>> {
    let updates = updates(lines, "<local ref> <local object> <remote ref> <remote object>", |line| {
        // The first field is what the user called it, and may hold spaces.
        let mut fields = line.rsplitn(4, ' ');
        let (old, name, new) = (fields.next(), fields.next(), fields.next());
        fields.next().and_then(|_| update(old?, new?, name?))
    })?;
    judged(here, &updates, |_| Ok(Base::Own))
}

/// Returns what a server is about to receive, from the lines that git passes to `pre-receive`. The configuration is
/// that of the branch before the push, of HEAD for a new one: a push must not be able to switch off its own check.
pub(super) fn received(here: &LocalRepo, lines: &str) -> Result<Vec<Judged>> {
    let updates = updates(lines, "<old object> <new object> <ref>", |line| {
        let mut fields = line.splitn(3, ' ');
        update(fields.next()?, fields.next()?, fields.next()?)
    })?;
    let is_replaced = |update: &&Update| update.new.is_some() && update.name.starts_with("refs/replace/");
    if let Some(replaced) = updates.iter().find(is_replaced) {
        return Err(Failure::new(format!(
            "`{}` would show other files than those of the commits here",
            shown(replaced.name)
        ))
        .hint("push the changed files as a commit"));
    }
    judged(here, &updates, |update| {
        for name in update.old.into_iter().chain(["HEAD"]) {
            if let Some(old) = here.commit(name)? {
                return Ok(Base::Of(old.commit));
            }
        }
        Ok(Base::Nothing)
    })
}

/// Reads the lines that git passes to a hook.
fn updates<'a>(lines: &'a str, form: &str, read: impl Fn(&'a str) -> Option<Update<'a>>) -> Result<Vec<Update<'a>>> {
    let updates = lines.lines().filter(|line| !line.is_empty()).map(read);
    updates.collect::<Option<Vec<_>>>().ok_or_else(|| {
        Failure::new("standard input is not what git gives to this hook").hint(format!("each line is: {form}"))
    })
}

/// Returns what the pre-commit framework runs us for: a push, a revision that it was given, or what is staged.
pub(super) fn framework(here: &LocalRepo) -> Result<Judged> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let push = variable("PRE_COMMIT_REMOTE_NAME").and(variable("PRE_COMMIT_LOCAL_BRANCH"));
    let Some(rev) = variable("PRE_COMMIT_TO_REF").or(push) else {
        return Ok(Judged::index());
    };
    Ok(Judged { commit: Some(commit(here, &rev)?.commit), ..Judged::index() })
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

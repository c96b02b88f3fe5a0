//! The files that a git generator reads: each, or each element of a list in it, makes an application.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::super::Unread;
use super::super::unread::is_template;
use super::generator::{Listed, flat};
use super::template::{self, Parameters, Style};
use crate::kustomization::{Data, Value, read_object};
use crate::message::failure::Result;
use crate::tree::{Entry, Tree, path};

/// How many files the generators of one set read, one that is read again counted again.
const MOST: usize = 10_000;

/// Returns the parameters of each application; as the error the reason why they are not known.
pub(super) fn parameters(
    tree: &dyn Tree,
    listed: &Listed,
    patterns: &[Value],
    style: Style<'_>,
    read: &mut usize,
    unread: &mut Vec<Unread>,
) -> Result<std::result::Result<Vec<Parameters>, String>> {
    let (Some(wanted), Some(unwanted)) = (globs(patterns, false), globs(patterns, true)) else {
        return Ok(Err("a pattern of its generator cannot be read".to_owned()));
    };
    let mut all = Vec::new();
    for file in &listed.files {
        let Some(inside) = path::below(file, &listed.base) else {
            continue;
        };
        if !wanted.is_match(inside) || unwanted.is_match(inside) {
            continue;
        }
        if !matches!(tree.entry(file)?, Some(Entry::File { .. })) {
            continue;
        }
        *read += 1;
        if *read > MOST {
            return Ok(Err(format!("its generators read more than {MOST} files")));
        }
        let bytes = tree.read(file)?;
        let Ok(text) = std::str::from_utf8(&bytes) else {
            unread.push(Unread::invalid(file, 0, "not UTF-8", false));
            return Ok(Err(format!("`{file}` is not UTF-8")));
        };
        let value = match read_object(text, 0) {
            Ok(Some(value)) => value,
            // An empty file makes an application, too.
            Ok(None) => Value::new((1, 1), Data::Null),
            Err((line, message)) => {
                unread.push(Unread::invalid(file, line, message, is_template(text)));
                return Ok(Err(format!("`{file}:{line}` is not plain YAML")));
            }
        };
        let elements = match &value.data {
            Data::List(items) => items.as_slice(),
            _ => std::slice::from_ref(&value),
        };
        for element in elements {
            let mut parameters = flat(element);
            parameters.extend(template::of_file(inside, style));
            all.push(parameters);
        }
    }
    Ok(Ok(all))
}

/// Returns the patterns that exclude, or that do not.
fn globs(patterns: &[Value], exclude: bool) -> Option<GlobSet> {
    let mut globs = GlobSetBuilder::new();
    for one in patterns {
        let excludes = one.get("exclude").is_some_and(|flag| flag.data == Data::Flag(true));
        if excludes == exclude {
            let text = one.get("path")?.text()?;
            globs.add(GlobBuilder::new(text).literal_separator(true).build().ok()?);
        }
    }
    globs.build().ok()
}

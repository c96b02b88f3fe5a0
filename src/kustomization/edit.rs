//! Edits in the text of a file, and the proof that nothing else changed.
//!
//! Only the bytes of the named scalars change; comments, order, quotes, anchors, line ends and a byte order mark stay.
//! An anchor never carries a new value to another place: aliases are replaced by the values they stood for. Both
//! parsers read the result again; unless it is exactly the old file with the new values, it is thrown away.

mod edit_check;
mod remove;
mod render;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::Spot;
use super::yaml::{Dialect, Document, Literal, NodeId, NodeKind, Stream, Type};

/// One edit: the scalar at a spot gets another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit<'a> {
    /// Where, as [`super::Reference::spot`] says.
    pub spot: &'a Spot,
    /// The whole new value, with `key=` where one is needed.
    pub value: String,
}

/// Why a file was not edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditError {
    /// 1-based line, 0 if the whole file is meant. Within an inline configuration, a line of that.
    pub line: usize,
    /// 1-based column in characters, 0 if the whole file is meant.
    pub column: usize,
    /// A lower-case phrase.
    pub message: String,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EditError {}

impl EditError {
    fn new(message: impl Into<String>) -> Self {
        EditError {
            line: 0,
            column: 0,
            message: message.into(),
        }
    }

    fn at(stream: &Stream<'_>, offset: usize, message: impl Into<String>) -> Self {
        let (line, column) = stream.position(offset);
        EditError {
            line,
            column,
            message: message.into(),
        }
    }
}

/// Gives scalars new values and changes nothing else in the file.
///
/// `bytes` must be what the spots were read from. Several edits of one scalar must agree.
///
/// # Errors
///
/// Fails when a scalar is no longer there, when one scalar would need two values (a list that two fields share by an
/// anchor), and when the result could not be verified. Nothing is changed then.
pub fn edit(bytes: &[u8], edits: &[Edit<'_>]) -> Result<Vec<u8>, EditError> {
    let text = std::str::from_utf8(bytes).map_err(|_| EditError::new("the file is not UTF-8"))?;
    let changes: Vec<Change<'_>> = edits
        .iter()
        .map(|edit| Change {
            spot: edit.spot,
            value: Some(&edit.value),
        })
        .collect();
    Ok(edit_text(text, &changes)?.text.into_bytes())
}

/// Takes the fields with these values out of their mappings, and changes nothing else in the file. Comments stay,
/// but for one that ends the last line of such a field.
///
/// `bytes` must be what the spots were read from; other values may have been [edited](edit()) since.
///
/// # Errors
///
/// Fails when a value is no longer there, and when the result could not be verified.
pub fn remove(bytes: &[u8], spots: &[&Spot]) -> Result<Vec<u8>, EditError> {
    let text = std::str::from_utf8(bytes).map_err(|_| EditError::new("the file is not UTF-8"))?;
    // From the last to the first, so that no index changes before it is used.
    let mut spots = spots.to_vec();
    spots.sort();
    spots.dedup();
    let mut text = text.to_owned();
    for spot in spots.into_iter().rev() {
        text = edit_text(&text, &[Change { spot, value: None }])?.text;
    }
    Ok(text.into_bytes())
}

/// One edit, of the file or of what is inside a scalar.
#[derive(Debug, Clone, Copy)]
struct Change<'a> {
    spot: &'a Spot,
    /// None: the field goes.
    value: Option<&'a str>,
}

/// Bytes to be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Splice {
    range: Range<usize>,
    with: String,
}

/// A text after its edits.
#[derive(Debug)]
struct Edited {
    text: String,
    splices: Vec<Splice>,
}

/// What one scalar becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    value: String,
    /// The edits inside the scalar that lead to the value.
    inside: Vec<Splice>,
}

/// The values of one document, by the nodes at which they are requested (aliases are not followed).
type Targets = BTreeMap<NodeId, Target>;

fn edit_text(text: &str, changes: &[Change<'_>]) -> Result<Edited, EditError> {
    if let [Change { spot, value: None }] = changes
        && spot.inner.is_none()
    {
        return remove::field(text, spot);
    }
    let Some(last) = changes.iter().map(|change| change.spot.document).max() else {
        return Ok(Edited {
            text: text.to_owned(),
            splices: Vec::new(),
        });
    };
    let stream = Stream::parse(text, last.saturating_add(1)).map_err(|error| EditError {
        line: error.line,
        column: error.column,
        message: format!("not valid YAML: {}", error.message),
    })?;
    let mut wanted: BTreeMap<(usize, &[usize]), Vec<Change<'_>>> = BTreeMap::new();
    for change in changes {
        let place = (change.spot.document, change.spot.path.as_slice());
        wanted.entry(place).or_default().push(*change);
    }
    let mut targets: Vec<Targets> = vec![Targets::new(); stream.documents.len()];
    let mut values = Vec::new();
    for ((index, path), changes) in wanted {
        let document = stream.documents.get(index).ok_or_else(changed)?;
        let node = walk(document, path).ok_or_else(changed)?;
        let target = target(&stream, document, node, &changes)?;
        values.push((index, path, target.value.clone()));
        match targets
            .get_mut(index)
            .and_then(|t| t.insert(node, target.clone()))
        {
            Some(other) if other != target => {
                let message = "the fields that share this value by an anchor need different values";
                return Err(EditError::at(
                    &stream,
                    document.node(node).range.start,
                    message,
                ));
            }
            _ => {}
        }
    }
    let mut failure = EditError::new("nothing to do");
    // A plain value may be taken for something else where it stands; quotes are always right.
    for quote in [false, true] {
        let mut splices = Vec::new();
        let mut expected = Vec::new();
        for (document, targets) in stream.documents.iter().zip(&targets) {
            let targets = settle_aliases(&stream, document, targets)?;
            for (node, target) in &targets {
                splice(&stream, document, *node, target, quote, &mut splices)?;
            }
            expected.push(targets);
        }
        splices.sort_by_key(|splice| splice.range.start);
        let after = apply(text, &splices)?;
        match edit_check::prove(&stream, &after, &expected, &values) {
            Ok(()) => {
                return Ok(Edited {
                    text: after,
                    splices,
                });
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn changed() -> EditError {
    EditError::new("the file is not what the references were read from")
}

fn walk(document: &Document, path: &[usize]) -> Option<NodeId> {
    path.iter()
        .try_fold(document.root()?, |node, step| document.child(node, *step))
}

/// Works out the new value of one scalar.
fn target(
    stream: &Stream<'_>,
    document: &Document,
    node: NodeId,
    changes: &[Change<'_>],
) -> Result<Target, EditError> {
    let text = document.scalar(node).ok_or_else(changed)?;
    // The list that a field is removed from may have been edited before.
    let is_changed = |change: &Change<'_>| change.value.is_some() && *change.spot.text != *text;
    if changes.iter().any(is_changed) {
        return Err(changed());
    }
    // What is a string for objects is one for a kustomization, or it would not have become a reference.
    if document.scalar_type(node, Dialect::Objects) != Some(Type::Text) {
        let at = document.node(node).range.start;
        return Err(EditError::at(stream, at, "only a string can be edited"));
    }
    let inside: Vec<Change<'_>> = changes
        .iter()
        .filter_map(|change| {
            let spot = change.spot.inner.as_deref()?;
            Some(Change { spot, ..*change })
        })
        .collect();
    let conflict = || {
        let at = document.node(node).range.start;
        EditError::at(stream, at, "two edits of one value do not agree")
    };
    if inside.is_empty() {
        let value = changes.first().and_then(|change| change.value);
        let value = value.ok_or_else(changed)?;
        if changes.iter().any(|change| change.value != Some(value)) {
            return Err(conflict());
        }
        return Ok(Target {
            value: value.to_owned(),
            inside: Vec::new(),
        });
    }
    if inside.len() != changes.len() {
        return Err(conflict());
    }
    let edited = edit_text(text, &inside)?;
    Ok(Target {
        value: edited.text,
        inside: edited.splices,
    })
}

/// Sees to it that every user of an anchor gets its own value and no other. Where all users want the same, the
/// anchored scalar changes; otherwise those aliases are replaced by scalars for which its value is wrong.
fn settle_aliases(
    stream: &Stream<'_>,
    document: &Document,
    targets: &Targets,
) -> Result<Targets, EditError> {
    let mut settled = targets.clone();
    let mut users: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for (id, node) in document.nodes().iter().enumerate() {
        if let NodeKind::Alias(anchored) = node.kind {
            users.entry(anchored).or_default().push(id);
        }
    }
    if users.is_empty() {
        return Ok(settled);
    }
    let keys = document.keys();
    for (anchored, aliases) in users {
        let Some(old) = document.scalar(anchored) else {
            continue;
        };
        let Some(new) = targets.get(&anchored) else {
            continue;
        };
        for alias in aliases {
            match targets.get(&alias) {
                Some(target) if target.value == new.value => {
                    settled.remove(&alias);
                }
                Some(_) => {}
                None if keys.contains(&alias) => {
                    let at = document.node(alias).range.start;
                    let message = "this key would change along with the value it is an alias of";
                    return Err(EditError::at(stream, at, message));
                }
                None => {
                    let value = old.to_owned();
                    let inside = Vec::new();
                    settled.insert(alias, Target { value, inside });
                }
            }
        }
    }
    Ok(settled)
}

/// Adds the splices that give a node its value.
fn splice(
    stream: &Stream<'_>,
    document: &Document,
    id: NodeId,
    target: &Target,
    quote: bool,
    splices: &mut Vec<Splice>,
) -> Result<(), EditError> {
    let node = document.node(id);
    let style = match &node.kind {
        NodeKind::Scalar { style, .. } => *style,
        _ => super::yaml::Style::Plain,
    };
    if !target.inside.is_empty()
        && let Some(literal) = Literal::find(stream, node)
        && let Some(inside) = within(&literal, &target.inside)
    {
        splices.extend(inside);
        return Ok(());
    }
    let with = render::scalar(&target.value, style, node.in_flow, quote);
    if !style.is_block() {
        splices.push(Splice {
            range: node.range.clone(),
            with,
        });
        return Ok(());
    }
    let (header, header_line_end) = render::block_header(stream, document, id)
        .ok_or_else(|| EditError::at(stream, node.range.start, "cannot find where this begins"))?;
    // The comment of the header stays.
    splices.push(Splice {
        range: header,
        with,
    });
    splices.push(Splice {
        range: header_line_end..stream.scalar_end(node).max(header_line_end),
        with: String::new(),
    });
    Ok(())
}

/// Moves splices from the value of a literal block scalar to the text around it.
fn within(literal: &Literal, splices: &[Splice]) -> Option<Vec<Splice>> {
    splices
        .iter()
        .map(|splice| {
            let start = literal.offset(splice.range.start)?;
            let end = literal.offset(splice.range.end)?;
            Some(Splice {
                range: start..end,
                with: splice.with.clone(),
            })
        })
        .collect()
}

/// Applies splices that are sorted and do not overlap.
fn apply(text: &str, splices: &[Splice]) -> Result<String, EditError> {
    let overlap = || EditError::new("edits overlap");
    let mut after = String::with_capacity(text.len());
    let mut at = 0;
    for splice in splices {
        after.push_str(text.get(at..splice.range.start).ok_or_else(overlap)?);
        after.push_str(&splice.with);
        at = splice.range.end;
    }
    after.push_str(text.get(at..).ok_or_else(overlap)?);
    Ok(after)
}

#[cfg(test)]
mod tests;

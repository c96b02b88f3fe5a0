//! The proof that an edited text is the old one with the intended values, and nothing else.

use super::{EditError, Targets};
use crate::kustomization::libyaml_check;
use crate::kustomization::yaml::{NodeKind, Stream};

/// Compares the stream before with the text after, node by node and then value by value.
///
/// `expected` lists for each document which nodes were written anew. `values` is what was requested: document, path and
/// value; the second comparison follows the aliases, so a value that leaks through an anchor is found.
pub(super) fn prove(
    before: &Stream<'_>,
    after: &str,
    expected: &[Targets],
    values: &[(usize, &[usize], String)],
) -> Result<(), EditError> {
    let unproven = |at: usize| {
        EditError::at(
            before,
            at,
            "the edit could not be proven to change this value alone",
        )
    };
    let count = before.documents.len();
    let reread = Stream::parse(after, count).map_err(|_| unproven(0))?;
    if reread.documents.len() != count || reread.rest.is_some() != before.rest.is_some() {
        return Err(unproven(0));
    }
    let documents = before.documents.iter().zip(&reread.documents);
    for ((old, new), targets) in documents.zip(expected) {
        if old.nodes().len() != new.nodes().len() {
            return Err(unproven(0));
        }
        for (id, (was, is)) in old.nodes().iter().zip(new.nodes()).enumerate() {
            let written = targets.get(&id).map(|target| target.value.as_str());
            let same = match (&was.kind, &is.kind) {
                (
                    NodeKind::Scalar { value, style },
                    NodeKind::Scalar {
                        value: new,
                        style: to,
                    },
                ) => match written {
                    Some(written) => new == written,
                    None => value == new && style == to,
                },
                (NodeKind::Alias(_), NodeKind::Scalar { value, .. }) => {
                    written == Some(value.as_str())
                }
                (NodeKind::Alias(from), NodeKind::Alias(to)) => written.is_none() && from == to,
                (NodeKind::Sequence(from), NodeKind::Sequence(to)) => from == to,
                (NodeKind::Mapping(from), NodeKind::Mapping(to)) => from == to,
                _ => false,
            };
            let properties =
                (was.anchor, &was.tag, was.in_flow) == (is.anchor, &is.tag, is.in_flow);
            if !same || !properties {
                return Err(unproven(was.range.start));
            }
        }
    }
    let read = |text: &str| libyaml_check::values(text, count).map_err(|_| unproven(0));
    let mut wanted = read(before.text)?;
    for (document, path, value) in values {
        let leaf = wanted
            .get_mut(*document)
            .and_then(|root| root.descend(path)?.text())
            .ok_or_else(|| unproven(0))?;
        leaf.clone_from(value);
    }
    if wanted == read(after)? {
        Ok(())
    } else {
        Err(EditError::new(
            "another field shares this value by an anchor and would change with it",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::{Stream, Targets, prove};

    /// Whether a text is proven to be `BEFORE` with `a` replaced by `new`.
    fn holds(after: &str) -> bool {
        let before = Stream::parse(BEFORE, 2).unwrap();
        let a = before.documents[0]
            .nodes()
            .iter()
            .position(|node| BEFORE[node.range.clone()] == *"a");
        let target = Target {
            value: "new".to_owned(),
            inside: Vec::new(),
        };
        let expected = [Targets::from([(a.unwrap(), target)]), Targets::new()];
        let path: &[usize] = &[0, 0];
        let values = [(0, path, "new".to_owned())];
        prove(&before, after, &expected, &values).is_ok()
    }

    const BEFORE: &str = "r: [a, &x b, *x]\nk: 'v' # c\n---\nz\n";

    #[test]
    fn the_proof_sees_every_other_change() {
        assert!(holds(&BEFORE.replace("[a", "[new")));
        assert!(holds(&BEFORE.replace("[a", "['new'")));
        for (from, to) in [
            ("[a", "[a"),
            ("[a", "[other"),
            ("[a", "[!t new"),
            ("[a", "[&y new"),
            ("[a", "[[new]"),
            ("[a, &x b", "[&x b, new"),
            ("[a, &x b, *x", "[new, &x b, b"),
            ("[a, &x b, *x", "[new, b, b"),
            ("[a, &x b, *x]", "[new, &x b, *x, c]"),
            ("[a, &x b, *x]\n", "[new, &x b, *x]\nm: n\n"),
            ("r: [a", "s: [new"),
        ] {
            assert!(!holds(&BEFORE.replace(from, to)), "{from} -> {to}");
        }
        let right = BEFORE.replace("[a", "[new");
        for (from, to) in [
            ("'v'", "\"v\""),
            ("'v'", "w"),
            ("z", "y"),
            ("---\nz\n", ""),
            ("---\nz\n", "---\nz\n---\n"),
            ("*x", "*y"),
        ] {
            assert!(!holds(&right.replace(from, to)), "{from} -> {to}");
        }
    }
}

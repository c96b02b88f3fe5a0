//! Taking a field out of a mapping.

use super::{EditError, Edited, Splice, apply, changed, walk};
use crate::kustomization::Spot;
use crate::kustomization::libyaml_check;
use crate::kustomization::yaml::{Document, NodeId, NodeKind, Stream};

/// Takes out the field whose value stands at `spot`.
pub(super) fn field(text: &str, spot: &Spot) -> Result<Edited, EditError> {
    let count = spot.document.saturating_add(1);
    let stream = Stream::parse(text, count).map_err(|error| EditError {
        line: error.line,
        column: error.column,
        message: format!("not valid YAML: {}", error.message),
    })?;
    let document = stream.documents.get(spot.document).ok_or_else(changed)?;
    let (last, above) = spot.path.split_last().ok_or_else(changed)?;
    let mapping = walk(document, above).ok_or_else(changed)?;
    let NodeKind::Mapping(pairs) = &document.resolved(mapping).kind else {
        return Err(changed());
    };
    let (key, value) = *pairs.get(*last).ok_or_else(changed)?;
    if document.scalar(value) != Some(&*spot.text) {
        return Err(changed());
    }
    let range = if document.node(key).in_flow {
        in_flow(&stream, document, pairs, *last)
    } else {
        in_block(&stream, document, key, value)
    };
    let at = document.node(key).range.start;
    let unproven = || {
        EditError::at(
            &stream,
            at,
            "this field cannot be removed without changing other fields",
        )
    };
    let splice = Splice {
        range: range.ok_or_else(unproven)?,
        with: String::new(),
    };
    let after = apply(text, std::slice::from_ref(&splice))?;
    // Aliases are followed on both sides: what another field shares with this one is still there.
    let mut wanted = libyaml_check::values(text, count).map_err(|_| unproven())?;
    let is_out = wanted
        .get_mut(spot.document)
        .is_some_and(|document| document.remove(&spot.path));
    let same = libyaml_check::values(&after, count).is_ok_and(|values| values == wanted);
    // The reader of positions must agree.
    let reread = Stream::parse(&after, count)
        .is_ok_and(|reread| reread.documents.len() == stream.documents.len());
    if is_out && same && reread {
        Ok(Edited {
            text: after,
            splices: vec![splice],
        })
    } else {
        Err(unproven())
    }
}

/// Returns where a value ends.
fn end(stream: &Stream<'_>, document: &Document, value: NodeId) -> usize {
    let node = document.node(value);
    match node.kind {
        NodeKind::Scalar { .. } => stream.scalar_end(node).max(node.range.end),
        _ => node.range.end,
    }
}

/// Inside `{}`: with the comma after it, else with the one before it.
fn in_flow(
    stream: &Stream<'_>,
    document: &Document,
    pairs: &[(NodeId, NodeId)],
    index: usize,
) -> Option<std::ops::Range<usize>> {
    let (key, value) = *pairs.get(index)?;
    let start = document.node(key).range.start;
    if let Some((next, _)) = pairs.get(index + 1) {
        return Some(start..document.node(*next).range.start);
    }
    let from = match index.checked_sub(1).and_then(|before| pairs.get(before)) {
        Some((_, before)) if is_leaf(document, *before) => end(stream, document, *before),
        Some(_) => {
            let before = stream.text.get(..start)?;
            before.rfind(',')?
        }
        None => start,
    };
    Some(from..end(stream, document, value))
}

fn is_leaf(document: &Document, node: NodeId) -> bool {
    matches!(
        document.node(node).kind,
        NodeKind::Scalar { .. } | NodeKind::Alias(_)
    )
}

/// On lines of its own: these lines. After the `-` of a list: up to what comes next.
fn in_block(
    stream: &Stream<'_>,
    document: &Document,
    key: NodeId,
    value: NodeId,
) -> Option<std::ops::Range<usize>> {
    let text = stream.text;
    let start = document.node(key).range.start;
    let end = end(stream, document, value);
    let line = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = if line == 0 && text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        line
    };
    let rest = text.get(end..)?;
    let before = text.get(..end)?.trim_end_matches([' ', '\t']);
    let line_end = if before.ends_with('\n') {
        // A block scalar ends with its last line.
        before.len()
    } else {
        end + rest.find('\n').map_or(rest.len(), |at| at + 1)
    };
    if text.get(line..start)?.trim().is_empty() {
        return Some(line..line_end);
    }
    let after = text.get(line_end..)?;
    Some(start..line_end + (after.len() - after.trim_start().len()))
}

#[cfg(test)]
mod tests {
    use crate::kustomization::{NoteKind, read, read_plugin, remove};

    /// Takes `repo` out of every chart.
    fn without_repo(text: &str) -> Result<String, String> {
        let notes = match read(text.as_bytes()) {
            Ok(read) => read.notes,
            Err(_) => read_plugin(text.as_bytes(), None).unwrap().notes,
        };
        let spots: Vec<_> = notes
            .iter()
            .filter_map(|note| match &note.kind {
                NoteKind::RemoteChart { repo_spot, .. } => Some(repo_spot),
                _ => None,
            })
            .collect();
        assert!(!spots.is_empty(), "no repo in {text}");
        remove(text.as_bytes(), &spots)
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .map_err(|error| error.message)
    }

    #[test]
    fn a_field_goes_and_everything_around_it_stays() {
        for (before, after) in [
            (
                "# top\nhelmCharts:\n  # ours\n  - name: a # kept\n    # about it\n    repo: https://h # gone\n    version: 1.2.3\n",
                "# top\nhelmCharts:\n  # ours\n  - name: a # kept\n    # about it\n    version: 1.2.3\n",
            ),
            (
                "helmCharts:\n-   repo: https://h\n\n    name: a\n- name: b\n",
                "helmCharts:\n-   name: a\n- name: b\n",
            ),
            (
                "helmCharts:\n- repo: https://h\n  # which\n  name: a\n",
                "helmCharts:\n- # which\n  name: a\n",
            ),
            (
                "helmCharts:\r\n- name: a\r\n  repo: 'https://h'",
                "helmCharts:\r\n- name: a\r\n",
            ),
            (
                "helmCharts:\n- name: a\n  repo: >-\n    https://h\n  version: v1\n# end\n",
                "helmCharts:\n- name: a\n  version: v1\n# end\n",
            ),
            (
                "helmCharts: [{name: a, repo: https://h, version: v1}, {repo: https://i, name: b}, {name: c, repo: 'https://j'}]\n",
                "helmCharts: [{name: a, version: v1}, {name: b}, {name: c}]\n",
            ),
            (
                "{\"helmCharts\": [{\"name\": \"a\",\n  \"repo\": \"https://h\"\n}]}\n",
                "{\"helmCharts\": [{\"name\": \"a\"\n}]}\n",
            ),
            (
                "helmCharts:\n- name: a\n  repo: https://h\n- name: b\n  repo: https://i\n  version: v2\n",
                "helmCharts:\n- name: a\n- name: b\n  version: v2\n",
            ),
        ] {
            assert_eq!(without_repo(before).as_deref(), Ok(after), "{before}");
        }
    }

    #[test]
    fn inline_configurations_keep_their_form() {
        let plugin = "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\nname: a\nrepo: https://h # c\nversion: v1\n";
        let expected = plugin.replace("repo: https://h # c\n", "");
        assert_eq!(without_repo(plugin).unwrap(), expected);
        let inline = |text: &str| {
            format!(
                "generators:\n- |-\n  {}\n# end\n",
                text.trim_end().replace('\n', "\n  ")
            )
        };
        assert_eq!(without_repo(&inline(plugin)).unwrap(), inline(&expected));
    }

    #[test]
    fn shared_anchors_are_not_removed() {
        for text in [
            // The anchor would be gone.
            "helmCharts:\n- name: a\n  repo: &r https://h\n- name: b\n  repo: *r\n  version: x\nnamePrefix: *r\n",
            // Both entries are one mapping.
            "helmCharts:\n- &a\n  name: a\n  repo: https://h\n- *a\n",
        ] {
            assert!(without_repo(text).is_err(), "{text}");
        }
    }
}

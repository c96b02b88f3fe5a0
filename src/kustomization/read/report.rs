//! What is reported, and where.

use super::Place;
use super::decode::Reader;
use super::keys::Entry;
use crate::failure::nearest;
use crate::kustomization::fields::Struct;
use crate::kustomization::yaml::{NodeId, NodeKind, Type};
use crate::kustomization::{Note, NoteKind, ProblemKind};

impl Reader<'_> {
    pub(super) fn wrong_type(&mut self, place: &Place, field: &str, wanted: &str) {
        let found = self.document.scalar_type(place.node, self.dialect);
        let text = self.document.scalar(place.node).unwrap_or_default();
        let is = match (&self.document.resolved(place.node).kind, found) {
            (NodeKind::Sequence(_), _) => "a list".to_owned(),
            (NodeKind::Mapping(_), _) => "a mapping".to_owned(),
            (_, Some(Type::Bool(_))) => format!("the boolean `{text}`"),
            (_, Some(Type::Integer | Type::Float)) => format!("the number `{text}`"),
            (_, Some(Type::Null)) => "nothing".to_owned(),
            (_, Some(Type::Invalid)) => "a value that does not fit its tag".to_owned(),
            _ => "a string".to_owned(),
        };
        let mut hints = Vec::new();
        match found {
            Some(Type::Bool(_) | Type::Integer | Type::Float) if wanted == "a string" => {
                hints.push(format!("quote it: `\"{text}\"`"));
            }
            Some(Type::Text) if wanted.starts_with("a list") => {
                hints.push("write each entry on its own line, after `- `".to_owned());
            }
            // As `patches` was written before kustomize 3.
            Some(Type::Text) if wanted == "a mapping" && field.starts_with("patches[") => {
                let key = if text.contains('\n') {
                    "patch: |-".to_owned()
                } else {
                    format!("path: {text}")
                };
                hints.push(format!("say what it is: `- {key}`"));
            }
            _ => {}
        }
        let message = format!("expected {wanted}, found {is}");
        self.problem(place.node, field, ProblemKind::WrongType, message, hints);
    }

    pub(super) fn unknown_field(&mut self, record: &Struct, entry: &Entry, field: &str) {
        let names = record.fields.iter().map(|(name, _)| *name);
        let hints = nearest(&entry.key, names)
            .map(|name| format!("did you mean `{name}`?"))
            .into_iter()
            .collect();
        let message = format!("unknown field `{}`", entry.key);
        let field = super::join(field, &entry.key);
        self.problem(
            entry.key_node,
            &field,
            ProblemKind::UnknownField,
            message,
            hints,
        );
    }

    /// Refuses a field that is not followed.
    pub(in crate::kustomization) fn refused(&mut self, place: &Place, field: &str, hint: &str) {
        let message = "this field is not supported".to_owned();
        let kind = ProblemKind::UnknownField;
        self.problem(place.node, field, kind, message, vec![hint.to_owned()]);
    }

    /// Refuses a key that a mapping holds already: kustomize takes one of the two, or part of each.
    pub(super) fn duplicate(&mut self, first: NodeId, second: NodeId, field: &str) {
        let (line, _) = self.whereabouts.start(self.document.node(first));
        let message = format!("the same field is in line {line}");
        let hints = vec!["put both into one field, or remove one of them".to_owned()];
        self.problem(second, field, ProblemKind::DuplicateKey, message, hints);
    }

    pub(in crate::kustomization) fn note(
        &mut self,
        node: NodeId,
        field: &str,
        kind: NoteKind,
        message: String,
    ) {
        if !self.found.has_room() {
            return;
        }
        let (line, column) = self.whereabouts.start(self.document.node(node));
        self.found.notes.push(Note {
            line,
            column,
            field: self.whereabouts.label(field),
            kind,
            message,
        });
    }

    pub(in crate::kustomization) fn problem(
        &mut self,
        node: NodeId,
        field: &str,
        kind: ProblemKind,
        message: String,
        hints: Vec<String>,
    ) {
        let start = self.document.node(node).start;
        self.whereabouts
            .problem(start, field, kind, message, hints, self.found);
    }
}

//! One value after the other, as Go's `encoding/json` would decode them.

use super::Found;
use super::keys::{self, Entry};
use super::whereabouts::{Place, Whereabouts};
use crate::kustomization::ProblemKind;
use crate::kustomization::fields::{Role, Shape, Struct};
use crate::kustomization::yaml::{Dialect, Document, NodeId, NodeKind, Type};

/// Applies the table to one document, or one object in it.
pub(in crate::kustomization) struct Reader<'d> {
    pub(in crate::kustomization) document: &'d Document,
    /// Index of the document in its stream.
    pub(super) index: usize,
    pub(super) dialect: Dialect,
    pub(in crate::kustomization) whereabouts: Whereabouts<'d>,
    pub(in crate::kustomization) found: &'d mut Found,
    pub(super) chart: Option<Chart>,
}

/// The strings of one chart, unchanged.
#[derive(Debug, Default)]
pub(super) struct Chart {
    pub name: String,
    pub version: String,
    pub repo: Option<(Place, String)>,
    pub values_file: bool,
    pub devel: bool,
}

impl<'d> Reader<'d> {
    pub(crate) fn new(
        document: &'d Document,
        index: usize,
        dialect: Dialect,
        whereabouts: Whereabouts<'d>,
        found: &'d mut Found,
    ) -> Self {
        Reader {
            document,
            index,
            dialect,
            whereabouts,
            found,
            chart: None,
        }
    }

    /// Returns a reader of the same document that reads it as a kustomization. `prefix` stands before every field.
    pub(in crate::kustomization) fn as_strict(&mut self, prefix: &str) -> Reader<'_> {
        Reader {
            document: self.document,
            index: self.index,
            dialect: Dialect::Kustomization,
            whereabouts: self.whereabouts.within(prefix),
            found: self.found,
            chart: None,
        }
    }

    /// Reads a whole struct; returns whether anything in it is set. `kind` and `apiVersion` do not count.
    pub(crate) fn root(&mut self, record: &'static Struct, place: Place) -> bool {
        self.record(record, &place, "")
    }

    /// Decodes one value. Returns whether it differs from the zero value of its type.
    fn value(&mut self, shape: &'static Shape, place: &Place, field: &str) -> bool {
        match shape {
            Shape::Text(role) => self.text(*role, place, field),
            Shape::Bool => self.boolean(place, field),
            Shape::Devel => {
                let devel = self.boolean(place, field);
                if let Some(chart) = &mut self.chart {
                    chart.devel = devel;
                }
                devel
            }
            Shape::Integer => self.integer(place, field),
            // Where all of its texts are empty, it is as if it were not there.
            Shape::List(item @ Shape::Text(Role::PatchOrFile)) | Shape::Folded(item) => {
                self.list(item, place, field)
            }
            Shape::List(item) => {
                self.list(item, place, field);
                true
            }
            Shape::Texts(roles) => {
                self.texts(roles, place, field);
                true
            }
            Shape::Values => {
                let kind = &self.document.resolved(place.node).kind;
                if !matches!(kind, NodeKind::Mapping(_)) {
                    self.wrong_type(place, field, "a mapping");
                }
                true
            }
            Shape::Struct(record) => self.record(record, place, field),
            Shape::Pointer(record) => {
                self.record(record, place, field);
                true
            }
            Shape::Refused(hint) => {
                self.refused(place, field, hint);
                true
            }
        }
    }

    fn record(&mut self, record: &'static Struct, place: &Place, field: &str) -> bool {
        let problems = self.found.problems.len();
        let outer = record.chart.then(|| self.chart.replace(Chart::default()));
        let mut values: Vec<Option<Entry>> = Vec::new();
        values.resize_with(record.fields.len(), || None);
        let Some(entries) = self.entries(place, field) else {
            self.wrong_type(place, field, "a mapping");
            return false;
        };
        for entry in entries {
            let known = record
                .fields
                .iter()
                .position(|(name, _)| keys::equal(name, &entry.key));
            match known {
                Some(known) => match &values[known] {
                    Some(other) => {
                        let field = join(field, record.fields[known].0);
                        self.duplicate(other.key_node, entry.key_node, &field);
                    }
                    None => values[known] = Some(entry),
                },
                None if self.dialect == Dialect::Kustomization => {
                    self.unknown_field(record, &entry, field);
                }
                None => {}
            }
        }
        let mut filled = false;
        let mut has_one = false;
        for ((name, shape), entry) in record.fields.iter().zip(values) {
            if let Some(entry) = entry.filter(|entry| !self.is_null(entry.place.node)) {
                let is_set = self.value(shape, &entry.place, &join(field, name));
                filled |= is_set;
                has_one |= is_set && record.one_of.contains(name);
            }
        }
        if !has_one && self.found.problems.len() == problems {
            self.needs_one(record, place.node, field);
        }
        if let Some(outer) = outer
            && let Some(chart) = std::mem::replace(&mut self.chart, outer)
        {
            self.note_chart(chart, place, field);
        }
        filled
    }

    /// Refuses a struct without any of the fields of which kustomize needs one.
    fn needs_one(&mut self, record: &Struct, node: NodeId, field: &str) {
        if record.one_of.is_empty() {
            return;
        }
        let names: Vec<String> = record
            .one_of
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let message = format!("none of {} says anything", names.join(", "));
        let hints = vec!["set one of them, or take the entry out".to_owned()];
        self.problem(node, field, ProblemKind::Entry, message, hints);
    }

    fn list(&mut self, item: &'static Shape, place: &Place, field: &str) -> bool {
        let NodeKind::Sequence(nodes) = &self.document.resolved(place.node).kind else {
            self.wrong_type(place, field, item.plural());
            return false;
        };
        let mut any_is_set = false;
        for (i, node) in nodes.iter().enumerate() {
            let field = format!("{field}[{i}]");
            let is_null = self.is_null(*node);
            let is_set = !is_null && self.value(item, &place.child(*node, i), &field);
            any_is_set |= is_set;
            match item {
                Shape::Text(role) if !is_set && role.is_never_empty() => {
                    self.empty_entry(*node, &field);
                }
                Shape::Struct(record) if is_null => self.needs_one(record, *node, &field),
                _ => {}
            }
        }
        if !matches!(item, Shape::Text(Role::PatchOrFile)) {
            return !nodes.is_empty();
        }
        if let (Some(first), false, Dialect::Kustomization) =
            (nodes.first(), any_is_set, self.dialect)
        {
            self.empty_entry(*first, &format!("{field}[0]"));
        }
        any_is_set
    }

    fn texts(&mut self, roles: &'static [(&str, Role)], place: &Place, field: &str) {
        let Some(entries) = self.entries(place, field) else {
            self.wrong_type(place, field, "a mapping of strings");
            return;
        };
        for entry in entries {
            let field = join(field, &entry.key);
            let role = roles.iter().find(|(name, _)| *name == entry.key);
            // Nothing is an empty string for `encoding/json`.
            let is_null = self.is_null(entry.place.node);
            let is_set = !is_null
                && match role {
                    Some((_, role)) => self.text(*role, &entry.place, &field),
                    None => self.string(&entry.place, &field).is_some(),
                };
            if role.is_some() && !is_set {
                self.empty_entry(entry.place.node, &field);
            }
        }
    }

    fn boolean(&mut self, place: &Place, field: &str) -> bool {
        if let Some(Type::Bool(found)) = self.document.scalar_type(place.node, self.dialect) {
            return found;
        }
        self.wrong_type(place, field, "a boolean");
        false
    }

    fn integer(&mut self, place: &Place, field: &str) -> bool {
        let text = self.document.scalar(place.node).unwrap_or_default();
        let whole = match self.document.scalar_type(place.node, self.dialect) {
            Some(Type::Integer) => true,
            // `encoding/json` sees 2.0 and 1e2 as whole numbers, because they are written out as such.
            Some(Type::Float) => text
                .parse::<f64>()
                .is_ok_and(|n| n.fract() == 0.0 && n.abs() < 1e18),
            _ => false,
        };
        if !whole {
            self.wrong_type(place, field, "a whole number");
        }
        text != "0"
    }

    /// Returns whether a node is nothing.
    pub(in crate::kustomization) fn is_null(&self, node: NodeId) -> bool {
        self.document.scalar_type(node, self.dialect) == Some(Type::Null)
    }
}

impl Shape {
    /// Returns what a list of such values is called.
    fn plural(&self) -> &'static str {
        match self {
            Shape::Text(_) => "a list of strings",
            _ => "a list of mappings",
        }
    }
}

/// Joins a field and the name of one in it.
pub(in crate::kustomization) fn join(field: &str, name: &str) -> String {
    if field.is_empty() {
        name.to_owned()
    } else {
        [field, ".", name].concat()
    }
}

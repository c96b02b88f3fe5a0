//! One value after the other, as Go's `encoding/json` would decode them.

use std::collections::HashMap;

use super::keys::{self, Entry};
use super::whereabouts::{Place, Whereabouts};
use super::{Found, MOST_VISITS};
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
    /// What is read is replaced by something else; only its problems count.
    pub(super) dead: bool,
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
            dead: false,
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
            dead: false,
            chart: None,
        }
    }

    /// Reads a whole struct; returns whether anything in it is set. `kind` and `apiVersion` do not count.
    pub(crate) fn root(&mut self, record: &'static Struct, place: Place) -> bool {
        self.record(record, &[place], "")
    }

    /// Decodes one value. Go decodes equal keys one after the other into the same variable; `layers` are these
    /// values, the last one on top. Returns whether the variable differs from its zero value.
    fn value(&mut self, shape: &'static Shape, layers: &[Place], field: &str) -> bool {
        let Some(top) = layers.last() else {
            return false;
        };
        self.found.visits += layers.len();
        if self.found.visits > self.most_visits() {
            if self.found.visits - layers.len() <= self.most_visits() {
                let message = "aliases in this file expand beyond all measure".to_owned();
                self.problem(top.node, field, ProblemKind::TooLarge, message, vec![]);
            }
            return true;
        }
        match shape {
            Shape::Text(role) => self.text(*role, layers, field),
            Shape::Bool => self.boolean(layers, field),
            Shape::Devel => {
                let devel = self.boolean(layers, field);
                if let Some(chart) = self.chart.as_mut().filter(|_| !self.dead) {
                    chart.devel = devel;
                }
                devel
            }
            Shape::Integer => self.integer(layers, field),
            // Where all of its texts are empty, it is as if it were not there.
            Shape::List(item @ Shape::Text(Role::PatchOrFile)) | Shape::Folded(item) => {
                self.list(item, layers, field)
            }
            Shape::List(item) => {
                self.list(item, layers, field);
                true
            }
            Shape::Texts(roles) => {
                self.texts(roles, layers, field);
                true
            }
            Shape::Values => {
                for layer in layers {
                    if !matches!(
                        self.document.resolved(layer.node).kind,
                        NodeKind::Mapping(_)
                    ) {
                        self.wrong_type(layer, field, "a mapping");
                    }
                }
                true
            }
            Shape::Struct(record) => self.record(record, layers, field),
            Shape::Pointer(record) => {
                self.record(record, layers, field);
                true
            }
        }
    }

    /// A file without aliases never reaches this.
    pub(super) fn most_visits(&self) -> usize {
        MOST_VISITS + self.document.nodes().len()
    }

    fn record(&mut self, record: &'static Struct, layers: &[Place], field: &str) -> bool {
        let problems = self.found.problems.len();
        let outer = record.chart.then(|| self.chart.replace(Chart::default()));
        let mut values: Vec<Vec<Place>> = Vec::new();
        values.resize_with(record.fields.len(), Vec::new);
        for layer in layers {
            let Some(mut entries) = self.entries(layer, field) else {
                self.wrong_type(layer, field, "a mapping");
                continue;
            };
            // The keys reach `encoding/json` in the order of their bytes.
            entries.sort_by(|a, b| a.key.cmp(&b.key));
            let mut seen: Vec<(usize, Entry)> = Vec::new();
            for entry in entries {
                let known = record
                    .fields
                    .iter()
                    .position(|(name, _)| keys::equal(name, &entry.key));
                let Some(known) = known else {
                    if self.dialect == Dialect::Kustomization {
                        self.unknown_field(record, &entry, field);
                    }
                    continue;
                };
                let (name, shape) = &record.fields[known];
                if let Some((_, loser)) = seen.iter().find(|(index, _)| *index == known) {
                    let field = join(field, name);
                    self.duplicate(loser.key_node, entry.key_node, &field);
                }
                if self.document.scalar_type(entry.place.node, self.dialect) == Some(Type::Null) {
                    match shape {
                        Shape::Text(_)
                        | Shape::Bool
                        | Shape::Devel
                        | Shape::Integer
                        | Shape::Struct(_) => {}
                        _ => {
                            let gone = std::mem::take(&mut values[known]);
                            self.discard(shape, &gone, &join(field, name));
                        }
                    }
                } else {
                    values[known].push(entry.place.clone());
                }
                seen.retain(|(index, _)| *index != known);
                seen.push((known, entry));
            }
        }
        let mut filled = false;
        let mut has_one = false;
        for ((name, shape), layers) in record.fields.iter().zip(&values) {
            if !layers.is_empty() {
                let is_set = self.value(shape, layers, &join(field, name));
                filled |= is_set;
                has_one |= is_set && record.one_of.contains(name);
            }
        }
        if let Some(top) = layers.last()
            && !has_one
            && self.found.problems.len() == problems
        {
            self.needs_one(record, top.node, field);
        }
        if let Some(outer) = outer {
            let chart = std::mem::replace(&mut self.chart, outer);
            if let (Some(chart), Some(top)) = (chart, layers.last()) {
                self.note_chart(chart, top, field);
            }
        }
        filled
    }

    /// Refuses a struct without any of the fields of which kustomize needs one.
    fn needs_one(&mut self, record: &Struct, node: NodeId, field: &str) {
        if self.dead || record.one_of.is_empty() {
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

    fn list(&mut self, item: &'static Shape, layers: &[Place], field: &str) -> bool {
        // One vector for each index: Go decodes into the elements that are already there.
        let mut items: Vec<Vec<Place>> = Vec::new();
        let mut length = 0;
        for layer in layers {
            let NodeKind::Sequence(nodes) = &self.document.resolved(layer.node).kind else {
                self.wrong_type(layer, field, item.plural());
                continue;
            };
            length = nodes.len();
            if length == 0 {
                for (i, gone) in std::mem::take(&mut items).iter().enumerate() {
                    self.discard(item, gone, &format!("{field}[{i}]"));
                }
            }
            items.resize_with(items.len().max(length), Vec::new);
            for (i, node) in nodes.iter().enumerate() {
                let is_null = self.document.scalar_type(*node, self.dialect) == Some(Type::Null);
                match item {
                    _ if !is_null => items[i].push(layer.child(*node, i)),
                    Shape::Text(_)
                    | Shape::Bool
                    | Shape::Devel
                    | Shape::Integer
                    | Shape::Struct(_) => {}
                    _ => {
                        let gone = std::mem::take(&mut items[i]);
                        self.discard(item, &gone, &format!("{field}[{i}]"));
                    }
                }
            }
        }
        let mut any_is_set = false;
        let last = layers
            .last()
            .map(|layer| self.document.resolved(layer.node));
        let nodes: &[NodeId] = match last.map(|node| &node.kind) {
            Some(NodeKind::Sequence(nodes)) => nodes,
            _ => &[],
        };
        for (i, elements) in items.iter().enumerate() {
            let field = format!("{field}[{i}]");
            if i < length {
                let is_set = self.value(item, elements, &field);
                let node = nodes.get(i).copied();
                match (item, node.filter(|_| !is_set)) {
                    (Shape::Text(role), Some(node)) if role.is_never_empty() => {
                        self.empty_entry(node, &field);
                    }
                    (Shape::Struct(record), Some(node)) if elements.is_empty() => {
                        self.needs_one(record, node, &field);
                    }
                    _ => any_is_set |= is_set && !elements.is_empty(),
                }
            } else {
                self.discard(item, elements, &field);
            }
        }
        if let (Shape::Text(Role::PatchOrFile), Some(first), false, Dialect::Kustomization) =
            (item, nodes.first(), any_is_set, self.dialect)
        {
            self.empty_entry(*first, &format!("{field}[0]"));
        }
        match item {
            Shape::Text(Role::PatchOrFile) => any_is_set,
            _ => length > 0,
        }
    }

    /// Decodes what is replaced by something else: it must have the right type all the same.
    fn discard(&mut self, shape: &'static Shape, layers: &[Place], field: &str) {
        let was = std::mem::replace(&mut self.dead, true);
        self.value(shape, layers, field);
        self.dead = was;
    }

    fn texts(&mut self, roles: &'static [(&str, Role)], layers: &[Place], field: &str) {
        let mut last: HashMap<String, Place> = HashMap::new();
        for layer in layers {
            let Some(entries) = self.entries(layer, field) else {
                self.wrong_type(layer, field, "a mapping of strings");
                continue;
            };
            for entry in entries {
                // Nothing is an empty string for `encoding/json`.
                if self.document.scalar_type(entry.place.node, self.dialect) != Some(Type::Null) {
                    self.string(&entry.place, &join(field, &entry.key));
                }
                last.insert(entry.key, entry.place);
            }
        }
        for (name, role) in roles {
            if let Some(place) = last.remove(*name) {
                let field = join(field, name);
                let is_null =
                    self.document.scalar_type(place.node, self.dialect) == Some(Type::Null);
                if is_null || !self.text(*role, std::slice::from_ref(&place), &field) {
                    self.empty_entry(place.node, &field);
                }
            }
        }
    }

    fn boolean(&mut self, layers: &[Place], field: &str) -> bool {
        let mut value = false;
        for layer in layers {
            match self.document.scalar_type(layer.node, self.dialect) {
                Some(Type::Bool(found)) => value = found,
                _ => self.wrong_type(layer, field, "a boolean"),
            }
        }
        value
    }

    fn integer(&mut self, layers: &[Place], field: &str) -> bool {
        let mut filled = false;
        for layer in layers {
            let text = self.document.scalar(layer.node).unwrap_or_default();
            let whole = match self.document.scalar_type(layer.node, self.dialect) {
                Some(Type::Integer) => true,
                // `encoding/json` sees 2.0 and 1e2 as whole numbers, because they are written out as such.
                Some(Type::Float) => text
                    .parse::<f64>()
                    .is_ok_and(|n| n.fract() == 0.0 && n.abs() < 1e18),
                _ => false,
            };
            if !whole {
                self.wrong_type(layer, field, "a whole number");
            }
            filled = text != "0";
        }
        filled
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

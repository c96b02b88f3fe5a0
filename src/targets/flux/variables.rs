//! `${VAR}` in objects: Flux fills it in after the build, with what `spec.postBuild` of the object that deploys it says.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::super::Unread;
use super::super::scan::{Document, Via};
use super::super::{Found, Here, Identity, Target};
use super::{is_variable, kustomization, resource_set, sources};
use crate::failure::Result;
use crate::kustomization::{self, Data, FILE_NAMES, Value};
use crate::tree::{self, Entry, Listing, Resolved, Tree, path};

/// How deep objects may fill in each other.
const DEEPEST: usize = 100;
/// How many objects may come of it.
const MOST: usize = 20_000;

/// What keeps an object as its file has it.
const SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";

/// Returns the objects of Flux with their variables filled in, and what sets of resources make. An object that several
/// parents fill in differently becomes several.
pub(super) fn fill(
    tree: &dyn Listing,
    identity: &Identity,
    objects: &[Document],
    templated: &mut Vec<Target>,
    unread: &mut Vec<Unread>,
) -> Result<Vec<Document>> {
    let (waiting, known): (Vec<&Document>, Vec<&Document>) =
        objects.iter().partition(|found| has_variable(&found.value));
    let mut by: HashMap<(Via, &str), Vec<usize>> = HashMap::new();
    for (index, found) in waiting.iter().enumerate() {
        by.entry(found.deployed_as()).or_default().push(index);
    }
    let mut filling = Filling {
        tree,
        identity,
        waiting: &waiting,
        by,
        known: Vec::new(),
        is_filled: vec![false; waiting.len()],
        seen: HashSet::new(),
        files: HashMap::new(),
        templated,
        unread,
    };
    for found in known {
        filling.admit(found.clone(), None, None);
    }
    filling.all()?;
    let Filling {
        known, is_filled, ..
    } = filling;
    // What was filled in is not deployed as it is.
    let stays = |one: &Known| one.above.is_some() || one.raw.is_none_or(|raw| !is_filled[raw]);
    let known = known.into_iter().filter(stays);
    Ok(known.map(|one| one.found).collect())
}

/// An object whose variables are filled in, as far as they are.
struct Known {
    found: Document,
    /// Whether what it fills in is known.
    is_done: bool,
    /// Which of those that wait it was.
    raw: Option<usize>,
    /// What filled it in.
    above: Option<usize>,
}

struct Filling<'a> {
    tree: &'a dyn Listing,
    identity: &'a Identity,
    waiting: &'a [&'a Document],
    /// Those that wait, by what has to be built to deploy them.
    by: HashMap<(Via, &'a str), Vec<usize>>,
    known: Vec<Known>,
    is_filled: Vec<bool>,
    /// What came of those that wait.
    seen: HashSet<(usize, String)>,
    /// The files that the build of a directory reads.
    files: HashMap<String, Rc<BTreeSet<String>>>,
    templated: &'a mut Vec<Target>,
    unread: &'a mut Vec<Unread>,
}

impl Filling<'_> {
    fn admit(&mut self, found: Document, raw: Option<usize>, above: Option<usize>) {
        let mut made = Vec::new();
        if found.object.kind == "ResourceSet" {
            resource_set::expand(&found, &mut made, self.templated, self.unread);
        } else {
            made.push(found);
        }
        let known = made.into_iter().map(|found| Known {
            is_done: found.value.at(&["spec", "postBuild"]).is_none(),
            found,
            raw,
            above,
        });
        self.known.extend(known);
    }

    fn all(&mut self) -> Result<()> {
        let mut is_whole = false;
        for depth in 0.. {
            let made = if self.waiting.is_empty() {
                Vec::new()
            } else {
                self.round()?
            };
            let is_last = made.is_empty();
            for (raw, above, found) in made {
                self.is_filled[raw] = true;
                self.admit(found, Some(raw), Some(above));
            }
            let is_too_much = depth >= DEEPEST || self.seen.len() > MOST;
            if !is_last && !is_too_much {
                continue;
            }
            if is_too_much && let Some(first) = self.waiting.first() {
                self.unread.push(Unread::too_much(
                    &first.object.file,
                    first.object.line,
                    format!(
                        "objects fill in variables of each other more than {DEEPEST} deep, or come to more than {MOST}: the rest is not filled in"
                    ),
                ));
            }
            if is_whole {
                return Ok(());
            }
            // What nothing fills in is deployed as it is, and may fill in others.
            for raw in 0..self.waiting.len() {
                if !self.is_filled[raw] {
                    self.admit(self.waiting[raw].clone(), Some(raw), None);
                }
            }
            if is_too_much {
                return Ok(());
            }
            is_whole = true;
        }
        Ok(())
    }

    /// Returns what the objects that are known now make of those that wait.
    fn round(&mut self) -> Result<Vec<(usize, usize, Document)>> {
        let documents = self.known.iter().map(|one| &one.found);
        let sources = sources(self.tree, self.identity, documents)?;
        let mut made = Vec::new();
        for above in 0..self.known.len() {
            if self.known[above].is_done {
                continue;
            }
            let parent = self.known[above].found.clone();
            let target = kustomization(self.tree, &sources, &parent, &mut Vec::new())?;
            let Some((target, here)) = target.as_ref().and_then(|one| Some((one, one.here()?)))
            else {
                continue;
            };
            self.known[above].is_done = true;
            let name = target.by();
            let values = Values::of(&parent, &name);
            for raw in self.deployed(target, here, &name)? {
                let found = self.waiting[raw];
                if self.comes_of(above, raw) || is_kept(&found.value) {
                    continue;
                }
                if self.seen.len() > MOST {
                    return Ok(made);
                }
                let mut filled = values.fill(found);
                filled.home.clone_from(&parent.home);
                filled.object.filled_by = Some(name.clone());
                if self.seen.insert((raw, filled.value.json().to_string())) {
                    made.push((raw, above, filled));
                }
            }
        }
        Ok(made)
    }

    /// Returns whether an object was filled in by what one of those that wait became.
    fn comes_of(&self, known: usize, raw: usize) -> bool {
        let mut one = Some(known);
        while let Some(known) = one {
            if self.known[known].raw == Some(raw) {
                return true;
            }
            one = self.known[known].above;
        }
        false
    }

    /// Returns those that wait and that a target deploys.
    fn deployed(&mut self, target: &Target, here: &Here, name: &str) -> Result<Vec<usize>> {
        let (Found::Kustomization(directory) | Found::Directory(directory)) = &here.found else {
            return Ok(Vec::new());
        };
        let mut directories = vec![directory.clone()];
        let components = target.build.components.iter();
        directories.extend(components.filter_map(|one| path::resolve(&here.path, &one.text)));
        let mut found: BTreeSet<usize> = BTreeSet::new();
        let mut add = |key: &(Via, &str)| found.extend(self.by.get(key).into_iter().flatten());
        add(&(Via::Target, name));
        if matches!(here.found, Found::Kustomization(_)) {
            add(&(Via::Root, directory));
        }
        for directory in directories {
            let files = match self.files.get(&directory) {
                Some(files) => files.clone(),
                None => {
                    let files = Rc::new(files_of(self.tree, &directory)?);
                    self.files.insert(directory, files.clone());
                    files
                }
            };
            for file in &*files {
                add(&(Via::File, file));
            }
        }
        Ok(found.into_iter().collect())
    }
}

fn has_variable(value: &Value) -> bool {
    match &value.data {
        Data::Text(text) => text.contains("${"),
        Data::List(items) => items.iter().any(has_variable),
        Data::Mapping(pairs) => pairs
            .iter()
            .any(|(key, value)| key.contains("${") || has_variable(value)),
        Data::Null | Data::Flag(_) | Data::Number(_) => false,
    }
}

/// Returns whether an object says that Flux leaves it as it is.
fn is_kept(value: &Value) -> bool {
    ["labels", "annotations"].iter().any(|key| {
        let mark = value.at(&["metadata", key, SUBSTITUTE]);
        mark.and_then(Value::text) == Some("disabled")
    })
}

/// Returns the files of the tree that the build of a directory reads: those that its kustomization leads to, or that
/// Flux finds where there is none.
pub(in super::super) fn files_of(tree: &dyn Tree, directory: &str) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut todo = vec![(directory.to_owned(), true)];
    while let Some((directory, is_scanned)) = todo.pop() {
        if !seen.insert((directory.clone(), is_scanned)) {
            continue;
        }
        let mut root = None;
        for name in FILE_NAMES {
            let place = path::join(&directory, name);
            if let Resolved::File { path, .. } = tree::resolve(tree, &place)? {
                root = Some(path);
                break;
            }
        }
        if let Some(root) = root {
            let Ok(read) = kustomization::read(&tree.read(&root)?) else {
                continue;
            };
            for reference in read.references {
                let Some(place) = path::resolve(&directory, &reference.text) else {
                    continue;
                };
                match tree::resolve(tree, &place)? {
                    Resolved::File { path, .. } => {
                        files.insert(path);
                    }
                    Resolved::Directory { path } => todo.push((path, false)),
                    _ => {}
                }
            }
        } else if is_scanned {
            for name in tree.names(&directory)? {
                let place = path::join(&directory, &name);
                match tree.entry(&place)? {
                    Some(Entry::Directory) => todo.push((place, true)),
                    Some(Entry::File { .. }) => {
                        files.insert(place);
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(files)
}

/// What `spec.postBuild` of an object says.
struct Values<'a> {
    /// The object.
    parent: &'a str,
    values: BTreeMap<&'a str, String>,
    /// What else gives values, as `ConfigMap vars`.
    from: Option<String>,
}

impl<'a> Values<'a> {
    fn of(parent: &'a Document, name: &'a str) -> Values<'a> {
        let field = |key: &str| parent.value.at(&["spec", "postBuild", key]);
        let pairs = field("substitute").and_then(Value::mapping);
        let pairs = pairs.unwrap_or_default().iter();
        let values = pairs.filter_map(|(key, value)| Some((key.as_str(), value.scalar()?)));
        let from = field("substituteFrom").and_then(Value::list);
        let from = from.and_then(<[Value]>::first).map(|one| {
            let text = |key: &str| one.get(key).and_then(Value::scalar).unwrap_or_default();
            format!("{} {}", text("kind"), text("name"))
        });
        Values {
            parent: name,
            values: values.collect(),
            from,
        }
    }

    /// Returns an object with what is known filled in, and why the rest is not.
    fn fill(&self, found: &Document) -> Document {
        let mut filled = found.clone();
        let unfilled = &mut filled.unfilled;
        filled.value = found.value.map_texts(&mut |text| self.text(text, unfilled));
        let text = |key: &str| filled.value.at(&["metadata", key]).and_then(Value::scalar);
        filled.object.name = text("name").unwrap_or_default();
        filled.object.namespace = text("namespace").unwrap_or_default();
        filled
    }

    fn text(&self, text: &str, unfilled: &mut BTreeMap<String, String>) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            // `$${VAR}` stands for `${VAR}`.
            if let Some(before) = before.strip_suffix('$') {
                out.push_str(before);
                out.push_str("${");
                rest = after;
                continue;
            }
            out.push_str(before);
            let Some((inside, after)) = after.split_once('}') else {
                out.push_str("${");
                rest = after;
                continue;
            };
            let end = |one: char| one != '_' && !one.is_ascii_alphanumeric();
            let (name, operation) = inside.split_at(inside.find(end).unwrap_or(inside.len()));
            match self.value(name, operation) {
                Ok(value) => out.push_str(&value),
                Err(why) => {
                    unfilled.insert(name.to_owned(), why);
                    out.push_str(&format!("${{{inside}}}"));
                }
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }

    /// Returns what stands for a variable, or why that is not known.
    fn value(&self, name: &str, operation: &str) -> std::result::Result<String, String> {
        let parent = self.parent;
        let default = ["", ":=", ":-", "="].iter().find_map(|one| match *one {
            "" if operation.is_empty() => Some(None),
            "" => None,
            one => operation.strip_prefix(one).map(Some),
        });
        let Some(default) = default.filter(|text| !text.is_some_and(is_variable)) else {
            return Err(format!(
                "`{name}{operation}` is more than a name with a default"
            ));
        };
        match (self.values.get(name), &self.from, default) {
            (Some(value), ..) if is_variable(value) => Err(format!(
                "{parent} has `{value}` for it, which its own parent fills in"
            )),
            (Some(value), _, Some(default)) if value.is_empty() => Ok(default.to_owned()),
            (Some(value), ..) => Ok(value.clone()),
            (None, Some(from), _) => Err(format!("{from} of {parent} may hold `{name}`")),
            (None, None, Some(default)) => Ok(default.to_owned()),
            (None, None, None) => Err(format!("{parent} has no value for `{name}`")),
        }
    }
}

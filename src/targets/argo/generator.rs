//! The generators of an `ApplicationSet`: what each gives, as far as the tree tells.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::scan::Document;
use super::super::{DirectorySet, Identity, Unread};
use super::files;
use super::template::{self, Parameters, fill, fill_known};
use crate::kustomization::{Data, Value};
use crate::message::failure::Result;
use crate::tree::{Tree, path};

/// How many applications are made of one set.
pub(super) const MOST: usize = 10_000;

/// How much the generators of one set may do: paths that are compared with patterns, rounds of a matrix.
const MOST_WORK: usize = 10_000_000;

/// How many paths a pattern weighs by itself, and how many bytes of a generator that is filled in weigh as one.
const WEIGHT: usize = 100;

/// Why a generator is not read further.
const TOO_MUCH: &str = "its generators take too much work";

/// What stops a generator from being read, as a reason.
type Unknown = String;

/// What a generator gives.
pub(super) struct Given {
    /// The parameters that the tree tells, of each application.
    pub(super) all: Vec<Parameters>,
    /// Why there are others; then each of `all` stands for any number of applications.
    pub(super) more: Option<Unknown>,
}

impl Given {
    /// Returns what is left of parameters that are not known.
    fn unknown(why: impl Into<Unknown>) -> Self {
        Given { all: vec![Parameters::new()], more: Some(why.into()) }
    }
}

impl From<Vec<Parameters>> for Given {
    fn from(all: Vec<Parameters>) -> Self {
        Given { all, more: None }
    }
}

/// What lies below the top of what a generator reads.
pub(super) struct Listed {
    pub(super) base: String,
    /// From the top of the repository.
    pub(super) files: Vec<String>,
    /// From the top of what it reads.
    directories: Vec<String>,
}

impl Listed {
    fn of(tree: &dyn Tree, base: &str) -> Result<Listed> {
        let files = tree.below(base)?;
        let inside = files.iter().filter_map(|file| path::below(file, base));
        let directories = path::directories(inside);
        Ok(Listed { base: base.to_owned(), directories: directories.into_iter().map(str::to_owned).collect(), files })
    }

    /// Returns the directories of which a set makes applications.
    fn taken_by(&self, set: &DirectorySet) -> Vec<String> {
        let takes = set.matcher();
        let taken = self.directories.iter().filter(|path| takes(path));
        taken.cloned().collect()
    }
}

pub(super) struct Reader<'a> {
    tree: &'a dyn Tree,
    identity: &'a Identity,
    set: &'a Document,
    is_go: bool,
    /// A matrix reads the same again and again.
    listed: BTreeMap<String, Rc<Listed>>,
    /// What was done of [`MOST_WORK`].
    work: usize,
    /// How many files were read.
    read: usize,
    pub(super) sets: Vec<DirectorySet>,
    pub(super) unread: Vec<Unread>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(tree: &'a dyn Tree, identity: &'a Identity, set: &'a Document, is_go: bool) -> Self {
        Reader {
            tree,
            identity,
            set,
            is_go,
            listed: BTreeMap::new(),
            work: 0,
            read: 0,
            sets: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// Returns the parameters of each application that a generator makes as one of its [`kinds`].
    pub(super) fn generate(&mut self, generator: &Value, kind: &str, body: &Value) -> Result<Given> {
        if generator.get("selector").is_some() {
            return Ok(Given::unknown("its generator has a `selector`"));
        }
        let list = |key: &str| body.get(key).and_then(Value::list);
        match kind {
            "" => Ok(Given::unknown("it has a generator of no kind")),
            "list" if body.get("elementsYaml").is_some() => Ok(Given::unknown("its list is made of a template")),
            "list" => {
                let elements = list("elements").unwrap_or_default();
                Ok(elements.iter().map(flat).collect::<Vec<_>>().into())
            }
            "git" => {
                let all = match self.git(body)? {
                    Ok(all) => all,
                    Err(why) => return Ok(Given::unknown(why)),
                };
                let all = all.into_iter().map(|one| self.with_values(body, one));
                Ok(all.collect::<Vec<_>>().into())
            }
            "matrix" if list("generators").is_some() => self.matrix(list("generators").unwrap_or_default()),
            _ => Ok(Given {
                all: vec![self.with_values(body, Parameters::new())],
                more: Some(format!("only the cluster knows what `{kind}` gives")),
            }),
        }
    }

    /// Combines two generators; the second may name the parameters of the first.
    fn matrix(&mut self, children: &[Value]) -> Result<Given> {
        let [one, two] = children else {
            return Ok(Given::unknown("a matrix has two generators"));
        };
        let (&[(one_kind, one_body)], &[(two_kind, _)]) = (&*kinds(one), &*kinds(two)) else {
            return Ok(Given::unknown("a generator of its matrix is of two kinds"));
        };
        if [one_kind, two_kind].contains(&"matrix") {
            return Ok(Given::unknown("its matrix holds another"));
        }
        let first = self.generate(one, one_kind, one_body)?;
        let is_read = ["git", "list"].contains(&two_kind);
        let (mut all, mut more) = (Vec::new(), first.more);
        let size = two.json().to_string().len() / WEIGHT + 1;
        for (round, outer) in first.all.into_iter().enumerate() {
            if round == MOST || !self.may_do(size) {
                let rest = Given::unknown(TOO_MUCH);
                all.extend(rest.all);
                more = more.or(rest.more);
                break;
            }
            let mut is_known = true;
            let filled = two.map_texts(&mut |text| {
                let (filled, is_all) = fill_known(text, &outer, self.is_go);
                is_known &= is_all;
                filled
            });
            let second = if is_known || !is_read {
                let body = filled.get(two_kind).unwrap_or(&filled);
                self.generate(&filled, two_kind, body)?
            } else {
                Given::unknown("its matrix is more than names of parameters")
            };
            more = more.or(second.more);
            all.extend(second.all.into_iter().map(|inner| {
                let mut both = outer.clone();
                both.extend(inner);
                both
            }));
            if all.len() > MOST {
                break;
            }
        }
        Ok(Given { all, more })
    }

    /// Adds to what was done, and returns whether that is not too much.
    fn may_do(&mut self, work: usize) -> bool {
        self.work = self.work.saturating_add(work);
        self.work <= MOST_WORK
    }

    fn listed(&mut self, base: &str) -> Result<Rc<Listed>> {
        if let Some(listed) = self.listed.get(base) {
            return Ok(listed.clone());
        }
        let listed = Rc::new(Listed::of(self.tree, base)?);
        self.listed.insert(base.to_owned(), listed.clone());
        Ok(listed)
    }

    fn git(&mut self, git: &Value) -> Result<std::result::Result<Vec<Parameters>, Unknown>> {
        let text = |key: &str| git.get(key).and_then(Value::text);
        let url = text("repoURL").unwrap_or_default();
        if url.contains("{{") {
            return Ok(Err("the URL of its generator is a template".to_owned()));
        }
        let Some(base) = self.identity.directory_of(url) else {
            return Ok(Err("its generator reads another repository".to_owned()));
        };
        let revision = self.identity.revision(text("revision"));
        if !revision.is_this {
            return Ok(Err("its generator reads another revision".to_owned()));
        }
        let style = template::Style { is_go: self.is_go, prefix: text("pathParamPrefix").unwrap_or_default() };
        let listed = self.listed(base)?;
        if let Some(directories) = git.get("directories").and_then(Value::list) {
            let patterns: Vec<(String, bool)> = directories
                .iter()
                .filter_map(|one| {
                    let exclude = one.get("exclude").is_some_and(|flag| flag.data == Data::Flag(true));
                    Some((one.get("path")?.text()?.to_owned(), exclude))
                })
                .collect();
            let set = DirectorySet { object: self.set.object.clone(), base: base.to_owned(), patterns, revision };
            let work = (listed.directories.len() + WEIGHT).saturating_mul(set.patterns.len());
            let found = self.may_do(work).then(|| listed.taken_by(&set));
            // Also where it is too much: localizing adds directories.
            self.sets.push(set);
            let found = found.ok_or_else(|| TOO_MUCH.to_owned());
            let given = |path: &String| template::of_path(path, style);
            return Ok(found.map(|found| found.iter().map(given).collect()));
        }
        if let Some(patterns) = git.get("files").and_then(Value::list) {
            let work = (listed.files.len() + WEIGHT).saturating_mul(patterns.len());
            if !self.may_do(work) {
                return Ok(Err(TOO_MUCH.to_owned()));
            }
            let (read, unread) = (&mut self.read, &mut self.unread);
            return files::parameters(self.tree, &listed, patterns, style, read, unread);
        }
        Ok(Err("its generator names neither directories nor files".to_owned()))
    }

    /// Adds the `values` of a generator, which may name its parameters.
    fn with_values(&self, generator: &Value, mut parameters: Parameters) -> Parameters {
        let pairs = generator.get("values").and_then(Value::mapping);
        let values = pairs.unwrap_or_default().iter().filter_map(|(key, value)| {
            let value = fill(&value.scalar()?, &parameters, self.is_go)?;
            Some((format!("values.{key}"), value))
        });
        let values: Vec<(String, String)> = values.collect();
        parameters.extend(values);
        parameters
    }
}

/// Returns the kinds of an entry of `generators` with what stands behind each: Argo CD runs all of them. One without a
/// name where there is none.
pub(super) fn kinds(generator: &Value) -> Vec<(&str, &Value)> {
    let pairs = generator.mapping().unwrap_or_default().iter();
    let given = pairs.filter(|(key, body)| key != "selector" && body.data != Data::Null);
    let mut kinds: Vec<(&str, &Value)> = given.map(|(key, body)| (&**key, body)).collect();
    if kinds.is_empty() {
        kinds.push(("", generator));
    }
    kinds
}

/// Returns the scalars of an element by the keys that lead to them.
pub(super) fn flat(element: &Value) -> Parameters {
    let mut parameters = Parameters::new();
    let mut todo = vec![(String::new(), element)];
    while let Some((name, value)) = todo.pop() {
        if let Some(scalar) = value.scalar() {
            parameters.insert(name.clone(), scalar);
        }
        for (key, value) in value.mapping().unwrap_or_default() {
            let name = match name.as_str() {
                "" => key.clone(),
                name => format!("{name}.{key}"),
            };
            todo.push((name, value));
        }
    }
    parameters
}

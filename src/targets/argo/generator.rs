//! The generators of an `ApplicationSet`: the parameters of each, as far as the tree shows them.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::super::scan::Document;
use super::super::{FILE, GitGenerator, PathPattern, Targets, Unread};
use super::Argo;
use super::models::{GIT, Generator, Git, LIST, List, MATRIX, MERGE, Merge};
use super::template::{self, Parameters, Style, TO_JSON, fill};
use crate::kustomization::{Data, ObjectError, Value, read_object};
use crate::message::failure::Result;
use crate::message::position::Position;
use crate::tree::{Entry, path};

/// The most applications that are made of one set.
pub(super) const MOST: usize = 10_000;

/// The cost of a pattern by itself, in units of one path.
const PATTERN: usize = 2000;

/// The bytes of a generator that cost as much to fill in as one path.
const BYTES: usize = 100;

/// Why a generator is not read further.
const TOO_MUCH: &str = "its generators take too much work";

/// The parameters of a generator.
pub(super) struct Given {
    /// The parameters that the tree tells, of each application.
    pub(super) all: Vec<Parameters>,
    /// Why there are others; then each of `all` represents any number of applications.
    pub(super) more: Option<String>,
}

impl Given {
    fn known(all: Vec<Parameters>) -> Self {
        Given { all, more: None }
    }

    /// No parameters, with the reason why they are unknown.
    fn unknown(why: impl Into<String>) -> Self {
        Given { all: vec![Parameters::new()], more: Some(why.into()) }
    }
}

/// Evaluates the generators of a set.
pub(super) struct GeneratorEvaluator<'a> {
    pub(super) argo: &'a Argo<'a>,
    pub(super) set: &'a Document,
    pub(super) is_go: bool,
    pub(super) targets: &'a mut Targets,
}

impl GeneratorEvaluator<'_> {
    /// The parameters of each application that a generator makes.
    pub(super) fn generate(&mut self, generator: Generator<'_>) -> Result<Given> {
        let given = match generator.kind {
            "" => Given::unknown("it has a generator without a type"),
            LIST => match self.typed::<List>(generator) {
                Err(given) => given,
                Ok(list) => match list.elements_yaml.map(|text| elements(&text)) {
                    Some(None) => Given::unknown("its list comes from a template"),
                    made => {
                        let all = generator.elements().iter().map(flat);
                        Given::known(all.chain(made.flatten().unwrap_or_default()).collect())
                    }
                },
            },
            MERGE => self.merge(generator)?,
            MATRIX => match generator.inside() {
                [first, two] => self.matrix(generator, first, two)?,
                _ => self.unknown(generator, "a matrix must have exactly two generators")?,
            },
            GIT => self.git(generator)?,
            kind => Given::unknown(format!("its `{kind}` generator can only be evaluated in the cluster")),
        };
        // The selector is not evaluated. It can only drop some of these, not add any.
        let given = match &given.more {
            None if generator.is_selective => Given::unknown("its generator has a `selector`"),
            _ => given,
        };
        // Values may use the parameters, so they come last.
        let Some(values) = generator.values() else { return Ok(given) };
        let mut all = Vec::new();
        for parameters in given.all {
            let parameters = self.with_values(values, parameters);
            if !self.targets.has_room(weight(&parameters)) {
                return Ok(Given { all, more: Some(TOO_MUCH.to_owned()) });
            }
            all.push(parameters);
        }
        Ok(Given { all, more: given.more })
    }

    /// Reads the fields of a generator, or tells what is wrong with them.
    fn typed<T: DeserializeOwned>(&mut self, generator: Generator<'_>) -> std::result::Result<T, Given> {
        generator.body.read().map_err(|wrong| {
            self.targets.unread.push(self.set.mistyped(&wrong));
            Given::unknown("its generator cannot be read")
        })
    }

    /// Combines two generators; the second may name the parameters of the first.
    fn matrix(&mut self, matrix: Generator<'_>, one: &Value, two: &Value) -> Result<Given> {
        let (&[first_generator], &[second]) = (&*Generator::all(one), &*Generator::all(two)) else {
            return self.unknown(matrix, "a generator in its `matrix` has two types");
        };
        if [first_generator.kind, second.kind].contains(&MATRIX) {
            return self.unknown(matrix, "its `matrix` contains another");
        }
        let first = self.generate(first_generator)?;
        // Only for these does a parameter that is unknown here change the number of results.
        let is_read = [GIT, LIST].contains(&second.kind);
        let (mut all, mut more) = (Vec::new(), first.more);
        let size = two.json().to_string().len() / BYTES + 1;
        for (round, outer) in first.all.into_iter().enumerate() {
            let mut is_known = true;
            let second = if round == MOST || all.len() > MOST || !self.targets.may_do(size) {
                Given::unknown(TOO_MUCH)
            } else {
                let filled = two.map_texts(&mut |text| {
                    let filled = fill(text, &outer, self.is_go);
                    is_known &= filled.is_all;
                    filled.text
                });
                if is_known || !is_read {
                    self.only(&filled)?
                } else {
                    Given::unknown("its `matrix` uses more than parameter names")
                }
            };
            let is_too_much = second.more.as_deref() == Some(TOO_MUCH);
            more = more.or(second.more);
            for mut both in second.all {
                if let Some((key, _)) = outer
                    .iter()
                    .find(|(key, value): &(&String, &String)| both.get(*key).is_some_and(|own| own != *value))
                    .filter(|_| !self.is_go)
                {
                    return Ok(Given::unknown(format!("both generators of its `matrix` set `{key}`")));
                }
                // In Go the first one wins.
                both.extend(outer.clone());
                if !self.targets.has_room(weight(&both)) {
                    return Ok(Given { all, more: Some(TOO_MUCH.to_owned()) });
                }
                all.push(both);
            }
            if is_too_much {
                break;
            }
        }
        Ok(Given { all, more })
    }

    /// The parameters of an entry with one generator.
    fn only(&mut self, entry: &Value) -> Result<Given> {
        match *Generator::all(entry) {
            [generator] => self.generate(generator),
            _ => Ok(Given::unknown("a generator in its `matrix` has two types")),
        }
    }

    /// Merges the parameters of the other generators into those of the first with the same keys.
    fn merge(&mut self, merge: Generator<'_>) -> Result<Given> {
        let keys = match self.typed::<Merge>(merge) {
            Ok(spec) => spec.merge_keys,
            Err(given) => return Ok(given),
        };
        if keys.is_empty() || merge.inside().len() < 2 || self.is_go && keys.iter().any(|key| key.contains('.')) {
            let why = "its `merge` needs `mergeKeys`, without a `.` in templates of Go, and two `generators`";
            return self.unknown(merge, why);
        }
        let key = |parameters: &Parameters| -> Vec<Option<String>> {
            keys.iter().map(|key| parameters.get(key).cloned()).collect()
        };
        let (mut merged, mut more): (Option<Vec<Parameters>>, _) = (None, None);
        for inner in merge.inside() {
            let &[generator] = &*Generator::all(inner) else {
                return self.unknown(merge, "a generator in its `merge` has two types");
            };
            if [MATRIX, MERGE].contains(&generator.kind) {
                return self.unknown(merge, "its `merge` contains a `matrix` or `merge`");
            }
            let given = self.generate(generator)?;
            let by_key: BTreeMap<_, _> = given.all.iter().map(|parameters| (key(parameters), parameters)).collect();
            // Argo CD refuses a key that is set twice, and an open list may set any.
            if given.more.is_some() && merged.is_some() || by_key.len() < given.all.len() {
                return self.unknown(
                    merge,
                    given.more.unwrap_or_else(|| "a generator in its `merge` sets a key twice".to_owned()),
                );
            }
            let Some(all) = &mut merged else {
                (merged, more) = (Some(given.all), given.more);
                continue;
            };
            for own in all {
                if more.is_some() {
                    // Any of these may belong to an unknown set of parameters.
                    own.retain(|name, _| !given.all.iter().any(|other| other.contains_key(name)));
                } else if let Some(other) = by_key.get(&key(own)) {
                    own.extend((*other).clone());
                }
            }
        }
        Ok(Given { all: merged.unwrap_or_default(), more })
    }

    fn git(&mut self, generator: Generator<'_>) -> Result<Given> {
        let git: Git = match self.typed(generator) {
            Ok(git) => git,
            Err(given) => return Ok(given),
        };
        let (argo, url) = (self.argo, git.repo_url.as_str());
        let revision = super::revision(argo.identity, url, git.revision.as_deref());
        let base = match argo.identity.directory_of(url) {
            Some(base) if revision.is_this => base,
            Some(_) => return Ok(Given::unknown("its generator reads another revision")),
            None if url.contains("{{") => return Ok(Given::unknown("the URL of its generator is a template")),
            None => return Ok(Given::unknown("its generator reads another repository")),
        };
        let style = Style { is_go: self.is_go, prefix: &git.path_param_prefix };
        let (patterns, is_files) = match (git.directories, git.files) {
            (Some(directories), _) => (directories, false),
            (None, Some(files)) => (files, true),
            (None, None) => return Ok(Given::unknown("its generator names neither directories nor files")),
        };
        // A pattern without a path matches nothing.
        let patterns = patterns.into_iter();
        let patterns =
            patterns.filter_map(|pattern| Some(PathPattern { text: pattern.path?, excludes: pattern.exclude }));
        let object = self.set.object.clone();
        let generator =
            GitGenerator { object, is_files, base: base.to_owned(), patterns: patterns.collect(), revision };
        let files = argo.files()?;
        let given = if !self.targets.may_do((files.len() + PATTERN).saturating_mul(generator.patterns.len())) {
            Given::unknown(TOO_MUCH)
        } else if let Some(takes) = generator.matcher() {
            let all = if is_files { files } else { argo.directories()? };
            let taken = inside(all, base).filter(|path| takes(path));
            if is_files {
                self.files(base, taken, style)?
            } else {
                Given::known(taken.map(|directory| template::of_path(directory, style)).collect())
            }
        } else {
            Given::unknown("a pattern of its generator cannot be read")
        };
        // Also where it is too much: localizing adds directories and files.
        if !self.targets.generators.contains(&generator) {
            self.targets.generators.push(generator);
        }
        Ok(given)
    }

    /// No parameters for a generator of generators. The git generators in it are read all the same: what they read is
    /// watched.
    fn unknown(&mut self, generator: Generator<'_>, why: impl Into<String>) -> Result<Given> {
        let mut todo = vec![generator];
        while let Some(generator) = todo.pop() {
            for inside in generator.inside().iter().flat_map(Generator::all) {
                match inside.kind {
                    GIT => drop(self.git(inside)?),
                    _ => todo.push(inside),
                }
            }
        }
        Ok(Given::unknown(why))
    }

    /// The parameters of files: each file, or each element of a list in it, makes an application.
    fn files<'f>(&mut self, base: &str, taken: impl Iterator<Item = &'f str>, style: Style<'_>) -> Result<Given> {
        let tree = self.argo.tree;
        let mut all = Vec::new();
        for inside in taken {
            let file = path::join(base, inside);
            if !matches!(tree.entry(&file)?, Some(Entry::File { .. })) {
                continue;
            }
            if !self.targets.may_do(FILE) {
                return Ok(Given::unknown(TOO_MUCH));
            }
            let bytes = tree.read(&file)?;
            let text = std::str::from_utf8(&bytes);
            let read = text.map_err(|_| ObjectError { line: 0, message: "not UTF-8".to_owned() }).and_then(read_object);
            let value = match read {
                // An empty file makes an application, too.
                Ok(value) => value.unwrap_or_else(|| Value::new(Position::new(1, 1), Data::Null)),
                Err(ObjectError { line, message }) => {
                    self.targets.unread.push(Unread::invalid(&file, line, message, false));
                    return Ok(Given::unknown(format!("its generator cannot read `{file}`")));
                }
            };
            for element in value.list().unwrap_or(std::slice::from_ref(&value)) {
                let mut parameters = flat(element);
                parameters.extend(template::of_file(inside, style));
                all.push(parameters);
            }
        }
        Ok(Given::known(all))
    }

    /// Adds the `values` of a generator, which may name its parameters.
    fn with_values(&self, values: &[(String, Value)], mut parameters: Parameters) -> Parameters {
        let values = values.iter().filter_map(|(key, value)| {
            let filled = fill(&value.scalar()?, &parameters, self.is_go);
            filled.is_all.then(|| (format!("values.{key}"), filled.text))
        });
        let values: Vec<(String, String)> = values.collect();
        parameters.extend(values);
        parameters
    }
}

/// The approximate number of bytes of parameters.
fn weight(parameters: &Parameters) -> usize {
    parameters.iter().map(|(key, value)| key.len() + value.len() + 16).sum()
}

/// Those of some paths that are in a directory, as they are named from there.
fn inside<'a>(all: &'a [String], directory: &'a str) -> impl Iterator<Item = &'a str> {
    all.iter().filter_map(move |path| path::below(path, directory)).filter(|path| !path.is_empty())
}

/// The elements in a text; `None` if it is a template, or not a list.
fn elements(text: &str) -> Option<Vec<Parameters>> {
    let read = read_object(text).ok()?.filter(|_| !text.contains("{{"))?;
    Some(read.list()?.iter().map(flat).collect())
}

/// The scalars of an element by their keys, and its lists by the actions that print them.
pub(super) fn flat(element: &Value) -> Parameters {
    let mut parameters = Parameters::new();
    let mut todo = vec![(String::new(), element)];
    while let Some((name, value)) = todo.pop() {
        if let Some(scalar) = value.scalar() {
            parameters.insert(name.clone(), scalar);
        }
        // Argo CD has no parameter for a list, but `toJson` prints one.
        if value.list().is_some() {
            parameters.insert(format!("{name}{TO_JSON}"), value.json().to_string());
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

//! The generators of an `ApplicationSet`: the parameters of each, as far as the tree shows them.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::super::scan::Document;
use super::super::{FILE, GitGenerator, Targets, Unread, Why};
use super::Argo;
use super::models::{GIT, Generator, Git, LIST, List, MATRIX, MERGE, Merge};
use super::template::{self, Parameters, Style, TO_JSON, fill};
use crate::kustomization::{Data, ObjectError, Value, read_object};
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::position::Position;
use crate::tree::{self, Resolved, path};

/// The most applications that are made of one set.
pub(super) const MOST: usize = 10_000;

/// The cost of a pattern by itself, in units of one path.
const PATTERN: usize = 2000;

/// The bytes of a generator that cost as much to fill in as one path.
const BYTES: usize = 100;

/// Why a `merge` is not read.
const MERGE_NEEDS: &str = "its `merge` needs `mergeKeys`, without a `.` in templates of Go, and two `generators`";

/// Why a generator is not read further.
const TOO_MUCH: &str = "its generators take too much work";

/// The parameters that a generator gives its applications.
pub(super) struct ParameterSets {
    /// The known parameters of each application.
    pub(super) sets: Vec<Parameters>,
    /// Why there may be more sets or parameters; then each set represents any number of applications.
    pub(super) more: Option<String>,
}

impl ParameterSets {
    /// One set without a known parameter, with the reason. It represents all applications, because only the cluster
    /// knows their number.
    fn unknown(why: impl Into<String>) -> ParameterSets {
        ParameterSets { sets: vec![Parameters::new()], more: Some(why.into()) }
    }
}

/// The failure of a generator whose parameters are unknown.
fn unknown(why: impl Into<String>) -> Failure {
    Failure::new(why).because(FailureKind::NotKnown)
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
    pub(super) fn generate(&mut self, generator: Generator<'_>) -> Result<ParameterSets> {
        let given = match self.evaluate_type(generator) {
            Err(failure) if failure.kind == FailureKind::NotKnown => {
                // Changes of the files that its git generators read still count.
                self.read_git_inside(generator)?;
                ParameterSets::unknown(failure.message)
            }
            // The selector is not evaluated. It may drop any of these, so that none is certain.
            Ok(ParameterSets { more: None, .. }) if generator.is_selective => {
                ParameterSets::unknown("its generator has a `selector`")
            }
            given => given?,
        };
        // Values may use the parameters, so they come last.
        let Some(values) = generator.values() else { return Ok(given) };
        let mut sets = Vec::new();
        for parameters in given.sets {
            let parameters = self.with_values(values, parameters);
            if !self.targets.has_room(weight(&parameters)) {
                return Ok(ParameterSets { sets, more: Some(TOO_MUCH.to_owned()) });
            }
            sets.push(parameters);
        }
        Ok(ParameterSets { sets, more: given.more })
    }

    /// The parameters as the type of a generator makes them, before `values` and `selector`, which each type may have.
    fn evaluate_type(&mut self, generator: Generator<'_>) -> Result<ParameterSets> {
        match generator.kind {
            "" => Err(unknown("it has a generator without a type")),
            LIST => {
                let List { elements_yaml } = self.read_fields(generator)?;
                let mut sets: Vec<Parameters> = generator.elements().iter().map(flatten).collect();
                if let Some(text) = elements_yaml {
                    sets.extend(elements(&text).ok_or_else(|| unknown("its list comes from a template"))?);
                }
                Ok(ParameterSets { sets, more: None })
            }
            MERGE => self.merge(generator),
            MATRIX => self.matrix(generator),
            GIT => self.read_git(generator),
            kind => Err(unknown(format!("its `{kind}` generator can only be evaluated in the cluster"))),
        }
    }

    /// Reads the fields of a generator, or reports the wrong one.
    fn read_fields<T: DeserializeOwned>(&mut self, generator: Generator<'_>) -> Result<T> {
        generator.body.read().map_err(|wrong| {
            self.targets.unread.push(self.set.mistyped(&wrong));
            unknown("its generator cannot be read")
        })
    }

    /// Combines each parameter set of one generator with each of another; the second may name the parameters of the
    /// first.
    fn matrix(&mut self, matrix: Generator<'_>) -> Result<ParameterSets> {
        let [outer_entry, inner_entry] = matrix.inside() else {
            return Err(unknown("a matrix must have exactly two generators"));
        };
        // Argo CD refuses an entry with two generators, so that nothing is generated.
        let (first, second) = (matrix.only(outer_entry)?, matrix.only(inner_entry)?);
        if [first.kind, second.kind].contains(&MATRIX) {
            return Err(unknown("its `matrix` contains another"));
        }
        let ParameterSets { sets: outers, mut more } = self.generate(first)?;
        let mut sets = Vec::new();
        let size = inner_entry.json().to_string().len() / BYTES + 1;
        for (round, outer) in outers.into_iter().enumerate() {
            let is_over_limit = round == MOST || sets.len() > MOST || !self.targets.may_do(size);
            let inner = if is_over_limit {
                ParameterSets::unknown(TOO_MUCH)
            } else {
                self.generate_inner(matrix, inner_entry, &outer)?
            };
            // One reason is enough for the message, and the first one is nearest to the top of the object.
            let is_too_much = inner.more.as_deref() == Some(TOO_MUCH);
            more = more.or(inner.more);
            for parameters in inner.sets {
                let parameters = self.combine(&outer, parameters)?;
                if !self.targets.has_room(weight(&parameters)) {
                    return Ok(ParameterSets { sets, more: Some(TOO_MUCH.to_owned()) });
                }
                sets.push(parameters);
            }
            if is_too_much {
                break;
            }
        }
        Ok(ParameterSets { sets, more })
    }

    /// The parameters of the second generator of a matrix, which is read once for each set of the first, with its
    /// parameters filled in.
    fn generate_inner(&mut self, matrix: Generator<'_>, entry: &Value, outer: &Parameters) -> Result<ParameterSets> {
        let mut is_known = true;
        let filled = entry.map_texts(&mut |text| {
            let filled = fill(text, outer, self.is_go);
            is_known &= filled.is_all;
            filled.text
        });
        let generator = matrix.only(&filled)?;
        // An unknown parameter changes how many sets a generator of these types makes.
        if !is_known && [GIT, LIST].contains(&generator.kind) {
            return Ok(ParameterSets::unknown("its `matrix` uses more than parameter names"));
        }
        self.generate(generator)
    }

    /// The parameters of both generators of a matrix together. Argo CD refuses two values of one parameter, but with Go
    /// templates that of the first generator wins.
    fn combine(&self, outer: &Parameters, inner: Parameters) -> Result<Parameters> {
        let mut set_twice = outer.iter().filter(|(key, value)| inner.get(*key).is_some_and(|own| own != *value));
        match set_twice.next() {
            Some((key, _)) if !self.is_go => Err(unknown(format!("both generators of its `matrix` set `{key}`"))),
            _ => Ok(inner.into_iter().chain(outer.clone()).collect()),
        }
    }

    /// The parameter sets of the first generator, each with those that the others have for the same values of the merge
    /// keys.
    fn merge(&mut self, merge: Generator<'_>) -> Result<ParameterSets> {
        let Merge { merge_keys: keys } = self.read_fields(merge)?;
        let [first, others @ ..] = merge.inside() else { return Err(unknown(MERGE_NEEDS)) };
        // With Go templates Argo CD does not find a nested key, such as `a.b`.
        if keys.is_empty() || others.is_empty() || self.is_go && keys.iter().any(|key| key.contains('.')) {
            return Err(unknown(MERGE_NEEDS));
        }
        let mut merged = self.inside_merge(merge, first)?;
        // Argo CD refuses two sets with the same values of the keys, also in the first generator.
        index_by(&keys, &merged.sets)?;
        for other in others {
            let given = self.inside_merge(merge, other)?;
            // Unknown parameters may replace any others.
            if let Some(why) = given.more {
                return Err(unknown(why));
            }
            let index = index_by(&keys, &given.sets)?;
            for parameters in &mut merged.sets {
                if merged.more.is_some() {
                    // The set stands for several, of which any may get other values for these parameters.
                    parameters.retain(|name, _| !given.sets.iter().any(|other| other.contains_key(name)));
                } else if let Some(other) = index.get(&values_of(&keys, parameters)) {
                    parameters.extend((*other).clone());
                }
            }
        }
        Ok(merged)
    }

    /// The parameters of a generator in a `merge`, which may not combine others itself.
    fn inside_merge(&mut self, merge: Generator<'_>, entry: &Value) -> Result<ParameterSets> {
        let generator = merge.only(entry)?;
        if [MATRIX, MERGE].contains(&generator.kind) {
            return Err(unknown("its `merge` contains a `matrix` or `merge`"));
        }
        self.generate(generator)
    }

    /// The parameters of the directories or files that a git generator reads in this repository. Notes the generator: a
    /// directory that localizing adds may match it.
    fn read_git(&mut self, generator: Generator<'_>) -> Result<ParameterSets> {
        let git: Git = self.read_fields(generator)?;
        let (argo, url) = (self.argo, git.repo_url.as_str());
        let revision = super::revision(argo.identity, url, git.revision.as_deref());
        // Argo CD clones the repository of the generator, which need not be that of the applications.
        let base = match argo.identity.directory_of(url) {
            Some(base) if revision.is_this => base,
            Some(_) => return Err(unknown("its generator reads another revision")),
            None if url.contains("{{") => return Err(unknown("the URL of its generator is a template")),
            None => return Err(unknown("its generator reads another repository")),
        };
        // For Argo CD an empty list is missing.
        let [directories, files] = [git.directories, git.files].map(|patterns| patterns.filter(|all| !all.is_empty()));
        let is_files = directories.is_none();
        let patterns =
            directories.or(files).ok_or_else(|| unknown("its generator names neither directories nor files"))?;
        let (object, base) = (self.set.object.clone(), base.to_owned());
        let generator = GitGenerator { object, is_files, base, patterns, revision };
        let style = Style { is_go: self.is_go, prefix: &git.path_param_prefix };
        let given = self.path_sets(&generator, style);
        // It is noted even if the parameters are unknown, for example above the limit.
        if !self.targets.generators.contains(&generator) {
            self.targets.generators.push(generator);
        }
        Ok(ParameterSets { sets: given?, more: None })
    }

    /// The parameters of each directory or file that matches the patterns of a git generator.
    fn path_sets(&mut self, generator: &GitGenerator, style: Style<'_>) -> Result<Vec<Parameters>> {
        // Patterns are compared with every path: the product bounds the time.
        let files = self.argo.files()?;
        if !self.targets.may_do((files.len() + PATTERN).saturating_mul(generator.patterns.len())) {
            return Err(unknown(TOO_MUCH));
        }
        let is_match = generator.matcher().ok_or_else(|| unknown("a pattern of its generator cannot be read"))?;
        let all = if generator.is_files { files } else { self.argo.directories()? };
        let matching = all.iter().filter_map(|path| path::below(path, &generator.base));
        let matching = matching.filter(|path| !path.is_empty() && is_match(path));
        if generator.is_files {
            return self.file_sets(&generator.base, matching, style);
        }
        Ok(matching.map(|directory| template::directory_parameters(directory, style)).collect())
    }

    /// Reads the git generators inside a generator that is unknown, to note which paths they read.
    fn read_git_inside(&mut self, generator: Generator<'_>) -> Result<()> {
        for inside in generator.inside().iter().flat_map(Generator::of_entry) {
            let read = if inside.kind == GIT { self.read_git(inside).map(drop) } else { self.read_git_inside(inside) };
            read.or_else(|failure| if failure.kind == FailureKind::NotKnown { Ok(()) } else { Err(failure) })?;
        }
        Ok(())
    }

    /// The parameters of files, whose paths are relative to `base`: each file, or each element of a list in it, makes
    /// an application.
    fn file_sets<'f>(
        &mut self,
        base: &str,
        paths: impl Iterator<Item = &'f str>,
        style: Style<'_>,
    ) -> Result<Vec<Parameters>> {
        let tree = self.argo.tree;
        let mut sets = Vec::new();
        for path in paths {
            let file = path::join(base, path);
            if !self.targets.may_do(FILE) {
                return Err(unknown(TOO_MUCH));
            }
            // One file that cannot be read stops the whole generator in Argo CD.
            let read = match tree::resolve(tree, &file)? {
                Resolved::File { path, .. } => read_parameters(&tree.read(&path)?),
                // A link that leads to no file, or a submodule.
                _ => Err(ObjectError { line: 0, message: "not a file".to_owned() }),
            };
            let value = match read {
                // An empty file makes an application, too.
                Ok(value) => value.unwrap_or_else(|| Value::new(Position::new(1, 1), Data::Null)),
                Err(ObjectError { line, message }) => {
                    self.targets.unread.push(Unread::new(&file, line, message, Why::Invalid));
                    return Err(unknown(format!("its generator cannot read `{file}`")));
                }
            };
            for element in value.list().unwrap_or(std::slice::from_ref(&value)) {
                let mut parameters = flatten(element);
                parameters.extend(template::file_parameters(path, style));
                sets.push(parameters);
            }
        }
        Ok(sets)
    }

    /// Adds the `values` of a generator, which may name its parameters. A value that cannot be filled in stays unknown.
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

/// Reads the parameters in a file; `None` if it is empty.
fn read_parameters(bytes: &[u8]) -> std::result::Result<Option<Value>, ObjectError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ObjectError { line: 0, message: "not UTF-8".to_owned() })?;
    read_object(text)
}

/// The approximate number of bytes of parameters.
fn weight(parameters: &Parameters) -> usize {
    parameters.iter().map(|(key, value)| key.len() + value.len() + 16).sum()
}

/// The values of some keys.
fn values_of(keys: &[String], parameters: &Parameters) -> Vec<Option<String>> {
    keys.iter().map(|key| parameters.get(key).cloned()).collect()
}

/// Parameter sets by the values of some keys. Fails if two sets have the same values.
fn index_by<'p>(keys: &[String], sets: &'p [Parameters]) -> Result<BTreeMap<Vec<Option<String>>, &'p Parameters>> {
    let index: BTreeMap<_, _> = sets.iter().map(|set| (values_of(keys, set), set)).collect();
    let is_unique = index.len() == sets.len();
    if is_unique { Ok(index) } else { Err(unknown("a generator in its `merge` sets a key twice")) }
}

impl Generator<'_> {
    /// The generator of an entry inside this one, which combines several. Fails if the entry has two types.
    fn only(self, entry: &Value) -> Result<Generator<'_>> {
        match *Generator::of_entry(entry) {
            [generator] => Ok(generator),
            _ => Err(unknown(format!("a generator in its `{}` has two types", self.kind))),
        }
    }
}

/// The parameters of the elements of a list in YAML text; `None` if the text is a template, or not a list.
fn elements(text: &str) -> Option<Vec<Parameters>> {
    let read = read_object(text).ok()?.filter(|_| !text.contains("{{"))?;
    Some(read.list()?.iter().map(flatten).collect())
}

/// The parameters of an element of a list or of a file: its scalars by their keys (`a.b`), and its lists by the actions
/// of a template that print them.
fn flatten(element: &Value) -> Parameters {
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

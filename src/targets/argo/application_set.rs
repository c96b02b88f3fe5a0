//! The applications that an `ApplicationSet` makes, as far as the tree tells.

use super::super::scan::Document;
use super::super::{Build, DirectorySet, Engine, Identity, Object, Place, Target, Targets, Unread};
use super::files;
use super::pattern::Pattern;
use super::template::{self, Parameters, fill};
use crate::failure::Result;
use crate::kustomization::{Data, Value};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::{Listing, path};

/// How many applications are made of one set.
const MOST: usize = 10_000;

/// What stops a set from being resolved, as a reason.
type Unknown = String;

/// Adds the applications of a set; those that only the cluster can make become one templated target.
pub(super) fn expand(
    tree: &dyn Listing,
    identity: &Identity,
    set: &Document,
    applications: &mut Vec<Document>,
    targets: &mut Targets,
) -> Result<()> {
    let spec = set.value.get("spec");
    // Without generators or a template it is a patch for one.
    let (Some(generators), Some(template)) = (
        spec.and_then(|spec| spec.get("generators")),
        spec.and_then(|spec| spec.get("template")),
    ) else {
        return Ok(());
    };
    let Some(generators) = generators.list() else {
        super::wrong(
            set,
            generators,
            &["spec", "generators"],
            "a list",
            &mut targets.unread,
        );
        return Ok(());
    };
    let go = spec.and_then(|spec| spec.get("goTemplate"));
    let mut reader = Reader {
        tree,
        identity,
        set,
        is_go: go.is_some_and(|go| go.data == Data::Flag(true)),
        sets: Vec::new(),
        unread: Vec::new(),
    };
    let patched = spec.is_some_and(|spec| spec.get("templatePatch").is_some());
    let mut count = 0;
    for generator in generators {
        match reader.generate(generator)? {
            Err(why) => targets.targets.push(unknown(set, generator, &why)),
            Ok(_) if patched => {
                let why = "`templatePatch` may change it";
                targets.targets.push(unknown(set, generator, why));
            }
            Ok(all) => {
                for parameters in all {
                    count += 1;
                    if count > MOST {
                        break;
                    }
                    match reader.make(template, &parameters) {
                        Some(found) => applications.push(found),
                        None => {
                            let why = "its template is more than names of parameters";
                            targets.targets.push(unknown(set, template, why));
                            break;
                        }
                    }
                }
            }
        }
    }
    if count > MOST {
        reader.unread.push(Unread::too_much(
            &set.object.file,
            set.object.line,
            format!(
                "ApplicationSet {} makes more than {MOST} applications: the rest is not read",
                set.object.full_name()
            ),
        ));
    }
    targets.sets.append(&mut reader.sets);
    targets.unread.append(&mut reader.unread);
    Ok(())
}

/// Names what only the cluster can make.
fn unknown(set: &Document, at: &Value, why: &str) -> Target {
    let (spot, place) = ((at.line, at.column), Place::Templated(why.to_owned()));
    set.target(Engine::ArgoCd, spot, place, Build::default())
}

struct Reader<'a> {
    tree: &'a dyn Listing,
    identity: &'a Identity,
    set: &'a Document,
    is_go: bool,
    sets: Vec<DirectorySet>,
    unread: Vec<Unread>,
}

impl Reader<'_> {
    /// Returns the parameters of each application that a generator makes.
    fn generate(
        &mut self,
        generator: &Value,
    ) -> Result<std::result::Result<Vec<Parameters>, Unknown>> {
        for key in ["selector", "template"] {
            if generator.get(key).is_some() {
                return Ok(Err(format!("its generator has a `{key}`")));
            }
        }
        if let Some(list) = generator.get("list") {
            if list.get("elementsYaml").is_some() || list.get("template").is_some() {
                return Ok(Err("its list is made of a template".to_owned()));
            }
            let elements = list
                .get("elements")
                .and_then(Value::list)
                .unwrap_or_default();
            return Ok(Ok(elements.iter().map(flat).collect()));
        }
        if let Some(git) = generator.get("git") {
            return self.git(git);
        }
        if let Some(children) = generator
            .at(&["matrix", "generators"])
            .and_then(Value::list)
        {
            return self.matrix(children);
        }
        let kinds = generator.mapping().unwrap_or_default();
        let kind = kinds
            .first()
            .map_or("no generator", |(key, _)| key.as_str());
        Ok(Err(format!("only the cluster knows what `{kind}` gives")))
    }

    /// Combines two generators; the second may name the parameters of the first.
    fn matrix(
        &mut self,
        children: &[Value],
    ) -> Result<std::result::Result<Vec<Parameters>, Unknown>> {
        let [one, two] = children else {
            return Ok(Err("a matrix has two generators".to_owned()));
        };
        if [one, two].iter().any(|child| child.get("matrix").is_some()) {
            return Ok(Err("its matrix holds another".to_owned()));
        }
        let first = match self.generate(one)? {
            Ok(first) => first,
            Err(why) => return Ok(Err(why)),
        };
        let mut all = Vec::new();
        for outer in first.into_iter().take(MOST) {
            let mut is_known = true;
            let filled = two.map_texts(&mut |text| {
                let filled = fill(text, &outer, self.is_go);
                is_known &= filled.is_some();
                filled.unwrap_or_default()
            });
            if !is_known {
                return Ok(Err("its matrix is more than names of parameters".to_owned()));
            }
            match self.generate(&filled)? {
                Ok(second) => {
                    for inner in second {
                        let mut both = outer.clone();
                        both.extend(inner);
                        all.push(both);
                    }
                }
                Err(why) => return Ok(Err(why)),
            }
            if all.len() > MOST {
                break;
            }
        }
        Ok(Ok(all))
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
        if git.get("pathParamPrefix").is_some() || git.get("values").is_some() {
            return Ok(Err("its generator names its own parameters".to_owned()));
        }
        if let Some(directories) = git.get("directories").and_then(Value::list) {
            let patterns: Vec<(String, bool)> = directories
                .iter()
                .filter_map(|one| {
                    let exclude = one
                        .get("exclude")
                        .is_some_and(|flag| flag.data == Data::Flag(true));
                    Some((one.get("path")?.text()?.to_owned(), exclude))
                })
                .collect();
            let set = DirectorySet {
                object: self.set.object.clone(),
                base: base.to_owned(),
                patterns,
                revision,
            };
            let found = set.directories(self.tree)?;
            let found = found.iter().map(|path| template::of_path(path, self.is_go));
            let found = found.collect();
            self.sets.push(set);
            return Ok(Ok(found));
        }
        if let Some(patterns) = git.get("files").and_then(Value::list) {
            return files::parameters(self.tree, base, patterns, self.is_go, &mut self.unread);
        }
        Ok(Err(
            "its generator names neither directories nor files".to_owned()
        ))
    }

    /// Returns an application; none where the template does more than name parameters.
    fn make(&self, template: &Value, parameters: &Parameters) -> Option<Document> {
        // What does not matter may be as it is: only where the application is built from has to be known.
        let filled = template.map_texts(&mut |text| {
            fill(text, parameters, self.is_go).unwrap_or_else(|| text.to_owned())
        });
        let name = filled.at(&["metadata", "name"]).and_then(Value::scalar)?;
        let namespace = filled
            .at(&["metadata", "namespace"])
            .and_then(Value::scalar);
        let object = Object {
            namespace: namespace.unwrap_or_else(|| self.set.object.namespace.clone()),
            name,
            ..self.set.object.clone()
        };
        Some(self.set.template(object, filled))
    }
}

impl DirectorySet {
    /// Returns the directories of a tree of which it makes applications, from the top of what it reads, sorted.
    ///
    /// # Errors
    /// When the tree cannot be read.
    pub fn directories(&self, tree: &dyn Listing) -> Result<Vec<String>> {
        let mut all = std::collections::BTreeSet::new();
        for file in tree.below(&self.base)? {
            let Some(inside) = path::below(&file, &self.base) else {
                continue;
            };
            let mut directory = path::parent(inside);
            while !directory.is_empty() && !all.contains(directory) {
                all.insert(directory.to_owned());
                directory = path::parent(directory);
            }
        }
        Ok(all
            .into_iter()
            .filter(|directory| self.takes(directory))
            .collect())
    }

    /// Returns whether it makes an application of a directory, named from the top of what it reads.
    #[must_use]
    pub fn takes(&self, directory: &str) -> bool {
        if path::components(directory).any(|name| name.starts_with('.')) {
            return false;
        }
        let matches = |exclude: bool| {
            let mut patterns = self
                .patterns
                .iter()
                .filter(|(_, excludes)| *excludes == exclude);
            patterns
                .any(|(one, _)| Pattern::new(one).is_some_and(|pattern| pattern.matches(directory)))
        };
        matches(false) && !matches(true)
    }
}

/// Returns the pattern that excludes a directory which localizing adds, and those like it in other applications.
#[must_use]
pub fn exclusion(directory: &str) -> String {
    let names: Vec<&str> = path::components(directory).collect();
    let Some(at) = names.iter().position(|name| *name == LOCALIZED_FILES) else {
        return directory.to_owned();
    };
    let star = |_| "*";
    let above = names.iter().take(at).map(star);
    let below = names.iter().skip(at + 1).map(star);
    let names: Vec<&str> = above.chain([LOCALIZED_FILES]).chain(below).collect();
    names.join("/")
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

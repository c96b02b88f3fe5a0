//! The applications that an `ApplicationSet` makes, as far as the tree tells.

use globset::GlobSetBuilder;

use super::super::scan::Document;
use super::super::{GitGenerator, ObjectRef, Targets, Unread, Why};
use super::generator::{GeneratorEvaluator, MOST};
use super::models::{APPLICATION, Generator, Set, finalizer, generators_and_template, metadata};
use super::pattern::{git_globs, glob, in_go};
use super::template::{FilledText, Parameters, fill};
use super::{Application, Argo, merge, read_patch};
use crate::config::quoted;
use crate::kustomization::{Data, FileDocument, Located, Value};
use crate::message::failure::Result;
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::path;

/// Adds the applications that a set makes, as far as the tree tells their parameters.
pub(super) fn expand(
    argo: &Argo<'_>,
    set: &Document,
    applications: &mut Vec<Application>,
    targets: &mut Targets,
) -> Result<()> {
    // A patch for a set lacks one of these.
    let Some((generators, template)) = generators_and_template(&set.value) else { return Ok(()) };
    let spec: Set = set.spec();
    let is_go = spec.go_template;
    let mut reader = GeneratorEvaluator { argo, set, is_go, targets };
    let mut count = 0;
    for generator in generators.iter().flat_map(Generator::of_entry) {
        let given = reader.generate(generator)?;
        let template = template_for(&spec, template, generator);
        // A short list of parameters can multiply a large template.
        let size = template.json().to_string().len();
        for parameters in given.sets {
            // A set is written by one person and multiplied by a machine, so both number and size are bounded.
            count += 1;
            let has_room = reader.targets.has_room(size);
            if count > MOST || !has_room {
                let much = if has_room { format!("more than {MOST} applications") } else { "too much".to_owned() };
                let message = format!("generates {much}: the rest is not read");
                let unread = set.error_at(set.object.line, &message);
                reader.targets.unread.push(Unread { why: Why::Limit, ..unread });
                return Ok(());
            }
            let document = application(set, &template, &parameters, is_go);
            // Without Go templates, Argo CD leaves an expression that no parameter fills in as it is.
            let has_templates = is_go || given.more.is_some() || set.is_template;
            let mut made = Application { document, why_unknown: given.more.clone(), is_open: false, has_templates };
            if let Some(patch) = &spec.template_patch {
                // An application whose patch cannot be read is still one, and its directory is checked as it is.
                let patched = made.patch(patch, fill(&patch.value, &parameters, is_go));
                reader.targets.unread.extend(patched.err());
            }
            applications.push(made);
        }
    }
    Ok(())
}

/// The template of a set for the applications of one generator, which may replace parts of it.
fn template_for(spec: &Set, template: &Value, generator: Generator<'_>) -> Value {
    let own = generator.template();
    let template = own.map_or_else(|| template.clone(), |own| merge(template, &without_empty(own), own.start, &[]));
    // Argo CD adds a finalizer unless the template has one.
    let finalizer = finalizer(&template).filter(|_| !spec.sync_policy.preserve_resources_on_deletion);
    match finalizer {
        Some(more) => merge(&template, &more, template.start, &[]),
        None => template,
    }
}

impl Application {
    /// Changes it as a filled in `templatePatch` does.
    fn patch(&mut self, patch: &Located<String>, filled: FilledText) -> std::result::Result<(), Unread> {
        let FilledText { text, is_all } = filled;
        if is_all {
            self.document.value = apply_patch(&self.document, patch, &text)?;
        } else {
            self.document.value = with_patch(&self.document, text);
            // A patch that only the cluster can fill in may change everything.
            (self.why_unknown, self.is_open) = (Some("`templatePatch` may change it".to_owned()), true);
        }
        Ok(())
    }
}

/// The template of a generator without empty values, which Argo CD takes from the template of the set.
fn without_empty(own: &Value) -> Value {
    let Data::Mapping(pairs) = &own.data else { return own.clone() };
    let pairs = pairs.iter().filter(|(_, value)| !is_zero(value));
    let pairs = pairs.map(|(key, value)| {
        // `valuesObject` is raw JSON in Go, so its values are not looked into.
        let value = if key == "valuesObject" { value.clone() } else { without_empty(value) };
        (key.clone(), value)
    });
    own.with(Data::Mapping(pairs.collect()))
}

/// Whether a value says nothing: the zero value of its type in Go.
fn is_zero(value: &Value) -> bool {
    match &value.data {
        Data::Null | Data::Flag(false) => true,
        Data::Text(text) => text.is_empty(),
        Data::List(items) => items.is_empty(),
        _ => false,
    }
}

/// An application as a filled in `templatePatch` changes it.
fn apply_patch(document: &Document, patch: &Located<String>, filled: &str) -> std::result::Result<Value, Unread> {
    let change = read_patch(&document.object.file, FileDocument { before: patch.start().line - 1, text: filled })?;
    Ok(match change {
        Some(change) if change.mapping().is_some() => merge(&document.value, &change, patch.start(), &[]),
        _ => document.value.clone(),
    })
}

/// An application with the text of a patch that only the cluster can fill in, because changes below the paths in it
/// count.
fn with_patch(document: &Document, patch: String) -> Value {
    let patch = ("templatePatch".to_owned(), document.value.with(Data::Text(patch)));
    let pairs = document.value.mapping().unwrap_or_default().iter().cloned();
    document.value.with(Data::Mapping(pairs.chain([patch]).collect()))
}

/// The application that a set makes of its template with some parameters.
fn application(set: &Document, template: &Value, parameters: &Parameters, is_go: bool) -> Document {
    // Only the values that locate its source must be filled in, others may stay templates.
    let filled = template.map_texts(&mut |text| fill(text, parameters, is_go).text);
    let text = |key: &str| metadata(&filled, key);
    let namespace = text("namespace").unwrap_or_else(|| set.object.namespace.clone());
    let name = text("name").unwrap_or_default();
    let set_name = Some(set.object.full_name());
    let object = ObjectRef { namespace, name, kind: APPLICATION.to_owned(), set: set_name, ..set.object.clone() };
    Document { object, value: filled, home: set.home.clone(), is_template: set.is_template, written: None }
}

impl GitGenerator {
    /// A function that tells whether it makes an application of a directory or file, named from the top of its
    /// repository: the path matches a pattern and no exclusion. `None` if a pattern for files is broken.
    pub(crate) fn matcher(&self) -> Option<impl Fn(&str) -> bool + use<>> {
        let is_files = self.is_files;
        let (mut included, mut excluded) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for pattern in &self.patterns {
            let globs = if pattern.exclude { &mut excluded } else { &mut included };
            // A pattern without a path matches nothing.
            let Some(text) = pattern.path.as_deref() else { continue };
            // Argo CD compares files as `git ls-files` does, and directories as Go does. There a broken pattern matches
            // nothing.
            let parsed = if is_files { git_globs(text)? } else { glob(&in_go(text)).into_iter().collect() };
            for glob in parsed {
                globs.add(glob);
            }
        }
        let (included, excluded) = (included.build().ok()?, excluded.build().ok()?);
        // Argo CD skips directories whose names begin with a dot.
        let is_hidden = |path: &str| path::components(path).any(|name| name.starts_with('.'));
        Some(move |path: &str| included.is_match(path) && !excluded.is_match(path) && (is_files || !is_hidden(path)))
    }

    /// The entry of the generator that excludes a path that localizing adds, and similar paths beside other
    /// applications: else it would make an application of each.
    pub(crate) fn exclusion(&self, path: &str) -> String {
        let names: Vec<&str> = path::components(path).collect();
        let at = names.iter().position(|name| *name == LOCALIZED_FILES);
        let pattern = match at {
            // In git `**/` needs a directory before it, and in Go a star is one name.
            None => path.to_owned(),
            Some(0) if self.is_files => format!("{LOCALIZED_FILES}/**"),
            Some(_) if self.is_files => format!("**/{LOCALIZED_FILES}/**"),
            Some(at) => names
                .into_iter()
                .enumerate()
                .map(|(index, name)| if index == at { name } else { "*" })
                .collect::<Vec<_>>()
                .join("/"),
        };
        format!("{{path: {}, exclude: true}}", quoted(&pattern))
    }
}

//! The arguments that Argo CD gives to helm (`template` in its `util/helm/cmd.go`).

use std::collections::BTreeMap;

use super::Argo;
use super::environment::Environment;
use super::models::{Helm, Parameter, Source, sources};
use crate::kustomization::Scalar;
use crate::message::failure::shown;
use crate::message::redact;
use crate::targets::chart::{self, Release, ReleaseFields};
use crate::targets::scan::Document;
use crate::tree::path;

/// The characters that make a path mean several files, or are filled in.
pub(super) const PATTERN: [char; 5] = ['*', '?', '[', '{', '$'];

/// The directory of a source in this repository.
#[derive(Clone, Copy)]
pub(super) struct SourceDir<'a> {
    /// The top of the repository of the source.
    pub(super) top: &'a str,
    pub(super) directory: &'a str,
}

impl Argo<'_> {
    /// How Argo CD renders the chart of a source, or why that is unknown.
    pub(super) fn release(&self, document: &Document, source: &Source, dir: SourceDir<'_>) -> Result<Release, String> {
        let default = Helm::default();
        let helm = source.helm.as_ref().unwrap_or(&default);
        // A placeholder in the template of an ApplicationSet would be rendered as if it were the value.
        if document.object.set.is_some() && helm.is_open() {
            return Err("its `helm` is filled in elsewhere".to_owned());
        }
        if let Some(why) = helm.unread() {
            return Err(why);
        }
        let environment = Environment::of(document, source);
        let rendered = ReleaseFields {
            name: Scalar::given(helm.release_name.as_ref()).unwrap_or(&document.object.name),
            namespace: Scalar::given(helm.namespace.as_ref())
                .unwrap_or(&environment.application.destination.namespace.0),
            files: &helm.value_files,
            may_be_missing: helm.ignore_missing_value_files,
            values: helm.values_object.as_ref().or(helm.values.as_ref()),
            skips_crds: helm.skip_crds,
            options: helm.options(&environment)?,
        };
        rendered.into_release(self.tree, &|text| {
            let path = self.values_file(document, &environment, Some(dir), text)?;
            if path.contains(PATTERN) { Err(format!("`{path}` is not the name of one file")) } else { Ok(path) }
        })
    }

    /// The path from the top of a file with values, which a source names as `text`; a pattern stays one. Fails if it is
    /// not in the looked at revision of this repository. `dir` is `None` for a source that is not in it.
    pub(super) fn values_file(
        &self,
        document: &Document,
        environment: &Environment<'_>,
        dir: Option<SourceDir<'_>>,
        text: &str,
    ) -> Result<String, String> {
        if text.contains("://") {
            return Err(format!("its values come from {}", redact::url(text)));
        }
        // If there are several sources, a path may begin with the name of another one: `$REF/…`.
        let has_names = !environment.application.sources.is_empty();
        let named = text.strip_prefix('$').filter(|_| has_names).and_then(|text| text.split_once('/'));
        // A text with an unknown variable stays as written: its `$` makes it a pattern.
        let filled = |text: &str| environment.fill_in(text).unwrap_or_else(|_| text.to_owned());
        let (from, inside) = match named {
            Some((name, inside)) => (self.top_of_named(document, name), filled(inside)),
            None => match filled(text).strip_prefix('/') {
                Some(inside) => (dir.map(|dir| dir.top), inside.to_owned()),
                None => (dir.map(|dir| dir.directory), filled(text)),
            },
        };
        let from = from.ok_or_else(|| format!("`{}` is not in this revision of this repository", shown(text)))?;
        // A path that begins with a slash is below the top, however many it has.
        let inside = inside.trim_start_matches('/');
        path::resolve(from, inside).ok_or_else(|| format!("`{}` leads out of the repository", shown(text)))
    }

    /// The top of the source with a name (`ref`); `None` if it is not in the looked at revision of this repository.
    fn top_of_named(&self, document: &Document, name: &str) -> Option<&str> {
        let mut all = sources(&document.value).into_iter().filter_map(|source| source.read::<Source>().ok());
        let named = all.find(|source| source.name.as_deref() == Some(name))?;
        let url = named.repo_url?;
        let revision = super::revision(self.identity, &url, named.target_revision.as_deref());
        self.identity.directory_of(&url).filter(|_| revision.is_this)
    }
}

impl Helm {
    /// Whether it contains template expressions.
    fn is_open(&self) -> bool {
        serde_json::to_string(self).is_ok_and(|json| json.contains("{{"))
    }

    /// Why the rendered chart is unknown: a field changes it that the program does not read.
    fn unread(&self) -> Option<String> {
        chart::unread([("helm.fileParameters", !self.file_parameters.is_empty())])
    }

    /// The options of `helm template` that it sets, or why one is unknown.
    fn options(&self, environment: &Environment<'_>) -> Result<Vec<String>, String> {
        let version = self.kube_version.iter().map(|text| ("--kube-version", text));
        let all = version.chain(self.api_versions.iter().map(|text| ("--api-versions", text)));
        let all = all.filter(|(_, text)| !text.0.is_empty()).map(|(option, text)| format!("{option}={}", text.0));
        let mut all: Vec<String> = all.collect();
        all.extend(self.skip_schema_validation.then(|| "--skip-schema-validation".to_owned()));
        // The last parameter of a name counts, and the order of the map is that of Argo CD: `--set` before
        // `--set-string`.
        let mut parameters = BTreeMap::new();
        for Parameter { name, value, force_string } in &self.parameters {
            let option = if *force_string { "--set-string" } else { "--set" };
            parameters.insert((option, name), literal(&environment.fill_in(value)?));
        }
        all.extend(parameters.into_iter().map(|((option, name), value)| format!("{option}={name}={value}")));
        Ok(all)
    }
}

/// A value for `helm template --set`, to which a comma would begin another one (`cleanSetParameters` in Argo CD's
/// `util/helm/cmd.go`).
fn literal(value: &str) -> String {
    if value.starts_with('{') && value.ends_with('}') {
        return value.to_owned();
    }
    value.replace("\\,", ",").replace(',', "\\,")
}

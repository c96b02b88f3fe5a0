//! What Argo CD gives to helm (`template` in its `util/helm/cmd.go`).

use super::Argo;
use crate::kustomization::Value;
use crate::message::failure::shown;
use crate::message::redact;
use crate::targets::chart::{Keys, Release};
use crate::targets::scan::Document;
use crate::tree::path;

/// What makes several files of one, or is filled in.
pub(super) const PATTERN: [char; 5] = ['*', '?', '[', '{', '$'];

const KEYS: Keys = Keys {
    unread: &["helm.parameters", "helm.fileParameters"],
    name: &["helm.releaseName"],
    namespace: &["helm.namespace"],
    files: ["helm.valueFiles", "helm.ignoreMissingValueFiles"],
    values: &["helm.valuesObject", "helm.values"],
    no_crds: ["helm.skipCrds", "true"],
    options: &[
        ["helm.kubeVersion", "--kube-version"],
        ["helm.apiVersions", "--api-versions"],
        ["helm.skipSchemaValidation", "--skip-schema-validation"],
    ],
};

impl Argo<'_> {
    /// Returns how the chart of a source in a directory is rendered; else why that is not known. `base` is the top of its
    /// repository.
    pub(super) fn release(
        &self,
        found: &Document,
        source: &Value,
        base: &str,
        directory: &str,
    ) -> Result<Release, String> {
        let said = source.get("helm").map(|helm| helm.json().to_string());
        if found.object.set.is_some() && said.is_some_and(|said| said.contains("{{")) {
            return Err("its `helm` is filled in elsewhere".to_owned());
        }
        let namespace = found.value.at(&["spec", "destination", "namespace"]).and_then(Value::scalar);
        let given = [found.object.name.as_str(), namespace.as_deref().unwrap_or_default()];
        KEYS.release(self.tree, source, given, &|text| {
            let place = self.values_file(found, Some([base, directory]), text)?;
            if place.contains(PATTERN) { Err(format!("`{place}` is not the name of one file")) } else { Ok(place) }
        })
    }

    /// Returns the place of a file with values, or the pattern for several; else why that is not known. It may lie in a source
    /// that is named (`$REF/…`), else in one whose top and directory are known.
    pub(super) fn values_file(
        &self,
        found: &Document,
        places: Option<[&str; 2]>,
        text: &str,
    ) -> Result<String, String> {
        if text.contains("://") {
            return Err(format!("its values come from {}", redact::url(text)));
        }
        let named = text.strip_prefix('$').and_then(|text| text.split_once('/'));
        let (from, inside) = match named {
            Some((name, inside)) => (self.named(found, name), inside),
            None if text.starts_with('/') => (places.map(|[base, _]| base), text.trim_start_matches('/')),
            None => (places.map(|[_, directory]| directory), text),
        };
        let from = from.ok_or_else(|| format!("`{}` is not in this revision of this repository", shown(text)))?;
        path::resolve(from, inside).ok_or_else(|| format!("`{}` leads out of the repository", shown(text)))
    }

    /// Returns the top of the source that has a name, if it is this repository, as it is looked at.
    fn named(&self, found: &Document, name: &str) -> Option<&str> {
        let mut all = found.value.at(&["spec", "sources"])?.list()?.iter();
        let named = all.find(|one| one.get("ref").and_then(Value::text) == Some(name))?;
        let url = named.get("repoURL")?.text()?;
        let revision = super::revision(self.identity, url, named.get("targetRevision").and_then(Value::text));
        self.identity.directory_of(url).filter(|_| revision.is_this)
    }
}

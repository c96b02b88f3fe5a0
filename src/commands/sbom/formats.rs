//! The documents: CycloneDX 1.6, SPDX 2.3, and an in-toto statement with SLSA provenance.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Sbom;
use super::component::Component;
use crate::record::{Digest, sha256_hex};
use crate::reference::Upstream;

const TOOL: &str = env!("CARGO_PKG_NAME");
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The program, by its package URL.
const HOME: &str = concat!("pkg:cargo/", env!("CARGO_PKG_NAME"));
/// The word of SPDX for an unknown value.
const UNKNOWN: &str = "NOASSERTION";

impl Sbom {
    /// The id of a component in each document; without a component, that of the subject.
    fn element_id(&self, component: Option<usize>) -> String {
        component.map_or("repository".to_owned(), |index| format!("remote-{}", index + 1))
    }

    /// The ids of the components that the subject and each component reference, by the id of the referrer.
    fn dependencies(&self) -> BTreeMap<String, BTreeSet<String>> {
        // A lock names upstreams with their directories, but a component is a whole repository.
        let mut numbers: BTreeMap<&Upstream, Vec<usize>> = BTreeMap::new();
        for (index, component) in self.components.iter().enumerate() {
            numbers.entry(&component.source).or_default().push(index);
        }
        let mut below: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut is_named = vec![false; self.components.len()];
        for (index, component) in self.components.iter().enumerate() {
            // A reference to a source with several versions counts for each of them.
            let names = component.names.iter();
            let named = names.filter_map(|name| numbers.get(name).or_else(|| numbers.get(&name.source())));
            for named in named.flatten().filter(|named| **named != index) {
                is_named[*named] = true;
                below.entry(self.element_id(Some(index))).or_default().insert(self.element_id(Some(*named)));
            }
        }
        for (index, component) in self.components.iter().enumerate() {
            // The subject references the components that its own files name. One that nothing names would be lost, so
            // it belongs to the subject, too.
            if !is_named[index] || !component.named_by.is_empty() {
                below.entry(self.element_id(None)).or_default().insert(self.element_id(Some(index)));
            }
        }
        below
    }

    /// The builds and deployments whose images are unknown, each with the kind of the reason.
    fn unknown_images(&self) -> impl Iterator<Item = (&'static str, String)> {
        let not_built = self.images.not_built.iter().map(|failure| ("not-built", failure.to_string()));
        not_built.chain(self.images.elsewhere.iter().map(|line| ("elsewhere", line.clone())))
    }

    /// Each component as `shape` writes it, with its id.
    fn shaped(&self, shape: impl Fn(String, &Component) -> Value) -> Vec<Value> {
        let components = self.components.iter().enumerate();
        components.map(|(index, component)| shape(self.element_id(Some(index)), component)).collect()
    }

    /// The document in the format CycloneDX.
    pub(super) fn cyclonedx(&self) -> Value {
        let components = self.shaped(|id, component| {
            // A commit id is not a hash of downloaded bytes, so only files and charts have one.
            let hash = component.sha256().map(|hex| [json!({ "alg": "SHA-256", "content": hex })]);
            let license = component.license();
            let notes = component.notes().into_iter();
            let properties =
                notes.flat_map(|(name, values)| values.into_iter().map(move |value| property((name, value))));
            json!({
                "type": if component.is_image() { "container" } else { "library" },
                "bom-ref": id,
                "name": component.name,
                "version": component.version,
                "purl": component.purl,
                "hashes": hash,
                "licenses": license.map(|expression| [json!({ "expression": expression })]),
                "supplier": component.supplier().map(|name| json!({ "name": name })),
                "externalReferences": component.location.as_ref().map(|url| {
                    let kind = if url.starts_with("git+") { "vcs" } else { "distribution" };
                    [json!({ "type": kind, "url": url })]
                }),
                "properties": properties.collect::<Vec<_>>(),
            })
        });
        let dependencies = self.dependencies().into_iter();
        compact(json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {
                "timestamp": self.created,
                "tools": { "components": [{ "type": "application", "name": TOOL, "version": VERSION }] },
                "component": {
                    "type": "application",
                    "bom-ref": self.element_id(None),
                    "name": self.name,
                    "version": self.subject.hex(),
                    "properties": self.unknown_images().map(|(why, text)| property((why, &text))).collect::<Vec<_>>(),
                },
            },
            "components": components,
            "dependencies": dependencies.map(|(of, all)| json!({ "ref": of, "dependsOn": all })).collect::<Vec<_>>(),
        }))
    }

    /// The document in the format SPDX.
    pub(super) fn spdx(&self) -> Value {
        let unknown = self.unknown_images().map(|(why, text)| format!("{why}: {text}\n"));
        let mut packages = self.shaped(|id, component| {
            // As in CycloneDX, a commit is not a checksum of bytes.
            let checksum = component.sha256().map(|hex| [json!({ "algorithm": "SHA256", "checksumValue": hex })]);
            let notes = component.notes().into_iter();
            let notes = notes.map(|(name, values)| format!("{name}: {}\n", values.join(", ")));
            json!({
                "SPDXID": spdx_id(&id),
                "name": component.name,
                "versionInfo": component.version,
                "supplier": component.supplier().map(|name| format!("Organization: {name}")),
                "downloadLocation": component.location.as_deref().unwrap_or(UNKNOWN),
                "filesAnalyzed": false,
                "checksums": checksum,
                "licenseConcluded": UNKNOWN,
                "licenseDeclared": component.license().as_deref().unwrap_or(UNKNOWN),
                "copyrightText": UNKNOWN,
                "sourceInfo": notes.collect::<String>().trim_end(),
                "externalRefs": [{
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceType": "purl",
                    "referenceLocator": component.purl,
                }],
            })
        });
        // The subject is a package as well: relationships start at it.
        packages.push(json!({
            "SPDXID": spdx_id(&self.element_id(None)),
            "name": self.name,
            "versionInfo": self.subject.hex(),
            "downloadLocation": UNKNOWN,
            "filesAnalyzed": false,
            "sourceInfo": unknown.collect::<String>().trim_end(),
        }));
        let mut relationships = vec![relationship("DOCUMENT", "DESCRIBES", &self.element_id(None))];
        for (from, all) in self.dependencies() {
            relationships.extend(all.iter().map(|to| relationship(&from, "DEPENDS_ON", to)));
        }
        // The id of a document must be unique: the digest differs with images, or with another version of this program.
        let digest = sha256_hex(json!([packages, relationships, self.created, VERSION]).to_string().as_bytes());
        let namespace = format!("https://spdx.org/spdxdocs/{TOOL}-{}-{digest}", self.subject.hex());
        compact(json!({
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": spdx_id("DOCUMENT"),
            "name": self.name,
            "documentNamespace": namespace,
            "creationInfo": {
                "created": self.created,
                "creators": [format!("Tool: {TOOL}-{VERSION}")],
            },
            "packages": packages,
            "relationships": relationships,
        }))
    }

    /// The document as a provenance of SLSA, which has no place for images.
    pub(super) fn slsa(&self) -> Value {
        // SLSA has no field for versions and licenses: the digest identifies what was used.
        let dependencies = self.shaped(|_, component| {
            json!({
                "uri": component.location.as_ref().unwrap_or(&component.purl),
                "name": component.name_in_lock(),
                "digest": component.digest.as_ref().map(digest_set),
                "annotations": component.notes().into_iter().collect::<BTreeMap<_, _>>(),
            })
        });
        compact(json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{ "name": self.name, "digest": digest_set(&self.subject) }],
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {
                    "buildType": format!("{HOME}#localize/v1"),
                    "externalParameters": { "repository": self.name },
                    "resolvedDependencies": dependencies,
                },
                "runDetails": {
                    "builder": { "id": HOME, "version": { TOOL: VERSION } },
                    "metadata": { "finishedOn": self.created },
                },
            },
        }))
    }
}

/// A digest set of in-toto.
fn digest_set(digest: &Digest) -> Value {
    json!({ digest.name(): digest.hex() })
}

/// An identifier of SPDX.
fn spdx_id(id: &str) -> String {
    format!("SPDXRef-{id}")
}

/// A relationship of SPDX.
fn relationship(from: &str, kind: &str, to: &str) -> Value {
    let (from, to) = (spdx_id(from), spdx_id(to));
    json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to })
}

/// A property of CycloneDX.
fn property((name, value): (&str, &str)) -> Value {
    json!({ "name": format!("{TOOL}:{name}"), "value": value })
}

/// Takes out the fields that hold nothing: the formats demand that an unknown field is left out.
fn compact(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key, compact(value)));
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(all) => Value::Array(all.into_iter().map(compact).collect()),
        other => other,
    }
}

/// Whether a value says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

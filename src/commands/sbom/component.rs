//! The entries of a lock in the words of package URLs.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use super::licenses::identify;
use crate::message::failure::Result;
use crate::record::{Digest, Lock, Pinned};
use crate::reference::localized_path::root_segments;
use crate::reference::{RepoSpec, Upstream, file_pin};
use crate::tree::{Tree, license, path};

/// Something from elsewhere that builds use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Component {
    pub source: Upstream,
    pub name: String,
    /// The version or the commit; of a repository that is not locked the ref.
    pub version: Option<String>,
    pub purl: String,
    /// From where it is downloaded, as SPDX writes it.
    pub location: Option<String>,
    pub digest: Option<Digest>,
    /// The SPDX identifiers of its license files, if all of them are known.
    pub licenses: BTreeSet<&'static str>,
    /// The ref as it was written.
    pub reference: Option<String>,
    /// The directories that are in use, of a repository.
    pub paths: BTreeSet<String>,
    /// Why it stays remote, if it does.
    pub left: Option<String>,
    /// The builds that run an image.
    pub run_by: BTreeSet<String>,
    /// The locations in the tree that name it.
    pub named_by: BTreeSet<String>,
    /// The upstreams that it references.
    pub names: BTreeSet<Upstream>,
}

impl Component {
    /// A component about which nothing but its source is known yet.
    fn new(source: Upstream) -> Self {
        Component {
            source,
            name: String::new(),
            version: None,
            purl: String::new(),
            location: None,
            digest: None,
            licenses: BTreeSet::new(),
            reference: None,
            paths: BTreeSet::new(),
            left: None,
            run_by: BTreeSet::new(),
            named_by: BTreeSet::new(),
            names: BTreeSet::new(),
        }
    }

    /// Adds what another lock, or a build, knows of the same component.
    pub(super) fn merge(&mut self, other: Component) {
        self.digest = self.digest.take().or(other.digest);
        self.reference = self.reference.take().or(other.reference);
        self.left = self.left.take().or(other.left);
        self.licenses.extend(other.licenses);
        self.paths.extend(other.paths);
        self.names.extend(other.names);
    }

    pub(super) fn is_image(&self) -> bool {
        matches!(self.source, Upstream::Image { .. })
    }

    /// Its name in the lock, or the image.
    pub(super) fn name_in_lock(&self) -> String {
        if self.is_image() { self.source.url().to_owned() } else { self.source.to_string() }
    }

    /// The sha256 of a downloaded file; `None` for a repository.
    pub(super) fn sha256(&self) -> Option<&str> {
        match &self.digest {
            Some(Digest::Sha256(hex)) => Some(hex),
            _ => None,
        }
    }

    /// The supplier: the owner in a forge, or else the host; `None` if its location has no host.
    pub(super) fn supplier(&self) -> Option<String> {
        let url = Url::parse(self.location.as_ref()?.trim_start_matches("git+")).ok()?;
        let supplier = match url.host_str()? {
            "github.com" | "gitlab.com" | "raw.githubusercontent.com" => url.path_segments()?.next()?,
            host => host,
        };
        Some(supplier.to_owned()).filter(|supplier| !supplier.is_empty())
    }

    /// Its licenses as an SPDX expression; `None` if they are unknown.
    pub(super) fn license(&self) -> Option<String> {
        let all: Vec<&str> = self.licenses.iter().copied().collect();
        (!all.is_empty()).then(|| all.join(" AND "))
    }

    /// The facts for which the formats have no field, as names with their values: they become properties or comments.
    pub(super) fn notes(&self) -> Vec<(&'static str, Vec<&str>)> {
        let mut notes = vec![
            ("ref", self.reference.iter().map(String::as_str).collect()),
            ("path", self.paths.iter().map(String::as_str).collect()),
            ("named-by", self.named_by.iter().map(String::as_str).collect::<Vec<&str>>()),
            ("run-by", self.run_by.iter().map(String::as_str).collect()),
            ("stays-remote", self.left.iter().map(String::as_str).collect()),
        ];
        notes.retain(|(_, values)| !values.is_empty());
        notes
    }
}

/// The characters that stay as they are in a part of a package URL, and in a value of its qualifiers.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const VALUE: &AsciiSet = &PART.remove(b'/').remove(b':');

/// A text with percent-encoding, except for the characters that `keeps` lets stay.
fn encoded(text: &str, keeps: &'static AsciiSet) -> String {
    utf8_percent_encode(text, keeps).to_string()
}

/// A package URL, `pkg:KIND/NAME@VERSION?KEY=VALUE`, by which scanners know a component.
fn purl(kind: &str, name: &str, version: Option<&str>, qualifiers: &[(&str, &str)]) -> String {
    let name: Vec<String> = name.split('/').map(|part| encoded(part, PART)).collect();
    let version = version.map(|version| format!("@{}", encoded(version, PART))).unwrap_or_default();
    let mut qualifiers: Vec<String> =
        qualifiers.iter().map(|(key, value)| format!("{key}={}", encoded(value, VALUE))).collect();
    qualifiers.sort();
    let separator = if qualifiers.is_empty() { "" } else { "?" };
    format!("pkg:{kind}/{}{version}{separator}{}", name.join("/"), qualifiers.join("&"))
}

/// All entries of a lock, also those that stay remote, with the licenses that were copied.
pub(super) fn components(tree: &dyn Tree, directory: &str, lock: &Lock) -> Result<Vec<Component>> {
    let licenses = licenses(tree, directory, lock)?;
    let locked = lock.remotes.iter().map(|(source, pinned)| {
        let component = of_locked(source, pinned);
        Component { licenses: licenses.get(source).cloned().unwrap_or_default(), ..component }
    });
    Ok(locked.chain(lock.left.iter().map(|(upstream, reason)| of_left(upstream, reason))).collect())
}

/// The licenses of each source, if all of its license files are known.
fn licenses<'a>(
    tree: &dyn Tree,
    directory: &str,
    lock: &'a Lock,
) -> Result<BTreeMap<&'a Upstream, BTreeSet<&'static str>>> {
    // One unknown license makes the license of its source unknown.
    let mut known: BTreeMap<&Upstream, Option<BTreeSet<&'static str>>> = BTreeMap::new();
    for file in &lock.files {
        let (Some(source), Some(_)) = (&file.remote, license::licensed_directory(&file.path)) else {
            continue;
        };
        // A notice of copyright or of contents grants no rights.
        if ["notice", "copyright"].iter().any(|word| path::name(&file.path).to_lowercase().starts_with(word)) {
            continue;
        }
        let bytes = tree.read(&path::join(directory, &file.path))?;
        let license = identify(&String::from_utf8_lossy(&bytes));
        let ids = known.entry(source).or_insert_with(|| Some(BTreeSet::new()));
        match license {
            Some(id) => ids.iter_mut().for_each(|ids| ids.extend([id])),
            None => *ids = None,
        }
    }
    Ok(known.into_iter().filter_map(|(source, ids)| Some((source, ids?))).collect())
}

/// The component of a locked source, with its digest and the upstreams that it references.
fn of_locked(source: &Upstream, pinned: &Pinned) -> Component {
    let names = pinned.paths.values().flatten().cloned();
    let component =
        Component { digest: Some(pinned.digest.clone()), names: names.collect(), ..Component::new(source.clone()) };
    let hex = pinned.digest.hex();
    match source {
        Upstream::Git { url, reference, .. } => {
            let paths = pinned.paths.keys().map(|path| path::shown(path).to_owned()).collect();
            Component { reference: reference.clone(), paths, ..component.of_repository(url, Some(hex), "") }
        }
        Upstream::Chart { url, chart, version } => {
            component.of_chart(url, chart, pinned.resolved.as_deref().or(version.as_deref()))
        }
        // An image is never locked, but `Upstream` has it.
        Upstream::File { url } | Upstream::Image { image: url } => {
            Component { version: Some(hex.to_owned()), ..component.of_file(url, Some(hex)) }
        }
    }
}

/// The component of an upstream that stays remote for `reason`: it has no digest.
fn of_left(upstream: &Upstream, reason: &str) -> Component {
    let component = Component { left: Some(reason.to_owned()), ..Component::new(upstream.clone()) };
    match upstream {
        Upstream::Git { url, reference, path, .. } => {
            let paths = BTreeSet::from([path::shown(path).to_owned()]);
            Component {
                reference: reference.clone(),
                paths,
                ..component.of_repository(url, reference.as_deref(), path)
            }
        }
        Upstream::File { url } => {
            let version = file_pin(url).map(|(_, version)| version).filter(|version| !version.is_empty());
            Component { version, ..component.of_file(url, None) }
        }
        Upstream::Chart { url, chart, version } => component.of_chart(url, chart, version.as_deref()),
        Upstream::Image { image } => Component { left: component.left, ..of_image(image, BTreeSet::new()) },
    }
}

impl Component {
    /// Fills in the name, the package URL and the location of a git repository. `version` is a commit or a ref, `None`
    /// for the default branch. `path` is the directory or file in it; empty if there are several.
    fn of_repository(mut self, url: &str, version: Option<&str>, path: &str) -> Self {
        let spec = RepoSpec::parse(url).ok();
        let repository = spec.as_ref().map_or(url, |spec| spec.repo_path.trim_matches('/').trim_end_matches(".git"));
        let segments = spec.as_ref().map(|spec| root_segments(spec, "")).unwrap_or_default();
        let url = match url.split_once("://") {
            Some(_) => url.to_owned(),
            None => format!("ssh://{}", url.replacen(':', "/", 1)),
        };
        let at = version.map(|version| format!("@{version}")).unwrap_or_default();
        // The user of ssh, such as `git`, is not a part of the name.
        let parsed = Url::parse(&url).ok().and_then(|mut url| url.set_username("").is_ok().then_some(url));
        let location = format!("git+{}{at}", parsed.as_ref().map_or(&*url, Url::as_str));
        (self.name, self.purl) = match segments.first().map(String::as_str) {
            // The types of package URLs are named after these forges, and demand names in lower case; elsewhere the
            // repository is a qualifier.
            Some(host @ ("github.com" | "gitlab.com")) if repository.contains('/') => {
                let kind = host.trim_end_matches(".com");
                (repository.to_owned(), purl(kind, &repository.to_lowercase(), version, &[]))
            }
            _ => {
                let name = path::name(repository);
                (name.to_owned(), purl("generic", name, version, &[("vcs_url", &location)]))
            }
        };
        if !path.is_empty() {
            let subpath: Vec<String> = path.split('/').map(|segment| encoded(segment, PART)).collect();
            self.purl += &format!("#{}", subpath.join("/"));
        }
        Component { version: version.map(str::to_owned), location: Some(location), ..self }
    }

    /// Fills in the fields that describe a downloaded file.
    fn of_file(self, url: &str, sha256: Option<&str>) -> Self {
        let name = path::name(url.split(['?', '#']).next().unwrap_or_default()).to_owned();
        let checksum = sha256.map(|hex| format!("sha256:{hex}"));
        let checksum = checksum.iter().map(|checksum| ("checksum", checksum.as_str()));
        let qualifiers: Vec<(&str, &str)> = checksum.chain([("download_url", url)]).collect();
        Component { purl: purl("generic", &name, None, &qualifiers), name, location: Some(url.to_owned()), ..self }
    }

    /// Fills in the fields that describe a Helm chart.
    fn of_chart(self, url: &str, chart: &str, version: Option<&str>) -> Self {
        Component {
            name: chart.to_owned(),
            version: version.map(str::to_owned),
            purl: purl("helm", chart, version, &[("repository_url", url)]),
            location: url.starts_with("http").then(|| url.to_owned()),
            ..self
        }
    }
}

/// The component of a container image, with its tag and digest. `run_by` names the builds that run it.
pub(super) fn of_image(image: &str, run_by: BTreeSet<String>) -> Component {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    // A colon before a slash belongs to the port of a registry.
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    // As container runtimes do, a short name gets the registry docker.io.
    let registry = name.split_once('/').map(|(first, _)| first);
    let written_out = match registry {
        Some(first) if first.contains(['.', ':']) || first == "localhost" => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    };
    let qualifiers: Vec<(&str, &str)> =
        tag.map(|tag| ("tag", tag)).into_iter().chain([("repository_url", &*written_out)]).collect();
    let hex = digest.and_then(|digest| digest.strip_prefix("sha256:"));
    Component {
        name: name.to_owned(),
        version: digest.or(tag).map(str::to_owned),
        purl: purl("oci", &path::name(name).to_lowercase(), digest, &qualifiers),
        digest: hex.map(|hex| Digest::Sha256(hex.to_owned())).filter(Digest::is_valid),
        run_by,
        ..Component::new(Upstream::Image { image: image.to_owned() })
    }
}

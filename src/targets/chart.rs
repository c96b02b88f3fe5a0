//! The arguments that engines give to helm for a chart of the tree, and whether its templates ask the cluster.

use std::rc::Rc;

use serde_json::Value as Json;

use super::Target;
use crate::graph::archive::NestedArchives;
use crate::graph::inputs::{inputs_of_directory, paths_of};
use crate::message::failure::{Failure, Result, shown};
use crate::tree::{self, Resolved, Tree};

/// How an engine renders a chart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Release {
    /// The arguments of `helm template`, without values.
    pub arguments: Vec<String>,
    /// The values; the last ones win.
    pub values: Vec<Values>,
    /// Whether the values of the chart itself are ignored.
    pub replaces_own: bool,
}

/// Values for a chart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Values {
    /// A file, from the top of the repository.
    File(String),
    /// YAML.
    Text(String),
}

/// The fields of an engine's object about the chart that it renders.
pub(super) struct ReleaseFields<'a> {
    /// Those of the release.
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    /// Files with values, and whether these may be missing.
    pub(super) files: &'a [String],
    pub(super) may_be_missing: bool,
    /// Values in the object, which win over the files.
    pub(super) values: Option<&'a Json>,
    /// Whether the CustomResourceDefinitions beside the templates are left out.
    pub(super) skips_crds: bool,
    /// More options of helm.
    pub(super) options: Vec<String>,
}

/// Why the output is unknown: the object has one of these fields, each with whether it is set, and they are not read.
pub(super) fn unread<const N: usize>(fields: [(&str, bool); N]) -> Option<String> {
    let (field, _) = fields.into_iter().find(|(_, is_set)| *is_set)?;
    Some(format!("`{field}` may change it, and is not read"))
}

impl ReleaseFields<'_> {
    /// How the engine renders the chart, or why that is unknown. `resolve` gives the path of a file with values from
    /// the top.
    pub(super) fn into_release(
        self,
        tree: &dyn Tree,
        resolve: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Release, String> {
        // Engines do not deploy tests, and tests often have random names.
        let mut release = Release { arguments: vec!["--skip-tests".to_owned()], ..Release::default() };
        // helm renders the name as a template, which could read the environment.
        for (option, value) in [("--name-template", self.name), ("--namespace", self.namespace)] {
            if !is_plain_name(value) {
                return Err(format!("`{}` is not a valid name", shown(value)));
            }
            release.arguments.extend((!value.is_empty()).then(|| format!("{option}={value}")));
        }
        // Engines install these by default; `helm template` does so only if it is told.
        if !self.skips_crds {
            release.arguments.push("--include-crds".to_owned());
        }
        release.arguments.extend(self.options);
        for file in self.files {
            let file = resolve(file)?;
            let is_missing = || matches!(tree::resolve(tree, &file), Ok(Resolved::Missing { .. }));
            if !self.may_be_missing || !is_missing() {
                release.values.push(Values::File(file));
            }
        }
        // Values are no arguments: other users of the machine can see a command line.
        let inline = self.values.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        release.values.extend(inline.map(Values::Text));
        Ok(release)
    }
}

/// Whether a name has only the characters of names of objects, and is no option.
fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    name.chars().all(is_plain) && !name.starts_with('-')
}

/// How the chart of a target is rendered. Fails if that is unknown.
pub(crate) fn release(target: &Target) -> Result<Release> {
    if let Some(changer) = &target.changed_by {
        return Err(Failure::new(format!("{} may change it", changer.name)));
    }
    target
        .build
        .release
        .clone()
        .unwrap_or_else(|| Err("no object says how to render this chart".to_owned()))
        .map_err(Failure::new)
}

/// The values that an engine gives to helm for a chart, as YAML. Fails if the output would be unknown, because a file
/// of the values or of the chart itself is not in the tree, or because helm would have to ask the cluster.
pub(crate) fn read_values(tree: &dyn Tree, target: &Target, release: &Release, chart: &str) -> Result<Vec<Vec<u8>>> {
    // `helm template` gets no answer from a cluster, so its output would differ from what Flux deploys.
    let may_ask = target.engine.gives_lookup();
    let mut texts = Vec::new();
    for values in &release.values {
        let text = match values {
            Values::Text(text) => text.clone().into_bytes(),
            Values::File(file_path) => match tree::resolve(tree, file_path)? {
                Resolved::File { path, .. } => tree.read(&path)?,
                _ => return refuse(format!("its values file `{file_path}` does not exist")),
            },
        };
        // Values may be templates, too.
        if may_ask && uses_any(&text, &["lookup"]) {
            return refuse("its values may ask the cluster (`lookup`)".to_owned());
        }
        texts.push(text);
    }
    for file_path in file_paths(tree, chart)? {
        refuse_chart_file(tree, &file_path, may_ask)?;
    }
    Ok(texts)
}

/// Refuses a path of a chart whose content is not in the tree, and if the engine `may_ask` the cluster, a template that
/// does.
fn refuse_chart_file(tree: &dyn Tree, file_path: &str, may_ask: bool) -> Result<()> {
    match tree::resolve(tree, file_path)? {
        Resolved::Leaves { link, .. } => refuse(format!("`{link}` in the chart leads out of the repository")),
        Resolved::Submodule { path } => {
            refuse(format!("the submodule `{path}` in the chart is not in this repository"))
        }
        Resolved::File { path, .. } if may_ask && uses_any_within(&path, tree.read(&path)?.into(), &["lookup"]) => {
            refuse(format!("`{path}` may ask the cluster (`lookup`)"))
        }
        // helm itself fails for a broken link.
        _ => Ok(()),
    }
}

/// The failure of a chart whose output is unknown.
fn refuse<T>(why: String) -> Result<T> {
    Err(Failure::new(why))
}

/// Every path at which helm finds a file of a chart, with the targets of links in it.
pub(crate) fn file_paths(tree: &dyn Tree, chart: &str) -> Result<Vec<String>> {
    paths_of(tree, inputs_of_directory(tree, chart, &[chart.to_owned()])?)
}

/// Why a chart may render differently in a cluster; `None` if its templates do not use the facts of a cluster. Then two
/// outputs that are equal here may differ there, which `diff` reports as a failure. Two that differ here differ there.
pub(crate) fn why_cluster_differs(
    tree: &dyn Tree,
    target: &Target,
    release: &Release,
    chart: &str,
) -> Result<Option<String>> {
    const VERSIONS: [&str; 2] = ["--api-versions", "--kube-version"];
    let has_versions =
        release.arguments.iter().any(|argument| VERSIONS.iter().any(|option| argument.starts_with(option)));
    // With these arguments helm knows the versions, and does not ask the cluster.
    let mut asked: Vec<&str> = if has_versions { Vec::new() } else { vec![".Capabilities"] };
    // Only an engine that installs the chart itself has releases. Argo CD runs `helm template` in the cluster, too.
    if target.engine.gives_lookup() {
        asked.extend([".Release.IsUpgrade", ".Release.IsInstall", ".Release.Revision"]);
    }
    for file_path in file_paths(tree, chart)? {
        if let Resolved::File { path, .. } = tree::resolve(tree, &file_path)?
            && uses_any_within(&path, tree.read(&path)?.into(), &asked)
        {
            let message = format!("`{path}` may render to something else in the cluster (`.Capabilities`, `.Release`)");
            return Ok(Some(message));
        }
    }
    Ok(None)
}

/// Whether a template action of a chart file, or of a file packed in it, uses one of `words`, such as `lookup`. Also
/// true if that cannot be known: it is unreadable, or too large.
pub(super) fn uses_any_within(path: &str, bytes: Rc<[u8]>, words: &[&str]) -> bool {
    let (mut todo, mut archives) = (vec![(path.to_owned(), bytes)], NestedArchives::default());
    while let Some((path, bytes)) = todo.pop() {
        if !path.ends_with(".tgz") {
            if uses_any(&bytes, words) {
                return true;
            }
            continue;
        }
        match archives.unpack(&bytes) {
            Ok(files) => todo.extend(files),
            Err(_) => return true,
        }
    }
    false
}

/// Whether a template action in a text uses one of `words`, or a field of one.
fn uses_any(text: &[u8], words: &[&str]) -> bool {
    let text = String::from_utf8_lossy(text);
    let mut actions = text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
    actions.any(|action| {
        action.split(|letter: char| !(letter.is_alphanumeric() || "_.$".contains(letter))).any(|word: &str| {
            // `$.Release` is `.Release` inside of a `range` or `with`.
            let word = word.strip_prefix('$').filter(|rest| rest.starts_with('.')).unwrap_or(word);
            words
                .iter()
                .any(|wanted| word.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
        })
    })
}

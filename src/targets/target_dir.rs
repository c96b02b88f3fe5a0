//! The content of the tree at the paths of targets.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::argo::matcher;
use super::{
    AddedComponent, Artifact, BuildSettings, EngineName, Identity, ObjectRef, PathContent, Resource, Revision, Target,
    TargetDir, TargetLocation, Targets,
};
use crate::config::{Config, Declared};
use crate::message::failure::Result;
use crate::reference::is_url;
use crate::tree::{self, Entry, Resolved, Tree, path};

/// The content that an engine finds at a path in its part of this repository. `artifact` is what Flux packs; `None` for
/// another engine.
pub(super) fn inspect_path(
    tree: &dyn Tree,
    engine: EngineName,
    base: &str,
    written: &str,
    revision: Revision,
    artifact: Option<Rc<Artifact>>,
) -> Result<TargetDir> {
    let file_path = engine.resolve(base, written);
    let content = match &file_path {
        None if !base.is_empty() => PathContent::Nothing(format!("it is outside of `{base}`")),
        path => content_at(tree, engine, path.as_deref())?,
    };
    // A path that leads out of the source has none in the tree. Its content is `Nothing`, so `base` only stands for it.
    let path = file_path.unwrap_or_else(|| base.to_owned());
    let mut dir = TargetDir { written: written.to_owned(), path, revision, content, artifact, scanned: Vec::new() };
    if let PathContent::Directory(directory) = &dir.content
        && engine.generates()
    {
        dir.scanned = find_resources(tree, &dir, directory)?;
    }
    Ok(dir)
}

/// The directory of a release: its content is read as a chart, which may also be packed in a file, but not in a link.
pub(super) fn as_chart(tree: &dyn Tree, mut dir: TargetDir) -> Result<TargetDir> {
    // helm gets the chart, and nothing lists resources.
    dir.scanned.clear();
    dir.content = match dir.content {
        PathContent::Kustomization(at) | PathContent::Directory(at) => PathContent::Chart(at),
        PathContent::Nothing(why) => match tree::resolve(tree, &dir.path)? {
            Resolved::File { path, .. } if path == dir.path => PathContent::Chart(path),
            _ => PathContent::Nothing(why),
        },
        content => content,
    };
    Ok(dir)
}

/// The characters that make a pattern of a component.
const WILDCARDS: [char; 4] = ['*', '?', '[', '\\'];

/// Looks in the tree for a component that an object adds to a directory, and notes the content there, or the roots that
/// it matches, and whether the engine leaves it out: the object says that it `may_be_missing`, and nothing is there.
pub(super) fn find_component(
    tree: &dyn Tree,
    engine: EngineName,
    directory: &str,
    component: &mut AddedComponent,
    may_be_missing: bool,
) -> Result<()> {
    let text = &component.text.text;
    let path = path::resolve(directory, text);
    if component.is_pattern(engine) {
        component.matched = matching_roots(tree, directory, text)?;
    } else if !is_url(text) && !text.contains(['{', '$']) {
        // An absolute path is not in the tree, whatever it resolves to below the directory.
        let path = path.as_deref().filter(|_| !path::is_absolute(text));
        // Argo CD would see a chart in a directory that has one, and a chart is not a component.
        let engine = if engine.packs() { engine } else { EngineName::Kustomize };
        component.content = Some(content_at(tree, engine, path)?);
    }
    let is_possible = match &component.content {
        Some(content) => matches!(content, PathContent::Nothing(_)),
        // Argo CD looks for any text as a path, also for a URL; for a text with a variable the path is unknown. Flux
        // fails for a URL, so it leaves none out.
        None => !engine.generates() && !text.contains(['{', '$']),
    };
    // Unusable content, such as a file, is not missing. No engine finds anything outside of the repository.
    component.is_left_out =
        may_be_missing && is_possible && path.map_or(Ok(true), |path| is_absent(tree, engine, &path))?;
    Ok(())
}

impl AddedComponent {
    /// Whether its engine takes it for a pattern.
    fn is_pattern(&self, engine: EngineName) -> bool {
        let text = &self.text.text;
        engine.takes_patterns() && !is_url(text) && text.contains(WILDCARDS) && !text.contains(['{', '$'])
    }

    /// The directory that it begins with, if it is a pattern in `directory`: each directory below may match it.
    pub(super) fn pattern_base(&self, engine: EngineName, directory: &str) -> Option<String> {
        let literal = self.text.text.split(WILDCARDS).next().filter(|_| self.is_pattern(engine))?;
        path::resolve(directory, literal.rsplit_once('/').map_or("", |(base, _)| base))
    }
}

/// The roots that a pattern in a directory matches: `kustomize edit add component` adds what Go's `filepath.Glob`
/// finds.
fn matching_roots(tree: &dyn Tree, directory: &str, pattern: &str) -> Result<Vec<String>> {
    let mut paths = BTreeSet::from([directory.to_owned()]);
    for part in path::components(pattern) {
        if !part.contains(WILDCARDS) {
            paths = paths.iter().filter_map(|path| path::resolve(path, part)).collect();
            continue;
        }
        // Go takes a broken pattern for an error, and matches nothing.
        let Some(matcher) = matcher(part) else { return Ok(Vec::new()) };
        let mut matches = BTreeSet::new();
        for path in directories(tree, &paths)? {
            let names = tree.names(&path)?;
            matches.extend(names.iter().filter(|name| matcher.is_match(name)).map(|name| path::join(&path, name)));
        }
        paths = matches;
    }
    let mut roots = Vec::new();
    for path in directories(tree, &paths)? {
        if tree::kustomization_in(tree, &path)?.is_some() {
            roots.push(path);
        }
    }
    Ok(roots)
}

/// The directories to which paths lead, each once: several links to one would double the work with each part of a
/// pattern.
fn directories(tree: &dyn Tree, paths: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut directories = BTreeSet::new();
    for path in paths {
        if let Resolved::Directory { path } = tree::resolve(tree, path)? {
            directories.insert(path);
        }
    }
    Ok(directories)
}

/// Whether an engine finds nothing at a path.
fn is_absent(tree: &dyn Tree, engine: EngineName, path: &str) -> Result<bool> {
    let is_link = engine.packs() && link_to(tree, path)?.is_some();
    let there = tree::resolve(tree, path)?;
    Ok(is_link || !matches!(there, Resolved::File { .. } | Resolved::Directory { .. } | Resolved::Submodule { .. }))
}

/// The content that an engine finds at a path of the tree; `None` means a path outside of it.
fn content_at(tree: &dyn Tree, engine: EngineName, file_path: Option<&str>) -> Result<PathContent> {
    let Some(file_path) = file_path else { return nothing("it is outside of the repository".to_owned()) };
    let link = if engine.packs() { link_to(tree, file_path)? } else { None };
    if let Some(link) = link {
        return nothing(format!("`{link}` is a link, which Flux leaves out of its artifacts"));
    }
    let directory = match tree::resolve(tree, file_path)? {
        Resolved::Directory { path } => path,
        Resolved::Submodule { path } => return Ok(PathContent::Submodule(path)),
        Resolved::Missing { path } => return nothing(format!("there is no `{path}`")),
        Resolved::File { .. } => return nothing(format!("`{file_path}` is a file")),
        Resolved::Leaves { link, .. } => return nothing(format!("`{link}` leads out of the repository")),
        Resolved::Loop { link } => return nothing(format!("`{link}` leads to itself")),
    };
    engine.classify(tree, directory)
}

/// No content, and why.
fn nothing(why: String) -> Result<PathContent> {
    Ok(PathContent::Nothing(why))
}

/// The first link on the way to a path, or at it; `None` if there is none.
fn link_to<'a>(tree: &dyn Tree, path: &'a str) -> Result<Option<&'a str>> {
    let way: Vec<&str> = path::and_above(path).collect();
    for path in way.into_iter().rev() {
        if tree.entry(path)? == Some(Entry::Link) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The resources that Flux finds in a directory of an artifact, and lists in the kustomization that it generates: YAML
/// files at any depth, and directories with a kustomization.
fn find_resources(tree: &dyn Tree, dir: &TargetDir, directory: &str) -> Result<Vec<Resource>> {
    let mut scanned = Vec::new();
    let is_packed = |file: &str| dir.left_out(file).is_none();
    for name in tree.names(directory)? {
        let path = path::join(directory, &name);
        match tree.entry(&path)? {
            // Flux does not enter a directory with a kustomization. One that is a link into another directory is not in
            // the artifact.
            Some(Entry::Directory)
                if tree::kustomization_in(tree, &path)?
                    .is_some_and(|(_, file)| path::parent(&file) == path && is_packed(&file)) =>
            {
                scanned.push(Resource { path, is_root: true });
            }
            Some(Entry::Directory) => scanned.extend(find_resources(tree, dir, &path)?),
            Some(Entry::File { .. }) if (name.ends_with(".yaml") || name.ends_with(".yml")) && is_packed(&path) => {
                scanned.push(Resource { path, is_root: false });
            }
            // Links are not in the artifact.
            _ => {}
        }
    }
    Ok(scanned)
}

/// Looks at the tips of localized branches for the paths of targets that this tree lacks: copies exist only there. A
/// path at which this tree has something else is not looked for.
pub(super) fn look_on_localized_branches(tree: &dyn Tree, identity: &Identity, targets: &mut Targets) -> Result<()> {
    for target in &mut targets.targets {
        if let TargetLocation::Local(dir) = &mut target.location
            && dir.is_missing()
            && dir.revision.is_localized()
            && matches!(tree::resolve(tree, &dir.path)?, Resolved::Missing { .. })
            && let Some(tip) = identity.tip(&dir.revision)?
        {
            dir.content = content_at(&tip, target.engine, Some(&dir.path))?;
        }
    }
    Ok(())
}

/// Marks targets in submodules as missing if their artifacts do not have these. Only after it is known which URL is
/// this repository, because these paths tell it, too.
pub(super) fn mark_missing_submodules(targets: &mut Targets) {
    for target in &mut targets.targets {
        if let TargetLocation::Local(dir) = &mut target.location
            && let PathContent::Submodule(path) = &dir.content
            && dir.artifact.as_ref().is_some_and(|artifact| !artifact.has_submodules)
        {
            let why =
                format!("`{path}` is a submodule, which Flux fetches only with `recurseSubmodules` in its source");
            dir.content = PathContent::Nothing(why);
        }
    }
}

impl BuildSettings {
    /// Notes which of these paths are submodules: this repository lacks their content, so that the output is unknown
    /// and changes with their commits.
    pub(super) fn note_submodules(&mut self, tree: &dyn Tree, files: &[String]) -> Result<()> {
        for path in files {
            if tree.entry(path)? == Some(Entry::Submodule) {
                self.unread.get_or_insert(format!("`{path}` is a submodule"));
                self.more_inputs.push(path.clone());
            }
        }
        Ok(())
    }
}

/// Adds the targets of the configuration, which no object defines.
pub(super) fn add_declared(tree: &dyn Tree, config: &Config, targets: &mut Targets) -> Result<()> {
    for declared in &config.targets {
        let Declared { engine, path, position, .. } = declared;
        let object = ObjectRef::of(&config.file, position.line, ObjectRef::LISTED, tree.label(path));
        let load_restrictor = engine.load_restrictor(targets.argo_options.as_deref());
        let target = Target::of_directory(tree, *engine, path, object, load_restrictor)?;
        targets.targets.push(Target { spot: *position, ..target });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::overlay::OverlayTree;

    #[test]
    fn links_do_not_multiply_the_matches_of_a_pattern() {
        let mut tree = OverlayTree::default();
        tree.add_file("parts/x/kustomization.yaml", b"kind: Component\n");
        for link in ["parts/a", "parts/b"] {
            tree.link(link, ".");
        }
        tree.link("parts/y", "x");
        // Without end if each link were followed by itself.
        let pattern = format!("../parts/{}[xy]", "*/".repeat(60));
        assert_eq!(matching_roots(&tree, "app", &pattern).unwrap(), ["parts/x"]);
    }
}

//! The content of the tree at the paths of targets.

use std::rc::Rc;

use super::{
    AddedComponent, Artifact, BuildSettings, EngineName, Identity, ObjectRef, PathContent, Resource, Revision, Target,
    TargetDir, TargetLocation, Targets,
};
use crate::config::{Config, Declared};
use crate::message::failure::Result;
use crate::reference::is_url;
use crate::tree::{self, Entry, Resolved, Tree, path};

/// The content that an engine finds at a path in its part of this repository.
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
        path => look(tree, engine, path.as_deref())?,
    };
    let path = file_path.unwrap_or_else(|| base.to_owned());
    let mut dir = TargetDir { written: written.to_owned(), path, revision, content, artifact, scanned: Vec::new() };
    if let (true, PathContent::Directory(directory)) = (engine.generates(), &dir.content) {
        dir.scanned = scan(tree, &dir, directory)?;
    }
    Ok(dir)
}

/// Reads the content as a chart, which may be packed.
pub(super) fn chart(tree: &dyn Tree, mut dir: TargetDir) -> Result<TargetDir> {
    dir.scanned.clear();
    dir.content = match dir.content {
        PathContent::Kustomization(at) | PathContent::Directory(at) => PathContent::Chart(at),
        PathContent::Nothing(why) => match tree::resolve(tree, &dir.path)? {
            Resolved::File { path, .. } => PathContent::Chart(path),
            _ => PathContent::Nothing(why),
        },
        content => content,
    };
    Ok(dir)
}

/// Looks for a component that an object adds to a directory. An engine skips one that `may_be_missing`, and is.
pub(super) fn find_component(
    tree: &dyn Tree,
    engine: EngineName,
    directory: &str,
    component: &mut AddedComponent,
    may_be_missing: bool,
) -> Result<()> {
    let text = &component.text.text;
    let path = path::resolve(directory, text);
    // Only the engine resolves a pattern or a variable.
    if !is_url(text) && !text.contains(['*', '?', '[', '\\', '{', '$']) {
        let path = path.as_deref().filter(|_| !path::is_absolute(text));
        // A chart is not a component.
        let engine = if engine.packs() { engine } else { EngineName::Kustomize };
        component.content = Some(look(tree, engine, path)?);
    }
    let is_read = match &component.content {
        Some(content) => matches!(content, PathContent::Nothing(_)),
        // Argo CD reads any text as a path.
        None => !engine.generates() && !text.contains(['{', '$']),
    };
    // Other content, such as a file, is not missing.
    component.is_left_out =
        may_be_missing && is_read && path.map_or(Ok(true), |path| is_absent(tree, engine, &path))?;
    Ok(())
}

/// Whether an engine finds nothing at a path.
fn is_absent(tree: &dyn Tree, engine: EngineName, path: &str) -> Result<bool> {
    let is_link = engine.packs() && link_to(tree, path)?.is_some();
    let there = tree::resolve(tree, path)?;
    Ok(is_link || !matches!(there, Resolved::File { .. } | Resolved::Directory { .. } | Resolved::Submodule { .. }))
}

/// The content that an engine finds at a path of the tree; `None` means a path outside of it.
fn look(tree: &dyn Tree, engine: EngineName, file_path: Option<&str>) -> Result<PathContent> {
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

/// The link on the way to a path, or at it.
fn link_to<'a>(tree: &dyn Tree, path: &'a str) -> Result<Option<&'a str>> {
    let way: Vec<&str> = path::and_above(path).collect();
    for path in way.into_iter().rev() {
        if tree.entry(path)? == Some(Entry::Link) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The resources that Flux finds in a directory: YAML files at any depth, and directories with a kustomization.
fn scan(tree: &dyn Tree, dir: &TargetDir, directory: &str) -> Result<Vec<Resource>> {
    let mut scanned = Vec::new();
    let is_in = |file: &str| dir.left_out(file).is_none();
    for name in tree.names(directory)? {
        let path = path::join(directory, &name);
        // A link is not in an artifact.
        let is_seen = |link: &(&str, String)| path::parent(&link.1) == path && is_in(&link.1);
        match tree.entry(&path)? {
            // Flux does not enter a directory with a kustomization.
            Some(Entry::Directory)
                if tree::kustomization_in(tree, &path)?.is_some_and(|kustomization| is_seen(&kustomization)) =>
            {
                scanned.push(Resource { path, is_root: true });
            }
            Some(Entry::Directory) => scanned.extend(scan(tree, dir, &path)?),
            Some(Entry::File { .. }) if (name.ends_with(".yaml") || name.ends_with(".yml")) && is_in(&path) => {
                scanned.push(Resource { path, is_root: false });
            }
            _ => {}
        }
    }
    Ok(scanned)
}

/// Looks for paths that this tree lacks at the tips of localized branches.
pub(super) fn on_localized(tree: &dyn Tree, identity: &Identity, targets: &mut Targets) -> Result<()> {
    for target in &mut targets.targets {
        if let TargetLocation::Local(dir) = &mut target.location
            && dir.is_missing()
            && dir.revision.is_localized()
            && matches!(tree::resolve(tree, &dir.path)?, Resolved::Missing { .. })
            && let Some(tip) = identity.tip(&dir.revision)?
        {
            // Copies exist only on these branches.
            dir.content = look(&tip, target.engine, Some(&dir.path))?;
        }
    }
    Ok(())
}

/// Leaves submodules out of the artifacts that do not have them. A path in one tells nevertheless which URL is this
/// repository.
pub(super) fn without_submodules(targets: &mut Targets) {
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
    /// Notes the paths that are submodules instead of files.
    pub(super) fn hold_submodule(&mut self, tree: &dyn Tree, files: &[String]) -> Result<()> {
        for path in files {
            if tree.entry(path)? == Some(Entry::Submodule) {
                // This repository lacks the content.
                self.unread.get_or_insert(format!("`{path}` is a submodule"));
                // The output may change with the commit of the submodule.
                self.values.push(path.clone());
            }
        }
        Ok(())
    }
}

/// Adds the targets of the configuration.
pub(super) fn declared(tree: &dyn Tree, config: &Config, targets: &mut Targets) -> Result<()> {
    for declared in &config.targets {
        let Declared { engine, path, position, .. } = declared;
        let object = ObjectRef::of(&config.file, position.line, ObjectRef::LISTED, tree.label(path));
        let load_restrictor = engine.load_restrictor(targets.argo_options.as_deref());
        let target = Target::of_directory(tree, *engine, path, object, load_restrictor)?;
        targets.targets.push(Target { spot: *position, ..target });
    }
    Ok(())
}

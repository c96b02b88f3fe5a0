//! Plugin configurations: what `generators`, `transformers` and `validators` list. They may be files, or
//! roots whose resources they are.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::trouble::{Trouble, TroubleKind, WalkResult};
use super::{FileId, RootId, Target, Walker, Warning};
use crate::failure::{Failure, Location};
use crate::finding::WarningId;
use crate::kustomization::{self, Accepts, NoteKind, PluginFile, PluginUse, Reference, Reshaping};
use crate::redact;
use crate::reference::{self, RepoSpec};
use crate::tree::{self, Resolved, path};

/// How many fields of one configuration a warning names.
const MOST_FIELDS: usize = 5;

/// A root that is listed for the plugin configurations in it.
pub(super) struct PluginRoot {
    /// The root that lists it.
    pub(super) lister: RootId,
    /// The root that is listed.
    pub(super) root: RootId,
    /// What for.
    pub(super) listed: PluginUse,
    /// The field that lists it.
    pub(super) field: String,
}

impl Walker<'_> {
    /// Adds the references of a plugin configuration to the root that lists it: kustomize resolves
    /// them there, wherever the configuration itself lies.
    pub(super) fn read_plugin(
        &mut self,
        root: RootId,
        file: FileId,
        listed: PluginUse,
        field: &str,
    ) -> WalkResult<()> {
        let other = match listed {
            PluginUse::Generator => PluginUse::Transformer,
            PluginUse::Transformer => PluginUse::Generator,
        };
        let is_known = self.plugins.contains(&(root, file, other));
        if !self.plugins.insert((root, file, listed)) || !self.has_room() {
            return Ok(());
        }
        let plugin = self.plugin_file(file, listed)?;
        // A reference of a function that is listed for both is noted once.
        if is_known {
            return Ok(());
        }
        for note in &plugin.notes {
            self.note(root, file, note.clone());
        }
        for reference in &plugin.references {
            let field = format!("{field} > {}", reference.field);
            self.add_edge(
                root,
                file,
                Reference {
                    field,
                    ..reference.clone()
                },
            );
        }
        Ok(())
    }

    /// Returns what a plugin configuration says, which is read once, whoever lists it. What is wrong with it is noted.
    fn plugin_file(&mut self, file: FileId, listed: PluginUse) -> WalkResult<Rc<PluginFile>> {
        if let Some(known) = self.read_plugins.get(&(file, listed)) {
            return Ok(known.clone());
        }
        // A file that cannot be read fails once, too.
        self.read_plugins.insert((file, listed), Rc::default());
        let plugin = kustomization::read_plugin(&self.bytes(file)?, Some(listed));
        let plugin = Rc::new(plugin.unwrap_or_else(|refused| self.problems(file, refused)));
        if plugin.has_code {
            self.code.insert(file);
        }
        self.read_plugins.insert((file, listed), plugin.clone());
        Ok(plugin)
    }

    /// Reads the resources of roots that are listed as plugin configurations, as far as they are known.
    /// Returns whether there were any that had not been read.
    pub(super) fn read_plugin_roots(&mut self) -> bool {
        let mut any = false;
        let mut index = 0;
        // None are left where there is no room.
        while let Some(one) = self.plugin_roots.get(index) {
            let (lister, root, listed, field) =
                (one.lister, one.root, one.listed, one.field.clone());
            index += 1;
            for file in self.configurations(root).1 {
                if self.plugins.contains(&(lister, file, listed)) {
                    continue;
                }
                any = true;
                let added = self.graph.roots[lister].edges.len();
                if let Err(stop) = self.read_plugin(lister, file, listed, &field) {
                    self.trouble(stop, None, Some(file));
                }
                for edge in added..self.graph.roots[lister].edges.len() {
                    self.follow(lister, edge);
                }
            }
        }
        any
    }

    /// Returns a root and those that it names, and the files that hold their resources.
    fn configurations(&self, root: RootId) -> (Vec<RootId>, Vec<FileId>) {
        let mut files = Vec::new();
        let mut roots = Vec::new();
        let mut seen = HashSet::from([root]);
        let mut todo = vec![root];
        while let Some(root) = todo.pop() {
            roots.push(root);
            let node = &self.graph.roots[root];
            // A file that a configuration names is not one itself.
            let edges = node.edges.iter().filter(|edge| edge.from == node.file);
            for edge in edges.filter(|edge| !edge.reference.accepts.is_plugin()) {
                match edge.target {
                    Target::File(file) if edge.reference.accepts == Accepts::Either => {
                        files.push(file);
                    }
                    Target::Root { id, .. } if seen.insert(id) => todo.push(id),
                    _ => {}
                }
            }
        }
        (roots, files)
    }

    /// Notes the roots of plugin configurations that are not simply those in their files.
    pub(super) fn refuse_reshaped_plugins(&mut self) {
        let mut reshaping: HashMap<RootId, Vec<Reshaping>> = HashMap::new();
        let mut told = HashSet::new();
        for index in 0..self.plugin_roots.len() {
            let top = self.plugin_roots[index].root;
            let (roots, files) = self.configurations(top);
            let has_code = files.iter().any(|file| self.code.contains(file));
            for root in roots {
                let file = self.graph.roots[root].file;
                let fields = reshaping
                    .entry(root)
                    .or_insert_with(|| kustomization::reshaping(&self.graph.bytes(file)));
                // Built-in plugins do not use annotations.
                let found = fields
                    .iter()
                    .find(|field| has_code || !field.annotations_only);
                let Some(found) = found.copied().filter(|_| told.insert(root)) else {
                    continue;
                };
                let location = Location {
                    line: found.line,
                    column: found.column,
                    field: found.field.to_owned(),
                    ..self.graph.place(file)
                };
                let failure = Failure::new(format!(
                    "`{}` is listed for its plugin configurations, and `{}` changes them before they are used: only a build could say what they name or run",
                    self.graph.root_label(root),
                    found.field
                ))
                .hint("build it once, and list what comes out as a file: kustomize build DIRECTORY > plugins.yaml")
                .at(location);
                self.troubles.push(Trouble {
                    kind: TroubleKind::Reshaped(found),
                    edge: None,
                    root: None,
                    file: Some(file),
                    failure,
                });
            }
        }
    }

    /// Warns of strings in a configuration that only its code understands, where they look like names of
    /// files or URLs.
    pub(super) fn warn_of_custom_fields(
        &mut self,
        root: RootId,
        location: &Location,
        kind: &NoteKind,
    ) {
        let (strings, known): (&[(String, String)], Option<&str>) = match kind {
            NoteKind::KrmFunction { strings, .. } => (strings, None),
            NoteKind::LegacyPlugin {
                strings,
                args_from_file,
                ..
            } => (strings, args_from_file.as_deref()),
            _ => return,
        };
        let node = &self.graph.roots[root];
        let tree = &self.graph.sources[node.source].tree;
        let names_something = |text: &str| {
            if text.contains("://") || RepoSpec::parse(text).is_ok() {
                return text.contains("://") || reference::has_git_marker(text);
            }
            let place = path::resolve(&node.directory, text).filter(|_| !path::is_absolute(text));
            place.is_some_and(|place| {
                matches!(
                    tree::resolve(&**tree, &place),
                    Ok(Resolved::File { .. } | Resolved::Directory { .. })
                )
            })
        };
        let found: Vec<String> = strings
            .iter()
            .filter(|(field, text)| {
                !(field == "argsFromFile" && Some(text.as_str()) == known) && names_something(text)
            })
            .map(|(field, text)| format!("`{field}: {}`", redact::url(text)))
            .collect();
        if found.is_empty() {
            return;
        }
        let more = found.len().saturating_sub(MOST_FIELDS);
        let mut named = found[..found.len() - more].join(", ");
        if more > 0 {
            named.push_str(&format!(" and {more} more"));
        }
        self.graph.warnings.push(Warning {
            id: WarningId::CustomField,
            message: format!(
                "only its code knows whether this names something that a build reads, so it is left as it is and nothing is brought along for it: {named}"
            ),
            location: location.clone(),
        });
    }
}

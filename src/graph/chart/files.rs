//! The files of a chart. A build needs them all, byte for byte.

use std::collections::{BTreeMap, HashSet};

use super::archive::Files;
use super::schema::{self, ExternalRef};
use crate::graph::local::HINT_WIDER_SCOPE;
use crate::graph::trouble::{At, Trouble, TroubleKind, WalkResult};
use crate::graph::{ScopedTree, SourceId, WalkPolicy, Walker};
use crate::message::redact;
use crate::os::limits::{CARRIED_FILES, PATH};
use crate::tree::{self, Resolved, path};

/// Hints for a schema of the user, and for one of an upstream.
const INLINE: &str = "inline it below `$defs`, or remove `values.schema.json` from the vendored chart";
const VENDOR: &str =
    "put the chart into this repository, and there inline it below `$defs`, or remove `values.schema.json`";

/// Files of a tree, by their paths in a chart: the real path, and whether the file is executable.
type Listed = BTreeMap<String, (String, bool)>;

impl Walker {
    /// Inspects the files that helm reads of a chart in the tree: its schemas must not make helm read anything else,
    /// and the files that a result needs are added to the graph. `sound` are the paths of the user's charts without
    /// problems.
    pub(super) fn inspect_files(
        &mut self,
        chart: usize,
        source: SourceId,
        chart_path: &str,
        sound: &mut HashSet<String>,
        policy: &WalkPolicy<'_>,
        has_network: bool,
    ) -> WalkResult<()> {
        let is_users = self.graph.sources[source].repository.is_none();
        // Only a copy contains the user's own files; otherwise they stay where they are.
        let needs_files = !is_users || policy.forbidden.is_some();
        // Many roots may render one chart, and its schemas say the same each time.
        if !needs_files && sound.contains(chart_path) {
            return Ok(());
        }
        let listed = self.files_of_chart(source, chart_path)?;
        let mut read = Files::new();
        for (inside, (path, _)) in listed.iter().filter(|(inside, _)| schema::is_read(inside)) {
            read.insert(inside.clone(), self.graph.sources[source].tree.read(path)?.into());
        }
        let user_files = if is_users { &listed } else { &Listed::new() };
        // `check`, which has neither a network nor paths that may be missing, reports the requests that are allowed as
        // well, and marks them as allowed.
        let reports_allowed = !has_network && policy.allows_missing.is_none();
        let is_sound =
            self.judge_schemas(chart, read, user_files, &|url| !reports_allowed && policy.covers_schema(url));
        if needs_files {
            let files = listed.into_iter();
            let files =
                files.map(|(inside, (path, executable))| (inside, self.find_or_add_file(source, &path, executable)));
            self.graph.charts[chart].files = files.collect();
        } else if is_sound {
            sound.insert(chart_path.to_owned());
        }
        Ok(())
    }

    /// Records a trouble for each URL or file that the schemas of a chart make helm read, unless it `is_allowed`: no
    /// lock pins its content. The trouble is at the schema if it is one of `user_files`, otherwise at the reference to
    /// the chart. Returns whether there are no troubles.
    pub(super) fn judge_schemas(
        &mut self,
        chart: usize,
        files: Files,
        user_files: &Listed,
        is_allowed: &dyn Fn(&str) -> bool,
    ) -> bool {
        let before = self.troubles.len();
        let (note, name) = (self.graph.charts[chart].note, self.graph.charts[chart].name.clone());
        for ExternalRef { carrier, inside, url, position } in schema::external_refs(files) {
            if url.as_ref().is_ok_and(|url| is_allowed(url)) {
                continue;
            }
            // A schema of the user can be edited, so the trouble is reported there. For a fetched chart only the
            // reference can be edited.
            let file = user_files.get(&carrier);
            let file = file.map(|(path, executable)| self.find_or_add_file(SourceId::FIRST, path, *executable));
            // The location names the schema, unless it is in an archive or in a fetched chart.
            let is_located = file.is_some() && inside.is_empty();
            let schema = path::join(&carrier, &inside);
            let mut trouble = match url {
                Ok(url) => {
                    let origin = if is_located { String::new() } else { format!(", as `{schema}` in it says") };
                    request_of_schema(&url, &name, &origin).hint(if file.is_some() { INLINE } else { VENDOR })
                }
                Err(why) => {
                    let message = format!("helm cannot read `{schema}` of the chart `{name}`: {why}");
                    let trouble = Trouble::new(TroubleKind::Schema { url: String::new() }, message);
                    trouble.hint("fix it, or remove it from the chart")
                }
            };
            if let Some(file) = file {
                trouble.failure = trouble.failure.at(self.graph.location_in(file, position, ""));
            }
            self.record_trouble(*trouble, file.map_or(At::Note(note), At::File));
        }
        self.troubles.len() == before
    }

    /// The files of the chart at a path of a source, with links followed. Fails if the chart is not in the scope, or if
    /// a link in it leads out of the scope, to nothing, into a submodule or to a directory that contains it.
    fn files_of_chart(&self, source: SourceId, chart_path: &str) -> WalkResult<Listed> {
        let ScopedTree { tree, scope, .. } = &self.graph.sources[source];
        let mut files = Listed::new();
        // The lookup of the chart has found a directory there.
        let Resolved::Directory { path: top } = tree::resolve(&**tree, chart_path)? else {
            return Ok(files);
        };
        let shown = tree.label(&top);
        // Both a link and the directory that it leads to must be inside, because a copy has only the scope.
        if !path::is_in(chart_path, scope) || !path::is_in(&top, scope) {
            let message = format!("the chart `{shown}` is outside the scope `{}`", tree.label(scope));
            return Err(Trouble::new(TroubleKind::OutOfScope, message).hint(HINT_WIDER_SCOPE));
        }
        let mut entries = 0;
        let mut todo = vec![(String::new(), top)];
        while let Some((inside, directory)) = todo.pop() {
            // Links to each other would make this path grow without end.
            PATH.check(inside.len(), || tree.label(&directory))?;
            for name in tree.names(&directory)? {
                // git stores no file in a directory of that name, so a clone does not have it.
                if name.eq_ignore_ascii_case(".git") {
                    continue;
                }
                let (file_path, inside) = (path::join(&directory, &name), path::join(&inside, &name));
                entries += 1;
                CARRIED_FILES.check(entries, || shown.clone())?;
                let resolved = tree::resolve(&**tree, &file_path)?;
                self.refuse_chart_link(source, &file_path, &resolved)?;
                match resolved {
                    Resolved::Directory { path } => todo.push((inside, path)),
                    Resolved::File { path, executable } => drop(files.insert(inside, (path, executable))),
                    other => return Err(self.unresolved(source, &tree.label(&file_path), other)),
                }
            }
        }
        Ok(files)
    }

    /// Refuses a link in a chart that leads out of the scope, or to a directory that contains it.
    fn refuse_chart_link(&self, source: SourceId, file_path: &str, resolved: &Resolved) -> WalkResult<()> {
        let ScopedTree { tree, scope, .. } = &self.graph.sources[source];
        let (Resolved::File { path, .. } | Resolved::Directory { path }) = resolved else { return Ok(()) };
        if !path::is_in(path, scope) {
            let message =
                format!("the link `{}` points to `{}`, outside of `{scope}`", tree.label(file_path), tree.label(path));
            return Err(
                Trouble::new(TroubleKind::OutOfScope, message).hint("replace the link with a copy of its target")
            );
        }
        if path != file_path && path::is_in(file_path, path) {
            let is_loop = Resolved::Loop { link: file_path.to_owned() };
            return Err(self.unresolved(source, &tree.label(file_path), is_loop));
        }
        Ok(())
    }
}

/// The trouble of a chart whose schema makes helm read a URL. `origin` names the schema.
fn request_of_schema(url: &str, chart: &str, origin: &str) -> Box<Trouble> {
    let url = redact::url(url);
    let reads = if url.starts_with("file:") { "reads" } else { "fetches" };
    let message = format!("helm {reads} `{url}` when it renders the chart `{chart}`{origin}");
    Trouble::new(TroubleKind::Schema { url }, message)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::config::Config;
    use crate::graph::testing;
    use crate::graph::{Explored, Survey, WalkPolicy};
    use crate::message::failure::Result;
    use crate::tree::overlay::OverlayTree;
    use crate::tree::{Entry, Tree};

    /// Notes what is listed and read. Whatever is called `dep` is a submodule.
    struct Noting(OverlayTree, Rc<RefCell<Vec<String>>>);

    impl Tree for Noting {
        fn entry(&self, path: &str) -> Result<Option<Entry>> {
            let entry = self.0.entry(path)?;
            Ok(if path.ends_with("/dep") { entry.and(Some(Entry::Submodule)) } else { entry })
        }

        fn names(&self, directory: &str) -> Result<Vec<String>> {
            self.1.borrow_mut().push(format!("{directory}/"));
            self.0.names(directory)
        }

        fn read(&self, path: &str) -> Result<Vec<u8>> {
            self.1.borrow_mut().push(path.to_owned());
            self.0.read(path)
        }
    }

    /// Walks two roots that use one chart, with more files, and returns what was listed and read as well.
    fn walked(more: &[(&str, &str)], policy: &WalkPolicy<'_>) -> (Explored, Vec<String>) {
        let root = "helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: c}]\n";
        let own = [("a/kustomization.yaml", root), ("b/kustomization.yaml", root), ("charts/c/templates/a.yaml", "")];
        let noted = Rc::default();
        let tree = Rc::new(Noting(testing::tree(&[&own, more].concat()), Rc::clone(&noted)));
        let source = ScopedTree { tree, scope: String::new(), repository: None };
        let explored = Survey::in_scope(source).judged(&["a".to_owned(), "b".to_owned()], policy);
        let noted = noted.borrow().iter().filter(|path| path.starts_with("charts/")).cloned().collect();
        (explored, noted)
    }

    #[test]
    fn only_schemas_of_a_chart_are_read_and_only_to_judge_it() {
        let schemas = [("charts/c/values.schema.json", "{}"), ("charts/c/charts/d/values.schema.json", "{}")];
        let config = Config::default();
        let judging = WalkPolicy { config: Some(&config), ..WalkPolicy::default() };
        let (explored, mut noted) = walked(&schemas, &judging);
        assert!(explored.troubles.is_empty());
        noted.sort();
        assert_eq!(
            noted,
            [
                "charts/c/",
                "charts/c/charts/",
                "charts/c/charts/d/",
                "charts/c/charts/d/values.schema.json",
                "charts/c/templates/",
                "charts/c/values.schema.json"
            ]
        );
        assert!(explored.graph.charts.iter().all(|chart| chart.files.is_empty()));
        assert_eq!(walked(&schemas, &WalkPolicy::default()).1, [""; 0]);
    }

    #[test]
    fn what_is_wrong_in_a_chart_is_said_of_each_that_uses_it() {
        let config = Config::default();
        let judging = WalkPolicy { config: Some(&config), ..WalkPolicy::default() };
        let troubles = |more: &[(&str, &str)]| walked(more, &judging).0.troubles;
        let submodule = troubles(&[("charts/c/charts/dep", "")]);
        let path = || "charts/c/charts/dep".to_owned();
        let kinds: Vec<_> = submodule.iter().map(|one| &one.kind).collect();
        assert_eq!(kinds, [&TroubleKind::Submodule { path: path() }, &TroubleKind::Submodule { path: path() }]);
        // One place has one finding.
        let schema = troubles(&[("charts/c/values.schema.json", "{\"$ref\": \"https://h/s\"}")]);
        assert!(schema.iter().all(|one| matches!(one.at, At::File(_))), "{schema:?}");
        assert_eq!(schema[0].failure, schema[1].failure);
    }
}

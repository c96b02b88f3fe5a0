//! Where a run begins: one answer for all commands.

use std::collections::BTreeSet;

use super::Config;
use crate::message::failure::{Failure, Result};
use crate::tree::{Tree, path};

impl Config {
    /// Returns the directories where a walk of `tree` starts, sorted: those of `kustomizations` that lie in what
    /// `include` matches and not in what `exclude` matches, and those that are `deployed` although the configuration
    /// leaves them out; where `paths` are given, in or below one of these. A root that another one names may be among
    /// them: it is walked once all the same.
    pub fn starting_points(
        &self,
        tree: &dyn Tree,
        paths: &[String],
        kustomizations: &[String],
        deployed: impl IntoIterator<Item = String>,
    ) -> Result<Vec<String>> {
        let own = self.own_starting_points(tree, paths, kustomizations);
        let is_in = |root: &String| paths.is_empty() || paths.iter().any(|path| path::is_in(root, path));
        let mut deployed: BTreeSet<String> = deployed.into_iter().filter(is_in).collect();
        if deployed.is_empty() || !paths.is_empty() && own.is_err() {
            return own;
        }
        // What the configuration leaves out as a whole may be deployed all the same.
        deployed.extend(own.unwrap_or_default());
        Ok(deployed.into_iter().collect())
    }

    fn own_starting_points(&self, tree: &dyn Tree, paths: &[String], kustomizations: &[String]) -> Result<Vec<String>> {
        let is_at = |place: &str, path: &String| path == place || path::is_in(path::parent(place), path);
        let holds_one = |places: &[&String], path: &String| places.iter().any(|place| is_at(place, path));
        let all: Vec<&String> = kustomizations.iter().collect();
        let starts: Vec<&String> = kustomizations.iter().filter(|place| self.starts(path::parent(place))).collect();
        if starts.is_empty() && paths.is_empty() && !all.is_empty() {
            // To look at nothing is not to find nothing.
            return Err(Failure::new(format!("`{}` excludes every kustomization", self.file))
                .hint("change `include` and `exclude` there"));
        }
        // To check nothing of what was requested is not a clean result.
        if let Some(path) = paths.iter().find(|path| !holds_one(&starts, path)) {
            let shown = tree.label(path);
            if holds_one(&all, path) {
                return Err(Failure::new(format!("every kustomization in `{shown}` is excluded by `{}`", self.file))
                    .hint("name another PATH, or change `include` and `exclude` there"));
            }
            return Err(Failure::new(format!("no kustomization in `{shown}`"))
                .hint("name a directory that contains a kustomization, or none, for all of them"));
        }
        let starts = starts.into_iter().filter(|place| paths.is_empty() || paths.iter().any(|path| is_at(place, path)));
        let starts: BTreeSet<&str> = starts.map(|place| path::parent(place)).collect();
        Ok(starts.into_iter().map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::overlay::OverlayTree;

    /// Returns where a walk starts of a tree with a few kustomizations.
    fn starts(config: &str, paths: &[&str]) -> Result<Vec<String>> {
        let config = Config::parse(config.as_bytes(), ".kustomize-localize").unwrap();
        let places = ["apps/a", "apps/b", "apps/b/deep", "base"];
        let mut tree = OverlayTree::default();
        tree.file("docs/index.md", b"", false);
        let kustomizations = places.map(|place| format!("{place}/kustomization.yaml"));
        for place in &kustomizations {
            tree.file(place, b"", false);
        }
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        config.starting_points(&tree, &paths, &kustomizations, [])
    }

    #[test]
    fn configuration_and_paths_say_where() {
        let cases: [(&str, &[&str], &[&str]); 11] = [
            ("", &[], &["apps/a", "apps/b", "apps/b/deep", "base"]),
            ("include: [apps]\n", &[], &["apps/a", "apps/b", "apps/b/deep"]),
            ("exclude: [apps/b]\n", &[], &["apps/a", "base"]),
            ("exclude: [deep, ase]\n", &[], &["apps/a", "apps/b", "apps/b/deep", "base"]),
            ("exclude: ['.', apps/*]\n", &[], &["base"]),
            ("include: [apps/*]\nexclude: [apps/b/deep]\n", &[], &["apps/a", "apps/b"]),
            ("include: [apps]\nexclude: ['**/deep']\n", &[], &["apps/a", "apps/b"]),
            ("", &["apps/b"], &["apps/b", "apps/b/deep"]),
            ("", &["base/kustomization.yaml"], &["base"]),
            ("", &[""], &["apps/a", "apps/b", "apps/b/deep", "base"]),
            ("exclude: ['**/deep']\n", &["apps/b", "base"], &["apps/b", "base"]),
        ];
        for (config, paths, expected) in cases {
            assert_eq!(starts(config, paths).unwrap(), expected, "{config}{paths:?}");
        }
    }

    #[test]
    fn nothing_to_start_at_is_an_error() {
        for (config, paths, says) in [
            ("include: [x]\n", &[][..], "`.kustomize-localize` excludes every kustomization"),
            ("exclude: ['**']\n", &[][..], "`.kustomize-localize` excludes every kustomization"),
            ("exclude: [base]\n", &["base"][..], "every kustomization in `base` is excluded by"),
            ("", &["apps", "docs"][..], "no kustomization in `docs`"),
            ("", &["nowhere"][..], "no kustomization in `nowhere`"),
        ] {
            let failure = starts(config, paths).unwrap_err();
            assert!(failure.message.starts_with(says), "{failure}");
        }
    }
}

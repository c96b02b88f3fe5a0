//! The starting points of a run: one rule for all commands.

use std::collections::BTreeSet;

use super::Config;
use crate::message::failure::{Failure, Result};
use crate::tree::{Tree, path};

impl Config {
    /// The directories where a walk of `tree` starts, sorted: the directories of `kustomizations` that `include` and
    /// `exclude` accept, and those that are `deployed` even if the configuration leaves them out. With `paths`, only
    /// those in or below one of these.
    pub fn starting_points(
        &self,
        tree: &dyn Tree,
        paths: &[String],
        kustomizations: &[String],
        deployed: impl IntoIterator<Item = String>,
    ) -> Result<Vec<String>> {
        let configured = self.configured_starting_points(tree, paths, kustomizations);
        let mut deployed: BTreeSet<String> = deployed.into_iter().collect();
        deployed.retain(|root| paths.is_empty() || paths.iter().any(|path| path::is_in(root, path)));
        // A requested path without a starting point is an error although something is deployed.
        if deployed.is_empty() || !paths.is_empty() && configured.is_err() {
            return configured;
        }
        // An error is dropped here: if the configuration excludes everything, the deployed roots are still checked.
        deployed.extend(configured.unwrap_or_default());
        Ok(deployed.into_iter().collect())
    }

    /// The starting points without those that are only deployed. Fails rather than to return none that were asked for.
    fn configured_starting_points(
        &self,
        tree: &dyn Tree,
        paths: &[String],
        kustomizations: &[String],
    ) -> Result<Vec<String>> {
        let mut starts: Vec<&String> = kustomizations.iter().collect();
        starts.retain(|file| self.may_start_in(path::parent(file)));
        if starts.is_empty() && paths.is_empty() && !kustomizations.is_empty() {
            // Success would look as if everything had been checked.
            return Err(Failure::new(format!("`{}` excludes every kustomization", self.file))
                .hint("change `include` and `exclude` there"));
        }
        // For the same reason, each requested path must contain a starting point.
        if let Some(path) = paths.iter().find(|path| !starts.iter().any(|file| is_below(file, path))) {
            let shown = tree.label(path);
            if kustomizations.iter().any(|file| is_below(file, path)) {
                return Err(Failure::new(format!("every kustomization in `{shown}` is excluded by `{}`", self.file))
                    .hint("name another PATH, or change `include` and `exclude` there"));
            }
            return Err(Failure::new(format!("no kustomization in `{shown}`"))
                .hint("name a directory that contains a kustomization, or none, for all of them"));
        }
        starts.retain(|file| paths.is_empty() || paths.iter().any(|path| is_below(file, path)));
        let starts: BTreeSet<&str> = starts.iter().map(|file| path::parent(file)).collect();
        Ok(starts.into_iter().map(str::to_owned).collect())
    }
}

/// Whether a kustomization file is at `path`, or its directory in or below `path`.
fn is_below(file: &str, path: &str) -> bool {
    path == file || path::is_in(path::parent(file), path)
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
        tree.add_file("docs/index.md", b"");
        let kustomizations = places.map(|place| format!("{place}/kustomization.yaml"));
        for place in &kustomizations {
            tree.add_file(place, b"");
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

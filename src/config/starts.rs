//! The starting points of a run: one rule for all commands.

use std::collections::BTreeSet;

use super::Config;
use crate::message::failure::{Failure, FailureKind, Result};
use crate::tree::{Tree, path};

impl Config {
    /// The directories where a walk of `tree` starts, sorted: the directories of `kustomizations` that `include` and
    /// `exclude` accept, and those that are `deployed` even if the configuration leaves them out. With `paths`, only
    /// those in or below one of these. Fails if nothing is left of the kustomizations, or of one of `paths`.
    pub fn starting_points(
        &self,
        tree: &dyn Tree,
        paths: &[String],
        kustomizations: &[String],
        deployed: impl IntoIterator<Item = String>,
    ) -> Result<Vec<String>> {
        let mut starts: BTreeSet<String> = deployed.into_iter().collect();
        let included = kustomizations.iter().map(|file| path::parent(file)).filter(|root| self.may_start_in(root));
        starts.extend(included.map(str::to_owned));
        if paths.is_empty() {
            // Success would look as if everything had been checked.
            if starts.is_empty() && !kustomizations.is_empty() {
                return Err(Failure::new(format!("`{}` excludes every kustomization", self.file))
                    .hint("change `include` and `exclude` there")
                    .because(FailureKind::Excluded));
            }
            return Ok(starts.into_iter().collect());
        }
        // For the same reason, each requested path must contain a starting point.
        for path in paths {
            if !starts.iter().any(|root| is_root_of(path, root, kustomizations)) {
                return Err(self.no_start_failure(tree, path, kustomizations));
            }
        }
        starts.retain(|root| paths.iter().any(|path| is_root_of(path, root, kustomizations)));
        Ok(starts.into_iter().collect())
    }

    /// The failure of a requested path without a starting point: its kustomizations are excluded, or it has none.
    fn no_start_failure(&self, tree: &dyn Tree, path: &str, kustomizations: &[String]) -> Failure {
        let shown = tree.label(path);
        if kustomizations.iter().any(|file| is_root_of(path, path::parent(file), kustomizations)) {
            return Failure::new(format!("every kustomization in `{shown}` is excluded by `{}`", self.file))
                .hint("name another PATH, or change `include` and `exclude` there");
        }
        Failure::new(format!("no kustomization in `{shown}`"))
            .hint("name a directory that contains a kustomization, or none, for all of them")
    }
}

/// Whether a requested path means a root: it is a directory that contains it, or its kustomization.
fn is_root_of(path: &str, root: &str, kustomizations: &[String]) -> bool {
    path::is_in(root, path) || path::parent(path) == root && kustomizations.iter().any(|file| file == path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::overlay::OverlayTree;

    /// Returns where a walk starts of a tree with a few kustomizations.
    fn starts(config: &str, paths: &[&str]) -> Result<Vec<String>> {
        starts_with(config, paths, &[])
    }

    /// Returns where a walk starts if targets deploy some roots.
    fn starts_with(config: &str, paths: &[&str], deployed: &[&str]) -> Result<Vec<String>> {
        let config = Config::parse(config.as_bytes(), ".kustomize-localize").unwrap();
        let places = ["apps/a", "apps/b", "apps/b/deep", "base"];
        let mut tree = OverlayTree::default();
        tree.add_file("docs/index.md", b"");
        let kustomizations = places.map(|place| format!("{place}/kustomization.yaml"));
        for place in &kustomizations {
            tree.add_file(place, b"");
        }
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        config.starting_points(&tree, &paths, &kustomizations, deployed.iter().map(|root| (*root).to_owned()))
    }

    #[test]
    fn a_deployed_root_starts_although_it_is_excluded() {
        let config = "exclude: [apps, base]\n";
        for (paths, deployed, expected) in [
            (&[][..], &["apps/a"][..], &["apps/a"][..]),
            (&["apps/a"], &["apps/a"], &["apps/a"]),
            (&["apps/b/kustomization.yaml"], &["apps/b", "apps/b/deep"], &["apps/b"]),
            (&["apps/a", "base"], &["apps/a", "base"], &["apps/a", "base"]),
        ] {
            assert_eq!(starts_with(config, paths, deployed).unwrap(), expected, "{paths:?}");
        }
        let failure = starts_with(config, &["apps/a", "base"], &["apps/a"]).unwrap_err();
        assert_eq!(failure.message, "every kustomization in `base` is excluded by `.kustomize-localize`");
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

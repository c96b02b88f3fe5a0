mod attributes;
mod bytes;
mod configured;
mod disk;
mod functions;
mod helm;
mod layout;
mod licenses;
mod message;
mod paths;
mod plugins;
mod references;
mod refused;
mod severity;
mod source;
pub(crate) mod stories;

use crate::support::{Output, Repo, config_map};

/// Roots that cannot be localized, each in a directory of its own in `in`. One run names them all.
struct Refused<'a> {
    work: &'a Repo,
    roots: Vec<String>,
    /// A place, and what a line of the output that holds it says.
    said: Vec<(String, String)>,
}

impl Refused<'_> {
    /// Returns no root yet, but a directory `in/good` with a root and a component that are fine.
    fn new(work: &Repo) -> Refused<'_> {
        work.write("in/good/base/kustomization.yaml", "namePrefix: a-\n");
        work.write(
            "in/good/component/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: a-\n",
        );
        Refused { work, roots: Vec::new(), said: Vec::new() }
    }

    /// Adds `in/NAME`, beside a file `map.yaml` that is fine. One line of the output must hold this directory and
    /// `said`, unless that is empty.
    fn add(&mut self, name: &str, kustomization: &str, said: &str) {
        let root = format!("in/{name}");
        self.work.write(&format!("{root}/kustomization.yaml"), kustomization);
        self.work.write(&format!("{root}/map.yaml"), config_map("map"));
        self.roots.push(root.clone());
        if !said.is_empty() {
            self.said.push((root, said.to_owned()));
        }
    }

    /// Adds `in/NAME` with a list of references. Of each, a line of the output must hold its place and `said`.
    fn list(&mut self, name: &str, field: &str, before: &str, references: &[(&str, &str)]) {
        let mut text = format!("{field}:\n");
        for (number, (reference, said)) in references.iter().enumerate() {
            text += &format!("- {before}'{reference}'\n");
            let place = format!("in/{name}/kustomization.yaml:{}:", number + 2);
            self.said.push((place, (*said).to_owned()));
        }
        self.add(name, &text, "");
    }

    /// Localizes a root that lists them all, which must change nothing.
    #[track_caller]
    fn in_one_run(&self, args: &[&str]) -> Output {
        let lines = self.roots.iter().map(|root| format!("- ../../{root}\n"));
        let text = format!("resources:\n{}", lines.collect::<String>());
        self.work.write("in/all/kustomization.yaml", text);
        self.work.commit("refused");
        let args = [&["in/all", "--scope", "in"], args].concat();
        let output = self.work.run_unchanged(&args);
        output.fails(2);
        for (place, said) in &self.said {
            let mut lines = output.stderr.lines();
            assert!(lines.any(|line| line.contains(place) && line.contains(said)), "{place}: no {said:?}\n{output:?}");
        }
        output
    }
}

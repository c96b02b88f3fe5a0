//! What each rule is about, in a few sentences: for code scanning, which shows it beside a finding.

use super::Rule;

impl Rule {
    /// Returns what the rule finds, why that matters to a build without a network, and how to mend it.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Rule::RemoteReference => {
                "A field names a file or a git repository over the network, and no lock says what it was. \
                 Such a build needs the network, and can give something else tomorrow. \
                 Lock it with `git kustomize-localize lock`, or bring it in with \
                 `git kustomize-localize --in-place --no-commit`."
            }
            Rule::FloatingRef => {
                "A remote reference names a branch, an abbreviated commit, a query that kustomize drops, or \
                 nothing at all: what it means can change without any change here. \
                 Name a tag or a full commit id, or lock it, which holds the commit."
            }
            Rule::RemoteChart => {
                "A Helm chart has a `repo`, and the chart is not in the tree: helm downloads it during the build. \
                 Commit the chart below the chart home."
            }
            Rule::OutOfScope => {
                "A path leads out of its kustomization root (for a file), out of its scope (for a root), or is \
                 absolute. kustomize refuses it, or it depends on what lies around the checkout. \
                 Move what it names, or name it as a root of its own."
            }
            Rule::MissingPath => {
                "A path names nothing in what is checked. Often the file is on disk but was never added, so the \
                 build works here and nowhere else. Add it, or mend the path."
            }
            Rule::IgnoredPath => {
                "A path names nothing in what is checked, and git is told to ignore it: most often a secret that \
                 is kept out of git on purpose. The build works only where somebody puts the file."
            }
            Rule::Cycle => {
                "A kustomization root leads back to itself, or to a directory that contains it. \
                 kustomize refuses that."
            }
            Rule::SubmodulePath => {
                "A path lies in a submodule. This repository does not hold its files: the build works only where \
                 submodules are checked out."
            }
            Rule::InvalidKustomization => {
                "`kustomize build` refuses the file, or reads it in another way than it looks: an unknown field, a \
                 wrong kind, two kustomization files in one directory, a key that is there twice."
            }
            Rule::UnsafeReference => {
                "A reference holds a password or token, a scheme that kustomize cannot read, or what git would take \
                 for an option. What is committed is read by everybody who can read the repository."
            }
            Rule::AmbiguousPath => {
                "A path was meant as a local directory, but kustomize reads it as the URL of a git repository, and \
                 the build reaches out. Write it so that it cannot be a URL."
            }
            Rule::Function => {
                "A build runs code that is not in the tree, or that is named so that it can change: an executable \
                 outside, a container image without a digest, a function that asks for the network."
            }
            Rule::EditedCopy => {
                "A localized file is not what the lock says: it was edited, is missing, or was added by hand. The \
                 next run would undo that. Change it upstream, or in an overlay."
            }
            Rule::StaleLock => {
                "The lock holds an entry that no reference needs. `git kustomize-localize lock` drops it."
            }
            Rule::StaleAllow => {
                "A comment or an entry of the configuration allows what is not found any more, or cannot be read. \
                 Remove it before it hides something else."
            }
        }
    }
}

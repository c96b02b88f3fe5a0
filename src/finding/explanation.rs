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
                 What it downloads is pinned by nothing but a version. Commit the chart below the chart home, where \
                 helm finds it without the network: `git kustomize-localize --in-place --no-commit --helm` puts it \
                 there. An entry of the lock at the top (`lock --helm`) fulfils it too, unless the configuration \
                 says `locked: error`."
            }
            Rule::OutOfScope => {
                "A path leads out of its kustomization root (for a file), out of its scope (for a root), or is \
                 absolute. kustomize refuses it, or it depends on what lies around the checkout: an absolute path \
                 binds the tree to one machine. \
                 Move what it names, or name it as a root of its own."
            }
            Rule::MissingPath => {
                "A path names nothing in what is checked. Often the file is on disk but was never added, so the \
                 build works here and nowhere else. Add it, or mend the path."
            }
            Rule::IgnoredPath => {
                "A path names nothing in what is checked, and git ignores it: most often a secret that is \
                 kept out of git on purpose. The build works only where somebody puts the file. Add it all the same \
                 if it is no secret; otherwise leave the warning, or allow it with the reason. Only the `.gitignore` \
                 files of what is checked count, so that every clone comes to the same verdict."
            }
            Rule::Cycle => {
                "A kustomization root leads back to itself, or to a directory that contains it. kustomize refuses \
                 to build any root of the circle. Take one of the references out; what two roots share belongs into \
                 a third, which both name."
            }
            Rule::SubmodulePath => {
                "A path lies in a submodule. This repository holds only the id of its commit, not the files: the \
                 build works only where the submodule is checked out, and fetching it needs the network. Copy what \
                 is needed into this repository, or name the other repository by its URL and lock it."
            }
            Rule::InvalidKustomization => {
                "`kustomize build` refuses the file, or reads it in another way than it looks: an unknown field, a \
                 wrong kind, an empty entry, two entries on one line (`- ../base - ../app`), a built-in transformer \
                 in `generators`, two kustomization files in one directory, a key that is there twice. What is built is \
                 then nothing, or not what was reviewed. Mend what the message names."
            }
            Rule::UnsafeReference => {
                "A reference holds a password or token, a scheme that kustomize cannot read, or what git would take \
                 for an option. What is committed is read by everybody who can read the repository, and what git \
                 takes for an option can run commands. Revoke the secret and leave it to a credential helper or \
                 netrc; write the reference anew."
            }
            Rule::AmbiguousPath => {
                "A path was meant as a local directory, but kustomize reads it as the URL of a git repository, and \
                 the build reaches out. Or a URL is split elsewhere than it looks. Write `./` before a local path, \
                 and `//` after the repository in a URL."
            }
            Rule::Function => {
                "A build runs code that is not in the tree, or that is named so that it can change: an executable \
                 outside, a container image without a digest, a function that asks for the network. Its result \
                 depends on more than what was reviewed. Put the program into the repository, or name the image by \
                 its digest."
            }
            Rule::EditedCopy => {
                "A localized file is not what the lock says: it was edited, is missing, or was added by hand. What \
                 is built is not what was brought in then, and the next run would undo the change. Take the change \
                 back; what should differ belongs upstream, or into an overlay."
            }
            Rule::StaleLock => {
                "The lock holds an entry that no reference needs. Nothing is built from it, but who reviews the \
                 lock takes it for something that is in use. `git kustomize-localize lock` drops it."
            }
            Rule::StaleAllow => {
                "A comment or an entry of the configuration allows what is not found any more, or cannot be read. \
                 Remove it before it hides something else."
            }
        }
    }
}

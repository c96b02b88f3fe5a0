//! What works but should be known, by its ids, and what each of them means.

use std::fmt;

macro_rules! warnings {
    ($($(#[doc = $doc:literal])+ $warning:ident $id:literal,)+) => {
        /// A warning of the commands that bring something in. The one table of ids and of what
        /// they mean, in the order of the ids.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WarningId {
            $($(#[doc = $doc])+ $warning,)+
        }

        impl WarningId {
            /// Every warning.
            pub const ALL: &[WarningId] = &[$(WarningId::$warning,)+];

            /// Returns the stable id, as `remote-chart`.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self {
                    $(WarningId::$warning => $id,)+
                }
            }

            /// Returns what it means, in Markdown.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(WarningId::$warning => concat!($($doc),+).trim_start(),)+
                }
            }

            /// Returns the warning with this id.
            #[must_use]
            pub fn from_id(id: &str) -> Option<WarningId> {
                WarningId::ALL.iter().copied().find(|warning| warning.id() == id)
            }
        }
    };
}

warnings! {
    /// in place: a localized file is not what the lock says; `--overwrite` brings that back
    EditedCopy "edited-copy",
    /// a kustomization with several YAML documents: kustomize reads the first
    ExtraDocument "extra-document",
    /// a Helm chart without a version, or with a range of versions: what was taken is in the lock
    FloatingChart "floating-chart",
    /// a KRM function whose code is not brought in: a container image (pinned or not), or a program on the `PATH`
    Function "function",
    /// `lock`: an entry that nothing references stays, because a kustomization cannot be read
    KeptEntry "kept-entry",
    /// a licence that cannot be brought along: a link out of its repository, or larger than 4 MiB
    LeftLicense "left-license",
    /// a missing file that `--leave-missing` allows; none that `leave-missing` in the configuration lists
    LeftMissing "left-missing",
    /// an exec or Go plugin: its code is in the plugin home of the machine that builds
    LegacyPlugin "legacy-plugin",
    /// in place: the localized branch was merged into its source, with the command that takes that back
    MergedBack "merged-back",
    /// `lock`, in place: a path that a kustomization names does not exist, as `check` reports; it is counted, and shown with
    /// `-v`
    MissingPath "missing-path",
    /// with `--strict`: nothing was verified by a build, because there is no kustomize
    NotBuilt "not-built",
    /// `lock`: something in the tree itself is wrong, so that what is behind it is not looked at
    NotFollowed "not-followed",
    /// a Helm chart of a repository that was left there, because `helm` is not `true`: helm fetches it at
    /// build time
    RemoteChart "remote-chart",
    /// `update`: a branch does not contain the commit that was locked any more: somebody has rewritten it, or set it
    /// back
    RewrittenBranch "rewritten-branch",
    /// a file that is rewritten for what it references is also read as it is, by a generator for instance: its
    /// data will differ
    RewrittenData "rewritten-data",
    /// a program from elsewhere has lost its execute bit: with its digest and the command that trusts it
    StrippedExecutable "stripped-executable",
    /// in place: a file among the localized files that the lock does not list
    UnknownFile "unknown-file",
}

impl fmt::Display for WarningId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_in_the_order_of_their_ids() {
        let ids = WarningId::ALL.iter().map(|warning| warning.id());
        assert!(ids.is_sorted());
    }
}

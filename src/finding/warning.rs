//! Warnings: what works, but should be known.

use std::fmt;

macro_rules! warnings {
    ($($(#[doc = $doc:literal])+ $warning:ident $id:literal,)+) => {
        /// A warning of the commands that bring something in. The one table of ids, in their order.
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

            /// Returns the warning with this id.
            #[must_use]
            pub fn from_id(id: &str) -> Option<WarningId> {
                WarningId::ALL.iter().copied().find(|warning| warning.id() == id)
            }
        }
    };
}

warnings! {
    /// A Helm configuration directory is not in the scope.
    ConfigHome "config-home",
    /// A function or plugin has strings that look like paths or URLs.
    CustomField "custom-field",
    /// A key occurs twice.
    DuplicateKey "duplicate-key",
    /// A localized file is not what the lock says.
    EditedCopy "edited-copy",
    /// A kustomization holds several YAML documents.
    ExtraDocument "extra-document",
    /// A chart names no single version.
    FloatingChart "floating-chart",
    /// The code of a function is not brought in.
    Function "function",
    /// An entry that nothing references stays.
    KeptEntry "kept-entry",
    /// A licence cannot be brought along.
    LeftLicense "left-license",
    /// A local file that is not there is left out.
    LeftMissing "left-missing",
    /// The code of a plugin is in the plugin home of the machine that builds.
    LegacyPlugin "legacy-plugin",
    /// A localized branch was merged into its source.
    MergedBack "merged-back",
    /// A root is not verified by a build.
    NotBuilt "not-built",
    /// Something in the tree itself is wrong.
    NotFollowed "not-followed",
    /// A chart stays remote.
    RemoteChart "remote-chart",
    /// A file that is rewritten is also read as data.
    RewrittenData "rewritten-data",
    /// A URL is split at its `=`.
    SplitUrl "split-url",
    /// A program has lost its execute bit.
    StrippedExecutable "stripped-executable",
    /// A file among the localized files is not in the lock.
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

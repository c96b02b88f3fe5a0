//! The peer.

use std::env;
use std::path::PathBuf;

/// Returns the kustomize that `KUSTOMIZE` names, else the one on PATH.
pub(crate) fn find() -> Option<PathBuf> {
    let named = env::var_os("KUSTOMIZE").map(PathBuf::from);
    named.or_else(|| {
        env::split_paths(&env::var_os("PATH")?)
            .map(|directory| directory.join("kustomize"))
            .find(|program| program.is_file())
    })
}

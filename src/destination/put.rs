//! Writing a file to disk.

use std::fs;
use std::io;
use std::path::Path;

use crate::plan::File;

/// Writes a new file at `place`, with the permissions of what is at `like`.
pub(super) fn put(place: &Path, file: &File, like: &Path) -> io::Result<()> {
    fs::write(place, &file.bytes)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mut permissions = match fs::symlink_metadata(like) {
            Ok(there) if there.is_file() => there.permissions(),
            _ => fs::symlink_metadata(place)?.permissions(),
        };
        let mode = permissions.mode();
        // Executable for whoever may read it, as git checks out 100755.
        permissions.set_mode(if file.executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 });
        fs::set_permissions(place, permissions)?;
    }
    #[cfg(not(unix))]
    let _ = like;
    Ok(())
}

//! Files under a temporary name: beside the one they are to become, private, gone unless they are persisted.

use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

const SUFFIX: &str = ".part";

const PREFIX: &str = ".leakscope-";

/// Temporary names carry the process, so that two runs into one folder leave each other's alone.
fn prefix() -> String {
    format!("{PREFIX}{}-", std::process::id())
}

/// Whether a file has the name of a [`temporary_file`] of any process: for whoever holds a folder alone, and so knows that its
/// process is gone.
pub fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// A new private file in `folder`; it is removed when it is dropped without having been persisted.
pub fn temporary_file(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(&prefix()).suffix(SUFFIX).tempfile_in(folder)
}

/// Removes what [`temporary_file`] of this process has left in `folder`: for an exit that drops nothing.
pub fn remove_temporary_files(folder: &Path) {
    let prefix = prefix();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&prefix) && name.ends_with(SUFFIX) {
            // It may be gone by now: all the better.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_temporary_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let others = [".leakscope-0-abc.part", "records.csv", ".leakscope-note"];
        for name in others {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let ours = temporary_file(folder.path()).unwrap();
        remove_temporary_files(folder.path());
        assert!(!ours.path().exists());
        assert!(others.iter().all(|name| folder.path().join(name).exists()));
    }
}

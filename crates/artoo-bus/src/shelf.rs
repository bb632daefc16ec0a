//! The shelf: a folder in which long outputs are kept for later steps to read (design §6, §17).
//!
//! Owns the files below one folder, readable by their owner only and masked like the journal. Must not know what they hold.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use artoo_protocol::ports::Shelf;

use crate::journal::Redactor;

/// A folder as a shelf.
pub struct FolderShelf {
    root: PathBuf,
    redactor: Redactor,
}

impl FolderShelf {
    /// Below this folder, which need not exist yet.
    pub const fn new(root: PathBuf, redactor: Redactor) -> Self {
        Self { root, redactor }
    }
}

impl Shelf for FolderShelf {
    fn keep(&self, path: &str, text: &str) -> io::Result<()> {
        let path = Path::new(path);
        let plain = path.components().all(|part| part != Component::ParentDir);
        let folder = path.parent().filter(|_| plain && path.starts_with(&self.root));
        let folder =
            folder.ok_or_else(|| io::Error::new(io::ErrorKind::PermissionDenied, "it is outside the shelf"))?;
        private_folder(folder)?;
        let part = path.with_extension("part");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&part)?;
        file.write_all(self.redactor.text(text).as_bytes())?;
        // A manifest that names the file may be on disk before long; the text is there first.
        file.sync_all()?;
        drop(file);
        fs::rename(part, path)
    }
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_whole_masked_and_only_below_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("outputs");
        let shelf = FolderShelf::new(root.clone(), Redactor::new(["hunter2hunter2".to_owned()]));
        let path = root.join("t_1/s1.txt");
        shelf.keep(&path.to_string_lossy(), "first hunter2hunter2").unwrap();
        shelf
            .keep(&path.to_string_lossy(), "second hunter2hunter2 end")
            .unwrap();
        let kept = fs::read_to_string(&path).unwrap();
        assert!(
            kept.starts_with("second ") && kept.ends_with(" end") && !kept.contains("hunter2"),
            "{kept}"
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        for outside in [dir.path().join("x"), root.join("../x")] {
            assert!(
                shelf.keep(&outside.to_string_lossy(), "x").is_err(),
                "{}",
                outside.display()
            );
        }
        assert!(!dir.path().join("x").exists());
    }
}

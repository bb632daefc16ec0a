//! Who has the store open: a lock with a name on it (design §15).
//!
//! LevelDB's own `LOCK` file says nothing about its holder, and it travels along when a damaged folder is moved
//! aside. So a small text file beside the folder is locked first; its content names the process.
//!
//! Owns: `<folder>.holder`. Must not know: what is in the store.

use crate::kv::KvError;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Held for as long as the value lives. The file stays; without a lock on it its content means nothing.
#[derive(Debug)]
pub(super) struct Holder {
    locked: File,
}

impl Drop for Holder {
    /// A child that another thread is just starting may still have the file: closing ours would leave it locked.
    fn drop(&mut self) {
        let _ = self.locked.unlock();
    }
}

impl Holder {
    /// Takes the lock, and writes down this process and `since`.
    pub(super) fn take(folder: &Path, since: &str) -> Result<Self, KvError> {
        let path = holder_path(folder);
        let io = |error: std::io::Error| KvError::Io(format!("{}: {error}", path.display()));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io)?;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(KvError::Locked {
                    folder: folder.to_owned(),
                    holder: read_name(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        file.set_len(0).map_err(io)?;
        // The name is a courtesy: on a full disk the lock alone must do.
        let _ = writeln!(file, "process {} since {since}", std::process::id());
        Ok(Self { locked: file })
    }
}

fn holder_path(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".holder");
    PathBuf::from(name)
}

/// At most one short line of printable text, whatever the file holds.
fn read_name(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = Read::by_ref(file).take(200).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let line: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    if line.is_empty() {
        "another process".to_owned()
    } else {
        line
    }
}

//! A private copy of a store that somebody else has open (design §15).
//!
//! Tables never change once written, logs and the manifest only grow, and a torn end is no damage. So a copy is
//! whole when the folder held the same files before and after it was made. Where a repair is between its two moves, the store is the
//! rebuilt one.
//!
//! Owns: the copy. Must not know: what is in the files.

use super::salvage::{FileKind, place, store_files};
use super::synced;
use crate::kv::KvError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A store that is compacted this often while it is copied is copied in vain.
const ATTEMPTS: usize = 50;

/// Copies the store in `folder` to `store` within a fresh folder that only this user can read.
pub(super) fn copy(folder: &Path) -> Result<TempDir, KvError> {
    let failed = |error: io::Error| KvError::Io(format!("cannot copy {}: {error}", folder.display()));
    let target = tempfile::Builder::new()
        .prefix("artoo-memory-")
        .tempdir()
        .map_err(failed)?;
    let store = target.path().join("store");
    for _ in 0..ATTEMPTS {
        let source = place(folder).map_err(failed)?.filter(|source| source.is_dir());
        let Some(source) = source else {
            return Err(KvError::Io(format!("there is no memory store at {}", folder.display())));
        };
        if store.exists() {
            fs::remove_dir_all(&store).map_err(failed)?;
        }
        fs::create_dir(&store).map_err(failed)?;
        if copy_once(&source, &store).map_err(failed)? {
            return Ok(target);
        }
    }
    Err(KvError::Io(format!(
        "{} changes too fast to be copied",
        folder.display()
    )))
}

/// Whether the copy is whole.
fn copy_once(folder: &Path, store: &Path) -> io::Result<bool> {
    // First what was synced, then what was written: so the copy of a log is no shorter than it should be.
    let synced = read_if_there(&folder.join(synced::NAME))?;
    if !synced.is_empty() {
        fs::write(store.join(synced::NAME), synced)?;
    }
    let before = listing(folder)?;
    for (_, path) in &before.0 {
        let Some(name) = path.file_name() else { continue };
        match fs::copy(path, store.join(name)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    // A folder that was moved away meanwhile looks like an empty one.
    Ok(before == listing(folder)? && folder.is_dir())
}

/// The names of all files, and the manifest that counts: its name and its length.
type Listing = (Vec<(FileKind, PathBuf)>, Vec<u8>, u64);

fn listing(folder: &Path) -> io::Result<Listing> {
    let files = store_files(folder)?;
    let current = read_if_there(&folder.join("CURRENT"))?;
    let manifest = folder.join(String::from_utf8_lossy(&current).trim_end_matches('\n'));
    let manifest_length = fs::metadata(manifest).map_or(0, |metadata| metadata.len());
    Ok((files, current, manifest_length))
}

fn read_if_there(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

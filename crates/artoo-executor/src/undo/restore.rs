//! Putting back what a task's tools overwrote or deleted (design §8).
//!
//! Owns the decision, for each path, whether what is there now is still the task's doing. It looks at the world and at nothing else, so
//! an undo that was cut off is simply run again. Must not touch what somebody else changed since, unless it is told to, and even then it
//! keeps that.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use artoo_protocol::TaskId;

use super::{Kept, State, copy_tree, kept, remove};
use crate::anchored::{Existing, Folder, digest_of, dress};

/// What to do with a path that somebody else changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwilling {
    /// Leave it.
    Leave,
    /// Put the old one back all the same; what is there now is kept in the store.
    Replace,
}

/// What came of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is as it was before the task.
    Restored,
    /// The same; what somebody else had put there lies here now.
    Replaced(PathBuf),
    /// It was so already.
    AsBefore,
    /// The task made it; it is left where it is.
    Made,
    /// Somebody changed it after the task did: left as it is.
    ChangedSince,
    /// It could not be put back.
    Failed(String),
}

/// One path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Absolute.
    pub path: PathBuf,
    /// What came of it.
    pub outcome: Outcome,
}

/// Puts back everything of a task, the latest change first.
///
/// # Errors
/// When the store cannot be read. What goes wrong with a single path is its [`Outcome`].
pub fn restore(root: &Path, task: &TaskId, unwilling: Unwilling) -> io::Result<Vec<Restored>> {
    let mut paths: BTreeMap<PathBuf, Vec<Kept>> = BTreeMap::new();
    for one in kept(root, task)? {
        paths.entry(one.entry.path()).or_default().push(one);
    }
    let mut paths: Vec<_> = paths.into_iter().collect();
    paths.sort_by_key(|(_, changes)| std::cmp::Reverse(changes.last().map(|change| change.number)));
    let one = |(path, changes): (PathBuf, Vec<Kept>)| {
        let outcome = put_back(&path, &changes, unwilling).unwrap_or_else(|error| Outcome::Failed(error.to_string()));
        Restored { path, outcome }
    };
    Ok(paths.into_iter().map(one).collect())
}

fn put_back(path: &Path, changes: &[Kept], unwilling: Unwilling) -> io::Result<Outcome> {
    let Some(first) = changes.first() else {
        return Ok(Outcome::AsBefore);
    };
    for change in changes {
        sweep(change);
    }
    let now = State::at(path)?;
    let before = &first.entry.before;
    if *before == State::Absent {
        return Ok(if now == State::Absent {
            Outcome::AsBefore
        } else {
            Outcome::Made
        });
    }
    let is_kept = fs::symlink_metadata(&first.kept).is_ok();
    // A folder is moved, not compared: it is in its place, or it is kept.
    if now == *before && !(now == State::Folder && is_kept) {
        return Ok(Outcome::AsBefore);
    }
    let ours = changes.iter().any(|change| change.entry.after == now);
    if !ours && unwilling == Unwilling::Leave {
        return Ok(Outcome::ChangedSince);
    }
    if !is_kept {
        return Ok(Outcome::Failed("what was kept of it is gone".to_owned()));
    }
    // Before anything is laid by: what cannot be put back must not displace what is there.
    if let State::File { sha256 } = before
        && digest_of(File::open(&first.kept)?)? != *sha256
    {
        return Ok(Outcome::Failed("what was kept of it is damaged".to_owned()));
    }
    let laid_by = if ours { None } else { lay_by(path, first)? };
    match before {
        State::File { .. } => copy_back(&first.kept, path)?,
        State::Link { .. } | State::Folder | State::Other | State::Absent => move_back(&first.kept, path)?,
    }
    Ok(laid_by.map_or(Outcome::Restored, Outcome::Replaced))
}

/// The same bytes, mode and times, in one step. What is kept stays kept.
fn copy_back(kept: &Path, path: &Path) -> io::Result<()> {
    let mut old = File::open(kept)?;
    let meta = old.metadata()?;
    let (folder, name) = Folder::of(path, true)?;
    let staged = folder.stage(|file| {
        io::copy(&mut old, file)?;
        dress(file, &meta, true)
    })?;
    staged.place(name, Existing::Replace)
}

fn move_back(kept: &Path, path: &Path) -> io::Result<()> {
    let (folder, name) = Folder::of(path, true)?;
    let (store, kept_name) = Folder::of(kept, false)?;
    match store.move_to(kept_name, &folder, name, Existing::Refuse) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let mut beside = OsString::from(".artoo-undo-");
            beside.push(name);
            let copy = path.with_file_name(&beside);
            // What an undo that was cut off has left.
            if fs::symlink_metadata(&copy).is_ok() {
                remove(&copy)?;
            }
            copy_tree(kept, &copy)?;
            folder.move_to(&beside, &folder, name, Existing::Refuse)?;
            remove(kept)
        }
        moved => moved,
    }
}

/// Keeps what somebody else put there, and says where; `None` where nothing is.
fn lay_by(path: &Path, first: &Kept) -> io::Result<Option<PathBuf>> {
    let mut number = 1;
    let target = loop {
        let target = first.kept.with_extension(format!("replaced-{number}"));
        if fs::symlink_metadata(&target).is_err() {
            break target;
        }
        number += 1;
    };
    if fs::symlink_metadata(path).is_err() {
        return Ok(None);
    }
    match fs::rename(path, &target) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy_tree(path, &target)?;
            remove(path)?;
        }
        moved => moved?,
    }
    Ok(Some(target))
}

/// Removes what a deletion that was cut off had laid aside; it is kept whole in the store.
fn sweep(change: &Kept) {
    if let Some(aside) = change.entry.aside()
        && fs::symlink_metadata(&change.kept).is_ok()
        && fs::symlink_metadata(&aside).is_ok()
    {
        let _ = remove(&aside);
    }
}

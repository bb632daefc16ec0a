//! What artoo's own tools overwrote or deleted, kept until the person drops it (design §8).
//!
//! Owns `undo/<task_id>/` in the data folder. What is about to go is kept, and noted, *before* it goes, so that a crash at any point
//! leaves either the old thing in its place or everything that is needed to put it back. Must not decide what may be changed.

mod entry;
mod restore;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use artoo_protocol::TaskId;

use crate::abandoned::Abandoned;
use crate::anchored::{Existing, Folder, dress, is_left_behind};

pub use entry::{Entry, State};
pub use restore::{Outcome, Restored, Unwilling, restore};

/// Keeps what is about to be overwritten or deleted.
#[derive(Debug)]
pub struct UndoStore {
    root: PathBuf,
    /// Numbers are given one at a time.
    writing: Mutex<()>,
}

/// The things kept of one task, in the order in which they happened.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its number.
    pub number: u64,
    /// The change.
    pub entry: Entry,
    /// Where the old thing lies.
    pub kept: PathBuf,
}

impl UndoStore {
    /// A store in this folder, which is made when it is first needed.
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            writing: Mutex::new(()),
        }
    }

    /// Keeps a file that is about to be overwritten, or notes that a new one is about to be made.
    pub(crate) fn before_writing(
        &self,
        task: &TaskId,
        entry: &Entry,
        old: Option<&mut File>,
        abandoned: &Abandoned,
    ) -> io::Result<()> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (folder, number) = self.next(task)?;
        if let Some(old) = old {
            let meta = old.metadata()?;
            let staged = folder.stage(|copy| {
                io::Seek::rewind(old)?;
                abandoned.copy(old, copy)?;
                dress(copy, &meta, true)
            })?;
            staged.place(&kept_name(number), Existing::Refuse)?;
        }
        note(&folder, number, entry)
    }

    /// Deletes a file, a link or a whole folder by moving it into the store. `path` has no link on its way.
    pub(crate) fn delete(&self, task: &TaskId, path: &Path, before: State, abandoned: &Abandoned) -> io::Result<()> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (folder, number) = self.next(task)?;
        let (parent, name) = Folder::of(path, false)?;
        let aside = path.with_file_name(format!(".artoo-deleted-{task}-{number}"));
        note(
            &folder,
            number,
            &Entry::new(path, before, State::Absent).laid_aside(&aside),
        )?;
        match parent.move_to(name, &folder, &kept_name(number), Existing::Refuse) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let kept = self.folder(task).join(kept_name(number));
                move_by_copy(path, &aside, &kept, |from, to| copy_tree(from, to, abandoned))?;
                folder.sync();
                Ok(())
            }
            moved => moved,
        }
    }

    fn folder(&self, task: &TaskId) -> PathBuf {
        self.root.join(task.as_str())
    }

    fn next(&self, task: &TaskId) -> io::Result<(Folder, u64)> {
        let path = self.folder(task);
        if Path::new(task.as_str()).components().count() != 1 {
            return Err(io::Error::other("the task's id is no plain name"));
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        let numbers = fs::read_dir(&path)?.filter_map(|entry| number_of(&entry.ok()?.file_name()));
        let number = numbers.max().unwrap_or(0) + 1;
        // Where a process died over the change before, it may have left what it was writing.
        if let Ok(last) = fs::read(path.join(note_name(number - 1)))
            && let Ok(last) = serde_json::from_slice::<Entry>(&last)
        {
            sweep_temporary(&last);
        }
        Ok((Folder::open(&path.canonicalize()?)?, number))
    }
}

fn kept_name(number: u64) -> OsString {
    format!("{number:06}.kept").into()
}

fn note_name(number: u64) -> String {
    format!("{number:06}.json")
}

fn number_of(name: &OsStr) -> Option<u64> {
    name.to_str()?.split_once('.')?.0.parse().ok()
}

fn note(folder: &Folder, number: u64, entry: &Entry) -> io::Result<()> {
    let text = serde_json::to_vec(entry)?;
    let staged = folder.stage(|file| file.write_all(&text))?;
    staged.place(OsStr::new(&note_name(number)), Existing::Refuse)
}

/// Removes what a process wrote that died before it could put it in its place.
fn sweep_temporary(entry: &Entry) {
    if let Some(left) = entry.temporary()
        && left.file_name().is_some_and(is_left_behind)
        && let Ok((folder, name)) = Folder::of(&left, false)
    {
        let _ = folder.remove(name);
    }
}

/// Moves a thing to another file system. It goes out of sight first, in one step: what is saved under its old name meanwhile
/// is a new thing, and none of it is lost. When it cannot be copied it goes back.
fn move_by_copy(
    path: &Path,
    aside: &Path,
    kept: &Path,
    copy: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let (parent, name) = Folder::of(path, false)?;
    let (_, aside_name) = Folder::of(aside, false)?;
    parent.move_to(name, &parent, aside_name, Existing::Refuse)?;
    let part = kept.with_extension("part");
    if let Err(error) = copy(aside, &part).and_then(|()| fs::rename(&part, kept)) {
        let _ = remove(&part);
        return Err(match parent.move_to(aside_name, &parent, name, Existing::Refuse) {
            Ok(()) => error,
            Err(_) => io::Error::other(format!(
                "{error}; it lies in {} now, because its name was taken meanwhile",
                aside.display()
            )),
        });
    }
    remove(aside)
}

/// Copies a file, a link or a folder with everything in it, modes and times included.
fn copy_tree(from: &Path, to: &Path, abandoned: &Abandoned) -> io::Result<()> {
    abandoned.check()?;
    let meta = fs::symlink_metadata(from)?;
    if meta.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()), abandoned)?;
        }
        return dress(&File::open(to)?, &meta, true);
    }
    if meta.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    if !meta.is_file() {
        let why = format!("{} is a pipe, socket or device, which cannot be kept", from.display());
        return Err(io::Error::other(why));
    }
    let mut copy = File::options().write(true).create_new(true).open(to)?;
    abandoned.copy(&mut File::open(from)?, &mut copy)?;
    dress(&copy, &meta, true)?;
    copy.sync_all()
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Everything kept of a task; empty where nothing is.
///
/// # Errors
/// When the store cannot be read or holds something that was not written here.
pub fn kept(root: &Path, task: &TaskId) -> io::Result<Vec<Kept>> {
    let folder = root.join(task.as_str());
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let number = path.file_name().and_then(number_of);
        let (Some(number), Some("json")) = (number, path.extension().and_then(OsStr::to_str)) else {
            continue;
        };
        let entry: Entry = serde_json::from_slice(&fs::read(&path)?)?;
        if entry.format > entry::FORMAT {
            return Err(io::Error::other(format!(
                "{} was written by a newer artoo",
                path.display()
            )));
        }
        let kept = folder.join(kept_name(number));
        found.push(Kept { number, entry, kept });
    }
    found.sort_by_key(|kept| kept.number);
    Ok(found)
}

/// Drops everything kept of a task. `false` when there was nothing.
///
/// # Errors
/// When it cannot be removed.
pub fn drop_kept(root: &Path, task: &TaskId) -> io::Result<bool> {
    match fs::remove_dir_all(root.join(task.as_str())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Bytes that are kept of a task.
pub fn size(root: &Path, task: &TaskId) -> u64 {
    fn of(path: &Path) -> u64 {
        let Ok(meta) = fs::symlink_metadata(path) else { return 0 };
        if !meta.is_dir() {
            return meta.size();
        }
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| of(&entry.path())).sum()
    }
    of(&root.join(task.as_str()))
}

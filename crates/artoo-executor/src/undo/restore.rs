//! Putting back what a task's tools overwrote or deleted (design §8).
//!
//! Owns the decision, for each path, whether what is there now is still the task's doing. It looks at the world and at nothing else, so
//! an undo that was cut off is simply run again. Must not touch what somebody else changed since, unless it is told to, and even then it
//! keeps that.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use artoo_protocol::TaskId;

use super::{Kept, State, copy_tree, kept, remove, sweep_temporary};
use crate::abandoned::Abandoned;
use crate::anchored::{Existing, Folder, dress};

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
    /// It is back, and holds what somebody wrote to it after it was deleted: through a file that was still open, or by another name.
    WrittenSince,
    /// The same as `Restored`; what somebody else had put there lies here now.
    Replaced(PathBuf),
    /// Somebody changed it between two changes of the task: it is as they had left it, and not as it was before the task.
    Between,
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
    /// Where what was there before the task lies, if it is still kept.
    pub kept: Option<PathBuf>,
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
        let kept = changes.first().and_then(Kept::source);
        Restored { path, outcome, kept }
    };
    Ok(paths.into_iter().map(one).collect())
}

impl Kept {
    /// Where the old thing really lies: in the store, or still beside its place where a deletion was cut off.
    fn source(&self) -> Option<PathBuf> {
        let there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
        Some(self.kept.clone())
            .filter(there)
            .or(self.entry.aside().filter(there))
    }

    /// What was there before this change, as it is kept; of a deletion that is the thing itself.
    fn before(&self) -> io::Result<State> {
        match self.source() {
            Some(source) if self.entry.is_deletion() => State::at(&source, &Abandoned::default()),
            Some(_) | None => Ok(self.entry.before.clone()),
        }
    }

    /// Whether this is what was there before: a folder and the like are moved and not compared, so what is kept is nowhere else.
    fn was(&self, state: &State) -> io::Result<bool> {
        let moved = matches!(state, State::Folder | State::Other) && self.source().is_some();
        Ok(!moved && self.before()? == *state)
    }
}

/// The way back from what is there now, through changes of the task that follow each other without a gap.
struct Way<'a> {
    /// The earliest change on it; none where what is there now is not the task's doing.
    to: Option<&'a Kept>,
    /// Whether it leads to the beginning.
    whole: bool,
    /// Whether there was nothing for a while, so that the mode is not the one which a person gave.
    renewed: bool,
}

fn way_back<'a>(now: &State, changes: &'a [Kept]) -> io::Result<Way<'a>> {
    let mut way = Way {
        to: None,
        whole: true,
        renewed: false,
    };
    let mut wanted = now.clone();
    for change in changes.iter().rev() {
        let entry = &change.entry;
        if entry.is_deletion() && change.source().is_none() {
            // It was never made, or it is taken back.
        } else if entry.after == wanted {
            way.to = Some(change);
            way.renewed |= State::Absent == entry.before || entry.is_deletion();
            wanted = change.before()?;
        } else if !change.was(&wanted)? {
            way.whole = false;
            break;
        }
        // Otherwise it was cut off before it was made, or somebody took it back.
    }
    Ok(way)
}

fn put_back(path: &Path, changes: &[Kept], unwilling: Unwilling) -> io::Result<Outcome> {
    let Some(first) = changes.first() else {
        return Ok(Outcome::AsBefore);
    };
    changes.iter().for_each(sweep);
    let now = State::at(path, &Abandoned::default())?;
    let way = way_back(&now, changes)?;
    let made = first.entry.before == State::Absent;
    if first.was(&now)? && (way.to.is_none() || (way.whole && (made || same_time(path, &first.kept)))) {
        return Ok(Outcome::AsBefore);
    }
    let leave = unwilling == Unwilling::Leave;
    let Some(to) = way.to else {
        let lost = first.source().is_none();
        return if made {
            Ok(Outcome::Made)
        } else if lost && way.whole && now != State::Absent {
            // A deletion that was never made, or was taken back.
            Ok(Outcome::AsBefore)
        } else if leave && !(lost && now == State::Absent) {
            Ok(Outcome::ChangedSince)
        } else {
            bring(path, first, &now, false, None)
        };
    };
    if to.entry.before == State::Absent && (made || leave) {
        // What the task made is never taken away.
        return Ok(if made { Outcome::Made } else { Outcome::ChangedSince });
    }
    if way.whole || made || leave {
        let given = if way.renewed { None } else { mode_of(path) };
        let outcome = bring(path, to, &now, true, given)?;
        let partly = !way.whole && matches!(outcome, Outcome::Restored | Outcome::WrittenSince);
        return Ok(if partly { Outcome::Between } else { outcome });
    }
    let outcome = bring(path, first, &now, true, None)?;
    Ok(match (outcome, to.source()) {
        // What somebody else had made of it is kept with the task's change of that.
        (Outcome::Restored, Some(between)) => Outcome::Replaced(between),
        (outcome, _) => outcome,
    })
}

/// Puts back what one change took.
fn bring(path: &Path, change: &Kept, now: &State, ours: bool, mode: Option<u32>) -> io::Result<Outcome> {
    let Some(source) = change.source() else {
        let why = format!("what was kept of it is gone from {}", change.kept.display());
        return Ok(Outcome::Failed(why));
    };
    // Before anything is laid by: what cannot be put back must not displace what is there.
    let kept = State::at(&source, &Abandoned::default())?;
    let as_noted = match &change.entry.before {
        unread @ State::Unread { .. } => State::unread(&source)? == *unread,
        noted @ (State::Absent | State::File { .. } | State::Link { .. } | State::Folder | State::Other) => {
            kept == *noted
        }
    };
    if !as_noted && !change.entry.is_deletion() {
        let why = format!("what was kept of it is damaged: it lies in {}", source.display());
        return Ok(Outcome::Failed(why));
    }
    let copied = matches!(kept, State::File { .. }) && source == change.kept;
    let laid_by = if *now == State::Absent || (ours && copied) {
        None
    } else {
        lay_by(path, change)?
    };
    if copied {
        copy_back(&source, path, change.number, mode)?;
    } else {
        move_back(&source, path)?;
    }
    Ok(match laid_by {
        Some(laid_by) => Outcome::Replaced(laid_by),
        None if as_noted => Outcome::Restored,
        None => Outcome::WrittenSince,
    })
}

fn same_time(path: &Path, kept: &Path) -> bool {
    let changed = |path: &Path| {
        let meta = fs::symlink_metadata(path).ok()?;
        Some((meta.mtime(), meta.mtime_nsec()))
    };
    changed(path) == changed(kept)
}

fn mode_of(path: &Path) -> Option<u32> {
    let meta = fs::symlink_metadata(path).ok()?;
    meta.is_file().then(|| meta.mode() & 0o7777)
}

/// The same bytes and times, in one step. What is kept stays kept. The tools never change a mode, so that which is there now is the
/// person's, unless none is given.
fn copy_back(kept: &Path, path: &Path, number: u64, mode: Option<u32>) -> io::Result<()> {
    let mut old = File::open(kept)?;
    let meta = old.metadata()?;
    let (folder, name) = Folder::of(path, true)?;
    let temporary = OsString::from(format!(".artoo-undo-{number:06}.tmp"));
    // What an undo that was cut off has left.
    let _ = folder.remove(&temporary);
    let staged = folder.stage_as(temporary, |file| {
        Abandoned::default().copy(&mut old, file)?;
        dress(file, &meta, true)?;
        mode.map_or(Ok(()), |mode| file.set_permissions(Permissions::from_mode(mode)))
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
            copy_tree(kept, &copy, &Abandoned::default())?;
            folder.move_to(&beside, &folder, name, Existing::Refuse)?;
            remove(kept)
        }
        moved => moved,
    }
}

/// Keeps what somebody else put there, and says where; `None` where nothing is.
fn lay_by(path: &Path, change: &Kept) -> io::Result<Option<PathBuf>> {
    let mut number = 1;
    let target = loop {
        let target = change.kept.with_extension(format!("replaced-{number}"));
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
            copy_tree(path, &target, &Abandoned::default())?;
            remove(path)?;
        }
        moved => moved?,
    }
    Ok(Some(target))
}

/// Removes what a change that was cut off has left: what a deletion had laid aside and is kept whole in the store, and what was
/// written and never put in its place.
fn sweep(change: &Kept) {
    sweep_temporary(&change.entry);
    if let Some(aside) = change.entry.aside()
        && fs::symlink_metadata(&change.kept).is_ok()
        && fs::symlink_metadata(&aside).is_ok()
    {
        let _ = remove(&aside);
    }
}

//! The data folder: made on first use, private, and held by one running artoo at a time (design §20).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use artoo_protocol::Timestamp;

use crate::failure::Failure;

/// Longer than a look at the lock takes.
const LOOK: Duration = Duration::from_millis(20);

/// A data folder that this process may write to, until the value is dropped.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    _lock: File,
}

impl DataFolder {
    /// Makes the folder if need be and takes its lock.
    ///
    /// # Errors
    /// [`Failure`] (exit 2) when it cannot be written, or names who holds it.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self, Failure> {
        make_private(path)?;
        let lock_path = path.join("artoo.lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut lock = options.open(&lock_path).map_err(|e| unwritable(path, &e))?;
        match try_twice(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = (&mut lock).take(200).read_to_string(&mut holder);
                let holder = if holder.trim().is_empty() {
                    "another artoo".to_owned()
                } else {
                    holder.trim().to_owned()
                };
                return Err(Failure::usage(format!("the data folder {} is in use by {holder}", path.display()))
                    .hint("wait until it has finished, or use another folder with --data-dir; commands that only read work meanwhile"));
            }
            Err(TryLockError::Error(error)) => return Err(unwritable(path, &error)),
        }
        let note = format!("artoo, process {}, since {now}\n", std::process::id());
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(note.as_bytes()))
            .map_err(|e| unwritable(path, &e))?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Who only looks whether the lock is held ([`held_since`]) has it for a moment, which must not be taken for a holder.
fn try_twice(lock: &File) -> Result<(), TryLockError> {
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => {
            std::thread::sleep(LOOK);
            lock.try_lock()
        }
        done => done,
    }
}

/// Since when a living process has held the data folder, by its own note; `None` when none does.
pub fn held_since(path: &Path) -> Option<Timestamp> {
    let mut lock = File::open(path.join("artoo.lock")).ok()?;
    let mut note = String::new();
    (&mut lock).take(200).read_to_string(&mut note).ok()?;
    let (_, rest) = note.split_once("process ")?;
    let (pid, since) = rest.trim().split_once(", since ")?;
    let pid = rustix::process::Pid::from_raw(pid.parse().ok()?)?;
    let alive = match rustix::process::test_kill_process(pid) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    };
    // Another process may have got the number of a dead one; the lock itself dies with its process.
    let held = alive && matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock));
    if held { Timestamp::parse(since).ok() } else { None }
}

/// Makes a folder that only its owner can read.
///
/// # Errors
/// [`Failure`] (exit 2) when it cannot be made.
pub fn make_private(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|e| unwritable(path, &e))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("the data folder {} cannot be written: {error}", path.display()))
        .hint("make it writable, or use another one with --data-dir or ARTOO_DATA_DIR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_process_is_told_who_holds_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from_millis(0);
        let first = DataFolder::open(&folder.path().join("a/b"), now).unwrap();
        let failure = DataFolder::open(first.path(), now).unwrap_err();
        assert_eq!(failure.code, 2);
        assert!(
            failure.message.contains(&format!("process {}", std::process::id())),
            "{}",
            failure.message
        );
        let path = first.path().to_owned();
        assert_eq!(held_since(&path), Some(now));
        drop(first);
        // The note is still there, and its process alive.
        assert_eq!(held_since(&path), None);
        assert!(DataFolder::open(&path, now).is_ok());
    }

    #[test]
    fn a_file_in_its_place_is_a_clear_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let failure = DataFolder::open(&file.path().join("x"), Timestamp::from_millis(0)).unwrap_err();
        assert!(failure.message.contains("cannot be written") && failure.hint.unwrap().contains("--data-dir"));
    }
}

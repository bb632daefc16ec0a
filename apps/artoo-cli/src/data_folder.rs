//! The data folder: made on first use, private, and held by one running artoo at a time (design §20).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use artoo_protocol::Timestamp;

use crate::failure::Failure;

/// Longer than a look at the lock takes, and how often it is waited for: several may look, and a busy system may stop one that does.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: u32 = 10;
/// Most open files of a process that are looked at.
#[cfg(target_os = "linux")]
const FILES: usize = 4_096;

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
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut lock = options.open(lock_path(path)).map_err(|e| unwritable(path, &e))?;
        match insist(|| lock.try_lock(), || std::thread::sleep(LOOK)) {
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

/// Who only looks whether the lock is held ([`holder`]) may have it for a moment, which must not be taken for a holder.
fn insist(lock: impl Fn() -> Result<(), TryLockError>, mut pause: impl FnMut()) -> Result<(), TryLockError> {
    for _ in 0..LOOKS {
        match lock() {
            Err(TryLockError::WouldBlock) => pause(),
            done => return done,
        }
    }
    lock()
}

/// Since when a living process has held the data folder, by its own note; `None` when none does.
pub fn held_since(path: &Path) -> Option<Timestamp> {
    holder(path).map(|holder| holder.since)
}

/// A living process that holds a data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Which, by its own note.
    pub pid: rustix::process::Pid,
    /// Since when.
    pub since: Timestamp,
}

/// Who holds the data folder; `None` when nobody does.
pub fn holder(path: &Path) -> Option<Holder> {
    noted(path).filter(|noted| noted.holds(path))
}

/// Who wrote that it holds the data folder, and lives. It need not hold it any more: the note stays when its process ends, and another one may have
/// got the number.
pub fn noted(path: &Path) -> Option<Holder> {
    let mut note = String::new();
    File::open(lock_path(path))
        .ok()?
        .take(200)
        .read_to_string(&mut note)
        .ok()?;
    let (_, rest) = note.split_once("process ")?;
    let (pid, since) = rest.trim().split_once(", since ")?;
    let pid = rustix::process::Pid::from_raw(pid.parse().ok()?)?;
    let alive = match rustix::process::test_kill_process(pid) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    };
    let since = Timestamp::parse(since).ok().filter(|_| alive)?;
    Some(Holder { pid, since })
}

impl Holder {
    /// Whether the data folder is held. Where the system shows it the lock is not touched; elsewhere it is tried for an instant.
    pub fn holds(&self, path: &Path) -> bool {
        let lock = lock_path(path);
        // What the system does not show may be another account's, or in another container.
        is_shown_to_hold(self.pid, &lock)
            || File::open(lock).is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

/// Whether one of the open files of a process is this one, with the lock upon it.
#[cfg(target_os = "linux")]
pub fn is_shown_to_hold(pid: rustix::process::Pid, lock: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let Ok(lock) = std::fs::metadata(lock) else {
        return false;
    };
    let of = format!("/proc/{}", pid.as_raw_nonzero());
    let Ok(open) = std::fs::read_dir(format!("{of}/fd")) else {
        return false;
    };
    open.flatten().take(FILES).any(|entry| {
        let file = std::fs::metadata(entry.path());
        let is_it = file.is_ok_and(|file| (file.dev(), file.ino()) == (lock.dev(), lock.ino()));
        let info = format!("{of}/fdinfo/{}", entry.file_name().to_string_lossy());
        is_it && std::fs::read_to_string(info).is_ok_and(|info| shows_lock(&info))
    })
}

/// This system does not show it.
#[cfg(not(target_os = "linux"))]
const fn is_shown_to_hold(_pid: rustix::process::Pid, _lock: &Path) -> bool {
    false
}

/// Whether this is among the system's words: `lock: 1: FLOCK  ADVISORY  WRITE 4242 00:2f:1234 0 EOF`
#[cfg(target_os = "linux")]
fn shows_lock(info: &str) -> bool {
    let mut locks = info.lines().filter_map(|line| line.strip_prefix("lock:"));
    locks.any(|lock| {
        let words: Vec<&str> = lock.split_whitespace().collect();
        words.contains(&"FLOCK") && words.contains(&"WRITE")
    })
}

/// The file that is locked.
pub fn lock_path(path: &Path) -> PathBuf {
    path.join("artoo.lock")
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
    use std::cell::Cell;
    use std::io::ErrorKind;

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
    fn who_only_looks_is_waited_for_and_a_holder_is_not_waited_for_long() {
        let (left, pauses) = (Cell::new(LOOKS), Cell::new(0));
        let looked_at = || match left.get() {
            0 => Ok(()),
            more => {
                left.set(more - 1);
                Err(TryLockError::WouldBlock)
            }
        };
        let pause = || pauses.set(pauses.get() + 1);
        assert!(insist(looked_at, pause).is_ok());
        assert_eq!(pauses.get(), LOOKS, "no longer than need be");
        left.set(LOOKS + 1);
        assert!(matches!(insist(looked_at, pause), Err(TryLockError::WouldBlock)));
        let broken = insist(
            || Err(TryLockError::Error(ErrorKind::Unsupported.into())),
            || panic!("for what?"),
        );
        assert!(matches!(broken, Err(TryLockError::Error(_))));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_is_read_from_the_systems_words() {
        assert!(shows_lock(
            "pos:\t0\nflags:\t02\nlock:\t1: FLOCK  ADVISORY  WRITE 4242 00:2f:1234 0 EOF\n"
        ));
        assert!(!shows_lock(
            "pos:\t0\nlock:\t1: FLOCK  ADVISORY  READ 4242 00:2f:1234 0 EOF\n"
        ));
        assert!(!shows_lock("pos:\t0\nflags:\t02\n"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_who_holds_the_lock_is_shown_to_hold_it() {
        let own = rustix::process::getpid();
        let folder = tempfile::tempdir().unwrap();
        let lock = lock_path(folder.path());
        assert!(!is_shown_to_hold(own, &lock), "there is none");
        std::fs::write(&lock, "").unwrap();
        let open = File::open(&lock).unwrap();
        assert!(!is_shown_to_hold(own, &lock), "it is open, and not locked");
        drop(open);
        let held = DataFolder::open(folder.path(), Timestamp::from_millis(0)).unwrap();
        assert!(is_shown_to_hold(own, &lock));
        let parent = rustix::process::getppid().unwrap();
        assert!(!is_shown_to_hold(parent, &lock), "another process");
        drop(held);
        assert!(!is_shown_to_hold(own, &lock));
    }

    #[test]
    fn a_file_in_its_place_is_a_clear_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let failure = DataFolder::open(&file.path().join("x"), Timestamp::from_millis(0)).unwrap_err();
        assert!(failure.message.contains("cannot be written") && failure.hint.unwrap().contains("--data-dir"));
    }
}

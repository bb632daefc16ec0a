//! The file operations that the LevelDB library sees (design §15).
//!
//! The library installs a compaction that failed, takes an unreadable table for an empty one, and never syncs. So
//! this environment does three things the library leaves out:
//! - after the first failed operation it is *poisoned*: nothing can be changed through it any more, so nothing that
//!   rests on the failure reaches the disk;
//! - it checks each table block as it is read, and takes damage for a failure;
//! - flushing a file makes its data durable, and renaming makes the file and its folder durable. How far a log is durable is
//!   noted beside it.
//!
//! Owns: open files, the poison flag, the `LOCK` file. Must not know: keys and values.

use super::salvage::{FileKind, file_kind};
use super::synced::Synced;
use super::table_scan::{FOOTER, is_footer, is_sound_block};
use rustix::fs::{FlockOperation, fcntl_lock};
use rusty_leveldb::env::{Env, FileLock, Logger, RandomAccess};
use rusty_leveldb::{Status, StatusCode};
use std::cell::{Cell, RefCell};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

type Result<T> = std::result::Result<T, Status>;

/// The calls that fail on a full or dying disk, apart so that tests can make them fail.
pub(super) trait Disk: Send + Sync {
    /// Makes or empties a file.
    fn create(&self, path: &Path) -> io::Result<File> {
        File::create(path)
    }

    /// Appends all of `bytes`.
    fn write_all(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    /// Makes the file's data durable.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        sync_folder(folder)
    }

    /// Opens for reading.
    fn open(&self, path: &Path) -> io::Result<File> {
        File::open(path)
    }
}

/// The disk as it is.
#[derive(Debug)]
pub(super) struct RealDisk;

impl Disk for RealDisk {}

/// Why an environment is poisoned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The operating system refused something.
    Io(String),
    /// A file's content is not what was once written.
    Damage(String),
}

/// One environment serves one open database; a reopened database gets a new one.
#[derive(Clone)]
pub(super) struct CarefulEnv {
    disk: Arc<dyn Disk>,
    state: Rc<State>,
}

#[derive(Default)]
struct State {
    fault: RefCell<Option<Fault>>,
    lock: RefCell<Option<File>>,
    synced: RefCell<Option<File>>,
}

impl CarefulEnv {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            state: Rc::default(),
        }
    }

    /// The first fault, if there was one: the database on this environment must be dropped.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.state.fault.borrow().clone()
    }

    /// Stops all changes from now on; the first cause is kept.
    pub(super) fn poison(&self, fault: Fault) {
        self.state.fault.borrow_mut().get_or_insert(fault);
    }

    /// Gives up the `LOCK` file: closing it releases the one kind of lock, but not the other while a child that is just being started
    /// has it too.
    pub(super) fn release_lock(&self) {
        if let Some(file) = self.state.lock.borrow_mut().take() {
            let _ = file.unlock();
        }
    }

    fn check(&self) -> Result<()> {
        match &*self.state.fault.borrow() {
            None => Ok(()),
            Some(_) => Err(Status::new(StatusCode::IOError, "an earlier file operation failed")),
        }
    }

    /// Poisons on failure; the library may well ignore the error that it gets.
    fn guard<T>(&self, what: &str, path: &Path, result: io::Result<T>) -> Result<T> {
        result.map_err(|error| {
            self.poison(Fault::Io(format!("{what} {}: {error}", path.display())));
            Status::from(error)
        })
    }

    fn damage<T>(&self, what: &str, path: &Path) -> io::Result<T> {
        let text = format!(
            "{what} in {}",
            path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()
        );
        self.poison(Fault::Damage(text.clone()));
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }

    /// Says how far a log is durable. Whether that succeeds decides nothing: less would be noticed later.
    fn note_synced(&self, log: &File, path: &Path) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
            return;
        };
        let mut synced = self.state.synced.borrow_mut();
        if synced.is_none() {
            *synced = Synced::file(folder).ok();
        }
        if let (Some(file), Ok(found)) = (&*synced, log.metadata()) {
            let (log, bytes) = (name.to_owned(), found.len());
            let _ = Synced { log, bytes }.write(file);
        }
    }

    fn writable(&self, path: &Path, file: File) -> Box<dyn Write> {
        let folder_synced = Cell::new(false);
        Box::new(CarefulFile {
            env: self.clone(),
            file,
            path: path.to_owned(),
            folder_synced,
        })
    }
}

/// Makes what was created, renamed or removed in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

impl Env for CarefulEnv {
    fn open_sequential_file(&self, path: &Path) -> Result<Box<dyn Read>> {
        // A missing CURRENT is how the library learns that there is no database yet: no fault.
        match self.disk.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Status::from(error)),
            opened => Ok(Box::new(FullReads(self.guard("open", path, opened)?))),
        }
    }

    fn open_random_access_file(&self, path: &Path) -> Result<Box<dyn RandomAccess>> {
        let opened = self.disk.open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (size, file) = self.guard("open", path, opened)?;
        Ok(Box::new(CheckedTable {
            env: self.clone(),
            file,
            size,
            path: path.to_owned(),
        }))
    }

    fn open_writable_file(&self, path: &Path) -> Result<Box<dyn Write>> {
        self.check()?;
        let file = self.guard("create", path, self.disk.create(path))?;
        Ok(self.writable(path, file))
    }

    fn open_appendable_file(&self, path: &Path) -> Result<Box<dyn Write>> {
        self.check()?;
        let file = self.guard("open", path, OpenOptions::new().create(true).append(true).open(path))?;
        Ok(self.writable(path, file))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(path.exists())
    }

    fn children(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in self.guard("list", path, fs::read_dir(path))? {
            let name = self.guard("list", path, entry)?.file_name();
            // The library panics on names that are no text; none of its own files has one.
            if name.to_str().is_some() {
                names.push(PathBuf::from(name));
            }
        }
        Ok(names)
    }

    fn size_of(&self, path: &Path) -> Result<usize> {
        let size = self.guard("size of", path, fs::metadata(path))?.len();
        if path.extension().is_some_and(|extension| extension == "ldb") && size < FOOTER as u64 {
            return Ok(self.damage("no footer", path)?);
        }
        usize::try_from(size).map_err(|_| Status::new(StatusCode::NotSupported, "file too large"))
    }

    fn delete(&self, path: &Path) -> Result<()> {
        self.check()?;
        // A file that stays is litter, not loss: no fault.
        Ok(fs::remove_file(path)?)
    }

    fn mkdir(&self, path: &Path) -> Result<()> {
        self.check()?;
        self.guard("create folder", path, fs::create_dir_all(path))
    }

    fn rmdir(&self, path: &Path) -> Result<()> {
        self.check()?;
        self.guard("remove folder", path, fs::remove_dir_all(path))
    }

    fn rename(&self, old: &Path, new: &Path) -> Result<()> {
        self.check()?;
        let durable = || {
            self.disk.sync(&File::open(old)?)?;
            fs::rename(old, new)?;
            new.parent().map_or(Ok(()), |folder| self.disk.sync_folder(folder))
        };
        self.guard("rename", old, durable())
    }

    /// Takes both kinds of lock: this library uses `flock`, Google's uses `fcntl`, and they do not see each other.
    fn lock(&self, path: &Path) -> Result<FileLock> {
        let held = || Status::new(StatusCode::LockError, "held by another process");
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = self.guard("open", path, opened)?;
        file.try_lock().map_err(|_| held())?;
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| held())?;
        *self.state.lock.borrow_mut() = Some(file);
        Ok(FileLock {
            id: path.to_string_lossy().into_owned(),
        })
    }

    fn unlock(&self, _: FileLock) -> Result<()> {
        self.release_lock();
        Ok(())
    }

    fn new_logger(&self, _: &Path) -> Result<Logger> {
        Ok(Logger::new(Box::new(io::sink())))
    }

    fn micros(&self) -> u64 {
        0 // only for the library's statistics, which nobody reads
    }

    fn sleep_for(&self, _: u32) {}
}

/// A file being written: whole writes, and a flush that means it.
struct CarefulFile {
    env: CarefulEnv,
    file: File,
    path: PathBuf,
    /// A file's name is durable only when its folder is; once is enough.
    folder_synced: Cell<bool>,
}

impl CarefulFile {
    fn refuse_when_poisoned(&self) -> io::Result<()> {
        self.env.check().map_err(|status| io::Error::other(status.err))
    }

    fn guard<T>(&self, what: &str, result: io::Result<T>) -> io::Result<T> {
        self.env
            .guard(what, &self.path, result)
            .map_err(|status| io::Error::other(status.err))
    }
}

impl Write for CarefulFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.refuse_when_poisoned()?;
        // The library ignores short writes, so there are none.
        self.guard("write", self.env.disk.write_all(&self.file, bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.refuse_when_poisoned()?;
        self.guard("sync", self.env.disk.sync(&self.file))?;
        if !self.folder_synced.replace(true)
            && let Some(folder) = self.path.parent()
        {
            self.guard("sync", self.env.disk.sync_folder(folder))?;
        }
        if file_kind(&self.path) == Some(FileKind::Log) {
            self.env.note_synced(&self.file, &self.path);
        }
        Ok(())
    }
}

/// Reads as much as was asked for: the library's log reader takes a short read for the end.
struct FullReads(File);

impl Read for FullReads {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..)
            && !rest.is_empty()
        {
            match self.0.read(rest) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// A table whose blocks are checked here, because the library skips a bad one without a word.
struct CheckedTable {
    env: CarefulEnv,
    file: File,
    size: u64,
    path: PathBuf,
}

impl CheckedTable {
    /// What the library reads is the footer, a block with its trailer, or the filter block without its trailer.
    fn is_sound(&self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        if offset + bytes.len() as u64 == self.size && bytes.len() == FOOTER {
            return Ok(is_footer(bytes));
        }
        if is_sound_block(bytes) {
            return Ok(true);
        }
        let mut with_trailer = bytes.to_vec();
        with_trailer.resize(bytes.len() + 5, 0);
        match self.file.read_exact_at(&mut with_trailer, offset) {
            Ok(()) => Ok(is_sound_block(&with_trailer)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl RandomAccess for CheckedTable {
    fn read_at(&self, offset: usize, buffer: &mut [u8]) -> Result<usize> {
        let offset = offset as u64;
        if offset
            .checked_add(buffer.len() as u64)
            .is_none_or(|end| end > self.size)
        {
            return Ok(self.env.damage("a block beyond the end", &self.path)?);
        }
        let read = self
            .file
            .read_exact_at(buffer, offset)
            .and_then(|()| self.is_sound(offset, buffer));
        if !self.env.guard("read", &self.path, read)? {
            return Ok(self.env.damage("a wrong checksum", &self.path)?);
        }
        Ok(buffer.len())
    }
}

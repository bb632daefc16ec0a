//! The database on its thread: opening, reading, writing, and opening anew after a fault (design §15).
//!
//! Owns: the library's options, database and iterators, and the batches not yet durable. Must not know: channels,
//! callers.

use super::LevelSettings;
use super::env::{CarefulEnv, Disk, Fault};
use super::log_scan::MAX_RECORD;
use super::salvage::{Salvaged, find_damage, finish_interrupted_swap, move_aside, rebuilt_path};
use crate::kv::{BATCH_MAX, Batch, Change, KvError, Notice, Pair, REPAIRED_KEY, Range};
use rusty_leveldb::{
    CompressorId, DB, DBIterator, LdbIterator, Options, Status, StatusCode, WriteBatch, compressor, infolog,
};
use std::cell::RefCell;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Batches kept for repetition beyond this many bytes are made durable instead.
const PENDING_BYTES: usize = 1 << 20;
/// What is written must be read back, with what the log adds to it.
const _: () = assert!(BATCH_MAX <= MAX_RECORD / 2);

/// The store as its thread sees it. Not `Send`, and never moved after it was made.
pub(super) struct Store {
    folder: PathBuf,
    stamp: String,
    settings: LevelSettings,
    disk: Arc<dyn Disk>,
    open: Option<Open>,
    /// Applied and answered, but not durable: applied again when the database is opened anew.
    pending: Vec<Batch>,
    pending_bytes: usize,
    notices: Vec<Notice>,
    /// Of a rebuilt store that has yet to take the damaged one's place.
    moving: Option<Notice>,
}

struct Open {
    db: DB,
    env: CarefulEnv,
}

impl Store {
    /// Opens the folder, or makes it; a damaged one is repaired.
    pub(super) fn open(
        folder: &Path,
        stamp: &str,
        settings: LevelSettings,
        disk: Arc<dyn Disk>,
    ) -> Result<Self, KvError> {
        let mut store = Self {
            folder: folder.to_owned(),
            stamp: stamp.to_owned(),
            settings,
            disk,
            open: None,
            pending: Vec::new(),
            pending_bytes: 0,
            notices: Vec::new(),
            moving: None,
        };
        store.ensure_open()?;
        Ok(store)
    }

    pub(super) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The values of the first of these keys, of all unless `is_wanted` says in between that somebody else waits; of one at least.
    ///
    /// Reads by seeking an iterator: the library's `get` misses live keys beside deleted ones.
    pub(super) fn get_some(
        &mut self,
        keys: &[Vec<u8>],
        is_wanted: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Option<Vec<u8>>>, KvError> {
        self.with_db(|db| {
            let mut iterator = db.new_iter()?;
            let get = |key: &Vec<u8>| {
                iterator.seek(key);
                iterator
                    .current()
                    .filter(|(found, _)| found == key)
                    .map(|(_, value)| value.to_vec())
            };
            Ok(until_wanted(keys, get, is_wanted))
        })
    }

    pub(super) fn scan(&mut self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, KvError> {
        self.with_db(|db| Ok(scan_with(&mut db.new_iter()?, prefix, after, limit)))
    }

    /// The pairs of the first of these ranges, as [`Store::get_some`].
    pub(super) fn scan_some(
        &mut self,
        ranges: &[Range],
        is_wanted: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Vec<Pair>>, KvError> {
        self.with_db(|db| {
            let mut iterator = db.new_iter()?;
            let scan = |range: &Range| scan_with(&mut iterator, &range.prefix, None, range.limit);
            Ok(until_wanted(ranges, scan, is_wanted))
        })
    }

    /// Writes all batches as one. They are all applied, or (on an error) perhaps applied.
    pub(super) fn apply(&mut self, batches: Vec<Batch>) -> Result<(), KvError> {
        self.with_db(|db| db.write(write_batch(&batches), false))?;
        self.pending_bytes += batches.iter().map(Batch::bytes).sum::<usize>();
        self.pending.extend(batches);
        if self.pending_bytes > PENDING_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Makes all that was applied durable.
    pub(super) fn flush(&mut self) -> Result<(), KvError> {
        if !self.pending.is_empty() {
            self.with_db(DB::flush)?;
            self.pending.clear();
            self.pending_bytes = 0;
        }
        Ok(())
    }

    /// Runs one operation. After a fault the handle is over; after damage the store is repaired and the operation
    /// runs once more.
    fn with_db<T>(&mut self, mut operation: impl FnMut(&mut DB) -> Result<T, Status>) -> Result<T, KvError> {
        match self.attempt(&mut operation)? {
            Attempt::Done(value) => Ok(value),
            Attempt::Damaged(reason) => {
                self.repair(reason)?;
                match self.attempt(&mut operation)? {
                    Attempt::Done(value) => Ok(value),
                    Attempt::Damaged(reason) => Err(KvError::Damaged(reason)),
                }
            }
        }
    }

    fn attempt<T>(&mut self, operation: &mut dyn FnMut(&mut DB) -> Result<T, Status>) -> Result<Attempt<T>, KvError> {
        self.ensure_open()?;
        let Some(open) = &mut self.open else {
            return Err(KvError::Closed);
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| operation(&mut open.db)));
        let fault = open.env.fault();
        if fault.is_some() || !matches!(outcome, Ok(Ok(_))) {
            open.env.poison(Fault::Io("handle ended".to_owned()));
            self.drop_handle();
        }
        match (outcome, fault) {
            (Ok(Ok(value)), None) => Ok(Attempt::Done(value)),
            (_, Some(Fault::Damage(reason))) => Ok(Attempt::Damaged(reason)),
            (_, Some(Fault::Io(reason))) => Err(KvError::Io(reason)),
            (Ok(Err(status)), None) => Err(KvError::Failed(status.err)),
            (Err(panic), None) => Err(KvError::Failed(panic_text(&*panic))),
        }
    }

    fn drop_handle(&mut self) {
        let Some(Open { db, env }) = self.open.take() else {
            return;
        };
        // A database that panicked once may do so again while it is dropped, before it gives up its lock.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(db)));
        env.release_lock();
    }

    fn ensure_open(&mut self) -> Result<(), KvError> {
        if self.open.is_some() {
            return Ok(());
        }
        self.finish_swap()?;
        let mut open = match io_error(find_damage(&self.folder))? {
            None => match open_db(&self.folder, self.settings, &self.disk) {
                Err(KvError::Damaged(reason)) => self.rebuild(reason)?,
                opened => opened?,
            },
            Some(reason) => self.rebuild(reason)?,
        };
        write_pending(&mut open, &self.pending)?;
        self.open = Some(open);
        Ok(())
    }

    fn repair(&mut self, reason: String) -> Result<(), KvError> {
        self.drop_handle();
        let mut open = self.rebuild(reason)?;
        write_pending(&mut open, &self.pending)?;
        self.open = Some(open);
        Ok(())
    }

    /// Fills a new folder with what can be read of the damaged one, then lets the two change places.
    fn rebuild(&mut self, reason: String) -> Result<Open, KvError> {
        let salvaged = io_error(Salvaged::read(&self.folder))?;
        let rebuilt = rebuilt_path(&self.folder);
        if rebuilt.exists() {
            io_error(fs::remove_dir_all(&rebuilt))?;
        }
        let mut open = open_db(&rebuilt, self.settings, &self.disk)?;
        for batch in salvaged.batches() {
            write_all(&mut open, &[batch])?;
        }
        let mut mark = Batch::new();
        mark.put(REPAIRED_KEY, reason.as_str());
        write_all(&mut open, &[mark])?;
        drop(open);
        self.moving = Some(io_error(move_aside(&self.folder, &self.stamp, reason, &salvaged))?);
        self.finish_swap()?;
        open_db(&self.folder, self.settings, &self.disk)
    }

    /// Lets a rebuilt store take the place of the damaged one that was moved aside, and tells so.
    fn finish_swap(&mut self) -> Result<(), KvError> {
        io_error(finish_interrupted_swap(&self.folder))?;
        self.notices.extend(self.moving.take());
        Ok(())
    }
}

/// What reading gives for each of these, until somebody else waits.
fn until_wanted<T, R>(asked: &[T], mut read: impl FnMut(&T) -> R, is_wanted: &mut dyn FnMut() -> bool) -> Vec<R> {
    let mut found = Vec::with_capacity(asked.len());
    for one in asked {
        found.push(read(one));
        if found.len() < asked.len() && is_wanted() {
            break;
        }
    }
    found
}

fn scan_with(iterator: &mut DBIterator, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Vec<Pair> {
    let after = after.filter(|after| *after >= prefix);
    iterator.seek(after.unwrap_or(prefix));
    let mut pairs = Vec::new();
    while pairs.len() < limit
        && let Some((key, value)) = iterator.current()
        && key.starts_with(prefix)
    {
        if after != Some(&*key) {
            pairs.push((key.to_vec(), value.to_vec()));
        }
        iterator.advance();
    }
    pairs
}

enum Attempt<T> {
    Done(T),
    Damaged(String),
}

/// Writes what was not durable once more, in as few writes as are read back.
fn write_pending(open: &mut Open, pending: &[Batch]) -> Result<(), KvError> {
    let (mut begin, mut weight) = (0, 0);
    for (at, batch) in pending.iter().enumerate() {
        if weight + batch.weight() > BATCH_MAX && at > begin {
            write_all(open, pending.get(begin..at).unwrap_or_default())?;
            (begin, weight) = (at, 0);
        }
        weight += batch.weight();
    }
    match pending.get(begin..) {
        Some(rest) if !rest.is_empty() => write_all(open, rest),
        Some(_) | None => Ok(()),
    }
}

/// Writes durably, on a handle that is thrown away when it fails.
fn write_all(open: &mut Open, batches: &[Batch]) -> Result<(), KvError> {
    let Open { db, env } = open;
    let outcome = catch_unwind(AssertUnwindSafe(|| db.write(write_batch(batches), true)));
    match (outcome, env.fault()) {
        (Ok(Ok(())), None) => Ok(()),
        (outcome, fault) => {
            env.poison(Fault::Io("handle ended".to_owned()));
            Err(match (outcome, fault) {
                (_, Some(Fault::Io(reason) | Fault::Damage(reason))) => KvError::Io(reason),
                (Ok(Err(status)), None) => KvError::Failed(status.err),
                (Err(panic), None) => KvError::Failed(panic_text(&*panic)),
                (Ok(Ok(())), None) => KvError::Failed("no reason".to_owned()),
            })
        }
    }
}

fn write_batch(batches: &[Batch]) -> WriteBatch {
    let mut merged = WriteBatch::default();
    for change in batches.iter().flat_map(|batch| &batch.changes) {
        match change {
            Change::Put { key, value } => merged.put(key, value),
            Change::Delete { key } => merged.delete(key),
        }
    }
    merged
}

/// Opens a folder on a new environment. `Damaged` where the content, not the operating system, is the reason.
fn open_db(folder: &Path, settings: LevelSettings, disk: &Arc<dyn Disk>) -> Result<Open, KvError> {
    let env = CarefulEnv::new(disk.clone());
    let options = library_options(settings, &env);
    let outcome = catch_unwind(AssertUnwindSafe(|| DB::open(folder, options)));
    match (outcome, env.fault()) {
        (Ok(Ok(db)), None) => return Ok(Open { db, env }),
        (Ok(Err(status)), None) if status.code == StatusCode::LockError => Err(KvError::Locked {
            folder: folder.to_owned(),
            holder: "another LevelDB program".to_owned(),
        }),
        (Ok(Err(status)), None) => Err(KvError::Damaged(status.err)),
        (Err(panic), None) => Err(KvError::Damaged(panic_text(&*panic))),
        (outcome, Some(fault)) => {
            let _ = catch_unwind(AssertUnwindSafe(move || drop(outcome)));
            Err(match fault {
                Fault::Io(reason) => KvError::Io(reason),
                Fault::Damage(reason) => KvError::Damaged(reason),
            })
        }
    }
    .inspect_err(|_| env.release_lock())
}

fn library_options(settings: LevelSettings, env: &CarefulEnv) -> Options {
    Options {
        env: Rc::new(Box::new(env.clone())),
        log: Some(Rc::new(RefCell::new(infolog::Logger(Box::new(io::sink()))))),
        write_buffer_size: settings.write_buffer_bytes,
        max_file_size: settings.table_bytes,
        block_cache_capacity_bytes: settings.cache_bytes,
        max_open_files: 256,
        compressor: compressor::SnappyCompressor::ID,
        // Appending to a log or manifest with a torn end hides everything that is appended.
        reuse_logs: false,
        reuse_manifest: false,
        ..Options::default()
    }
}

fn io_error<T>(result: io::Result<T>) -> Result<T, KvError> {
    result.map_err(|error| KvError::Io(error.to_string()))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic".to_owned())
}

//! Faults of the library that this crate works round, shown on the library itself.
//!
//! A test that fails here is good news: upstream has mended that fault. Then see whether the way round can go.

use super::crash::can_lock_records;
use super::{copy_folder, files_ending, flip};
use rusty_leveldb::env::{Env, FileLock, Logger, RandomAccess};
use rusty_leveldb::{DB, LdbIterator, Options, PosixDiskEnv, Status, in_memory};
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

fn key(number: u32) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

#[test]
fn canary_get_misses_live_keys_beside_deleted_ones() {
    let options = Options {
        write_buffer_size: 64 << 10,
        max_file_size: 128 << 10,
        ..in_memory()
    };
    let mut db = DB::open("canary", options).unwrap();
    for number in 0..20_000 {
        db.put(&key(number), b"v").unwrap();
    }
    for number in (0..20_000).step_by(2) {
        db.delete(&key(number)).unwrap();
    }
    let live = || (1..20_000).step_by(2);
    let missed = live().filter(|number| db.get(&key(*number)).is_none()).count();
    let mut iterator = db.new_iter().unwrap();
    let missed_by_seek = live()
        .filter(|number| {
            iterator.seek(&key(*number));
            iterator.current().is_none_or(|(found, _)| found != key(*number))
        })
        .count();
    assert!(missed > 0, "get() is mended");
    assert_eq!(missed_by_seek, 0);
}

fn library_default(folder: &Path) -> DB {
    DB::open(folder, Options::default()).unwrap()
}

#[test]
fn canary_writes_behind_a_torn_log_end_vanish() {
    let folder = tempfile::tempdir().unwrap();
    let place = |number: u32| folder.path().join(number.to_string());
    let mut db = library_default(&place(0));
    db.put(b"before", b"1").unwrap();
    db.flush().unwrap();
    db.put(b"torn", b"1").unwrap();
    db.flush().unwrap();
    copy_folder(&place(0), &place(1));
    let newest = files_ending(&place(1), ".log").pop().unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    std::fs::write(&newest, &bytes[..bytes.len() - 3]).unwrap();

    let mut db = library_default(&place(1));
    db.put(b"after", b"1").unwrap();
    db.flush().unwrap();
    copy_folder(&place(1), &place(2));
    let mut db = library_default(&place(2));
    assert!(db.get(b"before").is_some());
    assert!(db.get(b"after").is_none(), "appending to a torn log is mended");
}

#[test]
fn canary_a_flipped_byte_in_a_log_drops_the_rest_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let mut db = library_default(folder.path());
    for number in 0..100 {
        db.put(&key(number), b"v").unwrap();
    }
    db.close().unwrap();
    drop(db);
    let log = files_ending(folder.path(), ".log").pop().unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    std::fs::write(&log, bytes).unwrap();
    let mut db = library_default(folder.path());
    let left = (0..100).filter(|number| db.get(&key(*number)).is_some()).count();
    assert!(left < 60, "damage in a log is handled now: {left} left");
}

#[test]
fn canary_a_lost_current_file_means_a_new_store() {
    let folder = tempfile::tempdir().unwrap();
    // Without reusing logs, the second opening moves what was written into a table.
    let options = || Options {
        reuse_logs: false,
        ..Options::default()
    };
    let mut db = DB::open(folder.path(), options()).unwrap();
    db.put(b"a", b"1").unwrap();
    drop(db);
    drop(DB::open(folder.path(), options()).unwrap());
    assert_eq!(files_ending(folder.path(), ".ldb").len(), 1);
    std::fs::remove_file(folder.path().join("CURRENT")).unwrap();
    let opened = DB::open(folder.path(), Options::default());
    assert!(
        opened.is_ok_and(|mut db| db.get(b"a").is_none()),
        "a lost CURRENT is noticed now"
    );
}

#[test]
fn canary_a_flipped_byte_in_a_table_hides_keys_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let options = || Options {
        write_buffer_size: 16 << 10,
        reuse_logs: false,
        ..Options::default()
    };
    let mut db = DB::open(folder.path(), options()).unwrap();
    for number in 0..2_000 {
        db.put(&key(number), &[b'v'; 100]).unwrap();
    }
    db.close().unwrap();
    drop(db);
    let table = &files_ending(folder.path(), ".ldb")[0];
    flip(table, |length| length / 3);
    let mut db = DB::open(folder.path(), options()).unwrap();
    let mut iterator = db.new_iter().unwrap();
    let mut left = 0;
    iterator.seek_to_first();
    while iterator.valid() {
        left += 1;
        iterator.advance();
    }
    assert!((1..2_000).contains(&left), "damage in a table is told now: {left} left");
}

#[test]
fn canary_the_lock_does_not_keep_out_who_locks_records() {
    let folder = tempfile::tempdir().unwrap();
    let _open = library_default(folder.path());
    assert!(can_lock_records(folder.path()), "the library takes a record lock now");
}

#[test]
fn canary_a_flush_syncs_nothing() {
    // What cannot be synced tells whether anybody tried: this file takes every write, and refuses to be made durable.
    let null = Path::new("/dev/null");
    assert!(
        std::fs::OpenOptions::new()
            .write(true)
            .open(null)
            .unwrap()
            .sync_data()
            .is_err()
    );
    let mut file = PosixDiskEnv::new().open_writable_file(null).unwrap();
    file.write_all(b"acknowledged").unwrap();
    assert!(file.flush().is_ok(), "a flush reaches the disk now");
}

/// A disk with so many bytes left.
struct TightEnv {
    disk: PosixDiskEnv,
    left: Rc<Cell<usize>>,
}

struct TightFile {
    file: Box<dyn Write>,
    left: Rc<Cell<usize>>,
}

impl Write for TightFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.get().checked_sub(bytes.len());
        self.left.set(left.ok_or(io::ErrorKind::StorageFull)?);
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

type Outcome<T> = Result<T, Status>;

impl Env for TightEnv {
    fn open_writable_file(&self, path: &Path) -> Outcome<Box<dyn Write>> {
        let (file, left) = (self.disk.open_writable_file(path)?, self.left.clone());
        Ok(Box::new(TightFile { file, left }))
    }
    fn open_appendable_file(&self, path: &Path) -> Outcome<Box<dyn Write>> {
        let (file, left) = (self.disk.open_appendable_file(path)?, self.left.clone());
        Ok(Box::new(TightFile { file, left }))
    }
    fn open_sequential_file(&self, path: &Path) -> Outcome<Box<dyn Read>> {
        self.disk.open_sequential_file(path)
    }
    fn open_random_access_file(&self, path: &Path) -> Outcome<Box<dyn RandomAccess>> {
        self.disk.open_random_access_file(path)
    }
    fn exists(&self, path: &Path) -> Outcome<bool> {
        self.disk.exists(path)
    }
    fn children(&self, path: &Path) -> Outcome<Vec<PathBuf>> {
        self.disk.children(path)
    }
    fn size_of(&self, path: &Path) -> Outcome<usize> {
        self.disk.size_of(path)
    }
    fn delete(&self, path: &Path) -> Outcome<()> {
        self.disk.delete(path)
    }
    fn mkdir(&self, path: &Path) -> Outcome<()> {
        self.disk.mkdir(path)
    }
    fn rmdir(&self, path: &Path) -> Outcome<()> {
        self.disk.rmdir(path)
    }
    fn rename(&self, old: &Path, new: &Path) -> Outcome<()> {
        self.disk.rename(old, new)
    }
    fn lock(&self, path: &Path) -> Outcome<FileLock> {
        self.disk.lock(path)
    }
    fn unlock(&self, lock: FileLock) -> Outcome<()> {
        self.disk.unlock(lock)
    }
    fn new_logger(&self, path: &Path) -> Outcome<Logger> {
        self.disk.new_logger(path)
    }
    fn micros(&self) -> u64 {
        self.disk.micros()
    }
    fn sleep_for(&self, micros: u32) {
        self.disk.sleep_for(micros);
    }
}

/// Fills a store until the disk is full, makes room, goes on, and counts the acknowledged keys that are gone.
fn lost_on_a_full_disk(bytes: usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let left = Rc::new(Cell::new(bytes));
    let small = || Options {
        write_buffer_size: 8 << 10,
        max_file_size: 16 << 10,
        ..Options::default()
    };
    let env = TightEnv {
        disk: PosixDiskEnv::new(),
        left: left.clone(),
    };
    let mut db = DB::open(
        folder.path(),
        Options {
            env: Rc::new(Box::new(env)),
            ..small()
        },
    )
    .unwrap();
    // In no order: tables that do not overlap are never compacted.
    let mixed = |number: u32| key(number * 7_919 % 10_007);
    let mut acknowledged = Vec::new();
    for number in 0..2_000 {
        if db.put(&mixed(number), &[b'v'; 100]).is_ok() {
            acknowledged.push(number);
        } else {
            left.set(usize::MAX);
        }
    }
    drop(db);
    let Ok(mut db) = DB::open(folder.path(), small()) else {
        return acknowledged.len();
    };
    let mut iterator = db.new_iter().unwrap();
    let is_there = |number: &u32| {
        iterator.seek(&mixed(*number));
        iterator.current().is_some_and(|(found, _)| found == mixed(*number))
    };
    acknowledged.len() - acknowledged.iter().copied().filter(is_there).count()
}

#[test]
fn canary_a_compaction_that_failed_is_installed() {
    let lost = (30_000..200_000)
        .step_by(20_011)
        .filter(|bytes| lost_on_a_full_disk(*bytes) > 0);
    assert!(lost.count() > 0, "a failed compaction keeps its inputs now");
}

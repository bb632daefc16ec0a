//! Faults of the library that this crate works round, shown on the library itself.
//!
//! A test that fails here is good news: upstream has mended that fault. Then see whether the way round can go.

use super::{copy_folder, files_ending};
use rusty_leveldb::{DB, LdbIterator, Options, in_memory};
use std::path::Path;

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

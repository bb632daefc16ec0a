//! The LevelDB store alone: torn ends, damage, and other processes. What a killed process leaves is shown on the whole memory
//! (`faults`).

use super::{NOW, SMALL, copy_folder, delete, files_ending, flip, open, put, start_child};
use artoo_memory::kv::{Kv, KvError, LevelKv, Notice};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const CHILD: &str = "ARTOO_MEMORY_TEST_CHILD";
const LOCK_CHILD: &str = "ARTOO_MEMORY_TEST_LOCK";

/// Does nothing on its own: the tests below start it in a process of its own.
#[test]
fn child_writes_until_killed() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let kv = open(Path::new(&folder));
    for number in 0.. {
        kv.apply(put(&format!("k|{number:06}"), &"v".repeat(200))).unwrap();
        kv.flush().unwrap();
        println!("\nsynced {number}");
    }
}

#[test]
fn a_second_process_learns_who_holds_the_store_and_can_still_look() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let (mut child, mut synced) = start_child("crash::child_writes_until_killed", CHILD, &path);
    let seen = synced.find(|number| *number >= 20).unwrap();

    let error = LevelKv::open(&path, NOW, SMALL).unwrap_err();
    let KvError::Locked { holder, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*holder, format!("process {} since {NOW}", child.id()));

    let look = LevelKv::open_snapshot(&path, NOW, SMALL).unwrap();
    for number in 0..=seen {
        assert!(
            look.get(format!("k|{number:06}").as_bytes()).unwrap().is_some(),
            "{number} not seen"
        );
    }
    assert_eq!(look.apply(put("a", "b")), Err(KvError::ReadOnly));

    // The one who holds the store noticed nothing and goes on.
    assert!(synced.any(|number| number > seen + 20));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn two_handles_of_one_process_exclude_each_other_until_one_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let first = open(&path);
    assert!(matches!(LevelKv::open(&path, NOW, SMALL), Err(KvError::Locked { .. })));
    first.close().unwrap();
    open(&path).close().unwrap();
}

/// Does nothing on its own: record locks do not exclude their own process, so another one has to try.
#[test]
fn child_tries_a_record_lock() {
    use rustix::fs::{FlockOperation, fcntl_lock};
    let Ok(lock) = std::env::var(LOCK_CHILD) else { return };
    let lock = fs::OpenOptions::new().write(true).open(lock).unwrap();
    let taken = fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    std::process::exit(if taken { 0 } else { 7 });
}

/// Whether another process gets the lock that Google's library takes.
pub fn can_lock_records(folder: &Path) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "crash::child_tries_a_record_lock"])
        .env(LOCK_CHILD, folder.join("LOCK"));
    match child.stdout(Stdio::null()).status().unwrap().code() {
        Some(0) => true,
        Some(7) => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_level_db_programs_are_kept_out_by_either_kind_of_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let record_lock = || can_lock_records(&path);
    let kv = open(&path);
    assert!(!record_lock());
    // Last, because closing this file gives up the record lock of the whole process.
    let lock = fs::OpenOptions::new().write(true).open(path.join("LOCK")).unwrap();
    assert!(lock.try_lock().is_err());
    drop(kv);
    assert!(record_lock());
}

fn cut_newest_log(folder: &Path, bytes: u64) {
    let newest = files_ending(folder, ".log").pop().unwrap();
    let file = fs::OpenOptions::new().write(true).open(newest).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(bytes)).unwrap();
}

#[test]
fn writes_after_a_torn_log_end_survive_the_next_crash() {
    let folder = tempfile::tempdir().unwrap();
    let place = |number: u32| folder.path().join(format!("{number}/memory.leveldb"));
    let kv = open(&place(0));
    kv.apply(put("before", "1")).unwrap();
    kv.flush().unwrap();
    // As a crash would leave it: copied while it is open, while the next record is being written.
    copy_folder(&place(0), &place(1));
    kv.apply(put("torn", "1")).unwrap();
    kv.flush().unwrap();
    let newest = files_ending(&place(0), ".log").pop().unwrap();
    fs::copy(&newest, place(1).join(newest.file_name().unwrap())).unwrap();
    cut_newest_log(&place(1), 3);
    for round in 1..=2 {
        let kv = open(&place(round));
        assert_eq!(kv.get(b"before").unwrap(), Some(b"1".to_vec()));
        assert_eq!(kv.get(b"torn").unwrap(), None);
        assert_eq!(kv.take_notices(), [], "a torn end is no damage");
        for number in 0..100 {
            kv.apply(put(&format!("{round}|{number}"), "v")).unwrap();
        }
        kv.flush().unwrap();
        // A second crash, its own torn end included: garbage that was being written behind the synced part.
        copy_folder(&place(round), &place(round + 1));
        let newest = files_ending(&place(round + 1), ".log").pop().unwrap();
        let mut bytes = fs::read(&newest).unwrap();
        bytes.extend([0x42; 11]);
        fs::write(newest, bytes).unwrap();
    }
    let kv = open(&place(3));
    assert_eq!(kv.scan(b"1|", None, 999).unwrap().len(), 100);
    assert_eq!(kv.scan(b"2|", None, 999).unwrap().len(), 100);
}

#[test]
fn live_keys_beside_deleted_ones_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&folder.path().join("memory.leveldb"));
    for number in 0..4000 {
        kv.apply(put(&format!("{number:05}"), "v")).unwrap();
    }
    for number in (0..4000).step_by(2) {
        kv.apply(delete(&format!("{number:05}"))).unwrap();
    }
    let keys: Vec<_> = (0..4000).map(|number| format!("{number:05}").into_bytes()).collect();
    let found = kv.get_many(&keys).unwrap();
    let wrong = found
        .iter()
        .enumerate()
        .filter(|(number, value)| value.is_some() != (number % 2 == 1))
        .count();
    assert_eq!(wrong, 0);
}

/// Fills a store, closes it, damages one of its files, and checks what is left and said after opening it again.
fn check_damage(fill: usize, damage: impl Fn(&Path), at_least: usize, reason: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let kv = open(&path);
    for number in 0..fill {
        kv.apply(put(&format!("k|{number:05}"), &format!("{number}").repeat(20)))
            .unwrap();
    }
    kv.close().unwrap();
    damage(&path);

    let kv = open(&path);
    let left = kv.scan(b"k|", None, usize::MAX).unwrap();
    assert!(
        left.len() >= at_least && left.len() <= fill,
        "{} of {fill} left",
        left.len()
    );
    for (key, value) in &left {
        let number: usize = std::str::from_utf8(&key[2..]).unwrap().parse().unwrap();
        assert_eq!(*value, format!("{number}").repeat(20).into_bytes());
    }
    let notices = kv.take_notices();
    let [
        Notice::Quarantined {
            moved_to,
            reason: said,
            keys_kept,
            ..
        },
    ] = notices.as_slice()
    else {
        panic!("{notices:?}");
    };
    assert!(said.contains(reason), "{said}");
    assert_eq!(*keys_kept, left.len());
    assert_eq!(
        moved_to.file_name().unwrap(),
        "memory.leveldb.corrupt-20260227T093000000Z"
    );
    assert!(moved_to.is_dir());

    // It goes on, and stays sound.
    kv.apply(put("new", "1")).unwrap();
    kv.close().unwrap();
    let kv = open(&path);
    assert_eq!(kv.get(b"new").unwrap(), Some(b"1".to_vec()));
    assert_eq!(kv.scan(b"k|", None, usize::MAX).unwrap(), left);
    assert_eq!(kv.take_notices(), []);
}

#[test]
fn a_flipped_byte_in_a_log_is_told_and_costs_one_batch() {
    check_damage(
        50,
        |path| flip(&files_ending(path, ".log")[0], |length| length / 2),
        49,
        "wrong checksum",
    );
}

/// What nobody may take for a crash: bytes that were synced are gone.
#[test]
fn a_log_that_was_cut_short_is_told_wherever_it_was_cut() {
    let length = |path: &Path| fs::metadata(files_ending(path, ".log").pop().unwrap()).unwrap().len();
    for part in [1, 3, 7, 10] {
        let cut = |path: &Path| cut_newest_log(path, length(path) * part / 10);
        check_damage(50, cut, if part == 1 { 40 } else { 0 }, "cut short");
    }
    // At the end of a record, too: each is as long as the next.
    check_damage(50, |path| cut_newest_log(path, length(path) / 50), 48, "cut short");
    let remove = |path: &Path| fs::remove_file(files_ending(path, ".log").pop().unwrap()).unwrap();
    check_damage(50, remove, 0, "is missing");
}

#[test]
fn a_flipped_byte_in_the_last_batch_is_told() {
    check_damage(
        50,
        |path| flip(&files_ending(path, ".log")[0], |length| length - 20),
        49,
        "wrong checksum",
    );
}

#[test]
fn a_log_that_lacks_what_was_never_synced_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (
        folder.path().join("a/memory.leveldb"),
        folder.path().join("b/memory.leveldb"),
    );
    let kv = open(&path);
    kv.apply(put("synced", "1")).unwrap();
    kv.flush().unwrap();
    let synced = fs::metadata(files_ending(&path, ".log").pop().unwrap()).unwrap().len();
    kv.apply(put("not synced", "1")).unwrap();
    for cut in 0..60 {
        let _ = fs::remove_dir_all(&copy);
        copy_folder(&path, &copy);
        let newest = files_ending(&copy, ".log").pop().unwrap();
        let length = fs::metadata(&newest).unwrap().len();
        cut_newest_log(&copy, cut.min(length - synced));
        let kv = open(&copy);
        assert_eq!(kv.get(b"synced").unwrap(), Some(b"1".to_vec()), "{cut}");
        assert_eq!(kv.take_notices(), [], "{cut}");
    }
}

#[test]
fn a_flipped_byte_in_a_table_is_told_and_costs_one_block() {
    check_damage(
        2000,
        |path| flip(&files_ending(path, ".ldb")[0], |length| length / 3),
        1800,
        "wrong checksum",
    );
}

#[test]
fn a_lost_current_file_costs_nothing() {
    check_damage(
        2000,
        |path| fs::remove_file(path.join("CURRENT")).unwrap(),
        2000,
        "CURRENT is missing",
    );
}

#[test]
fn a_broken_manifest_costs_nothing() {
    check_damage(2000, |path| flip(&files_ending_manifest(path), |_| 10), 2000, "");
}

#[test]
fn a_lost_table_costs_its_keys_only() {
    check_damage(
        2000,
        |path| fs::remove_file(&files_ending(path, ".ldb")[0]).unwrap(),
        500,
        "missing",
    );
}

#[test]
fn a_table_cut_short_costs_its_keys_only() {
    let cut = |path: &Path| {
        let table = &files_ending(path, ".ldb")[0];
        let file = fs::OpenOptions::new().write(true).open(table).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    };
    check_damage(2000, cut, 500, "");
}

#[test]
fn a_repair_that_was_interrupted_is_finished_or_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let rebuilt = folder.path().join("memory.leveldb.rebuilt");
    let kv = open(&path);
    kv.apply(put("a", "1")).unwrap();
    kv.close().unwrap();
    // Killed between the two moves: the rebuilt store is complete, also for who only looks.
    fs::rename(&path, &rebuilt).unwrap();
    let look = LevelKv::open_snapshot(&path, NOW, SMALL).unwrap();
    assert_eq!(look.get(b"a").unwrap(), Some(b"1".to_vec()));
    assert!(rebuilt.exists() && !path.exists(), "looking changes nothing");
    let kv = open(&path);
    assert_eq!(kv.get(b"a").unwrap(), Some(b"1".to_vec()));
    kv.close().unwrap();
    // Killed while it was filled: it is thrown away.
    copy_folder(&path, &rebuilt);
    fs::remove_file(rebuilt.join("CURRENT")).unwrap();
    let kv = open(&path);
    assert_eq!(kv.get(b"a").unwrap(), Some(b"1".to_vec()));
    assert!(!rebuilt.exists());
}

fn files_ending_manifest(path: &Path) -> std::path::PathBuf {
    let current = fs::read_to_string(path.join("CURRENT")).unwrap();
    path.join(current.trim_end())
}

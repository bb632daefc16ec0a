//! Faults of the disk, injected below the library.

use super::*;
use crate::kv::Change;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A disk with so many bytes left, and one that can lose its file handles.
#[derive(Default)]
struct FailingDisk {
    bytes_left: AtomicU64,
    no_handles: AtomicBool,
    no_sync: AtomicBool,
    /// The call that fails, counted down over all calls; 0 for none.
    fails_at: AtomicU64,
}

impl FailingDisk {
    fn with_bytes(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            bytes_left: AtomicU64::new(bytes),
            ..Self::default()
        })
    }

    /// Whether this call is the one that fails.
    fn strike(&self) -> io::Result<()> {
        let left = self.fails_at.load(Ordering::SeqCst);
        self.fails_at.store(left.saturating_sub(1), Ordering::SeqCst);
        if left == 1 {
            Err(io::Error::from_raw_os_error(5))
        } else {
            Ok(())
        }
    }

    fn handle(&self) -> io::Result<()> {
        self.strike()?;
        if self.no_handles.load(Ordering::SeqCst) {
            Err(io::Error::from_raw_os_error(24))
        } else {
            Ok(())
        }
    }
}

impl Disk for FailingDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        self.handle()?;
        File::create(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        self.handle()?;
        File::open(path)
    }

    fn write_all(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        use std::io::Write;
        self.strike()?;
        let left = self.bytes_left.load(Ordering::SeqCst);
        let fits = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        self.bytes_left.store(left - fits as u64, Ordering::SeqCst);
        file.write_all(&bytes[..fits])?;
        if fits < bytes.len() {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        } else {
            Ok(())
        }
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        self.strike()
    }

    /// Nothing here survives the test anyway: no real sync, for speed.
    fn sync(&self, _: &File) -> io::Result<()> {
        self.strike()?;
        if self.no_sync.load(Ordering::SeqCst) {
            Err(io::Error::from_raw_os_error(5))
        } else {
            Ok(())
        }
    }
}

const SMALL: LevelSettings = LevelSettings {
    write_buffer_bytes: 8 << 10,
    table_bytes: 16 << 10,
    cache_bytes: 16 << 10,
};

/// Keys in no order: tables that do not overlap are never compacted.
fn key(number: usize) -> Vec<u8> {
    format!("{:06}", number * 7_919 % 10_007).into()
}

fn batch(number: usize) -> Batch {
    Batch {
        changes: vec![Change::Put {
            key: key(number),
            value: vec![b'v'; 100],
        }],
    }
}

fn lost(kv: &LevelKv, acknowledged: &[usize]) -> usize {
    let keys: Vec<_> = acknowledged.iter().map(|number| key(*number)).collect();
    kv.get_many(&keys)
        .unwrap()
        .iter()
        .filter(|value| value.is_none())
        .count()
}

/// Writes until the disk refuses, then makes room, goes on, and looks for every acknowledged write, on this handle and
/// on a new one.
fn check_full_disk(bytes: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let disk = FailingDisk::with_bytes(bytes);
    let kv = LevelKv::open_on(&path, "now", SMALL, disk.clone()).unwrap();
    let mut acknowledged = Vec::new();
    let mut refused = 0;
    for number in 0..1000 {
        match kv.apply(batch(number)).and_then(|()| kv.flush()) {
            Ok(()) => acknowledged.push(number),
            Err(error) => {
                assert!(matches!(error, KvError::Io(_)), "{error}");
                refused += 1;
            }
        }
        if refused == 5 {
            disk.bytes_left.store(u64::MAX, Ordering::SeqCst);
        }
    }
    assert_eq!(refused, 5, "with {bytes} bytes");
    assert_eq!(lost(&kv, &acknowledged), 0, "with {bytes} bytes");
    assert_eq!(kv.take_notices(), []);
    kv.close().unwrap();
    let kv = LevelKv::open(&path, "now", SMALL).unwrap();
    assert_eq!(lost(&kv, &acknowledged), 0, "reopened, with {bytes} bytes");
    assert_eq!(kv.take_notices(), []);
}

#[test]
fn a_full_disk_loses_no_acknowledged_write() {
    // Steps that are no multiple of anything: the disk fills up within logs, tables, manifests and compactions.
    for bytes in (30_000..200_000).step_by(20_011) {
        check_full_disk(bytes);
    }
}

#[test]
fn running_out_of_file_handles_loses_no_acknowledged_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let disk = FailingDisk::with_bytes(u64::MAX);
    let kv = LevelKv::open_on(&path, "now", SMALL, disk.clone()).unwrap();
    let mut acknowledged = Vec::new();
    let mut refused = 0;
    for number in 0..1000 {
        disk.no_handles.store(number % 100 < 10, Ordering::SeqCst);
        match kv.apply(batch(number)).and_then(|()| kv.flush()) {
            Ok(()) => acknowledged.push(number),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0);
    disk.no_handles.store(false, Ordering::SeqCst);
    assert_eq!(lost(&kv, &acknowledged), 0);
    assert_eq!(kv.take_notices(), []);
}

/// One call fails, once, wherever it comes: the library often goes on as if it had succeeded.
#[test]
fn a_single_failing_operation_loses_no_acknowledged_write() {
    let calls = (1..10_000).take_while(|at| check_single_failure(*at)).count();
    assert!(calls > 60, "only {calls} calls were made to fail");
}

/// Makes one call fail. Answers whether there was such a call.
fn check_single_failure(at: u64) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let disk = FailingDisk::with_bytes(u64::MAX);
    let kv = LevelKv::open_on(&path, "now", SMALL, disk.clone()).unwrap();
    disk.fails_at.store(at, Ordering::SeqCst);
    let mut written = Vec::new();
    for group in 0..16 {
        let numbers = group * 20..(group + 1) * 20;
        let changes = numbers.clone().flat_map(|number| batch(number).changes).collect();
        if kv.apply(Batch { changes }).and_then(|()| kv.flush()).is_ok() {
            written.extend(numbers);
        }
    }
    let was_called = disk.fails_at.swap(0, Ordering::SeqCst) == 0;
    assert_eq!(lost(&kv, &written), 0, "call {at} failed");
    kv.close().unwrap();
    let kv = LevelKv::open(&path, "now", SMALL).unwrap();
    assert_eq!(lost(&kv, &written), 0, "call {at} failed, reopened");
    assert_eq!(kv.take_notices(), [], "call {at} failed");
    was_called
}

#[test]
fn what_was_applied_before_a_failing_flush_is_there_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let disk = FailingDisk::with_bytes(u64::MAX);
    let kv = LevelKv::open_on(&folder.path().join("memory.leveldb"), "now", SMALL, disk.clone()).unwrap();
    kv.apply(batch(1)).unwrap();
    disk.no_sync.store(true, Ordering::SeqCst);
    assert!(matches!(kv.flush(), Err(KvError::Io(_))), "nothing is acknowledged");
    disk.no_sync.store(false, Ordering::SeqCst);
    assert_eq!(lost(&kv, &[1]), 0);
    kv.flush().unwrap();
    kv.apply(batch(2)).unwrap();
    disk.bytes_left.store(0, Ordering::SeqCst);
    assert!(
        matches!(kv.flush(), Err(KvError::Io(_))),
        "nothing of it reached the file"
    );
    disk.bytes_left.store(u64::MAX, Ordering::SeqCst);
    assert_eq!(lost(&kv, &[1, 2]), 0);
}

/// A store with every kind of file: tables, a log, a manifest.
fn filled(path: &Path) -> Vec<Pair> {
    const TINY: LevelSettings = LevelSettings {
        write_buffer_bytes: 2 << 10,
        table_bytes: 1 << 10,
        cache_bytes: 16 << 10,
    };
    let kv = LevelKv::open_on(path, "now", TINY, FailingDisk::with_bytes(u64::MAX)).unwrap();
    for number in 0..40 {
        kv.apply(batch(number)).unwrap();
        kv.flush().unwrap();
    }
    let all = kv.scan(b"", None, usize::MAX).unwrap();
    kv.close().unwrap();
    all
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .filter(|(name, _)| name != "LOCK")
        .collect();
    files.sort();
    files
}

/// Flips a bit in some bytes of every file, and looks at what is left: what can be read is what was written, and nothing is lost
/// without a word. Answers how often damage was told, by the kind of file.
fn check_flips(bytes_of: impl Fn(usize, &mut u64) -> Vec<usize>) -> std::collections::BTreeMap<String, usize> {
    let folder = tempfile::tempdir().unwrap();
    let (sound, path) = (folder.path().join("sound"), folder.path().join("flipped"));
    let all = filled(&sound);
    let files = files(&sound);
    let (mut told, mut dice) = (std::collections::BTreeMap::new(), 88_172_645_463_325_252_u64);
    for (name, bytes) in &files {
        let kind = name.trim_matches(|c: char| c.is_ascii_digit() || c == '-');
        for at in bytes_of(bytes.len(), &mut dice) {
            let bit = roll(&mut dice) % 8;
            std::fs::create_dir_all(&path).unwrap();
            for (other, bytes) in &files {
                let mut bytes = bytes.clone();
                if other == name {
                    bytes[at] ^= 1 << bit;
                }
                std::fs::write(path.join(other), bytes).unwrap();
            }
            let what = format!("{name} of {} bytes at byte {at}, bit {bit}", bytes.len());
            let disk = FailingDisk::with_bytes(u64::MAX);
            let kv = LevelKv::open_on(&path, "now", SMALL, disk.clone()).unwrap();
            let mut left = kv.scan(b"", None, usize::MAX).unwrap();
            left.retain(|(key, _)| key != REPAIRED);
            let notices = kv.take_notices();
            assert!(left.iter().all(|pair| all.contains(pair)), "{what}");
            assert!(
                left.len() == all.len() || !notices.is_empty(),
                "lost in silence: {what}"
            );
            assert!(
                left.len() * 2 > all.len(),
                "{} of {} left: {what}",
                left.len(),
                all.len()
            );
            *told.entry(kind.to_owned()).or_default() += notices.len();
            kv.close().unwrap();
            let kv = LevelKv::open_on(&path, "now", SMALL, disk).unwrap();
            let mut again = kv.scan(b"", None, usize::MAX).unwrap();
            again.retain(|(key, _)| key != REPAIRED);
            assert_eq!((again, kv.take_notices()), (left, Vec::new()), "afterwards: {what}");
            kv.close().unwrap();
            for entry in std::fs::read_dir(folder.path()).unwrap() {
                let entry = entry.unwrap();
                if entry.file_name().to_string_lossy().starts_with("flipped") && entry.path().is_dir() {
                    std::fs::remove_dir_all(entry.path()).unwrap();
                }
            }
        }
    }
    told
}

const REPAIRED: &[u8] = crate::kv::REPAIRED_KEY;

fn roll(dice: &mut u64) -> usize {
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    usize::try_from(*dice % 1_000_003).unwrap()
}

#[test]
fn a_flipped_bit_in_any_kind_of_file_loses_little_and_nothing_in_silence() {
    let told = check_flips(|length, dice| {
        if length <= 64 {
            (0..length).collect()
        } else {
            (0..40).map(|_| roll(dice) % length).chain([0, length - 1]).collect()
        }
    });
    for kind in [".ldb", ".log", "CURRENT", "MANIFEST"] {
        assert!(told[kind] > 8, "{told:?}");
    }
}

/// The same for every byte of every file; `cargo test -p artoo-memory --lib -- --ignored every_flipped_bit`.
#[test]
#[ignore = "a minute or more: every byte of every file"]
fn every_flipped_bit_loses_little_and_nothing_in_silence() {
    let told = check_flips(|length, _| (0..length).collect());
    println!("damage told, by kind of file: {told:?}");
}

#[test]
fn damage_found_while_running_is_repaired_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let kv = LevelKv::open(&path, "now", SMALL).unwrap();
    for number in 0..1000 {
        kv.apply(batch(number)).unwrap();
    }
    kv.flush().unwrap();
    kv.apply(batch(5000)).unwrap();
    let (_, table) = salvage::store_files(&path)
        .unwrap()
        .into_iter()
        .find(|(kind, _)| *kind == salvage::FileKind::Table)
        .unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let left = kv.scan(b"", None, usize::MAX).unwrap().len();
    assert!((900..1001).contains(&left), "{left}");
    assert_eq!(
        lost(&kv, &[5000]),
        0,
        "what was applied but not durable is not forgotten"
    );
    assert_eq!(kv.take_notices().len(), 1);
    kv.apply(batch(6000)).unwrap();
    kv.close().unwrap();
}

/// The second of the two moves of a repair failed, or its process died there, and then the handle is opened anew.
#[test]
fn a_rebuilt_store_that_waits_beside_a_missing_folder_takes_its_place_at_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let disk = FailingDisk::with_bytes(u64::MAX);
    let kv = LevelKv::open_on(&path, "now", SMALL, disk.clone()).unwrap();
    for number in 0..20 {
        kv.apply(batch(number)).unwrap();
    }
    kv.flush().unwrap();
    // A fault ends the library's handle, not this one.
    disk.no_sync.store(true, Ordering::SeqCst);
    kv.apply(batch(20)).unwrap();
    assert!(kv.flush().is_err());
    std::fs::rename(&path, salvage::rebuilt_path(&path)).unwrap();
    assert_eq!(LevelKv::place(&path).unwrap(), Some(salvage::rebuilt_path(&path)));
    let look = LevelKv::open_snapshot(&path, "now", SMALL).unwrap();
    assert_eq!(look.scan(b"", None, 99).unwrap().len(), 21, "who looks sees it too");
    disk.no_sync.store(false, Ordering::SeqCst);
    let all: Vec<usize> = (0..21).collect();
    assert_eq!(lost(&kv, &all), 0);
    assert!(path.is_dir() && !salvage::rebuilt_path(&path).exists());
    kv.close().unwrap();
    assert_eq!(LevelKv::place(&folder.path().join("none")).unwrap(), None);
}

/// What is carried over is written in pieces that are read back.
#[test]
fn a_repair_writes_no_batch_that_would_be_taken_for_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let disk = FailingDisk::with_bytes(u64::MAX);
    let kv = LevelKv::open_on(&path, "now", LevelSettings::LARGE, disk.clone()).unwrap();
    let large = |number: usize| Batch {
        changes: vec![Change::Put {
            key: key(number),
            value: vec![7; 3 << 20],
        }],
    };
    for number in 0..12 {
        kv.apply(large(number)).unwrap();
    }
    kv.close().unwrap();
    std::fs::remove_file(path.join("CURRENT")).unwrap();
    let salvaged = salvage::Salvaged::read(&path).unwrap();
    let batches = salvaged.batches();
    assert!(batches.len() > 4 && batches.iter().all(|batch| batch.bytes() <= 8 << 20));
    let kv = LevelKv::open_on(&path, "now", LevelSettings::LARGE, disk).unwrap();
    assert_eq!(
        kv.scan(b"", None, 99).unwrap().len(),
        13,
        "all, and the mark of the repair"
    );
}

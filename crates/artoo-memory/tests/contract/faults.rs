//! The whole memory under faults: killed at any point, damaged, read-only, with a clock that jumps.

use super::{NOW, SMALL, copy_folder, files_ending, flip, open, put, start_child};
use artoo_memory::kv::{Kv, KvError, LevelKv};
use artoo_memory::records::RecordsError;
use artoo_memory::{Edit, Memory, Records, keys};
use artoo_protocol::message::{Level, MacroState, Megram};
use artoo_protocol::ports::{Clock, MemoryService};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, Timestamp, Valence};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

const CHILD: &str = "ARTOO_MEMORY_TEST_WRITER";
const DREAMER: &str = "ARTOO_MEMORY_TEST_DREAMER";
/// How many times the writer is killed; `ARTOO_KILL_ROUNDS=200` for the long run.
const ROUNDS: u64 = 10;

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

fn now() -> Timestamp {
    Timestamp::parse(NOW).unwrap()
}

fn start(folder: &Path) -> (Result<Memory, RecordsError>, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = told.clone();
    let warn: artoo_memory::Warn = Arc::new(move |text: &str| sink.lock().unwrap().push(text.to_owned()));
    (Memory::open(folder, SMALL, Arc::new(StoppedClock), warn), told)
}

fn megram(number: u64) -> Megram {
    let row = [(0.95, -1.0, 0.05), (0.9, 1.0, 0.05), (0.3, 0.0, 0.2), (0.1, 0.5, 0.5)][(number % 4) as usize];
    Megram {
        id: MegramId::new(format!("{number:08}")),
        level: Level::M,
        created_at: Timestamp::from_millis(
            now().as_millis() - 90_000_000_000 + i64::try_from(number).unwrap() * 60_000,
        ),
        last_recalled_at: None,
        space: ["tool:shell", "intent:count_all_files"][(number % 2) as usize].to_owned(),
        entity: format!("path:/{}", number % 7),
        content: format!("Worked for \u{201c}count all files {number}\u{201d}: shell:wc."),
        state: MacroState::Accept,
        f: Magnitude::new(row.0).unwrap(),
        sigma: Valence::new(row.1).unwrap(),
        k: DecayPerDay::new(row.2).unwrap(),
        sources: Vec::new(),
        // Each fifth replaces one of its own group (14 apart).
        supersedes: (number.is_multiple_of(5) && number >= 14).then(|| MegramId::new(format!("{:08}", number - 14))),
        origin: None,
    }
}

/// Does nothing on its own: the test below starts it in a process of its own, and kills it.
#[test]
fn child_remembers_until_killed() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let memory = start(Path::new(&folder)).0.unwrap();
    let first = memory
        .records()
        .all()
        .unwrap()
        .last()
        .map_or(0, |last| last.id.as_str().parse::<u64>().unwrap() + 1);
    for number in first.. {
        memory.write(megram(number));
        if number % 3 == 2 {
            runtime.block_on(memory.flush()).unwrap();
            println!("\nsynced {number}");
        }
    }
}

#[test]
fn a_memory_killed_at_any_point_has_all_that_was_acknowledged_and_its_sums_agree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let (mut last, mut dice) = (0, 88_172_645_463_325_252_u64);
    for round in 0..rounds() {
        let (mut child, mut synced) = start_child("faults::child_remembers_until_killed", CHILD, &path);
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let wanted = last + dice % 120;
        last = synced.find(|number| *number >= wanted).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // What the child printed before it died counts too.
        last = synced.max().unwrap_or(last).max(last);

        let records = Records::open(Arc::new(open(&path))).unwrap();
        assert!(records.is_derived(), "round {round}");
        let there: BTreeSet<MegramId> = records.all().unwrap().into_iter().map(|m| m.id).collect();
        let missing = (0..=last).filter(|number| !there.contains(&megram(*number).id)).count();
        assert_eq!(missing, 0, "of {last} in round {round}");
        let verified = records.verify().unwrap();
        assert!(verified.is_sound(), "round {round}: {verified:?}");
        assert_eq!(records.kv().take_notices(), [], "round {round}");
        records.kv().close().unwrap();
    }
}

/// A memory that repeats itself, so that it is folded.
fn repeated(number: u64) -> Megram {
    let made = now().as_millis() - 40 * 86_400_000 + i64::try_from(number).unwrap() * 60_000;
    Megram {
        content: "Worked for \u{201c}count all files\u{201d}: shell:wc.".to_owned(),
        created_at: Timestamp::from_millis(made),
        supersedes: None,
        ..megram(number)
    }
}

/// As the child above, with a pass of the Dreamer after every flush.
#[test]
fn child_remembers_and_dreams_until_killed() {
    let Ok(folder) = std::env::var(DREAMER) else { return };
    let records = Records::open(Arc::new(open(Path::new(&folder)))).unwrap();
    let counted = records.kv().get(b"test|next").unwrap();
    let first = counted.map_or(0, |next| String::from_utf8(next).unwrap().parse::<u64>().unwrap());
    for number in first.. {
        records.commit(&[Edit::Store(repeated(number))], now()).unwrap();
        if number % 20 == 19 {
            records.kv().apply(put("test|next", &(number + 1).to_string())).unwrap();
            records.kv().flush().unwrap();
            println!("\nsynced {number}");
            dream(&records, now());
        }
    }
}

/// A pass without a model that forgets nothing: it promotes and folds.
fn dream(records: &Records, now: Timestamp) -> usize {
    use artoo_memory::dreamer::{Mode, Params, Pass, Scope};
    let params = Params {
        words_rules: false,
        forgets: false,
        ..Params::default()
    };
    let mut pass = Pass {
        records,
        params,
        now,
        mode: Mode::Perform,
        stop: &|| false,
        on_action: &mut |_, _| {},
    };
    pass.run(&Scope::Everything).unwrap().folded
}

#[test]
fn a_dreaming_memory_killed_at_any_point_has_all_that_was_acknowledged_once() {
    use artoo_memory::potentials::{Later, potentials};
    use artoo_memory::records::Stored;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let (mut last, mut dice) = (0, 88_172_645_463_325_252_u64);
    for round in 0..rounds() {
        let test = "faults::child_remembers_and_dreams_until_killed";
        let (mut child, mut synced) = start_child(test, DREAMER, &path);
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        last = synced.find(|number| *number >= last + 20 + dice % 60).unwrap();
        std::thread::sleep(std::time::Duration::from_micros(dice % 5_000));
        child.kill().unwrap();
        child.wait().unwrap();
        last = synced.max().unwrap_or(last).max(last);

        let records = Records::open(Arc::new(open(&path))).unwrap();
        assert_eq!(records.kv().take_notices(), [], "round {round}");
        let verified = records.verify().unwrap();
        assert!(verified.is_sound(), "round {round}: {verified:?}");
        // Each event is there, as itself or as a part of another one: to say it again is no news.
        let said: Vec<Edit> = (0..=last).map(|number| Edit::Store(repeated(number))).collect();
        for (number, some) in (0..).step_by(500).zip(said.chunks(500)) {
            let stored = records.commit(some, now()).unwrap();
            let new = stored.iter().position(|stored| *stored != Stored::Known);
            assert_eq!(new, None, "behind {number} of {last} in round {round}");
        }
        // And none counts twice: with what comes next said as well, the sums are those of all of them.
        let next = last + 200;
        let rest: Vec<Edit> = (last + 1..next).map(|number| Edit::Store(repeated(number))).collect();
        records.commit(&rest, now()).unwrap();
        records.kv().apply(put("test|next", &next.to_string())).unwrap();
        for (space, entity) in groups(7) {
            let of_group = |m: &Megram| (m.space.as_str(), m.entity.as_str()) == (space.as_str(), entity.as_str());
            let plain: Vec<Megram> = (0..next).map(repeated).filter(of_group).collect();
            let expect = potentials(&plain, now(), Later::CountsAsNew);
            let found = records.potentials(&space, &entity, now()).unwrap();
            let allowed = 1e-9 * plain.len() as f64;
            assert!(
                (found.attention.get() - expect.attention.get()).abs() < allowed
                    && (found.decision.get() - expect.decision.get()).abs() < allowed,
                "round {round}, {space} {entity}: {found:?}, not {expect:?}"
            );
        }
        records.kv().close().unwrap();
    }
}

fn groups(entities: u64) -> Vec<(String, String)> {
    let all = (0..entities * 2).map(repeated).map(|m| (m.space, m.entity));
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

fn rounds() -> u64 {
    let said = std::env::var("ARTOO_KILL_ROUNDS").ok();
    said.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// A store with so many memories, closed.
fn filled(path: &Path, memories: u64) {
    let records = Records::open(Arc::new(open(path))).unwrap();
    for number in 0..memories {
        records.store(&megram(number)).unwrap();
    }
    records.kv().close().unwrap();
}

#[tokio::test]
async fn a_crash_between_the_repair_of_the_store_and_that_of_the_indices_heals_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    filled(&path, 1_000);
    flip(&files_ending(&path, ".ldb")[0], |_| 200);
    // The store repairs itself as soon as it meets the damage; then the process ends without having looked at it as a memory.
    let kv = open(&path);
    let _ = kv.scan(b"", None, usize::MAX).unwrap();
    assert_eq!(kv.take_notices().len(), 1);
    kv.close().unwrap();

    let (memory, told) = start(&path);
    let memory = memory.unwrap();
    memory.flush().await.unwrap();
    let verified = memory.records().verify().unwrap();
    assert!(verified.is_sound() && verified.records > 900, "{verified:?}");
    let told = told.lock().unwrap().join("; ");
    assert!(
        told.contains("was repaired at an earlier start") && told.contains("memories are left"),
        "{told}"
    );
    memory.close().await.unwrap();
    let (memory, told) = start(&path);
    memory.unwrap().close().await.unwrap();
    assert_eq!(*told.lock().unwrap(), [""; 0], "it is told once");
}

#[tokio::test]
async fn indices_that_were_being_rebuilt_when_the_process_died_are_rebuilt_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    filled(&path, 100);
    let kv = open(&path);
    let mut batch = artoo_memory::kv::Batch::new();
    for key in [
        keys::DERIVED_KEY.to_owned(),
        keys::sums("tool:shell", "path:/0"),
        "i|intent:count_all_files|path:/1".to_owned(),
    ] {
        assert!(kv.get(key.as_bytes()).unwrap().is_some(), "{key}");
        batch.delete(key);
    }
    kv.apply(batch).unwrap();
    kv.close().unwrap();
    let memory = start(&path).0.unwrap();
    memory.flush().await.unwrap();
    assert!(memory.records().verify().unwrap().is_sound());
    memory.close().await.unwrap();
}

/// Every kind of file: what can be read is kept and right, the indices are made to fit it, and nothing is lost without a word. Every byte
/// of a store's files is the concern of the store's own test.
#[test]
fn a_flipped_byte_in_any_kind_of_file_is_survived_and_told() {
    const MEMORIES: u64 = 60;
    let folder = tempfile::tempdir().unwrap();
    let sound = folder.path().join("sound");
    filled(&sound, MEMORIES);
    let (mut kinds, mut repaired) = (BTreeSet::new(), 0);
    let names: Vec<_> = fs::read_dir(&sound)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    for name in names {
        let kind = name
            .to_string_lossy()
            .trim_matches(|c: char| c.is_ascii_digit() || c == '-')
            .to_owned();
        if !kinds.insert(kind.clone()) || kind == "LOCK" {
            continue;
        }
        for part in [1, 6] {
            let path = folder.path().join(format!("{}-{part}", name.to_string_lossy()));
            copy_folder(&sound, &path);
            flip(&path.join(&name), |length| length * part / 8);
            let kv = open(&path);
            let _ = kv.scan(b"", None, usize::MAX).unwrap();
            let notices = kv.take_notices();
            repaired += usize::from(!notices.is_empty());
            let records = Records::open(Arc::new(kv)).unwrap();
            records.repair(now()).unwrap();
            let left = records.all().unwrap();
            for found in &left {
                let number: u64 = found.id.as_str().parse().unwrap();
                assert_eq!(*found, megram(number), "{name:?} at {part}/8");
            }
            let lost = MEMORIES - left.len() as u64;
            assert!(
                lost == 0 || !notices.is_empty(),
                "{lost} lost in silence: {name:?} at {part}/8"
            );
            assert!(lost < MEMORIES / 2, "{lost} lost: {name:?} at {part}/8");
            assert!(records.verify().unwrap().is_sound(), "{name:?} at {part}/8");
            records.store(&megram(1_000)).unwrap();
            records.kv().close().unwrap();
        }
    }
    let expect: BTreeSet<String> = [".ldb", ".log", "CURRENT", "LOCK", "MANIFEST", "SYNCED"]
        .map(str::to_owned)
        .into();
    assert!(kinds.is_superset(&expect), "{kinds:?}");
    assert_eq!(repaired, 8, "each but in what notes how far the log was synced");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    // Nobody may make folders here, not even root.
    let path = Path::new("/sys/artoo/memory.leveldb");
    let Err(RecordsError::Store(KvError::Io(reason))) = start(path).0.map(drop) else {
        panic!()
    };
    assert!(reason.contains("/sys/artoo"), "{reason}");
}

#[test]
fn a_store_in_a_folder_that_became_read_only_can_still_be_looked_at() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    filled(&path, 50);
    let set = |mode| {
        for folder in [&path, &folder.path().to_path_buf()] {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o555);
    let records = Records::open(Arc::new(LevelKv::open_snapshot(&path, NOW, SMALL).unwrap())).unwrap();
    assert_eq!(records.verify().unwrap().records, 50);
    assert_eq!(records.kv().apply(put("a", "b")), Err(KvError::ReadOnly));
    assert_eq!(
        records.commit(&[Edit::Store(megram(99))], now()),
        Err(KvError::ReadOnly)
    );
    // Root may write all the same.
    if !rustix::process::geteuid().is_root() {
        let Err(RecordsError::Store(KvError::Io(reason))) = start(&path).0.map(drop) else {
            panic!()
        };
        assert!(reason.contains("memory.leveldb"), "{reason}");
    }
    set(0o755);
}

#[test]
fn a_clock_that_jumps_a_year_either_way_gives_the_plain_sums() {
    use artoo_memory::potentials::{Later, living, potentials};
    let folder = tempfile::tempdir().unwrap();
    let records = Records::open(Arc::new(open(&folder.path().join("memory.leveldb")))).unwrap();
    let at = |days: i64| Timestamp::from_millis(now().as_millis() + days * 86_400_000);
    for (number, clock) in [0, 365, -365, 0, -365, 365].into_iter().enumerate() {
        let mut m = megram(number as u64 * 14);
        (m.created_at, m.supersedes) = (at(clock), None);
        records.commit(&[Edit::Store(m)], at(clock)).unwrap();
        for asked in [-400, -365, -1, 0, 1, 365, 400] {
            let plain = potentials(
                &living(records.group("tool:shell", "path:/0").unwrap()),
                at(asked),
                Later::CountsAsNew,
            );
            let found = records.potentials("tool:shell", "path:/0", at(asked)).unwrap();
            assert!(
                (plain.attention.get() - found.attention.get()).abs() < 1e-9,
                "{asked}: {plain:?} {found:?}"
            );
            assert!(
                (plain.decision.get() - found.decision.get()).abs() < 1e-9,
                "{asked}: {plain:?} {found:?}"
            );
        }
    }
    assert!(records.verify().unwrap().is_sound());
}

/// Damage is found wherever it is: in what is compared, in what is not, and in what is none of the memory's.
#[test]
fn verifying_reads_every_key_there_is() {
    for prefix in ["d|", "f|", "h|", "i|", "o|", "p|", "v|y", "foreign "] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.leveldb");
        let kv = open(&path);
        let mut dice = 88_172_645_463_325_252_u64;
        for number in 0..600 {
            let mut value = String::new();
            while value.len() < 200 {
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                value += &dice.to_string();
            }
            kv.apply(put(&format!("{prefix}{number:05}"), &value)).unwrap();
        }
        kv.close().unwrap();
        let records = Records::open(Arc::new(open(&path))).unwrap();
        let _ = records.verify().unwrap();
        assert_eq!(records.kv().take_notices(), [], "{prefix}");
        records.kv().close().unwrap();
        flip(&files_ending(&path, ".ldb")[0], |length| length / 2);
        let records = Records::open(Arc::new(LevelKv::open_snapshot(&path, NOW, SMALL).unwrap())).unwrap();
        let _ = records.verify().unwrap();
        assert_eq!(records.kv().take_notices().len(), 1, "{prefix}");
    }
}

//! The memory service, on a map and on LevelDB.

use super::NOW;
use artoo_memory::kv::{Batch, InMemoryKv, Kv, KvError, LevelKv, LevelSettings, Notice, Pair};
use artoo_memory::records::{RecordsError, Stored};
use artoo_memory::{Memory, Records, keys};
use artoo_protocol::message::{Level, MacroState, Megram, MemoryAction, MemoryQuery};
use artoo_protocol::ports::{Clock, MemoryService};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, Millis, TaskId, Timestamp, Valence};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

fn now() -> Timestamp {
    Timestamp::parse(NOW).unwrap()
}

fn ago(minutes: u64) -> Timestamp {
    Timestamp::from_millis(now().as_millis() - i64::try_from(minutes).unwrap() * 60_000)
}

fn megram(id: &str, space: &str, entity: &str, f: f64, sigma: f64) -> Megram {
    Megram {
        id: MegramId::new(id),
        level: Level::M,
        created_at: now(),
        last_recalled_at: None,
        space: space.to_owned(),
        entity: entity.to_owned(),
        content: format!("lesson {id}"),
        state: MacroState::Abandon,
        f: Magnitude::new(f).unwrap(),
        sigma: Valence::new(sigma).unwrap(),
        k: DecayPerDay::new(0.05).unwrap(),
        sources: Vec::new(),
        supersedes: None,
        origin: None,
    }
}

fn query(tools: &[&str]) -> MemoryQuery {
    MemoryQuery {
        task_id: TaskId::new("count_files_00000001"),
        query: 1,
        space: "intent:count_all_files".to_owned(),
        entity: "env:local".to_owned(),
        intent: "count all files".to_owned(),
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
    }
}

#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    fn sink(&self) -> artoo_memory::Warn {
        let told = self.0.clone();
        Arc::new(move |text| told.lock().unwrap().push(text.to_owned()))
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn on(kv: Arc<dyn Kv>) -> (Memory, Warnings) {
    let warnings = Warnings::default();
    (
        Memory::start(kv, Arc::new(StoppedClock), warnings.sink()).unwrap(),
        warnings,
    )
}

fn on_map() -> (Memory, Warnings) {
    on(Arc::new(InMemoryKv::new()))
}

fn on_disk(folder: &Path) -> (Memory, Warnings) {
    let warnings = Warnings::default();
    let settings = LevelSettings::default();
    (
        Memory::open(folder, settings, Arc::new(StoppedClock), warnings.sink()).unwrap(),
        warnings,
    )
}

fn ids<T>(records: &[T], id: impl Fn(&T) -> &MegramId) -> Vec<&str> {
    records.iter().map(|record| id(record).as_str()).collect()
}

#[tokio::test]
async fn the_same_answers_come_from_both_stores() {
    let folder = tempfile::tempdir().unwrap();
    for (memory, warnings) in [on_map(), on_disk(&folder.path().join("memory.leveldb"))] {
        memory.write(megram("1", "tool:shell", "path:/a|b", 0.95, -1.0));
        memory.write(megram("2", "tool:shell", "path:/a", 0.30, 0.0));
        let avoid = memory.query_mk("tool:shell", "path:/a|b", now()).await.unwrap();
        assert_eq!(
            (avoid.attention.get(), avoid.decision.get(), avoid.action),
            (0.95, -0.95, MemoryAction::Avoid)
        );
        let faint = memory.query_mk("tool:shell", "path:/a", now()).await.unwrap();
        assert_eq!(faint.action, MemoryAction::Ignore);
        let nothing = memory.query_mk("tool:shell", "path:", now()).await.unwrap();
        assert_eq!((nothing.attention.get(), nothing.action), (0.0, MemoryAction::Ignore));
        memory.close().await.unwrap();
        assert_eq!(warnings.take(), [""; 0]);
    }
}

#[tokio::test]
async fn the_last_write_is_not_lost_at_exit() {
    for is_closed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.leveldb");
        let (memory, _) = on_disk(&path);
        for number in 0..600 {
            memory.write(megram(&format!("{number}"), "tool:shell", "path:/a", 0.5, 1.0));
        }
        if is_closed {
            memory.close().await.unwrap();
        }
        drop(memory);
        let records = Records::open(Arc::new(LevelKv::open(&path, NOW, LevelSettings::default()).unwrap())).unwrap();
        assert_eq!(records.all().unwrap().len(), 600);
    }
}

#[tokio::test]
async fn a_write_after_the_close_is_refused_aloud() {
    let (memory, warnings) = on_map();
    memory.close().await.unwrap();
    memory.close().await.unwrap();
    memory.write(megram("1", "tool:shell", "path:/a", 0.5, 1.0));
    assert_eq!(warnings.take(), ["a memory was refused: the memory is closed"]);
    assert!(memory.flush().await.is_err());
    assert!(memory.recall(&query(&[]), now()).await.is_err());
}

/// A store whose disk can be full.
struct FullAtTimes {
    kv: InMemoryKv,
    is_full: AtomicBool,
}

impl Kv for FullAtTimes {
    fn get_many(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, KvError> {
        self.kv.get_many(keys)
    }
    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, KvError> {
        self.kv.scan(prefix, after, limit)
    }
    fn apply(&self, batch: Batch) -> Result<(), KvError> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(KvError::Io("no space left".to_owned()));
        }
        self.kv.apply(batch)
    }
    fn flush(&self) -> Result<(), KvError> {
        self.kv.flush()
    }
    fn close(&self) -> Result<(), KvError> {
        Ok(()) // so that the test can look into it afterwards
    }
    fn take_notices(&self) -> Vec<Notice> {
        Vec::new()
    }
}

#[tokio::test]
async fn a_full_disk_keeps_memories_waiting_and_is_told_once() {
    let kv = Arc::new(FullAtTimes {
        kv: InMemoryKv::new(),
        is_full: AtomicBool::new(false),
    });
    let (memory, warnings) = on(kv.clone());
    kv.is_full.store(true, Ordering::SeqCst);
    for number in 0..10 {
        memory.write(megram(&format!("{number}"), "tool:shell", "path:/a", 0.5, 1.0));
        assert!(memory.flush().await.is_err());
    }
    let told = warnings.take();
    assert!(told.len() == 1 && told[0].contains("no space left"), "{told:?}");
    assert_eq!(
        memory.recall(&query(&[]), now()).await.unwrap().unavailable,
        None,
        "reading still works"
    );
    kv.is_full.store(false, Ordering::SeqCst);
    memory.flush().await.unwrap();
    assert_eq!(memory.recent("tool:shell", "path:/a", 99).await.unwrap().len(), 10);

    kv.is_full.store(true, Ordering::SeqCst);
    memory.write(megram("last", "tool:shell", "path:/a", 0.5, 1.0));
    let error = memory.close().await.unwrap_err();
    assert!(error.message.contains("1 memories could not be written"), "{error}");
}

#[tokio::test]
async fn what_a_task_taught_reaches_the_next_plan() {
    let (memory, _) = on_map();
    let mut failed = megram("1", "intent:count_all_files", "env:local", 0.95, -1.0);
    failed.content = "failed: `wc` on 80,000 files timed out; list them with `find` first".to_owned();
    memory.write(failed.clone());
    memory.write(megram("2", "tool:shell:curl", "path:http://a", 0.85, -1.0));
    memory.write(megram("3", "tool:shell", "path:/tmp", 0.85, -1.0));
    memory.write(megram("4", "tool:shell", "path:/faint", 0.10, 0.5));
    memory.write(megram("5", "tool:shellac", "path:/other", 0.85, -1.0));
    memory.write(megram("6", "intent:other", "env:local", 0.95, -1.0));
    memory.write(Memory::wish(MegramId::new("7"), " always use yarn \n", ago(5)));
    let reply = memory
        .recall(&query(&["shell", "shell:curl", "search"]), now())
        .await
        .unwrap();
    assert_eq!((reply.task_id.as_str(), reply.query), ("count_files_00000001", 1));
    assert_eq!(
        reply.sops.iter().map(|rule| rule.content.as_str()).collect::<Vec<_>>(),
        ["always use yarn"]
    );
    assert_eq!(
        reply.recent.iter().map(|lesson| &lesson.content).collect::<Vec<_>>(),
        [&failed.content]
    );
    let mut groups: Vec<_> = reply
        .potentials
        .iter()
        .map(|group| (group.space.as_str(), group.entity.as_str(), group.potentials.action))
        .collect();
    groups.sort_unstable_by_key(|group| (group.0, group.1));
    assert_eq!(
        groups,
        [
            ("intent:count_all_files", "env:local", MemoryAction::Avoid),
            ("tool:shell", "path:/tmp", MemoryAction::Avoid),
            ("tool:shell:curl", "path:http://a", MemoryAction::Avoid),
            ("user:preference", "env:local", MemoryAction::Exploit),
        ]
    );
}

#[tokio::test]
async fn lessons_of_the_nearest_intents_are_told_in_another_wording() {
    let folder = tempfile::tempdir().unwrap();
    for (memory, _) in [on_map(), on_disk(&folder.path().join("memory.leveldb"))] {
        let mut lesson = megram("1", "intent:how_many_rust", "env:local", 0.9, 1.0);
        lesson.content = "Worked for “how many rust files are there”: shell:fd.".to_owned();
        let mut rule = megram("2", "intent:how_many_rust", "env:local", 1.0, 1.0);
        (rule.level, rule.k) = (Level::C, DecayPerDay::ZERO);
        let far = megram("3", "intent:play_some_music", "env:local", 0.9, 1.0);
        for m in [lesson, rule, far] {
            memory.write(m);
        }
        let mut query = query(&[]);
        (query.space, query.intent) = (
            "intent:count_all_rust".to_owned(),
            "count all rust files here".to_owned(),
        );
        for _ in 0..2 {
            let reply = memory.recall(&query, now()).await.unwrap();
            assert_eq!(ids(&reply.recent, |lesson| &lesson.id), ["1"]);
            assert_eq!(ids(&reply.sops, |rule| &rule.id), ["2"]);
            // What is written later is found too, once the words are in memory.
            let mut more = megram("4", "intent:all_rust_files", "env:local", 0.9, 1.0);
            more.content = "Worked for “all rust files of this folder”: shell:ls.".to_owned();
            query.intent = "how many rust files".to_owned();
            memory.write(more);
            assert!(memory.forget(&MegramId::new("4")).await.unwrap());
        }
        memory.close().await.unwrap();
    }
}

#[tokio::test]
async fn at_most_ten_lessons_enter_a_plan_and_the_newest_win() {
    let (memory, _) = on_map();
    for number in 0..30 {
        for (level, letter) in [(Level::M, 'm'), (Level::K, 'k')] {
            let mut lesson = megram(
                &format!("{letter}{number}"),
                "intent:count_all_files",
                "env:local",
                0.5,
                1.0,
            );
            (lesson.level, lesson.created_at) = (level, ago(number));
            memory.write(lesson);
        }
    }
    let reply = memory.recall(&query(&[]), now()).await.unwrap();
    assert_eq!(ids(&reply.recent, |lesson| &lesson.id), ["m0", "m1", "m2", "m3", "m4"]);
    assert_eq!(
        ids(&reply.knowledge, |lesson| &lesson.id),
        ["k0", "k1", "k2", "k3", "k4"]
    );
    let recent = memory.recent("intent:count_all_files", "env:local", 2).await.unwrap();
    assert_eq!(ids(&recent, |lesson| &lesson.id), ["m0", "m1"]);
    let known = memory.query_k("intent:count_all_files", "env:local", 1).await.unwrap();
    assert_eq!(ids(&known, |lesson| &lesson.id), ["k0"]);
}

#[tokio::test]
async fn of_two_lessons_that_contradict_the_newer_is_told() {
    let (memory, _) = on_map();
    for (id, minutes, sigma) in [("old", 9, 1.0), ("new", 1, -1.0)] {
        let mut lesson = megram(id, "intent:count_all_files", "env:local", 0.9, sigma);
        (lesson.created_at, lesson.content) = (ago(minutes), "use  `fd` for this".to_owned());
        memory.write(lesson);
    }
    let reply = memory.recall(&query(&[]), now()).await.unwrap();
    assert_eq!(ids(&reply.recent, |lesson| &lesson.id), ["new"]);
}

#[tokio::test]
async fn asking_for_rules_marks_them_as_recalled() {
    let kv = Arc::new(InMemoryKv::new());
    let (memory, _) = on(kv.clone());
    memory.write(Memory::wish(MegramId::new("1"), "always use yarn", ago(5)));
    memory.write(megram("2", "user:preference", "env:local", 0.5, 1.0));
    let rules = memory.query_c("user:preference", "env:local").await.unwrap();
    assert_eq!(ids(&rules, |rule| &rule.id), ["1"]);
    memory.flush().await.unwrap();
    assert_eq!(kv.get(b"r|1").unwrap(), Some(NOW.as_bytes().to_vec()));
    assert_eq!(kv.get(b"r|2").unwrap(), None);
    assert_eq!(kv.scan(b"l|C|", None, 9).unwrap(), [(b"l|C|1".to_vec(), vec![])]);
}

#[tokio::test]
async fn what_the_user_said_before_is_not_stored_twice_and_can_be_forgotten() {
    let kv = Arc::new(InMemoryKv::new());
    let (memory, _) = on(kv.clone());
    memory.write(Memory::wish(MegramId::new("1"), "Always use yarn", now()));
    memory.write(Memory::wish(MegramId::new("2"), "always  use yarn", now()));
    let rules = memory.query_c("user:preference", "env:local").await.unwrap();
    assert_eq!(ids(&rules, |rule| &rule.id), ["1"]);
    assert!(memory.forget(&MegramId::new("1")).await.unwrap());
    assert!(!memory.forget(&MegramId::new("1")).await.unwrap());
    memory.flush().await.unwrap();
    let left: Vec<_> = kv.scan(b"", None, 9).unwrap().into_iter().map(|(key, _)| key).collect();
    assert_eq!(left, [&b"v|derived"[..], b"v|format"]);
}

#[tokio::test]
async fn feedback_on_a_rule_speaks_against_it() {
    let (memory, warnings) = on_map();
    memory.write(Memory::wish(MegramId::new("do"), "use yarn", now()));
    let mut constraint = Memory::wish(MegramId::new("do not"), "never use npm", now());
    (constraint.entity, constraint.sigma) = ("env:other".to_owned(), Valence::new(-1.0).unwrap());
    memory.write(constraint);
    memory.record_negative_feedback(&MegramId::new("do"), "yarn is not installed", now());
    memory.record_negative_feedback(&MegramId::new("do not"), "npm worked", now());
    memory.record_negative_feedback(&MegramId::new("gone"), "?", now());
    let decision = async |entity| {
        memory
            .query_mk("user:preference", entity, now())
            .await
            .unwrap()
            .decision
            .get()
    };
    assert!((decision("env:local").await - 0.15).abs() < 1e-9);
    assert!((decision("env:other").await + 0.15).abs() < 1e-9);
    assert_eq!(warnings.take(), ["feedback on a rule that memory does not have: gone"]);
}

#[tokio::test]
async fn the_laws_are_not_stored_and_no_record_is_edited() {
    let (memory, warnings) = on_map();
    let mut law = megram("law", "system", "env:local", 1.0, 1.0);
    law.level = Level::T;
    memory.write(law);
    memory.write(megram("1", "tool:shell", "path:/a", 0.5, 1.0));
    memory.write(megram("1", "tool:shell", "path:/a", 0.5, 1.0));
    memory.write(megram("1", "tool:shell", "path:/a", 0.5, -1.0));
    memory.write(megram("", "tool:shell", "path:/a", 0.5, -1.0));
    let potentials = memory.query_mk("tool:shell", "path:/a", now()).await.unwrap();
    assert_eq!(potentials.decision.get(), 0.5);
    let told = warnings.take();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("laws") && told[1].contains("another memory has this id") && told[2].contains("id"));
}

#[tokio::test]
async fn hostile_sizes_are_cut_and_found_again() {
    let (memory, _) = on_map();
    let space = "é".repeat(5000);
    let mut large = megram("1", &space, "path:/a", 0.5, 1.0);
    large.content = format!("start{}the result is 42", "x".repeat(1_000_000));
    memory.write(large);
    let lessons = memory.recent(&space, "path:/a", 9).await.unwrap();
    assert!(lessons[0].content.len() < 5000 && lessons[0].content.ends_with("the result is 42"));
}

#[tokio::test]
async fn a_damaged_record_is_told_and_the_others_are_kept() {
    let kv = Arc::new(InMemoryKv::new());
    let (memory, _) = on(kv.clone());
    for id in ["1", "2"] {
        memory.write(megram(id, "tool:shell", "path:/a", 0.5, 1.0));
    }
    memory.flush().await.unwrap();
    let mut bytes = kv.get(b"m|1").unwrap().unwrap();
    bytes[20] ^= 1;
    let mut batch = Batch::new();
    batch.put("m|1", bytes);
    batch.put("x|tool:shell|path:/a|ghost", "");
    batch.delete("l|M|2");
    kv.apply(batch).unwrap();
    let (memory, warnings) = on(kv.clone());
    let lessons = memory.recent("tool:shell", "path:/a", 9).await.unwrap();
    assert_eq!(ids(&lessons, |lesson| &lesson.id), ["2"]);
    memory.flush().await.unwrap();
    assert_eq!(warnings.take(), ["1 memories are left, 1 could not be read"]);
    let left = memory.query_mk("tool:shell", "path:/a", now()).await.unwrap();
    assert_eq!(left.attention.get(), 0.5);
    let mut keys: Vec<_> = kv
        .scan(b"", None, 99)
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    keys.retain(|key| [b'l', b'm', b'x', b'r'].contains(&key[0]));
    assert_eq!(keys, [&b"l|M|2"[..], b"m|2", b"x|tool:shell|path:/a|2"]);
    assert!(memory.records().verify().unwrap().is_sound());
}

#[test]
fn a_store_of_another_version_is_left_alone() {
    let kv = Arc::new(InMemoryKv::new());
    let mut batch = Batch::new();
    batch.put(keys::FORMAT_KEY, "99");
    kv.apply(batch).unwrap();
    assert!(matches!(Records::open(kv), Err(RecordsError::Format { found }) if found == "99"));
}

#[test]
fn importing_what_was_exported_changes_nothing() {
    let records = Records::open(Arc::new(InMemoryKv::new())).unwrap();
    let mut first = megram("1", "tool:shell", "path:/a", 0.5, 1.0);
    (first.created_at, first.sources) = (now().plus(Millis(7)), vec![MegramId::new("0")]);
    assert_eq!(records.store(&first).unwrap(), Stored::New);
    records.mark_recalled([&first.id], now()).unwrap();
    let exported = records.get(&first.id).unwrap().unwrap();
    assert_eq!(exported.last_recalled_at, Some(now()));
    assert_eq!(records.store(&exported).unwrap(), Stored::Known);
}

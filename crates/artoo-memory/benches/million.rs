//! The memory at a million Megrams, 100,000 of them on one tag: how fast it is written, opened and asked, and what it takes.
//!
//! `cargo bench -p artoo-memory --bench million`. It fills a store in a temporary folder (minutes), prints what was measured once, then
//! lets criterion repeat the questions. `ARTOO_MEGRAMS=100000` makes it smaller; `ARTOO_STORE=FOLDER` fills that folder, or asks the store that is in
//! it; `ARTOO_WHOLE_PASS=1` lets the pass come to its end. The questions are asked by a process of their own, so that its memory is not that of the filling.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::disallowed_methods,
    clippy::many_single_char_names,
    missing_docs,
    reason = "bench code"
)]

use artoo_memory::kv::LevelSettings;
use artoo_memory::{Edit, GroupKey, Memory, Records};
use artoo_protocol::message::{Level, MacroState, Megram, MemoryQuery};
use artoo_protocol::ports::{Clock, MemoryService};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, TaskId, Timestamp, Valence};
use criterion::Criterion;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DAY: i64 = 86_400_000;

/// Set for the process that asks a store which was filled a moment ago, and must hold everything.
const FILLED: &str = "ARTOO_FILLED";

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

fn now() -> Timestamp {
    Timestamp::parse("2026-02-27T09:30:00.000Z").unwrap()
}

/// xorshift: the same store every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

const ROWS: [(MacroState, f64, f64, f64); 7] = [
    (MacroState::Abandon, 0.95, -1.0, 0.05),
    (MacroState::Accept, 0.90, 1.0, 0.05),
    (MacroState::ChangeApproach, 0.85, -1.0, 0.05),
    (MacroState::Success, 0.80, 1.0, 0.05),
    (MacroState::BreakSymmetry, 0.75, 1.0, 0.05),
    (MacroState::ChangePath, 0.30, 0.0, 0.2),
    (MacroState::Refine, 0.10, 0.5, 0.5),
];
const VERBS: [&str; 8] = [
    "find", "count", "list", "show", "move", "convert", "download", "compare",
];

/// Of ten: one on the tag `intent:count_all_files`, one an intent of its own, eight about calls of tools on 100,000 targets. They happened
/// one after the other over the last two years.
fn megram(number: usize, total: usize, dice: &mut Dice) -> Megram {
    let (state, f, sigma, k) = ROWS[dice.roll(ROWS.len())];
    let age = (total - number.min(total)) as i64 * (2 * 365 * DAY / total as i64);
    let created_at = Timestamp::from_millis(now().as_millis() - age);
    let task = TaskId::new(format!("task_{:08x}", number / 3));
    let (space, entity, intent) = match number % 10 {
        0 => (
            "intent:count_all_files".to_owned(),
            "env:local".to_owned(),
            "count all files of the project".to_owned(),
        ),
        1 => {
            let (verb, a, b, c) = (VERBS[dice.roll(8)], dice.roll(40), dice.roll(3000), dice.roll(20_000));
            (
                format!("intent:{verb}_w{a}_w{c}"),
                "env:local".to_owned(),
                format!("{verb} the w{a} of w{c} in w{b}"),
            )
        }
        _ => (
            format!("tool:{}", ["shell", "search", "fetch_url", "shell:curl"][dice.roll(4)]),
            format!("path:/home/user/projects/{}", dice.roll(100_000)),
            "look after the project".to_owned(),
        ),
    };
    Megram {
        id: MegramId::derive(created_at, &task, number as u64),
        level: if number % 50 == 7 { Level::K } else { Level::M },
        created_at,
        last_recalled_at: None,
        space,
        entity,
        content: format!(
            "Did not work for “{intent}”, because the round {number} timed out. Tried: shell:find, shell:wc. Failed: exit 124 after 30 s."
        ),
        state,
        f: Magnitude::new(f).unwrap(),
        sigma: Valence::new(sigma).unwrap(),
        k: DecayPerDay::new(k).unwrap(),
        sources: Vec::new(),
        supersedes: None,
        origin: Some(task.to_string()),
    }
}

fn rules() -> Vec<Megram> {
    let rule = |number: usize, space: String, entity: &str| Megram {
        id: MegramId::new(format!("rule-{number}")),
        level: Level::C,
        content: format!("rule {number}: list the files before they are counted"),
        space,
        entity: entity.to_owned(),
        k: DecayPerDay::ZERO,
        f: Magnitude::ONE,
        ..megram(0, 1, &mut Dice(number as u64 + 1))
    };
    let mut rules: Vec<Megram> = (0..20)
        .map(|n| rule(n, "user:preference".to_owned(), "env:local"))
        .collect();
    rules.extend((20..120).map(|n| rule(n, "tool:shell".to_owned(), &format!("path:/home/user/projects/{n}"))));
    rules.push(rule(120, "intent:count_all_files".to_owned(), "env:local"));
    rules
}

fn query() -> MemoryQuery {
    MemoryQuery {
        task_id: TaskId::new("count_files_00000001"),
        query: 1,
        space: "intent:count_all_files".to_owned(),
        entity: "env:local".to_owned(),
        intent: "count all files of the w17 project in w400".to_owned(),
        tools: [
            "shell",
            "search",
            "fetch_url",
            "read_file",
            "write_file",
            "find_files",
            "shell:curl",
            "report",
        ]
        .map(str::to_owned)
        .to_vec(),
    }
}

fn open(folder: &Path) -> Memory {
    let warn = Arc::new(|text: &str| println!("  told: {text}"));
    Memory::open(folder, LevelSettings::LARGE, Arc::new(StoppedClock), warn).unwrap()
}

fn memory_of_process(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|kb| kb.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

fn say(what: &str, figure: impl std::fmt::Display) {
    println!("{what:<64} {figure}");
}

/// Median, 99th percentile and worst of so many calls.
fn percentiles(what: &str, times: usize, mut call: impl FnMut(usize)) {
    let mut took: Vec<Duration> = (0..times)
        .map(|number| {
            let start = Instant::now();
            call(number);
            start.elapsed()
        })
        .collect();
    took.sort();
    say(
        what,
        format!(
            "median {:?}, p99 {:?}, worst {:?} of {times}",
            took[times / 2],
            took[times * 99 / 100],
            took[times - 1]
        ),
    );
}

fn fill(folder: &Path, runtime: &tokio::runtime::Runtime, total: usize) {
    let memory = open(folder);
    let mut dice = Dice(88_172_645_463_325_252);
    let burst = total / 10;
    let begin = Instant::now();
    for number in 0..total - burst {
        memory.write(megram(number, total, &mut dice));
        if number % 10_000 == 9_999 {
            runtime.block_on(memory.flush()).unwrap();
        }
    }
    for rule in rules() {
        memory.write(rule);
    }
    runtime.block_on(memory.flush()).unwrap();
    let took = begin.elapsed().as_secs_f64();
    say(
        "sustained writes, all keys, a sync each 10,000",
        format!("{:.0} a second ({:.0} s)", (total - burst) as f64 / took, took),
    );
    let megrams: Vec<Megram> = (total - burst..total)
        .map(|number| megram(number, total, &mut dice))
        .collect();
    let begin = Instant::now();
    for megram in megrams {
        memory.write(megram);
    }
    let accepted = begin.elapsed();
    runtime.block_on(memory.flush()).unwrap();
    say(
        "a burst",
        format!(
            "{burst} accepted in {accepted:?}, all on disk after {:?}",
            begin.elapsed()
        ),
    );
    say(
        "peak resident memory while writing",
        format!("{} MB", memory_of_process("VmHWM")),
    );
    runtime.block_on(memory.close()).unwrap();
}

fn count(records: &Records) -> usize {
    let (mut count, mut after) = (0, None::<GroupKey>);
    loop {
        let page = records.groups(after.as_ref(), 1000, now()).unwrap();
        let Some(last) = page.last() else { return count };
        after = Some(last.key.clone());
        count += page.iter().map(|group| group.living.total() as usize).sum::<usize>();
    }
}

fn ask(folder: &Path, runtime: &tokio::runtime::Runtime, total: usize, is_new: bool) -> Memory {
    let begin = Instant::now();
    let memory = open(folder);
    let potentials = runtime
        .block_on(memory.query_mk("intent:count_all_files", "env:local", now()))
        .unwrap();
    say(
        "open, and the first answer",
        format!("{:?} (attention {:.1})", begin.elapsed(), potentials.attention.get()),
    );
    let begin = Instant::now();
    runtime.block_on(memory.recall(&query(), now())).unwrap();
    say(
        "the first recall, which reads the words of all intents",
        format!("{:?}", begin.elapsed()),
    );
    say(
        "resident memory after that",
        format!("{} MB", memory_of_process("VmRSS")),
    );
    let records = memory.records();
    let begin = Instant::now();
    let counted = count(&records);
    say(
        "all groups read",
        format!("{:?}, {counted} records count", begin.elapsed()),
    );
    // A store that was kept has been through a pass, which removes some.
    assert!(!is_new || counted == total + rules().len(), "nothing was lost");
    let mk = |space: &str, entity: &str| runtime.block_on(memory.query_mk(space, entity, now())).unwrap();
    percentiles("query_mk of the tag with a tenth of all", 100_000, |_| {
        mk("intent:count_all_files", "env:local");
    });
    percentiles("query_mk of a tag that nobody asked for of late", 5_000, |number| {
        mk(
            "tool:shell",
            &format!("path:/home/user/projects/{}", number * 17 % 100_000),
        );
    });
    percentiles("recall for one plan", 1_000, |_| {
        runtime.block_on(memory.recall(&query(), now())).unwrap();
    });
    percentiles("nearest known intents", 1_000, |number| {
        records
            .nearest(&format!("please count the w{} of w{number} in w7", number % 40), 4)
            .unwrap();
    });
    memory
}

/// Potentials asked for while another thread works through the store in slices, as the Dreamer does.
fn ask_during_a_pass(memory: &Memory, runtime: &tokio::runtime::Runtime) {
    let (records, stop) = (memory.records(), Arc::new(AtomicBool::new(false)));
    let stopped = stop.clone();
    let pass = std::thread::spawn(move || {
        let begin = Instant::now();
        let (mut after, mut entries, mut edits) = (None::<GroupKey>, 0, 0);
        while !stopped.load(Ordering::Relaxed) {
            let page = records.groups(after.as_ref(), 64, now()).unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            for group in &page {
                let mut last = None;
                loop {
                    let some = records.entries(&group.key, last.as_ref(), 256).unwrap();
                    entries += some.len();
                    let is_last = some.len() < 256;
                    last = some.into_iter().next_back();
                    if is_last {
                        break;
                    }
                }
            }
            if let Some(group) = page.first()
                && let Some(entry) = records.entries(&group.key, None, 1).unwrap().first()
            {
                edits += 1;
                records.commit(&[Edit::Remove(entry.id.clone())], now()).unwrap();
            }
        }
        (begin.elapsed(), entries, edits)
    });
    let mut number = 0;
    percentiles("query_mk during a pass over the store", 20_000, |_| {
        number += 1;
        let entity = format!("path:/home/user/projects/{}", number * 17 % 100_000);
        let (space, entity) = if number % 2 == 0 {
            ("tool:shell", entity.as_str())
        } else {
            ("intent:count_all_files", "env:local")
        };
        runtime.block_on(memory.query_mk(space, entity, now())).unwrap();
    });
    percentiles("recall during a pass over the store", 300, |_| {
        runtime.block_on(memory.recall(&query(), now())).unwrap();
    });
    stop.store(std::env::var_os("ARTOO_WHOLE_PASS").is_none(), Ordering::Relaxed);
    let (took, entries, edits) = pass.join().unwrap();
    say(
        "that pass",
        format!("{entries} entries read and {edits} removed in {took:?}"),
    );
}

fn main() {
    let total = std::env::var("ARTOO_MEGRAMS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let kept = std::env::var_os("ARTOO_STORE").map(std::path::PathBuf::from);
    let temporary = tempfile::tempdir().unwrap();
    let folder = kept.unwrap_or_else(|| temporary.path().join("memory.leveldb"));
    if !folder.exists() {
        fill(&folder, &runtime, total);
        let mut asking = std::process::Command::new(std::env::current_exe().unwrap());
        asking
            .args(std::env::args_os().skip(1))
            .env("ARTOO_STORE", &folder)
            .env(FILLED, "1");
        assert!(asking.status().unwrap().success());
        return;
    }
    let memory = ask(&folder, &runtime, total, std::env::var_os(FILLED).is_some());
    let mut criterion = Criterion::default()
        .configure_from_args()
        .sample_size(20)
        .measurement_time(Duration::from_secs(3));
    criterion.bench_function("query_mk, 100,000 on the tag", |b| {
        b.iter(|| {
            runtime
                .block_on(memory.query_mk("intent:count_all_files", "env:local", now()))
                .unwrap()
        });
    });
    criterion.bench_function("recall for one plan", |b| {
        b.iter(|| runtime.block_on(memory.recall(&query(), now())).unwrap());
    });
    criterion.final_summary();
    say(
        "resident memory at the end of the questions",
        format!("{} MB", memory_of_process("VmRSS")),
    );
    ask_during_a_pass(&memory, &runtime);
    runtime.block_on(memory.close()).unwrap();
}

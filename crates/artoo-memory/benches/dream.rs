//! Passes of the Dreamer over a million Megrams, and what others wait for meanwhile.
//!
//! `cargo bench -p artoo-memory --bench dream`. It fills a store in a temporary folder (a minute), then prints what each pass took and did and the
//! percentiles of `query_mk` beside it. `ARTOO_MEGRAMS=100000` makes it smaller, `ARTOO_STORE=FOLDER` keeps the store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    missing_docs,
    reason = "bench code"
)]

use artoo_memory::Records;
use artoo_memory::dreamer::{Mode, Params, Pass, Scope, Tidied};
use artoo_memory::kv::{LevelKv, LevelSettings};
use artoo_memory::records::Edit;
use artoo_protocol::message::{Level, MacroState, Megram};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, TaskId, Timestamp, Valence};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DAY: i64 = 86_400_000;
const ROWS: [(MacroState, f64, f64, f64); 4] = [
    (MacroState::ChangeApproach, 0.85, -1.0, 0.05),
    (MacroState::Accept, 0.90, 1.0, 0.05),
    (MacroState::Success, 0.80, 1.0, 0.05),
    (MacroState::Refine, 0.10, 0.5, 0.5),
];

fn now() -> Timestamp {
    Timestamp::parse("2026-02-27T09:30:00.000Z").unwrap()
}

/// A tenth on one tag, the rest on a target for every ten; made over the last hundred days.
fn megram(number: usize, total: usize) -> Megram {
    let (state, f, sigma, k) = ROWS[number * 7 % ROWS.len()];
    let created_at = Timestamp::from_millis(now().as_millis() - (total - number) as i64 * (100 * DAY / total as i64));
    let (space, entity) = if number.is_multiple_of(10) {
        ("intent:count_all_files".to_owned(), "env:local".to_owned())
    } else {
        ("tool:shell".to_owned(), format!("path:/data/{}", number % (total / 10)))
    };
    Megram {
        id: MegramId::derive(created_at, &TaskId::new("bench_00000001"), number as u64),
        level: Level::M,
        created_at,
        last_recalled_at: None,
        space,
        entity,
        content: format!("shell with `wc -l /data/{number}` exited with 1 while: count all files of the project."),
        state,
        f: Magnitude::new(f).unwrap(),
        sigma: Valence::new(sigma).unwrap(),
        k: DecayPerDay::new(k).unwrap(),
        sources: Vec::new(),
        supersedes: None,
        origin: Some("bench_00000001".to_owned()),
    }
}

fn fill(records: &Records, total: usize) {
    let begin = Instant::now();
    for from in (0..total).step_by(256) {
        let edits: Vec<Edit> = (from..total.min(from + 256))
            .map(|number| Edit::Store(megram(number, total)))
            .collect();
        records.commit(&edits, now()).unwrap();
    }
    records.kv().flush().unwrap();
    println!("{total} Megrams written in {:.1?}", begin.elapsed());
}

fn pass(records: &Records, mode: Mode) -> (Duration, Tidied) {
    let begin = Instant::now();
    let tidied = Pass {
        records,
        params: Params::default(),
        now: now(),
        mode,
        stop: &|| false,
        on_action: &mut |_, _| {},
    }
    .run(&Scope::Everything)
    .unwrap();
    (begin.elapsed(), tidied)
}

/// One pass, and `query_mk` of ever other groups beside it.
fn observed(records: &Arc<Records>, mode: Mode, total: usize, name: &str) {
    let is_over = Arc::new(AtomicBool::new(false));
    let (beside, over) = (Arc::clone(records), Arc::clone(&is_over));
    let asker = std::thread::spawn(move || {
        let mut took: Vec<Duration> = Vec::new();
        let mut number = 0;
        while !over.load(Ordering::Relaxed) {
            number += 1;
            let begin = Instant::now();
            beside
                .potentials(
                    "tool:shell",
                    &format!("path:/data/{}", number * 17 % (total / 10)),
                    now(),
                )
                .unwrap();
            took.push(begin.elapsed());
            std::thread::sleep(Duration::from_micros(500));
        }
        took.sort();
        took
    });
    let (elapsed, tidied) = pass(records, mode);
    is_over.store(true, Ordering::Relaxed);
    let took = asker.join().unwrap();
    let at = |part: f64| {
        took.get((took.len() as f64 * part) as usize)
            .copied()
            .unwrap_or_default()
    };
    println!(
        "{name}: {elapsed:.2?} for {} groups and {} entries; {} changed, {} groups have earned a rule{}; query_mk beside it, {} times: p50 {:.1?}, p99 {:.1?}, most {:.1?}; resident {} MB",
        tidied.groups,
        tidied.entries,
        tidied.changes(),
        tidied.proposals.len(),
        if tidied.unfinished { ", more is left" } else { "" },
        took.len(),
        at(0.5),
        at(0.99),
        took.last().copied().unwrap_or_default(),
        resident()
    );
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|kb| kb.parse::<u64>().ok())
        .unwrap_or(0)
        / 1_024
}

fn main() {
    let total: usize = std::env::var("ARTOO_MEGRAMS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let temporary = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("ARTOO_STORE").map(std::path::PathBuf::from);
    let folder = kept.unwrap_or_else(|| temporary.path().join("memory.leveldb"));
    let is_new = !Path::new(&folder).exists();
    let kv = LevelKv::open(&folder, &now().to_string(), LevelSettings::LARGE).unwrap();
    let records = Arc::new(Records::open(Arc::new(kv)).unwrap());
    if is_new {
        fill(&records, total);
    }
    observed(&records, Mode::Look, total, "a pass that only looks");
    observed(&records, Mode::Perform, total, "a pass that changes as much as one may");
    records.kv().close().unwrap();
}

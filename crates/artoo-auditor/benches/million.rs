//! The auditor at a million records: how fast they are taken and written, checked, counted and searched, and what that takes.
//!
//! `cargo bench -p artoo-auditor --bench million`. It writes about 700 MB into a temporary folder and prints one line per figure. `ARTOO_RECORDS=100000`
//! makes it smaller; `ARTOO_AUDIT=FOLDER` keeps the log there, or measures the one that is there. Each figure of memory is of a process of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::unreachable,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "bench code"
)]

mod day;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use artoo_auditor::tail::{Anomalies, Filter, Sieve, last};
use artoo_auditor::{Auditor, Observed, Options, Past, REPORT_PERIOD, Recorder, Redact, overview, page, verify};
use artoo_protocol::{Role, Timestamp};
use day::{Day, RECORDS, at, peak};

fn plain() -> Redact {
    Arc::new(|text| text)
}

fn count(name: &str, otherwise: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(otherwise, |text| text.parse().unwrap())
}

fn tell(what: &str, took: Duration, more: &str) {
    println!("{what:<58} {:>9.1} ms  {more}", took.as_secs_f64() * 1e3);
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begun = Instant::now();
    let made = work();
    (begun.elapsed(), made)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, folder] = &arguments[..] {
        return alone(mode, Path::new(folder));
    }
    let records = count("ARTOO_RECORDS", 1_000_000);
    let scratch = tempfile::tempdir().unwrap();
    let folder = std::env::var_os("ARTOO_AUDIT").map_or_else(|| scratch.path().to_owned(), PathBuf::from);
    observing();
    writing(&folder, records);
    checking(&folder);
    reporting(&folder);
    searching(&folder);
    for mode in ["write", "verify", "report", "tail"] {
        let place = tempfile::tempdir().unwrap();
        let folder = if mode == "write" { place.path() } else { &folder };
        let child = Command::new(std::env::current_exe().unwrap())
            .arg(mode)
            .arg(folder)
            .output();
        print!("{}", String::from_utf8_lossy(&child.unwrap().stdout));
    }
}

/// One thing in a process of its own, for its memory.
fn alone(mode: &str, folder: &Path) {
    match mode {
        "write" => {
            let mut recorder = Recorder::start(folder, at(0), Options::new(plain())).unwrap();
            let mut day = Day::new();
            // Made on the way, so that nothing but the auditor holds them; slower than the disk, so that none is lost.
            for n in 0..count("ARTOO_RECORDS", 1_000_000) / RECORDS {
                for observed in day.task() {
                    let _ = recorder.observe(fast(n * RECORDS), observed);
                }
            }
            recorder.finish(at(1)).unwrap();
        }
        "verify" => drop(verify(folder, &[]).unwrap()),
        "report" => drop(overview(folder, at(0)).unwrap()),
        "tail" => {
            let filter = Filter {
                role: Some(Role::R7),
                ..Filter::default()
            };
            drop(last(folder, &Sieve::new(&filter), 20).unwrap());
        }
        other => unreachable!("{other}"),
    }
    println!(
        "peak memory of a process that does nothing but {mode:<9} {:>9.1} MB",
        peak() as f64 / 1e6
    );
}

/// The pure part: every detector, every count.
fn observing() {
    let mut day = Day::new();
    let tasks: Vec<Vec<Observed>> = (0..5_000).map(|_| day.task()).collect();
    let mut auditor = Auditor::new(at(0), REPORT_PERIOD, Past::default());
    let mut effects = 0;
    let (took, ()) = timed(|| {
        for (n, observed) in (0..).zip(tasks.into_iter().flatten()) {
            effects += auditor.observe(at(n / 1_000), observed).len();
        }
    });
    let records = 5_000.0 * RECORDS as f64;
    assert!(effects as f64 >= records);
    tell("observe: counts and detectors", took, &per_second(records, took));
}

fn per_second(records: f64, took: Duration) -> String {
    format!("{:.0} a second", records / took.as_secs_f64())
}

/// From the observer through the queue to the disk, as fast as they can be written.
fn writing(folder: &Path, records: u64) {
    if folder.join("audit.jsonl").exists() {
        return;
    }
    let mut day = Day::new();
    let chunk = 4_000;
    let mut left = records / RECORDS;
    let (mut took, mut written) = (Duration::ZERO, 0);
    while left > 0 {
        let tasks: Vec<Vec<Observed>> = (0..chunk.min(left)).map(|_| day.task()).collect();
        left -= tasks.len() as u64;
        // The queue holds a whole chunk: the floor of the writer is asked for here, not what is lost above it.
        let queue = tasks.len() * RECORDS as usize * 2;
        let mut recorder = Recorder::start(
            folder,
            at(written),
            Options {
                queue,
                queue_bytes: usize::MAX,
                ..Options::new(plain())
            },
        )
        .unwrap();
        let (time, ()) = timed(|| {
            for observed in tasks.into_iter().flatten() {
                written += 1;
                let _ = recorder.observe(fast(written), observed);
            }
            recorder.finish(fast(written)).unwrap();
        });
        took += time;
    }
    tell(
        "observe, hash and write, synced at each end",
        took,
        &per_second(written as f64, took),
    );
}

/// The n-th instant of a second in which 200,000 records come.
fn fast(n: u64) -> Timestamp {
    at(n / 2_000)
}

fn checking(folder: &Path) {
    let (_warm, fine) = timed(|| verify(folder, &[]).unwrap());
    let (took, fine) = timed(|| {
        let again = verify(folder, &[]).unwrap();
        assert_eq!(again, fine);
        again
    });
    let speed = format!(
        "{:.0} MB/s, {} records in {} files, {} gaps",
        mb(fine.bytes, took),
        fine.records,
        fine.files,
        fine.gaps
    );
    tell("verify", took, &speed);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files
        .filter(|path| path.to_string_lossy().contains("audit") && path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    let (took, sums) = timed(|| Command::new("sha256sum").args(&files).output());
    if sums.is_ok_and(|sums| sums.status.success()) {
        tell(
            "  sha256sum of the same files",
            took,
            &format!("{:.0} MB/s", mb(fine.bytes, took)),
        );
    }
}

fn mb(bytes: u64, took: Duration) -> f64 {
    bytes as f64 / 1e6 / took.as_secs_f64()
}

fn reporting(folder: &Path) {
    let (took, kept) = timed(|| overview(folder, at(0)).unwrap());
    tell(
        "report, counts kept (records read anew below)",
        took,
        &format!("{} records read", kept.records_read),
    );
    let (took, html) = timed(|| page(&kept));
    tell("  its page", took, &format!("{} kB", html.len() / 1000));
    // As after a process that was killed: nothing kept.
    let (stats, aside) = (folder.join("audit_stats.json"), folder.join("aside"));
    std::fs::rename(&stats, &aside).unwrap();
    let (took, read) = timed(|| overview(folder, at(0)).unwrap());
    std::fs::rename(&aside, &stats).unwrap();
    assert_eq!((read.totals.tasks, &read.findings), (kept.totals.tasks, &kept.findings));
    tell(
        "report, nothing kept: every record read",
        took,
        &format!("{} records read", read.records_read),
    );
}

fn searching(folder: &Path) {
    let looks = |what: &str, filter: Filter| {
        let (took, found) = timed(|| last(folder, &Sieve::new(&filter), 20).unwrap());
        tell(&format!("tail of 20: {what}"), took, &format!("{} found", found.len()));
    };
    looks("all", Filter::default());
    looks(
        "one role",
        Filter {
            role: Some(Role::R7),
            ..Filter::default()
        },
    );
    looks(
        "a task at the beginning",
        Filter {
            task: Some("count_md_files_00000003".into()),
            ..Filter::default()
        },
    );
    looks(
        "a task that is not there",
        Filter {
            task: Some("nothing_ffffffff".into()),
            ..Filter::default()
        },
    );
    looks(
        "a type that is not there",
        Filter {
            kind: Some("PlanDirective".into()),
            ..Filter::default()
        },
    );
    looks(
        "findings, of which there are none",
        Filter {
            anomalies: Some(Anomalies::All),
            ..Filter::default()
        },
    );
    looks(
        "before the second minute",
        Filter {
            until: Some(at(12_000)),
            ..Filter::default()
        },
    );
}

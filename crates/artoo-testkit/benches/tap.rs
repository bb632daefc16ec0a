//! From the bus to the disk: how many envelopes a second the auditor takes, masks, chains and writes before one is missed.
//!
//! `cargo bench -p artoo-testkit --bench tap`. Real bus, real tap of the usual size, real masking, the recorder with its two threads as a process
//! runs them; the load is made beforehand and published by one thread at a given pace. Printed for each pace: what was really reached, and how
//! many messages the log says are missing. `ARTOO_SECONDS=10` makes each pace last longer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "bench code"
)]

#[path = "../../artoo-auditor/benches/day/mod.rs"]
mod day;

use std::sync::Arc;
use std::time::{Duration, Instant};

use artoo_auditor::{Gap, Observed, Options, Recorder, Redact, verify};
use artoo_bus::journal::Redactor;
use artoo_bus::{Hub, HubOptions, SystemClock, Tap, TapItem};
use artoo_protocol::ports::{Bus, Clock};
use artoo_protocol::{Message, Role, TaskId};
use day::Day;

/// As in a process of artoo.
const TAP: usize = 8_192;

type Said = (Role, Option<TaskId>, Message);

fn main() {
    let seconds: f64 = std::env::var("ARTOO_SECONDS").map_or(3.0, |text| text.parse().unwrap());
    // Without anybody who listens, and with a tap that nobody reads: what the load itself costs.
    let alone = run(1_000_000.0, seconds.min(1.0), false);
    println!("published by one thread, nobody listens: {:.0} a second", alone.reached);
    for pace in [
        10_000.0,
        20_000.0,
        30_000.0,
        50_000.0,
        100_000.0,
        150_000.0,
        200_000.0,
        250_000.0,
        300_000.0,
        1_000_000.0,
    ] {
        let told = run(pace, seconds, true);
        println!(
            "asked for {pace:>9.0} a second: published {:>7.0} a second, written {:>8}, missed {:>7} in {} gaps, {:.0} MB/s, drained after {:.0} ms",
            told.reached,
            told.written,
            told.missed,
            told.gaps,
            told.mb,
            told.drained.as_secs_f64() * 1e3
        );
    }
}

struct Told {
    reached: f64,
    written: u64,
    missed: u64,
    gaps: u64,
    mb: f64,
    drained: Duration,
}

fn load(count: usize) -> Vec<Said> {
    let mut day = Day::new();
    let mut load = Vec::with_capacity(count + 38);
    while load.len() < count {
        for observed in day.task() {
            if let Observed::Envelope(envelope) = observed {
                load.push((envelope.from, envelope.task_id.clone(), envelope.payload.clone()));
            }
        }
    }
    load
}

fn run(pace: f64, seconds: f64, listened: bool) -> Told {
    let folder = tempfile::tempdir().unwrap();
    let load = load((pace.min(400_000.0) * seconds) as usize);
    let hub = Hub::new(Arc::new(SystemClock), HubOptions::default());
    // What nobody reads would only fill memory.
    for role in Role::ALL {
        drop(hub.inbox(role));
    }
    let auditor = listened.then(|| {
        let redactor = Redactor::new(["a secret of the operator".to_owned()]);
        let redact: Redact = Arc::new(move |text| redactor.json(text).unwrap());
        let recorder = Recorder::start(folder.path(), hub.now(), Options::new(redact)).unwrap();
        let tap = hub.tap_with_deeds("auditor", TAP);
        std::thread::spawn(move || watch(recorder, tap))
    });
    let count = load.len() as f64;
    let begun = Instant::now();
    for (n, (from, task, message)) in load.into_iter().enumerate() {
        // In bursts of 64, so that the clock is no part of what is measured.
        if n.is_multiple_of(64) {
            // Sleeping, since nobody who speaks on the bus waits by turning round and round: on two cores that would take one from the auditor.
            let due = Duration::from_secs_f64(n as f64 / pace);
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        hub.publish(from, task.as_ref(), message).unwrap();
    }
    let published = begun.elapsed();
    drop(hub);
    if let Some(auditor) = auditor {
        auditor.join().unwrap();
    }
    let whole = begun.elapsed();
    let fine = verify(folder.path(), &[]).unwrap();
    let mut missed = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "jsonl") {
            for line in std::fs::read_to_string(&path)
                .unwrap()
                .lines()
                .filter(|line| line.contains("\",\"gap\":{") || line.contains(",\"gap\":{"))
            {
                let record: serde_json::Value = serde_json::from_str(line).unwrap();
                missed += record["gap"]["count"].as_u64().unwrap_or(0);
            }
        }
    }
    Told {
        reached: count / published.as_secs_f64(),
        written: fine.envelopes,
        missed,
        gaps: fine.gaps,
        mb: fine.bytes as f64 / 1e6 / whole.as_secs_f64(),
        drained: whole.saturating_sub(published),
    }
}

fn observed(item: TapItem) -> Observed {
    match item {
        TapItem::Envelope(envelope) => Observed::Envelope(envelope),
        TapItem::Deed(deed) => Observed::Deed(deed),
        TapItem::Gap(gap) => Observed::Gap(Gap {
            from_seq: gap.from_seq,
            to_seq: gap.to_seq,
            count: gap.count,
            deeds: gap.deeds,
            ..Gap::default()
        }),
    }
}

/// The auditor's thread, as a process has it.
fn watch(mut recorder: Recorder, mut tap: Tap) {
    let clock = SystemClock;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        while let Some(item) = tap.recv().await {
            let _ = recorder.observe(clock.now(), observed(item));
            for item in tap.try_recv_many(256) {
                let _ = recorder.observe(clock.now(), observed(item));
            }
        }
    });
    recorder.finish(clock.now()).unwrap();
}

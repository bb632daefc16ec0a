//! What the journal costs: `cargo run --profile sim -p artoo-testkit --bin journal_costs [FOLDER]`.
//!
//! Owns three measurements, each the median of several rounds: reading and replaying a journal of at least a thousand records with all
//! roles; publishing with a journal and without one; and the same with the journal only in memory. Journals are written below FOLDER
//! (else the system's folder for temporary files) and nothing waits for the disk.

#![allow(clippy::disallowed_methods, reason = "a measuring program")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use artoo_bus::journal::read;
use artoo_bus::{Hub, HubOptions, Journal, JournalOptions, SystemClock};
use artoo_protocol::journal::Record;
use artoo_protocol::message::Consent;
use artoo_protocol::ports::Bus as _;
use artoo_protocol::{Envelope, MessageKind, TaskId};
use artoo_testkit::minds::Temper;
use artoo_testkit::trial::Trial;
use artoo_testkit::{chaos, whole};

const RECORDS: usize = 1_000;
const ROUNDS: usize = 21;
const EVENTS: usize = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let (seed, records) = long_journal().ok_or("no seed gives a journal of a thousand records")?;
    let mut text = Vec::new();
    for record in &records {
        serde_json::to_writer(&mut text, record)?;
        text.push(b'\n');
    }
    let settings = whole::Settings::default();
    let reading = median(|| read::read(text.as_slice()).map(|contents| contents.records.len()));
    let replaying = median(|| whole::replayed(&settings, &records).map(|differences| differences.len()));
    println!(
        "a journal of {} records and {} bytes (world {seed}): read in {reading:?}, replayed with all roles in {replaying:?}, together {:?}",
        records.len(),
        text.len(),
        reading + replaying
    );
    let said: Vec<Envelope> = chaos::play(seed)?.world.log.into_iter().filter(is_usual).collect();
    let own = folder.join(format!("artoo-journal-{}", std::process::id()));
    let without = published(&said, None);
    let in_memory = published(&said, Some(Journal::in_memory(options())));
    let in_file = published(&said, Some(Journal::in_folder(&own, options())?));
    let bytes = written(&own)?;
    std::fs::remove_dir_all(&own)?;
    println!(
        "one message: without a journal {without:?}, with one in memory {in_memory:?}, with one in a file {in_file:?}: {:?} for the journal ({} bytes a record)",
        in_file.saturating_sub(without),
        bytes / EVENTS as u64
    );
    Ok(())
}

/// The first seed whose task has so many records.
fn long_journal() -> Option<(u64, Vec<Record>)> {
    (0..5_000).find_map(|seed| {
        let of_seed = Trial::of(seed);
        let trial = Trial {
            faults: Vec::new(),
            max_tokens: None,
            consents: vec![Consent::Always],
            memory_takes: 0,
            tool_takes: 1,
            temper: Temper {
                errs: 0,
                rambles: 0,
                fails: 30,
                never: 0,
                slow: 5,
                drips: 0,
                steps: 12,
            },
            ..of_seed
        };
        let run = chaos::play_trial(&trial).ok()?;
        let records = run
            .world
            .journals
            .all()
            .map(|(_, records)| records)
            .max_by_key(|records| records.len())?;
        (records.len() >= RECORDS).then(|| (seed, records.to_vec()))
    })
}

/// What neither begins nor ends a task nor asks for the disk.
fn is_usual(envelope: &Envelope) -> bool {
    !matches!(
        envelope.payload.kind(),
        MessageKind::UserInput
            | MessageKind::TaskSpec
            | MessageKind::DirectAnswer
            | MessageKind::FinalResult
            | MessageKind::TaskAborted
            | MessageKind::DispatchManifest
            | MessageKind::SubTaskOutcome
            | MessageKind::PlanDirective
            | MessageKind::Megram
    )
}

fn options() -> JournalOptions {
    JournalOptions::new(Arc::new(SystemClock))
}

/// How long one message takes to publish.
fn published(said: &[Envelope], journal: Option<Journal>) -> Duration {
    let options = HubOptions {
        journal,
        ..HubOptions::default()
    };
    let hub = Hub::new(Arc::new(SystemClock), options);
    let task = TaskId::new("measured_00000001");
    let all: Vec<_> = said
        .iter()
        .cycle()
        .take(EVENTS)
        .map(|envelope| (envelope.from, envelope.payload.clone()))
        .collect();
    let begun = Instant::now();
    for (from, message) in all {
        let _ = hub.publish(from, Some(&task), message);
    }
    begun.elapsed() / u32::try_from(EVENTS).unwrap_or(1)
}

fn written(folder: &Path) -> std::io::Result<u64> {
    std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.metadata()?.len()))
        .sum()
}

fn median<T>(mut what: impl FnMut() -> T) -> Duration {
    let mut took: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            std::hint::black_box(what());
            begun.elapsed()
        })
        .collect();
    took.sort();
    took.get(ROUNDS / 2).copied().unwrap_or_default()
}

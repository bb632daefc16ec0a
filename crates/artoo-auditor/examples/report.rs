//! The auditor on its own: it follows a stream of messages, keeps a log that cannot be changed unseen, and reports.
//!
//! `cargo run -p artoo-auditor --example report`
//!
//! The stream is a recorded task, to which one message is added that no role may send. Whoever has a bus of its own feeds the
//! recorder in the same way: one call for each message, which never waits.

use std::error::Error;
use std::sync::Arc;

use artoo_auditor::{Observed, Options, Recorder, verify};
use artoo_protocol::{Deed, Envelope, Role, Timestamp};
use serde::Deserialize;

/// One line each: what was said, or what a role did beside speaking.
const TASK: &str = include_str!("../benches/day/task.jsonl");

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Envelope(Arc<Envelope>),
    Deed(Arc<Deed>),
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut now = Timestamp::parse("2026-11-22T00:40:00Z")?;
    // A program with secrets gives a function here that masks them in a JSON text before it is written.
    let mut recorder = Recorder::start(folder.path(), now, Options::new(Arc::new(|text: String| text)))?;
    let mut last = None;
    for line in TASK.lines() {
        let observed = match serde_json::from_str(line)? {
            Line::Envelope(envelope) => {
                now = envelope.timestamp;
                last = Some(Arc::clone(&envelope));
                Observed::Envelope(envelope)
            }
            Line::Deed(deed) => Observed::Deed(deed),
        };
        recorder.observe(now, observed);
    }
    // The last message once more, but now it is the planner who says how the task ended. Only the controller may.
    let mut forged = Envelope::clone(&*last.ok_or("the recorded task is empty")?);
    forged.from = Role::R2;
    forged.seq += 1;
    recorder.observe(now, Observed::Envelope(Arc::new(forged)));

    let report = recorder.report(now).ok_or("a report on demand always comes")?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    recorder.finish(now)?;

    let whole = verify(folder.path(), &[])?;
    println!(
        "the log is whole: {} records, {} findings",
        whole.records, whole.findings
    );

    // Somebody lets the controller have said what the planner said.
    let log = folder.path().join("audit.jsonl");
    let text = std::fs::read_to_string(&log)?;
    let (before, after) = text
        .rsplit_once("\"from\":\"R2\"")
        .ok_or("the forged message is in the log")?;
    std::fs::write(&log, format!("{before}\"from\":\"R7\"{after}"))?;
    match verify(folder.path(), &[]) {
        Err(broken) => println!("after one word was changed: {broken}"),
        Ok(_) => return Err("a changed log was taken for whole".into()),
    }
    Ok(())
}

//! The whole system in one thread on virtual time: a world is made from a seed, played, and held against the laws.
//!
//! `cargo run -p artoo-testkit --example one_world`, or another world: `… --example one_world -- 42`
//!
//! Many worlds at once, and the smallest one that breaks a law, are the business of the program `simulate` in this crate.

use std::error::Error;

use artoo_protocol::Message;
use artoo_protocol::text::one_line;
use artoo_testkit::chaos;
use artoo_testkit::trial::Trial;

fn main() -> Result<(), Box<dyn Error>> {
    let seed = std::env::args().nth(1).map_or(Ok(7), |text| text.parse::<u64>())?;
    let trial = Trial::of(seed);
    println!("the world of seed {seed}: {}", serde_json::to_string(&trial)?);
    // The same seed gives the same run, message for message, on every machine.
    let run = chaos::play_trial(&trial)?;
    for envelope in &run.world.log {
        let payload = &envelope.payload;
        let said = match payload {
            Message::FinalResult(end) => format!("{:?} ({:?}): {}", end.directive, end.cause, end.summary),
            Message::PlanDirective(directive) => directive.rationale.clone(),
            Message::SubTask(step) => step.intent.clone(),
            _ => String::new(),
        };
        println!(
            "{:>4} {}  {:>7} → {:<7} {:<20} {}",
            envelope.seq,
            envelope.timestamp,
            envelope.from.to_string(),
            envelope.to.to_string(),
            payload.kind().name(),
            one_line(&said, 100)
        );
    }
    println!(
        "{} messages, {} processes died on the way, endings: {:?}",
        run.world.log.len(),
        run.crashes,
        run.causes
    );
    if run.wrongs.is_empty() {
        println!("no law was broken");
        return Ok(());
    }
    Err(run.wrongs.join("\n").into())
}

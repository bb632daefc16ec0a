//! What travels on the bus, from outside: a line of JSON becomes an envelope, and the table of routes says whether it may travel.
//!
//! `cargo run -p artoo-protocol --example envelopes`, or with the messages of a real run:
//! `artoo run --json "…" | cargo run -p artoo-protocol --example envelopes -- -`

use std::io::BufRead as _;

use artoo_protocol::ports::NoRoute;
use artoo_protocol::{Envelope, ROUTES, route};

const SOME: [&str; 3] = [
    r#"{"id":"1","seq":1,"task_id":"input_1","timestamp":"2026-02-27T10:30:00+01:00","from":"User","to":"R1","payload":{"type":
       "UserInput","task_id":"input_1","text":"how many lines has notes.md?","history":[],"person_present":true,"scope":[]}}"#,
    // A planner that turns the operator's report on: well-formed, and no row of the table.
    r#"{"id":"2","seq":2,"timestamp":"2026-02-27T09:30:01Z","from":"R2","to":"R6","payload":{"type":"AuditQuery"}}"#,
    // Ids, times and shares are types: what is none is refused while it is read, not later.
    r#"{"id":"3","seq":3,"timestamp":"yesterday","from":"User","to":"R6","payload":{"type":"AuditQuery"}}"#,
];

fn main() {
    if std::env::args().nth(1).as_deref() == Some("-") {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            println!("{}", told(&line));
        }
        return;
    }
    println!("who may say what to whom ({} rows):", ROUTES.len());
    for row in ROUTES {
        let copies: Vec<String> = row.copies.iter().map(ToString::to_string).collect();
        println!(
            "  {:<22} {:>7} → {:<4} copies: {}",
            row.kind.name(),
            row.from.to_string(),
            row.to.to_string(),
            copies.join(" ")
        );
    }
    println!("\nthree lines that came from somewhere:");
    for line in SOME {
        println!("  {}", told(line));
    }
}

/// What a bus does with a line before anybody hears of it.
fn told(line: &str) -> String {
    let envelope: Envelope = match serde_json::from_str(line) {
        Ok(envelope) => envelope,
        Err(error) => return format!("refused: {error}"),
    };
    let (kind, from) = (envelope.payload.kind(), envelope.from);
    match route(kind, from) {
        Some(way) => format!(
            "{} {}: {} from {from} to {}, copies to {:?}",
            envelope.seq,
            envelope.timestamp,
            kind.name(),
            way.to,
            way.copies
        ),
        None => format!("refused: {}", NoRoute { from, kind }),
    }
}

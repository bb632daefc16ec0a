//! Plays seeds against the whole system until one breaks a law: `cargo run -p artoo-testkit --bin simulate -- --seeds N [--from N]`.
//!
//! Owns the command line of it only; prints what came of the runs, and the seed of every one that broke a law; of a single
//! seed the journals too. Exit code 1 when a law was broken, 2 for a wrong argument.

use std::collections::BTreeMap;
use std::process::ExitCode;

use artoo_protocol::text::one_line;
use artoo_testkit::chaos::{self, Run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((from, seeds)) = range(&arguments) else {
        eprintln!("usage: simulate [--seeds N] [--from N]");
        return ExitCode::from(2);
    };
    let mut causes: BTreeMap<String, u64> = BTreeMap::new();
    let (mut broken, mut envelopes, mut tool_calls) = (0_u64, 0_usize, 0_usize);
    for seed in from..from.saturating_add(seeds) {
        let run = match chaos::play(seed) {
            Ok(run) => run,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        };
        for cause in &run.causes {
            *causes.entry(format!("{cause:?}")).or_default() += 1;
        }
        envelopes += run.world.log.len();
        tool_calls += run.world.surroundings.machine.made.len();
        if !run.wrongs.is_empty() {
            broken += 1;
            println!("seed {seed}:");
            run.wrongs
                .iter()
                .for_each(|wrong| println!("  {}", one_line(wrong, 2_000)));
        }
        if seeds == 1 {
            show(&run);
        }
    }
    println!(
        "{seeds} seeds from {from}: {broken} broke a law; {envelopes} messages, {tool_calls} tool calls; endings: {causes:?}"
    );
    if broken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The journals of a single seed, one line a record.
fn show(run: &Run) {
    for (suffix, records) in run.world.journals.all() {
        println!("task {suffix}");
        for record in records {
            println!(
                "{:4} {} {}",
                record.n,
                record.at,
                one_line(&format!("{:?}", record.entry), 700)
            );
        }
    }
}

/// First seed and how many.
fn range(arguments: &[String]) -> Option<(u64, u64)> {
    let (mut from, mut seeds) = (0, 1_000);
    for pair in arguments.chunks(2) {
        match pair {
            [name, value] if name == "--seeds" => seeds = value.parse().ok()?,
            [name, value] if name == "--from" => from = value.parse().ok()?,
            _ => return None,
        }
    }
    Some((from, seeds))
}

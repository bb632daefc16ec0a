//! Plays families of tasks with and without memory: `cargo run --release -p artoo-testkit --bin learn -- [--seeds N] [--tasks N]`.
//!
//! Owns the command line of it only. Prints the rounds that second tasks took, one family's plans, and the share of junk after many
//! tasks; exit code 1 when memory did not help.

use std::process::ExitCode;

use artoo_protocol::Millis;
use artoo_testkit::learning::{With, compare, junk_after, play};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, otherwise: u64| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)?.parse().ok())
            .unwrap_or(otherwise)
    };
    let score = match compare(0..number("--seeds", 1_000)) {
        Ok(score) => score,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mean = |rounds: usize| rounds as f64 / score.families.max(1) as f64;
    println!(
        "{} families: second task in {:.2} rounds without memory, {:.2} with; achieved sooner in {}, later in {}; achieved {} without, {} with",
        score.families,
        mean(score.without),
        mean(score.with),
        score.better,
        score.worse,
        score.achieved.1,
        score.achieved.0
    );
    for seed in [0, 1] {
        for with in [With::Nothing, With::Memory] {
            let came = play(seed, with, &[false, seed % 2 == 1]).unwrap_or_default();
            for (number, came) in (1..).zip(&came) {
                println!(
                    "family {seed}, {with:?}, task {number}: {} rounds, first plan: {}",
                    came.rounds, came.first_plan
                );
                for line in came.told.lines() {
                    println!("    told: {line}");
                }
            }
        }
    }
    let tasks = number("--tasks", 10_000);
    for (apart, words) in [(260, "a month"), (4_320, "five hundred days")] {
        for with in [With::Memory, With::Dreams] {
            match junk_after(tasks, 200, Millis::from_seconds(apart), with) {
                Ok(junk) => println!(
                    "{tasks} tasks, 10,000 of them in {words} ({with:?}): {} entries count, {} say again what another one says ({:.1} %)",
                    junk.entries,
                    junk.restated,
                    junk.share() * 100.0
                ),
                Err(error) => eprintln!("{error}"),
            }
        }
    }
    ExitCode::from(u8::from(score.with >= score.without || score.worse > 0))
}

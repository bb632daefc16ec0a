//! Plays worlds against the whole system: `cargo run -p artoo-testkit --bin simulate -- --seeds N [--from N] [--threads N]`.
//!
//! Owns the command line of it only. Prints what came of the worlds, and of every one that broke a law its seed, what was wrong, and
//! the smallest world in which the same goes wrong, which `--trial JSON` plays again; of a single world the journals too. With
//! `--wrong NAME` a role does wrong on purpose, see [`Wrong`]. Exit code 1 when a law was broken, 2 for a wrong argument.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use artoo_protocol::prompt::PromptError;
use artoo_protocol::text::one_line;
use artoo_testkit::chaos::{self, Run};
use artoo_testkit::sabotage::{Saboteur, Wrong};
use artoo_testkit::trial::{Trial, shrink};

/// Worlds that are tried to make a broken one smaller.
const SHRINKS: usize = 2_000;

const USAGE: &str =
    "usage: simulate [--seeds N] [--from N] [--threads N] [--wrong NAME], or: simulate --trial JSON [--wrong NAME]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(asked) = Asked::of(&arguments) else {
        return usage("these are no numbers, no world, or no wrong");
    };
    if let Some(trial) = &asked.trial {
        return one(trial, asked.wrong);
    }
    if asked.seeds == 1 {
        return one(&Trial::of(asked.from), asked.wrong);
    }
    let next = AtomicU64::new(asked.from);
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        for _ in 0..asked.threads {
            scope.spawn(|| {
                let mut own = Sum::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= asked.from.saturating_add(asked.seeds) {
                        break;
                    }
                    own.play(seed, asked.wrong);
                }
                sum.lock().unwrap_or_else(PoisonError::into_inner).add(&own);
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{} worlds from seed {}: {} broke a law; {} tasks, {} crashes, {} messages, {} tool calls; endings: {:?}",
        asked.seeds, asked.from, sum.broken, sum.tasks, sum.crashes, sum.messages, sum.tool_calls, sum.causes
    );
    if sum.broken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn usage(why: &str) -> ExitCode {
    eprintln!("{why}\n{USAGE}");
    ExitCode::from(2)
}

/// One world, with its journals.
fn one(trial: &Trial, wrong: Option<Wrong>) -> ExitCode {
    let run = match play(trial, wrong) {
        Ok(run) => run,
        Err(error) => return usage(&error.to_string()),
    };
    show(&run);
    if run.wrongs.is_empty() {
        println!("no law was broken");
        return ExitCode::SUCCESS;
    }
    tell(trial, wrong, &run.wrongs);
    ExitCode::FAILURE
}

fn play(trial: &Trial, wrong: Option<Wrong>) -> Result<Run, PromptError> {
    chaos::play_with(trial, wrong.map(Saboteur::new))
}

/// What was wrong, and the smallest world in which it is.
fn tell(trial: &Trial, wrong: Option<Wrong>, wrongs: &[String]) {
    println!("seed {}:", trial.seed);
    for wrong in wrongs {
        println!("  {}", one_line(wrong, 2_000));
    }
    let smallest = shrink(trial.clone(), SHRINKS, |trial| {
        play(trial, wrong)
            .ok()
            .and_then(|run| run.wrongs.first().map(|wrong| way(wrong)))
    });
    let json = serde_json::to_string(&smallest).unwrap_or_default();
    println!("  the smallest world that goes wrong in the same way: simulate --trial '{json}'");
}

/// A law in its own words, without what differs from world to world.
fn way(wrong: &str) -> String {
    let words = wrong.split(['`', ';']).step_by(2).collect::<String>();
    words.chars().filter(|c| !c.is_ascii_digit()).take(120).collect()
}

#[derive(Default)]
struct Sum {
    broken: u64,
    tasks: u64,
    crashes: u64,
    messages: u64,
    tool_calls: u64,
    causes: BTreeMap<String, u64>,
}

impl Sum {
    fn play(&mut self, seed: u64, wrong: Option<Wrong>) {
        let trial = Trial::of(seed);
        let run = match play(&trial, wrong) {
            Ok(run) => run,
            Err(error) => {
                eprintln!("{error}");
                self.broken += 1;
                return;
            }
        };
        for cause in &run.causes {
            *self.causes.entry(format!("{cause:?}")).or_default() += 1;
        }
        self.tasks += trial.tasks.len() as u64;
        self.crashes += run.crashes;
        self.messages += run.world.log.len() as u64;
        self.tool_calls += run.world.surroundings.machine.made.len() as u64;
        if !run.wrongs.is_empty() {
            self.broken += 1;
            tell(&trial, wrong, &run.wrongs);
        }
    }

    fn add(&mut self, other: &Self) {
        self.broken += other.broken;
        self.tasks += other.tasks;
        self.crashes += other.crashes;
        self.messages += other.messages;
        self.tool_calls += other.tool_calls;
        for (cause, count) in &other.causes {
            *self.causes.entry(cause.clone()).or_default() += count;
        }
    }
}

/// The journals of a single world, one line a record.
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

/// Which worlds.
struct Asked {
    from: u64,
    seeds: u64,
    threads: usize,
    wrong: Option<Wrong>,
    trial: Option<Trial>,
}

impl Asked {
    fn of(arguments: &[String]) -> Option<Self> {
        let mut asked = Self {
            from: 0,
            seeds: 1_000,
            threads: 1,
            wrong: None,
            trial: None,
        };
        for pair in arguments.chunks(2) {
            match pair {
                [name, value] if name == "--seeds" => asked.seeds = value.parse().ok()?,
                [name, value] if name == "--from" => asked.from = value.parse().ok()?,
                [name, value] if name == "--threads" => asked.threads = value.parse().ok()?,
                [name, value] if name == "--trial" => asked.trial = Some(serde_json::from_str(value).ok()?),
                [name, value] if name == "--wrong" => {
                    let mut all = Wrong::ALL.iter().map(|(wrong, _)| *wrong);
                    asked.wrong = Some(all.find(|wrong| format!("{wrong:?}") == *value)?);
                }
                _ => return None,
            }
        }
        Some(asked)
    }
}

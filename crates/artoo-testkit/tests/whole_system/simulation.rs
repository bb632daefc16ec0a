//! A few hundred random worlds, and the proof that each law can be broken; many more worlds with
//! `cargo run --profile sim -p artoo-testkit --bin simulate -- --seeds N`.

use std::collections::BTreeSet;

use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::Cause;
use artoo_protocol::{Command, MessageKind};
use artoo_testkit::chaos::{play, play_trial, play_with};
use artoo_testkit::sabotage::{Saboteur, Wrong};
use artoo_testkit::trial::{Blow, Crash, Fault, Trial, Wanted, shrink};
use artoo_testkit::{NEVER, laws};

#[test]
fn no_random_world_breaks_a_law() {
    let seeds = std::env::var("SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let (mut causes, mut open) = (BTreeSet::new(), 0);
    for seed in 0..seeds {
        let run = play(seed).unwrap();
        assert!(run.wrongs.is_empty(), "seed {seed}: {:#?}", run.wrongs);
        causes.extend(run.causes.iter().map(|cause| format!("{cause:?}")));
        open = open.max(run.open_at_once);
    }
    assert!(open >= 2, "never did a process leave several tasks behind");
    assert!(causes.len() >= 9, "the worlds are all alike: {causes:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [1, 2, 3] {
        assert_eq!(play(seed).unwrap().world.log, play(seed).unwrap().world.log);
    }
}

/// What goes wrong in a world with a role that does this wrong.
fn wrongs(trial: &Trial, wrong: Wrong) -> Vec<String> {
    play_with(trial, Some(Saboteur::new(wrong))).unwrap().wrongs
}

/// A world that gives the wrong its chance: without crashes that a role which decides otherwise could not outlive, and with them where
/// they are what it needs.
fn chance(seed: u64, wrong: Wrong) -> Trial {
    let mut trial = Trial::of(seed);
    let crash = |fault: &Fault| matches!(fault.what, Blow::Crash(_));
    match wrong {
        Wrong::Twice => {}
        Wrong::MakesUnwritten => {
            trial.tasks.truncate(1);
            trial.faults = [(2, Blow::DiskFull), (30 + seed, Blow::Crash(PLAIN))]
                .map(|(at, what)| Fault { at, what })
                .into();
        }
        Wrong::StoresUnwritten => {
            // What fails is remembered; the process dies when the first memory is about to be written.
            trial.tasks.truncate(1);
            trial.temper.fails = 70;
            trial.faults.clear();
            let run = play_trial(&trial).unwrap();
            let (_, records) = run.world.journals.all().next().unwrap();
            let stores = |record: &&Record| {
                matches!(
                    &record.entry,
                    Entry::Commanded {
                        command: Command::Store { .. },
                        ..
                    }
                )
            };
            let crash = |record: &Record| Fault {
                at: record.n - 1,
                what: Blow::Crash(PLAIN),
            };
            trial.faults = records.iter().find(stores).map(crash).into_iter().collect();
        }
        Wrong::ExplainsNothing => {
            // Several tasks wait for a memory that does not answer, and hear from one another in between.
            (trial.memory_takes, trial.pace) = (NEVER.0, 3_000);
            trial.faults.clear();
            let first = trial.tasks[0];
            let also = |at: u32| Wanted {
                number: first.number + at,
                after: u64::from(at) * 500,
                ..first
            };
            trial.tasks = (0..3).map(also).collect();
        }
        Wrong::Overtakes => {
            // The model never answers, and the person stops the task when its five minutes are about up.
            trial.temper.never = 100;
            trial.pace = 3_000;
            trial.faults.clear();
            for task in &mut trial.tasks {
                task.stopped_after = Some(task.after + 300_000);
            }
        }
        Wrong::ForgetsSpending => (trial.max_tokens, trial.max_cents) = (Some(20_000), None),
        Wrong::NeverTells => {
            trial.faults.retain(|fault| !crash(fault));
            (trial.max_tokens, trial.max_cents) = (None, Some(2));
        }
        _ => trial.faults.retain(|fault| !crash(fault)),
    }
    trial
}

/// A death of the process without anything beside it.
const PLAIN: Crash = Crash {
    power: None,
    torn: None,
    last_deed: false,
    away: 0,
    again: false,
};

#[test]
fn each_law_can_be_broken_and_is_noticed() {
    let mut unnoticed = Vec::new();
    for (wrong, words) in Wrong::ALL {
        let says = |seed: &u64| {
            let said = wrongs(&chance(*seed, wrong), wrong);
            said.iter().any(|said| said.contains(words))
        };
        let Some(seed) = (0..600).find(says) else {
            unnoticed.push((wrong, words));
            continue;
        };
        let sound = play_trial(&chance(seed, wrong)).unwrap().wrongs;
        assert_eq!(sound, Vec::<String>::new(), "the same world without {wrong:?}");
        println!("{wrong:?}: {words} (world {seed})");
    }
    assert_eq!(unnoticed, [], "what nobody notices");
}

/// Worlds in which artoo itself broke a law once, each with the wrong that it then did.
const ONCE_BROKEN: &[(u64, Wrong)] = &[
    // The disk was full, a file was made all the same, and after a crash it was made again.
    (3_072, Wrong::MakesUnwritten),
    (6_842, Wrong::MakesUnwritten),
    (8_473, Wrong::MakesUnwritten),
    (9_565, Wrong::MakesUnwritten),
    (10_484, Wrong::MakesUnwritten),
    (13_644, Wrong::MakesUnwritten),
    (17_996, Wrong::MakesUnwritten),
    // The person stopped the task, and its clock ended it before that was heard.
    (3_568, Wrong::Overtakes),
    (16_108, Wrong::Overtakes),
];

/// A world as it was when it was found: since then worlds with crashes may have several tasks, and worlds limits in money.
fn as_found(seed: u64) -> Trial {
    let mut trial = Trial::of(seed);
    if trial.faults.iter().any(|fault| matches!(fault.what, Blow::Crash(_))) {
        trial.tasks.truncate(1);
    }
    (trial.max_cents, trial.cut) = (None, None);
    trial
}

#[test]
fn worlds_that_once_broke_a_law_keep_it_and_break_it_again_with_the_old_wrong() {
    for &(seed, wrong) in ONCE_BROKEN {
        let trial = as_found(seed);
        assert_ne!(
            wrongs(&trial, wrong),
            Vec::<String>::new(),
            "world {seed} with {wrong:?}"
        );
        assert_eq!(play_trial(&trial).unwrap().wrongs, Vec::<String>::new(), "world {seed}");
    }
}

/// What a person wanted done again found the world changed by its first time, and was done under another call: that is no third time.
#[test]
fn what_was_wanted_again_and_found_the_world_changed_is_done_once_more() {
    assert_eq!(play(23_399).unwrap().wrongs, Vec::<String>::new());
}

/// A deadline of one task was dealt with in a step that was about another one, and its journal did not say why something was done.
#[test]
fn a_deadline_that_another_step_dealt_with_stands_in_the_journal_of_its_task() {
    for seed in [5_527, 12_503, 18_922] {
        let trial = as_found(seed);
        assert_ne!(
            wrongs(&trial, Wrong::ExplainsNothing),
            Vec::<String>::new(),
            "world {seed}"
        );
        assert_eq!(play_trial(&trial).unwrap().wrongs, Vec::<String>::new(), "world {seed}");
    }
}

#[test]
fn a_broken_world_becomes_smaller_and_stays_broken() {
    let wrong = Wrong::WithoutConsent;
    let way = |trial: &Trial| {
        let said = wrongs(trial, wrong);
        said.iter()
            .any(|said| said.contains("without consent"))
            .then(|| "without consent".to_owned())
    };
    let trial = (0..500)
        .map(Trial::of)
        .find(|trial| trial.faults.len() > 1 && way(trial).is_some())
        .unwrap();
    let small = shrink(trial.clone(), 300, way);
    assert!(way(&small).is_some(), "it is still broken");
    assert!(
        small.faults.is_empty() && small.tasks.len() == 1 && small.pace == 0,
        "{small:#?}"
    );
    let written = serde_json::to_string(&small).unwrap();
    let read: Trial = serde_json::from_str(&written).unwrap();
    assert_eq!(read, small, "what is printed is what is read");
    assert_eq!(wrongs(&read, wrong), wrongs(&small, wrong), "and replays exactly");
}

/// The bus refuses these, so no role can bring them about; in a journal that somebody changed they are noticed.
#[test]
fn what_the_bus_refuses_is_noticed_in_a_journal_too() {
    let offered = artoo_testkit::whole::offered();
    let of = |cause: Cause| {
        let run = (0..500)
            .map(|seed| play(seed).unwrap())
            .find(|run| run.causes == [cause] && run.crashes == 0);
        run.unwrap().world.journals.all().next().unwrap().1.to_vec()
    };
    let kind = |record: &Record| match &record.entry {
        Entry::Published { envelope } => Some(envelope.payload.kind()),
        _ => None,
    };
    let said = |mut records: Vec<Record>| {
        for (record, n) in records.iter_mut().zip(1..) {
            record.n = n;
        }
        laws::broken(&records, &offered).join("\n")
    };
    let records = of(Cause::Met);
    assert_eq!(said(records.clone()), "");
    let mut twice = records.clone();
    twice.push(
        records
            .iter()
            .find(|record| kind(record) == Some(MessageKind::FinalResult))
            .unwrap()
            .clone(),
    );
    assert!(said(twice).contains("a second FinalResult"));
    let mut after = records.clone();
    after.push(
        records
            .iter()
            .find(|record| matches!(record.entry, Entry::Commanded { .. }))
            .unwrap()
            .clone(),
    );
    assert!(said(after).contains("something done after the end"));
    let mut gap = records.clone();
    gap.remove(gap.len() / 2);
    assert!(
        laws::broken(&gap, &offered)
            .iter()
            .any(|wrong| wrong.contains("has the number"))
    );

    let mut aborted = of(Cause::Aborted);
    assert_eq!(said(aborted.clone()), "");
    let at = aborted
        .iter()
        .position(|record| kind(record) == Some(MessageKind::TaskAborted))
        .unwrap();
    aborted.insert(
        at + 1,
        records
            .iter()
            .find(|record| kind(record) == Some(MessageKind::SubTask))
            .unwrap()
            .clone(),
    );
    assert!(said(aborted).contains("after the abort"));
}

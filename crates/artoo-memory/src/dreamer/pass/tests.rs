//! Passes over a real store in memory.

use super::*;
use crate::dreamer::establish::{establish, put_off};
use crate::kv::InMemoryKv;
use crate::testing::{at, megram};
use artoo_protocol::DecayPerDay;
use artoo_protocol::message::Level;
use std::cell::Cell;
use std::sync::Arc;

const SPACE: &str = "intent:count_the_files";

fn records(megrams: &[Megram]) -> Records {
    let records = Records::open(Arc::new(InMemoryKv::new())).unwrap();
    let edits: Vec<Edit> = megrams.iter().cloned().map(Edit::Store).collect();
    records.commit(&edits, at()).unwrap();
    records
}

fn accepted(id: &str) -> Megram {
    let mut event = megram(id, SPACE, "env:local", 0.9, 1.0);
    event.state = MacroState::Accept;
    event
}

fn refined(id: &str) -> Megram {
    let mut event = megram(id, "tool:shell", &format!("path:{id}"), 0.01, 0.5);
    event.state = MacroState::Refine;
    event
}

fn later(days: u64) -> Timestamp {
    at().plus(Millis(days * 86_400_000))
}

fn pass(records: &Records, now: Timestamp, mode: Mode, scope: &Scope, stop: &dyn Fn() -> bool) -> Tidied {
    Pass {
        records,
        params: Params::default(),
        now,
        mode,
        stop,
        on_action: &mut |_, _| {},
    }
    .run(scope)
    .unwrap()
}

fn everything(records: &Records, now: Timestamp) -> Tidied {
    pass(records, now, Mode::Perform, &Scope::Everything, &|| false)
}

fn levels(records: &Records) -> Vec<Level> {
    let group = records.entries(&GroupKey::new(SPACE, "env:local"), None, 100).unwrap();
    group.iter().map(|entry| entry.level).collect()
}

#[test]
fn a_pass_promotes_proposes_and_forgets_and_the_next_one_finds_nothing() {
    let mut all: Vec<Megram> = (0..6).map(|i| accepted(&i.to_string())).collect();
    all.extend((10..80).map(|i| refined(&i.to_string())));
    let store = records(&all);
    let looked = pass(&store, later(1), Mode::Look, &Scope::Everything, &|| false);
    assert_eq!((looked.promoted, looked.forgotten, looked.proposals.len()), (6, 70, 1));
    assert_eq!(store.all().unwrap().len(), all.len(), "looking changes nothing");

    let done = everything(&store, later(1));
    assert_eq!((done.promoted, done.forgotten, done.proposals.len()), (6, 70, 1));
    assert_eq!((done.groups, done.entries, done.unfinished), (71, 76, false));
    assert_eq!(levels(&store), [Level::K; 6]);
    let again = everything(&store, later(1));
    assert_eq!(
        (again.changes(), again.proposals.len()),
        (0, 1),
        "only the rule is still to be worded"
    );
}

#[test]
fn a_rule_is_written_with_its_evidence_and_replaces_the_one_before() {
    let store = records(&(0..6).map(|i| accepted(&i.to_string())).collect::<Vec<_>>());
    let proposal = everything(&store, at()).proposals.remove(0);
    assert_eq!(proposal.sources.len(), 6);
    let first = establish(&store, &proposal, "Count with find.", at()).unwrap().unwrap();
    assert_eq!(levels(&store), [Level::C], "its sources no longer count");
    for id in &proposal.sources {
        assert!(store.get(id).unwrap().is_some(), "but can be read");
    }
    let news: Vec<Edit> = (10..16).map(|i| Edit::Store(accepted(&i.to_string()))).collect();
    store.commit(&news, at()).unwrap();
    let next = everything(&store, at()).proposals.remove(0);
    assert_eq!(next.supersedes, Some(first.id.clone()));
    let second = establish(&store, &next, "Count with fd.", later(1)).unwrap().unwrap();
    assert_eq!(levels(&store), [Level::C], "one rule per group and sign");
    assert_eq!(second.sources.len(), 12, "what the first rule was made of stays spent");
    let potentials = store.potentials(SPACE, "env:local", later(1)).unwrap();
    assert!(
        (potentials.attention.get() - 1.0).abs() < 1e-9,
        "{}",
        potentials.attention
    );
}

#[test]
fn a_rule_whose_sources_went_meanwhile_is_not_written() {
    let store = records(&(0..6).map(|i| accepted(&i.to_string())).collect::<Vec<_>>());
    let proposal = everything(&store, at()).proposals.remove(0);
    store.remove(&proposal.sources[3], at()).unwrap();
    assert_eq!(establish(&store, &proposal, "Count with find.", at()).unwrap(), None);
}

fn abandoned(id: &str) -> Megram {
    let mut event = megram(id, SPACE, "env:local", 0.95, -1.0);
    event.state = MacroState::Abandon;
    event
}

fn decision(store: &Records, now: Timestamp) -> f64 {
    store.potentials(SPACE, "env:local", now).unwrap().decision.get()
}

/// A way that works six times of eight must not come to be forbidden by the rule that is made of it.
#[test]
fn a_way_that_works_mostly_goes_on_being_told_as_such() {
    let mut all: Vec<Megram> = (0..6).map(|i| accepted(&i.to_string())).collect();
    all.extend([abandoned("8"), abandoned("9")]);
    let store = records(&all);
    for days in [0, 1, 2, 5] {
        let done = everything(&store, later(days));
        for proposal in &done.proposals {
            establish(&store, proposal, "Count with find.", later(days)).unwrap();
        }
        assert_eq!((done.proposals.len(), done.demoted), (0, 0), "day {days}");
        assert!(
            decision(&store, later(days)) > 2.0,
            "day {days}: {}",
            decision(&store, later(days))
        );
    }
    // With one failure only it becomes a rule, and stays one.
    let store = records(&all[..7]);
    let proposal = everything(&store, at()).proposals.remove(0);
    establish(&store, &proposal, "Count with find.", at()).unwrap().unwrap();
    for days in [0, 1, 30] {
        assert_eq!(everything(&store, later(days)).demoted, 0, "day {days}");
        assert_eq!(levels(&store)[0], Level::C);
    }
    assert!(decision(&store, at()) > 0.0);
}

#[test]
fn a_rule_whose_group_turned_while_the_model_was_asked_is_not_written() {
    let store = records(&(0..6).map(|i| accepted(&i.to_string())).collect::<Vec<_>>());
    let proposal = everything(&store, at()).proposals.remove(0);
    for id in ["8", "9"] {
        store.commit(&[Edit::Store(abandoned(id))], at()).unwrap();
    }
    assert_eq!(establish(&store, &proposal, "Count with find.", at()).unwrap(), None);
    assert!(
        (decision(&store, at()) - 3.5).abs() < 1e-9,
        "its evidence goes on counting"
    );
    assert_eq!(everything(&store, at()).proposals, [], "nor is it asked for again");
}

#[test]
fn a_group_that_gave_no_rule_is_left_alone_for_a_while() {
    let store = records(&(0..6).map(|i| accepted(&i.to_string())).collect::<Vec<_>>());
    let proposal = everything(&store, at()).proposals.remove(0);
    put_off(&store, &proposal, later(1)).unwrap();
    assert_eq!(everything(&store, at()).proposals, []);
    assert_eq!(everything(&store, later(1)).proposals.len(), 1);
    // Written by a clock that was a year ahead: it binds nobody.
    put_off(&store, &proposal, later(365)).unwrap();
    assert_eq!(everything(&store, at()).proposals.len(), 1);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn repetitions_become_one_record_that_weighs_as_much() {
    let again = |number: u64| {
        let mut event = accepted(&format!("{number:03}"));
        (event.created_at, event.content) = (later(number * 9), "find counts them".to_owned());
        event
    };
    let store = records(&[]);
    // Nine days apart they never earn a rule, and thirty of them have not faded yet.
    for number in 0..30 {
        store.commit(&[Edit::Store(again(number))], later(number * 9)).unwrap();
    }
    let weight = |days: u64| {
        let potentials = store.potentials(SPACE, "env:local", later(days)).unwrap();
        (potentials.attention.get(), potentials.decision.get())
    };
    let before = [weight(263), weight(300), weight(400)];
    let done = everything(&store, later(263));
    assert_eq!((done.folded + done.forgotten, done.promoted), (29, 0));
    assert_eq!(levels(&store), [Level::K]);
    for (before, after) in before.iter().zip([weight(263), weight(300), weight(400)]) {
        // What was forgotten added less than 0.001 each.
        assert!(
            (before.0 - after.0).abs() < 0.015 && (before.1 - after.1).abs() < 0.015,
            "{before:?} {after:?}"
        );
    }
    assert!(store.all().unwrap().len() <= 2, "it and the newest that it was made of");
    assert_eq!(everything(&store, later(263)).changes(), 0);
    assert!(store.verify().unwrap().is_sound());
    // And it goes on like this: the next one is taken in when it is a day old.
    store.commit(&[Edit::Store(again(30))], later(270)).unwrap();
    assert_eq!(everything(&store, later(270)).folded, 0);
    assert_eq!(everything(&store, later(271)).folded, 1);
    assert_eq!((levels(&store), store.all().unwrap().len()), (vec![Level::K], 2));
}

#[test]
fn folding_that_is_cut_short_weighs_the_same_and_is_finished_by_the_next_pass() {
    let all: Vec<Megram> = (0..40)
        .map(|number| {
            let mut event = refined(&format!("{number:02}"));
            event.entity = "path:one".to_owned();
            event.k = DecayPerDay::new(0.05).unwrap();
            (event.f, event.content) = (artoo_protocol::Magnitude::clamped(0.1), "the same".to_owned());
            event
        })
        .collect();
    let store = records(&all);
    let weight = || {
        store
            .potentials("tool:shell", "path:one", later(2))
            .unwrap()
            .attention
            .get()
    };
    let before = weight();
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 4
    };
    let cut = pass(&store, later(2), Mode::Perform, &Scope::Everything, &stop);
    assert!(cut.unfinished, "{cut:?}");
    let left = store.all().unwrap().len();
    assert!((2..40).contains(&left), "{left} left");
    assert!((weight() - before).abs() < 1e-9 * before, "{} {before}", weight());
    let done = everything(&store, later(2));
    assert!(!done.unfinished && (weight() - before).abs() < 1e-9 * before);
    assert_eq!(
        store
            .entries(&GroupKey::new("tool:shell", "path:one"), None, 99)
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_pass_that_is_stopped_has_done_whole_steps_and_the_next_one_goes_on() {
    let all: Vec<Megram> = (10..90).map(|i| refined(&i.to_string())).collect();
    let store = records(&all);
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 30
    };
    let part = pass(&store, later(2), Mode::Perform, &Scope::Everything, &stop);
    assert!(part.unfinished && part.forgotten > 0 && part.forgotten < 80, "{part:?}");
    assert_eq!(store.all().unwrap().len(), 80 - part.forgotten);
    assert!(store.verify().unwrap().is_sound());
    let rest = everything(&store, later(2));
    assert_eq!((rest.forgotten, rest.unfinished), (80 - part.forgotten, false));
}

#[test]
fn a_short_pass_looks_at_what_was_touched_only() {
    let store = records(&[accepted("1"), refined("2")]);
    let scope = Scope::Touched(
        [
            GroupKey::new(SPACE, "env:local"),
            GroupKey::new("intent:none", "env:local"),
        ]
        .into(),
    );
    let done = pass(&store, later(2), Mode::Perform, &scope, &|| false);
    assert_eq!((done.promoted, done.forgotten), (1, 0));
}

#[test]
fn a_bankrupt_rule_becomes_knowledge_and_its_sources_stay_spent() {
    // Evidence that outlasts the rule that was made of it.
    let lasting = |i: u64| Megram {
        k: DecayPerDay::new(0.001).unwrap(),
        ..accepted(&i.to_string())
    };
    let store = records(&(0..12).map(lasting).collect::<Vec<_>>());
    let proposal = everything(&store, at()).proposals.remove(0);
    establish(&store, &proposal, "Count with find.", at()).unwrap().unwrap();
    let contrary: Vec<Edit> = (20..22)
        .map(|i| {
            let mut event = megram(&i.to_string(), SPACE, "env:local", 0.95, -1.0);
            event.state = MacroState::Abandon;
            Edit::Store(event)
        })
        .collect();
    store.commit(&contrary, at()).unwrap();
    let done = everything(&store, at());
    assert_eq!((done.demoted, done.proposals.len()), (1, 0));
    assert_eq!(
        levels(&store),
        [Level::K; 3],
        "the former rule and two failures that became knowledge"
    );
    let potentials = store.potentials(SPACE, "env:local", at()).unwrap();
    assert!(
        (potentials.decision.get() + 0.9).abs() < 1e-9,
        "{}",
        potentials.decision
    );
    assert_eq!(everything(&store, at()).changes(), 0);
    assert!(store.verify().unwrap().is_sound());

    let asked = Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) >= 3;
    let part = pass(&store, later(400), Mode::Perform, &Scope::Everything, &stop);
    assert_eq!(
        (part.forgotten, part.unfinished),
        (0, true),
        "cut off between evidence and rule"
    );
    assert_eq!(levels(&store), [Level::K; 3], "nothing counts again");
    let done = everything(&store, later(400));
    assert_eq!((done.forgotten, done.proposals.len()), (3, 0));
    assert_eq!(levels(&store), [], "a forgotten rule's evidence goes with it");
    assert_eq!(everything(&store, later(400)).changes(), 0);
    assert!(store.all().unwrap().is_empty());
    assert!(store.verify().unwrap().is_sound());
}

/// Forty events of one kind that have not earned a rule.
fn many_alike() -> Vec<Megram> {
    let alike = |number: u64| {
        let mut event = refined(&format!("{number:02}"));
        (event.entity, event.content) = ("path:one".to_owned(), "the same".to_owned());
        (event.f, event.k) = (artoo_protocol::Magnitude::clamped(0.1), DecayPerDay::new(0.05).unwrap());
        event
    };
    (0..40).map(alike).collect()
}

fn entries(store: &Records) -> Vec<Entry> {
    store
        .entries(&GroupKey::new("tool:shell", "path:one"), None, 99)
        .unwrap()
}

#[test]
fn what_is_forgotten_while_a_fold_is_carried_out_does_not_come_back() {
    for forgotten_at in 1..9 {
        let store = records(&many_alike());
        let asked = Cell::new(0);
        // The person forgets all there is of it, between two commits of the fold.
        let stop = || {
            asked.set(asked.get() + 1);
            if asked.get() == forgotten_at {
                for entry in entries(&store) {
                    store.remove(&entry.id, later(2)).unwrap();
                }
            }
            false
        };
        let done = pass(&store, later(2), Mode::Perform, &Scope::Everything, &stop);
        assert!(asked.get() >= forgotten_at, "{forgotten_at}");
        assert_eq!(entries(&store), [], "{forgotten_at}: {done:?}");
        assert!(store.all().unwrap().is_empty(), "{forgotten_at}");
        assert!(store.verify().unwrap().is_sound());
    }
}

#[test]
fn what_a_pass_could_not_do_is_not_counted() {
    let store = records(&[many_alike(), vec![accepted("promoted")]].concat());
    let done = Pass {
        records: &store,
        params: Params::default(),
        now: later(2),
        mode: Mode::Perform,
        stop: &|| false,
        // All of it is forgotten as soon as it was chosen.
        on_action: &mut |_, _| {
            for megram in store.all().unwrap() {
                store.remove(&megram.id, later(2)).unwrap();
            }
        },
    }
    .run(&Scope::Everything)
    .unwrap();
    assert_eq!((done.folded, done.promoted, done.changes()), (0, 0, 0));
    assert!(store.all().unwrap().is_empty(), "and nothing came back");
}

#[test]
fn a_pass_changes_no_more_than_it_may_in_one_lot_either() {
    let store = records(&many_alike());
    let mut tidied = Tidied::default();
    let mut nobody = |_: &GroupKey, _: &Action| {};
    let pass = Pass {
        records: &store,
        params: Params::default(),
        now: later(2),
        mode: Mode::Perform,
        stop: &|| false,
        on_action: &mut nobody,
    };
    let ids = many_alike().into_iter().map(|megram| megram.id).collect();
    let steps = [Action::Fold { ids, level: Level::M }];
    assert_eq!(pass.carry_out(&steps, 9, &mut tidied).unwrap(), 9);
    assert_eq!((tidied.folded, entries(&store).len()), (9, 31));
}

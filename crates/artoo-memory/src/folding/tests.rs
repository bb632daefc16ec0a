//! Folding over a store in memory: what was there, before and after.

use super::*;
use crate::dreamer::{Mode, Params, Pass, Scope};
use crate::kv::InMemoryKv;
use crate::potentials::{Later, living, potentials};
use crate::records::Edit;
use crate::testing::{at, megram};
use artoo_protocol::Millis;
use proptest::prelude::*;
use std::sync::Arc;

pub(super) const GROUP: (&str, &str) = ("tool:shell", "path:/a");

pub(super) fn day(days: usize) -> Timestamp {
    let days = i64::try_from(days).unwrap();
    Timestamp::from_millis(at().as_millis() + days * 86_400_000)
}

pub(super) fn event(number: usize, made: Timestamp, f: f64) -> Megram {
    Megram {
        content: "wc counts them".to_owned(),
        created_at: made,
        ..megram(&format!("{number:04}"), GROUP.0, GROUP.1, f, -1.0)
    }
}

pub(super) fn store() -> Records {
    Records::open(Arc::new(InMemoryKv::new())).unwrap()
}

pub(super) fn write(records: &Records, megrams: &[Megram], now: Timestamp) -> Vec<Stored> {
    let edits: Vec<Edit> = megrams.iter().cloned().map(Edit::Store).collect();
    records.commit(&edits, now).unwrap()
}

/// A pass without a model: repetitions are folded.
pub(super) fn dream(records: &Records, now: Timestamp) -> usize {
    let pass = Pass {
        records,
        params: Params {
            words_rules: false,
            ..Params::default()
        },
        now,
        mode: Mode::Perform,
        stop: &|| false,
        on_action: &mut |_, _| {},
    };
    let mut pass = pass;
    pass.run(&Scope::Everything).unwrap().folded
}

pub(super) fn weight(records: &Records, moment: Timestamp) -> (f64, f64) {
    let found = records.potentials(GROUP.0, GROUP.1, moment).unwrap();
    (found.attention.get(), found.decision.get())
}

pub(super) fn weight_at(records: &Records, moment: Timestamp) -> (f64, f64) {
    let found = records.potentials_at(GROUP.0, GROUP.1, moment).unwrap();
    (found.attention.get(), found.decision.get())
}

fn traces(records: &Records) -> usize {
    let found = records.kv().scan(keys::TRACES.as_bytes(), None, usize::MAX).unwrap();
    found.len()
}

pub(super) fn is_near(one: (f64, f64), other: (f64, f64)) -> bool {
    (one.0 - other.0).abs() < 1e-9 && (one.1 - other.1).abs() < 1e-9
}

#[test]
fn an_older_export_that_is_taken_in_after_a_fold_counts_nothing_twice() {
    let records = store();
    let events: Vec<Megram> = (0..30).map(|i| event(i, day(i), 0.2)).collect();
    let mut exports = vec![events.clone()];
    for (number, event) in events.iter().enumerate() {
        let now = day(number);
        write(&records, std::slice::from_ref(event), now);
        if number % 7 == 6 {
            dream(&records, now);
            exports.push(records.all().unwrap());
        }
    }
    let now = day(31);
    assert!(dream(&records, now) > 0);
    let (before, count) = (weight(&records, now), records.all().unwrap().len());
    // Twice: the second time the way from the oldest trace to the record is short.
    for export in exports.iter().chain(&exports) {
        assert!(
            write(&records, export, now)
                .iter()
                .all(|stored| *stored == Stored::Known)
        );
        assert!(is_near(weight(&records, now), before));
        assert_eq!(records.all().unwrap().len(), count);
    }
    assert!(records.verify().unwrap().is_sound());
    // The same id in another group is another memory, as ever.
    let elsewhere = Megram {
        entity: "path:/b".to_owned(),
        ..events[3].clone()
    };
    assert_eq!(write(&records, &[elsewhere], now), [Stored::New]);
}

#[test]
fn what_was_forgotten_after_a_fold_can_be_brought_back_by_an_older_export() {
    let records = store();
    let events: Vec<Megram> = (0..20).map(|i| event(i, day(i), 0.2)).collect();
    write(&records, &events, day(19));
    let before = weight(&records, day(30));
    assert_eq!(dream(&records, day(21)), 19);
    for megram in records.all().unwrap() {
        records.remove(&megram.id, day(30)).unwrap();
    }
    assert_eq!(records.all().unwrap(), []);
    assert!(
        write(&records, &events, day(30))
            .iter()
            .all(|stored| *stored == Stored::New)
    );
    assert!(is_near(weight(&records, day(30)), before));
}

#[test]
fn traces_go_with_the_record_that_they_lead_to_and_when_they_have_faded() {
    let records = store();
    let events: Vec<Megram> = (0..20).map(|i| event(i, day(i), 0.2)).collect();
    write(&records, &events, day(19));
    dream(&records, day(21));
    assert!(
        traces(&records) >= 20,
        "nineteen are gone, and the one that they became has one of its own"
    );
    assert!(records.verify().unwrap().is_sound());
    let mut dated = event(99, day(280), 0.2);
    write(&records, std::slice::from_ref(&dated), day(280));
    for _ in 0..3 {
        // What they became weighs less than a thousandth and is forgotten; the way to it goes step by step.
        dream(&records, day(281));
    }
    assert_eq!(traces(&records), 0, "what has faded leaves nothing");

    dated.id = MegramId::new("0100");
    write(&records, &[dated], day(281));
    dream(&records, day(283));
    assert!(traces(&records) > 0);
    for megram in records.all().unwrap() {
        records.remove(&megram.id, day(283)).unwrap();
    }
    for _ in 0..3 {
        dream(&records, day(283));
    }
    assert_eq!(traces(&records), 0);
}

#[test]
fn a_damaged_trace_is_told_and_removed() {
    let records = store();
    let events: Vec<Megram> = (0..3).map(|i| event(i, day(i), 0.2)).collect();
    write(&records, &events, day(3));
    dream(&records, day(5));
    let (key, mut value) = records.kv().scan(keys::TRACES.as_bytes(), None, 1).unwrap().remove(0);
    value[5] ^= 1;
    let mut batch = Batch::new();
    batch.put(key, value);
    records.kv().apply(batch).unwrap();
    assert_eq!(records.verify().unwrap().damaged, 1);
    assert_eq!(records.repair(day(5)).unwrap().damaged, 1);
    assert!(records.verify().unwrap().is_sound());
}

#[test]
fn the_events_of_a_moment_are_found_beside_the_records_of_that_moment() {
    let records = store();
    let events: Vec<Megram> = (0..10).map(|i| event(i, day(i), 0.2)).collect();
    write(&records, &events, day(9));
    dream(&records, day(11));
    let parts = |moment: Timestamp| {
        let mut found = Vec::new();
        records.each_part_at(moment, &mut |part| found.push(part)).unwrap();
        found
    };
    assert_eq!(parts(day(4)).len(), 5);
    for part in parts(day(4)) {
        let was = events.iter().find(|event| event.id == part.id).unwrap();
        assert_eq!(part, *was);
    }
    assert_eq!(parts(day(9)), [], "then the record that they became stands for them");
}

proptest! {
    /// Folded in several goes, with promotions between, taken into rules: every moment of the past sees what it saw.
    #[test]
    fn every_moment_before_a_fold_sees_what_there_was(
        rows in prop::collection::vec((0.2..=1.0_f64, 0_i64..5_000, any::<bool>()), 2..40),
        folds in prop::collection::vec(2_i64..5_200, 1..5),
        becomes_rule in any::<bool>(),
    ) {
        let (plain, records) = (store(), store());
        let hours = |hours: i64| at().plus(Millis(u64::try_from(hours).unwrap() * 60_000));
        let mut events: Vec<Megram> = rows
            .iter()
            .enumerate()
            .map(|(number, (f, minutes, good))| Megram {
                state: if *good { MacroState::Accept } else { MacroState::Abandon },
                sigma: Valence::new(if *good { 1.0 } else { -1.0 }).unwrap(),
                ..event(number, hours(*minutes), *f)
            })
            .collect();
        events.sort_by_key(|event| event.created_at);
        let mut folds = folds;
        folds.sort_unstable();
        let mut waiting = events.clone();
        for fold in folds.into_iter().chain([9_000, 12_000]) {
            let now = hours(fold);
            let (due, rest): (Vec<Megram>, Vec<Megram>) = waiting.into_iter().partition(|event| event.created_at <= now);
            write(&plain, &due, now);
            write(&records, &due, now);
            waiting = rest;
            dream(&records, now);
            prop_assert!(records.verify().unwrap().is_sound());
        }
        if becomes_rule {
            let sources: Vec<MegramId> = records
                .entries(&GroupKey::new(GROUP.0, GROUP.1), None, 99)
                .unwrap()
                .into_iter()
                .map(|entry| entry.id)
                .collect();
            let rule = Megram {
                level: Level::C,
                sources,
                ..event(500, hours(13_000), 1.0)
            };
            write(&records, &[rule], hours(13_000));
        }
        for minutes in (0..9_000).step_by(313) {
            let moment = hours(minutes);
            let (was, is) = (weight_at(&plain, moment), weight_at(&records, moment));
            prop_assert!(is_near(was, is), "{minutes}: {was:?} {is:?}");
            let mut known = records.history(GROUP.0, GROUP.1).unwrap();
            known.retain(|megram| megram.created_at <= moment);
            let explained = potentials(&living(known), moment, Later::LeftOut);
            prop_assert!((explained.attention.get() - is.0).abs() < 1e-12);
        }
        if !becomes_rule {
            prop_assert!(is_near(weight(&plain, hours(20_000)), weight(&records, hours(20_000))));
            prop_assert!(is_near(weight_at(&plain, hours(20_000)), weight_at(&records, hours(20_000))));
        }
    }
}

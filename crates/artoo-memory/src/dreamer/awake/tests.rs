//! Leaps of the clock, by themselves and with a store that lives through them.

use super::*;
use crate::dreamer::{Mode, Pass, Scope};
use crate::kv::InMemoryKv;
use crate::records::{Edit, Records};
use crate::testing::{at, megram};
use artoo_protocol::MegramId;
use artoo_protocol::message::{Level, MacroState, Megram};
use proptest::prelude::*;
use std::sync::Arc;

const YEAR: i64 = 365 * 24;

fn hours(hours: i64) -> Timestamp {
    Timestamp::from_millis(at().as_millis() + hours * 3_600_000)
}

#[test]
fn after_the_clock_was_set_back_nothing_is_forgotten_for_a_day() {
    let kv = InMemoryKv::new();
    for (hour, expect, why) in [
        (0, false, "nothing is known of the time before"),
        (23, false, "not yet a day"),
        (24, true, "a day"),
        (24 + 29 * 24, true, "a holiday"),
        (24 + 29 * 24 - 1, true, "put right by an hour"),
        (24 + 60 * 24, true, "longer than a month: a day of it counts"),
        (24 + 61 * 24, true, "and a day"),
        (YEAR * 2, true, "years ahead: no more than a day again"),
        (62 * 24 + 1, false, "the clock was set right"),
        (62 * 24 + 20, false, "not yet a day"),
        (63 * 24 + 1, true, "as ever"),
        (-YEAR, false, "a year back"),
        (-YEAR + 48, false, "and still behind"),
    ] {
        let params = noted(&kv, hours(hour), Params::default()).unwrap();
        assert_eq!(params.forgets, expect, "{why}");
    }
}

#[test]
fn what_an_earlier_version_wrote_is_read() {
    let written = format!("{} {}", hours(0), hours(30));
    let read = Awake::read(&written).unwrap();
    assert_eq!(
        (read.seen, read.settled, read.lived),
        (hours(30), hours(30), Millis(30 * 3_600_000))
    );
    let now = Awake::at(Some(read), hours(31));
    assert_eq!(Awake::read(&now.write()), Some(now));
    for junk in ["", "x", "1 2", "2026-01-01T00:00:00Z"] {
        assert_eq!(Awake::read(junk), None, "{junk}");
    }
}

/// How a pass came to be.
#[derive(Clone, Copy, Debug)]
enum Come {
    Itself,
    Asked,
}

/// A store with a good ending, a rule, and failures that speak against it but are long past.
struct Life {
    records: Records,
    /// Hours by the right clock.
    hour: i64,
    /// By how much the clock is wrong.
    off: i64,
}

impl Life {
    fn new() -> Self {
        let life = Self {
            records: Records::open(Arc::new(InMemoryKv::new())).unwrap(),
            hour: 0,
            off: 0,
        };
        let mut rule = life.event("rule", "intent:rule");
        (rule.level, rule.k, rule.f) = (
            Level::C,
            artoo_protocol::DecayPerDay::ZERO,
            artoo_protocol::Magnitude::ONE,
        );
        let mut all = vec![life.event("good", "intent:good"), rule];
        for number in 0..4 {
            let mut failure = life.event(&format!("against{number}"), "intent:rule");
            (failure.state, failure.sigma) = (MacroState::Abandon, artoo_protocol::Valence::new(-1.0).unwrap());
            failure.content = format!("failure {number}");
            failure.created_at = hours(-80 * 24);
            all.push(failure);
        }
        life.write(&all);
        life
    }

    fn now(&self) -> Timestamp {
        hours(self.hour + self.off)
    }

    fn event(&self, id: &str, space: &str) -> Megram {
        Megram {
            state: MacroState::Accept,
            created_at: self.now(),
            ..megram(id, space, "env:local", 0.9, 1.0)
        }
    }

    fn write(&self, megrams: &[Megram]) {
        let edits: Vec<Edit> = megrams.iter().cloned().map(Edit::Store).collect();
        self.records.commit(&edits, self.now()).unwrap();
    }

    /// Lives on for so many days, with a pass at every twelfth hour.
    fn lives(&mut self, days: i64) {
        for _ in 0..days * 2 {
            self.hour += 12;
            self.passes(noted(&**self.records.kv(), self.now(), Params::default()).unwrap());
        }
    }

    fn passes(&self, params: Params) {
        let mut pass = Pass {
            records: &self.records,
            params,
            now: self.now(),
            mode: Mode::Perform,
            stop: &|| false,
            on_action: &mut |_, _| {},
        };
        pass.run(&Scope::Everything).unwrap();
    }

    /// Is away for so many days, and then there for one pass.
    fn is_away(&mut self, days: i64, by: Come) {
        self.hour += days * 24;
        let (kv, now) = (&**self.records.kv(), self.now());
        self.passes(match by {
            Come::Itself => noted(kv, now, Params::default()).unwrap(),
            Come::Asked => on_demand(kv, now, Params::default(), Mode::Perform).unwrap(),
        });
    }

    fn has(&self, id: &str) -> bool {
        self.records.get(&MegramId::new(id)).unwrap().is_some()
    }

    fn rule_stands(&self) -> bool {
        let rules = self.records.level(Level::C).unwrap();
        let demoted = self.records.level(Level::K).unwrap();
        rules.len() == 1
            && !demoted
                .iter()
                .any(|megram| megram.supersedes.as_ref() == Some(&rules[0].id))
    }
}

/// With a clock that is right a good ending that is alone goes after 44 days.
#[test]
fn a_clock_that_goes_right_forgets_what_is_due() {
    let mut life = Life::new();
    life.lives(43);
    assert!(life.has("good") && life.rule_stands());
    life.lives(3);
    assert!(!life.has("good") && life.rule_stands());
}

#[test]
fn a_clock_that_is_a_year_ahead_for_weeks_takes_nothing() {
    let mut life = Life::new();
    life.lives(3);
    life.off = YEAR;
    life.lives(23);
    assert!(life.has("good") && life.rule_stands());
    let written = life.event("ahead", "intent:ahead");
    life.write(&[written]);
    life.lives(2);
    life.off = 0;
    life.lives(5);
    assert!(life.has("good") && life.has("ahead") && life.rule_stands());
    // Time goes on all the same.
    life.lives(30);
    assert!(!life.has("good"), "what is due goes");
}

#[test]
fn a_clock_that_is_a_year_back_for_weeks_takes_nothing() {
    let mut life = Life::new();
    life.lives(3);
    life.off = -YEAR;
    life.lives(10);
    let written = life.event("back", "intent:back");
    life.write(&[written]);
    life.lives(15);
    assert!(life.has("good") && life.has("back") && life.rule_stands());
    life.off = 0;
    life.lives(20);
    assert!(
        life.has("good") && life.has("back"),
        "nor when the clock is right again"
    );
    assert!(life.rule_stands());
    // What was leapt over is caught up with.
    life.lives(365 * 5);
    assert!(!life.has("good") && !life.has("back"));
}

/// Many leaps are as harmless as one.
#[test]
fn a_clock_that_is_wrong_at_every_start_takes_nothing() {
    let mut life = Life::new();
    life.lives(3);
    for _ in 0..20 {
        for off in [YEAR, 0, -YEAR, 0, -50 * YEAR, 0] {
            life.off = off;
            life.lives(1);
        }
    }
    assert!(life.has("good") && life.rule_stands());
}

/// Who comes every 40 days forgets too: an absence counts as a day and a quarter, so 44 days are gone by at the 36th.
#[test]
fn who_is_away_for_more_than_a_month_every_time_forgets_what_is_due() {
    for by in [Come::Itself, Come::Asked] {
        let mut life = Life::new();
        life.is_away(0, by);
        for _ in 0..34 {
            life.is_away(40, by);
        }
        assert!(life.has("good"), "{by:?}");
        for _ in 0..3 {
            life.is_away(40, by);
        }
        assert!(!life.has("good"), "{by:?}");
        assert!(life.rule_stands(), "{by:?}");
    }
}

/// One leap of a year takes what would have gone in little more than a day, and nothing else.
#[test]
fn one_leap_of_a_year_takes_next_to_nothing() {
    for by in [Come::Itself, Come::Asked] {
        let mut life = Life::new();
        life.lives(40);
        let fresh = life.event("fresh", "intent:fresh");
        life.write(&[fresh]);
        life.off = YEAR;
        life.is_away(0, by);
        life.is_away(0, by);
        assert!(life.has("good") && life.has("fresh") && life.rule_stands(), "{by:?}");
        life.off = 0;
        life.lives(1);
        assert!(life.has("good") && life.has("fresh") && life.rule_stands(), "{by:?}");
    }
}

proptest! {
    /// Whatever the clock does, nothing is old before four fifths of the time that makes it old were lived through, a leap being a day
    /// of that, also what was written under a wrong date.
    #[test]
    fn age_is_never_more_than_what_was_lived_and_a_quarter(
        steps in prop::collection::vec((1_i64..40, prop_oneof![5 => Just(None), 1 => prop::sample::select(vec![0, YEAR, -7_200, 4_800, -4_800]).prop_map(Some)]), 1..60),
    ) {
        // Hours, each leap forward a day.
        let (mut awake, mut off, mut hour, mut lived) = (Awake::at(None, hours(0)), 0, 0, 0);
        let mut written = vec![(hours(0), 0)];
        for (step, set_to) in steps {
            hour += step;
            off = set_to.unwrap_or(off);
            let now = hours(hour + off);
            lived += if now.since(awake.seen) > LEAP { 24 } else { step };
            awake = Awake::at(Some(awake), now);
            let judged = awake.applied_to(Params::default()).old_at(awake.seen);
            for (clock, then) in &written {
                let most = u64::try_from(lived - then).unwrap() * 3_600_000 / 4 * 5;
                prop_assert!(judged.since(*clock).0 <= most, "{awake:?} {clock} {then} {lived}");
            }
            written.push((awake.seen, lived));
        }
    }
}

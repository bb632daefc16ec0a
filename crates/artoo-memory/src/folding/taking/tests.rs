//! Two stores that tell one another what they know: whatever either has folded or promoted, nothing counts twice and nothing is lost.

use super::*;
use crate::folding::exporting::Exporting;
use crate::folding::tests::{GROUP, day, dream, event, is_near, store, weight, weight_at, write};
use crate::testing::at;
use artoo_protocol::{DecayPerDay, Millis, Valence};
use proptest::prelude::*;

fn export(records: &Records) -> Vec<Exported> {
    let mut exporting = Exporting::new(records).unwrap();
    let all = records.all().unwrap();
    let mut lines: Vec<Exported> = all.into_iter().map(|megram| exporting.line(megram).unwrap()).collect();
    // As it is written and read.
    for line in &mut lines {
        *line = Exported::read(&serde_json::to_vec(line).unwrap()).unwrap();
    }
    lines.sort_by_key(Exported::phase);
    lines
}

fn import(records: &Records, lines: &[Exported], now: Timestamp) -> Vec<Stored> {
    let mut taking = Taking::into(records);
    let phases = lines.chunk_by(|one, other| one.phase() == other.phase());
    let stored: Vec<Stored> = phases
        .flat_map(|phase| phase.chunks(7))
        .flat_map(|some| taking.take(some, now).unwrap())
        .collect();
    for stored in &stored {
        assert!(matches!(stored, Stored::New | Stored::Known), "{stored:?}");
    }
    assert!(records.verify().unwrap().is_sound());
    stored
}

fn news(stored: &[Stored]) -> usize {
    stored.iter().filter(|stored| **stored == Stored::New).count()
}

/// Three events, and a store in which they are one record.
fn folded() -> (Vec<Megram>, Records) {
    let events: Vec<Megram> = (0..3).map(|i| event(i, day(i), 0.2)).collect();
    let records = store();
    write(&records, &events, day(2));
    assert_eq!(dream(&records, day(5)), 2);
    (events, records)
}

#[test]
fn a_folded_record_brings_nothing_to_a_store_that_holds_its_events() {
    let (events, records) = folded();
    let there = store();
    write(&there, &events, day(2));
    let before = weight(&there, day(6));
    assert_eq!(news(&import(&there, &export(&records), day(6))), 0);
    assert!(is_near(weight(&there, day(6)), before));
    assert!(is_near(weight(&records, day(6)), before));
}

#[test]
fn events_bring_nothing_to_a_store_that_holds_what_they_became() {
    let (events, records) = folded();
    let there = store();
    let lines = export(&records);
    import(&there, &lines, day(6));
    assert_eq!(export(&there), lines, "the same memory");
    let before = weight(&there, day(6));
    assert!(is_near(before, weight(&records, day(6))));
    write(&there, &events, day(6));
    assert!(is_near(weight(&there, day(6)), before));
    assert_eq!(export(&there), lines);
    for moment in 0..6 {
        assert!(is_near(
            weight_at(&there, day(moment)),
            weight_at(&records, day(moment))
        ));
    }
}

#[test]
fn of_a_folded_record_only_what_is_not_known_is_taken() {
    let (events, records) = folded();
    for known in [&events[..1], &events[1..2], &events[2..], &events[..2], &events[1..]] {
        let there = store();
        write(&there, known, day(2));
        import(&there, &export(&records), day(6));
        assert!(is_near(weight(&there, day(6)), weight(&records, day(6))), "{known:?}");
        // And back: they know of one another all there is.
        import(&records, &export(&there), day(6));
        assert!(is_near(weight(&there, day(6)), weight(&records, day(6))));
        assert_eq!(news(&import(&there, &export(&records), day(6))), 0);
    }
}

/// The sum comes before the event that it took the place of: a retry that finds the one without the other takes nothing of it again.
#[test]
fn an_import_that_was_cut_off_and_is_tried_again_later_counts_nothing_twice() {
    let (events, records) = folded();
    let lines = export(&records);
    assert_eq!(lines.iter().map(Exported::phase).collect::<Vec<_>>(), [0, 1]);
    let whole = weight(&records, day(9));
    for known in [
        &events[..0],
        &events[..1],
        &events[1..2],
        &events[..2],
        &events[2..],
        &events[1..],
    ] {
        let (there, at_once) = (store(), store());
        write(&there, known, day(2));
        write(&at_once, known, day(2));
        for later in 6..8 {
            Taking::into(&there).take(&lines[..1], day(later)).unwrap();
        }
        import(&there, &lines, day(8));
        assert!(is_near(weight(&there, day(9)), whole), "{known:?}");
        // When it was taken, and in how many goes, makes no difference.
        import(&at_once, &lines, day(9));
        assert_eq!(export(&there), export(&at_once), "{known:?}");
    }
}

/// What is left of a sum says nothing of parts that were here by themselves and are forgotten since.
#[test]
fn parts_that_were_left_out_of_a_sum_and_forgotten_come_back() {
    let (events, records) = folded();
    let (lines, there) = (export(&records), store());
    write(&there, &events[..1], day(2));
    import(&there, &lines, day(6));
    there.remove(&events[0].id, day(6)).unwrap();
    assert!(!is_near(weight(&there, day(9)), weight(&records, day(9))));
    for _ in 0..2 {
        import(&there, &lines, day(7));
        assert!(is_near(weight(&there, day(9)), weight(&records, day(9))));
    }
}

/// What a rule was distilled from is spent, also where it is known under other ids.
#[test]
fn a_rule_spends_its_evidence_wherever_that_was_folded_or_promoted() {
    for days_apart in [0, 1] {
        let ending = |number: usize| Megram {
            state: MacroState::Accept,
            sigma: Valence::new(1.0).unwrap(),
            ..event(number, day(number * days_apart), 0.9)
        };
        let events: Vec<Megram> = (0..6).map(ending).collect();
        let (here, there) = (store(), store());
        write(&here, &events, day(5));
        write(&there, &events, day(5));
        dream(&here, day(5 + 2 * days_apart));
        dream(&there, day(6 + 2 * days_apart));
        let sources: Vec<MegramId> = here
            .entries(&GroupKey::new(GROUP.0, GROUP.1), None, 99)
            .unwrap()
            .into_iter()
            .map(|entry| entry.id)
            .collect();
        let rule = Megram {
            level: Level::C,
            k: DecayPerDay::ZERO,
            f: Magnitude::ONE,
            content: "count with wc".to_owned(),
            state: MacroState::Accept,
            sigma: Valence::new(1.0).unwrap(),
            sources,
            ..event(500, day(9), 1.0)
        };
        write(&here, &[rule], day(9));
        assert!(is_near(weight(&here, day(9)), (1.0, 1.0)));
        for _ in 0..2 {
            import(&there, &export(&here), day(9));
            assert!(
                is_near(weight(&there, day(9)), (1.0, 1.0)),
                "{:?}",
                weight(&there, day(9))
            );
            import(&here, &export(&there), day(9));
            assert!(is_near(weight(&here, day(9)), (1.0, 1.0)));
        }
    }
}

#[test]
fn a_line_is_a_memory_and_what_is_no_line_is_told() {
    let (_, records) = folded();
    let line = export(&records).remove(0);
    let text = serde_json::to_string(&line).unwrap();
    assert!(text.contains(r#""parts":[{"id":"0000""#), "{text}");
    assert_eq!(
        serde_json::from_str::<Megram>(&text).unwrap(),
        line.megram,
        "readers of before read it"
    );
    let plain = serde_json::to_string(&event(1, day(1), 0.2)).unwrap();
    assert_eq!(Exported::read(plain.as_bytes()).unwrap().parts, []);
    assert!(Exported::read(text.replace(r#""is_event":true"#, r#""is_event":7"#).as_bytes()).is_err());
    assert!(Exported::read(b"{}").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Events that either store has seen, or both; folded and promoted in each at other times; exports of before and after.
    #[test]
    fn two_stores_that_tell_one_another_weigh_what_all_their_events_weigh(
        rows in prop::collection::vec((0.2..=1.0_f64, 0_i64..9_000, any::<bool>(), 1_u8..4), 2..30),
        folds in prop::collection::vec((1_i64..10_000, any::<bool>()), 0..6),
        order in prop::collection::vec((any::<bool>(), any::<bool>()), 1..6),
    ) {
        let moment = |minutes: i64| at().plus(Millis(u64::try_from(minutes).unwrap() * 60_000));
        let mut events: Vec<(i64, u8, Megram)> = rows
            .iter()
            .enumerate()
            .map(|(number, (f, minutes, good, who))| {
                let event = Megram {
                    state: if *good { MacroState::Accept } else { MacroState::Abandon },
                    sigma: Valence::new(if *good { 1.0 } else { -1.0 }).unwrap(),
                    ..event(number, moment(*minutes), *f)
                };
                (*minutes, *who, event)
            })
            .collect();
        events.sort_by_key(|(minutes, _, _)| *minutes);
        let (stores, whole) = ([store(), store()], store());
        let mut folds = folds;
        folds.sort_unstable();
        folds.push((10_001, true));
        let (mut waiting, mut exports) = (events, Vec::new());
        for (minutes, first) in folds {
            let now = moment(minutes);
            let (due, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(made, _, _)| *made <= minutes);
            waiting = rest;
            for (_, who, event) in due {
                write(&whole, std::slice::from_ref(&event), now);
                for (number, store) in stores.iter().enumerate() {
                    if who & (1 << number) != 0 {
                        write(store, std::slice::from_ref(&event), now);
                    }
                }
            }
            let number = usize::from(first);
            exports.push((1 - number, export(&stores[number])));
            dream(&stores[number], now);
        }
        let now = moment(10_002);
        // Some exports that are older than what was folded since, then those of today, both ways and once more.
        for ((to, lines), (is_taken, _)) in exports.iter().zip(&order) {
            if *is_taken {
                import(&stores[*to], lines, now);
            }
        }
        let mut now = now;
        for (_, dreams) in &order {
            for to in [0, 1, 0] {
                // No two machines fold the same at the same millisecond: their records would have one id.
                now = now.plus(Millis(1));
                import(&stores[to], &export(&stores[1 - to]), now);
                if *dreams {
                    dream(&stores[to], now);
                }
            }
            for (store, later) in [(&stores[0], 10_002), (&stores[1], 10_002), (&stores[0], 20_000), (&stores[1], 20_000)] {
                let (expected, found) = (weight(&whole, moment(later)), weight(store, moment(later)));
                prop_assert!((expected.0 - found.0).abs() < 1e-6 && (expected.1 - found.1).abs() < 1e-6, "{expected:?} {found:?}");
            }
        }
        for (to, lines) in &exports {
            import(&stores[*to], lines, now);
            prop_assert!((weight(&whole, now).0 - weight(&stores[*to], now).0).abs() < 1e-6);
        }
    }
}

/// A store that takes no more than so many bytes at once.
struct Small(crate::kv::InMemoryKv, usize);

impl crate::kv::Kv for Small {
    fn get_many(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, KvError> {
        self.0.get_many(keys)
    }
    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<crate::kv::Pair>, KvError> {
        self.0.scan(prefix, after, limit)
    }
    fn apply(&self, batch: crate::kv::Batch) -> Result<(), KvError> {
        match batch.bytes() {
            bytes if bytes > self.1 => Err(KvError::TooLarge { bytes }),
            _ => self.0.apply(batch),
        }
    }
    fn flush(&self) -> Result<(), KvError> {
        Ok(())
    }
    fn close(&self) -> Result<(), KvError> {
        Ok(())
    }
    fn take_notices(&self) -> Vec<crate::kv::Notice> {
        Vec::new()
    }
}

/// What would be lost at the next opening is refused before it is written, by name, and nothing beside it.
#[test]
fn a_line_that_names_too_much_is_refused_and_the_others_are_taken() {
    let line = |megram: Megram| Exported {
        megram,
        parts: Vec::new(),
    };
    let many = |id: &str, sources: usize| {
        line(Megram {
            sources: (0..sources).map(|number| MegramId::new(format!("s{number}"))).collect(),
            ..crate::testing::megram(id, GROUP.0, "env:local", 0.5, 1.0)
        })
    };
    let long = || MegramId::new("x".repeat(201));
    let mut names = many("names", 0);
    names.megram.supersedes = Some(long());
    let mut part = many("part", 0);
    let (events, folded) = folded();
    let parts = export(&folded)
        .into_iter()
        .find(|line| !line.parts.is_empty())
        .unwrap()
        .parts;
    part.parts = parts;
    part.parts[0].id = long();
    let lines = [many("much", 4_097), many("one", 4_096), names, part, many("two", 0)];
    let there = store();
    let stored = Taking::into(&there).take(&lines, at()).unwrap();
    let refused: Vec<bool> = stored
        .iter()
        .map(|stored| matches!(stored, Stored::Refused(_)))
        .collect();
    assert_eq!(refused, [true, false, true, true, false], "{stored:?}");
    assert_eq!((events.len(), there.all().unwrap().len()), (3, 2));
    assert!(there.verify().unwrap().is_sound());

    // One that is too large even alone; the others fit, if not together.
    let small = Records::open(std::sync::Arc::new(Small(crate::kv::InMemoryKv::new(), 9_000))).unwrap();
    let mut lines: Vec<Exported> = (0..40).map(|number| many(&format!("{number:02}"), 9)).collect();
    lines.insert(17, many("large", 2_000));
    let stored = Taking::into(&small).take(&lines, at()).unwrap();
    assert_eq!((news(&stored), stored.len()), (40, 41));
    assert!(matches!(&stored[17], Stored::Refused(why) if why.contains("too large")));
    assert_eq!(small.all().unwrap().len(), 40);
}

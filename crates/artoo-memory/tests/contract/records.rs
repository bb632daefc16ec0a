//! Records and what is derived from them, on a map and on LevelDB: whatever happens, potentials are those of the plain sum over the
//! records that count, and the indices name exactly these.

use super::{NOW, SMALL, delete};
use artoo_memory::kv::{Batch, InMemoryKv, Kv, LevelKv};
use artoo_memory::potentials::{Later, living, potentials};
use artoo_memory::records::Stored;
use artoo_memory::{Edit, GroupKey, Records, codec, keys};
use artoo_protocol::message::{Level, MacroState, Megram};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, Timestamp, Valence};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

const DAY: i64 = 86_400_000;
const ENTITIES: [&str; 2] = ["path:/a", "path:/b|c"];

fn now() -> Timestamp {
    Timestamp::parse(NOW).unwrap()
}

fn days(days: i64) -> Timestamp {
    Timestamp::from_millis(now().as_millis() + days * DAY)
}

fn megram(id: usize, entity: &str) -> Megram {
    Megram {
        id: MegramId::new(format!("{id:04}")),
        level: Level::M,
        created_at: now(),
        last_recalled_at: None,
        space: "tool:shell".to_owned(),
        entity: entity.to_owned(),
        content: format!("lesson {id}"),
        state: MacroState::Abandon,
        f: Magnitude::ONE,
        sigma: Valence::new(-1.0).unwrap(),
        k: DecayPerDay::new(0.05).unwrap(),
        sources: Vec::new(),
        supersedes: None,
        origin: None,
    }
}

#[derive(Debug, Clone)]
enum Step {
    Store {
        group: usize,
        f: f64,
        sigma: f64,
        k: f64,
        level: Level,
        /// Days before the clock; negative: in its future.
        age: i64,
        supersedes: Option<usize>,
        sources: Vec<usize>,
    },
    Remove(usize),
    /// The clock is set, to so many days from the beginning.
    Clock(i64),
    Reopen,
    LoseSums(usize),
    Repair,
}

fn step() -> impl Strategy<Value = Step> {
    let store = (
        0..2_usize,
        0.0..=1.0_f64,
        -1.0..=1.0_f64,
        prop_oneof![Just(0.0), Just(0.05), Just(0.2), Just(0.5), Just(0.07)],
        prop_oneof![Just(Level::M), Just(Level::K), Just(Level::C)],
        prop_oneof![8 => 0..900_i64, 1 => -400..0_i64],
        prop::option::weighted(0.3, 0..30_usize),
        prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(0..30_usize, 1..4)],
    );
    prop_oneof![
        10 => store.prop_map(|(group, f, sigma, k, level, age, supersedes, sources)| Step::Store {
            group, f, sigma, k, level, age, supersedes, sources
        }),
        3 => (0..30_usize).prop_map(Step::Remove),
        2 => prop_oneof![Just(365), Just(-365), 0..900_i64].prop_map(Step::Clock),
        1 => Just(Step::Reopen),
        1 => (0..2_usize).prop_map(Step::LoseSums),
        1 => Just(Step::Repair),
    ]
}

fn check(records: &Records, clock: i64) {
    for entity in ENTITIES {
        let all = records.group("tool:shell", entity).unwrap();
        let alive = living(all);
        let mass: f64 = alive.iter().map(|m| m.f.get()).sum();
        for at in [clock, clock + 30, clock - 500] {
            let plain = potentials(&alive, days(at), Later::CountsAsNew);
            let found = records.potentials("tool:shell", entity, days(at)).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * mass + f64::MIN_POSITIVE;
            assert!(
                close(plain.attention.get(), found.attention.get()),
                "{plain:?} {found:?}"
            );
            assert!(close(plain.decision.get(), found.decision.get()), "{plain:?} {found:?}");
        }
        let entries = records
            .entries(&GroupKey::new("tool:shell", entity), None, 999)
            .unwrap();
        assert!(entries.is_sorted_by_key(|entry| entry.level.letter()));
        let ids: BTreeSet<_> = entries.iter().map(|entry| entry.id.clone()).collect();
        assert_eq!(ids, alive.iter().map(|m| m.id.clone()).collect());
    }
    let verified = records.verify().unwrap();
    assert!(verified.is_sound(), "{verified:?}");
}

/// Carries out the steps on a store that `open` gives, which must find the same content each time.
fn run(steps: Vec<Step>, open: impl Fn() -> Arc<dyn Kv>, close: impl Fn(Arc<dyn Kv>)) {
    let mut records = Records::open(open()).unwrap();
    let mut clock = 0;
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Store {
                group,
                f,
                sigma,
                k,
                level,
                age,
                supersedes,
                sources,
            } => {
                let mut m = megram(number, ENTITIES[group]);
                (m.f, m.sigma) = (Magnitude::new(f).unwrap(), Valence::new(sigma).unwrap());
                (m.k, m.level) = (DecayPerDay::new(k).unwrap(), level);
                (m.created_at, m.supersedes) = (days(clock - age), supersedes.map(|id| megram(id, "").id));
                m.sources = sources.into_iter().map(|id| megram(id, "").id).collect();
                let stored = records
                    .commit(&[Edit::Store(m.clone()), Edit::Store(m)], days(clock))
                    .unwrap();
                assert_eq!(stored, [Stored::New, Stored::Known]);
            }
            Step::Remove(id) => {
                records.commit(&[Edit::Remove(megram(id, "").id)], days(clock)).unwrap();
            }
            Step::Clock(at) => clock = at,
            Step::Reopen => {
                close(records.kv().clone());
                drop(records);
                records = Records::open(open()).unwrap();
            }
            Step::LoseSums(group) => {
                records
                    .kv()
                    .apply(delete(&keys::sums("tool:shell", ENTITIES[group])))
                    .unwrap();
                records = Records::open(records.kv().clone()).unwrap();
                // A store that misses sums is not sound, but answers right; the next write mends it.
                let alive = living(records.group("tool:shell", ENTITIES[group]).unwrap());
                let plain = potentials(&alive, days(clock), Later::CountsAsNew);
                let found = records.potentials("tool:shell", ENTITIES[group], days(clock)).unwrap();
                assert!((plain.attention.get() - found.attention.get()).abs() < 1e-9);
                let mut m = megram(number, ENTITIES[group]);
                m.created_at = days(clock);
                records.store(&m).unwrap();
                // Unless that write did not count either, being replaced from the start.
                if !records.replaced_by(&m.id).unwrap().is_empty() {
                    records.repair(days(clock)).unwrap();
                }
            }
            Step::Repair => {
                records.repair(days(clock)).unwrap();
            }
        }
        check(&records, clock);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sums_and_indices_are_those_of_the_records_whatever_happens(steps in prop::collection::vec(step(), 1..40)) {
        let kv = Arc::new(InMemoryKv::new());
        run(steps, || kv.clone(), drop);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_holds_on_level_db(steps in prop::collection::vec(step(), 1..30)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.leveldb");
        let open = || -> Arc<dyn Kv> { Arc::new(LevelKv::open(&path, NOW, SMALL).unwrap()) };
        run(steps, open, |kv| kv.close().unwrap());
    }
}

#[test]
fn promotion_and_demotion_replace_and_forgetting_takes_what_was_replaced() {
    let records = Records::open(Arc::new(InMemoryKv::new())).unwrap();
    let group = GroupKey::new("tool:shell", "path:/a");
    let ids = |records: &Records| -> Vec<String> {
        let entries = records.entries(&group, None, 9).unwrap();
        entries
            .iter()
            .map(|entry| format!("{}{}", entry.level.letter(), entry.id))
            .collect()
    };
    let store = |m: &Megram| assert_eq!(records.commit(&[Edit::Store(m.clone())], now()).unwrap(), [Stored::New]);
    (1..=3).for_each(|id| store(&megram(id, "path:/a")));
    let mut known = megram(4, "path:/a");
    (known.level, known.supersedes) = (Level::K, Some(megram(1, "").id));
    store(&known);
    assert_eq!(ids(&records), ["K0004", "M0002", "M0003"]);
    assert_eq!(records.replaced_by(&megram(1, "").id).unwrap(), [known.id.clone()]);
    let mut rule = megram(5, "path:/a");
    (rule.level, rule.k, rule.f) = (Level::C, DecayPerDay::ZERO, Magnitude::ONE);
    rule.sources = vec![known.id.clone(), megram(2, "").id, megram(3, "").id];
    store(&rule);
    assert_eq!(ids(&records), ["C0005"]);
    let decision = |records: &Records| {
        records
            .potentials("tool:shell", "path:/a", now())
            .unwrap()
            .decision
            .get()
    };
    assert_eq!(decision(&records), -1.0);
    // Demoted: it fades from now on, and what it was distilled from counts again.
    let mut demoted = megram(6, "path:/a");
    (demoted.level, demoted.supersedes) = (Level::K, Some(rule.id.clone()));
    store(&demoted);
    assert_eq!(ids(&records), ["K0004", "K0006", "M0002", "M0003"]);
    assert_eq!(decision(&records), -4.0);
    // With a piece of knowledge goes the raw event that it replaced.
    assert!(records.remove(&known.id, now()).unwrap());
    assert_eq!(ids(&records), ["K0006", "M0002", "M0003"]);
    assert_eq!(records.get(&megram(1, "").id).unwrap(), None);
    assert!(records.remove(&demoted.id, now()).unwrap());
    assert_eq!(records.get(&rule.id).unwrap(), None);
    check(&records, 0);
}

#[test]
fn a_commit_is_all_or_nothing_and_names_what_became_of_each_edit() {
    let records = Records::open(Arc::new(InMemoryKv::new())).unwrap();
    let mut law = megram(2, "path:/a");
    law.level = Level::T;
    let edits = [
        Edit::Store(megram(1, "path:/a")),
        Edit::Store(law),
        Edit::Remove(megram(1, "").id),
        Edit::Remove(megram(9, "").id),
    ];
    let outcome = records.commit(&edits, now()).unwrap();
    assert!(matches!(
        outcome.as_slice(),
        [Stored::New, Stored::Refused(_), Stored::Removed, Stored::Absent]
    ));
    assert_eq!(records.all().unwrap(), []);
    assert_eq!(records.groups(None, 9, now()).unwrap(), []);
    check(&records, 0);
}

/// In a burst what is not there is not looked for; so it must be known what is there.
#[test]
fn a_burst_into_old_lost_forgotten_and_new_groups_keeps_the_sums_true() {
    let records = Records::open(Arc::new(InMemoryKv::new())).unwrap();
    let group = |number: usize| format!("path:/{number}");
    let burst = |from: usize| -> Vec<Edit> {
        let some = from..from + 700;
        some.map(|number| Edit::Store(megram(number, &group(number % 400))))
            .collect()
    };
    for number in 0..9 {
        records.store(&megram(number, &group(number))).unwrap();
    }
    records
        .kv()
        .apply(delete(&keys::sums("tool:shell", &group(3))))
        .unwrap();
    records.remove(&megram(4, "").id, now()).unwrap();
    // From here on it is known which groups there are.
    let again = Records::open(records.kv().clone()).unwrap();
    let stored = again.commit(&burst(5), now()).unwrap();
    assert_eq!(stored.iter().filter(|stored| **stored == Stored::Known).count(), 4);
    again.remove(&megram(6, "").id, now()).unwrap();
    assert_eq!(again.store(&megram(6, &group(6))).unwrap(), Stored::New);
    again.commit(&burst(10_000), now()).unwrap();
    assert_eq!(again.all().unwrap().len(), 8 + 696 + 700);
    let verified = again.verify().unwrap();
    assert!(verified.is_sound(), "{verified:?}");
}

#[test]
fn a_moment_in_the_past_is_answered_from_what_was_known_then() {
    let records = Records::open(Arc::new(InMemoryKv::new())).unwrap();
    let mut first = megram(1, "path:/a");
    first.created_at = days(-10);
    let mut second = megram(2, "path:/a");
    second.created_at = days(-5);
    records
        .commit(&[Edit::Store(first), Edit::Store(second)], now())
        .unwrap();
    let attention = |at| {
        records
            .potentials_at("tool:shell", "path:/a", days(at))
            .unwrap()
            .attention
            .get()
    };
    assert_eq!(attention(-11), 0.0);
    assert!((attention(-10) - 1.0).abs() < 1e-12);
    assert!((attention(-5) - (1.0 + (-0.25_f64).exp())).abs() < 1e-12);
}

/// Writes the keys of the format before, which had no derived ones.
fn format_1(kv: &dyn Kv, megrams: &[Megram]) {
    let mut batch = Batch::new();
    batch.put("v|format", "1");
    for m in megrams {
        batch.put(keys::record(&m.id), codec::encode(m).unwrap());
        batch.put(keys::tag(&m.space, &m.entity, &m.id), "");
        batch.put(keys::level(m.level, &m.id), "");
    }
    kv.apply(batch).unwrap();
}

#[test]
fn a_store_of_the_version_before_is_read_as_it_is_and_completed_by_the_first_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let kv = LevelKv::open(&path, NOW, SMALL).unwrap();
    let mut newer = megram(2, "path:/a");
    (newer.supersedes, newer.f) = (Some(megram(1, "").id), Magnitude::new(0.5).unwrap());
    format_1(&kv, &[megram(1, "path:/a"), newer]);
    kv.close().unwrap();
    let attention = |records: &Records| {
        records
            .potentials("tool:shell", "path:/a", now())
            .unwrap()
            .attention
            .get()
    };

    let look = Records::open(Arc::new(LevelKv::open_snapshot(&path, NOW, SMALL).unwrap())).unwrap();
    assert!(!look.is_derived());
    assert_eq!(attention(&look), 0.5);
    assert!(!look.verify().unwrap().is_sound());

    let records = Records::open(Arc::new(LevelKv::open(&path, NOW, SMALL).unwrap())).unwrap();
    records.store(&megram(3, "path:/a")).unwrap();
    assert!(records.is_derived());
    assert_eq!(attention(&records), 1.5);
    check(&records, 0);
}

#[test]
fn damage_of_any_derived_key_is_found_and_repaired() {
    let kv = Arc::new(InMemoryKv::new());
    let records = Records::open(kv.clone()).unwrap();
    let mut newer = megram(2, "path:/a");
    newer.supersedes = Some(megram(1, "").id);
    let mut odd = megram(3, "path:/b|c");
    odd.k = DecayPerDay::new(0.07).unwrap();
    // It names one that is not there, and one of another group.
    let mut naming = megram(5, "path:/a");
    naming.sources = [99, 4].map(|id| megram(id, "").id).to_vec();
    let mut intent = megram(6, "env:local");
    intent.space = "intent:count_all_files".to_owned();
    let edits = [megram(1, "path:/a"), newer, odd, megram(4, "path:/b|c"), naming, intent].map(Edit::Store);
    records.commit(&edits, now()).unwrap();
    records.mark_recalled([&megram(2, "").id], now()).unwrap();
    let sound = kv.scan(b"", None, 999).unwrap();
    for (key, value) in &sound {
        let kind = key[0];
        // The format and the record of the last recall cannot be had from anywhere.
        if b"vr".contains(&kind) {
            continue;
        }
        let mut batch = Batch::new();
        batch.delete(key.clone());
        kv.apply(batch).unwrap();
        let records = Records::open(kv.clone()).unwrap();
        let verified = records.verify().unwrap();
        let name = String::from_utf8_lossy(key).into_owned();
        assert!(!verified.is_sound(), "{name}: {verified:?}");
        if kind != b'm' {
            records.repair(now()).unwrap();
            assert_eq!(kv.scan(b"", None, 999).unwrap(), sound, "{name}");
        }
        let mut batch = Batch::new();
        batch.put(key.clone(), value.clone());
        kv.apply(batch).unwrap();
    }
    for stray in [
        "x|tool:shell|path:/a|9",
        "l|M|9",
        "t|tool:shell|path:/a|M|7fffffffffffffff|9",
        "r|9",
        "f|tool:shell|path:/a|0002",
        "f|tool:shell|path:/b%7Cc|0004",
        "h|tool:shell|0000000000000000|tool:shell|path:/a",
        "h|tool:shell",
        "i|intent:count_no_files|env:local",
        "i|tool:shell|path:/a",
        "o|9999|0002",
        "o|0001|0002",
        "p|0099|0002",
        "p|0099|0005",
        "p|none",
    ] {
        let mut batch = Batch::new();
        batch.put(stray, "s");
        kv.apply(batch).unwrap();
        let records = Records::open(kv.clone()).unwrap();
        assert_eq!(records.verify().unwrap().stray, 1, "{stray}");
        records.repair(now()).unwrap();
        assert_eq!(kv.scan(b"", None, 999).unwrap(), sound, "{stray}");
    }
}

/// A group whose sums were lost is found by the key that they said, until it is written to again; then by one key only.
#[test]
fn a_group_of_a_tool_whose_sums_were_lost_is_found_once() {
    let kv = Arc::new(InMemoryKv::new());
    let records = Records::open(kv.clone()).unwrap();
    records.store(&megram(1, "path:/a")).unwrap();
    records.store(&megram(2, "path:/b|c")).unwrap();
    kv.apply(delete(&keys::sums("tool:shell", "path:/a"))).unwrap();
    let records = Records::open(kv.clone()).unwrap();
    assert!(!records.verify().unwrap().is_sound());
    records.store(&megram(3, "path:/a")).unwrap();
    assert_eq!(kv.scan(b"h|", None, 9).unwrap().len(), 2);
    check(&records, 0);
}

/// What was distilled from one of another group does not end it; should that one go, and come back in the rule's own group, it does.
#[test]
fn one_of_another_group_that_comes_back_in_this_one_has_ended() {
    let records = Records::open(Arc::new(InMemoryKv::new())).unwrap();
    let mut rule = megram(2, "path:/a");
    rule.sources = vec![megram(1, "").id];
    records.store(&megram(1, "path:/b|c")).unwrap();
    records.store(&rule).unwrap();
    check(&records, 0);
    records.remove(&megram(1, "").id, now()).unwrap();
    check(&records, 0);
    records.store(&megram(1, "path:/a")).unwrap();
    check(&records, 0);
    let living = || {
        let group = GroupKey::new("tool:shell", "path:/a");
        records.entries(&group, None, 9).unwrap().len()
    };
    assert_eq!(living(), 1);
    // The same where the rule was there first.
    let mut rule = megram(4, "path:/a");
    rule.sources = vec![megram(3, "").id];
    records.store(&rule).unwrap();
    records.store(&megram(3, "path:/b|c")).unwrap();
    check(&records, 0);
    records.remove(&megram(3, "").id, now()).unwrap();
    records.store(&megram(3, "path:/a")).unwrap();
    check(&records, 0);
    assert_eq!(living(), 2);
}

//! Attention and decision of a group, and what they ask for (design §15). Free functions of numbers.
//!
//! Owns: the two sums and their thresholds. Must not know: the store, the clock.

use artoo_protocol::message::{Megram, MemoryAction, Potentials};
use artoo_protocol::{DecayPerDay, Finite, Magnitude, MegramId, Timestamp};
use std::collections::HashSet;

/// Below this attention there is too little history to guide a plan.
pub const ATTENTION_THRESHOLD: f64 = 0.5;
/// A decision further from zero than this is a preference or an aversion.
pub const DECISION_THRESHOLD: f64 = 0.2;
/// Sums of binary fractions miss the thresholds by less than this.
const TOLERANCE: f64 = 1e-9;
const MILLIS_PER_DAY: f64 = 86_400_000.0;

/// What to do with a memory that is younger than the moment asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Later {
    /// Asked about now: some clock was wrong, and the memory counts as brand-new.
    CountsAsNew,
    /// Asked about a moment in the past: it was not known then.
    LeftOut,
}

/// The potentials at `now` of the memories of one group: Σ|f|·e^(−kΔt) and Σσf·e^(−kΔt), Δt in days since the
/// memory was made.
pub fn potentials<'a>(megrams: impl IntoIterator<Item = &'a Megram>, now: Timestamp, later: Later) -> Potentials {
    let (mut attention, mut decision) = (0.0, 0.0);
    for megram in megrams {
        if later == Later::LeftOut && megram.created_at > now {
            continue;
        }
        let energy = contribution(megram, now);
        attention += energy;
        decision += megram.sigma.get() * energy;
    }
    Potentials {
        attention: finite(attention),
        decision: finite(decision),
        action: action(attention, decision),
    }
}

/// What one memory adds to the attention of its group at `now`, from 0 to 1. A memory from the future has not faded.
pub fn contribution(megram: &Megram, now: Timestamp) -> f64 {
    energy(megram.f, megram.k, megram.created_at, now)
}

/// As [`contribution`], from the numbers alone.
pub fn energy(f: Magnitude, k: DecayPerDay, created_at: Timestamp, now: Timestamp) -> f64 {
    let days = now.since(created_at).0 as f64 / MILLIS_PER_DAY;
    f.get() * (-k.get() * days).exp()
}

/// What a plan should do about a group.
pub fn action(attention: f64, decision: f64) -> MemoryAction {
    if attention < ATTENTION_THRESHOLD - TOLERANCE {
        MemoryAction::Ignore
    } else if decision > DECISION_THRESHOLD + TOLERANCE {
        MemoryAction::Exploit
    } else if decision < -DECISION_THRESHOLD - TOLERANCE {
        MemoryAction::Avoid
    } else {
        MemoryAction::Caution
    }
}

/// The memories of a group that still count: neither replaced by another record nor consolidated into a living rule.
pub fn living(group: Vec<Megram>) -> Vec<Megram> {
    let replaced: HashSet<MegramId> = group.iter().filter_map(|megram| megram.supersedes.clone()).collect();
    let mut left: Vec<Megram> = group
        .into_iter()
        .filter(|megram| !replaced.contains(&megram.id))
        .collect();
    let consolidated: HashSet<MegramId> = left.iter().flat_map(|megram| megram.sources.iter().cloned()).collect();
    left.retain(|megram| !consolidated.contains(&megram.id));
    left
}

fn finite(value: f64) -> Finite {
    // A sum of contributions between -1 and 1 is finite.
    Finite::new(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, megram};
    use artoo_protocol::Millis;
    use proptest::prelude::*;

    fn close(left: Finite, right: f64) -> bool {
        (left.get() - right).abs() < 1e-12
    }

    #[test]
    fn actions_change_exactly_at_their_thresholds() {
        use MemoryAction::{Avoid, Caution, Exploit, Ignore};
        for (attention, decision, expect) in [
            (0.0, 0.0, Ignore),
            (0.499_999, 0.499_999, Ignore),
            (0.5, 0.5, Exploit),
            (0.1 * 3.0 + 0.2, -0.5, Avoid),
            (1.0, 0.2, Caution),
            (1.0, 0.3 - 0.1, Caution),
            (1.4, 0.8 - 0.6, Caution), // 0.20000000000000007 in binary
            (1.0, 0.200_001, Exploit),
            (1.0, -0.2, Caution),
            (1.0, -0.200_001, Avoid),
            (9.0, 0.0, Caution),
        ] {
            assert_eq!(action(attention, decision), expect, "{attention} {decision}");
        }
    }

    #[test]
    fn memories_fade_by_their_rate_from_when_they_were_made() {
        let trauma = megram("1", "s", "e", 0.95, -1.0); // k = 0.05 a day
        let now = |days: u64| at().plus(Millis(days * 86_400_000));
        let fresh = potentials([&trauma], now(0), Later::CountsAsNew);
        assert!(close(fresh.attention, 0.95) && close(fresh.decision, -0.95));
        let week = potentials([&trauma, &megram("2", "s", "e", 0.8, 1.0)], now(7), Later::CountsAsNew);
        assert!(close(week.attention, 1.75 * (-0.35_f64).exp()), "{}", week.attention);
        assert!(close(week.decision, -0.15 * (-0.35_f64).exp()));
        assert_eq!(week.action, MemoryAction::Caution);
        let mut timeless = trauma;
        timeless.k = DecayPerDay::ZERO;
        assert!(close(
            potentials([&timeless], now(99_999), Later::CountsAsNew).decision,
            -0.95
        ));
    }

    #[test]
    fn a_memory_from_the_future_counts_as_new_now_and_not_at_all_in_the_past() {
        let megram = megram("1", "s", "e", 0.9, 1.0);
        let before = Timestamp::from_millis(at().as_millis() - 90_000_000);
        assert!(close(potentials([&megram], before, Later::CountsAsNew).attention, 0.9));
        assert!(close(potentials([&megram], before, Later::LeftOut).attention, 0.0));
        assert!(close(potentials([&megram], at(), Later::LeftOut).attention, 0.9));
    }

    #[test]
    fn replaced_and_consolidated_memories_do_not_count_twice() {
        let mut rule = megram("rule", "s", "e", 1.0, 1.0);
        rule.sources = vec![MegramId::new("1"), MegramId::new("2")];
        let mut newer = megram("newer", "s", "e", 1.0, 1.0);
        newer.supersedes = Some(MegramId::new("3"));
        let group = ["1", "2", "3", "4"].map(|id| megram(id, "s", "e", 0.5, 1.0));
        let ids = |group: Vec<Megram>| group.iter().map(|m| m.id.to_string()).collect::<Vec<_>>();
        let mut all = group.to_vec();
        all.extend([rule.clone(), newer]);
        assert_eq!(ids(living(all.clone())), ["4", "rule", "newer"]);
        // A rule that was itself replaced consolidates nothing.
        let mut demoted = megram("demoted", "s", "e", 0.3, 1.0);
        demoted.supersedes = Some(rule.id);
        all.push(demoted);
        assert_eq!(ids(living(all)), ["1", "2", "4", "newer", "demoted"]);
    }

    proptest! {
        #[test]
        fn attention_bounds_decision_and_order_does_not_matter(
            rows in prop::collection::vec((0.0..=1.0_f64, -1.0..=1.0_f64, 0_u64..5_000_000_000), 0..40),
        ) {
            let mut megrams: Vec<_> = rows.iter().map(|(f, sigma, age)| {
                let mut m = megram("1", "s", "e", *f, *sigma);
                m.created_at = Timestamp::from_millis(at().as_millis() - i64::try_from(*age).unwrap());
                m
            }).collect();
            let forward = potentials(&megrams, at(), Later::CountsAsNew);
            megrams.reverse();
            let backward = potentials(&megrams, at(), Later::CountsAsNew);
            prop_assert!(forward.decision.get().abs() <= forward.attention.get() + 1e-9);
            prop_assert!((forward.attention.get() - backward.attention.get()).abs() < 1e-9);
        }
    }
}

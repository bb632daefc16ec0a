//! Whether a new rule would stand: what it is made of stops counting, and what speaks against it goes on (design §15).
//!
//! Owns: that sum. Must not know: what earns a rule, the store.

use super::choose::Consolidation;
use crate::entry::Entry;
use crate::potentials::energy;
use artoo_protocol::{MegramId, Timestamp};
use std::collections::{BTreeMap, HashSet};

/// What a rule weighs, and does for ever.
const RULE: f64 = 1.0;
/// What has to be left of it beside all that speaks against it: far more than sums of binary fractions are wrong by, and less than
/// one contrary ending leaves (1 − 0.95), which makes no rule go bankrupt.
const MARGIN: f64 = 0.01;

/// Whether the rule would not be bankrupt in its group, where these entries count now, at any moment from `now` on at which nothing else
/// was written.
///
/// Entries of one rate fade together, those from the future from their moment on. So at worst all that speaks for the rule fades first;
/// what is left is its own weight and the rates that speak against it on the whole.
pub(super) fn would_stand<'a>(
    proposal: &Consolidation,
    counting: impl IntoIterator<Item = &'a Entry>,
    now: Timestamp,
) -> bool {
    let ends: HashSet<&MegramId> = proposal.sources.iter().chain(&proposal.supersedes).collect();
    let mut rates: BTreeMap<(u64, Timestamp), f64> = BTreeMap::new();
    for entry in counting.into_iter().filter(|entry| !ends.contains(&entry.id)) {
        let decision = entry.sigma.get() * energy(entry.f, entry.k, entry.created_at, now);
        let fades_from = entry.created_at.max(now);
        *rates.entry((entry.k.get().to_bits(), fades_from)).or_default() += proposal.sign.valence() * decision;
    }
    let against: f64 = rates.values().filter(|decision| **decision < 0.0).sum();
    RULE + against > MARGIN
}

//! What the Dreamer would do about a set of groups: a pure, total function of what they hold and of the time (design §15).
//!
//! Owns the policy: promotion in two steps, trust bankruptcy, forgetting, when a group has earned a rule. Must not know the
//! store, the model or a clock; [`pass`](super::pass) carries the choice out.

use super::standing::would_stand;
use crate::entry::Entry;
use crate::potentials::energy;
use crate::recall::PREFERENCE_SPACE;
use crate::view::GroupKey;
use artoo_protocol::message::{Level, MacroState};
use artoo_protocol::{MegramId, Millis, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Sums of binary fractions miss a threshold by less than this.
const TOLERANCE: f64 = 1e-9;

/// The thresholds of the policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// From this attention on a group may become a rule.
    pub consolidate_attention: f64,
    /// And from this |decision| on.
    pub consolidate_decision: f64,
    /// Below this attention of its group an entry is forgotten.
    pub forget_attention: f64,
    /// Below this contribution of its own an entry is forgotten.
    pub forget_contribution: f64,
    /// Nothing younger than this is forgotten.
    pub grace: Millis,
    /// Most entries that one rule names as its evidence: the newest.
    pub evidence_max: usize,
    /// Whether anything is forgotten at all: not while the clock cannot be trusted.
    pub forgets: bool,
    /// How far behind the clock the moment lies by which things are old: what the clock has leapt over.
    pub lag: Millis,
    /// Whether rules are made and unmade: not while the clock is behind, when what is long past counts as new.
    pub judges_rules: bool,
    /// Whether a model can word rules. Then the evidence of a rule that was earned stays as it is until the rule is worded.
    pub words_rules: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            consolidate_attention: 5.0,
            consolidate_decision: 3.0,
            forget_attention: 0.1,
            forget_contribution: 0.001,
            grace: Millis::from_seconds(24 * 3600),
            evidence_max: 256,
            forgets: true,
            lag: Millis(0),
            judges_rules: true,
            words_rules: true,
        }
    }
}

impl Params {
    /// The moment by which things are old.
    pub(super) fn old_at(&self, now: Timestamp) -> Timestamp {
        let lag = i64::try_from(self.lag.0).unwrap_or(i64::MAX);
        Timestamp::from_millis(now.as_millis().saturating_sub(lag))
    }
}

/// One whole group: everything in it that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its tags.
    pub key: GroupKey,
    /// The entries that count, in any order; none twice.
    pub entries: Vec<Entry>,
    /// Words of what its living rules were distilled from already: saying them once more is no news.
    pub known: BTreeSet<u64>,
}

/// What the Dreamer looks at: whole groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// In any order.
    pub groups: Vec<Group>,
}

/// Which way a rule points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sign {
    /// A best practice: do it.
    Practice,
    /// A constraint: do not.
    Constraint,
}

impl Sign {
    /// +1 or −1.
    pub const fn valence(self) -> f64 {
        match self {
            Self::Practice => 1.0,
            Self::Constraint => -1.0,
        }
    }

    /// The sign of a number; `None` of zero.
    pub fn of(value: f64) -> Option<Self> {
        if value > 0.0 {
            Some(Self::Practice)
        } else if value < 0.0 {
            Some(Self::Constraint)
        } else {
            None
        }
    }
}

/// Why an entry is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Faded {
    /// Its whole group gets too little attention.
    Group,
    /// It adds next to nothing to its group.
    Entry,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Remove an entry for good.
    Forget {
        /// Which.
        id: MegramId,
        /// Why.
        why: Faded,
    },
    /// Take a rule's immunity to time: it goes on as knowledge, and fades from now on.
    Demote {
        /// The rule.
        id: MegramId,
        /// The decision of its group, which contradicts it.
        decision: f64,
    },
    /// Make an event knowledge; it keeps its clock.
    Promote {
        /// The event.
        id: MegramId,
    },
    /// Make one entry of several that say the same: it weighs at every later moment what they weighed together.
    Fold {
        /// Which, oldest first; two at least.
        ids: Vec<MegramId>,
        /// The level of the one that they become.
        level: Level,
    },
    /// Distil a rule from a group.
    Consolidate(Consolidation),
}

/// A group that has earned a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Consolidation {
    /// The group.
    pub key: GroupKey,
    /// Which way the rule points.
    pub sign: Sign,
    /// Attention of the group.
    pub attention: f64,
    /// Decision of the group.
    pub decision: f64,
    /// What it is distilled from, newest first; never empty.
    pub sources: Vec<MegramId>,
    /// The living rule of the same sign, which the new one replaces.
    pub supersedes: Option<MegramId>,
}

/// What is to be done about these groups at `now`.
///
/// For each group, in this order: forgetting, trust bankruptcy, promotion, folding, consolidation. What the person asked to be
/// remembered is never touched. Done once, the same choice at the same moment finds nothing but consolidations left.
pub fn choose(view: &View, now: Timestamp, params: &Params) -> Vec<Action> {
    view.groups
        .iter()
        .flat_map(|group| choose_group(group, now, params))
        .collect()
}

fn choose_group(group: &Group, now: Timestamp, params: &Params) -> Vec<Action> {
    if group.key.space == PREFERENCE_SPACE {
        return Vec::new();
    }
    let gone = forgotten(&group.entries, params.old_at(now), params);
    let left: Vec<&Entry> = group
        .entries
        .iter()
        .filter(|entry| !gone.contains_key(&entry.id))
        .collect();
    let sums = sums(left.iter().copied(), now);
    let learned: Vec<&Entry> = left.iter().copied().filter(|entry| is_learned(entry)).collect();
    let is_bankrupt =
        |entry: &&Entry| params.judges_rules && entry.level == Level::C && entry.sigma.get() * sums.1 < -TOLERANCE;
    let (bankrupt, rest): (Vec<&Entry>, Vec<&Entry>) = learned.into_iter().partition(is_bankrupt);
    let mut actions: Vec<Action> = gone
        .into_iter()
        .map(|(id, why)| Action::Forget { id: id.clone(), why })
        .collect();
    actions.extend(bankrupt.iter().map(|rule| Action::Demote {
        id: rule.id.clone(),
        decision: sums.1,
    }));
    let mut promoted = promotions(&rest, &bankrupt);
    let earned =
        consolidation(group, &rest, sums, now, params).filter(|earned| would_stand(earned, left.iter().copied(), now));
    if earned.is_none() || !params.words_rules {
        for repeated in repetitions(&rest, now, params) {
            // Who is among them rises with them.
            let before = promoted.len();
            promoted.retain(|id| repeated.iter().all(|entry| entry.id != **id));
            let rises = promoted.len() < before || repeated.iter().any(|entry| entry.level == Level::K);
            actions.push(Action::Fold {
                ids: repeated.iter().map(|entry| entry.id.clone()).collect(),
                level: if rises { Level::K } else { Level::M },
            });
        }
    }
    actions.extend(promoted.into_iter().map(|id| Action::Promote { id: id.clone() }));
    actions.extend(earned.map(Action::Consolidate));
    actions
}

/// Entries past their grace that say the same with the same sign and fade alike, two or more together, each lot oldest first.
fn repetitions<'a>(left: &[&'a Entry], now: Timestamp, params: &Params) -> Vec<Vec<&'a Entry>> {
    let mut alike: BTreeMap<(u64, u64, u64, MacroState), Vec<&Entry>> = BTreeMap::new();
    for entry in left {
        if may_fade(entry) && now.since(entry.created_at) >= params.grace {
            let (sigma, k) = (entry.sigma.get().to_bits(), entry.k.get().to_bits());
            alike
                .entry((entry.words, sigma, k, entry.state))
                .or_default()
                .push(entry);
        }
    }
    let mut lots: Vec<Vec<&Entry>> = alike.into_values().filter(|lot| lot.len() > 1).collect();
    for lot in &mut lots {
        lot.sort_by_key(|entry| (entry.created_at, &entry.id));
    }
    lots
}

/// What goes: first the entries that add nothing, then all the rest of a group that is left with too little attention.
fn forgotten<'a>(entries: &'a [Entry], now: Timestamp, params: &Params) -> BTreeMap<&'a MegramId, Faded> {
    let old = |entry: &&Entry| params.forgets && may_fade(entry) && now.since(entry.created_at) >= params.grace;
    let below = |value: f64, threshold: f64| value < threshold - TOLERANCE;
    let mut gone: BTreeMap<&MegramId, Faded> = entries
        .iter()
        .filter(old)
        .filter(|entry| below(contribution(entry, now), params.forget_contribution))
        .map(|entry| (&entry.id, Faded::Entry))
        .collect();
    let (attention, _) = sums(entries.iter().filter(|entry| !gone.contains_key(&entry.id)), now);
    if below(attention, params.forget_attention) {
        for entry in entries.iter().filter(old) {
            gone.entry(&entry.id).or_insert(Faded::Group);
        }
    }
    gone
}

/// Attention and decision of entries.
fn sums<'a>(entries: impl IntoIterator<Item = &'a Entry>, now: Timestamp) -> (f64, f64) {
    entries.into_iter().fold((0.0, 0.0), |(attention, decision), entry| {
        let energy = contribution(entry, now);
        (attention + energy, decision + entry.sigma.get() * energy)
    })
}

fn contribution(entry: &Entry, now: Timestamp) -> f64 {
    energy(entry.f, entry.k, entry.created_at, now)
}

/// Whether it was learned; what the person stated is the person's alone, and the laws are nobody's.
fn is_learned(entry: &Entry) -> bool {
    match entry.level {
        Level::M | Level::K | Level::C => entry.state != MacroState::Remember,
        Level::T => false,
    }
}

fn may_fade(entry: &Entry) -> bool {
    match entry.level {
        Level::M | Level::K => is_learned(entry),
        Level::C | Level::T => false,
    }
}

/// The first step up: one good ending makes knowledge, a failure needs a second one beside it. Of events with the same words
/// the newest rises, and none does where knowledge says the same already. A rule that goes bankrupt is knowledge already.
fn promotions<'a>(left: &[&'a Entry], bankrupt: &[&Entry]) -> Vec<&'a MegramId> {
    let failures = left.iter().filter(|entry| is_failure(entry)).count()
        + bankrupt.iter().filter(|rule| rule.sigma.get() < 0.0).count();
    let mut known: HashSet<(u64, bool)> = left
        .iter()
        .filter(|entry| entry.level == Level::K)
        .chain(bankrupt)
        .map(|entry| (entry.words, entry.sigma.get() < 0.0))
        .collect();
    let mut events: Vec<&'a Entry> = left
        .iter()
        .copied()
        .filter(|entry| entry.level == Level::M && (is_good_ending(entry) || (is_failure(entry) && failures >= 2)))
        .collect();
    events.sort_by_key(|entry| std::cmp::Reverse((entry.created_at, &entry.id)));
    events
        .into_iter()
        .filter(|entry| known.insert((entry.words, entry.sigma.get() < 0.0)))
        .map(|entry| &entry.id)
        .collect()
}

fn is_good_ending(entry: &Entry) -> bool {
    match entry.state {
        MacroState::Accept | MacroState::Success => entry.sigma.get() > 0.0,
        MacroState::Abandon
        | MacroState::ChangeApproach
        | MacroState::BreakSymmetry
        | MacroState::ChangePath
        | MacroState::Refine
        | MacroState::Remember => false,
    }
}

/// An event or a piece of knowledge that says that something failed.
fn is_failure(entry: &Entry) -> bool {
    match entry.level {
        Level::M | Level::K => entry.sigma.get() < 0.0,
        Level::C | Level::T => false,
    }
}

/// The second step up. Where a rule of the sign lives, the evidence that came after it must carry the attention by itself and
/// must say something that the rule was not made of: otherwise every few repetitions would cost a model call for nothing.
fn consolidation(
    group: &Group,
    left: &[&Entry],
    (attention, decision): (f64, f64),
    now: Timestamp,
    params: &Params,
) -> Option<Consolidation> {
    let enough = |value: f64, threshold: f64| value >= threshold - TOLERANCE;
    if !params.judges_rules
        || !enough(attention, params.consolidate_attention)
        || !enough(decision.abs(), params.consolidate_decision)
    {
        return None;
    }
    let sign = Sign::of(decision)?;
    let mut evidence: Vec<&Entry> = left
        .iter()
        .copied()
        .filter(|entry| entry.level != Level::C && Sign::of(entry.sigma.get()) == Some(sign))
        .collect();
    let rule = left
        .iter()
        .filter(|rule| rule.level == Level::C && Sign::of(rule.sigma.get()) == Some(sign))
        .max_by_key(|rule| (rule.created_at, &rule.id));
    if rule.is_some() {
        let energy: f64 = evidence.iter().map(|entry| contribution(entry, now)).sum();
        let says_more = evidence.iter().any(|entry| !group.known.contains(&entry.words));
        if !enough(energy, params.consolidate_attention) || !says_more {
            return None;
        }
    }
    evidence.sort_by_key(|entry| std::cmp::Reverse((entry.created_at, &entry.id)));
    evidence.truncate(params.evidence_max.max(1));
    if evidence.is_empty() {
        return None;
    }
    Some(Consolidation {
        key: group.key.clone(),
        sign,
        attention,
        decision,
        sources: evidence.into_iter().map(|entry| entry.id.clone()).collect(),
        supersedes: rule.map(|rule| rule.id.clone()),
    })
}

#[cfg(test)]
mod tests;

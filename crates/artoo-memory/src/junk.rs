//! How much of memory says again what another part of it says, and whether a write would add to that (design §15).
//!
//! Repetition is evidence up to a point: it takes several good endings to earn a rule, and a rule that stands alone is firmer with
//! a confirmation beside it. Beyond that point the same words are junk, and a write of them is refused.
//!
//! Owns: the measure and that point. Must not know: who writes.

use crate::entry::Entry;
use crate::kv::KvError;
use crate::potentials::energy;
use crate::recall::PREFERENCE_SPACE;
use crate::records::Records;
use crate::view::GroupKey;
use artoo_protocol::Timestamp;
use artoo_protocol::message::{Level, MacroState, Megram};
use std::collections::HashSet;

/// Attention that the same words may gather: enough to earn a rule (5.0), with time for the Dreamer to come by.
const ENOUGH: f64 = 8.0;
/// Decision in a rule's favour from which its own lessons are no news any more: the rule and most of one confirmation.
const CONFIRMED: f64 = 1.5;
/// So many entries of a group are looked at: its rules, its knowledge, its newest events.
const ENTRIES_MAX: usize = 64;
/// So many sources of a rule are compared.
const SOURCES_MAX: usize = 64;
/// How many groups or entries are read at once.
const PAGE: usize = 256;

/// How much is said again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Junk {
    /// Entries that count.
    pub entries: usize,
    /// Those among them whose words another one of their group has too; of equal ones all but one.
    pub restated: usize,
}

impl Junk {
    /// From 0 to 1.
    pub fn share(&self) -> f64 {
        if self.entries == 0 {
            0.0
        } else {
            self.restated as f64 / self.entries as f64
        }
    }
}

/// Measures the whole store.
///
/// # Errors
/// [`KvError`] when it cannot be read.
pub fn measure(records: &Records) -> Result<Junk, KvError> {
    let mut junk = Junk::default();
    let mut group: Option<GroupKey> = None;
    loop {
        // The moment does not matter: only keys are looked at.
        let page = records.groups(group.as_ref(), PAGE, Timestamp::default())?;
        let Some(last) = page.last() else { return Ok(junk) };
        group = Some(last.key.clone());
        for summary in &page {
            count(records, &summary.key, &mut junk)?;
        }
    }
}

fn count(records: &Records, group: &GroupKey, junk: &mut Junk) -> Result<(), KvError> {
    let mut seen = HashSet::new();
    let mut after: Option<Entry> = None;
    loop {
        let page = records.entries(group, after.as_ref(), PAGE)?;
        let is_last = page.len() < PAGE;
        junk.entries += page.len();
        junk.restated += page.iter().filter(|entry| !seen.insert(entry.words)).count();
        after = page.into_iter().next_back();
        if is_last {
            return Ok(());
        }
    }
}

/// Whether memory knows already what an event would tell it: then the event is not stored.
///
/// It is known where a living rule of its sign says the very same or was distilled from these words and is confirmed, and where the
/// same words alone carry more attention than any threshold asks for. A rule makes nothing known that
/// speaks against it; only the same words, said often enough, do.
///
/// # Errors
/// [`KvError`] when the store cannot be read.
pub fn knows(records: &Records, event: &Megram, now: Timestamp) -> Result<bool, KvError> {
    if event.level != Level::M || event.state == MacroState::Remember || event.space == PREFERENCE_SPACE {
        return Ok(false);
    }
    let group = GroupKey::new(&event.space, &event.entity);
    let potentials = records.potentials(&event.space, &event.entity, now)?;
    // Nearly always: a group that has neither a rule nor much history.
    if potentials.attention.get() < 1.0 {
        return Ok(false);
    }
    let told = Entry::of(event);
    let same_sign = |entry: &Entry| entry.sigma.get() * told.sigma.get() > 0.0;
    let entries = records.entries(&group, None, ENTRIES_MAX)?;
    let gathered: f64 = entries
        .iter()
        .filter(|entry| entry.words == told.words && entry.level != Level::C && entry.sigma == told.sigma)
        .map(|entry| energy(entry.f, entry.k, entry.created_at, now))
        .sum();
    if gathered >= ENOUGH {
        return Ok(true);
    }
    let rules = entries
        .iter()
        .filter(|entry| entry.level == Level::C && same_sign(entry))
        .map(|rule| rule.id.clone())
        .collect::<Vec<_>>();
    let is_confirmed = potentials.decision.get() * told.sigma.get().signum() >= CONFIRMED;
    for rule in records.get_many(&rules)? {
        if Entry::of(&rule).words == told.words {
            return Ok(true);
        }
        if is_confirmed {
            let sources = rule.sources.get(..SOURCES_MAX).unwrap_or(&rule.sources);
            let evidence = records.get_many(sources)?;
            if evidence.iter().any(|source| Entry::of(source).words == told.words) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dreamer::establish::establish;
    use crate::dreamer::{Mode, Params, Pass, Scope};
    use crate::kv::InMemoryKv;
    use crate::records::Edit;
    use crate::testing::{at, megram};
    use std::sync::Arc;

    fn event(number: usize, words: &str, sigma: f64) -> Megram {
        let mut event = megram(
            &format!("{number:06}"),
            "intent:count_the_files",
            "env:local",
            0.9,
            sigma,
        );
        event.state = if sigma < 0.0 {
            MacroState::Abandon
        } else {
            MacroState::Accept
        };
        event.content = words.to_owned();
        event
    }

    fn store() -> Records {
        Records::open(Arc::new(InMemoryKv::new())).unwrap()
    }

    /// Writes as the memory's thread does: what is known is refused. How many were admitted.
    fn write(records: &Records, events: impl IntoIterator<Item = Megram>) -> usize {
        let mut admitted = 0;
        for event in events {
            if !knows(records, &event, at()).unwrap() {
                records.commit(&[Edit::Store(event)], at()).unwrap();
                admitted += 1;
            }
        }
        admitted
    }

    fn dream(records: &Records) -> usize {
        let tidied = Pass {
            records,
            params: Params::default(),
            now: at(),
            mode: Mode::Perform,
            stop: &|| false,
            on_action: &mut |_, _| {},
        }
        .run(&Scope::Everything)
        .unwrap();
        for proposal in &tidied.proposals {
            establish(records, proposal, "Count with find.", at()).unwrap().unwrap();
        }
        tidied.proposals.len()
    }

    #[test]
    fn repetitions_are_kept_up_to_a_rule_and_refused_beyond_it() {
        let records = store();
        assert_eq!(
            write(&records, (0..100).map(|i| event(i, "find counts them", 1.0))),
            9,
            "8.1 of attention"
        );
        assert_eq!(dream(&records), 1);
        let more = write(&records, (200..300).map(|i| event(i, "find counts them", 1.0)));
        assert_eq!(more, 1, "a rule may have one confirmation");
        assert_eq!(
            write(&records, [event(400, "Count with  FIND.", 1.0)]),
            0,
            "the rule itself, told as news"
        );
        assert_eq!(dream(&records), 0, "and no model is asked again");
        assert_eq!(write(&records, [event(500, "fd counts them", 1.0)]), 1, "news is news");
        assert_eq!(
            write(&records, [event(501, "find counts them", -1.0)]),
            1,
            "and what speaks against it is heard"
        );
    }

    #[test]
    fn the_measure_counts_what_is_said_again() {
        let records = store();
        assert_eq!(measure(&records).unwrap(), Junk::default());
        assert!(Junk::default().share().abs() < f64::EPSILON, "nothing is no junk");
        write(&records, (0..4).map(|i| event(i, "the same", 1.0)));
        write(&records, [event(10, "something else", 1.0)]);
        assert_eq!(
            measure(&records).unwrap(),
            Junk {
                entries: 5,
                restated: 3
            }
        );
    }
}

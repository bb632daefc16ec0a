//! Several records that say the same become one, in one commit; of those that are gone a *trace* stays (design §15).
//!
//! A trace says what its record weighed, and into which record it went. So it does not count a second time when an older export brings
//! it back, and a moment before the fold still sees it. It goes when the record that it went into goes, or when it has faded.
//!
//! Owns: folding within a commit, traces and their stored form. Must not know: who decides which records are alike.

use crate::codec;
use crate::commit::{PAGE, Txn};
use crate::keys;
use crate::kv::{Batch, KvError, Pair};
use crate::potentials::{contribution, energy};
use crate::records::{Records, Stored, same_words};
use crate::view::GroupKey;
use artoo_protocol::message::{Level, MacroState, Megram};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, TaskId, Timestamp, Valence};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub mod exporting;
pub mod taking;

/// A trace of what has become weaker than this goes: counted a second time it would change nothing.
const FADED: f64 = 1e-6;
/// Longest way from a record that is gone to the one that stands for it. It is made short whenever it is gone.
const WAY_MAX: usize = 100_000;

/// What is left of a record that became part of another one; and of that other one while it is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trace {
    /// The record that it became part of; `None` for one that others became part of and that is there itself.
    into: Option<MegramId>,
    created_at: Timestamp,
    state: MacroState,
    f: Magnitude,
    sigma: Valence,
    k: DecayPerDay,
    /// Whether it was an event of its own, and not the sum of others or the same one at another level.
    is_event: bool,
    /// The event that it was at another level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    same_as: Option<MegramId>,
}

impl Trace {
    fn of(megram: &Megram, into: Option<&MegramId>, is_event: bool) -> Self {
        Self {
            same_as: None,
            into: into.cloned(),
            created_at: megram.created_at,
            state: megram.state,
            f: megram.f,
            sigma: megram.sigma,
            k: megram.k,
            is_event,
        }
    }

    /// The event as it was, but for its spelling.
    fn event(&self, id: &MegramId, part_of: &Megram) -> Megram {
        Megram {
            id: id.clone(),
            level: Level::M,
            created_at: self.created_at,
            last_recalled_at: None,
            state: self.state,
            f: self.f,
            sigma: self.sigma,
            k: self.k,
            sources: Vec::new(),
            supersedes: None,
            origin: None,
            ..part_of.clone()
        }
    }
}

/// Several records of the same words, sign and rate as one, made when the newest of them was and as strong as all of them were then:
/// Σ f·e^(−k(t−tᵢ)) = e^(−k(t−r)) · Σ f·e^(−k(r−tᵢ)), so it weighs at every later moment what they weighed. `None` where there are none,
/// or where their strength is beyond any measure.
pub fn folded(alike: &[Megram], level: Level, now: Timestamp) -> Option<Megram> {
    let newest = newest(alike)?;
    let strength: f64 = alike.iter().map(|megram| contribution(megram, newest.created_at)).sum();
    let spent: BTreeSet<&MegramId> = alike.iter().flat_map(|megram| &megram.sources).collect();
    Some(Megram {
        id: MegramId::derive(now, &TaskId::new(newest.id.as_str()), 3),
        level,
        f: Magnitude::new(strength).ok()?,
        last_recalled_at: None,
        sources: spent.into_iter().cloned().collect(),
        supersedes: Some(newest.id.clone()),
        ..newest.clone()
    })
}

fn newest(megrams: &[Megram]) -> Option<&Megram> {
    megrams.iter().max_by_key(|megram| (megram.created_at, &megram.id))
}

fn is_alike(one: &Megram, other: &Megram) -> bool {
    let numbers = |megram: &Megram| (megram.sigma, megram.k, megram.state);
    numbers(one) == numbers(other)
        && GroupKey::of(one) == GroupKey::of(other)
        && matches!(one.level, Level::M | Level::K)
        && one.state != MacroState::Remember
        // Who chose them compared a short sum of the words.
        && same_words(&one.content, &other.content)
}

impl Txn<'_> {
    /// Makes one record of those among these that are there, count, and say what the newest of them says. The event that the newest
    /// goes back to is replaced and stays to be read; all others go.
    pub(crate) fn fold(&mut self, ids: &[MegramId], level: Level) -> Result<Stored, KvError> {
        let mut alike = Vec::with_capacity(ids.len());
        for id in ids {
            // What was chosen may have been forgotten since.
            if let Some(megram) = self.record(id)?
                && !self.has_ended(id)?
            {
                alike.push(megram);
            }
        }
        let Some(newest) = newest(&alike).cloned() else {
            return Ok(Stored::Absent);
        };
        alike.retain(|megram| is_alike(megram, &newest));
        let Some(whole) = folded(&alike, level, self.now()).filter(|_| alike.len() > 1) else {
            return Ok(Stored::Absent);
        };
        let mut above = self.lineage(&newest)?;
        // A sum without an event below it, as an import may leave one, goes like any other.
        let is_sum = match above.last() {
            Some((last, _)) => self.trace(&GroupKey::of(last), &last.id)?.is_some(),
            None => false,
        };
        let kept = if is_sum {
            None
        } else {
            above.pop().map(|(kept, _)| kept.id)
        };
        let whole = Megram {
            supersedes: kept,
            ..whole
        };
        let stored = self.store(&whole)?;
        if stored != Stored::New {
            return Ok(stored);
        }
        self.put_trace(&whole, None, false);
        for (gone, _) in above {
            self.put_trace(&gone, Some(&whole.id), false);
            self.remove_one(&gone)?;
        }
        for megram in alike.iter().filter(|megram| megram.id != newest.id) {
            let lineage = self.lineage(megram)?;
            let event = lineage.iter().find(|(_, is_event)| *is_event).map(|(event, _)| event);
            for (gone, is_event) in &lineage {
                // What was promoted keeps its clock.
                let same = event.filter(|event| !is_event && event.created_at == gone.created_at && event.f == gone.f);
                let trace = Trace {
                    same_as: same.map(|event| event.id.clone()),
                    ..Trace::of(gone, Some(&whole.id), *is_event)
                };
                self.put_sealed(&keys::trace(&gone.space, &gone.entity, &gone.id), &trace);
            }
            self.remove(&megram.id)?;
        }
        self.has_traces = true;
        Ok(Stored::Folded {
            into: whole.id,
            of: alike.len(),
        })
    }

    /// A record and those that go with it, each with whether it is the event: the newest of them, or what lies below a sum of others.
    fn lineage(&mut self, megram: &Megram) -> Result<Vec<(Megram, bool)>, KvError> {
        let group = GroupKey::of(megram);
        let (mut lineage, mut event, mut next) = (Vec::new(), 0, Some(megram.clone()));
        let mut seen = HashSet::new();
        while let Some(megram) = next.take().filter(|megram| seen.insert(megram.id.clone())) {
            if self.trace(&group, &megram.id)?.is_some() {
                event = lineage.len() + 1;
            }
            if let Some(before) = &megram.supersedes {
                next = self.record(before)?.filter(|before| GroupKey::of(before) == group);
            }
            lineage.push(megram);
        }
        let numbered = lineage.into_iter().enumerate();
        Ok(numbered.map(|(number, megram)| (megram, number == event)).collect())
    }

    /// Whether a record is not there because it became part of one that is.
    pub(crate) fn is_part(&mut self, megram: &Megram) -> Result<bool, KvError> {
        if !self.has_traces {
            return Ok(false);
        }
        Ok(self.way(&GroupKey::of(megram), &megram.id)?.is_some())
    }

    /// The record that one became part of, which is there.
    fn way(&mut self, group: &GroupKey, id: &MegramId) -> Result<Option<MegramId>, KvError> {
        let mut way: Vec<(MegramId, Trace)> = Vec::new();
        let mut id = id.clone();
        while let Some(trace) = self.trace(group, &id)? {
            let Some(into) = trace.into.clone() else {
                return Ok(None);
            };
            way.push((id, trace));
            if self.get(keys::record(&into).as_bytes())?.is_some() {
                // The next one who goes it has it shorter.
                way.pop();
                for (id, trace) in way {
                    let into = Some(into.clone());
                    self.put_sealed(&keys::trace(&group.space, &group.entity, &id), &Trace { into, ..trace });
                }
                return Ok(Some(into));
            }
            if way.len() > WAY_MAX {
                return Ok(None);
            }
            id = into;
        }
        Ok(None)
    }

    fn trace(&mut self, group: &GroupKey, id: &MegramId) -> Result<Option<Trace>, KvError> {
        let key = keys::trace(&group.space, &group.entity, id);
        let value = self.get(key.as_bytes())?;
        Ok(value.and_then(|value| codec::read_sealed(&value)))
    }

    fn put_trace(&mut self, megram: &Megram, into: Option<&MegramId>, is_event: bool) {
        let key = keys::trace(&megram.space, &megram.entity, &megram.id);
        self.put_sealed(&key, &Trace::of(megram, into, is_event));
    }

    fn put_sealed(&mut self, key: &str, trace: &Trace) {
        // Numbers that JSON cannot hold there are none of.
        if let Some(value) = codec::seal_json(trace) {
            self.put(key, value);
        }
    }
}

impl Records {
    /// All records of a group, and what became part of them: for any moment, what [`living`](crate::potentials::living) leaves of
    /// those that were made until then is what counted then, forgotten ones left out.
    pub fn history(&self, space: &str, entity: &str) -> Result<Vec<Megram>, KvError> {
        let mut all = self.group(space, entity)?;
        let folded = self.folded_in(&GroupKey::new(space, entity), &all)?;
        if folded.is_empty() {
            return Ok(all);
        }
        // Whoever takes the place of the whole takes that of its parts.
        let before: HashMap<MegramId, MegramId> = all
            .iter()
            .filter_map(|megram| Some((megram.id.clone(), megram.supersedes.clone()?)))
            .collect();
        for megram in &mut all {
            let (mut id, mut seen) = (megram.id.clone(), HashSet::new());
            while seen.insert(id.clone()) {
                if let Some(parts) = folded.get(&id) {
                    megram.sources.extend(parts.iter().map(|part| part.id.clone()));
                }
                match before.get(&id) {
                    Some(before) => id = before.clone(),
                    None => break,
                }
            }
        }
        all.extend(folded.into_values().flatten());
        Ok(all)
    }

    /// Hears of every event that had happened `at` a moment and is now part of a record that was made later.
    pub fn each_part_at(&self, at: Timestamp, hear: &mut dyn FnMut(Megram)) -> Result<(), KvError> {
        let mut groups = BTreeSet::new();
        self.each_page(keys::TRACES, &mut |page| {
            groups.extend(page.iter().filter_map(|(key, _)| GroupKey::of_tag(key)));
            Ok(())
        })?;
        for group in groups {
            let all = self.group(&group.space, &group.entity)?;
            let later: HashSet<&MegramId> = all.iter().filter(|m| m.created_at > at).map(|m| &m.id).collect();
            let folded = self.folded_in(&group, &all)?.into_iter();
            let parts = folded
                .filter(|(whole, _)| later.contains(whole))
                .flat_map(|(_, parts)| parts);
            parts.filter(|part| part.created_at <= at).for_each(&mut *hear);
        }
        Ok(())
    }

    /// The events that became part of these records, by the record.
    fn folded_in(&self, group: &GroupKey, all: &[Megram]) -> Result<BTreeMap<MegramId, Vec<Megram>>, KvError> {
        let mut traces: BTreeMap<MegramId, Trace> = BTreeMap::new();
        self.each_page(&keys::traces(&group.space, &group.entity), &mut |page| {
            traces.extend(page.iter().filter_map(read));
            Ok(())
        })?;
        let there: HashMap<&MegramId, &Megram> = all.iter().map(|megram| (&megram.id, megram)).collect();
        let mut folded: BTreeMap<MegramId, Vec<Megram>> = BTreeMap::new();
        let events = traces
            .iter()
            .filter(|(id, trace)| trace.is_event && !there.contains_key(*id));
        for (id, trace) in events {
            let into = exporting::led_to(trace, &traces, |id| there.contains_key(id));
            if let Some(whole) = into.and_then(|into| there.get(into)) {
                let part = trace.event(id, whole);
                folded.entry(whole.id.clone()).or_default().push(part);
            }
        }
        Ok(folded)
    }

    /// Removes the traces of one page that say nothing any more; the key behind which the next page begins.
    pub(crate) fn sweep_traces(&self, after: Option<&[u8]>, now: Timestamp) -> Result<Option<Vec<u8>>, KvError> {
        // Nobody folds meanwhile.
        let _writing = self.stop_writing();
        let page = self.kv().scan(keys::TRACES.as_bytes(), after, PAGE)?;
        let next = page.last().filter(|_| page.len() == PAGE).map(|(key, _)| key.clone());
        let traces: Vec<(&Vec<u8>, Option<Found>)> = page.iter().map(|pair| (&pair.0, found(pair))).collect();
        // Many became part of the same.
        let wholes: BTreeSet<(&GroupKey, &MegramId)> = traces
            .iter()
            .filter_map(|(_, found)| found.as_ref())
            .map(whole)
            .collect();
        let wanted: Vec<Vec<u8>> = wholes
            .iter()
            .flat_map(|(group, id)| [keys::record(id), keys::trace(&group.space, &group.entity, id)])
            .map(String::into_bytes)
            .collect();
        let there = self.kv().get_many(&wanted)?;
        let there: BTreeMap<(&GroupKey, &MegramId), (bool, bool)> = wholes
            .iter()
            .copied()
            .zip(there.chunks(2))
            .map(|(whole, found)| {
                let is_there = |value: Option<&Option<Vec<u8>>>| value.is_some_and(Option::is_some);
                (whole, (is_there(found.first()), is_there(found.last())))
            })
            .collect();
        let mut batch = Batch::new();
        for (key, found) in &traces {
            let says_something = found.as_ref().is_some_and(|found| {
                let (_, _, trace) = found;
                let (record, way) = there.get(&whole(found)).copied().unwrap_or_default();
                let has_faded = trace.into.is_some() && energy(trace.f, trace.k, trace.created_at, now) < FADED;
                !has_faded && (record || (way && trace.into.is_some()))
            });
            if !says_something {
                batch.delete(key.as_slice());
            }
        }
        if !batch.is_empty() {
            self.kv().apply(batch)?;
        }
        Ok(next)
    }
}

/// A trace with the group and the id that its key says.
type Found = (GroupKey, MegramId, Trace);

fn found(pair: &Pair) -> Option<Found> {
    let (id, trace) = read(pair)?;
    Some((GroupKey::of_tag(&pair.0)?, id, trace))
}

/// The record that stands for what left a trace: perhaps itself.
fn whole((group, id, trace): &Found) -> (&GroupKey, &MegramId) {
    (group, trace.into.as_ref().unwrap_or(id))
}

fn read((key, value): &Pair) -> Option<(MegramId, Trace)> {
    Some((keys::id_of(key)?, codec::read_sealed(value)?))
}

/// Whether a trace can be read.
pub(crate) fn is_sound(pair: &Pair) -> bool {
    read(pair).is_some()
}

#[cfg(test)]
mod tests;

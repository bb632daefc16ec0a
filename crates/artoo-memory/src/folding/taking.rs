//! Taking in what was exported, here or elsewhere, so that nothing counts twice, whatever was folded or promoted here or there (design §15).
//!
//! A record that others became part of is exported with the ids and numbers of these. Where some of them are known already, as themselves
//! or as parts of another record, a record of its own is made of what the others weigh; where all are, it is known.
//!
//! Owns: what is known of a record by its parts. Must not know: files.

use super::FADED;
use super::exporting::{Exported, Part};
use crate::bounds::names_too_much;
use crate::commit::{Edit, Txn};
use crate::keys;
use crate::kv::KvError;
use crate::potentials::energy;
use crate::records::{Records, Stored, same_words};
use crate::view::GroupKey;
use artoo_protocol::message::{Level, MacroState, Megram};
use artoo_protocol::{Magnitude, MegramId, TaskId, Timestamp};
use std::collections::{HashMap, HashSet};

/// Takes in the lines of an export, which should come in the order of [`Exported::phase`].
pub struct Taking<'a> {
    records: &'a Records,
    /// What stands here for records that are known without being there.
    in_place_of: HashMap<MegramId, Vec<MegramId>>,
}

impl<'a> Taking<'a> {
    /// Into these records.
    pub fn into(records: &'a Records) -> Self {
        Self {
            records,
            in_place_of: HashMap::new(),
        }
    }

    /// Takes some lines in, all or none, unless they are too large to be written in one piece; what became of each. Durable after the
    /// store's next flush.
    ///
    /// # Errors
    /// When the store cannot be read or written; then it is safe to try again.
    pub fn take(&mut self, lines: &[Exported], now: Timestamp) -> Result<Vec<Stored>, KvError> {
        match self.take_together(lines, now) {
            Err(KvError::TooLarge { .. }) if lines.len() > 1 => {
                let (some, others) = lines.split_at(lines.len() / 2);
                let mut stored = self.take(some, now)?;
                stored.extend(self.take(others, now)?);
                Ok(stored)
            }
            Err(KvError::TooLarge { .. }) => Ok(vec![Stored::Refused(
                "with all that it names and is made of it is too large to be written in one piece",
            )]),
            taken => taken,
        }
    }

    fn take_together(&mut self, lines: &[Exported], now: Timestamp) -> Result<Vec<Stored>, KvError> {
        let refused: Vec<Option<&str>> = lines.iter().map(names_too_much).collect();
        let taken = || {
            lines
                .iter()
                .zip(&refused)
                .map(|(line, why)| why.is_none().then_some(line))
        };
        let edits: Vec<Option<Edit>> = taken().map(|line| self.edit(line?)).collect();
        let made: Vec<Edit> = edits.iter().flatten().cloned().collect();
        let mut stored = self.records.commit(&made, now)?.into_iter();
        let outcomes: Vec<Stored> = edits
            .iter()
            .zip(&refused)
            .map(|(edit, refused)| match (refused, edit) {
                (Some(why), _) => Stored::Refused(why),
                (None, Some(_)) => stored.next().unwrap_or(Stored::Known),
                (None, None) => Stored::Known,
            })
            .collect();
        for line in taken().flatten() {
            self.note_absent(line, now)?;
        }
        Ok(outcomes)
    }

    /// What is to be done with a line; nothing where it is another level of something that is known by its parts.
    fn edit(&self, line: &Exported) -> Option<Edit> {
        let mut megram = line.megram.clone();
        let before = megram.supersedes.as_ref().filter(|_| megram.level != Level::C);
        if before.is_some_and(|before| self.in_place_of.contains_key(before)) {
            return None;
        }
        if megram.sources.iter().any(|id| self.in_place_of.contains_key(id)) {
            let mut seen = HashSet::new();
            megram.sources = megram
                .sources
                .iter()
                .flat_map(|id| self.in_place_of.get(id).cloned().unwrap_or_else(|| vec![id.clone()]))
                .filter(|id| *id != megram.id && seen.insert(id.clone()))
                .collect();
        }
        let parts = line.parts.clone();
        Some(Edit::Take { megram, parts })
    }

    /// Remembers what stands for a record that is known in part or whole and not there under its id, for the rules that were distilled from it.
    fn note_absent(&mut self, line: &Exported, now: Timestamp) -> Result<(), KvError> {
        let megram = &line.megram;
        if self.records.kv().get(keys::record(&megram.id).as_bytes())?.is_some() {
            return Ok(());
        }
        let mut txn = Txn::new(&**self.records.kv(), now, true);
        let group = GroupKey::of(megram);
        let own = [&megram.id].into_iter().chain(&megram.supersedes);
        let mut standing: Vec<MegramId> = Vec::new();
        for id in own.chain(line.parts.iter().map(|part| &part.id)) {
            if let Some(id) = txn.latest_for(&group, id)?
                && !standing.contains(&id)
            {
                standing.push(id);
            }
        }
        let before = megram.supersedes.as_ref().and_then(|id| self.in_place_of.get(id));
        standing.extend(before.cloned().unwrap_or_default());
        self.in_place_of.insert(megram.id.clone(), standing);
        Ok(())
    }
}

impl Txn<'_> {
    /// Stores a record of an export for what is not known of it yet.
    pub(crate) fn take(&mut self, megram: &Megram, parts: &[Part]) -> Result<Stored, KvError> {
        if let Some(there) = self.record(&megram.id)? {
            // What it was distilled from may have other ids here.
            let sources = if megram.sources.is_empty() {
                Vec::new()
            } else {
                there.sources
            };
            return self.store(&Megram {
                sources,
                ..megram.clone()
            });
        }
        let may_be_whole = matches!(megram.level, Level::M | Level::K) && megram.state != MacroState::Remember;
        if parts.is_empty() || !may_be_whole {
            return self.take_one(megram);
        }
        let group = GroupKey::of(megram);
        let weight = |part: &Part| energy(part.f, part.k, part.created_at, megram.created_at);
        let mut here: HashSet<&MegramId> = HashSet::new();
        for part in parts {
            if self.stands_for(&group, &part.id)?.is_some() {
                // At whatever level, it is the same event.
                here.extend([&part.id].into_iter().chain(&part.same_as));
            }
        }
        let (mut news, mut left_out) = (Vec::new(), Vec::new());
        let (mut all, mut known, mut all_known) = (0.0, 0.0, true);
        for part in parts.iter().filter(|part| Some(&part.id) != megram.supersedes.as_ref()) {
            let share = if part.is_event { weight(part) } else { 0.0 };
            all += share;
            if here.contains(&part.id) || part.same_as.as_ref().is_some_and(|event| here.contains(event)) {
                known += share;
                left_out.extend(part.is_event.then_some(&part.id));
            } else {
                all_known &= !part.is_event;
                news.push(part);
            }
        }
        // The event that it replaces, and what has faded, is what the parts do not weigh.
        let own = (megram.f.get() - all).max(0.0);
        let replaces = match &megram.supersedes {
            Some(id) => self.stands_for(&group, id)?.map(|found| (id, found)),
            None => None,
        };
        // Taken before under another id, perhaps by an import that was cut off before the event came: then its own is in that.
        let is_taken = self.way(&group, &megram.id)?.is_some();
        let is_own_here = is_taken || replaces.is_some();
        let is_own_counted = is_taken
            || match replaces {
                Some((id, found)) => found != *id || self.has_ended(id)?,
                None => false,
            };
        if is_own_counted {
            known += own;
            left_out.push(megram.supersedes.as_ref().unwrap_or(&megram.id));
        }
        let left = Magnitude::new(megram.f.get() - known).unwrap_or_default();
        if all_known && is_own_here || energy(left, megram.k, megram.created_at, self.now()) < FADED {
            return Ok(Stored::Known);
        }
        let mut whole = megram.clone();
        if known > 0.0 {
            // It is not what the other store means by this id.
            whole.id = rest_id(megram, &left_out);
            whole.f = left;
            whole.supersedes = megram.supersedes.clone().filter(|_| !is_own_counted);
        }
        let stored = self.store(&whole)?;
        if stored == Stored::New {
            for part in news {
                if part.id != whole.id && !part.id.as_str().is_empty() {
                    self.put_sealed(
                        &keys::trace(&group.space, &group.entity, &part.id),
                        &part.trace(&whole.id),
                    );
                }
            }
            if whole.id != megram.id && !is_taken {
                self.put_trace(megram, Some(&whole.id), false);
            }
            self.put_trace(&whole, None, false);
            self.has_traces = true;
        }
        Ok(stored)
    }

    /// A record without parts: perhaps another level of one that has another level here already, or that is part of another one.
    fn take_one(&mut self, megram: &Megram) -> Result<Stored, KvError> {
        let Some(before) = megram.supersedes.as_ref().filter(|_| megram.level != Level::C) else {
            return self.store(megram);
        };
        let is_known = match self.record(before)? {
            Some(there) => is_same_event(&there, megram) && self.has_ended(before)?,
            None => self.has_traces && self.way(&GroupKey::of(megram), before)?.is_some(),
        };
        if is_known {
            Ok(Stored::Known)
        } else {
            self.store(megram)
        }
    }

    /// The record that an id means here: itself, or the one that it became part of.
    fn stands_for(&mut self, group: &GroupKey, id: &MegramId) -> Result<Option<MegramId>, KvError> {
        if let Some(there) = self.record(id)? {
            return Ok((GroupKey::of(&there) == *group).then(|| id.clone()));
        }
        self.way(group, id)
    }

    /// The same, and then what took its place.
    fn latest_for(&mut self, group: &GroupKey, id: &MegramId) -> Result<Option<MegramId>, KvError> {
        let mut latest = self.stands_for(group, id)?;
        let mut seen = HashSet::new();
        while let Some(id) = &latest
            && seen.insert(id.clone())
            && let Some(next) = self.replaced_by(id)?
        {
            latest = Some(next);
        }
        Ok(latest)
    }
}

/// The id of what is left of a record without some of its parts: the same whenever it is taken, and wherever.
fn rest_id(megram: &Megram, left_out: &[&MegramId]) -> MegramId {
    let mut seed = megram.id.as_str().to_owned();
    for id in left_out {
        seed.push(' ');
        seed.push_str(id.as_str());
    }
    MegramId::derive(megram.created_at, &TaskId::new(seed), 4)
}

/// Whether a record is the same event as another one, perhaps at another level.
fn is_same_event(one: &Megram, other: &Megram) -> bool {
    let numbers = |megram: &Megram| (megram.sigma, megram.k, megram.state, megram.created_at);
    numbers(one) == numbers(other)
        && GroupKey::of(one) == GroupKey::of(other)
        && same_words(&one.content, &other.content)
}

#[cfg(test)]
mod tests;

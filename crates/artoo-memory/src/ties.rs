//! What one record means for the others: whom it ends, who ends it, what goes with it (design §15).
//!
//! A record ends another of its group by superseding it, or by being a rule that was distilled from it and not superseded itself.
//! Each such tie is a key of its own, so that whether a record counts can be seen without reading its group.
//!
//! Owns: storing and removing one record within a commit. Must not know: batches, sums.

use crate::bounds::{ID_MAX, names_too_long_an_id};
use crate::commit::Txn;
use crate::entry::Entry;
use crate::kv::KvError;
use crate::records::{Stored, same_words, too_long};
use crate::view::GroupKey;
use crate::{codec, keys};
use artoo_protocol::MegramId;
use artoo_protocol::message::{Level, MacroState, Megram};
use std::collections::BTreeSet;

/// The record named replaces the other.
const REPLACED: &[u8] = b"r";
/// The record named is a rule that was distilled from the other.
const DISTILLED: &[u8] = b"s";

impl Txn<'_> {
    pub(crate) fn store(&mut self, megram: &Megram) -> Result<Stored, KvError> {
        if megram.level == Level::T {
            return Ok(Stored::Refused("the laws live in the prompts, not in the store"));
        }
        if let Some(why) = too_long(megram) {
            return Ok(Stored::Refused(why));
        }
        if megram.id.as_str().is_empty() || megram.id.as_str().len() > ID_MAX {
            return Ok(Stored::Refused("no usable id"));
        }
        if let Some(there) = self.get(keys::record(&megram.id).as_bytes())? {
            let unrecalled = |megram: Megram| Megram {
                last_recalled_at: None,
                ..megram
            };
            let is_same = codec::decode(&there).is_some_and(|there| unrecalled(there) == unrecalled(megram.clone()));
            return Ok(if is_same {
                Stored::Known
            } else {
                Stored::Refused("another memory has this id")
            });
        }
        if names_too_long_an_id(megram) {
            return Ok(Stored::Refused(
                "the id of a memory that it names is longer than 200 bytes",
            ));
        }
        if self.is_part(megram)? {
            return Ok(Stored::Known);
        }
        if megram.state == MacroState::Remember && self.was_said(megram)? {
            return Ok(Stored::Known);
        }
        let Some(value) = codec::encode(megram) else {
            return Ok(Stored::Refused("it cannot be written as JSON"));
        };
        let touched = self.touched(megram)?;
        self.put(keys::record(&megram.id), value);
        self.put_index(megram);
        self.link(megram)?;
        self.settle_touched(touched)?;
        // Only what was referred to before it came can have ended already.
        let may_have_ended = self.has_orphans || targets(megram).any(|id| *id == megram.id);
        if !may_have_ended || !self.has_ended(&megram.id)? {
            self.set_living(megram, true)?;
        }
        Ok(Stored::New)
    }

    /// Whether the user asked for the very same before.
    fn was_said(&mut self, megram: &Megram) -> Result<bool, KvError> {
        let words = Entry::of(megram).words;
        let prefix = keys::entries_of(&megram.space, &megram.entity, megram.level);
        let mut same = Vec::new();
        self.each(prefix.as_bytes(), &mut |key, value| {
            same.extend(Entry::read(key, value).filter(|entry| entry.words == words && entry.sigma == megram.sigma));
        })?;
        for entry in same {
            if self
                .record(&entry.id)?
                .is_some_and(|known| same_words(&known.content, &megram.content))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) fn remove(&mut self, id: &MegramId) -> Result<Stored, KvError> {
        let mut next = Some(id.clone());
        let mut group = None;
        let mut outcome = Stored::Absent;
        while let Some(id) = next.take() {
            let Some(megram) = self.record(&id)? else { break };
            if *group.get_or_insert(GroupKey::of(&megram)) != GroupKey::of(&megram) {
                break;
            }
            self.remove_one(&megram)?;
            outcome = Stored::Removed;
            next = megram.supersedes;
        }
        Ok(outcome)
    }

    /// Removes a record, and nothing that it had replaced.
    pub(crate) fn remove_one(&mut self, megram: &Megram) -> Result<(), KvError> {
        let id = &megram.id;
        let touched = self.touched(megram)?;
        if !self.has_ended(id)? {
            self.set_living(megram, false)?;
        }
        for key in [
            keys::record(id),
            keys::tag(&megram.space, &megram.entity, id),
            keys::level(megram.level, id),
            keys::recalled(id),
        ] {
            self.delete(&key);
        }
        for target in targets(megram) {
            self.delete(&keys::ended(target, id));
            self.delete(&keys::orphan(target, id));
        }
        for (key, kind) in self.all(keys::ended_by(id).as_bytes())? {
            if let Some(by) = keys::id_of(&key) {
                self.put(keys::orphan(id, &by), kind);
                self.has_orphans = true;
            }
            self.delete_bytes(key);
        }
        self.settle_touched(touched)
    }

    /// The other records of the group whose standing may change with this one, each with whether it counts now.
    fn touched(&mut self, megram: &Megram) -> Result<Vec<(Megram, bool)>, KvError> {
        let mut ids: BTreeSet<MegramId> = targets(megram).cloned().collect();
        if let Some(replaced) = &megram.supersedes
            && let Some(replaced) = self.record(replaced)?
        {
            ids.extend(replaced.sources);
        }
        ids.remove(&megram.id);
        let mut touched = Vec::with_capacity(ids.len());
        for id in ids {
            if let Some(other) = self.record(&id)?
                && GroupKey::of(&other) == GroupKey::of(megram)
            {
                let is_living = !self.has_ended(&id)?;
                touched.push((other, is_living));
            }
        }
        Ok(touched)
    }

    fn settle_touched(&mut self, touched: Vec<(Megram, bool)>) -> Result<(), KvError> {
        for (megram, was_living) in touched {
            // A chain that is removed may have taken it already.
            let is_there = self.get(keys::record(&megram.id).as_bytes())?.is_some();
            let is_living = is_there && !self.has_ended(&megram.id)?;
            if is_living != was_living {
                self.set_living(&megram, is_living)?;
            }
        }
        Ok(())
    }

    pub(crate) fn put_index(&mut self, megram: &Megram) {
        self.put(keys::tag(&megram.space, &megram.entity, &megram.id), "");
        self.put(keys::level(megram.level, &megram.id), "");
    }

    /// Writes down whom this record ends, and who has been waiting to end it.
    pub(crate) fn link(&mut self, megram: &Megram) -> Result<(), KvError> {
        for (target, kind) in kinds(megram) {
            match self.record(target)? {
                Some(other) if GroupKey::of(&other) == GroupKey::of(megram) => {
                    self.put(keys::ended(target, &megram.id), kind);
                }
                // One of another group may go, and come back in this one.
                Some(_) | None => {
                    self.put(keys::orphan(target, &megram.id), kind);
                    self.has_orphans = true;
                }
            }
        }
        if !self.has_orphans {
            return Ok(());
        }
        for (key, kind) in self.all(keys::orphans(&megram.id).as_bytes())? {
            if let Some(by) = keys::id_of(&key)
                && let Some(other) = self.record(&by)?
            {
                if GroupKey::of(&other) != GroupKey::of(megram) {
                    continue;
                }
                self.put(keys::ended(&megram.id, &by), kind);
            }
            self.delete_bytes(key);
        }
        Ok(())
    }

    /// The record that took a record's place.
    pub(crate) fn replaced_by(&mut self, id: &MegramId) -> Result<Option<MegramId>, KvError> {
        let ended = self.all(keys::ended_by(id).as_bytes())?;
        let by = ended.iter().find(|(_, kind)| kind == REPLACED);
        Ok(by.and_then(|(key, _)| keys::id_of(key)))
    }

    /// Whether a record was replaced, or distilled into a rule that was not replaced itself.
    pub(crate) fn has_ended(&mut self, id: &MegramId) -> Result<bool, KvError> {
        for (key, kind) in self.all(keys::ended_by(id).as_bytes())? {
            if kind == REPLACED {
                return Ok(true);
            }
            if let Some(by) = keys::id_of(&key)
                && !self
                    .all(keys::ended_by(&by).as_bytes())?
                    .iter()
                    .any(|(_, kind)| kind == REPLACED)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whom a record ends, and how: of two ways the later counts.
pub(crate) fn kinds(megram: &Megram) -> impl Iterator<Item = (&MegramId, &'static [u8])> {
    let ends = megram.supersedes.iter().map(|id| (id, REPLACED));
    megram.sources.iter().map(|id| (id, DISTILLED)).chain(ends)
}

pub(crate) fn targets(megram: &Megram) -> impl Iterator<Item = &MegramId> {
    megram.supersedes.iter().chain(&megram.sources)
}

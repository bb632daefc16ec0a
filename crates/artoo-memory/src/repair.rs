//! Whether everything derived fits the records, and making it fit (design §15).
//!
//! Owns: the comparison and the rebuilding. Must not know: what the derived keys are read for.

use crate::commit::Txn;
use crate::entry::Entry;
use crate::folding::is_sound;
use crate::kv::{Batch, KvError, Pair, REPAIRED_KEY};
use crate::records::Records;
use crate::sums::Sums;
use crate::view::GroupKey;
use crate::{codec, keys};
use artoo_protocol::message::Megram;
use artoo_protocol::{MegramId, Timestamp};
use std::collections::HashSet;

/// What [`Records::repair`] found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Records that can be read.
    pub records: usize,
    /// Records whose checksum is wrong; they were removed.
    pub damaged: usize,
}

/// What [`Records::verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Records that can be read.
    pub records: usize,
    /// Records that count.
    pub living: usize,
    /// Records whose checksum is wrong, or that stand under another's key.
    pub damaged: usize,
    /// Index keys that a record should have and has not.
    pub missing: usize,
    /// Index keys that lead nowhere.
    pub stray: usize,
    /// Groups whose sums are not those of their records.
    pub sums: usize,
    /// Whether derived keys are to be rebuilt anyway: after a repair that was cut short, or in a store of the version before.
    pub is_incomplete: bool,
}

impl Verified {
    /// Whether nothing is wrong.
    pub const fn is_sound(&self) -> bool {
        self.damaged == 0 && self.missing == 0 && self.stray == 0 && self.sums == 0 && !self.is_incomplete
    }
}

impl Records {
    /// Compares everything derived with the records. Changes nothing; a store that others write to meanwhile may seem wrong.
    pub fn verify(&self) -> Result<Verified, KvError> {
        let mut found = Verified {
            is_incomplete: !self.is_derived(),
            ..Verified::default()
        };
        let mut txn = Txn::new(&**self.kv(), Timestamp::default(), true);
        let ended = self.perhaps_ended()?;
        self.each_page(keys::RECORDS, &mut |page| {
            let mut expected = Vec::new();
            for (key, value) in page {
                let Some(megram) = sound(&key, &value) else {
                    found.damaged += 1;
                    continue;
                };
                found.records += 1;
                expected.push(keys::tag(&megram.space, &megram.entity, &megram.id).into_bytes());
                expected.push(keys::level(megram.level, &megram.id).into_bytes());
                if !found.is_incomplete && (!ended.contains(&megram.id) || !txn.has_ended(&megram.id)?) {
                    found.living += 1;
                    expected.push(Entry::of(&megram).key(&megram.space, &megram.entity).into_bytes());
                }
            }
            found.missing += self
                .kv()
                .get_many(&expected)?
                .iter()
                .filter(|value| value.is_none())
                .count();
            Ok(())
        })?;
        self.each_page(keys::TRACES, &mut |page| {
            found.damaged += page.iter().filter(|pair| !is_sound(pair)).count();
            Ok(())
        })?;
        for prefix in ["x|", "l|", "r|", "t|"] {
            self.each_page(prefix, &mut |page| {
                found.stray += self.stray(&page, &ended, &mut txn)?.len();
                Ok(())
            })?;
        }
        if !found.is_incomplete {
            found.sums = self.wrong_sums()?;
        }
        Ok(found)
    }

    /// Makes everything derived fit the records, after damage took some of either: adds what is missing, removes what leads
    /// nowhere and what cannot be read. Cut short, it begins anew at the next opening.
    pub fn repair(&self, now: Timestamp) -> Result<Repaired, KvError> {
        let mut has_orphans = self.stop_writing();
        let (repaired, orphans) = self.derive(now)?;
        *has_orphans = orphans;
        Ok(repaired)
    }

    /// As [`Records::repair`], for who keeps others from committing; also whether there are references to nowhere.
    pub(crate) fn derive(&self, now: Timestamp) -> Result<(Repaired, bool), KvError> {
        let mut batch = Batch::new();
        batch.delete(keys::DERIVED_KEY);
        self.kv().apply(batch)?;
        self.set_derived(false);
        for prefix in keys::DERIVED {
            self.each_page(prefix, &mut |page| {
                self.remove_all(page.into_iter().map(|(key, _)| key))
            })?;
        }
        let mut found = Repaired::default();
        let mut has_orphans = false;
        // First who ended whom, then who is left.
        self.each_page(keys::RECORDS, &mut |page| {
            let mut txn = Txn::new(&**self.kv(), now, has_orphans);
            for (key, value) in page {
                if let Some(megram) = sound(&key, &value) {
                    found.records += 1;
                    txn.put_index(&megram);
                    txn.link(&megram)?;
                } else {
                    found.damaged += 1;
                    txn.delete_bytes(key);
                }
            }
            has_orphans |= txn.has_orphans;
            self.kv().apply(txn.finish()?.0)
        })?;
        self.each_page(keys::TRACES, &mut |page| {
            let damaged: Vec<Pair> = page.into_iter().filter(|pair| !is_sound(pair)).collect();
            found.damaged += damaged.len();
            self.remove_all(damaged.into_iter().map(|(key, _)| key))
        })?;
        for prefix in ["x|", "l|", "r|"] {
            self.each_page(prefix, &mut |page| {
                let mut txn = Txn::new(&**self.kv(), now, has_orphans);
                let stray = self.stray(&page, &HashSet::new(), &mut txn)?;
                self.remove_all(stray.into_iter())
            })?;
        }
        let ended = self.perhaps_ended()?;
        self.each_page(keys::RECORDS, &mut |page| {
            let mut txn = Txn::new(&**self.kv(), now, has_orphans);
            for megram in page.iter().filter_map(|(key, value)| sound(key, value)) {
                if !ended.contains(&megram.id) || !txn.has_ended(&megram.id)? {
                    txn.set_living(&megram, true)?;
                }
            }
            self.kv().apply(txn.finish()?.0)
        })?;
        let mut batch = Batch::new();
        batch.put(keys::FORMAT_KEY, keys::FORMAT);
        batch.put(keys::DERIVED_KEY, keys::FORMAT);
        batch.delete(REPAIRED_KEY);
        self.kv().apply(batch)?;
        self.kv().flush()?;
        self.set_derived(true);
        Ok((found, has_orphans))
    }

    /// The keys of an index that no record asks for.
    fn stray(&self, page: &[Pair], ended: &HashSet<MegramId>, txn: &mut Txn<'_>) -> Result<Vec<Vec<u8>>, KvError> {
        let ids: Vec<Option<MegramId>> = page.iter().map(|(key, _)| keys::id_of(key)).collect();
        let wanted: Vec<Vec<u8>> = ids.iter().flatten().map(|id| keys::record(id).into_bytes()).collect();
        let mut values = self.kv().get_many(&wanted)?.into_iter();
        let mut stray = Vec::new();
        for ((key, _), id) in page.iter().zip(ids) {
            let value = id.is_some().then(|| values.next().flatten()).flatten();
            let megram: Option<Megram> = value.and_then(|value| codec::decode(&value));
            let is_expected = match megram {
                None => false,
                Some(megram) => {
                    let entry = Entry::of(&megram).key(&megram.space, &megram.entity);
                    *key == keys::tag(&megram.space, &megram.entity, &megram.id).into_bytes()
                        || *key == keys::level(megram.level, &megram.id).into_bytes()
                        || *key == keys::recalled(&megram.id).into_bytes()
                        || (*key == entry.into_bytes()
                            && (!ended.contains(&megram.id) || !txn.has_ended(&megram.id)?))
                }
            };
            if !is_expected {
                stray.push(key.clone());
            }
        }
        Ok(stray)
    }

    /// The records that some other claims to have ended.
    fn perhaps_ended(&self) -> Result<HashSet<MegramId>, KvError> {
        let mut ended = HashSet::new();
        self.each_page("p|", &mut |page| {
            let parts = page.iter().filter_map(|(key, _)| keys::parts(key)?.into_iter().next());
            ended.extend(parts.map(MegramId::new));
            Ok(())
        })?;
        Ok(ended)
    }

    /// How many groups have sums that are not those of their entries.
    fn wrong_sums(&self) -> Result<usize, KvError> {
        let mut wrong = 0;
        let mut seen = HashSet::new();
        let mut group: Option<Resummed> = None;
        let mut end = |group: Option<Resummed>| {
            if let Some(group) = group {
                wrong += usize::from(!group.is_right());
                seen.insert(keys::sums(&group.key.space, &group.key.entity).into_bytes());
            }
        };
        self.each_page("t|", &mut |page| {
            for (key, value) in page {
                let Some(parts) = keys::parts(&key) else { continue };
                let [space, entity, ..] = parts.as_slice() else {
                    continue;
                };
                let Some(entry) = Entry::read(&key, &value) else {
                    continue;
                };
                if group
                    .as_ref()
                    .is_none_or(|group| (&group.key.space, &group.key.entity) != (space, entity))
                {
                    end(group.replace(self.resummed(GroupKey::new(space, entity))?));
                }
                if let Some(group) = &mut group {
                    group.add(&entry);
                }
            }
            Ok(())
        })?;
        end(group);
        self.each_page(keys::SUMS, &mut |page| {
            wrong += page.iter().filter(|(key, _)| !seen.contains(key)).count();
            Ok(())
        })?;
        Ok(wrong)
    }

    fn resummed(&self, key: GroupKey) -> Result<Resummed, KvError> {
        let stored = self.kv().get(keys::sums(&key.space, &key.entity).as_bytes())?;
        let stored = stored.and_then(|value| Sums::decode(&value));
        let mut aside = HashSet::new();
        if stored.as_ref().is_some_and(|sums| sums.aside > 0) {
            self.each_page(&keys::asides(&key.space, &key.entity), &mut |page| {
                aside.extend(page.iter().filter_map(|(key, _)| keys::id_of(key)));
                Ok(())
            })?;
        }
        Ok(Resummed {
            key,
            stored,
            aside,
            plain: Sums::default(),
        })
    }

    fn remove_all(&self, stray: impl Iterator<Item = Vec<u8>>) -> Result<(), KvError> {
        let mut batch = Batch::new();
        stray.for_each(|key| batch.delete(key));
        if batch.is_empty() {
            Ok(())
        } else {
            self.kv().apply(batch)
        }
    }
}

/// The sums of a group as they are stored, and as its entries give them.
struct Resummed {
    key: GroupKey,
    stored: Option<Sums>,
    aside: HashSet<MegramId>,
    plain: Sums,
}

impl Resummed {
    fn add(&mut self, entry: &Entry) {
        if self.aside.contains(&entry.id) || !Sums::takes(entry, entry.created_at) {
            self.plain.count_aside(entry, true);
        } else {
            self.plain.add(entry);
        }
    }

    fn is_right(&self) -> bool {
        let is_complete = |sums: &Sums| sums.aside == self.aside.len() as u64;
        self.stored
            .as_ref()
            .is_some_and(|stored| is_complete(stored) && stored.agrees(&self.plain))
    }
}

fn sound(key: &[u8], value: &[u8]) -> Option<Megram> {
    codec::decode(value).filter(|megram| keys::record(&megram.id).as_bytes() == key)
}

//! Making everything derived fit the records (design §15).
//!
//! Nothing of it need be seen together: until it is done the derived keys are known to be incomplete, and what is cut short begins anew. So
//! it is written in pieces, whatever a record refers to.
//!
//! Owns: the rebuilding. Must not know: what the derived keys are read for.

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

pub use crate::verify::Verified;

/// Bytes of records that are looked at together, and bytes that are written at once.
const LOT: usize = 1 << 20;
const PIECE: usize = 8 << 20;

/// What [`Records::repair`] found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Records that can be read.
    pub records: usize,
    /// Records whose checksum is wrong; they were removed.
    pub damaged: usize,
}

impl Records {
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
        self.each_lot(&mut |lot| {
            let mut txn = Txn::new(&**self.kv(), now, has_orphans);
            for (key, value) in lot {
                if let Some(megram) = sound(key, value) {
                    found.records += 1;
                    txn.put_index(&megram);
                    txn.link(&megram)?;
                } else {
                    found.damaged += 1;
                    txn.delete_bytes(key.clone());
                }
            }
            has_orphans |= txn.has_orphans;
            self.apply_in_pieces(txn.finish()?.0)
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
        self.each_lot(&mut |lot| {
            let mut txn = Txn::new(&**self.kv(), now, has_orphans);
            for megram in lot.iter().filter_map(|(key, value)| sound(key, value)) {
                if !ended.contains(&megram.id) || !txn.has_ended(&megram.id)? {
                    txn.set_living(&megram, true)?;
                }
            }
            self.apply_in_pieces(txn.finish()?.0)
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

    /// Shows the keys and values of all records, few enough at a time.
    fn each_lot(&self, see: &mut dyn FnMut(&[Pair]) -> Result<(), KvError>) -> Result<(), KvError> {
        self.each_page(keys::RECORDS, &mut |page| {
            let (mut begin, mut bytes) = (0, 0);
            for (at, (_, value)) in page.iter().enumerate() {
                if bytes + value.len() > LOT && at > begin {
                    see(page.get(begin..at).unwrap_or_default())?;
                    (begin, bytes) = (at, 0);
                }
                bytes += value.len();
            }
            see(page.get(begin..).unwrap_or_default())
        })
    }

    fn apply_in_pieces(&self, batch: Batch) -> Result<(), KvError> {
        batch
            .into_parts(PIECE)
            .into_iter()
            .try_for_each(|part| self.kv().apply(part))
    }

    /// The keys of an index that no record asks for.
    pub(crate) fn stray(
        &self,
        page: &[Pair],
        ended: &HashSet<MegramId>,
        txn: &mut Txn<'_>,
    ) -> Result<Vec<Vec<u8>>, KvError> {
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
    pub(crate) fn perhaps_ended(&self) -> Result<HashSet<MegramId>, KvError> {
        let mut ended = HashSet::new();
        self.each_page("p|", &mut |page| {
            let parts = page.iter().filter_map(|(key, _)| keys::parts(key)?.into_iter().next());
            ended.extend(parts.map(MegramId::new));
            Ok(())
        })?;
        Ok(ended)
    }

    fn remove_all(&self, stray: impl Iterator<Item = Vec<u8>>) -> Result<(), KvError> {
        let mut batch = Batch::new();
        stray.for_each(|key| batch.delete(key));
        self.apply_in_pieces(batch)
    }
}

impl Txn<'_> {
    /// The sums of a group that has none, or none that can be read. Where they were lost, the key goes by which the group was found: only
    /// they knew which that was.
    pub(crate) fn found_lost(&mut self, group: &GroupKey) -> Result<Sums, KvError> {
        let sums = self.summed(group)?;
        if let Some(tool) = group.tool().filter(|_| !sums.is_empty()) {
            let mut stale = Vec::new();
            self.each(keys::hots(tool).as_bytes(), &mut |key, _| {
                if GroupKey::of_hot(key).as_ref() == Some(group) {
                    stale.push(key.to_vec());
                }
            })?;
            for key in stale {
                self.delete_bytes(key);
            }
        }
        Ok(sums)
    }
}

/// The record of a key, if it can be read and stands under its own key.
pub(crate) fn sound(key: &[u8], value: &[u8]) -> Option<Megram> {
    codec::decode(value).filter(|megram| keys::record(&megram.id).as_bytes() == key)
}

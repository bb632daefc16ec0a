//! Reading in a few goes what a commit will ask for (design §15).
//!
//! Each look into the store costs a change of threads and a search in every table: a commit that asks for key after key waits for
//! nothing else. What is not read here is read when it is asked for.
//!
//! Owns: which keys those are. Must not know: what the commit does with them.

use crate::commit::{Edit, PAGE, Txn};
use crate::kv::{KvError, Range};
use crate::sums::Sums;
use crate::ties::targets;
use crate::view::GroupKey;
use crate::{keys, near};
use artoo_protocol::MegramId;
use artoo_protocol::message::Megram;
use std::collections::BTreeSet;

/// So many of the records that one refers to are read before they are asked for.
const TARGETS: usize = 64;

/// What is to be read.
#[derive(Default)]
struct Wanted {
    keys: BTreeSet<Vec<u8>>,
    prefixes: BTreeSet<Vec<u8>>,
}

impl Wanted {
    /// A record, and who ended it.
    fn record(&mut self, id: &MegramId) {
        self.keys.insert(keys::record(id).into_bytes());
        self.prefixes.insert(keys::ended_by(id).into_bytes());
    }

    /// What it refers to.
    fn targets(&mut self, megram: &Megram) {
        targets(megram).take(TARGETS).for_each(|id| self.record(id));
    }

    fn read(&mut self, txn: &mut Txn<'_>) -> Result<(), KvError> {
        let keys: Vec<Vec<u8>> = std::mem::take(&mut self.keys).into_iter().collect();
        if !keys.is_empty() {
            let values = txn.kv.get_many(&keys)?;
            txn.read.extend(keys.into_iter().zip(values));
        }
        let prefixes = std::mem::take(&mut self.prefixes);
        let ranges: Vec<Range> = prefixes.iter().map(|prefix| Range::new(prefix.clone(), PAGE)).collect();
        if !ranges.is_empty() {
            let found = txn.kv.scan_many(&ranges)?;
            let whole = prefixes.into_iter().zip(found).filter(|(_, pairs)| pairs.len() < PAGE);
            txn.scanned.extend(whole);
        }
        Ok(())
    }
}

impl Txn<'_> {
    /// Reads what the edits will ask for; `new` are groups that are certainly not there, `cached` knows the sums of groups.
    pub(crate) fn prefetch(
        &mut self,
        edits: &[Edit],
        new: &BTreeSet<&GroupKey>,
        mut cached: impl FnMut(&GroupKey) -> Option<Sums>,
    ) -> Result<(), KvError> {
        let (mut wanted, mut records) = (Wanted::default(), BTreeSet::new());
        for edit in edits {
            match edit {
                Edit::Remove(id) => wanted.record(id),
                Edit::Fold { ids, .. } => ids.iter().for_each(|id| wanted.record(id)),
                Edit::Store(megram) | Edit::Take { megram, .. } | Edit::Derive { megram, .. } => {
                    if let Edit::Derive { from, .. } = edit {
                        from.iter().take(TARGETS).for_each(|id| wanted.record(id));
                    }
                    if self.has_traces {
                        let trace = keys::trace(&megram.space, &megram.entity, &megram.id);
                        wanted.keys.insert(trace.into_bytes());
                    }
                    records.insert(keys::record(&megram.id).into_bytes());
                    wanted.targets(megram);
                    self.group(GroupKey::of(megram), new, &mut cached, &mut wanted);
                }
            }
        }
        if self.has_none_from(records.first())? {
            self.read.extend(records.into_iter().map(|key| (key, None)));
        } else {
            wanted.keys.extend(records);
        }
        wanted.read(self)?;
        for edit in edits {
            let Edit::Remove(id) = edit else { continue };
            let Some(megram) = self.record(id)? else { continue };
            wanted.targets(&megram);
            let group = GroupKey::of(&megram);
            if !self.has_sums(&group) {
                match cached(&group) {
                    Some(sums) => self.take_sums(group, sums),
                    None => {
                        wanted.keys.insert(keys::sums(&group.space, &group.entity).into_bytes());
                    }
                }
            }
        }
        wanted.read(self)
    }

    fn group(
        &mut self,
        group: GroupKey,
        new: &BTreeSet<&GroupKey>,
        cached: &mut impl FnMut(&GroupKey) -> Option<Sums>,
        wanted: &mut Wanted,
    ) {
        if self.has_sums(&group) {
            return;
        }
        if near::is_intent(&group.space) {
            let words = keys::intent(&group.space, &group.entity).into_bytes();
            if new.contains(&group) {
                self.read.insert(words, None);
            } else {
                wanted.keys.insert(words);
            }
        }
        if let Some(sums) = cached(&group) {
            self.take_sums(group, sums);
        }
    }

    /// Whether the store certainly has no record from this one on. Ids begin with their time, so mostly one look tells that all of
    /// those that are to be written are new.
    fn has_none_from(&self, first: Option<&Vec<u8>>) -> Result<bool, KvError> {
        let Some((_, before)) = first.and_then(|first| first.split_last()) else {
            return Ok(true);
        };
        Ok(self.kv.scan(keys::RECORDS.as_bytes(), Some(before), 1)?.is_empty())
    }
}

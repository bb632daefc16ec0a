//! One atomic change of the records and of everything derived from them (design §15).
//!
//! A change is prepared over what the store holds, as if it had been made already, and then written as one batch: the record, its
//! indices, who stopped counting by it, and the sums of the groups that it touched. So nothing derived is ever out of step.
//!
//! Owns: which keys follow from a record. Must not know: threads, potentials' thresholds.

use crate::entry::Entry;
use crate::folding::exporting::Part;
use crate::kv::{Batch, Kv, KvError, Pair};
use crate::records::Stored;
use crate::sums::Sums;
use crate::view::GroupKey;
use crate::{codec, keys, near};
use artoo_protocol::message::{Level, Megram};
use artoo_protocol::{MegramId, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

/// How many keys are read at once.
pub(crate) const PAGE: usize = 256;

/// One change of an atomic commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Takes in a record of an export for what is not known of it yet: of its parts some may be here already.
    Take {
        /// The record.
        megram: Megram,
        /// What became part of it.
        parts: Vec<Part>,
    },
    /// Appends a record. What it supersedes, and what it was distilled from, stops counting at once if it belongs to the same group.
    Store(Megram),
    /// Removes a record, and with it the older ones that it had replaced: they would count again otherwise. The sources of a rule
    /// that is removed do count again.
    Remove(MegramId),
    /// Appends a record that follows from others, if all of these are there and count: what was forgotten meanwhile is not brought
    /// back.
    Derive {
        /// The record.
        megram: Megram,
        /// What it follows from.
        from: Vec<MegramId>,
    },
    /// Makes one record of those among these that are there, count, and say the same as the newest of them; it weighs at every later
    /// moment what they weighed together.
    Fold {
        /// Two at least; else nothing is done.
        ids: Vec<MegramId>,
        /// The level of the one that they become.
        level: Level,
    },
}

/// A change in preparation.
pub(crate) struct Txn<'a> {
    pub(crate) kv: &'a dyn Kv,
    now: Timestamp,
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// What the store holds under these keys.
    pub(crate) read: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// All that the store holds under these prefixes.
    pub(crate) scanned: HashMap<Vec<u8>, Vec<Pair>>,
    groups: BTreeMap<GroupKey, Group>,
    /// Whether some record refers to one that is not there.
    pub(crate) has_orphans: bool,
    /// Whether some record may have become part of another one.
    pub(crate) has_traces: bool,
}

/// The groups that were touched, with their sums; `None` for one that is empty now.
pub(crate) type Changed = Vec<(GroupKey, Option<Sums>)>;

struct Group {
    sums: Sums,
    is_changed: bool,
}

impl<'a> Txn<'a> {
    /// Nothing changed yet. Records made after `now` are from the future.
    pub(crate) fn new(kv: &'a dyn Kv, now: Timestamp, has_orphans: bool) -> Self {
        Self {
            kv,
            now,
            changes: BTreeMap::new(),
            read: HashMap::new(),
            scanned: HashMap::new(),
            groups: BTreeMap::new(),
            has_orphans,
            has_traces: true,
        }
    }

    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    /// Carries out one edit.
    pub(crate) fn edit(&mut self, edit: &Edit) -> Result<Stored, KvError> {
        match edit {
            Edit::Store(megram) => self.store(megram),
            Edit::Take { megram, parts } => self.take(megram, parts),
            Edit::Remove(id) => self.remove(id),
            Edit::Derive { megram, from } => {
                for id in from {
                    if self.record(id)?.is_none() || self.has_ended(id)? {
                        return Ok(Stored::Absent);
                    }
                }
                self.store(megram)
            }
            Edit::Fold { ids, level } => self.fold(ids, *level),
        }
    }

    /// The batch that makes it so, and the sums as they are then; `None` for a group that is empty.
    pub(crate) fn finish(mut self) -> Result<(Batch, Changed), KvError> {
        let groups: Vec<GroupKey> = self
            .groups
            .iter()
            .filter(|(_, g)| g.is_changed)
            .map(|(k, _)| k.clone())
            .collect();
        let mut after = Vec::with_capacity(groups.len());
        for group in groups {
            let mut sums = self.sums(&group)?.clone();
            if sums.is_worn() {
                let until = sums.until;
                sums = self.summed(&group)?;
                sums.until = until;
            }
            self.settle(&group, &mut sums)?;
            self.put_until(&group, &mut sums);
            let key = keys::sums(&group.space, &group.entity);
            let is_empty = sums.is_empty();
            if is_empty {
                self.delete(&key);
            } else {
                self.put(key, sums.encode());
            }
            if is_empty && near::is_intent(&group.space) {
                self.delete(&keys::intent(&group.space, &group.entity));
            }
            after.push((group, (!is_empty).then_some(sums)));
        }
        let mut batch = Batch::new();
        for (key, value) in self.changes {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        Ok((batch, after))
    }

    /// Lets a record count, or no longer.
    pub(crate) fn set_living(&mut self, megram: &Megram, is_living: bool) -> Result<(), KvError> {
        let group = GroupKey::of(megram);
        let entry = Entry::of(megram);
        let key = entry.key(&group.space, &group.entity);
        let aside = keys::aside(&group.space, &group.entity, &entry.id);
        let is_aside = if is_living {
            !Sums::takes(&entry, self.now)
        } else {
            self.sums(&group)?.aside > 0 && self.get(aside.as_bytes())?.is_some()
        };
        // The sums are read, or made, while the entries are still those that they stand for.
        let sums = self.sums(&group)?;
        match (is_aside, is_living) {
            (true, _) => sums.count_aside(&entry, is_living),
            (false, true) => sums.add(&entry),
            (false, false) => sums.remove(&entry),
        }
        if is_living {
            if is_aside {
                self.put(aside, format!("{key}\n{}", entry.value()));
            }
            self.put(key, entry.value());
            self.put_words(megram)?;
        } else {
            self.delete(&aside);
            self.delete(&key);
        }
        Ok(())
    }

    fn put_words(&mut self, megram: &Megram) -> Result<(), KvError> {
        if !near::is_intent(&megram.space) {
            return Ok(());
        }
        let key = keys::intent(&megram.space, &megram.entity);
        let known = self.get(key.as_bytes())?;
        let known = known.as_deref().and_then(|known| std::str::from_utf8(known).ok());
        if let Some(words) = near::more_words(known, megram) {
            self.put(key, words);
        }
        Ok(())
    }

    /// The sums of a group, to be changed; made from the entries where they are missing or damaged.
    fn sums(&mut self, group: &GroupKey) -> Result<&mut Sums, KvError> {
        if !self.groups.contains_key(group) {
            let stored = self.get(keys::sums(&group.space, &group.entity).as_bytes())?;
            let sums = match stored.and_then(|value| Sums::decode(&value)) {
                Some(sums) => sums,
                None => self.found_lost(group)?,
            };
            self.groups.insert(
                group.clone(),
                Group {
                    sums,
                    is_changed: false,
                },
            );
        }
        let group = self.groups.entry(group.clone()).or_insert_with(|| Group {
            sums: Sums::default(),
            is_changed: false,
        });
        group.is_changed = true;
        Ok(&mut group.sums)
    }

    /// Sums the entries of a group one by one.
    pub(crate) fn summed(&mut self, group: &GroupKey) -> Result<Sums, KvError> {
        let (mut sums, now) = (Sums::default(), self.now);
        let mut asides = Vec::new();
        self.each(
            keys::entries(&group.space, &group.entity).as_bytes(),
            &mut |key, value| {
                let Some(entry) = Entry::read(key, value) else { return };
                if Sums::takes(&entry, now) {
                    sums.add(&entry);
                } else {
                    sums.count_aside(&entry, true);
                    asides.push((
                        keys::aside(&group.space, &group.entity, &entry.id),
                        [key, b"\n", value].concat(),
                    ));
                }
            },
        )?;
        for (key, _) in self.all(keys::asides(&group.space, &group.entity).as_bytes())? {
            self.changes.insert(key, None);
        }
        for (key, value) in asides {
            self.put(key, value);
        }
        Ok(sums)
    }

    /// Moves what has come to be out of the future into the sums, a bounded number at a time.
    fn settle(&mut self, group: &GroupKey, sums: &mut Sums) -> Result<(), KvError> {
        if sums.aside == 0 {
            return Ok(());
        }
        for (key, value) in self.page(keys::asides(&group.space, &group.entity).as_bytes(), None)?.0 {
            if let Some(entry) = read_aside(&value).filter(|entry| Sums::takes(entry, self.now)) {
                sums.count_aside(&entry, false);
                sums.add(&entry);
                self.changes.insert(key, None);
            }
        }
        Ok(())
    }

    /// Keeps the key by which a group of a tool is found while it counts.
    fn put_until(&mut self, group: &GroupKey, sums: &mut Sums) {
        let Some(tool) = group.tool() else { return };
        let until = sums.counts_until();
        if until == sums.until {
            return;
        }
        if let Some(until) = sums.until {
            self.delete(&keys::hot(tool, until, &group.space, &group.entity));
        }
        if let Some(until) = until {
            self.put(keys::hot(tool, until, &group.space, &group.entity), "");
        }
        sums.until = until;
    }

    pub(crate) fn record(&mut self, id: &MegramId) -> Result<Option<Megram>, KvError> {
        Ok(self
            .get(keys::record(id).as_bytes())?
            .and_then(|value| codec::decode(&value)))
    }

    pub(crate) fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.changes.insert(key.into(), Some(value.into()));
    }

    pub(crate) fn delete(&mut self, key: &str) {
        self.changes.insert(key.as_bytes().to_vec(), None);
    }

    pub(crate) fn delete_bytes(&mut self, key: Vec<u8>) {
        self.changes.insert(key, None);
    }

    pub(crate) fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        if let Some(changed) = self.changes.get(key) {
            return Ok(changed.clone());
        }
        if let Some(read) = self.read.get(key) {
            return Ok(read.clone());
        }
        self.kv.get(key)
    }

    /// Whether the sums of a group are at hand.
    pub(crate) fn has_sums(&self, group: &GroupKey) -> bool {
        self.groups.contains_key(group)
    }

    /// The sums of a group as the store has them.
    pub(crate) fn take_sums(&mut self, group: GroupKey, sums: Sums) {
        let group_with = Group {
            sums,
            is_changed: false,
        };
        self.groups.insert(group, group_with);
    }

    pub(crate) fn all(&self, prefix: &[u8]) -> Result<Vec<Pair>, KvError> {
        if let Some(stored) = self.scanned.get(prefix) {
            let mut merged: BTreeMap<Vec<u8>, Vec<u8>> = stored.iter().cloned().collect();
            self.merge(prefix, Bound::Included(prefix), None, &mut merged);
            return Ok(merged.into_iter().collect());
        }
        let mut pairs = Vec::new();
        self.each(prefix, &mut |key, value| pairs.push((key.to_vec(), value.to_vec())))?;
        Ok(pairs)
    }

    pub(crate) fn each(&self, prefix: &[u8], see: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), KvError> {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let (pairs, next) = self.page(prefix, after.as_deref())?;
            for (key, value) in &pairs {
                see(key, value);
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// A page of the store as it will be, and the key behind which the next page begins.
    fn page(&self, prefix: &[u8], after: Option<&[u8]>) -> Result<(Vec<Pair>, Option<Vec<u8>>), KvError> {
        let stored = self.kv.scan(prefix, after, PAGE)?;
        let next = stored
            .last()
            .filter(|_| stored.len() == PAGE)
            .map(|(key, _)| key.clone());
        let from = after.map_or(Bound::Included(prefix), Bound::Excluded);
        let mut merged: BTreeMap<Vec<u8>, Vec<u8>> = stored.into_iter().collect();
        self.merge(prefix, from, next.as_ref(), &mut merged);
        Ok((merged.into_iter().collect(), next))
    }

    /// Makes what was stored what it will be, up to the key `last`.
    fn merge(
        &self,
        prefix: &[u8],
        from: Bound<&[u8]>,
        last: Option<&Vec<u8>>,
        merged: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    ) {
        let changed = self.changes.range::<[u8], _>((from, Bound::Unbounded));
        for (key, value) in changed.take_while(|(key, _)| key.starts_with(prefix)) {
            if last.is_some_and(|last| key > last) {
                break;
            }
            match value {
                Some(value) => merged.insert(key.clone(), value.clone()),
                None => merged.remove(key),
            };
        }
    }
}

/// Reads what is kept aside: the entry's own key and value, on two lines.
pub(crate) fn read_aside(value: &[u8]) -> Option<Entry> {
    let at = value.iter().position(|byte| *byte == b'\n')?;
    let (key, numbers) = value.split_at_checked(at)?;
    Entry::read(key, numbers.get(1..)?)
}

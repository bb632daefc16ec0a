//! What was used of late and need not be asked of the store: sums of groups, records, and which groups there are (design §15).
//!
//! Two generations: what is used moves to the young one, and when that is full the old one goes. Bounded, and in constant time.
//!
//! Owns: what is kept. Must not know: the store.

use crate::sums::Sums;
use crate::view::GroupKey;
use artoo_protocol::MegramId;
use artoo_protocol::message::Megram;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, RandomState};

/// How many groups one generation holds: about 4 MB.
const SUMS: usize = 8192;
/// How many records one generation holds: about 1 MB.
const RECORDS: usize = 512;

/// A bounded map of two generations.
#[derive(Debug)]
struct Aging<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    most: usize,
}

impl<K: Hash + Eq + Clone, V> Aging<K, V> {
    fn new(most: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            most,
        }
    }

    fn get(&mut self, key: &K) -> Option<&V> {
        if !self.young.contains_key(key) {
            let value = self.old.remove(key)?;
            self.put(key.clone(), value);
        }
        self.young.get(key)
    }

    fn put(&mut self, key: K, value: V) {
        if self.young.len() >= self.most {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

/// What is kept in memory.
#[derive(Debug)]
pub(crate) struct Cache {
    sums: Aging<GroupKey, Sums>,
    /// Records do not change; but they can go.
    records: Aging<MegramId, Megram>,
    /// All groups that there are, each by a number, and perhaps some that are gone. `None` until it is worth its 16 bytes a group.
    groups: Option<HashSet<u64>>,
    hasher: RandomState,
    /// Counts the commits, so that what was read before one is not kept after it.
    version: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            sums: Aging::new(SUMS),
            records: Aging::new(RECORDS),
            groups: None,
            hasher: RandomState::new(),
            version: 0,
        }
    }
}

impl Cache {
    pub(crate) fn get(&mut self, group: &GroupKey) -> Option<&Sums> {
        self.sums.get(group)
    }

    pub(crate) fn put(&mut self, group: GroupKey, sums: Sums) {
        self.sums.put(group, sums);
    }

    pub(crate) fn forget(&mut self, group: &GroupKey) {
        self.sums.remove(group);
    }

    pub(crate) fn record(&mut self, id: &MegramId) -> Option<&Megram> {
        self.records.get(id)
    }

    pub(crate) fn put_record(&mut self, megram: Megram) {
        self.records.put(megram.id.clone(), megram);
    }

    pub(crate) fn forget_records(&mut self) {
        self.records.clear();
    }

    /// Whether all groups are known.
    pub(crate) const fn knows_groups(&self) -> bool {
        self.groups.is_some()
    }

    /// What gives groups their numbers.
    pub(crate) fn hasher(&self) -> RandomState {
        self.hasher.clone()
    }

    /// From now on only the groups of these numbers are there, until more are added.
    pub(crate) fn set_groups(&mut self, numbers: HashSet<u64>) {
        self.groups = Some(numbers);
    }

    /// There is one more group, if all are known.
    pub(crate) fn add_group(&mut self, group: &GroupKey) {
        let number = self.hasher.hash_one(group);
        if let Some(groups) = &mut self.groups {
            groups.insert(number);
        }
    }

    /// Whether a group is certainly not there.
    pub(crate) fn is_absent(&self, group: &GroupKey) -> bool {
        let groups = self.groups.as_ref();
        groups.is_some_and(|groups| !groups.contains(&self.hasher.hash_one(group)))
    }

    pub(crate) fn clear(&mut self) {
        *self = Self {
            version: self.version + 1,
            hasher: self.hasher(),
            ..Self::default()
        };
    }

    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    /// To be called before and after every change of the store.
    pub(crate) const fn change(&mut self) {
        self.version += 1;
    }
}

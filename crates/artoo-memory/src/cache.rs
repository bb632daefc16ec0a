//! The sums of the groups used of late, so that a question about them needs no store (design §15).
//!
//! Two generations: what is used moves to the young one, and when that is full the old one goes. Bounded, and in constant time.
//!
//! Owns: which sums are kept. Must not know: the store.

use crate::sums::Sums;
use crate::view::GroupKey;
use std::collections::HashMap;

/// How many groups one generation holds: about 5 MB.
const GENERATION: usize = 8192;

/// The sums kept in memory.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    young: HashMap<GroupKey, Sums>,
    old: HashMap<GroupKey, Sums>,
    /// Counts the commits, so that what was read before one is not kept after it.
    version: u64,
}

impl Cache {
    pub(crate) fn get(&mut self, group: &GroupKey) -> Option<&Sums> {
        if !self.young.contains_key(group) {
            let sums = self.old.remove(group)?;
            self.put(group.clone(), sums);
        }
        self.young.get(group)
    }

    pub(crate) fn put(&mut self, group: GroupKey, sums: Sums) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(group, sums);
    }

    pub(crate) fn forget(&mut self, group: &GroupKey) {
        self.young.remove(group);
        self.old.remove(group);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self {
            version: self.version + 1,
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

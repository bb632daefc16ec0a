//! Megrams in a key-value store: the record and all that is derived from it, written together, read together (design §15).
//!
//! Records are only ever appended. What is stored under an id stays; a level changes by a new record that supersedes
//! the old one; only the time of the last recall is overwritten. The Dreamer and the operator alone may remove.
//!
//! Owns: opening, commits, records by id. Must not know: potentials' thresholds, threads.

use crate::cache::Cache;
use crate::commit::{Changed, Txn};
use crate::kv::{Batch, Kv, KvError, REPAIRED_KEY};
use crate::near::Intents;
use crate::sums::Sums;
use crate::view::GroupKey;
use crate::{codec, keys};
use artoo_protocol::message::Megram;
use artoo_protocol::{MegramId, Timestamp, text};
use std::collections::{BTreeSet, HashSet};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use crate::bounds::CONTENT_MAX;
pub(crate) use crate::bounds::{bounded, same_words, tag, too_long};
pub use crate::commit::Edit;

/// How many keys are read at once.
pub(crate) const PAGE: usize = 256;
/// From so many edits in one commit on it pays to know which groups there are, and not to look for those that are not.
const BURST: usize = 512;

/// Why the records cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordsError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] KvError),
    /// The store was written by another version of artoo.
    #[error(
        "the memory store has format {found}; this version of artoo reads format {}",
        keys::FORMAT
    )]
    Format {
        /// What the store says.
        found: String,
    },
}

/// What became of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// It is in the store now.
    New,
    /// It was there already: the same id, or the same words of the user, or as part of another one.
    Known,
    /// It cannot be stored, for this reason.
    Refused(&'static str),
    /// It is no longer in the store.
    Removed,
    /// Several became this one.
    Folded {
        /// Its id.
        into: MegramId,
        /// How many they were.
        of: usize,
    },
    /// What was to be removed, or what was to follow from it, was not there.
    Absent,
}

/// All Megrams of a store.
pub struct Records {
    kv: Arc<dyn Kv>,
    damaged: AtomicU64,
    /// Whether everything derived is there; otherwise records are read one by one.
    is_derived: AtomicBool,
    /// Held for the length of a commit. Whether some record refers to one that is not there.
    writing: Mutex<bool>,
    /// Whether some record may have become part of another one, so that it is looked for before an old one is stored.
    has_traces: AtomicBool,
    cache: Mutex<Cache>,
    pub(crate) intents: Mutex<Option<Intents>>,
}

impl Records {
    /// Takes over a store: a new one gets its format version, a foreign one is refused.
    ///
    /// # Errors
    /// [`RecordsError::Format`] for a store of another version, [`RecordsError::Store`] when it cannot be read.
    pub fn open(kv: Arc<dyn Kv>) -> Result<Self, RecordsError> {
        let asked = [keys::FORMAT_KEY.as_bytes(), keys::DERIVED_KEY.as_bytes(), REPAIRED_KEY].map(<[u8]>::to_vec);
        let mut found = kv.get_many(&asked)?.into_iter();
        let mut next = || found.next().flatten();
        let (format, derived, repaired) = (next(), next(), next());
        let is_derived = match format {
            Some(found) if found == keys::FORMAT.as_bytes() => derived.is_some() && repaired.is_none(),
            Some(found) if found == keys::FORMAT_BEFORE.as_bytes() => false,
            Some(found) => {
                return Err(RecordsError::Format {
                    found: text::one_line(&String::from_utf8_lossy(&found), 40),
                });
            }
            None => {
                let mut batch = Batch::new();
                batch.put(keys::FORMAT_KEY, keys::FORMAT);
                batch.put(keys::DERIVED_KEY, keys::FORMAT);
                match kv.apply(batch) {
                    // Someone only looks at a store that nothing was ever written to.
                    Ok(()) | Err(KvError::ReadOnly) => repaired.is_none(),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let has_orphans = !kv.scan(keys::ORPHANS.as_bytes(), None, 1)?.is_empty();
        let has_traces = !kv.scan(keys::TRACES.as_bytes(), None, 1)?.is_empty();
        Ok(Self {
            kv,
            damaged: AtomicU64::new(0),
            is_derived: AtomicBool::new(is_derived),
            writing: Mutex::new(has_orphans),
            has_traces: AtomicBool::new(has_traces),
            cache: Mutex::default(),
            intents: Mutex::default(),
        })
    }

    /// The store below.
    pub fn kv(&self) -> &Arc<dyn Kv> {
        &self.kv
    }

    /// Carries out the edits, all or nothing, in their order; durable after the store's next flush. An edit that is refused
    /// is left out. What was made after `now` is from the future.
    ///
    /// # Errors
    /// When the store cannot be read or written; then it is safe to try again.
    pub fn commit(&self, edits: &[Edit], now: Timestamp) -> Result<Vec<Stored>, KvError> {
        let mut has_orphans = lock(&self.writing);
        if !self.is_derived() {
            *has_orphans = self.derive(now)?.1;
        }
        let groups: BTreeSet<GroupKey> = edits
            .iter()
            .filter_map(|edit| match edit {
                Edit::Store(megram) | Edit::Take { megram, .. } | Edit::Derive { megram, .. } => {
                    Some(GroupKey::new(&megram.space, &megram.entity))
                }
                Edit::Remove(_) | Edit::Fold { .. } => None,
            })
            .collect();
        if edits.len() >= BURST {
            self.learn_groups()?;
        }
        let new: BTreeSet<&GroupKey> = {
            let cache = lock(&self.cache);
            groups.iter().filter(|group| cache.is_absent(group)).collect()
        };
        self.load_sums(groups.iter())?;
        let mut txn = Txn::new(&*self.kv, now, *has_orphans);
        txn.has_traces = self.has_traces.load(Ordering::Acquire);
        txn.prefetch(edits, &new, |group| lock(&self.cache).get(group).cloned())?;
        let mut stored = Vec::with_capacity(edits.len());
        for edit in edits {
            stored.push(txn.edit(edit)?);
        }
        *has_orphans |= txn.has_orphans;
        self.has_traces.fetch_or(txn.has_traces, Ordering::AcqRel);
        let (batch, groups) = txn.finish()?;
        if batch.is_empty() {
            return Ok(stored);
        }
        {
            let mut cache = lock(&self.cache);
            cache.change();
            for (group, _) in &groups {
                cache.forget(group);
                cache.add_group(group);
            }
        }
        let removes = edits
            .iter()
            .any(|edit| matches!(edit, Edit::Remove(_) | Edit::Fold { .. }));
        let words = self.changed_words(&batch);
        if let Err(error) = self.kv.apply(batch) {
            self.distrust(&groups);
            return Err(error);
        }
        let mut cache = lock(&self.cache);
        cache.change();
        if removes {
            cache.forget_records();
        }
        for (group, sums) in groups {
            cache.put(group, sums.unwrap_or_default());
        }
        drop(cache);
        self.note_words(&words);
        Ok(stored)
    }

    /// After a batch that failed and was perhaps written all the same: what was read of these groups before it must not be kept.
    fn distrust(&self, groups: &Changed) {
        let mut cache = lock(&self.cache);
        cache.change();
        for (group, _) in groups {
            cache.forget(group);
        }
        cache.forget_records();
        drop(cache);
        *lock(&self.intents) = None;
    }

    /// Appends one record, whose moment is the present.
    ///
    /// # Errors
    /// As of [`Records::commit`].
    pub fn store(&self, megram: &Megram) -> Result<Stored, KvError> {
        let stored = self.commit(&[Edit::Store(megram.clone())], megram.created_at)?;
        Ok(stored.into_iter().next().unwrap_or(Stored::Absent))
    }

    /// Removes a record with all its keys (see [`Edit::Remove`]); answers whether there was one.
    ///
    /// # Errors
    /// As of [`Records::commit`].
    pub fn remove(&self, id: &MegramId, now: Timestamp) -> Result<bool, KvError> {
        let stored = self.commit(&[Edit::Remove(id.clone())], now)?;
        Ok(stored == [Stored::Removed])
    }

    /// One record.
    pub fn get(&self, id: &MegramId) -> Result<Option<Megram>, KvError> {
        Ok(self.get_many(std::slice::from_ref(id))?.into_iter().next())
    }

    /// The records that there are of these ids, in the order asked, each with the time of its last recall.
    pub fn get_many(&self, ids: &[MegramId]) -> Result<Vec<Megram>, KvError> {
        let mut megrams = self.get_words(ids)?;
        let wanted: Vec<Vec<u8>> = megrams
            .iter()
            .map(|megram| keys::recalled(&megram.id).into_bytes())
            .collect();
        if wanted.is_empty() {
            return Ok(megrams);
        }
        for (megram, recalled) in megrams.iter_mut().zip(self.kv.get_many(&wanted)?) {
            let recalled = recalled.and_then(|text| Timestamp::parse(std::str::from_utf8(&text).ok()?).ok());
            megram.last_recalled_at = recalled.or(megram.last_recalled_at);
        }
        Ok(megrams)
    }

    /// As [`Records::get_many`], without the time of the last recall.
    pub(crate) fn get_words(&self, ids: &[MegramId]) -> Result<Vec<Megram>, KvError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (version, mut known): (u64, Vec<Option<Megram>>) = {
            let mut cache = lock(&self.cache);
            (
                cache.version(),
                ids.iter().map(|id| cache.record(id).cloned()).collect(),
            )
        };
        let unknown = ids.iter().zip(&known).filter(|(_, known)| known.is_none());
        let wanted: Vec<Vec<u8>> = unknown.map(|(id, _)| keys::record(id).into_bytes()).collect();
        if wanted.is_empty() {
            return Ok(known.into_iter().flatten().collect());
        }
        let values = self.kv.get_many(&wanted)?;
        let mut cache = lock(&self.cache);
        // Who goes through everything asks for whole pages, and does not come back.
        let is_kept = cache.version() == version && ids.len() < PAGE;
        for (known, value) in known.iter_mut().filter(|known| known.is_none()).zip(values) {
            let Some(value) = value else { continue };
            *known = codec::decode(&value);
            match known {
                Some(megram) if is_kept => cache.put_record(megram.clone()),
                Some(_) => {}
                None => {
                    self.damaged.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(known.into_iter().flatten().collect())
    }

    /// Finds out which groups there are, unless it is known. From their entries: a group whose sums were lost is one, too.
    fn learn_groups(&self) -> Result<(), KvError> {
        if !self.is_derived() || lock(&self.cache).knows_groups() {
            return Ok(());
        }
        let hasher = lock(&self.cache).hasher();
        let mut numbers = HashSet::new();
        self.each_page(keys::ENTRIES, &mut |page| {
            let groups = page.iter().filter_map(|(key, _)| GroupKey::of_entry(key));
            numbers.extend(groups.map(|group| hasher.hash_one(&group)));
            Ok(())
        })?;
        lock(&self.cache).set_groups(numbers);
        Ok(())
    }

    /// Notes that these records were recalled.
    pub fn mark_recalled<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a MegramId>,
        now: Timestamp,
    ) -> Result<(), KvError> {
        let mut batch = Batch::new();
        for id in ids {
            batch.put(keys::recalled(id), now.to_string());
        }
        if batch.is_empty() { Ok(()) } else { self.kv.apply(batch) }
    }

    /// How many damaged records were met and passed over since the last call.
    pub fn take_damaged(&self) -> u64 {
        self.damaged.swap(0, Ordering::Relaxed)
    }

    /// The same number, left for whoever takes it.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Whether everything derived is there. It is not in a store of the version before, nor after a repair that was cut short.
    pub fn is_derived(&self) -> bool {
        self.is_derived.load(Ordering::Acquire)
    }

    pub(crate) fn set_derived(&self, is_derived: bool) {
        self.is_derived.store(is_derived, Ordering::Release);
        lock(&self.cache).clear();
        *lock(&self.intents) = None;
    }

    /// Keeps others from committing.
    pub(crate) fn stop_writing(&self) -> MutexGuard<'_, bool> {
        lock(&self.writing)
    }

    pub(crate) fn cached(&self, group: &GroupKey) -> Option<Sums> {
        lock(&self.cache).get(group).cloned()
    }

    /// Whether a group is certainly not there.
    pub(crate) fn is_absent(&self, group: &GroupKey) -> bool {
        lock(&self.cache).is_absent(group)
    }

    pub(crate) fn version(&self) -> u64 {
        lock(&self.cache).version()
    }

    /// Keeps what was read when the store had this version, unless it was changed since.
    pub(crate) fn keep(&self, group: &GroupKey, sums: Sums, version: u64) {
        let mut cache = lock(&self.cache);
        if cache.version() == version {
            cache.put(group.clone(), sums);
        }
    }
}

/// A panic elsewhere cannot leave what is behind these locks half changed in a way that matters.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{InMemoryKv, Notice, Pair};
    use crate::testing::{at, megram};
    use std::sync::OnceLock;

    /// A disk that takes what it says it did not take, while somebody reads.
    struct Lying {
        kv: InMemoryKv,
        lies: AtomicBool,
        reader: OnceLock<Box<dyn Fn() + Send + Sync>>,
    }

    impl Kv for Lying {
        fn get_many(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, KvError> {
            self.kv.get_many(keys)
        }
        fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, KvError> {
            self.kv.scan(prefix, after, limit)
        }
        fn apply(&self, batch: Batch) -> Result<(), KvError> {
            if !self.lies.swap(false, Ordering::SeqCst) {
                return self.kv.apply(batch);
            }
            (self.reader.get().unwrap())();
            self.kv.apply(batch)?;
            Err(KvError::Io("broken disk".to_owned()))
        }
        fn flush(&self) -> Result<(), KvError> {
            Ok(())
        }
        fn close(&self) -> Result<(), KvError> {
            Ok(())
        }
        fn take_notices(&self) -> Vec<Notice> {
            Vec::new()
        }
    }

    #[test]
    fn what_was_read_before_a_write_that_failed_and_came_all_the_same_is_not_kept() {
        const INTENT: &str = "intent:count_all_files";
        let kv = Arc::new(Lying {
            kv: InMemoryKv::new(),
            lies: AtomicBool::new(false),
            reader: OnceLock::new(),
        });
        let records = Arc::new(Records::open(kv.clone()).unwrap());
        records.store(&megram("1", INTENT, "path:/a", 0.5, 1.0)).unwrap();
        let attention = |records: &Records| {
            let potentials = records.potentials(INTENT, "path:/a", at()).unwrap();
            (
                potentials.attention.get(),
                records.nearest("sort every line", 9).unwrap().len(),
            )
        };
        assert_eq!(attention(&records), (0.5, 0));
        let reader = Arc::downgrade(&records);
        let read = move || {
            let records = reader.upgrade().unwrap();
            let before = records.potentials(INTENT, "path:/a", at()).unwrap();
            assert!((before.attention.get() - 0.5).abs() < 1e-12);
        };
        assert!(kv.reader.set(Box::new(read)).is_ok());
        let mut second = megram("2", INTENT, "path:/a", 0.25, 1.0);
        second.content = "Worked for “sort every line”.".to_owned();
        kv.lies.store(true, Ordering::SeqCst);
        assert!(records.commit(&[Edit::Store(second.clone())], at()).is_err());
        assert_eq!(attention(&records), (0.75, 1), "it came");
        assert_eq!(records.commit(&[Edit::Store(second)], at()).unwrap(), [Stored::Known]);
        assert_eq!(attention(&records), (0.75, 1));
    }
}

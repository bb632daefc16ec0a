//! The key-value port on a map: for tests, for `--no-memory`, and as the model the LevelDB one is held against.
//!
//! Owns: the map. Must not know: files, Megrams.

use super::{Batch, Change, Kv, KvError, Notice, Pair};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A store that lives as long as its value. Nothing of it reaches a disk, so `flush` has nothing to do.
#[derive(Debug, Default)]
pub struct InMemoryKv {
    /// `None` once closed.
    map: Mutex<Option<BTreeMap<Vec<u8>, Vec<u8>>>>,
}

impl InMemoryKv {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            map: Mutex::new(Some(BTreeMap::new())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<Vec<u8>, Vec<u8>>>> {
        // A panic elsewhere cannot leave a map half changed in a way that matters here.
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kv for InMemoryKv {
    fn get_many(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, KvError> {
        let guard = self.lock();
        let map = guard.as_ref().ok_or(KvError::Closed)?;
        Ok(keys.iter().map(|key| map.get(key).cloned()).collect())
    }

    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, KvError> {
        let guard = self.lock();
        let map = guard.as_ref().ok_or(KvError::Closed)?;
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        Ok(map
            .range::<[u8], _>((start, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .take(limit)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect())
    }

    fn apply(&self, batch: Batch) -> Result<(), KvError> {
        batch.check()?;
        let mut guard = self.lock();
        let map = guard.as_mut().ok_or(KvError::Closed)?;
        for change in batch.changes {
            match change {
                Change::Put { key, value } => {
                    map.insert(key, value);
                }
                Change::Delete { key } => {
                    map.remove(&key);
                }
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), KvError> {
        self.lock().as_ref().map(|_| ()).ok_or(KvError::Closed)
    }

    fn close(&self) -> Result<(), KvError> {
        self.lock().take().map(|_| ()).ok_or(KvError::Closed)
    }

    fn take_notices(&self) -> Vec<Notice> {
        Vec::new()
    }
}

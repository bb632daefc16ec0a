//! Megrams in a key-value store: the record and its indices, written together, read together (design §15).
//!
//! Records are only ever appended. What is stored under an id stays; a level changes by a new record that supersedes
//! the old one; only the time of the last recall is overwritten. The operator alone may remove.
//!
//! Owns: which keys a Megram has. Must not know: potentials, threads.

use crate::kv::{Batch, Kv, KvError};
use crate::{codec, keys};
use artoo_protocol::message::{Level, MacroState, Megram};
use artoo_protocol::{MegramId, Timestamp, text};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest content, in characters; longer ones keep head and tail.
const CONTENT_MAX: usize = 4000;
/// Longest space, entity and origin, in characters; longer ones are cut, here and in queries alike.
const TAG_MAX: usize = 1000;
/// Longest id, in bytes.
const ID_MAX: usize = 200;
/// How many records are read at once.
const PAGE: usize = 256;

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

/// What became of a Megram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// It is in the store now.
    New,
    /// It was there already: the same id, or the same words of the user.
    Known,
    /// It cannot be stored, for this reason.
    Refused(&'static str),
}

/// What [`Records::reindex`] found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reindexed {
    /// Records that can be read.
    pub records: usize,
    /// Records whose checksum is wrong; they were removed.
    pub damaged: usize,
}

/// All Megrams of a store.
pub struct Records {
    kv: Arc<dyn Kv>,
    damaged: AtomicU64,
}

impl Records {
    /// Takes over a store: a new one gets its format version, a foreign one is refused.
    ///
    /// # Errors
    /// [`RecordsError::Format`] for a store of another version, [`RecordsError::Store`] when it cannot be read.
    pub fn open(kv: Arc<dyn Kv>) -> Result<Self, RecordsError> {
        let records = Self {
            kv,
            damaged: AtomicU64::new(0),
        };
        match records.kv.get(keys::FORMAT_KEY.as_bytes())? {
            Some(found) if found == keys::FORMAT.as_bytes() => {}
            Some(found) => {
                return Err(RecordsError::Format {
                    found: text::one_line(&String::from_utf8_lossy(&found), 40),
                });
            }
            None => {
                let mut batch = Batch::new();
                batch.put(keys::FORMAT_KEY, keys::FORMAT);
                match records.kv.apply(batch) {
                    // Someone only looks at a store that nothing was ever written to.
                    Ok(()) | Err(KvError::ReadOnly) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(records)
    }

    /// The store below.
    pub fn kv(&self) -> &Arc<dyn Kv> {
        &self.kv
    }

    /// Writes a Megram with its indices; durable after the store's next flush.
    ///
    /// # Errors
    /// When the store cannot be read or written; then it is safe to try again.
    pub fn store(&self, megram: &Megram) -> Result<Stored, KvError> {
        if megram.level == Level::T {
            return Ok(Stored::Refused("the laws live in the prompts, not in the store"));
        }
        if megram.id.as_str().is_empty() || megram.id.as_str().len() > ID_MAX {
            return Ok(Stored::Refused("no usable id"));
        }
        let megram = bounded(megram);
        if let Some(there) = self.get(&megram.id)? {
            let same = Megram {
                last_recalled_at: None,
                ..there
            } == Megram {
                last_recalled_at: None,
                ..megram
            };
            return Ok(if same {
                Stored::Known
            } else {
                Stored::Refused("another memory has this id")
            });
        }
        if megram.state == MacroState::Remember && self.is_known(&megram)? {
            return Ok(Stored::Known);
        }
        let Some(value) = codec::encode(&megram) else {
            return Ok(Stored::Refused("it cannot be written as JSON"));
        };
        let mut batch = Batch::new();
        batch.put(keys::record(&megram.id), value);
        put_indices(&mut batch, &megram);
        self.kv.apply(batch)?;
        Ok(Stored::New)
    }

    /// Whether the user asked for the very same before.
    fn is_known(&self, megram: &Megram) -> Result<bool, KvError> {
        let group = self.group(&megram.space, &megram.entity)?;
        Ok(crate::potentials::living(group).iter().any(|known| {
            known.level == megram.level && same_words(&known.content, &megram.content) && known.sigma == megram.sigma
        }))
    }

    /// One record.
    pub fn get(&self, id: &MegramId) -> Result<Option<Megram>, KvError> {
        Ok(self.load(std::slice::from_ref(id))?.into_iter().next())
    }

    /// All records of a group, by id.
    pub fn group(&self, space: &str, entity: &str) -> Result<Vec<Megram>, KvError> {
        self.indexed(&keys::group(&tag(space), &tag(entity)))
    }

    /// All records of a space, and of the spaces that qualify it (`tool:shell` also finds `tool:shell:curl`).
    pub fn space(&self, space: &str) -> Result<Vec<Megram>, KvError> {
        let space = tag(space);
        let mut found = self.indexed(&keys::groups(&space))?;
        found.extend(self.indexed(&format!("x|{}:", keys::escape(&space)))?);
        Ok(found)
    }

    /// All records of a level, by id.
    pub fn level(&self, level: Level) -> Result<Vec<Megram>, KvError> {
        self.indexed(&keys::levels(level))
    }

    /// Every record, by id.
    pub fn all(&self) -> Result<Vec<Megram>, KvError> {
        self.indexed(keys::RECORDS)
    }

    /// Removes a record with all its keys; answers whether there was one. Only the operator forgets.
    pub fn remove(&self, id: &MegramId) -> Result<bool, KvError> {
        let Some(megram) = self.get(id)? else { return Ok(false) };
        let mut batch = Batch::new();
        batch.delete(keys::record(id));
        batch.delete(keys::tag(&megram.space, &megram.entity, id));
        batch.delete(keys::level(megram.level, id));
        batch.delete(keys::recalled(id));
        self.kv.apply(batch)?;
        Ok(true)
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

    /// Makes the indices fit the records, after damage took some of either: adds what is missing, removes what leads
    /// nowhere and what cannot be read.
    pub fn reindex(&self) -> Result<Reindexed, KvError> {
        let mut found = Reindexed::default();
        let mut valid = HashSet::new();
        self.each_page(keys::RECORDS, &mut |page| {
            let mut batch = Batch::new();
            for (key, value) in page {
                if let Some(megram) = codec::decode(&value).filter(|megram| keys::record(&megram.id).as_bytes() == key)
                {
                    found.records += 1;
                    put_indices(&mut batch, &megram);
                    valid.extend([
                        keys::tag(&megram.space, &megram.entity, &megram.id),
                        keys::level(megram.level, &megram.id),
                        keys::recalled(&megram.id),
                    ]);
                } else {
                    found.damaged += 1;
                    batch.delete(key);
                }
            }
            self.kv.apply(batch)
        })?;
        for prefix in ["x|", "l|", "r|"] {
            self.each_page(prefix, &mut |page| {
                let mut batch = Batch::new();
                for (key, _) in page {
                    if std::str::from_utf8(&key).is_ok_and(|key| valid.contains(key)) {
                        continue;
                    }
                    batch.delete(key);
                }
                self.kv.apply(batch)
            })?;
        }
        Ok(found)
    }

    /// How many damaged records were met and passed over since the last call.
    pub fn take_damaged(&self) -> u64 {
        self.damaged.swap(0, Ordering::Relaxed)
    }

    fn indexed(&self, prefix: &str) -> Result<Vec<Megram>, KvError> {
        let mut found = Vec::new();
        self.each_page(prefix, &mut |page| {
            let ids: Vec<MegramId> = page.iter().filter_map(|(key, _)| keys::id_of(key)).collect();
            found.extend(self.load(&ids)?);
            Ok(())
        })?;
        Ok(found)
    }

    fn each_page(
        &self,
        prefix: &str,
        on_page: &mut dyn FnMut(Vec<crate::kv::Pair>) -> Result<(), KvError>,
    ) -> Result<(), KvError> {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = self.kv.scan(prefix.as_bytes(), after.as_deref(), PAGE)?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|(key, _)| key.clone());
            if !page.is_empty() {
                on_page(page)?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// The records that there are of these ids, each with the time of its last recall.
    fn load(&self, ids: &[MegramId]) -> Result<Vec<Megram>, KvError> {
        let wanted: Vec<Vec<u8>> = ids
            .iter()
            .flat_map(|id| [keys::record(id).into_bytes(), keys::recalled(id).into_bytes()])
            .collect();
        let values = self.kv.get_many(&wanted)?;
        let mut megrams = Vec::with_capacity(ids.len());
        for pair in values.chunks_exact(2) {
            let [Some(value), recalled] = pair else { continue };
            let Some(mut megram) = codec::decode(value) else {
                self.damaged.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let recalled = recalled
                .as_deref()
                .and_then(|text| Timestamp::parse(std::str::from_utf8(text).ok()?).ok());
            megram.last_recalled_at = recalled.or(megram.last_recalled_at);
            megrams.push(megram);
        }
        Ok(megrams)
    }
}

fn put_indices(batch: &mut Batch, megram: &Megram) {
    batch.put(keys::tag(&megram.space, &megram.entity, &megram.id), "");
    batch.put(keys::level(megram.level, &megram.id), "");
}

fn bounded(megram: &Megram) -> Megram {
    Megram {
        space: tag(&megram.space),
        entity: tag(&megram.entity),
        content: text::head_tail(&megram.content, CONTENT_MAX),
        origin: megram.origin.as_deref().map(tag),
        ..megram.clone()
    }
}

fn tag(text: &str) -> String {
    text::first_n(text, TAG_MAX)
}

/// Whether two contents differ in case and spacing at most.
pub(crate) fn same_words(left: &str, right: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
    words(left) == words(right)
}

//! The key-value port below the memory: ordered bytes, atomic batches, an explicit flush (design §15).
//!
//! Owns: the port, its batch and its error, and the two implementations (a map in memory, LevelDB on disk).
//! Must not know: Megrams, key schema, time.

mod in_memory;
pub mod level;

pub use in_memory::InMemoryKv;
pub use level::{LevelKv, LevelSettings};

use std::path::PathBuf;

/// One key with its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Set by a store that was repaired, to the notice about it in words; whoever made its content fit again removes the key. So
/// a repair is followed up even when the process ended right after it.
pub const REPAIRED_KEY: &[u8] = b"v|repaired";

/// Largest batch that is applied, in bytes: half of the largest record of a log that is read back. What is larger is refused before it
/// is written; once written it would be taken for damage.
pub const BATCH_MAX: usize = 128 << 20;
/// What a change costs beside its key and its value, at most.
const CHANGE_COST: usize = 16;

/// An ordered store of bytes.
///
/// Every call is complete when it returns: a read sees every batch applied before it. What was applied survives
/// the end of the process once a later [`Kv::flush`] has returned `Ok`.
///
/// An error of `apply` or `flush` leaves the outcome open (the disk may have taken the data before it failed), so
/// callers repeat the same batch until it succeeds; batches are idempotent.
pub trait Kv: Send + Sync {
    /// The values of `keys`, in the order asked.
    fn get_many(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, KvError>;

    /// At most `limit` pairs whose key starts with `prefix`, in key order, beginning after `after` where given.
    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, KvError>;

    /// As many scans, in one go.
    fn scan_many(&self, ranges: &[Range]) -> Result<Vec<Vec<Pair>>, KvError> {
        ranges
            .iter()
            .map(|range| self.scan(&range.prefix, None, range.limit))
            .collect()
    }

    /// Applies the whole batch or nothing of it, in its order.
    fn apply(&self, batch: Batch) -> Result<(), KvError>;

    /// Makes everything applied so far survive a crash of the process and of the machine.
    fn flush(&self) -> Result<(), KvError>;

    /// Flushes, releases the store, and waits until that is done. Every later call answers [`KvError::Closed`].
    fn close(&self) -> Result<(), KvError>;

    /// What happened to the store that its owner must know and has not been told yet.
    fn take_notices(&self) -> Vec<Notice>;

    /// The value of one key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        Ok(self.get_many(&[key.to_vec()])?.into_iter().next().flatten())
    }
}

/// The beginning of the keys with one prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// What the keys start with.
    pub prefix: Vec<u8>,
    /// At most so many.
    pub limit: usize,
}

impl Range {
    /// The first `limit` keys with this prefix.
    pub fn new(prefix: impl Into<Vec<u8>>, limit: usize) -> Self {
        Self {
            prefix: prefix.into(),
            limit,
        }
    }
}

/// One change within a [`Batch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sets a key, replacing what was there.
    Put {
        /// Never empty.
        key: Vec<u8>,
        /// May be empty.
        value: Vec<u8>,
    },
    /// Removes a key; removing an absent one changes nothing.
    Delete {
        /// Never empty.
        key: Vec<u8>,
    },
}

impl Change {
    /// Bytes of key and value.
    fn bytes(&self) -> usize {
        match self {
            Self::Put { key, value } => key.len() + value.len(),
            Self::Delete { key } => key.len(),
        }
    }
}

/// Changes that become visible together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// In order: of two changes of one key, the later one counts.
    pub changes: Vec<Change>,
}

impl Batch {
    /// A batch without changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds "set `key` to `value`".
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.changes.push(Change::Put {
            key: key.into(),
            value: value.into(),
        });
    }

    /// Adds "remove `key`".
    pub fn delete(&mut self, key: impl Into<Vec<u8>>) {
        self.changes.push(Change::Delete { key: key.into() });
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Refuses a batch with an empty key, and one that is too large: the stores below cannot hold either.
    fn check(&self) -> Result<(), KvError> {
        let empty = self.changes.iter().any(|change| match change {
            Change::Put { key, .. } | Change::Delete { key } => key.is_empty(),
        });
        if empty {
            return Err(KvError::EmptyKey);
        }
        match self.weight() {
            bytes if bytes > BATCH_MAX => Err(KvError::TooLarge { bytes }),
            _ => Ok(()),
        }
    }

    /// What it takes in a log, at most.
    fn weight(&self) -> usize {
        self.bytes() + self.changes.len() * CHANGE_COST
    }

    /// The same changes in the same order as batches of at most so many bytes each, but for a single change that is larger: for whoever
    /// does not need them to become visible together.
    pub fn into_parts(self, most: usize) -> Vec<Self> {
        let mut parts = Vec::new();
        let (mut part, mut weight) = (Self::new(), 0);
        for change in self.changes {
            let more = change.bytes() + CHANGE_COST;
            if weight + more > most && !part.is_empty() {
                parts.push(std::mem::take(&mut part));
                weight = 0;
            }
            weight += more;
            part.changes.push(change);
        }
        if !part.is_empty() {
            parts.push(part);
        }
        parts
    }

    /// Bytes of all keys and values: what it costs to keep the batch in memory, roughly.
    pub fn bytes(&self) -> usize {
        self.changes.iter().map(Change::bytes).sum()
    }
}

/// Something that happened to the store on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The store was damaged: it was moved aside and a new one was filled with everything that could be read.
    Quarantined {
        /// Where the damaged store lies now, untouched.
        moved_to: PathBuf,
        /// What was found.
        reason: String,
        /// How many keys the new store holds.
        keys_kept: usize,
        /// How many blocks, log sections or whole files could not be read.
        pieces_lost: usize,
    },
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Quarantined {
                moved_to,
                reason,
                keys_kept,
                pieces_lost,
            } => write!(
                f,
                "the memory store was damaged ({reason}); it now lies in {}, and {keys_kept} keys were carried over \
                 ({pieces_lost} unreadable pieces)",
                moved_to.display()
            ),
        }
    }
}

/// Why a store could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// Another process, or another handle of this one, has the store open.
    #[error("the memory store {} is in use by {holder}", folder.display())]
    Locked {
        /// The store's folder.
        folder: PathBuf,
        /// Who holds it, in words: process id and since when, as far as known.
        holder: String,
    },
    /// The operating system refused a file operation, for instance on a full disk. A later call tries again.
    #[error("memory store: {0}")]
    Io(String),
    /// The store is damaged and could not be repaired.
    #[error("memory store is damaged: {0}")]
    Damaged(String),
    /// The store's code failed in a way it should not. A later call opens the store anew.
    #[error("memory store failed: {0}")]
    Failed(String),
    /// The batch has a change with an empty key.
    #[error("empty key")]
    EmptyKey,
    /// The batch is larger than [`BATCH_MAX`]; nothing of it was written.
    #[error("a change of {bytes} bytes is too large to be written in one piece (at most {BATCH_MAX})")]
    TooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// A store that was opened for looking was asked to change.
    #[error("the memory store was opened for reading only")]
    ReadOnly,
    /// The store was closed before.
    #[error("the memory store is closed")]
    Closed,
}

//! Memory that opens beside the first model call, so that nobody waits for it (design §15, §19).
//!
//! Owns the time until the store is open: reads wait for it, writes are kept in order. When it cannot be opened, artoo goes on
//! without and says so.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use artoo_bus::journal::Redactor;
use artoo_memory::Memory;
use artoo_memory::kv::LevelSettings;
use artoo_memory::view::GroupKey;
use artoo_protocol::message::{Lesson, Megram, MemoryQuery, MemoryReply, Potentials, SopRecord};
use artoo_protocol::ports::{Clock, MemoryError, MemoryService};
use artoo_protocol::{MegramId, Timestamp};
use async_trait::async_trait;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::output;

type Opened = Option<Result<Arc<Memory>, MemoryError>>;

/// The memory of this process, perhaps not open yet.
pub struct LateMemory {
    opened: watch::Receiver<Opened>,
    early: Arc<Mutex<Vec<Megram>>>,
    /// Hears which groups were written to: the Dreamer.
    written: UnboundedSender<GroupKey>,
    redactor: Redactor,
}

impl LateMemory {
    /// Begins to open the store in the data folder on a thread of its own. The other end hears which groups were written to.
    pub fn open(data: &Path, clock: Arc<dyn Clock>, redactor: Redactor) -> (Self, UnboundedReceiver<GroupKey>) {
        let (written, hears) = unbounded_channel();
        let (sender, opened) = watch::channel(None);
        let early = Arc::new(Mutex::new(Vec::new()));
        let (folder, kept) = (data.join("memory.leveldb"), Arc::clone(&early));
        let spawned = std::thread::Builder::new()
            .name("artoo-memory-open".into())
            .spawn(move || {
                let warn = Arc::new(|text: &str| output::note(&format!("artoo: memory: {text}")));
                let result = Memory::open(&folder, LevelSettings::default(), clock, warn).map(Arc::new);
                let result = result.map_err(|e| MemoryError { message: e.to_string() });
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                match &result {
                    Ok(memory) => kept.drain(..).for_each(|megram| memory.write(megram)),
                    Err(error) => output::note(&format!("artoo: {error}; this task goes on without memory")),
                }
                // Still under the lock: a write now either finds the memory or was drained above.
                sender.send_replace(Some(result));
            });
        if let Err(error) = spawned {
            output::note(&format!("artoo: memory cannot be opened: {error}"));
        }
        let memory = Self {
            opened,
            early,
            written,
            redactor,
        };
        (memory, hears)
    }

    /// The memory, once its store is open.
    ///
    /// # Errors
    /// [`MemoryError`] when it cannot be opened.
    pub async fn opened(&self) -> Result<Arc<Memory>, MemoryError> {
        self.memory().await
    }

    async fn memory(&self) -> Result<Arc<Memory>, MemoryError> {
        let mut opened = self.opened.clone();
        let ready = opened.wait_for(Option::is_some).await.map_err(|_| MemoryError {
            message: "the store was never opened".into(),
        })?;
        ready.as_ref().cloned().unwrap_or_else(|| {
            Err(MemoryError {
                message: "the store was never opened".into(),
            })
        })
    }
}

#[async_trait]
impl MemoryService for LateMemory {
    fn write(&self, mut megram: Megram) {
        // A lesson quotes commands and inputs, and lives for years.
        megram.content = self.redactor.text(&megram.content);
        megram.space = self.redactor.text(&megram.space);
        megram.entity = self.redactor.text(&megram.entity);
        // Without a Dreamer nobody hears it.
        let _ = self.written.send(GroupKey::new(&megram.space, &megram.entity));
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        match &*self.opened.borrow() {
            Some(Ok(memory)) => memory.write(megram),
            Some(Err(_)) => {}
            None => early.push(megram),
        }
    }

    async fn query_c(&self, space: &str, entity: &str) -> Result<Vec<SopRecord>, MemoryError> {
        self.memory().await?.query_c(space, entity).await
    }

    async fn query_mk(&self, space: &str, entity: &str, now: Timestamp) -> Result<Potentials, MemoryError> {
        self.memory().await?.query_mk(space, entity, now).await
    }

    async fn query_k(&self, space: &str, entity: &str, limit: usize) -> Result<Vec<Lesson>, MemoryError> {
        self.memory().await?.query_k(space, entity, limit).await
    }

    async fn recent(&self, space: &str, entity: &str, limit: usize) -> Result<Vec<Lesson>, MemoryError> {
        self.memory().await?.recent(space, entity, limit).await
    }

    async fn recall(&self, query: &MemoryQuery, now: Timestamp) -> Result<MemoryReply, MemoryError> {
        self.memory().await?.recall(query, now).await
    }

    fn record_negative_feedback(&self, rule: &MegramId, content: &str, now: Timestamp) {
        if let Some(Ok(memory)) = &*self.opened.borrow() {
            memory.record_negative_feedback(rule, content, now);
        }
    }

    async fn flush(&self) -> Result<(), MemoryError> {
        self.memory().await?.flush().await
    }

    async fn close(&self) -> Result<(), MemoryError> {
        match self.memory().await {
            Ok(memory) => memory.close().await,
            // Told when opening failed; there is nothing to close.
            Err(_) => Ok(()),
        }
    }
}

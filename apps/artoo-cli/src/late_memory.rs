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

/// What was said before the store was open.
enum Early {
    Memory(Megram),
    Feedback {
        rule: MegramId,
        content: String,
        now: Timestamp,
    },
}

impl Early {
    fn say(self, memory: &Memory) {
        match self {
            Self::Memory(megram) => memory.write(megram),
            Self::Feedback { rule, content, now } => memory.record_negative_feedback(&rule, &content, now),
        }
    }
}

/// The memory of this process, perhaps not open yet.
pub struct LateMemory {
    opened: watch::Receiver<Opened>,
    early: Arc<Mutex<Vec<Early>>>,
    /// Hears which groups were written to: the Dreamer.
    written: UnboundedSender<GroupKey>,
    redactor: Redactor,
}

impl LateMemory {
    /// Begins to open the store in the data folder on a thread of its own. The other end hears which groups were written to.
    pub fn open(data: &Path, clock: Arc<dyn Clock>, redactor: Redactor) -> (Self, UnboundedReceiver<GroupKey>) {
        let (written, hears) = unbounded_channel();
        let (sender, opened) = watch::channel(None);
        let early = Arc::new(Mutex::new(Vec::<Early>::new()));
        let (folder, kept) = (data.join("memory.leveldb"), Arc::clone(&early));
        let spawned = std::thread::Builder::new()
            .name("artoo-memory-open".into())
            .spawn(move || {
                let warn = Arc::new(|text: &str| output::note(&format!("artoo: memory: {text}")));
                let result = Memory::open(&folder, LevelSettings::default(), clock, warn).map(Arc::new);
                let result = result.map_err(|e| MemoryError { message: e.to_string() });
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                match &result {
                    Ok(memory) => kept.drain(..).for_each(|early| early.say(memory)),
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

    /// To the memory, or kept until it is open. What cannot be kept was told when opening failed.
    fn say(&self, what: Early) {
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        match &*self.opened.borrow() {
            Some(Ok(memory)) => what.say(memory),
            Some(Err(_)) => {}
            None => early.push(what),
        }
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
        self.say(Early::Memory(megram));
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
        self.say(Early::Feedback {
            rule: rule.clone(),
            content: self.redactor.text(content),
            now,
        });
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

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_bus::SystemClock;
    use artoo_memory::kv::InMemoryKv;

    /// What is said while the store is being opened is said to it afterwards, in its order.
    #[tokio::test]
    async fn feedback_on_a_rule_waits_for_the_store_to_be_open() {
        let (opens, opened) = watch::channel(None);
        let memory = LateMemory {
            opened,
            early: Arc::default(),
            written: unbounded_channel().0,
            redactor: Redactor::default(),
        };
        let now = SystemClock.now();
        memory.write(Memory::wish(MegramId::new("rule"), "use yarn", now));
        memory.record_negative_feedback(&MegramId::new("rule"), "yarn is not installed", now);
        let store = Memory::start(
            Arc::new(InMemoryKv::new()),
            Arc::new(SystemClock),
            Arc::new(|_: &str| {}),
        );
        let store = Arc::new(store.unwrap());
        memory
            .early
            .lock()
            .unwrap()
            .drain(..)
            .for_each(|early| early.say(&store));
        opens.send_replace(Some(Ok(store)));
        memory.record_negative_feedback(&MegramId::new("rule"), "nor is node", now);
        let potentials = memory.query_mk("user:preference", "env:local", now).await.unwrap();
        assert!(
            (potentials.decision.get() - (1.0 - 2.0 * 0.85)).abs() < 1e-6,
            "{potentials:?}"
        );
    }
}

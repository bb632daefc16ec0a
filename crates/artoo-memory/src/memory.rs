//! The memory service: a thread that owns the records, and a handle that never waits to write (design §15).
//!
//! Writes go into a queue without a bound, because a memory must neither hold up the controller nor be lost. The
//! thread stores what has queued up and syncs it at once; what the store refuses stays queued and is tried again.
//!
//! Owns: the queue and the life of the thread. Must not know: how roles use it.

use crate::kv::{Kv, KvError, LevelKv, LevelSettings};
use crate::recall;
use crate::records::{Records, RecordsError};
use crate::worker::{Group, Reply, Request, Worker, told};
use artoo_protocol::message::{Lesson, Level, MacroState, Megram, MemoryQuery, MemoryReply, Potentials, SopRecord};
use artoo_protocol::ports::{Clock, MemoryError, MemoryService};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, Timestamp, Valence};
use async_trait::async_trait;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// The name of the store's folder within the data folder.
pub const STORE_FOLDER: &str = "memory.leveldb";

/// The policy for writes that come faster than they can be stored, or while the store refuses them: they are kept in memory, all of
/// them, and each time so many more wait the owner is told. Nothing is dropped, nobody waits.
pub const REPORT_AT: usize = 100_000;

/// Told what a person should know: damage, refused memories, a disk that is full.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// The memory of an installation. Dropping it closes it.
pub struct Memory {
    records: Arc<Records>,
    /// How many writes were accepted and are not in the store yet.
    waiting: Arc<AtomicUsize>,
    /// `None` once closed. Senders are only used under the lock, so that nothing can be queued behind the close.
    requests: Mutex<Option<Sender<Request>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    warn: Warn,
    /// [`REPORT_AT`], but for a test.
    report_at: usize,
}

impl Memory {
    /// Opens the LevelDB store in `folder` (see [`LevelKv::open`]) and starts the memory on it.
    ///
    /// # Errors
    /// As of [`LevelKv::open`] and [`Records::open`].
    pub fn open(
        folder: &Path,
        settings: LevelSettings,
        clock: Arc<dyn Clock>,
        warn: Warn,
    ) -> Result<Self, RecordsError> {
        let kv = LevelKv::open(folder, &clock.now().to_string(), settings)?;
        Self::start(Arc::new(kv), clock, warn)
    }

    /// Starts the memory on a store.
    ///
    /// # Errors
    /// When the store is of another version, or cannot be read.
    pub fn start(kv: Arc<dyn Kv>, clock: Arc<dyn Clock>, warn: Warn) -> Result<Self, RecordsError> {
        let records = Arc::new(Records::open(kv)?);
        let waiting = Arc::new(AtomicUsize::new(0));
        let (requests, inbox) = channel();
        let mut worker = Worker::new(records.clone(), clock, warn.clone(), waiting.clone());
        let thread = thread::Builder::new()
            .name("artoo-memory".to_owned())
            .spawn(move || worker.serve(&inbox))
            .map_err(|error| KvError::Io(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            records,
            waiting,
            requests: Mutex::new(Some(requests)),
            thread: Mutex::new(Some(thread)),
            warn,
            report_at: REPORT_AT,
        })
    }

    /// The memory that is written when the user asks for something to be remembered: a rule that never fades.
    pub fn wish(id: MegramId, content: &str, now: Timestamp) -> Megram {
        Megram {
            id,
            level: Level::C,
            created_at: now,
            last_recalled_at: None,
            space: recall::PREFERENCE_SPACE.to_owned(),
            entity: recall::LOCAL_ENTITY.to_owned(),
            content: content.trim().to_owned(),
            state: MacroState::Remember,
            f: Magnitude::ONE,
            sigma: Valence::new(1.0).unwrap_or_default(),
            k: DecayPerDay::ZERO,
            sources: Vec::new(),
            supersedes: None,
            origin: Some("operator".to_owned()),
        }
    }

    /// The records behind this memory, for who works through them at leisure on a thread of its own: the Dreamer. After
    /// [`MemoryService::close`] they answer [`KvError::Closed`].
    pub fn records(&self) -> Arc<Records> {
        self.records.clone()
    }

    /// Removes a memory for good; answers whether there was one. Only the operator forgets.
    ///
    /// # Errors
    /// [`MemoryError`] when the store cannot be written.
    pub async fn forget(&self, id: &MegramId) -> Result<bool, MemoryError> {
        self.ask(|reply| Request::Forget { id: id.clone(), reply }).await
    }

    /// Counts a write before it is queued; says so when very many wait.
    fn expect_one(&self) {
        let waiting = self.waiting.fetch_add(1, Ordering::AcqRel) + 1;
        if waiting.is_multiple_of(self.report_at) {
            (self.warn)(&format!("{waiting} memories wait to be written"));
        }
    }

    fn send(&self, request: Request) -> bool {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.as_ref().is_some_and(|requests| requests.send(request).is_ok())
    }

    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, MemoryError> {
        let (reply, answer) = oneshot::channel();
        if !self.send(request(reply)) {
            return Err(closed());
        }
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    fn is_open(&self) -> bool {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn take_requests(&self) -> Option<Sender<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            (self.warn)("the memory's thread failed");
        }
    }
}

#[async_trait]
impl MemoryService for Memory {
    fn write(&self, megram: Megram) {
        self.expect_one();
        if !self.send(Request::Write(Box::new(megram))) {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            (self.warn)("a memory was refused: the memory is closed");
        }
    }

    async fn query_c(&self, space: &str, entity: &str) -> Result<Vec<SopRecord>, MemoryError> {
        self.ask(|reply| Request::Rules {
            group: group(space, entity),
            reply,
        })
        .await
    }

    async fn query_mk(&self, space: &str, entity: &str, now: Timestamp) -> Result<Potentials, MemoryError> {
        // With nothing on its way to the store, sums that are kept in memory are the truth, and no thread need be asked.
        if self.waiting.load(Ordering::Acquire) == 0
            && let Some(potentials) = self.records.potentials_in_memory(space, entity, now)
            && self.is_open()
        {
            return Ok(potentials);
        }
        self.ask(|reply| Request::Potentials {
            group: group(space, entity),
            now,
            reply,
        })
        .await
    }

    async fn query_k(&self, space: &str, entity: &str, limit: usize) -> Result<Vec<Lesson>, MemoryError> {
        self.ask(|reply| Request::Lessons {
            group: group(space, entity),
            level: Level::K,
            limit,
            reply,
        })
        .await
    }

    async fn recent(&self, space: &str, entity: &str, limit: usize) -> Result<Vec<Lesson>, MemoryError> {
        self.ask(|reply| Request::Lessons {
            group: group(space, entity),
            level: Level::M,
            limit,
            reply,
        })
        .await
    }

    async fn recall(&self, query: &MemoryQuery, now: Timestamp) -> Result<MemoryReply, MemoryError> {
        self.ask(|reply| Request::Recall {
            query: Box::new(query.clone()),
            now,
            reply,
        })
        .await
    }

    fn record_negative_feedback(&self, rule: &MegramId, content: &str, now: Timestamp) {
        self.expect_one();
        if !self.send(Request::Feedback {
            rule: rule.clone(),
            content: content.to_owned(),
            now,
        }) {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            (self.warn)("a feedback was refused: the memory is closed");
        }
    }

    async fn flush(&self) -> Result<(), MemoryError> {
        self.ask(|reply| Request::Flush { reply }).await
    }

    async fn close(&self) -> Result<(), MemoryError> {
        let Some(requests) = self.take_requests() else {
            return Ok(());
        };
        let (reply, answer) = oneshot::channel();
        let _ = requests.send(Request::Close { reply });
        let outcome = answer.await.unwrap_or_else(|_| Err(closed()));
        self.join();
        outcome
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Without its sender the thread stores what is queued and ends.
        drop(self.take_requests());
        self.join();
    }
}

fn closed() -> MemoryError {
    told(&KvError::Closed)
}

fn group(space: &str, entity: &str) -> Group {
    (space.to_owned(), entity.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{Batch, InMemoryKv, Notice, Pair};
    use crate::testing::{at, megram};

    struct StoppedClock;

    impl Clock for StoppedClock {
        fn now(&self) -> Timestamp {
            at()
        }
    }

    /// A store that takes nothing while this is locked.
    struct Slow(Arc<Mutex<()>>, InMemoryKv);

    impl Kv for Slow {
        fn get_many(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, KvError> {
            self.1.get_many(keys)
        }
        fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, KvError> {
            self.1.scan(prefix, after, limit)
        }
        fn apply(&self, batch: Batch) -> Result<(), KvError> {
            drop(self.0.lock());
            self.1.apply(batch)
        }
        fn flush(&self) -> Result<(), KvError> {
            self.1.flush()
        }
        fn close(&self) -> Result<(), KvError> {
            self.1.close()
        }
        fn take_notices(&self) -> Vec<Notice> {
            Vec::new()
        }
    }

    /// The policy for more writes than the store can take: nobody waits, nothing is dropped, the owner is told at every mark.
    #[tokio::test]
    async fn past_the_mark_writes_are_reported_and_kept_and_nobody_waits() {
        let (gate, told) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(Vec::new())));
        let sink = told.clone();
        let warn: Warn = Arc::new(move |text: &str| sink.lock().unwrap().push(text.to_owned()));
        let kv = Arc::new(Slow(gate.clone(), InMemoryKv::new()));
        let mut memory = Memory::start(kv, Arc::new(StoppedClock), warn).unwrap();
        memory.report_at = 500;
        let shut = gate.lock().unwrap();
        for number in 0..1_200 {
            // Were this to wait for the store, it would wait for ever.
            memory.write(megram(&format!("{number:04}"), "tool:shell", "path:/a", 0.5, 1.0));
        }
        let marks = ["500 memories wait to be written", "1000 memories wait to be written"];
        assert_eq!(*told.lock().unwrap(), marks);
        drop(shut);
        memory.flush().await.unwrap();
        assert_eq!(memory.records().all().unwrap().len(), 1_200);
        assert_eq!(told.lock().unwrap().len(), 2);
        memory.close().await.unwrap();
    }
}

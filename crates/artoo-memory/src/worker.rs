//! The memory's thread: stores what is queued, answers what is asked (design §15).
//!
//! Owns: the records, the backlog of writes that the store refused. Must not know: who asks.

use crate::junk;
use crate::kv::{KvError, REPAIRED_KEY};
use crate::memory::Warn;
use crate::recall;
use crate::records::{Edit, Records, Stored, bounded};
use crate::view::GroupKey;
use artoo_protocol::message::{Lesson, Level, MacroState, Megram, MemoryQuery, MemoryReply, Potentials, SopRecord};
use artoo_protocol::ports::{Clock, MemoryError};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, TaskId, Timestamp, Valence, text};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How many queued requests are taken at once, with one sync for all: the more, the nearer to one another lies what is read for them.
const GROUP: usize = 1024;
/// Up to so many writes at once are held against what memory knows already; a burst is stored as it comes.
const CLOSELY: usize = 32;
/// How long to wait before a refused write is tried again when nothing else happens.
const RETRY: Duration = Duration::from_secs(5);

pub(crate) type Reply<T> = oneshot::Sender<Result<T, MemoryError>>;
pub(crate) type Group = (String, String);

/// What the handle asks of the thread.
pub(crate) enum Request {
    Write(Box<Megram>),
    Feedback {
        rule: MegramId,
        content: String,
        now: Timestamp,
    },
    Rules {
        group: Group,
        reply: Reply<Vec<SopRecord>>,
    },
    Potentials {
        group: Group,
        now: Timestamp,
        reply: Reply<Potentials>,
    },
    Lessons {
        group: Group,
        level: Level,
        limit: usize,
        reply: Reply<Vec<Lesson>>,
    },
    Recall {
        query: Box<MemoryQuery>,
        now: Timestamp,
        reply: Reply<MemoryReply>,
    },
    Forget {
        id: MegramId,
        reply: Reply<bool>,
    },
    Flush {
        reply: Reply<()>,
    },
    Close {
        reply: Reply<()>,
    },
}

/// What was accepted and is to be stored.
enum Waiting {
    Memory(Box<Megram>),
    /// What speaks against a rule, which is read when its turn has come: what cannot be read now may be readable then.
    Feedback {
        rule: MegramId,
        content: String,
        now: Timestamp,
    },
}

/// The thread's own state.
pub(crate) struct Worker {
    records: Arc<Records>,
    /// How many writes the handle has accepted that are not in the store yet.
    waiting: Arc<AtomicUsize>,
    clock: Arc<dyn Clock>,
    warn: Warn,
    /// Accepted, not yet stored, in order.
    backlog: VecDeque<Waiting>,
    /// Whether something was stored since the last sync.
    is_dirty: bool,
    /// What was last warned of, so that a full disk is not told a hundred times.
    last_failure: Option<KvError>,
    /// Whether this is a look at a store that cannot be changed.
    cannot_repair: bool,
    /// Counts feedbacks, to tell their ids apart.
    feedbacks: u64,
}

impl Worker {
    /// With nothing queued.
    pub(crate) fn new(records: Arc<Records>, clock: Arc<dyn Clock>, warn: Warn, waiting: Arc<AtomicUsize>) -> Self {
        Self {
            records,
            waiting,
            clock,
            warn,
            backlog: VecDeque::new(),
            is_dirty: false,
            last_failure: None,
            cannot_repair: false,
            feedbacks: 0,
        }
    }

    /// Carries out requests until told to close, or until the handle is gone; then stores what is queued.
    pub(crate) fn serve(&mut self, inbox: &Receiver<Request>) {
        self.settle();
        loop {
            let first = match inbox.recv_timeout(self.patience()) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            for request in first.into_iter().chain(inbox.try_iter().take(GROUP - 1)) {
                if let Request::Close { reply } = request {
                    let _ = reply.send(self.end());
                    return;
                }
                self.carry_out(request);
            }
            self.settle();
        }
        if let Err(error) = self.end() {
            (self.warn)(&error.message);
        }
    }

    /// How long to wait for a request: for ever, unless something that failed is to be tried again.
    fn patience(&self) -> Duration {
        let is_done = self.backlog.is_empty() && !self.is_dirty;
        if is_done { Duration::MAX } else { RETRY }
    }

    /// Leaves nothing undone that could be done: what was written is synced, what happened is told.
    fn settle(&mut self) {
        self.tell_notices();
        if let Err(error) = self.sync() {
            self.tell_failure(error);
        }
    }

    fn carry_out(&mut self, request: Request) {
        let request = match request {
            Request::Write(megram) => return self.backlog.push_back(Waiting::Memory(Box::new(bounded(*megram)))),
            Request::Feedback { rule, content, now } => {
                return self.backlog.push_back(Waiting::Feedback { rule, content, now });
            }
            request => request,
        };
        // A reader sees every write before it. Where the store refuses writes, reading may still work.
        if let Err(error) = self.store_backlog() {
            self.tell_failure(error);
        }
        match request {
            Request::Write(_) | Request::Feedback { .. } | Request::Close { .. } => {}
            Request::Rules { group, reply } => answer(reply, self.rules(&group)),
            Request::Potentials {
                group: (space, entity),
                now,
                reply,
            } => answer(reply, self.records.potentials(&space, &entity, now)),
            Request::Lessons {
                group,
                level,
                limit,
                reply,
            } => answer(
                reply,
                self.newest(&group, level, limit)
                    .map(|found| recall::lessons(&found, level, limit)),
            ),
            // That it was recalled is no reason to sync: it goes with the next memory.
            Request::Recall { query, now, reply } => answer(reply, recall::recall(&self.records, &query, now)),
            Request::Forget { id, reply } => {
                self.is_dirty = true;
                answer(
                    reply,
                    self.records
                        .remove(&id, self.clock.now())
                        .and_then(|was_there| self.sync().map(|()| was_there)),
                );
            }
            Request::Flush { reply } => {
                self.tell_notices();
                answer(reply, self.sync());
            }
        }
    }

    fn newest(&self, (space, entity): &Group, level: Level, limit: usize) -> Result<Vec<Megram>, KvError> {
        self.records
            .get_many(&self.records.newest(&GroupKey::new(space, entity), level, limit)?)
    }

    fn rules(&mut self, group: &Group) -> Result<Vec<SopRecord>, KvError> {
        let rules = recall::rules(&self.newest(group, Level::C, usize::MAX)?, usize::MAX);
        let _ = self
            .records
            .mark_recalled(rules.iter().map(|rule| &rule.id), self.clock.now());
        Ok(rules)
    }

    /// The memory that speaks against a rule: with the opposite valence, since a constraint that proved wrong is not made right by
    /// one more aversion. `None` where there is no such rule.
    fn feedback(&mut self, rule: &MegramId, content: &str, now: Timestamp) -> Result<Option<Megram>, KvError> {
        let Some(rule) = self.records.get(rule)? else {
            return Ok(None);
        };
        self.feedbacks += 1;
        let sign = if rule.sigma.get() < 0.0 { 1.0 } else { -1.0 };
        Ok(Some(bounded(Megram {
            id: MegramId::derive(now, &TaskId::new(rule.id.as_str()), self.feedbacks),
            level: Level::M,
            created_at: now,
            last_recalled_at: None,
            content: content.to_owned(),
            state: MacroState::ChangeApproach,
            f: Magnitude::clamped(0.85),
            sigma: Valence::new(sign).unwrap_or_default(),
            k: DecayPerDay::new(0.05).unwrap_or_default(),
            sources: Vec::new(),
            supersedes: None,
            origin: Some(format!("feedback on {}", rule.id)),
            space: rule.space,
            entity: rule.entity,
        })))
    }

    /// Makes the feedback that stands first a memory, or drops it aloud; it stays as it is while its rule cannot be read.
    fn word_feedback(&mut self) -> Result<(), KvError> {
        let Some(Waiting::Feedback { rule, content, now }) = self.backlog.front() else {
            return Ok(());
        };
        let (rule, content, now) = (rule.clone(), content.clone(), *now);
        let worded = self.feedback(&rule, &content, now)?;
        self.backlog.pop_front();
        if let Some(megram) = worded {
            self.backlog.push_front(Waiting::Memory(Box::new(megram)));
        } else {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            (self.warn)(&format!("feedback on a rule that memory does not have: {rule}"));
        }
        Ok(())
    }

    /// Stores what is queued, in order; at the first failure the rest stays queued.
    fn store_backlog(&mut self) -> Result<(), KvError> {
        let mut most = GROUP;
        while !self.backlog.is_empty() {
            self.word_feedback()?;
            let memory = |waiting: &Waiting| match waiting {
                Waiting::Memory(megram) => Some((**megram).clone()),
                Waiting::Feedback { .. } => None,
            };
            let memories: Vec<Megram> = self.backlog.iter().take(most).map_while(memory).collect();
            let (some, now) = (memories.len(), self.clock.now());
            let mut news = Vec::with_capacity(some);
            for megram in memories {
                if some > CLOSELY || !junk::knows(&self.records, &megram, now)? {
                    news.push(Edit::Store(megram));
                }
            }
            let stored = match self.records.commit(&news, now) {
                Err(KvError::TooLarge { .. }) if some > 1 => {
                    most = some / 2;
                    continue;
                }
                // It will never be smaller: who waits behind it must not wait for ever.
                Err(KvError::TooLarge { .. }) => vec![Stored::Refused("it is too large to be written in one piece")],
                stored => stored?,
            };
            self.backlog.drain(..some);
            for (edit, stored) in news.iter().zip(stored) {
                if let (Edit::Store(megram), Stored::Refused(why)) = (edit, stored) {
                    (self.warn)(&format!("memory {} was refused: {why}", megram.id));
                }
            }
            self.waiting.fetch_sub(some, Ordering::AcqRel);
            self.is_dirty = true;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), KvError> {
        self.store_backlog()?;
        if self.is_dirty {
            self.records.kv().flush()?;
            self.is_dirty = false;
        }
        self.last_failure = None;
        Ok(())
    }

    fn end(&mut self) -> Result<(), MemoryError> {
        let synced = self.sync();
        self.tell_notices();
        let closed = self.records.kv().close();
        synced.and(closed).map_err(|error| match self.backlog.len() {
            0 => told(&error),
            lost => MemoryError {
                message: format!("{lost} memories could not be written: {error}"),
            },
        })
    }

    fn tell_failure(&mut self, error: KvError) {
        if self.last_failure.as_ref() != Some(&error) {
            (self.warn)(&format!("{error}; {} memories wait to be written", self.backlog.len()));
            self.last_failure = Some(error);
        }
    }

    /// Whether an earlier process repaired the store and ended before it could make the indices fit; says so.
    fn was_repaired(&self) -> bool {
        let Ok(Some(reason)) = self.records.kv().get(REPAIRED_KEY) else {
            return false;
        };
        let reason = text::one_line(&String::from_utf8_lossy(&reason), 200);
        (self.warn)(&format!("the memory store was repaired at an earlier start ({reason})"));
        true
    }

    /// Says what happened to the store; after a repair the indices are made to fit what is left.
    fn tell_notices(&mut self) {
        let notices = self.records.kv().take_notices();
        for notice in &notices {
            (self.warn)(&notice.to_string());
        }
        let damaged = self.records.take_damaged();
        if (notices.is_empty() && damaged == 0 && self.records.is_derived()) || self.cannot_repair {
            return;
        }
        let was_repaired = notices.is_empty() && self.was_repaired();
        match self.records.repair(self.clock.now()) {
            // Someone only looks; what is derived is made up from the records as they are read.
            Err(KvError::ReadOnly) => self.cannot_repair = true,
            Ok(found) => {
                self.is_dirty = true;
                if !notices.is_empty() || found.damaged > 0 || was_repaired {
                    (self.warn)(&format!(
                        "{} memories are left, {} could not be read",
                        found.records, found.damaged
                    ));
                }
            }
            Err(error) => self.tell_failure(error),
        }
    }
}

fn answer<T>(reply: Reply<T>, outcome: Result<T, KvError>) {
    // Who no longer waits needs no answer.
    let _ = reply.send(outcome.map_err(|error| told(&error)));
}

/// A store's error as the port tells it.
pub(crate) fn told(error: &KvError) -> MemoryError {
    MemoryError {
        message: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{Batch, InMemoryKv, Kv, Notice, Pair};
    use crate::memory::Memory;
    use crate::testing::{at, megram};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    struct StoppedClock;

    impl Clock for StoppedClock {
        fn now(&self) -> Timestamp {
            at()
        }
    }

    /// A store that cannot be read at times, and cannot be synced at times.
    struct Failing {
        kv: InMemoryKv,
        no_reads: AtomicBool,
        no_sync: AtomicBool,
        /// A larger batch is refused, if it is not 0.
        batch_max: AtomicUsize,
    }

    impl Failing {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                kv: InMemoryKv::new(),
                no_reads: AtomicBool::new(false),
                no_sync: AtomicBool::new(false),
                batch_max: AtomicUsize::new(0),
            })
        }

        fn may(fails: &AtomicBool) -> Result<(), KvError> {
            if fails.load(Ordering::SeqCst) {
                return Err(KvError::Io("broken disk".to_owned()));
            }
            Ok(())
        }
    }

    impl Kv for Failing {
        fn get_many(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, KvError> {
            Self::may(&self.no_reads)?;
            self.kv.get_many(keys)
        }
        fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, KvError> {
            Self::may(&self.no_reads)?;
            self.kv.scan(prefix, after, limit)
        }
        fn apply(&self, batch: Batch) -> Result<(), KvError> {
            let (bytes, most) = (batch.bytes(), self.batch_max.load(Ordering::SeqCst));
            if most > 0 && bytes > most {
                return Err(KvError::TooLarge { bytes });
            }
            self.kv.apply(batch)
        }
        fn flush(&self) -> Result<(), KvError> {
            Self::may(&self.no_sync)
        }
        fn close(&self) -> Result<(), KvError> {
            self.kv.close()
        }
        fn take_notices(&self) -> Vec<Notice> {
            Vec::new()
        }
    }

    type Told = Arc<Mutex<Vec<String>>>;

    fn worker(kv: &Arc<Failing>) -> (Worker, Arc<AtomicUsize>, Told) {
        let told = Told::default();
        let sink = Arc::clone(&told);
        let warn: Warn = Arc::new(move |text: &str| sink.lock().unwrap().push(text.to_owned()));
        let records = Arc::new(Records::open(Arc::clone(kv) as Arc<dyn Kv>).unwrap());
        let waiting = Arc::new(AtomicUsize::new(0));
        (
            Worker::new(records, Arc::new(StoppedClock), warn, Arc::clone(&waiting)),
            waiting,
            told,
        )
    }

    #[test]
    fn a_sync_that_failed_is_tried_again_though_nothing_is_queued_and_not_at_once() {
        let kv = Failing::new();
        let (mut worker, ..) = worker(&kv);
        kv.no_sync.store(true, Ordering::SeqCst);
        worker.waiting.fetch_add(1, Ordering::AcqRel);
        worker.carry_out(Request::Write(Box::new(megram("1", "tool:shell", "path:/a", 0.5, 1.0))));
        worker.settle();
        assert!(worker.backlog.is_empty(), "it is stored, and not durable");
        assert_eq!(worker.patience(), RETRY);
        worker.settle();
        assert_eq!(worker.patience(), RETRY);
        kv.no_sync.store(false, Ordering::SeqCst);
        worker.settle();
        assert_eq!(worker.patience(), Duration::MAX);
    }

    #[test]
    fn feedback_waits_until_its_rule_can_be_read() {
        let kv = Failing::new();
        let (mut worker, waiting, told) = worker(&kv);
        let rule = Memory::wish(MegramId::new("rule"), "use yarn", at());
        let feedback = |rule: &str| Request::Feedback {
            rule: MegramId::new(rule),
            content: "yarn is not installed".to_owned(),
            now: at(),
        };
        waiting.store(4, Ordering::Release);
        worker.carry_out(Request::Write(Box::new(rule)));
        worker.carry_out(feedback("rule"));
        worker.carry_out(feedback("none"));
        worker.carry_out(Request::Write(Box::new(megram(
            "after",
            "tool:shell",
            "path:/a",
            0.5,
            1.0,
        ))));
        kv.no_reads.store(true, Ordering::SeqCst);
        worker.settle();
        assert_eq!((waiting.load(Ordering::Acquire), worker.patience()), (4, RETRY));
        assert!(told.lock().unwrap()[0].contains("4 memories wait"), "{told:?}");
        told.lock().unwrap().clear();
        kv.no_reads.store(false, Ordering::SeqCst);
        worker.settle();
        assert_eq!((waiting.load(Ordering::Acquire), worker.patience()), (0, Duration::MAX));
        let decision = worker
            .records
            .potentials("user:preference", "env:local", at())
            .unwrap()
            .decision;
        assert!((decision.get() - 0.15).abs() < 1e-9, "{decision}");
        assert_eq!(
            *told.lock().unwrap(),
            ["feedback on a rule that memory does not have: none"]
        );
        assert_eq!(worker.records.all().unwrap().len(), 3);
    }

    /// What can never be written must not hold up what comes after it for ever.
    #[test]
    fn a_memory_too_large_to_be_written_is_refused_aloud_and_holds_up_nothing() {
        let kv = Failing::new();
        let (mut worker, waiting, told) = worker(&kv);
        let mut monster = megram("monster", "tool:shell", "path:/a", 0.5, 1.0);
        monster.sources = (0..1_000).map(|number| MegramId::new(format!("{number}"))).collect();
        kv.batch_max.store(10_000, Ordering::SeqCst);
        waiting.store(3, Ordering::Release);
        for m in [
            megram("1", "s", "e", 0.5, 1.0),
            monster,
            megram("2", "s", "e", 0.5, 1.0),
        ] {
            worker.carry_out(Request::Write(Box::new(m)));
        }
        worker.settle();
        assert_eq!((waiting.load(Ordering::Acquire), worker.patience()), (0, Duration::MAX));
        assert_eq!(worker.records.all().unwrap().len(), 2);
        assert_eq!(
            *told.lock().unwrap(),
            ["memory monster was refused: it is too large to be written in one piece"]
        );
    }
}

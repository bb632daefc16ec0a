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

/// The thread's own state.
pub(crate) struct Worker {
    records: Arc<Records>,
    /// How many writes the handle has accepted that are not in the store yet.
    waiting: Arc<AtomicUsize>,
    clock: Arc<dyn Clock>,
    warn: Warn,
    /// Accepted, not yet stored.
    backlog: VecDeque<Edit>,
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
            let first = match inbox.recv_timeout(if self.backlog.is_empty() { Duration::MAX } else { RETRY }) {
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

    /// Leaves nothing undone that could be done: what was written is synced, what happened is told.
    fn settle(&mut self) {
        self.tell_notices();
        if let Err(error) = self.sync() {
            self.tell_failure(error);
        }
    }

    fn carry_out(&mut self, request: Request) {
        if let Request::Write(megram) = request {
            self.backlog.push_back(Edit::Store(bounded(*megram)));
            return;
        }
        // A reader sees every write before it. Where the store refuses writes, reading may still work.
        if let Err(error) = self.store_backlog() {
            self.tell_failure(error);
        }
        match request {
            Request::Write(_) | Request::Close { .. } => {}
            Request::Feedback { rule, content, now } => self.feedback(&rule, &content, now),
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

    /// Speaks against a rule: with the opposite valence, since a constraint that proved wrong is not made right by
    /// one more aversion.
    fn feedback(&mut self, rule: &MegramId, content: &str, now: Timestamp) {
        let rule = match self.records.get(rule) {
            Ok(Some(rule)) => rule,
            Ok(None) => {
                self.waiting.fetch_sub(1, Ordering::AcqRel);
                return (self.warn)(&format!("feedback on a rule that memory does not have: {rule}"));
            }
            Err(error) => {
                self.waiting.fetch_sub(1, Ordering::AcqRel);
                return self.tell_failure(error);
            }
        };
        self.feedbacks += 1;
        let sign = if rule.sigma.get() < 0.0 { 1.0 } else { -1.0 };
        self.backlog.push_back(Edit::Store(bounded(Megram {
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
        })));
    }

    /// Stores what is queued, in order; at the first failure the rest stays queued.
    fn store_backlog(&mut self) -> Result<(), KvError> {
        while !self.backlog.is_empty() {
            let some = self.backlog.len().min(GROUP);
            let (now, looks_closely) = (self.clock.now(), some <= CLOSELY);
            let edits = self.backlog.make_contiguous().get(..some).unwrap_or_default();
            let mut news = Vec::with_capacity(some);
            for edit in edits {
                let Edit::Store(megram) = edit else { continue };
                if !looks_closely || !junk::knows(&self.records, megram, now)? {
                    news.push(edit.clone());
                }
            }
            let stored = self.records.commit(&news, now)?;
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

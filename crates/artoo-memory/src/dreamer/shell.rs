//! The Dreamer at work beside the tasks: waits, goes over the store on a thread of its own, asks for rules (design §15).
//!
//! Nothing of it stands in the way of a task: slices of the store are short, a model is asked only while no task runs, one call at
//! a time, and the end of the process waits for at most as long as it was told. Without a model only the way up to rules is left
//! out.
//!
//! Owns the loop. Must not know the bus, prompts of roles, files.

use super::ask::{Call, Outcome, blocking, distilled};
use super::awake::noted;
use super::choose::{Action, Consolidation, Params};
use super::pass::{Mode, Pass, Tidied};
use super::rhythm::{Rhythm, Scope};
use crate::keys;
use crate::kv::{Batch, KvError};
use crate::records::Records;
use crate::view::GroupKey;
use artoo_protocol::model::Usage;
use artoo_protocol::ports::{Clock, LanguageModel};
use artoo_protocol::{Millis, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How often a Dreamer that waits for a task to end looks again.
const BUSY_NAP: Millis = Millis(250);
/// Longest sleep at a stretch: a deadline is an instant of a clock that may jump.
const NAP: Millis = Millis(30_000);
/// At the end of a process everything is looked at when that did not happen for so long; a conversation does it by its timer.
const FULL_EVERY: Millis = Millis::from_seconds(6 * 3600);
/// How long that may take at the end of a process; the next one goes on where it was stopped.
const LAST_SWEEP: Millis = Millis(1_500);

/// What the Dreamer tells its owner.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A pass is over; told where it changed something.
    Passed(Tidied),
    /// A model was asked.
    Asked(Box<Call>),
    /// The store could not be used.
    Trouble(KvError),
}

/// Whether another call may be made after a model, by its name, was used so much.
pub type MaySpend = Arc<dyn Fn(&str, &Usage) -> bool + Send + Sync>;

/// What stands around the Dreamer.
#[derive(Clone)]
pub struct Around {
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Words rules; `None` where there is no model that can.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// Whether a task runs: then no model is asked.
    pub is_busy: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Whether after so much was used another call may be made.
    pub may_spend: MaySpend,
    /// Hears what happened.
    pub tell: Arc<dyn Fn(&Told) + Send + Sync>,
}

enum Heard {
    Wrote(GroupKey),
    Ended,
}

/// A Dreamer beside the tasks. Dropping it stops it between two slices.
pub struct Dreamer {
    heard: UnboundedSender<Heard>,
    /// When it has to be done, once it is told to end.
    end: watch::Sender<Option<Millis>>,
    stop: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Dreamer {
    /// Begins to dream on this store. Must be called within a tokio runtime with time enabled.
    pub fn start(records: Arc<Records>, params: Params, around: Around) -> Self {
        let (heard, inbox) = unbounded_channel();
        let (end, told_to_end) = watch::channel(None);
        let stop = Arc::new(AtomicBool::new(false));
        let may_ask = (around.may_spend)("", &Usage::default());
        let night = Night {
            rhythm: Rhythm::new(around.clock.now()),
            records,
            params,
            around,
            stop: Arc::clone(&stop),
            spent: Usage::default(),
            exhausted: !may_ask,
            proposals: Vec::new(),
        };
        Self {
            heard,
            end,
            stop,
            task: tokio::spawn(night.live(inbox, told_to_end)),
        }
    }

    /// Something was written to this group.
    pub fn wrote(&self, group: GroupKey) {
        let _ = self.heard.send(Heard::Wrote(group));
    }

    /// A task has ended.
    pub fn ended(&self) {
        let _ = self.heard.send(Heard::Ended);
    }

    /// Looks at what is left and ends, within `limit`: what is not done by then is stopped between two steps.
    pub async fn finish(mut self, limit: Millis) {
        self.end.send_replace(Some(limit));
        if timeout(limit.to_duration(), &mut self.task).await.is_err() {
            self.stop.store(true, Ordering::Relaxed);
            // A slice is short; a model call is dropped.
            let _ = timeout(BUSY_NAP.to_duration(), &mut self.task).await;
        }
    }
}

impl Drop for Dreamer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.task.abort();
    }
}

struct Night {
    rhythm: Rhythm,
    records: Arc<Records>,
    params: Params,
    around: Around,
    stop: Arc<AtomicBool>,
    spent: Usage,
    /// Whether no more may be spent: what was spent only grows, so no model is asked any more.
    exhausted: bool,
    /// Rules that wait for a moment without a task.
    proposals: Vec<Consolidation>,
}

impl Night {
    async fn live(mut self, mut inbox: UnboundedReceiver<Heard>, mut end: watch::Receiver<Option<Millis>>) {
        loop {
            let now = self.around.clock.now();
            let nap = if self.proposals.is_empty() {
                self.rhythm.deadline().since(now).min(NAP)
            } else {
                BUSY_NAP
            };
            tokio::select! {
                biased;
                is_told = async { end.wait_for(Option::is_some).await.is_ok() } => {
                    if is_told {
                        while let Ok(heard) = inbox.try_recv() {
                            self.hear(heard);
                        }
                        self.last().await;
                    }
                    return;
                }
                heard = inbox.recv() => match heard {
                    Some(heard) => self.hear(heard),
                    None => return,
                },
                () = sleep(nap.to_duration()) => {
                    if let Some(scope) = self.rhythm.due(self.around.clock.now()) {
                        self.tidy(scope, None).await;
                    }
                    if !self.proposals.is_empty() && !(self.around.is_busy)() {
                        self.ask().await;
                    }
                }
            }
        }
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Wrote(group) => self.rhythm.touch(group),
            Heard::Ended => self.rhythm.ended(self.around.clock.now()),
        }
    }

    /// The end: what was touched, a part of everything where that is long due, and the rules that were earned.
    async fn last(&mut self) {
        if let Some(scope) = self.rhythm.last() {
            self.tidy(scope, None).await;
        }
        if let Some(scope) = self.overdue().await {
            let until = self.around.clock.now().plus(LAST_SWEEP);
            self.tidy(scope, Some(until)).await;
        }
        while !self.proposals.is_empty() && !self.stop.load(Ordering::Relaxed) {
            self.ask().await;
        }
    }

    /// One pass, stopped at `until`.
    async fn tidy(&mut self, scope: Scope, until: Option<Timestamp>) {
        let (records, stop) = (Arc::clone(&self.records), Arc::clone(&self.stop));
        let params = Params {
            words_rules: self.around.model.is_some() && !self.exhausted,
            ..self.params
        };
        let (clock, now) = (Arc::clone(&self.around.clock), self.around.clock.now());
        let pass = move || {
            let mut pass = Pass {
                records: &records,
                params: noted(&**records.kv(), now, params)?,
                now,
                mode: Mode::Perform,
                stop: &|| stop.load(Ordering::Relaxed) || until.is_some_and(|until| clock.now() >= until),
                on_action: &mut |_: &GroupKey, _: &Action| {},
            };
            let tidied = pass.run(&scope)?;
            note_progress(&records, &scope, &tidied, now)?;
            Ok(tidied)
        };
        match blocking(pass).await {
            Ok(tidied) => {
                for proposal in &tidied.proposals {
                    self.proposals
                        .retain(|known| (&known.key, known.sign) != (&proposal.key, proposal.sign));
                    self.proposals.push(proposal.clone());
                }
                if self.around.model.is_none() || self.exhausted {
                    self.proposals.clear();
                }
                if tidied.changes() > 0 {
                    (self.around.tell)(&Told::Passed(tidied));
                }
            }
            // A memory that was closed needs no dreams.
            Err(KvError::Closed) => {}
            Err(error) => (self.around.tell)(&Told::Trouble(error)),
        }
    }

    /// Puts one question.
    async fn ask(&mut self) {
        let Some(model) = self.around.model.clone() else {
            return self.proposals.clear();
        };
        if self.exhausted {
            return self.proposals.clear();
        }
        if self.proposals.is_empty() {
            return;
        }
        let proposal = self.proposals.remove(0);
        match distilled(&self.records, model.as_ref(), proposal, self.around.clock.as_ref()).await {
            Ok(Some(call)) => {
                self.spent = sum(self.spent, call.usage);
                self.exhausted |= !(self.around.may_spend)(&call.model, &self.spent);
                let reachable = !matches!(call.outcome, Outcome::Failed(_));
                (self.around.tell)(&Told::Asked(Box::new(call)));
                if self.exhausted || !reachable {
                    self.proposals.clear();
                }
            }
            Ok(None) | Err(KvError::Closed) => {}
            Err(error) => (self.around.tell)(&Told::Trouble(error)),
        }
    }

    /// What is left of everything, when it was not gone over for long.
    async fn overdue(&self) -> Option<Scope> {
        let (records, now) = (Arc::clone(&self.records), self.around.clock.now());
        let read = move || {
            let last = records.kv().get(keys::DREAMT.as_bytes())?;
            let last = last.and_then(|text| Timestamp::parse(std::str::from_utf8(&text).ok()?).ok());
            if last.is_some_and(|last| last <= now && now.since(last) < FULL_EVERY) {
                return Ok(None);
            }
            let reached = records.kv().get(keys::DREAMT_TO.as_bytes())?;
            let group = reached.and_then(|key| <[String; 2]>::try_from(keys::parts(&key)?).ok());
            Ok(Some(group.map_or(Scope::Everything, |[space, entity]| {
                Scope::After(GroupKey { space, entity })
            })))
        };
        blocking(read).await.ok().flatten()
    }
}

/// Writes down how far a pass over everything came.
fn note_progress(records: &Records, scope: &Scope, tidied: &Tidied, now: Timestamp) -> Result<(), KvError> {
    let mut batch = Batch::new();
    match scope {
        Scope::Touched(_) => return Ok(()),
        Scope::Everything | Scope::After(_) => match &tidied.reached {
            Some(reached) if tidied.unfinished => {
                batch.put(keys::DREAMT_TO, keys::sums(&reached.space, &reached.entity));
            }
            _ if tidied.unfinished => return Ok(()),
            _ => {
                batch.put(keys::DREAMT, now.to_string());
                batch.delete(keys::DREAMT_TO);
            }
        },
    }
    records.kv().apply(batch)
}

/// What two rounds of calls used together.
#[must_use]
pub const fn sum(left: Usage, right: Usage) -> Usage {
    left.plus(right)
}

#[cfg(test)]
mod tests;

//! The in-process bus: one order for all messages, journaled before anyone hears of them (design §3).
//!
//! Owns sequence numbers, envelope ids, delivery by the route table, and the end of a task's work when its end passes.
//! Must not know what a role does with a message, and never waits for a receiver.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use artoo_protocol::ports::{Bus, Clock, NoRoute};
use artoo_protocol::{Act, Deed, Envelope, EnvelopeId, Message, MessageKind, Role, TaskId, Timestamp, route};
use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::inbox::{Inbox, Pending, Slot};
use crate::journal::Journal;
use crate::lives::{Lives, Phase};
use crate::locked;
use crate::notice::{Notice, Observer, Silent};
use crate::tap::{Hears, Tap, TapQueue};

/// How a hub is set up.
pub struct HubOptions {
    /// Where everything is written down; without one nothing is.
    pub journal: Option<Journal>,
    /// Who hears of alarms.
    pub observer: Arc<dyn Observer>,
    /// Number of waiting messages above which an inbox is reported.
    pub alarm_mark: usize,
    /// Sequence number of the first message: 1, or the one after the last of the journal that is resumed.
    pub first_seq: u64,
}

impl Default for HubOptions {
    fn default() -> Self {
        Self {
            journal: None,
            observer: Arc::new(Silent),
            alarm_mark: 10_000,
            first_seq: 1,
        }
    }
}

/// The bus of one process; clones are the same bus.
#[derive(Clone)]
pub struct Hub {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    journal: Option<Journal>,
    observer: Arc<dyn Observer>,
    alarm_mark: usize,
    pending: Pending,
    state: Mutex<State>,
}

struct State {
    next_seq: u64,
    accepting: bool,
    slots: BTreeMap<Role, Slot>,
    taps: Vec<Weak<TapQueue>>,
    lives: Lives,
}

/// Why a role's message was not sent.
pub(crate) enum Refusal {
    NoRoute(NoRoute),
    /// Its task has ended.
    Ended,
}

impl Hub {
    /// A hub on which nothing has been said yet.
    pub fn new(clock: Arc<dyn Clock>, options: HubOptions) -> Self {
        let slots = Role::ALL.into_iter().map(|role| (role, Slot::new(role))).collect();
        Self {
            shared: Arc::new(Shared {
                clock,
                journal: options.journal,
                observer: options.observer,
                alarm_mark: options.alarm_mark,
                pending: Pending::new(),
                state: Mutex::new(State {
                    next_seq: options.first_seq.max(1),
                    accepting: true,
                    slots,
                    taps: Vec::new(),
                    lives: Lives::default(),
                }),
            }),
        }
    }

    /// The inbox of a role or of the person, for whoever asks first. It holds everything said since the hub began.
    pub fn inbox(&self, role: Role) -> Option<Inbox> {
        locked(&self.shared.state)
            .slots
            .get_mut(&role)
            .and_then(|slot| slot.open(None))
    }

    /// Like [`Hub::inbox`], and [`Hub::at_rest`] waits for what is in it.
    pub(crate) fn hosted_inbox(&self, role: Role) -> Option<Inbox> {
        let pending = &self.shared.pending;
        locked(&self.shared.state)
            .slots
            .get_mut(&role)
            .and_then(|slot| slot.open(Some(pending)))
    }

    /// Closes the inbox of a role that listens through a tap instead.
    pub(crate) fn retire_inbox(&self, role: Role) {
        if let Some(slot) = locked(&self.shared.state).slots.get_mut(&role) {
            slot.retire();
        }
    }

    /// A tap on everything said from now on. It holds at most `capacity` messages and drops what comes on top.
    pub fn tap(&self, name: &str, capacity: usize) -> Tap {
        self.add_tap(Tap::new(name, capacity, Hears::Messages))
    }

    /// The same for an observer that also wants to know what roles do beside speaking.
    pub fn tap_with_deeds(&self, name: &str, capacity: usize) -> Tap {
        self.add_tap(Tap::new(name, capacity, Hears::MessagesAndDeeds))
    }

    /// Shows observers a message that stands in the journal and that no role hears from here: those with which an interrupted task goes on
    /// are written before there is a bus.
    pub fn show(&self, envelope: &Envelope) {
        let envelope = Arc::new(envelope.clone());
        let taps: Vec<_> = locked(&self.shared.state)
            .taps
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for notice in taps.iter().filter_map(|tap| tap.offer(&envelope)) {
            self.notice(&notice);
        }
    }

    fn add_tap(&self, tap: Tap) -> Tap {
        locked(&self.shared.state).taps.push(Arc::downgrade(tap.queue()));
        tap
    }

    /// Tells observers what a role did.
    pub(crate) fn did(&self, role: Role, task_id: Option<&TaskId>, act: Option<Act>) {
        let Some(act) = act else { return };
        let deed = Arc::new(Deed {
            role,
            task_id: task_id.cloned(),
            at: self.now(),
            act,
        });
        for tap in locked(&self.shared.state).taps.iter().filter_map(Weak::upgrade) {
            tap.offer_deed(&deed);
        }
    }

    /// Tells observers what memory's own model, the Dreamer, did: it asks beside every task, and no driver performs that (design §15, §16).
    pub fn dreamt(&self, act: Act) {
        self.did(Role::R5, None, Some(act));
    }

    /// Where a task stands; the provisional and the final id of a run are the same task.
    pub fn phase(&self, task: &TaskId) -> Phase {
        locked(&self.shared.state).lives.phase(task)
    }

    /// Tasks that have begun and not ended.
    pub fn open_tasks(&self) -> Vec<TaskId> {
        locked(&self.shared.state).lives.open()
    }

    /// Returns when no hosted role has a message to deal with and no call is in flight. Deadlines do not count.
    pub async fn at_rest(&self) {
        self.shared.pending.zero().await;
    }

    /// Refuses every further [`UserInput`](MessageKind::UserInput); what has begun goes on.
    pub fn stop_accepting(&self) {
        locked(&self.shared.state).accepting = false;
    }

    /// The journal, if there is one.
    pub fn journal(&self) -> Option<&Journal> {
        self.shared.journal.as_ref()
    }

    /// Now, on the hub's clock.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub(crate) fn notice(&self, notice: &Notice) {
        self.shared.observer.notice(notice);
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.shared.pending
    }

    /// Takes up a task of an earlier process.
    pub(crate) fn adopt(&self, task: &TaskId, aborted: bool) {
        locked(&self.shared.state).lives.adopt(task, aborted);
    }

    pub(crate) fn tie(&self, task: &TaskId, call: AbortHandle) {
        locked(&self.shared.state).lives.tie(task, call);
    }

    /// Publishes on behalf of a role, unless its task has ended in the meantime.
    pub(crate) fn publish_if_alive(
        &self,
        from: Role,
        task_id: Option<&TaskId>,
        message: Message,
    ) -> Result<Arc<Envelope>, Refusal> {
        self.send(from, task_id, message, true)
    }

    fn send(
        &self,
        from: Role,
        task_id: Option<&TaskId>,
        message: Message,
        only_if_alive: bool,
    ) -> Result<Arc<Envelope>, Refusal> {
        let kind = message.kind();
        let no_route = || Refusal::NoRoute(NoRoute { from, kind });
        let route = route(kind, from).ok_or_else(no_route)?;
        let mut notices = Vec::new();
        let envelope = {
            let mut guard = locked(&self.shared.state);
            let state = &mut *guard;
            if !state.accepting && kind == MessageKind::UserInput {
                return Err(no_route());
            }
            // Under the lock: a task cannot end between this look and the delivery.
            if only_if_alive && task_id.is_some_and(|task| !state.lives.phase(task).admits(from, kind)) {
                return Err(Refusal::Ended);
            }
            let envelope = Arc::new(Envelope {
                id: EnvelopeId::new(Uuid::now_v7().to_string()),
                seq: state.next_seq,
                task_id: task_id.cloned(),
                timestamp: self.shared.clock.now(),
                from,
                to: route.to,
                payload: message,
            });
            state.next_seq += 1;
            if let Some(journal) = &self.shared.journal {
                notices.extend(journal.published(&envelope));
            }
            state.lives.follow(&envelope);
            for receiver in std::iter::once(&route.to).chain(route.copies) {
                if let Some(slot) = state.slots.get_mut(receiver) {
                    notices.extend(slot.deliver(&envelope, self.shared.alarm_mark));
                }
            }
            state.taps.retain(|tap| {
                let queue = tap.upgrade();
                notices.extend(queue.as_ref().and_then(|queue| queue.offer(&envelope)));
                queue.is_some()
            });
            envelope
        };
        // After the lock: an observer may publish.
        for notice in &notices {
            self.notice(notice);
        }
        Ok(envelope)
    }
}

impl Bus for Hub {
    fn publish(&self, from: Role, task_id: Option<&TaskId>, message: Message) -> Result<Arc<Envelope>, NoRoute> {
        let kind = message.kind();
        self.send(from, task_id, message, false)
            .map_err(|refusal| match refusal {
                Refusal::NoRoute(error) => error,
                Refusal::Ended => NoRoute { from, kind },
            })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for tap in locked(&self.state).taps.iter().filter_map(Weak::upgrade) {
            tap.close();
        }
    }
}

//! Lossless inboxes: unbounded, in sequence order, with an alarm mark (design §3).
//!
//! Owns delivery to one role and the count of what it has not dealt with yet. Must not know what a message means.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use artoo_protocol::{Envelope, Role};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;

use crate::notice::Notice;

/// Counts everything that is on its way inside the hosted roles: messages not dealt with, and calls in flight.
///
/// One counter for all of them, raised before the cause of a message is lowered, so that zero really means rest.
#[derive(Clone, Debug)]
pub(crate) struct Pending(Arc<watch::Sender<usize>>);

impl Pending {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    pub(crate) fn raise(&self, by: usize) {
        self.0.send_modify(|count| *count += by);
    }

    pub(crate) fn lower(&self, by: usize) {
        self.0.send_modify(|count| *count = count.saturating_sub(by));
    }

    pub(crate) async fn zero(&self) {
        let mut count = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _rest = count.wait_for(|count| *count == 0).await;
    }
}

/// The receiving end of a role's inbox. A message counts as waiting until the next one is asked for.
#[derive(Debug)]
pub struct Inbox {
    role: Role,
    receiver: UnboundedReceiver<Arc<Envelope>>,
    tally: Tally,
    handling: bool,
}

impl Inbox {
    /// Whose inbox it is.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The next message in sequence order; `None` when the hub is gone. Cancel-safe.
    pub async fn recv(&mut self) -> Option<Arc<Envelope>> {
        self.settle();
        let envelope = self.receiver.recv().await;
        self.handling = envelope.is_some();
        envelope
    }

    /// The next message if one is there.
    pub fn try_recv(&mut self) -> Option<Arc<Envelope>> {
        self.settle();
        let envelope = self.receiver.try_recv().ok();
        self.handling = envelope.is_some();
        envelope
    }

    /// Messages that are there and were not asked for yet.
    pub fn waiting(&self) -> usize {
        self.receiver.len()
    }

    fn settle(&mut self) {
        if std::mem::take(&mut self.handling) {
            self.tally.take_one();
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.receiver.close();
        self.tally.take_all();
    }
}

/// How many messages wait in one inbox, and whether the system's rest depends on them.
#[derive(Clone, Debug)]
struct Tally {
    waiting: Arc<AtomicUsize>,
    pending: Option<Pending>,
}

impl Tally {
    fn take_one(&self) {
        let lowered = self
            .waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |waiting| waiting.checked_sub(1));
        if let (Ok(_), Some(pending)) = (lowered, &self.pending) {
            pending.lower(1);
        }
    }

    fn take_all(&self) {
        let waiting = self.waiting.swap(0, Ordering::AcqRel);
        if let Some(pending) = &self.pending {
            pending.lower(waiting);
        }
    }
}

/// The hub's end of an inbox. The receiver exists from the beginning, so a role that starts late misses nothing.
#[derive(Debug)]
pub(crate) struct Slot {
    role: Role,
    sender: UnboundedSender<Arc<Envelope>>,
    receiver: Option<UnboundedReceiver<Arc<Envelope>>>,
    tally: Tally,
    alarmed: bool,
    gone: bool,
}

impl Slot {
    pub(crate) fn new(role: Role) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            role,
            sender,
            receiver: Some(receiver),
            tally: Tally {
                waiting: Arc::new(AtomicUsize::new(0)),
                pending: None,
            },
            alarmed: false,
            gone: false,
        }
    }

    /// Hands out the receiving end, once. With `pending`, the system is not at rest while messages wait here.
    pub(crate) fn open(&mut self, pending: Option<&Pending>) -> Option<Inbox> {
        let receiver = self.receiver.take()?;
        self.tally.pending = pending.cloned();
        if let Some(pending) = pending {
            pending.raise(self.tally.waiting.load(Ordering::Acquire));
        }
        Some(Inbox {
            role: self.role,
            receiver,
            tally: self.tally.clone(),
            handling: false,
        })
    }

    /// Nobody is to read this inbox; what is sent to it is dropped, and that is no alarm.
    pub(crate) fn retire(&mut self) {
        self.receiver = None;
        self.gone = true;
    }

    /// Delivers; called under the hub's lock, so that delivery order is sequence order.
    pub(crate) fn deliver(&mut self, envelope: &Arc<Envelope>, alarm_mark: usize) -> Option<Notice> {
        // Counted before it is sent: whoever receives it at once must find it counted.
        let waiting = self.tally.waiting.fetch_add(1, Ordering::AcqRel) + 1;
        if let Some(pending) = &self.tally.pending {
            pending.raise(1);
        }
        if self.sender.send(Arc::clone(envelope)).is_err() {
            self.tally.take_one();
            let first = !std::mem::replace(&mut self.gone, true);
            return (first && self.role != Role::User).then_some(Notice::RoleGone {
                role: self.role,
                seq: envelope.seq,
            });
        }
        // Half the mark ends the alarm, so that a length swinging about the mark is one crossing, not many.
        if waiting <= alarm_mark / 2 {
            self.alarmed = false;
        }
        if waiting > alarm_mark && !self.alarmed {
            self.alarmed = true;
            return Some(Notice::InboxAlarm {
                role: self.role,
                waiting,
            });
        }
        None
    }
}

//! Lossy taps for observers: bounded, never in the way of a role, and never silent about what they dropped (design §3, §16).
//!
//! Owns the queue between the hub and one observer. Must not slow the hub down: offering never waits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use artoo_protocol::{Deed, Envelope};
use tokio::sync::Notify;

use crate::locked;
use crate::notice::Notice;

/// Bytes of memory that may wait in a tap, by estimate: a few thousand messages may be a megabyte or a gigabyte.
const BYTES_MAX: usize = 16 << 20;

/// What an observer receives.
#[derive(Clone, Debug, PartialEq)]
pub enum TapItem {
    /// A message.
    Envelope(Arc<Envelope>),
    /// What a role did beside speaking; only a tap on deeds has them.
    Deed(Arc<Deed>),
    /// Here messages are missing, because the observer was too slow.
    Gap(Gap),
}

/// Messages that an observer missed, all from one stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Sequence number of the first; 0 when only deeds are missing.
    pub from_seq: u64,
    /// Sequence number of the last.
    pub to_seq: u64,
    /// How many.
    pub count: u64,
    /// Deeds that are missing beside them.
    pub deeds: u64,
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} messages, {} to {}", self.count, self.from_seq, self.to_seq)?;
        match self.deeds {
            0 => Ok(()),
            deeds => write!(f, ", and {deeds} deeds"),
        }
    }
}

/// An observer's end. Dropping it ends the tap.
#[derive(Debug)]
pub struct Tap {
    queue: Arc<TapQueue>,
}

impl Tap {
    pub(crate) fn new(name: &str, capacity: usize, hears: Hears) -> Self {
        Self {
            queue: Arc::new(TapQueue {
                name: name.to_owned(),
                hears,
                capacity: capacity.max(1),
                state: Mutex::default(),
                filled: Notify::new(),
            }),
        }
    }

    pub(crate) const fn queue(&self) -> &Arc<TapQueue> {
        &self.queue
    }

    /// The next message or gap, in sequence order; `None` when the hub is gone and all is read. Cancel-safe.
    pub async fn recv(&mut self) -> Option<TapItem> {
        loop {
            let filled = self.queue.filled.notified();
            {
                let mut state = locked(&self.queue.state);
                if let Some(item) = state.next() {
                    return Some(item);
                }
                if state.closed {
                    return None;
                }
            }
            filled.await;
        }
    }

    /// The next message or gap if one is there.
    pub fn try_recv(&mut self) -> Option<TapItem> {
        locked(&self.queue.state).next()
    }

    /// What is there, at most so many: one lock for all of it, where messages come faster than they can be taken one by one.
    pub fn try_recv_many(&mut self, most: usize) -> Vec<TapItem> {
        let mut state = locked(&self.queue.state);
        std::iter::from_fn(|| state.next()).take(most).collect()
    }

    /// How many messages this tap has dropped since it began.
    pub fn dropped(&self) -> u64 {
        locked(&self.queue.state).dropped
    }
}

/// What is offered to a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hears {
    Messages,
    MessagesAndDeeds,
}

/// The queue itself.
#[derive(Debug)]
pub(crate) struct TapQueue {
    name: String,
    hears: Hears,
    capacity: usize,
    state: Mutex<TapState>,
    filled: Notify,
}

/// Invariant: `gap` lies behind everything in `items`, so that it is read in its place even when nothing follows it.
#[derive(Debug, Default)]
struct TapState {
    items: VecDeque<TapItem>,
    /// What they weigh.
    bytes: usize,
    gap: Option<Gap>,
    dropped: u64,
    closed: bool,
}

/// About how much memory an item holds while it waits. Gaps are so few that they count for nothing.
fn weight(item: &TapItem) -> usize {
    match item {
        TapItem::Envelope(envelope) => envelope.weight(),
        TapItem::Deed(_) => 1_000,
        TapItem::Gap(_) => 0,
    }
}

impl TapState {
    fn next(&mut self) -> Option<TapItem> {
        let item = self.items.pop_front();
        self.bytes -= item.as_ref().map_or(0, weight);
        item.or_else(|| self.gap.take().map(TapItem::Gap))
    }
}

impl TapQueue {
    /// Takes the message or counts it as dropped; tells when a gap begins.
    pub(crate) fn offer(&self, envelope: &Arc<Envelope>) -> Option<Notice> {
        let item = TapItem::Envelope(Arc::clone(envelope));
        self.take(item, |gap| {
            if gap.count == 0 {
                gap.from_seq = envelope.seq;
            }
            gap.to_seq = envelope.seq;
            gap.count += 1;
        })
        .then(|| Notice::TapDropping {
            tap: self.name.clone(),
            from_seq: envelope.seq,
        })
    }

    /// The same with a deed, which has no number.
    pub(crate) fn offer_deed(&self, deed: &Arc<Deed>) {
        if self.hears == Hears::MessagesAndDeeds {
            self.take(TapItem::Deed(Arc::clone(deed)), |gap| gap.deeds += 1);
        }
    }

    /// Whether a gap begins.
    fn take(&self, item: TapItem, missed: impl FnOnce(&mut Gap)) -> bool {
        let begins = {
            let mut state = locked(&self.state);
            let heavier = state.bytes.saturating_add(weight(&item));
            // Once something was dropped, more is until half is free: one long gap instead of thousands of short ones.
            let part = if state.gap.is_some() { 2 } else { 1 };
            let has_room = state.items.len() < self.capacity.div_ceil(part) && heavier <= BYTES_MAX / part;
            // One has room, however large: else it would never be seen.
            if has_room || state.items.is_empty() {
                if let Some(gap) = state.gap.take() {
                    state.items.push_back(TapItem::Gap(gap));
                }
                state.items.push_back(item);
                state.bytes = heavier;
                false
            } else {
                state.dropped += 1;
                let begins = state.gap.is_none();
                missed(state.gap.get_or_insert(Gap {
                    from_seq: 0,
                    to_seq: 0,
                    count: 0,
                    deeds: 0,
                }));
                begins
            }
        };
        self.filled.notify_one();
        begins
    }

    pub(crate) fn close(&self) {
        locked(&self.state).closed = true;
        self.filled.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_protocol::message::DirectAnswer;
    use artoo_protocol::{EnvelopeId, Role, Slug, TaskId, Timestamp};

    fn said(seq: u64, bytes: usize) -> Arc<Envelope> {
        let answer = DirectAnswer {
            task_id: TaskId::new("count_00000001"),
            slug: Slug::repair("count"),
            intent: "count".into(),
            answer: "x".repeat(bytes),
        };
        Arc::new(Envelope {
            id: EnvelopeId::new("e"),
            seq,
            task_id: None,
            timestamp: Timestamp::from_millis(0),
            from: Role::R1,
            to: Role::R7,
            payload: answer.into(),
        })
    }

    #[test]
    fn what_waits_in_a_tap_is_bounded_by_bytes_too() {
        let mut tap = Tap::new("t", 100, Hears::Messages);
        assert!(
            tap.queue().offer(&said(1, 2 * BYTES_MAX)).is_none(),
            "one has room, however large"
        );
        assert!(tap.queue().offer(&said(2, 1)).is_some(), "and then nothing has");
        assert!(matches!(tap.try_recv(), Some(TapItem::Envelope(e)) if e.seq == 1));
        assert!(matches!(
            tap.try_recv(),
            Some(TapItem::Gap(Gap {
                from_seq: 2,
                to_seq: 2,
                count: 1,
                ..
            }))
        ));
        for seq in 3..13 {
            let _ = tap.queue().offer(&said(seq, BYTES_MAX / 4));
        }
        let items = tap.try_recv_many(2);
        assert_eq!(items.len(), 2);
        let rest = tap.try_recv_many(100);
        assert!(matches!(
            &rest[..],
            [
                TapItem::Envelope(_),
                TapItem::Gap(Gap {
                    from_seq: 6,
                    to_seq: 12,
                    count: 7,
                    ..
                })
            ]
        ));
        assert_eq!(tap.dropped(), 8);
        assert_eq!(locked(&tap.queue().state).bytes, 0, "nothing waits, nothing weighs");
    }

    #[test]
    fn who_has_begun_to_lose_goes_on_until_half_is_free() {
        let mut tap = Tap::new("t", 4, Hears::Messages);
        for seq in 1..=5 {
            let _ = tap.queue().offer(&said(seq, 1));
        }
        assert!(matches!(tap.try_recv(), Some(TapItem::Envelope(e)) if e.seq == 1));
        assert!(tap.queue().offer(&said(6, 1)).is_none(), "the same gap");
        assert_eq!(tap.try_recv_many(2).len(), 2);
        assert!(tap.queue().offer(&said(7, 1)).is_none());
        let rest = tap.try_recv_many(9);
        assert!(
            matches!(
                &rest[..],
                [
                    TapItem::Envelope(before),
                    TapItem::Gap(Gap { from_seq: 5, to_seq: 6, count: 2, .. }),
                    TapItem::Envelope(after)
                ] if before.seq == 4 && after.seq == 7
            ),
            "{rest:?}"
        );
    }
}

//! Where a role hears from: its own inbox, or everything (design §2, §3).
//!
//! Owns that a driver need not know the difference. Must not decide when something is heard.

use crate::inbox::Inbox;
use crate::tap::{Tap, TapItem};

/// Where a role hears from.
#[derive(Debug)]
pub enum Source {
    /// Its inbox: only what the routes address to it. Its steps are journaled.
    Inbox(Inbox),
    /// A tap: everything. For observers, whose steps are no part of a task and are not journaled.
    Tap(Tap),
}

impl Source {
    /// The next item; `None` when nothing will come any more. Cancel-safe.
    pub(crate) async fn recv(&mut self) -> Option<TapItem> {
        match self {
            Self::Inbox(inbox) => inbox.recv().await.map(TapItem::Envelope),
            Self::Tap(tap) => tap.recv().await,
        }
    }

    /// The messages of an inbox that are there at this moment, and none that come while they are taken. An observer's deadlines
    /// are about no message.
    pub(crate) fn waiting(&mut self) -> impl Iterator<Item = TapItem> {
        let inbox = match self {
            Self::Inbox(inbox) => Some(inbox),
            Self::Tap(_) => None,
        };
        let count = inbox.as_ref().map_or(0, |inbox| inbox.waiting());
        inbox
            .into_iter()
            .flat_map(move |inbox| (0..count).map_while(|_| inbox.try_recv()))
            .map(TapItem::Envelope)
    }
}

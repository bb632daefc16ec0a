//! A role of any kind, with what its driver keeps beside it (design §2).
//!
//! Owns no rule; the [`World`](super::World) moves it.

use std::collections::BTreeMap;

use artoo_protocol::{Actor, Command, Event, Role, TaskId, Timestamp};

/// A role of any kind, as the world needs it.
pub(super) trait Stepping {
    fn role(&self) -> Role;
    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Command>;
    fn deadline(&self) -> Option<Timestamp>;
    fn open_tasks(&self) -> usize;
}

impl<A: Actor> Stepping for A {
    fn role(&self) -> Role {
        A::ROLE
    }
    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Command> {
        Actor::step(self, now, event).into_iter().map(Into::into).collect()
    }
    fn deadline(&self) -> Option<Timestamp> {
        Actor::deadline(self)
    }
    fn open_tasks(&self) -> usize {
        Actor::open_tasks(self)
    }
}

/// A role with what its driver keeps beside it.
pub(super) struct Seat {
    pub(super) actor: Box<dyn Stepping>,
    /// Tasks that it has had events of, by suffix: a wake is recorded in the journal of each.
    pub(super) tasks: BTreeMap<String, TaskId>,
    /// A deadline that a wake did not move.
    pub(super) stuck: Option<Timestamp>,
    /// When the last message reaches it: messages never overtake one another.
    pub(super) last_message: Timestamp,
}

impl Seat {
    /// A role that knows these tasks.
    pub(super) fn new(actor: impl Actor, tasks: BTreeMap<String, TaskId>, now: Timestamp) -> Self {
        Self {
            actor: Box::new(actor),
            tasks,
            stuck: None,
            last_message: now,
        }
    }
}

//! What happens when a deadline of a role comes (design §2).
//!
//! Owns the order of a deadline and of what was said before it; follows the rules of the real driver.

use artoo_protocol::journal::{Entry, StepCause};
use artoo_protocol::{Event, Timestamp};

use super::{Due, World, Written};
use crate::sabotage::Saboteur;
use crate::surroundings::Surroundings;

impl<S: Surroundings> World<S> {
    /// A deadline has come. As with the driver, what was said to the role before is heard first: the next of it now, and the
    /// deadline again after that.
    pub(super) fn time_is_up(&mut self, deadline: Timestamp, index: usize) {
        self.now = self.now.max(deadline);
        let Some(role) = self.seats.get(index).map(|seat| seat.actor.role()) else {
            return;
        };
        let said = |due: &Due| matches!(due, Due::Deliver { role: to, event: Event::Message { .. } } if *to == role);
        let mut waiting = self.queue.iter().find(|(_, due)| said(due)).map(|(at, _)| *at);
        if self.saboteur.as_ref().is_some_and(Saboteur::overtakes) {
            waiting = None;
        }
        match waiting.and_then(|at| self.queue.remove(&at)) {
            Some(Due::Deliver { role, event }) => self.deliver(role, event, Written::Now),
            Some(Due::Say { .. }) | None => self.wake(index, deadline),
        }
    }

    fn wake(&mut self, index: usize, deadline: Timestamp) {
        self.note_wake(index);
        if self.journals.is_dead() {
            return;
        }
        self.step(index, Event::Wake, None);
        if let Some(seat) = self.seats.get_mut(index)
            && seat.actor.deadline() == Some(deadline)
        {
            seat.stuck = Some(deadline);
            let role = seat.actor.role();
            self.faults.push(format!("{role}'s deadline {deadline} does not move"));
        }
    }

    /// Writes a wake into the journals of a role's tasks.
    fn note_wake(&mut self, index: usize) {
        let (now, cause) = (self.now, StepCause::Wake);
        let overtakes = self.saboteur.as_ref().is_some_and(Saboteur::overtakes);
        let Some(seat) = self.seats.get_mut(index) else { return };
        let role = seat.actor.role();
        let journals = &mut self.journals;
        seat.tasks
            .retain(|_, task| !(journals.has_finished(task) || overtakes && journals.has_ended(task)));
        for task in seat.tasks.values() {
            journals.record(task, now, Entry::Stepped { role, now, cause });
        }
    }
}

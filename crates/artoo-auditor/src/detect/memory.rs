//! Memories that teach nothing, or the wrong thing (design §15).

use std::collections::BTreeMap;

use artoo_protocol::message::{Cause, MacroState, Megram, Message};
use artoo_protocol::{Envelope, Millis, Role};

use super::{Seen, TaskDetector};

/// Shortest lesson, in characters.
const CONTENT_LEAST: usize = 8;
/// The same lesson may be written so often in one task.
const SAME_MAX: u32 = 3;
/// So many memories of one task are a flood.
const MEGRAMS_MAX: u32 = 500;
/// Clocks may differ by so much.
const AHEAD: Millis = Millis(60_000);

/// What one task wrote into memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryJunk {
    count: u32,
    same: BTreeMap<String, u32>,
    abandoned: bool,
    budget_spent: bool,
}

impl MemoryJunk {
    fn written(&mut self, envelope: &Envelope, megram: &Megram) -> Option<String> {
        self.count += 1;
        self.abandoned |= megram.state == MacroState::Abandon;
        let place = format!("{} {}", megram.space, megram.entity);
        let times = self
            .same
            .entry(format!("{place} {:?} {}", megram.state, megram.content))
            .or_default();
        *times += 1;
        if megram.content.trim().chars().count() < CONTENT_LEAST {
            Some(format!("a memory under {place} says nothing"))
        } else if megram.f.get() == 0.0 {
            Some(format!("a memory under {place} weighs nothing"))
        } else if megram.created_at > envelope.timestamp.plus(AHEAD) {
            Some(format!("a memory under {place} comes from the future"))
        } else if *times == SAME_MAX + 1 {
            Some(format!(
                "the same lesson under {place} was written more than {SAME_MAX} times"
            ))
        } else if self.count == MEGRAMS_MAX + 1 {
            Some(format!("more than {MEGRAMS_MAX} memories of one task"))
        } else {
            None
        }
    }
}

impl TaskDetector for MemoryJunk {
    const NAME: &'static str = "memory_junk";

    fn see(&mut self, seen: &Seen<'_>) -> Option<String> {
        let Seen::Envelope(envelope) = seen else { return None };
        if let Message::Megram(megram) = &envelope.payload {
            return (envelope.from != Role::User)
                .then(|| self.written(envelope, megram))
                .flatten();
        }
        if matches!(envelope.payload, Message::BudgetReached(_)) {
            self.budget_spent = true;
        } else if let Message::FinalResult(result) = &envelope.payload {
            let outside = match result.cause {
                Cause::Aborted | Cause::Refused | Cause::NoModel => true,
                Cause::Budget => self.budget_spent,
                Cause::Met
                | Cause::WithinThreshold
                | Cause::Answered
                | Cause::Resources
                | Cause::Divergence
                | Cause::ReplansExhausted
                | Cause::Infeasible
                | Cause::PlanningFailed => false,
            };
            return (outside && self.abandoned).then(|| {
                "an ending that says nothing about the approach was remembered as a failure of it".to_owned()
            });
        }
        None
    }
}

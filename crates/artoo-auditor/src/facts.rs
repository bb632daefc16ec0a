//! What a message or a deed means to whoever counts (design §16).
//!
//! Owns the one reading of all kinds: a task is a person's input, a correction is a CorrectionSignal, a replan is a PlanDirective. Sums and
//! counts over time are both made of these facts, so that they cannot disagree.

use artoo_protocol::message::{Ending, ExecutionStatus, FailureClass, Message};
use artoo_protocol::model::Usage;
use artoo_protocol::{Act, Unit01};

use crate::detect::Seen;

/// One thing that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fact {
    /// A person's input.
    TaskBegan,
    /// A FinalResult.
    TaskEnded { how: Ending, d: Unit01 },
    /// A PlanDirective.
    Replanned,
    /// An ExecutionResult; calls are those that really ran.
    Attempted {
        failed: bool,
        calls: u64,
        failed_calls: u64,
    },
    /// A CorrectionSignal: R4a judged an attempt and wants another.
    Corrected(FailureClass),
    /// A SubTaskOutcome of an attempt that R4a judged; one that broke on infrastructure nobody judged.
    Concluded,
    /// R4b closed a round.
    Round { sent_back: bool },
    /// A model's answer.
    Answered { usage: Usage, cost: f64 },
    /// A model gave none; what it used all the same.
    Unanswered { usage: Usage, cost: f64 },
}

/// What was seen, if it counts as anything.
pub(crate) fn fact(seen: &Seen<'_>) -> Option<Fact> {
    match seen {
        Seen::Envelope(envelope) => of_message(&envelope.payload),
        Seen::Deed(deed) => of_act(&deed.act),
    }
}

fn of_message(message: &Message) -> Option<Fact> {
    match message {
        Message::UserInput(_) => Some(Fact::TaskBegan),
        Message::FinalResult(result) => Some(Fact::TaskEnded {
            how: result.directive,
            d: result.loss.d,
        }),
        Message::PlanDirective(_) => Some(Fact::Replanned),
        Message::ExecutionResult(result) => {
            let ran = || result.tool_calls.iter().filter(|call| !call.not_run);
            Some(Fact::Attempted {
                failed: result.status == ExecutionStatus::Failed,
                calls: number(ran().count()),
                failed_calls: number(ran().filter(|call| call.failed()).count()),
            })
        }
        Message::CorrectionSignal(signal) => Some(Fact::Corrected(signal.failure_class)),
        Message::SubTaskOutcome(outcome) => (!outcome.infrastructure).then_some(Fact::Concluded),
        Message::ReplanRequest(_) => Some(Fact::Round { sent_back: true }),
        Message::OutcomeSummary(_) => Some(Fact::Round { sent_back: false }),
        Message::ClarificationRequest(_)
        | Message::ClarificationAnswer(_)
        | Message::TaskSpec(_)
        | Message::DirectAnswer(_)
        | Message::MemoryQuery(_)
        | Message::MemoryReply(_)
        | Message::PlanningFailed(_)
        | Message::DispatchManifest(_)
        | Message::SubTask(_)
        | Message::ConfirmationRequest(_)
        | Message::ConfirmationAnswer(_)
        | Message::PartialResultRequest(_)
        | Message::PartialResult(_)
        | Message::BudgetReached(_)
        | Message::TaskAborted(_)
        | Message::TaskResumed(_)
        | Message::Megram(_)
        | Message::AuditQuery(_)
        | Message::AuditReport(_) => None,
    }
}

fn of_act(act: &Act) -> Option<Fact> {
    match act {
        Act::ModelAnswered { usage, cost, .. } => Some(Fact::Answered {
            usage: *usage,
            cost: cost.get(),
        }),
        Act::ModelFailed { usage, cost, .. } => Some(Fact::Unanswered {
            usage: *usage,
            cost: cost.get(),
        }),
        Act::ModelAsked { .. }
        | Act::Assessed { .. }
        | Act::ToolRun { .. }
        | Act::CheckRun { .. }
        | Act::Kept { .. }
        | Act::Stored { .. }
        | Act::Recalled { .. } => None,
    }
}

fn number(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

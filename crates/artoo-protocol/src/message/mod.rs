//! Everything that may be said on the bus, one file per conversation (design §3).
//!
//! Field names are those of the specification's contracts. Unknown fields are ignored on reading, and fields that a
//! later version added have defaults, so that old journals stay readable.

pub mod audit;
pub mod execute;
pub mod finish;
pub mod memory;
pub mod perceive;
pub mod plan;
mod spelling;
pub mod validate;
mod weight;

pub use audit::{AuditQuery, AuditReport, GapTrend, ToolHealth, Trend};
pub use execute::{
    ConfirmationAnswer, ConfirmationRequest, Consent, CorrectionSignal, ExecutionResult, ExecutionStatus, ToolCall,
};
pub use finish::{BudgetKind, BudgetReached, Cause, Ending, FinalResult, Grounds, Honesty, TaskAborted, TaskResumed};
pub use memory::{
    Lesson, Level, MacroState, Megram, MemoryAction, MemoryQuery, MemoryReply, Potentials, SopRecord, TaggedPotentials,
    intent_space,
};
pub use perceive::{ClarificationAnswer, ClarificationRequest, Constraints, DirectAnswer, TaskSpec, Turn, UserInput};
pub use plan::{
    Carried, Caution, Directive, DispatchManifest, FailureMix, Loss, MustNot, PartialResult, PartialResultRequest,
    PlanDirective, PlannedSubTask, PlanningFailed, PreviousDirective, SubTask, Urgency,
};
pub use validate::{
    Attempt, Check, CountOf, CountOp, Criterion, CriterionVerdict, FailureClass, Mode, OutcomeStatus, OutcomeSummary,
    Recommendation, ReplanRequest, SubTaskOutcome, Verdict, VerdictSource,
};

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;

macro_rules! messages {
    ($($(#[$doc:meta])* $kind:ident),* $(,)?) => {
        /// One message; in JSON its fields stand beside a `type` that names it.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type")]
        pub enum Message {
            $($(#[$doc])* $kind($kind),)*
        }

        /// The name of a message without its content.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum MessageKind {
            $($(#[$doc])* $kind,)*
        }

        impl Message {
            /// Which message this is.
            pub const fn kind(&self) -> MessageKind {
                match self { $(Self::$kind(_) => MessageKind::$kind,)* }
            }

            /// The task that is over with this message, for every role: its state goes.
            pub const fn ends(&self) -> Option<&TaskId> {
                match self {
                    Self::FinalResult(end) => Some(&end.task_id),
                    Self::TaskAborted(end) => Some(&end.task_id),
                    // Whatever else is said, the task goes on.
                    _ => None,
                }
            }
        }

        impl MessageKind {
            /// Every kind, in the order of a task's life.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The name used in JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind),)* }
            }
        }

        $(impl From<$kind> for Message {
            fn from(message: $kind) -> Self {
                Self::$kind(message)
            }
        })*
    };
}

messages! {
    /// The person's words, with the turns before them.
    UserInput,
    /// R1 asks about an ambiguous reference.
    ClarificationRequest,
    /// The person's answer; empty means go on.
    ClarificationAnswer,
    /// The task as R1 understood it.
    TaskSpec,
    /// R1's answer to input that needs no tool.
    DirectAnswer,
    /// R2 asks memory before it plans.
    MemoryQuery,
    /// What memory knows.
    MemoryReply,
    /// No valid plan, or no task, could be made.
    PlanningFailed,
    /// What R4b has to wait for and to judge.
    DispatchManifest,
    /// One unit of work.
    SubTask,
    /// The gate asks the person for one exact action.
    ConfirmationRequest,
    /// The person's answer to it.
    ConfirmationAnswer,
    /// What an attempt gave.
    ExecutionResult,
    /// What R4a wants done differently.
    CorrectionSignal,
    /// The last word on a subtask.
    SubTaskOutcome,
    /// The gap that R4b saw.
    ReplanRequest,
    /// Everything matched and the merged result was accepted.
    OutcomeSummary,
    /// What kind of change R7 demands.
    PlanDirective,
    /// R7 asks R2 to word a partial result.
    PartialResultRequest,
    /// The wording.
    PartialResult,
    /// A hard budget of tokens or money is used up.
    BudgetReached,
    /// The person stopped the task.
    TaskAborted,
    /// An interrupted task goes on.
    TaskResumed,
    /// The end of a task.
    FinalResult,
    /// One memory to be written.
    Megram,
    /// The operator asks for a report.
    AuditQuery,
    /// The report.
    AuditReport,
}

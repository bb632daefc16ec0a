//! Who may say what to whom: one table, data, read by the bus (which delivers by it) and the auditor (which checks by it).
//!
//! A message that has no row here cannot be published (design §3).

use crate::message::MessageKind::{
    self, AuditQuery, AuditReport, BudgetReached, ClarificationAnswer, ClarificationRequest, ConfirmationAnswer,
    ConfirmationRequest, CorrectionSignal, DirectAnswer, DispatchManifest, ExecutionResult, FinalResult, Megram,
    MemoryQuery, MemoryReply, OutcomeSummary, PartialResult, PartialResultRequest, PlanDirective, PlanningFailed,
    ReplanRequest, SubTask, SubTaskOutcome, TaskAborted, TaskResumed, TaskSpec, UserInput,
};
use crate::role::Role::{self, R1, R2, R3, R4a, R4b, R5, R6, R7, Runtime, User};

/// One permitted way of one kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The message.
    pub kind: MessageKind,
    /// Sender.
    pub from: Role,
    /// Principal receiver, named in the envelope.
    pub to: Role,
    /// Roles that get a copy, because they keep state about it.
    pub copies: &'static [Role],
}

const fn row(kind: MessageKind, from: Role, to: Role, copies: &'static [Role]) -> Route {
    Route { kind, from, to, copies }
}

/// Every permitted way.
pub const ROUTES: &[Route] = &[
    row(UserInput, User, R1, &[R7]),
    row(ClarificationRequest, R1, User, &[R7]),
    row(ClarificationAnswer, User, R1, &[R7]),
    row(TaskSpec, R1, R2, &[R7]),
    row(DirectAnswer, R1, R7, &[]),
    row(MemoryQuery, R2, R5, &[]),
    row(MemoryReply, R5, R2, &[]),
    row(PlanningFailed, R1, R7, &[]),
    row(PlanningFailed, R2, R7, &[]),
    row(PlanningFailed, Runtime, R7, &[]),
    row(DispatchManifest, R2, R4b, &[R5, R7]),
    row(SubTask, R2, R3, &[R4a]),
    row(ConfirmationRequest, R3, User, &[R2, R4b, R7]),
    // Whether an action that was cut off is done again: asked, and answered, before its task goes on.
    row(ConfirmationRequest, Runtime, User, &[]),
    row(ConfirmationAnswer, User, R3, &[R2, R4b, R7]),
    row(ExecutionResult, R3, R4a, &[]),
    row(CorrectionSignal, R4a, R3, &[]),
    row(SubTaskOutcome, R4a, R4b, &[R2]),
    row(ReplanRequest, R4b, R7, &[]),
    row(OutcomeSummary, R4b, R7, &[]),
    row(PlanDirective, R7, R2, &[]),
    row(PartialResultRequest, R7, R2, &[]),
    row(PartialResult, R2, R7, &[]),
    row(BudgetReached, Runtime, R7, &[]),
    row(TaskAborted, User, R7, &[R1, R2, R3, R4a, R4b]),
    row(TaskResumed, Runtime, R7, &[R2, R4b, R5]),
    row(FinalResult, R7, User, &[R1, R2, R3, R4a, R4b, R5]),
    row(Megram, R7, R5, &[]),
    row(Megram, User, R5, &[]),
    row(AuditQuery, User, R6, &[]),
    row(AuditReport, R6, User, &[]),
];

/// The route of a kind of message from a sender, if there is one.
pub fn route(kind: MessageKind, from: Role) -> Option<&'static Route> {
    ROUTES.iter().find(|route| route.kind == kind && route.from == from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_route_and_none_is_ambiguous() {
        for &kind in MessageKind::ALL {
            assert!(ROUTES.iter().any(|r| r.kind == kind), "{kind:?} has no route");
            for role in Role::ALL {
                assert!(ROUTES.iter().filter(|r| r.kind == kind && r.from == role).count() <= 1);
            }
        }
    }

    #[test]
    fn the_laws_of_authorship_hold() {
        let senders = |kind| {
            ROUTES
                .iter()
                .filter(move |r| r.kind == kind)
                .map(|r| r.from)
                .collect::<Vec<_>>()
        };
        assert_eq!(senders(PlanDirective), [R7], "only the controller directs");
        assert_eq!(senders(FinalResult), [R7], "only the controller ends a task");
        assert_eq!(
            senders(Megram),
            [R7, User],
            "the controller is the only role that writes memory"
        );
        assert_eq!(senders(ConfirmationAnswer), [User], "no role gives consent");
        assert!(
            ROUTES.iter().all(|r| r.to != R3 || r.kind != MemoryReply),
            "the executor never reads memory"
        );
        assert!(
            ROUTES
                .iter()
                .filter(|r| r.from == R6)
                .all(|r| r.to == User && r.copies.is_empty())
        );
        assert_eq!(
            route(ReplanRequest, R4b).map(|r| r.to),
            Some(R7),
            "a gap goes to the controller, never to the planner"
        );
    }
}

//! Roles that do wrong on purpose, one wrong at a time: they show that each law of the simulation can be broken (design §2).
//!
//! Owns the wrongs, and which words each of them must call forth. The laws themselves know nothing of them.

use std::collections::BTreeMap;

use artoo_protocol::message::{AuditQuery, Cause, Ending, OutcomeStatus};
use artoo_protocol::model::{ModelRequest, Tier, Usage};
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit};
use artoo_protocol::{Answer, CallId, Command, Event, Message, MessageKind, Role};
use serde_json::Value;

/// One wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// R7 never says how the task ended.
    NoEnding,
    /// R3 does what it should have asked about.
    WithoutConsent,
    /// After a crash, what may have happened is done again unasked.
    Twice,
    /// R7 calls accepted what R4b rejected.
    Accepts,
    /// R7 calls a rejected result a success.
    Succeeds,
    /// R7 names nothing that is missing.
    NamesNothing,
    /// R2 and R3 never hear what is blocked.
    ForgetsBlocked,
    /// After a crash, the meter begins at nothing.
    ForgetsSpending,
    /// R3 never hears that a task is over.
    KeepsState,
    /// A role does not decide the same when it decides again.
    Dices,
    /// A role sleeps through its deadline.
    Oversleeps,
    /// R7 counts one directive too many.
    Miscounts,
    /// R4b accepts whatever failed.
    AcceptsAll,
    /// R7 asks a model.
    Oversteps,
    /// R3 publishes what no route allows it.
    Meddles,
    /// What is new is made although it cannot be written down.
    MakesUnwritten,
    /// A deadline comes before what was said earlier, and is not written down where the task was stopped.
    Overtakes,
    /// R3 does under a second name what it does.
    Repeats,
    /// R3 shows the person the file, not what would become of it.
    ShowsLess,
    /// R3 takes whatever is to be written into a file for what it was shown of it first.
    OneForAll,
    /// R7 names nothing where a task is ended from outside before anybody reported on its plan.
    NamesNothingYet,
    /// What an answer used is not written down.
    BooksNothing,
    /// Nobody is told that a limit was reached.
    NeverTells,
    /// A memory that was to be written when the process died is written, and its journal does not say so.
    StoresUnwritten,
    /// A role deals with a deadline beside its own task, and the journal does not say why.
    ExplainsNothing,
}

impl Wrong {
    /// Every wrong, with words of the law that it breaks.
    pub const ALL: [(Self, &'static str); 25] = [
        (Self::NoEnding, "a task has no FinalResult"),
        (Self::WithoutConsent, "ran without consent"),
        (Self::Twice, "was done twice"),
        (Self::Accepts, "accepted without R4b's acceptance"),
        (Self::Succeeds, "a rejected result was called a success"),
        (Self::NamesNothing, "did not pass and is not named"),
        (Self::ForgetsBlocked, "after it was blocked"),
        (Self::ForgetsSpending, "and the budget counts"),
        (Self::KeepsState, "states are left behind"),
        (Self::Dices, "replay: "),
        (Self::Oversleeps, "does not move"),
        (Self::Miscounts, "are counted as"),
        (Self::AcceptsAll, "R4b accepted what did not match"),
        (Self::Oversteps, "asked a model"),
        (Self::Meddles, "may not send"),
        (Self::MakesUnwritten, "was done twice"),
        (Self::Overtakes, "and the cause is"),
        (Self::Repeats, "ran more often than the model asked for it"),
        (Self::ShowsLess, "which is not what would be done"),
        (Self::OneForAll, "ran without consent"),
        (Self::NamesNothingYet, "of the plan was not judged and is not named"),
        (Self::BooksNothing, "were paid"),
        (Self::NeverTells, "was reached and was not told"),
        (Self::StoresUnwritten, "replay: "),
        (Self::ExplainsNothing, "replay: "),
    ];
}

/// A wrong at work in one world.
#[derive(Clone, Debug)]
pub struct Saboteur {
    wrong: Wrong,
    /// What R3 had looked at last.
    assessed: Option<Invocation>,
    /// A gap that R4b found in what had matched.
    rejected: bool,
    /// Whether R7 has a plan that nobody reported on.
    unreported: bool,
    /// What R3 was shown of a file first.
    first: BTreeMap<String, Assessment>,
}

impl Saboteur {
    /// One that has done nothing yet.
    pub const fn new(wrong: Wrong) -> Self {
        Self {
            wrong,
            assessed: None,
            rejected: false,
            unreported: false,
            first: BTreeMap::new(),
        }
    }

    /// Whether what was unfinished is done again unasked.
    pub fn repeats(&self) -> bool {
        self.wrong == Wrong::Twice
    }

    /// Whether what was spent is forgotten.
    pub fn forgets_spending(&self) -> bool {
        self.wrong == Wrong::ForgetsSpending
    }

    /// Whether what is new is made without a journal.
    pub fn makes_unwritten(&self) -> bool {
        self.wrong == Wrong::MakesUnwritten
    }

    /// Whether deadlines come before what was said earlier.
    pub fn overtakes(&self) -> bool {
        self.wrong == Wrong::Overtakes
    }

    /// Whether nobody is told of a limit.
    pub fn never_tells(&self) -> bool {
        self.wrong == Wrong::NeverTells
    }

    /// Whether what was pending at a crash is done without a record.
    pub fn stores_unwritten(&self) -> bool {
        self.wrong == Wrong::StoresUnwritten
    }

    /// Whether a journal does not say why something was done beside another task.
    pub fn explains_nothing(&self) -> bool {
        self.wrong == Wrong::ExplainsNothing
    }

    /// Changes an answer as it is written down.
    pub const fn books(&self, answer: &mut Answer) {
        if let (Wrong::BooksNothing, Answer::Model(Ok(reply))) = (self.wrong, answer) {
            reply.usage = Usage {
                requests: 1,
                input_tokens: 0,
                output_tokens: 0,
                ..reply.usage
            };
        }
    }

    /// Changes what a role hears; `false` when it does not hear it at all.
    pub fn hears(&mut self, role: Role, event: &mut Event) -> bool {
        match (self.wrong, role, event) {
            (Wrong::NamesNothingYet, Role::R7, Event::Message { envelope }) => {
                match envelope.payload.kind() {
                    MessageKind::DispatchManifest => self.unreported = true,
                    MessageKind::ReplanRequest | MessageKind::OutcomeSummary => self.unreported = false,
                    _ => {}
                }
                true
            }
            (
                Wrong::ShowsLess,
                Role::R3,
                Event::Answer {
                    answer: Answer::Assessed(assessment),
                    ..
                },
            ) => {
                if let Some(path) = assessment.targets.first() {
                    assessment.action.clone_from(path);
                    assessment.fingerprint = 0;
                }
                true
            }
            (
                Wrong::OneForAll,
                Role::R3,
                Event::Answer {
                    answer: Answer::Assessed(assessment),
                    ..
                },
            ) => {
                if assessment.effect == EffectClass::Modify
                    && let Some(path) = assessment.targets.first()
                {
                    let first = self.first.entry(path.clone()).or_insert_with(|| assessment.clone());
                    assessment.action.clone_from(&first.action);
                    assessment.fingerprint = first.fingerprint;
                }
                true
            }
            (Wrong::Oversleeps, Role::R2 | Role::R3 | Role::R7, Event::Wake) => false,
            (Wrong::KeepsState, Role::R3, Event::Message { envelope }) => !matches!(
                envelope.payload.kind(),
                MessageKind::FinalResult | MessageKind::TaskAborted
            ),
            (Wrong::ForgetsBlocked, Role::R2, Event::Message { envelope }) => {
                if let Message::PlanDirective(directive) = &mut envelope.payload {
                    directive.blocked_tools.clear();
                    directive.blocked_targets.clear();
                }
                true
            }
            _ => true,
        }
    }

    /// Changes what a role wants.
    pub fn wants(&mut self, role: Role, commands: &mut Vec<Command>) {
        let mut more = Vec::new();
        commands.retain_mut(|command| self.changes(role, command, &mut more));
        commands.append(&mut more);
    }

    /// Changes one command, adds others; `false` when nothing is left of it.
    fn changes(&mut self, role: Role, command: &mut Command, more: &mut Vec<Command>) -> bool {
        if let (Role::R3, Command::Assess { invocation, .. }) = (role, &*command) {
            self.assessed = Some(invocation.clone());
        }
        if let (
            Wrong::Repeats,
            Command::RunTool {
                task_id,
                call,
                invocation,
                permit,
            },
        ) = (self.wrong, &*command)
            && permit.effect >= EffectClass::Create
        {
            more.push(Command::RunTool {
                task_id: task_id.clone(),
                call: CallId(call.0 + 1_000_000),
                invocation: invocation.clone(),
                permit: *permit,
            });
        }
        let Command::Publish { task_id, message } = command else {
            return true;
        };
        let task = task_id.clone();
        match (self.wrong, message.as_mut()) {
            (Wrong::NoEnding, Message::FinalResult(_)) => return false,
            (Wrong::WithoutConsent, Message::ConfirmationRequest(request)) => {
                if let (Some(task_id), Some(invocation)) = (task, self.assessed.clone()) {
                    let permit = Permit {
                        effect: request.effect,
                        confirmed: true,
                        seen: 0,
                    };
                    more.push(Command::RunTool {
                        task_id,
                        call: CallId(1_000_000),
                        invocation,
                        permit,
                    });
                }
            }
            (Wrong::Accepts, Message::FinalResult(result)) if result.directive == Ending::Abandon => {
                result.directive = Ending::Accept;
                result.cause = Cause::Met;
            }
            (Wrong::Succeeds, Message::ReplanRequest(request)) => {
                self.rejected = request
                    .outcomes
                    .iter()
                    .all(|outcome| outcome.status == OutcomeStatus::Matched);
            }
            (Wrong::Succeeds, Message::FinalResult(result)) if self.rejected => {
                result.directive = Ending::Success;
                result.cause = Cause::WithinThreshold;
            }
            (Wrong::NamesNothing, Message::FinalResult(result)) => {
                result.unmet.clear();
                result.unverified.clear();
            }
            (Wrong::NamesNothingYet, Message::FinalResult(result)) if self.unreported => {
                result.unmet.clear();
                result.unverified.clear();
            }
            (Wrong::Dices, Message::TaskSpec(spec)) => spec.intent.push_str(" or so"),
            (Wrong::Miscounts, Message::FinalResult(result)) => result.replans += 1,
            (Wrong::AcceptsAll, Message::OutcomeSummary(summary)) => {
                for outcome in &mut summary.outcomes {
                    outcome.criteria_verdicts.pop();
                }
            }
            (Wrong::Meddles, Message::ExecutionResult(_)) => {
                more.push(Command::Publish {
                    task_id: task,
                    message: Box::new(Message::AuditQuery(AuditQuery {})),
                });
            }
            (Wrong::Oversteps, Message::PlanDirective(_)) => {
                if let Some(task_id) = task {
                    more.push(Command::CallModel {
                        task_id,
                        call: CallId(0),
                        request: ModelRequest::structured(Tier::Brain, "", String::new(), "advice", Value::Null),
                    });
                }
            }
            _ => {}
        }
        true
    }
}

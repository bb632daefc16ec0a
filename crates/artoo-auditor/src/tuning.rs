//! One row of data per closed task: what calibration of the controller learns from (design §12, §16).
//!
//! Owns the row and how it grows with what is seen. The rows are lines of `tuning.jsonl` in the data folder.

use artoo_protocol::message::{
    Cause, Directive, Ending, ExecutionStatus, Loss, Message, OutcomeStatus, Recommendation, SubTaskOutcome, Urgency,
};
use artoo_protocol::{Act, Finite, Millis, Slug, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::detect::Seen;

/// Version of a row.
pub const TUNING_FORMAT: u32 = 1;
/// Most rounds that are kept of one task.
const ROUNDS_MAX: usize = 100;

/// How R4b closed a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosedBy {
    /// A ReplanRequest.
    Gap,
    /// An OutcomeSummary.
    Accepted,
}

/// What R7 answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Decision {
    /// Another round.
    Again(Directive),
    /// The end.
    End(Ending),
}

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRow {
    /// From 1.
    pub round: u32,
    /// When R4b spoke.
    pub at: Timestamp,
    /// How.
    pub closed_by: ClosedBy,
    /// Running time of the task by R4b's account, waiting for a person left out.
    pub elapsed_ms: Millis,
    /// Corrections of R4a in this round.
    pub corrections: u64,
    /// Outcomes.
    pub matched: u64,
    /// Outcomes.
    pub failed: u64,
    /// Outcomes.
    pub not_run: u64,
    /// Everything matched, the merged result did not.
    pub rejected: bool,
    /// R4b's advice.
    pub recommendation: Recommendation,
    /// The signals by which R7 decided, and their loss.
    #[serde(flatten)]
    pub loss: Loss,
    /// ∇L.
    pub grad_l: Finite,
    /// The decision; absent while there is none.
    pub directive: Option<Decision>,
    /// How hard.
    pub urgency: Urgency,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuningRow {
    /// Version.
    pub format: u32,
    /// The run.
    pub task_id: TaskId,
    /// The class of the task.
    pub slug: Slug,
    /// When its input came.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How.
    pub ending: Ending,
    /// Why.
    pub cause: Cause,
    /// Directives.
    pub replans: u32,
    /// Rounds in order; the first 100.
    pub rounds: Vec<RoundRow>,
    /// The last signals, and their loss.
    #[serde(flatten)]
    pub loss: Loss,
    /// The last ∇L.
    pub grad_l: Finite,
    /// Criteria that failed or were not run.
    pub unmet: u64,
    /// Criteria that nothing verified.
    pub unverified: u64,
    /// What it took.
    #[serde(flatten)]
    pub effort: Effort,
    /// From input to end.
    pub elapsed_ms: Millis,
    /// Whether everything of the task was seen.
    pub complete: bool,
}

/// What a task took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Effort {
    /// Attempts of R3.
    pub attempts: u64,
    /// Those that failed by its own account.
    pub failed_attempts: u64,
    /// Corrections of R4a.
    pub corrections: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Those that failed.
    pub failed_calls: u64,
    /// Time in tools.
    pub tool_ms: u64,
    /// Model calls that were answered.
    pub model_calls: u64,
    /// Tokens.
    pub input_tokens: u64,
    /// Tokens.
    pub output_tokens: u64,
    /// Tokens.
    pub cached_tokens: u64,
    /// Time in models.
    pub model_ms: u64,
    /// Money, in the currency of the price table.
    pub cost: f64,
}

/// A row that grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growing {
    started_at: Option<Timestamp>,
    rounds: Vec<RoundRow>,
    effort: Effort,
    corrections_before: u64,
}

impl Growing {
    /// Takes what was seen of the task; the row when it has ended. `gapless`: nothing was missed since it began.
    pub fn see(&mut self, seen: &Seen<'_>, gapless: bool) -> Option<TuningRow> {
        let envelope = match seen {
            Seen::Envelope(envelope) => envelope,
            Seen::Deed(deed) => {
                self.spend(&deed.act);
                return None;
            }
        };
        if let Message::UserInput(_) = &envelope.payload {
            self.started_at = Some(envelope.timestamp);
        } else if let Message::ExecutionResult(result) = &envelope.payload {
            let effort = &mut self.effort;
            effort.attempts += 1;
            effort.failed_attempts += u64::from(result.status == ExecutionStatus::Failed);
            for call in result.tool_calls.iter().filter(|call| !call.not_run) {
                effort.tool_calls += 1;
                effort.failed_calls += u64::from(call.failed());
                effort.tool_ms = effort.tool_ms.saturating_add(call.elapsed_ms.0);
            }
        } else if let Message::CorrectionSignal(_) = &envelope.payload {
            self.effort.corrections += 1;
        } else if let Message::ReplanRequest(request) = &envelope.payload {
            self.close(envelope.timestamp, ClosedBy::Gap, request.elapsed_ms, &request.outcomes);
            if let Some(round) = self.rounds.last_mut() {
                round.recommendation = request.recommendation;
            }
        } else if let Message::OutcomeSummary(summary) = &envelope.payload {
            self.close(
                envelope.timestamp,
                ClosedBy::Accepted,
                summary.elapsed_ms,
                &summary.outcomes,
            );
        } else if let Message::PlanDirective(directive) = &envelope.payload {
            if let Some(round) = self.undecided() {
                round.directive = Some(Decision::Again(directive.directive));
                round.urgency = directive.urgency;
                round.loss = directive.loss;
                round.grad_l = directive.grad_l;
            }
        } else if let Message::FinalResult(result) = &envelope.payload {
            if let Some(round) = self.undecided() {
                round.directive = Some(Decision::End(result.directive));
                round.loss = result.loss;
                round.grad_l = result.grad_l;
            }
            let ended_at = envelope.timestamp;
            let started_at = self.started_at.unwrap_or(ended_at);
            return Some(TuningRow {
                format: TUNING_FORMAT,
                task_id: result.task_id.clone(),
                slug: result.slug.clone(),
                started_at,
                ended_at,
                ending: result.directive,
                cause: result.cause,
                replans: result.replans,
                rounds: std::mem::take(&mut self.rounds),
                loss: result.loss,
                grad_l: result.grad_l,
                unmet: count(result.unmet.len()),
                unverified: count(result.unverified.len()),
                effort: self.effort,
                elapsed_ms: ended_at.since(started_at),
                complete: gapless && self.started_at.is_some(),
            });
        }
        None
    }

    /// What it took so far.
    pub const fn effort(&self) -> &Effort {
        &self.effort
    }

    fn undecided(&mut self) -> Option<&mut RoundRow> {
        self.rounds.last_mut().filter(|round| round.directive.is_none())
    }

    fn spend(&mut self, act: &Act) {
        let effort = &mut self.effort;
        if let Act::ModelAnswered { elapsed_ms, .. } = act {
            effort.model_calls += 1;
            effort.model_ms = effort.model_ms.saturating_add(elapsed_ms.0);
        }
        if let Act::ModelAnswered { usage, cost, .. } | Act::ModelFailed { usage, cost, .. } = act {
            effort.input_tokens = effort.input_tokens.saturating_add(usage.input_tokens);
            effort.output_tokens = effort.output_tokens.saturating_add(usage.output_tokens);
            effort.cached_tokens = effort.cached_tokens.saturating_add(usage.cached_tokens);
            effort.cost += cost.get();
        }
    }

    fn close(&mut self, at: Timestamp, closed_by: ClosedBy, elapsed_ms: Millis, outcomes: &[SubTaskOutcome]) {
        if self.rounds.len() >= ROUNDS_MAX {
            return;
        }
        let of = |status| count(outcomes.iter().filter(|outcome| outcome.status == status).count());
        let corrections = self.effort.corrections - self.corrections_before;
        self.corrections_before = self.effort.corrections;
        let matched = of(OutcomeStatus::Matched);
        self.rounds.push(RoundRow {
            round: u32::try_from(self.rounds.len() + 1).unwrap_or(u32::MAX),
            at,
            closed_by,
            elapsed_ms,
            corrections,
            matched,
            failed: of(OutcomeStatus::Failed),
            not_run: of(OutcomeStatus::NotRun),
            rejected: closed_by == ClosedBy::Gap && matched > 0 && matched == count(outcomes.len()),
            recommendation: Recommendation::default(),
            loss: Loss::default(),
            grad_l: Finite::ZERO,
            directive: None,
            urgency: Urgency::default(),
        });
    }
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

//! One attempt while it is being judged, and what is known of a subtask so far (design §10).

use std::collections::BTreeMap;

use artoo_protocol::message::{
    Attempt, CriterionVerdict, ExecutionResult, ExecutionStatus, OutcomeStatus, SubTask, SubTaskOutcome, ToolCall,
    VerdictSource,
};
use artoo_protocol::text::head_tail;
use serde_json::Value;

use super::rules::{self, Finding, Judged};
use crate::decided::Decided;
use crate::verdicts::{self, all_pass, describe_failures};

/// At most so many calls of earlier attempts that wrote files are kept.
const WRITTEN_MAX: usize = 50;

/// What R4a keeps of a subtask over its attempts.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) subtask: SubTask,
    pub(super) trajectory: Vec<Attempt>,
    pub(super) avoid: Vec<String>,
    /// Calls of earlier attempts that wrote files.
    pub(super) written: Vec<ToolCall>,
    /// Paths that its attempts made.
    pub(super) made: Vec<String>,
}

/// One attempt with the verdicts that are there already, by the number of the criterion.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) result: ExecutionResult,
    pub(super) decided: Decided,
    /// What R3 is told where a rule decided, by the number of the criterion.
    pub(super) advice: BTreeMap<usize, &'static str>,
    /// Checks that could not run.
    pub(super) faulty: Vec<String>,
    /// There is no model to judge, so another attempt would end alike.
    pub(super) no_model: bool,
    pub(super) what_was_wrong: String,
    pub(super) what_to_do: String,
}

impl Trial {
    /// Applies the evidence rules to every criterion.
    ///
    /// `made` are the paths that the task made in earlier attempts.
    pub(super) fn open(subtask: &SubTask, result: ExecutionResult, made: &[String]) -> Self {
        let criteria = &subtask.success_criteria;
        let (mut decided, mut advice) = (Decided::default(), BTreeMap::new());
        for (at, criterion) in criteria.iter().enumerate() {
            let judged = Judged {
                result: &result,
                criterion,
                criteria,
                made,
            };
            if let Some((rule, Finding { class, evidence })) = rules::first(&judged) {
                advice.insert(at, rule.advice);
                decided.insert(at, verdicts::fail(criterion, class, VerdictSource::Rule, evidence));
            }
        }
        Self {
            result,
            decided,
            advice,
            faulty: Vec::new(),
            no_model: false,
            what_was_wrong: String::new(),
            what_to_do: String::new(),
        }
    }

    /// One verdict per criterion, in order; whatever was not decided is a fail.
    pub(super) fn verdicts(&mut self, subtask: &SubTask) -> Vec<CriterionVerdict> {
        let criteria = subtask.success_criteria.iter().enumerate();
        criteria
            .map(|(at, criterion)| {
                let decided = self.decided.remove(at);
                decided.unwrap_or_else(|| verdicts::unjudged(criterion))
            })
            .collect()
    }

    /// Verdicts of an attempt that ended the subtask without being judged: every criterion fails for the same reason.
    pub(super) fn all_failed(subtask: &SubTask, finding: &Finding) -> Vec<CriterionVerdict> {
        let criteria = subtask.success_criteria.iter();
        criteria
            .map(|criterion| verdicts::fail(criterion, finding.class, VerdictSource::Rule, &finding.evidence))
            .collect()
    }
}

impl Ledger {
    /// The number that the next attempt must have.
    pub(super) fn next_attempt(&self) -> u32 {
        u32::try_from(self.trajectory.len())
            .unwrap_or(u32::MAX)
            .saturating_add(1)
    }

    /// Notes what an attempt made.
    pub(super) fn note_made(&mut self, result: &ExecutionResult) {
        for path in result.tool_calls.iter().flat_map(|call| &call.touched) {
            if self.made.len() < super::MADE_MAX && !self.made.contains(path) {
                self.made.push(path.clone());
            }
        }
    }

    /// Keeps the calls of a failed attempt that wrote files: a later attempt may show what they wrote.
    pub(super) fn note_written(&mut self, result: &ExecutionResult) {
        let writers = result.tool_calls.iter().filter(|call| !call.touched.is_empty());
        for call in writers {
            if self.written.len() < WRITTEN_MAX {
                self.written.push(call.clone());
            }
        }
    }

    /// Notes an attempt's verdicts.
    pub(super) fn record(&mut self, verdicts: &[CriterionVerdict]) {
        self.trajectory.push(Attempt {
            attempt: self.next_attempt(),
            score: verdicts::score(verdicts),
            unmet_criteria: verdicts::failing(verdicts).map(|v| v.criterion.clone()).collect(),
            failure_class: verdicts::prevailing_class(verdicts),
        });
    }

    /// The last word. It is `matched` exactly when there are verdicts and every one of them is a pass.
    pub(super) fn outcome(
        self,
        result: ExecutionResult,
        verdicts: Vec<CriterionVerdict>,
        reason: Option<String>,
        infrastructure: bool,
    ) -> SubTaskOutcome {
        let matched = all_pass(&verdicts) && reason.is_none();
        let failure_reason = (!matched).then(|| {
            let detail = describe_failures(&verdicts);
            let words = match reason {
                Some(reason) => reason,
                None => format!("after {} attempts:\n{detail}", self.trajectory.len()),
            };
            head_tail(&words, 3_000)
        });
        let uncertain = (result.status == ExecutionStatus::Uncertain)
            .then(|| result.reason.clone().unwrap_or_else(|| "no reason given".to_owned()));
        SubTaskOutcome {
            subtask_id: self.subtask.subtask_id,
            parent_task_id: self.subtask.parent_task_id,
            intent: self.subtask.intent,
            status: if matched {
                OutcomeStatus::Matched
            } else {
                OutcomeStatus::Failed
            },
            output: Value::String(result.output),
            failure_reason,
            success_criteria: self.subtask.success_criteria,
            criteria_verdicts: verdicts,
            gap_trajectory: self.trajectory,
            tool_calls: result.tool_calls,
            made: self.made,
            carried_from: None,
            uncertain,
            infeasible: result.infeasible,
            refused: result.refused,
            infrastructure,
        }
    }
}

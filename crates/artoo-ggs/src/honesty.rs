//! The honesty report: what stands behind each criterion that did not fail (design §14).
//!
//! Owns the sorting of verdicts by who decided and on what. Judges nothing anew, and says nothing of what failed: that is
//! in `unmet`.

use artoo_protocol::SubTaskId;
use artoo_protocol::message::{
    CriterionVerdict, Grounds, Honesty, Mode, OutcomeStatus, SubTaskOutcome, ToolCall, Verdict, VerdictSource,
};
use artoo_protocol::text::{first_n, one_line};

/// Most criteria in each list.
const GROUNDS_MAX: usize = 1_000;
/// Most calls named for one criterion: the last ones, which carry the result.
const CALLS_MAX: usize = 5;

/// Of the last round. `task_criteria` are those of the plan; the ones without a verdict were judged by nobody.
pub fn honesty(outcomes: &[SubTaskOutcome], task_verdicts: &[CriterionVerdict], task_criteria: &[String]) -> Honesty {
    let mut report = Honesty::default();
    for outcome in outcomes {
        let calls: Vec<&ToolCall> = outcome.tool_calls.iter().filter(|call| !call.not_run).collect();
        let source = Source {
            subtask: Some(&outcome.subtask_id),
            calls: &calls,
            doubt: outcome.uncertain.as_deref(),
        };
        for verdict in &outcome.criteria_verdicts {
            source.sort(verdict, &mut report);
        }
        let unjudged = outcome.success_criteria.iter().filter(|criterion| {
            outcome
                .criteria_verdicts
                .iter()
                .all(|v| v.criterion != criterion.criterion)
        });
        if outcome.status == OutcomeStatus::Matched {
            for criterion in unjudged {
                push(
                    &mut report.unverified,
                    source.grounds(&criterion.criterion, "judged by nobody"),
                );
            }
        }
    }
    let all: Vec<&ToolCall> = outcomes
        .iter()
        .filter(|outcome| outcome.status == OutcomeStatus::Matched)
        .flat_map(|outcome| &outcome.tool_calls)
        .filter(|call| !call.not_run)
        .collect();
    let source = Source {
        subtask: None,
        calls: &all,
        doubt: None,
    };
    for verdict in task_verdicts {
        source.sort(verdict, &mut report);
    }
    for criterion in task_criteria {
        if task_verdicts.iter().all(|verdict| verdict.criterion != *criterion) {
            push(&mut report.unverified, source.grounds(criterion, "judged by nobody"));
        }
    }
    report
}

/// Adds a criterion that nobody verified, and why.
pub(crate) fn unverified(report: &mut Honesty, subtask: Option<&SubTaskId>, criterion: &str, why: &str) {
    let source = Source {
        subtask,
        calls: &[],
        doubt: None,
    };
    push(&mut report.unverified, source.grounds(criterion, why));
}

/// What the verdicts of one subtask, or of the whole task, rest on.
struct Source<'a> {
    subtask: Option<&'a SubTaskId>,
    calls: &'a [&'a ToolCall],
    /// Why the executor itself is not sure.
    doubt: Option<&'a str>,
}

impl Source<'_> {
    fn sort(&self, verdict: &CriterionVerdict, report: &mut Honesty) {
        if verdict.verdict == Verdict::Fail {
            return;
        }
        let grounds = |evidence: &str| self.grounds(&verdict.criterion, evidence);
        match (verdict.source, verdict.mode, self.doubt) {
            (VerdictSource::Check | VerdictSource::Rule, _, _) => push(&mut report.proven, grounds(&verdict.evidence)),
            (VerdictSource::Model, _, Some(doubt)) => push(
                &mut report.unverified,
                grounds(&format!(
                    "the executor itself is not sure: {doubt}; a model let it pass: {}",
                    verdict.evidence
                )),
            ),
            (VerdictSource::Model, Mode::Verifiable, None) if !self.calls.is_empty() => {
                let shown = self.calls.iter().rev().take(CALLS_MAX).rev();
                let mut grounds = grounds(&verdict.evidence);
                grounds.calls = shown
                    .map(|call| format!("{}: {}", call.tool, one_line(&call.target(), 120)))
                    .collect();
                push(&mut report.judged, grounds);
            }
            (VerdictSource::NoJudge | VerdictSource::NoCheck, _, _) => {
                push(&mut report.unverified, grounds(&verdict.evidence));
            }
            (VerdictSource::Model, Mode::Verifiable | Mode::Plausible, None) => push(
                &mut report.unverified,
                grounds(&format!("a model judged the text alone: {}", verdict.evidence)),
            ),
        }
    }

    fn grounds(&self, criterion: &str, evidence: &str) -> Grounds {
        Grounds {
            criterion: criterion.to_owned(),
            subtask_id: self.subtask.cloned(),
            evidence: first_n(evidence, 600),
            calls: Vec::new(),
        }
    }
}

fn push(list: &mut Vec<Grounds>, grounds: Grounds) {
    if list.len() < GROUNDS_MAX {
        list.push(grounds);
    }
}

//! Manifests and outcomes as R4b's tests build them.

use artoo_protocol::message::{
    Attempt, Criterion, CriterionVerdict, DispatchManifest, FailureClass, Mode, OutcomeStatus, PlannedSubTask,
    SubTaskOutcome, Verdict, VerdictSource,
};
use artoo_protocol::{Slug, SubTaskId, TaskId, Timestamp, Unit01};
use serde_json::Value;

pub(crate) fn task() -> TaskId {
    TaskId::new("count_lines_0123abcd")
}

pub(crate) fn criterion(text: &str) -> Criterion {
    Criterion {
        criterion: text.to_owned(),
        mode: Mode::Plausible,
        check: None,
    }
}

/// A plan of subtasks with these sequences, named `s1`, `s2`, ….
pub(crate) fn manifest(round: u32, sequences: &[u32], task_criteria: Vec<Criterion>) -> DispatchManifest {
    let id = |at: usize| {
        SubTaskId::new(if round == 1 {
            format!("s{}", at + 1)
        } else {
            format!("r{round}s{}", at + 1)
        })
    };
    DispatchManifest {
        task_id: task(),
        slug: Slug::repair("count_lines"),
        intent: "Count the lines of the text files".to_owned(),
        round,
        subtask_ids: (0..sequences.len()).map(id).collect(),
        subtasks: sequences
            .iter()
            .enumerate()
            .map(|(at, sequence)| PlannedSubTask {
                subtask_id: id(at),
                sequence: *sequence,
                intent: format!("Do part {}", at + 1),
                success_criteria: vec![criterion(&format!("part {} is done", at + 1))],
                deadline: None,
            })
            .collect(),
        carried: Vec::new(),
        task_criteria,
        started_at: Timestamp::from_millis(0),
        dispatched_at: Timestamp::from_millis(1),
        rules_used: Vec::new(),
    }
}

pub(crate) fn outcome(id: &str, status: OutcomeStatus) -> SubTaskOutcome {
    let matched = status == OutcomeStatus::Matched;
    SubTaskOutcome {
        subtask_id: SubTaskId::new(id),
        parent_task_id: task(),
        intent: format!("Do {id}"),
        status,
        output: Value::String(format!("output of {id}")),
        failure_reason: (!matched).then(|| "the file was not there".to_owned()),
        success_criteria: vec![criterion("it is done")],
        criteria_verdicts: vec![CriterionVerdict {
            criterion: "it is done".to_owned(),
            mode: Mode::Plausible,
            verdict: if matched { Verdict::Pass } else { Verdict::Fail },
            failure_class: (!matched).then_some(FailureClass::Logical),
            evidence: "call 1".to_owned(),
            source: VerdictSource::Model,
        }],
        gap_trajectory: vec![Attempt {
            attempt: 1,
            score: Unit01::ONE,
            unmet_criteria: Vec::new(),
            failure_class: None,
        }],
        tool_calls: Vec::new(),
        made: Vec::new(),
        carried_from: None,
        uncertain: None,
        infeasible: false,
        refused: false,
        infrastructure: false,
    }
}

//! The order of dispatch: group after group, so many at once, outputs handed on (design §6).
//!
//! Owns which subtask may start when. A later group starts only when every step before it has matched, so that a failed
//! step's output is never taken for a fact; a group that has begun is finished, because R4b waits for all of it.

use std::fmt::Write as _;

use artoo_protocol::message::{OutcomeStatus, SubTask, SubTaskOutcome};
use artoo_protocol::prompt::section;
use artoo_protocol::text::{head_tail, one_line};
use serde_json::Value;

/// Characters of one output that is handed on, and of all of them together.
const OUTPUT_CHARS: usize = 4_000;
const OUTPUTS_CHARS: usize = 64_000;
/// Characters of an earlier step's intent beside its output.
const INTENT_CHARS: usize = 200;

/// A plan that is being carried out.
#[derive(Clone, Debug)]
pub struct Dispatch {
    steps: Vec<Running>,
    parallel: usize,
}

#[derive(Clone, Debug)]
struct Running {
    subtask: SubTask,
    progress: Progress,
}

#[derive(Clone, Debug, PartialEq)]
enum Progress {
    Waiting,
    Sent,
    Matched { output: String },
    Failed,
}

impl Dispatch {
    /// Begins with the first group: the dispatch, and what to send now. `subtasks` are in order of sequence.
    pub fn start(subtasks: Vec<SubTask>, parallel: usize) -> (Self, Vec<SubTask>) {
        let steps = subtasks
            .into_iter()
            .map(|subtask| Running {
                subtask,
                progress: Progress::Waiting,
            })
            .collect();
        let mut dispatch = Self {
            steps,
            parallel: parallel.max(1),
        };
        let first = dispatch.due();
        (dispatch, first)
    }

    /// Takes an outcome and gives what to send next. One that is not awaited (late, foreign, twice) changes nothing.
    pub fn settle(&mut self, outcome: &SubTaskOutcome) -> Vec<SubTask> {
        let awaited = self
            .steps
            .iter_mut()
            .find(|step| step.subtask.subtask_id == outcome.subtask_id && step.progress == Progress::Sent);
        let Some(step) = awaited else {
            return Vec::new();
        };
        step.progress = match outcome.status {
            OutcomeStatus::Matched => Progress::Matched {
                output: output_text(&outcome.output),
            },
            OutcomeStatus::Failed | OutcomeStatus::NotRun => Progress::Failed,
        };
        self.due()
    }

    /// What may start now; it counts as sent.
    fn due(&mut self) -> Vec<SubTask> {
        let open = |step: &&Running| matches!(step.progress, Progress::Waiting | Progress::Sent);
        let Some(group) = self.steps.iter().filter(open).map(|step| step.subtask.sequence).min() else {
            return Vec::new();
        };
        let earlier_failed = |step: &Running| step.subtask.sequence < group && step.progress == Progress::Failed;
        if self.steps.iter().any(earlier_failed) {
            return Vec::new();
        }
        let running = self.steps.iter().filter(|step| step.progress == Progress::Sent).count();
        let handed_on = self.handed_on(group);
        self.steps
            .iter_mut()
            .filter(|step| step.subtask.sequence == group && step.progress == Progress::Waiting)
            .take(self.parallel.saturating_sub(running))
            .map(|step| {
                step.progress = Progress::Sent;
                with_outputs(&step.subtask, &handed_on)
            })
            .collect()
    }

    /// What the steps before a group gave, as text for its context.
    fn handed_on(&self, group: u32) -> String {
        let earlier = || self.steps.iter().take_while(|step| step.subtask.sequence < group);
        let limit = OUTPUTS_CHARS
            .checked_div(earlier().count())
            .unwrap_or(OUTPUT_CHARS)
            .clamp(64, OUTPUT_CHARS);
        let mut text = String::new();
        for (index, step) in earlier().enumerate() {
            if let Progress::Matched { output } = &step.progress {
                let intent = one_line(&step.subtask.intent, INTENT_CHARS);
                let _ = writeln!(text, "Output of step {} ({intent}):", index + 1);
                text.push_str(&section("output", &head_tail(output, limit)));
            }
        }
        text
    }
}

fn with_outputs(subtask: &SubTask, handed_on: &str) -> SubTask {
    let mut subtask = subtask.clone();
    if !handed_on.is_empty() {
        if !subtask.context.is_empty() {
            subtask.context.push_str("\n\n");
        }
        subtask.context.push_str(handed_on);
    }
    subtask
}

/// An output as text: strings as they are, everything else as JSON.
pub fn output_text(output: &Value) -> String {
    match output {
        Value::String(text) if !text.trim().is_empty() => text.clone(),
        Value::Null | Value::String(_) => "(no output)".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_protocol::ids::{SubTaskId, TaskId};
    use artoo_protocol::message::MustNot;
    use proptest::prelude::*;
    use serde_json::json;

    fn subtask(id: usize, sequence: u32) -> SubTask {
        SubTask {
            subtask_id: SubTaskId::new(format!("s{id}")),
            parent_task_id: TaskId::new("t_00000000"),
            intent: format!("do {id}"),
            context: "given".into(),
            success_criteria: Vec::new(),
            sequence,
            tools: Vec::new(),
            deadline: None,
            must_not: MustNot::default(),
            caution: None,
            scope: Vec::new(),
        }
    }

    fn outcome(id: &SubTaskId, status: OutcomeStatus, output: &Value) -> SubTaskOutcome {
        serde_json::from_value(
            json!({"subtask_id": id, "parent_task_id": "t_00000000", "status": status, "output": output}),
        )
        .unwrap()
    }

    fn ids(subtasks: &[SubTask]) -> Vec<&str> {
        subtasks.iter().map(|s| s.subtask_id.as_str()).collect()
    }

    fn plan(sequences: &[u32], parallel: usize) -> (Dispatch, Vec<SubTask>) {
        Dispatch::start(
            sequences.iter().enumerate().map(|(id, s)| subtask(id, *s)).collect(),
            parallel,
        )
    }

    #[test]
    fn the_next_group_gets_the_outputs_of_all_earlier_ones() {
        let (mut dispatch, first) = plan(&[1, 1, 2, 3], 8);
        assert_eq!(ids(&first), ["s0", "s1"]);
        assert_eq!(first[0].context, "given");
        assert!(
            dispatch
                .settle(&outcome(
                    &first[0].subtask_id,
                    OutcomeStatus::Matched,
                    &json!("a </output> b")
                ))
                .is_empty()
        );
        let second = dispatch.settle(&outcome(&first[1].subtask_id, OutcomeStatus::Matched, &json!({"n": 5})));
        assert_eq!(ids(&second), ["s2"]);
        let third = dispatch.settle(&outcome(
            &second[0].subtask_id,
            OutcomeStatus::Matched,
            &json!("y".repeat(9_000) + "end"),
        ));
        insta::assert_snapshot!("handed_on", third[0].context.replace(&"y".repeat(500), "y*500 "));
    }

    #[test]
    fn a_failed_group_stops_the_later_ones_but_is_finished_itself() {
        let (mut dispatch, first) = plan(&[1, 1, 1, 2], 2);
        assert_eq!(ids(&first), ["s0", "s1"]);
        let rest = dispatch.settle(&outcome(&first[0].subtask_id, OutcomeStatus::Failed, &json!("wrong")));
        assert_eq!(ids(&rest), ["s2"], "R4b waits for the whole group");
        for step in [&first[1], &rest[0]] {
            assert!(
                dispatch
                    .settle(&outcome(&step.subtask_id, OutcomeStatus::Matched, &json!("x")))
                    .is_empty()
            );
        }
    }

    #[test]
    fn the_first_outcome_of_a_step_counts_and_only_once_it_was_sent() {
        let (mut dispatch, first) = plan(&[1, 1, 2], 8);
        let ahead = outcome(&SubTaskId::new("s2"), OutcomeStatus::Matched, &json!("guessed"));
        assert!(dispatch.settle(&ahead).is_empty());
        for status in [OutcomeStatus::Matched, OutcomeStatus::Failed] {
            assert!(
                dispatch
                    .settle(&outcome(&first[0].subtask_id, status, &json!("a")))
                    .is_empty()
            );
        }
        let next = dispatch.settle(&outcome(&first[1].subtask_id, OutcomeStatus::Matched, &json!("b")));
        assert_eq!(ids(&next), ["s2"]);
    }

    #[test]
    fn a_thousand_subtasks_all_run_eight_at_a_time() {
        let (mut dispatch, mut open) = plan(&[1; 1_000], 8);
        let mut sent = open.len();
        while let Some(next) = open.pop() {
            assert!(open.len() < 8);
            let more = dispatch.settle(&outcome(&next.subtask_id, OutcomeStatus::Matched, &json!("ok")));
            sent += more.len();
            open.extend(more);
        }
        assert_eq!(sent, 1_000);
    }

    #[test]
    fn what_is_handed_on_stays_bounded() {
        let mut sequences = vec![1; 999];
        sequences.push(2);
        let (mut dispatch, mut open) = plan(&sequences, 999);
        let mut last = Vec::new();
        while let Some(next) = open.pop() {
            last = dispatch.settle(&outcome(
                &next.subtask_id,
                OutcomeStatus::Matched,
                &json!("z".repeat(4_000)),
            ));
        }
        assert_eq!(ids(&last), ["s999"]);
        assert!(last[0].context.chars().count() < 200_000, "{}", last[0].context.len());
    }

    proptest! {
        #[test]
        fn order_holds_and_nothing_is_sent_twice(
            gaps in proptest::collection::vec(0_u32..2, 1..20), parallel in 0_usize..5,
            choices in proptest::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 1..80),
        ) {
            let mut sequence = 1;
            let sequences: Vec<u32> = gaps.iter().map(|gap| { sequence += gap; sequence }).collect();
            let (mut dispatch, mut open) = plan(&sequences, parallel);
            let mut sent: Vec<SubTask> = open.clone();
            let mut failed_at = None;
            for (pick, kind) in choices {
                if open.is_empty() { break; }
                prop_assert!(open.len() <= parallel.max(1));
                let next = open.remove(pick.index(open.len()));
                let status = if kind == 0 { OutcomeStatus::Failed } else { OutcomeStatus::Matched };
                if kind == 0 { failed_at.get_or_insert(next.sequence); }
                let message = outcome(&next.subtask_id, status, &json!("o"));
                let more = dispatch.settle(&message);
                prop_assert!(dispatch.settle(&message).is_empty(), "twice");
                for step in &more {
                    prop_assert!(open.iter().all(|o| o.sequence == step.sequence), "groups mixed");
                    prop_assert!(failed_at.is_none_or(|at| step.sequence <= at), "after a failure");
                    prop_assert!(sent.iter().all(|s| s.subtask_id != step.subtask_id), "twice");
                    prop_assert!(sent.iter().all(|s| s.sequence <= step.sequence), "order");
                }
                sent.extend(more.clone());
                open.extend(more);
            }
            if open.is_empty() && failed_at.is_none() { prop_assert_eq!(sent.len(), sequences.len()); }
        }
    }
}

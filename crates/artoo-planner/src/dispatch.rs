//! The order of dispatch: group after group, so many at once, outputs handed on (design §6).
//!
//! Owns which subtask may start when. A later group starts only when every step before it has matched, so that a failed
//! step's output is never taken for a fact; a group that has begun is finished, because R4b waits for all of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use artoo_protocol::ids::SubTaskId;
use artoo_protocol::message::{OutcomeStatus, SubTask, SubTaskOutcome};
use artoo_protocol::overdue::PlanClock;
use artoo_protocol::prompt::section;
use artoo_protocol::text::{head_tail, one_line};
use artoo_protocol::units::Timestamp;
use serde_json::Value;

use crate::Limits;

/// Characters of one output that is handed on, and of all of them together.
const OUTPUT_CHARS: usize = 4_000;
const OUTPUTS_CHARS: usize = 64_000;
/// Characters of one output that are handed on however many there are.
const LEAST_CHARS: usize = 64;
/// Outputs whose file is named; of more, only the folder.
const FILES_NAMED: usize = 50;
/// Characters of an earlier step's intent beside its output.
const INTENT_CHARS: usize = 200;

/// A plan that is being carried out.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// In order of sequence.
    steps: Vec<Running>,
    by_id: BTreeMap<SubTaskId, usize>,
    parallel: usize,
    /// Where outputs go that are too long to be handed on whole.
    folder: Option<String>,
    /// The next step to send.
    next: usize,
    /// The sequence of the group that has begun.
    group: u32,
    running: usize,
    failed: bool,
    /// What is overdue; R4b keeps the same.
    pub clock: PlanClock,
    /// What the groups before gave, work of earlier rounds first.
    given: Vec<HandedOn>,
    /// The same as text, as far as it was written.
    shown: Shown,
    /// That text as the present group gets it.
    context: String,
}

/// What was given as text, to which each group adds its own: a plan of a thousand steps would else write the same text a
/// hundred times.
#[derive(Clone, Debug, Default)]
struct Shown {
    text: String,
    outputs: usize,
    /// Bytes of the longest output in it; above the present limit of characters all is written anew.
    longest: usize,
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
    Matched(HandedOn),
    Failed,
}

/// An output for the steps that come after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedOn {
    /// What was to be done.
    pub intent: String,
    /// What came of it.
    pub output: String,
    /// Where the whole output lies, when it is long.
    pub file: Option<String>,
}

/// An output that is too long to be handed on whole, and where it is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongOutput {
    /// Absolute path.
    pub path: String,
    /// The whole output.
    pub text: String,
}

impl Dispatch {
    /// A plan that was dispatched now, nothing of which was sent yet. `subtasks` are in order of sequence; `given` are outputs
    /// of earlier rounds; `folder` is where long outputs are kept, if anywhere.
    pub fn new(
        now: Timestamp,
        subtasks: Vec<SubTask>,
        limits: Limits,
        given: Vec<HandedOn>,
        folder: Option<String>,
    ) -> Self {
        let ids = subtasks.iter().enumerate();
        Self {
            by_id: ids.map(|(at, subtask)| (subtask.subtask_id.clone(), at)).collect(),
            steps: subtasks
                .into_iter()
                .map(|subtask| Running {
                    subtask,
                    progress: Progress::Waiting,
                })
                .collect(),
            parallel: limits.parallel.max(1),
            folder,
            next: 0,
            group: 0,
            running: 0,
            failed: false,
            clock: PlanClock::start(now, limits.judging_time),
            given,
            shown: Shown::default(),
            context: String::new(),
        }
    }

    /// Takes an outcome that was said at this moment. One that is not awaited (foreign, twice) changes nothing; one that is
    /// overdue counts as failed, whatever it says, because R4b has given its subtask up. A long output is to be kept before
    /// anything more is sent.
    pub fn settle(&mut self, stamp: Timestamp, outcome: &SubTaskOutcome) -> Option<LongOutput> {
        let share = OUTPUTS_CHARS.checked_div(self.steps.len() + self.given.len());
        let limit = share.unwrap_or(OUTPUT_CHARS).min(OUTPUT_CHARS);
        let at = *self.by_id.get(&outcome.subtask_id)?;
        let more = self.steps.get(self.next).map(|next| next.subtask.sequence) == Some(self.group);
        let step = self.steps.get_mut(at).filter(|step| step.progress == Progress::Sent)?;
        let late = self.clock.is_overdue(step.subtask.deadline, stamp);
        self.running = self.running.saturating_sub(1);
        if self.running == 0 && !more {
            self.clock.next_group(stamp);
        }
        if late || outcome.status != OutcomeStatus::Matched {
            step.progress = Progress::Failed;
            self.failed = true;
            return None;
        }
        let output = output_text(&outcome.output);
        let long = output.chars().nth(limit).is_some();
        let path = self
            .folder
            .as_ref()
            .filter(|_| long)
            .map(|folder| format!("{folder}/{}.txt", outcome.subtask_id));
        step.progress = Progress::Matched(HandedOn {
            intent: step.subtask.intent.clone(),
            output: output.clone(),
            file: path.clone(),
        });
        path.map(|path| LongOutput { path, text: output })
    }

    /// Whether a step may start now.
    pub fn is_due(&self) -> bool {
        let Some(step) = self.steps.get(self.next) else {
            return false;
        };
        if step.subtask.sequence > self.group {
            self.running == 0 && !self.failed
        } else {
            self.running < self.parallel
        }
    }

    /// Sends one step, if one may start now. What waited in its group until it was overdue is not sent any more.
    pub fn send(&mut self, now: Timestamp) -> Option<SubTask> {
        while self.is_due() {
            let sequence = self.steps.get(self.next)?.subtask.sequence;
            if sequence > self.group {
                self.group = sequence;
                self.hand_on();
            }
            let step = self.steps.get_mut(self.next)?;
            self.next += 1;
            if self.clock.is_overdue(step.subtask.deadline, now) {
                step.progress = Progress::Failed;
                self.failed = true;
                continue;
            }
            step.progress = Progress::Sent;
            self.running += 1;
            let deadline = step.subtask.deadline.map(|stated| self.clock.moved(stated, now));
            return Some(SubTask {
                deadline,
                ..with_outputs(&step.subtask, &self.context)
            });
        }
        None
    }

    /// What a subtask gave, if it matched.
    pub fn output_of(&self, id: &SubTaskId) -> Option<&HandedOn> {
        match &self.steps.get(*self.by_id.get(id)?)?.progress {
            Progress::Matched(handed_on) => Some(handed_on),
            Progress::Waiting | Progress::Sent | Progress::Failed => None,
        }
    }

    /// Makes the text of everything that the steps before the next one gave.
    fn hand_on(&mut self) {
        let known = self.given.len();
        let earlier = self.steps.iter().take(self.next);
        let done: Vec<&HandedOn> = earlier
            .filter_map(|step| match &step.progress {
                Progress::Matched(handed_on) => Some(handed_on),
                Progress::Waiting | Progress::Sent | Progress::Failed => None,
            })
            .collect();
        let limit = OUTPUTS_CHARS
            .checked_div(known + done.len())
            .unwrap_or(OUTPUT_CHARS)
            .clamp(LEAST_CHARS, OUTPUT_CHARS);
        let longest = |outputs: &[&HandedOn]| outputs.iter().map(|o| o.output.len()).max().unwrap_or_default();
        let all: Vec<&HandedOn> = self.given.iter().chain(done.iter().copied()).collect();
        let mut shown = std::mem::take(&mut self.shown);
        if shown.longest > limit {
            shown = Shown::default();
        }
        let new = all.get(shown.outputs..).unwrap_or_default();
        shown.longest = shown.longest.max(longest(new));
        for (index, handed_on) in all.iter().enumerate().skip(shown.outputs) {
            let intent = one_line(&handed_on.intent, INTENT_CHARS);
            let _ = writeln!(shown.text, "Output of step {} ({intent}):", index + 1);
            shown
                .text
                .push_str(&section("output", &head_tail(&handed_on.output, limit)));
            if let Some(file) = &handed_on.file
                && index < FILES_NAMED
            {
                let _ = writeln!(shown.text, "The whole output is in the file {file}");
            }
        }
        shown.outputs = all.len();
        let mut context = shown.text.clone();
        if let Some(folder) = &self.folder
            && all.len() > FILES_NAMED
        {
            let _ = writeln!(context, "Whole outputs that are cut here are in the folder {folder}");
        }
        self.shown = shown;
        self.context = context;
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

    fn now() -> Timestamp {
        Timestamp::default()
    }

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

    /// A dispatch as a single task drives it: everything that may start is sent at once.
    struct Driven(Dispatch);

    impl Driven {
        fn send_all(&mut self) -> Vec<SubTask> {
            std::iter::from_fn(|| self.0.send(now())).collect()
        }

        fn settle(&mut self, outcome: &SubTaskOutcome) -> Vec<SubTask> {
            let before = self.0.running;
            self.0.settle(now(), outcome);
            if self.0.running == before {
                return Vec::new();
            }
            self.send_all()
        }
    }

    fn at_once(parallel: usize) -> Limits {
        Limits {
            parallel,
            ..Limits::default()
        }
    }

    fn plan(sequences: &[u32], parallel: usize) -> (Driven, Vec<SubTask>) {
        let subtasks = sequences.iter().enumerate().map(|(id, s)| subtask(id, *s)).collect();
        let mut driven = Driven(Dispatch::new(
            now(),
            subtasks,
            at_once(parallel),
            Vec::new(),
            Some("/data/outputs/t".into()),
        ));
        let first = driven.send_all();
        (driven, first)
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
    fn a_long_output_is_kept_whole_in_a_file_that_later_steps_are_told_of() {
        let (mut dispatch, first) = plan(&[1, 2], 8);
        let text = "z".repeat(4_001);
        let done = outcome(&first[0].subtask_id, OutcomeStatus::Matched, &json!(text));
        let long = dispatch.0.settle(now(), &done).unwrap();
        assert_eq!((long.path.as_str(), long.text), ("/data/outputs/t/s0.txt", text));
        let context = dispatch.send_all().remove(0).context;
        assert!(context.contains("[… 1 characters left out …]"), "{context}");
        assert!(context.ends_with("</output>\nThe whole output is in the file /data/outputs/t/s0.txt\n"));
        let (mut dispatch, first) = plan(&[1, 2], 8);
        let done = outcome(&first[0].subtask_id, OutcomeStatus::Matched, &json!("z".repeat(4_000)));
        assert_eq!(dispatch.0.settle(now(), &done), None);
    }

    #[test]
    fn work_of_an_earlier_round_is_handed_to_the_first_group() {
        let given = HandedOn {
            intent: "count".into(),
            output: "87".into(),
            file: None,
        };
        let mut dispatch = Dispatch::new(now(), vec![subtask(0, 1), subtask(1, 2)], at_once(8), vec![given], None);
        let first = dispatch.send(now()).unwrap();
        assert_eq!(
            first.context,
            "given\n\nOutput of step 1 (count):\n<output>\n87\n</output>\n"
        );
        let done = outcome(&first.subtask_id, OutcomeStatus::Matched, &json!("x"));
        assert_eq!(dispatch.settle(now(), &done), None);
        let second = dispatch.send(now()).unwrap();
        assert!(
            second.context.contains("Output of step 2 (do 0):"),
            "{}",
            second.context
        );
        assert_eq!(
            dispatch.output_of(&first.subtask_id).map(|o| o.output.as_str()),
            Some("x")
        );
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

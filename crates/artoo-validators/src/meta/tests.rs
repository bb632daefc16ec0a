//! R4b as a whole: gate, merge and decision, situation by situation.

use artoo_protocol::message::{
    ConfirmationAnswer, ConfirmationRequest, Consent, Criterion, DispatchManifest, FailureClass, Mode, OutcomeStatus,
    OutcomeSummary, Recommendation, ReplanRequest, SubTaskOutcome, TaskAborted, Verdict,
};
use artoo_protocol::model::{ChatMessage, ModelContent, ModelError, ModelReply, ModelRequest, Usage};
use artoo_protocol::tool::{CheckReport, EffectClass};
use artoo_protocol::{
    Actor, Answer, CallId, Envelope, EnvelopeId, Event, Message, Millis, Role, SubTaskId, TaskId, Timestamp,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::samples::{criterion, manifest, outcome, task};
use super::{Effect, MetaValidator};
use crate::evidence::sample;
use OutcomeStatus::{Failed, Matched, NotRun};

/// R4b with its ears and hands in a test's reach; `now` is in milliseconds.
#[derive(Default)]
struct Bench {
    actor: MetaValidator,
    now: i64,
}

impl Bench {
    fn with(manifest: DispatchManifest) -> Self {
        let mut bench = Self::default();
        assert!(bench.tell(manifest).is_empty());
        bench
    }

    fn tell(&mut self, message: impl Into<Message>) -> Vec<Effect> {
        let now = Timestamp::from_millis(self.now);
        let envelope = Envelope {
            id: EnvelopeId::new("e"),
            seq: 1,
            task_id: None,
            timestamp: now,
            from: Role::R4a,
            to: Role::R4b,
            payload: message.into(),
        };
        self.actor.step(now, Event::from(envelope))
    }

    fn answer(&mut self, call: CallId, answer: Answer) -> Vec<Effect> {
        let now = Timestamp::from_millis(self.now);
        self.actor.step(
            now,
            Event::Answer {
                task_id: task(),
                call,
                answer,
            },
        )
    }
}

fn says(value: Value) -> Answer {
    Answer::Model(Ok(ModelReply {
        content: ModelContent::Structured { value },
        model: "m".into(),
        usage: Usage::default(),
        elapsed_ms: Millis(1),
    }))
}

fn checked(passed: bool, faulty: bool) -> Answer {
    Answer::Checked(CheckReport {
        passed,
        evidence: "`/w/sum.txt` has 9 bytes".into(),
        failure_class: None,
        faulty,
    })
}

fn with_check(text: &str) -> Criterion {
    Criterion {
        mode: Mode::Verifiable,
        check: Some(serde_json::from_str(r#"{"kind":"file_exists","path":"sum.txt"}"#).unwrap()),
        ..criterion(text)
    }
}

fn accepted(effects: &[Effect]) -> &OutcomeSummary {
    match effects {
        [Effect::Accept(summary)] => summary,
        other => panic!("expected acceptance: {other:?}"),
    }
}

fn replanned(effects: &[Effect]) -> &ReplanRequest {
    match effects {
        [Effect::Replan(request)] => request,
        other => panic!("expected a replan: {other:?}"),
    }
}

fn merging(effects: &[Effect]) -> (CallId, &ModelRequest) {
    match effects {
        [Effect::Merge { call, request, .. }] => (*call, request),
        other => panic!("expected one model call: {other:?}"),
    }
}

fn checking(effects: &[Effect]) -> CallId {
    match effects {
        [Effect::Check { call, .. }] => *call,
        other => panic!("expected one check: {other:?}"),
    }
}

/// A second plan that names these subtasks of the first as done.
fn carrying(ids: &[&str], sequences: &[u32]) -> DispatchManifest {
    let carried = ids.iter().map(|id| artoo_protocol::message::Carried {
        subtask_id: SubTaskId::new(*id),
        intent: format!("Do {id}"),
        why: "it matched".into(),
    });
    DispatchManifest {
        carried: carried.collect(),
        ..manifest(2, sequences, vec![])
    }
}

#[test]
fn matched_work_of_an_earlier_round_counts_in_the_next_and_only_what_was_seen_to_match() {
    let mut bench = Bench::with(manifest(1, &[1, 2], vec![]));
    assert!(bench.tell(outcome("s1", Matched)).is_empty());
    assert_eq!(replanned(&bench.tell(outcome("s2", Failed))).outcomes.len(), 2);
    // s2 failed and r9 never was: the plan's word does not make them matched.
    assert!(bench.tell(carrying(&["s1", "s1", "s2", "r9"], &[1])).is_empty());
    let effects = bench.tell(outcome("r2s1", Matched));
    let summary = accepted(&effects);
    let ids: Vec<_> = summary
        .outcomes
        .iter()
        .map(|o| (o.subtask_id.as_str(), o.carried_from))
        .collect();
    assert_eq!(ids, [("s1", Some(1)), ("r2s1", None)]);
    assert_eq!(summary.merged_output, json!("output of s1\n\noutput of r2s1"));
}

#[test]
fn what_was_carried_over_once_can_be_carried_over_again_and_is_no_correction_of_its_round() {
    let mut bench = Bench::with(manifest(1, &[1, 2], vec![]));
    let mut twice = outcome("s1", Matched);
    twice.gap_trajectory.push(twice.gap_trajectory[0].clone());
    let _ = bench.tell(twice);
    assert_eq!(replanned(&bench.tell(outcome("s2", Failed))).correction_count, 1);
    let _ = bench.tell(carrying(&["s1"], &[1]));
    let effects = bench.tell(outcome("r2s1", Failed));
    let gap = replanned(&effects);
    assert_eq!((gap.correction_count, gap.outcomes.len()), (0, 2));
    assert_eq!(gap.merged_output, json!("output of s1"));
    let third = DispatchManifest {
        round: 3,
        subtask_ids: vec![SubTaskId::new("r3s1")],
        ..carrying(&["s1"], &[1])
    };
    let mut third = third;
    third.subtasks[0].subtask_id = SubTaskId::new("r3s1");
    let _ = bench.tell(third);
    let effects = bench.tell(outcome("r3s1", Matched));
    assert_eq!(accepted(&effects).outcomes[0].subtask_id.as_str(), "s1");
}

#[test]
fn files_of_every_attempt_are_known_to_checks_of_the_task() {
    let mut bench = Bench::with(manifest(1, &[1], vec![with_check("sum.txt is there")]));
    let mut done = outcome("s1", Matched);
    done.made = vec!["/w/sum.txt".into()];
    let effects = bench.tell(done);
    let [Effect::Check { request, .. }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(request.made, ["/w/sum.txt"]);
}

#[test]
fn nothing_left_to_judge_is_merged_in_code_without_a_model() {
    let mut bench = Bench::with(manifest(1, &[1, 2], vec![]));
    assert!(bench.tell(outcome("s1", Matched)).is_empty());
    bench.now = 1500;
    let effects = bench.tell(outcome("s2", Matched));
    let summary = accepted(&effects);
    assert_eq!(summary.merged_output, json!("output of s1\n\noutput of s2"));
    assert_eq!(summary.elapsed_ms, Millis(1500));
    assert_eq!(summary.outcomes.len(), 2);
    assert!(
        summary.summary.contains("Count the lines of the text files"),
        "{}",
        summary.summary
    );
}

#[test]
fn a_model_merges_and_judges_when_everything_matched() {
    let mut bench = Bench::with(manifest(1, &[1, 1], vec![criterion("every file has a count")]));
    bench.tell(outcome("s2", Matched));
    let asked = bench.tell(outcome("s1", Matched));
    let answer = says(json!({
        "summary": "Two files were counted.", "merged_output": {"a.txt": 5, "b.txt": 7},
        "verdicts": [{"criterion": "every file has a count", "verdict": "pass", "evidence": "both are there"}]
    }));
    let effects = bench.answer(merging(&asked).0, answer);
    let summary = accepted(&effects);
    assert_eq!(summary.merged_output, json!({"a.txt": 5, "b.txt": 7}));
    assert_eq!(summary.summary, "Two files were counted.");
    assert_eq!(summary.task_verdicts[0].verdict, Verdict::Pass);
    let order: Vec<_> = summary.outcomes.iter().map(|o| o.subtask_id.as_str()).collect();
    assert_eq!(order, ["s1", "s2"], "in the plan's order, not in that of arrival");
}

#[test]
fn one_failed_subtask_means_a_replan_before_any_model_call() {
    let mut bench = Bench::with(manifest(1, &[1, 1, 2, 2], vec![criterion("a model would judge this")]));
    bench.tell(outcome("s1", Matched));
    let effects = bench.tell(outcome("s2", Failed));
    let request = replanned(&effects);
    let statuses: Vec<_> = request.outcomes.iter().map(|o| o.status).collect();
    assert_eq!(
        statuses,
        [Matched, Failed, NotRun, NotRun],
        "all outcomes, those not run among them"
    );
    assert_eq!(request.failed_subtasks, [SubTaskId::new("s2")]);
    assert_eq!(request.merged_output, json!("output of s1"), "what matched");
    assert!(request.task_verdicts.is_empty());
    assert_eq!(request.recommendation, Recommendation::Replan);
    assert!(request.gap_summary.contains("the file was not there") && request.gap_summary.contains("not started"));
    assert_eq!(
        request.outcomes[2].success_criteria.len(),
        1,
        "what was not run counts with its criteria"
    );
}

#[test]
fn the_gate_waits_for_the_whole_group() {
    let mut bench = Bench::with(manifest(1, &[1, 1, 2], vec![]));
    assert!(bench.tell(outcome("s1", Failed)).is_empty());
    assert_eq!(replanned(&bench.tell(outcome("s2", Matched))).outcomes.len(), 3);
}

#[test]
fn an_unreadable_merge_verdict_becomes_a_replan() {
    for answer in [
        Answer::Model(Err(ModelError::Unreadable {
            message: "no JSON".into(),
        })),
        Answer::Model(Err(ModelError::Unreachable { message: "down".into() })),
        says(json!("looks fine to me")),
        says(json!({"summary": "All is well.", "merged_output": "42", "verdicts": []})),
        says(json!({"merged_output": "42", "verdicts": [{"criterion": "it adds up", "verdict": "mostly"}]})),
        checked(true, false),
    ] {
        let mut bench = Bench::with(manifest(1, &[1], vec![criterion("it adds up")]));
        let asked = bench.tell(outcome("s1", Matched));
        let effects = bench.answer(merging(&asked).0, answer);
        let request = replanned(&effects);
        assert_eq!(request.task_verdicts.len(), 1);
        assert_eq!(request.task_verdicts[0].verdict, Verdict::Fail);
    }
}

#[test]
fn a_rejected_merge_names_its_failing_criterion_so_that_it_counts() {
    let mut bench = Bench::with(manifest(
        1,
        &[1],
        vec![criterion("it adds up"), criterion("it is short")],
    ));
    let asked = bench.tell(outcome("s1", Matched));
    let answer = says(json!({"summary": "s", "merged_output": "41", "verdicts": [
        {"criterion": "it adds up", "verdict": "fail", "failure_class": "logical", "evidence": "41 is not 42"},
        {"criterion": "it is short", "verdict": "pass"}
    ]}));
    let effects = bench.answer(merging(&asked).0, answer);
    let request = replanned(&effects);
    assert!(request.failed_subtasks.is_empty(), "a rejection");
    let verdicts: Vec<_> = request
        .task_verdicts
        .iter()
        .map(|v| (v.verdict, v.failure_class))
        .collect();
    assert_eq!(
        verdicts,
        [(Verdict::Fail, Some(FailureClass::Logical)), (Verdict::Pass, None)]
    );
    assert!(request.gap_summary.contains("41 is not 42"));
    assert_eq!(
        request.merged_output,
        json!("output of s1"),
        "merged by code, not the rejected words"
    );
}

#[test]
fn a_failed_subtask_without_verdicts_is_still_a_failure() {
    let bare = SubTaskOutcome {
        criteria_verdicts: vec![],
        gap_trajectory: vec![],
        infrastructure: true,
        ..outcome("s2", Failed)
    };
    let mut bench = Bench::with(manifest(1, &[1, 1], vec![]));
    bench.tell(outcome("s1", Matched));
    let effects = bench.tell(bare);
    assert_eq!(replanned(&effects).failed_subtasks, [SubTaskId::new("s2")]);
}

#[test]
fn the_first_outcome_of_a_subtask_counts() {
    let mut bench = Bench::with(manifest(1, &[1, 1], vec![]));
    bench.tell(outcome("s1", Failed));
    bench.tell(outcome("s1", Matched));
    assert_eq!(
        replanned(&bench.tell(outcome("s2", Matched))).failed_subtasks,
        [SubTaskId::new("s1")]
    );
}

#[test]
fn matched_with_a_failing_verdict_is_not_matched() {
    let lying = SubTaskOutcome {
        criteria_verdicts: outcome("s1", Failed).criteria_verdicts,
        ..outcome("s1", Matched)
    };
    let mut bench = Bench::with(manifest(1, &[1], vec![]));
    assert_eq!(replanned(&bench.tell(lying)).failed_subtasks.len(), 1);
}

#[test]
fn machine_checks_on_the_task_run_in_both_cases_and_a_failing_one_spares_the_model() {
    for (status, passes, faulty) in [(Matched, false, false), (Failed, true, false), (Matched, true, true)] {
        let mut bench = Bench::with(manifest(
            1,
            &[1],
            vec![with_check("sum.txt exists"), criterion("it is short")],
        ));
        let checks = bench.tell(outcome("s1", status));
        let effects = bench.answer(checking(&checks), checked(passes, faulty));
        let request = replanned(&effects);
        assert_eq!(request.task_verdicts.len(), 1, "only what could be judged");
        assert_eq!(request.task_verdicts[0].verdict == Verdict::Pass, passes && !faulty);
        assert!(
            request.task_verdicts[0].evidence.contains("/w/sum.txt"),
            "the value found and the path"
        );
        assert_eq!(request.failed_subtasks.is_empty(), status == Matched);
    }
    let mut bench = Bench::with(manifest(1, &[1], vec![with_check("sum.txt exists")]));
    let checks = bench.tell(outcome("s1", Matched));
    let effects = bench.answer(checking(&checks), checked(true, false));
    assert_eq!(accepted(&effects).merged_output, json!("output of s1"));
}

#[test]
fn a_verifiable_task_criterion_fails_without_any_tool_call() {
    let verifiable = Criterion {
        mode: Mode::Verifiable,
        ..criterion("the files were counted")
    };
    let mut bench = Bench::with(manifest(1, &[1], vec![verifiable]));
    let effects = bench.tell(outcome("s1", Matched));
    assert!(replanned(&effects).task_verdicts[0].evidence.contains("no tool ran"));
}

#[test]
fn waiting_for_a_person_is_not_the_tasks_time() {
    let mut bench = Bench::with(manifest(1, &[1], vec![]));
    bench.now = 100;
    bench.tell(ConfirmationRequest {
        request_id: "q".into(),
        task_id: task(),
        subtask_id: SubTaskId::new("s1"),
        tool: "shell".into(),
        effect: EffectClass::Modify,
        action: "sed -i".into(),
        reason: String::new(),
        grant: None,
    });
    bench.now = 60_100;
    bench.tell(ConfirmationAnswer {
        request_id: "q".into(),
        task_id: task(),
        consent: Consent::Yes,
    });
    bench.now = 60_200;
    let effects = bench.tell(outcome("s1", Matched));
    assert_eq!(accepted(&effects).elapsed_ms, Millis(200));
}

#[test]
fn corrections_are_counted_as_what_they_are() {
    let attempts = |n: usize| vec![outcome("s", Matched).gap_trajectory[0].clone(); n];
    let mut bench = Bench::with(manifest(1, &[1, 1, 2], vec![]));
    bench.tell(SubTaskOutcome {
        gap_trajectory: attempts(3),
        ..outcome("s1", Failed)
    });
    let effects = bench.tell(SubTaskOutcome {
        gap_trajectory: attempts(2),
        ..outcome("s2", Matched)
    });
    assert_eq!(replanned(&effects).correction_count, 3);
}

#[test]
fn it_advises_to_stop_when_the_replans_are_used_up_or_nothing_can_be_done() {
    let mut bench = Bench::default();
    for round in 1..=4 {
        bench.tell(manifest(round, &[1], vec![]));
        let id = if round == 1 {
            "s1".to_owned()
        } else {
            format!("r{round}s1")
        };
        let effects = bench.tell(outcome(&id, Failed));
        let expect = if round == 4 {
            Recommendation::Abandon
        } else {
            Recommendation::Replan
        };
        assert_eq!(replanned(&effects).recommendation, expect, "round {round}");
    }
    for (other, expect) in [(true, Recommendation::Abandon), (false, Recommendation::Replan)] {
        let mut bench = Bench::with(manifest(1, &[1, 1], vec![]));
        bench.tell(SubTaskOutcome {
            infeasible: true,
            ..outcome("s1", Failed)
        });
        let effects = bench.tell(SubTaskOutcome {
            infeasible: other,
            ..outcome("s2", Failed)
        });
        assert_eq!(replanned(&effects).recommendation, expect);
    }
}

#[test]
fn a_new_plan_replaces_the_round_and_older_outcomes_are_ignored() {
    let mut bench = Bench::with(manifest(1, &[1, 1], vec![]));
    bench.tell(outcome("s1", Matched));
    assert!(bench.tell(manifest(2, &[1], vec![])).is_empty());
    assert!(bench.tell(outcome("s2", Failed)).is_empty(), "of the older round");
    assert!(
        bench.tell(manifest(1, &[1, 1], vec![])).is_empty(),
        "an older plan comes too late"
    );
    let effects = bench.tell(outcome("r2s1", Matched));
    assert_eq!(accepted(&effects).outcomes.len(), 1);
    assert!(bench.tell(outcome("r2s1", Matched)).is_empty(), "one decision a round");
    assert!(
        bench.tell(manifest(2, &[1], vec![])).is_empty(),
        "the same plan again is not a new round"
    );
    assert!(bench.tell(outcome("r2s1", Matched)).is_empty());
}

#[test]
fn a_plan_without_subtasks_is_a_gap_not_a_success() {
    let mut bench = Bench::default();
    let effects = bench.tell(manifest(1, &[], vec![]));
    assert!(replanned(&effects).gap_summary.contains("no subtasks"));
}

#[test]
fn every_end_forgets_the_task_for_good() {
    let mut bench = Bench::with(manifest(1, &[1], vec![]));
    assert_eq!(bench.actor.open_tasks(), 1);
    bench.tell(TaskAborted {
        task_id: TaskId::new("input_0123abcd"),
        reason: "Ctrl+C".into(),
    });
    assert_eq!(bench.actor.open_tasks(), 0);
    assert!(bench.tell(outcome("s1", Failed)).is_empty());
    assert!(bench.tell(manifest(2, &[1], vec![])).is_empty());
    assert_eq!(bench.actor.open_tasks(), 0);
}

/// A plan whose first subtasks have these deadlines, in milliseconds.
fn with_deadlines(sequences: &[u32], deadlines: &[Option<i64>]) -> DispatchManifest {
    let mut plan = manifest(1, sequences, vec![criterion("a model would judge this")]);
    for (planned, deadline) in plan.subtasks.iter_mut().zip(deadlines) {
        planned.deadline = deadline.map(Timestamp::from_millis);
    }
    plan
}

impl Bench {
    fn wake_at(&mut self, now: i64) -> Vec<Effect> {
        self.now = now;
        self.actor.step(Timestamp::from_millis(now), Event::Wake)
    }

    fn waits_until(&self) -> Option<i64> {
        self.actor.deadline().map(Timestamp::as_millis)
    }
}

#[test]
fn an_outcome_that_is_missing_at_its_deadline_counts_as_failed_and_is_not_waited_for() {
    let mut bench = Bench::with(with_deadlines(&[1, 1, 2], &[Some(5_000), None, None]));
    bench.now = 100;
    assert!(bench.tell(outcome("s2", Matched)).is_empty());
    assert_eq!(bench.waits_until(), Some(65_000), "the deadline, and time to judge");
    assert!(bench.wake_at(64_999).is_empty(), "not a moment earlier");
    let effects = bench.wake_at(65_000);
    let gap = replanned(&effects);
    let statuses: Vec<_> = gap.outcomes.iter().map(|o| o.status).collect();
    assert_eq!(statuses, [Failed, Matched, NotRun]);
    assert_eq!(gap.failed_subtasks, [SubTaskId::new("s1")]);
    let missing = &gap.outcomes[0];
    assert!(
        missing
            .failure_reason
            .as_deref()
            .unwrap()
            .contains("no outcome came by its deadline")
    );
    let verdicts: Vec<_> = missing
        .criteria_verdicts
        .iter()
        .map(|v| (v.criterion.as_str(), v.verdict, v.failure_class))
        .collect();
    assert_eq!(
        verdicts,
        [("part 1 is done", Verdict::Fail, Some(FailureClass::Environmental))],
        "every declared criterion counts"
    );
    assert_eq!(gap.merged_output, json!("output of s2"), "what matched is kept");
    assert_eq!(bench.waits_until(), None);
    assert!(bench.wake_at(99_999).is_empty());
    assert!(bench.tell(outcome("s1", Matched)).is_empty(), "too late, it is decided");
    // The next round is not disturbed by what comes late for the one before.
    assert!(bench.tell(manifest(2, &[1], vec![])).is_empty());
    assert!(bench.tell(outcome("s1", Matched)).is_empty());
    assert_eq!(accepted(&bench.tell(outcome("r2s1", Matched))).outcomes.len(), 1);
}

#[test]
fn what_was_said_in_time_counts_and_what_was_said_too_late_does_not() {
    for (millis, counts) in [(63_999, true), (64_000, false)] {
        let mut bench = Bench::with(with_deadlines(&[1, 2], &[Some(5_000), None]));
        bench.now = millis;
        // The same moment decides for R2, which starts the second group or does not.
        let effects = bench.tell(outcome("s1", Matched));
        if counts {
            assert!(effects.is_empty());
        } else {
            assert_eq!(replanned(&effects).failed_subtasks, [SubTaskId::new("s1")]);
        }
    }
}

#[test]
fn of_two_deadlines_the_first_does_not_end_the_wait_for_the_other() {
    let mut bench = Bench::with(with_deadlines(&[1, 1], &[Some(5_000), Some(9_000)]));
    assert!(bench.wake_at(65_000).is_empty(), "the group is still awaited");
    assert_eq!(bench.waits_until(), Some(69_000));
    assert!(
        bench.tell(outcome("s1", Matched)).is_empty(),
        "a duplicate of what was given up"
    );
    let effects = bench.tell(outcome("s2", Matched));
    assert_eq!(replanned(&effects).failed_subtasks, [SubTaskId::new("s1")]);
}

#[test]
fn no_deadline_passes_while_a_person_is_asked_and_a_group_that_begins_late_has_time_to_say_so() {
    let mut bench = Bench::with(with_deadlines(&[1, 2], &[Some(5_000), Some(6_000)]));
    bench.now = 1_000;
    bench.tell(ConfirmationRequest {
        request_id: "q".into(),
        task_id: task(),
        subtask_id: SubTaskId::new("s1"),
        tool: "shell".into(),
        effect: EffectClass::Modify,
        action: "sed -i".into(),
        reason: String::new(),
        grant: None,
    });
    assert_eq!(bench.waits_until(), None, "a person may take any time");
    assert!(bench.wake_at(500_000).is_empty());
    bench.tell(ConfirmationAnswer {
        request_id: "q".into(),
        task_id: task(),
        consent: Consent::Yes,
    });
    assert_eq!(bench.waits_until(), Some(65_000 + 499_000));
    bench.now = 510_000;
    assert!(bench.tell(outcome("s1", Matched)).is_empty());
    // The second group began after its deadline: R3 says so at once, and that is waited for.
    assert_eq!(bench.waits_until(), Some(510_000 + 60_000));
    let asked = bench.tell(outcome("s2", Matched));
    assert_eq!(bench.waits_until(), None, "judging has no outcome to wait for");
    let _ = merging(&asked);
}

#[test]
fn an_aborted_task_waits_for_nothing_and_its_outcomes_change_nothing() {
    let mut bench = Bench::with(with_deadlines(&[1, 1], &[Some(5_000), Some(5_000)]));
    assert!(bench.tell(outcome("s1", Matched)).is_empty());
    assert_eq!(bench.waits_until(), Some(65_000));
    bench.tell(TaskAborted {
        task_id: task(),
        reason: "Ctrl+C".into(),
    });
    assert_eq!((bench.waits_until(), bench.actor.open_tasks()), (None, 0));
    assert!(bench.wake_at(70_000).is_empty());
    for status in [Matched, Failed, Matched] {
        assert!(bench.tell(outcome("s2", status)).is_empty());
    }
    assert_eq!(bench.actor.open_tasks(), 0);
}

#[test]
fn the_prompt_is_short_and_stands_alone() {
    let template = include_str!("../../prompts/meta_validator.md");
    assert!(template.chars().count() <= 1_000, "{}", template.chars().count());
    assert!(super::Prompts::new(template, "laws").is_ok());
    let verifiable = Criterion {
        mode: Mode::Verifiable,
        ..criterion("every file was really counted")
    };
    let mut bench = Bench::with(manifest(1, &[1, 1], vec![criterion("the sum is named"), verifiable]));
    bench.tell(outcome("s1", Matched));
    let counted = SubTaskOutcome {
        output: json!({"b.txt": 7}),
        tool_calls: vec![sample("shell", "wc -l b.txt", EffectClass::Read)],
        ..outcome("s2", Matched)
    };
    let asked = bench.tell(counted);
    let (_, request) = merging(&asked);
    let [
        ChatMessage::System { content: system },
        ChatMessage::User { content: user },
    ] = request.messages.as_slice()
    else {
        panic!("{request:?}")
    };
    insta::assert_snapshot!("meta_validator_prompt", format!("{system}\n=== user ===\n{user}"));
}

#[derive(Clone, Debug)]
enum Happening {
    Planned(u32),
    Concluded(u32, usize, u8),
    Answered(u8, u8),
    Waited,
    Ended,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        3 => (1_u32..4).prop_map(Happening::Planned),
        12 => (1_u32..4, 0_usize..5, 0_u8..8).prop_map(|(round, at, kind)| Happening::Concluded(round, at, kind)),
        6 => (0_u8..10, 0_u8..6).prop_map(|(call, kind)| Happening::Answered(call, kind)),
        1 => Just(Happening::Waited),
        1 => Just(Happening::Ended),
    ];
    proptest::collection::vec(one, 1..80)
}

fn random_answer(kind: u8) -> Answer {
    let verdicts =
        |verdict: &str| says(json!({"merged_output": "x", "verdicts": [{"criterion": "1", "verdict": verdict}]}));
    match kind {
        0 => Answer::Model(Err(ModelError::Unusable {
            message: "stalled".into(),
        })),
        1 => says(json!([1, null])),
        2 => verdicts("fail"),
        3 => checked(false, false),
        4 => checked(true, false),
        _ => verdicts("pass"),
    }
}

proptest! {
    #[test]
    fn any_history_gives_one_decision_a_round_over_all_its_outcomes(history in happenings()) {
        let mut bench = Bench::default();
        let (mut present, mut decided) = (0, false);
        let id = |round: u32, at: usize| if round == 1 { format!("s{}", at + 1) } else { format!("r{round}s{}", at + 1) };
        for happening in history {
            bench.now += 7;
            let effects = match happening {
                Happening::Planned(round) => {
                    if round > present { (present, decided) = (round, false); }
                    bench.tell(manifest(round, &[1, 1, 2, 3], vec![with_check("checked"), criterion("judged")]))
                }
                Happening::Concluded(round, at, kind) => {
                    let status = if kind == 0 { Failed } else { Matched };
                    bench.tell(outcome(&id(round, at), status))
                }
                Happening::Answered(call, kind) => bench.answer(CallId(u32::from(call)), random_answer(kind)),
                Happening::Waited => bench.tell(ConfirmationAnswer { request_id: "q".into(), task_id: task(), consent: Consent::No }),
                Happening::Ended => bench.tell(TaskAborted { task_id: task(), reason: String::new() }),
            };
            for effect in effects {
                match effect {
                    Effect::Merge { .. } => prop_assert!(!decided),
                    Effect::Accept(summary) => {
                        prop_assert!(!decided);
                        decided = true;
                        prop_assert!(summary.outcomes.iter().all(|o| o.status == Matched));
                        prop_assert_eq!(summary.task_verdicts.len(), 2);
                        prop_assert!(summary.task_verdicts.iter().all(|v| v.verdict == Verdict::Pass));
                    }
                    Effect::Replan(request) => {
                        prop_assert!(!decided);
                        decided = true;
                        prop_assert_eq!(request.outcomes.len(), 4, "one outcome for each subtask, run or not");
                        prop_assert_eq!(request.failed_subtasks.is_empty(), request.outcomes.iter().all(|o| o.status == Matched));
                    }
                    Effect::Check { .. } => {}
                }
            }
        }
    }

    #[test]
    fn with_a_failed_subtask_no_model_is_ever_asked(order in Just(vec![0_usize, 1, 2, 3]).prop_shuffle(), failing in 0_usize..4, answers in proptest::collection::vec((0_u8..6, 0_u8..6), 0..12)) {
        let mut bench = Bench::with(manifest(1, &[1, 1, 1, 1], vec![with_check("checked"), criterion("judged")]));
        let mut replans = 0;
        let mut effects = Vec::new();
        for at in order {
            effects.extend(bench.tell(outcome(&format!("s{}", at + 1), if at == failing { Failed } else { Matched })));
        }
        for (call, kind) in answers {
            effects.extend(bench.answer(CallId(u32::from(call)), random_answer(kind)));
        }
        effects.extend(bench.answer(CallId(1), checked(true, false)));
        for effect in effects {
            match effect {
                Effect::Merge { .. } | Effect::Accept(_) => prop_assert!(false, "a model was asked, or it was accepted"),
                Effect::Replan(_) => replans += 1,
                Effect::Check { .. } => {}
            }
        }
        prop_assert_eq!(replans, 1);
    }
}

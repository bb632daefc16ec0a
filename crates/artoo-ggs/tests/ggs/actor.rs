//! The role: every way to end a task, exactly one FinalResult each, budgets, and tasks that never touch each other.

use artoo_ggs::{Controller, Effect, Params, WORDING_WAIT};
use artoo_protocol::message::{
    BudgetKind, BudgetReached, Cause, ClarificationAnswer, ClarificationRequest, ConfirmationAnswer,
    ConfirmationRequest, Consent, Criterion, CriterionVerdict, DirectAnswer, DispatchManifest, Ending, Message, Mode,
    OutcomeStatus, PartialResult, PlanningFailed, PreviousDirective, Recommendation, ReplanRequest, SubTaskOutcome,
    TaskAborted, UserInput, VerdictSource,
};
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{Actor as _, Command, Envelope, EnvelopeId, Event, Finite, Role, Slug, SubTaskId, TaskId};
use proptest::prelude::*;
use serde_json::json;

use crate::build::{
    Bench, Environmental, Logical, asks, at, broken, directive, end, fail, failed, finals, matched, megrams, outcome,
    partly, pass, provisional, replan, summary, task, with_calls,
};

fn aborted(id: &TaskId) -> TaskAborted {
    TaskAborted {
        task_id: id.clone(),
        reason: "Ctrl+C".into(),
    }
}

fn planning_failed(id: &TaskId, cause: Cause) -> PlanningFailed {
    PlanningFailed {
        task_id: id.clone(),
        slug: Slug::repair("find_it"),
        intent: "find the largest video".into(),
        reason: "the model cannot be reached: no route".into(),
        cause,
    }
}

fn budget(id: &TaskId) -> BudgetReached {
    BudgetReached {
        task_id: id.clone(),
        budget: BudgetKind::Tokens,
        used: Finite::new(1000.0).unwrap(),
        limit: Finite::new(900.0).unwrap(),
    }
}

fn words(id: &TaskId) -> PartialResult {
    PartialResult {
        task_id: id.clone(),
        achieved: "half of the files were listed".into(),
        failed: "the disk was not readable".into(),
        next_steps: vec!["mount the disk".into()],
    }
}

fn give_up(id: &TaskId) -> ReplanRequest {
    ReplanRequest {
        recommendation: Recommendation::Abandon,
        ..replan(
            id,
            0,
            vec![
                with_calls(failed("list", Logical), vec![broken("read_file", "/disk")]),
                matched("first"),
            ],
        )
    }
}

#[test]
fn an_accepted_result_is_met_and_lists_what_was_not_verified() {
    let (mut bench, id) = Bench::open();
    let manifest = DispatchManifest {
        task_id: id.clone(),
        slug: Slug::repair("find_it"),
        intent: "Find the largest video files".into(),
        round: 1,
        subtask_ids: vec![SubTaskId::new("a")],
        subtasks: vec![],
        carried: Vec::new(),
        task_criteria: ["the name is given", "the size is right"]
            .map(|text| Criterion {
                criterion: text.into(),
                mode: Mode::Verifiable,
                check: None,
            })
            .to_vec(),
        started_at: at(0),
        dispatched_at: at(0),
        rules_used: vec![],
    };
    assert!(bench.say(manifest).is_empty());
    let mut message = summary(&id, vec![matched("a")]);
    message.task_verdicts = vec![pass("the name is given")];
    let effects = bench.say(message);
    let result = end(&effects);
    assert_eq!(
        (result.directive, result.cause, result.replans),
        (Ending::Accept, Cause::Met, 0)
    );
    assert_eq!((result.loss.d.get(), result.loss.p.get()), (0.0, 0.0));
    assert_eq!(
        serde_json::to_value(result).unwrap()["loss"]["D"],
        json!(0.0),
        "D = 0 is written as 0"
    );
    assert_eq!(result.prev_directive, PreviousDirective::Init);
    assert_eq!(result.output, json!("a.mkv"));
    assert_eq!(result.unverified, ["the size is right"]);
    assert!(result.unmet.is_empty());
    assert_eq!(megrams(&effects).len(), 1);
    assert_eq!(bench.controller.open_tasks(), 0);
    assert_eq!(bench.controller.deadline(), None);
}

#[test]
fn an_accepted_result_whose_verdicts_deny_it_is_not_called_complete() {
    let (mut bench, id) = Bench::open();
    let effects = bench.say(summary(&id, vec![partly(1, 2, Logical)]));
    let result = end(&effects);
    assert_eq!(
        (result.directive, result.cause),
        (Ending::Success, Cause::WithinThreshold)
    );
    assert_eq!(result.unmet, ["criterion 0"]);
}

#[test]
fn a_success_names_everything_that_is_missing() {
    let (mut bench, id) = Bench::open();
    let not_run = outcome("later", OutcomeStatus::NotRun, vec![]);
    let effects = bench.say(replan(&id, 0, vec![partly(1, 9, Environmental), not_run]));
    let result = end(&effects);
    assert_eq!(
        (result.directive, result.cause),
        (Ending::Success, Cause::WithinThreshold)
    );
    assert_eq!(result.unmet, ["criterion 0", "later"]);
    assert!(
        result.summary.contains("criterion 0") && result.summary.contains("later"),
        "{}",
        result.summary
    );
    assert_eq!(result.output, json!("what matched"));
    assert_eq!(megrams(&effects)[0].f.get(), 0.8);
}

#[test]
fn an_internal_error_ends_the_task_and_teaches_nothing() {
    let failing = |from: Role| {
        let (mut bench, id) = Bench::open();
        let envelope = Envelope {
            id: EnvelopeId::new("e"),
            seq: 1,
            task_id: None,
            timestamp: at(0),
            from,
            to: Role::R7,
            payload: planning_failed(&id, Cause::PlanningFailed).into(),
        };
        bench.controller.step(at(0), Event::from(envelope))
    };
    let broken = failing(Role::Runtime);
    assert_eq!(end(&broken).cause, Cause::PlanningFailed);
    assert!(megrams(&broken).is_empty());
    assert_eq!(megrams(&failing(Role::R2)).len(), 1);
}

#[test]
fn an_abandoned_task_tells_each_failure_once() {
    let (mut bench, id) = Bench::open();
    let mut request = give_up(&id);
    request.gap_summary = "failed: list — the disk is gone".into();
    request.outcomes[0].failure_reason = Some("the disk is gone".into());
    request.task_verdicts = vec![fail("the total is right", Logical)];
    assert!(asks(&bench.say(request.clone())));
    let effects = bench.wake_at(30_000);
    let summary = &end(&effects).summary;
    assert_eq!(summary.matches("the disk is gone").count(), 1, "{summary}");
    assert!(summary.contains("- the total is right"), "{summary}");
    // With nothing else to tell, the gap is told.
    let (mut bench, id) = Bench::open();
    request.task_id = id;
    request.outcomes.clear();
    request.task_verdicts.clear();
    assert!(asks(&bench.say(request)));
    assert!(
        end(&bench.wake_at(30_000))
            .summary
            .contains("failed: list — the disk is gone")
    );
}

#[test]
fn a_rejected_result_never_becomes_a_success() {
    let (mut bench, id) = Bench::open();
    let mut request = replan(&id, 0, vec![matched("a"), matched("b")]);
    request.task_verdicts = vec![fail("the total is right", Logical)];
    // D = 1/3 here, and 0 below where R4b gives no verdict.
    for verdicts in [request.task_verdicts.clone(), vec![]] {
        request.task_verdicts = verdicts;
        let effects = bench.say(request.clone());
        assert!(finals(&effects).is_empty());
        assert!(!directive(&effects).failed_criterion.is_empty());
    }
}

#[test]
fn an_abandoned_task_is_worded_by_the_planner_or_by_code() {
    // In the planner's words.
    let (mut bench, id) = Bench::open();
    let effects = bench.say(give_up(&id));
    assert!(asks(&effects) && finals(&effects).is_empty());
    assert_eq!(bench.controller.deadline(), Some(at(0).plus(WORDING_WAIT)));
    // What comes too late for the decision changes nothing.
    assert!(bench.say(summary(&id, vec![matched("a")])).is_empty());
    assert!(bench.say(give_up(&id)).is_empty());
    let effects = bench.say(words(&id));
    let result = end(&effects);
    assert_eq!(
        (result.directive, result.cause),
        (Ending::Abandon, Cause::ReplansExhausted)
    );
    assert!(
        result.summary.contains("half of the files") && result.summary.contains("mount the disk"),
        "{}",
        result.summary
    );
    assert_eq!(megrams(&effects).last().map(|m| m.f.get()), Some(0.95));

    // By code when no words come: what was achieved, what failed and why, what was tried, what to try next.
    let (mut bench, id) = Bench::open();
    assert!(asks(&bench.say(give_up(&id))));
    let effects = bench.wake_at(20_000);
    let said = &end(&effects).summary;
    for part in [
        "Achieved",
        "first: output of first",
        "Failed",
        "list holds",
        "Tried",
        "read_file `/disk` failed (no such file)",
        "To try next",
    ] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    assert_eq!(bench.controller.open_tasks(), 0);
}

#[test]
fn every_cause_is_reached_and_tells_the_truth() {
    let case = |messages: Vec<Message>| {
        let (mut bench, id) = Bench::open();
        let mut effects = Vec::new();
        for message in messages {
            effects = bench.say(message);
        }
        if asks(&effects) {
            effects = bench.say(words(&id));
        }
        let result = end(&effects).clone();
        assert_eq!(bench.controller.open_tasks(), 0);
        (result.cause, megrams(&effects).len())
    };
    let id = task(1);
    let gap = || Message::from(replan(&id, 0, vec![failed("s", Logical)]));
    let refused = SubTaskOutcome {
        refused: true,
        ..failed("s", Environmental)
    };
    let infeasible = SubTaskOutcome {
        infeasible: true,
        ..failed("s", Logical)
    };
    let cut = SubTaskOutcome {
        infrastructure: true,
        ..failed("s", Environmental)
    };
    let stop = |outcome| ReplanRequest {
        recommendation: Recommendation::Abandon,
        ..replan(&id, 0, vec![outcome])
    };
    let answer = DirectAnswer {
        task_id: id.clone(),
        slug: Slug::repair("hello"),
        intent: "greet".into(),
        answer: "Hello!".into(),
    };

    assert_eq!(case(vec![summary(&id, vec![matched("a")]).into()]), (Cause::Met, 1));
    assert_eq!(
        case(vec![replan(&id, 0, vec![partly(1, 9, Logical)]).into()]),
        (Cause::WithinThreshold, 1)
    );
    assert_eq!(case(vec![answer.into()]), (Cause::Answered, 0));
    assert_eq!(case(vec![budget(&id).into()]), (Cause::Budget, 0));
    assert_eq!(
        case(vec![replan(&id, 300_000, vec![failed("s", Logical)]).into()]),
        (Cause::Budget, 1)
    );
    assert_eq!(case(vec![gap(), gap(), gap(), gap()]), (Cause::Resources, 1));
    assert_eq!(
        case(vec![stop(failed("s", Logical)).into()]),
        (Cause::ReplansExhausted, 1)
    );
    assert_eq!(case(vec![stop(infeasible).into()]), (Cause::Infeasible, 1));
    assert_eq!(
        case(vec![stop(cut).into()]),
        (Cause::ReplansExhausted, 0),
        "an outage teaches nothing"
    );
    assert_eq!(case(vec![replan(&id, 0, vec![refused]).into()]), (Cause::Refused, 0));
    let unjudged = CriterionVerdict {
        source: VerdictSource::NoJudge,
        ..fail("s holds", Environmental)
    };
    let of_subtask = outcome("s", OutcomeStatus::Failed, vec![unjudged.clone()]);
    let of_task = ReplanRequest {
        task_verdicts: vec![unjudged],
        ..replan(&id, 0, vec![matched("s")])
    };
    for without_judge in [replan(&id, 0, vec![of_subtask]), of_task] {
        assert_eq!(
            case(vec![without_judge.into()]),
            (Cause::NoModel, 0),
            "no other plan makes a judge answer"
        );
    }
    assert_eq!(
        case(vec![planning_failed(&id, Cause::NoModel).into()]),
        (Cause::NoModel, 0)
    );
    assert_eq!(
        case(vec![planning_failed(&id, Cause::PlanningFailed).into()]),
        (Cause::PlanningFailed, 1)
    );
    assert_eq!(
        case(vec![planning_failed(&id, Cause::Met).into()]),
        (Cause::PlanningFailed, 1),
        "no success by that way"
    );
    assert_eq!(case(vec![gap(), aborted(&id).into()]), (Cause::Aborted, 0));
    let diverging = |bad| Message::from(replan(&id, 0, vec![partly(bad, 10, Environmental)]));
    assert_eq!(
        case(vec![diverging(4), diverging(7), diverging(10)]),
        (Cause::Divergence, 1)
    );
}

#[test]
fn an_ending_from_outside_keeps_what_was_seen() {
    let (mut bench, id) = Bench::open();
    let said = directive(&bench.say(replan(&id, 1_000, vec![failed("s", Logical), matched("first")]))).clone();
    let effects = bench.say(aborted(&provisional(1)));
    let result = end(&effects);
    assert_eq!(result.task_id, id, "an abort may name the provisional id");
    assert_eq!(
        (result.loss, result.grad_l, result.replans),
        (said.loss, said.grad_l, 1)
    );
    assert_eq!(result.prev_directive, PreviousDirective::BreakSymmetry);
    assert_eq!(result.unmet, ["s holds"]);
    assert_eq!(result.output, json!("what matched"));
    assert!(
        result.summary.contains("Ctrl+C") && result.summary.contains("first"),
        "{}",
        result.summary
    );
    // Nothing is left for the next run, and late messages give nothing.
    assert_eq!(bench.controller.open_tasks(), 0);
    for late in [
        Message::from(aborted(&id)),
        summary(&id, vec![]).into(),
        words(&id).into(),
        budget(&id).into(),
    ] {
        assert!(bench.say(late).is_empty());
    }
    let id = bench.begin(2);
    let effects = bench.say(replan(&id, 0, vec![failed("s", Logical)]));
    assert_eq!(directive(&effects).prev_directive, PreviousDirective::Init);
}

#[test]
fn a_task_may_end_before_it_has_a_name() {
    let mut bench = Bench::new(Params::default());
    let input = UserInput {
        task_id: provisional(7),
        text: "do something".into(),
        history: vec![],
        person_present: false,
        scope: vec![],
    };
    assert!(bench.say(input).is_empty());
    let effects = bench.say(planning_failed(&provisional(7), Cause::NoModel));
    let result = end(&effects);
    assert_eq!(result.task_id, provisional(7));
    assert_eq!(result.loss.d.get(), 1.0, "nothing came");
    assert!(result.summary.contains("no route"), "{}", result.summary);
}

#[test]
fn the_time_budget_is_hard_and_waiting_for_a_person_is_left_out() {
    let (mut bench, id) = Bench::open();
    assert_eq!(bench.controller.deadline(), Some(at(300_000)));
    bench.now = 100_000;
    let ask = ConfirmationRequest {
        request_id: "q".into(),
        task_id: id.clone(),
        subtask_id: SubTaskId::new("s"),
        tool: "shell".into(),
        effect: EffectClass::Destroy,
        action: "rm x".into(),
        reason: "it deletes".into(),
        grant: None,
    };
    assert!(bench.say(ask).is_empty());
    let question = ClarificationRequest {
        task_id: provisional(1),
        round: 1,
        questions: vec!["which?".into()],
    };
    assert!(bench.say(question).is_empty());
    assert_eq!(bench.controller.deadline(), None, "the clock stands still");
    assert!(bench.wake_at(900_000).is_empty());
    let answer = ConfirmationAnswer {
        request_id: "q".into(),
        task_id: id.clone(),
        consent: Consent::Yes,
    };
    assert!(bench.say(answer).is_empty());
    assert_eq!(bench.controller.deadline(), None, "the other question is still open");
    bench.now = 1_000_000;
    let answer = ClarificationAnswer {
        task_id: provisional(1),
        round: 1,
        text: "that".into(),
    };
    assert!(bench.say(answer).is_empty());
    assert_eq!(bench.controller.deadline(), Some(at(1_200_000)));
    assert!(bench.wake_at(1_199_999).is_empty());
    let effects = bench.wake_at(1_200_000);
    let result = end(&effects);
    assert_eq!((result.directive, result.cause), (Ending::Abandon, Cause::Budget));
    assert_eq!(bench.controller.deadline(), None);
}

#[test]
fn being_stopped_while_waiting_for_words_ends_the_task_once() {
    let (mut bench, id) = Bench::open();
    assert!(asks(&bench.say(give_up(&id))));
    let effects = bench.say(aborted(&id));
    assert_eq!(end(&effects).cause, Cause::Aborted);
    assert!(megrams(&effects).is_empty());

    let (mut bench, id) = Bench::open();
    assert!(asks(&bench.say(give_up(&id))));
    let effects = bench.say(budget(&id));
    assert_eq!(end(&effects).cause, Cause::ReplansExhausted, "what was decided stands");
    assert!(bench.wake_at(1_000_000).is_empty());
}

#[test]
fn effects_become_messages_of_their_task() {
    let (mut bench, id) = Bench::open();
    let outcomes = vec![with_calls(failed("s", Logical), vec![broken("read_file", "/a")])];
    for effect in bench.say(replan(&id, 0, outcomes)) {
        match Command::from(effect) {
            Command::Publish { task_id, .. } => assert_eq!(task_id, Some(id.clone())),
            other => panic!("{other:?}"),
        }
    }
}

/// One message of the kinds that matter, for task `n`.
fn any_message() -> impl Strategy<Value = (u32, u8)> {
    (1_u32..4, 0_u8..9)
}

fn message(n: u32, kind: u8) -> Message {
    let id = task(n);
    match kind {
        0 => replan(&id, 1_000, vec![failed("s", Logical)]).into(),
        1 => replan(&id, 2_000, vec![partly(5, 9, Environmental), matched("x")]).into(),
        2 => replan(
            &id,
            3_000,
            vec![with_calls(failed("s", Environmental), vec![broken("read_file", "/a")])],
        )
        .into(),
        3 => give_up(&id).into(),
        4 => summary(&id, vec![matched("a")]).into(),
        5 => aborted(&id).into(),
        6 => words(&id).into(),
        7 => budget(&id).into(),
        _ => planning_failed(&id, Cause::NoModel).into(),
    }
}

proptest! {
    #[test]
    fn interleaved_tasks_never_touch_each_other(script in prop::collection::vec(any_message(), 0..40)) {
        let run = |only: Option<u32>| {
            let mut bench = Bench::new(Params::default());
            for n in 1..4 {
                let _ = bench.begin(n);
            }
            let mut said: Vec<(u32, Vec<Effect>)> = Vec::new();
            for &(n, kind) in &script {
                if only.is_none_or(|only| only == n) {
                    said.push((n, bench.say(message(n, kind))));
                }
            }
            said
        };
        let together = run(None);
        for n in 1..4 {
            let mine: Vec<_> = together.iter().filter(|(of, _)| *of == n).cloned().collect();
            prop_assert_eq!(mine, run(Some(n)));
        }
    }

    #[test]
    fn every_path_ends_in_one_final_result(script in prop::collection::vec(any_message(), 0..40)) {
        let mut bench = Bench::new(Params::default());
        for n in 1..4 {
            let _ = bench.begin(n);
        }
        let mut ended = std::collections::BTreeMap::<TaskId, usize>::new();
        let mut all = Vec::new();
        for (n, kind) in script {
            all.extend(bench.say(message(n, kind)));
        }
        // Whatever is still open ends by its deadline, and so does the waiting for words.
        while let Some(deadline) = bench.controller.deadline() {
            all.extend(bench.wake_at(deadline.as_millis() - at(0).as_millis()));
        }
        for result in finals(&all) {
            *ended.entry(result.task_id.clone()).or_default() += 1;
        }
        prop_assert_eq!(ended.into_iter().collect::<Vec<_>>(), vec![(task(1), 1), (task(2), 1), (task(3), 1)]);
        prop_assert_eq!(bench.controller.open_tasks(), 0);
    }
}

#[test]
fn it_starts_with_nothing() {
    let controller = Controller::default();
    assert_eq!((controller.open_tasks(), controller.deadline()), (0, None));
}

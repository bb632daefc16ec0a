//! Every way in which a task can end, and that each ends in exactly one FinalResult.

use artoo_protocol::message::{Cause, Consent, Ending};
use artoo_protocol::model::{ModelError, ModelReply, ModelRequest};
use artoo_protocol::{MessageKind, Millis, Role};
use artoo_testkit::scripted::form_name;
use artoo_testkit::{NEVER, Person, Reply, Scene, Scripted, Settings, whole};
use serde_json::{Value, json};

use crate::support::{
    REQUEST, Run, diligent, exists, nothing_called, one_file, plan, plan_with, report, run, run_with, say, script,
    shell, step, value, write,
};

/// One subtask with a criterion for every kind of judge, and a task criterion for the last one.
fn judged_everywhere() -> Scripted {
    let criteria = [exists("number.txt"), json!("the number is named")];
    let plan = plan_with(&[json!("the whole is right")], &[step(1, "Count", &criteria)]);
    script()
        .structured("plan", plan)
        .works("Count", vec![write("number.txt", "42"), say("42")])
        .judges(|_| true)
}

/// A mind that leaves one role without an answer, or with this one.
fn except(
    role: Role,
    script: Scripted,
    answer: impl Fn(&ModelRequest) -> Reply<Result<ModelReply, ModelError>> + 'static,
) -> Scene {
    Scene::new(Box::new(move |asker, request| {
        if asker == role {
            answer(request)
        } else {
            Reply::now(script.answer(request))
        }
    }))
}

const JUDGES: [Role; 5] = [Role::R1, Role::R2, Role::R3, Role::R4a, Role::R4b];

#[test]
fn a_task_that_cannot_be_done_is_given_up_with_words_for_what_was_achieved() {
    let script = script()
        .structured("plan", one_file())
        .works(
            "Count",
            vec![report("failed", "", "there is no such folder on this machine")],
        )
        .structured(
            "partial_result",
            json!({"achieved": "nothing yet", "failed": "the folder is missing", "next_steps": ["name the folder"]}),
        );
    let run = run(Scene::scripted(script));
    let end = run.end();
    assert_eq!((end.directive, end.cause), (Ending::Abandon, Cause::Infeasible));
    assert_eq!(run.count(MessageKind::PartialResultRequest), 1);
    assert!(
        end.summary.contains("the folder is missing") && end.summary.contains("name the folder"),
        "{}",
        end.summary
    );
    assert_eq!(
        run.count(MessageKind::CorrectionSignal),
        0,
        "no retry of what cannot be done"
    );
}

#[test]
fn a_wording_that_never_comes_does_not_hold_up_the_end() {
    let script = script()
        .structured("plan", one_file())
        .works("Count", vec![report("failed", "", "no such folder")]);
    let scene = Scene::new(Box::new(move |_, request| match form_name(request) {
        "partial_result" => Reply {
            after: NEVER,
            value: Ok(say("")),
        },
        _ => Reply::now(script.answer(request)),
    }));
    let run = run(scene);
    assert_eq!(run.end().cause, Cause::Infeasible);
    assert_eq!(run.took(), Millis::from_seconds(20));
    assert!(run.end().summary.contains("no such folder"), "{}", run.end().summary);
}

#[test]
fn a_refused_action_stops_the_task_and_is_not_done() {
    for (consent, person) in [(Consent::No, true), (Consent::Nobody, false)] {
        let script = script()
            .structured(
                "plan",
                plan(&[step(
                    1,
                    "Clean up",
                    &[json!({"criterion": "old.txt is gone", "check": {"kind": "file_absent", "path": "old.txt"}})],
                )]),
            )
            .works(
                "Clean up",
                vec![shell("rm old.txt"), report("failed", "", "I may not delete it.")],
            );
        let mut scene = Scene::scripted(script);
        scene.machine.files.insert("/w/old.txt".into(), "precious".into());
        scene.person = Person::saying(consent);
        let run = run(scene);
        let end = run.end();
        assert_eq!(
            (end.directive, end.cause, end.cause.exit_code()),
            (Ending::Abandon, Cause::Refused, 4),
            "{person}"
        );
        assert!(run.world.surroundings.machine.files.contains_key("/w/old.txt"));
        assert_eq!(run.count(MessageKind::ConfirmationRequest), 1);
        assert_eq!(run.count(MessageKind::CorrectionSignal), 0);
        assert!(
            run.world.surroundings.memory.written.is_empty(),
            "a refusal teaches nothing about the approach"
        );
    }
}

#[test]
fn no_valid_plan_after_two_more_tries_ends_the_task() {
    let run = run(Scene::scripted(script().structured("plan", json!({"subtasks": []}))));
    let end = run.end();
    assert_eq!(
        (end.directive, end.cause, end.cause.exit_code()),
        (Ending::Abandon, Cause::PlanningFailed, 1)
    );
    assert_eq!(run.askers(), [Role::R1, Role::R2, Role::R2, Role::R2]);
    assert!(run.prompts(Role::R2)[2].contains("no_subtasks"), "the reasons are told");
}

#[test]
fn criteria_that_restate_the_intent_and_tools_that_are_missing_are_sent_back() {
    let mut bad = step(1, "Count the Rust files", &[json!("Count the Rust files.")]);
    bad["tools"] = json!(["spotlight"]);
    let script = script()
        .in_turn("plan", vec![plan(&[bad]), one_file()])
        .works("Count", vec![write("number.txt", "42"), say("42")]);
    let run = run(Scene::scripted(script));
    assert_eq!(run.end().cause, Cause::Met);
    let again = run.prompts(Role::R2)[1];
    assert!(
        again.contains("restated_intent") && again.contains("spotlight") && again.contains("read_file"),
        "{again}"
    );
}

#[test]
fn without_a_model_the_task_ends_and_says_so() {
    for role in JUDGES {
        let scene = except(role, judged_everywhere(), |_| {
            Reply::now(Err(ModelError::Unreachable {
                message: "connection refused".into(),
            }))
        });
        let run = run(scene);
        let end = run.end();
        assert_eq!(end.directive, Ending::Abandon, "{role}");
        let told = if role == Role::R4b {
            &run.gaps()[0].gap_summary
        } else {
            &end.summary
        };
        assert!(told.contains("connection refused"), "{role}: {told}");
        if matches!(role, Role::R1 | Role::R2) {
            assert_eq!((end.cause, end.cause.exit_code()), (Cause::NoModel, 3), "{role}");
        }
    }
}

#[test]
fn when_the_only_model_goes_away_in_mid_task_the_cause_is_told() {
    let script = judged_everywhere();
    let calls = std::cell::Cell::new(0);
    let scene = Scene::new(Box::new(move |_, request| {
        calls.set(calls.get() + 1);
        let gone = Err(ModelError::Unreachable { message: "gone".into() });
        Reply::now(if calls.get() > 2 { gone } else { script.answer(request) })
    }));
    let run = run(scene);
    assert_eq!(
        (run.end().directive, run.end().cause),
        (Ending::Abandon, Cause::NoModel)
    );
    assert!(
        run.world.surroundings.memory.written.is_empty(),
        "an outage teaches nothing about the approach"
    );
}

#[test]
fn rubbish_from_a_model_never_hangs_and_never_passes() {
    let rubbish: [fn() -> ModelReply; 7] = [
        || say("I would rather talk about the weather."),
        || value(json!(null)),
        || value(json!([])),
        || value(json!({"subtasks": 3, "verdicts": {}, "clarify": {}, "slug": 1})),
        || value(json!("all good")),
        || value(json!({"verdicts": [], "merged_output": "42", "summary": "fine"})),
        nothing_called,
    ];
    for role in JUDGES {
        for (at, answer) in rubbish.iter().enumerate() {
            let answer = *answer;
            let run = run(except(role, judged_everywhere(), move |_| Reply::now(Ok(answer()))));
            let end = run.end();
            let harmless = role == Role::R1 && end.cause == Cause::Met;
            assert!(
                harmless || end.directive == Ending::Abandon,
                "{role} {at}: {:?}",
                end.cause
            );
        }
    }
}

#[test]
fn an_error_of_a_model_is_an_ordinary_answer() {
    for role in JUDGES {
        let errors: [fn() -> ModelError; 4] = [
            || ModelError::Unusable {
                message: "finish_reason length".into(),
            },
            || ModelError::Unreadable {
                message: "no JSON".into(),
            },
            || ModelError::Rejected {
                status: 401,
                message: "no key".into(),
            },
            || ModelError::NotUnderstood {
                message: "The offline grammar does not know this sentence.".into(),
            },
        ];
        for error in errors {
            let run = run(except(role, judged_everywhere(), move |_| Reply::now(Err(error()))));
            assert_eq!(run.end().directive, Ending::Abandon, "{role} {:?}", error());
        }
    }
}

#[test]
fn an_unreadable_merge_verdict_becomes_a_replan() {
    let scene = except(Role::R4b, judged_everywhere(), |_| {
        Reply::now(Ok(say("Looks fine to me!")))
    });
    let run = run(scene);
    let gap = run.gaps()[0];
    assert!(gap.failed_subtasks.is_empty() && gap.task_verdicts.len() == 1);
    assert_ne!(run.end().directive, Ending::Accept);
}

#[test]
fn a_model_that_never_answers_is_stopped_by_the_time_budget() {
    for role in JUDGES {
        let run = run(except(role, judged_everywhere(), |_| Reply {
            after: NEVER,
            value: Ok(say("")),
        }));
        let end = run.end();
        assert_eq!(
            (end.directive, end.cause, end.cause.exit_code()),
            (Ending::Abandon, Cause::Budget, 5),
            "{role}"
        );
        assert_eq!(run.took(), Settings::default().params.time_budget_ms, "{role}");
    }
}

#[test]
fn an_outcome_that_is_missing_at_its_deadline_leads_to_another_plan_and_not_to_the_end_of_the_budget() {
    let mut judged = step(
        1,
        "Count",
        &[json!({"criterion": "the count is plausible", "mode": "plausible"})],
    );
    judged["deadline"] = json!(whole::morning().plus(Millis(10_000)).to_string());
    let checked = step(1, "Note the number at once", &[exists("number.txt")]);
    let script = script()
        .in_turn("plan", vec![plan(&[judged]), plan(&[checked])])
        .works("Count", vec![write("number.txt", "42"), say("42")])
        .works("Note", vec![write("noted.txt", "42"), say("42")]);
    let run = run(except(Role::R4a, script, |_| Reply {
        after: NEVER,
        value: Ok(say("")),
    }));
    let gap = run.gaps()[0];
    let reason = gap.outcomes[0].failure_reason.as_deref().unwrap_or_default();
    assert!(reason.contains("no outcome came by its deadline"), "{reason}");
    assert_eq!(run.directives().len(), 1);
    let end = run.end();
    assert_eq!(
        (end.directive, end.cause),
        (Ending::Accept, Cause::Met),
        "{}",
        end.summary
    );
    assert_eq!(run.took(), Millis(70_000), "the deadline, and a minute to judge");
}

#[test]
fn a_tool_that_never_ends_is_stopped_by_the_time_budget() {
    let mut scene = Scene::scripted(judged_everywhere());
    scene.tool_takes = NEVER;
    assert_eq!(run(scene).end().cause, Cause::Budget);
}

#[test]
fn a_budget_of_tokens_ends_the_task() {
    let settings = Settings {
        max_tokens: Some(200),
        ..Settings::default()
    };
    let script = judged_everywhere();
    // 110 for each answer, one a second.
    let run = run_with(
        settings,
        Scene::new(script.into_mind(Millis(1_000))),
        REQUEST,
        |_, _| (),
    );
    let end = run.end();
    assert_eq!((end.directive, end.cause), (Ending::Abandon, Cause::Budget));
    assert!(end.summary.contains("220"), "{}", end.summary);
    assert_eq!(run.took(), Millis(2_000));
    assert_eq!(run.count(MessageKind::ExecutionResult), 0);
}

#[test]
fn what_needs_no_tool_is_answered_at_once() {
    let mut spec: Value = crate::support::task_spec();
    spec["direct_answer"] = json!("A monoid in the category of endofunctors.");
    let direct = || Scene::scripted(Scripted::default().structured("task_spec", spec.clone()));
    let answered = run_with(Settings::default(), direct(), "What is a monad?", |_, _| ());
    let end = answered.end();
    assert_eq!((end.directive, end.cause), (Ending::Accept, Cause::Answered));
    assert_eq!(end.output, json!("A monoid in the category of endofunctors."));
    assert_eq!(answered.askers(), [Role::R1]);

    for live in [
        "What time is it?",
        "How much disk is left?",
        "kill what runs on port 80",
        "do it again",
    ] {
        let script = Scripted::default()
            .structured("task_spec", spec.clone())
            .structured("plan", json!({"subtasks": []}));
        let run: Run = run_with(Settings::default(), Scene::scripted(script), live, |_, _| ());
        assert_eq!(run.count(MessageKind::DirectAnswer), 0, "{live} needs tools");
    }
}

#[test]
fn an_empty_request_ends_too() {
    for text in ["", "  \n"] {
        let run = run_with(
            Settings::default(),
            Scene::scripted(diligent(script())),
            text,
            |_, _| (),
        );
        assert_eq!(run.end().cause, Cause::PlanningFailed);
        assert!(run.askers().is_empty());
    }
}

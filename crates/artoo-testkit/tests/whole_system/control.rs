//! The medium loop: gaps, signals, directives and what they forbid, against the worked numbers.

use artoo_protocol::message::{Cause, Directive, Ending, MacroState, PreviousDirective, Urgency};
use artoo_protocol::{MessageKind, Role};
use artoo_testkit::{Scene, tool_reply};
use serde_json::{Value, json};

use crate::support::{diligent, exists, holds, plan, plan_with, run, say, script, shell, step, write};

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn a_wrong_approach_is_left_and_another_one_succeeds() {
    let plans = vec![
        plan(&[step(
            1,
            "Compute the number by false",
            &[
                json!({"criterion": "it ran", "check": {"kind": "exit_code"}}),
                holds("number.txt", "42"),
            ],
        )]),
        plan(&[step(1, "Write the number straight away", &[holds("number.txt", "42")])]),
    ];
    let script = script()
        .in_turn("plan", plans)
        .works(
            "by false",
            vec![
                shell("false"),
                say("done"),
                shell("false"),
                say("done"),
                shell("false"),
                say("done"),
            ],
        )
        .works(
            "straight away",
            vec![shell("false"), write("number.txt", "42"), say("42")],
        );
    let run = run(Scene::scripted(script));

    let directives = run.directives();
    let [directive] = directives.as_slice() else {
        panic!("{directives:?}")
    };
    let loss = directive.loss;
    assert!(near(loss.d.get(), 1.0) && near(loss.p.get(), 1.0), "{loss:?}");
    assert!(near(loss.omega.get(), 0.2), "one round of three, no time: {loss:?}");
    assert!(near(loss.l.get(), 0.6 + 0.3 * 0.8 + 0.4 * 0.2), "{loss:?}");
    assert!(near(directive.grad_l.get(), 0.0));
    assert_eq!(directive.directive, Directive::BreakSymmetry);
    assert_eq!(
        (directive.prev_directive, directive.urgency),
        (PreviousDirective::Init, Urgency::Neutral)
    );
    assert_eq!(directive.blocked_tools, ["shell:false"]);
    assert!(directive.blocked_targets.is_empty());

    let replanned = run.prompts(Role::R2)[1];
    assert!(
        replanned.contains("shell:false") && replanned.contains("break_symmetry"),
        "{replanned}"
    );
    assert_eq!(
        run.ran().iter().filter(|call| call.contains("false")).count(),
        3,
        "the gate refused the fourth"
    );
    let end = run.end();
    assert_eq!((end.directive, end.cause, end.replans), (Ending::Accept, Cause::Met, 1));
    assert_eq!(end.prev_directive, PreviousDirective::BreakSymmetry);
    let states: Vec<MacroState> = run
        .world
        .surroundings
        .memory
        .written
        .iter()
        .map(|megram| megram.state)
        .collect();
    assert_eq!(
        states,
        [
            MacroState::ChangeApproach,
            MacroState::BreakSymmetry,
            MacroState::Accept
        ]
    );
}

#[test]
fn an_obstacle_of_the_environment_changes_the_path() {
    let shown = json!({"criterion": "the list is shown", "mode": "verifiable", "check": {"kind": "output_matches", "pattern": "one"}});
    let plans = vec![
        plan(&[step(1, "Read the list", std::slice::from_ref(&shown))]),
        plan(&[step(1, "Read the other list", &[shown])]),
    ];
    let read = |path: &str| tool_reply("read_file", json!({ "path": path }));
    let script = script()
        .in_turn("plan", plans)
        .works(
            "the other",
            vec![read("/home/me/missing"), read("/home/me/list"), say("one")],
        )
        .works("Read the list", vec![read("/home/me/missing"), say("It is not there.")]);
    let mut scene = Scene::scripted(script);
    scene.machine.files.insert("/home/me/list".into(), "one".into());
    let run = run(scene);
    let directive = run.directives()[0];
    assert!(near(directive.loss.p.get(), 0.0), "{:?}", directive.loss);
    assert_eq!(directive.directive, Directive::ChangePath);
    assert_eq!(
        directive.blocked_targets,
        ["/home/me/missing"],
        "what R3 wrote is what R7 reads"
    );
    assert!(directive.blocked_tools.is_empty());
    let reads = run.ran().iter().filter(|call| call.contains("missing")).count();
    assert_eq!(reads, 3, "one in each attempt of the first round, none in the second");
    assert_eq!((run.end().cause, run.end().replans), (Cause::Met, 1));
}

#[test]
fn a_rejected_merge_is_never_a_success() {
    let rounds: Vec<Value> = (1..=5)
        .map(|round| {
            let done: Vec<Value> = (0..4)
                .map(|at| json!({"criterion": format!("part {at}"), "check": {"kind": "exit_code"}}))
                .collect();
            plan_with(
                &[json!("the sum is right")],
                &[step(1, &format!("Add up, way {round}"), &done)],
            )
        })
        .collect();
    let script = diligent(script().in_turn("plan", rounds)).judges(|_| false);
    let run = run(Scene::scripted(script));
    for gap in run.gaps() {
        assert!(gap.failed_subtasks.is_empty(), "everything matched");
    }
    let d = run.directives()[0].loss.d.get();
    assert!(near(d, 0.2), "one of five criteria, well within the threshold: {d}");
    let end = run.end();
    assert_eq!(
        (end.directive, end.cause, end.replans),
        (Ending::Abandon, Cause::Resources, 3)
    );
    assert_eq!(end.unmet, ["the sum is right"]);
}

#[test]
fn close_enough_is_a_success_that_names_what_is_missing() {
    let parts: Vec<Value> = (0..4)
        .map(|at| json!({"criterion": format!("part {at}"), "check": {"kind": "exit_code"}}))
        .collect();
    let steps = [
        step(1, "Do the most of it", &parts),
        step(1, "Do the rest", &[exists("rest.txt")]),
    ];
    let run = run(Scene::scripted(diligent(script().structured("plan", plan(&steps)))));
    let end = run.end();
    assert_eq!(
        (end.directive, end.cause, end.replans),
        (Ending::Success, Cause::WithinThreshold, 0)
    );
    assert_eq!(end.unmet, ["rest.txt exists"]);
    assert!(end.summary.contains("rest.txt exists"), "{}", end.summary);
    assert_eq!(end.cause.exit_code(), 0);
}

#[test]
fn one_failed_subtask_of_two_is_a_gap_and_no_model_is_asked_about_it() {
    let steps = [
        step(
            1,
            "This",
            &[json!({"criterion": "it ran", "check": {"kind": "exit_code"}})],
        ),
        step(1, "That", &[exists("that.txt")]),
    ];
    let plans = vec![plan_with(&[json!("both are done")], &steps), json!({"subtasks": []})];
    let script = diligent(script().in_turn("plan", plans)).judges(|_| true);
    let run = run(Scene::scripted(script));
    assert_eq!(run.gaps().len(), 1);
    assert!(!run.askers().contains(&Role::R4b));
    assert_eq!(run.end().directive, Ending::Abandon);
}

/// Plans of which `met` of five criteria will hold, each with files of its own.
fn rounds(met: &[usize]) -> Vec<Value> {
    met.iter()
        .enumerate()
        .map(|(round, met)| {
            let criteria: Vec<Value> = (0..5)
                .map(|at| {
                    let file = if at < *met {
                        "there.txt".to_owned()
                    } else {
                        format!("gone{round}.txt")
                    };
                    let mut criterion = exists(&file);
                    criterion["criterion"] = json!(format!("criterion {at} of round {round}"));
                    criterion
                })
                .collect();
            plan(&[step(1, &format!("Try number {round}"), &criteria)])
        })
        .collect()
}

fn tried(met: &[usize]) -> crate::support::Run {
    let mut scene = Scene::scripted(diligent(script().in_turn("plan", rounds(met))));
    scene.machine.files.insert("/w/there.txt".into(), String::new());
    run(scene)
}

#[test]
fn a_task_that_diverges_is_stopped_before_its_budget() {
    let run = tried(&[3, 1, 0, 5]);
    let end = run.end();
    assert_eq!(
        (end.directive, end.cause, end.replans),
        (Ending::Abandon, Cause::Divergence, 2)
    );
    let losses: Vec<f64> = run.directives().iter().map(|d| d.loss.l.get()).collect();
    assert!(near(losses[0], 0.6 * 0.4 + 0.3 * 0.8 + 0.4 * 0.2), "{losses:?}");
    assert!(near(losses[1], 0.6 * 0.8 + 0.3 * 0.6 + 0.4 * 0.4), "{losses:?}");
    assert!(near(run.directives()[1].grad_l.get(), losses[1] - losses[0]));
    assert_eq!(run.directives()[1].urgency, Urgency::Higher);
    assert!(end.loss.omega.get() < 0.8);
}

#[test]
fn the_fourth_gap_ends_the_task_because_the_resources_are_spent() {
    let run = tried(&[1, 1, 1, 1, 1]);
    assert_eq!(run.count(MessageKind::ReplanRequest), 4);
    let end = run.end();
    assert_eq!(
        (end.directive, end.cause, end.replans),
        (Ending::Abandon, Cause::Resources, 3)
    );
    assert!(near(end.loss.omega.get(), 0.8), "{:?}", end.loss);
    assert_eq!(end.unmet.len(), 4);
    assert!(
        end.summary.contains("criterion 1 of round 3"),
        "it says what failed: {}",
        end.summary
    );
}

#[test]
fn replans_and_corrections_are_counted_as_what_they_are() {
    let run = tried(&[1, 5]);
    assert_eq!(run.end().replans, 1);
    assert_eq!(run.count(MessageKind::CorrectionSignal), 2);
    assert_eq!(run.gaps()[0].correction_count, 2);
    assert_eq!(run.count(MessageKind::PlanDirective), 1);
}

#[test]
fn the_same_plan_again_is_sent_back() {
    let script = diligent(script().structured("plan", rounds(&[1])[0].clone()));
    let run = run(Scene::scripted(script));
    assert_eq!(run.end().cause, Cause::PlanningFailed);
    assert_eq!(run.count(MessageKind::DispatchManifest), 1);
    assert_eq!(
        run.prompts(Role::R2).len(),
        4,
        "one plan, then three tries at another one"
    );
}

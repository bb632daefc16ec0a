//! The person stops the task, at every moment that there is.

use artoo_protocol::message::{Cause, Consent, Ending, TaskAborted};
use artoo_protocol::{Message, MessageKind, Millis, Role, TaskId};
use artoo_testkit::{Person, Scene, Settings, whole};
use serde_json::json;

use crate::support::{REQUEST, holds, plan, plan_with, say, shell, sound, step, task_spec, write};

/// A run through every part: questions, a correction, a confirmation, a rejected plan, a replan and a merge.
fn eventful() -> Scene {
    let mut asking = task_spec();
    asking["clarify"] = json!(["Which files?"]);
    let plans = vec![
        json!({"subtasks": []}),
        plan(&[
            step(1, "Compute by false", &[holds("number.txt", "7")]),
            step(1, "Look", &[json!("it was looked at")]),
        ]),
        plan_with(
            &[json!("the number is right")],
            &[
                step(1, "Clear the way", &[json!("it is clear")]),
                step(2, "Write it down", &[holds("number.txt", "42")]),
            ],
        ),
    ];
    let script = artoo_testkit::Scripted::default()
        .in_turn("task_spec", vec![asking, task_spec()])
        .in_turn("plan", plans)
        .works("by false", vec![shell("false"), say("done")])
        .works("Look", vec![shell("ls"), say("looked")])
        .works("Clear", vec![shell("rm old.txt"), say("cleared")])
        .works(
            "Write",
            vec![
                write("number.txt", "41"),
                say("41"),
                write("number.txt", "42"),
                say("42"),
            ],
        )
        .judges(|_| true);
    let mut scene = Scene::new(script.into_mind(Millis(700)));
    scene.tool_takes = Millis(300);
    scene.check_takes = Millis(50);
    scene.memory.takes = Millis(20);
    scene.machine.files.insert("/w/old.txt".into(), String::new());
    scene.person = Person {
        takes: Millis(4_000),
        clarifications: ["the Rust files".to_owned()].into(),
        ..Person::saying(Consent::Yes)
    };
    scene
}

#[test]
fn nothing_of_an_aborted_task_goes_on_whenever_it_was_aborted() {
    let settings = Settings::default();
    let mut aborted = 0;
    for steps in 0_usize.. {
        let mut world = whole::system(&settings, eventful()).unwrap();
        let input = whole::input(1, REQUEST, true);
        let provisional = input.task_id.clone();
        world.say(Role::User, Millis(0), input);
        let at_rest = (0..steps).any(|_| !world.advance());
        // A front end may know the run by either name.
        let known = whole::said(&world, &provisional).filter_map(|(_, message)| match message {
            Message::TaskSpec(spec) => Some(spec.task_id.clone()),
            _ => None,
        });
        let names: Vec<TaskId> = std::iter::once(provisional.clone()).chain(known).collect();
        let name = names[steps % names.len()].clone();
        let ended = whole::end(&world, &provisional).is_some();
        let before = world.log.len();
        world.say(
            Role::User,
            Millis(0),
            TaskAborted {
                task_id: name,
                reason: "Ctrl+C".into(),
            },
        );
        assert!(world.run(10_000), "no rest after an abort at {steps}");
        sound(&settings, &world);
        assert_eq!(world.open_tasks(), 0, "after an abort at {steps}");
        let end = whole::end(&world, &provisional).expect("a FinalResult");
        if ended {
            assert_eq!(end.cause, Cause::Met, "an abort after the end changes nothing");
        }
        if end.cause == Cause::Aborted {
            assert_eq!((end.directive, end.cause.exit_code()), (Ending::Abandon, 130));
            aborted += 1;
            let at = world
                .log
                .iter()
                .position(|e| e.payload.kind() == MessageKind::TaskAborted)
                .unwrap();
            let late: Vec<_> = world.log[at + 1..]
                .iter()
                .filter(|e| e.from != Role::User && e.payload.kind() != MessageKind::FinalResult)
                .map(|e| e.payload.kind())
                .collect();
            assert!(at >= before && late.is_empty(), "after an abort at {steps}: {late:?}");
            assert!(world.surroundings.memory.written.len() <= 2, "an abort teaches nothing");
        }
        if at_rest {
            break;
        }
    }
    assert!(aborted > 60, "the run has {aborted} moments");
}

#[test]
fn a_plan_that_arrives_after_the_abort_is_not_run() {
    let settings = Settings::default();
    let mut world = whole::system(&settings, eventful()).unwrap();
    let input = whole::input(1, REQUEST, false);
    let task = input.task_id.clone();
    world.say(Role::User, Millis(0), input);
    world.say(
        Role::User,
        Millis(1_000),
        TaskAborted {
            task_id: task.clone(),
            reason: "Ctrl+C".into(),
        },
    );
    assert!(world.run(1_000));
    assert_eq!(world.surroundings.asked.len(), 2, "R2's model was being asked");
    assert!(
        !world
            .log
            .iter()
            .any(|e| e.payload.kind() == MessageKind::DispatchManifest)
    );
    assert_eq!(whole::end(&world, &task).unwrap().cause, Cause::Aborted);
    sound(&settings, &world);
}

#[test]
fn the_eventful_run_really_has_everything() {
    let run = crate::support::run(eventful());
    assert_eq!((run.end().cause, run.end().replans), (Cause::Met, 1));
    for kind in [
        MessageKind::ClarificationRequest,
        MessageKind::ConfirmationRequest,
        MessageKind::CorrectionSignal,
        MessageKind::PlanDirective,
        MessageKind::OutcomeSummary,
        MessageKind::Megram,
    ] {
        assert!(run.count(kind) > 0, "{}", kind.name());
    }
}

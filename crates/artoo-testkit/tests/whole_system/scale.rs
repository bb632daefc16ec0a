//! Many subtasks, many tasks: everything is counted, nothing is mixed up.

use artoo_protocol::message::{Cause, Ending, OutcomeStatus};
use artoo_protocol::{MessageKind, Millis, Role};
use artoo_testkit::{Scene, Settings, whole};
use serde_json::{Value, json};

use crate::support::{REQUEST, diligent, exists, plan, run, script, sound, step};

fn ran() -> Value {
    json!({"criterion": "it ran", "check": {"kind": "exit_code"}})
}

#[test]
fn a_thousand_subtasks_complete_and_every_outcome_counts() {
    let steps: Vec<Value> = (0..1_000)
        .map(|at| step(1 + at / 300, &format!("Do part {at}"), &[ran()]))
        .collect();
    let run = run(Scene::new(
        diligent(script().structured("plan", plan(&steps))).into_mind(Millis(10)),
    ));
    assert_eq!(run.end().cause, Cause::Met);
    assert_eq!(run.summary().outcomes.len(), 1_000);
    assert!(
        run.summary()
            .outcomes
            .iter()
            .all(|outcome| outcome.status == OutcomeStatus::Matched)
    );
    assert_eq!(run.count(MessageKind::SubTask), 1_000);
    assert_eq!(run.count(MessageKind::SubTaskOutcome), 1_000);
    assert_eq!(run.askers().len(), 2 + 2 * 1_000);
}

#[test]
fn one_failure_among_a_thousand_is_found_and_named() {
    let mut steps: Vec<Value> = (0..1_000)
        .map(|at| step(1, &format!("Do part {at}"), &[ran()]))
        .collect();
    steps[777] = step(1, "Do part 777", &[exists("part777.txt")]);
    let run = run(Scene::scripted(diligent(script().structured("plan", plan(&steps)))));
    let end = run.end();
    assert_eq!((end.directive, end.cause), (Ending::Success, Cause::WithinThreshold));
    assert_eq!(end.unmet, ["part777.txt exists"]);
    assert_eq!(run.gaps()[0].outcomes.len(), 1_000);
    assert!((end.loss.d.get() - 0.001).abs() < 1e-12, "{:?}", end.loss);
}

#[test]
fn a_hundred_tasks_at_once_do_not_mix() {
    let settings = Settings::default();
    let steps = [
        step(1, "Do this", &[ran()]),
        step(1, "Do that", &[ran()]),
        step(2, "Do the rest", &[ran()]),
    ];
    let script = diligent(script().structured("plan", plan(&steps)));
    let scene = Scene::new(script.into_mind(Millis(500)));
    let mut world = whole::system(&settings, scene).unwrap().paced(7, Millis(900));
    let tasks: Vec<_> = (1..=100)
        .map(|number| {
            let input = whole::input(number, REQUEST, true);
            let task = input.task_id.clone();
            world.say(Role::User, Millis(u64::from(number) * 13), input);
            task
        })
        .collect();
    assert!(world.run(100_000));
    for task in &tasks {
        let end = whole::end(&world, task).expect("a FinalResult");
        assert_eq!((end.cause, end.task_id.suffix()), (Cause::Met, task.suffix()));
    }
    let ends = world
        .log
        .iter()
        .filter(|e| e.payload.kind() == MessageKind::FinalResult)
        .count();
    assert_eq!(ends, 100);
    assert_eq!(world.open_tasks(), 0);
    sound(&settings, &world);
}

#[test]
fn a_hundred_tasks_of_the_same_name_keep_their_own_state() {
    // Each second one is aborted under way; what it leaves behind must not reach the others.
    let settings = Settings::default();
    let script = diligent(script().structured("plan", plan(&[step(1, "Do this", &[ran()])])));
    let mut world = whole::system(&settings, Scene::new(script.into_mind(Millis(500))))
        .unwrap()
        .paced(3, Millis(400));
    for number in 1..=100_u32 {
        let input = whole::input(number, REQUEST, true);
        let task_id = input.task_id.clone();
        world.say(Role::User, Millis(u64::from(number)), input);
        if number % 2 == 0 {
            let aborted = artoo_protocol::message::TaskAborted {
                task_id,
                reason: "Ctrl+C".into(),
            };
            world.say(Role::User, Millis(u64::from(number) * 17), aborted);
        }
    }
    assert!(world.run(100_000));
    for number in 1..=100_u32 {
        let task = whole::input(number, REQUEST, true).task_id;
        let expect = if number % 2 == 0 { Cause::Aborted } else { Cause::Met };
        assert_eq!(whole::end(&world, &task).unwrap().cause, expect, "{number}");
    }
    assert_eq!(world.open_tasks(), 0);
    sound(&settings, &world);
}

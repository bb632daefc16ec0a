//! What one run learns changes the next one.

use artoo_protocol::message::{Cause, Ending};
use artoo_protocol::{MessageKind, Millis, Role};
use artoo_testkit::{NEVER, Scene, Settings, whole};
use serde_json::json;

use crate::support::{REQUEST, holds, one_file, plan, run, say, script, shell, sound, step, write};

#[test]
fn the_second_run_of_a_failed_task_differs_because_of_memory() {
    let by_false = |way: &str| {
        plan(&[step(
            1,
            &format!("Compute by false, {way}"),
            &[holds("number.txt", "42")],
        )])
    };
    let plans = vec![
        by_false("first"),
        json!({"subtasks": []}),
        json!({"subtasks": []}),
        json!({"subtasks": []}),
        one_file(),
    ];
    let script = script()
        .in_turn("plan", plans)
        .works("by false", vec![shell("false"), say("done")])
        .works("Count", vec![write("number.txt", "42"), say("42")]);
    let settings = Settings::default();
    let mut world = whole::system(&settings, Scene::scripted(script)).unwrap();
    let (first, second) = (whole::input(1, REQUEST, true), whole::input(2, REQUEST, true));
    let (failed, learned) = (first.task_id.clone(), second.task_id.clone());
    world.say(Role::User, Millis(0), first);
    world.say(Role::User, Millis::from_seconds(600), second);
    assert!(world.run(10_000));
    assert_eq!(whole::end(&world, &failed).unwrap().directive, Ending::Abandon);
    assert_eq!(whole::end(&world, &learned).unwrap().cause, Cause::Met);

    let planners: Vec<&str> = world
        .surroundings
        .asked
        .iter()
        .filter(|(role, _)| *role == Role::R2)
        .map(|(_, request)| artoo_testkit::scripted::user_text(request))
        .collect();
    let memory = |prompt: &str| artoo_protocol::prompt::read_section(prompt, "memory").unwrap_or_default();
    assert_eq!(memory(planners[0]), "");
    let known = memory(planners.last().unwrap());
    assert!(known.contains("MUST NOT: use shell on `false`"), "{known}");
    assert!(known.contains("take another way"), "{known}");
    let manifest = world.log.iter().rev().find_map(|envelope| match &envelope.payload {
        artoo_protocol::Message::DispatchManifest(manifest) => Some(manifest),
        _ => None,
    });
    assert!(
        !manifest.unwrap().rules_used.is_empty(),
        "the plan names the memories that shaped it"
    );
    sound(&settings, &world);
}

#[test]
fn a_memory_that_does_not_answer_holds_up_no_plan() {
    for (takes, down, seconds) in [(NEVER, false, 2), (Millis(0), true, 0)] {
        let script = script()
            .structured("plan", one_file())
            .works("Count", vec![write("number.txt", "42"), say("42")]);
        let mut scene = Scene::scripted(script);
        scene.memory.takes = takes;
        scene.memory.down = down;
        let run = run(scene);
        assert_eq!(run.end().cause, Cause::Met);
        let ended = run
            .world
            .log
            .iter()
            .find(|e| e.payload.kind() == MessageKind::FinalResult)
            .unwrap()
            .timestamp;
        assert_eq!(ended.since(whole::morning()), Millis::from_seconds(seconds));
        assert!(
            run.prompts(Role::R2)[0].contains("memory is not available"),
            "{}",
            run.prompts(Role::R2)[0]
        );
    }
}

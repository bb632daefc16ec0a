//! Plans and their dispatch: from one subtask to groups that hand on what they found.

use artoo_protocol::message::{Cause, Ending};
use artoo_protocol::{MessageKind, Millis, Role, Unit01};
use artoo_testkit::Scene;
use serde_json::{Value, json};

use crate::support::{diligent, exists, holds, one_file, plan, run, say, script, shell, step, write};

#[test]
fn a_trivial_task_with_machine_checks_costs_four_model_calls() {
    let script = script()
        .structured("plan", one_file())
        .works("Count", vec![write("number.txt", "42"), say("There are 42 files.")]);
    let run = run(Scene::scripted(script));
    assert_eq!(run.askers(), [Role::R1, Role::R2, Role::R3, Role::R3]);
    let end = run.end();
    assert_eq!((end.directive, end.cause, end.replans), (Ending::Accept, Cause::Met, 0));
    assert_eq!(end.output, json!("There are 42 files."));
    assert!(end.unmet.is_empty() && end.unverified.is_empty());
    assert_eq!((end.loss.d, end.loss.p), (Unit01::ZERO, Unit01::ZERO));
    assert_eq!(run.world.surroundings.machine.files["/w/number.txt"], "42");
    assert_eq!(end.task_id.as_str(), "count_rust_files_00000001");
}

#[test]
fn the_second_group_waits_for_the_first_and_gets_its_output() {
    let steps = [
        step(
            1,
            "Find the files",
            &[json!({"criterion": "a list came", "check": {"kind": "exit_code"}})],
        ),
        step(2, "Note the number", &[holds("number.txt", "42")]),
    ];
    let script = script()
        .structured("plan", plan(&steps))
        .works("Find", vec![shell("ls"), say("There are 42 of them: a.rs, b.rs …")])
        .works("Note", vec![write("number.txt", "42"), say("noted")]);
    let run = run(Scene::scripted(script));
    assert_eq!(run.end().cause, Cause::Met);
    let shown = run.prompts(Role::R3);
    assert!(!shown[0].contains("42 of them"));
    assert!(shown[2].contains("There are 42 of them: a.rs, b.rs …"), "{}", shown[2]);
    assert_eq!(run.end().output, json!("There are 42 of them: a.rs, b.rs …\n\nnoted"));
}

#[test]
fn a_failed_groups_output_is_not_fed_to_the_next_group() {
    let steps = [
        step(1, "Find the files", &[exists("list.txt")]),
        step(2, "Note the number", &[holds("number.txt", "42")]),
        step(3, "Tell the number", &[json!("it is told")]),
    ];
    let script = diligent(script().in_turn("plan", vec![plan(&steps), json!({"subtasks": []})]));
    let run = run(Scene::scripted(script));
    assert_eq!(run.subtasks().len(), 1, "later groups are not started");
    let gap = run.gaps()[0];
    assert_eq!(gap.outcomes.len(), 3);
    assert_eq!(gap.failed_subtasks.len(), 1);
    assert_eq!(run.directives()[0].loss.d, Unit01::ONE, "what was not run counts");
}

#[test]
fn three_subtasks_of_one_group_run_side_by_side() {
    let steps: Vec<Value> = ["a", "b", "c"]
        .iter()
        .map(|name| step(1, &format!("Write {name}"), &[exists(&format!("{name}.txt"))]))
        .collect();
    let script = script()
        .structured("plan", plan(&steps))
        .works("Write a", vec![write("a.txt", "1"), say("a")])
        .works("Write b", vec![write("b.txt", "1"), say("b")])
        .works("Write c", vec![write("c.txt", "1"), say("c")]);
    let run = run(Scene::new(script.into_mind(Millis::from_seconds(1))));
    assert_eq!(run.end().cause, Cause::Met);
    assert_eq!(run.took(), Millis::from_seconds(4), "R1, R2, and two rounds of R3");
    assert_eq!(run.end().output, json!("a\n\nb\n\nc"));
}

#[test]
fn sequences_of_zero_and_below_never_hang() {
    let mut steps: Vec<Value> = (0..4)
        .map(|at| {
            step(
                1,
                &format!("Do {at}"),
                &[json!({"criterion": "done", "check": {"kind": "exit_code"}})],
            )
        })
        .collect();
    for (at, sequence) in [json!(0), json!(-7), json!(null), json!("x")].into_iter().enumerate() {
        steps[at]["sequence"] = sequence;
        steps[at]["id"] = json!("one id for all");
    }
    let run = run(Scene::scripted(diligent(script().structured("plan", plan(&steps)))));
    assert_eq!(run.end().cause, Cause::Met);
    assert_eq!(run.subtasks().len(), 4);
}

#[test]
fn a_first_attempt_that_misses_a_criterion_is_corrected() {
    let script = script().structured("plan", one_file()).works(
        "Count",
        vec![
            write("number.txt", "41"),
            say("41"),
            write("number.txt", "42"),
            say("42"),
        ],
    );
    let run = run(Scene::scripted(script));
    assert_eq!((run.end().cause, run.end().replans), (Cause::Met, 0));
    assert_eq!(run.count(MessageKind::CorrectionSignal), 1);
    assert_eq!(run.summary().outcomes[0].gap_trajectory.len(), 2);
    assert_eq!(run.summary().outcomes[0].gap_trajectory[0].score, Unit01::clamped(0.5));
    let second = run.prompts(Role::R3)[2];
    assert!(
        second.contains("number.txt holds 42"),
        "the failed criterion word for word: {second}"
    );
    assert_eq!(run.end().output, json!("42"));
}

#[test]
fn a_claim_of_success_over_an_interrupted_call_is_retried() {
    let criterion = json!({"criterion": "the backup is complete", "mode": "verifiable"});
    let script = script()
        .structured("plan", plan(&[step(1, "Back up", &[criterion])]))
        .works(
            "Back up",
            vec![
                shell("sleep 40"),
                say("The backup is complete."),
                shell("ls"),
                say("It is there."),
            ],
        )
        .judges(|_| true);
    let run = run(Scene::scripted(script));
    assert_eq!(
        run.count(MessageKind::CorrectionSignal),
        1,
        "a contradiction is not believed"
    );
    assert_eq!(run.end().cause, Cause::Met);
}

#[test]
fn a_verifiable_criterion_is_not_met_by_words_alone() {
    let criterion = json!({"criterion": "the files were counted", "mode": "verifiable"});
    let plans = vec![plan(&[step(1, "Count", &[criterion])]), json!({"subtasks": []})];
    let script = script()
        .in_turn("plan", plans)
        .works("Count", vec![say("I counted them: 42.")])
        .judges(|_| true);
    let run = run(Scene::scripted(script));
    assert_eq!(run.end().directive, Ending::Abandon);
    assert!(!run.askers().contains(&Role::R4a), "no model is asked about it");
}

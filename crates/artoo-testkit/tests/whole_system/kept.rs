//! Criteria of the task that failed, from plan to plan: no plan gets rid of one by not stating it.

use artoo_protocol::MessageKind;
use artoo_protocol::message::{Cause, Ending, Message};
use artoo_testkit::Scene;
use serde_json::{Value, json};

use crate::support::{Run, exists, holds, plan, plan_with, run, say, script, step, write};

const KEPT: &str = "number.txt holds 42 (kept from round 1)";

/// A wrong number first; then plans that ask for something easier, of which only `mends` writes the right number.
fn easier_plans(mends: bool) -> Run {
    let easier = |name: &str| {
        plan(&[step(
            1,
            &format!("Do it by way of {name}"),
            &[exists(&format!("{name}.txt"))],
        )])
    };
    let plans = vec![
        plan_with(
            &[holds("number.txt", "42")],
            &[step(1, "Count the files", &[exists("number.txt")])],
        ),
        easier("a hand count"),
        easier("an old list"),
        easier("guessing well"),
    ];
    let right = if mends { "42" } else { "40" };
    let script = script()
        .in_turn("plan", plans)
        .works("Count", vec![write("number.txt", "41"), say("41")])
        .works("hand", vec![write("a hand count.txt", "1"), say("done")])
        .works(
            "old",
            vec![write("number.txt", right), write("an old list.txt", "1"), say("done")],
        )
        .works("guess", vec![write("guessing well.txt", "1"), say("done")]);
    run(Scene::scripted(script))
}

fn task_criteria(run: &Run) -> Vec<Vec<&str>> {
    let manifests = run.messages().filter_map(|message| match message {
        Message::DispatchManifest(manifest) => Some(manifest),
        _ => None,
    });
    manifests
        .map(|manifest| manifest.task_criteria.iter().map(|c| c.criterion.as_str()).collect())
        .collect()
}

#[test]
fn a_plan_that_does_not_state_a_failed_criterion_is_measured_by_it_all_the_same() {
    let run = easier_plans(true);
    assert_eq!(
        task_criteria(&run),
        [vec!["number.txt holds 42"], vec![KEPT], vec![KEPT]]
    );
    let end = run.end();
    assert_eq!((end.directive, end.cause, end.replans), (Ending::Accept, Cause::Met, 2));
    assert_eq!(run.world.surroundings.machine.files["/w/number.txt"], "42");
    assert!(
        end.honesty.proven.iter().any(|grounds| grounds.criterion == KEPT),
        "{end:?}"
    );
    assert!(
        run.gaps()[1].gap_summary.contains(KEPT),
        "{}",
        run.gaps()[1].gap_summary
    );
    assert!(run.directives()[1].loss.d.get() > 0.0, "it counts");
    let shown = run.prompts(artoo_protocol::Role::R2);
    let told = "state the same words with a right one:\n- number.txt holds 42 ({\"kind\":\"file_contains\"";
    assert!(
        !shown[0].contains("they are kept") && shown[1].contains(told),
        "{}",
        shown[1]
    );
}

#[test]
fn a_criterion_that_no_plan_ever_meets_ends_in_the_truth() {
    let run = easier_plans(false);
    let end = run.end();
    assert_eq!(end.directive, Ending::Abandon);
    assert_eq!(end.unmet, [KEPT]);
    assert!(end.summary.contains(KEPT), "{}", end.summary);
    assert_eq!(run.count(MessageKind::OutcomeSummary), 0);
}

#[test]
fn what_a_model_denied_and_no_plan_asks_again_is_named() {
    let judged = json!({"criterion": "the number is right", "mode": "verifiable", "check": null});
    let script = script()
        .in_turn(
            "plan",
            vec![
                plan_with(&[judged], &[step(1, "Count the files", &[exists("number.txt")])]),
                plan(&[step(1, "List them by hand", &[exists("list.txt")])]),
            ],
        )
        .works("Count", vec![write("number.txt", "41"), say("41")])
        .works("List", vec![write("list.txt", "a.rs"), say("one")])
        .judges(|_| false);
    let run = run(Scene::scripted(script));
    let end = run.end();
    assert_eq!((end.directive, end.cause), (Ending::Accept, Cause::Met));
    assert_eq!(
        end.unverified,
        ["the number is right (asked in round 1, not met then, no longer asked)"]
    );
    let grounds: Vec<Value> = end.honesty.unverified.iter().map(|g| json!(g.criterion)).collect();
    assert_eq!(grounds, [json!("the number is right")]);
}

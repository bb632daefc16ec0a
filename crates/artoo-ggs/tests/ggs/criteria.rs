//! What an ending names beyond its last round: criteria that were dropped, and those of a plan that is under way.

use artoo_ggs::Effect;
use artoo_protocol::message::{
    Cause, Check, Criterion, CriterionVerdict, DispatchManifest, Ending, FinalResult, Grounds, Message, Mode,
    PlannedSubTask, TaskAborted, Verdict, VerdictSource,
};
use artoo_protocol::{Slug, SubTaskId, TaskId};
use proptest::prelude::*;

use crate::build::{Bench, Logical, at, directive, end, fail, failed, matched, pass, replan, summary};

fn asked(words: &str, path: Option<&str>) -> Criterion {
    Criterion {
        criterion: words.into(),
        mode: Mode::Verifiable,
        check: path.map(|path| Check::FileExists { path: path.into() }),
    }
}

fn plan(id: &TaskId, round: u32, of_task: &[Criterion], of_step: &[Criterion]) -> DispatchManifest {
    let step = SubTaskId::new(format!("s{round}"));
    DispatchManifest {
        task_id: id.clone(),
        slug: Slug::repair("find_it"),
        intent: "Find the largest video files".into(),
        round,
        subtask_ids: vec![step.clone()],
        subtasks: vec![PlannedSubTask {
            subtask_id: step,
            sequence: 1,
            intent: "look".into(),
            success_criteria: of_step.to_vec(),
            deadline: None,
        }],
        carried: Vec::new(),
        task_criteria: of_task.to_vec(),
        started_at: at(0),
        dispatched_at: at(0),
        rules_used: vec![],
    }
}

fn by(source: VerdictSource, verdict: CriterionVerdict) -> CriterionVerdict {
    CriterionVerdict { source, ..verdict }
}

/// A rejection: everything matched, and these verdicts on the task.
fn rejected(bench: &mut Bench, id: &TaskId, verdicts: &[CriterionVerdict]) {
    let mut gap = replan(id, 0, vec![matched("first")]);
    gap.task_verdicts = verdicts.to_vec();
    let effects = bench.say(gap);
    assert_eq!(
        directive(&effects).task_verdicts,
        verdicts,
        "the planner keeps what a check denied"
    );
}

fn accepted(bench: &mut Bench, id: &TaskId, verdicts: Vec<CriterionVerdict>) -> FinalResult {
    let mut message = summary(id, vec![matched("second")]);
    message.task_verdicts = verdicts;
    end(&bench.say(message)).clone()
}

fn words(list: &[Grounds]) -> Vec<&str> {
    list.iter().map(|grounds| grounds.criterion.as_str()).collect()
}

const X: &str = "the number is right";

#[test]
fn what_failed_and_is_asked_no_more_is_named_as_such() {
    let check = Some("a.md");
    for (name, first, source, of_task, of_step, expect) in [
        (
            "judged, dropped",
            None,
            VerdictSource::Model,
            None,
            None,
            "asked in round 1, not met then, no longer asked",
        ),
        (
            "judged, restated",
            None,
            VerdictSource::Model,
            Some(asked("The number  is right.", None)),
            None,
            "",
        ),
        (
            "judged, restated in a step",
            None,
            VerdictSource::Model,
            None,
            Some(asked(X, check)),
            "",
        ),
        (
            "checked, dropped",
            check,
            VerdictSource::Check,
            None,
            None,
            "asked in round 1, not met then, no longer asked",
        ),
        (
            "checked, kept",
            check,
            VerdictSource::Check,
            Some(asked("the number is right (kept from round 1)", check)),
            None,
            "",
        ),
        (
            "checked, replaced",
            check,
            VerdictSource::Check,
            Some(asked(X, Some("b.md"))),
            None,
            "its check failed in round 1; another check took its place",
        ),
        (
            "checked, left to a model",
            check,
            VerdictSource::Check,
            Some(asked(X, None)),
            None,
            "asked in round 1, not met then, no longer asked",
        ),
        (
            "not run, mended",
            check,
            VerdictSource::NoCheck,
            Some(asked(X, Some("b.md"))),
            None,
            "",
        ),
        (
            "not run, dropped",
            check,
            VerdictSource::NoCheck,
            None,
            None,
            "asked in round 1, where its check could not be run; no longer asked",
        ),
    ] {
        let (mut bench, id) = Bench::open();
        assert!(bench.say(plan(&id, 1, &[asked(X, first)], &[])).is_empty());
        rejected(&mut bench, &id, &[by(source, fail(X, Logical))]);
        let of_task: Vec<Criterion> = of_task.into_iter().collect();
        assert!(
            bench
                .say(plan(&id, 2, &of_task, &of_step.into_iter().collect::<Vec<_>>()))
                .is_empty()
        );
        let result = accepted(&mut bench, &id, of_task.iter().map(|c| pass(&c.criterion)).collect());
        assert_eq!((result.directive, result.cause), (Ending::Accept, Cause::Met), "{name}");
        let named = if expect.is_empty() {
            vec![]
        } else {
            vec![format!("{X} ({expect})")]
        };
        assert_eq!(result.unverified, named, "{name}");
        let open: Vec<&Grounds> = result.honesty.unverified.iter().collect();
        assert_eq!(open.len(), named.len(), "{name}: {open:?}");
        assert!(
            open.iter()
                .all(|grounds| grounds.criterion == X && grounds.evidence == expect),
            "{open:?}"
        );
    }
}

#[test]
fn what_held_later_is_not_named_when_it_is_dropped_then() {
    let (mut bench, id) = Bench::open();
    assert!(bench.say(plan(&id, 1, &[asked(X, None)], &[])).is_empty());
    rejected(&mut bench, &id, &[by(VerdictSource::Model, fail(X, Logical))]);
    assert!(
        bench
            .say(plan(&id, 2, &[asked(X, None), asked("y", None)], &[]))
            .is_empty()
    );
    rejected(
        &mut bench,
        &id,
        &[
            by(VerdictSource::Model, pass(X)),
            by(VerdictSource::Model, fail("y", Logical)),
        ],
    );
    assert!(bench.say(plan(&id, 3, &[], &[])).is_empty());
    let result = accepted(&mut bench, &id, vec![]);
    assert_eq!(
        result.unverified,
        ["y (asked in round 2, not met then, no longer asked)"]
    );
}

#[test]
fn an_ending_from_outside_speaks_of_the_plan_that_is_under_way() {
    let (mut bench, id) = Bench::open();
    let first = [
        asked(X, Some("a.md")),
        asked("z", Some("z.md")),
        asked("v", Some("v.md")),
    ];
    assert!(
        bench
            .say(plan(&id, 1, &first, &[asked("first holds", None)]))
            .is_empty()
    );
    rejected(&mut bench, &id, &[fail(X, Logical), pass("z"), pass("v")]);
    assert!(
        bench
            .say(plan(
                &id,
                2,
                &[asked("w", Some("w.md")), asked("v", Some("v.md"))],
                &[asked("u", None)]
            ))
            .is_empty()
    );
    let abort = TaskAborted {
        task_id: id.clone(),
        reason: "Ctrl+C".into(),
    };
    let result = end(&bench.say(abort)).clone();
    assert_eq!((result.directive, result.cause), (Ending::Abandon, Cause::Aborted));
    assert_eq!(result.unmet, [X], "the last round's");
    assert_eq!(result.unverified, ["w", "v", "u"]);
    assert_eq!(
        words(&result.honesty.proven),
        ["first holds", "z"],
        "v is worked on again"
    );
    assert_eq!(words(&result.honesty.unverified), ["w", "v", "u"]);
    assert!(
        result
            .honesty
            .unverified
            .iter()
            .all(|grounds| grounds.evidence == "the task ended before plan 2 was judged")
    );
    assert_eq!(result.honesty.unverified[2].subtask_id, Some(SubTaskId::new("s2")));
}

#[test]
fn an_ending_from_outside_between_two_plans_keeps_the_last_round_as_it_was() {
    let (mut bench, id) = Bench::open();
    assert!(
        bench
            .say(plan(&id, 1, &[asked(X, Some("a.md"))], &[asked("first holds", None)]))
            .is_empty()
    );
    rejected(&mut bench, &id, &[fail(X, Logical)]);
    let result = end(&bench.wake_at(300_000)).clone();
    assert_eq!(result.cause, Cause::Budget);
    assert_eq!((result.unmet, result.unverified), (vec![X.to_owned()], vec![]));
    assert_eq!(words(&result.honesty.proven), ["first holds"]);
    let (mut bench, id) = Bench::open();
    directive(&bench.say(replan(&id, 0, vec![failed("s", Logical)])));
    let result = end(&bench.wake_at(300_000)).clone();
    assert!(
        result.honesty.is_empty() && result.unverified.is_empty(),
        "no plan was heard of"
    );
}

/// A criterion by its words and its check.
type Pick = (u8, u8);

fn pick((words, path): Pick) -> Criterion {
    let path = (path > 0).then(|| format!("{path}.md"));
    asked(&format!("w{words}"), path.as_deref())
}

fn asked_bit((words, path): Pick) -> u8 {
    if path > 0 { path } else { 4 + words }
}

/// The task criteria of a plan, each of other words, and which of them fail.
fn rounds() -> impl Strategy<Value = Vec<(Vec<Pick>, u8)>> {
    let criteria = proptest::collection::btree_map(0_u8..3, 0_u8..3, 0..3);
    let plan = (criteria, any::<u8>()).prop_map(|(criteria, fails)| (criteria.into_iter().collect(), fails));
    proptest::collection::vec(plan, 1..4)
}

proptest! {
    /// Whatever the plans ask and whatever the checks say: a result that is called met leaves no task criterion that a check denied in an
    /// earlier round neither passed by that check nor named.
    #[test]
    fn nothing_that_failed_by_its_check_is_lost_from_a_met_result(rounds in rounds(), last in rounds()) {
        let (mut bench, id) = Bench::open();
        let mut open: Vec<Pick> = Vec::new();
        for (round, (criteria, fails)) in (1..).zip(&rounds) {
            let asked: Vec<Criterion> = criteria.iter().copied().map(pick).collect();
            prop_assert!(bench.say(plan(&id, round, &asked, &[])).is_empty());
            // The same check says the same of the same world.
            let failing = |at: usize| fails >> asked_bit(criteria[at]) & 1 == 1;
            let source = |c: &Criterion| if c.check.is_some() { VerdictSource::Check } else { VerdictSource::Model };
            let verdicts = asked.iter().enumerate().map(|(at, c)| {
                by(source(c), if failing(at) { fail(&c.criterion, Logical) } else { pass(&c.criterion) })
            });
            let mut gap = replan(&id, 0, vec![matched("s")]);
            gap.task_verdicts = verdicts.collect();
            if gap.task_verdicts.iter().all(|v| v.verdict == Verdict::Pass) {
                gap.task_verdicts.push(fail("something else", Logical));
            }
            for (at, criterion) in criteria.iter().enumerate() {
                let same = |known: &Pick| if criterion.1 > 0 { known.1 == criterion.1 } else { known == criterion };
                if failing(at) && !open.contains(criterion) {
                    open.push(*criterion);
                } else if !failing(at) && !criteria.iter().enumerate().any(|(at, c)| failing(at) && same(c)) {
                    open.retain(|known| !same(known));
                }
            }
            let effects = bench.say(Message::from(gap));
            if !effects.iter().any(|effect| matches!(effect, Effect::Direct(_))) {
                return Ok(());
            }
        }
        let criteria = &last[0].0;
        let asked: Vec<Criterion> = criteria.iter().copied().map(pick).collect();
        prop_assert!(bench.say(plan(&id, 9, &asked, &[])).is_empty());
        let result = accepted(&mut bench, &id, asked.iter().map(|c| pass(&c.criterion)).collect());
        prop_assert_eq!(result.cause, Cause::Met);
        for (words, path) in open.into_iter().filter(|(_, path)| *path > 0) {
            let passed = criteria.iter().any(|(_, stated)| *stated == path);
            let named = result.unverified.iter().any(|line| line.starts_with(&format!("w{words} (")));
            prop_assert!(passed || named, "w{} {}: {:?}", words, path, result);
        }
    }
}

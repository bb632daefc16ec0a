//! Counting criteria: what counts, with which weight, and in which class.

use artoo_ggs::Tally;
use artoo_ggs::honesty::honesty;
use artoo_ggs::signals::Ground;
use artoo_protocol::message::{
    CriterionVerdict, FailureClass, FailureMix, Grounds, Mode, OutcomeStatus, SubTaskOutcome, VerdictSource,
};
use proptest::prelude::*;

use crate::build::{Environmental, Logical, attempts, criterion, fail, failed, matched, outcome, partly, pass};

fn d(outcomes: &[SubTaskOutcome]) -> f64 {
    Tally::of(outcomes, &[]).distance().get()
}

fn p(outcomes: &[SubTaskOutcome]) -> f64 {
    Tally::of(outcomes, &[]).implausibility().get()
}

fn plausible(verdict: CriterionVerdict) -> CriterionVerdict {
    CriterionVerdict {
        mode: Mode::Plausible,
        ..verdict
    }
}

#[test]
fn no_outcome_at_all_is_the_greatest_distance() {
    assert_eq!(d(&[]), 1.0);
    assert_eq!(p(&[]), 0.0);
    let verdicts = [pass("the total is right")];
    assert_eq!(Tally::of(&[], &verdicts).distance().get(), 1.0);
}

#[test]
fn every_criterion_counts_whatever_its_subtask_did() {
    // 1 of 4 failed, 1 not run, 1 matched: (1 + 2) / (4 + 2 + 1).
    let not_run = SubTaskOutcome {
        success_criteria: vec![criterion("a", Mode::Plausible), criterion("b", Mode::Verifiable)],
        ..outcome("later", OutcomeStatus::NotRun, vec![])
    };
    let outcomes = [partly(1, 4, Logical), not_run, matched("first")];
    assert_eq!(d(&outcomes), 3.0 / 7.0);
    // A task criterion that was judged counts like any other.
    let verdicts = [pass("x"), fail("y", Logical)];
    assert_eq!(Tally::of(&outcomes, &verdicts).distance().get(), 4.0 / 9.0);
}

#[test]
fn a_failed_subtask_without_verdicts_is_not_outvoted() {
    let silent = SubTaskOutcome {
        success_criteria: vec![criterion("a", Mode::Plausible), criterion("b", Mode::Plausible)],
        ..outcome("silent", OutcomeStatus::Failed, vec![])
    };
    let bare = outcome("bare", OutcomeStatus::Failed, vec![]);
    let passes = outcome("ok", OutcomeStatus::Matched, vec![pass("c"), pass("d")]);
    assert_eq!(d(&[silent, passes.clone()]), 0.5);
    assert_eq!(d(&[bare, passes.clone()]), 1.0 / 3.0, "one criterion at least");
    // A missing verdict is a failed one, and a failure that its verdicts deny still counts.
    let half = SubTaskOutcome {
        success_criteria: vec![criterion("a", Mode::Verifiable), criterion("b", Mode::Verifiable)],
        ..outcome("half", OutcomeStatus::Failed, vec![pass("a")])
    };
    assert_eq!(d(&[half]), 0.5);
    assert_eq!(d(&[outcome("denied", OutcomeStatus::Failed, vec![pass("a")])]), 0.5);
}

#[test]
fn a_plausible_failure_weighs_as_often_as_it_happened() {
    let one = |unmet: &[&[&str]]| {
        d(&[attempts(
            outcome(
                "poem",
                OutcomeStatus::Failed,
                vec![plausible(fail("it rhymes", Logical)), plausible(pass("x"))],
            ),
            unmet,
        )])
    };
    assert_eq!(one(&[&["it rhymes"], &["it rhymes"], &["it rhymes"]]), 0.5);
    assert_eq!(one(&[&[], &["it rhymes"], &["it rhymes"]]), 2.0 / 6.0);
    assert_eq!(one(&[&[], &[], &["it rhymes"]]), 1.0 / 6.0);
    assert_eq!(
        one(&[&[], &[], &[]]),
        1.0 / 6.0,
        "it failed in the last attempt at least"
    );
    assert_eq!(one(&[]), 0.5, "without a trajectory it weighs in full");
    // Whoever declared it verifiable gets full weight, whatever the verdict calls it.
    let strict = SubTaskOutcome {
        success_criteria: vec![criterion("it rhymes", Mode::Verifiable)],
        ..attempts(
            outcome(
                "poem",
                OutcomeStatus::Failed,
                vec![plausible(fail("it rhymes", Logical))],
            ),
            &[&[], &["it rhymes"]],
        )
    };
    assert_eq!(d(&[strict]), 1.0);
}

#[test]
fn implausibility_is_the_share_of_logical_failures() {
    assert_eq!(p(&[matched("a")]), 0.0);
    assert_eq!(p(&[partly(3, 4, Logical)]), 1.0);
    assert_eq!(p(&[partly(3, 4, Environmental)]), 0.0);
    assert_eq!(p(&[partly(3, 4, Logical), failed("b", Environmental)]), 0.75);
    let unclassified = outcome("x", OutcomeStatus::Failed, vec![]);
    assert_eq!(p(std::slice::from_ref(&unclassified)), 0.5);
    assert_eq!(
        p(&[unclassified, failed("b", Logical)]),
        1.0,
        "only classified failures count"
    );
}

#[test]
fn a_tie_is_mixed_and_the_driver_is_what_was_judged() {
    let mix = |outcomes: &[SubTaskOutcome]| Tally::of(outcomes, &[]).mix();
    assert_eq!(mix(&[failed("a", Logical)]), FailureMix::Logical);
    assert_eq!(mix(&[failed("a", Environmental)]), FailureMix::Environmental);
    assert_eq!(
        mix(&[failed("a", Logical), failed("b", Environmental)]),
        FailureMix::Mixed
    );
    assert_eq!(mix(&[matched("a")]), FailureMix::Mixed);

    let not_run = outcome("later", OutcomeStatus::NotRun, vec![]);
    let weak = attempts(
        outcome("weak", OutcomeStatus::Failed, vec![plausible(fail("weak", Logical))]),
        &[&[], &["weak"]],
    );
    let outcomes = [not_run, weak, failed("strong", Logical)];
    let tally = Tally::of(&outcomes, &[]);
    assert_eq!(
        tally.driver().map(|f| (f.criterion, f.ground)),
        Some(("strong holds", Ground::Judged))
    );
}

#[test]
fn unverified_is_what_passed_on_text_alone_or_was_not_judged() {
    let by = |verdict: CriterionVerdict, source| CriterionVerdict { source, ..verdict };
    let mut done = outcome(
        "done",
        OutcomeStatus::Matched,
        vec![
            plausible(by(pass("by a model on text"), VerdictSource::Model)),
            by(pass("by a model on tool evidence"), VerdictSource::Model),
            plausible(by(pass("by a check"), VerdictSource::Check)),
        ],
    );
    done.success_criteria.push(criterion("by nobody", Mode::Verifiable));
    let outcomes = [done];
    let tally = Tally::of(&outcomes, &[]);
    assert_eq!(tally.unverified, ["by a model on text", "by nobody"]);
    assert_eq!((tally.distance().get(), tally.total), (0.0, 4));
}

#[test]
fn what_the_executor_itself_doubts_is_not_verified_by_a_model() {
    let by = |verdict: CriterionVerdict, source| CriterionVerdict { source, ..verdict };
    let mut done = outcome(
        "done",
        OutcomeStatus::Matched,
        vec![
            by(pass("by a model"), VerdictSource::Model),
            plausible(by(pass("on text"), VerdictSource::Model)),
            by(pass("by a check"), VerdictSource::Check),
        ],
    );
    done.uncertain = Some("a folder could not be read".to_owned());
    let outcomes = [done];
    assert_eq!(Tally::of(&outcomes, &[]).unverified, ["by a model", "on text"]);
    let report = honesty(&outcomes, &[], &[]);
    assert_eq!(
        (report.proven.len(), report.judged.len(), report.unverified.len()),
        (1, 0, 2)
    );
    assert!(report.unverified[0].evidence.contains("a folder could not be read"));
}

#[test]
fn the_honesty_report_says_who_decided_each_criterion_and_on_what() {
    let by = |verdict: CriterionVerdict, source| CriterionVerdict { source, ..verdict };
    let mut done = outcome(
        "done",
        OutcomeStatus::Matched,
        vec![
            by(pass("by a model on evidence"), VerdictSource::Model),
            plausible(by(pass("by a model on text"), VerdictSource::Model)),
            by(pass("by a check"), VerdictSource::Check),
        ],
    );
    done.success_criteria.push(criterion("by nobody", Mode::Verifiable));
    let mut calls = done.tool_calls.clone();
    if calls.is_empty() {
        calls.push(
            serde_json::from_value(serde_json::json!({
                "tool": "shell", "input": {"command": "wc -l a.txt"}, "started_at": "2026-11-21T00:00:00.000Z",
                "elapsed_ms": 1, "effect": "read"
            }))
            .unwrap(),
        );
    }
    done.tool_calls = calls;
    let failed = outcome(
        "broken",
        OutcomeStatus::Failed,
        vec![fail("it failed", FailureClass::Logical)],
    );
    let report = honesty(&[done, failed], &[], &["of the whole".to_owned()]);
    let named = |list: &[Grounds]| list.iter().map(|g| g.criterion.clone()).collect::<Vec<_>>();
    assert_eq!(named(&report.proven), ["by a check"]);
    assert_eq!(named(&report.judged), ["by a model on evidence"]);
    assert_eq!(
        named(&report.unverified),
        ["by a model on text", "by nobody", "of the whole"]
    );
    assert_eq!(report.judged[0].calls.len(), 1);
    assert!(report.summary().starts_with("1 proven by machine"));
}

proptest! {
    /// History-aware: the more often a plausible criterion failed, the more it weighs.
    #[test]
    fn failing_more_often_never_weighs_less(attempts_made in 1_usize..6, k in 0_usize..6) {
        let k = k.min(attempts_made);
        let distance = |failing: usize| {
            let unmet: Vec<&[&str]> = (0..attempts_made).map(|i| if i >= attempts_made - failing { &["c"][..] } else { &[][..] }).collect();
            d(&[attempts(outcome("s", OutcomeStatus::Failed, vec![plausible(fail("c", Logical))]), &unmet)])
        };
        let always = distance(attempts_made);
        prop_assert!(distance(k) <= always);
        prop_assert!(k == attempts_made || k == 0 && attempts_made == 1 || distance(k) < always);
    }

    #[test]
    fn one_more_failure_never_brings_the_goal_nearer(bad in 0_usize..8, total in 1_usize..8, others in 0_usize..4) {
        let bad = bad.min(total);
        let mut outcomes: Vec<_> = (0..others).map(|i| matched(&i.to_string())).collect();
        outcomes.push(partly(bad, total, Logical));
        let before = d(&outcomes);
        outcomes.pop();
        outcomes.push(partly((bad + 1).min(total), total, Logical));
        prop_assert!(d(&outcomes) >= before);
        prop_assert!((0.0..=1.0).contains(&before));
    }
}

//! Counts that mean what they say, and the detectors.

use artoo_auditor::{Auditor, Effect, Gap, Ledger, Observed, Past, REPORT_PERIOD, Rate, Totals};
use artoo_protocol::message::{
    AuditReport, BudgetKind, BudgetReached, Directive, ExecutionStatus, FailureClass, Message, TaskResumed, Trend,
};
use artoo_protocol::{Finite, Millis, Role};

use crate::build::{Wire, accepted, at, attempt, correction, directive, input, outcome, replan, result, subtask, task};

fn auditor() -> Auditor {
    Auditor::new(at(0), REPORT_PERIOD, Past::default())
}

fn watch(auditor: &mut Auditor, seen: impl IntoIterator<Item = Observed>) {
    for observed in seen {
        for effect in auditor.observe(at(1), observed) {
            assert!(!matches!(effect, Effect::Report(_)), "{effect:?}");
        }
    }
}

fn report(effect: Effect) -> AuditReport {
    match effect {
        Effect::Report(report) => *report,
        Effect::Append { .. } | Effect::Row(_) => panic!("no report"),
    }
}

#[test]
fn counts_mean_what_they_say() {
    let mut wire = Wire::default();
    let mut auditor = auditor();
    let seen = vec![
        wire.send(Role::User, 1, input(1, "count")),
        wire.send(Role::R2, 1, subtask(1, "a")),
        wire.send(Role::R3, 1, attempt(1, "a", ExecutionStatus::Completed)),
        wire.send(Role::R4a, 1, correction(1, "a", FailureClass::Logical)),
        wire.send(Role::R3, 1, attempt(1, "a", ExecutionStatus::Failed)),
        wire.send(Role::R4a, 1, correction(1, "a", FailureClass::Environmental)),
        wire.send(Role::R3, 1, attempt(1, "a", ExecutionStatus::Uncertain)),
        wire.send(Role::R4a, 1, outcome(1, "a", false)),
        wire.send(Role::R4b, 1, replan(1)),
        wire.send(Role::R7, 1, directive(1, Directive::Refine, 0.8)),
        wire.send(Role::R2, 1, subtask(1, "b")),
        wire.send(Role::R3, 1, attempt(1, "b", ExecutionStatus::Completed)),
        wire.send(Role::R4a, 1, outcome(1, "b", true)),
        wire.send(Role::R4b, 1, accepted(1)),
        wire.send(Role::R7, 1, result(1, 0.0)),
    ];
    watch(&mut auditor, seen);
    assert_eq!(auditor.open_tasks(), 0);
    watch(
        &mut auditor,
        [wire.send(Role::R7, 1, directive(1, Directive::Refine, 0.0))],
    );
    assert_eq!(auditor.open_tasks(), 0, "what comes late opens nothing");
    // A replan is no task, an attempt is no correction.
    let totals = auditor.whole().ledger.totals;
    assert_eq!(
        (totals.tasks, totals.ended, totals.corrections, totals.replans),
        (1, 1, 2, 2)
    );
    assert_eq!(totals.attempts, Rate { of: 4, bad: 1 });
    // Nobody judged the last one, which broke on infrastructure.
    assert_eq!(totals.judged, Rate { of: 3, bad: 2 });
    assert_eq!(totals.rounds, Rate { of: 2, bad: 1 });

    let effects = auditor.observe(at(2_000), wire.query());
    let seen = report(effects[1].clone());
    assert_eq!(
        (seen.trigger.as_str(), seen.window_start, seen.window_end),
        ("on-demand", at(0), at(2_000))
    );
    assert_eq!(
        (seen.tasks_observed, seen.total_corrections, seen.total_replans),
        (1, 2, 2)
    );
    assert_eq!((seen.tasks_total, seen.corrections_total), (1, 2));
    assert_eq!(
        (
            seen.tool_health.execution_failures,
            seen.tool_health.environmental_retries,
            seen.tool_health.logical_retries
        ),
        (1, 1, 1)
    );
    assert_eq!(seen.gap_trends.len(), 1);
    assert_eq!(
        (&seen.gap_trends[0].task_id, seen.gap_trends[0].trend),
        (&task(1), Trend::Improving)
    );
    assert!(seen.boundary_violations.is_empty() && seen.anomalies.is_empty() && seen.drift_alerts.is_empty());

    // The window is empty again, the totals stay.
    let seen = report(auditor.exit(at(3_000)));
    assert_eq!((seen.trigger.as_str(), seen.window_start), ("exit", at(2_000)));
    assert_eq!(
        (
            seen.tasks_observed,
            seen.total_corrections,
            seen.tasks_total,
            seen.corrections_total
        ),
        (0, 0, 1, 2)
    );
    assert!(seen.gap_trends.is_empty());
}

#[test]
fn the_operators_question_opens_no_task() {
    let mut wire = Wire::default();
    let mut auditor = auditor();
    let effects = auditor.observe(at(1), wire.query());
    assert!(matches!(effects[..], [Effect::Append { .. }, Effect::Report(_)]));
    assert_eq!((auditor.open_tasks(), auditor.whole().ledger.totals.tasks), (0, 0));
}

#[test]
fn nobody_else_can_ask() {
    let mut wire = Wire::default();
    let mut auditor = auditor();
    let query = wire.send_to(
        Role::R7,
        Role::R6,
        None,
        Message::AuditQuery(artoo_protocol::message::AuditQuery {}),
    );
    watch(&mut auditor, [query]);
    assert_eq!(
        report(auditor.on_demand(at(2))).boundary_violations,
        ["R7 may not send AuditQuery (message 1)"]
    );
}

#[test]
fn reports_come_periodically() {
    let mut auditor = auditor();
    assert_eq!(auditor.deadline(), at(300_000));
    assert!(auditor.wake(at(299_999)).is_none());
    assert_eq!(auditor.wake(at(300_000)).map(report).unwrap().trigger, "periodic");
    assert_eq!(auditor.deadline(), at(600_000));
}

/// The only complaint of the window.
fn complaint(build: impl FnOnce(&mut Wire) -> Vec<Observed>) -> (Vec<String>, Vec<String>) {
    let mut auditor = auditor();
    watch(&mut auditor, build(&mut Wire::default()));
    let report = report(auditor.on_demand(at(2)));
    (report.boundary_violations, report.anomalies)
}

#[test]
fn messages_off_their_route_are_violations() {
    let (violations, anomalies) = complaint(|wire| {
        let direct = replan(1).into();
        vec![
            wire.send(Role::R4b, 1, directive(1, Directive::Refine, 0.5)),
            wire.send_to(Role::R4b, Role::R2, Some(task(1)), direct),
        ]
    });
    assert_eq!(
        violations,
        [
            "R4b may not send PlanDirective (message 1)",
            "ReplanRequest from R4b went to R2 instead of R7 (message 2)"
        ]
    );
    assert!(anomalies.is_empty());
}

#[test]
fn a_thrashing_controller_is_told() {
    let broken = |ds: &[f64]| {
        complaint(|wire| {
            ds.iter()
                .map(|&d| wire.send(Role::R7, 1, directive(1, Directive::BreakSymmetry, d)))
                .collect()
        })
        .1
    };
    assert!(broken(&[0.8]).is_empty());
    assert!(broken(&[0.8, 0.5]).is_empty(), "it helped");
    assert_eq!(broken(&[0.8, 0.8]).len(), 1);
    assert_eq!(broken(&[0.5, 0.8, 0.9]).len(), 2);
    assert!(broken(&[0.8, 0.8])[0].starts_with("ggs_thrashing: count_00000001"));
    let (_, apart) = complaint(|wire| {
        [Directive::BreakSymmetry, Directive::Refine, Directive::BreakSymmetry]
            .map(|kind| wire.send(Role::R7, 1, directive(1, kind, 0.8)))
            .into()
    });
    assert!(apart.is_empty(), "not in a row");
}

#[test]
fn a_second_ending_and_a_duplicate_subtask_are_told() {
    let (_, anomalies) = complaint(|wire| {
        vec![
            wire.send(Role::R7, 1, result(1, 0.0)),
            wire.send(Role::R7, 1, result(1, 0.0)),
        ]
    });
    assert_eq!(
        anomalies,
        ["second_final_result: count_00000001: the task has ended twice"]
    );
    let (_, anomalies) = complaint(|wire| {
        vec![
            wire.send(Role::R2, 1, subtask(1, "a")),
            wire.send(Role::R2, 1, subtask(1, "b")),
            wire.send(Role::R2, 2, subtask(2, "a")),
        ]
    });
    assert_eq!(
        anomalies,
        ["duplicate_subtask: count_00000002: subtask a was dispatched twice"]
    );
    let (_, anomalies) = complaint(|wire| {
        vec![
            wire.send(Role::R2, 1, subtask(1, "a")),
            wire.send(Role::R7, 1, result(1, 0.0)),
            wire.send(Role::R2, 2, subtask(2, "a")),
        ]
    });
    assert!(anomalies.is_empty(), "a task that has ended holds no id");
}

#[test]
fn endless_correction_is_told_once() {
    let (_, anomalies) = complaint(|wire| {
        (0..5)
            .map(|_| wire.send(Role::R4a, 1, correction(1, "a", FailureClass::Logical)))
            .collect()
    });
    assert_eq!(
        anomalies,
        ["endless_correction: count_00000001: subtask a was corrected more than 2 times"]
    );
    let (_, anomalies) = complaint(|wire| {
        ["a", "a", "b", "b"]
            .map(|id| wire.send(Role::R4a, 1, correction(1, id, FailureClass::Logical)))
            .into()
    });
    assert!(anomalies.is_empty());
}

#[test]
fn what_was_missed_is_told() {
    let gap = Gap {
        from_seq: 2,
        to_seq: 5,
        count: 4,
        ..Gap::default()
    };
    let (_, anomalies) = complaint(|wire| {
        let first = wire.send(Role::User, 1, input(1, "x"));
        wire.seq = 5;
        vec![first, Observed::Gap(gap), wire.send(Role::R7, 1, result(1, 0.0))]
    });
    assert_eq!(anomalies, ["gap: 4 messages (2 to 5) were not recorded"]);
    let (_, anomalies) = complaint(|wire| {
        let first = wire.send(Role::User, 1, input(1, "x"));
        wire.seq = 5;
        vec![first, wire.send(Role::R7, 1, result(1, 0.0))]
    });
    assert_eq!(anomalies, ["order: message 6 came after 1"]);
    let (_, anomalies) = complaint(|wire| {
        let first = wire.send(Role::User, 1, input(1, "x"));
        wire.seq = 5;
        let resumed = TaskResumed {
            task_id: task(1),
            away_ms: Millis(0),
            person_present: None,
        };
        vec![first, wire.send(Role::Runtime, 1, resumed)]
    });
    assert!(
        anomalies.is_empty(),
        "where a task is taken up, numbers go on from its journal: {anomalies:?}"
    );
    // What else the runtime says has the number that follows, like every message.
    let (_, anomalies) = complaint(|wire| {
        let first = wire.send(Role::User, 1, input(1, "x"));
        wire.seq = 5;
        let reached = BudgetReached {
            task_id: task(1),
            budget: BudgetKind::Tokens,
            used: Finite::ZERO,
            limit: Finite::ZERO,
        };
        vec![first, wire.send(Role::Runtime, 1, reached)]
    });
    assert_eq!(anomalies, ["order: message 6 came after 1"]);
}

#[test]
fn a_gap_that_stands_still_is_stable_whatever_time_does() {
    let trend = |ds: &[f64]| {
        let mut wire = Wire::default();
        let mut auditor = auditor();
        let seen: Vec<_> = ds
            .iter()
            .map(|&d| wire.send(Role::R7, 1, directive(1, Directive::Refine, d)))
            .collect();
        watch(&mut auditor, seen);
        report(auditor.on_demand(at(2))).gap_trends[0].trend
    };
    assert_eq!(trend(&[0.5]), Trend::Stable);
    assert_eq!(trend(&[0.5, 0.5]), Trend::Stable);
    assert_eq!(trend(&[0.5, 0.4]), Trend::Improving);
    assert_eq!(trend(&[0.4, 0.5]), Trend::Worsening);
}

#[test]
fn a_role_that_changes_is_compared_with_its_past() {
    let past = Totals {
        judged: Rate { of: 100, bad: 10 },
        ..Totals::default()
    };
    let run_of = |past: Totals, count: usize, corrected: usize| {
        let mut wire = Wire::default();
        let mut ledger = Ledger::default();
        ledger.totals = past;
        let past = Past {
            ledger,
            ..Past::default()
        };
        let mut auditor = Auditor::new(at(0), REPORT_PERIOD, past);
        for i in 0..count {
            let id = format!("s{i}");
            let attempt = wire.send(Role::R3, 1, attempt(1, &id, ExecutionStatus::Completed));
            watch(&mut auditor, [attempt]);
            let said = if i < corrected {
                wire.send(Role::R4a, 1, correction(1, &id, FailureClass::Logical))
            } else {
                wire.send(Role::R4a, 1, outcome(1, &id, false))
            };
            watch(&mut auditor, [said]);
        }
        report(auditor.on_demand(at(2))).drift_alerts
    };
    let run = |past, corrected| run_of(past, 10, corrected);
    assert!(run_of(past, 9, 9).is_empty(), "nine cases are too few");
    assert_eq!(
        run(past, 6),
        ["R4a: attempts that were corrected went from 10 % to 60 % (6 of 10)"]
    );
    assert!(run(past, 2).is_empty());
    assert!(run(Totals::default(), 6).is_empty(), "without a past there is no drift");
}

#[test]
fn a_flood_of_complaints_is_cut_and_counted() {
    let (violations, _) = complaint(|wire| (0..250).map(|_| wire.send(Role::R5, 1, replan(1))).collect());
    assert_eq!(violations.len(), 101);
    assert_eq!(violations[0], "… 150 before these");
    assert!(
        violations[100].ends_with("(message 250)"),
        "the latest: {}",
        violations[100]
    );
}

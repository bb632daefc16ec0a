//! The display against a run that was kept, and against sizes that no one has.

use std::path::Path;

use artoo_bus::journal::read;
use artoo_protocol::SubTaskId;
use artoo_protocol::journal::Entry;
use artoo_protocol::message::{Message, Verdict};
use artoo_protocol::{Envelope, Millis, TaskId, Timestamp};
use uuid::Uuid;

use super::drawing::{Moment, Size, over, running};
use super::view::{Heard, State, Step, View};
use super::{Display, Line, TapItem};

const WIDE: Size = Size { columns: 120, rows: 50 };

fn moment(now: Timestamp) -> Moment {
    Moment {
        now,
        budget: Millis::from_seconds(300),
        turn: 0,
    }
}

fn text(lines: &[Line]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| line.render(false)).collect();
    lines.join("\n")
}

/// Every different picture of a kept run, and what stays of it.
fn pictures(journal: &str) -> String {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals"));
    let records = read::read_file(&folder.join(journal)).unwrap().records;
    let mut view = View::default();
    let mut shown: Vec<String> = Vec::new();
    for record in records {
        let Entry::Published { envelope } = record.entry else {
            continue;
        };
        let at = envelope.timestamp;
        match view.hear(&TapItem::Envelope(envelope.into())) {
            Heard::Nothing => {}
            Heard::Change => shown.push(text(&running(&view, WIDE, moment(at)))),
            Heard::RoundIsOver => {
                shown.push(format!("stays:\n{}", text(&over(&view, WIDE))));
                view.turn_over();
            }
        }
    }
    shown.dedup();
    shown.join("\n\n")
}

#[test]
fn a_run_of_two_rounds_picture_by_picture() {
    insta::assert_snapshot!(pictures("replanned.jsonl"));
}

#[test]
fn a_task_that_goes_on_shows_the_plan_in_which_it_stopped_and_no_earlier_one() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals"));
    let records = read::read_file(&folder.join("replanned.jsonl")).unwrap().records;
    let said: Vec<Envelope> = records
        .into_iter()
        .filter_map(|record| match record.entry {
            Entry::Published { envelope } => Some(envelope),
            _ => None,
        })
        .collect();
    let plans: Vec<usize> = said
        .iter()
        .enumerate()
        .filter(|(_, envelope)| matches!(envelope.payload, Message::DispatchManifest(_)))
        .map(|(at, _)| at)
        .collect();
    assert!(plans.len() > 1, "a run with more than one plan");
    let mut display = Display::new(Millis::from_seconds(300));
    said.iter()
        .take(plans[plans.len() - 1] + 1)
        .for_each(|envelope| display.recall(envelope));
    let shown = text(&running(&display.view, WIDE, moment(Timestamp::from_millis(0))));
    let Message::DispatchManifest(last) = &said[plans[plans.len() - 1]].payload else {
        unreachable!("chosen above");
    };
    assert_eq!(display.view.steps.len(), last.subtasks.len(), "{shown}");
    for subtask in &last.subtasks {
        let begin: String = subtask.intent.chars().take(30).collect();
        assert!(shown.contains(&begin), "{begin}: {shown}");
    }
}

fn steps(count: usize) -> Vec<Step> {
    let states = [
        State::Matched,
        State::Running,
        State::Waiting,
        State::Failed,
        State::NotRun,
        State::Carried,
    ];
    let task = TaskId::provisional(Uuid::from_u128(1));
    (0..count)
        .map(|n| Step {
            id: SubTaskId::derive(Timestamp::from_millis(0), &task, n as u64),
            sequence: 1,
            intent: format!("第{n} step with a long intent that says much, {}", "x".repeat(n)),
            state: states[n % states.len()],
            attempt: 2,
            criteria: vec![("it holds".into(), Some(Verdict::Pass)), ("it does 不".into(), None)],
            trouble: (n % 2 == 0).then(|| "wrong\nthing".to_owned()),
        })
        .collect()
}

#[test]
fn no_size_of_terminal_and_no_number_of_steps_is_too_small_or_too_large() {
    for count in [0, 1, 6, 100] {
        let view = View {
            intent: Some("做 it".into()),
            steps: steps(count),
            calls: 123,
            tokens: 45_678,
            cost: 0.25,
            ..View::default()
        };
        for columns in [0, 1, 2, 10, 24, 80, 300] {
            for rows in [0, 1, 2, 3, 5, 24, 600] {
                let lines = running(&view, Size { columns, rows }, moment(Timestamp::from_millis(0)));
                assert!(lines.len() < rows.max(2), "{} lines in {rows} rows", lines.len());
                assert!(
                    lines.iter().all(|line| line.width() < columns.max(1)),
                    "{columns} columns: {lines:?}"
                );
            }
        }
    }
}

#[test]
fn where_not_all_fits_what_failed_and_what_runs_is_shown_and_the_rest_is_counted() {
    let view = View {
        steps: steps(60),
        ..View::default()
    };
    let shown = text(&running(
        &view,
        Size { columns: 200, rows: 30 },
        moment(Timestamp::from_millis(0)),
    ));
    assert_eq!(shown.matches("✗ 第").count(), 10, "{shown}");
    assert_eq!(shown.matches("⠋ 第").count(), 10, "{shown}");
    assert!(
        shown.contains("more; of all: 10 matched, 10 carried over, 10 running, 10 waiting, 10 failed, 10 not run"),
        "{shown}"
    );
}

#[test]
fn time_in_which_a_person_is_asked_does_not_count() {
    use artoo_protocol::message::{ClarificationAnswer, ClarificationRequest};
    let task = TaskId::provisional(Uuid::from_u128(1));
    let mut view = View::default();
    let mut say = |at: i64, payload: Message| {
        let mut envelope: artoo_protocol::Envelope = serde_json::from_value(serde_json::json!({
            "id": Uuid::from_u128(1), "seq": 1, "timestamp": Timestamp::from_millis(at), "from": "R1", "to": "User",
            "payload": payload,
        }))
        .unwrap();
        envelope.timestamp = Timestamp::from_millis(at);
        view.hear(&TapItem::Envelope(envelope.into()));
        view.elapsed(Timestamp::from_millis(at + 500))
    };
    let request = ClarificationRequest {
        task_id: task.clone(),
        round: 1,
        questions: vec!["which?".into()],
    };
    let answer = ClarificationAnswer {
        task_id: task,
        round: 1,
        text: "that".into(),
    };
    assert_eq!(say(1_000, request.into()), Millis(0));
    assert_eq!(say(9_000, answer.into()), Millis(500));
}

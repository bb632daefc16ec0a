//! Explaining: a real journal is decided a second time and agrees, and what does not agree is told.

use artoo_ggs::explain::{Decided, Told};
use artoo_ggs::{Effect, Explained, Params, explain};
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::{Cause, Directive, Ending, Message, Recommendation, ReplanRequest, TaskAborted};
use artoo_protocol::{Envelope, EnvelopeId, Millis, Role, Unit01};

use crate::build::{Bench, Environmental, Logical, at, partly, replan};

/// The messages of the journal of a real task that was replanned once, and the parameters that it ran with.
pub fn journal() -> (Params, Vec<Envelope>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals/replanned.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut params = Params::default();
    let mut envelopes = Vec::new();
    for line in text.lines() {
        match serde_json::from_str::<Record>(line).unwrap().entry {
            Entry::Opened { settings, .. } => params = Params::of_settings(&settings).unwrap(),
            Entry::Published { envelope } => envelopes.push(envelope),
            Entry::Commanded { .. } | Entry::Answered { .. } | Entry::Stepped { .. } | Entry::Closed { .. } => {}
        }
    }
    (params, envelopes)
}

fn envelope(ms: i64, message: impl Into<Message>) -> Envelope {
    Envelope {
        id: EnvelopeId::new("e"),
        seq: 1,
        task_id: None,
        timestamp: at(ms),
        from: Role::R4b,
        to: Role::R7,
        payload: message.into(),
    }
}

/// What the controller was told and answered in gaps like these.
fn told(gaps: impl FnOnce(&artoo_protocol::TaskId) -> Vec<ReplanRequest>) -> Vec<Envelope> {
    let (mut bench, id) = Bench::open();
    let mut told = Vec::new();
    for gap in gaps(&id) {
        told.push(envelope(0, gap.clone()));
        for effect in bench.say(gap) {
            let finish = matches!(effect, Effect::AskPartial(_));
            told.push(envelope(1, effect.into_message()));
            if finish {
                told.extend(bench.wake_at(30_000).into_iter().map(|e| envelope(2, e.into_message())));
            }
        }
    }
    told
}

fn agreed(decisions: &[Explained]) -> bool {
    decisions
        .iter()
        .all(|one| one.differences.is_empty() && one.recorded.is_some())
}

#[test]
fn a_real_journal_is_decided_a_second_time_and_agrees() {
    let (params, envelopes) = journal();
    let decisions = explain(&params, &envelopes);
    assert!(agreed(&decisions), "{decisions:#?}");
    let made: Vec<_> = decisions.iter().map(|one| (one.told, one.decision.unwrap())).collect();
    assert_eq!(
        made,
        [
            (Told::Gap, Decided::Direct(Directive::BreakSymmetry)),
            (Told::Accepted, Decided::End(Ending::Accept, Cause::Met)),
        ]
    );
    let words = decisions[0].in_words(&params);
    for part in [
        "2 of 4 criteria are not met, most of all “Every line of emails.txt",
        "β_eff = 0.30·(1 − 0.20",
        "L = 0.60·0.500 + 0.240·1.000 + 0.40·0.20",
        "cell 14 of 24: break_symmetry, urgency neutral",
        "kill-switch off (0 of 2 worsening rounds)",
        "journal   the same",
    ] {
        assert!(words.contains(part), "{part}\n{words}");
    }
}

#[test]
fn every_ending_of_the_controller_agrees_with_itself() {
    let four_gaps = told(|id| (0..4).map(|_| replan(id, 0, vec![partly(9, 9, Logical)])).collect());
    let decisions = explain(&Params::default(), &four_gaps);
    assert!(agreed(&decisions) && decisions.len() == 4, "{decisions:#?}");
    assert_eq!(
        decisions[3].decision,
        Some(Decided::End(Ending::Abandon, Cause::Resources))
    );
    let advised = told(|id| {
        vec![ReplanRequest {
            recommendation: Recommendation::Abandon,
            ..replan(id, 0, vec![partly(9, 9, Environmental)])
        }]
    });
    let decisions = explain(&Params::default(), &advised);
    assert!(agreed(&decisions), "{decisions:#?}");
    let words = decisions[0].in_words(&Params::default());
    assert!(
        words.contains("advises to stop: every allowed change of plan"),
        "{words}"
    );
    let near = told(|id| vec![replan(id, 0, vec![partly(1, 9, Logical)])]);
    assert!(agreed(&explain(&Params::default(), &near)));
}

#[test]
fn a_changed_record_or_other_parameters_are_told() {
    let mut changed = told(|id| vec![replan(id, 0, vec![partly(9, 9, Logical)])]);
    for envelope in &mut changed {
        if let Message::PlanDirective(said) = &mut envelope.payload {
            said.directive = Directive::Refine;
            said.loss.p = Unit01::ZERO;
        }
    }
    let decisions = explain(&Params::default(), &changed);
    assert_eq!(
        decisions[0].differences,
        [
            "decided break_symmetry, recorded refine",
            "P is 1.000000, recorded 0.000000"
        ]
    );
    assert!(decisions[0].in_words(&Params::default()).contains("DIFFERS: decided"));
    let (params, envelopes) = journal();
    let stricter = Params {
        time_budget_ms: Millis(10_000),
        ..params
    };
    assert!(!agreed(&explain(&stricter, &envelopes)));
}

#[test]
fn a_person_who_stops_a_task_is_no_difference_and_an_open_end_is_told() {
    let (mut bench, id) = Bench::open();
    let gap = replan(&id, 0, vec![partly(9, 9, Logical)]);
    let stop = TaskAborted {
        task_id: id.clone(),
        reason: "Ctrl-C".into(),
    };
    let end: Vec<_> = bench
        .say(stop)
        .into_iter()
        .map(|e| envelope(2, e.into_message()))
        .collect();
    let decisions = explain(&Params::default(), &[&[envelope(0, gap.clone())], &end[..]].concat());
    assert_eq!(decisions.len(), 1);
    assert!(decisions[0].cut_short() && decisions[0].differences.is_empty());
    let alone = explain(&Params::default(), &end);
    assert_eq!((alone[0].told, alone[0].decision), (Told::Outside, None));
    assert!(
        alone[0]
            .in_words(&Params::default())
            .contains("abandon (it was stopped)")
    );
    let open = explain(&Params::default(), &[envelope(0, gap)]);
    assert!(
        open[0]
            .in_words(&Params::default())
            .contains("ends before anything was done")
    );
}

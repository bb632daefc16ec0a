//! A journal fed to fresh roles gives the same commands, and tells what was still to come.

use artoo_bus::journal::read;
use artoo_bus::{Hub, HubOptions, Journal, JournalOptions, Ports, recover_role, replay_role};
use artoo_protocol::journal::Record;
use artoo_protocol::{Answer, CallId, Event, Message, Millis, Role};

use crate::toys::{
    R2, Toy, ToyModel, Turn, aborted, ask, ask_with, clock, is_message, memory_journal, named, runtime, say, stage,
    subtask, task_spec, tell,
};

/// Asks, and dispatches a step for every answer until three are out; its word for the second question can be changed.
fn planner(word: &'static str) -> Toy<R2> {
    let mut calls = 0;
    Toy::new(move |_, event| match event {
        Event::Message { envelope } if matches!(envelope.payload, Message::TaskSpec(_)) => vec![ask(0)],
        Event::Answer { .. } if calls < 2 => {
            calls += 1;
            vec![say(subtask(u64::from(calls))), ask_with(calls, word)]
        }
        Event::Answer { .. } | Event::Message { .. } | Event::Wake => Vec::new(),
    })
}

async fn journal_of(script: Vec<Turn>, until: Millis, abort: bool) -> Vec<Record> {
    let journal = memory_journal();
    let stage = stage(Some(journal.clone()), 100);
    let ports = Ports {
        model: Some(ToyModel::new(script)),
        ..Ports::default()
    };
    let runtime = runtime(&stage.hub, ports).spawn(planner("why"));
    tell(&stage.hub, Role::R1, task_spec());
    tokio::time::sleep(until.to_duration()).await;
    if abort {
        tell(&stage.hub, Role::User, aborted());
    }
    runtime.shutdown(Millis(0)).await;
    read::read(journal.text(&named()).unwrap().as_slice()).unwrap().records
}

#[tokio::test(start_paused = true)]
async fn replay_gives_the_same_commands() {
    let records = journal_of(Vec::new(), Millis(10), false).await;
    replay_role(planner("why"), &records).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_role_that_decides_differently_is_found_out() {
    let records = journal_of(Vec::new(), Millis(10), false).await;
    let difference = replay_role(planner("how"), &records).unwrap_err();
    assert_eq!(difference.role, Role::R2);
    assert!(difference.to_string().contains("wants something else"), "{difference}");
    let silent = replay_role(Toy::<R2>::new(|_, _| Vec::new()), &records).unwrap_err();
    assert!(silent.to_string().contains("does not want this any more"), "{silent}");
}

#[tokio::test(start_paused = true)]
async fn an_abort_in_the_middle_is_no_difference() {
    let records = journal_of(vec![Turn::Fine, Turn::After(Millis(1_000))], Millis(10), true).await;
    replay_role(planner("why"), &records).unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_not_carried_out_after_an_abort_is_no_difference() {
    let stubborn = || {
        Toy::<R2>::new(|_, event| match event {
            Event::Message { .. } => vec![ask(0), say(subtask(1))],
            Event::Answer { .. } | Event::Wake => Vec::new(),
        })
    };
    let journal = memory_journal();
    let stage = stage(Some(journal.clone()), 100);
    let runtime = runtime(&stage.hub, Ports::default()).spawn(stubborn());
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    tell(&stage.hub, Role::User, aborted());
    tell(&stage.hub, Role::R1, task_spec());
    tell(&stage.hub, Role::R1, task_spec());
    runtime.shutdown(Millis(10)).await;
    let records = read::read(journal.text(&named()).unwrap().as_slice()).unwrap().records;
    replay_role(stubborn(), &records).unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_prefix_of_a_journal_can_be_gone_on_from() {
    let whole = journal_of(Vec::new(), Millis(10), false).await;
    for length in 2..whole.len() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{}.jsonl", named()));
        let lines = whole[..length]
            .iter()
            .map(|record| serde_json::to_string(record).unwrap() + "\n");
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        let journal = Journal::in_folder(folder.path(), JournalOptions::new(clock())).unwrap();
        let records = journal.resume(&named()).unwrap();
        let (actor, start) = recover_role(planner("why"), &records).unwrap().into_start();
        let first = start.events.first();
        assert!(first.is_some_and(|event| is_message(event, |m| matches!(m, Message::TaskResumed(_)))));
        let options = HubOptions {
            journal: Some(journal),
            first_seq: read::last_seq(&records) + 1,
            ..HubOptions::default()
        };
        let hub = Hub::new(clock(), options);
        let heard = actor.heard();
        let ports = Ports {
            model: Some(ToyModel::new([])),
            ..Ports::default()
        };
        let runtime = runtime(&hub, ports).resume(actor, start);

        tokio::time::sleep(Millis(10).to_duration()).await;
        hub.at_rest().await;
        assert_eq!(hub.open_tasks(), [named()]);
        let calls: Vec<CallId> = heard
            .lock()
            .unwrap()
            .iter()
            .filter_map(|event| match event {
                Event::Answer {
                    call,
                    answer: Answer::Model(Ok(_)),
                    ..
                } => Some(*call),
                _ => None,
            })
            .collect();
        assert_eq!(calls, [CallId(0), CallId(1), CallId(2)], "cut behind record {length}");
        runtime.shutdown(Millis(10)).await.journal.unwrap();
        let gone_on = read::read_file(&path).unwrap();
        replay_role(planner("why"), &gone_on.records).unwrap();
    }
}

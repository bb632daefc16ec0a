//! A journal fed to fresh roles gives the same commands, and tells what was still to come.

use std::sync::Arc;

use artoo_bus::journal::{Resumption, read};
use artoo_bus::{Hub, HubOptions, Journal, JournalOptions, Ports, recover_role, replay_role};
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::{Check, MemoryQuery};
use artoo_protocol::tool::{CheckRequest, EffectClass};
use artoo_protocol::{Actor, Answer, CallId, Command, Event, Message, Millis, Role};

use crate::shutdown::{ToyMemory, megram};
use crate::toys::{
    R2, Toy, ToyModel, ToyTools, Turn, aborted, ask, ask_with, clock, final_result, is_message, memory_journal, named,
    run_tool, runtime, say, stage, subtask, task_spec, tell,
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
        let records = journal.resume(&named(), &Resumption::default()).unwrap();
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

/// Wants one thing of every kind, and something to be remembered with each.
fn busy() -> Toy<R2> {
    let mut stored = 0;
    let mut keep = move |commands: Vec<Command>| -> Vec<Command> {
        stored += 1;
        let store = Command::Store { megram: megram(stored) };
        std::iter::once(store).chain(commands).collect()
    };
    Toy::new(move |_, event| match event {
        Event::Message { envelope } if matches!(envelope.payload, Message::TaskSpec(_)) => keep(vec![ask(0)]),
        Event::Answer { call: CallId(0), .. } => keep(vec![say(subtask(1)), run_tool(1, "look", EffectClass::Read)]),
        Event::Answer { call: CallId(1), .. } => keep(vec![check(2), assess(3), ask(9), cancel(9)]),
        Event::Answer { call: CallId(2), .. } => keep(vec![Command::Keep {
            task_id: named(),
            path: "x".into(),
            text: "long".into(),
        }]),
        Event::Answer { call: CallId(3), .. } => keep(vec![recall(4)]),
        Event::Answer { call: CallId(4), .. } => keep(vec![say(subtask(2))]),
        Event::Answer { .. } | Event::Message { .. } | Event::Wake => Vec::new(),
    })
}

fn check(call: u32) -> Command {
    Command::RunCheck {
        task_id: named(),
        call: CallId(call),
        request: CheckRequest {
            check: Check::FileExists { path: "x".into() },
            tool_calls: Vec::new(),
            made: Vec::new(),
            given: String::new(),
            written: Vec::new(),
        },
    }
}

fn assess(call: u32) -> Command {
    match run_tool(call, "look", EffectClass::Read) {
        Command::RunTool {
            task_id,
            call,
            invocation,
            ..
        } => Command::Assess {
            task_id,
            call,
            invocation,
        },
        other => other,
    }
}

fn recall(call: u32) -> Command {
    Command::Recall {
        task_id: named(),
        call: CallId(call),
        query: MemoryQuery {
            task_id: named(),
            query: 0,
            space: "intent:count".into(),
            entity: "env:local".into(),
            intent: "count the files".into(),
            tools: Vec::new(),
        },
    }
}

fn cancel(call: u32) -> Command {
    Command::Cancel {
        task_id: named(),
        call: CallId(call),
    }
}

fn all_ports() -> Ports {
    Ports {
        model: Some(ToyModel::new([])),
        toolbox: Some(Arc::new(ToyTools::default())),
        memory: Some(Arc::new(ToyMemory::default())),
        ..Ports::default()
    }
}

/// What a journal says was wanted and said, in an order that does not matter.
fn wanted(records: &[Record]) -> Vec<String> {
    let mut wanted: Vec<String> = records
        .iter()
        .filter_map(|record| match &record.entry {
            Entry::Commanded { command, .. } => Some(serde_json::to_string(command).unwrap()),
            Entry::Published { envelope } if envelope.from == Role::R2 => {
                Some(serde_json::to_string(&envelope.payload).unwrap())
            }
            _ => None,
        })
        .collect();
    wanted.sort();
    wanted
}

/// A real journal that is cut behind every record, gone on from by the real driver: it holds everything once, and gives the same again.
#[tokio::test(start_paused = true)]
async fn wherever_a_journal_is_cut_what_goes_on_from_there_is_written_down_whole() {
    let journal = memory_journal();
    let first = stage(Some(journal.clone()), 100);
    let hosted = runtime(&first.hub, all_ports()).spawn(busy());
    tell(&first.hub, Role::R1, task_spec());
    first.hub.at_rest().await;
    hosted.shutdown(Millis(10)).await;
    let mut whole = read::read(journal.text(&named()).unwrap().as_slice()).unwrap().records;
    // How an orderly end is written is not what is cut here.
    whole.retain(|record| !matches!(record.entry, Entry::Closed { .. }));
    let kinds = wanted(&whole);
    assert_eq!(
        kinds.iter().filter(|line| line.contains("\"store\"")).count(),
        6,
        "{kinds:#?}"
    );
    for length in 2..=whole.len() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{}.jsonl", named()));
        let lines = whole[..length]
            .iter()
            .map(|record| serde_json::to_string(record).unwrap() + "\n");
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        let journal = Journal::in_folder(folder.path(), JournalOptions::new(clock())).unwrap();
        let records = journal.resume(&named(), &Resumption::default()).unwrap();
        let (actor, start) = recover_role(busy(), &records).unwrap().into_start();
        let hub = Hub::new(
            clock(),
            HubOptions {
                journal: Some(journal),
                first_seq: read::last_seq(&records) + 1,
                ..HubOptions::default()
            },
        );
        let hosted = runtime(&hub, all_ports()).resume(actor, start);
        tokio::time::sleep(Millis(10).to_duration()).await;
        hub.at_rest().await;
        hosted.shutdown(Millis(10)).await.journal.unwrap();
        let gone_on = read::read_file(&path).unwrap().records;
        assert_eq!(wanted(&gone_on), kinds, "cut behind record {length}");
        replay_role(busy(), &gone_on).unwrap();
    }
}

/// What the last step of a role wanted has to be in the journal, unless it ends right there or the task does.
#[tokio::test(start_paused = true)]
async fn what_a_last_step_wants_and_nobody_did_is_a_difference() {
    let mut records = journal_of(Vec::new(), Millis(10), false).await;
    records.retain(|record| !matches!(record.entry, Entry::Closed { .. }));
    let talkative = || {
        let mut planner = planner("why");
        Toy::<R2>::new(move |now, event| {
            let mut wanted = planner.step(now, event.clone());
            if matches!(event, Event::Answer { call: CallId(2), .. }) {
                wanted.push(say(subtask(7)));
            }
            wanted
        })
    };
    replay_role(talkative(), &records).unwrap();
    let behind = |entry: Entry| {
        let mut records = records.clone();
        let n = records.len() as u64 + 1;
        records.push(Record {
            n,
            at: records[0].at,
            masked: false,
            entry,
        });
        replay_role(talkative(), &records)
    };
    let said = |message: Message, from: Role| {
        let stage = stage(None, 100);
        let mut tap = stage.hub.tap("all", 1);
        tell(&stage.hub, from, message);
        match tap.try_recv() {
            Some(artoo_bus::TapItem::Envelope(envelope)) => Entry::Published {
                envelope: (*envelope).clone(),
            },
            other => panic!("{other:?}"),
        }
    };
    let closed = Entry::Closed { reason: "x".into() };
    assert_eq!(behind(closed), Ok(()), "a process that went down");
    assert_eq!(behind(said(final_result(), Role::R7)), Ok(()), "a task that ended");
    assert_eq!(behind(said(aborted(), Role::User)), Ok(()), "a task that was stopped");
    let missing = behind(said(subtask(3), Role::R2).clone()).unwrap_err();
    assert!(missing.to_string().contains("wants something else"), "{missing}");
    let woke = Entry::Stepped {
        role: Role::R3,
        now: records[0].at,
        cause: artoo_protocol::journal::StepCause::Wake,
    };
    assert_eq!(behind(woke), Ok(()), "others may wake up before it was done");
    let others_went_on = Entry::Answered {
        role: Role::R3,
        call: CallId(900),
        answer: Answer::Model(Err(artoo_protocol::model::ModelError::Unusable {
            message: "no".into(),
        })),
    };
    let missing = behind(others_went_on).unwrap_err();
    assert!(
        missing.to_string().contains("wants something that was not done"),
        "{missing}"
    );
    assert_eq!(missing.n, records.len() as u64);
}

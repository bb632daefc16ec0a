//! The end of a task is the end of its work.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use artoo_bus::{Phase, Ports, TapItem};
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{CallId, Command, Event, Message, MessageKind, Millis, Role};

use crate::toys::{
    R2, R3, R7, Toy, ToyModel, ToyTools, Turn, aborted, answers, ask, final_result, is_message, named, phase, run_tool,
    runtime, say, stage, subtask, task_spec, tell, user_input,
};

fn planner() -> Toy<R2> {
    Toy::new(|_, event| match event {
        Event::Message { envelope } if matches!(envelope.payload, Message::TaskSpec(_)) => vec![ask(0)],
        Event::Message { .. } | Event::Wake => Vec::new(),
        Event::Answer { .. } => vec![say(subtask(1))],
    })
}

fn controller() -> Toy<R7> {
    Toy::new(|_, event| {
        if is_message(event, |m| matches!(m, Message::TaskAborted(_))) {
            vec![say(final_result()), say(final_result())]
        } else {
            Vec::new()
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_arrives_after_the_abort_is_not_run() {
    let stage = stage(None, 100);
    let mut tap = stage.hub.tap("all", 100);
    let model = ToyModel::new([Turn::After(Millis(10_000))]);
    let ports = Ports {
        model: Some(model.clone()),
        ..Ports::default()
    };
    let planner = planner();
    let heard = planner.heard();
    let _runtime = runtime(&stage.hub, ports).spawn(planner).spawn(controller());
    tell(&stage.hub, Role::User, user_input("x"));
    tell(&stage.hub, Role::R1, task_spec());
    tokio::time::sleep(Millis(9_999).to_duration()).await;
    assert_eq!(model.begun.load(Ordering::SeqCst), 1);
    tell(&stage.hub, Role::User, aborted());
    assert_eq!(phase(&stage.hub), Phase::Aborted);
    stage.hub.at_rest().await;
    tokio::time::sleep(Millis(60_000).to_duration()).await;
    assert_eq!(model.completed.load(Ordering::SeqCst), 0, "the call was stopped");
    assert!(answers(&heard).is_empty());
    let kinds: Vec<_> = std::iter::from_fn(|| tap.try_recv())
        .map(|item| match item {
            TapItem::Envelope(envelope) => envelope.payload.kind(),
            TapItem::Deed(deed) => panic!("not asked for: {deed:?}"),
            TapItem::Gap(gap) => panic!("{gap}"),
        })
        .collect();
    let expect = [
        MessageKind::UserInput,
        MessageKind::TaskSpec,
        MessageKind::TaskAborted,
        MessageKind::FinalResult,
    ];
    assert_eq!(kinds, expect, "one end, and nothing after the abort but the end");
    assert_eq!(phase(&stage.hub), Phase::Finished);
    assert!(stage.hub.open_tasks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_already_there_is_not_handed_over_after_the_abort() {
    let stage = stage(None, 100);
    let hub = stage.hub.clone();
    let model = ToyModel::new([Turn::Doing(Box::new(move || tell(&hub, Role::User, aborted())))]);
    let ports = Ports {
        model: Some(model.clone()),
        ..Ports::default()
    };
    let planner = planner();
    let heard = planner.heard();
    let _runtime = runtime(&stage.hub, ports).spawn(planner);
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    assert_eq!(model.completed.load(Ordering::SeqCst), 1, "the answer was there");
    assert!(answers(&heard).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_waits_for_its_turn_is_not_run_after_the_end() {
    let stage = stage(None, 100);
    let tools = Arc::new(ToyTools::default());
    let ports = Ports {
        toolbox: Some(tools.clone()),
        ..Ports::default()
    };
    let executor = Toy::<R3>::new(|_, event| {
        if is_message(event, |m| matches!(m, Message::SubTask(_))) {
            (0..20).map(|n| run_tool(n, "write", EffectClass::Create)).collect()
        } else if is_message(event, |m| matches!(m, Message::FinalResult(_))) {
            vec![run_tool(99, "late", EffectClass::Read), say(subtask(9))]
        } else {
            Vec::new()
        }
    });
    let _runtime = runtime(&stage.hub, ports).spawn(executor);
    tell(&stage.hub, Role::R2, subtask(0));
    tokio::time::sleep(Millis(500).to_duration()).await;
    assert_eq!(tools.ran.lock().unwrap().len(), 8);
    tell(&stage.hub, Role::R7, final_result());
    tokio::time::sleep(Millis(60_000).to_duration()).await;
    assert_eq!(tools.ran.lock().unwrap().len(), 8, "nothing was begun after the end");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_not_answered_and_others_are() {
    let stage = stage(None, 100);
    let ports = Ports {
        model: Some(ToyModel::new([Turn::Fine, Turn::Fine])),
        ..Ports::default()
    };
    let planner = Toy::<R2>::new(|_, event| {
        if is_message(event, |m| matches!(m, Message::TaskSpec(_))) {
            let cancel = Command::Cancel {
                task_id: named(),
                call: CallId(0),
            };
            vec![ask(0), ask(1), cancel]
        } else {
            Vec::new()
        }
    });
    let heard = planner.heard();
    let _runtime = runtime(&stage.hub, ports).spawn(planner);
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    let calls: Vec<_> = heard
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            Event::Answer { call, .. } => Some(*call),
            Event::Message { .. } | Event::Wake => None,
        })
        .collect();
    assert_eq!(calls, [CallId(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_when_its_answer_is_already_there_is_not_answered() {
    let stage = stage(None, 100);
    let model = ToyModel::new([Turn::Fine, Turn::Fine]);
    let ports = Ports {
        model: Some(model.clone()),
        ..Ports::default()
    };
    // Both answers are there before the role takes the first, upon which it gives the second up.
    let planner = Toy::<R2>::new(|_, event| match event {
        Event::Message { .. } => vec![ask(0), ask(1)],
        Event::Answer { call, .. } => vec![Command::Cancel {
            task_id: named(),
            call: CallId(1 - call.0),
        }],
        Event::Wake => Vec::new(),
    });
    let heard = planner.heard();
    let _runtime = runtime(&stage.hub, ports).spawn(planner);
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    assert_eq!(model.completed.load(Ordering::SeqCst), 2);
    assert_eq!(answers(&heard).len(), 1);
}

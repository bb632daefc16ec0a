//! The driver: answers, deadlines, bounds, budgets, panics.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use artoo_bus::journal::{read, summary};
use artoo_bus::{Limits, Meter, Notice, Ports, Runtime, replay_role};
use artoo_protocol::message::{BudgetKind, Cause};
use artoo_protocol::model::ModelError;
use artoo_protocol::ports::Bus;
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{Answer, Command, Event, Message, Millis, Role, TaskId, Timestamp};

use crate::toys::{
    R2, R3, R7, Stage, Toy, ToyModel, ToyTools, Turn, aborted, answers, ask, final_result, idle, is_message,
    memory_journal, metered, named, run_tool, runtime, say, stage, subtask, task_spec, tell,
};

/// R2 that gives these commands for the TaskSpec.
fn on_spec(commands: Vec<Command>) -> Toy<R2> {
    Toy::new(move |_, event| {
        if is_message(event, |m| matches!(m, Message::TaskSpec(_))) {
            commands.clone()
        } else {
            Vec::new()
        }
    })
}

fn on_subtask(commands: Vec<Command>) -> Toy<R3> {
    Toy::new(move |_, event| {
        if is_message(event, |m| matches!(m, Message::SubTask(_))) {
            commands.clone()
        } else {
            Vec::new()
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_missing_port_is_an_answer_that_says_so() {
    let stage = stage(None, 100);
    let query = artoo_protocol::message::MemoryQuery {
        task_id: named(),
        query: 7,
        space: String::new(),
        entity: String::new(),
        intent: String::new(),
        tools: Vec::new(),
    };
    let recall = Command::Recall {
        task_id: named(),
        call: artoo_protocol::CallId(2),
        query,
    };
    let role = on_spec(vec![ask(0), run_tool(1, "shell", EffectClass::Read), recall]);
    let heard = role.heard();
    let _runtime = runtime(&stage.hub, Ports::default()).spawn(role);
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    let answers = answers(&heard);
    assert_eq!(answers.len(), 3);
    for answer in answers {
        match answer {
            Answer::Model(Err(error)) => assert!(error.is_no_model(), "{error}"),
            Answer::Ran(output) => assert!(output.error.unwrap().contains("tools are not available")),
            Answer::Recalled(reply) => {
                assert_eq!(reply.query, 7);
                assert!(reply.unavailable.unwrap().contains("memory is not available"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_is_timed_by_the_driver() {
    let stage = stage(None, 100);
    let role = on_subtask(vec![run_tool(0, "shell", EffectClass::Read)]);
    let heard = role.heard();
    let ports = Ports {
        toolbox: Some(Arc::new(ToyTools::default())),
        ..Ports::default()
    };
    let _runtime = runtime(&stage.hub, ports).spawn(role);
    tell(&stage.hub, Role::R2, subtask(0));
    stage.hub.at_rest().await;
    let answers = answers(&heard);
    let [Answer::Ran(output)] = answers.as_slice() else {
        panic!("one tool ran")
    };
    assert_eq!(output.elapsed_ms, Millis(1_000));
}

#[tokio::test(start_paused = true)]
async fn model_calls_in_parallel_are_bounded() {
    let stage = stage(None, 100);
    let model = ToyModel::new((0..10).map(|_| Turn::After(Millis(50))));
    let role = on_spec((0..10).map(ask).collect());
    let heard = role.heard();
    let ports = Ports {
        model: Some(model.clone()),
        ..Ports::default()
    };
    let limits = Limits {
        model_calls: 3,
        tools: 1,
    };
    let _runtime = Runtime::new(stage.hub.clone(), ports, limits, Meter::unlimited()).spawn(role);
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    assert_eq!(answers(&heard).len(), 10);
    assert_eq!(model.most_at_once.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_an_adapter_is_an_answer_and_the_role_lives_on() {
    let stage = stage(None, 100);
    let role = on_spec(vec![ask(0)]);
    let heard = role.heard();
    let ports = Ports {
        model: Some(ToyModel::new([Turn::Panic, Turn::Fine])),
        ..Ports::default()
    };
    let _runtime = runtime(&stage.hub, ports).spawn(role);
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    let [first, second]: [Answer; 2] = answers(&heard).try_into().unwrap();
    let Answer::Model(Err(ModelError::Unusable { message })) = first else {
        panic!("{first:?}")
    };
    assert!(message.contains("the adapter broke"), "{message}");
    assert!(matches!(second, Answer::Model(Ok(_))));
    assert!(matches!(
        stage.notices.lock().unwrap()[0],
        Notice::PerformanceBroke { role: Role::R2, .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn a_role_that_panics_ends_its_task_honestly_and_serves_the_next() {
    let stage = stage(None, 100);
    let role = Toy::<R2>::new(|_, event| {
        assert!(
            !is_message(event, |m| matches!(m, Message::TaskSpec(s) if s.task_id == named())),
            "no plan for this"
        );
        Vec::new()
    });
    let heard = role.heard();
    let controller = idle::<R7>();
    let told = controller.heard();
    let _runtime = runtime(&stage.hub, Ports::default()).spawn(role).spawn(controller);
    tell(&stage.hub, Role::R1, task_spec());
    let other = TaskId::new("other_0000000b");
    let Message::TaskSpec(mut spec) = task_spec() else {
        panic!()
    };
    spec.task_id = other.clone();
    stage.hub.publish(Role::R1, Some(&other), spec.into()).unwrap();
    stage.hub.at_rest().await;
    assert_eq!(heard.lock().unwrap().len(), 2, "the role lives on");
    let told = told.lock().unwrap();
    let failed: Vec<_> = told
        .iter()
        .filter_map(|event| match event {
            Event::Message { envelope } => match &envelope.payload {
                Message::PlanningFailed(failed) => Some((envelope.from, failed.clone())),
                _ => None,
            },
            Event::Answer { .. } | Event::Wake => None,
        })
        .collect();
    let [(from, failed)] = failed.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!((*from, failed.cause), (Role::Runtime, Cause::PlanningFailed));
    assert_eq!((&failed.task_id, failed.slug.as_str()), (&named(), "count_files"));
    assert!(failed.reason.contains("Planner") && failed.reason.contains("no plan for this"));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_wakes_the_role_and_a_stuck_one_does_not_spin() {
    let stage = stage(None, 100);
    let begin = stage.hub.now();
    let role = idle::<R7>();
    let (heard, due) = (role.heard(), Arc::clone(&role.due));
    *due.lock().unwrap() = Some(begin.plus(Millis(200_000)));
    let _runtime = runtime(&stage.hub, Ports::default()).spawn(role);
    tokio::time::sleep(Millis(199_000).to_duration()).await;
    assert!(heard.lock().unwrap().is_empty());
    tokio::time::sleep(Millis(2_000).to_duration()).await;
    assert_eq!(*heard.lock().unwrap(), [Event::Wake]);
    let stuck = Notice::DeadlineStuck { role: Role::R7 };
    assert_eq!(*stage.notices.lock().unwrap(), [stuck]);
    // Another event, then another deadline: the role is woken again.
    *due.lock().unwrap() = Some(begin.plus(Millis(300_000)));
    tell(&stage.hub, Role::R1, task_spec());
    tokio::time::sleep(Millis(100_000).to_duration()).await;
    assert_eq!(heard.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_a_deadline_is_noticed_is_heard_before_it() {
    let stage = stage(None, 100);
    let role = idle::<R7>();
    let heard = role.heard();
    *role.due.lock().unwrap() = Some(stage.hub.now());
    tell(&stage.hub, Role::R1, task_spec());
    tell(&stage.hub, Role::User, aborted());
    let _runtime = runtime(&stage.hub, Ports::default()).spawn(role);
    stage.hub.at_rest().await;
    let heard = heard.lock().unwrap();
    let [first, second, Event::Wake] = heard.as_slice() else {
        panic!("{heard:?}")
    };
    assert!(is_message(first, |m| matches!(m, Message::TaskSpec(_))));
    assert!(is_message(second, |m| matches!(m, Message::TaskAborted(_))));
}

#[tokio::test(start_paused = true)]
async fn a_wake_that_ends_a_stopped_task_stands_in_its_journal() {
    let journal = memory_journal();
    let stage = stage(Some(journal.clone()), 100);
    let controller = || {
        Toy::<R7>::new(|_, event| match event {
            Event::Wake => vec![say(final_result())],
            Event::Message { .. } | Event::Answer { .. } => Vec::new(),
        })
    };
    let role = controller();
    let due = Arc::clone(&role.due);
    let _runtime = runtime(&stage.hub, Ports::default()).spawn(role);
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    *due.lock().unwrap() = Some(stage.hub.now().plus(Millis(1_000)));
    tell(&stage.hub, Role::User, aborted());
    tokio::time::sleep(Millis(2_000).to_duration()).await;
    let records = read::read(journal.text(&named()).unwrap().as_slice()).unwrap().records;
    assert!(read::has_ended(&records));
    assert_eq!(replay_role(controller(), &records), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_token_budget_that_is_reached_is_told_to_the_controller_once() {
    // What failed was paid for like what was answered, and is in the journal for whoever goes on.
    for turns in [vec![], vec![Turn::Fails, Turn::Fails, Turn::Fails]] {
        token_budget(turns).await;
    }
}

async fn token_budget(turns: Vec<Turn>) {
    let journal = memory_journal();
    let stage = stage(Some(journal.clone()), 100);
    let failed = turns.len();
    let ports = Ports {
        model: Some(ToyModel::new(turns)),
        ..Ports::default()
    };
    let controller = idle::<R7>();
    let told = controller.heard();
    let _runtime = metered(&stage.hub, ports, 150)
        .spawn(on_spec((0..4).map(ask).collect()))
        .spawn(controller);
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    let told = told.lock().unwrap();
    let reached: Vec<_> = told
        .iter()
        .filter_map(|event| match event {
            Event::Message { envelope } => match &envelope.payload {
                Message::BudgetReached(reached) => Some(reached.clone()),
                _ => None,
            },
            Event::Answer { .. } | Event::Wake => None,
        })
        .collect();
    let [reached] = reached.as_slice() else {
        panic!("{reached:?}")
    };
    assert_eq!(reached.budget, BudgetKind::Tokens);
    assert_eq!((reached.used.get(), reached.limit.get()), (200.0, 150.0));
    let records = read::read(journal.text(&named()).unwrap().as_slice()).unwrap().records;
    let costs = summary::costs(&records);
    assert_eq!((costs.usage.tokens(), costs.usage.requests), (400, 4));
    assert!(costs.calls.iter().all(|call| call.model == "toy"));
    assert_eq!(costs.calls.iter().filter(|call| !call.answered).count(), failed);
}

#[tokio::test(start_paused = true)]
async fn without_its_journal_nothing_that_leaves_something_behind_is_run() {
    let folder = tempfile::tempdir().unwrap();
    // Something else has the name of the journal: it cannot be made.
    std::fs::write(folder.path().join(format!("{}.jsonl", named())), "").unwrap();
    let options = artoo_bus::JournalOptions::new(crate::toys::clock());
    let journal = artoo_bus::Journal::in_folder(folder.path(), options).unwrap();
    let stage = stage(Some(journal), 100);
    let tools = Arc::new(ToyTools::default());
    let role = on_subtask(vec![
        run_tool(0, "reads", EffectClass::Read),
        run_tool(1, "creates", EffectClass::Create),
        run_tool(2, "modifies", EffectClass::Modify),
        run_tool(3, "destroys", EffectClass::Destroy),
        run_tool(4, "sends", EffectClass::External),
    ]);
    let heard = role.heard();
    let ports = Ports {
        toolbox: Some(tools.clone()),
        ..Ports::default()
    };
    let _runtime = runtime(&stage.hub, ports).spawn(role);
    tell(&stage.hub, Role::R2, subtask(0));
    stage.hub.at_rest().await;
    tell(&stage.hub, Role::R1, task_spec());
    assert_eq!(*tools.ran.lock().unwrap(), ["reads"]);
    let errors: Vec<_> = answers(&heard)
        .into_iter()
        .filter_map(|answer| match answer {
            Answer::Ran(output) => output.error,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(errors.len(), 4);
    assert!(
        errors.iter().all(|e| e.contains("journal of count_files_0000000a")),
        "{errors:?}"
    );
    let failures = stage
        .notices
        .lock()
        .unwrap()
        .iter()
        .filter(|n| matches!(n, Notice::JournalFailed { .. }))
        .count();
    assert_eq!(failures, 1, "told once");
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_everything_through_a_tap_and_is_not_journaled() {
    let journal = memory_journal();
    let Stage { hub, notices } = stage(Some(journal.clone()), 100);
    let observer = Toy::<6>::new(|_, _| Vec::new());
    let heard = observer.heard();
    let runtime = runtime(&hub, Ports::default()).observe(observer, 3);
    for n in 0..10 {
        tell(&hub, Role::R2, subtask(n));
    }
    hub.publish(Role::User, None, artoo_protocol::message::AuditQuery {}.into())
        .unwrap();
    runtime.shutdown(Millis(1_000)).await;
    assert_eq!(heard.lock().unwrap().len(), 3);
    let told = notices.lock().unwrap();
    assert!(matches!(told[0], Notice::TapDropping { from_seq: 4, .. }), "{told:?}");
    assert!(
        matches!(&told[1], Notice::Missed { role: Role::R6, gap } if gap.count == 8),
        "{told:?}"
    );
    let text = String::from_utf8(journal.text(&named()).unwrap()).unwrap();
    assert!(!text.contains("stepped"));
}

#[test]
fn now_is_given_to_every_step() {
    let runtime_ = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime_.block_on(async {
        let stage = stage(None, 100);
        let seen: Arc<std::sync::Mutex<Vec<Timestamp>>> = Arc::default();
        let sink = Arc::clone(&seen);
        let role = Toy::<R2>::new(move |now, _| {
            sink.lock().unwrap().push(now);
            Vec::new()
        });
        let _runtime = runtime(&stage.hub, Ports::default()).spawn(role);
        let begin = stage.hub.now();
        tokio::time::advance(Millis(5_000).to_duration()).await;
        tell(&stage.hub, Role::R1, task_spec());
        stage.hub.at_rest().await;
        assert_eq!(*seen.lock().unwrap(), [begin.plus(Millis(5_000))]);
    });
}

#[tokio::test(start_paused = true)]
async fn a_role_that_starts_late_misses_nothing() {
    let stage = stage(None, 100);
    (0..5).for_each(|n| tell(&stage.hub, Role::R2, subtask(n)));
    let role = idle::<R3>();
    let heard = role.heard();
    let _runtime = runtime(&stage.hub, Ports::default()).spawn(role);
    stage.hub.at_rest().await;
    assert_eq!(heard.lock().unwrap().len(), 5);
}

/// What R2 and R3 hear and do in a small task, told by the journal, and what an observer was told.
async fn small_task(
    observer: impl FnOnce(&artoo_bus::Hub) -> Option<artoo_bus::Tap>,
) -> (String, Vec<artoo_bus::TapItem>) {
    let journal = memory_journal();
    let stage = stage(Some(journal.clone()), 100);
    let mut tap = observer(&stage.hub);
    let tools = Arc::new(ToyTools::default());
    let ports = Ports {
        model: Some(ToyModel::new([])),
        toolbox: Some(tools.clone()),
        ..Ports::default()
    };
    let _runtime = runtime(&stage.hub, ports)
        .spawn(on_spec(vec![
            ask(0),
            crate::toys::say(subtask(1)),
            crate::toys::say(subtask(2)),
        ]))
        .spawn(on_subtask(vec![run_tool(1, "shell", EffectClass::Read)]));
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    let told = std::iter::from_fn(|| tap.as_mut()?.try_recv()).collect();
    let text = String::from_utf8(journal.text(&named()).unwrap()).unwrap();
    // Ids are random; everything else must be the same to the byte.
    let story = text.lines().map(|line| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(id) = record.pointer_mut("/envelope/id") {
            *id = serde_json::Value::Null;
        }
        record.to_string()
    });
    (story.collect::<Vec<_>>().join("\n"), told)
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_never_reads_or_has_died_changes_nothing() {
    let (alone, _) = small_task(|_| None).await;
    assert!(alone.contains("\"shell\"") && alone.lines().count() > 6, "{alone}");
    let (stuck, told) = small_task(|hub| Some(hub.tap_with_deeds("stuck", 1))).await;
    assert_eq!(stuck, alone, "a tap that is full");
    assert_eq!(told.len(), 2, "one message, and the gap behind it: {told:?}");
    let (dead, _) = small_task(|hub| {
        drop(hub.tap_with_deeds("dead", 1));
        None
    })
    .await;
    assert_eq!(dead, alone, "a tap whose reader is gone");
}

#[tokio::test(start_paused = true)]
async fn only_a_tap_on_deeds_hears_what_roles_do_and_a_gap_counts_them_apart() {
    use artoo_bus::TapItem;
    use artoo_protocol::Act;
    let (_, told) = small_task(|hub| Some(hub.tap("messages", 100))).await;
    assert!(
        told.len() == 3 && told.iter().all(|item| matches!(item, TapItem::Envelope(_))),
        "{told:?}"
    );
    let (_, told) = small_task(|hub| Some(hub.tap_with_deeds("all", 100))).await;
    let deeds = told.iter().filter_map(|item| match item {
        TapItem::Deed(deed) => Some((deed.role, deed.act.name())),
        TapItem::Envelope(_) | TapItem::Gap(_) => None,
    });
    let mut deeds: Vec<_> = deeds.collect();
    deeds.sort_unstable();
    let ran = (Role::R3, "tool_run");
    assert_eq!(
        deeds,
        [(Role::R2, "model_answered"), (Role::R2, "model_asked"), ran, ran]
    );
    // The task's own id and who it was stand in each.
    let asked = told.iter().find_map(|item| match item {
        TapItem::Deed(deed) if matches!(deed.act, Act::ModelAsked { .. }) => Some(deed.clone()),
        _ => None,
    });
    assert_eq!(asked.unwrap().task_id, Some(named()));
    let (_, told) = small_task(|hub| Some(hub.tap_with_deeds("narrow", 1))).await;
    let Some(TapItem::Gap(gap)) = told.last() else {
        panic!("{told:?}")
    };
    assert_eq!((gap.from_seq, gap.to_seq, gap.count, gap.deeds), (2, 3, 2, 4));
}

#[tokio::test(start_paused = true)]
async fn what_the_dreamer_asks_is_a_deed_of_memory() {
    use artoo_bus::TapItem;
    use artoo_protocol::{Act, CallId};
    let stage = stage(None, 100);
    let mut tap = stage.hub.tap_with_deeds("all", 10);
    let form = "sop".to_owned();
    stage.hub.dreamt(Act::ModelAsked { call: CallId(1), form });
    let Some(TapItem::Deed(deed)) = tap.try_recv() else {
        panic!("nothing")
    };
    assert_eq!(
        (deed.role, &deed.task_id, deed.act.name()),
        (Role::R5, &None, "model_asked")
    );
}

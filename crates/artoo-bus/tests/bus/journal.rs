//! What stands in a journal, in which order, and what is left of it after a crash.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use artoo_bus::journal::read::{self, ReadError};
use artoo_bus::journal::summary::{Status, TaskSummary};
use artoo_bus::journal::{Journal, JournalError, JournalOptions, Redactor, Resumption};
use artoo_bus::{Hub, Ports, TapItem, TokioClock};
use artoo_protocol::journal::{Entry, Record, StepCause};
use artoo_protocol::message::{ConfirmationRequest, Consent, Ending, TaskResumed};
use artoo_protocol::ports::Clock;
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{Command, Event, Message, Millis, Role, SubTaskId};
use proptest::prelude::*;

use crate::toys::{
    R2, R3, Toy, ToyModel, ToyTools, Turn, ask, ask_with, clock, final_result, is_message, memory_journal, named,
    provisional, run_tool, runtime, say, stage, subtask, task_spec, tell, user_input,
};

fn open(folder: &Path, secrets: &[&str]) -> Journal {
    let options = JournalOptions {
        redactor: Redactor::new(secrets.iter().map(|&s| s.to_owned())),
        settings: serde_json::json!({ "delta": 0.3 }),
        ..JournalOptions::new(clock())
    };
    Journal::in_folder(folder, options).unwrap()
}

/// A line per record: enough to see the order.
fn shape(records: &[Record]) -> Vec<String> {
    records
        .iter()
        .map(|record| match &record.entry {
            Entry::Opened { task_id, .. } => format!("opened {task_id}"),
            Entry::Published { envelope } => format!("published {}", envelope.payload.kind().name()),
            Entry::Commanded { role, command } => match command {
                Command::CallModel { call, .. } => format!("{role} asks {call}"),
                Command::RunTool { call, .. } => format!("{role} runs {call}"),
                other => format!("{role} {other:?}"),
            },
            Entry::Answered { role, call, .. } => format!("{role} answered {call}"),
            Entry::Stepped { role, cause, .. } => match cause {
                StepCause::Message { seq } => format!("{role} steps on message {seq}"),
                StepCause::Answer { call } => format!("{role} steps on answer {call}"),
                StepCause::Wake => format!("{role} steps on wake"),
            },
            Entry::Closed { reason } => format!("closed: {reason}"),
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn everything_is_written_before_it_takes_effect_and_the_end_comes_last() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = folder.path().join("tasks");
    let journal = open(&tasks, &[]);
    let stage = stage(Some(journal.clone()), 100);
    let planner = Toy::<R2>::new(|_, event| match event {
        Event::Message { envelope } if matches!(envelope.payload, Message::TaskSpec(_)) => vec![ask(0)],
        Event::Answer { .. } => vec![say(subtask(1))],
        Event::Message { .. } | Event::Wake => Vec::new(),
    });
    let executor = Toy::<R3>::new(|_, event| {
        if is_message(event, |m| matches!(m, Message::SubTask(_))) {
            vec![run_tool(0, "rm", EffectClass::Destroy)]
        } else {
            Vec::new()
        }
    });
    let ports = Ports {
        model: Some(ToyModel::new([Turn::After(Millis(2_000))])),
        toolbox: Some(Arc::new(ToyTools::default())),
        ..Ports::default()
    };
    let runtime = runtime(&stage.hub, ports).spawn(planner).spawn(executor);
    tell(&stage.hub, Role::User, user_input("how many files?"));
    assert!(tasks.join("input_0000000a.jsonl").exists());
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    assert_eq!(
        journal.path(&provisional()),
        Some(tasks.join("count_files_0000000a.jsonl"))
    );
    tell(&stage.hub, Role::R7, final_result());
    let report = runtime.shutdown(Millis(1_000)).await;
    report.journal.unwrap();
    assert!(report.at_rest && report.open_tasks.is_empty());

    let found = read::list(&tasks).unwrap();
    assert_eq!(found.len(), 1, "renamed, not copied");
    assert_eq!(found[0].task_id, named());
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&tasks), mode(&found[0].path)), (0o700, 0o600));
    let contents = read::read_file(&found[0].path).unwrap();
    let expect = [
        "opened input_0000000a",
        "published UserInput",
        "published TaskSpec",
        "R2 steps on message 2",
        "R2 asks 0",
        "R2 answered 0",
        "R2 steps on answer 0",
        "published SubTask",
        "R3 steps on message 3",
        "R3 runs 0",
        "R3 answered 0",
        "R3 steps on answer 0",
        "published FinalResult",
        "closed: the task has ended",
    ];
    assert_eq!(shape(&contents.records), expect);

    let summary = TaskSummary::of(&contents.records).unwrap();
    assert_eq!(summary.task_id, named());
    assert_eq!(
        (summary.status, summary.directive),
        (Status::Finished, Some(Ending::Accept))
    );
    assert_eq!(
        (summary.input.as_str(), summary.intent.as_str()),
        ("how many files?", "count the files")
    );
    let costs = summary.costs;
    assert_eq!(
        (costs.total, costs.model, costs.tools, costs.own),
        (Millis(3_000), Millis(2_000), Millis(1_000), Millis(0))
    );
    assert_eq!((costs.calls.len(), costs.sequential_calls), (1, 1));
    assert_eq!((costs.usage.input_tokens, costs.usage.output_tokens), (90, 10));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_after_the_end() {
    let journal = memory_journal();
    let stage = stage(Some(journal.clone()), 100);
    tell(&stage.hub, Role::User, user_input("x"));
    tell(&stage.hub, Role::R7, final_result());
    let before = journal.text(&named()).unwrap();
    tell(&stage.hub, Role::R1, task_spec());
    tell(&stage.hub, Role::User, user_input("x"));
    assert_eq!(journal.text(&named()).unwrap(), before);
    let records = read::read(before.as_slice()).unwrap().records;
    assert_eq!(
        shape(&records[records.len() - 2..]),
        ["published FinalResult", "closed: the task has ended"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_secret_never_reaches_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(folder.path(), &["my \"secret\" phrase"]);
    let stage = stage(Some(journal), 100);
    let planner = Toy::<R2>::new(|_, event| {
        if is_message(event, |m| matches!(m, Message::TaskSpec(_))) {
            vec![ask_with(0, "key sk-abcdefghijklmnopqrstuvwx and my \"secret\" phrase")]
        } else {
            Vec::new()
        }
    });
    let runtime = runtime(&stage.hub, Ports::default()).spawn(planner);
    tell(&stage.hub, Role::User, user_input("use my \"secret\" phrase"));
    tell(&stage.hub, Role::R1, task_spec());
    runtime.shutdown(Millis(1_000)).await.journal.unwrap();
    let found = read::find(folder.path(), &named()).unwrap().unwrap();
    let text = std::fs::read_to_string(&found.path).unwrap();
    assert!(!text.contains("secret") && !text.contains("sk-abc"), "{text}");
    let records = read::read_file(&found.path).unwrap().records;
    let summary = TaskSummary::of(&records).unwrap();
    assert_eq!(summary.input, "use ******************");
    assert_eq!(summary.status, Status::Interrupted);
    let masked: Vec<u64> = records.iter().filter(|r| r.masked).map(|r| r.n).collect();
    assert_eq!(
        masked,
        [2, 5],
        "the input and the call, and nothing else: {:#?}",
        shape(&records)
    );
}

/// Whoever went on would act on asterisks; a task that was stopped does nothing more and can be ended.
#[tokio::test(start_paused = true)]
async fn nobody_goes_on_from_what_was_masked() {
    let folder = tempfile::tempdir().unwrap();
    let first = stage(Some(open(folder.path(), &["hunter2hunter2"])), 100);
    tell(&first.hub, Role::User, user_input("write hunter2hunter2 into the file"));
    tell(&first.hub, Role::R1, task_spec());
    drop(first);
    let journal = open(folder.path(), &[]);
    let path = folder.path().join(format!("{}.jsonl", named()));
    let before = std::fs::read(&path).unwrap();
    let refused = journal.resume(&named(), &Resumption::default());
    assert!(
        matches!(refused, Err(JournalError::Masked { record: 2, .. })),
        "{refused:?}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    journal.stop(&named(), "no more").unwrap();
    journal.resume(&named(), &Resumption::default()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_stops_an_interrupted_task_stops_it_once_and_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let first = stage(Some(open(folder.path(), &[])), 100);
    tell(&first.hub, Role::User, user_input("x"));
    tell(&first.hub, Role::R1, task_spec());
    drop(first);
    let path = folder.path().join(format!("{}.jsonl", named()));
    for _ in 0..2 {
        open(folder.path(), &[]).stop(&named(), "it was undone").unwrap();
        let records = read::read_file(&path).unwrap().records;
        assert_eq!(shape(&records)[3..], ["published TaskAborted"]);
        assert!(read::was_stopped(&records) && !read::has_ended(&records));
    }
    let missing = open(folder.path(), &[]).stop(&artoo_protocol::TaskId::new("other_0000000b"), "x");
    assert!(matches!(missing, Err(JournalError::NotOpen(_))), "{missing:?}");
}

/// What the person was asked before a task goes on stands behind the message that it does, and observers hear of it.
#[tokio::test(start_paused = true)]
async fn what_was_settled_before_a_task_goes_on_is_written_down_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let first = stage(Some(open(folder.path(), &[])), 100);
    tell(&first.hub, Role::User, user_input("x"));
    tell(&first.hub, Role::R1, task_spec());
    drop(first);
    let request = ConfirmationRequest {
        request_id: "resume-3".into(),
        task_id: named(),
        subtask_id: SubTaskId::new("s"),
        tool: "shell".into(),
        effect: EffectClass::Destroy,
        action: "rm x".into(),
        reason: "it was interrupted".into(),
        grant: None,
    };
    let with = Resumption {
        person_present: Some(true),
        settled: vec![(request, Consent::Yes)],
    };
    let records = open(folder.path(), &[]).resume(&named(), &with).unwrap();
    let expect = [
        "published TaskResumed",
        "published ConfirmationRequest",
        "published ConfirmationAnswer",
    ];
    assert_eq!(shape(&records)[3..], expect);
    assert!(read::open_questions(&records).is_empty());
    let next = stage(None, 100);
    let mut tap = next.hub.tap("observer", 10);
    let mut inbox = next.hub.inbox(Role::R7).unwrap();
    let said: Vec<_> = records[3..]
        .iter()
        .filter_map(|record| match &record.entry {
            Entry::Published { envelope } => Some(envelope),
            _ => None,
        })
        .collect();
    assert!(matches!(
        &said[0].payload,
        Message::TaskResumed(TaskResumed {
            person_present: Some(true),
            ..
        })
    ));
    for envelope in &said {
        assert!(artoo_protocol::route(envelope.payload.kind(), envelope.from).is_some_and(|r| r.to == envelope.to));
        next.hub.show(envelope);
        assert_eq!(tap.try_recv(), Some(TapItem::Envelope(Arc::new((*envelope).clone()))));
    }
    assert_eq!(said.iter().map(|envelope| envelope.seq).collect::<Vec<_>>(), [3, 4, 5]);
    assert!(inbox.try_recv().is_none(), "no role hears it twice");
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_read_again_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let stage = stage(Some(open(folder.path(), &[])), 100);
    let deep = (0..125).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
    let planner = Toy::<R2>::new(move |_, event| {
        if is_message(event, |m| matches!(m, Message::TaskSpec(_))) {
            vec![with_input(deep.clone())]
        } else {
            Vec::new()
        }
    });
    let ports = Ports {
        toolbox: Some(Arc::new(ToyTools::default())),
        ..Ports::default()
    };
    let runtime = runtime(&stage.hub, ports).spawn(planner);
    tell(&stage.hub, Role::User, user_input("x"));
    tell(&stage.hub, Role::R1, task_spec());
    let closed = runtime.shutdown(Millis(1_000)).await.journal.unwrap_err().to_string();
    assert!(closed.contains("nested"), "{closed}");
    let found = read::find(folder.path(), &named()).unwrap().unwrap();
    let records = read::read_file(&found.path).unwrap().records;
    assert_eq!(shape(&records)[3..], ["R2 steps on message 2"]);
}

fn with_input(input: serde_json::Value) -> Command {
    let mut command = run_tool(0, "look", EffectClass::Read);
    if let Command::RunTool { invocation, .. } = &mut command {
        invocation.input = input;
    }
    command
}

fn two_tasks_worth() -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _context = runtime.enter();
    let journal = memory_journal();
    let stage = stage(Some(journal.clone()), 100);
    tell(&stage.hub, Role::User, user_input("größer als 3 ☃"));
    tell(&stage.hub, Role::R1, task_spec());
    tell(&stage.hub, Role::R2, subtask(1));
    tell(&stage.hub, Role::R7, final_result());
    journal.text(&named()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A process killed at any byte leaves a journal that can be read up to its last whole line.
    #[test]
    fn a_write_cut_anywhere_leaves_a_readable_journal(share in 0.0..1.0_f64) {
        let text = two_tasks_worth();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small length")]
        let cut = &text[..(text.len() as f64 * share) as usize];
        let contents = read::read(cut).unwrap();
        let whole = cut.split(|&b| b == b'\n').count() - 1;
        prop_assert_eq!(contents.records.len(), whole);
        prop_assert_eq!(contents.torn, cut.last().is_some_and(|&b| b != b'\n'));
        prop_assert_eq!(&read::read(text.as_slice()).unwrap().records[..whole], &contents.records[..]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_journal_goes_on_behind_its_last_whole_line() {
    let folder = tempfile::tempdir().unwrap();
    let first = stage(Some(open(folder.path(), &[])), 100);
    tell(&first.hub, Role::User, user_input("x"));
    tell(&first.hub, Role::R1, task_spec());
    drop(first);
    let path = folder.path().join("count_files_0000000a.jsonl");
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(br#"{"n":4,"at":"2026-02-"#);
    std::fs::write(&path, &text).unwrap();

    let journal = open(folder.path(), &[]);
    let records = journal.resume(&provisional(), &Resumption::default()).unwrap();
    assert_eq!(records.len(), 4);
    let options = artoo_bus::HubOptions {
        journal: Some(journal.clone()),
        first_seq: 4,
        ..artoo_bus::HubOptions::default()
    };
    let hub = Hub::new(clock(), options);
    tell(&hub, Role::R2, subtask(1));
    tell(&hub, Role::R7, final_result());
    journal.close("done").await.unwrap();
    let contents = read::read_file(&path).unwrap();
    assert!(!contents.torn);
    let expect = [
        "opened input_0000000a",
        "published UserInput",
        "published TaskSpec",
        "published TaskResumed",
        "published SubTask",
        "published FinalResult",
        "closed: the task has ended",
    ];
    assert_eq!(shape(&contents.records), expect);
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_was_not_yet_renamed_gets_its_name_when_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let first = stage(Some(open(folder.path(), &[])), 100);
    tell(&first.hub, Role::User, user_input("x"));
    tell(&first.hub, Role::R1, task_spec());
    drop(first);
    let (old, new) = ("input_0000000a.jsonl", "count_files_0000000a.jsonl");
    std::fs::rename(folder.path().join(new), folder.path().join(old)).unwrap();
    let journal = open(folder.path(), &[]);
    let records = journal.resume(&provisional(), &Resumption::default()).unwrap();
    assert!(folder.path().join(new).exists() && !folder.path().join(old).exists());
    let Some(Entry::Published { envelope }) = records.last().map(|record| &record.entry) else {
        panic!("the last record says that the task goes on")
    };
    assert_eq!(envelope.task_id.as_ref(), Some(&named()));
}

#[test]
fn a_damaged_line_is_named_and_unknown_fields_are_not_damage() {
    let text = String::from_utf8(two_tasks_worth()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let grown = lines[1].replacen("{\"n\"", "{\"later\":{\"x\":[1]},\"n\"", 1);
    lines[1] = &grown;
    let joined = lines.join("\n") + "\n";
    assert_eq!(read::read(joined.as_bytes()).unwrap().records.len(), lines.len());
    let check = |line: &str, expect: &str| {
        let mut lines = lines.clone();
        lines[2] = line;
        let error = read::read((lines.join("\n") + "\n").as_bytes()).unwrap_err();
        assert!(matches!(error, ReadError::Damaged { line: 3, .. }));
        let salvaged = read::salvage((lines.join("\n") + "\n").as_bytes());
        assert_eq!(salvaged.contents.records.len(), 2, "what stands before it is kept");
        assert_eq!(salvaged.damage.unwrap().to_string(), error.to_string());
        assert!(error.to_string().contains(expect), "{error}");
    };
    check("{\"n\":3,", "EOF");
    check(lines[3], "it says that it is record 4");
    let newer = text.replacen("\"format\":1", "\"format\":99", 1);
    assert!(matches!(
        read::read(newer.as_bytes()),
        Err(ReadError::TooNew { found: 99 })
    ));
}

#[tokio::test(start_paused = true)]
async fn sequential_calls_are_the_longest_chain_and_overlap_counts_once() {
    let journal = memory_journal();
    let stage = stage(Some(journal.clone()), 100);
    // One call, then three at once, then one more.
    let planner = Toy::<R2>::new({
        let mut answered = 0;
        move |_, event| match event {
            Event::Message { envelope } if matches!(envelope.payload, Message::TaskSpec(_)) => vec![ask(0)],
            Event::Answer { .. } => {
                answered += 1;
                match answered {
                    1 => vec![ask(1), ask(2), ask(3)],
                    4 => vec![ask(4)],
                    _ => Vec::new(),
                }
            }
            Event::Message { .. } | Event::Wake => Vec::new(),
        }
    });
    let model = ToyModel::new([10, 20, 70, 30, 40].map(|ms| Turn::After(Millis(ms))));
    let ports = Ports {
        model: Some(model),
        ..Ports::default()
    };
    let runtime = runtime(&stage.hub, ports).spawn(planner);
    tell(&stage.hub, Role::R1, task_spec());
    stage.hub.at_rest().await;
    tokio::time::sleep(Millis(5).to_duration()).await;
    runtime.shutdown(Millis(1_000)).await;
    let text = journal.text(&named()).unwrap();
    let costs = TaskSummary::of(&read::read(text.as_slice()).unwrap().records)
        .unwrap()
        .costs;
    assert_eq!((costs.calls.len(), costs.sequential_calls), (5, 3));
    let critical: Vec<bool> = costs.calls.iter().map(|call| call.critical).collect();
    assert_eq!(critical, [true, false, true, false, true], "of the three the slowest");
    assert_eq!(
        (costs.model, costs.own, costs.total),
        (Millis(120), Millis(5), Millis(125))
    );
}

#[tokio::test]
async fn an_action_that_cannot_be_taken_back_is_on_disk_before_it_is_done() {
    // The tool reads the journal's file as another process would see it after a crash at this very moment.
    struct Looking(std::path::PathBuf, std::sync::Mutex<Vec<String>>);
    #[async_trait::async_trait]
    impl artoo_protocol::ports::Toolbox for Looking {
        fn specs(&self) -> Vec<artoo_protocol::tool::ToolSpec> {
            Vec::new()
        }
        async fn assess(&self, _: &artoo_protocol::tool::Invocation) -> artoo_protocol::tool::Assessment {
            panic!("not asked for")
        }
        async fn run(
            &self,
            _: &artoo_protocol::tool::Invocation,
            _: artoo_protocol::tool::Permit,
        ) -> artoo_protocol::tool::ToolOutput {
            *self.1.lock().unwrap() = shape(&read::read_file(&self.0).unwrap().records);
            artoo_protocol::tool::ToolOutput::default()
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let tools = Arc::new(Looking(
        folder.path().join("count_files_0000000a.jsonl"),
        std::sync::Mutex::default(),
    ));
    let stage = stage(Some(open(folder.path(), &[])), 100);
    let executor = Toy::<R3>::new(|_, event| {
        if is_message(event, |m| matches!(m, Message::SubTask(_))) {
            vec![run_tool(0, "rm", EffectClass::Destroy)]
        } else {
            Vec::new()
        }
    });
    let ports = Ports {
        toolbox: Some(tools.clone()),
        ..Ports::default()
    };
    let _runtime = runtime(&stage.hub, ports).spawn(executor);
    tell(&stage.hub, Role::R2, subtask(0));
    stage.hub.at_rest().await;
    assert_eq!(tools.1.lock().unwrap().last().unwrap(), "R3 runs 0");
}

#[test]
fn the_clock_of_tests_starts_where_it_is_told() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let _context = runtime.enter();
    let origin = artoo_protocol::Timestamp::from_millis(1_000);
    assert_eq!(TokioClock::starting_at(origin).now(), origin);
}

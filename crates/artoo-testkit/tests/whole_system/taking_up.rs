//! Journals of simulated worlds, cut behind any record and taken up by the runtime that programs use: each task ends, and the whole
//! journal, with what was written by both, gives the same decisions again.
//!
//! The simulation follows the rules of the real driver and is not it; this holds the two together.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use artoo_bus::journal::{Resumption, read};
use artoo_bus::{Hub, HubOptions, Journal, JournalOptions, Limits, Meter, Ports, Runtime, TokioClock};
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::{ClarificationAnswer, ConfirmationAnswer, Consent};
use artoo_protocol::model::{ModelError, ModelReply, ModelRequest};
use artoo_protocol::ports::{Bus, CheckRunner, LanguageModel, Toolbox};
use artoo_protocol::tool::{Assessment, CheckReport, CheckRequest, Invocation, Permit, ToolOutput, ToolSpec};
use artoo_protocol::{Command, Message, Millis, Role, TaskId};
use artoo_testkit::machine::{self, Machine};
use artoo_testkit::scripted::{form_name, tool_results};
use artoo_testkit::trial::Trial;
use artoo_testkit::{Scripted, Settings, chaos, laws, structured, whole};
use async_trait::async_trait;
use serde_json::json;

use crate::support::{one_file, plan, say, shell, step, task_spec, write};

/// The make-believe computer behind the ports.
#[derive(Default)]
struct Computer(Mutex<Machine>);

#[async_trait]
impl Toolbox for Computer {
    fn specs(&self) -> Vec<ToolSpec> {
        machine::tools()
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        self.0.lock().unwrap().assess(invocation)
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        self.0.lock().unwrap().run(invocation, permit)
    }
}

#[async_trait]
impl CheckRunner for Computer {
    async fn run(&self, request: &CheckRequest) -> CheckReport {
        self.0.lock().unwrap().check(request)
    }
}

/// Whoever goes on is a good model, whatever the one before was; a plan that failed before is not given again.
struct Good(Mutex<u32>);

#[async_trait]
impl LanguageModel for Good {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let plans = || {
            let mut given = self.0.lock().unwrap();
            *given += 1;
            match *given {
                1 => one_file(),
                n => plan(&[step(
                    1,
                    &format!("Go way {n} to the number"),
                    &[
                        json!({"criterion": "number.txt exists", "check": {"kind": "file_exists", "path": "number.txt"}}),
                    ],
                )]),
            }
        };
        match form_name(request) {
            "task_spec" => Ok(structured(task_spec())),
            "plan" => Ok(structured(plans())),
            "partial_result" => Ok(structured(
                json!({"achieved": "a little", "failed": "the rest", "next_steps": []}),
            )),
            "tools" => Ok(match tool_results(request) {
                0 => shell("wc notes.txt"),
                1 => write("number.txt", "42"),
                _ => say("42"),
            }),
            _ => Scripted::default().judges(|_| true).answer(request),
        }
    }
}

/// What a real process makes of these records: all of them with what it added.
async fn taken_up(records: &[Record]) -> Vec<Record> {
    let task = read::task_id(records).unwrap().clone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{task}.jsonl"));
    let lines = records
        .iter()
        .map(|record| serde_json::to_string(record).unwrap() + "\n");
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    let clock = Arc::new(TokioClock::starting_at(records.last().unwrap().at.plus(Millis(60_000))));
    let journal = Journal::in_folder(folder.path(), JournalOptions::new(clock.clone())).unwrap();
    let resumed = journal.resume(&task, &Resumption::default()).unwrap();
    let options = HubOptions {
        journal: Some(journal),
        first_seq: read::last_seq(&resumed) + 1,
        ..HubOptions::default()
    };
    let hub = Hub::new(clock, options);
    let mut person = hub.inbox(Role::User).unwrap();
    let computer = Arc::new(Computer::default());
    let ports = Ports {
        model: Some(Arc::new(Good(Mutex::new(0)))),
        toolbox: Some(Arc::clone(&computer) as Arc<dyn Toolbox>),
        checks: Some(computer as Arc<dyn CheckRunner>),
        memory: None,
        shelf: None,
    };
    let limits = Limits {
        model_calls: 4,
        tools: 4,
    };
    let runtime = Runtime::new(hub.clone(), ports, limits, Meter::unlimited());
    let runtime = whole::host_again(&Settings::default(), runtime, &resumed).unwrap();
    for question in read::open_questions(&resumed) {
        answer(&hub, &task, &question);
    }
    loop {
        let heard = person.recv().await.unwrap();
        if matches!(heard.payload, Message::FinalResult(_)) {
            break;
        }
        answer(&hub, &task, &heard.payload);
    }
    let report = runtime.shutdown(Millis::from_seconds(60)).await;
    assert!(report.at_rest && report.broken_drivers.is_empty(), "{report:?}");
    report.journal.unwrap();
    read::read_file(&read::find(folder.path(), &task).unwrap().unwrap().path)
        .unwrap()
        .records
}

/// A person who says yes.
fn answer(hub: &Hub, task: &TaskId, question: &Message) {
    let said: Message = match question {
        Message::ConfirmationRequest(request) => ConfirmationAnswer {
            request_id: request.request_id.clone(),
            task_id: task.clone(),
            consent: Consent::Yes,
        }
        .into(),
        Message::ClarificationRequest(request) => ClarificationAnswer {
            task_id: task.clone(),
            round: request.round,
            text: "the notes".to_owned(),
        }
        .into(),
        _ => return,
    };
    hub.publish(Role::User, Some(task), said).unwrap();
}

fn on_stopped_time<T>(run: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run)
}

/// Journals of worlds with one task and everything that can happen in it but limits, which are another process's.
fn journals() -> impl Iterator<Item = (u64, Vec<Record>)> {
    (0..).filter_map(|seed| {
        let mut trial = Trial::of(seed);
        trial.tasks.truncate(1);
        trial.faults.clear();
        (trial.max_tokens, trial.max_cents, trial.cut) = (None, None, None);
        let run = chaos::play_trial(&trial).unwrap();
        let (_, records) = run.world.journals.all().next()?;
        Some((seed, records.to_vec()))
    })
}

/// What stands at the end of a cut journal, in a word: the worlds are sampled so that every kind of record is met.
fn kind(record: &Record) -> String {
    match &record.entry {
        Entry::Published { envelope } => format!("{} of {}", envelope.payload.kind().name(), envelope.from),
        Entry::Commanded { role, command } => format!("{} by {role}", name(command)),
        Entry::Answered { role, answer, .. } => format!("answer to {role}: {:.8}", format!("{answer:?}")),
        Entry::Stepped { role, .. } => format!("step of {role}"),
        Entry::Opened { .. } | Entry::Closed { .. } => "frame".to_owned(),
    }
}

fn name(command: &Command) -> String {
    let value = serde_json::to_value(command).unwrap();
    value["kind"].as_str().unwrap().to_owned()
}

/// Cuts at every kind of record in several worlds, and at every record of one.
#[test]
fn a_journal_cut_behind_any_record_is_taken_up_by_the_real_runtime_and_replays() {
    let settings = Settings::default();
    let offered = whole::offered();
    let (mut kinds, mut pending) = (BTreeSet::new(), 0);
    for (at, (seed, records)) in journals().take(40).enumerate() {
        for length in 2..records.len() {
            let cut = &records[..length];
            // Behind a step what it wanted is still to be done.
            let stores = matches!(
                &records[length].entry,
                Entry::Commanded {
                    command: Command::Store { .. },
                    ..
                }
            );
            let new = kinds.insert((kind(cut.last().unwrap()), stores));
            if laws::has_end(cut) || !(new || stores || (at == 3 && records.len() < 300)) {
                continue;
            }
            pending += usize::from(stores);
            let whole = on_stopped_time(taken_up(cut));
            let what = format!("world {seed}, cut behind record {length} of {}", records.len());
            assert!(laws::has_end(&whole), "{what}");
            assert_eq!(laws::broken(&whole, &offered), Vec::<String>::new(), "{what}");
            assert_eq!(whole::replayed(&settings, &whole).unwrap(), [], "{what}");
        }
    }
    assert!(pending > 0, "no memory was about to be written");
    assert!(kinds.len() > 40, "the cuts are all alike: {kinds:?}");
}

//! Toy roles, toy ports and ready-made messages. Must not hold assertions.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use artoo_bus::{
    Budget, Hub, HubOptions, Journal, JournalOptions, Limits, Meter, Notice, Phase, Ports, Price, Runtime, TokioClock,
};
use artoo_protocol::message::{
    Cause, Ending, FinalResult, Loss, MustNot, PreviousDirective, SubTask, TaskAborted, TaskSpec, UserInput,
};
use artoo_protocol::model::{AnswerForm, ModelContent, ModelError, ModelReply, ModelRequest, Tier, Usage};
use artoo_protocol::ports::{Bus, LanguageModel, Toolbox};
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, Reach, ToolOutput, ToolSpec};
use artoo_protocol::{
    Actor, Answer, CallId, Command, Event, Finite, Message, Millis, Role, Slug, SubTaskId, TaskId, Timestamp,
};
use async_trait::async_trait;
use serde_json::Value;

pub const R2: usize = 1;
pub const R3: usize = 2;
pub const R7: usize = 7;

type Step = Box<dyn FnMut(Timestamp, &Event) -> Vec<Command> + Send>;

/// A role whose transition is a closure; it remembers what it was told.
pub struct Toy<const ROLE: usize> {
    step: Step,
    pub heard: Arc<Mutex<Vec<Event>>>,
    pub due: Arc<Mutex<Option<Timestamp>>>,
}

impl<const ROLE: usize> Toy<ROLE> {
    pub fn new(step: impl FnMut(Timestamp, &Event) -> Vec<Command> + Send + 'static) -> Self {
        Self {
            step: Box::new(step),
            heard: Arc::default(),
            due: Arc::default(),
        }
    }

    pub fn heard(&self) -> Arc<Mutex<Vec<Event>>> {
        Arc::clone(&self.heard)
    }
}

impl<const ROLE: usize> Actor for Toy<ROLE> {
    type Effect = Command;
    const ROLE: Role = Role::ALL[ROLE];

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Command> {
        self.heard.lock().unwrap().push(event.clone());
        (self.step)(now, &event)
    }

    fn deadline(&self) -> Option<Timestamp> {
        *self.due.lock().unwrap()
    }

    fn open_tasks(&self) -> usize {
        0
    }
}

/// A role that ignores everything.
pub fn idle<const ROLE: usize>() -> Toy<ROLE> {
    Toy::new(|_, _| Vec::new())
}

/// What a model does, call after call; when the list is used up it says `fine`.
pub struct ToyModel {
    pub script: Mutex<VecDeque<Turn>>,
    pub begun: AtomicUsize,
    pub at_once: AtomicUsize,
    pub most_at_once: AtomicUsize,
    pub completed: AtomicUsize,
}

pub enum Turn {
    Fine,
    After(Millis),
    Panic,
    /// Fails after 90 tokens in and 10 out.
    Fails,
    /// Does this in the very moment of answering.
    Doing(Box<dyn FnOnce() + Send>),
}

impl ToyModel {
    pub fn new(script: impl IntoIterator<Item = Turn>) -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::new(script.into_iter().collect()),
            begun: AtomicUsize::new(0),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            completed: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl LanguageModel for ToyModel {
    async fn complete(&self, _request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let turn = self.script.lock().unwrap().pop_front().unwrap_or(Turn::Fine);
        self.begun.fetch_add(1, Ordering::SeqCst);
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        match turn {
            Turn::Fine => {}
            Turn::After(span) => tokio::time::sleep(span.to_duration()).await,
            Turn::Panic => panic!("the adapter broke"),
            Turn::Fails => {
                let refusal = ModelError::Unusable {
                    message: "refusal".into(),
                };
                let usage = Usage {
                    input_tokens: 90,
                    output_tokens: 10,
                    requests: 1,
                    ..Usage::default()
                };
                self.at_once.fetch_sub(1, Ordering::SeqCst);
                return Err(refusal.charged("toy", usage));
            }
            Turn::Doing(this) => this(),
        }
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        self.completed.fetch_add(1, Ordering::SeqCst);
        Ok(ModelReply {
            content: ModelContent::Text { text: "fine".into() },
            model: "toy".into(),
            usage: Usage {
                input_tokens: 90,
                output_tokens: 10,
                cached_tokens: 0,
                requests: 1,
                estimated: false,
            },
            elapsed_ms: Millis(0),
        })
    }
}

/// Tools that take a second and write down what they were really made to do.
#[derive(Default)]
pub struct ToyTools {
    pub ran: Mutex<Vec<String>>,
}

#[async_trait]
impl Toolbox for ToyTools {
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        Assessment {
            effect: EffectClass::Read,
            reach: Reach::Nowhere,
            action: invocation.tool.clone(),
            reason: String::new(),
            programs: Vec::new(),
            targets: Vec::new(),
            invalid: None,
            fingerprint: 0,
        }
    }

    async fn run(&self, invocation: &Invocation, _permit: Permit) -> ToolOutput {
        self.ran.lock().unwrap().push(invocation.tool.clone());
        tokio::time::sleep(Millis(1_000).to_duration()).await;
        ToolOutput {
            output: "done".into(),
            ..ToolOutput::default()
        }
    }
}

/// A bus on stopped time, with everything it has to say about itself.
pub struct Stage {
    pub hub: Hub,
    pub notices: Arc<Mutex<Vec<Notice>>>,
}

pub fn clock() -> Arc<TokioClock> {
    Arc::new(TokioClock::starting_at(
        Timestamp::parse("2026-02-27T09:30:00Z").unwrap(),
    ))
}

pub fn stage(journal: Option<Journal>, alarm_mark: usize) -> Stage {
    let notices = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&notices);
    let options = HubOptions {
        journal,
        observer: Arc::new(move |notice: &Notice| sink.lock().unwrap().push(notice.clone())),
        alarm_mark,
        first_seq: 1,
    };
    Stage {
        hub: Hub::new(clock(), options),
        notices,
    }
}

pub fn memory_journal() -> Journal {
    Journal::in_memory(JournalOptions::new(clock()))
}

pub fn runtime(hub: &Hub, ports: Ports) -> Runtime {
    Runtime::new(hub.clone(), ports, Limits::default(), Meter::unlimited())
}

pub fn metered(hub: &Hub, ports: Ports, max_tokens: u64) -> Runtime {
    let budget = Budget {
        max_tokens: Some(max_tokens),
        max_cost: None,
    };
    let price: Price = Arc::new(|_, _| 0.0);
    Runtime::new(hub.clone(), ports, Limits::default(), Meter::new(budget, price))
}

pub fn provisional() -> TaskId {
    TaskId::new("input_0000000a")
}

pub fn named() -> TaskId {
    TaskId::new("count_files_0000000a")
}

pub fn user_input(text: &str) -> Message {
    UserInput {
        task_id: provisional(),
        text: text.into(),
        history: Vec::new(),
        person_present: false,
        scope: Vec::new(),
    }
    .into()
}

pub fn task_spec() -> Message {
    TaskSpec {
        task_id: named(),
        slug: Slug::repair("count_files"),
        intent: "count the files".into(),
        constraints: artoo_protocol::message::Constraints::default(),
        raw_input: "how many files?".into(),
        scope: Vec::new(),
    }
    .into()
}

pub fn aborted() -> Message {
    TaskAborted {
        task_id: named(),
        reason: "Ctrl+C".into(),
    }
    .into()
}

pub fn final_result() -> Message {
    FinalResult {
        task_id: named(),
        slug: Slug::repair("count_files"),
        intent: "count the files".into(),
        summary: "3 files".into(),
        output: Value::from(3),
        loss: Loss::default(),
        grad_l: Finite::ZERO,
        replans: 0,
        prev_directive: PreviousDirective::Init,
        directive: Ending::Accept,
        cause: Cause::Met,
        unmet: Vec::new(),
        unverified: Vec::new(),
        honesty: Box::default(),
    }
    .into()
}

pub fn subtask(n: u64) -> Message {
    SubTask {
        subtask_id: SubTaskId::derive(Timestamp::from_millis(0), &named(), n),
        parent_task_id: named(),
        intent: format!("step {n}"),
        context: String::new(),
        success_criteria: Vec::new(),
        sequence: 1,
        tools: Vec::new(),
        deadline: None,
        must_not: MustNot::default(),
        caution: None,
        scope: Vec::new(),
    }
    .into()
}

pub fn say(message: Message) -> Command {
    Command::Publish {
        task_id: Some(named()),
        message: Box::new(message),
    }
}

pub fn ask(call: u32) -> Command {
    ask_with(call, "think")
}

pub fn ask_with(call: u32, content: &str) -> Command {
    Command::CallModel {
        task_id: named(),
        call: CallId(call),
        request: ModelRequest {
            tier: Tier::Brain,
            messages: vec![artoo_protocol::model::ChatMessage::User {
                content: content.into(),
            }],
            form: AnswerForm::Tools { tools: Vec::new() },
            max_output_tokens: None,
        },
    }
}

pub fn run_tool(call: u32, tool: &str, effect: EffectClass) -> Command {
    Command::RunTool {
        task_id: named(),
        call: CallId(call),
        invocation: Invocation {
            tool: tool.into(),
            input: Value::Null,
            task_id: named(),
            subtask_id: SubTaskId::new("s"),
            scope: Vec::new(),
            created: Vec::new(),
        },
        permit: Permit {
            effect,
            confirmed: true,
            seen: 0,
        },
    }
}

/// Says something as whoever may say it.
pub fn tell(hub: &Hub, from: Role, message: Message) {
    let id = if matches!(message, Message::UserInput(_)) {
        provisional()
    } else {
        named()
    };
    hub.publish(from, Some(&id), message).unwrap();
}

/// The answers among what a toy has heard.
pub fn answers(heard: &Arc<Mutex<Vec<Event>>>) -> Vec<Answer> {
    heard
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            Event::Answer { answer, .. } => Some(answer.clone()),
            Event::Message { .. } | Event::Wake => None,
        })
        .collect()
}

pub fn is_message(event: &Event, test: impl Fn(&Message) -> bool) -> bool {
    match event {
        Event::Message { envelope } => test(&envelope.payload),
        Event::Answer { .. } | Event::Wake => false,
    }
}

pub fn phase(hub: &Hub) -> Phase {
    hub.phase(&named())
}

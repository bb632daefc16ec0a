//! Many tasks in one process on the runtime that programs use, on stopped time: each has its own limits, none holds up the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use artoo_bus::{Budget, Hub, HubOptions, Inbox, Limits, Meter, Ports, Runtime, TokioClock};
use artoo_protocol::message::{Cause, FinalResult};
use artoo_protocol::model::{ModelError, ModelReply, ModelRequest};
use artoo_protocol::ports::{Bus, CheckRunner, LanguageModel, Toolbox};
use artoo_protocol::tool::{Assessment, CheckReport, CheckRequest, Invocation, Permit, ToolOutput, ToolSpec};
use artoo_protocol::{Message, Millis, Role};
use artoo_testkit::machine::{self, Machine};
use artoo_testkit::scripted::{form_name, tool_results, user_text};
use artoo_testkit::{Settings, structured, whole};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::support::{plan, say, shell, step};

/// What each model call takes.
const CALL: Millis = Millis(100);

/// A model that knows from every request which task it is about, and remembers who was served when.
struct Desk {
    /// The answer for a task and a request.
    answer: fn(u32, &ModelRequest) -> ModelReply,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The task of each call, in the order in which they were begun.
    begun: Vec<u32>,
    /// Conversations of executors that are being answered, by task, and the most of them at once.
    working: BTreeMap<u32, usize>,
    most: BTreeMap<u32, usize>,
    at_once: usize,
    most_at_once: usize,
}

impl Desk {
    fn new(answer: fn(u32, &ModelRequest) -> ModelReply) -> Arc<Self> {
        Arc::new(Self {
            answer,
            kept: Mutex::default(),
        })
    }
}

/// The number that stands behind the first `task ` of what is shown.
fn number(request: &ModelRequest) -> u32 {
    let (_, after) = user_text(request).split_once("task ").expect("a numbered task");
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[async_trait]
impl LanguageModel for Desk {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let task = number(request);
        let works = form_name(request) == "tools";
        {
            let mut kept = self.kept.lock().unwrap();
            kept.begun.push(task);
            kept.at_once += 1;
            kept.most_at_once = kept.most_at_once.max(kept.at_once);
            if works {
                let now = kept.working.entry(task).or_default();
                *now += 1;
                let now = *now;
                let most = kept.most.entry(task).or_default();
                *most = now.max(*most);
            }
        }
        tokio::time::sleep(CALL.to_duration()).await;
        let mut kept = self.kept.lock().unwrap();
        kept.at_once -= 1;
        if works {
            *kept.working.get_mut(&task).unwrap() -= 1;
        }
        Ok((self.answer)(task, request))
    }
}

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

/// The system, and what the person hears.
struct Process {
    hub: Hub,
    person: Inbox,
    runtime: Runtime,
}

impl Process {
    fn start(desk: &Arc<Desk>, settings: &Settings, limits: Limits, budget: Budget) -> Self {
        let hub = Hub::new(
            Arc::new(TokioClock::starting_at(whole::morning())),
            HubOptions::default(),
        );
        let person = hub.inbox(Role::User).expect("the person's inbox");
        let computer = Arc::new(Computer::default());
        let ports = Ports {
            model: Some(Arc::clone(desk) as Arc<dyn LanguageModel>),
            toolbox: Some(Arc::clone(&computer) as Arc<dyn Toolbox>),
            checks: Some(computer as Arc<dyn CheckRunner>),
            memory: None,
            shelf: None,
        };
        let meter = Meter::new(budget, Arc::new(|_, _| 0.0));
        let runtime = Runtime::new(hub.clone(), ports, limits, meter);
        Self {
            hub,
            person,
            runtime: whole::host(settings, runtime).unwrap(),
        }
    }

    fn ask(&self, task: u32) {
        let input = whole::input(task, &format!("do task {task} please"), false);
        let id = input.task_id.clone();
        self.hub.publish(Role::User, Some(&id), input.into()).unwrap();
    }

    /// The next ending that the person hears of, with the number of its task.
    async fn end(&mut self) -> (u32, FinalResult) {
        loop {
            let envelope = self.person.recv().await.expect("the bus is open");
            if let Message::FinalResult(end) = &envelope.payload {
                let task = u32::from_str_radix(end.task_id.suffix(), 16).unwrap();
                return (task, end.clone());
            }
        }
    }

    async fn ends(&mut self, many: usize) -> BTreeMap<u32, FinalResult> {
        let mut ends = BTreeMap::new();
        for _ in 0..many {
            let (task, end) = self.end().await;
            assert!(ends.insert(task, end).is_none(), "task {task} ended twice");
        }
        ends
    }

    async fn stop(self) {
        let report = self.runtime.shutdown(Millis::from_seconds(60)).await;
        assert!(report.at_rest, "{report:?}");
        assert_eq!((report.open_tasks, report.open_calls), (Vec::new(), Vec::new()));
        assert_eq!(report.broken_drivers, Vec::<String>::new());
    }
}

/// Runs on time that stands still while somebody works and jumps when nobody does.
fn on_stopped_time<T>(run: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run)
}

fn spec(task: u32) -> ModelReply {
    structured(json!({"slug": "do_task", "intent": format!("Do task {task}")}))
}

/// One criterion that holds as soon as a command ran.
fn ran() -> Value {
    json!({"criterion": "it ran", "check": {"kind": "exit_code"}})
}

/// A plan of so many steps that may all run at once.
fn wide(task: u32, steps: u32, criterion: &Value) -> ModelReply {
    let part = |at| {
        step(
            1,
            &format!("Do part {at} of task {task}"),
            std::slice::from_ref(criterion),
        )
    };
    structured(plan(&(1..=steps).map(part).collect::<Vec<_>>()))
}

fn works(request: &ModelRequest, task: u32) -> ModelReply {
    match tool_results(request) {
        0 => shell("true"),
        _ => say(&format!("done by {task}")),
    }
}

/// Every tenth task burns tokens, every tenth never gets what it wants, the others are done.
fn all_kinds(task: u32, request: &ModelRequest) -> ModelReply {
    let never = json!({"criterion": "the file is there", "check": {"kind": "file_exists", "path": "/nowhere"}});
    let mut reply = match form_name(request) {
        "task_spec" => spec(task),
        "plan" if task % 10 == 1 => wide(task, 1, &never),
        "plan" => wide(task, 6, &ran()),
        "partial_result" => structured(json!({"achieved": "Nothing.", "failed": format!("task {task}")})),
        _ => works(request, task),
    };
    reply.usage.input_tokens = if task.is_multiple_of(10) { 900 } else { 10 };
    reply.usage.output_tokens = 0;
    reply
}

#[test]
fn a_hundred_tasks_on_the_real_runtime_each_keep_their_own_limits() {
    on_stopped_time(async {
        let desk = Desk::new(all_kinds);
        let settings = Settings {
            limits: artoo_planner::Limits {
                parallel: 2,
                ..artoo_planner::Limits::default()
            },
            ..Settings::default()
        };
        let limits = Limits {
            model_calls: 16,
            tools: 4,
        };
        let budget = Budget {
            max_tokens: Some(5_000),
            max_cost: None,
        };
        let mut process = Process::start(&desk, &settings, limits, budget);
        (1..=100).for_each(|task| process.ask(task));
        let ends = process.ends(100).await;
        for (task, end) in &ends {
            match task % 10 {
                0 => assert_eq!(end.cause, Cause::Budget, "{task}: 900 tokens a call, 5,000 allowed"),
                1 => assert_eq!(end.cause.exit_code(), 1, "{task}: {end:?}"),
                _ => {
                    assert_eq!(end.cause, Cause::Met, "{task}: {}", end.summary);
                    let output = end.output.as_str().unwrap_or_default();
                    let own = format!("done by {task}");
                    assert_eq!(
                        output.lines().filter(|line| *line == own).count(),
                        6,
                        "{task}: {output}"
                    );
                    assert_eq!(output.matches("done by").count(), 6, "{task}: {output}");
                }
            }
        }
        {
            let kept = desk.kept.lock().unwrap();
            assert_eq!(kept.most_at_once, 16, "the limit of the process is used and kept");
            let widest = kept.most.values().max().copied();
            assert_eq!(widest, Some(2), "no task has more than its own subtasks at work");
        }
        process.stop().await;
    });
}

/// Calls of the long task 1 that were begun between the first of the short task 2 and its last.
fn held_up_by(parallel: usize) -> (usize, usize) {
    on_stopped_time(async {
        let desk = Desk::new(|task, request| match form_name(request) {
            "task_spec" => spec(task),
            "plan" => wide(task, if task == 1 { 100 } else { 1 }, &ran()),
            _ => works(request, task),
        });
        let settings = Settings {
            limits: artoo_planner::Limits {
                parallel,
                ..artoo_planner::Limits::default()
            },
            ..Settings::default()
        };
        let one = Limits {
            model_calls: 1,
            tools: 1,
        };
        let mut process = Process::start(&desk, &settings, one, Budget::default());
        process.ask(1);
        // The long task is in the middle of its subtasks.
        tokio::time::sleep(Millis(10 * CALL.0 + 50).to_duration()).await;
        process.ask(2);
        let ends = process.ends(2).await;
        assert!(ends.values().all(|end| end.cause == Cause::Met), "{ends:?}");
        let begun = desk.kept.lock().unwrap().begun.clone();
        process.stop().await;
        let of_short = || {
            begun
                .iter()
                .enumerate()
                .filter(|(_, task)| **task == 2)
                .map(|(at, _)| at)
        };
        let (from, to) = (of_short().min().unwrap(), of_short().max().unwrap());
        let short = of_short().count();
        (short, to - from + 1 - short)
    })
}

#[test]
fn a_long_plan_holds_up_a_short_task_by_no_more_than_its_own_limit() {
    for parallel in [1, 4] {
        let (short, between) = held_up_by(parallel);
        assert_eq!(short, 4, "the shortest chain");
        assert!(
            between <= (short - 1) * parallel,
            "{parallel} at once: {between} calls in between"
        );
    }
    // The limit is what makes it so: a plan that is let loose as a whole stands in front of everybody.
    let (short, between) = held_up_by(100);
    assert!(between > (short - 1) * 4, "{between}");
}

//! What the situations are built from: scripts, plans and a run to its rest.

use artoo_protocol::message::{FinalResult, OutcomeSummary, PlanDirective, ReplanRequest, SubTask};
use artoo_protocol::model::{ModelContent, ModelReply};
use artoo_protocol::{Message, MessageKind, Millis, Role, TaskId};
use artoo_testkit::scripted::{form_name, reply, tool_results, user_text};
use artoo_testkit::{Scene, Scripted, Settings, World, structured, text_reply, tool_reply, whole};
use serde_json::{Value, json};

pub const REQUEST: &str = "count the Rust files and write the number to number.txt";
const MOST_EVENTS: usize = 100_000;

/// A run at rest.
pub struct Run {
    pub world: World<Scene>,
    pub settings: Settings,
    pub task: TaskId,
}

impl Run {
    pub fn end(&self) -> &FinalResult {
        whole::end(&self.world, &self.task).expect("a FinalResult")
    }

    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        whole::said(&self.world, &self.task).map(|(_, message)| message)
    }

    pub fn count(&self, kind: MessageKind) -> usize {
        self.messages().filter(|message| message.kind() == kind).count()
    }

    pub fn directives(&self) -> Vec<&PlanDirective> {
        self.messages()
            .filter_map(|message| match message {
                Message::PlanDirective(directive) => Some(directive),
                _ => None,
            })
            .collect()
    }

    pub fn gaps(&self) -> Vec<&ReplanRequest> {
        self.messages()
            .filter_map(|message| match message {
                Message::ReplanRequest(request) => Some(request),
                _ => None,
            })
            .collect()
    }

    pub fn subtasks(&self) -> Vec<&SubTask> {
        self.messages()
            .filter_map(|message| match message {
                Message::SubTask(subtask) => Some(subtask),
                _ => None,
            })
            .collect()
    }

    pub fn summary(&self) -> &OutcomeSummary {
        self.messages()
            .find_map(|message| match message {
                Message::OutcomeSummary(summary) => Some(summary),
                _ => None,
            })
            .expect("an OutcomeSummary")
    }

    /// Who asked a model, in order.
    pub fn askers(&self) -> Vec<Role> {
        self.world.surroundings.asked.iter().map(|(role, _)| *role).collect()
    }

    /// What a role showed its model, request by request.
    pub fn prompts(&self, role: Role) -> Vec<&str> {
        let asked = &self.world.surroundings.asked;
        asked
            .iter()
            .filter(|(by, _)| *by == role)
            .map(|(_, request)| user_text(request))
            .collect()
    }

    /// Commands that really ran.
    pub fn ran(&self) -> Vec<String> {
        let made = &self.world.surroundings.machine.made;
        made.iter()
            .map(|(call, _)| format!("{} {}", call.tool, call.input))
            .collect()
    }

    pub fn took(&self) -> Millis {
        self.world.now().since(whole::morning())
    }

    /// Holds the world against all laws.
    pub fn sound(self) -> Self {
        sound(&self.settings, &self.world);
        self
    }
}

pub fn sound(settings: &Settings, world: &World<Scene>) {
    let wrongs = whole::wrongs(settings, world).unwrap();
    assert!(wrongs.is_empty(), "{wrongs:#?}");
}

/// Runs one task to its rest, with someone there, and holds it against all laws.
pub fn run(scene: Scene) -> Run {
    run_with(Settings::default(), scene, REQUEST, |_, _| ())
}

pub fn run_with(settings: Settings, scene: Scene, text: &str, more: impl FnOnce(&mut World<Scene>, &TaskId)) -> Run {
    let mut world = whole::system(&settings, scene).unwrap();
    let input = whole::input(1, text, true);
    let task = input.task_id.clone();
    world.say(Role::User, Millis(0), input);
    more(&mut world, &task);
    assert!(world.run(MOST_EVENTS), "no rest");
    Run { world, settings, task }.sound()
}

/// A script that understands every request as the same task.
pub fn script() -> Scripted {
    Scripted::default().structured("task_spec", task_spec())
}

pub fn task_spec() -> Value {
    json!({"slug": "count_rust_files", "intent": "Count the Rust files and write the number down", "scope": null,
        "deadline": null, "clarify": [], "direct_answer": null})
}

pub fn plan(steps: &[Value]) -> Value {
    json!({"task_criteria": [], "subtasks": steps})
}

pub fn plan_with(task_criteria: &[Value], steps: &[Value]) -> Value {
    json!({"task_criteria": task_criteria, "subtasks": steps})
}

pub fn step(sequence: u32, intent: &str, criteria: &[Value]) -> Value {
    json!({"sequence": sequence, "intent": intent, "context": "", "success_criteria": criteria, "tools": []})
}

/// A criterion that a machine decides: the file is there.
pub fn exists(path: &str) -> Value {
    json!({"criterion": format!("{path} exists"), "mode": "verifiable", "check": {"kind": "file_exists", "path": path}})
}

/// A criterion that a machine decides: the file holds exactly this.
pub fn holds(path: &str, text: &str) -> Value {
    json!({"criterion": format!("{path} holds {text}"), "mode": "verifiable",
        "check": {"kind": "file_contains", "path": path, "pattern": format!("^{text}$")}})
}

pub fn write(path: &str, content: &str) -> ModelReply {
    tool_reply("write_file", json!({"path": path, "content": content}))
}

pub fn shell(command: &str) -> ModelReply {
    tool_reply("shell", json!({ "command": command }))
}

pub fn say(text: &str) -> ModelReply {
    text_reply(text)
}

pub fn report(status: &str, output: &str, reason: &str) -> ModelReply {
    tool_reply("report", json!({"status": status, "output": output, "reason": reason}))
}

/// Every subtask is done by one harmless command and a word.
pub fn diligent(script: Scripted) -> Scripted {
    script.rule(|request| {
        let done = || {
            if tool_results(request) == 0 {
                shell("true")
            } else {
                say("done")
            }
        };
        (form_name(request) == "tools").then(|| Ok(done()))
    })
}

/// The plan that most situations begin with: one subtask, one file.
pub fn one_file() -> Value {
    plan(&[step(
        1,
        "Count the Rust files into number.txt",
        &[exists("number.txt"), holds("number.txt", "42")],
    )])
}

pub fn value(value: Value) -> ModelReply {
    structured(value)
}

pub fn nothing_called() -> ModelReply {
    reply(ModelContent::ToolCalls {
        text: None,
        calls: Vec::new(),
    })
}

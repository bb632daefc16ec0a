//! A situation as its data file tells it, and the attempt and the folder that it stands for.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use artoo_protocol::message::{
    Check, Criterion, ExecutionResult, ExecutionStatus, FailureClass, Mode, SubTask, ToolCall,
};
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{Millis, SubTaskId, TaskId, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What a person would say about the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    Pass,
    Fail,
}

/// One `[[situation]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Situation {
    pub name: String,
    pub intent: String,
    #[serde(default)]
    context: String,
    /// Path → text, as the world stands after the attempt; `ws:` is the workspace, anything else the working directory.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Path → where the symbolic link leads.
    #[serde(default)]
    links: BTreeMap<String, String>,
    /// Paths that the task made before this attempt.
    #[serde(default)]
    made: Vec<String>,
    calls: Vec<Call>,
    /// The executor's own words.
    claim: String,
    #[serde(default = "completed")]
    status: ExecutionStatus,
    reason: Option<String>,
    #[serde(default)]
    refused: bool,
    #[serde(default)]
    infrastructure: bool,
    criteria: Vec<Stated>,
    pub right: Right,
    pub why: String,
}

fn completed() -> ExecutionStatus {
    ExecutionStatus::Completed
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    says: String,
    #[serde(default = "verifiable")]
    mode: Mode,
    check: Option<Check>,
}

fn verifiable() -> Mode {
    Mode::Verifiable
}

/// A tool call: `run` is a shell command, `read` and `write` are files, `fetch` a page, `tool` anything else.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    run: Option<String>,
    read: Option<String>,
    write: Option<String>,
    content: Option<String>,
    fetch: Option<String>,
    tool: Option<String>,
    input: Option<Map<String, Value>>,
    effect: Option<EffectClass>,
    #[serde(default)]
    output: String,
    exit: Option<i32>,
    error: Option<String>,
    class: Option<FailureClass>,
    #[serde(default)]
    interrupted: bool,
    #[serde(default)]
    cut: bool,
    lines: Option<u64>,
    #[serde(default)]
    touched: Vec<String>,
    #[serde(default)]
    not_run: bool,
}

/// A temporary world: the working directory and the workspace.
pub struct World {
    root: tempfile::TempDir,
}

impl World {
    fn new(situation: &Situation) -> Self {
        let world = Self {
            root: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(world.cwd()).unwrap();
        fs::create_dir_all(world.workspace()).unwrap();
        for (name, text) in &situation.files {
            let path = world.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for (name, target) in &situation.links {
            std::os::unix::fs::symlink(target, world.path(name)).unwrap();
        }
        world
    }

    pub fn cwd(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    fn path(&self, name: &str) -> PathBuf {
        match name.strip_prefix("ws:") {
            Some(below) => self.workspace().join(below),
            None => self.cwd().join(name),
        }
    }

    fn paths(&self, names: &[String]) -> Vec<String> {
        let shown = |name: &String| self.path(name).to_string_lossy().into_owned();
        names.iter().map(shown).collect()
    }

    fn filled(&self, text: &str) -> String {
        text.replace("{ws}", &self.workspace().to_string_lossy())
            .replace("{cwd}", &self.cwd().to_string_lossy())
    }
}

/// Everything that R4a is told about a situation.
pub struct Staged {
    pub world: World,
    pub subtask: SubTask,
    pub result: ExecutionResult,
    /// An earlier subtask of the same task, which made `made`.
    pub earlier: (SubTask, ExecutionResult),
}

pub fn task() -> TaskId {
    TaskId::new("situation_0123abcd")
}

impl Situation {
    pub fn has_check(&self) -> bool {
        self.criteria.iter().any(|criterion| criterion.check.is_some())
    }

    pub fn stage(&self) -> Staged {
        let world = World::new(self);
        let subtask = |id: &str, criteria: Vec<Criterion>| SubTask {
            subtask_id: SubTaskId::new(id),
            parent_task_id: task(),
            intent: self.intent.clone(),
            context: self.context.clone(),
            success_criteria: criteria,
            sequence: 1,
            ..serde_json::from_value(json!({
                "subtask_id": id, "parent_task_id": task(), "intent": "", "success_criteria": [], "sequence": 1
            }))
            .unwrap()
        };
        let result = |id: &str, calls: Vec<ToolCall>| ExecutionResult {
            subtask_id: SubTaskId::new(id),
            parent_task_id: task(),
            attempt: 1,
            status: self.status,
            output: world.filled(&self.claim),
            reason: self.reason.clone(),
            infrastructure: self.infrastructure,
            infeasible: false,
            refused: self.refused,
            tool_calls: calls,
        };
        let criteria = self.criteria.iter().map(|stated| Criterion {
            criterion: stated.says.clone(),
            mode: stated.mode,
            check: stated.check.clone(),
        });
        let calls = self.calls.iter().map(|call| call.recorded(&world)).collect();
        let before = Criterion {
            criterion: "earlier work".to_owned(),
            mode: Mode::Plausible,
            check: None,
        };
        let made = ToolCall {
            touched: world.paths(&self.made),
            ..Call::writing("earlier").recorded(&world)
        };
        let earlier = (
            subtask("s0", vec![before]),
            ExecutionResult {
                status: ExecutionStatus::Completed,
                ..result("s0", vec![made])
            },
        );
        Staged {
            subtask: subtask("s1", criteria.collect()),
            result: result("s1", calls),
            earlier,
            world,
        }
    }
}

impl Call {
    fn writing(path: &str) -> Self {
        toml::from_str(&format!("write = {path:?}")).unwrap()
    }

    /// As the executor records it: what a command can do is read from the command, not told by the file.
    fn recorded(&self, world: &World) -> ToolCall {
        let (tool, input) = self.tool_and_input(world);
        let class = self.run.as_deref().map(artoo_executor::classify);
        let effect = match (&class, &self.write) {
            (Some(class), _) if class.writes.is_empty() => class.effect,
            // Only the world knows whether what it wrote was there before.
            (Some(class), _) => class.effect.max(self.effect.unwrap_or(EffectClass::Create)),
            (None, Some(_)) => self.effect.unwrap_or(EffectClass::Create),
            (None, None) => self.effect.unwrap_or(if self.fetch.is_some() {
                EffectClass::Fetch
            } else {
                EffectClass::Read
            }),
        };
        let output = world.filled(&self.output);
        // A program ends with 0 unless it is said how it ended.
        let ended = self.run.is_some() && self.error.is_none() && !self.interrupted && !self.not_run;
        ToolCall {
            tool,
            input,
            lines: self.lines.unwrap_or(output.lines().count() as u64),
            output,
            truncated: self.cut,
            exit: self.exit.or(ended.then_some(0)),
            error: self.error.clone(),
            failure_class: self.class,
            started_at: Timestamp::from_millis(0),
            elapsed_ms: Millis(1),
            interrupted: self.interrupted,
            effect,
            programs: class.map(|class| class.programs).unwrap_or_default(),
            touched: world.paths(&self.touched),
            not_run: self.not_run,
        }
    }

    fn tool_and_input(&self, world: &World) -> (String, Value) {
        if let Some(command) = &self.run {
            return ("shell".to_owned(), json!({ "command": world.filled(command) }));
        }
        if let Some(path) = &self.read {
            return ("read_file".to_owned(), json!({ "path": path }));
        }
        if let Some(path) = &self.write {
            let content = self.content.clone().unwrap_or_default();
            return ("write_file".to_owned(), json!({ "path": path, "content": content }));
        }
        if let Some(url) = &self.fetch {
            return ("fetch_url".to_owned(), json!({ "url": url }));
        }
        let tool = self.tool.clone().expect("a call names its tool");
        (tool, Value::Object(self.input.clone().unwrap_or_default()))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    situation: Vec<Situation>,
}

/// Every situation of a folder, with the name of its file.
pub fn read(folder: &Path) -> Vec<(String, Situation)> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        file.situation
            .into_iter()
            .map(move |situation| (name.clone(), situation))
    };
    paths.iter().flat_map(read).collect()
}

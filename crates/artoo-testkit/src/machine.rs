//! A make-believe computer: a handful of files in memory, four tools that act on them, and the checks that look at them.
//!
//! Owns its state and a tiny shell grammar, one program a command. Like the real tools it shows the whole of what it would do, and
//! refuses to do more than it was permitted to, or anything else than was shown; apart from that it judges nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;

use artoo_protocol::message::{Check, CountOf, CountOp, FailureClass, ToolCall};
use artoo_protocol::tool::{
    Assessment, CheckReport, CheckRequest, EffectClass, Invocation, Permit, Reach, ToolOutput, ToolSpec,
};
use regex::Regex;
use serde_json::{Value, json};

/// The folder in which creating is free.
pub const WORKSPACE: &str = "/w/";

/// The computer.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Text by absolute path.
    pub files: BTreeMap<String, String>,
    /// What `search` finds; without an entry a query finds nothing.
    pub pages: BTreeMap<String, String>,
    /// Whether nothing can be written any more.
    pub full: bool,
    /// Calls that were made, in order.
    pub made: Vec<(Invocation, Permit)>,
}

/// One call, understood.
enum Act {
    Write { path: String, content: String },
    Read { path: String },
    Search { query: String },
    Shell { program: String, argument: String },
}

/// The tools that the machine has.
pub fn tools() -> Vec<ToolSpec> {
    let spec = |name: &str, description: &str, field: &str| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: json!({"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}),
    };
    vec![
        spec("read_file", "Reads a file.", "path"),
        spec("write_file", "Writes a file.", "path"),
        spec("shell", "Runs one program.", "command"),
        spec("search", "Searches the web.", "query"),
    ]
}

/// A path as the machine keeps it: bare names lie in the workspace.
pub fn absolute(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{WORKSPACE}{path}")
    }
}

impl Machine {
    /// A machine with these files.
    pub fn with_files(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| (absolute(path), (*text).to_owned()))
            .collect();
        Self {
            files,
            ..Self::default()
        }
    }

    /// What the call would do.
    pub fn assess(&self, invocation: &Invocation) -> Assessment {
        let act = match read(invocation) {
            Ok(act) => act,
            Err(error) => {
                let invalid = Some(error);
                return Assessment {
                    invalid,
                    ..assessment(EffectClass::External, Reach::Elsewhere, "", &[])
                };
            }
        };
        let reach = |path: &str| reach_of(invocation, path);
        match &act {
            Act::Read { path } => assessment(EffectClass::Read, Reach::Nowhere, path, &[]),
            Act::Search { query } => assessment(EffectClass::Fetch, Reach::Nowhere, query, &[]),
            Act::Write { path, content } => {
                let (effect, action) = match self.files.get(path) {
                    Some(old) => (EffectClass::Modify, format!("change {path} from\n{old}\nto\n{content}")),
                    None => (EffectClass::Create, format!("create {path} with\n{content}")),
                };
                Assessment {
                    targets: vec![path.clone()],
                    ..assessment(effect, reach(path), &action, &[])
                }
            }
            Act::Shell { program, argument } => {
                let path = absolute(argument);
                let (effect, reach) = match program.as_str() {
                    "cat" | "wc" | "ls" | "true" | "false" | "sleep" => (EffectClass::Read, Reach::Nowhere),
                    "touch" => (EffectClass::Create, reach(&path)),
                    "rm" => (EffectClass::Destroy, reach(&path)),
                    _ => (EffectClass::External, Reach::Elsewhere),
                };
                let action = format!("{program} {argument}");
                assessment(effect, reach, action.trim(), &[program])
            }
        }
    }

    /// Makes the call.
    pub fn run(&mut self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        let assessed = self.assess(invocation);
        if assessed.effect > permit.effect {
            // The world has changed since the call was assessed.
            let would = format!("it may {} and would {}", permit.effect, assessed.effect);
            return failed(&would, FailureClass::Environmental);
        }
        if permit.confirmed && permit.seen != assessed.fingerprint {
            return ToolOutput {
                stale: true,
                ..failed(
                    "it is not any more what it was: nothing was done",
                    FailureClass::Environmental,
                )
            };
        }
        self.made.push((invocation.clone(), permit));
        match read(invocation) {
            Err(error) => failed(&error, FailureClass::Logical),
            Ok(Act::Write { .. }) if self.full => failed("no space left on device", FailureClass::Environmental),
            Ok(Act::Write { path, content }) => {
                self.files.insert(path.clone(), content);
                ToolOutput {
                    touched: vec![path.clone()],
                    ..said(&format!("written: {path}"))
                }
            }
            Ok(Act::Read { path }) => match self.files.get(&path) {
                Some(text) => said(text),
                None => failed(&format!("{path}: no such file"), FailureClass::Environmental),
            },
            Ok(Act::Search { query }) => said(self.pages.get(&query).map_or("", String::as_str)),
            Ok(Act::Shell { program, argument }) => ToolOutput {
                programs: vec![program.clone()],
                ..self.shell(&program, &argument)
            },
        }
    }

    fn shell(&mut self, program: &str, argument: &str) -> ToolOutput {
        let path = absolute(argument);
        let done = |text: &str| ToolOutput {
            exit: Some(0),
            ..said(text)
        };
        let exits = |code: i32, text: &str, class: FailureClass| ToolOutput {
            exit: Some(code),
            failure_class: Some(class),
            ..said(text)
        };
        match program {
            "true" => done(""),
            "ls" => done(&self.files.keys().cloned().collect::<Vec<_>>().join("\n")),
            "cat" | "wc" => match self.files.get(&path) {
                Some(text) if program == "cat" => done(text),
                Some(text) => done(&text.lines().count().to_string()),
                None => exits(1, &format!("{path}: no such file"), FailureClass::Environmental),
            },
            "touch" if self.full => exits(1, "no space left on device", FailureClass::Environmental),
            "touch" => {
                self.files.entry(path.clone()).or_default();
                ToolOutput {
                    touched: vec![path],
                    ..done("")
                }
            }
            "rm" => {
                self.files.remove(&path);
                done("")
            }
            "sleep" => ToolOutput {
                interrupted: true,
                error: Some("it ran for longer than allowed".to_owned()),
                failure_class: Some(FailureClass::Environmental),
                ..said("")
            },
            "curl" => exits(6, "could not resolve host", FailureClass::Environmental),
            _ => exits(2, "wrong result", FailureClass::Logical),
        }
    }

    /// Looks whether a check holds.
    pub fn check(&self, request: &CheckRequest) -> CheckReport {
        let output = request.tool_calls.last().map_or("", |call| call.output.as_str());
        let file = |path: &str| self.files.get(&absolute(path)).map(String::as_str);
        match &request.check {
            Check::FileExists { path } => report(file(path).is_some(), path),
            Check::FileAbsent { path } => report(file(path).is_none(), path),
            Check::FileContains { path, pattern } => match file(path) {
                Some(text) => matched(pattern, text),
                None => report(false, &format!("{path} does not exist")),
            },
            Check::OutputMatches { pattern } => matched(pattern, output),
            Check::OutputEquals { value } => report(value.trim() == output.trim(), output),
            Check::ExitCode { command, equals } => exit_code(&request.tool_calls, command.as_deref(), *equals),
            Check::Count {
                of: CountOf::Lines,
                path,
                op,
                value,
                ..
            } => {
                let text = path.as_deref().map_or(Some(output), file).unwrap_or_default();
                let lines = text.lines().count() as u64;
                let holds = match op {
                    CountOp::Eq => lines == *value,
                    CountOp::Ge => lines >= *value,
                    CountOp::Le => lines <= *value,
                };
                report(holds, &format!("{lines} lines"))
            }
            Check::CommandSucceeds { command } => report(command == "true", command),
            Check::Count { .. } | Check::JsonPath { .. } | Check::Sha256 { .. } => CheckReport {
                faulty: true,
                ..report(false, "this machine cannot check that")
            },
        }
    }
}

fn reach_of(invocation: &Invocation, path: &str) -> Reach {
    if invocation.created.iter().any(|own| own == path) {
        Reach::OwnFiles
    } else if invocation.scope.iter().any(|scope| path.starts_with(scope.as_str())) {
        Reach::Scope
    } else if path.starts_with(WORKSPACE) {
        Reach::Workspace
    } else {
        Reach::Elsewhere
    }
}

fn read(invocation: &Invocation) -> Result<Act, String> {
    let text = |field: &str| {
        let value = invocation.input.get(field).and_then(Value::as_str);
        value
            .map(str::to_owned)
            .ok_or_else(|| format!("`{}` needs a text `{field}`", invocation.tool))
    };
    match invocation.tool.as_str() {
        "read_file" => Ok(Act::Read {
            path: absolute(&text("path")?),
        }),
        "write_file" => Ok(Act::Write {
            path: absolute(&text("path")?),
            content: text("content")?,
        }),
        "search" => Ok(Act::Search { query: text("query")? }),
        "shell" => {
            let command = text("command")?;
            let mut words = command.split_whitespace();
            let program = words.next().ok_or("the command is empty")?.to_owned();
            let argument = words.collect::<Vec<_>>().join(" ");
            Ok(Act::Shell { program, argument })
        }
        other => Err(format!("there is no tool `{other}`")),
    }
}

fn assessment(effect: EffectClass, reach: Reach, action: &str, programs: &[&String]) -> Assessment {
    Assessment {
        effect,
        reach,
        action: action.to_owned(),
        reason: format!("it would {effect}"),
        programs: programs.iter().map(|program| (*program).clone()).collect(),
        targets: vec![action.to_owned()],
        invalid: None,
        fingerprint: fingerprint(action),
    }
}

/// A number for what an action would do, the state that it would change included (FNV-1a).
fn fingerprint(action: &str) -> u64 {
    action.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn said(text: &str) -> ToolOutput {
    ToolOutput {
        output: text.to_owned(),
        lines: text.lines().count() as u64,
        ..ToolOutput::default()
    }
}

fn failed(error: &str, class: FailureClass) -> ToolOutput {
    ToolOutput {
        error: Some(error.to_owned()),
        failure_class: Some(class),
        ..ToolOutput::default()
    }
}

fn report(passed: bool, evidence: &str) -> CheckReport {
    CheckReport {
        passed,
        evidence: evidence.to_owned(),
        failure_class: None,
        faulty: false,
    }
}

fn matched(pattern: &str, text: &str) -> CheckReport {
    thread_local! {
        /// Thousands of worlds look for the same few patterns.
        static COMPILED: RefCell<BTreeMap<String, Result<Regex, String>>> = const { RefCell::new(BTreeMap::new()) };
    }
    COMPILED.with_borrow_mut(|compiled| {
        if !compiled.contains_key(pattern) {
            let regex = Regex::new(pattern).map_err(|error| error.to_string());
            compiled.insert(pattern.to_owned(), regex);
        }
        match compiled.get(pattern) {
            Some(Ok(regex)) => report(regex.is_match(text), text),
            Some(Err(error)) => CheckReport {
                faulty: true,
                ..report(false, error)
            },
            None => report(false, ""),
        }
    })
}

fn exit_code(calls: &[ToolCall], command: Option<&str>, equals: i32) -> CheckReport {
    let about = |call: &&ToolCall| call.tool == "shell" && command.is_none_or(|part| call.target().contains(part));
    let exits: Vec<Option<i32>> = calls.iter().filter(about).map(|call| call.exit).collect();
    let holds = !exits.is_empty() && exits.iter().all(|exit| *exit == Some(equals));
    report(holds, &format!("{exits:?}"))
}

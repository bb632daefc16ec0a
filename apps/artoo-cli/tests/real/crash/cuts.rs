//! A finished journal, cut behind its records with the files as they were then, and gone on with by the real binary (design §17).
//!
//! Unlike a `kill -9`, which hits where it hits, this meets the records it wants to: between an intention and its deed, between a question and
//! its answer. Everything that was done was confirmed by a person at a terminal, with artoo's own tools and with the shell.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use artoo_testkit::server::{Response, Server, asked_for};
use serde_json::{Value, json};

use super::tree;
use crate::pty::Pty;
use crate::support::Sandbox;

type Files = BTreeMap<String, Vec<u8>>;

/// What is done: the tool, its arguments, and the command that shows whether it is done. The second and the last one are wrong when they
/// are done twice.
fn actions(project: &Path) -> [(&'static str, Value, &'static str); 5] {
    let at = |name: &str| project.join(name).display().to_string();
    [
        (
            "write_file",
            json!({"path": at("report.txt"), "content": "tidied\n"}),
            "grep -c tidied report.txt",
        ),
        (
            "edit_file",
            json!({"path": at("notes.txt"), "old": "four", "new": "four five"}),
            "grep -c five notes.txt",
        ),
        (
            "shell",
            json!({"command": "mv 'my notes.txt' moved.txt"}),
            "ls moved.txt",
        ),
        (
            "delete_files",
            json!({"paths": [at("src/deep/c.txt")]}),
            "test ! -e src/deep/c.txt && echo gone",
        ),
        (
            "shell",
            json!({"command": "echo six >> notes.txt"}),
            "grep -c six notes.txt",
        ),
    ]
}

/// A model that does one thing after the other, and looks before it does. `seen` gets every state in which it finds the files.
fn model(project: PathBuf, seen: Arc<Mutex<Vec<Files>>>) -> Server {
    let actions = actions(&project);
    Server::start(move |body| {
        let content = |value: Value| Response::Content(value.to_string());
        let criterion = json!({"criterion": "report.txt is there", "mode": "verifiable",
            "check": {"kind": "file_exists", "path": project.join("report.txt")}});
        match asked_for(body) {
            "task_spec" => content(
                json!({"slug": "tidy_up", "intent": "tidy up the project", "scope": null, "deadline": null,
                "clarify": [], "direct_answer": null}),
            ),
            "plan" => content(
                json!({"task_criteria": [], "subtasks": [{"sequence": 1, "intent": "do all of it", "context": "",
                "success_criteria": [criterion], "tools": []}]}),
            ),
            "tools" => {
                let (now, mut seen) = (tree(&project), seen.lock().unwrap());
                if seen.last() != Some(&now) {
                    seen.push(now);
                }
                next(body, &actions)
            }
            other => Response::Raw(400, other.to_owned()),
        }
    })
    .unwrap()
}

fn next(body: &Value, actions: &[(&'static str, Value, &'static str)]) -> Response {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let call_of = |message: &Value| -> Option<(String, Value)> {
        let call = &message["tool_calls"][0]["function"];
        let arguments = serde_json::from_str(call["arguments"].as_str()?).ok()?;
        Some((call["name"].as_str()?.to_owned(), arguments))
    };
    let look = |at: usize| match actions.get(at) {
        Some((_, _, look)) => Response::ToolCall("shell", json!({ "command": look })),
        None => Response::Content("done".to_owned()),
    };
    let Some((tool, arguments)) = messages.iter().rev().find_map(call_of) else {
        return look(0);
    };
    let heard = messages.last().unwrap()["content"].as_str().unwrap_or_default();
    for (at, (name, wanted, shows)) in actions.iter().enumerate() {
        if tool == "shell" && arguments["command"] == *shows {
            let is_done = heard.contains("exit status 0");
            return if is_done {
                look(at + 1)
            } else {
                Response::ToolCall(name, wanted.clone())
            };
        }
        if tool == *name && arguments == *wanted {
            let nobody_knows = heard.contains("whether it took effect is not known");
            return look(if nobody_knows { at } else { at + 1 });
        }
    }
    Response::Raw(400, format!("unknown call {tool} {arguments}"))
}

/// Says these to as many questions, one after the other, and expects a good end.
fn answered(mut pty: Pty, answers: &[&str], what: &str) {
    for answer in answers {
        pty.expect("[N]o: ");
        pty.send(&format!("{answer}\n"));
    }
    pty.expect("accept (met)");
    assert_eq!(pty.wait(), Some(0), "{what}");
}

fn put(folder: &Path, files: &Files) {
    std::fs::remove_dir_all(folder).unwrap();
    for (name, bytes) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    date(folder, files);
}

/// A yes is for files as they were, also for when they were changed last: those that are put back must not look like others.
fn date(folder: &Path, files: &Files) {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for name in files.keys() {
        let file = File::options().write(true).open(folder.join(name)).unwrap();
        file.set_modified(then).unwrap();
    }
}

/// What a record says that matters to a cut behind it.
#[derive(Clone, Copy, Default)]
struct Stood {
    /// Actions whose result was written down.
    done: usize,
    /// Questions that were answered.
    answered: usize,
    /// The call of an action that was begun, and whose result was not written down.
    begun: Option<u64>,
}

impl Stood {
    fn after(self, record: &Value) -> Self {
        let word = |at: &str| record.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let number = |at: &str| record.pointer(at).and_then(Value::as_u64);
        let acts = word("/command/kind") == "run_tool" && word("/command/permit/effect") != "read";
        let ran = word("/answer/kind") == "ran" && self.begun.is_some() && number("/call") == self.begun;
        let says = word("/envelope/payload/type") == "ConfirmationAnswer";
        Self {
            done: self.done + usize::from(ran),
            answered: self.answered + usize::from(says),
            begun: match (acts, ran) {
                (true, _) => number("/command/call"),
                (false, true) => None,
                (false, false) => self.begun,
            },
        }
    }
}

/// Every record is met with `ARTOO_CUT_EVERY=1`; every eleventh, and every intention, every day.
#[test]
fn a_journal_cut_behind_any_record_is_finished_and_nothing_is_done_twice() {
    let every: usize = std::env::var("ARTOO_CUT_EVERY").map_or(11, |n| n.parse().unwrap());
    let sandbox = Sandbox::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let server = model(sandbox.project(), Arc::clone(&seen));
    date(&sandbox.project(), &tree(&sandbox.project()));
    let Some(pty) = Pty::start(&sandbox.with_model(&server, &["tidy up"])) else {
        return;
    };
    answered(pty, &["y"; 5], "undisturbed");
    let wanted = tree(&sandbox.project());
    assert_eq!(wanted["notes.txt"], b"one two three\nfour five\nsix\n");
    let states = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(states.len(), 6, "before each action, and behind the last one");
    let tasks = sandbox.data().join("tasks");
    let journal = std::fs::read_dir(&tasks).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&journal).unwrap();
    let (mut stood, mut intentions) = (Stood::default(), 0);
    for (n, line) in (1..).zip(text.lines()) {
        let record: Value = serde_json::from_str(line).unwrap();
        let was = stood;
        stood = stood.after(&record);
        if record.pointer("/envelope/payload/type") == Some(&json!("FinalResult")) {
            break;
        }
        let intention = stood.begun.is_some() && was.begun.is_none();
        intentions += usize::from(intention);
        if n < 2 || !(intention || n % every == 0) {
            continue;
        }
        // An action that was begun has happened or not.
        let variants: &[bool] = if stood.begun.is_some() {
            &[false, true]
        } else {
            &[false]
        };
        for &happened in variants {
            let what = format!("cut behind record {n}, its action done: {happened}");
            put(&sandbox.project(), &states[stood.done + usize::from(happened)]);
            std::fs::remove_dir_all(sandbox.data()).unwrap();
            std::fs::create_dir_all(&tasks).unwrap();
            let kept: Vec<&str> = text.lines().take(n).collect();
            std::fs::write(&journal, kept.join("\n") + "\n").unwrap();
            // What was begun is left as it is, so the model looks, and does it where it is not done.
            let mut answers = vec!["n"; usize::from(stood.begun.is_some())];
            answers.extend(vec![
                "y";
                5 - stood.answered + usize::from(stood.begun.is_some() && !happened)
            ]);
            println!("{what}: {answers:?}");
            let pty = Pty::start(&sandbox.with_model(&server, &["resume"])).unwrap();
            answered(pty, &answers, &what);
            assert_eq!(tree(&sandbox.project()), wanted, "{what}");
            sandbox.run(&["replay", "tidy_up"]).ended(0);
        }
    }
    assert_eq!(intentions, 5, "each action was written down before it was done");
}

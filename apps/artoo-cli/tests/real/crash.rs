//! `kill -9` in the middle, and going on: nothing that is done is done again, nothing is left out (design §17).
//!
//! A run counts the records of its journal and is killed at a chosen one; some are killed a second time while they go on. The
//! files must then be those of an undisturbed run. `ARTOO_CRASH_ROUNDS` asks for more rounds than the few of every day.

mod cuts;

use std::collections::BTreeMap;
use std::path::Path;

use artoo_testkit::server::{Response, Server, asked_for};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::pty::Pty;
use crate::support::{Done, Running, Sandbox};

const TASK: &str = "tidy up";
const GRANTS: [&str; 4] = ["--allow", "modify:*", "--allow", "destroy:*"];

/// What each step does, and how one sees that it was done. Some are no longer right when they are done twice.
const ACTIONS: [&[(&str, &str)]; 2] = [
    &[
        ("echo one >> notes.txt", "grep -c one$ notes.txt"),
        ("echo two >> notes.txt", "grep -c ^two$ notes.txt"),
    ],
    &[
        ("mv 'my notes.txt' moved.txt", "ls moved.txt"),
        ("rm src/deep/c.txt", "test ! -e src/deep/c.txt && echo gone"),
        ("echo three >> notes.txt", "grep -c ^three$ notes.txt"),
    ],
];

/// A model that does one thing after the other, and looks before it does.
fn tidying(body: &Value) -> Response {
    let content = |value: Value| Response::Content(value.to_string());
    let criterion = |path: &str| json!({"criterion": format!("{path} is as wanted"), "mode": "verifiable", "check": {"kind": "file_exists", "path": path}});
    match asked_for(body) {
        "task_spec" => content(
            json!({"slug": "tidy_up", "intent": "tidy up the project", "scope": null, "deadline": null, "clarify": [], "direct_answer": null}),
        ),
        "plan" => content(json!({"task_criteria": [criterion("moved.txt")], "subtasks": [
            {"sequence": 1, "intent": "first part", "context": "", "success_criteria": [criterion("notes.txt")], "tools": ["shell"]},
            {"sequence": 2, "intent": "second part", "context": "", "success_criteria": [criterion("moved.txt")], "tools": ["shell"]}]})),
        "tools" => step(body),
        other => Response::Raw(400, other.to_owned()),
    }
}

fn step(body: &Value) -> Response {
    let run = |command: &str| Response::ToolCall("shell", json!({ "command": command }));
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let text = body.to_string();
    let actions = ACTIONS[usize::from(text.contains("second part"))];
    let command_of = |message: &Value| -> Option<String> {
        let arguments = message["tool_calls"][0]["function"]["arguments"].as_str()?;
        let arguments: Value = serde_json::from_str(arguments).ok()?;
        Some(arguments["command"].as_str()?.to_owned())
    };
    let Some(last) = messages.iter().rev().find_map(command_of) else {
        return run(actions[0].1);
    };
    let heard = messages.last().unwrap()["content"].as_str().unwrap_or_default();
    let at = actions
        .iter()
        .position(|(act, look)| *act == last || *look == last)
        .unwrap();
    let (act, look) = actions[at];
    match actions.get(at + 1) {
        _ if heard.contains("whether it took effect is not known") => run(look),
        _ if last == look && !heard.contains("exit status 0") => run(act),
        Some((_, next)) => run(next),
        None => Response::Content("done".to_owned()),
    }
}

fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let inner = tree(&path);
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            files.extend(
                inner
                    .into_iter()
                    .map(|(inside, bytes)| (format!("{name}/{inside}"), bytes)),
            );
        } else {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
    files
}

fn records(sandbox: &Sandbox) -> usize {
    let Ok(mut files) = std::fs::read_dir(sandbox.data().join("tasks")) else {
        return 0;
    };
    // The file may be renamed between the look and the reading.
    let bytes = files.next().and_then(|file| std::fs::read(file.unwrap().path()).ok());
    bytes.map_or(0, |bytes| bytes.split(|&byte| byte == b'\n').count() - 1)
}

/// Runs until the journal has so many records, then kills; a run that ends earlier is let be.
fn killed_at(sandbox: &Sandbox, mut command: std::process::Command, count: usize) {
    let mut running = Running::start(&mut command);
    while records(sandbox) < count && !running.has_ended() {
        std::thread::yield_now();
    }
    if !running.has_ended() {
        running.signal(Signal::KILL);
    }
    running.wait();
}

fn undisturbed() -> (BTreeMap<String, Vec<u8>>, usize) {
    let sandbox = Sandbox::new();
    let server = Server::start(tidying).unwrap();
    let done = Running::start(&mut sandbox.with_model(&server, &[&GRANTS[..], &[TASK]].concat())).wait();
    done.ended(0);
    (tree(&sandbox.project()), records(&sandbox))
}

fn resumed(sandbox: &Sandbox, server: &Server) -> Done {
    Running::start(&mut sandbox.with_model(server, &["resume"])).wait()
}

#[test]
fn a_killed_task_is_finished_and_nothing_is_done_twice() {
    let rounds: usize = std::env::var("ARTOO_CRASH_ROUNDS").map_or(12, |n| n.parse().unwrap());
    let (wanted, whole) = undisturbed();
    assert_eq!(wanted["notes.txt"], b"one two three\nfour\none\ntwo\nthree\n");
    // One step through the records that meets every residue, so that few rounds are spread and many meet all.
    let stride = (whole * 5 / 13..whole).find(|n| gcd(*n, whole) == 1).unwrap();
    for round in 0..rounds {
        let at = 1 + (round * stride) % whole;
        let sandbox = Sandbox::new();
        let server = Server::start(tidying).unwrap();
        killed_at(
            &sandbox,
            sandbox.with_model(&server, &[&GRANTS[..], &[TASK]].concat()),
            at,
        );
        if round % 3 == 1 {
            killed_at(&sandbox, sandbox.with_model(&server, &["resume"]), at + whole / 4);
        }
        let what = format!("round {round}, killed at record {at} of {whole}");
        let done = resumed(&sandbox, &server);
        assert_eq!(done.code, Some(0), "{what}: {done:#?}");
        if done.err.contains("no task was interrupted") && records(&sandbox) <= 1 {
            continue; // Killed before the task was written down: there was none.
        }
        assert_eq!(tree(&sandbox.project()), wanted, "{what}: {done:#?}");
        sandbox.run(&["replay", "tidy_up"]).ended(0);
        sandbox.run(&["audit", "verify"]).ended(0);
        let list = sandbox.run(&["tasks", "list", "--json"]).json();
        assert_eq!(list[0]["status"], "finished", "{what}");
        assert_eq!(list.as_array().unwrap().len(), 1, "{what}");
    }
}

const fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[test]
fn there_may_be_nothing_to_go_on_with() {
    let sandbox = Sandbox::new();
    sandbox.run(&["resume"]).refused(0, &["no task was interrupted"]);
    sandbox
        .run(&["resume", "nothing_1234"])
        .refused(2, &["there is no task"]);
    sandbox.run(&["count the files in src"]).ended(0);
    let list = sandbox.run(&["tasks", "list", "--json"]).json();
    let id = list[0]["task_id"].as_str().unwrap();
    sandbox.run(&["resume", id]).refused(2, &["has ended"]);
    // Killed between the first record and the second.
    let journal = sandbox.data().join(format!("tasks/{id}.jsonl"));
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{}\n", text.lines().next().unwrap())).unwrap();
    sandbox.run(&["resume"]).refused(0, &["no task was interrupted"]);
    sandbox
        .run(&["resume", id])
        .refused(2, &["before its task was written down", "give the task again"]);
}

#[test]
fn a_task_that_runs_is_not_called_interrupted() {
    let (server, asked) = crate::support::silent_model();
    let sandbox = Sandbox::new();
    let running = Running::start(&mut sandbox.with_model(&server, &["think"]));
    asked.recv_timeout(crate::support::LIMIT).unwrap();
    let status = || sandbox.run(&["tasks", "list", "--json"]).json()[0]["status"].clone();
    assert_eq!(status(), "running");
    sandbox.run(&["resume"]).refused(2, &["in use by"]);
    running.signal(Signal::KILL);
    running.wait();
    assert_eq!(status(), "interrupted");
}

/// A task that ran to its end, and of whose journal everything behind the intention of an action was taken away.
fn cut_off_in_an_action(sandbox: &Sandbox, server: &Server) {
    Running::start(&mut sandbox.with_model(server, &[&GRANTS[..], &[TASK]].concat()))
        .wait()
        .ended(0);
    let mut files = std::fs::read_dir(sandbox.data().join("tasks")).unwrap();
    let path = files.next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&path).unwrap();
    let is_intention = |line: &&str| line.contains("\"kind\":\"run_tool\"") && line.contains("mv 'my notes.txt'");
    let at = text.lines().position(|line| is_intention(&line)).unwrap();
    let kept: Vec<&str> = text.lines().take(at + 1).collect();
    std::fs::write(&path, kept.join("\n") + "\n").unwrap();
}

#[test]
fn who_stops_a_resumed_task_at_its_first_question_stops_it() {
    let sandbox = Sandbox::new();
    let server = Server::start(tidying).unwrap();
    cut_off_in_an_action(&sandbox, &server);
    let before = records(&sandbox);
    let Some(mut pty) = Pty::start(&sandbox.with_model(&server, &["resume"])) else {
        return;
    };
    pty.expect("it may have happened");
    pty.expect("[N]o: ");
    // While it asks, nobody else can go on with the task.
    sandbox.run(&["resume"]).refused(2, &["in use by"]);
    pty.send("\u{3}");
    assert_eq!(pty.wait(), Some(130));
    assert_eq!(records(&sandbox), before, "nothing has happened");
    // In a conversation the person is back at the prompt.
    let mut pty = Pty::start(&sandbox.with_model(&server, &[])).unwrap();
    pty.expect("/resume finishes it");
    pty.send("/resume\n");
    pty.expect("[N]o: ");
    pty.send("\u{3}");
    pty.expect("stopped by Ctrl+C");
    pty.send("/resume\n");
    pty.expect("[N]o: ");
    pty.send("n\n");
    pty.expect("accept (met)");
    pty.send("/quit\n");
    assert_eq!(pty.wait(), Some(0));
    assert!(sandbox.project().join("moved.txt").exists());
}

#[test]
fn the_conversation_offers_to_finish_what_was_interrupted() {
    let sandbox = Sandbox::new();
    let server = Server::start(tidying).unwrap();
    killed_at(
        &sandbox,
        sandbox.with_model(&server, &[&GRANTS[..], &[TASK]].concat()),
        20,
    );
    let Some(mut pty) = Pty::start(&sandbox.with_model(&server, &[])) else {
        return;
    };
    pty.expect("interrupted: ");
    pty.expect("/resume finishes it");
    pty.send("/resume\n");
    pty.expect("accept (met)");
    pty.send("/resume\n");
    pty.expect("no task was interrupted");
    pty.send("/quit\n");
    assert_eq!(pty.wait(), Some(0));
    assert!(sandbox.project().join("moved.txt").exists());
}

//! Being stopped: by each signal, by a closed terminal, by a reader that went away. What runs dies, what was learnt and seen is on
//! disk, the journal says why, and so does the exit code (design §21).
//!
//! `ARTOO_SHUTDOWN_ROUNDS` repeats each of them and prints how long it took; no test asserts a time.

#![allow(clippy::disallowed_methods, reason = "a clock for what is measured")]

use std::process::Stdio;
use std::time::{Duration, Instant};

use artoo_testkit::server::{Response, Server, asked_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::pty::Pty;
use crate::support::{LIMIT, Running, Sandbox};

/// A command that nothing but its death ends, and that survives its shell unless the whole group is killed.
const COMMAND: &str = "trap '' TERM HUP INT; sleep 7654321 | cat";
const GRANT: &[&str] = &["--allow", "external:*"];
/// What to look for among the processes.
const TRACE: &str = "sleep\u{0}7654321";

/// A model that lets one step run [`COMMAND`].
fn sleepy(body: &Value) -> Response {
    let criterion = json!({"criterion": "it slept", "mode": "verifiable", "check": {"kind": "exit_code", "equals": 0}});
    match asked_for(body) {
        "task_spec" => Response::Content(
            json!({"slug": "sleep", "intent": "sleep", "scope": null, "deadline": null, "clarify": [], "direct_answer": null})
                .to_string(),
        ),
        "plan" => Response::Content(
            json!({"task_criteria": [], "subtasks": [{"sequence": 1, "intent": "sleep well", "context": "",
                "success_criteria": [criterion], "tools": ["shell"]}]})
            .to_string(),
        ),
        "tools" => Response::ToolCall("shell", json!({ "command": COMMAND })),
        other => Response::Raw(400, other.to_owned()),
    }
}

/// Processes of this sandbox with the trace in their command line.
fn sleepers(sandbox: &Sandbox) -> Vec<u32> {
    let place = sandbox.project();
    let numbered = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = numbered.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let here = std::fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd == place);
        here && String::from_utf8_lossy(&line).contains(TRACE)
    })
    .collect()
}

fn await_sleeper(sandbox: &Sandbox) {
    let begun = Instant::now();
    while sleepers(sandbox).is_empty() {
        assert!(begun.elapsed() < LIMIT, "the command does not run");
        std::thread::yield_now();
    }
}

/// What holds after every end.
#[track_caller]
fn ended_in_order(sandbox: &Sandbox, why: &str, reason: &str) {
    assert_eq!(sleepers(sandbox), Vec::<u32>::new(), "{why}: a child is left");
    let folder = sandbox.data().join("tasks");
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(file).unwrap();
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let payloads: Vec<&Value> = records.iter().map(|record| &record["envelope"]["payload"]).collect();
    let aborted = payloads
        .iter()
        .find(|payload| payload["type"] == "TaskAborted")
        .expect(why);
    assert_eq!(aborted["reason"], reason, "{why}");
    let result = payloads
        .iter()
        .find(|payload| payload["type"] == "FinalResult")
        .expect(why);
    assert_eq!(result["cause"], "aborted", "{why}");
    assert_eq!(
        records.last().unwrap()["entry"],
        "closed",
        "{why}: the journal is closed"
    );
    // Memory and audit were flushed, not torn.
    sandbox.run(&["memory", "verify"]).ended(0);
    sandbox.run(&["audit", "verify"]).ended(0);
    let heard = std::fs::read_to_string(sandbox.data().join("audit.jsonl")).unwrap();
    assert!(
        heard.contains("TaskAborted") && heard.contains("FinalResult"),
        "{why}: the auditor has the end"
    );
    sandbox.run(&["replay", "sleep"]).ended(0);
    let list = sandbox.run(&["tasks", "list", "--json"]).json();
    assert_eq!(list[0]["status"], "finished", "{why}");
}

/// Does it as often as wanted and prints how long the ends took.
fn rounds(why: &str, end: impl Fn(&Sandbox, &Server) -> Duration) {
    let rounds = std::env::var("ARTOO_SHUTDOWN_ROUNDS").map_or(1, |n| n.parse().unwrap());
    let mut took: Vec<Duration> = (0..rounds)
        .map(|_| {
            let sandbox = Sandbox::new();
            let server = Server::start(sleepy).unwrap();
            end(&sandbox, &server)
        })
        .collect();
    took.sort();
    println!(
        "{why}: {rounds} rounds, median {:?}, longest {:?}",
        took[took.len() / 2],
        took[took.len() - 1]
    );
}

#[test]
fn each_signal_kills_what_runs_and_is_told() {
    for (signal, reason) in [
        (Signal::INT, "stopped by Ctrl+C"),
        (Signal::TERM, "stopped by SIGTERM"),
        (Signal::HUP, "the terminal was closed"),
    ] {
        rounds(reason, |sandbox, server| {
            let running = Running::start(&mut sandbox.with_model(server, &[GRANT, &["sleep"]].concat()));
            await_sleeper(sandbox);
            let begun = Instant::now();
            running.signal(signal);
            let done = running.wait();
            let took = begun.elapsed();
            done.refused(130, &["abandon (aborted)", reason]);
            ended_in_order(sandbox, reason, reason);
            took
        });
    }
}

#[test]
fn a_closed_terminal_kills_what_runs() {
    for args in [&["sleep"][..], &[]] {
        rounds("closed terminal", |sandbox, server| {
            let Some(mut pty) = Pty::start(&sandbox.with_model(server, &[GRANT, args].concat())) else {
                return Duration::ZERO;
            };
            if args.is_empty() {
                pty.expect("artoo> ");
                pty.send("sleep\r");
            }
            await_sleeper(sandbox);
            let begun = Instant::now();
            let code = pty.close();
            let took = begun.elapsed();
            assert_eq!(code, Some(130), "{args:?}");
            ended_in_order(sandbox, "closed terminal", "the terminal was closed");
            took
        });
    }
}

#[test]
fn whoever_stops_the_conversation_stops_its_task() {
    let sandbox = Sandbox::new();
    let server = Server::start(sleepy).unwrap();
    let Some(mut pty) = Pty::start(&sandbox.with_model(&server, GRANT)) else {
        return;
    };
    pty.expect("artoo> ");
    pty.send("sleep\r");
    await_sleeper(&sandbox);
    pty.signal(Signal::TERM);
    assert_eq!(pty.wait(), Some(130), "and does not come back to the prompt");
    ended_in_order(&sandbox, "SIGTERM", "stopped by SIGTERM");
}

#[test]
fn whoever_stops_a_conversation_that_waits_for_a_line_is_told() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = Pty::start(&sandbox.artoo(&[])) else {
        return;
    };
    pty.expect("artoo> ");
    pty.signal(Signal::TERM);
    pty.expect("stopped by SIGTERM");
    assert_eq!(pty.wait(), Some(130));
}

#[test]
fn a_reader_that_goes_away_stops_the_task_whose_messages_it_read() {
    rounds("closed pipe", |sandbox, server| {
        let mut child = sandbox
            .with_model(server, &[GRANT, &["run", "--json", "sleep"]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let id = Pid::from_child(&child);
        await_sleeper(sandbox);
        let begun = Instant::now();
        drop(child.stdout.take());
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > LIMIT {
                let _ = kill_process(id, Signal::KILL);
            }
            std::thread::yield_now();
        };
        let took = begun.elapsed();
        assert_eq!(ended.code(), Some(130));
        ended_in_order(sandbox, "closed pipe", "nobody reads the messages any more");
        took
    });
}

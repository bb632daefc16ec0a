//! What an interrupted task may do when it goes on, what it may not, and what is written down of it (design §17).
//!
//! Every task here ran to its end; then the end of its journal was taken away, as a death at that record would have left it.

use std::path::PathBuf;

use artoo_testkit::server::{Response, Server, asked_for};
use artoo_testkit::skipping::skipped;
use serde_json::{Value, json};

use crate::pty::Pty;
use crate::support::{Done, Running, Sandbox, last_message};

const TASK: &str = "do it";
const DONE: &str = "it is done";

/// A model that calls these tools one after the other, each when the one before has come to an end, and then says what it heard.
fn calling(calls: &[(&'static str, Value)], criterion: &Value) -> Server {
    let calls = calls.to_vec();
    let plan = json!({"task_criteria": [criterion], "subtasks": [{"sequence": 1, "intent": "do it", "context": "",
        "success_criteria": [criterion], "tools": calls.iter().map(|(tool, _)| tool).collect::<Vec<_>>()}]});
    Server::start(move |body| match asked_for(body) {
        "task_spec" => Response::Content(
            json!({"slug": "do_it", "intent": "do it", "scope": null, "deadline": null, "clarify": [], "direct_answer": null})
                .to_string(),
        ),
        "plan" => Response::Content(plan.to_string()),
        "tools" => {
            let messages = body["messages"].as_array().cloned().unwrap_or_default();
            let made = messages.iter().filter(|message| message["role"] == "tool").count();
            match calls.get(made) {
                Some((tool, input)) => Response::ToolCall(tool, input.clone()),
                None => Response::Content(format!("{DONE}: {}", last_message(body))),
            }
        }
        other => Response::Raw(400, other.to_owned()),
    })
    .unwrap()
}

fn present(path: &str) -> Value {
    json!({"criterion": format!("{path} is there"), "mode": "verifiable", "check": {"kind": "file_exists", "path": path}})
}

fn run(sandbox: &Sandbox, server: &Server, args: &[&str]) -> Done {
    Running::start(&mut sandbox.with_model(server, args)).wait()
}

fn journal(sandbox: &Sandbox) -> PathBuf {
    let mut files = std::fs::read_dir(sandbox.data().join("tasks")).unwrap();
    files.next().unwrap().unwrap().path()
}

fn text(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(journal(sandbox)).unwrap()
}

/// Takes away everything behind the first record that holds all of these.
fn cut_behind(sandbox: &Sandbox, words: &[&str]) {
    let whole = text(sandbox);
    let holds = |line: &&str| words.iter().all(|word| line.contains(word));
    let at = whole
        .lines()
        .position(|line| holds(&line))
        .unwrap_or_else(|| panic!("{words:?} in {whole}"));
    let kept: Vec<&str> = whole.lines().take(at + 1).collect();
    std::fs::write(journal(sandbox), kept.join("\n") + "\n").unwrap();
}

/// The model's answer with the call is there, and nothing came of it yet.
const ANSWERED: [&str; 3] = ["\"entry\":\"answered\"", "\"role\":\"R3\"", "\"tool_calls\""];

#[test]
fn what_was_undone_is_not_gone_on_with() {
    let sandbox = Sandbox::new();
    let edit = json!({"path": "notes.txt", "old": "four", "new": "five"});
    let server = calling(&[("edit_file", edit)], &present("notes.txt"));
    run(&sandbox, &server, &["--allow", "modify:*", TASK]).ended(0);
    let notes = || std::fs::read_to_string(sandbox.project().join("notes.txt")).unwrap();
    assert!(notes().contains("five"));
    cut_behind(&sandbox, &["\"SubTaskOutcome\""]);
    let undone = sandbox.run(&["undo", "do_it"]);
    undone.ended(0).says("restored");
    assert!(undone.err.contains("had not ended; it is stopped"), "{undone:#?}");
    assert!(notes().contains("four"));
    // Once is enough.
    let before = text(&sandbox);
    sandbox.run(&["undo", "do_it"]).ended(0);
    assert_eq!(text(&sandbox), before);
    let asked = server.seen().len();
    let done = run(&sandbox, &server, &["resume"]);
    done.ended(130);
    assert!(done.err.contains("undone with artoo undo"), "{done:#?}");
    assert!(notes().contains("four"));
    assert_eq!(server.seen().len(), asked, "no model is asked");
    sandbox.run(&["replay", "do_it"]).ended(0);
    let list = sandbox.run(&["tasks", "list", "--json"]).json();
    assert_eq!(list[0]["status"], "finished");
}

#[test]
fn a_task_of_which_a_secret_was_masked_does_not_act_on_the_mask() {
    let sandbox = Sandbox::new();
    let write = json!({"path": "site.env", "content": "DB_PASSWORD=hunter2hunter2\n"});
    let server = calling(&[("write_file", write)], &present("site.env"));
    let file = sandbox.workspace().join("site.env");
    run(&sandbox, &server, &[TASK]).ended(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "DB_PASSWORD=hunter2hunter2\n");
    let whole = text(&sandbox);
    assert!(
        !whole.contains("hunter2") && whole.contains("\"masked\":true"),
        "{whole}"
    );
    std::fs::remove_file(&file).unwrap();
    cut_behind(&sandbox, &ANSWERED);
    let why = [
        "a secret in this task was not kept in its journal",
        "give the task again",
        "artoo tasks rm do_it",
    ];
    let before = text(&sandbox);
    run(&sandbox, &server, &["resume"]).refused(1, &why);
    run(&sandbox, &server, &["resume", "do_it"]).refused(1, &why);
    assert!(!file.exists() && text(&sandbox) == before);
    sandbox.run(&["replay", "do_it"]).ended(0);
}

/// What was allowed for its paths alone is confined to them in the process that goes on, too, whatever is allowed there.
#[test]
fn what_was_allowed_by_path_is_confined_to_it_when_it_goes_on() {
    const CONFINED: &str = "opens nothing above it";
    let sandbox = Sandbox::new();
    let path = sandbox.project().join("granted/new/a.txt");
    let grant = format!("create:{}", sandbox.project().join("granted/*").display());
    // Whoever is confined to that very file hears that its folder is not opened; bash alone would say that it is not there.
    let command = json!({"command": format!("echo x > {}", path.display())});
    let server = calling(&[("shell", command)], &present("notes.txt"));
    run(&sandbox, &server, &["--allow", &grant, TASK]);
    let first = text(&sandbox);
    if !first.contains(CONFINED) {
        return skipped("landlock", "nothing confines what a command writes here");
    }
    for today in [&[][..], &["--allow", "create:*"]] {
        cut_behind(&sandbox, &ANSWERED);
        assert!(!text(&sandbox).contains(CONFINED));
        run(&sandbox, &server, &[today, &["resume"]].concat());
        assert!(text(&sandbox).contains(CONFINED), "with {today:?}");
    }
}

/// The person's word on what may have happened is in the journal, before what came of it.
#[test]
fn what_is_done_again_stands_in_the_journal_with_the_consent() {
    let moving = || {
        let sandbox = Sandbox::new();
        let server = calling(
            &[("shell", json!({"command": "mv notes.txt moved.txt"}))],
            &present("moved.txt"),
        );
        run(
            &sandbox,
            &server,
            &["--allow", "modify:*", "--allow", "destroy:*", TASK],
        )
        .ended(0);
        std::fs::rename(sandbox.project().join("moved.txt"), sandbox.project().join("notes.txt")).unwrap();
        cut_behind(&sandbox, &["\"kind\":\"run_tool\""]);
        (sandbox, server)
    };
    let said = |sandbox: &Sandbox| -> Value {
        let told = sandbox.journal();
        let at = told
            .iter()
            .position(|said| said["payload"]["type"] == "TaskResumed")
            .unwrap();
        json!({
            "present": told[at]["payload"]["person_present"],
            "action": told[at + 1]["payload"]["action"],
            "asks": told[at + 1]["from"],
            "consent": told[at + 2]["payload"]["consent"],
        })
    };
    let (sandbox, server) = moving();
    let resumed = run(&sandbox, &server, &["resume"]);
    assert!(resumed.err.contains("it may have happened"), "{resumed:#?}");
    let nobody = json!({"present": false, "action": "mv notes.txt moved.txt", "asks": "Runtime", "consent": "nobody"});
    assert_eq!(said(&sandbox), nobody);
    sandbox.run(&["replay", "do_it"]).ended(0);
    sandbox.run(&["audit", "verify"]).ended(0);
    let (sandbox, server) = moving();
    let Some(mut pty) = Pty::start(&sandbox.with_model(&server, &["resume"])) else {
        return;
    };
    pty.expect("it may have happened");
    pty.expect("[N]o: ");
    pty.send("y\n");
    pty.expect("accept (met)");
    assert_eq!(pty.wait(), Some(0));
    let yes = json!({"present": true, "action": "mv notes.txt moved.txt", "asks": "Runtime", "consent": "yes"});
    assert_eq!(said(&sandbox), yes);
    sandbox.run(&["replay", "do_it"]).ended(0);
    sandbox
        .run(&["report", "do_it"])
        .ended(0)
        .says("mv notes.txt moved.txt");
}

#[test]
fn who_looks_for_what_was_interrupted_reads_the_end_of_what_was_not() {
    let sandbox = Sandbox::new();
    sandbox.run(&["count the files in src"]).ended(0);
    let whole = text(&sandbox);
    let mut lines: Vec<&str> = whole.lines().collect();
    lines[3] = "not looked at";
    std::fs::write(journal(&sandbox), lines.join("\n") + "\n").unwrap();
    let looked = sandbox.run(&["resume"]);
    looked.refused(0, &["no task was interrupted"]);
    assert!(!looked.err.contains("damaged"), "{looked:#?}");
    // Without its last line it has to be read.
    lines.pop();
    std::fs::write(journal(&sandbox), lines.join("\n") + "\n").unwrap();
    let looked = sandbox.run(&["resume"]);
    assert!(looked.err.contains("line 4 of the journal is damaged"), "{looked:#?}");
}

#[test]
fn a_dropped_task_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    sandbox.run(&["count the files in src"]).ended(0);
    let task = journal(&sandbox).file_stem().unwrap().to_str().unwrap().to_owned();
    let outputs = sandbox.data().join("outputs");
    for id in [task.as_str(), "other_0000000a"] {
        std::fs::create_dir_all(outputs.join(id)).unwrap();
        std::fs::write(outputs.join(id).join("s1.txt"), "long").unwrap();
    }
    sandbox.run(&["tasks", "rm", &task]).ended(0);
    assert!(!outputs.join(&task).exists() && outputs.join("other_0000000a").exists());
}

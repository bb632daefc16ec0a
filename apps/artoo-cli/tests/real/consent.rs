//! Law 1 at the command line: nothing of the person's is changed without their yes to that exact action (design §9).

use artoo_testkit::server::{Response, Server, asked_for};
use serde_json::{Value, json};

use crate::pty::Pty;
use crate::support::{Running, Sandbox, last_message};

/// Deletes `notes.txt`, and says so when it may not.
pub fn deleting(body: &Value) -> Response {
    let criterion = json!({"criterion": "notes.txt is gone", "mode": "verifiable", "check": {"kind": "file_absent", "path": "notes.txt"}});
    let content = |value: Value| Response::Content(value.to_string());
    match asked_for(body) {
        "task_spec" => content(
            json!({"slug": "delete_notes", "intent": "delete notes.txt", "scope": null, "deadline": null,
            "clarify": [], "direct_answer": null}),
        ),
        "plan" => content(
            json!({"task_criteria": [criterion], "subtasks": [{"sequence": 1, "intent": "delete notes.txt", "context": "",
            "success_criteria": [criterion], "tools": ["shell"]}]}),
        ),
        "tools" => match last_message(body) {
            text if text.starts_with("not run") => Response::ToolCall(
                "report",
                json!({"status": "failed", "output": "", "reason": "it was not allowed"}),
            ),
            text if text.contains("exit status 0") => Response::Content("notes.txt is deleted".into()),
            _ => Response::ToolCall("shell", json!({"command": "rm notes.txt"})),
        },
        _ => Response::Raw(400, String::new()),
    }
}

#[test]
fn without_a_terminal_an_action_that_needs_a_yes_is_refused() {
    let sandbox = Sandbox::new();
    let server = Server::start(deleting).unwrap();
    let done = Running::start(&mut sandbox.with_model(&server, &["delete notes.txt"])).wait();
    done.refused(4, &["law 1", "nobody is there to be asked", "abandon (refused)"]);
    assert!(sandbox.project().join("notes.txt").exists());
    // A yes on standard input comes from a program, not from a person.
    let mut piped = sandbox.with_model(&server, &["delete notes.txt"]);
    Running::fed(&mut piped, b"y\ny\n".to_vec())
        .wait()
        .refused(4, &["law 1"]);
    assert!(sandbox.project().join("notes.txt").exists());
}

#[test]
fn what_was_allowed_beforehand_runs_and_nothing_else() {
    let sandbox = Sandbox::new();
    let server = Server::start(deleting).unwrap();
    let with =
        |grant: &str| Running::start(&mut sandbox.with_model(&server, &["--allow", grant, "delete notes.txt"])).wait();
    for other in ["modify:*", "destroy:rm other.txt", "destroy:/tmp/elsewhere/*"] {
        with(other).refused(4, &["law 1"]);
        assert!(sandbox.project().join("notes.txt").exists(), "{other}");
    }
    let done = with("destroy:rm notes.txt");
    done.ended(0);
    assert!(!sandbox.project().join("notes.txt").exists());
}

/// Runs this command, and says so when it may not.
fn running(command: &'static str) -> Server {
    let criterion = json!({"criterion": "notes.txt is gone", "mode": "verifiable", "check": {"kind": "file_absent", "path": "notes.txt"}});
    let content = |value: Value| Response::Content(value.to_string());
    Server::start(move |body| match asked_for(body) {
        "tools" => match last_message(body) {
            text if text.starts_with("not run") => Response::Content("it was refused".into()),
            text if text.contains("exit status") => Response::Content("it ran".into()),
            _ => Response::ToolCall("shell", json!({ "command": command })),
        },
        "plan" => content(
            json!({"task_criteria": [criterion], "subtasks": [{"sequence": 1, "intent": "delete notes.txt", "context": "",
            "success_criteria": [criterion], "tools": ["shell"]}]}),
        ),
        _ => deleting(body),
    })
    .unwrap()
}

/// What a refusal says would allow the action, typed as it stands into a shell, does allow it: it, and nothing beside it.
#[test]
fn the_flag_that_a_refusal_names_allows_that_very_action() {
    const RELATED: &str = "rm notes.txt 'my notes.txt' src/a.rs";
    for command in [
        "rm notes.txt",
        "rm notes.txt 'my notes.txt'",
        "rm -f notes.txt ./*[q]{x,y}?.tmp  # it's \\ all",
        "for f in notes.txt; do\n  rm \"$f\"\ndone",
    ] {
        let sandbox = Sandbox::new();
        let task = |server: &Server, flags: &[&str]| {
            let args: Vec<&str> = flags.iter().copied().chain(["delete notes.txt"]).collect();
            Running::start(&mut sandbox.with_model(server, &args)).wait()
        };
        let server = running(command);
        let refused = task(&server, &[]);
        refused.refused(4, &["law 1"]);
        let (_, said) = refused.err.split_once("--allow ").expect("the flag");
        // Below it stands the line of the figures.
        let (said, _) = said.split_once(" model calls").expect("the figures");
        let (said, _) = said.rsplit_once('\n').expect("a line of its own");
        let typed = sandbox.shell(&format!("printf '%s\\0' --allow {said}"));
        let flags: Vec<&str> = typed.trim_end_matches('\0').split('\0').collect();
        assert_eq!(flags.len(), 2, "{flags:?} of {refused:#?}");
        for other in [RELATED, "rm notes.txt; rm src/a.rs"] {
            task(&running(other), &flags).refused(4, &["law 1"]);
            assert!(sandbox.project().join("notes.txt").exists(), "{other} by {flags:?}");
        }
        task(&server, &flags).ended(0);
        assert!(!sandbox.project().join("notes.txt").exists(), "{flags:?}");
        assert!(sandbox.project().join("src/a.rs").exists());
    }
}

#[test]
fn at_a_terminal_the_person_decides() {
    for (answer, code, left) in [("y\n", 0, false), ("\n", 4, true), ("n\n", 4, true), ("\u{4}", 4, true)] {
        let sandbox = Sandbox::new();
        let server = Server::start(deleting).unwrap();
        let Some(mut pty) = Pty::start(&sandbox.with_model(&server, &["delete notes.txt"])) else {
            return;
        };
        pty.expect("rm notes.txt");
        pty.expect("[N]o: ");
        pty.send(answer);
        assert_eq!(pty.wait(), Some(code), "{answer:?}");
        assert_eq!(sandbox.project().join("notes.txt").exists(), left, "{answer:?}");
    }
}

#[test]
fn what_was_typed_before_the_question_is_no_answer_to_it() {
    let sandbox = Sandbox::new();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let (told, asked) = std::sync::mpsc::channel();
    let server = Server::start(move |body| {
        if asked_for(body) == "task_spec" {
            let _ = told.send(());
            let _ = held.lock().unwrap().recv();
        }
        deleting(body)
    })
    .unwrap();
    let Some(mut pty) = Pty::start(&sandbox.with_model(&server, &["delete notes.txt"])) else {
        return;
    };
    asked.recv_timeout(crate::support::LIMIT).unwrap();
    pty.send("y\n");
    // The terminal echoes what it took.
    pty.expect("y");
    drop(release);
    pty.expect("[N]o: ");
    pty.send("n\n");
    assert_eq!(pty.wait(), Some(4));
    assert!(sandbox.project().join("notes.txt").exists());
}

/// Edits `notes.txt` and deletes a folder with artoo's own tools.
fn tidying(body: &Value) -> Response {
    let content = |value: Value| Response::Content(value.to_string());
    let criterion =
        json!({"criterion": "old is gone", "mode": "verifiable", "check": {"kind": "file_absent", "path": "src"}});
    match asked_for(body) {
        "task_spec" => content(
            json!({"slug": "tidy", "intent": "tidy up", "scope": null, "deadline": null, "clarify": [], "direct_answer": null}),
        ),
        "plan" => content(
            json!({"task_criteria": [criterion], "subtasks": [{"sequence": 1, "intent": "edit and delete", "context": "",
            "success_criteria": [criterion], "tools": ["edit_file", "delete_files"]}]}),
        ),
        "tools" => match last_message(body) {
            text if text.contains("deleted ") => Response::Content("done".into()),
            text if text.contains("changed ") => Response::ToolCall("delete_files", json!({"paths": ["src"]})),
            text if text.starts_with("not run") => Response::Content("refused".into()),
            _ => Response::ToolCall("edit_file", json!({"path": "notes.txt", "old": "four", "new": "five"})),
        },
        _ => Response::Raw(400, String::new()),
    }
}

#[test]
fn a_person_sees_the_change_and_the_list_and_takes_both_back() {
    let sandbox = Sandbox::new();
    let server = Server::start(tidying).unwrap();
    let Some(mut pty) = Pty::start(&sandbox.with_model(&server, &["tidy up"])) else {
        return;
    };
    pty.expect("-four");
    pty.expect("+five");
    pty.expect("[N]o: ");
    pty.send("y\n");
    pty.expect("delete 1 paths, 5 files and folders in all");
    pty.expect("deep/b.rs");
    pty.expect("[N]o: ");
    pty.send("y\n");
    assert_eq!(pty.wait(), Some(0));
    assert!(!sandbox.project().join("src").exists());
    let notes = sandbox.project().join("notes.txt");
    assert!(std::fs::read_to_string(&notes).unwrap().contains("five"));
    let undone = sandbox.run(&["undo", "tidy"]);
    undone.ended(0);
    assert!(
        undone.out.contains("restored") && undone.out.contains("notes.txt"),
        "{undone:#?}"
    );
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "one two three\nfour\n");
    assert_eq!(
        std::fs::read_to_string(sandbox.project().join("src/deep/c.txt"))
            .unwrap()
            .len(),
        5_000
    );
    // What somebody changed since is left alone, and a dropped task cannot be undone.
    sandbox.run(&["undo"]).ended(0);
    sandbox.file("notes.txt", "mine");
    sandbox.run(&["undo", "--json"]).ended(1);
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "mine");
    // Forced, the newer content makes way and is kept where it is said: no second order can lose it.
    let forced = sandbox.run(&["undo", "--force", "--json"]).json();
    let laid_by = forced["paths"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|one| one["laid_by"].as_str())
        .unwrap_or_else(|| panic!("{forced}"));
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "one two three\nfour\n");
    assert_eq!(std::fs::read_to_string(laid_by).unwrap(), "mine");
    sandbox.file("notes.txt", "mine again");
    sandbox.run(&["undo", "--force"]).says("(what was there is kept in ");
    assert_eq!(std::fs::read_to_string(laid_by).unwrap(), "mine");
    sandbox.run(&["tasks", "rm", "tidy"]).ended(0);
    sandbox.run(&["undo", "tidy"]).refused(2, &["there is no task"]);
    assert_eq!(std::fs::read_dir(sandbox.data().join("undo")).unwrap().count(), 0);
}

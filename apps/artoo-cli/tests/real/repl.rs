//! The conversation on a terminal, through a pseudo-terminal (design §21).

use std::sync::atomic::{AtomicBool, Ordering};

use artoo_testkit::server::Response;

use crate::consent::deleting;
use crate::pty::Pty;
use crate::support::{LIMIT, Sandbox, told};

#[test]
fn two_tasks_and_commands_in_one_conversation() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = Pty::start(&sandbox.artoo(&[])) else {
        return;
    };
    pty.expect("artoo> ");
    pty.send("count the Rust files in src\r");
    pty.expect("accept (met)");
    pty.expect("artoo> ");
    pty.send("\"\"\"\r");
    pty.send("write \"hi\"\r");
    pty.send("to hi.txt\"\"\"\r");
    pty.expect("accept (met)");
    pty.expect("artoo> ");
    pty.send("/tasks\r");
    pty.expect("write_file");
    pty.expect("count_rs_files");
    pty.expect("artoo> ");
    for (command, answer) in [
        ("/help", "stops the task only"),
        ("/model", "builtin:offline"),
        ("/memory", "memories in"),
        ("/audit", "2 tasks"),
        ("/nonsense", "no command `/nonsense`"),
    ] {
        pty.send(&format!("{command}\r"));
        pty.expect(answer);
        pty.expect("artoo> ");
    }
    pty.send("\u{4}");
    assert_eq!(pty.wait(), Some(0));
    assert_eq!(
        std::fs::read_to_string(sandbox.workspace().join("hi.txt"))
            .unwrap()
            .trim(),
        "hi"
    );
    // What was typed is there the next time.
    let Some(mut pty) = Pty::start(&sandbox.artoo(&[])) else {
        return;
    };
    pty.expect("artoo> ");
    pty.send("\u{1b}[A");
    pty.expect("/nonsense");
    // The first of these clears the line, however many came before.
    pty.send("\u{3}");
    pty.expect("artoo> ");
    pty.send("\u{3}");
    pty.expect("once more");
    pty.expect("artoo> ");
    pty.send("never mind");
    pty.expect("never mind");
    pty.send("\u{3}");
    pty.expect("artoo> ");
    pty.send("\u{3}");
    pty.expect("once more");
    pty.expect("artoo> ");
    pty.send("\u{3}");
    assert_eq!(pty.wait(), Some(0));
}

#[test]
fn wishes_are_remembered_and_forgotten_in_the_conversation() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = Pty::start(&sandbox.artoo(&[])) else {
        return;
    };
    let mut say = |line: &str, answer: &str| {
        pty.expect("artoo> ");
        pty.send(&format!("{line}\r"));
        pty.expect(answer);
    };
    say("/remember always use yarn", "remembered as ");
    say("/remember Always  use yarn", "it was known already");
    say("/remember", "there is nothing to remember");
    say("/memory build the project", "always use yarn");
    say("/forget nothing-like-it", "there is no memory `nothing-like-it`");
    say("/memory", "1 memories in");
    pty.expect("artoo> ");
    pty.send("\u{4}");
    assert_eq!(pty.wait(), Some(0));
    let kept = sandbox.run(&["memory", "list", "--json"]).ended(0).json();
    let id = kept[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(kept[0]["content"], "always use yarn");

    let Some(mut pty) = Pty::start(&sandbox.artoo(&[])) else {
        return;
    };
    pty.expect("artoo> ");
    pty.send(&format!("/forget {id}\r"));
    pty.expect("is forgotten");
    pty.expect("artoo> ");
    pty.send("\u{4}");
    assert_eq!(pty.wait(), Some(0));
    assert_eq!(sandbox.run(&["memory", "export"]).ended(0).out, "");
}

#[test]
fn ctrl_c_stops_the_task_and_never_the_program() {
    let sandbox = Sandbox::new();
    let first = AtomicBool::new(true);
    let (server, asked) = told(move |body| {
        if first.swap(false, Ordering::Relaxed) {
            Response::Silence
        } else {
            deleting(body)
        }
    });
    let Some(mut pty) = Pty::start(&sandbox.with_model(&server, &[])) else {
        return;
    };
    pty.expect("artoo> ");
    pty.send("never mind\r");
    asked.recv_timeout(LIMIT).unwrap();
    pty.send("\u{3}");
    pty.expect("abandon (aborted)");
    pty.expect("artoo> ");
    // Now while it waits for an answer of the person: the abandoned question must not take the next line.
    pty.send("delete notes.txt\r");
    pty.expect("[N]o: ");
    pty.send("\u{3}");
    pty.expect("abandon (aborted)");
    pty.expect("artoo> ");
    pty.send("/help\r");
    pty.expect("stops the task only");
    pty.expect("artoo> ");
    pty.send("delete notes.txt\r");
    pty.expect("[N]o: ");
    pty.send("y\n");
    pty.expect("accept (met)");
    pty.expect("artoo> ");
    pty.signal(rustix::process::Signal::TERM);
    pty.expect("stopped by SIGTERM");
    assert_eq!(pty.wait(), Some(130));
    assert!(!sandbox.project().join("notes.txt").exists());
}

#[test]
fn pasted_lines_are_one_input_and_what_is_begun_can_be_completed() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = Pty::start(&sandbox.artoo(&[])) else {
        return;
    };
    pty.expect("artoo> ");
    // As a terminal sends what was pasted into it; nothing runs before the person says so.
    pty.send("\u{1b}[200~count the Rust files\rin src\u{1b}[201~");
    pty.expect("in src");
    pty.send("\r");
    pty.expect("accept (met)");
    pty.expect("artoo> ");
    // Forward-delete on an empty line is no end of input.
    pty.send("\u{1b}[3~/mod\t\r");
    pty.expect("/model");
    pty.expect("brain:");
    pty.expect("artoo> ");
    // Where several fit, they are listed, and what was typed stays.
    let before = pty.shown().len();
    pty.send("/re\t");
    pty.expect("/re\r");
    let listed = pty.shown().split_off(before);
    for command in ["/remember", "/report", "/resume"] {
        assert!(listed.contains(command), "{command}: {listed:?}");
    }
    pty.send("port\r");
    pty.expect("count_rs_files");
    pty.expect("artoo> ");
    pty.send("/cost\r");
    pty.expect("this conversation: 1 tasks");
    pty.expect("artoo> ");
    pty.send("/report\r");
    pty.expect("count_rs_files");
    pty.expect("artoo> ");
    pty.send("\u{4}");
    assert_eq!(pty.wait(), Some(0));
    let inputs: Vec<String> = sandbox
        .journal()
        .iter()
        .filter_map(|envelope| envelope["payload"]["text"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(inputs, ["count the Rust files\nin src"]);
}

#[test]
fn the_keys_of_vi_are_there_for_who_wants_them() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.data()).unwrap();
    std::fs::write(sandbox.data().join("config.toml"), "keys = \"vi\"\n").unwrap();
    let Some(mut pty) = Pty::start(&sandbox.artoo(&[])) else {
        return;
    };
    pty.expect("artoo> ");
    // Escape, to the beginning, delete a character, append at the end.
    pty.send("x/modxx\u{1b}0xA\u{7f}\u{7f}el\r");
    pty.expect("brain:");
    pty.expect("artoo> ");
    pty.send("\u{4}");
    assert_eq!(pty.wait(), Some(0));
}

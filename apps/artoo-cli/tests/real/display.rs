//! The live display, on a real pseudo-terminal and seen through a terminal's own grid (design §21).

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use artoo_testkit::server::{Response, Server, asked_for, results_in};
use serde_json::{Value, json};

use crate::pty::{Grid, Pty, Size};
use crate::support::Sandbox;

/// Three steps, two at once; the texts are wide, long, and one is hostile.
const STEPS: [(u32, &str); 3] = [
    (1, "统计源代码目录里所有文件的行数并且把结果写下来"),
    (
        1,
        "list the folder \u{1b}[2J and say what is in it, in so many words that no terminal is wide enough for all of them, not even a wide one",
    ),
    (2, "say it 🙂"),
];

/// A model that plans these steps and works on none before it is told to: each message lets one step's work go on.
fn planning() -> (Server, Sender<()>) {
    let (release, held): (Sender<()>, Receiver<()>) = channel();
    let held = Mutex::new(held);
    let content = |value: Value| Response::Content(value.to_string());
    let server = Server::start(move |body| {
        let criterion = |n: usize| json!({"criterion": format!("step {n} 完成"), "mode": "verifiable", "check": {"kind": "output_matches", "pattern": "notes"}});
        match asked_for(body) {
            "task_spec" => content(
                json!({"slug": "count", "intent": "数一数 everything", "scope": null, "deadline": null,
                "clarify": [], "direct_answer": null}),
            ),
            "plan" => {
                let subtasks: Vec<Value> = STEPS
                    .iter()
                    .enumerate()
                    .map(|(n, (sequence, intent))| {
                        json!({"sequence": sequence, "intent": intent, "context": "",
                        "success_criteria": [criterion(n)], "tools": ["shell"]})
                    })
                    .collect();
                content(json!({"task_criteria": [criterion(9)], "subtasks": subtasks}))
            }
            "tools" if results_in(body) == 0 => {
                // Closed when the test is over.
                let _ = held.lock().unwrap().recv();
                Response::ToolCall("shell", json!({"command": "ls"}))
            }
            "tools" => Response::Content("there are notes.txt and src".into()),
            _ => Response::Raw(400, String::new()),
        }
    });
    (server.unwrap(), release)
}

/// The screen of a grid of this size after this text.
fn seen(text: &str, size: Size) -> String {
    let mut grid = Grid::new(size);
    grid.write(text);
    grid.text()
}

#[test]
fn the_plan_is_a_tree_that_fills_in_and_stays() {
    for columns in [24, 80, 200] {
        let size = Size(columns, 24);
        let sandbox = Sandbox::new();
        let (server, release) = planning();
        let Some(mut pty) = Pty::sized(&sandbox.with_model(&server, &["count"]), size) else {
            return;
        };
        // Both steps of the first group wait for the model.
        pty.expect("working ×2");
        pty.expect("\u{1b}[?2026l");
        let running = seen(&pty.shown(), size);
        let rows: Vec<&str> = running.lines().collect();
        assert!(running.contains("数一数 everything"), "{columns}: {running}");
        assert_eq!(
            rows.iter()
                .filter(|row| row.contains("step 0") || row.contains("step 1"))
                .count(),
            2,
            "{columns}: {running}"
        );
        assert!(
            rows.iter().any(|row| row.starts_with("2 · say it 🙂")),
            "{columns}: {running}"
        );
        assert!(rows.last().unwrap().contains("working ×2"), "{columns}: {running}");
        drop(release);
        pty.expect("accept (met)");
        pty.expect("tool");
        let over = seen(&pty.shown(), size);
        // Each thing once: nothing of the pictures before is left, and no line was broken.
        assert_eq!(over.matches("数一数 everything").count(), 1, "{columns}: {over}");
        for (sequence, intent) in STEPS {
            let begin: String = intent.chars().take(6).collect();
            let row = format!("{sequence} ✓ {begin}");
            assert_eq!(over.matches(&row).count(), 1, "{columns}: {row}: {over}");
        }
        assert!(
            !over.contains("working") && !over.contains("· say it"),
            "{columns}: {over}"
        );
        assert!(over.contains("notes.txt"), "{columns}: the result: {over}");
        assert_eq!(pty.wait(), Some(0));
    }
}

#[test]
fn a_terminal_that_changes_its_size_shows_everything_once() {
    for (before, after) in [
        (Size(150, 30), Size(40, 30)),
        (Size(40, 30), Size(150, 30)),
        (Size(100, 30), Size(100, 12)),
    ] {
        let sandbox = Sandbox::new();
        let (server, release) = planning();
        let Some(mut pty) = Pty::sized(&sandbox.with_model(&server, &["count"]), before) else {
            return;
        };
        pty.expect("working ×2");
        pty.pause();
        let mut grid = Grid::new(before);
        // As usual, the screen is full. On one that is not, or that is smaller afterwards than the picture was, a terminal puts the
        // beginning of the picture where nothing can be taken back.
        grid.write(&"earlier\r\n".repeat(before.1));
        let shown = pty.shown();
        grid.write(&shown);
        pty.resize(after);
        grid.resize(after);
        pty.go_on();
        drop(release);
        pty.expect("accept (met)");
        pty.expect("tool");
        grid.write(&pty.shown()[shown.len()..]);
        let over = grid.text();
        assert_eq!(over.matches("2 ✓ say it").count(), 1, "{over}");
        assert_eq!(over.matches("数一数 everything").count(), 1, "{over}");
        assert!(!over.contains("working"), "{over}");
        assert_eq!(
            over.matches("earlier").count(),
            before.1,
            "what stood above is still there: {over}"
        );
        assert_eq!(pty.wait(), Some(0));
    }
}

#[test]
fn without_colour_the_tree_is_the_same_and_without_a_capable_terminal_there_are_plain_lines() {
    let sandbox = Sandbox::new();
    let (server, release) = planning();
    drop(release);
    let mut command = sandbox.with_model(&server, &["count"]);
    let Some(mut pty) = Pty::start(command.env("NO_COLOR", "1")) else {
        return;
    };
    pty.expect("accept (met)");
    let shown = pty.shown();
    assert!(
        shown.contains("2 ✓ say it") && !shown.contains("\u{1b}[3") && !shown.contains("\u{1b}[1m"),
        "{shown:?}"
    );
    assert_eq!(pty.wait(), Some(0));
    let Some(mut pty) = Pty::start(sandbox.with_model(&server, &["count"]).env("TERM", "dumb")) else {
        return;
    };
    pty.expect("matched");
    pty.expect("accept (met)");
    assert!(!pty.shown().contains('\u{1b}'), "{:?}", pty.shown());
    assert_eq!(pty.wait(), Some(0));
}

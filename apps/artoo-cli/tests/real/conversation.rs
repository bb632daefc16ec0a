//! A recorded conversation on a terminal: a question of R1, and a short reaction that is about the turn before (design §5, §18).

use std::path::{Path, PathBuf};

use crate::repl::Pty;
use crate::support::Sandbox;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_question_is_asked_and_a_short_reaction_is_about_the_last_turn() {
    let sandbox = Sandbox::new();
    let world = sandbox.project().join("world");
    copy(&fixtures().join("world"), &world);
    let cassette = fixtures().join("cassettes/conversation.jsonl");
    let mut command = sandbox.artoo(&[]);
    command
        .arg("--replay")
        .arg(&cassette)
        .arg("--cwd")
        .arg(&world)
        .arg("--workspace")
        .arg(sandbox.workspace());
    let Some(mut pty) = Pty::start(&command) else {
        return;
    };
    pty.expect("artoo> ");
    pty.send("Who wrote the letter, and when?\r");
    pty.expect("Which letter do you mean?");
    pty.expect("\n> ");
    pty.send("letters/museum.txt\r");
    pty.expect("Ingrid Dahl of the Collections of the Harbour Museum in Bergen wrote it on 24 March 2026.");
    pty.expect("artoo> ");
    pty.send("in German\r");
    pty.expect(
        "Ingrid Dahl von der Sammlungsabteilung des Hafenmuseums in Bergen hat ihn am 24. März 2026 geschrieben.",
    );
    pty.expect("artoo> ");
    pty.send("/quit\r");
    assert_eq!(pty.wait(), Some(0));
    let tasks = sandbox.artoo(&["tasks", "list", "--json"]).output().unwrap().stdout;
    let tasks: serde_json::Value = serde_json::from_slice(&tasks).unwrap();
    let intents: Vec<_> = tasks
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["intent"].as_str().unwrap())
        .collect();
    assert_eq!(
        intents,
        [
            "Tell in German who wrote letters/museum.txt, and when",
            "Tell who wrote letters/museum.txt, and when"
        ]
    );
}

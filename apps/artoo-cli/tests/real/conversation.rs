//! A recorded conversation on a terminal: a question of R1, and a short reaction that is about the turn before (design §5, §18).

use std::path::{Path, PathBuf};

use crate::pty::Pty;
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

/// A conversation on a copy of the world, answered by a cassette.
fn conversation(sandbox: &Sandbox, name: &str) -> Option<Pty> {
    conversation_on("world", sandbox, name)
}

fn conversation_on(fixture: &str, sandbox: &Sandbox, name: &str) -> Option<Pty> {
    let world = sandbox.project().join("world");
    copy(&fixtures().join(fixture), &world);
    let mut command = sandbox.artoo(&[]);
    command
        .arg("--replay")
        .arg(fixtures().join(format!("cassettes/{name}.jsonl")))
        .arg("--cwd")
        .arg(&world)
        .arg("--workspace")
        .arg(sandbox.workspace());
    Pty::start(&command)
}

/// The turns that the session file keeps.
fn kept(sandbox: &Sandbox) -> Vec<String> {
    let file = sandbox.data().join("sessions/last.json");
    let session: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let turns = session["turns"].as_array().unwrap().iter();
    turns.map(|turn| turn["input"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn follow_ups_are_about_the_turns_before_and_a_change_is_asked_for() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = conversation(&sandbox, "hand_follow_ups") else {
        return;
    };
    pty.expect("artoo> ");
    pty.send("what was the total revenue in sales/2026.csv?\r");
    pty.expect("35736");
    pty.expect("artoo> ");
    pty.send("and 2025?\r");
    pty.expect("33000");
    pty.expect("artoo> ");
    pty.send("write both to totals.txt\r");
    pty.expect("2026: 35736");
    pty.expect("artoo> ");
    pty.send("make it nicer\r");
    pty.expect("+Revenue by year");
    pty.expect("[N]o: ");
    pty.send("y\r");
    pty.expect("2026   35 736");
    pty.expect("artoo> ");
    pty.send("/quit\r");
    assert_eq!(pty.wait(), Some(0));
    let totals = std::fs::read_to_string(sandbox.workspace().join("totals.txt")).unwrap();
    assert_eq!(totals, "Revenue by year\n\n2025   33 000\n2026   35 736\n");
    assert_eq!(kept(&sandbox).len(), 4);
}

#[test]
fn four_turns_each_about_the_one_before_and_a_wrong_one_is_put_right() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = conversation_on("desk", &sandbox, "desk_talk") else {
        return;
    };
    pty.expect("artoo> ");
    pty.send("what did the book purchases in expenses.csv come to in February 2026?\r");
    pty.expect("198.98 in 6 purchases");
    pty.expect("artoo> ");
    pty.send("and groceries?\r");
    pty.expect("152.61 in 3 purchases");
    pty.expect("artoo> ");
    pty.send("put both in a file\r");
    pty.expect("Books: 198.98 (6 purchases)");
    pty.expect("artoo> ");
    pty.send("wrong, leave out the number of purchases\r");
    pty.expect("-Books: 198.98 (6 purchases)");
    pty.expect("[N]o: ");
    pty.send("y\r");
    pty.expect("accept (met)");
    pty.expect("artoo> ");
    pty.send("/quit\r");
    assert_eq!(pty.wait(), Some(0));
    let written = std::fs::read_to_string(sandbox.workspace().join("february_2026.txt")).unwrap();
    assert_eq!(written, "Books: 198.98\nGroceries: 152.61\n");
}

#[test]
fn a_place_named_in_an_answer_may_be_changed_there_and_in_the_next_turn_it_is_asked_about() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = conversation_on("desk", &sandbox, "desk_vague") else {
        return;
    };
    let todo = sandbox.project().join("world/notes/todo.txt");
    pty.expect("artoo> ");
    pty.send("can you clean this up a bit\r");
    pty.expect("which file or folder?");
    pty.expect("\n> ");
    pty.send("notes/todo.txt, just the finished ones out\r");
    // The person has named the file for this very change, so it is within the scope.
    pty.expect("accept (met)");
    pty.expect("artoo> ");
    let open = "[ ] water the plants\n[ ] renew the passport\n[ ] fix the bicycle (due 2026-04-10)\n";
    assert_eq!(std::fs::read_to_string(&todo).unwrap(), open);
    pty.send("and the ones without a date go last\r");
    pty.expect("[N]o: ");
    pty.send("y\r");
    pty.expect("accept (met)");
    pty.expect("artoo> ");
    pty.send("/quit\r");
    assert_eq!(pty.wait(), Some(0));
    let sorted = "[ ] fix the bicycle (due 2026-04-10)\n[ ] water the plants\n[ ] renew the passport\n";
    assert_eq!(std::fs::read_to_string(&todo).unwrap(), sorted);
}

#[test]
fn what_is_vague_is_asked_and_an_empty_answer_means_the_likeliest() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = conversation(&sandbox, "hand_vague") else {
        return;
    };
    pty.expect("artoo> ");
    pty.send("sort the list\r");
    pty.expect("Which list do you mean, and by what should it be sorted?");
    pty.expect("\n> ");
    pty.send("orders.csv, by customer\r");
    pty.expect("(names in quotes come first)");
    pty.expect("artoo> ");
    pty.send("how old is the letter?\r");
    pty.expect("Which letter do you mean?");
    pty.expect("\n> ");
    pty.send("\r");
    pty.expect("letters/tomas.txt: 11 March 2026");
    pty.expect("artoo> ");
    pty.send("/quit\r");
    assert_eq!(pty.wait(), Some(0));
    assert_eq!(kept(&sandbox), ["sort the list", "how old is the letter?"]);
}

#[test]
fn a_question_is_asked_and_a_short_reaction_is_about_the_last_turn() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = conversation(&sandbox, "conversation") else {
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

//! Deriving decisions anew from the journal of a real run (design §17).

use std::path::PathBuf;

use crate::support::Sandbox;

const TASK: &str = "count the lines in notes.txt and write the result to lines.txt";

fn journal(sandbox: &Sandbox) -> PathBuf {
    let mut files = std::fs::read_dir(sandbox.data().join("tasks")).unwrap();
    files.next().unwrap().unwrap().path()
}

fn task_of(journal: &std::path::Path) -> String {
    journal.file_stem().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_run_gives_the_same_decisions_again() {
    let sandbox = Sandbox::new();
    sandbox.run(&[TASK]).ended(0);
    let task = task_of(&journal(&sandbox));
    // Neither the world nor the settings of today count: the journal holds everything.
    std::fs::remove_dir_all(sandbox.project().join("src")).unwrap();
    let replayed = sandbox
        .run(&["--max-replans", "0", "replay", &task, "--json"])
        .ended(0)
        .json();
    assert_eq!(replayed["same"], true);
    assert!(replayed["steps"].as_u64().unwrap() >= 10, "{replayed}");
    sandbox.run(&["replay", &task]).ended(0).says("give the same");
}

#[test]
fn a_changed_journal_is_shown_at_its_first_difference() {
    let sandbox = Sandbox::new();
    sandbox.run(&[TASK]).ended(0);
    let path = journal(&sandbox);
    let text = std::fs::read_to_string(&path).unwrap();
    // An answer that the world did not give: the decisions that follow from it cannot be the recorded ones.
    let (before, after) = text.split_once("\"entry\":\"answered\",\"role\":\"R3\"").unwrap();
    let changed = after.replacen("\"name\":\"", "\"name\":\"no_", 1);
    assert_ne!(changed, after, "the answer names a tool");
    std::fs::write(
        &path,
        format!("{before}\"entry\":\"answered\",\"role\":\"R3\"{changed}"),
    )
    .unwrap();
    let replayed = sandbox.run(&["replay", &task_of(&path)]);
    replayed
        .ended(1)
        .says("R3 wants something else")
        .says("/invocation/tool\n  - shell");
    assert!(replayed.err.contains("differ from the journal"), "{replayed:#?}");
}

#[test]
fn what_cannot_be_replayed_is_said() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["replay", "nothing_1234"])
        .refused(2, &["there is no task `nothing_1234`"]);
    sandbox.run(&[TASK]).ended(0);
    let path = journal(&sandbox);
    let task = task_of(&path);
    let text = std::fs::read_to_string(&path).unwrap();
    let torn = text.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n{\"n\":";
    std::fs::write(&path, &torn).unwrap();
    sandbox.run(&["replay", &task]).ended(0).says("give the same");
    std::fs::write(&path, torn.replacen("\"roles\"", "\"rolls\"", 1)).unwrap();
    sandbox
        .run(&["replay", &task])
        .refused(1, &["does not hold the settings of its roles"]);
    std::fs::write(&path, "no journal\n").unwrap();
    sandbox
        .run(&["replay", &task])
        .refused(1, &["line 1 of the journal is damaged"]);
}

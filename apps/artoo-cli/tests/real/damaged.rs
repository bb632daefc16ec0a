//! Journals that something spoiled, and names of tasks that people cut short (design §17, §21).

use std::path::PathBuf;

use serde_json::Value;

use crate::support::Sandbox;

const TASK: &str = "count the files in src";

/// A sandbox in which so many tasks ran, with their journals, newest first.
fn ran(count: usize) -> (Sandbox, Vec<(String, PathBuf)>) {
    let sandbox = Sandbox::new();
    for _ in 0..count {
        sandbox.run(&[TASK]).ended(0);
    }
    let list = sandbox.run(&["tasks", "list", "--json"]).json();
    let ids = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["task_id"].as_str().unwrap().to_owned());
    let journals = ids
        .map(|id| {
            let path = sandbox.data().join(format!("tasks/{id}.jsonl"));
            (id, path)
        })
        .collect();
    (sandbox, journals)
}

fn with_line(path: &PathBuf, line: usize, text: &str) {
    let whole = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<&str> = whole.lines().collect();
    lines[line - 1] = text;
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[test]
fn a_damaged_journal_is_listed_and_says_where_and_what_to_do() {
    let (sandbox, journals) = ran(2);
    let (id, path) = (journals[0].0.as_str(), &journals[0].1);
    with_line(path, 7, "\u{0}\u{0}\u{0}");
    let list = sandbox.run(&["tasks", "list", "--json"]).ended(0).json();
    let row = |list: &Value, id: &str| -> Value {
        let rows = list.as_array().unwrap();
        rows.iter()
            .find(|row| row["task_id"] == *id)
            .unwrap_or(&Value::Null)
            .clone()
    };
    assert_eq!(row(&list, id)["status"], "damaged");
    assert_eq!(row(&list, id)["damage"]["line"], 7);
    assert_eq!(row(&list, id)["input"], TASK, "what can be read is told");
    assert_eq!(row(&list, &journals[1].0)["status"], "finished");
    sandbox
        .run(&["tasks", "list"])
        .ended(0)
        .says("damaged")
        .says("line 7 of the journal is damaged");

    let whole_before = "the 6 lines before it are whole";
    for command in [&["replay", id][..], &["report", id], &["resume", id]] {
        sandbox.run(command).refused(
            1,
            &[
                "line 7 of the journal is damaged",
                whole_before,
                "artoo tasks log",
                "artoo tasks rm",
            ],
        );
    }
    for command in [&["tasks", "log", id][..], &["tasks", "show", id]] {
        let done = sandbox.run(command);
        done.ended(1).says(TASK);
        assert!(done.err.contains("line 7 of the journal is damaged"), "{done:#?}");
    }
    let logged = sandbox.run(&["tasks", "log", id, "--json"]);
    assert_eq!(logged.ended(1).json_lines().len(), 6);
    sandbox.run(&["tasks", "rm", id]).ended(0);
    assert_eq!(row(&sandbox.run(&["tasks", "list", "--json"]).json(), id), Value::Null);
}

#[test]
fn a_journal_without_a_first_line_is_listed_by_its_name() {
    let (sandbox, journals) = ran(1);
    let (id, path) = (journals[0].0.as_str(), &journals[0].1);
    for spoiled in ["", "{\"n\":1,", "no journal\n", "\u{0}\u{0}\n"] {
        std::fs::write(path, spoiled).unwrap();
        let list = sandbox.run(&["tasks", "list", "--json"]).ended(0).json();
        assert_eq!(list[0]["task_id"], *id, "{spoiled:?}");
        assert_eq!(
            (&list[0]["status"], &list[0]["damage"]["line"]),
            (&"damaged".into(), &1.into()),
            "{spoiled:?}"
        );
        for command in [&["replay", id][..], &["resume", id], &["tasks", "show", id]] {
            let done = sandbox.run(command);
            done.ended(1);
            assert!(
                done.err.contains("line 1 of the journal is damaged") && done.err.contains("put back a copy"),
                "{spoiled:?}: {done:#?}"
            );
        }
    }
}

#[test]
fn settings_of_the_roles_that_cannot_be_read_are_damage_and_no_version() {
    let (sandbox, journals) = ran(1);
    let (id, path) = (journals[0].0.as_str(), &journals[0].1);
    let text = std::fs::read_to_string(path).unwrap();
    let spoiled = text.replacen("\"controller\":{", "\"controller\":7,\"other\":{", 1);
    assert_ne!(spoiled, text);
    std::fs::write(path, spoiled).unwrap();
    let done = sandbox.run(&["replay", id]);
    done.ended(1);
    assert!(
        done.err
            .contains("is damaged in line 1: the settings of its roles cannot be read"),
        "{done:#?}"
    );
    assert!(!done.err.contains("version"), "{done:#?}");
}

#[test]
fn the_beginning_of_a_name_or_of_its_digits_is_enough_and_several_are_listed() {
    let (sandbox, journals) = ran(2);
    let digits = |id: &str| id.rsplit_once('_').unwrap().1.to_owned();
    let (first, second) = (journals[0].0.as_str(), journals[1].0.as_str());
    let ambiguous = sandbox.run(&["tasks", "show", "c"]);
    ambiguous.refused(2, &["fits 2 tasks", first, second, "eight digits"]);
    // As short as the digits differ, but so long that no slug begins like that.
    let common = digits(first)
        .bytes()
        .zip(digits(second).bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let short = digits(first)[..=common.max(2)].to_owned();
    let shown = sandbox.run(&["tasks", "show", &short, "--json"]).ended(0).json();
    assert_eq!(shown["task_id"], *first);
    for command in [&["replay", &short][..], &["report", &short], &["tasks", "log", &short]] {
        sandbox.run(command).ended(0);
    }
    sandbox.run(&["tasks", "rm", &short]).ended(0);
    sandbox.run(&["tasks", "show", "c"]).ended(0).says(second);
}

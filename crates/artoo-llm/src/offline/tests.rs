//! Tests of the offline model as its callers see it, and of its commands in a real shell.

use std::process::Command;

use artoo_protocol::message::Criterion;
use artoo_protocol::model::{ChatMessage, Tier};
use artoo_protocol::prompt::section;
use serde_json::{Value, json};

use super::*;
use crate::reader::Shape;

async fn structured(name: &str, user: String) -> Result<Value, ModelError> {
    let request = ModelRequest {
        tier: Tier::Brain,
        messages: vec![
            ChatMessage::System {
                content: "fixed".into(),
            },
            ChatMessage::User { content: user },
        ],
        form: AnswerForm::Structured {
            name: name.into(),
            schema: json!({}),
        },
        max_output_tokens: None,
    };
    match Offline.complete(&request).await?.content {
        ModelContent::Structured { value } => Ok(value),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_request_becomes_a_task_and_a_plan_whose_criteria_need_no_model() {
    let words = "Count the Rust files in crates and write the number to count.txt";
    let spec = structured("task_spec", section("request", words)).await.unwrap();
    assert_eq!(spec["slug"], "count_rs_files");
    assert_eq!(
        spec["intent"],
        "count the *.rs files in crates, then write the result of step 1 to count.txt"
    );
    for user in [
        section("request", words),
        section("request", "do it again") + &section("intent", spec["intent"].as_str().unwrap()),
    ] {
        let plan = structured("plan", user).await.unwrap();
        let subtasks = plan["subtasks"].as_array().unwrap();
        assert_eq!(subtasks.len(), 2);
        assert_eq!(
            (&subtasks[1]["sequence"], &subtasks[1]["intent"]),
            (&json!(2), &json!("write the result of step 1 to count.txt"))
        );
        assert_eq!(
            (&subtasks[0]["tools"], &subtasks[1]["tools"]),
            (&json!(["shell"]), &json!(["write_file"]))
        );
        assert_eq!(plan["task_criteria"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn every_criterion_of_every_example_has_a_check_that_the_protocol_reads() {
    for (sentence, _) in examples().flat_map(|example| example.sentences) {
        let plan = structured("plan", section("request", sentence)).await.unwrap();
        let subtasks = plan["subtasks"].as_array().unwrap();
        let lists = subtasks
            .iter()
            .map(|subtask| &subtask["success_criteria"])
            .chain([&plan["task_criteria"]]);
        for criterion in lists.flat_map(|list| list.as_array().unwrap()) {
            let read: Criterion = serde_json::from_value(criterion.clone()).unwrap();
            assert!(read.check.is_some(), "{sentence}: {criterion}");
        }
        for subtask in subtasks {
            assert!(
                grammar::read_subtask(subtask["intent"].as_str().unwrap()).is_some(),
                "{subtask}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_not_understood_names_the_grammar_and_the_way_to_a_model() {
    for name in ["task_spec", "plan", "something_else"] {
        let error = structured(name, section("request", "write a poem about spring"))
            .await
            .unwrap_err();
        assert!(error.is_no_model());
        let words = error.to_string();
        assert!(
            ["no language model", "count", "OPENAI_BASE_URL", "artoo doctor"]
                .iter()
                .all(|part| words.contains(part)),
            "{words}"
        );
    }
}

#[tokio::test]
async fn a_plan_that_failed_is_not_offered_again() {
    let user = section("directive", "change_path") + &section("request", "count the files in nowhere");
    let error = structured("plan", user).await.unwrap_err();
    assert!(!error.is_no_model() && error.to_string().contains("one way"), "{error}");
}

#[tokio::test]
async fn nothing_is_judged_without_a_machine_check() {
    let user = section("criteria", "1. it rhymes\n2. it is short. very");
    for name in ["criterion_verdicts", "merge_verdict"] {
        let answer = structured(name, user.clone()).await.unwrap();
        let verdicts = answer["verdicts"].as_array().unwrap();
        assert_eq!(verdicts.len(), 2);
        assert_eq!(
            (&verdicts[1]["criterion"], &verdicts[1]["verdict"]),
            (&json!("it is short. very"), &json!("fail"))
        );
        let shape = Shape::compile(
            "v",
            &json!({"properties": {"verdicts": {"items": {"required": ["criterion", "verdict", "failure_class", "evidence"]}}}}),
        );
        assert_eq!(shape.unwrap().check(&answer), Ok(()));
    }
}

#[tokio::test]
async fn a_partial_result_repeats_what_happened() {
    let outcomes = "1. [matched] count the files in a\n   output: 3\n2. [failed] read the file b\n   reason: b cannot be read\n3. [not run] c\n";
    let answer = structured("partial_result", section("outcomes", outcomes))
        .await
        .unwrap();
    assert_eq!(answer["achieved"], "count the files in a\n3");
    assert_eq!(
        answer["failed"],
        "read the file b\nreason: b cannot be read\nc (not run)"
    );
}

/// A rule steers every later plan; what generalises nothing must not make one up.
#[tokio::test]
async fn no_rule_is_made_up_without_a_model() {
    let refused = structured("sop", section("lessons", "1. (6×) use find\n2. (1×) other")).await;
    assert!(matches!(refused, Err(ModelError::NotUnderstood { .. })), "{refused:?}");
}

/// Runs the command that a sentence means in `folder`, as the executor would.
fn run(folder: &std::path::Path, sentence: &str) -> (i32, String) {
    let steps = grammar::read_request(sentence).unwrap_or_else(|| panic!("not understood: {sentence}"));
    let call = command::call(steps.first().unwrap(), None);
    let command = call.arguments["command"].as_str().unwrap().to_owned();
    let output = Command::new("bash")
        .args(["-c", "--", &command])
        .current_dir(folder)
        .env("HOME", folder)
        .output()
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap().trim().to_owned(),
    )
}

fn field() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    file("crates/a.rs", "fn main() {}\n// TODO it's\n");
    file("crates/deep/b.rs", "// TODO TODO\n");
    file("crates/notes.md", "one two three\n");
    file("my folder/it's \"x\".txt", "a b\n");
    file("my folder/-odd", "12345678901234567890");
    file("my folder/copy.txt", "a b\n");
    folder
}

#[test]
fn commands_give_what_the_sentences_ask_for() {
    let field = field();
    let check = |sentence: &str, expected: &str| {
        assert_eq!(run(field.path(), sentence), (0, expected.to_owned()), "{sentence}");
    };
    check("count the Rust files in crates", "2");
    check("how many *.rs and *.md files are in crates?", "3");
    check("how many folders are in crates", "1");
    check("how many files are here?", "6");
    check("count the python files in crates", "0");
    check("how many lines are in crates/a.rs", "2");
    check("count the words in \"my folder/it's \\\"x\\\".txt\"", "2");
    check("how many lines of Rust code are in crates?", "3");
    check("how many lines of Python code are in crates?", "0");
    check("find all *.rs files under crates", "crates/a.rs\ncrates/deep/b.rs");
    check(
        "find all *.rs files in ~/crates",
        &format!("{0}/crates/a.rs\n{0}/crates/deep/b.rs", field.path().display()),
    );
    check("list the entries of \"my folder\"", "-odd\ncopy.txt\nit's \"x\".txt");
    check(
        "search for \"TODO\" in crates",
        "crates/a.rs:2:// TODO it's\ncrates/deep/b.rs:1:// TODO TODO",
    );
    check(
        "search for \"it's\" in the *.rs files in crates",
        "crates/a.rs:2:// TODO it's",
    );
    check("search for \"absent\" in crates", "");
    check(
        "which files contain \"TODO\" in crates",
        "crates/a.rs\ncrates/deep/b.rs",
    );
    check("how often does TODO occur in crates?", "3");
    check("what is the largest file in \"my folder\"?", "20\tmy folder/-odd");
    check("find duplicate files in crates", "");
    std::fs::write(field.path().join("crates/two\nlines.rs"), "").unwrap();
    check("count the Rust files in crates", "3");
}

#[test]
fn duplicates_are_found_by_content_and_disk_use_is_a_size() {
    let field = field();
    let (status, output) = run(field.path(), "find duplicate files here");
    assert_eq!(status, 0);
    let names: Vec<&str> = output.lines().map(|line| line.get(66..).unwrap()).collect();
    // A name with a quote or backslash is shown as it is, and both copies stand together.
    assert_eq!(names, ["./my folder/copy.txt", "./my folder/it's \"x\".txt"]);
    let (status, size) = run(field.path(), "how much disk space does crates use?");
    assert_eq!(status, 0);
    assert!(
        regex::Regex::new(r"^\d[\d.,]*[A-Z]?$").unwrap().is_match(&size),
        "{size}"
    );
}

#[test]
fn a_place_that_is_not_there_is_an_error_and_never_a_zero() {
    let field = field();
    for sentence in [
        "count the Rust files in nowhere",
        "how many lines are in nowhere.txt",
        "count the lines of all *.rs files in nowhere",
        "find all *.rs files in nowhere",
        "list the entries of nowhere",
        "search for \"x\" in nowhere",
        "which files contain \"x\" in nowhere",
        "how often does x occur in nowhere",
        "find the 3 largest files in nowhere",
        "how big is nowhere?",
        "find duplicates in nowhere",
    ] {
        let (status, output) = run(field.path(), sentence);
        assert!(status != 0 && output.is_empty(), "{sentence}: {status} {output}");
    }
}

#[test]
fn names_cannot_become_commands_or_options() {
    let field = field();
    for name in [
        "-delete",
        "x; touch y",
        "$(touch y)",
        "`touch y`",
        "' ; touch y ; '",
        "-x",
        "(",
        "!",
        "~x",
        "a&b",
        "--help",
    ] {
        for sentence in [
            format!("count the files in {}", words::quoted(name)),
            format!("search for {0} in {0}", words::quoted(name)),
        ] {
            let (status, output) = run(field.path(), &sentence);
            assert!(status != 0 && output.is_empty(), "{sentence}: {status} {output}");
        }
    }
    assert!(!field.path().join("y").exists());
    assert_eq!(run(field.path(), "how many files are here?").1, "6");
}

//! The controller's laboratory from the outside: reproducible, written where it is told, clear about bad options (design §12).

use serde_json::json;

use crate::support::Sandbox;

#[test]
fn a_comparison_is_reproducible_and_written_as_tables_pictures_and_a_page() {
    let sandbox = Sandbox::new();
    let args = [
        "ggs",
        "simulate",
        "--tasks",
        "40",
        "--skills",
        "0.5",
        "--families",
        "easy,mix",
    ];
    let told = sandbox.run(&[&args[..], &["--json"]].concat());
    let rows = told.ended(0).json();
    assert_eq!(rows, sandbox.run(&[&args[..], &["--json"]].concat()).json());
    assert!(told.err.contains("100 % of 1120 tasks"), "{told:#?}");
    let solved = |policy: &str| {
        let rows = rows.as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| row["family"] == "easy" && row["policy"] == policy);
        row.unwrap()["solved"]["value"].as_f64().unwrap()
    };
    assert!(solved("oracle") >= solved("GGS, defaults"));
    sandbox.file("strict.json", r#"{"delta": 0}"#);
    let told = sandbox.run(&[&args[..], &["--params", "strict.json", "--out", "lab"]].concat());
    assert!(told.ended(0).out.contains("| GGS, strict |"), "{told:#?}");
    let made = |name: &str| std::fs::read_to_string(sandbox.project().join("lab").join(name)).unwrap();
    assert_eq!(made("results.csv").lines().count(), 1 + 2 * 15);
    assert!(made("results.md").contains("### mix, skill 0.5"));
    assert!(made("index.html").contains("artoo ggs simulate --seed 1 --tasks 40"));
    for picture in ["easy.svg", "mix.svg", "regret-0.5.svg", "trade-0.5.svg"] {
        assert!(made(picture).starts_with("<svg"), "{picture}");
    }
}

#[test]
fn a_calibration_proposes_a_file_and_judges_it_on_other_tasks() {
    let sandbox = Sandbox::new();
    let args = [
        "ggs",
        "calibrate",
        "--candidates",
        "24",
        "--tasks",
        "20",
        "--skills",
        "0.5",
        "--any-rule",
        "--out",
        "found.json",
        "--sensitivity",
        "each.svg",
        "--json",
    ];
    let told = sandbox.run(&args).ended(0).json();
    assert!(
        told["fitted"]["after"].as_f64() >= told["fitted"]["before"].as_f64(),
        "{told:#}"
    );
    assert!(told["unseen"]["on"].as_str().unwrap().contains("deceptive-progress"));
    let file = std::fs::read_to_string(sandbox.project().join("found.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&file).unwrap(),
        told["params"]
    );
    assert!(
        std::fs::read_to_string(sandbox.project().join("each.svg"))
            .unwrap()
            .contains("δ")
    );
    // The file is taken where parameters are.
    let again = [
        "ggs",
        "calibrate",
        "--candidates",
        "1",
        "--tasks",
        "5",
        "--params",
        "found.json",
    ];
    assert!(sandbox.run(&again).ended(0).out.contains("\"delta\""));
}

#[test]
fn a_calibration_on_real_tasks_wants_enough_of_them() {
    let sandbox = Sandbox::new();
    let gap = json!({"closed_by": "gap", "elapsed_ms": 9000, "D": 0.8, "P": 1.0});
    let row = |n: usize| {
        let rounds = vec![&gap; 1 + n % 4];
        json!({"format": 1, "ending": "abandon", "cause": "resources", "rounds": rounds, "model_calls": 12, "complete": true}).to_string()
    };
    let rows = |n: usize| (0..n).map(row).collect::<Vec<_>>().join("\n");
    sandbox.file("few.jsonl", &rows(29));
    let args = |file: &'static str| ["ggs", "calibrate", "--candidates", "24", "--rows", file, "--json"];
    sandbox
        .run(&args("few.jsonl"))
        .refused(1, &["holds 29 tasks", "fewer than 30"]);
    sandbox.file("enough.jsonl", &format!("{}\nnonsense\n", rows(45)));
    let told = sandbox.run(&args("enough.jsonl"));
    assert!(told.err.contains("enough.jsonl, line 46: not a row"), "{told:#?}");
    let told = told.ended(0).json();
    assert_eq!(
        (&told["fitted"]["on"], &told["unseen"]["on"]),
        (&json!("30 real tasks"), &json!("15 later ones"))
    );
}

#[test]
fn options_of_the_laboratory_that_make_no_sense_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.file("bad.json", r#"{"dleta": 0}"#);
    let refused = |args: &[&str], said: &[&str]| {
        sandbox.run(&[&["ggs"], args].concat()).refused(2, said);
    };
    refused(
        &["simulate", "--families", "esay"],
        &["there is no family `esay`", "interacting-subtasks"],
    );
    refused(&["simulate", "--skills", "1.5"], &["1.5 is no skill"]);
    refused(&["simulate", "--skills", "NaN"], &["no skill"]);
    refused(&["simulate", "--params", "nothing.json"], &["nothing.json"]);
    refused(
        &["simulate", "--params", "bad.json"],
        &["bad.json holds no parameters", "dleta"],
    );
    refused(&["calibrate", "--rows", "nothing.jsonl"], &["nothing.jsonl"]);
    refused(&["simulate", "--tasks", "many"], &["--tasks"]);
    let none = sandbox.run(&[
        "ggs",
        "simulate",
        "--tasks",
        "0",
        "--families",
        "easy",
        "--skills",
        "0.5",
    ]);
    none.ended(0);
}

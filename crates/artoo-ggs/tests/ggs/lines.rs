//! JSON lines: single decisions and whole tasks, and what happens to lines that are none.

use artoo_ggs::{Params, Stepper, decide_line};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::build::{Logical, at, failed, matched, partly, replan, summary, task};

fn stepper() -> Stepper {
    Stepper::new(Params::default(), at(0))
}

fn types(answers: &[Value]) -> Vec<&str> {
    answers.iter().map(|a| a["type"].as_str().unwrap()).collect()
}

#[test]
fn numbers_in_a_decision_out() {
    let decide = |line: &str| decide_line(&Params::default(), line);
    assert_eq!(
        decide(r#"{"D":0.5,"P":0.8,"Omega":0.2,"grad_l":0.0}"#).unwrap(),
        json!({"cell": 14, "macro_state": "break_symmetry", "urgency": "neutral"})
    );
    assert_eq!(
        decide(r#"{"D":0.5,"P":0.8,"Omega":0.2,"grad_l":-0.1,"params":{"delta":0.6},"note":"ignored"}"#).unwrap(),
        json!({"cell": 2, "macro_state": "success", "urgency": "lower"})
    );
    for (line, cause) in [
        ("", "EOF"),
        ("[]", "invalid"),
        (r#"{"D":0.5,"P":0.8,"Omega":0.2}"#, "missing field `grad_l`"),
        (r#"{"D":1.5,"P":0.8,"Omega":0.2,"grad_l":0}"#, "0 to 1"),
        (r#"{"D":"x","P":0.8,"Omega":0.2,"grad_l":0}"#, "invalid type"),
        (r#"{"D":1e999,"P":0.8,"Omega":0.2,"grad_l":0}"#, "out of range"),
        (r#"{"D":NaN,"P":0.8,"Omega":0.2,"grad_l":0}"#, "expected"),
        (
            r#"{"D":0,"P":0,"Omega":0,"grad_l":0,"params":{"delt":1}}"#,
            "unknown field `delt`",
        ),
    ] {
        let error = decide(line).unwrap_err().to_string();
        assert!(error.contains(cause), "{line}: {error}");
    }
}

#[test]
fn the_three_forms_of_a_line_are_the_same_message() {
    let bare = serde_json::to_value(replan(&task(1), 1_000, vec![failed("s", Logical)])).unwrap();
    let mut named = bare.clone();
    named["type"] = json!("ReplanRequest");
    let envelope = json!({"id": "x", "seq": 4, "task_id": "t", "payload": named});
    let answers: Vec<_> = [bare, named.clone(), envelope]
        .iter()
        .map(|form| stepper().line(&form.to_string()).unwrap())
        .collect();
    assert_eq!(types(&answers[0]), ["PlanDirective"]);
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    // The least that is one.
    let answer = stepper().line(r#"{"task_id":"t","gap_summary":"x"}"#).unwrap();
    assert_eq!(answer[0]["loss"]["D"], json!(1.0));
    assert_eq!(answer[0]["directive"], json!("change_path"));
    let answer = stepper()
        .line(r#"{"task_id":"t","merged_output":5,"summary":"five"}"#)
        .unwrap();
    assert_eq!(
        (types(&answer), &answer[1]["directive"]),
        (vec!["Megram", "FinalResult"], &json!("accept"))
    );
}

#[test]
fn tasks_are_stepped_to_their_end_and_not_beyond() {
    let mut stepper = stepper();
    let gap = |n| serde_json::to_string(&replan(&task(n), 0, vec![failed("s", Logical)])).unwrap();
    for _ in 0..3 {
        assert_eq!(types(&stepper.line(&gap(1)).unwrap()), ["PlanDirective"]);
        assert_eq!(types(&stepper.line(&gap(2)).unwrap()), ["PlanDirective"]);
    }
    let answer = stepper.line(&gap(1)).unwrap();
    assert_eq!(types(&answer), ["Megram", "FinalResult"]);
    assert_eq!(answer[1]["cause"], json!("resources"));
    assert_eq!(answer[1]["replans"], json!(3));
    assert_eq!(answer[1]["task_id"], json!("find_it_00000001"));
    let error = stepper.line(&gap(1)).unwrap_err();
    assert_eq!(error.to_string(), "line 8: task `find_it_00000001` has already ended");
    let done = serde_json::to_string(&summary(&task(2), vec![matched("a")])).unwrap();
    assert_eq!(types(&stepper.line(&done).unwrap()).last(), Some(&"FinalResult"));
}

#[test]
fn a_bad_line_is_told_by_number_and_the_next_is_answered() {
    let mut stepper = stepper();
    for (line, cause) in [
        ("{", "EOF"),
        ("5", "expected an object"),
        (r#"{"payload":5}"#, "in `payload`"),
        (r#"{"type":5}"#, "in `type`"),
        (r#"{"task_id":"t"}"#, "no `type`"),
        (r#"{"type":"PlanDirective"}"#, "found `PlanDirective`"),
        (r#"{"type":"Nonsense"}"#, "found `Nonsense`"),
        (r#"{"gap_summary":"x"}"#, "missing field `task_id`"),
        (r#"{"task_id":"t","gap_summary":"x","elapsed_ms":-5}"#, "invalid value"),
        (
            r#"{"task_id":"t","gap_summary":"x","outcomes":[{"status":"odd"}]}"#,
            "unknown variant",
        ),
    ] {
        let error = stepper.line(line).unwrap_err();
        assert!(error.cause.contains(cause), "{line}: {error}");
    }
    let line = serde_json::to_string(&replan(&task(1), 0, vec![partly(9, 9, Logical)])).unwrap();
    assert_eq!(types(&stepper.line(&line).unwrap()), ["PlanDirective"]);
    assert_eq!(stepper.line("").unwrap(), Vec::<Value>::new());
    assert_eq!(stepper.line("x").unwrap_err().line, 13);
    let huge = r#"{"task_id":"h","gap_summary":"x","correction_count":1000000000,"elapsed_ms":18446744073709551615}"#;
    assert_eq!(stepper.line(huge).unwrap().last().unwrap()["cause"], json!("budget"));
}

/// Every input that the fuzz targets start from, among them what they once found.
#[test]
fn the_seeds_of_the_fuzz_targets_are_answered_or_named_by_their_number() {
    let seeds = |target: &str| {
        let folder = format!("{}/../../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
        let texts: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|seed| String::from_utf8_lossy(&std::fs::read(seed.unwrap().path()).unwrap()).into_owned())
            .collect();
        assert!(texts.len() > 10, "{target}");
        texts
    };
    let mut understood = 0;
    for text in seeds("ggs_decide") {
        match decide_line(&Params::default(), &text) {
            Ok(answer) => {
                understood += 1;
                assert!((1..=24).contains(&answer["cell"].as_u64().unwrap()));
            }
            Err(error) => assert!(!error.cause.is_empty()),
        }
    }
    assert!(understood > 0);
    let mut answered = 0;
    for text in seeds("ggs_step") {
        let mut stepper = stepper();
        for (number, line) in (1..).zip(text.split('\n')) {
            match stepper.line(line) {
                Ok(answers) => answered += answers.len(),
                Err(error) => assert_eq!(error.line, number),
            }
        }
        let good = r#"{"task_id":"nobody_else_has_this_name","gap_summary":"x"}"#;
        assert_eq!(types(&stepper.line(good).unwrap()), ["PlanDirective"]);
    }
    assert!(answered > 0);
}

/// What a line may be broken into: bytes overwritten, cut out and put in, and values replaced by ones of another kind.
fn mutated() -> impl Strategy<Value = String> {
    let valid = vec![
        serde_json::to_string(&replan(&task(1), 500, vec![failed("s", Logical), matched("é")])).unwrap(),
        serde_json::to_string(&summary(&task(1), vec![matched("a")])).unwrap(),
        r#"{"D":0.5,"P":0.8,"Omega":0.2,"grad_l":0.1,"params":{"delta":0.6}}"#.to_owned(),
    ];
    let odd = vec![
        "null",
        "-1",
        "1e999",
        "1000000000",
        "18446744073709551616",
        "0.5",
        "\"\"",
        "[]",
        "{}",
        "true",
        "NaN",
        "[[[[",
        "\\u0000",
        "\"task_id\"",
    ];
    let change = (
        any::<prop::sample::Index>(),
        0_usize..12,
        prop::sample::select(odd),
        any::<u8>(),
        0_u8..3,
    );
    (prop::sample::select(valid), prop::collection::vec(change, 0..6)).prop_map(|(line, changes)| {
        let mut bytes = line.into_bytes();
        for (at, length, odd, byte, kind) in changes {
            let begin = at.index(bytes.len().max(1)).min(bytes.len());
            // A value is replaced where one begins, so that the line often stays JSON.
            let begin = match bytes[begin..].iter().position(|&b| b == b':') {
                Some(colon) if kind == 0 => begin + colon + 1,
                Some(_) | None => begin,
            };
            let value_end = bytes[begin..].iter().position(|b| b",}]".contains(b)).unwrap_or(0);
            let end = begin
                + if kind == 0 {
                    value_end
                } else {
                    length.min(bytes.len() - begin)
                };
            let with = if kind == 1 { vec![byte] } else { odd.as_bytes().to_vec() };
            bytes.splice(begin..end, with);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

proptest! {
    #[test]
    fn no_line_panics(text in ".{0,200}", cut in 0_usize..400) {
        let line = serde_json::to_string(&replan(&task(1), 0, vec![failed("s", Logical)])).unwrap();
        let cut: String = line.chars().take(cut).collect();
        let mut stepper = stepper();
        for line in [text.as_str(), &cut, &format!("{cut}{text}")] {
            let _ = stepper.line(line);
            let _ = decide_line(&Params::default(), line);
        }
    }

    /// The claims of the fuzz targets, in small.
    #[test]
    fn mutated_lines_and_any_bytes_are_answered_or_named_by_their_number(
        lines in prop::collection::vec(
            prop_oneof![
                4 => mutated(),
                1 => prop::collection::vec(any::<u8>(), 0..80).prop_map(|b| String::from_utf8_lossy(&b).into_owned()),
            ],
            1..6,
        ),
    ) {
        let mut stepper = stepper();
        for (number, line) in (1..).zip(&lines) {
            if let Err(error) = stepper.line(line) {
                prop_assert_eq!(error.line, number);
                prop_assert!(!error.cause.is_empty());
            }
            if let Ok(answer) = decide_line(&Params::default(), line) {
                prop_assert!((1..=24).contains(&answer["cell"].as_u64().unwrap()));
            }
        }
        let good = serde_json::to_string(&replan(&task(99), 0, vec![failed("s", Logical)])).unwrap();
        let answer = stepper.line(&good).unwrap();
        prop_assert_eq!(types(&answer), ["PlanDirective"]);
    }
}

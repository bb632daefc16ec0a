//! Who judges, and on what: checks alone, a judge of its own, a second one; and evidence that the journal gives again (design §7,
//! §10, §11, §18).

use std::sync::Arc;

use artoo_executor::{Places, Sandbox as Confinement, ToolSettings, Tools};
use artoo_protocol::ports::CheckRunner;
use artoo_protocol::tool::{CheckReport, CheckRequest};
use artoo_testkit::server::{Response, Server, asked_for, results_in};
use artoo_validators::WorldChecks;
use artoo_validators::checks::WorldConfig;
use serde_json::{Value, json};

use crate::support::{Done, Running, Sandbox, last_message};

fn content(value: &Value) -> Response {
    Response::Content(value.to_string())
}

/// Writes `made.txt`; `judge` answers what is asked of a judge.
fn writer(criteria: Value, task_criteria: Value, judge: fn(&Value) -> Value) -> Server {
    Server::start(move |body| match asked_for(body) {
        "task_spec" => content(
            &json!({"slug": "write_number", "intent": "write 42 into made.txt", "scope": null, "deadline": null,
            "clarify": [], "direct_answer": null}),
        ),
        "plan" => content(
            &json!({"task_criteria": task_criteria, "subtasks": [{"sequence": 1, "intent": "create made.txt with the number",
            "context": "", "success_criteria": criteria, "tools": ["write_file"]}]}),
        ),
        "criterion_verdicts" | "merge_verdict" => content(&judge(body)),
        _ if results_in(body) == 0 => Response::ToolCall("write_file", json!({"path": "made.txt", "content": "42\n"})),
        _ if results_in(body) == 1 => Response::ToolCall("shell", json!({"command": "wc -l < ~/artoo_workspace/made.txt"})),
        _ => Response::Content("made.txt holds 42".into()),
    })
    .unwrap()
}

/// One verdict for each criterion that a judge was asked about.
fn verdicts(body: &Value, verdict: &str) -> Value {
    let question = last_message(body);
    let listed = question.split("<criteria>").nth(1).unwrap_or_default();
    let lines = listed.split("</criteria>").next().unwrap_or_default().lines();
    let verdicts: Vec<_> = lines
        .filter_map(|line| line.split_once(". "))
        .map(|(_, wording)| {
            json!({"criterion": wording, "verdict": verdict, "failure_class": if verdict == "fail" { json!("logical") } else { Value::Null },
                "evidence": format!("call 1, says the judge of {verdict}")})
        })
        .collect();
    json!({"verdicts": verdicts, "what_was_wrong": null, "what_to_do": null, "summary": "Done.", "merged_output": "42"})
}

fn passes(body: &Value) -> Value {
    verdicts(body, "pass")
}

fn fails(body: &Value) -> Value {
    verdicts(body, "fail")
}

fn checked() -> Value {
    json!([
        {"criterion": "made.txt holds 42", "mode": "verifiable",
            "check": {"kind": "file_contains", "path": "made.txt", "pattern": "^42$"}},
        {"criterion": "made.txt is there", "mode": "verifiable", "check": {"kind": "file_exists", "path": "made.txt"}},
        {"criterion": "made.txt has one line", "mode": "verifiable",
            "check": {"kind": "count", "of": "lines", "path": "made.txt", "op": "eq", "value": 1}},
        {"criterion": "its digest is right", "mode": "verifiable", "check": {"kind": "sha256", "path": "made.txt",
            "equals": "084c799cd551dd1d8d5c5f9a5d593b2e931f5e36122ee5c793c1d08a19839cc0"}},
        {"criterion": "it is the number 42", "mode": "verifiable",
            "check": {"kind": "json_path", "path": "made.txt", "pointer": "", "equals": 42}},
        {"criterion": "nothing else was made", "mode": "verifiable", "check": {"kind": "file_absent", "path": "other.txt"}},
        {"criterion": "the commands ended well", "mode": "verifiable", "check": {"kind": "exit_code"}},
        {"criterion": "wc counted 1", "mode": "verifiable", "check": {"kind": "output_matches", "pattern": "^1$"}},
        {"criterion": "wc said 1 and no more", "mode": "verifiable", "check": {"kind": "output_equals", "value": "1"}},
        {"criterion": "the output has a number", "mode": "verifiable",
            "check": {"kind": "json_path", "pointer": "", "equals": 1}},
        {"criterion": "a command can find it", "mode": "verifiable",
            "check": {"kind": "command_succeeds", "command": "grep -q 42 ~/artoo_workspace/made.txt"}}
    ])
}

/// What a judge has to decide: one verifiable criterion without a check, and one that is a matter of words.
fn unchecked() -> Value {
    json!([
        {"criterion": "the number in made.txt is right", "mode": "verifiable"},
        {"criterion": "the answer is polite", "mode": "plausible"}
    ])
}

fn asked(server: &Server, name: &str) -> usize {
    server
        .seen()
        .iter()
        .filter(|seen| asked_for(&seen.body) == name)
        .count()
}

fn configured(sandbox: &Sandbox, text: &str) {
    std::fs::create_dir_all(sandbox.data()).unwrap();
    std::fs::write(sandbox.data().join("config.toml"), text).unwrap();
}

fn with_models(sandbox: &Sandbox, main: &Server, beside: &str, more: &[&str]) -> Done {
    configured(sandbox, beside);
    let mut args = vec!["run", "--json"];
    args.extend(more);
    args.push("write 42 into made.txt");
    Running::start(&mut sandbox.with_model(main, &args)).wait()
}

/// The verdicts of the last outcome that R4a gave, by criterion.
fn outcome(done: &Done) -> Vec<(String, String, String)> {
    let lines = done.json_lines();
    let last = lines.iter().rfind(|line| line["payload"]["type"] == "SubTaskOutcome");
    let verdicts = last.expect("an outcome")["payload"]["criteria_verdicts"]
        .as_array()
        .unwrap();
    let text = |v: &Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    verdicts
        .iter()
        .map(|v| (text(v, "criterion"), text(v, "verdict"), text(v, "evidence")))
        .collect()
}

#[test]
fn a_task_with_checks_only_makes_no_validation_call() {
    let sandbox = Sandbox::new();
    let server = writer(checked(), json!([checked()[0]]), fails);
    let done = with_models(&sandbox, &server, "", &[]);
    done.ended(0);
    assert_eq!(
        (asked(&server, "criterion_verdicts"), asked(&server, "merge_verdict")),
        (0, 0)
    );
    let verdicts = outcome(&done);
    assert_eq!(verdicts.len(), 11);
    assert!(
        verdicts.iter().all(|(_, verdict, _)| verdict == "pass"),
        "{verdicts:#?}"
    );
}

#[test]
fn the_evidence_of_every_check_can_be_had_again_from_the_journal() {
    let sandbox = Sandbox::new();
    let server = writer(checked(), json!([]), passes);
    Running::start(&mut sandbox.with_model(&server, &["write 42 into made.txt"]))
        .wait()
        .ended(0);
    let folder = sandbox.data().join("tasks");
    let journal = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let records: Vec<Value> = std::fs::read_to_string(journal)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let environment = vec![
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        ("HOME".into(), sandbox.home().into_os_string()),
    ];
    let tools = Tools::built_in(&ToolSettings {
        places: Places {
            home: sandbox.home(),
            cwd: sandbox.project(),
            workspace: sandbox.workspace(),
            own: None,
        },
        environment,
        command_limit: std::time::Duration::from_secs(60),
        web: None,
        undo: None,
        sandbox: Confinement::unchecked(),
        grants: Vec::new(),
    });
    let world = WorldConfig::new(sandbox.project(), sandbox.workspace(), Some(sandbox.home()));
    let checks = WorldChecks::new(world, Arc::new(tools));
    let mut seen = 0;
    for record in &records {
        let command = &record["command"];
        let Ok(request) = serde_json::from_value::<CheckRequest>(command["request"].clone()) else {
            continue;
        };
        let answered = records
            .iter()
            .find(|r| r["entry"] == "answered" && r["role"] == record["role"] && r["call"] == command["call"]);
        let answer = &answered.unwrap_or_else(|| panic!("no answer to {command}"))["answer"];
        let noted: CheckReport = first_report(answer).unwrap_or_else(|| panic!("{answer}"));
        let again = runtime.block_on(checks.run(&request));
        assert_eq!(again, noted, "{:?}", request.check);
        seen += 1;
    }
    assert_eq!(seen, 11, "one for every check");
    let evidence: Vec<String> = records
        .iter()
        .filter(|r| r["envelope"]["payload"]["type"] == "SubTaskOutcome")
        .flat_map(|r| {
            r["envelope"]["payload"]["criteria_verdicts"]
                .as_array()
                .unwrap()
                .clone()
        })
        .map(|v| v["evidence"].as_str().unwrap().to_owned())
        .collect();
    let path = sandbox.workspace().join("made.txt").to_string_lossy().into_owned();
    for words in [
        &path,
        "3 bytes",
        "line 1: 42",
        "has SHA-256 084c799c",
        "exit status 0",
        "found 1 lines in",
    ] {
        assert!(evidence.iter().any(|e| e.contains(words)), "`{words}`: {evidence:#?}");
    }
}

/// The report in an answer, however it is wrapped.
fn first_report(value: &Value) -> Option<CheckReport> {
    match value {
        Value::Object(fields) if fields.contains_key("passed") => serde_json::from_value(value.clone()).ok(),
        Value::Object(fields) => fields.values().find_map(first_report),
        Value::Array(items) => items.iter().find_map(first_report),
        _ => None,
    }
}

#[test]
fn a_judge_that_is_weaker_than_the_planner_is_refused_before_any_model_is_asked() {
    let sandbox = Sandbox::new();
    let server = writer(checked(), json!([]), passes);
    configured(
        &sandbox,
        "[judge]\nmodel = \"small\"\n[ranks]\nsmall = 1\nscripted = 2\n",
    );
    let done = Running::start(&mut sandbox.with_model(&server, &["write 42 into made.txt"])).wait();
    done.refused(
        2,
        &[
            "`small` (rank 1)",
            "`scripted` (rank 2)",
            "at least as capable",
            "→",
            "[ranks]",
        ],
    );
    let doctor = Running::start(&mut sandbox.with_model(&server, &["doctor"])).wait();
    doctor.ended(1).says("BAD  configuration");
    assert!(
        doctor.out.contains("at least as capable") && doctor.out.contains("remove [judge]"),
        "{doctor:#?}"
    );
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_judge_of_its_own_is_asked_for_the_task_and_nobody_else_is() {
    let sandbox = Sandbox::new();
    let main = writer(
        checked(),
        json!([{"criterion": "the result is right", "mode": "verifiable"}]),
        fails,
    );
    let judge = writer(json!([]), json!([]), passes);
    let beside = format!(
        "[judge]\nmodel = \"wise\"\nbase_url = \"{}\"\n[ranks]\nwise = 3\nscripted = 2\n",
        judge.base_url()
    );
    with_models(&sandbox, &main, &beside, &[]).ended(0);
    assert_eq!((asked(&main, "merge_verdict"), asked(&judge, "merge_verdict")), (0, 1));
    assert_eq!(judge.seen().len(), 1, "R4b and nobody else");
    assert_eq!(judge.seen()[0].body["model"], "wise");
    let doctor = Running::start(&mut sandbox.with_model(&main, &["doctor"])).wait();
    doctor.says("judge").says("wise at");
}

#[test]
fn two_judges_of_different_houses_must_agree_on_what_is_verifiable() {
    for (first, second, passed, said) in [
        (
            passes as fn(&Value) -> Value,
            passes as fn(&Value) -> Value,
            true,
            "a second judge agrees",
        ),
        (passes, fails, false, "two judges disagree"),
        (fails, passes, false, "two judges disagree"),
    ] {
        let sandbox = Sandbox::new();
        let main = writer(unchecked(), json!([]), first);
        let other = writer(json!([]), json!([]), second);
        let beside = format!(
            "[second_judge]\nmodel = \"other\"\nbase_url = \"{}\"\n",
            other.base_url()
        );
        let done = with_models(&sandbox, &main, &beside, &["--max-replans", "0"]);
        assert_eq!(done.code == Some(0), passed, "{said}: {}", done.err);
        let verdicts = outcome(&done);
        let (_, verdict, evidence) = &verdicts[0];
        assert_eq!(verdict == "pass", passed, "{verdicts:#?}");
        assert!(evidence.contains(said), "{said}: {evidence}");
        assert!(
            !verdicts[1].2.contains("judge agrees") && !verdicts[1].2.contains("disagree"),
            "a matter of words is judged once"
        );
        let questions: Vec<_> = other.seen().iter().map(|seen| last_message(&seen.body)).collect();
        assert!(
            !questions.is_empty()
                && questions
                    .iter()
                    .all(|q| q.contains("the number in made.txt") && !q.contains("polite"))
        );
        assert_eq!(
            asked(&other, "criterion_verdicts"),
            asked(&main, "criterion_verdicts"),
            "beside each other"
        );
    }
}

#[test]
fn a_second_judge_that_is_not_there_passes_nothing() {
    let sandbox = Sandbox::new();
    let main = writer(unchecked(), json!([]), passes);
    let other =
        Server::start(|_| Response::Raw(401, json!({"error": {"message": "no such key"}}).to_string())).unwrap();
    let beside = format!(
        "[second_judge]\nmodel = \"other\"\nbase_url = \"{}\"\n",
        other.base_url()
    );
    let done = with_models(&sandbox, &main, &beside, &[]);
    done.ended(3);
    let verdicts = outcome(&done);
    assert_eq!(verdicts[0].1, "fail");
    assert!(verdicts[0].2.contains("not judged"), "{verdicts:#?}");
    assert!(!verdicts[0].2.contains("disagree"), "{verdicts:#?}");
    assert_eq!(verdicts[1].1, "pass", "what it was not asked about stands");
    let last = done.json_lines().pop().unwrap();
    let end = &last["payload"];
    assert_eq!(
        (end["cause"].as_str(), end["replans"].as_u64()),
        (Some("no_model"), Some(0)),
        "{end}"
    );
    let summary = end["summary"].as_str().unwrap();
    for words in ["[second_judge]", "no such key", "remove it", "artoo doctor"] {
        assert!(summary.contains(words), "{words}: {summary}");
    }
    assert_eq!(asked(&main, "plan"), 1, "another plan would not make it answer");
}

#[test]
fn a_second_judge_that_cannot_be_asked_about_the_whole_task_ends_it_too() {
    let sandbox = Sandbox::new();
    let main = writer(
        checked(),
        json!([{"criterion": "the result is right", "mode": "verifiable"}]),
        passes,
    );
    let other =
        Server::start(|_| Response::Raw(404, json!({"error": {"message": "no such model"}}).to_string())).unwrap();
    let beside = format!(
        "[second_judge]\nmodel = \"other\"\nbase_url = \"{}\"\n",
        other.base_url()
    );
    let done = with_models(&sandbox, &main, &beside, &[]);
    done.ended(3);
    let last = done.json_lines().pop().unwrap();
    let summary = last["payload"]["summary"].as_str().unwrap().to_owned();
    assert!(summary.contains("[second_judge]"), "{summary}");
}

#[test]
fn a_second_judge_of_the_same_provider_is_refused() {
    let sandbox = Sandbox::new();
    let main = writer(unchecked(), json!([]), passes);
    let beside = format!(
        "[second_judge]\nmodel = \"other\"\nbase_url = \"{}\"\n",
        main.base_url()
    );
    configured(&sandbox, &beside);
    let done = Running::start(&mut sandbox.with_model(&main, &["write 42 into made.txt"])).wait();
    done.refused(2, &["same provider", "another provider"]);
    assert_eq!(main.seen().len(), 0);
}

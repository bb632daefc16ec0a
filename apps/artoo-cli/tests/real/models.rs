//! Models that are not there, refuse, or answer nonsense; and what a program that reads `--json` relies on (design §18, §21).

use std::net::TcpListener;

use artoo_testkit::server::{Response, Server, asked_for, results_in};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{LIMIT, Running, Sandbox, silent_model, told};

fn content(value: &Value) -> Response {
    Response::Content(value.to_string())
}

/// Writes a file, shown by a machine check.
pub fn obliging(body: &Value) -> Response {
    let criterion = json!({"criterion": "made.txt holds 42", "mode": "verifiable",
        "check": {"kind": "file_contains", "path": "made.txt", "pattern": "^42$"}});
    match asked_for(body) {
        "task_spec" => content(
            &json!({"slug": "write_number", "intent": "write 42 into made.txt", "scope": null, "deadline": null,
            "clarify": [], "direct_answer": null}),
        ),
        "plan" => content(
            &json!({"task_criteria": [criterion], "subtasks": [{"sequence": 1, "intent": "create made.txt with 42",
            "context": "", "success_criteria": [criterion], "tools": ["write_file"]}]}),
        ),
        _ if results_in(body) == 0 => Response::ToolCall("write_file", json!({"path": "made.txt", "content": "42\n"})),
        _ => Response::Content("made.txt holds 42".into()),
    }
}

#[test]
fn loopback_is_never_sent_through_a_proxy() {
    let sandbox = Sandbox::new();
    let (server, _) = told(obliging);
    let mut command = sandbox.with_model(&server, &["write 42 into made.txt"]);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
        // Nobody listens there: whoever goes by it gets no answer.
        command.env(name, "http://127.0.0.1:9");
    }
    Running::start(&mut command).wait().ended(0);
}

#[test]
fn a_closed_port_is_told_at_once() {
    let sandbox = Sandbox::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut command = sandbox.artoo(&["count the files in src"]);
    command
        .env("OPENAI_BASE_URL", format!("http://{address}"))
        .env("OPENAI_MODEL", "m");
    let done = Running::start(&mut command).wait();
    done.refused(3, &["cannot be reached", &address.to_string(), "refused"]);
    assert!(
        done.err.matches("again in").count() <= 1,
        "nobody waits for a server that is not there: {}",
        done.err
    );
    let mut doctor = sandbox.artoo(&["doctor"]);
    doctor
        .env("OPENAI_BASE_URL", format!("http://{address}"))
        .env("OPENAI_MODEL", "m");
    let looked = Running::start(&mut doctor).wait();
    assert!(
        looked.code == Some(1) && looked.out.contains("BAD  brain model"),
        "{looked:#?}"
    );
}

#[test]
fn a_refused_key_is_told_without_the_key() {
    let sandbox = Sandbox::new();
    let key = "sk-test-abcdefghijklmnopqrstuvwxyz";
    let body =
        json!({"error": {"message": format!("Incorrect API key provided: {key}"), "type": "invalid_request_error"}});
    let (server, asked) = told(move |_| Response::Raw(401, body.to_string()));
    let mut command = sandbox.with_model(&server, &["count the files in src"]);
    let done = Running::start(command.env("OPENAI_API_KEY", key)).wait();
    done.refused(3, &["401", "Incorrect API key"]);
    assert!(!done.err.contains(key), "{}", done.err);
    assert!(!serde_json::to_string(&sandbox.journal()).unwrap().contains(key));
    assert_eq!(asked.try_iter().count(), 1, "a refusal is not asked again");
}

#[test]
fn answers_that_are_none_are_named() {
    for (name, answer, code, said) in [
        ("an empty object", Response::Raw(200, "{}".into()), 1, "empty"),
        (
            "no choices",
            Response::Raw(200, json!({"choices": []}).to_string()),
            1,
            "empty",
        ),
        (
            "choices of the wrong type",
            Response::Raw(200, json!({"choices": "no"}).to_string()),
            1,
            "empty",
        ),
        (
            "half a document",
            Response::Raw(200, "{\"choices\": [{\"mess".into()),
            3,
            "no JSON",
        ),
        (
            "a web page",
            Response::Raw(200, "<html><body>Log in</body></html>".into()),
            3,
            "web page",
        ),
        (
            "an error with status 200",
            Response::Raw(200, json!({"error": {"message": "out of credit"}}).to_string()),
            3,
            "out of credit",
        ),
        (
            "prose",
            Response::Content("Certainly! I would first look around.".into()),
            1,
            "asked twice",
        ),
        (
            "the wrong shape",
            Response::Content("{\"tasks\": 3}".into()),
            1,
            "asked twice",
        ),
        ("nothing", Response::Content(String::new()), 1, "empty"),
        ("not found", Response::Raw(404, "nope".into()), 3, "404"),
    ] {
        let sandbox = Sandbox::new();
        let server = Server::start(move |_| answer.clone()).unwrap();
        let done = Running::start(&mut sandbox.with_model(&server, &["count the files in src"])).wait();
        assert_eq!(done.code, Some(code), "{name}: {done:#?}");
        assert!(done.err.contains(said) && done.out.is_empty(), "{name}: {done:#?}");
        assert!(done.err.contains("abandon ("), "{name}: {}", done.err);
    }
}

#[test]
fn the_time_budget_ends_what_never_answers() {
    for (name, answer) in [
        ("silence", Response::Silence),
        ("an error for ever", Response::Raw(500, "overloaded".into())),
        ("a connection that breaks", Response::HangUp),
    ] {
        let sandbox = Sandbox::new();
        let silent = matches!(answer, Response::Silence);
        let server = Server::start(move |_| answer.clone()).unwrap();
        let args = ["--time-budget", "300ms", "count the files in src"];
        let done = Running::start(&mut sandbox.with_model(&server, &args)).wait();
        done.refused(5, &["abandon (budget)"]);
        assert_eq!(
            done.err.contains("attempt 1 of"),
            !silent,
            "{name}: retries are shown: {}",
            done.err
        );
    }
}

#[test]
fn json_lines_are_envelopes_and_the_last_one_is_the_final_result() {
    for (model, code, ending) in [
        (obliging as fn(&Value) -> Response, 0, "accept"),
        (|_| Response::Raw(401, String::new()), 3, "abandon"),
    ] {
        let sandbox = Sandbox::new();
        let server = Server::start(model).unwrap();
        let done = Running::start(&mut sandbox.with_model(&server, &["run", "--json", "write 42"])).wait();
        let lines = done.ended(code).json_lines();
        let mut seq = 0;
        for line in &lines {
            for field in ["id", "timestamp", "from", "to", "task_id"] {
                assert!(line[field].is_string(), "{field}: {line}");
            }
            assert!(line["payload"]["type"].is_string(), "{line}");
            assert!(line["seq"].as_u64().unwrap() > seq, "{line}");
            seq = line["seq"].as_u64().unwrap();
        }
        let last = &lines.last().unwrap()["payload"];
        assert_eq!(
            (&last["type"], &last["directive"]),
            (&json!("FinalResult"), &json!(ending))
        );
        assert_eq!(
            lines
                .iter()
                .filter(|line| line["payload"]["type"] == "FinalResult")
                .count(),
            1
        );
        // Everything that was shown stands in the journal, in the same order.
        let journal: Vec<Value> = sandbox.journal().iter().map(|e| e["id"].clone()).collect();
        let shown: Vec<Value> = lines.iter().map(|e| e["id"].clone()).collect();
        assert!(
            journal.starts_with(&shown) || shown.iter().all(|id| journal.contains(id)),
            "{shown:?} {journal:?}"
        );
    }
}

#[test]
fn a_model_that_is_reached_does_the_work() {
    let sandbox = Sandbox::new();
    let server = Server::start(obliging).unwrap();
    let done = Running::start(&mut sandbox.with_model(&server, &["write 42 into made.txt"])).wait();
    done.ended(0);
    assert_eq!(done.out, "made.txt holds 42\n", "the result alone");
    assert_eq!(
        std::fs::read_to_string(sandbox.workspace().join("made.txt")).unwrap(),
        "42\n"
    );
    assert_eq!(server.seen().len(), 4);
}

#[test]
fn ctrl_c_during_a_model_call_aborts_in_order() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let sandbox = Sandbox::new();
        let (server, asked) = silent_model();
        let running = Running::start(&mut sandbox.with_model(&server, &["count the files in src"]));
        asked.recv_timeout(LIMIT).unwrap();
        running.signal(signal);
        let done = running.wait();
        done.refused(130, &["abandon (aborted)"]);
        let ending = done.err.lines().position(|line| line.starts_with("abandon")).unwrap();
        assert_eq!(ending, 0, "nothing but the ending is shown: {}", done.err);
        let journal = sandbox.journal();
        let finals: Vec<_> = journal
            .iter()
            .filter(|e| e["payload"]["type"] == "FinalResult")
            .collect();
        assert_eq!(finals.len(), 1);
        assert_eq!(finals[0]["payload"]["cause"], "aborted");
        assert_eq!(
            journal.last().unwrap()["payload"]["type"],
            "FinalResult",
            "an abort leaves nothing behind"
        );
        sandbox.run(&["tasks", "show", "input"]).ended(0);
    }
}

#[test]
fn a_limit_on_tokens_or_money_ends_the_task() {
    let sandbox = Sandbox::new();
    let server = Server::start(obliging).unwrap();
    let run = |args: &[&str]| Running::start(&mut sandbox.with_model(&server, &[args, &["write 42"]].concat())).wait();
    run(&["--max-tokens", "150"]).refused(5, &["abandon (budget)", "Tokens"]);
    run(&["--max-cost", "0.01"]).refused(2, &["no price is known for the model `scripted`"]);
    std::fs::write(
        sandbox.data().join("config.toml"),
        "[prices.scripted]\ninput = 1000.0\noutput = 0.0\n",
    )
    .unwrap();
    run(&["--max-cost", "0.15"]).refused(5, &["abandon (budget)"]);
    run(&["--max-cost", "100"]).ended(0);
}

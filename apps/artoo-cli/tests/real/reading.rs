//! Commands that only look: on an empty, a damaged and a used data folder; and the controller on its own (design §12, §16, §17).

use std::io::Write;

use serde_json::{Value, json};

use crate::support::{Done, Running, Sandbox};

const COMMANDS: [&[&str]; 11] = [
    &["tasks", "list"],
    &["memory", "stats"],
    &["memory", "list"],
    &["memory", "recall", "count the files"],
    &["memory", "verify"],
    &["memory", "dream", "--dry-run"],
    &["memory", "query", "intent:count_files", "env:local"],
    &["audit", "report"],
    &["audit", "verify"],
    &["doctor"],
    &["ggs", "table"],
];

#[test]
fn looking_makes_nothing() {
    let sandbox = Sandbox::new();
    for command in COMMANDS {
        sandbox.run(command).ended(0);
        sandbox.run(&[command, &["--json"]].concat()).ended(0).json();
    }
    sandbox
        .run(&["memory", "query", "a", "b", "--at", "yesterday", "--json"])
        .refused(2, &["yesterday"]);
    for command in ["show", "log"] {
        sandbox
            .run(&["tasks", command, "nothing_1234"])
            .refused(2, &["there is no task `nothing_1234`"]);
    }
    assert_eq!(
        std::fs::read_dir(sandbox.home()).unwrap().count(),
        0,
        "nothing was made"
    );
    let file = sandbox.file("a_file", "x");
    for command in &COMMANDS[..5] {
        sandbox
            .run(&[&["--data-dir", file.to_str().unwrap()], *command].concat())
            .refused(1, &["a_file"]);
    }
}

#[test]
fn every_decision_of_a_task_is_explained_and_a_changed_record_is_found() {
    let sandbox = Sandbox::new();
    sandbox.run(&["--max-replans", "7", "count the files in src"]).ended(0);
    let explained = sandbox.run(&["ggs", "explain", "count_files"]);
    explained.ended(0);
    for part in [
        "the result was accepted",
        "D = 0.000",
        "decision  accept",
        "the same decision with the same numbers",
    ] {
        assert!(explained.out.contains(part), "{part}: {explained:#?}");
    }
    let json = sandbox.run(&["ggs", "explain", "count_files", "--json"]).json();
    assert_eq!(json["params"]["max_replans"], 7, "the parameters of the run");
    assert_eq!(json["decisions"][0]["decision"], json!({"end": ["accept", "met"]}));

    // A task that was replanned, as it was recorded; and the same with one number changed afterwards.
    let replanned = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals/replanned.jsonl");
    let text = std::fs::read_to_string(replanned).unwrap();
    let id = "replanned_0badcafe";
    let journal = sandbox.data().join("tasks").join(format!("{id}.jsonl"));
    std::fs::write(&journal, &text).unwrap();
    let explained = sandbox.run(&["ggs", "explain", id]);
    assert!(
        explained.ended(0).out.contains("cell 14 of 24: break_symmetry"),
        "{explained:#?}"
    );
    let changed = text.replace("\"directive\":\"break_symmetry\"", "\"directive\":\"refine\"");
    assert_ne!(text, changed);
    std::fs::write(&journal, changed).unwrap();
    let explained = sandbox.run(&["ggs", "explain", id]);
    explained.ended(1);
    assert!(
        explained
            .out
            .contains("DIFFERS: decided break_symmetry, recorded refine"),
        "{explained:#?}"
    );
    assert!(explained.err.contains("1 decision(s) differ"), "{explained:#?}");
}

#[test]
fn what_cannot_be_explained_is_said() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["ggs", "explain", "nothing_1234"])
        .refused(2, &["there is no task `nothing_1234`"]);
    let replanned = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals/replanned.jsonl");
    let text = std::fs::read_to_string(replanned).unwrap();
    let folder = sandbox.data().join("tasks");
    std::fs::create_dir_all(&folder).unwrap();
    let with = |id: &str, lines: &[&str]| {
        let mut text = lines.join("\n");
        if !lines.is_empty() {
            text.push('\n');
        }
        std::fs::write(folder.join(format!("{id}.jsonl")), text).unwrap();
    };
    // A journal that ends before the controller was told anything.
    let first: Vec<&str> = text.lines().take(3).collect();
    with("begun_00000001", &first);
    sandbox
        .run(&["ggs", "explain", "begun_00000001"])
        .refused(0, &["has not decided anything about this task yet"]);
    // Parameters of a later version: explaining with others would be wrong.
    let opened = first[0].replace("\"controller\":{", "\"controller\":{\"zeta\":1,");
    assert_ne!(opened, first[0]);
    with("later_00000002", &[&opened]);
    sandbox
        .run(&["ggs", "explain", "later_00000002"])
        .refused(1, &["parameters in the journal are not understood", "zeta"]);
    with("empty_00000003", &[]);
    sandbox
        .run(&["ggs", "explain", "empty_00000003"])
        .refused(1, &["empty_00000003", "line 1 of the journal is damaged"]);
}

#[test]
fn what_ran_is_told_by_every_command() {
    let sandbox = Sandbox::new();
    sandbox.run(&["count the files in src"]).ended(0);
    sandbox.run(&["make me a sandwich"]).ended(3);
    let list = sandbox.run(&["tasks", "list", "--json"]).json();
    let told: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (t["input"].as_str().unwrap(), t["cause"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [("make me a sandwich", "no_model"), ("count the files in src", "met")],
        "newest first"
    );
    assert_eq!(list[1]["costs"]["model_calls"], 4);
    let id = list[1]["task_id"].as_str().unwrap();
    for name in [id, "count_files", &id[id.len() - 8..]] {
        assert!(
            sandbox
                .run(&["tasks", "show", name])
                .ended(0)
                .out
                .contains("find src -type f"),
            "{name}"
        );
    }
    let shown = sandbox.run(&["tasks", "show", id, "--json"]).json();
    assert_eq!(
        shown["messages"].as_array().unwrap().last().unwrap()["payload"]["type"],
        "FinalResult"
    );
    let log = sandbox.run(&["tasks", "log", id, "--json"]);
    for (index, record) in log.ended(0).json_lines().iter().enumerate() {
        assert_eq!(record["n"], index + 1);
    }
    sandbox.run(&["tasks", "log", id]).ended(0);
    let stats = sandbox.run(&["memory", "stats", "--json"]).json();
    assert_eq!((&stats["M"], &stats["damaged"]), (&json!(1), &json!(0)));
    let query = sandbox
        .run(&["memory", "query", "intent:count_the_files", "env:local", "--json"])
        .json();
    assert!(query["attention"].as_f64().unwrap() > 0.0, "{query}");
    let audit = sandbox.run(&["audit", "report", "--json"]).json();
    assert_eq!(
        (&audit["tasks_total"], &audit["boundary_violations"]),
        (&json!(2), &json!([]))
    );
    assert_eq!(sandbox.run(&["audit", "verify", "--json"]).json()["ok"], true);
}

#[test]
fn damage_is_told_and_hides_nothing_else() {
    let sandbox = Sandbox::new();
    sandbox.run(&["count the files in src"]).ended(0);
    let journal = std::fs::read_dir(sandbox.data().join("tasks"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut file = std::fs::OpenOptions::new().append(true).open(&journal).unwrap();
    file.write_all(b"{\"n\": 99, \"at\"").unwrap();
    assert!(sandbox.run(&["tasks", "show", "count"]).ended(0).out.contains("torn"));
    assert!(sandbox.run(&["tasks", "log", "count"]).ended(0).err.contains("torn"));
    assert!(sandbox.run(&["tasks", "list"]).ended(0).out.contains("accept (met)"));
    let broken = sandbox.data().join("tasks/broken_00000000.jsonl");
    std::fs::write(&broken, "\u{1b}[2J\nnonsense\n").unwrap();
    let list = sandbox.run(&["tasks", "list"]);
    assert!(
        list.ended(0).out.contains("broken_00000000")
            && list.out.contains("line 1 of the journal")
            && list.out.contains("accept (met)"),
        "{list:#?}"
    );
    sandbox
        .run(&["tasks", "show", "broken"])
        .refused(1, &["broken_00000000", "line 1"]);
    sandbox
        .run(&["tasks", "show", "o"])
        .refused(2, &["there is no task `o`"]);

    for file in std::fs::read_dir(sandbox.data().join("memory.leveldb")).unwrap() {
        std::fs::write(file.unwrap().path(), "garbage").unwrap();
    }
    assert!(
        sandbox
            .run(&["memory", "stats"])
            .ended(0)
            .err
            .contains("memory is damaged")
    );
    let kept = sandbox.run(&["count the files in src"]);
    assert!(
        kept.ended(0).err.contains("memory.leveldb.corrupt"),
        "a damaged store is told and kept: {kept:#?}"
    );

    let audit = sandbox.data().join("audit.jsonl");
    let text = std::fs::read_to_string(&audit).unwrap();
    std::fs::write(&audit, text.replacen("count the files", "count no files!", 1)).unwrap();
    sandbox.run(&["audit", "verify"]).refused(1, &["record"]);
    let verdict = sandbox.run(&["audit", "verify", "--json"]);
    assert_eq!(verdict.ended(1).json()["ok"], false);
    sandbox.run(&["audit", "report"]).ended(0);
}

fn answered(sandbox: &Sandbox, command: &str, input: &str) -> (Done, Vec<Value>, Vec<String>) {
    let done = Running::fed(&mut sandbox.artoo(&["ggs", command, "--json"]), input.into()).wait();
    let answers = done.json_lines();
    let errors = done
        .err
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let errors = errors
        .filter_map(|error| error["error"].as_str().map(str::to_owned))
        .collect();
    (done, answers, errors)
}

#[test]
fn the_controller_decides_line_by_line_and_names_the_lines_it_cannot_read() {
    let sandbox = Sandbox::new();
    let good = r#"{"D":0.5,"P":0.8,"Omega":0.2,"grad_l":0.0}"#;
    let (done, answers, errors) = answered(&sandbox, "decide", good);
    done.ended(0);
    assert_eq!(
        answers,
        [json!({"cell": 14, "macro_state": "break_symmetry", "urgency": "neutral"})]
    );
    assert!(errors.is_empty());
    let bad = [
        "nonsense",
        "[]",
        "null",
        r#"{"D":0.5}"#,
        r#"{"D":"much","P":0.8,"Omega":0.2,"grad_l":0.0}"#,
        r#"{"D":1.5,"P":0.8,"Omega":0.2,"grad_l":0.0}"#,
        r#"{"D":1e999,"P":0.8,"Omega":0.2,"grad_l":0.0}"#,
        r#"{"D":0.5,"P":0.8,"Omega":0.2,"grad_l":-1e999}"#,
        r#"{"D":0.5,"P":0.8,"Omega":0.2,"grad_l":0.0,"params":3}"#,
        "{\"D\":\u{1b}[2J}",
    ];
    let input: String = bad.iter().flat_map(|line| [line, "\n\n", good, "\n"]).collect();
    let (done, answers, errors) = answered(&sandbox, "decide", &input);
    done.ended(1);
    assert_eq!(answers.len(), bad.len(), "{done:#?}");
    let numbers: Vec<_> = errors
        .iter()
        .map(|error| error.split(':').next().unwrap().to_owned())
        .collect();
    let expected: Vec<_> = (0..bad.len()).map(|n| format!("line {}", 3 * n + 1)).collect();
    assert_eq!(numbers, expected);
    let table = sandbox.run(&["ggs", "table", "--json"]).json();
    assert_eq!(table.as_array().unwrap().len(), 24);
    assert_eq!(sandbox.run(&["ggs", "table"]).out.lines().count(), 25);
}

#[test]
fn the_controller_steps_tasks_message_by_message() {
    let sandbox = Sandbox::new();
    let met = json!({"type": "OutcomeSummary", "task_id": "t_00000001", "summary": "s", "merged_output": "42", "elapsed_ms": 10});
    let input = format!(
        "{{\"type\":\"ReplanRequest\"}}\nnonsense\n{}\n{}\n",
        json!({"type": "UserInput", "task_id": "x"}),
        met
    );
    let (done, answers, errors) = answered(&sandbox, "step", &input);
    done.ended(1);
    let numbers: Vec<_> = errors.iter().map(|error| error.split(':').next().unwrap()).collect();
    assert_eq!(numbers, ["line 1", "line 2", "line 3"], "{done:#?}");
    let result = answers
        .iter()
        .find(|answer| answer["type"] == "FinalResult")
        .expect("the next line is answered");
    assert_eq!(result["directive"], "accept");
}

#[test]
fn mcp_servers_are_added_listed_used_and_removed() {
    let sandbox = Sandbox::new();
    let script = sandbox.file(
        "server.sh",
        r#"while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","description":"Says it.","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
  esac
done
"#,
    );
    std::fs::create_dir_all(sandbox.data()).unwrap();
    let config = sandbox.data().join("config.toml");
    std::fs::write(&config, "# mine\nmax_replans = 2\n").unwrap();
    sandbox
        .run(&["mcp", "add", "srv", "--", "/bin/sh", script.to_str().unwrap()])
        .ended(0);
    sandbox.run(&["mcp", "add", "gone", "--", "/no/such/program"]).ended(0);
    sandbox.run(&["mcp", "add", "srv", "--", "x"]).refused(2, &["already"]);
    sandbox
        .run(&["mcp", "add", "Bad Name", "--", "x"])
        .refused(2, &["no name for a server"]);
    sandbox
        .run(&["mcp", "add", "both", "--url", "http://x", "--", "x"])
        .refused(2, &["either a command or --url"]);
    let listed = sandbox.run(&["mcp", "list"]);
    listed.ended(0);
    assert!(
        listed.out.contains("srv  1 tools: srv.echo") && listed.out.contains("gone  does not work"),
        "{listed:#?}"
    );
    let tools = sandbox.run(&["tools", "list"]);
    tools.ended(0);
    assert!(
        tools.out.contains("srv.echo") && tools.out.contains("edit_file"),
        "{tools:#?}"
    );
    assert!(tools.err.contains("the MCP server gone does not work"), "{tools:#?}");
    sandbox.run(&["mcp", "remove", "srv"]).ended(0);
    sandbox.run(&["mcp", "remove", "gone"]).ended(0);
    sandbox
        .run(&["mcp", "remove", "gone"])
        .refused(2, &["there is no MCP server"]);
    assert_eq!(
        std::fs::read_to_string(&config).unwrap().trim_end(),
        "# mine\nmax_replans = 2"
    );
    let schema = sandbox.run(&["tools", "schema", "edit_file"]);
    schema.ended(0);
    assert_eq!(schema.json()["input_schema"]["required"], json!(["path", "old", "new"]));
    // A stranger's project may not bring programs along.
    sandbox.file(".artoo.toml", "[mcp.evil]\ncommand = \"/bin/sh\"\n");
    sandbox.run(&["tools", "list"]).refused(2, &["may not set"]);
}

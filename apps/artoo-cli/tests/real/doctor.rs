//! `artoo doctor` on machines on which something is wrong: each fault is told with its remedy, and none hides another (design §20).

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::support::{Done, LIMIT, Running, Sandbox, silent_model};

const TASK: &str = "count the files in src";

/// The line about something, without its mark.
#[track_caller]
fn line<'a>(done: &'a Done, mark: &str, what: &str) -> &'a str {
    let begins = format!("{mark:<4} {what:<15} ");
    let found = done.out.lines().find_map(|line| line.strip_prefix(&begins));
    found.unwrap_or_else(|| panic!("no line `{begins}…`: {done:#?}"))
}

/// Every look that is made whatever is wrong.
const ALWAYS: [&str; 11] = [
    "version",
    "configuration",
    "data folder",
    "disk space",
    "temporary files",
    "shell",
    "sandbox",
    "memory",
    "journals",
    "audit log",
    "clock",
];

#[track_caller]
fn nothing_is_hidden(done: &Done) {
    for what in ALWAYS {
        let told = done
            .out
            .lines()
            .any(|line| line.get(5..).is_some_and(|rest| rest.starts_with(what)));
        assert!(told, "{what} is not told of: {done:#?}");
    }
}

#[test]
fn a_fresh_machine_works_and_every_row_has_the_same_fields() {
    let sandbox = Sandbox::new();
    let done = sandbox.run(&["doctor"]);
    done.ended(0);
    nothing_is_hidden(&done);
    let offline = line(&done, "ok", "brain model");
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OLLAMA_HOST"] {
        assert!(offline.contains(name), "{name}: {offline}");
    }
    let rows = sandbox.run(&["doctor", "--json"]).ended(0).json();
    for row in rows.as_array().unwrap() {
        assert!(
            row["check"].is_string() && row["ok"] == true && row["detail"].is_string(),
            "{row}"
        );
        let state = row["state"].as_str().unwrap();
        assert!(["ok", "note"].contains(&state), "{row}");
        assert_eq!(
            row["remedy"] == Value::Null,
            state == "ok",
            "what is not well has a remedy: {row}"
        );
    }
}

#[test]
fn settings_that_cannot_be_read_hide_nothing_else() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.data()).unwrap();
    let config = sandbox.data().join("config.toml");
    std::fs::write(&config, "max_replans = 2\nmodle = \"sk-secret\"\n").unwrap();
    let done = sandbox.run(&["doctor"]);
    done.ended(1);
    nothing_is_hidden(&done);
    let said = line(&done, "BAD", "configuration");
    assert!(said.contains("line 2") && said.contains("modle"), "{said}");
    assert!(!done.out.contains("sk-secret"), "{done:#?}");
}

#[test]
fn a_key_that_others_can_read_is_told_with_the_command_that_hides_it() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.data()).unwrap();
    let config = sandbox.data().join("config.toml");
    std::fs::write(&config, "[anthropic]\napi_key = \"sk-secret\"\n[openai]\n").unwrap();
    let set = |mode| std::fs::set_permissions(&config, PermissionsExt::from_mode(mode)).unwrap();
    let offline = ["--model", "builtin:offline", "doctor"];
    set(0o644);
    let done = sandbox.run(&offline);
    done.ended(0);
    let said = line(&done, "note", "settings file");
    assert!(
        said.contains("chmod 600") && said.contains("others can read it"),
        "{said}"
    );
    assert!(!done.out.contains("sk-secret"), "{done:#?}");
    set(0o600);
    assert!(!sandbox.run(&offline).out.contains("settings file"));
}

#[test]
fn kept_keys_are_looked_at_and_notices_are_told_without_a_model_and_with_broken_settings() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.data()).unwrap();
    let keys = sandbox.data().join("keys.toml");
    std::fs::write(&keys, "gemini = { api_key = \"sk-secret\" }\n").unwrap();
    let set = |mode| std::fs::set_permissions(&keys, PermissionsExt::from_mode(mode)).unwrap();
    set(0o640);
    let mut offline = sandbox.artoo(&["--model", "builtin:offline", "doctor"]);
    offline.env("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317");
    let done = Running::start(&mut offline).wait();
    done.ended(0);
    assert!(line(&done, "note", "kept keys").contains("chmod 600"));
    assert_eq!(done.out.matches("keys.toml (mode").count(), 1, "{done:#?}");
    assert!(!done.out.contains("others may read"), "told twice: {done:#?}");
    assert!(done.out.contains("no traces are sent"), "{done:#?}");
    std::fs::write(sandbox.data().join("config.toml"), "modle = 1\n").unwrap();
    let broken = sandbox.run(&["doctor"]);
    broken.ended(1);
    assert!(line(&broken, "note", "kept keys").contains("640"));
    set(0o600);
    std::fs::remove_file(sandbox.data().join("config.toml")).unwrap();
    let private = sandbox.run(&["--model", "builtin:offline", "doctor"]);
    assert!(!private.ended(0).out.contains("kept keys"), "{private:#?}");
}

#[test]
fn a_data_folder_that_cannot_be_written_stops_everything() {
    let sandbox = Sandbox::new();
    sandbox.run(&[TASK]).ended(0);
    // The user's own binary, home and files, but for the data folder's lock and the folder itself.
    let mut command = sandbox.bound_by_permissions(&["doctor"]);
    let set = |path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    set(sandbox.data().join("artoo.lock"), 0o400);
    set(sandbox.data(), 0o500);
    let done = Running::start(&mut command).wait();
    set(sandbox.data(), 0o700);
    done.ended(1);
    nothing_is_hidden(&done);
    assert!(line(&done, "BAD", "data folder").contains("--data-dir"));
    assert!(
        done.out.contains("artoo.lock among them") && done.out.contains("chown"),
        "{done:#?}"
    );
    assert!(done.err.contains("2 thing(s) do not work"), "{done:#?}");
}

#[test]
fn what_earlier_runs_left_damaged_or_unfinished_is_named_and_artoo_works_all_the_same() {
    let sandbox = Sandbox::new();
    for _ in 0..3 {
        sandbox.run(&[TASK]).ended(0);
    }
    let whole = sandbox.run(&["doctor"]);
    assert!(line(&whole, "ok", "journals").contains("3, all of them whole"));
    assert!(line(&whole, "ok", "audit log").contains("whole"));
    assert!(line(&whole, "ok", "memory").contains("it opens"));

    let tasks = std::fs::read_dir(sandbox.data().join("tasks")).unwrap();
    let mut journals: Vec<_> = tasks.map(|entry| entry.unwrap().path()).collect();
    journals.sort();
    let name = |at: usize| journals[at].file_stem().unwrap().to_str().unwrap().to_owned();
    std::fs::write(&journals[0], "nothing\nof a journal\n").unwrap();
    let text = std::fs::read_to_string(&journals[1]).unwrap();
    let unfinished: Vec<&str> = text.lines().take_while(|line| !line.contains("FinalResult")).collect();
    std::fs::write(&journals[1], unfinished.join("\n") + "\n").unwrap();
    let log = sandbox.data().join("audit.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text.replacen("UserInput", "UserOutput", 1)).unwrap();
    let store = sandbox.data().join("memory.leveldb");
    for entry in std::fs::read_dir(&store).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("MANIFEST") {
            std::fs::write(&path, "nothing of a store").unwrap();
        }
    }

    let done = sandbox.run(&["doctor"]);
    done.ended(0);
    let damaged = line(&done, "note", "journals");
    assert!(
        damaged.contains("1 of 3") && damaged.contains(&format!("artoo tasks rm {}", name(0))),
        "{damaged}"
    );
    let waiting = line(&done, "note", "tasks");
    assert!(waiting.contains(&format!("artoo resume {}", name(1))), "{waiting}");
    assert!(line(&done, "note", "audit log").contains("artoo audit verify"));
    assert!(line(&done, "note", "memory").contains("artoo memory verify"));
    // The remedies that it names are there and do what it says.
    sandbox.run(&["tasks", "rm", &name(0)]).ended(0);
    sandbox.run(&["resume", &name(1)]).ended(0);
    let mended = sandbox.run(&["doctor"]);
    assert!(line(&mended, "ok", "journals").contains("2, all"), "{mended:#?}");
    assert!(!mended.out.contains("did not end"), "{mended:#?}");
}

#[test]
fn a_data_folder_at_work_is_told_and_its_task_is_not_taken_for_one_that_was_left() {
    let sandbox = Sandbox::new();
    let (server, asked) = silent_model();
    let first = Running::start(&mut sandbox.with_model(&server, &["wait for the model"]));
    asked.recv_timeout(LIMIT).unwrap();
    let done = sandbox.run(&["doctor"]);
    done.ended(0);
    assert!(line(&done, "note", "data folder").contains("another artoo has been at work"));
    assert!(!done.out.contains("did not end"), "{done:#?}");
    drop(first);
}

#[test]
fn the_environment_is_looked_at() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.artoo(&["doctor"]);
    command
        .env("https_proxy", "http://me:sk-secret@:3128")
        .env("SSL_CERT_FILE", sandbox.project().join("notes.txt"));
    let done = Running::start(&mut command).wait();
    done.ended(0);
    assert!(line(&done, "note", "proxy").contains("https_proxy"));
    assert!(line(&done, "note", "certificates").contains("SSL_CERT_FILE"));
    assert!(!done.out.contains("sk-secret"), "{done:#?}");

    let mut few = Command::new("sh");
    few.args(["-c", "ulimit -n 128; exec \"$0\" doctor", env!("CARGO_BIN_EXE_artoo")])
        .env_clear()
        .env("HOME", sandbox.home())
        .current_dir(sandbox.project());
    let done = Running::start(&mut few).wait();
    done.ended(0);
    assert!(line(&done, "note", "open files").contains("ulimit -n"));
}

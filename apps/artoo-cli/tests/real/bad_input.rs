//! Input and surroundings as they should not be: each gives one clear sentence and its exit code (design §14, §20).

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use artoo_testkit::skipping::skipped;
use serde_json::Value;

use crate::support::{Running, Sandbox, silent_model};

#[test]
fn text_that_is_no_task_is_refused_before_anything_is_made() {
    let sandbox = Sandbox::new();
    for text in ["", "   ", "\n\t\u{1}\u{1b}"] {
        sandbox.run(&[text]).refused(2, &["the text is empty"]);
        Running::fed(&mut sandbox.artoo(&[]), text.into())
            .wait()
            .refused(2, &["the text is empty"]);
    }
    let megabyte = vec![b'a'; 1 << 20];
    Running::fed(&mut sandbox.artoo(&["run"]), megabyte)
        .wait()
        .refused(2, &["longer than the 100000 bytes"]);
    let mut padded = b"count the files in src".to_vec();
    padded.resize(150_000, b' ');
    padded.extend(b" and delete them");
    Running::fed(&mut sandbox.artoo(&[]), padded)
        .wait()
        .refused(2, &["longer"]);
    Running::fed(&mut sandbox.artoo(&[]), b"count \xff".to_vec())
        .wait()
        .refused(2, &["not UTF-8"]);
    assert!(!sandbox.data().exists() && !sandbox.workspace().exists());
}

#[test]
fn control_characters_reach_the_journal_but_never_the_terminal() {
    let sandbox = Sandbox::new();
    let text = "find \u{1b}]0;owned\u{7}\u{9b}2J\u{0} somewhere \u{202e}over the rainbow";
    let done = Running::fed(&mut sandbox.artoo(&[]), text.into()).wait();
    done.refused(3, &["builtin:offline"]);
    for option in ["--model", "--allow", "--cwd", "--time-budget"] {
        sandbox
            .run(&[option, "\u{1b}[2J\u{9b}x", "count the files in src"])
            .refused(2, &["[2J"]);
    }
    sandbox
        .run(&["--\u{1b}[2J\u{9b}x"])
        .refused(2, &["unexpected argument"]);
    let list = sandbox.run(&["tasks", "list", "--json"]).json();
    assert_eq!(list[0]["input"], text, "the input is kept as it was");
    for command in [
        vec!["tasks", "show", "input"],
        vec!["tasks", "show", "input", "--json"],
        vec!["tasks", "log", "input"],
    ] {
        let shown = sandbox.run(&command);
        shown.ended(0);
        assert!(
            !shown.out.chars().any(|c| c.is_control() && c != '\n'),
            "{command:?}: {:?}",
            shown.out
        );
    }
}

#[test]
fn a_type_of_record_that_there_is_not_is_named_with_the_nearest_one() {
    let sandbox = Sandbox::new();
    for (wrong, meant) in [
        ("PlanDirektive", "PlanDirective"),
        ("model_answer", "model_answered"),
        ("notes", "note"),
    ] {
        sandbox.run(&["audit", "tail", "--type", wrong]).refused(
            2,
            &["invalid value", wrong, "possible values", "tool_run", meant, "similar"],
        );
    }
    sandbox.run(&["audit", "tail", "--type", "PLANdirective"]).ended(0);
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_a_remedy() {
    let sandbox = Sandbox::new();
    sandbox.run(&["count the files in src"]).ended(0);
    let folder = sandbox.home().join("pages");
    let file = folder.join("x.html");
    let path = file.to_str().unwrap();
    for command in [
        vec!["report", "count", "--html", path],
        vec!["audit", "report", "--html", path],
        vec!["audit", "key", path],
        vec!["--record", path, "count the files in src"],
    ] {
        sandbox
            .run(&command)
            .refused(2, &[path, "cannot be written", "mkdir -p", folder.to_str().unwrap()]);
    }
    std::fs::create_dir(&folder).unwrap();
    sandbox
        .run(&["audit", "report", "--html", folder.to_str().unwrap()])
        .refused(2, &["it is a folder"]);
    sandbox.run(&["audit", "report", "--html", path]).ended(0);
}

#[test]
fn without_a_home_folder_it_says_what_to_set() {
    let sandbox = Sandbox::new();
    let started = |home: Option<&str>| {
        let mut command = sandbox.artoo(&["count the files in src"]);
        command.env_remove("HOME");
        home.map(|home| command.env("HOME", home));
        Running::start(&mut command).wait()
    };
    started(None).refused(2, &["no home folder", "--data-dir"]);
    started(Some("")).refused(2, &["no home folder"]);
    started(Some("relative/home")).refused(2, &["`relative/home`", "not an absolute path"]);
}

#[test]
fn a_data_folder_that_cannot_be_written_is_named() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("in_the_way", "x");
    let task = ["--data-dir", file.to_str().unwrap(), "count the files in src"];
    sandbox.run(&task).refused(2, &["in_the_way", "--data-dir"]);

    std::fs::create_dir(sandbox.data()).unwrap();
    let mut command = sandbox.bound_by_permissions(&["count the files in src"]);
    std::fs::set_permissions(sandbox.data(), PermissionsExt::from_mode(0o555)).unwrap();
    Running::start(&mut command)
        .wait()
        .refused(2, &[".artoo cannot be written", "ermission denied"]);
    std::fs::set_permissions(sandbox.data(), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn a_file_in_place_of_the_workspace_is_named() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.workspace(), "x").unwrap();
    sandbox
        .run(&["write \"a\" to b.txt"])
        .refused(2, &["artoo_workspace is no folder", "--workspace"]);
}

#[test]
fn a_second_process_is_told_who_holds_the_data_folder_and_readers_still_look() {
    let sandbox = Sandbox::new();
    let (server, asked) = silent_model();
    sandbox.run(&["count the files in src"]).ended(0);
    let first = Running::start(&mut sandbox.with_model(&server, &["wait for the model"]));
    asked.recv_timeout(crate::support::LIMIT).unwrap();
    sandbox.run(&["count the files in src"]).refused(
        2,
        &["in use by artoo", &format!("process {}", first.id()), "--data-dir"],
    );
    let commands: [&[&str]; 9] = [
        &["tasks", "list"],
        &["tasks", "show", "count"],
        &["tasks", "log", "input"],
        &["memory", "stats"],
        &["memory", "query", "intent:count_files", "env:local"],
        &["audit", "report"],
        &["audit", "verify"],
        &["doctor"],
        &["ggs", "table"],
    ];
    for command in commands {
        sandbox.run(command).ended(0);
    }
    let list = sandbox.run(&["tasks", "list", "--json"]).json();
    assert_eq!(list[0]["status"], "running");
    first.signal(rustix::process::Signal::TERM);
    first.wait().ended(130);
    sandbox.run(&["count the files in src"]).ended(0);
    let stats: Value = sandbox.run(&["memory", "stats", "--json"]).json();
    assert_eq!(stats["damaged"], 0);
}

#[test]
fn settings_that_cannot_be_read_are_named_with_their_line() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.data()).unwrap();
    let config = sandbox.data().join("config.toml");
    for (text, said) in [
        ("max_replans = 2\nmodel = \n", "line 2"),
        ("modle = \"x\"\n", "modle"),
        ("max_replans = \"many\"\n", "line 1"),
        ("\u{0}\u{1}", "config.toml"),
    ] {
        std::fs::write(&config, text).unwrap();
        sandbox
            .run(&["count the files in src"])
            .refused(2, &["config.toml", said]);
    }
    std::fs::write(&config, [0xff, 0xfe, b'a']).unwrap();
    sandbox.run(&["count the files in src"]).refused(2, &["config.toml"]);
    std::fs::remove_file(&config).unwrap();

    sandbox.file(".artoo.toml", "allow = [\"destroy:*\"]\n");
    sandbox
        .run(&["count the files in src"])
        .refused(2, &[".artoo.toml may not set allow"]);
    // Nobody has set a key here, and nobody reads notices.
    let strange = "[openai]\nbase_url = \"https://evil.example/v1\"\nmodel = \"m\"\n";
    sandbox.file(".artoo.toml", strange);
    let words = [".artoo.toml", "https://evil.example/v1", "OPENAI_BASE_URL"];
    sandbox.run(&["-q", "count the files in src"]).refused(2, &words);
    sandbox
        .run(&["models"])
        .ended(2)
        .says("openai     /")
        .says("https://evil.example/v1");
    std::fs::remove_file(sandbox.project().join(".artoo.toml")).unwrap();
    let made = Command::new("mkfifo")
        .arg(sandbox.project().join(".artoo.toml"))
        .status();
    assert!(made.unwrap().success());
    sandbox
        .run(&["count the files in src"])
        .refused(2, &[".artoo.toml cannot be read: it is no file"]);
}

#[test]
fn a_key_without_a_model_is_in_the_way_of_tasks_only() {
    let sandbox = Sandbox::new();
    sandbox.run(&["count the files in src"]).ended(0);
    let with_key = |args: &[&str]| Running::start(sandbox.artoo(args).env("OPENAI_API_KEY", "sk-hush")).wait();
    with_key(&["count the files in src"]).refused(2, &["no model is named", "--model builtin:offline"]);
    let list = sandbox.run(&["tasks", "list", "--json"]).json();
    let task = list[0]["task_id"].as_str().unwrap();
    for args in [
        &["report", task][..],
        &["tools", "list"],
        &["tools", "schema"],
        &["mcp", "list"],
    ] {
        with_key(args).ended(0);
    }
    let shown = with_key(&["config", "show"]);
    shown.ended(0).says("not usable: ").says("OPENAI_MODEL");
    assert!(!shown.out.contains("hush"), "{}", shown.out);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let sandbox = Sandbox::new();
    let with = |args: &[&str]| sandbox.run(&[args, &["count the files in src"]].concat());
    with(&["--model", "gpt"]).refused(2, &["`gpt` names no model", "openai:NAME"]);
    with(&["--model", "acme:x"]).refused(2, &["`acme:x` names no model"]);
    with(&["--model", "openai:x"]).refused(2, &["OPENAI_BASE_URL"]);
    with(&["--time-budget", "soon"]).refused(2, &["`soon` is not a time budget"]);
    with(&["--allow", "everything"]).refused(2, &["`everything` is no grant"]);
    with(&["--cwd", "/nowhere"]).refused(2, &["/nowhere"]);
    with(&["--max-tokens", "many"]).refused(2, &["--max-tokens"]);
    with(&["--replay", "nothing.jsonl"]).refused(2, &["nothing.jsonl"]);
    for (name, missing) in [
        ("OPENAI_API_KEY", "OPENAI_MODEL"),
        ("OPENAI_BASE_URL", "OPENAI_MODEL"),
        ("OPENAI_MODEL", "OPENAI_BASE_URL"),
    ] {
        let mut command = sandbox.artoo(&["count the files in src"]);
        Running::start(command.env(name, "x")).wait().refused(2, &[missing]);
    }
    assert!(!sandbox.data().exists());
}

#[test]
fn nobody_who_reads_the_output_is_no_reason_to_panic() {
    let sandbox = Sandbox::new();
    for (out, err) in [(true, false), (false, true), (true, true)] {
        let mut child = sandbox
            .artoo(&["count the files in src"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        // Closes the reading ends.
        stdout = stdout.filter(|_| !out);
        stderr = stderr.filter(|_| !err);
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(0), "stdout gone: {out}, stderr gone: {err}");
        drop((stdout, stderr));
    }
    // A filter whose reader has gone ends instead of working on.
    let mut endless = sandbox
        .artoo(&["ggs", "decide"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(endless.stdout.take());
    let mut stdin = endless.stdin.take().unwrap();
    let line = b"{\"D\":0.5,\"P\":0.8,\"Omega\":0.2,\"grad_l\":0.0}\n";
    while std::io::Write::write_all(&mut stdin, line).is_ok() {}
    assert_eq!(endless.wait().unwrap().code(), Some(0));
}

#[test]
fn a_result_that_cannot_be_written_is_not_called_done() {
    let sandbox = Sandbox::new();
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        return skipped("/dev/full", "there is none here");
    };
    let out = sandbox
        .artoo(&["count the files in src"])
        .stdout(full)
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.contains("could not be written"), "{err}");
}

//! What happens to commands when artoo is killed, aborted, or runs where nothing can confine them (design §8, §9, §17).

#![allow(clippy::disallowed_methods, reason = "a clock for how long something may hang")]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use artoo_testkit::server::{Response, Server, asked_for, results_in};
use rustix::process::Signal;
use seccompiler::{SeccompAction, SeccompFilter};
use serde_json::{Value, json};

use crate::support::{LIMIT, Running, Sandbox, last_message};

/// A plan of one subtask without machine checks, whose calls are these, one after the other.
fn calling(calls: Vec<(&'static str, Value)>) -> impl Fn(&Value) -> Response + Send + Sync + 'static {
    let content = |value: Value| Response::Content(value.to_string());
    let criterion = json!({"criterion": "notes.txt is there", "mode": "verifiable", "check": {"kind": "file_exists", "path": "notes.txt"}});
    move |body| match asked_for(body) {
        "task_spec" => content(
            json!({"slug": "odd_work", "intent": "odd work", "scope": null, "deadline": null, "clarify": [], "direct_answer": null}),
        ),
        "plan" => content(
            json!({"task_criteria": [criterion], "subtasks": [{"sequence": 1, "intent": "odd work", "context": "",
            "success_criteria": [criterion], "tools": ["shell", "write_file", "edit_file", "read_file"]}]}),
        ),
        "tools" if last_message(body).starts_with("not run") => Response::ToolCall(
            "report",
            json!({"status": "failed", "output": "", "reason": "it was not allowed"}),
        ),
        "tools" => match calls.get(results_in(body)) {
            Some((tool, input)) => Response::ToolCall(tool, input.clone()),
            None => Response::Content(format!("heard: {}", last_message(body))),
        },
        _ => Response::Raw(400, String::new()),
    }
}

/// How many processes sleep for so many seconds, which no other test uses.
fn sleeping(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| line.replace('\0', " ").starts_with(&format!("sleep {mark}")))
        .count()
}

/// Waits for something that only a hang keeps from coming.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "{what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_commands_started_does_not_outlive_an_artoo_that_was_killed() {
    // One that is confined, and one that is allowed and does everything to get away: out of the group, deaf, orphaned.
    let away = "setsid sleep 61.52 & (setsid sh -c 'trap \"\" TERM HUP INT; sleep 61.52; true' &); (sleep 61.52 &); sleep 61.52";
    for (mark, command, grants, count) in [
        ("61.51", "(sleep 61.51 &); sleep 61.51 | sleep 61.51", &[][..], 3),
        ("61.52", away, &["--allow", "external:*"], 4),
    ] {
        let sandbox = Sandbox::new();
        let server = Server::start(calling(vec![("shell", json!({ "command": command }))])).unwrap();
        let running = Running::start(&mut sandbox.with_model(&server, &[grants, &["odd work"]].concat()));
        wait_until("the command", || sleeping(mark) == count);
        running.signal(Signal::KILL);
        wait_until("their end", || sleeping(mark) == 0);
    }
}

#[test]
fn what_an_mcp_server_started_does_not_outlive_an_artoo_that_was_killed() {
    let sandbox = Sandbox::new();
    let script = sandbox.file(
        "server.sh",
        "setsid sleep 61.53 &\nsleep 61.53 &\nwhile read -r line; do :; done\n",
    );
    std::fs::create_dir_all(sandbox.data()).unwrap();
    std::fs::write(
        sandbox.data().join("config.toml"),
        format!(
            "[mcp.odd]\ncommand = \"sh\"\nargs = [{:?}]\n",
            script.display().to_string()
        ),
    )
    .unwrap();
    let mut command = sandbox.artoo(&["mcp", "list"]);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let running = Running::start(&mut command);
    wait_until("the server", || sleeping("61.53") == 2);
    running.signal(Signal::KILL);
    wait_until("its end", || sleeping("61.53") == 0);
}

fn records(sandbox: &Sandbox) -> usize {
    let Ok(mut files) = std::fs::read_dir(sandbox.data().join("tasks")) else {
        return 0;
    };
    let bytes = files.next().and_then(|file| std::fs::read(file.unwrap().path()).ok());
    bytes.map_or(0, |bytes| bytes.split(|&byte| byte == b'\n').count() - 1)
}

fn files(sandbox: &Sandbox) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for folder in [sandbox.project(), sandbox.workspace()] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let size = if entry.path().is_dir() {
                0
            } else {
                entry.metadata().unwrap().len()
            };
            all.insert(entry.file_name().into_string().unwrap(), size);
        }
    }
    all
}

/// Ctrl+C at one record of the journal after the other, of which a few are taken every day and all with `ARTOO_ABORT_ROUNDS`.
#[test]
fn an_abort_at_any_point_leaves_no_process_and_no_half_of_a_file() {
    let rounds: usize = std::env::var("ARTOO_ABORT_ROUNDS").map_or(10, |n| n.parse().unwrap());
    let long = "line\n".repeat(40_000);
    let work = move || {
        calling(vec![
            ("write_file", json!({"path": "long.txt", "content": long})),
            ("shell", json!({"command": "timeout 0.3 sleep 61.54; true"})),
            ("edit_file", json!({"path": "notes.txt", "old": "four", "new": "five"})),
        ])
    };
    let grants = ["--allow", "modify:*", "odd work"];
    let undisturbed = Sandbox::new();
    let server = Server::start(work()).unwrap();
    Running::start(&mut undisturbed.with_model(&server, &grants)).wait();
    let whole = records(&undisturbed);
    assert!(whole > 10, "{whole}");
    let before = files(&Sandbox::new());
    for round in 0..rounds {
        let at = 1 + round * whole / rounds;
        let sandbox = Sandbox::new();
        let server = Server::start(work()).unwrap();
        let mut running = Running::start(&mut sandbox.with_model(&server, &grants));
        while records(&sandbox) < at && !running.has_ended() {
            std::thread::yield_now();
        }
        if !running.has_ended() {
            running.signal(Signal::INT);
        }
        let done = running.wait();
        let what = format!("round {round}, at record {at} of {whole}: {done:#?}");
        assert!(matches!(done.code, Some(130 | 0)), "{what}");
        assert_eq!(sleeping("61.54"), 0, "{what}");
        let finals = sandbox.journal();
        let finals = finals.iter().filter(|e| e["payload"]["type"] == "FinalResult");
        assert_eq!(finals.count(), 1, "{what}");
        let mut after = files(&sandbox);
        let written = after.remove("long.txt");
        assert!(written.is_none_or(|size| size == 200_000), "{what}");
        // `four` and `five` are of one length, so every file is there, whole, and none beside them.
        assert_eq!(after, before, "{what}");
        let notes = std::fs::read_to_string(sandbox.project().join("notes.txt")).unwrap();
        assert!(
            ["one two three\nfour\n", "one two three\nfive\n"].contains(&notes.as_str()),
            "{what}"
        );
    }
}

/// Runs something as on a kernel without Landlock, and without leave to mount, which bubblewrap needs.
fn without_landlock<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let calls = [libc::SYS_landlock_create_ruleset, libc::SYS_mount, libc::SYS_unshare];
            let rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
            let missing = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
            let architecture = std::env::consts::ARCH.try_into().unwrap();
            let filter = SeccompFilter::new(rules, SeccompAction::Allow, missing, architecture).unwrap();
            let program: seccompiler::BpfProgram = filter.try_into().unwrap();
            // It binds this thread and the processes that it starts, and nothing else of the tests.
            seccompiler::apply_filter(&program).unwrap();
            run()
        });
        thread.join().unwrap()
    })
}

#[test]
fn without_a_sandbox_every_command_is_asked_about_and_built_in_tools_work() {
    let sandbox = Sandbox::new();
    let start = |mut command: Command| without_landlock(move || Running::start(&mut command));
    let doctor = start(sandbox.artoo(&["doctor"])).wait();
    doctor.ended(0);
    doctor.says("none, so every command is asked about");

    let server = Server::start(calling(vec![("shell", json!({"command": "cat notes.txt"}))])).unwrap();
    let done = start(sandbox.with_model(&server, &["odd work"])).wait();
    done.refused(4, &["law 1", "nobody is there to be asked"]);

    let server = Server::start(calling(vec![("shell", json!({"command": "cat notes.txt"}))])).unwrap();
    let granted = start(sandbox.with_model(&server, &["--allow", "external:cat notes.txt", "odd work"])).wait();
    granted.ended(0);
    assert!(granted.out.contains("one two three"), "{granted:#?}");

    let server = Server::start(calling(vec![
        ("read_file", json!({"path": "notes.txt"})),
        ("write_file", json!({"path": "new.txt", "content": "new\n"})),
    ]))
    .unwrap();
    start(sandbox.with_model(&server, &["odd work"])).wait().ended(0);
    assert_eq!(
        std::fs::read_to_string(sandbox.workspace().join("new.txt")).unwrap(),
        "new\n"
    );
}

/// Whatever the system allows, the end is a named one: without files nothing panics, and with a few artoo works.
#[test]
fn a_limit_of_open_files_is_named_and_never_a_panic() {
    let sandbox = Sandbox::new();
    sandbox.run(&["memory", "remember", "use yarn"]).ended(0);
    let under = |limit: u32, args: &[&str]| {
        let artoo = sandbox.artoo(args);
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")])
            .arg(artoo.get_program())
            .args(artoo.get_args())
            .env_clear()
            .env("HOME", sandbox.home())
            .current_dir(sandbox.project())
            .stdin(std::process::Stdio::null());
        Running::start(&mut command).wait()
    };
    let commands: [&[&str]; 6] = [
        &["count the files in src"],
        &["memory", "stats"],
        &["memory", "remember", "use fd"],
        &["doctor"],
        &["audit", "report"],
        &["tasks", "list"],
    ];
    for args in commands {
        for limit in [4, 6, 8, 12, 20, 34, 36, 40, 50, 64] {
            let done = under(limit, args);
            let code = done.code;
            assert!(code.is_some_and(|code| code != 101), "{args:?} with {limit}: {done:#?}");
            assert!(!done.err.contains("panicked"), "{args:?} with {limit}: {done:#?}");
        }
    }
    under(6, commands[0]).refused(1, &["open", "raise the limit of open files"]);
    assert_eq!(under(64, commands[0]).ended(0).out.trim(), "3");
}

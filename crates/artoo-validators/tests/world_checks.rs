//! Checks against real files in a temporary folder, and commands through a stand-in toolbox.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

use std::path::Path;
use std::sync::{Arc, Mutex};

use artoo_protocol::message::{Check, FailureClass};
use artoo_protocol::ports::{CheckRunner, Toolbox};
use artoo_protocol::tool::{
    Assessment, CheckReport, CheckRequest, EffectClass, Invocation, Permit, Reach, ToolOutput, ToolSpec,
};
use artoo_validators::WorldChecks;
use artoo_validators::checks::WorldConfig;
use async_trait::async_trait;
use serde_json::json;

/// A shell that classifies by the first word and remembers what it was made to run.
#[derive(Default)]
struct Shell {
    ran: Mutex<Vec<(String, Permit)>>,
}

#[async_trait]
impl Toolbox for Shell {
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        let command = invocation.input["command"].as_str().unwrap().to_owned();
        let (effect, reach) = match command.split(' ').next().unwrap() {
            "rm" => (EffectClass::Destroy, Reach::Elsewhere),
            "touch" => (EffectClass::Create, Reach::Workspace),
            "curl" => (EffectClass::Fetch, Reach::Nowhere),
            "odd" => (EffectClass::Read, Reach::Elsewhere),
            _ => (EffectClass::Read, Reach::Nowhere),
        };
        Assessment {
            effect,
            reach,
            action: command.clone(),
            reason: "by its first word".into(),
            programs: Vec::new(),
            targets: Vec::new(),
            invalid: command.contains("((").then(|| "cannot be parsed".into()),
            fingerprint: 0,
        }
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        let command = invocation.input["command"].as_str().unwrap().to_owned();
        self.ran.lock().unwrap().push((command.clone(), permit));
        let done = ToolOutput {
            exit: Some(0),
            output: "fine".into(),
            ..ToolOutput::default()
        };
        match command.as_str() {
            "fine" => done,
            "false" => ToolOutput { exit: Some(1), ..done },
            "slow" => std::future::pending().await,
            "killed" => ToolOutput {
                exit: None,
                interrupted: true,
                ..done
            },
            _ => ToolOutput {
                exit: None,
                error: Some("no such program".into()),
                failure_class: Some(FailureClass::Environmental),
                ..ToolOutput::default()
            },
        }
    }
}

struct World {
    root: tempfile::TempDir,
    shell: Arc<Shell>,
    runtime: tokio::runtime::Runtime,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["cwd/tree/deep", "workspace", "home"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        Self {
            root,
            shell: Arc::default(),
            runtime,
        }
    }

    fn path(&self, below: &str) -> String {
        self.root.path().join(below).to_str().unwrap().to_owned()
    }

    fn write(&self, below: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.root.path().join(below), text).unwrap();
    }

    fn run(&self, check: &serde_json::Value, made: &[String]) -> CheckReport {
        let at = |below: &str| Path::new(self.root.path()).join(below);
        let config = WorldConfig::new(at("cwd"), at("workspace"), Some(at("home")));
        let runner = WorldChecks::new(config, Arc::clone(&self.shell) as Arc<dyn Toolbox>);
        let request = CheckRequest {
            given: String::new(),
            written: Vec::new(),
            check: serde_json::from_value::<Check>(check.clone()).unwrap(),
            tool_calls: Vec::new(),
            made: made.to_vec(),
        };
        self.runtime.block_on(runner.run(&request))
    }
}

#[test]
fn file_checks_report_the_value_found_and_the_path() {
    let world = World::new();
    world.write("cwd/a.txt", "alpha\r\nbeta 5\n");
    world.write("cwd/n.json", r#"{"a":{"b":[1,2.5]}}"#);
    world.write("home/h.txt", "home");
    world.write("cwd/bytes.bin", [0xff, 0xfe, b'o', b'k']);
    for name in ["cwd/tree/x.rs", "cwd/tree/deep/y.rs", "cwd/tree/deep/z.txt"] {
        world.write(name, "x");
    }
    for (check, passes, word) in [
        (
            json!({"kind":"file_exists","path":"a.txt"}),
            true,
            "cwd/a.txt` exists, 14 bytes",
        ),
        (json!({"kind":"file_exists","path":"./tree"}), true, "a folder"),
        (
            json!({"kind":"file_exists","path":"b.txt"}),
            false,
            "cwd/b.txt` does not exist",
        ),
        (json!({"kind":"file_exists","path":"~/h.txt"}), true, "home/h.txt"),
        (json!({"kind":"file_absent","path":"b.txt"}), true, "does not exist"),
        (
            json!({"kind":"file_absent","path":"a.txt/below"}),
            true,
            "does not exist",
        ),
        (json!({"kind":"file_absent","path":"a.txt"}), false, "exists, 14 bytes"),
        (
            json!({"kind":"file_contains","path":"a.txt","pattern":"^beta \\d$"}),
            true,
            "cwd/a.txt` (14 bytes), line 2: beta 5",
        ),
        (
            json!({"kind":"file_contains","path":"a.txt","pattern":"gamma"}),
            false,
            "it begins: alpha beta 5",
        ),
        (
            json!({"kind":"file_contains","path":"bytes.bin","pattern":"ok"}),
            true,
            "line 1",
        ),
        (
            json!({"kind":"file_contains","path":"tree","pattern":"x"}),
            false,
            "no regular file",
        ),
        (
            json!({"kind":"json_path","path":"n.json","pointer":"/a/b/1","equals":2.5}),
            true,
            "2.5",
        ),
        (
            json!({"kind":"json_path","path":"n.json","pointer":"/a/b/0","equals":2}),
            false,
            "has 1 at `/a/b/0`, expected 2",
        ),
        (
            json!({"kind":"json_path","path":"a.txt","pointer":"","equals":2}),
            false,
            "no JSON",
        ),
        (
            json!({"kind":"count","of":"lines","path":"a.txt","op":"eq","value":2}),
            true,
            "found 2 lines",
        ),
        (
            json!({"kind":"count","of":"matches","path":"a.txt","pattern":"a","op":"le","value":2}),
            false,
            "found 3 matches",
        ),
        (
            json!({"kind":"count","of":"files","path":"tree","pattern":"\\.rs$","op":"eq","value":2}),
            true,
            "found 2 files below",
        ),
        (
            json!({"kind":"count","of":"files","path":"tree","op":"ge","value":4}),
            false,
            "found 3",
        ),
        (
            json!({"kind":"count","of":"files","path":"a.txt","op":"ge","value":1}),
            false,
            "no folder",
        ),
    ] {
        let report = world.run(&check, &[]);
        assert_eq!(report.passed, passes, "{check}: {report:?}");
        assert!(report.evidence.contains(word) && !report.faulty, "{check}: {report:?}");
    }
}

#[test]
fn a_digest_is_compared_without_regard_to_case() {
    let world = World::new();
    let sha = "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";
    world.write("cwd/alpha", "alpha");
    let check = |equals: &str| json!({"kind":"sha256","path":"alpha","equals":equals});
    let report = world.run(&check(&sha.to_uppercase()), &[]);
    assert!(
        report.passed && report.evidence.contains(sha) && report.evidence.contains("5 bytes"),
        "{report:?}"
    );
    assert!(!world.run(&check(&"0".repeat(64)), &[]).passed);
}

#[test]
fn a_secret_in_a_file_does_not_get_into_the_evidence() {
    let world = World::new();
    world.write("cwd/.env", "KEY=swordfish\n");
    let config = WorldConfig::new(world.path("cwd").into(), world.path("workspace").into(), None);
    let runner = WorldChecks::new(config, Arc::clone(&world.shell) as Arc<dyn Toolbox>)
        .masked_by(Arc::new(|text: &str| text.replace("swordfish", "[masked]")));
    for pattern in ["^KEY=", "nothing like it"] {
        let request = CheckRequest {
            given: String::new(),
            written: Vec::new(),
            check: Check::FileContains {
                path: ".env".into(),
                pattern: pattern.into(),
            },
            tool_calls: Vec::new(),
            made: Vec::new(),
        };
        let report = world.runtime.block_on(runner.run(&request));
        assert!(
            report.evidence.contains("[masked]") && !report.evidence.contains("swordfish"),
            "{report:?}"
        );
    }
}

#[test]
fn a_relative_path_means_the_workspace_only_where_the_task_made_the_file() {
    let world = World::new();
    world.write("workspace/a.txt", "mine");
    world.write("cwd/a.txt", "yours");
    let check = json!({"kind":"file_contains","path":"a.txt","pattern":"mine"});
    assert!(
        !world.run(&check, &[]).passed,
        "an old file of that name in the workspace counts for nothing"
    );
    assert!(world.run(&check, &[world.path("workspace/a.txt")]).passed);
    let below = json!({"kind":"count","of":"files","path":"out","op":"eq","value":1});
    std::fs::create_dir(world.root.path().join("workspace/out")).unwrap();
    world.write("workspace/out/b", "");
    assert!(world.run(&below, &[world.path("workspace/out/b")]).passed);
}

#[cfg(unix)]
#[test]
fn nothing_that_could_hold_or_flood_the_reader_is_opened() {
    let world = World::new();
    let fifo = world.path("cwd/fifo");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let large = std::fs::File::create(world.path("cwd/large")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    std::os::unix::fs::symlink(world.path("cwd"), world.path("cwd/tree/loop")).unwrap();
    for (path, faulty, word) in [
        ("fifo", false, "no regular file"),
        ("/dev/zero", false, "no regular file"),
        ("large", true, "larger than 64 MiB"),
    ] {
        let report = world.run(&json!({"kind":"file_contains","path":path,"pattern":"x"}), &[]);
        assert!(
            !report.passed && report.faulty == faulty && report.evidence.contains(word),
            "{path}: {report:?}"
        );
    }
    let walk = world.run(
        &json!({"kind":"count","of":"files","path":"tree","op":"eq","value":0}),
        &[],
    );
    assert!(walk.passed, "links are not followed: {walk:?}");
}

#[test]
fn a_command_runs_only_when_it_can_only_read() {
    let world = World::new();
    for (command, passes, faulty, word) in [
        ("fine", true, false, "exited with 0: fine"),
        ("true", false, true, "whatever it finds"),
        ("false", false, false, "exited with 1"),
        ("killed", false, false, "interrupted"),
        ("missing", false, false, "no such program"),
        ("rm -rf x", false, true, "could destroy"),
        ("touch x", false, true, "could create"),
        ("curl x", false, true, "could fetch"),
        ("odd", false, true, "not run"),
        ("cat ((", false, true, "cannot be parsed"),
        ("  ", false, true, "empty"),
    ] {
        let report = world.run(&json!({"kind":"command_succeeds","command":command}), &[]);
        assert_eq!(
            (report.passed, report.faulty),
            (passes, faulty),
            "{command}: {report:?}"
        );
        assert!(report.evidence.contains(word), "{command}: {report:?}");
    }
    let ran = world.shell.ran.lock().unwrap();
    let commands: Vec<_> = ran.iter().map(|(command, _)| command.as_str()).collect();
    assert_eq!(commands, ["fine", "false", "killed", "missing"]);
    let reads_only = |permit: &Permit| permit.effect == EffectClass::Read && !permit.confirmed;
    assert!(ran.iter().all(|(_, permit)| reads_only(permit)));
}

#[test]
fn without_a_sandbox_a_check_that_runs_a_command_is_blocked_and_not_faulty() {
    let world = World::new();
    let config = WorldConfig::new(world.path("cwd").into(), world.path("workspace").into(), None);
    let runner = WorldChecks::new(config, Arc::clone(&world.shell) as Arc<dyn Toolbox>)
        .unless(Arc::new(|| Some("no Landlock".to_owned())));
    let request = CheckRequest {
        given: String::new(),
        written: Vec::new(),
        check: Check::CommandSucceeds { command: "fine".into() },
        tool_calls: Vec::new(),
        made: Vec::new(),
    };
    let report = world.runtime.block_on(runner.run(&request));
    assert_eq!(
        (report.passed, report.faulty, report.failure_class),
        (false, false, Some(FailureClass::Environmental)),
        "{report:?}"
    );
    assert!(report.evidence.contains("no Landlock") && report.evidence.contains("another kind of check"));
    assert!(world.shell.ran.lock().unwrap().is_empty(), "nothing was run");
}

#[test]
fn a_command_that_does_not_end_fails_the_check_as_environmental() {
    let world = World::new();
    let mut config = WorldConfig::new(world.path("cwd").into(), world.path("workspace").into(), None);
    config.command_limit = artoo_protocol::Millis(0);
    let runner = WorldChecks::new(config, Arc::clone(&world.shell) as Arc<dyn Toolbox>);
    let request = CheckRequest {
        given: String::new(),
        written: Vec::new(),
        check: Check::CommandSucceeds { command: "slow".into() },
        tool_calls: Vec::new(),
        made: Vec::new(),
    };
    let report = world.runtime.block_on(runner.run(&request));
    assert_eq!(report.failure_class, Some(FailureClass::Environmental));
    assert!(!report.faulty && report.evidence.contains("did not end"), "{report:?}");
}

#[test]
fn a_faulty_check_is_never_run() {
    let world = World::new();
    let report = world.run(&json!({"kind":"file_contains","path":"a.txt","pattern":"["}), &[]);
    assert!(
        report.faulty && !report.passed && report.evidence.contains("pattern"),
        "{report:?}"
    );
}

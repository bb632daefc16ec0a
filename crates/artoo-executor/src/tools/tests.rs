//! The tools against a real file system.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::*;
use artoo_protocol::{SubTaskId, TaskId};
use serde_json::{Value, json};

pub(super) struct World {
    _root: tempfile::TempDir,
    pub root: PathBuf,
    pub tools: Tools,
    pub created: Vec<String>,
}

fn places(root: &Path) -> Places {
    Places {
        home: root.join("home"),
        cwd: root.join("cwd"),
        workspace: root.join("work"),
        own: Some(root.join("home/.artoo")),
    }
}

impl World {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["home", "cwd", "work"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        environment.push(("FAKE_API_KEY".into(), "very-secret-value".into()));
        let tools = Tools::built_in(&ToolSettings {
            places: places(&root),
            environment,
            command_limit: Duration::from_secs(20),
            web: None,
            undo: Some(Arc::new(UndoStore::new(root.join("undo")))),
            sandbox: crate::Sandbox::unchecked(),
            grants: Vec::new(),
        });
        Self {
            _root: dir,
            root,
            tools,
            created: Vec::new(),
        }
    }

    pub fn places(&self) -> Places {
        places(&self.root)
    }

    pub fn invocation(&self, tool: &str, input: Value) -> Invocation {
        Invocation {
            tool: tool.into(),
            input,
            task_id: TaskId::new("t_00000000"),
            subtask_id: SubTaskId::new("s"),
            scope: Vec::new(),
            created: self.created.clone(),
        }
    }

    pub async fn assess(&self, tool: &str, input: Value) -> Assessment {
        self.tools.assess(&self.invocation(tool, input)).await
    }

    /// Runs a call with the permit that its assessment gives it, without a yes.
    pub async fn free(&self, tool: &str, input: Value) -> ToolOutput {
        let invocation = self.invocation(tool, input);
        let assessment = self.tools.assess(&invocation).await;
        assert_eq!(assessment.invalid, None);
        assert!(
            crate::gate::is_free(assessment.effect, assessment.reach),
            "{assessment:?}"
        );
        self.tools
            .run(
                &invocation,
                Permit {
                    effect: assessment.effect,
                    confirmed: false,
                    seen: 0,
                },
            )
            .await
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

const READ: Permit = Permit {
    effect: EffectClass::Read,
    confirmed: false,
    seen: 0,
};

#[tokio::test]
async fn an_unknown_tool_is_an_error_that_lists_the_tools() {
    let world = World::new();
    let error = world.assess("mdfind", json!({})).await.invalid.unwrap();
    assert!(
        error.contains("`mdfind`")
            && error.contains("delete_files, edit_file, find_files, glob, read_file, search_text, shell, write_file"),
        "{error}"
    );
    for (tool, input) in [
        ("read_file", json!({})),
        ("read_file", json!("not json")),
        ("write_file", json!({"path": "x"})),
        ("write_file", json!({"path": " ", "content": ""})),
        ("shell", json!({"command": ["rm", "x"]})),
        ("shell", json!({"command": ""})),
    ] {
        assert!(
            world.assess(tool, input.clone()).await.invalid.is_some(),
            "{tool} {input}"
        );
    }
}

#[tokio::test]
async fn generated_files_go_to_the_workspace() {
    let world = World::new();
    let out = world
        .free("write_file", json!({"path": "report.md", "content": "hello"}))
        .await;
    let path = world.root.join("work/report.md");
    assert_eq!(fs::read_to_string(&path).unwrap(), "hello");
    assert!(
        out.output.contains(path.to_str().unwrap()),
        "the result names the absolute path: {}",
        out.output
    );
    assert_eq!(out.touched, [path.display().to_string()]);
    assert_eq!(fs::read_dir(world.root.join("cwd")).unwrap().count(), 0);
    let made = world.free("read_file", json!({"path": "report.md"})).await;
    assert_eq!(made.output, "hello");
    assert_eq!(
        fs::read_dir(world.root.join("work")).unwrap().count(),
        1,
        "no temporary file is left"
    );
}

#[tokio::test]
async fn writing_elsewhere_or_over_a_file_is_asked_about() {
    let world = World::new();
    world.write("cwd/notes.txt", "old");
    world.write("work/mine.txt", "old");
    fs::create_dir(world.root.join("outside")).unwrap();
    symlink(world.root.join("outside"), world.root.join("work/link")).unwrap();
    for (path, effect, reach) in [
        (
            world.root.join("cwd/notes.txt").display().to_string(),
            EffectClass::Modify,
            Reach::Elsewhere,
        ),
        ("mine.txt".to_owned(), EffectClass::Modify, Reach::Workspace),
        ("~/new/deep.txt".to_owned(), EffectClass::Create, Reach::Elsewhere),
        (
            world.root.join("work/link/x").display().to_string(),
            EffectClass::Create,
            Reach::Elsewhere,
        ),
        (
            world.root.join("work/a/b/c.txt").display().to_string(),
            EffectClass::Create,
            Reach::Workspace,
        ),
    ] {
        let found = world.assess("write_file", json!({"path": path, "content": "x"})).await;
        assert_eq!((found.effect, found.reach), (effect, reach), "{path}");
    }
    // Even with a permit for creating, nothing is replaced and nothing leaves the workspace.
    let create = Permit {
        effect: EffectClass::Create,
        confirmed: false,
        seen: 0,
    };
    for path in [
        "mine.txt".to_owned(),
        world.root.join("work/link/x").display().to_string(),
    ] {
        let invocation = world.invocation("write_file", json!({"path": path, "content": "new"}));
        assert!(world.tools.run(&invocation, create).await.error.is_some());
    }
    assert_eq!(fs::read_to_string(world.root.join("work/mine.txt")).unwrap(), "old");
    assert_eq!(fs::read_dir(world.root.join("outside")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_that_the_task_made_may_be_changed_freely() {
    let mut world = World::new();
    let made = world.free("write_file", json!({"path": "a.txt", "content": "1"})).await;
    world.created = made.touched;
    world.free("write_file", json!({"path": "a.txt", "content": "2"})).await;
    world
        .free(
            "shell",
            json!({"command": format!("echo 3 >> {}", world.root.join("work/a.txt").display())}),
        )
        .await;
    assert_eq!(fs::read_to_string(world.root.join("work/a.txt")).unwrap(), "23\n");
}

#[tokio::test]
async fn odd_files_are_read_or_refused_clearly() {
    let world = World::new();
    world.write("cwd/a \"b\"\nc.txt", "odd name");
    world.write("home/x.txt", "one\ntwo\nthree\n");
    fs::write(world.root.join("cwd/latin1.txt"), b"caf\xe9").unwrap();
    fs::write(world.root.join("cwd/binary"), b"\x7fELF\0\0").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.root.join("cwd/pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    assert_eq!(
        world.free("read_file", json!({"path": "a \"b\"\nc.txt"})).await.output,
        "odd name"
    );
    let range = world
        .free("read_file", json!({"path": "~/x.txt", "start_line": 2, "end_line": 2}))
        .await;
    assert_eq!((range.output.as_str(), range.lines), ("two\n", 1));
    let latin = world.free("read_file", json!({"path": "latin1.txt"})).await;
    assert!(
        latin.output.starts_with("caf\u{e9}") && latin.output.contains("not UTF-8"),
        "{}",
        latin.output
    );
    for (path, words) in [
        ("binary", "a program"),
        ("pipe", "pipe"),
        (".", "folder"),
        ("/dev/zero", "device"),
        ("missing", "cannot be read"),
    ] {
        let error = world.free("read_file", json!({"path": path})).await.error.unwrap();
        assert!(error.contains(words), "{path}: {error}");
    }
    let missing = world.free("read_file", json!({"path": "missing"})).await;
    assert_eq!(missing.failure_class, Some(FailureClass::Environmental));
    let onto_pipe = json!({"path": world.root.join("cwd/pipe").display().to_string(), "content": ""});
    assert!(
        world
            .assess("write_file", onto_pipe)
            .await
            .invalid
            .unwrap()
            .contains("pipe")
    );
}

#[tokio::test]
async fn a_huge_file_is_bounded_and_its_end_is_shown() {
    let world = World::new();
    world.write("cwd/long.txt", &format!("first\n{}last", "x".repeat(300_000)));
    let out = world.free("read_file", json!({"path": "long.txt"})).await;
    assert!(out.truncated && out.output.len() < 40_000);
    assert!(out.output.starts_with("first") && out.output.ends_with("last"));
    let huge = fs::File::create(world.root.join("cwd/huge.bin")).unwrap();
    huge.set_len(10 * 1024 * 1024 * 1024).unwrap();
    assert!(
        world
            .free("read_file", json!({"path": "huge.bin"}))
            .await
            .error
            .unwrap()
            .contains("binary")
    );
}

#[tokio::test]
async fn globs_behave_as_in_gitignore_aware_tools() {
    let world = World::new();
    for path in [
        "main.rs",
        "src/lib.rs",
        "src/deep/x.rs",
        "target/gen.rs",
        ".hidden.rs",
        "a.txt",
    ] {
        world.write(&format!("cwd/{path}"), "");
    }
    world.write("cwd/.git/HEAD", "");
    world.write("cwd/.gitignore", "target/\n");
    for (pattern, expect) in [
        ("**/*.rs", &["main.rs", "src/deep/x.rs", "src/lib.rs"][..]),
        ("*.rs", &["main.rs", "src/deep/x.rs", "src/lib.rs"]),
        ("./src/*.rs", &["src/lib.rs"]),
        ("src/**", &["src/deep/x.rs", "src/lib.rs"]),
        (".*.rs", &[".hidden.rs"]),
        ("*.none", &[]),
    ] {
        let out = world.free("glob", json!({"pattern": pattern})).await;
        let listed: Vec<&str> = out.output.lines().filter(|line| !line.starts_with('[')).collect();
        assert_eq!(listed, expect, "{pattern}");
        assert_eq!(out.lines, expect.len() as u64);
        let root = world.root.join("cwd").display().to_string();
        assert!(
            out.output.contains(&format!("under {root}]")),
            "the root is stated: {}",
            out.output
        );
    }
    assert!(
        world
            .free("glob", json!({"pattern": "[", "root": "."}))
            .await
            .error
            .is_some()
    );
    assert!(
        world
            .free("glob", json!({"pattern": "*", "root": "missing"}))
            .await
            .error
            .is_some()
    );
}

#[tokio::test]
async fn personal_files_are_found_by_name_and_size() {
    let world = World::new();
    world.write("home/Movies/Big.MP4", &"x".repeat(5000));
    world.write("home/Movies/small.mp4", "x");
    world.write("home/.cache/other.mp4", "x");
    world.write("home/notes.txt", "x");
    let by_name = world.free("find_files", json!({"name": "*.mp4"})).await;
    assert_eq!(by_name.lines, 2, "{}", by_name.output);
    let by_size = world
        .free("find_files", json!({"name": "mp4", "sort": "size", "hidden": true}))
        .await;
    assert!(
        by_size.output.starts_with("5000\t") && by_size.lines == 3,
        "{}",
        by_size.output
    );
    let large = world
        .free("find_files", json!({"under": "~", "larger_than": 1000}))
        .await;
    assert!(large.lines == 1 && large.output.contains("Big.MP4"));
    let folders = world.free("find_files", json!({"kind": "folder"})).await;
    assert!(folders.lines == 1 && folders.output.contains("Movies"));
}

#[tokio::test]
async fn long_lists_say_how_many_more_there_are() {
    let world = World::new();
    for n in 0..250 {
        world.write(&format!("home/f{n:03}"), "");
    }
    let out = world.free("find_files", json!({})).await;
    assert!(out.truncated && out.lines == 250);
    assert!(out.output.contains("[50 more are not listed]") && out.output.contains("[250 were found under"));
}

#[tokio::test]
async fn a_command_is_judged_by_what_it_writes() {
    let world = World::new();
    world.write("cwd/old.txt", "old");
    let work = world.root.join("work").display().to_string();
    for (command, effect, free) in [
        ("ls".to_owned(), EffectClass::Read, true),
        (format!("echo x > {work}/new.txt"), EffectClass::Create, true),
        (
            format!("mkdir -p {work}/a && touch {work}/a/b"),
            EffectClass::Create,
            true,
        ),
        (format!("mkdir -p {work}"), EffectClass::Read, true),
        ("echo x > new.txt".to_owned(), EffectClass::Create, false),
        ("echo x > old.txt".to_owned(), EffectClass::Modify, false),
        ("echo x > \"$f\"".to_owned(), EffectClass::Modify, false),
        (format!("rm {work}/x"), EffectClass::Destroy, false),
        ("python3 -c 'print(1)'".to_owned(), EffectClass::External, false),
        ("curl -s https://example.org".to_owned(), EffectClass::Fetch, false),
    ] {
        let found = world.assess("shell", json!({"command": command})).await;
        assert_eq!(
            (found.effect, crate::gate::is_free(found.effect, found.reach)),
            (effect, free),
            "{command}"
        );
        assert_eq!(found.action, command, "the whole command is shown");
        assert_eq!(found.targets.first(), Some(&command));
    }
}

#[tokio::test]
async fn a_command_never_does_more_than_its_permit() {
    let world = World::new();
    world.write("cwd/x", "precious");
    for command in ["rm x", "echo > x", "cp /dev/null x", "find . -delete", "bash -c 'rm x'"] {
        let invocation = world.invocation("shell", json!({"command": command}));
        let out = world.tools.run(&invocation, READ).await;
        assert!(out.error.is_some() && out.exit.is_none(), "{command} ran");
    }
    assert_eq!(fs::read_to_string(world.root.join("cwd/x")).unwrap(), "precious");
}

#[tokio::test]
async fn a_yes_to_one_thing_is_no_yes_to_a_worse_one() {
    let world = World::new();
    let create = Permit {
        effect: EffectClass::Create,
        confirmed: true,
        seen: 0,
    };
    // Asked about while they did not exist, and there by the time they are written.
    world.write("cwd/a.txt", "precious");
    let path = world.root.join("cwd/a.txt").display().to_string();
    for (tool, input) in [
        ("write_file", json!({"path": path, "content": "new"})),
        ("shell", json!({"command": "echo new > a.txt"})),
    ] {
        let out = world.tools.run(&world.invocation(tool, input), create).await;
        assert!(out.stale && out.error.unwrap().contains("nothing was done"), "{tool}");
    }
    assert_eq!(fs::read_to_string(path).unwrap(), "precious");
}

#[tokio::test]
async fn a_command_reports_how_it_ended() {
    let world = World::new();
    let out = world
        .free("shell", json!({"command": "ls missing-file; echo done"}))
        .await;
    assert_eq!(out.exit, Some(0));
    assert!(
        out.output.starts_with("done\n[stderr]\n") && out.output.contains("missing-file"),
        "{}",
        out.output
    );
    assert_eq!((out.lines, out.programs), (1, vec!["ls".to_owned(), "echo".to_owned()]));
    let slow = world
        .free(
            "shell",
            json!({"command": "echo begun; sleep 30", "timeout_seconds": 1}),
        )
        .await;
    assert_eq!(slow.error.as_deref(), Some("timed out after 1 s"));
    assert!(slow.interrupted && slow.output == "begun\n" && slow.failure_class == Some(FailureClass::Environmental));
    let written = world
        .free(
            "shell",
            json!({"command": format!("echo x > {}", world.root.join("work/y").display())}),
        )
        .await;
    assert_eq!(written.touched, [world.root.join("work/y").display().to_string()]);
}

#[tokio::test]
async fn secrets_never_reach_an_output() {
    let world = World::new();
    let printed = world
        .free("shell", json!({"command": "printenv FAKE_API_KEY; env"}))
        .await;
    assert!(!printed.output.contains("very-secret-value") && !printed.output.contains("FAKE_API_KEY"));
    world.write("cwd/.env", "KEY=very-secret-value\nOTHER=AKIAABCDEFGHIJKLMNOP\n");
    let read = world.free("read_file", json!({"path": ".env"})).await;
    assert_eq!(read.output, "KEY=[masked: FAKE_API_KEY]\nOTHER=[masked key]\n");
}

#[tokio::test]
async fn artoo_s_own_folder_is_in_no_scope() {
    let world = World::new();
    world.write("home/.artoo/config.toml", "old");
    world.write("home/notes/a.txt", "old");
    world.write("work/a.txt", "old");
    symlink(world.root.join("home/.artoo"), world.root.join("home/link")).unwrap();
    let free = async |scope: &str, tool: &str, input: Value| {
        let mut invocation = world.invocation(tool, input);
        invocation.scope = vec![scope.to_owned()];
        invocation.created = vec![world.root.join("home/.artoo/made").display().to_string()];
        let assessment = world.tools.assess(&invocation).await;
        assert_eq!(assessment.invalid, None);
        crate::gate::is_free(assessment.effect, assessment.reach)
    };
    for path in [
        "~/.artoo/config.toml",
        "~/.artoo/new",
        "~/.artoo/made",
        "~/notes/../.artoo/config.toml",
        "~/link/config.toml",
    ] {
        for scope in ["~", "~/.artoo", "~/link"] {
            let write = json!({"path": path, "content": "new"});
            assert!(!free(scope, "write_file", write).await, "{path}");
            let command = json!({"command": format!("echo new > {path}")});
            assert!(!free(scope, "shell", command).await, "{path}");
        }
    }
    let edit = json!({"path": "~/.artoo/config.toml", "old": "old", "new": "new"});
    assert!(!free("~", "edit_file", edit).await);

    // Beside it the scope is what it was, but a command is never let into a scope that holds the folder.
    let note = json!({"path": "~/notes/a.txt", "content": "new"});
    assert!(free("~", "write_file", note).await);
    for (scope, command, expect) in [
        ("~", "echo new > ~/notes/a.txt", false),
        ("~/notes", "echo new > ~/notes/a.txt", true),
        ("~", concat!("echo new > ../", "work", "/b.txt"), true),
        ("..", concat!("echo new > ../", "work", "/b.txt"), true),
        ("..", concat!("echo new > ../", "work", "/a.txt"), false),
    ] {
        let input = json!({"command": command});
        assert_eq!(free(scope, "shell", input).await, expect, "{scope}: {command}");
    }
}

/// A fault in a tool's own code is an answer, and the program goes on.
#[tokio::test]
async fn a_tool_that_panics_is_a_failed_call() {
    let world = World::new();
    let broken = change::Changing {
        places: Arc::new(world.places()),
        undo: None,
        spec: write_file::spec,
        change: |_, _, _| panic!("a fault"),
    };
    let tools = Tools::of(vec![Arc::new(broken)], Mask::default());
    let call = world.invocation("write_file", json!({"path": "a", "content": "x"}));
    assert!(tools.assess(&call).await.invalid.is_some());
    let permit = Permit {
        effect: EffectClass::External,
        confirmed: true,
        seen: 0,
    };
    let out = tools.run(&call, permit).await;
    assert!(out.error.is_some_and(|error| error.contains("the tool broke")));
    assert_eq!(
        out.failure_class,
        Some(artoo_protocol::message::FailureClass::Environmental)
    );
}

//! Looking for text and files, and reading them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use artoo_protocol::tool::EffectClass;
use serde_json::json;

use super::tests::World;
use super::*;

#[tokio::test]
async fn text_is_searched_as_in_gitignore_aware_tools() {
    let world = World::new();
    world.write("cwd/.gitignore", "target\n");
    world.write("cwd/src/a.rs", "fn main() {}\n// TODO: one\n");
    world.write("cwd/src/b.txt", "todo: two\nnothing\nTODO three\n");
    world.write("cwd/target/c.rs", "TODO ignored\n");
    world.write("cwd/.hidden", "TODO hidden\n");
    fs::write(world.root.join("cwd/bin"), b"\0TODO binary\n").unwrap();
    fs::write(
        world.root.join("cwd/wide.txt"),
        "\u{feff}TODO wide\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<_>>(),
    )
    .unwrap();
    let out = world.free("search_text", json!({"pattern": "TODO"})).await;
    let under = world.root.join("cwd").display().to_string();
    assert_eq!(
        out.output,
        format!(
            "src/a.rs:2:// TODO: one\nsrc/b.txt:3:TODO three\nwide.txt:1:TODO wide\n[3 lines in 3 files match `TODO` under {under}]"
        )
    );
    assert_eq!(out.lines, 3);
    for (input, lines) in [
        (json!({"pattern": "todo", "ignore_case": true}), 4),
        (json!({"pattern": "TODO", "files": "*.rs"}), 1),
        (json!({"pattern": "TODO", "files": "src/*"}), 2),
        (json!({"pattern": "main()", "literal": true}), 1),
        (json!({"pattern": "main()"}), 1),
        (json!({"pattern": "TODO", "under": "src/a.rs"}), 1),
        (json!({"pattern": "nowhere to be found"}), 0),
    ] {
        let out = world.free("search_text", input.clone()).await;
        assert_eq!((out.lines, out.error), (lines, None), "{input}");
    }
    let context = world
        .free("search_text", json!({"pattern": "nothing", "context": 1}))
        .await;
    assert!(
        context
            .output
            .starts_with("src/b.txt-1-todo: two\nsrc/b.txt:2:nothing\nsrc/b.txt-3-TODO three\n"),
        "{}",
        context.output
    );
    for bad in [
        json!({"pattern": "("}),
        json!({"pattern": "a\nb"}),
        json!({"pattern": "x", "under": "missing"}),
        json!({"pattern": "x", "files": "["}),
    ] {
        let out = world.free("search_text", bad.clone()).await;
        assert!(out.error.is_some(), "{bad}: {}", out.output);
    }
}

#[tokio::test]
async fn a_binary_file_that_was_named_is_not_said_to_hold_no_match() {
    let world = World::new();
    world.write("cwd/none", "\0TODO\n");
    let out = world
        .free("search_text", json!({"pattern": "TODO", "under": "none"}))
        .await;
    assert!(out.error.unwrap().contains("is a binary file"));
    world.write("cwd/some", &format!("TODO\n{}\0TODO\n", "x\n".repeat(200_000)));
    let out = world
        .free("search_text", json!({"pattern": "TODO", "under": "some"}))
        .await;
    assert!(
        out.error.is_none() && out.output.contains("some:1:TODO"),
        "{}",
        out.output
    );
    assert!(out.output.contains("to its first zero byte only"), "{}", out.output);
    world.write("cwd/text", "nothing\n");
    let out = world
        .free("search_text", json!({"pattern": "TODO", "under": "text"}))
        .await;
    assert!(out.output.contains("[0 lines in 0 files match"), "{}", out.output);
}

#[tokio::test]
async fn a_flood_of_matches_is_counted_and_cut() {
    let world = World::new();
    world.write("cwd/many.txt", &"match this line\n".repeat(100_000));
    world.write("cwd/long.txt", &format!("match {}\n", "x".repeat(1_000_000)));
    let out = world.free("search_text", json!({"pattern": "^match"})).await;
    assert_eq!((out.lines, out.truncated), (100_001, true));
    assert!(out.output.len() < 64 * 1024, "{}", out.output.len());
    assert!(out.output.contains("bytes more]") && out.output.contains("[100001 lines in 2 files"));
}

#[tokio::test]
async fn a_pipe_in_the_tree_does_not_hold_a_search() {
    let world = World::new();
    world.write("cwd/a.txt", "needle\n");
    let pipe = world.root.join("cwd/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert_eq!(world.free("search_text", json!({"pattern": "needle"})).await.lines, 1);
    assert!(
        world
            .free("search_text", json!({"pattern": "x", "under": "pipe"}))
            .await
            .error
            .is_some()
    );
}

#[tokio::test]
async fn encodings_are_read_and_a_huge_file_is_read_in_part() {
    let world = World::new();
    let wide: Vec<u8> = "\u{feff}Grüße\nzwei\n"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    fs::write(world.root.join("cwd/wide.txt"), wide).unwrap();
    let out = world
        .free("read_file", json!({"path": "wide.txt", "start_line": 1, "end_line": 1}))
        .await;
    assert_eq!(out.output, "Grüße\n\n[the file is not UTF-8; it was read as UTF-16BE]");
    fs::write(world.root.join("cwd/marked.txt"), "\u{feff}text").unwrap();
    assert_eq!(
        world.free("read_file", json!({"path": "marked.txt"})).await.output,
        "text"
    );
    // 10 GB that take no room: text at the beginning, a hole behind it.
    let huge = world.root.join("cwd/huge.log");
    fs::write(&huge, "line\n".repeat(20_000)).unwrap();
    fs::File::options()
        .write(true)
        .open(&huge)
        .unwrap()
        .set_len(10_000_000_000)
        .unwrap();
    let out = world
        .free("read_file", json!({"path": "huge.log", "start_line": 3, "end_line": 4}))
        .await;
    assert_eq!(out.output, "line\nline\n");
    let hole = world.root.join("cwd/hole");
    fs::File::create(&hole).unwrap().set_len(10_000_000_000).unwrap();
    let out = world.free("read_file", json!({"path": "hole"})).await;
    assert!(out.error.unwrap().contains("binary file of 10000000000 bytes"));
}

/// An index that answers from a list, as `plocate` would.
fn stand_in(world: &World, answer: &str) -> index::Index {
    let bin = world.root.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{0}/asked'\nprintf '{answer}'\n",
        world.root.display()
    );
    fs::write(bin.join("plocate"), script).unwrap();
    fs::set_permissions(bin.join("plocate"), fs::Permissions::from_mode(0o755)).unwrap();
    index::Index::of_environment(&[("PATH".into(), bin.into())])
}

#[tokio::test]
async fn the_systems_index_is_asked_and_not_believed() {
    let world = World::new();
    world.write("home/video one.mp4", "1");
    world.write("home/.cache/hidden.mp4", "1");
    world.write("home/made.mp4", "1");
    let root = world.root.display().to_string();
    let answer = format!(
        "{root}/home/video one.mp4\\0{root}/home/gone.mp4\\0{root}/home/.cache/hidden.mp4\\0{root}/cwd/x.mp4\\0/etc/passwd\\0"
    );
    let tool = find_files::FindFiles {
        places: Arc::new(Places {
            home: world.root.join("home"),
            cwd: world.root.join("cwd"),
            workspace: world.root.join("work"),
            own: None,
        }),
        index: stand_in(&world, &answer),
    };
    let mut invocation = world.invocation("find_files", json!({"name": "*.mp4"}));
    invocation.created = vec![format!("{root}/home/made.mp4")];
    let permit = Permit {
        effect: EffectClass::Read,
        confirmed: false,
        seen: 0,
    };
    let out = tool.run(&invocation, permit).await;
    assert!(
        out.output.starts_with(&format!(
            "{root}/home/made.mp4\n{root}/home/video one.mp4\n[2 were found"
        )),
        "{}",
        out.output
    );
    assert!(out.output.contains("may lack the newest"));
    let asked = fs::read_to_string(world.root.join("asked")).unwrap();
    assert_eq!(asked, "--ignore-case\n--basename\n--null\n--\n*.mp4\n");
    // An index that knows nothing is no answer: the folders themselves are looked through.
    let tool = find_files::FindFiles {
        index: stand_in(&world, ""),
        ..tool
    };
    let out = tool
        .run(&world.invocation("find_files", json!({"name": "video"})), permit)
        .await;
    assert!(
        out.output.contains("video one.mp4\n[1 were found") && !out.output.contains("index"),
        "{}",
        out.output
    );
}

#[tokio::test]
async fn macos_tools_run_what_they_show() {
    let world = World::new();
    let bin = world.root.join("bin");
    fs::create_dir_all(&bin).unwrap();
    for program in ["mdfind", "osascript", "shortcuts"] {
        fs::write(bin.join(program), "#!/bin/sh\nprintf '%s|' \"${0##*/}\" \"$@\"\n").unwrap();
        fs::set_permissions(bin.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let settings = ToolSettings {
        places: Places {
            home: world.root.join("home"),
            cwd: world.root.join("cwd"),
            workspace: world.root.join("work"),
            own: None,
        },
        environment: vec![("PATH".into(), path.into())],
        command_limit: Duration::from_secs(20),
        web: None,
        undo: None,
        sandbox: crate::Sandbox::unchecked(),
        grants: Vec::new(),
    };
    let tools = Tools::of(
        mac::tools(&Arc::new(settings.places.clone()), &settings),
        Mask::default(),
    );
    let home = world.root.join("home").display().to_string();
    for (tool, input, effect, expect) in [
        (
            "mdfind",
            json!({"query": "kind:pdf o'neil"}),
            EffectClass::Read,
            "mdfind|kind:pdf o'neil|".to_owned(),
        ),
        (
            "mdfind",
            json!({"query": "x", "under": "~"}),
            EffectClass::Read,
            format!("mdfind|-onlyin|{home}|x|"),
        ),
        (
            "applescript",
            json!({"script": "tell app \"Finder\"\ndelete x\nend"}),
            EffectClass::External,
            "osascript|-e|tell app \"Finder\"\ndelete x\nend|".to_owned(),
        ),
        ("shortcuts", json!({}), EffectClass::Read, "shortcuts|list|".to_owned()),
        (
            "shortcuts",
            json!({"run": "Send $(it)"}),
            EffectClass::External,
            "shortcuts|run|Send $(it)|".to_owned(),
        ),
    ] {
        let invocation = world.invocation(tool, input.clone());
        let found = tools.assess(&invocation).await;
        assert_eq!((found.invalid, found.effect), (None, effect), "{tool} {input}");
        let out = tools
            .run(
                &invocation,
                Permit {
                    effect,
                    confirmed: effect > EffectClass::Fetch,
                    seen: 0,
                },
            )
            .await;
        assert_eq!(out.output, expect);
    }
    for (tool, input) in [
        ("mdfind", json!({"query": "-delete"})),
        ("shortcuts", json!({"run": "-x"})),
    ] {
        assert!(
            tools
                .assess(&world.invocation(tool, input.clone()))
                .await
                .invalid
                .is_some(),
            "{tool} {input}"
        );
    }
    let unconfirmed = Permit {
        effect: EffectClass::Read,
        confirmed: false,
        seen: 0,
    };
    let out = tools
        .run(&world.invocation("applescript", json!({"script": "x"})), unconfirmed)
        .await;
    assert!(out.error.is_some() && out.output.is_empty());
}

#[tokio::test]
async fn a_personal_find_by_name_says_what_was_really_run() {
    let world = World::new();
    world.write("home/a/b/c/d/Film.mp4", "1");
    world.write("home/.hidden/film.mp4", "1");
    world.write("home/film.mp4.txt", "1");
    let root = world.root.display().to_string();
    let out = world
        .free(
            "shell",
            json!({"command": format!("find {root}/home -maxdepth 2 -iname 'film.mp4'")}),
        )
        .await;
    assert!(
        out.output.starts_with("[run as find_files; -maxdepth 2 was left out"),
        "{}",
        out.output
    );
    assert!(
        out.output.contains(&format!(
            "{root}/home/.hidden/film.mp4\n{root}/home/a/b/c/d/Film.mp4\n[2 were found"
        )),
        "{}",
        out.output
    );
    assert_eq!((out.programs, out.exit), (vec!["find_files".to_owned()], Some(0)));
    let exact = world
        .free(
            "shell",
            json!({"command": format!("find {root}/home -name 'film.mp4'")}),
        )
        .await;
    assert_eq!(exact.lines, 1, "{}", exact.output);
    let counted = world
        .free(
            "shell",
            json!({"command": format!("find {root}/home -name '*.mp4' | wc -l")}),
        )
        .await;
    assert_eq!(
        (counted.output.trim(), counted.programs),
        ("2", vec!["find".to_owned(), "wc".to_owned()])
    );
}

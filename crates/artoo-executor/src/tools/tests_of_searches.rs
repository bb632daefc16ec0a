//! Looking for text and files, and reading them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use artoo_protocol::tool::EffectClass;
use serde_json::json;

use super::tests::World;
use super::*;
use crate::skipping;

#[tokio::test]
async fn text_is_searched_as_in_gitignore_aware_tools() {
    let world = World::new();
    world.write("cwd/.git/HEAD", "");
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
    assert!(
        out.output.contains("in part only: it holds a zero byte"),
        "{}",
        out.output
    );
    world.write("cwd/text", "nothing\n");
    let out = world
        .free("search_text", json!({"pattern": "TODO", "under": "text"}))
        .await;
    assert!(out.output.contains("[0 lines in 0 files match"), "{}", out.output);
}

/// Settings kept by git in the home folder (`*` in `~/.gitignore`) must not make everything in it invisible.
#[tokio::test]
async fn what_git_would_ignore_counts_only_in_a_repository() {
    let world = World::new();
    world.write("cwd/.gitignore", "*\n");
    world.write("cwd/notes/a.txt", "needle\n");
    assert_eq!(world.free("search_text", json!({"pattern": "needle"})).await.lines, 1);
    assert_eq!(world.free("glob", json!({"pattern": "*.txt"})).await.lines, 1);
    world.write("cwd/.git/HEAD", "");
    assert_eq!(world.free("search_text", json!({"pattern": "needle"})).await.lines, 0);
    assert_eq!(world.free("glob", json!({"pattern": "*.txt"})).await.lines, 0);
}

#[tokio::test]
async fn files_that_were_searched_in_part_are_counted() {
    let world = World::new();
    let lines = "line\n".repeat(100_000);
    world.write("cwd/a.log", &format!("needle\n{lines}\0\nneedle\n"));
    world.write("cwd/b.log", &format!("{lines}\0\nneedle\n"));
    world.write("cwd/c.txt", "needle\n");
    world.write("cwd/picture", "GIF\0needle\n");
    let out = world.free("search_text", json!({"pattern": "needle"})).await;
    assert_eq!(out.lines, 2);
    assert!(
        out.output
            .contains("[2 files were searched in part only: they hold a zero byte in the middle]\n"),
        "{}",
        out.output
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn other_file_systems_are_left_out_and_it_is_said() {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &str| fs::symlink_metadata(path).map(|meta| meta.dev()).ok();
    let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mounted: Vec<String> = folders
        .map(|entry| entry.path().display().to_string())
        .filter(|path| device(path) != device("/dev"))
        .collect();
    if mounted.is_empty() {
        return skipping::skipped("/dev", "nothing is mounted in it");
    }
    let world = World::new();
    for (tool, input) in [
        (
            "find_files",
            json!({"under": "/dev", "name": "no such name", "hidden": true}),
        ),
        ("search_text", json!({"under": "/dev", "pattern": "no such text"})),
    ] {
        let out = world.free(tool, input).await;
        let said = format!("[{} folders are on other file systems", mounted.len());
        assert!(out.output.contains(&said), "{tool} {mounted:?}: {}", out.output);
    }
}

#[tokio::test]
async fn a_key_at_the_end_of_what_is_shown_of_a_line_is_shown_in_no_part() {
    let world = World::new();
    let key = format!("sk-{}", "a1".repeat(40));
    world.write("cwd/a.txt", &format!("needle {} {key} end\n", "x ".repeat(180)));
    let out = world.free("search_text", json!({"pattern": "needle"})).await;
    assert!(
        out.output.contains("bytes more]") && !out.output.contains("a1"),
        "{}",
        out.output
    );
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

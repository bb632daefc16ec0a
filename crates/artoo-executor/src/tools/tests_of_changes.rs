//! Editing, replacing, deleting: what is shown is what is done, and all of it can be taken back.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use artoo_protocol::TaskId;
use artoo_protocol::tool::{Assessment, EffectClass, Permit, ToolOutput};
use serde_json::{Value, json};

use super::tests::World;
use super::*;
use crate::skipping;

use crate::undo::{Outcome, Unwilling, restore};

impl World {
    /// Runs a call as a person who said yes to its assessment.
    async fn confirmed(&self, tool: &str, input: Value) -> ToolOutput {
        let found = self.assess(tool, input.clone()).await;
        assert_eq!(found.invalid, None);
        self.with_yes(tool, input, &found).await
    }

    async fn with_yes(&self, tool: &str, input: Value, found: &Assessment) -> ToolOutput {
        let permit = Permit {
            effect: found.effect,
            confirmed: true,
            seen: found.fingerprint,
        };
        self.tools.run(&self.invocation(tool, input), permit).await
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    fn undo(&self) -> Vec<(String, Outcome)> {
        let done = restore(&self.root.join("undo"), &TaskId::new("t_00000000"), Unwilling::Leave).unwrap();
        let relative = |path: &Path| path.strip_prefix(&self.root).unwrap().display().to_string();
        done.into_iter().map(|one| (relative(&one.path), one.outcome)).collect()
    }
}

#[tokio::test]
async fn a_passage_is_replaced_only_where_it_stands_once() {
    let world = World::new();
    world.write("cwd/a.txt", "one\ntwo\nthree\ntwo and a half\naaa\n");
    for (old, new, why) in [
        ("two", "2", "2 times"),
        ("aa", "b", "2 times"),
        ("four", "4", "does not stand in"),
        ("\n  three", "3", "does not stand in"),
        ("", "x", "is empty"),
        ("one", "one", "the same"),
    ] {
        let found = world
            .assess("edit_file", json!({"path": "a.txt", "old": old, "new": new}))
            .await;
        let error = found.invalid.unwrap();
        assert!(error.contains(why), "{old:?}: {error}");
    }
    for path in ["missing.txt", "."] {
        let found = world
            .assess("edit_file", json!({"path": path, "old": "a", "new": "b"}))
            .await;
        assert!(found.invalid.is_some(), "{path}");
    }
    let input = json!({"path": "a.txt", "old": "two\nthree", "new": "2\n3"});
    let found = world.assess("edit_file", input.clone()).await;
    assert_eq!(found.effect, EffectClass::Modify);
    assert!(!crate::gate::is_free(found.effect, found.reach));
    assert!(
        found.action.contains("-two\n-three\n+2\n+3\n two and a half"),
        "{}",
        found.action
    );
    let out = world.with_yes("edit_file", input, &found).await;
    assert_eq!(out.error, None);
    assert_eq!(world.read("cwd/a.txt"), "one\n2\n3\ntwo and a half\naaa\n");
    // What the task made itself is edited without a question.
    let mut world = world;
    let made = world
        .free("write_file", json!({"path": "own.txt", "content": "x"}))
        .await;
    world.created = made.touched;
    assert_eq!(
        world
            .free("edit_file", json!({"path": "own.txt", "old": "x", "new": "y"}))
            .await
            .error,
        None
    );
    assert_eq!(world.read("work/own.txt"), "y");
}

#[tokio::test]
async fn a_file_that_changed_after_the_question_is_asked_about_again() {
    let world = World::new();
    world.write("cwd/a.txt", "old text\n");
    for (tool, input) in [
        ("edit_file", json!({"path": "a.txt", "old": "old", "new": "new"})),
        (
            "write_file",
            json!({"path": world.root.join("cwd/a.txt"), "content": "new\n"}),
        ),
        ("delete_files", json!({"paths": ["a.txt"]})),
    ] {
        let found = world.assess(tool, input.clone()).await;
        world.write("cwd/a.txt", &format!("somebody's old text, {tool}\n"));
        let out = world.with_yes(tool, input.clone(), &found).await;
        assert!(out.stale && out.error.is_some(), "{tool}: {out:?}");
        assert!(world.read("cwd/a.txt").starts_with("somebody's"), "{tool}");
        let again = world.assess(tool, input).await;
        assert_ne!(again.fingerprint, found.fingerprint, "{tool}");
    }
}

#[tokio::test]
async fn a_yes_is_for_the_whole_change_and_not_for_what_was_shown_of_it() {
    let world = World::new();
    let path = world.root.join("cwd/new.txt");
    let long = |middle: char| format!("{}{}{}", "a".repeat(30_000), middle, "z".repeat(30_000));
    let one = world
        .assess("write_file", json!({"path": path, "content": long('1')}))
        .await;
    let two = world
        .assess("write_file", json!({"path": path, "content": long('2')}))
        .await;
    assert_eq!(one.action, two.action, "both are shown alike");
    assert_ne!(one.fingerprint, two.fingerprint);
    let out = world
        .with_yes("write_file", json!({"path": path, "content": long('2')}), &one)
        .await;
    assert!(out.stale && !path.exists());
}

#[tokio::test]
async fn deletions_are_listed_and_need_a_yes() {
    let world = World::new();
    for n in 0..100 {
        world.write(&format!("cwd/junk/{n:03}.txt"), "12345");
    }
    world.write("cwd/keep.txt", "x");
    symlink(world.root.join("cwd/keep.txt"), world.root.join("cwd/link")).unwrap();
    let input = json!({"paths": ["junk", "link"]});
    let found = world.assess("delete_files", input.clone()).await;
    assert_eq!(found.effect, EffectClass::Destroy);
    assert!(
        found
            .action
            .starts_with("delete 2 paths, 102 files and folders in all, "),
        "{}",
        found.action
    );
    assert!(
        found.action.contains("junk/ with 100 things in it") && found.action.contains("junk/000.txt"),
        "{}",
        found.action
    );
    assert!(found.action.contains("[and 42 more]"), "{}", found.action);
    let invocation = world.invocation("delete_files", input.clone());
    let unasked = Permit {
        effect: EffectClass::Destroy,
        confirmed: false,
        seen: 0,
    };
    assert!(world.tools.run(&invocation, unasked).await.error.is_some());
    assert!(world.root.join("cwd/junk/000.txt").exists());
    let out = world.with_yes("delete_files", input, &found).await;
    assert_eq!((out.error, out.lines), (None, 2));
    assert!(!world.root.join("cwd/junk").exists() && world.root.join("cwd/link").symlink_metadata().is_err());
    assert_eq!(
        world.read("cwd/keep.txt"),
        "x",
        "a link is deleted, not what it leads to"
    );
    for bad in [
        json!([]),
        json!(["missing"]),
        json!(["~"]),
        json!(["."]),
        json!(["/"]),
        json!([""]),
        json!(["keep.txt", "keep.txt"]),
    ] {
        assert!(
            world
                .assess("delete_files", json!({"paths": bad}))
                .await
                .invalid
                .is_some(),
            "{bad}"
        );
    }
    assert_eq!(
        world.undo(),
        [
            ("cwd/link".into(), Outcome::Restored),
            ("cwd/junk".into(), Outcome::Restored)
        ]
    );
    assert_eq!(fs::read_dir(world.root.join("cwd/junk")).unwrap().count(), 100);
    assert_eq!(
        fs::read_link(world.root.join("cwd/link")).unwrap(),
        world.root.join("cwd/keep.txt")
    );
}

#[tokio::test]
async fn undo_puts_back_bytes_modes_and_times() {
    let world = World::new();
    world.write("cwd/a.sh", "#!/bin/sh\necho \u{e9}\n");
    fs::write(world.root.join("cwd/b.bin"), [0, 159, 146, 150]).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for name in ["a.sh", "b.bin"] {
        let path = world.root.join("cwd").join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
    }
    let look = |name: &str| {
        let path = world.root.join("cwd").join(name);
        let meta = fs::metadata(&path).unwrap();
        (fs::read(&path).unwrap(), meta.mode(), meta.mtime(), meta.mtime_nsec())
    };
    let before = [look("a.sh"), look("b.bin")];
    let full = |name: &str| world.root.join("cwd").join(name).display().to_string();
    world
        .confirmed("edit_file", json!({"path": "a.sh", "old": "echo", "new": "printf"}))
        .await;
    world
        .confirmed("write_file", json!({"path": full("a.sh"), "content": "again"}))
        .await;
    world
        .confirmed("write_file", json!({"path": full("b.bin"), "content": "text"}))
        .await;
    world.confirmed("delete_files", json!({"paths": ["b.bin"]})).await;
    world
        .confirmed("write_file", json!({"path": full("new.txt"), "content": "made"}))
        .await;
    assert_eq!(
        fs::metadata(full("a.sh")).unwrap().mode() & 0o777,
        0o750,
        "a change keeps the mode"
    );
    let done = world.undo();
    assert_eq!(
        done,
        [
            ("cwd/new.txt".into(), Outcome::Made),
            ("cwd/b.bin".into(), Outcome::Restored),
            ("cwd/a.sh".into(), Outcome::Restored),
        ]
    );
    assert_eq!([look("a.sh"), look("b.bin")], before);
    assert_eq!(
        fs::read_dir(world.root.join("cwd")).unwrap().count(),
        3,
        "nothing else is left"
    );
    let again: Vec<_> = world.undo().into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(again, [Outcome::Made, Outcome::AsBefore, Outcome::AsBefore]);
}

#[tokio::test]
async fn undo_leaves_alone_what_somebody_else_changed() {
    let world = World::new();
    world.write("cwd/a.txt", "mine");
    let path = world.root.join("cwd/a.txt");
    world
        .confirmed("write_file", json!({"path": path, "content": "artoo's"}))
        .await;
    world.write("cwd/a.txt", "mine again");
    assert_eq!(world.undo(), [("cwd/a.txt".into(), Outcome::ChangedSince)]);
    assert_eq!(world.read("cwd/a.txt"), "mine again");
    let store = world.root.join("undo");
    let task = TaskId::new("t_00000000");
    let forced = restore(&store, &task, Unwilling::Replace).unwrap();
    let laid_by = store.join("t_00000000/000001.replaced-1");
    assert_eq!(forced[0].outcome, Outcome::Replaced(laid_by.clone()));
    assert_eq!(world.read("cwd/a.txt"), "mine");
    let kept = fs::read_to_string(laid_by).unwrap();
    assert_eq!(kept, "mine again", "what was replaced by force is kept too");
}

#[tokio::test]
async fn a_folder_that_turns_into_a_link_between_look_and_write_is_not_followed() {
    let world = World::new();
    world.write("cwd/dir/a.txt", "inside");
    world.write("home/secret/a.txt", "inside");
    let path = world.root.join("cwd/dir/a.txt").display().to_string();
    let input = json!({"path": path, "content": "overwritten"});
    let found = world.assess("write_file", input.clone()).await;
    fs::rename(world.root.join("cwd/dir"), world.root.join("cwd/moved")).unwrap();
    symlink(world.root.join("home/secret"), world.root.join("cwd/dir")).unwrap();
    let out = world.with_yes("write_file", input, &found).await;
    assert!(out.stale, "{out:?}");
    assert_eq!(world.read("home/secret/a.txt"), "inside");
    assert_eq!(world.read("cwd/moved/a.txt"), "inside");
}

/// A yes to a command is a yes to the files that it wrote when the question was asked.
#[tokio::test]
async fn a_yes_to_a_command_does_not_follow_a_link_that_moved_since() {
    for way in ["the link", "a folder on the way"] {
        let world = World::new();
        world.write("cwd/meant/a.txt", "old");
        world.write("home/secret/a.txt", "precious");
        symlink(world.root.join("cwd/meant"), world.root.join("cwd/dir")).unwrap();
        symlink("meant/a.txt", world.root.join("cwd/link")).unwrap();
        let (command, link, target) = match way {
            "the link" => ("echo new > link", "cwd/link", "home/secret/a.txt"),
            _ => ("echo new > dir/a.txt", "cwd/dir", "home/secret"),
        };
        let input = json!({ "command": command });
        let found = world.assess("shell", input.clone()).await;
        let done = world.with_yes("shell", input.clone(), &found).await;
        assert!(done.error.is_none() && !done.stale, "{way}: {done:?}");
        assert_eq!(world.read("cwd/meant/a.txt"), "new\n", "{way}");
        fs::remove_file(world.root.join(link)).unwrap();
        symlink(world.root.join(target), world.root.join(link)).unwrap();
        let out = world.with_yes("shell", input, &found).await;
        assert!(out.stale && out.exit.is_none(), "{way}: {out:?}");
        assert_eq!(world.read("home/secret/a.txt"), "precious", "{way}");
    }
}

/// Who may write to a folder could put a new file in the place of one that he may not write to.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_belongs_to_somebody_else_is_not_replaced() {
    use rustix::process::{Gid, Uid};
    if !rustix::process::geteuid().is_root() {
        return skipping::skipped("root", "only a superuser can give files away");
    }
    let world = World::new();
    world.write("cwd/theirs.txt", "theirs");
    for (path, mode) in [("", 0o755), ("cwd", 0o777), ("undo", 0o777)] {
        fs::create_dir_all(world.root.join(path)).unwrap();
        fs::set_permissions(world.root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    // Threads have rights of their own, and those that they start inherit them.
    let world = std::thread::spawn(move || {
        let (nobody, nogroup) = (Uid::from_raw(65_534), Gid::from_raw(65_534));
        rustix::thread::set_thread_res_gid(nogroup, nogroup, nogroup).unwrap();
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let path = world.root.join("cwd/theirs.txt");
            let out = world
                .confirmed("write_file", json!({"path": path, "content": "mine"}))
                .await;
            assert!(out.error.is_some_and(|error| error.contains("denied")));
            let path = world.root.join("cwd/own.txt");
            let out = world
                .confirmed("write_file", json!({"path": path, "content": "mine"}))
                .await;
            assert_eq!(out.error, None);
        });
        world
    });
    assert_eq!(world.join().unwrap().read("cwd/theirs.txt"), "theirs");
}

/// Work that nobody waits for any more leaves the file and its folder as they were.
#[test]
fn a_write_that_nobody_waits_for_changes_nothing() {
    let world = World::new();
    world.write("cwd/a.txt", "old");
    let path = world.root.join("cwd/a.txt");
    let call = world.invocation("write_file", json!({"path": path, "content": "new"}));
    let gone = Abandoned::already();
    let big = fs::File::options().write(true).open(&path).unwrap();
    big.set_len(2 * 1024 * 1024).unwrap();
    let looked = write_file::change(&world.places(), &call, &gone);
    assert!(looked.is_err_and(|why| why.contains("cancelled")));
    assert_eq!(fs::read_dir(world.root.join("cwd")).unwrap().count(), 1);
}

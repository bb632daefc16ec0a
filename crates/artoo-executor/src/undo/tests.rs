//! Undo after a crash at every point, and undo that was cut off itself.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::skipping;

struct Stage {
    _dir: tempfile::TempDir,
    root: PathBuf,
    task: TaskId,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("a.txt"), "old").unwrap();
        Self {
            _dir: dir,
            root,
            task: TaskId::new("t_00000000"),
        }
    }

    fn store(&self) -> UndoStore {
        UndoStore::new(self.root.join("undo"))
    }

    fn file(&self) -> PathBuf {
        self.root.join("a.txt")
    }

    fn keep(&self, new: &str) {
        let mut old = File::open(self.file()).unwrap();
        let before = State::at(&self.file(), &Abandoned::default()).unwrap();
        let after = State::File {
            sha256: crate::anchored::digest(new.as_bytes()),
        };
        self.store()
            .before_writing(
                &self.task,
                &Entry::new(&self.file(), before, after),
                Some(&mut old),
                &Abandoned::default(),
            )
            .unwrap();
    }

    fn delete(&self, path: &Path) {
        let before = State::unread(path).unwrap();
        self.store()
            .delete(&self.task, path, before, &Abandoned::default())
            .unwrap();
    }

    fn overwrite(&self, new: &str) {
        self.keep(new);
        fs::write(self.file(), new).unwrap();
    }

    fn undo(&self) -> Vec<Outcome> {
        let done = restore(&self.root.join("undo"), &self.task, Unwilling::Leave).unwrap();
        done.into_iter().map(|one| one.outcome).collect()
    }
}

#[test]
fn a_crash_between_keeping_and_writing_leaves_nothing_to_undo() {
    let stage = Stage::new();
    stage.keep("new");
    assert_eq!(stage.undo(), [Outcome::AsBefore]);
    assert_eq!(fs::read_to_string(stage.file()).unwrap(), "old");
    // The note is written last: what was kept without one is never used, and its number never given again.
    let note = stage.root.join("undo/t_00000000/000001.json");
    fs::remove_file(&note).unwrap();
    stage.overwrite("new");
    assert!(!note.exists() && stage.root.join("undo/t_00000000/000002.json").exists());
    assert_eq!(stage.undo(), [Outcome::Restored]);
    assert_eq!(fs::read_to_string(stage.file()).unwrap(), "old");
}

#[test]
fn a_chain_of_changes_that_was_cut_off_anywhere_goes_back_to_the_beginning() {
    for written in 0..=3 {
        let stage = Stage::new();
        for (n, text) in ["one", "two", "three"].into_iter().enumerate() {
            stage.keep(text);
            if n == written {
                break;
            }
            fs::write(stage.file(), text).unwrap();
        }
        let expect = if written == 0 {
            Outcome::AsBefore
        } else {
            Outcome::Restored
        };
        assert_eq!(stage.undo(), [expect], "{written}");
        assert_eq!(fs::read_to_string(stage.file()).unwrap(), "old", "{written}");
        assert_eq!(stage.undo(), [Outcome::AsBefore], "undo may be run again");
    }
}

#[test]
fn a_deletion_that_was_noted_but_not_made_is_left_alone() {
    let stage = Stage::new();
    let folder = stage.root.join("dir");
    fs::create_dir_all(folder.join("deep")).unwrap();
    fs::write(folder.join("deep/b"), "b").unwrap();
    stage.delete(&folder);
    assert!(!folder.exists());
    // As if the process had died before the move: the note is there, the thing is in its place.
    fs::rename(stage.root.join("undo/t_00000000/000001.kept"), &folder).unwrap();
    assert_eq!(stage.undo(), [Outcome::AsBefore]);
    assert_eq!(fs::read_to_string(folder.join("deep/b")).unwrap(), "b");
}

#[test]
fn a_deletion_across_file_systems_comes_back_whole() {
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else {
        return skipping::skipped("/dev/shm", "there is none here");
    };
    let stage = Stage::new();
    if fs::metadata(&stage.root).unwrap().dev() == fs::metadata(elsewhere.path()).unwrap().dev() {
        return skipping::skipped("/dev/shm", "it is the same file system");
    }
    let folder = elsewhere.path().canonicalize().unwrap().join("dir");
    fs::create_dir_all(folder.join("deep")).unwrap();
    fs::write(folder.join("deep/b"), "b").unwrap();
    std::os::unix::fs::symlink("deep/b", folder.join("link")).unwrap();
    let when = |path: &Path| {
        let meta = fs::metadata(path).unwrap();
        (meta.mode(), meta.mtime(), meta.mtime_nsec())
    };
    let before = (when(&folder.join("deep/b")), when(&folder.join("deep")));
    stage.delete(&folder);
    assert!(!folder.exists());
    assert_eq!(
        fs::read_dir(elsewhere.path()).unwrap().count(),
        0,
        "nothing is left aside"
    );
    assert_eq!(stage.undo(), [Outcome::Restored]);
    assert_eq!((when(&folder.join("deep/b")), when(&folder.join("deep"))), before);
    assert_eq!(fs::read_link(folder.join("link")).unwrap(), Path::new("deep/b"));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}

#[test]
fn what_was_kept_and_got_damaged_is_not_put_back() {
    let stage = Stage::new();
    stage.overwrite("new");
    fs::write(stage.root.join("undo/t_00000000/000001.kept"), "rotten").unwrap();
    assert!(
        matches!(&stage.undo()[..], [Outcome::Failed(why)] if why.contains("damaged") && why.contains("000001.kept"))
    );
    assert_eq!(fs::read_to_string(stage.file()).unwrap(), "new");
    fs::write(stage.root.join("undo/t_00000000/000001.json"), "{").unwrap();
    assert!(restore(&stage.root.join("undo"), &stage.task, Unwilling::Leave).is_err());
}

#[test]
fn a_name_that_is_no_text_survives() {
    use std::os::unix::ffi::OsStrExt;
    let stage = Stage::new();
    let path = stage.root.join(OsStr::from_bytes(b"caf\xe9 \n"));
    fs::write(&path, "x").unwrap();
    stage.delete(&path);
    assert!(!path.exists());
    assert_eq!(stage.undo(), [Outcome::Restored]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "x");
    assert!(drop_kept(&stage.root.join("undo"), &stage.task).unwrap());
    assert_eq!(stage.undo(), []);
}

/// What the task and somebody else write in turn.
fn world_of(stage: &Stage, steps: &[(&str, &str)]) {
    for (who, text) in steps {
        match *who {
            "artoo" => stage.overwrite(text),
            "artoo deletes" => stage.delete(&stage.file()),
            "artoo makes" => {
                let after = State::File {
                    sha256: crate::anchored::digest(text.as_bytes()),
                };
                let entry = Entry::new(&stage.file(), State::Absent, after);
                let store = stage.store();
                store
                    .before_writing(&stage.task, &entry, None, &Abandoned::default())
                    .unwrap();
                fs::write(stage.file(), text).unwrap();
            }
            "somebody" => fs::write(stage.file(), text).unwrap(),
            "somebody deletes" => fs::remove_file(stage.file()).unwrap(),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn what_somebody_made_between_two_changes_is_not_lost() {
    let kept = |stage: &Stage, number: u64| stage.root.join("undo/t_00000000").join(kept_name(number));
    for (steps, outcome, text, forced) in [
        (
            vec![("artoo", "one"), ("somebody", "mine"), ("artoo", "two")],
            Outcome::Between,
            "mine",
            "old",
        ),
        (
            vec![
                ("artoo deletes", ""),
                ("somebody", "mine"),
                ("artoo", "two"),
                ("artoo", "three"),
            ],
            Outcome::Between,
            "mine",
            "old",
        ),
        (
            vec![("artoo", "one"), ("somebody", "mine"), ("artoo", "old")],
            Outcome::Between,
            "mine",
            "old",
        ),
        (
            vec![("artoo", "one"), ("somebody deletes", ""), ("artoo makes", "two")],
            Outcome::ChangedSince,
            "two",
            "old",
        ),
        // Somebody put back just what was there: no gap.
        (
            vec![("artoo", "one"), ("somebody", "old"), ("artoo", "two")],
            Outcome::Restored,
            "old",
            "old",
        ),
        (
            vec![("artoo deletes", ""), ("artoo makes", "two"), ("artoo", "three")],
            Outcome::Restored,
            "old",
            "old",
        ),
    ] {
        let stage = Stage::new();
        world_of(&stage, &steps);
        assert_eq!(stage.undo(), std::slice::from_ref(&outcome), "{steps:?}");
        assert_eq!(fs::read_to_string(stage.file()).unwrap(), text, "{steps:?}");
        let again = if outcome == Outcome::Restored {
            Outcome::AsBefore
        } else {
            Outcome::ChangedSince
        };
        assert_eq!(stage.undo(), [again], "{steps:?}");
        assert_eq!(fs::read_to_string(stage.file()).unwrap(), text, "{steps:?}");

        let stage = Stage::new();
        world_of(&stage, &steps);
        let done = restore(&stage.root.join("undo"), &stage.task, Unwilling::Replace).unwrap();
        assert_eq!(fs::read_to_string(stage.file()).unwrap(), forced, "{steps:?}");
        assert_eq!(done[0].kept, Some(kept(&stage, 1)), "{steps:?}");
        if let Outcome::Replaced(between) = &done[0].outcome {
            assert_eq!(fs::read_to_string(between).unwrap(), "mine", "{steps:?}");
        } else {
            assert_ne!(outcome, Outcome::Between, "{steps:?}");
        }
    }
    // What the task had made, and somebody else made over.
    let stage = Stage::new();
    fs::remove_file(stage.file()).unwrap();
    world_of(
        &stage,
        &[("artoo makes", "one"), ("somebody", "mine"), ("artoo", "two")],
    );
    for unwilling in [Unwilling::Leave, Unwilling::Replace] {
        let done = restore(&stage.root.join("undo"), &stage.task, unwilling).unwrap();
        assert!(matches!(done[0].outcome, Outcome::Between | Outcome::Made), "{done:?}");
        assert_eq!(fs::read_to_string(stage.file()).unwrap(), "mine");
    }
}

#[test]
fn a_deleted_file_that_was_written_to_since_comes_back_with_that() {
    let stage = Stage::new();
    let other = stage.root.join("other name");
    fs::hard_link(stage.file(), &other).unwrap();
    stage.delete(&stage.file());
    fs::write(&other, "written through the other name").unwrap();
    assert_eq!(stage.undo(), [Outcome::WrittenSince]);
    assert_eq!(
        fs::read_to_string(stage.file()).unwrap(),
        "written through the other name"
    );
    assert_eq!(stage.undo(), [Outcome::AsBefore]);
    // Entries of before, which hold a digest, are taken in the same way.
    let stage = Stage::new();
    let before = State::at(&stage.file(), &Abandoned::default()).unwrap();
    let mut open = File::options().append(true).open(stage.file()).unwrap();
    let store = stage.store();
    store
        .delete(&stage.task, &stage.file(), before, &Abandoned::default())
        .unwrap();
    open.write_all(b" and new").unwrap();
    assert_eq!(stage.undo(), [Outcome::WrittenSince]);
    assert_eq!(fs::read_to_string(stage.file()).unwrap(), "old and new");
}

#[test]
fn a_deletion_by_copy_lets_nothing_get_lost_at_any_point() {
    let stage = Stage::new();
    let folder = stage.root.join("dir");
    let aside = stage.root.join(".artoo-deleted-x");
    let kept = stage.root.join("kept");
    let fresh = || {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("deep")).unwrap();
        fs::write(folder.join("deep/b"), "b").unwrap();
    };
    // Something is saved under the old name while it is copied.
    fresh();
    move_by_copy(&folder, &aside, &kept, |from, to| {
        fs::create_dir(&folder)?;
        fs::write(folder.join("saved"), "new")?;
        copy_tree(from, to, &Abandoned::default())
    })
    .unwrap();
    assert_eq!(fs::read_to_string(folder.join("saved")).unwrap(), "new");
    assert_eq!(fs::read_to_string(kept.join("deep/b")).unwrap(), "b");
    assert!(!aside.exists());
    fs::remove_dir_all(&kept).unwrap();
    // It cannot be copied, or nobody waits any more: it stays where it was.
    fresh();
    let stopped = move_by_copy(&folder, &aside, &kept, |from, to| {
        copy_tree(from, to, &Abandoned::already())
    });
    assert!(stopped.is_err() && folder.join("deep/b").exists() && !aside.exists() && !kept.exists());
    // Its name was taken meanwhile: it is said where it lies.
    let stopped = move_by_copy(&folder, &aside, &kept, |_, _| {
        fs::create_dir(&folder)?;
        Err(io::Error::other("the disk is full"))
    });
    assert!(stopped.unwrap_err().to_string().contains(".artoo-deleted-x"));
    assert!(aside.join("deep/b").exists());
}

#[test]
fn a_deletion_that_was_cut_off_while_it_was_copied_comes_back() {
    for written in [false, true] {
        let stage = Stage::new();
        let folder = stage.root.join("dir");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("b"), "b").unwrap();
        stage.delete(&folder);
        // As if the process had died while it copied to another file system.
        let aside = stage.root.join(".artoo-deleted-t_00000000-1");
        let store = stage.root.join("undo/t_00000000");
        fs::rename(store.join("000001.kept"), &aside).unwrap();
        fs::create_dir(store.join("000001.part")).unwrap();
        if written {
            fs::create_dir(&folder).unwrap();
            assert_eq!(stage.undo(), [Outcome::ChangedSince]);
            fs::remove_dir(&folder).unwrap();
        }
        assert_eq!(stage.undo(), [Outcome::Restored]);
        assert_eq!(fs::read_to_string(folder.join("b")).unwrap(), "b");
        assert!(!aside.exists());
        assert_eq!(stage.undo(), [Outcome::AsBefore]);
    }
}

#[test]
fn what_a_dead_process_was_writing_is_swept() {
    let stage = Stage::new();
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let left = stage.root.join(format!(".artoo-{}-0.tmp", dead.id()));
    let running = stage.root.join(format!(".artoo-{}-9999999.tmp", std::process::id()));
    let noted = |temporary: &Path| {
        fs::write(temporary, "half").unwrap();
        let entry = Entry::new(&stage.file(), State::Absent, State::Folder).by_way_of(temporary);
        let store = stage.store();
        store
            .before_writing(&stage.task, &entry, None, &Abandoned::default())
            .unwrap();
    };
    noted(&left);
    noted(&running);
    assert!(!left.exists(), "the next change of the task sweeps");
    fs::write(&left, "half").unwrap();
    stage.undo();
    assert!(!left.exists(), "and so does undo");
    assert!(running.exists(), "somebody still writes that");
    // The process before this one had the same number: its file is in nobody's way.
    let folder = Folder::open(&stage.root).unwrap();
    let name = folder.unused_name().unwrap();
    let next: u64 = name
        .to_str()
        .unwrap()
        .rsplit(['-', '.'])
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    for number in next..next + 200 {
        fs::write(
            stage.root.join(format!(".artoo-{}-{number}.tmp", std::process::id())),
            "",
        )
        .unwrap();
    }
    let staged = folder.stage(|file| file.write_all(b"new")).unwrap();
    staged.place(OsStr::new("a.txt"), Existing::Replace).unwrap();
    assert_eq!(fs::read_to_string(stage.file()).unwrap(), "new");
}

#[test]
fn a_mode_that_somebody_gave_meanwhile_stays_and_times_come_back() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let file = File::options().write(true).open(stage.file()).unwrap();
    file.set_modified(long_ago).unwrap();
    // Written over and back again: the same bytes, but not the same time.
    stage.overwrite("new");
    stage.overwrite("old");
    fs::set_permissions(stage.file(), fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(stage.undo(), [Outcome::Restored]);
    let meta = fs::metadata(stage.file()).unwrap();
    assert_eq!((meta.modified().unwrap(), meta.mode() & 0o777), (long_ago, 0o750));
    assert_eq!(stage.undo(), [Outcome::AsBefore]);
}

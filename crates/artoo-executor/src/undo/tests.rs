//! Undo after a crash at every point, and undo that was cut off itself.

#[path = "../../../artoo-testkit/src/skipping.rs"]
mod skipping;

use std::fs;
use std::path::PathBuf;

use super::*;

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
        let before = State::at(&self.file()).unwrap();
        let after = State::File {
            sha256: crate::anchored::digest(new.as_bytes()),
        };
        self.store()
            .before_writing(&self.task, &self.file(), Some(&mut old), before, after)
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
    stage.store().delete(&stage.task, &folder, State::Folder).unwrap();
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
    stage.store().delete(&stage.task, &folder, State::Folder).unwrap();
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
    assert!(matches!(&stage.undo()[..], [Outcome::Failed(why)] if why.contains("damaged")));
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
    let before = State::at(&path).unwrap();
    stage.store().delete(&stage.task, &path, before).unwrap();
    assert!(!path.exists());
    assert_eq!(stage.undo(), [Outcome::Restored]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "x");
    assert!(drop_kept(&stage.root.join("undo"), &stage.task).unwrap());
    assert_eq!(stage.undo(), []);
}

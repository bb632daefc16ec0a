//! Where paths lead, and where an effect falls (design §8, §9).
//!
//! Owns the folders of an installation and the way from a path as written to the path that is really meant: `~`, relative
//! paths, `..`, and symbolic links. Looks at the file system, never changes it. Must not know tools.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use artoo_protocol::tool::{EffectClass, Invocation, Reach};

use crate::gate::is_free;

/// Symbolic links followed before a path is given up.
const MAX_LINKS: usize = 40;

/// The folders that paths are resolved against; all absolute.
#[derive(Clone, Debug)]
pub struct Places {
    /// What `~` means.
    pub home: PathBuf,
    /// Where commands start and relative paths of reads lead.
    pub cwd: PathBuf,
    /// Where new files go that nobody named a place for.
    pub workspace: PathBuf,
    /// artoo's own data folder: its settings and records. Nothing is free in it, whatever the scope says.
    pub own: Option<PathBuf>,
}

impl Places {
    /// The path as meant by a reader: `~` is the home folder, a relative path is in the working directory, unless only
    /// the workspace has it.
    pub fn reading(&self, path: &str) -> PathBuf {
        let meant = self.absolute(path, &self.cwd);
        if meant.symlink_metadata().is_err() && is_relative(path) {
            let made = self.absolute(path, &self.workspace);
            if made.symlink_metadata().is_ok() {
                return made;
            }
        }
        meant
    }

    /// The path as meant by `write_file`: a bare or `./` name is in the workspace.
    pub fn writing(&self, path: &str) -> PathBuf {
        let name = path.trim_start_matches("./");
        if is_relative(path) && !name.contains('/') {
            return self.absolute(name, &self.workspace);
        }
        self.absolute(path, &self.cwd)
    }

    /// The path as meant by a command.
    pub fn commanded(&self, path: &str) -> PathBuf {
        self.absolute(path, &self.cwd)
    }

    fn absolute(&self, path: &str, base: &Path) -> PathBuf {
        let joined = match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            _ => base.join(path),
        };
        lexical(&joined)
    }

    /// Where creating or changing this path falls, and which of both it is. `real` comes from `landing`.
    pub fn effect_of_writing(&self, real: &Path, invocation: &Invocation) -> (EffectClass, Reach) {
        let effect = if real.symlink_metadata().is_ok() {
            EffectClass::Modify
        } else {
            EffectClass::Create
        };
        let scoped = invocation
            .scope
            .iter()
            .any(|scope| within(real, &self.absolute(scope, &self.cwd)));
        let reach = if self.is_own(real) {
            Reach::Records
        } else if invocation.created.iter().any(|made| Path::new(made) == real) {
            Reach::OwnFiles
        } else if scoped {
            Reach::Scope
        } else if within(real, &self.workspace) {
            Reach::Workspace
        } else {
            Reach::Elsewhere
        };
        (effect, reach)
    }

    /// Whether a path is artoo's data folder or in it. `real` comes from `landing`.
    fn is_own(&self, real: &Path) -> bool {
        self.own_folder(|own| is_in(real, own))
    }

    /// Whether leave to write everywhere under a path is leave to write something in artoo's data folder.
    pub fn opens_own(&self, root: &Path) -> bool {
        self.own_folder(|own| is_in(root, own) || is_in(own, root))
    }

    /// What holds of the data folder, its links followed; one that cannot be found is taken to be concerned.
    fn own_folder(&self, holds: impl FnOnce(&Path) -> bool) -> bool {
        self.own
            .as_ref()
            .is_some_and(|own| landing(own).map_or(true, |own| holds(&own)))
    }
}

/// Whether a path is a folder's or inside it, by its text or because one of its folders is the very same: file systems
/// may know one folder by several names.
fn is_in(path: &Path, folder: &Path) -> bool {
    let same = |of: &Path| of.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    let sought = same(folder);
    path.starts_with(folder) || (sought.is_some() && path.ancestors().any(|part| same(part) == sought))
}

/// The worst of several effects: one that is not free before any that is, then by class.
pub fn worst(effects: impl IntoIterator<Item = (EffectClass, Reach)>) -> Option<(EffectClass, Reach)> {
    effects
        .into_iter()
        .max_by_key(|(effect, reach)| (!is_free(*effect, *reach), *effect))
}

/// The path that a write to `path` really reaches, with every symbolic link followed, also where the end does not exist.
///
/// # Errors
/// When links go round in circles or a folder on the way cannot be looked at.
pub fn landing(path: &Path) -> io::Result<PathBuf> {
    let mut pending: Vec<PathBuf> = parts(path);
    let mut real = PathBuf::new();
    let mut links = 0;
    while let Some(part) = pending.pop() {
        if part == Path::new("..") {
            real.pop();
            continue;
        }
        real.push(&part);
        match fs::symlink_metadata(&real) {
            Ok(meta) if meta.file_type().is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::other("too many symbolic links"));
                }
                let target = fs::read_link(&real)?;
                real.pop();
                pending.extend(parts(&target));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(real)
}

/// The components of a path, last first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let mut parts: Vec<PathBuf> = path
        .components()
        .filter(|part| !matches!(part, Component::CurDir))
        .map(|part| PathBuf::from(part.as_os_str()))
        .collect();
    parts.reverse();
    parts
}

/// Whether a path is a folder's or inside it, links of the folder followed.
fn within(path: &Path, folder: &Path) -> bool {
    landing(folder).is_ok_and(|folder| path.starts_with(folder))
}

fn is_relative(path: &str) -> bool {
    !path.starts_with('/') && !path.starts_with('~')
}

/// The path without `.` and `..`, by its text alone.
fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_protocol::{SubTaskId, TaskId};
    use serde_json::Value;

    fn places(root: &Path) -> Places {
        for folder in ["home", "cwd", "work"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        Places {
            home: root.join("home"),
            cwd: root.join("cwd"),
            workspace: root.join("work"),
            own: None,
        }
    }

    fn invocation() -> Invocation {
        Invocation {
            tool: "write_file".into(),
            input: Value::Null,
            task_id: TaskId::new("t_00000000"),
            subtask_id: SubTaskId::new("s"),
            scope: vec!["~/notes".into()],
            created: Vec::new(),
        }
    }

    #[test]
    fn bare_names_go_to_the_workspace_and_other_paths_do_not() {
        let root = Path::new("/nonexistent-for-sure");
        let places = Places {
            home: root.join("home"),
            cwd: root.join("cwd"),
            workspace: root.join("work"),
            own: None,
        };
        for (path, expect) in [
            ("out.txt", "work/out.txt"),
            ("./out.txt", "work/out.txt"),
            ("sub/out.txt", "cwd/sub/out.txt"),
            ("../out.txt", "out.txt"),
            ("~/out.txt", "home/out.txt"),
            ("~", "home"),
            ("a b\n\"c\".txt", "work/a b\n\"c\".txt"),
        ] {
            assert_eq!(places.writing(path), root.join(expect), "{path}");
        }
        assert_eq!(places.writing("/etc/../tmp/x"), Path::new("/tmp/x"));
        assert_eq!(places.commanded("out.txt"), root.join("cwd/out.txt"));
    }

    #[test]
    fn a_reader_finds_what_the_task_made_in_the_workspace() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        fs::write(root.path().join("work/a"), "").unwrap();
        assert_eq!(places.reading("a"), root.path().join("work/a"));
        fs::write(root.path().join("cwd/a"), "").unwrap();
        assert_eq!(places.reading("a"), root.path().join("cwd/a"));
        assert_eq!(places.reading("missing"), root.path().join("cwd/missing"));
    }

    #[test]
    fn a_link_that_leaves_the_workspace_is_no_way_out() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let places = places(&base);
        std::os::unix::fs::symlink(base.join("home"), base.join("work/link")).unwrap();
        std::os::unix::fs::symlink("../home/new.txt", base.join("work/dangling")).unwrap();
        for path in ["link/x.txt", "dangling"] {
            let real = landing(&places.workspace.join(path)).unwrap();
            assert!(real.starts_with(base.join("home")), "{real:?}");
            let effect = places.effect_of_writing(&real, &invocation());
            assert_eq!(effect, (EffectClass::Create, Reach::Elsewhere), "{path}");
        }
        let inside = landing(&base.join("work/new/deep.txt")).unwrap();
        assert_eq!(
            places.effect_of_writing(&inside, &invocation()),
            (EffectClass::Create, Reach::Workspace)
        );
        let scoped = landing(&base.join("home/notes/x")).unwrap();
        assert_eq!(
            places.effect_of_writing(&scoped, &invocation()),
            (EffectClass::Create, Reach::Scope)
        );
        std::os::unix::fs::symlink("loop", base.join("work/loop")).unwrap();
        assert!(landing(&base.join("work/loop")).is_err());
    }

    #[test]
    fn the_worst_effect_is_the_one_that_needs_a_yes() {
        use EffectClass::{Create, Modify};
        let free = (Modify, Reach::OwnFiles);
        let asked = (Create, Reach::Elsewhere);
        assert_eq!(worst([free, asked]), Some(asked));
        assert_eq!(worst([free, (Create, Reach::Workspace)]), Some(free));
        assert_eq!(worst([]), None);
    }
}

//! `delete_files`: takes files and folders away, in a way that can be taken back (design §8, §9).
//!
//! Owns the list of what would go: every file of every folder is counted before the person is asked, and what was counted is what goes.
//! Must not delete anything itself: things move into the undo store.

use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, Reach, ToolOutput, ToolSpec};
use async_trait::async_trait;
use ignore::WalkBuilder;
use serde::Deserialize;
use serde_json::json;

use super::change::{fingerprint, stale};
use super::place::landing;
use super::{Abandoned, Places, arguments, blocking, exceeds, failed, invalid, worker_died};
use crate::undo::{State, UndoStore};

/// Paths of one call.
const MAX_PATHS: usize = 500;
/// Lines of the list that a person is shown.
const LISTED: usize = 60;
/// Things in folders beyond which a call is too large to be looked at.
const MAX_THINGS: usize = 200_000;

pub(super) struct DeleteFiles {
    pub places: Arc<Places>,
    pub undo: Option<Arc<UndoStore>>,
}

#[derive(Deserialize)]
struct Arguments {
    paths: Vec<String>,
}

/// One path of the call and what is in it.
struct Doomed {
    real: PathBuf,
    is_folder: bool,
    /// What is in it, itself included: path, size, modification time.
    things: Vec<(PathBuf, u64, i64, i64)>,
}

#[async_trait]
impl Tool for DeleteFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "delete_files".to_owned(),
            description: "Deletes files and folders; the user sees the whole list first and can take it back."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"paths": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_PATHS}},
                "required": ["paths"],
                "additionalProperties": false
            }),
        }
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        let places = Arc::clone(&self.places);
        let invocation = invocation.clone();
        blocking(move |abandoned| match look(&places, &invocation, abandoned) {
            Ok(doomed) => assess(&places, &doomed),
            Err(error) => invalid(error),
        })
        .await
        .unwrap_or_else(|| invalid("the paths could not be looked at"))
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        let (places, undo) = (Arc::clone(&self.places), self.undo.clone());
        let invocation = invocation.clone();
        blocking(move |abandoned| run(&places, &invocation, permit, undo.as_ref(), abandoned))
            .await
            .unwrap_or_else(worker_died)
    }
}

fn look(places: &Places, invocation: &Invocation, abandoned: &Abandoned) -> Result<Vec<Doomed>, String> {
    let given = arguments::<Arguments>(invocation)?;
    if given.paths.is_empty() || given.paths.len() > MAX_PATHS {
        return Err(format!("`paths` takes 1 to {MAX_PATHS} paths"));
    }
    let mut doomed: Vec<Doomed> = Vec::new();
    for path in &given.paths {
        let real = named(places, path)?;
        let protected = [&places.home, &places.cwd, &places.workspace];
        if protected.iter().any(|folder| folder.starts_with(&real)) {
            return Err(format!(
                "{} is or holds a folder that artoo works in: it is not deleted",
                real.display()
            ));
        }
        if doomed
            .iter()
            .any(|other| real.starts_with(&other.real) || other.real.starts_with(&real))
        {
            return Err(format!(
                "{} is named twice or lies within another of the paths",
                real.display()
            ));
        }
        let things = things_in(&real, abandoned)?;
        let is_folder = real.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        doomed.push(Doomed {
            real,
            is_folder,
            things,
        });
    }
    Ok(doomed)
}

/// The thing itself: a link that is named is deleted, not what it leads to.
fn named(places: &Places, path: &str) -> Result<PathBuf, String> {
    if path.trim().is_empty() || path.contains('\0') {
        return Err("a path is empty or holds a zero byte".to_owned());
    }
    let meant = places.reading(path);
    let (Some(parent), Some(name)) = (meant.parent(), meant.file_name()) else {
        return Err(format!("{} cannot be deleted", meant.display()));
    };
    let parent = landing(parent).map_err(|error| format!("{} cannot be reached: {error}", meant.display()))?;
    let real = parent.join(name);
    match real.symlink_metadata() {
        Ok(_) => Ok(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!("{} does not exist", real.display())),
        Err(error) => Err(format!("{} cannot be looked at: {error}", real.display())),
    }
}

fn things_in(real: &Path, abandoned: &Abandoned) -> Result<Vec<(PathBuf, u64, i64, i64)>, String> {
    let mut things = Vec::new();
    for entry in WalkBuilder::new(real)
        .standard_filters(false)
        .follow_links(false)
        .build()
    {
        if abandoned.is_set() {
            return Err("it was cancelled".to_owned());
        }
        let looked = entry.and_then(|entry| entry.metadata().map(|meta| (entry.into_path(), meta)));
        let (path, meta) = looked.map_err(|error| format!("{} cannot be looked at whole: {error}", real.display()))?;
        things.push((path, meta.len(), meta.mtime(), meta.mtime_nsec()));
        if things.len() > MAX_THINGS {
            return Err(format!(
                "{} holds more than {MAX_THINGS} things: delete parts of it",
                real.display()
            ));
        }
    }
    things.sort_unstable();
    Ok(things)
}

fn assess(places: &Places, doomed: &[Doomed]) -> Assessment {
    let reach = if doomed.iter().any(|one| places.opens_own(&one.real)) {
        Reach::Records
    } else {
        Reach::Elsewhere
    };
    let total: usize = doomed.iter().map(|one| one.things.len()).sum();
    let bytes: u64 = doomed.iter().flat_map(|one| &one.things).map(|thing| thing.1).sum();
    let mut action = format!(
        "delete {} paths, {total} files and folders in all, {bytes} bytes:\n",
        doomed.len()
    );
    for one in doomed.iter().take(LISTED) {
        let _ = if one.is_folder {
            writeln!(
                action,
                "{}/ with {} things in it",
                one.real.display(),
                one.things.len().saturating_sub(1)
            )
        } else {
            writeln!(action, "{}", one.real.display())
        };
    }
    let inside = doomed
        .iter()
        .filter(|one| one.is_folder)
        .flat_map(|one| one.things.iter().skip(1));
    let room = LISTED.saturating_sub(doomed.len());
    for (path, ..) in inside.clone().take(room) {
        let _ = writeln!(action, "  {}", path.display());
    }
    let hidden = doomed.len().saturating_sub(LISTED) + inside.count().saturating_sub(room);
    if hidden > 0 {
        let _ = writeln!(action, "  [and {hidden} more]");
    }
    Assessment {
        effect: EffectClass::Destroy,
        reach,
        action,
        reason: "it deletes; what goes is kept and can be put back with `artoo undo`".to_owned(),
        programs: Vec::new(),
        targets: targets(doomed),
        invalid: None,
        fingerprint: print_of(doomed),
    }
}

/// Several paths have no name in common that a grant could match: it has to cover each.
fn targets(doomed: &[Doomed]) -> Vec<String> {
    let paths: Vec<String> = doomed.iter().map(|one| one.real.display().to_string()).collect();
    if paths.len() == 1 {
        return paths;
    }
    std::iter::once(format!("{} paths", paths.len())).chain(paths).collect()
}

fn print_of(doomed: &[Doomed]) -> u64 {
    let mut state = String::new();
    for (path, size, seconds, nanos) in doomed.iter().flat_map(|one| &one.things) {
        let name = path.as_os_str().as_encoded_bytes();
        let _ = writeln!(state, "{name:?} {size} {seconds} {nanos}");
    }
    fingerprint(&state)
}

fn run(
    places: &Places,
    invocation: &Invocation,
    permit: Permit,
    undo: Option<&Arc<UndoStore>>,
    abandoned: &Abandoned,
) -> ToolOutput {
    let doomed = match look(places, invocation, abandoned) {
        Ok(doomed) => doomed,
        Err(error) => return failed(error, FailureClass::Logical),
    };
    if !permit.confirmed || permit.seen != print_of(&doomed) {
        return stale("what would be deleted is not any more what was asked about");
    }
    if let Some(refusal) = exceeds(EffectClass::Destroy, permit) {
        return refusal;
    }
    let Some(undo) = undo else {
        return failed(
            "there is no place to keep what is deleted: nothing was done",
            FailureClass::Environmental,
        );
    };
    let (mut gone, mut output) = (Vec::new(), String::new());
    for one in &doomed {
        let deleted = abandoned
            .check()
            .and_then(|()| State::unread(&one.real))
            .and_then(|before| undo.delete(&invocation.task_id, &one.real, before, abandoned));
        if let Err(error) = deleted {
            let why = format!("{} was not deleted: {error}", one.real.display());
            return ToolOutput {
                output,
                touched: gone,
                ..failed(why, FailureClass::Environmental)
            };
        }
        let _ = writeln!(output, "deleted {}", one.real.display());
        gone.push(one.real.display().to_string());
    }
    ToolOutput {
        lines: gone.len() as u64,
        output,
        touched: gone,
        ..ToolOutput::default()
    }
}

//! What changing one file would mean, and how it is done (design §8, §9).
//!
//! Owns what `write_file` and `edit_file` have in common: the comparison that the person is shown, the digest of exactly that, and the
//! writing. Must not decide what the new content is.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::text::head_tail;
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, Reach, ToolOutput, ToolSpec};
use async_trait::async_trait;
use similar::TextDiff;

use super::place::landing;
use super::{Abandoned, Places, blocking, exceeds, failed, failed_by_system, invalid, worker_died};
use crate::anchored::{Existing, Folder, digest, digest_of, dress};
use crate::gate::is_free;
use crate::undo::{Entry, State, UndoStore};

/// Characters of a change that a person is shown; of what is not asked about, only a little is recorded.
const SHOWN: usize = 20_000;
const RECORDED: usize = 2000;
/// Bytes of a file up to which it is compared line by line.
const COMPARED: u64 = 1024 * 1024;
/// How long a comparison may look for the shortest form.
const COMPARING: Duration = Duration::from_millis(200);
/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// One file and what is to become of it.
pub(super) struct Change {
    pub real: PathBuf,
    pub before: State,
    /// Content before, where it is text of a size to be compared.
    pub old: Option<String>,
    pub size: u64,
    pub new: String,
}

/// The file that a path means, and whether anything is there.
pub(super) fn real_path(places: &Places, given: &str) -> Result<PathBuf, String> {
    if given.trim().is_empty() || given.contains('\0') {
        return Err("the path is empty or holds a zero byte".to_owned());
    }
    let path = places.writing(given);
    let real = landing(&path).map_err(|error| format!("{} cannot be reached: {error}", path.display()))?;
    match real.symlink_metadata() {
        Ok(meta) if meta.is_dir() => Err(format!("{} is a folder", real.display())),
        Ok(meta) if !meta.is_file() => Err(format!("{} is a pipe, socket or device, not a file", real.display())),
        Ok(_) | Err(_) => Ok(real),
    }
}

/// What is in a file now: its digest, its size, and its text where it is small enough.
pub(super) fn look(real: &Path, abandoned: &Abandoned) -> Result<(State, u64, Option<String>), String> {
    let unreadable = |error: io::Error| format!("{} cannot be read: {error}", real.display());
    let file = match Folder::of(real, false).and_then(|(folder, name)| folder.file(name)) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok((State::Absent, 0, None)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((State::Absent, 0, None)),
        Err(error) => return Err(unreadable(error)),
    };
    let size = file.metadata().map_err(unreadable)?.len();
    if size > COMPARED {
        let sha256 = digest_of(abandoned.heeding(file)).map_err(unreadable)?;
        return Ok((State::File { sha256 }, size, None));
    }
    let mut bytes = Vec::new();
    file.take(COMPARED + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let sha256 = digest(&bytes);
    Ok((State::File { sha256 }, size, String::from_utf8(bytes).ok()))
}

impl Change {
    /// A number that is equal only for the same content put over the same state of the same file.
    fn fingerprint(&self) -> u64 {
        let state = format!(
            "{}\0{:?}\0{}",
            self.real.display(),
            self.before,
            digest(self.new.as_bytes())
        );
        fingerprint(&state)
    }

    fn action(&self, shown: usize) -> String {
        let path = self.real.display();
        let (was, becomes) = (self.size, self.new.len());
        match (&self.before, &self.old) {
            (State::Absent, _) => format!("create {path} with {becomes} bytes:\n{}", head_tail(&self.new, shown)),
            (_, Some(old)) => format!(
                "change {path} ({was} bytes, then {becomes}):\n{}",
                head_tail(&comparison(old, &self.new), shown)
            ),
            (_, None) => format!(
                "replace the {was} bytes of {path}, which are no text or too many to compare, with {becomes} bytes:\n{}",
                head_tail(&self.new, shown)
            ),
        }
    }

    fn assess(&self, places: &Places, invocation: &Invocation) -> Assessment {
        let (effect, reach) = places.effect_of_writing(&self.real, invocation);
        let reason = match (effect, reach) {
            (EffectClass::Create, Reach::Workspace) => "it creates a file in the workspace",
            (EffectClass::Create, _) => "it creates a file",
            _ => "it changes a file; what it held is kept and can be put back with `artoo undo`",
        };
        let shown = if is_free(effect, reach) { RECORDED } else { SHOWN };
        Assessment {
            effect,
            reach,
            action: self.action(shown),
            reason: reason.to_owned(),
            programs: Vec::new(),
            targets: vec![self.real.display().to_string()],
            invalid: None,
            fingerprint: self.fingerprint(),
        }
    }

    /// Does it, if it is still what was permitted.
    fn make(
        &self,
        places: &Places,
        invocation: &Invocation,
        permit: Permit,
        undo: Option<&Arc<UndoStore>>,
        abandoned: &Abandoned,
    ) -> ToolOutput {
        let (effect, reach) = places.effect_of_writing(&self.real, invocation);
        let allowed = if permit.confirmed {
            permit.seen == self.fingerprint()
        } else {
            is_free(effect, reach)
        };
        if !allowed {
            return stale(&format!(
                "{} is not any more what it was when it was looked at",
                self.real.display()
            ));
        }
        if let Some(refusal) = exceeds(effect, permit) {
            return refusal;
        }
        match self.write(invocation, undo, abandoned) {
            Ok(()) => {
                let verb = if self.before == State::Absent {
                    "created"
                } else {
                    "changed"
                };
                ToolOutput {
                    output: format!("{verb} {} ({} bytes)", self.real.display(), self.new.len()),
                    lines: 1,
                    touched: vec![self.real.display().to_string()],
                    ..ToolOutput::default()
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                stale(&format!("{} exists by now", self.real.display()))
            }
            Err(error) => failed_by_system(&format!("{} was not written", self.real.display()), &error),
        }
    }

    fn write(&self, invocation: &Invocation, undo: Option<&Arc<UndoStore>>, abandoned: &Abandoned) -> io::Result<()> {
        let (folder, name) = Folder::of(&self.real, true)?;
        let mut old = folder.file(name)?;
        let now = match &mut old {
            None => State::Absent,
            Some(file) => State::File {
                sha256: digest_of(abandoned.heeding(&mut *file))?,
            },
        };
        if now != self.before {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it changed meanwhile"));
        }
        let meta = old.as_ref().map(File::metadata).transpose()?;
        // A rename would replace a file that its owner closed to writing.
        if meta.as_ref().is_some_and(|meta| meta.permissions().readonly()) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
        }
        if old.is_some() {
            folder.may_write(name)?;
        }
        let temporary = folder.unused_name()?;
        if let Some(undo) = undo {
            if let Some(old) = &mut old {
                old.rewind()?;
            }
            let after = State::File {
                sha256: digest(self.new.as_bytes()),
            };
            let entry = Entry::new(&self.real, now, after).by_way_of(&self.real.with_file_name(&temporary));
            undo.before_writing(&invocation.task_id, &entry, old.as_mut(), abandoned)?;
        }
        abandoned.check()?;
        // Last, so that only a process that dies just now leaves something behind.
        let staged = folder.stage_as(temporary, |file| {
            file.write_all(self.new.as_bytes())?;
            meta.as_ref().map_or(Ok(()), |meta| dress(file, meta, false))
        })?;
        abandoned.check()?;
        let existing = if self.before == State::Absent {
            Existing::Refuse
        } else {
            Existing::Replace
        };
        staged.place(name, existing)
    }
}

/// A number for a text: the beginning of its digest.
pub(crate) fn fingerprint(text: &str) -> u64 {
    let hex = digest(text.as_bytes());
    hex.get(..16)
        .and_then(|start| u64::from_str_radix(start, 16).ok())
        .unwrap_or(1)
        .max(1)
}

/// Nothing was done because something changed between the question and the deed.
pub(super) fn stale(what: &str) -> ToolOutput {
    ToolOutput {
        stale: true,
        ..failed(format!("{what}: nothing was done"), FailureClass::Environmental)
    }
}

/// Both texts side by side, as programmers write it.
fn comparison(old: &str, new: &str) -> String {
    if old == new {
        return "(no change)".to_owned();
    }
    let diff = TextDiff::configure().timeout(COMPARING).diff_lines(old, new);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        let _ = write!(text, "{hunk}");
    }
    text
}

/// A tool that changes one file: `write_file` and `edit_file` differ in what their arguments mean, and in nothing else.
pub(super) struct Changing {
    pub places: Arc<Places>,
    pub undo: Option<Arc<UndoStore>>,
    pub spec: fn() -> ToolSpec,
    /// The change that a call means, or why it means none.
    pub change: fn(&Places, &Invocation, &Abandoned) -> Result<Change, String>,
}

#[async_trait]
impl Tool for Changing {
    fn spec(&self) -> ToolSpec {
        (self.spec)()
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        let (places, change, invocation) = (Arc::clone(&self.places), self.change, invocation.clone());
        blocking(move |abandoned| match change(&places, &invocation, abandoned) {
            Ok(change) => change.assess(&places, &invocation),
            Err(error) => invalid(error),
        })
        .await
        .unwrap_or_else(|| invalid("the file could not be looked at"))
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        let (places, change, undo) = (Arc::clone(&self.places), self.change, self.undo.clone());
        let invocation = invocation.clone();
        blocking(move |abandoned| match change(&places, &invocation, abandoned) {
            Ok(change) => change.make(&places, &invocation, permit, undo.as_ref(), abandoned),
            Err(error) => failed(error, FailureClass::Logical),
        })
        .await
        .unwrap_or_else(worker_died)
    }
}

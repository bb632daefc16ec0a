//! `write_file`: puts a text into one file, whole or not at all (design §8, §9).
//!
//! Owns where a written file lands and how. Must not delete anything but its own temporary file.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::text::head_tail;
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, ToolOutput, ToolSpec};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::place::landing;
use super::{Places, arguments, blocking, exceeds, failed, failed_by_system, invalid, worker_died};

/// Characters of the content that the person is shown.
const SHOWN: usize = 2000;

pub(super) struct WriteFile {
    pub places: Arc<Places>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file".to_owned(),
            description: "Writes a text file, replacing what it held. A bare file name goes to the workspace."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "a bare name for the workspace, or an absolute path, or one with ~"},
                    "content": {"type": "string", "description": "the whole text"}
                },
                "required": ["path", "content"],
                "additionalProperties": false
            }),
        }
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        let places = Arc::clone(&self.places);
        let invocation = invocation.clone();
        blocking(move |_| assess(&places, &invocation))
            .await
            .unwrap_or_else(|| invalid("the path could not be looked at"))
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        let places = Arc::clone(&self.places);
        let invocation = invocation.clone();
        blocking(move |abandoned| {
            if abandoned.is_set() {
                return failed("it was cancelled before it began", FailureClass::Environmental);
            }
            run(&places, &invocation, permit)
        })
        .await
        .unwrap_or_else(worker_died)
    }
}

fn real_path(places: &Places, given: &Arguments) -> Result<PathBuf, String> {
    if given.path.trim().is_empty() || given.path.contains('\0') {
        return Err("the path is empty or holds a zero byte".to_owned());
    }
    let path = places.writing(&given.path);
    let real = landing(&path).map_err(|error| format!("{} cannot be reached: {error}", path.display()))?;
    match fs::symlink_metadata(&real) {
        Ok(meta) if meta.is_dir() => Err(format!("{} is a folder", real.display())),
        Ok(meta) if !meta.is_file() => Err(format!("{} is a pipe, socket or device, not a file", real.display())),
        Ok(_) | Err(_) => Ok(real),
    }
}

fn assess(places: &Places, invocation: &Invocation) -> Assessment {
    let found =
        arguments::<Arguments>(invocation).and_then(|given| real_path(places, &given).map(|real| (given, real)));
    let (given, real) = match found {
        Ok(found) => found,
        Err(error) => return invalid(error),
    };
    let (effect, reach) = places.effect_of_writing(&real, invocation);
    let shown = real.display().to_string();
    let (verb, reason) = match fs::metadata(&real) {
        Ok(meta) => (format!("replace the {} bytes of", meta.len()), "it replaces a file"),
        Err(_) => ("create".to_owned(), "it creates a file"),
    };
    Assessment {
        effect,
        reach,
        action: format!(
            "{verb} {shown} with {} bytes:\n{}",
            given.content.len(),
            head_tail(&given.content, SHOWN)
        ),
        reason: reason.to_owned(),
        programs: Vec::new(),
        targets: vec![shown],
        invalid: None,
    }
}

fn run(places: &Places, invocation: &Invocation, permit: Permit) -> ToolOutput {
    let found =
        arguments::<Arguments>(invocation).and_then(|given| real_path(places, &given).map(|real| (given, real)));
    let (given, real) = match found {
        Ok(found) => found,
        Err(error) => return failed(error, FailureClass::Logical),
    };
    let (effect, reach) = places.effect_of_writing(&real, invocation);
    // Between looking and doing, a link could have been put in the way.
    if !permit.confirmed && !crate::gate::is_free(effect, reach) {
        return failed(
            format!(
                "{} is not where it was when it was looked at: it was not written",
                real.display()
            ),
            FailureClass::Environmental,
        );
    }
    if let Some(refusal) = exceeds(effect, permit) {
        return refusal;
    }
    match replace(&real, given.content.as_bytes()) {
        Ok(()) => {
            let verb = if effect == EffectClass::Create {
                "created"
            } else {
                "replaced"
            };
            ToolOutput {
                output: format!("{verb} {} ({} bytes)", real.display(), given.content.len()),
                lines: 1,
                touched: vec![real.display().to_string()],
                ..ToolOutput::default()
            }
        }
        Err(error) => failed_by_system(&format!("{} was not written", real.display()), &error),
    }
}

/// Writes beside the file and renames, so that the file is never half written.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().ok_or_else(|| io::Error::other("it has no folder"))?;
    fs::create_dir_all(folder)?;
    let name = format!(
        ".artoo-{}-{}.tmp",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let temporary = folder.join(name);
    let written = (|| {
        let mut file = fs::File::options().write(true).create_new(true).open(&temporary)?;
        file.write_all(content)?;
        if let Ok(meta) = fs::metadata(path) {
            // A rename would replace a file that its owner closed to writing.
            if meta.permissions().readonly() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
            }
            file.set_permissions(meta.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

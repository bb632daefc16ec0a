//! `find_files`: the user's own files, anywhere, by name, kind and size (design §8).
//!
//! Owns a parallel walk that ignores nothing but what cannot be read. Must not write.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::tool::{Assessment, Invocation, Permit, ToolOutput, ToolSpec};
use async_trait::async_trait;
use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder, WalkState};
use serde::Deserialize;
use serde_json::json;

use super::{Abandoned, Places, arguments, blocking, failed, invalid, reading, worker_died};

/// Paths that are listed, at most.
const MAX_LISTED: usize = 200;
/// Matches that are kept in memory; more are only counted.
const MAX_KEPT: usize = 100_000;

pub(super) struct FindFiles {
    pub places: Arc<Places>,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    under: Option<String>,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    larger_than: Option<u64>,
    #[serde(default)]
    smaller_than: Option<u64>,
    #[serde(default)]
    sort: Sort,
    #[serde(default)]
    hidden: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    File,
    Folder,
    Any,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sort {
    #[default]
    Path,
    Size,
}

#[async_trait]
impl Tool for FindFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "find_files".to_owned(),
            description: "Finds the user's files anywhere by name, kind and size; one path a line, sorted. With sort `size` the largest \
                come first, each with its bytes in front."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "part of the name, or a pattern such as *.mp4; letter case does not matter"},
                    "under": {"type": "string", "description": "the folder to look in; the home folder without one"},
                    "kind": {"type": "string", "enum": ["file", "folder", "any"]},
                    "larger_than": {"type": "integer", "minimum": 0, "description": "bytes"},
                    "smaller_than": {"type": "integer", "minimum": 0, "description": "bytes"},
                    "sort": {"type": "string", "enum": ["path", "size"]},
                    "hidden": {"type": "boolean", "description": "also look at hidden files and folders"}
                },
                "additionalProperties": false
            }),
        }
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        match arguments::<Arguments>(invocation) {
            Ok(given) => {
                let under = self.places.reading(given.under.as_deref().unwrap_or("~"));
                let name = given.name.unwrap_or_else(|| "*".to_owned());
                reading(
                    format!("find `{name}` under {}", under.display()),
                    format!("{name} under {}", under.display()),
                )
            }
            Err(error) => invalid(error),
        }
    }

    async fn run(&self, invocation: &Invocation, _permit: Permit) -> ToolOutput {
        let given = match arguments::<Arguments>(invocation) {
            Ok(given) => given,
            Err(error) => return failed(error, FailureClass::Logical),
        };
        let under = self.places.reading(given.under.as_deref().unwrap_or("~"));
        blocking(move |abandoned| find(&under, &given, abandoned))
            .await
            .unwrap_or_else(worker_died)
    }
}

fn find(under: &Path, given: &Arguments, abandoned: &Abandoned) -> ToolOutput {
    if !under.is_dir() {
        return failed(
            format!("{} is not a folder", under.display()),
            FailureClass::Environmental,
        );
    }
    let name = match given.name.as_deref().map(name_matcher).transpose() {
        Ok(name) => name,
        Err(error) => return failed(error, FailureClass::Logical),
    };
    let kept: Mutex<Vec<(u64, PathBuf)>> = Mutex::new(Vec::new());
    let (matches, unreadable) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut walk = WalkBuilder::new(under);
    // Other file systems (network drives, /proc) are not wandered into.
    walk.standard_filters(false)
        .hidden(!given.hidden)
        .follow_links(false)
        .same_file_system(true);
    walk.build_parallel().run(|| {
        Box::new(|entry| {
            if abandoned.is_set() {
                return WalkState::Quit;
            }
            match entry {
                Err(_) => {
                    unreadable.fetch_add(1, Ordering::Relaxed);
                }
                Ok(entry) => {
                    if let Some(size) = wanted(&entry, given, name.as_ref()) {
                        matches.fetch_add(1, Ordering::Relaxed);
                        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                        if kept.len() < MAX_KEPT {
                            kept.push((size, entry.into_path()));
                        }
                    }
                }
            }
            WalkState::Continue
        })
    });
    let mut kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    match given.sort {
        Sort::Path => kept.sort_unstable_by(|a, b| a.1.cmp(&b.1)),
        Sort::Size => kept.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1))),
    }
    let line = |(size, path): (u64, PathBuf)| match given.sort {
        Sort::Path => path.display().to_string(),
        Sort::Size => format!("{size}\t{}", path.display()),
    };
    let what = format!("were found under {}", under.display());
    listing(
        matches.into_inner(),
        kept.into_iter().map(line),
        &what,
        unreadable.into_inner(),
    )
}

/// A pattern where the text has wildcards, else any name that contains it; letter case never matters.
fn name_matcher(name: &str) -> Result<GlobMatcher, String> {
    let pattern = if name.contains(['*', '?', '[']) {
        name.to_owned()
    } else {
        format!("*{}*", globset::escape(name))
    };
    GlobBuilder::new(&pattern)
        .case_insensitive(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| format!("`{name}` is no pattern: {error}"))
}

/// The size of an entry that fits the question.
fn wanted(entry: &DirEntry, given: &Arguments, matcher: Option<&GlobMatcher>) -> Option<u64> {
    if entry.depth() == 0 || matcher.is_some_and(|matcher| !matcher.is_match(entry.file_name())) {
        return None;
    }
    let kind = entry.file_type()?;
    let fits = match given.kind {
        Kind::File => kind.is_file(),
        Kind::Folder => kind.is_dir(),
        Kind::Any => true,
    };
    if !fits {
        return None;
    }
    let needs_size = given.sort == Sort::Size || given.larger_than.is_some() || given.smaller_than.is_some();
    let size = if needs_size { entry.metadata().ok()?.len() } else { 0 };
    let in_range =
        given.larger_than.is_none_or(|limit| size > limit) && given.smaller_than.is_none_or(|limit| size < limit);
    in_range.then_some(size)
}

/// A bounded list: one match a line, then what is not shown, what could not be read, and how many there are.
pub(super) fn listing(
    matches: u64,
    lines: impl IntoIterator<Item = String>,
    what: &str,
    unreadable: u64,
) -> ToolOutput {
    let mut output = String::new();
    let mut shown = 0_u64;
    for line in lines.into_iter().take(MAX_LISTED) {
        output.push_str(&line.replace('\n', "\\n"));
        output.push('\n');
        shown += 1;
    }
    if matches > shown {
        let _ = writeln!(output, "[{} more are not listed]", matches - shown);
    }
    if unreadable > 0 {
        let _ = writeln!(output, "[{unreadable} folders could not be read]");
    }
    let _ = write!(output, "[{matches} {what}]");
    ToolOutput {
        output,
        truncated: matches > shown,
        lines: matches,
        ..ToolOutput::default()
    }
}

//! `find_files`: the user's own files, anywhere, by name, kind and size (design §8).
//!
//! Owns the question: the system's index answers it where there is one, else a parallel walk that ignores nothing but what cannot be
//! read. Must not write.

use std::fmt::Write;
use std::fs::FileType;
use std::os::unix::fs::MetadataExt;
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

use super::best::Best;
use super::index::Index;
use super::redirect::NameSearch;
use super::{Abandoned, Places, arguments, blocking, failed, invalid, reading, worker_died};

/// Paths that are listed, at most.
const MAX_LISTED: usize = 200;

pub(super) struct FindFiles {
    pub places: Arc<Places>,
    pub index: Index,
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
    #[serde(skip)]
    case: Case,
}

/// Whether letter case matters; a model is never asked.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Case {
    #[default]
    Any,
    Same,
}

/// A search by name that was written as a command.
pub(super) async fn by_name(search: NameSearch) -> ToolOutput {
    let given = Arguments {
        name: Some(search.name),
        under: None,
        kind: match search.kind {
            Some('f') => Kind::File,
            Some('d') => Kind::Folder,
            _ => Kind::Any,
        },
        larger_than: None,
        smaller_than: None,
        sort: Sort::Path,
        hidden: true,
        case: if search.ignore_case { Case::Any } else { Case::Same },
    };
    blocking(move |abandoned| {
        let matcher = given
            .name
            .as_deref()
            .map(|name| GlobBuilder::new(name).case_insensitive(given.case == Case::Any).build());
        match matcher {
            Some(Ok(glob)) => walk(&search.under, &given, Some(&glob.compile_matcher()), abandoned),
            _ => failed("the name is no pattern", FailureClass::Logical),
        }
    })
    .await
    .unwrap_or_else(worker_died)
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    File,
    Folder,
    Any,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sort {
    /// By path.
    #[default]
    Path,
    /// The largest first.
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
        let listed = match &given.name {
            Some(name) => self.index.ask(&pattern_of(name)).await,
            None => None,
        };
        let made: Vec<PathBuf> = invocation.created.iter().map(PathBuf::from).collect();
        blocking(move |abandoned| match listed {
            Some(listed) => from_index(&under, &given, listed, made).unwrap_or_else(|| find(&under, &given, abandoned)),
            None => find(&under, &given, abandoned),
        })
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
    walk(under, given, name.as_ref(), abandoned)
}

fn walk(under: &Path, given: &Arguments, name: Option<&GlobMatcher>, abandoned: &Abandoned) -> ToolOutput {
    let best = Mutex::new(Best::new(given.sort, MAX_LISTED));
    let (unreadable, elsewhere) = (AtomicU64::new(0), AtomicU64::new(0));
    let border = Border::around(under);
    let mut builder = WalkBuilder::new(under);
    builder
        .standard_filters(false)
        .hidden(!given.hidden)
        .follow_links(false);
    builder.build_parallel().run(|| {
        let mut share = Share {
            own: Some(Best::new(given.sort, MAX_LISTED)),
            whole: &best,
        };
        let (unreadable, elsewhere, border) = (&unreadable, &elsewhere, &border);
        Box::new(move |entry| {
            if abandoned.is_set() {
                return WalkState::Quit;
            }
            match entry {
                Err(_) => {
                    unreadable.fetch_add(1, Ordering::Relaxed);
                }
                Ok(entry) => {
                    if let Some(size) = wanted(&entry, given, name)
                        && let Some(own) = &mut share.own
                    {
                        own.note(size, entry.path());
                    }
                    if border.is_crossed_by(&entry) {
                        elsewhere.fetch_add(1, Ordering::Relaxed);
                        return WalkState::Skip;
                    }
                }
            }
            WalkState::Continue
        })
    });
    let best = best.into_inner().unwrap_or_else(PoisonError::into_inner);
    let what = format!("were found under {}", under.display());
    let missed = Missed {
        unreadable: unreadable.into_inner(),
        elsewhere: elsewhere.into_inner(),
    };
    in_order(given, best, &what, missed)
}

/// The file system on which a walk began. Others (network drives, /proc) are not wandered into.
pub(super) struct Border(Option<u64>);

impl Border {
    pub fn around(root: &Path) -> Self {
        Self(root.metadata().ok().map(|meta| meta.dev()))
    }

    /// Whether this is a folder on another one.
    pub fn is_crossed_by(&self, entry: &DirEntry) -> bool {
        let is_folder = entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_dir());
        is_folder && entry.metadata().is_ok_and(|meta| Some(meta.dev()) != self.0)
    }
}

/// What a walk did not see, in folders.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Missed {
    pub unreadable: u64,
    /// On other file systems.
    pub elsewhere: u64,
}

impl Missed {
    /// A line each, where there is something to be said.
    pub fn tell(self, output: &mut String) {
        if self.unreadable > 0 {
            let _ = writeln!(output, "[{} folders could not be read]", self.unreadable);
        }
        tell_elsewhere(self.elsewhere, output);
    }
}

pub(super) fn tell_elsewhere(folders: u64, output: &mut String) {
    if folders > 0 {
        let _ = writeln!(
            output,
            "[{folders} folders are on other file systems and were not looked into: name one to look there]"
        );
    }
}

/// What one thread of a walk finds; at its end it goes to the others.
struct Share<'a> {
    own: Option<Best>,
    whole: &'a Mutex<Best>,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
            whole.absorb(own);
        }
    }
}

fn in_order(given: &Arguments, best: Best, what: &str, missed: Missed) -> ToolOutput {
    let line = |(size, path): (u64, PathBuf)| match given.sort {
        Sort::Path => path.display().to_string(),
        Sort::Size => format!("{size}\t{}", path.display()),
    };
    let (matches, found) = best.finish();
    listing(matches, found.into_iter().map(line), what, missed)
}

fn pattern_of(name: &str) -> String {
    if name.contains(['*', '?', '[']) {
        name.to_owned()
    } else {
        format!("*{}*", globset::escape(name))
    }
}

/// What the index knows, looked at again; `None` when that is nothing, because an index may be older than what is looked for.
fn from_index(under: &Path, given: &Arguments, listed: Vec<PathBuf>, made: Vec<PathBuf>) -> Option<ToolOutput> {
    let matcher = name_matcher(given.name.as_deref()?).ok()?;
    let root = under.canonicalize().ok()?;
    let mut kept: Vec<(u64, PathBuf)> = Vec::new();
    for path in listed.into_iter().chain(made) {
        let Ok(inside) = path.strip_prefix(&root) else { continue };
        let is_hidden = |part: std::path::Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        if inside.as_os_str().is_empty() || (!given.hidden && inside.components().any(is_hidden)) {
            continue;
        }
        let (Some(name), Ok(meta)) = (path.file_name(), path.symlink_metadata()) else {
            continue;
        };
        if matcher.is_match(name)
            && let Some(size) = fitting(meta.file_type(), given, || Some(meta.len()))
        {
            kept.push((size, path));
        }
    }
    kept.sort_unstable();
    kept.dedup();
    if kept.is_empty() {
        return None;
    }
    let mut best = Best::new(given.sort, MAX_LISTED);
    for (size, path) in kept {
        best.note(size, &path);
    }
    let what = format!(
        "were found under {}, in the system's index, which may lack the newest",
        under.display()
    );
    Some(in_order(given, best, &what, Missed::default()))
}

/// A pattern where the text has wildcards, else any name that contains it; letter case never matters.
fn name_matcher(name: &str) -> Result<GlobMatcher, String> {
    GlobBuilder::new(&pattern_of(name))
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
    fitting(entry.file_type()?, given, || Some(entry.metadata().ok()?.len()))
}

/// The size of something of the wanted kind and size; it is only asked for where it matters.
fn fitting(kind: FileType, given: &Arguments, size: impl FnOnce() -> Option<u64>) -> Option<u64> {
    let fits = match given.kind {
        Kind::File => kind.is_file(),
        Kind::Folder => kind.is_dir(),
        Kind::Any => true,
    };
    if !fits {
        return None;
    }
    let needs_size = given.sort == Sort::Size || given.larger_than.is_some() || given.smaller_than.is_some();
    let size = if needs_size { size()? } else { 0 };
    let in_range =
        given.larger_than.is_none_or(|limit| size > limit) && given.smaller_than.is_none_or(|limit| size < limit);
    in_range.then_some(size)
}

/// A bounded list: one match a line, then what is not shown, what could not be read, and how many there are.
pub(super) fn listing(matches: u64, lines: impl IntoIterator<Item = String>, what: &str, missed: Missed) -> ToolOutput {
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
    missed.tell(&mut output);
    let _ = write!(output, "[{matches} {what}]");
    ToolOutput {
        output,
        truncated: matches > shown,
        lines: matches,
        ..ToolOutput::default()
    }
}

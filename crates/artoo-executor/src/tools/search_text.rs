//! `search_text`: lines of files that match a pattern (design §8).
//!
//! Owns the search: ripgrep's own libraries on a parallel walk, so what git ignores, hidden files and binary files are left out. Must
//! not write.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::tool::{Assessment, Invocation, Permit, ToolOutput, ToolSpec};
use async_trait::async_trait;
use globset::GlobMatcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};
use ignore::{DirEntry, WalkBuilder, WalkState};
use serde::Deserialize;
use serde_json::json;

use super::find_files::{Border, tell_elsewhere};
use super::glob::path_matcher;
use super::{Abandoned, Places, arguments, blocking, failed, invalid, reading, worker_died};
use crate::capture::without_broken_word;

/// Bytes of matching lines that are kept while searching, of all files together; what is over is only counted.
const KEPT: u64 = 4 * 1024 * 1024;
/// Bytes of them that are listed, by path.
const LISTED: usize = 48 * 1024;
/// Bytes kept of one file.
const KEPT_OF_ONE: usize = 16 * 1024;
/// Bytes of a line that are shown.
const LINE_SHOWN: usize = 400;
/// Lines around a match, at most.
const MAX_CONTEXT: u64 = 20;
/// The longest line that is kept in memory; a file with a longer one is searched no further.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// Bytes that the searcher reads at first; it searches nothing of a file with a zero byte among them.
const FIRST_READ: u64 = 64 * 1024;
/// The largest pattern, compiled.
const PATTERN_SIZE: usize = 10 * 1024 * 1024;

pub(super) struct SearchText {
    pub places: Arc<Places>,
}

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    under: Option<String>,
    #[serde(default)]
    files: Option<String>,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    context: u64,
}

#[async_trait]
impl Tool for SearchText {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "search_text".to_owned(),
            description: "Finds lines in files by regular expression: `path:line:text`, then how many lines in how many files. What git \
                ignores, hidden and binary files are left out."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string"},
                    "under": {"type": "string", "description": "file or folder; the working directory without one"},
                    "files": {"type": "string", "description": "only files that match this glob, such as *.rs"},
                    "literal": {"type": "boolean", "description": "the pattern is plain text"},
                    "ignore_case": {"type": "boolean"},
                    "context": {"type": "integer", "minimum": 0, "maximum": MAX_CONTEXT, "description": "lines around each match"}
                },
                "required": ["pattern"],
                "additionalProperties": false
            }),
        }
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        match arguments::<Arguments>(invocation) {
            Ok(given) => {
                let under = self.places.reading(given.under.as_deref().unwrap_or("."));
                reading(
                    format!("search `{}` in {}", given.pattern, under.display()),
                    format!("{} in {}", given.pattern, under.display()),
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
        let under = self.places.reading(given.under.as_deref().unwrap_or("."));
        blocking(move |abandoned| search(&under, &given, abandoned))
            .await
            .unwrap_or_else(worker_died)
    }
}

/// What is known of the whole search so far.
#[derive(Default)]
struct Tally {
    lines: AtomicU64,
    files: AtomicU64,
    kept: AtomicU64,
    unreadable: AtomicU64,
    /// Folders on other file systems.
    elsewhere: AtomicU64,
    /// Files with a zero byte near their beginning: nothing of them was searched.
    binary: AtomicU64,
    /// Files that were left at a later one.
    stopped: AtomicU64,
    cut: AtomicBool,
    found: Mutex<Vec<(PathBuf, String)>>,
}

fn search(under: &Path, given: &Arguments, abandoned: &Abandoned) -> ToolOutput {
    let matcher = match RegexMatcherBuilder::new()
        .case_insensitive(given.ignore_case)
        .fixed_strings(given.literal)
        .size_limit(PATTERN_SIZE)
        .line_terminator(Some(b'\n'))
        .build(&given.pattern)
    {
        Ok(matcher) => matcher,
        Err(error) => {
            let why = format!("`{}` is no pattern for a line: {error}", given.pattern);
            return failed(why, FailureClass::Logical);
        }
    };
    let wanted = match given.files.as_deref().map(path_matcher).transpose() {
        Ok(wanted) => wanted,
        Err(error) => return failed(error, FailureClass::Logical),
    };
    match under.metadata() {
        Ok(meta) if meta.is_file() || meta.is_dir() => {}
        Ok(_) => {
            let why = format!("{} is neither a file nor a folder", under.display());
            return failed(why, FailureClass::Logical);
        }
        Err(error) => return super::failed_by_system(&format!("{} cannot be searched", under.display()), &error),
    }
    let tally = Tally::default();
    let searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .before_context(usize::try_from(given.context.min(MAX_CONTEXT)).unwrap_or_default())
        .after_context(usize::try_from(given.context.min(MAX_CONTEXT)).unwrap_or_default())
        .heap_limit(Some(LONGEST_LINE))
        .build();
    let root = if under.is_dir() {
        under
    } else {
        under.parent().unwrap_or(under)
    };
    let border = Border::around(root);
    WalkBuilder::new(under).follow_links(false).build_parallel().run(|| {
        let mut searcher = searcher.clone();
        let (matcher, wanted, tally, border) = (&matcher, wanted.as_ref(), &tally, &border);
        Box::new(move |entry| {
            if abandoned.is_set() {
                return WalkState::Quit;
            }
            match entry {
                Ok(entry) if is_wanted(&entry, root, wanted) => {
                    search_file(&mut searcher, matcher, entry.path(), root, tally, abandoned);
                }
                Ok(entry) if border.is_crossed_by(&entry) => {
                    tally.elsewhere.fetch_add(1, Ordering::Relaxed);
                    return WalkState::Skip;
                }
                Ok(_) => {}
                Err(_) => {
                    tally.unreadable.fetch_add(1, Ordering::Relaxed);
                }
            }
            WalkState::Continue
        })
    });
    report(under, &given.pattern, tally)
}

fn is_wanted(entry: &DirEntry, root: &Path, wanted: Option<&GlobMatcher>) -> bool {
    // A file that was named itself is searched, also through a link; pipes and devices never are.
    let is_file = if entry.depth() == 0 {
        entry.path().is_file()
    } else {
        entry.file_type().is_some_and(|kind| kind.is_file())
    };
    is_file
        && wanted.is_none_or(|wanted| {
            let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
            wanted.is_match(relative)
        })
}

fn search_file(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    path: &Path,
    root: &Path,
    tally: &Tally,
    abandoned: &Abandoned,
) {
    let mut lines = Lines {
        path: path.strip_prefix(root).unwrap_or(path),
        shown: String::new(),
        text: String::new(),
        matches: 0,
        full: tally.kept.load(Ordering::Relaxed) >= KEPT,
        cut: false,
        zero: None,
        abandoned,
    };
    let outcome =
        File::open(path).and_then(|file| searcher.search_reader(matcher, abandoned.heeding(file), &mut lines));
    if outcome.is_err() {
        tally.unreadable.fetch_add(1, Ordering::Relaxed);
    }
    if let Some(at) = lines.zero {
        let count = if at < FIRST_READ { &tally.binary } else { &tally.stopped };
        count.fetch_add(1, Ordering::Relaxed);
    }
    if lines.matches == 0 {
        return;
    }
    tally.lines.fetch_add(lines.matches, Ordering::Relaxed);
    tally.files.fetch_add(1, Ordering::Relaxed);
    if lines.cut || lines.full {
        tally.cut.store(true, Ordering::Relaxed);
    }
    if !lines.text.is_empty() {
        tally.kept.fetch_add(lines.text.len() as u64, Ordering::Relaxed);
        let mut found = tally.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.push((path.to_owned(), lines.text));
    }
}

/// The matching lines of one file.
struct Lines<'a> {
    path: &'a Path,
    /// The path as it stands before each line, made for the first.
    shown: String,
    text: String,
    matches: u64,
    full: bool,
    cut: bool,
    /// Where its first zero byte is.
    zero: Option<u64>,
    abandoned: &'a Abandoned,
}

impl Lines<'_> {
    fn keep(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        if self.full {
            return;
        }
        if self.text.len() > KEPT_OF_ONE {
            self.cut = true;
            return;
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let shown = line.get(..LINE_SHOWN).map_or(line, without_broken_word);
        if self.shown.is_empty() {
            self.shown = self.path.display().to_string().replace('\n', "\\n");
        }
        let _ = write!(
            self.text,
            "{}{mark}{}{mark}{}",
            self.shown,
            number.unwrap_or_default(),
            String::from_utf8_lossy(shown)
        );
        if shown.is_empty() && !line.is_empty() {
            let _ = write!(self.text, "[one word of {} bytes]", line.len());
        } else if shown.len() < line.len() {
            let _ = write!(self.text, " [… {} bytes more]", line.len() - shown.len());
        }
        self.text.push('\n');
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let first = found.line_number();
        for (line, number) in found.lines().zip(0..) {
            self.matches += 1;
            self.keep(first.map(|first| first + number), ':', line);
        }
        Ok(!self.abandoned.is_set())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        if !matches!(context.kind(), SinkContextKind::Other) {
            self.keep(context.line_number(), '-', context.bytes());
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, offset: u64) -> Result<bool, io::Error> {
        self.zero = Some(offset);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if !self.full && !self.cut {
            self.text.push_str("--\n");
        }
        Ok(true)
    }
}

fn report(under: &Path, pattern: &str, tally: Tally) -> ToolOutput {
    let (lines, files) = (tally.lines.into_inner(), tally.files.into_inner());
    // In a folder binary files are left out, as the tool says; one that was named must not look like one without a match.
    let stopped = tally.stopped.into_inner();
    let named_binary = tally.binary.into_inner() + stopped > 0 && under.is_file();
    if named_binary && lines == 0 {
        let why = format!(
            "{} is a binary file, which is not searched: look at it with another tool",
            under.display()
        );
        return failed(why, FailureClass::Logical);
    }
    let mut found = tally.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut cut = tally.cut.into_inner();
    let mut output = String::new();
    for (_, text) in found {
        if output.len() + text.len() > LISTED {
            cut = true;
            break;
        }
        output.push_str(&text);
    }
    if named_binary {
        output.push_str("[it is a binary file, and was searched in part only: it holds a zero byte in the middle]\n");
    } else if stopped > 0 {
        let _ = writeln!(
            output,
            "[{stopped} files were searched in part only: they hold a zero byte in the middle]"
        );
    }
    if cut {
        output.push_str("[not all of them are listed: narrow the search]\n");
    }
    let unreadable = tally.unreadable.into_inner();
    if unreadable > 0 {
        let _ = writeln!(output, "[{unreadable} files or folders could not be read to their end]");
    }
    tell_elsewhere(tally.elsewhere.into_inner(), &mut output);
    let _ = write!(
        output,
        "[{lines} lines in {files} files match `{pattern}` under {}]",
        under.display()
    );
    ToolOutput {
        output,
        truncated: cut,
        lines,
        ..ToolOutput::default()
    }
}

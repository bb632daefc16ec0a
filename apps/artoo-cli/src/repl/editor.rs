//! The line editor: history that lasts, search in it, blocks of several lines, completion of commands, tasks and paths (design §21).
//!
//! Owns how a line is typed. What it means is not known here.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use artoo_bus::journal::{Redactor, read};
use artoo_protocol::text::printable;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Behavior, CompletionType, Config, Context, EditMode, Helper};

use super::commands::{Argument, COMMANDS};
use crate::failure::Failure;
use crate::settings::Settings;

/// What opens and closes a block.
const FENCE: &str = "\"\"\"";
/// Inputs that are kept.
const HISTORY_MAX: usize = 1_000;
/// Tasks that are offered.
const TASKS_MAX: usize = 100;

/// The editor.
pub struct Editor {
    line: rustyline::Editor<Help, FileHistory>,
    history: PathBuf,
    redactor: Redactor,
    /// Whether something stood in the line when it was last drawn.
    has_text: Arc<AtomicBool>,
}

impl Editor {
    /// Takes the terminal, with the history of earlier conversations. What `redactor` masks is not remembered.
    ///
    /// # Errors
    /// [`Failure`] when the terminal cannot be used.
    pub fn new(settings: &Settings, redactor: Redactor) -> Result<Self, Failure> {
        let config = Config::builder()
            // On the terminal itself, so that standard output holds results alone.
            .behavior(Behavior::PreferTerm)
            .edit_mode(if settings.vi { EditMode::Vi } else { EditMode::Emacs })
            .completion_type(CompletionType::List)
            // One Tab shows what fits; a second one nobody would guess.
            .completion_show_all_if_ambiguous(true)
            .max_history_size(HISTORY_MAX)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(|error| unreadable(&error))?
            .build();
        let mut editor = rustyline::Editor::with_config(config).map_err(|error| unreadable(&error))?;
        let has_text = Arc::new(AtomicBool::new(false));
        editor.set_helper(Some(Help {
            has_text: Arc::clone(&has_text),
            paths: FilenameCompleter::new(),
            past: HistoryHinter::new(),
            tasks: settings.data_dir.join("tasks"),
        }));
        let history = settings.data_dir.join("history");
        // No history yet is no error.
        let _ = editor.load_history(&history);
        Ok(Self {
            line: editor,
            history,
            redactor,
            has_text,
        })
    }

    /// One input: a line, a block between fences, or what was pasted at once.
    ///
    /// # Errors
    /// What the terminal says: its end, or Ctrl+C.
    pub fn read(&mut self) -> Result<String, ReadlineError> {
        self.has_text.store(false, Ordering::Relaxed);
        let typed = self.line.readline("artoo> ")?;
        if !typed.trim().is_empty() {
            let _ = self.line.add_history_entry(self.redactor.text(&typed));
            // Added, never written anew: a disk that is full or a kill in between must not take what was there.
            let _ = self.line.append_history(&self.history);
        }
        Ok(unfenced(&typed).to_owned())
    }

    /// Whether something had been typed when Ctrl+C came.
    pub fn had_text(&self) -> bool {
        self.has_text.load(Ordering::Relaxed)
    }
}

/// The failure for a terminal that cannot be read.
pub fn unreadable(error: &ReadlineError) -> Failure {
    Failure::failed(format!("the terminal cannot be read: {error}"))
}

/// The text of an input without the fences around it.
fn unfenced(typed: &str) -> &str {
    let trimmed = typed.trim();
    let inner = trimmed.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE));
    inner.unwrap_or(trimmed).trim()
}

/// Whether a block was opened and not closed.
fn is_open(typed: &str) -> bool {
    typed
        .trim()
        .strip_prefix(FENCE)
        .is_some_and(|rest| !rest.ends_with(FENCE))
}

/// What helps while a line is typed.
struct Help {
    has_text: Arc<AtomicBool>,
    paths: FilenameCompleter,
    past: HistoryHinter,
    tasks: PathBuf,
}

impl Helper for Help {}

impl Validator for Help {
    fn validate(&self, ctx: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_open(ctx.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Hinter for Help {
    type Hint = String;

    /// The rest of the newest input that begins like this one; the right arrow takes it.
    fn hint(&self, line: &str, pos: usize, ctx: &Context<'_>) -> Option<String> {
        // Asked whenever the line is drawn, and nothing else is.
        self.has_text.store(!line.is_empty(), Ordering::Relaxed);
        self.past.hint(line, pos, ctx).filter(|rest| !rest.contains('\n'))
    }
}

impl Highlighter for Help {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            return Cow::Borrowed(hint);
        }
        let faint = anstyle::Style::new().dimmed();
        Cow::Owned(format!("{faint}{hint}{faint:#}"))
    }
}

impl Completer for Help {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, ctx: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..pos).unwrap_or_default();
        match asked_for(typed) {
            Asked::Command => Ok((0, commands_like(typed))),
            Asked::Task { from } => Ok((from, tasks_like(&self.tasks, typed.get(from..).unwrap_or_default()))),
            Asked::Nothing => Ok((pos, Vec::new())),
            Asked::Path => {
                let (from, mut pairs) = self.paths.complete(line, pos, ctx)?;
                // The editor writes them as they are, and a name can be an order to the terminal.
                pairs.retain(|pair| is_plain(&pair.display) && is_plain(&pair.replacement));
                Ok((from, pairs))
            }
        }
    }
}

fn is_plain(name: &str) -> bool {
    printable(name) == name && !name.contains(['\n', '\t'])
}

/// What can be completed at the end of what was typed.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Command,
    Task { from: usize },
    Path,
    Nothing,
}

fn asked_for(typed: &str) -> Asked {
    if !typed.starts_with('/') {
        return Asked::Path;
    }
    let Some((name, rest)) = typed.split_once(' ') else {
        // An absolute path may begin a line as well.
        let is_command = COMMANDS.iter().any(|command| command.name.starts_with(typed));
        return if is_command { Asked::Command } else { Asked::Path };
    };
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) if command.argument == Argument::Task && !rest.contains(' ') => {
            Asked::Task { from: name.len() + 1 }
        }
        Some(command) if command.argument == Argument::Text => Asked::Path,
        Some(_) => Asked::Nothing,
        None => Asked::Path,
    }
}

fn commands_like(typed: &str) -> Vec<Pair> {
    let fitting = COMMANDS.iter().filter(|command| command.name.starts_with(typed));
    let pairs = fitting.map(|command| Pair {
        display: command.name.to_owned(),
        replacement: if command.argument == Argument::None {
            command.name.to_owned()
        } else {
            format!("{} ", command.name)
        },
    });
    pairs.collect()
}

fn tasks_like(folder: &Path, typed: &str) -> Vec<Pair> {
    let names = read::list(folder)
        .unwrap_or_default()
        .into_iter()
        .map(|found| found.task_id.to_string());
    let fitting = names.filter(|name| name.starts_with(typed)).take(TASKS_MAX);
    let pairs = fitting.map(|name| Pair {
        display: name.clone(),
        replacement: name,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_open_until_it_is_closed_and_its_fences_are_not_part_of_it() {
        for (typed, open, text) in [
            ("count", false, "count"),
            ("\"\"\"", true, "\"\"\""),
            ("\"\"\"a\nb", true, "\"\"\"a\nb"),
            ("\"\"\"a\nb\"\"\"", false, "a\nb"),
            ("\"\"\"\nsay \"hi\"\n\"\"\" ", false, "say \"hi\""),
            ("\"\"\"\"\"\"", false, ""),
            ("write \"\"\"", false, "write \"\"\""),
        ] {
            assert_eq!((is_open(typed), unfenced(typed)), (open, text), "{typed:?}");
        }
    }

    #[test]
    fn names_that_are_orders_to_a_terminal_are_not_offered() {
        for name in [
            "a\u{1b}]52;c;eA==\u{7}",
            "a\u{1b}[2J",
            "a\nb",
            "a\tb",
            "a\u{202e}txt.exe",
        ] {
            assert!(!is_plain(name), "{name:?}");
        }
        assert!(is_plain("Übung 1 – 日本.pdf"));
    }

    #[test]
    fn what_is_completed_depends_on_what_the_command_takes() {
        for (typed, asked) in [
            ("count src/ma", Asked::Path),
            ("/", Asked::Command),
            ("/re", Asked::Command),
            ("/home/us", Asked::Path),
            ("/undo ", Asked::Task { from: 6 }),
            ("/report count_", Asked::Task { from: 8 }),
            ("/remember use src/m", Asked::Path),
            ("/quit ", Asked::Nothing),
        ] {
            assert_eq!(asked_for(typed), asked, "{typed:?}");
        }
        let names: Vec<String> = commands_like("/re").into_iter().map(|pair| pair.replacement).collect();
        assert_eq!(names, ["/report ", "/resume ", "/remember "]);
    }
}

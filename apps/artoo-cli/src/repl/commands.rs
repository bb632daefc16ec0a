//! What a line that begins with `/` can ask for (design §21).
//!
//! Owns the one list of these commands: help, completion and execution come from it.

use std::fmt::Write as _;

use artoo_bus::SystemClock;
use artoo_bus::journal::summary::TaskSummary;
use artoo_protocol::ports::{Clock, MemoryService};
use artoo_protocol::text::one_line;

use super::Left;
use crate::args::TasksCommand;
use crate::failure::Failure;
use crate::session::Session;
use crate::settings::Settings;
use crate::{commands, complain, output, resume, spending};

/// What stands behind a command's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Nothing.
    None,
    /// The name of a task, which may be left out.
    Task,
    /// Words.
    Text,
}

/// A command.
pub struct Slash {
    /// With the stroke in front.
    pub name: &'static str,
    /// What stands behind it.
    pub argument: Argument,
    does: &'static str,
}

const fn slash(name: &'static str, argument: Argument, does: &'static str) -> Slash {
    Slash { name, argument, does }
}

/// Every command, in the order of the help.
pub const COMMANDS: &[Slash] = &[
    slash("/tasks", Argument::None, "what ran"),
    slash(
        "/report",
        Argument::Task,
        "the story of a task: plan, attempts, verdicts, costs",
    ),
    slash(
        "/cost",
        Argument::Task,
        "what a task took; without a name, this conversation too",
    ),
    slash("/undo", Argument::Task, "put back what a task overwrote or deleted"),
    slash("/resume", Argument::Task, "finish an interrupted task"),
    slash(
        "/memory",
        Argument::Text,
        "what memory holds, or what a plan for TEXT would be told",
    ),
    slash("/remember", Argument::Text, "tell every later plan"),
    slash("/forget", Argument::Text, "remove the memory of this id for good"),
    slash("/audit", Argument::None, "what the auditor saw"),
    slash("/model", Argument::None, "which model answers"),
    slash("/help", Argument::None, "this"),
    slash("/quit", Argument::None, "leave (or Ctrl+D, or Ctrl+C twice)"),
];

/// Whether an input is a command. A path may begin a task as well: it has a second stroke, or exists.
pub fn is_one(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    first
        .strip_prefix('/')
        .is_some_and(|name| !name.contains('/') && !text.contains('\n') && !std::path::Path::new(first).exists())
}

fn help() -> String {
    let mut text = String::from("a line is a task; lines between \"\"\" and \"\"\", or pasted at once, are one task\n");
    for command in COMMANDS {
        let argument = match command.argument {
            Argument::None => "",
            Argument::Task => "[TASK]",
            Argument::Text => "TEXT",
        };
        let _ = writeln!(
            text,
            "  {:<16} {}",
            format!("{} {argument}", command.name),
            command.does
        );
    }
    text.push_str("Without TASK the newest is meant. Tab completes commands, tasks and paths; Ctrl+R searches what was typed before.\n");
    text.push_str("Ctrl+C while a task runs stops the task only.");
    text
}

/// Runs a command; says how, when it means to leave.
pub(super) async fn run(text: &str, settings: &Settings, session: &mut Session) -> Option<Left> {
    let data = &settings.data_dir;
    let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let argument = argument.trim();
    let named = Some(argument).filter(|named| !named.is_empty());
    let done = match name {
        "/quit" | "/exit" => return Some(Left::ForGood),
        "/resume" => match resume::choose(data, named) {
            Ok(Some(task)) => return Some(Left::ToResume(Box::new(task))),
            Ok(None) => {
                output::note("no task was interrupted");
                Ok(())
            }
            Err(failure) => Err(failure),
        },
        "/tasks" => commands::tasks::run(&TasksCommand::List { json: false }, data),
        "/report" => newest(named, session)
            .and_then(|task| commands::report::run(data, &task, None, false, &spending::price(settings))),
        "/cost" => cost(named, settings, session),
        "/memory" | "/remember" | "/forget" => about_memory(name, argument, settings, session).await,
        "/audit" => session
            .audit()
            .await
            .map(|report| output::result(&commands::audit::text(&report))),
        "/model" => {
            model(settings);
            Ok(())
        }
        "/undo" => commands::undo::run(data, named, artoo_executor::undo::Unwilling::Leave, false),
        "/help" => {
            output::result(&help());
            Ok(())
        }
        other => Err(Failure::usage(format!("there is no command `{}`", one_line(other, 40)))
            .hint("/help lists those there are")),
    };
    if let Err(failure) = done {
        complain(&failure);
    }
    None
}

fn model(settings: &Settings) {
    for (name, choice) in settings.named_models() {
        output::result(&format!("{:<13} {choice}", format!("{name}:")));
    }
}

/// The named task, or the last one of this conversation.
fn newest(named: Option<&str>, session: &Session) -> Result<String, Failure> {
    let last = || session.ran().last().map(ToString::to_string);
    named.map(str::to_owned).or_else(last).ok_or_else(|| {
        Failure::usage("no task has run in this conversation yet").hint("name one; /tasks lists those there are")
    })
}

/// What the task took, and the conversation when no task is named.
fn cost(named: Option<&str>, settings: &Settings, session: &Session) -> Result<(), Failure> {
    let folder = settings.data_dir.join("tasks");
    let price = spending::price(settings);
    let money = |summary: &TaskSummary| -> f64 {
        let calls = summary.costs.calls.iter();
        calls.map(|call| price(&call.model, &call.usage)).sum()
    };
    let found = commands::tasks::pick(&folder, &newest(named, session)?)?;
    let summary = TaskSummary::of(&commands::tasks::contents(&found)?.records)
        .ok_or_else(|| Failure::failed(format!("{} holds no task", found.path.display())))?;
    output::result(&format!(
        "{}: {}{}",
        found.task_id,
        commands::tasks::costs_line(&summary.costs),
        paid(money(&summary))
    ));
    if named.is_none() {
        let all = session.ran().iter();
        let all: Vec<TaskSummary> = all
            .filter_map(|task| commands::tasks::summary_of(&settings.data_dir, task))
            .collect();
        let calls: usize = all.iter().map(|task| task.costs.calls.len()).sum();
        let tokens: u64 = all
            .iter()
            .map(|task| task.costs.usage.tokens())
            .fold(0, u64::saturating_add);
        output::result(&format!(
            "this conversation: {} tasks, {calls} model calls, {tokens} tokens{}",
            all.len(),
            paid(all.iter().map(money).sum())
        ));
    }
    Ok(())
}

fn paid(money: f64) -> String {
    if money > 0.0 {
        format!(", costs {money:.4}")
    } else {
        String::new()
    }
}

/// Commands that go to the memory of this process: its store is held, so that no other one could be asked.
async fn about_memory(name: &str, rest: &str, settings: &Settings, session: &Session) -> Result<(), Failure> {
    let Some(memory) = session.memory() else {
        return Err(Failure::usage("artoo runs without memory").hint("leave out --no-memory"));
    };
    let broken = |e: artoo_protocol::ports::MemoryError| Failure::failed(e.to_string());
    let memory = memory.opened().await.map_err(broken)?;
    memory.flush().await.map_err(broken)?;
    let (name, rest, data) = (name.to_owned(), rest.to_owned(), settings.data_dir.clone());
    let (records, now, redactor) = (memory.records(), SystemClock.now(), session.redactor().clone());
    // The store is waited for on a thread of its own.
    let done = tokio::task::spawn_blocking(move || match (name.as_str(), rest.as_str()) {
        ("/remember", wish) => commands::memory::remember(&records, wish, &redactor, now).map(|(id, is_new)| {
            output::result(&if is_new {
                format!("remembered as {id}")
            } else {
                "it was known already".to_owned()
            });
        }),
        ("/forget", id) => commands::memory::forget(&records, id, now)
            .map(|gone| output::result(&commands::memory::forgotten_line(&gone))),
        (_, "") => commands::memory::stats(&records, &data, false),
        (_, text) => commands::memory::recalled(&records, text, now, false),
    });
    done.await.map_err(|e| Failure::failed(e.to_string()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_at_the_beginning_makes_no_command_of_a_task() {
        for (text, command) in [
            ("/help", true),
            ("/remember use yarn", true),
            ("/nonsense", true),
            ("/etc/hosts has how many lines?", false),
            ("/tmp is how large?", false),
            ("/remember this\nand that", false),
            ("count files", false),
        ] {
            assert_eq!(is_one(text), command, "{text}");
        }
    }

    #[test]
    fn the_help_names_every_command_once() {
        let help = help();
        for command in COMMANDS {
            assert_eq!(
                help.matches(&format!("  {} ", command.name)).count(),
                1,
                "{}",
                command.name
            );
        }
    }
}

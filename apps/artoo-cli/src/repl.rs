//! The conversation on a terminal, in its plain first form: a line is a task, a line that begins with `/` is a command (design §21).

use std::sync::Arc;

use artoo_bus::SystemClock;
use artoo_protocol::message::Cause;
use artoo_protocol::ports::{Clock, MemoryService};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use rustyline::error::{ReadlineError, Signal};
use rustyline::{Behavior, Config, DefaultEditor, Editor};

use crate::args::{Options, TasksCommand};
use crate::commands;
use crate::failure::Failure;
use crate::past::Past;
use crate::resume::{self, Interrupted};
use crate::session::{Session, Show};
use crate::settings::{self, Environment, Settings};
use crate::signals::Signals;
use crate::system::{System, redactor};
use crate::terminal::Terminal;
use crate::{complain, notices, output, present};

const HELP: &str = "a line is a task; lines between \"\"\" and \"\"\" are one task
/tasks   what ran            /memory  what memory holds; /memory TEXT: what a plan for TEXT would be told
/remember TEXT   tells every later plan     /forget ID   removes a memory for good
/resume  finish an interrupted task (the newest, or the one that is named)
/audit   what the auditor saw   /model   which model answers
/undo    put back what the newest task overwrote or deleted (/undo TASK for another)
/help    this                /quit    leave (or Ctrl+D, or Ctrl+C twice)
Ctrl+C while a task runs stops the task only.";

/// Runs it until the person leaves.
///
/// # Errors
/// [`Failure`] when the system cannot be started.
pub async fn run(options: &Options, env: &Environment, show: Show) -> Result<u8, Failure> {
    let settings = settings::load(options, env)?;
    notices(&settings, show);
    let mut signals = Signals::listen()?;
    let terminal = Arc::new(Terminal::detect());
    let screen = tcgetattr(std::io::stdin()).ok();
    let redactor = redactor(&settings, env);
    let mut past = match &settings.session {
        Some(name) => Past::named(&settings.data_dir, name, redactor)?,
        None => Past::begun(&settings.data_dir, redactor),
    };
    let mut greeted = false;
    loop {
        let system = System::start(&settings, env, false).await?;
        let mut session = Session::new(system, terminal.clone(), show, past)?;
        if !std::mem::replace(&mut greeted, true) {
            greet(&settings);
        }
        let left = converse(&settings, &mut session, &mut signals, show).await;
        if let Some(screen) = &screen {
            // A signal may have come while the line editor had the terminal in its own mode.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, screen);
        }
        past = session.close(&mut signals).await;
        let task = match left {
            Ok(Left::ToResume(task)) => task,
            Ok(Left::ForGood) => break Ok(0),
            Ok(Left::Stopped) => break Ok(130),
            Err(failure) => break Err(failure),
        };
        // The roles of an interrupted task are built as they were then, so it gets a system of its own.
        past = take_up(&settings, env, show, *task, &terminal, &mut signals, past).await?;
        if signals.ends().is_some() {
            break Ok(130);
        }
    }
}

/// Who answers, and what was left unfinished.
fn greet(settings: &Settings) {
    output::note(&format!("artoo, {} · /help shows what else there is", settings.brain));
    for (_, summary) in resume::interrupted(&settings.data_dir)
        .unwrap_or_default()
        .iter()
        .take(3)
    {
        output::note(&format!("interrupted: {} · /resume finishes it", resume::line(summary)));
    }
}

/// Finishes an interrupted task. What goes wrong with it is told, and the conversation goes on.
async fn take_up(
    settings: &Settings,
    env: &Environment,
    show: Show,
    task: Interrupted,
    terminal: &Arc<Terminal>,
    signals: &mut Signals,
    past: Past,
) -> Result<Past, Failure> {
    let mut settings = settings.clone();
    let prepared = async {
        task.apply_to(&mut settings)?;
        let again = task.settle(&**terminal).await?;
        System::resume(&settings, env, false, &task, &again).await
    };
    let system = match prepared.await {
        Ok(system) => system,
        Err(failure) => {
            complain(&failure);
            return Ok(past);
        }
    };
    let mut session = Session::new(system, terminal.clone(), show, past)?;
    signals.forget_interrupts();
    match session.take_up(&task, signals).await {
        Ok(result) => present(&settings, &result, show),
        Err(failure) => complain(&failure),
    }
    Ok(session.close(signals).await)
}

/// How a conversation was left.
enum Left {
    ForGood,
    /// With a task, by a signal that meant the program.
    Stopped,
    ToResume(Box<Interrupted>),
}

async fn converse(
    settings: &Settings,
    session: &mut Session,
    signals: &mut Signals,
    show: Show,
) -> Result<Left, Failure> {
    let unreadable = |error: ReadlineError| Failure::failed(format!("the terminal cannot be read: {error}"));
    let history = settings.data_dir.join("history");
    // On the terminal itself, so that standard output holds results alone.
    let config = Config::builder().behavior(Behavior::PreferTerm).build();
    let mut editor = Editor::with_config(config).map_err(unreadable)?;
    // No history yet is no error.
    let _ = editor.load_history(&history);
    // Whether Ctrl+C was the last thing that happened.
    let mut interrupted = false;
    loop {
        let reading = tokio::task::spawn_blocking(move || {
            let line = read(&mut editor);
            (editor, line)
        });
        let (returned, line) = tokio::select! {
            read = reading => read.map_err(|e| Failure::failed(e.to_string()))?,
            why = signals.leave() => {
                output::note(&format!("\nartoo: {why}"));
                return Ok(Left::ForGood);
            }
        };
        editor = returned;
        let text = match line {
            Ok(text) => text,
            Err(ReadlineError::Interrupted | ReadlineError::Signal(Signal::Interrupt)) if !interrupted => {
                output::note("(Ctrl+C once more, or Ctrl+D, leaves)");
                interrupted = true;
                continue;
            }
            Err(ReadlineError::Signal(Signal::Resize)) => continue,
            Err(ReadlineError::Interrupted | ReadlineError::Signal(Signal::Interrupt) | ReadlineError::Eof) => {
                return Ok(Left::ForGood);
            }
            Err(error) => return Err(unreadable(error)),
        };
        interrupted = false;
        if text.trim().is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(text.as_str());
        let _ = editor.save_history(&history);
        if text.trim_start().starts_with('/') {
            if let Some(left) = command(text.trim(), settings, session).await {
                return Ok(left);
            }
            continue;
        }
        signals.forget_interrupts();
        match session.run(text.trim(), signals).await {
            Ok(result) => {
                interrupted = result.cause == Cause::Aborted;
                present(settings, &result, show);
            }
            Err(failure) => complain(&failure),
        }
        if signals.ends().is_some() {
            return Ok(Left::Stopped);
        }
    }
}

/// Commands that go to the memory of this process: its store is held, so that no other one could be asked.
fn is_about_memory(text: &str) -> bool {
    let name = text.split_whitespace().next().unwrap_or_default();
    matches!(name, "/memory" | "/remember" | "/forget")
}

async fn about_memory(text: &str, settings: &Settings, session: &Session) -> Result<(), Failure> {
    let Some(memory) = session.memory() else {
        return Err(Failure::usage("artoo runs without memory").hint("leave out --no-memory"));
    };
    let broken = |e: artoo_protocol::ports::MemoryError| Failure::failed(e.to_string());
    let memory = memory.opened().await.map_err(broken)?;
    memory.flush().await.map_err(broken)?;
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (name, rest, data) = (name.to_owned(), rest.trim().to_owned(), settings.data_dir.clone());
    let (records, now) = (memory.records(), SystemClock.now());
    // The store is waited for on a thread of its own.
    let done = tokio::task::spawn_blocking(move || match (name.as_str(), rest.as_str()) {
        ("/remember", wish) => commands::memory::remember(&records, wish, now).map(|(id, is_new)| {
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

/// One input: a line, or a block between `"""` and `"""`.
fn read(editor: &mut DefaultEditor) -> Result<String, ReadlineError> {
    let first = editor.readline("artoo> ")?;
    let Some(opened) = first.trim_start().strip_prefix("\"\"\"") else {
        return Ok(first);
    };
    let mut block = opened.to_owned();
    while !block.trim_end().ends_with("\"\"\"") {
        let line = editor.readline("  ... ")?;
        block.push('\n');
        block.push_str(&line);
    }
    Ok(block.trim_end().trim_end_matches("\"\"\"").trim().to_owned())
}

/// Runs a slash command; says how, when it means to leave.
async fn command(text: &str, settings: &Settings, session: &mut Session) -> Option<Left> {
    let data = &settings.data_dir;
    let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let named = Some(argument.trim()).filter(|named| !named.is_empty());
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
        _ if is_about_memory(text) => about_memory(text, settings, session).await,
        "/audit" => session
            .audit()
            .await
            .map(|report| output::result(&commands::audit::text(&report))),
        "/model" => {
            output::result(&format!("brain: {}\ntool:  {}", settings.brain, settings.tool));
            let judges = [
                ("judge", &settings.judges.own),
                ("second judge", &settings.judges.second),
            ];
            for (called, choice) in judges {
                if let Some(choice) = choice {
                    output::result(&format!("{called}: {choice}"));
                }
            }
            Ok(())
        }
        "/undo" => commands::undo::run(data, named, artoo_executor::undo::Unwilling::Leave, false),
        "/help" => {
            output::result(HELP);
            Ok(())
        }
        other => Err(Failure::usage(format!("there is no command `{other}`")).hint("/help lists those there are")),
    };
    if let Err(failure) = done {
        complain(&failure);
    }
    None
}

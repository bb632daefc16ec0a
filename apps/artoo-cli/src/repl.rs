//! The conversation on a terminal, in its plain first form: a line is a task, a line that begins with `/` is a command (design §21).

use std::sync::Arc;

use artoo_protocol::message::{Cause, Turn};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use rustyline::error::{ReadlineError, Signal};
use rustyline::{Behavior, Config, DefaultEditor, Editor};

use crate::args::{MemoryCommand, Options, TasksCommand};
use crate::commands;
use crate::failure::Failure;
use crate::resume::{self, Interrupted};
use crate::session::{Session, Show};
use crate::settings::{self, Environment, Settings};
use crate::signals::Signals;
use crate::system::System;
use crate::terminal::Terminal;
use crate::{complain, notices, output, present};

const HELP: &str = "a line is a task; lines between \"\"\" and \"\"\" are one task
/tasks   what ran            /memory  what memory holds
/resume  finish an interrupted task (the newest, or the one that is named)
/audit   what the auditor saw   /model   which model answers
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
    let mut history = Vec::new();
    let mut greeted = false;
    loop {
        let system = System::start(&settings, env, false)?;
        let mut session = Session::new(system, terminal.clone(), show)?.after(std::mem::take(&mut history));
        if !std::mem::replace(&mut greeted, true) {
            greet(&settings);
        }
        let left = converse(&settings, &mut session, &mut signals, show).await;
        if let Some(screen) = &screen {
            // A signal may have come while the line editor had the terminal in its own mode.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, screen);
        }
        history = session.close().await;
        let task = match left {
            Ok(Left::ToResume(task)) => task,
            Ok(Left::ForGood) => break Ok(0),
            Err(failure) => break Err(failure),
        };
        // The roles of an interrupted task are built as they were then, so it gets a system of its own.
        match take_up(&settings, env, show, *task, &terminal, &mut signals, &mut history).await {
            Ok(()) => {}
            Err(failure) => complain(&failure),
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

async fn take_up(
    settings: &Settings,
    env: &Environment,
    show: Show,
    task: Interrupted,
    terminal: &Arc<Terminal>,
    signals: &mut Signals,
    history: &mut Vec<Turn>,
) -> Result<(), Failure> {
    let mut settings = settings.clone();
    task.apply_to(&mut settings)?;
    let again = task.settle(&**terminal).await?;
    let system = System::resume(&settings, env, false, &task, &again)?;
    let mut session = Session::new(system, terminal.clone(), show)?.after(std::mem::take(history));
    signals.forget_interrupts();
    let ended = session.take_up(&task, signals).await;
    *history = session.close().await;
    present(&settings, &ended?, show);
    Ok(())
}

/// How a conversation was left.
enum Left {
    ForGood,
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
    }
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
    let done = match name {
        "/quit" | "/exit" => return Some(Left::ForGood),
        "/resume" => match resume::choose(data, Some(argument.trim()).filter(|named| !named.is_empty())) {
            Ok(Some(task)) => return Some(Left::ToResume(Box::new(task))),
            Ok(None) => {
                output::note("no task was interrupted");
                Ok(())
            }
            Err(failure) => Err(failure),
        },
        "/tasks" => commands::tasks::run(&TasksCommand::List { json: false }, data),
        "/memory" => commands::memory::run(&MemoryCommand::Stats { json: false }, data).await,
        "/audit" => session
            .audit()
            .await
            .map(|report| output::result(&commands::audit::text(&report))),
        "/model" => {
            output::result(&format!("brain: {}\ntool:  {}", settings.brain, settings.tool));
            Ok(())
        }
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

//! The conversation on a terminal: a line is a task, a line that begins with a known `/command` is a command (design §21).
//!
//! Owns the order of things: greeting, reading, running, resuming, leaving. Typing is [`editor`]'s, commands are [`commands`]'s.

mod commands;
mod editor;

use std::io::Write;
use std::sync::Arc;

use artoo_bus::journal::Redactor;
use artoo_protocol::message::Cause;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use rustyline::error::{ReadlineError, Signal};

use self::editor::{Editor, unreadable};
use crate::args::Options;
use crate::failure::Failure;
use crate::past::Past;
use crate::resume::{self, Interrupted};
use crate::session::{Session, Show};
use crate::settings::{self, Environment, Settings};
use crate::signals::Signals;
use crate::system::{System, redactor};
use crate::terminal::Terminal;
use crate::{complain, notices, output, present};

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
        Some(name) => Past::named(&settings.data_dir, name, redactor.clone())?,
        None => Past::begun(&settings.data_dir, redactor.clone()),
    };
    let mut greeted = false;
    loop {
        // What was pressed while the last task wound down was not meant for what begins now.
        signals.forget_interrupts();
        let system = tokio::select! {
            system = System::start(&settings, env, false) => system?,
            why = signals.next() => break Err(Failure { message: why.to_owned(), hint: None, code: 130 }),
        };
        let mut session = Session::new(system, terminal.clone(), show, past)?;
        if !std::mem::replace(&mut greeted, true) {
            greet(&settings);
        }
        let left = converse(&settings, &mut session, &mut signals, show, redactor.clone()).await;
        if let Some(screen) = &screen {
            // A signal may have come while the line editor had the terminal in its own mode.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, screen);
            if matches!(left, Ok(Left::Stopped)) {
                plain_pastes();
            }
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

/// Ends the mode in which a terminal marks what is pasted, which the line editor begins and a signal keeps it from ending.
fn plain_pastes() {
    if let Ok(mut terminal) = std::fs::File::options().write(true).open("/dev/tty") {
        let _ = terminal.write_all(b"\x1b[?2004l");
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
    signals.forget_interrupts();
    let prepared = async {
        let (data, task) = resume::take(&settings, &task)?;
        task.apply_to(&mut settings)?;
        let settled = task.settle(&**terminal).await?;
        let system = System::resume(&settings, env, false, data, &task, &settled).await?;
        Ok::<_, Failure>((system, task))
    };
    let prepared = tokio::select! {
        prepared = prepared => prepared,
        why = signals.next() => Err(Failure { message: why.to_owned(), hint: None, code: 130 }),
    };
    let (system, task) = match prepared {
        Ok(prepared) => prepared,
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
    redactor: Redactor,
) -> Result<Left, Failure> {
    let mut editor = Editor::new(settings, redactor)?;
    // Whether Ctrl+C was the last thing that happened.
    let mut interrupted = false;
    loop {
        let reading = tokio::task::spawn_blocking(move || {
            let line = editor.read();
            (editor, line)
        });
        let (returned, line) = tokio::select! {
            read = reading => read.map_err(|e| Failure::failed(e.to_string()))?,
            why = signals.leave() => {
                output::note(&format!("\nartoo: {why}"));
                return Ok(Left::Stopped);
            }
        };
        editor = returned;
        let text = match line {
            Ok(text) => text,
            // It meant the line.
            Err(ReadlineError::Interrupted | ReadlineError::Signal(Signal::Interrupt)) if editor.had_text() => {
                interrupted = false;
                continue;
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(Signal::Interrupt)) if !interrupted => {
                output::note("(Ctrl+C once more, or Ctrl+D, leaves)");
                interrupted = true;
                continue;
            }
            Err(ReadlineError::Signal(Signal::Resize)) => continue,
            Err(ReadlineError::Interrupted | ReadlineError::Signal(Signal::Interrupt) | ReadlineError::Eof) => {
                return Ok(Left::ForGood);
            }
            Err(error) => return Err(unreadable(&error)),
        };
        interrupted = false;
        if text.is_empty() {
            continue;
        }
        if commands::is_one(&text) {
            if let Some(left) = commands::run(&text, settings, session).await {
                return Ok(left);
            }
            continue;
        }
        signals.forget_interrupts();
        match session.run(&text, signals).await {
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

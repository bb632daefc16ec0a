//! The `artoo` binary: parse, run, exit with a code that tells the truth (design §14, §21).

mod args;
mod args_groups;
mod args_lab;
mod auditing;
mod commands;
mod data_folder;
mod dreaming;
mod failure;
mod late_memory;
mod live;
mod models;
mod output;
mod past;
mod plain_file;
mod progress;
mod prompts;
mod repl;
mod report;
mod resume;
mod role_settings;
mod roles;
mod serve;
mod session;
mod settings;
mod signals;
mod spending;
mod standing;
mod system;
mod terminal;
mod traces;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;

use artoo_bus::SystemClock;
use artoo_executor::undo::Unwilling;
use artoo_protocol::message::{Ending, FinalResult};
use artoo_protocol::ports::{Clock, Toolbox};
use artoo_protocol::text::printable;

use crate::args::{Cli, Command, McpCommand, Options};
use crate::data_folder::DataFolder;
use crate::failure::Failure;
use crate::past::Past;
use crate::session::{Session, Show};
use crate::settings::{Environment, Settings};
use crate::signals::Signals;
use crate::system::System;
use crate::terminal::Terminal;

fn main() -> ExitCode {
    artoo_executor::sandbox::enter_if_asked();
    let cli = match args::parse(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() {
                output::note(error.to_string().trim_end());
            } else {
                let _ = error.print();
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let mut code = dispatch(cli).unwrap_or_else(|failure| {
        complain(&failure);
        failure.code
    });
    if let Some(error) = output::lost() {
        output::note(&format!(
            "artoo: the result could not be written to standard output: {error}"
        ));
        code = code.max(1);
    }
    // Not by returning: a thread that still waits for the person's keyboard would hold the process.
    std::process::exit(i32::from(code))
}

/// What is wrong and what to do about it, on standard error.
fn complain(failure: &Failure) {
    output::note(&format!("artoo: {}", failure.message));
    if let Some(hint) = &failure.hint {
        output::note(&format!("  → {hint}"));
    }
}

fn dispatch(cli: Cli) -> Result<u8, Failure> {
    let env = settings::environment();
    let options = cli.options;
    match cli.command {
        Some(Command::Run { json, text }) => {
            let show = if json { Show::Json } else { shown(&options) };
            let text = if text.is_empty() { read_task()? } else { text.join(" ") };
            one_shot(&options, &env, &text, show)
        }
        None if std::io::stdin().is_terminal() => asynchronously(repl::run(&options, &env, shown(&options))),
        None => one_shot(&options, &env, &read_task()?, shown(&options)),
        Some(Command::Tasks(command)) => {
            commands::tasks::run(&command, &settings::data_dir(&options, &env)?).map(|()| 0)
        }
        Some(Command::Resume { task, json }) => {
            let show = if json { Show::Json } else { shown(&options) };
            resume(&options, &env, task.as_deref(), show)
        }
        Some(Command::Replay { task, json }) => {
            commands::replay::run(&settings::data_dir(&options, &env)?, &task, json).map(|()| 0)
        }
        Some(Command::Ggs(command)) => commands::ggs::run(&command, || settings::data_dir(&options, &env)).map(|()| 0),
        Some(Command::Memory(command)) => asynchronously(commands::memory::run(&command, &options, &env)),
        Some(Command::Audit(command)) => {
            commands::audit::run(&command, &settings::data_dir(&options, &env)?).map(|()| 0)
        }
        Some(Command::Report { task, html, json }) => {
            let price = spending::price(&settings::load_without_models(&options, &env)?);
            let data = settings::data_dir(&options, &env)?;
            commands::report::run(&data, &task, html.as_deref(), json, &price).map(|()| 0)
        }
        Some(Command::Undo { task, force, json }) => {
            let data = settings::data_dir(&options, &env)?;
            let _held = DataFolder::open(&data, SystemClock.now())?;
            let unwilling = if force { Unwilling::Replace } else { Unwilling::Leave };
            commands::undo::run(&data, task.as_deref(), unwilling, json).map(|()| 0)
        }
        Some(Command::Tools(command)) => {
            let settings = settings::load_without_models(&options, &env)?;
            asynchronously(async {
                let sandbox = artoo_executor::Sandbox::of_this_program();
                // Nothing is run.
                let tools = system::toolbox(&settings, &env, &sandbox, Vec::new()).await;
                commands::tools::run(&command, &tools.specs()).map(|()| 0)
            })
        }
        Some(Command::Mcp(McpCommand::List { json })) => {
            let settings = settings::load_without_models(&options, &env)?;
            asynchronously(async {
                commands::mcp::list(&settings, json).await;
                Ok(0)
            })
        }
        Some(Command::Mcp(command)) => {
            commands::mcp::change(&command, &settings::data_dir(&options, &env)?).map(|()| 0)
        }
        Some(Command::Models { command: None, json }) => asynchronously(commands::models::run(&options, &env, json)),
        Some(Command::Models {
            command: Some(command), ..
        }) => commands::keys::run(&command, &settings::data_dir(&options, &env)?).map(|()| 0),
        Some(Command::Config(command)) => commands::config::run(&command, &options, &env).map(|()| 0),
        Some(Command::Serve { mcp, http }) => asynchronously(serve::run(&options, &env, mcp, http.as_deref())),
        Some(Command::Completions { shell }) => {
            commands::packaging::completions(shell);
            Ok(0)
        }
        Some(Command::Man) => commands::packaging::man().map(|()| 0),
        Some(Command::Doctor { json }) => asynchronously(commands::doctor::run(&options, &env, json)),
    }
}

fn shown(options: &Options) -> Show {
    if options.quiet {
        Show::Nothing
    } else if options.verbose {
        Show::Everything
    } else if output::can_draw() {
        Show::Live
    } else {
        Show::Progress
    }
}

fn asynchronously<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    may_open_files()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    // A blocked read of the terminal must not hold the end.
    runtime.shutdown_background();
    done
}

/// Files that artoo must be able to open at once: what the runtime takes for itself before it can say that there are none left, and what the
/// smallest command needs beside that.
const FILES: usize = 32;

/// Whether the system lets this process work at all: without room for a few files the runtime breaks where it should say so.
fn may_open_files() -> Result<(), Failure> {
    let opened: std::io::Result<Vec<std::fs::File>> = (0..FILES).map(|_| std::fs::File::open("/dev/null")).collect();
    opened.map(drop).map_err(|error| {
        Failure::failed(format!(
            "artoo cannot open the {FILES} files that it needs at least: {error}"
        ))
        .hint("raise the limit of open files for this shell: ulimit -n 256")
    })
}

/// The task from standard input.
fn read_task() -> Result<String, Failure> {
    let mut input = std::io::stdin().lock();
    if input.is_terminal() {
        return Err(
            Failure::usage("there is no task").hint("say what to do, such as: artoo \"count the files in src\"")
        );
    }
    let mut bytes = Vec::new();
    let limit = session::TEXT_MAX as u64 + 1;
    (&mut input).take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > session::TEXT_MAX {
        return Err(session::too_long());
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::usage("the task on standard input is not UTF-8 text").hint("convert it, or name the file in the task")
    })?;
    Ok(text.trim().to_owned())
}

fn one_shot(options: &Options, env: &Environment, text: &str, show: Show) -> Result<u8, Failure> {
    session::check(text)?;
    let settings = settings::load(options, env)?;
    notices(&settings, show);
    asynchronously(async {
        let past = match &settings.session {
            Some(name) => Past::named(&settings.data_dir, name, system::redactor(&settings, env))?,
            None => Past::none(),
        };
        let mut signals = Signals::listen()?;
        let starting = System::start(&settings, env, show == Show::Nothing);
        let system = tokio::select! {
            system = starting => system?,
            why = signals.next() => return Err(Failure { message: why.to_owned(), hint: None, code: 130 }),
        };
        let mut session = Session::new(system, Arc::new(Terminal::detect()), show, past)?;
        let ended = session.run(text, &mut signals).await;
        // The person has the result before memory is put in order.
        if let Ok(result) = &ended {
            present(&settings, result, show);
        }
        session.close(&mut signals).await;
        Ok(ended?.cause.exit_code())
    })
}

/// Finishes what was interrupted.
fn resume(options: &Options, env: &Environment, task: Option<&str>, show: Show) -> Result<u8, Failure> {
    let mut settings = settings::load(options, env)?;
    let Some(task) = resume::choose(&settings.data_dir, task)? else {
        output::note("artoo: no task was interrupted; there is nothing to go on with");
        return Ok(0);
    };
    let (data, task) = resume::take(&settings, &task)?;
    task.apply_to(&mut settings)?;
    notices(&settings, show);
    asynchronously(async {
        let terminal = Arc::new(Terminal::detect());
        let mut signals = Signals::listen()?;
        let starting = async {
            let settled = task.settle(&*terminal).await?;
            System::resume(&settings, env, show == Show::Nothing, data, &task, &settled).await
        };
        let system = tokio::select! {
            system = starting => system?,
            why = signals.next() => return Err(Failure { message: why.to_owned(), hint: None, code: 130 }),
        };
        let mut session = Session::new(system, terminal, show, Past::none())?;
        let ended = session.take_up(&task, &mut signals).await;
        if let Ok(result) = &ended {
            present(&settings, result, show);
        }
        session.close(&mut signals).await;
        Ok(ended?.cause.exit_code())
    })
}

fn notices(settings: &Settings, show: Show) {
    if show != Show::Nothing {
        settings
            .notices
            .iter()
            .for_each(|notice| output::note(&format!("artoo: {notice}")));
    }
}

/// The result on standard output, everything about it on standard error.
fn present(settings: &Settings, result: &FinalResult, show: Show) {
    let text = progress::result_text(&result.output);
    if show != Show::Json && result.directive != Ending::Abandon && !text.is_empty() {
        output::result(&if std::io::stdout().is_terminal() {
            printable(&text)
        } else {
            text
        });
    }
    if show == Show::Nothing && result.directive == Ending::Accept {
        return;
    }
    let costs = commands::tasks::summary_of(&settings.data_dir, &result.task_id)
        .map(|summary| commands::tasks::costs_line(&summary.costs))
        .unwrap_or_default();
    output::note(&progress::ending(result, &costs));
}

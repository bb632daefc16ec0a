//! The command line as data: commands, options, and what `artoo TEXT` stands for (design §21).

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, CommandFactory, Parser, Subcommand};

pub use crate::args_groups::{
    AuditCommand, AuditTail, ConfigCommand, GgsCommand, KeyCommand, ListOptions, McpCommand, McpServerArgs,
    MemoryCommand, ModelsCommand, TasksCommand, ToolsCommand,
};

/// Carries out a task in plain language on this machine, and shows what it did.
#[derive(Debug, Parser)]
#[command(name = "artoo", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Cli {
    /// Options that every command takes.
    #[command(flatten)]
    pub options: Options,
    /// What to do; without one, a conversation on a terminal, or the task from standard input.
    #[command(subcommand)]
    pub command: Option<Command>,
}

const AFTER_HELP: &str = "`artoo \"TEXT\"` is short for `artoo run \"TEXT\"`. Without a configured model the built-in offline model answers; \
it knows a small grammar and says so. Exit codes: 0 done, 1 abandoned, 2 usage or configuration, 3 no model, 4 refused, 5 budget, 130 aborted.";

/// Options that every command takes.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Model for everything: `openai:NAME`, `anthropic:NAME`, `gemini:NAME`, `ollama:NAME` or `builtin:offline`
    #[arg(long, global = true, value_name = "PROVIDER:NAME")]
    pub model: Option<String>,
    /// Model for perceiving, planning and merging; the other one executes and validates
    #[arg(long, global = true, value_name = "PROVIDER:NAME")]
    pub brain_model: Option<String>,
    /// Where artoo keeps its journals, memory and audit log [default: ~/.artoo]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where new files go [default: ~/artoo_workspace]
    #[arg(long, global = true, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Working directory of commands and relative paths
    #[arg(long, global = true, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Paths within which creating and changing files needs no question
    #[arg(long, global = true, value_name = "PATH", num_args = 1)]
    pub scope: Vec<PathBuf>,
    /// Grants an action beforehand, such as `destroy:/tmp/build/*`; the glob is matched against the whole command or absolute path
    #[arg(long, global = true, value_name = "EFFECT:GLOB")]
    pub allow: Vec<String>,
    /// Ends the task when it has used so many tokens
    #[arg(long, global = true, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Ends the task when it has cost so much, by the `[prices]` of config.toml
    #[arg(long, global = true, value_name = "AMOUNT")]
    pub max_cost: Option<f64>,
    /// Ends the task after so much time, waiting for you left out: `90s`, `5m` [default: 5m]
    #[arg(long, global = true, value_name = "TIME")]
    pub time_budget: Option<String>,
    /// How often the plan may be changed [default: 3]
    #[arg(long, global = true, value_name = "N")]
    pub max_replans: Option<u32>,
    /// Neither reads nor writes memory
    #[arg(long, global = true)]
    pub no_memory: bool,
    /// Goes on with the conversation of this name, or begins it; `last` is the last one on a terminal
    #[arg(long, global = true, value_name = "NAME")]
    pub session: Option<String>,
    /// Records every model exchange into a file
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Answers model calls from a recorded file
    #[arg(long, global = true, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Prints nothing but the result and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Prints every message on the bus as it passes
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs one task
    Run {
        /// Writes every message as a line of JSON; the last one is the FinalResult
        #[arg(long)]
        json: bool,
        /// The task; from standard input when left out
        #[arg(value_name = "TEXT")]
        text: Vec<String>,
    },
    /// What ran
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Finishes what was interrupted; nothing that is done is done again
    Resume {
        /// Its id, or the beginning or end of one; without it all are listed and the newest is taken
        task: Option<String>,
        /// Writes every message as a line of JSON; the last one is the FinalResult
        #[arg(long)]
        json: bool,
    },
    /// Derives every decision of a task anew from its journal, offline; exit 1 where one differs
    Replay {
        /// Its id, or the beginning or end of one
        task: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// The story of a task: plans, attempts, verdicts with their evidence, loss, memory, costs; as Markdown
    Report {
        /// Its id, or the beginning or end of one
        task: String,
        /// Writes one self-contained page with drawings into this file instead
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Puts back what artoo's own tools overwrote or deleted; the shell's doings are not among them
    Undo {
        /// The task's id, or the beginning or end of one; the newest that changed something without one
        task: Option<String>,
        /// Also what somebody else changed since; that is kept beside what was put back
        #[arg(long)]
        force: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// What memory holds
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// What the auditor saw
    #[command(subcommand)]
    Audit(AuditCommand),
    /// The controller on its own
    #[command(subcommand)]
    Ggs(GgsCommand),
    /// What the executor may use
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// MCP servers whose tools the executor may use
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Serves other programs and a browser on this machine, until the client leaves or a signal comes
    #[command(group(ArgGroup::new("front").required(true).multiple(true).args(["mcp", "http"])))]
    Serve {
        /// Takes tasks from another agent over the Model Context Protocol on standard input and output
        #[arg(long)]
        mcp: bool,
        /// Shows a page on this address of this machine, such as `127.0.0.1:8080`; port 0 takes one that is free
        #[arg(long, value_name = "ADDRESS")]
        http: Option<String>,
    },
    /// Which models are configured and answer, and what each provider in reach offers
    #[command(args_conflicts_with_subcommands = true)]
    Models {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Something else about models
        #[command(subcommand)]
        command: Option<ModelsCommand>,
    },
    /// What is configured, and by whom
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Completions for a shell, on standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The manual page, on standard output
    Man,
    /// Whether everything that artoo needs works on this machine
    Doctor {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Parses the arguments of the process; `artoo [options] TEXT` becomes `artoo [options] run TEXT`.
///
/// # Errors
/// clap's own error, which also carries `--help` and `--version`.
pub fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(with_implied_run(arguments))
}

fn with_implied_run(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let command = Cli::command();
    let takes_value = |flag: &str| {
        let (name, inline) = flag.split_once('=').map_or((flag, false), |(name, _)| (name, true));
        !inline
            && command.get_arguments().any(|arg| {
                let long = name.strip_prefix("--").is_some_and(|name| arg.get_long() == Some(name));
                long && arg.get_action().takes_values()
            })
    };
    let mut index = 1;
    while let Some(argument) = arguments.get(index) {
        let text = argument.to_string_lossy();
        if text == "--" {
            arguments.insert(index, "run".into());
            break;
        }
        if text.starts_with('-') && text.len() > 1 {
            index += if takes_value(&text) { 2 } else { 1 };
            continue;
        }
        let known = text == "help" || command.get_subcommands().any(|sub| sub.get_name() == text);
        if !known {
            arguments.insert(index, "run".into());
        }
        break;
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<OsString> {
        std::iter::once("artoo")
            .chain(text.iter().copied())
            .map(OsString::from)
            .collect()
    }

    fn task(text: &[&str]) -> Option<String> {
        match parse(words(text)).unwrap().command {
            Some(Command::Run { text, .. }) => Some(text.join(" ")),
            _ => None,
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_bare_text_is_a_task() {
        assert_eq!(task(&["count the files"]).as_deref(), Some("count the files"));
        assert_eq!(task(&["count", "the", "tasks"]).as_deref(), Some("count the tasks"));
        assert_eq!(task(&["--model", "doctor", "count"]).as_deref(), Some("count"));
        assert_eq!(task(&["--data-dir=/x", "-q", "count"]).as_deref(), Some("count"));
        assert_eq!(task(&["--", "--odd text"]).as_deref(), Some("--odd text"));
        assert_eq!(task(&[""]).as_deref(), Some(""));
        assert_eq!(task(&["run", "--json", "x"]).as_deref(), Some("x"));
        assert_eq!(task(&["doctor"]), None);
        assert!(parse(words(&["-q"])).unwrap().command.is_none());
    }

    #[test]
    fn options_may_stand_before_or_after() {
        let cli = parse(words(&["count it", "--max-replans", "1"])).unwrap();
        assert_eq!(cli.options.max_replans, Some(1));
        let cli = parse(words(&["--data-dir", "d", "tasks", "list"])).unwrap();
        assert_eq!(cli.options.data_dir, Some("d".into()));
    }

    fn describe(page: &mut String, command: &mut clap::Command, path: &str) {
        use std::fmt::Write as _;
        let help = command
            .clone()
            .disable_help_subcommand(true)
            .term_width(100)
            .render_help()
            .to_string();
        write!(page, "\n## {path}\n\n```text\n{}\n```\n", help.trim_end()).unwrap();
        for sub in command
            .clone()
            .get_subcommands_mut()
            .filter(|sub| sub.get_name() != "help")
        {
            // Global options stand on the first page once; repeating them on every page would hide what is particular.
            let mut own = sub
                .clone()
                .mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg });
            let path = format!("{path} {}", sub.get_name());
            own = own.bin_name(path.clone());
            describe(page, &mut own, &path);
        }
    }

    #[test]
    fn the_command_line_page_is_up_to_date() {
        let mut page = String::from(
            "# Command line\n\n<!-- written by `UPDATE_DOCS=1 cargo test -p artoo-cli`; do not edit -->\n\nSee design §21. Every command also takes the options of the first page.\n",
        );
        describe(&mut page, &mut Cli::command(), "artoo");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            stored == page,
            "docs/cli.md is stale: run UPDATE_DOCS=1 cargo test -p artoo-cli"
        );
    }
}

//! The command line as data: commands, options, and what `artoo TEXT` stands for (design §21).

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::args_lab::{CalibrateArgs, SimulateArgs};

/// Carries out a task in plain language on this machine, and shows what it did.
#[derive(Debug, Parser)]
#[command(name = "artoo", version, about, after_help = AFTER_HELP, max_term_width = 100)]
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
    /// Model for everything: `openai:NAME`, `ollama:NAME` or `builtin:offline`
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
    /// Whether everything that artoo needs works on this machine
    Doctor {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// `artoo tasks …`
#[derive(Debug, Subcommand)]
pub enum TasksCommand {
    /// Every task, newest first
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// One task: plan, attempts, verdicts, ending, costs
    Show {
        /// Its id, or the beginning or end of one
        task: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// The journal of a task, a line a record
    Log {
        /// Its id, or the beginning or end of one
        task: String,
        /// The records as they are stored
        #[arg(long)]
        json: bool,
    },
    /// Drops a task's journal and what was kept to undo it
    Rm {
        /// Its id, or the beginning or end of one
        task: String,
    },
}

/// `artoo memory …`
#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// How much of what is held, how much of it is said twice, what dreams have cost
    Stats {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Memories, newest first
    List(ListOptions),
    /// One memory, and what each entry of its group adds to the potentials
    Show {
        /// Its id, or the beginning or end of one
        id: String,
        /// As seen at this time (RFC 3339) instead of now
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// The potentials, rules and lessons of a group
    Query {
        /// Such as `intent:count_rust_files` or `tool:shell`
        space: String,
        /// Such as `env:local`
        entity: String,
        /// As seen at this time (RFC 3339) instead of now
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
        /// Draws the potentials over time into this file
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// What a plan for this text would be told
    Recall {
        /// A task in words
        #[arg(value_name = "TEXT", required = true)]
        text: Vec<String>,
        /// With the potentials of this time (RFC 3339) instead of now
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Keeps something that every plan is to be told, until you forget it
    Remember {
        /// What always holds, such as "use yarn, not npm"
        #[arg(value_name = "TEXT", required = true)]
        text: Vec<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Removes a memory for good; a learned rule goes with what it was distilled from
    Forget {
        /// Its id, or the beginning or end of one
        id: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Puts memory in order now: promotes, demotes, forgets, and distils rules where a model is configured
    Dream {
        /// Only says what would be done
        #[arg(long)]
        dry_run: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Every memory as JSON, one a line, to standard output
    Export {
        /// Without what came after this time (RFC 3339)
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
        /// Accepted for clarity; an export is JSON always
        #[arg(long)]
        json: bool,
    },
    /// Takes in an export; what is known already stays as it is
    Import {
        /// The file; `-` for standard input
        file: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Compares everything derived with the records, changes nothing; exit 1 when something is wrong
    Verify {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// What `artoo memory list` lists.
#[derive(Debug, Args)]
pub struct ListOptions {
    /// Only this level: M raw events, K knowledge, C rules
    #[arg(long, value_name = "LEVEL", value_parser = ["M", "K", "C"])]
    pub level: Option<String>,
    /// Only this space, such as `tool:shell`
    #[arg(long, value_name = "SPACE")]
    pub space: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// Without what came after this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// `artoo audit …`
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// What was seen since the beginning of the log
    Report {
        /// Writes one self-contained page with plots into this file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// The latest records
    Tail(AuditTail),
    /// Checks every record, the chain, the head, and where given the checkpoints
    Verify {
        /// A file of signed checkpoints that the log must agree with
        #[arg(long, value_name = "FILE", requires = "public_key")]
        checkpoints: Option<PathBuf>,
        /// The operator's public key
        #[arg(long, value_name = "FILE", requires = "checkpoints")]
        public_key: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Makes a pair of keys for checkpoints: FILE and FILE.pub
    Key {
        /// Where the secret key goes; keep it away from the data folder
        file: PathBuf,
    },
    /// Checks the log and signs where it stands, in a file outside the data folder
    Checkpoint {
        /// The operator's secret key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// The file to which the checkpoint is added
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// `artoo audit tail`
#[derive(Debug, clap::Args)]
pub struct AuditTail {
    /// Goes on with what is written from now on, until it is interrupted
    #[arg(short, long)]
    pub follow: bool,
    /// How many records
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub lines: usize,
    /// Of this task: its id, or the beginning or end of one
    #[arg(long, value_name = "T")]
    pub task: Option<String>,
    /// Sent, received or done by R1 … R7, User or Runtime
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// A message such as `PlanDirective`, a deed such as `model_answered`, or `deed`, `finding`, `gap`, `note`
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Not before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Not after this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only what should not be: findings, gaps and notes; with a name, the findings of that detector
    #[arg(long, value_name = "DETECTOR", num_args = 0..=1, default_missing_value = "all")]
    pub anomaly: Option<String>,
    /// The records as they are stored
    #[arg(long)]
    pub json: bool,
}

/// `artoo ggs …`
#[derive(Debug, Subcommand)]
pub enum GgsCommand {
    /// The 24 cells
    Table {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Reads signals, one JSON object a line, and answers each with cell, macro-state and urgency
    Decide {
        /// Accepted for clarity; the answers are JSON always
        #[arg(long)]
        json: bool,
    },
    /// Reads ReplanRequest and OutcomeSummary messages, one a line, and answers as R7 would
    Step {
        /// Accepted for clarity; the answers are JSON always
        #[arg(long)]
        json: bool,
    },
    /// Compares the controller with other policies on simulated tasks, all with the same luck
    Simulate(SimulateArgs),
    /// Looks for better parameters and judges them on tasks that they were not fitted to; changes nothing
    Calibrate(CalibrateArgs),
    /// Every decision of the controller on one task, measured anew from its journal; exit 1 when one differs from the record
    Explain {
        /// Its id, or the beginning or end of one
        task: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// `artoo mcp …`
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Starts each, and says what it offers
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Adds one to the user's config.toml
    Add(McpServerArgs),
    /// Takes one out of it
    Remove {
        /// Its name
        name: String,
    },
}

/// A server, as given on the command line.
#[derive(Debug, Args)]
pub struct McpServerArgs {
    /// Stands in front of its tools' names
    pub name: String,
    /// Address of a server on the network, instead of a command
    #[arg(long)]
    pub url: Option<String>,
    /// Variable that holds the token for that server
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    pub token_env: Option<String>,
    /// Variable that is passed to the command although it looks like a secret
    #[arg(long, value_name = "VARIABLE", num_args = 1)]
    pub pass_env: Vec<String>,
    /// What its tools do at most, if you vouch for it [default: external, which is always asked about]
    #[arg(long, value_parser = ["read", "fetch", "create", "modify", "destroy", "external"])]
    pub effect: Option<String>,
    /// The command and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// `artoo tools …`
#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// Their names, and what each is for
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// How they are described to the model, arguments included
    Schema {
        /// Only of this one
        tool: Option<String>,
        /// Accepted for clarity; the answer is JSON always
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

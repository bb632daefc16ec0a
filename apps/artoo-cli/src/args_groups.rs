//! What can be said behind the commands that are groups of commands (design §21).

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::args_lab::{CalibrateArgs, SimulateArgs};

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
    /// Reads everything and mends what can be mended; damaged files are kept aside; exit 1 when something is lost
    Repair {
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
    /// A message such as `PlanDirective`, a deed such as `model_answered`, or `deed`, `finding`, `gap`, `note`, `counts`
    #[arg(long = "type", value_name = "TYPE", value_parser = PossibleValuesParser::new(artoo_auditor::tail::kinds()), ignore_case = true, hide_possible_values = true)]
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

/// `artoo config …`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Every setting that is in force, and who said it; of keys only where they lie
    Show {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Where your settings file is, whether or not it is there
    Path,
}

/// `artoo models …`
#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// Keys that artoo keeps for you, in the system's keyring where there is one
    #[command(subcommand)]
    Key(KeyCommand),
}

/// `artoo models key …`
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Keeps a provider's key; it is read from standard input and not shown
    Set {
        /// The provider
        #[arg(value_parser = PossibleValuesParser::new(KEY_HOLDERS))]
        provider: String,
    },
    /// Forgets it
    Rm {
        /// The provider
        #[arg(value_parser = PossibleValuesParser::new(KEY_HOLDERS))]
        provider: String,
    },
}

/// Providers that want a key.
const KEY_HOLDERS: [&str; 3] = ["openai", "anthropic", "gemini"];

//! The options of the controller's laboratory (design §12).

use std::path::PathBuf;

use clap::Args;

/// `artoo ggs simulate`
#[derive(Clone, Debug, Args)]
pub struct SimulateArgs {
    /// Everything follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Tasks of each family and skill
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub tasks: u64,
    /// Families of tasks; all without it
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub families: Vec<String>,
    /// Skills of planners, each from 0 to 1
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [0.2, 0.5, 0.8])]
    pub skills: Vec<f64>,
    /// A file of parameters that is compared too, under its name; may be repeated
    #[arg(long, value_name = "FILE")]
    pub params: Vec<PathBuf>,
    /// Writes results.csv, results.md, the pictures and index.html into this folder
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// `artoo ggs calibrate`
#[derive(Clone, Debug, Args)]
pub struct CalibrateArgs {
    /// Everything follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many sets of parameters may be tried
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub candidates: usize,
    /// Tasks of each family and skill
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub tasks: u64,
    /// Families to fit; without it transient-faults, wrong-approach, unequal-approaches, noisy-validators, slow-work, infeasible
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub families: Vec<String>,
    /// Skills of planners, each from 0 to 1
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [0.2, 0.5, 0.8])]
    pub skills: Vec<f64>,
    /// Fits the auditor's table of real tasks instead (`tuning.jsonl`): what it can judge is when to stop
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
    /// Chooses between all rules that the parameters name, not only between the gradients
    #[arg(long)]
    pub any_rule: bool,
    /// Where the search starts; the defaults without it
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Writes the proposed parameters into this file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Writes a picture of what each parameter does into this file (SVG)
    #[arg(long, value_name = "FILE")]
    pub sensitivity: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

//! R4a → R4b → R7: criteria, verdicts, outcomes and the gap (design §7, §10, §11).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::execute::ToolCall;
use crate::ids::{Slug, SubTaskId, TaskId};
use crate::units::{Millis, Unit01};

/// How a criterion may be judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only on tool evidence.
    Verifiable,
    /// On the text alone.
    #[default]
    Plausible,
}

/// What is counted by [`Check::Count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountOf {
    /// Lines of a file, or of the output.
    Lines,
    /// Files below a folder whose name matches the pattern.
    Files,
    /// Matches of the pattern in a file, or in the output.
    Matches,
}

/// How a count is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountOp {
    /// Equal.
    Eq,
    /// At least.
    Ge,
    /// At most.
    Le,
}

/// A check that a machine runs after the attempt; it reads the world and the tools' output, never a model's prose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Check {
    /// Every shell call whose command matches the pattern (all of them without one) ended with this status.
    ExitCode {
        /// Pattern over commands.
        #[serde(default)]
        command: Option<String>,
        /// Expected status.
        #[serde(default)]
        equals: i32,
    },
    /// The path exists.
    FileExists {
        /// Path.
        path: String,
    },
    /// The path does not exist.
    FileAbsent {
        /// Path.
        path: String,
    },
    /// The file's text matches.
    FileContains {
        /// Path.
        path: String,
        /// Regular expression.
        pattern: String,
    },
    /// What the tools put out matches.
    OutputMatches {
        /// Regular expression.
        pattern: String,
    },
    /// What the tools put out is this, but for white space around it.
    OutputEquals {
        /// Expected text.
        value: String,
    },
    /// A value inside a JSON document: of a file, else of the output.
    JsonPath {
        /// Path of the file.
        #[serde(default)]
        path: Option<String>,
        /// JSON pointer (RFC 6901).
        pointer: String,
        /// Expected value.
        equals: Value,
    },
    /// A count compared with a number.
    Count {
        /// What is counted.
        of: CountOf,
        /// File or folder; the output without one.
        #[serde(default)]
        path: Option<String>,
        /// Regular expression.
        #[serde(default)]
        pattern: Option<String>,
        /// Comparison.
        op: CountOp,
        /// Number compared with.
        value: u64,
    },
    /// The file's SHA-256.
    Sha256 {
        /// Path.
        path: String,
        /// Hex digest.
        equals: String,
    },
    /// The command, run as a read, exits with 0.
    CommandSucceeds {
        /// Command.
        command: String,
    },
}

/// One assertion that must hold. A plain string is read as `plausible` without a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Criterion {
    /// The assertion in words.
    pub criterion: String,
    /// How it may be judged.
    pub mode: Mode,
    /// How a machine decides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
}

impl<'de> Deserialize<'de> for Criterion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Plain(String),
            Full {
                criterion: String,
                #[serde(default)]
                mode: Mode,
                #[serde(default)]
                check: Option<Check>,
            },
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Plain(criterion) => Self {
                criterion,
                mode: Mode::Plausible,
                check: None,
            },
            Form::Full { criterion, mode, check } => Self { criterion, mode, check },
        })
    }
}

/// Why something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The approach ran and gave the wrong result.
    Logical,
    /// The environment prevented it: network, permission, missing path or tool.
    Environmental,
}

/// The two values of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It does not, or nothing shows that it does.
    Fail,
}

/// Who decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictSource {
    /// A machine check.
    Check,
    /// A rule in code.
    Rule,
    /// A model, on evidence.
    #[default]
    Model,
    /// Nobody: a model that had to judge could not be asked. Always a fail, and no change of plan cures it.
    NoJudge,
    /// Nobody: the machine check could not be run. Always a fail, and one that says nothing about the work.
    NoCheck,
}

/// The verdict on one criterion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CriterionVerdict {
    /// The criterion, word for word.
    pub criterion: String,
    /// Its mode.
    #[serde(default)]
    pub mode: Mode,
    /// The verdict.
    pub verdict: Verdict,
    /// Set when it is a fail.
    #[serde(default)]
    pub failure_class: Option<FailureClass>,
    /// What shows it.
    #[serde(default)]
    pub evidence: String,
    /// Who decided.
    #[serde(default)]
    pub source: VerdictSource,
}

/// One step of a subtask's trajectory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// From 1.
    pub attempt: u32,
    /// Share of the criteria that passed.
    pub score: Unit01,
    /// Those that did not, word for word.
    pub unmet_criteria: Vec<String>,
    /// The prevailing class among them.
    #[serde(default)]
    pub failure_class: Option<FailureClass>,
}

/// How a subtask ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeStatus {
    /// Every criterion passed.
    Matched,
    /// Some did not.
    Failed,
    /// An earlier group failed, so it was not started.
    NotRun,
}

/// The last word on a subtask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubTaskOutcome {
    /// The subtask.
    pub subtask_id: SubTaskId,
    /// The task it belongs to.
    pub parent_task_id: TaskId,
    /// What it was to do.
    #[serde(default)]
    pub intent: String,
    /// How it ended.
    pub status: OutcomeStatus,
    /// What it gave.
    #[serde(default)]
    pub output: Value,
    /// Why it failed.
    #[serde(default)]
    pub failure_reason: Option<String>,
    /// What was declared to hold.
    #[serde(default)]
    pub success_criteria: Vec<Criterion>,
    /// The verdicts of the last attempt.
    #[serde(default)]
    pub criteria_verdicts: Vec<CriterionVerdict>,
    /// Every attempt.
    #[serde(default)]
    pub gap_trajectory: Vec<Attempt>,
    /// What really happened in the last attempt.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// Absolute paths that all its attempts created or changed, for relative paths in later checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<String>,
    /// The earlier round in which it matched, when R4b counts it in this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_from: Option<u32>,
    /// The executor itself was not sure of it, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertain: Option<String>,
    /// R3 reported that it cannot be done.
    #[serde(default)]
    pub infeasible: bool,
    /// Law 1 stopped it.
    #[serde(default)]
    pub refused: bool,
    /// It broke on infrastructure.
    #[serde(default)]
    pub infrastructure: bool,
}

/// R4b's advice to R7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recommendation {
    /// Try again.
    #[default]
    Replan,
    /// It makes no sense to go on.
    Abandon,
}

/// The gap that R4b saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplanRequest {
    /// The task.
    pub task_id: TaskId,
    /// The class of the task.
    #[serde(default = "default_slug")]
    pub slug: Slug,
    /// The goal.
    #[serde(default)]
    pub intent: String,
    /// What is missing, in words.
    #[serde(default)]
    pub gap_summary: String,
    /// Those that failed; empty when the merged result was rejected.
    #[serde(default)]
    pub failed_subtasks: Vec<SubTaskId>,
    /// Corrections that R4a issued in this round.
    #[serde(default)]
    pub correction_count: u32,
    /// Running time of the task, waiting for a person left out.
    #[serde(default)]
    pub elapsed_ms: Millis,
    /// All outcomes, those not run among them.
    #[serde(default)]
    pub outcomes: Vec<SubTaskOutcome>,
    /// Verdicts on the task criteria that could be judged.
    #[serde(default)]
    pub task_verdicts: Vec<CriterionVerdict>,
    /// What matched, merged by code.
    #[serde(default)]
    pub merged_output: Value,
    /// R4b's advice.
    #[serde(default)]
    pub recommendation: Recommendation,
}

/// Everything matched and the merged result was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeSummary {
    /// The task.
    pub task_id: TaskId,
    /// The class of the task.
    #[serde(default = "default_slug")]
    pub slug: Slug,
    /// The goal.
    #[serde(default)]
    pub intent: String,
    /// One or two sentences.
    #[serde(default)]
    pub summary: String,
    /// Concrete data.
    #[serde(default)]
    pub merged_output: Value,
    /// Running time of the task, waiting for a person left out.
    #[serde(default)]
    pub elapsed_ms: Millis,
    /// All outcomes.
    #[serde(default)]
    pub outcomes: Vec<SubTaskOutcome>,
    /// Verdicts on the task criteria.
    #[serde(default)]
    pub task_verdicts: Vec<CriterionVerdict>,
}

fn default_slug() -> Slug {
    Slug::repair("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_string_is_a_plausible_criterion() {
        let plain: Criterion = serde_json::from_str(r#""it rhymes""#).unwrap();
        assert_eq!(
            plain,
            Criterion {
                criterion: "it rhymes".into(),
                mode: Mode::Plausible,
                check: None
            }
        );
        let full: Criterion = serde_json::from_str(
            r#"{"criterion":"a.txt holds 5","mode":"verifiable","check":{"kind":"file_contains","path":"a.txt","pattern":"^5$"}}"#,
        )
        .unwrap();
        assert!(matches!(full.check, Some(Check::FileContains { .. })));
        assert_eq!(
            serde_json::from_value::<Criterion>(serde_json::to_value(&full).unwrap()).unwrap(),
            full
        );
    }

    #[test]
    fn every_check_of_the_wire_format_is_read() {
        for check in [
            r#"{"kind":"exit_code","command":"cargo","equals":0}"#,
            r#"{"kind":"exit_code","equals":0}"#,
            r#"{"kind":"exit_code"}"#,
            r#"{"kind":"file_exists","path":"x"}"#,
            r#"{"kind":"file_absent","path":"x"}"#,
            r#"{"kind":"output_matches","pattern":"x"}"#,
            r#"{"kind":"output_equals","value":"x"}"#,
            r#"{"kind":"json_path","pointer":"/a/0","equals":null}"#,
            r#"{"kind":"count","of":"files","path":".","pattern":"rs$","op":"ge","value":3}"#,
            r#"{"kind":"sha256","path":"x","equals":"00"}"#,
            r#"{"kind":"command_succeeds","command":"true"}"#,
        ] {
            serde_json::from_str::<Check>(check).unwrap_or_else(|e| panic!("{check}: {e}"));
        }
    }
}

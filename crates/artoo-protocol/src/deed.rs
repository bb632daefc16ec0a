//! What a role does beside speaking: model calls, tool runs, checks, memory (design §16).
//!
//! Owns the vocabulary in which such acts are told to observers, and the table of which role may do which. A role never
//! sees a deed: its own acts are its [`Command`]s, of which this is the short form without contents.

use serde::{Deserialize, Serialize};

use crate::actor::{Answer, Command};
use crate::ids::{CallId, MegramId, TaskId};
use crate::model::{AnswerForm, Usage};
use crate::role::Role;
use crate::tool::EffectClass;
use crate::units::{Finite, Millis, Timestamp};

/// One act of a role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deed {
    /// Who.
    pub role: Role,
    /// For which task; memory is written without naming one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub act: Act,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Act {
    /// A model was asked.
    ModelAsked {
        /// Correlation.
        call: CallId,
        /// Name of the form of answer, or `tools`.
        form: String,
    },
    /// It answered.
    ModelAnswered {
        /// Correlation.
        call: CallId,
        /// The model's own name for itself.
        model: String,
        /// Tokens.
        usage: Usage,
        /// From request to answer.
        elapsed_ms: Millis,
        /// In the currency of the price table; 0 without one.
        #[serde(default)]
        cost: Finite,
    },
    /// It gave no answer.
    ModelFailed {
        /// Correlation.
        call: CallId,
        /// Why.
        error: String,
        /// Tokens that were used all the same.
        #[serde(default)]
        usage: Usage,
        /// In the currency of the price table; 0 without one.
        #[serde(default)]
        cost: Finite,
    },
    /// A tool call was looked at before it was made.
    Assessed {
        /// Correlation.
        call: CallId,
        /// The tool.
        tool: String,
    },
    /// A tool call was made.
    ToolRun {
        /// Correlation.
        call: CallId,
        /// The tool.
        tool: String,
        /// The worst class that was allowed.
        effect: EffectClass,
        /// Whether a person, or a grant given beforehand, allowed it.
        confirmed: bool,
    },
    /// A machine check was run.
    CheckRun {
        /// Correlation.
        call: CallId,
    },
    /// A text was written down for later steps of the task.
    Kept {
        /// Absolute path.
        path: String,
    },
    /// A memory was written.
    Stored {
        /// Which.
        megram: MegramId,
    },
    /// Memory was read.
    Recalled {
        /// Correlation.
        call: CallId,
    },
}

impl Act {
    /// Every name.
    pub const NAMES: [&'static str; 9] = [
        "model_asked",
        "model_answered",
        "model_failed",
        "assessed",
        "tool_run",
        "check_run",
        "kept",
        "stored",
        "recalled",
    ];

    /// The name used in JSON and in the table of duties.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ModelAsked { .. } => "model_asked",
            Self::ModelAnswered { .. } => "model_answered",
            Self::ModelFailed { .. } => "model_failed",
            Self::Assessed { .. } => "assessed",
            Self::ToolRun { .. } => "tool_run",
            Self::CheckRun { .. } => "check_run",
            Self::Kept { .. } => "kept",
            Self::Stored { .. } => "stored",
            Self::Recalled { .. } => "recalled",
        }
    }

    /// The short form of a command; `None` for speaking, which an envelope tells, and for stopping something.
    pub fn of(command: &Command) -> Option<Self> {
        match command {
            Command::Publish { .. } | Command::Cancel { .. } => None,
            Command::CallModel { call, request, .. } => Some(Self::ModelAsked {
                call: *call,
                form: match &request.form {
                    AnswerForm::Structured { name, .. } => name.clone(),
                    AnswerForm::Tools { .. } => "tools".to_owned(),
                },
            }),
            Command::Assess { call, invocation, .. } => Some(Self::Assessed {
                call: *call,
                tool: invocation.tool.clone(),
            }),
            Command::RunTool {
                call,
                invocation,
                permit,
                ..
            } => Some(Self::ToolRun {
                call: *call,
                tool: invocation.tool.clone(),
                effect: permit.effect,
                confirmed: permit.confirmed,
            }),
            Command::RunCheck { call, .. } => Some(Self::CheckRun { call: *call }),
            Command::Keep { path, .. } => Some(Self::Kept { path: path.clone() }),
            Command::Store { megram } => Some(Self::Stored {
                megram: megram.id.clone(),
            }),
            Command::Recall { call, .. } => Some(Self::Recalled { call: *call }),
        }
    }

    /// What a model's answer or failure cost; other answers are told by the envelopes that follow them.
    pub fn of_answer(call: CallId, answer: &Answer, cost: f64) -> Option<Self> {
        match answer {
            Answer::Model(Ok(reply)) => Some(Self::ModelAnswered {
                call,
                model: reply.model.clone(),
                usage: reply.usage,
                elapsed_ms: reply.elapsed_ms,
                cost: Finite::new(cost).unwrap_or_default(),
            }),
            Answer::Model(Err(error)) => Some(Self::ModelFailed {
                call,
                error: crate::text::one_line(&error.to_string(), 300),
                usage: error.spent().map(|(_, usage)| *usage).unwrap_or_default(),
                cost: Finite::new(cost).unwrap_or_default(),
            }),
            Answer::Assessed(_) | Answer::Ran(_) | Answer::Checked(_) | Answer::Recalled(_) => None,
        }
    }
}

/// Which role may do what beside speaking. What is not here, nobody may.
pub const DUTIES: &[(&str, &[Role])] = &[
    ("model_asked", &[Role::R1, Role::R2, Role::R3, Role::R4a, Role::R4b]),
    ("model_answered", &[Role::R1, Role::R2, Role::R3, Role::R4a, Role::R4b]),
    ("model_failed", &[Role::R1, Role::R2, Role::R3, Role::R4a, Role::R4b]),
    ("assessed", &[Role::R3]),
    ("tool_run", &[Role::R3]),
    ("check_run", &[Role::R4a, Role::R4b]),
    ("kept", &[Role::R2]),
    ("stored", &[Role::R5]),
    ("recalled", &[Role::R5]),
];

/// Whether a role may do this.
pub fn may(role: Role, act: &Act) -> bool {
    DUTIES
        .iter()
        .any(|(name, roles)| *name == act.name() && roles.contains(&role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_has_no_model_and_only_the_executor_acts_on_the_world() {
        let asked = Act::ModelAsked {
            call: CallId(1),
            form: "plan".into(),
        };
        let run = Act::ToolRun {
            call: CallId(1),
            tool: "shell".into(),
            effect: EffectClass::Read,
            confirmed: false,
        };
        for role in Role::ALL {
            assert_eq!(may(role, &run), role == Role::R3, "{role}");
        }
        assert!(may(Role::R4b, &asked) && !may(Role::R7, &asked) && !may(Role::R6, &asked));
        assert!(
            DUTIES.iter().all(|(_, roles)| !roles.contains(&Role::R6)),
            "the auditor does nothing"
        );
        assert!(
            DUTIES.iter().all(|(_, roles)| !roles.contains(&Role::R7)),
            "the controller only speaks"
        );
    }

    #[test]
    fn a_deed_is_one_flat_object() {
        let deed = Deed {
            role: Role::R5,
            task_id: None,
            at: Timestamp::from_millis(0),
            act: Act::Recalled { call: CallId(3) },
        };
        let text = serde_json::to_string(&deed).unwrap();
        assert_eq!(
            text,
            r#"{"role":"R5","at":"1970-01-01T00:00:00.000Z","act":"recalled","call":3}"#
        );
        assert_eq!(serde_json::from_str::<Deed>(&text).unwrap(), deed);
    }
}

//! What is asked of a language model and what comes back, whoever provides it (design §18).
//!
//! Owns the vocabulary only; reading a model's text, validating it against the schema and asking once more are done
//! behind the [`LanguageModel`](crate::ports::LanguageModel) port, so that a role sees either a fitting value or an error.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::message::Cause;
use crate::tool::ToolSpec;
use crate::units::Millis;

/// Which of the configured models is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// R1, R2, R4b, the Dreamer.
    Brain,
    /// R3, R4a.
    Tool,
    /// R4b, where the operator gave it a model of its own.
    Judge,
    /// The second judge beside R4a and R4b, a model of another provider.
    SecondJudge,
}

/// One message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    /// Fixed instructions.
    System {
        /// Text.
        content: String,
    },
    /// What the role presents.
    User {
        /// Text.
        content: String,
    },
    /// What the model said before.
    Assistant {
        /// Text, if any.
        #[serde(default)]
        content: Option<String>,
        /// Calls it asked for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ModelToolCall>,
    },
    /// The result of one of those calls.
    Tool {
        /// The call it answers.
        tool_call_id: String,
        /// Text.
        content: String,
    },
}

/// A call that the model asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelToolCall {
    /// The provider's id for it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments; a JSON string when the model's arguments were not JSON.
    pub arguments: Value,
}

/// In which form the answer is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AnswerForm {
    /// A JSON value that fits the schema.
    Structured {
        /// The schema's name on the wire, such as `plan`.
        name: String,
        /// JSON Schema.
        schema: Value,
    },
    /// Calls of these tools, or plain text.
    Tools {
        /// What is on offer.
        tools: Vec<ToolSpec>,
    },
}

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// Which model.
    pub tier: Tier,
    /// The conversation; the fixed part comes first so that providers can cache it.
    pub messages: Vec<ChatMessage>,
    /// The form of the answer.
    pub form: AnswerForm,
    /// Upper bound of the answer in tokens.
    #[serde(default)]
    pub max_output_tokens: Option<u32>,
}

impl ModelRequest {
    /// A request of one fixed and one variable message for a value that fits a schema.
    pub fn structured(tier: Tier, system: &str, user: String, name: &str, schema: Value) -> Self {
        Self {
            tier,
            messages: vec![
                ChatMessage::System {
                    content: system.to_owned(),
                },
                ChatMessage::User { content: user },
            ],
            form: AnswerForm::Structured {
                name: name.to_owned(),
                schema,
            },
            max_output_tokens: None,
        }
    }
}

/// What a call cost, as the provider tells it, or as artoo estimates it where an answer came and the provider tells nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt, cached ones among them.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Prompt tokens that the provider had cached.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Requests sent: 1, plus re-asks for a readable answer. Transport retries do not count.
    pub requests: u32,
    /// Whether some of the tokens are an estimate (design §19).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// Tokens of both kinds.
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Both together; what providers report is not trusted to stay small.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            requests: self.requests.saturating_add(other.requests),
            estimated: self.estimated || other.estimated,
        }
    }
}

/// A fitting answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The content.
    pub content: ModelContent,
    /// The model's own name for itself.
    pub model: String,
    /// What it cost.
    pub usage: Usage,
    /// From request to the whole answer, retries included.
    pub elapsed_ms: Millis,
}

/// The content of an answer, in the form that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ModelContent {
    /// Fits the schema that was asked for.
    Structured {
        /// The value.
        value: Value,
    },
    /// Tool calls; at least one.
    ToolCalls {
        /// Text beside them.
        #[serde(default)]
        text: Option<String>,
        /// The calls, in order.
        calls: Vec<ModelToolCall>,
    },
    /// Plain text.
    Text {
        /// The text; not empty.
        text: String,
    },
}

/// Why no answer came.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ModelError {
    /// The host cannot be reached, or went on failing until the retries were used up.
    #[error("the model cannot be reached: {message}")]
    Unreachable {
        /// What happened and what to do.
        message: String,
    },
    /// The provider refused the request (key, quota, unknown model, malformed request).
    #[error("the model's provider refused: {message}")]
    Rejected {
        /// HTTP status, 0 where there was none.
        status: u16,
        /// The provider's words, and what to do.
        message: String,
    },
    /// An answer came that is none: no content, cut off at the length limit, or declined by the model.
    #[error("the model gave no usable answer: {message}")]
    Unusable {
        /// Named: `empty choice`, `finish_reason length`, `refusal`, `malformed stream`, `stalled`, …
        message: String,
    },
    /// The answer could not be read as what was asked for, nor the second one.
    #[error("the model's answer could not be read: {message}")]
    Unreadable {
        /// The first defect.
        message: String,
    },
    /// The built-in offline model does not know the sentence.
    #[error("{message}")]
    NotUnderstood {
        /// One sentence that names the grammar and how to set a model.
        message: String,
    },
    /// It failed in one of the other ways, but after an answer that has its price. Made by [`ModelError::charged`].
    #[error("{error}")]
    Charged {
        /// Why no fitting answer came.
        error: Box<ModelError>,
        /// The model's own name for itself.
        model: String,
        /// What all requests of the call cost.
        usage: Usage,
    },
}

impl ModelError {
    /// Whether trying again within the task is pointless because there is no model.
    pub const fn is_no_model(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Rejected { .. } | Self::NotUnderstood { .. } => true,
            Self::Unusable { .. } | Self::Unreadable { .. } => false,
            Self::Charged { error, .. } => error.is_no_model(),
        }
    }

    /// The same failure with what was used until it failed; without tokens, just the failure.
    #[must_use]
    pub fn charged(self, model: &str, usage: Usage) -> Self {
        if usage.tokens() == 0 {
            return self;
        }
        Self::Charged {
            error: Box::new(self),
            model: model.to_owned(),
            usage,
        }
    }

    /// The failure without its price: whoever asks for the kind of a failure asks this one.
    pub fn bare(&self) -> &Self {
        match self {
            Self::Charged { error, .. } => error.bare(),
            Self::Unreachable { .. }
            | Self::Rejected { .. }
            | Self::Unusable { .. }
            | Self::Unreadable { .. }
            | Self::NotUnderstood { .. } => self,
        }
    }

    /// Which model used how much before it failed, if any did.
    pub fn spent(&self) -> Option<(&str, &Usage)> {
        match self {
            Self::Charged { model, usage, .. } => Some((model, usage)),
            Self::Unreachable { .. }
            | Self::Rejected { .. }
            | Self::Unusable { .. }
            | Self::Unreadable { .. }
            | Self::NotUnderstood { .. } => None,
        }
    }

    /// The cause of a task that ends before there is a plan, because of this (design §14).
    pub const fn cause(&self) -> Cause {
        if self.is_no_model() {
            Cause::NoModel
        } else {
            Cause::PlanningFailed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_failure_keeps_its_kind_and_its_words_when_it_has_a_price() {
        let failure = ModelError::Unusable {
            message: "refusal".into(),
        };
        let usage = Usage {
            input_tokens: 7,
            requests: 1,
            ..Usage::default()
        };
        let charged = failure.clone().charged("m", usage);
        assert_eq!((charged.bare(), charged.to_string()), (&failure, failure.to_string()));
        assert_eq!(charged.spent(), Some(("m", &usage)));
        assert!(!charged.is_no_model());
        let written = serde_json::to_value(&charged).unwrap();
        assert_eq!(
            written,
            json!({"kind": "charged", "error": {"kind": "unusable", "message": "refusal"}, "model": "m",
                "usage": {"input_tokens": 7, "output_tokens": 0, "cached_tokens": 0, "requests": 1}})
        );
        assert_eq!(serde_json::from_value::<ModelError>(written).unwrap(), charged);
        let gone = ModelError::Unreachable { message: "x".into() };
        assert!(gone.clone().charged("m", usage).is_no_model());
        // What cost nothing is written as ever.
        assert_eq!(
            gone.clone().charged(
                "m",
                Usage {
                    requests: 2,
                    ..Usage::default()
                }
            ),
            gone
        );
    }

    #[test]
    fn usage_of_old_journals_is_no_estimate() {
        let old = json!({"input_tokens": 1, "output_tokens": 2, "requests": 1});
        let usage: Usage = serde_json::from_value(old).unwrap();
        assert!(!usage.estimated);
        let guess = Usage {
            estimated: true,
            ..Usage::default()
        };
        let sum = usage.plus(guess).plus(Usage {
            input_tokens: u64::MAX,
            ..usage
        });
        assert_eq!(
            (sum.input_tokens, sum.output_tokens, sum.estimated),
            (u64::MAX, 4, true)
        );
        let written = serde_json::to_value(sum).unwrap();
        assert_eq!(serde_json::from_value::<Usage>(written).unwrap(), sum);
    }
}

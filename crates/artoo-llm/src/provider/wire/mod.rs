//! Requests and answers as they stand on the wire of each provider (design §18).
//!
//! Owns JSON shapes. Reading is by hand and tolerant, because servers differ in every detail. Must not send anything.

mod anthropic;
mod collected;
mod errors;
mod gemini;
mod names;
mod openai;
mod written;

use artoo_protocol::model::{AnswerForm, ChatMessage};
use serde_json::Value;

pub(super) use self::collected::Collected;
pub(super) use self::errors::{Exhausted, ProviderError, provider_error};
pub(super) use self::written::written_call;
use super::dialect::Dialect;

/// The format in which a provider is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions, which nearly every server understands, Ollama and llama.cpp among them.
    #[default]
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
}

/// One request, before it is put in a provider's words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    pub model: &'a str,
    pub messages: &'a [ChatMessage],
    pub form: &'a AnswerForm,
    /// Upper bound of the answer in tokens.
    pub limit: Option<u32>,
    pub dialect: Dialect,
}

impl Wire {
    /// The environment variable that holds a key for this format, by convention.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "OPENAI_API_KEY",
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
        }
    }

    /// The provider's own address.
    pub fn default_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        }
    }

    /// The body of a request.
    pub(super) fn body(self, ask: &Ask<'_>) -> Value {
        match self {
            Self::OpenAi => openai::body(ask),
            Self::Anthropic => anthropic::body(ask),
            Self::Gemini => gemini::body(ask),
        }
    }

    /// Takes in a document, or one event; whether it says that nothing follows.
    pub(super) fn absorb(self, collected: &mut Collected, event: &Value) -> bool {
        match self {
            Self::OpenAi => {
                openai::absorb(collected, event);
                // Said by `[DONE]`, which is no JSON.
                false
            }
            Self::Anthropic => anthropic::absorb(collected, event),
            Self::Gemini => {
                gemini::absorb(collected, event);
                // The end of the body ends it: usage may follow the reason to finish.
                false
            }
        }
    }
}

/// The schema as part of a prompt.
pub(super) fn schema_in_words(name: &str, schema: &Value) -> String {
    format!("Answer with one JSON object and nothing else. It must fit this JSON Schema (`{name}`):\n{schema}")
}

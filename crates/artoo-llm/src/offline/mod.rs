//! The built-in offline model, `builtin:offline`: no language model, and it says so (design §18).
//!
//! It lets a fresh machine do real work before any model is configured. It reads a documented small grammar (see
//! [`examples`]), answers the same structured requests as a provider, and refuses everything else in one sentence. It
//! keeps no state, never guesses, and says only what tools put out. Must not know that roles exist.

mod answers;
mod command;
mod form;
mod grammar;
mod kinds;
mod perform;
mod phrases;
mod rows;
mod step;
mod words;

use artoo_protocol::model::{AnswerForm, ModelContent, ModelError, ModelReply, ModelRequest, Usage};
use artoo_protocol::ports::LanguageModel;
use artoo_protocol::units::Millis;
use async_trait::async_trait;

/// The name under which it is configured and under which it signs its answers.
pub const NAME: &str = "builtin:offline";

const SET_A_MODEL: &str = "For anything else set a model: OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL, or \
     ANTHROPIC_API_KEY or GEMINI_API_KEY and --model anthropic:NAME or gemini:NAME, or --model ollama:NAME; `artoo doctor` checks it.";

/// The built-in offline model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offline;

#[async_trait]
impl LanguageModel for Offline {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let content = match &request.form {
            AnswerForm::Structured { name, schema: _ } => ModelContent::Structured {
                value: answers::answer(name, &request.messages)?,
            },
            AnswerForm::Tools { tools } => perform::answer(&request.messages, tools)?,
        };
        Ok(ModelReply {
            content,
            model: NAME.to_owned(),
            usage: Usage {
                requests: 1,
                ..Usage::default()
            },
            elapsed_ms: Millis(0),
        })
    }
}

/// A kind of sentence that the offline model knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// What it does, such as `count files`.
    pub name: &'static str,
    /// Sentences, as a person would write them.
    pub sentences: &'static [(&'static str, &'static str)],
}

impl Example {
    /// The sentences alone.
    pub fn written(&self) -> impl Iterator<Item = &'static str> {
        self.sentences.iter().map(|(sentence, _)| *sentence)
    }
}

/// The grammar by its examples, for help texts and documents; each pair is a sentence and the canonical sentence it means.
pub fn examples() -> impl Iterator<Item = Example> {
    rows::ROWS.iter().map(|row| Example {
        name: row.name,
        sentences: row.examples,
    })
}

fn not_understood() -> ModelError {
    ModelError::NotUnderstood {
        message: format!(
            "{NAME} is no language model and did not understand this: it knows only how to find, count and list files, count \
             lines and words, search for text, name the largest files, measure disk use, find duplicates, read a file, write a \
             quoted text or the result to a file, and chains of these with \"then\". {SET_A_MODEL}"
        ),
    }
}

#[cfg(test)]
mod tests;

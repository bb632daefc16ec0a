//! What R1 shows its model, and the schema of the answer (design §5, §18).
//!
//! Owns the words and their bounds. Decides nothing: what an answer may lead to is settled in `actor` and `guard`.

use std::fmt::Write as _;

use artoo_protocol::message::{ClarificationRequest, UserInput};
use artoo_protocol::model::{ModelRequest, Tier};
use artoo_protocol::prompt::{PromptError, section, with_laws};
use artoo_protocol::text::{head_tail, one_line};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Turns of the session that are shown, newest last.
const TURNS: usize = 5;
/// Characters shown of an earlier input, and of what came of it.
const TURN_CHARS: usize = 800;
/// Characters shown of the request; the task itself always keeps the whole.
const REQUEST_CHARS: usize = 20_000;
/// Characters shown of an answer to a question.
const ANSWER_CHARS: usize = 2_000;

/// The fixed texts of R1; by default those of the repository's `prompts` folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// Instructions, with the placeholder `{{laws}}`.
    pub system: String,
    /// The laws that fill it.
    pub laws: String,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            system: include_str!("../prompts/perceiver.md").to_owned(),
            laws: include_str!("../prompts/laws.md").to_owned(),
        }
    }
}

impl Prompts {
    /// The system message, the same for every call.
    ///
    /// # Errors
    /// [`PromptError`] when the text has other placeholders than `{{laws}}`.
    pub fn system_text(&self) -> Result<String, PromptError> {
        with_laws(&self.system, &self.laws)
    }
}

/// One round of questions with its answer.
#[derive(Clone, Debug)]
pub struct Round {
    /// What was asked.
    pub request: ClarificationRequest,
    /// The person's words; `None` while waiting for them.
    pub answer: Option<String>,
}

/// The schema `task_spec`. Only `intent` is demanded: a model that leaves out an empty field need not be asked again.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "slug": {"type": ["string", "null"]},
            "intent": {"type": "string"},
            "scope": {"type": ["string", "null"]},
            "deadline": {"type": ["string", "null"]},
            "clarify": {"type": ["array", "null"], "items": {"type": "string"}},
            "direct_answer": {"type": ["string", "null"]}
        },
        "required": ["intent"]
    })
}

/// The request for one reading of the input. `now` is the date and zone in words.
pub fn request(system: &str, input: &UserInput, rounds: &[Round], may_ask: bool, now: &str) -> ModelRequest {
    let user = [
        section("history", &history(input)),
        section("clarifications", &clarifications(rounds, may_ask)),
        section("now", now),
        section("request", &head_tail(&input.text, REQUEST_CHARS)),
    ]
    .concat();
    ModelRequest::structured(Tier::Brain, system, user, "task_spec", schema())
}

fn history(input: &UserInput) -> String {
    let skipped = input.history.len().saturating_sub(TURNS);
    let lines = input.history.iter().skip(skipped).enumerate().map(|(index, turn)| {
        let said = one_line(&turn.input, TURN_CHARS);
        let came = one_line(&turn.summary, TURN_CHARS);
        format!("{}. user: {said} / result: {came}\n", index + 1)
    });
    lines.collect()
}

fn clarifications(rounds: &[Round], may_ask: bool) -> String {
    let mut text = String::new();
    for round in rounds {
        for question in &round.request.questions {
            let _ = writeln!(text, "question: {question}");
        }
        let answer = round.answer.as_deref().unwrap_or_default().trim();
        let answer = if answer.is_empty() { "(empty)" } else { answer };
        let _ = writeln!(text, "answer: {}", head_tail(answer, ANSWER_CHARS));
    }
    if !rounds.is_empty() && !may_ask {
        text.push_str("No further question is possible: \"clarify\" must be [].\n");
    }
    text
}

//! A language model that answers from a script: each request takes the first rule that fits it.

use std::sync::atomic::{AtomicUsize, Ordering};

use artoo_protocol::Millis;
use artoo_protocol::model::{
    AnswerForm, ChatMessage, ModelContent, ModelError, ModelReply, ModelRequest, ModelToolCall, Usage,
};
use artoo_protocol::ports::LanguageModel;
use artoo_protocol::prompt::read_section;
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::scene::Mind;
use crate::surroundings::Reply;

type Rule = Box<dyn Fn(&ModelRequest) -> Option<Result<ModelReply, ModelError>> + Send + Sync>;

/// A script. A request that no rule fits is an error that names it, so that a test never goes on by luck.
#[derive(Default)]
pub struct Scripted {
    rules: Vec<Rule>,
}

impl Scripted {
    /// Adds a rule.
    #[must_use]
    pub fn rule(
        mut self,
        rule: impl Fn(&ModelRequest) -> Option<Result<ModelReply, ModelError>> + Send + Sync + 'static,
    ) -> Self {
        self.rules.push(Box::new(rule));
        self
    }

    /// Answers every structured request of this name with the same value.
    #[must_use]
    pub fn structured(self, name: &'static str, value: Value) -> Self {
        self.rule(move |request| (form_name(request) == name).then(|| Ok(structured(value.clone()))))
    }

    /// Answers the structured requests of this name one after the other, the last answer for all that follow.
    #[must_use]
    pub fn in_turn(self, name: &'static str, answers: Vec<Value>) -> Self {
        let count = AtomicUsize::new(0);
        self.rule(move |request| {
            let fits = form_name(request) == name;
            if fits {
                turn(&answers, &count).cloned().map(|value| Ok(structured(value)))
            } else {
                None
            }
        })
    }

    /// Does the subtasks whose intent holds `intent`: one reply for each request about them, over and over.
    #[must_use]
    pub fn works(self, intent: &'static str, replies: Vec<ModelReply>) -> Self {
        let (count, many) = (AtomicUsize::new(0), replies.len().max(1));
        self.rule(move |request| {
            let about = read_section(user_text(request), "subtask").unwrap_or_default();
            let fits = form_name(request) == "tools" && about.contains(intent);
            if fits {
                replies
                    .get(count.fetch_add(1, Ordering::Relaxed) % many)
                    .cloned()
                    .map(Ok)
            } else {
                None
            }
        })
    }

    /// Judges every criterion that it is asked about, for a subtask or for the task.
    #[must_use]
    pub fn judges(self, holds: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.rule(move |request| {
            let name = form_name(request);
            if !matches!(name, "criterion_verdicts" | "merge_verdict") {
                return None;
            }
            let verdicts: Vec<Value> = criteria(request)
                .iter()
                .map(|words| verdict(words, holds(words)))
                .collect();
            Some(Ok(structured(
                json!({"verdicts": verdicts, "summary": "Merged.", "merged_output": null}),
            )))
        })
    }

    /// As the mind of a [`Scene`](crate::Scene) that takes so long for each answer.
    pub fn into_mind(self, takes: Millis) -> Mind {
        Box::new(move |_, request| Reply {
            after: takes,
            value: self.answer(request),
        })
    }

    /// Answers a request.
    ///
    /// # Errors
    /// What the script says, or [`ModelError::Unusable`] when no rule fits.
    pub fn answer(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        self.rules.iter().find_map(|rule| rule(request)).unwrap_or_else(|| {
            Err(ModelError::Unusable {
                message: format!("the script has no rule for a `{}` request", form_name(request)),
            })
        })
    }
}

#[async_trait]
impl LanguageModel for Scripted {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        self.answer(request)
    }
}

/// The schema's name, or `tools`.
pub fn form_name(request: &ModelRequest) -> &str {
    match &request.form {
        AnswerForm::Structured { name, .. } => name,
        AnswerForm::Tools { .. } => "tools",
    }
}

/// The text of the last user message.
pub fn user_text(request: &ModelRequest) -> &str {
    request
        .messages
        .iter()
        .rev()
        .find_map(|message| match message {
            ChatMessage::User { content } => Some(content.as_str()),
            ChatMessage::System { .. } | ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => None,
        })
        .unwrap_or_default()
}

/// The criteria that a validator asks about, word for word.
pub fn criteria(request: &ModelRequest) -> Vec<String> {
    let listed = read_section(user_text(request), "criteria").unwrap_or_default();
    let words = |line: &str| line.split_once(". ").map(|(_, words)| words.to_owned());
    listed.lines().filter_map(words).collect()
}

/// A verdict as a model gives it.
pub fn verdict(criterion: &str, holds: bool) -> Value {
    if holds {
        json!({"criterion": criterion, "verdict": "pass", "evidence": "it is shown"})
    } else {
        json!({"criterion": criterion, "verdict": "fail", "failure_class": "logical", "evidence": "it is wrong"})
    }
}

fn turn<'a, T>(items: &'a [T], count: &AtomicUsize) -> Option<&'a T> {
    let at = count.fetch_add(1, Ordering::Relaxed);
    items.get(at).or_else(|| items.last())
}

/// How many tool results the conversation holds.
pub fn tool_results(request: &ModelRequest) -> usize {
    request
        .messages
        .iter()
        .filter(|message| matches!(message, ChatMessage::Tool { .. }))
        .count()
}

/// A structured answer.
pub fn structured(value: Value) -> ModelReply {
    reply(ModelContent::Structured { value })
}

/// A plain text answer.
pub fn text_reply(text: &str) -> ModelReply {
    reply(ModelContent::Text { text: text.to_owned() })
}

/// An answer with one tool call.
pub fn tool_reply(name: &str, arguments: Value) -> ModelReply {
    reply(ModelContent::ToolCalls {
        text: None,
        calls: vec![ModelToolCall {
            id: "call-1".into(),
            name: name.into(),
            arguments,
        }],
    })
}

/// An answer with this content.
pub fn reply(content: ModelContent) -> ModelReply {
    let usage = Usage {
        input_tokens: 100,
        output_tokens: 10,
        cached_tokens: 0,
        requests: 1,
        estimated: false,
    };
    ModelReply {
        content,
        model: "scripted".into(),
        usage,
        elapsed_ms: Millis(0),
    }
}

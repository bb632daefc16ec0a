//! A language model that answers from a script: each request takes the first rule that fits it.

use artoo_protocol::Millis;
use artoo_protocol::model::{
    AnswerForm, ChatMessage, ModelContent, ModelError, ModelReply, ModelRequest, ModelToolCall, Usage,
};
use artoo_protocol::ports::LanguageModel;
use async_trait::async_trait;
use serde_json::Value;

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

fn reply(content: ModelContent) -> ModelReply {
    let usage = Usage {
        input_tokens: 100,
        output_tokens: 10,
        cached_tokens: 0,
        requests: 1,
    };
    ModelReply {
        content,
        model: "scripted".into(),
        usage,
        elapsed_ms: Millis(0),
    }
}

//! What a request says, without what differs from run to run (design §18).
//!
//! Owns the normal form: identifiers, times, call ids and the caller's own replacements. Must not know files.

use std::sync::LazyLock;

use artoo_protocol::model::{AnswerForm, ChatMessage, ModelRequest};
use regex::Regex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::secret::mask;

/// Text of one run, such as a temporary path, and the mark that stands for it in the cassette.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// As it is in this run.
    pub text: String,
    /// As it is on the cassette, such as `<workspace>`.
    pub mark: String,
}

/// Parts that are never the same twice.
static VOLATILE: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (r"(?s)<now>\n.*?\n</now>", "<now/>"),
        // What tools there are depends on the machine and grows with every version.
        (r"(?s)<tools>\n.*?\n</tools>", "<tools/>"),
        (
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            "<uuid>",
        ),
        (
            r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})",
            "<time>",
        ),
        // The day of an experience, as the planner is told it.
        (r"\(\d{4}-\d{2}-\d{2}\): ", "(<day>): "),
        // The eight hex digits that make a task id unique.
        (r"\b([a-z][a-z0-9_]*)_[0-9a-f]{8}\b", "${1}_<run>"),
    ]
    .into_iter()
    .filter_map(|(pattern, mark)| Some((Regex::new(pattern).ok()?, mark)))
    .collect()
});

/// The normal form with the replacements of one run.
pub(super) struct Normal {
    replacements: Vec<Replacement>,
}

impl Normal {
    pub fn new(mut replacements: Vec<Replacement>) -> Self {
        replacements.retain(|replacement| !replacement.text.is_empty() && !replacement.mark.is_empty());
        // A path inside another one has to go first.
        replacements.sort_by_key(|replacement| std::cmp::Reverse(replacement.text.len()));
        Self { replacements }
    }

    /// Text of this run as it stands on the cassette.
    pub fn recorded(&self, text: &str) -> String {
        let replaced = self.replacements.iter();
        replaced.fold(text.to_owned(), |text, replacement| {
            text.replace(&replacement.text, &replacement.mark)
        })
    }

    /// An answer of the cassette as it would have been in this run.
    pub fn restore<T: Serialize + DeserializeOwned>(&self, answer: &T) -> Option<T> {
        let mut value = serde_json::to_value(answer).ok()?;
        each_text(&mut value, &|text| {
            let replaced = self.replacements.iter();
            replaced.fold(text.to_owned(), |text, replacement| {
                text.replace(&replacement.mark, &replacement.text)
            })
        });
        serde_json::from_value(value).ok()
    }

    /// What a request says, line by line, each with its place: two requests are the same when these are.
    ///
    /// Schemas count by their names only, and which tools are on offer does not count at all: a new tool or a better wording
    /// must not make a recording worthless. Which tools a recorded answer called shows when they run.
    pub fn key(&self, request: &ModelRequest) -> Vec<String> {
        let mut key = vec![format!("tier: {:?}", request.tier).to_lowercase()];
        match &request.form {
            AnswerForm::Structured { name, schema: _ } => key.push(format!("form: {name}")),
            AnswerForm::Tools { tools: _ } => key.push("form: tools".to_owned()),
        }
        for (number, message) in request.messages.iter().enumerate() {
            let (role, text) = spoken(message);
            let text = self.normalised(&text);
            key.extend(
                text.lines()
                    .map(|line| format!("message {} ({role}): {line}", number + 1)),
            );
        }
        key
    }

    fn normalised(&self, text: &str) -> String {
        let recorded = mask(&self.recorded(text), &[]);
        let volatile = VOLATILE.iter();
        volatile.fold(recorded, |text, (pattern, mark)| {
            pattern.replace_all(&text, *mark).into_owned()
        })
    }
}

/// A message as a role and text; the ids of calls are left out.
fn spoken(message: &ChatMessage) -> (&'static str, String) {
    match message {
        ChatMessage::System { content } => ("system", content.clone()),
        ChatMessage::User { content } => ("user", content.clone()),
        ChatMessage::Assistant { content, tool_calls } => {
            let calls = tool_calls
                .iter()
                .map(|call| format!("{} {}", call.name, call.arguments));
            let lines: Vec<String> = content.iter().cloned().chain(calls).collect();
            ("assistant", lines.join("\n"))
        }
        ChatMessage::Tool {
            tool_call_id: _,
            content,
        } => ("tool", content.clone()),
    }
}

/// Changes every text inside a JSON value, keys left alone.
pub(super) fn each_text(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

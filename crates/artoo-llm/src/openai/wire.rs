//! Requests and answers as they stand on the wire of OpenAI-compatible chat (design §18).
//!
//! Owns JSON shapes. Reading is by hand and tolerant, because servers differ in every detail: lists or text as content,
//! arguments as text or object, indexes missing or all zero, usage absent.

use artoo_protocol::model::{AnswerForm, ChatMessage, ModelToolCall, Usage};
use artoo_protocol::tool::ToolSpec;
use serde_json::{Map, Value, json};

use super::dialect::{Dialect, Format, Streaming, TokenLimit};
use crate::reader;

/// Most tool calls of one answer that are kept.
const MAX_CALLS: usize = 64;

/// The body of a request.
pub(super) fn body(
    model: &str,
    messages: &[ChatMessage],
    form: &AnswerForm,
    limit: Option<u32>,
    dialect: Dialect,
) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), json!(model));
    let mut sent: Vec<Value> = messages.iter().map(message).collect();
    match form {
        AnswerForm::Structured { name, schema } => {
            if dialect.format != Format::Schema {
                append_to_last_user(&mut sent, &schema_in_words(name, schema));
            }
            match dialect.format {
                Format::Schema => {
                    let schema = json!({"name": name, "schema": schema});
                    body.insert(
                        "response_format".into(),
                        json!({"type": "json_schema", "json_schema": schema}),
                    );
                }
                Format::JsonObject => {
                    body.insert("response_format".into(), json!({"type": "json_object"}));
                }
                Format::Plain => {}
            }
        }
        AnswerForm::Tools { tools } if tools.is_empty() => {}
        AnswerForm::Tools { tools } => {
            body.insert("tools".into(), tools.iter().map(tool).collect());
        }
    }
    body.insert("messages".into(), Value::Array(sent));
    let limit_name = match dialect.limit {
        TokenLimit::MaxTokens => Some("max_tokens"),
        TokenLimit::MaxCompletionTokens => Some("max_completion_tokens"),
        TokenLimit::Unsaid => None,
    };
    if let (Some(name), Some(limit)) = (limit_name, limit) {
        body.insert(name.into(), json!(limit));
    }
    match dialect.streaming {
        Streaming::WithUsage => {
            body.insert("stream".into(), json!(true));
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
        Streaming::Plain => {
            body.insert("stream".into(), json!(true));
        }
        Streaming::Off => {}
    }
    Value::Object(body)
}

/// The schema as part of a prompt.
pub(super) fn schema_in_words(name: &str, schema: &Value) -> String {
    format!("Answer with one JSON object and nothing else. It must fit this JSON Schema (`{name}`):\n{schema}")
}

fn message(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::System { content } => json!({"role": "system", "content": content}),
        ChatMessage::User { content } => json!({"role": "user", "content": content}),
        ChatMessage::Assistant { content, tool_calls } if tool_calls.is_empty() => {
            json!({"role": "assistant", "content": content.as_deref().unwrap_or_default()})
        }
        ChatMessage::Assistant { content, tool_calls } => {
            let calls: Vec<Value> = tool_calls.iter().map(sent_call).collect();
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        ChatMessage::Tool { tool_call_id, content } => {
            json!({"role": "tool", "tool_call_id": tool_call_id, "content": content})
        }
    }
}

fn sent_call(call: &ModelToolCall) -> Value {
    // Servers parse what is sent back to them, so arguments that were no JSON object go back inside one.
    let arguments = match &call.arguments {
        Value::String(text) => json!({ "text": text }),
        other => other.clone(),
    };
    json!({"id": call.id, "type": "function", "function": {"name": wire_name(&call.name), "arguments": arguments.to_string()}})
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {"name": wire_name(&spec.name), "description": spec.description, "parameters": spec.input_schema}
    })
}

/// Providers allow letters, digits, `_` and `-` in names; `server.tool` has a dot.
fn wire_name(name: &str) -> String {
    let mut wire = String::new();
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') => wire.push(c),
            _ => wire.push_str("__"),
        }
    }
    wire
}

/// The tool's own name for a name on the wire.
pub(super) fn own_name(wire: &str, tools: &[ToolSpec]) -> String {
    let known = tools
        .iter()
        .find(|tool| tool.name == wire || wire_name(&tool.name) == wire);
    known.map_or_else(|| wire.to_owned(), |tool| tool.name.clone())
}

fn append_to_last_user(sent: &mut Vec<Value>, text: &str) {
    let last = sent
        .iter_mut()
        .rev()
        .find(|message| message.get("role") == Some(&json!("user")));
    match last.and_then(|message| message.get_mut("content")) {
        Some(Value::String(content)) => {
            content.push_str("\n\n");
            content.push_str(text);
        }
        _ => sent.push(json!({"role": "user", "content": text})),
    }
}

/// A provider's own account of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProviderError {
    /// The HTTP status that it names, if it names one.
    pub status: Option<u16>,
    /// Its words and code.
    pub words: String,
}

/// The error in a JSON document, if it is one.
pub(super) fn provider_error(document: &Value) -> Option<ProviderError> {
    let document = match document {
        Value::Array(items) => items.first()?,
        other => other,
    };
    let error = match document.get("error") {
        None | Some(Value::Null) if document.get("choices").is_some() => return None,
        Some(Value::Null) | None => document,
        Some(error) => error,
    };
    let text = |key: &str| error.get(key).and_then(Value::as_str);
    let words = error
        .as_str()
        .or_else(|| text("message"))
        .or_else(|| text("detail"))
        .or_else(|| text("error"))
        .map(str::to_owned)
        .or_else(|| error.get("detail").map(Value::to_string))?;
    let code = text("code").or_else(|| text("type")).or_else(|| text("status"));
    let status = [
        error.get("code"),
        error.get("status"),
        error.get("status_code"),
        document.get("code"),
    ]
    .into_iter()
    .flatten()
    .find_map(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()))
    .and_then(|code| u16::try_from(code).ok())
    .filter(|code| (400..600).contains(code));
    Some(ProviderError {
        status,
        words: match code {
            Some(code) if !words.contains(code) => format!("{words} ({code})"),
            _ => words,
        },
    })
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    text: String,
    object: Option<Value>,
}

/// An answer as it comes together, from one document or from the events of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Collected {
    pub text: String,
    pub refusal: String,
    pub finish: Option<String>,
    pub model: Option<String>,
    pub usage: Usage,
    calls: Vec<Call>,
}

impl Collected {
    /// Takes in a document, or one event.
    pub fn absorb(&mut self, event: &Value) {
        if let Some(model) = event
            .get("model")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
        {
            self.model.get_or_insert_with(|| model.to_owned());
        }
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            self.usage = read_usage(usage);
        }
        let choices = event.get("choices").and_then(Value::as_array);
        // Only the first choice was asked for.
        let first = choices.into_iter().flatten().find(|choice| {
            let index = choice.get("index").and_then(Value::as_u64);
            index.unwrap_or(0) == 0
        });
        let Some(choice) = first else { return };
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(finish.to_owned());
        }
        for part in [choice.get("message"), choice.get("delta")].into_iter().flatten() {
            push_text(&mut self.text, part.get("content"));
            push_text(&mut self.refusal, part.get("refusal"));
            for call in part.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                self.absorb_call(call);
            }
        }
        if choice.get("message").is_none() && choice.get("delta").is_none() {
            push_text(&mut self.text, choice.get("text"));
        }
    }

    fn absorb_call(&mut self, piece: &Value) {
        let function = piece.get("function").unwrap_or(piece);
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, name) = (text(piece, "id"), text(function, "name"));
        let index = piece.get("index").and_then(Value::as_u64);
        let position = self.calls.iter().rposition(|call| {
            let same_place = index.is_none() || call.index == index;
            // Some servers number every call 0: a new id with a name is a new call all the same.
            let other_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
            same_place && !other_id && (index.is_some() || name.is_empty())
        });
        let position = position.unwrap_or_else(|| {
            self.calls.push(Call {
                index,
                ..Call::default()
            });
            self.calls.len() - 1
        });
        let Some(call) = self.calls.get_mut(position) else {
            return;
        };
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
        match function.get("arguments") {
            Some(Value::String(text)) => call.text.push_str(text),
            Some(object @ Value::Object(_)) => call.object = Some(object.clone()),
            _ => {}
        }
    }

    /// The calls that were asked for; those without a name are none.
    pub fn calls(&self, tools: &[ToolSpec]) -> Vec<ModelToolCall> {
        let named = self.calls.iter().filter(|call| !call.name.is_empty()).take(MAX_CALLS);
        named
            .enumerate()
            .map(|(number, call)| ModelToolCall {
                id: if call.id.is_empty() {
                    format!("call_{}", number + 1)
                } else {
                    call.id.clone()
                },
                name: own_name(&call.name, tools),
                arguments: call
                    .object
                    .clone()
                    .unwrap_or_else(|| reader::read_arguments(&call.text)),
            })
            .collect()
    }
}

/// Text, or a list of parts with text.
fn push_text(target: &mut String, content: Option<&Value>) {
    match content {
        Some(Value::String(text)) => target.push_str(text),
        Some(Value::Array(parts)) => {
            for part in parts {
                if let Some(text) = part.get("text").and_then(Value::as_str) {
                    target.push_str(text);
                }
            }
        }
        _ => {}
    }
}

fn read_usage(usage: &Value) -> Usage {
    let number = |pointers: &[&str]| {
        let mut found = pointers.iter().filter_map(|pointer| usage.pointer(pointer)?.as_u64());
        found.next().unwrap_or(0)
    };
    Usage {
        input_tokens: number(&["/prompt_tokens", "/input_tokens"]),
        output_tokens: number(&["/completion_tokens", "/output_tokens"]),
        cached_tokens: number(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"]),
        requests: 0,
    }
}

/// A tool call that the model wrote as text instead of making it: the first object that names a tool on offer.
pub(super) fn written_call(text: &str, tools: &[ToolSpec]) -> Option<ModelToolCall> {
    reader::objects(text).into_iter().find_map(|object| {
        let Value::Object(mut fields) = object else { return None };
        if let Some(Value::Object(function)) = fields.get_mut("function") {
            fields = std::mem::take(function);
        }
        let key = ["name", "tool", "function"]
            .into_iter()
            .find(|key| fields.get(*key).is_some_and(Value::is_string))?;
        let name = fields.remove(key)?;
        let name = own_name(name.as_str()?, tools);
        tools.iter().find(|tool| tool.name == name)?;
        let inner = ["arguments", "parameters", "input", "args"]
            .into_iter()
            .find_map(|key| fields.remove(key));
        let arguments = match inner {
            Some(Value::String(text)) => reader::read_arguments(&text),
            Some(other) => other,
            None => Value::Object(fields),
        };
        Some(ModelToolCall {
            id: "written_1".to_owned(),
            name,
            arguments,
        })
    })
}

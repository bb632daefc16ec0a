//! OpenAI's chat completions, as OpenAI and everything compatible speaks them (design §18).
//!
//! Reading is tolerant: lists or text as content, arguments as text or object, indexes missing or all zero, usage absent.

use artoo_protocol::model::{AnswerForm, ChatMessage, ModelToolCall, Usage};
use artoo_protocol::tool::ToolSpec;
use serde_json::{Map, Value, json};

use super::collected::{Call, Collected, id_and_signature, number};
use super::{Ask, names, schema_in_words};
use crate::provider::dialect::{Format, Streaming, TokenLimit};

/// The body of a request.
pub(super) fn body(ask: &Ask<'_>) -> Value {
    let Ask {
        model,
        messages,
        form,
        limit,
        dialect,
    } = *ask;
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
            json!({"role": "tool", "tool_call_id": id_and_signature(tool_call_id).0, "content": content})
        }
    }
}

fn sent_call(call: &ModelToolCall) -> Value {
    // Servers parse what is sent back to them, so arguments that were no JSON object go back inside one.
    let arguments = match &call.arguments {
        Value::String(text) => json!({ "text": text }),
        other => other.clone(),
    };
    json!({"id": id_and_signature(&call.id).0, "type": "function", "function": {"name": names::on_wire(&call.name), "arguments": arguments.to_string()}})
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {"name": names::on_wire(&spec.name), "description": spec.description, "parameters": spec.input_schema}
    })
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

/// Takes in a document, or one event.
pub(super) fn absorb(collected: &mut Collected, event: &Value) {
    collected.name_model(event, "model");
    if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
        collected.report(read_usage(usage));
    }
    let choices = event.get("choices").and_then(Value::as_array);
    // Only the first choice was asked for.
    let first = choices.into_iter().flatten().find(|choice| {
        let index = choice.get("index").and_then(Value::as_u64);
        index.unwrap_or(0) == 0
    });
    let Some(choice) = first else { return };
    // Some servers send an empty reason with every piece.
    let finish = choice.get("finish_reason").and_then(Value::as_str);
    if let Some(finish) = finish.filter(|reason| !reason.is_empty()) {
        collected.finish = Some(finish.to_owned());
    }
    for part in [choice.get("message"), choice.get("delta")].into_iter().flatten() {
        push_text(&mut collected.text, part.get("content"));
        push_text(&mut collected.refusal, part.get("refusal"));
        let thought = part.get("reasoning_content").or_else(|| part.get("reasoning"));
        collected.unkept += thought.and_then(Value::as_str).map_or(0, str::len);
        for call in part.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            absorb_call(collected, call);
        }
    }
    if choice.get("message").is_none() && choice.get("delta").is_none() {
        push_text(&mut collected.text, choice.get("text"));
    }
}

fn absorb_call(collected: &mut Collected, piece: &Value) {
    let function = piece.get("function").unwrap_or(piece);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (id, name) = (text(piece, "id"), text(function, "name"));
    let index = piece.get("index").and_then(Value::as_u64);
    let position = collected.calls.iter().rposition(|call| {
        let same_place = index.is_none() || call.index == index;
        // Some servers number every call 0: a new id with a name is a new call all the same.
        let other_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
        same_place && !other_id && (index.is_some() || name.is_empty())
    });
    let position = position.unwrap_or_else(|| {
        collected.calls.push(Call {
            index,
            ..Call::default()
        });
        collected.calls.len() - 1
    });
    let Some(call) = collected.calls.get_mut(position) else {
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
    Usage {
        input_tokens: number(usage, &["/prompt_tokens", "/input_tokens"]),
        output_tokens: number(usage, &["/completion_tokens", "/output_tokens"]),
        cached_tokens: number(
            usage,
            &["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"],
        ),
        ..Usage::default()
    }
}

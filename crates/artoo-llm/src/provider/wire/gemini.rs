//! Gemini's `generateContent` format (design §18).
//!
//! Calls have no ids there but may carry a signature that the provider wants to see again: it travels in the call's id.

use std::collections::BTreeMap;

use artoo_protocol::model::{AnswerForm, ChatMessage, ModelToolCall, Usage};
use artoo_protocol::tool::ToolSpec;
use serde_json::{Map, Value, json};

use super::collected::{Call, Collected, id_and_signature, number};
use super::{Ask, names, schema_in_words};
use crate::provider::dialect::{Format, TokenLimit};

/// The body of a request.
pub(super) fn body(ask: &Ask<'_>) -> Value {
    let mut body = Map::new();
    let mut talk = Talk::of(ask.messages);
    let mut generation = Map::new();
    match ask.form {
        AnswerForm::Structured { name, schema } => {
            if ask.dialect.format != Format::Plain {
                generation.insert("responseMimeType".into(), json!("application/json"));
            }
            if ask.dialect.format == Format::Schema {
                generation.insert("responseJsonSchema".into(), schema.clone());
            } else {
                talk.say("user", json!({"text": schema_in_words(name, schema)}));
            }
        }
        AnswerForm::Tools { tools } if tools.is_empty() => {}
        AnswerForm::Tools { tools } => {
            let declared: Vec<Value> = tools.iter().map(tool).collect();
            body.insert("tools".into(), json!([{"functionDeclarations": declared}]));
        }
    }
    if let Some(limit) = ask.limit.filter(|_| ask.dialect.limit != TokenLimit::Unsaid) {
        generation.insert("maxOutputTokens".into(), json!(limit));
    }
    if !talk.system.is_empty() {
        body.insert("systemInstruction".into(), json!({"parts": talk.system}));
    }
    body.insert("contents".into(), Value::Array(talk.contents));
    if !generation.is_empty() {
        body.insert("generationConfig".into(), Value::Object(generation));
    }
    Value::Object(body)
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "name": names::on_wire(&spec.name), "description": spec.description, "parametersJsonSchema": spec.input_schema
    })
}

/// The conversation: instructions apart, and turns that alternate.
#[derive(Default)]
struct Talk {
    system: Vec<Value>,
    contents: Vec<Value>,
}

impl Talk {
    fn of(messages: &[ChatMessage]) -> Self {
        let mut talk = Self::default();
        // Results name the tool, not the call; where ids repeat, the last call is meant.
        let mut called: BTreeMap<&str, String> = BTreeMap::new();
        for message in messages {
            match message {
                ChatMessage::System { content } => talk.system.push(json!({"text": content})),
                ChatMessage::User { content } => talk.say("user", json!({"text": content})),
                ChatMessage::Assistant { content, tool_calls } => {
                    if let Some(text) = content.as_deref().filter(|text| !text.is_empty()) {
                        talk.say("model", json!({"text": text}));
                    }
                    for call in tool_calls {
                        called.insert(&call.id, names::on_wire(&call.name));
                        talk.say("model", sent_call(call));
                    }
                }
                ChatMessage::Tool { tool_call_id, content } => {
                    let name = called.get(tool_call_id.as_str()).map_or("unknown", String::as_str);
                    let part = json!({"functionResponse": {"name": name, "response": {"result": content}}});
                    talk.say("user", part);
                }
            }
        }
        talk
    }

    /// Adds to the last turn if it is this role's: all results of one turn belong into one.
    fn say(&mut self, role: &str, part: Value) {
        if let Some(last) = self.contents.last_mut()
            && last.get("role").and_then(Value::as_str) == Some(role)
            && let Some(Value::Array(parts)) = last.get_mut("parts")
        {
            parts.push(part);
            return;
        }
        self.contents.push(json!({"role": role, "parts": [part]}));
    }
}

fn sent_call(call: &ModelToolCall) -> Value {
    let args = match &call.arguments {
        object @ Value::Object(_) => object.clone(),
        other => json!({ "text": other }),
    };
    let made = json!({"name": names::on_wire(&call.name), "args": args});
    match id_and_signature(&call.id) {
        (_, Some(signature)) => json!({"functionCall": made, "thoughtSignature": signature}),
        (_, None) => json!({"functionCall": made}),
    }
}

/// Takes in a document, or one event.
pub(super) fn absorb(collected: &mut Collected, event: &Value) {
    // Without `alt=sse` the events come as one list.
    if let Value::Array(events) = event {
        for event in events.iter().filter(|event| event.is_object()) {
            absorb(collected, event);
        }
        return;
    }
    collected.name_model(event, "modelVersion");
    if let Some(usage) = event.get("usageMetadata") {
        collected.report(read_usage(usage));
    }
    if let Some(reason) = event.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
        collected.refusal = format!("the provider blocked the prompt ({reason})");
        collected.finish = Some("content_filter".to_owned());
    }
    let Some(candidate) = event.pointer("/candidates/0") else {
        return;
    };
    let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        absorb_part(collected, part);
    }
    if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
        collected.finish = Some(finish(reason).to_owned());
    }
}

fn finish(reason: &str) -> &str {
    match reason {
        "STOP" => "stop",
        "MAX_TOKENS" => "length",
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" => "content_filter",
        other => other,
    }
}

fn absorb_part(collected: &mut Collected, part: &Value) {
    let thinking = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
    if let Some(text) = part.get("text").and_then(Value::as_str).filter(|_| !thinking) {
        collected.text.push_str(text);
    }
    let Some(made) = part.get("functionCall") else { return };
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    collected.calls.push(Call {
        id: text(made, "id"),
        name: text(made, "name"),
        object: Some(made.get("args").cloned().unwrap_or_else(|| json!({}))),
        signature: text(part, "thoughtSignature"),
        ..Call::default()
    });
}

fn read_usage(usage: &Value) -> Usage {
    let answer = number(usage, &["/candidatesTokenCount"]);
    Usage {
        input_tokens: number(usage, &["/promptTokenCount"]),
        output_tokens: answer.saturating_add(number(usage, &["/thoughtsTokenCount"])),
        cached_tokens: number(usage, &["/cachedContentTokenCount"]),
        ..Usage::default()
    }
}

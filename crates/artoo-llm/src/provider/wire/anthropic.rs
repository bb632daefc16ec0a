//! Anthropic's Messages format (design §18).
//!
//! A structured answer is asked for as the arguments of one tool that must be called: every model offers that, with any
//! schema. What stays the same between requests is marked for the provider's cache.

use artoo_protocol::model::{AnswerForm, ChatMessage, ModelToolCall, Usage};
use serde_json::{Map, Value, json};

use super::collected::{Call, Collected, id_and_signature, number};
use super::{Ask, names, schema_in_words};
use crate::provider::dialect::{Format, Streaming, TokenLimit};

/// Bound of an answer where none is asked for: the format demands one. Longer than any plan.
const LIMIT: u32 = 16_000;
/// What every model of the provider can do, for those that refuse the usual bound.
const SMALL_LIMIT: u32 = 4_096;

/// The body of a request.
pub(super) fn body(ask: &Ask<'_>) -> Value {
    let mut body = Map::new();
    let limit = match ask.dialect.limit {
        TokenLimit::Unsaid => SMALL_LIMIT,
        TokenLimit::MaxTokens | TokenLimit::MaxCompletionTokens => ask.limit.unwrap_or(LIMIT),
    };
    body.insert("model".into(), json!(ask.model));
    body.insert("max_tokens".into(), json!(limit));
    let mut talk = Talk::of(ask.messages);
    match ask.form {
        AnswerForm::Structured { name, schema } if ask.dialect.format == Format::Schema => {
            let tool = json!({
                "name": names::on_wire(name), "description": "Takes the answer.", "input_schema": schema
            });
            body.insert("tools".into(), json!([tool]));
            body.insert(
                "tool_choice".into(),
                json!({"type": "tool", "name": names::on_wire(name), "disable_parallel_tool_use": true}),
            );
        }
        AnswerForm::Structured { name, schema } => {
            talk.say("user", json!({"type": "text", "text": schema_in_words(name, schema)}));
        }
        AnswerForm::Tools { tools } if tools.is_empty() => {}
        AnswerForm::Tools { tools } => {
            let tool = |spec: &artoo_protocol::tool::ToolSpec| {
                json!({
                    "name": names::on_wire(&spec.name), "description": spec.description, "input_schema": spec.input_schema
                })
            };
            body.insert("tools".into(), tools.iter().map(tool).collect());
            // The conversation only grows, so what was read for this step need not be read again for the next.
            talk.cache_so_far();
        }
    }
    if let Some(last) = talk.system.last_mut() {
        mark_for_cache(last);
        body.insert("system".into(), Value::Array(talk.system));
    }
    body.insert("messages".into(), Value::Array(talk.messages));
    if ask.dialect.streaming != Streaming::Off {
        body.insert("stream".into(), json!(true));
    }
    Value::Object(body)
}

fn mark_for_cache(block: &mut Value) {
    if let Value::Object(fields) = block {
        fields.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
}

/// The conversation: instructions apart, and turns that alternate.
#[derive(Default)]
struct Talk {
    system: Vec<Value>,
    messages: Vec<Value>,
}

impl Talk {
    fn of(messages: &[ChatMessage]) -> Self {
        let mut talk = Self::default();
        for message in messages {
            match message {
                ChatMessage::System { content } if content.trim().is_empty() => {}
                ChatMessage::System { content } => talk.system.push(json!({"type": "text", "text": content})),
                ChatMessage::User { content } => talk.text("user", content),
                ChatMessage::Assistant { content, tool_calls } => {
                    talk.text("assistant", content.as_deref().unwrap_or_default());
                    for call in tool_calls {
                        talk.say("assistant", sent_call(call));
                    }
                }
                ChatMessage::Tool { tool_call_id, content } => {
                    let (id, _) = id_and_signature(tool_call_id);
                    talk.say(
                        "user",
                        json!({"type": "tool_result", "tool_use_id": id, "content": content}),
                    );
                }
            }
        }
        talk
    }

    /// Blocks without text are refused by the provider.
    fn text(&mut self, role: &str, text: &str) {
        if !text.trim().is_empty() {
            self.say(role, json!({"type": "text", "text": text}));
        }
    }

    /// Adds to the last turn if it is this role's: all results of one turn belong into one message.
    fn say(&mut self, role: &str, block: Value) {
        if let Some(last) = self.messages.last_mut()
            && last.get("role").and_then(Value::as_str) == Some(role)
            && let Some(Value::Array(blocks)) = last.get_mut("content")
        {
            blocks.push(block);
            return;
        }
        self.messages.push(json!({"role": role, "content": [block]}));
    }

    fn cache_so_far(&mut self) {
        let last = self.messages.last_mut().and_then(|message| message.get_mut("content"));
        if let Some(block) = last.and_then(Value::as_array_mut).and_then(|blocks| blocks.last_mut()) {
            mark_for_cache(block);
        }
    }
}

fn sent_call(call: &ModelToolCall) -> Value {
    let input = match &call.arguments {
        object @ Value::Object(_) => object.clone(),
        other => json!({ "text": other }),
    };
    let (id, _) = id_and_signature(&call.id);
    json!({"type": "tool_use", "id": id, "name": names::on_wire(&call.name), "input": input})
}

/// Takes in a document, or one event; whether it is the last.
pub(super) fn absorb(collected: &mut Collected, event: &Value) -> bool {
    match event.get("type").and_then(Value::as_str) {
        Some("message") => {
            absorb_head(collected, event);
            let blocks = event.get("content").and_then(Value::as_array);
            for (index, block) in (0_u64..).zip(blocks.into_iter().flatten()) {
                absorb_block(collected, index, block);
            }
            absorb_end(collected, event.get("stop_reason"));
            true
        }
        Some("message_start") => {
            if let Some(message) = event.get("message") {
                absorb_head(collected, message);
            }
            false
        }
        Some("content_block_start") => {
            if let Some(block) = event.get("content_block") {
                absorb_block(collected, index(event), block);
            }
            false
        }
        Some("content_block_delta") => {
            absorb_delta(collected, event);
            false
        }
        Some("message_delta") => {
            absorb_usage(collected, event);
            absorb_end(collected, event.pointer("/delta/stop_reason"));
            false
        }
        Some("message_stop") => true,
        // Pings, ends of blocks, and what is not invented yet.
        _ => false,
    }
}

fn index(event: &Value) -> u64 {
    number(event, &["/index"])
}

fn absorb_head(collected: &mut Collected, message: &Value) {
    collected.name_model(message, "model");
    absorb_usage(collected, message);
}

fn absorb_block(collected: &mut Collected, index: u64, block: &Value) {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match block.get("type").and_then(Value::as_str) {
        Some("text") => collected.text.push_str(&text("text")),
        Some("tool_use") => collected.calls.push(Call {
            index: Some(index),
            id: text("id"),
            name: text("name"),
            // A stream starts with an empty object and sends the real one in pieces.
            object: block
                .get("input")
                .filter(|input| input.as_object().is_some_and(|fields| !fields.is_empty()))
                .cloned(),
            ..Call::default()
        }),
        _ => {}
    }
}

fn absorb_delta(collected: &mut Collected, event: &Value) {
    let piece = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
    if let Some(text) = piece("/delta/text") {
        collected.text.push_str(text);
    }
    let index = index(event);
    if let Some(json) = piece("/delta/partial_json")
        && let Some(call) = collected.calls.iter_mut().find(|call| call.index == Some(index))
    {
        call.text.push_str(json);
    }
}

fn absorb_end(collected: &mut Collected, reason: Option<&Value>) {
    let Some(reason) = reason.and_then(Value::as_str) else {
        return;
    };
    let finish = match reason {
        "max_tokens" | "model_context_window_exceeded" => "length",
        "tool_use" => "tool_calls",
        "end_turn" | "stop_sequence" | "pause_turn" => "stop",
        other => other,
    };
    collected.finish = Some(finish.to_owned());
}

/// What was cached is counted apart here, and among the prompt's tokens in artoo.
fn absorb_usage(collected: &mut Collected, message: &Value) {
    let Some(usage) = message.get("usage").filter(|usage| usage.is_object()) else {
        return;
    };
    let cached = number(usage, &["/cache_read_input_tokens"]);
    let prompt = number(usage, &["/input_tokens"])
        .saturating_add(number(usage, &["/cache_creation_input_tokens"]))
        .saturating_add(cached);
    collected.report(Usage {
        input_tokens: prompt,
        cached_tokens: cached,
        output_tokens: number(usage, &["/output_tokens"]),
        ..Usage::default()
    });
}

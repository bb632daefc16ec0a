//! An answer as it comes together, from one document or from the events of a stream (design §18).
//!
//! Owns what all wire formats have in common once they are read. Must not know any of them.

use artoo_protocol::model::{ModelToolCall, Usage};
use artoo_protocol::tool::ToolSpec;
use serde_json::Value;

use super::names;
use crate::reader;

/// Most tool calls of one answer that are kept.
const MAX_CALLS: usize = 64;
/// Longest signature of a call that is kept, in bytes: it goes back to the provider with every later request.
const MAX_SIGNATURE: usize = 64 * 1024;
/// Between the id of a call and the provider's signature, where it gives one.
const SIGNED: char = '~';

/// A tool call while it comes in.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Call {
    /// The provider's number of the part, where it gives one.
    pub index: Option<u64>,
    /// Empty where the provider gives none.
    pub id: String,
    /// The name on the wire.
    pub name: String,
    /// Arguments as text.
    pub text: String,
    /// Arguments as an object, which weigh more than the text.
    pub object: Option<Value>,
    /// What the provider wants to see again with the call; opaque.
    pub signature: String,
}

/// An answer, whole or in part.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::provider) struct Collected {
    /// What the model says.
    pub text: String,
    /// Its or the provider's refusal in words.
    pub refusal: String,
    /// Why it ended, in the words of OpenAI's format; none while it has not.
    pub finish: Option<String>,
    /// The model's own name.
    pub model: Option<String>,
    /// What the provider reports so far; `requests` is 0.
    pub usage: Usage,
    /// Bytes of thinking, which is paid for and not kept.
    pub(super) unkept: usize,
    pub(super) calls: Vec<Call>,
}

impl Collected {
    /// The calls that were asked for; those without a name are none.
    pub fn calls(&self, tools: &[ToolSpec]) -> Vec<ModelToolCall> {
        let named = self.calls.iter().filter(|call| !call.name.is_empty()).take(MAX_CALLS);
        named
            .enumerate()
            .map(|(number, call)| ModelToolCall {
                id: call.own_id(number + 1),
                name: names::own(&call.name, tools),
                arguments: call.arguments(),
            })
            .collect()
    }

    /// Where a structured answer was asked for as the arguments of a call, these are its text.
    pub fn take_as_text(&mut self, name: &str) {
        let made = self.calls.iter().position(|call| call.name == names::on_wire(name));
        if let Some(position) = made {
            let call = self.calls.swap_remove(position);
            // The text as it came, so that the tolerant reader can say what is wrong with it.
            self.text = call.object.map_or(call.text, |object| object.to_string());
        }
    }

    /// Whether it was ended by the limit of output tokens. What came until then is no answer, also where it looks like one.
    pub fn is_cut_off(&self) -> bool {
        matches!(self.finish.as_deref(), Some("length" | "max_tokens"))
    }

    /// What the model wrote so far, in bytes.
    pub fn written(&self) -> usize {
        let calls = self.calls.iter().map(|call| {
            let object = call.object.as_ref().map_or(0, |object| object.to_string().len());
            call.name.len() + call.text.len() + object
        });
        self.text.len() + self.refusal.len() + self.unkept + calls.sum::<usize>()
    }

    /// Takes in what the provider says was used until now. Counts only grow; an event may repeat some and leave out others.
    pub(super) fn report(&mut self, usage: Usage) {
        let known = self.usage;
        self.usage = Usage {
            input_tokens: usage.input_tokens.max(known.input_tokens),
            output_tokens: usage.output_tokens.max(known.output_tokens),
            cached_tokens: usage.cached_tokens.max(known.cached_tokens),
            ..known
        };
    }

    pub(super) fn name_model(&mut self, event: &Value, key: &str) {
        let named = event.get(key).and_then(Value::as_str);
        if let Some(model) = named.filter(|name| !name.is_empty()) {
            self.model.get_or_insert_with(|| model.to_owned());
        }
    }
}

impl Call {
    fn own_id(&self, number: usize) -> String {
        let id = match self.id.as_str() {
            "" => format!("call_{number}"),
            id => id.to_owned(),
        };
        match self.signature.as_str() {
            "" => id,
            long if long.len() > MAX_SIGNATURE => id,
            signature => format!("{id}{SIGNED}{signature}"),
        }
    }

    fn arguments(&self) -> Value {
        let object = self.object.clone();
        object.map_or_else(|| reader::read_arguments(&self.text), reader::bounded)
    }
}

/// The provider's id of a call and its signature, from the call's id here.
pub(super) fn id_and_signature(id: &str) -> (&str, Option<&str>) {
    match id.split_once(SIGNED) {
        Some((id, signature)) => (id, Some(signature)),
        None => (id, None),
    }
}

/// The first of these places that holds a number.
pub(super) fn number(document: &Value, pointers: &[&str]) -> u64 {
    let mut found = pointers
        .iter()
        .filter_map(|pointer| document.pointer(pointer)?.as_u64());
    found.next().unwrap_or(0)
}

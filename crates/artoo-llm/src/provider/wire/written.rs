//! Tool calls that a model wrote as text instead of making them (design §18).

use artoo_protocol::model::ModelToolCall;
use artoo_protocol::tool::ToolSpec;
use serde_json::Value;

use super::names;
use crate::reader;

/// A tool call that the model wrote as text instead of making it: the first object that names a tool on offer.
pub(in crate::provider) fn written_call(text: &str, tools: &[ToolSpec]) -> Option<ModelToolCall> {
    reader::objects(text).into_iter().find_map(|object| {
        let Value::Object(mut fields) = object else { return None };
        if let Some(Value::Object(function)) = fields.get_mut("function") {
            fields = std::mem::take(function);
        }
        let key = ["name", "tool", "function"]
            .into_iter()
            .find(|key| fields.get(*key).is_some_and(Value::is_string))?;
        let name = fields.remove(key)?;
        let name = names::own(name.as_str()?, tools);
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

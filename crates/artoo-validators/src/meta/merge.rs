//! Merging outputs in code (design §11).
//!
//! Owns what a result is where no model has worded it: the data of the subtasks as they gave it, nothing added.

use artoo_protocol::message::{OutcomeStatus, SubTaskOutcome};
use serde_json::Value;

/// The outputs of the matched ones: one as it is, several strings joined by blank lines, anything else as an array.
///
/// Outputs without content are left out; `null` when nothing is left.
pub(super) fn merged(outcomes: &[SubTaskOutcome]) -> Value {
    let outputs: Vec<&Value> = outcomes
        .iter()
        .filter(|outcome| outcome.status == OutcomeStatus::Matched)
        .map(|outcome| &outcome.output)
        .filter(|output| !is_blank(output))
        .collect();
    let texts: Option<Vec<&str>> = outputs.iter().map(|output| output.as_str()).collect();
    match (outputs.as_slice(), texts) {
        ([], _) => Value::Null,
        ([only], _) => (*only).clone(),
        (_, Some(texts)) => Value::String(texts.iter().map(|t| t.trim_end()).collect::<Vec<_>>().join("\n\n")),
        (several, None) => Value::Array(several.iter().map(|output| (*output).clone()).collect()),
    }
}

/// Whether a value says nothing.
pub(super) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A value as a reader sees it: text as it is, anything else as JSON.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::samples::outcome;
    use OutcomeStatus::{Failed, Matched};
    use serde_json::json;

    #[test]
    fn outputs_are_merged_without_adding_anything() {
        let merge = |outputs: &[(OutcomeStatus, Value)]| {
            let outcomes: Vec<_> = outputs
                .iter()
                .map(|(status, output)| SubTaskOutcome {
                    output: output.clone(),
                    ..outcome("s", *status)
                })
                .collect();
            merged(&outcomes)
        };
        assert_eq!(merge(&[]), Value::Null);
        assert_eq!(merge(&[(Matched, json!("a\n"))]), json!("a\n"));
        assert_eq!(
            merge(&[(Matched, json!("a\n")), (Matched, json!("b"))]),
            json!("a\n\nb")
        );
        assert_eq!(
            merge(&[(Matched, json!("a")), (Matched, json!({"n": 5}))]),
            json!(["a", {"n": 5}])
        );
        assert_eq!(merge(&[(Failed, json!("wrong")), (Matched, json!("b"))]), json!("b"));
        assert_eq!(merge(&[(Matched, json!("  ")), (Matched, json!(5))]), json!(5));
        assert_eq!(merge(&[(Failed, json!("wrong"))]), Value::Null);
    }
}

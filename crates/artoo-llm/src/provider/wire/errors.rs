//! What a provider says when it refuses, wherever in the document it says it (design §18).
//!
//! Owns the reading of error documents; tolerant, because even one provider has several forms.

use serde_json::Value;

/// A provider's own account of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::provider) struct ProviderError {
    /// The HTTP status that it names, if it names one.
    pub status: Option<u16>,
    /// Its words and code.
    pub words: String,
}

/// The error in a JSON document, if it is one.
pub(in crate::provider) fn provider_error(document: &Value) -> Option<ProviderError> {
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
    .filter(|code| (400..600).contains(code))
    .or_else(|| code.and_then(status_of));
    Some(ProviderError {
        status,
        words: match code {
            Some(code) if !words.contains(code) => format!("{words} ({code})"),
            _ => words,
        },
    })
}

/// The status that belongs to a name; inside a stream, Anthropic gives no number.
fn status_of(name: &str) -> Option<u16> {
    Some(match name {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "api_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

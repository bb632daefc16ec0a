//! What a provider says when it refuses, wherever in the document it says it (design §18).
//!
//! Owns the reading of error documents; tolerant, because even one provider has several forms.

use std::time::Duration;

use serde_json::Value;

/// A provider's own account of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::provider) struct ProviderError {
    /// The HTTP status that it names, if it names one.
    pub status: Option<u16>,
    /// Its words and code.
    pub words: String,
    /// How long it asks to wait, where it says so in the document.
    pub wait: Option<Duration>,
    /// Set where no wait of minutes helps.
    pub exhausted: Option<Exhausted>,
}

/// What is used up for longer than anybody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::provider) enum Exhausted {
    /// Until somebody pays.
    Account,
    /// Until tomorrow.
    Day,
}

impl ProviderError {
    /// An error of which only words are known. Mere talk of billing means nothing: providers speak of it in every rate limit.
    pub fn in_words(words: String) -> Self {
        let account = words.contains("insufficient_quota") || words.to_lowercase().contains("credit balance");
        Self {
            exhausted: account.then_some(Exhausted::Account),
            words,
            ..Self::default()
        }
    }
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
    let names: Vec<&str> = ["code", "type", "status"].into_iter().filter_map(text).collect();
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
    .or_else(|| names.iter().find_map(|name| status_of(name)));
    let words = match names.first() {
        Some(name) if !words.contains(name) => format!("{words} ({name})"),
        Some(_) | None => words,
    };
    let unpaid = status == Some(402) || names.contains(&"insufficient_quota");
    let said = ProviderError::in_words(words);
    Some(ProviderError {
        status,
        wait: retry_delay(error),
        exhausted: said
            .exhausted
            .or_else(|| unpaid.then_some(Exhausted::Account))
            .or_else(|| per_day(error).then_some(Exhausted::Day)),
        ..said
    })
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error.get("details").and_then(Value::as_array).into_iter().flatten()
}

/// Gemini's `RetryInfo`: `"retryDelay": "26.8s"`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let said = details(error).find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds = said.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Gemini's `QuotaFailure`: whether a quota of the day is among those that were exceeded.
fn per_day(error: &Value) -> bool {
    let mut violations = details(error)
        .filter_map(|detail| detail.get("violations")?.as_array())
        .flatten();
    violations.any(|violation| {
        let id = violation.get("quotaId").and_then(Value::as_str);
        id.is_some_and(|id| id.contains("PerDay"))
    })
}

/// The status that belongs to a name; inside a stream, Anthropic and OpenAI give no number.
fn status_of(name: &str) -> Option<u16> {
    Some(match name {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
        "api_error" | "server_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

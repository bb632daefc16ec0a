//! Masking secrets before anything is written down (design §17).
//!
//! Owns the covering: of the exact values that the application knows, of texts of the shape of a key, of fields whose
//! name says so. Each character becomes one `*`, so that text keeps its length and a replayed role cuts it in the same
//! places. Must not know records: it walks any JSON value.

use artoo_protocol::secret::{self, Plain, SHORTEST, is_secret_name};
use serde::Serialize;
use serde_json::Value;

/// Masks secrets in text and in JSON.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret that contains another is masked whole.
    exact: Vec<String>,
    /// The same as they stand inside JSON text.
    escaped: Vec<String>,
}

impl Redactor {
    /// Masks these values and everything of the shape of a key. Values of fewer than 8 characters are passed over.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut exact: Vec<String> = secrets
            .into_iter()
            .filter(|secret| secret.chars().count() >= SHORTEST)
            .collect();
        exact.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        exact.dedup();
        let escaped = exact
            .iter()
            .map(|secret| {
                let quoted = Value::from(secret.as_str()).to_string();
                quoted.trim_matches('"').to_owned()
            })
            .collect();
        Self { exact, escaped }
    }

    /// The text with every secret masked.
    pub fn text(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for secret in &self.exact {
            if masked.contains(secret.as_str()) {
                masked = masked.replace(secret.as_str(), &mask(secret));
            }
        }
        let masked = self.escaped_in(&masked).unwrap_or(masked);
        secret::mask(&masked, |secret, _| mask(secret))
    }

    /// The text with every exact value masked that stands in it with its punctuation escaped, as in a pattern; `None` where none does.
    fn escaped_in(&self, text: &str) -> Option<String> {
        if self.exact.is_empty() {
            return None;
        }
        let plain = Plain::of(text)?;
        let mut masked = String::new();
        let mut end = 0;
        let mut found: Vec<_> = self
            .exact
            .iter()
            .flat_map(|secret| plain.text.match_indices(secret.as_str()))
            .map(|(at, secret)| plain.original(at..at + secret.len()))
            .collect();
        found.sort_by_key(|range| range.start);
        for range in found.into_iter().filter(|range| !range.is_empty()) {
            if range.start >= end {
                masked.push_str(text.get(end..range.start)?);
                masked.push_str(&mask(text.get(range.clone())?));
                end = range.end;
            }
        }
        masked.push_str(text.get(end..)?);
        (end > 0).then_some(masked)
    }

    /// Masks every string of a JSON value.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                for (name, field) in fields.iter_mut() {
                    match field {
                        Value::String(text) if is_secret_name(name) && text.chars().count() >= SHORTEST => {
                            *text = mask(text);
                        }
                        _ => self.value(field),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// One line of JSON with every secret masked.
    pub(super) fn line(&self, record: &impl Serialize) -> Result<String, serde_json::Error> {
        self.json(serde_json::to_string(record)?)
    }

    /// A JSON text with every secret masked. One that holds none, the usual case, is looked at and passed on as it is.
    ///
    /// # Errors
    /// When it is no JSON.
    pub fn json(&self, text: String) -> Result<String, serde_json::Error> {
        if !self.suspects(&text) {
            return Ok(text);
        }
        let mut value = serde_json::from_str(&text)?;
        self.value(&mut value);
        serde_json::to_string(&value)
    }

    fn suspects(&self, line: &str) -> bool {
        let unescaped = || line.contains("\\\\").then(|| line.replace('\\', ""));
        self.escaped.iter().any(|secret| line.contains(secret.as_str()))
            || (!self.exact.is_empty()
                && unescaped().is_some_and(|line| {
                    let mut secrets = self.exact.iter().map(|secret| secret.replace('\\', ""));
                    secrets.any(|secret| line.contains(&secret))
                }))
            || secret::may_hold(line)
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.exact.len())
    }
}

fn mask(secret: &str) -> String {
    "*".repeat(secret.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, expect: &str) {
        let redactor = Redactor::new([
            "correct horse".to_owned(),
            "quo\"te\\d\nsecret".to_owned(),
            "short".to_owned(),
        ]);
        assert_eq!(redactor.text(text), expect);
        assert_eq!(text.chars().count(), expect.chars().count(), "lengths are kept");
        // The quick look at a line must not overlook what the closer look would mask.
        let line = redactor.line(&json!({ "x": format!("line\n{text}") })).unwrap();
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read, json!({ "x": format!("line\n{expect}") }));
    }

    #[test]
    fn secrets_are_masked_and_other_text_is_not() {
        check(
            "say correct horse twice: correct horse",
            "say ************* twice: *************",
        );
        check("quo\"te\\d\nsecret", "***************");
        check("short", "short");
        check(
            "a risk-management-of-something-quite-long text",
            "a risk-management-of-something-quite-long text",
        );
        check("key sk-abcdefghijklmnopqrstu!", "key ************************!");
        check("AKIAABCDEFGHIJKLMNOP", "********************");
        check(
            "Authorization: Bearer abcdefghijklmnop1",
            "Authorization: ************************",
        );
        check("https://me:hunter2@host/x", "https://me:*******@host/x");
        check("DB_PASSWORD=hunter2hunter2 x", "DB_PASSWORD=************** x");
        check("export PATH=$HOME TOKEN=$(cat x)", "export PATH=$HOME TOKEN=$(cat x)");
        check(
            "-----BEGIN RSA PRIVATE KEY-----\nabc",
            "***********************************",
        );
    }

    #[test]
    fn keys_in_patterns_and_passwords_in_sentences_are_masked() {
        check("sk\\-proj\\-abcdefghijklmnop1234$", "******************************$");
        check("^correct\\ horse", "^**************");
        let redactor = Redactor::new(["my-own.key_1".to_owned()]);
        for (text, expect) in [
            ("^my\\-own\\.key_1$", "^**************$"),
            ("my-own.key_1 my\\-own.key\\_1", "************ **************"),
        ] {
            assert_eq!(redactor.text(text), expect);
            let line = redactor.line(&json!({ "check": { "pattern": text } })).unwrap();
            assert_eq!(line, json!({ "check": { "pattern": expect } }).to_string());
        }
        check(
            "log in with password=hunter2, then go",
            "log in with password=*******, then go",
        );
    }

    #[test]
    fn named_fields_are_masked_whatever_they_look_like() {
        let redactor = Redactor::default();
        let line = redactor
            .line(&json!({ "settings": { "api_key": "looks harmless", "model": "m" } }))
            .unwrap();
        assert_eq!(line, r#"{"settings":{"api_key":"**************","model":"m"}}"#);
    }
}

//! Masking secrets before anything is written down (design §17).
//!
//! Owns the covering: of the exact values that the application knows, of texts of the shape of a key, of fields whose
//! name says so. Each character becomes one `*`, so that text keeps its length and a replayed role cuts it in the same
//! places. Must not know records: it walks any JSON value.

use artoo_protocol::secret::{self, Plain, SHORTEST, is_secret_name, is_surely_secret};
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

    /// Masks the secrets in every string of a JSON value, and everything below a name that says that it is secret.
    pub fn value(&self, value: &mut Value) {
        self.masks(value);
    }

    /// The same; whether anything was masked.
    fn masks(&self, value: &mut Value) -> bool {
        // Every part of it is masked, so nowhere an `any`.
        match value {
            Value::String(text) => {
                let masked = self.text(text);
                replace(text, masked)
            }
            Value::Array(items) => items.iter_mut().fold(false, |changed, item| self.masks(item) | changed),
            Value::Object(fields) => fields.iter_mut().fold(false, |changed, (name, field)| {
                let masked = match field {
                    // In a schema the names are of fields that somebody else fills in, and the tools of a task are made of it.
                    Value::Object(schemas) if holds_schemas(name) && schemas.values().all(Value::is_object) => schemas
                        .values_mut()
                        .fold(false, |changed, schema| self.masks(schema) | changed),
                    _ if is_surely_secret(name) => cover(field),
                    Value::String(text) if is_secret_name(name) && text.chars().count() >= SHORTEST => {
                        let masked = mask(text);
                        replace(text, masked)
                    }
                    _ => self.masks(field),
                };
                masked | changed
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// A JSON text with every secret masked. One that holds none, the usual case, is looked at and passed on as it is.
    ///
    /// # Errors
    /// When it is no JSON.
    pub fn json(&self, text: String) -> Result<String, serde_json::Error> {
        match self.masked(&text)? {
            Some(value) => serde_json::to_string(&value),
            None => Ok(text),
        }
    }

    /// What a JSON text says with every secret masked; `None` when it holds none.
    pub(super) fn masked(&self, text: &str) -> Result<Option<Value>, serde_json::Error> {
        if !self.suspects(text) {
            return Ok(None);
        }
        let mut value = serde_json::from_str(text)?;
        Ok(self.masks(&mut value).then_some(value))
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

/// Whether what stands under this name in a schema is a table of schemas.
fn holds_schemas(name: &str) -> bool {
    matches!(
        name,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
    )
}

/// Masks everything in a value; a number becomes a text of the same length, quotes included. Whether anything was masked.
fn cover(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let masked = mask(text);
            replace(text, masked)
        }
        Value::Number(number) => {
            let stars = number.to_string().len().saturating_sub(2).max(1);
            *value = Value::String("*".repeat(stars));
            true
        }
        Value::Array(items) => items.iter_mut().fold(false, |changed, item| cover(item) | changed),
        Value::Object(fields) => fields.values_mut().fold(false, |changed, field| cover(field) | changed),
        Value::Null | Value::Bool(_) => false,
    }
}

/// Whether that changes anything.
fn replace(text: &mut String, masked: String) -> bool {
    let changes = *text != masked;
    *text = masked;
    changes
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
        let line = redactor
            .json(json!({ "x": format!("line\n{text}") }).to_string())
            .unwrap();
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
            let line = redactor
                .json(json!({ "check": { "pattern": text } }).to_string())
                .unwrap();
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
            .json(json!({ "settings": { "api_key": "looks harmless", "model": "m" } }).to_string())
            .unwrap();
        assert_eq!(line, r#"{"settings":{"api_key":"**************","model":"m"}}"#);
        assert_eq!(
            redactor.masked(&line).unwrap(),
            None,
            "what is masked already is no secret"
        );
    }

    #[test]
    fn a_short_password_and_all_that_lies_below_a_secret_name_are_masked() {
        for (open, masked) in [
            (json!({"password": "hunter2"}), json!({"password": "*******"})),
            (json!({"password": ""}), json!({"password": ""})),
            (json!({"db password (old)": "x"}), json!({"db password (old)": "*"})),
            (
                json!({"say \"secret\" twice": "x"}),
                json!({"say \"secret\" twice": "*"}),
            ),
            (
                json!({"sort_key": "name", "primary_key": 17, "tokenizer": "gpt2"}),
                json!({"sort_key": "name", "primary_key": 17, "tokenizer": "gpt2"}),
            ),
            (
                json!({"page_token": "abcdefgh", "n": 1}),
                json!({"page_token": "********", "n": 1}),
            ),
            (json!({"password\\": "x"}), json!({"password\\": "*"})),
            (json!({"pin_secret": 493_817}), json!({"pin_secret": "****"})),
            (json!({"secret": -1.25}), json!({"secret": "***"})),
            (
                json!({"credentials": {"user": "ann", "codes": [1234, "ab", null, true]}}),
                json!({"credentials": {"user": "***", "codes": ["**", "**", null, true]}}),
            ),
            (json!({"tokens": ["abc", 7]}), json!({"tokens": ["abc", 7]})),
            (json!([{"api_key": ["k"]}]), json!([{"api_key": ["*"]}])),
        ] {
            let line = Redactor::default().json(open.to_string()).unwrap();
            assert_eq!(line, masked.to_string(), "{open}");
            assert_eq!(
                Redactor::default().json(masked.to_string()).unwrap(),
                masked.to_string()
            );
        }
        let secret = json!({"password": 493_817}).to_string();
        assert_eq!(Redactor::default().json(secret.clone()).unwrap().len(), secret.len());
    }

    #[test]
    fn counts_of_tokens_and_the_fields_of_a_schema_stay() {
        for text in [
            r#"{"usage":{"input_tokens":510,"output_tokens":67,"cached_tokens":0},"max_output_tokens":null,"max_tokens":9000}"#,
            r#"{"max_context_tokens":32000,"tokens_of_ended":12,"promptTokenCount":50,"tokens":{"input":5}}"#,
            r#"{"input_schema":{"type":"object","properties":{"api_key":{"type":"string"},"token":{"description":"whose"}}}}"#,
            r#"{"input_schema":{"type":"object","$defs":{"AuthToken":{"type":"object","title":"AuthToken"},"SortKey":{"enum":["a"]}}}}"#,
            r#"{"password":null,"secret":true,"key":"k"}"#,
        ] {
            assert_eq!(Redactor::default().json(text.to_owned()).unwrap(), text);
            let mut value = serde_json::from_str(text).unwrap();
            Redactor::default().value(&mut value);
            assert_eq!(
                value.to_string(),
                serde_json::from_str::<Value>(text).unwrap().to_string()
            );
        }
    }

    const NAMES: &[&str] = &[
        "password",
        "max_tokens",
        "token",
        "api_key",
        "the password: old",
        "a\"secret",
        "key",
        "properties",
        "x",
        "é token",
        "\\",
        "secret\\",
        "\\\"token",
    ];

    fn value() -> impl proptest::strategy::Strategy<Value = Value> {
        use proptest::prelude::*;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            Just(json!(-1.25)),
            r#"["\\\\a:{}é-]{0,6}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((proptest::sample::select(NAMES), inner), 0..4).prop_map(|fields| fields
                    .into_iter()
                    .map(|(name, field)| (name.to_owned(), field))
                    .collect()),
            ]
        })
    }

    proptest::proptest! {
        /// The quick look at a line must say yes wherever the closer look finds something.
        #[test]
        fn the_quick_look_overlooks_nothing(open in value()) {
            let mut masked = open.clone();
            Redactor::default().value(&mut masked);
            let line = Redactor::default().json(open.to_string()).unwrap();
            let read: Value = serde_json::from_str(&line).unwrap();
            proptest::prop_assert_eq!(read.to_string(), masked.to_string(), "{}", open);
            if masked != open {
                proptest::prop_assert!(secret::may_hold(&open.to_string()), "{}", open);
            }
        }
    }
}

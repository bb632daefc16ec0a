//! Masking secrets before anything is written down (design §17).
//!
//! Owns what counts as a secret: the exact values that the application knows, and texts of the shape of a key. Each
//! character becomes one `*`, so that text keeps its length and a replayed role cuts it in the same places. Must not
//! know records: it walks any JSON value.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::Serialize;
use serde_json::Value;

/// Shorter values are not masked: they would hit ordinary text.
const SHORTEST: usize = 8;

/// Keys of objects whose text values are secrets whatever they look like.
const SECRET_NAMES: &[&str] = &[
    "api_key",
    "apikey",
    "api-key",
    "x-api-key",
    "authorization",
    "password",
    "passwd",
    "access_token",
    "refresh_token",
    "client_secret",
    "secret_key",
];

/// Texts of the shape of a key; where a group `s` is named, only it is masked.
const SHAPES: &str = r#"(?x)
    \b(?:sk|pk|rk)-[A-Za-z0-9_-]{20,}
  | \b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}
  | \bgh[pousr]_[A-Za-z0-9]{36,}
  | \bgithub_pat_[A-Za-z0-9_]{22,}
  | \bglpat-[A-Za-z0-9_-]{20,}
  | \bA(?:KIA|SIA)[0-9A-Z]{16}\b
  | \bAIza[0-9A-Za-z_-]{35}
  | \bxox[abprs]-[A-Za-z0-9-]{10,}
  | \bhf_[A-Za-z0-9]{30,}
  | \bnpm_[A-Za-z0-9]{36}
  | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}
  | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\z)
  | \b[Bb]earer\s+(?P<bearer>[A-Za-z0-9._~+/=-]{16,})
  | ://[^/\s:@]{1,200}:(?P<url>[^@/\s]{3,200})@
  | [A-Z0-9_]*(?:API_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?)[A-Z0-9_]*=["']?(?P<env>[^\s"'$]{8,})
"#;

/// What every shape holds somewhere, also inside JSON text: lines without any of it need no closer look.
const HINT: &str = r#"[spr]k[-_]|gh[pousr]_|github_pat_|glpat-|A[KS]IA|AIza|xox|hf_|npm_|eyJ|PRIVATE KEY|[Bb]earer|://[^/\s]*@|(?:KEY|SECRET|TOKEN|PASSW|CREDENTIAL)[A-Z0-9_]*=|(?i)"(?:x-)?(?:api[_-]?key|authorization|passw(?:or)?d|access_token|refresh_token|client_secret|secret_key)""#;

static SHAPE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SHAPES).ok());
static HINTS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(HINT).ok());

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
        match &*SHAPE {
            Some(shape) if shape.is_match(&masked) => shape.replace_all(&masked, mask_match).into_owned(),
            Some(_) | None => masked,
        }
    }

    /// Masks every string of a JSON value.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                for (name, field) in fields.iter_mut() {
                    let secret = SECRET_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known));
                    match field {
                        Value::String(text) if secret && text.chars().count() >= SHORTEST => *text = mask(text),
                        _ => self.value(field),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// One line of JSON with every secret masked.
    pub(super) fn line(&self, record: &impl Serialize) -> Result<String, serde_json::Error> {
        let line = serde_json::to_string(record)?;
        if !self.suspects(&line) {
            return Ok(line);
        }
        let mut value = serde_json::to_value(record)?;
        self.value(&mut value);
        serde_json::to_string(&value)
    }

    fn suspects(&self, line: &str) -> bool {
        // No pattern compiles to nothing: then everything is looked at closely.
        self.escaped.iter().any(|secret| line.contains(secret.as_str()))
            || HINTS.as_ref().is_none_or(|hints| hints.is_match(line))
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

fn mask_match(found: &Captures<'_>) -> String {
    let whole = found.get(0).map_or("", |m| m.as_str());
    let part = ["bearer", "url", "env"].iter().find_map(|name| found.name(name));
    match part {
        // The named part always ends the match, but for the `@` behind a URL's password.
        Some(part) => whole.replace(part.as_str(), &mask(part.as_str())),
        None => mask(whole),
    }
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
    fn the_patterns_compile() {
        assert!(SHAPE.is_some() && HINTS.is_some());
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
            "Authorization: Bearer *****************",
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
    fn named_fields_are_masked_whatever_they_look_like() {
        let redactor = Redactor::default();
        let line = redactor
            .line(&json!({ "settings": { "api_key": "looks harmless", "model": "m" } }))
            .unwrap();
        assert_eq!(line, r#"{"settings":{"api_key":"**************","model":"m"}}"#);
    }
}

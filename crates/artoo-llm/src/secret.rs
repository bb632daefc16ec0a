//! Keys that never show: a type that masks itself, and the masking of secret-shaped text (design §18, §20).
//!
//! Owns what a secret looks like here. Must not know where keys come from.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

const MASK: &str = "***";

/// A key. Its `Debug` form is a mask, and it has no `Display`, so that it gets into a log or an error only on purpose.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key; white space around it, which comes from copying, is dropped.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().to_owned())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() {
            "Secret(none)"
        } else {
            "Secret(***)"
        })
    }
}

/// What keys of known services look like; each with a name for findings.
static SHAPES: LazyLock<Vec<(&'static str, Regex)>> =
    LazyLock::new(|| {
        [
        ("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
        ("authorization header", r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{16,}=*"),
        ("provider key", r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"),
        ("Google key", r"\bAIza[0-9A-Za-z_-]{30,}"),
        ("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
        ("Slack token", r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
        ("AWS key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("web token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
        (
            "assigned key",
            r#"(?i)\b[a-z0-9_-]*(?:api[_-]?key|secret|token|passw(?:or)?d)["']?\s*[:=]\s*["']?[A-Za-z0-9._~+/-]{16,}"#,
        ),
    ]
    .into_iter()
    .filter_map(|(name, pattern)| Some((name, Regex::new(pattern).ok()?)))
    .collect()
    });

/// Replaces the given secrets, and everything shaped like one, by `***`.
pub fn mask(text: &str, known: &[Secret]) -> String {
    let mut masked = text.to_owned();
    // Very short "keys" (local servers take any word) would mask ordinary text.
    for secret in known.iter().filter(|secret| secret.0.len() >= 6) {
        masked = masked.replace(&secret.0, MASK);
    }
    for (_, shape) in SHAPES.iter() {
        masked = shape.replace_all(&masked, MASK).into_owned();
    }
    masked
}

/// The names of the secret shapes that occur in a text; empty when it is clean.
pub fn secret_shapes(text: &str) -> Vec<&'static str> {
    SHAPES
        .iter()
        .filter(|(_, shape)| shape.is_match(text))
        .map(|(name, _)| *name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_compiles() {
        assert_eq!(SHAPES.len(), 9);
    }

    #[test]
    fn a_key_shows_nowhere() {
        let key = Secret::new(" my-own-key-123 \n");
        assert_eq!(key.expose(), "my-own-key-123");
        assert_eq!(format!("{key:?}"), "Secret(***)");
        assert_eq!(mask("key my-own-key-123!", &[key]), "key ***!");
    }

    #[test]
    fn what_looks_like_a_key_is_masked_and_found() {
        let samples = [
            "sk-proj-abcdefghijklmnop1234",
            "Authorization: Bearer abcdefghijklmnop1234",
            "AIzaSyA1234567890abcdefghijklmnopqrstuv",
            "ghp_abcdefghijklmnopqrstuvwxyz",
            "OPENAI_API_KEY=abcdefghijklmnop1234",
        ];
        for sample in samples {
            assert!(!secret_shapes(sample).is_empty(), "{sample}");
            let masked = mask(sample, &[]);
            assert!(masked.contains("***") && secret_shapes(&masked).is_empty(), "{masked}");
        }
        for plain in ["risk-averse people", "the token budget is 200", "sha256 of a file"] {
            assert_eq!(mask(plain, &[]), plain);
        }
    }
}

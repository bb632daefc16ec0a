//! Keys that never show: a type that masks itself, and the masking of secret-shaped text (design §18, §20).
//!
//! What a secret looks like is the protocol's. Must not know where keys come from.

use std::fmt;

use artoo_protocol::secret;

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

/// Replaces the given secrets, and everything shaped like one, by `***`.
pub fn mask(text: &str, known: &[Secret]) -> String {
    let mut masked = text.to_owned();
    // Very short "keys" (local servers take any word) would mask ordinary text.
    for secret in known.iter().filter(|secret| secret.0.len() >= 6) {
        masked = masked.replace(&secret.0, MASK);
    }
    secret::mask(&masked, |_, _| MASK.to_owned())
}

/// The names of the secret shapes that occur in a text; empty when it is clean.
pub fn secret_shapes(text: &str) -> Vec<&'static str> {
    secret::find(text).into_iter().map(|found| found.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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

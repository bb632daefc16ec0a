//! Secrets do not leave the machine through a tool's output (design §9).
//!
//! Owns what counts as a secret: the values of variables with telling names, and texts with the shape of well-known
//! keys. Must not know tools.

use std::ffi::OsString;

use artoo_protocol::secret::{self, SHORTEST, is_secret_variable};

/// Replaces secrets by their names.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    values: Vec<(String, String)>,
}

impl Mask {
    /// Masks the secrets of this environment and every well-known key.
    pub fn of_environment(environment: &[(OsString, OsString)]) -> Self {
        let text = |part: &OsString| part.to_string_lossy().into_owned();
        let secret = environment
            .iter()
            .filter(|(name, value)| is_secret_variable(&name.to_string_lossy()) && value.len() >= SHORTEST);
        let mut values: Vec<_> = secret.map(|(name, value)| (text(value), text(name))).collect();
        // The longest first, so that a secret which contains another is masked as a whole.
        values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// The text with every secret replaced.
    pub fn text(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for (value, name) in &self.values {
            if masked.contains(value.as_str()) {
                masked = masked.replace(value.as_str(), &format!("[masked: {name}]"));
            }
        }
        secret::mask(&masked, |_, _| "[masked key]".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_by_value_and_by_shape() {
        let environment = [
            ("MY_TOKEN", "abcdefgh1234"),
            ("PIN_KEY", "1234"),
            ("HOME", "/home/someone"),
        ];
        let mask = Mask::of_environment(&environment.map(|(name, value)| (name.into(), value.into())));
        for (text, expect) in [
            ("x=abcdefgh1234;", "x=[masked: MY_TOKEN];"),
            ("1234 /home/someone", "1234 /home/someone"),
            (&format!("key sk-{}", "a1".repeat(20)), "key [masked key]"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\n",
                "[masked key]\n",
            ),
            ("sk-learn is a package", "sk-learn is a package"),
        ] {
            assert_eq!(mask.text(text), expect);
        }
    }
}

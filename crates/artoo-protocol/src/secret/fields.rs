//! Fields of JSON whose names say that they are secret (design §17).
//!
//! Owns the quick look at such a field in a line of JSON: it says yes wherever the closer look at the value would mask something.

use super::names::{counts, is_secret_name, is_surely_secret};

/// Bytes of a name that are looked at; what is longer counts as secret.
const NAME_BYTES: usize = 256;

/// Whether the name of a field ends in front of this colon, and whoever masks by names would mask its value. `hint` is the last place that
/// the name of a secret may hold.
pub(super) fn is_secret_field(text: &str, at: usize, hint: Option<usize>) -> bool {
    let bytes = text.as_bytes();
    let mut behind = bytes.get(at + 1..).unwrap_or_default().iter();
    let number = match behind.find(|b| !b.is_ascii_whitespace()) {
        Some(b'"' | b'[' | b'{') => false,
        Some(b'-' | b'0'..=b'9') => true,
        Some(_) | None => return false,
    };
    let before = bytes.get(..at).unwrap_or_default().trim_ascii_end();
    let Some((b'"', name)) = before.split_last() else {
        return false;
    };
    if is_escaped(name) {
        // JSON within a string, which is no field.
        return false;
    }
    let looked_at = name.get(name.len().saturating_sub(NAME_BYTES)..).unwrap_or_default();
    if hint.is_none_or(|hint| hint + NAME_BYTES < name.len()) {
        return name.len() > NAME_BYTES && !looked_at.iter().rev().any(|b| *b == b'"');
    }
    let mut quotes = looked_at.iter().enumerate().rev().filter(|(_, b)| **b == b'"');
    let opening = quotes.find(|(at, _)| !is_escaped(looked_at.get(..*at).unwrap_or_default()));
    match opening {
        Some((opening, _)) => {
            let name = String::from_utf8_lossy(looked_at.get(opening + 1..).unwrap_or_default());
            is_secret_name(&name) && (!number || !counts(&name) || is_surely_secret(&name))
        }
        None => name.len() > NAME_BYTES,
    }
}

/// Whether what follows these bytes of JSON is escaped.
fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|b| **b == b'\\').count() % 2 == 1
}

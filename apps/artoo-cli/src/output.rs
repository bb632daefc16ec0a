//! Writing to the terminal or a pipe: what could not be delivered is remembered, never a reason to panic (design §21).
//!
//! Owns the two streams: results go out as they are, notes without anything that could steer a terminal.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::sync::{Mutex, PoisonError};

use artoo_protocol::text::printable;
use serde::Serialize;

/// The first failure of standard output.
static FAILED: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// A line on standard output.
pub fn result(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        FAILED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
    }
}

/// A value as one line of JSON on standard output.
pub fn json(value: &impl Serialize) {
    result(&tamed(&serde_json::to_string(value).unwrap_or_default()));
}

/// A value as JSON that people read as well.
pub fn pretty_json(value: &impl Serialize) {
    result(&tamed(&serde_json::to_string_pretty(value).unwrap_or_default()));
}

/// A line on standard error.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", printable(text));
}

/// Whether nobody takes results any more.
pub fn is_broken() -> bool {
    FAILED.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Why a result did not arrive; a reader that left on its own accord, as `head` does, wanted no more.
pub fn lost() -> Option<String> {
    let failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    failed
        .as_ref()
        .filter(|error| error.kind() != ErrorKind::BrokenPipe)
        .map(ToString::to_string)
}

/// JSON leaves some control characters as they are; they can only stand inside strings, where they can be escaped.
fn tamed(json: &str) -> String {
    let mut tame = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() && c != '\n' {
            let _ = write!(tame, "\\u{:04x}", u32::from(c));
        } else {
            tame.push(c);
        }
    }
    tame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_holds_no_raw_control_characters_and_stays_the_same_value() {
        let value = serde_json::json!({"a": "x\u{1b}[2J\u{9b}1m\u{7f}\n"});
        let line = tamed(&value.to_string());
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
    }
}

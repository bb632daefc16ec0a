//! Writing to the terminal or a pipe: a reader that has gone away is no reason to panic (design §21).

use std::io::Write;

/// A line on standard output.
pub fn result(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// A line on standard error.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

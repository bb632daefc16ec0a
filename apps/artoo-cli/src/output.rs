//! Writing to the terminal or a pipe: what could not be delivered is remembered, never a reason to panic (design §21).
//!
//! Owns the two streams: results go out as they are, notes without anything that could steer a terminal.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use artoo_protocol::text::printable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use crate::failure::Failure;

/// Time between two looks at standard output.
const LOOK: Duration = Duration::from_millis(100);

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

/// A file that the person named.
///
/// # Errors
/// [`Failure`] with the path and a remedy.
pub fn file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::unwritable(path, &error))
}

/// Whether nobody takes results any more.
pub fn is_broken() -> bool {
    FAILED.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Returns when the reading end of standard output was closed; never where it is no pipe. A pipe says so only to who looks.
pub async fn reader_is_gone() {
    while !is_broken() && !hung_up() {
        tokio::time::sleep(LOOK).await;
    }
}

fn hung_up() -> bool {
    let stdout = std::io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
        && polled
            .iter()
            .any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP))
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

//! What a test says when it cannot show something on this machine (design §2).
//!
//! Owns that a skipped check is seen: it is told past the capture of the test harness, and where it was promised it fails. Tests of crates
//! that this one builds upon take the file in by its path.

use std::io::Write as _;

/// Says what is not checked here and why. Fails when `ARTOO_REQUIRE`, a list of such names with commas between them, names it.
///
/// # Panics
/// When it was required.
#[allow(clippy::panic, reason = "it is the failure of a test")]
pub fn skipped(what: &str, why: &str) {
    let required = std::env::var("ARTOO_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name.trim() == what),
        "`{what}` is required by ARTOO_REQUIRE and cannot be checked: {why}"
    );
    // Unlike `eprintln!` this is shown of tests that pass, too.
    let _ = writeln!(std::io::stderr(), "NOT CHECKED: {what}: {why}");
}

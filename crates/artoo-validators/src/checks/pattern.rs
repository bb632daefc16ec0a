//! Regular expressions from a model, bounded in size; the engine itself is linear in the text (design §7).

use artoo_protocol::text::{first_n, one_line};
use regex::{Regex, RegexBuilder};

/// Longest pattern in bytes.
const PATTERN_MAX: usize = 2000;

/// Largest compiled program in bytes.
const PROGRAM_MAX: usize = 4 << 20;

/// Compiles a pattern. `^` and `$` stand for the ends of lines, as whoever writes a check about a file means them;
/// `(?-m)` or `\A`, `\z` speak of the whole text.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN_MAX {
        return Err(format!("the pattern is longer than {PATTERN_MAX} bytes"));
    }
    RegexBuilder::new(pattern)
        .multi_line(true)
        .crlf(true)
        .size_limit(PROGRAM_MAX)
        .dfa_size_limit(PROGRAM_MAX)
        .nest_limit(100)
        .build()
        .map_err(|error| {
            let shown = first_n(pattern, 80);
            format!(
                "the pattern `{shown}` cannot be used: {}",
                one_line(&error.to_string(), 300)
            )
        })
}

/// The line of the first match, with its number from 1.
pub(super) fn first_match<'a>(regex: &Regex, text: &'a str) -> Option<(usize, &'a str)> {
    let found = regex.find(text)?;
    let before = text.get(..found.start())?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(start..)?.lines().next().unwrap_or_default();
    Some((before.matches('\n').count() + 1, line))
}

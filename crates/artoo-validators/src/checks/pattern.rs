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

/// Where a pattern matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found<'a> {
    /// The number of its line, from 1.
    pub(super) number: usize,
    /// The line in which it begins.
    pub(super) line: &'a str,
    /// The text that matched.
    pub(super) text: &'a str,
}

/// Every match, in order.
pub(super) fn matches<'a>(regex: &'a Regex, text: &'a str) -> impl Iterator<Item = Found<'a>> {
    let (mut counted, mut number) = (0, 1);
    regex.find_iter(text).map(move |found| {
        let between = text.get(counted..found.start()).unwrap_or_default();
        number += between.matches('\n').count();
        counted = found.start();
        let start = text
            .get(..found.start())
            .unwrap_or_default()
            .rfind('\n')
            .map_or(0, |at| at + 1);
        Found {
            number,
            line: text.get(start..).unwrap_or_default().lines().next().unwrap_or_default(),
            text: found.as_str(),
        }
    })
}

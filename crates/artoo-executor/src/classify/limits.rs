//! What is handed to the parser at all (design §9).
//!
//! Owns the limits that keep the known weaknesses of the parser out of reach: its stack, and the places where it goes back and tries
//! again. Must not know the shell's syntax beyond its brackets and words.

/// Commands longer than this many bytes are not analysed.
const MAX_COMMAND_BYTES: usize = 16 * 1024;
/// Brackets inside brackets beyond which a command is not analysed.
const MAX_NESTING: usize = 12;
/// How often each of these may stand in a command that is analysed. The parser goes back and tries again at each of
/// them, so that its time multiplies; quotes can hide how deep they really nest, hence their number counts.
const MAX_OPENINGS: &[(&str, usize)] = &[("(", 16), ("`", 6), ("{", 60), ("[", 60)];
/// The same for subscripts (`a[`), the slowest of all.
const MAX_SUBSCRIPTS: usize = 8;
/// Words that open a nested command, and how many of them a command may hold: each takes a part of the parser's stack.
const OPENING_WORDS: &[&str] = &[
    "if", "while", "until", "for", "case", "select", "coproc", "function", "elif", "time",
];
const MAX_OPENING_WORDS: usize = 32;
/// How deep commands inside commands (`$(…)`, `sh -c '…'`) are followed.
const MAX_DEPTH: usize = 5;

/// Whether a text is outside what may be handed to the parser, and why.
pub(super) fn unreadable(text: &str, depth: usize) -> Option<&'static str> {
    if depth > MAX_DEPTH {
        return Some("commands are nested too deep");
    }
    if text.len() > MAX_COMMAND_BYTES {
        return Some("it is too long to be analysed");
    }
    let too_many = MAX_OPENINGS
        .iter()
        .any(|(opening, limit)| text.matches(opening).count() > *limit);
    let words = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| OPENING_WORDS.contains(word))
        .count();
    if too_many || words > MAX_OPENING_WORDS || subscripts(text) > MAX_SUBSCRIPTS || deepest(text) > MAX_NESTING {
        return Some("it is nested too deep to be analysed");
    }
    text.chars()
        .any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
        .then_some("it holds control characters")
}

/// How often `[` follows a letter, digit or underscore.
fn subscripts(text: &str) -> usize {
    let after_name = |(before, c): &(char, char)| *c == '[' && (before.is_ascii_alphanumeric() || *before == '_');
    text.chars().zip(text.chars().skip(1)).filter(after_name).count()
}

/// An upper bound of how deep brackets nest; quoted ones count too, which only makes the bound larger.
fn deepest(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for c in text.chars() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

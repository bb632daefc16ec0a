//! Passwords that a text states: `password=…`, whatever they look like (design §9).
//!
//! Owns what is a value and what is code that computes one.

use super::bytes_from;

/// How long the value is that stands directly behind `password=`, if it is none that code computes: passwords are short, and hold anything.
pub(super) fn stated_password(text: &str, name: &str, adjoins: bool, at: usize, start: usize) -> Option<usize> {
    /// Shorter ones would be words of code, such as `str`.
    const LEAST: usize = 5;
    const ENDS: [&str; 4] = ["password", "passwd", "passphrase", "secret"];
    let plain = name.to_ascii_lowercase();
    let named = ENDS.iter().any(|end| plain.ends_with(end));
    if !named || !adjoins || text.as_bytes().get(at) != Some(&b'=') {
        return None;
    }
    // Nothing, or one quote, between them: behind an empty value comes something else.
    if !matches!(text.get(at + 1..start)?, "" | "\"" | "'" | "\\\"" | "\\'") {
        return None;
    }
    let quote = start.checked_sub(1).and_then(|before| text.as_bytes().get(before));
    let quote = quote.filter(|b| matches!(b, b'"' | b'\''));
    let ends = |b: u8| match quote {
        Some(quote) => b == *quote || b == b'\\' || b.is_ascii_control(),
        None => b.is_ascii_whitespace() || b.is_ascii_control() || br#""'`\&,;)|<>"#.contains(&b),
    };
    let length = bytes_from(text, start).take_while(|&b| !ends(b)).count();
    let value = text.get(start..start + length)?;
    let first = value.chars().next()?;
    // A variable, a place to fill in, a path, a call, an element, the name itself, what was masked already.
    let lower = value.to_ascii_lowercase();
    let word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    // `args.password`, `settings.CLIENT_SECRET`, `DB_PASSWORD`.
    let named_value = (value.contains('.') && value.split('.').all(word))
        || (word(value) && ENDS.iter().any(|end| lower.ends_with(end)));
    let computed = match quote {
        // Nothing is computed in single quotes.
        Some(b'\'') => lower.ends_with("password") || lower.starts_with(['{', '%', '*', '<', '[']),
        _ => {
            matches!(first, '$' | '{' | '[' | '%' | '/' | '(' | '*' | '=' | '~')
                || value.contains(['(', '['])
                || named_value
                || lower.ends_with("password")
                || matches!(lower.as_str(), "false" | "undefined" | "string")
        }
    };
    (length >= LEAST && !computed).then_some(length)
}

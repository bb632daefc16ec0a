//! A text without its escapes, and the way back (design §17).
//!
//! Owns the places only: what is a secret in it is for others.

use std::ops::Range;

/// A text without the backslashes that stand before punctuation, and where each of its bytes came from.
pub struct Plain {
    /// What is left.
    pub text: String,
    /// For each byte of it, and for its end.
    from: Vec<usize>,
}

impl Plain {
    /// `None` where nothing is escaped.
    pub fn of(text: &str) -> Option<Self> {
        if !text.contains('\\') {
            return None;
        }
        let mut plain = String::with_capacity(text.len());
        let mut from = Vec::with_capacity(text.len() + 1);
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let escaped = chars.next_if(|(_, next)| c == '\\' && (next.is_ascii_punctuation() || *next == ' '));
            let (at, c) = escaped.unwrap_or((at, c));
            from.extend(at..at + c.len_utf8());
            plain.push(c);
        }
        from.push(text.len());
        (plain.len() < text.len()).then_some(Self { text: plain, from })
    }

    /// Where a part of it stands in the text that it was made of.
    pub fn original(&self, range: Range<usize>) -> Range<usize> {
        let at = |place: usize| self.from.get(place).copied().unwrap_or_default();
        // To the end of its last byte: what escapes the next character is no part of it.
        let end = range.end.checked_sub(1).map_or(0, |last| at(last) + 1);
        at(range.start)..end.max(at(range.start))
    }
}

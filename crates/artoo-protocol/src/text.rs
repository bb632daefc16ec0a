//! Cutting text without cutting characters, and without hiding its end (design §8).
//!
//! A result often stands at the end of a long output. What shows only the head hides it, so excerpts keep both ends and
//! say how much is missing.

/// The first `n` characters.
pub fn first_n(text: &str, n: usize) -> String {
    text.chars().take(n).collect()
}

/// Text of at most about `limit` characters: whole when it fits, else head and tail with a line that counts what is missing.
///
/// The head gets two thirds. The returned text may exceed `limit` by the length of that line.
pub fn head_tail(text: &str, limit: usize) -> String {
    let total = text.chars().count();
    if total <= limit {
        return text.to_owned();
    }
    let tail = limit / 3;
    let head = limit - tail;
    let missing = total - head - tail;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(total - tail).collect();
    format!("{start}\n[… {missing} characters left out …]\n{end}")
}

/// One line for a display: control characters and line breaks become spaces, long text is cut at `limit` with an ellipsis.
pub fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let mut space = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            space = !line.is_empty();
            continue;
        }
        if space {
            line.push(' ');
            space = false;
        }
        line.push(c);
    }
    if line.chars().count() <= limit {
        return line;
    }
    let mut cut = first_n(&line, limit.saturating_sub(1));
    cut.push('…');
    cut
}

/// Replaces every control character other than newline and tab, so that untrusted text cannot steer a terminal, and every
/// character that turns the direction of text around, so that an action reads as it is.
pub fn printable(text: &str) -> String {
    let turns = |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .map(|c| {
            if (c.is_control() && c != '\n' && c != '\t') || turns(c) {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_output_keeps_head_and_tail() {
        let text = format!("start{}the result is 42", "x".repeat(10_000));
        let cut = head_tail(&text, 300);
        assert!(cut.starts_with("start") && cut.ends_with("the result is 42"));
        assert!(cut.contains("characters left out"), "{cut}");
    }

    #[test]
    fn terminal_control_sequences_are_disarmed() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\n");
        assert_eq!(printable("rm x\u{202e}txt.a"), "rm x\u{fffd}txt.a");
        assert_eq!(one_line("a\r\n\tb\u{7}c", 10), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }

    proptest! {
        #[test]
        fn cuts_never_split_a_character_nor_miscount(text in ".{0,400}", limit in 0_usize..300) {
            let total = text.chars().count();
            let cut = head_tail(&text, limit);
            if total <= limit { prop_assert_eq!(cut, text); } else {
                let marker = format!("{} characters left out", total - limit);
                prop_assert!(cut.contains(&marker), "no count");
            }
        }
    }
}

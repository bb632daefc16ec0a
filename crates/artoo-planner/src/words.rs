//! Words of any script: comparison of texts, and finding a blocked input in a text (design §6).
//!
//! Owns what counts as "the same words". Knows nothing of plans.

use unicode_segmentation::UnicodeSegmentation;

/// A text reduced to its words, so that case, punctuation and spacing make no difference.
pub fn normalised(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for word in text.unicode_words() {
        if !words.is_empty() {
            words.push(' ');
        }
        if word.is_ascii() {
            words.extend(word.chars().map(|c| c.to_ascii_lowercase()));
        } else {
            words.push_str(&word.to_lowercase());
        }
    }
    if words.is_empty() {
        return text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    words
}

/// Whether `needle` stands in `text` as a whole: not inside a longer word or path.
///
/// Needles too short to mean anything (`.`, `ls`) are never found: R3's gate compares exact inputs anyway, and a plan
/// must not be refused because of a full stop.
pub fn contains_whole(text: &str, needle: &str) -> bool {
    let needle = needle.trim();
    let telling = needle.chars().filter(|c| c.is_alphanumeric()).count();
    let needed = if needle.chars().any(unspaced) { 2 } else { 3 };
    telling >= needed
        && text.match_indices(needle).any(|(at, found)| {
            let (before, rest) = text.split_at(at);
            let after = rest.get(found.len()..).unwrap_or_default();
            !goes_on(needle.chars().next(), before.chars().next_back()) && !continues(needle, after)
        })
}

/// Whether the text after the needle belongs to the same word or path.
fn continues(needle: &str, after: &str) -> bool {
    let mut next = after.chars();
    let first = next.next();
    if matches!(first, Some('.' | '/')) {
        // `notes` goes on in `notes.txt` and in `notes/old`, not at the end of a sentence or at a closing slash.
        return next.next().is_some_and(|c| c.is_alphanumeric() || c == '*' || c == '.');
    }
    goes_on(needle.chars().next_back(), first)
}

fn goes_on(edge: Option<char>, neighbour: Option<char>) -> bool {
    let (Some(edge), Some(neighbour)) = (edge, neighbour) else {
        return false;
    };
    let wordlike = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | '~');
    wordlike(edge) && wordlike(neighbour) && !unspaced(edge) && !unspaced(neighbour)
}

/// Scripts that put no spaces between words: a neighbour there says nothing about where a word ends.
fn unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
        || (c >= '\u{2e80}' && c.is_alphanumeric() && !('\u{ac00}'..='\u{d7af}').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_same_words_are_the_same_text() {
        assert_eq!(
            normalised("Count the *Rust* files."),
            normalised("count  the rust FILES")
        );
        assert_ne!(normalised("count 3 files"), normalised("count 4 files"));
        assert_ne!(normalised("🎉"), normalised("🔥"));
    }

    #[test]
    fn a_blocked_input_is_found_whole_only() {
        for (text, needle, found) in [
            ("Read /etc/hosts.", "/etc/hosts", true),
            ("Read /etc/hosts/", "/etc/hosts", true),
            ("Read \"/etc/hosts\" again", "/etc/hosts", true),
            ("Read /etc/hosts.allow", "/etc/hosts", false),
            ("Read /etc/hosts/x", "/etc/hosts", false),
            ("Read /mnt/etc/hosts", "/etc/hosts", false),
            ("read my notes", "notes", true),
            ("read my keynotes", "notes", false),
            ("read notes_old", "notes", false),
            ("查找北京天气预报", "北京天气", true),
            ("Count files. Then stop.", ".", false),
            ("use ls here", "ls", false),
            ("run grep -r foo . now", "grep -r foo .", true),
        ] {
            assert_eq!(contains_whole(text, needle), found, "{needle:?} in {text:?}");
        }
    }

    proptest! {
        #[test]
        fn finding_never_panics(text in ".{0,60}", needle in ".{0,8}") {
            let _ = contains_whole(&text, &needle);
        }
    }
}

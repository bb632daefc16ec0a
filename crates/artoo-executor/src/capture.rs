//! Output of any length in memory of a fixed size (design §8).
//!
//! Owns what is kept of a stream: its beginning, its end, and how much there was. Must not know processes or tools.

use std::collections::VecDeque;

/// Bytes kept from the beginning of a stream.
pub const HEAD_BYTES: usize = 16 * 1024;
/// Bytes kept from its end.
pub const TAIL_BYTES: usize = 8 * 1024;

/// A stream as it comes in.
#[derive(Debug, Default)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    newlines: u64,
    last: Option<u8>,
}

/// What was kept of a stream that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Head and tail, with a line between them that counts what is missing. Bytes that are no UTF-8 are replaced.
    pub text: String,
    /// Whether something is missing.
    pub truncated: bool,
    /// Length of the whole stream.
    pub bytes: u64,
    /// Lines of the whole stream; a last line without an end counts.
    pub lines: u64,
}

impl Capture {
    /// Takes the next bytes.
    pub fn push(&mut self, chunk: &[u8]) {
        let Some(last) = chunk.last() else {
            return;
        };
        self.last = Some(*last);
        self.bytes += chunk.len() as u64;
        self.newlines += chunk.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        let room = HEAD_BYTES.saturating_sub(self.head.len()).min(chunk.len());
        let (first, rest) = chunk.split_at(room);
        self.head.extend_from_slice(first);
        // Of a chunk longer than the tail only its own end can remain.
        let rest = rest.get(rest.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default();
        let excess = (self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(rest);
    }

    /// Ends the stream.
    pub fn finish(self) -> Captured {
        let kept = (self.head.len() + self.tail.len()) as u64;
        let cut = self.bytes - kept;
        let lines = self.newlines + u64::from(self.last.is_some_and(|byte| byte != b'\n'));
        let tail: Vec<u8> = self.tail.into();
        let text = if cut == 0 {
            let mut all = self.head;
            all.extend(tail);
            String::from_utf8_lossy(&all).into_owned()
        } else {
            let head = whole_characters(without_broken_word(&self.head));
            let tail = from_next_word(&tail);
            let start = tail.iter().position(|byte| byte & 0xc0 != 0x80).unwrap_or_default();
            let tail = tail.get(start..).unwrap_or_default();
            let missing = self.bytes - (head.len() + tail.len()) as u64;
            format!(
                "{}\n[… {missing} bytes left out …]\n{}",
                String::from_utf8_lossy(head),
                String::from_utf8_lossy(tail)
            )
        };
        Captured {
            text,
            truncated: cut > 0,
            bytes: self.bytes,
            lines,
        }
    }
}

/// The longest word that is left out where it was cut.
const LONGEST_WORD: usize = 4096;

/// What a key can be made of.
const fn is_in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-')
}

/// The bytes without a word that goes on where they end: half a key would not be known for one, and not be masked.
pub(crate) fn without_broken_word(bytes: &[u8]) -> &[u8] {
    let broken = bytes
        .iter()
        .rev()
        .take(LONGEST_WORD)
        .take_while(|byte| is_in_word(**byte));
    bytes.get(..bytes.len() - broken.count()).unwrap_or_default()
}

/// The same at the beginning of what follows a gap.
fn from_next_word(bytes: &[u8]) -> &[u8] {
    let broken = bytes.iter().take(LONGEST_WORD).take_while(|byte| is_in_word(**byte));
    bytes.get(broken.count()..).unwrap_or_default()
}

/// The bytes without a character that was cut off at their end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or_default(),
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn capture(text: &[u8], step: usize) -> Captured {
        let mut capture = Capture::default();
        for chunk in text.chunks(step.max(1)) {
            capture.push(chunk);
        }
        capture.finish()
    }

    #[test]
    fn long_output_keeps_head_and_tail() {
        let text = format!("first line\n{}\nthe result is 42", "x\n".repeat(200_000));
        let kept = capture(text.as_bytes(), 4096);
        assert!(kept.text.starts_with("first line\n") && kept.text.ends_with("the result is 42"));
        assert!(kept.truncated && kept.text.contains("bytes left out"));
        assert_eq!(kept.bytes, text.len() as u64);
        assert_eq!(kept.lines, 200_003);
        assert!(kept.text.len() < HEAD_BYTES + TAIL_BYTES + 100);
    }

    #[test]
    fn characters_are_not_cut() {
        let text = "日本語".repeat(20_000);
        let kept = capture(text.as_bytes(), 1000);
        assert!(kept.truncated && !kept.text.contains(char::REPLACEMENT_CHARACTER));
    }

    #[test]
    fn a_key_that_lies_across_a_cut_is_shown_in_no_part() {
        let key = format!("sk-{}", "a1".repeat(40));
        for before in [HEAD_BYTES - 40, HEAD_BYTES - 3, HEAD_BYTES - 80] {
            let text = format!("{} {key} {}", "x\n".repeat(before / 2), "y\n".repeat(50_000));
            let kept = capture(text.as_bytes(), 4096);
            assert!(kept.truncated && !kept.text.contains("a1"), "{before}");
        }
        for behind in [TAIL_BYTES - 40, TAIL_BYTES - 80, TAIL_BYTES - 2] {
            let text = format!("{} {key} {}", "x\n".repeat(50_000), "y\n".repeat(behind / 2));
            let kept = capture(text.as_bytes(), 4096);
            assert!(kept.truncated && !kept.text.contains("a1"), "{behind}");
        }
        // A text that is one word is still shown in part.
        let kept = capture("a".repeat(100_000).as_bytes(), 4096);
        assert!(kept.text.len() > HEAD_BYTES / 2, "{}", kept.text.len());
    }

    proptest! {
        #[test]
        fn chunking_changes_nothing(text in "[a-zé\n]{0,400}", step in 1_usize..64) {
            let kept = capture(text.as_bytes(), step);
            prop_assert_eq!(&kept.text, &text);
            prop_assert_eq!(kept.lines, text.lines().count() as u64);
            prop_assert!(!kept.truncated);
        }
    }
}

//! Whether bytes are text, and in which encoding (design §8).
//!
//! Owns the guess from a file's beginning. Pure. Must not know files.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// What a beginning of bytes looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    /// Text in this encoding.
    Text(&'static Encoding),
    /// No text, and what it seems to be.
    Binary(&'static str),
}

/// Beginnings of formats that hold no zero byte at once.
const MAGIC: &[(&[u8], &str)] = &[
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"PK\x03\x04", "a ZIP archive or office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "an SQLite database"),
];

/// Of a hundred bytes, how many may be control characters in a text.
const CONTROLS_IN_HUNDRED: usize = 5;

/// How much of a file was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// All of it.
    Whole,
    /// Its beginning; the last character may be cut off.
    Start,
}

/// What these first bytes of a file look like.
pub(super) fn kind_of(start: &[u8], sample: Sample) -> TextKind {
    if let Some((encoding, _)) = Encoding::for_bom(start) {
        return TextKind::Text(encoding);
    }
    if let Some((_, what)) = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)) {
        return TextKind::Binary(what);
    }
    if start.contains(&0) {
        return utf16_without_mark(start).map_or(TextKind::Binary("a binary file"), TextKind::Text);
    }
    let controls = start.iter().filter(|&&byte| is_odd_control(byte)).count();
    if controls * 100 > start.len() * CONTROLS_IN_HUNDRED {
        return TextKind::Binary("a binary file");
    }
    match std::str::from_utf8(start) {
        Ok(_) => TextKind::Text(UTF_8),
        Err(error) if sample == Sample::Start && error.error_len().is_none() => TextKind::Text(UTF_8),
        Err(_) => TextKind::Text(WINDOWS_1252),
    }
}

const fn is_odd_control(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b) || byte == 0x7f
}

/// UTF-16 of mostly Latin text shows by zeros in every second place and nowhere else.
fn utf16_without_mark(start: &[u8]) -> Option<&'static Encoding> {
    let (pairs, _) = start.as_chunks::<2>();
    let (mut high, mut low) = (0_usize, 0_usize);
    for [first, second] in pairs {
        high += usize::from(*first == 0);
        low += usize::from(*second == 0);
    }
    let most = pairs.len() * 7 / 10;
    if pairs.is_empty() {
        None
    } else if low > most && high == 0 {
        Some(UTF_16LE)
    } else if high > most && low == 0 {
        Some(UTF_16BE)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_apart() {
        let utf16 = |text: &str, big: bool| -> Vec<u8> {
            let units = text.encode_utf16();
            units
                .flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() })
                .collect()
        };
        for (bytes, expect) in [
            (b"plain".to_vec(), TextKind::Text(UTF_8)),
            (Vec::new(), TextKind::Text(UTF_8)),
            ("Grüße, 日本".into(), TextKind::Text(UTF_8)),
            ("日".as_bytes()[..2].to_vec(), TextKind::Text(UTF_8)),
            (b"Gr\xfc\xdfe".to_vec(), TextKind::Text(WINDOWS_1252)),
            (b"\xef\xbb\xbfx".to_vec(), TextKind::Text(UTF_8)),
            (b"\xff\xfex\0".to_vec(), TextKind::Text(UTF_16LE)),
            (utf16("hello there", false), TextKind::Text(UTF_16LE)),
            (utf16("hello there", true), TextKind::Text(UTF_16BE)),
            (vec![0; 100], TextKind::Binary("a binary file")),
            (b"a\0b\0\0c".to_vec(), TextKind::Binary("a binary file")),
            ((1..=255).collect(), TextKind::Binary("a binary file")),
            (b"%PDF-1.7\n".to_vec(), TextKind::Binary("a PDF document")),
            (b"\x1b[31mred\x1b[0m".to_vec(), TextKind::Text(UTF_8)),
        ] {
            assert_eq!(
                kind_of(&bytes, Sample::Start),
                expect,
                "{:?}",
                String::from_utf8_lossy(&bytes)
            );
        }
        assert_eq!(kind_of(b"caf\xe9", Sample::Whole), TextKind::Text(WINDOWS_1252));
        assert_eq!(kind_of(b"caf\xe9", Sample::Whole), TextKind::Text(WINDOWS_1252));
    }
}

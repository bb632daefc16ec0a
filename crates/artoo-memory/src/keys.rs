//! The key schema of the store, and how free text becomes a part of a key and text again (design §15).
//!
//! | key | value |
//! |---|---|
//! | `m\|<id>` | the record, as JSON |
//! | `x\|<space>\|<entity>\|<id>` | nothing: the index by tags |
//! | `l\|<level>\|<id>` | nothing: the index by level |
//! | `r\|<id>` | when it was last recalled, RFC 3339 |
//! | `v\|format` | the version of all this |
//!
//! Owns: keys. Must not know: values, the store.

use artoo_protocol::MegramId;
use artoo_protocol::message::Level;

/// Where the version of the key schema and of the records is written.
pub const FORMAT_KEY: &str = "v|format";
/// The version written by this crate; a store with another one is not opened.
pub const FORMAT: &str = "1";
/// What the keys of all records begin with.
pub const RECORDS: &str = "m|";

/// The record's key.
pub fn record(id: &MegramId) -> String {
    format!("m|{}", escape(id.as_str()))
}

/// The key that finds a record by its tags.
pub fn tag(space: &str, entity: &str, id: &MegramId) -> String {
    format!("{}{}", group(space, entity), escape(id.as_str()))
}

/// What the tag keys of a group begin with.
pub fn group(space: &str, entity: &str) -> String {
    format!("{}{}|", groups(space), escape(entity))
}

/// What the tag keys of all groups of a space begin with.
pub fn groups(space: &str) -> String {
    format!("x|{}|", escape(space))
}

/// The key that finds a record by its level.
pub fn level(level: Level, id: &MegramId) -> String {
    format!("{}{}", levels(level), escape(id.as_str()))
}

/// What the level keys of a level begin with.
pub fn levels(level: Level) -> String {
    format!("l|{}|", level.letter())
}

/// The key of the time of the last recall.
pub fn recalled(id: &MegramId) -> String {
    format!("r|{}", escape(id.as_str()))
}

/// The id at the end of a key of any kind; `None` for a key that this schema did not make.
pub fn id_of(key: &[u8]) -> Option<MegramId> {
    let (_, last) = std::str::from_utf8(key).ok()?.rsplit_once('|')?;
    Some(MegramId::new(unescape(last)?))
}

/// Makes text safe between the separators: `|`, `%` and control characters become `%XX`, byte by byte.
pub fn escape(part: &str) -> String {
    let mut escaped = String::with_capacity(part.len());
    for c in part.chars() {
        if c == '|' || c == '%' || c.is_control() {
            let mut buffer = [0; 4];
            for byte in c.encode_utf8(&mut buffer).bytes() {
                escaped.extend(["%", &format!("{byte:02X}")]);
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// The text that [`escape`] was given; `None` for text that it cannot have made.
pub fn unescape(escaped: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let hex = [rest.next()?, rest.next()?];
            let digits = hex.iter().all(u8::is_ascii_hexdigit).then_some(hex)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_follow_the_schema() {
        let id = MegramId::new("7f");
        assert_eq!(record(&id), "m|7f");
        assert_eq!(
            tag("tool:shell", "path:/a|b%\n", &id),
            "x|tool:shell|path:/a%7Cb%25%0A|7f"
        );
        assert_eq!(level(Level::C, &id), "l|C|7f");
        assert_eq!(recalled(&id), "r|7f");
        assert_eq!(id_of(b"x|a|b|7f"), Some(id));
        for foreign in ["no separator", "x|%", "x|%4", "x|%zz", "x|%+1", "x|%ff"] {
            assert_eq!(id_of(foreign.as_bytes()), None, "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn escaping_is_reversible_and_hides_separators(part in any::<String>()) {
            let escaped = escape(&part);
            prop_assert!(!escaped.contains(|c: char| c == '|' || c.is_control()));
            prop_assert_eq!(unescape(&escaped), Some(part));
        }

        /// Otherwise one group's scan would find another group's records.
        #[test]
        fn no_group_is_a_prefix_of_another(a in "\\PC{0,6}", b in "[a|%:é]{0,6}", c in "[a|%:é]{0,6}", d in "[a|%:é]{0,6}") {
            prop_assume!((&a, &b) != (&c, &d));
            prop_assert!(!group(&a, &b).starts_with(&group(&c, &d)));
        }
    }
}

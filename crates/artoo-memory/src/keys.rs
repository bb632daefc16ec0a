//! The key schema of the store, and how free text becomes a part of a key and text again (design §15).
//!
//! | key | value |
//! |---|---|
//! | `m\|<id>` | the record, as JSON |
//! | `x\|<space>\|<entity>\|<id>` | nothing: the index by tags |
//! | `l\|<level>\|<id>` | nothing: the index by level |
//! | `r\|<id>` | when it was last recalled, RFC 3339 |
//! | `d\|<space>\|<entity>\|<sign>` | until when the Dreamer proposes no rule for a group |
//! | `g\|<space>\|<entity>\|<id>` | what a record weighed that became part of another one, and of which |
//! | `v\|dreamt`, `v\|dreamt-to` | when the Dreamer last went over everything, and how far it came since |
//! | `v\|awake` | when the Dreamer last looked, the moment by which things are old, the latest that this was, and how long time has gone on since a leap |
//! | `v\|format` | the version of all this |
//!
//! Beside these stand keys that are derived from the records and can be rebuilt from them at any time. `<time>` is sixteen hex
//! digits that count down, so that the newest comes first.
//!
//! | derived key | value |
//! |---|---|
//! | `t\|<space>\|<entity>\|<level>\|<time>\|<id>` | the numbers of a record that counts |
//! | `a\|<space>\|<entity>` | the sums of a group, by rate |
//! | `f\|<space>\|<entity>\|<id>` | as `t\|`, for what the sums leave out |
//! | `p\|<id>\|<by>` | how `by` stopped `id` from counting |
//! | `o\|<id>\|<by>` | the same, where `id` is not (yet) there, or in another group |
//! | `h\|<tool>\|<time>\|<space>\|<entity>` | nothing: groups of tools by how long they will count |
//! | `i\|<space>\|<entity>` | the words of an intent's group |
//! | `v\|derived` | that all of these are complete |
//!
//! Owns: keys. Must not know: values, the store.

use artoo_protocol::message::Level;
use artoo_protocol::{MegramId, Timestamp};

/// Where the version of the key schema and of the records is written.
pub const FORMAT_KEY: &str = "v|format";
/// The version written by this crate; a store with another one is not opened.
pub const FORMAT: &str = "2";
/// The version before, without derived keys; it is read, and completed where the store can be written.
pub const FORMAT_BEFORE: &str = "1";
/// Set while the derived keys are known to be complete.
pub const DERIVED_KEY: &str = "v|derived";
/// What the derived keys begin with.
pub const DERIVED: [&str; 7] = ["t|", "a|", "f|", "p|", "o|", "h|", "i|"];
/// What the keys of all records begin with.
pub const RECORDS: &str = "m|";

/// What the Dreamer has seen of time.
pub const AWAKE: &str = "v|awake";
/// When the Dreamer last went over everything.
pub const DREAMT: &str = "v|dreamt";
/// How far it came since, where it was stopped.
pub const DREAMT_TO: &str = "v|dreamt-to";

/// Until when the Dreamer proposes no rule of this sign for a group.
pub fn put_off(space: &str, entity: &str, sign: char) -> String {
    format!("d|{}|{}|{sign}", escape(space), escape(entity))
}

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

/// The key of a living record's numbers, in the order C, K, M and newest first.
pub fn entry(space: &str, entity: &str, level: Level, created_at: Timestamp, id: &MegramId) -> String {
    format!(
        "{}{}|{}",
        entries_of(space, entity, level),
        countdown(created_at.as_millis()),
        escape(id.as_str())
    )
}

/// What the numbers of all groups begin with.
pub const ENTRIES: &str = "t|";

/// What the numbers of a group begin with.
pub fn entries(space: &str, entity: &str) -> String {
    format!("t|{}|{}|", escape(space), escape(entity))
}

/// What the numbers of one level of a group begin with.
pub fn entries_of(space: &str, entity: &str, level: Level) -> String {
    format!("{}{}|", entries(space, entity), level.letter())
}

/// The key of a group's sums.
pub fn sums(space: &str, entity: &str) -> String {
    format!("a|{}|{}", escape(space), escape(entity))
}

/// What the sums of all groups begin with.
pub const SUMS: &str = "a|";

/// The key of the numbers of a record that a group's sums leave out.
pub fn aside(space: &str, entity: &str, id: &MegramId) -> String {
    format!("{}{}", asides(space, entity), escape(id.as_str()))
}

/// What the numbers that a group's sums leave out begin with.
pub fn asides(space: &str, entity: &str) -> String {
    format!("f|{}|{}|", escape(space), escape(entity))
}

/// The key that says that `by` replaced `id`, or was distilled from it.
pub fn ended(id: &MegramId, by: &MegramId) -> String {
    format!("{}{}", ended_by(id), escape(by.as_str()))
}

/// What the keys that tell why a record no longer counts begin with.
pub fn ended_by(id: &MegramId) -> String {
    format!("p|{}|", escape(id.as_str()))
}

/// As [`ended`], for an `id` that is not there, or in another group.
pub fn orphan(id: &MegramId, by: &MegramId) -> String {
    format!("{}{}", orphans(id), escape(by.as_str()))
}

/// As [`ended_by`], for an `id` that is not there.
pub fn orphans(id: &MegramId) -> String {
    format!("o|{}|", escape(id.as_str()))
}

/// What all keys of [`orphan`] begin with.
pub const ORPHANS: &str = "o|";

/// The key that finds a group of a tool by the moment until which it counts.
pub fn hot(tool: &str, until: i64, space: &str, entity: &str) -> String {
    format!(
        "{}{}|{}|{}",
        hots(tool),
        countdown(until),
        escape(space),
        escape(entity)
    )
}

/// What the keys of [`hot`] of one tool begin with.
pub fn hots(tool: &str) -> String {
    format!("h|{}|", escape(tool))
}

/// The key of what is left of a record that became part of another one.
pub fn trace(space: &str, entity: &str, id: &MegramId) -> String {
    format!("{}{}", traces(space, entity), escape(id.as_str()))
}

/// What the keys of [`trace`] of a group begin with.
pub fn traces(space: &str, entity: &str) -> String {
    format!("g|{}|{}|", escape(space), escape(entity))
}

/// What all keys of [`trace`] begin with.
pub const TRACES: &str = "g|";

/// The key of the words of an intent's group.
pub fn intent(space: &str, entity: &str) -> String {
    format!("i|{}|{}", escape(space), escape(entity))
}

/// What the words of all intents begin with.
pub const INTENTS: &str = "i|";

/// Sixteen hex digits that sort the latest moment first.
fn countdown(millis: i64) -> String {
    format!("{:016x}", !millis.cast_unsigned() ^ (1 << 63))
}

/// The moment that `countdown` was given.
pub fn counted_down(digits: &str) -> Option<i64> {
    let bits = u64::from_str_radix(digits, 16).ok()?;
    Some((!(bits ^ (1 << 63))).cast_signed())
}

/// The parts of a key behind its first letter, unescaped; `None` for a key that this schema did not make.
pub fn parts(key: &[u8]) -> Option<Vec<String>> {
    let (_, rest) = std::str::from_utf8(key).ok()?.split_once('|')?;
    rest.split('|').map(unescape).collect()
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
    if is_plain(part) {
        return part.to_owned();
    }
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

/// Whether text stands for itself, as nearly all does.
fn is_plain(text: &str) -> bool {
    let special = |byte| byte == b'|' || byte == b'%' || !(32..127).contains(&byte);
    !text.bytes().any(special)
}

/// The text that [`escape`] was given; `None` for text that it cannot have made.
pub fn unescape(escaped: &str) -> Option<String> {
    if is_plain(escaped) {
        return Some(escaped.to_owned());
    }
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
    // Text of another spelling would give two keys one meaning.
    String::from_utf8(bytes).ok().filter(|text| escape(text) == escaped)
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
        for foreign in [
            "no separator",
            "x|%",
            "x|%4",
            "x|%zz",
            "x|%+1",
            "x|%ff",
            "x|%7c",
            "x|%41",
        ] {
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

//! What must hold whatever bytes a reader of foreign text is given: one function a reader, panicking where its claim is broken.
//!
//! Owns the claims. The targets in `fuzz/` look for inputs that break them; `cargo test` holds them against the kept inputs.

use std::sync::LazyLock;

use artoo_bus::journal::{read, summary};
use artoo_executor::classify;
use artoo_llm::reader::{self, Shape};
use artoo_memory::keys;
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{Envelope, Event, MegramId, Message};
use serde_json::{Value, json};

use crate::whole::{self, Settings};

/// A reader and its claim.
pub type Claim = fn(&[u8]);

/// Every target by the name of its folder in `fuzz/seeds`, but for the controller's and the configuration's, whose claims are with them.
pub const CLAIMS: &[(&str, Claim)] = &[
    ("reader", reader),
    ("classify", command),
    ("journal", journal),
    ("envelope", envelope),
    ("keys", key),
];

/// Shapes as roles ask for them: with and without a wrapping, a list, a choice.
static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let schemas = [
        json!({"type": "object", "properties": {"slug": text, "intent": text, "clarify": {"type": "array", "items": text}}, "required": ["slug", "intent"]}),
        json!({"type": "object", "properties": {"verdicts": {"type": "array", "items": {"type": "object", "properties":
            {"criterion": text, "verdict": {"enum": ["pass", "fail"]}}, "required": ["criterion", "verdict"]}}}, "required": ["verdicts"]}),
        json!({"type": "object", "properties": {"rule": text}, "required": ["rule"], "additionalProperties": false}),
        json!({}),
    ];
    let compiled = schemas.iter().map(|schema| Shape::compile("claim", schema));
    compiled.filter_map(Result::ok).collect()
});

/// The tolerant reader: a value that fits, or defects that say why not; what it gave is read again as the same. The first byte
/// chooses the shape.
///
/// # Panics
/// Where that is not so.
pub fn reader(bytes: &[u8]) {
    let (which, text) = bytes.split_first().unwrap_or((&0, &[]));
    let text = String::from_utf8_lossy(text);
    let Some(shape) = SHAPES.get(usize::from(*which) % SHAPES.len()) else {
        return;
    };
    match reader::read(&text, shape) {
        Ok(reading) => {
            assert_eq!(shape.check(&reading.value), Ok(()), "what was read fits");
            let again = reader::read(&reading.value.to_string(), shape);
            let again = again.map(|reading| (reading.value, reading.defects));
            assert_eq!(again, Ok((reading.value, Vec::new())), "clean text is read as it is");
        }
        Err(unread) => {
            assert!(!unread.defects.is_empty(), "a refusal has a reason");
            assert!(!unread.first().to_string().is_empty(), "and the reason has words");
        }
    }
    let arguments = reader::read_arguments(&text);
    assert!(
        arguments.is_object() || arguments.is_string(),
        "arguments are an object or a text: {arguments}"
    );
}

/// The command classifier: whatever stands behind a deletion, the whole is no better than a deletion; a read writes nothing; the same
/// words are classed the same.
///
/// # Panics
/// Where that is not so.
pub fn command(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let class = classify(&text);
    assert_eq!(class, classify(&text), "the same words are classed the same");
    assert_eq!(
        class.effect == EffectClass::Read && class.writes.is_empty(),
        class.reason.is_none(),
        "what is no read has a reason: {class:?}"
    );
    for before in ["rm -r x\n", "rm -r x; ", "{ rm -r x; }; "] {
        let behind = classify(&format!("{before}{text}"));
        assert!(
            behind.effect >= EffectClass::Destroy,
            "a deletion before it is overlooked: {behind:?}"
        );
    }
}

/// The journal reader: the records have the numbers 1, 2, 3, …; written again they are read as the same; cut off anywhere in its last
/// line, a journal loses that line only; and whoever goes on from it refuses it or goes on, but does not panic.
///
/// # Panics
/// Where that is not so.
pub fn journal(bytes: &[u8]) {
    let Ok(contents) = read::read(bytes) else { return };
    assert!(contents.bytes <= bytes.len() as u64);
    let records = &contents.records;
    assert!(records.iter().zip(1_u64..).all(|(record, n)| record.n == n));
    let mut text = Vec::new();
    for record in records {
        text.extend(serde_json::to_vec(record).unwrap_or_default());
        text.push(b'\n');
    }
    let again = read::read(text.as_slice()).map(|contents| contents.records);
    assert_eq!(again.ok().as_ref(), Some(records), "written again it is the same");
    if let Some(last) = text.iter().rev().skip(1).position(|byte| *byte == b'\n') {
        let cut = text.len() - 1 - (last / 2);
        let torn = read::read(text.get(..cut).unwrap_or_default());
        let left = torn.map(|contents| (contents.records.len(), contents.torn));
        assert_eq!(left.ok(), Some((records.len() - 1, true)), "only the torn line is lost");
    }
    // None of these may panic.
    let _ = (
        read::task_id(records),
        read::last_seq(records),
        read::has_ended(records),
        read::open_questions(records),
    );
    let summary = summary::TaskSummary::of(records);
    assert_eq!(summary.is_some(), !records.is_empty());
    let _ = whole::replayed(&Settings::default(), records);
}

/// The envelope reader: an envelope that is read is written and read as the same, and no role panics that it is handed to.
///
/// # Panics
/// Where that is not so.
pub fn envelope(bytes: &[u8]) {
    let Ok(envelope) = serde_json::from_slice::<Envelope>(bytes) else {
        return;
    };
    let text = serde_json::to_string(&envelope).unwrap_or_default();
    let again = serde_json::from_str::<Envelope>(&text);
    assert_eq!(again.ok().as_ref(), Some(&envelope), "written again it is the same");
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    let message = serde_json::from_value::<Message>(value.get("payload").cloned().unwrap_or_default());
    assert_eq!(message.ok().as_ref(), Some(&envelope.payload), "the payload alone too");
    whole::every_role_takes(&Event::from(envelope));
}

/// The key codec: parts come back as they were, a key that is read is the one that is written, and no group's keys are found among
/// another's. Lines of the input are space, entity and id.
///
/// # Panics
/// Where that is not so.
pub fn key(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(3, '\n');
    let mut part = || parts.next().unwrap_or_default().to_owned();
    let (space, entity, id) = (part(), part(), part());
    for part in [&space, &entity, &id] {
        let escaped = keys::escape(part);
        assert!(
            !escaped.contains(|c: char| c == '|' || c.is_control()),
            "separators are hidden: {escaped}"
        );
        assert_eq!(keys::unescape(&escaped).as_ref(), Some(part), "escaping is reversible");
        if let Some(read) = keys::unescape(part) {
            assert_eq!(&keys::escape(&read), part, "what was read is what would be written");
        }
    }
    let named = MegramId::new(id.clone());
    let tag = keys::tag(&space, &entity, &named);
    assert_eq!(
        keys::parts(tag.as_bytes()),
        Some(vec![space.clone(), entity.clone(), id.clone()])
    );
    assert_eq!(keys::id_of(tag.as_bytes()), Some(named));
    if (&space, &entity) != (&entity, &id) {
        assert!(!tag.starts_with(&keys::group(&entity, &id)), "groups do not mix");
    }
    // A key that another program wrote into the store.
    if let (Some(parts), Some(id)) = (keys::parts(bytes), keys::id_of(bytes)) {
        assert_eq!(parts.last().map(String::as_str), Some(id.as_str()));
    }
}

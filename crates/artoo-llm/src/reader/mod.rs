//! The one tolerant reader of what models write (design §18).
//!
//! Models wrap, decorate and break JSON in known ways: thinking aloud before it, fences and prose around it, several
//! objects, trailing commas, line breaks inside strings. The reader finds the first value that fits the schema, says what
//! was wrong with the text, and never panics. Owns reading only; asking again is the provider's business.

mod repair;
mod scan;
mod shape;

use artoo_protocol::text;
use serde_json::Value;
use thiserror::Error;

use self::scan::{MAX_NESTING, Opening, Scanner};
pub use self::shape::{Shape, ShapeError, Shapes};

/// Longest text that is read, in bytes; the rest is left out and said to be.
pub const MAX_TEXT: usize = 512 * 1024;
/// Longest piece that is handed to the last repair step, in bytes.
const MAX_REBUILD: usize = 64 * 1024;
/// Most pieces that the last repair step tries.
const MAX_REBUILDS: usize = 16;

/// Something about a text that a well-behaved model would not have written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Defect {
    /// Longer than [`MAX_TEXT`].
    #[error("the text was longer than {MAX_TEXT} bytes and was cut")]
    TooLong,
    /// A think block stood outside the value.
    #[error("a think block was skipped")]
    ThinkBlock,
    /// A think block without its end: what follows was read all the same.
    #[error("a think block was not closed")]
    OpenThinkBlock,
    /// Something else stood around the value: prose, a label, a fence.
    #[error("there was text around the JSON value")]
    TextAround,
    /// Small faults were mended: trailing commas, raw line breaks, comments, wrong escapes.
    #[error("the JSON was mended (commas, line breaks, comments or escapes)")]
    Mended,
    /// The value had to be rebuilt by guessing: quotes, brackets.
    #[error("the JSON was rebuilt (quotes or brackets)")]
    Rebuilt,
    /// The value came inside another one.
    #[error("the value was wrapped in another one")]
    Wrapped,
    /// A value was passed over because it does not fit.
    #[error("{0}")]
    NotFitting(String),
    /// There is no JSON value at all.
    #[error("there is no JSON object in the answer")]
    NoValue,
}

/// A value and what was wrong with the text it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Fits the schema.
    pub value: Value,
    /// In the order of finding; empty for a clean answer.
    pub defects: Vec<Defect>,
}

/// Nothing in the text fits.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}", self.first())]
pub struct Unread {
    /// In the order of finding; at least one.
    pub defects: Vec<Defect>,
}

impl Unread {
    /// The defect to name when asking again: why the first value does not fit, else what is missing.
    pub fn first(&self) -> &Defect {
        self.defects
            .iter()
            .find(|defect| matches!(defect, Defect::NotFitting(_)))
            .or_else(|| self.defects.iter().find(|defect| matches!(defect, Defect::NoValue)))
            .or(self.defects.first())
            .unwrap_or(&Defect::NoValue)
    }
}

/// Finds the first value in `text` that fits `shape`.
///
/// # Errors
/// [`Unread`] when there is none, with everything that was wrong.
pub fn read(text: &str, shape: &Shape) -> Result<Reading, Unread> {
    let mut search = Search {
        shape,
        defects: Vec::new(),
    };
    let text = cut(text, &mut search.defects);
    if let Ok(value) = serde_json::from_str::<Value>(text.trim()) {
        if let Some(value) = search.offer(&value, &[]) {
            return Ok(search.reading(value));
        }
        // A whole document written as a JSON string.
        if let Value::String(inner) = &value
            && let Some(value) = search.scan(inner)
        {
            search.defects.push(Defect::Wrapped);
            return Ok(search.reading(value));
        }
    }
    match search.scan(text) {
        Some(value) => Ok(search.reading(value)),
        None => Err(search.unread()),
    }
}

/// Reads the arguments of a tool call: an object where that is what they are (small faults mended), else the text as a
/// JSON string. Nothing is guessed here, because arguments are carried out.
pub fn read_arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    let mut defects = Vec::new();
    let cut = cut(text, &mut defects);
    let object = |piece: &str| {
        serde_json::from_str::<Value>(piece)
            .or_else(|_| serde_json::from_str(&repair::mend(piece)))
            .ok()
            .filter(|value| value.is_object() && fits(value, MAX_NESTING))
    };
    let whole = cut.trim().trim_start_matches("```json").trim_matches('`').trim();
    if defects.is_empty()
        && let Some(value) = object(whole)
    {
        return value;
    }
    // Some servers send the object as a JSON string.
    if let Ok(Value::String(inner)) = serde_json::from_str::<Value>(whole)
        && let Some(value) = object(inner.trim())
    {
        return value;
    }
    Value::String(text.to_owned())
}

/// Arguments that came as a value: what is nested too deep to be written down and read again is the text that it is.
pub fn bounded(arguments: Value) -> Value {
    if fits(&arguments, MAX_NESTING) {
        return arguments;
    }
    Value::String(arguments.to_string())
}

/// Whether objects and lists stand at most so deep in one another.
fn fits(value: &Value, depth: usize) -> bool {
    match value {
        Value::Object(fields) => depth > 0 && fields.values().all(|field| fits(field, depth - 1)),
        Value::Array(items) => depth > 0 && items.iter().all(|item| fits(item, depth - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Every JSON object that stands on the top level of the text, think blocks left out; for finding a tool call that a
/// model wrote as text.
pub fn objects(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut scanner = Scanner::new(cut(text, &mut Vec::new()));
    while let Some(opening) = scanner.next_opening() {
        let value = opening.closed.and_then(|piece| parse(piece).map(|(value, _)| value));
        if let Some(value) = value {
            scanner.skip(&opening);
            if value.is_object() {
                found.push(value);
            }
        }
    }
    found
}

/// The text without think blocks and without white space around it.
///
/// Only blocks in front count: later in a text the tags may be what the text is about.
pub fn without_thinking(text: &str) -> &str {
    let mut rest = text.trim();
    while let Some(after) = scan::leading_think_block(rest) {
        rest = after.trim();
    }
    rest
}

struct Search<'a> {
    shape: &'a Shape,
    defects: Vec<Defect>,
}

impl Search<'_> {
    /// First everything that is JSON or nearly so, outermost and leftmost first; only then what has to be guessed.
    fn scan(&mut self, text: &str) -> Option<Value> {
        let mut scanner = Scanner::new(text);
        let mut broken: Vec<Opening<'_>> = Vec::new();
        let mut found = None;
        while let Some(opening) = scanner.next_opening() {
            let Some((value, mended)) = opening.closed.and_then(parse) else {
                broken.push(opening);
                continue;
            };
            scanner.skip(&opening);
            let mut with = vec![Defect::TextAround];
            if opening.is_all_of(text) {
                with.clear();
            }
            if mended {
                with.push(Defect::Mended);
            }
            if let Some(value) = self.offer(&value, &with) {
                found = Some(value);
                break;
            }
        }
        self.defects.extend(scanner.take_defects());
        found.or_else(|| self.rebuild(&broken))
    }

    fn rebuild(&mut self, broken: &[Opening<'_>]) -> Option<Value> {
        broken.iter().take(MAX_REBUILDS).find_map(|opening| {
            let piece = opening.closed.unwrap_or(opening.rest);
            let value = repair::rebuild(piece, MAX_REBUILD).filter(|value| fits(value, MAX_NESTING))?;
            // What was guessed has to fit the schema as it stands: unknown fields are what a wrong guess looks like.
            if let Err(why) = self.shape.check_strictly(&value) {
                self.note(why);
                return None;
            }
            self.defects.push(Defect::Rebuilt);
            Some(value)
        })
    }

    /// The value, or the one wrapped in it, if it fits.
    fn offer(&mut self, value: &Value, with: &[Defect]) -> Option<Value> {
        if !fits(value, MAX_NESTING) {
            self.note(format!("it is nested more than {MAX_NESTING} deep"));
            return None;
        }
        match self.shape.check(value) {
            Ok(()) => {
                self.defects.extend_from_slice(with);
                Some(value.clone())
            }
            Err(why) => {
                let inner = wrapped(value).find(|inner| self.shape.check(inner).is_ok());
                if let Some(inner) = inner {
                    self.defects.extend_from_slice(with);
                    self.defects.push(Defect::Wrapped);
                    return Some(inner.clone());
                }
                if value.is_object() {
                    self.note(why);
                }
                None
            }
        }
    }

    fn note(&mut self, why: String) {
        let defect = Defect::NotFitting(why);
        if self.defects.len() < 16 && !self.defects.contains(&defect) {
            self.defects.push(defect);
        }
    }

    fn reading(self, value: Value) -> Reading {
        Reading {
            value,
            defects: self.defects,
        }
    }

    fn unread(mut self) -> Unread {
        if !self
            .defects
            .iter()
            .any(|defect| matches!(defect, Defect::NotFitting(_)))
        {
            self.defects.push(Defect::NoValue);
        }
        Unread { defects: self.defects }
    }
}

/// JSON, as it is or with small faults mended.
fn parse(piece: &str) -> Option<(Value, bool)> {
    if let Ok(value) = serde_json::from_str(piece) {
        return Some((value, false));
    }
    Some((serde_json::from_str(&repair::mend(piece)).ok()?, true))
}

/// The values one level inside a small object or a list of one.
fn wrapped(value: &Value) -> impl Iterator<Item = &Value> {
    let (fields, items) = match value {
        Value::Object(fields) if fields.len() <= 3 => (Some(fields.values()), None),
        Value::Array(items) if items.len() == 1 => (None, Some(items.iter())),
        _ => (None, None),
    };
    fields.into_iter().flatten().chain(items.into_iter().flatten())
}

fn cut<'a>(text: &'a str, defects: &mut Vec<Defect>) -> &'a str {
    if text.len() <= MAX_TEXT {
        return text;
    }
    defects.push(Defect::TooLong);
    let end = (0..=MAX_TEXT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

/// A schema error as one short line.
fn short(error: &str) -> String {
    text::one_line(error, 240)
}

#[cfg(test)]
mod tests;

//! How long the texts of a record may be, and when two of them say the same (design §15).
//!
//! Owns these bounds. Must not know: the store.

use crate::folding::exporting::Exported;
use crate::ties::targets;
use artoo_protocol::message::{MacroState, Megram};
use artoo_protocol::{MegramId, text};

/// Longest content that is kept, in characters; a longer one is refused.
pub const CONTENT_MAX: usize = 8000;
/// What a role writes is cut to about this.
const LESSON_MAX: usize = 4000;
/// Longest space, entity and origin, in characters; longer ones are cut in queries and in what roles write.
const TAG_MAX: usize = 1000;
/// Longest id, in bytes.
pub(crate) const ID_MAX: usize = 200;
/// Most memories that one of an import may name as what it was distilled from.
const SOURCES_MAX: usize = 4096;

/// What a role writes, cut to the bounds: a lesson keeps its head and its tail. What a person says is never cut.
pub(crate) fn bounded(mut megram: Megram) -> Megram {
    for text in [&mut megram.space, &mut megram.entity]
        .into_iter()
        .chain(&mut megram.origin)
    {
        if text.len() > TAG_MAX {
            *text = tag(text);
        }
    }
    if megram.content.len() > LESSON_MAX && megram.state != MacroState::Remember {
        megram.content = text::head_tail(&megram.content, LESSON_MAX);
    }
    megram
}

/// What is too long about a record; nothing is stored in part.
pub(crate) fn too_long(megram: &Megram) -> Option<&'static str> {
    let is_longer = |text: &str, most: usize| text.len() > most && text.chars().nth(most).is_some();
    if is_longer(&megram.content, CONTENT_MAX) {
        return Some("it is longer than 8000 characters");
    }
    let tags = [Some(&megram.space), Some(&megram.entity), megram.origin.as_ref()];
    let is_too_long = tags.into_iter().flatten().any(|text| is_longer(text, TAG_MAX));
    is_too_long.then_some("its space, entity or origin is longer than 1000 characters")
}

/// Whether a record names another one by an id that none can have.
pub(crate) fn names_too_long_an_id(megram: &Megram) -> bool {
    targets(megram).any(|id| id.as_str().len() > ID_MAX)
}

/// Why a line of an import is not taken, whatever is known already: each memory that it names becomes keys of its own, written together.
pub(crate) fn names_too_much(line: &Exported) -> Option<&'static str> {
    let is_long = |id: &MegramId| id.as_str().len() > ID_MAX;
    if line
        .parts
        .iter()
        .any(|part| is_long(&part.id) || part.same_as.as_ref().is_some_and(is_long))
    {
        return Some("the id of a part of it is longer than 200 bytes");
    }
    (line.megram.sources.len() > SOURCES_MAX).then_some("it names more than 4096 memories that it was distilled from")
}

pub(crate) fn tag(text: &str) -> String {
    text::first_n(text, TAG_MAX)
}

/// Whether two contents differ in case and spacing at most.
pub(crate) fn same_words(left: &str, right: &str) -> bool {
    let left = left.split_whitespace().map(str::to_lowercase);
    let right = right.split_whitespace().map(str::to_lowercase);
    // The first word that differs settles it.
    left.eq(right)
}

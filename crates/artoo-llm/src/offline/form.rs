//! Matches sentences against forms (design §18).
//!
//! Owns the little language that the grammar's table is written in. Must not know what a sentence means, nor the phrases
//! that fill its slots (see `phrases`).
//!
//! A form is words separated by spaces. `a|b` is either, `many_words` are several in a row, `[a|b]` may be left out,
//! `{slot}` is filled. Slots: `files` (all the Rust files), `place` (this folder, crates), `where` (in crates; may be left
//! out: here), `file` (any name), `name` (a file by its look, or in quotes), `filename` (a file by its look), `text` (in
//! quotes, or one word behind `the text`), `word` (text, or one word), `unit` (lines, words), `code` (Rust code), `n` (5,
//! five), `step` (2), `result` (it, the number, the list of files).

use super::phrases::{
    code, file, files, is_quoted, location, looks_like_file, number, place, result, text, unit, words,
};
use super::step::{FileSet, Unit};
use super::words::Token;

/// What the slots of a form were filled with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filled {
    pub files: FileSet,
    /// One file was asked for: `the largest file`.
    pub single: bool,
    /// `None` where the sentence names no place: here.
    pub place: Option<String>,
    pub file: Option<String>,
    pub text: Option<String>,
    pub unit: Option<Unit>,
    pub number: Option<u32>,
    pub step: Option<u32>,
}

/// Whether the tokens have this form, and what fills its slots.
pub(super) fn matches(form: &str, tokens: &[Token]) -> Option<Filled> {
    let items: Vec<&str> = form.split(' ').filter(|item| !item.is_empty()).collect();
    walk(&items, tokens, &Filled::default())
}

fn walk(items: &[&str], tokens: &[Token], filled: &Filled) -> Option<Filled> {
    let Some((item, items)) = items.split_first() else {
        return tokens.is_empty().then(|| filled.clone());
    };
    let optional = item.strip_prefix('[').and_then(|item| item.strip_suffix(']'));
    let inner = optional.unwrap_or(item);
    let ways = match inner.strip_prefix('{').and_then(|slot| slot.strip_suffix('}')) {
        Some(slot) => fill(slot, tokens, filled),
        None => words(inner, tokens).map(|taken| (taken, filled.clone())).collect(),
    };
    let found = ways
        .into_iter()
        .find_map(|(taken, filled)| walk(items, tokens.get(taken..)?, &filled));
    found.or_else(|| optional.and_then(|_| walk(items, tokens, filled)))
}

/// The ways to fill a slot from the front of the tokens, each with how many it takes.
fn fill(slot: &str, tokens: &[Token], filled: &Filled) -> Vec<(usize, Filled)> {
    let with = |taken: usize, change: &dyn Fn(&mut Filled)| {
        let mut filled = filled.clone();
        change(&mut filled);
        (taken, filled)
    };
    let one = |way: Option<(usize, Filled)>| way.into_iter().collect::<Vec<_>>();
    let at_place = |(taken, name): (usize, String)| with(taken, &|filled| filled.place = Some(name.clone()));
    let of_file = |(taken, name): (usize, String)| with(taken, &|filled| filled.file = Some(name.clone()));
    let of_text = |(taken, text): (usize, String)| with(taken, &|filled| filled.text = Some(text.clone()));
    match slot {
        "files" => files(tokens)
            .into_iter()
            .map(|(taken, set, single)| with(taken, &|filled| (filled.files, filled.single) = (set.clone(), single)))
            .collect(),
        "code" => one(code(tokens).map(|(taken, set)| with(taken, &|filled| filled.files = set.clone()))),
        "place" => place(tokens).into_iter().map(at_place).collect(),
        "where" => {
            let mut ways: Vec<_> = location(tokens).into_iter().map(at_place).collect();
            ways.push((0, filled.clone()));
            ways
        }
        "file" => one(file(tokens).map(of_file)),
        "name" => {
            let said = tokens.iter().take(3).any(|token| token.is("file")) || is_quoted(tokens);
            one(file(tokens)
                .filter(|(_, name)| said || looks_like_file(name))
                .map(of_file))
        }
        "filename" => one(file(tokens).filter(|(_, name)| looks_like_file(name)).map(of_file)),
        "text" => one(text(tokens, false).map(of_text)),
        "word" => one(text(tokens, true).map(of_text)),
        "unit" => one(unit(tokens).map(|(taken, unit)| with(taken, &|filled| filled.unit = Some(unit)))),
        "n" => one(number(tokens).map(|n| with(1, &|filled| filled.number = Some(n)))),
        "step" => one(number(tokens).map(|n| with(1, &|filled| filled.step = Some(n)))),
        "result" => one(result(tokens).map(|taken| (taken, filled.clone()))),
        _ => Vec::new(),
    }
}

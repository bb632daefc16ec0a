//! Finds where JSON values begin and end in prose (design §18).
//!
//! Owns positions, never meaning: whether a piece is JSON is for others to say. Work is bounded, whatever the text.

use super::Defect;

/// How many bytes are looked at in all, as a multiple of the text's length.
const WORK_FACTOR: usize = 24;
/// Deepest nesting of brackets that counts as a value: below what a parser takes, so that there is room for what is put around it.
pub(super) const MAX_NESTING: usize = 96;

const THINK_TAGS: [(&str, &str); 4] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
];

/// A `{` or `[` outside think blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening<'a> {
    at: usize,
    /// From the bracket to its partner, when there is one.
    pub closed: Option<&'a str>,
    /// From the bracket to the end of the text.
    pub rest: &'a str,
}

impl Opening<'_> {
    pub fn is_all_of(&self, text: &str) -> bool {
        self.closed.is_some_and(|piece| piece.len() == text.trim().len())
    }
}

/// Walks over a text from opening to opening; goes inside one unless it is told to [`Scanner::skip`] it.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    work: usize,
    defects: Vec<Defect>,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        // Some models' templates open the block themselves, so that only its end is in the text. An end tag inside
        // the value itself is told apart by the bracket in front of it.
        let mut defects = Vec::new();
        let mut at = 0;
        if let Some(end) = orphan_end(text) {
            at = end;
            defects.push(Defect::ThinkBlock);
        }
        Self {
            text,
            at,
            work: text.len().saturating_mul(WORK_FACTOR).saturating_add(4096),
            defects,
        }
    }

    pub fn next_opening(&mut self) -> Option<Opening<'a>> {
        loop {
            let rest = self.text.get(self.at..)?;
            let offset = rest.find(['{', '[', '<'])?;
            self.at += offset;
            let rest = rest.get(offset..)?;
            if rest.starts_with('<') {
                self.at += self.pass_tag(rest);
                continue;
            }
            let at = self.at;
            self.at += 1;
            let closed = self.partner(rest).and_then(|end| rest.get(..end));
            self.work = self.work.checked_sub(closed.map_or(rest.len(), str::len))?;
            return Some(Opening { at, closed, rest });
        }
    }

    /// Goes on behind the value instead of inside it.
    pub fn skip(&mut self, opening: &Opening<'_>) {
        self.at = opening.at + opening.closed.map_or(1, str::len);
    }

    pub fn take_defects(&mut self) -> Vec<Defect> {
        std::mem::take(&mut self.defects)
    }

    fn pass_tag(&mut self, rest: &str) -> usize {
        match think_block(rest) {
            Some(Ok(len)) => {
                self.defects.push(Defect::ThinkBlock);
                len
            }
            Some(Err(tag_len)) => {
                self.defects.push(Defect::OpenThinkBlock);
                tag_len
            }
            None => 1,
        }
    }

    /// The length from the opening bracket to behind its partner, with strings respected.
    fn partner(&self, rest: &str) -> Option<usize> {
        let single = rest
            .get(1..)
            .is_some_and(|inside| inside.trim_start().starts_with('\''));
        let mut closers: Vec<u8> = Vec::new();
        let mut quote: Option<u8> = None;
        let mut escaped = false;
        for (position, byte) in rest.bytes().enumerate() {
            if let Some(end) = quote {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    _ if byte == end => quote = None,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => quote = Some(b'"'),
                b'\'' if single => quote = Some(b'\''),
                b'{' => closers.push(b'}'),
                b'[' => closers.push(b']'),
                b'}' | b']' => {
                    if closers.pop() != Some(byte) {
                        return None;
                    }
                    if closers.is_empty() {
                        return Some(position + 1);
                    }
                }
                _ => {}
            }
            if closers.len() > MAX_NESTING || position > self.work {
                return None;
            }
        }
        None
    }
}

/// What follows a think block at the very start of the text: its length when it is closed.
pub(super) fn leading_think_block(text: &str) -> Option<&str> {
    if let Some(block) = think_block(text) {
        return match block {
            Ok(len) => text.get(len..),
            Err(tag_len) => text.get(tag_len..),
        };
    }
    orphan_end(text).and_then(|end| text.get(end..))
}

/// `Ok` with the block's length, `Err` with the tag's length when the block has no end, `None` when it is no think tag.
fn think_block(rest: &str) -> Option<Result<usize, usize>> {
    let (open, close) = THINK_TAGS.into_iter().find(|(open, _)| starts_with(rest, open))?;
    Some(find(rest, close).map(|at| at + close.len()).ok_or(open.len()))
}

/// Behind an end tag that has no beginning and stands before any bracket-delimited value is complete.
fn orphan_end(text: &str) -> Option<usize> {
    let (at, open, close) = THINK_TAGS
        .into_iter()
        .find_map(|(open, close)| Some((find(text, close)?, open, close)))?;
    let before = text.get(..at)?;
    let starts_as_value = before.trim_start().starts_with(['{', '[', '"', '`']);
    (find(before, open).is_none() && !starts_as_value).then_some(at + close.len())
}

fn starts_with(text: &str, tag: &str) -> bool {
    text.get(..tag.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(tag))
}

/// Position of an ASCII tag, letters compared without case.
fn find(text: &str, tag: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(offset) = text.get(from..)?.find('<') {
        let at = from + offset;
        if starts_with(text.get(at..)?, tag) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

//! Mends broken JSON: first without guessing, then, as the last step, with (design §18).
//!
//! Owns text-to-text repair. Must not know schemas.

use std::fmt::Write as _;

use llm_json::RepairOptions;
use serde_json::Value;

/// Most brackets in a piece that is rebuilt: the repairing parser descends once for each, so this bounds its stack.
const MAX_BRACKETS: usize = 400;
/// Longest run of white space in such a piece; the repairing parser looks ahead over it from every character.
const MAX_BLANK: usize = 512;

/// Mends faults whose meaning is beyond doubt: trailing commas, comments, raw control characters and wrong escapes in
/// strings, `True`/`False`/`None`. The result may still not be JSON.
pub(super) fn mend(piece: &str) -> String {
    let mut out = String::with_capacity(piece.len() + 16);
    let mut chars = piece.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                out.push('"');
                mend_string(&mut chars, &mut out, piece);
            }
            '/' if matches!(chars.peek(), Some((_, '/' | '*'))) => skip_comment(&mut chars),
            ',' => {
                let next = piece.get(at + 1..).unwrap_or_default().trim_start();
                if !next.starts_with(['}', ']', ',']) {
                    out.push(',');
                }
            }
            'T' | 'F' | 'N' => match literal(piece, at) {
                Some((python, json)) => {
                    out.push_str(json);
                    for _ in 1..python.len() {
                        chars.next();
                    }
                }
                None => out.push(c),
            },
            _ => out.push(c),
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::CharIndices<'a>>;

/// Copies the rest of a string, its closing quote included.
fn mend_string(chars: &mut Chars<'_>, out: &mut String, piece: &str) {
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                out.push('"');
                return;
            }
            '\\' => {
                let Some(&(_, next)) = chars.peek() else { return };
                let known = match next {
                    '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => true,
                    'u' => piece
                        .get(at + 2..at + 6)
                        .is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit())),
                    // `\'` is how other languages escape an apostrophe; JSON needs none.
                    '\'' => continue,
                    _ => false,
                };
                out.push_str(if known { "\\" } else { "\\\\" });
                out.push(next);
                chars.next();
            }
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

fn skip_comment(chars: &mut Chars<'_>) {
    let block = matches!(chars.next(), Some((_, '*')));
    let mut star = false;
    for (_, c) in chars.by_ref() {
        if block && star && c == '/' || !block && c == '\n' {
            return;
        }
        star = c == '*';
    }
}

/// A Python literal that stands alone at this place, and its JSON form.
fn literal(piece: &str, at: usize) -> Option<(&'static str, &'static str)> {
    let rest = piece.get(at..)?;
    let alone_before = !piece.get(..at)?.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    [("True", "true"), ("False", "false"), ("None", "null")]
        .into_iter()
        .find(|(python, _)| {
            let after = rest.strip_prefix(python);
            alone_before && after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
}

/// Rebuilds an object by guessing quotes and brackets; `None` where that cannot be done, or the text ends inside a string,
/// which means that something is missing rather than badly written.
pub(super) fn rebuild(piece: &str, max_bytes: usize) -> Option<Value> {
    let brackets = piece.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if piece.len() > max_bytes || brackets > MAX_BRACKETS || longest_blank(piece) > MAX_BLANK || ends_in_string(piece) {
        return None;
    }
    let options = RepairOptions {
        skip_json_loads: false,
        return_objects: false,
        // Its ASCII form cuts characters beyond the basic plane to four hex digits.
        ensure_ascii: false,
        stream_stable: false,
    };
    [mend(piece), piece.to_owned()]
        .iter()
        .find_map(|text| llm_json::loads(text, &options).ok())
        .filter(Value::is_object)
}

fn longest_blank(piece: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in piece.chars() {
        run = if c.is_whitespace() { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

fn ends_in_string(piece: &str) -> bool {
    let mut inside = false;
    let mut escaped = false;
    for byte in piece.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    inside
}

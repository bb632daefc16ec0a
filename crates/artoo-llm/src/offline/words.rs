//! Sentences as tokens, and names as words of a sentence (design §18).
//!
//! Owns quoting in both directions: what [`quoted`] writes, [`tokens`] reads back.

/// Most tokens of a sentence; nobody writes longer ones in a small grammar.
pub(super) const MAX_TOKENS: usize = 80;

/// One piece of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A bare word, as written.
    Word(String),
    /// Text that stood in quotes; never a keyword.
    Quoted(String),
    /// A comma, semicolon, colon or full stop.
    Stop,
}

impl Token {
    /// Whether it is this keyword.
    pub fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    /// What it says, bare or quoted.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Word(text) | Self::Quoted(text) => Some(text),
            Self::Stop => None,
        }
    }
}

/// Quotes that open a text, with what closes it.
const QUOTES: [(char, char); 6] = [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('«', '»')];

/// The tokens of a sentence; `None` when it is longer than any that is known.
pub(super) fn tokens(sentence: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = sentence.trim_start();
    while let Some(first) = rest.chars().next() {
        if tokens.len() > MAX_TOKENS {
            return None;
        }
        let quote = QUOTES.iter().find(|(open, _)| *open == first);
        if let Some((text, after)) = quote.and_then(|(open, close)| quoted_text(rest, *open, *close)) {
            tokens.push(Token::Quoted(text));
            rest = after.trim_start();
            continue;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        push_word(word, &mut tokens);
        rest = after.trim_start();
    }
    while tokens.last() == Some(&Token::Stop) {
        tokens.pop();
    }
    Some(tokens)
}

fn quoted_text(rest: &str, open: char, close: char) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == '\\' && open == '"' {
            // Only a quote and a backslash need escaping; anything else is text.
            match rest.get(at + 1..).and_then(|after| after.chars().next()) {
                Some(escaped @ ('"' | '\\')) => {
                    text.push(escaped);
                    chars.next();
                }
                _ => text.push(c),
            }
        } else if c == close {
            return Some((text, rest.get(at + c.len_utf8()..)?));
        } else {
            text.push(c);
        }
    }
    None
}

/// A word without the punctuation behind it, which becomes a [`Token::Stop`].
fn push_word(word: &str, tokens: &mut Vec<Token>) {
    let mut core = word;
    let mut stop = false;
    while let Some(last) = core.chars().last() {
        let before = core.get(..core.len() - last.len_utf8()).unwrap_or_default();
        let part_of_name = match last {
            // `.`, `..`, `./` and `a/.` are paths; a full stop follows a word.
            '.' => before.is_empty() || before.ends_with(['.', '/']),
            // A `?` that is part of a pattern stands beside other letters of a name with a dot: `a?.rs`.
            ',' | ';' | ':' | '!' | '?' => false,
            _ => true,
        };
        if part_of_name {
            break;
        }
        core = before;
        stop = true;
    }
    if !core.is_empty() {
        tokens.push(Token::Word(core.to_owned()));
    }
    if stop && !tokens.is_empty() {
        tokens.push(Token::Stop);
    }
}

/// A name as it can stand in a sentence: bare when it is simple, else in quotes.
pub(super) fn named(name: &str) -> String {
    let simple = !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || "/._-~*+@%=".contains(c))
        && name
            .chars()
            .next()
            .is_some_and(|c| c.is_alphanumeric() || "/.~*_".contains(c));
    if simple { name.to_owned() } else { quoted(name) }
}

/// A text in quotes, whatever it holds.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(text: &str) -> Token {
        Token::Word(text.into())
    }

    #[test]
    fn words_quotes_and_stops_are_told_apart() {
        let read = tokens("Count 'my files', in ./a. Then “write it” to ~/b c?  ").unwrap();
        let quoted = |text: &str| Token::Quoted(text.into());
        let expected = [
            word("Count"),
            quoted("my files"),
            Token::Stop,
            word("in"),
            word("./a"),
            Token::Stop,
            word("Then"),
            quoted("write it"),
            word("to"),
            word("~/b"),
            word("c"),
        ];
        assert_eq!(read, expected);
        assert_eq!(tokens("files in .").unwrap().last(), Some(&word(".")));
        assert_eq!(tokens("files in ../..").unwrap().last(), Some(&word("../..")));
        assert_eq!(
            tokens("what's in README.md?").unwrap(),
            [word("what's"), word("in"), word("README.md")]
        );
        assert_eq!(tokens(&"a ".repeat(1000)), None);
    }

    proptest! {
        #[test]
        fn quoted_text_is_read_back(text in any::<String>()) {
            prop_assert_eq!(tokens(&quoted(&text)), Some(vec![Token::Quoted(text)]));
        }

        #[test]
        fn any_sentence_is_survived(text in any::<String>()) {
            let _ = tokens(&text);
        }
    }
}

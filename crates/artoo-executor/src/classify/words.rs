//! A shell word after quote removal, and how much of it is known before the command runs (design §9).
//!
//! Owns the reading of quoting, expansions and substitutions. Must not know any program.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast;
use brush_parser::word::{self, TildeExpr, WordPiece, WordPieceWithSource};

use super::Walk;
use super::expansion::{is_number, named};
use super::grammar::options;

/// One argument as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg {
    known: String,
    shape: Shape,
    /// Whether a `~` at its beginning stands for the home folder, and not for itself.
    home: bool,
    /// Whether it begins like no option, however it begins.
    plain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    /// Exactly this word.
    Literal,
    /// One word that begins with the known text, behind which stand digits.
    Number,
    /// One word that begins with the known text.
    One,
    /// One or more words that all begin with the known text: a glob.
    Several,
    /// Any number of words; only the first is known to begin with the text.
    Split,
    /// `$!`: the number of the last command in the background, or nothing at all.
    Job,
}

impl Arg {
    /// A word that is known completely.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            known: text.into(),
            shape: Shape::Literal,
            home: false,
            plain: false,
        }
    }

    /// One word of which only the beginning is known.
    pub fn one(prefix: impl Into<String>) -> Self {
        Self {
            known: prefix.into(),
            shape: Shape::One,
            home: false,
            plain: false,
        }
    }

    /// Any number of unknown words.
    pub fn any() -> Self {
        Self {
            known: String::new(),
            shape: Shape::Split,
            home: false,
            plain: false,
        }
    }

    /// One word that begins as this one does.
    pub fn beginning(&self) -> Self {
        Self {
            shape: Shape::One,
            ..self.clone()
        }
    }

    /// The whole word, if it is known.
    pub fn literal(&self) -> Option<&str> {
        (self.shape == Shape::Literal).then_some(self.known.as_str())
    }

    /// The whole word as a path, if it is known: `~/` at its beginning is the home folder.
    pub fn path(&self) -> Option<String> {
        let text = self.literal()?;
        match text.strip_prefix('~') {
            Some(_) if !self.home => Some(format!("./{text}")),
            Some(rest) if !rest.is_empty() && !rest.starts_with('/') => None,
            Some(_) | None => Some(text.to_owned()),
        }
    }

    /// The text that it certainly begins with.
    pub fn known(&self) -> &str {
        &self.known
    }

    /// Whether an unknown option could hide in it. False for literals, which are judged by their text.
    pub fn may_hide_option(&self) -> bool {
        match self.shape {
            Shape::Literal => false,
            Shape::Number => self.known.starts_with('-'),
            Shape::One if self.plain => false,
            Shape::One | Shape::Several => self.known.is_empty() || self.known.starts_with('-'),
            Shape::Split | Shape::Job => true,
        }
    }

    /// Whether it is `$!` and nothing else.
    pub fn is_job(&self) -> bool {
        self.shape == Shape::Job
    }

    /// Whether it could turn out to be one of these words, or several words.
    pub fn may_be(&self, words: &[&str]) -> bool {
        match self.literal() {
            Some(text) => words.contains(&text),
            None => !self.is_single() || (!self.plain && words.iter().any(|word| word.starts_with(&self.known))),
        }
    }

    /// Whether it stands for exactly one word.
    pub fn is_single(&self) -> bool {
        self.shape <= Shape::One
    }
}

/// A word under construction.
struct Draft {
    known: String,
    /// Whether everything so far is known, so that `known` still grows.
    open: bool,
    shape: Shape,
    home: bool,
    plain: bool,
}

impl Draft {
    fn new() -> Self {
        Self {
            known: String::new(),
            open: true,
            shape: Shape::Literal,
            home: false,
            plain: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.open && self.known.is_empty()
    }

    /// `~`, or the variable that it stands for.
    fn begin_at_home(&mut self) {
        self.home |= self.is_empty();
        self.push("~");
    }

    fn push(&mut self, text: &str) {
        if self.open {
            self.known.push_str(text);
        }
    }

    fn end(&mut self, shape: Shape) {
        self.open = false;
        self.shape = self.shape.max(shape);
    }

    fn arg(self) -> Arg {
        Arg {
            known: self.known,
            shape: self.shape,
            home: self.home,
            plain: self.plain,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Double,
}

impl Walk {
    /// Reads a word, following the commands inside it.
    pub(super) fn word(&mut self, word: &ast::Word) -> Arg {
        self.raw_word(&word.value)
    }

    pub(super) fn raw_word(&mut self, text: &str) -> Arg {
        if text == "[" {
            // Alone it is a program, not the beginning of a pattern.
            return Arg::text(text);
        }
        if ["$!", "\"$!\""].contains(&text) {
            return Arg {
                shape: Shape::Job,
                ..Arg::any()
            };
        }
        let Some(pieces) = self.pieces(text, |text| word::parse(text, &options())) else {
            return Arg::any();
        };
        let mut draft = Draft::new();
        self.pieces_into(&mut draft, &pieces, Quoting::None);
        draft.arg()
    }

    /// The body of a here-document whose delimiter is not quoted.
    pub(super) fn here_document(&mut self, text: &str) {
        if let Some(pieces) = self.pieces(text, |text| word::parse_heredoc(text, &options())) {
            let mut draft = Draft::new();
            self.pieces_into(&mut draft, &pieces, Quoting::Double);
        }
    }

    fn pieces<E>(
        &mut self,
        text: &str,
        parse: impl Fn(&str) -> Result<Vec<WordPieceWithSource>, E>,
    ) -> Option<Vec<WordPieceWithSource>> {
        // Both limits keep known weaknesses of the parser out of reach: a number after `~` that fits no integer, and
        // recursion.
        let hostile = super::limits::unreadable(text, self.depth).is_some();
        let pieces = if hostile {
            None
        } else {
            catch_unwind(AssertUnwindSafe(|| parse(text).ok())).ok().flatten()
        };
        if pieces.is_none() {
            self.runs_anything("a word in it is not understood");
        }
        pieces
    }

    fn pieces_into(&mut self, draft: &mut Draft, pieces: &[WordPieceWithSource], quoting: Quoting) {
        for piece in pieces {
            self.piece(draft, &piece.piece, quoting);
        }
    }

    fn piece(&mut self, draft: &mut Draft, piece: &WordPiece, quoting: Quoting) {
        let expanded = if quoting == Quoting::Double {
            Shape::One
        } else {
            Shape::Split
        };
        match piece {
            WordPiece::Text(text) => self.plain_text(draft, text, quoting),
            WordPiece::SingleQuotedText(text) => draft.push(text),
            WordPiece::AnsiCQuotedText(text) => match ansi_c(text) {
                Some(text) => draft.push(&text),
                None => draft.end(Shape::One),
            },
            WordPiece::DoubleQuotedSequence(pieces) => self.pieces_into(draft, pieces, Quoting::Double),
            WordPiece::GettextDoubleQuotedSequence(_) => self.unknown("it holds a translated string"),
            WordPiece::TildeExpansion(TildeExpr::Home) => draft.begin_at_home(),
            WordPiece::TildeExpansion(_) => {
                draft.push("~");
                draft.end(Shape::One);
            }
            WordPiece::ParameterExpansion(expression) if named(expression) == Some("HOME") && draft.is_empty() => {
                self.at_home = true;
                draft.begin_at_home();
            }
            WordPiece::ParameterExpansion(expression) => {
                self.relies_on(draft, named(expression), quoting);
                let several = self.parameter(expression);
                let shape = if several { Shape::Split } else { expanded };
                draft.end(if is_number(expression) { Shape::Number } else { shape });
            }
            WordPiece::CommandSubstitution(script) | WordPiece::BackquotedCommandSubstitution(script) => {
                self.script(script, self.depth + 1);
                draft.end(expanded);
            }
            WordPiece::EscapeSequence(escape) => {
                draft.push(escape.strip_prefix('\\').unwrap_or(escape).trim_matches('\n'));
            }
            WordPiece::ArithmeticExpression(expression) => {
                self.arithmetic(&expression.value);
                draft.end(Shape::One);
            }
        }
    }

    /// A quoted variable of a loop at the beginning of a word begins like one of the words that the loop goes over.
    fn relies_on(&mut self, draft: &mut Draft, variable: Option<&str>, quoting: Quoting) {
        if let Some(name) = variable.filter(|name| self.plain.contains(*name))
            && quoting == Quoting::Double
            && draft.is_empty()
        {
            draft.plain = true;
            self.relied_on.insert(name.to_owned());
        }
    }

    fn plain_text(&mut self, draft: &mut Draft, text: &str, quoting: Quoting) {
        if text.contains('`') || text.contains("$(") || text.contains("${") {
            self.runs_anything("an expansion in it is not understood");
            return draft.end(Shape::Split);
        }
        if quoting == Quoting::Double {
            return draft.push(text);
        }
        // `{}` and `@{0}` stand for themselves; braces with a comma or a range expand to several words.
        let without_placeholder = text.replace("{}", "__");
        let without_placeholder = if text.contains(',') || text.contains("..") {
            without_placeholder
        } else {
            without_placeholder.replace("@{", "@_")
        };
        let special = without_placeholder.find(['*', '?', '[', '(', '{']);
        match special {
            None => draft.push(text),
            Some(at) => {
                draft.push(text.get(..at).unwrap_or_default());
                let braces = without_placeholder.contains('{');
                draft.end(if braces { Shape::Split } else { Shape::Several });
            }
        }
    }
}

/// Decodes the common escapes of `$'…'`; `None` when there is one that is not among them.
fn ansi_c(text: &str) -> Option<String> {
    let mut decoded = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            decoded.push(c);
            continue;
        }
        decoded.push(match chars.next()? {
            'n' => '\n',
            't' => '\t',
            quoted @ ('\\' | '\'' | '"') => quoted,
            _ => return None,
        });
    }
    Some(decoded)
}

//! One line of a terminal: styled pieces, cut to a width in columns (design §21).
//!
//! Owns how wide text is and how it is cut. The text of a piece may be hostile: line breaks and control characters never get
//! through.

use anstyle::{AnsiColor, Style};
use artoo_protocol::text::{one_line, printable};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthChar as _;

/// Longest piece that is looked at, in characters: no terminal is wider.
const PIECE_MAX: usize = 1_000;

/// What a piece means; how it looks follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As the terminal has it.
    #[default]
    Plain,
    /// What matters.
    Strong,
    /// What matters less.
    Faint,
    /// It holds.
    Good,
    /// It does not.
    Bad,
    /// It is under way.
    Busy,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Busy => AnsiColor::Cyan.on_default(),
        }
    }
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pieces: Vec<(Tone, String)>,
}

impl Line {
    /// Adds a piece.
    #[must_use]
    pub fn with(mut self, tone: Tone, text: &str) -> Self {
        // Spaces at either end are layout, which `one_line` would take for the text's own.
        let inner = text.trim_matches(' ');
        let (before, after) = match text.find(inner) {
            Some(at) if !inner.is_empty() => (at, text.len() - at - inner.len()),
            _ => (text.len(), 0),
        };
        let clean = printable(&one_line(inner, PIECE_MAX));
        self.pieces.push((
            tone,
            format!("{:before$}{clean}{:after$}", "", "", before = before, after = after),
        ));
        self
    }

    /// Columns that it takes; never fewer than a terminal uses.
    pub fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| width(text)).sum()
    }

    /// Cuts it to so many columns, with an ellipsis where something is missing.
    #[must_use]
    pub fn cut(mut self, columns: usize) -> Self {
        if self.width() <= columns {
            return self;
        }
        let mut left = columns.saturating_sub(1);
        let mut kept = Vec::new();
        for (tone, text) in self.pieces.drain(..) {
            let mut part = String::new();
            let mut whole = true;
            for cluster in text.graphemes(true) {
                let columns = width(cluster);
                if columns > left {
                    whole = false;
                    break;
                }
                left -= columns;
                part.push_str(cluster);
            }
            kept.push((tone, part));
            if !whole {
                break;
            }
        }
        if columns > 0 {
            kept.push((Tone::Faint, "…".to_owned()));
        }
        Self { pieces: kept }
    }

    /// The text as it goes to the terminal.
    pub fn render(&self, colour: bool) -> String {
        let pieces = self.pieces.iter().map(|(tone, text)| {
            let style = tone.style();
            if colour && *tone != Tone::Plain {
                format!("{style}{text}{style:#}")
            } else {
                text.clone()
            }
        });
        pieces.collect()
    }
}

/// Columns of a text. Character by character: a terminal that cannot join a sequence of them shows each, and none shows more.
fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wide_characters_are_cut_between_characters_and_hostile_ones_do_nothing() {
        let line = Line::default()
            .with(Tone::Plain, "  计数 文件 ")
            .with(Tone::Good, "x\u{1b}[2J\ny");
        assert_eq!(line.width(), 12 + 7);
        assert_eq!(line.clone().cut(7).render(false), "  计数…");
        assert_eq!(line.clone().cut(6).render(false), "  计…");
        assert_eq!(line.clone().cut(1).render(false), "…");
        assert_eq!(line.clone().cut(0).render(false), "");
        assert!(!line.render(false).contains('\u{1b}') && line.render(true).contains("\u{1b}[32m"));
    }

    proptest! {
        #[test]
        fn no_text_is_wider_than_it_may_be(texts in prop::collection::vec(".{0,40}", 0..4), columns in 0_usize..60) {
            let line = texts.iter().fold(Line::default(), |line, text| line.with(Tone::Plain, text));
            let cut = line.clone().cut(columns);
            prop_assert!(cut.width() <= columns);
            prop_assert!(line.width() > columns || cut == line);
            prop_assert!(!cut.render(false).chars().any(char::is_control));
        }
    }
}

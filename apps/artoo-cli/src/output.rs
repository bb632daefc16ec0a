//! Writing to the terminal or a pipe: what could not be delivered is remembered, never a reason to panic (design §21).
//!
//! Owns the two streams: results go out as they are, notes without anything that could steer a terminal. Of a terminal it also owns
//! the picture at the end, which is drawn anew in place and stands below everything else.

use std::fmt::Write as _;
use std::io::{ErrorKind, IsTerminal as _, Write};
use std::path::Path;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use artoo_protocol::text::printable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::tcgetwinsize;
use serde::Serialize;

use crate::failure::Failure;
use crate::live::{Line, Size};

/// Time between two looks at standard output.
const LOOK: Duration = Duration::from_millis(100);

/// Where a terminal does not tell its size.
const USUAL: Size = Size { columns: 80, rows: 24 };
/// What is drawn between them appears at once.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
/// Between them a line that is wider than the terminal does not go on in the next.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

/// The lines that are drawn at the end of the terminal.
static PICTURE: Mutex<Vec<Line>> = Mutex::new(Vec::new());
/// Whether the person wants colours.
static COLOUR: LazyLock<bool> = LazyLock::new(|| std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()));

/// The first failure of standard output.
static FAILED: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// A line on standard output.
pub fn result(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        FAILED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
    }
}

/// A value as one line of JSON on standard output.
pub fn json(value: &impl Serialize) {
    result(&tamed(&serde_json::to_string(value).unwrap_or_default()));
}

/// A value as JSON that people read as well.
pub fn pretty_json(value: &impl Serialize) {
    result(&tamed(&serde_json::to_string_pretty(value).unwrap_or_default()));
}

/// A line on standard error, above the picture if there is one.
pub fn note(text: &str) {
    let picture = picture_now();
    let text = format!("{}\n", printable(text));
    if picture.is_empty() {
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    } else {
        redraw(&picture, &text, &picture);
    }
}

/// Whether a picture can be drawn on standard error.
pub fn can_draw() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// The size of the terminal at standard error, as it is now.
pub fn size() -> Size {
    tcgetwinsize(std::io::stderr()).map_or(USUAL, |size| {
        match (usize::from(size.ws_col), usize::from(size.ws_row)) {
            (0, _) | (_, 0) => USUAL,
            (columns, rows) => Size { columns, rows },
        }
    })
}

/// Draws a picture in place of the one before; none of its lines may be wider than the terminal.
pub fn picture(lines: Vec<Line>) {
    let mut picture = picture_now();
    if *picture != lines {
        redraw(&picture, "", &lines);
        *picture = lines;
    }
}

/// Draws a picture in place of the one before and leaves it there.
pub fn settle(lines: &[Line]) {
    let mut picture = picture_now();
    redraw(&picture, "", lines);
    picture.clear();
}

fn picture_now() -> MutexGuard<'static, Vec<Line>> {
    PICTURE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the old picture away, writes what goes above it, and draws the new one: in one piece, so that nothing flickers.
fn redraw(old: &[Line], above: &str, new: &[Line]) {
    let out = redrawn(rows(old, size().columns), above, new, *COLOUR);
    let mut screen = std::io::stderr().lock();
    let _ = screen.write_all(out.as_bytes()).and_then(|()| screen.flush());
}

/// What does that to a terminal on which the old picture takes so many rows.
fn redrawn(rows: usize, above: &str, new: &[Line], colour: bool) -> String {
    let mut out = String::from(BEGIN);
    if rows > 0 {
        let _ = write!(out, "\r\x1b[{rows}A\x1b[J");
    }
    out.push_str(above);
    if !new.is_empty() {
        out.push_str(NO_WRAP);
        for line in new {
            out.push_str(&line.render(colour));
            out.push('\n');
        }
        out.push_str(WRAP);
    }
    out.push_str(END);
    out
}

/// Rows that a picture takes now: a terminal that became narrower since has broken the lines that no longer fit.
fn rows(picture: &[Line], columns: usize) -> usize {
    let rows = picture.iter().map(|line| line.width().div_ceil(columns.max(1)).max(1));
    rows.sum()
}

/// A file that the person named.
///
/// # Errors
/// [`Failure`] with the path and a remedy.
pub fn file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::unwritable(path, &error))
}

/// Whether nobody takes results any more.
pub fn is_broken() -> bool {
    FAILED.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Returns when the reading end of standard output was closed; never where it is no pipe. A pipe says so only to who looks.
pub async fn reader_is_gone() {
    while !is_broken() && !hung_up() {
        tokio::time::sleep(LOOK).await;
    }
}

fn hung_up() -> bool {
    let stdout = std::io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
        && polled
            .iter()
            .any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// Why a result did not arrive; a reader that left on its own accord, as `head` does, wanted no more.
pub fn lost() -> Option<String> {
    let failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    failed
        .as_ref()
        .filter(|error| error.kind() != ErrorKind::BrokenPipe)
        .map(ToString::to_string)
}

/// JSON leaves some control characters as they are; they can only stand inside strings, where they can be escaped.
fn tamed(json: &str) -> String {
    let mut tame = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() && c != '\n' {
            let _ = write!(tame, "\\u{:04x}", u32::from(c));
        } else {
            tame.push(c);
        }
    }
    tame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_above_the_picture_is_whole_and_a_line_of_the_picture_stays_one_row() {
        use crate::live::Tone;
        use alacritty_terminal::event::VoidListener;
        use alacritty_terminal::grid::Dimensions as _;
        use alacritty_terminal::term::test::TermSize;
        use alacritty_terminal::term::{Config, Term};
        use alacritty_terminal::vte::ansi::Processor;
        let size = TermSize::new(20, 12);
        let mut term = Term::new(Config::default(), &size, VoidListener);
        let mut parser: Processor = Processor::new();
        let wide = Line::default().with(Tone::Plain, "a line that has more than twenty columns");
        let narrow = Line::default().with(Tone::Plain, "drawn anew");
        let mut show = |text: String| parser.advance(&mut term, text.replace('\n', "\r\n").as_bytes());
        show(redrawn(0, "", std::slice::from_ref(&wide), false));
        // While the picture was drawn nothing wrapped, so it took one row.
        show(redrawn(
            1,
            "a note that goes on and on to its end\n",
            std::slice::from_ref(&narrow),
            false,
        ));
        let (from, to) = (term.topmost_line(), term.bottommost_line());
        let text = term.bounds_to_string(
            alacritty_terminal::index::Point::new(from, alacritty_terminal::index::Column(0)),
            alacritty_terminal::index::Point::new(to, term.last_column()),
        );
        assert_eq!(text.trim_end(), "a note that goes on and on to its end\ndrawn anew");
    }

    #[test]
    fn json_holds_no_raw_control_characters_and_stays_the_same_value() {
        let value = serde_json::json!({"a": "x\u{1b}[2J\u{9b}1m\u{7f}\n"});
        let line = tamed(&value.to_string());
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
    }
}

//! The live display: the plan as a tree that fills in while the task runs, drawn in place at the end of the terminal (design §21).
//!
//! Owns when something is drawn. What is drawn is a pure function of what happened ([`drawing`]); how it gets to the terminal and
//! away again is the business of [`output`].

mod drawing;
mod line;
#[cfg(test)]
mod tests;
pub mod view;

use std::sync::Arc;

use artoo_bus::{SystemClock, TapItem};
use artoo_protocol::ports::Clock as _;
use artoo_protocol::{Envelope, Millis};

use self::drawing::Moment;
pub use self::drawing::Size;
pub use self::line::Line;
#[cfg(test)]
pub use self::line::Tone;
use self::view::{Heard, View};
use crate::output;

/// Time between two pictures, at the least.
pub const FRAME: std::time::Duration = std::time::Duration::from_millis(50);
/// Pictures between two turns of what turns.
const TURN: usize = 2;

/// The display of one task.
pub struct Display {
    view: View,
    budget: Millis,
    frames: usize,
    changed: bool,
    /// A question stands on the screen, or there is nothing more to show.
    still: bool,
}

/// Whoever writes next must not find a picture that nobody keeps up.
impl Drop for Display {
    fn drop(&mut self) {
        output::picture(Vec::new());
    }
}

impl Display {
    /// A display of a task that may run so long.
    pub fn new(budget: Millis) -> Self {
        Self {
            view: View::default(),
            budget,
            frames: 0,
            changed: true,
            still: false,
        }
    }

    /// Takes note of what happened; a round that is over is left standing.
    pub fn hear(&mut self, item: &TapItem) {
        match self.view.hear(item) {
            Heard::Nothing => {}
            Heard::Change => self.changed = true,
            Heard::RoundIsOver => self.settle(),
        }
    }

    /// Takes note of what was said before this process; nothing of it is drawn.
    pub fn recall(&mut self, envelope: &Envelope) {
        let item = TapItem::Envelope(Arc::new(envelope.clone()));
        if self.view.hear(&item) == Heard::RoundIsOver {
            self.view.turn_over();
        }
    }

    /// Time for the next picture, if something is to be seen in it.
    pub fn frame(&mut self) {
        self.frames = self.frames.wrapping_add(1);
        if self.still || !(self.changed || self.frames.is_multiple_of(TURN)) {
            return;
        }
        self.changed = false;
        let moment = Moment {
            now: SystemClock.now(),
            budget: self.budget,
            turn: self.frames / TURN,
        };
        output::picture(drawing::running(&self.view, output::size(), moment));
    }

    /// Gives the end of the terminal to somebody else, such as a question.
    pub fn step_aside(&mut self) {
        self.still = true;
        output::picture(Vec::new());
    }

    /// Takes it back.
    pub const fn come_back(&mut self) {
        self.still = false;
        self.changed = true;
    }

    /// Leaves what there is to see for good.
    pub fn settle(&mut self) {
        output::settle(&drawing::over(&self.view, output::size()));
        self.view.turn_over();
        self.changed = true;
    }
}

//! R7, the Goal Gradient Solver: a controller with a loss and its gradient (design §12–§14).
//!
//! It reads how far a result is from its goal, how wrong the approach was and what it cost, and answers with the kind of
//! change that the next plan needs, or with the end of the task. Read the modules in this order: [`params`], [`signals`]
//! (verdicts to numbers), [`loss`], [`table`](mod@table) (numbers to a decision), [`control`] (from round to round), then what artoo
//! makes of a decision: [`blocked`], [`megrams`], [`criteria`], [`digest`], [`honesty`](mod@honesty), [`words`], and the role itself in [`actor`]. [`explain`](mod@explain) says
//! afterwards why a decision was taken. With the feature `lab`, `lab` holds the laboratory: simulated tasks, other policies, calibration.
//!
//! It knows no model, no tool, no store and no clock. The numeric part stands on its own:
//!
//! ```
//! use artoo_ggs::{Control, Move, Observation, Params};
//! use artoo_protocol::message::Directive;
//! use artoo_protocol::{Millis, Unit01};
//!
//! let params = Params::default();
//! let mut control = Control::default();
//! let mut seen = Observation {
//!     d: Unit01::clamped(0.8),
//!     p: Unit01::clamped(0.9),
//!     elapsed: Millis(10_000),
//!     rejected: false,
//!     veto: None,
//!     advice: None,
//! };
//! // Far off, wrong approach, no trend yet: escape.
//! assert_eq!(control.observe(&params, seen).decision, Move::Direct(Directive::BreakSymmetry));
//! // Close enough: stop.
//! seen.d = Unit01::clamped(0.1);
//! assert_eq!(control.observe(&params, seen).decision, Move::Succeed);
//! ```

pub mod actor;
pub mod blocked;
pub mod control;
pub mod criteria;
pub mod digest;
pub mod explain;
pub mod honesty;
#[cfg(feature = "lab")]
pub mod lab;
pub mod lines;
pub mod loss;
pub mod megrams;
mod packing;
pub mod params;
pub mod signals;
pub mod table;
mod task;
pub mod words;

pub use actor::{Controller, Effect};
pub use control::{Control, Move, Observation, Round};
pub use explain::{Explained, explain};
pub use lines::{BadInput, BadLine, Stepper, decide_line};
pub use params::{BlockedTargets, FirstRound, Gradient, NearGoal, Params, WrongButImproving};
pub use signals::Tally;
pub use table::{Bands, Cell, Choice, Row, cascade, decide, quantise, table};
pub use task::WORDING_WAIT;

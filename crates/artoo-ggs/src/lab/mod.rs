//! The controller's laboratory: simulated tasks, models of planners, other policies on the same seeds, and calibration.
//!
//! Read in this order: [`plant`] (what a task is), [`family`] (which tasks there are), [`planner`] (who answers a directive),
//! [`policy`] (who decides), [`episode`] (one task to its end), [`measure`] and [`compare`] (many of them). The
//! controller in it is the real one. `docs/controller-lab.md` holds the dynamics in words, the results, and what they
//! are worth: simulated tasks say how a rule behaves on such dynamics, not how often such tasks occur.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of criteria, calls and milliseconds of simulated tasks are small and positive"
)]

pub mod compare;
pub mod dice;
pub mod episode;
pub mod family;
pub mod measure;
pub mod planner;
pub mod plant;
pub mod policy;

pub use compare::{Contender, Grid, Row};
pub use family::Family;
pub use policy::Policy;

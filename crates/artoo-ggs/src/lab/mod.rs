//! The controller's laboratory: simulated tasks, models of planners, other policies on the same seeds, and calibration.
//!
//! Read in this order: [`plant`] (what a task is), [`family`] (which tasks there are), [`planner`] (who answers a directive),
//! [`policy`] (who decides), [`episode`] (one task to its end), [`measure`] and [`compare`] (many of them). The
//! controller in it is the real one; [`report`] shows the results, [`tune`] looks for better parameters. `docs/controller-lab.md` holds the dynamics in words, the results, and what they
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
pub mod report;
pub mod tune;

pub use compare::{Contender, Grid, Row};
pub use family::Family;
pub use policy::Policy;

use crate::params::{BlockedTargets, FirstRound, Gradient, NearGoal, Params, WrongButImproving};

/// Parameters that [`tune`] found on other families than those that they are judged on; see `docs/controller-lab.md`.
pub const CALIBRATED: &str = include_str!("calibrated.json");

/// The policies of the comparison, in the order in which they are shown.
pub fn contenders() -> Vec<Contender> {
    let defaults = Params::default();
    let with = |name: &str, params: Params| Contender::new(name, Policy::Ggs(params));
    vec![
        Contender::new("retry unchanged", Policy::RetryUnchanged),
        Contender::new("random restart", Policy::RandomRestart),
        Contender::new("reflect and retry", Policy::ReflectAndRetry),
        Contender::new("stall counting", Policy::StallCounting),
        Contender::new("older table", Policy::OlderTable),
        with("GGS, defaults", defaults),
        with(
            "GGS, task gradient",
            Params {
                gradient: Gradient::Task,
                ..defaults
            },
        ),
        with(
            "GGS, first is movement",
            Params {
                first_round: FirstRound::Movement,
                ..defaults
            },
        ),
        with(
            "GGS, improving is refined",
            Params {
                wrong_but_improving: WrongButImproving::Refine,
                ..defaults
            },
        ),
        with(
            "GGS, only failed targets",
            Params {
                blocked_targets: BlockedTargets::Failed,
                ..defaults
            },
        ),
        with(
            "GGS, near is finished",
            Params {
                near_goal: NearGoal::Finish,
                ..defaults
            },
        ),
        with(
            "GGS, δ = 0",
            Params {
                delta: artoo_protocol::Unit01::ZERO,
                ..defaults
            },
        ),
        with("GGS calibrated", serde_json::from_str(CALIBRATED).unwrap_or(defaults)),
        Contender::new("oracle", Policy::Oracle),
    ]
}

//! What each parameter does when all others stay as they are.
//!
//! Owns the sweep; the picture is [`plots`](crate::lab::report::plots)' matter.

use artoo_protocol::Unit01;
use serde::Serialize;

use super::NUMBERS;
use crate::params::Params;

/// The worth along one parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// Its symbol.
    pub parameter: &'static str,
    /// Where it stands.
    pub at: f64,
    /// Its value and the worth there.
    pub points: Vec<(f64, f64)>,
}

/// Moves each of the nine numbers through 0…1 in so many steps.
pub fn sweeps(base: &Params, steps: u32, judge: impl Fn(&Params) -> f64) -> Vec<Sweep> {
    NUMBERS
        .iter()
        .map(|(parameter, read, write)| Sweep {
            parameter,
            at: read(base).get(),
            points: (0..=steps)
                .map(|step| {
                    let value = f64::from(step) / f64::from(steps.max(1));
                    let mut params = *base;
                    write(&mut params, Unit01::clamped(value));
                    (value, judge(&params))
                })
                .collect(),
        })
        .collect()
}

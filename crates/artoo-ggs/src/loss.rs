//! The loss and its gradient: three signals in, one number out (design §12).
//!
//! `L = α·D + β_eff·P + λ·Ω` with `β_eff = β·(1 − Ω)`: the less is left to spend, the less it matters whether the approach
//! was plausible. Owns arithmetic only; where the signals come from is [`signals`](crate::signals)'s matter.

use artoo_protocol::message::Loss;
use artoo_protocol::{Finite, Millis, Unit01};

use crate::params::Params;

/// Ω = w₁·round/maxReplans + w₂·elapsed/budget, the sum clamped to 0…1.
///
/// `round` counts the gaps seen so far, the present one among them; `elapsed` leaves out waiting for a person. A
/// denominator of 0 counts as a full ratio. Example: the fourth round with defaults has Ω ≥ 0.6·4/3 = 0.8.
pub fn omega(params: &Params, round: u32, elapsed: Millis) -> Unit01 {
    let rounds = ratio(f64::from(round), f64::from(params.max_replans));
    let time = ratio(elapsed.0 as f64, params.time_budget_ms.0 as f64);
    Unit01::clamped(params.w1.get() * rounds + params.w2.get() * time)
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// β_eff = β·(1 − Ω), from 0 to β.
pub fn beta_eff(params: &Params, omega: Unit01) -> f64 {
    params.beta.get() * (1.0 - omega.get())
}

/// The signals with their loss, which lies between 0 and α + β + λ.
pub fn loss(params: &Params, d: Unit01, p: Unit01, omega: Unit01) -> Loss {
    let l = params.alpha.get() * d.get() + beta_eff(params, omega) * p.get() + params.lambda.get() * omega.get();
    Loss {
        d,
        p,
        omega,
        l: finite(l),
    }
}

/// α·D + β·P: what the task itself contributes to the loss, with β held constant and without λ·Ω.
///
/// Its change tells a gap that grows from a clock that runs.
pub fn task_part(params: &Params, d: Unit01, p: Unit01) -> Finite {
    finite(params.alpha.get() * d.get() + params.beta.get() * p.get())
}

/// The change since the round before; 0 in the first.
pub fn gradient(previous: Option<Finite>, present: Finite) -> Finite {
    previous.map_or(Finite::ZERO, |previous| finite(present.get() - previous.get()))
}

/// Sums of products of numbers from 0 to 1 are finite; the fallback is never taken.
fn finite(value: f64) -> Finite {
    Finite::new(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(value: f64) -> Unit01 {
        Unit01::new(value).unwrap()
    }

    #[test]
    fn a_worked_example_by_hand() {
        // Round 1 of 3 after 30 s of 300 s: Ω = 0.6/3 + 0.4/10 = 0.24; β_eff = 0.3·0.76 = 0.228;
        // L = 0.6·0.5 + 0.228·0.8 + 0.4·0.24 = 0.5784.
        let params = Params::default();
        let omega = omega(&params, 1, Millis(30_000));
        assert!((omega.get() - 0.24).abs() < 1e-12);
        assert!((beta_eff(&params, omega) - 0.228).abs() < 1e-12);
        assert!((loss(&params, unit(0.5), unit(0.8), omega).l.get() - 0.5784).abs() < 1e-12);
        assert!((task_part(&params, unit(0.5), unit(0.8)).get() - 0.54).abs() < 1e-12);
    }

    #[test]
    fn resources_are_clamped_and_a_zero_denominator_is_a_full_ratio() {
        let params = Params::default();
        assert_eq!(omega(&params, 1_000_000_000, Millis(u64::MAX)), Unit01::ONE);
        let no_replans = Params {
            max_replans: 0,
            ..params
        };
        assert!((omega(&no_replans, 0, Millis(0)).get() - 0.6).abs() < 1e-12);
        let no_time = Params {
            time_budget_ms: Millis(0),
            ..params
        };
        assert!((omega(&no_time, 0, Millis(0)).get() - 0.4).abs() < 1e-12);
    }

    #[test]
    fn the_first_round_has_no_gradient() {
        let l = Finite::new(0.7).unwrap();
        assert_eq!(gradient(None, l), Finite::ZERO);
        assert!((gradient(Some(Finite::new(0.4).unwrap()), l).get() - 0.3).abs() < 1e-12);
    }
}

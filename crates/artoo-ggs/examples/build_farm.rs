//! The controller on something that is not artoo: a build farm that retries its jobs. Numbers only: no task, no message.
//!
//! `cargo run -p artoo-ggs --example build_farm`
//!
//! What has to be chosen to steer something of your own:
//!
//! - **D**, how far off the result is: here the share of jobs that have not passed.
//! - **P**, how wrong the approach is: here the share of failures that come from the code and not from the machines. A
//!   retry can mend the latter, never the former.
//! - **elapsed**, the time spent, against the budget in [`Params`].
//! - what each [`Directive`] means. The controller only names the kind of change; here they are `apply`.
//!
//! The farm is simulated and deterministic, so that what is printed is the same every time.

use artoo_ggs::loss::beta_eff;
use artoo_ggs::{Control, Move, Observation, Params};
use artoo_protocol::message::Directive;
use artoo_protocol::{Millis, Unit01};

/// Jobs of a farm; each failing one either meets a bad machine or bad code.
struct Farm {
    jobs: u32,
    bad_code: u32,
    bad_machines: u32,
    elapsed: Millis,
}

impl Farm {
    /// The sensor.
    fn observe(&self) -> Observation {
        let failing = self.bad_code + self.bad_machines;
        Observation {
            d: share(failing, self.jobs),
            p: share(self.bad_code, failing),
            elapsed: self.elapsed,
            rejected: false,
            veto: None,
            advice: None,
        }
    }

    /// The actuator: what each kind of change means for a farm, what it brings and how long it takes.
    fn apply(&mut self, directive: Directive) -> &'static str {
        let (did, seconds) = match directive {
            Directive::Refine => {
                self.bad_machines /= 2;
                ("same machines, longer time limits", 40)
            }
            Directive::ChangePath => {
                self.bad_machines /= 4;
                ("same build, other machines", 50)
            }
            Directive::ChangeApproach => {
                self.bad_code /= 3;
                ("back to the compiler of last week", 80)
            }
            Directive::BreakSymmetry => {
                self.bad_code /= 4;
                self.bad_machines += 4;
                ("another tool chain, from scratch", 90)
            }
        };
        self.elapsed = Millis(self.elapsed.0 + seconds * 1_000);
        did
    }
}

fn share(part: u32, whole: u32) -> Unit01 {
    Unit01::clamped(f64::from(part) / f64::from(whole.max(1)))
}

fn main() {
    let _ = steer(|line| println!("{line}"));
}

/// Runs the loop to its end and tells each round.
pub fn steer(mut tell: impl FnMut(String)) -> Move {
    // Up to six rounds in ten minutes; a tenth of the jobs may stay broken.
    let params = Params {
        max_replans: 6,
        time_budget_ms: Millis::from_seconds(600),
        delta: Unit01::clamped(0.1),
        ..Params::default()
    };
    let mut farm = Farm {
        jobs: 40,
        bad_code: 24,
        bad_machines: 4,
        elapsed: Millis::from_seconds(60),
    };
    let mut control = Control::default();
    tell("round     D      P      Ω   β_eff      L      ∇L  cell  decision".to_owned());
    loop {
        let round = control.observe(&params, farm.observe());
        let loss = round.loss;
        let decision = match round.decision {
            Move::Direct(directive) => format!("{}: {}", directive.name(), farm.apply(directive)),
            Move::Succeed => format!("success: {} jobs stay broken", farm.bad_code + farm.bad_machines),
            Move::Abandon(cause) => format!("abandon: {cause:?}"),
        };
        tell(format!(
            "{:>5}  {:.2}   {:.2}   {:.2}    {:.2}   {:.3}  {:+.3}  {:>4}  {decision}",
            round.number,
            loss.d.get(),
            loss.p.get(),
            loss.omega.get(),
            beta_eff(&params, loss.omega),
            loss.l.get(),
            round.grad_l.get(),
            round.cell.number,
        ));
        if !matches!(round.decision, Move::Direct(_)) {
            return round.decision;
        }
    }
}

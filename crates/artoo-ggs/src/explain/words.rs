//! An explained decision in words, every number with what it was made of (design §12).
//!
//! Owns wording only.

use std::fmt::Write as _;

use artoo_protocol::message::Ending;
use artoo_protocol::text::one_line;

use super::{Asked, Decided, Explained, Measured, Told};
use crate::params::Params;
use crate::table::{Distance, Implausibility, Resources, Slope};
use crate::words::why;

impl Explained {
    /// The decision as a paragraph for people; every number with what it was made of.
    pub fn in_words(&self, params: &Params) -> String {
        let mut text = format!("Decision {} at {}: ", self.number, self.at);
        text.push_str(match self.told {
            Told::Gap => "a gap",
            Told::Accepted => "the result was accepted",
            Told::Outside => "ended from outside the loop",
        });
        if let Some(elapsed) = self.elapsed_ms {
            let _ = write!(text, " after {elapsed}");
        }
        if let Some(measured) = &self.measured {
            measured.describe(params, &mut text);
        }
        if let Some(decision) = self.decision {
            let _ = write!(text, "\n  decision  {}", decision.name());
        }
        text.push_str("\n  journal   ");
        match &self.recorded {
            None => text.push_str("ends before anything was done"),
            Some(recorded) if self.decision.is_none() => text.push_str(&recorded.decision.name()),
            Some(recorded) if self.cut_short() => {
                let _ = write!(text, "{}, before this was carried out", recorded.decision.name());
            }
            Some(_) if self.differences.is_empty() => text.push_str("the same decision with the same numbers"),
            Some(_) => {
                let _ = write!(text, "DIFFERS: {}", self.differences.join("; "));
            }
        }
        text
    }
}

impl Measured {
    fn describe(&self, params: &Params, text: &mut String) {
        let loss = &self.loss;
        let (d, p, omega) = (loss.d.get(), loss.p.get(), loss.omega.get());
        let bands = self.table.map(|asked| asked.bands);
        let side = |known: Option<&'static str>| known.unwrap_or_default();
        let distance = side(bands.map(|bands| match bands.distance {
            Distance::Near => ": near",
            Distance::Far => ": far",
        }));
        let _ = write!(
            text,
            "\n  D = {d:.3}{distance}; {} of {} criteria are not met",
            self.failed, self.criteria
        );
        if let Some(driver) = &self.driver {
            let _ = write!(text, ", most of all “{}”", one_line(driver, 120));
        }
        let _ = write!(
            text,
            "\n  P = {p:.3}{}\n  Ω = {omega:.3}{}",
            side(bands.map(|bands| match bands.implausibility {
                Implausibility::Environmental => ": the environment stood in the way",
                Implausibility::Logical => ": the approach is wrong",
            })),
            side(bands.map(|bands| match bands.resources {
                Resources::Left => ": resources are left",
                Resources::Spent => ": the resources are spent",
            })),
        );
        let _ = write!(
            text,
            "\n  β_eff = {:.2}·(1 − {omega:.3}) = {:.3}\n  L = {:.2}·{d:.3} + {:.3}·{p:.3} + {:.2}·{omega:.3} = {:.3}\n  ∇L = {:+.3}",
            params.beta.get(),
            self.beta_eff,
            params.alpha.get(),
            self.beta_eff,
            params.lambda.get(),
            loss.l.get(),
            self.grad_l.get(),
        );
        if let Some(asked) = &self.table {
            asked.describe(params, text);
        }
    }
}

impl Asked {
    fn describe(&self, params: &Params, text: &mut String) {
        let trend = match (self.round, self.bands.slope) {
            (1, _) => "the first round has no trend",
            (_, Slope::Improving) => "improving",
            (_, Slope::Plateau) => "a plateau",
            (_, Slope::Worsening) => "worsening",
        };
        let _ = write!(
            text,
            ", of which the task {:+.3}: {trend}\n  round {}, cell {} of 24: {}, urgency {}",
            self.grad_task.get(),
            self.round,
            self.cell,
            self.macro_state,
            match self.bands.slope {
                Slope::Improving => "lower",
                Slope::Plateau => "neutral",
                Slope::Worsening => "higher",
            },
        );
        if self.rejected {
            text.push_str("\n  the merged result was refused, so D counts as far");
        }
        let _ = write!(
            text,
            "\n  kill-switch {} ({} of {} worsening rounds)",
            if self.kill_switch { "ON" } else { "off" },
            self.worsening,
            params.kill_after
        );
        if let Some(cause) = self.veto {
            let _ = write!(text, "\n  veto: {}", why(cause));
        }
        if let Some(cause) = self.advice {
            let _ = write!(text, "\n  the fan-in gate advises to stop: {}", why(cause));
        }
    }
}

impl Decided {
    /// As it is shown: `refine`, `abandon (every allowed change of plan was tried and failed)`.
    pub fn name(self) -> String {
        match self {
            Self::Direct(directive) => directive.name().to_owned(),
            Self::End(Ending::Accept, cause) => format!("accept ({})", why(cause)),
            Self::End(Ending::Success, cause) => format!("success ({})", why(cause)),
            Self::End(Ending::Abandon, cause) => format!("abandon ({})", why(cause)),
        }
    }
}

//! One decision after the other, measured anew from the messages of a task (design §12, §17).
//!
//! Reads what the controller was told and what it answered, decides a second time with the same parts, and says where the
//! two differ. Owns the comparison; where the messages come from is the caller's matter.

mod words;

use artoo_protocol::message::{
    Cause, Directive, Ending, FinalResult, Loss, Message, OutcomeSummary, PlanDirective, ReplanRequest,
};
use artoo_protocol::{Envelope, Finite, Millis, Timestamp};
use serde::Serialize;

use crate::control::{Control, Move, Observation, Round, kill_switch};
use crate::loss::beta_eff;
use crate::params::Params;
use crate::signals::Tally;
use crate::table::{Bands, TOLERANCE};
use crate::task::{accepted_signals, observation};

/// One decision of the controller.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// From 1, in the order of the journal.
    pub number: u32,
    /// When it was told.
    pub at: Timestamp,
    /// What it was told.
    pub told: Told,
    /// Running time by then, as the fan-in gate counted it.
    pub elapsed_ms: Option<Millis>,
    /// What was measured; `None` for an ending from outside, which measures nothing.
    pub measured: Option<Measured>,
    /// What that makes.
    pub decision: Option<Decided>,
    /// What the journal says was done; `None` when it ends before.
    pub recorded: Option<Recorded>,
    /// Where the two differ, in words; empty when they agree.
    pub differences: Vec<String>,
}

/// What made the controller decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// A gap.
    Gap,
    /// An accepted result.
    Accepted,
    /// Something else that ended the task: an answer, a budget, a person, a plan that could not be made.
    Outside,
}

/// The signals of one decision and what follows from them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Criteria that failed.
    pub failed: usize,
    /// Criteria in all.
    pub criteria: usize,
    /// The criterion that weighed most.
    pub driver: Option<String>,
    /// D, P, Ω and L.
    pub loss: Loss,
    /// β·(1 − Ω).
    pub beta_eff: f64,
    /// ∇L.
    pub grad_l: Finite,
    /// The table; `None` for an accepted result, for which it is not asked.
    pub table: Option<Asked>,
}

/// What the table was asked and what came after it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// Number of the round, from 1.
    pub round: u32,
    /// The part of ∇L that D and P make.
    pub grad_task: Finite,
    /// Where the point lies.
    pub bands: Bands,
    /// From 1 to 24.
    pub cell: u8,
    /// What the table says.
    pub macro_state: &'static str,
    /// Worsening rounds in a row.
    pub worsening: u32,
    /// Whether that many end the task.
    pub kill_switch: bool,
    /// Everything matched, and the merged result was refused.
    pub rejected: bool,
    /// What ends the task whatever the table says.
    pub veto: Option<Cause>,
    /// The advice of the fan-in gate to stop.
    pub advice: Option<Cause>,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    /// Another plan.
    Direct(Directive),
    /// The end.
    End(Ending, Cause),
}

/// What the journal says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Recorded {
    /// When.
    pub at: Timestamp,
    /// What was done.
    pub decision: Decided,
    /// With which signals.
    pub loss: Loss,
    /// With which ∇L.
    pub grad_l: Finite,
}

/// Explains every decision in a task's messages, which come in the order of its journal.
pub fn explain<'a>(params: &Params, envelopes: impl IntoIterator<Item = &'a Envelope>) -> Vec<Explained> {
    let mut control = Control::default();
    let mut decisions: Vec<Explained> = Vec::new();
    for envelope in envelopes {
        let at = envelope.timestamp;
        match &envelope.payload {
            Message::ReplanRequest(gap) => begin(&mut decisions, explain_gap(params, &mut control, at, gap)),
            Message::OutcomeSummary(result) => begin(&mut decisions, explain_accepted(params, control, at, result)),
            Message::PlanDirective(directive) => answer(&mut decisions, directed(at, directive)),
            Message::FinalResult(result) => {
                answer(&mut decisions, ended(at, result));
                // A task ends once; what comes after belongs to nothing.
                break;
            }
            _ => {}
        }
    }
    decisions
}

fn begin(decisions: &mut Vec<Explained>, mut next: Explained) {
    next.number = u32::try_from(decisions.len()).unwrap_or(u32::MAX).saturating_add(1);
    decisions.push(next);
}

/// Puts what was done to the decision that waits for it; where none does, it came from outside.
fn answer(decisions: &mut Vec<Explained>, recorded: Recorded) {
    if decisions.last().is_none_or(|last| last.recorded.is_some()) {
        begin(decisions, told(recorded.at, Told::Outside, None));
    }
    if let Some(last) = decisions.last_mut() {
        last.differences = last.differences(&recorded);
        last.recorded = Some(recorded);
    }
}

const fn told(at: Timestamp, told: Told, elapsed_ms: Option<Millis>) -> Explained {
    Explained {
        number: 0,
        at,
        told,
        elapsed_ms,
        measured: None,
        decision: None,
        recorded: None,
        differences: Vec::new(),
    }
}

fn explain_gap(params: &Params, control: &mut Control, at: Timestamp, gap: &ReplanRequest) -> Explained {
    let tally = Tally::of(&gap.outcomes, &gap.task_verdicts);
    let seen = observation(gap, &tally);
    let round = control.observe(params, seen);
    Explained {
        measured: Some(measured(
            params,
            &tally,
            round.loss,
            round.grad_l,
            Some(asked(params, &seen, &round)),
        )),
        decision: Some(match round.decision {
            Move::Direct(directive) => Decided::Direct(directive),
            Move::Succeed => Decided::End(Ending::Success, Cause::WithinThreshold),
            Move::Abandon(cause) => Decided::End(Ending::Abandon, cause),
        }),
        ..told(at, Told::Gap, Some(gap.elapsed_ms))
    }
}

fn explain_accepted(params: &Params, control: Control, at: Timestamp, result: &OutcomeSummary) -> Explained {
    let tally = Tally::of(&result.outcomes, &result.task_verdicts);
    let (d, p) = accepted_signals(&tally);
    let (loss, grad_l) = control.read(params, d, p, result.elapsed_ms);
    Explained {
        measured: Some(measured(params, &tally, loss, grad_l, None)),
        decision: Some(if tally.failures.is_empty() {
            Decided::End(Ending::Accept, Cause::Met)
        } else {
            Decided::End(Ending::Success, Cause::WithinThreshold)
        }),
        ..told(at, Told::Accepted, Some(result.elapsed_ms))
    }
}

fn measured(params: &Params, tally: &Tally<'_>, loss: Loss, grad_l: Finite, table: Option<Asked>) -> Measured {
    Measured {
        failed: tally.failures.len(),
        criteria: tally.total,
        driver: tally.driver().map(|failure| failure.criterion.to_owned()),
        loss,
        beta_eff: beta_eff(params, loss.omega),
        grad_l,
        table,
    }
}

const fn asked(params: &Params, seen: &Observation, round: &Round) -> Asked {
    Asked {
        round: round.number,
        grad_task: round.grad_task,
        bands: round.bands,
        cell: round.cell.number,
        macro_state: round.cell.choice.name(),
        worsening: round.worsening,
        kill_switch: kill_switch(params, round.worsening),
        rejected: seen.rejected,
        veto: seen.veto,
        advice: seen.advice,
    }
}

const fn directed(at: Timestamp, said: &PlanDirective) -> Recorded {
    Recorded {
        at,
        decision: Decided::Direct(said.directive),
        loss: said.loss,
        grad_l: said.grad_l,
    }
}

const fn ended(at: Timestamp, result: &FinalResult) -> Recorded {
    Recorded {
        at,
        decision: Decided::End(result.directive, result.cause),
        loss: result.loss,
        grad_l: result.grad_l,
    }
}

impl Explained {
    /// Whether the task was ended from outside before this decision was carried out.
    pub fn cut_short(&self) -> bool {
        self.recorded
            .is_some_and(|recorded| recorded.decision.comes_at_any_time() && Some(recorded.decision) != self.decision)
    }

    fn differences(&self, recorded: &Recorded) -> Vec<String> {
        let (Some(measured), Some(decision)) = (&self.measured, self.decision) else {
            return Vec::new();
        };
        let mut differences = Vec::new();
        if decision != recorded.decision {
            if recorded.decision.comes_at_any_time() {
                return differences;
            }
            differences.push(format!(
                "decided {}, recorded {}",
                decision.name(),
                recorded.decision.name()
            ));
        }
        let (here, there) = (&measured.loss, &recorded.loss);
        for (name, here, there) in [
            ("D", here.d.get(), there.d.get()),
            ("P", here.p.get(), there.p.get()),
            ("Ω", here.omega.get(), there.omega.get()),
            ("L", here.l.get(), there.l.get()),
            ("∇L", measured.grad_l.get(), recorded.grad_l.get()),
        ] {
            if (here - there).abs() > TOLERANCE {
                differences.push(format!("{name} is {here:.6}, recorded {there:.6}"));
            }
        }
        differences
    }
}

impl Decided {
    /// A person or a budget may end the task at any moment, with the signals of whatever was seen before.
    const fn comes_at_any_time(self) -> bool {
        matches!(self, Self::End(Ending::Abandon, Cause::Aborted | Cause::Budget))
    }
}

//! Calibration on real tasks, from the auditor's table.
//!
//! Owns reading the rows and what they can judge. A row tells what happened under the directives that were given; what another directive would
//! have brought, it does not tell. So rows judge one thing only: when to stop. A candidate that would have stopped earlier saves the calls of the
//! rounds after, and loses what the task still became; one that would have gone on longer than the record gets nothing for it.

use artoo_protocol::message::{Cause, Ending};
use artoo_protocol::{Millis, Unit01};
use serde::Deserialize;

use crate::control::{Control, Move, Observation};
use crate::lab::episode::{Ended, worth};
use crate::params::Params;

/// One closed task, as far as calibration wants it; unknown fields are ignored.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TaskRow {
    /// How it ended.
    pub ending: Ending,
    /// Why.
    pub cause: Cause,
    /// What R4b said, in order.
    #[serde(default)]
    pub rounds: Vec<RoundRow>,
    /// Of the whole task.
    #[serde(default)]
    pub model_calls: u32,
    /// Distance at the end.
    #[serde(default, rename = "D")]
    pub d: f64,
    /// No message of it was missed.
    #[serde(default)]
    pub complete: bool,
}

/// One message of the fan-in gate.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RoundRow {
    /// `gap` or `accepted`.
    #[serde(default)]
    pub closed_by: ClosedBy,
    /// Running time.
    #[serde(default)]
    pub elapsed_ms: Millis,
    /// Everything matched, and the merged result did not.
    #[serde(default)]
    pub rejected: bool,
    /// As measured.
    #[serde(default, rename = "D")]
    pub d: f64,
    /// As measured.
    #[serde(default, rename = "P")]
    pub p: f64,
}

/// What a round ended in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosedBy {
    /// A ReplanRequest.
    #[default]
    Gap,
    /// An OutcomeSummary.
    Accepted,
}

/// Reads the table. Gives the rows that say something about the controller, and the numbers of the lines that could not be read.
pub fn read(text: &str) -> (Vec<TaskRow>, Vec<usize>) {
    let mut rows = Vec::new();
    let mut bad = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<TaskRow>(line) {
            Ok(row) if row.is_telling() => rows.push(row),
            Ok(_) => {}
            Err(_) => bad.push(number),
        }
    }
    (rows, bad)
}

impl TaskRow {
    /// Aborts, refusals, missing models, answers and plans that could not be made say nothing about the controller; nor does a
    /// task without a gap, or one that was not seen whole.
    fn is_telling(&self) -> bool {
        let cause = match self.cause {
            Cause::Met
            | Cause::WithinThreshold
            | Cause::Budget
            | Cause::Resources
            | Cause::Divergence
            | Cause::ReplansExhausted
            | Cause::Infeasible => true,
            Cause::Answered | Cause::PlanningFailed | Cause::Refused | Cause::NoModel | Cause::Aborted => false,
        };
        cause && self.complete && self.rounds.iter().any(|round| round.closed_by == ClosedBy::Gap)
    }

    /// What the task would have been worth under these parameters, as far as the record tells.
    pub fn worth(&self, params: &Params) -> f64 {
        let mut control = Control::default();
        let calls = |rounds: usize| {
            let share = rounds as f64 / self.rounds.len().max(1) as f64;
            (f64::from(self.model_calls) * share).round() as u32
        };
        for (round, number) in self.rounds.iter().zip(1..) {
            if round.closed_by == ClosedBy::Accepted {
                break;
            }
            let seen = Observation {
                d: Unit01::clamped(round.d),
                p: Unit01::clamped(round.p),
                elapsed: round.elapsed_ms,
                rejected: round.rejected,
                veto: None,
                advice: None,
            };
            match control.observe(params, seen).decision {
                Move::Direct(_) => {}
                Move::Succeed => return worth(Ended::Partial, round.d, calls(number)),
                Move::Abandon(_) => return worth(Ended::Abandoned, 1.0, calls(number)),
            }
        }
        let ended = match self.ending {
            Ending::Accept => Ended::Solved,
            Ending::Success => Ended::Partial,
            Ending::Abandon => Ended::Abandoned,
        };
        worth(ended, self.d, self.model_calls)
    }
}

/// The mean worth of all rows.
pub fn mean_worth(rows: &[TaskRow], params: &Params) -> f64 {
    if rows.is_empty() {
        return 0.0;
    }
    rows.iter().map(|row| row.worth(params)).sum::<f64>() / rows.len() as f64
}

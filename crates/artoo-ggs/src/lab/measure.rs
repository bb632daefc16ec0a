//! Counting what became of many tasks, with how sure one may be.
//!
//! Owns the arithmetic of shares and means; which tasks were run is the comparison's matter.

use serde::Serialize;

use super::episode::{Ended, Episode};

/// 97.5 % quantile of the normal distribution: intervals are of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// A figure with its interval of 95 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// A share, by Wilson's interval, which also holds close to 0 and 1.
    pub fn share(hits: u64, of: u64) -> Self {
        if of == 0 {
            return Self::default();
        }
        let (n, p) = (of as f64, hits as f64 / of as f64);
        let z2 = Z * Z;
        let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = Z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        Self {
            value: p,
            low: (middle - half).max(0.0),
            high: (middle + half).min(1.0),
        }
    }
}

/// A running sum with its squares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    n: u64,
    total: f64,
    squares: f64,
}

impl Sum {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        self.total += value;
        self.squares += value * value;
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.total += other.total;
        self.squares += other.squares;
    }

    /// The mean, by the normal interval.
    pub fn mean(&self) -> Estimate {
        if self.n == 0 {
            return Estimate::default();
        }
        let n = self.n as f64;
        let value = self.total / n;
        let variance = (self.squares / n - value * value).max(0.0);
        let half = Z * (variance / n).sqrt();
        Estimate {
            value,
            low: value - half,
            high: value + half,
        }
    }
}

/// Everything that is counted of one policy in one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tallied {
    tasks: u64,
    solved: u64,
    partial: u64,
    falsely: u64,
    infeasible: u64,
    rounds: Sum,
    sequential: Sum,
    calls: Sum,
    wasted: Sum,
    worth: Sum,
    regret: Sum,
}

impl Tallied {
    /// Adds one task; `bound` is what the oracle made of it.
    pub fn add(&mut self, episode: &Episode, bound: &Episode, feasible: bool) {
        self.tasks += 1;
        match episode.ended {
            Ended::Solved => self.solved += 1,
            Ended::Partial => self.partial += 1,
            Ended::False => self.falsely += 1,
            Ended::Abandoned => {}
        }
        self.rounds.add(f64::from(episode.rounds));
        self.sequential.add(f64::from(episode.sequential));
        self.calls.add(f64::from(episode.calls));
        self.worth.add(episode.worth);
        self.regret.add(bound.worth - episode.worth);
        if !feasible {
            self.infeasible += 1;
            self.wasted.add(f64::from(episode.calls));
        }
    }

    /// Adds what another part of the cell counted.
    pub fn merge(&mut self, other: &Self) {
        self.tasks += other.tasks;
        self.solved += other.solved;
        self.partial += other.partial;
        self.falsely += other.falsely;
        self.infeasible += other.infeasible;
        for (mine, theirs) in [
            (&mut self.rounds, &other.rounds),
            (&mut self.sequential, &other.sequential),
            (&mut self.calls, &other.calls),
            (&mut self.wasted, &other.wasted),
            (&mut self.worth, &other.worth),
            (&mut self.regret, &other.regret),
        ] {
            mine.merge(theirs);
        }
    }

    /// What is reported.
    pub fn measures(&self) -> Measures {
        Measures {
            tasks: self.tasks,
            solved: Estimate::share(self.solved, self.tasks),
            partial: Estimate::share(self.partial, self.tasks),
            falsely: Estimate::share(self.falsely, self.tasks),
            rounds: self.rounds.mean(),
            sequential: self.sequential.mean(),
            calls: self.calls.mean(),
            infeasible: self.infeasible,
            wasted: self.wasted.mean(),
            worth: self.worth.mean(),
            regret: self.regret.mean(),
        }
    }
}

/// The measures of one policy in one cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measures {
    /// How many tasks.
    pub tasks: u64,
    /// Share that is solved: every criterion truly holds.
    pub solved: Estimate,
    /// Share that is delivered in part, with everything named that is missing.
    pub partial: Estimate,
    /// Share that is delivered with a claim that is not true.
    pub falsely: Estimate,
    /// Mean number of rounds.
    pub rounds: Estimate,
    /// Mean number of model calls one after the other.
    pub sequential: Estimate,
    /// Mean number of model calls.
    pub calls: Estimate,
    /// How many tasks could not be done.
    pub infeasible: u64,
    /// Mean number of model calls on each of those.
    pub wasted: Estimate,
    /// Mean worth.
    pub worth: Estimate,
    /// Mean of what the oracle's worth is above it, on the same tasks.
    pub regret: Estimate,
}

//! Calibration: parameters that do better on some tasks, judged on tasks that they were not fitted to.
//!
//! Owns the search. It proposes and never changes a default. The optimiser is CMA-ES over the nine numbers and, as numbers around
//! ½, the choices between rules; the same seeds are used for every candidate, so that candidates differ and luck does not.

pub mod rows;
pub mod sensitivity;

use artoo_protocol::Unit01;
use cmaes::{CMAESOptions, DVector, Mode};
use rayon::prelude::*;

use super::episode::{Draw, run};
use super::family::Family;
use super::policy::Policy;
use crate::params::{BlockedTargets, FirstRound, Gradient, NearGoal, Params, WrongButImproving};

/// Which choices between rules may be made beside the nine numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Only which gradient decides.
    Specified,
    /// Every option that [`Params`] names.
    Any,
}

/// A parameter: its symbol, how it is read, how it is written.
pub type Number = (&'static str, fn(&Params) -> Unit01, fn(&mut Params, Unit01));

/// The nine numbers in the order of the search.
pub const NUMBERS: [Number; 9] = [
    ("α", |p| p.alpha, |p, x| p.alpha = x),
    ("β", |p| p.beta, |p, x| p.beta = x),
    ("λ", |p| p.lambda, |p, x| p.lambda = x),
    ("w₁", |p| p.w1, |p, x| p.w1 = x),
    ("w₂", |p| p.w2, |p, x| p.w2 = x),
    ("ε", |p| p.epsilon, |p, x| p.epsilon = x),
    ("δ", |p| p.delta, |p, x| p.delta = x),
    ("ρ", |p| p.rho, |p, x| p.rho = x),
    ("θ", |p| p.theta, |p, x| p.theta = x),
];

/// Tasks to be good at.
#[derive(Clone, Debug, PartialEq)]
pub struct Examples {
    /// Everything follows from it.
    pub seed: u64,
    /// Families, each as heavy as any other.
    pub families: Vec<Family>,
    /// Skills of planners.
    pub skills: Vec<f64>,
    /// Tasks of each family and skill.
    pub tasks: u64,
}

impl Examples {
    /// The mean worth of the controller with these parameters.
    pub fn worth(&self, params: &Params) -> f64 {
        let cells: Vec<(Family, f64)> = self
            .families
            .iter()
            .flat_map(|&family| self.skills.iter().map(move |&skill| (family, skill)))
            .collect();
        let sums: Vec<f64> = cells
            .par_iter()
            .map(|&(family, skill)| {
                (0..self.tasks)
                    .map(|number| {
                        let draw = Draw {
                            seed: self.seed,
                            family,
                            number,
                        };
                        run(&family.task(self.seed, number), draw, skill, Policy::Ggs(*params)).worth
                    })
                    .sum()
            })
            .collect();
        let runs = cells.len() as f64 * self.tasks as f64;
        if runs > 0.0 {
            sums.iter().sum::<f64>() / runs
        } else {
            0.0
        }
    }
}

/// What the search is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// Of the optimiser.
    pub seed: u64,
    /// How many candidates may be tried.
    pub candidates: usize,
    /// Which rules may be chosen.
    pub rules: Rules,
    /// Where it starts, and what stays as it is.
    pub start: Params,
}

impl Search {
    /// The best of the candidates by `judge`, and how good it was; the start itself is one of them.
    pub fn run(&self, judge: impl Fn(&Params) -> f64, progress: impl Fn(usize, f64)) -> (Params, f64) {
        let mut best = (self.start, judge(&self.start));
        let mut tried = 0;
        let objective = |point: &DVector<f64>| {
            let params = self.params(point.as_slice());
            let worth = judge(&params);
            tried += 1;
            if worth > best.1 {
                best = (params, worth);
            }
            progress(tried, best.1);
            worth
        };
        let options = CMAESOptions::new(self.point(), 0.2)
            .mode(Mode::Maximize)
            .seed(self.seed)
            .population_size(12)
            .max_function_evals(self.candidates)
            .tol_fun(1e-9)
            .tol_x(1e-6);
        // A search of at least one dimension with a positive step has no invalid option.
        if let Ok(mut search) = options.build(objective) {
            let _ = search.run();
        }
        best
    }

    fn point(&self) -> Vec<f64> {
        let mut point: Vec<f64> = NUMBERS.iter().map(|(_, read, _)| read(&self.start).get()).collect();
        let choice = |yes: bool| if yes { 0.6 } else { 0.4 };
        point.push(choice(self.start.gradient == Gradient::Task));
        if self.rules == Rules::Any {
            point.push(choice(self.start.first_round == FirstRound::Movement));
            point.push(choice(self.start.wrong_but_improving == WrongButImproving::Refine));
            point.push(choice(self.start.blocked_targets == BlockedTargets::Failed));
            point.push(choice(self.start.near_goal == NearGoal::Finish));
        }
        point
    }

    fn params(&self, point: &[f64]) -> Params {
        let mut params = self.start;
        let mut values = point.iter().copied().map(folded);
        for ((_, _, write), value) in NUMBERS.iter().zip(&mut values) {
            // Three digits are enough for a file that people read.
            write(&mut params, Unit01::clamped((value * 1_000.0).round() / 1_000.0));
        }
        let mut choice = || values.next().map(|value| value > 0.5);
        if let Some(task) = choice() {
            params.gradient = if task { Gradient::Task } else { Gradient::Total };
        }
        if let Some(movement) = choice() {
            params.first_round = if movement {
                FirstRound::Movement
            } else {
                FirstRound::Plateau
            };
        }
        if let Some(refine) = choice() {
            params.wrong_but_improving = if refine {
                WrongButImproving::Refine
            } else {
                WrongButImproving::ChangeApproach
            };
        }
        if let Some(failed) = choice() {
            params.blocked_targets = if failed {
                BlockedTargets::Failed
            } else {
                BlockedTargets::Implicated
            };
        }
        if let Some(finish) = choice() {
            params.near_goal = if finish { NearGoal::Finish } else { NearGoal::Stop };
        }
        params
    }
}

/// Folds the line into 0…1, so that the search knows no border.
fn folded(x: f64) -> f64 {
    let x = x.rem_euclid(2.0);
    if x > 1.0 { 2.0 - x } else { x }
}

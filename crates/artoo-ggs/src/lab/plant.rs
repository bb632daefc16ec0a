//! A simulated task: what a plan would really achieve, and what the validators would say about it.
//!
//! Owns the dynamics, which `docs/controller-lab.md` writes down in words. It knows no policy: what it tells is what the fan-in gate
//! would tell, and beside it the truth, which only the measures and the oracle may read.

use artoo_protocol::{Millis, Unit01};

use super::dice::Dice;

/// Attempts per round of a policy with the inner correction loop (design §11): one, and two corrections.
pub const ATTEMPTS: u32 = 3;
/// How much of a refinement one correction by the agent validator is worth.
const CORRECTION: f64 = 0.25;
/// Machine checks err this much more rarely than models.
const CHECKED: f64 = 0.25;

/// A way of doing the task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Approach {
    /// Its class of tools.
    pub class: usize,
    /// How much planners like it before they know better, above 0.
    pub appeal: f64,
    /// The share of the criteria that it meets at once.
    pub base: f64,
    /// The share that it meets when it is refined without end.
    pub ceiling: f64,
    /// The share of what is left to the ceiling that one refinement brings.
    pub gain: f64,
}

/// How wrong verdicts are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// A criterion that does not hold is said to hold, by a model.
    pub false_pass: f64,
    /// A criterion that holds is said not to, by a model.
    pub false_fail: f64,
    /// A failure is given the other class.
    pub class: f64,
}

/// A task with its dynamics.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// How many criteria there are, at most 32.
    pub criteria: usize,
    /// How many of them, the last ones, concern the merged result.
    pub whole: usize,
    /// A bit for each criterion that a machine checks.
    pub checked: u32,
    /// How many subtasks a plan has, which run in parallel.
    pub subtasks: u32,
    /// The ways of doing it.
    pub approaches: Vec<Approach>,
    /// The targets; whether each can be worked on.
    pub open: Vec<bool>,
    /// The share of the criteria that fail when the environment stands in the way.
    pub hit: f64,
    /// In this share of the rounds the environment is down.
    pub outage: f64,
    /// In this share of the attempts it fails once.
    pub glitch: f64,
    /// Whenever the plan changes, each criterion breaks with this probability, until it is mended by a refinement.
    pub coupling: f64,
    /// Unfinished work is classed as logical with this probability, else as environmental.
    pub unfinished_is_logical: f64,
    /// Of the verdicts.
    pub noise: Noise,
    /// How long an attempt takes at least and at most, in milliseconds.
    pub attempt_ms: (f64, f64),
    /// The time that the task may run.
    pub budget: Millis,
    /// How often an executor says of an impossible step that it cannot be done.
    pub candour: f64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Position of the approach.
    pub approach: usize,
    /// Position of the target.
    pub path: usize,
}

/// How far the work on a task is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Refinements of each approach so far.
    levels: Vec<f64>,
    /// A bit for each criterion that a change has broken.
    broken: u32,
    previous: Option<Plan>,
}

/// What one round brought.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, as the gate reports them"
)]
pub struct Report {
    /// As the controller would count it.
    pub d: Unit01,
    /// As the controller would count it.
    pub p: Unit01,
    /// How long the round took.
    pub took: Millis,
    /// Attempts made.
    pub attempts: u32,
    /// Every criterion was said to hold.
    pub accepted: bool,
    /// Only criteria of the merged result were said to fail.
    pub rejected: bool,
    /// The executor said that it cannot be done.
    pub infeasible: bool,
    /// Some call failed by itself.
    pub call_failed: bool,
    /// What no policy may look at.
    pub truth: Truth,
}

/// What is true of the last attempt, for the measures and the oracle alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// How many criteria do not hold.
    pub failing: u32,
    /// How many of those were said to hold.
    pub overlooked: u32,
}

impl Task {
    /// How many criteria an approach meets after so many refinements.
    fn met(&self, approach: &Approach, level: f64) -> usize {
        let reach = approach.ceiling - (approach.ceiling - approach.base) * (1.0 - approach.gain).powf(level);
        rounded(reach * self.criteria as f64).min(self.criteria)
    }

    /// Whether an approach can meet every criterion.
    pub fn can_solve(&self, approach: &Approach) -> bool {
        rounded(approach.ceiling * self.criteria as f64) >= self.criteria
            && (approach.gain > 0.0 || approach.base >= 1.0)
    }

    /// Whether there is a plan that solves it, in any number of rounds.
    pub fn is_feasible(&self) -> bool {
        self.open.contains(&true) && self.approaches.iter().any(|approach| self.can_solve(approach))
    }

    /// Carries out a plan: up to `attempts` attempts, and no more once all criteria are said to hold.
    pub fn carry_out(&self, work: &mut Work, plan: Plan, attempts: u32, skill: f64, dice: &mut Dice) -> Report {
        work.turn_to(self, plan, dice);
        let approach = self.approaches.get(plan.approach).copied().unwrap_or(NOTHING);
        let open = self.open.get(plan.path).copied().unwrap_or_default();
        let down = dice.chance(self.outage);
        let mut took = dice.between(4_000.0, 8_000.0);
        let mut fails = [0_u8; 32];
        let mut last = Verdicts::default();
        let mut call_failed = false;
        let mut made = 0;
        for attempt in 0..attempts {
            made += 1;
            if attempt > 0 {
                work.refine(plan.approach, CORRECTION);
            }
            took += dice.between(self.attempt_ms.0, self.attempt_ms.1);
            let hit = !open || down || dice.chance(self.glitch);
            call_failed |= hit;
            let met = self.met(&approach, work.level(plan.approach));
            last = self.judge(&approach, met, hit, work.broken, dice);
            for (count, position) in fails.iter_mut().zip(0_u32..) {
                *count += u8::from(last.fail >> position & 1 == 1);
            }
            if last.fail == 0 {
                break;
            }
        }
        // A wrong approach fails by itself in a third of the rounds; else its output is only not what was wanted.
        call_failed |= last.fail != 0 && dice.chance(0.3);
        let says_infeasible = if self.is_feasible() {
            0.02 * (1.0 - skill)
        } else {
            self.candour * (0.5 + 0.5 * skill)
        };
        let infeasible = dice.chance(says_infeasible) && last.fail != 0;
        let whole = mask(self.criteria) & !mask(self.criteria.saturating_sub(self.whole));
        Report {
            d: self.distance(&last, &fails, made),
            p: last.implausibility(),
            took: Millis(took as u64),
            attempts: made,
            accepted: last.fail == 0,
            rejected: last.fail != 0 && last.fail & !whole == 0,
            infeasible,
            call_failed,
            truth: Truth {
                failing: last.wrong.count_ones(),
                overlooked: (last.wrong & !last.fail).count_ones(),
            },
        }
    }

    /// What is true of each criterion, and what the validators say.
    fn judge(&self, approach: &Approach, met: usize, hit: bool, broken: u32, dice: &mut Dice) -> Verdicts {
        let mut verdicts = Verdicts::default();
        let mut struck_by_environment = 0_u32;
        if hit {
            let start = dice.below(self.criteria);
            for step in 0..rounded(self.hit * self.criteria as f64).clamp(1, self.criteria) {
                struck_by_environment |= 1 << ((start + step) % self.criteria);
            }
        }
        let reachable = rounded(approach.ceiling * self.criteria as f64);
        for position in 0..self.criteria {
            let bit = 1_u32 << position;
            let struck = struck_by_environment & bit != 0;
            let wrong = position >= met || broken & bit != 0 || struck;
            let checked = if self.checked & bit == 0 { 1.0 } else { CHECKED };
            let fail = if wrong {
                !dice.chance(self.noise.false_pass * checked)
            } else {
                dice.chance(self.noise.false_fail * checked)
            };
            if wrong {
                verdicts.wrong |= bit;
            }
            if fail {
                verdicts.fail |= bit;
                let unfinished = position >= met && position < reachable;
                let logical = !(struck || unfinished && !dice.chance(self.unfinished_is_logical));
                if logical != dice.chance(self.noise.class) {
                    verdicts.logical |= bit;
                }
            }
        }
        verdicts
    }

    /// Weighted failures over all criteria: 1 for a checked one, the share of the attempts in which it failed for another.
    fn distance(&self, last: &Verdicts, fails: &[u8; 32], attempts: u32) -> Unit01 {
        let weight: f64 = fails
            .iter()
            .zip(0_u32..)
            .filter(|(_, position)| last.fail >> position & 1 == 1)
            .map(|(&count, position)| {
                if self.checked >> position & 1 == 1 {
                    1.0
                } else {
                    f64::from(count) / f64::from(attempts)
                }
            })
            .sum();
        Unit01::clamped(weight / self.criteria.max(1) as f64)
    }
}

/// Stands for an approach that does not exist.
const NOTHING: Approach = Approach {
    class: 0,
    appeal: 0.0,
    base: 0.0,
    ceiling: 0.0,
    gain: 0.0,
};

/// A bit for each criterion.
#[derive(Clone, Copy, Debug, Default)]
struct Verdicts {
    wrong: u32,
    fail: u32,
    logical: u32,
}

impl Verdicts {
    fn implausibility(&self) -> Unit01 {
        match self.fail.count_ones() {
            0 => Unit01::ZERO,
            failed => Unit01::clamped(f64::from((self.fail & self.logical).count_ones()) / f64::from(failed)),
        }
    }
}

impl Work {
    /// Work that has not begun.
    pub fn on(task: &Task) -> Self {
        Self {
            levels: vec![0.0; task.approaches.len()],
            ..Self::default()
        }
    }

    /// Makes the present method tighter; what a change had broken is mended.
    pub fn refine(&mut self, approach: usize, by: f64) {
        if let Some(level) = self.levels.get_mut(approach) {
            *level += by;
        }
        if by >= 0.5 {
            self.broken = 0;
        }
    }

    fn level(&self, approach: usize) -> f64 {
        self.levels.get(approach).copied().unwrap_or_default()
    }

    /// A plan that differs from the one before may break what held.
    fn turn_to(&mut self, task: &Task, plan: Plan, dice: &mut Dice) {
        let changed = self.previous.is_some_and(|previous| previous != plan);
        self.previous = Some(plan);
        if changed && task.coupling > 0.0 {
            for position in 0..task.criteria {
                if dice.chance(task.coupling) {
                    self.broken |= 1 << position;
                }
            }
        }
    }
}

/// The lowest `n` bits.
const fn mask(n: usize) -> u32 {
    if n >= 32 { u32::MAX } else { (1 << n) - 1 }
}

fn rounded(value: f64) -> usize {
    // Shares of at most 32 criteria.
    (value.max(0.0) + 0.5).floor() as usize
}

//! One task under one policy, from the first plan to the end.
//!
//! Owns the loop, what it costs, and the judgement of its end by the truth.

use artoo_protocol::{Millis, Unit01};

use super::dice::{Dice, Purpose};
use super::family::Family;
use super::planner::{Demand, Planner};
use super::plant::{Plan, Report, Task, Work};
use super::policy::{Memory, Policy, Step};

/// Model calls of one attempt: three of the executor and one verdict.
const CALLS_PER_ATTEMPT: u32 = 4;
/// No policy goes on for longer.
const ROUNDS_MAX: u32 = 40;

/// How a task ended, by the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every criterion holds, and the result was delivered.
    Solved,
    /// Delivered with everything named that does not hold.
    Partial,
    /// Delivered, and something that was said to hold does not.
    False,
    /// Given up.
    Abandoned,
}

/// One task under one policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// How it ended.
    pub ended: Ended,
    /// Rounds.
    pub rounds: u32,
    /// Model calls one after the other: what a person waits for.
    pub sequential: u32,
    /// All model calls; subtasks run in parallel.
    pub calls: u32,
    /// Running time.
    pub elapsed: Millis,
    /// By [`worth`].
    pub worth: f64,
}

/// What an end is worth, less its costs: a solved task 1, a partial result up to ½ by what it holds, a false one −1, and every
/// sequential call −0.005. Regret and calibration go by it.
pub fn worth(ended: Ended, distance: f64, sequential: u32) -> f64 {
    let result = match ended {
        Ended::Solved => 1.0,
        Ended::Partial => 0.5 * (1.0 - distance),
        Ended::False => -1.0,
        Ended::Abandoned => 0.0,
    };
    result - 0.005 * f64::from(sequential)
}

/// Which task and which luck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Of the whole run.
    pub seed: u64,
    /// Of the task.
    pub family: Family,
    /// Of the task within its family.
    pub number: u64,
}

impl Draw {
    fn dice(self, purpose: Purpose) -> Dice {
        Dice::new(self.seed, self.family.stream(), self.number, purpose)
    }
}

/// Runs `task`, which is that of `draw`, under `policy` with a planner of this skill.
pub fn run(task: &Task, draw: Draw, skill: f64, policy: Policy) -> Episode {
    let planner = Planner { skill };
    let mut spent = Spent::default();
    let mut work = Work::on(task);
    let mut memory = Memory::new(policy, task);
    let omniscient = policy == Policy::Oracle;
    let mut plan = if omniscient {
        match best(task) {
            Some(plan) => plan,
            None => return spent.end(Ended::Abandoned, 0.0),
        }
    } else {
        planner.first(task, &mut draw.dice(Purpose::Planning(0)))
    };
    spent.sequential += 1;
    spent.calls += 1;
    loop {
        spent.rounds += 1;
        let mut world = draw.dice(Purpose::World(spent.rounds));
        let report = task.carry_out(&mut work, plan, policy.attempts(), skill, &mut world);
        spent.round(task, policy, &report);
        if let Some(ended) = ended(task, &report, omniscient, spent) {
            return spent.end(ended, share(task, &report));
        }
        let mut luck = draw.dice(Purpose::Policy(spent.rounds));
        let demand = match memory.decide(task, plan, &report, spent.elapsed, &mut luck) {
            Step::Replan(demand, calls) => {
                spent.sequential += calls;
                spent.calls += calls;
                demand
            }
            Step::Succeed => return spent.end(delivered(&report, Ended::Partial), share(task, &report)),
            Step::Abandon => return spent.give_up(policy),
        };
        if omniscient {
            work.refine(plan.approach, 1.0);
            continue;
        }
        let replans = !matches!((policy, demand), (Policy::StallCounting, Demand::Again));
        let answer = planner.answer(task, plan, demand, &mut draw.dice(Purpose::Planning(spent.rounds)));
        let plans = u32::from(replans) + answer.sent_back;
        spent.sequential += plans;
        spent.calls += plans;
        match answer.plan {
            Some(next) => plan = next,
            None => return spent.give_up(policy),
        }
        work.refine(plan.approach, answer.refines);
    }
}

/// What ends every policy alike: an accepted result, the time budget, too many rounds.
fn ended(task: &Task, report: &Report, omniscient: bool, spent: Spent) -> Option<Ended> {
    if omniscient {
        if report.truth.failing == 0 {
            return Some(Ended::Solved);
        }
    } else if report.accepted {
        return Some(delivered(report, Ended::Solved));
    }
    (spent.elapsed >= task.budget || spent.rounds >= ROUNDS_MAX).then_some(Ended::Abandoned)
}

/// A result that is handed over: what it claims decides.
const fn delivered(report: &Report, otherwise: Ended) -> Ended {
    match (report.truth.failing, report.truth.overlooked) {
        (0, _) => Ended::Solved,
        (_, 0) => otherwise,
        (_, _) => Ended::False,
    }
}

fn share(task: &Task, report: &Report) -> f64 {
    Unit01::clamped(f64::from(report.truth.failing) / task.criteria.max(1) as f64).get()
}

/// The plan of one who knows everything: an open target, and the approach that arrives soonest.
fn best(task: &Task) -> Option<Plan> {
    let path = task.open.iter().position(|&open| open)?;
    let soonest = |a: &(usize, &super::plant::Approach), b: &(usize, &super::plant::Approach)| {
        (a.1.base + a.1.gain).total_cmp(&(b.1.base + b.1.gain))
    };
    task.approaches
        .iter()
        .enumerate()
        .filter(|(_, approach)| task.can_solve(approach))
        .max_by(soonest)
        .map(|(approach, _)| Plan { approach, path })
}

#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    rounds: u32,
    sequential: u32,
    calls: u32,
    elapsed: Millis,
}

impl Spent {
    fn round(&mut self, task: &Task, policy: Policy, report: &Report) {
        let merge = u32::from(report.accepted);
        let extra = policy.calls_per_round() + merge;
        self.sequential += CALLS_PER_ATTEMPT * report.attempts + extra;
        self.calls += CALLS_PER_ATTEMPT * report.attempts * task.subtasks + extra;
        self.elapsed = self.elapsed.saturating_add(report.took);
    }

    /// A task that is given up is put into words where the policy does so.
    fn give_up(mut self, policy: Policy) -> Episode {
        let words = match policy {
            Policy::StallCounting | Policy::OlderTable | Policy::Ggs(_) => 1,
            Policy::RetryUnchanged | Policy::RandomRestart | Policy::ReflectAndRetry | Policy::Oracle => 0,
        };
        self.sequential += words;
        self.calls += words;
        self.end(Ended::Abandoned, 1.0)
    }

    fn end(self, ended: Ended, distance: f64) -> Episode {
        Episode {
            ended,
            rounds: self.rounds,
            sequential: self.sequential,
            calls: self.calls,
            elapsed: self.elapsed,
            worth: worth(ended, distance, self.sequential),
        }
    }
}

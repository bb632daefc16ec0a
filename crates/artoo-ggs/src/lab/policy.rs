//! The policies that are compared: what each does after a round that was not accepted.
//!
//! Owns the decisions. The Goal Gradient Solver is the real [`Control`]; of what it blocks, [`Blocks`] keeps the same books as
//! [`blocked`](crate::blocked) does for real calls. The others are as published or as commonly built.

use artoo_protocol::message::{Cause, Directive, Urgency};
use artoo_protocol::{Millis, Unit01};

use super::dice::Dice;
use super::planner::Demand;
use super::plant::{ATTEMPTS, Plan, Report, Task};
use crate::control::{Control, Move, Observation};
use crate::loss::{gradient, loss, omega};
use crate::params::{BlockedTargets, Params};
use crate::table::{above, at_least};

/// Rounds of the policies that know no better measure: the first plan and three more, as many as the controller's defaults allow.
const ROUNDS: u32 = 4;
/// Turns and stalls of the orchestrator that counts stalls: the defaults of Magentic-One in AutoGen
/// (<https://microsoft.github.io/autogen/stable/reference/python/autogen_agentchat.teams.html>).
const TURNS: u32 = 20;
const STALLS: u32 = 3;
/// A failed verdict quotes the output of the call that it judges, so that the call is implicated.
const CITED: f64 = 0.8;

/// A way of going on after a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The same plan again, four times in all.
    RetryUnchanged,
    /// A plan from scratch, four times in all.
    RandomRestart,
    /// A reflection on the last failure, then what the planner thinks best; four times in all.
    ReflectAndRetry,
    /// Goes on with a plan until three turns brought no progress, then plans anew; twenty turns in all.
    StallCounting,
    /// The controller's table before there was a threshold of success: an improving round is refined, whatever it is.
    OlderTable,
    /// The Goal Gradient Solver with these parameters.
    Ggs(Params),
    /// Knows the plant and the truth: the bound.
    Oracle,
}

/// What is done next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Another plan, for so many calls of a model beside the plan itself.
    Replan(Demand, u32),
    /// Stop: close enough, and what is missing is named.
    Succeed,
    /// Stop without a result.
    Abandon,
}

impl Policy {
    /// Attempts per round: the orchestrator that counts stalls has no inner loop of corrections.
    pub const fn attempts(&self) -> u32 {
        match self {
            Self::StallCounting => 1,
            Self::RetryUnchanged
            | Self::RandomRestart
            | Self::ReflectAndRetry
            | Self::OlderTable
            | Self::Ggs(_)
            | Self::Oracle => ATTEMPTS,
        }
    }

    /// Calls of a model that a round costs beside planning, doing and judging: the ledger of progress.
    pub const fn calls_per_round(&self) -> u32 {
        match self {
            Self::StallCounting => 1,
            Self::RetryUnchanged
            | Self::RandomRestart
            | Self::ReflectAndRetry
            | Self::OlderTable
            | Self::Ggs(_)
            | Self::Oracle => 0,
        }
    }
}

/// What a policy remembers of one task.
#[derive(Clone, Debug)]
pub struct Memory {
    policy: Policy,
    round: u32,
    blocks: Blocks,
    /// Approaches and targets that failed, whatever was blocked.
    failed: (u32, u32),
    stalls: u32,
    best: f64,
    control: Control,
    /// Of the table of old, which has no [`Control`].
    previous_loss: Option<artoo_protocol::Finite>,
}

impl Memory {
    /// Of a task that has not begun.
    pub fn new(policy: Policy, task: &Task) -> Self {
        let policy = match policy {
            Policy::Ggs(params) => Policy::Ggs(Params {
                time_budget_ms: task.budget,
                ..params
            }),
            other => other,
        };
        Self {
            policy,
            round: 0,
            blocks: Blocks::default(),
            failed: (0, 0),
            stalls: 0,
            best: 1.0,
            control: Control::default(),
            previous_loss: None,
        }
    }

    /// Decides after a round of `plan` that was not accepted.
    pub fn decide(&mut self, task: &Task, plan: Plan, report: &Report, elapsed: Millis, dice: &mut Dice) -> Step {
        self.round += 1;
        self.blocks.tried(task, plan);
        self.failed.0 |= bit(plan.approach);
        self.failed.1 |= bit(plan.path);
        let implicated = report.call_failed || dice.chance(CITED);
        let again = |demand, calls| {
            if self.round < ROUNDS {
                Step::Replan(demand, calls)
            } else {
                Step::Abandon
            }
        };
        let p = report.p.get();
        match self.policy {
            Policy::RetryUnchanged => again(Demand::Again, 0),
            Policy::RandomRestart => again(Demand::Fresh, 0),
            Policy::ReflectAndRetry => {
                let (approaches, paths) = blamed(plan, p);
                let demand = Demand::Reflect {
                    implausibility: p,
                    approaches,
                    paths,
                };
                again(demand, 1)
            }
            Policy::StallCounting => self.count_stall(task, report, dice),
            Policy::OlderTable => self.old_table(task, plan, report, elapsed, implicated),
            Policy::Ggs(params) => self.control(&params, task, plan, report, elapsed, implicated),
            Policy::Oracle => Step::Replan(Demand::Again, 0),
        }
    }

    /// A turn with progress repays a stall, one without adds one; too many, and everything is planned anew from a ledger of what
    /// is known (two calls).
    fn count_stall(&mut self, task: &Task, report: &Report, dice: &mut Dice) -> Step {
        if self.round >= TURNS {
            return Step::Abandon;
        }
        let progress = report.d.get() < self.best - 1e-9;
        self.best = self.best.min(report.d.get());
        // The ledger is a model's opinion, wrong as often as a class of failure is.
        if progress == dice.chance(task.noise.class) {
            self.stalls += 1;
        } else {
            self.stalls = self.stalls.saturating_sub(1);
        }
        if self.stalls < STALLS {
            return Step::Replan(Demand::Again, 0);
        }
        self.stalls = 0;
        let demand = Demand::Reflect {
            implausibility: report.p.get(),
            approaches: self.failed.0,
            paths: self.failed.1,
        };
        Step::Replan(demand, 2)
    }

    fn control(
        &mut self,
        params: &Params,
        task: &Task,
        plan: Plan,
        report: &Report,
        elapsed: Millis,
        implicated: bool,
    ) -> Step {
        let used_up = self.round > params.max_replans;
        let round = self.control.observe(
            params,
            Observation {
                d: report.d,
                p: report.p,
                elapsed,
                rejected: report.rejected,
                veto: None,
                advice: match (report.infeasible, used_up) {
                    (true, _) => Some(Cause::Infeasible),
                    (false, true) => Some(Cause::ReplansExhausted),
                    (false, false) => None,
                },
            },
        );
        match round.decision {
            Move::Succeed => Step::Succeed,
            Move::Abandon(_) => Step::Abandon,
            Move::Direct(directive) => {
                let demand = self.blocks.directed(
                    task,
                    plan,
                    directive,
                    round.urgency,
                    report,
                    Implicated {
                        call: implicated,
                        target: match params.blocked_targets {
                            BlockedTargets::Implicated => implicated,
                            BlockedTargets::Failed => report.call_failed,
                        },
                    },
                );
                Step::Replan(demand, 0)
            }
        }
    }

    fn old_table(&mut self, task: &Task, plan: Plan, report: &Report, elapsed: Millis, implicated: bool) -> Step {
        let params = Params {
            time_budget_ms: task.budget,
            ..Params::default()
        };
        let spent = omega(&params, self.round, elapsed);
        let now = loss(&params, report.d, report.p, spent).l;
        let slope = gradient(self.previous_loss, now).get();
        self.previous_loss = Some(now);
        let (epsilon, logical) = (params.epsilon.get(), above(report.p.get(), params.rho.get()));
        if at_least(spent.get(), params.theta.get()) || elapsed >= task.budget {
            return Step::Abandon;
        }
        let directive = if at_least(-slope, epsilon) {
            Directive::Refine
        } else if at_least(slope, epsilon) {
            if logical {
                Directive::ChangeApproach
            } else {
                Directive::Refine
            }
        } else if !above(report.d.get(), params.delta.get()) {
            // Not in the table of old: a plateau close to the goal.
            Directive::Refine
        } else if logical {
            Directive::BreakSymmetry
        } else {
            Directive::ChangePath
        };
        Step::Replan(self.blocks.all_tried(task, plan, directive, report.p, implicated), 0)
    }
}

/// What a planner blames by the class of the failure: the approach or the target.
fn blamed(plan: Plan, implausibility: f64) -> (u32, u32) {
    if implausibility > 0.5 {
        (bit(plan.approach), 0)
    } else {
        (0, bit(plan.path))
    }
}

/// What is to blame for a failure.
#[derive(Clone, Copy, Debug)]
struct Implicated {
    /// The call, and so the approach.
    call: bool,
    /// Its target.
    target: bool,
}

/// The books of what is refused.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    approaches: u32,
    paths: u32,
    classes: u32,
    /// The approach that was blocked first.
    oldest: Option<usize>,
    /// What the planner keeps refused: all directives together (design §6).
    kept: (u32, u32),
}

impl Blocks {
    fn tried(&mut self, task: &Task, plan: Plan) {
        if let Some(approach) = task.approaches.get(plan.approach) {
            self.classes |= bit(approach.class);
        }
    }

    /// As the controller blocks: see [`History::block`](crate::blocked::History::block).
    fn directed(
        &mut self,
        task: &Task,
        plan: Plan,
        directive: Directive,
        urgency: Urgency,
        report: &Report,
        implicated: Implicated,
    ) -> Demand {
        let latest_path = if implicated.target { bit(plan.path) } else { 0 };
        self.paths |= latest_path;
        let (approaches, paths) = match directive {
            Directive::ChangePath | Directive::Refine => match urgency {
                Urgency::Lower => (0, latest_path),
                Urgency::Neutral | Urgency::Higher => (0, self.paths),
            },
            Directive::ChangeApproach | Directive::BreakSymmetry => {
                let blocks = match urgency {
                    Urgency::Lower => report.call_failed,
                    Urgency::Neutral => implicated.call,
                    Urgency::Higher => true,
                };
                let latest = if blocks { self.block(plan.approach) } else { 0 };
                match urgency {
                    Urgency::Lower => (self.leave_one(task, latest), 0),
                    Urgency::Neutral | Urgency::Higher => (self.leave_one(task, self.approaches), 0),
                }
            }
        };
        self.demand(task, directive, report.p, approaches, paths)
    }

    /// As the table of old blocked: every tried tool when the symmetry is broken, the failing one on another approach, no target.
    fn all_tried(&mut self, task: &Task, plan: Plan, directive: Directive, p: Unit01, implicated: bool) -> Demand {
        let latest = if implicated { self.block(plan.approach) } else { 0 };
        let approaches = match directive {
            Directive::Refine | Directive::ChangePath => 0,
            Directive::ChangeApproach => self.leave_one(task, latest),
            Directive::BreakSymmetry => self.leave_one(task, self.approaches),
        };
        self.demand(task, directive, p, approaches, 0)
    }

    fn demand(&mut self, task: &Task, directive: Directive, p: Unit01, approaches: u32, paths: u32) -> Demand {
        self.kept.0 |= approaches;
        self.kept.1 |= paths;
        if self.kept.0 & all(task) == all(task) {
            self.kept.0 = approaches;
        }
        Demand::Directed {
            directive,
            implausibility: p.get(),
            approaches: self.kept.0,
            paths: self.kept.1,
            classes: self.classes,
        }
    }

    fn block(&mut self, approach: usize) -> u32 {
        if self.approaches == 0 {
            self.oldest = Some(approach);
        }
        self.approaches |= bit(approach);
        bit(approach)
    }

    /// Blocking never leaves nothing at all.
    fn leave_one(&self, task: &Task, blocked: u32) -> u32 {
        match self.oldest {
            Some(oldest) if blocked & all(task) == all(task) => blocked & !bit(oldest),
            Some(_) | None => blocked,
        }
    }
}

fn all(task: &Task) -> u32 {
    (1 << task.approaches.len().min(31)) - 1
}

const fn bit(position: usize) -> u32 {
    1 << (position & 31)
}

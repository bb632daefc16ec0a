//! How a planner of a given skill answers a demand: whether it obeys, repeats itself, or finds something new.
//!
//! Owns the model of the actuator, the same for every policy. Skill runs from 0 (a weak model) to 1; it knows the quality of an
//! approach only as far as its skill goes, and whether a target is open not at all.

use artoo_protocol::message::Directive;

use super::dice::Dice;
use super::plant::{Approach, Plan, Task};

/// What a policy wants of the planner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// The same plan again.
    Again,
    /// Another plan from scratch, as if nothing had been tried.
    Fresh,
    /// Whatever the planner makes of the last failure.
    Reflect {
        /// The share of logical failures in it.
        implausibility: f64,
        /// A bit for each approach that it is told has failed.
        approaches: u32,
        /// A bit for each target that it is told has failed.
        paths: u32,
    },
    /// A directive of a controller.
    Directed {
        /// The kind of change.
        directive: Directive,
        /// The share of logical failures, for a planner that does not obey.
        implausibility: f64,
        /// A bit for each approach that is refused.
        approaches: u32,
        /// A bit for each target that is refused.
        paths: u32,
        /// A bit for each class of tools that was tried.
        classes: u32,
    },
}

/// What came of a demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// The plan; `None` where the planner finds none that is allowed.
    pub plan: Option<Plan>,
    /// Refinements of the plan's approach that come with it.
    pub refines: f64,
    /// Plans that were sent back because they used what is refused, each a call more.
    pub sent_back: u32,
}

/// What kind of change a planner makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Again,
    Refine,
    Path,
    Approach,
    Class,
}

/// A planner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planner {
    /// From 0 to 1.
    pub skill: f64,
}

impl Planner {
    /// The first plan of a task, made with half of the skill: nothing is known of the task yet.
    pub fn first(self, task: &Task, dice: &mut Dice) -> Plan {
        let weigh = |approach: &Approach| liking(approach, 0.5 * self.skill);
        Plan {
            approach: dice.weighted(task.approaches.iter().map(weigh)).unwrap_or_default(),
            path: 0,
        }
    }

    /// The next plan.
    pub fn answer(self, task: &Task, plan: Plan, demand: Demand, dice: &mut Dice) -> Answer {
        match demand {
            Demand::Again => plain(plan, CARELESS),
            Demand::Fresh => {
                let weigh = |approach: &Approach| liking(approach, 0.5 * self.skill);
                let fresh = Plan {
                    approach: dice.weighted(task.approaches.iter().map(weigh)).unwrap_or_default(),
                    path: dice.below(task.open.len()),
                };
                plain(fresh, 0.0)
            }
            Demand::Reflect {
                implausibility,
                approaches,
                paths,
            } => {
                let kind = self.own_kind(implausibility, dice);
                let heeded = self.remembered(approaches, dice);
                let avoided = self.remembered(paths, dice);
                self.change(
                    task,
                    plan,
                    kind,
                    Sets {
                        approaches: heeded,
                        paths: avoided,
                        classes: 0,
                    },
                    dice,
                )
            }
            Demand::Directed {
                directive,
                implausibility,
                approaches,
                paths,
                classes,
            } => {
                let obeys = dice.chance(0.6 + 0.4 * self.skill);
                let kind = if obeys {
                    kind_of(directive)
                } else {
                    self.own_kind(implausibility, dice)
                };
                let sets = Sets {
                    approaches,
                    paths,
                    classes,
                };
                let answer = self.change(task, plan, kind, sets, dice);
                self.enforced(task, answer, sets, dice)
            }
        }
    }

    /// What a planner makes of a failure by itself. Skill is what it takes to fit the change to the failure; without it, half
    /// of the time it repeats itself.
    fn own_kind(self, implausibility: f64, dice: &mut Dice) -> Kind {
        let first = dice.chance(0.5);
        if dice.chance(self.skill) {
            match (implausibility > 0.5, first) {
                (true, true) => Kind::Refine,
                (true, false) => Kind::Approach,
                (false, true) => Kind::Again,
                (false, false) => Kind::Path,
            }
        } else if first {
            Kind::Again
        } else {
            let kinds = [Kind::Refine, Kind::Path, Kind::Approach];
            kinds.get(dice.below(kinds.len())).copied().unwrap_or(Kind::Again)
        }
    }

    /// Of what it is told in words, it heeds each with this probability.
    fn remembered(self, told: u32, dice: &mut Dice) -> u32 {
        (0..32)
            .map(|bit| 1_u32 << bit)
            .filter(|bit| told & bit != 0 && dice.chance(0.5 + 0.5 * self.skill))
            .sum()
    }

    fn change(self, task: &Task, plan: Plan, kind: Kind, sets: Sets, dice: &mut Dice) -> Answer {
        match kind {
            Kind::Again => plain(plan, CARELESS),
            Kind::Refine => plain(plan, 0.5 + 0.5 * self.skill),
            Kind::Path => {
                let path = other_path(task, plan.path, sets.paths, dice).unwrap_or(plan.path);
                plain(Plan { path, ..plan }, 0.0)
            }
            Kind::Approach => self.turn(task, plan, sets.approaches, 0, dice),
            Kind::Class => self.turn(task, plan, sets.approaches, sets.classes, dice),
        }
    }

    /// Another approach; of an untried class where there is one.
    fn turn(self, task: &Task, plan: Plan, approaches: u32, classes: u32, dice: &mut Dice) -> Answer {
        let allowed = |position: usize| position != plan.approach && approaches >> position & 1 == 0;
        let untried = |position: usize, approach: &Approach| allowed(position) && classes >> approach.class & 1 == 0;
        let weigh = |(position, approach): (usize, &Approach)| {
            f64::from(u8::from(untried(position, approach))) * liking(approach, self.skill)
        };
        let anyhow = |(position, approach): (usize, &Approach)| {
            f64::from(u8::from(allowed(position))) * liking(approach, self.skill)
        };
        let ways = || task.approaches.iter().enumerate();
        let found = dice
            .weighted(ways().map(weigh))
            .or_else(|| dice.weighted(ways().map(anyhow)));
        plain(
            Plan {
                approach: found.unwrap_or(plan.approach),
                ..plan
            },
            0.0,
        )
    }

    /// The plan validator sends back what uses a refused approach or target, and the planner looks for something else.
    fn enforced(self, task: &Task, answer: Answer, sets: Sets, dice: &mut Dice) -> Answer {
        let Some(mut plan) = answer.plan else {
            return answer;
        };
        let mut sent_back = 0;
        let mut refines = answer.refines;
        if sets.approaches >> plan.approach & 1 == 1 {
            sent_back += 1;
            let weigh = |(position, approach): (usize, &Approach)| {
                f64::from(u8::from(sets.approaches >> position & 1 == 0)) * liking(approach, self.skill)
            };
            match dice.weighted(task.approaches.iter().enumerate().map(weigh)) {
                Some(approach) => plan.approach = approach,
                None => return none(sent_back),
            }
            refines = 0.0;
        }
        if sets.paths >> plan.path & 1 == 1 {
            sent_back += 1;
            match other_path(task, plan.path, sets.paths, dice) {
                Some(path) => plan.path = path,
                // No other target is left: a skilled planner finds another name for the same one.
                None if dice.chance(0.5 + 0.5 * self.skill) => {}
                None => return none(sent_back + 1),
            }
        }
        Answer {
            plan: Some(plan),
            refines,
            sent_back,
        }
    }
}

/// Doing the same again brings a little all the same, as a correction does.
const CARELESS: f64 = 0.25;

/// What is not to be used.
#[derive(Clone, Copy, Debug)]
struct Sets {
    approaches: u32,
    paths: u32,
    classes: u32,
}

const fn plain(plan: Plan, refines: f64) -> Answer {
    Answer {
        plan: Some(plan),
        refines,
        sent_back: 0,
    }
}

const fn none(sent_back: u32) -> Answer {
    Answer {
        plan: None,
        refines: 0.0,
        sent_back,
    }
}

const fn kind_of(directive: Directive) -> Kind {
    match directive {
        Directive::Refine => Kind::Refine,
        Directive::ChangePath => Kind::Path,
        Directive::ChangeApproach => Kind::Approach,
        Directive::BreakSymmetry => Kind::Class,
    }
}

/// How much a planner is drawn to an approach: by its looks, or, as far as skill goes, by what it can do.
fn liking(approach: &Approach, skill: f64) -> f64 {
    (1.0 - skill) * approach.appeal + skill * 3.0 * approach.ceiling.powi(4)
}

fn other_path(task: &Task, path: usize, paths: u32, dice: &mut Dice) -> Option<usize> {
    let weigh = |position: usize| f64::from(u8::from(position != path && paths >> position & 1 == 0));
    dice.weighted((0..task.open.len()).map(weigh))
}

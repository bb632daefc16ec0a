//! The comparison: every policy on the same tasks with the same luck, by family and by skill, on all cores.
//!
//! Owns the grid. The result depends on the seed alone: parts are added up in their order, whichever core made them.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use serde::Serialize;

use super::episode::{Draw, run};
use super::family::Family;
use super::measure::{Measures, Tallied};
use super::policy::Policy;

/// Tasks that one core takes at a time.
const PART: u64 = 500;

/// A policy under a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// As it is shown.
    pub name: String,
    /// What it does.
    pub policy: Policy,
}

impl Contender {
    /// A policy under a name.
    pub fn new(name: &str, policy: Policy) -> Self {
        Self {
            name: name.to_owned(),
            policy,
        }
    }
}

/// What is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Everything follows from it.
    pub seed: u64,
    /// Tasks of each cell.
    pub tasks: u64,
    /// Families.
    pub families: Vec<Family>,
    /// Skills of planners, each from 0 to 1.
    pub skills: Vec<f64>,
    /// Policies.
    pub contenders: Vec<Contender>,
}

/// One policy in one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Of the tasks.
    pub family: &'static str,
    /// Of the planner.
    pub skill: f64,
    /// Its name.
    pub policy: String,
    /// What it achieved.
    #[serde(flatten)]
    pub measures: Measures,
}

impl Grid {
    /// How many tasks will be run in all.
    pub fn runs(&self) -> u64 {
        self.tasks * self.families.len() as u64 * self.skills.len() as u64 * self.contenders.len() as u64
    }

    /// Runs it; `progress` hears how many tasks are done, from any thread.
    pub fn run(&self, progress: impl Fn(u64) + Sync) -> Vec<Row> {
        let done = AtomicU64::new(0);
        let mut rows = Vec::new();
        for &family in &self.families {
            for &skill in &self.skills {
                let parts: Vec<u64> = (0..self.tasks.div_ceil(PART)).collect();
                let tallies: Vec<Vec<Tallied>> = parts
                    .into_par_iter()
                    .map(|part| {
                        let tallied = self.part(family, skill, part);
                        let size = PART.min(self.tasks - part * PART) * self.contenders.len() as u64;
                        progress(done.fetch_add(size, Ordering::Relaxed) + size);
                        tallied
                    })
                    .collect();
                let mut whole = vec![Tallied::default(); self.contenders.len()];
                for part in &tallies {
                    for (mine, theirs) in whole.iter_mut().zip(part) {
                        mine.merge(theirs);
                    }
                }
                rows.extend(self.contenders.iter().zip(&whole).map(|(contender, tallied)| Row {
                    family: family.name(),
                    skill,
                    policy: contender.name.clone(),
                    measures: tallied.measures(),
                }));
            }
        }
        rows
    }

    fn part(&self, family: Family, skill: f64, part: u64) -> Vec<Tallied> {
        let mut tallies = vec![Tallied::default(); self.contenders.len()];
        for number in part * PART..((part + 1) * PART).min(self.tasks) {
            let task = family.task(self.seed, number);
            let draw = Draw {
                seed: self.seed,
                family,
                number,
            };
            let bound = run(&task, draw, skill, Policy::Oracle);
            let feasible = task.is_feasible();
            for (tallied, contender) in tallies.iter_mut().zip(&self.contenders) {
                tallied.add(&run(&task, draw, skill, contender.policy), &bound, feasible);
            }
        }
        tallies
    }
}

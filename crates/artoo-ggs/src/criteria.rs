//! The criteria of a task from plan to plan: which nobody judged yet, and which failed and are asked no more (design §14).
//!
//! Owns what an ending names beyond its last round: a criterion of the task does not come true by not being stated again. Those of steps
//! do not count here, because another way to the goal has other steps. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};

use artoo_protocol::SubTaskId;
use artoo_protocol::message::{Check, Criterion, CriterionVerdict, DispatchManifest, Honesty, Verdict, VerdictSource};

use crate::digest::{Digest, NAMES_MAX};
use crate::honesty::unverified;
use crate::packing::Packed;

/// The criteria of one task.
#[derive(Clone, Debug, Default)]
pub struct Criteria {
    round: u32,
    /// Whether R4b has spoken of the present plan.
    judged: bool,
    of_task: Vec<Criterion>,
    /// Words of the criteria of its steps, packed: every open task holds them, and few ever need them.
    of_steps: Packed,
    failed: Vec<Failed>,
}

/// A criterion of the task that failed, by the last that was heard of it.
#[derive(Clone, Debug)]
struct Failed {
    criterion: String,
    told: Told,
    round: u32,
    /// Whether it was decided. Where its check could not be run, another check for the same words is an improvement.
    decided: bool,
    stands: Stands,
}

/// What the present plan says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    Asked,
    /// The same words with another check, although the check had decided.
    Replaced,
    Dropped,
}

/// A criterion in the form in which a repetition shows.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    words: String,
    check: Option<Check>,
}

impl Told {
    fn of(criterion: &Criterion) -> Self {
        Self {
            words: criterion.words(),
            check: criterion.check.as_ref().map(Check::plain),
        }
    }
}

impl Criteria {
    /// A new plan.
    pub fn planned(&mut self, manifest: &DispatchManifest) {
        let of_steps = || manifest.subtasks.iter().flat_map(|subtask| &subtask.success_criteria);
        if !self.failed.is_empty() {
            let present = Present::of(manifest.task_criteria.iter().chain(of_steps()));
            for failed in &mut self.failed {
                failed.stands = present.says_of(failed);
            }
        }
        let subtasks = manifest.subtasks.iter();
        let words = subtasks.flat_map(|subtask| {
            let criteria = subtask.success_criteria.iter();
            criteria.map(|criterion| (&subtask.subtask_id, criterion.criterion.as_str()))
        });
        self.of_steps = Packed::criteria(words.take(NAMES_MAX));
        self.of_task.clone_from(&manifest.task_criteria);
        self.round = manifest.round;
        self.judged = false;
    }

    /// The words of the present plan's criteria of the task.
    pub fn of_task(&self) -> Vec<String> {
        self.of_task
            .iter()
            .map(|criterion| criterion.criterion.clone())
            .collect()
    }

    /// R4b has spoken of the present plan.
    pub fn judged(&mut self, task_verdicts: &[CriterionVerdict]) {
        self.judged = true;
        for verdict in task_verdicts.iter().filter(|verdict| verdict.verdict == Verdict::Pass) {
            if !self.failed.is_empty() {
                let met = Told::of(&find(&self.of_task, verdict));
                self.failed.retain(|earlier| !earlier.is_asked_by(&met));
            }
        }
        for verdict in task_verdicts.iter().filter(|verdict| verdict.verdict == Verdict::Fail) {
            self.note(find(&self.of_task, verdict), verdict.source != VerdictSource::NoCheck);
        }
    }

    fn note(&mut self, criterion: Criterion, decided: bool) {
        let told = Told::of(&criterion);
        let round = self.round;
        if let Some(known) = self.failed.iter_mut().find(|known| known.told == told) {
            (known.round, known.decided, known.stands) = (round, decided, Stands::Asked);
        } else if self.failed.len() < NAMES_MAX {
            self.failed.push(Failed {
                criterion: criterion.criterion,
                told,
                round,
                decided,
                stands: Stands::Asked,
            });
        }
    }

    /// Names in an ending what failed in an earlier round and is asked no more.
    pub fn name_dropped(&self, digest: &mut Digest, honesty: &mut Honesty) {
        for failed in &self.failed {
            let Some(why) = failed.why() else { continue };
            if digest.unmet.contains(&failed.criterion) {
                continue;
            }
            if digest.unverified.len() < NAMES_MAX {
                digest.unverified.push(format!("{} ({why})", failed.criterion));
            }
            unverified(honesty, None, &failed.criterion, &why);
        }
    }

    /// Names in an ending from outside the criteria of a plan that nobody has judged yet. What was shown in an earlier round is not known
    /// any more where that plan asks for it again, because it may have undone it.
    pub fn name_open(&self, digest: &mut Digest, honesty: &mut Honesty) {
        if self.judged {
            return;
        }
        let of_task = self.of_task.iter().map(|criterion| (None, criterion.criterion.clone()));
        let of_steps = self.of_steps.unpacked_criteria().into_iter();
        let of_steps = of_steps.map(|(subtask, criterion)| (Some(subtask), criterion));
        let open: Vec<(Option<SubTaskId>, String)> = of_task.chain(of_steps).collect();
        let words: BTreeSet<&str> = open.iter().map(|(_, criterion)| criterion.as_str()).collect();
        for list in [&mut honesty.proven, &mut honesty.judged, &mut honesty.unverified] {
            list.retain(|grounds| !words.contains(grounds.criterion.as_str()));
        }
        let mut named: BTreeSet<String> = digest.unmet.iter().chain(&digest.unverified).cloned().collect();
        let unmet: BTreeSet<String> = digest.unmet.iter().cloned().collect();
        for (subtask, criterion) in open {
            if !unmet.contains(&criterion) {
                let why = format!("the task ended before plan {} was judged", self.round);
                unverified(honesty, subtask.as_ref(), &criterion, &why);
            }
            if digest.unverified.len() < NAMES_MAX && named.insert(criterion.clone()) {
                digest.unverified.push(criterion);
            }
        }
    }
}

impl Failed {
    /// Whether its words alone state it again. They do not where a check had decided it.
    fn goes_by_words(&self) -> bool {
        self.told.check.is_none() || !self.decided
    }

    /// Whether this is the same criterion, stated again.
    fn is_asked_by(&self, told: &Told) -> bool {
        let same_check = self.told.check.is_some() && self.told.check == told.check;
        same_check || (self.goes_by_words() && self.told.words == told.words)
    }

    /// What is to be said of it; nothing as long as it is asked.
    fn why(&self) -> Option<String> {
        let round = self.round;
        match (self.stands, self.decided) {
            (Stands::Asked, _) => None,
            (Stands::Replaced, _) => Some(format!(
                "its check failed in round {round}; another check took its place"
            )),
            (Stands::Dropped, true) => Some(format!("asked in round {round}, not met then, no longer asked")),
            (Stands::Dropped, false) => Some(format!(
                "asked in round {round}, where its check could not be run; no longer asked"
            )),
        }
    }
}

/// All criteria of a plan, for many comparisons.
struct Present {
    /// Their words, and whether a check stands with them.
    words: BTreeMap<String, bool>,
    checks: Vec<Check>,
}

impl Present {
    fn of<'a>(criteria: impl Iterator<Item = &'a Criterion>) -> Self {
        let (mut words, mut checks) = (BTreeMap::new(), Vec::new());
        for told in criteria.map(Told::of) {
            *words.entry(told.words).or_insert(false) |= told.check.is_some();
            checks.extend(told.check);
        }
        Self { words, checks }
    }

    fn says_of(&self, failed: &Failed) -> Stands {
        let same_check = failed
            .told
            .check
            .as_ref()
            .is_some_and(|check| self.checks.contains(check));
        let words = self.words.get(&failed.told.words);
        match words {
            _ if same_check => Stands::Asked,
            Some(_) if failed.goes_by_words() => Stands::Asked,
            Some(true) => Stands::Replaced,
            Some(false) | None => Stands::Dropped,
        }
    }
}

/// The criterion that a verdict is about. One that no plan named has no check.
fn find(criteria: &[Criterion], verdict: &CriterionVerdict) -> Criterion {
    let found = criteria
        .iter()
        .find(|criterion| criterion.criterion == verdict.criterion);
    found.cloned().unwrap_or_else(|| Criterion {
        criterion: verdict.criterion.clone(),
        mode: verdict.mode,
        check: None,
    })
}

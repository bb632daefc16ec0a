//! From verdicts to signals: D counts criteria, P counts failure classes (design §12).
//!
//! Every criterion of every subtask counts, whether it matched, failed or was never started, and so does every task
//! criterion that was judged. What nothing shows to hold has failed. Owns the counting; what follows from it is the
//! [`table`](mod@crate::table)'s matter.

use artoo_protocol::Unit01;
use artoo_protocol::message::{
    Attempt, Criterion, CriterionVerdict, FailureClass, FailureMix, Mode, OutcomeStatus, SubTaskOutcome, Verdict,
    VerdictSource,
};

/// Why a criterion counts as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ground {
    /// It was judged, and it does not hold.
    Judged,
    /// Its subtask failed before it was judged.
    Unjudged,
    /// Its subtask was not started.
    NotRun,
}

/// One criterion that counts as failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure<'a> {
    /// Word for word.
    pub criterion: &'a str,
    /// Its share in the numerator of D, above 0 and at most 1.
    pub weight: f64,
    /// Its class, where one is known.
    pub class: Option<FailureClass>,
    /// Why it counts.
    pub ground: Ground,
}

/// All criteria of a round, counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally<'a> {
    /// How many criteria there are.
    pub total: usize,
    /// Those that count as failed.
    pub failures: Vec<Failure<'a>>,
    /// Those that passed on a model's word about text alone, or that nobody judged.
    pub unverified: Vec<&'a str>,
    /// There was not a single outcome.
    pub nothing_came: bool,
}

impl<'a> Tally<'a> {
    /// Counts the criteria of all outcomes and of the task.
    pub fn of(outcomes: &'a [SubTaskOutcome], task_verdicts: &'a [CriterionVerdict]) -> Self {
        let mut tally = Self {
            nothing_came: outcomes.is_empty(),
            ..Self::default()
        };
        for outcome in outcomes {
            match outcome.status {
                OutcomeStatus::Matched | OutcomeStatus::Failed => tally.count_judged(outcome),
                OutcomeStatus::NotRun => tally.count_not_run(outcome),
            }
        }
        for verdict in task_verdicts {
            tally.count_verdict(verdict, verdict.mode, &[]);
        }
        tally
    }

    /// D: the weighted failures as a share of all criteria; 1 when nothing came at all.
    pub fn distance(&self) -> Unit01 {
        if self.nothing_came {
            return Unit01::ONE;
        }
        if self.total == 0 {
            return Unit01::ZERO;
        }
        let failed: f64 = self.failures.iter().map(|failure| failure.weight).sum();
        Unit01::clamped(failed / self.total as f64)
    }

    /// P: logical failures as a share of the classified ones; 0 without failures, 0.5 when none is classified.
    pub fn implausibility(&self) -> Unit01 {
        let (logical, environmental) = self.classes();
        match (self.failures.is_empty(), logical + environmental) {
            (true, _) => Unit01::ZERO,
            (false, 0) => Unit01::clamped(0.5),
            (false, classified) => Unit01::clamped(logical as f64 / classified as f64),
        }
    }

    /// Which class prevails.
    pub fn mix(&self) -> FailureMix {
        let (logical, environmental) = self.classes();
        match logical.cmp(&environmental) {
            std::cmp::Ordering::Greater => FailureMix::Logical,
            std::cmp::Ordering::Less => FailureMix::Environmental,
            std::cmp::Ordering::Equal => FailureMix::Mixed,
        }
    }

    /// The criterion that contributed most to D. What was judged goes before what was not, because the latter only follows
    /// from the former; of equals the first.
    pub fn driver(&self) -> Option<&Failure<'a>> {
        self.failures.iter().reduce(|best, next| {
            let better = next.ground < best.ground || (next.ground == best.ground && next.weight > best.weight);
            if better { next } else { best }
        })
    }

    /// Logical and environmental failures.
    fn classes(&self) -> (usize, usize) {
        let count = |class| self.failures.iter().filter(|f| f.class == Some(class)).count();
        (count(FailureClass::Logical), count(FailureClass::Environmental))
    }

    fn count_judged(&mut self, outcome: &'a SubTaskOutcome) {
        let failed = outcome.status == OutcomeStatus::Failed;
        let last_class = outcome.gap_trajectory.last().and_then(|attempt| attempt.failure_class);
        let failures_before = self.failures.len();
        let declared = &outcome.success_criteria;
        for (position, criterion) in declared.iter().enumerate() {
            match verdict_on(criterion, position, &outcome.criteria_verdicts) {
                Some(verdict) => {
                    self.count_verdict(verdict, criterion.mode, &outcome.gap_trajectory);
                    self.note_doubt(verdict, outcome);
                }
                None if failed => self.count_failed(&criterion.criterion, Ground::Unjudged, last_class),
                None => {
                    self.total += 1;
                    self.unverified.push(&criterion.criterion);
                }
            }
        }
        // Verdicts on what was not declared; the usual case, one verdict per criterion in order, has none.
        let aligned = declared.len() == outcome.criteria_verdicts.len()
            && declared
                .iter()
                .zip(&outcome.criteria_verdicts)
                .all(|(c, v)| c.criterion == v.criterion);
        if !aligned {
            for verdict in &outcome.criteria_verdicts {
                if declared
                    .iter()
                    .all(|criterion| criterion.criterion != verdict.criterion)
                {
                    self.count_verdict(verdict, verdict.mode, &outcome.gap_trajectory);
                }
            }
        }
        // A failed subtask whose verdicts all pass has failed for another reason, which counts too.
        if failed && self.failures.len() == failures_before {
            self.count_failed(reason(outcome), Ground::Unjudged, last_class);
        }
    }

    fn count_verdict(&mut self, verdict: &'a CriterionVerdict, declared: Mode, trajectory: &[Attempt]) {
        self.total += 1;
        let mode = stricter(declared, verdict.mode);
        match verdict.verdict {
            Verdict::Fail => self.failures.push(Failure {
                criterion: &verdict.criterion,
                weight: weight(mode, &verdict.criterion, trajectory),
                class: verdict
                    .failure_class
                    .or_else(|| trajectory.last().and_then(|attempt| attempt.failure_class)),
                ground: Ground::Judged,
            }),
            Verdict::Pass => {
                if mode == Mode::Plausible && verdict.source == VerdictSource::Model {
                    self.unverified.push(&verdict.criterion);
                }
            }
        }
    }

    /// What only a model let pass, while the executor itself was not sure of it, is not verified.
    fn note_doubt(&mut self, verdict: &'a CriterionVerdict, outcome: &SubTaskOutcome) {
        let judged = verdict.verdict == Verdict::Pass && verdict.source == VerdictSource::Model;
        if judged && outcome.uncertain.is_some() && self.unverified.last() != Some(&verdict.criterion.as_str()) {
            self.unverified.push(&verdict.criterion);
        }
    }

    /// A subtask that was not started: every declared criterion, and one at least.
    fn count_not_run(&mut self, outcome: &'a SubTaskOutcome) {
        if outcome.success_criteria.is_empty() {
            self.count_failed(reason(outcome), Ground::NotRun, None);
        }
        for criterion in &outcome.success_criteria {
            self.count_failed(&criterion.criterion, Ground::NotRun, None);
        }
    }

    fn count_failed(&mut self, criterion: &'a str, ground: Ground, class: Option<FailureClass>) {
        self.total += 1;
        self.failures.push(Failure {
            criterion,
            weight: 1.0,
            class,
            ground,
        });
    }
}

/// The weight of a judged failure: 1 for a verifiable criterion, k/N for a plausible one that failed in k of N attempts.
///
/// It failed in the last attempt at least, so k is never below 1; without a trajectory the weight is 1.
pub fn weight(mode: Mode, criterion: &str, trajectory: &[Attempt]) -> f64 {
    match mode {
        Mode::Verifiable => 1.0,
        Mode::Plausible if trajectory.is_empty() => 1.0,
        Mode::Plausible => {
            let failed = trajectory
                .iter()
                .filter(|attempt| attempt.unmet_criteria.iter().any(|unmet| unmet == criterion))
                .count();
            failed.max(1) as f64 / trajectory.len() as f64
        }
    }
}

/// Verdicts come in the order of the criteria; a text that moved is still found.
fn verdict_on<'a>(
    criterion: &Criterion,
    position: usize,
    verdicts: &'a [CriterionVerdict],
) -> Option<&'a CriterionVerdict> {
    verdicts
        .get(position)
        .filter(|verdict| verdict.criterion == criterion.criterion)
        .or_else(|| verdicts.iter().find(|verdict| verdict.criterion == criterion.criterion))
}

/// Whoever asks for tool evidence gets it.
const fn stricter(a: Mode, b: Mode) -> Mode {
    match (a, b) {
        (Mode::Plausible, Mode::Plausible) => Mode::Plausible,
        (Mode::Verifiable, Mode::Plausible | Mode::Verifiable) | (Mode::Plausible, Mode::Verifiable) => {
            Mode::Verifiable
        }
    }
}

/// What stands for the criterion of a subtask that names none.
fn reason(outcome: &SubTaskOutcome) -> &str {
    match outcome.failure_reason.as_deref() {
        Some(reason) if !reason.trim().is_empty() => reason,
        Some(_) | None => &outcome.intent,
    }
}

//! Verdicts on the way: which criteria are decided, which checks are running, what is still open (design §10, §11).
//!
//! Owns the bookkeeping that both validators share, by the number of the criterion. Knows neither attempts nor rounds.

use std::collections::BTreeMap;

use artoo_protocol::message::{Criterion, CriterionVerdict, FailureClass, Verdict};
use artoo_protocol::text::one_line;
use artoo_protocol::tool::{CheckReport, CheckRequest};
use artoo_protocol::{Answer, CallId};

use crate::verdicts;

/// Verdicts that are there already, by the number of the criterion.
#[derive(Debug, Default)]
pub(crate) struct Decided(BTreeMap<usize, CriterionVerdict>);

impl Decided {
    /// Notes a verdict.
    pub(crate) fn insert(&mut self, at: usize, verdict: CriterionVerdict) {
        self.0.insert(at, verdict);
    }

    /// Takes one out.
    pub(crate) fn remove(&mut self, at: usize) -> Option<CriterionVerdict> {
        self.0.remove(&at)
    }

    /// Whether this one is decided.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.0.contains_key(&at)
    }

    /// Whether one of them is a fail.
    pub(crate) fn any_fail(&self) -> bool {
        self.0.values().any(|verdict| verdict.verdict == Verdict::Fail)
    }

    /// How many are decided.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The numbers of those that nobody has decided.
    pub(crate) fn open(&self, criteria: &[Criterion]) -> Vec<usize> {
        (0..criteria.len()).filter(|at| !self.has(*at)).collect()
    }

    /// The verdicts in the order of their criteria.
    pub(crate) fn into_verdicts(self) -> Vec<CriterionVerdict> {
        self.0.into_values().collect()
    }

    /// Notes what a check reported; the words about a check that could not run, for the planner.
    ///
    /// `class` is what the tools' own errors say, where the check does not say.
    pub(crate) fn note_check(
        &mut self,
        criteria: &[Criterion],
        at: usize,
        answer: Answer,
        class: FailureClass,
    ) -> Option<String> {
        let criterion = criteria.get(at)?;
        let report = report_of(answer);
        self.insert(at, verdicts::from_check(criterion, &report, class));
        report.faulty.then(|| {
            format!(
                "{}: {}",
                one_line(&criterion.criterion, 200),
                one_line(&report.evidence, 400)
            )
        })
    }
}

/// Machine checks under way; the value is the criterion's number.
#[derive(Debug, Default)]
pub(crate) struct Pending(BTreeMap<CallId, usize>);

impl Pending {
    /// Starts a check on every undecided criterion that has one; `about` says what each may look at.
    pub(crate) fn start(
        criteria: &[Criterion],
        decided: &Decided,
        next_call: &mut CallId,
        about: impl Fn(&artoo_protocol::message::Check) -> CheckRequest,
    ) -> (Self, Vec<(CallId, CheckRequest)>) {
        let (mut pending, mut requests) = (Self::default(), Vec::new());
        for (at, criterion) in criteria.iter().enumerate() {
            let Some(check) = criterion.check.as_ref().filter(|_| !decided.has(at)) else {
                continue;
            };
            let call = next_call.take();
            pending.0.insert(call, at);
            requests.push((call, about(check)));
        }
        (pending, requests)
    }

    /// Whether the answer to this call is waited for.
    pub(crate) fn awaits(&self, call: CallId) -> bool {
        self.0.contains_key(&call)
    }

    /// The criterion that a call decides; it is not waited for any more.
    pub(crate) fn take(&mut self, call: CallId) -> Option<usize> {
        self.0.remove(&call)
    }

    /// Whether all have reported.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The criteria with these numbers.
pub(crate) fn pick<'a>(criteria: &'a [Criterion], at: &[usize]) -> Vec<&'a Criterion> {
    at.iter().filter_map(|at| criteria.get(*at)).collect()
}

/// The report in an answer; another kind of answer is a check that never reported.
fn report_of(answer: Answer) -> CheckReport {
    match answer {
        Answer::Checked(report) => report,
        Answer::Model(_) | Answer::Assessed(_) | Answer::Ran(_) | Answer::Recalled(_) => CheckReport {
            passed: false,
            evidence: "the check gave no report".to_owned(),
            failure_class: Some(FailureClass::Environmental),
            faulty: false,
        },
    }
}

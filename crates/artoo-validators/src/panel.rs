//! Who judges what neither rule nor check has decided: one model, or two that must agree (design §10, §11).
//!
//! Owns how their verdicts become one. The first judge is asked about everything that is open; the second, a model of another
//! provider, about verifiable criteria alone. A pass needs both, and a judge that does not answer passes nothing.

use artoo_protocol::message::{Criterion, CriterionVerdict, FailureClass, Mode, Verdict, VerdictSource};
use artoo_protocol::model::{ModelContent, ModelError, ModelReply, ModelRequest, Tier};
use artoo_protocol::text::one_line;
use artoo_protocol::{Answer, CallId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decided::{Decided, pick};
use crate::verdicts;

/// How many models judge a verifiable criterion that has no check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judges {
    /// The validator's own.
    #[default]
    One,
    /// A second one beside it, [`Tier::SecondJudge`]; where they disagree, the criterion fails.
    Two,
}

/// The judges of one sitting and what they have said so far.
#[derive(Debug)]
pub(crate) struct Panel {
    first: Seat,
    second: Option<Seat>,
}

/// One judge: which model, the call, the numbers of the criteria it is asked about, and its answer.
#[derive(Debug)]
struct Seat {
    tier: Tier,
    call: CallId,
    asked: Vec<usize>,
    said: Option<Result<Value, (String, NoModel)>>,
}

/// Whether a judgement is missing because there is no model, so that asking again is pointless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoModel {
    /// There is none.
    Yes,
    /// There is one; its answer was of no use.
    No,
}

/// What came of a sitting.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// The first judge's answer; null where it gave none.
    pub(crate) value: Value,
    /// Whether some judge was missing.
    pub(crate) no_model: NoModel,
}

impl Panel {
    /// Seats the judges over what is open, which must be something; the calls to make.
    ///
    /// `tier` is the validator's own judge; `request` words the question to a tier about some criteria.
    pub(crate) fn seat(
        (judges, tier): (Judges, Tier),
        criteria: &[Criterion],
        open: Vec<usize>,
        next_call: &mut CallId,
        request: impl Fn(Tier, &[&Criterion]) -> ModelRequest,
    ) -> (Self, Vec<(CallId, ModelRequest)>) {
        let verifiable = |at: &usize| criteria.get(*at).is_some_and(|c| c.mode == Mode::Verifiable);
        let doubly: Vec<usize> = match judges {
            Judges::One => Vec::new(),
            Judges::Two => open.iter().copied().filter(verifiable).collect(),
        };
        let mut requests = Vec::new();
        let mut sit = |tier, asked: Vec<usize>| {
            let call = next_call.take();
            requests.push((call, request(tier, &pick(criteria, &asked))));
            Seat {
                tier,
                call,
                asked,
                said: None,
            }
        };
        let first = sit(tier, open);
        let second = (!doubly.is_empty()).then(|| sit(Tier::SecondJudge, doubly));
        (Self { first, second }, requests)
    }

    fn seats(&mut self) -> impl Iterator<Item = &mut Seat> {
        std::iter::once(&mut self.first).chain(&mut self.second)
    }

    /// Whether the answer to this call is waited for.
    pub(crate) fn awaits(&self, call: CallId) -> bool {
        let mut seats = std::iter::once(&self.first).chain(&self.second);
        seats.any(|seat| seat.call == call && seat.said.is_none())
    }

    /// Notes an answer; the first to a call counts.
    pub(crate) fn note(&mut self, call: CallId, answer: Answer) {
        if let Some(seat) = self.seats().find(|seat| seat.call == call && seat.said.is_none()) {
            seat.said = Some(said(seat.tier, answer));
        }
    }

    /// Whether every judge has answered.
    pub(crate) fn is_complete(&self) -> bool {
        std::iter::once(&self.first)
            .chain(&self.second)
            .all(|seat| seat.said.is_some())
    }

    /// Decides what they were asked. `own` is what the tools' own errors say of a failure; it outranks the judges' class.
    pub(crate) fn decide(self, criteria: &[Criterion], own: Option<FailureClass>, decided: &mut Decided) -> Judgement {
        let mut no_model = NoModel::No;
        let mut rule = |seat: &Seat| -> Vec<CriterionVerdict> {
            let asked = pick(criteria, &seat.asked);
            match &seat.said {
                Some(Ok(value)) => verdicts::read(value, &asked, own),
                Some(Err((why, none))) => {
                    let source = match none {
                        NoModel::Yes => {
                            no_model = NoModel::Yes;
                            VerdictSource::NoJudge
                        }
                        NoModel::No => VerdictSource::Rule,
                    };
                    let fail = |c: &&Criterion| verdicts::fail(c, FailureClass::Environmental, source, why);
                    asked.iter().map(fail).collect()
                }
                None => asked.iter().map(|c| verdicts::unjudged(c)).collect(),
            }
        };
        let own_verdicts = rule(&self.first);
        for (at, verdict) in self.first.asked.iter().copied().zip(own_verdicts) {
            decided.insert(at, verdict);
        }
        if let Some(second) = &self.second {
            for (at, verdict) in second.asked.iter().copied().zip(rule(second)) {
                let both = match decided.remove(at) {
                    Some(first) => agreed(first, &verdict),
                    None => verdict,
                };
                decided.insert(at, both);
            }
        }
        Judgement {
            value: match self.first.said {
                Some(Ok(value)) => value,
                Some(Err(_)) | None => Value::Null,
            },
            no_model,
        }
    }
}

/// What two verdicts on one criterion come to: a pass only when both are.
fn agreed(first: CriterionVerdict, second: &CriterionVerdict) -> CriterionVerdict {
    // Who was not asked has not disagreed; what is missing then is a judge, whatever the other one says.
    if second.source == VerdictSource::NoJudge {
        return CriterionVerdict {
            verdict: Verdict::Fail,
            failure_class: second.failure_class,
            source: second.source,
            evidence: second.evidence.clone(),
            ..first
        };
    }
    if first.source == VerdictSource::NoJudge {
        return first;
    }
    let short = |verdict: &CriterionVerdict| one_line(&verdict.evidence, 250);
    match (first.verdict, second.verdict) {
        (Verdict::Pass, Verdict::Pass) => CriterionVerdict {
            evidence: format!("{} (a second judge agrees: {})", short(&first), short(second)),
            ..first
        },
        (Verdict::Fail, Verdict::Fail) => first,
        (Verdict::Pass, Verdict::Fail) => CriterionVerdict {
            verdict: Verdict::Fail,
            failure_class: second.failure_class,
            source: second.source,
            evidence: format!(
                "two judges disagree, so it is not shown: one says {}; the second says no: {}",
                short(&first),
                short(second)
            ),
            ..first
        },
        (Verdict::Fail, Verdict::Pass) => CriterionVerdict {
            evidence: format!(
                "two judges disagree, so it is not shown: {}; the second says {}",
                short(&first),
                short(second)
            ),
            ..first
        },
    }
}

/// The value in a model's answer; else why there is none.
fn said(tier: Tier, answer: Answer) -> Result<Value, (String, NoModel)> {
    let not_judged = |error: &dyn std::fmt::Display| {
        format!(
            "not judged, so not shown to hold: {}",
            one_line(&error.to_string(), 400)
        )
    };
    match answer {
        Answer::Model(Ok(ModelReply {
            content: ModelContent::Structured { value },
            ..
        })) => Ok(value),
        Answer::Model(Err(error)) if ModelError::is_no_model(&error) => {
            let error = one_line(&error.to_string(), 300);
            Err((
                format!(
                    "not judged, because {} could not be asked: {error}; {}",
                    who(tier),
                    remedy(tier)
                ),
                NoModel::Yes,
            ))
        }
        Answer::Model(Err(error)) => Err((not_judged(&error), NoModel::No)),
        Answer::Model(Ok(_)) | Answer::Assessed(_) | Answer::Ran(_) | Answer::Checked(_) | Answer::Recalled(_) => {
            Err((not_judged(&"the model's answer holds no verdicts"), NoModel::No))
        }
    }
}

/// A judge as the operator knows it, by its place in the settings.
const fn who(tier: Tier) -> &'static str {
    match tier {
        Tier::Brain | Tier::Tool => "the judging model",
        Tier::Judge => "the model under [judge]",
        Tier::SecondJudge => "the model under [second_judge]",
    }
}

/// What the operator can do about it.
const fn remedy(tier: Tier) -> &'static str {
    match tier {
        Tier::Brain | Tier::Tool => "see `artoo doctor`",
        Tier::Judge => "see `artoo doctor`, correct [judge], or remove it and let the planner's model judge",
        Tier::SecondJudge => "see `artoo doctor`, correct [second_judge], or remove it and do with one judge",
    }
}

//! What a task does with a gap: measure it, decide, and carry the decision out (design §12, §13).
//!
//! Owns the round; what an ending says is [`ending`](super::ending)'s matter.

use artoo_protocol::message::{
    Cause, Directive, Ending, FinalResult, MacroState, Megram, OutcomeStatus, PartialResultRequest, PlanDirective,
    Recommendation, ReplanRequest, Verdict, VerdictSource,
};

use super::ending::{Closing, end, may_be_worded, writer};
use super::{Frame, Next, Running, Seen, State, WORDING_WAIT};
use crate::actor::Effect;
use crate::blocked::implicated;
use crate::control::{Move, Observation, Round};
use crate::digest::Digest;
use crate::honesty::honesty;
use crate::megrams::teaches;
use crate::packing::Packed;
use crate::signals::Tally;
use crate::words;

impl Running {
    /// A gap: measure it, decide, act.
    pub fn gap(mut self: Box<Self>, at: Frame<'_>, request: ReplanRequest) -> Next {
        self.adopt(&request.slug, &request.intent);
        let tally = Tally::of(&request.outcomes, &request.task_verdicts);
        let round = self.control.observe(at.params, observation(&request, &tally));
        let digest = self.digest(&request.outcomes, &request.task_verdicts, &tally);
        self.criteria.judged(&request.task_verdicts);
        let megrams = self.breakthrough(at, &request.outcomes);
        match round.decision {
            Move::Direct(directive) => {
                let (directed, more) = self.direct(at, &round, directive, &request, &tally);
                let honesty = honesty(&request.outcomes, &request.task_verdicts, &self.criteria.of_task());
                self.seen = Some(Box::new(Seen {
                    loss: round.loss,
                    grad_l: round.grad_l,
                    round: Packed::round(&digest, &honesty),
                    merged_output: request.merged_output,
                }));
                let mut effects: Vec<Effect> = megrams.into_iter().chain(more).map(Effect::Remember).collect();
                effects.push(Effect::Direct(Box::new(PlanDirective {
                    outcomes: request.outcomes,
                    gap_summary: request.gap_summary,
                    task_verdicts: request.task_verdicts,
                    ..directed
                })));
                self.go_on(effects)
            }
            Move::Succeed => self.succeed(at, &round, request, digest, megrams),
            Move::Abandon(cause) => self.give_up(at, &round, cause, request, digest, megrams),
        }
    }

    /// The directive of this round, but for the outcomes that travel with it, and what memory learns from it.
    fn direct(
        &mut self,
        at: Frame<'_>,
        round: &Round,
        directive: Directive,
        request: &ReplanRequest,
        tally: &Tally<'_>,
    ) -> (PlanDirective, Vec<Megram>) {
        let calls = implicated(&request.outcomes, &request.task_verdicts);
        let blocked = self.history.block(
            at.params.blocked_targets,
            directive,
            round.urgency,
            &request.outcomes,
            &calls,
            at.offered,
        );
        let driver = tally
            .driver()
            .map_or(request.gap_summary.as_str(), |failure| failure.criterion);
        let megrams = writer(at, &self.intent).failures(&mut self.megrams, directive, &calls, driver);
        self.broken = (directive == Directive::BreakSymmetry).then(|| blocked.tools.clone());
        let directed = PlanDirective {
            task_id: at.task_id.clone(),
            loss: round.loss,
            prev_directive: self.previous,
            directive,
            rationale: words::rationale(round, directive, tally, &blocked),
            blocked_tools: blocked.tools,
            blocked_targets: blocked.targets,
            failed_criterion: driver.to_owned(),
            failure_class: tally.mix(),
            budget_pressure: round.loss.omega,
            grad_l: round.grad_l,
            urgency: round.urgency,
            outcomes: Vec::new(),
            gap_summary: String::new(),
            task_verdicts: Vec::new(),
        };
        self.previous = directive.into();
        self.directives = self.directives.saturating_add(1);
        (directed, megrams)
    }

    fn succeed(
        mut self: Box<Self>,
        at: Frame<'_>,
        round: &Round,
        request: ReplanRequest,
        mut digest: Digest,
        mut megrams: Vec<Megram>,
    ) -> Next {
        let honesty = self.honesty(&request.outcomes, &request.task_verdicts, &mut digest);
        megrams.extend(self.remember(at, MacroState::Success, Cause::WithinThreshold, "", &digest));
        let result = FinalResult {
            summary: words::success(&request.gap_summary, &digest),
            output: request.merged_output,
            unmet: digest.unmet,
            unverified: digest.unverified,
            honesty: Box::new(honesty),
            ..self.result(at, Ending::Success, Cause::WithinThreshold, round.loss, round.grad_l)
        };
        end(megrams, result)
    }

    /// Abandons after a gap. Where a model may still speak, the planner is asked to word what was achieved.
    fn give_up(
        mut self: Box<Self>,
        at: Frame<'_>,
        round: &Round,
        cause: Cause,
        request: ReplanRequest,
        mut digest: Digest,
        mut megrams: Vec<Megram>,
    ) -> Next {
        let honesty = self.honesty(&request.outcomes, &request.task_verdicts, &mut digest);
        let teaching = cause == Cause::Budget || teaches(cause);
        if teaching && !only_infrastructure(&request) {
            megrams.extend(self.remember(at, MacroState::Abandon, cause, &request.gap_summary, &digest));
        }
        // The gap is made of what failed, which the text lists anyway.
        let detail = if digest.failed.is_empty() {
            request.gap_summary
        } else {
            String::new()
        };
        let result = FinalResult {
            summary: words::abandoned(cause, &detail, &digest),
            output: request.merged_output,
            unmet: digest.unmet.clone(),
            unverified: digest.unverified.clone(),
            honesty: Box::new(honesty),
            ..self.result(at, Ending::Abandon, cause, round.loss, round.grad_l)
        };
        if !may_be_worded(cause) {
            return end(megrams, result);
        }
        let question = PartialResultRequest {
            task_id: at.task_id.clone(),
            intent: self.intent.into(),
            reason: words::why(cause).to_owned(),
            outcomes: request.outcomes,
        };
        Next {
            state: Some(State::Closing(Box::new(Closing {
                result,
                megrams,
                digest,
                detail,
                until: at.now.plus(WORDING_WAIT),
            }))),
            effects: vec![Effect::AskPartial(question)],
        }
    }
}

/// What the sensors say about a gap, as the control loop wants it.
pub(crate) fn observation(request: &ReplanRequest, tally: &Tally<'_>) -> Observation {
    let mut failing = request
        .outcomes
        .iter()
        .filter(|outcome| outcome.status == OutcomeStatus::Failed)
        .peekable();
    let some_failed = failing.peek().is_some();
    let (mut all_refused, mut all_infeasible) = (some_failed, some_failed);
    for outcome in failing {
        all_refused &= outcome.refused;
        all_infeasible &= outcome.infeasible;
    }
    Observation {
        d: tally.distance(),
        p: tally.implausibility(),
        elapsed: request.elapsed_ms,
        rejected: request.outcomes.iter().all(|o| o.status == OutcomeStatus::Matched),
        veto: if without_judge(request) {
            Some(Cause::NoModel)
        } else {
            all_refused.then_some(Cause::Refused)
        },
        advice: match request.recommendation {
            Recommendation::Replan => None,
            Recommendation::Abandon if all_infeasible => Some(Cause::Infeasible),
            Recommendation::Abandon => Some(Cause::ReplansExhausted),
        },
    }
}

/// Whether a model that had to judge could not be asked: no other plan makes it answer.
fn without_judge(request: &ReplanRequest) -> bool {
    let of_subtasks = request.outcomes.iter().flat_map(|outcome| &outcome.criteria_verdicts);
    of_subtasks
        .chain(&request.task_verdicts)
        .any(|verdict| verdict.verdict == Verdict::Fail && verdict.source == VerdictSource::NoJudge)
}

/// Whether every failing subtask broke on infrastructure: that says nothing about the approach.
fn only_infrastructure(request: &ReplanRequest) -> bool {
    let mut failing = request
        .outcomes
        .iter()
        .filter(|outcome| outcome.status == OutcomeStatus::Failed)
        .peekable();
    failing.peek().is_some() && failing.all(|outcome| outcome.infrastructure)
}

//! How a task ends: by an answer, an accepted result, a plan that cannot be made, or from outside (design §14).
//!
//! Owns the one FinalResult of a task. Whatever ends a task goes through here, so that none ends without its signals, its
//! cause and its lists.

use artoo_protocol::message::{
    Cause, DirectAnswer, Ending, FinalResult, Honesty, Loss, MacroState, Megram, OutcomeSummary, PartialResult,
    PlanningFailed, SubTaskOutcome,
};
use artoo_protocol::{Finite, Role, Timestamp, Unit01};
use serde_json::Value;

use super::{Frame, Next, Running, Teaches};
use crate::actor::Effect;
use crate::digest::Digest;
use crate::megrams::{Writer, teaches};
use crate::signals::Tally;
use crate::words;

impl Running {
    /// R1 has answered by itself. Nothing was tried, so there is nothing to remember.
    pub fn answered(mut self: Box<Self>, at: Frame<'_>, message: DirectAnswer) -> Next {
        self.adopt(&message.slug, &message.intent);
        let (loss, grad_l) = self
            .control
            .read(at.params, Unit01::ZERO, Unit01::ZERO, self.watch.elapsed(at.now));
        let result = FinalResult {
            summary: message.answer.clone(),
            output: Value::String(message.answer),
            ..self.result(at, Ending::Accept, Cause::Answered, loss, grad_l)
        };
        end(Vec::new(), result)
    }

    /// There will be no plan. Where the runtime says so, a part of the program broke, which teaches nothing about the task.
    pub fn unplanned(mut self: Box<Self>, at: Frame<'_>, from: Role, message: &PlanningFailed) -> Next {
        self.adopt(&message.slug, &message.intent);
        let cause = match message.cause {
            cause @ (Cause::NoModel | Cause::Infeasible | Cause::Refused | Cause::PlanningFailed) => cause,
            Cause::Met
            | Cause::WithinThreshold
            | Cause::Answered
            | Cause::Budget
            | Cause::Resources
            | Cause::Divergence
            | Cause::ReplansExhausted
            | Cause::Aborted => Cause::PlanningFailed,
        };
        let teaches = if teaches(cause) && from != Role::Runtime {
            Teaches::Yes
        } else {
            Teaches::No
        };
        self.stop(at, cause, &message.reason, teaches)
    }

    /// Everything matched and was accepted.
    ///
    /// The fan-in gate is not overruled; but what its own verdicts deny is named, and then it is no complete result.
    pub fn accepted(mut self: Box<Self>, at: Frame<'_>, message: OutcomeSummary) -> Next {
        self.adopt(&message.slug, &message.intent);
        let tally = Tally::of(&message.outcomes, &message.task_verdicts);
        let mut digest = self.digest(&message.outcomes, &message.task_verdicts, &tally);
        let honesty = self.honesty(&message.outcomes, &message.task_verdicts, &mut digest);
        let (d, p) = accepted_signals(&tally);
        let (loss, grad_l) = self.control.read(at.params, d, p, message.elapsed_ms);
        let mut megrams = self.breakthrough(at, &message.outcomes);
        let (ending, cause, state) = if digest.unmet.is_empty() {
            (Ending::Accept, Cause::Met, MacroState::Accept)
        } else {
            (Ending::Success, Cause::WithinThreshold, MacroState::Success)
        };
        let summary = match ending {
            Ending::Accept if message.summary.trim().is_empty() => format!("Done: {}", self.intent),
            Ending::Accept => message.summary,
            Ending::Success | Ending::Abandon => words::success(&message.summary, &digest),
        };
        megrams.extend(self.remember(at, state, cause, "", &digest));
        let result = FinalResult {
            summary,
            output: message.merged_output,
            unmet: digest.unmet,
            honesty: Box::new(honesty),
            unverified: digest.unverified,
            ..self.result(at, ending, cause, loss, grad_l)
        };
        end(megrams, result)
    }

    /// Ends a task from outside the loop, with what was seen last. A plan that is under way has shown nothing yet.
    pub(super) fn stop(mut self: Box<Self>, at: Frame<'_>, cause: Cause, detail: &str, teaches: Teaches) -> Next {
        let (loss, grad_l, mut digest, mut honesty, output) = if let Some(seen) = self.seen.take() {
            let (digest, honesty) = seen.round.unpacked_round();
            (seen.loss, seen.grad_l, digest, honesty, seen.merged_output)
        } else {
            let elapsed = self.watch.elapsed(at.now);
            let (loss, grad_l) = self.control.read(at.params, Unit01::ONE, Unit01::ZERO, elapsed);
            (loss, grad_l, Digest::default(), Honesty::default(), Value::Null)
        };
        self.criteria.name_open(&mut digest, &mut honesty);
        self.criteria.name_dropped(&mut digest, &mut honesty);
        let megrams = match teaches {
            Teaches::Yes => self
                .remember(at, MacroState::Abandon, cause, detail, &digest)
                .into_iter()
                .collect(),
            Teaches::No => Vec::new(),
        };
        let result = FinalResult {
            summary: words::abandoned(cause, detail, &digest),
            output,
            honesty: Box::new(honesty),
            unmet: digest.unmet,
            unverified: digest.unverified,
            ..self.result(at, Ending::Abandon, cause, loss, grad_l)
        };
        end(megrams, result)
    }

    pub(super) fn breakthrough(&mut self, at: Frame<'_>, outcomes: &[SubTaskOutcome]) -> Vec<Megram> {
        let Some(blocked) = self.broken.take() else {
            return Vec::new();
        };
        writer(at, &self.intent).breakthrough(&mut self.megrams, outcomes, &blocked)
    }

    pub(super) fn remember(
        &mut self,
        at: Frame<'_>,
        state: MacroState,
        cause: Cause,
        detail: &str,
        digest: &Digest,
    ) -> Option<Megram> {
        writer(at, &self.intent).ending(
            &mut self.megrams,
            state,
            &words::lesson(cause, &self.intent, detail, digest),
        )
    }

    /// The frame of every ending; words, output and lists are the caller's.
    pub(super) fn result(
        &self,
        at: Frame<'_>,
        directive: Ending,
        cause: Cause,
        loss: Loss,
        grad_l: Finite,
    ) -> FinalResult {
        FinalResult {
            task_id: at.task_id.clone(),
            slug: self.slug.clone(),
            intent: self.intent.to_string(),
            summary: String::new(),
            output: Value::Null,
            loss,
            grad_l,
            replans: self.directives,
            prev_directive: self.previous,
            directive,
            cause,
            unmet: Vec::new(),
            unverified: Vec::new(),
            honesty: Box::default(),
        }
    }
}

/// D and P of an accepted result. The gate may pass on nothing but the merged result; that is no gap.
pub(crate) fn accepted_signals(tally: &Tally<'_>) -> (Unit01, Unit01) {
    let d = if tally.nothing_came {
        Unit01::ZERO
    } else {
        tally.distance()
    };
    (d, tally.implausibility())
}

/// A task that is abandoned and waits for its wording.
#[derive(Clone, Debug)]
pub struct Closing {
    /// Complete but for better words.
    pub(super) result: FinalResult,
    pub(super) megrams: Vec<Megram>,
    pub(super) digest: Digest,
    pub(super) detail: String,
    pub(super) until: Timestamp,
}

impl Closing {
    /// Ends with the words that came, or with those that code made.
    pub(super) fn end(mut self: Box<Self>, words: Option<&PartialResult>) -> Next {
        if let Some(words) = words {
            self.result.summary = words::abandoned_in_words(self.result.cause, &self.detail, words, &self.digest);
        }
        end(self.megrams, self.result)
    }

    /// Stopped while waiting: the person's word is the last one, and nothing is remembered.
    pub(super) fn abort(mut self: Box<Self>, reason: &str) -> Next {
        self.result.cause = Cause::Aborted;
        self.result.summary = words::abandoned(Cause::Aborted, reason, &self.digest);
        end(Vec::new(), self.result)
    }
}

/// Whether the planner is asked for words: only where the controller itself gave up and a model may still be used.
pub(super) const fn may_be_worded(cause: Cause) -> bool {
    match cause {
        Cause::Resources | Cause::Divergence | Cause::ReplansExhausted | Cause::Infeasible => true,
        Cause::Budget
        | Cause::Refused
        | Cause::NoModel
        | Cause::PlanningFailed
        | Cause::Aborted
        | Cause::Met
        | Cause::WithinThreshold
        | Cause::Answered => false,
    }
}

/// Memories first: the FinalResult is the last word on a task.
pub(super) fn end(megrams: Vec<Megram>, result: FinalResult) -> Next {
    let mut effects: Vec<Effect> = megrams.into_iter().map(Effect::Remember).collect();
    effects.push(Effect::Finish(Box::new(result)));
    Next { state: None, effects }
}

/// Writes this task's memories.
pub(super) const fn writer<'a>(at: Frame<'a>, intent: &'a str) -> Writer<'a> {
    Writer {
        task_id: at.task_id,
        intent,
        now: at.now,
    }
}

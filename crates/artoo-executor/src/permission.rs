//! The way of an assessed call through the gate, and through the person where it must (design §9).
//!
//! Owns questions, answers and refusals. Must not decide: that is the gate's.

use artoo_protocol::message::{Caution, ConfirmationAnswer, ConfirmationRequest, Consent, FailureClass, ToolCall};
use artoo_protocol::model::ModelToolCall;
use artoo_protocol::tool::{Assessment, EffectClass, Permit};
use artoo_protocol::units::Millis;

use crate::attempt::{Stage, Work};
use crate::executor::{ExecutorEffect, Task};
use crate::gate::{self, Decision};
use crate::tool_loop::Run;

impl Run<'_> {
    /// Lets an assessed call run, asks for it, or refuses it.
    pub fn pass_gate(&mut self, task: &mut Task, work: &mut Work, at: usize) {
        let Some((asked, assessment)) = work.pending(at).and_then(|pending| match &pending.stage {
            Stage::Assessed { assessment } => Some((pending.asked.clone(), assessment.clone())),
            _ => None,
        }) else {
            return;
        };
        let record = self.not_run(&asked, assessment.effect, "", FailureClass::Logical);
        let decision = gate::decide(
            &asked.name,
            &record.target(),
            &assessment,
            &work.subtask.must_not,
            &self.settings.places,
            &self.settings.grants,
            &task.answers,
        );
        let caution = work.subtask.caution.as_deref();
        let grants = &self.settings.grants;
        let places = &self.settings.places;
        let decision = gate::with_care(
            decision,
            &asked.name,
            &assessment,
            caution,
            places,
            grants,
            &task.answers,
        );
        match decision {
            Decision::Run(permit) => self.run_tool(task, work, at, assessment, permit),
            Decision::Ask => self.ask_person(task, work, at, &asked, assessment),
            Decision::Refuse(why) if why == gate::REFUSED || why == gate::NOBODY => {
                work.refused = true;
                self.refuse(work, at, assessment.effect, &why, FailureClass::Environmental);
            }
            Decision::Refuse(why) => self.refuse(work, at, assessment.effect, &why, FailureClass::Logical),
        }
    }

    fn ask_person(
        &mut self,
        task: &mut Task,
        work: &mut Work,
        at: usize,
        asked: &ModelToolCall,
        assessment: Assessment,
    ) {
        let request_id = format!("{}-{}", work.subtask.subtask_id, task.take_call());
        self.effects.push(ExecutorEffect::Confirm(ConfirmationRequest {
            request_id: request_id.clone(),
            task_id: self.task_id.clone(),
            subtask_id: work.subtask.subtask_id.clone(),
            tool: asked.name.clone(),
            effect: assessment.effect,
            action: assessment.action.clone(),
            reason: reason(&assessment, work.subtask.caution.as_deref()),
            grant: gate::exact(&assessment).map(String::from),
        }));
        work.watch.pause(&request_id, self.now);
        if let Some(pending) = work.pending(at) {
            pending.stage = Stage::Confirming { request_id, assessment };
        }
    }

    /// The person answered.
    pub fn consent(&mut self, task: &mut Task, work: &mut Work, answer: &ConfirmationAnswer) {
        let Some(at) = work.position(|pending| pending.asks(&answer.request_id)) else {
            return;
        };
        let Some((tool, assessment)) = work.pending(at).and_then(|pending| match &pending.stage {
            Stage::Confirming { assessment, .. } => Some((pending.asked.name.clone(), assessment.clone())),
            _ => None,
        }) else {
            return;
        };
        work.watch.resume(&answer.request_id, self.now);
        let permit = Permit {
            effect: assessment.effect,
            confirmed: true,
            seen: assessment.fingerprint,
        };
        match answer.consent {
            Consent::Yes => self.run_tool(task, work, at, assessment, permit),
            Consent::Always => {
                task.answers.allow(&tool, &assessment);
                self.run_tool(task, work, at, assessment, permit);
            }
            Consent::No | Consent::Nobody => {
                let why = match answer.consent {
                    Consent::Nobody => gate::NOBODY,
                    Consent::Yes | Consent::Always | Consent::No => gate::REFUSED,
                };
                task.answers.refuse(&tool, &assessment, why);
                work.refused = true;
                self.refuse(work, at, assessment.effect, why, FailureClass::Environmental);
            }
        }
        self.advance(task, work);
    }

    fn run_tool(&mut self, task: &mut Task, work: &mut Work, at: usize, assessment: Assessment, permit: Permit) {
        let call = task.take_call();
        let Some(asked) = work.pending(at).map(|pending| pending.asked.clone()) else {
            return;
        };
        let invocation = self.invocation(task, work, &asked);
        if let Some(pending) = work.pending(at) {
            pending.stage = Stage::Running {
                call,
                assessment,
                started_at: self.now,
            };
        }
        self.effects.push(ExecutorEffect::RunTool {
            task_id: self.task_id.clone(),
            call,
            invocation,
            permit,
        });
    }

    /// Settles a call that may not run, and records the refusal.
    pub fn refuse(&mut self, work: &mut Work, at: usize, effect: EffectClass, why: &str, class: FailureClass) {
        let Some(asked) = work.pending(at).map(|pending| pending.asked.clone()) else {
            return;
        };
        let record = self.not_run(&asked, effect, why, class);
        work.record(at, record);
        work.settle(at, format!("not run: {why}"));
    }

    fn not_run(&self, asked: &ModelToolCall, effect: EffectClass, why: &str, class: FailureClass) -> ToolCall {
        ToolCall {
            tool: asked.name.clone(),
            input: asked.arguments.clone(),
            output: String::new(),
            truncated: false,
            lines: 0,
            exit: None,
            error: Some(why.to_owned()),
            failure_class: Some(class),
            started_at: self.now,
            elapsed_ms: Millis(0),
            interrupted: false,
            effect,
            programs: Vec::new(),
            touched: Vec::new(),
            not_run: true,
        }
    }
}

/// Why the person is asked: what the action would do, and what experience says where it would have been free.
fn reason(assessment: &Assessment, caution: Option<&Caution>) -> String {
    let experience = caution.filter(|_| gate::is_free(assessment.effect, assessment.reach));
    let said = experience
        .map(|caution| caution.reasons.join("; "))
        .filter(|said| !said.is_empty());
    said.map_or_else(
        || assessment.reason.clone(),
        |said| format!("{} (from experience: {said})", assessment.reason),
    )
}

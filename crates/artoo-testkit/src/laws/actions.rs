//! What must hold of every action: law 1, and what a directive forbids (design §9, §13).
//!
//! Owns what was assessed, asked, allowed and forbidden in one task so far.

use std::collections::{BTreeMap, BTreeSet};

use artoo_protocol::CallId;
use artoo_protocol::message::{ConfirmationAnswer, ConfirmationRequest, Consent, MustNot, PlanDirective};
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, Reach};

/// The actions of one task.
#[derive(Clone, Default)]
pub(super) struct Actions {
    blocked: Vec<String>,
    blocked_targets: Vec<String>,
    /// Calls that are being assessed, and what came of it by subtask, tool and input.
    assessing: BTreeMap<CallId, String>,
    assessed: BTreeMap<String, Assessment>,
    questions: BTreeMap<String, String>,
    /// How often an exact action may still run, and which may always.
    allowed: BTreeMap<String, u32>,
    always: BTreeSet<String>,
}

impl Actions {
    /// R7 forbids more. `offered` are the tools that exist.
    pub(super) fn directed(&mut self, directive: &PlanDirective, offered: &[String]) {
        add_new(&mut self.blocked, &directive.blocked_tools);
        add_new(&mut self.blocked_targets, &directive.blocked_targets);
        if offered.iter().all(|tool| self.blocked.contains(tool)) {
            // The planner may forget older findings rather than leave the executor without any tool.
            self.blocked.clone_from(&directive.blocked_tools);
        }
    }

    /// The person is asked.
    pub(super) fn asked(&mut self, request: &ConfirmationRequest) {
        let key = exact(&request.tool, &request.action);
        self.questions.insert(request.request_id.clone(), key);
    }

    /// The person answers.
    pub(super) fn decided(&mut self, answer: &ConfirmationAnswer) {
        match (self.questions.remove(&answer.request_id), answer.consent) {
            (Some(key), Consent::Yes) => *self.allowed.entry(key).or_default() += 1,
            (Some(key), Consent::Always) => {
                self.always.insert(key);
            }
            (_, Consent::No | Consent::Nobody) | (None, _) => {}
        }
    }

    /// A call is looked at.
    pub(super) fn assessing(&mut self, call: CallId, invocation: &Invocation) {
        self.assessing.insert(call, of(invocation));
    }

    /// What came of it.
    pub(super) fn assessed(&mut self, call: CallId, assessment: &Assessment) {
        if let Some(key) = self.assessing.remove(&call) {
            self.assessed.insert(key, assessment.clone());
        }
    }

    /// A call is made: every law that this breaks.
    pub(super) fn runs(&mut self, invocation: &Invocation, permit: Permit, must_not: Option<&MustNot>) -> Vec<String> {
        let Some(assessment) = self.assessed.get(&of(invocation)).cloned() else {
            return vec![format!("`{}` ran without having been assessed", invocation.tool)];
        };
        let mut wrongs = Vec::new();
        let action = &assessment.action;
        if assessment.invalid.is_some() || permit.effect != assessment.effect {
            wrongs.push(format!("`{action}` ran with a permit that is not its own"));
        }
        if !is_free(assessment.effect, assessment.reach) && !self.consented(invocation, &assessment) {
            wrongs.push(format!("`{action}` ran without consent"));
        }
        let names = names(&invocation.tool, &assessment.programs);
        if let Some(name) = self.blocked.iter().find(|blocked| names.contains(blocked)) {
            wrongs.push(format!("`{name}` ran after it was blocked"));
        }
        if let Some(target) = assessment
            .targets
            .iter()
            .find(|target| self.blocked_targets.contains(target))
        {
            wrongs.push(format!("`{target}` was used after it was blocked"));
        }
        if must_not.is_some_and(|must_not| must_not.tools.iter().any(|tool| names.contains(tool))) {
            wrongs.push(format!("`{action}` ran though its subtask must not use the tool"));
        }
        wrongs
    }

    fn consented(&mut self, invocation: &Invocation, assessment: &Assessment) -> bool {
        let key = exact(&invocation.tool, &assessment.action);
        if self.always.contains(&key) {
            return true;
        }
        match self.allowed.get_mut(&key) {
            Some(times) if *times > 0 => {
                *times -= 1;
                true
            }
            Some(_) | None => false,
        }
    }
}

/// What needs nobody's permission (design §9).
const fn is_free(effect: EffectClass, reach: Reach) -> bool {
    match (effect, reach) {
        (EffectClass::Read, _)
        | (EffectClass::Fetch, Reach::Nowhere)
        | (EffectClass::Create, Reach::Workspace | Reach::Scope | Reach::OwnFiles)
        | (EffectClass::Modify, Reach::Scope | Reach::OwnFiles) => true,
        (
            EffectClass::Fetch
            | EffectClass::Create
            | EffectClass::Modify
            | EffectClass::Destroy
            | EffectClass::External,
            _,
        ) => false,
    }
}

fn names(tool: &str, programs: &[String]) -> Vec<String> {
    let qualified = programs.iter().map(|program| format!("{tool}:{program}"));
    std::iter::once(tool.to_owned()).chain(qualified).collect()
}

fn of(invocation: &Invocation) -> String {
    format!("{} {} {}", invocation.subtask_id, invocation.tool, invocation.input)
}

fn exact(tool: &str, action: &str) -> String {
    format!("{tool} {action}")
}

fn add_new(list: &mut Vec<String>, more: &[String]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

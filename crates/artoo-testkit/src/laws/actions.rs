//! What must hold of every action: law 1, what a directive forbids, and that nothing is done more often than it was asked for (design
//! §9, §13, §17).
//!
//! Owns what was assessed, shown, allowed, forbidden and wanted in one task so far. An action is what a person was shown of it on
//! the state of the world in which it was shown; whatever else was done in its place had no yes.

use std::collections::{BTreeMap, BTreeSet};

use artoo_protocol::message::{ConfirmationAnswer, ConfirmationRequest, Consent, MustNot, PlanDirective};
use artoo_protocol::model::{ModelContent, ModelReply};
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, Reach, ToolOutput};
use artoo_protocol::{CallId, SubTaskId};

/// The actions of one task.
#[derive(Clone, Default)]
pub(super) struct Actions {
    blocked: Vec<String>,
    blocked_targets: Vec<String>,
    /// Calls that are being assessed, and what came of it by subtask, tool and input.
    assessing: BTreeMap<CallId, Invocation>,
    assessed: BTreeMap<String, Assessment>,
    /// What a subtask would do, by the words in which it is shown: the exact action.
    shown: BTreeMap<String, String>,
    questions: BTreeMap<String, String>,
    /// How often an exact action may still run, and which may always.
    allowed: BTreeMap<String, u32>,
    always: BTreeSet<String>,
    /// How often the model asked for a call that was not made yet, by tool and input.
    wanted: BTreeMap<String, u32>,
    /// Calls that are being made and leave something behind.
    running: BTreeMap<CallId, String>,
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

    /// The person is asked: a law is broken where they are shown what nobody has looked at.
    pub(super) fn asked(&mut self, request: &ConfirmationRequest) -> Option<String> {
        match self
            .shown
            .get(&words(&request.subtask_id, &request.tool, &request.action))
        {
            Some(exact) => {
                self.questions.insert(request.request_id.clone(), exact.clone());
                None
            }
            None => Some(format!(
                "the person was shown `{}`, which is not what would be done",
                request.action
            )),
        }
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

    /// The model answers the executor.
    pub(super) fn replied(&mut self, reply: &ModelReply) {
        if let ModelContent::ToolCalls { calls, .. } = &reply.content {
            for call in calls {
                *self
                    .wanted
                    .entry(format!("{} {}", call.name, call.arguments))
                    .or_default() += 1;
            }
        }
    }

    /// A call is looked at.
    pub(super) fn assessing(&mut self, call: CallId, invocation: &Invocation) {
        self.assessing.insert(call, invocation.clone());
    }

    /// What came of it.
    pub(super) fn assessed(&mut self, call: CallId, assessment: &Assessment) {
        if let Some(invocation) = self.assessing.remove(&call) {
            self.shown.insert(
                words(&invocation.subtask_id, &invocation.tool, &assessment.action),
                exact(&invocation.tool, assessment),
            );
            self.assessed.insert(of(&invocation), assessment.clone());
        }
    }

    /// A call has been made. What found the world changed did nothing, and may be tried again.
    pub(super) fn ran(&mut self, call: CallId, output: &ToolOutput) {
        if let Some(deed) = self.running.remove(&call)
            && output.stale
        {
            *self.wanted.entry(deed).or_default() += 1;
        }
    }

    /// A call is made: every law that this breaks.
    pub(super) fn runs(
        &mut self,
        call: CallId,
        invocation: &Invocation,
        permit: Permit,
        must_not: Option<&MustNot>,
    ) -> Vec<String> {
        let Some(assessment) = self.assessed.get(&of(invocation)).cloned() else {
            return vec![format!("`{}` ran without having been assessed", invocation.tool)];
        };
        let mut wrongs = Vec::new();
        let action = &assessment.action;
        let its_own = permit.effect == assessment.effect && permit.seen == assessment.fingerprint;
        if assessment.invalid.is_some() || !its_own {
            wrongs.push(format!("`{action}` ran with a permit that is not its own"));
        }
        if !is_free(assessment.effect, assessment.reach) && !self.consented(invocation, &assessment) {
            wrongs.push(format!("`{action}` ran without consent"));
        }
        if permit.effect >= EffectClass::Create && !self.is_wanted(call, invocation) {
            wrongs.push(format!("`{action}` ran more often than the model asked for it"));
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

    /// Whether the model asked for it once more than it was done.
    fn is_wanted(&mut self, call: CallId, invocation: &Invocation) -> bool {
        let deed = format!("{} {}", invocation.tool, invocation.input);
        let wanted = self.wanted.get_mut(&deed).is_some_and(|times| {
            let left = *times > 0;
            *times = times.saturating_sub(1);
            left
        });
        self.running.insert(call, deed);
        wanted
    }

    fn consented(&mut self, invocation: &Invocation, assessment: &Assessment) -> bool {
        let key = exact(&invocation.tool, assessment);
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

/// What a person is asked about.
fn words(subtask: &SubTaskId, tool: &str, action: &str) -> String {
    format!("{subtask} {tool} {action}")
}

/// An action with the state of the world that it is about.
fn exact(tool: &str, assessment: &Assessment) -> String {
    format!("{tool} {} {}", assessment.fingerprint, assessment.action)
}

fn add_new(list: &mut Vec<String>, more: &[String]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

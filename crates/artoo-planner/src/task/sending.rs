//! From an accepted plan to its manifest and its first subtasks (design §6).
//!
//! Owns what a subtask carries with it. Which of them may start is `dispatch`'s.

use artoo_protocol::ids::SubTaskId;
use artoo_protocol::message::{Caution, Criterion, DispatchManifest, PlannedSubTask, SubTask};
use artoo_protocol::units::Timestamp;

use super::{Draft, State, Task};
use crate::actor::Effect;
use crate::carry::{Carrying, Matched};
use crate::desk::Desk;
use crate::dispatch::Dispatch;
use crate::parse::{Plan, Step};
use crate::validate::Work;

/// A plan that is carried out.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) dispatch: Dispatch,
    steps: Vec<(SubTaskId, Step)>,
    /// Work of earlier rounds that counts in it.
    carried: Vec<Matched>,
    /// What it states of the task as a whole, with what stays in force.
    pub(super) task_criteria: Vec<Criterion>,
    pub(super) work: Work,
}

impl Current {
    /// Everything that matched so far, earlier rounds included.
    pub(super) fn matched(self, round: u32) -> Vec<Matched> {
        let mut matched = self.carried;
        for (subtask_id, step) in self.steps {
            if let Some(handed_on) = self.dispatch.output_of(&subtask_id).cloned() {
                matched.push(Matched {
                    subtask_id,
                    round,
                    step,
                    handed_on,
                });
            }
        }
        matched
    }
}

impl Task {
    /// Announces a plan that was accepted, and starts what may start.
    pub(super) fn dispatch(
        &mut self,
        desk: &Desk,
        now: Timestamp,
        draft: &Draft,
        plan: Plan,
        carrying: Carrying,
        work: Work,
    ) -> Vec<Effect> {
        self.round = self.round.saturating_add(1);
        let task_criteria = self.denied.complete(&plan);
        let steps: Vec<(SubTaskId, Step)> = plan.steps.into_iter().map(|step| (self.mint(now), step)).collect();
        let subtasks: Vec<SubTask> = steps
            .iter()
            .map(|(id, step)| self.subtask(now, id, step, draft))
            .collect();
        let manifest = DispatchManifest {
            task_id: self.spec.task_id.clone(),
            slug: self.spec.slug.clone(),
            intent: self.spec.intent.clone(),
            round: self.round,
            subtask_ids: steps.iter().map(|(id, _)| id.clone()).collect(),
            subtasks: subtasks.iter().map(planned_subtask).collect(),
            carried: carrying.named,
            task_criteria: task_criteria.clone(),
            started_at: self.started_at,
            dispatched_at: now,
            rules_used: draft.memory.rules_used.clone(),
        };
        let given = carrying.work.iter().map(|work| work.handed_on.clone()).collect();
        let folder = desk.outputs_of(&self.spec);
        let mut dispatch = Dispatch::new(now, subtasks, desk.config.limits, given, folder);
        let first = std::iter::from_fn(|| dispatch.send(now)).map(Effect::Dispatch);
        let effects = std::iter::once(Effect::Announce(manifest)).chain(first).collect();
        self.state = State::Dispatching(Box::new(Current {
            dispatch,
            steps,
            carried: carrying.work,
            task_criteria,
            work,
        }));
        effects
    }

    fn mint(&mut self, now: Timestamp) -> SubTaskId {
        let subtask_id = SubTaskId::derive(now, &self.spec.task_id, self.minted);
        self.minted = self.minted.saturating_add(1);
        subtask_id
    }

    fn subtask(&self, now: Timestamp, id: &SubTaskId, step: &Step, draft: &Draft) -> SubTask {
        let caution = &draft.memory.caution;
        SubTask {
            subtask_id: id.clone(),
            parent_task_id: self.spec.task_id.clone(),
            intent: step.intent.clone(),
            context: step.context.clone(),
            success_criteria: step.criteria.clone(),
            sequence: step.sequence,
            tools: step.tools.clone(),
            // A model may write any date; one that has passed is no deadline.
            deadline: step
                .deadline
                .filter(|when| *when > now)
                .or(self.spec.constraints.deadline),
            must_not: draft.must_not.clone(),
            caution: (!Caution::is_empty(caution)).then(|| Box::new(caution.clone())),
            scope: if step.scope.is_empty() {
                self.allowed.stated().to_vec()
            } else {
                step.scope.clone()
            },
        }
    }
}

fn planned_subtask(subtask: &SubTask) -> PlannedSubTask {
    PlannedSubTask {
        subtask_id: subtask.subtask_id.clone(),
        sequence: subtask.sequence,
        intent: subtask.intent.clone(),
        success_criteria: subtask.success_criteria.clone(),
        deadline: subtask.deadline,
    }
}

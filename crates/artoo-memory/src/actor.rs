//! R5 as a pure state machine: memories in, questions in, answers out (design §15).
//!
//! Owns: which question an answer belongs to, and which rules a task was given, so that a rule by which it failed is spoken
//! against at once. Must not know: the store, prompts, models, tools.

use crate::dissonance::Followed;
use artoo_protocol::message::{Level, Megram, MemoryQuery, MemoryReply};
use artoo_protocol::{Actor, Answer, CallId, Command, Envelope, Event, Message, Millis, Role, TaskId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// How long a planner waits for the store before it plans without memory.
pub const PATIENCE: Millis = Millis(10_000);

/// R5: shared memory.
#[derive(Debug, Default)]
pub struct MemoryActor {
    /// Questions put to the store and not yet answered. The planner counts its questions per task, and a call takes the
    /// number of its question: so the journal of a task replays without those of the tasks beside it.
    asked: BTreeMap<(TaskId, CallId), Timestamp>,
    /// The rules that running tasks were given.
    followed: BTreeMap<TaskId, Followed>,
}

/// What R5 may do: store, read, answer. It has no way to call a model or a tool.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Effect {
    /// Write a memory.
    Store(Box<Megram>),
    /// Read what a plan needs.
    Recall {
        /// Whose plan.
        task_id: TaskId,
        /// Comes back with the answer.
        call: CallId,
        /// The question.
        query: MemoryQuery,
    },
    /// Answer the planner.
    Reply(Box<MemoryReply>),
}

impl From<Effect> for Command {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Store(megram) => Self::Store { megram: *megram },
            Effect::Recall { task_id, call, query } => Self::Recall { task_id, call, query },
            Effect::Reply(reply) => {
                let task_id = reply.task_id.clone();
                Self::publish(&task_id, *reply)
            }
        }
    }
}

impl MemoryActor {
    /// With nothing asked.
    pub fn new() -> Self {
        Self::default()
    }

    fn hear(&mut self, now: Timestamp, envelope: Envelope) -> Vec<Effect> {
        match (envelope.from, envelope.payload) {
            // The controller is the only role that writes; the user may, being no role. The laws are not stored.
            (Role::R7 | Role::User, Message::Megram(megram)) if megram.level != Level::T => {
                vec![Effect::Store(Box::new(megram))]
            }
            (Role::R2, Message::MemoryQuery(query)) => {
                let (task_id, call) = (query.task_id.clone(), CallId(query.query));
                self.asked.insert((task_id.clone(), call), now.plus(PATIENCE));
                self.followed.entry(task_id.clone()).or_default().asks(&query.space);
                vec![Effect::Recall { task_id, call, query }]
            }
            (Role::R2, Message::DispatchManifest(manifest)) => {
                if let Some(followed) = self.followed.get_mut(&manifest.task_id) {
                    followed.uses(manifest.rules_used);
                }
                Vec::new()
            }
            (Role::Runtime, Message::TaskResumed(resumed)) => {
                // The time that a task lay still was not the store's.
                for ((task_id, _), until) in &mut self.asked {
                    if task_id.suffix() == resumed.task_id.suffix() {
                        *until = until.plus(resumed.away_ms);
                    }
                }
                Vec::new()
            }
            (Role::R7, Message::FinalResult(ending)) => {
                // A task may end before R7 has heard its final name; the digits of the run are the same.
                let of_run = |task_id: &TaskId| task_id.suffix() == ending.task_id.suffix();
                self.asked.retain(|(task_id, _), _| !of_run(task_id));
                let name = self.followed.keys().find(|task_id| of_run(task_id)).cloned();
                let followed = name.and_then(|name| self.followed.remove(&name)).unwrap_or_default();
                let against = followed.contradicted_by(&ending, now);
                against
                    .into_iter()
                    .map(|megram| Effect::Store(Box::new(megram)))
                    .collect()
            }
            // Whatever else is heard was not for the memory.
            _ => Vec::new(),
        }
    }

    fn recalled(&mut self, task_id: TaskId, call: CallId, mut reply: MemoryReply) -> Vec<Effect> {
        let Some(((task_id, call), _)) = self.asked.remove_entry(&(task_id, call)) else {
            return Vec::new();
        };
        if let Some(followed) = self.followed.get_mut(&task_id) {
            followed.given(&reply.sops);
        }
        // The answer goes to the question asked, whatever the store put into it.
        (reply.task_id, reply.query) = (task_id, call.0);
        vec![Effect::Reply(Box::new(reply))]
    }

    fn give_up(&mut self, now: Timestamp) -> Vec<Effect> {
        let late: Vec<(TaskId, CallId)> = self
            .asked
            .iter()
            .filter(|(_, until)| **until <= now)
            .map(|(question, _)| question.clone())
            .collect();
        self.asked.retain(|_, until| *until > now);
        late.into_iter()
            .map(|(task_id, call)| {
                let mut reply = MemoryReply::empty(task_id, call.0);
                reply.unavailable = Some(format!("memory did not answer within {PATIENCE}"));
                Effect::Reply(Box::new(reply))
            })
            .collect()
    }
}

impl Actor for MemoryActor {
    type Effect = Effect;
    const ROLE: Role = Role::R5;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Message { envelope } => self.hear(now, *envelope),
            Event::Answer { task_id, call, answer } => match answer {
                Answer::Recalled(reply) => self.recalled(task_id, call, reply),
                Answer::Model(_) | Answer::Assessed(_) | Answer::Ran(_) | Answer::Checked(_) => Vec::new(),
            },
            Event::Wake => self.give_up(now),
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.asked.values().min().copied()
    }

    fn open_tasks(&self) -> usize {
        let asking = self.asked.keys().map(|(task_id, _)| task_id);
        asking.chain(self.followed.keys()).collect::<BTreeSet<_>>().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, megram};
    use artoo_protocol::message::{Cause, DispatchManifest, Ending, FinalResult, Loss, PreviousDirective, SopRecord};
    use artoo_protocol::{EnvelopeId, Finite, MegramId, Slug};
    use serde_json::Value;

    fn task() -> TaskId {
        TaskId::new("count_files_00000001")
    }

    fn heard(from: Role, payload: impl Into<Message>) -> Event {
        let envelope = Envelope {
            id: EnvelopeId::new("1"),
            seq: 1,
            task_id: Some(task()),
            timestamp: at(),
            from,
            to: Role::R5,
            payload: payload.into(),
        };
        Event::from(envelope)
    }

    fn ending() -> FinalResult {
        FinalResult {
            honesty: Box::default(),
            task_id: task(),
            slug: Slug::repair("count_files"),
            intent: "Count all files".to_owned(),
            summary: String::new(),
            output: Value::Null,
            loss: Loss::default(),
            grad_l: Finite::default(),
            replans: 3,
            prev_directive: PreviousDirective::Init,
            directive: Ending::Abandon,
            cause: Cause::ReplansExhausted,
            unmet: Vec::new(),
            unverified: Vec::new(),
        }
    }

    fn manifest(rules_used: Vec<MegramId>) -> DispatchManifest {
        DispatchManifest {
            task_id: task(),
            slug: Slug::repair("count_files"),
            intent: "Count all files".to_owned(),
            round: 1,
            subtask_ids: Vec::new(),
            subtasks: Vec::new(),
            task_criteria: Vec::new(),
            started_at: at(),
            dispatched_at: at(),
            rules_used,
            carried: Vec::new(),
        }
    }

    /// A rule of another kind of tasks is spoken against by the task that followed it and failed, in the step of its ending.
    #[test]
    fn a_task_that_ends_under_its_first_name_leaves_nothing_behind() {
        let mut actor = MemoryActor::new();
        let _ = actor.step(at(), heard(Role::R2, question(1)));
        assert_eq!(actor.open_tasks(), 1);
        let ended = FinalResult {
            task_id: TaskId::new("input_00000001"),
            ..ending()
        };
        let _ = actor.step(at(), heard(Role::R7, ended));
        assert_eq!(actor.open_tasks(), 0);
    }

    #[test]
    fn a_rule_that_led_a_task_to_fail_is_spoken_against_at_once() {
        let lent = SopRecord {
            id: MegramId::new("rule"),
            space: "intent:find_every_file".to_owned(),
            entity: "env:local".to_owned(),
            content: "Use find.".to_owned(),
            sigma: artoo_protocol::Valence::new(1.0).unwrap(),
        };
        let mut actor = MemoryActor::new();
        let _ = actor.step(at(), heard(Role::R2, question(1)));
        let mut reply = MemoryReply::empty(task(), 1);
        reply.sops = vec![lent];
        let answer = Event::Answer {
            task_id: task(),
            call: CallId(1),
            answer: Answer::Recalled(reply),
        };
        let _ = actor.step(at(), answer);
        assert_eq!(
            actor.step(at(), heard(Role::R2, manifest(vec![MegramId::new("rule")]))),
            []
        );
        let effects = actor.step(at(), heard(Role::R7, ending()));
        let [Effect::Store(feedback)] = effects.as_slice() else {
            panic!("{effects:?}")
        };
        assert_eq!(
            (feedback.space.as_str(), feedback.sigma.get()),
            ("intent:find_every_file", -1.0)
        );
    }

    fn question(query: u32) -> MemoryQuery {
        MemoryQuery {
            task_id: task(),
            query,
            space: "intent:count_all_files".to_owned(),
            entity: "env:local".to_owned(),
            intent: "count all files".to_owned(),
            tools: Vec::new(),
        }
    }

    fn recalled(call: u32, query: u32) -> Event {
        let reply = MemoryReply::empty(task(), query);
        Event::Answer {
            task_id: task(),
            call: CallId(call),
            answer: Answer::Recalled(reply),
        }
    }

    #[test]
    fn only_the_controller_and_the_user_write_and_never_laws() {
        for role in Role::ALL {
            let effects = MemoryActor::new().step(at(), heard(role, megram("1", "s", "e", 0.5, 1.0)));
            assert_eq!(!effects.is_empty(), matches!(role, Role::R7 | Role::User), "{role}");
        }
        let mut law = megram("1", "s", "e", 0.5, 1.0);
        law.level = Level::T;
        assert_eq!(MemoryActor::new().step(at(), heard(Role::R7, law)), []);
    }

    #[test]
    fn every_question_is_answered_once_and_leaves_nothing_behind() {
        let mut actor = MemoryActor::new();
        let asked = actor.step(at(), heard(Role::R2, question(4)));
        assert!(matches!(asked.as_slice(), [Effect::Recall { call: CallId(4), .. }]));
        assert_eq!(actor.step(at(), heard(Role::R3, question(5))), []);
        assert_eq!((actor.open_tasks(), actor.deadline()), (1, Some(at().plus(PATIENCE))));
        assert_eq!(actor.step(at(), recalled(9, 4)), [], "a foreign answer");
        let replies = actor.step(at(), recalled(4, 77));
        assert_eq!(replies, [Effect::Reply(Box::new(MemoryReply::empty(task(), 4)))]);
        assert_eq!(actor.step(at(), recalled(4, 4)), [], "a duplicate answer");
        assert_eq!((actor.open_tasks(), actor.deadline()), (1, None));
        assert_eq!(actor.step(at(), heard(Role::R7, ending())), []);
        assert_eq!(actor.open_tasks(), 0);
        let [reply] = replies.as_slice() else { panic!() };
        let Command::Publish {
            task_id: Some(to),
            message,
        } = Command::from(reply.clone())
        else {
            panic!()
        };
        assert_eq!((to, message.kind()), (task(), artoo_protocol::MessageKind::MemoryReply));
    }

    #[test]
    fn a_store_that_does_not_answer_holds_up_no_plan() {
        let mut actor = MemoryActor::new();
        let _ = actor.step(at(), heard(Role::R2, question(1)));
        let _ = actor.step(at().plus(Millis(1)), heard(Role::R2, question(2)));
        assert_eq!(actor.step(at().plus(Millis(9_999)), Event::Wake), []);
        let late = actor.step(at().plus(PATIENCE), Event::Wake);
        let [Effect::Reply(reply)] = late.as_slice() else {
            panic!("{late:?}")
        };
        assert!(reply.query == 1 && reply.unavailable.is_some());
        assert_eq!(actor.step(at().plus(PATIENCE), recalled(1, 1)), [], "a late answer");
        assert_eq!(actor.step(at().plus(PATIENCE), recalled(2, 2)).len(), 1);
        let _ = actor.step(at(), heard(Role::R2, question(3)));
        let resumed = artoo_protocol::message::TaskResumed {
            task_id: task(),
            away_ms: Millis(3_600_000),
            person_present: None,
        };
        assert_eq!(actor.step(at(), heard(Role::Runtime, resumed)), []);
        let back = at().plus(Millis(3_600_000));
        assert_eq!(actor.step(back, Event::Wake), [], "the time away was not the store's");
        assert_eq!(actor.deadline(), Some(back.plus(PATIENCE)));
        assert_eq!(actor.step(at(), heard(Role::R7, ending())), []);
        assert_eq!(
            (actor.open_tasks(), actor.deadline()),
            (0, None),
            "nobody waits for an answer any more"
        );
    }
}

//! What one task looks like on the page: a fold over the records of its journal (design §17, §21).
//!
//! Owns the form in which a task is told to the page. Pure: the same records give the same answer. Everything in it is text of models, tools
//! and files: it is cut to a length here, and shown as text there.

use std::sync::Arc;

use artoo_bus::{Price, TapItem};
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::{Cause, Directive, Ending, FinalResult, Loss, PlanDirective, Urgency};
use artoo_protocol::text::{one_line, printable};
use artoo_protocol::{Act, Answer, CallId, Deed, Envelope, Finite, Message, Role, TaskId, Timestamp};
use serde_json::{Value, json};

use crate::live::view::{State, Step, View};

/// Longest text of one field, in characters.
const TEXT: usize = 400;
/// Longest text of a question, in characters.
const QUESTION: usize = 8_000;
/// Most steps, criteria of a step and rounds that are told.
const STEPS: usize = 60;
const CRITERIA: usize = 20;
const ROUNDS: usize = 40;

/// A text on one line, cut, without anything that turns it around.
pub fn shown(text: &str) -> String {
    printable(&one_line(text, TEXT))
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A living process works on it.
    Running,
    /// It has its ending.
    Finished,
    /// No process works on it.
    Interrupted,
    /// Its journal can be read in part, or not at all.
    Damaged,
    /// Its journal has not been read to the end yet.
    Reading,
}

impl Standing {
    /// The word of `artoo tasks`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Damaged => "damaged",
            Self::Reading => "reading",
        }
    }
}

/// Everything that is known of one task.
pub struct Watch {
    price: Price,
    id: TaskId,
    input: String,
    intent: String,
    view: View,
    rounds: Vec<Signals>,
    replans: u32,
    asked: Vec<Asked>,
    end: Option<End>,
    span: Option<(Timestamp, Timestamp)>,
}

/// How the controller saw one round.
struct Signals {
    loss: Loss,
    grad_l: Finite,
    directive: Directive,
    urgency: Urgency,
    criterion: String,
    rationale: String,
}

/// A question that was not answered yet.
struct Asked {
    key: Key,
    text: String,
}

#[derive(PartialEq, Eq)]
enum Key {
    Confirmation(String),
    Clarification(u32),
}

struct End {
    at: Timestamp,
    directive: Ending,
    cause: Cause,
    summary: String,
    loss: Loss,
    grad_l: Finite,
}

impl Watch {
    /// Of a journal whose file has this name.
    pub fn new(id: TaskId, price: Price) -> Self {
        Self {
            price,
            id,
            input: String::new(),
            intent: String::new(),
            view: View::default(),
            rounds: Vec::new(),
            replans: 0,
            asked: Vec::new(),
            end: None,
            span: None,
        }
    }

    /// The name of the run.
    pub const fn id(&self) -> &TaskId {
        &self.id
    }

    /// Whether it has its ending.
    pub const fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// When the last record was written.
    pub fn last_at(&self) -> Option<Timestamp> {
        self.span.map(|(_, last)| last)
    }

    /// When the first record was written.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.span.map(|(first, _)| first)
    }

    /// Takes note of what happened.
    pub fn hear(&mut self, record: Record) {
        let Record { at, entry, .. } = record;
        self.span = Some((self.span.map_or(at, |(first, _)| first), at));
        match entry {
            Entry::Published { envelope } => {
                self.message(&envelope, at);
                self.view.hear(&TapItem::Envelope(Arc::new(envelope)));
                if self.end.is_some() {
                    // Nothing of the plan is told any more.
                    self.view.turn_over();
                }
            }
            Entry::Commanded { role, command } => {
                if let Some(act) = Act::of(&command) {
                    self.deed(role, at, act);
                }
            }
            Entry::Answered { role, call, answer } => self.answer(role, at, call, &answer),
            Entry::Opened { .. } | Entry::Stepped { .. } | Entry::Closed { .. } => {}
        }
    }

    fn answer(&mut self, role: Role, at: Timestamp, call: CallId, answer: &Answer) {
        let cost = answer.spent().map_or(0.0, |(model, usage)| (self.price)(model, usage));
        if let Some(act) = Act::of_answer(call, answer, cost) {
            self.deed(role, at, act);
        }
    }

    fn deed(&mut self, role: Role, at: Timestamp, act: Act) {
        let task_id = Some(self.id.clone());
        self.view
            .hear(&TapItem::Deed(Arc::new(Deed { role, task_id, at, act })));
    }

    fn message(&mut self, envelope: &Envelope, at: Timestamp) {
        match &envelope.payload {
            Message::UserInput(input) => self.input = shown(&input.text),
            Message::TaskSpec(spec) => self.intent = shown(&spec.intent),
            Message::DirectAnswer(answer) => self.intent = shown(&answer.intent),
            Message::PlanDirective(directive) => self.round(directive),
            Message::ConfirmationRequest(request) => self.asked.push(Asked {
                key: Key::Confirmation(request.request_id.clone()),
                text: long(&format!("{}\n{}", request.action, request.reason)),
            }),
            Message::ClarificationRequest(request) => self.asked.push(Asked {
                key: Key::Clarification(request.round),
                text: long(&request.questions.join("\n")),
            }),
            Message::ConfirmationAnswer(answer) => self.answered(&Key::Confirmation(answer.request_id.clone())),
            Message::ClarificationAnswer(answer) => self.answered(&Key::Clarification(answer.round)),
            Message::FinalResult(result) => self.ended(result, at),
            _ => {}
        }
    }

    fn answered(&mut self, key: &Key) {
        self.asked.retain(|asked| asked.key != *key);
    }

    fn round(&mut self, directive: &PlanDirective) {
        self.replans += 1;
        if self.rounds.len() == ROUNDS {
            self.rounds.remove(0);
        }
        self.rounds.push(Signals {
            loss: directive.loss,
            grad_l: directive.grad_l,
            directive: directive.directive,
            urgency: directive.urgency,
            criterion: shown(&directive.failed_criterion),
            rationale: shown(&directive.rationale),
        });
    }

    fn ended(&mut self, result: &FinalResult, at: Timestamp) {
        self.asked.clear();
        self.end = Some(End {
            at,
            directive: result.directive,
            cause: result.cause,
            summary: shown(&result.summary),
            loss: result.loss,
            grad_l: result.grad_l,
        });
    }

    /// The task as a row of a list.
    pub fn row(&self, standing: Standing, damage: Option<&str>) -> Value {
        let end = self.end.as_ref();
        let until = end.map(|end| end.at).or_else(|| self.last_at());
        json!({
            "task": self.id, "input": self.input, "intent": self.intent, "state": standing.name(), "damage": damage.map(shown),
            "directive": end.map(|end| end.directive), "cause": end.map(|end| end.cause), "summary": end.map(|end| &end.summary),
            "loss": end.map(|end| end.loss), "grad_l": end.map(|end| end.grad_l),
            "started_at": self.started_at(), "last_at": self.last_at(), "elapsed_ms": until.map(|at| self.view.elapsed(at)),
            "replans": self.replans, "calls": self.view.calls, "tokens": self.view.tokens, "cost": self.view.cost,
        })
    }

    /// What is to be seen of it while it runs, beside its row.
    ///
    /// Its clock is told without the time of day, so that the answer is the same as long as nothing happens: either the moment from which the
    /// time is counted, or how long it had run when it began to wait for a person.
    pub fn live(&self) -> Value {
        let steps: Vec<Value> = self.view.steps.iter().take(STEPS).map(step).collect();
        let first = self.replans as usize - self.rounds.len().min(self.replans as usize);
        let rounds = (first + 1..).zip(&self.rounds);
        let rounds: Vec<Value> = rounds
            .map(|(number, round)| {
                json!({"round": number, "loss": round.loss, "grad_l": round.grad_l, "directive": round.directive, "urgency": round.urgency,
                    "criterion": round.criterion, "rationale": round.rationale})
            })
            .collect();
        let mut asking: Vec<Role> = self.view.asking.iter().map(|(role, _)| *role).collect();
        asking.dedup();
        let clock = self.last_at().map(|last| {
            let elapsed = self.view.elapsed(last);
            if self.asked.is_empty() {
                json!({"since": Timestamp::from_millis(last.as_millis() - i64::try_from(elapsed.0).unwrap_or(0))})
            } else {
                json!({ "stands_at_ms": elapsed })
            }
        });
        json!({
            "round": self.view.round, "steps": steps, "left_out": self.view.steps.len().saturating_sub(STEPS), "rounds": rounds,
            "asking": asking, "clock": clock,
        })
    }

    /// What it waits for, in words.
    pub fn questions(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().map(|asked| asked.text.as_str())
    }
}

/// A text of several lines.
fn long(text: &str) -> String {
    printable(&artoo_protocol::text::head_tail(text, QUESTION))
}

fn step(step: &Step) -> Value {
    let criteria: Vec<Value> = step
        .criteria
        .iter()
        .take(CRITERIA)
        .map(|(text, verdict)| json!({"text": shown(text), "verdict": verdict}))
        .collect();
    json!({
        "group": step.sequence, "intent": shown(&step.intent), "state": state(step.state), "attempt": step.attempt,
        "criteria": criteria, "left_out": step.criteria.len().saturating_sub(CRITERIA), "trouble": step.trouble.as_deref().map(shown),
    })
}

const fn state(state: State) -> &'static str {
    match state {
        State::Failed => "failed",
        State::Running => "running",
        State::Waiting => "waiting",
        State::NotRun => "not_run",
        State::Matched => "matched",
        State::Carried => "carried",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_protocol::message::{ConfirmationAnswer, ConfirmationRequest, Consent};
    use artoo_protocol::tool::EffectClass;
    use artoo_protocol::{EnvelopeId, SubTaskId};

    fn hear(watch: &mut Watch, seconds: i64, payload: impl Into<Message>) {
        let at = Timestamp::from_millis(seconds * 1_000);
        let envelope = Envelope {
            id: EnvelopeId::new("e"),
            seq: 1,
            task_id: Some(watch.id().clone()),
            timestamp: at,
            from: Role::R3,
            to: Role::User,
            payload: payload.into(),
        };
        let entry = Entry::Published { envelope };
        watch.hear(Record {
            n: 1,
            at,
            masked: false,
            entry,
        });
    }

    #[test]
    fn a_question_stands_until_it_is_answered_and_the_clock_stands_with_it() {
        let task_id = TaskId::new("delete_notes_0a1b2c3d");
        let mut watch = Watch::new(task_id.clone(), Arc::new(|_, _| 0.0));
        let request = |id: &str| ConfirmationRequest {
            request_id: id.to_owned(),
            task_id: task_id.clone(),
            subtask_id: SubTaskId::new("s"),
            tool: "shell".to_owned(),
            effect: EffectClass::Destroy,
            action: "rm notes.txt \u{202e}txt.seton".to_owned(),
            reason: "it destroys".to_owned(),
            grant: None,
        };
        hear(&mut watch, 10, request("a"));
        hear(&mut watch, 15, request("b"));
        let asked: Vec<&str> = watch.questions().collect();
        assert_eq!(
            asked, ["rm notes.txt \u{fffd}txt.seton\nit destroys"; 2],
            "nothing turns the text around"
        );
        assert_eq!(watch.live()["clock"], json!({"stands_at_ms": 0}));
        let answer = |id: &str| ConfirmationAnswer {
            request_id: id.to_owned(),
            task_id: task_id.clone(),
            consent: Consent::No,
        };
        hear(&mut watch, 20, answer("b"));
        assert_eq!(watch.questions().count(), 1);
        hear(&mut watch, 30, answer("a"));
        assert_eq!(watch.questions().count(), 0);
        // It ran no second yet: it counts from the answer.
        assert_eq!(watch.live()["clock"], json!({"since": Timestamp::from_millis(30_000)}));
    }
}

//! The controller for programs that speak JSON lines: single decisions, and whole tasks step by step (design §21).
//!
//! Owns reading and writing of lines; nothing here decides. A bad line is an error that names its cause, and the next line
//! is answered as if it had not been there.

use std::collections::BTreeSet;

use artoo_protocol::message::{Loss, Message, OutcomeSummary, ReplanRequest, UserInput};
use artoo_protocol::text::one_line;
use artoo_protocol::{Actor as _, Envelope, EnvelopeId, Event, Finite, Role, TaskId, Timestamp, Unit01};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::actor::{Controller, Effect};
use crate::params::Params;
use crate::table::{decide, quantise};
use crate::task::WORDING_WAIT;

/// What is wrong with an input.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{cause}")]
pub struct BadInput {
    /// In words.
    pub cause: String,
}

impl BadInput {
    fn new(cause: impl std::fmt::Display) -> Self {
        Self {
            cause: one_line(&cause.to_string(), 400),
        }
    }
}

#[derive(Deserialize)]
struct Numbers {
    #[serde(rename = "D")]
    d: Unit01,
    #[serde(rename = "P")]
    p: Unit01,
    #[serde(rename = "Omega")]
    omega: Unit01,
    grad_l: Finite,
    #[serde(default)]
    params: Option<Params>,
}

/// Decides on one object `{"D","P","Omega","grad_l"}`; its `params` override the given ones as a whole (what they leave
/// out has its default). Answers `{"cell","macro_state","urgency"}`.
///
/// # Errors
/// [`BadInput`] when it is no such object or a number is out of its range.
pub fn decide_line(params: &Params, line: &str) -> Result<Value, BadInput> {
    let numbers: Numbers = serde_json::from_str(line).map_err(BadInput::new)?;
    let params = numbers.params.as_ref().unwrap_or(params);
    let loss = Loss {
        d: numbers.d,
        p: numbers.p,
        omega: numbers.omega,
        l: Finite::ZERO,
    };
    let bands = quantise(params, &loss, numbers.grad_l);
    let cell = decide(bands);
    Ok(json!({
        "cell": cell.number,
        "macro_state": cell.choice.name(),
        "urgency": bands.slope.urgency(),
    }))
}

/// A line that could not be taken.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {cause}")]
pub struct BadLine {
    /// From 1.
    pub line: u64,
    /// In words.
    pub cause: String,
}

/// Steps any number of tasks through the controller, one message a line.
///
/// Tasks open by being named for the first time; there is no planner to word a partial result, so an abandoned task ends at
/// once with the text that code makes.
#[derive(Clone, Debug)]
pub struct Stepper {
    controller: Controller,
    start: Timestamp,
    lines: u64,
    open: BTreeSet<TaskId>,
    ended: BTreeSet<TaskId>,
}

impl Stepper {
    /// A stepper whose tasks all begin at `start`.
    pub fn new(params: Params, start: Timestamp) -> Self {
        Self {
            controller: Controller::new(params),
            start,
            lines: 0,
            open: BTreeSet::new(),
            ended: BTreeSet::new(),
        }
    }

    /// Takes one line: a ReplanRequest or OutcomeSummary as an envelope, as a message with its `type`, or as the bare object.
    /// Answers with the messages of R7 in order; a blank line gives none.
    ///
    /// # Errors
    /// [`BadLine`] with the number of the line and what is wrong with it.
    pub fn line(&mut self, line: &str) -> Result<Vec<Value>, BadLine> {
        self.lines += 1;
        self.take(line).map_err(|BadInput { cause }| BadLine {
            line: self.lines,
            cause,
        })
    }

    fn take(&mut self, line: &str) -> Result<Vec<Value>, BadInput> {
        if line.trim().is_empty() {
            return Ok(Vec::new());
        }
        let gap = read(line)?;
        let (task_id, elapsed) = match &gap {
            Gap::Replan(m) => (m.task_id.clone(), m.elapsed_ms),
            Gap::Accepted(m) => (m.task_id.clone(), m.elapsed_ms),
        };
        if self.ended.contains(&task_id) {
            return Err(BadInput::new(format!("task `{task_id}` has already ended")));
        }
        let now = self.start.plus(elapsed);
        if self.open.insert(task_id.clone()) {
            let input = UserInput {
                task_id: task_id.clone(),
                text: String::new(),
                history: Vec::new(),
                person_present: false,
                scope: Vec::new(),
            };
            let _ = self.step(self.start, input.into(), &task_id);
        }
        let message = match gap {
            Gap::Replan(m) => (*m).into(),
            Gap::Accepted(m) => (*m).into(),
        };
        let mut effects = self.step(now, message, &task_id);
        if effects.iter().any(|effect| matches!(effect, Effect::AskPartial(_))) {
            effects = self.word(now, &task_id);
        }
        if effects.iter().any(|effect| matches!(effect, Effect::Finish(_))) {
            self.open.remove(&task_id);
            self.ended.insert(task_id);
        }
        effects
            .into_iter()
            .map(|effect| serde_json::to_value(effect.into_message()).map_err(BadInput::new))
            .collect()
    }

    fn step(&mut self, now: Timestamp, message: Message, task_id: &TaskId) -> Vec<Effect> {
        let envelope = Envelope {
            id: EnvelopeId::new(format!("line-{}", self.lines)),
            seq: self.lines,
            task_id: Some(task_id.clone()),
            timestamp: now,
            from: Role::R4b,
            to: Role::R7,
            payload: message,
        };
        self.controller.step(now, Event::from(envelope))
    }

    /// Nobody words anything here.
    fn word(&mut self, now: Timestamp, task_id: &TaskId) -> Vec<Effect> {
        let nothing = artoo_protocol::message::PartialResult {
            task_id: task_id.clone(),
            achieved: String::new(),
            failed: String::new(),
            next_steps: Vec::new(),
        };
        self.step(now.plus(WORDING_WAIT), nothing.into(), task_id)
    }
}

enum Gap {
    Replan(Box<ReplanRequest>),
    Accepted(Box<OutcomeSummary>),
}

fn read(line: &str) -> Result<Gap, BadInput> {
    let value: Value = serde_json::from_str(line).map_err(BadInput::new)?;
    let Value::Object(mut object) = value else {
        return Err(BadInput::new("expected an object"));
    };
    if let Some(payload) = object.remove("payload") {
        let Value::Object(payload) = payload else {
            return Err(BadInput::new("expected an object in `payload`"));
        };
        object = payload;
    }
    let kind = match object.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(_) => return Err(BadInput::new("expected a string in `type`")),
        None if ["gap_summary", "recommendation", "failed_subtasks"]
            .iter()
            .any(|field| object.contains_key(*field)) =>
        {
            "ReplanRequest".to_owned()
        }
        None if object.contains_key("summary") => "OutcomeSummary".to_owned(),
        None => {
            return Err(BadInput::new(
                "no `type`, and no field by which a ReplanRequest (`gap_summary`, `recommendation`, `failed_subtasks`) or an OutcomeSummary (`summary`) is known",
            ));
        }
    };
    let value = Value::Object(object);
    match kind.as_str() {
        "ReplanRequest" => serde_json::from_value(value)
            .map(|m| Gap::Replan(Box::new(m)))
            .map_err(BadInput::new),
        "OutcomeSummary" => serde_json::from_value(value)
            .map(|m| Gap::Accepted(Box::new(m)))
            .map_err(BadInput::new),
        other => Err(BadInput::new(format!(
            "expected a ReplanRequest or an OutcomeSummary, found `{other}`"
        ))),
    }
}

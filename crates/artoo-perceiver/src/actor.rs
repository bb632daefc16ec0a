//! R1 as a state machine: input → (questions) → task, direct answer or failure (design §2, §5).
//!
//! Owns the rounds of questions and the moment of commitment. What the model may claim is bounded by `guard`.

use artoo_protocol::actor::{Actor, Answer, Command, Event};
use artoo_protocol::ids::{CallId, Slug, TaskId};
use artoo_protocol::message::{
    Cause, ClarificationAnswer, ClarificationRequest, Constraints, DirectAnswer, Message, PlanningFailed, TaskSpec,
    UserInput,
};
use artoo_protocol::model::{ModelContent, ModelError, ModelReply, ModelRequest};
use artoo_protocol::prompt::PromptError;
use artoo_protocol::role::Role;
use artoo_protocol::tasks::Tasks;
use artoo_protocol::text::{first_n, one_line};
use artoo_protocol::units::{LocalZone, Timestamp};
use serde_json::Value;

use crate::Config;
use crate::guard::{is_reaction, may_answer_directly, stated_scope};
use crate::prompt::{self, Round};

/// Rounds of questions per input; after the last one R1 commits.
pub const MAX_ROUNDS: u32 = 2;
/// Questions of one round, and characters of one question.
const QUESTIONS: usize = 5;
const QUESTION_CHARS: usize = 300;
/// Characters of a direct answer.
const DIRECT_ANSWER_CHARS: usize = 4_000;

/// What R1 may want done.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Effect {
    /// Put questions to the person.
    Ask(ClarificationRequest),
    /// Hand the task to R2.
    Commit(TaskSpec),
    /// Let R7 end the task with an answer that needs no work.
    Reply(DirectAnswer),
    /// Let R7 end the task: nothing could be made of the input.
    Fail(PlanningFailed),
    /// Have the input read.
    CallModel {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The request.
        request: ModelRequest,
    },
}

impl From<Effect> for Command {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Ask(message) => Self::publish(&message.task_id.clone(), message),
            Effect::Commit(message) => Self::publish(&message.task_id.clone(), message),
            Effect::Reply(message) => Self::publish(&message.task_id.clone(), message),
            Effect::Fail(message) => Self::publish(&message.task_id.clone(), message),
            Effect::CallModel { task_id, call, request } => Self::CallModel { task_id, call, request },
        }
    }
}

/// Where one input stands.
#[derive(Debug)]
enum State {
    /// The model reads it.
    Reading { call: CallId },
    /// The person is being asked.
    Asking,
    /// R1 has said its last word and waits for the end of the task.
    Done,
}

#[derive(Debug)]
struct Task {
    input: UserInput,
    rounds: Vec<Round>,
    calls: CallId,
    state: State,
}

/// R1.
#[derive(Debug)]
pub struct Perceiver {
    zone: LocalZone,
    system: String,
    tasks: Tasks<Task>,
}

impl Perceiver {
    /// A perceiver without tasks.
    ///
    /// # Errors
    /// [`PromptError`] when a configured prompt has other placeholders than `{{laws}}`.
    pub fn new(config: &Config) -> Result<Self, PromptError> {
        Ok(Self {
            zone: config.zone.clone(),
            system: config.prompts.system_text()?,
            tasks: Tasks::default(),
        })
    }

    fn opened(&mut self, now: Timestamp, input: UserInput) -> Vec<Effect> {
        let (system, zone) = (&self.system, &self.zone);
        let task_id = input.task_id.clone();
        let begun = self.tasks.begin(&task_id, || {
            let mut task = Task {
                input,
                rounds: Vec::new(),
                calls: CallId(0),
                state: State::Done,
            };
            let effect = if task.input.text.trim().is_empty() {
                task.fail(Cause::PlanningFailed, "The request is empty.".to_owned())
            } else {
                task.read(system, zone, now)
            };
            (task, effect)
        });
        begun.into_iter().collect()
    }

    fn answered(&mut self, now: Timestamp, answer: ClarificationAnswer) -> Vec<Effect> {
        let Some(task) = self.tasks.get_mut(&answer.task_id) else {
            return Vec::new();
        };
        let Some(round) = task.rounds.last_mut() else {
            return Vec::new();
        };
        if !matches!(task.state, State::Asking) || round.request.round != answer.round {
            return Vec::new();
        }
        round.answer = Some(answer.text);
        vec![task.read(&self.system, &self.zone, now)]
    }

    fn read(
        &mut self,
        now: Timestamp,
        task_id: &TaskId,
        call: CallId,
        answer: Result<ModelReply, ModelError>,
    ) -> Vec<Effect> {
        let Some(task) = self.tasks.get_mut(task_id) else {
            return Vec::new();
        };
        if !matches!(task.state, State::Reading { call: expected } if expected == call) {
            return Vec::new();
        }
        task.state = State::Done;
        let effect = match answer.map(|reply| reply.content) {
            Ok(ModelContent::Structured { value }) => task.conclude(now, &value),
            Ok(ModelContent::Text { .. } | ModelContent::ToolCalls { .. }) => task.fail(
                Cause::PlanningFailed,
                "The model answered with something other than a task.".to_owned(),
            ),
            Err(error) => task.fail(error.cause(), error.to_string()),
        };
        vec![effect]
    }
}

impl Actor for Perceiver {
    type Effect = Effect;

    const ROLE: Role = Role::R1;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Message { envelope } => match envelope.payload {
                Message::UserInput(input) => self.opened(now, input),
                Message::ClarificationAnswer(answer) => self.answered(now, answer),
                // The rest is not R1's, whatever it will ever be.
                other => {
                    other.ends().into_iter().for_each(|task| self.tasks.close(task));
                    Vec::new()
                }
            },
            Event::Answer {
                task_id,
                call,
                answer: Answer::Model(answer),
            } => self.read(now, &task_id, call, answer),
            Event::Answer { .. } | Event::Wake => Vec::new(),
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        // Waiting for a person has no limit here; R7 keeps the budgets.
        None
    }

    fn open_tasks(&self) -> usize {
        self.tasks.len()
    }
}

impl Task {
    fn read(&mut self, system: &str, zone: &LocalZone, now: Timestamp) -> Effect {
        let call = self.calls.take();
        self.state = State::Reading { call };
        Effect::CallModel {
            task_id: self.input.task_id.clone(),
            call,
            request: prompt::request(system, &self.input, &self.rounds, self.may_ask(), &zone.describe(now)),
        }
    }

    /// Whether another round of questions is allowed: someone is there, rounds are left, the last answer was not empty,
    /// and the input is no mere reaction, which the history explains.
    fn may_ask(&self) -> bool {
        let rounds = u32::try_from(self.rounds.len()).unwrap_or(u32::MAX);
        let waved_on = self
            .rounds
            .iter()
            .any(|round| round.answer.as_deref().is_some_and(|text| text.trim().is_empty()));
        self.input.person_present && rounds < MAX_ROUNDS && !waved_on && !is_reaction(&self.input)
    }

    fn conclude(&mut self, now: Timestamp, value: &Value) -> Effect {
        let questions = questions(value);
        if !questions.is_empty() && self.may_ask() {
            return self.ask(questions);
        }
        let slug = Slug::repair(text(value, "slug").unwrap_or_default());
        let task_id = self.input.task_id.with_slug(&slug);
        let raw = &self.input.text;
        let intent = text(value, "intent").unwrap_or(raw.trim()).to_owned();
        if let Some(answer) = text(value, "direct_answer").filter(|_| may_answer_directly(&self.input)) {
            return Effect::Reply(DirectAnswer {
                task_id,
                slug,
                intent,
                answer: first_n(answer, DIRECT_ANSWER_CHARS),
            });
        }
        Effect::Commit(TaskSpec {
            task_id,
            slug,
            intent,
            constraints: Constraints {
                scope: text(value, "scope").and_then(|scope| self.stated(scope)),
                deadline: text(value, "deadline")
                    .and_then(|when| Timestamp::parse(when).ok())
                    .filter(|when| *when > now),
            },
            raw_input: raw.clone(),
            scope: self.input.scope.clone(),
        })
    }

    /// A scope that stands in what the person said: in the request, or in an answer to a question.
    fn stated(&self, scope: &str) -> Option<String> {
        let answers = self.rounds.iter().filter_map(|round| round.answer.as_deref());
        let mut said = std::iter::once(self.input.text.as_str()).chain(answers);
        said.find_map(|words| stated_scope(words, scope))
    }

    fn ask(&mut self, questions: Vec<String>) -> Effect {
        let request = ClarificationRequest {
            task_id: self.input.task_id.clone(),
            round: u32::try_from(self.rounds.len()).unwrap_or(u32::MAX).saturating_add(1),
            questions,
        };
        self.rounds.push(Round {
            request: request.clone(),
            answer: None,
        });
        self.state = State::Asking;
        Effect::Ask(request)
    }

    fn fail(&self, cause: Cause, reason: String) -> Effect {
        Effect::Fail(PlanningFailed {
            task_id: self.input.task_id.clone(),
            slug: Slug::repair(""),
            intent: self.input.text.clone(),
            reason,
            cause,
        })
    }
}

/// A field of the answer that is a text with something in it.
fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    let text = value.get(field)?.as_str()?.trim();
    // Models write the absence of a value in these ways too.
    (!text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.eq_ignore_ascii_case("none")).then_some(text)
}

fn questions(value: &Value) -> Vec<String> {
    let listed = match value.get("clarify") {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one.as_str()],
        _ => Vec::new(),
    };
    listed
        .into_iter()
        .map(|question| one_line(question, QUESTION_CHARS))
        .filter(|question| !question.is_empty())
        .take(QUESTIONS)
        .collect()
}

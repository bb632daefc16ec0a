//! What a desk remembers: tasks, their progress, open questions (design §21).
//!
//! Owns every decision of the desk, free of clock and bus: what is to be said comes back as a message. Bounded in tasks and lines.

use std::collections::VecDeque;
use std::sync::Arc;

use artoo_protocol::message::{FinalResult, Message, Turn};
use artoo_protocol::{Envelope, Millis, TaskId, Timestamp};
use thiserror::Error;

use super::question::{Asked, Open, Question, Refusals, Unanswerable};
use crate::failure::Failure;
use crate::past::Past;
use crate::{progress, session};

/// Tasks that may run at once: each asks models and runs tools on the person's machine.
pub const TASKS_MAX: usize = 16;
/// Tasks that have ended and are remembered; those before are in their journals.
const ENDED_KEPT: usize = 256;
/// Lines of progress that are kept of a task.
const LINES_KEPT: usize = 200;
/// After so long before a person without an answer, nobody is there.
const ASK_MAX: Millis = Millis::from_seconds(3_600);
/// So long a task waits for its question to be put to a person.
const UNSHOWN_MAX: Millis = Millis::from_seconds(24 * 3_600);

/// Whether whoever puts in a task can ask a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Person {
    /// Questions reach one.
    There,
    /// They do not: what needs a yes is refused.
    Absent,
}

/// A task that cannot be stopped: it has ended, or never was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no task `{0}` is running")]
pub struct NotRunning(pub String);

/// Where a task stands.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Its id, final when R1 has named it.
    pub task_id: TaskId,
    /// The person's words.
    pub text: String,
    /// The last lines of its progress, oldest first.
    pub lines: Vec<String>,
    /// Whether it waits for a person.
    pub is_asking: bool,
    /// Actions of it that law 1 stopped.
    pub refused: Refusals,
    /// How it ended; none while it runs.
    pub ending: Option<Arc<FinalResult>>,
}

/// A task of this process.
struct Task {
    id: TaskId,
    text: String,
    person: Person,
    aborted: bool,
    lines: VecDeque<String>,
    /// Lines told so far, those forgotten among them.
    told: u64,
    refused: Refusals,
    ending: Option<Arc<FinalResult>>,
}

impl Task {
    /// The provisional and the final id of a run mean the same task.
    fn is(&self, id: &TaskId) -> bool {
        self.id.suffix() == id.suffix()
    }
}

/// Everything that a desk remembers.
pub struct State {
    /// In the order in which they began.
    tasks: Vec<Task>,
    /// In the order in which they were asked.
    questions: Vec<Open>,
    /// Questions asked so far.
    asked: u64,
    past: Option<Past>,
}

impl State {
    /// Nothing yet; with `past`, tasks are turns of that conversation.
    pub const fn new(past: Option<Past>) -> Self {
        Self {
            tasks: Vec::new(),
            questions: Vec::new(),
            asked: 0,
            past,
        }
    }

    /// Takes a task in, and gives what was said before.
    ///
    /// # Errors
    /// [`Failure`] when [`TASKS_MAX`] run already.
    pub fn begin(&mut self, id: TaskId, text: &str, person: Person) -> Result<Vec<Turn>, Failure> {
        if self.open().count() >= TASKS_MAX {
            return Err(Failure::failed(format!("{TASKS_MAX} tasks run already"))
                .hint("wait until one of them has ended, or abort one"));
        }
        self.tasks.push(Task {
            id,
            text: text.to_owned(),
            person,
            aborted: false,
            lines: VecDeque::new(),
            told: 0,
            refused: Refusals::default(),
            ending: None,
        });
        Ok(self.past.as_ref().map(Past::turns).unwrap_or_default())
    }

    /// Forgets a task that the bus did not take.
    pub fn never_began(&mut self, id: &TaskId) {
        self.tasks.retain(|task| !task.is(id));
    }

    /// Open questions, oldest first.
    pub fn questions(&self) -> Vec<Question> {
        self.questions.iter().map(|open| open.question.clone()).collect()
    }

    /// Whether a question is open.
    pub fn is_open(&self, id: &str) -> bool {
        self.questions.iter().any(|open| open.question.id == id)
    }

    /// Tasks that run, in the order in which they began.
    pub fn running(&self) -> Vec<TaskId> {
        self.open().map(|task| task.id.clone()).collect()
    }

    /// All tasks, in the order in which they began.
    pub fn tasks(&self) -> Vec<TaskId> {
        self.tasks.iter().map(|task| task.id.clone()).collect()
    }

    /// Where a task stands.
    pub fn standing(&self, id: &TaskId) -> Option<Standing> {
        let task = self.find(id)?;
        Some(Standing {
            task_id: task.id.clone(),
            text: task.text.clone(),
            lines: task.lines.iter().cloned().collect(),
            is_asking: self.questions.iter().any(|open| task.is(&open.question.task_id)),
            refused: task.refused.clone(),
            ending: task.ending.clone(),
        })
    }

    /// How a task ended.
    pub fn ending(&self, id: &TaskId) -> Option<Arc<FinalResult>> {
        self.find(id)?.ending.clone()
    }

    /// Lines of progress from the `from`-th on as far as they are kept, and the number of the next.
    pub fn lines(&self, id: &TaskId, from: u64) -> (Vec<String>, u64) {
        let Some(task) = self.find(id) else {
            return (Vec::new(), from);
        };
        let new = usize::try_from(task.told.saturating_sub(from)).unwrap_or(usize::MAX);
        let skipped = task.lines.len().saturating_sub(new);
        (task.lines.iter().skip(skipped).cloned().collect(), task.told)
    }

    /// Marks a task as stopped and drops its questions; none when it was stopped before.
    ///
    /// # Errors
    /// [`NotRunning`].
    pub fn abort(&mut self, id: &TaskId) -> Result<Option<TaskId>, NotRunning> {
        let running = self.tasks.iter_mut().find(|task| task.is(id) && task.ending.is_none());
        let task = running.ok_or_else(|| NotRunning(id.to_string()))?;
        if std::mem::replace(&mut task.aborted, true) {
            return Ok(None);
        }
        let stopped = task.id.clone();
        self.drop_questions(id);
        Ok(Some(stopped))
    }

    /// Takes a question in, and gives the answer at once where nobody is there; a task that is stopped asks nothing. With `overlooked`,
    /// it stands before a person from now on.
    pub fn ask(&mut self, asked: Asked, overlooked: Person, now: Timestamp) -> Option<(TaskId, Message)> {
        let task = self.tasks.iter_mut().find(|task| task.is(asked.task_id()))?;
        if task.aborted || task.ending.is_some() {
            return None;
        }
        let id = task.id.clone();
        match task.person {
            Person::There => {
                self.asked += 1;
                let mut open = Open::new(format!("q{}", self.asked), id, asked, now);
                open.shown = (overlooked == Person::There).then_some(now);
                self.questions.push(open);
                None
            }
            Person::Absent => {
                let message = asked.by_nobody();
                task.refused.add(asked.refused_by(&message));
                Some((id, message))
            }
        }
    }

    /// Closes a question with what an answer says on the bus.
    ///
    /// # Errors
    /// [`Unanswerable`]; then it stays open if it was.
    pub fn settle(
        &mut self,
        id: &str,
        answer: impl FnOnce(&Asked) -> Result<Message, Unanswerable>,
    ) -> Result<(TaskId, Message), Unanswerable> {
        let open = self.questions.iter().find(|open| open.question.id == id);
        let open = open.ok_or(Unanswerable::Gone)?;
        let message = answer(&open.asked)?;
        let (task_id, refused) = (open.question.task_id.clone(), open.asked.refused_by(&message));
        self.questions.retain(|open| open.question.id != id);
        if let Some(task) = self.tasks.iter_mut().find(|task| task.is(&task_id)) {
            task.refused.add(refused);
        }
        Ok((task_id, message))
    }

    /// Takes down how a task ended.
    pub fn end(&mut self, result: &FinalResult) {
        let Some(task) = self.tasks.iter_mut().find(|task| task.is(&result.task_id)) else {
            return;
        };
        task.id = result.task_id.clone();
        task.ending = Some(Arc::new(result.clone()));
        let input = task.text.clone();
        self.drop_questions(&result.task_id);
        self.forget_surplus();
        if let Some(past) = &mut self.past {
            let summary = session::came_of(result);
            past.add(Turn { input, summary });
        }
    }

    /// Follows a message; whether it is news.
    pub fn hear(&mut self, envelope: &Envelope) -> bool {
        let named = match &envelope.payload {
            Message::TaskSpec(spec) => Some(&spec.task_id),
            Message::DirectAnswer(answer) => Some(&answer.task_id),
            _ => None,
        };
        let line = progress::line(envelope);
        let of = envelope.task_id.as_ref().filter(|_| line.is_some() || named.is_some());
        let Some(task) = of.and_then(|id| self.tasks.iter_mut().find(|task| task.is(id))) else {
            return false;
        };
        if let Some(named) = named {
            task.id = named.clone();
        }
        if let Some(line) = line {
            task.told += 1;
            task.lines.push_back(line);
            let surplus = task.lines.len().saturating_sub(LINES_KEPT);
            task.lines.drain(..surplus);
        }
        true
    }

    /// Takes down that a question stands before a person; the first time counts.
    pub fn shown(&mut self, id: &str, now: Timestamp) {
        if let Some(open) = self.questions.iter_mut().find(|open| open.question.id == id) {
            open.shown.get_or_insert(now);
        }
    }

    /// Questions that stood before a person, to which nobody came.
    pub fn overdue(&self, now: Timestamp) -> Vec<String> {
        let is_late = |open: &&Open| open.shown.is_some_and(|shown| now.since(shown) > ASK_MAX);
        let late = self.questions.iter().filter(is_late);
        late.map(|open| open.question.id.clone()).collect()
    }

    /// Tasks with a question that no front end has put to anybody.
    pub fn unheard(&self, now: Timestamp) -> Vec<TaskId> {
        let is_unheard = |open: &&Open| open.shown.is_none() && now.since(open.came) > UNSHOWN_MAX;
        let unheard = self.questions.iter().filter(is_unheard);
        unheard.map(|open| open.question.task_id.clone()).collect()
    }

    fn find(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.is(id))
    }

    fn open(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.ending.is_none())
    }

    fn drop_questions(&mut self, id: &TaskId) {
        self.questions
            .retain(|open| open.question.task_id.suffix() != id.suffix());
    }

    fn forget_surplus(&mut self) {
        let mut surplus = (self.tasks.len() - self.open().count()).saturating_sub(ENDED_KEPT);
        self.tasks.retain(|task| {
            let goes = surplus > 0 && task.ending.is_some();
            surplus -= usize::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::question::Reply;
    use artoo_protocol::message::{
        ClarificationRequest, ConfirmationAnswer, ConfirmationRequest, Consent, TaskAborted, TaskSpec,
    };
    use artoo_protocol::tool::EffectClass;
    use artoo_protocol::{EnvelopeId, Role, SubTaskId};
    use serde_json::json;

    fn id(number: usize) -> TaskId {
        TaskId::new(format!("input_{number:08x}"))
    }

    fn removal(task: &TaskId) -> Asked {
        Asked::Confirmation(ConfirmationRequest {
            request_id: "r1".into(),
            task_id: task.clone(),
            subtask_id: SubTaskId::new("s"),
            tool: "shell".into(),
            effect: EffectClass::Destroy,
            action: "rm a\u{1b}[2K.txt".into(),
            reason: "it deletes".into(),
            grant: Some("destroy:rm a".into()),
        })
    }

    fn ending(task: &TaskId) -> FinalResult {
        serde_json::from_value(json!({"task_id": task, "slug": "x", "summary": "done", "output": null,
            "loss": {"D": 0.0, "P": 0.0, "Omega": 0.0, "L": 0.0}, "grad_l": 0.0, "replans": 0, "prev_directive": "init",
            "directive": "accept", "cause": "met"}))
        .unwrap()
    }

    fn consent_in(message: &Message) -> Consent {
        match message {
            Message::ConfirmationAnswer(ConfirmationAnswer { consent, .. }) => *consent,
            other => panic!("{other:?}"),
        }
    }

    fn with_question() -> State {
        let mut state = State::new(None);
        state.begin(id(1), "x", Person::There).unwrap();
        assert!(
            state
                .ask(removal(&id(1)), Person::Absent, Timestamp::from_millis(0))
                .is_none()
        );
        state
    }

    #[test]
    fn a_question_is_answered_once_and_by_an_answer_that_fits() {
        let mut state = with_question();
        let question = state.questions().remove(0);
        assert_eq!(question.id, "q1");
        assert!(
            question.text.contains("rm a") && !question.text.contains('\u{1b}'),
            "{question:?}"
        );
        let words = state.settle("q1", |asked| asked.answered(Reply::Text("yes".into())));
        assert_eq!(words.unwrap_err(), Unanswerable::Unfit);
        assert!(state.is_open("q1"), "what does not fit leaves it open");
        let (task, message) = state.settle("q1", |asked| asked.answered(Reply::Yes)).unwrap();
        assert_eq!((task, consent_in(&message)), (id(1), Consent::Yes));
        let late = state.settle("q1", |asked| asked.answered(Reply::No));
        assert_eq!(late.unwrap_err(), Unanswerable::Gone);
        assert_eq!(state.standing(&id(1)).unwrap().refused, Refusals::default());
    }

    #[test]
    fn where_nobody_is_it_is_refused_at_once_and_the_grant_is_kept() {
        let mut state = State::new(None);
        state.begin(id(1), "x", Person::Absent).unwrap();
        let (_, message) = state
            .ask(removal(&id(1)), Person::Absent, Timestamp::from_millis(0))
            .unwrap();
        assert_eq!(consent_in(&message), Consent::Nobody);
        let refused = state.standing(&id(1)).unwrap().refused.listed;
        assert_eq!(refused[0].grant.as_deref(), Some("destroy:rm a"));
        assert!(state.questions().is_empty());
    }

    #[test]
    fn a_question_that_nobody_answers_is_overdue_an_hour_after_it_was_put() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let mut state = with_question();
        state.shown("q1", at(7_200));
        state.shown("q1", at(9_000));
        assert!(state.overdue(at(10_800)).is_empty());
        assert_eq!(state.overdue(at(10_801)), ["q1"], "the first time counts");
        assert!(state.unheard(at(1_000_000)).is_empty());
        // Where a person sees every question, it stands before them at once.
        let mut state = State::new(None);
        state.begin(id(1), "x", Person::There).unwrap();
        state.ask(removal(&id(1)), Person::There, at(0));
        assert_eq!(state.overdue(at(3_601)), ["q1"]);
    }

    #[test]
    fn a_question_that_was_never_put_is_none_that_nobody_answered() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let state = with_question();
        assert!(state.overdue(at(1_000_000)).is_empty());
        assert!(state.unheard(at(86_400)).is_empty());
        assert_eq!(
            state.unheard(at(86_401)),
            [id(1)],
            "but its task does not wait for ever"
        );
    }

    #[test]
    fn questions_go_with_their_task() {
        let mut stopped = with_question();
        assert_eq!(stopped.abort(&id(1)), Ok(Some(id(1))));
        assert_eq!(stopped.abort(&id(1)), Ok(None), "once is enough");
        assert!(
            stopped
                .ask(removal(&id(1)), Person::Absent, Timestamp::from_millis(0))
                .is_none()
        );
        assert!(stopped.questions().is_empty());
        let mut ended = with_question();
        ended.end(&ending(&id(1)));
        assert!(ended.questions().is_empty() && ended.running().is_empty());
        assert!(ended.abort(&id(1)).is_err() && ended.abort(&id(2)).is_err());
    }

    #[test]
    fn tasks_and_what_is_remembered_of_them_are_bounded() {
        let mut state = State::new(None);
        for number in 0..1_000 {
            let begun = state.begin(id(number), "x", Person::There);
            if state.running().len() < TASKS_MAX {
                begun.unwrap();
                continue;
            }
            assert!(state.begin(id(9_999), "x", Person::There).is_err());
            state.end(&ending(&id(number)));
        }
        assert_eq!(state.tasks().len(), ENDED_KEPT + TASKS_MAX - 1);
        assert_eq!(state.running().len(), TASKS_MAX - 1);
        assert!(state.standing(&id(0)).is_some(), "what runs is not forgotten");
    }

    #[test]
    fn the_name_that_a_task_gets_is_the_same_task_and_its_lines_are_counted() {
        let mut state = State::new(None);
        state.begin(id(1), "x", Person::There).unwrap();
        let named = TaskId::new("delete_notes_00000001");
        let envelope = |payload: Message| Envelope {
            id: EnvelopeId::new("e"),
            seq: 1,
            task_id: Some(named.clone()),
            timestamp: Timestamp::from_millis(0),
            from: Role::R1,
            to: Role::R2,
            payload,
        };
        let spec: TaskSpec = serde_json::from_value(
            json!({"task_id": named, "slug": "delete_notes", "intent": "delete", "raw_input": "x"}),
        )
        .unwrap();
        for _ in 0..LINES_KEPT + 5 {
            assert!(state.hear(&envelope(spec.clone().into())));
        }
        let silent = TaskAborted {
            task_id: named.clone(),
            reason: "x".into(),
        };
        assert!(!state.hear(&envelope(silent.into())));
        assert_eq!(state.running(), [named]);
        let all = LINES_KEPT as u64 + 5;
        let (lines, next) = state.lines(&id(1), 0);
        assert_eq!((lines.len(), next), (LINES_KEPT, all), "the oldest are forgotten");
        let (lines, next) = state.lines(&id(1), all - 2);
        assert_eq!((lines.len(), next), (2, all));
        assert_eq!(state.lines(&id(1), all), (vec![], all));
    }

    #[test]
    fn words_answer_a_question_in_words() {
        let mut state = State::new(None);
        state.begin(id(1), "x", Person::There).unwrap();
        let request = ClarificationRequest {
            task_id: id(1),
            round: 1,
            questions: vec!["Which?".into()],
        };
        state.ask(Asked::Clarification(request), Person::Absent, Timestamp::from_millis(0));
        let yes = state.settle("q1", |asked| asked.answered(Reply::Yes));
        assert_eq!(yes.unwrap_err(), Unanswerable::Unfit);
        let long = "x".repeat(session::TEXT_MAX + 1);
        let long = state.settle("q1", |asked| asked.answered(Reply::Text(long)));
        assert_eq!(long.unwrap_err(), Unanswerable::TooLong);
        let (_, message) = state
            .settle("q1", |asked| asked.answered(Reply::Text(" src \n".into())))
            .unwrap();
        let Message::ClarificationAnswer(answer) = message else {
            panic!("{message:?}")
        };
        assert_eq!((answer.text.as_str(), answer.round), ("src", 1));
    }
}

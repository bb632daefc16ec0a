//! What a person is asked, and which answers fit (design §9, §21).
//!
//! Owns the words of a question and what an answer means on the bus. Must not know who asks the person, or how.

use std::collections::HashMap;

use artoo_protocol::message::{
    ClarificationAnswer, ClarificationRequest, ConfirmationAnswer, ConfirmationRequest, Consent, Message,
};
use artoo_protocol::text::printable;
use artoo_protocol::{TaskId, Timestamp};
use thiserror::Error;

use crate::session::TEXT_MAX;
use crate::terminal::{consent_question, questions_listed};

/// Refused actions that are kept of a task; those after are counted.
const REFUSED_KEPT: usize = 20;

/// Something that the person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Names it, in this process.
    pub id: String,
    /// The task that waits for the answer.
    pub task_id: TaskId,
    /// As a terminal shows it: the exact command, diff or list of an action, or the questions, without control characters.
    pub text: String,
    /// Which answers it takes.
    pub kind: QuestionKind,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// Consent to one exact action: yes, no, or always.
    Confirmation,
    /// Words; none means "as you think best".
    Clarification,
}

/// A person's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// This once.
    Yes,
    /// Not; to questions in words: as you think best.
    No,
    /// This exact action for the rest of the task.
    Always,
    /// In words.
    Text(String),
}

/// Why an answer was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unanswerable {
    /// It was answered, its task has ended, or it never was.
    #[error("there is no such open question: it was answered already, or its task has ended")]
    Gone,
    /// Words where a yes or a no is needed, or the other way round.
    #[error("that is no answer to this question: a confirmation takes yes, no or always, a question takes words")]
    Unfit,
    /// More than [`TEXT_MAX`] bytes.
    #[error("the answer is longer than the {TEXT_MAX} bytes that are taken")]
    TooLong,
}

/// An action that law 1 stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The exact action.
    pub action: String,
    /// Who refused: the person, or nobody, who was there to be asked.
    pub consent: Consent,
    /// What `--allow` would have had to say beforehand; none where nothing may be granted.
    pub grant: Option<String>,
}

/// What law 1 stopped in one task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// The first of them, in the order in which they were refused.
    pub listed: Vec<Refused>,
    /// How many came after those.
    pub more: usize,
}

impl Refusals {
    /// Those that the messages of one task tell of, in the order in which they were said.
    pub fn of<'a>(messages: impl Iterator<Item = &'a Message>) -> Self {
        let (mut refusals, mut open) = (Self::default(), HashMap::new());
        for message in messages {
            match message {
                Message::ConfirmationRequest(request) => {
                    open.insert(&request.request_id, request);
                }
                Message::ConfirmationAnswer(answer) => {
                    // The first answer counts.
                    if let Some(request) = open.remove(&answer.request_id) {
                        refusals.add(Asked::Confirmation(request.clone()).refused_by(message));
                    }
                }
                _ => {}
            }
        }
        refusals
    }

    /// Takes down what an answer refused, if it did.
    pub fn add(&mut self, refused: Option<Refused>) {
        if self.listed.len() < REFUSED_KEPT {
            self.listed.extend(refused);
        } else {
            self.more += usize::from(refused.is_some());
        }
    }
}

/// A question as it came.
#[derive(Clone, Debug)]
pub enum Asked {
    /// From the gate.
    Confirmation(ConfirmationRequest),
    /// From R1.
    Clarification(ClarificationRequest),
}

impl Asked {
    /// The task that waits.
    pub const fn task_id(&self) -> &TaskId {
        match self {
            Self::Confirmation(request) => &request.task_id,
            Self::Clarification(request) => &request.task_id,
        }
    }

    /// What a person's answer says on the bus.
    ///
    /// # Errors
    /// [`Unanswerable`] when it does not fit.
    pub fn answered(&self, reply: Reply) -> Result<Message, Unanswerable> {
        match (self, reply) {
            (Self::Confirmation(request), Reply::Yes) => Ok(consent(request, Consent::Yes)),
            (Self::Confirmation(request), Reply::No) => Ok(consent(request, Consent::No)),
            (Self::Confirmation(request), Reply::Always) => Ok(consent(request, Consent::Always)),
            (Self::Clarification(request), Reply::No) => Ok(words(request, String::new())),
            (Self::Clarification(_), Reply::Text(text)) if text.len() > TEXT_MAX => Err(Unanswerable::TooLong),
            (Self::Clarification(request), Reply::Text(text)) => Ok(words(request, text.trim().to_owned())),
            (Self::Confirmation(_), Reply::Text(_)) | (Self::Clarification(_), Reply::Yes | Reply::Always) => {
                Err(Unanswerable::Unfit)
            }
        }
    }

    /// What it says on the bus that nobody can be asked.
    pub fn by_nobody(&self) -> Message {
        match self {
            Self::Confirmation(request) => consent(request, Consent::Nobody),
            Self::Clarification(request) => words(request, String::new()),
        }
    }

    /// What is refused by an answer.
    pub fn refused_by(&self, answer: &Message) -> Option<Refused> {
        let (Self::Confirmation(request), Message::ConfirmationAnswer(answer)) = (self, answer) else {
            return None;
        };
        match answer.consent {
            Consent::Yes | Consent::Always => None,
            Consent::No | Consent::Nobody => Some(Refused {
                action: request.action.clone(),
                consent: answer.consent,
                grant: request.grant.clone(),
            }),
        }
    }
}

fn consent(request: &ConfirmationRequest, consent: Consent) -> Message {
    ConfirmationAnswer {
        request_id: request.request_id.clone(),
        task_id: request.task_id.clone(),
        consent,
    }
    .into()
}

fn words(request: &ClarificationRequest, text: String) -> Message {
    ClarificationAnswer {
        task_id: request.task_id.clone(),
        round: request.round,
        text,
    }
    .into()
}

/// A question that waits for its answer.
pub struct Open {
    /// As front ends show it.
    pub question: Question,
    /// As it came.
    pub asked: Asked,
    /// When it came.
    pub came: Timestamp,
    /// Since when it stands before a person; none while no front end has put it.
    pub shown: Option<Timestamp>,
}

impl Open {
    /// A question that comes now.
    pub fn new(id: String, task_id: TaskId, asked: Asked, now: Timestamp) -> Self {
        let (text, kind) = match &asked {
            Asked::Confirmation(request) => (consent_question(request), QuestionKind::Confirmation),
            Asked::Clarification(request) => (questions_listed(request), QuestionKind::Clarification),
        };
        Self {
            question: Question {
                id,
                task_id,
                text: printable(&text),
                kind,
            },
            asked,
            came: now,
            shown: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_protocol::SubTaskId;
    use artoo_protocol::tool::EffectClass;

    fn request(number: usize) -> ConfirmationRequest {
        ConfirmationRequest {
            request_id: format!("r{number}"),
            task_id: TaskId::new("input_00000001"),
            subtask_id: SubTaskId::new("s"),
            tool: "shell".into(),
            effect: EffectClass::Destroy,
            action: format!("rm {number}"),
            reason: "it deletes".into(),
            grant: None,
        }
    }

    #[test]
    fn a_journal_tells_what_was_refused_by_whom_and_how_much_more() {
        let said = [Consent::No, Consent::Yes, Consent::Nobody, Consent::Always];
        let mut messages: Vec<Message> = Vec::new();
        for (number, said) in said.into_iter().enumerate() {
            messages.push(request(number).into());
            messages.push(consent(&request(number), said));
            // A second answer to the same question is none.
            messages.push(consent(&request(number), Consent::No));
        }
        messages.push(request(9).into());
        let refusals = Refusals::of(messages.iter());
        let told: Vec<_> = refusals
            .listed
            .iter()
            .map(|one| (one.action.as_str(), one.consent))
            .collect();
        assert_eq!(told, [("rm 0", Consent::No), ("rm 2", Consent::Nobody)]);
        assert_eq!(refusals.more, 0);

        let many =
            (0..REFUSED_KEPT + 3).flat_map(|number| [request(number).into(), consent(&request(number), Consent::No)]);
        let many: Vec<Message> = many.collect();
        let refusals = Refusals::of(many.iter());
        assert_eq!((refusals.listed.len(), refusals.more), (REFUSED_KEPT, 3));
    }
}

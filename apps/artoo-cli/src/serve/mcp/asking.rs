//! Questions on their way to the client's user (design §9, §21).
//!
//! Owns the form in which a client shows a question, and what counts as an answer: only what came through that form, never anything
//! that a model put into a call.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};

use artoo_protocol::TaskId;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, EnumSchema, InputRequest, InputRequests, InputResponses, ProtocolVersion, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::failure::Failure;
use crate::serve::desk::{Desk, Person, Question, QuestionKind, Reply, Unanswerable};

/// The one field of the form.
const FIELD: &str = "answer";

/// How a client's user can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a request of ours, while the task goes on (protocol before 2026-07-28).
    Request,
    /// By a result that asks, after which the client calls again.
    Result,
    /// Not at all: the client offers no forms.
    None,
}

impl Way {
    /// What the client of a request has said of itself.
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let offered = context.client_capabilities().and_then(|offered| offered.elicitation);
        // Without either word a form is meant.
        let has_forms = offered.is_some_and(|offered| offered.form.is_some() || offered.url.is_none());
        let asks_by_result = context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        match (has_forms, asks_by_result) {
            (false, _) => Self::None,
            (true, true) => Self::Result,
            (true, false) => Self::Request,
        }
    }

    /// Whether a person can be reached.
    pub const fn person(self) -> Person {
        match self {
            Self::Request | Self::Result => Person::There,
            Self::None => Person::Absent,
        }
    }
}

/// Puts the questions of a task to the client's user, one after the other and one at a time for all tasks, until it ends.
pub async fn accompany(desk: Desk, peer: Peer<RoleServer>, task: TaskId, turn: Arc<Mutex<()>>) {
    let mut changes = desk.changes();
    let mut asked = HashSet::new();
    loop {
        changes.borrow_and_update();
        let next = of_task(&desk, &task).into_iter().find(|one| !asked.contains(&one.id));
        if let Some(question) = next {
            asked.insert(question.id.clone());
            let _turn = turn.lock().await;
            put(&desk, &peer, &question).await;
        } else if desk.ending(&task).is_some() || desk.standing(&task).is_none() || changes.changed().await.is_err() {
            return;
        }
    }
}

/// The open questions of a task.
pub fn of_task(desk: &Desk, task: &TaskId) -> Vec<Question> {
    let mut questions = desk.questions();
    questions.retain(|question| question.task_id.suffix() == task.suffix());
    questions
}

/// Asks one question, unless it is settled elsewhere first; once more where the answer is of no use.
async fn put(desk: &Desk, peer: &Peer<RoleServer>, question: &Question) {
    let mut again = None;
    while desk.is_open(&question.id) {
        let Some(form) = form(question, again) else {
            return desk.unasked(&question.id);
        };
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
        let sent = peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let Ok(mut handle) = sent.await else {
            return desk.unasked(&question.id);
        };
        desk.shown(&question.id);
        tokio::select! {
            came = &mut handle.rx => match came {
                Ok(Ok(ClientResult::ElicitResult(result))) => match give(desk, question, &result, again) {
                    Some(why) => again = Some(why),
                    None => return,
                },
                Ok(_) | Err(_) => return desk.unasked(&question.id),
            },
            () = desk.until_settled(&question.id) => {
                let _ = handle.cancel(Some("the question is settled".to_owned())).await;
            }
        }
    }
}

/// Gives an answer, and says why it has to be asked for once more. Who was asked again and still gives none of use, is not there.
fn give(desk: &Desk, question: &Question, result: &ElicitResult, again: Option<Unanswerable>) -> Option<Unanswerable> {
    match desk.answer(&question.id, reply(question.kind, result)) {
        // Somebody else may have been faster.
        Ok(()) | Err(Unanswerable::Gone) => None,
        Err(why @ (Unanswerable::Unfit | Unanswerable::TooLong)) if again.is_none() => Some(why),
        Err(Unanswerable::Unfit | Unanswerable::TooLong) => {
            desk.unasked(&question.id);
            None
        }
    }
}

/// The answers that a call brings back.
///
/// # Errors
/// [`Failure`] when its client is none that is asked by a result: whatever it sends was never before a person.
pub fn brought_back(request: &CallToolRequestParams, way: Way) -> Result<Option<InputResponses>, Failure> {
    match (&request.input_responses, way) {
        (answers, Way::Result) => Ok(answers.clone()),
        (None, Way::Request | Way::None) => Ok(None),
        (Some(_), Way::Request | Way::None) => Err(Failure::usage(
            "a call brings answers (`inputResponses`), but this client was asked nothing by a result",
        )
        .hint("they are taken from clients of protocol 2026-07-28 with forms (elicitation)")),
    }
}

/// The questions that this client was given in results, each with why it is asked again. Only to these it can bring answers.
#[derive(Default)]
pub struct Handed(StdMutex<HashMap<String, Option<Unanswerable>>>);

impl Handed {
    /// Questions as part of a result that asks.
    pub fn hand(&self, desk: &Desk, questions: &[Question]) -> InputRequests {
        let mut handed = self.locked();
        handed.retain(|id, _| desk.is_open(id));
        let mut requests = InputRequests::new();
        for question in questions {
            let again = handed.get(&question.id).copied().flatten();
            let Some(form) = form(question, again) else {
                desk.unasked(&question.id);
                continue;
            };
            handed.insert(question.id.clone(), again);
            desk.shown(&question.id);
            requests.insert(question.id.clone(), InputRequest::Elicitation(ElicitRequest::new(form)));
        }
        requests
    }

    /// Gives the answers that came with a call, for those questions of a task that are still open and were handed out.
    pub fn take(&self, desk: &Desk, task: &TaskId, answers: InputResponses) {
        let mut handed = self.locked();
        let open = of_task(desk, task);
        for (id, answer) in answers {
            let question = open.iter().find(|question| question.id == id);
            let (Some(question), Some(again)) = (question, handed.get_mut(&id)) else {
                continue;
            };
            match serde_json::from_value::<ElicitResult>(answer) {
                Ok(result) => *again = give(desk, question, &result, *again),
                // Whatever it is, it is no yes.
                Err(_) => desk.unasked(&id),
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Option<Unanswerable>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn form(question: &Question, again: Option<Unanswerable>) -> Option<ElicitRequestParams> {
    let builder = ElicitationSchema::builder();
    let schema = match question.kind {
        QuestionKind::Confirmation => {
            let choices = ["no", "yes", "always"].map(str::to_owned).to_vec();
            let choice = EnumSchema::builder(choices)
                .title("Answer")
                .description("yes: this once; always: this exact action for the rest of the task; no: it is refused");
            builder.required_enum_schema(FIELD, choice.build()).build()
        }
        QuestionKind::Clarification => builder
            .optional_string_with(FIELD, |field| {
                field
                    .title("Answer")
                    .description("empty: artoo goes on as it thinks best")
            })
            .build(),
    };
    let text = &question.text;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: again.map_or_else(|| text.clone(), |why| format!("Asked again, since {why}.\n\n{text}")),
        requested_schema: schema.ok()?,
    })
}

/// What a filled-in form says. To accept it is not enough: the word itself must stand in it.
fn reply(kind: QuestionKind, result: &ElicitResult) -> Reply {
    let said = match &result.action {
        ElicitationAction::Accept => result.content.as_ref().and_then(|content| content.get(FIELD)),
        _ => None,
    };
    let said = said.and_then(Value::as_str);
    match kind {
        QuestionKind::Confirmation => match said {
            Some("yes") => Reply::Yes,
            Some("always") => Reply::Always,
            Some(_) | None => Reply::No,
        },
        QuestionKind::Clarification => said.map_or(Reply::No, |text| Reply::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_bus::{Hub, HubOptions, TokioClock};
    use artoo_protocol::message::{ConfirmationRequest, Consent, Message};
    use artoo_protocol::ports::Bus as _;
    use artoo_protocol::tool::EffectClass;
    use artoo_protocol::{Role, SubTaskId, Timestamp};
    use rmcp::{ClientHandler, ErrorData, RoleClient, ServerHandler, ServiceExt};
    use serde_json::json;
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    /// A client whose user is shown every form and stays away.
    struct Away(UnboundedSender<String>);

    impl ClientHandler for Away {
        async fn create_elicitation(
            &self,
            request: ElicitRequestParams,
            context: RequestContext<RoleClient>,
        ) -> Result<ElicitResult, ErrorData> {
            let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
                panic!("a form was expected")
            };
            self.0.send(message).unwrap();
            context.ct.cancelled().await;
            Ok(ElicitResult::new(ElicitationAction::Cancel))
        }
    }

    struct Served;

    impl ServerHandler for Served {}

    #[tokio::test(start_paused = true)]
    async fn a_question_has_its_hour_from_when_it_is_put_however_long_others_stand_before_it() {
        let begun = tokio::time::Instant::now();
        let hub = Hub::new(
            Arc::new(TokioClock::starting_at(Timestamp::from_millis(0))),
            HubOptions::default(),
        );
        let mut executor = hub.inbox(Role::R3).unwrap();
        let desk = Desk::alone(hub.clone());
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (shown, mut hears_shown) = unbounded_channel();
        let (server, client) = tokio::join!(Served.serve(ours), Away(shown).serve(theirs));
        let (server, _client) = (server.unwrap(), client.unwrap());
        let turn = Arc::default();
        for number in ["one", "two"] {
            let task = desk.begin(number, Person::There).unwrap();
            let request = ConfirmationRequest {
                request_id: number.into(),
                task_id: task.clone(),
                subtask_id: SubTaskId::new("s"),
                tool: "shell".into(),
                effect: EffectClass::Destroy,
                action: format!("rm {number}"),
                reason: "it deletes".into(),
                grant: None,
            };
            hub.publish(Role::R3, Some(&task), request.into()).unwrap();
            tokio::spawn(accompany(desk.clone(), server.peer().clone(), task, Arc::clone(&turn)));
        }
        for hours in [1, 2] {
            let said = executor.recv().await.unwrap();
            let Message::ConfirmationAnswer(answer) = &said.payload else {
                panic!("{said:?}")
            };
            assert_eq!(answer.consent, Consent::Nobody);
            let shown = hears_shown.recv().await.unwrap();
            assert!(shown.contains(&format!("rm {}", answer.request_id)), "{shown}");
            // A look every half minute, and no more.
            let minutes = begun.elapsed().as_secs() / 60;
            assert!(
                (60 * hours..60 * hours + 2).contains(&minutes),
                "{minutes} minutes for {hours}"
            );
        }
    }

    #[test]
    fn only_the_word_itself_in_an_accepted_form_is_a_yes() {
        let said = |action: &str, content: Value| {
            let result = serde_json::from_value(json!({"action": action, "content": content})).unwrap();
            reply(QuestionKind::Confirmation, &result)
        };
        assert_eq!(said("accept", json!({"answer": "yes"})), Reply::Yes);
        assert_eq!(said("accept", json!({"answer": "always"})), Reply::Always);
        for (action, content) in [
            ("accept", json!({})),
            ("accept", json!(null)),
            ("accept", json!("yes")),
            ("accept", json!({"answer": true})),
            ("accept", json!({"answer": "Yes, do it"})),
            ("accept", json!({"answer": "no"})),
            ("accept", json!({"confirm": "yes"})),
            ("decline", json!({"answer": "yes"})),
            ("cancel", json!({"answer": "always"})),
        ] {
            assert_eq!(said(action, content.clone()), Reply::No, "{action} {content}");
        }
        let strange = serde_json::from_value::<ElicitResult>(json!({"action": "yes"}));
        assert!(strange.is_err());
    }

    #[test]
    fn words_are_taken_from_an_accepted_form_only() {
        let said = |action: &str, content: Value| {
            let result = serde_json::from_value(json!({"action": action, "content": content})).unwrap();
            reply(QuestionKind::Clarification, &result)
        };
        assert_eq!(said("accept", json!({"answer": "src"})), Reply::Text("src".into()));
        assert_eq!(said("accept", json!({})), Reply::No);
        assert_eq!(said("decline", json!({"answer": "src"})), Reply::No);
    }
}

//! One role on its own: a value, events in, effects out. Whoever embeds it performs the effects as it likes.
//!
//! `cargo run -p artoo-perceiver --example step_by_step`

use artoo_perceiver::{Config, Perceiver};
use artoo_protocol::message::UserInput;
use artoo_protocol::model::{ModelContent, ModelReply, Usage};
use artoo_protocol::{Actor, Answer, Command, Envelope, EnvelopeId, Event, Message, Millis, Role, TaskId, Timestamp};
use serde_json::json;

fn main() {
    let mut perceiver = match Perceiver::new(&Config::default()) {
        Ok(perceiver) => perceiver,
        Err(error) => return eprintln!("{error}"),
    };
    // Time is an argument: the same events at the same times give the same effects, always.
    let now = Timestamp::from_millis(0);
    let input = UserInput {
        task_id: TaskId::new("input_1"),
        text: "wie viele Zeilen hat notes.md?".into(),
        history: Vec::new(),
        person_present: true,
        scope: Vec::new(),
    };
    let envelope = Envelope {
        id: EnvelopeId::new("1"),
        seq: 1,
        task_id: None,
        timestamp: now,
        from: Role::User,
        to: Role::R1,
        payload: Message::from(input),
    };
    let mut events = vec![Event::from(envelope)];
    while let Some(event) = events.pop() {
        for effect in perceiver.step(now, event) {
            match Command::from(effect) {
                // A language model would be asked here.
                Command::CallModel { task_id, call, request } => {
                    println!("asks a model with {} messages", request.messages.len());
                    let value = json!({
                        "slug": "count_lines", "intent": "zählen, wie viele Zeilen notes.md hat", "scope": null,
                        "deadline": null, "clarify": [], "direct_answer": null
                    });
                    let reply = ModelReply {
                        content: ModelContent::Structured { value },
                        model: "by hand".into(),
                        usage: Usage::default(),
                        elapsed_ms: Millis(0),
                    };
                    events.push(Event::Answer {
                        task_id,
                        call,
                        answer: Answer::Model(Ok(reply)),
                    });
                }
                Command::Publish { message, .. } => println!("says {message:#?}"),
                other => println!("wants {other:?}"),
            }
        }
    }
    println!("tasks still open: {}", perceiver.open_tasks());
}

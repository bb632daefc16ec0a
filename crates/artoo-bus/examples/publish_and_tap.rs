//! The bus with one role on it: a message goes in through the table of routes, the role answers, a tap sees both.
//!
//! `cargo run -p artoo-bus --example publish_and_tap`

use std::error::Error;
use std::sync::Arc;

use artoo_bus::runtime::Runtime;
use artoo_bus::{Hub, HubOptions, Limits, Meter, Ports, SystemClock, TapItem};
use artoo_protocol::message::{AuditQuery, DirectAnswer, UserInput};
use artoo_protocol::ports::Bus as _;
use artoo_protocol::{Actor, Command, Event, Message, Millis, Role, Slug, TaskId, Timestamp};

/// A role is a value with one transition. This one answers every input itself, by how many words it has.
struct WordCounter;

impl Actor for WordCounter {
    // A real role has an effect type of its own, which holds only what it may do.
    type Effect = Command;

    const ROLE: Role = Role::R1;

    fn step(&mut self, _now: Timestamp, event: Event) -> Vec<Command> {
        let Event::Message { envelope } = event else {
            return Vec::new();
        };
        let Message::UserInput(input) = envelope.payload else {
            return Vec::new();
        };
        let answer = DirectAnswer {
            task_id: input.task_id.clone(),
            slug: Slug::repair("count words"),
            intent: "count the words of the input".into(),
            answer: format!("{} words", input.text.split_whitespace().count()),
        };
        vec![Command::publish(&input.task_id, answer)]
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    fn open_tasks(&self) -> usize {
        0
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // With a `Journal` in the options every message would be on disk before anybody hears of it.
    let hub = Hub::new(Arc::new(SystemClock), HubOptions::default());
    // An observer: bounded, never in anybody's way, and told in its place when it missed something.
    let mut tap = hub.tap("example", 64);
    let runtime = Runtime::new(hub.clone(), Ports::default(), Limits::default(), Meter::unlimited()).spawn(WordCounter);

    let task = TaskId::new("input_0a1b2c3d");
    let input = UserInput {
        task_id: task.clone(),
        text: "a bus carries messages and knows nobody".into(),
        history: Vec::new(),
        person_present: false,
        scope: Vec::new(),
    };
    hub.publish(Role::User, Some(&task), input.into())?;
    // No row of the table allows this, so nobody hears of it, and it takes no number.
    match hub.publish(Role::R2, None, AuditQuery {}.into()) {
        Err(refused) => println!("refused: {refused}"),
        Ok(_) => return Err("a message without a route was published".into()),
    }
    hub.at_rest().await;
    while let Some(item) = tap.try_recv() {
        match item {
            TapItem::Envelope(said) => println!("{} {} → {}: {:?}", said.seq, said.from, said.to, said.payload),
            TapItem::Deed(deed) => println!("{} did {:?}", deed.role, deed.act),
            TapItem::Gap(gap) => println!("missed {gap}"),
        }
    }
    let report = runtime.shutdown(Millis::from_seconds(1)).await;
    println!("at rest: {}, tasks still open: {:?}", report.at_rest, report.open_tasks);
    Ok(())
}

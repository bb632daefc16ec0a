//! Shutting down loses nothing in silence.

use std::sync::{Arc, Mutex};

use artoo_bus::{OpenCall, Ports};
use artoo_protocol::message::{Lesson, Level, MacroState, Megram, MemoryQuery, MemoryReply, Potentials, SopRecord};
use artoo_protocol::ports::{Bus, MemoryError, MemoryService};
use artoo_protocol::{
    CallId, Command, DecayPerDay, Event, Magnitude, MegramId, Message, Millis, Role, Timestamp, Valence,
};
use async_trait::async_trait;

use crate::toys::{
    R2, R7, Toy, ToyModel, Turn, ask, final_result, is_message, named, provisional, runtime, say, stage, task_spec,
    tell, user_input,
};

#[derive(Default)]
pub struct ToyMemory(pub Mutex<(Vec<Megram>, bool)>);

#[async_trait]
impl MemoryService for ToyMemory {
    fn write(&self, megram: Megram) {
        let mut kept = self.0.lock().unwrap();
        assert!(!kept.1, "closed");
        kept.0.push(megram);
    }
    async fn query_c(&self, _: &str, _: &str) -> Result<Vec<SopRecord>, MemoryError> {
        Ok(Vec::new())
    }
    async fn query_mk(&self, _: &str, _: &str, _: Timestamp) -> Result<Potentials, MemoryError> {
        Ok(Potentials::default())
    }
    async fn query_k(&self, _: &str, _: &str, _: usize) -> Result<Vec<Lesson>, MemoryError> {
        Ok(Vec::new())
    }
    async fn recent(&self, _: &str, _: &str, _: usize) -> Result<Vec<Lesson>, MemoryError> {
        Ok(Vec::new())
    }
    async fn recall(&self, query: &MemoryQuery, _: Timestamp) -> Result<MemoryReply, MemoryError> {
        Ok(MemoryReply::empty(query.task_id.clone(), query.query))
    }
    fn record_negative_feedback(&self, _: &MegramId, _: &str, _: Timestamp) {}
    async fn flush(&self) -> Result<(), MemoryError> {
        Ok(())
    }
    async fn close(&self) -> Result<(), MemoryError> {
        self.0.lock().unwrap().1 = true;
        Ok(())
    }
}

pub fn megram(n: u64) -> Megram {
    Megram {
        id: MegramId::derive(Timestamp::from_millis(0), &named(), n),
        level: Level::M,
        created_at: Timestamp::from_millis(0),
        last_recalled_at: None,
        space: "tool:shell".into(),
        entity: "env:local".into(),
        content: "it worked".into(),
        state: MacroState::Accept,
        f: Magnitude::ONE,
        sigma: Valence::ZERO,
        k: DecayPerDay::ZERO,
        sources: Vec::new(),
        supersedes: None,
        origin: None,
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_remembered_is_stored_before_the_process_ends() {
    let stage = stage(None, 100);
    let memory = Arc::new(ToyMemory::default());
    let ports = Ports {
        memory: Some(memory.clone()),
        ..Ports::default()
    };
    let controller = Toy::<R7>::new(|_, event| {
        if is_message(event, |m| matches!(m, Message::TaskSpec(_))) {
            let mut said: Vec<Command> = vec![say(final_result())];
            said.extend((0..50).map(|n| say(megram(n).into())));
            said
        } else {
            Vec::new()
        }
    });
    let keeper = Toy::<5>::new(|_, event| match event {
        Event::Message { envelope } => match &envelope.payload {
            Message::Megram(megram) => vec![Command::Store { megram: megram.clone() }],
            _ => Vec::new(),
        },
        Event::Answer { .. } | Event::Wake => Vec::new(),
    });
    let runtime = runtime(&stage.hub, ports).spawn(controller).spawn(keeper);
    tell(&stage.hub, Role::User, user_input("x"));
    tell(&stage.hub, Role::R1, task_spec());
    // Not a moment is given to the roles before the shutdown.
    let report = runtime.shutdown(Millis(5_000)).await;
    assert!(report.at_rest && report.open_calls.is_empty() && report.broken_drivers.is_empty());
    assert_eq!(memory.0.lock().unwrap().0.len(), 50);
    assert!(memory.0.lock().unwrap().1, "closed");
    let refused = stage.hub.publish(Role::User, Some(&provisional()), user_input("more"));
    assert!(refused.is_err(), "nothing new is accepted");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_end_in_time_is_stopped_and_named() {
    let stage = stage(None, 100);
    let model = ToyModel::new([Turn::After(Millis(60_000))]);
    let ports = Ports {
        model: Some(model.clone()),
        ..Ports::default()
    };
    let planner = Toy::<R2>::new(|_, _| vec![ask(4)]);
    let runtime = runtime(&stage.hub, ports).spawn(planner);
    tell(&stage.hub, Role::R1, task_spec());
    let report = runtime.shutdown(Millis(5_000)).await;
    assert!(!report.at_rest);
    assert_eq!(report.open_tasks, [named()]);
    let open = OpenCall {
        role: Role::R2,
        task_id: named(),
        call: CallId(4),
        what: "model call",
    };
    assert_eq!(report.open_calls, [open]);
    stage.hub.at_rest().await;
}

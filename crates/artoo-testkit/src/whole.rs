//! All eight roles put together as a program would do it, and their decisions derived once more from a journal (design §2, §17).
//!
//! Owns the composition for tests. The auditor only observes and has no part in a run, so it is left out.

mod wrongs;

use std::collections::BTreeSet;
use std::sync::Arc;

use artoo_bus::journal::read;
use artoo_bus::{Budget, Difference, Meter, Runtime, recover_role, replay_role};
use artoo_executor::{Executor, Settings as ExecutorSettings};
use artoo_ggs::{Controller, Params};
use artoo_memory::MemoryActor;
use artoo_perceiver::Perceiver;
use artoo_planner::{Limits, Planner};
use artoo_protocol::journal::Record;
use artoo_protocol::message::{ConfirmationRequest, Consent, FinalResult, UserInput};
use artoo_protocol::prompt::PromptError;
use artoo_protocol::{Actor, CallId, Event, Message, Millis, Role, TaskId, Timestamp};
use artoo_validators::{AgentValidator, MetaValidator, agent, meta};
use serde_json::json;

use crate::journal::Journals;
use crate::machine;
use crate::prices::price;
use crate::sabotage::Saboteur;
use crate::scene::Scene;
use crate::world::World;

pub use wrongs::{not_the_same, wrongs, wrongs_at_rest, wrongs_of_journals};

/// The settings of a system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// The controller's.
    pub params: Params,
    /// The planner's.
    pub limits: Limits,
    /// Hard limit of tokens.
    pub max_tokens: Option<u64>,
    /// Hard limit of money, in cents.
    pub max_cost: Option<f64>,
}

impl Settings {
    /// A meter on which nothing is counted yet.
    pub fn meter(&self) -> Meter {
        let budget = Budget {
            max_tokens: self.max_tokens,
            max_cost: self.max_cost,
        };
        Meter::new(budget, Arc::new(price))
    }
}

/// Nine in the morning of a Friday.
pub fn morning() -> Timestamp {
    Timestamp::from_millis(1_772_182_800_000)
}

/// The whole system in these surroundings.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn system(settings: &Settings, scene: Scene) -> Result<World<Scene>, PromptError> {
    let mut world = World::new(morning(), scene).metered(settings.meter());
    let limits = json!({"max_tokens": settings.max_tokens, "max_cost": settings.max_cost});
    world.journals = Journals::default().opened_with(limits);
    seat(settings, &mut world)?;
    Ok(world)
}

/// Another process begins at `now`, with nothing to go on with.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn begin_anew(settings: &Settings, world: &mut World<Scene>, now: Timestamp) -> Result<(), PromptError> {
    world.begin_anew(now, settings.meter());
    seat(settings, world)
}

fn seat(settings: &Settings, world: &mut World<Scene>) -> Result<(), PromptError> {
    world.seat(perceiver()?);
    world.seat(planner(settings)?);
    world.seat(executor());
    world.seat(agent_validator());
    world.seat(meta_validator(settings));
    world.seat(MemoryActor::new());
    world.seat(controller(settings));
    Ok(())
}

/// Puts the whole system on the runtime that programs use.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn host(settings: &Settings, runtime: Runtime) -> Result<Runtime, PromptError> {
    Ok(runtime
        .spawn(perceiver()?)
        .spawn(planner(settings)?)
        .spawn(executor())
        .spawn(agent_validator())
        .spawn(meta_validator(settings))
        .spawn(MemoryActor::new())
        .spawn(controller(settings)))
}

/// Puts roles on the runtime that programs use which go on where a journal ends; what was cut off is not done again.
///
/// # Errors
/// In words, when an embedded prompt is broken or a role cannot be recovered from the journal.
pub fn host_again(settings: &Settings, runtime: Runtime, records: &[Record]) -> Result<Runtime, String> {
    fn hosted<A: Actor>(runtime: Runtime, actor: A, records: &[Record]) -> Result<Runtime, String> {
        let mut recovered = recover_role(actor, records).map_err(|difference| cannot_go_on(&difference))?;
        recovered.settle(&BTreeSet::new());
        let (actor, start) = recovered.into_start();
        Ok(runtime.resume(actor, start))
    }
    let broken = |error: PromptError| error.to_string();
    let runtime = hosted(runtime, perceiver().map_err(broken)?, records)?;
    let runtime = hosted(runtime, planner(settings).map_err(broken)?, records)?;
    let runtime = hosted(runtime, executor(), records)?;
    let runtime = hosted(runtime, agent_validator(), records)?;
    let runtime = hosted(runtime, meta_validator(settings), records)?;
    let runtime = hosted(runtime, MemoryActor::new(), records)?;
    hosted(runtime, controller(settings), records)
}

fn perceiver() -> Result<Perceiver, PromptError> {
    Perceiver::new(&artoo_perceiver::Config::default())
}

fn planner(settings: &Settings) -> Result<Planner, PromptError> {
    Planner::new(artoo_planner::Config {
        tools: machine::tools(),
        limits: settings.limits,
        ..artoo_planner::Config::default()
    })
}

fn executor() -> Executor {
    Executor::new(ExecutorSettings::new(machine::tools()))
}

fn agent_validator() -> AgentValidator {
    AgentValidator::new(agent::Config::default(), agent::Prompts::default())
}

fn meta_validator(settings: &Settings) -> MetaValidator {
    let config = meta::Config {
        max_replans: settings.params.max_replans,
        ..meta::Config::default()
    };
    MetaValidator::new(config, meta::Prompts::default())
}

fn controller(settings: &Settings) -> Controller {
    let offered = machine::tools().into_iter().map(|tool| tool.name).collect();
    Controller::new(settings.params).with_tools(offered)
}

/// What the person says about an action that was begun and of which nobody knows whether it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It is left as it is.
    Leave,
    /// It is done again.
    DoAgain,
}

/// The process dies, some time passes, and another one takes the task up.
///
/// # Errors
/// In words, when an embedded prompt is broken or a role cannot be recovered from the journal.
pub fn crash_and_resume(
    settings: &Settings,
    world: &mut World<Scene>,
    task: &TaskId,
    back_at: Timestamp,
    unknown: Unknown,
) -> Result<(), String> {
    world.crash();
    let settled = settled(world.journals.records(task), unknown)?;
    let records = world.take_up(task, back_at, &settled);
    let forgets = world.saboteur.as_ref().is_some_and(Saboteur::forgets_spending);
    world.restore(settings.meter(), if forgets { &[] } else { &records });
    let broken = |error: PromptError| error.to_string();
    go_on(world, perceiver().map_err(broken)?, &records, unknown)?;
    go_on(world, planner(settings).map_err(broken)?, &records, unknown)?;
    go_on(world, executor(), &records, unknown)?;
    go_on(world, agent_validator(), &records, unknown)?;
    go_on(world, meta_validator(settings), &records, unknown)?;
    go_on(world, MemoryActor::new(), &records, unknown)?;
    go_on(world, controller(settings), &records, unknown)?;
    world.begin_again();
    Ok(())
}

/// What the person is asked before a task goes on, as the program asks it, and what they say.
fn settled(records: &[Record], unknown: Unknown) -> Result<Vec<(ConfirmationRequest, Consent)>, String> {
    let recovered = recover_role(executor(), records).map_err(|difference| cannot_go_on(&difference))?;
    let task = read::task_id(records).filter(|_| !recovered.aborted);
    let asked = task.into_iter().flat_map(|task| {
        recovered
            .unsettled()
            .map(|(call, invocation, permit)| ConfirmationRequest {
                request_id: format!("resume-{call}"),
                task_id: task.clone(),
                subtask_id: invocation.subtask_id.clone(),
                tool: invocation.tool.clone(),
                effect: permit.effect,
                action: format!("{} {}", invocation.tool, invocation.input),
                reason: "it was interrupted".to_owned(),
                grant: None,
            })
    });
    let consent = match unknown {
        Unknown::Leave => Consent::No,
        Unknown::DoAgain => Consent::Yes,
    };
    Ok(asked.map(|request| (request, consent)).collect())
}

fn cannot_go_on(difference: &Difference) -> String {
    let (was, is) = (&difference.recorded, &difference.produced);
    format!("cannot go on: {difference}; recorded {was:?}; now {is:?}")
}

fn go_on<A: Actor>(world: &mut World<Scene>, actor: A, records: &[Record], unknown: Unknown) -> Result<(), String> {
    let mut recovered = recover_role(actor, records).map_err(|difference| cannot_go_on(&difference))?;
    let again: BTreeSet<CallId> = match unknown {
        Unknown::Leave => BTreeSet::new(),
        Unknown::DoAgain => recovered.unsettled().map(|(call, _, _)| call).collect(),
    };
    if let Some(task) = &recovered.task {
        world.allow_again(task, &again);
    }
    if !world.saboteur.as_ref().is_some_and(Saboteur::repeats) {
        recovered.settle(&again);
    }
    world.resume(recovered);
    Ok(())
}

/// Where fresh roles decide otherwise than the records of one task say.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn replayed(settings: &Settings, records: &[Record]) -> Result<Vec<Difference>, PromptError> {
    let replays = [
        replay_role(perceiver()?, records),
        replay_role(planner(settings)?, records),
        replay_role(executor(), records),
        replay_role(agent_validator(), records),
        replay_role(meta_validator(settings), records),
        replay_role(MemoryActor::new(), records),
        replay_role(controller(settings), records),
    ];
    Ok(replays.into_iter().filter_map(Result::err).collect())
}

/// Hands an event to a fresh role of each kind.
pub fn every_role_takes(event: &Event) {
    fn takes<A: Actor>(mut actor: A, event: &Event) {
        let _ = actor.step(morning(), event.clone());
        let _ = actor.step(morning().plus(PATIENCE), Event::Wake);
        let _ = actor.deadline();
    }
    let settings = Settings::default();
    if let (Ok(perceiver), Ok(planner)) = (perceiver(), planner(&settings)) {
        takes(perceiver, event);
        takes(planner, event);
    }
    takes(executor(), event);
    takes(agent_validator(), event);
    takes(meta_validator(&settings), event);
    takes(MemoryActor::new(), event);
    takes(controller(&settings), event);
}

/// The input of the `number`-th task, with someone there or not.
pub fn input(number: u32, text: &str, person_present: bool) -> UserInput {
    UserInput {
        task_id: TaskId::new(format!("input_{number:08x}")),
        text: text.to_owned(),
        history: Vec::new(),
        person_present,
        scope: Vec::new(),
    }
}

/// Everything said about one task, under whichever of its names.
pub fn said<'a>(world: &'a World<Scene>, task: &'a TaskId) -> impl Iterator<Item = (Role, &'a Message)> {
    let about = |id: &TaskId| id.suffix() == task.suffix();
    world
        .log
        .iter()
        .filter(move |envelope| envelope.task_id.as_ref().is_some_and(about))
        .map(|envelope| (envelope.from, &envelope.payload))
}

/// How a task ended, if it did.
pub fn end<'a>(world: &'a World<Scene>, task: &'a TaskId) -> Option<&'a FinalResult> {
    said(world, task).find_map(|(_, message)| match message {
        Message::FinalResult(result) => Some(result),
        _ => None,
    })
}

/// The names of the tools that there are.
pub fn offered() -> Vec<String> {
    machine::tools().into_iter().map(|tool| tool.name).collect()
}

/// Long enough for any run of these tests to come to rest by itself.
pub const PATIENCE: Millis = Millis::from_seconds(24 * 3600);

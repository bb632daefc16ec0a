//! All eight roles put together as a program would do it, and their decisions derived once more from a journal (design §2, §17).
//!
//! Owns the composition for tests. The auditor only observes and has no part in a run, so it is left out.

use std::collections::BTreeSet;

use artoo_bus::{Difference, Runtime, recover_role, replay_role};
use artoo_executor::{Executor, Settings as ExecutorSettings};
use artoo_ggs::{Controller, Params};
use artoo_memory::MemoryActor;
use artoo_perceiver::Perceiver;
use artoo_planner::{Limits, Planner};
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::{FinalResult, UserInput};
use artoo_protocol::prompt::PromptError;
use artoo_protocol::tool::{EffectClass, Permit};
use artoo_protocol::{Actor, Command, Message, Millis, Role, TaskId, Timestamp};
use artoo_validators::{AgentValidator, MetaValidator, agent, meta};

use crate::laws;
use crate::machine;
use crate::scene::Scene;
use crate::world::World;

/// The settings of a system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// The controller's.
    pub params: Params,
    /// The planner's.
    pub limits: Limits,
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
    Ok(World::new(morning(), scene)
        .with(perceiver()?)
        .with(planner(settings)?)
        .with(executor())
        .with(agent_validator())
        .with(meta_validator(settings))
        .with(MemoryActor::new())
        .with(controller(settings)))
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

/// The process dies, some time passes, and another one takes the task up. Nobody says yes to doing anything again whose
/// outcome is not known.
///
/// # Errors
/// In words, when an embedded prompt is broken or a role cannot be recovered from the journal.
pub fn crash_and_resume(
    settings: &Settings,
    world: &mut World<Scene>,
    task: &TaskId,
    back_at: Timestamp,
) -> Result<(), String> {
    world.crash();
    let records = world.take_up(task, back_at);
    let broken = |error: PromptError| error.to_string();
    go_on(world, perceiver().map_err(broken)?, &records)?;
    go_on(world, planner(settings).map_err(broken)?, &records)?;
    go_on(world, executor(), &records)?;
    go_on(world, agent_validator(), &records)?;
    go_on(world, meta_validator(settings), &records)?;
    go_on(world, MemoryActor::new(), &records)?;
    go_on(world, controller(settings), &records)?;
    world.begin_again();
    Ok(())
}

fn go_on<A: Actor>(world: &mut World<Scene>, actor: A, records: &[Record]) -> Result<(), String> {
    let mut recovered = recover_role(actor, records).map_err(|difference| {
        let (was, is) = (&difference.recorded, &difference.produced);
        format!("cannot go on: {difference}; recorded {was:?}; now {is:?}")
    })?;
    recovered.settle(&BTreeSet::new());
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

/// Everything that is wrong with a world at rest: laws broken, state left behind, decisions that a replay does not give.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn wrongs(settings: &Settings, world: &World<Scene>) -> Result<Vec<String>, PromptError> {
    let mut wrongs = world.faults.clone();
    let offered: Vec<String> = machine::tools().into_iter().map(|tool| tool.name).collect();
    for (suffix, records) in world.journals.all() {
        let broken = laws::broken(records, &offered);
        wrongs.extend(broken.into_iter().map(|wrong| format!("task {suffix}: {wrong}")));
        for difference in replayed(settings, records)? {
            let (was, is) = (&difference.recorded, &difference.produced);
            wrongs.push(format!(
                "task {suffix}: replay: {difference}; recorded {was:?}; now {is:?}"
            ));
        }
    }
    let lasts = |permit: &Permit| permit.effect > EffectClass::Create;
    let made = world
        .surroundings
        .machine
        .made
        .iter()
        .filter(|(_, permit)| lasts(permit))
        .count();
    let intended = world.journals.all().flat_map(|(_, records)| records).filter(|record| {
        matches!(&record.entry, Entry::Commanded { command: Command::RunTool { permit, .. }, .. } if lasts(permit))
    });
    if made > intended.count() {
        wrongs.push("an action that cannot be taken back was done twice".to_owned());
    }
    let all_ended = world.journals.all().all(|(_, records)| laws::has_end(records));
    if all_ended && world.open_tasks() > 0 {
        wrongs.push(format!("{} states are left behind", world.open_tasks()));
    }
    Ok(wrongs)
}

/// Long enough for any run of these tests to come to rest by itself.
pub const PATIENCE: Millis = Millis::from_seconds(24 * 3600);

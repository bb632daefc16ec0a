//! The settings of all roles: what decisions depend on besides the messages, and so a part of every journal (design §17).
//!
//! Owns the way from these settings to the roles, for a new run, a replay and a resumed one alike. Decides nothing itself.

use std::collections::BTreeSet;

use artoo_bus::{Difference, Runtime, recover_role, replay_role};
use artoo_executor::{Executor, classify};
use artoo_ggs::Controller;
use artoo_memory::MemoryActor;
use artoo_perceiver::Perceiver;
use artoo_planner::Planner;
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::Check;
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{Actor, CallId};
use artoo_validators::{AgentValidator, MetaValidator};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::resume::Unfinished;

/// Everything that the roles are built from; the first record of a journal holds it whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleSettings {
    /// R1.
    pub perceiver: artoo_perceiver::Config,
    /// R2.
    pub planner: artoo_planner::Config,
    /// R3.
    pub executor: artoo_executor::Settings,
    /// R4a.
    pub agent_validator: Validator<artoo_validators::agent::Config, artoo_validators::agent::Prompts>,
    /// R4b.
    pub meta_validator: Validator<artoo_validators::meta::Config, artoo_validators::meta::Prompts>,
    /// R7.
    pub controller: artoo_ggs::Params,
}

/// A validator's limits and its fixed text.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Validator<C: Default, P: Default> {
    /// Limits.
    pub limits: C,
    /// Fixed text.
    pub prompts: P,
}

impl RoleSettings {
    /// The settings that a journal was made with.
    ///
    /// # Errors
    /// In words that follow the journal's name, when its first record does not hold them.
    pub fn of_journal(records: &[Record]) -> Result<Self, String> {
        let Some(Entry::Opened { settings, artoo, .. }) = records.first().map(|record| &record.entry) else {
            return Err("has no first record".to_owned());
        };
        let roles = settings.get("roles").ok_or_else(|| {
            format!(
                "does not hold the settings of its roles in its first record: artoo {artoo}, which made it, did not write them down, or somebody changed it"
            )
        })?;
        serde_json::from_value(roles.clone())
            .map_err(|error| format!("is damaged in line 1: the settings of its roles cannot be read: {error}"))
    }

    /// Builds every role and hands it over: the one list of the roles that a process has.
    ///
    /// # Errors
    /// [`Failure`] when a prompt is broken, or what the host says.
    fn each(&self, host: &mut impl Host) -> Result<(), Failure> {
        let tools = self.executor.tools.iter().map(|tool| tool.name.clone()).collect();
        let (agent, meta) = (&self.agent_validator, &self.meta_validator);
        host.take(Perceiver::new(&self.perceiver).map_err(broken)?)?;
        let planner = artoo_planner::Config {
            check_fault: artoo_planner::CheckFault::by(more_than_a_read),
            ..self.planner.clone()
        };
        host.take(Planner::new(planner).map_err(broken)?)?;
        host.take(Executor::new(self.executor.clone()))?;
        host.take(AgentValidator::new(agent.limits, agent.prompts.clone()))?;
        host.take(MetaValidator::new(meta.limits, meta.prompts.clone()))?;
        host.take(MemoryActor::new())?;
        host.take(Controller::new(self.controller).with_tools(tools))
    }

    /// Puts fresh roles on the bus.
    ///
    /// # Errors
    /// [`Failure`] when a prompt is broken.
    pub fn spawn(&self, runtime: Runtime) -> Result<Runtime, Failure> {
        let mut host = Spawning(Some(runtime));
        self.each(&mut host)?;
        host.0.ok_or_else(|| Failure::failed("the roles could not be started"))
    }

    /// Feeds a journal to fresh roles; the differences found, at most one a role, by record.
    ///
    /// # Errors
    /// [`Failure`] when a prompt is broken.
    pub fn replay(&self, records: &[Record]) -> Result<Vec<Difference>, Failure> {
        let mut host = Replaying {
            records,
            differences: Vec::new(),
        };
        self.each(&mut host)?;
        host.differences.sort_by_key(|difference| difference.n);
        Ok(host.differences)
    }

    /// Puts roles on the bus that go on where a journal ends. Of the actions that cannot be taken back and whose result is
    /// not known, those in `again` are done again; of the others the executor hears that nobody knows.
    ///
    /// # Errors
    /// [`Failure`] when a role would decide differently now, or a prompt is broken.
    pub fn resume(&self, runtime: Runtime, records: &[Record], again: &BTreeSet<CallId>) -> Result<Runtime, Failure> {
        let mut host = Resuming {
            runtime: Some(runtime),
            records,
            again,
        };
        self.each(&mut host)?;
        host.runtime
            .ok_or_else(|| Failure::failed("the roles could not be started"))
    }

    /// The actions that cannot be taken back, that were begun, and whose result a journal does not hold.
    ///
    /// # Errors
    /// [`Failure`] when the executor would decide differently now.
    pub fn unfinished(&self, records: &[Record]) -> Result<Vec<Unfinished>, Failure> {
        let recovered = recover_role(Executor::new(self.executor.clone()), records).map_err(|e| changed(&e))?;
        if recovered.aborted {
            return Ok(Vec::new());
        }
        let unfinished = recovered.unsettled().map(|(call, invocation, permit)| Unfinished {
            call,
            invocation: invocation.clone(),
            permit,
        });
        Ok(unfinished.collect())
    }
}

fn changed(difference: &Difference) -> Failure {
    Failure::failed(format!("the task cannot go on: {difference}"))
        .hint("artoo replay shows the difference; the version of artoo that began the task can finish it")
}

/// Why a check's command is not run: a check only reads. By the command's words alone, so that a replay says the same.
fn more_than_a_read(check: &Check) -> Option<String> {
    let Check::CommandSucceeds { command } = check else {
        return None;
    };
    let class = classify(command);
    (class.effect > EffectClass::Read || !class.writes.is_empty()).then(|| {
        "a check may only read, and its command could do more; check the state of the world instead".to_owned()
    })
}

trait Host {
    fn take<A: Actor>(&mut self, actor: A) -> Result<(), Failure>;
}

struct Spawning(Option<Runtime>);

impl Host for Spawning {
    fn take<A: Actor>(&mut self, actor: A) -> Result<(), Failure> {
        self.0 = self.0.take().map(|runtime| runtime.spawn(actor));
        Ok(())
    }
}

struct Replaying<'a> {
    records: &'a [Record],
    differences: Vec<Difference>,
}

impl Host for Replaying<'_> {
    fn take<A: Actor>(&mut self, actor: A) -> Result<(), Failure> {
        self.differences.extend(replay_role(actor, self.records).err());
        Ok(())
    }
}

struct Resuming<'a> {
    runtime: Option<Runtime>,
    records: &'a [Record],
    again: &'a BTreeSet<CallId>,
}

impl Host for Resuming<'_> {
    fn take<A: Actor>(&mut self, actor: A) -> Result<(), Failure> {
        let mut recovered = recover_role(actor, self.records).map_err(|e| changed(&e))?;
        recovered.settle(self.again);
        let (actor, start) = recovered.into_start();
        self.runtime = self.runtime.take().map(|runtime| runtime.resume(actor, start));
        Ok(())
    }
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("a prompt is broken: {error}"))
}

//! The wiring: which adapters stand behind which ports, and which roles sit on the bus (design §2, §20).
//!
//! Owns construction and shutdown. Decides nothing that a role decides.

use std::path::PathBuf;
use std::sync::Arc;

use artoo_bus::journal::{Redactor, read};
use artoo_bus::{FolderShelf, Hub, HubOptions, Journal, JournalOptions, Limits, Notice, Ports, Runtime, SystemClock};
use artoo_executor::{Grant, Places, Sandbox, ToolSettings, Tools, UndoStore, WebSettings};
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::ports::{CheckRunner, Clock, LanguageModel, MemoryService, Toolbox};
use artoo_protocol::secret::is_secret_variable;
use artoo_protocol::{Envelope, Message, Millis};
use artoo_validators::WorldChecks;
use artoo_validators::checks::WorldConfig;
use serde_json::json;

use crate::auditing::Auditing;
use crate::commands::tasks::envelopes;
use crate::data_folder::DataFolder;
use crate::dreaming::{Dreaming, Wiring};
use crate::failure::Failure;
use crate::late_memory::LateMemory;
use crate::resume::{Interrupted, Settled};
use crate::role_settings::role_settings;
use crate::roles::RoleSettings;
use crate::settings::{self, Environment, ModelChoice, Settings};
use crate::signals::Signals;
use crate::spending::{meter, price};
use crate::standing::{self, Telling};
use crate::traces::Traces;
use crate::{models, output, prompts};

/// Folder of the data folder for outputs that are too long for a message.
pub const OUTPUTS: &str = "outputs";
/// How long a shutdown waits for what is under way.
const GRACE: Millis = Millis(1_000);

/// A running artoo.
pub struct System {
    runtime: Runtime,
    auditing: Auditing,
    memory: Option<Arc<LateMemory>>,
    dreaming: Option<Dreaming>,
    traces: Option<Traces>,
    scope: Vec<String>,
    time_budget: Millis,
    _data: DataFolder,
}

impl System {
    /// Starts everything.
    ///
    /// # Errors
    /// [`Failure`] (exit 2) when the data folder cannot be used or a setting makes no sense.
    pub async fn start(settings: &Settings, env: &Environment, quiet: bool) -> Result<Self, Failure> {
        let grants = settings
            .allow
            .iter()
            .map(|text| Grant::parse(text))
            .collect::<Result<Vec<_>, _>>();
        let grants = grants
            .map_err(|e| Failure::usage(e.to_string()).hint("write --allow EFFECT:GLOB, such as modify:/srv/site/*"))?;
        // Before anything is made on the disk.
        let model = models::build(settings, quiet)?;
        // Before the tools: a second artoo starts no servers.
        let data = DataFolder::open(&settings.data_dir, SystemClock.now())?;
        let surroundings = Surroundings::of(settings, env, quiet, model, data, grants.clone()).await;
        let mut roles = role_settings(settings, env, grants, surroundings.tools.specs());
        let own = prompts::replace(&mut roles, &settings.data_dir)?;
        if !own.is_empty() && !quiet {
            output::note(&format!("artoo: prompts of your own: {}", own.join(", ")));
        }
        roles.planner.standing = standing::of_folder(&settings.cwd, telling(settings, quiet));
        let journal = surroundings.journal(settings, env, &roles)?;
        surroundings.host(settings, env, journal, 1, |runtime| roles.spawn(runtime))
    }

    /// Starts everything where an interrupted task stopped, in the data folder that was taken for it, as it was settled with the person.
    /// What the tools hold a command to is what the task was allowed, whatever today's settings say.
    ///
    /// # Errors
    /// [`Failure`] when the data folder cannot be used or the task cannot go on.
    pub async fn resume(
        settings: &Settings,
        env: &Environment,
        quiet: bool,
        data: DataFolder,
        task: &Interrupted,
        settled: &Settled,
    ) -> Result<Self, Failure> {
        let model = models::build(settings, quiet)?;
        let surroundings = Surroundings::of(settings, env, quiet, model, data, task.grants()).await;
        let journal = surroundings.journal(settings, env, &task.roles)?;
        let records = journal
            .resume(task.task_id(), &settled.told)
            .map_err(|e| Failure::failed(e.to_string()))?;
        let first_seq = read::last_seq(&records) + 1;
        surroundings.host(settings, env, journal, first_seq, |runtime| {
            for record in &records {
                if let Entry::Answered { answer, .. } = &record.entry
                    && let Some((model, usage)) = answer.spent()
                {
                    let meter = runtime.shell().meter();
                    meter.restore(task.task_id(), model, usage);
                }
            }
            // They were written before there was a bus; observers hear of them before anything that follows.
            said_on_resuming(&records).for_each(|envelope| runtime.shell().hub().show(envelope));
            task.roles.resume(runtime, &records, &settled.again)
        })
    }

    /// The bus.
    pub fn hub(&self) -> &Hub {
        self.runtime.shell().hub()
    }

    /// Paths that the caller allowed.
    pub fn scope(&self) -> Vec<String> {
        self.scope.clone()
    }

    /// How long a task may run.
    pub const fn time_budget(&self) -> Millis {
        self.time_budget
    }

    /// The memory, unless artoo runs without.
    pub fn memory(&self) -> Option<Arc<LateMemory>> {
        self.memory.clone()
    }

    /// Takes everything down in order and says what could not be saved. Dreams are cut short by a signal and last no longer than
    /// [`LAST_DREAM`](crate::dreaming::LAST_DREAM).
    pub async fn shutdown(self, signals: &mut Signals) {
        if let Some(dreaming) = self.dreaming {
            // Who presses Ctrl+C, or shuts the machine down, does not wait for dreams.
            if signals.pressing() {
                dreaming.give_up();
            } else {
                // What the last task taught is written before it is dreamt of.
                let _ = tokio::time::timeout(GRACE.to_duration(), self.runtime.shell().hub().at_rest()).await;
                tokio::select! {
                    () = dreaming.finish() => {}
                    _ = signals.next() => {}
                }
            }
        }
        let report = self.runtime.shutdown(GRACE).await;
        self.auditing.finish().await;
        if let Some(traces) = self.traces {
            traces.finish().await;
        }
        for broken in &report.broken_drivers {
            output::note(&format!("artoo: internal error: {broken}"));
        }
        if let Err(error) = report.memory {
            output::note(&format!("artoo: {error}"));
        }
        if let Err(error) = report.journal {
            output::note(&format!("artoo: {error}"));
        }
    }
}

/// The messages that were written down when the task was taken up this time.
fn said_on_resuming(records: &[Record]) -> impl Iterator<Item = &Envelope> {
    let is_first = |record: &Record| {
        envelopes(std::slice::from_ref(record)).any(|said| matches!(said.payload, Message::TaskResumed(_)))
    };
    let from = records.iter().rposition(is_first).unwrap_or(records.len());
    envelopes(records.get(from..).unwrap_or_default())
}

const fn telling(settings: &Settings, quiet: bool) -> Telling {
    match (quiet, settings.verbose) {
        (true, _) => Telling::Nothing,
        (false, false) => Telling::ThatItIs,
        (false, true) => Telling::All,
    }
}

/// The model that words rules: none where there is only the offline model, which generalises nothing, and none in a replay, whose
/// recording knows nothing of dreams.
pub fn dreams_by(settings: &Settings, model: &Arc<dyn LanguageModel>) -> Option<Arc<dyn LanguageModel>> {
    match &settings.brain {
        ModelChoice::Endpoint { .. } if settings.replay.is_none() => Some(Arc::clone(model)),
        ModelChoice::Endpoint { .. } | ModelChoice::Offline => None,
    }
}

/// What the roles act through, made before any of them.
struct Surroundings {
    clock: Arc<dyn Clock>,
    model: Arc<dyn LanguageModel>,
    tools: Arc<dyn Toolbox>,
    checks: Arc<dyn CheckRunner>,
    data: DataFolder,
    quiet: bool,
}

impl Surroundings {
    async fn of(
        settings: &Settings,
        env: &Environment,
        quiet: bool,
        model: Arc<dyn LanguageModel>,
        data: DataFolder,
        grants: Vec<Grant>,
    ) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (tools, checks) = tools(settings, env, grants).await;
        Self {
            clock,
            model,
            tools,
            checks,
            data,
            quiet,
        }
    }

    fn journal(&self, settings: &Settings, env: &Environment, roles: &RoleSettings) -> Result<Journal, Failure> {
        journal(settings, env, roles, &self.data, &self.clock)
    }

    /// Puts bus, memory and auditor around the roles.
    fn host(
        self,
        settings: &Settings,
        env: &Environment,
        journal: Journal,
        first_seq: u64,
        roles: impl FnOnce(Runtime) -> Result<Runtime, Failure>,
    ) -> Result<System, Failure> {
        let observer = |notice: &Notice| output::note(&format!("artoo: {notice}"));
        let options = HubOptions {
            journal: Some(journal),
            observer: Arc::new(observer),
            first_seq,
            ..HubOptions::default()
        };
        let hub = Hub::new(Arc::clone(&self.clock), options);
        let (memory, dreaming) = if settings.no_memory {
            (None, None)
        } else {
            let (memory, written) = LateMemory::open(self.data.path(), self.clock, redactor(settings, env));
            let memory = Arc::new(memory);
            let dreaming = Dreaming::start(Wiring {
                hub: hub.clone(),
                memory: Arc::clone(&memory),
                written,
                model: dreams_by(settings, &self.model),
                max_tokens: settings.max_tokens,
                max_cost: settings.max_cost,
                price: price(settings),
                data: self.data.path().to_owned(),
                redactor: redactor(settings, env),
                quiet: self.quiet,
            });
            (Some(memory), Some(dreaming))
        };
        let traces = Traces::start(settings, &hub);
        let auditing = Auditing::start(self.data.path(), &hub, redactor(settings, env), settings.audit_period)?;
        let outputs = FolderShelf::new(self.data.path().join(OUTPUTS), redactor(settings, env));
        let ports = Ports {
            model: Some(self.model),
            toolbox: Some(self.tools),
            checks: Some(self.checks),
            memory: memory.clone().map(|memory| memory as Arc<dyn MemoryService>),
            shelf: Some(Arc::new(outputs)),
        };
        let runtime = roles(Runtime::new(hub, ports, Limits::default(), meter(settings)))?;
        let scope = settings.scope.iter().map(|path| path.to_string_lossy().into_owned());
        Ok(System {
            runtime,
            auditing,
            memory,
            dreaming,
            traces,
            scope: scope.collect(),
            time_budget: settings.time_budget,
            _data: self.data,
        })
    }
}

/// The tools that R3 is offered, those of MCP servers among them. A server that does not work is named and left out. The grants are those
/// that R3 decides by: what was allowed for its paths alone is confined to them.
pub async fn toolbox(settings: &Settings, env: &Environment, sandbox: &Sandbox, grants: Vec<Grant>) -> Tools {
    let places = Places {
        home: home(env).unwrap_or_else(|| settings.cwd.clone()),
        cwd: settings.cwd.clone(),
        workspace: settings.workspace.clone(),
        own: Some(settings.data_dir.clone()),
    };
    let environment: Vec<_> = std::env::vars_os().collect();
    let built_in = Tools::built_in(&ToolSettings {
        places,
        web: Some(WebSettings::from_environment(&environment)),
        undo: Some(Arc::new(UndoStore::new(settings.data_dir.join("undo")))),
        environment,
        command_limit: std::time::Duration::from_secs(120),
        sandbox: sandbox.clone(),
        grants,
    });
    let (more, reports) = artoo_executor::mcp::start(settings.mcp.clone(), sandbox).await;
    for report in reports {
        if let Err(why) = report.tools {
            output::note(&format!("artoo: the MCP server {} does not work: {why}", report.name));
        }
    }
    built_in.and(more)
}

fn home(env: &Environment) -> Option<PathBuf> {
    env.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// The tools, and the checks that look at the same world.
async fn tools(settings: &Settings, env: &Environment, grants: Vec<Grant>) -> (Arc<dyn Toolbox>, Arc<dyn CheckRunner>) {
    let sandbox = Sandbox::of_this_program();
    let tools: Arc<dyn Toolbox> = Arc::new(toolbox(settings, env, &sandbox, grants).await);
    let world = WorldConfig::new(settings.cwd.clone(), settings.workspace.clone(), home(env));
    let mask = artoo_executor::Mask::of_environment(&std::env::vars_os().collect::<Vec<_>>());
    let mask = Arc::new(move |text: &str| mask.text(text));
    let unheld = Arc::new(move || sandbox.absent().map(str::to_owned));
    let checks = WorldChecks::new(world, Arc::clone(&tools))
        .masked_by(mask)
        .unless(unheld);
    (tools, Arc::new(checks))
}

fn journal(
    settings: &Settings,
    env: &Environment,
    roles: &RoleSettings,
    data: &DataFolder,
    clock: &Arc<dyn Clock>,
) -> Result<Journal, Failure> {
    let mut options = JournalOptions::new(Arc::clone(clock));
    env!("CARGO_PKG_VERSION").clone_into(&mut options.program);
    options.settings = json!({
        "brain": settings.brain.to_string(), "tool": settings.tool.to_string(),
        "judge": settings.judges.own.as_ref().map(ToString::to_string),
        "second_judge": settings.judges.second.as_ref().map(ToString::to_string), "max_replans": settings.max_replans,
        "time_budget_ms": settings.time_budget, "max_tokens": settings.max_tokens, "max_cost": settings.max_cost,
        "cwd": settings.cwd, "workspace": settings.workspace, "scope": settings.scope, "allow": settings.allow, "memory": !settings.no_memory,
        "roles": roles,
    });
    options.redactor = redactor(settings, env);
    options.observer = Arc::new(|notice: &Notice| output::note(&format!("artoo: {notice}")));
    Journal::in_folder(&data.path().join("tasks"), options).map_err(|e| {
        Failure::usage(e.to_string()).hint("make the data folder writable, or use another one with --data-dir")
    })
}

/// Masks the keys in use, those that artoo keeps, and everything in the environment whose name says that it is secret.
pub fn redactor(settings: &Settings, env: &Environment) -> Redactor {
    let models = settings.models();
    let keys = models.iter().filter_map(|choice| choice.api_key().map(str::to_owned));
    let keys = keys.chain(settings.kept_keys.iter().map(str::to_owned));
    let headers = settings.traces.iter().flat_map(settings::Traces::secrets);
    Redactor::new(
        keys.chain(headers).chain(
            env.iter()
                .filter(|(name, _)| is_secret_variable(name))
                .map(|(_, value)| value.clone()),
        ),
    )
}

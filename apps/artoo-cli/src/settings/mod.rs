//! What is configured, from flags, environment, project file and user file, in this order of weight (design §20).
//!
//! Owns that they are put together, and completeness. What a project's file, which is somebody else's text, may say: `project`.

#[cfg(any(test, fuzzing))]
pub mod claims;
mod file;
mod judges;
mod keyring;
mod limits;
mod mcp;
mod model;
mod places;
mod project;
mod providers;
mod shown;
pub mod stored;
mod traces;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use artoo_protocol::Millis;

pub use self::judges::Judges;
use self::limits::{Limits, value};
pub use self::mcp::McpServer;
pub use self::model::{ModelChoice, Price};
use self::model::{Sources, Tier};
use self::places::{absolute, current_dir, env_value, home};
pub use self::providers::{Offer, offers};
pub use self::shown::{Shown, shown};
use self::stored::{KeptKeys, Stored};
pub use self::traces::Traces;
use crate::args::Options;
use crate::failure::Failure;

/// Everything that the program needs to know before it runs a task.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Journals, memory, audit log.
    pub data_dir: PathBuf,
    /// New files.
    pub workspace: PathBuf,
    /// Commands and relative paths.
    pub cwd: PathBuf,
    /// Absolute.
    pub scope: Vec<PathBuf>,
    /// `EFFECT:GLOB`, as given.
    pub allow: Vec<String>,
    /// Hard.
    pub max_tokens: Option<u64>,
    /// Hard.
    pub max_cost: Option<f64>,
    /// Hard, and Ω's.
    pub time_budget: Millis,
    /// Time between the auditor's periodic reports.
    pub audit_period: Millis,
    /// Ω's.
    pub max_replans: u32,
    /// Neither reads nor writes memory.
    pub no_memory: bool,
    /// What models cost, by name.
    pub prices: BTreeMap<String, Price>,
    /// MCP servers that are switched on.
    pub mcp: Vec<artoo_executor::mcp::Server>,
    /// Where traces go, if anywhere.
    pub traces: Option<Traces>,
    /// Model of R1, R2, and of R4b unless it has its own.
    pub brain: ModelChoice,
    /// Model of R3, R4a.
    pub tool: ModelChoice,
    /// Models that judge beside them.
    pub judges: Judges,
    /// The conversation to go on with.
    pub session: Option<String>,
    /// Every model exchange is written here.
    pub record: Option<PathBuf>,
    /// Model calls are answered from here.
    pub replay: Option<PathBuf>,
    /// Whether everything is told.
    pub verbose: bool,
    /// Whether the line editor has the keys of vi, and not those of Emacs.
    pub vi: bool,
    /// Things to tell the person before the task starts.
    pub notices: Vec<String>,
    /// Keys that artoo keeps, in use or not: they are masked wherever they turn up.
    pub kept_keys: KeptKeys,
}

/// The notice that nobody answers but the built-in model.
pub const NO_MODEL: &str = "no model is configured: the built-in offline model answers, which knows a small grammar (`artoo models` tells which real ones are in reach)";

/// The environment as a map, so that tests need not change the process's own.
pub type Environment = BTreeMap<String, String>;

/// Reads the process's environment; values that are not Unicode are left out.
pub fn environment() -> Environment {
    std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
        .collect()
}

/// Where the data folder is, for commands that only look into it.
///
/// # Errors
/// [`Failure`] when neither a flag, `ARTOO_DATA_DIR` nor a home folder names it.
pub fn data_dir(options: &Options, env: &Environment) -> Result<PathBuf, Failure> {
    let named = options
        .data_dir
        .clone()
        .or_else(|| env_value(env, "ARTOO_DATA_DIR").map(PathBuf::from));
    match named {
        Some(path) => absolute(&path, &current_dir(options)?, env),
        None => Ok(home(env)
            .map_err(|e| e.hint("set HOME, or say where with --data-dir or ARTOO_DATA_DIR"))?
            .join(".artoo")),
    }
}

/// The MCP servers in the user's settings file, switched on or not.
///
/// # Errors
/// [`Failure`] (exit 2) when the file cannot be read.
pub fn user_file(data: &Path) -> Result<BTreeMap<String, McpServer>, Failure> {
    Ok(file::read(&data.join("config.toml"))?.unwrap_or_default().mcp)
}

/// The MCP servers in the text of a settings file; `None` when it is not valid.
pub fn servers_in(text: &str) -> Option<BTreeMap<String, McpServer>> {
    file::parse(text).ok().map(|file| file.mcp)
}

/// Everything else in the text of a settings file, to compare.
pub fn without_servers(text: &str) -> Option<toml::Table> {
    let mut table: toml::Table = toml::from_str(text).ok()?;
    table.remove("mcp");
    Some(table)
}

/// Puts all sources together and checks that the result is complete.
///
/// # Errors
/// [`Failure`] (exit 2) naming what is wrong, where, and what to set.
pub fn load(options: &Options, env: &Environment) -> Result<Settings, Failure> {
    let (data_dir, cwd) = (data_dir(options, env)?, current_dir(options)?);
    let files = Files::read(&data_dir, &cwd)?;
    let (settings, unusable) = put_together(options, env, data_dir, cwd, &files)?;
    unusable.map_or(Ok(settings), Err)
}

/// The same for commands that ask no model: where models cannot be used as they are configured, the built-in one stands in their place.
///
/// # Errors
/// [`Failure`] (exit 2) for what is wrong elsewhere.
pub fn load_without_models(options: &Options, env: &Environment) -> Result<Settings, Failure> {
    let (data_dir, cwd) = (data_dir(options, env)?, current_dir(options)?);
    let files = Files::read(&data_dir, &cwd)?;
    put_together(options, env, data_dir, cwd, &files).map(|(settings, _)| settings)
}

/// What the settings files say.
struct Files {
    user: file::File,
    project: file::File,
    /// Where the project's is, or would be.
    project_file: PathBuf,
    stored: Stored,
}

impl Files {
    fn read(data_dir: &Path, cwd: &Path) -> Result<Self, Failure> {
        let project_file = cwd.join(".artoo.toml");
        Ok(Self {
            user: file::read(&data_dir.join("config.toml"))?.unwrap_or_default(),
            project: file::read(&project_file)?.unwrap_or_default(),
            project_file,
            stored: Stored::read(data_dir)?,
        })
    }

    /// Where models may be named.
    fn sources<'a>(&'a self, options: &'a Options, env: &'a Environment) -> Sources<'a> {
        Sources {
            options,
            env,
            project: &self.project,
            project_file: &self.project_file,
            user: &self.user,
            stored: &self.stored,
        }
    }
}

/// The settings, and what is wrong with their models, if anything: then the built-in one stands there.
fn put_together(
    options: &Options,
    env: &Environment,
    data_dir: PathBuf,
    cwd: PathBuf,
    files: &Files,
) -> Result<(Settings, Option<Failure>), Failure> {
    let Files {
        user, project, stored, ..
    } = files;
    project::refuse_consent(project, &files.project_file)?;
    let workspace = match options
        .workspace
        .clone()
        .or_else(|| env_value(env, "ARTOO_WORKSPACE").map(PathBuf::from))
        .or(user.workspace.clone())
    {
        Some(path) => absolute(&path, &cwd, env)?,
        None => home(env)
            .map_err(|e| e.hint("set HOME, or say where with --workspace or ARTOO_WORKSPACE"))?
            .join("artoo_workspace"),
    };
    if workspace.exists() && !workspace.is_dir() {
        return Err(
            Failure::usage(format!("the workspace {} is no folder", workspace.display()))
                .hint("move it away, or say where with --workspace or ARTOO_WORKSPACE"),
        );
    }
    let scope = options
        .scope
        .iter()
        .chain(&user.scope)
        .map(|p| absolute(p, &cwd, env))
        .collect::<Result<_, _>>()?;
    let limits = Limits::of(options, project, user)?;
    let mut notices: Vec<String> = stored::too_open(&data_dir).into_iter().collect();
    let chosen = choose_models(&files.sources(options, env), value(limits.max_cost), &mut notices);
    let ((brain, tool, judges), unusable) = match chosen {
        Ok(models) => (models, None),
        Err(failure) => (
            (ModelChoice::Offline, ModelChoice::Offline, Judges::default()),
            Some(failure),
        ),
    };
    let mcp = mcp::servers(&user.mcp, env, &cwd)?;
    let traces = traces::choose(env, &user.traces, &mut notices)?;
    let settings = Settings {
        data_dir,
        workspace,
        cwd,
        scope,
        allow: options.allow.iter().chain(&user.allow).cloned().collect(),
        max_tokens: value(limits.max_tokens),
        max_cost: value(limits.max_cost),
        audit_period: limits::audit_period(user)?,
        time_budget: value(limits.time_budget).unwrap_or(Millis::from_seconds(300)),
        max_replans: value(limits.max_replans).unwrap_or(3),
        no_memory: value(limits.no_memory).unwrap_or(false),
        mcp,
        traces,
        prices: user.prices.clone(),
        brain,
        tool,
        judges,
        verbose: options.verbose,
        vi: user.keys == Some(file::Keys::Vi),
        session: options.session.clone(),
        record: options.record.clone(),
        replay: options.replay.clone(),
        notices,
        kept_keys: stored.known(),
    };
    Ok((settings, unusable))
}

/// The models of the brain and the tool tier, and those that judge beside them.
fn choose_models(
    sources: &Sources<'_>,
    max_cost: Option<f64>,
    notices: &mut Vec<String>,
) -> Result<(ModelChoice, ModelChoice, Judges), Failure> {
    if sources.options.replay.is_some() {
        // A recording needs no model, so a half configured one is no obstacle. It answers for a second judge as for every other.
        let second = sources.is_named(Tier::SecondJudge).then_some(ModelChoice::Offline);
        return Ok((ModelChoice::Offline, ModelChoice::Offline, Judges { own: None, second }));
    }
    let brain = sources.choose(Tier::Brain, notices)?;
    let tool = sources.choose(Tier::Tool, notices)?;
    let judges = judges::choose(sources, (&brain, &tool), &sources.user.ranks, notices)?;
    notices.dedup();
    if max_cost.is_some() {
        model::check_prices(&sources.user.prices, &all_models(&brain, &tool, &judges))?;
    }
    if brain == ModelChoice::Offline && tool == ModelChoice::Offline && !sources.names_a_model() {
        notices.push(NO_MODEL.to_owned());
    }
    Ok((brain, tool, judges))
}

impl Settings {
    /// Every model that may be called.
    pub fn models(&self) -> Vec<&ModelChoice> {
        all_models(&self.brain, &self.tool, &self.judges)
    }

    /// The same, with what each is for.
    pub fn named_models(&self) -> Vec<(&'static str, &ModelChoice)> {
        self.tiers()
            .into_iter()
            .map(|(name, _, choice)| (name, choice))
            .collect()
    }

    fn tiers(&self) -> Vec<(&'static str, Tier, &ModelChoice)> {
        let judges = &self.judges;
        let tiers = [
            ("brain", Tier::Brain, Some(&self.brain)),
            ("tool", Tier::Tool, Some(&self.tool)),
            ("judge", Tier::Judge, judges.own.as_ref()),
            ("second judge", Tier::SecondJudge, judges.second.as_ref()),
        ];
        let used = tiers.into_iter();
        used.filter_map(|(name, tier, choice)| Some((name, tier, choice?)))
            .collect()
    }
}

fn all_models<'a>(brain: &'a ModelChoice, tool: &'a ModelChoice, judges: &'a Judges) -> Vec<&'a ModelChoice> {
    [brain, tool]
        .into_iter()
        .chain(&judges.own)
        .chain(&judges.second)
        .collect()
}

#[cfg(test)]
mod tests {
    use artoo_protocol::model::Usage;

    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Environment {
        let mut map: Environment = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        map.entry("HOME".into()).or_insert_with(|| "/nonexistent-home".into());
        map
    }

    fn chosen(pairs: &[(&str, &str)], options: &Options) -> Result<Settings, Failure> {
        load(options, &env(pairs))
    }

    #[test]
    fn nothing_configured_means_the_offline_model_with_a_notice() {
        let settings = chosen(&[], &Options::default()).unwrap();
        assert_eq!(
            (settings.brain, settings.tool),
            (ModelChoice::Offline, ModelChoice::Offline)
        );
        assert_eq!(settings.notices.len(), 1);
    }

    #[test]
    fn half_a_configuration_says_what_is_missing() {
        for (pairs, missing) in [
            (vec![("OPENAI_API_KEY", "k")], "OPENAI_MODEL"),
            (vec![("OPENAI_BASE_URL", "http://x")], "OPENAI_MODEL"),
            (vec![("OPENAI_MODEL", "m")], "OPENAI_BASE_URL"),
        ] {
            let failure = chosen(&pairs, &Options::default()).unwrap_err();
            assert_eq!(failure.code, 2);
            assert!(failure.hint.unwrap_or_default().contains(missing), "{pairs:?}");
        }
    }

    #[test]
    fn other_providers_are_named_by_a_prefix_and_have_their_own_keys() {
        let with = |model: &str, pairs: &[(&str, &str)]| {
            let options = Options {
                model: Some(model.into()),
                ..Options::default()
            };
            chosen(pairs, &options)
        };
        let settings = with(
            "anthropic:c",
            &[("ANTHROPIC_API_KEY", "k"), ("OPENAI_BASE_URL", "http://a")],
        )
        .unwrap();
        assert_eq!(
            settings.brain.to_string(),
            "c at https://api.anthropic.com/v1 (with a key)"
        );
        let pairs = [("GEMINI_API_KEY", "k"), ("GEMINI_BASE_URL", "http://g")];
        assert_eq!(
            with("gemini:m", &pairs).unwrap().tool.to_string(),
            "m at http://g (with a key)"
        );
        let failure = with("anthropic:c", &[("OPENAI_API_KEY", "k"), ("OPENAI_MODEL", "m")]).unwrap_err();
        assert!(failure.hint.unwrap().contains("ANTHROPIC_API_KEY"));
        // A tier's variable may name another provider; a key for it that nothing uses is no fault.
        let mixed = [
            ("OPENAI_BASE_URL", "http://a"),
            ("OPENAI_MODEL", "llama3:8b"),
            ("BRAIN_MODEL", "anthropic:c"),
            ("ANTHROPIC_API_KEY", "k"),
            ("GEMINI_API_KEY", "k"),
        ];
        let settings = chosen(&mixed, &Options::default()).unwrap();
        assert_eq!(
            settings.brain.to_string(),
            "c at https://api.anthropic.com/v1 (with a key)"
        );
        assert_eq!(settings.tool.to_string(), "llama3:8b at http://a (without a key)");
        let failure = chosen(&mixed[3..], &Options::default()).unwrap_err();
        assert!(failure.code == 2 && failure.message.contains("ANTHROPIC_API_KEY"));
        // What a tier says of its compatible server is none of another provider's business.
        let own_server = [
            ("BRAIN_BASE_URL", "http://local"),
            ("BRAIN_API_KEY", "local-key"),
            ("BRAIN_MODEL", "anthropic:c"),
            ("ANTHROPIC_API_KEY", "k"),
            ("TOOL_MODEL", "m"),
            ("OPENAI_BASE_URL", "http://a"),
        ];
        let settings = chosen(&own_server, &Options::default()).unwrap();
        assert_eq!(settings.brain.address(), "https://api.anthropic.com/v1");
        assert_eq!(settings.brain.api_key(), Some("k"));
        let failure = chosen(&own_server[..3], &Options::default()).unwrap_err();
        assert!(failure.hint.unwrap().contains("ANTHROPIC_API_KEY"));
    }

    #[test]
    fn a_key_goes_to_its_own_provider_only() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            cwd: Some(folder.path().into()),
            ..Options::default()
        };
        std::fs::write(
            folder.path().join(".artoo.toml"),
            "model = \"anthropic:c\"\n[anthropic]\nbase_url = \"http://127.0.0.1:9\"\n",
        )
        .unwrap();
        let settings = load(
            &options,
            &env(&[("ANTHROPIC_API_KEY", "secret"), ("OPENAI_API_KEY", "other")]),
        )
        .unwrap();
        assert_eq!(settings.brain.to_string(), "c at http://127.0.0.1:9 (without a key)");
        let offers = offers(&options, &env(&[("ANTHROPIC_API_KEY", "secret")])).unwrap();
        let shown = |at: usize| offers[at].choice.as_ref().map(ToString::to_string);
        assert_eq!(shown(0), Err(&"no key (OPENAI_API_KEY)".to_owned()));
        assert_eq!(shown(1), Ok(" at http://127.0.0.1:9 (without a key)".to_owned()));
        assert_eq!(offers[3].name, "ollama");
    }

    #[test]
    fn tiers_take_their_own_values_first() {
        let settings = chosen(
            &[
                ("OPENAI_BASE_URL", "http://a"),
                ("OPENAI_MODEL", "small"),
                ("BRAIN_MODEL", "big"),
                ("TOOL_OPENAI_BASE_URL", "http://b"),
            ],
            &Options::default(),
        )
        .unwrap();
        assert_eq!(settings.brain.to_string(), "big at http://a (without a key)");
        assert_eq!(settings.tool.to_string(), "small at http://b (without a key)");
    }

    /// The order in docs/models.md.
    #[test]
    fn what_is_said_of_one_tier_weighs_more_than_what_the_same_place_says_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let brain_of = |project: &str, pairs: &[(&str, &str)], flag: Option<&str>| {
            std::fs::write(folder.path().join(".artoo.toml"), project).unwrap();
            let options = Options {
                cwd: Some(folder.path().into()),
                brain_model: flag.map(str::to_owned),
                ..Options::default()
            };
            let rest = [("OPENAI_BASE_URL", "http://a"), ("TOOL_MODEL", "tool")];
            load(&options, &env(&[pairs, &rest].concat()))
                .unwrap()
                .brain
                .name()
                .to_owned()
        };
        let own = "[brain]\nmodel = \"project\"\n";
        let all = ("OPENAI_MODEL", "all");
        assert_eq!(brain_of("", &[all], None), "all");
        assert_eq!(brain_of(own, &[], None), "project");
        assert_eq!(brain_of(own, &[all], None), "all", "the environment before any file");
        assert_eq!(brain_of(own, &[all, ("BRAIN_MODEL", "brain")], None), "brain");
        assert_eq!(
            brain_of(own, &[all, ("BRAIN_MODEL", "brain")], Some("openai:flag")),
            "flag"
        );
        let top = "model = \"openai:top\"\n";
        assert_eq!(brain_of(&format!("{top}{own}"), &[], None), "top");
        assert_eq!(brain_of(top, &[all], None), "all", "a variable names the model");
        assert_eq!(brain_of(top, &[], None), "top");
    }

    #[test]
    fn a_model_that_the_environment_names_is_asked_at_no_address_of_a_file_for_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            cwd: Some(folder.path().into()),
            data_dir: Some(folder.path().into()),
            ..Options::default()
        };
        let of_tier = "[brain]\nmodel = \"mine\"\nbase_url = \"http://b\"\napi_key = \"key-of-b\"\n";
        let brain = |config: &str, project: &str, pairs: &[(&str, &str)]| {
            std::fs::write(folder.path().join("config.toml"), config).unwrap();
            std::fs::write(folder.path().join(".artoo.toml"), project).unwrap();
            let settings = load(&options, &env(&[pairs, &[("TOOL_MODEL", "tool")]].concat())).unwrap();
            (
                settings.brain.to_string(),
                settings.brain.api_key().unwrap_or_default().to_owned(),
            )
        };
        let named = [("OPENAI_MODEL", "all"), ("OPENAI_API_KEY", "key-of-openai")];
        let usual = "all at https://api.openai.com/v1 (with a key)".to_owned();
        assert_eq!(brain(of_tier, "", &named), (usual.clone(), "key-of-openai".to_owned()));
        let at_b = "mine at http://b (with a key)".to_owned();
        assert_eq!(brain(of_tier, "", &named[1..]), (at_b, "key-of-b".to_owned()));
        let here = "[brain]\nbase_url = \"http://127.0.0.1:9\"\n";
        assert_eq!(brain("", here, &named), (usual, "key-of-openai".to_owned()));
        // Whichever form they use, the project's word weighs more than the user's.
        let plain = "[openai]\nmodel = \"theirs\"\n";
        let (model, _) = brain("model = \"openai:mine\"\n", plain, &named[1..]);
        assert!(model.starts_with("theirs at https://api.openai.com"), "{model}");
    }

    #[test]
    fn what_asks_no_model_needs_none() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            data_dir: Some(folder.path().into()),
            ..Options::default()
        };
        std::fs::write(
            folder.path().join("config.toml"),
            "[prices.m]\ninput = 1\noutput = 1\n[mcp.files]\ncommand = \"x\"\n",
        )
        .unwrap();
        let half = env(&[("OPENAI_API_KEY", "k")]);
        assert_eq!(load(&options, &half).unwrap_err().code, 2);
        let settings = load_without_models(&options, &half).unwrap();
        assert_eq!(
            (settings.prices.len(), settings.mcp.len(), settings.brain),
            (1, 1, ModelChoice::Offline)
        );
        assert!(!settings.notices.iter().any(|notice| notice == NO_MODEL));
    }

    #[test]
    fn a_flag_beats_the_environment() {
        let options = Options {
            model: Some("builtin:offline".into()),
            ..Options::default()
        };
        let settings = chosen(&[("OPENAI_BASE_URL", "http://a"), ("OPENAI_MODEL", "m")], &options).unwrap();
        assert_eq!(settings.brain, ModelChoice::Offline);
        assert!(settings.notices.is_empty());
        let unknown = Options {
            model: Some("gpt".into()),
            ..Options::default()
        };
        assert_eq!(chosen(&[], &unknown).unwrap_err().code, 2);
    }

    #[test]
    fn a_project_file_cannot_take_the_users_key_nor_grant_anything() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            cwd: Some(folder.path().into()),
            ..Options::default()
        };
        std::fs::write(
            folder.path().join(".artoo.toml"),
            "[openai]\nbase_url = \"http://[::1]:9\"\nmodel = \"m\"\n",
        )
        .unwrap();
        let settings = load(&options, &env(&[("OPENAI_API_KEY", "secret")])).unwrap();
        assert_eq!(settings.brain.to_string(), "m at http://[::1]:9 (without a key)");
        assert!(settings.notices.iter().any(|n| n.contains("not sent")));
        for text in ["allow = [\"destroy:*\"]\n", "audit_period = \"24h\"\n"] {
            std::fs::write(folder.path().join(".artoo.toml"), text).unwrap();
            let failure = load(&options, &env(&[])).unwrap_err();
            assert!(failure.code == 2 && failure.message.contains("may not set"), "{text}");
        }
        std::fs::write(folder.path().join(".artoo.toml"), "api_key = \"sk-secret\"\n").unwrap();
        let failure = load(&options, &env(&[])).unwrap_err();
        assert!(
            failure.message.contains("unknown field") && !failure.message.contains("sk-secret"),
            "{}",
            failure.message
        );
    }

    #[test]
    fn no_home_folder_is_one_clear_sentence() {
        let failure = load(&Options::default(), &Environment::new()).unwrap_err();
        assert_eq!(failure.code, 2);
        assert!(failure.message.contains("home folder") && failure.hint.unwrap().contains("--data-dir"));
    }

    #[test]
    fn keys_are_never_printed() {
        let choice = ModelChoice::Endpoint {
            wire: artoo_llm::provider::Wire::OpenAi,
            base_url: "https://me:sk-secret@host/v1?key=sk-secret".into(),
            api_key: Some("sk-secret".into()),
            model: "m".into(),
        };
        let shown = format!("{choice:?} {choice} {}", choice.address());
        assert!(
            !shown.contains("sk-secret") && shown.contains("https://host/v1"),
            "{shown}"
        );
    }

    #[test]
    fn a_limit_on_cost_needs_prices() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            max_cost: Some(1.0),
            data_dir: Some(folder.path().into()),
            ..Options::default()
        };
        let model = env(&[("OPENAI_BASE_URL", "http://a"), ("OPENAI_MODEL", "big")]);
        assert!(load(&options, &model).unwrap_err().message.contains("`big`"));
        std::fs::write(
            folder.path().join("config.toml"),
            "[prices.big]\ninput = 2\noutput = 10\n",
        )
        .unwrap();
        let prices = load(&options, &model).unwrap().prices;
        let usage = Usage {
            input_tokens: 500_000,
            output_tokens: 100_000,
            ..Usage::default()
        };
        assert!((prices["big"].of(&usage) - 2.0).abs() < 1e-9);
        let mostly_cached = Usage {
            cached_tokens: 400_000,
            ..usage
        };
        let discount = Price {
            cached: Some(0.5),
            ..prices["big"]
        };
        assert!(
            (prices["big"].of(&mostly_cached) - 2.0).abs() < 1e-9,
            "the full price where no other is known"
        );
        assert!((discount.of(&mostly_cached) - 1.4).abs() < 1e-9);
        assert!(load(&options, &env(&[])).is_ok(), "the offline model costs nothing");
    }
}

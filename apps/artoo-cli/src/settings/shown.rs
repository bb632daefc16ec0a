//! What is in force and who said it, for `artoo config show` (design §20).
//!
//! Owns the list. Values come from the very settings that a task would run with; of a key only where it lies is told.

use artoo_llm::provider::Wire;

use super::file::File;
use super::limits::Limits;
use super::model::{Origin, Sources, Tier};
use super::providers::name_of;
use super::{Environment, Files, Settings, current_dir, data_dir, env_value, put_together};
use crate::args::Options;
use crate::failure::Failure;

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its name, as in a settings file where it has one there.
    pub name: String,
    /// As a person reads it.
    pub value: String,
    /// Who said it.
    pub from: &'static str,
}

/// Who says something, from most weight to least, with the word for it.
const DEFAULT: &str = "default";
const FLAG: &str = "command line";
const ENVIRONMENT: &str = "environment";
const PROJECT: &str = ".artoo.toml";
const USER: &str = "config.toml";

/// Every setting that is in force.
///
/// # Errors
/// [`Failure`] (exit 2) when the settings make no sense, but for the models: what is wrong with those stands in their rows.
pub fn shown(options: &Options, env: &Environment) -> Result<Vec<Shown>, Failure> {
    let (data, cwd) = (data_dir(options, env)?, current_dir(options)?);
    let files = Files::read(&data, &cwd)?;
    let (settings, unusable) = put_together(options, env, data, cwd, &files)?;
    let sources = files.sources(options, env);
    let said = Limits::of(options, &files.project, &files.user)?;
    let mut rows = places(&settings, &sources);
    rows.extend(limits(&settings, &said, &files.user));
    rows.extend(match &unusable {
        None => models(&settings, &sources),
        Some(failure) => unusable_models(&sources, failure),
    });
    rows.extend(keys_and_prices(&settings, &sources));
    rows.extend(rest(&settings, &sources));
    Ok(rows)
}

fn row(name: &str, value: impl Into<String>, from: &'static str) -> Shown {
    Shown {
        name: name.to_owned(),
        value: value.into(),
        from,
    }
}

/// The first of those who say something.
fn first(who: &[(bool, &'static str)]) -> &'static str {
    who.iter().find(|(says, _)| *says).map_or(DEFAULT, |(_, name)| name)
}

const fn word(origin: Option<Origin>) -> &'static str {
    match origin {
        Some(Origin::Flag) => FLAG,
        Some(Origin::Environment) => ENVIRONMENT,
        Some(Origin::Project) => PROJECT,
        Some(Origin::Keyring) => "artoo models key",
        Some(Origin::User) => USER,
        None => DEFAULT,
    }
}

fn places(settings: &Settings, sources: &Sources<'_>) -> Vec<Shown> {
    let Sources { options, env, user, .. } = sources;
    let data = first(&[
        (options.data_dir.is_some(), FLAG),
        (env_value(env, "ARTOO_DATA_DIR").is_some(), ENVIRONMENT),
    ]);
    let workspace = first(&[
        (options.workspace.is_some(), FLAG),
        (env_value(env, "ARTOO_WORKSPACE").is_some(), ENVIRONMENT),
        (user.workspace.is_some(), USER),
    ]);
    let mut rows = vec![
        row("data_dir", settings.data_dir.display().to_string(), data),
        row("workspace", settings.workspace.display().to_string(), workspace),
        row(
            "cwd",
            settings.cwd.display().to_string(),
            first(&[(options.cwd.is_some(), FLAG)]),
        ),
    ];
    // Those of the command line stand in front.
    for (at, path) in settings.scope.iter().enumerate() {
        let from = if at < options.scope.len() { FLAG } else { USER };
        rows.push(row("scope", path.display().to_string(), from));
    }
    for (at, grant) in settings.allow.iter().enumerate() {
        let from = if at < options.allow.len() { FLAG } else { USER };
        rows.push(row("allow", grant.as_str(), from));
    }
    rows
}

fn limits(settings: &Settings, said: &Limits, user: &File) -> Vec<Shown> {
    fn by<T>(limit: Option<(T, Origin)>) -> &'static str {
        word(limit.map(|(_, origin)| origin))
    }
    let limit = |limit: Option<String>| limit.unwrap_or_else(|| "none".to_owned());
    let (tokens, cost) = (settings.max_tokens, settings.max_cost);
    vec![
        row(
            "max_tokens",
            limit(tokens.map(|limit| limit.to_string())),
            by(said.max_tokens),
        ),
        row(
            "max_cost",
            limit(cost.map(|limit| limit.to_string())),
            by(said.max_cost),
        ),
        row("time_budget", settings.time_budget.to_string(), by(said.time_budget)),
        row("max_replans", settings.max_replans.to_string(), by(said.max_replans)),
        row("no_memory", settings.no_memory.to_string(), by(said.no_memory)),
        row(
            "audit_period",
            settings.audit_period.to_string(),
            first(&[(user.audit_period.is_some(), USER)]),
        ),
    ]
}

fn models(settings: &Settings, sources: &Sources<'_>) -> Vec<Shown> {
    let tiers = settings.tiers().into_iter();
    let rows = tiers.map(|(name, tier, choice)| {
        let origin = if settings.replay.is_some() {
            Some(Origin::Flag)
        } else {
            sources.origin(tier)
        };
        row(&format!("model ({name})"), choice.to_string(), word(origin))
    });
    rows.collect()
}

/// What a task would end with, where the models should stand.
fn unusable_models(sources: &Sources<'_>, failure: &Failure) -> Vec<Shown> {
    let complaint = |failure: &Failure| {
        let hint = failure.hint.as_ref().map(|hint| format!(" — {hint}"));
        format!("not usable: {}{}", failure.message, hint.unwrap_or_default())
    };
    let mut rows = Vec::new();
    let mut is_told = false;
    for (name, tier) in [("brain", Tier::Brain), ("tool", Tier::Tool)] {
        let value = match sources.choose(tier, &mut Vec::new()) {
            Ok(choice) => choice.to_string(),
            Err(failure) => {
                is_told = true;
                complaint(&failure)
            }
        };
        rows.push(row(&format!("model ({name})"), value, word(sources.origin(tier))));
    }
    if !is_told {
        // Each is fine by itself; together with the judges or a limit on cost they are not.
        rows.push(row("models", complaint(failure), word(sources.origin(Tier::Judge))));
    }
    rows
}

fn keys_and_prices(settings: &Settings, sources: &Sources<'_>) -> Vec<Shown> {
    let mut rows = Vec::new();
    for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Gemini] {
        let (value, from) = match sources.key_place(wire) {
            Some(from) => ("set (not shown)", from),
            None => ("none", DEFAULT),
        };
        rows.push(row(&format!("key ({})", name_of(wire)), value, from));
    }
    for name in settings.prices.keys() {
        rows.push(row("price", name.as_str(), USER));
    }
    rows
}

fn rest(settings: &Settings, sources: &Sources<'_>) -> Vec<Shown> {
    let traces = settings.traces.as_ref();
    let mut rows = vec![row(
        "traces",
        traces.map_or_else(|| "off".to_owned(), ToString::to_string),
        word(traces.map(|traces| traces.origin)),
    )];
    rows.extend(settings.mcp.iter().map(|server| row("mcp", server.name.as_str(), USER)));
    let keys = if settings.vi { "vi" } else { "emacs" };
    rows.push(row("keys", keys, first(&[(sources.user.keys.is_some(), USER)])));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_names_who_said_it_and_no_key_is_shown() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        let data = home.path().join(".artoo");
        std::fs::create_dir(&project).unwrap();
        std::fs::create_dir(&data).unwrap();
        std::fs::write(
            project.join(".artoo.toml"),
            "max_replans = 1\nmodel = \"anthropic:c\"\n",
        )
        .unwrap();
        std::fs::write(
            data.join("config.toml"),
            "max_replans = 2\nscope = [\"/srv\"]\n[openai]\napi_key = \"sk-hush-user\"\n[traces]\nendpoint = \"http://c\"\nheaders = { key = \"hush-hush\" }\n",
        )
        .unwrap();
        std::fs::write(data.join("keys.toml"), "anthropic = { api_key = \"sk-hush-kept\" }\n").unwrap();
        let env: Environment = [
            ("HOME", home.path().to_str().unwrap()),
            ("GEMINI_API_KEY", "sk-hush-env"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
        let options = Options {
            cwd: Some(project),
            scope: vec!["/tmp".into()],
            max_tokens: Some(5),
            ..Options::default()
        };
        let rows = shown(&options, &env).unwrap();
        let said = |name: &str| -> Vec<(&str, &str)> {
            let of = rows.iter().filter(|row| row.name == name);
            of.map(|row| (row.value.as_str(), row.from)).collect()
        };
        assert_eq!(said("max_replans"), [("1", PROJECT)], "the smaller one");
        assert_eq!(said("max_tokens"), [("5", FLAG)]);
        assert_eq!(said("max_cost"), [("none", DEFAULT)]);
        assert_eq!(said("scope"), [("/tmp", FLAG), ("/srv", USER)]);
        let brain = "c at https://api.anthropic.com/v1 (with a key)";
        assert_eq!(said("model (brain)"), [(brain, PROJECT)]);
        assert_eq!(said("key (anthropic)"), [("set (not shown)", "keys.toml")]);
        assert_eq!(said("key (openai)"), [("set (not shown)", USER)]);
        assert_eq!(said("key (gemini)"), [("set (not shown)", ENVIRONMENT)]);
        assert_eq!(said("traces"), [("http://c/v1/traces (with key)", USER)]);
        assert!(!format!("{rows:?}").contains("hush"), "{rows:?}");
    }

    #[test]
    fn what_is_wrong_with_the_models_stands_where_they_would() {
        let home = tempfile::tempdir().unwrap();
        let options = Options {
            data_dir: Some(home.path().into()),
            ..Options::default()
        };
        let shown = |config: &str, pairs: &[(&str, &str)]| {
            std::fs::write(home.path().join("config.toml"), config).unwrap();
            let home = [("HOME", "/nonexistent-home")];
            let all = home.iter().chain(pairs);
            let env = all.map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            shown(&options, &env).unwrap()
        };
        let of = |rows: &[Shown], name: &str| {
            let found = rows.iter().find(|row| row.name == name).unwrap();
            (found.value.clone(), found.from)
        };
        let rows = shown("max_tokens = 7\n", &[("OPENAI_API_KEY", "k")]);
        assert_eq!(of(&rows, "max_tokens"), ("7".to_owned(), USER));
        assert_eq!(of(&rows, "key (openai)").1, ENVIRONMENT);
        for name in ["model (brain)", "model (tool)"] {
            let (value, _) = of(&rows, name);
            assert!(
                value.starts_with("not usable: ") && value.contains("OPENAI_MODEL"),
                "{value}"
            );
        }
        let both = [("OPENAI_BASE_URL", "http://a"), ("OPENAI_MODEL", "m")];
        let rows = shown("[judge]\nmodel = \"other\"\n", &both);
        assert_eq!(
            of(&rows, "model (brain)"),
            ("m at http://a (without a key)".to_owned(), ENVIRONMENT)
        );
        let (value, from) = of(&rows, "models");
        assert!(value.contains("no rank") && from == USER, "{value}");
    }
}

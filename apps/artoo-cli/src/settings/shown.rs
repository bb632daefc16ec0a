//! What is in force and who said it, for `artoo config show` (design §20).
//!
//! Owns the list. Values come from the very settings that a task would run with; of a key only where it lies is told.

use artoo_llm::provider::Wire;

use super::model::{Origin, Sources};
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
/// [`Failure`] (exit 2) when the settings make no sense: the same as a task would end with.
pub fn shown(options: &Options, env: &Environment) -> Result<Vec<Shown>, Failure> {
    let (data, cwd) = (data_dir(options, env)?, current_dir(options)?);
    let settings = put_together(options, env, data.clone(), cwd.clone(), Files::read(&data, &cwd)?)?;
    let files = Files::read(&data, &cwd)?;
    let sources = Sources {
        options,
        env,
        project: &files.project,
        user: &files.user,
        stored: &files.stored,
    };
    let mut rows = places(&settings, &sources);
    rows.extend(limits(&settings, &sources));
    rows.extend(models(&settings, &sources));
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

fn limits(settings: &Settings, sources: &Sources<'_>) -> Vec<Shown> {
    let Sources {
        options, project, user, ..
    } = sources;
    let from = |flag: bool, project: bool, user: bool| first(&[(flag, FLAG), (project, PROJECT), (user, USER)]);
    let limit = |limit: Option<String>| limit.unwrap_or_else(|| "none".to_owned());
    vec![
        row(
            "max_tokens",
            limit(settings.max_tokens.map(|limit| limit.to_string())),
            from(
                options.max_tokens.is_some(),
                project.max_tokens.is_some(),
                user.max_tokens.is_some(),
            ),
        ),
        row(
            "max_cost",
            limit(settings.max_cost.map(|limit| limit.to_string())),
            from(
                options.max_cost.is_some(),
                project.max_cost.is_some(),
                user.max_cost.is_some(),
            ),
        ),
        row(
            "time_budget",
            settings.time_budget.to_string(),
            from(
                options.time_budget.is_some(),
                project.time_budget.is_some(),
                user.time_budget.is_some(),
            ),
        ),
        row(
            "max_replans",
            settings.max_replans.to_string(),
            from(
                options.max_replans.is_some(),
                project.max_replans.is_some(),
                user.max_replans.is_some(),
            ),
        ),
        row(
            "no_memory",
            settings.no_memory.to_string(),
            from(options.no_memory, project.no_memory.is_some(), user.no_memory.is_some()),
        ),
        row(
            "audit_period",
            settings.audit_period.to_string(),
            from(false, false, user.audit_period.is_some()),
        ),
    ]
}

fn models(settings: &Settings, sources: &Sources<'_>) -> Vec<Shown> {
    let mut rows: Vec<Shown> = settings
        .tiers()
        .into_iter()
        .map(|(name, tier, choice)| {
            let origin = if settings.replay.is_some() {
                Some(Origin::Flag)
            } else {
                sources.origin(tier)
            };
            row(&format!("model ({name})"), choice.to_string(), word(origin))
        })
        .collect();
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
        assert_eq!(said("max_replans"), [("1", PROJECT)]);
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
}

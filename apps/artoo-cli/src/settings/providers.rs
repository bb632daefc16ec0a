//! Where providers are and which key opens them (design §18, §20).
//!
//! Owns each provider's own places in the environment and the settings files. The places of a tier are the caller's.

use artoo_llm::provider::Wire;

use super::file::{Endpoint, File};
use super::model::{ModelChoice, Origin, Sourced, Sources, guarded_key};
use super::{Environment, env_value};
use crate::args::Options;
use crate::failure::Failure;

/// A provider that could answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// As in `PROVIDER:NAME`.
    pub name: &'static str,
    /// Which variable holds its key.
    pub key_variable: &'static str,
    /// How it is reached, without a model; `None` without a key.
    pub choice: Option<ModelChoice>,
}

/// The providers that artoo knows, with the keys that are set.
///
/// # Errors
/// [`Failure`] (exit 2) when a settings file cannot be read.
pub fn offers(options: &Options, env: &Environment) -> Result<Vec<Offer>, Failure> {
    let user = super::file::read(&super::data_dir(options, env)?.join("config.toml"))?.unwrap_or_default();
    let project = super::file::read(&super::current_dir(options)?.join(".artoo.toml"))?.unwrap_or_default();
    let sources = Sources {
        options,
        env,
        project: &project,
        user: &user,
    };
    let mut offers: Vec<Offer> = [Wire::OpenAi, Wire::Anthropic, Wire::Gemini]
        .into_iter()
        .map(|wire| sources.offer(wire))
        .collect();
    offers.push(Offer {
        name: "ollama",
        key_variable: "OLLAMA_HOST",
        choice: Some(ollama(env, "")),
    });
    Ok(offers)
}

/// A model of Ollama, on this machine unless the environment says otherwise.
pub fn ollama(env: &Environment, name: &str) -> ModelChoice {
    let host = env_value(env, "OLLAMA_HOST").unwrap_or_else(|| "127.0.0.1:11434".to_owned());
    let base_url = if host.contains("://") {
        host
    } else {
        format!("http://{host}")
    };
    ModelChoice::Endpoint {
        wire: Wire::OpenAi,
        base_url,
        api_key: None,
        model: name.to_owned(),
    }
}

/// The word before the colon of `PROVIDER:NAME`.
pub const fn name_of(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAi => "openai",
        Wire::Anthropic => "anthropic",
        Wire::Gemini => "gemini",
    }
}

impl Sources<'_> {
    /// A field of a provider: the environment before the project's file before the user's.
    pub(super) fn of_provider(&self, wire: Wire, variable: &str, pick: fn(&Endpoint) -> &Option<String>) -> Sourced {
        let of = |file: &File| {
            pick(match wire {
                Wire::OpenAi => &file.openai,
                Wire::Anthropic => &file.anthropic,
                Wire::Gemini => &file.gemini,
            })
            .clone()
        };
        let prefix = name_of(wire).to_uppercase();
        env_value(self.env, &format!("{prefix}_{variable}"))
            .map(|v| (v, Origin::Environment))
            .or_else(|| of(self.project).map(|v| (v, Origin::Project)))
            .or_else(|| of(self.user).map(|v| (v, Origin::User)))
    }

    fn offer(&self, wire: Wire) -> Offer {
        let base_url = self.of_provider(wire, "BASE_URL", |e| &e.base_url);
        let key = self.of_provider(wire, "API_KEY", |e| &e.api_key);
        let is_set = base_url.is_some() || key.is_some();
        let api_key = guarded_key(key, base_url.as_ref(), &mut Vec::new());
        Offer {
            name: name_of(wire),
            key_variable: wire.key_variable(),
            choice: is_set.then(|| ModelChoice::Endpoint {
                wire,
                base_url: base_url.map_or_else(|| wire.default_url().to_owned(), |(url, _)| url),
                api_key,
                model: String::new(),
            }),
        }
    }
}

//! Where providers are and which key opens them (design §18, §20).
//!
//! Owns each provider's own places in the environment and the settings files. The places of a tier are the caller's.

use artoo_llm::provider::Wire;

use super::file::{Endpoint, File};
use super::model::{ModelChoice, Origin, Sourced, Sources, guarded_key};
use super::stored::{Kept, Stored};
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
    let stored = Stored::read(&super::data_dir(options, env)?)?;
    let sources = Sources {
        options,
        env,
        project: &project,
        user: &user,
        stored: &stored,
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
    /// A field of a provider: the environment before the project's file, a key that was given to keep, and the user's file.
    pub(super) fn of_provider(&self, wire: Wire, variable: &str, pick: fn(&Endpoint) -> &Option<String>) -> Sourced {
        let of = |file: &File| {
            pick(match wire {
                Wire::OpenAi => &file.openai,
                Wire::Anthropic => &file.anthropic,
                Wire::Gemini => &file.gemini,
            })
            .clone()
        };
        let name = name_of(wire);
        let prefix = name.to_uppercase();
        // Where one is kept that cannot be had, an older one of the file is not used in its place: see `is_at_hand`.
        let kept_or_user = || match self.stored.place(name).filter(|_| variable == "API_KEY") {
            Some(_) => self.stored.key(name).map(|v| (v, Origin::Keyring)),
            None => of(self.user).map(|v| (v, Origin::User)),
        };
        env_value(self.env, &format!("{prefix}_{variable}"))
            .map(|v| (v, Origin::Environment))
            .or_else(|| of(self.project).map(|v| (v, Origin::Project)))
            .or_else(kept_or_user)
    }

    /// Where the key of a provider lies; the keyring is not asked for it.
    pub fn key_place(&self, wire: Wire) -> Option<&'static str> {
        let unkept = Sources {
            stored: &Stored::default(),
            ..*self
        };
        let said = unkept
            .of_provider(wire, "API_KEY", |e| &e.api_key)
            .map(|(_, origin)| origin);
        match (said, self.stored.place(name_of(wire))) {
            (Some(Origin::Flag), _) => Some("command line"),
            (Some(Origin::Environment), _) => Some("environment"),
            (Some(Origin::Project), _) => Some(".artoo.toml"),
            (Some(Origin::User | Origin::Keyring) | None, Some(Kept::Keyring)) => Some("the system's keyring"),
            (Some(Origin::User | Origin::Keyring) | None, Some(Kept::File)) => Some("keys.toml"),
            (Some(Origin::User | Origin::Keyring), None) => Some("config.toml"),
            (None, None) => None,
        }
    }

    /// Refuses to go on without a key that the keyring was given and does not hand out.
    pub(super) fn is_at_hand(&self, wire: Wire, key: Option<&String>) -> Result<(), Failure> {
        let name = name_of(wire);
        match (key, self.stored.problem(name)) {
            (None, Some(why)) => Err(Failure::usage(format!(
                "the key of {name} is in the system's keyring, which does not give it: {why}"
            ))
            .hint(format!(
                "unlock the keyring, set {}, or keep the key again with: artoo models key set {name}",
                wire.key_variable()
            ))),
            (Some(_), _) | (None, None) => Ok(()),
        }
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

impl ModelChoice {
    /// Whose it is: the domain under which its address is registered, or the host where that has none, with the port where that is
    /// not the usual one. All names of this machine are one.
    pub fn provider(&self) -> String {
        let Self::Endpoint { base_url, .. } = self else {
            return "builtin".to_owned();
        };
        let address = base_url.split_once("://").map_or(base_url.as_str(), |(_, rest)| rest);
        let host = address.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default().to_lowercase();
        let (host, port) = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, port),
            Some(_) | None => (host.as_str(), ""),
        };
        let host = host.trim_end_matches('.').trim_matches(['[', ']']);
        let own = match host.parse::<std::net::IpAddr>() {
            Ok(address) if address.is_loopback() || address.is_unspecified() => Some("localhost"),
            Ok(_) => Some(host),
            Err(_) if host == "localhost" || host.ends_with(".localhost") => Some("localhost"),
            Err(_) => (!host.contains('.')).then_some(host),
        };
        match (own, port) {
            (None, _) => registered(host),
            (Some(name), "" | "80" | "443") => name.to_owned(),
            (Some(name), port) => format!("{name}:{port}"),
        }
    }

    /// The name of the model itself, without the vendor that a reseller puts in front and without a tag.
    pub fn bare_name(&self) -> String {
        let name = self.name().rsplit('/').next().unwrap_or_default();
        name.trim_end_matches(":latest").to_lowercase()
    }
}

/// The part of a domain that somebody registered: `eu.api.example.com` and `api.example.com` are of one house.
fn registered(host: &str) -> String {
    let labels: Vec<&str> = host.rsplit('.').collect();
    // `example.co.uk`: below a country, a short label is a category and nobody's name.
    let below_a_category =
        matches!(labels.as_slice(), [country, category, _, ..] if country.len() == 2 && category.len() <= 3);
    let taken = if below_a_category { 3 } else { 2 };
    let mut own: Vec<&str> = labels.into_iter().take(taken).collect();
    own.reverse();
    own.join(".")
}

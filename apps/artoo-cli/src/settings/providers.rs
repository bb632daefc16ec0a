//! Where providers are and which key opens them (design §18, §20).
//!
//! Owns each provider's own places in the environment and the settings files. The places of a tier are the caller's.

use std::net::Ipv6Addr;

use artoo_llm::provider::Wire;

use super::file::{Endpoint, File};
use super::model::{ModelChoice, Origin, Sourced, Sources};
use super::stored::{Kept, Stored};
use super::{Environment, Files, env_value};
use crate::args::Options;
use crate::failure::Failure;

/// A provider that could answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// As in `PROVIDER:NAME`.
    pub name: &'static str,
    /// How it is reached, without a model, or why it is not.
    pub choice: Result<ModelChoice, String>,
}

/// The providers that artoo knows, with the keys that are set.
///
/// # Errors
/// [`Failure`] (exit 2) when a settings file cannot be read.
pub fn offers(options: &Options, env: &Environment) -> Result<Vec<Offer>, Failure> {
    let files = Files::read(&super::data_dir(options, env)?, &super::current_dir(options)?)?;
    let sources = files.sources(options, env);
    let mut offers: Vec<Offer> = [Wire::OpenAi, Wire::Anthropic, Wire::Gemini]
        .into_iter()
        .map(|wire| sources.offer(wire))
        .collect();
    offers.push(Offer {
        name: "ollama",
        choice: Ok(ollama(env, "")),
    });
    Ok(offers)
}

/// A model of Ollama, on this machine unless the environment says otherwise.
pub fn ollama(env: &Environment, name: &str) -> ModelChoice {
    let said = env_value(env, "OLLAMA_HOST").unwrap_or_default();
    ModelChoice::Endpoint {
        wire: Wire::OpenAi,
        base_url: ollama_url(&said),
        api_key: None,
        model: name.to_owned(),
    }
}

/// What `OLLAMA_HOST` says, as Ollama itself reads it: its port where neither scheme nor port is said, this machine where no host
/// is. The same variable tells the server where to listen, so it may hold the address that stands for all of its own.
fn ollama_url(said: &str) -> String {
    let said = said.trim_matches(['"', '\'']);
    let (scheme, address) = match said.split_once("://") {
        Some((scheme, address)) => (Some(scheme), address),
        None => (None, said),
    };
    let (place, path) = match address.split_once('/') {
        Some((place, path)) => (place, format!("/{path}")),
        None => (address, String::new()),
    };
    let is_v6 = |host: &str| host.parse::<Ipv6Addr>().is_ok();
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !is_v6(place) && !port.contains(']') => (host, port),
        Some(_) | None => (place, ""),
    };
    let host = match host.trim_matches(['[', ']']) {
        "" | "0.0.0.0" => "127.0.0.1".to_owned(),
        "::" => "[::1]".to_owned(),
        bare if is_v6(bare) => format!("[{bare}]"),
        _ => host.to_owned(),
    };
    let (scheme, port) = match (scheme, port) {
        (None, "") if host == "ollama.com" => ("https", String::new()),
        (None, "") => ("http", ":11434".to_owned()),
        (Some(scheme), "") => (scheme, String::new()),
        (scheme, port) => (scheme.unwrap_or("http"), format!(":{port}")),
    };
    format!("{scheme}://{host}{port}{path}")
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
        let base_url = self.address(wire, |sources| sources.of_provider(wire, "BASE_URL", |e| &e.base_url));
        let key = self.of_provider(wire, "API_KEY", |e| &e.api_key);
        let is_set = base_url.is_some() || key.is_some();
        let api_key = self.guarded_key(wire, base_url.as_ref(), key, &mut Vec::new());
        let choice = match api_key {
            Err(refusal) => Err(refusal.message),
            Ok(_) if !is_set => Err(format!("no key ({})", wire.key_variable())),
            Ok(api_key) => Ok(ModelChoice::Endpoint {
                wire,
                base_url: base_url.map_or_else(|| wire.default_url().to_owned(), |(url, _)| url),
                api_key,
                model: String::new(),
            }),
        };
        Offer {
            name: name_of(wire),
            choice,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_s_variable_is_read_as_ollama_reads_it() {
        for (said, url) in [
            ("", "http://127.0.0.1:11434"),
            ("localhost", "http://localhost:11434"),
            ("10.0.0.5", "http://10.0.0.5:11434"),
            ("10.0.0.5:8080", "http://10.0.0.5:8080"),
            (":8080", "http://127.0.0.1:8080"),
            (":", "http://127.0.0.1:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("http://0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("::1", "http://[::1]:11434"),
            ("[::1]", "http://[::1]:11434"),
            ("[::]:8080", "http://[::1]:8080"),
            ("\"box.local\"", "http://box.local:11434"),
            ("box.local/ollama/", "http://box.local:11434/ollama/"),
            ("http://box.local", "http://box.local"),
            ("https://box.local/ollama", "https://box.local/ollama"),
            ("https://box.local:8443", "https://box.local:8443"),
            ("http://", "http://127.0.0.1"),
            ("ollama.com", "https://ollama.com"),
        ] {
            assert_eq!(ollama_url(said), url, "{said}");
        }
        let env = |value: &str| Environment::from([("OLLAMA_HOST".to_owned(), value.to_owned())]);
        for (said, url) in [("", "http://127.0.0.1:11434"), (" 0.0.0.0 ", "http://127.0.0.1:11434")] {
            let ModelChoice::Endpoint { base_url, .. } = ollama(&env(said), "m") else {
                panic!("{said}")
            };
            assert_eq!(base_url, url);
        }
    }
}

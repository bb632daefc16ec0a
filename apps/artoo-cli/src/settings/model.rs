//! Which model answers, and what it costs (design §18, §20).
//!
//! Owns precedence among the places that may name a model, an endpoint or a key. What a project may say of them is `project`'s business.

use std::collections::BTreeMap;
use std::path::Path;

use artoo_llm::provider::{Wire, shown};
use artoo_protocol::model::Usage;
use serde::Deserialize;

use super::file::{Endpoint, File};
use super::providers::{self, name_of};
use super::stored::Stored;
use super::{Environment, env_value};
use crate::args::Options;
use crate::failure::Failure;

/// Which model answers.
#[derive(Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// `builtin:offline`.
    Offline,
    /// A provider.
    Endpoint {
        /// The format it speaks.
        wire: Wire,
        /// As given; with or without `/v1`.
        base_url: String,
        /// None for local servers.
        api_key: Option<String>,
        /// The model's name.
        model: String,
    },
}

impl ModelChoice {
    /// Where it is reached, without what may be secret in it; nothing for the built-in one.
    pub fn address(&self) -> String {
        match self {
            Self::Offline => String::new(),
            Self::Endpoint { base_url, .. } => shown(base_url),
        }
    }
}

impl std::fmt::Debug for ModelChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_string())
    }
}

impl std::fmt::Display for ModelChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Offline => f.write_str("builtin:offline"),
            Self::Endpoint {
                base_url,
                model,
                api_key,
                ..
            } => {
                write!(
                    f,
                    "{model} at {} ({})",
                    shown(base_url),
                    if api_key.is_some() {
                        "with a key"
                    } else {
                        "without a key"
                    }
                )
            }
        }
    }
}

impl ModelChoice {
    /// The name by which the operator ranks and prices it.
    pub fn name(&self) -> &str {
        match self {
            Self::Offline => "builtin:offline",
            Self::Endpoint { model, .. } => model,
        }
    }

    /// Its key, where it has one.
    pub fn api_key(&self) -> Option<&str> {
        match self {
            Self::Offline => None,
            Self::Endpoint { api_key, .. } => api_key.as_deref(),
        }
    }
}

/// What a model costs, for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Of tokens that it reads.
    pub input: f64,
    /// Of tokens that it writes.
    pub output: f64,
    /// Of tokens that it reads from the provider's cache; like `input` when nothing is said.
    pub cached: Option<f64>,
}

impl Price {
    /// What a call cost.
    pub fn of(self, usage: &Usage) -> f64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let fresh = usage.input_tokens - cached;
        let read = self.input * fresh as f64 + self.cached.unwrap_or(self.input) * cached as f64;
        (read + self.output * usage.output_tokens as f64) / 1e6
    }
}

/// Where a value came from; later ones weigh more, and trust follows weight but for the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// `config.toml` in the data folder.
    User,
    /// A key that artoo was given to keep.
    Keyring,
    /// `.artoo.toml` in the project.
    Project,
    /// A variable.
    Environment,
    /// The command line.
    Flag,
}

pub(super) type Sourced = Option<(String, Origin)>;

/// One of the fields of an endpoint.
type Pick = fn(&Endpoint) -> &Option<String>;

/// Who is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// R1, R2, and R4b unless it has a judge of its own.
    Brain,
    /// R3, R4a.
    Tool,
    /// R4b's own.
    Judge,
    /// Beside R4a and R4b.
    SecondJudge,
}

impl Tier {
    /// The part of the environment that is this tier's own.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Brain => "BRAIN",
            Self::Tool => "TOOL",
            Self::Judge => "JUDGE",
            Self::SecondJudge => "SECOND_JUDGE",
        }
    }
}

/// Where models may be named.
pub struct Sources<'a> {
    pub options: &'a Options,
    pub env: &'a Environment,
    pub project: &'a File,
    /// Where the project's file is, to name it.
    pub project_file: &'a Path,
    pub user: &'a File,
    pub stored: &'a Stored,
}

impl Sources<'_> {
    /// Whether one was named outright, be it the offline model.
    pub fn names_a_model(&self) -> bool {
        self.options.model.is_some() || self.project.model.is_some() || self.user.model.is_some()
    }

    /// The `PROVIDER:NAME` that applies to a tier, if one was named.
    fn named(&self, tier: Tier) -> Sourced {
        let judge = match tier {
            Tier::Judge => Some(&self.user.judge_model),
            Tier::SecondJudge => Some(&self.user.second_judge_model),
            Tier::Brain | Tier::Tool => None,
        };
        if let Some(value) = judge {
            return value.clone().map(|v| (v, Origin::User));
        }
        let brain = |value: &Option<String>, origin| {
            let applies = tier == Tier::Brain;
            value.clone().filter(|_| applies).map(|v| (v, origin))
        };
        let all = |value: &Option<String>, origin| value.clone().map(|v| (v, origin));
        brain(&self.options.brain_model, Origin::Flag)
            .or_else(|| all(&self.options.model, Origin::Flag))
            .or_else(|| brain(&self.project.brain_model, Origin::Project))
            .or_else(|| all(&self.project.model, Origin::Project))
            .or_else(|| brain(&self.user.brain_model, Origin::User))
            .or_else(|| all(&self.user.model, Origin::User))
    }

    /// Whether any place says something about the model of a tier in particular.
    pub fn is_named(&self, tier: Tier) -> bool {
        let fields: [(&str, Pick); 3] = [
            ("MODEL", |e| &e.model),
            ("BASE_URL", |e| &e.base_url),
            ("API_KEY", |e| &e.api_key),
        ];
        let mut own = fields
            .iter()
            .map(|(variable, pick)| self.own_field(tier, variable, *pick));
        self.named(tier).is_some() || own.any(|found| found.is_some())
    }

    fn variable(&self, name: &str) -> Sourced {
        env_value(self.env, name).map(|v| (v, Origin::Environment))
    }

    /// A field in the places of this tier alone: the environment before project before user.
    fn own_field(&self, tier: Tier, variable: &str, pick: Pick) -> Sourced {
        let own = |file: &File| match tier {
            Tier::Brain => pick(&file.brain).clone(),
            Tier::Tool => pick(&file.tool).clone(),
            Tier::Judge => pick(&file.judge).clone(),
            Tier::SecondJudge => pick(&file.second_judge).clone(),
        };
        let prefix = tier.prefix();
        self.variable(&format!("{prefix}_{variable}"))
            .or_else(|| self.variable(&format!("{prefix}_OPENAI_{variable}")))
            .or_else(|| own(self.project).map(|v| (v, Origin::Project)))
            .or_else(|| own(self.user).map(|v| (v, Origin::User)))
    }

    /// A field of the endpoint: the tier's own places first, then those of the provider, within each the environment before
    /// project before user. A second judge takes no compatible server from the others: their key is none of its business.
    ///
    /// Where the environment names the model of all roles, files have no say about one of them: neither about its model nor, since
    /// they were written for that model, about address and key.
    ///
    /// A tier's own places are for compatible servers. Anthropic and Gemini are looked for in their own places alone, so that
    /// no provider is sent another's key.
    fn field(&self, tier: Tier, wire: Wire, variable: &str, pick: Pick) -> Sourced {
        if wire != Wire::OpenAi {
            return self.of_provider(wire, variable, pick);
        }
        let mut own = self.own_field(tier, variable, pick);
        let shares = match tier {
            Tier::Brain | Tier::Tool => {
                let is_outdone = self.variable("OPENAI_MODEL").is_some();
                own = own.filter(|(_, origin)| !is_outdone || *origin >= Origin::Environment);
                true
            }
            Tier::Judge => variable != "MODEL",
            Tier::SecondJudge => false,
        };
        if own.is_some() || !shares {
            return own;
        }
        self.of_provider(wire, variable, pick)
    }

    /// A provider with a key of its own, where nothing else is configured.
    fn key_without_model(&self) -> Option<Wire> {
        [Wire::Anthropic, Wire::Gemini]
            .into_iter()
            .find(|wire| self.key_place(*wire).is_some())
    }

    /// Who named the model of a tier; none for what applies where nobody does.
    pub fn origin(&self, tier: Tier) -> Option<Origin> {
        let model = self.field(tier, Wire::OpenAi, "MODEL", |e| &e.model);
        let named = self.named(tier).filter(|(_, origin)| outweighs(*origin, &model));
        named.or(model).map(|(_, origin)| origin)
    }

    /// The model of a tier.
    ///
    /// # Errors
    /// [`Failure`] (exit 2) when the model is unknown or half configured.
    pub fn choose(&self, tier: Tier, notices: &mut Vec<String>) -> Result<ModelChoice, Failure> {
        let named = self.named(tier);
        let mut model = self.field(tier, Wire::OpenAi, "MODEL", |e| &e.model);
        let mut wire = Wire::OpenAi;
        if let Some((text, origin)) = named.filter(|(_, origin)| outweighs(*origin, &model)) {
            match parse(&text) {
                Some(Named::Offline) => return Ok(ModelChoice::Offline),
                Some(Named::Ollama(name)) => return Ok(providers::ollama(self.env, name)),
                Some(Named::At(found, name)) => {
                    wire = found;
                    model = Some((name.to_owned(), origin));
                }
                None => {
                    return Err(Failure::usage(format!("`{text}` names no model that artoo knows")).hint(
                        "use openai:NAME (any OpenAI-compatible endpoint, see OPENAI_BASE_URL), anthropic:NAME, gemini:NAME, ollama:NAME or builtin:offline",
                    ));
                }
            }
        } else if model.as_ref().is_some_and(|(text, _)| text == OFFLINE) {
            return Ok(ModelChoice::Offline);
        } else if let Some((text, origin)) = &model
            && let Some(Named::At(found @ (Wire::Anthropic | Wire::Gemini), name)) = parse(text)
        {
            // Names of compatible servers have colons too, so only these two words mean another provider here.
            wire = found;
            model = Some((name.to_owned(), *origin));
        }
        let base_url = self.address(wire, |sources| sources.field(tier, wire, "BASE_URL", |e| &e.base_url));
        let api_key = self.field(tier, wire, "API_KEY", |e| &e.api_key);
        let known_place = base_url.is_some() || api_key.is_some();
        let api_key = self.guarded_key(wire, base_url.as_ref(), api_key, notices)?;
        self.is_at_hand(wire, api_key.as_ref())?;
        let (name, variable) = (name_of(wire), wire.key_variable());
        match (model, known_place) {
            (None, false) => match self.key_without_model() {
                Some(wire) => Err(Failure::usage(format!("there is a key of {} ({}), but no model is named", name_of(wire), wire.key_variable())).hint(
                    format!("name one with --model {}:NAME (`artoo models` lists them), or --model builtin:offline to do without", name_of(wire)),
                )),
                None => Ok(ModelChoice::Offline),
            },
            (None, true) => Err(Failure::usage("a model endpoint or key is set, but no model is named")
                .hint("set OPENAI_MODEL, or --model with openai:NAME, anthropic:NAME, gemini:NAME or ollama:NAME (`artoo models` lists them), or --model builtin:offline to do without")),
            (Some(_), false) => Err(
                Failure::usage("a model is named, but neither its endpoint nor a key is set").hint(match wire {
                    Wire::OpenAi => "set OPENAI_BASE_URL (any OpenAI-compatible server) or OPENAI_API_KEY (api.openai.com); a model of another provider is named anthropic:NAME, gemini:NAME or ollama:NAME".to_owned(),
                    Wire::Anthropic | Wire::Gemini => format!("set {variable}, or api_key under [{name}] in config.toml"),
                }),
            ),
            (Some((model, _)), true) => Ok(ModelChoice::Endpoint {
                wire,
                base_url: base_url.map_or_else(|| wire.default_url().to_owned(), |(url, _)| url),
                api_key,
                model,
            }),
        }
    }
}

/// Whether a `PROVIDER:NAME` weighs more than the plain name of a model: unless that stands in a place of more weight.
fn outweighs(named: Origin, plain: &Sourced) -> bool {
    plain.as_ref().is_none_or(|(_, plain)| named >= *plain)
}

/// How the built-in model is named wherever a model can be.
const OFFLINE: &str = "builtin:offline";

/// What `PROVIDER:NAME` means.
enum Named<'a> {
    Offline,
    Ollama(&'a str),
    At(Wire, &'a str),
}

fn parse(text: &str) -> Option<Named<'_>> {
    let (provider, name) = text.split_once(':')?;
    if name.is_empty() {
        return None;
    }
    match (provider, name) {
        ("builtin", "offline") => Some(Named::Offline),
        ("ollama", name) => Some(Named::Ollama(name)),
        ("openai", name) => Some(Named::At(Wire::OpenAi, name)),
        ("anthropic", name) => Some(Named::At(Wire::Anthropic, name)),
        ("gemini", name) => Some(Named::At(Wire::Gemini, name)),
        _ => None,
    }
}

/// A limit on money that nothing counts against would be a false promise.
///
/// # Errors
/// [`Failure`] (exit 2) naming the model without a price.
pub fn check_prices(prices: &BTreeMap<String, Price>, models: &[&ModelChoice]) -> Result<(), Failure> {
    for choice in models {
        let ModelChoice::Endpoint { model, .. } = choice else {
            continue;
        };
        let usable = |price: &Price| {
            [price.input, price.output, price.cached.unwrap_or(0.0)]
                .iter()
                .all(|p| p.is_finite() && *p >= 0.0)
        };
        if !prices.get(model).is_some_and(usable) {
            return Err(Failure::usage(format!(
                "a limit on cost is set, but no price is known for the model `{model}`"
            ))
            .hint(format!(
                "add [prices.\"{model}\"] with input and output per million tokens to config.toml in the data folder"
            )));
        }
    }
    Ok(())
}

//! How a provider is reached, as the app configures it (design §18, §20).
//!
//! Owns settings and their defaults. Must not read the environment: the app does, and says what is missing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::endpoint::{self, Endpoint};
use super::wire::Wire;
use crate::secret::Secret;

/// Everything needed to ask one model of one provider.
#[derive(Clone)]
pub struct ProviderConfig {
    /// The format it is spoken to in.
    pub wire: Wire,
    /// With or without the version (`/v1`), with or without a slash at the end, or the whole `…/chat/completions`; a host
    /// without a scheme is `http` on loopback and `https` elsewhere.
    pub base_url: String,
    /// May be empty, for servers that need none.
    pub api_key: Secret,
    /// The model's name.
    pub model: String,
    /// How long to wait for what; `None` takes what suits the host, see [`Timeouts`].
    pub timeouts: Option<Timeouts>,
    /// How often to try again.
    pub retries: Retries,
    /// Is told of every retry before the wait.
    pub on_retry: Option<RetryObserver>,
}

/// Hears of retries, so that a display can show them.
pub type RetryObserver = Arc<dyn Fn(RetryNotice) + Send + Sync>;

/// A request failed in a way that may pass, and will be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryNotice {
    /// The model that was asked.
    pub model: String,
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// Attempts in all.
    pub attempts: u32,
    /// The wait before the next one.
    pub wait: Duration,
    /// What happened, in a few words.
    pub reason: String,
}

/// Time-outs of one request. There is none on the whole: a slow answer is not cut while tokens arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection stands.
    pub connect: Duration,
    /// From the request to the first byte of the answer's body.
    pub first_token: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
}

impl Timeouts {
    /// For providers on the network: 10 s, 120 s, 60 s.
    pub const REMOTE: Self = Self {
        connect: Duration::from_secs(10),
        first_token: Duration::from_secs(120),
        idle: Duration::from_secs(60),
    };

    /// For servers on this machine, which may have to load the model first: the first token has 600 s.
    pub const LOOPBACK: Self = Self {
        first_token: Duration::from_secs(600),
        ..Self::REMOTE
    };

    /// Those that apply to an address where none are given.
    pub fn of(base_url: &str) -> Self {
        match Endpoint::parse(base_url, Wire::OpenAi, "") {
            Ok(endpoint) if endpoint.loopback => Self::LOOPBACK,
            Ok(_) | Err(_) => Self::REMOTE,
        }
    }

    /// How long one answer may be waited for before it is given up: the connection, the first token, a pause.
    pub const fn longest(&self) -> Duration {
        self.connect.saturating_add(self.first_token).saturating_add(self.idle)
    }
}

/// How often a request that failed in a passing way is sent again, with waits that double, with jitter; behind a limit that says
/// nothing of its length with waits that outlast a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// The wait before the second attempt.
    pub first_wait: Duration,
    /// Longest time that all waits of one request may take together, also those that a server demands (`Retry-After`); where one
    /// would go beyond, the request is given up at once.
    pub longest_wait: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(300),
        }
    }
}

impl ProviderConfig {
    /// An OpenAI-compatible provider with default time-outs and retries.
    pub fn new(base_url: impl Into<String>, api_key: Secret, model: impl Into<String>) -> Self {
        Self {
            wire: Wire::OpenAi,
            base_url: base_url.into(),
            api_key,
            model: model.into(),
            timeouts: None,
            retries: Retries::default(),
            on_retry: None,
        }
    }
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("wire", &self.wire)
            .field("base_url", &endpoint::shown(&self.base_url))
            .field("api_key", &self.api_key)
            .field("model", &self.model)
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

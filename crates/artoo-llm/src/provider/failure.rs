//! Why there was no answer, sorted by what may help (design §18).
//!
//! Owns the sorting and the words. Must not try again: it says whether and when that may help. Whatever others said is masked
//! before it is cut: of a key that was cut, half would be left to see.

use std::time::Duration;

use artoo_protocol::model::ModelError;
use artoo_protocol::text::one_line;
use reqwest::Url;
use serde_json::Value;

use super::exchange::Target;
use super::transport::{Broken, Head};
use super::wire::{Exhausted, ProviderError, Wire, provider_error};
use crate::secret::mask;

/// Why an exchange gave no answer, by what may help.
#[derive(Debug)]
pub(super) enum Failure {
    /// It may pass: send the same again.
    Passing {
        /// In a few words.
        reason: String,
        /// How long that may take.
        pause: Pause,
        /// What to say when it does not pass.
        error: ModelError,
    },
    /// The server refused this request; putting it otherwise may help.
    Refused {
        status: u16,
        /// The server's words.
        words: String,
        error: ModelError,
    },
    /// Nothing helps.
    Final(ModelError),
}

/// How long a failure may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Nobody knows.
    Moment,
    /// Too many requests at present, and nobody says until when: most limits are per minute.
    Limit,
    /// The server says how long.
    Asked(Duration),
}

/// A status that is no success.
pub(super) fn from_status(head: &Head, text: &str, target: &Target<'_>) -> Failure {
    if let Some(location) = head.location.as_ref().filter(|_| (300..400).contains(&head.status)) {
        return Failure::Final(ModelError::Rejected {
            status: head.status,
            message: format!(
                "{} redirects to {location}; set the base URL to that place",
                host(target.url)
            ),
        });
    }
    let parsed = serde_json::from_str::<Value>(text.trim()).ok();
    let said = parsed.as_ref().and_then(provider_error);
    let said = said.unwrap_or_else(|| ProviderError::in_words(text.to_owned()));
    let wait = head
        .retry_after
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    from_words(head.status, &said, wait.or(said.wait), target)
}

/// HTTP 200 with an error inside.
pub(super) fn from_error_document(error: &ProviderError, target: &Target<'_>) -> Failure {
    from_words(error.status.unwrap_or(200), error, error.wait, target)
}

fn from_words(status: u16, error: &ProviderError, wait: Option<Duration>, target: &Target<'_>) -> Failure {
    let ProviderError { words, exhausted, .. } = error;
    let line = target.line(words, 300);
    let said = if line.is_empty() {
        String::new()
    } else {
        format!(": {line}")
    };
    let host = host(target.url);
    // A limit per minute that one request alone exceeds never lets it through.
    let too_large = status == 413 || (status == 429 && words.contains("Request too large"));
    let passes = matches!(status, 408 | 409 | 425 | 429 | 500 | 502..=504 | 520..=524 | 529);
    if passes && exhausted.is_none() && !too_large {
        let later = wait.map_or_else(
            || "later".to_owned(),
            |wait| format!("in {} s", wait.as_secs_f64().ceil()),
        );
        return Failure::Passing {
            reason: format!("HTTP {status}{said}"),
            pause: match (wait, status) {
                (Some(wait), _) => Pause::Asked(wait),
                (None, 429 | 529) => Pause::Limit,
                (None, _) => Pause::Moment,
            },
            error: ModelError::Unreachable {
                message: format!("{host} answers HTTP {status}{said}; try again {later}"),
            },
        };
    }
    let remedy = remedy(status, error, too_large, target);
    let rejected = ModelError::Rejected {
        status,
        message: format!("HTTP {status} from {host}{said}; {remedy}"),
    };
    match (exhausted, status) {
        (None, 400 | 404 | 405 | 415 | 422 | 501) => Failure::Refused {
            status,
            words: words.clone(),
            error: rejected,
        },
        (Some(_) | None, _) => Failure::Final(rejected),
    }
}

/// What the person can do about it.
fn remedy(status: u16, error: &ProviderError, too_large: bool, target: &Target<'_>) -> String {
    match (error.exhausted, status) {
        (Some(Exhausted::Account), _) => "the account has no quota left".to_owned(),
        (Some(Exhausted::Day), _) => "today's quota is used up; wait for the next day or use another model".to_owned(),
        (None, _) if too_large => "the request is too large for this model".to_owned(),
        (None, 401) => check_the_key(target.wire),
        // Gemini says so in words only.
        (None, 400) if error.words.to_lowercase().contains("api key") => check_the_key(target.wire),
        (None, 402) => "the account has no credit left".to_owned(),
        (None, 403) => format!(
            "the key may not use `{}`, or the host refuses this network",
            target.model
        ),
        (None, 404) => format!("check the model's name `{}` and the base URL", target.model),
        (None, _) => "the server does not accept this request".to_owned(),
    }
}

fn check_the_key(wire: Wire) -> String {
    format!("check the API key ({})", wire.key_variable())
}

/// A success whose body is none.
pub(super) fn not_json(text: &str, target: &Target<'_>) -> Failure {
    let what = if text.starts_with('<') {
        "a web page"
    } else {
        "something that is no JSON"
    };
    Failure::Refused {
        status: 404,
        words: String::new(),
        error: ModelError::Rejected {
            status: 200,
            message: format!(
                "{} answered with {what}; check the base URL: {}",
                host(target.url),
                target.line(text, 120)
            ),
        },
    }
}

pub(super) fn from_broken(broken: Broken, target: &Target<'_>) -> Failure {
    let host = host(target.url);
    match broken {
        Broken::NoConnection(why) => Failure::Final(ModelError::Unreachable {
            message: format!(
                "no connection to {host} ({why}); check the base URL, the network, and that the server runs"
            ),
        }),
        Broken::Reset(why) => Failure::Passing {
            reason: format!("the connection broke ({})", target.line(&why, 120)),
            pause: Pause::Moment,
            error: ModelError::Unreachable {
                message: format!("the connection to {host} keeps breaking ({why}); check the network and the server"),
            },
        },
        Broken::Impossible(why) => Failure::Final(ModelError::Unreachable {
            message: format!("the request to {host} could not be made ({why})"),
        }),
    }
}

/// A stream without its end.
pub(super) fn ended_early() -> Failure {
    Failure::Passing {
        reason: "the stream ended early".to_owned(),
        pause: Pause::Moment,
        error: ModelError::Unusable {
            message: "malformed stream: it ended before the answer was complete".to_owned(),
        },
    }
}

pub(super) fn stalled(what: &str, after: Duration) -> Failure {
    unusable(format!("stalled: {what} for {} s", after.as_secs_f64()))
}

pub(super) fn unusable(message: String) -> Failure {
    Failure::Final(ModelError::Unusable { message })
}

fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or("the server");
    url.port()
        .map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}

impl Target<'_> {
    /// What others said as one line of so many characters, without anything secret.
    pub(super) fn line(&self, text: &str, limit: usize) -> String {
        one_line(&mask(text, std::slice::from_ref(self.key)), limit)
    }
}

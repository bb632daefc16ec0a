//! One request and its answer, read in whatever form the server chooses, every way of failing named (design §18).
//!
//! Owns the reading of bodies and the sorting of failures. Must not decide about trying again: it says what may help.

use std::time::Duration;

use artoo_protocol::model::ModelError;
use artoo_protocol::text::one_line;
use reqwest::Url;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::config::Timeouts;
use super::pieces::{Gap, Pieces};
use super::sse::{Decoder, TooLong};
use super::transport::{Broken, Head, Transport};
use super::wire::{Collected, ProviderError, Wire, provider_error};

/// Longest answer in bytes.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// Longest error body that is read, in bytes.
const MAX_ERROR_BODY: usize = 64 * 1024;
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Why an exchange gave no answer, by what may help.
#[derive(Debug)]
pub(super) enum Failure {
    /// It may pass: send the same again.
    Passing {
        /// In a few words.
        reason: String,
        /// The wait that the server asks for.
        wait: Option<Duration>,
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

/// What an exchange needs to know besides the body.
pub(super) struct Target<'a> {
    pub url: &'a Url,
    pub model: &'a str,
    pub wire: Wire,
    pub timeouts: Timeouts,
}

/// Sends a request and reads the answer.
pub(super) async fn exchange(
    transport: &dyn Transport,
    target: &Target<'_>,
    body: Vec<u8>,
) -> Result<Collected, Failure> {
    let first = Instant::now() + target.timeouts.first_token;
    let sent = timeout_at(first, transport.post(target.url, body)).await;
    let (head, body) = sent
        .map_err(|_| stalled("no answer began", target.timeouts.first_token))?
        .map_err(|broken| from_broken(broken, target))?;
    let Timeouts { first_token, idle, .. } = target.timeouts;
    let mut pieces = Pieces::new(body, first, first_token, idle);
    if (200..300).contains(&head.status) {
        return read_answer(&mut pieces, target).await;
    }
    let text = error_text(&mut pieces).await;
    Err(from_status(&head, &text, target))
}

/// Reads a document that is no answer of a model.
pub(super) async fn fetch(transport: &dyn Transport, target: &Target<'_>) -> Result<Value, Failure> {
    let idle = target.timeouts.idle;
    let first = Instant::now() + idle;
    let sent = timeout_at(first, transport.get(target.url)).await;
    let (head, body) = sent
        .map_err(|_| stalled("no answer began", idle))?
        .map_err(|broken| from_broken(broken, target))?;
    let mut pieces = Pieces::new(body, first, idle, idle);
    if !(200..300).contains(&head.status) {
        let text = error_text(&mut pieces).await;
        return Err(from_status(&head, &text, target));
    }
    let mut bytes = Vec::new();
    loop {
        match pieces.next().await {
            Ok(Some(piece)) => bytes.extend_from_slice(&piece),
            Ok(None) => break,
            Err(Gap::Stalled(after)) => return Err(stalled("the answer stopped in the middle", after)),
            Err(Gap::Broken(broken)) => return Err(from_broken(broken, target)),
        }
        if bytes.len() > MAX_BODY {
            return Err(unusable(format!("the answer is larger than {} MiB", MAX_BODY >> 20)));
        }
    }
    serde_json::from_slice(&bytes).map_err(|_| not_json(&String::from_utf8_lossy(&bytes), target))
}

/// How the body turns out to be written, whatever its content type claims.
enum Form {
    Undecided,
    Document,
    Events(Decoder),
}

/// An answer while it comes in.
struct Arriving {
    form: Form,
    /// What has no form yet, or the document so far.
    buffer: Vec<u8>,
    collected: Collected,
}

async fn read_answer(pieces: &mut Pieces, target: &Target<'_>) -> Result<Collected, Failure> {
    let mut arriving = Arriving {
        form: Form::Undecided,
        buffer: Vec::new(),
        collected: Collected::default(),
    };
    loop {
        let piece = match pieces.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return arriving.end(target),
            Err(Gap::Stalled(after)) => return Err(stalled("the answer stopped in the middle", after)),
            // Some servers cut the connection right behind the last event.
            Err(Gap::Broken(_)) if arriving.collected.finish.is_some() => return arriving.end(target),
            Err(Gap::Broken(broken)) => return Err(from_broken(broken, target)),
        };
        if pieces.total() > MAX_BODY {
            return Err(unusable(format!("the answer is larger than {} MiB", MAX_BODY >> 20)));
        }
        let events = arriving.push(&piece);
        let events = events.map_err(|_| unusable("malformed stream: an event without end".to_owned()))?;
        if absorb_events(&mut arriving.collected, events, target)? {
            return Ok(arriving.collected);
        }
    }
}

impl Arriving {
    /// The events completed by this piece.
    fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, TooLong> {
        if let Form::Events(decoder) = &mut self.form {
            return decoder.push(piece);
        }
        self.buffer.extend_from_slice(piece);
        if matches!(self.form, Form::Document) {
            return Ok(Vec::new());
        }
        let blank = |byte: &&u8| byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(byte);
        match self.buffer.iter().find(|byte| !blank(byte)) {
            None => Ok(Vec::new()),
            Some(b'{' | b'[' | b'<' | b'"') => {
                self.form = Form::Document;
                Ok(Vec::new())
            }
            Some(_) => {
                let mut decoder = Decoder::default();
                let events = decoder.push(&std::mem::take(&mut self.buffer));
                self.form = Form::Events(decoder);
                events
            }
        }
    }

    fn end(mut self, target: &Target<'_>) -> Result<Collected, Failure> {
        match self.form {
            Form::Undecided => Err(unusable("empty answer: the server sent nothing".to_owned())),
            Form::Document => read_document(self.collected, &self.buffer, target),
            Form::Events(mut decoder) => {
                let rest = decoder.finish().into_iter().collect();
                if absorb_events(&mut self.collected, rest, target)? || self.collected.finish.is_some() {
                    return Ok(self.collected);
                }
                Err(Failure::Passing {
                    reason: "the stream ended early".to_owned(),
                    wait: None,
                    error: ModelError::Unusable {
                        message: "malformed stream: it ended before the answer was complete".to_owned(),
                    },
                })
            }
        }
    }
}

/// Whether the stream says that it is complete.
fn absorb_events(collected: &mut Collected, events: Vec<String>, target: &Target<'_>) -> Result<bool, Failure> {
    for event in events {
        let data = event.trim();
        if data == "[DONE]" {
            return Ok(true);
        }
        if data.is_empty() {
            continue;
        }
        let value: Value = serde_json::from_str(data).map_err(|_| {
            unusable(format!(
                "malformed stream: an event is no JSON: {}",
                one_line(data, 120)
            ))
        })?;
        if let Some(error) = provider_error(&value) {
            return Err(from_error_document(&error, target));
        }
        if target.wire.absorb(collected, &value) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read_document(mut collected: Collected, bytes: &[u8], target: &Target<'_>) -> Result<Collected, Failure> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Err(not_json(text, target));
    };
    if let Some(error) = provider_error(&value) {
        return Err(from_error_document(&error, target));
    }
    target.wire.absorb(&mut collected, &value);
    Ok(collected)
}

fn not_json(text: &str, target: &Target<'_>) -> Failure {
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
                one_line(text, 120)
            ),
        },
    }
}

async fn error_text(pieces: &mut Pieces) -> String {
    let mut bytes = Vec::new();
    // Whatever can be had: a body that breaks off still names the error.
    while let Ok(Some(piece)) = pieces.next().await {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_ERROR_BODY {
            bytes.truncate(MAX_ERROR_BODY);
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn from_status(head: &Head, text: &str, target: &Target<'_>) -> Failure {
    let parsed = serde_json::from_str::<Value>(text.trim()).ok();
    let words = parsed
        .as_ref()
        .and_then(provider_error)
        .map_or_else(|| text.to_owned(), |error| error.words);
    if let Some(location) = head.location.as_ref().filter(|_| (300..400).contains(&head.status)) {
        return Failure::Final(ModelError::Rejected {
            status: head.status,
            message: format!(
                "{} redirects to {location}; set the base URL to that place",
                host(target.url)
            ),
        });
    }
    let wait = head
        .retry_after
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    from_words(head.status, &words, wait, target)
}

/// HTTP 200 with an error inside.
fn from_error_document(error: &ProviderError, target: &Target<'_>) -> Failure {
    from_words(error.status.unwrap_or(200), &error.words, None, target)
}

fn from_words(status: u16, words: &str, wait: Option<Duration>, target: &Target<'_>) -> Failure {
    let line = one_line(words, 300);
    let said = if line.is_empty() {
        String::new()
    } else {
        format!(": {line}")
    };
    let host = host(target.url);
    let exhausted = ["insufficient_quota", "billing", "credit balance"]
        .iter()
        .any(|mark| words.contains(mark));
    if matches!(status, 408 | 429 | 500 | 502 | 503 | 504 | 529) && !exhausted {
        return Failure::Passing {
            reason: format!("HTTP {status}{said}"),
            wait,
            error: ModelError::Unreachable {
                message: format!("{host} answers HTTP {status}{said}; try again later"),
            },
        };
    }
    let remedy = match status {
        _ if exhausted => "the account has no quota left".to_owned(),
        401 => check_the_key(target.wire),
        // Gemini says so in words only.
        400 if words.to_lowercase().contains("api key") => check_the_key(target.wire),
        402 => "the account has no credit left".to_owned(),
        403 => format!(
            "the key may not use `{}`, or the host refuses this network",
            target.model
        ),
        404 => format!("check the model's name `{}` and the base URL", target.model),
        413 => "the request is too large for this model".to_owned(),
        _ => "the server does not accept this request".to_owned(),
    };
    let error = ModelError::Rejected {
        status,
        message: format!("HTTP {status} from {host}{said}; {remedy}"),
    };
    match status {
        400 | 404 | 405 | 415 | 422 | 501 => Failure::Refused {
            status,
            words: words.to_owned(),
            error,
        },
        _ => Failure::Final(error),
    }
}

fn check_the_key(wire: Wire) -> String {
    format!("check the API key ({})", wire.key_variable())
}

fn from_broken(broken: Broken, target: &Target<'_>) -> Failure {
    let host = host(target.url);
    match broken {
        Broken::NoConnection(why) => Failure::Final(ModelError::Unreachable {
            message: format!(
                "no connection to {host} ({why}); check the base URL, the network, and that the server runs"
            ),
        }),
        Broken::Reset(why) => Failure::Passing {
            reason: format!("the connection broke ({})", one_line(&why, 120)),
            wait: None,
            error: ModelError::Unreachable {
                message: format!("the connection to {host} keeps breaking ({why}); check the network and the server"),
            },
        },
        Broken::Impossible(why) => Failure::Final(ModelError::Unreachable {
            message: format!("the request to {host} could not be made ({why})"),
        }),
    }
}

fn stalled(what: &str, after: Duration) -> Failure {
    unusable(format!("stalled: {what} for {} s", after.as_secs_f64()))
}

fn unusable(message: String) -> Failure {
    Failure::Final(ModelError::Unusable { message })
}

fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or("the server");
    url.port()
        .map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}

//! One request and its answer, read in whatever form the server chooses, every way of failing named (design §18).
//!
//! Owns the reading of bodies, as far as they came. Must not decide about trying again.

use std::time::Duration;

use reqwest::Url;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::config::Timeouts;
use super::failure::{
    Failure, ended_early, from_broken, from_error_document, from_status, not_json, stalled, unusable,
};
use super::pieces::{Gap, Pieces};
use super::sse::{Decoder, TooLong};
use super::transport::Transport;
use super::wire::{Collected, Wire, provider_error};
use crate::secret::Secret;

/// Longest answer in bytes.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// Longest error body that is read, in bytes.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// How long more is waited for once the answer is complete: its usage may follow, and not every server closes or says `[DONE]`.
const AFTER_FINISH: Duration = Duration::from_secs(10);
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// What an exchange needs to know besides the body.
pub(super) struct Target<'a> {
    pub url: &'a Url,
    pub model: &'a str,
    pub wire: Wire,
    pub timeouts: Timeouts,
    /// Must not show in what is said about a failure.
    pub key: &'a Secret,
}

/// Sends a request and reads the answer. What came of one before it failed is in `collected` all the same: it has its price.
pub(super) async fn exchange(
    transport: &dyn Transport,
    target: &Target<'_>,
    body: Vec<u8>,
    collected: &mut Collected,
) -> Result<(), Failure> {
    let first = Instant::now() + target.timeouts.first_token;
    let sent = timeout_at(first, transport.post(target.url, body)).await;
    let (head, body) = sent
        .map_err(|_| stalled("no answer began", target.timeouts.first_token))?
        .map_err(|broken| from_broken(broken, target))?;
    let Timeouts { first_token, idle, .. } = target.timeouts;
    let mut pieces = Pieces::new(body, first, first_token, idle);
    if (200..300).contains(&head.status) {
        return read_answer(&mut pieces, target, collected).await;
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
struct Arriving<'a> {
    form: Form,
    /// What has no form yet, or the document so far.
    buffer: Vec<u8>,
    collected: &'a mut Collected,
}

async fn read_answer(pieces: &mut Pieces, target: &Target<'_>, collected: &mut Collected) -> Result<(), Failure> {
    let mut arriving = Arriving {
        form: Form::Undecided,
        buffer: Vec::new(),
        collected,
    };
    loop {
        let piece = match pieces.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return arriving.end(target),
            // Some servers cut the connection right behind the last event, or leave it open and say nothing more.
            Err(Gap::Broken(_) | Gap::Stalled(_)) if arriving.is_whole() => return arriving.end(target),
            Err(Gap::Stalled(after)) => return Err(stalled("the answer stopped in the middle", after)),
            Err(Gap::Broken(broken)) => return Err(from_broken(broken, target)),
        };
        if pieces.total() > MAX_BODY {
            return Err(unusable(format!("the answer is larger than {} MiB", MAX_BODY >> 20)));
        }
        let events = arriving.push(&piece);
        let events = events.map_err(|_| unusable("malformed stream: an event without end".to_owned()))?;
        // Comments, which keep a connection alive, are no events.
        let silent = events.is_empty();
        if absorb_events(arriving.collected, events, target)? {
            return Ok(());
        }
        if !silent && arriving.collected.finish.is_some() {
            pieces.end_within(AFTER_FINISH);
        }
    }
}

impl Arriving<'_> {
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

    /// Whether nothing that matters is missing, though the end was not said.
    fn is_whole(&self) -> bool {
        match self.form {
            Form::Undecided => false,
            Form::Document => serde_json::from_slice::<IgnoredAny>(&self.buffer).is_ok(),
            Form::Events(_) => self.collected.finish.is_some(),
        }
    }

    fn end(self, target: &Target<'_>) -> Result<(), Failure> {
        match self.form {
            Form::Undecided => Err(unusable("empty answer: the server sent nothing".to_owned())),
            Form::Document => read_document(self.collected, &self.buffer, target),
            Form::Events(mut decoder) => {
                let complete = self.collected.finish.is_some();
                let rest = decoder.finish().into_iter().collect();
                match absorb_events(self.collected, rest, target) {
                    // Half an event behind the answer takes nothing from it.
                    _ if complete => Ok(()),
                    Ok(said) if said || self.collected.finish.is_some() => Ok(()),
                    Ok(_) => Err(ended_early()),
                    Err(failure) => Err(failure),
                }
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
                target.line(data, 120)
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

fn read_document(collected: &mut Collected, bytes: &[u8], target: &Target<'_>) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Err(not_json(text, target));
    };
    if let Some(error) = provider_error(&value) {
        return Err(from_error_document(&error, target));
    }
    target.wire.absorb(collected, &value);
    Ok(())
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

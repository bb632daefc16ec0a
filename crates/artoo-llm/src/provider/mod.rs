//! Models of providers: any OpenAI-compatible endpoint, Anthropic, Gemini (design §18).
//!
//! Owns one conversation turn from request to fitting answer: the fall-backs of dialect, the retries, the reading and the
//! one re-ask. Must not know roles, nor where its configuration comes from.

mod config;
mod dialect;
mod endpoint;
mod exchange;
mod listing;
mod pieces;
mod sse;
mod transport;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use artoo_protocol::model::{AnswerForm, ChatMessage, ModelContent, ModelError, ModelReply, ModelRequest, Usage};
use artoo_protocol::ports::LanguageModel;
use artoo_protocol::text::head_tail;
use artoo_protocol::tool::ToolSpec;
use artoo_protocol::units::Millis;
use async_trait::async_trait;
use backon::{BackoffBuilder as _, ExponentialBuilder};
use serde_json::Value;
use tokio::time::Instant;

pub use self::config::{ProviderConfig, Retries, RetryNotice, RetryObserver, Timeouts};
use self::dialect::Dialect;
use self::endpoint::Endpoint;
pub use self::endpoint::{EndpointError, shown};
use self::exchange::{Failure, Target, exchange};
use self::transport::{Http, Transport};
pub use self::wire::Wire;
use self::wire::{Ask, Collected};
use crate::reader::{self, Shapes};
use crate::secret::mask;

/// How much of an unreadable answer goes back to the model, in characters.
const SHOWN_BACK: usize = 8_000;

/// In which words and to which place a request goes.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    dialect: Dialect,
    /// Position among the endpoint's candidates.
    candidate: usize,
}

/// One model of one provider.
pub struct Provider {
    config: ProviderConfig,
    timeouts: Timeouts,
    endpoint: Endpoint,
    transport: Arc<dyn Transport>,
    /// What worked last.
    way: Mutex<Way>,
    shapes: Shapes,
}

impl Provider {
    /// A model as configured; nothing is connected or loaded before the first request.
    ///
    /// # Errors
    /// [`EndpointError`] when the base URL cannot be read.
    pub fn new(config: ProviderConfig) -> Result<Self, EndpointError> {
        let endpoint = Endpoint::parse(&config.base_url, config.wire, &config.model)?;
        let timeouts = config.timeouts.unwrap_or(if endpoint.loopback {
            Timeouts::LOOPBACK
        } else {
            Timeouts::REMOTE
        });
        let tls = endpoint.candidates.iter().any(|url| url.scheme() == "https");
        let transport = Arc::new(Http::new(
            config.api_key.clone(),
            config.wire,
            endpoint.loopback,
            tls,
            timeouts,
        ));
        Ok(Self::over(transport, config, timeouts, endpoint))
    }

    fn over(transport: Arc<dyn Transport>, config: ProviderConfig, timeouts: Timeouts, endpoint: Endpoint) -> Self {
        Self {
            config,
            timeouts,
            endpoint,
            transport,
            way: Mutex::default(),
            shapes: Shapes::default(),
        }
    }

    /// Where requests go, without anything secret.
    pub fn url(&self) -> String {
        let candidate = self.endpoint.candidates.get(self.known_way().candidate);
        candidate.map_or_else(String::new, |url| endpoint::shown(url.as_str()))
    }

    fn known_way(&self) -> Way {
        *self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one request until it is answered, refused, or has failed too often.
    async fn send(&self, messages: &[ChatMessage], request: &ModelRequest) -> Result<Collected, ModelError> {
        let mut attempt = 1;
        let mut waits = self.waits();
        let mut way = self.known_way();
        let mut first_refusal = None;
        loop {
            let sent = self.exchange(messages, request, way).await;
            match sent {
                Ok(collected) => {
                    // Only what worked is worth remembering.
                    *self.way.lock().unwrap_or_else(PoisonError::into_inner) = way;
                    return Ok(collected);
                }
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Refused { status, words, error }) => {
                    let structured = matches!(request.form, AnswerForm::Structured { .. });
                    // What was refused first is what the person should hear of.
                    let error = first_refusal.get_or_insert(error);
                    way = self
                        .other_way(way, status, &words, structured)
                        .ok_or_else(|| error.clone())?;
                }
                Err(Failure::Passing { reason, wait, error }) => {
                    let wait = self.next_wait(attempt, wait, waits.next()).ok_or(error)?;
                    self.announce(attempt, wait, &reason);
                    tokio::time::sleep(wait).await;
                    attempt += 1;
                }
            }
        }
    }

    async fn exchange(&self, messages: &[ChatMessage], request: &ModelRequest, way: Way) -> Result<Collected, Failure> {
        let Some(url) = self.endpoint.candidates.get(way.candidate) else {
            return Err(Failure::Final(ModelError::Unreachable {
                message: "no endpoint is left to try".to_owned(),
            }));
        };
        let target = Target {
            url,
            model: &self.config.model,
            wire: self.config.wire,
            timeouts: self.timeouts,
        };
        let body = self.config.wire.body(&Ask {
            model: &self.config.model,
            messages,
            form: &request.form,
            limit: request.max_output_tokens,
            dialect: way.dialect,
        });
        let mut collected = exchange(self.transport.as_ref(), &target, body.to_string().into_bytes()).await?;
        if let AnswerForm::Structured { name, .. } = &request.form {
            collected.take_as_text(name);
        }
        Ok(collected)
    }

    /// Another way to put a request that was refused: in a simpler dialect, or to another path. There are few of them, and
    /// none leads back.
    fn other_way(&self, way: Way, status: u16, words: &str, structured: bool) -> Option<Way> {
        if let Some(dialect) = way.dialect.simpler(status, words, structured) {
            return Some(Way { dialect, ..way });
        }
        let no_such_path = matches!(status, 404 | 405) && !words.contains(&self.config.model);
        let candidate = way.candidate + 1;
        (no_such_path && candidate < self.endpoint.candidates.len()).then_some(Way { candidate, ..way })
    }

    fn waits(&self) -> impl Iterator<Item = Duration> + use<> {
        ExponentialBuilder::default()
            .with_min_delay(self.config.retries.first_wait)
            .with_max_delay(Duration::from_secs(20))
            .with_max_times(self.config.retries.attempts.saturating_sub(1) as usize)
            .with_jitter()
            .build()
    }

    /// How long to wait before the next attempt; `None` when there is none.
    fn next_wait(&self, attempt: u32, asked: Option<Duration>, planned: Option<Duration>) -> Option<Duration> {
        if attempt >= self.config.retries.attempts || asked.is_some_and(|wait| wait > self.config.retries.longest_wait)
        {
            return None;
        }
        planned.map(|planned| planned.max(asked.unwrap_or_default()))
    }

    fn announce(&self, attempt: u32, wait: Duration, reason: &str) {
        if let Some(observer) = &self.config.on_retry {
            observer(RetryNotice {
                model: self.config.model.clone(),
                attempt,
                attempts: self.config.retries.attempts,
                wait,
                reason: self.masked(reason),
            });
        }
    }

    async fn structured(&self, request: &ModelRequest, name: &str, schema: &Value) -> Result<Answer, ModelError> {
        let shape = self.shapes.get(name, schema).map_err(|error| ModelError::Unreadable {
            message: error.to_string(),
        })?;
        let first = self.send(&request.messages, request).await?;
        let text = usable_text(&first)?;
        let defect = match reader::read(&text, &shape) {
            Ok(reading) => return Ok(Answer::once(ModelContent::Structured { value: reading.value }, first)),
            Err(unread) => unread.to_string(),
        };
        let mut messages = request.messages.clone();
        messages.push(ChatMessage::Assistant {
            content: Some(head_tail(&text, SHOWN_BACK)),
            tool_calls: Vec::new(),
        });
        messages.push(ChatMessage::User {
            content: format!(
                "Your answer could not be read: {defect}.\n{}",
                wire::schema_in_words(name, schema)
            ),
        });
        let second = self.send(&messages, request).await?;
        let reading = reader::read(&usable_text(&second)?, &shape).map_err(|unread| ModelError::Unreadable {
            message: format!("{unread} (asked twice; the first time: {defect})"),
        })?;
        let usage = add(first.usage, second.usage);
        Ok(Answer {
            usage: Usage { requests: 2, ..usage },
            ..Answer::once(ModelContent::Structured { value: reading.value }, second)
        })
    }

    async fn with_tools(&self, request: &ModelRequest, tools: &[ToolSpec]) -> Result<Answer, ModelError> {
        let collected = self.send(&request.messages, request).await?;
        let calls = collected.calls(tools);
        if collected.finish.as_deref() == Some("length") {
            return Err(cut_off());
        }
        let text = reader::without_thinking(&collected.text).to_owned();
        let content = if !calls.is_empty() {
            ModelContent::ToolCalls {
                text: Some(text).filter(|text| !text.is_empty()),
                calls,
            }
        } else if let Some(call) = wire::written_call(&collected.text, tools) {
            ModelContent::ToolCalls {
                text: None,
                calls: vec![call],
            }
        } else {
            usable_text(&collected)?;
            if text.is_empty() {
                return Err(empty());
            }
            ModelContent::Text { text }
        };
        Ok(Answer::once(content, collected))
    }

    fn masked(&self, text: &str) -> String {
        mask(text, std::slice::from_ref(&self.config.api_key))
    }

    /// The same error without anything secret: providers like to repeat the key that they refuse.
    fn masked_error(&self, error: ModelError) -> ModelError {
        match error {
            ModelError::Unreachable { message } => ModelError::Unreachable {
                message: self.masked(&message),
            },
            ModelError::Rejected { status, message } => ModelError::Rejected {
                status,
                message: self.masked(&message),
            },
            ModelError::Unusable { message } => ModelError::Unusable {
                message: self.masked(&message),
            },
            ModelError::Unreadable { message } => ModelError::Unreadable {
                message: self.masked(&message),
            },
            ModelError::NotUnderstood { message } => ModelError::NotUnderstood { message },
        }
    }
}

struct Answer {
    content: ModelContent,
    model: Option<String>,
    usage: Usage,
}

impl Answer {
    fn once(content: ModelContent, collected: Collected) -> Self {
        Self {
            content,
            model: collected.model,
            usage: Usage {
                requests: 1,
                ..collected.usage
            },
        }
    }
}

#[async_trait]
impl LanguageModel for Provider {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let started = Instant::now();
        let answer = match &request.form {
            AnswerForm::Structured { name, schema } => self.structured(request, name, schema).await,
            AnswerForm::Tools { tools } => self.with_tools(request, tools).await,
        };
        let answer = answer.map_err(|error| self.masked_error(error))?;
        Ok(ModelReply {
            content: answer.content,
            model: answer.model.unwrap_or_else(|| self.config.model.clone()),
            usage: answer.usage,
            elapsed_ms: Millis(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)),
        })
    }
}

/// The text of an answer that is complete, or the name of what is wrong with it.
fn usable_text(collected: &Collected) -> Result<String, ModelError> {
    let unusable = |message: String| Err(ModelError::Unusable { message });
    match collected.finish.as_deref() {
        Some("length" | "max_tokens") => return Err(cut_off()),
        Some("content_filter" | "refusal") => {
            return unusable("refusal: the provider's content filter stopped it".to_owned());
        }
        _ => {}
    }
    if !collected.refusal.trim().is_empty() {
        return unusable(format!(
            "refusal: {}",
            artoo_protocol::text::one_line(&collected.refusal, 300)
        ));
    }
    if collected.text.trim().is_empty() {
        return Err(empty());
    }
    Ok(collected.text.clone())
}

fn empty() -> ModelError {
    ModelError::Unusable {
        message: "empty choice: the answer holds neither text nor a tool call".to_owned(),
    }
}

fn cut_off() -> ModelError {
    ModelError::Unusable {
        message: "finish_reason length: the answer was cut off at the model's limit of output tokens".to_owned(),
    }
}

fn add(a: Usage, b: Usage) -> Usage {
    Usage {
        input_tokens: a.input_tokens + b.input_tokens,
        output_tokens: a.output_tokens + b.output_tokens,
        cached_tokens: a.cached_tokens + b.cached_tokens,
        requests: a.requests + b.requests,
    }
}

#[cfg(test)]
mod tests;

//! Models of providers: any OpenAI-compatible endpoint, Anthropic, Gemini (design §18).
//!
//! Owns one conversation turn from request to fitting answer: the fall-backs of dialect, the retries, the reading and the
//! one re-ask. Must not know roles, nor where its configuration comes from.

mod bill;
mod config;
mod dialect;
mod endpoint;
mod exchange;
mod failure;
mod listing;
mod pieces;
mod sse;
mod transport;
mod waits;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use artoo_protocol::model::{AnswerForm, ChatMessage, ModelContent, ModelError, ModelReply, ModelRequest};
use artoo_protocol::ports::LanguageModel;
use artoo_protocol::text::{head_tail, one_line};
use artoo_protocol::tool::ToolSpec;
use artoo_protocol::units::Millis;
use async_trait::async_trait;
use serde_json::Value;
use tokio::time::Instant;

use self::bill::{Bill, Came};
pub use self::config::{ProviderConfig, Retries, RetryNotice, RetryObserver, Timeouts};
use self::dialect::Dialect;
use self::endpoint::Endpoint;
pub use self::endpoint::{EndpointError, shown};
use self::exchange::{Target, exchange};
use self::failure::Failure;
use self::transport::{Http, Transport};
use self::waits::Waits;
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
    async fn send(
        &self,
        messages: &[ChatMessage],
        request: &ModelRequest,
        bill: &mut Bill,
    ) -> Result<Collected, ModelError> {
        bill.ask();
        let mut waits = Waits::of(&self.config.retries);
        let mut way = self.known_way();
        let mut first_refusal = None;
        loop {
            match self.exchange(messages, request, way, bill).await {
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
                Err(Failure::Passing { reason, pause, error }) => {
                    let failed = waits.attempt;
                    let wait = waits.next(pause).ok_or(error)?;
                    self.announce(failed, wait, &reason);
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    async fn exchange(
        &self,
        messages: &[ChatMessage],
        request: &ModelRequest,
        way: Way,
        bill: &mut Bill,
    ) -> Result<Collected, Failure> {
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
            key: &self.config.api_key,
        };
        let body = self.config.wire.body(&Ask {
            model: &self.config.model,
            messages,
            form: &request.form,
            limit: request.max_output_tokens,
            dialect: way.dialect,
        });
        let body = body.to_string().into_bytes();
        let (sent, mut collected) = (body.len(), Collected::default());
        let done = exchange(self.transport.as_ref(), &target, body, &mut collected).await;
        let came = if done.is_ok() { Came::Whole } else { Came::InPart };
        bill.add(sent, &collected, came);
        done?;
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

    async fn structured(
        &self,
        request: &ModelRequest,
        name: &str,
        schema: &Value,
        bill: &mut Bill,
    ) -> Result<ModelContent, ModelError> {
        let shape = self.shapes.get(name, schema).map_err(|error| ModelError::Unreadable {
            message: error.to_string(),
        })?;
        let first = self.send(&request.messages, request, bill).await?;
        let text = self.usable_text(&first)?;
        let defect = match reader::read(text, &shape) {
            Ok(reading) => return Ok(ModelContent::Structured { value: reading.value }),
            Err(unread) => unread.to_string(),
        };
        let mut messages = request.messages.clone();
        messages.push(ChatMessage::Assistant {
            content: Some(head_tail(text, SHOWN_BACK)),
            tool_calls: Vec::new(),
        });
        messages.push(ChatMessage::User {
            content: format!(
                "Your answer could not be read: {defect}.\n{}",
                wire::schema_in_words(name, schema)
            ),
        });
        let second = self.send(&messages, request, bill).await?;
        let reading = reader::read(self.usable_text(&second)?, &shape).map_err(|unread| ModelError::Unreadable {
            message: format!("{unread} (asked twice; the first time: {defect})"),
        })?;
        Ok(ModelContent::Structured { value: reading.value })
    }

    async fn with_tools(
        &self,
        request: &ModelRequest,
        tools: &[ToolSpec],
        bill: &mut Bill,
    ) -> Result<ModelContent, ModelError> {
        let collected = self.send(&request.messages, request, bill).await?;
        let calls = collected.calls(tools);
        if collected.is_cut_off() {
            return Err(cut_off());
        }
        let text = reader::without_thinking(&collected.text).to_owned();
        if !calls.is_empty() {
            let text = Some(text).filter(|text| !text.is_empty());
            return Ok(ModelContent::ToolCalls { text, calls });
        }
        if let Some(call) = wire::written_call(&collected.text, tools) {
            let calls = vec![call];
            return Ok(ModelContent::ToolCalls { text: None, calls });
        }
        self.usable_text(&collected)?;
        if text.is_empty() {
            return Err(empty());
        }
        Ok(ModelContent::Text { text })
    }

    /// The text of an answer that is complete, or the name of what is wrong with it.
    fn usable_text<'a>(&self, collected: &'a Collected) -> Result<&'a str, ModelError> {
        let refused = |why: &str| {
            Err(ModelError::Unusable {
                message: format!("refusal: {why}"),
            })
        };
        if collected.is_cut_off() {
            return Err(cut_off());
        }
        if let Some("content_filter" | "refusal") = collected.finish.as_deref() {
            return refused("the provider's content filter stopped it");
        }
        if !collected.refusal.trim().is_empty() {
            // Masked before it is cut: of a key that was cut, half would be left to see.
            return refused(&one_line(&self.masked(&collected.refusal), 300));
        }
        if collected.text.trim().is_empty() {
            return Err(empty());
        }
        Ok(&collected.text)
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
            ModelError::Charged { error, model, usage } => self.masked_error(*error).charged(&model, usage),
        }
    }
}

#[async_trait]
impl LanguageModel for Provider {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let started = Instant::now();
        let mut bill = Bill::default();
        let answer = match &request.form {
            AnswerForm::Structured { name, schema } => self.structured(request, name, schema, &mut bill).await,
            AnswerForm::Tools { tools } => self.with_tools(request, tools, &mut bill).await,
        };
        let Bill { model, usage } = bill;
        let model = model.unwrap_or_else(|| self.config.model.clone());
        let content = answer.map_err(|error| self.masked_error(error).charged(&model, usage))?;
        Ok(ModelReply {
            content,
            model,
            usage,
            elapsed_ms: Millis(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)),
        })
    }
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

#[cfg(test)]
mod tests;

//! The HTTP side: one request, its status, and the answer's body piece by piece (design §18).
//!
//! Owns the connection and the key in its header. Must not know what is in the bodies. Behind a trait, so that stalls and
//! resets can be tested on virtual time.

use std::sync::OnceLock;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, RequestBuilder, Url, redirect};

use super::config::Timeouts;
use super::wire::Wire;
use crate::secret::Secret;

/// The head of an answer.
pub(super) struct Head {
    pub status: u16,
    /// Seconds that the server asks to wait.
    pub retry_after: Option<f64>,
    /// Where a redirect leads.
    pub location: Option<String>,
}

/// Why an exchange broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// No connection came about: refused, no such host, no route, time-out, TLS.
    NoConnection(String),
    /// A connection broke, before or in the middle of the answer.
    Reset(String),
    /// The request could not be made at all.
    Impossible(String),
}

#[async_trait]
pub(super) trait Body: Send {
    /// The next piece; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Broken>;
}

#[async_trait]
pub(super) trait Transport: Send + Sync {
    async fn post(&self, url: &Url, body: Vec<u8>) -> Result<(Head, Box<dyn Body>), Broken>;
    async fn get(&self, url: &Url) -> Result<(Head, Box<dyn Body>), Broken>;
}

/// The real one. The client is built on first use, so that a process that asks nothing pays nothing.
pub(super) struct Http {
    key: Secret,
    wire: Wire,
    loopback: bool,
    /// Whether TLS is needed: loading the root certificates costs tens of milliseconds.
    tls: bool,
    timeouts: Timeouts,
    client: OnceLock<Result<Client, String>>,
}

impl Http {
    pub fn new(key: Secret, wire: Wire, loopback: bool, tls: bool, timeouts: Timeouts) -> Self {
        Self {
            key,
            wire,
            loopback,
            tls,
            timeouts,
            client: OnceLock::new(),
        }
    }

    fn client(&self) -> Result<&Client, Broken> {
        let client = self.client.get_or_init(|| self.build().map_err(|error| causes(&error)));
        client.as_ref().map_err(|error| Broken::Impossible(error.clone()))
    }

    fn build(&self) -> reqwest::Result<Client> {
        // An error means that a provider is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(self.timeouts.connect)
            .user_agent(concat!("artoo/", env!("CARGO_PKG_VERSION")))
            // A redirected POST would lose its body or carry the key elsewhere: the person is told where it leads.
            .redirect(redirect::Policy::none());
        if !self.tls {
            // A new connection costs next to nothing here, and llama.cpp's server closes each one behind a streamed answer without
            // having said so: the next request on it would be lost.
            builder = builder.tls_certs_only([]).pool_max_idle_per_host(0);
        }
        if self.loopback {
            builder = builder.no_proxy();
        }
        builder.build()
    }
}

#[async_trait]
impl Transport for Http {
    async fn post(&self, url: &Url, body: Vec<u8>) -> Result<(Head, Box<dyn Body>), Broken> {
        let request = self
            .client()?
            .post(url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        self.send(request).await
    }

    async fn get(&self, url: &Url) -> Result<(Head, Box<dyn Body>), Broken> {
        let request = self.client()?.get(url.clone());
        self.send(request).await
    }
}

impl Http {
    async fn send(&self, request: RequestBuilder) -> Result<(Head, Box<dyn Body>), Broken> {
        let response = self.signed(request)?.send().await.map_err(broken)?;
        let head = Head {
            status: response.status().as_u16(),
            retry_after: retry_after(response.headers()),
            location: header(response.headers(), &LOCATION).map(str::to_owned),
        };
        Ok((head, Box::new(Received(response))))
    }
}

impl Http {
    /// With the key, where the format wants it.
    fn signed(&self, request: RequestBuilder) -> Result<RequestBuilder, Broken> {
        let request = match self.wire {
            Wire::Anthropic => request.header("anthropic-version", "2023-06-01"),
            Wire::OpenAi | Wire::Gemini => request,
        };
        if self.key.is_empty() {
            return Ok(request);
        }
        let (name, value) = match self.wire {
            Wire::OpenAi => ("authorization", format!("Bearer {}", self.key.expose())),
            Wire::Anthropic => ("x-api-key", self.key.expose().to_owned()),
            Wire::Gemini => ("x-goog-api-key", self.key.expose().to_owned()),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            Broken::Impossible("the API key holds characters that cannot be sent; set it again".to_owned())
        })?;
        value.set_sensitive(true);
        Ok(request.header(name, value))
    }
}

struct Received(reqwest::Response);

#[async_trait]
impl Body for Received {
    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let chunk = self.0.chunk().await.map_err(broken)?;
        Ok(chunk.map(|bytes| bytes.to_vec()))
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Seconds only: the form with a date needs a clock that agrees with the server's.
fn retry_after(headers: &HeaderMap) -> Option<f64> {
    let seconds = |name: &'static str| {
        header(headers, &HeaderName::from_static(name))?
            .trim()
            .parse::<f64>()
            .ok()
    };
    seconds("retry-after-ms")
        .map(|ms| ms / 1000.0)
        .or_else(|| seconds("retry-after"))
        .filter(|wait| wait.is_finite() && *wait >= 0.0)
}

// Takes the error because `map_err` gives it.
#[allow(clippy::needless_pass_by_value, reason = "fits map_err")]
fn broken(error: reqwest::Error) -> Broken {
    let words = causes(&error);
    if error.is_connect() || error.is_timeout() {
        Broken::NoConnection(words)
    } else if error.is_builder() {
        Broken::Impossible(words)
    } else {
        Broken::Reset(words)
    }
}

/// The innermost cause, which says what happened; the outer ones repeat the URL.
fn causes(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

//! The forms in which a request is answered (design §21).
//!
//! Owns the form of documents, of errors, and of pages that only the script may show. Knows no path and no task.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::watch::shown;

/// What a request is told.
pub type Answer = Result<Response, Fault>;

/// Why there is no answer.
pub struct Fault {
    /// The status that says so.
    pub status: StatusCode,
    words: String,
}

impl Fault {
    /// With the words for a person.
    pub fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self {
            status,
            words: words.into(),
        }
    }

    /// What went wrong on this side.
    pub fn failed(words: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, words)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        (
            self.status,
            told("application/json", json!({"error": shown(&self.words)}).to_string()),
        )
            .into_response()
    }
}

/// A body of this kind.
pub fn told(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(kind))], body.into()).into_response()
}

/// A document.
pub fn json_of(value: &Value) -> Response {
    told("application/json", value.to_string())
}

/// A page that only the script of this page shows: a browser that came upon it would show the text of it.
pub fn page_of(html: String) -> Response {
    told("text/plain; charset=utf-8", html)
}

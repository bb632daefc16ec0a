//! From what people write as a base URL to where requests go (design §18).
//!
//! Owns URLs. Must not send anything.

use std::net::IpAddr;

use reqwest::Url;
use thiserror::Error;

use super::wire::Wire;

/// A base URL that names no endpoint.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EndpointError {
    /// Nothing was given.
    #[error("no base URL is given; set OPENAI_BASE_URL, for instance to https://api.openai.com/v1")]
    Empty,
    /// It cannot be read.
    #[error("the base URL `{url}` cannot be read ({reason}); expected something like https://api.openai.com/v1")]
    NotAUrl {
        /// As given, credentials left out.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Where chat requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// Most likely first; the others are tried when the server knows no such path.
    pub candidates: Vec<Url>,
    /// Where the names of its models are, in the same order.
    pub listings: Vec<Url>,
    /// Whether it is this machine.
    pub loopback: bool,
}

impl Endpoint {
    pub fn parse(base_url: &str, wire: Wire, model: &str) -> Result<Self, EndpointError> {
        let text = base_url.trim();
        if text.is_empty() {
            return Err(EndpointError::Empty);
        }
        let fault = |reason: String| EndpointError::NotAUrl {
            url: shown(text),
            reason,
        };
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            let guess = Url::parse(&format!("http://{text}")).map_err(|error| fault(error.to_string()))?;
            format!("{}://{text}", if is_loopback(&guess) { "http" } else { "https" })
        };
        let mut url = Url::parse(&whole).map_err(|error| fault(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(fault("neither http nor https".to_owned()));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(fault("no host".to_owned()));
        }
        url.set_fragment(None);
        let candidates = candidates(&url, wire, model);
        Ok(Self {
            loopback: is_loopback(&url),
            listings: candidates.iter().map(|url| listing(url, wire)).collect(),
            candidates,
        })
    }
}

fn candidates(url: &Url, wire: Wire, model: &str) -> Vec<Url> {
    let generate = format!("{}:streamGenerateContent", model.trim_start_matches("models/"));
    let (version, tail): (&str, &[&str]) = match wire {
        Wire::OpenAi => ("v1", &["chat", "completions"]),
        Wire::Anthropic => ("v1", &["messages"]),
        Wire::Gemini => ("v1beta", &["models", &generate]),
    };
    let segments: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    let mut found = if segments.ends_with(tail) {
        vec![with_path(url, &segments, &[], &[])]
    } else if segments.iter().any(|part| is_version(part)) {
        vec![with_path(url, &segments, &[], tail)]
    } else {
        vec![
            with_path(url, &segments, &[version], tail),
            with_path(url, &segments, &[], tail),
        ]
    };
    if wire == Wire::Gemini {
        for url in &mut found {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
    }
    found
}

/// Where the models are listed, from where one is asked.
fn listing(chat: &Url, wire: Wire) -> Url {
    let mut url = chat.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop();
        match wire {
            Wire::OpenAi => path.pop().push("models"),
            Wire::Anthropic => path.push("models"),
            Wire::Gemini => &mut path,
        };
    }
    match wire {
        Wire::OpenAi => {}
        // As many as there may be on one page.
        Wire::Anthropic => url.set_query(Some("limit=1000")),
        Wire::Gemini => url.set_query(Some("pageSize=1000")),
    }
    url
}

/// Each part is one segment, whatever characters it has.
fn with_path(url: &Url, segments: &[&str], version: &[&str], tail: &[&str]) -> Url {
    let mut url = url.clone();
    url.set_path(&segments.join("/"));
    // Fails only for URLs without a host, which were refused before.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(version).extend(tail);
    }
    url
}

/// `v1`, `v4`, `v1beta`.
fn is_version(segment: &str) -> bool {
    segment
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// A base URL for people to read: without user, password and query, which may hold keys.
pub fn shown(url: &str) -> String {
    let parsed = Url::parse(url.trim()).ok().filter(Url::has_host);
    let Some(mut parsed) = parsed else {
        return url
            .rsplit('@')
            .next()
            .unwrap_or_default()
            .split('?')
            .next()
            .unwrap_or_default()
            .to_owned();
    };
    if parsed.username().is_empty() && parsed.password().is_none() && parsed.query().is_none() {
        return url.trim().to_owned();
    }
    // Both fail only for URLs that cannot have them.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_in_every_usual_form_work() {
        let check = |given: &str, expected: &[&str]| {
            let endpoint = Endpoint::parse(given, Wire::OpenAi, "m").unwrap();
            let urls: Vec<&str> = endpoint.candidates.iter().map(Url::as_str).collect();
            assert_eq!(urls, expected, "{given}");
        };
        let openai = "https://api.openai.com/v1/chat/completions";
        check("https://api.openai.com/v1", &[openai]);
        check(" https://api.openai.com/v1/ ", &[openai]);
        check("https://api.openai.com/v1/chat/completions", &[openai]);
        check("https://api.openai.com/v1/chat/completions/", &[openai]);
        check(
            "https://api.openai.com",
            &[openai, "https://api.openai.com/chat/completions"],
        );
        check("https://api.openai.com//v1//", &[openai]);
        check(
            "https://openrouter.ai/api/v1",
            &["https://openrouter.ai/api/v1/chat/completions"],
        );
        check(
            "https://generativelanguage.googleapis.com/v1beta/openai/",
            &["https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"],
        );
        check(
            "https://models.github.ai/inference",
            &[
                "https://models.github.ai/inference/v1/chat/completions",
                "https://models.github.ai/inference/chat/completions",
            ],
        );
        check(
            "localhost:11434",
            &[
                "http://localhost:11434/v1/chat/completions",
                "http://localhost:11434/chat/completions",
            ],
        );
        check(
            "api.z.ai/api/paas/v4",
            &["https://api.z.ai/api/paas/v4/chat/completions"],
        );
        check(
            "https://x.example/v1?api-version=2",
            &["https://x.example/v1/chat/completions?api-version=2"],
        );
    }

    #[test]
    fn other_formats_have_their_own_paths() {
        let check = |given: &str, wire, model: &str, expected: &str, listing: &str| {
            let endpoint = Endpoint::parse(given, wire, model).unwrap();
            assert_eq!(endpoint.candidates[0].as_str(), expected);
            assert_eq!(endpoint.listings[0].as_str(), listing);
        };
        let claude = "https://api.anthropic.com/v1/messages";
        let listing = "https://api.anthropic.com/v1/models?limit=1000";
        for given in ["https://api.anthropic.com", "https://api.anthropic.com/v1/", claude] {
            check(given, Wire::Anthropic, "c", claude, listing);
        }
        let gemini = "https://g.example/v1beta/models/g-1:streamGenerateContent?alt=sse";
        let listing = "https://g.example/v1beta/models?pageSize=1000";
        for (given, model) in [("https://g.example", "g-1"), ("g.example/v1beta", "models/g-1")] {
            check(given, Wire::Gemini, model, gemini, listing);
        }
        // A name cannot lead elsewhere.
        let odd = Endpoint::parse("https://g.example/v1beta", Wire::Gemini, "../a/b?c#d").unwrap();
        assert_eq!(
            odd.candidates[0].path(),
            "/v1beta/models/..%2Fa%2Fb%3Fc%23d:streamGenerateContent"
        );
        check(
            "localhost:1",
            Wire::OpenAi,
            "m",
            "http://localhost:1/v1/chat/completions",
            "http://localhost:1/v1/models",
        );
    }

    #[test]
    fn loopback_is_recognised() {
        let loopback = |url| Endpoint::parse(url, Wire::OpenAi, "m").unwrap().loopback;
        for url in [
            "http://127.0.0.1:1",
            "http://[::1]:8/v1",
            "localhost",
            "http://0.0.0.0:5",
            "http://a.localhost",
        ] {
            assert!(loopback(url), "{url}");
        }
        for url in [
            "https://api.openai.com",
            "http://10.0.0.1",
            "http://localhost.evil.example",
        ] {
            assert!(!loopback(url), "{url}");
        }
    }

    #[test]
    fn what_is_no_url_is_said_without_its_secrets() {
        assert_eq!(Endpoint::parse("  ", Wire::OpenAi, "m"), Err(EndpointError::Empty));
        let error = Endpoint::parse("ftp://me:hunter2@host/x?key=hunter2", Wire::OpenAi, "m")
            .unwrap_err()
            .to_string();
        assert!(error.contains("ftp://host/x") && !error.contains("hunter2"), "{error}");
        assert!(Endpoint::parse("http://", Wire::OpenAi, "m").is_err());
    }
}

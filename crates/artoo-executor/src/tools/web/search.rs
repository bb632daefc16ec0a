//! `search`: the web's search engines (design §8, §9).
//!
//! Owns the engines and how their answers are read. An engine that does not answer is no empty result: the model is told not to guess.
//! Must not send anything but the query.

use std::fmt::Write as _;
use std::sync::Arc;

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, ToolOutput, ToolSpec};
use async_trait::async_trait;
use html5gum::{Token, Tokenizer};
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;

use super::fetch_url::sending;
use super::html::attribute;
use super::outgoing::{self, Outgoing};
use super::{GoogleKeys, Page, Web};
use crate::tools::{Mask, Places, arguments, exceeds, failed, invalid};

/// Results that are shown.
const SHOWN: usize = 10;
/// Characters of a result's own words.
const SNIPPET: usize = 300;

pub(in crate::tools) struct Search {
    pub web: Arc<Web>,
    pub places: Arc<Places>,
    pub mask: Mask,
}

#[derive(Deserialize)]
struct Arguments {
    query: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Hit {
    #[serde(default)]
    title: String,
    #[serde(rename = "link")]
    address: String,
    #[serde(default)]
    snippet: String,
}

impl Search {
    fn look(&self, invocation: &Invocation) -> Result<(String, EffectClass, &'static str), String> {
        let given = arguments::<Arguments>(invocation)?;
        let query = given.query.split_whitespace().collect::<Vec<_>>().join(" ");
        if query.is_empty() {
            return Err("the query is empty".to_owned());
        }
        match outgoing::query(&query, &self.places, &self.mask) {
            Outgoing::Plain => Ok((query, EffectClass::Fetch, "it asks a search engine")),
            Outgoing::Doubtful(why) => Ok((query, EffectClass::External, why)),
            Outgoing::Secret => Err("the query holds a secret: it is not sent".to_owned()),
        }
    }

    async fn ask(&self, query: &str) -> Result<Vec<Hit>, String> {
        let settings = &self.web.settings;
        let (url, engine) = match &settings.google {
            Some(keys) => (google(&settings.google_address, keys, query), "Google"),
            None => (with_query(&settings.duckduckgo, &[("q", query)]), "DuckDuckGo"),
        };
        let url = url.map_err(|error| format!("{engine}'s address is wrong: {error}"))?;
        let page = self
            .web
            .get(url)
            .await
            .map_err(|error| format!("{engine}: {}", error.words()))?;
        if page.status.as_u16() != 200 {
            return Err(format!("{engine} answered {}", page.status));
        }
        let hits = if settings.google.is_some() {
            read_google(&page)
        } else {
            read_duckduckgo(&page.text())
        };
        hits.ok_or_else(|| format!("{engine}'s answer is no list of results; it may take this for a machine"))
    }
}

#[async_trait]
impl Tool for Search {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "search".to_owned(),
            description:
                "Asks a web search engine; title, address and a few words of each result. Read a result with fetch_url."
                    .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"query": {"type": "string"}},
                "required": ["query"],
                "additionalProperties": false
            }),
        }
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        match self.look(invocation) {
            Ok((query, effect, reason)) => sending(format!("search the web for `{query}`"), effect, reason, query),
            Err(error) => invalid(error),
        }
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        let (query, effect, _) = match self.look(invocation) {
            Ok(found) => found,
            Err(error) => return failed(error, FailureClass::Logical),
        };
        if let Some(refusal) = exceeds(effect, permit) {
            return refusal;
        }
        match self.ask(&query).await {
            Ok(hits) => listed(&query, &hits),
            Err(why) => failed(
                format!(
                    "the search could not run: {why}. Nothing is known from it: do not guess, say that it could not be looked up."
                ),
                FailureClass::Environmental,
            ),
        }
    }
}

fn with_query(base: &str, pairs: &[(&str, &str)]) -> Result<Url, String> {
    Url::parse_with_params(base, pairs).map_err(|error| error.to_string())
}

fn google(base: &str, keys: &GoogleKeys, query: &str) -> Result<Url, String> {
    with_query(base, &[("key", &keys.key), ("cx", &keys.engine), ("q", query)])
}

fn listed(query: &str, hits: &[Hit]) -> ToolOutput {
    let mut output = String::new();
    for hit in hits.iter().take(SHOWN) {
        let snippet: String = hit.snippet.chars().take(SNIPPET).collect();
        let _ = writeln!(output, "{}\n{}\n{}\n", hit.title.trim(), hit.address, snippet.trim());
    }
    let _ = write!(output, "[{} results for `{query}`]", hits.len().min(SHOWN));
    ToolOutput {
        output,
        lines: hits.len().min(SHOWN) as u64,
        ..ToolOutput::default()
    }
}

/// Google's answer; without results it has no `items`.
fn read_google(page: &Page) -> Option<Vec<Hit>> {
    #[derive(Deserialize)]
    struct Answer {
        kind: String,
        #[serde(default)]
        items: Vec<Hit>,
    }
    let answer: Answer = serde_json::from_slice(&page.bytes).ok()?;
    answer.kind.starts_with("customsearch").then_some(answer.items)
}

/// DuckDuckGo's plain page: links of class `result__a`, words of class `result__snippet`; a page without results says `no-results`.
fn read_duckduckgo(html: &str) -> Option<Vec<Hit>> {
    let mut hits: Vec<Hit> = Vec::new();
    let (mut in_title, mut in_snippet, mut says_none) = (false, false, false);
    for token in Tokenizer::new(html) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let class = attribute(&tag, "class").unwrap_or_default();
                let has = |wanted: &str| class.split_whitespace().any(|one| one == wanted);
                says_none |= has("no-results") || has("result--no-result");
                if has("result__a") {
                    in_title = true;
                    let href = attribute(&tag, "href").unwrap_or_default();
                    hits.push(Hit {
                        address: target(&href)?,
                        ..Hit::default()
                    });
                } else if has("result__snippet") {
                    in_snippet = true;
                }
            }
            Token::EndTag(tag) if matches!(tag.name.as_slice(), b"a" | b"div") => {
                (in_title, in_snippet) = (false, false);
            }
            Token::String(text) => {
                if let Some(hit) = hits.last_mut() {
                    let text = String::from_utf8_lossy(&text);
                    if in_title {
                        hit.title.push_str(&text);
                    } else if in_snippet {
                        hit.snippet.push_str(&text);
                    }
                }
            }
            Token::EndTag(_) | Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    // Advertisements lead back to the engine itself.
    hits.retain(|hit| !hit.address.contains("duckduckgo.com/"));
    (!hits.is_empty() || says_none).then_some(hits)
}

/// Where a result leads: the engine wraps addresses into one of its own.
fn target(href: &str) -> Option<String> {
    let url = Url::parse("https://duckduckgo.com/").ok()?.join(href).ok()?;
    let wrapped = url
        .query_pairs()
        .find(|(name, _)| name == "uddg")
        .map(|(_, value)| value.into_owned());
    Some(wrapped.unwrap_or_else(|| url.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_and_a_challenge_is_no_empty_result() {
        let page = r#"<div class="result results_links web-result"><h2 class="result__title"><a rel="nofollow" class="result__a"
            href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fwww.rust%2Dlang.org%2F&amp;rut=abc">Rust &amp; <b>you</b></a></h2>
            <a class="result__snippet" href="//x">A <b>language</b> empowering everyone.</a></div>
            <div class="result result--ad"><a class="result__a" href="//duckduckgo.com/y.js?ad=1">Buy</a></div>"#;
        let hits = read_duckduckgo(page).unwrap();
        assert_eq!(hits.len(), 1);
        assert_eq!(hits[0].title, "Rust & you");
        assert_eq!(hits[0].address, "https://www.rust-lang.org/");
        assert_eq!(hits[0].snippet, "A language empowering everyone.");
        assert_eq!(
            read_duckduckgo("<div class=\"no-results\">No results.</div>"),
            Some(Vec::new())
        );
        assert_eq!(
            read_duckduckgo("<form id=\"challenge-form\">Select all ducks</form>"),
            None
        );
        assert_eq!(read_duckduckgo(""), None);
    }
}

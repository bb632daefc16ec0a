//! `fetch_url`: the text of one page on the public web (design §8, §9).
//!
//! Owns what is shown of a page. Must not send anything but the address.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, Reach, ToolOutput, ToolSpec};
use async_trait::async_trait;
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;

use super::html::readable;
use super::outgoing::{self, Outgoing};
use super::{NoPage, Page, Web, shown};
use crate::capture::Capture;
use crate::tools::text_kind::{Sample, TextKind, kind_of};
use crate::tools::{Abandoned, Mask, Places, arguments, blocking, exceeds, failed, invalid, worker_died};

/// Time for making text of a page.
const READING: Duration = Duration::from_secs(10);

pub(in crate::tools) struct FetchUrl {
    pub web: Arc<Web>,
    pub places: Arc<Places>,
    pub mask: Mask,
}

#[derive(Deserialize)]
struct Arguments {
    url: String,
}

impl FetchUrl {
    /// The address and what fetching it means; an error for one that is never fetched.
    fn look(&self, invocation: &Invocation) -> Result<(Url, EffectClass, &'static str), String> {
        let given = arguments::<Arguments>(invocation)?;
        let mut url =
            Url::parse(given.url.trim()).map_err(|error| format!("`{}` is no address: {error}", given.url))?;
        if let Some(why) = self.web.settings.guard.refuses(&url) {
            return Err(why);
        }
        let (effect, reason) = match outgoing::address(&url, &self.places, &self.mask) {
            Outgoing::Plain => (EffectClass::Fetch, "it reads a page of the public web"),
            Outgoing::Doubtful(why) => (EffectClass::External, why),
            Outgoing::Secret => return Err("the address holds a secret: it is not sent".to_owned()),
        };
        url.set_fragment(None);
        Ok((url, effect, reason))
    }
}

/// What a call means that sends `subject` out.
pub(super) fn sending(action: String, effect: EffectClass, reason: &str, subject: String) -> Assessment {
    Assessment {
        effect,
        reach: if effect == EffectClass::Fetch {
            Reach::Nowhere
        } else {
            Reach::Elsewhere
        },
        action,
        reason: reason.to_owned(),
        programs: Vec::new(),
        targets: vec![subject],
        invalid: None,
        fingerprint: 0,
    }
}

#[async_trait]
impl Tool for FetchUrl {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "fetch_url".to_owned(),
            description: "Reads one public web page as text.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"url": {"type": "string"}},
                "required": ["url"],
                "additionalProperties": false
            }),
        }
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        match self.look(invocation) {
            Ok((url, effect, reason)) => sending(format!("fetch {url}"), effect, reason, url.to_string()),
            Err(error) => invalid(error),
        }
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        let (url, effect, _) = match self.look(invocation) {
            Ok(found) => found,
            Err(error) => return failed(error, FailureClass::Logical),
        };
        if let Some(refusal) = exceeds(effect, permit) {
            return refusal;
        }
        match self.web.get(url).await {
            Ok(page) => read(page).await,
            Err(NoPage::Refused(why)) => failed(why, FailureClass::Logical),
            Err(NoPage::Unreachable(why)) => failed(
                format!("{why}. Do not guess what it says."),
                FailureClass::Environmental,
            ),
        }
    }
}

/// The page's text, made beside everything else that goes on, and only for so long.
async fn read(page: Page) -> ToolOutput {
    let address = page.url.clone();
    let reading = blocking(move |abandoned| as_text(&page, abandoned));
    match tokio::time::timeout(READING, reading).await {
        Ok(text) => text.flatten().unwrap_or_else(worker_died),
        Err(_) => failed(
            format!(
                "{} took longer than {} s to be read",
                shown(&address),
                READING.as_secs()
            ),
            FailureClass::Environmental,
        ),
    }
}

/// `None` when nobody waits for it any more.
fn as_text(page: &Page, abandoned: &Abandoned) -> Option<ToolOutput> {
    let markup = matches!(page.kind.as_str(), "text/html" | "application/xhtml+xml");
    if !markup
        && let TextKind::Binary(what) = kind_of(page.bytes.get(..64 * 1024).unwrap_or(&page.bytes), Sample::Start)
    {
        let why = format!(
            "{} is {what} ({}), not text: it is not shown",
            shown(&page.url),
            page.kind
        );
        return Some(failed(why, FailureClass::Logical));
    }
    let mut text = String::new();
    if markup {
        let read = readable(&page.text(), abandoned)?;
        if !read.title.is_empty() {
            let _ = writeln!(text, "{}\n", read.title);
        }
        text.push_str(&read.text);
        for (place, (words, href)) in read.links.iter().enumerate() {
            if let Ok(link) = page.url.join(href)
                && matches!(link.scheme(), "http" | "https")
            {
                let _ = write!(
                    text,
                    "{}{words}: {link}",
                    if place == 0 { "\n\nLinks:\n" } else { "\n" }
                );
            }
        }
    } else {
        text = page.text();
    }
    let mut capture = Capture::default();
    capture.push(text.as_bytes());
    let captured = capture.finish();
    let mut output = format!("{}\n{}", page.url, captured.text);
    if captured.lines == 0 {
        output.push_str("[the page has no text]");
    }
    if page.cut {
        output.push_str("\n[the page is longer; only its beginning was read]");
    }
    let fault = page.status.is_client_error() || page.status.is_server_error();
    Some(ToolOutput {
        output,
        truncated: captured.truncated || page.cut,
        lines: captured.lines,
        error: fault.then(|| format!("the server answered {}", page.status)),
        failure_class: fault.then_some(FailureClass::Environmental),
        ..ToolOutput::default()
    })
}

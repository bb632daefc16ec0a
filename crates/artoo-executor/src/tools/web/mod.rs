//! The tools that read from the network (design §8, §9).
//!
//! Owns the one client through which they go: GET only, no cookies, no body, bounded time, size and redirects, and never an address near
//! the user. Must not know the conversation; what a page says is data.

mod address;
mod fetch_url;
mod html;
mod outgoing;
mod search;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use encoding_rs::Encoding;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, NoProxy, Proxy, Url, redirect};

pub use address::{AddressGuard, Lookup};
pub(super) use fetch_url::FetchUrl;
pub(super) use search::Search;

/// Time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Time for one page, redirects included.
const WHOLE: Duration = Duration::from_secs(30);
/// Redirects followed.
const MAX_REDIRECTS: usize = 5;
/// Bytes of a page that are read.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Who asks.
const AGENT: &str = concat!("Mozilla/5.0 (compatible; artoo/", env!("CARGO_PKG_VERSION"), ")");

/// How the web is reached.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// Google's key and engine, where the user has them; DuckDuckGo answers without any.
    pub google: Option<GoogleKeys>,
    /// Where DuckDuckGo's plain page is.
    pub duckduckgo: String,
    /// Where Google's search is.
    pub google_address: String,
    /// Which addresses may be reached.
    pub guard: AddressGuard,
    proxies: Proxies,
}

/// What Google's search wants to know.
#[derive(Clone)]
pub struct GoogleKeys {
    /// The key; sent to Google and shown to nobody.
    pub key: String,
    /// The engine's id.
    pub engine: String,
}

impl std::fmt::Debug for GoogleKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GoogleKeys").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Default)]
struct Proxies {
    http: Option<String>,
    https: Option<String>,
    not_for: Option<String>,
}

impl WebSettings {
    /// The public web, with the search engine and the proxies that the environment names.
    pub fn from_environment(environment: &[(OsString, OsString)]) -> Self {
        let value = |wanted: &str| {
            let (_, value) = environment.iter().find(|(name, _)| name == wanted)?;
            Some(value.to_str()?.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let either = |name: &str| value(name).or_else(|| value(&name.to_uppercase()));
        let all = either("all_proxy");
        let google = value("GOOGLE_SEARCH_API_KEY").zip(value("GOOGLE_SEARCH_CX"));
        Self {
            google: google.map(|(key, engine)| GoogleKeys { key, engine }),
            duckduckgo: "https://html.duckduckgo.com/html/".to_owned(),
            google_address: "https://www.googleapis.com/customsearch/v1".to_owned(),
            guard: AddressGuard::default(),
            proxies: Proxies {
                http: either("http_proxy").or_else(|| all.clone()),
                https: either("https_proxy").or(all),
                not_for: either("no_proxy"),
            },
        }
    }
}

/// What came back.
pub(super) struct Page {
    /// After redirects.
    pub url: Url,
    pub status: reqwest::StatusCode,
    /// `text/html` and the like, in small letters, without parameters.
    pub kind: String,
    pub bytes: Vec<u8>,
    /// Whether there was more than is read.
    pub cut: bool,
    charset: Option<String>,
}

/// Why nothing came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoPage {
    /// It must not be fetched: the caller's fault.
    Refused(String),
    /// It could not be fetched: the world's.
    Unreachable(String),
}

impl NoPage {
    pub(super) fn words(&self) -> &str {
        match self {
            Self::Refused(words) | Self::Unreachable(words) => words,
        }
    }
}

/// The client of an installation; made when it is first needed, because loading the certificates takes its time.
pub(super) struct Web {
    pub settings: WebSettings,
    client: OnceLock<Result<Client, String>>,
}

impl Web {
    pub(super) fn new(settings: WebSettings) -> Arc<Self> {
        Arc::new(Self {
            settings,
            client: OnceLock::new(),
        })
    }

    fn client(&self) -> Result<&Client, NoPage> {
        let client = self
            .client
            .get_or_init(|| build(&self.settings).map_err(|error| causes(&error)));
        client
            .as_ref()
            .map_err(|error| NoPage::Unreachable(format!("there is no way to the network: {error}")))
    }

    /// Gets a page. Every hop is looked at as the first one was.
    pub(super) async fn get(&self, url: Url) -> Result<Page, NoPage> {
        let host = url.host_str().unwrap_or_default().to_owned();
        tokio::time::timeout(WHOLE, self.follow(url)).await.unwrap_or_else(|_| {
            Err(NoPage::Unreachable(format!(
                "{host} took longer than {} s",
                WHOLE.as_secs()
            )))
        })
    }

    async fn follow(&self, mut url: Url) -> Result<Page, NoPage> {
        let client = self.client()?;
        for _ in 0..=MAX_REDIRECTS {
            if let Some(why) = self.settings.guard.refuses(&url) {
                return Err(NoPage::Refused(why));
            }
            let response = client
                .get(url.clone())
                .send()
                .await
                .map_err(|error| broken(&url, error))?;
            match location(&url, response.status(), response.headers()) {
                Some(next) => {
                    // An address behind a redirect is the server's choice, but it is no reason to leave encryption.
                    if url.scheme() == "https" && next.scheme() == "http" {
                        return Err(NoPage::Refused(format!(
                            "{} leads to an address without encryption",
                            shown(&url)
                        )));
                    }
                    url = next;
                }
                None => return body(url, response).await,
            }
        }
        Err(NoPage::Unreachable(format!(
            "{} redirects more than {MAX_REDIRECTS} times",
            shown(&url)
        )))
    }
}

fn build(settings: &WebSettings) -> reqwest::Result<Client> {
    // An error means that a provider is installed already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let proxies = &settings.proxies;
    let hosts = [&proxies.http, &proxies.https].into_iter().flatten();
    let hosts = hosts.filter_map(|text| Some(Url::parse(text).ok()?.host_str()?.to_owned()));
    let guard = settings.guard.clone().trusting(hosts.collect());
    let mut client = Client::builder()
        .no_proxy()
        .connect_timeout(CONNECT)
        .user_agent(AGENT)
        .redirect(redirect::Policy::none())
        .dns_resolver(guard);
    let not_for = || proxies.not_for.as_deref().and_then(NoProxy::from_string);
    if let Some(address) = &proxies.http {
        client = client.proxy(Proxy::http(address)?.no_proxy(not_for()));
    }
    if let Some(address) = &proxies.https {
        client = client.proxy(Proxy::https(address)?.no_proxy(not_for()));
    }
    client.build()
}

fn location(from: &Url, status: reqwest::StatusCode, headers: &HeaderMap) -> Option<Url> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    from.join(headers.get(LOCATION)?.to_str().ok()?).ok()
}

async fn body(url: Url, mut response: reqwest::Response) -> Result<Page, NoPage> {
    let status = response.status();
    let declared = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let mut parts = declared.split(';');
    let kind = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches('"').to_owned())
    });
    let (mut bytes, mut cut) = (Vec::new(), false);
    while let Some(chunk) = response.chunk().await.map_err(|error| broken(&url, error))? {
        let room = MAX_BYTES - bytes.len();
        bytes.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if chunk.len() > room {
            cut = true;
            break;
        }
    }
    Ok(Page {
        url,
        status,
        kind,
        bytes,
        cut,
        charset,
    })
}

impl Page {
    /// The bytes as text: by the mark at their beginning, by what the server says, by what the page says, else by how they look.
    pub(super) fn text(&self) -> String {
        let declared = self.charset.clone().or_else(|| charset_in_page(&self.bytes));
        let encoding = declared
            .and_then(|name| Encoding::for_label(name.as_bytes()))
            .unwrap_or_else(|| {
                if std::str::from_utf8(&self.bytes).is_ok() || self.cut {
                    encoding_rs::UTF_8
                } else {
                    encoding_rs::WINDOWS_1252
                }
            });
        encoding.decode(&self.bytes).0.into_owned()
    }
}

/// `<meta charset=…>` in the first kilobytes.
fn charset_in_page(bytes: &[u8]) -> Option<String> {
    let start = String::from_utf8_lossy(bytes.get(..4096).unwrap_or(bytes)).to_ascii_lowercase();
    let (_, rest) = start.split_once("charset=")?;
    let name: String = rest
        .trim_start_matches(['"', '\'', ' '])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
        .collect();
    Some(name)
}

/// An address without what may be a key in it.
fn shown(url: &Url) -> String {
    format!(
        "{}://{}{}",
        url.scheme(),
        url.host_str().unwrap_or_default(),
        url.path()
    )
}

fn broken(url: &Url, error: reqwest::Error) -> NoPage {
    let words = causes(&error.without_url());
    if words.contains(address::NEAR) {
        return NoPage::Refused(words);
    }
    NoPage::Unreachable(format!("{} cannot be read: {words}", shown(url)))
}

/// An error with its causes, each once.
fn causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_words = cause.to_string();
        if !words.contains(&cause_words) {
            words.push_str(": ");
            words.push_str(&cause_words);
        }
        source = cause.source();
    }
    words
}

//! Who may ask for what: rules over the head of a request, looked at before anything else (design §21).
//!
//! Owns the rules and the token. A page on the web can make a browser ask this machine for anything, under any name that it points at it;
//! another account of this machine can connect. The first is told by its host, its origin and the browser's own word, the second by the token.

use std::fmt::Write as _;
use std::net::SocketAddr;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

use crate::failure::Failure;

/// What holds nothing of anybody's and is given without the token.
const OPEN: [&str; 4] = ["/", "/app.js", "/app.css", "/icon.svg"];
/// What changes something.
pub const ANSWER: &str = "/api/answer";
/// See [`ANSWER`].
pub const ABORT: &str = "/api/abort";
/// What a browser itself says of who asks.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Random bytes of a token.
const BYTES: usize = 24;

/// What whoever asks has to know. It is shown once, at the start.
pub struct Token(String);

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// [`Failure`] when the system gives no randomness.
    pub fn draw() -> Result<Self, Failure> {
        let mut bytes = [0_u8; BYTES];
        let drawn = SystemRandom::new().fill(&mut bytes);
        drawn.map_err(|_| Failure::failed("the system gives no random numbers, so there can be no token"))?;
        let mut text = String::with_capacity(BYTES * 2);
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// For the one who started the program.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Takes as long whatever is offered.
    fn is(&self, offered: &str) -> bool {
        self.0.as_bytes().ct_eq(offered.as_bytes()).into()
    }
}

/// Never by accident in a log.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Under which names this server may be asked, and with which token.
#[derive(Debug)]
pub struct Own {
    hosts: Vec<String>,
    token: Token,
}

impl Own {
    /// Of a server at this address.
    pub fn new(at: SocketAddr, token: Token) -> Self {
        let port = at.port();
        let mut hosts = vec![at.to_string()];
        for name in ["127.0.0.1", "localhost", "[::1]"] {
            hosts.push(format!("{name}:{port}"));
            if port == 80 {
                hosts.push(name.to_owned());
            }
        }
        Self { hosts, token }
    }

    /// The token.
    pub const fn token(&self) -> &Token {
        &self.token
    }

    /// Whether these headers bring the token.
    pub fn is_known(&self, headers: &HeaderMap) -> bool {
        let offered = only(headers, &AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        offered.is_some_and(|offered| self.token.is(offered))
    }

    fn is_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is meant for another name, as after DNS rebinding.
    Host,
    /// A page from elsewhere asks.
    Origin,
    /// Only looking, answering and aborting are possible.
    Method,
    /// Without the token, or with another.
    Token,
    /// Not JSON.
    Form,
}

impl Refusal {
    /// The status that says so.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin => StatusCode::FORBIDDEN,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Form => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }

    /// The same in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Host => "this server answers under 127.0.0.1, localhost and [::1] with its port only",
            Self::Origin => "pages from elsewhere may not ask here",
            Self::Method => "only GET, and POST to answer and to abort",
            Self::Token => "without the token; open the address that `artoo serve` printed when it started",
            Self::Form => "a body has to be application/json",
        }
    }
}

/// Whether a request may be looked at any further.
///
/// # Errors
/// The first [`Refusal`] that applies.
pub fn admit(own: &Own, request: &Parts) -> Result<(), Refusal> {
    let headers = &request.headers;
    // A request line may name a host as well; browsers that ask a server directly do not.
    let host = only(headers, &HOST).filter(|host| request.uri.authority().is_none() && own.is_host(host));
    let host = host.ok_or(Refusal::Host)?;
    let from_here = |origin: &str| {
        let named = origin.strip_prefix("http://");
        named.is_some_and(|named| named.eq_ignore_ascii_case(host))
    };
    if headers.contains_key(ORIGIN) && !only(headers, &ORIGIN).is_some_and(from_here) {
        return Err(Refusal::Origin);
    }
    if headers.contains_key(SITE) && !matches!(only(headers, &SITE), Some("same-origin" | "none")) {
        return Err(Refusal::Origin);
    }
    let path = request.uri.path();
    let changes = request.method == Method::POST && matches!(path, ANSWER | ABORT);
    if !(changes || request.method == Method::GET || request.method == Method::HEAD) {
        return Err(Refusal::Method);
    }
    if !OPEN.contains(&path) && !own.is_known(headers) {
        return Err(Refusal::Token);
    }
    let form = only(headers, &CONTENT_TYPE).and_then(|form| form.split(';').next());
    if changes && !form.is_some_and(|form| form.trim().eq_ignore_ascii_case("application/json")) {
        return Err(Refusal::Form);
    }
    Ok(())
}

/// The value of a header that stands there once, and is text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        (None | Some(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn own(port: u16) -> Own {
        Own::new(SocketAddr::from(([127, 0, 0, 1], port)), Token("secret".to_owned()))
    }

    /// `METHOD TARGET`, then a header a line.
    fn check(own: &Own, request: &str) -> Result<(), Refusal> {
        let mut lines = request.lines().map(str::trim);
        let (method, target) = lines.next().unwrap().split_once(' ').unwrap();
        let mut builder = Request::builder().method(method).uri(target);
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            builder = builder.header(name, value);
        }
        admit(own, &builder.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn hosts_origins_and_the_token() {
        let own = own(8080);
        let fine = "authorization: Bearer secret";
        for (request, expected) in [
            // The page itself, under each of its names.
            ("GET /\nhost: 127.0.0.1:8080", Ok(())),
            ("GET /\nhost: localhost:8080", Ok(())),
            ("GET /app.js\nhost: LOCALHOST:8080", Ok(())),
            ("GET /app.css\nhost: [::1]:8080", Ok(())),
            ("HEAD /\nhost: 127.0.0.1:8080", Ok(())),
            // Other names: rebinding, another port, none, two, one in the request line.
            ("GET /\nhost: evil.example:8080", Err(Refusal::Host)),
            ("GET /\nhost: 127.0.0.1.evil.example:8080", Err(Refusal::Host)),
            ("GET /\nhost: 127.0.0.1:8081", Err(Refusal::Host)),
            ("GET /\nhost: 127.0.0.1", Err(Refusal::Host)),
            ("GET /\nhost: 192.168.0.7:8080", Err(Refusal::Host)),
            ("GET /\nhost: 0.0.0.0:8080", Err(Refusal::Host)),
            ("GET /\nhost: user@127.0.0.1:8080", Err(Refusal::Host)),
            ("GET /\naccept: */*", Err(Refusal::Host)),
            ("GET /\nhost: 127.0.0.1:8080\nhost: 127.0.0.1:8080", Err(Refusal::Host)),
            ("GET http://127.0.0.1:8080/\nhost: 127.0.0.1:8080", Err(Refusal::Host)),
            // Origins.
            ("GET /\nhost: 127.0.0.1:8080\norigin: http://127.0.0.1:8080", Ok(())),
            (
                "GET /\nhost: 127.0.0.1:8080\norigin: http://localhost:8080",
                Err(Refusal::Origin),
            ),
            (
                "GET /\nhost: 127.0.0.1:8080\norigin: https://127.0.0.1:8080",
                Err(Refusal::Origin),
            ),
            (
                "GET /\nhost: 127.0.0.1:8080\norigin: http://127.0.0.1:3000",
                Err(Refusal::Origin),
            ),
            (
                "GET /\nhost: 127.0.0.1:8080\norigin: http://evil.example",
                Err(Refusal::Origin),
            ),
            ("GET /\nhost: 127.0.0.1:8080\norigin: null", Err(Refusal::Origin)),
            ("GET /\nhost: 127.0.0.1:8080\nsec-fetch-site: none", Ok(())),
            ("GET /\nhost: 127.0.0.1:8080\nsec-fetch-site: same-origin", Ok(())),
            (
                "GET /app.js\nhost: 127.0.0.1:8080\nsec-fetch-site: cross-site",
                Err(Refusal::Origin),
            ),
            (
                "GET /app.js\nhost: 127.0.0.1:8080\nsec-fetch-site: same-site",
                Err(Refusal::Origin),
            ),
            // The token, for everything but the page.
            ("GET /api/live/0\nhost: 127.0.0.1:8080", Err(Refusal::Token)),
            (
                "GET /api/live/0\nhost: 127.0.0.1:8080\nauthorization: Bearer secre",
                Err(Refusal::Token),
            ),
            (
                "GET /api/live/0\nhost: 127.0.0.1:8080\nauthorization: Bearer secrets",
                Err(Refusal::Token),
            ),
            (
                "GET /api/live/0\nhost: 127.0.0.1:8080\nauthorization: Bearer ",
                Err(Refusal::Token),
            ),
            (
                "GET /api/live/0\nhost: 127.0.0.1:8080\nauthorization: secret",
                Err(Refusal::Token),
            ),
            (
                "GET /api/live/0?token=secret\nhost: 127.0.0.1:8080",
                Err(Refusal::Token),
            ),
            ("GET /nothing\nhost: 127.0.0.1:8080", Err(Refusal::Token)),
            ("GET //api/live/0\nhost: 127.0.0.1:8080", Err(Refusal::Token)),
            // Methods and forms.
            ("DELETE /\nhost: 127.0.0.1:8080", Err(Refusal::Method)),
            ("OPTIONS /api/answer\nhost: 127.0.0.1:8080", Err(Refusal::Method)),
            ("POST /\nhost: 127.0.0.1:8080", Err(Refusal::Method)),
            (
                "POST /api/live/0\nhost: 127.0.0.1:8080\nauthorization: Bearer secret",
                Err(Refusal::Method),
            ),
            (
                "POST /api/answer\nhost: 127.0.0.1:8080\ncontent-type: application/json",
                Err(Refusal::Token),
            ),
            (
                "POST /api/answer\nhost: 127.0.0.1:8080\nauthorization: Bearer secret",
                Err(Refusal::Form),
            ),
            (
                "POST /api/abort\nhost: 127.0.0.1:8080\nauthorization: Bearer secret\ncontent-type: text/plain",
                Err(Refusal::Form),
            ),
            (
                "POST /api/abort\nhost: 127.0.0.1:8080\nauthorization: Bearer secret\ncontent-type: application/json; charset=utf-8",
                Ok(()),
            ),
        ] {
            assert_eq!(check(&own, request), expected, "{request}");
        }
        assert_eq!(
            check(&own, &format!("GET /api/live/0\nhost: 127.0.0.1:8080\n{fine}")),
            Ok(())
        );
        let foreign = format!(
            "POST {ANSWER}\nhost: 127.0.0.1:8080\norigin: http://evil.example\n{fine}\ncontent-type: application/json"
        );
        assert_eq!(
            check(&own, &foreign),
            Err(Refusal::Origin),
            "the right token does not help a page from elsewhere"
        );
    }

    #[test]
    fn the_usual_port_need_not_be_named() {
        let own = own(80);
        assert_eq!(check(&own, "GET /\nhost: 127.0.0.1"), Ok(()));
        assert_eq!(check(&own, "GET /\nhost: localhost:80"), Ok(()));
        assert_eq!(check(&own, "GET /\nhost: evil.example"), Err(Refusal::Host));
    }

    #[test]
    fn tokens_are_long_different_and_not_shown() {
        let (one, other) = (Token::draw().unwrap(), Token::draw().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.reveal().len(), 48);
        assert!(one.reveal().bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(!format!("{one:?}").contains(one.reveal()));
    }
}

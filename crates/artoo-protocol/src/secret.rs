//! What a secret looks like: one table for everything that masks — journals, audit log, cassettes, tool output (design §17, §20).
//!
//! Owns recognition only; how a find is covered is for whoever writes the text. Plain scanning instead of patterns, because it runs on
//! every line that is written and has to cost nothing at start.

mod fields;
mod names;
mod pairs;
mod plain;
mod stated;

use self::fields::is_secret_field;
use self::stated::stated_password;
pub use names::{is_secret_name, is_secret_variable, is_surely_secret};
use pairs::{FIND, HINT, NOTHING, begins_key, says};
pub use plain::Plain;

use std::ops::Range;

/// Exact values shorter than this are not looked for: they would hit ordinary text.
pub const SHORTEST: usize = 8;

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where, in bytes; on character boundaries.
    pub range: Range<usize>,
    /// What it is.
    pub name: &'static str,
}

/// A key that shows by its beginning what it is.
struct Prefixed {
    name: &'static str,
    starts: &'static [&'static str],
    /// Fewest characters after the beginning.
    least: usize,
    goes_on: fn(u8) -> bool,
}

const fn word(b: u8) -> bool {
    b.is_ascii_alphanumeric()
}

const fn word_dash(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'-'
}

const fn capital(b: u8) -> bool {
    b.is_ascii_uppercase() || b.is_ascii_digit()
}

const fn token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-')
}

const PREFIXED: &[Prefixed] = &[
    Prefixed {
        name: "provider key",
        starts: &["sk-", "pk-", "rk-"],
        least: 20,
        goes_on: word_dash,
    },
    Prefixed {
        name: "payment key",
        starts: &["sk_live_", "sk_test_", "rk_live_", "rk_test_"],
        least: 16,
        goes_on: word,
    },
    Prefixed {
        name: "GitHub token",
        starts: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        least: 20,
        goes_on: word,
    },
    Prefixed {
        name: "GitHub token",
        starts: &["github_pat_"],
        least: 20,
        goes_on: word_dash,
    },
    Prefixed {
        name: "GitLab token",
        starts: &["glpat-"],
        least: 20,
        goes_on: word_dash,
    },
    Prefixed {
        name: "AWS key",
        starts: &["AKIA", "ASIA"],
        least: 16,
        goes_on: capital,
    },
    Prefixed {
        name: "Google key",
        starts: &["AIza"],
        least: 30,
        goes_on: word_dash,
    },
    Prefixed {
        name: "Slack token",
        starts: &["xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-"],
        least: 10,
        goes_on: word_dash,
    },
    Prefixed {
        name: "Hugging Face token",
        starts: &["hf_"],
        least: 30,
        goes_on: word,
    },
    Prefixed {
        name: "npm token",
        starts: &["npm_"],
        least: 36,
        goes_on: word,
    },
    Prefixed {
        name: "authorization header",
        starts: &["Bearer ", "bearer "],
        least: 16,
        goes_on: token,
    },
];

/// Where a key may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// Where a word begins: `risk-averse` holds no `sk-`.
    Word,
    /// Anywhere: in escaped text a word may follow the letter of an escape.
    Any,
}

/// Whether a line of JSON may hold a secret: by its look, or by the name of its field. Errs towards yes.
pub fn may_hold(text: &str) -> bool {
    if holds(text, Fields::Named) {
        return true;
    }
    // In escaped text, what a pattern escapes stands behind two backslashes.
    text.contains("\\\\") && holds(&text.replace('\\', ""), Fields::Any)
}

/// Whether a field of JSON is suspicious by its name alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fields {
    Named,
    Any,
}

/// The same for text as it stands.
fn holds(text: &str, fields: Fields) -> bool {
    let bytes = text.as_bytes();
    let last = bytes.last().map(|last| [*last, 0]);
    let pairs = bytes
        .windows(2)
        .filter_map(|pair| <[u8; 2]>::try_from(pair).ok())
        .chain(last);
    // One pass, because this is asked of every line that is written: two bytes say whether a longer look is worth it.
    let mut hint = None;
    for (at, pair) in pairs.enumerate() {
        let says = says(pair);
        if says == NOTHING {
            continue;
        }
        if says & HINT != 0 {
            hint = Some(at);
        }
        if says & FIND != 0 && found_at(text, at, pair, fields, hint) {
            return true;
        }
    }
    false
}

/// Whether a find begins at a place, or ends there as a name. `hint` is the last place that the name of a secret may hold.
fn found_at(text: &str, at: usize, pair: [u8; 2], fields: Fields, hint: Option<usize>) -> bool {
    let bytes = text.as_bytes();
    // Most names are none, and that is quickly seen.
    let is_hinted = || hint.is_some_and(|hint| hint + NAME_MAX >= name_end(bytes, at));
    match pair {
        [b'=', _] => is_hinted() && assigned(text, at, Edge::Any).is_some(),
        [b':', next] => {
            let url = next == b'/' && goes_on(bytes, at, "://") && url_password(text, at + 3).is_some();
            let field = || fields == Fields::Named && is_secret_field(text, at, hint);
            url || field() || is_hinted() && assigned(text, at, Edge::Any).is_some()
        }
        [b'e', b'y'] => goes_on(bytes, at, "eyJ") && web_token(text, at, Edge::Any).is_some(),
        [b'-', b'-'] => goes_on(bytes, at, "-----BEGIN ") && private_key(text, at).is_some(),
        [first, second] if begins_key(first, second) => PREFIXED.iter().any(|kind| {
            let mut starts = kind.starts.iter().filter(|start| goes_on(bytes, at, start));
            starts.any(|start| prefixed(text, at, start.len(), kind, Edge::Any).is_some())
        }),
        _ => false,
    }
}

fn goes_on(bytes: &[u8], at: usize, with: &str) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(with.as_bytes()))
}

/// Every secret in a text, in order, without overlaps; also one whose punctuation is escaped, as in a pattern (`sk\\-abc`).
pub fn find(text: &str) -> Vec<Found> {
    let mut found = all(text, Edge::Word);
    if let Some(plain) = Plain::of(text) {
        found.extend(all(&plain.text, Edge::Word).into_iter().map(|f| Found {
            range: plain.original(f.range),
            ..f
        }));
    }
    found.sort_by_key(|f| (f.range.start, std::cmp::Reverse(f.range.end)));
    let mut end = 0;
    found.retain(|f| {
        let apart = f.range.start >= end;
        if apart {
            end = f.range.end;
        }
        apart
    });
    found
}

fn all(text: &str, edge: Edge) -> Vec<Found> {
    let mut found = Vec::new();
    for kind in PREFIXED {
        for start in kind.starts {
            found.extend(
                text.match_indices(start)
                    .filter_map(|(at, _)| prefixed(text, at, start.len(), kind, edge)),
            );
        }
    }
    found.extend(
        text.match_indices("eyJ")
            .filter_map(|(at, _)| web_token(text, at, edge)),
    );
    found.extend(
        text.match_indices("-----BEGIN ")
            .filter_map(|(at, _)| private_key(text, at)),
    );
    found.extend(
        text.match_indices("://")
            .filter_map(|(at, _)| url_password(text, at + 3)),
    );
    found.extend(
        text.match_indices(['=', ':'])
            .filter_map(|(at, _)| assigned(text, at, edge)),
    );
    found
}

/// The text with every find replaced by what `cover` makes of it.
pub fn mask(text: &str, cover: impl Fn(&str, &'static str) -> String) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut end = 0;
    for Found { range, name } in find(text) {
        masked.push_str(text.get(end..range.start).unwrap_or_default());
        masked.push_str(&cover(text.get(range.clone()).unwrap_or_default(), name));
        end = range.end;
    }
    masked.push_str(text.get(end..).unwrap_or_default());
    masked
}

fn bytes_from(text: &str, at: usize) -> impl Iterator<Item = u8> {
    text.as_bytes().get(at..).unwrap_or_default().iter().copied()
}

fn run(text: &str, at: usize, goes_on: fn(u8) -> bool) -> usize {
    bytes_from(text, at).take_while(|&b| goes_on(b)).count()
}

fn begins(text: &str, at: usize, edge: Edge) -> bool {
    edge == Edge::Any
        || !text
            .get(..at)
            .and_then(|before| before.chars().next_back())
            .is_some_and(char::is_alphanumeric)
}

fn prefixed(text: &str, at: usize, start: usize, kind: &Prefixed, edge: Edge) -> Option<Found> {
    let length = run(text, at + start, kind.goes_on);
    (length >= kind.least && begins(text, at, edge)).then(|| Found {
        range: at..at + start + length,
        name: kind.name,
    })
}

/// Three dotted parts, the first of which is base64 of `{"`.
fn web_token(text: &str, at: usize, edge: Edge) -> Option<Found> {
    let mut end = at;
    for part in 0..3 {
        let length = run(text, end, word_dash);
        if length < 10 || (part == 0 && !begins(text, at, edge)) {
            return None;
        }
        end += length;
        if part < 2 {
            (text.as_bytes().get(end) == Some(&b'.')).then_some(())?;
            end += 1;
        }
    }
    Some(Found {
        range: at..end,
        name: "web token",
    })
}

/// To its end mark, or to the end of the text where that was cut off.
fn private_key(text: &str, at: usize) -> Option<Found> {
    let rest = text.get(at..)?;
    let (head, _) = rest.get("-----BEGIN ".len()..)?.split_once("-----")?;
    (head.ends_with("PRIVATE KEY") && head.len() < 40).then_some(())?;
    let tail = format!("-----END {head}-----");
    let length = rest.find(&tail).map_or(rest.len(), |end| end + tail.len());
    Some(Found {
        range: at..at + length,
        name: "private key",
    })
}

/// `scheme://user:password@`; the password alone.
fn url_password(text: &str, at: usize) -> Option<Found> {
    let authority: String = text
        .get(at..)?
        .chars()
        .take(400)
        .take_while(|c| !c.is_whitespace() && !matches!(c, '/' | '"' | '\''))
        .collect();
    let (login, _) = authority.rsplit_once('@')?;
    let (user, password) = login.split_once(':')?;
    let start = at + user.len() + 1;
    (password.len() >= 3).then(|| Found {
        range: start..start + password.len(),
        name: "password in a URL",
    })
}

/// `API_KEY=value`, `password: value`; the value alone. Only where it has the look of a key, for prose speaks of tokens too; what stands
/// directly behind `password=` is one whatever it looks like.
fn assigned(text: &str, at: usize, edge: Edge) -> Option<Found> {
    let (name, ends) = name_before(text, at);
    (!name.is_empty() && is_secret_name(name)).then_some(())?;
    let mut start = at + 1;
    start += bytes_from(text, start)
        .take(4)
        .take_while(|b| matches!(b, b' ' | b'"' | b'\'' | b'\\'))
        .count();
    if let Some(length) = stated_password(text, name, ends == at, at, start) {
        return Some(Found {
            range: start..start + length,
            name: "password",
        });
    }
    let length = run(text, start, token);
    let value = text.get(start..start + length)?;
    let mixed = value.bytes().any(|b| b.is_ascii_digit()) && value.bytes().any(|b| b.is_ascii_alphabetic());
    // `token: CancellationToken` is code; `TOKEN=…` is an environment.
    let variable =
        text.as_bytes().get(at) == Some(&b'=') && (edge == Edge::Any || !name.bytes().any(|b| b.is_ascii_lowercase()));
    let looks_random = (length >= 16 && mixed) || (length >= SHORTEST && variable);
    (looks_random && !value.starts_with('/')).then(|| Found {
        range: start..start + length,
        name: "assigned key",
    })
}

/// Names are looked at up to this length, in bytes, from their end.
const NAME_MAX: usize = 60;

/// Where the name in front of a byte ends: quotes and spaces between them are left out.
fn name_end(bytes: &[u8], at: usize) -> usize {
    let before = bytes.get(..at).unwrap_or_default();
    let gap = before.iter().rev();
    at - gap.take_while(|b| matches!(b, b' ' | b'"' | b'\\' | b'\'')).count()
}

/// The name in front of a byte, and where it ends.
fn name_before(text: &str, at: usize) -> (&str, usize) {
    let ends = name_end(text.as_bytes(), at);
    let before = text.as_bytes().get(..ends).unwrap_or_default();
    let length = before
        .iter()
        .rev()
        .take(NAME_MAX)
        .take_while(|b| word_dash(**b))
        .count();
    (text.get(ends - length..ends).unwrap_or_default(), ends)
}

#[cfg(test)]
mod tests {
    use super::names::SECRET_NAMES;
    use super::*;
    use proptest::prelude::*;

    /// What secrets are made of, and what only looks like it.
    const PARTS: &[&str] = &[
        "sk-",
        "rk_live_",
        "ghp_",
        "github_pat_",
        "glpat-",
        "AKIA",
        "AIza",
        "xoxb-",
        "hf_",
        "npm_",
        "Bearer ",
        "eyJ",
        ".",
        "-----BEGIN ",
        "RSA PRIVATE KEY-----",
        "://",
        "user:pass",
        "@host",
        "=",
        ":",
        "\":\"",
        "token",
        "api_key",
        "API-KEY",
        "pass-word",
        "PASSPHRASE",
        "authori_zation",
        "tok-en",
        "c_redential",
        "monkey",
        "path",
        "abcdefghij1234567890",
        "ABCDEFGHIJ123456",
        "-",
        "_",
        "/",
        " ",
        "\\n",
        "é",
        "k",
        "e",
    ];

    #[test]
    fn every_key_is_known_by_its_first_two_bytes() {
        for start in PREFIXED.iter().flat_map(|kind| kind.starts) {
            let bytes = start.as_bytes();
            assert!(begins_key(bytes[0], bytes[1]), "{start}");
        }
        for name in SECRET_NAMES {
            assert!(is_secret_name(name) && is_secret_name(&name.to_uppercase()), "{name}");
        }
    }

    proptest! {
        /// The one pass over a line finds what all the searches together find.
        #[test]
        fn the_quick_look_agrees_with_the_thorough_one(parts in prop::collection::vec(prop::sample::select(PARTS), 1..9)) {
            let text = parts.concat();
            prop_assert_eq!(holds(&text, Fields::Any), !all(&text, Edge::Any).is_empty(), "{:?}", text);
        }
    }

    const SAMPLES: &[(&str, &str)] = &[
        ("use sk-proj-abcdefghijklmnop1234 now", "sk-proj-abcdefghijklmnop1234"),
        (
            "Authorization: Bearer abcdefghijklmnop1234",
            "Bearer abcdefghijklmnop1234",
        ),
        (
            "AIzaSyA1234567890abcdefghijklmnopqrstuv",
            "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        ),
        ("ghp_abcdefghijklmnopqrstuvwxyz", "ghp_abcdefghijklmnopqrstuvwxyz"),
        ("key=AKIAABCDEFGHIJKLMNOP;", "AKIAABCDEFGHIJKLMNOP"),
        ("OPENAI_API_KEY=abcdefgh12", "abcdefgh12"),
        ("\"api_key\": \"abcdefghijklmnop1234\"", "abcdefghijklmnop1234"),
        ("postgres://me:hunter2@host/db", "hunter2"),
        ("log in with password=hunter2 and look", "hunter2"),
        ("password='tr0ub4dor & 3' x", "tr0ub4dor & 3"),
        ("password='Tr0ub4dor(3' and", "Tr0ub4dor(3"),
        ("password='$ecret9'", "$ecret9"),
        ("db_password=correct-horse!", "correct-horse!"),
        ("curl -d 'user=me&passwd=öpen-sesame&x=1'", "öpen-sesame"),
        (
            "match sk\\-proj\\-abcdefghijklmnop1234 there",
            "sk\\-proj\\-abcdefghijklmnop1234",
        ),
        ("^ghp\\_abcdefghijklmnopqrstuvwxyz$", "ghp\\_abcdefghijklmnopqrstuvwxyz"),
        ("password\\=hunter22\\.", "hunter22\\."),
        (
            "x eyJhbGciOiJI.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4 y",
            "eyJhbGciOiJI.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4",
        ),
        (
            "a -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- b",
            "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
        ),
    ];

    #[test]
    fn variables_that_hold_secrets_are_known_by_the_parts_of_their_names() {
        for name in [
            "DB_PASS",
            "MYSQL_PWD",
            "SSHPASS",
            "REDIS_AUTH",
            "AZ_PAT",
            "MY_CRED",
            "ROOTPW",
            "KEYSTORE_PW",
            "NPM_CONFIG__AUTH",
            "COOKIE",
            "SENTRY_DSN",
            "PGPASSWORD",
            "API_KEY",
            "GH_TOKEN",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ] {
            assert!(is_secret_variable(name), "{name}");
        }
        for name in [
            "PATH",
            "PWD",
            "OLDPWD",
            "HOME",
            "SSH_AUTH_SOCK",
            "XAUTHORITY",
            "LANG",
            "DESKTOP_SESSION",
            "EDITOR",
        ] {
            assert!(!is_secret_variable(name), "{name}");
        }
    }

    #[test]
    fn a_token_behind_an_underscore_is_a_token() {
        let text = "intent:use_ghp_abcdefghijklmnopqrstuvwxyz0123456789";
        assert!(!mask(text, |_, _| "•".to_owned()).contains("ghp_abc"));
    }

    #[test]
    fn what_looks_like_a_key_is_found_whole() {
        for (text, secret) in SAMPLES {
            let found: Vec<_> = find(text).into_iter().map(|f| &text[f.range]).collect();
            assert_eq!(found, [*secret], "{text}");
            let masked = mask(text, |secret, _| "*".repeat(secret.len()));
            assert!(!masked.contains(secret) && masked.len() == text.len(), "{masked}");
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for plain in [
            "risk-averse people in a disk-use-and-more-disk-use-report",
            "the token budget is 200, the password is up to you",
            "fn run(token: CancellationToken, secret: SecretProviderImpl) { let token = provider.next_token(); }",
            "max_tokens: 4096 and key: value",
            "https://example.org/a:b@c and a@b.org",
            "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "input_tokens\":100,\"output_tokens\":10",
            "-----BEGIN CERTIFICATE-----",
            "connect(password=password, user=user); connect(password=os.environ[\"X\"], passwd=getpass(), pwd=$PWD)",
            "User(password=form.password.data); connect(secret=config.secret, passwd=args.passwd); client_secret=settings.CLIENT_SECRET",
            "<db password=\"\" username=\"sa\"/> PGPASSWORD= pg_dump x; password=DB_PASSWORD",
            "def f(password=None, secret=str): ... password={} password=<yours> pwd=/home/me",
            "a\\-b and \\d+\\.\\d+ and \\\"quoted\\\"",
        ] {
            assert_eq!(find(plain), [], "{plain}");
        }
    }

    #[test]
    fn names_that_mean_secrets() {
        for name in [
            "OPENAI_API_KEY",
            "github-token",
            "dbPassword",
            "AWS_SECRET_ACCESS",
            "Authorization",
            "SSH_KEY",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["PATH", "HOME", "key", "monkey_business", "LANG"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_stays_text(text in "\\PC{0,200}") {
            let masked = mask(&text, |secret, _| "*".repeat(secret.chars().count()));
            prop_assert_eq!(masked.chars().count(), text.chars().count());
        }
    }
}

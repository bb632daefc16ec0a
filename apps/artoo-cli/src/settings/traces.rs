//! Where traces go: OpenTelemetry's own variables before `[traces]` in the user's file; nowhere when neither says (docs/traces.md).
//!
//! Owns their meaning and their order. A project's file has no say: it must not send what happens here to a place of its choice.

use std::collections::BTreeMap;

use artoo_protocol::secret::SHORTEST;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde::Deserialize;

use super::model::Origin;
use super::{Environment, env_value};
use crate::failure::Failure;

/// Headers that a collector may want, such as a key.
const HEADERS_MAX: usize = 32;
/// Headers whose values are no secrets, in lower case.
const HARMLESS: [&str; 7] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "connection",
    "content-encoding",
    "content-type",
    "user-agent",
];
/// A single word that has fewer letters, and nothing but letters, could be a word of any text.
const WORD: usize = 20;

/// `[traces]` in the user's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    pub endpoint: Option<String>,
    pub headers: BTreeMap<String, String>,
}

/// Where traces go.
#[derive(Clone, PartialEq, Eq)]
pub struct Traces {
    /// The whole address.
    pub endpoint: String,
    /// Who named it.
    pub origin: Origin,
    /// Names and values; the values may be secret.
    pub headers: Vec<(String, String)>,
    /// `service.name`.
    pub service: String,
}

impl std::fmt::Debug for Traces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_string())
    }
}

impl std::fmt::Display for Traces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&artoo_llm::provider::shown(&self.endpoint))?;
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        write!(f, " (with {})", names.join(", "))
    }
}

impl Traces {
    /// What has to be masked wherever it turns up: values of headers, whatever their names, of `Bearer …` the last word too; and what
    /// of the address may open something. A single word that could stand in any text is passed over: to mask it would change texts,
    /// journals among them, that it has nothing to do with.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        for (name, value) in &self.headers {
            if HARMLESS.contains(&name.to_ascii_lowercase().as_str()) {
                continue;
            }
            secrets.push(value.trim().to_owned());
            let mut words = value.split_whitespace();
            if let (Some(_scheme), Some(token), None) = (words.next(), words.next(), words.next()) {
                secrets.push(token.to_owned());
            }
        }
        if let Ok(url) = Url::parse(&self.endpoint) {
            let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            for written in [url.username(), url.password().unwrap_or_default()] {
                secrets.extend([written.to_owned(), decoded(written)]);
            }
            for pair in url.query().unwrap_or_default().split('&') {
                let written = pair.split_once('=').map_or(pair, |(_, value)| value);
                secrets.extend([written.to_owned(), decoded(written)]);
            }
        }
        let is_word = |text: &str| text.len() < WORD && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_');
        secrets.retain(|secret| secret.chars().count() >= SHORTEST && !is_word(secret));
        secrets.sort();
        secrets.dedup();
        secrets
    }
}

/// Where they go, if anywhere. A variable is often set for every program of a machine: one that artoo cannot follow switches
/// traces off with a notice and stops no task. In the user's own file it is a fault.
///
/// # Errors
/// [`Failure`] (exit 2) for a `[traces]` that cannot be used.
pub fn choose(env: &Environment, file: &Section, notices: &mut Vec<String>) -> Result<Option<Traces>, Failure> {
    let is = |name: &str, value: &str| env_value(env, name).is_some_and(|found| found.eq_ignore_ascii_case(value));
    if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
        return Ok(None);
    }
    let Some((endpoint, origin)) = endpoint(env, file) else {
        if file.headers.is_empty() {
            return Ok(None);
        }
        return Err(Failure::usage("[traces] in config.toml has headers, but no endpoint")
            .hint("add endpoint = \"http://127.0.0.1:4318\", or remove the section"));
    };
    let made = usable(&endpoint, origin).and_then(|()| {
        if origin == Origin::Environment && of(env, "PROTOCOL").is_some_and(|protocol| protocol == "grpc") {
            return Err("OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and artoo speaks OTLP over HTTP only".to_owned());
        }
        headers(env, file, origin)
    });
    match (made, origin) {
        (Ok(headers), _) => Ok(Some(Traces {
            endpoint,
            origin,
            headers,
            service: env_value(env, "OTEL_SERVICE_NAME").unwrap_or_else(|| "artoo".to_owned()),
        })),
        (Err(why), Origin::Environment) => {
            notices.push(format!("no traces are sent: {why}"));
            Ok(None)
        }
        (Err(why), Origin::User | Origin::Keyring | Origin::Project | Origin::Flag) => {
            Err(Failure::usage(format!("[traces] in config.toml cannot be used: {why}")).hint(
                "write endpoint = \"http://127.0.0.1:4318\" and, where the collector wants a key, headers = { authorization = \"Bearer …\" }",
            ))
        }
    }
}

/// The signal's own variable before the one for all signals, of which the path is not part.
fn endpoint(env: &Environment, file: &Section) -> Option<(String, Origin)> {
    if let Some(whole) = env_value(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
        return Some((whole, Origin::Environment));
    }
    let base = env_value(env, "OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| (base, Origin::Environment));
    let (base, origin) = base.or_else(|| file.endpoint.clone().map(|base| (base, Origin::User)))?;
    let base = base.trim().trim_end_matches('/');
    // Who gives the whole address means it.
    let whole = if base.ends_with("/v1/traces") {
        base.to_owned()
    } else {
        format!("{base}/v1/traces")
    };
    Some((whole, origin))
}

fn of(env: &Environment, name: &str) -> Option<String> {
    env_value(env, &format!("OTEL_EXPORTER_OTLP_TRACES_{name}"))
        .or_else(|| env_value(env, &format!("OTEL_EXPORTER_OTLP_{name}")))
}

fn usable(endpoint: &str, origin: Origin) -> Result<(), String> {
    let named = match origin {
        Origin::Environment => "OTEL_EXPORTER_OTLP_ENDPOINT",
        Origin::User | Origin::Keyring | Origin::Project | Origin::Flag => "the endpoint",
    };
    match Url::parse(endpoint) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host_str().is_some() => Ok(()),
        Ok(_) | Err(_) => Err(format!("{named} is no address that begins with http:// or https://")),
    }
}

/// Those of whoever named the endpoint, for a key goes nowhere but where its owner meant it to go: of the environment (`name=value`,
/// several divided by commas, values percent-encoded) or of the file.
fn headers(env: &Environment, file: &Section, origin: Origin) -> Result<Vec<(String, String)>, String> {
    let list: Vec<(String, String)> = match origin {
        Origin::Environment => of(env, "HEADERS")
            .unwrap_or_default()
            .split(',')
            .filter(|part| !part.trim().is_empty())
            .map(pair)
            .collect::<Result<_, _>>()?,
        Origin::User | Origin::Keyring | Origin::Project | Origin::Flag => file.headers.clone().into_iter().collect(),
    };
    if list.len() > HEADERS_MAX {
        return Err(format!("there are more than {HEADERS_MAX} headers"));
    }
    for (name, value) in &list {
        let valid = reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_ok()
            && reqwest::header::HeaderValue::from_str(value).is_ok();
        if !valid {
            // Neither is repeated: what was taken for a name may be the secret.
            return Err("a header has a name or a value that cannot be sent".to_owned());
        }
    }
    Ok(list)
}

fn pair(part: &str) -> Result<(String, String), String> {
    let (name, value) = part
        .split_once('=')
        .ok_or("OTEL_EXPORTER_OTLP_HEADERS is not of the form name=value,name=value")?;
    let decoded = percent_decode_str(value.trim()).decode_utf8();
    let value = decoded.map_err(|_| "a header's value is not UTF-8")?;
    Ok((name.trim().to_owned(), value.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(pairs: &[(&str, &str)], file: &str) -> (Result<Option<Traces>, Failure>, Vec<String>) {
        let env = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let mut notices = Vec::new();
        (choose(&env, &toml::from_str(file).unwrap(), &mut notices), notices)
    }

    fn to(pairs: &[(&str, &str)], file: &str) -> Option<Traces> {
        let (chosen, notices) = chosen(pairs, file);
        assert_eq!(notices, Vec::<String>::new());
        chosen.unwrap()
    }

    const FILE: &str = "endpoint = \"http://file:4318/\"\nheaders = { authorization = \"Bearer of-the-file\" }";

    #[test]
    fn nothing_is_sent_unless_somebody_said_where() {
        assert_eq!(to(&[], ""), None);
        assert_eq!(
            to(&[("OTEL_SERVICE_NAME", "x"), ("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], ""),
            None
        );
        for off in [("OTEL_SDK_DISABLED", "True"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert_eq!(to(&[off], FILE), None, "{off:?}");
        }
    }

    #[test]
    fn the_environment_weighs_more_than_the_file_and_the_signals_own_variable_most() {
        let file = to(&[], FILE).unwrap();
        assert_eq!(
            (file.endpoint.as_str(), file.origin),
            ("http://file:4318/v1/traces", Origin::User)
        );
        assert_eq!(
            file.headers,
            [("authorization".to_owned(), "Bearer of-the-file".to_owned())]
        );
        assert_eq!(file.service, "artoo");
        let all = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://env"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=1=2,"),
            ("OTEL_SERVICE_NAME", "mine"),
        ];
        let env = to(&all, FILE).unwrap();
        assert_eq!(
            (env.endpoint.as_str(), env.origin),
            ("https://env/v1/traces", Origin::Environment)
        );
        let headers = [("api-key", "a b"), ("x", "1=2")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!((env.headers, env.service.as_str()), (headers.to_vec(), "mine"));
        let own = [all[0], ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own/as/it/is")];
        assert_eq!(to(&own, "").unwrap().endpoint, "http://own/as/it/is");
    }

    #[test]
    fn what_the_machine_says_stops_no_task_and_what_the_person_wrote_is_a_fault() {
        for pairs in [
            vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")],
            vec![
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4317"),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ],
            vec![
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "hush-hush"),
            ],
            vec![
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "hush\u{7f}=hush"),
            ],
        ] {
            let (chosen, notices) = chosen(&pairs, "");
            assert_eq!(chosen.unwrap(), None, "{pairs:?}");
            assert!(
                notices.len() == 1 && notices[0].starts_with("no traces are sent"),
                "{notices:?}"
            );
            assert!(!notices[0].contains("hush"), "{notices:?}");
        }
        for file in [
            "endpoint = \"ftp://a\"",
            "headers = { a = \"b\" }",
            "endpoint = \"http://a\"\nheaders = { \"a b\" = \"hush\" }",
        ] {
            let failure = chosen(&[], file).0.unwrap_err();
            assert_eq!(failure.code, 2);
            assert!(
                failure.message.contains("[traces]") && !failure.message.contains("hush"),
                "{failure:?}"
            );
        }
    }

    #[test]
    fn headers_go_only_to_the_endpoint_of_whoever_wrote_them() {
        let address = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://env");
        let header = ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=of-the-environment");
        let env = to(&[address], FILE).unwrap();
        assert_eq!((env.origin, env.headers), (Origin::Environment, Vec::new()));
        let file = to(&[header], FILE).unwrap();
        assert_eq!(file.origin, Origin::User);
        assert_eq!(
            file.headers,
            [("authorization".to_owned(), "Bearer of-the-file".to_owned())]
        );
        let bare = to(&[header], "endpoint = \"http://file:4318\"").unwrap();
        assert_eq!((bare.origin, bare.headers), (Origin::User, Vec::new()));
    }

    #[test]
    fn a_key_is_masked_whatever_its_header_is_called_and_an_ordinary_word_is_not() {
        let of = |headers: &str| {
            let file = format!("endpoint = \"http://a\"\nheaders = {{ {headers} }}");
            to(&[], &file).unwrap().secrets()
        };
        assert_eq!(
            of("Authorization = \"Bearer abc-1234\", x-tenant = \"team-42\""),
            ["Bearer abc-1234", "abc-1234"]
        );
        assert_eq!(of("x-honeycomb-team = \"hcaik_0123\""), ["hcaik_0123"]);
        assert_eq!(of("x-team = \"onlylettersandverylong\""), ["onlylettersandverylong"]);
        // Words of the journal itself, and headers that hold no secret.
        let words = "x-auth-token = \"environmental\", x-b = \"planning_failed\"";
        assert_eq!(of(words), [""; 0]);
        assert_eq!(of("Content-Type = \"text/x-0123456789\""), [""; 0]);
        let whole = "https://me-0123456:p%40ss-word-1@host/v1/traces?key=hush-0123";
        assert_eq!(
            to(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", whole)], "")
                .unwrap()
                .secrets(),
            ["hush-0123", "me-0123456", "p%40ss-word-1", "p@ss-word-1"]
        );
    }

    #[test]
    fn no_header_is_ever_printed() {
        let traces = to(&[], "endpoint = \"https://me:hush@host\"\nheaders = { key = \"hush\" }").unwrap();
        let shown = format!("{traces} {traces:?}");
        assert!(
            shown.contains("host") && shown.contains("key") && !shown.contains("hush"),
            "{shown}"
        );
    }
}

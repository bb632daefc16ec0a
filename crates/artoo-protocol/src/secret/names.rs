//! Names whose values are secrets whatever they look like (design §17, §20).
//!
//! Owns the two tables: of fields and variables in any text, and of variables of an environment.

use super::pairs::{HINT, says};

/// Names of fields and variables whose values are secrets whatever they look like, in lower case without `-` and `_`.
pub(super) const SECRET_NAMES: &[&str] = &[
    "apikey",
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "authorization",
    "privatekey",
];

/// Parts of the names of variables that hold secrets.
const SECRET_PARTS: &[&str] = &[
    "pass", "pwd", "pw", "auth", "pat", "cred", "creds", "cookie", "dsn", "jwt",
];
/// Ends of such names, where nothing separates the parts.
const SECRET_ENDS: &[&str] = &["pass", "pw", "pwd"];

/// Whether a field or variable of this name holds a secret whatever its value looks like.
pub fn is_secret_name(name: &str) -> bool {
    // Most other names hold none of these pairs.
    let mut last = 0;
    let mut letters = name.bytes().filter(|b| !matches!(b, b'-' | b'_'));
    let hinted = letters.any(|b| says([std::mem::replace(&mut last, b), b]) & HINT != 0);
    if !hinted {
        return false;
    }
    let plain: String = name
        .chars()
        .filter(|c| *c != '-' && *c != '_')
        .map(|c| c.to_ascii_lowercase())
        .collect();
    SECRET_NAMES.iter().any(|secret| plain.contains(secret)) || plain.ends_with("key") && plain.len() > 3
}

/// Whether nothing but a secret stands under this name, however short. `sort_key`, `primary_key` and `tokenizer` are none of these.
pub fn is_surely_secret(name: &str) -> bool {
    const SURE: [&str; 7] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "credential",
        "apikey",
        "privatekey",
    ];
    let letters = name.chars().filter(|c| *c != '-' && *c != '_');
    let plain: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    SURE.iter().any(|sure| plain.contains(sure))
}

/// Whether a field of this name holds numbers that are counts and no secrets, such as `max_tokens`, although the name looks secret.
pub(super) fn counts(name: &str) -> bool {
    let letters = name.chars().filter(|c| *c != '-' && *c != '_');
    let plain: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    plain.contains("tokens") || plain.contains("tokencount")
}

/// Whether an environment variable of this name holds a secret. Wider than [`is_secret_name`]: to keep a variable back costs little, and
/// words such as `pass` say more in a name than in a text.
pub fn is_secret_variable(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_socket = lower.ends_with("sock") || lower.ends_with("socket");
    let alone = matches!(lower.as_str(), "pwd" | "oldpwd");
    // Headers of OpenTelemetry's exporters are where the key of a collector stands.
    let headers = lower.starts_with("otel_") && lower.ends_with("_headers");
    let mut parts = lower.split(['_', '-', '.']);
    headers
        || is_secret_name(name)
        || (!is_socket
            && !alone
            && (parts.any(|part| SECRET_PARTS.contains(&part)) || SECRET_ENDS.iter().any(|end| lower.ends_with(end))))
}

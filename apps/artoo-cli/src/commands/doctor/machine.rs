//! The machine: shell, sandbox, clock, limits, terminal and the environment's variables (design §20).
//!
//! Owns what depends on no setting of artoo. Judgements are functions of what was seen; looking is a line beside them.

use std::io::IsTerminal as _;
use std::path::Path;

use artoo_executor::Sandbox;
use artoo_protocol::Timestamp;
use rustix::process::{Resource, getrlimit};

use super::Finding;
use crate::output;
use crate::settings::Environment;

/// Files that artoo may have open at once: tables of memory, journals, connections.
const OPEN_FILES: u64 = 256;
/// Below it the tree of a plan has no room for words.
const COLUMNS: usize = 40;
/// This version of artoo is not older.
const RELEASED: &str = "2026-01-01T00:00:00Z";
/// No machine of today sees it.
const FAR: &str = "2100-01-01T00:00:00Z";
/// How far in the future a record may lie, in milliseconds: a day, for clocks that are set and zones that are wrong.
const AHEAD: u64 = 24 * 3_600_000;
/// Longest file of root certificates, in bytes; those of systems have less than one million.
const ROOTS_MAX: u64 = 16 << 20;
/// Variables that a proxy is taken from, beside their lower-case forms.
const PROXIES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
/// How the names of variables begin that artoo reads.
const READ: [&str; 10] = [
    "ANTHROPIC_",
    "ARTOO_",
    "BRAIN_",
    "GEMINI_",
    "GOOGLE_SEARCH_",
    "JUDGE_",
    "OLLAMA_",
    "OPENAI_",
    "SECOND_JUDGE_",
    "TOOL_",
];

/// What is running, for reports of faults.
pub(super) fn version() -> Finding {
    Finding::fine(
        "version",
        format!(
            "artoo {} on {} {}",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::OS,
            std::env::consts::ARCH
        ),
    )
}

/// What the shell tool runs commands with.
pub(super) fn shell() -> Finding {
    match ["/bin/bash", "/usr/bin/bash"]
        .into_iter()
        .find(|path| Path::new(path).exists())
    {
        Some(path) => Finding::fine("shell", path),
        None => Finding::bad(
            "shell",
            "bash is neither in /bin nor in /usr/bin: the shell tool cannot run",
            "install bash",
        ),
    }
}

/// What holds commands to what they were taken for.
pub(super) fn sandbox(sandbox: &Sandbox) -> Finding {
    match sandbox.in_force() {
        Ok(in_force) => Finding::fine("sandbox", in_force),
        Err(why) => Finding::note(
            "sandbox",
            format!("none, so every command is asked about: {why}"),
            "use a Linux kernel with Landlock (5.13 or later, in the list of /sys/kernel/security/lsm), or install bubblewrap for reads",
        ),
    }
}

/// What finds files by their names without a walk.
pub(super) fn file_index(env: &Environment) -> Finding {
    let folders = env.get("PATH").map(std::env::split_paths);
    let found = folders
        .into_iter()
        .flatten()
        .map(|folder| folder.join("plocate"))
        .find(|program| program.is_file());
    Finding::fine(
        "file index",
        found.map_or_else(
            || "none: files are found by a walk through the folders (plocate would be faster)".to_owned(),
            |program| program.display().to_string(),
        ),
    )
}

/// Whether the clock can be right; `newest` is when the last record of a journal was written.
pub(super) fn clock(now: Timestamp, newest: Option<Timestamp>) -> Finding {
    let known = |text: &str| Timestamp::parse(text).unwrap_or_default();
    let remedy = "set the clock; until then encrypted connections may fail and memories weigh wrongly";
    if now < known(RELEASED) || now > known(FAR) {
        return Finding::note("clock", format!("it shows {now}, which cannot be"), remedy);
    }
    match newest.filter(|newest| newest.since(now).0 > AHEAD) {
        Some(newest) => Finding::note(
            "clock",
            format!("it shows {now}, but a journal was written at {newest}"),
            remedy,
        ),
        None => Finding::fine("clock", now.to_string()),
    }
}

/// How many files this process may have open.
pub(super) fn open_files() -> Finding {
    enough_files(getrlimit(Resource::Nofile).current)
}

fn enough_files(limit: Option<u64>) -> Finding {
    match limit {
        Some(limit) if limit < OPEN_FILES => Finding::note(
            "open files",
            format!("at most {limit} at once, which is little: memory or tools may fail"),
            format!("raise the limit: ulimit -n {}", OPEN_FILES * 4),
        ),
        Some(limit) => Finding::fine("open files", format!("at most {limit} at once")),
        None => Finding::fine("open files", "no limit"),
    }
}

/// What the terminal can show.
pub(super) fn terminal(env: &Environment) -> Finding {
    if !std::io::stderr().is_terminal() {
        return Finding::fine("terminal", "none: a plain line for each event");
    }
    shows(env, output::size().columns)
}

fn shows(env: &Environment, columns: usize) -> Finding {
    let set = |name: &&str| env.get(*name).is_some_and(|value| !value.is_empty());
    // The first that is set decides, as for every program.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find(|name| set(name));
    let value = locale.and_then(|name| env.get(*name)).map_or("", String::as_str);
    let spelled: String = value
        .to_lowercase()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let term = env.get("TERM").map_or("", String::as_str);
    if !spelled.contains("utf8") {
        let said = if value.is_empty() {
            "no locale is set".to_owned()
        } else {
            format!("the locale is `{value}`")
        };
        return Finding::note(
            "terminal",
            format!("{said}, which is not UTF-8: some characters may be shown wrongly"),
            "set LANG to a UTF-8 locale, such as LANG=C.UTF-8",
        );
    }
    if columns < COLUMNS {
        return Finding::note(
            "terminal",
            format!("{columns} columns are few: most of a plan is cut off"),
            format!("make it at least {COLUMNS} columns wide"),
        );
    }
    let drawing = if term.is_empty() || term == "dumb" {
        "a plain line for each event, for TERM says that it cannot draw"
    } else if set(&"NO_COLOR") {
        "drawn without colours, as NO_COLOR asks"
    } else {
        "drawn in colours"
    };
    Finding::fine("terminal", format!("{columns} columns, UTF-8, {drawing}"))
}

/// What is wrong with variables that are read, by artoo or by what it connects with.
pub(super) fn variables(env: &Environment) -> Vec<Finding> {
    let mut findings = proxies(env);
    findings.extend(certificates(env));
    let strange = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        let is_read = READ.iter().any(|prefix| name.starts_with(prefix));
        (is_read && value.into_string().is_err()).then_some(name)
    });
    findings.extend(strange.map(|name| {
        Finding::note(
            "environment",
            format!("the value of {name} is not Unicode, so it is not read"),
            format!("set {name} anew, or unset it"),
        )
    }));
    findings
}

/// Proxies that no connection could be made through.
fn proxies(env: &Environment) -> Vec<Finding> {
    let names = PROXIES
        .iter()
        .flat_map(|name| [(*name).to_owned(), name.to_lowercase()]);
    let set = names.filter_map(|name| {
        let value = env.get(&name).filter(|value| !value.is_empty())?;
        Some((name, value))
    });
    set.filter_map(|(name, value)| {
        // The value may hold a password, so it is not repeated.
        not_a_proxy(value).map(|why| {
            Finding::note(
                "proxy",
                format!("{name} names no proxy: {why}"),
                format!("write it as http://HOST:PORT, or unset {name}"),
            )
        })
    })
    .collect()
}

/// Why a value cannot be the address of a proxy.
fn not_a_proxy(value: &str) -> Option<&'static str> {
    if value.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("it has white space in it");
    }
    let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
    let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];
    if !schemes.contains(&scheme.to_ascii_lowercase().as_str()) {
        return Some("it is neither http nor socks");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let address = authority.rsplit('@').next().unwrap_or_default();
    // An IPv6 address stands in brackets, colons and all.
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (address, None),
    };
    if host.is_empty() {
        return Some("it has no host");
    }
    match port.map(str::parse::<u16>) {
        Some(Ok(0) | Err(_)) => Some("its port is no number from 1 to 65535"),
        Some(Ok(_)) | None => None,
    }
}

/// Certificates that somebody named and that are not there.
fn certificates(env: &Environment) -> Vec<Finding> {
    let named = |name: &str| env.get(name).filter(|value| !value.is_empty()).map(Path::new);
    let complaint = |name: &str, path: &Path, why: &str| {
        Finding::note(
            "certificates",
            format!("{name} names {}, {why}: encrypted connections may fail", path.display()),
            format!("name the right one, or unset {name} to use the system's"),
        )
    };
    let mut findings = Vec::new();
    if let Some(file) = named("SSL_CERT_FILE") {
        let why = match std::fs::metadata(file) {
            Err(error) => Some(format!("which cannot be read ({error})")),
            Ok(about) if !about.is_file() || about.len() > ROOTS_MAX => {
                Some("which is no file of certificates".to_owned())
            }
            Ok(_) => not_certificates(file),
        };
        findings.extend(why.map(|why| complaint("SSL_CERT_FILE", file, &why)));
    }
    if let Some(folder) = named("SSL_CERT_DIR").filter(|folder| !folder.is_dir()) {
        findings.push(complaint("SSL_CERT_DIR", folder, "which is no folder"));
    }
    findings
}

fn not_certificates(file: &Path) -> Option<String> {
    match std::fs::read(file) {
        Err(error) => Some(format!("which cannot be read ({error})")),
        Ok(text) => {
            let holds_one = String::from_utf8_lossy(&text).contains("-----BEGIN CERTIFICATE-----");
            (!holds_one).then(|| "which holds no certificate in PEM form".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn a_clock_that_cannot_be_right_is_told() {
        let at = |text| Timestamp::parse(text).unwrap();
        let now = at("2026-06-01T12:00:00Z");
        assert_eq!(clock(now, None).state, State::Fine);
        assert_eq!(clock(now, Some(at("2026-06-02T11:00:00Z"))).state, State::Fine);
        assert_eq!(clock(now, Some(at("2020-01-01T00:00:00Z"))).state, State::Fine);
        let set_back = clock(now, Some(at("2026-06-03T12:00:00Z")));
        assert!(set_back.state == State::Note && set_back.detail.contains("2026-06-03"));
        for impossible in ["1970-01-01T00:00:00Z", "2025-12-31T23:59:59Z", "2101-01-01T00:00:00Z"] {
            assert_eq!(clock(at(impossible), None).state, State::Note, "{impossible}");
        }
    }

    #[test]
    fn proxies_are_addresses() {
        for fine in [
            "http://proxy:3128",
            "proxy.example.com:8080",
            "proxy",
            "https://me:secret@proxy:443/",
            "socks5h://127.0.0.1:1080",
            "http://[::1]:3128",
            "http://[::1]",
        ] {
            assert_eq!(not_a_proxy(fine), None, "{fine}");
        }
        for (wrong, why) in [
            ("http://", "no host"),
            ("http://:3128", "no host"),
            ("http://proxy:port", "port"),
            ("http://proxy:0", "port"),
            ("http://proxy:99999", "port"),
            ("ftp://proxy:21", "neither"),
            ("http://proxy :3128", "white space"),
        ] {
            assert!(not_a_proxy(wrong).is_some_and(|said| said.contains(why)), "{wrong}");
        }
        let told = proxies(&env(&[
            ("https_proxy", "http://me:secret@:1"),
            ("HTTP_PROXY", "http://a:1"),
        ]));
        assert_eq!(told.len(), 1);
        assert!(
            told[0].detail.contains("https_proxy") && !told[0].line().contains("secret"),
            "{told:?}"
        );
    }

    #[test]
    fn the_locale_that_counts_is_the_first_that_is_set() {
        let says = |pairs: &[(&str, &str)], columns| shows(&env(pairs), columns);
        assert_eq!(
            says(&[("LANG", "de_DE.UTF-8"), ("TERM", "xterm")], 80).state,
            State::Fine
        );
        assert_eq!(says(&[("LC_ALL", "C.utf8"), ("LANG", "C")], 80).state, State::Fine);
        assert_eq!(says(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")], 80).state, State::Note);
        assert!(says(&[], 80).detail.contains("no locale"));
        assert!(says(&[("LANG", "C.UTF-8")], 20).detail.contains("20 columns"));
        assert!(
            says(&[("LANG", "C.UTF-8"), ("TERM", "dumb")], 80)
                .detail
                .contains("plain")
        );
        let plain = says(&[("LANG", "C.UTF-8"), ("TERM", "xterm"), ("NO_COLOR", "1")], 80);
        assert!(plain.detail.contains("NO_COLOR"));
    }

    #[test]
    fn few_open_files_are_a_note() {
        assert_eq!(enough_files(Some(64)).state, State::Note);
        assert_eq!(enough_files(Some(256)).state, State::Fine);
        assert_eq!(enough_files(None).state, State::Fine);
    }

    #[test]
    fn certificates_that_are_not_there_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("roots.pem");
        let of = |path: &Path| certificates(&env(&[("SSL_CERT_FILE", path.to_str().unwrap())]));
        assert_eq!(of(&file).len(), 1);
        std::fs::write(&file, "not a certificate").unwrap();
        assert!(of(&file)[0].detail.contains("no certificate"));
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----\n").unwrap();
        assert!(of(&file).is_empty());
        assert!(
            of(Path::new("/dev/zero"))[0].detail.contains("no file"),
            "what never ends is not read"
        );
        assert_eq!(certificates(&env(&[("SSL_CERT_DIR", "/nonexistent/certs")])).len(), 1);
    }
}

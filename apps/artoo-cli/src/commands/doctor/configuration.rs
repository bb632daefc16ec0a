//! What is configured, and whether what it names answers: settings files, models, MCP servers (design §18, §20).
//!
//! Owns what can be said of settings beyond that they can be read; which of them apply is the settings' own business.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use artoo_executor::Sandbox;

use super::{Finding, State};
use crate::failure::Failure;
use crate::settings::{ModelChoice, NO_MODEL, Settings, stored};
use crate::{models, plain_file};

/// Bytes of a settings file that are looked through; the settings themselves refuse more.
const FILE_MAX: u64 = 1 << 20;

/// Whether the settings can be put together.
pub(super) fn of(loaded: &Result<Settings, Failure>) -> Finding {
    match loaded {
        Err(failure) => Finding {
            remedy: failure.hint.clone(),
            ..Finding::bad("configuration", failure.message.clone(), "")
        },
        Ok(settings) => Finding::fine("configuration", format!("data in {}", settings.data_dir.display())),
    }
}

/// What the settings tell the person before a task. That no model is configured is told with the models, who may read `keys.toml` by itself.
pub(super) fn notices(settings: &Settings) -> Vec<Finding> {
    let elsewhere = stored::too_open(&settings.data_dir);
    let told = settings.notices.iter();
    told.filter(|notice| *notice != NO_MODEL && Some(*notice) != elsewhere.as_ref())
        .map(|notice| Finding {
            state: State::Note,
            ..Finding::fine("configuration", notice.clone())
        })
        .collect()
}

/// What others on this machine may do with the keys that artoo keeps, whether or not the settings can be read.
pub(super) fn kept_keys(data: &Path) -> Option<Finding> {
    let path = stored::file(data);
    let mode = std::fs::metadata(&path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        Finding::note(
            "kept keys",
            format!("{} (mode {mode:03o}): others can get at it", path.display()),
            format!("chmod 600 '{}'", path.display()),
        )
    })
}

/// What others on this machine may do with the user's settings file.
pub(super) fn file(path: &Path) -> Option<Finding> {
    let about = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mode = about.permissions().mode() & 0o777;
    let keeps_a_key = plain_file::text(path, FILE_MAX).is_ok_and(|text| holds_a_key(&text));
    let complaint = exposed(mode, keeps_a_key)?;
    Some(Finding::note(
        "settings file",
        format!("{} (mode {mode:03o}): {complaint}", path.display()),
        format!("chmod 600 '{}'", path.display()),
    ))
}

/// What is wrong with a settings file that has these permissions.
fn exposed(mode: u32, keeps_a_key: bool) -> Option<&'static str> {
    if mode & 0o022 != 0 {
        Some("others can change it, and with it what artoo may do unasked")
    } else if mode & 0o044 != 0 && keeps_a_key {
        Some("it holds a key, and others can read it")
    } else {
        None
    }
}

/// Whether any table of it holds an `api_key`, or traces are sent with headers: one of them is the collector's key.
fn holds_a_key(text: &str) -> bool {
    fn within(table: &toml::Table) -> bool {
        table.iter().any(|(name, value)| match value {
            toml::Value::String(key) => name == "api_key" && !key.trim().is_empty(),
            toml::Value::Table(inner) => within(inner),
            toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_) => false,
        })
    }
    fn with_headers(table: &toml::Table) -> bool {
        let headers = table.get("traces").and_then(|traces| traces.get("headers"));
        let headers = headers.and_then(toml::Value::as_table);
        headers.is_some_and(|all| {
            all.values()
                .any(|value| value.as_str().is_some_and(|text| !text.trim().is_empty()))
        })
    }
    // What cannot be read as a whole is told elsewhere; it may hold a key all the same.
    toml::from_str::<toml::Table>(text).map_or_else(
        |_| text.contains("api_key") || text.contains("headers"),
        |table| within(&table) || with_headers(&table),
    )
}

/// Whether every model that may be called answers. Which judges may judge at all is part of the configuration.
pub(super) async fn models(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut asked: Vec<&ModelChoice> = Vec::new();
    for (role, choice) in settings.named_models() {
        // One model is asked once, whatever it is for.
        if asked.contains(&choice) {
            continue;
        }
        asked.push(choice);
        let what = match role {
            "brain" => "brain model",
            "tool" => "tool model",
            other => other,
        };
        findings.push(answers(what, choice).await);
        if let ModelChoice::Endpoint { base_url, .. } = choice
            && choice.api_key().is_some()
            && travels_openly(base_url, &choice.provider())
        {
            findings.push(Finding::note(
                what,
                format!("the key goes to {} unencrypted", choice.address()),
                "use an https:// address, or a server on this machine",
            ));
        }
    }
    findings
}

async fn answers(what: &'static str, choice: &ModelChoice) -> Finding {
    match choice {
        ModelChoice::Offline => Finding::fine(
            what,
            "builtin:offline, which knows a small grammar (for a real model name one, such as --model anthropic:NAME, and set \
             OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or the address of a server of yours: OPENAI_BASE_URL, OLLAMA_HOST)",
        ),
        ModelChoice::Endpoint { .. } => match models::probe(choice).await {
            Ok(_) => Finding::fine(what, choice.to_string()),
            Err(error) => Finding::bad(
                what,
                format!("{choice}: {error}"),
                "check address, key and name (`artoo models` shows what is in reach), or do without: --model builtin:offline",
            ),
        },
    }
}

/// Whether a key would leave this machine where others on the way can read it.
fn travels_openly(base_url: &str, provider: &str) -> bool {
    let is_here = provider == "localhost" || provider.starts_with("localhost:");
    base_url.to_ascii_lowercase().starts_with("http://") && !is_here
}

/// Whether every MCP server that is switched on starts. One that does not takes nothing but its own tools with it.
pub(super) async fn mcp(settings: &Settings, sandbox: &Sandbox) -> Vec<Finding> {
    if settings.mcp.is_empty() {
        return Vec::new();
    }
    let (_tools, reports) = artoo_executor::mcp::start(settings.mcp.clone(), sandbox).await;
    let told = reports.iter().map(|report| match &report.tools {
        Ok(tools) => Finding::fine("MCP server", format!("{}: {} tools", report.name, tools.len())),
        Err(why) => Finding::note(
            "MCP server",
            format!("{} does not work, its tools are missing: {why}", report.name),
            format!(
                "mend its command or address in config.toml, or take it away: artoo mcp remove {}",
                report.name
            ),
        ),
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_wherever_it_stands() {
        for (text, holds) in [
            ("model = \"ollama:m\"\n", false),
            ("[openai]\napi_key = \"k\"\n", true),
            ("[judge]\napi_key = \" \"\n", false),
            ("[mcp.x]\ncommand = \"api_key\"\n", false),
            ("[openai\napi_key = \"k\"\n", true),
            ("[traces]\nheaders = { x-honeycomb-team = \"k\" }\n", true),
            ("[traces]\nheaders = { a = \"\" }\n", false),
            ("[traces]\nendpoint = \"http://a\"\n", false),
        ] {
            assert_eq!(holds_a_key(text), holds, "{text}");
        }
    }

    #[test]
    fn what_others_may_do_is_told_only_where_it_matters() {
        for (mode, keeps_a_key, complains) in [
            (0o600, true, None),
            (0o644, false, None),
            (0o644, true, Some("read")),
            (0o640, true, Some("read")),
            (0o666, false, Some("change")),
            (0o620, true, Some("change")),
        ] {
            let found = exposed(mode, keeps_a_key);
            assert_eq!(found.is_some(), complains.is_some(), "{mode:o}");
            assert!(
                found.unwrap_or_default().contains(complains.unwrap_or_default()),
                "{mode:o}"
            );
        }
    }

    #[test]
    fn a_key_may_go_openly_only_to_this_machine() {
        for (url, provider, openly) in [
            ("http://127.0.0.1:8080/v1", "localhost:8080", false),
            ("http://localhost/v1", "localhost", false),
            ("https://api.example.com", "example.com", false),
            ("HTTP://api.example.com", "example.com", true),
            ("http://192.168.0.7:8080", "192.168.0.7:8080", true),
            ("http://localhosted.example.com", "example.com", true),
        ] {
            assert_eq!(travels_openly(url, provider), openly, "{url}");
        }
    }
}

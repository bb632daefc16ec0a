//! The settings files: `config.toml` in the data folder, `.artoo.toml` in the project (design §20).
//!
//! Owns their fields and how they are read. Must not know which file weighs more.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::mcp::McpServer;
use super::model::Price;
use super::traces::Section as Traces;
use crate::failure::Failure;
use crate::plain_file;

/// Longest settings file, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// `config.toml` and `.artoo.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    pub model: Option<String>,
    pub brain_model: Option<String>,
    pub judge_model: Option<String>,
    pub second_judge_model: Option<String>,
    pub workspace: Option<PathBuf>,
    pub scope: Vec<PathBuf>,
    pub allow: Vec<String>,
    pub max_tokens: Option<u64>,
    pub max_cost: Option<f64>,
    pub time_budget: Option<String>,
    /// Time between the auditor's periodic reports.
    pub audit_period: Option<String>,
    pub max_replans: Option<u32>,
    pub no_memory: Option<bool>,
    /// Keys of the line editor: `emacs` (default) or `vi`.
    pub keys: Option<Keys>,
    pub prices: BTreeMap<String, Price>,
    pub mcp: BTreeMap<String, McpServer>,
    /// Where traces go.
    pub traces: Traces,
    pub openai: Endpoint,
    pub anthropic: Endpoint,
    pub gemini: Endpoint,
    pub brain: Endpoint,
    pub tool: Endpoint,
    /// R4b's own model.
    pub judge: Endpoint,
    /// A model of another provider beside R4a and R4b.
    pub second_judge: Endpoint,
    /// The operator's order of models: more is more capable.
    pub ranks: BTreeMap<String, u32>,
}

/// Keys of the line editor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keys {
    #[default]
    Emacs,
    Vi,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Endpoint {
    pub base_url: Option<String>,
    pub api_key: Option<String>,
    pub model: Option<String>,
}

/// Reads the text of one.
pub fn parse(text: &str) -> Result<File, toml::de::Error> {
    toml::from_str(text)
}

/// Reads one; `None` where there is none.
///
/// # Errors
/// [`Failure`] (exit 2) when it is no file, too long, or not valid.
pub fn read(path: &Path) -> Result<Option<File>, Failure> {
    let Some(text) = text_of(path, FILE_MAX)? else {
        return Ok(None);
    };
    parse(&text).map(Some).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        // toml shows the offending line, which may hold a key: only its own words are passed on.
        Failure::usage(format!(
            "{} is not valid, line {line}: {}",
            path.display(),
            error.message()
        ))
    })
}

/// The text of a settings file; `None` where there is none.
///
/// # Errors
/// [`Failure`] (exit 2) when it is no file, too long, or not UTF-8.
pub fn text_of(path: &Path, longest: u64) -> Result<Option<String>, Failure> {
    match plain_file::text(path, longest) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Failure::usage(format!("{} cannot be read: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that a table knows, as its own complaint about an unknown one lists them.
    fn known(table: &str) -> Vec<String> {
        let complaint = parse(&format!("{table}no_such_key = 1\n")).unwrap_err();
        let (_, expected) = complaint.message().split_once("expected").unwrap();
        let named = expected.split('`').skip(1).step_by(2).map(str::to_owned);
        named.collect()
    }

    #[test]
    fn every_key_stands_in_the_page_about_them() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let page = std::fs::read_to_string(page).unwrap();
        let is_table = |key: &String| parse(&format!("[{key}]\n")).is_ok();
        let (tables, keys): (Vec<String>, Vec<String>) = known("").into_iter().partition(is_table);
        assert!(tables.len() >= 10 && keys.len() >= 13, "{tables:?} {keys:?}");
        for key in keys {
            assert!(page.contains(&format!("`{key}`")), "{key}");
        }
        for table in tables {
            let named = [format!("`[{table}]"), format!("`[{table}.")];
            assert!(named.iter().any(|name| page.contains(name)), "[{table}]");
        }
        for table in ["[openai]\n", "[prices.x]\n", "[mcp.x]\n", "[traces]\n"] {
            let keys = known(table);
            assert!(keys.len() >= 2, "{table}");
            for key in keys {
                assert!(page.contains(&format!("`{key}`")), "{table} {key}");
            }
        }
    }
}

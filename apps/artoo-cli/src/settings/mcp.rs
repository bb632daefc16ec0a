//! `[mcp.NAME]` in the user's `config.toml`: servers whose tools are offered (design §8, §20).
//!
//! Owns their fields. A project's file may not name any: a server is a program that runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use artoo_executor::mcp::{Server, Way, check_name};
use artoo_executor::spawn;
use artoo_protocol::tool::EffectClass;
use serde::Deserialize;

use super::Environment;
use crate::failure::Failure;

/// How long a call may take, without a word about it.
const LIMIT: u64 = 60;

/// One server as written down.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    pub command: Option<String>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Names of variables that are passed on although they look like secrets.
    pub pass_env: Vec<String>,
    pub url: Option<String>,
    /// The variable that holds the token for a server on the network.
    pub token_env: Option<String>,
    pub effect: Option<EffectClass>,
    pub tools: BTreeMap<String, EffectClass>,
    pub timeout_seconds: Option<u64>,
    pub disabled: bool,
}

/// The servers that are switched on, ready to be started.
///
/// # Errors
/// [`Failure`] (exit 2) for one that cannot be meant.
pub fn servers(written: &BTreeMap<String, McpServer>, env: &Environment, cwd: &Path) -> Result<Vec<Server>, Failure> {
    let switched_on = written.iter().filter(|(_, server)| !server.disabled);
    switched_on.map(|(name, server)| one(name, server, env, cwd)).collect()
}

fn one(name: &str, written: &McpServer, env: &Environment, cwd: &Path) -> Result<Server, Failure> {
    let wrong = |why: &str| {
        Failure::usage(format!("the MCP server `{name}` {why}"))
            .hint("see [mcp.NAME] in config.toml, or `artoo mcp add --help`")
    };
    check_name(name).map_err(Failure::usage)?;
    let value = |variable: &String| {
        env.get(variable)
            .cloned()
            .ok_or_else(|| wrong(&format!("wants the variable {variable}, which is not set")))
    };
    let way = match (&written.command, &written.url) {
        (Some(command), None) => {
            let mut environment = spawn::environment(env.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))));
            for variable in &written.pass_env {
                environment.push((variable.into(), value(variable)?.into()));
            }
            environment.extend(written.env.iter().map(|(k, v)| (k.into(), v.into())));
            Way::Program {
                command: command.clone(),
                args: written.args.clone(),
                environment,
                cwd: cwd.to_owned(),
            }
        }
        (None, Some(url)) if url.starts_with("http://") || url.starts_with("https://") => Way::Http {
            url: url.clone(),
            token: written.token_env.as_ref().map(value).transpose()?,
        },
        _ => return Err(wrong("needs either a command or an http address")),
    };
    Ok(Server {
        name: name.to_owned(),
        way,
        effect: written.effect,
        tool_effects: written.tools.clone(),
        limit: Duration::from_secs(written.timeout_seconds.unwrap_or(LIMIT).max(1)),
    })
}

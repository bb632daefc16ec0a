//! Tools that other programs offer through the Model Context Protocol (design §8, §9).
//!
//! Owns the servers that the user configured: starting them, listing what they offer, and bounding every word of it. A server is a
//! stranger: what it says of itself is data, its tools are asked about unless the user said otherwise, and when it breaks, only its
//! own tools are gone. Must not read configuration files.

mod connection;
mod offered;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use artoo_protocol::ports::Tool;
use artoo_protocol::tool::EffectClass;

use crate::sandbox::Sandbox;
use connection::Connection;
use offered::{Offered, readable};

/// Longest name of a server.
const NAME_MAX: usize = 32;
/// Tools of one server that are offered.
const TOOLS_MAX: usize = 64;

/// One server, as the user configured it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name, in front of the names of its tools.
    pub name: String,
    /// How it is reached.
    pub way: Way,
    /// What its tools do at most, where the user vouches for it; without a word they are `external`.
    pub effect: Option<EffectClass>,
    /// The same for single tools, which weighs more.
    pub tool_effects: BTreeMap<String, EffectClass>,
    /// How long a call may take.
    pub limit: Duration,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Way {
    /// A program that talks over its standard input and output.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its whole environment; see [`crate::spawn::environment`].
        environment: Vec<(OsString, OsString)>,
        /// Where it runs.
        cwd: PathBuf,
    },
    /// A server on the network ("streamable HTTP").
    Http {
        /// Its address.
        url: String,
        /// Sent as `Authorization: Bearer`.
        token: Option<String>,
    },
}

impl std::fmt::Debug for Way {
    // Neither an environment nor a token is ever printed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { command, args, .. } => f.debug_tuple("Program").field(command).field(args).finish(),
            Self::Http { url, .. } => f.debug_tuple("Http").field(url).finish(),
        }
    }
}

/// What came of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// Names of its tools, or why it has none.
    pub tools: Result<Vec<String>, String>,
    /// What was left out of its tools, and why.
    pub left_out: Vec<String>,
}

/// Whether a name can stand in front of a tool's.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    if name.is_empty()
        || name.len() > NAME_MAX
        || !name.chars().all(fits)
        || !name.starts_with(|c: char| c.is_ascii_lowercase())
    {
        return Err(format!(
            "`{name}` is no name for a server: up to {NAME_MAX} small letters, digits, `-` and `_`, a letter first"
        ));
    }
    Ok(())
}

/// Starts all servers at once and asks what they offer. One that does not answer is reported and left out.
///
/// The sandbox does not confine a server, which the user chose; where it has a supervisor, nothing that a server started
/// outlives it or artoo.
pub async fn start(servers: Vec<Server>, sandbox: &Sandbox) -> (Vec<Arc<dyn Tool>>, Vec<Report>) {
    let mut starting = tokio::task::JoinSet::new();
    for (place, server) in servers.into_iter().enumerate() {
        let sandbox = sandbox.clone();
        starting.spawn(async move { (place, offer(server, sandbox).await) });
    }
    let mut found = BTreeMap::new();
    while let Some(done) = starting.join_next().await {
        // A server whose start panicked has no tools; the others go on.
        if let Ok((place, offered)) = done {
            found.insert(place, offered);
        }
    }
    let (mut tools, mut reports) = (Vec::new(), Vec::new());
    for (offered, report) in found.into_values() {
        tools.extend(offered);
        reports.push(report);
    }
    (tools, reports)
}

async fn offer(server: Server, sandbox: Sandbox) -> (Vec<Arc<dyn Tool>>, Report) {
    let name = server.name.clone();
    let broken = |why: String| Report {
        name: name.clone(),
        tools: Err(why),
        left_out: Vec::new(),
    };
    if let Err(why) = check_name(&server.name) {
        return (Vec::new(), broken(why));
    }
    let connection = Arc::new(Connection::new(server, sandbox));
    let listed = match connection.list().await {
        Ok(listed) => listed,
        Err(why) => return (Vec::new(), broken(why)),
    };
    let (mut tools, mut names, mut left_out): (Vec<Arc<dyn Tool>>, BTreeSet<String>, _) =
        (Vec::new(), BTreeSet::new(), Vec::new());
    for tool in listed {
        if tools.len() >= TOOLS_MAX {
            left_out.push(format!("everything after the first {TOOLS_MAX} tools"));
            break;
        }
        match Offered::new(&connection, tool) {
            Ok(offered) if names.insert(offered.name().to_owned()) => tools.push(Arc::new(offered)),
            Ok(offered) => left_out.push(format!("a second `{}`", offered.name())),
            Err(why) => left_out.push(why),
        }
    }
    let report = Report {
        tools: Ok(names.into_iter().collect()),
        name,
        left_out: left_out.iter().map(|why| readable(why, 200)).collect(),
    };
    (tools, report)
}

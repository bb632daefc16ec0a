//! `artoo doctor`: what could be wrong on this machine, each with its remedy (design §20).
//!
//! Owns the order of the looks and how they are told. What is looked at is in [`configuration`], [`folders`], [`records`] and
//! [`machine`]. Nothing is changed, nothing is left behind, and one thing that is wrong hides no other.

mod configuration;
mod folders;
mod machine;
mod records;

use artoo_bus::SystemClock;
use artoo_protocol::ports::Clock as _;
use artoo_protocol::text::printable;
use serde_json::{Value, json};

use crate::args::Options;
use crate::failure::Failure;
use crate::output;
use crate::settings::{self, Environment};

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    what: &'static str,
    state: State,
    detail: String,
    remedy: Option<String>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fine,
    /// artoo works, but not as well, or not as safely, as it could.
    Note,
    /// artoo cannot work so.
    Bad,
}

impl Finding {
    fn fine(what: &'static str, detail: impl Into<String>) -> Self {
        Self {
            what,
            state: State::Fine,
            detail: detail.into(),
            remedy: None,
        }
    }

    fn note(what: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            state: State::Note,
            remedy: Some(remedy.into()),
            ..Self::fine(what, detail)
        }
    }

    fn bad(what: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            state: State::Bad,
            ..Self::note(what, detail, remedy)
        }
    }

    fn line(&self) -> String {
        let mark = match self.state {
            State::Fine => "ok",
            State::Note => "note",
            State::Bad => "BAD",
        };
        let remedy = self
            .remedy
            .as_ref()
            .map(|remedy| format!(" — {remedy}"))
            .unwrap_or_default();
        format!("{mark:<4} {:<15} {}{remedy}", self.what, self.detail)
    }

    fn json(&self) -> Value {
        let state = match self.state {
            State::Fine => "ok",
            State::Note => "note",
            State::Bad => "bad",
        };
        json!({"check": self.what, "ok": self.state != State::Bad, "state": state, "detail": self.detail, "remedy": self.remedy})
    }
}

/// Looks, and exits with 1 when artoo cannot work as things are; what merely could be better is a note.
///
/// # Errors
/// [`Failure`] when a finding is bad; the findings themselves are printed.
pub async fn run(options: &Options, env: &Environment, json: bool) -> Result<u8, Failure> {
    let findings = look(options, env).await;
    if json {
        output::pretty_json(&findings.iter().map(Finding::json).collect::<Vec<_>>());
    } else {
        for finding in &findings {
            output::result(&printable(&finding.line()));
        }
    }
    match findings.iter().filter(|finding| finding.state == State::Bad).count() {
        0 => Ok(0),
        bad => Err(Failure::failed(format!("{bad} thing(s) do not work"))),
    }
}

async fn look(options: &Options, env: &Environment) -> Vec<Finding> {
    let now = SystemClock.now();
    let mut findings = vec![machine::version()];
    let loaded = settings::load(options, env);
    findings.push(configuration::of(&loaded));
    // Where the data is does not depend on whether the settings are right.
    let data = settings::data_dir(options, env).ok();
    if let Some(data) = &data {
        findings.extend(configuration::file(&data.join("config.toml")));
        findings.extend(configuration::kept_keys(data));
        findings.extend(folders::data(data));
    }
    let sandbox = artoo_executor::Sandbox::of_this_program();
    if let Ok(settings) = &loaded {
        findings.extend(configuration::notices(settings));
        findings.push(folders::workspace(&settings.workspace));
        findings.extend(configuration::models(settings).await);
        findings.extend(configuration::mcp(settings, &sandbox).await);
    }
    findings.push(folders::temporary());
    findings.push(machine::shell());
    findings.push(machine::sandbox(&sandbox));
    findings.push(machine::file_index(env));
    let mut newest = None;
    if let Some(data) = &data {
        findings.push(records::memory(data, now));
        let journals = records::Journals::read(data);
        newest = journals.newest;
        findings.extend(journals.findings());
        findings.push(records::audit_log(data));
    }
    findings.push(machine::clock(now, newest));
    findings.push(machine::open_files());
    findings.push(machine::terminal(env));
    findings.extend(machine::variables(env));
    findings
}

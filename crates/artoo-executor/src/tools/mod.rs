//! The built-in tools and the box they lie in (design §8).
//!
//! Owns what is common to all tools: arguments, invalid calls, masking of secrets. Tools look at the world through the
//! folders they are given. Must not know the gate, the model or the conversation: a tool merely says what a call would do
//! and refuses to do more than it was permitted.

mod best;
pub(crate) mod change;
mod delete_files;
mod edit_file;
mod find_files;
mod glob;
mod index;
mod mac;
mod place;
mod read_file;
mod redirect;
mod search_text;
mod secrets;
mod shell;
mod text_kind;
mod web;
mod write_file;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::{Tool, Toolbox};
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, Reach, ToolOutput, ToolSpec};
use async_trait::async_trait;
use serde::de::DeserializeOwned;

pub use place::Places;
pub use secrets::Mask;
pub use web::{AddressGuard, GoogleKeys, Lookup, WebSettings};

use crate::abandoned::{Abandoned, blocking};
use crate::gate::Grant;
use crate::sandbox::Sandbox;
use crate::undo::UndoStore;
use change::Changing;
use web::{FetchUrl, Search, Web};

/// What the built-in tools are set up with.
#[derive(Clone, Debug)]
pub struct ToolSettings {
    /// The folders.
    pub places: Places,
    /// The environment of the process; secrets in it are neither passed on nor shown.
    pub environment: Vec<(OsString, OsString)>,
    /// Time limit of a command that names none.
    pub command_limit: Duration,
    /// How the web is reached; `None` leaves the tools for it out.
    pub web: Option<WebSettings>,
    /// Where what is overwritten or deleted is kept; without it nothing can be deleted, and what is overwritten is gone.
    pub undo: Option<Arc<UndoStore>>,
    /// What confines commands.
    pub sandbox: Sandbox,
    /// What the person allowed beforehand: a command that is allowed for the paths that it writes may write them, and no more.
    pub grants: Vec<Grant>,
}

/// Tools by name.
pub struct Tools {
    by_name: BTreeMap<String, Arc<dyn Tool>>,
    mask: Mask,
}

impl Tools {
    /// The built-in tools.
    pub fn built_in(settings: &ToolSettings) -> Self {
        let places = Arc::new(settings.places.clone());
        let mask = Mask::of_environment(&settings.environment);
        let at = || Arc::clone(&places);
        let mut tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(find_files::FindFiles {
                places: at(),
                index: index::Index::of_environment(&settings.environment),
            }),
            Arc::new(glob::Glob { places: at() }),
            Arc::new(search_text::SearchText { places: at() }),
            Arc::new(read_file::ReadFile { places: at() }),
            Arc::new(Changing {
                places: at(),
                undo: settings.undo.clone(),
                spec: write_file::spec,
                change: write_file::change,
            }),
            Arc::new(Changing {
                places: at(),
                undo: settings.undo.clone(),
                spec: edit_file::spec,
                change: edit_file::change,
            }),
            Arc::new(delete_files::DeleteFiles {
                places: at(),
                undo: settings.undo.clone(),
            }),
            Arc::new(shell::Shell::new(at(), settings)),
        ];
        if let Some(web) = settings.web.clone().map(Web::new) {
            tools.push(Arc::new(Search {
                web: Arc::clone(&web),
                places: at(),
                mask: mask.clone(),
            }));
            tools.push(Arc::new(FetchUrl {
                web,
                places: at(),
                mask: mask.clone(),
            }));
        }
        if cfg!(target_os = "macos") {
            tools.extend(mac::tools(&places, settings));
        }
        Self::of(tools, mask)
    }

    /// These tools; of two with one name the later stays. Their output is masked.
    pub fn of(tools: Vec<Arc<dyn Tool>>, mask: Mask) -> Self {
        let by_name = tools.into_iter().map(|tool| (tool.spec().name, tool)).collect();
        Self { by_name, mask }
    }

    /// These and more, such as those of MCP servers.
    #[must_use]
    pub fn and(mut self, more: Vec<Arc<dyn Tool>>) -> Self {
        self.by_name
            .extend(more.into_iter().map(|tool| (tool.spec().name, tool)));
        self
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
        format!("there is no tool `{name}`; there are: {}", names.join(", "))
    }
}

#[async_trait]
impl Toolbox for Tools {
    fn specs(&self) -> Vec<ToolSpec> {
        self.by_name.values().map(|tool| tool.spec()).collect()
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        match self.by_name.get(&invocation.tool) {
            Some(tool) => tool.assess(invocation).await,
            None => invalid(self.unknown(&invocation.tool)),
        }
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        let Some(tool) = self.by_name.get(&invocation.tool) else {
            return failed(self.unknown(&invocation.tool), FailureClass::Logical);
        };
        let mut output = tool.run(invocation, permit).await;
        output.output = self.mask.text(&output.output);
        output.error = output.error.map(|error| self.mask.text(&error));
        output
    }
}

/// The arguments of a call.
fn arguments<T: DeserializeOwned>(invocation: &Invocation) -> Result<T, String> {
    serde_json::from_value(invocation.input.clone())
        .map_err(|error| format!("bad arguments for `{}`: {error}", invocation.tool))
}

/// A call that cannot be made at all.
pub(crate) fn invalid(why: impl Into<String>) -> Assessment {
    Assessment {
        effect: EffectClass::Read,
        reach: Reach::Nowhere,
        action: String::new(),
        reason: String::new(),
        programs: Vec::new(),
        targets: Vec::new(),
        invalid: Some(why.into()),
        fingerprint: 0,
    }
}

/// A call that only looks.
fn reading(action: String, target: String) -> Assessment {
    Assessment {
        effect: EffectClass::Read,
        reach: Reach::Nowhere,
        action,
        reason: "it only reads".to_owned(),
        programs: Vec::new(),
        targets: vec![target],
        invalid: None,
        fingerprint: 0,
    }
}

/// A call that did not work.
pub(crate) fn failed(error: impl Into<String>, class: FailureClass) -> ToolOutput {
    ToolOutput {
        error: Some(error.into()),
        failure_class: Some(class),
        ..ToolOutput::default()
    }
}

/// A call that the operating system did not let work.
fn failed_by_system(what: &str, error: &std::io::Error) -> ToolOutput {
    failed(format!("{what}: {error}"), FailureClass::Environmental)
}

/// Refuses when a call turns out to do more than it was permitted: it has to be asked about as what it is now.
pub(crate) fn exceeds(found: EffectClass, permit: Permit) -> Option<ToolOutput> {
    (found > permit.effect).then(|| {
        let why = format!(
            "what it would do changed from {} to {} since it was looked at",
            permit.effect, found
        );
        change::stale(&why)
    })
}

/// What is said when a worker thread died.
fn worker_died() -> ToolOutput {
    failed("the tool broke: its worker ended early", FailureClass::Environmental)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_changes;
#[cfg(test)]
mod tests_of_mac;
#[cfg(test)]
mod tests_of_searches;

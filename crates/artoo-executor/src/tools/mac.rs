//! What only macOS has: its index of files, AppleScript and the user's shortcuts (design §8).
//!
//! Owns the command lines. They are offered on macOS alone; elsewhere tests run them against stand-ins that record what they were
//! given. Not tried on a Mac.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, Reach, ToolOutput, ToolSpec};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::shell::result;
use super::{Places, ToolSettings, arguments, exceeds, failed, failed_by_system, invalid, reading};
use crate::sandbox::{Confinement, Sandbox};
use crate::spawn::{self, Launch};

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mdfind,
    AppleScript,
    Shortcuts,
}

struct MacTool {
    kind: Kind,
    places: Arc<Places>,
    environment: Vec<(OsString, OsString)>,
    limit: Duration,
}

/// The tools of macOS.
pub(super) fn tools(places: &Arc<Places>, settings: &ToolSettings) -> Vec<Arc<dyn Tool>> {
    let tool = |kind| -> Arc<dyn Tool> {
        Arc::new(MacTool {
            kind,
            places: Arc::clone(places),
            environment: spawn::environment(settings.environment.iter().cloned()),
            limit: settings.command_limit,
        })
    };
    [Kind::Mdfind, Kind::AppleScript, Kind::Shortcuts].map(tool).into()
}

#[derive(Deserialize)]
struct Mdfind {
    query: String,
    #[serde(default)]
    under: Option<String>,
}

#[derive(Deserialize)]
struct AppleScript {
    script: String,
}

#[derive(Deserialize)]
struct Shortcuts {
    #[serde(default)]
    run: Option<String>,
}

/// A command line, and what it means.
struct Plan {
    words: Vec<String>,
    assessment: Assessment,
}

impl MacTool {
    fn plan(&self, invocation: &Invocation) -> Result<Plan, String> {
        match self.kind {
            Kind::Mdfind => {
                let given = arguments::<Mdfind>(invocation)?;
                if given.query.trim().is_empty() || given.query.starts_with('-') {
                    return Err("the query is empty or begins with `-`".to_owned());
                }
                let mut words = vec!["mdfind".to_owned()];
                if let Some(under) = given.under {
                    words.extend(["-onlyin".to_owned(), self.places.reading(&under).display().to_string()]);
                }
                words.push(given.query.clone());
                let assessment = reading(format!("ask Spotlight for `{}`", given.query), given.query);
                Ok(Plan { words, assessment })
            }
            Kind::AppleScript => {
                let script = arguments::<AppleScript>(invocation)?.script;
                let reason = "AppleScript can act on every application, and what it does cannot be told from its text";
                let words = vec!["osascript".to_owned(), "-e".to_owned(), script.clone()];
                Ok(external(
                    words,
                    format!("run this AppleScript:\n{script}"),
                    script,
                    reason,
                ))
            }
            Kind::Shortcuts => match arguments::<Shortcuts>(invocation)?.run {
                None => Ok(Plan {
                    words: vec!["shortcuts".to_owned(), "list".to_owned()],
                    assessment: reading("list the shortcuts".to_owned(), "shortcuts list".to_owned()),
                }),
                Some(name) if name.starts_with('-') || name.trim().is_empty() => {
                    Err(format!("`{name}` is no name of a shortcut"))
                }
                Some(name) => {
                    let words = vec!["shortcuts".to_owned(), "run".to_owned(), name.clone()];
                    let action = format!("run the shortcut `{name}`");
                    Ok(external(words, action, name, "a shortcut can act on every application"))
                }
            },
        }
    }
}

fn external(words: Vec<String>, action: String, subject: String, reason: &str) -> Plan {
    let assessment = Assessment {
        effect: EffectClass::External,
        reach: Reach::Elsewhere,
        action,
        reason: reason.to_owned(),
        programs: words.first().cloned().into_iter().collect(),
        targets: vec![subject],
        invalid: None,
        fingerprint: 0,
    };
    Plan { words, assessment }
}

#[async_trait]
impl Tool for MacTool {
    fn spec(&self) -> ToolSpec {
        let (name, description, properties, required) = match self.kind {
            Kind::Mdfind => (
                "mdfind",
                "Finds the user's files by name or content in the Spotlight index; one path a line.",
                json!({"query": {"type": "string", "description": "words, or a Spotlight query"},
                    "under": {"type": "string", "description": "only in this folder"}}),
                json!(["query"]),
            ),
            Kind::AppleScript => (
                "applescript",
                "Runs an AppleScript after the user's yes.",
                json!({"script": {"type": "string"}}),
                json!(["script"]),
            ),
            Kind::Shortcuts => (
                "shortcuts",
                "Lists the user's shortcuts, or runs one after the user's yes.",
                json!({"run": {"type": "string", "description": "the name of the one to run; the list without one"}}),
                json!([]),
            ),
        };
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
        }
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        self.plan(invocation).map_or_else(invalid, |plan| plan.assessment)
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        let plan = match self.plan(invocation) {
            Ok(plan) => plan,
            Err(error) => return failed(error, FailureClass::Logical),
        };
        if let Some(refusal) = exceeds(plan.assessment.effect, permit) {
            return refusal;
        }
        let quoted: Vec<String> = plan.words.iter().map(|word| quoted(word)).collect();
        let launch = Launch {
            command: quoted.join(" "),
            cwd: self.places.cwd.clone(),
            environment: self.environment.clone(),
            limit: self.limit,
            // What it may do was decided before; its programs talk to others in ways that a sandbox would break.
            sandbox: Sandbox::unchecked(),
            confinement: Confinement::Allowed,
        };
        match spawn::run(launch).await {
            Ok(ended) => ToolOutput {
                programs: plan.words.first().cloned().into_iter().collect(),
                ..result(ended, self.limit)
            },
            Err(error) => failed_by_system("the command could not be started", &error),
        }
    }
}

/// A word that the shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

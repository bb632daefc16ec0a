//! `shell`: one bash command line (design §8, §9).
//!
//! Owns how a command's class and written paths become an assessment, and how its ending becomes a result. Must not run
//! anything whose class at the moment of running is worse than its permit.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, Reach, ToolOutput, ToolSpec};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::change::{fingerprint, stale};
use super::find_files;
use super::place::{landing, worst};
use super::redirect::{NameSearch, name_search};
use super::{Places, ToolSettings, arguments, exceeds, failed, failed_by_system, invalid};
use crate::anchored::MadeFiles;
use crate::classify::{CommandClass, WrittenPath, classify};
use crate::gate::{Grant, exact, is_free};
use crate::sandbox::{Allows, Confinement, Sandbox, Writable};
use crate::spawn::{self, Ended, Launch};

/// The longest time limit that a call may ask for.
const LONGEST: Duration = Duration::from_secs(600);
/// Exit statuses by which a shell says that a command is missing or cannot be started.
const CANNOT_RUN: [i32; 2] = [126, 127];

pub(super) struct Shell {
    places: Arc<Places>,
    environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    limit: Duration,
    sandbox: Sandbox,
    grants: Vec<Grant>,
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

impl Shell {
    pub fn new(places: Arc<Places>, settings: &ToolSettings) -> Self {
        let environment = spawn::environment(settings.environment.iter().cloned());
        Self {
            places,
            environment,
            limit: settings.command_limit,
            sandbox: settings.sandbox.clone(),
            grants: settings.grants.clone(),
        }
    }

    /// What a command may do that nobody allowed: look, and write where the gate lets it. One that is allowed may do
    /// everything, unless it is allowed for its paths alone.
    fn confinement(
        &self,
        class: &CommandClass,
        assessment: &Assessment,
        permit: Permit,
        invocation: &Invocation,
    ) -> Result<(Confinement, MadeFiles), String> {
        if permit.confirmed {
            return self.by_path(class, assessment);
        }
        let effect = assessment.effect;
        if effect <= EffectClass::Fetch {
            return Ok((Confinement::Read, MadeFiles::default()));
        }
        Ok((Confinement::Write(self.writable(invocation)), MadeFiles::default()))
    }

    /// What a grant leaves that names paths only; everything where the person, or a grant, named the command itself.
    ///
    /// Exactly those paths are opened and nothing beside or above them: a new file is made before the command begins, and for
    /// a new folder only folders may be made where it comes to. Where nothing can hold a command to that, it is as the person
    /// allowed it: unconfined.
    fn by_path(&self, class: &CommandClass, assessment: &Assessment) -> Result<(Confinement, MadeFiles), String> {
        let named = self.grants.iter().any(|grant| grant.covers_words(assessment));
        let by_path = self.grants.iter().any(|grant| grant.covers_paths(assessment));
        if named || !by_path || assessment.reach == Reach::Records || self.sandbox.absent_for_writes().is_some() {
            return Ok((Confinement::Allowed, MadeFiles::default()));
        }
        let (mut places, mut made) = (Vec::new(), MadeFiles::default());
        for written in &class.writes {
            let (text, is_folder) = match written {
                WrittenPath::File(text) => (text, false),
                WrittenPath::Folder(text) => (text, true),
                WrittenPath::Unknown => continue,
            };
            let path = landing(&self.places.commanded(text)).map_err(|error| format!("{text}: {error}"))?;
            if path.is_dir() {
                // Making a folder that is there changes nothing, and no command writes to one.
                continue;
            }
            let (path, allows) = if path.symlink_metadata().is_ok() {
                (path, Allows::Changing)
            } else {
                let remedy = |why: &str| {
                    let words = exact(&Assessment {
                        targets: assessment.targets.iter().take(1).cloned().collect(),
                        ..assessment.clone()
                    });
                    let words = words.map(|grant| format!(", or `--allow` {}", String::from(grant)));
                    format!(
                        "the grant for {} opens nothing above it, and {why}: make the folder in a call of its own first{}",
                        path.display(),
                        words.unwrap_or_default()
                    )
                };
                let parent = path.parent().filter(|parent| parent.is_dir());
                let parent = parent.ok_or_else(|| remedy("the folder that it comes to is not there"))?;
                if is_folder && self.places.opens_own(parent) {
                    return Err(remedy("artoo's own records are below the folder that it comes to"));
                }
                if is_folder {
                    (parent.to_owned(), Allows::Folders)
                } else {
                    made.make(&path, class.opened.contains(text))
                        .map_err(|error| remedy(&format!("it cannot be made beforehand ({error})")))?;
                    (path, Allows::Changing)
                }
            };
            places.push(Writable { path, allows });
        }
        Ok((Confinement::Write(places), made))
    }

    /// What a call would do, in the words of the gate.
    fn assessed(&self, class: CommandClass, command: String, invocation: &Invocation) -> Assessment {
        let (effect, reach, paths) = self.judge(&class, invocation);
        let mut targets = vec![command.clone()];
        // The paths stand for the whole call only when writing them is the worst it does.
        if class.effect <= EffectClass::Read && !class.writes.contains(&WrittenPath::Unknown) {
            targets.extend(paths);
        }
        let absent = self.absent(&class);
        // Links may be turned between the look and the deed.
        let written = targets.get(1..).unwrap_or_default().join("\0");
        Assessment {
            effect,
            reach,
            fingerprint: fingerprint(&format!("{reach:?} {written}")),
            action: command,
            reason: match (class.reason, absent) {
                (None, Some(why)) => {
                    format!("it seems to only read, but nothing holds it to that here: {why}")
                }
                (None, None) => "it only reads".to_owned(),
                (Some(reason), _) => reason,
            },
            programs: class.programs,
            targets,
            invalid: None,
        }
    }

    /// Why nothing can hold such a command to what it was taken for.
    fn absent(&self, class: &CommandClass) -> Option<&str> {
        if class.effect <= EffectClass::Read && class.writes.is_empty() {
            self.sandbox.absent()
        } else {
            self.sandbox.absent_for_writes()
        }
    }

    /// Where a command may write that nobody allowed. The sandbox cannot take a folder out of another, so a place that
    /// holds artoo's own data folder is left out whole.
    fn writable(&self, invocation: &Invocation) -> Vec<Writable> {
        let place = |path: PathBuf, allows| landing(&path).ok().map(|path| Writable { path, allows });
        let workspace = place(self.places.workspace.clone(), Allows::Making);
        let scope = invocation.scope.iter().map(|path| self.places.commanded(path));
        let own = invocation.created.iter().map(PathBuf::from);
        let changing = scope.chain(own).filter_map(|path| place(path, Allows::Changing));
        let all = workspace.into_iter().chain(changing);
        all.filter(|writable| !self.places.opens_own(&writable.path)).collect()
    }

    /// What the command would do: its own class, and the paths it writes.
    fn judge(&self, class: &CommandClass, invocation: &Invocation) -> (EffectClass, Reach, Vec<String>) {
        let mut effects = vec![(
            class.effect,
            if class.effect == EffectClass::Read {
                Reach::Nowhere
            } else {
                Reach::Elsewhere
            },
        )];
        let mut paths = Vec::new();
        let writable = self.writable(invocation);
        for written in &class.writes {
            let (text, is_folder) = match written {
                WrittenPath::File(text) => (text, false),
                WrittenPath::Folder(text) => (text, true),
                WrittenPath::Unknown => {
                    effects.push((EffectClass::Modify, Reach::Elsewhere));
                    continue;
                }
            };
            let path = self.places.commanded(text);
            match landing(&path) {
                // Making a folder that is there changes nothing.
                Ok(real) if is_folder && real.is_dir() => {}
                Ok(real) => {
                    let (effect, reach) = self.places.effect_of_writing(&real, invocation);
                    // What the sandbox will not open is not free.
                    let opened = writable.iter().any(|place| {
                        real.starts_with(&place.path)
                            && (effect == EffectClass::Create || place.allows == Allows::Changing)
                    });
                    let reach = if opened || reach == Reach::Records {
                        reach
                    } else {
                        Reach::Elsewhere
                    };
                    effects.push((effect, reach));
                    paths.push(real.display().to_string());
                }
                Err(_) => effects.push((EffectClass::Modify, Reach::Elsewhere)),
            }
        }
        let records = effects.iter().any(|(_, reach)| *reach == Reach::Records);
        let (effect, reach) = worst(effects).unwrap_or((EffectClass::External, Reach::Elsewhere));
        let reach = if records { Reach::Records } else { reach };
        if is_free(effect, reach) && self.absent(class).is_some() {
            return (EffectClass::External, Reach::Elsewhere, paths);
        }
        (effect, reach, paths)
    }
}

#[async_trait]
impl Tool for Shell {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "shell".to_owned(),
            description: "Runs one bash command in the working directory, without a terminal and without input. Reading needs no \
                permission; anything that changes, deletes or sends is put to the user first."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string"},
                    "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": LONGEST.as_secs()}
                },
                "required": ["command"],
                "additionalProperties": false
            }),
        }
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        let given = match arguments::<Arguments>(invocation) {
            Ok(given) => given,
            Err(error) => return invalid(error),
        };
        if given.command.trim().is_empty() || given.command.contains('\0') {
            return invalid("the command is empty or holds a zero byte");
        }
        self.assessed(classify(&given.command), given.command, invocation)
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        let given = match arguments::<Arguments>(invocation) {
            Ok(given) => given,
            Err(error) => return failed(error, FailureClass::Logical),
        };
        let class = classify(&given.command);
        let (_, _, paths) = self.judge(&class, invocation);
        let assessment = self.assessed(class.clone(), given.command.clone(), invocation);
        if let Some(refusal) = exceeds(assessment.effect, permit) {
            return refusal;
        }
        let moved = permit.confirmed && permit.seen != 0 && permit.seen != assessment.fingerprint;
        if moved || (!permit.confirmed && !is_free(assessment.effect, assessment.reach)) {
            return stale("what it writes to changed since it was looked at");
        }
        if let Some(search) = name_search(&given.command, &self.places.home).filter(|search| search.under.is_dir()) {
            return instead(search).await;
        }
        let limit = given
            .timeout_seconds
            .map_or(self.limit, Duration::from_secs)
            .clamp(Duration::from_secs(1), LONGEST);
        let (confinement, mut made) = match self.confinement(&class, &assessment, permit, invocation) {
            Ok(confinement) => confinement,
            Err(why) => return failed(why, FailureClass::Environmental),
        };
        let launch = Launch {
            command: given.command,
            cwd: self.places.cwd.clone(),
            environment: self.environment.clone(),
            limit,
            sandbox: self.sandbox.clone(),
            confinement,
        };
        match spawn::run(launch).await {
            Ok(ended) => {
                // What was made for it and not used goes before anybody looks what it wrote.
                if ended.exit == Some(0) {
                    made.keep_opened();
                }
                drop(made);
                let touched = paths
                    .into_iter()
                    .filter(|path| Path::new(path).symlink_metadata().is_ok())
                    .collect();
                ToolOutput {
                    programs: assessment.programs,
                    touched,
                    ..result(ended, limit)
                }
            }
            Err(error) => failed_by_system("the shell could not be started", &error),
        }
    }
}

/// A search for the user's files, made with the tool for it; the record says so.
async fn instead(search: NameSearch) -> ToolOutput {
    let note = match &search.depth_left_out {
        Some(depth) => format!("[run as find_files; -maxdepth {depth} was left out, to find what lies deeper]\n"),
        None => "[run as find_files]\n".to_owned(),
    };
    let found = find_files::by_name(search).await;
    ToolOutput {
        output: note + &found.output,
        programs: vec!["find_files".to_owned()],
        exit: found.error.is_none().then_some(0),
        ..found
    }
}

pub(super) fn result(ended: Ended, limit: Duration) -> ToolOutput {
    let mut output = ended.stdout.text;
    if ended.stderr.bytes > 0 {
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        output.push_str("[stderr]\n");
        output.push_str(&ended.stderr.text);
    }
    let cannot_run = ended.exit.is_some_and(|code| CANNOT_RUN.contains(&code));
    let killed = ended.exit.is_none() && !ended.timed_out;
    let error = if ended.timed_out {
        Some(format!("timed out after {} s", limit.as_secs()))
    } else if killed {
        Some("ended by a signal".to_owned())
    } else if cannot_run {
        Some("a command is missing or cannot be started".to_owned())
    } else {
        None
    };
    ToolOutput {
        output,
        truncated: ended.stdout.truncated || ended.stderr.truncated,
        lines: ended.stdout.lines,
        exit: ended.exit,
        failure_class: error.as_ref().map(|_| FailureClass::Environmental),
        error,
        interrupted: ended.timed_out || killed,
        ..ToolOutput::default()
    }
}

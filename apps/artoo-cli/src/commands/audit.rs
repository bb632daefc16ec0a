//! `artoo audit`: the operator's view of R6 (design §16).

use std::path::Path;

use artoo_auditor::tail::{Anomalies, Filter, Sieve, describe, last};
use artoo_auditor::{
    Checkpoint, CheckpointError, DETECTORS, Follow, LogError, Overview, checkpoint, overview, page, recount, verify,
};
use artoo_bus::SystemClock;
use artoo_protocol::message::AuditReport;
use artoo_protocol::ports::Clock;
use artoo_protocol::text::printable;
use artoo_protocol::{Role, Timestamp};
use serde_json::json;

use crate::args::{AuditCommand, AuditTail};
use crate::data_folder::DataFolder;
use crate::failure::Failure;
use crate::output;

/// Time between two looks at a log that is followed.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

/// Runs one of them.
///
/// # Errors
/// [`Failure`] (exit 1) when the log cannot be read, or its chain is broken; (exit 2) for a filter that cannot be.
pub fn run(command: &AuditCommand, data: &Path) -> Result<(), Failure> {
    match command {
        AuditCommand::Report { html, json } => {
            let now = SystemClock.now();
            // What was counted can be kept where no other artoo writes there.
            let held = data.is_dir().then(|| DataFolder::open(data, now).ok()).flatten();
            let seen = if held.is_some() {
                recount(data, now)
            } else {
                overview(data, now)
            }
            .map_err(failed)?;
            if let Some(file) = html {
                output::file(file, &page(&seen))?;
                output::note(&format!("the page is in {}", file.display()));
            }
            if *json {
                output::pretty_json(&seen);
            } else if html.is_none() {
                output::result(&whole_text(&seen));
            }
            Ok(())
        }
        AuditCommand::Tail(arguments) => tail(arguments, data),
        AuditCommand::Verify {
            checkpoints,
            public_key,
            json,
        } => {
            let known = match (checkpoints, public_key) {
                (Some(file), Some(key)) => Some(checkpoint::read_checkpoints(file, key).map_err(failed)?),
                _ => None,
            };
            check(data, known.as_deref(), *json)
        }
        AuditCommand::Key { file } => {
            let public = checkpoint::new_key(file).map_err(|error| match error {
                CheckpointError::Log(LogError::Io { path, source }) => Failure::unwritable(&path, &source),
                other => failed(other),
            })?;
            output::note(&format!(
                "the secret key is in {0}, the public one in {0}.pub: keep both away from the data folder",
                file.display()
            ));
            output::result(&public);
            Ok(())
        }
        AuditCommand::Checkpoint { key, to, json } => {
            if inside(to, data) {
                return Err(
                    Failure::usage("a checkpoint inside the data folder protects nothing").hint("write it elsewhere")
                );
            }
            let signed = checkpoint::sign(data, key, SystemClock.now(), to).map_err(|error| match error {
                CheckpointError::Log(LogError::Io { path, source }) if path == *to => {
                    Failure::unwritable(&path, &source)
                }
                error @ (CheckpointError::Forged { .. } | CheckpointError::Unreadable { .. }) => {
                    failed(format!("{}: {error}", to.display()))
                        .hint("nothing was signed; begin another file of checkpoints, and keep this one as evidence")
                }
                error @ CheckpointError::Log(LogError::Broken(_)) => failed(error)
                    .hint("nothing was signed: the log is not what was written, or not what was signed before"),
                other => failed(other),
            })?;
            if *json {
                output::json(&signed);
            } else {
                output::result(&format!("record {} with the hash {} is signed", signed.n, signed.hash));
            }
            Ok(())
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}

/// Whether a file would lie in the folder.
fn inside(file: &Path, folder: &Path) -> bool {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new(".")).canonicalize();
    matches!((parent, folder.canonicalize()), (Ok(parent), Ok(folder)) if parent.starts_with(&folder))
}

fn check(data: &Path, checkpoints: Option<&[Checkpoint]>, as_json: bool) -> Result<(), Failure> {
    let found = verify(data, checkpoints.unwrap_or_default());
    if as_json {
        let answer = match &found {
            Ok(fine) => {
                let mut answer = json!({"ok": true});
                let fine = serde_json::to_value(fine).unwrap_or_default();
                if let (Some(answer), serde_json::Value::Object(fine)) = (answer.as_object_mut(), fine) {
                    answer.extend(fine);
                }
                answer
            }
            Err(error @ LogError::Broken(broken)) => json!({
                "ok": false, "error": error.to_string(),
                "record": broken.record, "damage": broken.damage, "detail": broken.detail,
            }),
            Err(error @ LogError::Io { .. }) => json!({"ok": false, "error": error.to_string()}),
        };
        output::json(&answer);
    }
    let fine = found.map_err(failed)?;
    if !as_json {
        output::result(&format!(
            "the audit log is whole: {} records in {} files, {} gaps, {} findings, {} notes{}",
            fine.records,
            fine.files,
            fine.gaps,
            fine.findings,
            fine.notes,
            match (checkpoints, fine.checkpoints) {
                (None, _) => String::new(),
                (Some(_), 0) =>
                    "; it agrees with 0 checkpoints: the file holds none, so nothing outside vouches for it".to_owned(),
                (Some(_), n) => format!("; it agrees with {n} checkpoints"),
            }
        ));
    }
    Ok(())
}

fn tail(arguments: &AuditTail, data: &Path) -> Result<(), Failure> {
    let sieve = Sieve::new(&filter(arguments)?);
    // First the end, then what is there: a record in between is shown twice rather than not at all, so it is left out by its number.
    let mut follow = arguments
        .follow
        .then(|| Follow::from_end(data))
        .transpose()
        .map_err(failed)?;
    let show = |line: &[u8]| {
        if arguments.json {
            output::result(&String::from_utf8_lossy(line));
        } else {
            output::result(&printable(&describe(line)));
        }
    };
    let known = last(data, &sieve, arguments.lines).map_err(failed)?;
    for line in &known {
        show(line);
    }
    while let Some(follow) = &mut follow {
        let come = follow.poll().map_err(failed)?;
        for line in &come {
            if sieve.admits(line) && !known.contains(line) {
                show(line);
            }
        }
        if output::is_broken() {
            break;
        }
        if come.is_empty() {
            std::thread::sleep(LOOK_EVERY);
        }
    }
    Ok(())
}

fn filter(arguments: &AuditTail) -> Result<Filter, Failure> {
    let time = |text: &Option<String>| {
        let parse = |text: &String| Timestamp::parse(text).map_err(|e| Failure::usage(e.to_string()));
        text.as_ref().map(parse).transpose()
    };
    let role = arguments.role.as_ref().map(|text| {
        let named = |role: &Role| role.to_string().eq_ignore_ascii_case(text);
        Role::ALL.into_iter().find(named).ok_or_else(|| {
            Failure::usage(format!("there is no role `{text}`")).hint("R1, R2, R3, R4a, R4b, R5, R6, R7, User, Runtime")
        })
    });
    let anomalies = arguments.anomaly.as_ref().map(|name| match name.as_str() {
        "all" => Ok(Anomalies::All),
        name if DETECTORS.iter().any(|row| row.name == name) => Ok(Anomalies::Of(name.to_owned())),
        name => Err(Failure::usage(format!("there is no detector `{name}`"))
            .hint(DETECTORS.iter().map(|row| row.name).collect::<Vec<_>>().join(", "))),
    });
    Ok(Filter {
        task: arguments.task.clone(),
        role: role.transpose()?,
        kind: arguments.kind.clone(),
        since: time(&arguments.since)?,
        until: time(&arguments.until)?,
        anomalies: anomalies.transpose()?,
    })
}

/// The report over the whole log in words.
fn whole_text(seen: &Overview) -> String {
    let totals = &seen.totals;
    let mut lines = vec![text(&seen.report)];
    lines.push(format!(
        "endings: {} accepted, {} within the threshold, {} abandoned, {} without an end",
        totals.accepted,
        totals.succeeded,
        totals.abandoned,
        totals.tasks.saturating_sub(totals.ended)
    ));
    lines.push(format!(
        "models: {} calls ({} without an answer), {} tokens read, {} written, cost {:.4}",
        totals.model_calls.of, totals.model_calls.bad, totals.input_tokens, totals.output_tokens, totals.cost
    ));
    lines.push(format!(
        "tool calls: {}, of which {} failed",
        totals.tool_calls.of, totals.tool_calls.bad
    ));
    for (name, count) in &seen.findings {
        lines.push(format!("found {count} times: {name}"));
    }
    printable(&lines.join("\n"))
}

/// A report in words.
pub fn text(report: &AuditReport) -> String {
    let mut lines = vec![
        format!("{} to {} ({})", report.window_start, report.window_end, report.trigger),
        format!(
            "{} tasks, {} corrections, {} replans; since the beginning {} tasks, {} corrections",
            report.tasks_observed,
            report.total_corrections,
            report.total_replans,
            report.tasks_total,
            report.corrections_total
        ),
        format!(
            "tools: {} failed attempts, {} environmental and {} logical retries",
            report.tool_health.execution_failures,
            report.tool_health.environmental_retries,
            report.tool_health.logical_retries
        ),
    ];
    for (title, entries) in [
        ("boundary", &report.boundary_violations),
        ("drift", &report.drift_alerts),
        ("anomaly", &report.anomalies),
    ] {
        lines.extend(entries.iter().map(|entry| format!("{title}: {entry}")));
    }
    printable(&lines.join("\n"))
}

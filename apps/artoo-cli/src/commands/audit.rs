//! `artoo audit`: the operator's view of R6 (design §16).

use std::path::Path;

use artoo_auditor::{report_of_log, verify};
use artoo_bus::SystemClock;
use artoo_protocol::message::AuditReport;
use artoo_protocol::ports::Clock;
use artoo_protocol::text::printable;
use serde_json::json;

use crate::args::AuditCommand;
use crate::failure::Failure;
use crate::output;

/// Runs one of them.
///
/// # Errors
/// [`Failure`] (exit 1) when the log cannot be read, or its chain is broken.
pub fn run(command: &AuditCommand, data: &Path) -> Result<(), Failure> {
    match command {
        AuditCommand::Report { json } => {
            let report = report_of_log(data, SystemClock.now()).map_err(|e| Failure::failed(e.to_string()))?;
            if *json {
                output::pretty_json(&report);
            } else {
                output::result(&text(&report));
            }
            Ok(())
        }
        AuditCommand::Verify { json } => {
            let found = verify(data);
            if *json {
                let answer = match &found {
                    Ok(fine) => json!({"ok": true, "records": fine.records, "gaps": fine.gaps, "notes": fine.notes}),
                    Err(error) => json!({"ok": false, "error": error.to_string()}),
                };
                output::json(&answer);
            }
            match found {
                Ok(_) if *json => Ok(()),
                Ok(fine) => {
                    output::result(&format!(
                        "the audit log is whole: {} records, {} gaps, {} notes",
                        fine.records, fine.gaps, fine.notes
                    ));
                    Ok(())
                }
                Err(error) => Err(Failure::failed(error.to_string())),
            }
        }
    }
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

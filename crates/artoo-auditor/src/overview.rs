//! The operator's report over a whole log (design §16).

use std::collections::BTreeMap;
use std::path::Path;

use artoo_protocol::Timestamp;
use artoo_protocol::message::AuditReport;
use serde::Serialize;

use crate::counting::Counted;
use crate::counts::Totals;
use crate::files::LogError;
use crate::history::History;
use crate::stats::{Depth, TAIL_MAX, count, keep};

/// The law's report over everything, and what lies behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// Since the beginning of the log.
    #[serde(flatten)]
    pub report: AuditReport,
    /// The sums.
    pub totals: Totals,
    /// Findings by detector.
    pub findings: BTreeMap<String, u64>,
    /// Counts over time.
    pub history: History,
    /// Records that were read for this report; what came earlier is known from `audit_stats.json` or a record of counts.
    pub records_read: u64,
}

/// One report over a whole log. Records that this version cannot read are counted and named as an anomaly.
///
/// # Errors
/// [`LogError::Io`] when the log cannot be read.
pub fn overview(folder: &Path, now: Timestamp) -> Result<Overview, LogError> {
    Ok(seen(count(folder, Depth::Whole)?, now))
}

/// The same, and where many records had to be read for it, what was counted is kept for the next time. The caller holds the data folder.
///
/// # Errors
/// [`LogError::Io`] when the log cannot be read, or the counts cannot be written.
pub fn recount(folder: &Path, now: Timestamp) -> Result<Overview, LogError> {
    let counted = count(folder, Depth::Whole)?;
    if counted.looked_at >= TAIL_MAX && counted.unread == 0 {
        keep(folder, &counted)?;
    }
    Ok(seen(counted, now))
}

fn seen(counted: Counted, now: Timestamp) -> Overview {
    let past = counted.past;
    let mut report = past.ledger.report("on-demand", now, &past.ledger.totals);
    if counted.unread > 0 {
        report
            .anomalies
            .push(format!("{} records could not be read", counted.unread));
    }
    Overview {
        report,
        totals: past.ledger.totals,
        findings: past.ledger.found,
        history: past.history,
        records_read: counted.looked_at,
    }
}

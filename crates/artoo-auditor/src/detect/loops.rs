//! Loops that do not converge: a controller that thrashes, a correction without end (design §10, §12).

use std::collections::BTreeMap;

use artoo_protocol::message::{Directive, Message};
use artoo_protocol::{SubTaskId, Unit01};

use super::{Seen, TaskDetector};

/// Corrections after which a subtask must be given up.
const CORRECTIONS_MAX: u32 = 2;
/// Smaller differences of D are none.
const SAME: f64 = 1e-9;

/// `break_symmetry` again although the one before did not help.
#[derive(Clone, Debug, Default)]
pub struct Thrashing {
    broken_at: Option<Unit01>,
}

impl TaskDetector for Thrashing {
    const NAME: &'static str = "ggs_thrashing";

    fn see(&mut self, seen: &Seen<'_>) -> Option<String> {
        let Seen::Envelope(envelope) = seen else { return None };
        let Message::PlanDirective(message) = &envelope.payload else {
            return None;
        };
        let d = message.loss.d;
        let breaks = message.directive == Directive::BreakSymmetry;
        let before = std::mem::replace(&mut self.broken_at, breaks.then_some(d));
        before
            .filter(|before| breaks && d.get() > before.get() - SAME)
            .map(|before| {
                format!(
                    "break_symmetry twice in a row, and D did not fall ({:.2}, then {:.2})",
                    before.get(),
                    d.get()
                )
            })
    }
}

/// More corrections of one subtask than the fast loop allows.
#[derive(Clone, Debug, Default)]
pub struct EndlessCorrection {
    corrections: BTreeMap<SubTaskId, u32>,
}

impl TaskDetector for EndlessCorrection {
    const NAME: &'static str = "endless_correction";

    fn see(&mut self, seen: &Seen<'_>) -> Option<String> {
        let Seen::Envelope(envelope) = seen else { return None };
        let Message::CorrectionSignal(signal) = &envelope.payload else {
            return None;
        };
        let count = self.corrections.entry(signal.subtask_id.clone()).or_default();
        *count += 1;
        (*count == CORRECTIONS_MAX + 1).then(|| {
            format!(
                "subtask {} was corrected more than {CORRECTIONS_MAX} times",
                signal.subtask_id
            )
        })
    }
}

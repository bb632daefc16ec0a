//! What one task looks like from outside, and what should not be seen in it (design §16).
//!
//! Owns the detectors; each looks at one message and at what was seen before it. Knows nothing that is not on the bus.

use std::collections::BTreeMap;

use artoo_protocol::message::{CorrectionSignal, Directive, FinalResult, PlanDirective, Trend};
use artoo_protocol::{Envelope, Finite, SubTaskId, TaskId, Unit01, route};

/// Corrections after which a subtask must be given up.
const CORRECTIONS_MAX: u32 = 2;
/// Smaller differences of D are none.
const SAME: f64 = 1e-9;

/// A message that the table of routes does not allow.
pub fn boundary_violation(envelope: &Envelope) -> Option<String> {
    let kind = envelope.payload.kind();
    let (from, to, seq) = (envelope.from, envelope.to, envelope.seq);
    match route(kind, from) {
        None => Some(format!("{from} may not send {} (message {seq})", kind.name())),
        Some(route) if route.to != to => Some(format!(
            "{} from {from} went to {to} instead of {} (message {seq})",
            kind.name(),
            route.to
        )),
        Some(_) => None,
    }
}

/// One running task.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its latest name.
    pub task_id: TaskId,
    /// Subtasks that it dispatched.
    pub subtasks: Vec<SubTaskId>,
    distance: Option<Unit01>,
    broken_at: Option<Unit01>,
    corrections: BTreeMap<SubTaskId, u32>,
}

impl Watched {
    /// Begins to watch.
    pub const fn new(task_id: TaskId) -> Self {
        Self {
            task_id,
            subtasks: Vec::new(),
            distance: None,
            broken_at: None,
            corrections: BTreeMap::new(),
        }
    }

    /// A directive: the trend that it shows, and whether the controller thrashes.
    pub fn directed(&mut self, message: &PlanDirective) -> (Trend, Option<String>) {
        let d = message.loss.d;
        let thrashing = match (message.directive, self.broken_at) {
            (Directive::BreakSymmetry, Some(before)) if d.get() > before.get() - SAME => Some(format!(
                "ggs_thrashing: {}: break_symmetry twice in a row, and D did not fall ({:.2}, then {:.2})",
                self.task_id,
                before.get(),
                d.get()
            )),
            (Directive::BreakSymmetry | Directive::Refine | Directive::ChangePath | Directive::ChangeApproach, _) => {
                None
            }
        };
        self.broken_at = (message.directive == Directive::BreakSymmetry).then_some(d);
        (self.trend(d, message.grad_l), thrashing)
    }

    /// The end: the trend of the last step.
    pub fn ended(&mut self, message: &FinalResult) -> Trend {
        self.trend(message.loss.d, message.grad_l)
    }

    /// A correction too many.
    pub fn corrected(&mut self, message: &CorrectionSignal) -> Option<String> {
        let count = self.corrections.entry(message.subtask_id.clone()).or_default();
        *count += 1;
        (*count == CORRECTIONS_MAX + 1).then(|| {
            format!(
                "endless_correction: {}: subtask {} was corrected more than {CORRECTIONS_MAX} times",
                self.task_id, message.subtask_id
            )
        })
    }

    /// D decides; where it stands still, a falling loss is an improvement, but a rising one only shows that time passes.
    fn trend(&mut self, d: Unit01, grad_l: Finite) -> Trend {
        let change = self.distance.map_or(0.0, |before| d.get() - before.get());
        self.distance = Some(d);
        if change < -SAME {
            Trend::Improving
        } else if change > SAME {
            Trend::Worsening
        } else if grad_l.get() < -SAME {
            Trend::Improving
        } else {
            Trend::Stable
        }
    }
}

//! Who did what he may not: messages off their route, acts outside a role's duties (design §3, §16).

use artoo_protocol::{Act, Deed, Envelope, MessageKind, Role, deed, route};

/// A message that the table of routes does not allow, with the name of the detector.
pub fn boundary(envelope: &Envelope) -> Option<(&'static str, String)> {
    let kind = envelope.payload.kind();
    let (from, to, seq) = (envelope.from, envelope.to, envelope.seq);
    match route(kind, from) {
        None => {
            let name = if kind == MessageKind::PlanDirective {
                "foreign_directive"
            } else if kind == MessageKind::Megram {
                "foreign_megram"
            } else {
                "boundary_violation"
            };
            Some((name, format!("{from} may not send {} (message {seq})", kind.name())))
        }
        Some(route) if route.to != to => Some((
            "boundary_violation",
            format!(
                "{} from {from} went to {to} instead of {} (message {seq})",
                kind.name(),
                route.to
            ),
        )),
        Some(_) => None,
    }
}

/// An act outside the role's duties.
pub fn forbidden(deed: &Deed) -> Option<String> {
    let (role, act) = (deed.role, &deed.act);
    // Memory's own model is the Dreamer's, which words rules and nothing else.
    let dreams = role == Role::R5 && matches!(act, Act::ModelAsked { form, .. } if form == "sop");
    let dreams = dreams || (role == Role::R5 && matches!(act, Act::ModelAnswered { .. } | Act::ModelFailed { .. }));
    (!dreams && !deed::may(role, act)).then(|| format!("{role} has no business with `{}`", act.name()))
}

/// An act for a task that has ended, with the name of the detector.
pub fn act_after_the_end(deed: &Deed) -> Option<(&'static str, String)> {
    let role = deed.role;
    match &deed.act {
        Act::ModelAsked { .. } => Some((
            "forbidden_model_call",
            format!("{role} asked a model after the task had ended"),
        )),
        Act::ToolRun { tool, .. } => Some((
            "forbidden_effect",
            format!("{role} ran `{tool}` after the task had ended"),
        )),
        Act::ModelAnswered { .. }
        | Act::ModelFailed { .. }
        | Act::Assessed { .. }
        | Act::CheckRun { .. }
        | Act::Kept { .. }
        | Act::Stored { .. }
        | Act::Recalled { .. } => None,
    }
}

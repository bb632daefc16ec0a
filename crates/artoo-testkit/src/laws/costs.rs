//! Costs add up: what the program counts of a task is what its models reported (design §19).
//!
//! Owns a plain count beside that of the program; shares no code with it.

use std::collections::BTreeSet;

use artoo_protocol::message::{BudgetKind, BudgetReached};
use artoo_protocol::model::Usage;
use artoo_protocol::{Answer, CallId, Command, Role};

/// What models were asked and reported.
#[derive(Clone, Default)]
pub(super) struct Costs {
    open: BTreeSet<(Role, CallId)>,
    usage: Usage,
    told: bool,
}

impl Costs {
    /// A call begins.
    pub(super) fn commanded(&mut self, role: Role, command: &Command) {
        if let Command::CallModel { call, .. } = command {
            self.open.insert((role, *call));
        }
    }

    /// A call is answered, once.
    pub(super) fn answered(&mut self, role: Role, call: CallId, answer: &Answer) -> Option<String> {
        let Answer::Model(answer) = answer else { return None };
        let asked = self.open.remove(&(role, call));
        if let Ok(reply) = answer {
            self.usage.input_tokens += reply.usage.input_tokens;
            self.usage.output_tokens += reply.usage.output_tokens;
        }
        (!asked).then(|| format!("{role} was answered a model call that was not open: {call}"))
    }

    /// Another process goes on; it may say again what the one before said.
    pub(super) const fn resumed(&mut self) {
        self.told = false;
    }

    /// The meter says that a budget is spent.
    pub(super) fn told(&mut self, reached: &BudgetReached) -> Vec<String> {
        let mut wrongs = Vec::new();
        let tokens = self.usage.input_tokens + self.usage.output_tokens;
        if reached.budget == BudgetKind::Tokens && (reached.used.get() - tokens as f64).abs() > 0.5 {
            wrongs.push(format!(
                "{tokens} tokens were reported, and the budget counts {}",
                reached.used.get()
            ));
        }
        if reached.used.get() < reached.limit.get() {
            wrongs.push("a budget was called spent before it was".to_owned());
        }
        if std::mem::replace(&mut self.told, true) {
            wrongs.push("a budget was told twice".to_owned());
        }
        wrongs
    }
}

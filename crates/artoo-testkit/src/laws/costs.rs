//! Costs add up: what the program counts of a task is what its models reported, and a limit is told when it is reached (design §19).
//!
//! Owns a plain count beside that of the program; shares no code with it but the list of prices.

use std::collections::BTreeSet;

use artoo_protocol::message::{BudgetKind, BudgetReached};
use artoo_protocol::model::{ModelError, ModelReply};
use artoo_protocol::{Answer, CallId, Command, Role};
use serde_json::Value;

use crate::prices::price;

/// What models were asked and reported.
#[derive(Clone, Default)]
pub(super) struct Costs {
    open: BTreeSet<(Role, CallId)>,
    tokens: u64,
    cost: f64,
    max_tokens: Option<u64>,
    max_cost: Option<f64>,
    told: bool,
    /// The answer with which a limit was reached, as long as nobody was told.
    due: Option<(Role, CallId)>,
    over: bool,
}

impl Costs {
    /// The limits of the task stand in its first record.
    pub(super) fn opened(&mut self, settings: &Value) {
        self.max_tokens = settings.get("max_tokens").and_then(Value::as_u64);
        self.max_cost = settings.get("max_cost").and_then(Value::as_f64);
    }

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
        // A failure may have been paid for too.
        let paid = match answer {
            Ok(ModelReply { model, usage, .. }) | Err(ModelError::Charged { model, usage, .. }) => Some((model, usage)),
            Err(_) => None,
        };
        if let Some((model, usage)) = paid {
            self.tokens += usage.input_tokens + usage.output_tokens;
            self.cost += price(model, usage);
            let reached = self.max_tokens.is_some_and(|max| self.tokens >= max)
                || self.max_cost.is_some_and(|max| self.cost >= max + close(max));
            if reached && !self.told && !self.over {
                self.due = Some((role, call));
            }
        }
        (!asked).then(|| format!("{role} was answered a model call that was not open: {call}"))
    }

    /// A role goes on with an answer: what it cost has been counted, and told if it was too much.
    pub(super) fn heard(&mut self, role: Role, call: CallId) -> Option<String> {
        let untold = self.due.take_if(|due| *due == (role, call));
        untold.map(|_| {
            let (tokens, cost) = (self.tokens, self.cost);
            format!("a limit was reached and was not told: {tokens} tokens, a cost of {cost}")
        })
    }

    /// Another process goes on; it may say again what the one before said, and tells with its next call.
    pub(super) const fn resumed(&mut self) {
        self.told = false;
        self.due = None;
    }

    /// The task was stopped or has ended: nobody has to be told any more.
    pub(super) const fn over(&mut self) {
        self.over = true;
        self.due = None;
    }

    /// The meter says that a budget is spent.
    pub(super) fn told(&mut self, reached: &BudgetReached) -> Vec<String> {
        let mut wrongs = Vec::new();
        let (used, limit) = (reached.used.get(), reached.limit.get());
        let (what, counted, set) = match reached.budget {
            BudgetKind::Tokens => ("tokens", self.tokens as f64, self.max_tokens.map(|max| max as f64)),
            BudgetKind::Cost => ("in money", self.cost, self.max_cost),
        };
        if (used - counted).abs() > close(counted) {
            wrongs.push(format!("{counted} {what} were reported, and the budget counts {used}"));
        }
        if used < limit || set.is_some_and(|set| (set - limit).abs() > close(set)) {
            wrongs.push("a budget was called spent before it was".to_owned());
        }
        if std::mem::replace(&mut self.told, true) {
            wrongs.push("a budget was told twice".to_owned());
        }
        self.due = None;
        wrongs
    }
}

/// What sums of the same numbers may differ by.
fn close(sum: f64) -> f64 {
    1e-9 + sum.abs() * 1e-9
}

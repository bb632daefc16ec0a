//! The budget meter: tokens and money per task, summed from what providers report (design §19).
//!
//! Owns the sums and the moment at which a hard budget is reached. Must not end a task: that is R7's, which is told.
//! The budget of time is R7's own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use artoo_protocol::message::{BudgetKind, BudgetReached};
use artoo_protocol::model::Usage;
use artoo_protocol::{Answer, Finite, TaskId};

use crate::locked;

/// What a call costs, by the model's own name: the currency of the price table, 0 for a model without a price.
pub type Price = Arc<dyn Fn(&str, &Usage) -> f64 + Send + Sync>;

/// Hard limits of one task; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Tokens in and out together.
    pub max_tokens: Option<u64>,
    /// Money, in the currency of the price table.
    pub max_cost: Option<f64>,
}

/// Sums what every task uses.
pub struct Meter {
    budget: Budget,
    price: Price,
    spent: Mutex<HashMap<String, Spent>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    tokens: u64,
    cost: f64,
    told: bool,
}

impl Spent {
    fn add(&mut self, usage: &Usage, cost: f64) {
        self.tokens = self.tokens.saturating_add(usage.tokens());
        self.cost += cost;
    }
}

impl Meter {
    /// A meter on which nothing is spent.
    pub fn new(budget: Budget, price: Price) -> Self {
        Self {
            budget,
            price,
            spent: Mutex::default(),
        }
    }

    /// A meter without limits and prices.
    pub fn unlimited() -> Self {
        Self::new(Budget::default(), Arc::new(|_, _| 0.0))
    }

    /// Adds one call that was made before, read from the journal of a resumed task. Tells nothing: the next call does.
    pub fn restore(&self, task: &TaskId, model: &str, usage: &Usage) {
        let cost = self.cost(model, usage);
        let mut all = locked(&self.spent);
        all.entry(task.suffix().to_owned()).or_default().add(usage, cost);
    }

    /// Adds one call. Tells once per task that a limit is reached: the first of tokens and money, in this order.
    pub fn charge(&self, task: &TaskId, model: &str, usage: &Usage) -> Option<BudgetReached> {
        let cost = self.cost(model, usage);
        let mut all = locked(&self.spent);
        let spent = all.entry(task.suffix().to_owned()).or_default();
        spent.add(usage, cost);
        let reached = self.reached(*spent)?;
        if std::mem::replace(&mut spent.told, true) {
            return None;
        }
        let (budget, used, limit) = reached;
        Some(BudgetReached {
            task_id: task.clone(),
            budget,
            used: Finite::new(used).unwrap_or_default(),
            limit: Finite::new(limit).unwrap_or_default(),
        })
    }

    /// What an answer cost, also a failure that was paid for: 0 for all but a model's.
    pub(crate) fn cost_of(&self, answer: &Answer) -> f64 {
        answer.spent().map_or(0.0, |(model, usage)| self.cost(model, usage))
    }

    /// What one call costs; never below 0.
    fn cost(&self, model: &str, usage: &Usage) -> f64 {
        let price = (self.price)(model, usage);
        if price.is_finite() { price.max(0.0) } else { 0.0 }
    }

    /// Drops the sums of a task that has ended.
    pub fn forget(&self, task: &TaskId) {
        locked(&self.spent).remove(task.suffix());
    }

    fn reached(&self, spent: Spent) -> Option<(BudgetKind, f64, f64)> {
        if let Some(limit) = self.budget.max_tokens
            && spent.tokens >= limit
        {
            return Some((BudgetKind::Tokens, spent.tokens as f64, limit as f64));
        }
        let limit = self.budget.max_cost?;
        (spent.cost >= limit).then_some((BudgetKind::Cost, spent.cost, limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(tokens: u64) -> Usage {
        Usage {
            input_tokens: tokens,
            output_tokens: 1,
            cached_tokens: 0,
            requests: 1,
            estimated: false,
        }
    }

    #[test]
    fn a_limit_is_told_once_per_task() {
        let budget = Budget {
            max_tokens: Some(20),
            max_cost: None,
        };
        let meter = Meter::new(budget, Arc::new(|_, _| f64::NAN));
        let (a, b) = (TaskId::new("a_00000001"), TaskId::new("b_00000002"));
        assert_eq!(meter.charge(&a, "m", &usage(9)), None);
        assert_eq!(meter.charge(&b, "m", &usage(9)), None);
        let told = meter.charge(&TaskId::new("input_00000001"), "m", &usage(9)).unwrap();
        assert_eq!((told.used.get(), told.limit.get()), (20.0, 20.0));
        assert_eq!(meter.charge(&a, "m", &usage(9)), None);
        meter.forget(&a);
        assert_eq!(meter.charge(&a, "m", &usage(9)), None);
    }

    #[test]
    fn what_was_spent_before_a_crash_counts_and_is_told_by_the_next_call() {
        let budget = Budget {
            max_tokens: Some(20),
            max_cost: None,
        };
        let meter = Meter::new(budget, Arc::new(|_, _| 0.0));
        let task = TaskId::new("a_00000001");
        meter.restore(&task, "m", &usage(50));
        let told = meter.charge(&task, "m", &usage(1)).unwrap();
        assert!((told.used.get() - 53.0).abs() < 1e-9);
        assert_eq!(meter.charge(&task, "m", &usage(1)), None);
    }

    #[test]
    fn money_is_counted_by_the_price_table() {
        let budget = Budget {
            max_tokens: None,
            max_cost: Some(1.0),
        };
        let price: Price = Arc::new(|model, usage| {
            if model == "dear" {
                usage.input_tokens as f64
            } else {
                0.0
            }
        });
        let meter = Meter::new(budget, price);
        let task = TaskId::new("a_00000001");
        assert_eq!(meter.charge(&task, "free", &usage(5)), None);
        let told = meter.charge(&task, "dear", &usage(1)).unwrap();
        assert_eq!(told.budget, BudgetKind::Cost);
    }
}

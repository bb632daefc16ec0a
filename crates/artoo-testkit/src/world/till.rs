//! What models were paid in truth, beside every account that the program keeps (design §19).
//!
//! Owns a receipt for every answer that came, also for a failure that was paid for; one that went with the power is known to nobody.

use std::collections::{BTreeMap, BTreeSet};

use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::{Answer, CallId, Role};

use crate::prices::price;

/// What was paid for one task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paid {
    /// Tokens in.
    pub input: u64,
    /// Tokens out.
    pub output: u64,
    /// Money, in cents.
    pub cost: f64,
}

/// The receipts of all tasks, by suffix.
#[derive(Debug, Default)]
pub(super) struct Till(BTreeMap<String, BTreeMap<(Role, CallId), Paid>>);

impl Till {
    /// An answer has come.
    pub(super) fn pay(&mut self, suffix: &str, role: Role, call: CallId, answer: &Answer) {
        let Some((model, usage)) = answer.spent() else { return };
        let receipt = Paid {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cost: price(model, usage),
        };
        let receipts = self.0.entry(suffix.to_owned()).or_default();
        receipts.insert((role, call), receipt);
    }

    /// Of what was taken from a journal nobody can know any more.
    pub(super) fn forget(&mut self, suffix: &str, left: &[Record]) {
        let Some(receipts) = self.0.get_mut(suffix) else { return };
        let answered = left.iter().filter_map(|record| match &record.entry {
            Entry::Answered { role, call, .. } => Some((*role, *call)),
            _ => None,
        });
        let known: BTreeSet<(Role, CallId)> = answered.collect();
        receipts.retain(|of, _| known.contains(of));
    }

    /// Everything that was paid for a task.
    pub(super) fn paid(&self, suffix: &str) -> Paid {
        let receipts = self.0.get(suffix).into_iter().flat_map(BTreeMap::values);
        receipts.fold(Paid::default(), |sum, receipt| Paid {
            input: sum.input + receipt.input,
            output: sum.output + receipt.output,
            cost: sum.cost + receipt.cost,
        })
    }
}

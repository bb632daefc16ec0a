//! What remains of a round until the task ends: what was achieved, failed and tried, in short lines (design §14).
//!
//! Owns the lines and how they are kept while a task is open; the text that is made of them is [`words`](crate::words)'s
//! matter.

use artoo_protocol::message::{OutcomeStatus, SubTaskOutcome, ToolCall, Verdict};
use artoo_protocol::text::one_line;
use serde_json::Value;

use crate::megrams::what_happened;
use crate::signals::Tally;

/// Most lines of one list in a text.
pub(crate) const LINES_MAX: usize = 20;
/// Most criteria that a result names in each of its lists.
const NAMES_MAX: usize = 1_000;

/// What remains of a round for the text of an ending, in short lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Subtasks that matched, with what they gave.
    pub achieved: Vec<String>,
    /// Subtasks that failed and why, or were not started.
    pub failed: Vec<String>,
    /// Calls that were made: tool, input, what came of it.
    pub tried: Vec<String>,
    /// Criteria that failed or were not run.
    pub unmet: Vec<String>,
    /// Criteria that passed on text alone or were not judged.
    pub unverified: Vec<String>,
}

impl Digest {
    /// Of one round.
    pub fn of(outcomes: &[SubTaskOutcome], tally: &Tally<'_>) -> Self {
        let mut digest = Self {
            unmet: names(tally.failures.iter().map(|failure| failure.criterion)),
            unverified: names(tally.unverified.iter().copied()),
            ..Self::default()
        };
        for outcome in outcomes {
            let intent = one_line(&outcome.intent, 160);
            match outcome.status {
                OutcomeStatus::Matched => push(&mut digest.achieved, || with(&intent, &shown(&outcome.output, 200))),
                OutcomeStatus::Failed => push(&mut digest.failed, || with(&intent, &why_failed(outcome))),
                OutcomeStatus::NotRun => push(&mut digest.failed, || {
                    with(&intent, "not started, an earlier step failed")
                }),
            }
            for call in &outcome.tool_calls {
                push(&mut digest.tried, || tried(call));
            }
        }
        digest
    }
}

/// A digest that waits for an ending which may never need it: one block of text instead of up to 2,000 strings.
///
/// Every open task holds one after its first gap, so its size is what many open tasks cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// All lines behind one another.
    text: Box<str>,
    /// Where each line ends in the text, in bytes.
    ends: Box<[u32]>,
    /// How many lines there are up to the end of each of the five lists.
    lists: [u32; 5],
}

impl Packed {
    /// Packs; a text of more than 4 GiB would lose its end.
    pub fn new(digest: &Digest) -> Self {
        let lists = [
            &digest.achieved,
            &digest.failed,
            &digest.tried,
            &digest.unmet,
            &digest.unverified,
        ];
        let size = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut text = String::with_capacity(lists.iter().flat_map(|list| list.iter()).map(String::len).sum());
        let mut ends = Vec::with_capacity(lists.iter().map(|list| list.len()).sum());
        let borders = lists.map(|list| {
            for line in list {
                text.push_str(line);
                ends.push(size(text.len()));
            }
            size(ends.len())
        });
        Self {
            text: text.into_boxed_str(),
            ends: ends.into_boxed_slice(),
            lists: borders,
        }
    }

    /// The digest that was packed.
    pub fn unpack(&self) -> Digest {
        let mut lines = 0..;
        let mut begin = 0;
        let [achieved, failed, tried, unmet, unverified] = self.lists.map(|border| {
            let border = border as usize;
            let mut list = Vec::new();
            while lines.start < border {
                let end = self.ends.get(lines.start).map_or(begin, |&end| end as usize);
                list.push(self.text.get(begin..end).unwrap_or_default().to_owned());
                begin = end;
                lines.start += 1;
            }
            list
        });
        Digest {
            achieved,
            failed,
            tried,
            unmet,
            unverified,
        }
    }
}

fn names<'a>(criteria: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    criteria
        .filter(|criterion| seen.insert(*criterion))
        .take(NAMES_MAX)
        .map(str::to_owned)
        .collect()
}

fn push(list: &mut Vec<String>, line: impl FnOnce() -> String) {
    if list.len() < LINES_MAX {
        list.push(line());
    }
}

fn with(intent: &str, what: &str) -> String {
    match (intent.is_empty(), what.is_empty()) {
        (true, _) => what.to_owned(),
        (false, true) => intent.to_owned(),
        (false, false) => format!("{intent}: {what}"),
    }
}

fn shown(value: &Value, limit: usize) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => one_line(text, limit),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => one_line(&value.to_string(), limit),
    }
}

fn why_failed(outcome: &SubTaskOutcome) -> String {
    if let Some(reason) = outcome
        .failure_reason
        .as_deref()
        .filter(|reason| !reason.trim().is_empty())
    {
        return one_line(reason, 240);
    }
    outcome
        .criteria_verdicts
        .iter()
        .find(|verdict| verdict.verdict == Verdict::Fail)
        .map_or_else(
            || "no reason was given".to_owned(),
            |verdict| with(&one_line(&verdict.criterion, 120), &one_line(&verdict.evidence, 160)),
        )
}

fn tried(call: &ToolCall) -> String {
    let came = if call.failed() {
        what_happened(call)
    } else {
        "ran".to_owned()
    };
    format!("{} `{}` {came}", call.tool, one_line(&call.target(), 120))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_back_whole() {
        let lines = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
        let digest = Digest {
            achieved: lines(&[]),
            failed: lines(&["é", "", "b"]),
            tried: lines(&[""]),
            unmet: lines(&[]),
            unverified: lines(&["数", "y"]),
        };
        assert_eq!(Packed::new(&digest).unpack(), digest);
        assert_eq!(Packed::new(&Digest::default()).unpack(), Digest::default());
    }
}

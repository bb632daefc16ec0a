//! A task that eats (design §16, §19).

/// A task with fewer tokens than this is never called a runaway.
const TOKENS_LEAST: u64 = 50_000;
/// So many times the mean of the past is too much …
const TIMES: f64 = 8.0;
/// … once the past has so many tasks.
const PAST_LEAST: u64 = 20;
/// So many model calls in one task are too many whatever the past says …
const CALLS_MAX: u64 = 200;
/// … unless it has many subtasks: three attempts of several turns each, and what judges them.
const CALLS_PER_SUBTASK: u64 = 20;

/// What tasks that ended used, of those that used anything: a model that costs nothing is no measure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Baseline {
    /// How many ended.
    pub ended: u64,
    /// Tokens of all of them.
    pub tokens: u64,
}

/// What one task has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spending {
    /// Tokens in and out.
    pub tokens: u64,
    /// Calls asked for.
    pub calls: u64,
    told: bool,
}

/// Whether a task that has dispatched so many subtasks uses far more than others did; told once.
pub fn runaway(spending: &mut Spending, subtasks: u64, past: Baseline) -> Option<String> {
    let calls_max = CALLS_PER_SUBTASK.saturating_mul(subtasks).max(CALLS_MAX);
    let detail = if spending.calls > calls_max {
        format!("more than {calls_max} model calls")
    } else {
        let mean = past.tokens as f64 / past.ended.max(1) as f64;
        let too_much =
            past.ended >= PAST_LEAST && spending.tokens >= TOKENS_LEAST && spending.tokens as f64 > TIMES * mean;
        if !too_much {
            return None;
        }
        format!(
            "{} tokens so far; the {} tasks before used {mean:.0} on average",
            spending.tokens, past.ended
        )
    };
    (!std::mem::replace(&mut spending.told, true)).then_some(detail)
}

//! What one call costs, over all its requests: retries, the re-ask, answers that were of no use (design §19).
//!
//! Owns the sum and the estimate. Must not know prices, nor whether the call succeeds.

use artoo_protocol::model::Usage;

use super::wire::Collected;

/// Bytes that are taken for one token where the provider tells nothing.
const BYTES_PER_TOKEN: usize = 4;

/// The sum of one call.
#[derive(Debug, Default)]
pub(super) struct Bill {
    /// The model's own name, once an answer told it.
    pub model: Option<String>,
    pub usage: Usage,
}

/// How far an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    Whole,
    /// Nothing, or what there was until it failed.
    InPart,
}

impl Bill {
    /// A request begins that is no retry.
    pub const fn ask(&mut self) {
        self.usage.requests = self.usage.requests.saturating_add(1);
    }

    /// Adds what one exchange cost. `sent` are the bytes of its request.
    pub fn add(&mut self, sent: usize, collected: &Collected, came: Came) {
        let (told, written) = (collected.usage, collected.written());
        if let Some(model) = &collected.model {
            self.model = Some(model.clone());
        }
        let estimate = Usage {
            input_tokens: tokens(sent),
            output_tokens: tokens(written),
            estimated: true,
            ..told
        };
        let used = match came {
            // A request that was refused costs nothing.
            Came::InPart if told.tokens() == 0 && written == 0 => return,
            // A limit that nothing counts against would be a false promise.
            Came::Whole | Came::InPart if told.tokens() == 0 => estimate,
            // What the provider counts of an answer stands at its end.
            Came::InPart if told.output_tokens < estimate.output_tokens => Usage {
                input_tokens: told.input_tokens,
                ..estimate
            },
            Came::Whole | Came::InPart => told,
        };
        self.usage = self.usage.plus(used);
    }
}

fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_counts_and_what_was_not_is_estimated() {
        let used = |input, output, text: &str, came| {
            let mut bill = Bill::default();
            bill.ask();
            let mut collected = Collected::default();
            text.clone_into(&mut collected.text);
            collected.usage = Usage {
                input_tokens: input,
                output_tokens: output,
                ..Usage::default()
            };
            bill.add(401, &collected, came);
            assert_eq!(bill.usage.requests, 1);
            (bill.usage.input_tokens, bill.usage.output_tokens, bill.usage.estimated)
        };
        assert_eq!(used(10, 5, "a long answer", Came::Whole), (10, 5, false));
        assert_eq!(used(0, 5, "a long answer", Came::Whole), (0, 5, false));
        assert_eq!(used(0, 0, "12345", Came::Whole), (101, 2, true));
        assert_eq!(used(0, 0, "", Came::Whole), (101, 0, true));
        assert_eq!(used(0, 0, "", Came::InPart), (0, 0, false), "refused");
        assert_eq!(used(0, 0, "12345", Came::InPart), (101, 2, true), "cut");
        assert_eq!(used(30, 1, "12345", Came::InPart), (30, 2, true), "cut");
        assert_eq!(used(30, 9, "12345", Came::InPart), (30, 9, false), "cut");
    }
}

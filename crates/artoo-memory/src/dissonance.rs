//! Dissonance: a task that followed a rule and failed by it speaks against the rule at once (design §15).
//!
//! A failed task already leaves its own event beside the rules of its own kind of task, and the calls that failed beside those of
//! their tools; counting it twice there would ruin a rule by a single failure. What it leaves nothing beside are the rules that it
//! borrowed from other kinds of tasks: those are spoken against here. A constraint is not blamed for a failure: nothing shows that
//! what it forbids would have worked.
//!
//! Owns: which rules a failure speaks against. Must not know: the store, who plans.

use crate::dreamer::carry;
use artoo_protocol::message::{Cause, Ending, FinalResult, Megram, SopRecord};
use artoo_protocol::text::one_line;
use artoo_protocol::{MegramId, Timestamp};

/// Where ids of what is written here begin, beside those that the controller gives to a task's memories.
const FIRST_INDEX: u64 = 1 << 32;
/// Kinds of tasks.
const INTENT: &str = "intent:";

/// What one task was given and used.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Followed {
    /// The kind of task that it is.
    own: String,
    /// Best practices of other kinds of tasks that it was given.
    borrowed: Vec<SopRecord>,
    /// The memories that shaped its latest plan.
    used: Vec<MegramId>,
}

impl Followed {
    /// The task asks memory under this space.
    pub(crate) fn asks(&mut self, space: &str) {
        space.clone_into(&mut self.own);
    }

    /// The task was given these rules.
    pub(crate) fn given(&mut self, rules: &[SopRecord]) {
        for rule in rules {
            let is_borrowed = rule.space.starts_with(INTENT) && rule.space != self.own && rule.sigma.get() > 0.0;
            if is_borrowed && !self.borrowed.iter().any(|known| known.id == rule.id) {
                self.borrowed.push(rule.clone());
            }
        }
    }

    /// A plan was made of these memories; it is the latest one that counts.
    pub(crate) fn uses(&mut self, rules: Vec<MegramId>) {
        self.used = rules;
    }

    /// What the ending says against the rules that were followed.
    pub(crate) fn contradicted_by(self, ending: &FinalResult, now: Timestamp) -> Vec<Megram> {
        if ending.directive != Ending::Abandon || !is_the_approachs_fault(ending.cause) {
            return Vec::new();
        }
        let followed = self.borrowed.iter().filter(|rule| self.used.contains(&rule.id));
        followed
            .zip(FIRST_INDEX..)
            .map(|(rule, index)| {
                let content = format!(
                    "Following this rule did not help: {} The task that followed it was given up: {}",
                    one_line(&rule.content, 200),
                    one_line(&ending.intent, 200)
                );
                let id = MegramId::derive(now, &ending.task_id, index);
                carry::feedback(id, rule, &content, now)
            })
            .collect()
    }
}

/// Whether an ending speaks against the way that was taken.
const fn is_the_approachs_fault(cause: Cause) -> bool {
    match cause {
        Cause::Resources | Cause::Divergence | Cause::ReplansExhausted | Cause::Infeasible => true,
        Cause::Met
        | Cause::WithinThreshold
        | Cause::Answered
        | Cause::Budget
        | Cause::PlanningFailed
        | Cause::Refused
        | Cause::NoModel
        | Cause::Aborted => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;
    use artoo_protocol::message::{Loss, PreviousDirective};
    use artoo_protocol::{Finite, Slug, TaskId, Valence};
    use serde_json::Value;

    fn rule(id: &str, space: &str, sigma: f64) -> SopRecord {
        SopRecord {
            id: MegramId::new(id),
            space: space.to_owned(),
            entity: "env:local".to_owned(),
            content: format!("rule {id}"),
            sigma: Valence::new(sigma).unwrap(),
        }
    }

    fn ending(directive: Ending, cause: Cause) -> FinalResult {
        FinalResult {
            honesty: Box::default(),
            task_id: TaskId::new("count_files_00000001"),
            slug: Slug::repair("count_files"),
            intent: "Count the files".to_owned(),
            summary: String::new(),
            output: Value::Null,
            loss: Loss::default(),
            grad_l: Finite::default(),
            replans: 3,
            prev_directive: PreviousDirective::Init,
            directive,
            cause,
            unmet: Vec::new(),
            unverified: Vec::new(),
        }
    }

    fn followed() -> Followed {
        let mut followed = Followed::default();
        followed.asks("intent:count_the_files");
        followed.given(&[
            rule("own", "intent:count_the_files", 1.0),
            rule("borrowed", "intent:count_all_files", 1.0),
            rule("unused", "intent:count_every_file", 1.0),
            rule("constraint", "intent:count_all_files", -1.0),
            rule("wish", "user:preference", 1.0),
            rule("tool", "tool:shell", 1.0),
        ]);
        let used = ["own", "borrowed", "constraint", "wish", "tool"];
        followed.uses(used.iter().map(|id| MegramId::new(*id)).collect());
        followed
    }

    #[test]
    fn a_borrowed_practice_is_spoken_against_by_the_task_that_failed_by_it() {
        let against = followed().contradicted_by(&ending(Ending::Abandon, Cause::ReplansExhausted), at());
        let [feedback] = against.as_slice() else {
            panic!("{against:?}")
        };
        assert_eq!(feedback.space, "intent:count_all_files");
        assert_eq!(
            (feedback.f.get(), feedback.sigma.get(), feedback.k.get()),
            (0.85, -1.0, 0.05)
        );
        assert!(feedback.content.contains("rule borrowed"), "{}", feedback.content);
    }

    #[test]
    fn endings_that_say_nothing_about_the_approach_speak_against_nothing() {
        for (directive, cause) in [
            (Ending::Accept, Cause::Met),
            (Ending::Success, Cause::WithinThreshold),
            (Ending::Abandon, Cause::Aborted),
            (Ending::Abandon, Cause::Refused),
            (Ending::Abandon, Cause::NoModel),
            (Ending::Abandon, Cause::Budget),
        ] {
            assert_eq!(
                followed().contradicted_by(&ending(directive, cause), at()),
                [],
                "{cause:?}"
            );
        }
    }
}

//! Task criteria that a machine denied: they stay in force for every later plan (design §6).
//!
//! Owns which they are and how a plan is completed with them, so that no plan gets rid of one by not stating it. What no machine decided
//! is not kept: the controller names it in the ending. Knows no state of a task beyond the rounds it is told of.

use artoo_protocol::message::{Check, Criterion, CriterionVerdict, Verdict, VerdictSource};
use artoo_protocol::text::one_line;

use crate::parse::Plan;

/// Criteria shown to the model, and characters of the words and of the check of one.
const SHOWN: usize = 20;
const WORDS_CHARS: usize = 300;
const CHECK_CHARS: usize = 500;

/// What people see behind the words of one that was kept, before the number.
const FROM: &str = " (kept from round ";

/// What a machine denied in the rounds so far. It stays when it holds in a later round: another plan may undo that.
#[derive(Clone, Debug, Default)]
pub struct Denied(Vec<One>);

#[derive(Clone, Debug)]
struct One {
    criterion: Criterion,
    /// In one spelling.
    check: Check,
    words: String,
    /// The round in which it failed first.
    round: u32,
}

impl Denied {
    /// After a round whose steps all matched and whose result was rejected: what failed by its check. Where a step failed the work was not
    /// done, and that its result is missing denies nothing. A check that could not be run has decided nothing either.
    pub fn note(&mut self, round: u32, asked: &[Criterion], verdicts: &[CriterionVerdict]) {
        for criterion in asked {
            let Some(check) = criterion.check.as_ref().filter(|check| speaks_of_the_world(check)) else {
                continue;
            };
            let denies = |v: &CriterionVerdict| {
                v.criterion == criterion.criterion && v.verdict == Verdict::Fail && v.source == VerdictSource::Check
            };
            if !verdicts.iter().any(denies) {
                continue;
            }
            let one = One {
                words: bare_words(criterion),
                criterion: criterion.clone(),
                check: check.plain(),
                round,
            };
            if !self.0.iter().any(|known| known.is(&one)) {
                self.0.push(one);
            }
        }
    }

    /// The task criteria of a plan, with those that stay in force. The plan states one again with the same check. In the same words it may
    /// put a check of its own in the place of one that measured the wrong thing, for good; without a check the same words would leave to
    /// a model what a machine denied.
    pub fn complete(&mut self, plan: &Plan) -> Vec<Criterion> {
        let of_steps = plan.steps.iter().flat_map(|step| &step.criteria);
        let checked = plan.task_criteria.iter().chain(of_steps).filter_map(|criterion| {
            let check = criterion.check.as_ref()?.plain();
            Some((check, bare_words(criterion)))
        });
        let stated: Vec<(Check, String)> = checked.collect();
        let has_check = |one: &One| stated.iter().any(|(check, _)| *check == one.check);
        let is_replaced = |one: &One| !has_check(one) && stated.iter().any(|(_, words)| *words == one.words);
        self.0.retain(|one| !is_replaced(one));
        let mut kept: Vec<&One> = Vec::new();
        for one in self.0.iter().filter(|one| !has_check(one)) {
            if kept.iter().all(|other| other.check != one.check) {
                kept.push(one);
            }
        }
        let replaced = |criterion: &&Criterion| kept.iter().all(|one| one.words != bare_words(criterion));
        let own = plan.task_criteria.iter().filter(replaced).cloned();
        own.chain(kept.iter().map(|one| one.as_kept())).collect()
    }

    /// For the model, one a line; empty where nothing was denied.
    pub fn lines(&self) -> Vec<String> {
        let line = |one: &One| {
            let check = serde_json::to_string(&one.criterion.check).unwrap_or_default();
            format!(
                "{} ({})",
                one_line(&one.criterion.criterion, WORDS_CHARS),
                one_line(&check, CHECK_CHARS)
            )
        };
        self.0.iter().take(SHOWN).map(line).collect()
    }
}

/// Whether a check speaks of the world and not of what one plan did: another plan runs other commands.
const fn speaks_of_the_world(check: &Check) -> bool {
    match check {
        Check::FileExists { .. }
        | Check::FileAbsent { .. }
        | Check::FileContains { .. }
        | Check::Sha256 { .. }
        | Check::CommandSucceeds { .. } => true,
        Check::JsonPath { path, .. } | Check::Count { path, .. } => path.is_some(),
        Check::OutputEquals { .. } | Check::OutputMatches { .. } | Check::ExitCode { .. } => false,
    }
}

/// The words of a criterion, also of one that was shown as kept.
fn bare_words(criterion: &Criterion) -> String {
    match criterion.criterion.rsplit_once(FROM) {
        Some((words, _)) => Criterion {
            criterion: words.to_owned(),
            ..criterion.clone()
        }
        .words(),
        None => criterion.words(),
    }
}

impl One {
    /// Whether the other one is this one, as it was stated or as it was kept.
    fn is(&self, other: &Self) -> bool {
        self.check == other.check && self.words == other.words
    }

    /// As it stands in a plan that does not state it, so that people see where it comes from.
    fn as_kept(&self) -> Criterion {
        Criterion {
            criterion: format!("{}{FROM}{})", self.criterion.criterion, self.round),
            ..self.criterion.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn criterion(words: &str, path: Option<&str>) -> Value {
        json!({"criterion": words, "mode": "verifiable", "check": path.map(|path| json!({"kind": "file_exists", "path": path}))})
    }

    fn plan(of_task: &[Value], of_step: &[Value]) -> Plan {
        parse(
            &json!({"task_criteria": of_task, "subtasks": [{"intent": "do it", "success_criteria": of_step}]}),
            10,
        )
    }

    fn verdict(words: &str, verdict: &str, source: &str) -> CriterionVerdict {
        serde_json::from_value(json!({"criterion": words, "mode": "verifiable", "verdict": verdict, "source": source}))
            .unwrap()
    }

    /// A round in which the file `a.md` was asked for, with these verdicts.
    fn after(verdicts: &[CriterionVerdict]) -> Denied {
        let mut denied = Denied::default();
        denied.note(
            1,
            &plan(&[criterion("The file is there.", Some("a.md"))], &[]).task_criteria,
            verdicts,
        );
        denied
    }

    fn words(criteria: &[Criterion]) -> Vec<&str> {
        criteria.iter().map(|c| c.criterion.as_str()).collect()
    }

    const KEPT: &str = "The file is there. (kept from round 1)";

    #[test]
    fn what_a_machine_denied_is_asked_again_unless_the_plan_states_it() {
        let noted = after(&[verdict("The file is there.", "fail", "check")]);
        for (name, of_task, of_step, expect) in [
            ("dropped", vec![], vec![], vec![KEPT]),
            (
                "easier",
                vec![criterion("something", None)],
                vec![criterion("b", Some("b.md"))],
                vec!["something", KEPT],
            ),
            (
                "other words, same check",
                vec![criterion("a.md exists", Some("./a.md"))],
                vec![],
                vec!["a.md exists"],
            ),
            (
                "same check, in a step",
                vec![],
                vec![criterion("a.md exists", Some("a.md"))],
                vec![],
            ),
            (
                "same words, other check",
                vec![criterion("the file is there", Some("b.md"))],
                vec![],
                vec!["the file is there"],
            ),
            (
                "same words, no check",
                vec![criterion("the FILE is  there", None)],
                vec![],
                vec![KEPT],
            ),
            (
                "same words, no check, in a step",
                vec![],
                vec![criterion("the file is there", None)],
                vec![KEPT],
            ),
        ] {
            let criteria = noted.clone().complete(&plan(&of_task, &of_step));
            assert_eq!(words(&criteria), expect, "{name}");
            let kept = criteria.iter().filter(|c| c.criterion == KEPT);
            assert!(kept.clone().all(|c| c.check.is_some()), "{name}: {criteria:?}");
        }
    }

    #[test]
    fn only_a_check_that_ran_and_failed_denies() {
        for (said, kept) in [
            (vec![verdict("The file is there.", "fail", "check")], true),
            (vec![], false),
            (vec![verdict("The file is there.", "pass", "check")], false),
            (vec![verdict("The file is there.", "fail", "no_check")], false),
        ] {
            let mut denied = after(&said);
            assert_eq!(denied.complete(&plan(&[], &[])).len(), usize::from(kept), "{said:?}");
            assert_eq!(denied.lines().len(), usize::from(kept));
        }
        let mut denied = Denied::default();
        let judged = plan(&[criterion("it rhymes", None)], &[]).task_criteria;
        denied.note(1, &judged, &[verdict("it rhymes", "fail", "model")]);
        assert_eq!(denied.complete(&plan(&[], &[])), []);
    }

    #[test]
    fn it_stays_in_force_after_a_round_in_which_it_held_and_is_told_once() {
        let mut denied = after(&[verdict("The file is there.", "fail", "check")]);
        let second = denied.complete(&plan(&[], &[]));
        denied.note(2, &second, &[verdict(KEPT, "fail", "check")]);
        let third = denied.complete(&plan(&[], &[]));
        denied.note(3, &third, &[verdict(KEPT, "pass", "check")]);
        assert_eq!(words(&denied.complete(&plan(&[], &[]))), [KEPT]);
        assert_eq!(
            denied.lines(),
            [r#"The file is there. ({"kind":"file_exists","path":"a.md"})"#]
        );
    }

    #[test]
    fn a_check_that_was_replaced_does_not_come_back() {
        let mut denied = after(&[verdict("The file is there.", "fail", "check")]);
        let better = plan(&[criterion(KEPT, Some("b.md"))], &[]);
        assert_eq!(words(&denied.complete(&better)), [KEPT]);
        assert_eq!(denied.complete(&plan(&[], &[])), []);
    }

    #[test]
    fn what_speaks_of_the_commands_of_one_plan_is_not_kept() {
        let of_a_run = json!({"criterion": "the tests ran", "mode": "verifiable", "check": {"kind": "exit_code", "command": "pytest", "equals": 0}});
        let asked = plan(&[of_a_run], &[]).task_criteria;
        assert!(asked[0].check.is_some());
        let mut denied = Denied::default();
        denied.note(1, &asked, &[verdict("the tests ran", "fail", "check")]);
        assert_eq!(denied.complete(&plan(&[], &[])), []);
    }

    proptest! {
        /// Whatever the plans state and the checks say: what a machine denied once is in force in every later plan by its check, until a plan
        /// puts another check in its place.
        #[test]
        fn no_plan_gets_rid_of_what_a_machine_denied(
            rounds in proptest::collection::vec(
                (proptest::collection::vec((0_u8..4, 0_u8..4), 0..4), proptest::collection::vec((0_u8..4, 0_u8..4), 0..3), any::<u8>()), 1..6),
        ) {
            let make = |&(words, file): &(u8, u8)| {
                criterion(&format!("w{words}"), (file > 0).then(|| format!("{file}.md")).as_deref())
            };
            let mut denied = Denied::default();
            let mut failed: Vec<Criterion> = Vec::new();
            let same = |a: &Criterion, b: &Criterion| bare_words(a) == bare_words(b);
            for (round, (of_task, of_step, fails)) in (1..).zip(&rounds) {
                let of_task: Vec<Value> = of_task.iter().map(make).collect();
                let of_step: Vec<Value> = of_step.iter().map(make).collect();
                let plan = plan(&of_task, &of_step);
                let asked = denied.complete(&plan);
                let of_steps = plan.steps.iter().flat_map(|step| &step.criteria);
                // A check of its own in the same words takes the place of the one that was denied.
                let own: Vec<Criterion> = plan.task_criteria.iter().chain(of_steps.clone()).filter(|c| c.check.is_some()).cloned().collect();
                failed.retain(|earlier| {
                    own.iter().any(|c| c.check == earlier.check) || !own.iter().any(|c| same(c, earlier))
                });
                for earlier in &failed {
                    let stated = asked.iter().chain(of_steps.clone()).any(|c| {
                        c.check == earlier.check
                    });
                    prop_assert!(stated, "{earlier:?} is not in {asked:?}");
                }
                let verdicts: Vec<_> = asked.iter().enumerate().filter(|(_, c)| c.check.is_some()).map(|(at, c)| {
                    let said = if fails >> (at % 8) & 1 == 1 { "fail" } else { "pass" };
                    verdict(&c.criterion, said, "check")
                }).collect();
                denied.note(round, &asked, &verdicts);
                let new = asked.iter().zip(asked.iter().enumerate()).filter(|(c, (at, _))| {
                    c.check.is_some() && fails >> (at % 8) & 1 == 1 && !c.criterion.contains("kept from")
                });
                failed.extend(new.map(|(c, _)| c.clone()));
            }
        }
    }
}

//! The evidence rules of R4a: what code decides before any check or model is asked (design §10).
//!
//! Owns two tables. [`ENDINGS`] end a subtask at once, because no other attempt could help; [`RULES`] fail single
//! criteria, because the calls contradict the claim. A rule can only fail something: nothing passes by rule.

use artoo_protocol::message::{Check, Criterion, ExecutionResult, ExecutionStatus, FailureClass, Mode, ToolCall};
use artoo_protocol::text::one_line;

use crate::evidence::{broke, class_of, ending, only_marks, own_class, primary};

/// What a rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) class: FailureClass,
    pub(super) evidence: String,
}

/// One row: a subtask ends as failed without checks, model or another attempt.
pub(super) struct Ending {
    /// Names the rule in tests and documents.
    #[cfg_attr(not(test), expect(dead_code, reason = "names the row for readers and tests"))]
    pub(super) name: &'static str,
    pub(super) applies: fn(&ExecutionResult, &[Criterion]) -> Option<Finding>,
}

/// One row: a criterion fails.
pub(super) struct Rule {
    /// Names the rule in tests and documents.
    #[cfg_attr(not(test), expect(dead_code, reason = "names the row for readers and tests"))]
    pub(super) name: &'static str,
    /// What R3 is told to do about it.
    pub(super) advice: &'static str,
    pub(super) applies: fn(&Judged<'_>) -> Option<Finding>,
}

/// What a rule looks at.
pub(super) struct Judged<'a> {
    pub(super) result: &'a ExecutionResult,
    pub(super) criterion: &'a Criterion,
    /// All criteria of the subtask.
    pub(super) criteria: &'a [Criterion],
    /// Paths that the task made in earlier attempts.
    pub(super) made: &'a [String],
}

/// In the order in which they are tried.
pub(super) const ENDINGS: &[Ending] = &[
    Ending {
        name: "refused",
        applies: |result, _| {
            let reason = reason(result, "an action was not allowed (law 1)");
            // Who reports success in spite of it may have found another honest way: that is judged.
            (result.refused && result.status != ExecutionStatus::Completed).then(|| environmental(reason))
        },
    },
    Ending {
        name: "infrastructure",
        applies: |result, _| {
            let reason = reason(result, "the attempt broke on its infrastructure");
            result.infrastructure.then(|| environmental(reason))
        },
    },
    Ending {
        name: "reported_failed",
        applies: |result, _| {
            (result.status == ExecutionStatus::Failed).then(|| Finding {
                class: class_of(&result.tool_calls),
                evidence: reason(result, "the executor reported that it failed"),
            })
        },
    },
    Ending {
        name: "nothing_to_judge",
        applies: |_, criteria| {
            criteria.is_empty().then(|| Finding {
                class: FailureClass::Logical,
                evidence: "the subtask has no success criteria, so nothing can show that it is done".to_owned(),
            })
        },
    },
];

/// In the order in which they are tried; the first that applies decides.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "verifiable_without_any_call",
        advice: "Use a tool, and let its output show that the criterion holds.",
        applies: |judged| {
            (judged.criterion.mode == Mode::Verifiable && judged.result.tool_calls.is_empty()).then(|| Finding {
                class: FailureClass::Logical,
                evidence: "no tool ran, so nothing but the executor's words says that it holds".to_owned(),
            })
        },
    },
    // An output that was cut is no contradiction by itself: whether the call ran to its end is told by `interrupted`, and
    // checks take what was cut for not shown.
    Rule {
        name: "primary_call_interrupted",
        advice: "Do the interrupted action again so that it runs to its end: in smaller parts, or in a faster way. \
                 Looking at what is there does not show that it was done.",
        applies: |judged| {
            let (at, call) = primary(&judged.result.tool_calls)?;
            call.interrupted.then(|| contradiction(at, call))
        },
    },
    Rule {
        name: "primary_call_failed",
        advice: "Find out why the action failed, remove the cause and do it again, or report that it cannot be done.",
        applies: |judged| {
            let (at, call) = primary(&judged.result.tool_calls)?;
            let claimed = judged.result.status == ExecutionStatus::Completed;
            let undecided = judged.criterion.check.is_none();
            (claimed && undecided && broke(call) && !exit_was_planned(call, judged.criteria))
                .then(|| contradiction(at, call))
        },
    },
    Rule {
        name: "old_file_after_a_failed_action",
        advice: "The action failed and the file is an old one. Find out why it failed, and do it again.",
        applies: |judged| {
            let (at, call) = primary(&judged.result.tool_calls)?;
            let claimed = judged.result.status == ExecutionStatus::Completed;
            let path = judged.criterion.check.as_ref().and_then(looked_at)?;
            let name = path.trim_end_matches('/').rsplit('/').next()?;
            let its_doing = !name.is_empty() && call.target().contains(name);
            let made_something = |call: &&ToolCall| !broke(call) && !only_marks(call);
            let worked = judged.result.tool_calls.iter().filter(made_something);
            let made = worked.flat_map(|call| &call.touched).chain(judged.made);
            let old = !made.into_iter().any(|made| made.ends_with(name));
            (claimed && its_doing && old && broke(call) && !exit_was_planned(call, judged.criteria))
                .then(|| contradiction(at, call))
        },
    },
    Rule {
        name: "every_call_failed",
        advice: "Every tool call failed. Use another tool or another input.",
        applies: |judged| {
            let calls = &judged.result.tool_calls;
            let none_worked = !calls.is_empty() && calls.iter().all(broke);
            let planned = calls.iter().any(|call| exit_was_planned(call, judged.criteria));
            let (at, last) = calls.iter().enumerate().next_back()?;
            (judged.criterion.mode == Mode::Verifiable && judged.criterion.check.is_none() && none_worked && !planned)
                .then(|| contradiction(at, last))
        },
    },
];

/// The first finding of the table about a criterion, with its rule.
pub(super) fn first(judged: &Judged<'_>) -> Option<(&'static Rule, Finding)> {
    RULES
        .iter()
        .find_map(|rule| (rule.applies)(judged).map(|finding| (rule, finding)))
}

fn reason(result: &ExecutionResult, otherwise: &str) -> String {
    let given = one_line(result.reason.as_deref().unwrap_or_default(), 500);
    if given.is_empty() { otherwise.to_owned() } else { given }
}

fn environmental(evidence: String) -> Finding {
    Finding {
        class: FailureClass::Environmental,
        evidence,
    }
}

fn contradiction(at: usize, call: &ToolCall) -> Finding {
    Finding {
        class: own_class(call).unwrap_or(FailureClass::Logical),
        evidence: format!(
            "call {} ({}: {}) {}, which contradicts any claim of success; a later look at what is there proves nothing",
            at + 1,
            call.tool,
            one_line(&call.target(), 200),
            ending(call)
        ),
    }
}

/// The file whose presence, or some text of which, a check looks at: an old one would do as well as a new one.
fn looked_at(check: &Check) -> Option<&str> {
    match check {
        Check::FileExists { path } | Check::FileContains { path, .. } => Some(path),
        Check::ExitCode { .. }
        | Check::FileAbsent { .. }
        | Check::OutputMatches { .. }
        | Check::OutputEquals { .. }
        | Check::JsonPath { .. }
        | Check::Count { .. }
        | Check::Sha256 { .. }
        | Check::CommandSucceeds { .. } => None,
    }
}

/// Whether some criterion's check expects exactly this failing exit status, as in "the test run fails".
fn exit_was_planned(call: &ToolCall, criteria: &[Criterion]) -> bool {
    !call.interrupted
        && criteria.iter().any(|criterion| {
            matches!(&criterion.check, Some(Check::ExitCode { equals, .. }) if *equals != 0 && call.exit == Some(*equals))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::samples::{criterion, result};
    use crate::evidence::sample;
    use artoo_protocol::tool::EffectClass::{Create, Read};

    fn fired_of(rules: &[&Rule], result: &ExecutionResult, criterion: &Criterion) -> Option<&'static str> {
        let judged = Judged {
            result,
            criterion,
            criteria: std::slice::from_ref(criterion),
            made: &[],
        };
        rules
            .iter()
            .find(|rule| (rule.applies)(&judged).is_some())
            .map(|rule| rule.name)
    }

    fn fired(result: &ExecutionResult, criterion: &Criterion) -> Option<&'static str> {
        fired_of(&RULES.iter().collect::<Vec<_>>(), result, criterion)
    }

    #[test]
    fn every_evidence_rule_fires_on_its_own_situation_and_not_on_its_neighbour() {
        for (name, calls, criterion, expect) in situations() {
            assert_eq!(fired(&result(1, calls), &criterion), expect, "{name}");
        }
    }

    /// The rows broken on purpose: without one of them, some situation must come out otherwise.
    #[test]
    fn no_evidence_rule_can_be_left_out_unnoticed() {
        for left_out in RULES {
            let rest: Vec<_> = RULES.iter().filter(|rule| rule.name != left_out.name).collect();
            let noticed = situations()
                .into_iter()
                .any(|(_, calls, criterion, expect)| fired_of(&rest, &result(1, calls), &criterion) != expect);
            assert!(noticed, "nothing notices that {} is gone", left_out.name);
        }
    }

    #[test]
    fn a_file_of_an_earlier_attempt_is_none_of_the_failed_action() {
        let criterion = criterion(
            "a.txt exists",
            Mode::Verifiable,
            Some(r#"{"kind":"file_exists","path":"a.txt"}"#),
        );
        let broken = ToolCall {
            exit: Some(2),
            ..sample("shell", "make a.txt", Create)
        };
        let result = result(1, vec![broken]);
        for (made, expect) in [
            (vec![], Some("old_file_after_a_failed_action")),
            (vec!["/w/b.txt".to_owned()], Some("old_file_after_a_failed_action")),
            (vec!["/w/a.txt".to_owned()], None),
        ] {
            let judged = Judged {
                result: &result,
                criterion: &criterion,
                criteria: std::slice::from_ref(&criterion),
                made: &made,
            };
            assert_eq!(first(&judged).map(|(rule, _)| rule.name), expect, "{made:?}");
        }
    }

    /// One situation: its name, the calls, the criterion, the rule that must fire.
    type Row = (&'static str, Vec<ToolCall>, Criterion, Option<&'static str>);

    #[allow(clippy::too_many_lines, reason = "one table of situations, read as a whole")]
    fn situations() -> Vec<Row> {
        let verifiable = criterion("a.txt holds 5", Mode::Verifiable, None);
        let plausible = criterion("it rhymes", Mode::Plausible, None);
        let on_file = criterion(
            "a.txt exists",
            Mode::Verifiable,
            Some(r#"{"kind":"file_exists","path":"a.txt"}"#),
        );
        let fails = criterion(
            "the tests fail",
            Mode::Verifiable,
            Some(r#"{"kind":"exit_code","equals":101}"#),
        );
        let write = sample("write_file", "a.txt", Create);
        let look = sample("shell", "ls", Read);
        let touching = ToolCall {
            touched: vec!["/w/a.txt".into()],
            ..write.clone()
        };
        let killed = |call: &ToolCall| ToolCall {
            interrupted: true,
            exit: None,
            ..call.clone()
        };
        let broken = |call: &ToolCall| ToolCall {
            exit: Some(101),
            ..call.clone()
        };
        let marked = ToolCall {
            touched: vec!["/w/a.txt".into()],
            ..sample("shell", "touch a.txt", Create)
        };
        let grep = ToolCall {
            exit: Some(1),
            ..sample("shell", "grep x", Read)
        };
        let rows: Vec<(&str, Vec<ToolCall>, &Criterion, Option<&str>)> = vec![
            (
                "no call, verifiable",
                vec![],
                &verifiable,
                Some("verifiable_without_any_call"),
            ),
            (
                "no call, verifiable with a check",
                vec![],
                &on_file,
                Some("verifiable_without_any_call"),
            ),
            ("no call, plausible", vec![], &plausible, None),
            (
                "interrupted, then ls",
                vec![killed(&write), look.clone()],
                &verifiable,
                Some("primary_call_interrupted"),
            ),
            (
                "interrupted, and a check could see an old file",
                vec![killed(&write)],
                &on_file,
                Some("primary_call_interrupted"),
            ),
            (
                "interrupted, then done",
                vec![killed(&write), write.clone()],
                &verifiable,
                None,
            ),
            (
                "failed, then ls",
                vec![broken(&write), look.clone()],
                &verifiable,
                Some("primary_call_failed"),
            ),
            (
                "failed, and a check could see an old file",
                vec![broken(&write), look.clone()],
                &on_file,
                Some("old_file_after_a_failed_action"),
            ),
            (
                "failed, but a machine decides about another file",
                vec![broken(&sample("shell", "make b.txt", Create)), look.clone()],
                &on_file,
                None,
            ),
            (
                "failed after the file was made",
                vec![touching, broken(&write)],
                &on_file,
                None,
            ),
            ("failed as planned", vec![broken(&write)], &fails, None),
            ("done", vec![write.clone(), look.clone()], &verifiable, None),
            (
                "every look failed",
                vec![broken(&look), killed(&look)],
                &verifiable,
                Some("every_call_failed"),
            ),
            ("every look failed, plausible", vec![broken(&look)], &plausible, None),
            ("one look worked", vec![broken(&look), look.clone()], &verifiable, None),
            ("an honest empty search", vec![grep], &verifiable, None),
            (
                "failed, then the old file is touched",
                vec![broken(&sample("shell", "make a.txt", Create)), marked.clone()],
                &on_file,
                Some("old_file_after_a_failed_action"),
            ),
            (
                "another's failure, then a file is touched",
                vec![broken(&sample("shell", "make b.txt", Create)), marked],
                &on_file,
                None,
            ),
            (
                "refused, and done otherwise before",
                vec![
                    write.clone(),
                    ToolCall {
                        not_run: true,
                        ..broken(&write)
                    },
                ],
                &verifiable,
                None,
            ),
            (
                "a planned exit that is another",
                vec![ToolCall {
                    exit: Some(2),
                    ..look.clone()
                }],
                &fails,
                None,
            ),
            (
                "every look failed, and a machine decides",
                vec![broken(&look)],
                &on_file,
                None,
            ),
        ];
        rows.into_iter()
            .map(|(name, calls, criterion, expect)| (name, calls, criterion.clone(), expect))
            .collect()
    }

    #[test]
    fn an_uncertain_attempt_with_a_failed_call_is_left_to_judgement() {
        let call = ToolCall {
            exit: Some(3),
            ..sample("shell", "make", Create)
        };
        let unsure = ExecutionResult {
            status: ExecutionStatus::Uncertain,
            ..result(1, vec![call])
        };
        let criterion = criterion("built", Mode::Plausible, None);
        assert_eq!(fired(&unsure, &criterion), None);
    }

    #[test]
    fn every_ending_has_its_situation_and_class() {
        let environmental_call = ToolCall {
            failure_class: Some(FailureClass::Environmental),
            exit: Some(1),
            ..sample("shell", "cat /forbidden/x", Read)
        };
        let base = result(1, vec![]);
        let failed = ExecutionResult {
            status: ExecutionStatus::Failed,
            ..base.clone()
        };
        let one = [criterion("c", Mode::Plausible, None)];
        for (attempt, criteria, expect) in [
            (
                ExecutionResult {
                    refused: true,
                    ..failed.clone()
                },
                &one[..],
                Some(("refused", FailureClass::Environmental)),
            ),
            (
                ExecutionResult {
                    infrastructure: true,
                    ..failed.clone()
                },
                &one,
                Some(("infrastructure", FailureClass::Environmental)),
            ),
            (failed.clone(), &one, Some(("reported_failed", FailureClass::Logical))),
            (
                ExecutionResult {
                    tool_calls: vec![environmental_call],
                    ..failed
                },
                &one,
                Some(("reported_failed", FailureClass::Environmental)),
            ),
            (base.clone(), &[], Some(("nothing_to_judge", FailureClass::Logical))),
            (base, &one, None),
        ] {
            let found = |left_out: Option<&str>| {
                let mut rows = ENDINGS.iter().filter(|row| Some(row.name) != left_out);
                rows.find_map(|row| (row.applies)(&attempt, criteria).map(|finding| (row.name, finding.class)))
            };
            assert_eq!(found(None), expect);
            // The row broken on purpose: another one must not say the same.
            if let Some((name, _)) = expect {
                assert_ne!(found(Some(name)), expect);
            }
        }
    }
}

//! Directives: what they block, what they ask for, and what memory learns from them.

use artoo_ggs::blocked::{blamed, cites, tool_names};
use artoo_ggs::{BlockedTargets, Effect, Params};
use artoo_protocol::message::{
    CriterionVerdict, Directive, FailureMix, MacroState, OutcomeStatus, PreviousDirective, SubTaskOutcome, ToolCall,
    Urgency,
};
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{Actor as _, Event, Magnitude};
use proptest::prelude::*;
use serde_json::json;

use crate::build::{
    Bench, Environmental, Logical, at, broken, call, directive, end, fail, failed, matched, megrams, outcome, partly,
    replan, shell, summary, task, with_calls,
};

fn read(path: &str, output: &str) -> ToolCall {
    ToolCall {
        effect: EffectClass::Read,
        output: output.into(),
        ..call("read_file", json!({ "path": path }))
    }
}

fn evidence(verdict: CriterionVerdict, text: &str) -> CriterionVerdict {
    CriterionVerdict {
        evidence: text.into(),
        ..verdict
    }
}

fn wrong_search() -> SubTaskOutcome {
    with_calls(
        failed("search", Logical),
        vec![
            shell("cd x && curl http://y", &["cd", "curl"], 6),
            read("/notes.txt", "all is well here"),
            broken("fetch_url", "http://z"),
        ],
    )
}

#[test]
fn a_failing_shell_blocks_its_programs_and_never_itself() {
    let (mut bench, id) = Bench::open();
    let effects = bench.say(replan(&id, 0, vec![wrong_search()]));
    let directive = directive(&effects);
    assert_eq!(directive.directive, Directive::BreakSymmetry);
    assert_eq!(directive.blocked_tools, ["shell:curl", "fetch_url"]);
    assert!(directive.blocked_targets.is_empty());
    // Records without parsed programs still name the program, and a shell without a command blocks nothing.
    assert_eq!(tool_names(&shell("LANG=C /usr/bin/curl x", &[], 1)), ["shell:curl"]);
    assert_eq!(tool_names(&call("shell", json!({}))), Vec::<String>::new());
    assert_eq!(tool_names(&call("docs.search", json!({}))), ["docs.search"]);
}

#[test]
fn of_a_pipeline_only_those_are_blocked_that_do_more_than_pass_on_or_are_named_by_the_complaint() {
    let failing = |programs: &[&str], output: &str| {
        blamed(&ToolCall {
            output: output.into(),
            ..shell("a | b", programs, 1)
        })
    };
    for (programs, output, expect) in [
        (&["cat", "jq", "sort", "head"][..], "", &["shell:jq"][..]),
        (&["find", "grep", "wc"], "", &["shell:find", "shell:grep"]),
        (
            &["curl", "jq"],
            "curl: (6) Could not resolve host: x\n",
            &["shell:curl"],
        ),
        (&["curl", "jq"], "bash: line 1: jq: command not found", &["shell:jq"]),
        (
            &["find", "sort"],
            "ok\n/usr/bin/sort: write failed: No space\n",
            &["shell:sort"],
        ),
        (&["curl", "jq"], "the words curl, jq", &["shell:curl", "shell:jq"]),
        (&["sort", "uniq"], "", &["shell:sort", "shell:uniq"]),
        (&["sort"], "", &["shell:sort"]),
    ] {
        assert_eq!(failing(programs, output), expect, "{programs:?} {output:?}");
    }
    // What a call that worked puts out are data, even where they look like a complaint.
    let cited = ToolCall {
        output: "jq: a processor\n".into(),
        ..shell("curl x | jq y", &["curl", "jq"], 0)
    };
    assert_eq!(blamed(&cited), ["shell:curl", "shell:jq"]);
}

#[test]
fn only_implicated_calls_block() {
    let cited = |text: &str| {
        let (mut bench, id) = Bench::open();
        let wrong = outcome(
            "count",
            OutcomeStatus::Failed,
            vec![evidence(fail("the count is 12", Logical), text)],
        );
        let calls = vec![
            read("/a", "irrelevant text"),
            ToolCall {
                output: "found 11 files\n".into(),
                ..call("search", json!({"query": "rs"}))
            },
        ];
        let effects = bench.say(replan(
            &id,
            0,
            vec![
                with_calls(wrong, calls),
                with_calls(matched("ok"), vec![broken("x", "y")]),
            ],
        ));
        directive(&effects).blocked_tools.clone()
    };
    assert_eq!(cited("the search says `found 11 files`, not 12"), ["search"]);
    assert_eq!(cited("found 11 files"), ["search"]);
    assert!(
        cited("the model just thinks it is wrong").is_empty(),
        "a read that worked is not blocked"
    );
    for (evidence, output, expect) in [
        ("", "x", false),
        ("x", "", false),
        ("a", "a", false),
        ("it printed \"42\" here", "42 43", false),
        ("it printed \"42 43\" here", "42 43", true),
    ] {
        assert_eq!(cites(evidence, output), expect, "{evidence:?} {output:?}");
    }
}

#[test]
fn neither_an_outage_nor_a_refusal_blocks_or_teaches() {
    let (mut bench, id) = Bench::open();
    let mut refused = with_calls(failed("refused", Environmental), vec![broken("write_file", "/etc/x")]);
    refused.refused = true;
    let mut cut = with_calls(failed("cut", Environmental), vec![broken("search", "q")]);
    cut.infrastructure = true;
    let effects = bench.say(replan(&id, 0, vec![refused, cut]));
    let directive = directive(&effects);
    assert!(directive.blocked_tools.is_empty() && directive.blocked_targets.is_empty());
    assert!(megrams(&effects).is_empty());
}

/// The gate keeps refusing the exact action for the rest of the task; blocking its target too would bar even reading it.
#[test]
fn a_refused_call_neither_blocks_nor_teaches_while_other_subtasks_fail() {
    let no = |tool: &str, path: &str| ToolCall {
        not_run: true,
        effect: EffectClass::Modify,
        ..broken(tool, path)
    };
    let (mut bench, id) = Bench::open();
    let mut refused = with_calls(failed("refused", Environmental), vec![no("write_file", "/etc/x")]);
    refused.refused = true;
    let also = vec![no("edit_file", "/etc/y"), broken("search", "q")];
    let effects = bench.say(replan(
        &id,
        0,
        vec![refused, with_calls(failed("other", Environmental), also)],
    ));
    assert_eq!(directive(&effects).directive, Directive::ChangePath);
    assert_eq!(directive(&effects).blocked_targets, ["q"]);
    assert_eq!(megrams(&effects).len(), 1);
    // Not even where worsening widens to every tool of the failing subtasks.
    let (mut bench, id) = Bench::open();
    let mut effects = Vec::new();
    for bad in [5, 10] {
        let calls = vec![no("edit_file", "/etc/y"), broken("search", "q")];
        effects = bench.say(replan(&id, 0, vec![with_calls(partly(bad, 10, Logical), calls)]));
    }
    assert_eq!(directive(&effects).urgency, Urgency::Higher);
    assert_eq!(directive(&effects).blocked_tools, ["search"]);
}

#[test]
fn blocking_never_leaves_no_tool_at_all() {
    let mut bench = Bench::new(Params::default());
    bench.controller = bench.controller.with_tools(vec!["a".into(), "b".into()]);
    let id = bench.begin(1);
    let calls = vec![broken("a", "1"), broken("b", "2")];
    let effects = bench.say(replan(&id, 0, vec![with_calls(failed("s", Logical), calls)]));
    assert_eq!(directive(&effects).blocked_tools, ["b"], "the oldest is free again");
}

#[test]
fn blocked_targets_accumulate_over_all_rounds() {
    let (mut bench, id) = Bench::open();
    let round = |bench: &mut Bench, path: &str| {
        let outcomes = vec![with_calls(failed("s", Environmental), vec![broken("read_file", path)])];
        let effects = bench.say(replan(&id, 0, outcomes));
        directive(&effects).clone()
    };
    assert_eq!(round(&mut bench, "/a").blocked_targets, ["/a"]);
    assert_eq!(round(&mut bench, "/b").blocked_targets, ["/a", "/b"]);
    let third = round(&mut bench, "/a");
    assert_eq!(third.blocked_targets, ["/a", "/b"]);
    assert!(third.blocked_tools.is_empty());
    assert_eq!(third.directive, Directive::ChangePath);
    assert_eq!(third.prev_directive, PreviousDirective::ChangePath);
}

#[test]
fn targets_of_calls_that_are_only_cited_may_be_left_free() {
    let blocked = |rule| {
        let mut bench = Bench::new(Params {
            blocked_targets: rule,
            ..Params::default()
        });
        let id = bench.begin(1);
        let wrong = outcome(
            "count",
            OutcomeStatus::Failed,
            vec![evidence(fail("the count is 12", Environmental), "found 11 files")],
        );
        let calls = vec![
            broken("read_file", "/gone"),
            ToolCall {
                output: "found 11 files".into(),
                ..call("search", json!({"query": "rs"}))
            },
        ];
        let effects = bench.say(replan(&id, 0, vec![with_calls(wrong, calls)]));
        directive(&effects).blocked_targets.clone()
    };
    assert_eq!(blocked(BlockedTargets::Implicated), ["/gone", "rs"]);
    assert_eq!(blocked(BlockedTargets::Failed), ["/gone"]);
}

#[test]
fn worsening_widens_and_improving_narrows_what_is_blocked() {
    let params = Params {
        max_replans: 100,
        ..Params::default()
    };
    let two_rounds = |bad: [usize; 2], class| {
        let mut bench = Bench::new(params);
        let id = bench.begin(1);
        let mut last = None;
        for (n, bad) in bad.into_iter().enumerate() {
            let calls = vec![
                broken("fetch_url", &format!("http://{n}")),
                call("search", json!({"query": format!("q{n}")})),
                read(&format!("/read{n}"), "fine"),
            ];
            let effects = bench.say(replan(&id, 0, vec![with_calls(partly(bad, 10, class), calls)]));
            last = Some(directive(&effects).clone());
        }
        last.unwrap()
    };
    let worse = two_rounds([5, 9], Logical);
    assert_eq!(
        (worse.directive, worse.urgency),
        (Directive::ChangeApproach, Urgency::Higher)
    );
    assert_eq!(
        worse.blocked_tools,
        ["fetch_url", "search"],
        "every tool of the failing subtasks, but no read that worked"
    );
    let better = two_rounds([9, 5], Logical);
    assert_eq!(
        (better.directive, better.urgency),
        (Directive::ChangeApproach, Urgency::Lower)
    );
    assert_eq!(better.blocked_tools, ["fetch_url"], "only tools whose calls failed");

    let worse = two_rounds([5, 9], Environmental);
    assert_eq!((worse.directive, worse.urgency), (Directive::Refine, Urgency::Higher));
    assert_eq!(worse.blocked_targets, ["http://0", "http://1"]);
    let better = two_rounds([9, 5], Environmental);
    assert_eq!((better.directive, better.urgency), (Directive::Refine, Urgency::Lower));
    assert_eq!(better.blocked_targets, ["http://1"], "only the latest");
}

#[test]
fn the_rationale_tells_a_person_what_drove_it() {
    let (mut bench, id) = Bench::open();
    let effects = bench.say(replan(&id, 10_000, vec![wrong_search(), matched("other")]));
    let said = directive(&effects);
    assert_eq!(
        said.rationale,
        "1 of 2 criteria are not met (D = 0.50), most of all “search holds”. This is the first round, so there is no \
         trend yet. The approach itself is wrong (P = 1.00) and nothing moves: take a class of tools that was not tried \
         before. Not again: shell:curl, fetch_url."
    );
    assert_eq!(said.failed_criterion, "search holds");
    let effects = bench.say(replan(&id, 0, vec![outcome("later", OutcomeStatus::NotRun, vec![])]));
    let second = directive(&effects).rationale.clone();
    assert!(
        second.contains("“later”, whose subtask was not started. The loss"),
        "{second}"
    );
    assert_eq!(said.failure_class, FailureMix::Logical);
    assert_eq!(said.budget_pressure, said.loss.omega);
    assert_eq!(said.outcomes.len(), 2, "what failed and what matched travels along");
}

#[test]
fn a_criterion_that_is_a_sentence_gets_no_second_full_stop() {
    let (mut bench, id) = Bench::open();
    let wrong = outcome(
        "list",
        OutcomeStatus::Failed,
        vec![fail("Every line is an address.", Logical)],
    );
    let effects = bench.say(replan(&id, 0, vec![with_calls(wrong, vec![broken("search", "q")])]));
    let said = &directive(&effects).rationale;
    assert!(
        said.contains("most of all “Every line is an address.” This is"),
        "{said}"
    );
    let lesson = &megrams(&effects)[0].content;
    assert!(
        lesson.contains("Not met: Every line is an address. Next came"),
        "{lesson}"
    );
    assert!(!said.contains("..") && !lesson.contains(".."));
}

#[test]
fn memory_learns_what_failed_and_only_afterwards_what_broke_through() {
    let (mut bench, id) = Bench::open();
    let effects = bench.say(replan(&id, 0, vec![wrong_search()]));
    let first = megrams(&effects);
    let rows: Vec<_> = first
        .iter()
        .map(|m| {
            (
                m.space.as_str(),
                m.entity.as_str(),
                m.state,
                m.f.get(),
                m.sigma.get(),
                m.k.get(),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (
                "tool:shell",
                "path:cd x && curl http://y",
                MacroState::ChangeApproach,
                0.85,
                -1.0,
                0.05
            ),
            (
                "tool:fetch_url",
                "path:http://z",
                MacroState::ChangeApproach,
                0.85,
                -1.0,
                0.05
            ),
        ]
    );
    assert!(
        first[1].content.contains("no such file") && first[1].content.contains("search holds"),
        "{}",
        first[1].content
    );

    let worked = with_calls(
        matched("s"),
        vec![shell("find .", &["find"], 0), shell("curl x", &["curl"], 0)],
    );
    let effects = bench.say(summary(&id, vec![worked]));
    let rows: Vec<_> = megrams(&effects)
        .iter()
        .map(|m| (m.space.clone(), m.entity.clone(), m.state, m.f.get(), m.sigma.get()))
        .collect();
    assert_eq!(
        rows,
        [
            (
                "tool:shell".into(),
                "path:find .".into(),
                MacroState::BreakSymmetry,
                0.75,
                1.0
            ),
            (
                "intent:find_the_largest".into(),
                "env:local".into(),
                MacroState::Accept,
                0.9,
                1.0
            ),
        ]
    );
    assert_eq!(end(&effects).prev_directive, PreviousDirective::BreakSymmetry);
}

#[test]
fn obstacles_are_remembered_lightly() {
    for (bad, state, f) in [([5, 5], MacroState::ChangePath, 0.3), ([9, 5], MacroState::Refine, 0.1)] {
        let (mut bench, id) = Bench::open();
        let mut effects = Vec::new();
        for bad in bad {
            let calls = vec![broken("read_file", "/a"), broken("read_file", "/a")];
            effects = bench.say(replan(&id, 0, vec![with_calls(partly(bad, 10, Environmental), calls)]));
        }
        let written = megrams(&effects);
        assert_eq!(written.len(), 1, "one per (tool, target)");
        assert_eq!((written[0].state, written[0].f), (state, Magnitude::new(f).unwrap()));
    }
}

fn any_outcome() -> impl Strategy<Value = SubTaskOutcome> {
    (
        0_usize..5,
        1_usize..5,
        any::<bool>(),
        0_u8..3,
        prop::collection::vec((0_u8..4, 0_u8..4, any::<bool>()), 0..5),
    )
        .prop_map(|(bad, total, logical, status, calls)| {
            let class = if logical { Logical } else { Environmental };
            let status = [OutcomeStatus::Matched, OutcomeStatus::Failed, OutcomeStatus::NotRun][usize::from(status)];
            let bad = if status == OutcomeStatus::Matched {
                0
            } else {
                bad.clamp(1, total)
            };
            let calls = calls
                .into_iter()
                .map(|(tool, target, bad)| ToolCall {
                    error: bad.then(|| "no".to_owned()),
                    ..call(&format!("tool{tool}"), json!({"path": format!("/{target}")}))
                })
                .collect();
            let base = partly(bad, total, class);
            SubTaskOutcome {
                status,
                ..with_calls(base, calls)
            }
        })
}

proptest! {
    /// Directional: every directive says what to change and which way.
    #[test]
    fn every_directive_names_what_to_change_and_which_way(outcomes in prop::collection::vec(any_outcome(), 1..5)) {
        let (mut bench, id) = Bench::open();
        for effect in bench.say(replan(&id, 0, outcomes)) {
            if let Effect::Direct(said) = effect {
                prop_assert!(!said.failed_criterion.is_empty());
                let asked = match said.directive {
                    Directive::Refine => "tighten",
                    Directive::ChangePath => "another target",
                    Directive::ChangeApproach => "another method",
                    Directive::BreakSymmetry => "class of tools",
                };
                prop_assert!(said.rationale.contains(asked), "{}", said.rationale);
                prop_assert!(said.rationale.contains(&said.failed_criterion) || said.failed_criterion == "something is missing");
                match said.directive {
                    Directive::Refine | Directive::ChangePath => prop_assert!(said.blocked_tools.is_empty()),
                    Directive::ChangeApproach | Directive::BreakSymmetry => prop_assert!(said.blocked_targets.is_empty()),
                }
            }
        }
    }

    /// Compositional: several failing subtasks give one directive that accounts for all of them, in any order.
    #[test]
    fn several_failures_give_one_directive_for_all(outcomes in prop::collection::vec(any_outcome(), 1..5)) {
        let blocked = |outcomes: Vec<SubTaskOutcome>| {
            let (mut bench, id) = Bench::open();
            bench.say(replan(&id, 0, outcomes)).into_iter().find_map(|effect| match effect {
                Effect::Direct(said) => {
                    let mut all = [said.blocked_tools, said.blocked_targets].concat();
                    all.sort();
                    Some((said.directive, all, said.outcomes.len()))
                }
                Effect::Finish(_) | Effect::Remember(_) | Effect::AskPartial(_) => None,
            })
        };
        let all = blocked(outcomes.clone());
        prop_assert_eq!(blocked(outcomes.iter().rev().cloned().collect()), all.clone());
        if let Some((directive, all, carried)) = all {
            prop_assert_eq!(carried, outcomes.len());
            for outcome in outcomes.iter().filter(|o| o.status == OutcomeStatus::Failed) {
                for call in outcome.tool_calls.iter().filter(|call| call.failed()) {
                    let name = match directive {
                        Directive::Refine | Directive::ChangePath => call.target(),
                        Directive::ChangeApproach | Directive::BreakSymmetry => call.tool.clone(),
                    };
                    prop_assert!(all.contains(&name), "{name} is missing");
                }
            }
        }
    }

    /// History-aware: what failed in earlier rounds stays blocked unless the loss is falling.
    #[test]
    fn what_failed_stays_blocked(rounds in prop::collection::vec(prop::collection::vec(any_outcome(), 1..4), 1..4)) {
        let mut bench = Bench::new(Params { max_replans: 100, ..Params::default() });
        let id = task(bench.begin(1).suffix().parse().unwrap());
        let mut failed_so_far: Vec<String> = Vec::new();
        for outcomes in rounds {
            let failing: Vec<String> = outcomes
                .iter()
                .filter(|o| o.status == OutcomeStatus::Failed)
                .flat_map(|o| &o.tool_calls)
                .filter(|call| call.failed())
                .map(ToolCall::target)
                .collect();
            failed_so_far.extend(failing);
            for effect in bench.say(replan(&id, 0, outcomes)) {
                if let Effect::Direct(said) = effect {
                    let path = matches!(said.directive, Directive::Refine | Directive::ChangePath);
                    if path && said.urgency != Urgency::Lower {
                        prop_assert!(failed_so_far.iter().all(|target| said.blocked_targets.contains(target)));
                    }
                }
            }
            let _ = bench.controller.step(at(0), Event::Wake);
        }
    }
}

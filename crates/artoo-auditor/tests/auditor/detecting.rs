//! Every detector on a stream that it must complain about and on one that it must not, and the pages made of both.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use artoo_auditor::detect::List;
use artoo_auditor::{Auditor, DETECTORS, Effect, Entry, Finding, Observed, Past, REPORT_PERIOD};
use artoo_protocol::{Deed, Message, Role, Timestamp};
use serde_json::{Value, json};

use crate::build::{self, Wire, at, task};

/// One step of a stream: who says or does what.
type Step = (Role, Value);

fn observed(wire: &mut Wire, (role, said): &Step) -> Observed {
    let mut said = said.clone();
    if said.get("act").is_some() {
        said["role"] = json!(role);
        said["task_id"] = json!(task(1));
        said["at"] = json!(at(0));
        return Observed::Deed(Arc::new(serde_json::from_value::<Deed>(said).unwrap()));
    }
    let message: Message = serde_json::from_value(said).unwrap_or_else(|e| panic!("{e}"));
    wire.send(*role, 1, message)
}

/// What a fresh auditor finds in a stream.
fn found(steps: &[Step]) -> Vec<Finding> {
    let mut wire = Wire::default();
    let mut auditor = Auditor::new(at(0), REPORT_PERIOD, Past::default());
    let mut found = Vec::new();
    for step in steps {
        for effect in auditor.observe(at(1), observed(&mut wire, step)) {
            if let Effect::Append {
                entry: Entry::Finding(finding),
                ..
            } = effect
            {
                found.push(finding);
            }
        }
    }
    found
}

/// `bad` gives exactly one finding, and of this detector; `good` none at all.
fn check(name: &str, bad: &[Step], good: &[Step]) -> String {
    let findings = found(bad);
    assert_eq!(
        findings.iter().map(|f| f.detector.as_str()).collect::<Vec<_>>(),
        [name],
        "{findings:#?}"
    );
    assert_eq!(found(good), [], "{name}");
    findings[0].to_string()
}

fn with(base: Value, changes: &Value) -> Value {
    let mut base = base;
    for (key, value) in changes.as_object().unwrap() {
        base[key] = value.clone();
    }
    base
}

fn input(present: bool) -> Step {
    (
        Role::User,
        json!({"type": "UserInput", "task_id": "input_00000001", "text": "count", "person_present": present}),
    )
}

fn directive(name: &str, d: f64, changes: &Value) -> Step {
    let loss = json!({"D": d, "P": 0.5, "Omega": 0.2, "L": 0.6});
    let base = json!({
        "type": "PlanDirective", "task_id": task(1), "loss": loss, "prev_directive": "init", "directive": name,
        "blocked_tools": [], "blocked_targets": [], "failed_criterion": "c", "failure_class": "logical",
        "budget_pressure": 0.2, "grad_l": 0.0, "rationale": "r",
    });
    (Role::R7, with(base, changes))
}

fn manifest(ids: &[&str]) -> Step {
    (
        Role::R2,
        json!({
            "type": "DispatchManifest", "task_id": task(1), "slug": "count", "intent": "count", "subtask_ids": ids,
            "subtasks": [], "task_criteria": [], "started_at": at(0), "dispatched_at": at(0),
        }),
    )
}

/// A plan whose subtasks have a deadline, or none.
fn manifest_due(ids: &[&str], deadline: Option<Timestamp>) -> Step {
    let planned = |id: &&str| json!({"subtask_id": id, "intent": "count", "success_criteria": ["c"], "sequence": 1, "deadline": deadline});
    let (role, said) = manifest(ids);
    let subtasks: Vec<Value> = ids.iter().map(planned).collect();
    (role, with(said, &json!({"subtasks": subtasks})))
}

fn subtask(id: &str, tools: &[&str]) -> Step {
    (
        Role::R2,
        json!({
            "type": "SubTask", "subtask_id": id, "parent_task_id": task(1), "intent": "count", "success_criteria": ["c"],
            "sequence": 1, "tools": tools,
        }),
    )
}

fn call(tool: &str, changes: &Value) -> Value {
    let base = json!({
        "tool": tool, "input": {"command": "curl x.org"}, "started_at": at(0), "elapsed_ms": 5, "effect": "read",
    });
    with(base, changes)
}

fn attempt(id: &str, status: &str, calls: &[Value]) -> Step {
    (
        Role::R3,
        json!({
            "type": "ExecutionResult", "subtask_id": id, "parent_task_id": task(1), "attempt": 1, "status": status,
            "output": "", "tool_calls": calls,
        }),
    )
}

fn verdict(mode: &str, verdict: &str, source: &str) -> Value {
    json!({"criterion": "c", "mode": mode, "verdict": verdict, "source": source, "evidence": "e"})
}

fn outcome_value(id: &str, status: &str) -> Value {
    json!({
        "subtask_id": id, "parent_task_id": task(1), "status": status, "success_criteria": ["c"],
        "criteria_verdicts": [verdict("plausible", "pass", "model")],
    })
}

fn outcome(id: &str, status: &str, changes: &Value) -> Step {
    let base = with(outcome_value(id, status), &json!({"type": "SubTaskOutcome"}));
    (Role::R4a, with(base, changes))
}

fn gap(outcomes: &[Value]) -> Step {
    (
        Role::R4b,
        json!({"type": "ReplanRequest", "task_id": task(1), "outcomes": outcomes}),
    )
}

fn summary(outcomes: &[Value]) -> Step {
    (
        Role::R4b,
        json!({"type": "OutcomeSummary", "task_id": task(1), "outcomes": outcomes}),
    )
}

fn ending(directive: &str, cause: &str, changes: &Value) -> Step {
    let base = json!({
        "type": "FinalResult", "task_id": task(1), "slug": "count", "summary": "", "output": null,
        "loss": {"D": 0.0, "P": 0.0, "Omega": 0.1, "L": 0.0}, "grad_l": 0.0, "replans": 0, "prev_directive": "init",
        "directive": directive, "cause": cause,
    });
    (Role::R7, with(base, changes))
}

fn megram(changes: &Value) -> Step {
    let base = json!({
        "type": "Megram", "id": "m1", "level": "M", "created_at": at(0), "space": "tool:shell", "entity": "env:local",
        "content": "shell: curl failed, the host is not there", "state": "change_approach", "f": 0.5, "sigma": -1.0, "k": 0.1,
    });
    (Role::R7, with(base, changes))
}

fn correction() -> Step {
    let said = json!({
        "type": "CorrectionSignal", "subtask_id": "s1", "parent_task_id": task(1), "attempt_number": 1,
        "failed_criterion": "c", "failure_class": "logical", "what_was_wrong": "w", "what_to_do": "d",
    });
    (Role::R4a, said)
}

fn asked(role: Role) -> Step {
    (role, json!({"act": "model_asked", "call": 1, "form": "x"}))
}

fn answered(tokens: u64) -> Step {
    let usage = json!({"input_tokens": tokens, "output_tokens": 0, "requests": 1});
    (
        Role::R3,
        json!({"act": "model_answered", "call": 1, "model": "m", "usage": usage, "elapsed_ms": 5, "cost": 0.0}),
    )
}

#[test]
fn boundary_violation() {
    check(
        "boundary_violation",
        &[(Role::R5, json!({"type": "AuditQuery"}))],
        &[(Role::User, json!({"type": "AuditQuery"}))],
    );
}

#[test]
fn forbidden_effect() {
    let run = |role| {
        (
            role,
            json!({"act": "tool_run", "call": 1, "tool": "shell", "effect": "read", "confirmed": false}),
        )
    };
    check("forbidden_effect", &[run(Role::R4a)], &[run(Role::R3)]);
    check("forbidden_effect", &[asked(Role::R7)], &[asked(Role::R1)]);
    let stored = |role| (role, json!({"act": "stored", "megram": "m1"}));
    check("forbidden_effect", &[stored(Role::R2)], &[stored(Role::R5)]);
    let sop = |form| (Role::R5, json!({"act": "model_asked", "call": 1, "form": form}));
    check("forbidden_effect", &[sop("plan")], &[sop("sop")]);
    let late = [input(true), ending("abandon", "aborted", &json!({})), run(Role::R3)];
    check("forbidden_effect", &late, &[]);
}

#[test]
fn foreign_directive() {
    let (_, said) = directive("refine", 0.5, &json!({}));
    check("foreign_directive", &[(Role::R4b, said.clone())], &[(Role::R7, said)]);
}

#[test]
fn foreign_megram() {
    let (_, said) = megram(&json!({}));
    check("foreign_megram", &[(Role::R2, said.clone())], &[(Role::User, said)]);
}

#[test]
fn second_final_result() {
    let end = ending("abandon", "infeasible", &json!({}));
    check("second_final_result", &[end.clone(), end.clone()], &[end]);
}

#[test]
fn ggs_thrashing() {
    let breaks = |d| directive("break_symmetry", d, &json!({}));
    check(
        "ggs_thrashing",
        &[breaks(0.8), breaks(0.8)],
        &[breaks(0.8), breaks(0.5)],
    );
}

#[test]
fn endless_correction() {
    let four = [correction(), correction(), correction(), correction()];
    check("endless_correction", &four, &four[..2]);
}

#[test]
fn duplicate_subtask() {
    let (a, b) = (subtask("s1", &[]), subtask("s2", &[]));
    check("duplicate_subtask", &[a.clone(), b.clone(), a.clone()], &[a, b]);
}

#[test]
fn fan_in_incomplete() {
    let matched = |id| outcome_value(id, "matched");
    let given = |id| outcome(id, "matched", &json!({}));
    let start = [input(true), manifest(&["s1", "s2"]), given("s1")];
    let not_run = outcome_value("s2", "not_run");
    // One outcome is missing; one was never given; the task ended well in the middle.
    let good = [&start[..], &[gap(&[matched("s1"), not_run])]].concat();
    check(
        "fan_in_incomplete",
        &[&start[..], &[summary(&[matched("s1")])]].concat(),
        &good,
    );
    let made_up = [&start[..], &[summary(&[matched("s1"), matched("s2")])]].concat();
    let complete = [&start[..], &[given("s2"), summary(&[matched("s1"), matched("s2")])]].concat();
    check("fan_in_incomplete", &made_up, &complete);
    let early = [&start[..], &[ending("accept", "met", &json!({}))]].concat();
    let aborted = [&start[..], &[ending("abandon", "aborted", &json!({}))]].concat();
    check("fan_in_incomplete", &early, &aborted);
    // A failure that R4a never told; and of a task that another process began, only what is missing.
    let failed = outcome_value("s2", "failed");
    let invented = [&start[..], &[gap(&[matched("s1"), failed])]].concat();
    check("fan_in_incomplete", &invented, &good);
    let resumed = [manifest(&["s1"]), summary(&[matched("s1")])];
    check("fan_in_incomplete", &[manifest(&["s1"]), summary(&[])], &resumed);
}

/// What R4b gives up on as overdue, R4a never spoke of (design §11).
#[test]
fn an_outcome_that_is_overdue_is_no_invention() {
    let late = |changes: &Value| {
        let base = json!({"infrastructure": true, "criteria_verdicts": [verdict("verifiable", "fail", "rule")]});
        with(with(outcome_value("s1", "failed"), &base), changes)
    };
    let round = |deadline, given: Value| vec![input(true), manifest_due(&["s1"], deadline), gap(&[given])];
    let due = Some(at(60_000));
    let overdue = round(due, late(&json!({})));
    check("fan_in_incomplete", &round(None, late(&json!({}))), &overdue);
    let ran = json!({"tool_calls": [call("shell", &json!({}))]});
    check("fan_in_incomplete", &round(due, late(&ran)), &overdue);
    let judged = json!({"criteria_verdicts": [verdict("plausible", "fail", "model")]});
    check("fan_in_incomplete", &round(due, late(&judged)), &overdue);
    let own = json!({"infrastructure": false});
    check("fan_in_incomplete", &round(due, late(&own)), &overdue);
    // What comes from R4a afterwards changes nothing.
    let after = [&overdue[..], &[outcome("s1", "matched", &json!({}))]].concat();
    assert_eq!(found(&after), []);
}

#[test]
fn a_plan_that_was_dispatched_before_is_no_reuse() {
    let sets = json!({"blocked_tools": ["shell:curl"], "blocked_targets": ["data"]});
    let blocks = directive("change_approach", 0.5, &sets);
    let curl = attempt("s1", "completed", &[call("shell", &json!({"programs": ["curl"]}))]);
    let first = subtask("s1", &["shell"]);
    check(
        "blocked_reuse",
        &[blocks.clone(), first.clone(), curl.clone()],
        &[first, blocks.clone(), curl.clone()],
    );
    // Its own word counts, whatever the directive says by then.
    let (role, said) = subtask("s1", &["shell"]);
    let own = (
        role,
        with(said, &json!({"must_not": {"tools": ["shell:curl"], "targets": []}})),
    );
    let lifted = directive("refine", 0.4, &json!({}));
    check("blocked_reuse", &[own, lifted, curl.clone()], &[]);
    // One that another process dispatched may have been of an older plan.
    assert_eq!(found(&[blocks, curl]), []);
}

#[test]
fn blocked_reuse() {
    let sets = json!({"blocked_tools": ["search", "shell:curl"], "blocked_targets": ["./data/"]});
    let blocks = directive("change_approach", 0.5, &sets);
    let plans = |tool: &str| vec![blocks.clone(), subtask("s2", &[tool])];
    check("blocked_reuse", &plans("search"), &plans("shell"));
    let does = |step: Step| vec![blocks.clone(), subtask("s2", &["shell"]), step];
    let runs = |changes: Value| does(attempt("s2", "completed", &[call("shell", &changes)]));
    let refused = json!({"programs": ["curl"], "not_run": true});
    check("blocked_reuse", &runs(json!({"programs": ["curl"]})), &runs(refused));
    let reads = |path: &str| {
        does(attempt(
            "s2",
            "completed",
            &[call("read_file", &json!({"input": {"path": path}}))],
        ))
    };
    check("blocked_reuse", &reads("data"), &reads("data/other"));
    check(
        "blocked_reuse",
        &runs(json!({"programs": ["curl"]})),
        &runs(json!({"programs": ["wget"]})),
    );
    let plain = |tool: &str| does(attempt("s2", "completed", &[call(tool, &json!({}))]));
    check("blocked_reuse", &plain("search"), &plain("find_files"));
    // Only the latest directive counts.
    let lifted = [
        blocks.clone(),
        directive("refine", 0.4, &json!({})),
        subtask("s3", &["search"]),
    ];
    assert_eq!(found(&lifted), []);
}

#[test]
fn forbidden_model_call() {
    let judged = |status: &str| vec![input(true), attempt("s1", status, &[]), asked(Role::R4a)];
    check("forbidden_model_call", &judged("failed"), &judged("completed"));
    let twice = [
        &judged("completed")[..],
        &[outcome("s1", "matched", &json!({})), asked(Role::R4a)],
    ]
    .concat();
    check("forbidden_model_call", &twice, &[]);
    let merged = |status: &str| {
        vec![
            input(true),
            manifest(&["s1"]),
            outcome("s1", status, &json!({})),
            asked(Role::R4b),
        ]
    };
    check("forbidden_model_call", &merged("failed"), &merged("matched"));
    let late = [input(true), ending("abandon", "aborted", &json!({})), asked(Role::R2)];
    check("forbidden_model_call", &late, &[]);
    // Of a task that another process began, too little is known.
    assert_eq!(found(&[asked(Role::R4a)]), []);
    // What broke on infrastructure, and what was sent back already, is not for a model either.
    let (_, mut broken) = attempt("s1", "uncertain", &[]);
    broken["infrastructure"] = json!(true);
    let broken = [input(true), (Role::R3, broken), asked(Role::R4a)];
    check("forbidden_model_call", &broken, &judged("uncertain"));
    let again = [&judged("completed")[..], &[correction(), asked(Role::R4a)]].concat();
    check(
        "forbidden_model_call",
        &again,
        &[&judged("completed")[..], &[correction()]].concat(),
    );
}

#[test]
fn rejected_success() {
    let rejection = gap(&[outcome_value("s1", "matched")]);
    let good = ending("success", "within_threshold", &json!({}));
    let bad = ending("abandon", "replans_exhausted", &json!({}));
    let later = [
        rejection.clone(),
        summary(&[outcome_value("s1", "matched")]),
        good.clone(),
    ];
    check("rejected_success", &[rejection.clone(), good], &[rejection, bad]);
    assert_eq!(found(&later), [], "the next round was accepted");
    // A round in which a step failed is no rejection of the merged result.
    let partial = gap(&[outcome_value("s1", "matched"), outcome_value("s2", "failed")]);
    assert_eq!(found(&[partial, ending("success", "within_threshold", &json!({}))]), []);
}

#[test]
fn claim_without_evidence() {
    let claims = |changes: Value| vec![outcome("s1", "matched", &changes)];
    let on_word = json!({"criteria_verdicts": [verdict("verifiable", "pass", "model")]});
    let ran = with(on_word.clone(), &json!({"tool_calls": [call("shell", &json!({}))]}));
    let refused = with(
        on_word.clone(),
        &json!({"tool_calls": [call("shell", &json!({"not_run": true}))]}),
    );
    check("claim_without_evidence", &claims(on_word), &claims(ran));
    let by_check = json!({"criteria_verdicts": [verdict("verifiable", "pass", "check")]});
    check("claim_without_evidence", &claims(refused), &claims(by_check));
    check(
        "claim_without_evidence",
        &claims(json!({"criteria_verdicts": []})),
        &claims(json!({})),
    );
    let failing = json!({"criteria_verdicts": [verdict("plausible", "fail", "model")]});
    check(
        "claim_without_evidence",
        &claims(failing),
        &[outcome("s1", "failed", &json!({}))],
    );
    let unmet = json!({"unmet": ["c"]});
    check(
        "claim_without_evidence",
        &[ending("accept", "met", &unmet)],
        &[ending("success", "within_threshold", &unmet)],
    );
    let none = json!({"criteria_verdicts": [], "success_criteria": []});
    check("claim_without_evidence", &claims(none), &claims(json!({})));
    let one_of_two = json!({"success_criteria": ["c", "d"]});
    check("claim_without_evidence", &claims(one_of_two), &claims(json!({})));
}

#[test]
fn cost_runaway() {
    let calls = |n: usize| vec![asked(Role::R3); n];
    check("cost_runaway", &calls(250), &calls(200));
    // A plan of a hundred subtasks asks more than that, which is normal.
    let large = |n: usize| {
        let plan: Vec<Step> = (0..100).map(|n| subtask(&format!("s{n}"), &[])).collect();
        [plan, calls(n)].concat()
    };
    check("cost_runaway", &large(2_001), &large(2_000));
    // Twenty tasks of a model that costs nothing say nothing of one that does.
    let mut auditor = Auditor::new(at(0), REPORT_PERIOD, Past::default());
    let mut wire = Wire::default();
    for n in 10..40 {
        let _ = auditor.observe(at(1), wire.send(Role::User, n, build::input(n, "x")));
        let _ = auditor.observe(at(1), wire.send(Role::R7, n, build::result(n, 0.0)));
    }
    assert_eq!(auditor.observe(at(1), observed(&mut wire, &answered(60_000))).len(), 1);
    // Against the past: 20 tasks of 10,000 tokens.
    let run = |tokens: u64| {
        let mut past = Past::default();
        (past.ledger.totals.ended_with_tokens, past.ledger.totals.tokens_of_ended) = (20, 200_000);
        let mut auditor = Auditor::new(at(0), REPORT_PERIOD, past);
        let effects = auditor.observe(at(1), observed(&mut Wire::default(), &answered(tokens)));
        effects.len() - 1
    };
    assert_eq!((run(79_000), run(81_000)), (0, 1));
    assert_eq!(found(&[answered(10_000_000)]), [], "without a past nothing is too much");
    // However cheap the others were, a small task is none.
    let small = |tokens: u64| {
        let mut past = Past::default();
        (past.ledger.totals.ended_with_tokens, past.ledger.totals.tokens_of_ended) = (20, 20_000);
        let mut auditor = Auditor::new(at(0), REPORT_PERIOD, past);
        auditor
            .observe(at(1), observed(&mut Wire::default(), &answered(tokens)))
            .len()
            - 1
    };
    assert_eq!((small(49_999), small(50_001)), (0, 1));
}

#[test]
fn memory_junk() {
    let one = |changes: Value| vec![megram(&changes)];
    let ahead = json!({"created_at": at(10_000_000)});
    for bad in [json!({"content": " ok "}), json!({"f": 0.0}), ahead] {
        check("memory_junk", &one(bad), &one(json!({})));
    }
    check(
        "memory_junk",
        &vec![megram(&json!({})); 5],
        &vec![megram(&json!({})); 3],
    );
    let ends = |cause: &str| {
        vec![
            megram(&json!({"state": "abandon"})),
            ending("abandon", cause, &json!({})),
        ]
    };
    check("memory_junk", &ends("aborted"), &ends("divergence"));
    check("memory_junk", &ends("no_model"), &ends("budget"));
    let (_, wish) = megram(&json!({"content": "ok"}));
    assert_eq!(
        found(&[(Role::User, wish)]),
        [],
        "a person may have anything remembered"
    );
    let lessons = |count: u32| -> Vec<Step> {
        let lesson = |n| megram(&json!({"content": format!("lesson number {n}")}));
        (0..count).map(lesson).collect()
    };
    check("memory_junk", &lessons(501), &lessons(500));
    // Tokens or money that ran out say nothing about the approach; time that ran out does.
    let reached = json!({"type": "BudgetReached", "task_id": task(1), "budget": "tokens", "used": 10.0, "limit": 9.0});
    let spent = [&[(Role::Runtime, reached)], &ends("budget")[..]].concat();
    check("memory_junk", &spent, &ends("budget"));
}

#[test]
fn consent_without_person() {
    let request = (
        Role::R3,
        json!({
            "type": "ConfirmationRequest", "request_id": "q1", "task_id": task(1), "subtask_id": "s1", "tool": "shell",
            "effect": "destroy", "action": "rm x", "reason": "r",
        }),
    );
    let answer = |consent: &str| {
        let said = json!({"type": "ConfirmationAnswer", "request_id": "q1", "task_id": task(1), "consent": consent});
        (Role::User, said)
    };
    let asks = |present, consent| vec![input(present), request.clone(), answer(consent)];
    check("consent_without_person", &asks(false, "yes"), &asks(false, "nobody"));
    let twice = [&asks(true, "yes")[..], &[answer("always")]].concat();
    check("consent_without_person", &twice, &asks(true, "yes"));
    check(
        "consent_without_person",
        &[input(true), answer("yes")],
        &[input(true), answer("no")],
    );
    // Whoever takes a task up says anew whether somebody is there; what was asked before is not known to the one who watches now.
    let resumed = |present: Value| {
        let said = json!({"type": "TaskResumed", "task_id": task(1), "away_ms": 5, "person_present": present});
        (Role::Runtime, said)
    };
    let later = |before: bool, now: Value| vec![input(before), resumed(now), request.clone(), answer("yes")];
    check(
        "consent_without_person",
        &later(true, json!(false)),
        &later(false, json!(true)),
    );
    assert_eq!(found(&later(false, Value::Null)), [], "nobody said so");
    assert_eq!(found(&[resumed(json!(true)), answer("yes")]), []);
}

/// One finding of each detector, as it is shown on its page.
fn examples() -> BTreeMap<&'static str, String> {
    let breaks = |d| directive("break_symmetry", d, &json!({}));
    let first = |steps: &[Step]| found(steps)[0].to_string();
    let ended = ending("abandon", "infeasible", &json!({}));
    let blocks = directive("change_approach", 0.5, &json!({"blocked_tools": ["shell:curl"]}));
    let on_word = json!({"criteria_verdicts": [verdict("verifiable", "pass", "model")]});
    let (_, refine) = directive("refine", 0.5, &json!({}));
    let (_, lesson) = megram(&json!({}));
    let curl = [call("shell", &json!({"programs": ["curl"]}))];
    let yes = json!({"type": "ConfirmationAnswer", "request_id": "q1", "task_id": task(1), "consent": "yes"});
    BTreeMap::from([
        (
            "boundary_violation",
            first(&[(Role::R5, json!({"type": "AuditQuery"}))]),
        ),
        ("forbidden_effect", first(&[asked(Role::R7)])),
        ("foreign_directive", first(&[(Role::R4b, refine)])),
        ("foreign_megram", first(&[(Role::R2, lesson)])),
        ("second_final_result", first(&[ended.clone(), ended])),
        ("ggs_thrashing", first(&[breaks(0.8), breaks(0.8)])),
        ("endless_correction", first(&vec![correction(); 3])),
        ("duplicate_subtask", first(&[subtask("s1", &[]), subtask("s1", &[])])),
        (
            "fan_in_incomplete",
            first(&[
                input(true),
                manifest(&["s1", "s2"]),
                gap(&[outcome_value("s1", "failed")]),
            ]),
        ),
        (
            "blocked_reuse",
            first(&[blocks, subtask("s2", &["shell"]), attempt("s2", "completed", &curl)]),
        ),
        ("forbidden_model_call", first(&[input(true), asked(Role::R4a)])),
        (
            "rejected_success",
            first(&[
                gap(&[outcome_value("s1", "matched")]),
                ending("success", "within_threshold", &json!({})),
            ]),
        ),
        ("claim_without_evidence", first(&[outcome("s1", "matched", &on_word)])),
        ("cost_runaway", first(&vec![asked(Role::R3); 201])),
        ("memory_junk", first(&[megram(&json!({"content": "ok"}))])),
        ("consent_without_person", first(&[input(false), (Role::User, yes)])),
    ])
}

#[test]
fn every_detector_has_its_page() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/anomalies");
    let examples = examples();
    let mut pages = BTreeMap::new();
    let note = "<!-- written by `UPDATE_DOCS=1 cargo test -p artoo-auditor`; do not edit -->";
    let mut index = format!(
        "# What the auditor looks for\n\n{note}\n\nSee design §16 and [the auditor's page](../auditor.md). Each is a pure function of what was seen; \
         `artoo audit tail --anomaly NAME` shows the findings of one.\n\n| detector | finds | shown in |\n|---|---|---|\n"
    );
    for row in DETECTORS {
        let shown = row.list.field();
        writeln!(index, "| [`{0}`]({0}.md) | {1} | `{shown}` |", row.name, row.title).unwrap();
        let example = examples
            .get(row.name)
            .map(|line| format!("## As it is told\n\n```text\n{line}\n```\n\n"))
            .unwrap_or_default();
        let mut title = row.title.to_owned();
        title[..1].make_ascii_uppercase();
        let text = format!(
            "# `{}`\n\n{note}\n\n{title}. Shown in `{shown}`.\n\n## What raises it\n\n{}\n\n{example}## What does not\n\n{}\n\n## What it means\n\n{}\n\n## What to do\n\n{}\n",
            row.name, row.rule, row.spares, row.means, row.advice
        );
        pages.insert(format!("{}.md", row.name), text);
        // Those without an example here are shown in the tests of gaps, order and drift.
        assert!(
            examples.contains_key(row.name) || ["gap", "order", "drift"].contains(&row.name),
            "{} has no example",
            row.name
        );
        assert!(matches!(row.list, List::Boundary | List::Anomaly | List::Drift));
    }
    pages.insert("README.md".to_owned(), index);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in &pages {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
    let there = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(there, pages.len(), "docs/anomalies holds other files");
    for (name, text) in &pages {
        assert_eq!(
            std::fs::read_to_string(folder.join(name)).unwrap_or_default(),
            *text,
            "docs/anomalies/{name} is stale: run UPDATE_DOCS=1 cargo test -p artoo-auditor"
        );
    }
}

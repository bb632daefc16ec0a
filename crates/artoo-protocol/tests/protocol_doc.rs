//! `docs/protocol.md` shows every route and one JSON example of every message; this test writes it and notices when it is stale.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

use std::fmt::Write as _;

use artoo_protocol::message::*;
use artoo_protocol::tool::EffectClass;
use artoo_protocol::*;
use serde_json::json;

fn task() -> TaskId {
    TaskId::new("count_rust_files_3fa9c2d1")
}

fn at() -> Timestamp {
    Timestamp::parse("2026-02-27T09:30:00.000Z").unwrap()
}

fn subtask() -> SubTaskId {
    SubTaskId::derive(at(), &task(), 0)
}

fn slug() -> Slug {
    Slug::repair("count_rust_files")
}

const INTENT: &str = "count the Rust files in crates and write the number to rust_files.txt";

fn criterion() -> Criterion {
    Criterion {
        criterion: "rust_files.txt holds one number".into(),
        mode: Mode::Verifiable,
        check: Some(Check::FileContains {
            path: "rust_files.txt".into(),
            pattern: r"^\d+\s*$".into(),
        }),
    }
}

fn verdict(verdict: Verdict) -> CriterionVerdict {
    CriterionVerdict {
        criterion: criterion().criterion,
        mode: Mode::Verifiable,
        verdict,
        failure_class: (verdict == Verdict::Fail).then_some(FailureClass::Logical),
        evidence: "rust_files.txt: 3 bytes, `87\\n`".into(),
        source: VerdictSource::Check,
    }
}

fn call() -> ToolCall {
    ToolCall {
        tool: "shell".into(),
        input: json!({"command": "find crates -type f -name '*.rs' | wc -l"}),
        output: "87\n".into(),
        truncated: false,
        lines: 1,
        exit: Some(0),
        error: None,
        failure_class: None,
        started_at: at(),
        elapsed_ms: Millis(12),
        interrupted: false,
        effect: EffectClass::Read,
        programs: vec!["find".into(), "wc".into()],
        touched: vec![],
        not_run: false,
    }
}

fn outcome(status: OutcomeStatus) -> SubTaskOutcome {
    let failed = status == OutcomeStatus::Failed;
    SubTaskOutcome {
        subtask_id: subtask(),
        parent_task_id: task(),
        intent: "count the Rust files in crates".into(),
        status,
        output: json!("87"),
        failure_reason: failed.then(|| "the file holds a sentence, not a number".into()),
        success_criteria: vec![criterion()],
        criteria_verdicts: vec![verdict(if failed { Verdict::Fail } else { Verdict::Pass })],
        gap_trajectory: vec![Attempt {
            attempt: 1,
            score: if failed { Unit01::ZERO } else { Unit01::ONE },
            unmet_criteria: if failed { vec![criterion().criterion] } else { vec![] },
            failure_class: failed.then_some(FailureClass::Logical),
        }],
        tool_calls: vec![call()],
        made: Vec::new(),
        carried_from: None,
        uncertain: None,
        infeasible: false,
        refused: false,
        infrastructure: false,
    }
}

fn loss() -> Loss {
    Loss {
        d: Unit01::new(1.0).unwrap(),
        p: Unit01::new(1.0).unwrap(),
        omega: Unit01::new(0.21).unwrap(),
        l: Finite::new(0.921).unwrap(),
    }
}

#[allow(clippy::too_many_lines, reason = "one example after the other")]
fn example(kind: MessageKind) -> Message {
    let question = "confirm-1".to_owned();
    match kind {
        MessageKind::UserInput => UserInput {
            task_id: TaskId::new("input_3fa9c2d1"),
            text: INTENT.into(),
            history: vec![Turn {
                input: "hello".into(),
                summary: "Hello! What shall I do?".into(),
            }],
            person_present: true,
            scope: vec![],
        }
        .into(),
        MessageKind::ClarificationRequest => ClarificationRequest {
            task_id: TaskId::new("input_3fa9c2d1"),
            round: 1,
            questions: vec!["Which folder do you mean?".into()],
        }
        .into(),
        MessageKind::ClarificationAnswer => ClarificationAnswer {
            task_id: TaskId::new("input_3fa9c2d1"),
            round: 1,
            text: "crates".into(),
        }
        .into(),
        MessageKind::TaskSpec => TaskSpec {
            task_id: task(),
            slug: slug(),
            intent: INTENT.into(),
            constraints: Constraints::default(),
            raw_input: INTENT.into(),
            scope: vec![],
        }
        .into(),
        MessageKind::DirectAnswer => DirectAnswer {
            task_id: TaskId::new("greeting_3fa9c2d1"),
            slug: Slug::repair("greeting"),
            intent: "greet".into(),
            answer: "Hello!".into(),
        }
        .into(),
        MessageKind::MemoryQuery => MemoryQuery {
            task_id: task(),
            query: 1,
            space: "intent:count_the_rust".into(),
            entity: "env:local".into(),
            intent: INTENT.into(),
            tools: vec!["shell".into(), "write_file".into()],
        }
        .into(),
        MessageKind::MemoryReply => MemoryReply {
            recent: vec![Lesson {
                id: MegramId::derive(at(), &task(), 0),
                level: Level::M,
                space: "intent:count_the_rust".into(),
                entity: "env:local".into(),
                created_at: at(),
                content: "worked: shell `find crates -type f -name '*.rs' | wc -l`".into(),
                state: MacroState::Accept,
                sigma: Valence::new(1.0).unwrap(),
            }],
            potentials: vec![TaggedPotentials {
                space: "tool:shell".into(),
                entity: "env:local".into(),
                potentials: Potentials {
                    attention: Finite::new(0.9).unwrap(),
                    decision: Finite::new(0.9).unwrap(),
                    action: MemoryAction::Exploit,
                },
            }],
            ..MemoryReply::empty(task(), 1)
        }
        .into(),
        MessageKind::PlanningFailed => PlanningFailed {
            task_id: task(),
            slug: slug(),
            intent: INTENT.into(),
            reason: "three plans in a row used the blocked tool `search`".into(),
            cause: Cause::PlanningFailed,
        }
        .into(),
        MessageKind::DispatchManifest => DispatchManifest {
            task_id: task(),
            slug: slug(),
            intent: INTENT.into(),
            round: 1,
            subtask_ids: vec![subtask()],
            subtasks: vec![PlannedSubTask {
                subtask_id: subtask(),
                sequence: 1,
                intent: "count the Rust files in crates".into(),
                success_criteria: vec![criterion()],
                deadline: Some(at().plus(Millis(60_000))),
            }],
            carried: vec![],
            task_criteria: vec![criterion()],
            started_at: at(),
            dispatched_at: at().plus(Millis(900)),
            rules_used: vec![],
        }
        .into(),
        MessageKind::SubTask => SubTask {
            subtask_id: subtask(),
            parent_task_id: task(),
            intent: "count the Rust files in crates".into(),
            context: String::new(),
            success_criteria: vec![criterion()],
            sequence: 1,
            tools: vec!["shell:find".into()],
            deadline: None,
            must_not: MustNot {
                tools: vec!["shell:curl".into()],
                targets: vec![],
            },
            caution: None,
            scope: vec![],
        }
        .into(),
        MessageKind::ConfirmationRequest => ConfirmationRequest {
            request_id: question,
            task_id: task(),
            subtask_id: subtask(),
            tool: "shell".into(),
            effect: EffectClass::Destroy,
            action: "rm old.txt".into(),
            reason: "`rm` deletes".into(),
            grant: Some("destroy:rm old.txt".into()),
        }
        .into(),
        MessageKind::ConfirmationAnswer => ConfirmationAnswer {
            request_id: question,
            task_id: task(),
            consent: Consent::No,
        }
        .into(),
        MessageKind::ExecutionResult => ExecutionResult {
            subtask_id: subtask(),
            parent_task_id: task(),
            attempt: 1,
            status: ExecutionStatus::Completed,
            output: "87".into(),
            reason: None,
            infrastructure: false,
            infeasible: false,
            refused: false,
            tool_calls: vec![call()],
        }
        .into(),
        MessageKind::CorrectionSignal => CorrectionSignal {
            subtask_id: subtask(),
            parent_task_id: task(),
            attempt_number: 1,
            failed_criterion: criterion().criterion,
            failure_class: FailureClass::Logical,
            what_was_wrong: "the file holds a sentence".into(),
            what_to_do: "write the number alone".into(),
            avoid_calls: vec![call().to_string()],
        }
        .into(),
        MessageKind::SubTaskOutcome => outcome(OutcomeStatus::Matched).into(),
        MessageKind::ReplanRequest => ReplanRequest {
            task_id: task(),
            slug: slug(),
            intent: INTENT.into(),
            gap_summary: "1 of 1 subtasks failed: the file holds a sentence, not a number".into(),
            failed_subtasks: vec![subtask()],
            correction_count: 2,
            elapsed_ms: Millis(7_500),
            outcomes: vec![outcome(OutcomeStatus::Failed)],
            task_verdicts: vec![],
            merged_output: json!(null),
            recommendation: Recommendation::Replan,
        }
        .into(),
        MessageKind::OutcomeSummary => OutcomeSummary {
            task_id: task(),
            slug: slug(),
            intent: INTENT.into(),
            summary: "87 Rust files; the number is in rust_files.txt".into(),
            merged_output: json!("87"),
            elapsed_ms: Millis(4_200),
            outcomes: vec![outcome(OutcomeStatus::Matched)],
            task_verdicts: vec![verdict(Verdict::Pass)],
        }
        .into(),
        MessageKind::PlanDirective => PlanDirective {
            task_id: task(),
            loss: loss(),
            prev_directive: PreviousDirective::Init,
            directive: Directive::BreakSymmetry,
            blocked_tools: vec!["shell:find".into()],
            blocked_targets: vec![],
            failed_criterion: criterion().criterion,
            failure_class: FailureMix::Logical,
            budget_pressure: Unit01::new(0.21).unwrap(),
            grad_l: Finite::ZERO,
            urgency: Urgency::Neutral,
            rationale: "the approach gave a wrong result and there is no trend: use another kind of tool".into(),
            outcomes: vec![outcome(OutcomeStatus::Failed)],
            gap_summary: "1 of 1 subtasks failed".into(),
            task_verdicts: vec![verdict(Verdict::Fail)],
        }
        .into(),
        MessageKind::PartialResultRequest => PartialResultRequest {
            task_id: task(),
            intent: INTENT.into(),
            reason: "four fifths of the resources are used".into(),
            outcomes: vec![outcome(OutcomeStatus::Failed)],
        }
        .into(),
        MessageKind::PartialResult => PartialResult {
            task_id: task(),
            achieved: "87 files were counted".into(),
            failed: "the number was not written".into(),
            next_steps: vec!["check that the workspace is writable".into()],
        }
        .into(),
        MessageKind::BudgetReached => BudgetReached {
            task_id: task(),
            budget: BudgetKind::Tokens,
            used: Finite::new(20_400.0).unwrap(),
            limit: Finite::new(20_000.0).unwrap(),
        }
        .into(),
        MessageKind::TaskResumed => TaskResumed {
            task_id: task(),
            away_ms: Millis::from_seconds(90),
            person_present: Some(true),
        }
        .into(),
        MessageKind::TaskAborted => TaskAborted {
            task_id: task(),
            reason: "Ctrl+C".into(),
        }
        .into(),
        MessageKind::FinalResult => FinalResult {
            task_id: task(),
            slug: slug(),
            intent: INTENT.into(),
            summary: "87 Rust files; the number is in rust_files.txt".into(),
            output: json!("87"),
            loss: Loss::default(),
            grad_l: Finite::ZERO,
            replans: 0,
            prev_directive: PreviousDirective::Init,
            directive: Ending::Accept,
            cause: Cause::Met,
            unmet: vec![],
            unverified: vec![],
            honesty: Box::new(Honesty {
                proven: vec![Grounds {
                    criterion: "a.txt exists".to_owned(),
                    subtask_id: Some(subtask()),
                    evidence: "`/w/a.txt` exists, 9 bytes".to_owned(),
                    calls: vec![],
                }],
                ..Honesty::default()
            }),
        }
        .into(),
        MessageKind::Megram => Megram {
            id: MegramId::derive(at(), &task(), 0),
            level: Level::M,
            created_at: at(),
            last_recalled_at: None,
            space: "intent:count_the_rust".into(),
            entity: "env:local".into(),
            content: "worked: shell `find crates -type f -name '*.rs' | wc -l`".into(),
            state: MacroState::Accept,
            f: Magnitude::new(0.9).unwrap(),
            sigma: Valence::new(1.0).unwrap(),
            k: DecayPerDay::new(0.05).unwrap(),
            sources: vec![],
            supersedes: None,
            origin: Some(task().to_string()),
        }
        .into(),
        MessageKind::AuditQuery => AuditQuery {}.into(),
        MessageKind::AuditReport => AuditReport {
            trigger: "on-demand".into(),
            window_start: at(),
            window_end: at().plus(Millis(300_000)),
            tasks_observed: 1,
            total_corrections: 2,
            total_replans: 1,
            gap_trends: vec![GapTrend {
                task_id: task(),
                trend: Trend::Stable,
            }],
            boundary_violations: vec![],
            drift_alerts: vec![],
            anomalies: vec![],
            tool_health: ToolHealth {
                execution_failures: 0,
                environmental_retries: 0,
                logical_retries: 2,
            },
            tasks_total: 1,
            corrections_total: 2,
        }
        .into(),
    }
}

fn page() -> String {
    let mut page = String::from(
        "# Protocol\n\n<!-- written by `UPDATE_DOCS=1 cargo test -p artoo-protocol --test protocol_doc`; do not edit -->\n\n\
         Every message travels in an envelope `{id, seq, task_id, timestamp, from, to, payload}`; `payload.type` names the message. \
         See design §3.\n\n## Routes\n\n| message | from | to | copies |\n|---|---|---|---|\n",
    );
    for route in ROUTES {
        let copies = route
            .copies
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        writeln!(
            page,
            "| {} | {} | {} | {copies} |",
            route.kind.name(),
            route.from,
            route.to
        )
        .unwrap();
    }
    page.push_str("\n## Messages\n");
    for (index, &kind) in MessageKind::ALL.iter().enumerate() {
        let message = example(kind);
        assert_eq!(message.kind(), kind);
        let route = ROUTES.iter().find(|r| r.kind == kind).unwrap();
        let envelope = Envelope {
            id: EnvelopeId::new(format!("01954d1e-8b00-7000-8000-{index:012}")),
            seq: index as u64 + 1,
            task_id: (kind != MessageKind::AuditQuery && kind != MessageKind::AuditReport).then(task),
            timestamp: at(),
            from: route.from,
            to: route.to,
            payload: message,
        };
        let text = serde_json::to_string_pretty(&envelope).unwrap();
        assert_eq!(
            serde_json::from_str::<Envelope>(&text).unwrap(),
            envelope,
            "{kind:?} does not survive its JSON"
        );
        write!(page, "\n### {}\n\n```json\n{text}\n```\n", kind.name()).unwrap();
    }
    page
}

#[test]
fn the_protocol_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == page,
        "docs/protocol.md is stale: run UPDATE_DOCS=1 cargo test -p artoo-protocol --test protocol_doc"
    );
}

#[test]
fn fields_of_a_later_version_are_ignored() {
    let mut value = serde_json::to_value(example(MessageKind::FinalResult)).unwrap();
    value["invented_later"] = json!({"a": 1});
    value.as_object_mut().unwrap().remove("unverified");
    let Message::FinalResult(read) = serde_json::from_value(value).unwrap() else {
        panic!("another message")
    };
    assert_eq!(read.unverified, Vec::<String>::new());
}

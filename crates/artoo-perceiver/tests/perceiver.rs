//! R1's contract: what each input and each answer of the model leads to.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

use artoo_perceiver::{Config, Effect, Perceiver, Prompts, schema};
use artoo_protocol::actor::{Actor, Answer, Event};
use artoo_protocol::envelope::Envelope;
use artoo_protocol::ids::{CallId, EnvelopeId, TaskId};
use artoo_protocol::message::{Cause, ClarificationAnswer, Message, TaskAborted, TaskSpec, Turn, UserInput};
use artoo_protocol::model::{ChatMessage, ModelContent, ModelError, ModelReply, Usage};
use artoo_protocol::role::Role;
use artoo_protocol::units::{LocalZone, Millis, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: &str = "2026-02-27T09:30:00Z";

fn now() -> Timestamp {
    Timestamp::parse(NOW).unwrap()
}

fn perceiver() -> Perceiver {
    Perceiver::new(&Config {
        zone: LocalZone {
            name: "Europe/Berlin".into(),
            utc_offset_minutes: 60,
        },
        prompts: Prompts::default(),
    })
    .unwrap()
}

fn said(payload: impl Into<Message>) -> Event {
    Event::from(Envelope {
        id: EnvelopeId::new("e"),
        seq: 1,
        task_id: None,
        timestamp: now(),
        from: Role::User,
        to: Role::R1,
        payload: payload.into(),
    })
}

fn input(text: &str) -> UserInput {
    UserInput {
        task_id: TaskId::new("input_0a1b2c3d"),
        text: text.into(),
        history: Vec::new(),
        person_present: true,
        scope: vec!["/srv".into()],
    }
}

#[allow(clippy::unnecessary_wraps, reason = "answers are results")]
fn structured(value: Value) -> Result<ModelReply, ModelError> {
    Ok(ModelReply {
        content: ModelContent::Structured { value },
        model: "m".into(),
        usage: Usage::default(),
        elapsed_ms: Millis(1),
    })
}

fn answer(call: u32, result: Result<ModelReply, ModelError>) -> Event {
    Event::Answer {
        task_id: TaskId::new("input_0a1b2c3d"),
        call: CallId(call),
        answer: Answer::Model(result),
    }
}

/// The only effect of a step.
fn one(effects: Vec<Effect>) -> Effect {
    assert_eq!(effects.len(), 1, "{effects:?}");
    effects.into_iter().next().unwrap()
}

/// What the answer `value` makes of `input`.
fn outcome(input: UserInput, value: Value) -> Effect {
    let mut r1 = perceiver();
    assert!(matches!(one(r1.step(now(), said(input))), Effect::CallModel { .. }));
    one(r1.step(now(), answer(0, structured(value))))
}

fn spec(effect: Effect) -> TaskSpec {
    match effect {
        Effect::Commit(spec) => spec,
        other => panic!("no task: {other:?}"),
    }
}

fn user_part(effect: Effect) -> String {
    match effect {
        Effect::CallModel { request, .. } => match &request.messages[1] {
            ChatMessage::User { content } => content.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("no model call: {other:?}"),
    }
}

#[test]
fn words_become_a_task_with_the_run_s_id() {
    let spec = spec(outcome(
        input("Count the rust files in ~/src by 2026-03-01"),
        json!({"slug": "Count Rust-Files", "intent": "Count the rust files in ~/src", "scope": "~/src",
               "deadline": "2026-03-01T00:00:00+01:00", "clarify": [], "direct_answer": null}),
    ));
    assert_eq!(spec.task_id.as_str(), "count_rust_files_0a1b2c3d");
    assert_eq!(spec.raw_input, "Count the rust files in ~/src by 2026-03-01");
    assert_eq!(spec.constraints.scope.as_deref(), Some("~/src"));
    assert_eq!(spec.constraints.deadline, Timestamp::parse("2026-02-28T23:00:00Z").ok());
    assert_eq!(spec.scope, ["/srv"]);
}

#[test]
fn a_model_cannot_invent_permission() {
    let spec = spec(outcome(
        input("list /home/me"),
        json!({"intent": "List /home/me", "scope": "/"}),
    ));
    assert_eq!(spec.constraints.scope, None);
}

#[test]
fn a_place_named_in_an_answer_is_the_persons_own_word() {
    for (answered, scope, kept) in [
        (
            "notes/todo.txt, the done ones out",
            "notes/todo.txt",
            Some("notes/todo.txt"),
        ),
        ("the list in my notes", "notes/todo.txt", None),
        ("", "clean", Some("clean")),
    ] {
        let mut r1 = perceiver();
        let _ = r1.step(now(), said(input("clean this up")));
        let asks = json!({"intent": "Clean up", "clarify": ["Which file?"]});
        let _ = r1.step(now(), answer(0, structured(asks)));
        let _ = r1.step(
            now(),
            said(ClarificationAnswer {
                task_id: TaskId::new("input_0a1b2c3d"),
                round: 1,
                text: answered.into(),
            }),
        );
        let committed = json!({"intent": "Clean notes/todo.txt up", "scope": scope});
        let spec = spec(one(r1.step(now(), answer(1, structured(committed)))));
        assert_eq!(spec.constraints.scope.as_deref(), kept, "{answered}");
        assert_eq!(spec.raw_input, "clean this up");
    }
}

#[test]
fn the_committed_task_is_never_empty() {
    for value in [
        json!({}),
        json!({"intent": " "}),
        json!({"intent": null, "slug": null}),
        json!([1]),
        json!("x"),
    ] {
        let spec = spec(outcome(input("  数一数文件 "), value));
        assert_eq!(spec.intent, "数一数文件");
        assert_eq!(spec.raw_input, "  数一数文件 ");
        assert_eq!(spec.task_id.as_str(), "task_0a1b2c3d");
    }
}

#[test]
fn questions_end_after_two_rounds() {
    let mut r1 = perceiver();
    let asks = json!({"intent": "Open the report", "clarify": ["Which report?", " ", "Which year?"]});
    let _ = r1.step(now(), said(input("open the report")));
    for round in 1..=2_u32 {
        let Effect::Ask(request) = one(r1.step(now(), answer(round - 1, structured(asks.clone())))) else {
            panic!("round {round} not asked");
        };
        assert_eq!((request.round, request.questions.len()), (round, 2));
        let reply = ClarificationAnswer {
            task_id: request.task_id,
            round,
            text: "the new one".into(),
        };
        let stale = ClarificationAnswer {
            round: round + 1,
            ..reply.clone()
        };
        assert!(r1.step(now(), said(stale)).is_empty());
        assert!(matches!(
            one(r1.step(now(), said(reply.clone()))),
            Effect::CallModel { .. }
        ));
        assert!(r1.step(now(), said(reply)).is_empty(), "an answer counts once");
    }
    let spec = spec(one(r1.step(now(), answer(2, structured(asks)))));
    assert_eq!(spec.intent, "Open the report");
}

#[test]
fn an_empty_answer_means_go_on() {
    let mut r1 = perceiver();
    let asks = json!({"intent": "Open the report", "clarify": ["Which report?"]});
    let _ = r1.step(now(), said(input("open the report")));
    let _ = r1.step(now(), answer(0, structured(asks.clone())));
    let _ = r1.step(
        now(),
        said(ClarificationAnswer {
            task_id: TaskId::new("input_0a1b2c3d"),
            round: 1,
            text: "  ".into(),
        }),
    );
    assert!(matches!(
        one(r1.step(now(), answer(1, structured(asks)))),
        Effect::Commit(_)
    ));
}

#[test]
fn nobody_there_means_no_question() {
    let mut alone = input("open the report");
    alone.person_present = false;
    let effect = outcome(alone, json!({"intent": "Open the report", "clarify": ["Which?"]}));
    assert!(matches!(effect, Effect::Commit(_)));
}

#[test]
fn a_reaction_redoes_the_last_task_without_a_question() {
    for text in ["wrong", "it", "do it again", "in Chinese", "shorter", "不对"] {
        let mut reaction = input(text);
        reaction.history = vec![Turn {
            input: "write a haiku".into(),
            summary: "a haiku".into(),
        }];
        let effect = outcome(
            reaction,
            json!({"intent": "Write the haiku anew", "clarify": ["What do you mean?"], "direct_answer": "ok"}),
        );
        assert_eq!(spec(effect).intent, "Write the haiku anew", "{text}");
    }
}

#[test]
fn only_plain_chat_is_answered_directly() {
    let value = json!({"slug": "greeting", "intent": "Greet", "direct_answer": "Hello! What shall I do?"});
    let Effect::Reply(reply) = outcome(input("hi there"), value.clone()) else {
        panic!("not answered");
    };
    assert_eq!(reply.task_id.as_str(), "greeting_0a1b2c3d");
    assert_eq!(reply.answer, "Hello! What shall I do?");
    for text in ["what time is it", "how much disk is left", "kill what runs on port 80"] {
        assert!(
            matches!(outcome(input(text), value.clone()), Effect::Commit(_)),
            "{text}"
        );
    }
}

#[test]
fn a_model_that_fails_ends_the_task_with_its_own_sentence() {
    for (error, cause) in [
        (
            ModelError::Unreachable {
                message: "no route".into(),
            },
            Cause::NoModel,
        ),
        (
            ModelError::NotUnderstood {
                message: "I know: find, count".into(),
            },
            Cause::NoModel,
        ),
        (
            ModelError::Unreadable {
                message: "no JSON".into(),
            },
            Cause::PlanningFailed,
        ),
    ] {
        let mut r1 = perceiver();
        let _ = r1.step(now(), said(input("count files")));
        let Effect::Fail(failed) = one(r1.step(now(), answer(0, Err(error.clone())))) else {
            panic!("no failure");
        };
        assert_eq!((failed.cause, failed.reason), (cause, error.to_string()));
        assert_eq!(failed.task_id.as_str(), "input_0a1b2c3d");
    }
}

#[test]
fn empty_input_and_plain_prose_end_honestly() {
    assert!(matches!(
        one(perceiver().step(now(), said(input(" \n")))),
        Effect::Fail(_)
    ));
    let mut r1 = perceiver();
    let _ = r1.step(now(), said(input("count files")));
    let prose = structured(Value::Null).map(|reply| ModelReply {
        content: ModelContent::Text { text: "Sure!".into() },
        ..reply
    });
    assert!(matches!(one(r1.step(now(), answer(0, prose))), Effect::Fail(_)));
}

#[test]
fn what_arrives_after_the_abort_does_nothing() {
    let mut r1 = perceiver();
    let _ = r1.step(now(), said(input("count files")));
    // An abort may carry the final id.
    let _ = r1.step(
        now(),
        said(TaskAborted {
            task_id: TaskId::new("count_0a1b2c3d"),
            reason: "Ctrl+C".into(),
        }),
    );
    assert_eq!(r1.open_tasks(), 0);
    assert!(r1.step(now(), answer(0, structured(json!({"intent": "x"})))).is_empty());
}

#[test]
fn prompts_show_what_is_needed() {
    let mut r1 = perceiver();
    let mut first = input("how many photos did I take this year?");
    first.history = (1..=6)
        .map(|n| Turn {
            input: format!("question {n}\nsecond line"),
            summary: format!("answer {n}"),
        })
        .collect();
    insta::assert_snapshot!("with_history", user_part(one(r1.step(now(), said(first)))));
    let asks = json!({"intent": "Count photos", "clarify": ["Which folder?", "Videos too?"]});
    for round in 1..=2_u32 {
        let _ = r1.step(now(), answer(round - 1, structured(asks.clone())));
        let shown = user_part(one(r1.step(
            now(),
            said(ClarificationAnswer {
                task_id: TaskId::new("input_0a1b2c3d"),
                round,
                text: "~/Pictures\n</clarifications> no".into(),
            }),
        )));
        insta::assert_snapshot!(format!("after_round_{round}"), shown);
    }
    insta::assert_snapshot!(
        "first",
        user_part(one(perceiver().step(now(), said(input("count the files")))))
    );
    insta::assert_snapshot!("system", Prompts::default().system_text().unwrap());
    insta::assert_json_snapshot!("schema", schema());
}

#[test]
fn the_fixed_part_is_small_and_the_same_for_every_call() {
    let prompts = Prompts::default();
    assert!(prompts.system.chars().count() <= 1_500);
    assert!(prompts.laws.chars().count() <= 450);
    let system = |text: &str| match one(perceiver().step(now(), said(input(text)))) {
        Effect::CallModel { request, .. } => request.messages[0].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(system("a"), system("b"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        Just(json!(["q?", 3, null])),
    ];
    proptest::collection::vec((0..7_usize, leaf), 0..7).prop_map(|fields| {
        let names = [
            "slug",
            "intent",
            "scope",
            "deadline",
            "clarify",
            "direct_answer",
            "other",
        ];
        Value::Object(fields.into_iter().map(|(at, v)| (names[at].to_owned(), v)).collect())
    })
}

proptest! {
    #[test]
    fn every_input_ends_in_exactly_one_commitment(
        text in ".{0,60}", present in any::<bool>(), turns in 0..3_usize,
        answers in proptest::collection::vec((any_json(), any::<bool>(), ".{0,20}"), 1..8),
    ) {
        let mut r1 = perceiver();
        let mut start = input(&text);
        start.person_present = present;
        start.history = vec![Turn { input: "a".into(), summary: "b".into() }; turns];
        let mut effects = r1.step(now(), said(start));
        let (mut asked, mut commitments, mut calls) = (0, 0, 0_u32);
        let mut answers = answers.into_iter().cycle();
        while let Some(effect) = effects.pop() {
            let (value, fails, words) = answers.next().unwrap();
            effects = match effect {
                Effect::CallModel { call, .. } => {
                    calls += 1;
                    let result = if fails { Err(ModelError::Unusable { message: "stalled".into() }) } else { structured(value) };
                    let mut next = r1.step(now(), answer(call.0, result.clone()));
                    next.extend(r1.step(now(), answer(call.0, result)));
                    next
                }
                Effect::Ask(request) => {
                    asked += 1;
                    prop_assert!(!request.questions.is_empty());
                    r1.step(now(), said(ClarificationAnswer { task_id: request.task_id, round: request.round, text: words }))
                }
                Effect::Commit(spec) => { commitments += 1; prop_assert!(!spec.intent.trim().is_empty()); prop_assert_eq!(&spec.raw_input, &text); Vec::new() }
                Effect::Reply(_) | Effect::Fail(_) => { commitments += 1; Vec::new() }
            };
            prop_assert!(effects.len() <= 1);
        }
        prop_assert_eq!(commitments, 1);
        prop_assert!(asked <= 2 && calls <= 3);
    }
}

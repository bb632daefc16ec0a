//! Anthropic's Messages, with exchanges as its documentation shows them; the provider itself was never asked.

use super::*;

const URL: &str = "https://api.anthropic.com";

fn ask_with(scripts: impl IntoIterator<Item = Script>) -> Bench {
    Bench::speaking(Wire::Anthropic, URL, scripts)
}

fn events(events: &[Value]) -> Script {
    let written = events.iter().map(|value| {
        let name = value["type"].as_str().unwrap();
        Piece::Bytes(format!("event: {name}\ndata: {value}\n\n"))
    });
    streams(&written.collect::<Vec<_>>())
}

fn start() -> Value {
    json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x-2026", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 25, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 400, "output_tokens": 1}
    }})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 15}}),
        json!({"type": "message_stop"}),
    ]
}

fn call_in_pieces(index: u64, name: &str, pieces: &[&str]) -> Vec<Value> {
    let block = json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {}});
    let mut events = vec![json!({"type": "content_block_start", "index": index, "content_block": block})];
    events.extend(pieces.iter().map(|piece| {
        json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": piece}})
    }));
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

#[tokio::test(start_paused = true)]
async fn a_structured_answer_is_the_argument_of_a_forced_call() {
    let mut stream = vec![start(), json!({"type": "ping"})];
    stream.extend(call_in_pieces(0, "sop", &["", "{\"rule\":", " \"r ü\"}"]));
    stream.extend(end("tool_use"));
    let bench = ask_with([events(&stream)]);
    let reply = bench.ask(&structured()).await.unwrap();
    assert_eq!(value(&reply), json!({"rule": "r ü"}));
    assert_eq!(reply.model, "claude-x-2026");
    let usage = Usage {
        input_tokens: 525,
        output_tokens: 15,
        cached_tokens: 400,
        requests: 1,
        estimated: false,
    };
    assert_eq!(reply.usage, usage);
    let (path, body) = bench.asked().remove(0);
    assert_eq!(path, "/v1/messages");
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "fixed", "cache_control": {"type": "ephemeral"}}])
    );
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": [{"type": "text", "text": "question"}]}])
    );
    assert_eq!(body["tools"][0]["name"], "sop");
    assert_eq!(body["tools"][0]["input_schema"]["required"], json!(["rule"]));
    assert_eq!(body["tool_choice"]["name"], "sop");
    assert_eq!((&body["stream"], &body["max_tokens"]), (&json!(true), &json!(100)));
}

#[tokio::test(start_paused = true)]
async fn a_whole_document_reads_like_a_stream() {
    let whole = json!({
        "type": "message", "model": "claude-x", "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_a", "name": "srv__read", "input": {"path": "/x"}},
            {"type": "tool_use", "id": "toolu_b", "name": "shell", "input": {}}
        ],
        "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 4}
    });
    let mut stream = vec![
        start(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "secretly"}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I look."}}),
    ];
    stream.extend(call_in_pieces(2, "srv__read", &["{\"path\":", "\"/x\"}"]));
    stream.extend(call_in_pieces(3, "shell", &[]));
    stream.extend(end("tool_use"));
    for script in [says(200, whole), events(&stream)] {
        let reply = ask_with([script]).ask(&tools()).await.unwrap();
        let ModelContent::ToolCalls { text, calls } = reply.content else {
            panic!("{reply:?}")
        };
        assert_eq!(text.as_deref(), Some("I look."));
        assert_eq!(
            (calls[0].name.as_str(), &calls[0].arguments),
            ("srv.read", &json!({"path": "/x"}))
        );
        assert_eq!((calls[1].name.as_str(), &calls[1].arguments), ("shell", &json!({})));
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_goes_back_in_turns_that_alternate() {
    let call = |id: &str, arguments| artoo_protocol::model::ModelToolCall {
        id: id.into(),
        name: "srv.read".into(),
        arguments,
    };
    let result = |id: &str| ChatMessage::Tool {
        tool_call_id: id.into(),
        content: format!("result of {id}"),
    };
    let request = ModelRequest {
        messages: vec![
            ChatMessage::System {
                content: "fixed".into(),
            },
            ChatMessage::User {
                content: "do it".into(),
            },
            ChatMessage::Assistant {
                content: Some("  ".into()),
                tool_calls: vec![
                    call("toolu_1", json!({"path": "a"})),
                    call("toolu_2~signed", json!("no object")),
                ],
            },
            result("toolu_1"),
            result("toolu_2~signed"),
        ],
        ..request(tools())
    };
    let done = json!({"type": "message", "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"});
    let bench = ask_with([says(200, done)]);
    let reply = bench.model.complete(&request).await.unwrap();
    assert_eq!(reply.content, ModelContent::Text { text: "done".into() });
    let (_, body) = bench.asked().remove(0);
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(messages[1]["content"].as_array().unwrap().len(), 2, "no empty text");
    assert_eq!(
        messages[1]["content"][1],
        json!({"type": "tool_use", "id": "toolu_2", "name": "srv__read", "input": {"text": "no object"}})
    );
    assert_eq!(
        messages[2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "result of toolu_1"},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "result of toolu_2~signed",
             "cache_control": {"type": "ephemeral"}}
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn refusals_limits_and_errors_are_named() {
    let said = |reason: &str| json!({"type": "message", "content": [], "stop_reason": reason});
    for (reason, name) in [
        ("max_tokens", "finish_reason length"),
        ("model_context_window_exceeded", "finish_reason length"),
        ("refusal", "refusal"),
        ("end_turn", "empty choice"),
    ] {
        let error = ask_with([says(200, said(reason))])
            .ask(&structured())
            .await
            .unwrap_err();
        assert!(
            matches!(error.bare(), ModelError::Unusable { message } if message.contains(name)),
            "{reason}: {error:?}"
        );
    }
    let error = |kind: &str, words: &str| json!({"type": "error", "error": {"type": kind, "message": words}});
    let key = says(401, error("authentication_error", &format!("invalid x-api-key {KEY}")));
    let shown = ask_with([key]).ask(&structured()).await.unwrap_err().to_string();
    assert!(shown.contains("ANTHROPIC_API_KEY"), "{shown}");
    // Overloaded, once before and once inside the answer: both pass.
    let good = json!({"type": "message", "content": [{"type": "text", "text": "{\"rule\":\"r\"}"}], "stop_reason": "end_turn"});
    let busy = error("overloaded_error", "Overloaded");
    let bench = ask_with([says(529, busy.clone()), events(&[start(), busy]), says(200, good)]);
    assert_eq!(value(&bench.ask(&structured()).await.unwrap()), json!({"rule": "r"}));
    assert_eq!(bench.notices.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_a_model_refuses_is_put_more_simply() {
    let refusal = |words: &str| {
        says(
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": words}}),
        )
    };
    let good = json!({"type": "message", "content": [{"type": "text", "text": "```json\n{\"rule\":\"r\"}\n```"}], "stop_reason": "end_turn"});
    let bench = ask_with([
        refusal("max_tokens: 16000 > 4096, which is the maximum allowed number of output tokens for claude-old"),
        refusal("tool_choice: forcing a tool is not supported with thinking"),
        says(200, good),
    ]);
    let request = ModelRequest {
        max_output_tokens: None,
        ..request(structured())
    };
    let reply = bench.model.complete(&request).await.unwrap();
    assert_eq!(value(&reply), json!({"rule": "r"}));
    let asked = bench.asked();
    assert_eq!(
        (&asked[0].1["max_tokens"], &asked[1].1["max_tokens"]),
        (&json!(16_000), &json!(4_096))
    );
    assert!(asked[2].1.get("tools").is_none());
    assert!(
        asked[2].1["messages"][0]["content"][1]["text"]
            .as_str()
            .unwrap()
            .contains("JSON Schema (`sop`)")
    );
}

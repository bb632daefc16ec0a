//! Gemini's `generateContent`, with exchanges as its documentation shows them; the provider itself was never asked.

use super::*;

fn ask_with(scripts: impl IntoIterator<Item = Script>) -> Bench {
    Bench::speaking(Wire::Gemini, "https://host.example", scripts)
}

fn part(part: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "modelVersion": "g-1-002"})
}

fn last() -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 50, "cachedContentTokenCount": 20, "candidatesTokenCount": 7, "thoughtsTokenCount": 30,
            "totalTokenCount": 87
        },
        "modelVersion": "g-1-002"
    })
}

#[tokio::test(start_paused = true)]
async fn a_structured_answer_is_asked_for_by_its_schema() {
    let pieces = [
        part(&json!({"text": "I consider", "thought": true})),
        part(&json!({"text": "{\"rule\":"})),
        part(&json!({"text": "\"r ü\"}"})),
        last(),
    ];
    let stream = streams(&pieces.iter().map(event).collect::<Vec<_>>());
    // Without events the same pieces come as one list.
    let list = says(200, json!(pieces));
    for script in [stream, list] {
        let bench = ask_with([script]);
        let reply = bench.ask(&structured()).await.unwrap();
        assert_eq!(value(&reply), json!({"rule": "r ü"}));
        assert_eq!(reply.model, "g-1-002");
        let usage = Usage {
            input_tokens: 50,
            output_tokens: 37,
            cached_tokens: 20,
            requests: 1,
            estimated: false,
        };
        assert_eq!(reply.usage, usage);
        let (path, body) = bench.asked().remove(0);
        assert_eq!(path, "/v1beta/models/m-1:streamGenerateContent");
        assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "fixed"}]}));
        assert_eq!(
            body["contents"],
            json!([{"role": "user", "parts": [{"text": "question"}]}])
        );
        let generation = &body["generationConfig"];
        assert_eq!(generation["responseMimeType"], "application/json");
        assert_eq!(generation["responseJsonSchema"]["required"], json!(["rule"]));
        assert_eq!(generation["maxOutputTokens"], 100);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_back_with_the_signature_it_came_with() {
    let call = part(&json!({
        "functionCall": {"name": "srv__read", "args": {"path": "/x"}}, "thoughtSignature": "c2lnbmVk+/="
    }));
    let second = part(&json!({"functionCall": {"name": "shell"}}));
    let bench = ask_with([
        streams(&[event(&call), event(&second), event(&last())]),
        says(
            200,
            json!({"candidates": [{"content": {"parts": [{"text": "done"}]}, "finishReason": "STOP"}]}),
        ),
    ]);
    let mut request = request(tools());
    let reply = bench.model.complete(&request).await.unwrap();
    let ModelContent::ToolCalls { calls, .. } = reply.content else {
        panic!("{reply:?}")
    };
    assert_eq!(
        (calls[0].name.as_str(), &calls[0].arguments),
        ("srv.read", &json!({"path": "/x"}))
    );
    assert_ne!(calls[0].id, calls[1].id);
    for call in &calls {
        request.messages.push(ChatMessage::Assistant {
            content: None,
            tool_calls: vec![call.clone()],
        });
        request.messages.push(ChatMessage::Tool {
            tool_call_id: call.id.clone(),
            content: format!("read by {}", call.name),
        });
    }
    let reply = bench.model.complete(&request).await.unwrap();
    assert_eq!(reply.content, ModelContent::Text { text: "done".into() });
    let contents = bench.asked().remove(1).1["contents"].clone();
    assert_eq!(
        contents[1],
        json!({"role": "model", "parts": [
            {"functionCall": {"name": "srv__read", "args": {"path": "/x"}}, "thoughtSignature": "c2lnbmVk+/="}
        ]})
    );
    assert_eq!(
        contents[2],
        json!({"role": "user", "parts": [
            {"functionResponse": {"name": "srv__read", "response": {"result": "read by srv.read"}}}
        ]})
    );
    assert_eq!(
        contents[3]["parts"][0],
        json!({"functionCall": {"name": "shell", "args": {}}})
    );
    assert_eq!(contents[4]["parts"][0]["functionResponse"]["name"], "shell");
}

#[tokio::test(start_paused = true)]
async fn blocked_limited_and_refused_answers_are_named() {
    let ended = |reason: &str| says(200, json!({"candidates": [{"finishReason": reason}]}));
    let blocked = says(200, json!({"promptFeedback": {"blockReason": "SAFETY"}}));
    for (script, name) in [
        (ended("MAX_TOKENS"), "finish_reason length"),
        (ended("SAFETY"), "refusal"),
        (ended("MALFORMED_FUNCTION_CALL"), "empty choice"),
        (blocked, "refusal"),
    ] {
        let error = ask_with([script]).ask(&structured()).await.unwrap_err();
        assert!(
            matches!(error.bare(), ModelError::Unusable { message } if message.contains(name)),
            "{name}: {error:?}"
        );
    }
    let key = json!({"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}});
    let shown = ask_with([says(400, key)])
        .ask(&structured())
        .await
        .unwrap_err()
        .to_string();
    assert!(shown.contains("GEMINI_API_KEY"), "{shown}");
    let busy = json!([{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}]);
    let good = json!({"candidates": [{"content": {"parts": [{"text": "{\"rule\":\"r\"}"}]}, "finishReason": "STOP"}]});
    let bench = ask_with([says(503, busy), says(200, good)]);
    assert_eq!(value(&bench.ask(&structured()).await.unwrap()), json!({"rule": "r"}));
}

#[tokio::test(start_paused = true)]
async fn a_schema_that_is_refused_goes_into_the_prompt() {
    let refused = json!({"error": {"code": 400, "message": "The specified schema produces a constraint that has too many states", "status": "INVALID_ARGUMENT"}});
    let good = json!({"candidates": [{"content": {"parts": [{"text": "{\"rule\":\"r\"}"}]}, "finishReason": "STOP"}]});
    let bench = ask_with([says(400, refused), says(200, good)]);
    assert_eq!(value(&bench.ask(&structured()).await.unwrap()), json!({"rule": "r"}));
    let (_, body) = bench.asked().remove(1);
    assert!(body["generationConfig"].get("responseJsonSchema").is_none());
    assert_eq!(body["generationConfig"]["responseMimeType"], "application/json");
    assert!(
        body["contents"][0]["parts"][1]["text"]
            .as_str()
            .unwrap()
            .contains("JSON Schema (`sop`)")
    );
}

//! Tests of the provider: a scripted server on virtual time for waits and stalls, a real one on loopback for the rest.

mod anthropic;
mod costs;
mod gemini;
mod limits;
mod listing;

use std::collections::VecDeque;

use artoo_protocol::model::{Tier, Usage};
use reqwest::Url;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::transport::{Body, Broken, Head};
use super::*;
use crate::secret::Secret;

const KEY: &str = "my-own-secret-key";

#[derive(Clone)]
enum Piece {
    Bytes(String),
    Pause(Duration),
    Break,
}

#[derive(Clone)]
struct Script {
    status: u16,
    retry_after: Option<f64>,
    pieces: Vec<Piece>,
}

fn says(status: u16, body: impl std::fmt::Display) -> Script {
    Script {
        status,
        retry_after: None,
        pieces: vec![Piece::Bytes(format!("{body}"))],
    }
}

fn streams(pieces: &[Piece]) -> Script {
    Script {
        status: 200,
        retry_after: None,
        pieces: pieces.to_vec(),
    }
}

fn event(value: &Value) -> Piece {
    Piece::Bytes(format!("data: {value}\n\n"))
}

fn delta(text: &str) -> Piece {
    event(&json!({"model": "m-1", "choices": [{"index": 0, "delta": {"content": text}}]}))
}

fn stop() -> Piece {
    event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
}

/// A server made of answers, which remembers what it was asked.
#[derive(Default)]
struct Scripted {
    scripts: Mutex<VecDeque<Script>>,
    asked: Mutex<Vec<(String, Value)>>,
}

struct Scroll(VecDeque<Piece>);

#[async_trait]
impl Body for Scroll {
    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        loop {
            match self.0.pop_front() {
                Some(Piece::Bytes(text)) => return Ok(Some(text.into_bytes())),
                Some(Piece::Pause(time)) => tokio::time::sleep(time).await,
                Some(Piece::Break) => return Err(Broken::Reset("connection reset by peer".into())),
                None => return Ok(None),
            }
        }
    }
}

#[async_trait]
impl Transport for Scripted {
    async fn post(&self, url: &Url, body: Vec<u8>) -> Result<(Head, Box<dyn Body>), Broken> {
        self.answer(url.path(), serde_json::from_slice(&body).unwrap())
    }

    async fn get(&self, url: &Url) -> Result<(Head, Box<dyn Body>), Broken> {
        let whole = url
            .query()
            .map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        self.answer(&whole, Value::Null)
    }
}

impl Scripted {
    fn answer(&self, place: &str, body: Value) -> Result<(Head, Box<dyn Body>), Broken> {
        self.asked.lock().unwrap().push((place.to_owned(), body));
        let script = self.scripts.lock().unwrap().pop_front().expect("one request too many");
        if script.status == 0 {
            return Err(Broken::Reset("connection reset by peer".into()));
        }
        let head = Head {
            status: script.status,
            retry_after: script.retry_after,
            location: None,
        };
        Ok((head, Box::new(Scroll(script.pieces.into()))))
    }
}

struct Bench {
    model: Provider,
    server: Arc<Scripted>,
    notices: Arc<Mutex<Vec<RetryNotice>>>,
}

impl Bench {
    fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self::at("https://host.example/v1", scripts)
    }

    fn at(url: &str, scripts: impl IntoIterator<Item = Script>) -> Self {
        Self::speaking(Wire::OpenAi, url, scripts)
    }

    fn speaking(wire: Wire, url: &str, scripts: impl IntoIterator<Item = Script>) -> Self {
        let server = Arc::new(Scripted {
            scripts: Mutex::new(scripts.into_iter().collect()),
            asked: Mutex::default(),
        });
        let notices: Arc<Mutex<Vec<RetryNotice>>> = Arc::default();
        let heard = Arc::clone(&notices);
        let mut config = ProviderConfig::new(url, Secret::new(KEY), "m-1");
        config.wire = wire;
        config.on_retry = Some(Arc::new(move |notice| heard.lock().unwrap().push(notice)));
        let endpoint = Endpoint::parse(url, wire, "m-1").unwrap();
        let model = Provider::over(
            Arc::clone(&server) as Arc<dyn Transport>,
            config,
            Timeouts::REMOTE,
            endpoint,
        );
        Self { model, server, notices }
    }

    async fn ask(&self, form: &AnswerForm) -> Result<ModelReply, ModelError> {
        let reply = self.model.complete(&request(form.clone())).await;
        if let Err(error) = &reply {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(KEY), "{shown}");
        }
        reply
    }

    fn asked(&self) -> Vec<(String, Value)> {
        self.server.asked.lock().unwrap().clone()
    }
}

fn request(form: AnswerForm) -> ModelRequest {
    ModelRequest {
        tier: Tier::Brain,
        messages: vec![
            ChatMessage::System {
                content: "fixed".into(),
            },
            ChatMessage::User {
                content: "question".into(),
            },
        ],
        form,
        max_output_tokens: Some(100),
    }
}

fn structured() -> AnswerForm {
    AnswerForm::Structured {
        name: "sop".into(),
        schema: json!({"type": "object", "properties": {"rule": {"type": "string"}}, "required": ["rule"]}),
    }
}

fn tools() -> AnswerForm {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "d".into(),
        input_schema: json!({"type": "object"}),
    };
    AnswerForm::Tools {
        tools: vec![tool("shell"), tool("srv.read")],
    }
}

fn document(message: &Value) -> Value {
    json!({
        "model": "m-1-full", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}
    })
}

fn value(reply: &ModelReply) -> Value {
    match &reply.content {
        ModelContent::Structured { value } => value.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_document_and_a_stream_read_the_same() {
    let whole = says(
        200,
        document(&json!({"role": "assistant", "content": "{\"rule\":\"r ü\"}"})),
    );
    let stream = streams(&[
        Piece::Bytes(": ping\n\n".into()),
        delta("{\"rule\""),
        delta(":\"r ü\"}"),
        stop(),
        event(
            &json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}}),
        ),
        Piece::Bytes("data: [DONE]\n\n".into()),
    ]);
    for script in [whole, stream] {
        let bench = Bench::new([script]);
        let reply = bench.ask(&structured()).await.unwrap();
        assert_eq!(value(&reply), json!({"rule": "r ü"}));
        let usage = Usage {
            input_tokens: 10,
            output_tokens: 5,
            cached_tokens: 4,
            requests: 1,
            estimated: false,
        };
        assert_eq!(reply.usage, usage);
        let (path, body) = bench.asked().remove(0);
        assert_eq!(path, "/v1/chat/completions");
        assert_eq!(body["response_format"]["json_schema"]["name"], "sop");
        assert_eq!(body["response_format"]["type"], "json_schema");
        assert_eq!(
            (&body["stream"], &body["stream_options"]["include_usage"]),
            (&json!(true), &json!(true))
        );
        assert_eq!(body["max_tokens"], 100);
        assert_eq!(body["messages"][0], json!({"role": "system", "content": "fixed"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_not_cut_while_tokens_arrive() {
    let mut pieces = vec![Piece::Pause(Duration::from_secs(110)), delta("{\"rule\":\"")];
    for _ in 0..20 {
        pieces.extend([Piece::Pause(Duration::from_secs(55)), delta("x")]);
    }
    pieces.extend([delta("\"}"), stop()]);
    let reply = Bench::new([streams(&pieces)]).ask(&structured()).await.unwrap();
    assert_eq!(value(&reply), json!({"rule": "x".repeat(20)}));
    assert_eq!(reply.elapsed_ms, Millis::from_seconds(110 + 20 * 55));
}

#[tokio::test(start_paused = true)]
async fn stalls_are_named() {
    let long = Duration::from_secs(10_000);
    for (pieces, expected) in [
        (
            vec![Piece::Pause(long)],
            "stalled: the answer stopped in the middle for 120 s",
        ),
        (
            vec![delta("{"), Piece::Pause(long)],
            "stalled: the answer stopped in the middle for 60 s",
        ),
    ] {
        let error = Bench::new([streams(&pieces)]).ask(&structured()).await.unwrap_err();
        assert_eq!(
            error.bare(),
            &ModelError::Unusable {
                message: expected.into()
            }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_empty_or_broken_answer_has_a_named_error() {
    let choice = |choice: Value| says(200, json!({"choices": [choice]}));
    for (script, name) in [
        (says(200, json!({"choices": []})), "empty choice"),
        (
            choice(json!({"message": {"content": null}, "finish_reason": "stop"})),
            "empty choice",
        ),
        (
            choice(json!({"message": {"content": "{\"rule\":"}, "finish_reason": "length"})),
            "finish_reason length",
        ),
        (
            choice(json!({"message": {"content": "", "refusal": "I will not"}})),
            "refusal: I will not",
        ),
        (
            choice(json!({"message": {"content": ""}, "finish_reason": "content_filter"})),
            "refusal",
        ),
        (
            streams(&[Piece::Bytes("data: {\"choices\": [\n\n".into())]),
            "malformed stream",
        ),
        (streams(&[]), "empty answer"),
    ] {
        let error = Bench::new([script]).ask(&structured()).await.unwrap_err();
        assert!(
            matches!(error.bare(), ModelError::Unusable { message } if message.contains(name)),
            "{name}: {error:?}"
        );
    }
    for (script, name) in [
        (
            says(200, json!({"error": {"message": "no such thing", "code": "bad"}})),
            "no such thing (bad)",
        ),
        (
            streams(&[delta("x"), event(&json!({"error": {"message": "broke inside"}}))]),
            "broke inside",
        ),
        (says(200, "<html>hello</html>"), "a web page"),
    ] {
        let error = Bench::new([script]).ask(&structured()).await.unwrap_err();
        assert!(
            matches!(error.bare(), ModelError::Rejected { message, .. } if message.contains(name)),
            "{name}: {error:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn passing_failures_are_retried_with_growing_waits_and_shown() {
    let good = says(200, document(&json!({"content": "{\"rule\":\"r\"}"})));
    let reset = Script {
        status: 0,
        retry_after: None,
        pieces: vec![],
    };
    let cut = streams(&[delta("{\"ru"), Piece::Break]);
    let early_end = streams(&[delta("{\"ru")]);
    let inside = says(200, json!({"error": {"message": "upstream", "code": 502}}));
    for failure in [
        says(408, ""),
        says(409, ""),
        says(425, ""),
        says(500, ""),
        says(502, "<html>"),
        says(503, ""),
        says(522, ""),
        reset,
        cut,
        early_end,
        inside,
    ] {
        let bench = Bench::new([failure.clone(), failure, good.clone()]);
        let reply = bench.ask(&structured()).await.unwrap();
        assert_eq!(reply.usage.requests, 1, "transport retries do not count");
        let notices = bench.notices.lock().unwrap();
        assert_eq!(notices.len(), 2);
        assert_eq!((notices[0].attempt, notices[0].attempts), (1, 5));
        for (notice, least) in notices.iter().zip([500, 1000]) {
            let wait = u64::try_from(notice.wait.as_millis()).unwrap();
            assert!((least..=least * 2 + 500).contains(&wait), "{wait}");
        }
        assert!(reply.elapsed_ms >= Millis(1500));
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_up_to_its_bound() {
    let asks = |seconds| Script {
        retry_after: Some(seconds),
        ..says(429, "slow down")
    };
    let good = says(200, document(&json!({"content": "{\"rule\":\"r\"}"})));
    let bench = Bench::new([asks(30.0), good]);
    assert!(bench.ask(&structured()).await.unwrap().elapsed_ms >= Millis::from_seconds(30));
    let bench = Bench::new([asks(3600.0)]);
    assert!(matches!(
        bench.ask(&structured()).await,
        Err(ModelError::Unreachable { .. })
    ));
    assert!(bench.notices.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn retries_end_and_say_what_kept_failing() {
    let bench = Bench::new(vec![says(503, "overloaded"); 5]);
    let error = bench.ask(&structured()).await.unwrap_err();
    assert!(
        error.is_no_model() && error.to_string().contains("host.example answers HTTP 503: overloaded"),
        "{error}"
    );
    assert_eq!(bench.asked().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_not_retried_and_say_what_to_check() {
    for (status, words, remedy) in [
        (400, "bad", "does not accept"),
        (401, "wrong key", "OPENAI_API_KEY"),
        (403, "no", "may not use `m-1`"),
        (404, "model m-1 not found", "check the model's name `m-1`"),
        (429, "insufficient_quota", "no quota left"),
    ] {
        let bench = Bench::new([says(
            status,
            json!({"error": {"message": format!("{words} for {KEY}")}}),
        )]);
        let error = bench.ask(&structured()).await.unwrap_err();
        assert!(
            matches!(error, ModelError::Rejected { status: s, .. } if s == status),
            "{error:?}"
        );
        assert!(
            error.to_string().contains(remedy) && error.to_string().contains(words),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_json_schema_is_asked_more_plainly_and_that_is_remembered() {
    let good = || says(200, document(&json!({"content": "Here: {\"rule\":\"r\"}"})));
    let no = |words: &str| says(400, json!({"error": {"message": words}}));
    let bench = Bench::new([
        no("response_format json_schema unsupported"),
        no("'response_format.type' must be text"),
        good(),
        good(),
    ]);
    for _ in 0..2 {
        assert_eq!(bench.ask(&structured()).await.unwrap().usage.requests, 1);
    }
    let bodies: Vec<Value> = bench.asked().into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies[1]["response_format"], json!({"type": "json_object"}));
    assert!(
        bodies[1]["messages"][1]["content"]
            .as_str()
            .unwrap()
            .contains("\"required\":[\"rule\"]")
    );
    for body in &bodies[2..] {
        assert_eq!(body["response_format"], Value::Null);
        assert!(
            body["messages"][1]["content"]
                .as_str()
                .unwrap()
                .contains("JSON Schema (`sop`)")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn other_rejected_fields_are_dropped_and_other_paths_tried() {
    let good = says(200, document(&json!({"content": "hello"})));
    let bench = Bench::at(
        "https://host.example/inference",
        [
            says(404, "page not found"),
            says(400, "Unrecognized request argument supplied: stream_options"),
            says(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'"),
            good.clone(),
            good,
        ],
    );
    for _ in 0..2 {
        let reply = bench.ask(&tools()).await.unwrap();
        assert_eq!(reply.content, ModelContent::Text { text: "hello".into() });
    }
    let asked = bench.asked();
    let paths: Vec<&str> = asked.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths[..2],
        ["/inference/v1/chat/completions", "/inference/chat/completions"]
    );
    let last = &asked[4].1;
    assert_eq!(
        (
            &last["stream_options"],
            &last["max_tokens"],
            &last["max_completion_tokens"]
        ),
        (&Value::Null, &Value::Null, &json!(100))
    );
}

#[tokio::test(start_paused = true)]
async fn what_did_not_help_is_not_remembered() {
    let bench = Bench::at(
        "https://host.example",
        [
            says(404, "no such model"),
            says(404, "page not found"),
            says(200, document(&json!({"content": "hello"}))),
        ],
    );
    let error = bench.ask(&tools()).await.unwrap_err();
    assert!(error.to_string().contains("no such model"), "{error}");
    bench.ask(&tools()).await.unwrap();
    assert_eq!(bench.asked()[2].0, "/v1/chat/completions");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_answer_is_asked_for_once_more_naming_the_fault() {
    let bad = says(200, document(&json!({"content": "<think>x</think> {\"role\": 1}"})));
    let good = says(200, document(&json!({"content": "{\"rule\":\"r\"}"})));
    let bench = Bench::new([bad.clone(), good]);
    let reply = bench.ask(&structured()).await.unwrap();
    assert_eq!((reply.usage.requests, reply.usage.input_tokens), (2, 20));
    let messages = bench.asked()[1].1["messages"].clone();
    assert_eq!(messages[2]["role"], "assistant");
    assert!(
        messages[3]["content"]
            .as_str()
            .unwrap()
            .contains("\"rule\" is a required property")
    );

    let error = Bench::new([bad.clone(), bad]).ask(&structured()).await.unwrap_err();
    assert!(
        matches!(error.bare(), ModelError::Unreadable { message } if message.contains("\"rule\" is a required property")),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn tool_calls_come_together_from_a_stream() {
    let piece = |call: Value| event(&json!({"choices": [{"delta": {"tool_calls": [call]}}]}));
    let bench = Bench::new([streams(&[
        delta("<think>hm</think>I look."),
        piece(json!({"index": 0, "id": "a", "function": {"name": "shell", "arguments": ""}})),
        piece(json!({"index": 0, "function": {"arguments": "{\"command\":"}})),
        piece(json!({"index": 0, "function": {"arguments": "\"ls\"}"}})),
        piece(json!({"index": 1, "id": "b", "function": {"name": "srv__read", "arguments": "not json"}})),
        piece(json!({"index": 0, "id": "c", "function": {"name": "shell", "arguments": {"command": "pwd"}}})),
        event(&json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})),
    ])]);
    let call = |id: &str, name: &str, arguments: Value| artoo_protocol::model::ModelToolCall {
        id: id.into(),
        name: name.into(),
        arguments,
    };
    let expected = ModelContent::ToolCalls {
        text: Some("I look.".into()),
        calls: vec![
            call("a", "shell", json!({"command": "ls"})),
            call("b", "srv.read", json!("not json")),
            call("c", "shell", json!({"command": "pwd"})),
        ],
    };
    assert_eq!(bench.ask(&tools()).await.unwrap().content, expected);
    let sent = bench.asked()[0].1["tools"].clone();
    assert_eq!(sent[1]["function"]["name"], "srv__read");
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_written_as_text_is_made() {
    for text in [
        "shell: {\"name\":\"shell\",\"arguments\":{\"command\":\"ls\"}} {\"name\":\"shell\",\"arguments\":{}}",
        "<tool_call>{\"name\":\"shell\",\"arguments\":{\"command\":\"ls\"}}</tool_call>",
        "{\"tool\":\"nothing\"} then {\"tool\":\"shell\",\"command\":\"ls\"}",
        "```json\n{\"type\":\"function\",\"function\":{\"name\":\"shell\",\"arguments\":\"{\\\"command\\\":\\\"ls\\\"}\"}}\n```",
    ] {
        let bench = Bench::new([says(200, document(&json!({"content": text})))]);
        let content = bench.ask(&tools()).await.unwrap().content;
        let ModelContent::ToolCalls { calls, .. } = content else {
            panic!("{text}: {content:?}")
        };
        assert_eq!(
            (calls.len(), &calls[0].arguments),
            (1, &json!({"command": "ls"})),
            "{text}"
        );
    }
    let plain = "The config is {\"name\": \"x\"}.";
    let bench = Bench::new([says(200, document(&json!({"content": plain})))]);
    assert_eq!(
        bench.ask(&tools()).await.unwrap().content,
        ModelContent::Text { text: plain.into() }
    );
}

#[tokio::test(start_paused = true)]
async fn a_conversation_with_tools_goes_out_as_providers_expect_it() {
    let bench = Bench::new([says(
        200,
        document(&json!({"content": [{"type": "text", "text": "done"}]})),
    )]);
    let mut request = request(tools());
    request.messages.push(ChatMessage::Assistant {
        content: None,
        tool_calls: vec![artoo_protocol::model::ModelToolCall {
            id: "a".into(),
            name: "srv.read".into(),
            arguments: json!("not json"),
        }],
    });
    request.messages.push(ChatMessage::Tool {
        tool_call_id: "a".into(),
        content: "42".into(),
    });
    bench.model.complete(&request).await.unwrap();
    let messages = bench.asked()[0].1["messages"].clone();
    assert_eq!(
        messages[2],
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function",
            "function": {"name": "srv__read", "arguments": "{\"text\":\"not json\"}"}}]})
    );
    assert_eq!(
        messages[3],
        json!({"role": "tool", "tool_call_id": "a", "content": "42"})
    );
}

/// Serves one connection after the other with raw bytes; an empty answer resets the connection.
async fn serve(answers: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut seen = Vec::new();
            let mut buffer = [0; 4096];
            while !whole_request(&seen) {
                let n = stream.read(&mut buffer).await.unwrap();
                seen.extend_from_slice(&buffer[..n]);
            }
            requests.push(String::from_utf8(seen).unwrap());
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.ok();
        }
        requests
    });
    (url, server)
}

fn whole_request(seen: &[u8]) -> bool {
    let text = String::from_utf8_lossy(seen);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        line.to_lowercase()
            .strip_prefix("content-length: ")?
            .parse::<usize>()
            .ok()
    });
    body.len() >= length.unwrap_or(0)
}

#[tokio::test]
async fn a_real_server_is_spoken_to_with_the_key() {
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let (url, server) = serve(vec![format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{stream}\r\n0\r\n\r\n",
        stream.len()
    )])
    .await;
    let model = Provider::new(ProviderConfig::new(&url, Secret::new(KEY), "m-1")).unwrap();
    let reply = model.complete(&request(tools())).await.unwrap();
    assert_eq!(reply.content, ModelContent::Text { text: "hello".into() });
    let sent = server.await.unwrap().remove(0);
    assert!(sent.starts_with("POST /v1/chat/completions HTTP/1.1"), "{sent}");
    assert!(sent.to_lowercase().contains(&format!("authorization: bearer {KEY}")));
}

#[tokio::test]
async fn a_connection_reset_by_a_real_server_is_tried_again() {
    let body = document(&json!({"content": "hello"})).to_string();
    let good = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choi".to_owned();
    let (url, server) = serve(vec![String::new(), cut, good]).await;
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let notices = Arc::clone(&heard);
    let mut config = ProviderConfig::new(url, Secret::default(), "m-1");
    config.retries.first_wait = Duration::from_millis(1);
    config.on_retry = Some(Arc::new(move |notice| notices.lock().unwrap().push(notice.reason)));
    let model = Provider::new(config).unwrap();
    let reply = model.complete(&request(tools())).await.unwrap();
    assert_eq!(reply.content, ModelContent::Text { text: "hello".into() });
    assert_eq!(heard.lock().unwrap().len(), 2);
    let sent = server.await.unwrap();
    assert!(sent.iter().all(|text| !text.to_lowercase().contains("authorization")));
}

#[tokio::test]
async fn an_unreachable_host_is_said_at_once_with_what_to_check() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let model = Provider::new(ProviderConfig::new(format!("http://{free}"), Secret::default(), "m-1")).unwrap();
    let error = model.complete(&request(tools())).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::Unreachable { message } if message.contains("check the base URL")),
        "{error}"
    );
}

#[test]
fn a_configuration_shows_no_key() {
    let config = ProviderConfig::new("https://me:hunter2@host/v1?key=hunter2", Secret::new(KEY), "m");
    let shown = format!("{config:?}");
    assert!(!shown.contains(KEY) && !shown.contains("hunter2"), "{shown}");
}

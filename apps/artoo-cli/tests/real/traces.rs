//! A collector hears of each task once, and whatever it does, the task is the same (docs/traces.md).

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use artoo_testkit::server::Server;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::Value;

use crate::consent;
use crate::models::obliging;
use crate::support::{Done, LIMIT, Running, Sandbox};

/// One request as a collector got it.
struct Got {
    head: String,
    request: ExportTraceServiceRequest,
}

impl Got {
    fn spans(&self) -> &[Span] {
        &self.request.resource_spans[0].scope_spans[0].spans
    }
}

/// A collector on loopback that answers as it is told; `None` is silence.
struct Collector {
    address: SocketAddr,
    got: Receiver<Got>,
}

impl Collector {
    fn answering(status: Option<u16>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, got) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                std::thread::spawn(move || serve(stream, status, &sender));
            }
        });
        Self { address, got }
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    fn next(&self) -> Got {
        self.got.recv_timeout(LIMIT).expect("a trace")
    }
}

fn serve(stream: TcpStream, status: Option<u16>, sender: &Sender<Got>) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
        let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        let request = ExportTraceServiceRequest::decode(body.as_slice()).expect("what OTLP defines");
        let _ = sender.send(Got { head, request });
        let Some(status) = status else {
            // Until the client leaves.
            let _ = reader.read(&mut [0]);
            return;
        };
        let answer = format!("HTTP/1.1 {status} X\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n");
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn attributes(span: &Span) -> HashMap<&str, String> {
    let text = |value: &Any| match value {
        Any::StringValue(text) => text.clone(),
        Any::IntValue(number) => number.to_string(),
        Any::DoubleValue(number) => number.to_string(),
        Any::BoolValue(flag) => flag.to_string(),
        other => panic!("{other:?}"),
    };
    let of = span.attributes.iter();
    of.map(|a| (a.key.as_str(), text(a.value.as_ref().unwrap().value.as_ref().unwrap())))
        .collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// Writes a file with a model behind it, with these variables.
fn written(sandbox: &Sandbox, variables: &[(&str, &str)]) -> Done {
    // A second time it would be a change, which needs a yes.
    let _ = std::fs::remove_file(sandbox.workspace().join("made.txt"));
    let server = Server::start(obliging).unwrap();
    let mut command = sandbox.with_model(&server, &["write 42 into made.txt"]);
    command.envs(variables.iter().copied());
    Running::start(&mut command).wait()
}

#[test]
fn a_task_is_one_trace_with_what_happened_and_without_what_was_said() {
    let sandbox = Sandbox::new();
    let collector = Collector::answering(Some(200));
    let server = Server::start(obliging).unwrap();
    std::fs::create_dir_all(sandbox.data()).unwrap();
    let file = format!(
        "[traces]\nendpoint = \"{}\"\nheaders = {{ authorization = \"Bearer for-the-collector\" }}\n",
        collector.endpoint()
    );
    std::fs::write(sandbox.data().join("config.toml"), file).unwrap();
    let done = Running::start(&mut sandbox.with_model(&server, &["write 42 into made.txt"])).wait();
    done.ended(0);
    assert!(!done.err.contains("traces"), "{}", done.err);
    let got = collector.next();
    assert!(got.head.starts_with("POST /v1/traces HTTP/1.1"), "{}", got.head);
    let head = got.head.to_lowercase();
    assert!(head.contains("content-type: application/x-protobuf"), "{head}");
    assert!(head.contains("authorization: bearer for-the-collector"), "{head}");
    assert!(collector.got.try_recv().is_err(), "one request for a small task");

    let spans = got.spans();
    let root = &spans[0];
    assert_eq!(
        (root.name.as_str(), root.parent_span_id.len()),
        ("invoke_agent artoo", 0)
    );
    assert!(
        spans
            .iter()
            .all(|span| span.trace_id == root.trace_id && span.status.is_none()),
        "{spans:#?}"
    );
    let told = attributes(root);
    assert_eq!(told["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(told["gen_ai.agent.name"], "artoo");
    assert_eq!(
        (told["artoo.directive"].as_str(), told["artoo.cause"].as_str()),
        ("accept", "met")
    );
    let first = sandbox.journal()[0]["id"].as_str().unwrap().replace('-', "");
    let id = u128::from_be_bytes(root.trace_id.as_slice().try_into().unwrap());
    assert_eq!(format!("{id:032x}"), first, "the id of the first message");

    let plans = named(spans, "plan artoo");
    assert_eq!(plans.len(), 1);
    let chats = named(spans, "chat scripted");
    assert_eq!(chats.len(), server.seen().len());
    let planning = chats
        .iter()
        .find(|chat| chat.parent_span_id == plans[0].span_id)
        .expect("R2's call");
    let chat = attributes(planning);
    assert_eq!(
        (chat["gen_ai.provider.name"].as_str(), chat["artoo.role"].as_str()),
        ("openai", "R2")
    );
    assert_eq!(
        (chat["gen_ai.request.model"].as_str(), chat["server.address"].as_str()),
        ("scripted", "127.0.0.1")
    );
    assert!(chat["gen_ai.usage.input_tokens"].parse::<u64>().unwrap() > 0);
    assert!(chat.contains_key("gen_ai.usage.cache_read.input_tokens") && chat.contains_key("gen_ai.response.model"));
    let tools = named(spans, "execute_tool write_file");
    let tool = attributes(tools[0]);
    assert_eq!(
        (tool["gen_ai.tool.name"].as_str(), tool["artoo.effect"].as_str()),
        ("write_file", "create")
    );
    let attempt = named(spans, "attempt")[0];
    assert_eq!(tools[0].parent_span_id, attempt.span_id);
    assert_eq!(attempt.parent_span_id, named(spans, "subtask")[0].span_id);
    let checks = named(spans, "check file_contains");
    assert!(
        checks
            .iter()
            .any(|check| attributes(check)["artoo.check.passed"] == "true")
    );
    let everything = format!("{:?}", got.request);
    for words in ["write 42", "made.txt", "^42$", "for-the-collector", "holds 42"] {
        assert!(!everything.contains(words), "`{words}` left the machine");
    }
}

#[test]
fn what_failed_is_marked_with_its_reason() {
    let sandbox = Sandbox::new();
    let collector = Collector::answering(Some(202));
    let server = Server::start(consent::deleting).unwrap();
    let mut command = sandbox.with_model(&server, &["delete notes.txt"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint());
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=key-0123%20environmental");
    command.env("OTEL_SERVICE_NAME", "mine");
    let done = Running::start(&mut command).wait();
    assert!(!done.ended(4).err.contains("traces"), "{}", done.err);
    let got = collector.next();
    assert!(
        got.head.to_lowercase().contains("api-key: key-0123 environmental"),
        "{}",
        got.head
    );
    let root = &got.spans()[0];
    assert_eq!(attributes(root)["artoo.cause"], "refused");
    assert_eq!(attributes(root)["error.type"], "refused");
    assert_eq!(root.status.as_ref().map(|status| status.code), Some(2));
    let asked = named(got.spans(), "confirmation");
    assert_eq!(attributes(asked[0])["artoo.consent"], "nobody");
    assert!(format!("{:?}", got.request.resource_spans[0].resource).contains("mine"));
    assert!(!format!("{:?}", got.request).contains("notes.txt"));
}

#[test]
fn without_a_word_nothing_is_sent_and_a_project_has_no_say() {
    let sandbox = Sandbox::new();
    let collector = Collector::answering(Some(200));
    written(&sandbox, &[("OTEL_SERVICE_NAME", "x")]).ended(0);
    let off = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint())];
    let off = [("OTEL_SDK_DISABLED", "true"), (off[0].0, off[0].1.as_str())];
    written(&sandbox, &off).ended(0);
    sandbox.file(
        ".artoo.toml",
        &format!("[traces]\nendpoint = \"{}\"\n", collector.endpoint()),
    );
    written(&sandbox, &[]).refused(2, &["may not set", "traces"]);
    assert!(collector.got.try_recv().is_err());
}

#[test]
fn a_collector_that_is_down_slow_or_refuses_changes_nothing_and_is_named_once() {
    let closed = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let secret = "Bearer-do-not-show-this";
    for (what, collector, said) in [
        ("down", None, "refused"),
        ("silent", Some(Collector::answering(None)), "too slow"),
        ("refusing", Some(Collector::answering(Some(401))), "status 401"),
        ("elsewhere", Some(Collector::answering(Some(307))), "status 307"),
    ] {
        let sandbox = Sandbox::new();
        let endpoint = collector
            .as_ref()
            .map_or_else(|| format!("http://{closed}"), Collector::endpoint);
        let header = format!("authorization={secret}");
        let done = written(
            &sandbox,
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
                ("OTEL_EXPORTER_OTLP_HEADERS", &header),
            ],
        );
        done.ended(0);
        assert_eq!(done.out, "made.txt holds 42\n", "{what}");
        assert_eq!(done.err.matches("traces:").count(), 1, "{what}: {}", done.err);
        assert!(
            done.err.contains(said) && !done.err.contains(secret),
            "{what}: {}",
            done.err
        );
        let journal: Vec<Value> = sandbox.journal();
        assert_eq!(journal.last().unwrap()["payload"]["type"], "FinalResult", "{what}");
    }
}

#[test]
fn without_certificates_the_task_goes_on_without_traces() {
    let sandbox = Sandbox::new();
    let none = sandbox.file("no-certificates.pem", "");
    let done = written(
        &sandbox,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:9"),
            ("SSL_CERT_FILE", none.to_str().unwrap()),
        ],
    );
    done.ended(0);
    assert_eq!(done.out, "made.txt holds 42\n");
    assert_eq!(done.err.matches("traces: none are sent").count(), 1, "{}", done.err);
}

#[test]
fn each_task_has_a_trace_of_its_own_at_the_address_that_was_given() {
    let sandbox = Sandbox::new();
    let collector = Collector::answering(Some(200));
    let endpoint = collector.endpoint();
    for _ in 0..2 {
        written(
            &sandbox,
            &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("{endpoint}/own/path"))],
        )
        .ended(0);
    }
    let (first, second) = (collector.next(), collector.next());
    assert!(first.head.starts_with("POST /own/path HTTP/1.1"), "{}", first.head);
    assert_ne!(first.spans()[0].trace_id, second.spans()[0].trace_id);
    assert!(collector.got.recv_timeout(Duration::ZERO).is_err());
}

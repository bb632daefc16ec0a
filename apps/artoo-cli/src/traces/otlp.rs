//! Traces as OTLP has them: the messages that a collector takes (docs/traces.md).
//!
//! Owns the translation of [`Trace`]s. Sends nothing.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{self as otlp, ResourceSpans, ScopeSpans, Status};

use super::spans::{Kind, Span, Trace, Value};

/// Spans of one request, as many as OpenTelemetry's own exporters send: collectors limit the size of what they take.
const AT_ONCE: usize = 512;

/// A trace as one request or several.
pub fn requests(trace: &Trace, service: &str) -> Vec<ExportTraceServiceRequest> {
    let parts = trace.spans.chunks(AT_ONCE);
    parts
        .map(|spans| ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource {
                    attributes: vec![
                        named("service.name", Any::StringValue(service.to_owned())),
                        named("service.version", Any::StringValue(VERSION.to_owned())),
                    ],
                    ..Resource::default()
                }),
                scope_spans: vec![ScopeSpans {
                    scope: Some(InstrumentationScope {
                        name: "artoo".to_owned(),
                        version: VERSION.to_owned(),
                        ..InstrumentationScope::default()
                    }),
                    spans: spans.iter().map(|span| message(trace.id, span)).collect(),
                    ..ScopeSpans::default()
                }],
                ..ResourceSpans::default()
            }],
        })
        .collect()
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn message(trace: u128, span: &Span) -> otlp::Span {
    let kind = match span.kind {
        Kind::Internal => SpanKind::Internal,
        Kind::Client => SpanKind::Client,
    };
    otlp::Span {
        trace_id: trace.to_be_bytes().to_vec(),
        span_id: span.id.to_be_bytes().to_vec(),
        parent_span_id: span.parent.map(|id| id.to_be_bytes().to_vec()).unwrap_or_default(),
        name: span.name.clone(),
        kind: kind.into(),
        start_time_unix_nano: nanoseconds(span.start.as_millis()),
        end_time_unix_nano: nanoseconds(span.end.as_millis()),
        attributes: span
            .attributes
            .iter()
            .map(|(key, value)| named(key, any(value)))
            .collect(),
        status: span.error.as_ref().map(|why| Status {
            message: why.clone(),
            code: StatusCode::Error.into(),
        }),
        ..otlp::Span::default()
    }
}

fn nanoseconds(millis: i64) -> u64 {
    u64::try_from(millis).unwrap_or_default().saturating_mul(1_000_000)
}

fn any(value: &Value) -> Any {
    match value {
        Value::Text(text) => Any::StringValue(text.clone()),
        Value::Int(number) => Any::IntValue(*number),
        Value::Float(number) => Any::DoubleValue(*number),
        Value::Flag(flag) => Any::BoolValue(*flag),
    }
}

fn named(key: &str, value: Any) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

#[cfg(test)]
mod tests {
    use artoo_protocol::Timestamp;

    use super::*;

    fn span(id: u64, parent: Option<u64>) -> Span {
        Span {
            id,
            parent,
            name: "n".into(),
            kind: Kind::Client,
            start: Timestamp::from_millis(1_700_000_000_001),
            end: Timestamp::from_millis(1_700_000_000_002),
            attributes: vec![
                ("t", Value::Text("x".into())),
                ("i", Value::Int(-1)),
                ("f", Value::Float(0.5)),
                ("b", Value::Flag(true)),
            ],
            error: parent.map(|_| "why".into()),
        }
    }

    #[test]
    fn a_span_keeps_its_ids_times_kind_and_values() {
        let trace = Trace {
            id: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
            spans: vec![span(1, None), span(2, Some(1))],
        };
        let requests = requests(&trace, "mine");
        let [request] = requests.as_slice() else {
            panic!("{requests:?}")
        };
        let resource = &request.resource_spans[0];
        assert!(format!("{:?}", resource.resource).contains("mine"));
        let [root, child] = resource.scope_spans[0].spans.as_slice() else {
            panic!()
        };
        assert_eq!(root.trace_id, (1..=16).collect::<Vec<u8>>());
        assert_eq!(
            (root.span_id.as_slice(), root.parent_span_id.len()),
            (&[0, 0, 0, 0, 0, 0, 0, 1][..], 0)
        );
        assert_eq!(child.parent_span_id, root.span_id);
        assert_eq!(
            (root.start_time_unix_nano, root.end_time_unix_nano),
            (1_700_000_000_001_000_000, 1_700_000_000_002_000_000)
        );
        assert_eq!((root.kind, root.status.is_none()), (3, true));
        assert_eq!(
            child.status.as_ref().map(|s| (s.code, s.message.as_str())),
            Some((2, "why"))
        );
        let values: Vec<Any> = root
            .attributes
            .iter()
            .map(|a| a.value.clone().unwrap().value.unwrap())
            .collect();
        assert_eq!(
            values,
            [
                Any::StringValue("x".into()),
                Any::IntValue(-1),
                Any::DoubleValue(0.5),
                Any::BoolValue(true)
            ]
        );
    }

    #[test]
    fn a_long_trace_goes_in_parts() {
        let spans: Vec<Span> = (0..1_100).map(|at| span(at + 1, (at > 0).then_some(1))).collect();
        let requests = requests(&Trace { id: 1, spans }, "artoo");
        let sizes: Vec<usize> = requests
            .iter()
            .map(|r| r.resource_spans[0].scope_spans[0].spans.len())
            .collect();
        assert_eq!(sizes, [512, 512, 76]);
    }
}

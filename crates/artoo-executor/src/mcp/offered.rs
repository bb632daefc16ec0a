//! One tool of an MCP server, as R3 sees it (design §8, §9).
//!
//! Owns what is taken of a stranger's words — name, description, schema, results, all bounded — and the class of what the tool does:
//! `external` unless the user vouched for less, and never less than what the server itself admits. Must not talk to the server but
//! through its connection.

use std::fmt::Write as _;
use std::sync::Arc;

use artoo_protocol::message::FailureClass;
use artoo_protocol::text::{head_tail, printable};
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, Reach, ToolOutput, ToolSpec};
use async_trait::async_trait;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ResourceContents, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::connection::{Broken, Connection};
use crate::capture::Capture;
use crate::tools::change::fingerprint;
use crate::tools::{exceeds, failed, invalid};

/// Characters of a description.
const DESCRIPTION_MAX: usize = 500;
/// Characters of a schema; a longer one is left out, and the model sees that arguments are free.
const SCHEMA_MAX: usize = 6000;
/// Longest name of a tool.
const NAME_MAX: usize = 64;
/// Characters of the arguments that a person is shown.
const SHOWN: usize = 20_000;

pub(super) struct Offered {
    connection: Arc<Connection>,
    remote: String,
    spec: ToolSpec,
    effect: EffectClass,
}

impl Offered {
    /// The tool as it is offered to the model; an error says why it is not.
    pub fn new(connection: &Arc<Connection>, tool: Tool) -> Result<Self, String> {
        let server = &connection.server;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if tool.name.is_empty() || tool.name.len() > NAME_MAX || !tool.name.chars().all(fits) {
            return Err(format!(
                "a tool whose name is none: `{}`",
                readable(&tool.name, NAME_MAX)
            ));
        }
        let said = tool
            .description
            .as_deref()
            .or(tool.title.as_deref())
            .unwrap_or_default();
        let schema = Value::Object((*tool.input_schema).clone());
        let vouched = server.tool_effects.get(&*tool.name).copied().or(server.effect);
        Ok(Self {
            spec: ToolSpec {
                name: format!("{}.{}", server.name, tool.name),
                description: format!("(MCP server {}) {}", server.name, readable(said, DESCRIPTION_MAX)),
                input_schema: bounded(schema),
            },
            effect: effect(vouched, tool.annotations.as_ref()),
            remote: tool.name.into_owned(),
            connection: Arc::clone(connection),
        })
    }

    pub fn name(&self) -> &str {
        &self.spec.name
    }

    fn action(&self, invocation: &Invocation) -> (String, u64) {
        let whole = format!("{} {}", self.spec.name, invocation.input);
        let pretty = serde_json::to_string_pretty(&invocation.input).unwrap_or_default();
        let action = format!("call {} with\n{}", self.spec.name, head_tail(&pretty, SHOWN));
        (action, fingerprint(&whole))
    }
}

/// What a tool does at most. The server's own hints can only make it worse: who writes them is the one they speak of.
pub(super) fn effect(vouched: Option<EffectClass>, hints: Option<&ToolAnnotations>) -> EffectClass {
    let mut effect = vouched.unwrap_or(EffectClass::External);
    let Some(hints) = hints else { return effect };
    if hints.read_only_hint == Some(false) {
        effect = effect.max(EffectClass::Modify);
    }
    if hints.destructive_hint == Some(true) && hints.read_only_hint != Some(true) {
        effect = effect.max(EffectClass::Destroy);
    }
    if hints.open_world_hint == Some(true) {
        let outside = if hints.read_only_hint == Some(true) {
            EffectClass::Fetch
        } else {
            EffectClass::External
        };
        effect = effect.max(outside);
    }
    effect
}

/// A stranger's text on one line, without what steers a terminal, at most so long.
pub(super) fn readable(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = printable(&line).chars().take(most).collect();
    if shown.chars().count() < line.chars().count() {
        shown.push('…');
    }
    shown
}

fn bounded(schema: Value) -> Value {
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    if is_object && schema.to_string().len() <= SCHEMA_MAX {
        schema
    } else {
        json!({"type": "object"})
    }
}

#[async_trait]
impl artoo_protocol::ports::Tool for Offered {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        if !invocation.input.is_object() {
            return invalid(format!("`{}` takes an object of arguments", self.spec.name));
        }
        let (action, fingerprint) = self.action(invocation);
        Assessment {
            effect: self.effect,
            reach: if self.effect == EffectClass::Read {
                Reach::Nowhere
            } else {
                Reach::Elsewhere
            },
            action,
            reason: format!(
                "the server {} decides what happens, not artoo",
                self.connection.server.name
            ),
            programs: Vec::new(),
            targets: vec![format!("{} {}", self.spec.name, invocation.input)],
            invalid: None,
            fingerprint,
        }
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        if let Some(refusal) = exceeds(self.effect, permit) {
            return refusal;
        }
        let mut params = CallToolRequestParams::new(self.remote.clone());
        params.arguments = invocation.input.as_object().cloned();
        let server = &self.connection.server;
        match self.connection.call(params).await {
            Ok(result) => said(&result),
            Err(Broken::Refused(why)) => failed(format!("{}: {why}", server.name), FailureClass::Logical),
            Err(Broken::Gone(why)) => {
                let why = format!(
                    "the MCP server {} does not work: {why}; its tools cannot be used now",
                    server.name
                );
                failed(why, FailureClass::Environmental)
            }
            Err(Broken::Late) => ToolOutput {
                interrupted: true,
                ..failed(
                    format!("timed out after {} s", server.limit.as_secs()),
                    FailureClass::Environmental,
                )
            },
        }
    }
}

/// What a server answered, as text.
fn said(result: &CallToolResult) -> ToolOutput {
    let mut capture = Capture::default();
    for block in &result.content {
        let text = match block {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(image) => format!("[an image, {}: not shown]", readable(&image.mime_type, 40)),
            ContentBlock::Audio(audio) => format!("[a sound, {}: not shown]", readable(&audio.mime_type, 40)),
            ContentBlock::ResourceLink(link) => format!("[a resource: {}]", readable(&link.uri, 300)),
            ContentBlock::Resource(resource) => match &resource.resource {
                ResourceContents::TextResourceContents { text, .. } => text.clone(),
                ResourceContents::BlobResourceContents { uri, .. } => {
                    format!("[a resource that is no text: {}]", readable(uri, 300))
                }
                _ => "[a resource of an unknown kind]".to_owned(),
            },
            _ => "[something that is no text]".to_owned(),
        };
        capture.push(text.as_bytes());
        capture.push(b"\n");
    }
    if result.content.is_empty()
        && let Some(structured) = &result.structured_content
    {
        capture.push(structured.to_string().as_bytes());
    }
    let captured = capture.finish();
    let mut output = captured.text;
    let is_error = result.is_error == Some(true);
    if output.is_empty() {
        let _ = write!(output, "[the server answered without content]");
    }
    ToolOutput {
        output,
        truncated: captured.truncated,
        lines: captured.lines,
        error: is_error.then(|| "the tool reported an error".to_owned()),
        failure_class: is_error.then_some(FailureClass::Logical),
        ..ToolOutput::default()
    }
}

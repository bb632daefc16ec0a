//! Tool names on the wire, where providers allow letters, digits, `_` and `-` only; `server.tool` has a dot (design §18).

use artoo_protocol::tool::ToolSpec;

/// The name under which a tool is offered.
pub(super) fn on_wire(name: &str) -> String {
    let mut wire = String::new();
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') => wire.push(c),
            _ => wire.push_str("__"),
        }
    }
    wire
}

/// The tool's own name for a name on the wire.
pub(super) fn own(wire: &str, tools: &[ToolSpec]) -> String {
    let known = tools
        .iter()
        .find(|tool| tool.name == wire || on_wire(&tool.name) == wire);
    known.map_or_else(|| wire.to_owned(), |tool| tool.name.clone())
}

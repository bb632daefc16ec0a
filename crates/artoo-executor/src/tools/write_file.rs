//! `write_file`: puts a text into one file, whole or not at all (design §8, §9).
//!
//! Owns the arguments. How a file is changed is [`super::change`]'s.

use artoo_protocol::tool::{Invocation, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use super::change::{Change, look, real_path};
use super::{Abandoned, Places, arguments};

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "write_file".to_owned(),
        description: "Writes a text file, replacing what it held. A bare file name goes to the workspace.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "a bare name for the workspace, or an absolute path, or one with ~"},
                "content": {"type": "string", "description": "the whole text"}
            },
            "required": ["path", "content"],
            "additionalProperties": false
        }),
    }
}

pub(super) fn change(places: &Places, invocation: &Invocation, abandoned: &Abandoned) -> Result<Change, String> {
    let given = arguments::<Arguments>(invocation)?;
    let real = real_path(places, &given.path)?;
    let (before, size, old) = look(&real, abandoned)?;
    Ok(Change {
        real,
        before,
        old,
        size,
        new: given.content,
    })
}

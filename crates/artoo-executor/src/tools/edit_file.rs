//! `edit_file`: replaces one passage of a file (design §8, §9).
//!
//! Owns what may be replaced: text that stands in the file exactly once, character by character. How a file is changed is
//! [`super::change`]'s.

use artoo_protocol::tool::{Invocation, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use super::change::{Change, look, real_path};
use super::{Abandoned, Places, arguments};
use crate::undo::State;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old: String,
    new: String,
}

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "edit_file".to_owned(),
        description:
            "Replaces one passage of a text file. `old` must stand in the file exactly once, character by character."
                .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "old": {"type": "string", "description": "the passage, with enough around it to be unique"},
                "new": {"type": "string", "description": "what stands there afterwards"}
            },
            "required": ["path", "old", "new"],
            "additionalProperties": false
        }),
    }
}

pub(super) fn change(places: &Places, invocation: &Invocation, abandoned: &Abandoned) -> Result<Change, String> {
    let given = arguments::<Arguments>(invocation)?;
    // A file that exists: where a reader finds it, not where a new one would go.
    let found = places.reading(&given.path).display().to_string();
    let real = real_path(places, &found)?;
    let shown = real.display();
    let (before, size, old) = look(&real, abandoned)?;
    if before == State::Absent {
        return Err(format!("{shown} does not exist"));
    }
    let Some(text) = old else {
        return Err(format!(
            "{shown} ({size} bytes) is not UTF-8 text of at most 1 MiB: it cannot be edited"
        ));
    };
    if given.old.is_empty() {
        return Err("`old` is empty: give the passage to replace".to_owned());
    }
    if given.old == given.new {
        return Err("`old` and `new` are the same".to_owned());
    }
    let mut places_found = text.match_indices(&given.old).map(|(at, _)| at);
    let (Some(at), next) = (places_found.next(), places_found.next()) else {
        let hint = if text.contains(given.old.trim()) {
            "; without the white space around it, it does"
        } else {
            ": read the file again"
        };
        return Err(format!("`old` does not stand in {shown}{hint}"));
    };
    // Passages that overlap count too.
    let overlaps = text
        .get(at..)
        .and_then(|rest| rest.char_indices().nth(1).and_then(|(step, _)| rest.get(step..)))
        .is_some_and(|rest| rest.contains(&given.old));
    if next.is_some() || overlaps {
        let count = text.matches(&given.old).count().max(2);
        return Err(format!(
            "`old` stands in {shown} {count} times: give more of what is around it"
        ));
    }
    let new = text.replacen(&given.old, &given.new, 1);
    Ok(Change {
        real,
        before,
        old: Some(text),
        size,
        new,
    })
}

//! `write_file`: puts a text into one file, whole or not at all (design §8, §9).
//!
//! Owns the arguments. How a file is changed is [`super::change`]'s.

use std::sync::Arc;

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::tool::{Assessment, Invocation, Permit, ToolOutput, ToolSpec};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::change::{Change, assess_change, look, real_path};
use super::{Places, arguments, blocking, failed, invalid, worker_died};
use crate::undo::UndoStore;

pub(super) struct WriteFile {
    pub places: Arc<Places>,
    pub undo: Option<Arc<UndoStore>>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file".to_owned(),
            description: "Writes a text file, replacing what it held. A bare file name goes to the workspace."
                .to_owned(),
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

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        let places = Arc::clone(&self.places);
        let invocation = invocation.clone();
        blocking(move |_| assess_change(change(&places, &invocation), &places, &invocation))
            .await
            .unwrap_or_else(|| invalid("the path could not be looked at"))
    }

    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput {
        let (places, undo) = (Arc::clone(&self.places), self.undo.clone());
        let invocation = invocation.clone();
        blocking(move |abandoned| match change(&places, &invocation) {
            Ok(change) => change.make(&places, &invocation, permit, undo.as_ref(), abandoned),
            Err(error) => failed(error, FailureClass::Logical),
        })
        .await
        .unwrap_or_else(worker_died)
    }
}

fn change(places: &Places, invocation: &Invocation) -> Result<Change, String> {
    let given = arguments::<Arguments>(invocation)?;
    let real = real_path(places, &given.path)?;
    let (before, size, old) = look(&real)?;
    Ok(Change {
        real,
        before,
        old,
        size,
        new: given.content,
    })
}

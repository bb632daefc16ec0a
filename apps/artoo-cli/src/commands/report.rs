//! `artoo report`: the story of a task, from its journal (design §21).

use std::path::Path;

use artoo_bus::Price;
use artoo_ggs::Params;
use artoo_protocol::journal::settings_of;
use artoo_protocol::text::printable;
use serde_json::json;

use super::tasks;
use crate::failure::Failure;
use crate::output;
use crate::report::{Story, markdown::markdown, page::page};

/// Writes it as Markdown to standard output, as JSON, or as a page into a file.
///
/// # Errors
/// [`Failure`] when there is no such task, its journal cannot be read, or the page cannot be written.
pub fn run(data: &Path, task: &str, html: Option<&Path>, json: bool, price: &Price) -> Result<(), Failure> {
    let found = tasks::pick(&data.join("tasks"), task)?;
    let contents = tasks::contents(&found)?;
    let settings = settings_of(&contents.records);
    // Of a journal whose parameters are not understood the story can be told all the same.
    let params = settings
        .and_then(|settings| Params::of_settings(settings).ok())
        .unwrap_or_default();
    let story = Story::of(&contents.records, &params, price)
        .ok_or_else(|| Failure::failed(format!("{} holds no task", found.path.display())))?;
    if let Some(file) = html {
        output::file(file, &page(&story))?;
        output::note(&format!("the page is in {}", file.display()));
    }
    if json {
        let rounds: Vec<_> = story
            .rounds
            .iter()
            .map(|round| {
                let attempts: Vec<_> = round
                    .attempts
                    .iter()
                    .map(|attempt| json!({"result": attempt.result, "correction": attempt.correction}))
                    .collect();
                json!({"plan": round.manifest, "attempts": attempts, "outcomes": round.outcomes, "gap": round.gap, "directive": round.directive})
            })
            .collect();
        output::pretty_json(&json!({
            "task_id": story.summary.task_id, "input": story.summary.input, "result": story.ended, "rounds": rounds,
            "decisions": story.decisions, "memory": {"read": story.replies, "used": story.used, "written": story.written},
            "cost": story.cost(),
        }));
    } else if html.is_none() {
        output::result(&printable(&markdown(&story)));
    }
    Ok(())
}

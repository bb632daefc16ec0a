//! What a plan for a text would be told, as data and in lines (design §15).
//!
//! Owns what `recall` shows, here and to other programs. Changes nothing, not even what was recalled when.

use artoo_memory::{Near, Records, recall};
use artoo_protocol::message::{MemoryQuery, MemoryReply, intent_space};
use artoo_protocol::text::{one_line, printable};
use artoo_protocol::{TaskId, Timestamp};
use serde_json::{Value, json};

use super::broken;
use super::words::potentials_line;
use crate::failure::Failure;
use crate::output;

/// How many near kinds of tasks are named.
const NEAR: usize = 5;

/// What a plan for a text would be told.
pub struct Recalled {
    /// Where its own experiences are.
    pub space: String,
    /// Kinds of tasks that are near.
    pub near: Vec<Near>,
    /// Rules, lessons and potentials.
    pub reply: MemoryReply,
}

impl Recalled {
    /// Looks, and marks nothing as recalled.
    ///
    /// # Errors
    /// [`Failure`] for an empty text, and when the store cannot be read.
    pub fn of(records: &Records, text: &str, now: Timestamp) -> Result<Self, Failure> {
        if text.trim().is_empty() {
            return Err(Failure::usage("there is nothing to recall: the text is empty"));
        }
        let query = MemoryQuery {
            task_id: TaskId::new("operator"),
            query: 0,
            space: intent_space(text),
            entity: recall::LOCAL_ENTITY.to_owned(),
            intent: text.to_owned(),
            tools: Vec::new(),
        };
        Ok(Self {
            reply: recall::look(records, &query, now).map_err(|e| broken(&e))?,
            near: records.nearest(text, NEAR).map_err(|e| broken(&e))?,
            space: query.space,
        })
    }

    /// As data.
    pub fn to_json(&self) -> Value {
        let near = self.near.iter();
        let near: Vec<_> = near
            .map(|near| json!({"space": near.key.space, "entity": near.key.entity, "score": near.score}))
            .collect();
        let reply = &self.reply;
        json!({"space": self.space, "nearest": near, "sops": reply.sops, "knowledge": reply.knowledge,
            "recent": reply.recent, "potentials": reply.potentials})
    }

    /// A line for each, without control characters.
    pub fn lines(&self) -> Vec<String> {
        let reply = &self.reply;
        let mut lines = vec![format!("looked under {} and near:", self.space)];
        lines.extend(
            self.near
                .iter()
                .map(|near| format!("  {:.2}  {}", near.score, near.key.space)),
        );
        lines.extend(
            reply
                .sops
                .iter()
                .map(|sop| format!("rule   {:+.1}  {}", sop.sigma.get(), one_line(&sop.content, 160))),
        );
        lines.extend(reply.knowledge.iter().chain(&reply.recent).map(|lesson| {
            format!(
                "{}      {:+.1}  {}  {}",
                lesson.level.letter(),
                lesson.sigma.get(),
                lesson.space,
                one_line(&lesson.content, 140)
            )
        }));
        lines.extend(reply.potentials.iter().map(|tagged| {
            format!(
                "{} · {}: {}",
                tagged.space,
                tagged.entity,
                potentials_line(&tagged.potentials)
            )
        }));
        lines.iter().map(|line| printable(line)).collect()
    }

    /// Whether neither a rule nor a lesson was found.
    pub fn is_empty(&self) -> bool {
        self.reply.sops.is_empty() && self.reply.knowledge.is_empty() && self.reply.recent.is_empty()
    }
}

/// Shows what a plan for this text would be told.
///
/// # Errors
/// [`Failure`] when the store cannot be read.
pub fn recalled(records: &Records, text: &str, now: Timestamp, json: bool) -> Result<(), Failure> {
    let recalled = Recalled::of(records, text, now)?;
    if json {
        output::json(&recalled.to_json());
        return Ok(());
    }
    for line in recalled.lines() {
        output::result(&line);
    }
    if recalled.is_empty() {
        output::note("nothing is known about it");
    }
    Ok(())
}

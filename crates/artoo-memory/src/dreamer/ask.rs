//! Asking for one rule: the question, its answer, what is written, what it cost (design §15, §19).
//!
//! Owns a single question from proposal to outcome. Must not know when questions are put.

use super::choose::Consolidation;
use super::distil;
use super::establish::{establish, put_off, stands};
use crate::kv::KvError;
use crate::records::Records;
use artoo_protocol::model::{ModelError, ModelReply, Usage};
use artoo_protocol::ports::{Clock, LanguageModel};
use artoo_protocol::{MegramId, Millis, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;

/// How long a group is left alone after its lessons gave no rule, and after the model could not be asked.
const NO_RULE_WAIT: Millis = Millis::from_seconds(24 * 3600);
const NO_ANSWER_WAIT: Millis = Millis::from_seconds(15 * 60);
/// What became of one question to a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A rule, which is written.
    Rule {
        /// Its id.
        id: MegramId,
        /// Its words.
        words: String,
    },
    /// An answer that is no rule, or one that came too late for its sources.
    NoRule(String),
    /// No answer.
    Failed(String),
}

/// One question to a model, accounted.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// When it was put.
    pub at: Timestamp,
    /// About what.
    pub about: Consolidation,
    /// The model's own name; empty where none answered.
    pub model: String,
    /// What it cost.
    pub usage: Usage,
    /// How long it took.
    pub elapsed: Millis,
    /// What came of it.
    pub outcome: Outcome,
}

impl Call {
    /// As a line of an account. No task waits for it, so it is on no critical path.
    pub fn to_json(&self) -> Value {
        let (outcome, detail) = match &self.outcome {
            Outcome::Rule { id, words } => ("rule", format!("{id}: {words}")),
            Outcome::NoRule(why) => ("no_rule", why.clone()),
            Outcome::Failed(why) => ("failed", why.clone()),
        };
        json!({"kind": "call", "at": self.at, "role": "dreamer", "schema": "sop", "space": self.about.key.space,
            "entity": self.about.key.entity, "sign": self.about.sign.valence(), "sources": self.about.sources,
            "model": self.model, "usage": self.usage, "elapsed_ms": self.elapsed, "critical_path": false,
            "outcome": outcome, "detail": detail})
    }
}

/// Asks a model for the rule that a group has earned and writes it; what came of it, `None` when the group is gone meanwhile, or has
/// turned against the rule.
///
/// # Errors
/// [`KvError`] when the store cannot be read or written.
pub async fn distilled(
    records: &Arc<Records>,
    model: &dyn LanguageModel,
    proposal: Consolidation,
    clock: &dyn Clock,
) -> Result<Option<Call>, KvError> {
    let at = clock.now();
    let (store, asked) = (Arc::clone(records), proposal.clone());
    let read = move || Ok((store.get_many(&asked.sources)?, stands(&store, &asked, at)?));
    let (lessons, stands) = blocking(read).await?;
    if lessons.len() < proposal.sources.len() || !stands {
        return Ok(None);
    }
    let request = distil::request(&proposal, &lessons).map_err(|error| KvError::Failed(error.to_string()))?;
    let answer = model.complete(&request).await;
    let mut call = Call {
        at,
        about: proposal.clone(),
        model: String::new(),
        usage: Usage::default(),
        elapsed: clock.now().since(at),
        outcome: Outcome::NoRule(String::new()),
    };
    let spent = match &answer {
        Ok(reply) => {
            call.elapsed = reply.elapsed_ms;
            Some((reply.model.as_str(), &reply.usage))
        }
        Err(error) => error.spent(),
    };
    if let Some((model, usage)) = spent {
        model.clone_into(&mut call.model);
        call.usage = *usage;
    }
    let (store, now) = (Arc::clone(records), clock.now());
    call.outcome = blocking(move || conclude(&store, &proposal, answer, now)).await?;
    Ok(Some(call))
}

fn conclude(
    records: &Records,
    proposal: &Consolidation,
    answer: Result<ModelReply, ModelError>,
    now: Timestamp,
) -> Result<Outcome, KvError> {
    let reply = match answer {
        Ok(reply) => reply,
        Err(error) => {
            put_off(records, proposal, now.plus(NO_ANSWER_WAIT))?;
            return Ok(Outcome::Failed(error.to_string()));
        }
    };
    match distil::rule_of(&reply) {
        Ok(words) => Ok(match establish(records, proposal, &words, now)? {
            Some(rule) => Outcome::Rule { id: rule.id, words },
            None => Outcome::NoRule("what it was distilled from has changed meanwhile".to_owned()),
        }),
        Err(why) => {
            put_off(records, proposal, now.plus(NO_RULE_WAIT))?;
            Ok(Outcome::NoRule(why.to_string()))
        }
    }
}

/// Work on the store, on a thread that may wait.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KvError> + Send + 'static,
) -> Result<T, KvError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(KvError::Failed(format!("the Dreamer's thread failed: {error}"))))
}

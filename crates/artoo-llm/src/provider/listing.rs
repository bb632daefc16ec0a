//! The names of the models that a provider offers (design §18).
//!
//! Owns the reading of that list. It is asked by people, never by a role.

use artoo_protocol::model::ModelError;
use serde_json::Value;

use super::exchange::{Target, fetch};
use super::failure::Failure;
use super::{Provider, Wire};

/// Most names that are kept.
const MAX_NAMES: usize = 2_000;

impl Provider {
    /// The models on offer, sorted; asked once, without retries.
    ///
    /// # Errors
    /// [`ModelError`] when the provider cannot be reached, refuses the key, or has no list.
    pub async fn offers(&self) -> Result<Vec<String>, ModelError> {
        let mut first = None;
        for url in &self.endpoint.listings {
            let target = Target {
                url,
                model: &self.config.model,
                wire: self.config.wire,
                timeouts: self.timeouts,
                key: &self.config.api_key,
            };
            match fetch(self.transport.as_ref(), &target).await {
                Ok(document) => return Ok(names(self.config.wire, &document)),
                // Perhaps the list is under the next path.
                Err(Failure::Refused { error, .. }) => {
                    first.get_or_insert(error);
                }
                Err(Failure::Passing { error, .. } | Failure::Final(error)) => return Err(self.masked_error(error)),
            }
        }
        Err(first.map_or_else(
            || ModelError::Unreachable {
                message: "no endpoint is left to try".to_owned(),
            },
            |error| self.masked_error(error),
        ))
    }
}

fn names(wire: Wire, document: &Value) -> Vec<String> {
    let (list, key) = match wire {
        Wire::OpenAi | Wire::Anthropic => ("data", "id"),
        Wire::Gemini => ("models", "name"),
    };
    let models = document.get(list).and_then(Value::as_array).into_iter().flatten();
    let mut names: Vec<String> = models
        .filter(|model| wire != Wire::Gemini || answers(model))
        .filter_map(|model| model.get(key)?.as_str())
        .map(|name| name.trim_start_matches("models/").to_owned())
        .take(MAX_NAMES)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Gemini lists models for embedding and speech as well.
fn answers(model: &Value) -> bool {
    let methods = model.get("supportedGenerationMethods").and_then(Value::as_array);
    methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"))
}

//! Which adapters stand behind the model port: providers, the offline model, cassettes (design §18, §20).

use std::sync::Arc;

use artoo_llm::cassette::{Player, Recorder, Replacement};
use artoo_llm::offline::Offline;
use artoo_llm::provider::{Provider, ProviderConfig, RetryNotice};
use artoo_llm::{Secret, Tiers};
use artoo_protocol::model::{AnswerForm, ChatMessage, ModelError, ModelRequest, Tier};
use artoo_protocol::ports::LanguageModel;

use crate::failure::Failure;
use crate::output;
use crate::settings::{ModelChoice, Settings};

/// The model of both tiers, as configured.
///
/// # Errors
/// [`Failure`] (exit 2) when an address or a cassette cannot be used.
pub fn build(settings: &Settings, quiet: bool) -> Result<Arc<dyn LanguageModel>, Failure> {
    if let Some(path) = &settings.replay {
        let player = Player::open(path, places(settings)).map_err(|e| Failure::usage(e.to_string()))?;
        return Ok(Arc::new(player));
    }
    let brain = one(&settings.brain, quiet)?;
    let tool = if settings.tool == settings.brain {
        Arc::clone(&brain)
    } else {
        one(&settings.tool, quiet)?
    };
    let model: Arc<dyn LanguageModel> = Arc::new(Tiers { brain, tool });
    let Some(path) = &settings.record else { return Ok(model) };
    let keys = [&settings.brain, &settings.tool]
        .into_iter()
        .filter_map(|choice| match choice {
            ModelChoice::Endpoint { api_key, .. } => api_key.as_deref().map(Secret::new),
            ModelChoice::Offline => None,
        });
    let recorder =
        Recorder::create(path, model, keys.collect(), places(settings)).map_err(|e| Failure::usage(e.to_string()))?;
    Ok(Arc::new(recorder))
}

/// Paths that differ from machine to machine, with what stands for them on a cassette. The longest first, so that a workspace
/// inside the working directory is not taken for it.
fn places(settings: &Settings) -> Vec<Replacement> {
    let place = |path: &std::path::Path, mark: &str| Replacement {
        text: path.to_string_lossy().into_owned(),
        mark: mark.to_owned(),
    };
    let mut places = vec![place(&settings.workspace, "<workspace>"), place(&settings.cwd, "<cwd>")];
    places.sort_by_key(|place| std::cmp::Reverse(place.text.len()));
    places
}

fn one(choice: &ModelChoice, quiet: bool) -> Result<Arc<dyn LanguageModel>, Failure> {
    match choice {
        ModelChoice::Offline => Ok(Arc::new(Offline)),
        ModelChoice::Endpoint {
            base_url,
            api_key,
            model,
        } => {
            let mut config = provider(base_url, api_key.as_deref(), model);
            if !quiet {
                config.on_retry = Some(Arc::new(|notice: RetryNotice| {
                    let RetryNotice {
                        model,
                        attempt,
                        attempts,
                        wait,
                        reason,
                    } = notice;
                    output::note(&format!(
                        "model     {model}: {reason}; attempt {attempt} of {attempts} failed, again in {wait:.1?}"
                    ));
                }));
            }
            reached_by(config)
        }
    }
}

fn provider(base_url: &str, api_key: Option<&str>, model: &str) -> ProviderConfig {
    ProviderConfig::new(base_url, Secret::new(api_key.unwrap_or_default()), model)
}

fn reached_by(config: ProviderConfig) -> Result<Arc<dyn LanguageModel>, Failure> {
    let provider =
        Provider::new(config).map_err(|e| Failure::usage(format!("the model endpoint cannot be used: {e}")))?;
    Ok(Arc::new(provider))
}

/// Asks a model for the smallest answer there is.
///
/// # Errors
/// What the provider said.
pub async fn probe(choice: &ModelChoice) -> Result<(), String> {
    let model = match choice {
        ModelChoice::Offline => one(choice, true),
        ModelChoice::Endpoint {
            base_url,
            api_key,
            model,
        } => {
            let mut config = provider(base_url, api_key.as_deref(), model);
            // Who asks what is wrong wants to know it now.
            config.retries.attempts = 1;
            reached_by(config)
        }
    };
    let model = model.map_err(|e| e.message)?;
    let request = ModelRequest {
        tier: Tier::Brain,
        messages: vec![ChatMessage::User {
            content: "Answer with the one word: ready".into(),
        }],
        form: AnswerForm::Tools { tools: Vec::new() },
        max_output_tokens: Some(200),
    };
    match model.complete(&request).await {
        // That it answered at all is what was asked; a thinking model may need more than the limit to say a word.
        Ok(_) | Err(ModelError::Unusable { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

//! Which adapters stand behind the model port: providers, the offline model, cassettes (design §18, §20).

use std::sync::Arc;
use std::time::Duration;

use artoo_llm::cassette::{CassetteError, Player, Recorder, Replacement};
use artoo_llm::offline::Offline;
use artoo_llm::provider::{Provider, ProviderConfig, RetryNotice, Timeouts};
use artoo_llm::{Secret, Tiers};
use artoo_protocol::Millis;
use artoo_protocol::model::{AnswerForm, ChatMessage, ModelError, ModelRequest, Tier};
use artoo_protocol::ports::LanguageModel;

use crate::failure::Failure;
use crate::output;
use crate::settings::{ModelChoice, Settings};

/// The models of all tiers behind one port, as configured.
///
/// # Errors
/// [`Failure`] (exit 2) when an address or a cassette cannot be used.
pub fn build(settings: &Settings, quiet: bool) -> Result<Arc<dyn LanguageModel>, Failure> {
    if let Some(path) = &settings.replay {
        let player = Player::open(path, places(settings)).map_err(|e| Failure::usage(e.to_string()))?;
        return Ok(Arc::new(player));
    }
    // Longer than the task may run, nobody would wait for a provider's limit to pass.
    let one = |choice: &ModelChoice| one(choice, quiet, settings.time_budget.to_duration());
    let brain = one(&settings.brain)?;
    let tool = if settings.tool == settings.brain {
        Arc::clone(&brain)
    } else {
        one(&settings.tool)?
    };
    let beside = |choice: &Option<ModelChoice>| choice.as_ref().map(one).transpose();
    let model: Arc<dyn LanguageModel> = Arc::new(Tiers {
        brain,
        tool,
        judge: beside(&settings.judges.own)?,
        second_judge: beside(&settings.judges.second)?,
    });
    let Some(path) = &settings.record else { return Ok(model) };
    let models = settings.models();
    let keys = models.iter().filter_map(|choice| choice.api_key().map(Secret::new));
    let recorder = Recorder::create(path, model, keys.collect(), places(settings)).map_err(|error| match error {
        CassetteError::File { path, source } => Failure::unwritable(&path, &source),
        line @ CassetteError::Line { .. } => Failure::usage(line.to_string()),
    })?;
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

fn one(choice: &ModelChoice, quiet: bool, longest_wait: Duration) -> Result<Arc<dyn LanguageModel>, Failure> {
    match choice {
        ModelChoice::Offline => Ok(Arc::new(Offline)),
        ModelChoice::Endpoint { .. } => {
            let mut config = provider(choice);
            // The short waits after a passing error always fit: a task with little time ends by its budget then, and says so.
            config.retries.longest_wait = longest_wait.max(Duration::from_secs(15));
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
            reached_by(config).map(|provider| provider as Arc<dyn LanguageModel>)
        }
    }
}

/// How long the judgement of an attempt may take: one answer of the slowest model that R4a asks.
pub fn judging_time(settings: &Settings) -> Millis {
    let least = artoo_validators::meta::Config::default().judging_time;
    let judges = [Some(&settings.tool), settings.judges.second.as_ref()];
    let longest = judges.into_iter().flatten().map(|choice| match choice {
        ModelChoice::Offline => Duration::ZERO,
        ModelChoice::Endpoint { base_url, .. } => Timeouts::of(base_url).longest(),
    });
    longest
        .map(|longest| Millis::from_seconds(longest.as_secs()))
        .fold(least, Ord::max)
}

/// How a provider is asked; for the built-in model, which needs none, nothing that could be reached.
fn provider(choice: &ModelChoice) -> ProviderConfig {
    match choice {
        ModelChoice::Offline => ProviderConfig::new("", Secret::default(), ""),
        ModelChoice::Endpoint {
            wire,
            base_url,
            api_key,
            model,
        } => ProviderConfig {
            wire: *wire,
            ..ProviderConfig::new(base_url, Secret::new(api_key.as_deref().unwrap_or_default()), model)
        },
    }
}

fn reached_by(config: ProviderConfig) -> Result<Arc<Provider>, Failure> {
    let provider =
        Provider::new(config).map_err(|e| Failure::usage(format!("the model endpoint cannot be used: {e}")))?;
    Ok(Arc::new(provider))
}

/// The names of the models that a provider offers.
///
/// # Errors
/// What the provider said, or that nobody answered within a few seconds.
pub async fn offered(choice: &ModelChoice) -> Result<Vec<String>, String> {
    let mut config = provider(choice);
    // A person waits for this list, and a server that is not there is the usual case.
    config.timeouts = Some(Timeouts {
        connect: Duration::from_secs(3),
        idle: Duration::from_secs(10),
        ..Timeouts::REMOTE
    });
    let provider = reached_by(config).map_err(|e| e.message)?;
    provider.offers().await.map_err(|e| e.to_string())
}

/// Asks a model for the smallest answer there is; how long it took, where that was told.
///
/// # Errors
/// What the provider said.
pub async fn probe(choice: &ModelChoice) -> Result<Option<Millis>, String> {
    let model = match choice {
        ModelChoice::Offline => Ok(Arc::new(Offline) as Arc<dyn LanguageModel>),
        ModelChoice::Endpoint { .. } => {
            let mut config = provider(choice);
            // Who asks what is wrong wants to know it now; a server on this machine may have to load its model first.
            config.retries.attempts = 1;
            config.timeouts = Some(Timeouts {
                connect: Duration::from_secs(3),
                first_token: Duration::from_secs(60),
                idle: Duration::from_secs(20),
            });
            reached_by(config).map(|provider| provider as Arc<dyn LanguageModel>)
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
        Ok(reply) => Ok(Some(reply.elapsed_ms)),
        Err(error) if is_cut_off(&error) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn is_cut_off(error: &ModelError) -> bool {
    matches!(error.bare(), ModelError::Unusable { message } if message.starts_with("finish_reason length"))
}

//! Two models behind one port: the brain and the tool tier (design §18).
//!
//! Owns the routing by [`Tier`] only. Must not know which provider stands behind either.

use std::sync::Arc;

use artoo_protocol::model::{ModelError, ModelReply, ModelRequest, Tier};
use artoo_protocol::ports::LanguageModel;
use async_trait::async_trait;

/// Sends each request to the model of its tier.
#[derive(Clone)]
pub struct Tiers {
    /// R1, R2, R4b and the Dreamer.
    pub brain: Arc<dyn LanguageModel>,
    /// R3 and R4a.
    pub tool: Arc<dyn LanguageModel>,
}

impl Tiers {
    /// One model for both tiers.
    pub fn same(model: Arc<dyn LanguageModel>) -> Self {
        Self {
            brain: Arc::clone(&model),
            tool: model,
        }
    }
}

#[async_trait]
impl LanguageModel for Tiers {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        match request.tier {
            Tier::Brain => self.brain.complete(request).await,
            Tier::Tool => self.tool.complete(request).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_protocol::model::{AnswerForm, ModelContent, Usage};
    use artoo_protocol::units::Millis;

    struct Named(&'static str);

    #[async_trait]
    impl LanguageModel for Named {
        async fn complete(&self, _: &ModelRequest) -> Result<ModelReply, ModelError> {
            Ok(ModelReply {
                content: ModelContent::Text { text: self.0.into() },
                model: self.0.into(),
                usage: Usage::default(),
                elapsed_ms: Millis(0),
            })
        }
    }

    #[tokio::test]
    async fn each_tier_reaches_its_own_model() {
        let tiers = Tiers {
            brain: Arc::new(Named("brain")),
            tool: Arc::new(Named("tool")),
        };
        for (tier, name) in [(Tier::Brain, "brain"), (Tier::Tool, "tool")] {
            let request = ModelRequest {
                tier,
                messages: vec![],
                form: AnswerForm::Tools { tools: vec![] },
                max_output_tokens: None,
            };
            assert_eq!(tiers.complete(&request).await.unwrap().model, name);
        }
    }
}

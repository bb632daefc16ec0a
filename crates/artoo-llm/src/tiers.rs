//! Several models behind one port: the brain, the tool tier, and judges of their own (design §18).
//!
//! Owns the routing by [`Tier`] only. Must not know which provider stands behind any of them.

use std::sync::Arc;

use artoo_protocol::model::{ModelError, ModelReply, ModelRequest, Tier};
use artoo_protocol::ports::LanguageModel;
use async_trait::async_trait;

/// Sends each request to the model of its tier.
#[derive(Clone)]
pub struct Tiers {
    /// R1, R2, the Dreamer, and R4b unless it has a judge of its own.
    pub brain: Arc<dyn LanguageModel>,
    /// R3 and R4a.
    pub tool: Arc<dyn LanguageModel>,
    /// R4b's own; the brain where there is none.
    pub judge: Option<Arc<dyn LanguageModel>>,
    /// Beside R4a and R4b; a request for one that is not there is refused, since a judgement must not be left out unseen.
    pub second_judge: Option<Arc<dyn LanguageModel>>,
}

impl Tiers {
    /// One model for both tiers, and nobody beside it.
    pub fn same(model: Arc<dyn LanguageModel>) -> Self {
        Self {
            brain: Arc::clone(&model),
            tool: model,
            judge: None,
            second_judge: None,
        }
    }
}

#[async_trait]
impl LanguageModel for Tiers {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let model = match request.tier {
            Tier::Brain => &self.brain,
            Tier::Tool => &self.tool,
            Tier::Judge => self.judge.as_ref().unwrap_or(&self.brain),
            Tier::SecondJudge => self.second_judge.as_ref().ok_or_else(|| ModelError::Rejected {
                status: 0,
                message: "the task was begun with a second judge, and none is configured now: set [second_judge]"
                    .into(),
            })?,
        };
        model.complete(request).await
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
        let request = |tier| ModelRequest {
            tier,
            messages: vec![],
            form: AnswerForm::Tools { tools: vec![] },
            max_output_tokens: None,
        };
        let two = Tiers {
            tool: Arc::new(Named("tool")),
            ..Tiers::same(Arc::new(Named("brain")))
        };
        let four = Tiers {
            judge: Some(Arc::new(Named("judge"))),
            second_judge: Some(Arc::new(Named("second"))),
            ..two.clone()
        };
        for (tiers, tier, name) in [
            (&two, Tier::Brain, "brain"),
            (&two, Tier::Tool, "tool"),
            (&two, Tier::Judge, "brain"),
            (&four, Tier::Brain, "brain"),
            (&four, Tier::Judge, "judge"),
            (&four, Tier::SecondJudge, "second"),
        ] {
            assert_eq!(tiers.complete(&request(tier)).await.unwrap().model, name);
        }
        let missing = two.complete(&request(Tier::SecondJudge)).await.unwrap_err();
        assert!(missing.to_string().contains("[second_judge]"), "{missing}");
    }
}

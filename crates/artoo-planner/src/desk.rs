//! What all tasks of a planner share: the configuration and the texts made from it once (design §6).

use artoo_protocol::message::TaskSpec;
use artoo_protocol::prompt::PromptError;

use crate::Config;
use crate::scope::Allowed;
use crate::standing::Standing;

/// The shared part.
#[derive(Debug)]
pub struct Desk {
    /// As it was given.
    pub config: Config,
    /// Names of R3's tools.
    pub tool_names: Vec<String>,
    /// The system message for a plan.
    pub plan_system: String,
    /// The system message for a partial result.
    pub partial_system: String,
    /// Standing instructions of the folder, as they stand in a prompt.
    pub standing: String,
}

impl Desk {
    /// # Errors
    /// [`PromptError`] when a configured prompt has other placeholders than `{{laws}}`.
    pub fn new(config: Config) -> Result<Self, PromptError> {
        Ok(Self {
            tool_names: config.tools.iter().map(|tool| tool.name.clone()).collect(),
            plan_system: config.prompts.plan_text()?,
            partial_system: config.prompts.partial_result_text()?,
            standing: config.standing.as_ref().map(Standing::part).unwrap_or_default(),
            config,
        })
    }

    /// Where a task may create and change: what the caller gave, and what the user stated if it is a path.
    pub fn allowed(&self, spec: &TaskSpec) -> Allowed {
        let stated = spec.constraints.scope.iter().filter(|scope| is_path(scope));
        let stated = spec.scope.iter().chain(stated).cloned().collect();
        Allowed::new(stated, self.config.places.clone())
    }

    /// Where long outputs of a task go.
    pub fn outputs_of(&self, spec: &TaskSpec) -> Option<String> {
        let folder = self.config.outputs.as_ref()?;
        Some(format!("{}/{}", folder.trim_end_matches('/'), spec.task_id))
    }
}

/// Whether a stated scope is a place on this machine, not a site or an application.
fn is_path(scope: &str) -> bool {
    !scope.contains("://") && (scope.starts_with(['/', '~', '.']) || scope.contains('/'))
}

//! What the controller can be tuned by: each parameter with its unit, range and default.
//!
//! Owns values only. Every value that the types allow gives a working controller, so nothing is checked a second time.

use artoo_protocol::{Millis, Unit01};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which gradient decides whether there is a signal (design §12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gradient {
    /// ∇L as defined: it also rises because resources are spent.
    #[default]
    Total,
    /// Only the part of it that D and P make, at constant β.
    Task,
}

/// How the first round is read, which has no gradient yet (design §12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstRound {
    /// ∇L = 0 is a plateau: the first directive escapes.
    #[default]
    Plateau,
    /// Nothing is known of a plateau yet: the first directive is that of movement, with urgency lower.
    Movement,
}

/// What a round asks for that improves by an approach which the failures call wrong (design §12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrongButImproving {
    /// Another method: a falling loss may be a criterion that is being gamed.
    #[default]
    ChangeApproach,
    /// The same method, tighter: the fall of the loss weighs more than the class of the failures.
    Refine,
}

/// What a result asks for that is close enough, and not complete (design §12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NearGoal {
    /// To be delivered at once, with what is missing named.
    #[default]
    Stop,
    /// To be refined while anything is left; it is delivered when the resources, the replans or law 2 would end the task.
    Finish,
}

/// Whose targets a directive blocks (design §13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedTargets {
    /// Those of all implicated calls: that failed, or whose output a failed verdict cites.
    #[default]
    Implicated,
    /// Only those of calls that failed by themselves: where a result is only not what was wanted, the place is not to blame.
    Failed,
}

/// Parameters of the controller; any of them may be left out in JSON and TOML.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// α: weight of the distance D in the loss; 0 to 1, default 0.6.
    pub alpha: Unit01,
    /// β: weight of the implausibility P while no resources are spent; 0 to 1, default 0.3.
    pub beta: Unit01,
    /// λ: weight of the resources Ω in the loss; 0 to 1, default 0.4.
    pub lambda: Unit01,
    /// w₁: weight of the rounds in Ω; 0 to 1, default 0.6.
    pub w1: Unit01,
    /// w₂: weight of the time in Ω; 0 to 1, default 0.4.
    pub w2: Unit01,
    /// ε: |∇L| from here on is a signal, below it is a plateau; in units of loss, 0 to 1, default 0.1. With 0 every round
    /// has a signal, and one without any change falls in the worsening rows.
    pub epsilon: Unit01,
    /// δ: D up to here is close enough; 0 to 1, default 0.3.
    pub delta: Unit01,
    /// ρ: P above this means that the approach is wrong, up to it that the environment stood in the way; 0 to 1, default 0.5.
    pub rho: Unit01,
    /// θ: Ω from here on ends the task; 0 to 1, default 0.8.
    pub theta: Unit01,
    /// Time that a task may run, waiting for a person left out; milliseconds, default 300,000. It is the denominator in Ω
    /// and a hard limit; 0 leaves no time at all.
    pub time_budget_ms: Millis,
    /// Rounds that count as a full ratio in Ω; default 3. 0 makes the ratio full from the start.
    #[serde(alias = "maxReplans")]
    pub max_replans: u32,
    /// Worsening rounds in a row that end the task (law 2); default 2. 0 switches the rule off.
    pub kill_after: u32,
    /// Which gradient decides; default `total`.
    pub gradient: Gradient,
    /// How the first round is read; default `plateau`.
    pub first_round: FirstRound,
    /// What cell 6 asks for; default `change_approach`.
    pub wrong_but_improving: WrongButImproving,
    /// Whose targets are blocked; default `implicated`.
    pub blocked_targets: BlockedTargets,
    /// What D ≤ δ asks for; default `stop`.
    pub near_goal: NearGoal,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            alpha: Unit01::clamped(0.6),
            beta: Unit01::clamped(0.3),
            lambda: Unit01::clamped(0.4),
            w1: Unit01::clamped(0.6),
            w2: Unit01::clamped(0.4),
            epsilon: Unit01::clamped(0.1),
            delta: Unit01::clamped(0.3),
            rho: Unit01::clamped(0.5),
            theta: Unit01::clamped(0.8),
            time_budget_ms: Millis(300_000),
            max_replans: 3,
            kill_after: 2,
            gradient: Gradient::Total,
            first_round: FirstRound::Plateau,
            wrong_but_improving: WrongButImproving::ChangeApproach,
            blocked_targets: BlockedTargets::Implicated,
            near_goal: NearGoal::Stop,
        }
    }
}

impl Params {
    /// The parameters of a recorded task: all of them stand under `roles.controller` in its journal's settings; the oldest
    /// journals name only the time budget and the replans, and ran with defaults otherwise.
    ///
    /// # Errors
    /// When `controller` holds what this version does not know: explaining with other parameters would be wrong.
    pub fn of_settings(settings: &Value) -> Result<Self, serde_json::Error> {
        if let Some(controller) = settings.pointer("/roles/controller") {
            return Self::deserialize(controller);
        }
        let number = |name| settings.get(name).and_then(Value::as_u64);
        let defaults = Self::default();
        Ok(Self {
            time_budget_ms: number("time_budget_ms").map_or(defaults.time_budget_ms, Millis),
            max_replans: number("max_replans")
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(defaults.max_replans),
            ..defaults
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_names_the_parameters_of_its_run() {
        let ran = Params {
            delta: Unit01::clamped(0.125),
            max_replans: 7,
            gradient: Gradient::Task,
            ..Params::default()
        };
        let settings = serde_json::json!({"max_replans": 1, "roles": {"controller": ran}});
        assert_eq!(Params::of_settings(&settings).unwrap(), ran);
        let old = serde_json::json!({"max_replans": 5, "time_budget_ms": 9});
        let old = Params::of_settings(&old).unwrap();
        assert_eq!((old.max_replans, old.time_budget_ms), (5, Millis(9)));
        assert_eq!(Params::of_settings(&Value::Null).unwrap(), Params::default());
        let newer = serde_json::json!({"roles": {"controller": {"from_the_future": 1}}});
        assert!(Params::of_settings(&newer).is_err());
    }

    #[test]
    fn any_part_may_be_overridden_and_a_typing_error_is_told() {
        let params: Params = serde_json::from_str(r#"{"delta":0,"max_replans":9,"gradient":"task"}"#).unwrap();
        assert_eq!((params.delta, params.max_replans), (Unit01::ZERO, 9));
        assert_eq!(
            (params.alpha, params.gradient),
            (Params::default().alpha, Gradient::Task)
        );
        for bad in [
            r#"{"dleta":0}"#,
            r#"{"theta":1.1}"#,
            r#"{"max_replans":-1}"#,
            r#"{"alpha":null}"#,
        ] {
            assert!(serde_json::from_str::<Params>(bad).is_err(), "{bad}");
        }
    }
}

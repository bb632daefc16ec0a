//! R2 ↔ R5 and R7 → R5: what is remembered and how it is asked for (design §15).

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::ids::{MegramId, TaskId};
use crate::units::{DecayPerDay, Finite, Magnitude, Timestamp, Valence};

/// A layer of the pyramid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// A raw event.
    M,
    /// Knowledge.
    K,
    /// Common sense: rules and constraints.
    C,
    /// The laws and the persona; lives in the prompts, never in the store.
    T,
}

impl Level {
    /// The letter used in keys and JSON.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::M => "M",
            Self::K => "K",
            Self::C => "C",
            Self::T => "T",
        }
    }
}

/// The controller's state that a memory comes from: a row of the quantisation matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MacroState {
    /// Budget used up, diverging or hopeless.
    Abandon,
    /// D = 0.
    Accept,
    /// Another method.
    ChangeApproach,
    /// D ≤ δ.
    Success,
    /// A tool class not tried before.
    BreakSymmetry,
    /// Another target.
    ChangePath,
    /// Tighter parameters.
    Refine,
    /// Stated by the person, not by the controller.
    Remember,
}

/// The atom of memory: one event with magnitude, valence and decay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Megram {
    /// Made by code.
    pub id: MegramId,
    /// The layer.
    pub level: Level,
    /// When it happened; Δt is measured from here.
    pub created_at: Timestamp,
    /// When it was last recalled.
    #[serde(default)]
    pub last_recalled_at: Option<Timestamp>,
    /// What it is about: `tool:<name>`, `intent:<words>`, `user:preference`.
    pub space: String,
    /// Where: `path:<target>`, `env:local`.
    pub entity: String,
    /// A lesson: what worked or failed, with tool, command and reason.
    pub content: String,
    /// The state it comes from.
    pub state: MacroState,
    /// Magnitude: of one event at most 1, of repetitions that were folded into one their sum at the newest of them.
    pub f: Magnitude,
    /// Valence.
    pub sigma: Valence,
    /// Decay per day.
    pub k: DecayPerDay,
    /// The memories that a rule was distilled from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<MegramId>,
    /// The record that this one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<MegramId>,
    /// The task, or `operator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// What the potentials of a group ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryAction {
    /// Too little history.
    #[default]
    Ignore,
    /// SHOULD PREFER.
    Exploit,
    /// MUST NOT.
    Avoid,
    /// Confirm or sandbox.
    Caution,
}

/// The two channels of a (space, entity) group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Potentials {
    /// Σ|f|·e^(−kΔt).
    pub attention: Finite,
    /// Σσf·e^(−kΔt).
    pub decision: Finite,
    /// Their quantisation.
    pub action: MemoryAction,
}

/// Potentials with the group that they belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaggedPotentials {
    /// The group's space.
    pub space: String,
    /// The group's entity.
    pub entity: String,
    /// Its potentials.
    pub potentials: Potentials,
}

/// A rule at level C.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SopRecord {
    /// The memory.
    pub id: MegramId,
    /// Its group's space.
    pub space: String,
    /// Its group's entity.
    pub entity: String,
    /// The rule in words.
    pub content: String,
    /// Positive: do; negative: do not.
    pub sigma: Valence,
}

/// A lesson below level C.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lesson {
    /// The memory.
    pub id: MegramId,
    /// M or K.
    pub level: Level,
    /// Its group's space.
    pub space: String,
    /// Its group's entity.
    pub entity: String,
    /// When it happened.
    pub created_at: Timestamp,
    /// The lesson in words.
    pub content: String,
    /// What was done then.
    pub state: MacroState,
    /// Its valence.
    pub sigma: Valence,
}

/// R2 asks memory before it plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryQuery {
    /// The task.
    pub task_id: TaskId,
    /// Counts R2's queries for this task; the reply repeats it.
    pub query: u32,
    /// `intent:<first three words>`.
    pub space: String,
    /// `env:local`.
    pub entity: String,
    /// The intent in full, for the nearest known ones.
    pub intent: String,
    /// Tools on offer, whose groups are read too.
    #[serde(default)]
    pub tools: Vec<String>,
}

/// What memory knows, as data: R2 words it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryReply {
    /// The task.
    pub task_id: TaskId,
    /// The query answered.
    pub query: u32,
    /// Rules at level C: of the user, of the intent, of the tools.
    #[serde(default)]
    pub sops: Vec<SopRecord>,
    /// Level K, newest first.
    #[serde(default)]
    pub knowledge: Vec<Lesson>,
    /// Level M of this and the nearest intents, newest first, at most ten.
    #[serde(default)]
    pub recent: Vec<Lesson>,
    /// Potentials of the groups asked for, those to be ignored left out.
    #[serde(default)]
    pub potentials: Vec<TaggedPotentials>,
    /// Set when memory could not be read: planning goes on without it.
    #[serde(default)]
    pub unavailable: Option<String>,
}

impl MemoryReply {
    /// The reply of a memory that knows nothing.
    pub const fn empty(task_id: TaskId, query: u32) -> Self {
        Self {
            task_id,
            query,
            sops: Vec::new(),
            knowledge: Vec::new(),
            recent: Vec::new(),
            potentials: Vec::new(),
            unavailable: None,
        }
    }
}

/// Longest word that [`intent_space`] keeps, in characters: an intent is a model's text and may hold anything.
const WORD_MAX: usize = 48;

/// The space of a kind of request: `intent:` and the first three words of the intent, lower-cased, joined by `_`.
///
/// Words are those of UAX #29, so that every script has some; without any, the first visible pieces stand for them, and an
/// empty text gives `intent:task`. R2 asks and R7
/// writes under this name, which is why there is only this one function (design §15).
pub fn intent_space(intent: &str) -> String {
    let short = |word: &str| word.to_lowercase().chars().take(WORD_MAX).collect::<String>();
    let mut words: Vec<String> = intent.unicode_words().take(3).map(short).collect();
    if words.is_empty() {
        // No letters at all, such as emoji: the first visible pieces name it.
        let visible = intent.split_word_bounds().filter(|piece| !piece.trim().is_empty());
        words = visible.take(3).map(short).collect();
    }
    if words.is_empty() {
        words.push("task".to_owned());
    }
    format!("intent:{}", words.join("_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_in_any_script_has_a_space() {
        for (intent, expect) in [
            ("Find the largest video files", "intent:find_the_largest"),
            ("  Größte   Datei,  finden!", "intent:größte_datei_finden"),
            ("найди файл", "intent:найди_файл"),
            ("数一数文件", "intent:数_一_数"),
            ("", "intent:task"),
            ("  ", "intent:task"),
            ("?!", "intent:?_!"),
            ("🎉🎉", "intent:🎉_🎉"),
        ] {
            assert_eq!(intent_space(intent), expect, "{intent:?}");
        }
        assert!(intent_space(&"x".repeat(100_000)).len() < 100);
    }
}

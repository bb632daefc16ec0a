//! The records that a choice leads to: nothing is edited, a new record takes the place of the old one (design §15).
//!
//! Owns what a promoted, a demoted and a distilled record look like. Must not know the store or the model.

use super::choose::{Consolidation, Sign};
use artoo_protocol::message::{Level, MacroState, Megram, SopRecord};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, TaskId, Timestamp, Valence};

/// How fast a rule fades once it has lost its immunity to time.
const DEMOTED_DECAY: f64 = 0.05;
/// Who signs what the Dreamer writes.
pub const ORIGIN: &str = "dreamer";
/// How strongly a failed task speaks against a rule that it followed: as a change of approach does.
const FEEDBACK_MAGNITUDE: f64 = 0.85;
const FEEDBACK_DECAY: f64 = 0.05;

/// The event as knowledge: the same in all but level and id, so that it neither gains nor loses weight.
pub fn promoted(event: &Megram, now: Timestamp) -> Megram {
    Megram {
        id: follower(event, now, 1),
        level: Level::K,
        last_recalled_at: None,
        supersedes: Some(event.id.clone()),
        sources: Vec::new(),
        ..event.clone()
    }
}

/// The rule as knowledge that fades from now on. It keeps its sources: they were spent on the rule and do not count again.
pub fn demoted(rule: &Megram, now: Timestamp) -> Megram {
    Megram {
        id: follower(rule, now, 2),
        level: Level::K,
        created_at: now,
        last_recalled_at: None,
        k: DecayPerDay::new(DEMOTED_DECAY).unwrap_or_default(),
        supersedes: Some(rule.id.clone()),
        ..rule.clone()
    }
}

/// The rule that a group has earned, in the words that were found for it. `inherited` are the sources of the rule that it
/// replaces: they stay spent.
pub fn rule(consolidation: &Consolidation, inherited: &[MegramId], words: &str, now: Timestamp) -> Megram {
    let key = &consolidation.key;
    let mut sources = consolidation.sources.clone();
    sources.extend(
        inherited
            .iter()
            .filter(|id| !consolidation.sources.contains(id))
            .cloned(),
    );
    let seed = TaskId::new(format!("dreamer|{}|{}", key.space, key.entity));
    Megram {
        id: MegramId::derive(now, &seed, u64::from(consolidation.sign == Sign::Practice)),
        level: Level::C,
        created_at: now,
        last_recalled_at: None,
        space: key.space.clone(),
        entity: key.entity.clone(),
        content: words.to_owned(),
        state: match consolidation.sign {
            Sign::Practice => MacroState::Accept,
            Sign::Constraint => MacroState::Abandon,
        },
        f: Magnitude::ONE,
        sigma: Valence::new(consolidation.sign.valence()).unwrap_or_default(),
        k: DecayPerDay::ZERO,
        sources,
        supersedes: consolidation.supersedes.clone(),
        origin: Some(ORIGIN.to_owned()),
    }
}

/// What is written against a rule that a task followed and failed by: an event of the opposite sign beside it. `id` is the
/// caller's, who knows what else the task wrote.
pub fn feedback(id: MegramId, rule: &SopRecord, content: &str, now: Timestamp) -> Megram {
    let sign = if rule.sigma.get() < 0.0 { 1.0 } else { -1.0 };
    Megram {
        id,
        level: Level::M,
        created_at: now,
        last_recalled_at: None,
        space: rule.space.clone(),
        entity: rule.entity.clone(),
        content: content.to_owned(),
        state: MacroState::ChangeApproach,
        f: Magnitude::clamped(FEEDBACK_MAGNITUDE),
        sigma: Valence::new(sign).unwrap_or_default(),
        k: DecayPerDay::new(FEEDBACK_DECAY).unwrap_or_default(),
        sources: Vec::new(),
        supersedes: None,
        origin: Some(format!("feedback on {}", rule.id)),
    }
}

/// The id of the record that takes another one's place: the same however often it is made at one moment.
fn follower(megram: &Megram, now: Timestamp, step: u64) -> MegramId {
    MegramId::derive(now, &TaskId::new(megram.id.as_str()), step)
}

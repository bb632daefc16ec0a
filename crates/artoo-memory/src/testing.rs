//! Megrams for this crate's unit tests.

use artoo_protocol::message::{Level, MacroState, Megram};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, Timestamp, Valence};

/// When all memories of the tests are made.
pub(crate) fn at() -> Timestamp {
    Timestamp::parse("2026-02-27T09:30:00.000Z").unwrap()
}

/// An M-level memory that fades by 0.05 a day.
pub(crate) fn megram(id: &str, space: &str, entity: &str, f: f64, sigma: f64) -> Megram {
    Megram {
        id: MegramId::new(id),
        level: Level::M,
        created_at: at(),
        last_recalled_at: None,
        space: space.to_owned(),
        entity: entity.to_owned(),
        content: format!("lesson {id}"),
        state: MacroState::ChangeApproach,
        f: Magnitude::new(f).unwrap(),
        sigma: Valence::new(sigma).unwrap(),
        k: DecayPerDay::new(0.05).unwrap(),
        sources: Vec::new(),
        supersedes: None,
        origin: None,
    }
}

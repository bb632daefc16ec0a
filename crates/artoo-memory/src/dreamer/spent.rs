//! What a record was distilled from, and that from what else: it is spent, and must not count again (design §15).
//!
//! Owns the way down from a record to its evidence. Must not know who removes it.

use super::pass::SLICE;
use crate::kv::KvError;
use crate::records::Records;
use crate::view::GroupKey;
use artoo_protocol::MegramId;
use artoo_protocol::message::{MacroState, Megram};
use std::collections::HashSet;

/// Everything of its group that a record was distilled from, at any remove, in the order in which it has to go before the record:
/// what goes after its evidence lets none of it count again, wherever it is cut off.
///
/// What the person asked to be remembered is not evidence, nor is what belongs to another group.
///
/// # Errors
/// [`KvError`] when the store cannot be read.
pub fn spent_on(records: &Records, megram: &Megram) -> Result<Vec<MegramId>, KvError> {
    if megram.state == MacroState::Remember {
        return Ok(Vec::new());
    }
    let group = GroupKey::of(megram);
    let mut seen = HashSet::from([megram.id.clone()]);
    let mut spent = Vec::new();
    let mut next = megram.sources.clone();
    while !next.is_empty() {
        next.retain(|id| seen.insert(id.clone()));
        let mut deeper = Vec::new();
        for ids in next.chunks(SLICE) {
            for source in records.get_many(ids)? {
                if GroupKey::of(&source) == group && source.state != MacroState::Remember {
                    spent.push(source.id);
                    deeper.extend(source.sources);
                }
            }
        }
        next = deeper;
    }
    spent.reverse();
    Ok(spent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::InMemoryKv;
    use crate::records::Edit;
    use crate::testing::{at, megram};
    use std::sync::Arc;

    #[test]
    fn evidence_of_evidence_goes_first_and_what_is_not_evidence_stays() {
        let made_of = |id: &str, sources: &[&str]| Megram {
            sources: sources.iter().map(|id| MegramId::new(*id)).collect(),
            ..megram(id, "intent:count", "env:local", 0.9, 1.0)
        };
        let wish = Megram {
            state: MacroState::Remember,
            ..made_of("wish", &[])
        };
        let elsewhere = megram("elsewhere", "intent:sort", "env:local", 0.9, 1.0);
        let top = made_of("top", &["below", "wish", "elsewhere", "gone", "top"]);
        let all = [
            wish,
            elsewhere,
            made_of("event", &["top"]),
            made_of("below", &["event"]),
            top.clone(),
        ];
        let records = Records::open(Arc::new(InMemoryKv::new())).unwrap();
        records.commit(&all.map(Edit::Store), at()).unwrap();
        assert_eq!(spent_on(&records, &top).unwrap(), ["event", "below"].map(MegramId::new));
        let wish = records.get(&MegramId::new("wish")).unwrap().unwrap();
        assert!(spent_on(&records, &wish).unwrap().is_empty());
    }
}

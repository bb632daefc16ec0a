//! What becomes of a group that has earned a rule: the rule is written, or the group is left alone for a while (design §15).
//!
//! Owns both in the store. Must not know who words the rule.

use super::carry;
use super::choose::{Consolidation, Params};
use super::pass::SLICE;
use super::standing::would_stand;
use crate::entry::Entry;
use crate::keys;
use crate::kv::{Batch, KvError};
use crate::potentials::contribution;
use crate::records::{Edit, Records, Stored};
use artoo_protocol::Timestamp;
use artoo_protocol::message::Megram;

/// Remembers that this group is not to be proposed again for a while, across restarts.
///
/// # Errors
/// [`KvError`] when the store cannot be written.
pub fn put_off(records: &Records, proposal: &Consolidation, until: Timestamp) -> Result<(), KvError> {
    let mut batch = Batch::new();
    batch.put(put_off_key(proposal), until.to_string());
    records.kv().apply(batch)
}

/// Whether the rule would stand in its group as that is now: it may have turned since the rule was proposed.
///
/// # Errors
/// [`KvError`] when the store cannot be read.
pub fn stands(records: &Records, proposal: &Consolidation, now: Timestamp) -> Result<bool, KvError> {
    let mut counting: Vec<Entry> = Vec::new();
    loop {
        let page = records.entries(&proposal.key, counting.last(), SLICE)?;
        let is_last = page.len() < SLICE;
        counting.extend(page);
        if is_last {
            return Ok(would_stand(proposal, &counting, now));
        }
    }
}

/// Writes a rule in these words, unless what it was distilled from is no longer there, or it would be bankrupt at once. The rule, where
/// it was written.
///
/// # Errors
/// [`KvError`] when the store cannot be read or written.
pub fn establish(
    records: &Records,
    proposal: &Consolidation,
    words: &str,
    now: Timestamp,
) -> Result<Option<Megram>, KvError> {
    for ids in proposal.sources.chunks(SLICE) {
        if records.get_many(ids)?.len() < ids.len() {
            return Ok(None);
        }
    }
    let mut inherited = Vec::new();
    if let Some(before) = &proposal.supersedes {
        let Some(before) = records.get(before)? else {
            return Ok(None);
        };
        for ids in before.sources.chunks(SLICE) {
            let still_weighs = |megram: &Megram| contribution(megram, now) >= Params::default().forget_contribution;
            inherited.extend(
                records
                    .get_many(ids)?
                    .into_iter()
                    .filter(still_weighs)
                    .map(|megram| megram.id),
            );
        }
    }
    if !stands(records, proposal, now)? {
        return Ok(None);
    }
    let rule = carry::rule(proposal, &inherited, words, now);
    let from = proposal.sources.iter().chain(&proposal.supersedes).cloned().collect();
    let megram = rule.clone();
    // What was forgotten since the look above is not forgotten in vain.
    let stored = records.commit(&[Edit::Derive { megram, from }], now)?;
    records.kv().flush()?;
    Ok((stored == [Stored::New]).then_some(rule))
}

/// Until when a group is not to be proposed again, where that was said.
pub(super) fn put_off_until(records: &Records, proposal: &Consolidation) -> Result<Option<Timestamp>, KvError> {
    let until = records.kv().get(put_off_key(proposal).as_bytes())?;
    Ok(until.and_then(|text| Timestamp::parse(std::str::from_utf8(&text).ok()?).ok()))
}

fn put_off_key(proposal: &Consolidation) -> String {
    let sign = if proposal.sign.valence() < 0.0 { '-' } else { '+' };
    keys::put_off(&proposal.key.space, &proposal.key.entity, sign)
}

//! Making one record of several that say the same (design §15).
//!
//! Owns the order of the commits: after each of them the group weighs what it weighed. Must not know which records are alike.

use super::carry;
use super::pass::EDITS;
use crate::kv::KvError;
use crate::records::{Edit, Records, same_words};
use artoo_protocol::message::{Level, Megram};
use artoo_protocol::{MegramId, Timestamp};

/// Makes one of several, oldest first, a few at a time, each time in one commit. Whether all of it is done; `false` where the pass
/// was stopped over it, and the next one goes on.
pub(super) fn fold(
    records: &Records,
    ids: &[MegramId],
    level: Level,
    now: Timestamp,
    stop: &dyn Fn() -> bool,
) -> Result<bool, KvError> {
    let Some(newest) = ids.last().map(|id| records.get(id)).transpose()?.flatten() else {
        return Ok(true);
    };
    let mut so_far: Option<Megram> = None;
    for slice in ids.chunks(EDITS) {
        if stop() {
            return Ok(false);
        }
        let mut alike = records.get_many(slice)?;
        // What was compared was a short sum of the words.
        alike.retain(|megram| same_words(&megram.content, &newest.content));
        alike.extend(so_far.take());
        let Some(folded) = carry::folded(&alike, level, now).filter(|_| alike.len() > 1) else {
            so_far = alike.pop();
            continue;
        };
        // The newest is replaced, and stays to be read; the others go.
        let others = alike
            .iter()
            .filter(|megram| Some(&megram.id) != folded.supersedes.as_ref());
        let mut edits = vec![Edit::Store(folded.clone())];
        edits.extend(others.map(|megram| Edit::Remove(megram.id.clone())));
        records.commit(&edits, now)?;
        so_far = Some(folded);
    }
    Ok(true)
}

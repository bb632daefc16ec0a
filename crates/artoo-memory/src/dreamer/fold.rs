//! Making one record of several that say the same, few at a time (design §15).
//!
//! Owns the order of the commits: after each of them the group weighs what it weighed. Must not know which records are alike.

use super::pass::EDITS;
use crate::kv::KvError;
use crate::records::{Edit, Records, Stored};
use artoo_protocol::message::Level;
use artoo_protocol::{MegramId, Timestamp};

/// Makes one of several, oldest first: of each few one, and of these again, until one is left. How many became part of another one,
/// and whether all of it is done; where the pass was stopped over it the next one goes on.
///
/// Each commit reads what there still is: what was forgotten since it was chosen does not come back.
pub(super) fn fold(
    records: &Records,
    ids: &[MegramId],
    level: Level,
    now: Timestamp,
    stop: &dyn Fn() -> bool,
) -> Result<(usize, bool), KvError> {
    let (mut left, mut gone) = (ids.to_vec(), 0);
    loop {
        let mut wholes = Vec::with_capacity(left.len().div_ceil(EDITS));
        for some in left.chunks(EDITS) {
            if let [one] = some {
                wholes.push(one.clone());
                continue;
            }
            if stop() {
                return Ok((gone, false));
            }
            let ids = some.to_vec();
            match records.commit(&[Edit::Fold { ids, level }], now)?.pop() {
                Some(Stored::Folded { into, of }) => {
                    gone += of - 1;
                    wholes.push(into);
                }
                // One that nothing else is like, or nothing.
                Some(Stored::New | Stored::Known | Stored::Refused(_) | Stored::Removed | Stored::Absent) | None => {
                    wholes.extend(some.last().cloned());
                }
            }
        }
        if wholes.len() < 2 || wholes.len() == left.len() {
            return Ok((gone, true));
        }
        left = wholes;
    }
}

//! Mending what is damaged, told by what was found and what is left (design §15).
//!
//! Owns: the order of the steps and what is said. Must not know: how files or keys are made whole.

use artoo_memory::repair::Verified;
use serde_json::json;

use super::look::problems;
use super::{Store, broken};
use crate::failure::Failure;
use crate::output;

/// Reads everything, whereby damaged files are replaced by what can be read of them; then makes everything derived fit the records, if
/// anything is wrong, and looks again. Ends with 1 where something is lost, or still wrong.
pub(super) fn repair(store: &Store, json: bool) -> Result<u8, Failure> {
    let verify = || store.records.verify().map_err(|e| broken(&e));
    let mut found = verify()?;
    let files_damaged = store.is_damaged();
    if files_damaged {
        // What was read before the files were replaced may have been more than is left.
        found = verify()?;
    }
    let is_wrong = files_damaged || !found.is_sound();
    let mut left = found.clone();
    if is_wrong {
        store.records.repair(store.now).map_err(|e| broken(&e))?;
        store.records.kv().flush().map_err(|e| broken(&e))?;
        left = verify()?;
    }
    let pieces_lost = store.pieces_lost();
    let is_lost = found.damaged > 0 || pieces_lost > 0;
    if json {
        output::json(
            &json!({"sound": left.is_sound(), "records": left.records, "counting": left.living, "lost": found.damaged,
            "missing_keys": found.missing, "stray_keys": found.stray, "wrong_sums": found.sums, "incomplete": found.is_incomplete,
            "files_damaged": files_damaged, "pieces_lost": pieces_lost, "damage": store.damage()}),
        );
    } else {
        say(is_wrong, &found, &left, pieces_lost);
    }
    Ok(u8::from(is_lost || !left.is_sound()))
}

/// There is no store to be mended.
pub(super) fn nothing_to_repair(json: bool) -> u8 {
    if json {
        output::json(
            &json!({"sound": true, "records": 0, "counting": 0, "lost": 0, "missing_keys": 0, "stray_keys": 0,
            "wrong_sums": 0, "incomplete": false, "files_damaged": false, "pieces_lost": 0, "damage": []}),
        );
    } else {
        output::note("memory is empty");
    }
    0
}

fn say(is_wrong: bool, found: &Verified, left: &Verified, pieces_lost: usize) {
    let count = format!("{} memories, {} of them count", left.records, left.living);
    if !is_wrong {
        output::result(&format!("nothing was wrong: {count}"));
        return;
    }
    output::result(&format!("found: {}", problems(found)));
    output::result(&if left.is_sound() {
        format!("mended: {count}")
    } else {
        format!("still not sound: {count}; {}", problems(left))
    });
    if found.damaged > 0 {
        output::note(&format!(
            "artoo: {} records could not be read and are gone",
            found.damaged
        ));
    }
    if pieces_lost > 0 {
        output::note(&format!(
            "artoo: {pieces_lost} pieces of the damaged files could not be read; the files are kept, and an export or a copy of before \
             can be taken in with artoo memory import"
        ));
    }
}

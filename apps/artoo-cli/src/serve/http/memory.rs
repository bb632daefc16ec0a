//! Memory as the page shows it: the pyramid, the groups with their potentials, one group over time (design §15).
//!
//! Owns the form. Changes nothing: every look is at a private copy of the store, which whoever has it open does not notice.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use artoo_bus::SystemClock;
use artoo_memory::kv::{InMemoryKv, Kv, LevelKv, LevelSettings, Notice};
use artoo_memory::potentials::{contribution, living};
use artoo_memory::view::GroupKey;
use artoo_memory::{Records, picture};
use artoo_protocol::message::{Level, Megram};
use artoo_protocol::ports::Clock as _;
use artoo_protocol::{MegramId, Millis, Timestamp};
use serde_json::{Value, json};

use super::watch::shown;

/// The store's folder within the data folder.
const STORE: &str = "memory.leveldb";
/// Records that are read at once.
const PAGE: usize = 256;
/// Most groups that are told: those in which something was remembered last.
const GROUPS: usize = 400;
/// Most entries of a group that are told: those that weigh most.
const ENTRIES: usize = 40;
/// Most records that are drawn: the newest.
const DRAWN: usize = 2_000;
/// Days that a picture looks ahead.
const AHEAD: Millis = Millis::from_seconds(14 * 24 * 3600);

/// A copy that is given up when it was looked at.
struct Copy {
    records: Records,
    now: Timestamp,
}

impl Copy {
    fn of(data: &Path) -> Result<Self, String> {
        let now = SystemClock.now();
        let folder = data.join(STORE);
        let kv: Arc<dyn Kv> = if folder.exists() {
            let kv = LevelKv::open_snapshot(&folder, &now.to_string(), LevelSettings::default());
            Arc::new(kv.map_err(broken)?)
        } else {
            Arc::new(InMemoryKv::new())
        };
        let records = Records::open(kv).map_err(broken)?;
        Ok(Self { records, now })
    }

    /// What was found to be wrong with it.
    fn damage(&self) -> Vec<String> {
        let notices = self.records.kv().take_notices().into_iter();
        let mut damage: Vec<String> = notices
            .map(|Notice::Quarantined { reason, .. }| shown(&reason))
            .collect();
        match self.records.take_damaged() {
            0 => {}
            n => damage.push(format!("{n} memories have a wrong checksum and are left out")),
        }
        damage
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = self.records.kv().close();
    }
}

fn broken(error: impl std::fmt::Display) -> String {
    format!("memory: {error}")
}

/// What a group holds, level by level, and its newest.
#[derive(Default)]
struct Held {
    levels: [u64; 3],
    newest: Option<Timestamp>,
}

impl Held {
    fn count(&mut self, megram: &Megram) {
        match megram.level {
            Level::M => self.levels[0] += 1,
            Level::K => self.levels[1] += 1,
            Level::C => self.levels[2] += 1,
            // Lives in the prompts.
            Level::T => {}
        }
        self.newest = self.newest.max(Some(megram.created_at));
    }
}

/// How much is held, and where.
///
/// # Errors
/// In a sentence, when the store cannot be read.
pub fn overview(data: &Path) -> Result<Value, String> {
    let copy = Copy::of(data)?;
    let (mut all, mut groups) = (Held::default(), BTreeMap::<GroupKey, Held>::new());
    let mut after: Option<MegramId> = None;
    loop {
        let page = copy.records.page(after.as_ref(), PAGE).map_err(broken)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for megram in &page {
            all.count(megram);
            groups.entry(GroupKey::of(megram)).or_default().count(megram);
        }
    }
    let total = groups.len();
    let mut groups: Vec<(GroupKey, Held)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, held)| std::cmp::Reverse(held.newest));
    let told = groups.iter().take(GROUPS).map(|(key, held)| {
        let potentials = copy
            .records
            .potentials(&key.space, &key.entity, copy.now)
            .map_err(broken)?;
        let [m, k, c] = held.levels;
        // Space and entity name the group when more is asked about it: they are told as they are.
        Ok(
            json!({"space": key.space, "entity": key.entity, "M": m, "K": k, "C": c, "newest": held.newest,
            "attention": potentials.attention, "decision": potentials.decision, "action": potentials.action}),
        )
    });
    let told: Vec<Value> = told.collect::<Result<_, String>>()?;
    let [m, k, c] = all.levels;
    Ok(
        json!({"M": m, "K": k, "C": c, "groups": told, "groups_in_all": total, "newest": all.newest, "damage": copy.damage()}),
    )
}

/// One group: its picture over time, and what counts in it now.
///
/// # Errors
/// In a sentence, when the store cannot be read.
pub fn group(data: &Path, space: &str, entity: &str) -> Result<Value, String> {
    let copy = Copy::of(data)?;
    let now = copy.now;
    let mut history = copy.records.history(space, entity).map_err(broken)?;
    history.retain(|megram| megram.created_at <= now);
    history.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
    let not_drawn = history.len().saturating_sub(DRAWN);
    history.truncate(DRAWN);
    let from = history.last().map_or(now, |megram| megram.created_at);
    let svg = picture::svg(&shown(&format!("{space} · {entity}")), &history, from, now.plus(AHEAD));
    let mut entries = living(copy.records.group(space, entity).map_err(broken)?);
    entries.sort_by(|a, b| {
        contribution(b, now)
            .total_cmp(&contribution(a, now))
            .then_with(|| a.id.cmp(&b.id))
    });
    let counting = entries.len();
    let entries: Vec<Value> = entries
        .iter()
        .take(ENTRIES)
        .map(|megram| {
            let weight = contribution(megram, now);
            json!({"id": megram.id, "level": megram.level, "content": shown(&megram.content), "sigma": megram.sigma, "created_at": megram.created_at,
                "state": megram.state, "attention": weight, "decision": megram.sigma.get() * weight})
        })
        .collect();
    let potentials = copy.records.potentials(space, entity, now).map_err(broken)?;
    Ok(
        json!({"svg": svg, "not_drawn": not_drawn, "entries": entries, "counting": counting, "attention": potentials.attention,
        "decision": potentials.decision, "action": potentials.action}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_was_remembered_there_is_an_empty_pyramid() {
        let data = tempfile::tempdir().unwrap();
        let seen = overview(data.path()).unwrap();
        assert_eq!((&seen["M"], &seen["groups_in_all"]), (&json!(0), &json!(0)));
        let group = group(data.path(), "intent:<b>", "env:local").unwrap();
        assert_eq!(group["counting"], 0);
        let svg = group["svg"].as_str().unwrap();
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"), "{svg}");
    }
}

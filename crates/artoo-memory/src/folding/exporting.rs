//! What an export says of a record: itself, and what became part of it (design §15).
//!
//! Owns: the form of an export. Must not know: files, what becomes of it elsewhere.

use super::Trace;
use crate::keys;
use crate::kv::{KvError, Pair};
use crate::records::Records;
use crate::view::GroupKey;
use artoo_protocol::message::{MacroState, Megram};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, Timestamp, Valence};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Parts that an export keeps at hand, so that groups whose records lie apart are not read for each of them.
const HELD_MAX: usize = 100_000;

/// One line of an export.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exported {
    /// The record.
    #[serde(flatten)]
    pub megram: Megram,
    /// What became part of it, and is no record of its own any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// What a record weighed that became part of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its id.
    pub id: MegramId,
    /// When it happened.
    pub created_at: Timestamp,
    /// What it came from.
    pub state: MacroState,
    /// Its magnitude.
    pub f: Magnitude,
    /// Its valence.
    pub sigma: Valence,
    /// Its decay.
    pub k: DecayPerDay,
    /// Whether it was an event of its own, and not the sum of others or the same one at another level.
    pub is_event: bool,
    /// The event that it was at another level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<MegramId>,
}

impl Exported {
    /// Reads a line; members that it does not know are passed over.
    ///
    /// # Errors
    /// When it is no record in JSON.
    pub fn read(line: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Rest {
            #[serde(default)]
            parts: Vec<Part>,
        }
        Ok(Self {
            megram: serde_json::from_slice(line)?,
            parts: serde_json::from_slice::<Rest>(line)?.parts,
        })
    }

    /// The order in which lines are taken in: what parts became, then what follows from nothing, then what was distilled from these.
    pub fn phase(&self) -> u8 {
        match (self.parts.is_empty(), self.megram.sources.is_empty()) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        }
    }
}

impl Part {
    fn of((id, trace): (&MegramId, &Trace)) -> Self {
        Self {
            id: id.clone(),
            created_at: trace.created_at,
            state: trace.state,
            f: trace.f,
            sigma: trace.sigma,
            k: trace.k,
            is_event: trace.is_event,
            same_as: trace.same_as.clone(),
        }
    }

    pub(super) fn trace(&self, into: &MegramId) -> Trace {
        Trace {
            into: Some(into.clone()),
            created_at: self.created_at,
            state: self.state,
            f: self.f,
            sigma: self.sigma,
            k: self.k,
            is_event: self.is_event,
            same_as: self.same_as.clone(),
        }
    }
}

/// The parts of a group's records, by the record.
type Parts = HashMap<MegramId, Vec<Part>>;

/// Makes lines of records.
pub struct Exporting<'a> {
    records: &'a Records,
    /// Groups in which something was folded.
    folded: BTreeSet<GroupKey>,
    known: HashMap<GroupKey, Parts>,
    held: usize,
}

impl<'a> Exporting<'a> {
    /// Finds out where something was folded.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn new(records: &'a Records) -> Result<Self, KvError> {
        let mut folded = BTreeSet::new();
        records.each_page(keys::TRACES, &mut |page| {
            folded.extend(page.iter().filter_map(|(key, _)| GroupKey::of_tag(key)));
            Ok(())
        })?;
        Ok(Self {
            records,
            folded,
            known: HashMap::new(),
            held: 0,
        })
    }

    /// The line of a record.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn line(&mut self, megram: Megram) -> Result<Exported, KvError> {
        let group = GroupKey::of(&megram);
        if !self.folded.contains(&group) {
            return Ok(Exported {
                megram,
                parts: Vec::new(),
            });
        }
        if !self.known.contains_key(&group) {
            if self.held > HELD_MAX {
                self.known.clear();
                self.held = 0;
            }
            let parts = self.records.parts(&group)?;
            self.held += 1 + parts.values().map(Vec::len).sum::<usize>();
            self.known.insert(group.clone(), parts);
        }
        let known = self.known.get(&group).and_then(|parts| parts.get(&megram.id));
        let parts = known.cloned().unwrap_or_default();
        Ok(Exported { megram, parts })
    }
}

impl Records {
    fn parts(&self, group: &GroupKey) -> Result<Parts, KvError> {
        let mut traces: BTreeMap<MegramId, Trace> = BTreeMap::new();
        self.each_page(&keys::traces(&group.space, &group.entity), &mut |page: Vec<Pair>| {
            traces.extend(page.iter().filter_map(super::read));
            Ok(())
        })?;
        let ids: Vec<&MegramId> = traces
            .keys()
            .chain(traces.values().filter_map(|t| t.into.as_ref()))
            .collect();
        let wanted: Vec<Vec<u8>> = ids.iter().map(|id| keys::record(id).into_bytes()).collect();
        let found = self.kv().get_many(&wanted)?;
        let there: HashSet<&MegramId> = ids
            .into_iter()
            .zip(found)
            .filter_map(|(id, it)| it.map(|_| id))
            .collect();
        let mut parts = Parts::new();
        for part in traces.iter().filter(|(id, _)| !there.contains(*id)) {
            if let Some(whole) = led_to(part.1, &traces, |id| there.contains(id)) {
                parts.entry(whole.clone()).or_default().push(Part::of(part));
            }
        }
        Ok(parts)
    }
}

/// The record that a trace leads to, perhaps by others, and that is there.
pub(super) fn led_to<'a>(
    trace: &'a Trace,
    traces: &'a BTreeMap<MegramId, Trace>,
    is_there: impl Fn(&MegramId) -> bool,
) -> Option<&'a MegramId> {
    let (mut into, mut steps) = (trace.into.as_ref(), 0);
    while let Some(next) = into
        && !is_there(next)
        && steps <= traces.len()
    {
        into = traces.get(next).and_then(|trace| trace.into.as_ref());
        steps += 1;
    }
    into.filter(|into| is_there(into))
}

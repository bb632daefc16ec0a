//! The store as groups with sums, and groups as entries: what is read for potentials, for a plan, and by the Dreamer (design §15).
//!
//! Owns: reading what is derived. Must not know: how it is written, threads.

use crate::commit::read_aside;
use crate::entry::Entry;
use crate::keys;
use crate::kv::{KvError, Pair, Range};
use crate::newest::Newest;
use crate::potentials::{Later, energy, living, potentials};
use crate::records::{Records, tag};
use crate::sums::{Counts, Sums, quantised};
use artoo_protocol::message::{Level, Megram, Potentials};
use artoo_protocol::{MegramId, Timestamp};
use std::collections::{BTreeSet, HashSet};

/// A (space, entity) pair, as it stands in keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// What its memories are about.
    pub space: String,
    /// Where.
    pub entity: String,
}

impl GroupKey {
    /// Of these tags, cut as the store cuts them.
    pub fn new(space: &str, entity: &str) -> Self {
        Self {
            space: tag(space),
            entity: tag(entity),
        }
    }

    /// That of the key of its sums.
    pub(crate) fn of_sums(key: &[u8]) -> Option<Self> {
        let [space, entity] = keys::parts(key).and_then(|parts| <[String; 2]>::try_from(parts).ok())?;
        Some(Self { space, entity })
    }

    /// That of a key that ends with its tags and an id.
    pub(crate) fn of_tag(key: &[u8]) -> Option<Self> {
        let [space, entity, _] = keys::parts(key).and_then(|parts| <[String; 3]>::try_from(parts).ok())?;
        Some(Self { space, entity })
    }

    /// That of the key of an entry.
    pub(crate) fn of_entry(key: &[u8]) -> Option<Self> {
        let [space, entity, ..] = keys::parts(key).and_then(|parts| <[String; 5]>::try_from(parts).ok())?;
        Some(Self { space, entity })
    }

    /// That of a key that finds a group of a tool.
    pub(crate) fn of_hot(key: &[u8]) -> Option<Self> {
        let [_, _, space, entity] = keys::parts(key).and_then(|parts| <[String; 4]>::try_from(parts).ok())?;
        Some(Self { space, entity })
    }

    /// The group that a stored record belongs to.
    pub fn of(megram: &Megram) -> Self {
        Self {
            space: megram.space.clone(),
            entity: megram.entity.clone(),
        }
    }

    /// `tool:shell` for the groups of `tool:shell` and `tool:shell:curl`; `None` for those of no tool.
    pub(crate) fn tool(&self) -> Option<&str> {
        tool_of(&self.space)
    }
}

/// The tool that a space belongs to, without what qualifies it.
pub(crate) fn tool_of(space: &str) -> Option<&str> {
    let name = space.strip_prefix("tool:")?;
    let end = name.find(':').unwrap_or(name.len());
    space.get(.."tool:".len() + end)
}

/// A group and what it adds up to.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSummary {
    /// Which.
    pub key: GroupKey,
    /// How many records count.
    pub living: Counts,
    /// Their potentials at the moment asked about.
    pub potentials: Potentials,
}

impl Records {
    /// The groups in the order of their keys, at most `limit`, beginning after `after`.
    pub fn groups(&self, after: Option<&GroupKey>, limit: usize, now: Timestamp) -> Result<Vec<GroupSummary>, KvError> {
        let after = after.map(|group| keys::sums(&group.space, &group.entity).into_bytes());
        let pairs = self.kv().scan(keys::SUMS.as_bytes(), after.as_deref(), limit)?;
        let mut groups = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let Some(key) = GroupKey::of_sums(&key) else { continue };
            let (living, found) = if let Some(sums) = Sums::decode(&value) {
                (sums.counts, Found::Sums(Box::new(sums)))
            } else {
                let mut counts = Counts::default();
                self.each_entry(&key, &mut |entry| counts.add(entry.level))?;
                (counts, Found::Lost)
            };
            groups.push(GroupSummary {
                living,
                potentials: self.potentials_of(&key, &found, now)?,
                key,
            });
        }
        Ok(groups)
    }

    /// The living entries of a group: rules, knowledge, raw events, each newest first; at most `limit`, beginning after `after`.
    pub fn entries(&self, group: &GroupKey, after: Option<&Entry>, limit: usize) -> Result<Vec<Entry>, KvError> {
        let after = after.map(|entry| entry.key(&group.space, &group.entity).into_bytes());
        let prefix = keys::entries(&group.space, &group.entity);
        let pairs = self.kv().scan(prefix.as_bytes(), after.as_deref(), limit)?;
        Ok(pairs
            .iter()
            .filter_map(|(key, value)| Entry::read(key, value))
            .collect())
    }

    /// The first entries of several groups, at most `limit` of each, in one go.
    pub(crate) fn first_entries(&self, groups: &[GroupSummary], limit: usize) -> Result<Vec<Vec<Entry>>, KvError> {
        let range = |group: &GroupSummary| Range::new(keys::entries(&group.key.space, &group.key.entity), limit);
        let ranges: Vec<Range> = groups.iter().map(range).collect();
        let read = |pairs: Vec<Pair>| {
            let entries = pairs.iter().filter_map(|(key, value)| Entry::read(key, value));
            entries.collect()
        };
        Ok(self.kv().scan_many(&ranges)?.into_iter().map(read).collect())
    }

    /// The living entries of one level of a group, newest first, of the same moment by descending id; of those with the same words
    /// the newest only; at most `limit`.
    pub(crate) fn newest(&self, group: &GroupKey, level: Level, limit: usize) -> Result<Vec<MegramId>, KvError> {
        if !self.is_derived() {
            return self.newest_by_scan(group, level, limit);
        }
        let mut newest = Newest::new(group, level, limit);
        while !newest.is_settled {
            let page = self.kv().scan(&newest.prefix, newest.after.as_deref(), newest.page)?;
            newest.take(page);
        }
        Ok(newest.ids())
    }

    /// As [`Records::newest`], for several groups and levels, with all that is usually needed read in one go.
    pub(crate) fn newest_of(&self, asked: &[(&GroupKey, Level, usize)]) -> Result<Vec<Vec<MegramId>>, KvError> {
        if !self.is_derived() {
            return asked
                .iter()
                .map(|(group, level, limit)| self.newest(group, *level, *limit))
                .collect();
        }
        self.load_sums(asked.iter().map(|(group, ..)| *group))?;
        let mut all = Vec::with_capacity(asked.len());
        for (group, level, limit) in asked {
            let mut newest = Newest::new(group, *level, *limit);
            newest.is_settled = !self.has_level(group, *level)?;
            all.push(newest);
        }
        let open = |newest: &Newest| Range::new(newest.prefix.clone(), newest.page);
        let ranges: Vec<Range> = all.iter().filter(|newest| !newest.is_settled).map(open).collect();
        let mut pages = if ranges.is_empty() {
            Vec::new()
        } else {
            self.kv().scan_many(&ranges)?
        }
        .into_iter();
        for newest in all.iter_mut().filter(|newest| !newest.is_settled) {
            newest.take(pages.next().unwrap_or_default());
            while !newest.is_settled {
                let page = self.kv().scan(&newest.prefix, newest.after.as_deref(), newest.page)?;
                newest.take(page);
            }
        }
        Ok(all.into_iter().map(Newest::ids).collect())
    }

    fn newest_by_scan(&self, group: &GroupKey, level: Level, limit: usize) -> Result<Vec<MegramId>, KvError> {
        let mut entries: Vec<Entry> = living(self.group(&group.space, &group.entity)?)
            .iter()
            .filter(|megram| megram.level == level)
            .map(Entry::of)
            .collect();
        entries.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        let mut seen = HashSet::new();
        entries.retain(|entry| seen.insert(entry.words));
        Ok(entries.into_iter().take(limit).map(|entry| entry.id).collect())
    }

    /// Whether a group may have living records of a level.
    pub(crate) fn has_level(&self, group: &GroupKey, level: Level) -> Result<bool, KvError> {
        if !self.is_derived() {
            return Ok(true);
        }
        Ok(match self.sums(group)? {
            Found::Lost => true,
            Found::Sums(sums) => match level {
                Level::M => sums.counts.m > 0,
                Level::K => sums.counts.k > 0,
                Level::C => sums.counts.c > 0,
                Level::T => false,
            },
        })
    }

    /// The groups of each tool that count at `now`, those first that will count longest; at most `limit` of each tool.
    pub(crate) fn counting(
        &self,
        tools: &BTreeSet<&str>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<GroupKey>, KvError> {
        if !self.is_derived() {
            return self.groups_by_scan(tools);
        }
        let ranges: Vec<Range> = tools.iter().map(|tool| Range::new(keys::hots(tool), limit)).collect();
        let mut groups = Vec::new();
        for (key, _) in self.kv().scan_many(&ranges)?.into_iter().flatten() {
            let Some([_, until, space, entity]) =
                keys::parts(&key).and_then(|parts| <[String; 4]>::try_from(parts).ok())
            else {
                continue;
            };
            if keys::counted_down(&until).is_some_and(|until| until >= now.as_millis()) {
                groups.push(GroupKey { space, entity });
            }
        }
        self.load_sums(groups.iter())?;
        Ok(groups)
    }

    fn groups_by_scan(&self, tools: &BTreeSet<&str>) -> Result<Vec<GroupKey>, KvError> {
        let mut groups = BTreeSet::new();
        for tool in tools {
            for prefix in [keys::groups(tool), format!("x|{}:", keys::escape(tool))] {
                self.each_page(&prefix, &mut |page| {
                    for (key, _) in page {
                        if let Some([space, entity, _]) =
                            keys::parts(&key).and_then(|parts| <[String; 3]>::try_from(parts).ok())
                        {
                            groups.insert(GroupKey { space, entity });
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(groups.into_iter().collect())
    }

    /// The potentials of a group at `now`, from its sums: constant time, unless the clock was set back behind its newest record.
    pub fn potentials(&self, space: &str, entity: &str, now: Timestamp) -> Result<Potentials, KvError> {
        let group = GroupKey::new(space, entity);
        if !self.is_derived() {
            return Ok(potentials(&living(self.group(space, entity)?), now, Later::CountsAsNew));
        }
        self.potentials_of(&group, &self.sums(&group)?, now)
    }

    /// As [`Records::potentials`] where no store is needed for it.
    pub(crate) fn potentials_in_memory(&self, space: &str, entity: &str, now: Timestamp) -> Option<Potentials> {
        let sums = self
            .cached(&GroupKey::new(space, entity))
            .filter(|sums| sums.aside == 0)?;
        let (attention, decision) = sums.at(now)?;
        Some(quantised(attention, decision))
    }

    /// The potentials of a group as they were at a moment in the past, by a scan of its records and of what became part of them: what
    /// came later was not known.
    pub fn potentials_at(&self, space: &str, entity: &str, at: Timestamp) -> Result<Potentials, KvError> {
        let mut known = self.history(space, entity)?;
        known.retain(|megram| megram.created_at <= at);
        Ok(potentials(&living(known), at, Later::LeftOut))
    }

    /// Who replaced this record, or was distilled from it; nobody, where it counts.
    pub fn replaced_by(&self, id: &MegramId) -> Result<Vec<MegramId>, KvError> {
        let mut by = Vec::new();
        self.each_page(&keys::ended_by(id), &mut |page| {
            by.extend(page.iter().filter_map(|(key, _)| keys::id_of(key)));
            Ok(())
        })?;
        Ok(by)
    }

    fn potentials_of(&self, group: &GroupKey, found: &Found, now: Timestamp) -> Result<Potentials, KvError> {
        let (mut attention, mut decision) = (0.0, 0.0);
        let mut add = |entry: &Entry| {
            let energy = energy(entry.f, entry.k, entry.created_at, now);
            attention += energy;
            decision += entry.sigma.get() * energy;
        };
        let mut summed = (0.0, 0.0);
        match found {
            Found::Lost => self.each_entry(group, &mut add)?,
            Found::Sums(sums) => match sums.at(now) {
                // The clock was set back behind the newest record.
                None => self.each_entry(group, &mut add)?,
                Some(potentials) => {
                    summed = potentials;
                    if sums.aside > 0 {
                        self.each_page(&keys::asides(&group.space, &group.entity), &mut |page| {
                            page.iter()
                                .filter_map(|(_, value)| read_aside(value))
                                .for_each(|entry| add(&entry));
                            Ok(())
                        })?;
                    }
                }
            },
        }
        Ok(quantised(attention + summed.0, decision + summed.1))
    }

    /// The sums of a group: those kept in memory, else those of the store.
    fn sums(&self, group: &GroupKey) -> Result<Found, KvError> {
        if let Some(sums) = self.cached(group) {
            return Ok(Found::Sums(Box::new(sums)));
        }
        self.load_sums(std::iter::once(group))?;
        Ok(self
            .cached(group)
            .map_or(Found::Lost, |sums| Found::Sums(Box::new(sums))))
    }

    /// Takes the sums of these groups into memory, those that are not there yet, in one go; answers with those that it read.
    pub(crate) fn load_sums<'a>(
        &self,
        groups: impl Iterator<Item = &'a GroupKey>,
    ) -> Result<Vec<(&'a GroupKey, Sums)>, KvError> {
        if !self.is_derived() {
            return Ok(Vec::new());
        }
        let missing: BTreeSet<&GroupKey> = groups.filter(|group| self.cached(group).is_none()).collect();
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let version = self.version();
        let (absent, missing): (Vec<_>, Vec<_>) = missing.into_iter().partition(|group| self.is_absent(group));
        for group in absent {
            self.keep(group, Sums::default(), version);
        }
        let key = |group: &&GroupKey| keys::sums(&group.space, &group.entity).into_bytes();
        let wanted: Vec<Vec<u8>> = missing.iter().map(key).collect();
        let (mut read, mut unknown) = (Vec::new(), Vec::new());
        for (group, value) in missing.into_iter().zip(self.kv().get_many(&wanted)?) {
            match value.as_deref().map(Sums::decode) {
                Some(Some(sums)) => read.push((group, sums)),
                Some(None) => {}
                None => unknown.push(group),
            }
        }
        if !unknown.is_empty() {
            let first = |group: &&GroupKey| Range::new(keys::entries(&group.space, &group.entity), 1);
            let ranges: Vec<Range> = unknown.iter().map(first).collect();
            let entries = self.kv().scan_many(&ranges)?;
            let empty = unknown
                .into_iter()
                .zip(entries)
                .filter(|(_, entries)| entries.is_empty());
            read.extend(empty.map(|(group, _)| (group, Sums::default())));
        }
        for (group, sums) in &read {
            self.keep(group, sums.clone(), version);
        }
        Ok(read)
    }

    fn each_entry(&self, group: &GroupKey, see: &mut dyn FnMut(&Entry)) -> Result<(), KvError> {
        self.each_page(&keys::entries(&group.space, &group.entity), &mut |page| {
            let entries = page.iter().filter_map(|(key, value)| Entry::read(key, value));
            entries.for_each(|entry| see(&entry));
            Ok(())
        })
    }
}

/// What is known of a group's sums.
enum Found {
    Sums(Box<Sums>),
    /// The group has entries and no readable sums; the next write to it makes them anew.
    Lost,
}

//! The newest entries of a level of a group, each wording once, found page by page (design §15).
//!
//! Owns when enough was read. Must not know how pages are read.

use crate::entry::Entry;
use crate::keys;
use crate::kv::Pair;
use crate::records::PAGE;
use crate::view::GroupKey;
use artoo_protocol::MegramId;
use artoo_protocol::message::Level;
use std::collections::HashSet;

/// The search for the newest entries of one level of a group, page by page.
pub(crate) struct Newest {
    pub(crate) prefix: Vec<u8>,
    limit: usize,
    pub(crate) page: usize,
    pub(crate) after: Option<Vec<u8>>,
    kept: Vec<Entry>,
    pub(crate) is_settled: bool,
}

impl Newest {
    pub(crate) fn new(group: &GroupKey, level: Level, limit: usize) -> Self {
        Self {
            prefix: keys::entries_of(&group.space, &group.entity, level).into_bytes(),
            limit,
            page: limit.saturating_add(2).clamp(8, PAGE),
            after: None,
            kept: Vec::new(),
            is_settled: false,
        }
    }

    pub(crate) fn take(&mut self, page: Vec<Pair>) {
        let is_last = page.len() < self.page;
        let entries: Vec<Entry> = page.iter().filter_map(|(key, value)| Entry::read(key, value)).collect();
        let oldest = entries.last().map(|entry| entry.created_at);
        self.kept.extend(entries);
        self.after = page.into_iter().next_back().map(|(key, _)| key);
        self.kept
            .sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        let mut seen = HashSet::new();
        self.kept.retain(|entry| seen.insert(entry.words));
        // Entries of the very moment of the last one may still follow.
        let settled = |beyond: &Entry| oldest.is_none_or(|oldest| beyond.created_at > oldest);
        let is_full = self
            .limit
            .checked_sub(1)
            .and_then(|last| self.kept.get(last))
            .is_some_and(settled);
        self.is_settled = is_last || is_full || self.kept.len() > self.limit.saturating_add(PAGE);
    }

    pub(crate) fn ids(mut self) -> Vec<MegramId> {
        self.kept.truncate(self.limit);
        self.kept.into_iter().map(|entry| entry.id).collect()
    }
}

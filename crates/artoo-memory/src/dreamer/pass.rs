//! One pass of the Dreamer over the store: look, choose, carry out, in slices that others can go between (design §15).
//!
//! A slice is one call of the store, of at most [`SLICE`] entries or edits. A pass that is stopped between two slices has done
//! whole steps only; the next one finds the rest. Blocking: it belongs on a thread of its own.
//!
//! Owns the walk over the groups and the order of the steps. Must not know the policy, the model or a clock.

use super::carry;
use super::choose::{Action, Consolidation, Group, Params, View, choose};
use super::establish::put_off_until;
use super::fold::fold;
use super::rhythm::Scope;
use super::spent::spent_on;
use crate::entry::Entry;
use crate::kv::KvError;
use crate::recall;
use crate::records::{Edit, Records, Stored};
use crate::view::GroupKey;
use artoo_protocol::message::{Level, MacroState, Megram};
use artoo_protocol::{MegramId, Millis, Timestamp};
use std::collections::BTreeSet;

/// Most entries in one call of the store, and most edits of an operator's command.
pub const SLICE: usize = 64;
/// Most edits of a pass in one call of the store: an edit costs some hundred times as much as reading an entry.
pub(super) const EDITS: usize = 8;
/// The first entries of so many groups are read in one call: most groups have few.
const GROUPS: usize = 8;
/// So many groups are told in one call: whoever asks meanwhile waits for it.
const GROUPS_TOLD: usize = 32;
/// Most changes of one pass: a store that was never dreamt of is put in order over several passes.
pub const CHANGES_MAX: usize = 10_000;
/// Most groups that one pass proposes for a rule: those with the most attention.
pub const RULES_MAX: usize = 4;
/// A wait that is longer than this was written by a clock that was wrong.
const WAIT_MAX: Millis = Millis::from_seconds(48 * 3600);

/// Whether a pass carries out what it chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It does.
    Perform,
    /// It only says what it would do.
    Look,
}

/// What a pass found and did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tidied {
    /// Groups looked at.
    pub groups: usize,
    /// Entries looked at.
    pub entries: usize,
    /// Entries removed.
    pub forgotten: usize,
    /// Rules that lost their immunity.
    pub demoted: usize,
    /// Events that became knowledge.
    pub promoted: usize,
    /// Entries that became part of another one that says the same.
    pub folded: usize,
    /// Groups that have earned a rule, most attention first.
    pub proposals: Vec<Consolidation>,
    /// Whether the pass ended before it had seen everything: it was stopped, or had changed enough.
    pub unfinished: bool,
    /// The last group that was seen in order; an unfinished pass goes on behind it.
    pub reached: Option<GroupKey>,
}

impl Tidied {
    /// How much was changed.
    pub const fn changes(&self) -> usize {
        self.forgotten + self.demoted + self.promoted + self.folded
    }
}

/// One pass.
pub struct Pass<'a> {
    /// The store.
    pub records: &'a Records,
    /// The policy's thresholds.
    pub params: Params,
    /// When.
    pub now: Timestamp,
    /// Whether to carry out.
    pub mode: Mode,
    /// Asked between slices; `true` ends the pass.
    pub stop: &'a dyn Fn() -> bool,
    /// Hears of every step that is chosen.
    pub on_action: &'a mut dyn FnMut(&GroupKey, &Action),
}

impl Pass<'_> {
    /// Goes over the groups of the scope.
    ///
    /// # Errors
    /// [`KvError`] when the store cannot be read or written; what was done until then stands.
    pub fn run(&mut self, scope: &Scope) -> Result<Tidied, KvError> {
        let mut tidied = Tidied::default();
        match scope {
            Scope::Touched(groups) => {
                for group in groups {
                    if self.is_over(&mut tidied) {
                        break;
                    }
                    self.tidy(group, self.records.entries(group, None, SLICE)?, &mut tidied)?;
                }
            }
            Scope::Everything => self.everything(None, &mut tidied)?,
            Scope::After(group) => self.everything(Some(group.clone()), &mut tidied)?,
        }
        if tidied.changes() > 0 && self.mode == Mode::Perform {
            self.records.kv().flush()?;
        }
        tidied
            .proposals
            .sort_by(|a, b| b.attention.total_cmp(&a.attention).then_with(|| a.key.cmp(&b.key)));
        tidied.proposals.truncate(RULES_MAX);
        Ok(tidied)
    }

    fn everything(&mut self, mut after: Option<GroupKey>, tidied: &mut Tidied) -> Result<(), KvError> {
        loop {
            let page = self.records.groups(after.as_ref(), GROUPS_TOLD, self.now)?;
            let Some(last) = page.last() else {
                return self.sweep(tidied);
            };
            after = Some(last.key.clone());
            for some in page.chunks(GROUPS) {
                let first = self.records.first_entries(some, SLICE)?;
                for (summary, first) in some.iter().zip(first) {
                    if self.is_over(tidied) {
                        return Ok(());
                    }
                    self.tidy(&summary.key, first, tidied)?;
                    tidied.reached = Some(summary.key.clone());
                }
            }
        }
    }

    /// After all groups: removes the traces of what was folded that nobody can ask for any more.
    fn sweep(&self, tidied: &mut Tidied) -> Result<(), KvError> {
        if self.mode == Mode::Look || !self.params.forgets {
            return Ok(());
        }
        let mut after: Option<Vec<u8>> = None;
        loop {
            if (self.stop)() {
                tidied.unfinished = true;
                return Ok(());
            }
            after = self
                .records
                .sweep_traces(after.as_deref(), self.params.old_at(self.now))?;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn is_over(&self, tidied: &mut Tidied) -> bool {
        tidied.unfinished |= (self.stop)() || self.allowed(tidied) == 0;
        tidied.unfinished
    }

    /// How many more changes this pass may make.
    fn allowed(&self, tidied: &Tidied) -> usize {
        match self.mode {
            Mode::Perform => CHANGES_MAX.saturating_sub(tidied.changes()),
            Mode::Look => usize::MAX,
        }
    }

    /// Looks after a group, whose first entries are these.
    fn tidy(&mut self, key: &GroupKey, first: Vec<Entry>, tidied: &mut Tidied) -> Result<(), KvError> {
        if key.space == recall::PREFERENCE_SPACE {
            return Ok(());
        }
        let Some(group) = self.look(key, first, tidied)? else {
            return Ok(());
        };
        let entries = group.entries.len();
        (tidied.groups, tidied.entries) = (tidied.groups + 1, tidied.entries + entries);
        let (steps, mut proposal) = self.choose(group);
        let allowed = self.allowed(tidied);
        for step in steps.iter().take(allowed) {
            (self.on_action)(key, step);
        }
        let done = match self.mode {
            Mode::Perform => {
                let steps = steps.get(..allowed.min(steps.len())).unwrap_or_default();
                self.carry_out(steps, allowed, tidied)?
            }
            Mode::Look => {
                for step in &steps {
                    count(step, tidied);
                }
                0
            }
        };
        if proposal.is_some() && done > 0 {
            // Events that became knowledge are found under a new id.
            let first = self.records.entries(key, None, SLICE)?;
            proposal = match self.look(key, first, &mut Tidied::default())? {
                Some(group) => self.choose(group).1,
                None => None,
            };
        }
        if let Some(proposal) = proposal
            && !self.is_put_off(&proposal)?
        {
            tidied.proposals.push(proposal.clone());
            (self.on_action)(key, &Action::Consolidate(proposal));
        }
        Ok(())
    }

    /// The whole group as the policy sees it; `None` when the pass was stopped over it.
    fn look(&self, key: &GroupKey, first: Vec<Entry>, tidied: &mut Tidied) -> Result<Option<Group>, KvError> {
        let mut entries = first;
        let mut is_whole = entries.len() < SLICE;
        while !is_whole {
            if (self.stop)() {
                tidied.unfinished = true;
                return Ok(None);
            }
            let page = self.records.entries(key, entries.last(), SLICE)?;
            is_whole = page.len() < SLICE;
            entries.extend(page);
        }
        let rules: Vec<MegramId> = entries
            .iter()
            .filter(|entry| entry.level == Level::C && entry.state != MacroState::Remember)
            .map(|entry| entry.id.clone())
            .collect();
        Ok(Some(Group {
            key: key.clone(),
            known: self.known(&rules, &entries)?,
            entries,
        }))
    }

    /// The words of what these rules were distilled from. Read only where it can matter: beside enough new evidence.
    fn known(&self, rules: &[MegramId], entries: &[Entry]) -> Result<BTreeSet<u64>, KvError> {
        let mut known = BTreeSet::new();
        let most = entries.iter().map(|entry| entry.f.get()).sum::<f64>();
        if rules.is_empty() || most < self.params.consolidate_attention {
            return Ok(known);
        }
        for rule in self.records.get_many(rules)? {
            for sources in rule.sources.chunks(SLICE) {
                let evidence = self.records.get_many(sources)?;
                known.extend(evidence.iter().map(|megram| Entry::of(megram).words));
            }
        }
        Ok(known)
    }

    fn choose(&self, group: Group) -> (Vec<Action>, Option<Consolidation>) {
        let mut proposal = None;
        let mut steps = choose(&View { groups: vec![group] }, self.now, &self.params);
        steps.retain(|action| match action {
            Action::Consolidate(consolidation) => {
                proposal = Some(consolidation.clone());
                false
            }
            Action::Forget { .. } | Action::Demote { .. } | Action::Promote { .. } | Action::Fold { .. } => true,
        });
        (steps, proposal)
    }

    /// How many records were changed, at most about so many: what the steps say, unless the pass was stopped, or what they are about
    /// went meanwhile.
    fn carry_out(&self, steps: &[Action], allowed: usize, tidied: &mut Tidied) -> Result<usize, KvError> {
        let before = tidied.changes();
        let mut others = Vec::new();
        for step in steps {
            let Action::Fold { ids, level } = step else {
                others.push(step);
                continue;
            };
            let left = allowed.saturating_sub(tidied.changes() - before);
            let ids = ids.get(..ids.len().min(left + 1)).unwrap_or_default();
            let (gone, is_done) = fold(self.records, ids, *level, self.now, self.stop)?;
            tidied.folded += gone;
            if !is_done {
                tidied.unfinished = true;
                return Ok(tidied.changes() - before);
            }
        }
        for slice in others.chunks(EDITS) {
            if (self.stop)() {
                tidied.unfinished = true;
                break;
            }
            let ids: Vec<MegramId> = slice.iter().filter_map(|step| moved(step)).cloned().collect();
            let found = self.records.get_many(&ids)?;
            if !self.forget_evidence(slice, &found)? {
                tidied.unfinished = true;
                break;
            }
            let find = |id: &MegramId| found.iter().find(|megram| megram.id == *id);
            let derived = |megram: Megram, id: &MegramId| Edit::Derive {
                megram,
                from: vec![id.clone()],
            };
            let (steps, edits): (Vec<&Action>, Vec<Edit>) = slice
                .iter()
                .filter_map(|step| {
                    let edit = match step {
                        Action::Forget { id, .. } => Edit::Remove(id.clone()),
                        Action::Demote { id, .. } => derived(carry::demoted(find(id)?, self.now), id),
                        Action::Promote { id } => derived(carry::promoted(find(id)?, self.now), id),
                        Action::Fold { .. } | Action::Consolidate(_) => return None,
                    };
                    Some((*step, edit))
                })
                .unzip();
            for (step, stored) in steps.into_iter().zip(self.records.commit(&edits, self.now)?) {
                if matches!(stored, Stored::New | Stored::Removed) {
                    count(step, tidied);
                }
            }
        }
        Ok(tidied.changes() - before)
    }

    /// Removes what the records that are about to be forgotten were distilled from: it would count again after them. Whether
    /// all of it is gone; `false` where the pass was stopped over it, and the next one goes on.
    fn forget_evidence(&self, steps: &[&Action], moved: &[Megram]) -> Result<bool, KvError> {
        let is_forgotten = |megram: &&Megram| {
            steps
                .iter()
                .any(|step| matches!(step, Action::Forget { id, .. } if *id == megram.id))
        };
        for megram in moved.iter().filter(is_forgotten) {
            for ids in spent_on(self.records, megram)?.chunks(EDITS) {
                if (self.stop)() {
                    return Ok(false);
                }
                let edits: Vec<Edit> = ids.iter().cloned().map(Edit::Remove).collect();
                self.records.commit(&edits, self.now)?;
            }
        }
        Ok(true)
    }

    fn is_put_off(&self, proposal: &Consolidation) -> Result<bool, KvError> {
        let until = put_off_until(self.records, proposal)?;
        Ok(until.is_some_and(|until| until > self.now && until.since(self.now) <= WAIT_MAX))
    }
}

/// The record that a step is about, where it is one.
fn moved(step: &Action) -> Option<&MegramId> {
    match step {
        Action::Forget { id, .. } | Action::Demote { id, .. } | Action::Promote { id } => Some(id),
        Action::Fold { .. } | Action::Consolidate(_) => None,
    }
}

fn count(step: &Action, tidied: &mut Tidied) {
    match step {
        Action::Forget { .. } => tidied.forgotten += 1,
        Action::Demote { .. } => tidied.demoted += 1,
        Action::Promote { .. } => tidied.promoted += 1,
        Action::Fold { ids, .. } => tidied.folded += ids.len().saturating_sub(1),
        Action::Consolidate(_) => {}
    }
}

#[cfg(test)]
mod tests;

//! Whether everything derived fits the records: each key of each kind that follows from them is looked for, and each one that is there is
//! asked what it follows from (design §15).
//!
//! Owns: the comparison. Must not know: what the derived keys are read for, how they are made to fit.

use crate::commit::{PAGE, Txn, read_aside};
use crate::entry::Entry;
use crate::folding::is_sound;
use crate::keys;
use crate::kv::{KvError, Pair, Range};
use crate::near;
use crate::records::Records;
use crate::repair::sound;
use crate::sums::Sums;
use crate::ties;
use crate::view::GroupKey;
use artoo_protocol::message::Megram;
use artoo_protocol::{MegramId, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What the keys begin with that are compared. What is left, when something was put off or last done, follows from nothing; it is read
/// all the same, since a file is whole only if all of it can be read.
const COMPARED: [&str; 12] = ["a|", "f|", "g|", "h|", "i|", "l|", "m|", "o|", "p|", "r|", "t|", "x|"];

/// What [`Records::verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Records that can be read.
    pub records: usize,
    /// Records that count.
    pub living: usize,
    /// Records whose checksum is wrong, or that stand under another's key.
    pub damaged: usize,
    /// Derived keys that should be there and are not, or say something else.
    pub missing: usize,
    /// Derived keys that follow from nothing.
    pub stray: usize,
    /// Groups whose sums are not those of their records.
    pub sums: usize,
    /// Whether derived keys are to be rebuilt anyway: after a repair that was cut short, or in a store of the version before.
    pub is_incomplete: bool,
}

impl Verified {
    /// Whether nothing is wrong.
    pub const fn is_sound(&self) -> bool {
        self.damaged == 0 && self.missing == 0 && self.stray == 0 && self.sums == 0 && !self.is_incomplete
    }
}

/// A key that should be there, and what it should say.
type Expected = (String, Option<Vec<u8>>);

impl Records {
    /// Reads every key and compares everything derived with the records. Changes nothing; a store that others write to meanwhile may
    /// seem wrong.
    pub fn verify(&self) -> Result<Verified, KvError> {
        let mut found = Verified {
            is_incomplete: !self.is_derived(),
            ..Verified::default()
        };
        let mut txn = Txn::new(&**self.kv(), Timestamp::default(), true);
        let ended = self.perhaps_ended()?;
        self.each_page(keys::RECORDS, &mut |page| {
            let (mut expected, mut megrams) = (Vec::new(), Vec::new());
            for (key, value) in page {
                match sound(&key, &value) {
                    Some(megram) => megrams.push(megram),
                    None => found.damaged += 1,
                }
            }
            for megram in &megrams {
                found.records += 1;
                expected.push((keys::tag(&megram.space, &megram.entity, &megram.id), None));
                expected.push((keys::level(megram.level, &megram.id), None));
                if !found.is_incomplete && (!ended.contains(&megram.id) || !txn.has_ended(&megram.id)?) {
                    found.living += 1;
                    let entry = Entry::of(megram);
                    expected.push((
                        entry.key(&megram.space, &megram.entity),
                        Some(entry.value().into_bytes()),
                    ));
                }
            }
            if !found.is_incomplete {
                expected.extend(self.ties_of(&megrams)?);
            }
            found.missing += self.missing(&expected)?;
            Ok(())
        })?;
        self.each_page(keys::TRACES, &mut |page| {
            found.damaged += page.iter().filter(|pair| !is_sound(pair)).count();
            Ok(())
        })?;
        for prefix in ["x|", "l|", "r|", "t|"] {
            self.each_page(prefix, &mut |page| {
                found.stray += self.stray(&page, &ended, &mut txn)?.len();
                Ok(())
            })?;
        }
        if !found.is_incomplete {
            self.compare_groups(&mut found)?;
            found.stray += self.stray_ties()? + self.stray_asides()? + self.stray_hots()? + self.stray_intents()?;
        }
        self.read_the_rest()?;
        Ok(found)
    }

    /// How many of these are not there, or say something else.
    fn missing(&self, expected: &[Expected]) -> Result<usize, KvError> {
        let mut missing = 0;
        for some in expected.chunks(PAGE) {
            let wanted: Vec<Vec<u8>> = some.iter().map(|(key, _)| key.clone().into_bytes()).collect();
            let values = self.kv().get_many(&wanted)?;
            let is_right = |((_, expected), value): &(&Expected, Option<Vec<u8>>)| match (expected, value) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(expected), Some(value)) => expected == value,
            };
            missing += some.iter().zip(values).filter(|pair| !is_right(pair)).count();
        }
        Ok(missing)
    }

    /// How these records end others, or would if those were there.
    fn ties_of(&self, megrams: &[Megram]) -> Result<Vec<Expected>, KvError> {
        let mut ties = Vec::new();
        for megram in megrams {
            let kinds: BTreeMap<&MegramId, &[u8]> = ties::kinds(megram).collect();
            let ids: Vec<MegramId> = kinds.keys().map(|id| (*id).clone()).collect();
            for some in ids.chunks(PAGE) {
                let there = self.groups_of(some)?;
                for id in some {
                    let is_there = there.get(id) == Some(&GroupKey::of(megram));
                    let key = if is_there { keys::ended } else { keys::orphan };
                    let kind = kinds.get(id).map(|kind| kind.to_vec());
                    ties.push((key(id, &megram.id), kind));
                }
            }
        }
        Ok(ties)
    }

    /// The groups of those of these records that there are.
    fn groups_of(&self, ids: &[MegramId]) -> Result<BTreeMap<MegramId, GroupKey>, KvError> {
        let wanted: Vec<Vec<u8>> = ids.iter().map(|id| keys::record(id).into_bytes()).collect();
        let values = self.kv().get_many(&wanted)?;
        let there = wanted.iter().zip(values).filter_map(|(key, value)| sound(key, &value?));
        Ok(there.map(|megram| (megram.id.clone(), GroupKey::of(&megram))).collect())
    }

    /// Ties that no record asks for. What they should say was asked of the records.
    fn stray_ties(&self) -> Result<usize, KvError> {
        let mut stray = 0;
        for (prefix, is_there) in [("p|", true), (keys::ORPHANS, false)] {
            self.each_page(prefix, &mut |page| {
                let parts = |(key, _): &Pair| <[String; 2]>::try_from(keys::parts(key)?).ok();
                let pairs: Vec<Option<[MegramId; 2]>> =
                    page.iter().map(|pair| Some(parts(pair)?.map(MegramId::new))).collect();
                let ids: BTreeSet<&MegramId> = pairs.iter().flatten().flatten().collect();
                let wanted: Vec<Vec<u8>> = ids.iter().map(|id| keys::record(id).into_bytes()).collect();
                let values = self.kv().get_many(&wanted)?;
                let megrams = wanted.iter().zip(values).filter_map(|(key, value)| sound(key, &value?));
                let there: BTreeMap<MegramId, Megram> = megrams.map(|megram| (megram.id.clone(), megram)).collect();
                let is_right = |[target, by]: &[MegramId; 2]| {
                    there.get(by).is_some_and(|by| {
                        let same = there.get(target).is_some_and(|it| GroupKey::of(it) == GroupKey::of(by));
                        ties::targets(by).any(|id| id == target) && same == is_there
                    })
                };
                stray += pairs.iter().filter(|pair| !pair.as_ref().is_some_and(is_right)).count();
                Ok(())
            })?;
        }
        Ok(stray)
    }

    /// Numbers kept aside of what does not count, or counts within the sums.
    fn stray_asides(&self) -> Result<usize, KvError> {
        let mut stray = 0;
        self.each_page("f|", &mut |page| {
            let groups: BTreeSet<GroupKey> = page.iter().filter_map(|(key, _)| GroupKey::of_tag(key)).collect();
            let sums: BTreeMap<GroupKey, Option<Sums>> = self.sums_of(groups.into_iter())?.into_iter().collect();
            let leaves_out = |group: &GroupKey| !matches!(sums.get(group), Some(Some(sums)) if sums.aside == 0);
            let mut expected: Vec<Expected> = Vec::new();
            for (key, value) in &page {
                let (group, entry) = (GroupKey::of_tag(key), read_aside(value));
                let is_own = |(group, entry): &(GroupKey, Entry)| {
                    keys::aside(&group.space, &group.entity, &entry.id).as_bytes() == key
                };
                match group.filter(leaves_out).zip(entry).filter(is_own) {
                    Some((group, entry)) => {
                        expected.push((entry.key(&group.space, &group.entity), Some(entry.value().into_bytes())));
                    }
                    None => stray += 1,
                }
            }
            stray += self.missing(&expected)?;
            Ok(())
        })?;
        Ok(stray)
    }

    /// Keys of groups of tools by which none is to be found.
    fn stray_hots(&self) -> Result<usize, KvError> {
        let mut stray = 0;
        self.each_page("h|", &mut |page| {
            let groups: BTreeSet<GroupKey> = page.iter().filter_map(|(key, _)| GroupKey::of_hot(key)).collect();
            let sums: BTreeMap<GroupKey, Option<Sums>> = self.sums_of(groups.into_iter())?.into_iter().collect();
            for (key, _) in &page {
                let expected = GroupKey::of_hot(key).and_then(|group| hot_key(&group, sums.get(&group)?.as_ref()?));
                stray += usize::from(expected.is_none_or(|expected| expected.as_bytes() != key));
            }
            Ok(())
        })?;
        Ok(stray)
    }

    /// Words of groups in which nothing counts.
    fn stray_intents(&self) -> Result<usize, KvError> {
        let mut stray = 0;
        self.each_page(keys::INTENTS, &mut |page| {
            let groups = page.iter().filter_map(|(key, _)| GroupKey::of_sums(key));
            let groups: Vec<GroupKey> = groups.filter(|group| near::is_intent(&group.space)).collect();
            let first = |group: &GroupKey| Range::new(keys::entries(&group.space, &group.entity), 1);
            let ranges: Vec<Range> = groups.iter().map(first).collect();
            let found = self.kv().scan_many(&ranges)?;
            let right = found.iter().filter(|entries| !entries.is_empty()).count();
            stray += page.len() - right;
            Ok(())
        })?;
        Ok(stray)
    }

    fn sums_of(&self, groups: impl Iterator<Item = GroupKey>) -> Result<Vec<(GroupKey, Option<Sums>)>, KvError> {
        let groups: Vec<GroupKey> = groups.collect();
        let key = |group: &GroupKey| keys::sums(&group.space, &group.entity).into_bytes();
        let values = self.kv().get_many(&groups.iter().map(key).collect::<Vec<_>>())?;
        let sums = values.into_iter().map(|value| Sums::decode(&value?));
        Ok(groups.into_iter().zip(sums).collect())
    }

    /// Compares the sums of each group with its entries, and looks for what follows from either.
    fn compare_groups(&self, found: &mut Verified) -> Result<(), KvError> {
        let (mut seen, mut expected) = (HashSet::new(), Vec::new());
        let mut group: Option<Resummed> = None;
        let (mut wrong, mut missing) = (0, 0);
        let mut end = |group: Option<Resummed>| -> Result<(), KvError> {
            let Some(group) = group else { return Ok(()) };
            wrong += usize::from(!group.is_right());
            expected.extend(group.expected().into_iter().map(|key| (key, None)));
            seen.insert(keys::sums(&group.key.space, &group.key.entity).into_bytes());
            if expected.len() >= PAGE {
                missing += self.missing(&expected)?;
                expected.clear();
            }
            Ok(())
        };
        self.each_page(keys::ENTRIES, &mut |page| {
            for (key, value) in page {
                let Some((of, entry)) = GroupKey::of_entry(&key).zip(Entry::read(&key, &value)) else {
                    continue;
                };
                if group.as_ref().is_none_or(|group| group.key != of) {
                    end(group.replace(self.resummed(of)?))?;
                }
                if let Some(group) = &mut group {
                    group.add(&entry);
                }
            }
            Ok(())
        })?;
        end(group)?;
        found.missing += missing + self.missing(&expected)?;
        self.each_page(keys::SUMS, &mut |page| {
            wrong += page.iter().filter(|(key, _)| !seen.contains(key)).count();
            Ok(())
        })?;
        found.sums = wrong;
        Ok(())
    }

    fn resummed(&self, key: GroupKey) -> Result<Resummed, KvError> {
        let stored = self.kv().get(keys::sums(&key.space, &key.entity).as_bytes())?;
        let stored = stored.and_then(|value| Sums::decode(&value));
        let mut aside = HashSet::new();
        if stored.as_ref().is_some_and(|sums| sums.aside > 0) {
            self.each_page(&keys::asides(&key.space, &key.entity), &mut |page| {
                aside.extend(page.iter().filter_map(|(key, _)| keys::id_of(key)));
                Ok(())
            })?;
        }
        Ok(Resummed {
            key,
            stored,
            aside,
            plain: Sums::default(),
        })
    }

    /// Reads what nothing is compared with.
    fn read_the_rest(&self) -> Result<(), KvError> {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = self.kv().scan(b"", after.as_deref(), PAGE)?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            let compared = COMPARED.iter().find(|prefix| last.starts_with(prefix.as_bytes()));
            // Behind all keys of that kind.
            after = Some(compared.map_or_else(|| last.clone(), |prefix| prefix.replace('|', "}").into_bytes()));
        }
    }
}

/// The key by which a group of a tool is found, as its sums say.
fn hot_key(group: &GroupKey, sums: &Sums) -> Option<String> {
    Some(keys::hot(group.tool()?, sums.until?, &group.space, &group.entity))
}

/// The sums of a group as they are stored, and as its entries give them.
struct Resummed {
    key: GroupKey,
    stored: Option<Sums>,
    aside: HashSet<MegramId>,
    plain: Sums,
}

impl Resummed {
    fn add(&mut self, entry: &Entry) {
        if self.aside.contains(&entry.id) || !Sums::takes(entry, entry.created_at) {
            self.plain.count_aside(entry, true);
        } else {
            self.plain.add(entry);
        }
    }

    /// What follows from a group in which something counts.
    fn expected(&self) -> Vec<String> {
        let words = near::is_intent(&self.key.space).then(|| keys::intent(&self.key.space, &self.key.entity));
        let hot = self.stored.as_ref().and_then(|sums| hot_key(&self.key, sums));
        words.into_iter().chain(hot).collect()
    }

    fn is_right(&self) -> bool {
        let is_complete = |sums: &Sums| sums.aside == self.aside.len() as u64;
        self.stored
            .as_ref()
            .is_some_and(|stored| is_complete(stored) && stored.agrees(&self.plain))
    }
}

//! What one plan is told: rules, knowledge, recent lessons and potentials, as data (design §15).
//!
//! Owns: what is read for a plan, its order and its limits. Must not know: threads, prompts.

use crate::kv::KvError;
use crate::records::{Records, same_words, tag};
use crate::view::{GroupKey, tool_of};
use artoo_protocol::message::{
    Lesson, Level, Megram, MemoryAction, MemoryQuery, MemoryReply, SopRecord, TaggedPotentials,
};
use artoo_protocol::{MegramId, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Where the user's own wishes live.
pub const PREFERENCE_SPACE: &str = "user:preference";
/// The entity of everything that is not about a target.
pub const LOCAL_ENTITY: &str = "env:local";

/// At most so many lessons, knowledge and recent ones together, enter a plan.
pub const LESSONS_MAX: usize = 10;
/// So many of them are kept for recent ones, where there are as many.
const RECENT_KEPT: usize = 5;
/// At most so many of the user's wishes enter a plan.
const PREFERENCES_MAX: usize = 50;
/// At most so many other rules enter a plan.
const RULES_MAX: usize = 10;
/// At most so many groups of other intents are read.
const NEAREST_MAX: usize = 3;
/// Intents that have less in common than this are others.
const NEAREST_SCORE: f64 = 0.3;
/// So many lessons of other intents are kept, where there are as many.
const NEAREST_KEPT: usize = 3;
/// Of the tools' groups, at most so many: those with the most attention.
const TOOL_GROUPS_MAX: usize = 32;
/// So many of each tool's groups are looked at: those that will count longest.
const TOOL_GROUPS_READ: usize = 64;
/// At most so many tools are looked up.
const TOOLS_MAX: usize = 64;

/// Answers a planner's question, and marks the rules that it gives out as recalled.
///
/// # Errors
/// [`KvError`] when the store cannot be read.
pub fn recall(records: &Records, query: &MemoryQuery, now: Timestamp) -> Result<MemoryReply, KvError> {
    let reply = look(records, query, now)?;
    // Being recalled only informs: a store that cannot be written can still be read.
    let _ = records.mark_recalled(reply.sops.iter().map(|sop| &sop.id), now);
    Ok(reply)
}

/// What a planner would be told; changes nothing.
///
/// # Errors
/// [`KvError`] when the store cannot be read.
pub fn look(records: &Records, query: &MemoryQuery, now: Timestamp) -> Result<MemoryReply, KvError> {
    let wishes = GroupKey::new(PREFERENCE_SPACE, LOCAL_ENTITY);
    let intent = GroupKey::new(&query.space, &query.entity);
    let intent = (intent != wishes).then_some(intent);
    let near: Vec<GroupKey> = records
        .nearest(&query.intent, NEAREST_MAX + 1)?
        .into_iter()
        .filter(|near| near.score >= NEAREST_SCORE && Some(&near.key) != intent.as_ref())
        .map(|near| near.key)
        .take(NEAREST_MAX)
        .collect();
    let tools = tool_groups(records, &query.tools, now)?;

    let told = Told::read(records, &wishes, intent.as_ref(), &tools, &near)?;
    let mut sops = rules(&told.wishes, PREFERENCES_MAX);
    let mut others = rules(&told.rules, RULES_MAX);
    others.extend(rules(&told.near, RULES_MAX - others.len()));
    sops.extend(others);

    let of_level = |level| {
        let own = lessons(&told.own, level, LESSONS_MAX);
        with_nearest(own, lessons(&told.near, level, NEAREST_KEPT))
    };
    let (mut recent, mut knowledge) = (of_level(Level::M), of_level(Level::K));
    knowledge.truncate(LESSONS_MAX - recent.len().min(RECENT_KEPT));
    recent.truncate(LESSONS_MAX - knowledge.len());
    drop_contradicted(&mut knowledge, &mut recent);

    let mut reply = MemoryReply::empty(query.task_id.clone(), query.query);
    for group in [Some(&wishes), intent.as_ref()].into_iter().flatten() {
        reply.potentials.extend(tagged(records, group, now)?);
    }
    reply.potentials.extend(tools.into_iter().map(|group| group.potentials));
    (reply.sops, reply.knowledge, reply.recent) = (sops, knowledge, recent);
    Ok(reply)
}

/// The records that a plan may be told of.
struct Told {
    /// The user's wishes.
    wishes: Vec<Megram>,
    /// Rules of the intent and of the tools.
    rules: Vec<Megram>,
    /// Below rules, of the intent and of the wishes.
    own: Vec<Megram>,
    /// Of the nearest intents, at any level.
    near: Vec<Megram>,
}

impl Told {
    fn read(
        records: &Records,
        wishes: &GroupKey,
        intent: Option<&GroupKey>,
        tools: &[ToolGroup],
        near: &[GroupKey],
    ) -> Result<Self, KvError> {
        let below = [(Level::K, LESSONS_MAX), (Level::M, LESSONS_MAX)];
        let nearby = [
            (Level::C, RULES_MAX),
            (Level::K, NEAREST_KEPT),
            (Level::M, NEAREST_KEPT),
        ];
        let with_rules = intent.into_iter().chain(tools.iter().map(|group| &group.key));
        let mut asked = vec![(wishes, Level::C, PREFERENCES_MAX)];
        asked.extend(with_rules.map(|group| (group, Level::C, RULES_MAX)));
        let own_from = asked.len();
        let own = intent.into_iter().chain([wishes]);
        asked.extend(own.flat_map(|group| below.map(|(level, limit)| (group, level, limit))));
        let near_from = asked.len();
        asked.extend(
            near.iter()
                .flat_map(|group| nearby.map(|(level, limit)| (group, level, limit))),
        );

        let ids = records.newest_of(&asked)?;
        let part = |from: usize, to: usize| ids.get(from..to).into_iter().flatten().flatten().cloned();
        let all: Vec<MegramId> = part(0, ids.len()).collect();
        let mut found: BTreeMap<MegramId, Megram> = records
            .get_words(&all)?
            .into_iter()
            .map(|megram| (megram.id.clone(), megram))
            .collect();
        let mut take = |from, to| part(from, to).filter_map(|id| found.remove(&id)).collect();
        Ok(Self {
            wishes: take(0, 1),
            rules: take(1, own_from),
            own: take(own_from, near_from),
            near: take(near_from, asked.len()),
        })
    }
}

/// Lessons of this intent and of the nearest ones, newest first; those of this intent are not pushed out by the others.
fn with_nearest(mut own: Vec<Lesson>, mut others: Vec<Lesson>) -> Vec<Lesson> {
    others.retain(|other| !own.iter().any(|lesson| same_words(&lesson.content, &other.content)));
    own.truncate(LESSONS_MAX - others.len());
    own.extend(others);
    own.sort_by_key(|lesson| Reverse((lesson.created_at, lesson.id.clone())));
    own
}

/// The rules among the memories, newest first; of two that say the same, the newer.
pub fn rules<'a>(megrams: impl IntoIterator<Item = &'a Megram>, limit: usize) -> Vec<SopRecord> {
    let mut kept: Vec<&Megram> = Vec::new();
    for megram in newest_first(megrams, Level::C) {
        let known = kept.iter().any(|newer| {
            (&newer.space, &newer.entity) == (&megram.space, &megram.entity)
                && same_words(&newer.content, &megram.content)
        });
        if !known && kept.len() < limit {
            kept.push(megram);
        }
    }
    kept.into_iter()
        .map(|megram| SopRecord {
            id: megram.id.clone(),
            space: megram.space.clone(),
            entity: megram.entity.clone(),
            content: megram.content.clone(),
            sigma: megram.sigma,
        })
        .collect()
}

/// The memories of one level as lessons, newest first; of two with the same words, the newer.
pub fn lessons<'a>(megrams: impl IntoIterator<Item = &'a Megram>, level: Level, limit: usize) -> Vec<Lesson> {
    let mut kept: Vec<Lesson> = Vec::new();
    for megram in newest_first(megrams, level) {
        if kept.len() < limit && !kept.iter().any(|newer| same_words(&newer.content, &megram.content)) {
            kept.push(Lesson {
                id: megram.id.clone(),
                level: megram.level,
                space: megram.space.clone(),
                entity: megram.entity.clone(),
                created_at: megram.created_at,
                content: megram.content.clone(),
                state: megram.state,
                sigma: megram.sigma,
            });
        }
    }
    kept
}

fn newest_first<'a>(megrams: impl IntoIterator<Item = &'a Megram>, level: Level) -> Vec<&'a Megram> {
    let mut found: Vec<&Megram> = megrams.into_iter().filter(|megram| megram.level == level).collect();
    found.sort_by_key(|megram| Reverse((megram.created_at, &megram.id)));
    found
}

/// Of a piece of knowledge and a recent lesson with the same words, the newer stays.
fn drop_contradicted(knowledge: &mut Vec<Lesson>, recent: &mut Vec<Lesson>) {
    recent.retain(|lesson| {
        !knowledge
            .iter()
            .any(|known| same_words(&known.content, &lesson.content) && known.created_at >= lesson.created_at)
    });
    knowledge.retain(|known| !recent.iter().any(|lesson| same_words(&known.content, &lesson.content)));
}

/// A group of a tool that counts.
struct ToolGroup {
    key: GroupKey,
    potentials: TaggedPotentials,
}

/// The groups of the tools that count, those with the most attention first.
fn tool_groups(records: &Records, tools: &[String], now: Timestamp) -> Result<Vec<ToolGroup>, KvError> {
    let spaces: BTreeSet<String> = tools
        .iter()
        .take(TOOLS_MAX)
        .map(|name| tag(&format!("tool:{name}")))
        .collect();
    // What qualifies a tool is found again under the tool itself.
    let is_asked = |space: &str| {
        spaces.iter().any(|asked| {
            space
                .strip_prefix(asked.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    };
    let names: BTreeSet<&str> = spaces.iter().filter_map(|space| tool_of(space)).collect();
    let mut groups = Vec::new();
    for key in records.counting(&names, TOOL_GROUPS_READ, now)? {
        if is_asked(&key.space)
            && let Some(potentials) = tagged(records, &key, now)?
        {
            groups.push(ToolGroup { key, potentials });
        }
    }
    let attention = |group: &ToolGroup| group.potentials.potentials.attention.get();
    groups.sort_by(|a, b| attention(b).total_cmp(&attention(a)).then_with(|| a.key.cmp(&b.key)));
    groups.truncate(TOOL_GROUPS_MAX);
    Ok(groups)
}

/// The group's potentials, unless they are to be ignored.
fn tagged(records: &Records, group: &GroupKey, now: Timestamp) -> Result<Option<TaggedPotentials>, KvError> {
    let potentials = records.potentials(&group.space, &group.entity, now)?;
    Ok((potentials.action != MemoryAction::Ignore).then(|| TaggedPotentials {
        space: group.space.clone(),
        entity: group.entity.clone(),
        potentials,
    }))
}

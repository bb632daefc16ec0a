//! What one plan is told: rules, knowledge, recent lessons and potentials, as data (design §15).
//!
//! Owns: what is read for a plan, its order and its limits. Must not know: threads, prompts.

use crate::kv::KvError;
use crate::potentials::{Later, living, potentials};
use crate::records::{Records, same_words};
use artoo_protocol::Timestamp;
use artoo_protocol::message::{
    Lesson, Level, Megram, MemoryAction, MemoryQuery, MemoryReply, SopRecord, TaggedPotentials,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;

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
/// Of the tools' groups, at most so many: those with the most attention.
const TOOL_GROUPS_MAX: usize = 32;
/// At most so many tools are looked up.
const TOOLS_MAX: usize = 64;

/// Answers a planner's question, and marks the rules that it gives out as recalled.
pub fn recall(records: &Records, query: &MemoryQuery, now: Timestamp) -> Result<MemoryReply, KvError> {
    let wishes = living(records.group(PREFERENCE_SPACE, LOCAL_ENTITY)?);
    let intent = if (query.space.as_str(), query.entity.as_str()) == (PREFERENCE_SPACE, LOCAL_ENTITY) {
        Vec::new()
    } else {
        living(records.group(&query.space, &query.entity)?)
    };
    let tools = tool_groups(records, &query.tools)?;

    let mut sops = rules(&wishes, PREFERENCES_MAX);
    let about_tools = tools.values().flatten();
    sops.extend(rules(intent.iter().chain(about_tools), RULES_MAX));
    // Being recalled only informs: a store that cannot be written can still be read.
    let _ = records.mark_recalled(sops.iter().map(|sop| &sop.id), now);

    let below_rules = || intent.iter().chain(&wishes);
    let mut recent = lessons(below_rules(), Level::M, LESSONS_MAX);
    let mut knowledge = lessons(below_rules(), Level::K, LESSONS_MAX - recent.len().min(RECENT_KEPT));
    recent.truncate(LESSONS_MAX - knowledge.len());
    drop_contradicted(&mut knowledge, &mut recent);

    let mut reply = MemoryReply::empty(query.task_id.clone(), query.query);
    reply.potentials = tagged(&wishes, now).into_iter().chain(tagged(&intent, now)).collect();
    reply.potentials.extend(strongest(
        tools.values().filter_map(|group| tagged(group, now)).collect(),
    ));
    (reply.sops, reply.knowledge, reply.recent) = (sops, knowledge, recent);
    Ok(reply)
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

/// The living memories about the tools, by space and entity.
fn tool_groups(records: &Records, tools: &[String]) -> Result<BTreeMap<(String, String), Vec<Megram>>, KvError> {
    let mut groups: BTreeMap<(String, String), Vec<Megram>> = BTreeMap::new();
    let mut names: Vec<&String> = tools.iter().take(TOOLS_MAX).collect();
    names.sort();
    names.dedup();
    for name in names {
        for megram in records.space(&format!("tool:{name}"))? {
            let group = groups.entry((megram.space.clone(), megram.entity.clone())).or_default();
            // A qualified tool is found again under the tool that it qualifies.
            if !group.iter().any(|there| there.id == megram.id) {
                group.push(megram);
            }
        }
    }
    for group in groups.values_mut() {
        *group = living(std::mem::take(group));
    }
    Ok(groups)
}

/// The group's potentials, unless they are to be ignored.
fn tagged(group: &[Megram], now: Timestamp) -> Option<TaggedPotentials> {
    let first = group.first()?;
    let potentials = potentials(group, now, Later::CountsAsNew);
    (potentials.action != MemoryAction::Ignore).then(|| TaggedPotentials {
        space: first.space.clone(),
        entity: first.entity.clone(),
        potentials,
    })
}

fn strongest(mut groups: Vec<TaggedPotentials>) -> Vec<TaggedPotentials> {
    let attention = |group: &TaggedPotentials| group.potentials.attention.get();
    groups.sort_by(|a, b| attention(b).total_cmp(&attention(a)));
    groups.truncate(TOOL_GROUPS_MAX);
    groups
}

//! One memory and its group: what each entry adds, what a plan would make of it, and its picture (design §15).
//!
//! Owns what `show` and `query` show. Changes nothing.

use artoo_memory::view::GroupKey;
use artoo_memory::{Records, picture, recall};
use artoo_protocol::message::{Level, Megram};
use artoo_protocol::text::{one_line, printable};
use artoo_protocol::{MegramId, Millis, Timestamp};
use serde_json::json;

use super::words::{Explained, potentials_line};
use super::{broken, find, instant};
use crate::failure::Failure;
use crate::output;

/// How many lessons or ids are shown.
const SHOWN: usize = 10;
/// Days that a picture looks ahead.
const AHEAD: Millis = Millis::from_seconds(14 * 24 * 3600);

fn explained(records: &Records, group: &GroupKey, at: Option<&str>, now: Timestamp) -> Result<Explained, Failure> {
    let (space, entity) = (&group.space, &group.entity);
    Ok(match at {
        Some(_) => Explained::new(
            records.history(space, entity).map_err(|e| broken(&e))?,
            instant(at, now)?,
        ),
        None => Explained::now(records.group(space, entity).map_err(|e| broken(&e))?, now),
    })
}

pub(super) fn show(records: &Records, id: &str, at: Option<&str>, now: Timestamp, json: bool) -> Result<(), Failure> {
    let id = find(records, id)?;
    let Some(megram) = records.get(&id).map_err(|e| broken(&e))? else {
        return Err(super::unknown(id.as_str()));
    };
    let group = explained(records, &GroupKey::of(&megram), at, now)?;
    let by = records.replaced_by(&id).map_err(|e| broken(&e))?;
    let counts = group.entries.iter().any(|entry| entry.id == id);
    if json {
        output::json(&json!({"megram": megram, "counts": counts, "ended_by": by, "group": group.to_json()}));
        return Ok(());
    }
    let mut lines = vec![
        format!("{}  level {}, {}", megram.id, megram.level.letter(), state(&megram)),
        format!("{} · {}", megram.space, megram.entity),
        format!("made {}{}", megram.created_at, recalled_at(&megram)),
    ];
    lines.extend(megram.origin.as_ref().map(|origin| format!("from {origin}")));
    lines.extend(megram.supersedes.as_ref().map(|old| format!("in place of {old}")));
    if !megram.sources.is_empty() {
        lines.push(format!("distilled from {}", joined(&megram.sources)));
    }
    lines.push(match by.as_slice() {
        _ if counts => "it counts".to_owned(),
        [] => "it does not count yet".to_owned(),
        by => format!("it no longer counts: {} took its place", joined(by)),
    });
    lines.push(String::new());
    lines.push(megram.content.clone());
    lines.push(String::new());
    lines.push(format!(
        "its group at {}:",
        at.map_or_else(|| now.to_string(), str::to_owned)
    ));
    for line in &lines {
        output::result(&printable(line));
    }
    for line in group.table() {
        output::result(&line);
    }
    Ok(())
}

fn state(megram: &Megram) -> String {
    let state = serde_json::to_value(megram.state).unwrap_or_default();
    format!(
        "{}: f {:.2}, σ {:+.2}, k {:.2} a day",
        state.as_str().unwrap_or_default(),
        megram.f.get(),
        megram.sigma.get(),
        megram.k.get()
    )
}

fn recalled_at(megram: &Megram) -> String {
    megram
        .last_recalled_at
        .map_or_else(String::new, |at| format!(", last recalled {at}"))
}

fn joined(ids: &[MegramId]) -> String {
    let shown: Vec<&str> = ids.iter().take(SHOWN).map(MegramId::as_str).collect();
    let more = ids.len().saturating_sub(SHOWN);
    if more == 0 {
        shown.join(", ")
    } else {
        format!("{} and {more} more", shown.join(", "))
    }
}

pub(super) fn query(
    records: &Records,
    key: &GroupKey,
    at: Option<&str>,
    now: Timestamp,
    json: bool,
) -> Result<(), Failure> {
    let group = explained(records, key, at, now)?;
    // Without a moment, the sums that a plan would be given: they must not differ from the entries' own.
    let potentials = match at {
        Some(_) => *group.potentials(),
        None => records
            .potentials(&key.space, &key.entity, now)
            .map_err(|e| broken(&e))?,
    };
    let sops = recall::rules(&group.entries, usize::MAX);
    let knowledge = recall::lessons(&group.entries, Level::K, SHOWN);
    let recent = recall::lessons(&group.entries, Level::M, SHOWN);
    if json {
        output::json(
            &json!({"attention": potentials.attention, "decision": potentials.decision, "action": potentials.action,
            "sops": sops, "knowledge": knowledge, "recent": recent}),
        );
        return Ok(());
    }
    output::result(&potentials_line(&potentials));
    for sop in sops {
        output::result(&printable(&format!(
            "rule   {:+.1}  {}",
            sop.sigma.get(),
            one_line(&sop.content, 160)
        )));
    }
    for lesson in knowledge.iter().chain(&recent) {
        output::result(&printable(&format!(
            "{}      {:+.1}  {}  {}",
            lesson.level.letter(),
            lesson.sigma.get(),
            lesson.created_at,
            one_line(&lesson.content, 160)
        )));
    }
    Ok(())
}

pub(super) fn draw(
    records: &Records,
    key: &GroupKey,
    at: Option<&str>,
    now: Timestamp,
    path: &std::path::Path,
) -> Result<(), Failure> {
    let until = instant(at, now)?;
    let mut all = records.history(&key.space, &key.entity).map_err(|e| broken(&e))?;
    all.retain(|megram| megram.created_at <= until);
    let from = all.iter().map(|megram| megram.created_at).min().unwrap_or(until);
    let title = format!("{} · {}", key.space, key.entity);
    output::file(path, &picture::svg(&title, &all, from, until.plus(AHEAD)))?;
    output::note(&format!("drawn into {}", path.display()));
    Ok(())
}

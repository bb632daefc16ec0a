//! The commands that only look (design §15).
//!
//! Owns what they show. Changes nothing: they work on a private copy of the store.

use std::collections::BTreeSet;
use std::path::Path;

use artoo_memory::dreamer::awake::on_demand;
use artoo_memory::dreamer::{Action, Mode, Params, Pass, Scope, Tidied};
use artoo_memory::junk::{self, Junk};
use artoo_memory::repair::Verified;
use artoo_memory::view::GroupKey;
use artoo_memory::{Exporting, Records};
use artoo_protocol::Timestamp;
use artoo_protocol::message::{Level, Megram};
use serde_json::json;

use super::group::{draw, query, show};
use super::recalled::recalled;
use super::words::{line, step_json, step_line};
use super::{Store, broken, each, instant};
use crate::args::{ListOptions, MemoryCommand};
use crate::failure::Failure;
use crate::{dreaming, output};

/// Runs one of them.
pub(super) fn run(command: &MemoryCommand, store: &Store, data: &Path) -> Result<u8, Failure> {
    let (records, now) = (&*store.records, store.now);
    match command {
        MemoryCommand::Stats { json } => stats(records, data, *json).map(|()| 0),
        MemoryCommand::List(options) => list(records, options, now).map(|()| 0),
        MemoryCommand::Show { id, at, json } => show(records, id, at.as_deref(), now, *json).map(|()| 0),
        MemoryCommand::Query {
            space,
            entity,
            at,
            svg,
            json,
        } => {
            let group = GroupKey::new(space, entity);
            if let Some(path) = svg {
                draw(records, &group, at.as_deref(), now, path)?;
            }
            query(records, &group, at.as_deref(), now, *json).map(|()| 0)
        }
        MemoryCommand::Recall { text, at, json } => {
            recalled(records, &text.join(" "), instant(at.as_deref(), now)?, *json).map(|()| 0)
        }
        MemoryCommand::Export { at, .. } => export(records, at.as_deref(), now).map(|()| 0),
        MemoryCommand::Verify { json } => verify(store, *json),
        MemoryCommand::Dream { .. }
        | MemoryCommand::Remember { .. }
        | MemoryCommand::Forget { .. }
        | MemoryCommand::Import { .. }
        | MemoryCommand::Repair { .. } => Err(Failure::failed("this command does not only look")),
    }
}

/// How much is held, how much of it is junk, what dreams have cost.
///
/// # Errors
/// [`Failure`] when the store cannot be read.
pub fn stats(records: &Records, data: &Path, json: bool) -> Result<(), Failure> {
    let (mut counts, mut newest, mut groups) = ([0_u64; 3], None::<Timestamp>, BTreeSet::new());
    each(records, &mut |megram| {
        match megram.level {
            Level::M => counts[0] += 1,
            Level::K => counts[1] += 1,
            Level::C => counts[2] += 1,
            Level::T => {}
        }
        newest = newest.max(Some(megram.created_at));
        groups.insert(GroupKey::of(&megram));
        Ok(())
    })?;
    let Junk { entries, restated } = junk::measure(records).map_err(|e| broken(&e))?;
    let share = Junk { entries, restated }.share();
    let ([m, k, c], spent) = (counts, dreaming::spent(data));
    // Left for whoever says so and mends it.
    let (total, damaged) = (m + k + c, records.damaged());
    if json {
        output::json(
            &json!({"total": total, "M": m, "K": k, "C": c, "groups": groups.len(), "newest": newest,
            "damaged": damaged, "counting": entries, "restated": restated, "junk": share,
            "dreams": {"calls": spent.calls, "rules": spent.rules, "tokens": spent.tokens}}),
        );
        return Ok(());
    }
    if damaged > 0 {
        output::result(&format!(
            "{damaged} memories cannot be read: artoo memory verify says more, artoo memory repair mends what can be mended"
        ));
    }
    if total == 0 {
        if damaged == 0 {
            output::note("memory is empty");
        }
        return Ok(());
    }
    output::result(&format!(
        "{total} memories in {} groups: {m} raw (M), {k} knowledge (K), {c} rules (C){}",
        groups.len(),
        newest.map(|t| format!("; newest {t}")).unwrap_or_default()
    ));
    output::result(&format!(
        "{entries} of them count; {restated} of those say again what another one says ({:.1} %)",
        share * 100.0
    ));
    if spent.calls > 0 {
        output::result(&format!(
            "the Dreamer asked a model {} times for {} rules: {} tokens",
            spent.calls, spent.rules, spent.tokens
        ));
    }
    Ok(())
}

fn list(records: &Records, options: &ListOptions, now: Timestamp) -> Result<(), Failure> {
    let at = instant(options.at.as_deref(), now)?;
    let (mut found, mut are_there): (Vec<Megram>, bool) = (Vec::new(), false);
    let wanted = options.limit;
    each_at(records, options.at.is_some().then_some(at), &mut |megram| {
        let fits = options
            .level
            .as_deref()
            .is_none_or(|level| level == megram.level.letter())
            && options.space.as_deref().is_none_or(|space| space == megram.space);
        are_there |= fits;
        if fits && wanted > 0 {
            found.push(megram);
        }
        // Ids begin with their time, but an imported one may not: keep some more than wanted, and sort.
        if found.len() >= wanted.saturating_mul(4).max(4_096) {
            newest_first(&mut found, wanted);
        }
        Ok(())
    })?;
    newest_first(&mut found, wanted);
    if !are_there && !options.json {
        output::note("there is no such memory");
    }
    if options.json {
        output::json(&found);
    } else {
        for megram in &found {
            output::result(&line(megram));
        }
    }
    Ok(())
}

/// Goes through every record; of a moment in the past, through those that were made until then, and through the events that became
/// part of later ones.
fn each_at(
    records: &Records,
    at: Option<Timestamp>,
    on_record: &mut dyn FnMut(Megram) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(at) = at else {
        return each(records, on_record);
    };
    each(records, &mut |megram| {
        if megram.created_at <= at {
            on_record(megram)
        } else {
            Ok(())
        }
    })?;
    let mut outcome = Ok(());
    let hear = &mut |part| {
        if outcome.is_ok() {
            outcome = on_record(part);
        }
    };
    records.each_part_at(at, hear).map_err(|e| broken(&e))?;
    outcome
}

fn newest_first(megrams: &mut Vec<Megram>, limit: usize) {
    megrams.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
    megrams.truncate(limit);
}

fn export(records: &Records, at: Option<&str>, now: Timestamp) -> Result<(), Failure> {
    let until = instant(at, now)?;
    let mut exporting = Exporting::new(records).map_err(|e| broken(&e))?;
    each_at(records, at.map(|_| until), &mut |megram| {
        output::json(&exporting.line(megram).map_err(|e| broken(&e))?);
        if output::is_broken() {
            return Err(Failure::failed("nobody reads the export any more"));
        }
        Ok(())
    })
}

fn verify(store: &Store, json: bool) -> Result<u8, Failure> {
    let found = store.records.verify().map_err(|e| broken(&e))?;
    let is_damaged = store.is_damaged();
    let is_sound = found.is_sound() && !is_damaged;
    if json {
        output::json(
            &json!({"sound": is_sound, "records": found.records, "counting": found.living, "damaged": found.damaged,
            "missing_keys": found.missing, "stray_keys": found.stray, "wrong_sums": found.sums,
            "incomplete": found.is_incomplete, "files_damaged": is_damaged, "damage": store.damage()}),
        );
    } else if is_sound {
        output::result(&format!(
            "sound: {} memories, {} of them count",
            found.records, found.living
        ));
    } else {
        output::result(&format!(
            "not sound: {} memories can be read; {}{}",
            found.records,
            problems(&found),
            if is_damaged { ", files are damaged" } else { "" }
        ));
        output::note("artoo: artoo memory repair mends what can be mended");
    }
    Ok(u8::from(!is_sound))
}

/// What is wrong, in numbers.
pub(super) fn problems(found: &Verified) -> String {
    format!(
        "{} damaged, {} keys missing, {} keys lead nowhere, {} sums wrong{}",
        found.damaged,
        found.missing,
        found.stray,
        found.sums,
        if found.is_incomplete {
            ", the indices are not complete"
        } else {
            ""
        },
    )
}

/// What a pass would do; `words_rules` where there is a model for it.
pub(super) fn dream(records: &Records, now: Timestamp, words_rules: bool, json: bool) -> Result<(), Failure> {
    let mut steps: Vec<(GroupKey, Action)> = Vec::new();
    let params = Params {
        words_rules,
        ..Params::default()
    };
    let tidied = Pass {
        records,
        params: on_demand(&**records.kv(), now, params, Mode::Look).map_err(|e| broken(&e))?,
        now,
        mode: Mode::Look,
        stop: &|| false,
        on_action: &mut |key, action| steps.push((key.clone(), action.clone())),
    }
    .run(&Scope::Everything)
    .map_err(|e| broken(&e))?;
    if json {
        let actions: Vec<_> = steps.iter().map(|(key, step)| step_json(key, step)).collect();
        output::json(
            &json!({"groups": tidied.groups, "entries": tidied.entries, "unfinished": tidied.unfinished, "actions": actions}),
        );
        return Ok(());
    }
    for (key, step) in &steps {
        let content = match step {
            Action::Forget { id, .. } | Action::Demote { id, .. } | Action::Promote { id } => records.get(id),
            Action::Fold { ids, .. } => ids.last().map_or(Ok(None), |newest| records.get(newest)),
            Action::Consolidate(_) => Ok(None),
        };
        let content = content.map_err(|e| broken(&e))?.map(|megram| megram.content);
        output::result(&step_line(key, step, &content.unwrap_or_default()));
    }
    output::note(&summary("would", &tidied, 0));
    Ok(())
}

/// What a pass did or would do, in a line.
pub(super) fn summary(verb: &str, tidied: &Tidied, rules: usize) -> String {
    format!(
        "{} groups, {} entries: {verb} forget {}, promote {}, demote {}, fold {} into others; {} groups have earned a rule{}{}",
        tidied.groups,
        tidied.entries,
        tidied.forgotten,
        tidied.promoted,
        tidied.demoted,
        tidied.folded,
        tidied.proposals.len(),
        if rules > 0 {
            format!(", {rules} written")
        } else {
            String::new()
        },
        if tidied.unfinished {
            " (not everything was seen: run it again)"
        } else {
            ""
        }
    )
}

/// There is no store to be put in order.
pub(super) fn nothing_to_dream(json: bool) -> u8 {
    if json {
        output::json(
            &json!({"groups": 0, "entries": 0, "forgotten": 0, "promoted": 0, "demoted": 0, "folded": 0, "rules": []}),
        );
    } else {
        output::note("memory is empty");
    }
    0
}

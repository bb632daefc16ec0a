//! `artoo memory`: the operator's view of R5 (design §15). Works while another artoo holds the store, on a copy.

use std::path::Path;
use std::sync::Arc;

use artoo_bus::SystemClock;
use artoo_memory::kv::{Kv, LevelKv, LevelSettings};
use artoo_memory::{Memory, Records};
use artoo_protocol::Timestamp;
use artoo_protocol::message::{Level, MemoryAction};
use artoo_protocol::ports::{Clock, MemoryService};
use artoo_protocol::text::{one_line, printable};
use serde_json::json;

use crate::args::MemoryCommand;
use crate::failure::Failure;
use crate::output;

/// How many lessons are shown.
const SHOWN: usize = 10;

/// Runs one of them.
///
/// # Errors
/// [`Failure`] when the store cannot be read.
pub async fn run(command: &MemoryCommand, data: &Path) -> Result<(), Failure> {
    let folder = data.join("memory.leveldb");
    match std::fs::metadata(&folder) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return empty(command),
        // What cannot be looked at is not empty.
        Err(error) => return Err(Failure::failed(format!("cannot read {}: {error}", folder.display()))),
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let broken = |e: &dyn std::fmt::Display| Failure::failed(format!("memory cannot be read: {e}"));
    let kv =
        LevelKv::open_snapshot(&folder, &clock.now().to_string(), LevelSettings::default()).map_err(|e| broken(&e))?;
    let kv: Arc<dyn Kv> = Arc::new(kv);
    if !kv.take_notices().is_empty() {
        output::note(
            "artoo: memory is damaged: this is what can be read of it; the next task repairs it and keeps the damaged files",
        );
    }
    match command {
        MemoryCommand::Stats { json } => {
            let records = Records::open(kv).map_err(|e| broken(&e))?;
            let all = records.all().map_err(|e| broken(&e))?;
            let count = |level| all.iter().filter(|m| m.level == level).count();
            let groups: std::collections::BTreeSet<_> = all.iter().map(|m| (&m.space, &m.entity)).collect();
            let newest = all.iter().map(|m| m.created_at).max();
            if *json {
                output::json(
                    &json!({"total": all.len(), "M": count(Level::M), "K": count(Level::K), "C": count(Level::C),
                    "groups": groups.len(), "newest": newest, "damaged": records.take_damaged()}),
                );
            } else {
                output::result(&format!(
                    "{} memories in {} groups: {} raw (M), {} knowledge (K), {} rules (C){}",
                    all.len(),
                    groups.len(),
                    count(Level::M),
                    count(Level::K),
                    count(Level::C),
                    newest.map(|t| format!("; newest {t}")).unwrap_or_default()
                ));
            }
            Ok(())
        }
        MemoryCommand::Query {
            space,
            entity,
            at,
            json,
        } => {
            let now = instant(at.as_deref(), clock.now())?;
            let warn = Arc::new(|text: &str| output::note(&format!("artoo: memory: {text}")));
            let memory = Memory::start(kv, clock, warn).map_err(|e| broken(&e))?;
            query(&memory, space, entity, now, *json).await
        }
    }
}

async fn query(memory: &Memory, space: &str, entity: &str, now: Timestamp, json: bool) -> Result<(), Failure> {
    let broken = |e: artoo_protocol::ports::MemoryError| Failure::failed(e.to_string());
    let potentials = memory.query_mk(space, entity, now).await.map_err(broken)?;
    let sops = memory.query_c(space, entity).await.map_err(broken)?;
    let knowledge = memory.query_k(space, entity, SHOWN).await.map_err(broken)?;
    let recent = memory.recent(space, entity, SHOWN).await.map_err(broken)?;
    if json {
        let answer = json!({"attention": potentials.attention, "decision": potentials.decision, "action": potentials.action,
            "sops": sops, "knowledge": knowledge, "recent": recent});
        output::json(&answer);
        return Ok(());
    }
    let action = match potentials.action {
        MemoryAction::Ignore => "ignore: too little is known",
        MemoryAction::Exploit => "exploit: should be preferred",
        MemoryAction::Avoid => "avoid: must not be used",
        MemoryAction::Caution => "caution: confirm or sandbox",
    };
    output::result(&format!(
        "attention {:.3}, decision {:+.3} → {action}",
        potentials.attention.get(),
        potentials.decision.get()
    ));
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

fn instant(at: Option<&str>, now: Timestamp) -> Result<Timestamp, Failure> {
    at.map_or(Ok(now), |text| {
        Timestamp::parse(text).map_err(|e| Failure::usage(e.to_string()))
    })
}

/// The answers of a memory that was never written; asking must not create it.
fn empty(command: &MemoryCommand) -> Result<(), Failure> {
    match command {
        MemoryCommand::Stats { json: true } => {
            output::json(&json!({"total": 0, "M": 0, "K": 0, "C": 0, "groups": 0, "newest": null, "damaged": 0}));
        }
        MemoryCommand::Query { at, json: true, .. } => {
            instant(at.as_deref(), Timestamp::default())?;
            output::json(
                &json!({"attention": 0.0, "decision": 0.0, "action": "ignore", "sops": [], "knowledge": [], "recent": []}),
            );
        }
        MemoryCommand::Stats { json: false } | MemoryCommand::Query { json: false, .. } => {
            output::note("memory is empty");
        }
    }
    Ok(())
}

//! The controller's table with the cells that tasks came to, derived from their journals (design §12).
//!
//! Owns the form, and what was derived of which journal. The derivation is that of `artoo ggs explain`.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use artoo_bus::journal::read;
use artoo_ggs::explain::Decided;
use artoo_ggs::{Explained, Params, explain, table};
use artoo_protocol::journal::{Record, settings_of};
use artoo_protocol::{TaskId, Timestamp};
use serde_json::{Value, json};

use super::watch::shown;
use crate::commands::tasks::envelopes;

/// Most journals that are looked at: those that were written last.
const JOURNALS: usize = 200;
/// Longer journals are left out, in bytes.
const LONGEST: u64 = 64 << 20;
/// Most bytes that are read for one answer.
const AT_ONCE: u64 = 256 << 20;
/// Most decisions that are told: the latest.
const TOLD: usize = 100;

/// Length of a file, and when it was written.
type State = (i64, i64, u64);

/// What was derived, as long as the journals stay as they are.
#[derive(Default)]
pub struct Decisions(HashMap<PathBuf, (State, Arc<Vec<Told>>)>);

struct Told {
    at: Timestamp,
    cell: Option<u8>,
    differs: bool,
    value: Value,
}

impl Decisions {
    /// The table, how often each cell was visited, and the latest decisions.
    ///
    /// # Errors
    /// In a sentence, when the folder cannot be read.
    pub fn look(&mut self, data: &Path) -> Result<Value, String> {
        let listed = read::list(&data.join("tasks")).map_err(|e| e.to_string())?;
        let mut found: Vec<_> = listed
            .into_iter()
            .filter_map(|found| {
                std::fs::metadata(&found.path)
                    .ok()
                    .map(|data| (found, (data.mtime(), data.mtime_nsec(), data.len())))
            })
            .collect();
        found.sort_by_key(|(_, state)| std::cmp::Reverse(*state));
        let (mut known, mut budget, mut left_out) = (HashMap::new(), AT_ONCE, 0_u64);
        for (number, (found, state)) in found.into_iter().enumerate() {
            let told = self
                .0
                .remove(&found.path)
                .filter(|(of, _)| *of == state)
                .map(|(_, told)| told);
            let told = match told {
                Some(told) => told,
                None if number < JOURNALS && state.2 <= LONGEST.min(budget) => {
                    budget -= state.2;
                    Arc::new(derive(
                        &found.task_id,
                        &read::salvage_file(&found.path).contents.records,
                    ))
                }
                None => {
                    left_out += 1;
                    continue;
                }
            };
            known.insert(found.path, (state, told));
        }
        self.0 = known;
        let mut visits: BTreeMap<u8, u64> = BTreeMap::new();
        let mut all: Vec<&Told> = self.0.values().flat_map(|(_, told)| told.iter()).collect();
        for cell in all.iter().filter_map(|told| told.cell) {
            *visits.entry(cell).or_default() += 1;
        }
        all.sort_by_key(|told| std::cmp::Reverse(told.at));
        let rows: Vec<Value> = table()
            .iter()
            .map(|row| json!({"row": row, "visits": visits.get(&row.cell).copied().unwrap_or(0)}))
            .collect();
        let latest: Vec<&Value> = all.iter().take(TOLD).map(|told| &told.value).collect();
        Ok(
            json!({"table": rows, "decisions": all.len(), "differing": all.iter().filter(|told| told.differs).count(), "latest": latest,
            "journals": self.0.len(), "left_out": left_out, "defaults": Params::default()}),
        )
    }
}

fn derive(task: &TaskId, records: &[Record]) -> Vec<Told> {
    let settings = settings_of(records);
    // With parameters that are not understood nothing can be derived.
    let Some(params) = settings.map_or(Some(Params::default()), |settings| Params::of_settings(settings).ok()) else {
        return Vec::new();
    };
    explain(&params, envelopes(records))
        .iter()
        .map(|one| told(task, one))
        .collect()
}

fn told(task: &TaskId, one: &Explained) -> Told {
    let measured = one.measured.as_ref();
    let cell = measured
        .and_then(|measured| measured.table.as_ref())
        .map(|asked| asked.cell);
    let (decision, cause) = match one.recorded.map(|recorded| recorded.decision) {
        Some(Decided::Direct(directive)) => (json!(directive), Value::Null),
        Some(Decided::End(ending, cause)) => (json!(ending), json!(cause)),
        None => (Value::Null, Value::Null),
    };
    let differs: Vec<String> = one.differences.iter().map(|text| shown(text)).collect();
    Told {
        at: one.at,
        cell,
        differs: !differs.is_empty(),
        value: json!({"task": task, "number": one.number, "at": one.at, "cell": cell, "loss": measured.map(|measured| measured.loss),
            "grad_l": measured.map(|measured| measured.grad_l), "driver": measured.and_then(|measured| measured.driver.as_deref()).map(shown),
            "decision": decision, "cause": cause, "differs": differs}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_are_those_of_ggs_explain_and_a_journal_is_derived_once() {
        let data = tempfile::tempdir().unwrap();
        let tasks = data.path().join("tasks");
        std::fs::create_dir(&tasks).unwrap();
        let replanned = include_str!("../../../../../fixtures/journals/replanned.jsonl");
        std::fs::write(tasks.join("collect_email_addresses_074f2fe9.jsonl"), replanned).unwrap();
        let mut decisions = Decisions::default();
        let seen = decisions.look(data.path()).unwrap();
        assert_eq!(seen["table"].as_array().unwrap().len(), 24);
        assert_eq!(
            (&seen["table"][13]["row"]["cell"], &seen["table"][13]["visits"]),
            (&json!(14), &json!(1))
        );
        assert_eq!(
            seen["latest"].as_array().unwrap().last().unwrap()["decision"],
            "break_symmetry"
        );
        assert_eq!(seen["differing"], 0);
        let derived = decisions.0.values().next().unwrap().1.clone();
        assert_eq!(decisions.look(data.path()).unwrap(), seen);
        assert!(Arc::ptr_eq(&derived, &decisions.0.values().next().unwrap().1));
    }
}

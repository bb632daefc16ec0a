//! What earlier runs left: memory, journals, the audit log; whether they are whole and whether something waits (design §15–§17).
//!
//! Owns looks that are quick even where much was left; the commands that it names look at everything. Mends nothing.

use std::io::{BufReader, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use artoo_bus::journal::read;
use artoo_bus::journal::summary::{Status, TaskSummary};
use artoo_memory::Records;
use artoo_memory::kv::{Kv, LevelKv, LevelSettings, Notice};
use artoo_memory::memory::STORE_FOLDER;
use artoo_protocol::message::Message;
use artoo_protocol::{TaskId, Timestamp};

use super::Finding;
use crate::commands::tasks::envelopes;
use crate::data_folder::held_since;
use crate::plain_file;

/// How many records of memory are read; opening the store has read its index and its log before.
const PAGE: usize = 256;
/// Bytes of an audit log that are looked at: about two seconds.
const AUDIT_MAX: u64 = 512 << 20;
/// Bytes of a memory that is copied to be looked at.
const MEMORY_MAX: u64 = 512 << 20;
/// How many journals or tasks are named.
const NAMED: usize = 3;

/// Whether memory can be opened. It is looked at in a copy, so another artoo may be at work.
pub(super) fn memory(data: &Path, now: Timestamp) -> Finding {
    let folder = data.join(STORE_FOLDER);
    let lies_in = match LevelKv::place(&folder) {
        Ok(None) => return Finding::fine("memory", "nothing is remembered yet"),
        // A data folder that is none is told as such.
        Err(error) => return unopened(&error),
        Ok(Some(place)) => place,
    };
    match held_in(&lies_in, |_| true) {
        Holding::Bytes(bytes) if bytes > MEMORY_MAX => {
            return Finding::note(
                "memory",
                format!("{} MiB, too much to be copied and looked at here", bytes >> 20),
                "`artoo memory verify` looks at it",
            );
        }
        Holding::Bytes(_) => {}
        Holding::NoFile(name) => {
            return Finding::note(
                "memory",
                format!("it is not looked at: {name} in it is no file"),
                format!("artoo puts none there; move it out of {}", lies_in.display()),
            );
        }
    }
    let kv: Arc<dyn Kv> = match LevelKv::open_snapshot(&folder, &now.to_string(), LevelSettings::default()) {
        Ok(kv) => Arc::new(kv),
        Err(error) => return unopened(&error),
    };
    let records = match Records::open(Arc::clone(&kv)) {
        Ok(records) => records,
        Err(error) => return unopened(&error),
    };
    let page = match records.page(None, PAGE) {
        Ok(page) => page.len(),
        Err(error) => return unopened(&error),
    };
    let mut damage: Vec<String> = kv
        .take_notices()
        .into_iter()
        .map(|Notice::Quarantined { reason, .. }| reason)
        .collect();
    let unreadable = records.take_damaged();
    if unreadable > 0 {
        damage.push(format!("{unreadable} memories have a wrong checksum"));
    }
    if !damage.is_empty() {
        return Finding::note(
            "memory",
            format!("it is damaged: {}", damage.join("; ")),
            "`artoo memory repair` mends what can be mended and keeps the damaged files; `artoo memory verify` says what is wrong",
        );
    }
    let more = if page == PAGE { "at least " } else { "" };
    Finding::fine("memory", format!("it opens, with {more}{page} memories"))
}

fn unopened(error: &dyn std::fmt::Display) -> Finding {
    Finding::note(
        "memory",
        format!("it cannot be opened, so tasks go on without it: {error}"),
        format!("`artoo memory verify` says more; put back a copy of {STORE_FOLDER}, or move it away to begin anew"),
    )
}

/// What the journals of a data folder say.
#[derive(Default)]
pub(super) struct Journals {
    all: usize,
    damaged: Vec<TaskId>,
    interrupted: Vec<TaskId>,
    unreadable: Option<String>,
    /// When the last record of any of them was written.
    pub(super) newest: Option<Timestamp>,
}

impl Journals {
    /// Reads all of them.
    pub(super) fn read(data: &Path) -> Self {
        let mut journals = Self::default();
        let found = match read::list(&data.join("tasks")) {
            Ok(found) => found,
            Err(error) => {
                journals.unreadable = Some(error.to_string());
                return journals;
            }
        };
        let held = held_since(data);
        for journal in found {
            let file = match plain_file::open(&journal.path) {
                Ok(file) => file,
                // No journal has that kind: a pipe that somebody put there would be read for ever.
                Err(error) if error.kind() == ErrorKind::InvalidInput => continue,
                Err(_) => {
                    journals.all += 1;
                    journals.damaged.push(journal.task_id);
                    continue;
                }
            };
            journals.all += 1;
            let salvaged = read::salvage(BufReader::new(file));
            let records = &salvaged.contents.records;
            let last = records.last().map(|record| record.at);
            journals.newest = journals.newest.max(last);
            if salvaged.damage.is_some() || records.is_empty() {
                journals.damaged.push(journal.task_id);
                continue;
            }
            // What a living process began or took up, it still works on.
            let is_running = held.is_some_and(|since| last >= Some(since));
            let stopped = TaskSummary::of(records).is_some_and(|task| task.status == Status::Interrupted);
            let has_task = envelopes(records).any(|said| matches!(said.payload, Message::UserInput(_)));
            if stopped && has_task && !is_running {
                journals.interrupted.push(journal.task_id);
            }
        }
        journals
    }

    /// What is to be said of them.
    pub(super) fn findings(&self) -> Vec<Finding> {
        if let Some(error) = &self.unreadable {
            return vec![Finding::bad(
                "journals",
                error.clone(),
                "make the folder readable, or use another data folder with --data-dir",
            )];
        }
        let mut findings = Vec::new();
        if let Some(first) = self.damaged.first() {
            findings.push(Finding::note(
                "journals",
                format!(
                    "{} of {} are damaged: {}",
                    self.damaged.len(),
                    self.all,
                    names(&self.damaged)
                ),
                format!("`artoo tasks list` says where; put back a copy, or drop one with `artoo tasks rm {first}`"),
            ));
        } else {
            findings.push(Finding::fine("journals", format!("{}, all of them whole", self.all)));
        }
        if let Some(first) = self.interrupted.first() {
            findings.push(Finding::note(
                "tasks",
                format!("{} did not end: {}", self.interrupted.len(), names(&self.interrupted)),
                format!("`artoo resume {first}` goes on with one, `artoo tasks rm {first}` drops it"),
            ));
        }
        findings
    }
}

/// A few of them by name.
fn names(tasks: &[TaskId]) -> String {
    let shown: Vec<&str> = tasks.iter().take(NAMED).map(TaskId::as_str).collect();
    match tasks.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Whether the audit log is what was written.
pub(super) fn audit_log(data: &Path) -> Finding {
    let what = "audit log";
    let of_the_log =
        |name: &str| name.starts_with("audit") && Path::new(name).extension().is_some_and(|end| end == "jsonl");
    let bytes = match held_in(data, of_the_log) {
        Holding::Bytes(bytes) => bytes,
        Holding::NoFile(name) => {
            return Finding::note(
                what,
                format!("it is not looked at: {name} is no file"),
                format!("artoo makes none such; move it out of {}", data.display()),
            );
        }
    };
    if bytes == 0 {
        return Finding::fine(what, "nothing is recorded yet");
    }
    if bytes > AUDIT_MAX {
        let detail = format!(
            "{} MiB, not looked through here: `artoo audit verify` does",
            bytes >> 20
        );
        return Finding::fine(what, detail);
    }
    match artoo_auditor::verify(data, &[]) {
        Ok(found) => Finding::fine(what, format!("whole, {} records", found.records)),
        Err(error) => Finding::note(
            what,
            error.to_string(),
            "somebody or something changed it: `artoo audit verify` names the record. New records are appended all the same; to \
             begin a new log, move audit*.jsonl and audit.head away",
        ),
    }
}

/// What lies in a folder.
enum Holding {
    /// Files of so many bytes together.
    Bytes(u64),
    /// Something of this name that is no file and must not be opened: a pipe would be waited for.
    NoFile(String),
}

/// What a folder holds under the names that count; folders are passed over.
fn held_in(folder: &Path, counts: impl Fn(&str) -> bool) -> Holding {
    let mut bytes = 0_u64;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !counts(&name) {
            continue;
        }
        match std::fs::metadata(entry.path()) {
            Ok(about) if about.is_file() => bytes = bytes.saturating_add(about.len()),
            Ok(about) if !about.is_dir() => return Holding::NoFile(name),
            // Gone meanwhile, or a link to nowhere.
            Ok(_) | Err(_) => {}
        }
    }
    Holding::Bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn what_waits_is_named_and_no_more_than_a_few() {
        let ids: Vec<TaskId> = (0..5).map(|n| TaskId::new(format!("t_{n}"))).collect();
        let journals = Journals {
            all: 9,
            interrupted: ids.clone(),
            damaged: ids[..1].to_vec(),
            ..Journals::default()
        };
        let findings = journals.findings();
        assert_eq!(findings.len(), 2);
        assert!(findings.iter().all(|finding| finding.state == State::Note));
        assert!(findings[0].detail.contains("1 of 9") && findings[0].line().contains("tasks rm t_0"));
        assert!(findings[1].detail.contains("t_0, t_1, t_2 and 2 more"), "{findings:?}");
        assert!(findings[1].line().contains("artoo resume t_0"));
        let all_well = Journals::default().findings();
        assert!(all_well.len() == 1 && all_well[0].state == State::Fine);
    }

    #[test]
    fn what_is_no_file_is_never_opened() {
        let data = tempfile::tempdir().unwrap();
        let now = Timestamp::from_millis(0);
        for folder in ["tasks", STORE_FOLDER] {
            std::fs::create_dir(data.path().join(folder)).unwrap();
        }
        let task = format!("tasks/{}.jsonl", TaskId::new("t_1"));
        for name in [task.as_str(), "memory.leveldb/000001.log", "audit.jsonl"] {
            let path = data.path().join(name);
            let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }
        let said = memory(data.path(), now);
        assert!(
            said.state == State::Note && said.detail.contains("000001.log"),
            "{said:?}"
        );
        let said = audit_log(data.path());
        assert!(
            said.state == State::Note && said.detail.contains("audit.jsonl"),
            "{said:?}"
        );
        assert!(Journals::read(data.path()).findings()[0].detail.starts_with("0,"));
    }

    #[test]
    fn a_memory_too_big_to_copy_is_left_to_its_own_command() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join(STORE_FOLDER);
        std::fs::create_dir(&folder).unwrap();
        let big = std::fs::File::create(folder.join("000001.ldb")).unwrap();
        // A hole: nothing is written to the disk.
        big.set_len(MEMORY_MAX + 1).unwrap();
        let said = memory(data.path(), Timestamp::from_millis(0));
        assert!(
            said.state == State::Note && said.detail.contains("too much to be copied"),
            "{said:?}"
        );
    }
}

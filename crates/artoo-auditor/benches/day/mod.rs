//! What a long day looks like to the auditor: one recorded task of two subtasks (14 messages, 24 deeds, 690 bytes a record), again
//! and again under other names. Owns the naming; must not measure anything.
#![allow(dead_code, reason = "two benches share it")]

use std::sync::Arc;

use artoo_auditor::Observed;
use artoo_protocol::{Deed, Envelope, Timestamp};

const TASK: &str = include_str!("task.jsonl");
/// Records of one task.
pub const RECORDS: u64 = 38;
/// Messages among them.
pub const MESSAGES: u64 = 14;

/// Makes tasks, one after the other.
pub struct Day {
    next: u64,
}

impl Day {
    pub fn new() -> Self {
        Self { next: 0 }
    }

    /// The records of the next task.
    pub fn task(&mut self) -> Vec<Observed> {
        let n = self.next;
        self.next += 1;
        let text = TASK
            .replace("3d45eb7c", &format!("{n:08x}"))
            .replace("01a200b2-8124", &format!("{n:08x}-8124"));
        let mut seq = n * MESSAGES;
        let one = |line: &str| {
            let body = |name: &str| line.strip_prefix(name).and_then(|rest| rest.strip_suffix('}'));
            if let Some(deed) = body("{\"deed\":") {
                return Observed::Deed(Arc::new(serde_json::from_str::<Deed>(deed).unwrap()));
            }
            seq += 1;
            let envelope: Envelope = serde_json::from_str(body("{\"envelope\":").unwrap()).unwrap();
            Observed::Envelope(Arc::new(Envelope { seq, ..envelope }))
        };
        text.lines().map(one).collect()
    }
}

/// The instant of the n-th record of a day on which 100 come in a second.
pub fn at(n: u64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + i64::try_from(n).unwrap() * 10)
}

/// Most memory that this process ever had in use, in bytes; 0 where the system does not say.
pub fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

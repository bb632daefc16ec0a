//! Counting a whole log: a fresh auditor to which every record is shown (design §16).
//!
//! Owns the division of labour: lines are read and taken apart by as many threads as there are cores, and shown in their order by one. Must
//! hold a few batches at most, however long the log is.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::files::LogError;
use crate::lines::Lines;
use crate::observer::{Auditor, REPORT_PERIOD};
use crate::parse::Parsed;
use crate::vocabulary::Past;

/// Bytes of lines in one batch.
const BATCH: usize = 256 << 10;
/// Most threads.
const THREADS: usize = 8;

/// The counts up to the end of the log.
#[derive(Debug)]
pub(crate) struct Counted {
    pub past: Past,
    /// Records that this version cannot read.
    pub unread: u64,
    /// Records that were looked at now; the others are known from the kept counts.
    pub looked_at: u64,
    /// Whether it is all up to the end of the log; else it must not be kept as such.
    pub whole: bool,
}

/// A fresh auditor to which a log is shown.
pub(crate) struct Counting {
    auditor: Option<Auditor>,
    past: Past,
    unread: u64,
    looked_at: u64,
}

impl Counting {
    pub const fn new(past: Past) -> Self {
        Self {
            auditor: None,
            past,
            unread: 0,
            looked_at: 0,
        }
    }

    pub fn take(&mut self, line: Parsed) {
        self.looked_at += 1;
        let (Parsed::Envelope(at, _) | Parsed::Deed(at, _) | Parsed::Gap(at, _)) = &line else {
            self.unread += u64::from(matches!(line, Parsed::Unread));
            return;
        };
        let (at, past) = (*at, &mut self.past);
        let auditor = self
            .auditor
            .get_or_insert_with(|| Auditor::new(at, REPORT_PERIOD, std::mem::take(past)));
        let mut found = Vec::new();
        match line {
            // That a report was asked for then closes no window now.
            Parsed::Envelope(_, envelope) => drop(auditor.look(at, &envelope, &mut found)),
            Parsed::Deed(_, deed) => auditor.look_at_deed(at, &deed, &mut found),
            Parsed::Gap(_, gap) => auditor.missed(at, gap),
            Parsed::Nothing | Parsed::Unread => {}
        }
    }

    pub fn end(self) -> Counted {
        Counted {
            past: self.auditor.map_or(self.past, Auditor::into_past),
            unread: self.unread,
            looked_at: self.looked_at,
            whole: true,
        }
    }
}

/// Lines with their line breaks, and where what they say is wanted.
type Batch = (Vec<u8>, SyncSender<Vec<Parsed>>);

/// Counts all; `None` when there are more than `most`.
pub(crate) fn count_all(lines: &mut Lines, most: u64) -> Result<Option<Counted>, LogError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let (sender, receiver) = sync_channel::<Batch>(threads);
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| take_apart(&receiver));
        }
        let mut counting = Counting::new(Past::default());
        let mut waiting: VecDeque<Receiver<Vec<Parsed>>> = VecDeque::new();
        // The sender goes with this closure, and the threads end with it.
        let sender = sender;
        loop {
            let batch = next_batch(lines)?;
            let last = batch.is_empty();
            if !last {
                let (answer, parsed) = sync_channel(1);
                // The threads live as long as this.
                let _ = sender.send((batch, answer));
                waiting.push_back(parsed);
            }
            while waiting.len() > threads || last && !waiting.is_empty() {
                let parsed = waiting.pop_front().and_then(|parsed| parsed.recv().ok());
                parsed.into_iter().flatten().for_each(|line| counting.take(line));
            }
            if counting.looked_at > most {
                return Ok(None);
            }
            if last {
                return Ok(Some(counting.end()));
            }
        }
    })
}

fn next_batch(lines: &mut Lines) -> Result<Vec<u8>, LogError> {
    let mut batch = Vec::with_capacity(BATCH + (16 << 10));
    while batch.len() < BATCH
        && let Some(line) = lines.next()?.filter(|line| line.finished || !line.last_file)
    {
        batch.extend_from_slice(line.bytes);
        batch.push(b'\n');
    }
    Ok(batch)
}

fn take_apart(batches: &Mutex<Receiver<Batch>>) {
    loop {
        let next = batches
            .lock()
            .map_or_else(|poisoned| poisoned.into_inner().recv(), |receiver| receiver.recv());
        let Ok((batch, answer)) = next else { return };
        let lines = batch.split_inclusive(|&byte| byte == b'\n');
        let parsed = lines.map(|line| Parsed::of(line.strip_suffix(b"\n").unwrap_or(line)));
        // Nobody waits for it any more where the reading failed.
        let _ = answer.send(parsed.collect());
    }
}

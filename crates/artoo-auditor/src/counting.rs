//! Counting a log: an auditor to which every record is shown (design §16).
//!
//! Owns the division of labour: lines are read and taken apart by as many threads as there are cores, and shown in their order by one. Must
//! hold a few batches at most, however long the log is. Where it goes on from counts that somebody else made, every record must follow the
//! one before.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::chain::{Frame, Hash, Link};
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

impl Counted {
    /// Nothing but what somebody has kept, of which nobody knows whether it is all.
    pub const fn unknown(past: Past) -> Self {
        Self {
            past,
            unread: 0,
            looked_at: 0,
            whole: false,
        }
    }
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

/// Where counting begins.
pub(crate) enum Start {
    /// At the first record, whatever follows what.
    Beginning,
    /// Behind a record up to which this was counted; the head says what some record is.
    Link(Link, Box<Past>, Option<Link>),
}

/// What came of it.
pub(crate) enum Outcome {
    Counted(Box<Counted>),
    /// There are more records than were to be looked at.
    TooMany,
    /// A record does not follow the one before.
    Broken,
}

/// What a line says, and where it stands in the chain if its hash fits.
type Taken = (Parsed, Option<(Hash, Link)>);
/// Lines with their line breaks, and where what they say is wanted.
type Batch = (Vec<u8>, SyncSender<Vec<Taken>>);

/// Counts to the end, `most` records at most.
pub(crate) fn count_from(lines: &mut Lines, from: Start, most: u64) -> Result<Outcome, LogError> {
    let (past, mut link, head) = match from {
        Start::Beginning => (Past::default(), None, None),
        Start::Link(link, past, head) => (*past, Some(link), head),
    };
    let denied = |link: Link| head.is_some_and(|head| head.n == link.n && head.hash != link.hash);
    if link.is_some_and(denied) {
        return Ok(Outcome::Broken);
    }
    let mut counting = Counting::new(past);
    let checked = link.is_some();
    let mut show = |taken: Vec<Taken>| {
        for (parsed, place) in taken {
            if let Some(before) = link {
                match place {
                    Some((prev, own)) if prev == before.hash && own.n == before.n + 1 && !denied(own) => {
                        link = Some(own);
                    }
                    Some(_) | None => return false,
                }
            }
            counting.take(parsed);
        }
        true
    };
    let first = next_batch(lines)?;
    // Most often little or nothing is to be read: no thread is worth its start then.
    let fine = if first.len() < BATCH {
        show(take_apart(&first, checked))
    } else {
        match in_parallel(lines, first, checked, most, show)? {
            Some(fine) => fine,
            None => return Ok(Outcome::TooMany),
        }
    };
    let cut = |link: Link| head.is_some_and(|head| head.n > link.n);
    if !fine || link.is_some_and(cut) {
        return Ok(Outcome::Broken);
    }
    if counting.looked_at > most {
        return Ok(Outcome::TooMany);
    }
    Ok(Outcome::Counted(Box::new(counting.end())))
}

/// Shows everything; whether it was taken, and nothing where there are more than `most`.
fn in_parallel(
    lines: &mut Lines,
    first: Vec<u8>,
    checked: bool,
    most: u64,
    mut show: impl FnMut(Vec<Taken>) -> bool,
) -> Result<Option<bool>, LogError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let (sender, receiver) = sync_channel::<Batch>(threads);
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(&receiver, checked));
        }
        let mut waiting: VecDeque<Receiver<Vec<Taken>>> = VecDeque::new();
        // The sender goes with this closure, and the threads end with it.
        let sender = sender;
        let (mut batch, mut seen) = (first, 0_u64);
        loop {
            let last = batch.is_empty();
            if !last {
                let (answer, taken) = sync_channel(1);
                // The threads live as long as this.
                let _ = sender.send((batch, answer));
                waiting.push_back(taken);
            }
            while waiting.len() > threads || last && !waiting.is_empty() {
                let taken = waiting
                    .pop_front()
                    .and_then(|taken| taken.recv().ok())
                    .unwrap_or_default();
                seen = seen.saturating_add(u64::try_from(taken.len()).unwrap_or(u64::MAX));
                if !show(taken) {
                    return Ok(Some(false));
                }
            }
            if seen > most {
                return Ok(None);
            }
            if last {
                return Ok(Some(true));
            }
            batch = next_batch(lines)?;
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

fn work(batches: &Mutex<Receiver<Batch>>, checked: bool) {
    loop {
        let next = batches
            .lock()
            .map_or_else(|poisoned| poisoned.into_inner().recv(), |receiver| receiver.recv());
        let Ok((batch, answer)) = next else { return };
        // Nobody waits for it any more where the reading failed.
        let _ = answer.send(take_apart(&batch, checked));
    }
}

fn take_apart(batch: &[u8], checked: bool) -> Vec<Taken> {
    let lines = batch.split_inclusive(|&byte| byte == b'\n');
    let place = |line: &[u8]| Frame::sound(line).map(|frame| (frame.prev, frame.link()));
    lines
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
        .map(|line| (Parsed::of(line), checked.then(|| place(line)).flatten()))
        .collect()
}

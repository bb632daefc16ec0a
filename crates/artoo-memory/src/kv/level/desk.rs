//! What the store's thread does with the calls that wait for it: in groups, short reads before and between long ones (design §15).
//!
//! A pass of the Dreamer reads thousands of entries in a call; a plan that asks for one group's sums meanwhile waits for one range of
//! these, not for the call.
//!
//! Owns: the order. Must not know: files, callers.

use super::store::Store;
use super::{Command, Reply};
use crate::kv::{BATCH_MAX, Batch, KvError};
use std::sync::mpsc::Receiver;

/// How many queued calls are carried out as one group.
const GROUP: usize = 256;
/// A read of so many keys, or so many pairs, is short.
const SHORT: usize = 16;

impl Command {
    /// Whether it is a read that is done before anybody notices.
    fn is_short(&self) -> bool {
        match self {
            Self::Get { keys, .. } => keys.len() <= SHORT,
            Self::Scan { limit, .. } => *limit <= SHORT,
            Self::ScanMany { ranges, .. } => {
                let pairs = ranges.iter().map(|range| range.limit);
                pairs.fold(0_usize, usize::saturating_add) <= SHORT
            }
            Self::TakeNotices { .. } => true,
            Self::Apply { .. } | Self::Flush { .. } | Self::Close { .. } => false,
        }
    }
}

/// Carries out commands in groups until told to close, or until every handle is gone.
pub(super) fn serve(store: Store, inbox: &Receiver<Command>) {
    let mut desk = Desk {
        store,
        inbox,
        batch_max: BATCH_MAX,
        later: Vec::new(),
    };
    while let Some(group) = desk.group() {
        if let Some(closed) = desk.carry_out(group) {
            drop(desk.store);
            let _ = closed.0.send(closed.1);
            return;
        }
    }
    let _ = desk.store.flush();
}

/// The answer to whoever asked to close, sent once the database is gone.
struct Closed(Reply<()>, Result<(), KvError>);

struct Desk<'a> {
    store: Store,
    inbox: &'a Receiver<Command>,
    /// Bytes of batches that are written at once.
    batch_max: usize,
    /// What came while something long was read, and is not short: as many as there are callers at most, since each waits for its answer.
    later: Vec<Command>,
}

impl Desk<'_> {
    /// What is to be done next; `None` when every handle is gone.
    fn group(&mut self) -> Option<Vec<Command>> {
        let mut group = std::mem::take(&mut self.later);
        if group.is_empty() {
            group.push(self.inbox.recv().ok()?);
        }
        let room = GROUP.saturating_sub(group.len());
        group.extend(self.inbox.try_iter().take(room));
        Some(group)
    }

    /// Each caller waits for its answer, so the commands of a group come from different callers and none of them can
    /// tell in which order they are carried out: all batches first, as one write; then what reads; one sync at the end.
    fn carry_out(&mut self, group: Vec<Command>) -> Option<Closed> {
        let (mut writes, mut reads, mut flushers, mut closers) = (vec![], vec![], vec![], vec![]);
        for command in group {
            match command {
                Command::Apply { batch, reply } => writes.push((batch, reply)),
                Command::Flush { reply } => flushers.push(reply),
                Command::Close { reply } => closers.push(reply),
                read @ (Command::Get { .. }
                | Command::Scan { .. }
                | Command::ScanMany { .. }
                | Command::TakeNotices { .. }) => reads.push(read),
            }
        }
        self.write(writes);
        reads.sort_by_key(|read| !read.is_short());
        for read in reads {
            self.answer(read);
        }
        if !flushers.is_empty() {
            let flushed = self.store.flush();
            for flusher in flushers {
                let _ = flusher.send(flushed.clone());
            }
        }
        closers.pop().map(|closer| Closed(closer, self.store.flush()))
    }

    /// Applies batches as one write, or as few as are not too large.
    fn write(&mut self, asked: Vec<(Batch, Reply<()>)>) {
        let (mut batches, mut writers, mut weight) = (Vec::new(), Vec::new(), 0);
        for (batch, writer) in asked {
            let more = batch.weight();
            if weight + more > self.batch_max {
                self.apply(std::mem::take(&mut batches), std::mem::take(&mut writers));
                weight = 0;
            }
            weight += more;
            batches.push(batch);
            writers.push(writer);
        }
        self.apply(batches, writers);
    }

    fn apply(&mut self, batches: Vec<Batch>, writers: Vec<Reply<()>>) {
        if batches.is_empty() {
            return;
        }
        let applied = self.store.apply(batches);
        for writer in writers {
            let _ = writer.send(applied.clone());
        }
    }

    /// Answers a read; a long one in parts, with the short ones that come meanwhile between them.
    fn answer(&mut self, read: Command) {
        match read {
            Command::Get { keys, reply } => {
                let found = self.in_parts(&keys, |store, keys, is_wanted| store.get_some(keys, is_wanted));
                let _ = reply.send(found);
            }
            Command::Scan {
                prefix,
                after,
                limit,
                reply,
            } => {
                let _ = reply.send(self.store.scan(&prefix, after.as_deref(), limit));
            }
            Command::ScanMany { ranges, reply } => {
                let found = self.in_parts(&ranges, |store, ranges, is_wanted| store.scan_some(ranges, is_wanted));
                let _ = reply.send(found);
            }
            Command::TakeNotices { reply } => {
                let _ = reply.send(Ok(self.store.take_notices()));
            }
            Command::Apply { .. } | Command::Flush { .. } | Command::Close { .. } => {}
        }
    }

    /// Reads all that is asked for. Nothing is written in between, so it is all of one moment.
    fn in_parts<T, R>(
        &mut self,
        asked: &[T],
        mut read: impl FnMut(&mut Store, &[T], &mut dyn FnMut() -> bool) -> Result<Vec<R>, KvError>,
    ) -> Result<Vec<R>, KvError> {
        let mut found = Vec::with_capacity(asked.len());
        while let Some(left) = asked.get(found.len()..).filter(|left| !left.is_empty()) {
            let mut came = None;
            let mut is_wanted = || {
                came = came.take().or_else(|| self.inbox.try_recv().ok());
                came.is_some()
            };
            let part = read(&mut self.store, left, &mut is_wanted);
            // A few at a time, so that this goes on whatever comes.
            let more: Vec<Command> = came.into_iter().chain(self.inbox.try_iter().take(SHORT)).collect();
            for command in more {
                if command.is_short() {
                    self.answer_short(command);
                } else {
                    self.later.push(command);
                }
            }
            found.extend(part?);
        }
        Ok(found)
    }

    /// Answers a short read, whoever waits.
    fn answer_short(&mut self, read: Command) {
        match read {
            Command::Get { keys, reply } => {
                let _ = reply.send(self.store.get_some(&keys, &mut || false));
            }
            Command::ScanMany { ranges, reply } => {
                let _ = reply.send(self.store.scan_some(&ranges, &mut || false));
            }
            other @ (Command::Scan { .. } | Command::TakeNotices { .. }) => self.answer(other),
            Command::Apply { .. } | Command::Flush { .. } | Command::Close { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::Range;
    use crate::kv::level::LevelSettings;
    use crate::kv::level::env::RealDisk;
    use crate::kv::level::log_scan::scan_log;
    use crate::kv::level::salvage::{FileKind, store_files};
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    fn put(key: &str, value: Vec<u8>) -> Batch {
        let mut batch = Batch::new();
        batch.put(key, value);
        batch
    }

    fn desk<'a>(folder: &Path, inbox: &'a Receiver<Command>) -> Desk<'a> {
        Desk {
            store: store(folder),
            inbox,
            batch_max: BATCH_MAX,
            later: Vec::new(),
        }
    }

    fn store(folder: &Path) -> Store {
        let store = Store::open(folder, "now", LevelSettings::default(), Arc::new(RealDisk));
        let mut store = store.unwrap();
        let keys = (0..100).map(|number| put(&format!("k|{number:03}"), b"v".to_vec()));
        store.apply(keys.collect()).unwrap();
        store
    }

    /// A query waits for a part of what a pass reads, not for all of it; and what changes the store comes after the whole.
    #[test]
    fn a_short_read_is_answered_within_a_long_one_and_a_write_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let (commands, inbox) = sync_channel(9);
        let mut desk = desk(&folder.path().join("memory.leveldb"), &inbox);
        let ((get, got), (write, written)) = (sync_channel(1), sync_channel(1));
        let keys = vec![b"k|050".to_vec()];
        commands.send(Command::Get { keys, reply: get }).unwrap();
        let batch = put("k|0995", b"new".to_vec());
        commands.send(Command::Apply { batch, reply: write }).unwrap();
        let (long, read) = sync_channel(1);
        let ranges = vec![Range::new("k|", 60), Range::new("k|09", 60)];
        let long = Command::ScanMany { ranges, reply: long };
        assert!(!long.is_short());
        desk.answer(long);
        assert_eq!(got.try_recv().unwrap().unwrap(), [Some(b"v".to_vec())]);
        let lengths: Vec<usize> = read.try_recv().unwrap().unwrap().iter().map(Vec::len).collect();
        assert_eq!(lengths, [60, 10], "all of it, as it was when it began");
        assert!(written.try_recv().is_err(), "nothing is written meanwhile");
        let group = desk.group().unwrap();
        assert!(desk.carry_out(group).is_none());
        written.try_recv().unwrap().unwrap();
        assert_eq!(desk.store.scan(b"k|099", None, 9).unwrap().len(), 2);
    }

    #[test]
    fn who_comes_during_a_long_read_is_answered_before_its_next_part() {
        let folder = tempfile::tempdir().unwrap();
        let (commands, inbox) = sync_channel(9);
        let mut desk = desk(&folder.path().join("memory.leveldb"), &inbox);
        let (get, got) = sync_channel(1);
        let keys = vec![b"k|050".to_vec()];
        commands.send(Command::Get { keys, reply: get }).unwrap();
        let (mut parts, mut answered_at) = (Vec::new(), None);
        let read = |_: &mut Store, left: &[u8], is_wanted: &mut dyn FnMut() -> bool| {
            if answered_at.is_none() && got.try_recv().is_ok() {
                answered_at = Some(parts.len());
            }
            let part = if is_wanted() { &left[..1] } else { left };
            parts.push(part.len());
            Ok(part.to_vec())
        };
        assert_eq!(desk.in_parts(&[1, 2, 3], read).unwrap(), [1, 2, 3]);
        assert_eq!((parts, answered_at), (vec![1, 2], Some(1)));
    }

    #[test]
    fn a_long_list_of_keys_is_answered_in_order_whoever_comes_between() {
        let folder = tempfile::tempdir().unwrap();
        let (commands, inbox) = sync_channel(99);
        let mut desk = desk(&folder.path().join("memory.leveldb"), &inbox);
        let (reply, answers) = sync_channel(99);
        for number in 0..40 {
            let (keys, reply) = (vec![format!("k|{number:03}").into_bytes()], reply.clone());
            commands.send(Command::Get { keys, reply }).unwrap();
        }
        let (long, found) = sync_channel(1);
        let keys: Vec<Vec<u8>> = (0..120).map(|number| format!("k|{number:03}").into_bytes()).collect();
        desk.answer(Command::Get { keys, reply: long });
        let found = found.try_recv().unwrap().unwrap();
        assert_eq!(found.len(), 120);
        assert!(
            found
                .iter()
                .enumerate()
                .all(|(number, value)| value.is_some() == (number < 100))
        );
        assert_eq!(
            answers
                .try_iter()
                .filter(|answer| answer.as_ref().unwrap()[0].is_some())
                .count(),
            40
        );
    }

    /// Batches of many callers come as one write; but no write may be larger than what is read back.
    #[test]
    fn batches_that_are_too_large_together_are_written_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.leveldb");
        let (_commands, inbox) = sync_channel(1);
        let mut desk = desk(&path, &inbox);
        desk.batch_max = 100_000;
        let (reply, answers) = sync_channel(9);
        let large = |number: u8| put(&format!("large|{number}"), vec![number; 40_000]);
        let group = (0..5).map(|number| Command::Apply {
            batch: large(number),
            reply: reply.clone(),
        });
        assert!(desk.carry_out(group.collect()).is_none());
        assert_eq!(answers.try_iter().flatten().count(), 5);
        desk.store.flush().unwrap();
        let mut lengths = Vec::new();
        for (kind, path) in store_files(&path).unwrap() {
            if kind == FileKind::Log {
                let log = std::fs::File::open(path).unwrap();
                scan_log(log, &mut |record| lengths.push(record.len() / 40_000)).unwrap();
            }
        }
        assert_eq!(lengths, [0, 2, 2, 1], "the hundred small ones were there before");
    }
}

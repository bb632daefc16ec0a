//! The key-value port on LevelDB: one thread that owns the database, and a handle that anybody may hold.
//!
//! The library is a plain single-threaded value full of `Rc`s, so it never leaves the thread that opened it. Calls
//! travel through a bounded channel; what has queued up is carried out as one group with one write and one sync.
//!
//! Owns: the thread, its channel. Must not know: in what order calls are carried out, Megrams, key schema, the clock.

mod desk;
mod env;
mod holder;
mod log_scan;
mod salvage;
mod snapshot;
mod store;
mod synced;
mod table_scan;
#[cfg(test)]
mod tests;

use super::{Batch, Kv, KvError, Notice, Pair, Range};
use desk::serve;
use env::{Disk, RealDisk};
use holder::Holder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use store::Store;
use tempfile::TempDir;

/// How many calls wait in the channel before callers wait to get in.
const QUEUE: usize = 1024;

/// Sizes of the store, in bytes. All memory is taken as it is needed, never in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelSettings {
    /// How much is collected in memory before it becomes a table.
    pub write_buffer_bytes: usize,
    /// Largest table file.
    pub table_bytes: usize,
    /// Blocks kept in memory for reading.
    pub cache_bytes: usize,
}

impl LevelSettings {
    /// For a program that serves many tasks at once over millions of records: up to about 80 MB.
    pub const LARGE: Self = Self {
        write_buffer_bytes: 8 << 20,
        table_bytes: 8 << 20,
        cache_bytes: 24 << 20,
    };
}

impl Default for LevelSettings {
    /// For a command-line program that must stay small: a few megabytes at most.
    fn default() -> Self {
        Self {
            write_buffer_bytes: 1 << 20,
            table_bytes: 2 << 20,
            cache_bytes: 4 << 20,
        }
    }
}

/// A LevelDB store. Dropping it closes it.
#[derive(Debug)]
pub struct LevelKv {
    /// `None` once closed.
    thread: Mutex<Option<Thread>>,
    access: Access,
}

#[derive(Debug)]
struct Thread {
    commands: SyncSender<Command>,
    joined: JoinHandle<()>,
}

#[derive(Debug)]
enum Access {
    ReadWrite,
    /// A private copy, removed with the handle.
    Snapshot(#[expect(dead_code, reason = "lives as long as the store in it")] TempDir),
}

impl LevelKv {
    /// Opens the store in `folder`, or makes it. `now` is written down as the time since which it is held, and
    /// names the folder that a damaged store is moved to; any text will do, RFC 3339 is meant.
    ///
    /// A damaged store is repaired: see [`Notice::Quarantined`]. One that is open elsewhere gives
    /// [`KvError::Locked`].
    pub fn open(folder: &Path, now: &str, settings: LevelSettings) -> Result<Self, KvError> {
        Self::open_on(folder, now, settings, Arc::new(RealDisk))
    }

    /// A look at the store in `folder` as it is now, whoever has it open. It is a private copy, of what the other
    /// process had flushed; later changes are not seen, and changes are refused with [`KvError::ReadOnly`].
    pub fn open_snapshot(folder: &Path, now: &str, settings: LevelSettings) -> Result<Self, KvError> {
        let copy = snapshot::copy(folder)?;
        let mut opened = Self::open(&copy.path().join("store"), now, settings)?;
        opened.access = Access::Snapshot(copy);
        Ok(opened)
    }

    /// Where the store of a folder lies that [`LevelKv::open`] would open and [`LevelKv::open_snapshot`] look at: the folder, or the store
    /// that a repair was about to move there when it was cut off. `None` where there is none.
    ///
    /// # Errors
    /// When the operating system does not let anybody look.
    pub fn place(folder: &Path) -> io::Result<Option<PathBuf>> {
        salvage::place(folder)
    }

    fn open_on(folder: &Path, now: &str, settings: LevelSettings, disk: Arc<dyn Disk>) -> Result<Self, KvError> {
        let holder = Holder::take(folder, now)?;
        let (commands, inbox) = sync_channel(QUEUE);
        let (opened, is_open) = sync_channel(1);
        let (folder, now) = (folder.to_owned(), now.to_owned());
        let joined = thread::Builder::new()
            .name("artoo-store".to_owned())
            .spawn(move || {
                // The lock is given up only when the thread ends: after the database.
                let _holder = holder;
                match Store::open(&folder, &now, settings, disk) {
                    Ok(store) => {
                        let _ = opened.send(Ok(()));
                        serve(store, &inbox);
                    }
                    Err(error) => {
                        let _ = opened.send(Err(error));
                    }
                }
            })
            .map_err(|error| KvError::Io(format!("cannot start a thread: {error}")))?;
        is_open
            .recv()
            .unwrap_or_else(|_| Err(KvError::Failed("the store's thread ended".to_owned())))?;
        Ok(Self {
            thread: Mutex::new(Some(Thread { commands, joined })),
            access: Access::ReadWrite,
        })
    }

    fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, KvError> {
        let commands = {
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            thread.as_ref().ok_or(KvError::Closed)?.commands.clone()
        };
        let (reply, answer) = sync_channel(1);
        commands.send(command(reply)).map_err(|_| KvError::Closed)?;
        answer.recv().unwrap_or(Err(KvError::Closed))
    }
}

impl Kv for LevelKv {
    fn get_many(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, KvError> {
        self.ask(|reply| Command::Get {
            keys: keys.to_vec(),
            reply,
        })
    }

    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, KvError> {
        self.ask(|reply| Command::Scan {
            prefix: prefix.to_vec(),
            after: after.map(<[u8]>::to_vec),
            limit,
            reply,
        })
    }

    fn scan_many(&self, ranges: &[Range]) -> Result<Vec<Vec<Pair>>, KvError> {
        self.ask(|reply| Command::ScanMany {
            ranges: ranges.to_vec(),
            reply,
        })
    }

    fn apply(&self, batch: Batch) -> Result<(), KvError> {
        batch.check()?;
        match self.access {
            Access::ReadWrite => self.ask(|reply| Command::Apply { batch, reply }),
            Access::Snapshot(_) => Err(KvError::ReadOnly),
        }
    }

    fn flush(&self) -> Result<(), KvError> {
        self.ask(|reply| Command::Flush { reply })
    }

    fn close(&self) -> Result<(), KvError> {
        let flushed = self.ask(|reply| Command::Close { reply });
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Thread { commands, joined }) = thread {
            drop(commands);
            joined
                .join()
                .map_err(|_| KvError::Failed("the store's thread panicked".to_owned()))?;
        }
        flushed
    }

    fn take_notices(&self) -> Vec<Notice> {
        self.ask(|reply| Command::TakeNotices { reply }).unwrap_or_default()
    }
}

impl Drop for LevelKv {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

type Reply<T> = SyncSender<Result<T, KvError>>;

enum Command {
    Get {
        keys: Vec<Vec<u8>>,
        reply: Reply<Vec<Option<Vec<u8>>>>,
    },
    Scan {
        prefix: Vec<u8>,
        after: Option<Vec<u8>>,
        limit: usize,
        reply: Reply<Vec<Pair>>,
    },
    ScanMany {
        ranges: Vec<Range>,
        reply: Reply<Vec<Vec<Pair>>>,
    },
    Apply {
        batch: Batch,
        reply: Reply<()>,
    },
    Flush {
        reply: Reply<()>,
    },
    TakeNotices {
        reply: Reply<Vec<Notice>>,
    },
    Close {
        reply: Reply<()>,
    },
}

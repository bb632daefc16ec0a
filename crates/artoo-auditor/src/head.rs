//! The head of the log, and the thread that writes it while records come (design §16).
//!
//! Owns the order: first the records are forced to the disk, then the head names the last of them. Must not know what a record is.

use std::fs::File;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use crate::chain::Link;
use crate::files::{self, Files, LogError, at_path, replace};

/// A head to be written.
#[derive(Debug)]
pub(crate) struct Head {
    /// What has to be on the disk before it.
    pub files: Vec<File>,
    /// What it says.
    pub link: Link,
    /// Whether more is to come, or what was lost is not told yet.
    pub open: bool,
}

impl Head {
    /// Forces the files to the disk and replaces `audit.head`.
    pub fn write(&self, files: &Files) -> Result<(), LogError> {
        for file in &self.files {
            file.sync_data().map_err(at_path(&files.log()))?;
        }
        let (link, open) = (self.link, self.open);
        replace(&files.head(), &files::Head { link, open }, |text| text)
    }
}

/// A head that could not be written, and the files that are still to be forced to the disk before any later one.
#[derive(Debug)]
pub(crate) struct Unwritten {
    pub error: LogError,
    pub files: Vec<File>,
}

/// The thread. At most one head is under way.
#[derive(Debug)]
pub(crate) struct Sealer {
    sender: SyncSender<Head>,
    done: Receiver<Result<(), Unwritten>>,
    thread: JoinHandle<()>,
    busy: bool,
}

impl Sealer {
    pub fn start(files: &Files) -> Result<Self, LogError> {
        let (sender, heads) = sync_channel::<Head>(1);
        let (answer, done) = sync_channel(1);
        let of = files.clone();
        let thread = std::thread::Builder::new()
            .name("artoo-audit-head".to_owned())
            .spawn(move || {
                for head in heads {
                    // Nobody asks any more where the log is gone.
                    let _ = answer.send(head.write(&of).map_err(|error| Unwritten {
                        error,
                        files: head.files,
                    }));
                }
            })
            .map_err(at_path(files.folder()))?;
        Ok(Self {
            sender,
            done,
            thread,
            busy: false,
        })
    }

    /// Whether a head can be given to it, with what became of the one before.
    pub fn is_free(&mut self) -> Option<Result<(), Unwritten>> {
        if !self.busy {
            return Some(Ok(()));
        }
        match self.done.try_recv() {
            Ok(done) => {
                self.busy = false;
                Some(done)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(broke())),
        }
    }

    /// Has it written. Only where it is free.
    pub fn seal(&mut self, head: Head) {
        self.busy = self.sender.try_send(head).is_ok();
    }

    /// Waits for what is under way and ends.
    pub fn finish(self) -> Result<(), Unwritten> {
        let last = if self.busy {
            self.done.recv().unwrap_or_else(|_| Err(broke()))
        } else {
            Ok(())
        };
        drop(self.sender);
        self.thread.join().map_err(|_| broke()).and(last)
    }
}

fn broke() -> Unwritten {
    Unwritten {
        error: LogError::Io {
            path: "audit.head".into(),
            source: std::io::Error::other("the thread that writes it broke"),
        },
        files: Vec::new(),
    }
}

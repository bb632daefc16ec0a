//! Bringing journals to disk on a thread of its own, many requests with one `fdatasync` (design §17).
//!
//! Owns the queue and the thread, which starts with the first request and ends with the journal. Must not touch contents.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::locked;

/// What is to be on disk.
pub(super) enum Target {
    File(Arc<File>),
    Folder(PathBuf),
}

type Done = Box<dyn FnOnce(Result<(), String>) + Send>;

/// Starts lazily, so that a process that journals nothing has no thread for it.
#[derive(Default)]
pub(super) struct Syncer {
    thread: Mutex<Option<Thread>>,
}

struct Thread {
    requests: Sender<(Target, Done)>,
    handle: JoinHandle<()>,
}

impl Syncer {
    /// Asks for a sync and does not wait; `failed` hears of a failure.
    pub(super) fn soon(&self, target: Target, failed: Box<dyn FnOnce(String) + Send>) {
        self.send(
            target,
            Box::new(move |result| {
                if let Err(message) = result {
                    failed(message);
                }
            }),
        );
    }

    /// A name in this folder has changed. A later [`Syncer::wait`] covers it, for requests are served in order; a
    /// failure matters only to whoever loses power in this very moment.
    pub(super) fn folder(&self, folder: &Path) {
        self.send(Target::Folder(folder.to_owned()), Box::new(|_| {}));
    }

    /// Asks for a sync and waits for it. Blocks the thread.
    pub(super) fn wait(&self, target: Target) -> Result<(), String> {
        let (done, result) = channel();
        self.send(
            target,
            Box::new(move |outcome| {
                let _heard = done.send(outcome);
            }),
        );
        result
            .recv()
            .unwrap_or_else(|_| Err("the sync thread has ended".to_owned()))
    }

    /// Serves everything asked for so far and ends the thread. Blocks the thread.
    pub(super) fn drain(&self) {
        let thread = locked(&self.thread).take();
        if let Some(Thread { requests, handle }) = thread {
            drop(requests);
            let _joined = handle.join();
        }
    }

    fn send(&self, target: Target, done: Done) {
        let mut thread = locked(&self.thread);
        if thread.is_none() {
            let (requests, queue) = channel();
            match std::thread::Builder::new()
                .name("artoo-journal".to_owned())
                .spawn(move || serve(&queue))
            {
                Ok(handle) => *thread = Some(Thread { requests, handle }),
                Err(error) => {
                    drop(thread);
                    return done(Err(format!("no thread for syncing: {error}")));
                }
            }
        }
        if let Some(thread) = &*thread {
            // A closed queue drops `done`, and whoever waits for it hears that.
            let _sent = thread.requests.send((target, done));
        }
    }
}

fn serve(queue: &Receiver<(Target, Done)>) {
    while let Ok(first) = queue.recv() {
        let mut batch = vec![first];
        batch.extend(queue.try_iter());
        // Later requests for the same file are served by the same call: all of their bytes were written before.
        let mut done: Vec<(Target, Result<(), String>)> = Vec::new();
        for (target, finished) in batch {
            let known = done.iter().find(|(other, _)| same(other, &target));
            if let Some((_, result)) = known {
                finished(result.clone());
            } else {
                let result = sync(&target).map_err(|e| format!("cannot sync: {e}"));
                done.push((target, result.clone()));
                finished(result);
            }
        }
    }
}

fn same(a: &Target, b: &Target) -> bool {
    match (a, b) {
        (Target::File(a), Target::File(b)) => Arc::ptr_eq(a, b),
        (Target::Folder(a), Target::Folder(b)) => a == b,
        (Target::File(_), Target::Folder(_)) | (Target::Folder(_), Target::File(_)) => false,
    }
}

fn sync(target: &Target) -> std::io::Result<()> {
    match target {
        Target::File(file) => file.sync_data(),
        Target::Folder(folder) => File::open(folder)?.sync_all(),
    }
}

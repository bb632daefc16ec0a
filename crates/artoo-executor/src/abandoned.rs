//! Whether somebody still waits for a piece of blocking work (design §8).
//!
//! Owns the way to tell a worker thread that nobody does, and reading and copying that heed it. Must not know tools.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that are copied between two looks.
const CHUNK: u64 = 32 * 1024 * 1024;

/// Whether the future that waits for some work was dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    /// Whether nobody waits any more.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error as soon as nobody waits any more. Not `Interrupted`: readers would try again for ever.
    pub fn check(&self) -> io::Result<()> {
        if self.is_set() {
            Err(io::Error::other("it was cancelled"))
        } else {
            Ok(())
        }
    }

    /// A reader that fails as soon as nobody waits any more.
    pub fn heeding<R>(&self, inner: R) -> Heeding<'_, R> {
        Heeding { inner, abandoned: self }
    }

    /// Copies what is left of a file, as fast as the system can.
    pub fn copy(&self, from: &mut File, to: &mut File) -> io::Result<()> {
        loop {
            self.check()?;
            if io::copy(&mut Read::take(&mut *from, CHUNK), to)? == 0 {
                return Ok(());
            }
        }
    }

    #[cfg(test)]
    pub fn already() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

/// A reader that fails as soon as nobody waits for what it reads.
pub(crate) struct Heeding<'a, R> {
    inner: R,
    abandoned: &'a Abandoned,
}

impl<R: Read> Read for Heeding<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.abandoned.check()?;
        self.inner.read(buffer)
    }
}

/// Runs blocking work on a thread for it. The work is told when nobody waits for it any more.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce(&Abandoned) -> T + Send + 'static) -> Option<T> {
    let abandoned = Abandoned::default();
    let _guard = Guard(abandoned.clone());
    tokio::task::spawn_blocking(move || work(&abandoned)).await.ok()
}

struct Guard(Abandoned);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_nobody_waits_for_ends() {
        let mut from = tempfile::tempfile().unwrap();
        from.write_all(b"text").unwrap();
        let mut to = tempfile::tempfile().unwrap();
        io::Seek::rewind(&mut from).unwrap();
        let waiting = Abandoned::default();
        waiting.copy(&mut from, &mut to).unwrap();
        assert_eq!(to.metadata().unwrap().len(), 4);
        let gone = Abandoned::already();
        assert!(gone.copy(&mut from, &mut to).is_err());
        // A file without an end.
        let endless = File::open("/dev/zero").unwrap();
        assert!(io::copy(&mut gone.heeding(endless), &mut io::sink()).is_err());
    }

    #[tokio::test]
    async fn dropping_the_future_tells_the_worker() {
        let (told, heard) = std::sync::mpsc::channel();
        let work = blocking(move |abandoned: &Abandoned| {
            let endless = File::open("/dev/zero").unwrap();
            let _ = told.send(io::copy(&mut abandoned.heeding(endless), &mut io::sink()).is_err());
        });
        let waited = tokio::time::timeout(std::time::Duration::from_millis(50), work).await;
        assert!(waited.is_err());
        assert!(heard.recv().unwrap());
    }
}

//! How far the newest log was synced, in a small file beside it (design §15).
//!
//! A log that somebody cut short at the end of a record looks whole, and one that was cut within a record looks like a write that a
//! crash interrupted. What this file says tells the difference: it is written after each sync of a log, so the log is never shorter.
//! It is never synced itself; after a loss of power it may say less, and then less is noticed.
//!
//! Owns: that file. Must not know: what is in logs.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The file's name: none that LevelDB knows, so other programs leave it alone.
pub(super) const NAME: &str = "SYNCED";

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Synced {
    /// The name of the log.
    pub(super) log: String,
    /// Of which so many bytes are durable.
    pub(super) bytes: u64,
}

impl Synced {
    /// What is known of the store in a folder; `None` where nothing is, or nothing that can be relied on.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(folder.join(NAME)).ok()?;
        let (said, sum) = text.trim_end_matches('\n').rsplit_once(' ')?;
        if u32::from_str_radix(sum, 16).ok()? != crc32c::crc32c(said.as_bytes()) {
            return None;
        }
        let (log, bytes) = said.split_once(' ')?;
        Some(Self {
            log: log.to_owned(),
            bytes: bytes.parse().ok()?,
        })
    }

    /// Opens or makes the file.
    pub(super) fn file(folder: &Path) -> io::Result<File> {
        let path = folder.join(NAME);
        OpenOptions::new().create(true).truncate(false).write(true).open(path)
    }

    /// Writes it, always equally long.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let said = format!("{} {:020}", self.log, self.bytes);
        let sum = crc32c::crc32c(said.as_bytes());
        file.write_all_at(format!("{said} {sum:08x}\n").as_bytes(), 0)
    }
}

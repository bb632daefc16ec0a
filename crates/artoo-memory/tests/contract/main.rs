//! What every key-value store below the memory must do, held against both implementations; and what LevelDB must
//! survive: kill -9, torn ends, flipped bytes, a second process. Uses the public interface only.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    missing_docs,
    reason = "test code"
)]

mod canaries;
mod crash;
mod faults;
mod kv;
mod memory;
mod records;

use artoo_memory::kv::{Batch, LevelKv, LevelSettings};
use std::path::Path;

const NOW: &str = "2026-02-27T09:30:00.000Z";

/// Small enough that a few thousand keys are compacted several times.
const SMALL: LevelSettings = LevelSettings {
    write_buffer_bytes: 16 << 10,
    table_bytes: 32 << 10,
    cache_bytes: 64 << 10,
};

fn open(folder: &Path) -> LevelKv {
    LevelKv::open(folder, NOW, SMALL).unwrap()
}

fn put(key: &str, value: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(key, value);
    batch
}

fn delete(key: &str) -> Batch {
    let mut batch = Batch::new();
    batch.delete(key);
    batch
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "LOCK" {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn files_ending(folder: &Path, end: &str) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    files.sort();
    files
}

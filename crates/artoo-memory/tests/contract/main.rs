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
mod others;
mod records;
#[path = "../../../artoo-testkit/src/skipping.rs"]
mod skipping;

use artoo_memory::kv::{Batch, LevelKv, LevelSettings};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

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

/// Starts a test of this binary in a process of its own; the numbers of which it says that they are synced.
fn start_child(test: &str, variable: &str, folder: &Path) -> (Child, impl Iterator<Item = u64> + use<>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let synced = lines.filter_map(|line| line.ok()?.strip_prefix("synced ")?.parse().ok());
    (child, synced)
}

/// Damages the byte at this place of a file.
fn flip(path: &Path, at: impl Fn(usize) -> usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 0x55;
    std::fs::write(path, bytes).unwrap();
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

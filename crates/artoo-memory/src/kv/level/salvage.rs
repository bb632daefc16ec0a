//! Finds out whether a store is damaged, and carries over what a damaged one still holds (design §15).
//!
//! Reading for rescue goes through this crate's own readers of logs and tables, never through the library or the
//! manifest: what is broken must not decide what is read. The newest version of each key counts. A table that the
//! store had already replaced but not yet removed can bring a deleted key back; that is better than losing live ones.
//!
//! Owns: the names and the order of the moves. Must not know: what keys and values mean.

use super::env::sync_folder;
use super::log_scan::{LogEnd, Versioned, read_batch, scan_log};
use super::synced::Synced;
use super::table_scan::scan_table;
use crate::kv::{Batch, Notice};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

/// What a file in the folder is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Log,
    Table,
    Manifest,
    Current,
}

/// `None` for locks, text logs, temporary and foreign files.
pub(super) fn file_kind(path: &Path) -> Option<FileKind> {
    let name = path.file_name()?.to_str()?;
    if name == "CURRENT" {
        return Some(FileKind::Current);
    }
    let numbered = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if name.strip_prefix("MANIFEST-").is_some_and(numbered) {
        return Some(FileKind::Manifest);
    }
    match name.split_once('.') {
        Some((number, "log")) if numbered(number) => Some(FileKind::Log),
        Some((number, "ldb" | "sst")) if numbered(number) => Some(FileKind::Table),
        _ => None,
    }
}

/// The store's own files, sorted by name; none when the folder does not exist.
pub(super) fn store_files(folder: &Path) -> io::Result<Vec<(FileKind, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if let Some(kind) = file_kind(&path) {
            files.push((kind, path));
        }
    }
    files.sort_by(|(_, a), (_, b)| a.cmp(b));
    Ok(files)
}

/// Damage that the library would pass over in silence, in words; `None` for a sound or a new store.
///
/// Tables are not read here: their blocks are checked whenever they are read.
pub(super) fn find_damage(folder: &Path) -> io::Result<Option<String>> {
    let files = store_files(folder)?;
    if files.is_empty() {
        return Ok(None);
    }
    let current = folder.join("CURRENT");
    let named = match fs::read_to_string(&current) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // The library would begin a new store here and remove the old tables. A store that died before its
            // first CURRENT holds a manifest at most.
            let data = files
                .iter()
                .any(|(kind, _)| matches!(kind, FileKind::Log | FileKind::Table));
            return Ok(data.then(|| "CURRENT is missing".to_owned()));
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
        Err(error) => return Err(error),
    };
    let manifest = folder.join(named.trim_end_matches('\n'));
    if !named.ends_with('\n') || file_kind(&manifest) != Some(FileKind::Manifest) || !manifest.is_file() {
        return Ok(Some("CURRENT names no manifest".to_owned()));
    }
    for (_, path) in files
        .iter()
        .filter(|(kind, path)| *kind == FileKind::Log || *path == manifest)
    {
        let end = scan_log(BufReader::new(File::open(path)?), &mut |_| ())?;
        if let LogEnd::Damaged { at } = end {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            return Ok(Some(format!("a wrong checksum in {name} at byte {at}")));
        }
    }
    find_cut(folder, &files)
}

/// Whether the log that was written to last lacks something that was synced, in words.
fn find_cut(folder: &Path, files: &[(FileKind, PathBuf)]) -> io::Result<Option<String>> {
    let Some(synced) = Synced::read(folder) else {
        return Ok(None);
    };
    let log = folder.join(&synced.log);
    let logs = || {
        files
            .iter()
            .filter(|(kind, _)| *kind == FileKind::Log)
            .map(|(_, path)| path)
    };
    // As numbers: beyond six digits their order as text is another.
    let number = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    match fs::metadata(&log) {
        Ok(found) if found.len() >= synced.bytes => {
            let end = scan_log(BufReader::new(File::open(&log)?), &mut |_| ())?;
            let is_lost = matches!(end, LogEnd::Torn { at } if at < synced.bytes);
            Ok(is_lost.then(|| format!("{} cannot be read to where it was synced", synced.log)))
        }
        Ok(found) => Ok(Some(format!(
            "{} is cut short: {} bytes of {} that were synced",
            synced.log,
            found.len(),
            synced.bytes
        ))),
        // What it held is in tables now, and a later log was begun.
        Err(error) if error.kind() == io::ErrorKind::NotFound && logs().any(|later| number(later) > number(&log)) => {
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(format!("{} is missing", synced.log))),
        Err(error) => Err(error),
    }
}

/// Keys, and bytes, of a batch by which a store is filled.
const BATCH_KEYS: usize = 1_000;
const BATCH_BYTES: usize = 8 << 20;

/// What could be read of a damaged store.
#[derive(Debug, Default)]
pub(super) struct Salvaged {
    versions: BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>,
    pieces_lost: usize,
}

impl Salvaged {
    /// Reads every log and table of the folder.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let files = store_files(folder)?;
        let mut salvaged = Self {
            pieces_lost: usize::from(find_cut(folder, &files)?.is_some()),
            ..Self::default()
        };
        for (kind, path) in files {
            match kind {
                FileKind::Log => salvaged.read_log(&path)?,
                FileKind::Table => salvaged.read_table(&path)?,
                FileKind::Manifest | FileKind::Current => {}
            }
        }
        Ok(salvaged)
    }

    fn read_log(&mut self, path: &Path) -> io::Result<()> {
        let mut broken_batches = 0;
        let end = scan_log(BufReader::new(File::open(path)?), &mut |record| {
            broken_batches += usize::from(!read_batch(record, &mut |change| self.add(&change)));
        })?;
        self.pieces_lost += broken_batches + usize::from(matches!(end, LogEnd::Damaged { .. }));
        Ok(())
    }

    fn read_table(&mut self, path: &Path) -> io::Result<()> {
        let loss = scan_table(&File::open(path)?, &mut |change| self.add(&change))?;
        self.pieces_lost += loss.blocks + usize::from(loss.whole);
        Ok(())
    }

    fn add(&mut self, change: &Versioned<'_>) {
        let newest = self
            .versions
            .get(change.key)
            .is_none_or(|(sequence, _)| *sequence <= change.sequence);
        if newest && !change.key.is_empty() {
            self.versions
                .insert(change.key.to_vec(), (change.sequence, change.value.map(<[u8]>::to_vec)));
        }
    }

    /// The live pairs, as batches of bounded size.
    pub(super) fn batches(&self) -> Vec<Batch> {
        let (mut batches, mut bytes) = (vec![Batch::new()], 0);
        for (key, (_, value)) in &self.versions {
            let Some(value) = value else { continue };
            let more = key.len() + value.len();
            let is_full = |batch: &Batch| batch.changes.len() >= BATCH_KEYS || bytes + more > BATCH_BYTES;
            if batches.last().is_some_and(is_full) {
                batches.push(Batch::new());
                bytes = 0;
            }
            bytes += more;
            if let Some(batch) = batches.last_mut() {
                batch.put(key.clone(), value.clone());
            }
        }
        batches
    }

    fn keys(&self) -> usize {
        self.versions.values().filter(|(_, value)| value.is_some()).count()
    }
}

/// The folder in which a rebuilt store is completed before it takes the damaged one's place.
pub(super) fn rebuilt_path(folder: &Path) -> PathBuf {
    with_suffix(folder, ".rebuilt")
}

/// Where the store of a folder lies: there, or, where a repair was cut off between its two moves, in the complete one beside it. `None`
/// where there is none.
pub(super) fn place(folder: &Path) -> io::Result<Option<PathBuf>> {
    // The second move may come between the looks.
    for path in [folder, &rebuilt_path(folder), folder] {
        match fs::metadata(path) {
            Ok(_) => return Ok(Some(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Moves the damaged folder aside: from then on the rebuilt one is the store, and [`finish_interrupted_swap`] moves it into its place.
pub(super) fn move_aside(folder: &Path, stamp: &str, reason: String, salvaged: &Salvaged) -> io::Result<Notice> {
    let moved_to = free_name(folder, stamp);
    fs::rename(folder, &moved_to)?;
    Ok(Notice::Quarantined {
        moved_to,
        reason,
        keys_kept: salvaged.keys(),
        pieces_lost: salvaged.pieces_lost,
    })
}

/// Puts in order what a crash, or an error, in the middle of a repair left behind. To be done before the folder is opened, each time: in a
/// folder that is missing a new store would be made, and the rebuilt one beside it would be taken for an incomplete one.
///
/// A rebuilt store beside a damaged one may be incomplete: it goes. One without a store beside it is complete,
/// because the damaged one is moved only afterwards: it takes its place.
pub(super) fn finish_interrupted_swap(folder: &Path) -> io::Result<()> {
    let rebuilt = rebuilt_path(folder);
    if !rebuilt.exists() {
        return Ok(());
    }
    if folder.exists() {
        return fs::remove_dir_all(rebuilt);
    }
    fs::rename(rebuilt, folder)?;
    sync_parent(folder)
}

fn sync_parent(folder: &Path) -> io::Result<()> {
    folder
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .map_or(Ok(()), sync_folder)
}

/// `<folder>.corrupt-<stamp>`, with a number behind it where that name is taken.
fn free_name(folder: &Path, stamp: &str) -> PathBuf {
    // Colons are unwelcome in file names elsewhere.
    let stamp: String = stamp.chars().filter(char::is_ascii_alphanumeric).collect();
    let first = with_suffix(folder, &format!(".corrupt-{stamp}"));
    let numbered = (2_u32..).map(|number| with_suffix(folder, &format!(".corrupt-{stamp}-{number}")));
    std::iter::once(first.clone())
        .chain(numbered)
        .find(|path| !path.exists())
        .unwrap_or(first)
}

fn with_suffix(folder: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = folder.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

//! The log that is being written (design §16).
//!
//! Owns opening, continuing, appending, and the change to a new file when one is full. The head is replaced atomically, so
//! that a shortened log is found too; while records come, a thread beside forces them to the disk and writes it, so that no record
//! waits for that. A half-written last record is set aside and noted; nothing is ever silently dropped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use artoo_protocol::{Millis, Timestamp};

use crate::chain::{Frame, Link};
use crate::files::{self, Files, LogError, at_path, number_of};
use crate::head::{Head, Sealer, Unwritten};
use crate::vocabulary::{Entry, Gap};

/// Bytes that are read from the end to find the last record; a longer record is found by reading more.
const TAIL: u64 = 1 << 20;
/// How old a head may be while the log grows.
const HEAD_PERIOD: Millis = Millis(1_000);

/// An open log at its end.
#[derive(Debug)]
pub(crate) struct Log {
    files: Files,
    file: File,
    /// Size at which a file is full.
    full_at: u64,
    /// Bytes that are known to be whole records.
    good: u64,
    /// Number of the first record of this file; 0 while it has none.
    first: u64,
    link: Link,
    pending: Vec<u8>,
    pending_link: Link,
    /// When the head was last written or asked for, and what it says.
    headed: Option<(Timestamp, Link)>,
    /// Files that were filled since then.
    filled: Vec<File>,
    sealer: Option<Sealer>,
    /// The last instant in words: most records share it with the one before.
    at: (Timestamp, String),
    /// What happened to the files, to be noted.
    notes: Vec<String>,
}

impl Log {
    /// Continues the log of a folder, and gives what was found wrong with its end as records that are to be written first.
    pub fn open(folder: &Path, full_at: u64) -> Result<(Self, Vec<Entry>), LogError> {
        let files = Files::new(folder);
        fs::create_dir_all(folder).map_err(at_path(folder))?;
        let path = files.log();
        let head = files.read_head()?;
        let mut file = open_end(&files)?;
        let mut entries = Vec::new();
        let good = set_torn_aside(&files, &mut file, &mut entries).map_err(at_path(&path))?;
        let first = first_number(&files, &mut file, good)?;
        let mut length = good;
        let mut last = last_link(&mut file, good).map_err(at_path(&path))?;
        if good == 0
            && let Some(before) = files.filled()?.last()
        {
            let mut file = File::open(before).map_err(at_path(before))?;
            length = file.metadata().map_err(at_path(before))?.len();
            last = last_link(&mut file, length).map_err(at_path(before))?;
        }
        let link = resume(last, length, head.as_ref(), &mut entries);
        let log = Self {
            files,
            file,
            full_at,
            good,
            first,
            pending: Vec::new(),
            pending_link: link,
            headed: None,
            filled: Vec::new(),
            sealer: None,
            at: (Timestamp::default(), Timestamp::default().to_string()),
            notes: Vec::new(),
            link,
        };
        Ok((log, entries))
    }

    /// Where the chain stands on disk.
    pub const fn link(&self) -> Link {
        self.link
    }

    pub const fn files(&self) -> &Files {
        &self.files
    }

    /// Prepares one record; nothing is on disk before [`Log::commit`].
    pub fn append(&mut self, at: Timestamp, name: &str, body: &str) {
        if self.at.0 != at {
            self.at = (at, at.to_string());
        }
        self.pending_link = self.pending_link.follow(&self.at.1, name, body, &mut self.pending);
    }

    /// Bytes that are prepared.
    pub const fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Writes what was prepared. When the log cannot be written, it stays as it was.
    pub fn commit(&mut self) -> Result<(), LogError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut written = Ok(());
        if self.good >= self.full_at {
            written = self.change_file(open_end);
        }
        if written.is_ok() {
            written = self.file.write_all(&self.pending).map_err(at_path(&self.files.log()));
        }
        let bytes = u64::try_from(self.pending.len()).unwrap_or(u64::MAX);
        self.pending.clear();
        if let Err(error) = written {
            self.pending_link = self.link;
            // What did get written of it is no record; if it cannot be removed now, it is set aside at the next start.
            let _ = self.file.set_len(self.good);
            return Err(error);
        }
        if self.first == 0 {
            self.first = self.link.n + 1;
        }
        self.good = self.good.saturating_add(bytes);
        self.link = self.pending_link;
        Ok(())
    }

    /// What happened to the files since this was last asked.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Gives the full file its name and begins a new one; the chain goes on.
    fn change_file(&mut self, open: impl FnOnce(&Files) -> Result<File, LogError>) -> Result<(), LogError> {
        let (path, (number, aside)) = (self.files.log(), self.free_name()?);
        fs::rename(&path, &aside).map_err(at_path(&path))?;
        let new = open(&self.files).inspect_err(|_| {
            // It is still the log, and the next batch tries again.
            let _ = fs::rename(&aside, &path);
        })?;
        let full = std::mem::replace(&mut self.file, new);
        if number != self.first {
            self.notes.push(format!(
                "there was a file for record {} already, so the one that was full became audit-{number:016}.jsonl",
                self.first
            ));
        }
        // It is forced to the disk before the next head is written.
        self.filled.push(full);
        self.good = 0;
        self.first = 0;
        Ok(())
    }

    /// The name for the full file, with its number: nothing that is there is ever replaced, whatever a first line says.
    fn free_name(&self) -> Result<(u64, PathBuf), LogError> {
        for number in self.first..u64::MAX {
            let name = self.files.full(number);
            match fs::symlink_metadata(&name) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((number, name)),
                Err(source) => return Err(at_path(&name)(source)),
            }
        }
        Err(at_path(&self.files.log())(io::ErrorKind::AlreadyExists.into()))
    }

    /// Has the head written if the last one is old, by a thread beside; where that is still busy, later.
    pub fn seal_if_due(&mut self, now: Timestamp) -> Result<(), LogError> {
        match self.headed {
            None => return self.seal(now, true),
            Some((at, link)) if now.since(at) < HEAD_PERIOD || link == self.link => return Ok(()),
            Some(_) => {}
        }
        let sealer = match &mut self.sealer {
            Some(sealer) => sealer,
            none => none.insert(Sealer::start(&self.files)?),
        };
        if let Some(done) = sealer.is_free() {
            if let Err(unwritten) = done {
                return Err(self.put_off(now, unwritten));
            }
            let files = self.due_on_disk(self.file.try_clone())?;
            if let Some(sealer) = &mut self.sealer {
                let (link, open) = (self.link, true);
                sealer.seal(Head { files, link, open });
            }
            self.headed = Some((now, self.link));
        }
        Ok(())
    }

    /// Everything that has to be on the disk before a head names the last record: where this file cannot be had, all of it still waits.
    fn due_on_disk(&mut self, this: io::Result<File>) -> Result<Vec<File>, LogError> {
        let this = this.map_err(at_path(&self.files.log()))?;
        let mut files = std::mem::take(&mut self.filled);
        files.push(this);
        Ok(files)
    }

    /// Forces the log to the disk and then writes the head, which therefore never names a record that can be lost.
    fn seal(&mut self, now: Timestamp, open: bool) -> Result<(), LogError> {
        let files = self.due_on_disk(self.file.try_clone())?;
        let link = self.link;
        let head = Head { files, link, open };
        let Err(error) = head.write(&self.files) else {
            self.headed = Some((now, self.link));
            return Ok(());
        };
        let files = head.files;
        Err(self.put_off(now, Unwritten { error, files }))
    }

    /// A head that could not be written is tried again when the next one is due, and its files wait until then.
    fn put_off(&mut self, now: Timestamp, mut unwritten: Unwritten) -> LogError {
        self.headed = Some((now, Link::default()));
        // The last is the one that was being written then: it still is, or is among the filled.
        unwritten.files.pop();
        self.filled.extend(unwritten.files);
        unwritten.error
    }

    /// The same at the end, after whatever is still under way; `whole` says that nothing waits to be written down any more.
    pub fn finish(&mut self, now: Timestamp, whole: bool) -> Result<(), LogError> {
        let beside = self.sealer.take().map_or(Ok(()), Sealer::finish);
        // What it could not write is tried once more.
        let beside = beside.map_err(|unwritten| self.put_off(now, unwritten));
        beside.and(self.seal(now, !whole))
    }

    /// Another file in the place of the log's, which is given back.
    #[cfg(test)]
    pub fn write_to(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }
}

fn open_end(files: &Files) -> Result<File, LogError> {
    let path = files.log();
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(&path)
        .map_err(at_path(&path))
}

/// Where the chain goes on. Where the head knows better than the log, it goes on from the head, so that what was done to the
/// log stays visible for ever.
fn resume(last: Option<Link>, length: u64, head: Option<&Result<files::Head, String>>, first: &mut Vec<Entry>) -> Link {
    let logged = last.unwrap_or_default();
    if last.is_none() && length > 0 {
        let note = "the last record does not fit its hash: the log was changed";
        first.push(Entry::Note(note.to_owned()));
    }
    let (head, open) = match head {
        Some(Ok(head)) => (head.link, head.open),
        // What was cut off before is known to nobody any more, and the chain alone would look whole.
        Some(Err(_)) if length > 0 => {
            first.push(Entry::Damage(
                "audit.head could not be read when the log was opened".to_owned(),
            ));
            return logged;
        }
        None if length > 0 => {
            first.push(Entry::Damage(
                "audit.head was missing when the log was opened".to_owned(),
            ));
            return logged;
        }
        Some(Err(_)) | None => return logged,
    };
    if head.n > logged.n {
        first.push(Entry::Note(format!(
            "the head names record {}, but the log ended at record {}: records are missing",
            head.n, logged.n
        )));
        return head;
    }
    if head.n == logged.n && head.hash != logged.hash {
        let note = format!("the head names another record {}: the log was changed", head.n);
        first.push(Entry::Note(note));
        return head;
    }
    // Whoever ends writes a last head; what was seen after the last record, a process that was killed took along.
    if open || head.n < logged.n {
        first.push(Entry::Gap(Gap::unknown()));
    }
    logged
}

/// Moves an unfinished last line, as a crash leaves it, out of the log; says how long the rest is.
fn set_torn_aside(files: &Files, file: &mut File, first: &mut Vec<Entry>) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let last = last_line(file, length)?;
    if last.is_empty() || last.ends_with(b"\n") {
        return Ok(length);
    }
    let start = length.saturating_sub(u64::try_from(last.len()).unwrap_or(0));
    let mut torn = OpenOptions::new().append(true).create(true).open(files.torn())?;
    torn.write_all(&last)?;
    torn.write_all(b"\n")?;
    torn.sync_all()?;
    file.set_len(start)?;
    first.push(Entry::Note(format!(
        "a torn last record of {} bytes was set aside in audit.torn",
        last.len()
    )));
    Ok(start)
}

/// The last line, finished or not.
pub(crate) fn last_line(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    let mut window = TAIL;
    loop {
        let from = length.saturating_sub(window);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        file.take(length - from).read_to_end(&mut tail)?;
        // The line break that ends the file belongs to the last line.
        let inner = tail.strip_suffix(b"\n").unwrap_or(&tail);
        if let Some(at) = memchr::memrchr(b'\n', inner) {
            return Ok(tail.split_off(at + 1));
        }
        if from == 0 {
            return Ok(tail);
        }
        window = window.saturating_mul(8);
    }
}

fn last_link(file: &mut File, length: u64) -> io::Result<Option<Link>> {
    let last = last_line(file, length)?;
    let line = last.strip_suffix(b"\n").unwrap_or(&last);
    Ok(Frame::sound(line).map(|frame| frame.link()))
}

/// The number of the first record of the file that is written, 0 while it has none. Where its line says nothing that can be, or a number
/// that a filled file has passed, it is the one that follows what was filled.
fn first_number(files: &Files, file: &mut File, length: u64) -> Result<u64, LogError> {
    let Some(line) = first_line(file, length).map_err(at_path(&files.log()))? else {
        return Ok(0);
    };
    let filled = files.filled()?.pop();
    let before = filled.as_deref().and_then(number_of).unwrap_or(0);
    if let Some(frame) = Frame::sound(&line).filter(|frame| frame.n > before) {
        return Ok(frame.n);
    }
    let mut end = before;
    if let Some(path) = filled {
        let mut file = File::open(&path).map_err(at_path(&path))?;
        let length = file.metadata().map_err(at_path(&path))?.len();
        let last = last_link(&mut file, length).map_err(at_path(&path))?;
        end = last.map_or(before, |link| link.n.max(before));
    }
    Ok(end.saturating_add(1))
}

/// The first line, if it is finished.
pub(crate) fn first_line(file: &mut File, length: u64) -> io::Result<Option<Vec<u8>>> {
    let mut window = 4096;
    loop {
        file.seek(SeekFrom::Start(0))?;
        let mut start = Vec::new();
        file.take(window.min(length)).read_to_end(&mut start)?;
        if let Some(at) = memchr::memchr(b'\n', &start) {
            start.truncate(at);
            return Ok(Some(start));
        }
        if window >= length {
            return Ok(None);
        }
        window *= 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn refused() -> io::Error {
        io::Error::other("too many open files")
    }

    fn log_of(folder: &TempDir, records: u64) -> Log {
        let (mut log, _) = Log::open(folder.path(), u64::MAX).unwrap();
        for _ in 0..records {
            log.append(Timestamp::default(), "note", "\"x\"");
            log.commit().unwrap();
        }
        log
    }

    /// The head must not name records of a file that was never forced to the disk: a handle that cannot be had now is had later.
    #[test]
    fn a_filled_file_waits_for_the_disk_until_it_was_there() {
        let folder = TempDir::new().unwrap();
        let mut log = log_of(&folder, 2);
        log.change_file(open_end).unwrap();
        assert!(log.due_on_disk(Err(refused())).is_err());
        let this = log.file.try_clone();
        assert_eq!(log.due_on_disk(this).unwrap().len(), 2, "the full one and this one");
        assert!(log.filled.is_empty());
    }

    /// Nor after a head that could not be written.
    #[test]
    fn what_a_failed_head_was_to_force_to_the_disk_still_waits() {
        let folder = TempDir::new().unwrap();
        let mut log = log_of(&folder, 2);
        log.change_file(open_end).unwrap();
        // No file can take the place of a folder that holds something.
        let head = folder.path().join("audit.head");
        fs::create_dir(&head).unwrap();
        fs::write(head.join("x"), "").unwrap();
        assert!(log.seal(Timestamp::default(), true).is_err());
        assert!(!log.filled.is_empty());
        let later = Timestamp::default().plus(Millis(5_000));
        assert!(log.finish(later, true).is_err());
        assert_eq!(log.filled.len(), 1, "once");
        fs::remove_dir_all(&head).unwrap();
        log.finish(later, true).unwrap();
        assert!(log.filled.is_empty());
        let head = log.files.read_head().unwrap().unwrap().unwrap();
        assert_eq!((head.link, head.open), (log.link(), false));
    }

    /// Whoever put it there: it may be the only one that holds those records.
    #[test]
    fn a_name_that_is_taken_is_left_alone_and_noted() {
        let folder = TempDir::new().unwrap();
        let mut log = log_of(&folder, 2);
        let taken = folder.path().join("audit-0000000000000001.jsonl");
        fs::write(&taken, "").unwrap();
        log.full_at = 1;
        log.append(Timestamp::default(), "note", "\"y\"");
        log.commit().unwrap();
        assert_eq!(fs::read(&taken).unwrap(), b"", "what lay there");
        assert!(folder.path().join("audit-0000000000000002.jsonl").exists());
        assert_eq!(log.take_notes().len(), 1);
        log.finish(Timestamp::default(), true).unwrap();
        assert_eq!(crate::verify(folder.path(), &[]).unwrap().records, 3);
    }

    #[test]
    fn a_file_that_cannot_be_begun_leaves_the_full_one_in_its_place() {
        let folder = TempDir::new().unwrap();
        let mut log = log_of(&folder, 2);
        let path = folder.path().join("audit.jsonl");
        assert!(log.change_file(|_| Err(at_path(&path)(refused()))).is_err());
        assert_eq!(log.files.all().unwrap(), [path]);
        log.full_at = 1;
        log.append(Timestamp::default(), "note", "\"y\"");
        log.commit().unwrap();
        assert_eq!(log.files.all().unwrap().len(), 2, "the next batch begins it");
        log.finish(Timestamp::default(), true).unwrap();
        assert_eq!(crate::verify(folder.path(), &[]).unwrap().records, 3);
    }
}

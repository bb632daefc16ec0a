//! The records that come to a log while somebody looks on, across every file that is filled meanwhile (design §16).
//!
//! Owns the way from one file to the next. Must not know what a record means beyond its number.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::chain::Frame;
use crate::files::{Files, LogError, at_path, number_of};
use crate::log::{first_line, last_line};

/// Bytes that are read at once; more only where one record is longer.
const STEP: u64 = 1 << 20;

/// The end of a log, to which another process may write.
#[derive(Debug)]
pub struct Follow {
    files: Files,
    open: Option<File>,
    /// Where the first line begins that was not given yet.
    position: u64,
    /// How much is read at once.
    step: u64,
    /// Number of the first record of the open file, or of the file before as long as that is not known.
    first: u64,
    /// Whether the first record of the open file is still to come.
    fresh: bool,
}

impl Follow {
    /// From the end of what is there now; a record that is being written belongs to what is to come.
    ///
    /// # Errors
    /// [`LogError::Io`] when the log cannot be read.
    pub fn from_end(folder: &Path) -> Result<Self, LogError> {
        let files = Files::new(folder);
        // Opened before the others are listed: should it be filled in between, it is among them and comes first.
        let mut open = open(&files)?;
        let mut first = files.filled()?.last().and_then(|path| number_of(path)).unwrap_or(0);
        let (mut position, mut fresh) = (0, true);
        if let Some(file) = &mut open {
            let path = files.log();
            position = file.metadata().map_err(at_path(&path))?.len();
            let begin = first_line(file, position).map_err(at_path(&path))?;
            let tail = last_line(file, position).map_err(at_path(&path))?;
            if !tail.ends_with(b"\n") {
                position -= u64::try_from(tail.len()).unwrap_or(0);
            }
            if let Some(frame) = begin.as_deref().and_then(Frame::read) {
                (first, fresh) = (frame.n, false);
            }
        }
        Ok(Self {
            files,
            open,
            position,
            step: STEP,
            first,
            fresh,
        })
    }

    /// Records that were finished since the last time, at most about a megabyte of them; none when all were given.
    ///
    /// # Errors
    /// [`LogError::Io`] when the log cannot be read.
    pub fn poll(&mut self) -> Result<Vec<Vec<u8>>, LogError> {
        loop {
            // Asked before reading: what was written into a file before it was full is read then.
            let current = self.is_current()?;
            let (lines, more) = self.read()?;
            if !lines.is_empty() {
                return Ok(lines);
            }
            if !more && (current || !self.next_file()?) {
                return Ok(lines);
            }
        }
    }

    /// Whole lines, and whether there is more although there were none.
    fn read(&mut self) -> Result<(Vec<Vec<u8>>, bool), LogError> {
        let path = self.files.log();
        let Some(file) = &mut self.open else {
            return Ok((Vec::new(), false));
        };
        let mut block = Vec::new();
        // From the beginning of the line each time: a torn one may have been taken back, and another written in its place.
        file.seek(SeekFrom::Start(self.position))
            .and_then(|_| file.take(self.step).read_to_end(&mut block))
            .map_err(at_path(&path))?;
        let size = u64::try_from(block.len()).unwrap_or(u64::MAX);
        let end = memchr::memrchr(b'\n', &block).map_or(0, |at| at + 1);
        block.truncate(end);
        self.position += u64::try_from(end).unwrap_or(0);
        let more = end == 0 && size == self.step;
        self.step = if more { self.step.saturating_mul(2) } else { STEP };
        let lines = block.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
        if let Some(frame) = lines.first().filter(|_| self.fresh).and_then(|line| Frame::read(line)) {
            (self.first, self.fresh) = (frame.n, false);
        }
        Ok((lines, more))
    }

    /// Goes on with the file after the open one; whether there is one.
    fn next_file(&mut self) -> Result<bool, LogError> {
        let newest = open(&self.files)?;
        for path in self.files.filled()? {
            let Some(number) = number_of(&path).filter(|number| *number > self.first) else {
                continue;
            };
            self.open = Some(File::open(&path).map_err(at_path(&path))?);
            (self.first, self.fresh, self.position) = (number, false, 0);
            return Ok(true);
        }
        (self.open, self.fresh, self.position) = (newest, true, 0);
        Ok(self.open.is_some())
    }

    /// Whether the open file is still the one that is written.
    fn is_current(&self) -> Result<bool, LogError> {
        let path = self.files.log();
        let now = match fs::metadata(&path) {
            Ok(now) => now,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(source) => return Err(at_path(&path)(source)),
        };
        let Some(file) = &self.open else { return Ok(false) };
        let open = file.metadata().map_err(at_path(&path))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            Ok((open.dev(), open.ino()) == (now.dev(), now.ino()))
        }
        #[cfg(not(unix))]
        Ok(open.len() <= now.len())
    }
}

fn open(files: &Files) -> Result<Option<File>, LogError> {
    let path = files.log();
    match File::open(&path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(at_path(&path)(source)),
    }
}

//! The lines of a log from its first file to its last, or from its end backwards (design §16).
//!
//! Owns reading in large blocks. Must not know what a line means.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use crate::files::{Files, LogError, at_path};

/// A place in a log, between two lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file.
    pub path: PathBuf,
    /// Bytes from its beginning.
    pub offset: u64,
}

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Without its line break.
    pub bytes: &'a [u8],
    /// Whether it had one.
    pub finished: bool,
    /// Whether it stands in the file that is written now.
    pub last_file: bool,
}

/// Forward reading.
#[derive(Debug)]
pub(crate) struct Lines {
    waiting: VecDeque<PathBuf>,
    /// Where the first of them is to be read from.
    skip: u64,
    count: u64,
    open: Option<(PathBuf, File)>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    current: (usize, usize),
}

impl Lines {
    pub fn open(files: &Files) -> Result<Self, LogError> {
        Ok(Self::of(files.all()?.into()))
    }

    /// From a place on.
    pub fn open_at(files: &Files, place: &Place) -> Result<Self, LogError> {
        let all = files.all()?.into_iter();
        Ok(Self {
            skip: place.offset,
            ..Self::of(all.skip_while(|path| *path != place.path).collect())
        })
    }

    /// Of one file.
    pub fn of(waiting: VecDeque<PathBuf>) -> Self {
        Self {
            count: u64::try_from(waiting.len()).unwrap_or(0),
            waiting,
            skip: 0,
            open: None,
            buffer: vec![0; BLOCK],
            start: 0,
            end: 0,
            current: (0, 0),
        }
    }

    /// How many files there are.
    pub const fn files(&self) -> u64 {
        self.count
    }

    /// The line that was given last.
    pub fn current(&self) -> &[u8] {
        self.buffer.get(self.current.0..self.current.1).unwrap_or_default()
    }

    pub fn next(&mut self) -> Result<Option<Line<'_>>, LogError> {
        let mut searched = self.start;
        loop {
            let fresh = self.buffer.get(searched..self.end).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', fresh) {
                self.current = (self.start, searched + at);
                self.start = searched + at + 1;
                return Ok(Some(self.line(true)));
            }
            let read = self.fill()?;
            if read > 0 {
                searched = self.end - read;
            } else if self.start < self.end {
                self.current = (self.start, self.end);
                self.start = self.end;
                return Ok(Some(self.line(false)));
            } else if !self.next_file()? {
                return Ok(None);
            } else {
                searched = self.start;
            }
        }
    }

    fn line(&self, finished: bool) -> Line<'_> {
        Line {
            bytes: self.current(),
            finished,
            last_file: self.waiting.is_empty(),
        }
    }

    /// Reads on behind what is there; the unread part moves to the front.
    fn fill(&mut self) -> Result<usize, LogError> {
        let Some((path, file)) = &mut self.open else {
            return Ok(0);
        };
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end * 2, 0);
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        let read = loop {
            match file.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(at_path(path))?,
            }
        };
        self.end += read;
        Ok(read)
    }

    fn next_file(&mut self) -> Result<bool, LogError> {
        self.open = None;
        let Some(path) = self.waiting.pop_front() else {
            return Ok(false);
        };
        let mut file = File::open(&path).map_err(at_path(&path))?;
        match std::mem::take(&mut self.skip) {
            0 => {}
            skip => {
                file.seek(SeekFrom::Start(skip)).map_err(at_path(&path))?;
            }
        }
        self.open = Some((path, file));
        Ok(true)
    }
}

/// Backward reading: the last line first. An unfinished last line is left out.
#[derive(Debug)]
pub(crate) struct Backwards {
    /// The newest file last.
    waiting: Vec<PathBuf>,
    open: Option<(PathBuf, File)>,
    /// Where the part that was not read yet ends.
    position: u64,
    /// Bytes from `position` on; lines are taken from its end.
    buffer: Vec<u8>,
}

impl Backwards {
    pub fn open(files: &Files) -> Result<Self, LogError> {
        Ok(Self {
            waiting: files.all()?,
            open: None,
            position: 0,
            buffer: Vec::new(),
        })
    }

    /// The line before, without its line break.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, LogError> {
        loop {
            // `buffer` ends with the line break of the line to be given, or is empty.
            if let Some(inner) = self.buffer.strip_suffix(b"\n") {
                if let Some(at) = memchr::memrchr(b'\n', inner) {
                    let line = inner.get(at + 1..).unwrap_or_default().to_vec();
                    self.buffer.truncate(at + 1);
                    return Ok(Some(line));
                }
                if self.position == 0 {
                    let line = inner.to_vec();
                    self.buffer.clear();
                    return Ok(Some(line));
                }
            }
            if self.position > 0 {
                self.read_before()?;
            } else if !self.file_before()? {
                return Ok(None);
            }
        }
    }

    /// The place behind the line that was given last.
    pub fn place(&self, last: &[u8]) -> Place {
        let length = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Place {
            path: self.open.as_ref().map(|(path, _)| path.clone()).unwrap_or_default(),
            offset: self.position + length(&self.buffer) + length(last) + 1,
        }
    }

    fn read_before(&mut self) -> Result<(), LogError> {
        let Some((path, file)) = &mut self.open else {
            return Ok(());
        };
        let size = self
            .position
            .min(BLOCK as u64)
            .max(self.buffer.len() as u64)
            .min(self.position);
        self.position -= size;
        let mut block = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + self.buffer.len());
        file.seek(SeekFrom::Start(self.position))
            .and_then(|_| file.take(size).read_to_end(&mut block))
            .map_err(at_path(path))?;
        let first = self.buffer.is_empty();
        block.extend_from_slice(&self.buffer);
        if first {
            // What follows the last line break of a file is no line.
            let end = memchr::memrchr(b'\n', &block).map_or(0, |at| at + 1);
            block.truncate(end);
        }
        self.buffer = block;
        Ok(())
    }

    fn file_before(&mut self) -> Result<bool, LogError> {
        let Some(path) = self.waiting.pop() else {
            return Ok(false);
        };
        let file = File::open(&path).map_err(at_path(&path))?;
        self.position = file.metadata().map_err(at_path(&path))?.len();
        self.buffer.clear();
        self.open = Some((path, file));
        Ok(true)
    }
}

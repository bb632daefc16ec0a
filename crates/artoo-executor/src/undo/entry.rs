//! One change that can be taken back: what was there, and what was put there (design §8).
//!
//! Owns the stored form, `NNNNNN.json` beside `NNNNNN.kept`. Must not change anything outside the store.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::abandoned::Abandoned;
use crate::anchored::{digest, digest_of};

/// Version of the stored form.
pub const FORMAT: u32 = 1;

/// What is, was or will be at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum State {
    /// Nothing.
    Absent,
    /// A file with this content (SHA-256).
    File {
        /// Of its content, in hexadecimal.
        sha256: String,
    },
    /// A file that was moved away as it was, without being read.
    Unread {
        /// Its length.
        bytes: u64,
        /// When it was changed last: seconds of the epoch, and the nanoseconds beyond.
        changed: (i64, i64),
    },
    /// A symbolic link to here.
    Link {
        /// Digest of where it leads.
        sha256: String,
    },
    /// A folder, whatever it holds.
    Folder,
    /// A pipe, a socket, a device.
    Other,
}

impl State {
    /// What is at a path now. A file is read whole, for as long as somebody waits for that.
    pub(crate) fn at(path: &Path, abandoned: &Abandoned) -> io::Result<Self> {
        Self::of(path, |_| {
            Ok(Self::File {
                sha256: digest_of(abandoned.heeding(File::open(path)?))?,
            })
        })
    }

    /// The same without reading a file: for what is moved and not copied.
    pub(crate) fn unread(path: &Path) -> io::Result<Self> {
        Self::of(path, |meta| {
            Ok(Self::Unread {
                bytes: meta.len(),
                changed: (meta.mtime(), meta.mtime_nsec()),
            })
        })
    }

    fn of(path: &Path, file: impl FnOnce(&Metadata) -> io::Result<Self>) -> io::Result<Self> {
        let meta = match fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Self::Absent);
            }
            Err(error) => return Err(error),
        };
        let kind = meta.file_type();
        Ok(if kind.is_file() {
            file(&meta)?
        } else if kind.is_symlink() {
            Self::Link {
                sha256: digest(fs::read_link(path)?.as_os_str().as_bytes()),
            }
        } else if kind.is_dir() {
            Self::Folder
        } else {
            Self::Other
        })
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of the form in which this is written.
    pub format: u32,
    /// Its bytes, because a path need not be Unicode.
    path: StoredPath,
    /// What was there. Where it was something, it is kept.
    pub before: State,
    /// What was put there.
    pub after: State,
    /// Where the old one was laid aside for a moment, on a file system of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    aside: Option<StoredPath>,
    /// The file that was written before it took the place of the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temporary: Option<StoredPath>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum StoredPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&Path> for StoredPath {
    fn from(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }
}

impl StoredPath {
    fn to_path(&self) -> PathBuf {
        match self {
            Self::Text(text) => PathBuf::from(text),
            Self::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes.clone())),
        }
    }
}

impl Entry {
    pub(crate) fn new(path: &Path, before: State, after: State) -> Self {
        Self {
            format: FORMAT,
            path: path.into(),
            before,
            after,
            aside: None,
            temporary: None,
        }
    }

    /// Notes where the old thing is laid aside for a moment.
    #[must_use]
    pub(super) fn laid_aside(self, aside: &Path) -> Self {
        Self {
            aside: Some(aside.into()),
            ..self
        }
    }

    /// Notes which file is written first.
    #[must_use]
    pub(crate) fn by_way_of(self, temporary: &Path) -> Self {
        Self {
            temporary: Some(temporary.into()),
            ..self
        }
    }

    /// Whether the old thing was moved into the store, and not copied.
    pub(super) fn is_deletion(&self) -> bool {
        self.after == State::Absent
    }

    /// The path, absolute and without links when it was changed.
    pub fn path(&self) -> PathBuf {
        self.path.to_path()
    }

    pub(super) fn aside(&self) -> Option<PathBuf> {
        self.aside.as_ref().map(StoredPath::to_path)
    }

    pub(super) fn temporary(&self) -> Option<PathBuf> {
        self.temporary.as_ref().map(StoredPath::to_path)
    }
}

//! One change that can be taken back: what was there, and what was put there (design §8).
//!
//! Owns the stored form, `NNNNNN.json` beside `NNNNNN.kept`. Must not change anything outside the store.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

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
    /// What is at a path now.
    pub fn at(path: &Path) -> io::Result<Self> {
        let meta = match fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Self::Absent);
            }
            Err(error) => return Err(error),
        };
        let kind = meta.file_type();
        Ok(if kind.is_file() {
            Self::File {
                sha256: digest_of(File::open(path)?)?,
            }
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
    pub(super) fn new(path: &Path, before: State, after: State, aside: Option<&Path>) -> Self {
        Self {
            format: FORMAT,
            path: path.into(),
            before,
            after,
            aside: aside.map(StoredPath::from),
        }
    }

    /// The path, absolute and without links when it was changed.
    pub fn path(&self) -> PathBuf {
        self.path.to_path()
    }

    pub(super) fn aside(&self) -> Option<PathBuf> {
        self.aside.as_ref().map(StoredPath::to_path)
    }
}

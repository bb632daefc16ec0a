//! Checkpoints: where the chain stood, signed with the operator's key and kept outside the data folder (design §16).
//!
//! Whoever can write the data folder can write a whole new chain with a head that fits it. He cannot sign one. Owns the
//! key files (Ed25519) and the checkpoint file: one JSON object a line, so that a new one is added and none is lost.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use artoo_protocol::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::chain::Hash;
use crate::files::{LogError, append_whole};
use crate::verify::verify;

/// Version of a checkpoint.
const FORMAT: u32 = 1;

/// One signed statement about the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Version.
    pub format: u32,
    /// Number of the last record.
    pub n: u64,
    /// Its hash.
    pub hash: Hash,
    /// When it was signed.
    pub at: Timestamp,
    /// The public key, hex.
    pub key: String,
    /// Over the other fields, hex.
    pub signature: String,
}

/// What is wrong with a key or a checkpoint.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// The files.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A key file that holds none.
    #[error("{0}: this is no key of artoo")]
    NotAKey(String),
    /// There is a file already.
    #[error("{0} exists already; a key is never overwritten")]
    KeyExists(String),
    /// Nothing to sign yet.
    #[error("the log is empty: there is nothing to sign")]
    Empty,
    /// No random numbers.
    #[error("the system gave no random numbers")]
    NoRandomness,
    /// A line that is none.
    #[error("line {line} is no checkpoint: {reason}")]
    Unreadable {
        /// From 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// Not signed with this key.
    #[error("line {line}: the signature does not fit; the checkpoint was not made with this key, or it was changed")]
    Forged {
        /// From 1.
        line: usize,
    },
}

/// Makes a new pair of keys: the secret one in `path` (readable by its owner alone), the public one in `path` with `.pub`
/// behind it. Answers with the public key.
///
/// # Errors
/// [`CheckpointError`] when a file exists or cannot be written.
pub fn new_key(path: &Path) -> Result<String, CheckpointError> {
    let mut public = path.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    for path in [path, public.as_path()] {
        if path.exists() {
            return Err(CheckpointError::KeyExists(path.display().to_string()));
        }
    }
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| CheckpointError::NoRandomness)?;
    let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).map_err(|_| CheckpointError::NoRandomness)?;
    let key = hex(pair.public_key().as_ref());
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .and_then(|mut file| file.write_all(format!("{}\n", hex(document.as_ref())).as_bytes()))
        .map_err(|source| LogError::Io {
            path: path.to_owned(),
            source,
        })?;
    fs::write(&public, format!("{key}\n")).map_err(|source| LogError::Io { path: public, source })?;
    Ok(key)
}

/// Checks the log of a folder, signs where it stands and adds the statement to a file. A log that contradicts what the file holds is
/// not signed: the one who wrote it anew would have his signature.
///
/// # Errors
/// [`CheckpointError`] when the key cannot be read, the log is empty, broken or not the one that was signed before, a line of the file
/// was not signed with this key, or the file cannot be written.
pub fn sign(folder: &Path, key: &Path, at: Timestamp, to: &Path) -> Result<Checkpoint, CheckpointError> {
    let not_a_key = || CheckpointError::NotAKey(key.display().to_string());
    let pair = Ed25519KeyPair::from_pkcs8(&read_hex(key)?.ok_or_else(not_a_key)?).map_err(|_| not_a_key())?;
    let before = match fs::read_to_string(to) {
        Ok(text) => signed_with(pair.public_key().as_ref(), &text)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(source) => {
            return Err(CheckpointError::Log(LogError::Io {
                path: to.to_owned(),
                source,
            }));
        }
    };
    let link = verify(folder, &before)?.last;
    if link.n == 0 {
        return Err(CheckpointError::Empty);
    }
    let mut checkpoint = Checkpoint {
        format: FORMAT,
        n: link.n,
        hash: link.hash,
        at,
        key: hex(pair.public_key().as_ref()),
        signature: String::new(),
    };
    checkpoint.signature = hex(pair.sign(checkpoint.signed().as_bytes()).as_ref());
    let text = serde_json::to_string(&checkpoint).map_err(|e| LogError::Io {
        path: to.to_owned(),
        source: e.into(),
    })?;
    append_whole(to, &(text + "\n"))?;
    Ok(checkpoint)
}

/// Reads a checkpoint file and checks every signature with the operator's public key.
///
/// # Errors
/// [`CheckpointError`] when the key or a line cannot be read, or a signature does not fit.
pub fn read_checkpoints(path: &Path, public_key: &Path) -> Result<Vec<Checkpoint>, CheckpointError> {
    let not_a_key = || CheckpointError::NotAKey(public_key.display().to_string());
    let key = read_hex(public_key)?
        .filter(|key| key.len() == 32)
        .ok_or_else(not_a_key)?;
    let text = fs::read_to_string(path).map_err(|source| LogError::Io {
        path: path.to_owned(),
        source,
    })?;
    signed_with(&key, &text)
}

/// The checkpoints of a file, all of which must be signed with this key.
fn signed_with(key: &[u8], text: &str) -> Result<Vec<Checkpoint>, CheckpointError> {
    let verifier = UnparsedPublicKey::new(&ED25519, key);
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line_number = at + 1;
        let checkpoint: Checkpoint = serde_json::from_str(line).map_err(|e| CheckpointError::Unreadable {
            line: line_number,
            reason: e.to_string(),
        })?;
        let signature = unhex(&checkpoint.signature).unwrap_or_default();
        if verifier.verify(checkpoint.signed().as_bytes(), &signature).is_err() {
            return Err(CheckpointError::Forged { line: line_number });
        }
        found.push(checkpoint);
    }
    Ok(found)
}

impl Checkpoint {
    /// The text that is signed.
    fn signed(&self) -> String {
        let Self {
            format,
            n,
            hash,
            at,
            key,
            signature: _,
        } = self;
        format!("artoo audit checkpoint\n{format}\n{n}\n{hash}\n{at}\n{key}\n")
    }
}

fn read_hex(path: &Path) -> Result<Option<Vec<u8>>, LogError> {
    let text = fs::read_to_string(path).map_err(|source| LogError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(unhex(text.trim()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if bytes.is_empty() || !bytes.len().is_multiple_of(2) || !bytes.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    bytes
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

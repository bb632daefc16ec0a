//! Cassettes: model traffic recorded once and replayed without a model (design §18).
//!
//! Owns the file format, recording, replaying, and the check that a cassette holds no secret. Must not know roles: a
//! request is found again by what it says, see `normal`.
//!
//! A cassette is JSON Lines: a header, then one exchange a line.

mod normal;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use artoo_protocol::model::{ModelError, ModelReply, ModelRequest};
use artoo_protocol::ports::LanguageModel;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use self::normal::Normal;
pub use self::normal::Replacement;
use crate::secret::{Secret, mask, secret_shapes};

const FORMAT: &str = "artoo-cassette";
const VERSION: u32 = 1;

/// Why a cassette cannot be used.
#[derive(Debug, Error)]
pub enum CassetteError {
    /// The file cannot be read or written.
    #[error("the cassette {path}: {source}")]
    File {
        /// Where.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("the cassette {path}, line {line}: {reason}")]
    Line {
        /// Where.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Exchange {
    request: ModelRequest,
    answer: Answer,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Reply(ModelReply),
    Error(ModelError),
}

impl From<Answer> for Result<ModelReply, ModelError> {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Reply(reply) => Ok(reply),
            Answer::Error(error) => Err(error),
        }
    }
}

/// Passes requests on to a model and writes every exchange down, keys masked. The file is readable by its owner only.
pub struct Recorder {
    model: Arc<dyn LanguageModel>,
    file: Mutex<File>,
    secrets: Vec<Secret>,
    normal: Normal,
}

impl Recorder {
    /// A recorder into a new file. `secrets` are masked wherever they stand, like everything that looks like one;
    /// `replacements` make what differs from run to run, such as temporary paths, the same.
    ///
    /// # Errors
    /// [`CassetteError::File`] when the file exists already or cannot be made.
    pub fn create(
        path: &Path,
        model: Arc<dyn LanguageModel>,
        secrets: Vec<Secret>,
        replacements: Vec<Replacement>,
    ) -> Result<Self, CassetteError> {
        let fault = |source| CassetteError::File {
            path: path.to_owned(),
            source,
        };
        let mut file = create_private(path).map_err(fault)?;
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
        };
        write_line(&mut file, &header).map_err(fault)?;
        Ok(Self {
            model,
            file: Mutex::new(file),
            secrets,
            normal: Normal::new(replacements),
        })
    }

    fn write(&self, request: &ModelRequest, answer: Answer) -> io::Result<()> {
        let exchange = Exchange {
            request: request.clone(),
            answer,
        };
        let mut value = serde_json::to_value(&exchange)?;
        normal::each_text(&mut value, &|text| mask(&self.normal.recorded(text), &self.secrets));
        write_line(&mut self.file.lock().unwrap_or_else(PoisonError::into_inner), &value)
    }
}

#[async_trait]
impl LanguageModel for Recorder {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let result = self.model.complete(request).await;
        let answer = match &result {
            Ok(reply) => Answer::Reply(reply.clone()),
            Err(error) => Answer::Error(error.clone()),
        };
        // A recording with a hole would replay wrongly, so it is not passed over.
        self.write(request, answer).map_err(|error| ModelError::Rejected {
            status: 0,
            message: format!("the exchange could not be recorded: {error}"),
        })?;
        result
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// Answers from a cassette. Equal requests are answered in the order of recording; a request that is not there is an
/// error that names the first difference from the one that was expected.
pub struct Player {
    path: PathBuf,
    normal: Normal,
    exchanges: Mutex<Vec<Recorded>>,
}

struct Recorded {
    key: Vec<String>,
    answer: Answer,
    served: bool,
}

impl Player {
    /// Reads a cassette. `replacements` are those of the present run, with the marks of the recording.
    ///
    /// # Errors
    /// [`CassetteError`] when the file cannot be read or is no cassette of this version.
    pub fn open(path: &Path, replacements: Vec<Replacement>) -> Result<Self, CassetteError> {
        let normal = Normal::new(replacements);
        let mut exchanges = Vec::new();
        for (_, exchange) in read(path)? {
            exchanges.push(Recorded {
                key: normal.key(&exchange.request),
                answer: exchange.answer,
                served: false,
            });
        }
        Ok(Self {
            path: path.to_owned(),
            normal,
            exchanges: Mutex::new(exchanges),
        })
    }

    /// Exchanges that were not asked for yet.
    pub fn left(&self) -> usize {
        let exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.iter().filter(|recorded| !recorded.served).count()
    }

    fn missing(&self, key: &[String], exchanges: &[Recorded]) -> ModelError {
        // The nearest is the one that agrees longest, and of those the first.
        let agreement = |recorded: &Recorded| recorded.key.iter().zip(key).take_while(|(a, b)| a == b).count();
        let open = exchanges.iter().filter(|recorded| !recorded.served);
        let nearest = open.rev().max_by_key(|recorded| agreement(recorded));
        let difference = match nearest {
            None => "every recorded exchange was used already".to_owned(),
            Some(recorded) => {
                let at = agreement(recorded);
                let side = |key: &[String]| key.get(at).map_or("the end".to_owned(), |line| format!("`{line}`"));
                format!(
                    "the first difference is {}, recorded was {}",
                    side(key),
                    side(&recorded.key)
                )
            }
        };
        ModelError::Rejected {
            status: 0,
            message: format!(
                "the cassette {} does not hold this request: {difference}",
                self.path.display()
            ),
        }
    }
}

#[async_trait]
impl LanguageModel for Player {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let key = self.normal.key(request);
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        let found = exchanges
            .iter_mut()
            .find(|recorded| !recorded.served && recorded.key == key);
        let Some(recorded) = found else {
            return Err(self.missing(&key, &exchanges));
        };
        recorded.served = true;
        let restored = self.normal.restore(&recorded.answer);
        restored.unwrap_or_else(|| recorded.answer.clone()).into()
    }
}

/// Something in a cassette that looks like a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// From 1.
    pub line: usize,
    /// What it looks like, such as `provider key`.
    pub shape: &'static str,
}

/// Everything in a cassette that looks like a secret; empty when it may be shared.
///
/// # Errors
/// [`CassetteError`] when the file cannot be read or is no cassette.
pub fn secrets_in(path: &Path) -> Result<Vec<Finding>, CassetteError> {
    let mut findings = Vec::new();
    for (line, exchange) in read(path)? {
        let mut shapes = Vec::new();
        let mut value = serde_json::to_value(&exchange).unwrap_or(Value::Null);
        // Text by text: on the line itself quotes and line breaks are escaped.
        let seen = Mutex::new(&mut shapes);
        normal::each_text(&mut value, &|text| {
            seen.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(secret_shapes(text));
            text.to_owned()
        });
        shapes.sort_unstable();
        shapes.dedup();
        findings.extend(shapes.into_iter().map(|shape| Finding { line, shape }));
    }
    Ok(findings)
}

/// The exchanges with their line numbers.
fn read(path: &Path) -> Result<Vec<(usize, Exchange)>, CassetteError> {
    let text = std::fs::read_to_string(path).map_err(|source| CassetteError::File {
        path: path.to_owned(),
        source,
    })?;
    let fault = |line: usize, reason: String| CassetteError::Line {
        path: path.to_owned(),
        line,
        reason,
    };
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .filter(|(_, line)| !line.trim().is_empty());
    let header = lines
        .next()
        .and_then(|(_, line)| serde_json::from_str::<Header>(line).ok());
    match header {
        Some(header) if header.format == FORMAT && header.version == VERSION => {}
        Some(header) if header.format == FORMAT => {
            return Err(fault(
                1,
                format!("version {} is not known, only {VERSION}", header.version),
            ));
        }
        Some(_) | None => return Err(fault(1, "this is no cassette".to_owned())),
    }
    lines
        .map(|(at, line)| {
            Ok((
                at,
                serde_json::from_str(line).map_err(|error| fault(at, error.to_string()))?,
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests;

//! The one error of the program: a sentence, a remedy, an exit code (design §14).

use std::io::ErrorKind;
use std::path::Path;

use thiserror::Error;

/// Why the program ends without having run a task to its end.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct Failure {
    /// What is wrong, as one sentence without the leading `artoo:`.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Process exit code.
    pub code: u8,
}

impl Failure {
    /// Usage or configuration: exit 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            code: 2,
        }
    }

    /// A check found a difference, or a command could not do its work: exit 1.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            code: 1,
        }
    }

    /// A file that the person named cannot be written: where, why, and what to do.
    pub fn unwritable(path: &Path, error: &std::io::Error) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let hint = match (error.kind(), folder) {
            (ErrorKind::NotFound, Some(folder)) => {
                format!(
                    "there is no folder {0}: make it (mkdir -p {0}), or name another file",
                    folder.display()
                )
            }
            (ErrorKind::IsADirectory, _) => "it is a folder: name a file in it".to_owned(),
            (ErrorKind::NotADirectory, Some(folder)) => {
                format!("{} is no folder: name a file elsewhere", folder.display())
            }
            (ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem, _) => {
                "name a file in a folder in which you may write".to_owned()
            }
            (ErrorKind::StorageFull | ErrorKind::QuotaExceeded, _) => {
                "make room there, or name a file on another disk".to_owned()
            }
            _ => "name a file that can be written".to_owned(),
        };
        Self::usage(format!("{} cannot be written: {error}", path.display())).hint(hint)
    }

    /// The same with a remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error.to_string())
    }
}

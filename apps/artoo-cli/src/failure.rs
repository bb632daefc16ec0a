//! The one error of the program: a sentence, a remedy, an exit code (design §14).

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

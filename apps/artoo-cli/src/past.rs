//! What was said before in a conversation, kept for follow-ups in `sessions/NAME.json` (design §5, §20).
//!
//! Owns the file: five turns, readable by its owner only, masked like the journal, replaced as a whole. Decides nothing about
//! what a follow-up means.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use artoo_bus::journal::Redactor;
use artoo_protocol::TaskId;
use artoo_protocol::message::Turn;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::output;

/// Turns that R1 is shown, and so all that is kept.
const TURNS: usize = 5;
/// The conversation on a terminal that nobody gave a name.
const LAST: &str = "last";
/// Characters of a name.
const NAME_MAX: usize = 64;

/// The turns of a conversation.
pub struct Past {
    turns: Vec<Turn>,
    /// Tasks of this process, oldest first.
    ran: Vec<TaskId>,
    file: Option<PathBuf>,
    redactor: Redactor,
}

/// The file.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    version: u32,
    turns: Vec<Turn>,
}

impl Past {
    /// A single task that belongs to no conversation.
    pub fn none() -> Self {
        Self {
            turns: Vec::new(),
            ran: Vec::new(),
            file: None,
            redactor: Redactor::new([]),
        }
    }

    /// The conversation of this name, gone on with if there is one.
    ///
    /// # Errors
    /// [`Failure`] (exit 2) when the name cannot be one, or the file is there and cannot be read.
    pub fn named(data_dir: &Path, name: &str, redactor: Redactor) -> Result<Self, Failure> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.chars().count() > NAME_MAX || !name.chars().all(plain) {
            let hint = format!("use letters, digits, - and _, at most {NAME_MAX}");
            return Err(Failure::usage(format!("`{name}` cannot be the name of a session")).hint(hint));
        }
        let file = data_dir.join("sessions").join(format!("{name}.json"));
        let turns = match std::fs::read(&file) {
            Ok(bytes) => read(&bytes).map_err(|why| {
                Failure::usage(format!("the session {} cannot be read: {why}", file.display()))
                    .hint("remove the file, or use another name")
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return Err(Failure::usage(format!(
                    "the session {} cannot be read: {error}",
                    file.display()
                )));
            }
        };
        Ok(Self {
            turns,
            ran: Vec::new(),
            file: Some(file),
            redactor,
        })
    }

    /// A new conversation on a terminal, which can be gone on with as `last`.
    pub fn begun(data_dir: &Path, redactor: Redactor) -> Self {
        Self {
            turns: Vec::new(),
            ran: Vec::new(),
            file: Some(data_dir.join("sessions").join(format!("{LAST}.json"))),
            redactor,
        }
    }

    /// The last turns, oldest first.
    pub fn turns(&self) -> Vec<Turn> {
        self.turns.clone()
    }

    /// The tasks that ran in this process, oldest first.
    pub fn ran(&self) -> &[TaskId] {
        &self.ran
    }

    /// Takes note of a task that ran.
    pub fn note(&mut self, task: TaskId) {
        self.ran.push(task);
    }

    /// Adds a turn. A file that cannot be written costs the memory of it, never the result.
    pub fn add(&mut self, turn: Turn) {
        self.turns.push(turn);
        let surplus = self.turns.len().saturating_sub(TURNS);
        self.turns.drain(..surplus);
        if let Some(file) = &self.file
            && let Err(error) = self.write(file)
        {
            output::note(&format!(
                "artoo: the session was not saved in {}: {error}",
                file.display()
            ));
        }
    }

    /// What masks the secrets of this conversation.
    pub const fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    fn write(&self, file: &Path) -> std::io::Result<()> {
        let masked = |text: &str| self.redactor.text(text);
        let turns = self.turns.iter().map(|turn| Turn {
            input: masked(&turn.input),
            summary: masked(&turn.summary),
        });
        let kept = Kept {
            version: 1,
            turns: turns.collect(),
        };
        if let Some(folder) = file.parent() {
            crate::data_folder::make_private(folder).map_err(|failure| std::io::Error::other(failure.message))?;
        }
        let part = file.with_extension("part");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&part)?.write_all(&serde_json::to_vec(&kept)?)?;
        std::fs::rename(part, file)
    }
}

fn read(bytes: &[u8]) -> Result<Vec<Turn>, String> {
    let kept: Kept = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if kept.version == 1 {
        Ok(kept.turns)
    } else {
        Err(format!("version {} is not known, only 1", kept.version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(input: &str) -> Turn {
        Turn {
            input: input.into(),
            summary: format!("came of {input}"),
        }
    }

    #[test]
    fn the_last_five_turns_of_a_session_are_there_again_masked() {
        let dir = tempfile::tempdir().unwrap();
        let redactor = || Redactor::new(["topsecretvalue".to_owned()]);
        let mut past = Past::named(dir.path(), "work_1", redactor()).unwrap();
        assert_eq!(past.turns(), []);
        for n in 0..7 {
            past.add(turn(&format!("say topsecretvalue {n}")));
        }
        let again = Past::named(dir.path(), "work_1", redactor()).unwrap().turns();
        assert_eq!(again.len(), 5);
        assert!(
            again[0].input.ends_with(" 2") && !again[0].summary.contains("topsecret"),
            "{again:?}"
        );
        assert_eq!(Past::named(dir.path(), "other", redactor()).unwrap().turns(), []);
    }

    #[test]
    fn a_new_conversation_on_a_terminal_is_the_last_one_from_its_first_turn_on() {
        let dir = tempfile::tempdir().unwrap();
        let redactor = || Redactor::new([]);
        Past::begun(dir.path(), redactor()).add(turn("old"));
        let mut new = Past::begun(dir.path(), redactor());
        assert_eq!(new.turns(), []);
        new.add(turn("new"));
        assert_eq!(
            Past::named(dir.path(), "last", redactor()).unwrap().turns(),
            [turn("new")]
        );
    }

    #[test]
    fn a_name_that_is_none_and_a_broken_file_are_said() {
        let dir = tempfile::tempdir().unwrap();
        let long = "x".repeat(65);
        for name in ["", "../x", "a b", "a/b", long.as_str()] {
            assert_eq!(
                Past::named(dir.path(), name, Redactor::new([])).err().unwrap().code,
                2,
                "{name}"
            );
        }
        std::fs::create_dir(dir.path().join("sessions")).unwrap();
        for text in ["", "{}x", r#"{"version":9,"turns":[]}"#] {
            std::fs::write(dir.path().join("sessions/a.json"), text).unwrap();
            assert_eq!(
                Past::named(dir.path(), "a", Redactor::new([])).err().unwrap().code,
                2,
                "{text}"
            );
        }
    }
}

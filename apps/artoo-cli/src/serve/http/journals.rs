//! The journals of a data folder, followed while other processes write them (design §17).
//!
//! Owns how far each was read. Every whole line is read once; how much is read at a time is bounded, newest journals first, so that a folder
//! full of them is caught up with step by step. Writes nothing.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{BufReader, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use artoo_bus::Price;
use artoo_bus::journal::JournalError;
use artoo_bus::journal::read::{self, Found, Reader};
use artoo_protocol::Timestamp;

use super::watch::{Standing, Watch};

/// Most journals that are followed: those that were written last.
const NEWEST: usize = 2_000;
/// Bytes that are read at one look, of all journals together.
const AT_ONCE: u64 = 32 << 20;

/// Every journal of a folder, as far as it was read.
pub struct Journals {
    folder: PathBuf,
    price: Price,
    tails: HashMap<PathBuf, Tail>,
    /// Journals that are too old to be followed.
    pub left_out: usize,
}

/// One of them.
pub struct Tail {
    /// What is known of its task.
    pub watch: Watch,
    /// What is wrong behind what was read.
    pub damage: Option<String>,
    /// Which file it is.
    file: (u64, u64),
    /// Whole lines that were read, and their length.
    lines: u64,
    bytes: u64,
    /// How the file looked at the last look, and when it was last read to its end.
    state: State,
    read_to_end: Option<State>,
}

/// How a file looks from outside: its length, and when it was written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    written: (i64, i64),
    size: u64,
}

impl State {
    fn of(data: &Metadata) -> Self {
        Self {
            written: (data.mtime(), data.mtime_nsec()),
            size: data.len(),
        }
    }
}

impl Journals {
    /// Those in the folder of the journals, from their beginnings.
    pub fn new(folder: PathBuf, price: Price) -> Self {
        Self {
            folder,
            price,
            tails: HashMap::new(),
            left_out: 0,
        }
    }

    /// Reads what has come since the last look.
    ///
    /// # Errors
    /// [`JournalError`] when the folder cannot be read.
    pub fn look(&mut self) -> Result<(), JournalError> {
        let listed = read::list(&self.folder)?.into_iter();
        // One that is gone by now was renamed, or dropped.
        let mut found: Vec<(Found, Metadata)> = listed
            .filter_map(|found| std::fs::metadata(&found.path).ok().map(|data| (found, data)))
            .collect();
        found.sort_by_key(|(_, data)| std::cmp::Reverse(State::of(data)));
        self.left_out = found.len().saturating_sub(NEWEST);
        found.truncate(NEWEST);
        let mut tails = HashMap::with_capacity(found.len());
        let mut budget = AT_ONCE;
        for (found, data) in found {
            let known = self.tails.remove(&found.path).filter(|tail| tail.goes_on_in(&data));
            let mut tail = known.unwrap_or_else(|| Tail::new(&found, &data, &self.price));
            tail.state = State::of(&data);
            if tail.is_behind() && budget > 0 {
                budget = budget.saturating_sub(tail.read(&found.path, budget));
            }
            tails.insert(found.path, tail);
        }
        self.tails = tails;
        Ok(())
    }

    /// All of them, the newest task first.
    pub fn newest_first(&self) -> Vec<&Tail> {
        let mut all: Vec<&Tail> = self.tails.values().collect();
        all.sort_by(|a, b| {
            let (a, b) = (&a.watch, &b.watch);
            b.started_at().cmp(&a.started_at()).then_with(|| a.id().cmp(b.id()))
        });
        all
    }

    /// How many were not read to the end yet.
    pub fn behind(&self) -> usize {
        self.tails.values().filter(|tail| tail.is_behind()).count()
    }
}

impl Tail {
    fn new(found: &Found, data: &Metadata, price: &Price) -> Self {
        Self {
            watch: Watch::new(found.task_id.clone(), price.clone()),
            damage: None,
            file: (data.dev(), data.ino()),
            lines: 0,
            bytes: 0,
            state: State::of(data),
            read_to_end: None,
        }
    }

    /// Whether the file is still the one that was read. A damaged one that was written since is read anew: somebody may have put back a copy.
    fn goes_on_in(&self, data: &Metadata) -> bool {
        (data.dev(), data.ino()) == self.file
            && data.len() >= self.bytes
            && (self.damage.is_none() || State::of(data) == self.state)
    }

    /// Whether there is something to read. A torn line at the end is read again when the file has changed: it may be whole then, or another.
    fn is_behind(&self) -> bool {
        self.damage.is_none() && self.read_to_end != Some(self.state)
    }

    /// Reads on; how many bytes that took.
    fn read(&mut self, path: &Path, budget: u64) -> u64 {
        let file = File::open(path).and_then(|mut file| file.seek(SeekFrom::Start(self.bytes)).map(|_| file));
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                self.damage = Some(format!("cannot read the journal: {error}"));
                return 0;
            }
        };
        let mut reader = Reader::after(BufReader::new(file), self.lines);
        while reader.bytes() < budget {
            match reader.next() {
                Some(Ok(record)) => {
                    self.lines = record.n;
                    self.watch.hear(record);
                }
                Some(Err(error)) => {
                    self.damage = Some(error.to_string());
                    break;
                }
                None => {
                    self.read_to_end = Some(self.state);
                    break;
                }
            }
        }
        self.bytes += reader.bytes();
        reader.bytes()
    }

    /// Where its task stands, while the data folder has been held since this moment.
    pub fn standing(&self, held: Option<Timestamp>) -> Standing {
        let last = self.watch.last_at();
        if self.damage.is_some() {
            Standing::Damaged
        } else if self.watch.has_ended() {
            Standing::Finished
        } else if held.is_some() && last >= held {
            Standing::Running
        } else if self.is_behind() {
            Standing::Reading
        } else if last.is_none() {
            Standing::Damaged
        } else {
            Standing::Interrupted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::sync::Arc;

    const REPLANNED: &str = include_str!("../../../../../fixtures/journals/replanned.jsonl");

    fn folder() -> (tempfile::TempDir, PathBuf, Journals) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("collect_email_addresses_074f2fe9.jsonl");
        let journals = Journals::new(place.path().to_owned(), Arc::new(|_, _| 0.0));
        (place, path, journals)
    }

    fn stands(journals: &Journals, held: Option<Timestamp>) -> Standing {
        journals.newest_first()[0].standing(held)
    }

    #[test]
    fn a_journal_is_followed_line_by_line() {
        let (_place, path, mut journals) = folder();
        let mut file = File::create(&path).unwrap();
        let held = Some(Timestamp::from_millis(0));
        let lines: Vec<&str> = REPLANNED.split_inclusive('\n').collect();
        let mut replans = Vec::new();
        for line in &lines {
            // In two pieces: a torn line is not read, and not lost either.
            let (begin, rest) = line.split_at(line.len() / 2);
            for piece in [begin, rest] {
                file.write_all(piece.as_bytes()).unwrap();
                journals.look().unwrap();
            }
            let tail = journals.newest_first()[0];
            replans.push(tail.watch.row(tail.standing(held), None)["replans"].as_u64().unwrap());
        }
        assert_eq!((replans.first(), replans.last()), (Some(&0), Some(&1)));
        assert_eq!(stands(&journals, held), Standing::Finished);

        let (_place, path, mut whole) = folder();
        std::fs::write(&path, REPLANNED).unwrap();
        whole.look().unwrap();
        let row = |journals: &Journals| journals.newest_first()[0].watch.row(Standing::Finished, None);
        assert_eq!(row(&whole), row(&journals), "read at once and piece by piece");
        assert!(row(&whole)["calls"].as_u64().unwrap() > 0);
    }

    #[test]
    fn where_a_task_stands() {
        let (_place, path, mut journals) = folder();
        let begun: String = REPLANNED.split_inclusive('\n').take(20).collect();
        std::fs::write(&path, &begun).unwrap();
        journals.look().unwrap();
        let last = journals.newest_first()[0].watch.last_at().unwrap();
        assert_eq!(stands(&journals, None), Standing::Interrupted);
        assert_eq!(stands(&journals, Some(last)), Standing::Running);
        let later = Timestamp::from_millis(last.as_millis() + 1);
        assert_eq!(
            stands(&journals, Some(later)),
            Standing::Interrupted,
            "its process is another one"
        );

        std::fs::write(&path, format!("{begun}not a record\n")).unwrap();
        journals.look().unwrap();
        assert_eq!(stands(&journals, Some(last)), Standing::Damaged);
        std::fs::write(&path, &begun).unwrap();
        journals.look().unwrap();
        assert_eq!(stands(&journals, None), Standing::Interrupted, "a copy was put back");

        std::fs::write(&path, "").unwrap();
        journals.look().unwrap();
        assert_eq!(stands(&journals, None), Standing::Damaged, "nothing is in it");
        std::fs::remove_file(&path).unwrap();
        journals.look().unwrap();
        assert!(journals.newest_first().is_empty());
    }
}

//! `artoo memory`: the operator's view of R5 (design §15). Looking works while another artoo holds the store, on a copy of it;
//! changing needs the store itself.

mod change;
mod group;
mod import;
mod look;
mod recalled;
mod repair;
mod words;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use artoo_bus::SystemClock;
use artoo_memory::Records;
use artoo_memory::kv::{Kv, LevelKv, LevelSettings, Notice};
use artoo_protocol::ports::Clock;
use artoo_protocol::text::one_line;
use artoo_protocol::{MegramId, Timestamp};

use crate::args::{MemoryCommand, Options};
use crate::data_folder::DataFolder;
use crate::failure::Failure;
use crate::output;
use crate::settings::{self, Environment, ModelChoice};
use crate::system;

pub use change::{forget, forgotten_line, remember};
pub use look::stats;
pub use recalled::{Recalled, recalled};

/// The store's folder within the data folder.
const STORE: &str = "memory.leveldb";

/// Runs one of them; the exit code.
///
/// # Errors
/// [`Failure`] when the store cannot be read, or cannot be changed.
pub async fn run(command: &MemoryCommand, options: &Options, env: &Environment) -> Result<u8, Failure> {
    let data = settings::data_dir(options, env)?;
    match command {
        MemoryCommand::Remember { text, json } => {
            let redactor = system::redactor(&settings::load(options, env)?, env);
            let store = Store::to_change(&data)?;
            change::remember_and_say(&store.records, &text.join(" "), &redactor, store.now, *json)
        }
        MemoryCommand::Import { file, json } => {
            let redactor = system::redactor(&settings::load(options, env)?, env);
            import::import(&data, file, &redactor, *json)
        }
        MemoryCommand::Forget { id, json } => match Store::if_there(&data)? {
            Some(store) => change::forget_and_say(&store.records, id, store.now, *json),
            None => Err(unknown(id)),
        },
        MemoryCommand::Repair { json } => match Store::if_there(&data)? {
            Some(store) => repair::repair(&store, *json),
            None => Ok(repair::nothing_to_repair(*json)),
        },
        MemoryCommand::Dream { dry_run: false, json } => match Store::if_there(&data)? {
            Some(store) => change::dream(&store.records, &settings::load(options, env)?, env, *json).await,
            None => Ok(look::nothing_to_dream(*json)),
        },
        MemoryCommand::Dream { dry_run: true, json } => {
            let has_model = settings::load(options, env)?.brain != ModelChoice::Offline;
            let store = Store::to_look(&data)?;
            look::dream(&store.records, store.now, has_model, *json).map(|()| 0)
        }
        reading => {
            let store = Store::to_look(&data)?;
            let code = look::run(reading, &store, &data)?;
            // Whoever keeps an export must know that it is not whole.
            let is_short = store.is_damaged() && matches!(reading, MemoryCommand::Export { .. });
            Ok(code.max(u8::from(is_short)))
        }
    }
}

/// An open store.
pub struct Store {
    /// Its records.
    pub records: Arc<Records>,
    /// When the command was given.
    pub now: Timestamp,
    /// What was found to be damaged: then what is seen is what could be read of the store.
    damage: Mutex<Damage>,
    /// Whether it is a copy.
    is_copy: bool,
    /// Held while the store may be changed.
    _data: Option<DataFolder>,
}

#[derive(Default)]
struct Damage {
    said: Vec<String>,
    /// Blocks, log sections or whole files that could not be read.
    pieces_lost: usize,
}

impl Store {
    /// A copy to look at; an empty one where nothing was ever remembered.
    fn to_look(data: &Path) -> Result<Self, Failure> {
        let folder = data.join(STORE);
        let now = SystemClock.now();
        let kv: Arc<dyn Kv> = if place(&folder)?.is_some() {
            let kv = LevelKv::open_snapshot(&folder, &now.to_string(), LevelSettings::default());
            Arc::new(kv.map_err(|e| broken(&e))?)
        } else {
            Arc::new(artoo_memory::kv::InMemoryKv::new())
        };
        Self::of(kv, now, None)
    }

    /// The store itself, made where there is none.
    fn to_change(data: &Path) -> Result<Self, Failure> {
        let now = SystemClock.now();
        let held = DataFolder::open(data, now)?;
        let kv =
            LevelKv::open(&data.join(STORE), &now.to_string(), LevelSettings::default()).map_err(|e| broken(&e))?;
        Self::of(Arc::new(kv), now, Some(held))
    }

    /// The store itself, where there is one.
    fn if_there(data: &Path) -> Result<Option<Self>, Failure> {
        match place(&data.join(STORE))? {
            Some(_) => Self::to_change(data).map(Some),
            None => Ok(None),
        }
    }

    fn of(kv: Arc<dyn Kv>, now: Timestamp, data: Option<DataFolder>) -> Result<Self, Failure> {
        let records = Records::open(kv).map_err(|e| broken(&e))?;
        let store = Self {
            records: Arc::new(records),
            now,
            damage: Mutex::default(),
            is_copy: data.is_none(),
            _data: data,
        };
        store.is_damaged();
        Ok(store)
    }

    /// Whether damage was found up to now; says what, once. Tables are checked as they are read, so it may come late.
    pub fn is_damaged(&self) -> bool {
        let mut known = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        for notice in self.records.kv().take_notices() {
            let Notice::Quarantined {
                reason, pieces_lost, ..
            } = &notice;
            output::note(&if self.is_copy {
                format!(
                    "artoo: memory is damaged ({reason}): this is what can be read of it; artoo memory repair mends what can be \
                     mended and keeps the damaged files"
                )
            } else {
                format!("artoo: {notice}")
            });
            known.said.push(reason.clone());
            known.pieces_lost += pieces_lost;
        }
        let unreadable = self.records.take_damaged();
        if unreadable > 0 {
            let what = format!("{unreadable} memories have a wrong checksum");
            output::note(&format!("artoo: {what} and are left out"));
            known.said.push(what);
        }
        !known.said.is_empty()
    }

    /// What was found to be damaged up to now.
    pub fn damage(&self) -> Vec<String> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).said.clone()
    }

    /// How many pieces of its files could not be read up to now.
    fn pieces_lost(&self) -> usize {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).pieces_lost
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.is_damaged();
        // Everything that was acknowledged has been flushed; this releases the files.
        let _ = self.records.kv().close();
    }
}

/// Where the store lies, if there is one.
fn place(folder: &Path) -> Result<Option<PathBuf>, Failure> {
    // What cannot be looked at is not empty.
    LevelKv::place(folder).map_err(|error| Failure::failed(format!("cannot read {}: {error}", folder.display())))
}

/// The failure of a store that does not do what was asked.
fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("memory: {error}"))
}

fn unknown(id: &str) -> Failure {
    Failure::usage(format!("there is no memory `{}`", one_line(id, 60))).hint("artoo memory list shows those there are")
}

/// The moment that a command asks about.
fn instant(at: Option<&str>, now: Timestamp) -> Result<Timestamp, Failure> {
    at.map_or(Ok(now), |text| {
        Timestamp::parse(text).map_err(|e| Failure::usage(e.to_string()))
    })
}

/// The one memory that an id, or the beginning or end of one, means.
fn find(records: &Records, text: &str) -> Result<MegramId, Failure> {
    let exact = MegramId::new(text);
    if text.is_empty() {
        return Err(unknown(text));
    }
    if records.get(&exact).map_err(|e| broken(&e))?.is_some() {
        return Ok(exact);
    }
    let mut found: Vec<MegramId> = Vec::new();
    each(records, &mut |megram| {
        let id = megram.id.as_str();
        if id.starts_with(text) || id.ends_with(text) {
            found.push(megram.id);
        }
        Ok(())
    })?;
    match found.as_slice() {
        [] => Err(unknown(text)),
        [id] => Ok(id.clone()),
        [first, second, ..] => Err(Failure::usage(format!(
            "`{}` means {} memories, {first} and {second} among them",
            one_line(text, 60),
            found.len()
        ))),
    }
}

/// Goes through every record, by id.
fn each(
    records: &Records,
    on_record: &mut dyn FnMut(artoo_protocol::message::Megram) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut outcome = Ok(());
    let mut see = |megram| {
        outcome = on_record(megram);
        if outcome.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    records.each(&mut see).map_err(|e| broken(&e))?;
    outcome
}

/// Where standard input or a file is read from.
fn input(file: &Path) -> Result<Box<dyn std::io::BufRead>, Failure> {
    if file == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let opened = std::fs::File::open(file);
    let opened = opened.map_err(|e| Failure::usage(format!("cannot read {}: {e}", file.display())))?;
    Ok(Box::new(std::io::BufReader::new(opened)))
}

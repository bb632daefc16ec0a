//! `artoo memory`: the operator's view of R5 (design §15). Looking works while another artoo holds the store, on a copy of it;
//! changing needs the store itself.

mod change;
mod group;
mod look;
mod words;

use std::path::Path;
use std::sync::Arc;

use artoo_bus::SystemClock;
use artoo_memory::Records;
use artoo_memory::kv::{Kv, LevelKv, LevelSettings};
use artoo_protocol::ports::Clock;
use artoo_protocol::text::one_line;
use artoo_protocol::{MegramId, Timestamp};

use crate::args::{MemoryCommand, Options};
use crate::data_folder::DataFolder;
use crate::failure::Failure;
use crate::output;
use crate::settings::{self, Environment, ModelChoice};

pub use change::{forget, forgotten_line, remember};
pub use look::{recalled, stats};

/// The store's folder within the data folder.
const STORE: &str = "memory.leveldb";
/// How many records are read at once where all are gone through.
const PAGE: usize = 256;

/// Runs one of them; the exit code.
///
/// # Errors
/// [`Failure`] when the store cannot be read, or cannot be changed.
pub async fn run(command: &MemoryCommand, options: &Options, env: &Environment) -> Result<u8, Failure> {
    let data = settings::data_dir(options, env)?;
    match command {
        MemoryCommand::Remember { text, json } => {
            let store = Store::to_change(&data)?;
            change::remember_and_say(&store.records, &text.join(" "), store.now, *json)
        }
        MemoryCommand::Import { file, json } => change::import(&data, file, *json),
        MemoryCommand::Forget { id, json } => match Store::if_there(&data)? {
            Some(store) => change::forget_and_say(&store.records, id, store.now, *json),
            None => Err(unknown(id)),
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
            look::run(reading, &store, &data)
        }
    }
}

/// An open store.
pub struct Store {
    /// Its records.
    pub records: Arc<Records>,
    /// When the command was given.
    pub now: Timestamp,
    /// Whether what is seen is what could be read of a damaged store.
    pub is_damaged: bool,
    /// Held while the store may be changed.
    _data: Option<DataFolder>,
}

impl Store {
    /// A copy to look at; an empty one where nothing was ever remembered.
    fn to_look(data: &Path) -> Result<Self, Failure> {
        let folder = data.join(STORE);
        let now = SystemClock.now();
        let kv: Arc<dyn Kv> = match std::fs::metadata(&folder) {
            Ok(_) => {
                let kv = LevelKv::open_snapshot(&folder, &now.to_string(), LevelSettings::default());
                Arc::new(kv.map_err(|e| broken(&e))?)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Arc::new(artoo_memory::kv::InMemoryKv::new()),
            // What cannot be looked at is not empty.
            Err(error) => return Err(Failure::failed(format!("cannot read {}: {error}", folder.display()))),
        };
        let is_damaged = !kv.take_notices().is_empty();
        if is_damaged {
            output::note(
                "artoo: memory is damaged: this is what can be read of it; the next task repairs it and keeps the damaged files",
            );
        }
        Self::of(kv, now, is_damaged, None)
    }

    /// The store itself, made where there is none.
    fn to_change(data: &Path) -> Result<Self, Failure> {
        let now = SystemClock.now();
        let held = DataFolder::open(data, now)?;
        let kv =
            LevelKv::open(&data.join(STORE), &now.to_string(), LevelSettings::default()).map_err(|e| broken(&e))?;
        for notice in kv.take_notices() {
            output::note(&format!("artoo: {notice}"));
        }
        Self::of(Arc::new(kv), now, false, Some(held))
    }

    /// The store itself, where there is one.
    fn if_there(data: &Path) -> Result<Option<Self>, Failure> {
        if data.join(STORE).exists() {
            Self::to_change(data).map(Some)
        } else {
            Ok(None)
        }
    }

    fn of(kv: Arc<dyn Kv>, now: Timestamp, is_damaged: bool, data: Option<DataFolder>) -> Result<Self, Failure> {
        let records = Records::open(kv).map_err(|e| broken(&e))?;
        Ok(Self {
            records: Arc::new(records),
            now,
            is_damaged,
            _data: data,
        })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Everything that was acknowledged has been flushed; this releases the files.
        let _ = self.records.kv().close();
    }
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
    let mut after: Option<MegramId> = None;
    loop {
        let page = records.page(after.as_ref(), PAGE).map_err(|e| broken(&e))?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.id.clone());
        for megram in page {
            on_record(megram)?;
        }
    }
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

//! Another LevelDB program on the store: Google's library reads what this one wrote, with the keys of the schema.

use super::open;
use super::skipping::skipped;
use artoo_memory::{Edit, Records};
use artoo_protocol::message::{Level, MacroState, Megram};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, Timestamp, Valence};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// What the program says when it has no library to read with.
const NO_LIBRARY: i32 = 77;

fn megram(number: u32) -> Megram {
    Megram {
        id: MegramId::new(format!("{number:05}")),
        level: if number.is_multiple_of(7) { Level::K } else { Level::M },
        created_at: Timestamp::from_millis(1_772_184_600_000 + i64::from(number)),
        last_recalled_at: None,
        space: ["tool:shell", "intent:数_一_数", "a|b%\n"][number as usize % 3].to_owned(),
        entity: format!("path:/{}|%", number % 5),
        content: format!("Worked for \u{201c}数一数 {number}\u{201d}: \u{7f}shell\t\"wc\"."),
        state: MacroState::Accept,
        f: Magnitude::ONE,
        sigma: Valence::new(-0.5).unwrap(),
        k: DecayPerDay::new(0.05).unwrap(),
        sources: Vec::new(),
        supersedes: None,
        origin: None,
    }
}

#[test]
fn another_level_db_program_reads_every_megram_and_its_keys() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract/other_program.py");
    let python = std::env::var("ARTOO_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.leveldb");
    let records = Records::open(Arc::new(open(&path))).unwrap();
    let all: Vec<Megram> = (0..500).map(megram).collect();
    for some in all.chunks(20) {
        let edits: Vec<Edit> = some.iter().cloned().map(Edit::Store).collect();
        records.commit(&edits, megram(500).created_at).unwrap();
    }
    records.kv().close().unwrap();
    let Ok(read) = Command::new(&python).arg(&script).arg(&path).output() else {
        return skipped("plyvel", &format!("no `{python}` is here"));
    };
    if read.status.code() == Some(NO_LIBRARY) {
        return skipped(
            "plyvel",
            &format!("`{python}` has none; pip install plyvel, or name another in ARTOO_PYTHON"),
        );
    }
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let found: Vec<Megram> = String::from_utf8(read.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(found, all);
}

//! Taking in an export (design §15).
//!
//! All of it is read and looked at before anything is written: a file that is no export changes nothing. What was read waits in files
//! without a name, so that no more of it is in memory at once than is written together, however large it is.
//!
//! Owns: reading, order and sizes. Must not know: what is known of a memory already.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::Path;

use artoo_bus::journal::Redactor;
use artoo_memory::dreamer::pass::SLICE;
use artoo_memory::records::Stored;
use artoo_memory::{Exported, Taking};
use artoo_protocol::message::Megram;
use artoo_protocol::text::printable;
use serde_json::json;

use super::{Store, broken, input};
use crate::failure::Failure;
use crate::output;

/// Longest line of an import, in bytes: a memory that hundreds of thousands became part of names them all.
const LINE_MAX: u64 = 64 << 20;
/// Bytes of lines that are written together, unless a single one is longer.
const SLICE_BYTES: usize = 4 << 20;
/// Lines are taken in in so many phases ([`Exported::phase`]).
const PHASES: usize = 3;

/// What an import came to.
#[derive(Default)]
struct Imported {
    new: usize,
    known: usize,
    masked: usize,
    refused: Vec<String>,
}

pub(super) fn import(data: &Path, file: &Path, redactor: &Redactor, json: bool) -> Result<u8, Failure> {
    // Beside the memory, which has to take it anyway: other folders may be memory of the machine.
    let beside = if data.is_dir() {
        data.to_owned()
    } else {
        std::env::temp_dir()
    };
    let phases = spooled(input(file)?, &beside)?;
    let store = Store::to_change(data)?;
    let mut imported = Imported::default();
    let mut taking = Taking::into(&store.records);
    for phase in phases {
        let mut lines = Lines::of(phase);
        loop {
            let slice = lines.slice()?;
            if slice.is_empty() {
                break;
            }
            take(&store, &mut taking, &slice, redactor, &mut imported)?;
        }
    }
    store.records.kv().flush().map_err(|e| broken(&e))?;
    imported.say(json);
    Ok(u8::from(!imported.refused.is_empty()))
}

impl Imported {
    fn say(&self, json: bool) {
        let Self {
            new,
            known,
            masked,
            refused,
        } = self;
        if *masked > 0 {
            output::note(&format!(
                "artoo: {masked} memories held what looks like a key or a password: it is kept as asterisks only"
            ));
        }
        if json {
            output::json(&json!({"new": new, "known": known, "masked": masked, "refused": refused}));
            return;
        }
        output::result(&format!(
            "{new} memories are new, {known} were known, {} were refused",
            refused.len()
        ));
        for refused in refused {
            output::note(&printable(refused));
        }
    }
}

/// Takes in what is written together.
fn take(
    store: &Store,
    taking: &mut Taking<'_>,
    slice: &[Exported],
    redactor: &Redactor,
    imported: &mut Imported,
) -> Result<(), Failure> {
    let mut taken = Vec::with_capacity(slice.len());
    for line in slice {
        let masked = masked(line, redactor);
        // What is there as it stands here was there before anything was masked.
        let there = store.records.get(&line.megram.id).map_err(|e| broken(&e))?;
        let is_masked = masked != *line && there.is_none_or(|there| texts(&there) != texts(&line.megram));
        imported.masked += usize::from(is_masked);
        taken.push(if is_masked { masked } else { line.clone() });
    }
    let stored = taking.take(&taken, store.now).map_err(|e| broken(&e))?;
    for (line, stored) in slice.iter().zip(stored) {
        match stored {
            Stored::New => imported.new += 1,
            Stored::Known => imported.known += 1,
            Stored::Refused(why) => imported.refused.push(format!("{}: {why}", line.megram.id)),
            Stored::Removed | Stored::Folded { .. } | Stored::Absent => {}
        }
    }
    Ok(())
}

/// What a memory says in words.
fn texts(megram: &Megram) -> [Option<&str>; 4] {
    [
        Some(&megram.content),
        Some(&megram.space),
        Some(&megram.entity),
        megram.origin.as_ref(),
    ]
    .map(|text| text.map(String::as_str))
}

/// As memories of roles are kept.
fn masked(line: &Exported, redactor: &Redactor) -> Exported {
    let megram = &line.megram;
    Exported {
        megram: Megram {
            content: redactor.text(&megram.content),
            space: redactor.text(&megram.space),
            entity: redactor.text(&megram.entity),
            origin: megram.origin.as_deref().map(|origin| redactor.text(origin)),
            ..megram.clone()
        },
        parts: line.parts.clone(),
    }
}

/// Reads all lines and keeps them by phase, each in their order; the first that is no memory ends it.
fn spooled(mut source: Box<dyn BufRead>, folder: &Path) -> Result<Vec<File>, Failure> {
    let files = (0..PHASES).map(|_| Ok(BufWriter::new(tempfile::tempfile_in(folder)?)));
    let mut phases = files.collect::<io::Result<Vec<_>>>().map_err(|e| not_kept(&e))?;
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        if (&mut source).take(LINE_MAX + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() as u64 > LINE_MAX {
            return Err(Failure::usage(format!(
                "line {number} is longer than a memory can be; nothing was imported"
            )));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let exported = Exported::read(&line).map_err(|e| {
            Failure::usage(format!("line {number} is no memory: {e}; nothing was imported"))
                .hint("artoo memory export writes what can be imported: one memory as JSON a line")
        })?;
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        if let Some(phase) = phases.get_mut(usize::from(exported.phase())) {
            phase.write_all(&line).map_err(|e| not_kept(&e))?;
        }
    }
    let rewound = phases.into_iter().map(|phase| {
        let mut file = phase.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(file)
    });
    rewound.collect::<io::Result<_>>().map_err(|e| not_kept(&e))
}

fn not_kept(error: &io::Error) -> Failure {
    let place = std::env::temp_dir();
    Failure::failed(format!(
        "cannot keep what is imported in {}: {error}; nothing was imported",
        place.display()
    ))
    .hint("make room there, or name another folder for temporary files in TMPDIR")
}

/// Lines that were looked at before.
struct Lines {
    source: BufReader<File>,
    /// One that did not fit into the slice before.
    next: Option<(usize, Exported)>,
}

impl Lines {
    fn of(file: File) -> Self {
        Self {
            source: BufReader::new(file),
            next: None,
        }
    }

    /// What is written together: none at the end.
    fn slice(&mut self) -> Result<Vec<Exported>, Failure> {
        let (mut slice, mut bytes) = (Vec::new(), 0);
        while slice.len() < SLICE
            && let Some((length, line)) = self.line()?
        {
            if bytes + length > SLICE_BYTES && !slice.is_empty() {
                self.next = Some((length, line));
                break;
            }
            bytes += length;
            slice.push(line);
        }
        Ok(slice)
    }

    fn line(&mut self) -> Result<Option<(usize, Exported)>, Failure> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        let mut line = Vec::new();
        if self.source.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let exported =
            Exported::read(&line).map_err(|e| Failure::failed(format!("a line has changed since it was read: {e}")))?;
        Ok(Some((line.len(), exported)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: usize, words: usize, sources: &[&str]) -> String {
        let made = "2026-02-27T09:30:00.000Z";
        json!({"id": format!("{number:04}"), "level": "M", "created_at": made, "last_recalled_at": null, "space": "tool:shell",
            "entity": "path:/a", "content": "x".repeat(words), "state": "accept", "f": 0.9, "sigma": 1.0, "k": 0.05,
            "sources": sources})
        .to_string()
    }

    fn read(text: String) -> Result<Vec<Vec<Vec<String>>>, Failure> {
        let phases = spooled(Box::new(io::Cursor::new(text)), &std::env::temp_dir())?;
        let slices = phases.into_iter().map(|phase| {
            let mut lines = Lines::of(phase);
            let mut slices = Vec::new();
            loop {
                let slice = lines.slice()?;
                if slice.is_empty() {
                    return Ok(slices);
                }
                slices.push(slice.iter().map(|line| line.megram.id.to_string()).collect());
            }
        });
        slices.collect()
    }

    #[test]
    fn lines_come_by_phase_in_their_order_and_few_at_a_time() {
        let mut text: Vec<String> = (0..100).map(|number| line(number, 1, &[])).collect();
        text.insert(50, line(500, 1, &["0001"]));
        // Four of them are more than is written together.
        text.extend((600..604).map(|number| line(number, 1_500_000, &[])));
        text.push("  ".to_owned());
        let phases = read(text.join("\n")).unwrap();
        let lengths: Vec<Vec<usize>> = phases
            .iter()
            .map(|slices| slices.iter().map(Vec::len).collect())
            .collect();
        assert_eq!(lengths, [vec![], vec![64, 38, 2], vec![1]]);
        let ids: Vec<&String> = phases[1].iter().flatten().collect();
        assert!(ids.is_sorted() && ids.len() == 104);
        assert_eq!(phases[2], [["0500"]]);
    }

    #[test]
    fn one_line_that_is_no_memory_is_named_and_ends_it() {
        let failure = read(format!("{}\n\n{{\"id\": 7}}\n", line(1, 1, &[]))).unwrap_err();
        assert_eq!(failure.code, 2);
        assert!(failure.message.contains("line 3") && failure.message.contains("nothing was imported"));
    }
}

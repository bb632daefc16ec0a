//! `read_file`: the text of one file, or some of its lines (design §8).
//!
//! Owns what is refused: folders, pipes, devices, binary files; and how bytes become text. Must not write.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::tool::{Assessment, Invocation, Permit, ToolOutput, ToolSpec};
use async_trait::async_trait;
use encoding_rs::Encoding;
use encoding_rs_io::DecodeReaderBytesBuilder;
use serde::Deserialize;
use serde_json::json;

use super::text_kind::{Sample, TextKind, kind_of};
use super::{Abandoned, Places, arguments, blocking, failed, failed_by_system, invalid, reading, worker_died};
use crate::capture::Capture;

/// Bytes of a file that are looked at, at most.
const SCAN_LIMIT: u64 = 256 * 1024 * 1024;
/// Bytes at a file's beginning by which it is told what it is.
const SNIFFED: usize = 64 * 1024;

pub(super) struct ReadFile {
    pub places: Arc<Places>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    #[serde(default)]
    start_line: Option<u64>,
    #[serde(default)]
    end_line: Option<u64>,
}

#[async_trait]
impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_file".to_owned(),
            description: "Reads one text file, or a range of its lines. Long files are shown with head and tail."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "absolute, with ~, or relative to the working directory"},
                    "start_line": {"type": "integer", "minimum": 1, "description": "first line, from 1"},
                    "end_line": {"type": "integer", "minimum": 1, "description": "last line, included"}
                },
                "required": ["path"],
                "additionalProperties": false
            }),
        }
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        match arguments::<Arguments>(invocation) {
            Ok(given) => {
                let path = self.places.reading(&given.path).display().to_string();
                reading(format!("read {path}"), path)
            }
            Err(error) => invalid(error),
        }
    }

    async fn run(&self, invocation: &Invocation, _permit: Permit) -> ToolOutput {
        let given = match arguments::<Arguments>(invocation) {
            Ok(given) => given,
            Err(error) => return failed(error, FailureClass::Logical),
        };
        let path = self.places.reading(&given.path);
        blocking(move |abandoned| read(&path, &given, abandoned))
            .await
            .unwrap_or_else(worker_died)
    }
}

fn read(path: &Path, given: &Arguments, abandoned: &Abandoned) -> ToolOutput {
    let shown = path.display();
    // Opening a pipe would wait for a writer, so the kind is looked at first.
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) => return failed_by_system(&format!("{shown} cannot be read"), &error),
    };
    let kind = meta.file_type();
    if kind.is_dir() {
        return failed(
            format!("{shown} is a folder: use `glob` or `find_files` to look into it"),
            FailureClass::Logical,
        );
    }
    if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
        return failed(
            format!("{shown} is a pipe, socket or device, not a file: it is not read"),
            FailureClass::Logical,
        );
    }
    let mut reader = match File::open(path) {
        Ok(file) => BufReader::with_capacity(SNIFFED, file),
        Err(error) => return failed_by_system(&format!("{shown} cannot be read"), &error),
    };
    let kind = reader.fill_buf().map(|start| {
        let sample = if start.len() as u64 >= meta.len() {
            Sample::Whole
        } else {
            Sample::Start
        };
        kind_of(start, sample)
    });
    let encoding = match kind {
        Ok(TextKind::Text(encoding)) => encoding,
        Ok(TextKind::Binary(what)) => {
            return failed(
                format!("{shown} is {what} of {} bytes, not text: it is not shown", meta.len()),
                FailureClass::Logical,
            );
        }
        Err(error) => return failed_by_system(&format!("{shown} cannot be read"), &error),
    };
    let reader = BufReader::with_capacity(SNIFFED, decoded(reader.take(SCAN_LIMIT), encoding));
    let (first, last) = (given.start_line.unwrap_or(1).max(1), given.end_line.unwrap_or(u64::MAX));
    let mut capture = Capture::default();
    let scanned = match copy_lines(reader, first, last, &mut capture, abandoned) {
        Ok(scanned) => scanned,
        Err(error) => return failed_by_system(&format!("{shown} could not be read to its end"), &error),
    };
    let captured = capture.finish();
    let mut text = captured.text;
    if text.contains(char::REPLACEMENT_CHARACTER) {
        text.push_str("\n[some bytes are no text and are shown as \u{fffd}]");
    }
    if encoding != encoding_rs::UTF_8 && captured.lines > 0 {
        let _ = write!(text, "\n[the file is not UTF-8; it was read as {}]", encoding.name());
    }
    let cut = scanned >= SCAN_LIMIT && meta.len() > SCAN_LIMIT;
    if cut {
        let _ = write!(
            text,
            "\n[the file has {} bytes; only the first {SCAN_LIMIT} were looked at]",
            meta.len()
        );
    }
    if captured.lines == 0 {
        text.push_str(if meta.len() == 0 {
            "[the file is empty]"
        } else {
            "[the file has no such lines]"
        });
    }
    ToolOutput {
        output: text,
        truncated: captured.truncated || cut,
        lines: captured.lines,
        ..ToolOutput::default()
    }
}

/// The bytes as UTF-8. A mark at the beginning that says what they are weighs more than what they look like.
fn decoded(bytes: impl Read, encoding: &'static Encoding) -> impl Read {
    let transcoded = (encoding != encoding_rs::UTF_8).then_some(encoding);
    DecodeReaderBytesBuilder::new()
        .encoding(transcoded)
        .bom_override(true)
        .strip_bom(true)
        .utf8_passthru(true)
        .build(bytes)
}

/// Copies the wanted lines and says how many bytes were looked at. Lines may be of any length.
fn copy_lines(
    mut reader: impl BufRead,
    first: u64,
    last: u64,
    capture: &mut Capture,
    abandoned: &Abandoned,
) -> std::io::Result<u64> {
    let (mut line, mut scanned) = (1, 0);
    while line <= last && !abandoned.is_set() {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        let (used, ended) = match chunk.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (chunk.len(), false),
        };
        if line >= first {
            capture.push(chunk.get(..used).unwrap_or_default());
        }
        reader.consume(used);
        scanned += used as u64;
        line += u64::from(ended);
    }
    Ok(scanned)
}

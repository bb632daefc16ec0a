//! How each step is done and how it is proved (design §7, §18).
//!
//! Owns commands and machine checks. Every command is a plain pipeline that only reads, so that nobody has to be asked,
//! and that `find`, `wc`, `du`, `grep` or `sha256sum` by hand confirm. No criterion is left for a model to judge.

use serde_json::{Value, json};

use super::step::{FileSet, Sort, Step, Unit};

/// Stock macOS has BSD tools.
const BSD: bool = cfg!(target_os = "macos");

/// One tool call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub tool: &'static str,
    pub arguments: Value,
}

/// The call that does a step. `earlier` is the text that [`Step::WriteResult`] writes.
pub(super) fn call(step: &Step, earlier: Option<&str>) -> Call {
    match step {
        Step::Read { file } => Call {
            tool: "read_file",
            arguments: json!({ "path": file }),
        },
        Step::Write { text, file } => write(file, text),
        Step::WriteResult { file, .. } => write(file, earlier.unwrap_or_default()),
        Step::Count { .. }
        | Step::Measure { .. }
        | Step::MeasureAll { .. }
        | Step::Find { .. }
        | Step::List { .. }
        | Step::Search { .. }
        | Step::FilesWith { .. }
        | Step::Occurrences { .. }
        | Step::Largest { .. }
        | Step::DiskUse { .. }
        | Step::Duplicates { .. } => Call {
            tool: "shell",
            arguments: json!({ "command": command(step) }),
        },
    }
}

/// Text files end with a line break.
fn write(file: &str, text: &str) -> Call {
    Call {
        tool: "write_file",
        arguments: json!({"path": file, "content": format!("{}\n", text.trim_end_matches('\n'))}),
    }
}

/// The command of a step that is done by one; empty for the others.
fn command(step: &Step) -> String {
    match step {
        // Not by lines: a name may hold a line break.
        Step::Count { files, place } => format!("{} -print0 | tr -dc '\\0' | wc -c", find(files, place)),
        Step::Measure { unit, file } => format!("wc {} < {}", flag(*unit), shell(file)),
        Step::MeasureAll { unit, files, place } => {
            format!("{} -print0 | xargs -0 -r cat | wc {}", find(files, place), flag(*unit))
        }
        Step::Find { files, place } => format!("{} | sort", find(files, place)),
        Step::List { place } => format!("ls -1 -- {}", shell(place)),
        Step::Search { text, files, place } => {
            format!("{} | sort -t : -k 1,1 -k 2,2n", grep("-rnHIF", text, files, place))
        }
        Step::FilesWith { text, files, place } => format!("{} | sort", grep("-rlIF", text, files, place)),
        Step::Occurrences { text, files, place } => format!("{} | wc -l", grep("-rohIF", text, files, place)),
        Step::Largest { count, files, place } => {
            let sized = if BSD {
                "-print0 | xargs -0 stat -f '%z%t%N'"
            } else {
                "-printf '%s\\t%p\\n'"
            };
            format!("{} {sized} | sort -rn | head -n {count}", find(files, place))
        }
        Step::DiskUse { place } => format!("{}du -sh -- {} | cut -f 1", exists("-e", place), shell(place)),
        Step::Duplicates { place } => {
            let (hash, groups) = if BSD {
                (
                    "shasum -a 256",
                    "awk '{h=substr($0,1,64); if (h==p) {if (!s) print l; print; s=1} else s=0; p=h; l=$0}'",
                )
            } else {
                ("sha256sum", "uniq -w 64 -D")
            };
            let found = find(&FileSet::default(), place);
            format!("{found} -print0 | xargs -0 -r {hash} | sort | {groups}")
        }
        Step::Read { .. } | Step::Write { .. } | Step::WriteResult { .. } => String::new(),
    }
}

const fn flag(unit: Unit) -> &'static str {
    match unit {
        Unit::Lines => "-l",
        Unit::Words => "-w",
    }
}

/// A pipeline ends with the status of its last program, so a place that is not there has to stop it in front.
fn exists(test: &str, place: &str) -> String {
    if place == "." {
        String::new()
    } else {
        format!("test {test} {} && ", shell(place))
    }
}

fn find(files: &FileSet, place: &str) -> String {
    let sort = match files.sort {
        Sort::Files => "-type f",
        // The place itself is not one of the folders in it.
        Sort::Folders => "-mindepth 1 -type d",
    };
    let names: Vec<String> = files
        .patterns
        .iter()
        .map(|pattern| format!("-name {}", single(pattern)))
        .collect();
    let names = match names.as_slice() {
        [] => String::new(),
        [one] => format!(" {one}"),
        several => format!(" \\( {} \\)", several.join(" -o ")),
    };
    format!("{}find {} {sort}{names}", exists("-d", place), shell(place))
}

fn grep(options: &str, text: &str, files: &FileSet, place: &str) -> String {
    let mut include = String::new();
    for pattern in &files.patterns {
        include.push_str(" --include=");
        include.push_str(&single(pattern));
    }
    format!(
        "{}grep {options}{include} -e {} -- {}",
        exists("-e", place),
        single(text),
        shell(place)
    )
}

/// A path as a word of the shell: never an option, never an operator, `~` still the home folder.
fn shell(path: &str) -> String {
    if path == "~" {
        return path.to_owned();
    }
    if let Some(rest) = path.strip_prefix("~/") {
        return if rest.is_empty() {
            "~/".to_owned()
        } else {
            format!("~/{}", word(rest))
        };
    }
    // `find` takes words that begin so for options and operators, quoted or not.
    if path.starts_with(['-', '(', ')', '!', ',']) {
        return word(&format!("./{path}"));
    }
    word(path)
}

fn word(text: &str) -> String {
    let simple = !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._-+@%,".contains(c));
    if simple { text.to_owned() } else { single(text) }
}

/// Text in single quotes, in which the shell changes nothing.
fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What must hold after a step, each decided by a machine. `steps` are those before it, for what a written result is.
pub(super) fn criteria(step: &Step, steps: &[Step]) -> Vec<Value> {
    match step {
        Step::Count { .. } | Step::Measure { .. } | Step::MeasureAll { .. } | Step::Occurrences { .. } => {
            vec![
                ran(),
                criterion(
                    "the output is one number",
                    &json!({"kind": "output_matches", "pattern": NUMBER}),
                ),
            ]
        }
        Step::DiskUse { .. } => {
            vec![
                ran(),
                criterion(
                    "the output is one size",
                    &json!({"kind": "output_matches", "pattern": SIZE}),
                ),
            ]
        }
        Step::Find { place, .. } | Step::Largest { place, .. } | Step::Duplicates { place } => {
            vec![ran(), there("-d", place)]
        }
        Step::List { place } | Step::Search { place, .. } | Step::FilesWith { place, .. } => {
            vec![ran(), there("-e", place)]
        }
        // A file of that name may be in the workspace or in the working directory; what was read decides.
        Step::Read { file } => vec![criterion(
            &format!("the text of {file} was put out"),
            &json!({"kind": "output_matches", "pattern": r"\S"}),
        )],
        Step::Write { file, .. } | Step::WriteResult { file, .. } => {
            let (what, pattern) = content(step, steps);
            vec![
                criterion(
                    &format!("the file {file} exists"),
                    &json!({"kind": "file_exists", "path": file}),
                ),
                criterion(
                    &format!("{file} holds {what}"),
                    &json!({"kind": "file_contains", "path": file, "pattern": pattern}),
                ),
            ]
        }
    }
}

const NUMBER: &str = r"(?m)^\s*\d+\s*$";
const SIZE: &str = r"(?m)^\s*\d[\d.,]*[A-Za-z]*\s*$";

fn criterion(words: &str, check: &Value) -> Value {
    json!({"criterion": words, "mode": "verifiable", "check": check})
}

fn ran() -> Value {
    criterion(
        "the command ended without an error",
        &json!({"kind": "exit_code", "equals": 0}),
    )
}

fn there(test: &str, place: &str) -> Value {
    let command = format!("test {test} {}", shell(place));
    let words = format!("{place} is there, so that an empty result means that there is nothing");
    criterion(&words, &json!({"kind": "command_succeeds", "command": command}))
}

/// What a written file holds, in words and as a pattern.
fn content(step: &Step, steps: &[Step]) -> (String, String) {
    match step {
        Step::Write { text, .. } => ("the text that was given".to_owned(), regex::escape(text)),
        Step::WriteResult { step, .. } => {
            let origin = step.checked_sub(1).and_then(|at| steps.get(at));
            let pattern = match origin {
                Some(
                    Step::Count { .. } | Step::Measure { .. } | Step::MeasureAll { .. } | Step::Occurrences { .. },
                ) => NUMBER,
                Some(Step::DiskUse { .. }) => SIZE,
                Some(
                    Step::Find { .. }
                    | Step::List { .. }
                    | Step::Search { .. }
                    | Step::FilesWith { .. }
                    | Step::Largest { .. }
                    | Step::Duplicates { .. }
                    | Step::Read { .. }
                    | Step::Write { .. }
                    | Step::WriteResult { .. },
                )
                | None => r"\S",
            };
            (format!("the result of step {step}"), pattern.to_owned())
        }
        Step::Count { .. }
        | Step::Measure { .. }
        | Step::MeasureAll { .. }
        | Step::Find { .. }
        | Step::List { .. }
        | Step::Search { .. }
        | Step::FilesWith { .. }
        | Step::Occurrences { .. }
        | Step::Largest { .. }
        | Step::DiskUse { .. }
        | Step::Duplicates { .. }
        | Step::Read { .. } => ("something".to_owned(), r"\S".to_owned()),
    }
}

/// What to say when a step that ran gave nothing: an honest empty result.
pub(super) const fn nothing(step: &Step) -> &'static str {
    match step {
        Step::List { .. } => "nothing is in it",
        Step::Duplicates { .. } => "no duplicate files",
        Step::Read { .. } => "the file is empty",
        Step::Search { .. } | Step::FilesWith { .. } => "no matches",
        Step::Count { .. }
        | Step::Measure { .. }
        | Step::MeasureAll { .. }
        | Step::Find { .. }
        | Step::Occurrences { .. }
        | Step::Largest { .. }
        | Step::DiskUse { .. }
        | Step::Write { .. }
        | Step::WriteResult { .. } => "nothing found",
    }
}

/// The place or file that a step is about.
pub(super) fn subject(step: &Step) -> &str {
    match step {
        Step::Count { place, .. }
        | Step::MeasureAll { place, .. }
        | Step::Find { place, .. }
        | Step::List { place }
        | Step::Search { place, .. }
        | Step::FilesWith { place, .. }
        | Step::Occurrences { place, .. }
        | Step::Largest { place, .. }
        | Step::DiskUse { place }
        | Step::Duplicates { place } => place,
        Step::Measure { file, .. }
        | Step::Read { file }
        | Step::Write { file, .. }
        | Step::WriteResult { file, .. } => file,
    }
}

//! `artoo ggs`: the controller on its own, numbers in and decisions out (design §12).

use std::fmt::Write as _;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use artoo_ggs::{Params, Stepper, decide_line, explain, table};
use artoo_protocol::journal::settings_of;
use artoo_protocol::{Timestamp, text};
use serde_json::{Value, json};

use super::{lab, tasks};
use crate::args::GgsCommand;
use crate::failure::Failure;
use crate::output;

/// Longest input line, in bytes.
const LINE_MAX: u64 = 16 << 20;

/// Runs one of them; only `explain` needs the data folder.
///
/// # Errors
/// [`Failure`] (exit 1) when a line was not understood (the others are answered all the same), or when a decision differs
/// from its record.
pub fn run(command: &GgsCommand, data: impl FnOnce() -> Result<PathBuf, Failure>) -> Result<(), Failure> {
    match command {
        GgsCommand::Table { json } => {
            print_table(*json);
            Ok(())
        }
        GgsCommand::Decide { .. } => {
            let params = Params::default();
            let mut number = 0_u64;
            answer_lines(|line| {
                number += 1;
                if line.trim().is_empty() {
                    return Ok(Vec::new());
                }
                decide_line(&params, line)
                    .map(|answer| vec![answer])
                    .map_err(|e| format!("line {number}: {e}"))
            })
        }
        GgsCommand::Step { .. } => {
            // Elapsed time comes with the messages, so any beginning will do; a fixed one makes the answers reproducible.
            let mut stepper = Stepper::new(Params::default(), Timestamp::from_millis(0));
            answer_lines(|line| stepper.line(line).map_err(|e| e.to_string()))
        }
        GgsCommand::Simulate(args) => lab::simulate(args),
        GgsCommand::Calibrate(args) => lab::calibrate(args),
        GgsCommand::Explain { task, json } => explain_task(&data()?, task, *json),
    }
}

fn explain_task(data: &Path, task: &str, json: bool) -> Result<(), Failure> {
    let found = tasks::pick(&data.join("tasks"), task)?;
    let contents = tasks::contents(&found)?;
    if contents.records.is_empty() {
        return Err(Failure::failed(format!(
            "the journal of {} holds no record",
            found.task_id.as_str()
        )));
    }
    let settings = settings_of(&contents.records);
    let params = settings
        .map_or_else(|| Ok(Params::default()), Params::of_settings)
        .map_err(|e| {
            Failure::failed(format!(
                "the controller's parameters in the journal are not understood: {e}"
            ))
        })?;
    let decisions = explain(&params, tasks::envelopes(&contents.records));
    if json {
        output::pretty_json(&json!({"task_id": found.task_id, "params": params, "decisions": decisions}));
    } else if decisions.is_empty() {
        output::note("the controller has not decided anything about this task yet");
    } else {
        let paragraphs: Vec<String> = decisions.iter().map(|one| one.in_words(&params)).collect();
        output::result(&text::printable(&paragraphs.join("\n\n")));
    }
    match decisions.iter().filter(|one| !one.differences.is_empty()).count() {
        0 => Ok(()),
        differing => Err(Failure::failed(format!(
            "{differing} decision(s) differ from what the journal says"
        ))),
    }
}

fn print_table(json: bool) {
    if json {
        return output::pretty_json(&table());
    }
    let mut page = format!(
        "{:>4}  {:<9} {:<5} {:<5} {:<5} {:<16} {}\n",
        "cell", "∇L", "D", "P", "Ω", "macro-state", "urgency"
    );
    for row in table() {
        let urgency = serde_json::to_value(row.urgency)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default();
        let _ = writeln!(
            page,
            "{:>4}  {:<9} {:<5} {:<5} {:<5} {:<16} {urgency}",
            row.cell, row.grad_l, row.d, row.p, row.omega, row.macro_state
        );
    }
    output::result(page.trim_end());
}

/// Answers every line of standard input as it comes; what is wrong with one goes to standard error, as JSON too.
fn answer_lines(mut answer: impl FnMut(&str) -> Result<Vec<Value>, String>) -> Result<(), Failure> {
    let mut input = std::io::stdin().lock();
    let mut wrong = 0_u64;
    loop {
        let mut bytes = Vec::new();
        if output::is_broken() {
            // Nobody reads the answers; more of them would be work for nothing.
            return Ok(());
        }
        if (&mut input).take(LINE_MAX).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let whole = bytes.ends_with(b"\n") || u64::try_from(bytes.len()).is_ok_and(|len| len < LINE_MAX);
        if !whole {
            skip_line(&mut input)?;
        }
        let line = String::from_utf8_lossy(&bytes);
        let answers = if whole {
            answer(&line)
        } else {
            answer("\"a line of more than 16 MiB\"")
        };
        match answers {
            Ok(answers) => answers.iter().for_each(output::json),
            Err(error) => {
                wrong += 1;
                output::note(&json!({ "error": text::one_line(&error, 400) }).to_string());
            }
        }
    }
    if wrong == 0 {
        Ok(())
    } else {
        Err(Failure::failed(format!("{wrong} line(s) were not understood")))
    }
}

fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|&b| b == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

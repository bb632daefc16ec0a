//! `artoo tasks`: what ran, read from the journals (design §17).

use std::fmt::Write as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use artoo_bus::journal::read::{self, Contents, Found, ReadError, Salvaged};
use artoo_bus::journal::summary::{Costs, Status, TaskSummary};
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::text::{one_line, printable};
use artoo_protocol::{Message, Timestamp};
use serde_json::{Value, json};

use super::naming::{self, Meant};
use crate::args::TasksCommand;
use crate::data_folder::held_since;
use crate::failure::Failure;
use crate::{output, progress};

/// Runs one of them.
///
/// # Errors
/// [`Failure`] when there is no such task or its journal cannot be read.
pub fn run(command: &TasksCommand, data: &Path) -> Result<(), Failure> {
    let folder = data.join("tasks");
    match command {
        TasksCommand::List { json } => list(data, *json),
        TasksCommand::Show { task, json } => show(data, &pick(&folder, task)?, *json),
        TasksCommand::Log { task, json } => log(&pick(&folder, task)?, *json),
        TasksCommand::Rm { task } => super::dropping::run(data, &pick(&folder, task)?),
    }
}

/// The summary of one task of this process, for the line under its result.
pub fn summary_of(data: &Path, task: &artoo_protocol::TaskId) -> Option<TaskSummary> {
    let found = read::find(&data.join("tasks"), task).ok()??;
    TaskSummary::of(&read::read_file(&found.path).ok()?.records)
}

/// Costs in one line.
pub fn costs_line(costs: &Costs) -> String {
    let usage = &costs.usage;
    let tokens = match (usage.tokens(), usage.estimated) {
        (0, _) => "no tokens".to_owned(),
        (_, false) => format!("{} + {} tokens", usage.input_tokens, usage.output_tokens),
        (_, true) => format!("{} + {} tokens (estimated)", usage.input_tokens, usage.output_tokens),
    };
    let person = if costs.person.0 == 0 {
        String::new()
    } else {
        format!(", you {}", costs.person)
    };
    format!(
        "{} model calls ({} in sequence), {tokens}; {}: models {}, tools {}, artoo {}{person}",
        costs.calls.len(),
        costs.sequential_calls,
        costs.total,
        costs.model,
        costs.tools,
        costs.own
    )
}

/// A task with where it stands.
struct Listed {
    summary: TaskSummary,
    state: State,
    damage: Option<Damage>,
}

/// What is wrong with a journal, and where.
struct Damage {
    line: Option<u64>,
    message: String,
}

impl From<&ReadError> for Damage {
    fn from(error: &ReadError) -> Self {
        let line = match error {
            ReadError::Damaged { line, .. } => Some(*line),
            ReadError::TooNew { .. } => Some(1),
            ReadError::TooLong | ReadError::Io(_) => None,
        };
        Self {
            line,
            message: error.to_string(),
        }
    }
}

/// Where a task stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Finished,
    /// A living process works on it.
    Running,
    /// No process does.
    Interrupted,
    /// Its journal can be read in part, or not at all.
    Damaged,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Damaged => "damaged",
        }
    }
}

impl Listed {
    /// `held` is since when a living process has had the data folder: what it began or took up, it still works on.
    fn of(records: &[Record], held: Option<Timestamp>) -> Option<Self> {
        let summary = TaskSummary::of(records)?;
        let last = records.last().map(|record| record.at);
        let state = match summary.status {
            Status::Finished => State::Finished,
            Status::Interrupted if held.is_some_and(|since| last >= Some(since)) => State::Running,
            Status::Interrupted => State::Interrupted,
        };
        Some(Self {
            summary,
            state,
            damage: None,
        })
    }

    /// A task of whose journal only so much can be read.
    fn damaged(found: &Found, salvaged: &Salvaged, error: &ReadError) -> Self {
        let modified = std::fs::metadata(&found.path).and_then(|data| data.modified()).ok();
        let since_1970 = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let at = since_1970.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or_default());
        // What gave the task its name may be among what cannot be read; the file has it.
        let mut summary = TaskSummary::of(&salvaged.contents.records)
            .unwrap_or_else(|| TaskSummary::unreadable(found.task_id.clone(), Timestamp::from_millis(at)));
        summary.task_id = found.task_id.clone();
        Self {
            summary,
            state: State::Damaged,
            damage: Some(error.into()),
        }
    }
}

fn list(data: &Path, json: bool) -> Result<(), Failure> {
    let found = read::list(&data.join("tasks")).map_err(|e| Failure::failed(e.to_string()))?;
    let held = held_since(data);
    let mut summaries = Vec::new();
    for journal in found {
        let salvaged = salvaged(&journal);
        match &salvaged.damage {
            None => summaries.extend(Listed::of(&salvaged.contents.records, held)),
            Some(error) => summaries.push(Listed::damaged(&journal, &salvaged, error)),
        }
    }
    summaries.sort_by(|Listed { summary: a, .. }, Listed { summary: b, .. }| {
        b.started_at.cmp(&a.started_at).then_with(|| a.task_id.cmp(&b.task_id))
    });
    if json {
        output::pretty_json(&summaries.iter().map(to_json).collect::<Vec<_>>());
        return Ok(());
    }
    if summaries.is_empty() {
        output::note("no task has run yet");
    }
    for listed in &summaries {
        let summary = &listed.summary;
        let tokens = summary.costs.usage.tokens();
        output::result(&printable(&format!(
            "{}  {:<40} {:<28} {:>8}  {:>3} calls  {:>7} tokens",
            summary.started_at,
            summary.task_id.as_str(),
            ending(listed),
            summary.costs.total.to_string(),
            summary.costs.calls.len(),
            tokens
        )));
        if let Some(damage) = &listed.damage {
            output::result(&printable(&format!("    {}", one_line(&damage.message, 200))));
        }
    }
    Ok(())
}

fn ending(listed: &Listed) -> String {
    let summary = &listed.summary;
    match listed.state {
        State::Running | State::Interrupted | State::Damaged => listed.state.name().to_owned(),
        State::Finished => format!("{} ({})", word(&json!(summary.directive)), word(&json!(summary.cause))),
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or("?").to_owned()
}

fn to_json(listed: &Listed) -> Value {
    let summary = &listed.summary;
    let costs = &summary.costs;
    let calls: Vec<Value> = costs
        .calls
        .iter()
        .map(|call| {
            json!({"role": call.role, "tier": call.tier, "model": call.model, "input_tokens": call.usage.input_tokens,
                "output_tokens": call.usage.output_tokens, "cached_tokens": call.usage.cached_tokens, "requests": call.usage.requests,
                "estimated": call.usage.estimated,
                "elapsed_ms": call.elapsed, "answered": call.answered, "critical": call.critical})
        })
        .collect();
    json!({
        "task_id": summary.task_id, "input": summary.input, "intent": summary.intent,
        "status": listed.state.name(),
        "damage": listed.damage.as_ref().map(|damage| json!({"line": damage.line, "message": damage.message})),
        "directive": summary.directive, "cause": summary.cause, "summary": summary.summary, "replans": summary.replans,
        "started_at": summary.started_at, "ended_at": summary.ended_at,
        "costs": {"model_calls": costs.calls.len(), "sequential_calls": costs.sequential_calls, "input_tokens": costs.usage.input_tokens,
            "output_tokens": costs.usage.output_tokens, "cached_tokens": costs.usage.cached_tokens, "estimated": costs.usage.estimated, "total_ms": costs.total, "model_ms": costs.model,
            "tool_ms": costs.tools, "person_ms": costs.person, "own_ms": costs.own, "calls": calls},
    })
}

/// The one task that the text names, see [`naming`].
///
/// # Errors
/// [`Failure`] (exit 2) when it names none, or several: then all of them are listed.
pub fn pick(folder: &Path, text: &str) -> Result<Found, Failure> {
    let all = read::list(folder).map_err(|e| Failure::failed(e.to_string()))?;
    match naming::meant(&all, |found| &found.task_id, text) {
        Meant::One(found) => Ok(found.clone()),
        Meant::Several(several) => Err(naming::ambiguous(text, several.iter().map(|found| &found.task_id))),
        Meant::None => Err(Failure::usage(format!("there is no task `{}`", one_line(text, 60)))
            .hint("artoo tasks list shows those there are")),
    }
}

/// A journal read whole.
///
/// # Errors
/// [`Failure`] (exit 1) that says what of it is damaged.
pub fn contents(found: &Found) -> Result<Contents, Failure> {
    let salvaged = salvaged(found);
    match salvaged.damage {
        None => Ok(salvaged.contents),
        Some(damage) => Err(damaged(found, &damage)),
    }
}

/// A journal as far as it can be read. One without any whole record is damaged, too.
fn salvaged(found: &Found) -> Salvaged {
    let mut salvaged = read::salvage_file(&found.path);
    if salvaged.contents.records.is_empty() && salvaged.damage.is_none() {
        let message = "it is missing or torn".to_owned();
        salvaged.damage = Some(ReadError::Damaged { line: 1, message });
    }
    salvaged
}

/// What is wrong with a journal, where, and what can be done.
fn damaged(found: &Found, damage: &ReadError) -> Failure {
    let failure = Failure::failed(format!("{}: {damage}", found.path.display()));
    let id = &found.task_id;
    match damage {
        ReadError::Damaged { line: 1, .. } => failure.hint(format!(
            "without its first line nothing of it can be read; put back a copy, or drop it with `artoo tasks rm {id}`"
        )),
        ReadError::Damaged { line, .. } => failure.hint(format!(
            "the {} lines before it are whole: `artoo tasks log {id}` shows them; put back a copy, or drop it with `artoo tasks rm {id}`",
            line - 1
        )),
        ReadError::TooNew { .. } => failure.hint("use the artoo that made it, or a later one"),
        ReadError::TooLong => failure.hint(format!(
            "`artoo tasks log {id}` shows its beginning, and `artoo tasks rm {id}` drops it"
        )),
        ReadError::Io(_) => failure,
    }
}

fn show(data: &Path, found: &Found, json: bool) -> Result<(), Failure> {
    let salvaged = salvaged(found);
    if salvaged.contents.records.is_empty() {
        whole(found, salvaged.damage.as_ref())?;
    }
    let listed = match &salvaged.damage {
        Some(error) => Some(Listed::damaged(found, &salvaged, error)),
        None => Listed::of(&salvaged.contents.records, held_since(data)),
    };
    let listed = listed.ok_or_else(|| Failure::failed(format!("{} holds no task", found.path.display())))?;
    let Salvaged { contents, damage } = salvaged;
    let summary = &listed.summary;
    if json {
        let mut value = to_json(&listed);
        let messages: Vec<_> = envelopes(&contents.records).map(|e| json!(e)).collect();
        if let Some(object) = value.as_object_mut() {
            object.insert("messages".into(), Value::Array(messages));
        }
        output::pretty_json(&value);
        return whole(found, damage.as_ref());
    }
    let mut page = format!("{}  {}\n{}\n\n", summary.task_id, ending(&listed), summary.input);
    for envelope in envelopes(&contents.records) {
        if let Some(line) = progress::line(envelope) {
            let _ = writeln!(page, "  {line}");
        }
        if let Message::ExecutionResult(result) = &envelope.payload {
            for call in &result.tool_calls {
                let _ = writeln!(page, "      {}", one_line(&call.to_string(), 160));
            }
        }
        if let Message::SubTaskOutcome(outcome) = &envelope.payload {
            for verdict in &outcome.criteria_verdicts {
                let _ = writeln!(
                    page,
                    "      {} {} — {}",
                    word(&json!(verdict.verdict)),
                    verdict.criterion,
                    one_line(&verdict.evidence, 120)
                );
            }
        }
        if let Message::FinalResult(result) = &envelope.payload {
            let _ = writeln!(
                page,
                "\n{}\n{}",
                progress::result_text(&result.output),
                progress::ending(result, "")
            );
        }
    }
    if contents.torn {
        page.push_str("\n(the last line of the journal is torn: the process was killed while writing it)\n");
    }
    let _ = write!(page, "\n{}", costs_line(&summary.costs));
    output::result(&printable(&page));
    whole(found, damage.as_ref())
}

/// What can be read of a damaged journal was shown; that it is not all of it is said, too.
fn whole(found: &Found, damage: Option<&ReadError>) -> Result<(), Failure> {
    damage.map_or(Ok(()), |damage| Err(damaged(found, damage)))
}

/// The messages of a journal.
pub fn envelopes(records: &[Record]) -> impl Iterator<Item = &artoo_protocol::Envelope> {
    records.iter().filter_map(|record| match &record.entry {
        Entry::Published { envelope } => Some(envelope),
        Entry::Opened { .. }
        | Entry::Commanded { .. }
        | Entry::Answered { .. }
        | Entry::Stepped { .. }
        | Entry::Closed { .. } => None,
    })
}

fn log(found: &Found, json: bool) -> Result<(), Failure> {
    let Salvaged { contents, damage } = salvaged(found);
    for record in &contents.records {
        if output::is_broken() {
            break;
        }
        if json {
            output::json(record);
            continue;
        }
        let text = match &record.entry {
            Entry::Published { envelope } => progress::verbose_line(envelope),
            Entry::Stepped { role, cause, .. } => format!(
                "  {role} steps because of {}",
                serde_json::to_string(cause).unwrap_or_default()
            ),
            other => serde_json::to_string(other).unwrap_or_default(),
        };
        let line = printable(&one_line(&text, 200));
        output::result(&format!("{:>5} {} {line}", record.n, record.at));
    }
    if contents.torn {
        output::note("the last line is torn: the process was killed while writing it");
    }
    whole(found, damage.as_ref())
}

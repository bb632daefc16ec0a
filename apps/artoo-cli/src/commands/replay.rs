//! `artoo replay`: the decisions of every role derived anew from a journal, without model and tools (design §17).

use std::fmt::Write as _;
use std::path::Path;

use artoo_bus::Difference;
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::text::{head_tail, one_line, printable};
use artoo_protocol::{Command, Role};
use serde_json::{Value, json};

use super::tasks;
use crate::failure::Failure;
use crate::output;
use crate::roles::RoleSettings;

/// Values that are shown of one difference.
const SHOWN: usize = 5;
/// Characters of each.
const VALUE: usize = 300;

/// Replays one task.
///
/// # Errors
/// [`Failure`] (exit 1) when a role decides differently now, or when the journal cannot be replayed.
pub fn run(data: &Path, task: &str, json: bool) -> Result<(), Failure> {
    let found = tasks::pick(&data.join("tasks"), task)?;
    let contents = tasks::contents(&found)?;
    let roles = RoleSettings::of_journal(&contents.records)
        .map_err(|why| Failure::failed(format!("{} {why}", found.path.display())))?;
    let differences = roles.replay(&contents.records)?;
    let steps = count(&contents.records, |entry| matches!(entry, Entry::Stepped { .. }));
    let effects = count(&contents.records, |entry| {
        // What the person and the runtime say is no role's decision: it is taken as it stands.
        match entry {
            Entry::Published { envelope } => !matches!(envelope.from, Role::User | Role::Runtime),
            Entry::Commanded { .. } => true,
            Entry::Opened { .. } | Entry::Answered { .. } | Entry::Stepped { .. } | Entry::Closed { .. } => false,
        }
    });
    if json {
        let listed: Vec<Value> = differences
            .iter()
            .map(|d| json!({"record": d.n, "role": d.role, "what": d.what, "recorded": d.recorded, "produced": d.produced}))
            .collect();
        output::pretty_json(
            &json!({"task_id": found.task_id, "steps": steps, "effects": effects, "same": differences.is_empty(), "differences": listed}),
        );
    } else if differences.is_empty() {
        output::result(&format!(
            "{}: {steps} steps give the same {effects} effects again",
            found.task_id
        ));
    } else {
        for difference in &differences {
            output::result(&printable(&words(difference)));
        }
    }
    match differences.first() {
        None => Ok(()),
        Some(first) => Err(Failure::failed(format!(
            "the decisions of {} role(s) differ from the journal, first at record {}",
            differences.len(),
            first.n
        ))
        .hint(version_hint(&contents.records))),
    }
}

fn count(records: &[Record], which: impl Fn(&Entry) -> bool) -> usize {
    records.iter().filter(|record| which(&record.entry)).count()
}

fn version_hint(records: &[Record]) -> String {
    let made_by = records.first().and_then(|record| match &record.entry {
        Entry::Opened { artoo, .. } => Some(artoo.as_str()),
        Entry::Published { .. }
        | Entry::Commanded { .. }
        | Entry::Answered { .. }
        | Entry::Stepped { .. }
        | Entry::Closed { .. } => None,
    });
    format!(
        "the journal was made by artoo {}, this is {}; with the same program a difference means that the journal was changed, or a fault",
        made_by.unwrap_or("of an unknown version"),
        env!("CARGO_PKG_VERSION")
    )
}

/// The first point at which a role goes another way, and in which values.
fn words(difference: &Difference) -> String {
    let mut text = format!("record {}: {} {}", difference.n, difference.role, difference.what);
    let value = |command: &Option<Box<Command>>| command.as_ref().map(|command| json!(command));
    match (value(&difference.recorded), value(&difference.produced)) {
        (Some(was), Some(is)) => {
            let mut places = Vec::new();
            differing(&was, &is, "", &mut places);
            for place in places.iter().take(SHOWN) {
                let _ = write!(text, "\n{place}");
            }
            if places.len() > SHOWN {
                let _ = write!(text, "\n  and {} more", places.len() - SHOWN);
            }
        }
        (Some(was), None) => {
            let _ = write!(text, "\n  - {}", shown(&was));
        }
        (None, Some(is)) => {
            let _ = write!(text, "\n  + {}", shown(&is));
        }
        (None, None) => {}
    }
    text
}

/// The places at which two values differ, as JSON pointers with what stands there.
fn differing(was: &Value, is: &Value, pointer: &str, places: &mut Vec<String>) {
    match (was, is) {
        (Value::Object(a), Value::Object(b)) => {
            let absent = Value::Null;
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let (was, is) = (a.get(key).unwrap_or(&absent), b.get(key).unwrap_or(&absent));
                differing(was, is, &format!("{pointer}/{key}"), places);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (was, is)) in a.iter().zip(b).enumerate() {
                differing(was, is, &format!("{pointer}/{index}"), places);
            }
        }
        (Value::String(a), Value::String(b)) if a != b => {
            places.push(format!("  {pointer}\n{}", changed_lines(a, b)));
        }
        (a, b) if a != b => places.push(format!("  {pointer}\n  - {}\n  + {}", shown(a), shown(b))),
        (_, _) => {}
    }
}

/// The lines in which two texts differ, without those that they begin and end with together.
fn changed_lines(was: &str, is: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (was.lines().collect(), is.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(x, y)| x == y).count();
    let head = same(&mut a.iter().zip(&b));
    let rest = a.len().min(b.len()) - head;
    let tail = same(&mut a.iter().rev().zip(b.iter().rev())).min(rest);
    let part = |lines: &[&str], sign: char| {
        let changed = lines.get(head..lines.len() - tail).unwrap_or_default();
        let mut text = String::new();
        for line in changed.iter().take(SHOWN) {
            let _ = writeln!(text, "  {sign} {}", head_tail(line, VALUE));
        }
        if changed.len() > SHOWN {
            let _ = writeln!(text, "  {sign} and {} more lines", changed.len() - SHOWN);
        }
        text
    };
    format!("{}{}", part(&a, '-'), part(&b, '+')).trim_end().to_owned()
}

fn shown(value: &Value) -> String {
    one_line(&head_tail(&value.to_string(), VALUE), VALUE + 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(was: &Value, is: &Value) -> Vec<String> {
        let mut places = Vec::new();
        differing(was, is, "", &mut places);
        places
    }

    #[test]
    fn a_difference_names_the_place_and_both_values() {
        let was = json!({"a": 1, "b": {"c": ["x", "same\nold\nend"]}, "gone": true});
        let is = json!({"a": 1, "b": {"c": ["x", "same\nnew\nend"]}});
        assert_eq!(
            places(&was, &is),
            ["  /b/c/1\n  - old\n  + new", "  /gone\n  - true\n  + null"]
        );
        assert!(places(&was, &was).is_empty());
        assert_eq!(places(&json!([1]), &json!([1, 2])), ["  \n  - [1]\n  + [1,2]"]);
    }

    #[test]
    fn lines_that_were_added_or_taken_away_stand_alone() {
        assert_eq!(changed_lines("a\nb", "a\nx\nb"), "  + x");
        assert_eq!(changed_lines("a\na", "a"), "  - a");
    }
}

//! Reads a model's `plan` value into a typed plan, with a list of what could not be read (design §6, §18).
//!
//! Owns tolerance: ids are ignored, nulls and missing fields have a meaning, sequences of any kind become a dense order.
//! Judges nothing about the plan; that is `validate`.

use artoo_protocol::message::{Check, Criterion, Mode};
use artoo_protocol::text::one_line;
use artoo_protocol::units::Timestamp;
use serde_json::{Map, Value};

/// Tools, or paths of the scope, of one step.
const TEXTS: usize = 64;
/// Characters of a quoted part of the plan in a defect.
const QUOTE_CHARS: usize = 120;

/// A plan as the model meant it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Assertions about the combined output.
    pub task_criteria: Vec<Criterion>,
    /// In order of sequence; steps of the same sequence in the order of the answer.
    pub steps: Vec<Step>,
    /// Which of the kept outcomes still count, by their numbers from 1; all of them without it.
    pub keep: Option<Vec<usize>>,
    /// What could not be read, for the model.
    pub defects: Vec<String>,
}

/// One subtask of a plan. It has no id yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its place in the answer from 1: how a reason names it.
    pub number: usize,
    /// From 1, without gaps.
    pub sequence: u32,
    /// What to do.
    pub intent: String,
    /// What else is needed.
    pub context: String,
    /// What must hold.
    pub criteria: Vec<Criterion>,
    /// Tools foreseen.
    pub tools: Vec<String>,
    /// When it must be done.
    pub deadline: Option<Timestamp>,
    /// Where it may create and change, if the plan narrows what the user allowed.
    pub scope: Vec<String>,
}

/// Numbers the groups of steps that are in order from 1 without gaps.
pub fn renumber(steps: &mut [Step]) {
    let (mut group, mut last) = (0_u32, None);
    for step in steps {
        if last != Some(step.sequence) {
            group = group.saturating_add(1);
            last = Some(step.sequence);
        }
        step.sequence = group;
    }
}

/// Reads a plan. At most `most` + 1 subtasks are read, so that an excess shows and costs nothing.
pub fn parse(value: &Value, most: usize) -> Plan {
    let mut plan = Plan::default();
    let Value::Object(fields) = value else {
        plan.defects
            .push("the answer is not an object with `task_criteria` and `subtasks`".to_owned());
        return plan;
    };
    let mut defects = Vec::new();
    plan.task_criteria = criteria(fields.get("task_criteria"), "task_criteria", &mut defects);
    plan.keep = fields.get("keep").and_then(Value::as_array).map(|numbers| {
        let number = |item: &Value| item.as_u64().and_then(|number| usize::try_from(number).ok());
        numbers.iter().filter_map(number).collect()
    });
    let mut sequences = Vec::new();
    for (index, item) in list(fields.get("subtasks"))
        .iter()
        .take(most.saturating_add(1))
        .enumerate()
    {
        let number = index + 1;
        let Value::Object(fields) = item else {
            defects.push(format!("subtask {number} is not an object"));
            continue;
        };
        sequences.push(sequence(fields.get("sequence"), sequences.last().copied()));
        plan.steps.push(step(number, fields, &mut defects));
    }
    order(&mut plan.steps, &sequences);
    plan.defects = defects;
    plan
}

fn step(number: usize, fields: &Map<String, Value>, defects: &mut Vec<String>) -> Step {
    let place = format!("subtask {number}");
    Step {
        number,
        sequence: 1,
        intent: text(fields.get("intent")),
        context: context(fields.get("context")),
        criteria: criteria(fields.get("success_criteria"), &place, defects),
        tools: texts(fields.get("tools")).iter().map(|tool| tool_name(tool)).collect(),
        deadline: fields
            .get("deadline")
            .and_then(Value::as_str)
            .and_then(|when| Timestamp::parse(when.trim()).ok()),
        scope: texts(fields.get("scope")),
    }
}

/// The number that the model gave, whatever its form; a step without one comes after the step before it.
fn sequence(value: Option<&Value>, before: Option<i64>) -> i64 {
    let given = match value {
        Some(Value::Number(number)) => number.as_i64().or_else(|| number.as_f64().map(saturating)),
        Some(Value::String(text)) => text.trim().parse::<f64>().ok().filter(|n| !n.is_nan()).map(saturating),
        _ => None,
    };
    given.unwrap_or_else(|| before.map_or(1, |before| before.saturating_add(1)))
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "`as` saturates, which is what an absurd number deserves"
)]
fn saturating(number: f64) -> i64 {
    number.floor() as i64
}

/// Sorts by sequence and numbers the groups from 1 without gaps; only the order of the given numbers matters.
fn order(steps: &mut Vec<Step>, sequences: &[i64]) {
    let mut ranked: Vec<(i64, Step)> = sequences.iter().copied().zip(std::mem::take(steps)).collect();
    ranked.sort_by_key(|(sequence, _)| *sequence);
    let mut group = 0_u32;
    let mut last = None;
    for (sequence, mut step) in ranked {
        if last != Some(sequence) {
            group = group.saturating_add(1);
            last = Some(sequence);
        }
        step.sequence = group;
        steps.push(step);
    }
}

/// The name by which the gate knows a tool: `shell:/usr/bin/curl` and `shell: curl` are `shell:curl`, and a colon without a
/// program means the tool.
fn tool_name(name: &str) -> String {
    let Some((tool, program)) = name.split_once(':') else {
        return name.to_owned();
    };
    let (tool, program) = (tool.trim(), program.trim());
    let program = program.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    if program.is_empty() {
        tool.to_owned()
    } else {
        format!("{tool}:{program}")
    }
}

/// The texts of a list, or the one text that stands there instead; an excess is cut, it plans nothing.
fn texts(value: Option<&Value>) -> Vec<String> {
    let single = value.and_then(Value::as_str).into_iter();
    let several = list(value).iter().filter_map(Value::as_str);
    single
        .chain(several)
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .take(TEXTS)
        .collect()
}

fn criteria(value: Option<&Value>, place: &str, defects: &mut Vec<String>) -> Vec<Criterion> {
    let mut read = Vec::new();
    for (index, item) in list(value).iter().enumerate() {
        match criterion(item) {
            Ok(Some(criterion)) => read.push(criterion),
            Ok(None) => {}
            Err(reason) => defects.push(format!("{place}, criterion {}: {reason}", index + 1)),
        }
    }
    read
}

/// A criterion, nothing where nothing is said, or why its check cannot be read.
fn criterion(item: &Value) -> Result<Option<Criterion>, String> {
    let (words, mode, check) = match item {
        Value::String(words) => (words.trim().to_owned(), None, None),
        Value::Object(fields) => (
            text(fields.get("criterion")),
            fields.get("mode").and_then(Value::as_str),
            check(fields.get("check"))?,
        ),
        _ => return Err(format!("`{}` is no criterion", quote(item))),
    };
    if words.is_empty() {
        return match check {
            None => Ok(None),
            Some(_) => Err("it has a check but says nothing in words".to_owned()),
        };
    }
    let mode = match mode.map(str::to_ascii_lowercase).as_deref() {
        Some("verifiable") => Mode::Verifiable,
        Some("plausible") => Mode::Plausible,
        // What a machine can decide needs evidence.
        _ if check.is_some() => Mode::Verifiable,
        _ => Mode::Plausible,
    };
    Ok(Some(Criterion {
        criterion: words,
        mode,
        check,
    }))
}

fn check(value: Option<&Value>) -> Result<Option<Check>, String> {
    let Some(Value::Object(fields)) = value else {
        return match value {
            None | Some(Value::Null) => Ok(None),
            Some(other) => Err(format!("its check `{}` is not an object", quote(other))),
        };
    };
    // Some providers fill in every field of the schema, the unused ones with null.
    let mut given = fields.clone();
    let pointer = given.get("kind").and_then(Value::as_str) == Some("json_path");
    given.retain(|name, value| !value.is_null() || (pointer && name == "equals"));
    if given.is_empty() {
        return Ok(None);
    }
    serde_json::from_value(Value::Object(given)).map(Some).map_err(|error| {
        format!(
            "its check cannot be read: {}",
            one_line(&error.to_string(), 2 * QUOTE_CHARS)
        )
    })
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().trim().to_owned()
}

/// Context in whatever form: structured data is kept as JSON.
fn context(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(other) => other.to_string(),
    }
}

fn quote(value: &Value) -> String {
    one_line(&value.to_string(), QUOTE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn sequences(given: &[Value]) -> Vec<(usize, u32)> {
        let steps: Vec<Value> = given
            .iter()
            .map(|sequence| match sequence {
                Value::Bool(_) => json!({"intent": "x"}),
                other => json!({"intent": "x", "sequence": other}),
            })
            .collect();
        let plan = parse(&json!({ "subtasks": steps }), 1_000);
        plan.steps.iter().map(|step| (step.number, step.sequence)).collect()
    }

    #[test]
    fn sequences_of_any_kind_become_a_dense_order() {
        // `false` stands for a missing sequence.
        for (given, expect) in [
            (
                vec![json!(0), json!(1), json!(1), json!(2)],
                vec![(1, 1), (2, 2), (3, 2), (4, 3)],
            ),
            (vec![json!(7), json!(-3), json!(7)], vec![(2, 1), (1, 2), (3, 2)]),
            (vec![json!(false), json!(false)], vec![(1, 1), (2, 2)]),
            (vec![json!(null)], vec![(1, 1)]),
            (
                vec![json!(u64::MAX), json!(1e300), json!("2"), json!("x")],
                vec![(3, 1), (4, 2), (1, 3), (2, 3)],
            ),
            (
                vec![json!(i64::MAX), json!(false), json!(i64::MIN)],
                vec![(3, 1), (1, 2), (2, 2)],
            ),
        ] {
            assert_eq!(sequences(&given), expect, "{given:?}");
        }
    }

    #[test]
    fn ids_in_the_answer_are_ignored_and_plain_criteria_accepted() {
        let plan = parse(
            &json!({"task_criteria": null, "subtasks": [
                {"subtask_id": "1", "intent": " a ", "context": {"k": 1}, "tools": ["shell:curl", "", null], "deadline": "soon",
                 "success_criteria": ["it rhymes", " ", {"criterion": "x exists", "check": {"kind": "file_exists", "path": "x", "pattern": null}},
                                      {"criterion": "y", "mode": "PLAUSIBLE", "check": {}}]},
                {"subtask_id": "1", "intent": "b", "success_criteria": null}]}),
            10,
        );
        assert_eq!(plan.defects, Vec::<String>::new());
        let step = &plan.steps[0];
        assert_eq!((step.intent.as_str(), step.context.as_str()), ("a", "{\"k\":1}"));
        assert_eq!(step.tools, ["shell:curl"]);
        let modes: Vec<_> = step.criteria.iter().map(|c| (c.mode, c.check.is_some())).collect();
        assert_eq!(
            modes,
            [
                (Mode::Plausible, false),
                (Mode::Verifiable, true),
                (Mode::Plausible, false)
            ]
        );
    }

    #[test]
    fn a_tool_is_named_as_the_gate_knows_it() {
        for (given, name) in [
            ("shell:curl", "shell:curl"),
            ("shell: curl ", "shell:curl"),
            ("shell:/usr/bin/curl", "shell:curl"),
            ("shell:", "shell"),
            ("shell:/", "shell"),
            ("git.log", "git.log"),
        ] {
            assert_eq!(tool_name(given), name, "{given}");
        }
        let many: Vec<String> = (0..1_000).map(|n| format!("tool{n}")).collect();
        let plan = parse(&json!({"subtasks": [{"intent": "a", "tools": many}]}), 1);
        assert_eq!(plan.steps[0].tools.len(), TEXTS);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let plan = parse(
            &json!({"subtasks": [3, {"intent": "a", "success_criteria": [
                {"criterion": "x", "check": {"kind": "file_not_empty", "path": "x"}},
                {"criterion": "", "check": {"kind": "file_exists", "path": "x"}},
                {"criterion": "z", "check": "exit 0"}, 7]}]}),
            10,
        );
        insta::assert_snapshot!("unreadable", plan.defects.join("\n"));
        assert_eq!(parse(&json!("no"), 10).defects.len(), 1);
    }

    #[test]
    fn a_json_value_may_be_expected_to_be_null() {
        let read = |check: Value| check_of(&check);
        assert!(read(json!({"kind": "json_path", "pointer": "/a", "equals": null})).is_ok());
        assert!(read(json!({"kind": "exit_code", "command": null, "equals": null})).is_ok());
    }

    fn check_of(value: &Value) -> Result<Option<Check>, String> {
        check(Some(value))
    }

    proptest! {
        #[test]
        fn every_number_of_steps_is_ordered(given in proptest::collection::vec(any::<Option<i64>>(), 0..30)) {
            let values: Vec<Value> = given.iter().map(|n| n.map_or(json!(false), |n| json!(n))).collect();
            let found = sequences(&values);
            prop_assert_eq!(found.len(), given.len());
            let mut last = 0;
            for (_, sequence) in found {
                prop_assert!(sequence == last + 1 || (sequence == last && last > 0), "{} after {}", sequence, last);
                last = sequence;
            }
        }
    }
}

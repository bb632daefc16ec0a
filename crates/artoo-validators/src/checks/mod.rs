//! Machine checks: criteria that code decides, from the world and from what tools put out (design §7).
//!
//! Owns what each kind of check means. [`calls`] holds the checks on tool calls, which are pure; [`files`] those on files;
//! [`vouching`] says when a match proves nothing, [`hollow`] when a check does, [`status`] whose an exit status is, [`numbers`] when two are
//! one;
//! [`world`] is the shell that runs either kind, and commands, off the roles' thread. A model's prose never reaches a
//! check, and a check that cannot run is reported as faulty: a fault of the plan, not of the attempt.

pub mod calls;
pub mod files;
mod hollow;
mod numbers;
mod pattern;
mod status;
pub mod vouching;
pub mod world;

pub use files::Mask;
pub use world::{Unheld, WorldChecks, WorldConfig};

use artoo_protocol::message::{Check, CountOf, CountOp, FailureClass};
use artoo_protocol::text::one_line;
use artoo_protocol::tool::CheckReport;
use serde_json::Value;

/// Why a check cannot run at all, found without running it; `None` for a sound one.
///
/// A planner can call this before it sends a plan out.
pub fn defect(check: &Check) -> Option<String> {
    let pattern = |text: &str| pattern::compile(text).err();
    let unsound = match check {
        Check::ExitCode { command, equals: _ } => command.as_deref().and_then(pattern),
        Check::FileExists { path } | Check::FileAbsent { path } => files::path_defect(path),
        Check::FileContains { path, pattern: text } => files::path_defect(path).or_else(|| pattern(text)),
        Check::OutputMatches { pattern: text } => pattern(text),
        Check::OutputEquals { value: _ } => None,
        Check::JsonPath { path, pointer, .. } => {
            let malformed = !pointer.is_empty() && !pointer.starts_with('/');
            path.as_deref()
                .and_then(files::path_defect)
                .or_else(|| malformed.then(|| format!("`{pointer}` is no JSON pointer: it must start with `/`")))
        }
        Check::Count {
            of,
            path,
            pattern: text,
            ..
        } => {
            let missing = match of {
                CountOf::Lines => None,
                CountOf::Files => path.is_none().then_some("a count of files needs a folder in `path`"),
                CountOf::Matches => text.is_none().then_some("a count of matches needs a `pattern`"),
            };
            missing
                .map(str::to_owned)
                .or_else(|| path.as_deref().and_then(files::path_defect))
                .or_else(|| text.as_deref().and_then(pattern))
        }
        Check::Sha256 { path, equals } => {
            let digest = equals.trim();
            let malformed = digest.len() != 64 || !digest.bytes().all(|b| b.is_ascii_hexdigit());
            files::path_defect(path).or_else(|| malformed.then(|| "`equals` is no SHA-256 in 64 hex digits".to_owned()))
        }
        Check::CommandSucceeds { command } => command.trim().is_empty().then(|| "the command is empty".to_owned()),
    };
    unsound.or_else(|| hollow::always_holds(check).map(str::to_owned))
}

fn passed(evidence: impl Into<String>) -> CheckReport {
    CheckReport {
        passed: true,
        evidence: evidence.into(),
        failure_class: None,
        faulty: false,
    }
}

/// A fail whose class is left to whoever knows what the tools reported.
fn failed(evidence: impl Into<String>) -> CheckReport {
    CheckReport {
        passed: false,
        evidence: evidence.into(),
        failure_class: None,
        faulty: false,
    }
}

fn blocked(evidence: impl Into<String>) -> CheckReport {
    CheckReport {
        failure_class: Some(FailureClass::Environmental),
        ..failed(evidence)
    }
}

fn faulty(evidence: impl Into<String>) -> CheckReport {
    CheckReport {
        failure_class: Some(FailureClass::Logical),
        faulty: true,
        ..failed(evidence)
    }
}

/// Compares a number found with the one expected; `what` says what was counted, and where.
fn compared(found: u64, op: CountOp, expected: u64, what: &str) -> CheckReport {
    let (holds, word) = match op {
        CountOp::Eq => (found == expected, "exactly"),
        CountOp::Ge => (found >= expected, "at least"),
        CountOp::Le => (found <= expected, "at most"),
    };
    let evidence = format!("found {found} {what}, expected {word} {expected}");
    if holds { passed(evidence) } else { failed(evidence) }
}

/// Looks up a JSON pointer in a document and compares; `source` says where the document stands.
fn pointed(document: &str, pointer: &str, expected: &Value, source: &str) -> CheckReport {
    let parsed: Value = match serde_json::from_str(document.trim()) {
        Ok(value) => value,
        Err(error) => return failed(format!("{source} is no JSON: {error}")),
    };
    let Some(found) = parsed.pointer(pointer) else {
        return failed(format!("{source} has nothing at `{pointer}`"));
    };
    let shown = |value: &Value| one_line(&value.to_string(), 200);
    let evidence = format!("{source} has {} at `{pointer}`", shown(found));
    if same_value(found, expected) {
        passed(evidence)
    } else {
        failed(format!("{evidence}, expected {}", shown(expected)))
    }
}

/// Equality of JSON values in which 5 and 5.0 are one number.
fn same_value(a: &Value, b: &Value) -> bool {
    let integer = |value: &Value| value.is_i64() || value.is_u64();
    if a.is_number() && b.is_number() && !(integer(a) && integer(b)) {
        a.as_f64() == b.as_f64()
    } else {
        a == b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_cannot_run_says_why() {
        for (json, expect) in [
            (r#"{"kind":"output_matches","pattern":"("}"#, "pattern"),
            (r#"{"kind":"output_matches","pattern":"(a{1000}){1000}"}"#, "pattern"),
            (r#"{"kind":"file_exists","path":" "}"#, "path is empty"),
            (r#"{"kind":"file_exists","path":"a\u0000b"}"#, "NUL"),
            (r#"{"kind":"file_contains","path":"a","pattern":"["}"#, "pattern"),
            (r#"{"kind":"json_path","pointer":"a","equals":1}"#, "JSON pointer"),
            (r#"{"kind":"count","of":"files","op":"eq","value":1}"#, "folder"),
            (r#"{"kind":"count","of":"matches","op":"eq","value":1}"#, "pattern"),
            (r#"{"kind":"sha256","path":"a","equals":"zz"}"#, "SHA-256"),
            (r#"{"kind":"command_succeeds","command":""}"#, "empty"),
            (r#"{"kind":"exit_code","command":"*"}"#, "pattern"),
            (r#"{"kind":"output_matches","pattern":".*"}"#, "fits every text"),
        ] {
            let check: Check = serde_json::from_str(json).unwrap();
            let found = defect(&check).unwrap_or_else(|| panic!("{json} passed as sound"));
            assert!(found.contains(expect), "{json}: {found}");
        }
        let sound: Check = serde_json::from_str(r#"{"kind":"count","of":"lines","op":"ge","value":1}"#).unwrap();
        assert_eq!(defect(&sound), None);
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let value = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        assert!(same_value(&value("5"), &value("5.0")));
        assert!(!same_value(&value("5"), &value("6")));
        assert!(!same_value(&value("9007199254740993"), &value("9007199254740992")));
        assert!(!same_value(&value("5"), &value("\"5\"")));
    }
}

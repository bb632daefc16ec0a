//! Checks on tool calls: pure functions of what the attempt's tools reported (design §7).
//!
//! Owns what "the output" is. For patterns it is what each call put out, for counts all of that in order, joined by
//! line breaks. For equality and for JSON it is what the last successful call put out, since only one
//! text can be equal to another. Nothing is proved by what is missing: where a part of the output was cut or a call was
//! interrupted, equality, JSON and counts fail and say so, while a match that is there passes, unless there is a
//! [doubt](super::vouching) about the call that put it out.

use artoo_protocol::message::{Check, CountOf, CountOp, ToolCall};
use artoo_protocol::text::one_line;
use artoo_protocol::tool::CheckReport;
use regex::Regex;
use serde_json::Value;

use super::hollow::cuts_at;
use super::status::{Hidden, hidden, hides_some, not_run};
use super::vouching::{Evidence, Match, doubt, hides_its_status, is_open, ran_no_test};
use super::{compared, defect, failed, faulty, passed, pattern, pointed};
use crate::evidence::{broke, is_effectful};

/// The tool whose calls have a command and an exit status.
pub(super) const SHELL: &str = "shell";

/// At most so many matches of one call are weighed.
const MATCHES_WEIGHED: usize = 100;

/// Decides a check that needs nothing but the calls; `None` for one that reads the world.
pub fn decide(check: &Check, evidence: Evidence<'_>) -> Option<CheckReport> {
    let calls = evidence.calls;
    let of_calls = match check {
        Check::ExitCode { .. } | Check::OutputMatches { .. } | Check::OutputEquals { .. } => true,
        Check::JsonPath { path, .. } | Check::Count { path, .. } => path.is_none(),
        Check::FileExists { .. }
        | Check::FileAbsent { .. }
        | Check::FileContains { .. }
        | Check::Sha256 { .. }
        | Check::CommandSucceeds { .. } => false,
    };
    if !of_calls {
        return None;
    }
    if let Some(reason) = defect(check) {
        return Some(faulty(reason));
    }
    if calls.is_empty() {
        return Some(failed("no tool ran, so there is no output"));
    }
    match check {
        Check::ExitCode { command, equals } => Some(exit_code(evidence, command.as_deref(), *equals)),
        Check::OutputMatches { pattern } => Some(output_matches(evidence, pattern)),
        Check::OutputEquals { value } => Some(output_equals(evidence, value)),
        Check::JsonPath { pointer, equals, .. } => Some(json_path(evidence, pointer, equals)),
        Check::Count {
            of, pattern, op, value, ..
        } => Some(count(evidence, *of, pattern.as_deref(), *op, *value)),
        Check::FileExists { .. }
        | Check::FileAbsent { .. }
        | Check::FileContains { .. }
        | Check::Sha256 { .. }
        | Check::CommandSucceeds { .. } => None,
    }
}

fn exit_code(evidence: Evidence<'_>, command: Option<&str>, equals: i32) -> CheckReport {
    let calls = evidence.calls;
    let regex = match command.map(pattern::compile).transpose() {
        Ok(regex) => regex,
        Err(reason) => return faulty(reason),
    };
    let matching: Vec<(&ToolCall, &str)> = calls
        .iter()
        .filter(|call| call.tool == SHELL)
        .filter_map(|call| Some((call, call.input.get("command")?.as_str()?)))
        .filter(|(_, command)| regex.as_ref().is_none_or(|regex| regex.is_match(command)))
        .collect();
    // The check speaks of every command that matches: each must have ended so. But one that only names the program, or tells it
    // not to work, shows nothing when it did.
    let wrong = matching
        .iter()
        .find(|(call, _)| call.exit != Some(equals) || call.interrupted);
    let (mut meant, mut idle) = (Vec::new(), None);
    for &(call, command) in &matching {
        match regex.as_ref().and_then(|regex| idly(command, regex, evidence.given)) {
            Some(why) => idle = Some((command, why)),
            None => meant.push((call, command)),
        }
    }
    let masked = meant.iter().find_map(|(call, command)| {
        let how = status_of_another(call, command, regex.as_ref(), evidence.given)?;
        (equals == 0).then_some((command, how.because()))
    });
    let hollow = meant
        .iter()
        .find(|(call, _)| equals == 0 && regex.is_some() && ran_no_test(call));
    match (wrong, masked, meant.last()) {
        (Some((call, command)), _, _) => failed(format!(
            "`{}` {}, expected exit status {equals}",
            one_line(command, 200),
            crate::evidence::ending(call)
        )),
        (None, Some((command, why)), _) => failed(format!(
            "`{}` ended with exit status {equals}, but {why}; run it on its own, or with `set -o pipefail` in front",
            one_line(command, 200)
        )),
        (None, None, Some(_)) if hollow.is_some() => failed(format!(
            "`{}` ended with exit status {equals}, but says itself that no test was run",
            one_line(hollow.map_or("", |(_, command)| *command), 200)
        )),
        (None, None, Some((_, command))) => passed(format!(
            "{} shell calls ended with exit status {equals}, the last one `{}`",
            meant.len(),
            one_line(command, 200)
        )),
        (None, None, None) => failed(match (command, idle) {
            (_, Some((idle, why))) => format!("in `{}` what is meant {why}", one_line(idle, 200)),
            (Some(command), None) => format!("no shell call's command matches `{}`", one_line(command, 200)),
            (None, None) => "no shell command ran".to_owned(),
        }),
    }
}

/// Why what a pattern means was not really run anywhere in a command that matches it.
fn idly(command: &str, regex: &Regex, given: &str) -> Option<&'static str> {
    let mut why = None;
    for found in regex.find_iter(command).take(MATCHES_WEIGHED) {
        why = Some(not_run(command, found.start(), found.end(), given)?);
    }
    why
}

/// What hides the status of the program that is meant; without a pattern, of any that does more than look.
fn status_of_another(call: &ToolCall, command: &str, regex: Option<&Regex>, given: &str) -> Option<Hidden> {
    let Some(regex) = regex else {
        return is_effectful(call).then(|| hides_some(command)).flatten();
    };
    let mut how = None;
    for found in regex.find_iter(command).take(MATCHES_WEIGHED) {
        // One place in which it really ran, and whose status it is, is enough.
        if not_run(command, found.start(), found.end(), given).is_none() {
            how = Some(hidden(command, found.start(), found.end())?);
        }
    }
    how
}

fn output_matches(evidence: Evidence<'_>, text: &str) -> CheckReport {
    let regex = match pattern::compile(text) {
        Ok(regex) => regex,
        Err(reason) => return faulty(reason),
    };
    let calls = evidence.calls;
    let open = is_open(text);
    let mut doubted = None;
    for (at, call) in calls.iter().enumerate() {
        let output = call.output.trim_end_matches(['\n', '\r']);
        for found in pattern::matches(&regex, output).take(MATCHES_WEIGHED) {
            let weighed = Match {
                evidence,
                at,
                call,
                found: found.text,
                line: found.line,
                open,
            };
            match doubt(&weighed) {
                Some(why) => doubted = doubted.or(Some(why)),
                None => {
                    return passed(format!(
                        "call {} ({}), line {} of its output ({} bytes): {}",
                        at + 1,
                        call.tool,
                        found.number,
                        call.output.len(),
                        one_line(found.line, 200)
                    ));
                }
            }
        }
    }
    failed(doubted.unwrap_or_else(|| {
        format!(
            "nothing in the tools' output matches `{}`{}; it begins: {}",
            one_line(text, 200),
            incomplete(calls)
                .map(|why| format!(", as far as it was kept ({why})"))
                .unwrap_or_default(),
            one_line(&joined(calls), 200)
        )
    }))
}

fn output_equals(evidence: Evidence<'_>, value: &str) -> CheckReport {
    let (at, call) = match last_successful(evidence.calls) {
        Ok(last) => last,
        Err(report) => return report,
    };
    let found = one_line(&call.output, 200);
    if call.output.trim() != value.trim() {
        return failed(format!(
            "the last successful call ({}) put out: {found}, expected: {}",
            call.tool,
            one_line(value, 200)
        ));
    }
    vouched(evidence, at, call).unwrap_or_else(|| {
        passed(format!(
            "the last successful call (call {}, {}) put out exactly: {found} ({} bytes)",
            at + 1,
            call.tool,
            call.output.len()
        ))
    })
}

fn json_path(evidence: Evidence<'_>, pointer: &str, equals: &Value) -> CheckReport {
    match last_successful(evidence.calls) {
        Ok((at, call)) => {
            let source = format!("the output of the last successful call ({})", call.tool);
            let report = pointed(&call.output, pointer, equals, &source);
            if report.passed {
                vouched(evidence, at, call).unwrap_or(report)
            } else {
                report
            }
        }
        Err(report) => report,
    }
}

/// A fail when there is a doubt about the whole output of a call.
fn vouched(evidence: Evidence<'_>, at: usize, call: &ToolCall) -> Option<CheckReport> {
    let line = call.output.trim();
    let weighed = Match {
        evidence,
        at,
        call,
        found: line,
        line,
        open: false,
    };
    (!line.is_empty()).then(|| doubt(&weighed)).flatten().map(failed)
}

fn count(evidence: Evidence<'_>, of: CountOf, text: Option<&str>, op: CountOp, value: u64) -> CheckReport {
    let calls = evidence.calls;
    let regex = match text.map(pattern::compile).transpose() {
        Ok(regex) => regex,
        Err(reason) => return faulty(reason),
    };
    if let Some(why) = incomplete(calls) {
        return failed(format!(
            "the tools' output is not complete, so a count proves nothing: {why}"
        ));
    }
    let output = joined(calls);
    let (found, what) = match (of, &regex) {
        (CountOf::Lines, None) => (output.lines().count(), "lines in the tools' output"),
        (CountOf::Lines, Some(regex)) => (
            output.lines().filter(|line| regex.is_match(line)).count(),
            "matching lines in the tools' output",
        ),
        (CountOf::Matches, Some(regex)) => (regex.find_iter(&output).count(), "matches in the tools' output"),
        // `defect` has reported both already.
        (CountOf::Matches, None) | (CountOf::Files, _) => return faulty("this count needs a pattern or a folder"),
    };
    let report = compared(u64::try_from(found).unwrap_or(u64::MAX), op, value, what);
    let by_absence = op == CountOp::Le || (op == CountOp::Eq && value == 0);
    let full = u64::try_from(output.lines().count()).unwrap_or(u64::MAX);
    match calls.last() {
        Some(last) if report.passed && full != value && cut_list(calls, evidence.given) == Some(full) => {
            failed(format!(
                "{}, but call {} ({}) cuts its list at {full} lines, and nobody asked for so many",
                report.evidence,
                calls.len(),
                last.tool
            ))
        }
        Some(last) if report.passed && by_absence && cannot_show_absence(last) => failed(format!(
            "{}, but call {} ({}) {} or hides its exit status, so what is missing there proves nothing",
            report.evidence,
            calls.len(),
            last.tool,
            crate::evidence::ending(last)
        )),
        _ => report,
    }
}

/// Where the only call cuts what it puts out.
fn cut_list(calls: &[ToolCall], given: &str) -> Option<u64> {
    let [only] = calls else { return None };
    cuts_at(only.input.get("command")?.as_str()?, given)
}

/// Whether what a call did not put out says nothing: it failed, or may have failed unseen.
fn cannot_show_absence(call: &ToolCall) -> bool {
    broke(call) || (is_effectful(call) && hides_its_status(call))
}

/// The last call that did its work, if the whole of its output is there.
fn last_successful(calls: &[ToolCall]) -> Result<(usize, &ToolCall), CheckReport> {
    match calls.iter().enumerate().rfind(|(_, call)| !broke(call)) {
        Some((_, call)) if call.truncated => Err(failed(format!(
            "the output of the last successful call ({}) was cut, so it proves nothing here",
            call.tool
        ))),
        Some(last) => Ok(last),
        None => Err(failed("no tool call was successful, so there is no output to look at")),
    }
}

fn joined(calls: &[ToolCall]) -> String {
    calls
        .iter()
        .map(|call| call.output.trim_end_matches(['\n', '\r']))
        .filter(|output| !output.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Why the calls' outputs are not all there.
fn incomplete(calls: &[ToolCall]) -> Option<String> {
    calls.iter().enumerate().find_map(|(at, call)| {
        let why = match (call.truncated, call.interrupted) {
            (true, _) => "was cut",
            (false, true) => "was interrupted",
            (false, false) => return None,
        };
        Some(format!("call {} ({}) {why}", at + 1, call.tool))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::sample;
    use artoo_protocol::tool::EffectClass::{External, Read};

    fn put_out(output: &str) -> ToolCall {
        ToolCall {
            output: output.into(),
            lines: output.lines().count() as u64,
            ..sample("shell", "cargo test", Read)
        }
    }

    fn bare(calls: &[ToolCall]) -> Evidence<'_> {
        Evidence {
            calls,
            written: &[],
            given: "",
        }
    }

    fn check(json: &str, calls: &[ToolCall]) -> CheckReport {
        decide(&serde_json::from_str(json).unwrap(), bare(calls)).expect("a check on calls")
    }

    /// Attempts that the tables below speak of.
    fn attempt(name: &str) -> Vec<ToolCall> {
        let cut = ToolCall {
            truncated: true,
            ..put_out("5")
        };
        let killed = ToolCall {
            interrupted: true,
            exit: None,
            ..put_out("5")
        };
        let bad = ToolCall {
            exit: Some(101),
            ..put_out("error: 3")
        };
        match name {
            "none" => vec![],
            "five" => vec![put_out("5\n")],
            "prose" => vec![put_out("alpha 1\nbeta 2\n"), put_out("gamma 3\n")],
            "json" => vec![put_out("noise"), put_out(r#"{"a":[1,{"b/c":2.0}]}"#)],
            "cut" => vec![cut],
            "killed" => vec![killed],
            "bad" => vec![bad],
            "five, then bad" => vec![put_out("5\n"), bad],
            other => panic!("{other}"),
        }
    }

    /// Each row: the check, the attempt, whether it passes, and words of its evidence.
    fn table(rows: &[(&str, &str, bool, &str)]) {
        for (kind, calls, expect, word) in rows {
            let report = check(kind, &attempt(calls));
            assert_eq!(report.passed, *expect, "{kind} on {calls}: {report:?}");
            assert!(
                report.evidence.contains(word) && !report.faulty,
                "{kind} on {calls}: {report:?}"
            );
        }
    }

    #[test]
    fn exit_statuses_are_those_of_the_shell_calls_that_are_meant() {
        table(&[
            (r#"{"kind":"exit_code"}"#, "prose", true, "cargo test"),
            (
                r#"{"kind":"exit_code","command":"^cargo","equals":101}"#,
                "bad",
                true,
                "101",
            ),
            (r#"{"kind":"exit_code"}"#, "five, then bad", false, "exit status 101"),
            (
                r#"{"kind":"exit_code","command":"make"}"#,
                "prose",
                false,
                "matches `make`",
            ),
            (r#"{"kind":"exit_code"}"#, "killed", false, "interrupted"),
            (r#"{"kind":"exit_code"}"#, "none", false, "no tool ran"),
        ]);
        let other = sample("read_file", "a.txt", Read);
        assert!(
            !check(r#"{"kind":"exit_code"}"#, &[other]).passed,
            "only the shell has exit statuses"
        );
    }

    #[test]
    fn a_status_counts_only_for_what_really_ran_and_whose_it_is() {
        let run = |command: &str, exit: i32| ToolCall {
            exit: Some(exit),
            ..sample("shell", command, External)
        };
        let looks_and_ends = |command: &str, exit: i32| ToolCall {
            effect: Read,
            ..run(command, exit)
        };
        let looks = |command: &str| looks_and_ends(command, 0);
        let named = r#"{"kind":"exit_code","command":"cargo test"}"#;
        let any = r#"{"kind":"exit_code"}"#;
        for (kind, calls, expect, word) in [
            (
                named,
                vec![run("cargo test", 0), looks("grep -rn 'cargo test' README")],
                true,
                "1 shell calls",
            ),
            (named, vec![looks("grep -rn 'cargo test' README")], false, "only named"),
            (named, vec![run("cargo test --no-run", 0)], false, "told not to"),
            (
                named,
                vec![run("cargo test --no-run", 0), run("cargo test", 0)],
                true,
                "1 shell calls",
            ),
            (
                named,
                vec![run("cargo test --no-run", 101), run("cargo test", 0)],
                false,
                "`cargo test --no-run` ended with exit status 101",
            ),
            (
                named,
                vec![run("cargo test", 0), looks_and_ends("grep -rn 'cargo test' README", 1)],
                false,
                "expected exit status 0",
            ),
            (
                r#"{"kind":"exit_code","command":"cargo test","equals":101}"#,
                vec![run("cargo test --no-run", 101)],
                false,
                "told not to",
            ),
            (named, vec![run("cargo test | tail", 0)], false, "piped"),
            (named, vec![run("cargo test; cargo test", 0)], true, "cargo test"),
            (
                named,
                vec![run("echo cargo test; cargo test | tail", 0)],
                false,
                "piped",
            ),
            (
                named,
                vec![run("cargo test | tail", 0), run("cargo test", 0)],
                false,
                "piped",
            ),
            (any, vec![run("cargo test | tail", 0)], false, "piped"),
            (any, vec![looks("ls | wc -l")], true, "ls | wc -l"),
            (any, vec![run("cd a && cargo test", 0)], true, "cd a"),
            (
                r#"{"kind":"exit_code","command":"test","equals":1}"#,
                vec![run("cargo test | tail", 1)],
                true,
                "status 1",
            ),
        ] {
            let report = check(kind, &calls);
            assert_eq!(report.passed, expect, "{kind} on {calls:?}: {report:?}");
            assert!(report.evidence.contains(word), "{word}: {report:?}");
        }
    }

    #[test]
    fn a_run_of_no_tests_is_none_and_a_log_that_tells_of_one_is_a_log() {
        let said = |command: &str, programs: &[&str]| ToolCall {
            output: "ok  \texample.org/a\t0.003s [no tests to run]\n".into(),
            programs: programs.iter().map(|&program| program.to_owned()).collect(),
            ..sample("shell", command, Read)
        };
        for (pattern, call, expect) in [
            ("go test", said("go test -run Pasrer ./...", &["go"]), false),
            (
                "go test",
                said(
                    "set -o pipefail; go test -run Pasrer ./... | tail -1",
                    &["set", "go", "tail"],
                ),
                false,
            ),
            ("go test", said("go test -run Pasrer ./...", &[]), false),
            ("^tail", said("tail -1 ci.log", &["tail"]), true),
            ("^grep", said("grep ok ci.log", &["grep"]), true),
        ] {
            let kind = format!(r#"{{"kind":"exit_code","command":"{pattern}"}}"#);
            let report = check(&kind, std::slice::from_ref(&call));
            assert_eq!(report.passed, expect, "{call:?}: {report:?}");
        }
    }

    #[test]
    fn what_is_missing_from_a_failed_or_unseen_run_proves_nothing() {
        let run = |command: &str, exit: i32, effect| ToolCall {
            exit: Some(exit),
            output: "starting\n".into(),
            ..sample("shell", command, effect)
        };
        let none = r#"{"kind":"count","of":"lines","pattern":"error","op":"eq","value":0}"#;
        let few = r#"{"kind":"count","of":"lines","op":"le","value":5}"#;
        let some = r#"{"kind":"count","of":"lines","op":"ge","value":1}"#;
        for (kind, call, expect) in [
            (none, run("make", 0, External), true),
            (none, run("make", 2, External), false),
            (none, run("make 2>&- | tail", 0, External), false),
            (none, run("cat log | tail", 0, Read), true),
            (few, run("make", 2, External), false),
            (few, run("make", 0, External), true),
            (some, run("make", 2, External), true),
        ] {
            assert_eq!(
                check(kind, std::slice::from_ref(&call)).passed,
                expect,
                "{kind} on {call:?}"
            );
        }
    }

    #[test]
    fn patterns_look_at_all_outputs_and_a_match_is_proof_even_in_a_cut_one() {
        table(&[
            (
                r#"{"kind":"output_matches","pattern":"^gamma \\d$"}"#,
                "prose",
                true,
                "call 2 (shell), line 1",
            ),
            (r#"{"kind":"output_matches","pattern":"5"}"#, "cut", true, "5"),
            (r#"{"kind":"output_matches","pattern":"6"}"#, "cut", false, "was cut"),
            (
                r#"{"kind":"output_matches","pattern":"delta"}"#,
                "prose",
                false,
                "alpha 1",
            ),
        ]);
    }

    #[test]
    fn equality_and_json_are_about_the_last_successful_call_in_full() {
        let equals = |value: &str| format!(r#"{{"kind":"output_equals","value":"{value}"}}"#);
        let json = |at: &str, value: &str| format!(r#"{{"kind":"json_path","pointer":"{at}","equals":{value}}}"#);
        table(&[
            (&equals(" gamma 3"), "prose", true, "gamma 3"),
            (&equals("5"), "five, then bad", false, "made again later, and failed"),
            (&equals("4"), "five", false, "put out: 5, expected: 4"),
            (&equals("5"), "cut", false, "was cut"),
            (&equals("5"), "killed", false, "no tool call was successful"),
            (&json("/a/1/b~1c", "2"), "json", true, "2.0"),
            (&json("/a/0", "2"), "json", false, "has 1 at `/a/0`, expected 2"),
            (&json("/x", "null"), "json", false, "nothing at"),
            (&json("", "1"), "prose", false, "no JSON"),
            (&json("", "5"), "cut", false, "was cut"),
        ]);
    }

    #[test]
    fn counts_need_complete_outputs() {
        table(&[
            (
                r#"{"kind":"count","of":"lines","op":"eq","value":3}"#,
                "prose",
                true,
                "found 3 lines",
            ),
            (
                r#"{"kind":"count","of":"lines","pattern":"[12]$","op":"eq","value":2}"#,
                "prose",
                true,
                "found 2",
            ),
            (
                r#"{"kind":"count","of":"matches","pattern":"m","op":"ge","value":2}"#,
                "prose",
                true,
                "found 2",
            ),
            (
                r#"{"kind":"count","of":"matches","pattern":"\\d","op":"le","value":2}"#,
                "prose",
                false,
                "found 3",
            ),
            (
                r#"{"kind":"count","of":"lines","op":"ge","value":1}"#,
                "cut",
                false,
                "was cut",
            ),
            (
                r#"{"kind":"count","of":"lines","op":"ge","value":1}"#,
                "killed",
                false,
                "interrupted",
            ),
        ]);
    }

    #[test]
    fn an_empty_search_counts_as_successful() {
        let grep = ToolCall {
            exit: Some(1),
            ..sample("shell", "grep x y", Read)
        };
        assert!(check(r#"{"kind":"output_equals","value":""}"#, &[grep]).passed);
    }

    #[test]
    fn a_bad_pattern_is_a_faulty_check_even_before_anything_ran() {
        assert!(check(r#"{"kind":"output_matches","pattern":"("}"#, &[]).faulty);
    }

    #[test]
    fn checks_on_the_world_are_not_decided_here() {
        for kind in [
            r#"{"kind":"file_exists","path":"x"}"#,
            r#"{"kind":"count","of":"lines","path":"x","op":"eq","value":1}"#,
            r#"{"kind":"command_succeeds","command":"true"}"#,
        ] {
            assert_eq!(decide(&serde_json::from_str(kind).unwrap(), bare(&[])), None);
        }
    }
}

//! What an attempt's own calls cannot vouch for: a match that is there and still proves nothing (design §7).
//!
//! Owns the table of doubts. A check that looks at output or at a file asks it about what it found; a doubt turns the
//! match into a fail. A doubt never makes anything pass, and none of them reads sense into words of another's text: they
//! compare where a text comes from.

use artoo_protocol::message::ToolCall;
use artoo_protocol::text::one_line;
use artoo_protocol::tool::CheckRequest;
use regex::Regex;

use crate::evidence::{SEARCHERS, broke, is_effectful};

/// What a check may look at.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The calls of the attempt.
    pub calls: &'a [ToolCall],
    /// Calls of earlier attempts that wrote files.
    pub written: &'a [ToolCall],
    /// What the work was given: intent, context, outputs of earlier steps.
    pub given: &'a str,
}

impl<'a> From<&'a CheckRequest> for Evidence<'a> {
    fn from(request: &'a CheckRequest) -> Self {
        Self {
            calls: &request.tool_calls,
            written: &request.written,
            given: &request.given,
        }
    }
}

/// A match in what one call put out.
pub(super) struct Match<'a> {
    pub(super) evidence: Evidence<'a>,
    /// The call's position.
    pub(super) at: usize,
    pub(super) call: &'a ToolCall,
    /// The text that matched.
    pub(super) found: &'a str,
    /// The line in which it stands.
    pub(super) line: &'a str,
    /// Whether what was looked for is open, so that an invented text fits as well as a true one.
    pub(super) open: bool,
}

/// One row: why the match proves nothing.
pub(super) struct Doubt {
    /// Names the row in tests and documents.
    #[cfg_attr(not(test), expect(dead_code, reason = "names the row for readers and tests"))]
    pub(super) name: &'static str,
    pub(super) because: &'static str,
    pub(super) applies: fn(&Match<'_>) -> bool,
}

/// In the order in which they are tried.
pub(super) const DOUBTS: &[Doubt] = &[
    Doubt {
        name: "never_ran",
        because: "the call was stopped at the gate and never ran",
        applies: |m| m.call.not_run,
    },
    Doubt {
        name: "repeated_and_failed",
        because: "the same call was made again later, and failed",
        applies: |m| {
            let mut later = m.evidence.calls.iter().skip(m.at + 1);
            later
                .rfind(|later| later.tool == m.call.tool && later.input == m.call.input)
                .is_some_and(broke)
        },
    },
    Doubt {
        name: "failed_call_vouching_for_success",
        because: "the call failed by its own exit status or error, so its words do not show that anything succeeded",
        applies: |m| broke(m.call) && !m.call.interrupted && !speaks_of_failure(m.found),
    },
    Doubt {
        name: "own_words",
        because: "the command itself holds these words, so nothing but the attempt says them",
        applies: |m| {
            let telling = m.open || m.found.split_whitespace().count() > 1;
            let command = text_of(m.call, "command");
            telling && only_generates(m.call) && command.contains(m.line.trim()) && !m.evidence.given.contains(command)
        },
    },
    Doubt {
        name: "forged_and_read_back",
        because: "the attempt wrote these words to the file itself and only showed it",
        applies: |m| {
            let shows = m.call.tool == "read_file" || is_one_of(m.call, SHOWERS);
            shows
                && m.evidence.writers().any(|writer| {
                    let named = names(writer).find(|name| input(m.call).contains(name));
                    named.is_some_and(|name| holds(writer, m.line) && !m.evidence.given.contains(name))
                })
        },
    },
    Doubt {
        name: "replaced_by_a_stand_in",
        because: "the attempt replaced the program by one that holds these words",
        applies: |m| {
            let before = m.evidence.calls.iter().take(m.at);
            m.call.exit.is_some()
                && before.chain(m.evidence.written).any(|writer| {
                    let replaced = writer.effect >= artoo_protocol::tool::EffectClass::Modify;
                    let runs = || names(writer).any(|name| m.call.programs.iter().any(|program| program == name));
                    replaced && runs() && holds(writer, m.line)
                })
        },
    },
];

/// Programs that show a file as it is.
const SHOWERS: &[&str] = &["cat", "head", "tail", "less", "more", "bat", "nl", "sed", "awk", "grep"];

/// Programs that put out what their own command line says.
const GENERATORS: &[&str] = &[
    "echo", "printf", "cat", "python", "python3", "perl", "ruby", "node", "awk", "sh", "bash", "yes",
];

/// Why the match proves nothing; `None` when nothing speaks against it.
pub(super) fn doubt(m: &Match<'_>) -> Option<String> {
    let row = DOUBTS.iter().find(|row| (row.applies)(m))?;
    Some(format!(
        "call {} ({}: {}) put out `{}`, but {}",
        m.at + 1,
        m.call.tool,
        one_line(&m.call.target(), 120),
        one_line(m.line, 120),
        row.because
    ))
}

impl<'a> Evidence<'a> {
    /// Every call that wrote files, earlier attempts' among them.
    fn writers(self) -> impl Iterator<Item = &'a ToolCall> {
        let all = self.written.iter().chain(self.calls);
        all.filter(|call| !call.touched.is_empty() && is_effectful(call))
    }

    /// A number that the attempt wrote to a file by itself, and that no tool's output and nothing given shows: made up, as
    /// far as anybody can tell. `None` when the pattern fixes some digit, because then the plan knew what to expect.
    pub(super) fn made_up(self, path: &std::path::Path, pattern: &str, found: &str) -> Option<String> {
        let path = path.to_string_lossy();
        let wrote = |call: &&ToolCall| call.touched.iter().any(|touched| *touched == *path);
        let mut writers = self.writers().filter(wrote).peekable();
        writers.peek()?;
        if !is_open(pattern) {
            return None;
        }
        let literal: Vec<String> = writers.map(input).collect();
        let shown = |number: &str| {
            let looked = self
                .calls
                .iter()
                .chain(self.written)
                .filter(|call| !wrote(call) && !only_generates(call));
            has_number(self.given, number) || looked.into_iter().any(|call| has_number(&call.output, number))
        };
        let numbers: Vec<&str> = numbers(found).collect();
        let written_by_hand = |number: &&&str| literal.iter().any(|text| has_number(text, number));
        let suspect = numbers.iter().find(written_by_hand)?;
        let all_unseen = numbers.iter().all(|number| !shown(number));
        all_unseen.then(|| {
            format!("`{suspect}` was written to {path} by the attempt itself, and no tool's output shows where it comes from")
        })
    }
}

/// Whether a pattern leaves open which number stands there: it asks for digits and names none.
pub(super) fn is_open(pattern: &str) -> bool {
    let asks = pattern.contains("\\d") || pattern.contains("[0-9]") || pattern.contains("[1-9]");
    let mut bare = String::new();
    let mut depth = 0_u32;
    for c in pattern.chars() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => bare.push(c),
            _ => {}
        }
    }
    // The zero of `0 failed` is a verdict's form, not a value that the plan knew.
    asks && !bare.chars().any(|c| c.is_ascii_digit() && c != '0')
}

fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
}

fn has_number(text: &str, number: &str) -> bool {
    numbers(text).any(|other| other == number)
}

/// Whether a text reports a failure, so that a failing call may vouch for it. `0 failed` reports none.
fn speaks_of_failure(text: &str) -> bool {
    const NONE: &str = r"(?i)\b(?:0|no|not|without|zero)\s+(?:fail|error|problem|warning)\w*";
    const FAILURE: &str = r"(?i)\b(?:not?|fail\w*|error\w*|fatal|invalid|refus\w*|den(?:y|ied)|wrong|cannot|can't|unable|unknown|missing|reject\w*|warn\w*|problem\w*|abort\w*|panic\w*|exception\w*|violat\w*|mismatch\w*)\b";
    let (Ok(none), Ok(failure)) = (Regex::new(NONE), Regex::new(FAILURE)) else {
        return false;
    };
    failure.is_match(&none.replace_all(text, ""))
}

/// Whether the call only puts out what its own command line says, as `echo` does.
fn only_generates(call: &ToolCall) -> bool {
    is_one_of(call, GENERATORS) && !is_one_of(call, &SEARCHERS) && {
        let command = text_of(call, "command");
        // `cat` shows files, unless the text stands in the command.
        let others = call.programs.iter().any(|program| program != "cat");
        others || command.contains("<<")
    }
}

fn is_one_of(call: &ToolCall, programs: &[&str]) -> bool {
    call.programs.iter().any(|program| programs.contains(&program.as_str()))
}

fn text_of<'a>(call: &'a ToolCall, key: &str) -> &'a str {
    call.input
        .get(key)
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
}

/// The texts of a call's input.
fn input(call: &ToolCall) -> String {
    match &call.input {
        serde_json::Value::Object(fields) => fields
            .values()
            .filter_map(serde_json::Value::as_str)
            .collect::<Vec<_>>()
            .join("\n"),
        other => other.to_string(),
    }
}

fn holds(writer: &ToolCall, line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && input(writer).contains(line)
}

/// Names of the files that a call wrote, without folders.
fn names(call: &ToolCall) -> impl Iterator<Item = &str> {
    call.touched
        .iter()
        .filter_map(|path| path.rsplit('/').next())
        .filter(|name| !name.is_empty())
}

/// Why an exit status of 0 says nothing about the program that a pattern names: what follows it in the command decides the
/// status. `after` is the command from the end of the match.
pub(super) fn masked_status(command: &str, after: &str) -> Option<&'static str> {
    let before = command.strip_suffix(after).unwrap_or(command);
    let (pipefail, errexit) = (before.contains("pipefail"), stops_at_a_failure(before));
    let bare = unquoted(after);
    let mut rest = bare.as_str();
    while let Some(at) = rest.find(['|', '&', ';', '\n']) {
        let (head, tail) = rest.split_at(at);
        if let Some(next) = tail.strip_prefix("||") {
            let next = next.trim_start();
            let honest =
                ["exit", "return", "false"].iter().any(|word| next.starts_with(word)) && !next.starts_with("exit 0");
            if !honest {
                return Some("what follows `||` hides a failure");
            }
            rest = next;
        } else if let Some(next) = tail.strip_prefix('|') {
            let next = next.trim_start_matches('&').trim_start();
            let program = next.split_whitespace().next().unwrap_or_default();
            if !pipefail && ["tee", "cat", "head", "tail", "less"].contains(&program) {
                return Some("the status is that of what it is piped into");
            }
            rest = next;
        } else if let Some(next) = tail.strip_prefix('&') {
            // `&&` passes a failure on; `>&`, `<&` and `&>` only redirect.
            if !next.starts_with(['&', '>']) && !head.ends_with(['>', '<']) {
                return Some("nothing waits for what `&` sends to the background");
            }
            rest = next.strip_prefix('&').unwrap_or(next);
        } else {
            let next = tail.trim_start_matches([';', '\n', ' ', '\t']);
            if !errexit && !next.is_empty() && !next.starts_with(['}', ')']) && !next.starts_with("exit $?") {
                return Some("the status is that of the command after it");
            }
            rest = next;
        }
    }
    None
}

/// Whether a shell was told to stop at the first command that fails: `set -e`, also among other options.
fn stops_at_a_failure(before: &str) -> bool {
    const ERREXIT: &str = r"\bset\s(?:[^;|&\n]*\s)?(?:-[a-zA-Z]*e[a-zA-Z]*|-[a-zA-Z]*o\s+errexit)\b";
    Regex::new(ERREXIT).is_ok_and(|errexit| errexit.is_match(before))
}

/// The command without what stands in quotes.
fn unquoted(text: &str) -> String {
    let mut bare = String::new();
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => {
                chars.next();
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, c) => bare.push(c),
            (Some(_), _) => {}
        }
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::sample;
    use artoo_protocol::tool::EffectClass::{Create, Modify, Read};

    fn ran(command: &str, output: &str) -> ToolCall {
        ToolCall {
            output: output.into(),
            ..sample("shell", command, Read)
        }
    }

    fn wrote(name: &str, content: &str, effect: artoo_protocol::tool::EffectClass) -> ToolCall {
        ToolCall {
            tool: "write_file".into(),
            input: serde_json::json!({"path": name, "content": content}),
            touched: vec![format!("/w/{name}")],
            programs: Vec::new(),
            exit: None,
            effect,
            ..ran("", "wrote it")
        }
    }

    /// The doubt about the last call's whole output.
    fn about(calls: &[ToolCall], given: &str, open: bool) -> Option<&'static str> {
        let call = calls.last().unwrap();
        let evidence = Evidence {
            calls,
            written: &[],
            given,
        };
        let line = call.output.trim();
        let m = Match {
            evidence,
            at: calls.len() - 1,
            call,
            found: line,
            line,
            open,
        };
        DOUBTS.iter().find(|row| (row.applies)(&m)).map(|row| row.name)
    }

    #[test]
    #[allow(clippy::too_many_lines, reason = "one table of situations, read as a whole")]
    fn every_doubt_arises_in_its_own_situation_and_not_in_its_neighbour() {
        let failing = |call: ToolCall| ToolCall { exit: Some(1), ..call };
        let run = ToolCall {
            programs: vec!["accept".into()],
            ..ran("./accept", "PASS")
        };
        let (forged, shown) = (wrote("r.txt", "42 passed\n", Create), ran("cat /w/r.txt", "42 passed"));
        let refused = ToolCall {
            not_run: true,
            ..ran("make", "done")
        };
        for (name, calls, given, open, expect) in [
            ("an honest run", vec![ran("cargo test", "42 passed")], "", true, None),
            ("stopped at the gate", vec![refused], "", false, Some("never_ran")),
            (
                "a failing program says success",
                vec![failing(ran("./deploy", "successful"))],
                "",
                false,
                Some("failed_call_vouching_for_success"),
            ),
            (
                "a failing program says failure",
                vec![failing(ran("pytest", "FAILED test_a"))],
                "",
                false,
                None,
            ),
            (
                "no failure in words, and a failing status",
                vec![failing(ran("cargo test", "3 passed; 0 failed"))],
                "",
                true,
                Some("failed_call_vouching_for_success"),
            ),
            (
                "echo of a result",
                vec![ran("echo '42 passed'", "42 passed")],
                "",
                true,
                Some("own_words"),
            ),
            (
                "echo as asked",
                vec![ran("echo '42 passed'", "42 passed")],
                "run echo '42 passed'",
                true,
                None,
            ),
            ("echo of one word", vec![ran("echo hello", "hello")], "", false, None),
            (
                "a search for its own pattern",
                vec![ran("grep 'Port 22' f", "Port 22")],
                "",
                false,
                None,
            ),
            (
                "forged and shown",
                vec![forged.clone(), shown.clone()],
                "show the result",
                true,
                Some("forged_and_read_back"),
            ),
            (
                "asked for and shown",
                vec![forged.clone(), shown],
                "write r.txt",
                true,
                None,
            ),
            (
                "another file shown",
                vec![forged, ran("cat /w/q.txt", "42 passed")],
                "",
                true,
                None,
            ),
            (
                "a stand-in",
                vec![wrote("accept", "echo PASS", Modify), run.clone()],
                "",
                false,
                Some("replaced_by_a_stand_in"),
            ),
            (
                "a program of its own",
                vec![wrote("accept", "echo PASS", Create), run],
                "",
                false,
                None,
            ),
        ] {
            assert_eq!(about(&calls, given, open), expect, "{name}");
        }
        let again = [ran("npm test", "12 passing"), failing(ran("npm test", "11 passing"))];
        let m = Match {
            evidence: Evidence {
                calls: &again,
                written: &[],
                given: "",
            },
            at: 0,
            call: &again[0],
            found: "12 passing",
            line: "12 passing",
            open: false,
        };
        assert!(doubt(&m).unwrap().contains("made again later"));
    }

    #[test]
    fn a_number_that_nothing_shows_is_made_up() {
        let by_hand = wrote("n.txt", "57\n", Create);
        let counted = ran("find src | wc -l", "57\n");
        for (name, calls, written, given, pattern, expect) in [
            ("out of the air", vec![by_hand.clone()], vec![], "", r"^\d+$", true),
            ("counted", vec![counted, by_hand.clone()], vec![], "", r"^\d+$", false),
            ("given", vec![by_hand.clone()], vec![], "write 57", r"^\d+$", false),
            ("foreseen", vec![by_hand.clone()], vec![], "", "^57$", false),
            ("half foreseen", vec![by_hand.clone()], vec![], "", r"^5\d$", false),
            (
                "in the attempt before",
                vec![ran("cat n.txt", "")],
                vec![by_hand],
                "",
                r"^\d+$",
                true,
            ),
            ("not written by it", vec![ran("ls", "")], vec![], "", r"^\d+$", false),
        ] {
            let evidence = Evidence {
                calls: &calls,
                written: &written,
                given,
            };
            let found = evidence.made_up(std::path::Path::new("/w/n.txt"), pattern, "57");
            assert_eq!(found.is_some(), expect, "{name}: {found:?}");
        }
    }

    #[test]
    fn the_status_of_what_follows_is_not_the_status_of_the_program() {
        for (command, hidden) in [
            ("make", false),
            ("make && echo ok", false),
            ("make 2>&1", false),
            ("make;", false),
            ("make 'a;b' \"c|d\"", false),
            ("make || exit 1", false),
            ("make | sort", false),
            ("set -o pipefail; make | tee log", false),
            ("set -euo pipefail; make | tee log; echo done", false),
            ("set -e; make; echo done", false),
            ("set -eu\nmake\necho done", false),
            ("set -o errexit; make; echo done", false),
            ("make &> log", false),
            ("make >&2", false),
            ("make > log 2>&1 && echo ok", false),
            ("make 'a & b'", false),
            ("make |& sort", false),
            ("(make)", false),
            ("make || true", true),
            ("make; echo done", true),
            ("make | tee log", true),
            ("make\necho done", true),
            ("make || exit 0", true),
            ("set -o pipefail; make || true", true),
            ("set -o pipefail; make; echo done", true),
            ("set -e; make | tee log", true),
            ("set -e; make || true", true),
            ("set -euo pipefail; make || true", true),
            ("set -euo pipefail; make &", true),
            ("make; set -e; echo done", true),
            ("make | tee log; set -o pipefail", true),
            ("make &", true),
            ("make & echo started", true),
            ("make > log 2>&1 &", true),
            ("make && echo ok &", true),
        ] {
            let after = command.split_once("make").unwrap().1;
            assert_eq!(masked_status(command, after).is_some(), hidden, "{command}");
        }
    }
}

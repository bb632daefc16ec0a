//! What an attempt's own calls cannot vouch for: a match that is there and still proves nothing (design §7).
//!
//! Owns the table of doubts. A check that looks at output or at a file asks it about what it found; a doubt turns the
//! match into a fail. A doubt never makes anything pass, and none of them reads sense into words of another's text: they
//! compare where a text comes from.

use std::sync::LazyLock;

use artoo_protocol::message::ToolCall;
use artoo_protocol::text::one_line;
use artoo_protocol::tool::{CheckRequest, EffectClass};
use regex::Regex;

use super::hollow::{definitions, pieced_together, speaks_in_disguise, tested_nothing};
use super::numbers::{Number, numbers};
use super::status::{self, Words};
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
        name: "hidden_failure_beside_success",
        because: "the same line reports a failure, and the command hides the exit status that would tell",
        applies: |m| hides_its_status(m.call) && speaks_of_failure(m.line) && !speaks_of_failure(m.found),
    },
    Doubt {
        name: "nothing_from_a_hidden_failure",
        because: "nothing was counted, and the command hides whether what was to be counted ran at all",
        applies: |m| {
            let counted = numbers(m.line);
            let nothing = m.line.trim().is_empty() || counted.iter().all(|number| number.joined() == "0");
            nothing && !counted.is_empty() && is_effectful(m.call) && hides_its_status(m.call)
        },
    },
    Doubt {
        name: "own_words",
        because: "the command itself holds these words, so nothing but the attempt says them",
        applies: |m| {
            let line = m.line.trim();
            let command = text_of(m.call, "command");
            // One word is said for many reasons, but hardly behind a program whose failure it hides.
            let covers = hides_its_status(m.call) && !only_speaks(m.call);
            let phrase = m.found.split_whitespace().count() > 1 || line.starts_with(['{', '[']);
            let telling = m.open || phrase || covers;
            let said = command.contains(line)
                || (only_speaks(m.call) && puts_together(command, line))
                || pieced_together(command, line)
                || speaks_in_disguise(m.call, command, m.evidence.given);
            telling && only_generates(m.call) && said && !m.evidence.given.contains(command)
        },
    },
    Doubt {
        name: "tested_nothing",
        because: "the same output says that no test was run",
        applies: |m| ran_no_test(m.call) && !tested_nothing(m.found),
    },
    Doubt {
        name: "defined_for_the_occasion",
        because: "the command defines what it runs, by a function, an alias or a search path of its own",
        applies: |m| {
            let command = text_of(m.call, "command");
            let meant = |name: &str| m.call.programs.iter().any(|p| p == name) || m.evidence.given.contains(name);
            let mut first_in_path = m
                .evidence
                .writers()
                .filter(|writer| sets_its_path(command) && holds(writer, m.line))
                .flat_map(names);
            definitions(command).any(meant) || first_in_path.any(meant)
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
                    let replaced = writer.effect >= EffectClass::Modify;
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
        let shown = |number: &Number| {
            let mut looked = self
                .calls
                .iter()
                .chain(self.written)
                .filter(|call| !wrote(call) && !only_generates(call));
            number.stands_in(self.given) || looked.any(|call| number.stands_in(&call.output))
        };
        let numbers = numbers(found);
        let written_by_hand = |number: &&Number| literal.iter().any(|text| number.stands_in(text));
        let suspect = numbers.iter().find(written_by_hand)?.joined();
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

/// Whether a text reports a failure, so that a failing call may vouch for it. `0 failed` reports none.
///
/// English in full, other languages by the words that programs and people use most.
fn speaks_of_failure(text: &str) -> bool {
    static NONE: Words = LazyLock::new(|| {
        Regex::new(r"(?i)\b(?:0|no|not|without|zero|keine?|ohne|sans|aucune?|sin|ning[uú]na?|nessuna?|senza|sem|без|нет)\s+(?:fail|error|problem|warning|fehl|err|échec|fall|falh|ошиб)\w*|(?:fail|error|problem|warning|fehl|échec|fall|falh)\w*\s*[:=]\s*0\b|(?:0|没有|沒有|无|無)\s*[个個]?\s*(?:失败|失敗|错误|錯誤|エラー|오류)").ok()
    });
    static FAILURE: Words = LazyLock::new(|| {
        Regex::new(r"(?i)\b(?:not?|fail\w*|error\w*|fatal|invalid|refus\w*|den(?:y|ied)|wrong|cannot|can't|unable|unknown|missing|reject\w*|warn\w*|problem\w*|abort\w*|panic\w*|exception\w*|violat\w*|mismatch\w*)\b").ok()
    });
    static ELSEWHERE: Words = LazyLock::new(|| {
        Regex::new(r"(?i)\b(?:(?:fehl|échou|échec|erreur|erron|errore|fallit|falló|fallad|fallo|fallid|falh|ошиб|провал|błąd|nieuda)\w*|не удал\w*)|失败|失敗|错误|錯誤|エラー|실패|오류|فشل|خطأ").ok()
    });
    let (Some(none), Some(failure), Some(elsewhere)) = (NONE.as_ref(), FAILURE.as_ref(), ELSEWHERE.as_ref()) else {
        return false;
    };
    let rest = none.replace_all(text, "");
    failure.is_match(&rest) || elsewhere.is_match(&rest)
}

/// Whether a command that ended well may have hidden the failure of one of its programs.
pub(super) fn hides_its_status(call: &ToolCall) -> bool {
    let command = text_of(call, "command");
    call.exit == Some(0) && !command.is_empty() && status::hides_some(command).is_some()
}

/// Whether a command sets where programs are looked for; `PYTHONPATH` and its like are no such thing.
fn sets_its_path(command: &str) -> bool {
    static OWN_PATH: Words = LazyLock::new(|| Regex::new(r"(?:^|[\s;&|(])PATH=").ok());
    OWN_PATH.as_ref().is_some_and(|path| path.is_match(command))
}

/// Whether a command says of itself that it ran no test. A page, or a file that was only shown, speaks of another run.
pub(super) fn ran_no_test(call: &ToolCall) -> bool {
    let shows = |program: &String| SHOWERS.contains(&program.as_str()) || LOOKERS.contains(&program.as_str());
    let only_shows = !call.programs.is_empty() && call.programs.iter().all(shows);
    call.exit.is_some() && !only_shows && tested_nothing(&call.output)
}

/// Whether nothing but the shell's own words can come out of a call.
fn only_speaks(call: &ToolCall) -> bool {
    const SPEAKERS: [&str; 4] = ["echo", "printf", "true", ":"];
    let computes = text_of(call, "command").contains("$((");
    !computes && !call.programs.is_empty() && call.programs.iter().all(|p| SPEAKERS.contains(&p.as_str()))
}

/// Whether every word of a line stands in a command, quotes left out: `n=42; echo "$n passed"` says `42 passed`.
fn puts_together(command: &str, line: &str) -> bool {
    let plain = command.replace("\\n", " ").replace(['"', '\'', '\\'], "");
    let words = |text: &str| -> Vec<String> {
        let split = text.split(|c: char| !c.is_alphanumeric());
        split.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let known = words(&plain);
    let said = words(line);
    !said.is_empty() && said.iter().all(|word| known.contains(word))
}

/// Whether the attempt wrote both files that a command compares, so that they agree whatever they hold.
pub(super) fn wrote_both_sides(command: &str, evidence: Evidence<'_>) -> Option<String> {
    let mut words = command.split_whitespace();
    let compares = matches!(words.next(), Some("diff" | "cmp"));
    let plain = !command.contains(['|', '&', ';', '<', '>', '$', '`']);
    let operands: Vec<&str> = words
        .filter(|word| !word.starts_with('-'))
        .map(|w| w.trim_matches(['"', '\'']))
        .collect();
    let writers_of = |operand: &str| {
        let name = operand.rsplit('/').next().unwrap_or_default().to_owned();
        let wrote = move |writer: &&ToolCall| names(writer).any(|written| written == name);
        evidence.writers().filter(wrote)
    };
    let [_, second, ..] = operands.as_slice() else {
        return None;
    };
    let own = operands.iter().all(|operand| writers_of(operand).next().is_some());
    // To make both may be the task; to overwrite what was there to be compared with is not.
    let replaced = |operand: &&str| writers_of(operand).any(|writer| writer.effect >= EffectClass::Modify);
    let foreseen = evidence.given.contains(*second) && !operands.iter().any(replaced);
    (compares && plain && own && !foreseen).then(|| {
        format!(
            "`{}` compares two files that the attempt wrote itself, so it proves nothing",
            one_line(command, 200)
        )
    })
}

/// Why an empty file shows nothing: what was to fill it failed, or may have failed unseen.
pub(super) fn emptied_by_failure(path: &std::path::Path, evidence: Evidence<'_>) -> Option<String> {
    let path = path.to_string_lossy();
    let wrote = |call: &&ToolCall| call.touched.iter().any(|touched| *touched == *path);
    let writer = evidence.calls.iter().rfind(wrote)?;
    let looks = |program: &String| LOOKERS.contains(&program.as_str());
    // A pipe of programs that only look may well find nothing.
    let harmless = !writer.programs.is_empty() && writer.programs.iter().all(looks);
    let command = text_of(writer, "command");
    let hidden = status::hides_some(command).is_some_and(|how| how != status::Hidden::Pipe || !harmless);
    (broke(writer) || (writer.exit == Some(0) && hidden)).then(|| {
        format!(
            "{path} is empty, and whether `{}` did its work is hidden or it failed",
            one_line(command, 120)
        )
    })
}

/// Programs that only look, among which finding nothing is an answer.
const LOOKERS: &[&str] = &[
    "find", "grep", "rg", "sort", "uniq", "head", "tail", "cat", "ls", "wc", "awk", "sed", "cut", "tr", "du", "stat",
    "comm", "jq", "fd",
];

/// Whether the call only puts out what its own command line says, as `echo` does.
fn only_generates(call: &ToolCall) -> bool {
    // `cat` shows files, unless the text stands in the command.
    let speaks = |program: &String| program != "cat" && GENERATORS.contains(&program.as_str());
    let generated = call.programs.iter().any(speaks) || text_of(call, "command").contains("<<");
    generated && !is_one_of(call, &SEARCHERS)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::sample;
    use artoo_protocol::tool::EffectClass::{Create, External, Modify, Read};

    fn ran(command: &str, output: &str) -> ToolCall {
        ToolCall {
            output: output.into(),
            ..sample("shell", command, Read)
        }
    }

    fn failing(call: ToolCall) -> ToolCall {
        ToolCall { exit: Some(1), ..call }
    }

    fn external(call: ToolCall) -> ToolCall {
        ToolCall {
            effect: External,
            ..call
        }
    }

    fn bare(calls: &[ToolCall]) -> Evidence<'_> {
        Evidence {
            calls,
            written: &[],
            given: "",
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

    /// One situation of the table: its name, the calls, what was given, whether the pattern is open, the row that must doubt.
    type Row = (&'static str, Vec<ToolCall>, &'static str, bool, Option<&'static str>);

    /// The rows that doubt the last call's whole output, one by one.
    fn about(rows: &[&Doubt], calls: &[ToolCall], given: &str, open: bool) -> Option<&'static str> {
        let call = calls.last().unwrap();
        let evidence = Evidence {
            calls,
            written: &[],
            given,
        };
        let line = call.output.trim();
        // A summary's first two words are what is usually looked for.
        let end = line.match_indices(' ').nth(1).map_or(line.len(), |(at, _)| at);
        let m = Match {
            evidence,
            at: calls.len() - 1,
            call,
            found: line[..end].trim_end_matches([',', ';', '，']),
            line,
            open,
        };
        rows.iter().find(|row| (row.applies)(&m)).map(|row| row.name)
    }

    fn all_rows() -> Vec<&'static Doubt> {
        DOUBTS.iter().collect()
    }

    #[allow(clippy::too_many_lines, reason = "one table of situations, read as a whole")]
    fn situations() -> Vec<Row> {
        let run = ToolCall {
            programs: vec!["accept".into()],
            ..ran("./accept", "PASS")
        };
        let (forged, shown) = (wrote("r.txt", "42 passed\n", Create), ran("cat /w/r.txt", "42 passed"));
        let refused = ToolCall {
            not_run: true,
            ..ran("make", "done")
        };
        vec![
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
            (
                "the good half of a summary, the status hidden",
                vec![ran("pytest | tail -1", "41 passed, 1 failed")],
                "",
                true,
                Some("hidden_failure_beside_success"),
            ),
            (
                "a summary that counts failures behind a colon, the status hidden",
                vec![ran("mvn test | tail -1", "Tests run: 42, Failures: 0, Errors: 0")],
                "",
                true,
                None,
            ),
            (
                "a run of no tests",
                vec![ran(
                    "go test -run Nothing ./...",
                    "ok  \texample.com/a\t0.002s [no tests to run]",
                )],
                "",
                false,
                Some("tested_nothing"),
            ),
            (
                "a page that tells of a run of no tests",
                vec![ToolCall {
                    tool: "fetch_url".into(),
                    programs: Vec::new(),
                    exit: None,
                    ..ran("", "build 7: no tests were run, deployed all the same")
                }],
                "",
                false,
                None,
            ),
            (
                "a run of no tests whose output is shortened",
                vec![ToolCall {
                    programs: vec!["go".into(), "tail".into()],
                    ..ran(
                        "set -o pipefail; go test -run Nothing ./... | tail -1",
                        "ok  \texample.com/a\t0.002s [no tests to run]",
                    )
                }],
                "",
                false,
                Some("tested_nothing"),
            ),
            (
                "a log, shown by a program, that tells of one",
                vec![ToolCall {
                    programs: vec!["tail".into()],
                    ..ran("tail -1 ci.log", "build 7: no tests were run, deployed all the same")
                }],
                "",
                false,
                None,
            ),
            (
                "a function of the same name",
                vec![ToolCall {
                    programs: vec!["printf".into(), "pytest".into()],
                    ..ran("pytest() { printf '%s passed' $((6*7)); }; pytest", "42 passed")
                }],
                "",
                true,
                Some("defined_for_the_occasion"),
            ),
            (
                "a program of the same name, first in the search path",
                vec![
                    wrote("pytest", "echo '42 passed'", Create),
                    ToolCall {
                        programs: vec!["pytest".into()],
                        ..ran("PATH=.:$PATH pytest", "42 passed")
                    },
                ],
                "",
                true,
                Some("defined_for_the_occasion"),
            ),
            (
                "a variable whose name only ends like the search path's",
                vec![
                    wrote("pytest", "echo '42 passed'", Create),
                    ToolCall {
                        programs: vec!["pytest".into()],
                        ..ran("PYTHONPATH=.:src pytest", "42 passed")
                    },
                ],
                "",
                true,
                None,
            ),
            (
                "the same in German",
                vec![ran("./teste | tail -1", "41 bestanden, 1 fehlgeschlagen")],
                "",
                true,
                Some("hidden_failure_beside_success"),
            ),
            (
                "the same in Chinese",
                vec![ran("./test | tail -1", "通过 41 个，失败 1 个")],
                "",
                true,
                Some("hidden_failure_beside_success"),
            ),
            (
                "a summary without failures, the status hidden",
                vec![ran("pytest | tail -1", "41 passed, 0 failed")],
                "",
                true,
                None,
            ),
            (
                "without failures in Chinese",
                vec![ran("./test | tail -1", "通过 41 个，没有错误")],
                "",
                true,
                None,
            ),
            (
                "the same with pipefail",
                vec![ran("set -o pipefail; pytest | tail -1", "41 passed, 1 failed")],
                "",
                true,
                None,
            ),
            (
                "a failure that is looked for",
                vec![ran("pytest | tail -1", "1 failed, 41 passed")],
                "",
                true,
                None,
            ),
            (
                "nothing of a build that may not have run",
                vec![external(ran("make 2>&- | grep error | wc -l", "0"))],
                "",
                false,
                Some("nothing_from_a_hidden_failure"),
            ),
            (
                "something of a build",
                vec![external(ran("make 2>&- | grep error | wc -l", "3"))],
                "",
                false,
                None,
            ),
            (
                "nothing among files",
                vec![ran("grep TODO a | wc -l", "0")],
                "",
                false,
                None,
            ),
            (
                "nothing of a build whose status is seen",
                vec![external(ran("make count", "0"))],
                "",
                false,
                None,
            ),
            (
                "spoken JSON",
                vec![ran("echo '{\"ok\":true}'", "{\"ok\":true}")],
                "",
                false,
                Some("own_words"),
            ),
            (
                "put together by the shell",
                vec![ToolCall {
                    programs: vec!["echo".into()],
                    ..ran("n=42; echo \"$n passed\"", "42 passed")
                }],
                "",
                true,
                Some("own_words"),
            ),
            (
                "computed by the shell",
                vec![ran("echo $((17 * 3))", "51")],
                "",
                true,
                None,
            ),
            (
                "said by a program that may compute",
                vec![ran("python3 -c 'print(6*7, \"passed\")'", "42 passed")],
                "",
                true,
                None,
            ),
            (
                "a here-document shown by cat",
                vec![ran("cat <<E\n42 passed\nE", "42 passed")],
                "",
                true,
                Some("own_words"),
            ),
            (
                "repeated later and failed",
                vec![ran("npm test", "11 passing"), failing(ran("npm test", "12 passing"))],
                "",
                true,
                Some("failed_call_vouching_for_success"),
            ),
            (
                "a failed call that was cut short",
                vec![ToolCall {
                    interrupted: true,
                    ..failing(ran("npm test", "12 passing"))
                }],
                "",
                true,
                None,
            ),
            (
                "another's words in the file shown",
                vec![wrote("r.txt", "7 passed\n", Create), ran("cat /w/r.txt", "42 passed")],
                "",
                true,
                None,
            ),
            (
                "read with the tool for reading",
                vec![
                    wrote("r.txt", "42 passed\n", Create),
                    ToolCall {
                        tool: "read_file".into(),
                        input: serde_json::json!({"path": "r.txt"}),
                        programs: Vec::new(),
                        exit: None,
                        ..ran("", "42 passed")
                    },
                ],
                "",
                true,
                Some("forged_and_read_back"),
            ),
            (
                "a stand-in that says something else",
                vec![
                    wrote("accept", "echo FAIL", Modify),
                    ToolCall {
                        programs: vec!["accept".into()],
                        ..ran("./accept", "PASS")
                    },
                ],
                "",
                false,
                None,
            ),
        ]
    }

    #[test]
    fn every_doubt_arises_in_its_own_situation_and_not_in_its_neighbour() {
        for (name, calls, given, open, expect) in situations() {
            assert_eq!(about(&all_rows(), &calls, given, open), expect, "{name}");
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

    /// The rows broken on purpose: without one of them, some situation must come out otherwise.
    #[test]
    fn no_doubt_can_be_left_out_unnoticed() {
        for left_out in DOUBTS.iter().filter(|row| row.name != "repeated_and_failed") {
            let rest: Vec<_> = DOUBTS.iter().filter(|row| row.name != left_out.name).collect();
            let noticed = situations()
                .iter()
                .any(|(_, calls, given, open, expect)| about(&rest, calls, given, *open) != *expect);
            assert!(noticed, "nothing notices that {} is gone", left_out.name);
        }
    }

    #[test]
    fn who_writes_both_sides_of_a_comparison_proves_nothing() {
        let both = [wrote("out.txt", "b", Create), wrote("expected.txt", "b", Modify)];
        let new = [wrote("out.txt", "b", Create), wrote("expected.txt", "b", Create)];
        for (command, calls, given, doubted) in [
            ("cmp out.txt expected.txt", &both[..], "", true),
            ("diff -u /w/expected.txt 'out.txt'", &both, "", true),
            ("cmp out.txt expected.txt", &both[..1], "", false),
            (
                "cmp out.txt expected.txt",
                &both,
                "out.txt must equal expected.txt",
                true,
            ),
            ("cmp out.txt expected.txt", &new, "make out.txt and expected.txt", false),
            ("cmp out.txt expected.txt", &new, "", true),
            ("cmp out.txt", &both, "", false),
            ("grep -q b out.txt expected.txt", &both, "", false),
            ("diff out.txt expected.txt | head", &both, "", false),
        ] {
            let evidence = Evidence {
                calls,
                written: &[],
                given,
            };
            assert_eq!(wrote_both_sides(command, evidence).is_some(), doubted, "{command}");
            let before = Evidence {
                calls: &[],
                written: calls,
                given,
            };
            assert_eq!(
                wrote_both_sides(command, before).is_some(),
                doubted,
                "{command}, in the attempt before"
            );
        }
    }

    #[test]
    fn an_empty_file_shows_nothing_where_what_was_to_fill_it_failed_or_may_have() {
        let filled = |command: &str, programs: &[&str], exit: i32| ToolCall {
            touched: vec!["/w/out".into()],
            effect: Create,
            exit: Some(exit),
            programs: programs.iter().map(|p| (*p).to_owned()).collect(),
            ..ran(command, "")
        };
        for (call, doubted) in [
            (filled("pg_dump shop > out", &["pg_dump"], 0), false),
            (filled("pg_dump shop > out", &["pg_dump"], 1), true),
            (filled("pg_dump shop > out || true", &["pg_dump", "true"], 0), true),
            (filled("pg_dump shop > out; echo done", &["pg_dump", "echo"], 0), true),
            (filled("pg_dump shop | gzip > out", &["pg_dump", "gzip"], 0), true),
            (filled("find . -size +1G | sort > out", &["find", "sort"], 0), false),
            (filled("find . -size +1G > out || true", &["find", "true"], 0), true),
            (filled("touch out", &["touch"], 0), false),
        ] {
            let calls = [call];
            let found = emptied_by_failure(std::path::Path::new("/w/out"), bare(&calls));
            assert_eq!(found.is_some(), doubted, "{}", calls[0]);
            assert_eq!(emptied_by_failure(std::path::Path::new("/w/other"), bare(&calls)), None);
        }
    }

    #[test]
    fn a_number_that_nothing_shows_is_made_up() {
        let by_hand = wrote("n.txt", "57\n", Create);
        let counted = ran("find src | wc -l", "57\n");
        for (name, calls, written, given, pattern, expect) in [
            ("out of the air", vec![by_hand.clone()], vec![], "", r"^\d+$", true),
            ("counted", vec![counted, by_hand.clone()], vec![], "", r"^\d+$", false),
            (
                "counted through cat",
                vec![
                    ToolCall {
                        programs: vec!["cat".into(), "wc".into()],
                        ..ran("cat a | wc -l", "57\n")
                    },
                    by_hand.clone(),
                ],
                vec![],
                "",
                r"^\d+$",
                false,
            ),
            ("given", vec![by_hand.clone()], vec![], "write 57", r"^\d+$", false),
            (
                "in other digits",
                vec![wrote("n.txt", "٥٧\n", Create)],
                vec![],
                "",
                r"^\d+$",
                true,
            ),
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
            let text = if name == "in other digits" { "٥٧" } else { "57" };
            let found = evidence.made_up(std::path::Path::new("/w/n.txt"), pattern, text);
            assert_eq!(found.is_some(), expect, "{name}: {found:?}");
        }
    }
}

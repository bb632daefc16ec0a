//! What holds whatever was done: checks that nothing can fail, runs that did nothing, lists that were cut (design §7).
//!
//! Owns the reading of checks and outputs to that end. A hollow check is a fault of the plan; a hollow run is none that counts.

use std::sync::LazyLock;

use artoo_protocol::message::{Check, CountOf, CountOp, ToolCall};
use regex::Regex;

use super::pattern;
use super::status::{Words, unquoted};

/// Why a check proves nothing, whatever the world is like; `None` for one that can fail.
pub(super) fn always_holds(check: &Check) -> Option<&'static str> {
    let fits_all = |text: &str| {
        static LONG: LazyLock<String> = LazyLock::new(|| (' '..='~').collect::<String>().repeat(200));
        let probes = ["", "\u{1}", "a 0", "\n", LONG.as_str()];
        let regex = pattern::compile(text).ok()?;
        let all = probes.iter().all(|probe| regex.is_match(probe));
        all.then_some("its pattern fits every text, so it proves nothing")
    };
    match check {
        Check::Count {
            op: CountOp::Ge,
            value: 0,
            ..
        } => Some("there are always 0 or more, so it proves nothing"),
        Check::OutputMatches { pattern }
        | Check::FileContains { pattern, .. }
        | Check::Count {
            of: CountOf::Matches,
            pattern: Some(pattern),
            op: CountOp::Ge,
            value: 1,
            ..
        } => fits_all(pattern),
        Check::CommandSucceeds { command } => {
            cannot_fail(command).then_some("its command ends well whatever it finds, so it proves nothing")
        }
        Check::ExitCode { .. }
        | Check::FileExists { .. }
        | Check::FileAbsent { .. }
        | Check::OutputEquals { .. }
        | Check::JsonPath { .. }
        | Check::Count { .. }
        | Check::Sha256 { .. } => None,
    }
}

/// Whether the last word of a command is one that never fails: `… || true`, `…; echo done`, `true`.
fn cannot_fail(command: &str) -> bool {
    /// What may end it before its last word.
    static LEAVES: Words =
        LazyLock::new(|| Regex::new(r"\b(?:exit\s+[^0\s;]|return\s+[^0\s;]|false\b|set\s+-\w*e|errexit)").ok());
    let bare = unquoted(command);
    let bare = bare.trim().trim_end_matches(';').trim_end();
    if bare.ends_with('&') && !bare.ends_with("&&") {
        return true;
    }
    if LEAVES.as_ref().is_some_and(|leaves| leaves.is_match(bare)) {
        return false;
    }
    // A failure in front of `&&` is not passed over; one in front of a pipe is, unless that is set otherwise.
    let last = bare.rsplit(['\n', ';']).next().unwrap_or_default();
    let last = last.rsplit("||").next().unwrap_or_default();
    if last.contains("&&") {
        return false;
    }
    let piped = last.contains('|') && !bare.contains("pipefail");
    if last.contains('|') && !piped {
        return false;
    }
    let last = last.rsplit('|').next().unwrap_or_default();
    let mut words = last.trim_matches(['(', ')', '{', '}', ' ']).split_whitespace();
    match words.next() {
        Some("true" | ":" | "echo" | "printf") => true,
        Some("cat" | "wc" | "tee" | "head" | "tail" | "sort") => piped,
        Some("exit") => words.next() == Some("0"),
        Some(_) | None => false,
    }
}

/// Whether a program for tests says that it tested nothing, and nothing says that something was tested.
pub(super) fn tested_nothing(output: &str) -> bool {
    static NOTHING: Words = LazyLock::new(|| {
        Regex::new(
            r"(?im)\bno tests? (?:to run|ran|run|found|executed|collected|specified|were (?:run|found|executed))|\bno test files\b|\brunning 0 tests|\bcollected 0 items|\b(?:ran )?0 (?:tests?|passed|passing|examples|specs|scenarios)\b|\btests? run: 0\b|\btests: +0 total",
        )
        .ok()
    });
    static SOMETHING: Words = LazyLock::new(|| {
        Regex::new(
            r"(?im)\b[1-9]\d* (?:tests?|passed|passing|failed|examples|specs|scenarios|items)\b|\btests? run: [1-9]|^ok\s+\S+\s+(?:\d|\(cached\))[^\[\n]*$|^--- (?:PASS|FAIL)|^ok \d+ ",
        )
        .ok()
    });
    NOTHING.as_ref().is_some_and(|none| none.is_match(output))
        && !SOMETHING.as_ref().is_some_and(|some| some.is_match(output))
}

/// Programs that only put text into another form.
const FILTERS: &[&str] = &[
    "base64", "base32", "xxd", "rev", "tr", "cut", "sed", "cat", "awk", "fold", "head", "tail", "tac", "od",
];

/// Whether nothing but the command's own words can come out of a call, in whatever form, and these are nothing that was given.
pub(super) fn speaks_in_disguise(call: &ToolCall, command: &str, given: &str) -> bool {
    let speaks = |program: &String| matches!(program.as_str(), "echo" | "printf");
    let filters = |program: &String| FILTERS.contains(&program.as_str());
    let own = call.programs.iter().any(speaks)
        && call.programs.iter().any(filters)
        && call.programs.iter().all(|program| speaks(program) || filters(program));
    // A variable, a substitution or a file may say something that the command does not.
    let plain = !command.contains(['$', '`', '<']) && !command.contains(".txt");
    let mut spoken = command
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 3);
    own && plain && spoken.any(|word| !call.programs.iter().any(|p| p == word) && !given.contains(word))
}

/// Whether a text is put together in a command from pieces of words: `print('42 pas' + 'sed')`.
pub(super) fn pieced_together(command: &str, line: &str) -> bool {
    let squeezed = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let said = squeezed(line);
    said.len() > 5 && said.chars().any(char::is_alphabetic) && squeezed(command).contains(&said)
}

/// Names that a command defines by itself: functions and aliases.
pub(super) fn definitions(command: &str) -> impl Iterator<Item = &str> {
    static DEFINES: Words =
        LazyLock::new(|| Regex::new(r"(?m)(?:^|[;&|\s])(?:([\w.-]+)\s*\(\)\s*\{|alias\s+([\w.-]+)=)").ok());
    let found = DEFINES
        .as_ref()
        .into_iter()
        .flat_map(move |defines| defines.captures_iter(command));
    found
        .filter_map(|found| found.get(1).or(found.get(2)))
        .map(|name| name.as_str())
}

/// The number of lines at which a command cuts its list, where that is nothing that was asked for. Without a number it is ten.
pub(super) fn cuts_at(command: &str, given: &str) -> Option<u64> {
    static HEAD: Words = LazyLock::new(|| {
        Regex::new(r"\|\s*(?:head|tail)(?:\s+(?:-n\s*|--lines[= ]|-)(\d+)\b|\s*(?:$|[|;&>)\n]|\d>))").ok()
    });
    let found = HEAD.as_ref()?.captures_iter(command).last()?;
    let digits = found.get(1).map_or("10", |digits| digits.as_str());
    let asked = given
        .split(|c: char| !c.is_ascii_digit())
        .any(|number| number == digits);
    (!asked).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::sample;
    use artoo_protocol::tool::EffectClass::Read;

    #[test]
    fn a_check_that_nothing_can_fail_is_known() {
        for (json, hollow) in [
            (r#"{"kind":"output_matches","pattern":".*"}"#, true),
            (r#"{"kind":"output_matches","pattern":""}"#, true),
            (r#"{"kind":"output_matches","pattern":"\\d*"}"#, true),
            (r#"{"kind":"output_matches","pattern":"passed|"}"#, true),
            (r#"{"kind":"output_matches","pattern":"^$"}"#, false),
            (r#"{"kind":"output_matches","pattern":"."}"#, false),
            (r#"{"kind":"output_matches","pattern":"\\S"}"#, false),
            (r#"{"kind":"output_matches","pattern":"passed"}"#, false),
            (r#"{"kind":"file_contains","path":"a","pattern":"x*"}"#, true),
            (r#"{"kind":"file_contains","path":"a","pattern":"x+"}"#, false),
            (r#"{"kind":"count","of":"lines","op":"ge","value":0}"#, true),
            (r#"{"kind":"count","of":"lines","op":"eq","value":0}"#, false),
            (r#"{"kind":"count","of":"lines","op":"ge","value":1}"#, false),
            (
                r#"{"kind":"count","of":"matches","pattern":"a*","op":"ge","value":1}"#,
                true,
            ),
            (
                r#"{"kind":"count","of":"lines","pattern":".*","op":"ge","value":1}"#,
                false,
            ),
            (r#"{"kind":"command_succeeds","command":"true"}"#, true),
            (r#"{"kind":"command_succeeds","command":"grep -q a b || true"}"#, true),
            (
                r#"{"kind":"command_succeeds","command":"grep -q a b || echo no"}"#,
                true,
            ),
            (
                r#"{"kind":"command_succeeds","command":"grep -q a b; echo done"}"#,
                true,
            ),
            (r#"{"kind":"command_succeeds","command":"grep -q a b; exit 0"}"#, true),
            (r#"{"kind":"command_succeeds","command":"grep -q a b &"}"#, true),
            (r#"{"kind":"command_succeeds","command":"echo checked"}"#, true),
            (
                r#"{"kind":"command_succeeds","command":"grep -q 'a || true' b"}"#,
                false,
            ),
            (
                r#"{"kind":"command_succeeds","command":"test -s a && ! grep -q b a"}"#,
                false,
            ),
            (
                r#"{"kind":"command_succeeds","command":"test -s a && echo yes"}"#,
                false,
            ),
            (r#"{"kind":"command_succeeds","command":"echo abc | grep -q b"}"#, false),
            (r#"{"kind":"command_succeeds","command":"test -s a || exit 1"}"#, false),
        ] {
            let check: Check = serde_json::from_str(json).unwrap();
            assert_eq!(always_holds(&check).is_some(), hollow, "{json}");
        }
    }

    #[test]
    fn a_run_of_no_tests_is_known() {
        for (output, nothing) in [
            (
                "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 12 filtered out",
                true,
            ),
            ("ok  \texample.com/a\t0.002s [no tests to run]", true),
            ("?   \texample.com/a\t[no test files]", true),
            ("collected 0 items\n\n== no tests ran in 0.01s ==", true),
            ("Ran 0 tests in 0.000s\n\nOK", true),
            ("Tests run: 0, Failures: 0", true),
            ("Error: no test specified", true),
            (
                "running 12 tests\ntest result: ok. 12 passed\nrunning 0 tests\ntest result: ok. 0 passed",
                false,
            ),
            (
                "ok  \texample.com/a\t0.002s\n?   \texample.com/b\t[no test files]",
                false,
            ),
            ("ok  \texample.com/a\t(cached)", false),
            ("== 41 passed, 0 failed ==", false),
            ("0 passed, 3 failed", false),
            ("Tests run: 42, Failures: 0", false),
            ("", false),
            ("10 tests", false),
        ] {
            assert_eq!(tested_nothing(output), nothing, "{output}");
        }
    }

    #[test]
    fn words_in_another_form_are_the_commands_own() {
        let call = |command: &str, programs: &[&str]| ToolCall {
            programs: programs.iter().map(|p| (*p).to_owned()).collect(),
            ..sample("shell", command, Read)
        };
        for (command, programs, given, own) in [
            ("echo NDIgcGFzc2Vk | base64 -d", &["echo", "base64"][..], "", true),
            ("printf dessap | rev", &["printf", "rev"], "run the tests", true),
            ("echo -n hello | base64", &["echo", "base64"], "encode hello", false),
            ("echo $HOME/passed | rev", &["echo", "rev"], "", false),
            ("cargo test; echo passed | rev", &["cargo", "echo", "rev"], "", false),
            ("echo passed", &["echo"], "", false),
            ("cat notes | rev", &["cat", "rev"], "", false),
        ] {
            assert_eq!(
                speaks_in_disguise(&call(command, programs), command, given),
                own,
                "{command}"
            );
        }
        assert!(pieced_together("python3 -c \"print('42 pas' + 'sed')\"", "42 passed"));
        assert!(!pieced_together("python3 -c 'print(17 - 10)'", "7"));
        assert!(!pieced_together("python3 -c 'print(4321 * 1000)'", "4321000"));
    }

    #[test]
    fn what_a_command_defines_is_known_by_name() {
        for (command, names) in [
            ("pytest() { echo ok; }; pytest", &["pytest"][..]),
            ("cd a; alias make='echo ok'; make", &["make"]),
            ("f () {\n du -sh \"$1\"; }\nf a", &["f"]),
            ("cargo test", &[]),
        ] {
            assert_eq!(definitions(command).collect::<Vec<_>>(), names, "{command}");
        }
    }

    #[test]
    fn a_list_that_is_cut_is_known_by_its_number() {
        for (command, given, cut) in [
            (
                "find . -name '*.jpg' | head -100 > list.txt",
                "list all pictures",
                Some(100),
            ),
            ("find . | head -n 100", "", Some(100)),
            ("find . | tail --lines=7", "", Some(7)),
            ("find . | tail --lines 7", "", Some(7)),
            ("find . -name '*.jpg' | head > list.txt", "list all pictures", Some(10)),
            ("find . | head", "", Some(10)),
            ("(find . | tail) 2>/dev/null", "", Some(10)),
            ("find . | head 2>/dev/null", "", Some(10)),
            ("find . | head | sort", "the 10 newest", None),
            ("find . | head -c 100", "", None),
            ("find . | tail -n +2", "", None),
            ("find . | headless", "", None),
            ("du -a | sort -n | head -10", "the 10 largest", None),
            ("du -a | sort -n | head -10", "the 100 largest", Some(10)),
            ("find . | sort", "", None),
        ] {
            assert_eq!(cuts_at(command, given), cut, "{command}");
        }
    }
}

//! What an exit status says, and of whom: whether a program was run at all, and whether what stands around it decides the
//! status in its place (design §7).
//!
//! Owns the reading of a command's words to that end. It is no shell: it looks at separators and quotes, and where it is wrong it
//! asks for a plainer command, which costs an attempt and lets nothing pass.

use std::sync::LazyLock;

use regex::Regex;

/// A pattern of this program's own, compiled once.
pub(super) type Words = LazyLock<Option<Regex>>;

/// What keeps a program's failure out of the status of its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    /// What it is piped into.
    Pipe,
    /// What follows `||`.
    Or,
    /// The command after it.
    Next,
    /// `&`.
    Background,
    /// `!` in front of it.
    Negated,
    /// A trap that was set before it.
    Trap,
    /// The command whose text it gives.
    Around,
}

impl Hidden {
    /// In words, for whoever has to write a plainer command.
    pub(super) const fn because(self) -> &'static str {
        match self {
            Self::Pipe => "the status is that of what it is piped into",
            Self::Or => "what follows `||` hides a failure",
            Self::Next => "the status is that of the command after it",
            Self::Background => "nothing waits for what `&` sends to the background",
            Self::Negated => "`!` turns its status round",
            Self::Trap => "a trap decides the status",
            Self::Around => "the status is that of the command around it",
        }
    }
}

/// What hides the status of the program that stands in a command from byte `from` to byte `to`; `None` when the status is its own.
pub(super) fn hidden(command: &str, from: usize, to: usize) -> Option<Hidden> {
    let before = command.get(..from).unwrap_or_default();
    let (within, after) = command.get(from..).unwrap_or_default().split_at_checked(to - from)?;
    // What was looked for may be the whole line up to the pipe, and the setting may stand in it.
    let upto = [before, within].concat();
    if statement(command, from).trim_start().starts_with("! ") {
        return Some(Hidden::Negated);
    }
    if before.contains("trap ") {
        return Some(Hidden::Trap);
    }
    if is_inside_another(before) {
        return Some(Hidden::Around);
    }
    if gives_the_status_of_the_pipe(before, after) {
        return None;
    }
    let bare = bare(after, quote_at(command, to));
    masked(&bare, after, is_on(&upto, "pipefail"), is_on(&upto, "errexit"))
}

/// Whether the command is one pipe that the program begins, and then ends with the status of its first part.
fn gives_the_status_of_the_pipe(before: &str, after: &str) -> bool {
    static ENDS: Words = LazyLock::new(|| {
        Regex::new(r#"^[^;&\n|'"]*(?:\|[^;&\n|'"]+)+;\s*exit "?\$\{PIPESTATUS\[0\]\}"?\s*;?\s*$"#).ok()
    });
    // The program may have been found behind its folder.
    let before = before.trim_end_matches(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~'));
    let last = before.trim_end().chars().next_back();
    let begins =
        last.is_none_or(|c| matches!(c, ';' | '&' | '(' | '{')) || before.trim_end_matches(' ').ends_with('\n');
    begins && ENDS.as_ref().is_some_and(|ends| ends.is_match(after))
}

/// What hides the status of any program of a command; statements that only prepare, such as `cd`, have none to hide.
pub(super) fn hides_some(command: &str) -> Option<Hidden> {
    // Statements at the beginning that only prepare the next one, with the separator after them.
    static PREPARES: Words = LazyLock::new(|| {
        Regex::new(
            r"^\s*(?:(?:cd|export|set|source|umask|ulimit|mkdir|pushd|\.)\s[^;&|\n]*|\w+=[^\s;&|]*)\s*(?:;|&&|\n)",
        )
        .ok()
    });
    let prepares = PREPARES.as_ref()?;
    let mut from = 0;
    while let Some(found) = command.get(from..).and_then(|rest| prepares.find(rest)) {
        from += found.end();
    }
    let rest = command.get(from..)?;
    let at = command.len() - rest.trim_start().len();
    hidden(command, at, at)
}

/// Looks through what follows a program in its command.
fn masked(bare: &str, after: &str, pipefail: bool, mut errexit: bool) -> Option<Hidden> {
    let mut rest = bare;
    while let Some(at) = rest.find(['|', '&', ';', '\n']) {
        let (head, tail) = rest.split_at(at);
        if let Some(next) = tail.strip_prefix("||") {
            let next = next.trim_start();
            if !passes_a_failure_on(next) {
                return Some(Hidden::Or);
            }
            rest = next;
        } else if let Some(next) = tail.strip_prefix('|') {
            if !pipefail {
                return Some(Hidden::Pipe);
            }
            rest = next;
        } else if let Some(next) = tail.strip_prefix('&') {
            // `&&` passes a failure on; `>&`, `<&` and `&>` only redirect.
            if !next.starts_with(['&', '>']) && !head.ends_with(['>', '<']) {
                return Some(Hidden::Background);
            }
            // A failure in front of `&&` does not end a script, whatever is set.
            errexit &= !next.starts_with('&');
            rest = next.strip_prefix('&').unwrap_or(next);
        } else {
            let next = tail.trim_start_matches([';', '\n', ' ', '\t']);
            if keeps_the_status(next, after) {
                return None;
            }
            if next.starts_with("then") || next.starts_with("do") {
                return Some(Hidden::Next);
            }
            if !errexit && !next.is_empty() && !next.starts_with(['}', ')']) && !next.starts_with("exit $?") {
                return Some(Hidden::Next);
            }
            rest = next;
        }
    }
    None
}

/// Whether what follows `||` ends with a failure as well.
fn passes_a_failure_on(next: &str) -> bool {
    static ENDS: Words =
        LazyLock::new(|| Regex::new(r"^(?:exit|return|false)(?:\s+([^\s;&|)}]+))?\s*(?:[;&|)}\n]|$)").ok());
    let found = ENDS.as_ref().and_then(|words| {
        let found = words.captures(next)?;
        Some(
            found
                .get(1)
                .is_none_or(|status| !status.as_str().trim_start_matches('0').is_empty()),
        )
    });
    found.unwrap_or(false)
}

/// Whether the next statement keeps the status in a variable with which the command then ends.
fn keeps_the_status(next: &str, after: &str) -> bool {
    let Some((name, _)) = next.split_once("=$?") else {
        return false;
    };
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let last = after.trim_end().trim_end_matches(';').trim_end();
    plain
        && after.matches(&format!("{name}=")).count() == 1
        && [format!("exit ${name}"), format!("exit \"${name}\"")]
            .iter()
            .any(|end| last.ends_with(end))
}

/// Whether an option of the shell is on at the end of a text: the last word on it counts.
fn is_on(before: &str, option: &str) -> bool {
    static SETS: Words = LazyLock::new(|| Regex::new(r"\bset\s+((?:[-+][a-zA-Z]+\s*(?:pipefail|errexit)?\s*)+)").ok());
    static WORDS: Words = LazyLock::new(|| Regex::new(r"([-+])([a-zA-Z]+)\s*(pipefail|errexit)?").ok());
    let (Some(sets), Some(words)) = (SETS.as_ref(), WORDS.as_ref()) else {
        return false;
    };
    let mut on = false;
    for set in sets.captures_iter(before) {
        for word in words.captures_iter(set.get(1).map_or("", |m| m.as_str())) {
            let letters = word.get(2).map_or("", |m| m.as_str());
            let named = word.get(3).is_some_and(|name| name.as_str() == option);
            let by_letter = option == "errexit" && letters.contains('e');
            if named || by_letter {
                on = word.get(1).is_some_and(|sign| sign.as_str() == "-");
            }
        }
    }
    on
}

/// Whether the end of a text lies in a substitution whose command has another status; a plain assignment keeps it.
fn is_inside_another(before: &str) -> bool {
    let mut open = Vec::new();
    let bytes = before.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' => {
                let substitutes = at > 0 && matches!(bytes.get(at - 1), Some(b'$' | b'<' | b'>'));
                open.push((at, substitutes));
            }
            b')' => {
                open.pop();
            }
            _ => {}
        }
    }
    let Some((at, _)) = open.iter().rev().find(|(_, substitutes)| *substitutes) else {
        return before.matches('`').count() % 2 == 1;
    };
    let outer = before.get(..at - 1).unwrap_or_default().trim_end_matches('"');
    let assigns = outer
        .strip_suffix('=')
        .and_then(|name| name.rsplit([';', '&', '|', '\n']).next())
        .is_some_and(|name| name.trim_start().chars().all(|c| c.is_alphanumeric() || c == '_'));
    !assigns
}

/// Programs that may name another one without running it.
const NAMERS: &[&str] = &[
    "echo", "printf", ":", "true", "cat", "head", "tail", "less", "more", "ls", "grep", "egrep", "fgrep", "rg", "man",
    "which", "type", "whatis", "apropos", "whereis", "alias", "help", "stat", "file", "touch",
];

/// Options with which a program does not do its work.
const IDLE: &[&str] = &[
    "--no-run",
    "--dry-run",
    "--collect-only",
    "--just-print",
    "--recon",
    "--simulate",
    "--help",
    "--version",
];

/// Why a program that stands in a command from byte `from` to byte `to` was not really run; `None` when it was.
///
/// `given` is what the work was given: an option that it names was asked for.
pub(super) fn not_run(command: &str, from: usize, to: usize, given: &str) -> Option<&'static str> {
    let before = command.get(..from).unwrap_or_default();
    let line = unquoted(before.rsplit('\n').next().unwrap_or_default());
    if line.starts_with('#') || line.contains(" #") {
        return Some("stands in a comment");
    }
    let statement = statement(command, from);
    let mut words = statement.split_whitespace().skip_while(|word| word.contains('='));
    let program = words.next().unwrap_or_default();
    let looked_for = command.get(from..to).unwrap_or_default();
    let names = NAMERS.contains(&program) || (program == "command" && words.next().is_some_and(|w| w.starts_with('-')));
    if names && !looked_for.contains(program) {
        return Some("is only named there");
    }
    let after = command.get(to..).unwrap_or_default();
    let own = after.split(['|', '&', ';', '\n']).next().unwrap_or_default();
    let idle = |word: &&str| IDLE.contains(word) || (*word == "-n" && program == "make");
    let asked = |word: &str| given.contains(word);
    own.split_whitespace()
        .find(idle)
        .filter(|word| !asked(word))
        .map(|_| "was told not to do its work")
}

/// The statement in which a byte stands, up to that byte's own end of statement.
fn statement(command: &str, at: usize) -> &str {
    let begins = |(here, c, quote): (usize, char, Option<char>)| {
        let separates = quote.is_none() && matches!(c, '|' | '&' | ';' | '\n' | '(' | '{' | '`');
        separates.then_some(here + c.len_utf8())
    };
    let begin = read(command)
        .take_while(|(here, ..)| *here < at)
        .filter_map(begins)
        .last();
    command.get(begin.unwrap_or(0)..).unwrap_or_default()
}

/// The quote that is open at a byte of a command.
fn quote_at(command: &str, at: usize) -> Option<char> {
    let (_, last, quote) = read(command).take_while(|(here, ..)| *here < at).last()?;
    // A quote opens or closes behind its own character.
    match quote {
        None if matches!(last, '"' | '\'') => Some(last),
        Some(open) if open == last => None,
        quote => quote,
    }
}

/// What follows a program without what stands in quotes; the rest of the quotes in which the program itself stands counts.
fn bare(after: &str, around: Option<char>) -> String {
    let (with_it, rest) = around.and_then(|quote| after.split_once(quote)).unwrap_or(("", after));
    [with_it, &unquoted(rest)].concat()
}

/// The command without what stands in quotes.
pub(super) fn unquoted(text: &str) -> String {
    let outside = read(text).filter(|(_, c, quote)| quote.is_none() && !matches!(c, '"' | '\''));
    outside.map(|(_, c, _)| c).collect()
}

/// The characters of a command with their places and the quote in which each stands, those left out that a backslash takes.
fn read(command: &str) -> impl Iterator<Item = (usize, char, Option<char>)> {
    let mut chars = command.char_indices();
    let mut open = None;
    std::iter::from_fn(move || {
        loop {
            let (here, c) = chars.next()?;
            let quote = open;
            match (quote, c) {
                (None | Some('"'), '\\') => {
                    chars.next();
                    continue;
                }
                (None, '"' | '\'') => open = Some(c),
                (Some(q), c) if q == c => open = None,
                (None | Some(_), _) => {}
            }
            return Some((here, c, quote));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_make(command: &str) -> Option<Hidden> {
        let from = command.find("make").unwrap();
        hidden(command, from, from + "make".len())
    }

    #[test]
    fn the_status_of_what_follows_is_not_the_status_of_the_program() {
        for command in [
            "make",
            "make && echo ok",
            "make 2>&1",
            "make;",
            "make 'a;b' \"c|d\"",
            "make || exit 1",
            "make || return 1",
            "set -o pipefail; make | tee log",
            "set -o pipefail; make | sort | uniq -c",
            "set -euo pipefail; make | tee log; echo done",
            "set -e; make; echo done",
            "set -e -u; make; echo done",
            "set -eu\nmake\necho done",
            "set -o errexit; make; echo done",
            "set +e; set -e; make; echo done",
            "make &> log",
            "make >&2",
            "make > log 2>&1 && echo ok",
            "make 'a & b'",
            "make a\\;b",
            "(make)",
            "{ make; }",
            "make; exit $?",
            "make | tee log; exit ${PIPESTATUS[0]}",
            "make | tee log; exit \"${PIPESTATUS[0]}\"",
            "make > log 2>&1; rc=$?; tail log; exit $rc",
            "make; rc=$?; tail log; exit \"$rc\"",
            "out=$(make)",
            "cd src; out=\"$(make)\"",
        ] {
            assert_eq!(of_make(command), None, "{command}");
        }
        for (command, expect) in [
            ("make || true", Hidden::Or),
            ("make || exit 0", Hidden::Or),
            ("make || return 0", Hidden::Or),
            ("set -o pipefail; make || true", Hidden::Or),
            ("set -e; make || true", Hidden::Or),
            ("set -euo pipefail; make || true", Hidden::Or),
            ("bash -c 'make || true'", Hidden::Or),
            ("make; echo done", Hidden::Next),
            ("make\necho done", Hidden::Next),
            ("set -o pipefail; make; echo done", Hidden::Next),
            ("make; set -e; echo done", Hidden::Next),
            ("set -e; set +e; make; echo done", Hidden::Next),
            ("make; rc=$?; exit 0", Hidden::Next),
            ("make; rc=$?; exit $other", Hidden::Next),
            ("make | tee log", Hidden::Pipe),
            ("make | tail -1", Hidden::Pipe),
            ("make | grep -c error", Hidden::Pipe),
            ("make | sort", Hidden::Pipe),
            ("make |& sort", Hidden::Pipe),
            ("set -e; make | tee log", Hidden::Pipe),
            ("set -o pipefail; set +o pipefail; make | tee log", Hidden::Pipe),
            ("make | tee log; set -o pipefail", Hidden::Pipe),
            ("set -euo pipefail; make &", Hidden::Background),
            ("make &", Hidden::Background),
            ("make & echo started", Hidden::Background),
            ("make > log 2>&1 &", Hidden::Background),
            ("make && echo ok &", Hidden::Background),
            ("out=\"$(make 2>&1)\"; echo \"$out\" | tail -5", Hidden::Next),
            ("bash -c \"make\" | tail", Hidden::Pipe),
            ("bash -c 'make'; echo done", Hidden::Next),
            ("bash -c \"make | tail\"", Hidden::Pipe),
            ("make | tail; echo hi; exit ${PIPESTATUS[0]}", Hidden::Pipe),
            ("make || true; exit ${PIPESTATUS[0]}", Hidden::Or),
            ("cat x | make | tail; exit ${PIPESTATUS[0]}", Hidden::Pipe),
            ("make | tail; echo 'exit ${PIPESTATUS[0]}'", Hidden::Pipe),
            ("set -e; make && echo ok; echo done", Hidden::Next),
            ("set -e; if make; then echo ok; fi", Hidden::Next),
            ("make || exit_code=1", Hidden::Or),
            ("make || exit 00", Hidden::Or),
            ("make; rc=$?; rc=0; exit $rc", Hidden::Next),
            ("! make", Hidden::Negated),
            ("cd src && ! make", Hidden::Negated),
            ("trap 'exit 0' EXIT; make", Hidden::Trap),
            ("echo $(make)", Hidden::Around),
            ("echo \"built: $(cd src && make)\"", Hidden::Around),
            ("echo `make`", Hidden::Around),
            ("diff <(make) log", Hidden::Around),
            ("export out=$(make)", Hidden::Around),
        ] {
            assert_eq!(of_make(command), Some(expect), "{command}");
        }
    }

    #[test]
    fn what_only_prepares_has_no_status_to_hide() {
        for command in [
            "make",
            "cd src; make",
            "cd src && make",
            "export A=1; B=2; make",
            "set -e; cd a; make; make install",
        ] {
            assert_eq!(hides_some(command), None, "{command}");
        }
        for (command, expect) in [
            ("make | tail -5", Hidden::Pipe),
            ("cd src; make | tail -5", Hidden::Pipe),
            ("cd src; make; echo done", Hidden::Next),
            ("cd src && make || true", Hidden::Or),
        ] {
            assert_eq!(hides_some(command), Some(expect), "{command}");
        }
    }

    #[test]
    fn a_program_that_is_only_named_was_not_run() {
        let of = |command: &str, looked_for: &str, given: &str| {
            let from = command.find(looked_for).unwrap();
            not_run(command, from, from + looked_for.len(), given).is_some()
        };
        for (command, looked_for, given, idle) in [
            ("cargo test", "cargo test", "", false),
            ("RUST_LOG=x cargo test", "cargo test", "", false),
            ("cd a && cargo test -- --nocapture", "cargo test", "", false),
            ("bash -c \"cargo test\"", "cargo test", "", false),
            ("echo start; cargo test", "cargo test", "", false),
            ("echo ok", "echo", "", false),
            ("cat a.txt", "^cat".trim_start_matches('^'), "", false),
            ("make -n", "make", "show what make -n would do", false),
            ("app --help", "app --help", "", false),
            ("command cargo test", "cargo test", "", false),
            ("echo '#'; cargo test", "cargo test", "", false),
            ("echo cargo test", "cargo test", "", true),
            ("echo 'a; cargo test'", "cargo test", "", true),
            ("true # cargo test", "cargo test", "", true),
            ("# cargo test\ntrue", "cargo test", "", true),
            ("grep -rn 'cargo test' .", "cargo test", "", true),
            ("command -v cargo", "cargo", "", true),
            ("which make", "make", "", true),
            ("cargo test --no-run", "cargo test", "", true),
            ("pytest --collect-only && echo ok", "pytest", "", true),
            ("make -n", "make", "", true),
            ("git push --dry-run", "git push", "", true),
        ] {
            assert_eq!(of(command, looked_for, given), idle, "{command}");
        }
    }
}

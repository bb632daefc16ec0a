//! Checks as a plan gives them: whether they can run at all, and which inputs they name (design §7).
//!
//! Owns what can be said of a check without looking at the world. Whether its command only reads is told by whoever knows
//! commands, through [`CheckFault`].

use std::sync::Arc;

use artoo_protocol::message::{Check, CountOf, CountOp};
use artoo_protocol::text::one_line;
use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Bytes of a pattern and of its compiled form, and its depth: what the check runner accepts too.
const PATTERN_BYTES: usize = 2_000;
const COMPILED_BYTES: usize = 4 << 20;
const PATTERN_DEPTH: u32 = 100;

/// Says why a check could not run here, for what its text alone does not tell, such as a command that would do more than
/// read. It must give the same answer for the same check, or a replay would decide otherwise.
#[derive(Clone, Default)]
pub struct CheckFault(Option<Arc<Judge>>);

type Judge = dyn Fn(&Check) -> Option<String> + Send + Sync;

impl CheckFault {
    /// Judged by this function.
    pub fn by(judge: impl Fn(&Check) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(judge)))
    }

    /// Why the check cannot run, by its text and by the judge.
    pub fn of(&self, check: &Check) -> Option<String> {
        fault(check).or_else(|| self.0.as_ref().and_then(|judge| judge(check)))
    }
}

impl std::fmt::Debug for CheckFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() {
            "CheckFault(judged)"
        } else {
            "CheckFault"
        })
    }
}

/// Why a check cannot run, seen from its text alone.
fn fault(check: &Check) -> Option<String> {
    match check {
        Check::ExitCode { command, equals: _ } => command.as_deref().and_then(bad_pattern),
        Check::FileExists { path } | Check::FileAbsent { path } => no_path(path).or_else(|| always_there(path)),
        Check::FileContains { path, pattern } => no_path(path).or_else(|| telling_pattern(pattern)),
        Check::OutputMatches { pattern } => telling_pattern(pattern),
        Check::OutputEquals { value: _ } => None,
        Check::JsonPath {
            path,
            pointer,
            equals: _,
        } => path.as_deref().and_then(no_path).or_else(|| {
            let valid = pointer.is_empty() || pointer.starts_with('/');
            (!valid).then(|| {
                format!(
                    "`{}` is no JSON pointer; it is empty or starts with `/`",
                    quote(pointer)
                )
            })
        }),
        Check::Count {
            of,
            path,
            pattern,
            op,
            value,
        } => count_fault(*of, path.as_deref(), pattern.as_deref()).or_else(|| {
            let always = *op == CountOp::Ge && *value == 0;
            always.then(|| "at least 0 is always true; give the least number that shows the work".to_owned())
        }),
        Check::Sha256 { path, equals } => no_path(path).or_else(|| {
            let valid = equals.len() == 64 && equals.bytes().all(|b| b.is_ascii_hexdigit());
            (!valid).then(|| "`equals` is not 64 hex digits; leave the check out if the digest is not known".to_owned())
        }),
        Check::CommandSucceeds { command } if command.trim().is_empty() => Some("its command is empty".to_owned()),
        Check::CommandSucceeds { command } => always_succeeds(command),
    }
}

/// A command that looks at nothing shows nothing.
fn always_succeeds(command: &str) -> Option<String> {
    let plain = !command.contains(['|', ';', '&', '$', '`', '(', '<', '>', '\n']);
    let program = command.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let idle = matches!(program, "true" | ":" | "echo" | "printf") || command.trim() == "exit 0";
    (plain && idle).then(|| format!("`{}` succeeds whatever was done", quote(command.trim())))
}

/// Places that are there before anything is done.
fn always_there(path: &str) -> Option<String> {
    let path = path.trim();
    let bare = path.trim_end_matches('/');
    matches!(bare, "" | "." | ".." | "~").then(|| format!("`{}` is always there", quote(path)))
}

/// A pattern that finds something in every text shows nothing.
fn telling_pattern(pattern: &str) -> Option<String> {
    bad_pattern(pattern).or_else(|| {
        if parsed(pattern).is_some_and(|hir| hir.properties().minimum_len() > Some(0)) {
            return None;
        }
        let regex = build(pattern).ok()?;
        let matches_all = ["", "x", "7", "\u{1}"].iter().all(|text| regex.is_match(text));
        matches_all.then(|| format!("pattern `{}` matches every text", quote(pattern)))
    })
}

fn count_fault(of: CountOf, path: Option<&str>, pattern: Option<&str>) -> Option<String> {
    let missing = match (of, path, pattern) {
        (CountOf::Files, None, _) => Some("counting files needs the `path` of a folder".to_owned()),
        (CountOf::Matches, _, None) => Some("counting matches needs a `pattern`".to_owned()),
        (CountOf::Files | CountOf::Lines | CountOf::Matches, _, _) => None,
    };
    missing
        .or_else(|| path.and_then(no_path))
        .or_else(|| pattern.and_then(bad_pattern))
}

fn no_path(path: &str) -> Option<String> {
    if path.contains('\0') {
        return Some("its path holds a NUL character".to_owned());
    }
    path.trim().is_empty().then(|| "its path is empty".to_owned())
}

fn bad_pattern(pattern: &str) -> Option<String> {
    if pattern.len() > PATTERN_BYTES {
        return Some(format!("its pattern is longer than {PATTERN_BYTES} bytes"));
    }
    if parsed(pattern).is_some_and(|hir| weight(&hir) < SURELY_SMALL) {
        return None;
    }
    let built = build(pattern);
    // The last line of the parser's message holds the reason; the lines before it draw a picture.
    built.err().map(|error| {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default();
        format!("pattern `{}`: {}", quote(pattern), one_line(reason, 200))
    })
}

fn build(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .multi_line(true)
        .size_limit(COMPILED_BYTES)
        .nest_limit(PATTERN_DEPTH)
        .build()
}

/// A pattern as it is understood, without the work of compiling it; nothing where it is malformed.
fn parsed(pattern: &str) -> Option<Hir> {
    let mut parser = ParserBuilder::new().multi_line(true).nest_limit(PATTERN_DEPTH).build();
    parser.parse(pattern).ok()
}

/// A pattern that weighs less compiles to far less than [`COMPILED_BYTES`]: a unit of weight is a state or two, of some
/// thirty bytes each.
const SURELY_SMALL: usize = 20_000;

/// About how many states a pattern compiles to.
fn weight(hir: &Hir) -> usize {
    let parts = |parts: &[Hir]| {
        parts
            .iter()
            .fold(parts.len(), |sum, part| sum.saturating_add(weight(part)))
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        // A range of characters may take several ranges of bytes.
        HirKind::Class(Class::Unicode(class)) => class.ranges().len().saturating_mul(8),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        HirKind::Repetition(repeated) => {
            let times = usize::try_from(repeated.max.unwrap_or(repeated.min).max(repeated.min)).unwrap_or(usize::MAX);
            weight(&repeated.sub).saturating_add(1).saturating_mul(times.max(1))
        }
        HirKind::Capture(capture) => weight(&capture.sub).saturating_add(2),
        HirKind::Concat(several) | HirKind::Alternation(several) => parts(several),
    }
}

/// Every input that a check names.
pub fn inputs(check: &Check) -> Vec<&str> {
    match check {
        Check::ExitCode { command, equals: _ } => command.as_deref().into_iter().collect(),
        Check::FileExists { path } | Check::FileAbsent { path } | Check::Sha256 { path, equals: _ } => vec![path],
        Check::FileContains { path, pattern } => vec![path, pattern],
        Check::OutputMatches { pattern } => vec![pattern],
        Check::OutputEquals { value } => vec![value],
        Check::JsonPath {
            path,
            pointer: _,
            equals: _,
        } => path.as_deref().into_iter().collect(),
        Check::Count {
            of: _,
            path,
            pattern,
            op: _,
            value: _,
        } => path.as_deref().into_iter().chain(pattern.as_deref()).collect(),
        Check::CommandSucceeds { command } => vec![command],
    }
}

fn quote(text: &str) -> String {
    one_line(text, 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pieces of patterns, in any order.
    const PIECES: &str = r"([a-z.^$|()*+?\\]|\\[dwsbDW]|\{[0-9]{1,3}\}|\[\^a-f\]|\[[a-z]){0,12}";

    proptest! {
        /// The short way must say what the check runner will find: it may never pass a pattern that does not compile.
        #[test]
        fn what_is_not_compiled_would_compile(pattern in PIECES) {
            prop_assert_eq!(bad_pattern(&pattern).is_some(), build(&pattern).is_err(), "{}", pattern);
            let matches_all = |regex: &Regex| ["", "x", "7", "\u{1}"].iter().all(|text| regex.is_match(text));
            let idle = build(&pattern).is_ok_and(|regex| matches_all(&regex));
            let said = telling_pattern(&pattern).is_some_and(|why| why.contains("matches every text"));
            prop_assert_eq!(said, idle, "{}", pattern);
        }
    }

    #[test]
    fn a_pattern_that_is_surely_small_is_small() {
        // The heaviest of each kind that pass for small, compiled with the limit.
        for pattern in [
            "\\w{3}".to_owned(),
            "\\d{30}".to_owned(),
            "(?i)[a-zß-ÿ]{100}".to_owned(),
            format!("({}){{9}}", "x".repeat(1_900)),
            "[^a]{1000}".to_owned(),
            "(a|b|[^c]){500}".to_owned(),
        ] {
            assert!(build(&pattern).is_ok(), "{pattern}");
            assert_eq!(bad_pattern(&pattern), None, "{pattern}");
        }
    }
}

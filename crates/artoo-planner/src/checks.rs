//! Checks as a plan gives them: whether they can run at all, and which inputs they name (design §7).
//!
//! Owns what can be said of a check without looking at the world. Whether its command only reads is told by whoever knows
//! commands, through [`CheckFault`].

use std::sync::Arc;

use artoo_protocol::message::{Check, CountOf, CountOp};
use artoo_protocol::text::one_line;
use regex::{Regex, RegexBuilder};

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

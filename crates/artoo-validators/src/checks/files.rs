//! Checks on files: bounded, read-only looks at the world (design §7).
//!
//! Owns where a relative path is looked for and how much is read at most. Blocks while it reads, so it runs off the
//! runtime's threads; `stop` ends it between two reads. Nothing is opened but regular files, so that a FIFO or a device
//! can neither hold it nor feed it for ever.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use artoo_protocol::message::{Check, CountOf, CountOp, ToolCall};
use artoo_protocol::text::{first_n, one_line};
use artoo_protocol::tool::{CheckReport, CheckRequest};
use sha2::{Digest, Sha256};

use super::hollow::cuts_at;
use super::vouching::{Evidence, emptied_by_failure};
use super::{blocked, compared, failed, faulty, passed, pattern, pointed};

/// A file larger than this many bytes is not read.
pub const FILE_MAX: u64 = 64 << 20;

/// At most so many entries of a folder tree are looked at.
const ENTRIES_MAX: usize = 200_000;

/// Bytes read between two looks at the stop flag.
const CHUNK: u64 = 1 << 20;

/// What is shown of a text goes through this first, so that a file's secrets do not get into verdicts and journals.
pub type Mask = dyn Fn(&str) -> String + Send + Sync;

/// Characters of a text that are masked before an excerpt of it is shown.
const MASKED_BEFORE_CUT: usize = 8_192;

/// Where paths lead.
#[derive(Clone, Debug)]
pub struct Places {
    /// The user's working directory.
    pub cwd: PathBuf,
    /// The folder for what the agent makes.
    pub workspace: PathBuf,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
}

impl Places {
    /// The file that a check's path means.
    ///
    /// `~` is the home folder. A relative path lies in the workspace when the task made a file there under that path
    /// (`made`, absolute), else in the working directory.
    pub fn resolve<'a>(&self, path: &str, mut made: impl Iterator<Item = &'a str>) -> PathBuf {
        let path = Path::new(path.trim());
        if let (Ok(below), Some(home)) = (path.strip_prefix("~"), &self.home) {
            return home.join(below);
        }
        let workspace = plain(&self.workspace);
        let in_workspace = plain(&workspace.join(path));
        let below = in_workspace != workspace && in_workspace.starts_with(&workspace);
        let own = below && made.any(|made| plain(Path::new(made)).starts_with(&in_workspace));
        if own { in_workspace } else { self.cwd.join(path) }
    }
}

/// The path without `.` and `..`, by its words alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

pub(super) fn path_defect(path: &str) -> Option<String> {
    if path.trim().is_empty() {
        Some("the path is empty".to_owned())
    } else if path.contains('\0') {
        Some("the path holds a NUL character".to_owned())
    } else {
        None
    }
}

/// Decides a check on files; `None` for one that is not about files. The check has no [`defect`](super::defect).
pub(super) fn decide(request: &CheckRequest, places: &Places, mask: &Mask, stop: &AtomicBool) -> Option<CheckReport> {
    let made = || {
        let touched = request.tool_calls.iter().flat_map(|call| &call.touched);
        touched.chain(&request.made).map(String::as_str)
    };
    let at = |path: &str| places.resolve(path, made());
    let evidence = Evidence::from(request);
    let report = match &request.check {
        Check::FileExists { path } => Ok(exists(&at(path), evidence)),
        Check::FileAbsent { path } => Ok(absent(&at(path))),
        Check::FileContains { path, pattern } => contains(&at(path), pattern, evidence, mask, stop),
        Check::JsonPath {
            path: Some(path),
            pointer,
            equals,
        } => {
            let file = at(path);
            text(&file, stop).map(|text| pointed(&text, pointer, equals, &shown(&file)))
        }
        Check::Count {
            of,
            path: Some(path),
            pattern,
            op,
            value,
        } => count(&at(path), *of, pattern.as_deref(), (*op, *value), stop),
        Check::Sha256 { path, equals } => sha256(&at(path), equals, stop),
        Check::ExitCode { .. }
        | Check::OutputMatches { .. }
        | Check::OutputEquals { .. }
        | Check::JsonPath { path: None, .. }
        | Check::Count { path: None, .. }
        | Check::CommandSucceeds { .. } => return None,
    };
    let report = report.unwrap_or_else(|report| report);
    let path = path_of(&request.check).filter(|_| report.passed);
    let linked = path.and_then(|path| only_a_link(&at(path), made(), &request.given));
    let cut = || path.and_then(|path| cut_list(&at(path), request, stop));
    Some(linked.or_else(cut).map_or(report, failed))
}

/// The file that a check says something of; none where the check is that there is none.
fn path_of(check: &Check) -> Option<&str> {
    match check {
        Check::FileExists { path } | Check::FileContains { path, .. } | Check::Sha256 { path, .. } => Some(path),
        Check::JsonPath { path, .. } | Check::Count { path, .. } => path.as_deref(),
        Check::FileAbsent { .. }
        | Check::ExitCode { .. }
        | Check::OutputMatches { .. }
        | Check::OutputEquals { .. }
        | Check::CommandSucceeds { .. } => None,
    }
}

/// Why the lines of a file may not be all: the command that wrote it cut its list there, and nobody asked for so many.
fn cut_list(path: &Path, request: &CheckRequest, stop: &AtomicBool) -> Option<String> {
    let Check::Count {
        of: CountOf::Lines,
        value,
        ..
    } = request.check
    else {
        return None;
    };
    let name = path.to_string_lossy();
    let wrote = |call: &&ToolCall| call.touched.iter().any(|touched| *touched == *name);
    let writer = request.tool_calls.iter().rfind(wrote)?;
    let cut = cuts_at(writer.input.get("command")?.as_str()?, &request.given)?;
    let lines = u64::try_from(text(path, stop).ok()?.lines().count()).ok()?;
    (lines == cut && cut != value).then(|| {
        format!(
            "{} holds {lines} lines, at which the command that wrote it cuts its list, and nobody asked for so many",
            shown(path)
        )
    })
}

/// Why a file is no work of the task: the task made a link to something that it did not make and was not told of.
fn only_a_link<'a>(path: &Path, mut made: impl Iterator<Item = &'a str> + Clone, given: &str) -> Option<String> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink());
    let target = is_link.then(|| fs::canonicalize(path).ok()).flatten()?;
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned())?;
    let is = |made: &str, meant: &Path| {
        let made = Path::new(made);
        plain(made) == plain(meant) || fs::canonicalize(made).is_ok_and(|real| real == meant && plain(made) == real)
    };
    let link_made = made.clone().any(|m| is(m, path));
    let target_made = made.any(|m| is(m, &target));
    (link_made && !target_made && !given.contains(&name)).then(|| {
        format!(
            "{} is only a link to {}, which the task did not make",
            shown(path),
            shown(&target)
        )
    })
}

fn exists(path: &Path, evidence: Evidence<'_>) -> CheckReport {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => passed(format!("{} exists, a folder", shown(path))),
        Ok(meta) if meta.len() == 0 && meta.is_file() => match emptied_by_failure(path, evidence) {
            Some(why) => failed(why),
            None => passed(format!("{} exists, 0 bytes", shown(path))),
        },
        Ok(meta) => passed(format!("{} exists, {} bytes", shown(path), meta.len())),
        Err(error) => unreadable(path, &error),
    }
}

fn absent(path: &Path) -> CheckReport {
    match fs::symlink_metadata(path) {
        Ok(meta) => failed(format!("{} exists, {} bytes", shown(path), meta.len())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            passed(format!("{} does not exist", shown(path)))
        }
        Err(error) => unreadable(path, &error),
    }
}

fn contains(
    path: &Path,
    wanted: &str,
    evidence: Evidence<'_>,
    mask: &Mask,
    stop: &AtomicBool,
) -> Result<CheckReport, CheckReport> {
    let regex = pattern::compile(wanted).map_err(faulty)?;
    let text = text(path, stop)?;
    let file = shown(path);
    let first = pattern::matches(&regex, &text).next();
    Ok(match first {
        Some(found) => match evidence.made_up(path, wanted, found.text) {
            Some(why) => failed(why),
            None => passed(format!(
                "{file} ({} bytes), line {}: {}",
                text.len(),
                found.number,
                excerpt(found.line, mask)
            )),
        },
        None => failed(format!(
            "nothing in {file} ({} bytes) matches `{}`; it begins: {}",
            text.len(),
            one_line(wanted, 200),
            excerpt(&text, mask)
        )),
    })
}

fn sha256(path: &Path, equals: &str, stop: &AtomicBool) -> Result<CheckReport, CheckReport> {
    let bytes = read(path, stop)?;
    let hex: Vec<String> = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let digest = hex.concat();
    let evidence = format!("{} ({} bytes) has SHA-256 {digest}", shown(path), bytes.len());
    Ok(if digest.eq_ignore_ascii_case(equals.trim()) {
        passed(evidence)
    } else {
        failed(format!("{evidence}, expected {}", equals.trim()))
    })
}

fn count(
    path: &Path,
    of: CountOf,
    wanted: Option<&str>,
    (op, value): (CountOp, u64),
    stop: &AtomicBool,
) -> Result<CheckReport, CheckReport> {
    let regex = wanted.map(pattern::compile).transpose().map_err(faulty)?;
    let matches = |text: &str| regex.as_ref().is_none_or(|regex| regex.is_match(text));
    let (found, what) = match of {
        CountOf::Files => (files_below(path, matches, stop)?, "files below"),
        CountOf::Lines => (
            text(path, stop)?.lines().filter(|line| matches(line)).count(),
            "lines in",
        ),
        CountOf::Matches => {
            let regex = regex
                .as_ref()
                .ok_or_else(|| faulty("a count of matches needs a `pattern`"))?;
            let text = text(path, stop)?;
            let found = regex
                .find_iter(&text)
                .take_while(|_| !stop.load(Ordering::Relaxed))
                .count();
            (found, "matches in")
        }
    };
    let suffix = wanted
        .map(|w| format!(" for `{}`", one_line(w, 100)))
        .unwrap_or_default();
    let found = u64::try_from(found).unwrap_or(u64::MAX);
    Ok(compared(found, op, value, &format!("{what} {}{suffix}", shown(path))))
}

/// Regular files below a folder whose name passes. Symbolic links are neither followed nor counted.
fn files_below(folder: &Path, name_passes: impl Fn(&str) -> bool, stop: &AtomicBool) -> Result<usize, CheckReport> {
    let meta = fs::metadata(folder).map_err(|error| unreadable(folder, &error))?;
    if !meta.is_dir() {
        return Err(failed(format!("{} is no folder", shown(folder))));
    }
    let (mut found, mut seen, mut open) = (0, 0, vec![folder.to_path_buf()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| unreadable(&folder, &error))? {
            let entry = entry.map_err(|error| unreadable(&folder, &error))?;
            let kind = entry.file_type().map_err(|error| unreadable(&folder, &error))?;
            seen += 1;
            if seen > ENTRIES_MAX {
                return Err(faulty(format!(
                    "there are more than {ENTRIES_MAX} entries, too many to count: name a smaller folder"
                )));
            }
            if stop.load(Ordering::Relaxed) {
                return Err(blocked("stopped"));
            }
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() && name_passes(&entry.file_name().to_string_lossy()) {
                found += 1;
            }
        }
    }
    Ok(found)
}

/// The file's text; bytes that are no UTF-8 are replaced.
fn text(path: &Path, stop: &AtomicBool) -> Result<String, CheckReport> {
    let bytes = read(path, stop)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn read(path: &Path, stop: &AtomicBool) -> Result<Vec<u8>, CheckReport> {
    let broken = |error: &std::io::Error| unreadable(path, error);
    // Looked at before it is opened: opening a FIFO would wait for a writer.
    let meta = fs::metadata(path).map_err(|error| broken(&error))?;
    if !meta.is_file() {
        return Err(failed(format!("{} is no regular file", shown(path))));
    }
    let too_large = || {
        faulty(format!(
            "{} is larger than {} MiB and is not read",
            shown(path),
            FILE_MAX >> 20
        ))
    };
    if meta.len() > FILE_MAX {
        return Err(too_large());
    }
    let mut file = File::open(path).map_err(|error| broken(&error))?.take(FILE_MAX + 1);
    let mut bytes = Vec::new();
    loop {
        let read = (&mut file)
            .take(CHUNK)
            .read_to_end(&mut bytes)
            .map_err(|error| broken(&error))?;
        if read == 0 {
            return Ok(bytes);
        }
        // A file may say that it is small and grow while it is read.
        if bytes.len() as u64 > FILE_MAX {
            return Err(too_large());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(blocked("stopped"));
        }
    }
}

/// A missing path is the attempt's doing, so its class is left open; anything else is the environment's.
fn unreadable(path: &Path, error: &std::io::Error) -> CheckReport {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => failed(format!("{} does not exist", shown(path))),
        _ => blocked(format!("{} cannot be read: {error}", shown(path))),
    }
}

fn excerpt(text: &str, mask: &Mask) -> String {
    one_line(&mask(&first_n(text, MASKED_BEFORE_CUT)), 200)
}

fn shown(path: &Path) -> String {
    let text = <Path as AsRef<OsStr>>::as_ref(path).to_string_lossy();
    format!("`{}`", one_line(&text, 300))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_was_given_up_ends() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "x").unwrap();
        let places = Places {
            cwd: folder.path().to_path_buf(),
            workspace: folder.path().join("none"),
            home: None,
        };
        for check in [
            r#"{"kind":"count","of":"files","path":".","op":"eq","value":1}"#,
            r#"{"kind":"file_contains","path":"a","pattern":"x"}"#,
        ] {
            let request = CheckRequest {
                given: String::new(),
                written: Vec::new(),
                check: serde_json::from_str(check).unwrap(),
                tool_calls: Vec::new(),
                made: Vec::new(),
            };
            let look = |stop| decide(&request, &places, &str::to_owned, &AtomicBool::new(stop)).unwrap();
            assert!(look(false).passed, "{check}");
            assert!(!look(true).passed, "{check}");
        }
    }

    #[test]
    fn a_path_that_climbs_out_of_the_workspace_is_not_taken_for_one_inside() {
        let places = Places {
            cwd: "/cwd".into(),
            workspace: "/w".into(),
            home: Some("/home/u".into()),
        };
        for (path, made, expect) in [
            ("a.txt", "/w/a.txt", "/w/a.txt"),
            ("./out/a", "/w/out/a", "/w/out/a"),
            ("out", "/w/out/a", "/w/out"),
            ("out", "/w/outer", "/cwd/out"),
            (".", "/w/a.txt", "/cwd/."),
            ("..", "/w/a.txt", "/cwd/.."),
            ("/etc/x", "/w/etc/x", "/etc/x"),
            ("~/x", "/w/~/x", "/home/u/x"),
        ] {
            assert_eq!(places.resolve(path, [made].into_iter()), Path::new(expect), "{path}");
        }
    }
}

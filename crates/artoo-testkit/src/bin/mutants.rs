//! Breaks the validators on purpose, one small change after the other, and names the changes that no unit test notices:
//! `cargo run -p artoo-testkit --bin mutants -- [--part N/M] [FILE …]`.
//!
//! Works on a copy of the workspace in a temporary folder; the working tree is never touched. A mutant that does not compile counts as
//! noticed, and so does one whose tests run for more than two minutes. Without files, those that decide verdicts.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use regex::Regex;

/// What decides whether something passes.
const FILES: &[&str] = &[
    "crates/artoo-validators/src/agent/rules.rs",
    "crates/artoo-validators/src/checks/vouching.rs",
    "crates/artoo-validators/src/checks/status.rs",
    "crates/artoo-validators/src/meta/round.rs",
    "crates/artoo-validators/src/panel.rs",
    "crates/artoo-validators/src/verdicts.rs",
];

/// What is replaced by what: one operator, one negation, one constant.
const OPERATORS: &[(&str, &str)] = &[
    (r" && ", " || "),
    (r"[^=(] \|\| ", " && "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" < ", " <= "),
    (r" > ", " >= "),
    (r" <= ", " < "),
    (r" >= ", " > "),
    (r"[ (|]![a-z(]", ""),
    (r"\.any\(", ".all("),
    (r"\.all\(", ".any("),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
];

/// Longest run of the tests of one mutant.
const LONGEST: Duration = Duration::from_secs(120);

struct Mutant {
    file: String,
    line: usize,
    from: String,
    to: String,
    text: String,
}

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let (mut part, mut parts) = (1, 1);
    if args.first().is_some_and(|arg| arg == "--part") {
        let wanted: Vec<usize> = args
            .get(1)
            .map_or("", String::as_str)
            .split('/')
            .filter_map(|n| n.parse().ok())
            .collect();
        let [n, of] = wanted.as_slice() else {
            eprintln!("write --part N/M");
            return ExitCode::from(2);
        };
        (part, parts) = (*n, (*of).max(1));
        args.drain(..2);
    }
    let files: Vec<String> = if args.is_empty() {
        FILES.iter().map(|file| (*file).to_owned()).collect()
    } else {
        args
    };
    match run(&files, part, parts) {
        Ok(survivors) if survivors.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(files: &[String], part: usize, parts: usize) -> std::io::Result<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let copy = std::env::temp_dir().join(format!("artoo-mutants-{}", std::process::id()));
    copy_tree(&root, &copy)?;
    let mut all = Vec::new();
    for file in files {
        all.extend(mutants(&root, file)?);
    }
    let mine: Vec<&Mutant> = all
        .iter()
        .enumerate()
        .filter(|(at, _)| at % parts + 1 == part)
        .map(|(_, m)| m)
        .collect();
    println!("{} mutants, {} in this part", all.len(), mine.len());
    if noticed(&copy, false)? {
        return Err(std::io::Error::other(
            "the tests fail without a change, so nothing can be learned",
        ));
    }
    let mut survivors = Vec::new();
    for mutant in &mine {
        let path = copy.join(&mutant.file);
        let before = std::fs::read_to_string(&path)?;
        std::fs::write(&path, &mutant.text)?;
        let killed = noticed(&copy, true)?;
        std::fs::write(&path, &before)?;
        if !killed {
            let name = format!("{}:{}: `{}` → `{}`", mutant.file, mutant.line, mutant.from, mutant.to);
            println!("survived: {name}");
            survivors.push(name);
        }
    }
    println!("{} of {} were noticed", mine.len() - survivors.len(), mine.len());
    std::fs::remove_dir_all(&copy)?;
    Ok(survivors)
}

/// Every mutant of a file; its tests, comments, attributes and patterns are left as they are.
fn mutants(root: &Path, file: &str) -> std::io::Result<Vec<Mutant>> {
    let text = std::fs::read_to_string(root.join(file))?;
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut start = 0;
    for (number, line) in code.split_inclusive('\n').enumerate() {
        let words = line.trim_start();
        let is_code = !words.starts_with("//")
            && !words.starts_with('#')
            && !words.contains("r\"")
            && !words.contains(": &str =");
        for (pattern, to) in OPERATORS.iter().filter(|_| is_code) {
            let Ok(regex) = Regex::new(pattern) else { continue };
            for hit in regex.find_iter(line) {
                // The character before an operator only tells which it is.
                let keep = usize::from(pattern.starts_with('['));
                let (from, until) = match *pattern {
                    r"[ (|]![a-z(]" => (hit.start() + 1, hit.start() + 2),
                    _ => (hit.start() + keep, hit.end()),
                };
                let in_text = line
                    .get(..from)
                    .is_some_and(|before| before.matches('"').count() % 2 == 1);
                if in_text {
                    continue;
                }
                let (Some(before), Some(after)) = (text.get(..start + from), text.get(start + until..)) else {
                    continue;
                };
                found.push(Mutant {
                    file: file.to_owned(),
                    line: number + 1,
                    from: line.trim().to_owned(),
                    to: format!(
                        "{}{to}{}",
                        line.get(..from).unwrap_or_default().trim_start(),
                        line.get(until..).unwrap_or_default().trim_end()
                    ),
                    text: format!("{before}{to}{after}"),
                });
            }
        }
        start += line.len();
    }
    Ok(found)
}

/// Whether the unit tests of the validators fail in this copy.
fn noticed(copy: &Path, quiet: bool) -> std::io::Result<bool> {
    let said = || if quiet { Stdio::null() } else { Stdio::inherit() };
    // A changed warning is no error here: only behaviour counts.
    let mut child = Command::new(env!("CARGO"))
        .args(["test", "-q", "-p", "artoo-validators", "--lib", "--locked", "--offline"])
        .current_dir(copy)
        .stdin(Stdio::null())
        .stdout(said())
        .stderr(said())
        .spawn()?;
    #[allow(
        clippy::disallowed_methods,
        reason = "a program for people; nothing depends on the time"
    )]
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(!status.success());
        }
        if begun.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Copies the workspace without what is built, and without version control.
fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (name, target): (_, PathBuf) = (entry.file_name(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if name == "target" || name == ".git" {
            continue;
        }
        if kind.is_symlink() {
            copy_link(&entry.path(), &target)?;
        } else if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn copy_link(from: &Path, to: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(std::fs::read_link(from)?, to)
}

#[cfg(not(unix))]
fn copy_link(from: &Path, to: &Path) -> std::io::Result<()> {
    copy_tree(from, to)
}

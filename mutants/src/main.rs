//! Breaks the validators and the auditor's detectors on purpose, one small change after the other, and names the changes that no test of
//! their crate notices: `cargo run --manifest-path mutants/Cargo.toml -- [--part N/M] [FILE …]`.
//!
//! Works on a copy of the workspace in a temporary folder; the working tree is never touched. Every change is compiled in, and a variable of
//! the environment switches one of them on, so that a crate is compiled once and not once a change. A change whose tests run for more than
//! two minutes counts as noticed. Without files, those that decide verdicts or find fault. Text inside macros is left as it is.

mod planting;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use planting::{Mutant, Planter};
use quote::ToTokens as _;
use syn::visit_mut::VisitMut as _;

/// What decides whether something passes, and what finds fault with those who decide.
const FILES: &[&str] = &[
    "crates/artoo-validators/src/agent/correction.rs",
    "crates/artoo-validators/src/agent/fast_loop.rs",
    "crates/artoo-validators/src/agent/rules.rs",
    "crates/artoo-validators/src/agent/trial.rs",
    "crates/artoo-validators/src/checks/calls.rs",
    "crates/artoo-validators/src/checks/hollow.rs",
    "crates/artoo-validators/src/checks/mod.rs",
    "crates/artoo-validators/src/checks/numbers.rs",
    "crates/artoo-validators/src/checks/status.rs",
    "crates/artoo-validators/src/checks/vouching.rs",
    "crates/artoo-validators/src/decided.rs",
    "crates/artoo-validators/src/evidence.rs",
    "crates/artoo-validators/src/meta/judging.rs",
    "crates/artoo-validators/src/meta/merge.rs",
    "crates/artoo-validators/src/meta/round.rs",
    "crates/artoo-validators/src/panel.rs",
    "crates/artoo-validators/src/verdicts.rs",
    "crates/artoo-auditor/src/detect/authority.rs",
    "crates/artoo-auditor/src/detect/consent.rs",
    "crates/artoo-auditor/src/detect/cost.rs",
    "crates/artoo-auditor/src/detect/fan_in.rs",
    "crates/artoo-auditor/src/detect/judging.rs",
    "crates/artoo-auditor/src/detect/loops.rs",
    "crates/artoo-auditor/src/detect/memory.rs",
    "crates/artoo-auditor/src/detect/mod.rs",
    "crates/artoo-auditor/src/detect/plans.rs",
];

/// Which tests of a crate are run: those whose names hold this word.
const TESTS: &[(&str, &str)] = &[("artoo-validators", ""), ("artoo-auditor", "detect")];

/// The variable that switches a change on, by its number.
const SWITCH: &str = "ARTOO_MUTANT";

/// Longest run of the tests of one change.
const LONGEST: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let (mut part, mut parts) = (1, 1);
    if args.first().is_some_and(|arg| arg == "--part") {
        let wanted = args.get(1).and_then(|text| text.split_once('/'));
        let wanted = wanted.and_then(|(n, of)| Some((n.parse().ok()?, of.parse().ok()?)));
        let Some(wanted) = wanted else {
            eprintln!("write --part N/M");
            return ExitCode::from(2);
        };
        (part, parts) = wanted;
        args.drain(..2);
    }
    let files: Vec<String> = if args.is_empty() {
        FILES.iter().map(|file| (*file).to_owned()).collect()
    } else {
        args
    };
    match run(&files, part, parts.max(1)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::from(2)
        }
    }
}

/// How many changes survive.
fn run(files: &[String], part: usize, parts: usize) -> std::io::Result<usize> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    // A place for each part: they may run beside each other.
    let copy = std::env::temp_dir().join(format!("artoo-mutants-{part}-{parts}"));
    std::fs::remove_dir_all(&copy).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    copy_tree(&root, &copy)?;
    let mut mutants = Vec::new();
    for file in files {
        plant(&copy, file, &mut mutants)?;
    }
    let mut crates: Vec<&str> = files.iter().map(|file| crate_of(file)).collect();
    crates.dedup();
    let mut survivors = 0;
    for name in crates {
        let programs = built(&copy, name)?;
        if noticed(&copy, name, &programs, None)? {
            let message = format!("the tests of {name} fail without a change, so nothing can be learned");
            return Err(std::io::Error::other(message));
        }
        let own = mutants.iter().filter(|mutant| crate_of(&mutant.file) == name);
        let mine: Vec<&Mutant> = own.filter(|mutant| mutant.number % parts + 1 == part).collect();
        let mut alive = 0;
        for mutant in &mine {
            if !noticed(&copy, name, &programs, Some(mutant.number))? {
                let Mutant {
                    file, within, from, to, ..
                } = mutant;
                println!("survived: {file}, {within}: `{from}` → `{to}`");
                alive += 1;
            }
        }
        println!("{name}: {} of {} changes were noticed", mine.len() - alive, mine.len());
        survivors += alive;
    }
    Ok(survivors)
}

/// The crate of a file in `crates/`.
fn crate_of(file: &str) -> &str {
    file.split('/').nth(1).unwrap_or_default()
}

/// Puts every change into a file of the copy, each behind its switch, and the switch into its crate.
fn plant(copy: &Path, file: &str, mutants: &mut Vec<Mutant>) -> std::io::Result<()> {
    let path = copy.join(file);
    let mut parsed = syn::parse_file(&std::fs::read_to_string(&path)?).map_err(std::io::Error::other)?;
    let mut planter = Planter::new(file, mutants);
    planter.visit_file_mut(&mut parsed);
    std::fs::write(&path, parsed.to_token_stream().to_string())?;
    let root = copy.join("crates").join(crate_of(file)).join("src/lib.rs");
    let text = std::fs::read_to_string(&root)?;
    if !text.contains(SWITCH) {
        let switch = format!(
            "\n/// Switches.\npub mod mutant {{\n    static ON: std::sync::LazyLock<Option<usize>> =\n        std::sync::LazyLock::new(|| std::env::var(\"{SWITCH}\").ok()?.parse().ok());\n    /// Whether a change is on.\n    pub fn on(number: usize) -> bool {{\n        *ON == Some(number)\n    }}\n}}\n"
        );
        std::fs::write(&root, text + &switch)?;
    }
    Ok(())
}

/// Compiles the tests of a crate in this copy; the programs, the unit tests first.
fn built(copy: &Path, name: &str) -> std::io::Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["test", "-q", "-p", name, "--lib", "--test", "*", "--no-run"])
        .args(["--locked", "--offline", "--message-format=json-render-diagnostics"])
        .current_dir(copy)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !built.status.success() {
        return Err(std::io::Error::other(format!("the changes to {name} do not compile")));
    }
    let said = String::from_utf8_lossy(&built.stdout);
    let programs = said.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(str::to_owned)
    });
    Ok(programs.collect())
}

/// Whether some test fails while a change is on.
fn noticed(copy: &Path, name: &str, programs: &[String], change: Option<usize>) -> std::io::Result<bool> {
    let word = TESTS.iter().find(|(of, _)| *of == name).map_or("", |(_, word)| word);
    for program in programs {
        if !passes(&copy.join("crates").join(name), program, word, change)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Runs one program in the folder of its crate, as cargo does.
fn passes(folder: &Path, program: &str, word: &str, change: Option<usize>) -> std::io::Result<bool> {
    let mut command = Command::new(program);
    command
        .args(["-q", word])
        .current_dir(folder)
        .env("CARGO_MANIFEST_DIR", folder)
        .env("INSTA_WORKSPACE_ROOT", folder.join("../.."))
        .env("INSTA_UPDATE", "no")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(number) = change {
        command.env(SWITCH, number.to_string());
    }
    let mut child = command.spawn()?;
    #[allow(
        clippy::disallowed_methods,
        reason = "a program for people; nothing depends on the time"
    )]
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if begun.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Copies the workspace without what is built, and without version control.
fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (name, target): (_, PathBuf) = (entry.file_name(), to.join(entry.file_name()));
        if name == "target" || name == ".git" {
            continue;
        }
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

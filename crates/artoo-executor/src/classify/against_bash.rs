//! What is called a read is run by the real bash, where a deletion would leave a trace.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use artoo_protocol::tool::EffectClass;
use proptest::prelude::*;

use super::classify;
use super::tests::{DISGUISES, READS};

/// Pieces that commands are put together from; `rm` is a stand-in that leaves a trace.
const PIECES: &[&str] = &[
    "rm x",
    "rm",
    "x",
    "y",
    "echo",
    "echo a",
    "cat",
    "cat x",
    "ls",
    "find .",
    "find",
    "-delete",
    "-exec",
    "-execdir",
    "{}",
    "\\;",
    "+",
    "xargs",
    "-I{}",
    "-n1",
    "env",
    "command",
    "sed",
    "-n",
    "-i",
    "1p",
    "w y",
    "1e rm",
    "awk",
    "sort",
    "-o",
    "tee",
    "bash -c",
    "sh -c",
    "read v",
    "v=rm",
    "v=1",
    "$v",
    "${v}",
    "$v x",
    "$((",
    "))",
    "((",
    "$[",
    "]",
    "[",
    "[[",
    "]]",
    "-v",
    "-eq",
    "a[",
    "'",
    "\"",
    "\\",
    "`",
    "$(",
    "(",
    ")",
    "{",
    "}",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "\n",
    "<",
    ">",
    ">>",
    "<<E",
    "\nE\n",
    "<<'E'",
    "<<<",
    "<(",
    ">(",
    "2>&1",
    "&>",
    ">|",
    "#",
    "!",
    "*",
    "?",
    "~",
    "$'",
    "$\"",
    "$",
    "=",
    "+=",
    "if",
    "then",
    "fi",
    "for v in",
    "do",
    "done",
    "while",
    "case x in",
    "esac",
    "x)",
    ";;",
    "function",
    "f()",
    "f",
    "time",
    "coproc",
    "eval",
    "exec",
    "trap",
    "EXIT",
    "set -e",
    "cd .",
    ":",
    "true",
    "false",
    "printf",
    "test",
    "{rm,x}",
    "r''m",
    "r\\m",
    "${v:-",
    "${v:=",
    "${v@P}",
    "${!v}",
    "${v/",
    "${#v}",
    "IFS=",
    "-",
    "--",
    " ",
    "\t",
    ",",
    ":",
    "%",
    "@",
    "^",
    "é",
    "\u{a0}",
    "\u{3000}",
    "\\\n",
];

struct Sandbox {
    dir: tempfile::TempDir,
}

impl Sandbox {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        fs::create_dir(dir.path().join("cwd")).unwrap();
        let trace = dir.path().join("trace");
        fs::write(bin.join("rm"), format!("#!/bin/sh\n: > {}\n", trace.display())).unwrap();
        fs::set_permissions(bin.join("rm"), fs::Permissions::from_mode(0o755)).unwrap();
        for program in [
            "cat", "ls", "find", "xargs", "env", "sed", "awk", "sort", "tee", "bash", "sh",
        ] {
            let real = ["/bin", "/usr/bin"]
                .iter()
                .map(|folder| Path::new(folder).join(program))
                .find(|path| path.exists());
            if let Some(real) = real {
                symlink(real, bin.join(program)).unwrap();
            }
        }
        Self { dir }
    }

    fn cwd(&self) -> PathBuf {
        self.dir.path().join("cwd")
    }

    /// Runs the command and says what it left: the names and contents in its folder, and the trace.
    fn changed_by(&self, command: &str) -> Option<String> {
        let _ = fs::remove_dir_all(self.cwd());
        fs::create_dir(self.cwd()).unwrap();
        for name in ["x", "y"] {
            fs::write(self.cwd().join(name), name).unwrap();
        }
        // `timeout` ends what would wait for ever.
        let status = Command::new("/usr/bin/timeout")
            .args([
                "-s",
                "KILL",
                "2",
                "/bin/bash",
                "--noprofile",
                "--norc",
                "-c",
                "--",
                command,
            ])
            .env_clear()
            .env("PATH", self.dir.path().join("bin"))
            .env("HOME", self.cwd())
            .current_dir(self.cwd())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.is_ok());
        if self.dir.path().join("trace").exists() {
            let _ = fs::remove_file(self.dir.path().join("trace"));
            return Some("rm ran".to_owned());
        }
        let mut left: Vec<String> = fs::read_dir(self.cwd())
            .unwrap()
            .flatten()
            .map(|entry| {
                format!(
                    "{:?}={:?}",
                    entry.file_name(),
                    fs::read(entry.path()).unwrap_or_default()
                )
            })
            .collect();
        left.sort();
        (left != ["\"x\"=[120]", "\"y\"=[121]"]).then(|| format!("left {left:?}"))
    }
}

/// Commands made of pieces alone, and known commands into which pieces are put or which lose a part.
fn script() -> impl Strategy<Value = String> {
    let piece = || (prop::sample::select(PIECES), prop::bool::weighted(0.75));
    let pieces = prop::collection::vec(piece(), 1..12).prop_map(|pieces| {
        pieces
            .into_iter()
            .flat_map(|(text, space)| [text, if space { " " } else { "" }])
            .collect::<String>()
    });
    let known: Vec<&str> = READS
        .iter()
        .chain(DISGUISES)
        .copied()
        .filter(|command| !["/tmp", "/dev/", "kill"].iter().any(|part| command.contains(part)))
        .collect();
    let edits = prop::collection::vec(
        (any::<prop::sample::Index>(), prop::sample::select(PIECES), 0_usize..4),
        1..4,
    );
    let edited = (prop::sample::select(known), edits).prop_map(|(command, edits)| {
        edits.into_iter().fold(command.to_owned(), |command, (at, piece, cut)| {
            let mut chars: Vec<char> = command.chars().collect();
            let at = at.index(chars.len() + 1);
            let end = (at + cut).min(chars.len());
            chars.splice(at..end, piece.chars());
            chars.into_iter().collect()
        })
    });
    prop_oneof![1 => pieces, 3 => edited]
}

#[test]
fn what_is_called_a_read_changes_nothing() {
    if !Path::new("/bin/bash").exists() || !Path::new("/usr/bin/timeout").exists() {
        return;
    }
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.changed_by("rm x").as_deref(),
        Some("rm ran"),
        "the stand-in leaves its trace"
    );
    assert!(sandbox.changed_by("echo > x").is_some());
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&script(), |script| {
        let verdict = classify(&script);
        if verdict.effect == EffectClass::Read && verdict.writes.is_empty() {
            let changed = sandbox.changed_by(&script);
            prop_assert!(changed.is_none(), "{script:?} was called a read, but {changed:?}");
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

//! The keyring of the system, through the system's own program: `secret-tool` where there is the Secret Service, `security` on macOS
//! (docs/decisions/0018-keyring-by-the-systems-own-program.md).
//!
//! Owns how it is spoken to. A key never stands among a program's arguments, where other users of the machine could read it.

use std::io::{ErrorKind, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use artoo_protocol::text::one_line;

/// How long it may take: a person may have to unlock the keyring in a window.
const LIMIT: Duration = Duration::from_secs(30);
/// How long it is waited for at a time.
const STEP: Duration = Duration::from_millis(5);
/// Bytes that are read of what it says.
const OUTPUT_MAX: u64 = 64 << 10;
/// Under which name keys stand there.
const SERVICE: &str = "artoo";
/// How the program exits when there is no such key: `security` with the last byte of errSecItemNotFound.
const ABSENT: i32 = if cfg!(target_os = "macos") { 44 } else { 1 };

/// The key of this name; `None` where the keyring has none.
///
/// # Errors
/// In words, when there is no keyring or it does not answer.
pub fn find(name: &str) -> Result<Option<String>, String> {
    let said = speak(&mut asking(name), "")?;
    let key = said.out.trim_end_matches(['\n', '\r']);
    if said.succeeded() && !key.is_empty() {
        return Ok(Some(key.to_owned()));
    }
    if said.says_absent() && key.is_empty() {
        Ok(None)
    } else {
        Err(said.complaint())
    }
}

/// Keeps a key under this name, and looks whether it is there.
///
/// # Errors
/// In words, when it could not be kept.
pub fn keep(name: &str, key: &str) -> Result<(), String> {
    let (mut command, input) = keeping(name, key);
    let said = speak(&mut command, &input)?;
    // A program may have failed without saying so by its exit status.
    match find(name)? {
        Some(kept) if kept == key => Ok(()),
        Some(_) | None => Err(said.complaint()),
    }
}

/// Forgets the key of this name, if there is one.
///
/// # Errors
/// In words, when it is still there afterwards, or when that cannot be told.
pub fn forget(name: &str) -> Result<(), String> {
    let said = speak(&mut forgetting(name), "")?;
    // `secret-tool` removes nothing with success as well; a silent 1 may be any failure.
    let is_done = said.succeeded() || (cfg!(target_os = "macos") && said.says_absent());
    if !is_done {
        return Err(format!("it cannot be told whether it is gone ({})", said.complaint()));
    }
    match find(name)? {
        None => Ok(()),
        Some(_) => Err("it is still there".to_owned()),
    }
}

/// The program that is needed here.
const fn program() -> &'static str {
    if cfg!(target_os = "macos") {
        "security"
    } else {
        "secret-tool"
    }
}

fn called(words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(words);
    command
}

fn asking(name: &str) -> Command {
    if cfg!(target_os = "macos") {
        called(&["find-generic-password", "-s", SERVICE, "-a", name, "-w"])
    } else {
        called(&["lookup", "service", SERVICE, "account", name])
    }
}

fn keeping(name: &str, key: &str) -> (Command, String) {
    if cfg!(target_os = "macos") {
        // As a command on standard input, for it takes the key as an argument only. A key holds nothing that would have to be escaped
        // but these two, see `stored::check`.
        let quoted = key.replace('\\', "\\\\").replace('"', "\\\"");
        let line = format!("add-generic-password -U -s {SERVICE} -a {name} -w \"{quoted}\"\n");
        (called(&["-i"]), line)
    } else {
        let label = format!("artoo: key of {name}");
        let command = called(&["store", "--label", &label, "service", SERVICE, "account", name]);
        (command, key.to_owned())
    }
}

fn forgetting(name: &str) -> Command {
    if cfg!(target_os = "macos") {
        called(&["delete-generic-password", "-s", SERVICE, "-a", name])
    } else {
        called(&["clear", "service", SERVICE, "account", name])
    }
}

/// What a program said. Its output may be the key and is shown to nobody.
struct Said {
    status: ExitStatus,
    out: String,
    err: String,
}

impl Said {
    fn succeeded(&self) -> bool {
        self.status.success()
    }

    /// `secret-tool` says nothing then; `security` says so. Everything else, a signal too, tells nothing of the key.
    fn says_absent(&self) -> bool {
        self.status.code() == Some(ABSENT) && (cfg!(target_os = "macos") || self.err.trim().is_empty())
    }

    fn complaint(&self) -> String {
        match self.err.trim() {
            "" => format!("{} could not do it ({})", program(), self.status),
            why => one_line(why, 300),
        }
    }
}

fn speak(command: &mut Command, input: &str) -> Result<Said, String> {
    speak_within(LIMIT, command, input)
}

/// One limit for all that it says and for its end.
fn speak_within(limit: Duration, command: &mut Command, input: &str) -> Result<Said, String> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{} is not installed", program()),
        _ => format!("{} cannot be started: {error}", program()),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may not want any; then what it says tells more than the broken pipe.
        let _ = stdin.write_all(input.as_bytes());
    }
    let (out, err) = (heard(child.stdout.take()), heard(child.stderr.take()));
    let (mut out_text, mut err_text) = (None, None);
    for _ in 0..limit.as_millis() / STEP.as_millis() {
        out_text = out_text.or_else(|| out.try_recv().ok());
        err_text = err_text.or_else(|| err.try_recv().ok());
        let status = child.try_wait().map_err(|error| error.to_string())?;
        match (status, out_text.take(), err_text.take()) {
            (Some(status), Some(out), Some(err)) => return Ok(Said { status, out, err }),
            (_, said, complained) => (out_text, err_text) = (said, complained),
        }
        std::thread::sleep(STEP);
    }
    give_up(child);
    Err(format!("the keyring did not answer within {} seconds", limit.as_secs()))
}

/// Kills it. Its end is waited for elsewhere: what hangs in the kernel does not even die at once.
fn give_up(mut child: Child) {
    // It may have ended meanwhile.
    let _ = child.kill();
    std::thread::spawn(move || child.wait());
}

/// All that comes from a stream, read beside the other one: a full pipe would hold the program.
fn heard(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            let _ = stream.take(OUTPUT_MAX).read_to_end(&mut bytes);
        }
        // Nobody listens any more when it took too long.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn only_the_programs_own_word_for_it_is_absence() {
        for (script, absent) in [
            (format!("exit {ABSENT}"), true),
            ("exit 2".to_owned(), false),
            ("exit 0".to_owned(), false),
            ("kill -9 $$".to_owned(), false),
        ] {
            let said = speak(&mut shell(&script), "").unwrap();
            assert_eq!(said.says_absent(), absent, "{script}");
        }
        let killed = speak(&mut shell("kill -9 $$"), "").unwrap();
        assert!(killed.complaint().contains("signal"), "{}", killed.complaint());
        if !cfg!(target_os = "macos") {
            let complains = speak(&mut shell("echo locked >&2; exit 1"), "").unwrap();
            assert!(!complains.says_absent() && complains.complaint() == "locked");
        }
    }

    #[test]
    fn one_that_does_not_end_is_given_up_whatever_it_closed() {
        for script in [
            "exec sleep 5",
            "exec sleep 5 >&- 2>&-",
            "echo half; exec sleep 5 2>&-",
            // It ends, and another holds on to what it would say.
            "sleep 5 & exit 0",
        ] {
            let said = speak_within(Duration::from_millis(100), &mut shell(script), "");
            assert!(said.is_err_and(|why| why.contains("did not answer")), "{script}");
        }
    }
}

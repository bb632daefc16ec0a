//! A sandbox to run the binary in, and a scripted model to run it against.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use artoo_testkit::server::{Response, Server};
use serde_json::Value;
use tempfile::TempDir;

/// Only a hang takes longer.
pub const LIMIT: Duration = Duration::from_secs(60);
/// The user `nobody`.
const NOBODY: u32 = 65_534;

pub struct Sandbox {
    dir: TempDir,
}

impl Sandbox {
    /// A home and a project with a few files.
    pub fn new() -> Self {
        let sandbox = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(sandbox.home()).unwrap();
        sandbox.file("src/a.rs", "fn main() {}\n// TODO one\n");
        sandbox.file("src/deep/b.rs", "// TODO two TODO three\nfn b() {}\n\n");
        sandbox.file("src/deep/c.txt", &"c".repeat(5_000));
        sandbox.file("notes.txt", "one two three\nfour\n");
        sandbox.file("my notes.txt", "a b  c d\n");
        sandbox
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub fn data(&self) -> PathBuf {
        self.home().join(".artoo")
    }

    pub fn workspace(&self) -> PathBuf {
        self.home().join("artoo_workspace")
    }

    /// Writes a file of the project.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The binary, in the project, with a home and nothing else.
    pub fn artoo(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_artoo"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.home())
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    /// The same with a model behind it.
    pub fn with_model(&self, server: &Server, args: &[&str]) -> Command {
        let mut command = self.artoo(args);
        command
            .env("OPENAI_BASE_URL", server.base_url())
            .env("OPENAI_MODEL", "scripted");
        command
    }

    pub fn run(&self, args: &[&str]) -> Done {
        Running::start(&mut self.artoo(args)).wait()
    }

    /// What the shell says, to compare with.
    pub fn shell(&self, command: &str) -> String {
        let out = Command::new("sh")
            .args(["-c", command])
            .env("LC_ALL", "C")
            .current_dir(self.project())
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "{command}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8(out.stdout).unwrap()
    }

    /// The binary as a user whom permissions bind: root passes over them. Gives everything in the sandbox to that user.
    pub fn bound_by_permissions(&self, args: &[&str]) -> Command {
        let mut command = self.artoo(args);
        if rustix::process::geteuid().is_root() {
            // The build folder may be closed to others.
            let binary = self.dir.path().join("artoo");
            if !binary.exists() {
                std::fs::hard_link(env!("CARGO_BIN_EXE_artoo"), &binary)
                    .or_else(|_| std::fs::copy(env!("CARGO_BIN_EXE_artoo"), &binary).map(|_| ()))
                    .unwrap();
            }
            std::fs::set_permissions(self.dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
            give(&self.home());
            give(&self.project());
            command = Command::new(binary);
            command
                .args(args)
                .env_clear()
                .env("HOME", self.home())
                .current_dir(self.project())
                .stdin(Stdio::null());
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Every envelope of the only task that ran, from its journal.
    pub fn journal(&self) -> Vec<Value> {
        let mut files = std::fs::read_dir(self.data().join("tasks")).unwrap();
        let file = files.next().expect("one journal").unwrap().path();
        assert!(files.next().is_none(), "more than one journal");
        let text = std::fs::read_to_string(file).unwrap();
        let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.filter_map(|record| record.get("envelope").cloned()).collect()
    }
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}

/// A process that ends when the test does.
pub struct Running {
    child: Child,
    out: Receiver<Vec<u8>>,
    err: Receiver<Vec<u8>>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = drained(child.stdout.take().unwrap());
        let err = drained(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    /// With this on standard input. A process that stops reading is no failure of the test.
    pub fn fed(command: &mut Command, input: Vec<u8>) -> Self {
        let mut running = Self::start(command.stdin(Stdio::piped()));
        let mut stdin = running.child.stdin.take().unwrap();
        std::thread::spawn(move || stdin.write_all(&input));
        running
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Waits for the end and checks what holds for every end: no panic, and nothing that could steer a terminal.
    pub fn wait(mut self) -> Done {
        let (Ok(out), Ok(err)) = (self.out.recv_timeout(LIMIT), self.err.recv_timeout(LIMIT)) else {
            panic!("artoo hangs");
        };
        let code = self.child.wait().unwrap().code();
        let (out, err) = (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap());
        assert!(!err.contains("panicked") && code != Some(101), "a panic: {err}");
        assert!(
            !err.chars().any(|c| c.is_control() && c != '\n' && c != '\t'),
            "raw control characters: {err:?}"
        );
        Done { code, out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn drained(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

/// How a run ended.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Done {
    /// Ended with this code, said all of this on standard error, and nothing on standard output.
    #[track_caller]
    pub fn refused(&self, code: i32, said: &[&str]) -> &Self {
        self.ended(code);
        assert_eq!(self.out, "", "nothing belongs on standard output: {self:#?}");
        for words in said {
            assert!(self.err.contains(words), "`{words}` was not said: {self:#?}");
        }
        self
    }

    /// Said this on standard output.
    #[track_caller]
    pub fn says(&self, words: &str) -> &Self {
        assert!(self.out.contains(words), "`{words}` was not said: {self:#?}");
        self
    }

    #[track_caller]
    pub fn ended(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Standard output as lines of JSON.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in {line:?}"));
        self.out.lines().map(read).collect()
    }

    /// Standard output as one value of JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e} in {:?}", self.out))
    }
}

/// A model that never answers, and the moment when it was asked.
pub fn silent_model() -> (Server, Receiver<()>) {
    told(|_| Response::Silence)
}

/// A model, and the moments when it was asked.
pub fn told(answer: impl Fn(&Value) -> Response + Send + Sync + 'static) -> (Server, Receiver<()>) {
    let (sender, receiver): (Sender<()>, _) = channel();
    let server = Server::start(move |body| {
        let _ = sender.send(());
        answer(body)
    });
    (server.unwrap(), receiver)
}

/// The last message of a conversation, as a model sees it.
pub fn last_message(body: &Value) -> String {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let mut text = String::new();
    if let Some(message) = messages.last() {
        let _ = write!(text, "{}", message["content"].as_str().unwrap_or_default());
    }
    text
}

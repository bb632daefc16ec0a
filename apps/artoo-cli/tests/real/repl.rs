//! The conversation on a terminal, through a pseudo-terminal (design §21).

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use artoo_testkit::server::Response;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::consent::deleting;
use crate::support::{LIMIT, Sandbox, told};

/// A program with a terminal of its own.
pub struct Pty {
    keyboard: Option<File>,
    screen: Arc<Screen>,
    seen: usize,
    child: Child,
}

#[derive(Default)]
struct Screen {
    /// What came, and whether the other end is closed.
    state: Mutex<(String, bool)>,
    changed: Condvar,
    /// Whether nobody looks any more.
    closed: AtomicBool,
}

impl Pty {
    /// Starts a command as the foreground process of a new terminal; `None`, with the reason printed, where that cannot be had.
    pub fn start(command: &Command) -> Option<Self> {
        let Some(mut launcher) = launcher(command) else {
            println!("skipped: `setsid` of util-linux, which gives a program its own terminal, is not here");
            return None;
        };
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        // Else what runs in the terminal would keep it open.
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(
            &master,
            Winsize {
                ws_row: 40,
                ws_col: 200,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
        )
        .unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let slave = OpenOptions::new().read(true).write(true).open(path).unwrap();
        launcher
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave);
        let child = launcher.spawn().unwrap();
        // The command holds the other end of the terminal open as long as it lives.
        drop(launcher);
        let keyboard = File::from(master);
        let screen = Arc::new(Screen::default());
        let (mut output, shared) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let read = output.read(&mut bytes).unwrap_or(0);
                let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.0.push_str(&String::from_utf8_lossy(&bytes[..read]));
                state.1 = read == 0;
                shared.changed.notify_all();
                if read == 0 || shared.closed.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        Some(Self {
            keyboard: Some(keyboard),
            screen,
            seen: 0,
            child,
        })
    }

    /// Waits until this appears after what was waited for before.
    #[track_caller]
    pub fn expect(&mut self, text: &str) {
        let state = self.screen.state.lock().unwrap();
        let from = self.seen;
        let missing = |state: &mut (String, bool)| !state.0[from..].contains(text) && !state.1;
        let (state, waited) = self.screen.changed.wait_timeout_while(state, LIMIT, missing).unwrap();
        let shown = &state.0[from..];
        let Some(at) = shown.find(text) else {
            panic!(
                "{text:?} did not appear ({}): {shown:?}",
                if waited.timed_out() { "hang" } else { "it ended" }
            );
        };
        self.seen = from + at + text.len();
    }

    pub fn send(&mut self, text: &str) {
        self.keyboard.as_ref().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Closes the terminal, as closing its window does, and gives the exit code of what ran in it.
    pub fn close(mut self) -> Option<i32> {
        self.screen.closed.store(true, Ordering::SeqCst);
        // Whoever reads the screen holds it open; the echo of this wakes them.
        self.send("x");
        self.keyboard = None;
        self.child.wait().unwrap().code()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// The exit code, once the terminal is closed.
    #[track_caller]
    pub fn wait(mut self) -> Option<i32> {
        let state = self.screen.state.lock().unwrap();
        let (state, waited) = self
            .screen
            .changed
            .wait_timeout_while(state, LIMIT, |state| !state.1)
            .unwrap();
        assert!(!waited.timed_out(), "it does not end: {:?}", state.0);
        assert!(!state.0.contains("panicked"), "{}", state.0);
        drop(state);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same command under `setsid --ctty`, which replaces itself by it.
fn launcher(command: &Command) -> Option<Command> {
    let setsid = ["/usr/bin/setsid", "/bin/setsid"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists())?;
    let mut launcher = Command::new(setsid);
    launcher
        .arg("--ctty")
        .arg(command.get_program())
        .args(command.get_args());
    launcher
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("TERM", "xterm");
    launcher.current_dir(command.get_current_dir()?);
    Some(launcher)
}

#[test]
fn two_tasks_and_commands_in_one_conversation() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = Pty::start(&sandbox.artoo(&[])) else {
        return;
    };
    pty.expect("artoo> ");
    pty.send("count the Rust files in src\r");
    pty.expect("accept (met)");
    pty.expect("artoo> ");
    pty.send("\"\"\"\r");
    pty.send("write \"hi\"\r");
    pty.send("to hi.txt\"\"\"\r");
    pty.expect("accept (met)");
    pty.expect("artoo> ");
    pty.send("/tasks\r");
    pty.expect("write_file");
    pty.expect("count_rs_files");
    pty.expect("artoo> ");
    for (command, answer) in [
        ("/help", "stops the task only"),
        ("/model", "builtin:offline"),
        ("/memory", "memories in"),
        ("/audit", "2 tasks"),
        ("/nonsense", "no command `/nonsense`"),
    ] {
        pty.send(&format!("{command}\r"));
        pty.expect(answer);
        pty.expect("artoo> ");
    }
    pty.send("\u{4}");
    assert_eq!(pty.wait(), Some(0));
    assert_eq!(
        std::fs::read_to_string(sandbox.workspace().join("hi.txt"))
            .unwrap()
            .trim(),
        "hi"
    );
    // What was typed is there the next time.
    let Some(mut pty) = Pty::start(&sandbox.artoo(&[])) else {
        return;
    };
    pty.expect("artoo> ");
    pty.send("\u{1b}[A");
    pty.expect("/nonsense");
    pty.send("\u{3}");
    pty.expect("once more");
    pty.expect("artoo> ");
    pty.send("\u{3}");
    assert_eq!(pty.wait(), Some(0));
}

#[test]
fn wishes_are_remembered_and_forgotten_in_the_conversation() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = Pty::start(&sandbox.artoo(&[])) else {
        return;
    };
    let mut say = |line: &str, answer: &str| {
        pty.expect("artoo> ");
        pty.send(&format!("{line}\r"));
        pty.expect(answer);
    };
    say("/remember always use yarn", "remembered as ");
    say("/remember Always  use yarn", "it was known already");
    say("/remember", "there is nothing to remember");
    say("/memory build the project", "always use yarn");
    say("/forget nothing-like-it", "there is no memory `nothing-like-it`");
    say("/memory", "1 memories in");
    pty.expect("artoo> ");
    pty.send("\u{4}");
    assert_eq!(pty.wait(), Some(0));
    let kept = sandbox.run(&["memory", "list", "--json"]).ended(0).json();
    let id = kept[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(kept[0]["content"], "always use yarn");

    let Some(mut pty) = Pty::start(&sandbox.artoo(&[])) else {
        return;
    };
    pty.expect("artoo> ");
    pty.send(&format!("/forget {id}\r"));
    pty.expect("is forgotten");
    pty.expect("artoo> ");
    pty.send("\u{4}");
    assert_eq!(pty.wait(), Some(0));
    assert_eq!(sandbox.run(&["memory", "export"]).ended(0).out, "");
}

#[test]
fn ctrl_c_stops_the_task_and_never_the_program() {
    let sandbox = Sandbox::new();
    let first = AtomicBool::new(true);
    let (server, asked) = told(move |body| {
        if first.swap(false, Ordering::Relaxed) {
            Response::Silence
        } else {
            deleting(body)
        }
    });
    let Some(mut pty) = Pty::start(&sandbox.with_model(&server, &[])) else {
        return;
    };
    pty.expect("artoo> ");
    pty.send("never mind\r");
    asked.recv_timeout(LIMIT).unwrap();
    pty.send("\u{3}");
    pty.expect("abandon (aborted)");
    pty.expect("artoo> ");
    // Now while it waits for an answer of the person: the abandoned question must not take the next line.
    pty.send("delete notes.txt\r");
    pty.expect("[N]o: ");
    pty.send("\u{3}");
    pty.expect("abandon (aborted)");
    pty.expect("artoo> ");
    pty.send("/help\r");
    pty.expect("stops the task only");
    pty.expect("artoo> ");
    pty.send("delete notes.txt\r");
    pty.expect("[N]o: ");
    pty.send("y\n");
    pty.expect("accept (met)");
    pty.expect("artoo> ");
    pty.signal(rustix::process::Signal::TERM);
    pty.expect("stopped by SIGTERM");
    assert_eq!(pty.wait(), Some(0));
    assert!(!sandbox.project().join("notes.txt").exists());
}

//! A terminal for a program: its keyboard, and the screen as a person sees it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Point};
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::Processor;
use artoo_testkit::skipping::skipped;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::LIMIT;

/// A window's title: nothing of it is seen.
const MARK: &str = "\u{1b}]0;mark\u{7}";

/// A program with a terminal of its own.
pub struct Pty {
    keyboard: Option<File>,
    screen: Arc<Screen>,
    seen: usize,
    child: Child,
    /// The terminal's own end.
    path: PathBuf,
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
        Self::sized(command, Size(200, 40))
    }

    /// The same with a terminal of this size.
    pub fn sized(command: &Command, size: Size) -> Option<Self> {
        let Some(mut launcher) = launcher(command) else {
            skipped("setsid", "it is of util-linux and gives a program its own terminal");
            return None;
        };
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        // Else what runs in the terminal would keep it open.
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, winsize(size)).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let slave = OpenOptions::new().read(true).write(true).open(&path).unwrap();
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
            let (mut bytes, mut rest) = ([0; 4096], Vec::new());
            loop {
                let read = output.read(&mut bytes).unwrap_or(0);
                let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
                rest.extend_from_slice(&bytes[..read]);
                // A character may come in two pieces.
                let whole = match std::str::from_utf8(&rest) {
                    Err(error) if error.error_len().is_none() => error.valid_up_to(),
                    _ => rest.len(),
                };
                state.0.push_str(&String::from_utf8_lossy(&rest[..whole]));
                rest.drain(..whole);
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
            path,
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

    /// Everything that was written to the screen up to what was waited for last.
    pub fn shown(&self) -> String {
        self.screen.state.lock().unwrap().0[..self.seen].to_owned()
    }

    pub fn resize(&self, size: Size) {
        tcsetwinsize(self.keyboard.as_ref().unwrap(), winsize(size)).unwrap();
    }

    /// Stops the program between two pictures, and waits until everything that it wrote is on the screen.
    pub fn pause(&mut self) {
        let program = rustix::process::Pid::from_child(&self.child);
        loop {
            rustix::process::kill_process(program, rustix::process::Signal::STOP).unwrap();
            rustix::process::waitpid(Some(program), rustix::process::WaitOptions::UNTRACED).unwrap();
            let mut mark = OpenOptions::new().write(true).open(&self.path).unwrap();
            mark.write_all(MARK.as_bytes()).unwrap();
            self.expect(MARK);
            let shown = self.shown();
            if shown.trim_end_matches(MARK).ends_with("\u{1b}[?2026l") {
                return;
            }
            self.go_on();
        }
    }

    pub fn go_on(&self) {
        self.signal(rustix::process::Signal::CONT);
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

fn winsize(size: Size) -> Winsize {
    Winsize {
        ws_row: u16::try_from(size.1).unwrap(),
        ws_col: u16::try_from(size.0).unwrap(),
        ws_xpixel: 0,
        ws_ypixel: 0,
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
        .env("TERM", "xterm")
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    launcher.current_dir(command.get_current_dir()?);
    Some(launcher)
}

/// A terminal's grid, as one that people use keeps it: what is written into it is what they see, and narrowing it breaks lines anew.
pub struct Grid {
    term: Term<VoidListener>,
    parser: Processor,
}

/// Columns and lines.
#[derive(Clone, Copy)]
pub struct Size(pub usize, pub usize);

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.1
    }

    fn screen_lines(&self) -> usize {
        self.1
    }

    fn columns(&self) -> usize {
        self.0
    }
}

impl Grid {
    pub fn new(size: Size) -> Self {
        Self {
            term: Term::new(Config::default(), &size, VoidListener),
            parser: Processor::new(),
        }
    }

    pub fn write(&mut self, text: &str) {
        self.parser.advance(&mut self.term, text.as_bytes());
    }

    pub fn resize(&mut self, size: Size) {
        self.term.resize(size);
    }

    /// Everything that can be seen, scrolled up lines included.
    pub fn text(&self) -> String {
        let (from, to) = (self.term.topmost_line(), self.term.bottommost_line());
        let text = self
            .term
            .bounds_to_string(Point::new(from, Column(0)), Point::new(to, self.term.last_column()));
        text.trim_end().to_owned()
    }
}

//! The process above a command, which nothing of it outlives (design §8, §9).
//!
//! Owns the scratch folder, the adoption of orphans and the end of everything. It stays outside the confinement, so that
//! the command can neither signal it nor keep it from its work; and it ends everything when its standard input closes,
//! which also happens when artoo itself is killed. Must not know what the command is.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
    set_child_subreaper, setrlimit, wait,
};

use super::helper::{CANNOT, Request};
use super::{Confinement, MARK};

/// Processes of one confined command beyond which it is ended.
pub const MOST_PROCESSES: usize = 512;
/// How often their number is looked at.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};
/// How often killing is tried before it is given up: only a process of another user can need more than a few.
const ROUNDS: usize = 2_000;
const BREATH: Duration = Duration::from_millis(1);

/// What the command gets as its standard input. The supervisor's own, whose closing is the order to end everything, is a
/// pipe in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    None,
    /// The same pipe: it reads from it, and the supervisor only waits for its end.
    Shared,
}

/// Runs the command, ends all that is left of it, and returns its exit status; a signal that ended it ends this process.
pub fn run(request: &Request, encoded: &[OsString], bubblewrap: Option<&Path>, input: Input) -> i32 {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        super::helper::fail(&format!("orphans cannot be adopted: {error}"));
    }
    let confined = request.confinement != Confinement::Allowed;
    let scratch = confined.then(|| match Scratch::make() {
        Ok(scratch) => scratch,
        Err(error) => super::helper::fail(&format!("there is no place for a scratch folder: {error}")),
    });
    let folder = scratch.as_ref().map(|Scratch(folder)| folder.as_path());
    let mut command = command(request, encoded, bubblewrap.map(|program| (program, folder)));
    if input == Input::None {
        command.stdin(Stdio::null());
    }
    if let Some(folder) = folder {
        command.env("TMPDIR", folder);
    }
    // A group of its own, so that `kill 0` in it does not mean this process.
    command.process_group(0);
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => super::helper::fail(&format!("the command cannot be started: {error}")),
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let status = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok().map(|fd| (pid, fd)));
    let status = status.and_then(|(pid, fd)| watch(pid, &fd, confined));
    end_all();
    drop(scratch);
    match status {
        Some(status) => finish(status),
        // The order came from outside, or nothing is known: whoever waits sees a kill.
        None => die(Signal::KILL),
    }
}

fn command(request: &Request, encoded: &[OsString], bubblewrap: Option<(&Path, Option<&Path>)>) -> Command {
    if request.confinement == Confinement::Allowed {
        let (program, arguments) = request
            .inner
            .split_first()
            .map_or((None, &[][..]), |(p, a)| (Some(p), a));
        let mut command = Command::new(program.map_or("false".as_ref(), OsString::as_os_str));
        command.args(arguments);
        return command;
    }
    let mut command = match bubblewrap {
        None => Command::new("/proc/self/exe"),
        Some((program, scratch)) => {
            let Ok(this) = std::env::current_exe() else {
                super::helper::fail("the sandbox's helper does not find itself");
            };
            let mut command = Command::new(program);
            command.args(super::bubblewrap::arguments(scratch)).arg(this);
            command
        }
    };
    command.arg(MARK).arg("enter").args(encoded);
    command
}

/// Waits for the command's end; `None` when it has to be ended.
fn watch(child: Pid, ended: &OwnedFd, limited: bool) -> Option<WaitStatus> {
    let input = std::io::stdin();
    let before = threads_of_the_machine();
    loop {
        let mut fds = [PollFd::new(ended, PollFlags::IN), PollFd::new(&input, PollFlags::HUP)];
        match poll(&mut fds, Some(&TICK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        let [command, order] = &fds;
        if !command.revents().is_empty() {
            return status_of(child);
        }
        if order
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
        {
            return None;
        }
        if limited && threads_of_the_machine() > before + MOST_PROCESSES && descendants().len() > MOST_PROCESSES {
            eprintln!("artoo: it was ended, because it started more than {MOST_PROCESSES} processes");
            return None;
        }
        // Orphans that ended meanwhile are taken away; the command itself is left for its own moment.
        reap_except(child);
    }
}

fn status_of(child: Pid) -> Option<WaitStatus> {
    rustix::process::waitpid(Some(child), WaitOptions::NOHANG)
        .ok()
        .flatten()
        .map(|(_, status)| status)
}

fn reap_except(child: Pid) {
    for (pid, parent, state) in processes() {
        if parent == getpid() && pid != child && state == 'Z' {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Kills and takes away everything below this process. Orphans come to it, so nothing can run from that.
fn end_all() {
    for round in 0..ROUNDS {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        let left = descendants();
        if round == 0 {
            // Stopped first: what cannot run cannot start more.
            for pid in &left {
                let _ = kill_process(*pid, Signal::STOP);
            }
        }
        for pid in left {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(BREATH);
    }
}

/// Every process below this one.
fn descendants() -> Vec<Pid> {
    let all = processes();
    let mut found = vec![getpid()];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(all.iter().filter(|(_, of, _)| *of == parent).map(|(pid, _, _)| *pid));
        at += 1;
    }
    found.remove(0);
    found
}

/// Every process with its parent and its state.
fn processes() -> Vec<(Pid, Pid, char)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let process = |entry: fs::DirEntry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name stands in brackets and may hold anything, brackets too.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?.chars().next()?;
        Some((pid, Pid::from_raw(fields.next()?.parse().ok()?)?, state))
    };
    entries.flatten().filter_map(process).collect()
}

/// The number of threads on the machine; 0 when it is not told.
pub fn threads_of_the_machine() -> usize {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let threads = text.split_whitespace().nth(3).and_then(|field| field.split_once('/'));
    threads.and_then(|(_, all)| all.parse().ok()).unwrap_or_default()
}

/// A folder that is made for one command and goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> std::io::Result<Self> {
        let base = std::env::temp_dir().canonicalize()?;
        let mut last = std::io::Error::other("every name is taken");
        for attempt in 0..100 {
            let path = base.join(format!("artoo-{}-{attempt}", getpid().as_raw_pid()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

fn remove(folder: &Path) {
    // Symbolic links in it are removed, not followed.
    let _ = fs::remove_dir_all(folder);
}

fn finish(status: WaitStatus) -> i32 {
    if let Some(code) = status.exit_status() {
        return code;
    }
    match status.terminating_signal().and_then(Signal::from_named_raw) {
        Some(signal) => die(signal),
        None => CANNOT,
    }
}

/// Ends this process as the command was ended, without leaving a dump of it.
fn die(signal: Signal) -> i32 {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    // The runtime's own handler of some signals takes the first and steps aside.
    for _ in 0..2 {
        let _ = kill_process(getpid(), signal);
    }
    128 + signal.as_raw()
}

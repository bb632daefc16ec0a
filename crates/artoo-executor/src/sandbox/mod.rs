//! What the operating system lets a command do, whatever it was taken for (design §9).
//!
//! Owns the confinement of commands: which one belongs to a permit, whether this machine can enforce it, and the program
//! that enforces it. On Linux that is artoo itself, started again: a supervisor that nothing outlives, and under it a
//! process that gives up its rights (Landlock, seccomp, capabilities, limits) before it becomes the command's shell. Must
//! not know the gate, tools or the model.

#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(target_os = "linux")]
mod restrict;
pub mod seatbelt;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod syscalls;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The first argument of a program that is to be the helper and nothing else.
const MARK: &str = "__artoo-sandbox";

/// Becomes the sandbox's helper when the process was started for that; else returns at once.
///
/// Every program that hands its own path to [`Sandbox::with_helper`] calls this before anything else, while it has one
/// thread.
pub fn enter_if_asked() {
    #[cfg(target_os = "linux")]
    helper::enter_if_asked();
}

/// What a command may do at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Confinement {
    /// Everything that the user may: a person allowed this exact command.
    Allowed,
    /// Look, and write to its scratch folder. No network, no sockets, no signals to others.
    #[default]
    Read,
    /// The same, and write to these paths.
    Write(Vec<Writable>),
}

/// A place that a confined command may write to. Paths are absolute and free of symbolic links; one that is a link when
/// the command starts is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writable {
    /// A file, or a folder with all that is in it.
    pub path: PathBuf,
    /// What may be done there.
    pub allows: Allows,
}

/// What may be done at a place. Nothing can be removed or renamed at any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allows {
    /// Making files and folders. A file that is there can be written to, but not cut.
    Making,
    /// The same, and replacing the content of files.
    Changing,
    /// Making folders, and nothing else.
    Folders,
}

/// What the look at the machine found.
#[derive(Debug)]
struct Found {
    /// For the person.
    words: String,
    /// The program that stands in for Landlock where that is missing. It can hold reads only.
    bubblewrap: Option<PathBuf>,
}

/// Why bubblewrap holds no command that may write: a mount is writable or not.
const READS_ONLY: &str = "bubblewrap cannot hold a command to making files without deleting others";

/// Whether and how commands are confined on this machine.
#[derive(Clone, Debug)]
pub struct Sandbox(Arc<Inner>);

#[derive(Debug)]
enum Inner {
    /// This helper confines them, if the look at the machine says so.
    Helper {
        program: PathBuf,
        landlock: Option<u32>,
        found: OnceLock<Result<Found, String>>,
    },
    /// Nothing can, and why.
    Missing(String),
    /// Nobody asks for it.
    Unchecked,
}

impl Sandbox {
    /// The running program is its own helper: it called [`enter_if_asked`].
    pub fn of_this_program() -> Self {
        Self::with_helper(Path::new("/proc/self/exe"))
    }

    /// This program is the helper.
    pub fn with_helper(program: &Path) -> Self {
        Self(Arc::new(Inner::Helper {
            program: program.to_owned(),
            landlock: None,
            found: OnceLock::new(),
        }))
    }

    /// The same, with no more of Landlock than a kernel with this version of its interface has: for tests.
    #[must_use]
    pub fn with_landlock_at_most(program: &Path, version: u32) -> Self {
        Self(Arc::new(Inner::Helper {
            program: program.to_owned(),
            landlock: Some(version),
            found: OnceLock::new(),
        }))
    }

    /// There is none, for this reason: every command is asked about.
    pub fn missing(why: impl Into<String>) -> Self {
        Self(Arc::new(Inner::Missing(why.into())))
    }

    /// Commands run as they are, and the gate trusts what it makes of them. For tests, and for hosts that confine artoo
    /// as a whole.
    pub fn unchecked() -> Self {
        Self(Arc::new(Inner::Unchecked))
    }

    /// What is in force, in words for the person.
    ///
    /// # Errors
    /// Why nothing is. The machine is looked at once, at the first call, which starts a process.
    pub fn in_force(&self) -> Result<&str, &str> {
        match &*self.0 {
            Inner::Helper {
                program,
                landlock,
                found,
            } => found
                .get_or_init(|| probe(program, *landlock))
                .as_ref()
                .map(|found| found.words.as_str())
                .map_err(String::as_str),
            Inner::Missing(why) => Err(why),
            Inner::Unchecked => Ok("none, by choice"),
        }
    }

    /// Why the gate has to ask for every command; `None` when it need not.
    pub fn absent(&self) -> Option<&str> {
        self.in_force().err()
    }

    /// Why the gate has to ask for every command that writes, also where writing is free; `None` when it need not.
    pub fn absent_for_writes(&self) -> Option<&str> {
        match &*self.0 {
            Inner::Helper { found, .. } if self.in_force().is_ok() => {
                let found = found.get().and_then(|found| found.as_ref().ok());
                found.and_then(|found| found.bubblewrap.as_ref()).map(|_| READS_ONLY)
            }
            Inner::Helper { .. } | Inner::Missing(_) | Inner::Unchecked => self.absent(),
        }
    }

    /// The program and arguments that run `inner` confined and supervised; `None` when it is run as it is.
    pub(crate) fn wrap(&self, confinement: &Confinement, inner: &[OsString]) -> Option<Wrapped> {
        match &*self.0 {
            Inner::Helper {
                program,
                landlock,
                found,
            } if self.in_force().is_ok() => {
                let found = found.get().and_then(|found| found.as_ref().ok());
                let bubblewrap = found.and_then(|found| found.bubblewrap.as_deref());
                Some(wrapped(program, *landlock, bubblewrap, confinement, inner))
            }
            Inner::Helper { .. } | Inner::Missing(_) | Inner::Unchecked => None,
        }
    }

    /// The same for a program that may do everything and is fed through its standard input: it is only kept from leaving
    /// something behind when that closes. `None` where nothing can do that.
    pub(crate) fn attend(&self, inner: &[OsString]) -> Option<Wrapped> {
        match &*self.0 {
            Inner::Helper { program, .. } if cfg!(target_os = "linux") && self.in_force().is_ok() => {
                Some(attended(program, inner))
            }
            Inner::Helper { .. } | Inner::Missing(_) | Inner::Unchecked => None,
        }
    }
}

/// A command line that confines another.
#[derive(Debug)]
pub(crate) struct Wrapped {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Whether its standard input is the line by which it is told to end everything.
    pub supervised: bool,
}

#[cfg(target_os = "linux")]
fn wrapped(
    program: &Path,
    landlock: Option<u32>,
    bubblewrap: Option<&Path>,
    confinement: &Confinement,
    inner: &[OsString],
) -> Wrapped {
    let mut arguments = vec![OsString::from(MARK)];
    match (bubblewrap, confinement) {
        (Some(bubblewrap), Confinement::Read | Confinement::Write(_)) => {
            arguments.extend([OsString::from("bubblewrap"), bubblewrap.into()]);
            // No command that writes comes here without a yes; one that does all the same can only read.
            arguments.extend(helper::encode(&Confinement::Read, Some(0)));
        }
        (None, _) | (_, Confinement::Allowed) => {
            arguments.push("supervise".into());
            arguments.extend(helper::encode(confinement, landlock));
        }
    }
    arguments.push("--".into());
    arguments.extend_from_slice(inner);
    Wrapped {
        program: program.into(),
        arguments,
        supervised: true,
    }
}

fn attended(program: &Path, inner: &[OsString]) -> Wrapped {
    let words = [MARK, "attend", "0", "allowed", "--"].map(OsString::from);
    Wrapped {
        program: program.into(),
        arguments: words.into_iter().chain(inner.iter().cloned()).collect(),
        supervised: true,
    }
}

#[cfg(target_os = "macos")]
fn wrapped(
    _program: &Path,
    _landlock: Option<u32>,
    _bubblewrap: Option<&Path>,
    confinement: &Confinement,
    inner: &[OsString],
) -> Wrapped {
    let mut arguments = Vec::new();
    let program = match seatbelt::profile(confinement, &std::env::temp_dir()) {
        Some(profile) => {
            arguments.extend([OsString::from("-p"), profile.into()]);
            arguments.extend_from_slice(inner);
            seatbelt::PROGRAM.into()
        }
        None => {
            arguments.extend_from_slice(inner.get(1..).unwrap_or_default());
            inner.first().cloned().unwrap_or_default()
        }
    };
    Wrapped {
        program,
        arguments,
        supervised: false,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn wrapped(
    program: &Path,
    _landlock: Option<u32>,
    _bubblewrap: Option<&Path>,
    _confinement: &Confinement,
    _inner: &[OsString],
) -> Wrapped {
    Wrapped {
        program: program.into(),
        arguments: Vec::new(),
        supervised: false,
    }
}

/// Lets the helper confine itself and say what it then could still do: with Landlock, else inside bubblewrap.
#[cfg(target_os = "linux")]
fn probe(program: &Path, landlock: Option<u32>) -> Result<Found, String> {
    let without = match landlock {
        Some(0) => "this kernel is taken to have no Landlock".to_owned(),
        _ => match probe_as(&["probe".into()], program, landlock) {
            Ok(words) => {
                return Ok(Found {
                    words,
                    bubblewrap: None,
                });
            }
            Err(why) => why,
        },
    };
    let Some(bubblewrap) = bubblewrap::program() else {
        return Err(format!(
            "{without}; bubblewrap, which can stand in for it, is not installed"
        ));
    };
    match probe_as(&["probe-bubblewrap".into(), bubblewrap.into()], program, Some(0)) {
        Ok(words) => Ok(Found {
            words,
            bubblewrap: Some(bubblewrap.to_owned()),
        }),
        Err(why) => Err(format!("{without}; bubblewrap: {why}")),
    }
}

#[cfg(target_os = "linux")]
fn probe_as(part: &[OsString], program: &Path, landlock: Option<u32>) -> Result<String, String> {
    let mut command = std::process::Command::new(program);
    command
        .arg(MARK)
        .args(part)
        .args(helper::encode(&Confinement::Read, landlock));
    let output = command
        .env_clear()
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| format!("the sandbox's helper cannot be started: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && said.starts_with(helper::IN_FORCE) {
        return Ok(said);
    }
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(if error.is_empty() {
        "the sandbox's helper does not answer".to_owned()
    } else {
        error
    })
}

#[cfg(target_os = "macos")]
fn probe(_program: &Path, _landlock: Option<u32>) -> Result<Found, String> {
    let run = std::process::Command::new(seatbelt::PROGRAM)
        .args(["-p", "(version 1)(allow default)", "/usr/bin/true"])
        .status();
    match run {
        Ok(status) if status.success() => Ok(Found {
            words: "seatbelt (never tried on a Mac by its authors)".to_owned(),
            bubblewrap: None,
        }),
        Ok(status) => Err(format!("sandbox-exec ended with {status}")),
        Err(error) => Err(format!("sandbox-exec cannot be started: {error}")),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn probe(_program: &Path, _landlock: Option<u32>) -> Result<Found, String> {
    Err("this system has no sandbox that artoo knows".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_why_and_what_is_unchecked_does_not_ask() {
        assert_eq!(Sandbox::missing("no kernel").absent(), Some("no kernel"));
        assert_eq!(Sandbox::unchecked().absent(), None);
        assert!(Sandbox::missing("x").wrap(&Confinement::Read, &[]).is_none());
        let broken = Sandbox::with_helper(Path::new("/nonexistent/helper"));
        assert!(
            broken.absent().is_some(),
            "a helper that does not start confines nothing"
        );
        let deaf = Sandbox::with_helper(Path::new("/bin/true"));
        assert!(deaf.absent().is_some(), "a program that is no helper confines nothing");
    }
}

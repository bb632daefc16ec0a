//! How a process gives up its rights (design §9).
//!
//! Owns the order and the content of what is given up: limits, capabilities, new privileges, places to write, the
//! network, system calls. After it the process can only lose more. Must not start anything.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::process::{Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

use super::helper::{IN_FORCE, Request};
use super::supervise::{MOST_PROCESSES, threads_of_the_machine};
use super::{Allows, Confinement, syscalls};

/// Memory of its own that one process of a confined command may have, in bytes.
const MOST_MEMORY: u64 = 4 << 30;
/// The longest file that it may write, in bytes.
const LONGEST_FILE: u64 = 1 << 30;
/// What a superuser keeps: the right to read everything, and the kernel's messages.
const KEPT: CapabilitySet = CapabilitySet::DAC_READ_SEARCH.union(CapabilitySet::SYSLOG);
/// More capabilities than any kernel has so far.
const CAPABILITIES: u32 = 63;

/// Gives up everything that the confinement does not leave, and says what is in force.
pub fn apply(request: &Request, scratch: &Path) -> Result<String, String> {
    let supervisor = getppid();
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|e| format!("its end cannot be tied to artoo's: {e}"))?;
    if getppid() != supervisor {
        return Err("its supervisor is gone".to_owned());
    }
    limits();
    capabilities();
    set_no_new_privs(true).map_err(|error| format!("new privileges cannot be given up: {error}"))?;
    if request.landlock == 0 {
        // bubblewrap is around it: nothing else is mounted writable, and no other process is there.
        syscalls::install(&request.confinement, true, true)?;
        return Ok(format!(
            "{IN_FORCE}bubblewrap and seccomp, in place of Landlock: commands that only read write nowhere but to their scratch folder, and reach no network; all others are asked about"
        ));
    }
    let version = landlock(&request.confinement, request.landlock, scratch)?;
    let signals_held = version >= ABI::V6;
    syscalls::install(&request.confinement, version >= ABI::V3, signals_held)?;
    Ok(format!(
        "{IN_FORCE}Landlock version {} and seccomp: unconfirmed commands write nowhere but to the workspace and their scratch folder, and reach no network{}",
        version as i32,
        if signals_held {
            ""
        } else {
            " (an old kernel: no command may send signals)"
        }
    ))
}

fn limits() {
    let most = |resource, limit: u64| {
        // A limit that is lower already stays, and one that cannot be set is not needed for safety.
        let _ = setrlimit(
            resource,
            Rlimit {
                current: Some(limit),
                maximum: Some(limit),
            },
        );
    };
    most(Resource::Core, 0);
    most(Resource::Data, MOST_MEMORY);
    most(Resource::Fsize, LONGEST_FILE);
    // The limit counts all of the user's processes, hence those that are there come on top. It does not bind a superuser.
    let processes = threads_of_the_machine() + MOST_PROCESSES;
    most(Resource::Nproc, u64::try_from(processes).unwrap_or(u64::MAX));
}

fn capabilities() {
    // None of these calls succeeds without privileges, and then there is nothing to give up.
    let _ = clear_ambient_capability_set();
    for bit in 0..CAPABILITIES {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if !KEPT.contains(capability) {
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
    if let Ok(now) = rustix::thread::capabilities(None) {
        let _ = set_capabilities(
            None,
            CapabilitySets {
                effective: now.effective & KEPT,
                permitted: now.permitted & KEPT,
                inheritable: CapabilitySet::empty(),
            },
        );
    }
}

fn landlock(confinement: &Confinement, most: u32, scratch: &Path) -> Result<ABI, String> {
    let wanted = [ABI::V7, ABI::V6, ABI::V5, ABI::V4, ABI::V3, ABI::V2, ABI::V1];
    let mut last = "this kernel has no Landlock".to_owned();
    for version in wanted {
        if u32::try_from(version as i32).is_ok_and(|version| version <= most) {
            match ruleset(version, confinement, scratch) {
                Ok(rules) => return enforce(rules).map(|()| version),
                // The kernel does not know this version, or has none at all: the lowest one's reason is told.
                Err(error) => last = format!("Landlock refuses: {error}"),
            }
        }
    }
    Err(last)
}

fn enforce(rules: RulesetCreated) -> Result<(), String> {
    let status = rules
        .restrict_self()
        .map_err(|error| format!("Landlock refuses: {error}"))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            Err("Landlock is not fully enforced".to_owned())
        }
    }
}

fn ruleset(version: ABI, confinement: &Confinement, scratch: &Path) -> Result<RulesetCreated, RulesetError> {
    let writing = AccessFs::from_write(version);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(writing)?;
    if version >= ABI::V4 {
        rules = rules.handle_access(AccessNet::from_all(version))?;
    }
    if version >= ABI::V6 {
        rules = rules.scope(Scope::from_all(version))?;
    }
    let mut rules = rules.create()?;
    let device = (AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev) & writing;
    for path in ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"] {
        rules = place(rules, Path::new(path), device)?;
    }
    rules = place(rules, scratch, writing)?;
    if let Confinement::Write(places) = confinement {
        for writable in places {
            let rights = match writable.allows {
                Allows::Making => AccessFs::MakeReg | AccessFs::MakeDir | AccessFs::WriteFile,
                Allows::Folders => AccessFs::MakeDir.into(),
                Allows::Changing => AccessFs::MakeReg | AccessFs::MakeDir | AccessFs::WriteFile | AccessFs::Truncate,
            };
            rules = place(rules, &writable.path, rights & writing)?;
        }
    }
    Ok(rules)
}

/// Opens a place for writing. One that is not there, or is reached through a symbolic link, stays closed: what was a
/// folder when the command was judged may be a link now.
fn place(rules: RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    let Some(handle) = open(path) else {
        return Ok(rules);
    };
    let is_folder = rustix::fs::fstat(&handle)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory);
    let of_a_file = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let rights = if is_folder { rights } else { rights & of_a_file };
    rules.add_rule(PathBeneath::new(handle, rights))
}

fn open(path: &Path) -> Option<OwnedFd> {
    openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )
    .ok()
}

/// Tries what must be impossible now.
pub fn holds() -> Result<(), String> {
    let name = format!("artoo-probe-{}", std::process::id());
    for folder in [std::env::temp_dir(), "/dev/shm".into(), "/".into()] {
        let path = folder.join(&name);
        if std::fs::write(&path, "").is_ok() {
            let _ = std::fs::remove_file(&path);
            return Err("the sandbox does not hold: a file could be made".to_owned());
        }
    }
    let reached = TcpListener::bind("127.0.0.1:0").is_ok()
        || UdpSocket::bind("127.0.0.1:0").is_ok()
        || UnixDatagram::unbound().is_ok();
    if reached {
        return Err("the sandbox does not hold: a socket could be opened".to_owned());
    }
    Ok(())
}

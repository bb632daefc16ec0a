//! bubblewrap in Landlock's place, on kernels or in containers without it (design §9).
//!
//! Owns its command line: everything read-only, devices and processes of its own, one folder to write to. Sockets, modes
//! and times are held by the same filters of system calls as beside Landlock. A mount is writable or not, so that a command
//! which may make files but delete none cannot be held; only reads are run in it. Must not know the gate.

use std::ffi::OsString;
use std::path::Path;

/// Where it usually stands: a program found through `PATH` could be anybody's.
const USUAL: &[&str] = &[
    "/usr/bin/bwrap",
    "/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
];

/// bubblewrap, where this machine has it.
pub fn program() -> Option<&'static Path> {
    USUAL.iter().map(Path::new).find(|path| path.exists())
}

/// Its arguments in front of the program that runs inside.
pub fn arguments(scratch: Option<&Path>) -> Vec<OsString> {
    let words = [
        "--die-with-parent",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--remount-ro",
        "/proc",
        "--dev",
        "/dev",
        "--remount-ro",
        "/dev",
    ];
    let mut arguments: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    if let Some(scratch) = scratch {
        arguments.extend([OsString::from("--bind"), scratch.into(), scratch.into()]);
    }
    arguments.push("--".into());
    arguments
}

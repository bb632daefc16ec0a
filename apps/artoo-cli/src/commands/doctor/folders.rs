//! The folders that artoo writes to: whether it may, whether there is room, whose they are, what kind of disk they are on (design §20).
//!
//! Owns looks at folders from outside. What lies in them is in [`records`](super::records).

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};

use super::Finding;
use crate::data_folder::held_since;

/// What artoo writes within its data folder.
const OWN: [&str; 9] = [
    "artoo.lock",
    "audit.jsonl",
    "audit.head",
    "history",
    "memory.leveldb",
    "outputs",
    "sessions",
    "tasks",
    "undo",
];
/// Bytes that should be free: a long task's journal, a compaction of memory, and what is kept to undo.
const ROOM: u64 = 200 << 20;
/// Without so many bytes nothing can be written down, so nothing can be done.
const ROOM_LEAST: u64 = 10 << 20;
/// File names that should be free.
const FILES_LEAST: u64 = 1_000;
/// File systems on which locks and syncs are a promise of another machine.
const ON_THE_NETWORK: [&str; 16] = [
    "9p",
    "afs",
    "ceph",
    "cifs",
    "davfs",
    "fuse.ceph",
    "fuse.davfs2",
    "fuse.glusterfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "glusterfs",
    "lustre",
    "nfs",
    "nfs4",
    "smb3",
];

/// Everything about the data folder.
pub(super) fn data(folder: &Path) -> Vec<Finding> {
    let another = "make it writable, or use another one: --data-dir or ARTOO_DATA_DIR";
    let mut findings = vec![writable("data folder", folder, another)];
    findings.extend(closed_files(folder));
    findings.extend(open_to_others(folder));
    findings.extend(held_since(folder).map(|since| {
        Finding::note(
            "data folder",
            format!("another artoo has been at work in it since {since}"),
            "wait until it has finished, or use another folder with --data-dir; commands that only read work meanwhile",
        )
    }));
    let existing = nearest(folder);
    findings.extend(room(folder, existing));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let real = existing.canonicalize().unwrap_or_else(|_| existing.to_owned());
    findings.extend(network_kind(&mounts, &real).map(|kind| {
        Finding::note(
            "data folder",
            format!("it is on a network file system ({kind}), whose locks and syncs may promise more than they keep"),
            "use a folder on a disk of this machine: --data-dir or ARTOO_DATA_DIR",
        )
    }));
    findings
}

/// Where new files go.
pub(super) fn workspace(folder: &Path) -> Finding {
    writable(
        "workspace",
        folder,
        "make it writable, or use another one: --workspace or ARTOO_WORKSPACE",
    )
}

/// Where commands have their scratch folder, and where memory is copied to be looked at.
pub(super) fn temporary() -> Finding {
    writable(
        "temporary files",
        &std::env::temp_dir(),
        "make it writable, or name another one in TMPDIR",
    )
}

/// The folder, or the nearest one above it that exists.
fn nearest(folder: &Path) -> &Path {
    folder.ancestors().find(|path| path.exists()).unwrap_or(folder)
}

/// Whether files can be made in a folder, or in the nearest one above that exists. Nothing is left behind.
fn writable(what: &'static str, folder: &Path, remedy: &str) -> Finding {
    let existing = nearest(folder);
    if !existing.is_dir() {
        return Finding::bad(
            what,
            format!("{} is no folder", existing.display()),
            format!("move it away; or {remedy}"),
        );
    }
    let probe = existing.join(format!(".artoo-probe-{}", std::process::id()));
    match std::fs::OpenOptions::new().write(true).create_new(true).open(&probe) {
        Ok(_) => {
            let _ = std::fs::remove_file(&probe);
            let will_be = if existing == folder { "" } else { " (will be made)" };
            Finding::fine(what, format!("{}{will_be}", folder.display()))
        }
        Err(error) => Finding::bad(
            what,
            format!("{} cannot be written: {error}", existing.display()),
            remedy,
        ),
    }
}

/// What artoo made there and may not write any more: the usual trace of one run with `sudo`.
fn closed_files(folder: &Path) -> Option<Finding> {
    let closed: Vec<PathBuf> = OWN
        .iter()
        .map(|name| folder.join(name))
        .filter(|path| path.exists() && access(path, Access::WRITE_OK).is_err())
        .collect();
    let first = closed.first()?;
    Some(Finding::bad(
        "data folder",
        format!(
            "{} of artoo's own files cannot be written, {} among them",
            closed.len(),
            first.display()
        ),
        format!(
            "take them back, if artoo was once run with sudo: sudo chown -R \"$USER\" '{}'",
            folder.display()
        ),
    ))
}

/// Journals, memory and answers are the user's own business.
fn open_to_others(folder: &Path) -> Option<Finding> {
    let mode = std::fs::metadata(folder).ok()?.permissions().mode() & 0o777;
    let may = match mode & 0o077 {
        0 => return None,
        bits if bits & 0o022 != 0 => "change what is in it",
        _ => "look into it",
    };
    Some(Finding::note(
        "data folder",
        format!("others on this machine may {may} (mode {mode:03o})"),
        format!("chmod 700 '{}'", folder.display()),
    ))
}

/// How much room there is where a folder is, or will be.
fn room(folder: &Path, existing: &Path) -> Option<Finding> {
    let disk = statvfs(existing).ok()?;
    // File systems without a fixed number of files say 0 of 0.
    let files = (disk.f_files > 0).then_some(disk.f_favail);
    Some(enough(folder, disk.f_bavail.saturating_mul(disk.f_frsize), files))
}

fn enough(folder: &Path, bytes: u64, files: Option<u64>) -> Finding {
    let free = format!("{} MiB free for {}", bytes >> 20, folder.display());
    let remedy = "make room there, or use a folder on another disk with --data-dir";
    if bytes < ROOM_LEAST {
        return Finding::bad("disk space", free, remedy);
    }
    if let Some(files) = files.filter(|&files| files < FILES_LEAST) {
        let detail = format!("{free}, but only for {files} more files");
        return Finding::note("disk space", detail, remedy);
    }
    if bytes < ROOM {
        return Finding::note("disk space", free, remedy);
    }
    Finding::fine("disk space", free)
}

/// The network file system that a path is on, by the kernel's table of mounts; `None` for a disk of this machine and where
/// nothing is known.
fn network_kind<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mut found: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        // `36 35 98:0 /root /mount/point options [tags…] - type source options`
        let Some((before, after)) = line.split_once(" - ") else {
            continue;
        };
        let (Some(point), Some(kind)) = (before.split(' ').nth(4), after.split(' ').next()) else {
            continue;
        };
        let point = point.replace("\\040", " ");
        let depth = Path::new(&point).components().count();
        // Of two mounts on one point the later one is seen.
        if path.starts_with(&point) && found.is_none_or(|(deepest, _)| depth >= deepest) {
            found = Some((depth, kind));
        }
    }
    found.map(|(_, kind)| kind).filter(|kind| ON_THE_NETWORK.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn the_deepest_and_latest_mount_tells_the_kind_of_disk() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                      40 22 0:41 / /home rw - nfs4 server:/home rw\n\
                      41 40 8:2 / /home/me/local rw - ext4 /dev/sdb1 rw\n\
                      42 22 0:50 / /mnt/my\\040share rw shared:7 - cifs //server/x rw\n\
                      43 22 8:3 / /over rw - nfs server:/x rw\n\
                      44 22 8:4 / /over rw - xfs /dev/sdc rw\n\
                      nonsense\n";
        for (path, kind) in [
            ("/home/me/.artoo", Some("nfs4")),
            ("/home/me/local/.artoo", None),
            ("/homes/me", None),
            ("/mnt/my share/x", Some("cifs")),
            ("/over/x", None),
            ("/", None),
        ] {
            assert_eq!(network_kind(mounts, Path::new(path)), kind, "{path}");
        }
        assert_eq!(network_kind("", Path::new("/x")), None);
    }

    #[test]
    fn too_little_room_is_a_note_and_none_is_bad() {
        let of = |bytes, files| enough(Path::new("/x"), bytes, files).state;
        assert_eq!(of(1 << 40, None), State::Fine);
        assert_eq!(of(1 << 40, Some(1 << 20)), State::Fine);
        assert_eq!(of(1 << 40, Some(5)), State::Note);
        assert_eq!(of(50 << 20, None), State::Note);
        assert_eq!(of(1 << 20, None), State::Bad);
    }
}

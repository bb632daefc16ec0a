//! Files that others may have made, opened so that only a regular file is read and nothing is waited for (design §20).
//!
//! Owns the opening and the bound. What is looked at is the opened file itself, so that it cannot be exchanged between look and use.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Opens the regular file at a path, through links.
///
/// # Errors
/// What the system says; [`ErrorKind::InvalidInput`] when it is no regular file.
pub fn open(path: &Path) -> Result<File> {
    open_resolved(&std::fs::canonicalize(path)?)
}

/// The text of the regular file at a path, through links.
///
/// # Errors
/// Like [`open`]; [`ErrorKind::FileTooLarge`] when it has more than `longest` bytes; [`ErrorKind::InvalidData`] when it is not UTF-8.
pub fn text(path: &Path, longest: u64) -> Result<String> {
    text_of(open(path)?, longest)
}

/// The same where the path is resolved already: nothing at its end that became a link meanwhile is followed.
///
/// # Errors
/// Like [`text`].
pub fn resolved_text(path: &Path, longest: u64) -> Result<String> {
    text_of(open_resolved(path)?, longest)
}

fn open_resolved(path: &Path) -> Result<File> {
    let no_file = || Error::new(ErrorKind::InvalidInput, "it is no file");
    // Without NONBLOCK a pipe waits for somebody who writes to it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        // A socket, and a device that is not there.
        Errno::NXIO => no_file(),
        Errno::LOOP => Error::new(ErrorKind::InvalidInput, "it became a link while it was opened"),
        other => other.into(),
    });
    let file = File::from(opened?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(no_file())
    }
}

fn text_of(file: File, longest: u64) -> Result<String> {
    let mut bytes = Vec::new();
    file.take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        let why = format!("it has more than {longest} bytes");
        return Err(Error::new(ErrorKind::FileTooLarge, why));
    }
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_are_read_and_no_more_of_them_than_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "12345").unwrap();
        symlink("file", at("link")).unwrap();
        assert_eq!(text(&at("link"), 5).unwrap(), "12345");
        let kind = |name: &str, longest| text(&at(name), longest).unwrap_err().kind();
        assert_eq!(kind("file", 4), ErrorKind::FileTooLarge);
        assert_eq!(kind("gone", 4), ErrorKind::NotFound);
        std::fs::write(at("bytes"), [0xff]).unwrap();
        assert_eq!(kind("bytes", 4), ErrorKind::InvalidData);
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        symlink("/dev/zero", at("device")).unwrap();
        for name in ["pipe", "socket", "device", "."] {
            assert_eq!(kind(name, 4), ErrorKind::InvalidInput, "{name}");
        }
        // What is a link only now is not followed.
        assert_eq!(resolved_text(&at("file"), 5).unwrap(), "12345");
        assert_eq!(
            resolved_text(&at("link"), 5).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }
}

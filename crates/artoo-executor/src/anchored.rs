//! Changing files by way of an open folder, so that no link put in between leads elsewhere (design §8).
//!
//! Owns the only writes that artoo's own file tools and undo make: whole or not at all, and never through a link that was not there when
//! the path was looked at. Must not decide whether to write.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, AtFlags, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::process::Pid;
use sha2::{Digest, Sha256};

#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// How the names of files begin and end that nobody is to see yet; the number of the process stands between.
const TEMPORARY: &str = ".artoo-";
const TEMPORARY_END: &str = ".tmp";

/// Whether a file of this name was left by a process that has died.
pub(crate) fn is_left_behind(name: &OsStr) -> bool {
    let numbers = name
        .to_str()
        .and_then(|name| name.strip_prefix(TEMPORARY)?.strip_suffix(TEMPORARY_END));
    let process = numbers.and_then(|numbers| Pid::from_raw(numbers.split_once('-')?.0.parse().ok()?));
    process.is_some_and(|process| rustix::process::test_kill_process(process) == Err(Errno::SRCH))
}

/// Whether what stands under a name already may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It may.
    Replace,
    /// Something that turned up since is left alone.
    Refuse,
}

/// A folder that stays the same one whatever happens to its path.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

/// A file that nobody sees yet; it is gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Staged<'a> {
    folder: &'a Folder,
    name: OsString,
    placed: bool,
}

impl Folder {
    /// Opens an absolute path none of whose parts is a link.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::walk(path, false)
    }

    /// The folder that holds a path, and the path's name in it; folders that are missing on the way are made when wanted.
    pub fn of(path: &Path, make: bool) -> io::Result<(Self, &OsStr)> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no folder"));
        };
        Ok((Self::walk(parent, make)?, name))
    }

    fn walk(path: &Path, make: bool) -> io::Result<Self> {
        let mut at = rustix::fs::open("/", FOLDER, Mode::empty())?;
        for part in path.components() {
            let name = match part {
                Component::RootDir | Component::CurDir => continue,
                Component::Normal(name) => name,
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        "the path is not a plain one",
                    ));
                }
            };
            at = match rustix::fs::openat(&at, name, FOLDER, Mode::empty()) {
                Err(Errno::NOENT) if make => {
                    match rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    rustix::fs::openat(&at, name, FOLDER, Mode::empty())?
                }
                opened => opened?,
            };
        }
        Ok(Self(at))
    }

    /// The regular file of this name, opened for reading; `None` where nothing is.
    pub fn file(&self, name: &OsStr) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(Some(file))
    }

    /// Whether the user may write to the file of this name. Who may write to the folder could still put another in its place.
    pub fn may_write(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::accessat(&self.0, name, Access::WRITE_OK, AtFlags::EACCESS)?)
    }

    /// A name for a file that nobody is to see yet. A process that died may have left one with this process's number.
    pub fn unused_name(&self) -> io::Result<OsString> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = format!(
                "{TEMPORARY}{}-{}{TEMPORARY_END}",
                std::process::id(),
                NEXT.fetch_add(1, Ordering::Relaxed)
            );
            match rustix::fs::statat(&self.0, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => return Ok(name.into()),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes a file that nobody sees yet, in this folder. `fill` writes its content and sets its mode and times.
    pub fn stage(&self, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Staged<'_>> {
        self.stage_as(self.unused_name()?, fill)
    }

    /// The same under this name, which was noted somewhere.
    pub fn stage_as(&self, name: OsString, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Staged<'_>> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.0, &*name, flags, Mode::from_raw_mode(0o666))?;
        let staged = Staged {
            folder: self,
            name,
            placed: false,
        };
        let mut new = File::from(opened);
        fill(&mut new)?;
        new.sync_all()?;
        Ok(staged)
    }

    /// Moves an entry of this folder.
    pub fn move_to(&self, name: &OsStr, target: &Self, target_name: &OsStr, existing: Existing) -> io::Result<()> {
        let flags = match existing {
            Existing::Replace => RenameFlags::empty(),
            Existing::Refuse => RenameFlags::NOREPLACE,
        };
        match rustix::fs::renameat_with(&self.0, name, &target.0, target_name, flags) {
            // A file system that cannot refuse: the name is looked at instead.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if existing == Existing::Refuse => {
                match rustix::fs::statat(&target.0, target_name, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => rustix::fs::renameat(&self.0, name, &target.0, target_name)?,
                    Ok(_) => return Err(Errno::EXIST.into()),
                    Err(error) => return Err(error.into()),
                }
            }
            moved => moved?,
        }
        target.sync();
        Ok(())
    }

    /// Makes what happened in this folder last. Not every file system can; nothing is lost but certainty.
    pub fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(folder) = rustix::fs::openat(&self.0, ".", flags, Mode::empty()) {
            let _ = rustix::fs::fsync(folder);
        }
    }

    /// Removes a file or a link.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }
}

/// Files that were made empty for somebody else to fill. Those that are as they were made go when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct MadeFiles(Vec<Made>);

/// One of them, as it was made.
#[derive(Debug)]
struct Made {
    folder: Folder,
    name: OsString,
    stat: Stat,
    opened: bool,
}

impl MadeFiles {
    /// Makes one where nothing is, in a folder that is there, without following a link.
    ///
    /// It is given a time that no clock shows any more: whoever cuts it, writes to it or touches it changes that, also where
    /// it stays empty. Whoever only opens it to append does not; `opened` says that somebody will.
    pub fn make(&mut self, path: &Path, opened: bool) -> io::Result<()> {
        const LONG_AGO: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
        let (folder, name) = Folder::of(path, false)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder.0, name, flags, Mode::from_raw_mode(0o666))?;
        let stamps = Timestamps {
            last_access: LONG_AGO,
            last_modification: LONG_AGO,
        };
        let marked = rustix::fs::futimens(&file, &stamps).and_then(|()| rustix::fs::fstat(&file));
        match marked {
            Ok(stat) => self.0.push(Made {
                folder,
                name: name.to_owned(),
                stat,
                opened,
            }),
            Err(error) => {
                let _ = folder.remove(name);
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Lets those stay that were to be opened: somebody may hold them open still, and write later.
    pub fn keep_opened(&mut self) {
        self.0.retain(|made| !made.opened);
    }
}

impl Drop for MadeFiles {
    fn drop(&mut self) {
        for Made {
            folder,
            name,
            stat: made,
            ..
        } in &self.0
        {
            let now = rustix::fs::statat(&folder.0, name, AtFlags::SYMLINK_NOFOLLOW);
            let untouched = |now: Stat| {
                (now.st_dev, now.st_ino) == (made.st_dev, made.st_ino)
                    && now.st_size == 0
                    && (now.st_mtime, now.st_mtime_nsec) == (made.st_mtime, made.st_mtime_nsec)
            };
            if now.is_ok_and(untouched) {
                // Where it cannot be removed an empty file stays, which says nothing untrue.
                let _ = folder.remove(name);
            }
        }
    }
}

impl Staged<'_> {
    /// Lets it be seen under this name, in one step.
    pub fn place(mut self, name: &OsStr, existing: Existing) -> io::Result<()> {
        self.folder.move_to(&self.name, self.folder, name, existing)?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _ = self.folder.remove(&self.name);
        }
    }
}

/// Gives a file the mode, the owner and, where wanted, the times of another.
pub(crate) fn dress(file: &File, like: &std::fs::Metadata, times: bool) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        // Only a superuser may give files away; then the content matters more than the owner.
        let owner = Some(rustix::fs::Uid::from_raw(like.uid()));
        let _ = rustix::fs::fchown(file, owner, Some(rustix::fs::Gid::from_raw(like.gid())));
    }
    file.set_permissions(std::fs::Permissions::from_mode(like.mode() & 0o7777))?;
    if times {
        let at = |seconds, nanos| Timespec {
            tv_sec: seconds,
            tv_nsec: nanos,
        };
        let stamps = Timestamps {
            last_access: at(like.atime(), like.atime_nsec()),
            last_modification: at(like.mtime(), like.mtime_nsec()),
        };
        rustix::fs::futimens(file, &stamps)?;
    }
    Ok(())
}

/// SHA-256 of everything in a reader, in hexadecimal.
pub(crate) fn digest_of(mut reader: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        match reader.read(&mut chunk)? {
            0 => return Ok(hex(hash)),
            read => hash.update(chunk.get(..read).unwrap_or_default()),
        }
    }
}

/// SHA-256 of these bytes, in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_that_became_a_link_is_not_entered() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("real/deep")).unwrap();
        symlink(base.join("real"), base.join("link")).unwrap();
        assert!(Folder::open(&base.join("real/deep")).is_ok());
        assert!(Folder::open(&base.join("link/deep")).is_err());
        assert!(Folder::of(&base.join("link/new/x"), true).is_err());
        assert!(!base.join("real/new").exists());
        assert!(Folder::open(Path::new("/tmp/../etc")).is_err());
        assert!(Folder::open(&base.join("real/none")).is_err());
        assert!(Folder::of(&base.join("real/none/a/x"), true).is_ok());
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let (folder, name) = Folder::of(&base.join("a"), false)
            .map(|(f, n)| (f, n.to_owned()))
            .unwrap();
        let broken = folder.stage(|file| {
            file.write_all(b"half")?;
            Err(io::Error::other("the power went"))
        });
        assert!(broken.is_err());
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0, "nothing is left behind");
        drop(folder.stage(|file| file.write_all(b"never placed")).unwrap());
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
        folder
            .stage(|file| file.write_all(b"one"))
            .unwrap()
            .place(&name, Existing::Refuse)
            .unwrap();
        let again = folder
            .stage(|file| file.write_all(b"two"))
            .unwrap()
            .place(&name, Existing::Refuse);
        assert!(again.is_err());
        assert_eq!(fs::read(base.join("a")).unwrap(), b"one");
        folder
            .stage(|file| file.write_all(b"two"))
            .unwrap()
            .place(&name, Existing::Replace)
            .unwrap();
        assert_eq!(fs::read(base.join("a")).unwrap(), b"two");
        assert_eq!(fs::read_dir(&base).unwrap().count(), 1);
    }

    /// What may happen to a file.
    type Use = fn(&Path);

    #[test]
    fn a_file_that_was_made_for_somebody_goes_when_it_is_as_it_was_made() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let path = base.join("new");
        let uses: [(Use, bool); 7] = [
            (|_| {}, false),
            (|path| drop(fs::read(path)), false),
            (|path| drop(File::create(path)), true),
            (|path| fs::write(path, "x").unwrap(), true),
            (
                |path| {
                    fs::remove_file(path).unwrap();
                    File::create(path).unwrap();
                },
                true,
            ),
            (
                |path| {
                    fs::remove_file(path).unwrap();
                    symlink("elsewhere", path).unwrap();
                },
                true,
            ),
            (|path| fs::remove_file(path).unwrap(), false),
        ];
        for (at, (used, stays)) in uses.into_iter().enumerate() {
            let mut made = MadeFiles::default();
            made.make(&path, false).unwrap();
            assert!(path.symlink_metadata().is_ok());
            assert!(made.make(&path, false).is_err(), "what is there is nobody's to make");
            used(&path);
            drop(made);
            assert_eq!(path.symlink_metadata().is_ok(), stays, "{at}");
            let _ = fs::remove_file(&path);
        }
        for opened in [true, false] {
            let mut made = MadeFiles::default();
            made.make(&path, opened).unwrap();
            made.keep_opened();
            drop(made);
            assert_eq!(path.exists(), opened);
            let _ = fs::remove_file(&path);
        }
        // The folder is the one that it was, whatever its path leads to by then.
        fs::create_dir(base.join("folder")).unwrap();
        let mut made = MadeFiles::default();
        made.make(&base.join("folder/new"), false).unwrap();
        fs::rename(base.join("folder"), base.join("aside")).unwrap();
        fs::create_dir(base.join("folder")).unwrap();
        fs::write(base.join("folder/new"), "").unwrap();
        drop(made);
        assert!(base.join("folder/new").exists() && !base.join("aside/new").exists());
    }
}

//! Ctrl+C for a task of another process: only where it is proven whom it reaches (design §21).
//!
//! Owns the proof. The number in a note may be that of another program by now, so it is not taken at its word: the process is pinned first,
//! then it must be the one that was meant, and be seen to hold the lock of the data folder, then it is signalled.

#[cfg(target_os = "linux")]
pub use linux::interrupt;

/// Sends it to the one that was meant, if that still holds the data folder.
///
/// # Errors
/// Always: this system offers no proof.
#[cfg(not(target_os = "linux"))]
pub fn interrupt(_data: &std::path::Path, _meant: crate::data_folder::Holder) -> Result<i32, String> {
    Err(
        "on this system another process cannot be told for certain: press Ctrl+C on the terminal where it runs"
            .to_owned(),
    )
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::Path;

    use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

    use crate::data_folder::{Holder, is_shown_to_hold, lock_path, noted};

    /// Sends it to the one that was meant, if that still holds the data folder; its number.
    ///
    /// # Errors
    /// In a sentence, why it was not sent.
    pub fn interrupt(data: &Path, meant: Holder) -> Result<i32, String> {
        let pid = meant.pid;
        let number = pid.as_raw_nonzero();
        let instead = format!("press Ctrl+C on the terminal of process {number}");
        // From here on the number means this process, or none.
        let pinned = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| format!("process {number}: {e}; {instead}"))?;
        if noted(data) != Some(meant) {
            return Err(format!("process {number} does not work on it any more"));
        }
        if pid == getpid() {
            return Err("it is no task that can be aborted here".to_owned());
        }
        if !is_shown_to_hold(pid, &lock_path(data)) {
            return Err(format!("that process {number} works on it cannot be proven; {instead}"));
        }
        if is_serving(pid) {
            return Err(format!(
                "process {number} serves others, whose tasks would end as well: abort it from there"
            ));
        }
        pidfd_send_signal(&pinned, Signal::INT).map_err(|e| format!("process {number}: {e}; {instead}"))?;
        Ok(number.get())
    }

    /// Whether it was started to run the tasks of others. A task that says the word is left to its own terminal, too.
    fn is_serving(pid: Pid) -> bool {
        let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        line.split(|&byte| byte == 0).any(|word| word == b"serve")
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::data_folder::DataFolder;
        use artoo_protocol::Timestamp;

        #[test]
        fn only_the_one_that_was_meant_is_reached_and_only_while_it_holds_the_folder() {
            let folder = tempfile::tempdir().unwrap();
            let now = Timestamp::from_millis(0);
            let refused = |pid, since| interrupt(folder.path(), Holder { pid, since }).unwrap_err();
            let gone = "does not work on it any more";
            assert!(refused(getpid(), now).contains(gone), "nobody does");
            let held = DataFolder::open(folder.path(), now).unwrap();
            assert!(refused(getpid(), now).contains("aborted here"), "never itself");
            let parent = rustix::process::getppid().unwrap();
            assert!(refused(parent, now).contains(gone), "another one holds it by now");
            let earlier = Timestamp::from_millis(-1);
            assert!(refused(getpid(), earlier).contains(gone), "it was another one's number");
            drop(held);
            // Whose number stands there lives, and holds nothing.
            let note = format!("artoo, process {}, since {now}\n", parent.as_raw_nonzero());
            fs::write(lock_path(folder.path()), note).unwrap();
            assert!(refused(parent, now).contains("cannot be proven"));
        }
    }
}

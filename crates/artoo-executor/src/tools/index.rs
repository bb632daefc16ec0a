//! The system's own index of file names, where there is one (design §8).
//!
//! Owns the question to `plocate`. What it answers may be out of date: the caller looks at every path again. Must not write.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

/// How long the index may take; a walk is started instead of waiting longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
const MAX_ANSWER: u64 = 64 * 1024 * 1024;

/// The program that answers from the index, if this machine has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    program: Option<PathBuf>,
}

impl Index {
    /// Looks through `PATH`.
    pub fn of_environment(environment: &[(OsString, OsString)]) -> Self {
        let path = environment
            .iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.clone());
        let mut folders = path.iter().flat_map(std::env::split_paths);
        Self {
            program: folders.find_map(|folder| Some(folder.join("plocate")).filter(|program| program.is_file())),
        }
    }

    /// Paths whose last part matches the pattern, letter case aside; `None` where there is no index or it does not answer.
    pub async fn ask(&self, pattern: &str) -> Option<Vec<PathBuf>> {
        let mut child = Command::new(self.program.as_ref()?)
            .args(["--ignore-case", "--basename", "--null", "--"])
            .arg(pattern)
            .env_clear()
            // Letter case beyond ASCII is known in a locale only.
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        let mut answer = Vec::new();
        let stdout = child.stdout.take()?;
        let reading = async {
            stdout.take(MAX_ANSWER).read_to_end(&mut answer).await.ok()?;
            child.wait().await.ok()
        };
        let status = timeout(PATIENCE, reading).await.ok()??;
        if !status.success() || answer.len() as u64 >= MAX_ANSWER {
            return None;
        }
        let paths = answer.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Some(
            paths
                .map(|path| Path::new(OsStr::from_bytes(path)).to_owned())
                .collect(),
        )
    }
}

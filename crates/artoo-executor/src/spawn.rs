//! Running one shell command so that nothing of it outlives it (design §8).
//!
//! Owns the child's session, environment, time limit and output. What the command may do is the sandbox's matter; where
//! that has a supervisor, nothing outlives it, and else the session is killed. Must not know effect classes, the gate or
//! the model: whoever calls this has been allowed to.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use artoo_protocol::secret::is_secret_variable;
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStdin, Command};
use tokio::time::timeout;

use crate::capture::{Capture, Captured};
use crate::sandbox::{Confinement, Sandbox};

/// How long output is still read after everything was killed.
const GRACE: Duration = Duration::from_millis(500);
/// How long a supervisor may take to end everything before its own group is killed.
const ENDING: Duration = Duration::from_secs(5);

/// Makes programs ask nothing, page nothing and colour nothing.
const NON_INTERACTIVE: &[(&str, &str)] = &[
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // A look at a repository does not write its index anew.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_EDITOR", "false"),
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("CI", "1"),
];

/// Variables through which a shell would run something before the command, or see other commands than are there.
const SHELL_HOOKS: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "PS4",
    "LESSOPEN",
    "LESSCLOSE",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "RIPGREP_CONFIG_PATH",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "NODE_OPTIONS",
    "AWKPATH",
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
];

/// One command to run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The command line, for bash.
    pub command: String,
    /// Directory it starts in.
    pub cwd: PathBuf,
    /// Its whole environment; see [`environment`].
    pub environment: Vec<(OsString, OsString)>,
    /// After this it is killed.
    pub limit: Duration,
    /// What confines it.
    pub sandbox: Sandbox,
    /// What it may do at most.
    pub confinement: Confinement,
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// Exit status; `None` when a signal ended it.
    pub exit: Option<i32>,
    /// Whether the time limit ended it.
    pub timed_out: bool,
}

/// Runs a command to its end or to its time limit, and kills whatever it left running.
///
/// Dropping the future kills everything too. Where there is no supervisor, a process that makes itself a session of its
/// own (`setsid`) escapes.
///
/// # Errors
/// When the shell cannot be started.
pub async fn run(launch: Launch) -> std::io::Result<Ended> {
    let (mut child, supervised) = start(&launch)?;
    let mut session = Session::of(child.as_mut(), supervised);
    let (mut stdout, mut stderr) = (Capture::default(), Capture::default());
    let (out, err) = (child.stdout().take(), child.stderr().take());
    let status = {
        let reading = async { tokio::join!(drain(out, &mut stdout), drain(err, &mut stderr)) };
        tokio::pin!(reading);
        let mut drained = false;
        let status = {
            let waiting = timeout(launch.limit, child.inner_mut().wait());
            tokio::pin!(waiting);
            loop {
                tokio::select! {
                    status = &mut waiting => break status,
                    _ = &mut reading, if !drained => drained = true,
                }
            }
        };
        if status.is_err() && session.order_end() {
            let ending = timeout(ENDING, child.inner_mut().wait());
            tokio::pin!(ending);
            loop {
                tokio::select! {
                    _ = &mut ending => break,
                    _ = &mut reading, if !drained => drained = true,
                }
            }
        }
        // The leader is gone or out of time: what it left behind goes as well, and then the pipes close.
        session.kill();
        if !drained {
            let _ = timeout(GRACE, &mut reading).await;
        }
        status
    };
    let (exit, timed_out) = match status {
        Ok(status) => (status?.code(), false),
        Err(_) => (None, true),
    };
    Ok(Ended {
        stdout: stdout.finish(),
        stderr: stderr.finish(),
        exit,
        timed_out,
    })
}

/// The environment that commands get: the given one without secrets and shell hooks, plus what keeps programs from asking.
pub fn environment(inherited: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let passed = inherited.into_iter().filter(|(name, _)| {
        let name = name.to_string_lossy().to_uppercase();
        !is_secret_variable(&name) && !SHELL_HOOKS.contains(&name.as_str()) && !name.starts_with("BASH_FUNC_")
    });
    let fixed = NON_INTERACTIVE
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let mut environment: Vec<_> = passed.chain(fixed).collect();
    // Without a locale programs count bytes as letters: `wc -w` would pass over words in other scripts.
    let localised = |name: &OsString| ["LC_ALL", "LC_CTYPE", "LANG"].iter().any(|locale| name == locale);
    if !environment
        .iter()
        .any(|(name, value)| localised(name) && !value.is_empty())
    {
        environment.push(("LANG".into(), "C.UTF-8".into()));
    }
    environment
}

/// Starts it, and says whether a supervisor is above it.
fn start(launch: &Launch) -> std::io::Result<(Box<dyn ChildWrapper>, bool)> {
    // `--` keeps a command that begins with a dash from being read as options.
    let shell: [&OsStr; 4] = [
        interpreter().as_os_str(),
        "-c".as_ref(),
        "--".as_ref(),
        launch.command.as_ref(),
    ];
    let inner = shell.map(OsStr::to_owned);
    let wrapped = launch.sandbox.wrap(&launch.confinement, &inner);
    let supervised = wrapped.as_ref().is_some_and(|wrapped| wrapped.supervised);
    let mut command = if let Some(wrapped) = wrapped {
        let mut command = Command::new(wrapped.program);
        command.args(wrapped.arguments);
        command
    } else {
        let mut command = Command::new(interpreter());
        command.args(inner.iter().skip(1));
        command
    };
    command
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(launch.environment.iter().cloned());
    command
        .stdin(if supervised { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A session of its own: one signal reaches all of it, and it has no terminal to wait for.
    Ok((CommandWrap::from(command).wrap(ProcessSession).spawn()?, supervised))
}

/// Bash where it stands at a usual place, because that is the language that commands are judged in; else the system's shell.
fn interpreter() -> &'static Path {
    const USUAL: &[&str] = &[
        "/bin/bash",
        "/usr/bin/bash",
        "/usr/local/bin/bash",
        "/opt/homebrew/bin/bash",
    ];
    USUAL
        .iter()
        .map(Path::new)
        .find(|path| path.exists())
        .unwrap_or_else(|| Path::new("/bin/sh"))
}

async fn drain(stream: Option<impl AsyncRead + Unpin>, into: &mut Capture) {
    let Some(mut stream) = stream else {
        return;
    };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        into.push(buffer.get(..read).unwrap_or_default());
    }
}

/// What has to end when the run does, also when its future is dropped, which is how cancellation reaches grandchildren.
struct Session {
    /// The process group, where nobody supervises.
    leader: Option<Pid>,
    /// The supervisor's standard input: it ends everything when this closes.
    order: Option<ChildStdin>,
    supervised: bool,
}

impl Session {
    fn of(child: &mut dyn ChildWrapper, supervised: bool) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self {
            leader,
            order: child.stdin().take(),
            supervised,
        }
    }

    /// Tells the supervisor to end everything; false when there is none.
    fn order_end(&mut self) -> bool {
        self.order.take().is_some()
    }

    fn kill(mut self) {
        self.kill_now();
    }

    fn kill_now(&mut self) {
        if let Some(leader) = self.leader.take() {
            // It fails only when nothing is left to kill.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A supervisor that is dropped ends the command itself; killed, it could not.
        if !self.supervised {
            self.kill_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(command: &str, limit: Duration) -> Launch {
        Launch {
            command: command.into(),
            cwd: "/".into(),
            environment: environment(std::env::vars_os()),
            limit,
            sandbox: Sandbox::unchecked(),
            confinement: Confinement::Allowed,
        }
    }

    async fn output(command: &str) -> Ended {
        run(launch(command, Duration::from_secs(20))).await.unwrap()
    }

    /// A number of seconds to sleep that no other test uses, so that survivors can be told apart.
    fn survivors(mark: &str) -> usize {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
        lines
            .filter(|line| line.replace('\0', " ").starts_with(&format!("sleep {mark}")))
            .count()
    }

    #[tokio::test]
    async fn a_command_gives_its_output_and_status() {
        let ended = output("echo out; echo err >&2; exit 3").await;
        assert_eq!(
            (ended.stdout.text.as_str(), ended.stderr.text.as_str()),
            ("out\n", "err\n")
        );
        assert_eq!((ended.exit, ended.timed_out), (Some(3), false));
        assert_eq!(
            output("-x").await.exit,
            Some(127),
            "a command that begins with a dash is no option"
        );
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_pipeline_does_not_survive_its_time_limit() {
        let ended = run(launch("echo begun; sleep 40.17 | cat", Duration::from_millis(300)))
            .await
            .unwrap();
        assert!(ended.timed_out);
        assert_eq!(ended.exit, None);
        assert_eq!(ended.stdout.text, "begun\n", "what it printed stays as evidence");
        assert_eq!(survivors("40.17"), 0);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_a_command_leaves_in_the_background_dies_with_it() {
        let ended = output("sleep 40.29 & echo done").await;
        assert_eq!((ended.exit, ended.stdout.text.as_str()), (Some(0), "done\n"));
        assert_eq!(survivors("40.29"), 0);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn dropping_the_run_kills_everything() {
        let running = run(launch("sleep 40.31 | cat", Duration::from_secs(60)));
        let _ = timeout(Duration::from_millis(300), running).await;
        // The signal is sent at the drop; the kernel needs a moment to take the processes away.
        for _ in 0..200 {
            if survivors("40.31") == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it survived");
    }

    #[tokio::test]
    async fn nothing_waits_for_a_terminal() {
        assert_eq!(output("cat").await.stdout.text, "", "standard input is closed");
        assert_eq!(output("read x; echo \"got:$x\"").await.stdout.text, "got:\n");
        assert_eq!(output("echo $PAGER$GIT_TERMINAL_PROMPT").await.stdout.text, "cat0\n");
        assert_ne!(output("exec < /dev/tty").await.exit, Some(0), "there is no terminal");
    }

    #[test]
    fn secrets_and_hooks_are_not_passed_on() {
        let given = [
            ("PATH", "/bin"),
            ("LANG", "de_DE.UTF-8"),
            ("OPENAI_API_KEY", "x"),
            ("github_token", "x"),
            ("DB_PASSWORD", "x"),
            ("AWS_SECRET_ACCESS", "x"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "x"),
            ("BASH_ENV", "x"),
            ("LD_PRELOAD", "x"),
            ("LESSOPEN", "|x %s"),
            ("GIT_EXTERNAL_DIFF", "x"),
            ("BASH_FUNC_ls%%", "() { rm x; }"),
        ];
        let passed = environment(given.map(|(name, value)| (name.into(), value.into())));
        let names: Vec<_> = passed
            .iter()
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect();
        assert_eq!(names.first().map(String::as_str), Some("PATH"));
        assert_eq!(names.len(), 2 + NON_INTERACTIVE.len(), "{names:?}");
    }

    #[tokio::test]
    async fn endless_output_stays_bounded() {
        let ended = run(launch("yes", Duration::from_millis(300))).await.unwrap();
        assert!(ended.timed_out && ended.stdout.truncated);
        assert!(ended.stdout.text.len() < 40_000 && ended.stdout.bytes > 100_000);
    }

    #[tokio::test]
    async fn words_of_every_script_are_counted_without_a_locale() {
        let mut launch = launch("printf '— 数 x' | wc -w", Duration::from_secs(20));
        launch.environment = environment([("PATH".into(), std::env::var_os("PATH").unwrap_or_default())]);
        assert_eq!(run(launch).await.unwrap().stdout.text.trim(), "3");
        let kept = environment([("LC_ALL".into(), "C".into())]);
        assert!(
            kept.iter().all(|(name, _)| name != "LANG"),
            "what the user set is not overruled"
        );
    }
}

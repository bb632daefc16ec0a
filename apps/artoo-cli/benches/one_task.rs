//! artoo's own time for a one-subtask task: the release binary against a model that answers at once over loopback.
//!
//! `cargo bench -p artoo-cli --bench one_task` prints, over a number of runs, the median and the extremes of: process start to
//! first model request, process start to exit, peak resident memory, and the number of model requests; and of a conversation on a terminal, the time
//! to its prompt. The data folder lies on
//! `/dev/shm` where there is one, so that waiting for a disk to sync is left out.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a measuring program"
)]

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use artoo_testkit::server::{Response, Server, asked_for, results_in};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

fn answer(body: &Value) -> Response {
    let criterion = json!({"criterion": "bench.txt holds 42", "mode": "verifiable",
        "check": {"kind": "file_contains", "path": "bench.txt", "pattern": "^42$"}});
    let content = match asked_for(body) {
        "task_spec" => {
            json!({"slug": "write_number", "intent": "write 42 into bench.txt", "scope": null, "deadline": null, "clarify": [], "direct_answer": null})
        }
        "plan" => {
            json!({"task_criteria": [criterion], "subtasks": [{"sequence": 1, "intent": "create the file bench.txt with the text 42", "context": "",
            "success_criteria": [criterion], "tools": ["write_file"]}]})
        }
        _ if results_in(body) == 0 => {
            return Response::ToolCall("write_file", json!({"path": "bench.txt", "content": "42"}));
        }
        _ => return Response::Content("bench.txt holds 42".into()),
    };
    Response::Content(content.to_string())
}

struct Run {
    first_request: Duration,
    whole: Duration,
    peak_kib: u64,
    requests: usize,
}

fn one(server: &Server, folder: &Path) -> Run {
    let before = server.seen().len();
    let _ = std::fs::remove_dir_all(folder.join("workspace"));
    let (started, wall) = (Instant::now(), SystemTime::now());
    let mut child = Command::new(env!("CARGO_BIN_EXE_artoo"))
        .args(["run", "-q", "write 42 into bench.txt"])
        .env_clear()
        .env("HOME", folder)
        .env("ARTOO_WORKSPACE", folder.join("workspace"))
        .env("OPENAI_BASE_URL", server.base_url())
        .env("OPENAI_MODEL", "scripted")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let status_file = format!("/proc/{}/status", child.id());
    // Looked at from a thread of its own and not too often, or the look itself would be measured.
    let sampler = std::thread::spawn(move || {
        let mut peak_kib = 0;
        while let Ok(text) = std::fs::read_to_string(&status_file) {
            let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
            let Some(peak) = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()) else {
                break;
            };
            peak_kib = u64::max(peak_kib, peak);
            std::thread::sleep(Duration::from_millis(1));
        }
        peak_kib
    });
    let status = child.wait().unwrap();
    let whole = started.elapsed();
    let peak_kib = sampler.join().unwrap();
    assert!(status.success(), "the task did not succeed: {status}");
    let seen = server.seen();
    let mine = &seen[before..];
    Run {
        first_request: mine[0].at.duration_since(wall).unwrap_or_default(),
        whole,
        peak_kib,
        requests: mine.len(),
    }
}

/// From the start of a conversation to its prompt.
fn prompt(server: &Server, folder: &Path) -> Duration {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let name = std::ffi::OsStr::from_bytes(name.as_bytes());
    let screen = OpenOptions::new().read(true).write(true).open(name).unwrap();
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_artoo"))
        .env_clear()
        .env("TERM", "xterm")
        .env("HOME", folder)
        .env("ARTOO_WORKSPACE", folder.join("workspace"))
        .env("OPENAI_BASE_URL", server.base_url())
        .env("OPENAI_MODEL", "scripted")
        .stdin(screen.try_clone().unwrap())
        .stdout(screen.try_clone().unwrap())
        .stderr(screen)
        .spawn()
        .unwrap();
    let (mut shown, mut bytes, mut terminal) = (Vec::new(), [0; 4096], File::from(master));
    let prompt = b"artoo> ";
    while !shown.windows(prompt.len()).any(|part| part == prompt) {
        let read = terminal.read(&mut bytes).unwrap();
        shown.extend_from_slice(&bytes[..read]);
    }
    let took = started.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    took
}

fn spread<T: Ord + Copy>(mut values: Vec<T>) -> (T, T, T) {
    values.sort();
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

fn main() {
    let server = Server::start(answer).unwrap();
    let base = if Path::new("/dev/shm").is_dir() {
        Path::new("/dev/shm").to_owned()
    } else {
        std::env::temp_dir()
    };
    let folder = base.join(format!("artoo-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let _warm_up = one(&server, &folder);
    let runs: Vec<Run> = (0..30).map(|_| one(&server, &folder)).collect();
    let prompts = (0..30).map(|_| prompt(&server, &folder)).collect();
    let _ = std::fs::remove_dir_all(&folder);
    let (low, median, high) = spread(prompts);
    println!("start of a conversation to its prompt: median {median:.1?} (min {low:.1?}, max {high:.1?})");
    let (low, median, high) = spread(runs.iter().map(|r| r.first_request).collect());
    println!("process start to first model request: median {median:.1?} (min {low:.1?}, max {high:.1?})");
    let (low, median, high) = spread(runs.iter().map(|r| r.whole).collect());
    println!("process start to exit:                median {median:.1?} (min {low:.1?}, max {high:.1?})");
    let (low, median, high) = spread(runs.iter().map(|r| r.peak_kib).collect());
    println!("peak resident memory:                 median {median} KiB (min {low}, max {high})");
    let (low, median, high) = spread(runs.iter().map(|r| r.requests).collect());
    println!("model requests:                       median {median} (min {low}, max {high})");
}

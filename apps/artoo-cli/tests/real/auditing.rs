//! What the operator sees of the auditor while artoo runs, through the binary.

#![allow(clippy::disallowed_methods, reason = "a clock for how long something may hang")]

use std::fs::File;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{LIMIT, Sandbox};

/// A tail that follows, and what it has said so far.
struct Following {
    child: Child,
    file: std::path::PathBuf,
}

impl Following {
    fn start(sandbox: &Sandbox, name: &str, filters: &[&str]) -> Self {
        let file = sandbox.home().join(name);
        let child = sandbox
            .artoo(&[&["audit", "tail", "--follow", "--json"], filters].concat())
            .stdout(File::create(&file).unwrap())
            .spawn()
            .unwrap();
        Self { child, file }
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.file).unwrap();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits for what only a hang keeps from coming.
    #[track_caller]
    fn wait_for(&self, count: usize) -> Vec<Value> {
        let start = Instant::now();
        while self.lines().len() < count {
            assert!(
                start.elapsed() < LIMIT,
                "{count} lines do not come: {:#?}",
                self.lines()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        self.lines()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_log_is_followed_through_filters_while_artoo_runs() {
    let sandbox = Sandbox::new();
    sandbox.run(&["count the files in src"]).ended(0);
    let ends = Following::start(&sandbox, "ends", &["--type", "FinalResult"]);
    let first = ends.wait_for(1)[0]["envelope"]["task_id"].as_str().unwrap().to_owned();
    let of_first = Following::start(&sandbox, "first", &["--task", &first, "--role", "r7", "--lines", "1"]);
    let findings = Following::start(&sandbox, "findings", &["--anomaly"]);
    of_first.wait_for(1);
    sandbox.run(&["count the lines in notes.txt"]).ended(0);
    let seen = ends.wait_for(2);
    assert!(
        seen.iter()
            .all(|line| line["envelope"]["payload"]["type"] == "FinalResult")
    );
    assert_ne!(seen[1]["envelope"]["task_id"], first, "the second task");
    // What came was not for these.
    assert_eq!(of_first.lines().len(), 1);
    assert_eq!(findings.lines(), Vec::<Value>::new());
}

/// What is set in config.toml is what the report goes by; nothing of a project's file is.
#[test]
fn an_audit_period_that_is_none_is_refused() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.data()).unwrap();
    for (period, code) in [("\"15m\"", 0), ("\"never\"", 2), ("\"0s\"", 2)] {
        std::fs::write(sandbox.data().join("config.toml"), format!("audit_period = {period}\n")).unwrap();
        let done = sandbox.run(&["count the files in src"]);
        assert_eq!(done.code, Some(code), "{period}: {done:#?}");
        assert!(code == 0 || done.err.contains("time between reports"), "{done:#?}");
    }
}

/// Each task that ends is one row of the table that calibration reads.
#[test]
fn calibration_reads_the_rows_of_real_tasks() {
    let sandbox = Sandbox::new();
    for task in ["count the files in src", "count the lines in notes.txt"] {
        sandbox.run(&[task]).ended(0);
    }
    let table = sandbox.data().join("tuning.jsonl");
    let text = std::fs::read_to_string(&table).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(
            (&row["ending"], &row["complete"]),
            (&"accept".into(), &true.into()),
            "{row}"
        );
        assert!(row["rounds"][0]["D"].is_number() && row["cost"].is_number(), "{row}");
    }
    let read = sandbox.run(&["ggs", "calibrate", "--rows", table.to_str().unwrap()]);
    assert!(!read.err.contains("panicked"), "{read:#?}");
}

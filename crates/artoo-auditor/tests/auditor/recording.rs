//! The log of a process: restart, torn records, slow and full disks, secrets, statistics.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use artoo_auditor::{Gap, LogError, Observed, Options, Recorder, Redact, overview, read_stats, verify};
use artoo_protocol::Role;
use serde_json::Value;
use tempfile::TempDir;

use crate::build::{Wire, at, input, result};

pub fn plain() -> Redact {
    Arc::new(|text| text)
}

/// One process that sees `tasks` tasks of two messages each.
pub fn run(folder: &Path, tasks: u32) {
    let first = u32::try_from(read_stats(folder).past.ledger.totals.tasks).unwrap();
    let mut wire = Wire::default();
    let mut recorder = Recorder::start(folder, at(0), Options::new(plain())).unwrap();
    for n in first..first + tasks {
        let _ = recorder.observe(at(i64::from(n)), wire.send(Role::User, n, input(n, "count the files")));
        let _ = recorder.observe(at(i64::from(n)), wire.send(Role::R7, n, result(n, 0.0)));
    }
    let report = recorder.finish(at(i64::from(tasks))).unwrap().unwrap();
    assert_eq!(
        (report.trigger.as_str(), report.tasks_observed),
        ("exit", u64::from(tasks))
    );
}

fn records(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("audit.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn chain_and_totals_continue_after_a_restart() {
    let folder = TempDir::new().unwrap();
    assert_eq!(
        verify(folder.path(), &[]).unwrap().records,
        0,
        "nothing was written yet"
    );
    run(folder.path(), 3);
    run(folder.path(), 2);
    let verified = verify(folder.path(), &[]).unwrap();
    assert_eq!((verified.records, verified.notes, verified.behind_head), (10, 0, 0));
    let records = records(folder.path());
    assert_eq!(records[9]["n"], 10);
    assert_eq!(records[6]["prev"], records[5]["hash"]);
    assert_eq!(records[9]["envelope"]["payload"]["type"], "FinalResult");
    let stats = read_stats(folder.path());
    assert_eq!((stats.past.ledger.totals.tasks, stats.past.ledger.totals.ended), (5, 5));
    assert_eq!(stats.last_report.unwrap().tasks_total, 5);
    let report = overview(folder.path(), at(9)).unwrap().report;
    assert_eq!(
        (report.tasks_observed, report.tasks_total, report.anomalies.len()),
        (5, 5, 0)
    );
    assert_eq!(report.window_start, at(0));
}

#[test]
fn a_torn_last_record_is_set_aside_and_noted() {
    let folder = TempDir::new().unwrap();
    run(folder.path(), 2);
    let path = folder.path().join("audit.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"hash\":\"12");
    fs::write(&path, bytes).unwrap();
    let verified = verify(folder.path(), &[]).unwrap();
    assert_eq!(
        (verified.records, verified.unfinished_bytes),
        (4, 11),
        "a crash is no tampering"
    );
    run(folder.path(), 1);
    let verified = verify(folder.path(), &[]).unwrap();
    assert_eq!((verified.records, verified.notes), (7, 1));
    assert_eq!(
        fs::read_to_string(folder.path().join("audit.torn")).unwrap(),
        "{\"hash\":\"12\n"
    );
    assert_eq!(
        records(folder.path())[4]["note"],
        "a torn last record of 11 bytes was set aside in audit.torn"
    );
}

#[test]
fn a_record_longer_than_any_buffer_is_continued() {
    let folder = TempDir::new().unwrap();
    let mut wire = Wire::default();
    let mut recorder = Recorder::start(folder.path(), at(0), Options::new(plain())).unwrap();
    let _ = recorder.observe(at(0), wire.send(Role::User, 1, input(1, "short")));
    let _ = recorder.observe(at(0), wire.send(Role::User, 2, input(2, &"x".repeat(3 << 20))));
    recorder.finish(at(1)).unwrap();
    run(folder.path(), 1);
    assert_eq!(verify(folder.path(), &[]).unwrap().records, 4);
}

#[test]
fn a_slow_disk_never_delays_whoever_feeds_it() {
    let folder = TempDir::new().unwrap();
    let disk = Arc::new(Mutex::new(()));
    let held = disk.lock().unwrap();
    let slow = Arc::clone(&disk);
    let redact: Redact = Arc::new(move |text| {
        drop(slow.lock());
        text
    });
    let mut wire = Wire::default();
    let mut recorder = Recorder::start(
        folder.path(),
        at(0),
        Options {
            queue: 4,
            ..Options::new(redact)
        },
    )
    .unwrap();
    for _ in 0..100 {
        // Returns although nothing can be written.
        let _ = recorder.observe(at(0), wire.send(Role::User, 1, input(1, "x")));
    }
    let _ = recorder.observe(
        at(0),
        Observed::Gap(Gap {
            from_seq: 101,
            to_seq: 110,
            count: 10,
            ..Gap::default()
        }),
    );
    drop(held);
    recorder.finish(at(1)).unwrap();

    let verified = verify(folder.path(), &[]).unwrap();
    // The thread takes what waits in one go or in two, and each leaves its own gap.
    assert!((1..=2).contains(&verified.gaps), "{}", verified.gaps);
    let records = records(folder.path());
    let written = records.iter().filter(|record| !record["envelope"].is_null()).count();
    let missed: u64 = records
        .iter()
        .filter_map(|record| record["gap"]["count"].as_u64())
        .sum();
    assert_eq!(
        u64::try_from(written).unwrap() + missed,
        110,
        "everything is there or counted as missing"
    );
    assert_eq!(records.last().unwrap()["gap"]["to_seq"], 110);
}

#[test]
fn what_waits_for_the_disk_is_bounded_by_bytes_too() {
    let folder = TempDir::new().unwrap();
    let disk = Arc::new(Mutex::new(()));
    let held = disk.lock().unwrap();
    let slow = Arc::clone(&disk);
    let redact: Redact = Arc::new(move |text| {
        drop(slow.lock());
        text
    });
    let mut wire = Wire::default();
    let options = Options {
        queue_bytes: 1_000_000,
        ..Options::new(redact)
    };
    let mut recorder = Recorder::start(folder.path(), at(0), options).unwrap();
    let long = "x".repeat(400_000);
    for _ in 0..50 {
        let _ = recorder.observe(at(0), wire.send(Role::User, 1, input(1, &long)));
    }
    drop(held);
    recorder.finish(at(1)).unwrap();
    let written = verify(folder.path(), &[]).unwrap().envelopes;
    // One may be in the hands of the thread that writes, two have room in the queue.
    assert!((2..=4).contains(&written), "{written}");
    let missed: u64 = records(folder.path())
        .iter()
        .filter_map(|record| record["gap"]["count"].as_u64())
        .sum();
    assert_eq!(written + missed, 50);
    // One that is larger than all the room there is is written all the same.
    let options = Options {
        queue_bytes: 10,
        ..Options::new(plain())
    };
    let mut recorder = Recorder::start(folder.path(), at(2), options).unwrap();
    let _ = recorder.observe(at(2), wire.send(Role::User, 1, input(1, &long)));
    recorder.finish(at(3)).unwrap();
    assert_eq!(verify(folder.path(), &[]).unwrap().envelopes, written + 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_at_the_end_and_stops_nobody() {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("audit.jsonl")).unwrap();
    let mut wire = Wire::default();
    let mut recorder = Recorder::start(folder.path(), at(0), Options::new(plain())).unwrap();
    for _ in 0..10 {
        assert!(
            recorder
                .observe(at(0), wire.send(Role::User, 1, input(1, "x")))
                .is_none()
        );
    }
    assert!(recorder.report(at(1)).is_some());
    let error = recorder.finish(at(1)).unwrap_err();
    assert!(matches!(error, LogError::Io { .. }), "{error}");
    let kept = read_stats(folder.path());
    let ledger = &kept.past.ledger;
    assert_eq!(ledger.totals.tasks, 10, "the totals are kept all the same");
    assert!(
        ledger.found.contains_key("gap"),
        "and say that the log does not hold it: {:?}",
        ledger.found
    );
}

/// A gap that is only written with the last words is counted with them: whoever goes on from what is kept begins behind it.
#[test]
fn what_found_no_room_until_the_end_is_in_the_counts_that_are_kept() {
    let folder = TempDir::new().unwrap();
    let disk = Arc::new(Mutex::new(()));
    let held = disk.lock().unwrap();
    let slow = Arc::clone(&disk);
    let redact: Redact = Arc::new(move |text| {
        if std::thread::current().name() == Some("artoo-audit") {
            drop(slow.lock());
        }
        text
    });
    let options = Options {
        queue: 4,
        ..Options::new(redact)
    };
    let mut wire = Wire::default();
    let mut recorder = Recorder::start(folder.path(), at(0), options).unwrap();
    for n in 0..20 {
        let _ = recorder.observe(at(0), wire.send(Role::R7, n, result(n, 0.0)));
    }
    drop(held);
    let report = recorder.finish(at(1)).unwrap().unwrap();
    let gaps = |anomalies: &[String]| anomalies.iter().filter(|line| line.starts_with("gap:")).count();
    assert_eq!(gaps(&report.anomalies), 1, "{report:?}");
    let kept = overview(folder.path(), at(2)).unwrap();
    assert_eq!((kept.records_read, gaps(&kept.report.anomalies)), (0, 1));
    fs::remove_file(folder.path().join("audit_stats.json")).unwrap();
    assert_eq!(gaps(&overview(folder.path(), at(2)).unwrap().report.anomalies), 1);
}

#[test]
fn secrets_are_masked_before_they_are_written() {
    let folder = TempDir::new().unwrap();
    let redact: Redact = Arc::new(|text| text.replace("sk-secret", "[masked]"));
    let mut wire = Wire::default();
    let mut recorder = Recorder::start(folder.path(), at(0), Options::new(redact)).unwrap();
    let _ = recorder.observe(at(0), wire.send(Role::User, 1, input(1, "use sk-secret")));
    recorder.finish(at(1)).unwrap();
    let text = fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    assert!(text.contains("use [masked]") && !text.contains("sk-secret"), "{text}");
    verify(folder.path(), &[]).unwrap();
}

#[test]
fn totals_survive_a_process_that_is_killed() {
    let folder = TempDir::new().unwrap();
    let mut wire = Wire::default();
    let mut recorder = Recorder::start(folder.path(), at(0), Options::new(plain())).unwrap();
    let _ = recorder.observe(at(0), wire.send(Role::User, 1, input(1, "x")));
    let _ = recorder.observe(at(0), wire.send(Role::R7, 1, result(1, 0.0)));
    // Killed: nobody says goodbye. What was queued is written by then; the exit report is missing.
    let before = recorder.finish(at(1)).unwrap();
    assert!(before.is_some());
    fs::write(folder.path().join("audit_stats.json"), "{broken").unwrap();
    assert_eq!(
        read_stats(folder.path()).past.ledger.totals.tasks,
        0,
        "a foreign file counts from zero"
    );
    assert_eq!(
        overview(folder.path(), at(2)).unwrap().report.tasks_total,
        1,
        "and the log still knows"
    );
}

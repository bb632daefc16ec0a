//! The log of a process: restart, torn records, slow and full disks, secrets, statistics.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use artoo_auditor::{Damage, Gap, LogError, Observed, Options, Recorder, Redact, overview, read_stats, verify};
use artoo_protocol::message::{
    ConfirmationAnswer, ConfirmationRequest, Consent, ExecutionStatus, TaskResumed, UserInput,
};
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{Millis, Role, SubTaskId};
use serde_json::Value;
use tempfile::TempDir;

use crate::build::{Wire, at, attempt, input, result, subtask, task};

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

/// A process that is killed leaves a head that says it had not ended.
fn killed(folder: &Path, records: u32) {
    run(folder, records);
    let head = folder.join("audit.head");
    let text = fs::read_to_string(&head).unwrap();
    assert!(!text.contains("open"), "who ended says so: {text}");
    fs::write(&head, text.replace('}', ",\"open\":true}")).unwrap();
}

#[test]
fn what_a_killed_process_may_have_taken_along_is_a_gap() {
    let folder = TempDir::new().unwrap();
    // The head lies behind, as it does while records come, or it was just written.
    killed(folder.path(), 2);
    for (gaps, behind) in [(1, false), (2, true)] {
        if behind {
            let text = fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
            let first = text.lines().next().unwrap();
            let hash = first.split('"').nth(3).unwrap();
            fs::write(
                folder.path().join("audit.head"),
                format!("{{\"n\":1,\"hash\":\"{hash}\"}}\n"),
            )
            .unwrap();
        }
        assert!(verify(folder.path(), &[]).is_ok(), "a crash is no tampering");
        run(folder.path(), 1);
        let verified = verify(folder.path(), &[]).unwrap();
        assert_eq!((verified.gaps, verified.notes), (gaps, 0));
        let kept = overview(folder.path(), at(9)).unwrap();
        assert_eq!(kept.findings.get("gap"), Some(&gaps), "{kept:?}");
        let stats = folder.path().join("audit_stats.json");
        let text = fs::read(&stats).unwrap();
        fs::remove_file(&stats).unwrap();
        let counted = overview(folder.path(), at(9)).unwrap();
        fs::write(&stats, text).unwrap();
        assert_eq!(counted.findings, kept.findings);
        let told = "gap: the process before did not end as it should: what it saw last may not be recorded";
        assert!(counted.report.anomalies.iter().any(|line| line == told), "{counted:?}");
    }
    run(folder.path(), 1);
    assert_eq!(
        verify(folder.path(), &[]).unwrap().gaps,
        2,
        "who ended well leaves none"
    );
}

/// What is said about the log itself waits until there is room for it, and no head covers a damage that is not written.
#[cfg(target_os = "linux")]
#[test]
fn what_was_found_at_the_start_is_told_although_the_disk_is_full() {
    let folder = TempDir::new().unwrap();
    run(folder.path(), 1);
    let (log, head) = (folder.path().join("audit.jsonl"), folder.path().join("audit.head"));
    // What there was is filled; the new file finds no room.
    fs::rename(&log, folder.path().join("audit-0000000000000001.jsonl")).unwrap();
    fs::remove_file(&head).unwrap();
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();
    let recorder = Recorder::start(folder.path(), at(0), Options::new(plain())).unwrap();
    assert!(recorder.finish(at(1)).is_err());
    assert!(!head.exists(), "it would say that all is well");
    fs::remove_file(&log).unwrap();
    let recorder = Recorder::start(folder.path(), at(0), Options::new(plain())).unwrap();
    recorder.finish(at(1)).unwrap();
    let found = verify(folder.path(), &[]);
    assert!(
        matches!(&found, Err(LogError::Broken(b)) if b.damage == Damage::HeadMissing && b.record == 3),
        "{found:?}"
    );
}

/// What a role's latest cases say is found where one task is run at a time, is a record, and is found again by whoever counts the log.
#[test]
fn drift_is_a_record_of_the_log_and_goes_through_processes() {
    let folder = TempDir::new().unwrap();
    for n in 0..12 {
        let mut wire = Wire::default();
        let mut recorder = Recorder::start(folder.path(), at(0), Options::new(plain())).unwrap();
        let _ = recorder.observe(at(0), wire.send(Role::User, n, input(n, "x")));
        for id in 0..10 {
            // All is well in ten tasks, and nothing in the last two.
            let status = if n < 10 {
                ExecutionStatus::Completed
            } else {
                ExecutionStatus::Failed
            };
            let _ = recorder.observe(at(0), wire.send(Role::R3, n, attempt(n, &format!("s{n}_{id}"), status)));
        }
        let _ = recorder.observe(at(0), wire.send(Role::R7, n, result(n, 0.0)));
        recorder.finish(at(1)).unwrap();
    }
    let found: Vec<Value> = records(folder.path())
        .into_iter()
        .filter(|record| !record["finding"].is_null())
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let finding = &found[0]["finding"];
    assert_eq!(finding["detector"], "drift");
    assert_eq!(
        finding["detail"],
        "R3: attempts that failed went from 0 % to 25 % (10 of 40)"
    );
    let kept = overview(folder.path(), at(2)).unwrap();
    assert_eq!(kept.report.drift_alerts.len(), 1);
    fs::remove_file(folder.path().join("audit_stats.json")).unwrap();
    let counted = overview(folder.path(), at(2)).unwrap();
    assert_eq!((counted.report, counted.findings), (kept.report, kept.findings));
}

/// A task that another process took up: whoever counts the log of both finds what each of them found, which is nothing.
#[test]
fn a_task_that_was_taken_up_raises_nothing_when_it_is_counted() {
    let folder = TempDir::new().unwrap();
    let record = |seen: Vec<Observed>| {
        let mut recorder = Recorder::start(folder.path(), at(0), Options::new(plain())).unwrap();
        for observed in seen {
            let _ = recorder.observe(at(0), observed);
        }
        recorder.finish(at(1)).unwrap();
    };
    let mut wire = Wire::default();
    let nobody = UserInput {
        person_present: false,
        ..input(1, "x")
    };
    record(vec![
        wire.send(Role::User, 1, nobody),
        wire.send(Role::R2, 1, subtask(1, "a")),
    ]);
    // The journal holds more than the auditor saw.
    wire.seq += 3;
    let resumed = TaskResumed {
        task_id: task(1),
        away_ms: Millis(5),
        person_present: Some(true),
    };
    let request = ConfirmationRequest {
        request_id: "q1".into(),
        task_id: task(1),
        subtask_id: SubTaskId::new("a"),
        tool: "shell".into(),
        effect: EffectClass::Destroy,
        action: "rm x".into(),
        reason: "r".into(),
        grant: None,
    };
    let answer = ConfirmationAnswer {
        request_id: "q1".into(),
        task_id: task(1),
        consent: Consent::Yes,
    };
    record(vec![
        wire.send(Role::Runtime, 1, resumed),
        wire.send(Role::R2, 1, subtask(1, "a")),
        wire.send(Role::R3, 1, request),
        wire.send(Role::User, 1, answer),
        wire.send(Role::R7, 1, result(1, 0.0)),
    ]);
    let kept = overview(folder.path(), at(2)).unwrap();
    assert_eq!(kept.findings.len(), 0, "{:?}", kept.findings);
    fs::remove_file(folder.path().join("audit_stats.json")).unwrap();
    let counted = overview(folder.path(), at(2)).unwrap();
    assert_eq!(counted.findings, kept.findings);
}

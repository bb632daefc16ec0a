//! What the operator sees: the latest records, the report over the log, the page, the table of closed tasks.

use std::fs;
use std::path::Path;

use artoo_auditor::tail::{Anomalies, Filter, Sieve, describe, last};
use artoo_auditor::{Follow, Options, Recorder, TuningRow, overview, page, read_stats, recount};
use artoo_protocol::message::{Directive, ExecutionStatus, FailureClass};
use artoo_protocol::{Role, Timestamp};
use serde_json::Value;
use tempfile::TempDir;

use crate::build::{Wire, accepted, at, attempt, correction, directive, input, replan, result, subtask};
use crate::recording::{plain, run};
use crate::tampering::small_files;

/// One process with two tasks, of which the second has a bad round, over several small files.
fn busy(folder: &Path) {
    let mut wire = Wire::default();
    let options = Options {
        full_at: 2_000,
        ..Options::new(plain())
    };
    let mut recorder = Recorder::start(folder, at(0), options).unwrap();
    let seen = [
        wire.send(Role::User, 0x91, input(0x91, "count")),
        wire.send(Role::R7, 0x91, result(0x91, 0.0)),
        wire.send(Role::User, 0x92, input(0x92, "<b>count</b>")),
        wire.send(Role::R2, 0x92, subtask(0x92, "a")),
        wire.send(Role::R3, 0x92, attempt(0x92, "a", ExecutionStatus::Failed)),
        wire.send(Role::R4a, 0x92, correction(0x92, "a", FailureClass::Environmental)),
        wire.send(Role::R4b, 0x92, replan(0x92)),
        wire.send(Role::R7, 0x92, directive(0x92, Directive::BreakSymmetry, 0.8)),
        wire.send(Role::R4b, 0x92, replan(0x92)),
        wire.send(Role::R7, 0x92, directive(0x92, Directive::BreakSymmetry, 0.8)),
        wire.send(Role::R4b, 0x92, accepted(0x92)),
        wire.send(Role::R7, 0x92, result(0x92, 0.0)),
    ];
    for (seconds, observed) in (0_i64..).zip(seen) {
        let _ = recorder.observe(at(seconds * 1_000), observed);
    }
    recorder.finish(at(20_000)).unwrap();
}

fn numbers(folder: &Path, filter: &Filter, count: usize) -> Vec<u64> {
    let lines = last(folder, &Sieve::new(filter), count).unwrap();
    lines.iter().map(|line| number(line)).collect()
}

#[test]
fn the_tail_is_filtered() {
    let folder = TempDir::new().unwrap();
    busy(folder.path());
    let check = |filter: Filter, count: usize, expect: &[u64]| {
        assert_eq!(numbers(folder.path(), &filter, count), expect, "{filter:?}");
    };
    check(Filter::default(), 3, &[11, 12, 13]);
    check(Filter::default(), 100, &(1..=13).collect::<Vec<_>>());
    let task = |text: &str| Filter {
        task: Some(text.into()),
        ..Filter::default()
    };
    // By its final and its provisional id, by its end.
    for name in ["count_00000091", "input_00000091", "00000091"] {
        check(task(name), 100, &[1, 2]);
    }
    let role = |role| Filter {
        role: Some(role),
        ..Filter::default()
    };
    check(role(Role::R4a), 100, &[5, 6]);
    check(role(Role::R3), 100, &[4, 5, 6]);
    let kind = |text: &str| Filter {
        kind: Some(text.into()),
        ..Filter::default()
    };
    check(kind("FinalResult"), 100, &[2, 13]);
    check(kind("FinalResult"), 1, &[13]);
    check(kind("finding"), 100, &[11]);
    check(
        Filter {
            since: Some(at(2_000)),
            until: Some(at(4_000)),
            ..Filter::default()
        },
        100,
        &[3, 4, 5],
    );
    let anomalies = |anomalies| Filter {
        anomalies: Some(anomalies),
        ..Filter::default()
    };
    check(anomalies(Anomalies::All), 100, &[11]);
    check(anomalies(Anomalies::Of("ggs_thrashing".into())), 100, &[11]);
    check(anomalies(Anomalies::Of("gap".into())), 100, &[]);
    check(
        Filter {
            role: Some(Role::R7),
            kind: Some("PlanDirective".into()),
            ..task("count_00000092")
        },
        100,
        &[8, 10],
    );
}

#[test]
fn records_are_told_in_words() {
    let folder = TempDir::new().unwrap();
    busy(folder.path());
    let lines = last(folder.path(), &Sieve::new(&Filter::default()), 4).unwrap();
    let words: Vec<_> = lines.iter().map(|line| describe(line)).collect();
    assert!(
        words[0].ends_with("count_00000092 R7 → R2 PlanDirective break_symmetry"),
        "{}",
        words[0]
    );
    assert!(
        words[1].contains("FOUND ggs_thrashing: break_symmetry twice in a row"),
        "{}",
        words[1]
    );
    assert!(describe(b"rubbish").starts_with("no record: rubbish"));
}

#[test]
fn a_log_that_grows_is_followed_into_the_next_file() {
    let folder = TempDir::new().unwrap();
    let mut nothing = Follow::from_end(folder.path()).unwrap();
    assert!(nothing.poll().unwrap().is_empty());
    run(folder.path(), 1);
    assert_eq!(nothing.poll().unwrap().len(), 2, "it begins with the first record");
    // A log of which several files are filled before anybody looks again.
    let mut follow = Follow::from_end(folder.path()).unwrap();
    let files = small_files(folder.path(), 12).len();
    assert!(files > 3, "{files}");
    assert_eq!(
        all(&mut follow),
        (3..=14).collect::<Vec<_>>(),
        "each record once and in order"
    );
    run(folder.path(), 1);
    assert_eq!(all(&mut follow), [15, 16]);
    // Whoever begins behind a file that was filled, before the next one is there, sees that from its first record.
    let log = folder.path().join("audit.jsonl");
    let first = number(fs::read_to_string(&log).unwrap().lines().next().unwrap().as_bytes());
    fs::rename(&log, folder.path().join(format!("audit-{first:016}.jsonl"))).unwrap();
    let mut late = Follow::from_end(folder.path()).unwrap();
    run(folder.path(), 1);
    assert_eq!((all(&mut late), all(&mut follow)), (vec![17, 18], vec![17, 18]));
}

#[test]
fn a_torn_record_that_is_taken_back_is_not_followed() {
    let folder = TempDir::new().unwrap();
    run(folder.path(), 1);
    let log = folder.path().join("audit.jsonl");
    let mut follow = Follow::from_end(folder.path()).unwrap();
    let whole = fs::read(&log).unwrap();
    fs::write(&log, [&whole[..], &vec![b'x'; 100_000]].concat()).unwrap();
    let mut amid = Follow::from_end(folder.path()).unwrap();
    assert!(follow.poll().unwrap().is_empty() && amid.poll().unwrap().is_empty());
    // The next process sets it aside, notes that, and goes on.
    run(folder.path(), 1);
    assert_eq!((all(&mut follow), all(&mut amid)), (vec![3, 4, 5], vec![3, 4, 5]));
}

fn number(line: &[u8]) -> u64 {
    serde_json::from_slice::<Value>(line).unwrap()["n"].as_u64().unwrap()
}

/// Everything that has come.
fn all(follow: &mut Follow) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        let lines = follow.poll().unwrap();
        if lines.is_empty() {
            return seen;
        }
        seen.extend(lines.iter().map(|line| number(line)));
    }
}

#[test]
fn the_report_says_the_same_with_and_without_kept_counts() {
    let folder = TempDir::new().unwrap();
    busy(folder.path());
    run(folder.path(), 3);
    let kept = overview(folder.path(), at(99)).unwrap();
    assert_eq!(kept.records_read, 0, "everything is known");
    fs::remove_file(folder.path().join("audit_stats.json")).unwrap();
    let read = overview(folder.path(), at(99)).unwrap();
    assert_eq!(read.records_read, 19);
    assert_eq!((&kept.totals, &kept.findings), (&read.totals, &read.findings));
    assert_eq!(kept.history, read.history);
    assert_eq!(kept.report.anomalies, read.report.anomalies);
    assert_eq!(
        (
            kept.totals.tasks,
            kept.totals.accepted,
            kept.totals.corrections,
            kept.totals.replans
        ),
        (5, 5, 1, 2)
    );
    assert_eq!(kept.findings["ggs_thrashing"], 1);
}

#[test]
fn kept_counts_of_another_log_are_not_believed() {
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    run(folder.path(), 2);
    busy(other.path());
    fs::copy(
        other.path().join("audit_stats.json"),
        folder.path().join("audit_stats.json"),
    )
    .unwrap();
    let seen = overview(folder.path(), at(99)).unwrap();
    assert_eq!((seen.totals.tasks, seen.records_read), (2, 4));
}

#[test]
fn counts_that_do_not_begin_with_the_log_are_not_kept_and_a_report_mends_that() {
    let folder = TempDir::new().unwrap();
    let mut wire = Wire::default();
    let options = Options {
        queue: 200_000,
        queue_bytes: usize::MAX,
        counts_every: u64::MAX,
        ..Options::new(plain())
    };
    let mut recorder = Recorder::start(folder.path(), at(0), options).unwrap();
    for n in 0..26_000 {
        let _ = recorder.observe(at(0), wire.send(Role::User, n, input(n, "x")));
        let _ = recorder.observe(at(0), wire.send(Role::R7, n, result(n, 0.0)));
    }
    recorder.finish(at(1)).unwrap();
    fs::remove_file(folder.path().join("audit_stats.json")).unwrap();
    // Too many to be counted at a start: this process knows of its own task only, and does not pass that off as all.
    let mut recorder = Recorder::start(folder.path(), at(2), Options::new(plain())).unwrap();
    let _ = recorder.observe(at(2), wire.send(Role::User, 30_000, input(30_000, "x")));
    assert_eq!(recorder.whole().ledger.totals.tasks, 1);
    recorder.finish(at(3)).unwrap();
    assert_eq!(read_stats(folder.path()).upto, None);
    assert_eq!(overview(folder.path(), at(4)).unwrap().totals.tasks, 26_001);
    let mended = recount(folder.path(), at(4)).unwrap();
    assert_eq!((mended.totals.tasks, mended.records_read), (26_001, 52_001));
    assert_eq!(recount(folder.path(), at(4)).unwrap().records_read, 0);
    let recorder = Recorder::start(folder.path(), at(5), Options::new(plain())).unwrap();
    assert_eq!(recorder.whole().ledger.totals.tasks, 26_001);
}

#[test]
fn what_a_killed_process_saw_is_counted_by_the_next() {
    let folder = TempDir::new().unwrap();
    run(folder.path(), 1);
    let kept = fs::read(folder.path().join("audit_stats.json")).unwrap();
    run(folder.path(), 3);
    // As if the second process had been killed before it could keep its counts.
    fs::write(folder.path().join("audit_stats.json"), kept).unwrap();
    assert_eq!(read_stats(folder.path()).past.ledger.totals.tasks, 1);
    let recorder = Recorder::start(folder.path(), at(0), Options::new(plain())).unwrap();
    assert_eq!(recorder.whole().ledger.totals.tasks, 4);
    recorder.finish(at(1)).unwrap();
    assert_eq!(read_stats(folder.path()).past.ledger.totals.tasks, 4);
}

#[test]
fn the_page_holds_everything_and_nothing_from_elsewhere() {
    let folder = TempDir::new().unwrap();
    busy(folder.path());
    let mut seen = overview(folder.path(), at(30_000)).unwrap();
    seen.report.anomalies.push("<script>alert(1)</script>".into());
    let html = page(&seen);
    assert_eq!(html.matches("<svg").count(), 6);
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script"));
    for foreign in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    assert!(html.contains("ggs_thrashing") && html.contains("a controller that thrashes"));
    let empty = page(&overview(TempDir::new().unwrap().path(), at(0)).unwrap());
    assert!(empty.contains("Nothing was seen yet."));
}

#[test]
fn each_closed_task_gives_one_row() {
    let folder = TempDir::new().unwrap();
    busy(folder.path());
    let text = fs::read_to_string(folder.path().join("tuning.jsonl")).unwrap();
    let rows: Vec<TuningRow> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows[0].rounds.is_empty() && rows[0].complete);
    let row = &rows[1];
    let effort = (row.effort.attempts, row.effort.failed_attempts, row.effort.corrections);
    assert_eq!(
        (effort, row.rounds.len(), row.started_at),
        ((1, 1, 1), 3, Timestamp::from_millis(1_700_000_000_000))
    );
    let round = serde_json::to_value(&row.rounds[0]).unwrap();
    assert_eq!(
        (
            &round["round"],
            &round["directive"],
            &round["D"],
            &round["corrections"],
            &round["closed_by"]
        ),
        (
            &1.into(),
            &"break_symmetry".into(),
            &0.8.into(),
            &1.into(),
            &"gap".into()
        )
    );
    let last = serde_json::to_value(&row.rounds[2]).unwrap();
    assert_eq!(
        (&last["directive"], &last["closed_by"]),
        (&"accept".into(), &"accepted".into())
    );
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&line["format"], &line["ending"], &line["cause"]),
        (&1.into(), &"accept".into(), &"met".into())
    );
}

#[test]
fn a_row_that_cannot_be_written_is_told_as_a_gap() {
    let folder = TempDir::new().unwrap();
    // No table can be where a folder is.
    let table = folder.path().join("tuning.jsonl");
    fs::create_dir(&table).unwrap();
    let mut wire = Wire::default();
    let mut recorder = Recorder::start(folder.path(), at(0), Options::new(plain())).unwrap();
    let _ = recorder.observe(at(0), wire.send(Role::R7, 1, result(1, 0.0)));
    assert!(recorder.finish(at(1)).is_err());
    let lines = last(folder.path(), &Sieve::new(&Filter::default()), 1).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&lines[0]).unwrap()["gap"]["rows"], 1);
    // A row that a crash left half written spoils no other.
    fs::remove_dir(&table).unwrap();
    fs::write(&table, "{\"format\":1,").unwrap();
    run(folder.path(), 1);
    let text = fs::read_to_string(&table).unwrap();
    assert!(
        serde_json::from_str::<TuningRow>(text.lines().last().unwrap()).is_ok(),
        "{text}"
    );
}

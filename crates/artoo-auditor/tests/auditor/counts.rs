//! Counts inside the log: a report goes on from them, and believes none whose hash, place or head does not fit.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use artoo_auditor::chain::{Frame, Kind, Link};
use artoo_auditor::{Damage, LogError, Observed, Options, Overview, Recorder, overview, verify};
use artoo_protocol::model::Usage;
use artoo_protocol::{Act, CallId, Deed, Finite, Role};
use tempfile::TempDir;

use crate::build::{Wire, at, input, result, task};
use crate::recording::plain;

const TASKS: u32 = 40;

/// A process with 40 tasks of two messages, whose log holds counts after every 21st record, over several files.
fn day(folder: &Path, full_at: u64) {
    let options = Options {
        full_at,
        counts_every: 21,
        ..Options::new(plain())
    };
    let mut wire = Wire::default();
    let mut recorder = Recorder::start(folder, at(0), options).unwrap();
    for n in 0..TASKS {
        let now = at(i64::from(n) * 1_000);
        let _ = recorder.observe(now, wire.send(Role::User, n, input(n, "count the files")));
        let _ = recorder.observe(now, wire.send(Role::R7, n, result(n, 0.0)));
    }
    recorder.finish(at(100_000)).unwrap();
}

fn seen(folder: &Path) -> Overview {
    overview(folder, at(200_000)).unwrap()
}

fn without_stats(folder: &Path) {
    fs::remove_file(folder.join("audit_stats.json")).unwrap();
}

fn lines(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("audit.jsonl")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn write(folder: &Path, lines: &[String]) {
    fs::write(folder.join("audit.jsonl"), lines.join("\n") + "\n").unwrap();
}

fn kind(line: &str) -> Kind {
    Frame::read(line.as_bytes()).unwrap().kind
}

#[test]
fn a_report_goes_on_from_the_counts_in_the_log() {
    for full_at in [u64::MAX, 3_000] {
        let folder = TempDir::new().unwrap();
        day(folder.path(), full_at);
        let verified = verify(folder.path(), &[]).unwrap();
        assert_eq!((verified.envelopes, verified.counts), (80, 3));
        let kept = seen(folder.path());
        assert_eq!((kept.records_read, kept.totals.tasks), (0, 40));
        without_stats(folder.path());
        let read = seen(folder.path());
        // 22 + 1, 22 + 1, 22 + 1 records, and what comes behind.
        assert_eq!(read.records_read, 83 - 69, "only what lies behind the last counts");
        assert_eq!(
            (&read.totals, &read.findings, &read.history),
            (&kept.totals, &kept.findings, &kept.history)
        );
        assert_eq!(read.report, kept.report);
        // Whoever goes on writing knows it as well.
        let recorder = Recorder::start(folder.path(), at(300_000), Options::new(plain())).unwrap();
        assert_eq!(recorder.whole().ledger.totals.tasks, 40);
        recorder.finish(at(300_001)).unwrap();
    }
}

#[test]
fn many_short_processes_leave_counts_too() {
    let folder = TempDir::new().unwrap();
    for n in 0..12 {
        let options = Options {
            counts_every: 5,
            ..Options::new(plain())
        };
        let mut wire = Wire::default();
        let mut recorder = Recorder::start(folder.path(), at(n), options).unwrap();
        let task = u32::try_from(n).unwrap();
        let _ = recorder.observe(at(n), wire.send(Role::User, task, input(task, "x")));
        let _ = recorder.observe(at(n), wire.send(Role::R7, task, result(task, 0.0)));
        recorder.finish(at(n)).unwrap();
    }
    let verified = verify(folder.path(), &[]).unwrap();
    assert!(verified.counts >= 3, "{verified:?}");
    without_stats(folder.path());
    let read = seen(folder.path());
    assert_eq!(read.totals.tasks, 12);
    assert!(read.records_read < 12, "{}", read.records_read);
}

/// What is done to the lines of the log, and what verify calls it.
type Attack = (&'static str, fn(&mut Vec<String>), Damage);

/// A counts record with other numbers, and a hash that fits them.
fn forged(line: &str) -> String {
    let frame = Frame::read(line.as_bytes()).unwrap();
    let body = std::str::from_utf8(frame.body).unwrap();
    let before = Link {
        n: frame.n - 1,
        hash: frame.prev,
    };
    let mut made = Vec::new();
    let _ = before.follow(
        frame.at,
        "counts",
        &body.replace("\"tasks\":", "\"tasks\":9"),
        &mut made,
    );
    String::from_utf8(made).unwrap().trim_end().to_owned()
}

fn last_counts(lines: &[String]) -> usize {
    lines.iter().rposition(|line| kind(line) == Kind::Counts).unwrap()
}

#[test]
fn counts_that_do_not_fit_are_not_believed() {
    let attacks: [Attack; 5] = [
        (
            "edited",
            |lines| {
                let at = last_counts(lines);
                lines[at] = lines[at].replace("\"tasks\":", "\"tasks\":9");
            },
            Damage::Edited,
        ),
        (
            "edited, with a hash of its own",
            |lines| {
                let at = last_counts(lines);
                lines[at] = forged(&lines[at]);
            },
            Damage::Edited,
        ),
        (
            "the last record, edited, with a hash of its own",
            |lines| {
                lines.truncate(last_counts(lines) + 1);
                let at = lines.len() - 1;
                lines[at] = forged(&lines[at]);
            },
            Damage::CutOff,
        ),
        (
            "an older one put at the end",
            |lines| {
                let first = lines.iter().position(|line| kind(line) == Kind::Counts).unwrap();
                lines.push(lines[first].clone());
            },
            Damage::Inserted,
        ),
        (
            "a record behind it removed",
            |lines| {
                let at = last_counts(lines);
                lines.remove(at + 1);
            },
            Damage::Removed,
        ),
    ];
    for (what, attack, damage) in attacks {
        let folder = TempDir::new().unwrap();
        day(folder.path(), u64::MAX);
        without_stats(folder.path());
        let mut changed = lines(folder.path());
        attack(&mut changed);
        write(folder.path(), &changed);
        let messages = changed.iter().filter(|line| kind(line) == Kind::Envelope).count();
        let read = seen(folder.path());
        assert_eq!(read.totals.messages, messages as u64, "{what}");
        assert!(read.totals.tasks <= 40, "{what}: {}", read.totals.tasks);
        let error = verify(folder.path(), &[]).expect_err(what);
        let LogError::Broken(broken) = error else {
            panic!("{what}: {error}")
        };
        assert_eq!(broken.damage, damage, "{what}: {broken:?}");
    }
}

#[test]
fn a_last_record_whose_hash_the_head_does_not_know_is_not_believed() {
    let folder = TempDir::new().unwrap();
    let options = Options {
        counts_every: 2,
        ..Options::new(plain())
    };
    let mut wire = Wire::default();
    let mut recorder = Recorder::start(folder.path(), at(0), options).unwrap();
    let _ = recorder.observe(at(0), wire.send(Role::User, 1, input(1, "x")));
    let _ = recorder.observe(at(0), wire.send(Role::R7, 1, result(1, 0.0)));
    recorder.finish(at(1)).unwrap();
    without_stats(folder.path());
    let mut changed = lines(folder.path());
    assert_eq!(kind(changed.last().unwrap()), Kind::Counts);
    assert_eq!(seen(folder.path()).records_read, 0);
    let last = changed.len() - 1;
    changed[last] = forged(&changed[last]);
    write(folder.path(), &changed);
    assert_eq!(seen(folder.path()).totals.tasks, 1);
}

#[test]
fn without_its_head_the_counts_of_a_log_are_not_believed() {
    let folder = TempDir::new().unwrap();
    day(folder.path(), u64::MAX);
    without_stats(folder.path());
    let honest = seen(folder.path());
    assert!(
        honest.records_read < lines(folder.path()).len() as u64,
        "it reads on from the last counts"
    );
    fs::remove_file(folder.path().join("audit.head")).unwrap();
    let alone = seen(folder.path());
    assert_eq!(alone.totals.tasks, honest.totals.tasks);
    assert!(
        alone.records_read > honest.records_read,
        "nothing vouches for the counts, so all is counted anew"
    );
}

#[test]
fn kept_counts_that_somebody_changed_are_not_believed() {
    let folder = TempDir::new().unwrap();
    day(folder.path(), u64::MAX);
    let stats = folder.path().join("audit_stats.json");
    let text = fs::read_to_string(&stats).unwrap();
    fs::write(&stats, text.replace("\"tasks\":40", "\"tasks\":4")).unwrap();
    let read = seen(folder.path());
    assert_eq!((read.totals.tasks, read.records_read), (40, 14));
}

#[test]
fn a_failure_that_was_paid_for_counts_in_both_ways_of_reading() {
    let folder = TempDir::new().unwrap();
    let mut wire = Wire::default();
    let mut recorder = Recorder::start(folder.path(), at(0), Options::new(plain())).unwrap();
    let _ = recorder.observe(at(0), wire.send(Role::User, 1, input(1, "count the files")));
    let failed = Act::ModelFailed {
        call: CallId(1),
        error: "refusal".into(),
        usage: Usage {
            input_tokens: 90,
            output_tokens: 10,
            requests: 1,
            ..Usage::default()
        },
        cost: Finite::new(0.5).unwrap(),
    };
    let deed = Deed {
        role: Role::R2,
        task_id: Some(task(1)),
        at: at(1),
        act: failed,
    };
    let _ = recorder.observe(at(1), Observed::Deed(Arc::new(deed)));
    recorder.finish(at(2)).unwrap();
    for _ in 0..2 {
        let totals = seen(folder.path()).totals;
        assert_eq!((totals.input_tokens, totals.output_tokens), (90, 10));
        assert_eq!((totals.model_calls.bad, totals.model_calls.of), (1, 1));
        assert!((totals.cost - 0.5).abs() < 1e-9);
        let _ = fs::remove_file(folder.path().join("audit_stats.json"));
    }
}

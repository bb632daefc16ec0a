//! Every change to a finished log is found, and its kind is named.

use std::fs;
use std::path::Path;

use artoo_auditor::chain::{Frame, Link};
use artoo_auditor::verify::Refused;
use artoo_auditor::{Broken, Damage, LogError, Options, Recorder, Verifier, verify};
use artoo_protocol::Role;
use tempfile::TempDir;

use crate::build::{Wire, at, input};
use crate::recording::{plain, run};

fn log_of(tasks: u32) -> (TempDir, Vec<u8>) {
    let folder = TempDir::new().unwrap();
    run(folder.path(), tasks);
    let bytes = fs::read(folder.path().join("audit.jsonl")).unwrap();
    assert_eq!(verify(folder.path(), &[]).unwrap().records, u64::from(2 * tasks));
    (folder, bytes)
}

fn broken(folder: &Path) -> Broken {
    match verify(folder, &[]) {
        Ok(fine) => panic!("{fine:?}"),
        Err(LogError::Broken(broken)) => broken,
        Err(other) => panic!("{other}"),
    }
}

fn check(folder: &Path, file: &str, bytes: &[u8]) -> Broken {
    fs::write(folder.join(file), bytes).unwrap();
    broken(folder)
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

fn bare(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap()
}

/// A log of 1,000 records, and a verifier that stands before each of them.
fn thousand() -> (Vec<u8>, Link, Vec<Verifier>) {
    let (_folder, good) = log_of(500);
    let head = lines(&good).last().map(|line| Frame::sound(bare(line)).unwrap().link());
    let mut verifier = Verifier::new(head, &[]);
    let mut before = Vec::new();
    for line in lines(&good) {
        before.push(verifier.clone());
        verifier.take(bare(line)).unwrap();
    }
    assert_eq!(verifier.clone().finish(0).unwrap().records, 1_000);
    before.push(verifier);
    (good, head.unwrap(), before)
}

/// Whoever reads a log from its beginning stands before the record that was changed exactly where he stood in the good one;
/// so each change is tried there, and what comes before it is read only once.
#[test]
fn in_a_thousand_records_a_flipped_bit_of_every_byte_is_found_and_named() {
    flipped(|byte| byte % 8..byte % 8 + 1);
}

#[test]
#[ignore = "takes minutes without optimisation: cargo test --release -p artoo-auditor -- --ignored"]
fn in_a_thousand_records_every_flipped_bit_is_found_and_named() {
    flipped(|_| 0..8);
}

fn flipped(bits: fn(usize) -> std::ops::Range<usize>) {
    let (good, _, before) = thousand();
    let all = lines(&good);
    let (mut begin, mut flipped) = (0, 0);
    for (i, (verifier, line)) in before.iter().zip(&all).enumerate() {
        let end = begin + line.len();
        let n = i as u64 + 1;
        // With the next record, in case it is the line break that is flipped.
        let next = all.get(i + 1).copied().unwrap_or_default();
        let mut tail = [*line, next].concat();
        for byte in 0..line.len() {
            for bit in bits(byte) {
                tail[byte] ^= 1_u8 << bit;
                flipped += 1;
                let mut parts = tail.split(|&byte| byte == b'\n');
                let changed = parts.next().unwrap();
                if changed.len() == tail.len() {
                    // The last line break of the log: what stands there now is no whole record any more.
                    assert_eq!(end, good.len());
                    let found = verifier.clone().finish(changed.len() as u64).unwrap_err();
                    assert_eq!((found.record, found.damage), (n, Damage::CutOff));
                } else {
                    let place = || format!("bit {bit} of byte {byte} of record {n}");
                    assert_eq!(verifier.clone().take(changed), Err(Refused::Strange), "{}", place());
                    // What is read to name it: the lines behind, of which one may be a part of the record itself.
                    let mut rest = parts.filter(|part| !part.is_empty()).map(<[u8]>::to_vec);
                    let found = verifier.diagnose(changed, || rest.next());
                    assert_eq!((found.record, found.damage), (n, Damage::Edited), "{}", place());
                }
                tail[byte] ^= 1_u8 << bit;
            }
        }
        begin = end;
    }
    assert_eq!((begin, flipped), (good.len(), good.len() * bits(0).len()), "every byte");
}

#[test]
fn in_a_thousand_records_every_missing_line_and_every_swap_is_named() {
    let (good, _, before) = thousand();
    let all: Vec<Vec<u8>> = lines(&good).into_iter().map(|line| bare(line).to_vec()).collect();
    let ahead = |from: usize| {
        let mut rest = all.iter().skip(from).cloned();
        move || rest.next()
    };
    for (i, verifier) in before.iter().take(all.len()).enumerate() {
        let n = i as u64 + 1;
        let Some(next) = all.get(i + 1) else {
            let found = verifier.clone().finish(0).unwrap_err();
            assert_eq!((found.record, found.damage), (n, Damage::CutOff));
            continue;
        };
        // Removed: the next one stands in its place.
        assert_eq!(verifier.clone().take(next), Err(Refused::Strange));
        let found = verifier.diagnose(next, ahead(i + 2));
        assert_eq!((found.record, found.damage), (n, Damage::Removed));
        // Swapped: the record itself comes behind the next one.
        let mut behind = std::iter::once(&all[i]).chain(&all[i + 2..]).cloned();
        let found = verifier.diagnose(next, || behind.next());
        assert_eq!((found.record, found.damage), (n, Damage::Reordered));
        // Twice: it stands there once more.
        let after = &before[i + 1];
        assert_eq!(after.clone().take(&all[i]), Err(Refused::Strange));
        let found = after.diagnose(&all[i], ahead(i + 1));
        assert_eq!((found.record, found.damage), (n + 1, Damage::Inserted));
    }
}

/// The next strange line that a verifier meets, and what it is called.
fn first_wrong(mut verifier: Verifier, lines: &[&[u8]]) -> (u64, Damage) {
    for (at, line) in lines.iter().enumerate() {
        if verifier.take(line).is_err() {
            let mut rest = lines[at + 1..].iter().map(|line| line.to_vec());
            let found = verifier.diagnose(line, || rest.next());
            return (found.record, found.damage);
        }
    }
    let found = verifier.finish(0).unwrap_err();
    (found.record, found.damage)
}

/// Lines that were put in are called that, and by the number of the first, however many they are.
#[test]
fn in_a_thousand_records_several_lines_that_were_put_in_are_named_at_every_place() {
    let (good, _, before) = thousand();
    let all: Vec<&[u8]> = lines(&good).into_iter().map(bare).collect();
    let note = |from: Link| {
        let mut line = Vec::new();
        let after = from.follow(&at(0).to_string(), "note", "\"nothing happened\"", &mut line);
        line.pop();
        (line, after)
    };
    let junk: &[u8] = b"{\"note\":\"x\"}";
    let stranger = Link {
        n: 2_000,
        ..Link::genesis()
    };
    let (strange, after_strange) = note(stranger);
    let (stranger, _) = note(after_strange);
    for (i, verifier) in before.iter().take(all.len()).enumerate() {
        let n = i as u64 + 1;
        // Enough of what follows; the head lies behind it.
        let rest = &all[i..(i + 4).min(all.len())];
        let put_in = |lines: &[&[u8]]| first_wrong(verifier.clone(), &[lines, rest].concat());
        assert_eq!(put_in(&[junk, junk]), (n, Damage::Inserted), "no records, before {n}");
        // Chained to each other and to nothing else.
        assert_eq!(
            put_in(&[&strange, &stranger]),
            (n, Damage::Inserted),
            "strangers, before {n}"
        );
        // Chained to what stands before them: the true record then seems to come late.
        let (first, link) = note(verifier.link());
        let (second, link) = note(link);
        let (third, _) = note(link);
        assert_eq!(
            put_in(&[&first, &second]),
            (n, Damage::Inserted),
            "two forged, before {n}"
        );
        assert_eq!(
            put_in(&[&first, &second, &third]),
            (n, Damage::Inserted),
            "three forged, before {n}"
        );
    }
    // Copies of earlier records behind the end, which the head vouches for.
    let whole = before.last().unwrap();
    let copies = first_wrong(whole.clone(), &[all[2], all[3]]);
    assert_eq!(copies, (1_001, Damage::Inserted));
}

#[test]
fn in_a_thousand_records_every_cut_is_found() {
    let (good, head, before) = thousand();
    for (verifier, line) in before.iter().zip(lines(&good)) {
        for unfinished in 0..line.len() {
            let found = verifier.clone().finish(unfinished as u64).unwrap_err();
            assert_eq!((found.record, found.damage), (verifier.link().n + 1, Damage::CutOff));
        }
    }
    assert_eq!(before.last().unwrap().link(), head);
}

#[test]
fn the_files_themselves_are_read_like_that() {
    let (folder, good) = log_of(2);
    let mut record = 1;
    for i in 0..good.len() {
        // Every byte in the bit that turns a letter's case.
        let mut bytes = good.clone();
        bytes[i] ^= 1 << 5;
        let found = check(folder.path(), "audit.jsonl", &bytes);
        assert_eq!(found.record, record, "byte {i}: {found:?}");
        let found = check(folder.path(), "audit.jsonl", &good[..i]);
        assert_eq!(found.damage, Damage::CutOff, "cut to {i}");
        record += u64::from(good[i] == b'\n');
    }
    fs::remove_file(folder.path().join("audit.jsonl")).unwrap();
    let found = broken(folder.path());
    assert_eq!((found.record, found.damage), (1, Damage::CutOff));
}

#[test]
fn every_flipped_bit_of_the_head_is_found() {
    let (folder, _) = log_of(1);
    let good = fs::read(folder.path().join("audit.head")).unwrap();
    for i in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[i] ^= 1 << bit;
            check(folder.path(), "audit.head", &bytes);
        }
    }
    fs::remove_file(folder.path().join("audit.head")).unwrap();
    assert_eq!(broken(folder.path()).damage, Damage::HeadMissing);
}

#[test]
fn what_was_moved_or_put_in_is_told_from_what_was_edited() {
    let (folder, good) = log_of(4);
    let all = lines(&good);
    let found = |order: &[usize]| {
        let bytes: Vec<u8> = order.iter().flat_map(|&i| all[i].to_vec()).collect();
        let broken = check(folder.path(), "audit.jsonl", &bytes);
        (broken.record, broken.damage)
    };
    // Counted from 0, so record 3 is line 2.
    assert_eq!(
        found(&[0, 1, 5, 2, 3, 4, 6, 7]),
        (3, Damage::Reordered),
        "moved to the front"
    );
    assert_eq!(
        found(&[0, 2, 3, 4, 1, 5, 6, 7]),
        (2, Damage::Reordered),
        "moved to the back"
    );
    assert_eq!(
        found(&[0, 1, 5, 2, 3, 4, 5, 6, 7]),
        (3, Damage::Inserted),
        "a copy of a later one"
    );
    assert_eq!(
        found(&[0, 1, 2, 0, 3, 4, 5, 6, 7]),
        (4, Damage::Inserted),
        "a copy of an earlier one"
    );
    assert_eq!(found(&[0, 1, 5, 6, 7]), (3, Damage::Removed), "three are missing");
    assert_eq!(
        found(&[1, 2, 3, 4, 5, 6, 7]),
        (1, Damage::Removed),
        "the first is missing"
    );
    let junk = [all[0], b"{\"note\":\"x\"}\n", all[1], all[2]].concat();
    let broken = check(folder.path(), "audit.jsonl", &junk);
    assert_eq!(
        (broken.record, broken.damage),
        (2, Damage::Inserted),
        "a line that is no record"
    );
}

#[test]
fn a_forged_record_breaks_the_chain_behind_it() {
    let (folder, good) = log_of(3);
    let all = lines(&good);
    for i in 0..all.len() {
        // Another content with a hash that fits it, in the right place.
        let before = if i == 0 {
            Link::genesis()
        } else {
            Frame::sound(bare(all[i - 1])).unwrap().link()
        };
        let mut forged = Vec::new();
        let _ = before.follow(&at(0).to_string(), "note", "\"nothing happened\"", &mut forged);
        let bytes = [&all[..i], &[forged.as_slice()], &all[i + 1..]].concat().concat();
        let found = check(folder.path(), "audit.jsonl", &bytes);
        let n = i as u64 + 1;
        let expect = if i + 1 < all.len() {
            Damage::Edited
        } else {
            Damage::HeadDiffers
        };
        assert_eq!((found.record, found.damage), (n, expect));
        // Beside the true one it is an addition.
        let bytes = [&all[..i], &[forged.as_slice()], &all[i..]].concat().concat();
        let found = check(folder.path(), "audit.jsonl", &bytes);
        assert_eq!((found.record, found.damage), (n, Damage::Inserted));
    }
}

/// The good log and a foreign one, and what is made of them.
type Change = fn(&[u8], &[u8]) -> Vec<u8>;

#[test]
fn what_was_done_to_a_log_stays_visible_after_a_restart() {
    // The end cut off, the last record changed, the whole log replaced by another one.
    let (_other, foreign) = log_of(1);
    let cases: [Change; 3] = [
        |good, _| lines(good)[..2].concat(),
        |good, _| {
            String::from_utf8(good.to_vec())
                .unwrap()
                .replace("done", "dono")
                .into_bytes()
        },
        |_, foreign| foreign.to_vec(),
    ];
    for change in cases {
        let (folder, good) = log_of(2);
        fs::write(folder.path().join("audit.jsonl"), change(&good, &foreign)).unwrap();
        broken(folder.path());
        let mut recorder = Recorder::start(folder.path(), at(0), Options::new(plain())).unwrap();
        let _ = recorder.observe(at(0), Wire::default().send(Role::User, 9, input(9, "x")));
        recorder.finish(at(1)).unwrap();
        broken(folder.path());
        let text = fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
        assert!(text.contains("\"note\":"), "and it is noted: {text}");
    }
}

/// Where the head is gone with the end, the chain of what is left is whole: what goes on behind it must not be.
#[test]
fn a_head_that_was_gone_or_spoilt_stays_visible_after_a_restart() {
    let spoil: [fn(&Path); 2] = [
        |head| fs::remove_file(head).unwrap(),
        |head| fs::write(head, "{}").unwrap(),
    ];
    for spoil in spoil {
        let (folder, good) = log_of(2);
        spoil(&folder.path().join("audit.head"));
        fs::write(folder.path().join("audit.jsonl"), lines(&good)[..2].concat()).unwrap();
        assert_eq!(broken(folder.path()).damage, Damage::HeadMissing);
        for _ in 0..2 {
            run(folder.path(), 1);
            let found = broken(folder.path());
            assert_eq!((found.record, found.damage), (3, Damage::HeadMissing), "{found:?}");
            assert!(found.detail.contains("when the log was opened"), "{found:?}");
        }
        let text = fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
        let told: Vec<&str> = text.lines().filter(|line| line.contains("\"damage\":\"")).collect();
        assert_eq!(told.len(), 1, "once: {text}");
        // And whoever takes that record out is found as well.
        let without = text.replace(&format!("{}\n", told[0]), "");
        fs::write(folder.path().join("audit.jsonl"), without).unwrap();
        assert_eq!(broken(folder.path()).damage, Damage::Removed);
    }
}

/// One process for each record, with files that hold three.
pub fn small_files(folder: &Path, tasks: u32) -> Vec<std::path::PathBuf> {
    for n in 0..tasks {
        let options = Options {
            full_at: 1_500,
            ..Options::new(plain())
        };
        let mut wire = Wire::default();
        let mut recorder = Recorder::start(folder, at(0), options).unwrap();
        let _ = recorder.observe(at(0), wire.send(Role::User, n, input(n, "count the files")));
        recorder.finish(at(1)).unwrap();
    }
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    files
}

#[test]
fn a_full_file_is_put_aside_and_the_chain_goes_on() {
    let folder = TempDir::new().unwrap();
    let files = small_files(folder.path(), 12);
    assert!(files.len() > 2, "{files:?}");
    let verified = verify(folder.path(), &[]).unwrap();
    assert_eq!((verified.records, verified.files), (12, files.len() as u64));
    // The name says with which record a file begins, and the first record names the last of the file before.
    let name = files[1].file_name().unwrap().to_str().unwrap();
    let first = fs::read(&files[1]).unwrap();
    let frame = Frame::sound(bare(lines(&first)[0])).unwrap();
    assert_eq!(name, format!("audit-{:016}.jsonl", frame.n));
    let before = fs::read(&files[0]).unwrap();
    assert_eq!(
        frame.prev,
        Frame::sound(bare(lines(&before).last().unwrap())).unwrap().hash
    );

    // A missing file is a hole, a changed one is found, and so is one that lost its last line break.
    fs::rename(&files[1], folder.path().join("elsewhere")).unwrap();
    let found = broken(folder.path());
    assert_eq!((found.record, found.damage), (frame.n, Damage::Removed));
    fs::rename(folder.path().join("elsewhere"), &files[1]).unwrap();
    fs::write(&files[0], bare(&before)).unwrap();
    let found = broken(folder.path());
    assert_eq!((found.record, found.damage), (frame.n - 1, Damage::Edited));
    fs::write(&files[0], &before).unwrap();
    assert!(verify(folder.path(), &[]).is_ok());
}

#[test]
fn a_crash_between_two_files_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let files = small_files(folder.path(), 12).len() as u64;
    // The full file has its name already, the new one was not made yet.
    let log = folder.path().join("audit.jsonl");
    let text = fs::read(&log).unwrap();
    let first = Frame::sound(bare(lines(&text)[0])).unwrap().n;
    fs::rename(&log, folder.path().join(format!("audit-{first:016}.jsonl"))).unwrap();
    run(folder.path(), 1);
    let verified = verify(folder.path(), &[]).unwrap();
    assert_eq!((verified.records, verified.notes, verified.files), (14, 0, files + 1));
}

/// Whatever the first line of the file says, no file that is there is ever replaced by it.
#[test]
fn a_damaged_first_line_costs_no_older_file() {
    let spoilt: [fn(&str) -> String; 3] = [
        // Not readable, and readable with the number of the oldest file.
        |line| line.replacen("hash", "hsah", 1),
        |line| {
            let at = line.find("\"n\":").unwrap();
            let end = at + line[at..].find(',').unwrap();
            format!("{}\"n\":1{}", &line[..at], &line[end..])
        },
        // A copy of the oldest file's own first line, which is sound.
        |_| String::new(),
    ];
    for spoil in spoilt {
        let folder = TempDir::new().unwrap();
        let files = small_files(folder.path(), 8);
        let oldest = fs::read(&files[0]).unwrap();
        let log = folder.path().join("audit.jsonl");
        let text = fs::read_to_string(&log).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let changed = match spoil(first) {
            line if line.is_empty() => String::from_utf8(lines(&oldest)[0].to_vec())
                .unwrap()
                .trim_end()
                .to_owned(),
            line => line,
        };
        fs::write(&log, format!("{changed}\n{rest}")).unwrap();
        let kept: Vec<_> = files
            .iter()
            .filter(|path| **path != log)
            .map(|path| fs::read(path).unwrap())
            .collect();
        // Enough for the file to be full.
        let after = small_files(folder.path(), 8);
        for (path, bytes) in files.iter().filter(|path| **path != log).zip(&kept) {
            assert!(fs::read(path).unwrap() == *bytes, "{} was replaced", path.display());
        }
        assert!(after.len() > files.len(), "{after:?}");
        // The files still lie in the order in which they were written.
        let numbers: Vec<u64> = after
            .iter()
            .filter(|path| **path != log)
            .map(|path| {
                let text = fs::read_to_string(path).unwrap();
                Frame::sound(text.lines().last().unwrap().as_bytes()).unwrap().n
            })
            .collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        broken(folder.path());
    }
}

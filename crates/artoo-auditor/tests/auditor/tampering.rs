//! Every change to a finished log is found, and its kind is named.

use std::fs;
use std::path::Path;

use artoo_auditor::chain::{Link, Sound};
use artoo_auditor::{Broken, Damage, LogError, verify};
use tempfile::TempDir;

use crate::build::at;
use crate::recording::run;

fn log_of(tasks: u32) -> (TempDir, Vec<u8>) {
    let folder = TempDir::new().unwrap();
    run(folder.path(), tasks);
    let bytes = fs::read(folder.path().join("audit.jsonl")).unwrap();
    assert_eq!(verify(folder.path()).unwrap().records, u64::from(2 * tasks));
    (folder, bytes)
}

fn check(folder: &Path, file: &str, bytes: &[u8]) -> Result<(), Broken> {
    fs::write(folder.join(file), bytes).unwrap();
    match verify(folder) {
        Ok(_) => Ok(()),
        Err(LogError::Broken(broken)) => Err(broken),
        Err(other) => panic!("{other}"),
    }
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

#[test]
fn a_flipped_bit_in_any_byte_is_found_in_its_record() {
    let (folder, good) = log_of(2);
    let mut record = 1;
    for i in 0..good.len() {
        // Every byte in one bit that changes from byte to byte, and in the one that turns a letter's case.
        for bit in [i % 8, 5] {
            let mut bytes = good.clone();
            bytes[i] ^= 1 << bit;
            let broken = check(folder.path(), "audit.jsonl", &bytes).unwrap_err();
            assert_eq!(broken.record, record, "byte {i}, bit {bit}: {broken:?}");
        }
        record += u64::from(good[i] == b'\n');
    }
}

#[test]
fn every_flipped_bit_of_the_head_is_found() {
    let (folder, _) = log_of(1);
    let good = fs::read(folder.path().join("audit.head")).unwrap();
    for i in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[i] ^= 1 << bit;
            assert!(
                check(folder.path(), "audit.head", &bytes).is_err(),
                "byte {i}, bit {bit}"
            );
        }
    }
    fs::remove_file(folder.path().join("audit.head")).unwrap();
    assert!(matches!(verify(folder.path()), Err(LogError::Broken(b)) if b.damage == Damage::HeadMissing));
}

#[test]
fn removed_inserted_and_swapped_records_are_named() {
    let (folder, good) = log_of(6);
    let all = lines(&good);
    let found = |bytes: Vec<u8>| check(folder.path(), "audit.jsonl", &bytes).unwrap_err();
    for i in 0..all.len() {
        let n = u64::try_from(i).unwrap() + 1;
        let without: Vec<u8> = [&all[..i], &all[i + 1..]].concat().concat();
        let broken = found(without);
        let expect = if i + 1 == all.len() {
            Damage::CutOff
        } else {
            Damage::Removed
        };
        assert_eq!((broken.record, broken.damage), (n, expect));

        let twice: Vec<u8> = [&all[..=i], &all[i..]].concat().concat();
        let broken = found(twice);
        assert_eq!((broken.record, broken.damage), (n + 1, Damage::Inserted));

        if i + 1 < all.len() {
            let mut swapped = all.clone();
            swapped.swap(i, i + 1);
            let broken = found(swapped.concat());
            assert_eq!((broken.record, broken.damage), (n, Damage::Reordered));
        }
    }
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
            Sound::read(all[i - 1].strip_suffix(b"\n").unwrap()).unwrap().link
        };
        let (forged, _) = before.follow(at(0), "\"note\":\"nothing happened\"");
        let bytes = [&all[..i], &[forged.as_bytes()], &all[i + 1..]].concat().concat();
        let broken = check(folder.path(), "audit.jsonl", &bytes).unwrap_err();
        let n = u64::try_from(i).unwrap() + 1;
        if i + 1 < all.len() {
            assert_eq!((broken.record, broken.damage), (n + 1, Damage::Rechained));
        } else {
            assert_eq!((broken.record, broken.damage), (n, Damage::HeadDiffers));
        }
    }
}

#[test]
fn every_cut_is_found() {
    let (folder, good) = log_of(2);
    for length in 0..good.len() {
        let broken = check(folder.path(), "audit.jsonl", &good[..length]).unwrap_err();
        assert_eq!(broken.damage, Damage::CutOff, "cut to {length}");
    }
    fs::remove_file(folder.path().join("audit.jsonl")).unwrap();
    assert!(matches!(verify(folder.path()), Err(LogError::Broken(b)) if b.damage == Damage::CutOff && b.record == 1));
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
        assert!(verify(folder.path()).is_err());
        run(folder.path(), 1);
        let found = verify(folder.path());
        assert!(matches!(found, Err(LogError::Broken(_))), "{found:?}");
        let text = fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
        assert!(text.contains("\"note\":"), "and it is noted: {text}");
    }
}

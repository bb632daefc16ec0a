//! Checkpoints: what a whole chain that was written anew cannot get past.

use std::fs;

use artoo_auditor::checkpoint::{CheckpointError, new_key, read_checkpoints, sign};
use artoo_auditor::{Damage, LogError, verify};
use tempfile::TempDir;

use crate::build::at;
use crate::recording::run;

#[test]
fn a_chain_that_was_written_anew_is_found() {
    let (folder, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let key = outside.path().join("operator.key");
    let (public, points) = (outside.path().join("operator.key.pub"), outside.path().join("points"));
    new_key(&key).unwrap();
    assert!(matches!(new_key(&key), Err(CheckpointError::KeyExists(_))));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    }
    for tasks in [2, 3] {
        run(folder.path(), tasks);
        sign(folder.path(), &key, at(5), &points).unwrap();
    }
    run(folder.path(), 1);
    let known = read_checkpoints(&points, &public).unwrap();
    assert_eq!(known.iter().map(|point| point.n).collect::<Vec<_>>(), [4, 10]);
    assert_eq!(verify(folder.path(), &known).unwrap().checkpoints, 2);

    // Everything anew, the head too: whole in itself, and not what was signed.
    let forged = TempDir::new().unwrap();
    run(forged.path(), 7);
    assert!(verify(forged.path(), &[]).is_ok());
    let found = verify(forged.path(), &known);
    assert!(
        matches!(found, Err(LogError::Broken(b)) if b.damage == Damage::Rewritten && (b.record == 10 || b.record == 4))
    );
    // Cut off together with its head.
    let short = TempDir::new().unwrap();
    run(short.path(), 1);
    let found = verify(short.path(), &known);
    assert!(matches!(found, Err(LogError::Broken(b)) if b.damage == Damage::CutOff && b.record == 3));
}

#[test]
fn a_checkpoint_that_nobody_signed_is_refused() {
    let (folder, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = |name: &str| outside.path().join(name);
    new_key(&path("mine")).unwrap();
    new_key(&path("other")).unwrap();
    let sign = |key: &str| sign(folder.path(), &path(key), at(0), &path("points"));
    assert!(matches!(sign("mine"), Err(CheckpointError::Empty)));
    run(folder.path(), 1);
    sign("mine").unwrap();
    assert!(matches!(sign("other"), Err(CheckpointError::Forged { line: 1 })));
    assert!(matches!(
        read_checkpoints(&path("points"), &path("other.pub")),
        Err(CheckpointError::Forged { line: 1 })
    ));
    assert!(matches!(
        read_checkpoints(&path("points"), &path("points")),
        Err(CheckpointError::NotAKey(_))
    ));
    // Every flipped bit of every byte: either no checkpoint any more, or a forged one. Never another statement.
    let good = fs::read(path("points")).unwrap();
    let truth = read_checkpoints(&path("points"), &path("mine.pub")).unwrap();
    for i in 0..good.len() {
        let mut bytes = good.clone();
        bytes[i] ^= 1 << (i % 8);
        fs::write(path("changed"), &bytes).unwrap();
        if let Ok(read) = read_checkpoints(&path("changed"), &path("mine.pub")) {
            let same = |a: &artoo_auditor::Checkpoint, b: &artoo_auditor::Checkpoint| {
                (a.n, a.hash, a.at) == (b.n, b.hash, b.at)
            };
            assert!(read.iter().zip(&truth).all(|(a, b)| same(a, b)), "byte {i}");
        }
    }
}

/// Somebody writes the chain anew and lets the operator sign it: with as many records as the old one had, a later checkpoint would stand in
/// the place of the earlier.
#[test]
fn a_log_that_contradicts_an_earlier_checkpoint_is_not_signed_and_never_agrees() {
    let (folder, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = |name: &str| outside.path().join(name);
    new_key(&path("key")).unwrap();
    run(folder.path(), 2);
    sign(folder.path(), &path("key"), at(5), &path("points")).unwrap();
    let forged = TempDir::new().unwrap();
    run(forged.path(), 1);
    run(forged.path(), 1);
    let records = |folder: &TempDir| verify(folder.path(), &[]).unwrap().last;
    assert_eq!(records(&forged).n, records(&folder).n);
    assert_ne!(records(&forged), records(&folder));
    let refused = sign(forged.path(), &path("key"), at(6), &path("points"));
    assert!(
        matches!(&refused, Err(CheckpointError::Log(LogError::Broken(b))) if b.damage == Damage::Rewritten && b.record == 4),
        "{refused:?}"
    );
    let known = read_checkpoints(&path("points"), &path("key.pub")).unwrap();
    assert_eq!(known.len(), 1, "nothing was added");
    // Were it signed all the same, in another file that is put behind the first: neither log agrees with both.
    sign(forged.path(), &path("key"), at(6), &path("others")).unwrap();
    let both = fs::read_to_string(path("points")).unwrap() + &fs::read_to_string(path("others")).unwrap();
    fs::write(path("both"), both).unwrap();
    let known = read_checkpoints(&path("both"), &path("key.pub")).unwrap();
    for log in [folder.path(), forged.path()] {
        let found = verify(log, &known);
        assert!(
            matches!(&found, Err(LogError::Broken(b)) if b.damage == Damage::Rewritten),
            "{found:?}"
        );
    }
    // The same statement twice is no contradiction.
    sign(folder.path(), &path("key"), at(7), &path("points")).unwrap();
    let known = read_checkpoints(&path("points"), &path("key.pub")).unwrap();
    assert_eq!(verify(folder.path(), &known).unwrap().checkpoints, 2);
}

#[test]
fn a_checkpoint_is_never_glued_to_a_line_that_is_none() {
    let (folder, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = |name: &str| outside.path().join(name);
    new_key(&path("key")).unwrap();
    run(folder.path(), 1);
    sign(folder.path(), &path("key"), at(5), &path("points")).unwrap();
    // An editor took the last line break.
    let text = fs::read_to_string(path("points")).unwrap();
    fs::write(path("points"), text.trim_end()).unwrap();
    sign(folder.path(), &path("key"), at(6), &path("points")).unwrap();
    assert_eq!(read_checkpoints(&path("points"), &path("key.pub")).unwrap().len(), 2);
    fs::write(path("points"), text + "{\"format\"").unwrap();
    let refused = sign(folder.path(), &path("key"), at(7), &path("points"));
    assert!(
        matches!(refused, Err(CheckpointError::Unreadable { line: 2, .. })),
        "{refused:?}"
    );
}

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
        let fine = verify(folder.path(), &[]).unwrap();
        sign(&key, fine.last, at(5), &points).unwrap();
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
    let nothing = verify(folder.path(), &[]).unwrap().last;
    assert!(matches!(
        sign(&path("mine"), nothing, at(0), &path("points")),
        Err(CheckpointError::Empty)
    ));
    run(folder.path(), 1);
    let last = verify(folder.path(), &[]).unwrap().last;
    sign(&path("mine"), last, at(0), &path("points")).unwrap();
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

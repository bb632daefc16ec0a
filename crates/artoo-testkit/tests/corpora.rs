//! The kept inputs of the fuzz targets, held against the same claims (design §17, §18).
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "test code")]

use std::panic::catch_unwind;

use artoo_testkit::claims::CLAIMS;

#[test]
fn every_kept_input_keeps_the_claim_of_its_target() {
    for (target, claim) in CLAIMS {
        let folder = format!("{}/../../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
        let mut seen = 0;
        for seed in std::fs::read_dir(&folder).unwrap() {
            let path = seed.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            assert!(catch_unwind(|| claim(&bytes)).is_ok(), "{}", path.display());
            seen += 1;
        }
        assert!(seen >= 10, "{folder}: {seen} inputs");
    }
}

/// The cut-off journals, the shapes and the classes that the claims speak of are really met.
#[test]
fn the_claims_do_not_pass_over_everything() {
    let folder = |target| format!("{}/../../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
    let inputs = |target| {
        let seeds = std::fs::read_dir(folder(target)).unwrap();
        seeds.map(|seed| std::fs::read(seed.unwrap().path()).unwrap())
    };
    let read = inputs("journal")
        .filter(|bytes| artoo_bus::journal::read::read(bytes.as_slice()).is_ok())
        .count();
    assert!(read >= 10, "{read} journals are read");
    let known = inputs("envelope")
        .filter(|bytes| serde_json::from_slice::<artoo_protocol::Envelope>(bytes).is_ok())
        .count();
    assert!(known >= 20, "{known} envelopes are read");
}

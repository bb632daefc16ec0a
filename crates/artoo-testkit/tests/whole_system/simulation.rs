//! A few hundred random worlds; many more with `cargo run --release -p artoo-testkit --bin simulate -- --seeds N`.

use std::collections::BTreeSet;

use artoo_testkit::chaos::play;

#[test]
fn no_random_world_breaks_a_law() {
    let seeds = std::env::var("SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut causes = BTreeSet::new();
    for seed in 0..seeds {
        let run = play(seed).unwrap();
        assert!(run.wrongs.is_empty(), "seed {seed}: {:#?}", run.wrongs);
        causes.extend(run.causes.iter().map(|cause| format!("{cause:?}")));
    }
    assert!(causes.len() >= 9, "the worlds are all alike: {causes:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [1, 2, 3] {
        assert_eq!(play(seed).unwrap().world.log, play(seed).unwrap().world.log);
    }
}

//! Memory makes the second run shorter, by what the prompt says and by nothing else.
//!
//! The long form: `cargo run --release -p artoo-testkit --bin learn` (1,000 families, 10,000 tasks).

use artoo_protocol::Millis;
use artoo_testkit::learning::{With, compare, junk_after, play};

#[test]
fn families_whose_first_plan_fails_are_done_in_fewer_rounds_with_memory() {
    let score = compare(0..40).unwrap();
    assert_eq!(score.families, 40);
    assert!(score.with < score.without && score.worse == 0, "{score:?}");
    assert!(score.better * 10 >= score.families * 9, "{score:?}");
    assert!(score.achieved.0 >= score.achieved.1, "{score:?}");
}

#[test]
fn what_changed_the_plan_stands_in_the_prompt() {
    let (without, with) = (
        play(0, With::Nothing, &[false; 2]).unwrap(),
        play(0, With::Memory, &[false; 2]).unwrap(),
    );
    assert_eq!(without[0].first_plan, without[1].first_plan, "nothing was learned");
    assert_eq!(with[0].first_plan, without[0].first_plan, "the first run knows nothing");
    assert_ne!(with[1].first_plan, with[0].first_plan);
    let failed = with[0].first_plan.rsplit_once(' ').unwrap().1;
    assert!(with[1].told.contains(failed), "{}", with[1].told);
}

#[test]
fn distilled_rules_keep_repetitions_out_of_memory() {
    let after = |with| junk_after(100, 5, Millis::from_seconds(260), with).unwrap();
    let (without, with) = (after(With::Memory), after(With::Dreams));
    assert!(with.entries < without.entries, "{with:?} {without:?}");
    assert!(with.restated < without.restated, "{with:?} {without:?}");
}

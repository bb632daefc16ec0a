//! The controller away from artoo: the example runs, ends, and uses more than one kind of change.

#[expect(dead_code, reason = "its main is for people")]
#[path = "../../examples/build_farm.rs"]
mod build_farm;

use artoo_ggs::Move;

#[test]
fn the_example_of_a_build_farm_ends_in_success_by_several_kinds_of_change() {
    let mut lines = Vec::new();
    assert_eq!(build_farm::steer(|line| lines.push(line)), Move::Succeed);
    assert!((4..=8).contains(&lines.len()), "{lines:#?}");
    for change in ["break_symmetry", "refine"] {
        assert!(lines.iter().any(|line| line.contains(change)), "{lines:#?}");
    }
}

//! The `artoo` binary.
fn main() {}

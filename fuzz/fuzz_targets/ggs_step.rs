//! Whatever comes as lines, `artoo ggs step` answers each or names its number, and a good line after them is still answered.
#![no_main]

use artoo_ggs::{Params, Stepper};
use artoo_protocol::Timestamp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut stepper = Stepper::new(Params::default(), Timestamp::default());
    let mut number = 0;
    for line in text.split('\n') {
        number += 1;
        if let Err(error) = stepper.line(line) {
            assert_eq!(error.line, number);
        }
    }
    let good = r#"{"task_id":"nobody_else_has_this_name","gap_summary":"x"}"#;
    assert!(!stepper.line(good).unwrap().is_empty());
});

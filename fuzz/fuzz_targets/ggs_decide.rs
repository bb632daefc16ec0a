//! Whatever comes as a line, `artoo ggs decide` answers with a cell from 1 to 24 or with an error, and never panics.
#![no_main]

use artoo_ggs::{Params, decide_line};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let line = String::from_utf8_lossy(bytes);
    match decide_line(&Params::default(), &line) {
        Ok(answer) => assert!(answer["cell"].as_u64().is_some_and(|cell| (1..=24).contains(&cell))),
        Err(error) => assert!(!error.cause.is_empty()),
    }
});

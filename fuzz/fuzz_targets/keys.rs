//! Whatever the parts of a key are, they come back as they were.
#![no_main]

use artoo_testkit::claims;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| claims::key(bytes));

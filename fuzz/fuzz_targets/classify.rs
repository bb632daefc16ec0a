//! Whatever a command looks like, its class is no better than what it does.
#![no_main]

use artoo_testkit::claims;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| claims::command(bytes));

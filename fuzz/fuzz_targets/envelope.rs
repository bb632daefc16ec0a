//! Whatever comes as an envelope is refused or read as it is, and no role panics at it.
#![no_main]

use artoo_testkit::claims;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| claims::envelope(bytes));

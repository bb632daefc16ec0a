//! Whatever stands in a journal, it is read as it is or refused.
#![no_main]

use artoo_testkit::claims;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| claims::journal(bytes));

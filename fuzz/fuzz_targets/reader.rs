//! Whatever a model writes, the tolerant reader gives a value that fits or says why not.
#![no_main]

use artoo_testkit::claims;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| claims::reader(bytes));

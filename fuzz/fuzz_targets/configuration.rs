//! Whatever stands in the settings files, they give settings or one clear sentence. The program has no library, so its modules are
//! taken in here.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only the settings are used")]

#[path = "../../apps/artoo-cli/src/args.rs"]
mod args;
#[path = "../../apps/artoo-cli/src/args_groups.rs"]
mod args_groups;
#[path = "../../apps/artoo-cli/src/args_lab.rs"]
mod args_lab;
#[path = "../../apps/artoo-cli/src/data_folder.rs"]
mod data_folder;
#[path = "../../apps/artoo-cli/src/failure.rs"]
mod failure;
#[path = "../../apps/artoo-cli/src/plain_file.rs"]
mod plain_file;
#[path = "../../apps/artoo-cli/src/settings/mod.rs"]
mod settings;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| settings::claims::configuration(bytes));

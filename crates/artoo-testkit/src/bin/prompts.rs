//! Prints how long the fixed prompts are: `cargo run -p artoo-testkit --bin prompts [FOLDER]`.

use std::path::PathBuf;
use std::process::ExitCode;

use artoo_testkit::prompts;

fn main() -> ExitCode {
    let built_in = concat!(env!("CARGO_MANIFEST_DIR"), "/../../prompts");
    let folder = std::env::args()
        .nth(1)
        .map_or_else(|| PathBuf::from(built_in), PathBuf::from);
    match prompts::sizes(&folder) {
        Ok(sizes) => {
            print!("{}", prompts::table(&sizes));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            ExitCode::from(2)
        }
    }
}

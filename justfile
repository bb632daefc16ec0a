# Each recipe is one plain line; just is a convenience, not a need.

# count this repository's Rust files with the built-in offline model
demo:
    cargo run -p artoo-cli -- "count the Rust files in crates and write the number to rust_files.txt"

test:
    cargo test --workspace

# what CI runs: installs Debian packages as root where it can, and plays 20,000 simulated worlds
check:
    .ci/run

bench:
    cargo bench --workspace

doc:
    cargo doc --workspace --no-deps --open
